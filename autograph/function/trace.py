"""Tracing: one run of the converted Python function on symbolic tensors, giving a `ConcreteFunction`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from autograph.errors import StagingError, StagingTypeError, user_location
from autograph.function.concrete import ConcreteFunction
from autograph.function.function_type import TracingContext, trace_type_of
from autograph.function.signature import Arguments, NumberSpec, VariableArgument, is_tensor_like, remembered
from autograph.operators.absence import returned
from autograph.operators.aliases import check_chosen
from autograph.operators.arrays import begin_arrays, check_arrays, end_arrays
from autograph.operators.ending import end_trace
from autograph.operators.frame import Frame
from autograph.operators.raising import check_refused
from autograph.operators.standard_library import makes_deques
from autograph.operators.unconverted import say_place
from autograph.standard_library.deques import Deque
from runtime import nest
from runtime.autodiff.budget import Budget
from runtime.context import ctx
from runtime.dtypes import as_dtype
from runtime.graph.builder import TOKEN, Builder
from runtime.graph.ir import Value
from runtime.graph.passes.pipeline import optimize, rewrite
from runtime.graph.unrolled import collect_notes
from runtime.ops.convert import convert_to_tensor
from runtime.ops.staged_number import staged_value
from runtime.spec import TensorSpec
from runtime.staged_list import resolved
from runtime.tensor import DeviceTensor, EagerTensor, Tensor
from runtime.types import TensorType


def trace(
    python_function: Callable[..., Any],
    name: str,
    args: tuple,
    kwargs: dict[str, Any],
    arguments: Arguments,
    jit_compile: bool | None = None,
    memory: Budget | None = None,
    may_change_arguments: bool = False,
    is_discarded: Callable[[], bool] = lambda: False,
    stages_arrays: bool = False,
) -> ConcreteFunction | None:
    """Runs `python_function` once, with a symbolic tensor for each tensor (or spec) among its arguments.

    Other arguments are passed as they are. may_change_arguments: nobody else has the containers among them.
    is_discarded: asked once the function has run; if nobody wants the trace it isn't optimised, and None is returned.
    stages_arrays: whether what NumPy makes in the function are arrays of the program (operators/arrays.py).
    Raises TypeError when the function returns something that isn't a tensor,
    a number, None or a structure of these, and whatever the function itself raises.
    """
    if ctx.builder is not None:
        _refuse_deques(name, python_function, args, kwargs)
    builder = TracingBuilder(name, ctx.builder, memory)
    begin_arrays(builder, stages_arrays)
    with builder:
        inputs: list[Value] = []
        specs: list[TensorSpec] = []
        names = _input_names(args, kwargs, arguments)

        def placeholder(value: Any) -> Any:
            name = next(names)
            own = trace_type_of(value)
            if own is not None:
                stand_in = own.placeholder_value(TracingContext()) if hasattr(own, "placeholder_value") else value
                return value if stand_in is NotImplemented else stand_in
            if hasattr(type(value), "__ag_number__"):
                number = NumberSpec(value, name)
                specs.append(number)
                inputs.append(builder.add_input(number.type, name))
                return staged_value(builder.tensor(inputs[-1]), value.default)
            if not is_tensor_like(value):
                return value
            if not isinstance(value, (Tensor, TensorSpec)):
                dtype, shape = _array_type(value)
            else:
                dtype, shape = value.dtype, value._shape
            spec_name = getattr(value, "name", None) if isinstance(value, TensorSpec) else None
            specs.append(TensorSpec(shape, dtype, spec_name or name))
            inputs.append(builder.add_input(TensorType(dtype, shape), spec_name or name))
            if type(value) in (EagerTensor, DeviceTensor):
                builder.given[inputs[-1]] = value
            return builder.tensor(inputs[-1])

        symbolic_args, symbolic_kwargs = nest.map_structure(placeholder, (args, kwargs))
        _say_shapes((args, kwargs), (symbolic_args, symbolic_kwargs))
        given = parts_of((symbolic_args, symbolic_kwargs))
        try:
            result = resolved(python_function(*symbolic_args, **symbolic_kwargs))
            end_arrays(builder)
        except BaseException as error:
            try:
                if isinstance(error, Exception) and not isinstance(error, StagingError):
                    check_refused(builder)  # which the program's `finally` or handler has hidden behind its own error
                if type(error).__module__ == "builtins":
                    check_chosen(builder)  # Python's own error (``items[0]``) may come of a name that has parted
            finally:
                if isinstance(error, Exception):
                    say_place(error)
                with contextlib.suppress(StagingError):  # the first error counts
                    end_trace(builder, python_function, symbolic_args, symbolic_kwargs)
            check_arrays(builder, error)
            raise
        check_chosen(builder)
        end_trace(builder, python_function, symbolic_args, symbolic_kwargs)
        if not may_change_arguments:
            refuse_changed_arguments(name, given)
        flat = nest.flatten(result)
        outputs = [as_output(value, name) for value in flat]
    if is_discarded():
        return None
    builder.graph.outputs = [builder.use(t) for t in outputs if t is not None]
    return _finish(builder, inputs, specs, result, outputs, (args, kwargs), jit_compile, arguments)


def _say_shapes(given: Any, stand_in: Any) -> None:
    """Tells composites that stand in for arguments the static shapes of these, where their tensors don't say them."""
    if not nest.is_nested(given):
        return
    if hasattr(type(stand_in), "__tf_flatten__") and hasattr(stand_in, "set_shape"):
        stand_in.set_shape(given.shape)
        return
    for one, other in zip(nest.children(given), nest.children(stand_in)):
        _say_shapes(one, other)


def parts_of(structure: Any) -> list[tuple[Any, list[Any]]]:
    """Each list and dict in a structure with what it holds now."""
    found: list[tuple[Any, list[Any]]] = []
    if nest.is_nested(structure):
        if isinstance(structure, list):
            found.append((structure, list(structure)))
        elif isinstance(structure, dict):
            found.append((structure, [*structure.keys(), *structure.values()]))
        for part in nest.children(structure):
            found += parts_of(part)
    return found


def _refuse_deques(name: str, *outside: Any) -> None:
    """Raises StagingTypeError if a function can reach a deque of the trace around it: what it reads of that isn't
    guarded, and what it changes would be lost."""
    if not makes_deques(ctx.builder.root):
        return
    way = next((str(each.way) for each in Frame.of(*outside).objects if type(each.owner) is Deque), None)
    if way is not None:
        raise StagingTypeError(
            f"the traced function '{name}' uses a deque that the traced function around it has made",
            location=user_location(),
            cause="it is traced by itself, and would take the deque for what that is now",
            fix="give it `list(queue)`, or call a function that isn't decorated",
        )


def refuse_changed_arguments(name: str, given: list[tuple[Any, list[Any]]]) -> None:
    """The trace works on copies of the containers among its arguments, so a change to one would be lost."""
    for container, before in given:
        now = list(container) if isinstance(container, list) else [*container.keys(), *container.values()]
        if len(now) != len(before) or any(a is not b for a, b in zip(now, before)):
            raise ValueError(
                f"{name}() should not modify its Python input arguments: it changes a {type(container).__name__} that "
                "it was called with, and the caller would not see that. Modify a copy, and return it."
            )


class TracingBuilder(Builder):
    """The builder of a function's graph. Symbolic tensors of a trace around it are captured, as eager tensors are.

    memory_of_loops: what the gradient of each of the function's loops may keep.
    outer_scope: the scopes of names that were open around the call that is traced.
    """

    def __init__(self, name: str, outer: Builder | None, memory: Budget | None = None) -> None:
        super().__init__(name)
        self.outer = outer
        self.outer_scope = ctx.scope
        self.memory_of_loops = memory
        self.given: dict[Value, EagerTensor] = {}  # the arguments of the call that is traced, by the inputs they are

    def use(self, tensor: Any) -> Value:
        value = getattr(tensor, "value", tensor)
        if isinstance(value, Value) and value.graph is not self.graph and self.outer is not None:
            return self.captured.get(value) or self._capture(self.outer.use(tensor))
        return super().use(tensor)


def _finish(
    builder: TracingBuilder,
    inputs: list[Value],
    specs: list,
    result: Any,
    outputs: list,
    structure: Any,
    jit: Any,
    parameters: Arguments,
) -> ConcreteFunction:
    graph = builder.graph
    collect_notes(graph)
    eager = list(builder.eager_captures.values())
    captured = list(builder.captured.items())
    variables = [k for k in builder.state_inputs if k is not TOKEN]
    graph.inputs = [
        *inputs,
        *[v for _, v in eager],
        *[v for _, v in captured],
        *[builder.state_inputs[k] for k in variables],
    ]
    if TOKEN in builder.state_inputs:
        graph.inputs.append(builder.state_inputs[TOKEN])
    written = [k for k in builder.written if k is not TOKEN]
    places = {k: index for index, k in enumerate(variables)}
    graph.outputs = [*graph.outputs, *[builder.state[k] for k in written]]
    if TOKEN in builder.written:
        graph.outputs.append(builder.state[TOKEN])
    rewrite("random streams", graph)
    rewrite("low bits", graph)
    rewrite("devices", graph)
    optimize(graph)
    commits = bool(written) and rewrite("commits", graph)
    arguments = remembered(structure)
    for argument in nest.flatten(arguments):
        if isinstance(argument, VariableArgument):
            argument.name_counts = argument.id in builder.names_read
    return ConcreteFunction(
        graph=graph,
        specs=specs,
        arguments=arguments,
        captures=[t for t, _ in eager],
        symbolic_captures=[outer for outer, _ in captured],
        variables=[k.deref() for k in variables],
        written=[places[k] for k in written],
        commits=commits,
        result=nest.map_structure(lambda value: None, result),
        is_none=[t is None for t in outputs],
        jit_compile=jit,
        parameters=parameters,
    )


def as_output(value: Any, name: str) -> Tensor | None:
    if value is None or isinstance(value, Tensor):
        returned(value)
        return value
    try:
        returned(value)
        return convert_to_tensor(value)
    except (TypeError, ValueError):
        raise TypeError(
            "To be compatible with ag.function, Python functions must return zero or more tensors, numbers, strings or "
            f"None values, or structures of them; '{name}' returned {value!r} of type {type(value).__name__}."
        ) from None


def _array_type(value: Any) -> tuple[Any, Any]:
    return as_dtype(value.dtype), value.shape


def _input_names(args: tuple, kwargs: dict[str, Any], arguments: Arguments) -> Any:
    """Names for the leaves of the arguments, in the order of `nest.flatten`."""
    for index, value in enumerate(args):
        base = arguments.name_of(index)
        count = len(nest.flatten(value))
        for i in range(count):
            yield base if count == 1 and not _is_container(value) else f"{base}_{i}"
    for key in sorted(kwargs):
        count = len(nest.flatten(kwargs[key]))
        for i in range(count):
            yield key if count == 1 and not _is_container(kwargs[key]) else f"{key}_{i}"


def _is_container(value: Any) -> bool:
    return isinstance(value, (list, tuple, dict))
