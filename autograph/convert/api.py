"""Conversion as a whole: a function in, its converted form or its converted source out.

    converted(f)(x)        runs f with its control flow staged on tensors
    to_code(f)             the converted source as text
    do_not_convert(f)      f, never converted when converted code calls it

The converted code of a function is kept as long as the function's own code object lives, so a closure that is made anew
a million times is converted once.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import gc
from collections.abc import Callable, Iterator
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

from autograph import operators
from autograph.convert import kept, verbosity
from autograph.convert.boundary import bound
from autograph.convert.context import OPERATORS
from autograph.convert.features import checked
from autograph.convert.pipeline import convert_tree
from autograph.errors import ConversionError, Location, UnconvertedWarning
from autograph.operators.calls import CONVERTING, converted_form, install_converter, is_library, maker_of
from autograph.operators.iterators import unwatched
from autograph.operators.libraries import TEXTS, package_of
from autograph.operators.property_names import COMPARISONS, own_names, property_names
from autograph.operators.state import read_cell
from autograph.syntax.compiled import class_of
from autograph.syntax.load import adopt, is_loaded_code, load
from autograph.syntax.parse import UnknownSyntaxError, unknown_nodes, with_deep_stack
from autograph.syntax.source import FunctionSource, SourceUnavailable, find
from autograph.syntax.unparse import unparse
from runtime.bytecode import can_branch
from runtime.profiling import span
from runtime.signatures import share_annotations
from runtime.tracebacks import warn

_operators_cell = CellType(operators)


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Puts garbage collection off: trees are no garbage while they grow, and looking through them takes ever longer."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def converted(function: Any) -> Any:
    """The converted form of a function, method, callable object, partial or class.

    A function that can't be converted because it has no source (built in, made by ``exec``), or must not be (library
    code, `do_not_convert`), or needn't be (an op), is given back as it is. Raises ConversionError when the conversion
    fails.
    """
    if type(function) is FunctionType:
        if is_loaded_code(function.__code__) or function.__code__ is _UNCONVERTED or _stages_itself(function):
            return function
        maker = maker_of(function, even_library=True)
        return function if maker is None else _like(function, maker(function))
    if type(function) is MethodType:
        inner = converted(function.__func__)
        return function if inner is function.__func__ else MethodType(inner, function.__self__)
    return converted_form(function)


def _stages_itself(function: FunctionType) -> bool:
    """Whether a function is one of `runtime`, which knows nothing of conversion."""
    return str(function.__globals__.get("__name__")).startswith("runtime.")


@_uncollected()
def to_code(
    entity: Any,
    recursive: bool = True,
    experimental_optional_features: Any = None,
    after_pass: Callable[[str, str], None] | None = None,
) -> str:
    """The converted source of a function, as text.

    after_pass: called with the name of each pass and the text after it. The other arguments are those of `to_graph`.
    Raises ConversionError if there is no source.
    """
    checked(experimental_optional_features)
    function = _python_function(entity)

    def report(name: str, tree: Any) -> None:
        assert after_pass is not None
        after_pass(name, unparse(tree))

    node = _convert(_source(function), _facts(function), None if after_pass is None else report)
    return unparse(node).strip("\n") + "\n"


def to_graph(entity: Any, recursive: bool = True, experimental_optional_features: Any = None) -> Any:
    """The converted form of a function; raises ConversionError when there is no source.

    recursive, experimental_optional_features: accepted and without effect. Calls are always converted, as they are met.
    """
    checked(experimental_optional_features)
    inner = _python_function(entity)
    _source(inner)
    made = converted(inner)
    if type(entity) is functools.partial:
        return functools.partial(to_graph(entity.func), *entity.args, **entity.keywords)
    if type(entity) is MethodType:
        return MethodType(made, entity.__self__)
    is_callable_object = not isinstance(entity, FunctionType) and inner is vars(type(entity)).get("__call__")
    return MethodType(made, entity) if is_callable_object else made


def do_not_convert(func: Any = None) -> Any:
    """Marks a function that converted code calls unconverted; a decorator, with or without parentheses.

    Functions that it passes to `ag.map_fn`, `Strategy.run` and the like aren't converted either.
    """
    if func is None:
        return do_not_convert

    @functools.wraps(func)
    def call_unconverted(*args: Any, **kwargs: Any) -> Any:
        token = CONVERTING.set(False)
        try:
            with unwatched():
                return func(*args, **kwargs)
        finally:
            CONVERTING.reset(token)

    return call_unconverted


_UNCONVERTED = do_not_convert(lambda: None).__code__


Maker = Callable[[FunctionType], FunctionType]


def _maker(original: CodeType, code: CodeType) -> Maker:
    """What makes converted functions from functions that share one code object.

    Called for every call in converted code, so functions with closures of their own are apart from those without.
    """
    places = {name: index for index, name in enumerate(original.co_freevars)}
    cells = [places.get(name) for name in code.co_freevars]

    def make_with_cells(function: FunctionType) -> FunctionType:
        own: Any = function.__closure__
        closure = tuple([_operators_cell if index is None else own[index] for index in cells])
        made = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
        if function.__kwdefaults__:
            made.__kwdefaults__ = function.__kwdefaults__
        return made

    if places:
        return make_with_cells
    closure = (_operators_cell,) * len(cells)

    def make(function: FunctionType) -> FunctionType:
        made = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
        if function.__kwdefaults__:
            made.__kwdefaults__ = function.__kwdefaults__
        return made

    return make


def _warn_unconverted(function: FunctionType, error: SourceUnavailable) -> None:
    """A function without source runs as it is. Only where that can make a difference is it worth a word."""
    if can_branch(function.__code__):
        warn(
            f"'{function.__qualname__}' can't be converted and runs as plain Python: {error}. Its `if`, `while` and "
            "`for` can't depend on tensors while it is traced. Define it in a file or a notebook cell.",
            UnconvertedWarning,
        )


@_uncollected()
def _converter(function: FunctionType) -> Maker | None:
    """What `operators.calls` asks the first time that it sees a code object."""
    if is_loaded_code(function.__code__):
        return None
    facts = _facts(function)
    path = kept.place(function.__code__, facts) if kept.is_third_party(function) and not verbosity.tells() else None
    code = None if path is None else kept.read(path)
    if code is not None:
        adopt(code)
        return _maker(function.__code__, code)
    try:
        source = find(function)
    except SourceUnavailable as error:
        _warn_unconverted(function, error)
        return None
    except UnknownSyntaxError as error:
        raise _unknown_syntax(function, error) from None

    tries = iter([source])

    def work() -> tuple[Any, FunctionType]:
        fresh = next(tries, None) or find(function)  # a tree that no earlier try has changed
        node = _convert(fresh, facts)
        return node, load(function, node, {OPERATORS: operators}, fresh.class_name, bound(node))

    try:
        with span("convert", f"convert {function.__qualname__}"):
            node, made = with_deep_stack(work)
    except RecursionError as error:
        raise ConversionError(
            f"{function.__qualname__} is nested too deeply to be converted",
            location=Location(source.filename, source.node.lineno, function.__name__),
            cause="each `elif`, and each `if` with a `return` that others follow, becomes a function of the one before",
            fix="look the cases up in a dictionary, or put groups of them into functions of their own",
        ) from error
    except (SyntaxError, ValueError) as error:
        raise ConversionError(
            f"the converted form of {function.__qualname__} is not valid Python",
            location=Location(source.filename, source.node.lineno, function.__name__),
            cause=str(error),
            fix="decorate the function with @ag.autograph.experimental.do_not_convert, and please report this",
        ) from error
    verbosity.report_conversion(function, node)
    if path is not None:
        kept.write(path, made.__code__)
    return _maker(function.__code__, made.__code__)


class _Facts(NamedTuple):
    """What a conversion depends on besides the function's text: sorted names (see `convert_tree`)."""

    shadowed: list[str]
    property_names: list[str]
    suppressors: list[str]


def _facts(function: FunctionType) -> _Facts:
    names = {*function.__globals__.keys(), *function.__code__.co_freevars}
    shadowed = names.intersection(vars(builtins))
    closure = [read_cell(cell) for cell in function.__closure__ or ()]
    seen = [] if is_library(function) else [*function.__globals__.values(), *closure]
    members = property_names(seen)
    if package_of(function.__globals__.get("__name__") or "") == TEXTS:
        members |= {*COMPARISONS, "__getitem__"}  # their operands may be anything
    if class_of(function) is not None and "<locals>" in function.__qualname__:
        members |= own_names(function.__code__.co_filename, function.__code__.co_firstlineno)
    return _Facts(sorted(shadowed), sorted(members), sorted(_suppressors(function)))


def _convert(source: FunctionSource, facts: _Facts, after_pass: Callable[[str, Any], None] | None = None) -> Any:
    return convert_tree(
        source.node,
        filename=source.filename,
        class_name=source.class_name,
        shadowed=frozenset(facts.shadowed),
        property_names=frozenset(facts.property_names),
        suppressors=frozenset(facts.suppressors),
        after_pass=after_pass,
    )


def _suppressors(function: FunctionType) -> frozenset[str]:
    """What `contextlib.suppress` is called in a function, as far as that is known before it runs."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or ())
    known = {**function.__globals__, **{name: read_cell(cell) for name, cell in cells}}
    found = {name for name, value in known.items() if value is contextlib.suppress}
    return frozenset(found | {f"{name}.suppress" for name, value in known.items() if value is contextlib})


def _python_function(function: Any) -> FunctionType:
    inner = function
    while not isinstance(inner, FunctionType):
        if isinstance(inner, MethodType):
            inner = inner.__func__
        elif isinstance(inner, functools.partial):
            inner = inner.func
        elif isinstance(getattr(inner, "python_function", None), (FunctionType, MethodType)):
            inner = inner.python_function
        elif isinstance(vars(type(inner)).get("__call__"), FunctionType):
            inner = type(inner).__call__
        else:
            raise ConversionError(
                f"{function!r} can't be converted",
                cause="it is not a Python function",
                fix="give a function, lambda, method or an object with a __call__ method",
            )
    return inner


def _source(function: FunctionType) -> FunctionSource:
    try:
        return find(function)
    except SourceUnavailable as error:
        raise ConversionError(
            f"{function.__qualname__} can't be converted",
            cause=str(error),
            fix="define the function in a file, or register its text with linecache",
        ) from error
    except UnknownSyntaxError as error:
        raise _unknown_syntax(function, error) from None


def _unknown_syntax(function: FunctionType, error: UnknownSyntaxError) -> ConversionError:
    return ConversionError(
        f"{function.__qualname__} can't be converted: it is written in syntax that is too new",
        location=Location(
            str(error.filename), error.lineno or 0, function.__name__, error.offset - 1 if error.offset else None
        ),
        cause=error.msg,
        fix="install a newer version of gast, write this in another way, or move it to a function that is decorated "
        "with @ag.autograph.experimental.do_not_convert",
    )


def refuse_unknown_syntax(function: Any) -> None:
    """Raises ConversionError for a function or method in syntax that gast can't express.

    A function's text is looked at only by a Python that has such syntax.
    """
    if unknown_nodes() and isinstance(function, (FunctionType, MethodType)):
        with contextlib.suppress(SourceUnavailable):
            try:
                find(function)
            except UnknownSyntaxError as error:
                raise _unknown_syntax(_python_function(function), error) from None


def _like(original: Any, made: Any) -> FunctionType:
    """Gives a converted function the original's names and attributes."""
    functools.update_wrapper(made, original)
    del made.__wrapped__
    share_annotations(made, original)
    made.__dict__.update(original.__dict__)
    if hasattr(original, "__type_params__"):
        made.__type_params__ = original.__type_params__  # Python 3.12 and later
    return made


install_converter(_converter)
