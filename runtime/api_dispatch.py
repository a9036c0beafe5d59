"""Dispatch by types: what public functions do for values of a program's own classes.

    @dispatch_for_api(ag.stack)
    def masked_stack(values: list[Masked], axis=0):
        ...

    ag.stack([masked, masked])       calls masked_stack
    ag.stack([tensor, tensor])       calls what it called before

A public function that nothing is registered for is what it was: no call of it pays for this. The first registration
replaces the code of the function, in place, by code that hands the arguments to the function's `Dispatcher`, and the
last unregistration puts the code back. So whoever holds the function calls the new one, also inside this project: an
operator between a tensor and such a value dispatches, too.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from runtime.context import name_scope
from runtime.dataclass import dataclass
from runtime.dtypes import DType
from runtime.errors import is_own_file
from runtime.signatures import signature_as_written, signature_of
from runtime.tensor import EagerTensor, SymbolicTensor
from runtime.tracebacks import is_marked, leaving, mark
from runtime.type_specs import CompositeTensor

Function = TypeVar("Function", bound=Callable[..., Any])
Checker = Callable[[Any], int]

# What a checker says of a value: it isn't what the annotation says; it is; it is, and there is a composite in it.
_OTHER, _MATCHES, _DISPATCHES = 0, 1, 2
# Classes of what is no composite and holds none: most calls have nothing else, and aren't looked at more closely.
_PLAIN = frozenset({EagerTensor, SymbolicTensor, DType, bool, int, float, complex, str, type(None)})
_KEY = "_ag_layer"  # the parameter by which the code of a layer finds it


# --- signatures -----------------------------------------------------------------------------------------------------


def _checker(annotation: Any) -> Checker:
    """What compares values with an annotation: a class, None, `list[...]`, or a union of these. Raises ValueError for
    others."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        options = [_checker(each) for each in arguments]
        return lambda value: max([option(value) for option in options])
    if origin is list and len(arguments) == 1:
        return functools.partial(_check_list, _checker(arguments[0]))
    if annotation is None:
        annotation = type(None)
    if origin is None and isinstance(annotation, type):
        return functools.partial(_check_class, annotation)
    raise ValueError(
        f"Type annotation {annotation!r} is not supported by dispatch: write a class, None, list[...] or a Union of "
        "these"
    )


def _check_class(kind: type, value: Any) -> int:
    if not isinstance(value, kind):
        return _OTHER
    return _DISPATCHES if isinstance(value, CompositeTensor) else _MATCHES


def _check_list(item: Checker, value: Any) -> int:
    if not isinstance(value, (list, tuple)):
        return _OTHER
    found = [item(each) for each in value]
    return _OTHER if _OTHER in found else max(found, default=_MATCHES)


class _Signature:
    """What some parameters must be for a target to be called."""

    def __init__(self, of_api: inspect.Signature, annotations: Mapping[str | int, Any]) -> None:
        if not isinstance(annotations, Mapping) or not all(isinstance(key, (str, int)) for key in annotations):
            raise TypeError(
                f"signatures must be dictionaries mapping parameter names to type annotations, got {annotations!r}"
            )
        parameters = list(of_api.parameters.values())
        self._checks: list[tuple[int, str, Any, Checker]] = []
        for key, annotation in annotations.items():
            at = _position(parameters, key)
            if parameters[at].kind not in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD):
                raise ValueError(f"dispatch looks at positional parameters only; {parameters[at].name!r} is another")
            self._checks.append((at, parameters[at].name, parameters[at].default, _checker(annotation)))

    def matches(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether the parameters are what the signature says, and there is a composite among them."""
        best = _OTHER
        for at, name, default, check in self._checks:
            value = args[at] if at < len(args) else kwargs.get(name, default)
            found = check(value)
            if found is _OTHER:
                return False
            best = max(best, found)
        return best is _DISPATCHES


def _position(parameters: list[inspect.Parameter], key: str | int) -> int:
    for at, parameter in enumerate(parameters):
        if key == parameter.name or (type(key) is int and key == at):
            return at
    raise ValueError(
        f"signature includes annotation for unknown parameter {key!r}; the function has {_names(parameters)}"
    )


def _names(parameters: list[inspect.Parameter]) -> str:
    return ", ".join([parameter.name for parameter in parameters])


def _annotated(function: Callable[..., Any]) -> dict[str | int, Any]:
    """The annotations of a target's parameters. Raises ValueError if there are none."""
    try:
        hints = typing.get_type_hints(function)
    except NameError as error:
        raise ValueError(
            f"the annotations of {function!r} name what isn't there ({error}): pass dispatch_for_api a dictionary from "
            "parameters to types"
        ) from error
    found: dict[str | int, Any] = {name: kind for name, kind in hints.items() if name != "return"}
    if not found:
        raise ValueError(
            "dispatch_for_api must be called with at least one signature, or applied to a function that has type "
            f"annotations on its parameters; {function!r} has none"
        )
    return found


# --- targets --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    """What is called in place of a public function.

    function    the one that the program has registered
    operands    how many arguments it takes before those of the public function: the function itself, of a handler
    call        what calls it with the arguments of the public function
    signatures  for which arguments
    """

    function: Callable[..., Any]
    operands: int
    call: Callable[..., Any]
    signatures: tuple[_Signature, ...]


def _check_parameters(of_api: inspect.Signature, function: Callable[..., Any]) -> bool:
    """Whether a target takes the parameter `name`. Raises ValueError if it hasn't the parameters of the function."""
    own = list(signature_of(function).parameters.values())
    if [parameter.kind for parameter in own] == [inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD]:
        return True
    expected = list(of_api.parameters.values())
    takes_name = any(parameter.name == "name" for parameter in own)
    if not takes_name:
        expected = [parameter for parameter in expected if parameter.name != "name"]
    if [(each.name, each.kind) for each in own] != [(each.name, each.kind) for each in expected]:
        raise ValueError(
            f"Dispatch function's signature ({_names(own)}) does not match API's signature ({_names(expected)}): the "
            "names and their order must be the same"
        )
    return takes_name


class _Arguments:
    """The arguments of a call of a public function, without `name`."""

    def __init__(self, of_api: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.args, self.kwargs, self.name = args, kwargs, None
        if "name" not in of_api.parameters:
            return
        at = list(of_api.parameters).index("name")
        if at < len(args):
            self.args, self.name = (*args[:at], *args[at + 1 :]), args[at]
        else:
            self.kwargs = {key: value for key, value in kwargs.items() if key != "name"}
            self.name = kwargs.get("name")

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self.name is None:
            return function(*args, **kwargs)
        with name_scope(self.name):
            return function(*args, **kwargs)


def _without_name(of_api: inspect.Signature, function: Callable[..., Any]) -> Callable[..., Any]:
    """A target that doesn't take `name`, called in a scope of this name."""

    def call(*args: Any, **kwargs: Any) -> Any:
        given = _Arguments(of_api, args, kwargs)
        return given.call(function, *given.args, **given.kwargs)

    return call


# --- functions ------------------------------------------------------------------------------------------------------


class Dispatcher:
    """What a public function does for which arguments.

    revision    how often that has changed
    """

    def __init__(self, api: types.FunctionType) -> None:
        self.name = api.__qualname__
        self.signature = signature_of(api)
        self.targets: tuple[Target, ...] = ()  # replaced, never changed: a call in another thread may go over it
        self.revision = 0
        self._layers: dict[types.FunctionType, _Layer] = {}

    def add(self, api: types.FunctionType, target: Target) -> None:
        """Registers a target. api: the function as the program knows it, which may wrap the one that does the work."""
        self.targets = (*self.targets, target)
        _used.add(self)
        self.revision += 1
        for function in _wrapped(api):
            if function not in self._layers:
                layer = self._layers[function] = _Layer(self, function)
                layer.install()

    def remove(self, target: Target) -> None:
        self.targets = tuple([each for each in self.targets if each is not target])
        self.revision += 1
        if not self.targets:
            _used.discard(self)
            for layer in self._layers.values():
                layer.uninstall()
            self._layers.clear()

    def chosen(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Target | None:
        """The target for these arguments. Raises ValueError if there are several."""
        found = None
        for target in self.targets:
            if any(signature.matches(args, kwargs) for signature in target.signatures):
                if found is not None:
                    raise ValueError(
                        f"Multiple dispatch targets that were registered with dispatch_for_api ({found.function!r} and "
                        f"{target.function!r}) match the arguments to {self.name}: unregister one, or narrow its types"
                    )
                found = target
        return found


class _Layer:
    """A function whose code is replaced while targets are registered for it."""

    leaving = staticmethod(leaving)

    def __init__(self, dispatcher: Dispatcher, function: types.FunctionType) -> None:
        self.dispatcher = dispatcher
        self._function = function
        self._code, self._keywords = function.__code__, function.__kwdefaults__
        self._original = types.FunctionType(
            function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
        )
        self._original.__kwdefaults__ = function.__kwdefaults__
        self._is_marked = is_marked(function)
        self._has_signature = "__signature__" in vars(function)

    def install(self) -> None:
        # A call in another thread may be running: the old code doesn't look at the new default, the new code needs it.
        if not self._has_signature:
            self._function.__signature__ = signature_as_written(self._function)  # type: ignore[attr-defined]
        self._function.__kwdefaults__ = {**(self._keywords or {}), _KEY: self}
        self._function.__code__ = _handing_over(len(self._code.co_freevars))
        if self._is_marked:
            mark(self._function)

    def uninstall(self) -> None:
        self._function.__code__ = self._code
        self._function.__kwdefaults__ = self._keywords
        if not self._has_signature:
            del self._function.__signature__  # type: ignore[attr-defined]
        if self._is_marked:
            mark(self._function)

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for value in (*args, *kwargs.values()) if kwargs else args:
            if value.__class__ not in _PLAIN:
                target = self.dispatcher.chosen(args, kwargs)
                if target is None:
                    break
                result = target.call(*args, **kwargs)
                if result is NotImplemented:
                    break
                return result
        return self._original(*args, **kwargs)


@functools.cache
def _handing_over(free: int) -> types.CodeType:
    """Code that hands its arguments to a layer, for functions with so many free variables: Python wants that many."""
    names = "".join([f"free_{index}, " for index in range(free)])
    text = (
        f"def make({names}):\n"
        f"    def hand_over(*args, {_KEY}, **kwargs):\n"
        "        try:\n"
        f"            return {_KEY}(args, kwargs)\n"
        f"        except {_KEY}.leaving():\n"
        "            raise\n"
        f"        ({names})\n"
        "    return hand_over\n"
    )
    space: dict[str, Any] = {}
    exec(compile(text, __file__, "exec"), space)
    code: types.CodeType = space["make"](*range(free)).__code__
    return code


def _wrapped(api: types.FunctionType) -> list[types.FunctionType]:
    """A public function and those of this project that it wraps, which have its parameters."""
    found: list[types.FunctionType] = []
    function: Any = api
    while type(function) is types.FunctionType and is_own_file(function.__code__.co_filename):
        found.append(function)
        function = getattr(function, "__wrapped__", None)
    return found


# By the function that does the work: several public functions may wrap it.
_dispatchers: dict[types.FunctionType, Dispatcher] = {}
_used: set[Dispatcher] = set()  # those with targets


def _dispatcher(api: Any) -> Dispatcher:
    """Raises ValueError for what can't dispatch."""
    layers = _wrapped(api)
    if layers and layers[-1] not in _dispatchers:
        kinds = {parameter.kind for parameter in signature_of(api).parameters.values()}
        if not kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}:
            _dispatchers[layers[-1]] = Dispatcher(api)
    if not layers or layers[-1] not in _dispatchers:
        raise ValueError(f"{api!r} does not support dispatch: pass a public function with parameters of fixed names")
    return _dispatchers[layers[-1]]


def dispatcher_of(function: Any) -> Dispatcher | None:
    """The dispatcher of a function that something is registered for."""
    layer = (getattr(function, "__kwdefaults__", None) or {}).get(_KEY)
    return None if layer is None else layer.dispatcher


def is_anything_registered() -> bool:
    """Whether any public function dispatches."""
    return bool(_used)


# --- the decorators -------------------------------------------------------------------------------------------------


def dispatch_for_api(api: Callable[..., Any], *signatures: Mapping[str | int, Any]) -> Callable[[Function], Function]:
    """Decorator that has a public function call the decorated one for values of certain types.

    api: the public function. signatures: dictionaries from its parameters, by name or position, to types; the
    decorated function is called where all parameters of one signature have these types, and at least one of them is, or
    is a list with, a composite: an extension type, a ragged or sparse tensor, a `CompositeTensor`. Without signatures
    the annotations of the decorated function's parameters are the signature. A type is a class, None, `list[...]`
    (lists and tuples of such items), or a union.

    The decorated function has the parameters of `api`; it may leave out `name`, and is called in a `name_scope` then.
    Where it returns NotImplemented, `api` goes on as if it weren't there. `unregister_dispatch_for` takes it back.
    A function that is traced already is traced again when what is registered for a function in it changes.

    Raises ValueError for what isn't a public function, or takes any number of arguments; for parameters that it hasn't;
    for a decorated function with other parameters; for types that aren't supported; TypeError for signatures that
    aren't dictionaries. A call that several decorated functions are for raises ValueError.
    """
    dispatcher = _dispatcher(api)
    found = tuple([_Signature(dispatcher.signature, signature) for signature in signatures])

    def register(target: Function) -> Function:
        if not callable(target):
            raise TypeError(f"Expected dispatch_target to be callable; got {target!r}")
        of_api = dispatcher.signature
        call = (
            target
            if _check_parameters(of_api, target) or "name" not in of_api.parameters
            else _without_name(of_api, target)
        )
        checks = found or (_Signature(of_api, _annotated(target)),)
        dispatcher.add(typing.cast(types.FunctionType, api), Target(target, 0, call, checks))
        return target

    return register


class _Family:
    """The elementwise functions with so many operands, and the handlers for all of them."""

    def __init__(self, what: str, operands: int) -> None:
        self._what, self._operands = what, operands
        self._apis: list[types.FunctionType] = []
        self._handlers: dict[tuple[Any, ...], Callable[..., Any]] = {}
        self._targets: dict[tuple[Any, ...], list[tuple[Dispatcher, Target]]] = {}

    def add_api(self, api: types.FunctionType) -> None:
        self._apis.append(api)
        for kinds, handler in self._handlers.items():
            self._add(api, kinds, handler)

    def add_handler(self, kinds: tuple[Any, ...], handler: Function) -> Function:
        if kinds in self._handlers:
            shown = ", ".join(map(repr, kinds))
            raise ValueError(
                f"A {self._what} dispatch handler ({self._handlers[kinds]!r}) has already been registered for {shown}: "
                "unregister it first, with unregister_dispatch_for"
            )
        for kind in kinds:
            _checker(kind)
        self._handlers[kinds] = handler
        for api in self._apis:
            self._add(api, kinds, handler)
        return handler

    def _add(self, api: types.FunctionType, kinds: tuple[Any, ...], handler: Any) -> None:
        dispatcher = _dispatcher(api)
        added = self._targets.setdefault(kinds, [])
        if any(dispatcher is each for each, _ in added):
            return  # another name of the same function
        call = _handled(dispatcher.signature, api, self._operands, handler)
        target = Target(handler, 1, call, (_Signature(dispatcher.signature, dict(enumerate(kinds))),))
        dispatcher.add(api, target)
        added.append((dispatcher, target))

    def remove(self, handler: Any) -> bool:
        """Whether it was there."""
        found = [kinds for kinds, each in self._handlers.items() if each is handler]
        for kinds in found:
            del self._handlers[kinds]
            for dispatcher, target in self._targets.pop(kinds, []):
                dispatcher.remove(target)
        return bool(found)


def _handled(of_api: inspect.Signature, api: types.FunctionType, operands: int, handler: Any) -> Callable[..., Any]:
    """What calls a handler: with the function, without the arguments that aren't operands, and with the operands."""
    names = list(of_api.parameters)[:operands]

    def call(*args: Any, **kwargs: Any) -> Any:
        given = _Arguments(of_api, args, kwargs)
        rest, more = given.args[operands:], dict(given.kwargs)
        values = [*given.args[:operands], *[more.pop(name) for name in names[len(given.args) :]]]
        function: Callable[..., Any] = api
        if rest or more:

            def function(*operands: Any) -> Any:
                return api(*operands, *rest, **more)

        return given.call(handler, function, *values)

    return call


_FAMILIES = {
    "unary": _Family("unary elementwise", 1),
    "binary": _Family("binary elementwise", 2),
    "assert": _Family("binary elementwise assert", 2),
}


def register_elementwise_api(family: str, api: types.FunctionType) -> None:
    """Has handlers be called for a public function. family: unary, binary or assert."""
    _FAMILIES[family].add_api(api)


def dispatch_for_unary_elementwise_apis(x_type: Any) -> Callable[[Function], Function]:
    """Decorator that has all elementwise functions of one operand call the decorated one for values of a type.

    x_type: the type of the first argument, as for `dispatch_for_api`. The decorated function gets the elementwise
    function and this argument: `handler(function, x)`. Other arguments, such as the dtype of `cast`, are bound: what it
    gets takes one argument.
    Raises ValueError for a type that has a handler, and for types that aren't supported.
    """
    return functools.partial(_FAMILIES["unary"].add_handler, (x_type,))


def dispatch_for_binary_elementwise_apis(x_type: Any, y_type: Any) -> Callable[[Function], Function]:
    """Decorator that has all elementwise functions of two operands call the decorated one for values of two types.

    x_type, y_type: the types of the first two arguments, as for `dispatch_for_api`. The decorated function gets the
    elementwise function and these arguments: `handler(function, x, y)`. Other arguments are bound.
    Raises ValueError for types that have a handler, and for types that aren't supported.
    """
    return functools.partial(_FAMILIES["binary"].add_handler, (x_type, y_type))


def dispatch_for_binary_elementwise_assert_apis(x_type: Any, y_type: Any) -> Callable[[Function], Function]:
    """Decorator that has all checks of two operands, such as `debugging.assert_less`, call the decorated function for
    values of two types.

    x_type, y_type: the types of the first two arguments, as for `dispatch_for_api`. The decorated function gets the
    check and these arguments: `handler(function, x, y)`. Other arguments, such as the message, are bound.
    Raises ValueError for types that have a handler, and for types that aren't supported.
    """
    return functools.partial(_FAMILIES["assert"].add_handler, (x_type, y_type))


def unregister_dispatch_for(dispatch_target: Callable[..., Any]) -> None:
    """Takes back what was registered with one of the decorators `dispatch_for_...`, for all functions.

    Raises ValueError for a function that wasn't registered.
    """
    removed = [family.remove(dispatch_target) for family in _FAMILIES.values()]
    found = [
        (dispatcher, target)
        for dispatcher in _dispatchers.values()
        for target in dispatcher.targets
        if target.function is dispatch_target
    ]
    for dispatcher, target in found:
        dispatcher.remove(target)
    if not found and not any(removed):
        raise ValueError(
            f"Function {dispatch_target!r} was not registered using a `@dispatch_for_*` decorator: pass the function "
            "that was decorated"
        )
