"""Branches, loops, scans, sequences and optional values."""

from __future__ import annotations

from typing import Any

from autograph.onnx_models.operators.registry import Call, dtype_of, number, operator
from autograph.operators.functional_control import cond, while_loop
from runtime import dtypes
from runtime.context import ctx
from runtime.ops import api as ops
from runtime.ops.convert import static_value
from runtime.ops.dispatch import call
from runtime.tensor import Tensor
from runtime.tensor_array import TensorArray


@operator("If")
def _if(node: Call, condition: Any) -> Any:
    condition = ops.reshape(condition, [])
    known = static_value(condition)
    if known is not None:
        return tuple(node.evaluate(node.get("then_branch" if known else "else_branch"), []))

    def branch(name: str) -> Any:
        results = node.evaluate(node.get(name), [])
        _need_tensors(node, results)
        return tuple(results)

    return cond(condition, lambda: branch("then_branch"), lambda: branch("else_branch"))


def _need_tensors(node: Call, values: Any) -> None:
    if not all(isinstance(value, Tensor) for value in values):
        raise node.refuse("staged branches and loops can only pass on tensors; call models with sequences eagerly")


@operator("Loop")
def _loop(node: Call, most: Any, condition: Any, *start: Any) -> Any:
    body = node.get("body")
    if ctx.builder is None:
        return _eager_loop(node, body, most, condition, list(start))
    _need_tensors(node, start)
    count = len(start)
    limit = None if most is None else ops.reshape(ops.cast(most, dtypes.int64), [])
    goes = ops.constant(True) if condition is None else ops.reshape(condition, [])
    # The types of what is collected are those of a first trip, which is dropped.
    sample = node.evaluate(body, [ops.constant(0, dtypes.int64), goes, *start])
    _need_tensors(node, sample)
    arrays = [
        TensorArray(each.dtype, size=0, dynamic_size=True, element_shape=each._shape) for each in sample[1 + count :]
    ]

    def step(trip: Any, goes: Any, values: Any, arrays: Any) -> Any:
        again, *results = node.evaluate(body, [trip, goes, *values])
        place = ops.cast(trip, dtypes.int32)
        arrays = [array.write(place, each) for array, each in zip(arrays, results[count:])]
        return trip + number(1, trip), ops.reshape(again, []), list(results[:count]), arrays

    def test(trip: Any, goes: Any, *_: Any) -> Any:
        return goes if limit is None else ops.logical_and(goes, trip < limit)

    begin = (ops.constant(0, dtypes.int64), goes, list(start), arrays)
    _, _, values, arrays = while_loop(test, step, begin)
    return (*values, *[array.stack() for array in arrays])


def _eager_loop(node: Call, body: Any, most: Any, condition: Any, values: list[Any]) -> Any:
    count, trip = len(values), 0
    limit = None if most is None else int(ops.reshape(most, []))
    goes = True if condition is None else bool(ops.reshape(condition, []))
    collected: list[list[Any]] = [[] for _ in range(len(body.output) - 1 - count)]
    while goes and (limit is None or trip < limit):
        results = node.evaluate(body, [ops.constant(trip, dtypes.int64), ops.constant(goes), *values])
        goes = bool(ops.reshape(results[0], []))
        values = results[1 : 1 + count]
        for column, each in zip(collected, results[1 + count :]):
            column.append(each)
        trip += 1
    return (*values, *[_rows(column, info) for column, info in zip(collected, body.output[1 + count :])])


def _rows(column: list[Any], info: Any) -> Any:
    if column:
        return ops.stack(column)
    tensor = info.type.tensor_type
    sizes = [d.dim_value for d in tensor.shape.dim]
    return ops.zeros([0, *sizes], dtype_of(tensor.elem_type))


@operator("Scan")
def _scan(node: Call, *inputs: Any) -> Any:
    if node.version < 9:
        raise node.refuse("versions before 9 aren't translated")
    body, scanned = node.get("body"), node.get("num_scan_inputs")
    states, sequences = list(inputs[: len(inputs) - scanned]), inputs[len(inputs) - scanned :]
    in_axes = node.get("scan_input_axes") or [0] * scanned
    back = node.get("scan_input_directions") or [0] * scanned
    rows = []
    for x, axis, turned in zip(sequences, in_axes, back):
        rank = node.rank(x)
        axis %= rank
        x = ops.transpose(x, [axis, *[k for k in range(rank) if k != axis]]) if axis else x
        rows.append(ops.reverse(x, [0]) if turned else x)
    steps, count = call("dim", rows[0], axis=0), len(states)
    outputs = len(body.output) - count
    known = static_value(steps)
    if known is not None and ctx.builder is None:
        columns: list[list[Any]] = [[] for _ in range(outputs)]
        for k in range(int(known)):
            results = node.evaluate(body, [*states, *[x[k] for x in rows]])
            states = results[:count]
            for column, each in zip(columns, results[count:]):
                column.append(each)
        collected = [_rows(column, info) for column, info in zip(columns, body.output[count:])]
    else:
        sample = node.evaluate(body, [*states, *[x[0] for x in rows]])
        arrays = [TensorArray(each.dtype, size=steps, element_shape=each._shape) for each in sample[count:]]

        def step(k: Any, states: Any, arrays: Any) -> Any:
            results = node.evaluate(body, [*states, *[x[k] for x in rows]])
            written = [array.write(k, each) for array, each in zip(arrays, results[count:])]
            return k + 1, list(results[:count]), written

        _, states, arrays = while_loop(lambda k, *_: k < steps, step, (ops.zeros_like(steps), states, arrays))
        collected = [array.stack() for array in arrays]
    out_axes = node.get("scan_output_axes") or [0] * outputs
    out_back = node.get("scan_output_directions") or [0] * outputs
    for place, (axis, turned) in enumerate(zip(out_axes, out_back)):
        x = ops.reverse(collected[place], [0]) if turned else collected[place]
        rank = node.rank(x)
        axis %= rank
        collected[place] = ops.transpose(x, [*range(1, axis + 1), 0, *range(axis + 1, rank)]) if axis else x
    return (*states, *collected)


# --- sequences: Python lists -----------------------------------------------------------------------------------------


def _place(node: Call, sequence: list[Any], position: Any) -> int:
    place = node.ints(position, "a position in a sequence")[0]
    if not -len(sequence) <= place <= len(sequence):
        raise node.refuse(f"position {place} is out of range for {len(sequence)} elements")
    return place


@operator("SequenceEmpty")
def _sequence_empty(node: Call) -> Any:
    return ([],)


@operator("SequenceConstruct")
def _sequence_construct(node: Call, *inputs: Any) -> Any:
    return (list(inputs),)


@operator("SequenceAt")
def _sequence_at(node: Call, sequence: Any, position: Any) -> Any:
    return sequence[_place(node, sequence, position)]


@operator("SequenceInsert")
def _sequence_insert(node: Call, sequence: Any, value: Any, position: Any = None) -> Any:
    made = list(sequence)
    made.insert(len(made) if position is None else _place(node, sequence, position), value)
    return (made,)


@operator("SequenceErase")
def _sequence_erase(node: Call, sequence: Any, position: Any = None) -> Any:
    made = list(sequence)
    del made[-1 if position is None else _place(node, sequence, position)]
    return (made,)


@operator("SequenceLength")
def _sequence_length(node: Call, sequence: Any) -> Any:
    return ops.constant(len(sequence), dtypes.int64)


@operator("ConcatFromSequence")
def _concat_from_sequence(node: Call, sequence: Any) -> Any:
    return (ops.stack if node.get("new_axis", 0) else ops.concat)(sequence, node.get("axis"))


@operator("SplitToSequence")
def _split_to_sequence(node: Call, x: Any, split: Any = None) -> Any:
    axis = node.get("axis", 0) % node.rank(x)
    length = node.shape(x)[axis]
    if split is None:
        parts = ops.split(x, [1] * length, axis)
        return ([part if node.get("keepdims", 1) else ops.squeeze(part, [axis]) for part in parts],)
    sizes = node.ints(split, "the sizes of the parts")
    if node.rank(split) == 0:
        (size,) = sizes
        sizes = [min(size, length - k) for k in range(0, length, size)]
    return (list(ops.split(x, sizes, axis)),)


@operator("SequenceMap")
def _sequence_map(node: Call, sequence: Any, *more: Any) -> Any:
    rows = [
        node.evaluate(node.get("body"), [each, *[m[k] if isinstance(m, list) else m for m in more]])
        for k, each in enumerate(sequence)
    ]
    return tuple([row[k] for row in rows] for k in range(len(node.outputs)))


@operator("Optional")
def _optional(node: Call, value: Any = None) -> Any:
    return (value,)


@operator("OptionalHasElement")
def _has_element(node: Call, value: Any = None) -> Any:
    return ops.constant(value is not None)


@operator("OptionalGetElement")
def _get_element(node: Call, value: Any) -> Any:
    return (value,) if isinstance(value, list) else value
