"""Lowerings of branches, loops, stacks, and of what has an effect.

    cond(p, capture*)          If; its branches see the captures by their names
    while(init*, capture*)     Loop without a limit; its test is computed before it and at the end of each trip
    stacks of gradients        sequences: SequenceInsert, SequenceAt and SequenceErase at the end

Order tokens vanish: what could have an effect is refused, or dropped and noted (`Emitter.dropped`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx

from runtime import dtypes
from runtime.dtypes import DType
from runtime.graph.builder import Builder
from runtime.graph.ir import Graph, Node, Value
from runtime.graph.spans import describe_span
from runtime.onnx_export.emitter import LOWERINGS, Emitter, NoForm, Ref, element_type, lowering, value_info
from runtime.types import StackType, TensorType, TokenType

# Why ops without a lowering have none, and what to do: (beginning of the name, reason, what to do instead).
_REASONS = (
    (("random_", "philox_"), "its random numbers can't be drawn there",
     "Draw the numbers outside, and pass them to the function as an argument"),
    (("py_function", "host_call"), "it calls Python", "Compute this outside of the function"),
    (("late",), "ranks or sizes that it needs aren't known",
     "Give the ranks in the signature, as in ag.TensorSpec([None, None]), or by ag.ensure_shape"),
    (("table_",), "tables that change have no place in a model", "Use ag.lookup.StaticHashTable"),
    (("letrec", "call"), "its functions can't call themselves",
     "Write the recursion as a loop with a list for a stack"),
    (("complex", "real", "imag", "angle", "conj", "fft", "ifft"), "it has no arithmetic of complex numbers",
     "Write it with real and imaginary parts"),
    (("fft", "rfft", "irfft", "dct"), "this transform isn't translated", "Compute it outside of the function"),
    (("read_file", "write_file", "matching_files", "decode_", "encode_"), "it reads or writes files and formats",
     "Do that outside of the function, and pass the result as an argument"),
    (("bitcast",), "it can't look at the bytes of numbers", "Convert by ag.cast, or outside of the function"),
)  # fmt: skip


def lower_nodes(e: Emitter, nodes: Sequence[Node]) -> None:
    """Lowers nodes in order, and binds their outputs."""
    outer = e.node
    for node in nodes:
        e.node = node
        name = node.op.name
        if node.op.is_check or name == "print":
            place = f" at {describe_span(node.span)}" if node.span else ""
            e.dropped.append(f"{'check' if node.op.is_check else name}{place}")
            continue
        found = LOWERINGS.get(node.op.arithmetic)
        if found is None:
            raise _no_lowering(node)
        for value in (*node.inputs, *node.outputs):
            _need_dtype(node, value)
        made = found(e, node)
        results = [made] if isinstance(made, Ref) else list(made)
        outputs = [v for v in node.outputs if not isinstance(v.type, TokenType)]
        for value, ref in zip(outputs, results, strict=True):
            e.refs[value] = ref
    e.node = outer


def _no_lowering(node: Node) -> NoForm:
    for beginnings, reason, instead in _REASONS:
        if node.op.name.startswith(beginnings):
            return NoForm(node, reason, instead)
    return NoForm(
        node, "no operations of the standard compute it",
        "Compute it outside of the function, or write it with operations that docs/deploy.md lists",
    )  # fmt: skip


def _need_dtype(node: Node, value: Value) -> None:
    type_ = value.type.element if isinstance(value.type, StackType) else value.type
    if isinstance(type_, TensorType):
        if type_.dtype.is_complex:
            raise NoForm(node, "it has no arithmetic of complex numbers", "Write it with real and imaginary parts")
        try:
            element_type(type_.dtype)
        except ValueError as error:
            raise NoForm(node, str(error), "Cast to another dtype first") from None


# --- what is only there ----------------------------------------------------------------------------------------------


@lowering("constant")
def _constant(e: Emitter, node: Node) -> Ref:
    return e.constant(node.attrs["value"].array)


@lowering("assign")
def _assign(e: Emitter, node: Node) -> Ref:
    return e.ref(node.inputs[1])


@lowering("commit")
def _commit(e: Emitter, node: Node) -> Sequence[Ref]:
    return ()


# --- regions ---------------------------------------------------------------------------------------------------------


def lower_region(e: Emitter, region: Graph, operands: Sequence[Ref | None]) -> list[Ref]:
    """Lowers a region into the current graph. operands: its inputs' values, None for tokens. Returns its outputs
    without tokens."""
    for value, ref in zip(region.inputs, operands):
        if ref is not None:
            e.refs[value] = ref
    lower_nodes(e, region.nodes)
    return [e.ref(v) for v in region.outputs if not isinstance(v.type, TokenType)]


def lowered_program(e: Emitter, node: Node, program: Callable[..., Sequence[Any]]) -> list[Ref]:
    """What a program in our ops computes of the node's operands and attributes, lowered in its place."""
    builder = Builder(node.op.name)
    inputs = [builder.add_input(value.type) for value in node.inputs]
    with builder:
        results = [builder.use(each) for each in program(*[builder.tensor(v) for v in inputs], **node.attrs)]
    builder.graph.outputs = results
    return lower_region(e, builder.graph, e.inputs(node))


def _operand(e: Emitter, value: Value) -> Ref | None:
    return None if isinstance(value.type, TokenType) else e.ref(value)


def own_outputs(e: Emitter, nodes: Sequence[onnx.NodeProto], refs: Sequence[Ref]) -> list[Ref]:
    """The results as outputs of a graph: each one made in it, and none twice."""
    made = {name for node in nodes for name in node.output}
    found: list[Ref] = []
    for ref in refs:
        if ref.name not in made:
            ref = e.emit_many("Identity", [ref], [(ref.dtype, ref.is_sequence)])[0]
        made.discard(ref.name)
        found.append(ref)
    return found


def _info(ref: Ref, shape: Sequence[int] | None = None) -> onnx.ValueInfoProto:
    type_ = TensorType(ref.dtype, None)
    return value_info(ref.name, StackType(type_) if ref.is_sequence else type_, shape)


def _loop_body(e: Emitter, nodes: Sequence[onnx.NodeProto], inputs: Sequence[Ref], outputs: Sequence[Ref]) -> Any:
    """The subgraph of a Loop. Its first two inputs are the trip's number and the condition."""
    infos = [_info(ref, () if place < 2 else None) for place, ref in enumerate(inputs)]
    return e.graph("body", nodes, infos, [_info(ref) for ref in outputs])


@lowering("cond")
def _cond(e: Emitter, node: Node) -> Sequence[Ref]:
    predicate, *operands = [_operand(e, v) for v in node.inputs]
    branches, results = [], []
    for region, name in zip(node.regions, ("then", "else")):
        with e.scope() as nodes:
            results = own_outputs(e, nodes, lower_region(e, region, operands))
        branches.append(e.graph(name, nodes, [], [_info(ref) for ref in results]))
    if not results:
        return ()
    outputs = [(ref.dtype, ref.is_sequence) for ref in results]
    return e.emit_many("If", [predicate], outputs, then_branch=branches[0], else_branch=branches[1])


@lowering("while")
def _while(e: Emitter, node: Node) -> Sequence[Ref]:
    test, body = node.regions
    count = node.attrs["carries"]
    operands = [_operand(e, v) for v in node.inputs]
    captures = operands[count:]
    start = [ref for ref in operands[:count] if ref is not None]
    if not start:
        return ()
    (goes,) = lower_region(e, test, operands)
    trip, before = Ref(e.unique("trip"), dtypes.int64), Ref(e.unique("goes"), dtypes.bool_)
    carries = [None if ref is None else Ref(e.unique("carry"), ref.dtype, ref.is_sequence) for ref in operands[:count]]
    with e.scope() as nodes:
        after = lower_region(e, body, [*carries, *captures])
        made = iter(after)
        again = [None if ref is None else next(made) for ref in carries]
        (goes_on,) = lower_region(e, test, [*again, *captures])
        results = own_outputs(e, nodes, [goes_on, *after])
    inputs = [trip, before, *[ref for ref in carries if ref is not None]]
    graph = _loop_body(e, nodes, inputs, results)
    outputs = [(ref.dtype, ref.is_sequence) for ref in start]
    return e.emit_many("Loop", [None, goes, *start], outputs, body=graph)


# --- stacks ----------------------------------------------------------------------------------------------------------
# A stack of elements of one known shape is a tensor with a row for each, which ONNX Runtime copies fast; any other is a
# sequence, whose elements it copies one by one at each push.


def _row_shape(value: Value) -> tuple[int, ...] | None:
    """The shape of a stack's elements, where it is one tensor."""
    assert isinstance(value.type, StackType)
    shape = value.type.element.shape
    return None if shape is None else tuple(d for d in shape if d is not None) if None not in shape else None


def _sequence(e: Emitter, op: str, inputs: Sequence[Ref], element: Any, **attrs: Any) -> Ref:
    return e.emit_many(op, inputs, [(element, True)], **attrs)[0]


@lowering("stack_empty")
def _stack_empty(e: Emitter, node: Node) -> Ref:
    dtype, shape = node.attrs["dtype"], _row_shape(node.outputs[0])
    if shape is not None:
        return e.zeros(e.ints(0, *shape), dtype)
    return _sequence(e, "SequenceEmpty", [], dtype, dtype=element_type(dtype))


@lowering("stack_push")
def _stack_push(e: Emitter, node: Node) -> Ref:
    stack, value = e.inputs(node)
    if not stack.is_sequence:
        return e.emit("Concat", stack, e.unsqueeze(value, 0), axis=0)
    return _sequence(e, "SequenceInsert", [stack, value], stack.dtype)


@lowering("stack_pop")
def _stack_pop(e: Emitter, node: Node) -> Sequence[Ref]:
    (stack,) = e.inputs(node)
    top = e.number(-1, dtypes.int64)
    if not stack.is_sequence:
        return e.first_rows(stack, e.ints(-1)), e.emit("Gather", stack, top, axis=0)
    return _sequence(e, "SequenceErase", [stack, top], stack.dtype), e.emit("SequenceAt", stack, top)


@lowering("stack_zeros", "stack_add")
def _stack_map(e: Emitter, node: Node) -> Ref:
    stacks = e.inputs(node)
    dtype = stacks[0].dtype
    if not stacks[0].is_sequence:
        return e.zeros(e.shape(stacks[0]), dtype) if len(stacks) == 1 else e.compute("Add", *stacks)

    def element(place: Ref) -> Ref:
        parts = [e.emit("SequenceAt", stack, place) for stack in stacks]
        return e.zeros(e.shape(parts[0]), dtype) if len(parts) == 1 else e.compute("Add", *parts)

    return _extended(e, None, _stack_length(e, stacks[0]), element, dtype)


def _stack_length(e: Emitter, stack: Ref) -> Ref:
    if not stack.is_sequence:
        return e.scalar(e.dim(stack, 0))
    return e.emit_many("SequenceLength", [stack], [(dtypes.int64, False)])[0]


def _extended(e: Emitter, start: Ref | None, count: Ref, element: Callable[[Ref], Ref], dtype: DType) -> Ref:
    """The sequence `start` (None: an empty one) with the elements 0 to `count` behind its own: a loop."""
    if start is None:
        start = _sequence(e, "SequenceEmpty", [], dtype, dtype=element_type(dtype))
    place, goes = Ref(e.unique("trip"), dtypes.int64), Ref(e.unique("goes"), dtypes.bool_)
    so_far = Ref(e.unique("carry"), dtype, True)
    with e.scope() as nodes:
        longer = _sequence(e, "SequenceInsert", [so_far, element(place)], dtype)
        results = own_outputs(e, nodes, [goes, longer])
    graph = _loop_body(e, nodes, (place, goes, so_far), results)
    return e.emit_many("Loop", [count, None, start], [(dtype, True)], body=graph)[0]


@lowering("stack_size")
def _stack_size(e: Emitter, node: Node) -> Ref:
    return _stack_length(e, e.inputs(node)[0])


@lowering("stack_join")
def _stack_join(e: Emitter, node: Node) -> Sequence[Ref]:
    stack, segment = e.inputs(node)
    size = _stack_length(e, stack)
    if not stack.is_sequence:
        return e.emit("Concat", stack, segment, axis=0), size
    element = lambda place: e.emit("SequenceAt", segment, place)  # noqa: E731
    return _extended(e, stack, _stack_length(e, segment), element, stack.dtype), size


@lowering("stack_split")
def _stack_split(e: Emitter, node: Node) -> Sequence[Ref]:
    stack, size = e.inputs(node)
    length = _stack_length(e, stack)
    if not stack.is_sequence:
        middle, end = e.vector(size), e.vector(length)
        return e.first_rows(stack, middle), e.slice(stack, middle, end, e.ints(0))
    first = lambda place: e.emit("SequenceAt", stack, place)  # noqa: E731
    second = lambda place: e.emit("SequenceAt", stack, e.emit("Add", place, size))  # noqa: E731
    rest = _extended(e, None, size, first, stack.dtype)
    return rest, _extended(e, None, e.emit("Sub", length, size), second, stack.dtype)


@lowering("stack_room")
def _stack_room(e: Emitter, node: Node) -> Ref:
    share, size = [e.cast(ref, dtypes.int64) for ref in e.inputs(node)]
    one = e.number(1, dtypes.int64)
    room = e.emit("Max", e.emit("Div", share, e.emit("Max", size, one)), one)
    output = node.outputs[0].type
    assert isinstance(output, TensorType)
    return e.cast(room, output.dtype)
