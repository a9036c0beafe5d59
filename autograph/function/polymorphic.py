"""`Function`: what `@ag.function` makes of a Python function. It keeps a trace per signature and runs the right one."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import threading
import time
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

from autograph.convert.api import converted, refuse_unknown_syntax
from autograph.convert.features import Feature, checked
from autograph.errors import UnsupportedError
from autograph.function.cache import TraceCache
from autograph.function.concrete import ConcreteFunction
from autograph.function.fast_calls import FastCalls
from autograph.function.guards import broken, guards_of, settled
from autograph.function.lifting import trace_once_or_twice
from autograph.function.retracing import Reasons, explain, tell, warn_when_frequent
from autograph.function.signature import (
    Arguments,
    WeakArgument,
    check_input_signature,
    checked_signature,
    key_of_call,
    relax,
)
from autograph.function.taking_in import ChangesState, Reached, Taken, refused_trace, take_in
from autograph.function.trace import trace
from autograph.operators.arrays import NeedsStagedArrays
from autograph.operators.builtins import STAGES_PRINTS
from autograph.operators.calls import CONVERTING, is_checker, is_library
from autograph.operators.recursion import watched
from autograph.operators.unbound import name_assignment
from autograph.operators.unconverted import explain_type_error
from runtime import nest, profiling
from runtime.autodiff.budget import as_budget
from runtime.context import block_inline_caches, ctx, placing
from runtime.garbage_collection import promote_imports, raised_threshold
from runtime.recursion import room
from runtime.signatures import WrappedAnnotations, signature_as_written
from runtime.tensor import DeviceTensor, EagerTensor
from runtime.tracebacks import drop_own_frames, leaving, shows_no_frames

_run_eagerly = False


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Whether every `ag.function` runs as the plain Python function that it decorates, for debugging."""
    global _run_eagerly
    block_inline_caches(int(bool(run_eagerly)) - int(_run_eagerly))
    _run_eagerly = bool(run_eagerly)


def functions_run_eagerly() -> bool:
    """Whether `run_functions_eagerly` is on."""
    return _run_eagerly


P = ParamSpec("P")
Result = TypeVar("Result")
Instance = TypeVar("Instance")
OfMethod = ParamSpec("OfMethod")


def _key_here(key: Any) -> Any:
    """The key of a trace made under the checks and for the replica of this thread."""
    if ctx.numerics is not None:
        key = ("checked", key)
    return key if ctx.variant is None else (ctx.variant, key)


class Function(Generic[P, Result]):
    """A traced, polymorphic function.

    >>> @function
    ... def double(x):
    ...     return x + x
    >>> double(constant(2.0)).numpy(), double(constant(3)).numpy()
    (4.0, 6)
    """

    __slots__ = ("__dict__", "__weakref__", "_answer")
    _answer: Any  # see `_ShortFunction`
    __annotations__ = WrappedAnnotations()

    def __init__(
        self,
        python_function: Callable[P, Result],
        input_signature: Sequence[Any] | None = None,
        autograph: bool = True,
        jit_compile: bool | None = None,
        name: str | None = None,
        reduce_retracing: bool = False,
        gradient_memory: int | None = None,
        features: frozenset[Feature] = frozenset(),
    ) -> None:
        if autograph:
            refuse_unknown_syntax(python_function)
        functools.update_wrapper(self, python_function)
        self._python_function = python_function
        self._name: str = name or getattr(python_function, "__name__", None) or type(python_function).__name__
        self._autograph = autograph
        self._jit_compile = jit_compile
        self._reduce_retracing = reduce_retracing
        self._gradient_memory = gradient_memory
        self._memory = as_budget(gradient_memory)
        self._features = features
        self._latest: ConcreteFunction[P, Result] | None = None
        self._arguments = Arguments(python_function)
        self._plain_count = self._arguments.plain_count
        self.input_signature = checked_signature(input_signature)
        self._arguments.check_count(self.input_signature)
        self._cache = TraceCache()
        self._traces = self._cache.current
        self._reasons = Reasons()
        self._trace_count = 0
        self._stages_arrays = False  # whether its traces have arrays of the program: see operators/arrays.py
        self._lock = threading.RLock()
        self._tracing: set[Any] = set()
        self.taken_in = Taken.NOWHERE  # as its traces have changed Python's state
        self.recurs = False  # whether functions that it calls call it: traces take it in, rather than its own trace
        self.may_change_arguments = False  # what it is called with is made for the call
        self._bound: Any = None
        self._fast_calls = FastCalls()
        self._owner = weakref.ref(self)

    def _trackable_children(self, save_type: str = "checkpoint", **options: Any) -> dict[str, Any]:
        """The traces, for what saves models; checkpoints have none."""
        traces = () if save_type == "checkpoint" else self._cache.traces()
        return {f"trace_{number}": concrete for number, concrete in enumerate(traces)}

    def _decorate(self, decorator: Callable[[Any], Any]) -> None:
        """Puts what a decorator makes of the Python function in its place; libraries wrap methods so.

        Raises ValueError once the function has been traced.
        """
        if self._trace_count:
            raise ValueError(
                "Functions cannot be decorated after they have been traced: decorate the Python function instead"
            )
        self._python_function = decorator(self._python_function)
        self._arguments = Arguments(self._python_function)
        self._plain_count = self._arguments.plain_count

    @property
    def python_function(self) -> Callable[P, Result]:
        """The function that was decorated."""
        return self._python_function

    @property
    def converts(self) -> bool:
        """Whether the Python function is converted (`autograph=True`)."""
        return self._autograph

    def around(self, function: Callable[..., Any]) -> Function[..., Any]:
        """A function with the same name and options that runs another Python function, as it stands."""
        return Function(
            function, None, False, self._jit_compile, self._name, self._reduce_retracing, self._gradient_memory
        )  # fmt: skip

    # --- calling -------------------------------------------------------------------------------------------------

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Result:
        if _run_eagerly:
            return self._python_function(*args, **kwargs)
        given, named = args, kwargs
        opened = self._opened_span() if profiling.recording else None
        try:
            if kwargs or len(args) != self._plain_count:
                args, kwargs = self._arguments.bind(args, kwargs)  # type: ignore[assignment]
            if self.input_signature is not None:
                args = check_input_signature(args, self.input_signature, self._arguments)  # type: ignore[assignment]
            tensors: list[Any] = []
            if len(args) == 1 and args[0].__class__ is EagerTensor and not kwargs:
                tensors.append(args[0])
                key: Any = (args[0].dtype.name, args[0]._array.shape)  # what `key_of_call` gives
            elif len(args) == 1 and args[0].__class__ is DeviceTensor and not kwargs:
                tensors.append(args[0])
                key = (args[0].dtype.name, args[0].held.shape)
            else:
                key = key_of_call(args, kwargs, tensors)
            if ctx.numerics is not None or ctx.variant is not None:
                key = _key_here(key)
            if ctx.builder is not None:
                if (self.recurs or key in self._tracing) and self._autograph:
                    return self._traceable()(*args, **kwargs)
                if self.taken_in.holds_here():
                    return self._take_in(args, kwargs)
            concrete = self._traces.get(key)
            if concrete is None or (concrete.guards and broken(concrete.guards) is not None):
                try:
                    concrete = self._trace(key, args, kwargs)
                except ChangesState:
                    return self._take_in(args, kwargs)
            if opened is not None:
                profiling.note_graph(concrete.graph)
            if ctx.builder is None and not ctx.recorders:
                place = placing[0].place_of(tensors) if placing else None
                if place is not None:
                    return concrete.call_on(place, tensors)
                if concrete.fast_calls_left:
                    self._shorten(concrete, given, named, tensors)
                if concrete.direct is not None:
                    concrete.used = True
                    return concrete.direct(tensors)
            return concrete.call_flat(tensors)
        except leaving():  # matches nothing: the error goes on, its traceback cleaned
            raise
        finally:
            if opened is not None:
                opened.__exit__()

    def _take_in(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result of a call in a trace, of which the function becomes a part."""
        with self._options():
            return take_in(self._traceable(), self._name, args, kwargs)

    def _opened_span(self) -> Any:
        return profiling.span("call", f"{'call' if ctx.builder is None else 'inline'} {self._name}").__enter__()

    def _shorten(self, concrete: ConcreteFunction, args: tuple, named: dict[str, Any], tensors: list[Any]) -> None:
        """Has later calls like this one answered by machine code, as soon as that is there."""
        from runtime.engine.fastcall import (
            inline_cache,  # loads the code generator, which is there when something is settled
        )

        if (
            ctx.numerics is not None
            or ctx.variant is not None
            or not inline_cache.ready()
            or not self._lock.acquire(blocking=False)
        ):
            return
        try:
            owner = self._owner()
            if concrete.fast_calls_left and owner is not None:
                concrete.fast_calls_left -= 1
                twin = object.__new__(Function)
                twin.__dict__ = self.__dict__
                answer = self._fast_calls.add(concrete, args, named, tensors, twin.__call__)
                if answer is not None:
                    owner._answer = answer
                    owner.__class__ = _ShortFunction
        finally:
            self._lock.release()

    def _trace(self, key: Any, args: tuple, kwargs: dict[str, Any]) -> ConcreteFunction:
        if self.input_signature is not None:
            key, args = self._generalise(args, kwargs)
        promote_imports()
        with self._lock, raised_threshold():
            concrete = self._cache.revive(key) or self._covering(args, kwargs)
            if concrete is None:
                concrete = self._trace_new(key, args, kwargs)
            # A trace that captured tensors of the trace around it serves only there.
            if not concrete.symbolic_captures and self._traces.get(key) is not concrete:
                self._cache.add(key, concrete)
        return concrete

    def _trace_new(self, key: Any, args: tuple, kwargs: dict[str, Any]) -> ConcreteFunction:
        if key in self._tracing:
            raise RecursionError(
                f"'{self._name}' calls itself with arguments of the same signature while it is being traced, and it "
                "isn't converted (autograph=False), so tracing would never end. Let it be converted, write it as a "
                "loop, or pass the depth as a Python number that changes from call to call."
            )
        self._note_reason(key, args, kwargs)
        with room():
            guards = guards_of(self._python_function, args, lambda f: not (is_library(f) or is_checker(f)))
        args, kwargs = self._relaxed(args, kwargs)
        reached = Reached(self._python_function, args, kwargs)
        try:
            with reached:
                concrete = self._run_trace(key, args, kwargs)
        finally:
            self.taken_in = max(self.taken_in, reached.taken)
        concrete.guards = settled(guards)
        concrete.python_function = self._python_function
        concrete.retrace = weakref.WeakMethod(self._trace_again)
        concrete.here = _key_here(None)
        concrete.of_replica = ctx.variant is not None
        self._trace_count += 1
        self._latest = concrete
        return concrete

    def _trace_again(self, concrete: ConcreteFunction) -> ConcreteFunction:
        """A second trace for the same arguments, to look at: nothing else uses it."""
        args, kwargs = concrete.structured_input_signature
        if any(isinstance(leaf, WeakArgument) for leaf in nest.flatten((args, kwargs))):
            raise ReferenceError(f"an object that '{self._name}' was traced for is gone, so it can't be traced again")
        with self._lock, raised_threshold():
            return self._run_trace(key_of_call(args, kwargs, []), args, kwargs)

    def _with_arrays(self, attempt: Callable[..., ConcreteFunction | None]) -> ConcreteFunction | None:
        """A trace with arrays of NumPy's, or of the program where the function turns out to need these."""
        if not self._stages_arrays:
            try:
                return attempt()
            except NeedsStagedArrays:
                self._stages_arrays = True
        return attempt(stages_arrays=True)

    def _run_trace(self, key: Any, args: tuple, kwargs: dict[str, Any]) -> ConcreteFunction:
        if inspect.isgeneratorfunction(self._python_function):
            raise UnsupportedError(
                f"'{self._name}' is a generator function, and generators are not supported as traced functions",
                cause="a traced function returns tensors; a generator yields its values to Python, one after another",
                fix="trace the functions that the generator calls, or return the values stacked",
            )

        def run(is_discarded: Callable[[], bool]) -> ConcreteFunction | None:
            function = self._traceable()
            start = time.perf_counter()
            with room(), profiling.span("trace", f"trace {self._name}"):
                attempt = functools.partial(
                    trace, function, self._name, args, kwargs, self._arguments, self._jit_compile, self._memory,
                    self.may_change_arguments, is_discarded,
                )  # fmt: skip
                concrete = self._with_arrays(attempt)
            if concrete is not None:
                concrete.trace_seconds = time.perf_counter() - start
            return concrete

        self._tracing.add(key)
        try:
            with self._options():
                return trace_once_or_twice(run, is_first=self._trace_count == 0)
        except UnboundLocalError as error:
            name_assignment(error)
            raise
        except TypeError as error:
            explain_type_error(error)
            raise
        finally:
            self._tracing.discard(key)

    @contextlib.contextmanager
    def _options(self) -> Iterator[None]:
        """Lets the function's options hold for what is traced."""
        wanted = {Feature.BUILTIN_FUNCTIONS, Feature.ALL} & self._features
        prints = STAGES_PRINTS.set(bool(wanted) or STAGES_PRINTS.get())
        converting = CONVERTING.set(True if self._autograph else None)
        try:
            yield
        finally:
            STAGES_PRINTS.reset(prints)
            CONVERTING.reset(converting)

    def _note_reason(self, key: Any, args: tuple, kwargs: dict[str, Any]) -> None:
        if self._latest is None:
            return
        before = self._traces.get(key, self._latest)
        changed = broken(before.guards) if key in self._traces else None
        reason = explain(before, changed, args, kwargs, self._arguments)
        self._reasons.add(reason)
        tell(self, self._name, reason)
        warn_when_frequent(self._name, self._reasons)

    def _relaxed(self, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        """With `reduce_retracing`, dimensions that differ from the last trace's become unknown."""
        if not self._reduce_retracing or self._latest is None:
            return args, kwargs
        return relax(self._latest.arguments, (args, kwargs))

    def _traceable(self) -> Callable[..., Any]:
        """What is traced: the converted form of the function, which notices when it calls itself."""
        function = self._python_function
        if not self._autograph:
            return function
        if isinstance(function, _WeakMethod):
            return functools.partial(self._noticing(function.__func__), function.__self__)
        if isinstance(function, types.MethodType):
            return types.MethodType(self._noticing(function.__func__), function.__self__)
        return self._noticing(function)

    def _noticing(self, function: Any) -> Any:
        made = converted(function)
        return watched(function, made, self) if type(function) is types.FunctionType else made

    def _generalise(self, args: tuple, kwargs: dict[str, Any]) -> tuple[Any, tuple]:
        """The one trace of a function with an input signature is made for the signature, not for the arguments."""
        specs = nest.pack_sequence_as(args[: len(self.input_signature or ())], nest.flatten(self.input_signature))
        args = (*specs, *args[len(specs) :])
        key = key_of_call(args, kwargs, [])
        return _key_here(key), args

    def _covering(self, args: tuple, kwargs: dict[str, Any]) -> ConcreteFunction | None:
        """A trace made from specs (`get_concrete_function`) or with other variables that fits these arguments."""
        for concrete in self._cache.traces():
            if concrete.here == _key_here(None) and broken(concrete.guards) is None:
                serving = concrete.serving(args, kwargs)
                if serving is not None:
                    return serving
        return None

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction[P, Result]:
        """The trace for these arguments (values or `TensorSpec`s), traced now if need be.

        Without arguments it takes those of the input signature, if there is one.
        """
        if not args and not kwargs and self.input_signature is not None:
            args = self.input_signature
        try:
            args, kwargs = self._arguments.bind(args, kwargs)
            if self.input_signature is not None:
                args = check_input_signature(args, self.input_signature, self._arguments)
            key = key_of_call(args, kwargs, [])
            key = _key_here(key)
            found = self._traces.get(key)
            return found if found is not None and broken(found.guards) is None else self._trace(key, args, kwargs)
        except ChangesState:
            raise refused_trace(self._name) from None
        except drop_own_frames():
            raise

    # --- methods -------------------------------------------------------------------------------------------------

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Function[P, Result]: ...
    @overload
    def __get__(
        self: Function[Concatenate[Instance, OfMethod], Result], instance: Instance, owner: Any = None
    ) -> Function[OfMethod, Result]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """A function in a class is a method: each instance has its own traces, which go when the instance goes."""
        if instance is None:
            return self
        if self._bound is None:
            self._bound = _BoundFunctions()
        return self._bound.get(instance, self._bind)

    def _bind(self, instance: Any, method: Any = None) -> Function:
        method = method or _weak_method(self._python_function, instance)
        return Function(
            method,
            self.input_signature,
            self._autograph,
            self._jit_compile,
            self._name,
            self._reduce_retracing,
            self._gradient_memory,
            self._features,
        )

    def keeping(self, instance: Any) -> Function:
        """A method that keeps its instance alive, and has traces of its own."""
        return self._bind(instance, types.MethodType(self._python_function, instance))

    # --- looking at it -------------------------------------------------------------------------------------------

    def experimental_get_tracing_count(self) -> int:
        """How often the function has been traced."""
        return self._trace_count

    def explain_retraces(self) -> str:
        """The reasons for which the function was traced more than once: for each trace after the first, the argument,
        global, closure variable or attribute that had changed, and how."""
        if not self._trace_count:
            return f"'{self._name}' has not been traced yet."
        lines = [f"'{self._name}' has been traced {self._trace_count} times."]
        return "\n".join([*lines, *self._reasons.lines()])

    def explain(self, *args: Any, html: str | os.PathLike | None = None, measure: bool = False, **kwargs: Any) -> str:
        """A report on how the program for these arguments (values or `TensorSpec`s) runs.

        It lists the loops that were staged or unrolled, the operations that are fused into each kernel, those that stay
        on the interpreter and the reasons, the bytes and operations of each kernel and the least time that this machine
        needs for them, the tier, and compile times. The last lines say how to see each stage
        (`ConcreteFunction.as_text`).

        html: a file for the report as a page, with the source. measure: whether to run the program a few times, if it
        has no effects but checks and random numbers (which later calls draw all the same), and show the best time, what
        the interpreter's loops took, and what native code called Python for.
        """
        from autograph.function.explaining import explain_call  # loads the code generator

        return explain_call(self, args, kwargs, html, measure)

    def pretty_printed_concrete_signatures(self) -> str:
        """The signatures traced so far, one per paragraph."""
        return "\n\n".join(c.pretty_printed_signature() for c in self._cache.traces())

    def _list_all_concrete_functions(self) -> list[ConcreteFunction]:
        """The traces, under the name by which Keras asks for them."""
        return self._cache.traces()

    def __reduce_ex__(self, protocol: Any) -> str | tuple:
        from autograph.function.pickling import reduced_function  # loads what reads and writes graphs

        return reduced_function(self, Function)

    def __repr__(self) -> str:
        return f"<ag.function {self._name} at 0x{id(self):X}>"


class _ShortFunction(Function):
    """A function after machine code has come to answer its calls, or to have them answered by `Function.__call__`.

    That is the function's slot `_answer`: where Python looks for `__call__` it finds the slot's descriptor. The machine
    code keeps, for other calls, a twin that shares the function's attributes, not the function itself, which would
    then be its own owner and wait for the garbage collector.
    """

    __slots__ = ()
    __call__ = Function._answer


_ShortFunction.__name__, _ShortFunction.__qualname__ = Function.__name__, Function.__qualname__


class _BoundFunctions:
    """Functions by instance, without keeping the instances alive."""

    def __init__(self) -> None:
        self._by_id: dict[int, tuple[Any, Function]] = {}

    def get(self, instance: Any, bind: Callable[[Any], Function]) -> Function:
        key = id(instance)
        entry = self._by_id.get(key)
        if entry is not None:
            return entry[1]
        by_id = self._by_id
        try:
            reference: Any = weakref.ref(instance, lambda _: by_id.pop(key, None))
        except TypeError:
            reference = instance
        function = bind(instance)
        return by_id.setdefault(key, (reference, function))[1]


def _weak_method(function: Callable[..., Any], instance: Any) -> Callable[..., Any]:
    try:
        return _WeakMethod(function, weakref.ref(instance))
    except TypeError:
        return types.MethodType(function, instance)


class _WeakMethod:
    """A bound method that doesn't keep its instance alive."""

    __annotations__ = WrappedAnnotations()

    def __init__(self, function: Callable[..., Any], reference: Any) -> None:
        functools.update_wrapper(self, function)
        self.__func__ = function
        self._reference = reference

    @property
    def __signature__(self) -> inspect.Signature:
        written = signature_as_written(self.__func__)
        return written.replace(parameters=list(written.parameters.values())[1:])

    @property
    def __self__(self) -> Any:
        instance = self._reference()
        if instance is None:
            raise ReferenceError(
                f"'{self.__func__.__qualname__}' is called, but the object whose method it is has been deleted: "
                "a method made by ag.function doesn't keep its object alive. Give the object a name before the call."
            )
        return instance

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__func__(self.__self__, *args, **kwargs)


class _Decorator(Protocol):
    """What `function(option=...)` gives: it makes a Python function a traced one of the same signature."""

    def __call__(self, function: Callable[P, Result], /) -> Function[P, Result]: ...


@overload
def function(
    func: Callable[P, Result],
    input_signature: Sequence[Any] | None = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    name: str | None = None,
    gradient_memory: int | None = None,
    **experimental: Any,
) -> Function[P, Result]: ...
@overload
def function(
    func: None = None,
    input_signature: Sequence[Any] | None = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    name: str | None = None,
    gradient_memory: int | None = None,
    **experimental: Any,
) -> _Decorator: ...
def function(
    func: Callable[..., Any] | None = None,
    input_signature: Sequence[Any] | None = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    name: str | None = None,
    gradient_memory: int | None = None,
    **experimental: Any,
) -> Any:
    """Compiles a Python function; use it as a decorator, with or without arguments.

    Args:
        func: the function.
        input_signature: specs of all arguments. The function then has one trace, and other arguments raise an error.
        autograph: whether Python control flow on tensors is converted.
        jit_compile: True compiles to native code before the first run; False always interprets; None (default)
            interprets the first calls while native code is being compiled.
        reduce_retracing: whether a dimension that has differed between calls becomes unknown, so that other sizes need
            no further trace. (`experimental_relax_shapes` is its old name.)
        experimental_autograph_options: with `Feature.BUILTIN_FUNCTIONS`, `print` of tensors prints at run time.
        gradient_memory: how many bytes the gradient of each loop in the function may keep, unless the loop sets its own
            budget (`set_loop_options`). If the values don't fit, parts of the loop run again, from checkpoints.

    A Python number, string or boolean that the function reads from a global, a closure variable or an attribute is part
    of the trace. If it changes, the next call traces again, and `explain_retraces` says why.

    Raises TypeError for an unknown option.
    """
    relax_shapes = reduce_retracing or bool(experimental.pop("experimental_relax_shapes", False))
    compiles = experimental.pop("experimental_compile", None)  # TensorFlow's old name
    jit_compile = compiles if jit_compile is None else jit_compile
    features = checked(experimental.pop("experimental_autograph_options", None))
    for known in ("experimental_implements", "experimental_attributes"):
        experimental.pop(known, None)
    if experimental:
        raise TypeError(f"ag.function() got unexpected options: {', '.join(sorted(experimental))}")

    if jit_compile not in (None, True, False):
        raise TypeError(f"jit_compile must be True, False or None, not {jit_compile!r}")

    @shows_no_frames
    def decorate(function: Callable[..., Any]) -> Function:
        if not callable(function):
            raise TypeError(f"{function!r} is not a callable object")
        return Function(
            function, input_signature, autograph, jit_compile, name, relax_shapes, gradient_memory, features
        )

    return decorate if func is None else decorate(func)


def traced(func: Callable[..., Any]) -> Function:
    """An `ag.function`: this one, or one of this Python function. Raises TypeError for what can't be called."""
    return func if isinstance(func, Function) else function(func)


def python_function_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """The Python function of an `ag.function`; any other one itself."""
    return function.python_function if isinstance(function, Function) else function
