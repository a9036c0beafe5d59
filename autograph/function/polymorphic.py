"""`Function`: what `@ag.function` makes of a Python function. It keeps a trace per signature and runs the right one."""

from __future__ import annotations

import functools
import inspect
import threading
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from autograph.convert.api import converted
from autograph.function.concrete import ConcreteFunction
from autograph.function.signature import Arguments, check_input_signature, key_of_call
from autograph.function.trace import trace
from autograph.operators.tracebacks import drop_own_frames
from runtime import nest

_run_eagerly = False


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Makes every `ag.function` run as the plain Python function it was made from (for debugging), or not."""
    global _run_eagerly
    _run_eagerly = bool(run_eagerly)


def functions_run_eagerly() -> bool:
    """Whether `run_functions_eagerly` is on."""
    return _run_eagerly


class Function:
    """A traced, polymorphic function.

    >>> @function
    ... def double(x):
    ...     return x + x
    >>> double(constant(2.0)).numpy(), double(constant(3)).numpy()
    (4.0, 6)
    """

    def __init__(
        self,
        python_function: Callable[..., Any],
        input_signature: Sequence[Any] | None = None,
        autograph: bool = True,
        jit_compile: bool | None = None,
        name: str | None = None,
    ) -> None:
        functools.update_wrapper(self, python_function)
        self._python_function = python_function
        self._name: str = name or getattr(python_function, "__name__", None) or type(python_function).__name__
        self._autograph = autograph
        self._jit_compile = jit_compile
        self._arguments = Arguments(python_function)
        self.input_signature = None if input_signature is None else tuple(input_signature)
        self._traces: dict[Any, ConcreteFunction] = {}
        self._own_traces: list[ConcreteFunction] = []
        self._lock = threading.RLock()
        self._tracing: set[Any] = set()
        self._bound: Any = None

    @property
    def python_function(self) -> Callable[..., Any]:
        """The function that was decorated."""
        return self._python_function

    # --- calling -------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _run_eagerly:
            return self._python_function(*args, **kwargs)
        try:
            args, kwargs = self._arguments.bind(args, kwargs)
            if self.input_signature is not None:
                args = check_input_signature(args, self.input_signature, self._arguments)
            tensors: list[Any] = []
            key = key_of_call(args, kwargs, tensors)
            concrete = self._traces.get(key)
            if concrete is None:
                concrete = self._trace(key, args, kwargs)
            return concrete.call_flat(tensors)
        except drop_own_frames():  # matches nothing: the error goes on, its traceback cleaned
            raise

    def _trace(self, key: Any, args: tuple, kwargs: dict[str, Any]) -> ConcreteFunction:
        if self.input_signature is not None:
            key, args = self._generalise(args, kwargs)
        with self._lock:
            concrete = self._traces.get(key)
            if concrete is None:
                concrete = self._covering(args, kwargs)
                if concrete is None:
                    concrete = self._trace_new(key, args, kwargs)
                # A trace that captured tensors of the trace around it serves only there.
                if not concrete.symbolic_captures:
                    self._traces[key] = concrete
        return concrete

    def _trace_new(self, key: Any, args: tuple, kwargs: dict[str, Any]) -> ConcreteFunction:
        if key in self._tracing:
            raise RecursionError(
                f"'{self._name}' calls itself with arguments of the same signature while it is being traced, so "
                "tracing would never end: a tensor condition can't stop Python's recursion. Write it as a loop or pass "
                "the depth as a Python number that changes from call to call."
            )
        self._tracing.add(key)
        try:
            function = self._converted() if self._autograph else self._python_function
            concrete = trace(function, self._name, args, kwargs, self._arguments, self._jit_compile)
        finally:
            self._tracing.discard(key)
        self._own_traces.append(concrete)
        return concrete

    def _converted(self) -> Callable[..., Any]:
        function = self._python_function
        if isinstance(function, _WeakMethod):
            return functools.partial(converted(function.__func__), function.__self__)
        return converted(function)

    def _generalise(self, args: tuple, kwargs: dict[str, Any]) -> tuple[Any, tuple]:
        """The one trace of a function with an input signature is made for the signature, not for the arguments."""
        specs = nest.pack_sequence_as(args[: len(self.input_signature or ())], nest.flatten(self.input_signature))
        args = (*specs, *args[len(specs) :])
        return key_of_call(args, kwargs, []), args

    def _covering(self, args: tuple, kwargs: dict[str, Any]) -> ConcreteFunction | None:
        """A trace made from specs (`get_concrete_function`) that fits these arguments."""
        for concrete in self._own_traces:
            if concrete.covers(args, kwargs):
                return concrete
        return None

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
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
            return self._traces.get(key) or self._trace(key, args, kwargs)
        except drop_own_frames():
            raise

    # --- methods -------------------------------------------------------------------------------------------------

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """A function in a class is a method: each instance has its own traces, which go when the instance goes."""
        if instance is None:
            return self
        if self._bound is None:
            self._bound = _BoundFunctions()
        return self._bound.get(instance, self._bind)

    def _bind(self, instance: Any) -> Function:
        method = _weak_method(self._python_function, instance)
        return Function(method, self.input_signature, self._autograph, self._jit_compile, self._name)

    # --- looking at it -------------------------------------------------------------------------------------------

    def experimental_get_tracing_count(self) -> int:
        """How often the function has been traced."""
        return len(self._own_traces)

    def pretty_printed_concrete_signatures(self) -> str:
        """The signatures traced so far, one a paragraph."""
        return "\n\n".join(c.pretty_printed_signature() for c in self._own_traces)

    def __repr__(self) -> str:
        return f"<ag.function {self._name} at 0x{id(self):X}>"


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

    def __init__(self, function: Callable[..., Any], reference: Any) -> None:
        functools.update_wrapper(self, function)
        self.__func__ = function
        self._reference = reference
        parameters = list(inspect.signature(function).parameters.values())
        self.__signature__ = inspect.Signature(parameters[1:])

    @property
    def __self__(self) -> Any:
        return self._reference()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__func__(self._reference(), *args, **kwargs)


def function(
    func: Callable[..., Any] | None = None,
    input_signature: Sequence[Any] | None = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    name: str | None = None,
    **experimental: Any,
) -> Any:
    """Makes a Python function a traced one; use it as a decorator, with or without arguments.

    Args:
        func: the function.
        input_signature: specs of all arguments; then there is one trace, and other arguments raise.
        autograph: whether Python control flow on tensors is converted.
        jit_compile: True compiles to native code before the first run; False always interprets; None (default)
            interprets at first while native code is being compiled.
    """
    del reduce_retracing, experimental

    def decorate(function: Callable[..., Any]) -> Function:
        return Function(function, input_signature, autograph, jit_compile, name)

    return decorate if func is None else decorate(func)
