"""Printed forms of sums and extremes over segments, and of searches in sorted sequences.

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

from runtime.codegen.kernel import spelling
from runtime.codegen.kernel.names import fill
from runtime.codegen.kernel.values import Array, Dims, Virtual, product
from runtime.codegen.lower.state import REFUSALS, Lowering, emitter
from runtime.codegen.op_lowerings.gather import place_of
from runtime.codegen.op_lowerings.view import filled
from runtime.dtypes import DType
from runtime.graph.ir import Node
from runtime.ops.table import OPS

# The op that joins the rows of a segment; what stands where there is none is the same as on the interpreter.
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
    empty = spelling.literal(_neutral(op, dtype), dtype)
    dims = (count, *data.dims[rank:])
    total = low.solid(Virtual(dtype, dims, lambda indices: empty, uniform=True), node.outputs[0].name)
    rows, inner = low.atom(product(ids.dims)), low.atom(product(data.dims[rank:]))
    i, j = low.index_name(0), low.index_name(1)

    def joined(place: str, source: str) -> str:
        into = f"{total.buffer.name}[{place}]"
        text = fill(OPS[op].scalar, [into, f"{data.buffer.name}[{source}]"], [dtype, dtype], dtype)
        return f"{into} = {spelling.strip(spelling.narrow(text, dtype))}"

    with low.nested() as block:
        segment = low.assign(f"np.int64({ids.buffer.name}[{i}])", "segment")
        where, details = place_of(ids.dims, i, 2)
        message = f"segment_ids[{where}] = {{0}} is out of range [0, {{1}})"
        low.fail_when(f"{segment} >= {count}", "InvalidArgumentError", message, node, (segment, count, *details))
        if inner == "1":
            body = low.lines(joined(segment, i))
        else:
            row = low.lines(joined(f"{segment} * {inner} + {j}", f"{i} * {inner} + {j}"))
            body = [low.for_each(j, inner, row)]
        low.branch(f"{segment} >= 0", body)
    low.loop(i, rows, block)
    low.define(node.outputs[0], Array(total.buffer, dims))


@emitter("searchsorted")
def _searchsorted(low: Lowering, node: Node) -> None:
    sequence, values = (low.array(value) for value in node.inputs)
    output = node.outputs[0]
    out = low.new_buffer(product(values.dims), output.dtype, output.name)
    length = low.atom(sequence.dims[-1])
    i, j = low.index_name(0), low.index_name(1)

    def found(first: str, place: str) -> str:
        value, right = f"{values.buffer.name}[{place}]", node.attrs["side"] == "right"
        text = f"lib.place_in({sequence.buffer.name}, {first}, {length}, {value}, {right})"
        return f"{out.name}[{place}] = {spelling.type_name(output.dtype)}({text})"

    if len(sequence.dims) == 1:
        low.loop(i, low.atom(product(values.dims)), low.lines(found("0", i)))
    else:
        lead = sequence.dims[:-1]
        _check_lead(low, node, values.dims[:-1], lead, "Leading dim_size of both tensors must match")
        columns = low.atom(values.dims[-1])
        with low.nested() as rows:
            low.loop(j, columns, low.lines(found(f"{i} * {length}", f"{i} * {columns} + {j}")))
        low.loop(i, low.atom(product(lead)), rows)
    low.define(output, Array(out, values.dims))


def _check_lead(low: Lowering, node: Node, got: Dims, wanted: Dims, message: str, details: Dims = ()) -> None:
    wrong = [f"{a} != {b}" for a, b in zip(got, wanted) if a != b]
    if wrong:
        low.fail_when(" or ".join(wrong), "InvalidArgumentError", message, node, details)
