"""Lowerings of sums and extremes over segments, and of searches in sorted sequences.

%y = unsorted_segment_sum(%x[n, m], %ids[n], 3)     →   for i in range(n):
                                                            segment = np.int64(ids[i])
                                                            if segment >= 3:
                                                                return 1, segment, …
                                                            if segment >= 0:
                                                                for j in range(m):
                                                                    y[segment * m + j] = y[segment * m + j] + x[…]
"""

from __future__ import annotations

import numpy as np

from runtime.codegen.kernel import scalars
from runtime.codegen.kernel.names import rule_expression
from runtime.codegen.kernel.values import Array, Dims, Virtual, product
from runtime.codegen.lower.state import REFUSALS, Lowering, emitter
from runtime.codegen.op_lowerings.computed_rows import check_all, join_rows, place_at
from runtime.codegen.op_lowerings.gather import place_of
from runtime.codegen.op_lowerings.view import filled
from runtime.dtypes import DType
from runtime.graph.ir import Node
from runtime.kernel_ir import ir
from runtime.ops.table import OPS

# The op that joins the rows of a segment. A segment without rows gets the interpreter's value.
_JOINED = {
    "unsorted_segment_sum": "add",
    "unsorted_segment_prod": "multiply",
    "unsorted_segment_max": "maximum",
    "unsorted_segment_min": "minimum",
}


def _neutral(op: str, dtype: DType) -> object:
    if op in ("add", "multiply"):
        return int(op == "multiply")
    limits = np.finfo(dtype.np) if dtype.is_floating else np.iinfo(dtype.np)
    return limits.min if op == "maximum" else limits.max


def _refusal(node: Node) -> str | None:
    return "ids of uint64" if node.inputs[1].dtype.name == "uint64" else None


REFUSALS.update(dict.fromkeys(_JOINED, _refusal))


@emitter(*_JOINED)
def _segments(low: Lowering, node: Node) -> None:
    data, ids = low.array(node.inputs[0]), low.array(node.inputs[1])
    (count,) = filled(low, node, (node.attrs["num"],), node.inputs[2:])
    rank = len(ids.dims)
    shown = [f"{{{k}}}" for k in range(len(data.dims) + rank)]
    own, lead = ",".join(shown[: len(data.dims)]), ",".join(shown[len(data.dims) :])
    message = f"data.shape = [{own}] does not start with segment_ids.shape = [{lead}]"
    _check_lead(low, node, data.dims[:rank], ids.dims, message, (*data.dims, *ids.dims))
    op, dtype = _JOINED[node.op.name], data.dtype
    empty = scalars.literal(_neutral(op, dtype), dtype)
    dims = (count, *data.dims[rank:])
    total = low.solid(Virtual(dtype, dims, lambda indices: empty, uniform=True), node.outputs[0].name)
    rows, inner = low.atom(product(ids.dims)), low.atom(product(data.dims[rank:]))
    i, j = low.index_name(0), low.index_name(1)

    def found(into: ir.Expr, source: ir.Expr) -> ir.Expr:
        operands = [into, ir.load(data.buffer.variable, source)]
        return scalars.narrow(rule_expression(OPS[op].scalar, operands, [dtype, dtype], dtype), dtype)

    def joined(place: ir.Expr, source: ir.Expr) -> ir.Statement:
        into = ir.load(total.buffer.variable, place)
        return ir.set_to(into, found(into, source))

    def check(i: ir.Expr, segment: ir.Var) -> None:
        where, details = place_of(ids.dims, i, 2)
        message = f"segment_ids[{where}] = {{0}} is out of range [0, {{1}})"
        low.fail_when(segment.compare(">=", count), "InvalidArgumentError", message, node, (segment, count, *details))

    low.define(node.outputs[0], Array(total.buffer, dims))
    if low.for_device:
        check_all(low, ids, lambda segment: segment.compare(">=", count), check)
        join_rows(low, ids, inner, total.buffer, found)
        return
    with low.nested() as block:
        segment = low.assign(place_at(ids, i), "segment")
        check(i, segment)
        if inner == ir.ONE:
            body = joined(segment, i)
        else:
            body = low.for_each(j, inner, [joined(segment * inner + j, i * inner + j)])
        low.branch(segment.compare(">=", 0), [body])
    low.loop(i, rows, block)


@emitter("searchsorted")
def _searchsorted(low: Lowering, node: Node) -> None:
    sequence, values = (low.array(value) for value in node.inputs)
    output = node.outputs[0]
    out = low.new_buffer(product(values.dims), output.dtype, output.name)
    length = low.atom(sequence.dims[-1])
    i, j = low.index_name(0), low.index_name(1)

    def found(first: ir.Expr, place: ir.Expr) -> ir.Statement:
        value, right = ir.load(values.buffer.variable, place), ir.TRUE if node.attrs["side"] == "right" else ir.FALSE
        position = ir.call("lib.place_in", sequence.buffer.variable, first, length, value, right)
        return ir.store(out.variable, place, ir.Convert(scalars.machine_type(output.dtype), position))

    if len(sequence.dims) == 1:
        low.loop(i, low.atom(product(values.dims)), [found(ir.ZERO, i)])
    else:
        lead = sequence.dims[:-1]
        _check_lead(low, node, values.dims[:-1], lead, "Leading dim_size of both tensors must match")
        columns = low.atom(values.dims[-1])
        row = low.for_each(j, columns, [found(i * length, i * columns + j)])
        low.loop(i, low.atom(product(lead)), [row])
    low.define(output, Array(out, values.dims))


def _check_lead(low: Lowering, node: Node, got: Dims, wanted: Dims, message: str, details: Dims = ()) -> None:
    wrong = [a.compare("!=", b) for a, b in zip(got, wanted) if a != b]
    if wrong:
        low.fail_when(ir.either(*wrong), "InvalidArgumentError", message, node, details)
