"""Lowerings of argsort, top_k, take_along and its adjoint.

%at = argsort(%x[n, m])             for i in range(n):
                                →       lib.order_of_row(x, i * m, m, False, at, keys, other_keys, other_at)
%y = take_along(%x[n, m], %at)  →   y[i * m + j] = x[i * m + at[i * m + j]]

Other axes, and rows that are known to be long, are left to NumPy's functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from runtime import dtypes
from runtime.codegen import cost_model
from runtime.codegen.kernel import scalars
from runtime.codegen.kernel.values import Array, Buffer, Dims, product
from runtime.codegen.lower.state import LEFT_TO_LIBRARIES, REFUSALS, Lowering, emitter
from runtime.codegen.op_lowerings.computed_rows import check_all, each_element, place_at
from runtime.codegen.op_lowerings.gather import place_of
from runtime.codegen.op_lowerings.slice import zeros
from runtime.codegen.op_lowerings.view import filled
from runtime.codegen.symbolic.ranges import Atom
from runtime.graph.ir import Node
from runtime.kernel_ir import ir
from runtime.kernel_ir.types import INT64


def _refusal(node: Node) -> str | None:
    first = node.inputs[0]
    if first.dtype.kind not in "iuf":
        return f"elements of {first.dtype.name}"
    if first.type.rank is None or node.attrs["axis"] != first.type.rank - 1:  # type: ignore[union-attr]
        return "an axis other than the last"
    return None if node.op.name == "argsort" else _unequal_leads(first.shape, node.inputs[1].shape, True)


def _unequal_leads(table: Sequence[int | None], places: Sequence[int | None], or_one: bool) -> str | None:
    """The reason for a refusal if dimensions before the last one surely differ. (Unknown ones are checked at run time.)
    or_one: the table's may be 1 instead."""
    differ = any(a != b and None not in (a, b) and not (or_one and a == 1) for a, b in zip(table[:-1], places[:-1]))
    return "leading dimensions that differ" if differ else None


def _need_equal_leads(low: Lowering, node: Node, table: Dims, places: Dims, or_one: bool) -> None:
    """Adds checks of the dimensions before the last one. or_one: the table's may be 1 instead."""
    wrong = [
        ir.both(a.compare("!=", b), a.compare("!=", 1)) if or_one else a.compare("!=", b)
        for a, b in zip(table[:-1], places[:-1])
        if a != b
    ]
    if wrong:
        message = f"leading dimensions of elements and indices differ [Op:{node.op.label}]"
        low.fail_when(ir.either(*wrong), "InvalidArgumentError", message, node, (), node.op.label)


REFUSALS.update(dict.fromkeys(["argsort", "take_along"], _refusal))
LEFT_TO_LIBRARIES["argsort"] = lambda node: (
    "rows that NumPy sorts faster" if (node.inputs[0].shape[-1] or 0) > cost_model.SORT_ROW else None
)


def _each_row(low: Lowering, node: Node, rows: ir.Expr, call: Callable[[ir.Expr], ir.Call]) -> None:
    """Adds a loop over rows that calls a library function for each."""
    row = low.index_name(0)
    low.nest(row, rows, [ir.Run(call(row))], low.is_large([node]), may_join=False)


@emitter("argsort")
def _argsort(low: Lowering, node: Node) -> None:
    array, output = low.array(node.inputs[0]), node.outputs[0]
    rows, length = low.atom(product(array.dims[:-1])), low.atom(array.dims[-1])
    out, *scratch = _order_buffers(low, array, output.name)
    low.define(output, Array(out, array.dims))
    arrays = [each.variable for each in (out, *scratch)]
    x, descending = array.buffer.variable, ir.truth(node.attrs["descending"])
    if low.for_device:  # all threads sort all rows at once
        low.add(ir.Run(ir.call("lib.order_of_rows", x, rows, length, descending, *arrays)))
        return
    _each_row(low, node, rows, lambda row: ir.call("lib.order_of_row", x, row * length, length, descending, *arrays))


def _order_buffers(low: Lowering, array: Array, name: str | None) -> list[Buffer]:
    """For positions, and scratch memory: keys, other keys and other positions."""
    size = product(array.dims)
    order, other = low.new_buffer(size, dtypes.int32, name), low.new_buffer(size, dtypes.int32, "other_at")
    keys, other_keys = low.new_buffer(size, array.dtype, "keys"), low.new_buffer(size, array.dtype, "other_keys")
    return [order, keys, other_keys, other]


@emitter("top_few")
def _top_few(low: Lowering, node: Node) -> None:
    array, k = low.array(node.inputs[0]), node.attrs["k"]
    rows, length = low.atom(product(array.dims[:-1])), low.atom(array.dims[-1])
    dims = (*array.dims[:-1], ir.as_expr(k))
    if k:
        message = f"input must have at least k columns. Had {{0}}, needed {k}"
        low.fail_when(length.compare("<", k), "InvalidArgumentError", message, node, (length,), node.op.label)
    values, places = (low.new_buffer(product(dims), output.dtype, output.name) for output in node.outputs)
    for output, found in zip(node.outputs, (values, places)):
        low.define(output, Array(found, dims))
    if low.for_device:
        _top_of_sorted_rows(low, array, rows, length, values, places, k)
        return
    _each_row(
        low, node, rows,
        lambda row: ir.call(
            "lib.top_of_row", array.buffer.variable, row * length, length, values.variable,
            places.variable, row * k, k,
        ),
    )  # fmt: skip


def _top_of_sorted_rows(
    low: Lowering, array: Array, rows: Atom, length: Atom, values: Buffer, places: Buffer, k: int
) -> None:
    """Lowers `top_k` for a GPU, whose threads sort all rows at once."""
    buffers = _order_buffers(low, array, "order")
    x, arrays = array.buffer.variable, [each.variable for each in buffers]
    low.add(ir.Run(ir.call("lib.order_of_rows", x, rows, length, ir.TRUE, *arrays)))
    count, number = ir.as_expr(k), rows * k

    def at(element: ir.Expr) -> ir.Load:
        return ir.load(buffers[0].variable, element // count * length + element % count)

    def value(element: ir.Expr, _: ir.Expr) -> ir.Statement:
        place = element // count * length + ir.Convert(INT64, at(element))
        return ir.store(values.variable, element, ir.load(x, place))

    each_element(low, number, ir.ONE, lambda element, _: ir.store(places.variable, element, at(element)))
    each_element(low, number, ir.ONE, value)


def _row_of_table(low: Lowering, table: Dims, places: Dims, row: ir.Expr) -> ir.Expr:
    """The table's row for a row of indices: the row of the same number, unless a dimension of the table is 1."""
    if table[:-1] == places[:-1]:
        return row
    found: ir.Expr = ir.ZERO
    _, coordinates = place_of(places[:-1], row, 0)
    for own, wanted, coordinate in zip(table[:-1], places[:-1], coordinates):
        if own != wanted:  # it is 1, or equal after all: that has been checked
            coordinate = own.compare("==", 1).choose(ir.ZERO, coordinate)
        found = low.assign(found * own + coordinate, "row")
    return found


@emitter("take_along")
def _take_along(low: Lowering, node: Node) -> None:
    array, positions = low.array(node.inputs[0]), low.array(node.inputs[1])
    _need_equal_leads(low, node, array.dims, positions.dims, or_one=True)
    rows, length, count = low.atom(product(positions.dims[:-1])), low.atom(array.dims[-1]), positions.dims[-1]
    out = low.new_buffer(product(positions.dims), array.dtype, node.outputs[0].name)
    low.define(node.outputs[0], Array(out, positions.dims))

    def is_wrong(taken: ir.Expr) -> ir.Expr:
        return ir.either(taken.compare("<", 0), taken.compare(">=", length))

    def check(number: ir.Expr, taken: ir.Var) -> None:
        where, details = place_of(positions.dims, number, 2)
        message = f"indices[{where}] = {{0}} is not in [0, {{1}}) [Op:TakeAlong]"
        low.fail_when(is_wrong(taken), "InvalidArgumentError", message, node, (taken, length, *details), "TakeAlong")

    if low.for_device:

        def one(number: ir.Expr, _: ir.Expr) -> ir.Statement:
            row = _row_of_table(low, array.dims, positions.dims, low.assign(number // count, "row"))
            source = row * length + place_at(positions, number)
            return ir.store(out.variable, number, ir.load(array.buffer.variable, source))

        check_all(low, positions, is_wrong, check)
        each_element(low, rows * count, ir.ONE, one)
        return
    i, j = low.index_name(0), low.index_name(1)
    with low.nested() as start:
        row = _row_of_table(low, array.dims, positions.dims, i)
    with low.nested() as block:
        taken = low.assign(place_at(positions, i * count + j), "taken")
        check(i * count + j, taken)
        low.add(ir.store(out.variable, i * count + j, ir.load(array.buffer.variable, row * length + taken)))
    low.loop(i, rows, [*start, low.for_each(j, count, block)])


def _adjoint_refusal(node: Node) -> str | None:
    rank = node.inputs[1].type.rank  # type: ignore[union-attr]
    if node.inputs[0].dtype.kind not in "iuf":
        return f"elements of {node.inputs[0].dtype.name}"
    if rank is None or node.attrs["axis"] != rank - 1:
        return "an axis other than the last"
    return _unequal_leads(node.attrs["shape"], node.inputs[1].shape, False)


REFUSALS["take_along_grad"] = _adjoint_refusal


@emitter("take_along_grad")
def _take_along_grad(low: Lowering, node: Node) -> None:
    added, positions = low.array(node.inputs[0]), low.array(node.inputs[1])
    dims = filled(low, node, node.attrs["shape"], node.inputs[2:])
    _need_equal_leads(low, node, dims, positions.dims, or_one=False)
    total = zeros(low, node, dims)
    rows, length, count = low.atom(product(positions.dims[:-1])), dims[-1], positions.dims[-1]
    i, j = low.index_name(0), low.index_name(1)
    with low.nested() as block:
        at = low.assign(i * count + j, "at")
        taken = low.assign(ir.Convert(INT64, ir.load(positions.buffer.variable, at)), "taken")
        outside = ir.either(taken.compare("<", 0), taken.compare(">=", length))
        message = f"index {{0}} is not in [0, {{1}}) [Op:{node.op.label}]"
        low.fail_when(outside, "InvalidArgumentError", message, node, (taken, length), node.op.label)
        into = ir.load(total.buffer.variable, i * length + taken)
        low.add(ir.set_to(into, scalars.narrow(into + ir.load(added.buffer.variable, at), added.dtype)))
    low.loop(i, rows, [low.for_each(j, count, block)])
    low.define(node.outputs[0], Array(total.buffer, dims))
