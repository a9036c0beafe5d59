"""Lowerings of reductions, running sums and products of matrices."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from runtime import dtypes
from runtime.graph.ir import Node
from runtime.onnx_export import windows
from runtime.onnx_export.emitter import Emitter, Ref, lowering, value_info
from runtime.types import TensorType

_REDUCTIONS = {
    "reduce_sum": "ReduceSum", "reduce_prod": "ReduceProd", "reduce_max": "ReduceMax", "reduce_min": "ReduceMin",
    "reduce_any": "ReduceMax", "reduce_all": "ReduceMin",
}  # fmt: skip


@lowering(*_REDUCTIONS)
def _reduce(e: Emitter, node: Node) -> Ref:
    (x,) = e.inputs(node)
    pooled = windows.window_sum(e, node) if node.op.name == "reduce_sum" else None
    if pooled is not None:
        return pooled
    op = _REDUCTIONS[node.op.name]
    wide = e.computing(op, x)
    result = reduced(e, op, wide, node)
    if wide is not x and x.dtype.is_integer and op in ("ReduceMax", "ReduceMin"):
        # Of no elements it is the limit of the wider dtype.
        limits = np.iinfo(x.dtype.np)
        at_least = op == "ReduceMax"
        result = e.compute("Max" if at_least else "Min", result, e.number(limits.min if at_least else limits.max, wide))
    return e.cast(result, x.dtype)


def reduced(e: Emitter, op: str, x: Ref, node: Node) -> Ref:
    axis, keepdims = node.attrs["axis"], int(node.attrs["keepdims"])
    if axis is None:
        return e.on_first(op, x, keepdims=keepdims)
    return e.on_first(op, x, e.ints(*axis), keepdims=keepdims) if axis else x


@lowering("reduce_mean")
def _reduce_mean(e: Emitter, node: Node) -> Ref:
    (x,) = e.inputs(node)
    if x.dtype.is_floating:
        return reduced(e, "ReduceMean", x, node)
    # Of integers it is rounded towards zero.
    axis = node.attrs["axis"]
    total = reduced(e, "ReduceSum", x, node)
    sizes = e.shape(x) if axis is None else e.emit("Gather", e.shape(x), e.ints(*axis), axis=0)
    return e.compute("Div", total, e.cast(e.emit("ReduceProd", sizes, keepdims=0), x.dtype))


@lowering("argmax", "argmin")
def _arg(e: Emitter, node: Node) -> Ref:
    (x,) = e.inputs(node)
    op = "ArgMax" if node.op.name == "argmax" else "ArgMin"
    if x.dtype.is_floating:
        # NaN is never the largest and never the smallest.
        away = -np.inf if op == "ArgMax" else np.inf
        x = e.where(e.compute("IsNaN", x, dtype=dtypes.bool_), e.number(away, x), x)
    found = e.emit(op, e.computing(op, x), dtype=dtypes.int64, axis=node.attrs["axis"], keepdims=0)
    return e.cast(found, node.attrs["output_type"])


@lowering("sum_to_shape_of")
def _sum_to_shape_of(e: Emitter, node: Node) -> Ref:
    x, like = e.inputs(node)
    types = [v.type for v in node.inputs]
    if types[0] == types[1] and None not in (node.inputs[0].shape or (None,)):
        return x
    wanted = e.shape(like)
    more = e.emit("Sub", e.emit("Size", e.shape(x)), e.emit("Size", wanted))
    front = e.full(e.emit("Reshape", more, e.ints(1)), 1, dtypes.int64)
    differ = e.emit("Not", e.emit("Equal", e.shape(x), e.concat(front, wanted), dtype=dtypes.bool_))
    axes = e.emit("Reshape", e.emit("NonZero", differ, dtype=dtypes.int64), e.ints(-1))
    total = e.on_first("ReduceSum", x, axes, keepdims=1, noop_with_empty_axes=1)
    return e.reshape(total, wanted)


# --- running sums ----------------------------------------------------------------------------------------------------


@lowering("cumsum")
def _cumsum(e: Emitter, node: Node) -> Ref:
    axis = e.number(node.attrs["axis"], dtypes.int32)
    flags = {name: int(node.attrs[name]) for name in ("exclusive", "reverse")}
    return e.on_first("CumSum", e.inputs(node)[0], axis, **flags)


Step = Callable[[Emitter, Ref, Ref], Ref]


@lowering("cumprod")
def _cumprod(e: Emitter, node: Node) -> Ref:
    return _scan(e, node, 1, lambda e, so_far, x: e.compute("Mul", so_far, x))


@lowering("cumulative_logsumexp")
def _cumulative_logsumexp(e: Emitter, node: Node) -> Ref:
    return _scan(e, node, -np.inf, _logaddexp)


def _logaddexp(e: Emitter, a: Ref, b: Ref) -> Ref:
    """max(a, b) + log(1 + exp(min(a, b) - max(a, b))); the minimum where that is infinite."""
    high, low = e.compute("Max", a, b), e.compute("Min", a, b)
    power = e.compute("Exp", e.compute("Sub", low, high))
    total = e.compute("Add", high, e.compute("Log", e.compute("Add", power, e.number(1, power))))
    nothing = e.compute("Equal", high, e.number(-np.inf, high), dtype=dtypes.bool_)
    return e.where(nothing, high, total)


def _scan(e: Emitter, node: Node, start: float, step: Step) -> Ref:
    """A Scan along an axis: what is there so far goes on, and is collected before or after each step.

    ONNX Runtime's takes no arrays without elements; where there may be none, they are handed on as they are.
    """
    (x,) = e.inputs(node)
    if all(node.inputs[0].shape or ()):
        return _scanned(e, node, x, start, step)
    some = e.emit("Greater", e.emit("Size", x, dtype=dtypes.int64), e.number(0, dtypes.int64), dtype=dtypes.bool_)
    branches = []
    for here in (True, False):
        with e.scope() as nodes:
            made = _scanned(e, node, x, start, step) if here else e.emit("Identity", x)
        branches.append(e.graph("scan", nodes, [], [value_info(made.name, TensorType(x.dtype, None))]))
    return e.emit("If", some, dtype=x.dtype, then_branch=branches[0], else_branch=branches[1])


def _scanned(e: Emitter, node: Node, x: Ref, start: float, step: Step) -> Ref:
    axis, dtype = node.attrs["axis"], x.dtype
    others = [k for k in range(e.rank(node.inputs[0])) if k != axis]
    shape = e.emit("Gather", e.shape(x), e.ints(*others), axis=0) if others else e.constant(np.zeros(0, np.int64))
    begin = e.full(shape, start, dtype)
    so_far, here = Ref(e.unique("so_far"), dtype), Ref(e.unique("slice"), dtype)
    with e.scope() as nodes:
        after = step(e, so_far, here)
        collected = e.emit("Identity", so_far if node.attrs["exclusive"] else after)
    type_ = TensorType(dtype, None)
    # ONNX Runtime asks for the ranks.
    infos = [value_info(ref.name, type_, [None] * len(others)) for ref in (so_far, here, after, collected)]
    body = e.graph("scan", nodes, infos[:2], infos[2:])
    back = [int(node.attrs["reverse"])]
    made = e.emit_many(
        "Scan", [begin, x], [(dtype, False)] * 2, body=body, num_scan_inputs=1, scan_input_axes=[axis],
        scan_output_axes=[axis], scan_input_directions=back, scan_output_directions=back,
    )  # fmt: skip
    return made[1]


# --- products of matrices --------------------------------------------------------------------------------------------


@lowering("matmul")
def _matmul(e: Emitter, node: Node) -> Ref:
    a, b = e.inputs(node)
    if node.attrs["transpose_a"]:
        a = _flipped(e, a, e.rank(node.inputs[0]))
    if node.attrs["transpose_b"]:
        b = _flipped(e, b, e.rank(node.inputs[1]))
    return e.compute("MatMul", a, b)


def _flipped(e: Emitter, x: Ref, rank: int) -> Ref:
    return e.transpose(x, [*range(rank - 2), rank - 1, rank - 2])


@lowering("einsum")
def _einsum(e: Emitter, node: Node) -> Ref:
    """Ours stretches dimensions of size 1, ONNX' doesn't: they are left out of the operand that has them."""
    equation, inputs = node.attrs["equation"], e.inputs(node)
    left, _, right = equation.partition("->")
    terms = left.split(",")
    sizes = [dict(zip(term, v.shape or ())) for term, v in zip(terms, node.inputs)]
    for number, term in enumerate(terms):
        others = [each for k, each in enumerate(sizes) if k != number]
        stretched = [
            place for place, label in enumerate(term)
            if sizes[number].get(label) == 1 and any(label in each and each[label] != 1 for each in others)
        ]  # fmt: skip
        inputs[number] = e.squeeze(inputs[number], *stretched)
        terms[number] = "".join(label for place, label in enumerate(term) if place not in stretched)
        for place in stretched:
            del sizes[number][term[place]]
    return e.compute("Einsum", *inputs, equation=f"{','.join(terms)}->{right}")
