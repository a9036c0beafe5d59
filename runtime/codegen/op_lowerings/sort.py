"""Lowerings of argsort, top_k and take_along.

%at = argsort(%x[n, m])             for i in range(n):
                                →       lib.order_of_row(x, i * m, m, False, at, keys, other_keys, other_at)
%y = take_along(%x[n, m], %at)  →   y[i * m + j] = x[i * m + at[i * m + j]]

Other axes, and rows that are known to be long, are left to NumPy's functions.
"""

from __future__ import annotations

from collections.abc import Callable

from runtime import dtypes
from runtime.codegen import cost_model
from runtime.codegen.kernel.values import Array, product
from runtime.codegen.lower.state import REFUSALS, Lowering, emitter
from runtime.codegen.op_lowerings.gather import place_of
from runtime.graph.ir import Node
from runtime.kernel_ir import ir
from runtime.kernel_ir.types import INT64


def _refusal(node: Node) -> str | None:
    first = node.inputs[0]
    if first.dtype.kind not in "iuf":
        return f"elements of {first.dtype.name}"
    if first.type.rank is None or node.attrs["axis"] != first.type.rank - 1:  # type: ignore[union-attr]
        return "an axis other than the last"
    if node.op.name == "argsort" and (first.shape[-1] or 0) > cost_model.SORT_ROW:
        return "rows that NumPy sorts faster"
    if node.op.name == "argsort" or first.type.rank == 1:  # type: ignore[union-attr]
        return None
    places = node.inputs[1]
    if places.node is not None and places.node.op.name == "argsort" and places.node.inputs[0] is first:
        return None
    lead = first.shape[:-1]
    return "leading dimensions that are not known to be equal" if lead != places.shape[:-1] or None in lead else None


REFUSALS.update(dict.fromkeys(["argsort", "take_along"], _refusal))


def _each_row(low: Lowering, node: Node, rows: ir.Expr, call: Callable[[ir.Expr], ir.Call]) -> None:
    """Adds a loop over rows that calls a library function for each."""
    row = low.index_name(0)
    low.nest(row, rows, [ir.Run(call(row))], low.is_large([node]), may_join=False)


@emitter("argsort")
def _argsort(low: Lowering, node: Node) -> None:
    array, output = low.array(node.inputs[0]), node.outputs[0]
    rows, length = low.atom(product(array.dims[:-1])), low.atom(array.dims[-1])
    size = product(array.dims)
    out, other = low.new_buffer(size, dtypes.int32, output.name), low.new_buffer(size, dtypes.int32, "other_at")
    keys, other_keys = low.new_buffer(size, array.dtype, "keys"), low.new_buffer(size, array.dtype, "other_keys")
    _each_row(
        low, node, rows,
        lambda row: ir.call(
            "lib.order_of_row", array.buffer.variable, row * length, length, ir.truth(node.attrs["descending"]),
            out.variable, keys.variable, other_keys.variable, other.variable,
        ),
    )  # fmt: skip
    low.define(output, Array(out, array.dims))


@emitter("top_few")
def _top_few(low: Lowering, node: Node) -> None:
    array, k = low.array(node.inputs[0]), node.attrs["k"]
    rows, length = low.atom(product(array.dims[:-1])), low.atom(array.dims[-1])
    dims = (*array.dims[:-1], ir.as_expr(k))
    if k:
        message = f"input must have at least k columns. Had {{0}}, needed {k}"
        low.fail_when(length.compare("<", k), "InvalidArgumentError", message, node, (length,), node.op.label)
    values, places = (low.new_buffer(product(dims), output.dtype, output.name) for output in node.outputs)
    _each_row(
        low, node, rows,
        lambda row: ir.call(
            "lib.top_of_row", array.buffer.variable, row * length, length, values.variable,
            places.variable, row * k, k,
        ),
    )  # fmt: skip
    for output, found in zip(node.outputs, (values, places)):
        low.define(output, Array(found, dims))


@emitter("take_along")
def _take_along(low: Lowering, node: Node) -> None:
    array, positions = low.array(node.inputs[0]), low.array(node.inputs[1])
    rows, length, count = low.atom(product(positions.dims[:-1])), low.atom(array.dims[-1]), positions.dims[-1]
    out = low.new_buffer(product(positions.dims), array.dtype, node.outputs[0].name)
    i, j = low.index_name(0), low.index_name(1)

    with low.nested() as block:
        taken = low.assign(ir.Convert(INT64, ir.load(positions.buffer.variable, i * count + j)), "taken")
        where, details = place_of(positions.dims, i * count + j, 2)
        message = f"indices[{where}] = {{0}} is not in [0, {{1}}) [Op:TakeAlong]"
        wrong = ir.either(taken.compare("<", 0), taken.compare(">=", length))
        low.fail_when(wrong, "InvalidArgumentError", message, node, (taken, length, *details), "TakeAlong")
        low.add(ir.store(out.variable, i * count + j, ir.load(array.buffer.variable, i * length + taken)))
    low.loop(i, rows, [low.for_each(j, count, block)])
    low.define(node.outputs[0], Array(out, positions.dims))
