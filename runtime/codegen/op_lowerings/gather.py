"""Lowerings of reads and writes at computed positions. All are checked: an index out of range leaves the kernel."""

from __future__ import annotations

from typing import Any

from runtime.codegen.kernel import scalars
from runtime.codegen.kernel.values import Array, Buffer, Dims, Scalar, product
from runtime.codegen.lower.state import Lowering, emitter
from runtime.codegen.op_lowerings.computed_rows import check_all, each_element, join_rows, place_at
from runtime.codegen.op_lowerings.slice import row_view, writable, write, zeros
from runtime.codegen.op_lowerings.view import bind, filled
from runtime.codegen.symbolic.ranges import Atom, index_of, is_below, known_range, learn_inside, outside
from runtime.graph.ir import Node, Value
from runtime.kernel_ir import ir


def _any_array(low: Lowering, value: Value) -> Array:
    ref = low.ref(value)
    return ref if isinstance(ref, Array) else low.array(value)


# --- gather and its adjoints -----------------------------------------------------------------------------------------


@emitter("gather")
def _gather(low: Lowering, node: Node) -> None:
    params, indices = node.inputs
    axis = node.attrs["axis"]
    if not indices.type.rank:  # type: ignore[union-attr]
        array = _any_array(low, params)
        row = _checked(low, node, indices, array.dims[axis], "indices = {0} is not in [0, {1}) [Op:GatherV2]")
        if axis == 0:
            bind(low, node, row_view(low, array, row))
            return
        strides = low.strides(array)
        offset = row * strides[axis] if array.offset == ir.ZERO else array.offset + row * strides[axis]
        dims = array.dims[:axis] + array.dims[axis + 1 :]
        view = Array(array.buffer, dims, strides[:axis] + strides[axis + 1 :], low.atom(offset, "at"), whole=False)
        bind(low, node, view)
        return
    array, positions = low.array(params), low.array(indices)
    dims = array.dims[:axis] + positions.dims + array.dims[axis + 1 :]
    out = low.new_buffer(product(dims), array.dtype, node.outputs[0].name)

    def body(source: ir.Expr, target: ir.Expr) -> ir.Statement:
        return ir.store(out.variable, target, ir.load(array.buffer.variable, source))

    if low.for_device:
        _check_places(low, node, positions, array.dims[axis], "GatherV2")
        _each_on_device(low, array.dims, positions, axis, body)
    else:
        _walk(low, node, array.dims, positions, axis, "GatherV2", body)
    low.define(node.outputs[0], Array(out, dims))


def _checked(
    low: Lowering, node: Node, index: Value, size: Atom, message: str, error: str = "InvalidArgumentError"
) -> Atom:
    """A rank-0 index as a 64-bit variable or constant; adds the check that it is in [0, size)."""
    row, known = index_of(low, index, "row")
    wrong = outside(low, row, known, size)
    if wrong is not None:
        low.fail_when(wrong, error, message, node, (row, size), node.op.label)
        learn_inside(low, index, size)
    return row


def _walk(low: Lowering, node: Node, table: Dims, positions: Array, axis: int, label: str, body: Any) -> None:
    """Adds loops over all slices that `positions` selects along `axis` of an array with dimensions `table`.

    body(source, target): gives the innermost statement for offsets in the table and in the gathered array.
    """
    outer, inner = low.atom(product(table[:axis])), low.atom(product(table[axis + 1 :]))
    count = low.atom(product(positions.dims))
    names = [low.index_name(depth) for depth in range(3)]
    with low.nested() as block:
        row = low.assign(place_at(positions, names[0]), "row")
        _check_place(low, node, positions, names[0], row, table[axis], label)
    o, j = names[1], names[2]
    base_source: ir.Expr = row if outer == ir.ONE else o * table[axis] + row
    base_target: ir.Expr = names[0] if outer == ir.ONE else o * count + names[0]
    if inner == ir.ONE:
        innermost = body(base_source, base_target)
    else:
        innermost = low.for_each(j, inner, [body(base_source * inner + j, base_target * inner + j)])
    low.loop(names[0], count, [*block, innermost if outer == ir.ONE else low.for_each(o, outer, [innermost])])


def _check_place(
    low: Lowering, node: Node, positions: Array, number: ir.Expr, row: ir.Var, size: Atom, label: str
) -> None:
    where, details = place_of(positions.dims, number, 2)
    message = f"indices[{where}] = {{0}} is not in [0, {{1}}) [Op:{label}]"
    wrong = ir.either(row.compare("<", 0), row.compare(">=", size))
    low.fail_when(wrong, "InvalidArgumentError", message, node, (row, size, *details), label)


def _check_places(low: Lowering, node: Node, positions: Array, size: Atom, label: str) -> None:
    check_all(
        low, positions, lambda row: ir.either(row.compare("<", 0), row.compare(">=", size)),
        lambda number, row: _check_place(low, node, positions, number, row, size, label),
    )  # fmt: skip


def _each_on_device(low: Lowering, table: Dims, positions: Array, axis: int, body: Any) -> None:
    """`_walk` of places that were checked, where each element is stored once."""
    outer, inner = low.atom(product(table[:axis])), low.atom(product(table[axis + 1 :]))
    count = low.atom(product(positions.dims))

    def one(row: ir.Expr, element: ir.Expr) -> ir.Statement:
        place = place_at(positions, row if outer == ir.ONE else row % count)
        source = place if outer == ir.ONE else row // count * table[axis] + place
        if inner == ir.ONE:
            return body(source, row)
        return body(source * inner + element, row * inner + element)

    each_element(low, count if outer == ir.ONE else outer * count, inner, one)


def place_of(dims: Dims, index: ir.Expr, first: int) -> tuple[str, list[ir.Expr]]:
    """The position of a flat index as a message shows it (`{2},{3}`, numbered from `first` on), and its components."""
    parts: list[ir.Expr] = []
    for axis in range(len(dims)):
        rest = product(dims[axis + 1 :])
        place = index if rest == ir.ONE else index // rest
        parts.append(place if axis == 0 else place % dims[axis])
    return ",".join(f"{{{first + position}}}" for position in range(len(dims))), parts


@emitter("gather_grad")
def _gather_grad(low: Lowering, node: Node) -> None:
    dims = filled(low, node, node.attrs["shape"], node.inputs[2:])
    total = zeros(low, node, dims)
    _scatter_add(low, node, total, node.inputs[1], node.inputs[0], "GatherGrad")


@emitter("index_add")
def _index_add(low: Lowering, node: Node) -> None:
    # The operands come first, since making the target writable may lower pending groups that read it.
    for value in node.inputs[1:]:
        low.ref(value)
    total = writable(low, node)
    _scatter_add(low, node, total, node.inputs[1], node.inputs[2], "IndexAdd")


def _scatter_add(low: Lowering, node: Node, total: Array, indices: Value, values: Value, label: str) -> None:
    axis = node.attrs["axis"]
    if not indices.type.rank:  # type: ignore[union-attr]
        row = _checked(low, node, indices, total.dims[axis], f"indices = {{0}} is not in [0, {{1}}) [Op:{label}]")
        strides = low.strides(total)
        dims = total.dims[:axis] + total.dims[axis + 1 :]
        view = Array(total.buffer, dims, strides[:axis] + strides[axis + 1 :], low.atom(row * strides[axis], "at"))
        write(low, node, row_view(low, total, row) if axis == 0 else view, values, add=True)
    else:
        source, positions = low.array(values), low.array(indices)

        def joined(into: ir.Expr, origin: ir.Expr) -> ir.Expr:
            return scalars.narrow(into + ir.load(source.buffer.variable, origin), total.dtype)

        def body(place: ir.Expr, origin: ir.Expr) -> ir.Statement:
            into = ir.load(total.buffer.variable, place)
            return ir.set_to(into, joined(into, origin))

        if low.for_device and product(total.dims[:axis]) == ir.ONE:
            _check_places(low, node, positions, total.dims[axis], label)
            join_rows(low, positions, low.atom(product(total.dims[axis + 1 :])), total.buffer, joined)
            low.define(node.outputs[0], total)
            return
        _walk(low, node, total.dims, positions, axis, label, body)
    low.define(node.outputs[0], total)


# --- rows ------------------------------------------------------------------------------------------------------------


@emitter("row_update")
def _row_update(low: Lowering, node: Node) -> None:
    buffer, index, value = node.inputs
    low.ref(value)
    message = "index {0} is not in [0, {1}) [Op:RowUpdate]"
    row = _checked(low, node, index, low.dims(buffer)[0], message, "InvalidArgumentError")
    total = writable(low, node)
    write(low, node, row_view(low, total, row), value)
    low.define(node.outputs[0], total)


@emitter("row_add")
def _row_add(low: Lowering, node: Node) -> None:
    low.ref(node.inputs[2])
    _write_existing_row(low, node, writable(low, node), add=True)


@emitter("row_grad")
def _row_grad(low: Lowering, node: Node) -> None:
    _write_existing_row(low, node, zeros(low, node, low.dims(node.inputs[0])))


def _write_existing_row(low: Lowering, node: Node, total: Array, add: bool = False) -> None:
    """Adds the write of a row, if the array has this row."""
    _, index, value = node.inputs
    value_ref = low.ref(value)
    if isinstance(value_ref, Scalar):
        low.scalar_name(value)
    row, known = index_of(low, index, "row")
    wrong = outside(low, row, known, total.dims[0])
    with low.nested() as block:
        write(low, node, row_view(low, total, row), value, add)
    if wrong is None:
        low.block += block
    else:
        low.branch(ir.negated(wrong), block)
    low.define(node.outputs[0], total)


@emitter("row")
def _row(low: Lowering, node: Node) -> None:
    array = _any_array(low, node.inputs[0])
    size = low.size_of(node.inputs[2]) if len(node.inputs) > 2 else array.dims[0]
    message = "Tried to read from index {0} but array size is: {1}"
    row = _checked(low, node, node.inputs[1], size, message, "OutOfRangeError")
    if size != array.dims[0] and outside(low, row, known_range(low.ref(node.inputs[1])), array.dims[0]) is not None:
        output = node.outputs[0]
        if output.type.rank == 0:  # type: ignore[union-attr]
            found = low.assign(scalars.literal(0, array.dtype), output.name)
            view = row_view(low, array, row)
            value = ir.load(view.buffer.variable, view.offset)
            low.branch(row.compare("<", array.dims[0]), [ir.assign(found, value)])
            low.define(output, Scalar(found, array.dtype))
            return
        array = _resized(low, low.solid(array), low.atom(ir.call("max", size, array.dims[0])), output.name)
    bind(low, node, row_view(low, array, row))


# --- growable arrays -------------------------------------------------------------------------------------------------


@emitter("array_write")
def _array_write(low: Lowering, node: Node) -> None:
    buffer, index, value, size = node.inputs
    low.ref(value)
    (row, known), least = index_of(low, index, "row"), low.size_of(size)
    if known is None or not known.is_nonnegative:
        message = "Tried to write to index {0}, which is negative"
        low.fail_when(row.compare("<", 0), "OutOfRangeError", message, node, (row,), node.op.label)
    if node.attrs["fixed"] and not is_below(low, known, least):
        message = "Tried to write to index {0} but array is not resizeable and size is: {1}"
        low.fail_when(row.compare(">=", least), "OutOfRangeError", message, node, (row, least), node.op.label)
    learn_inside(low, index, least if node.attrs["fixed"] else None)
    old = low.dims(buffer)
    element = low.dims(value)
    unequal = [got.compare("!=", wanted) for got, wanted in zip(old[1:], element) if got != wanted]
    if unequal:
        shapes = [str(tuple(f"{{{start + i}}}" for i in range(len(element)))) for start in (0, len(element))]
        given, elements = (shape.replace("'", "") for shape in shapes)
        message = f"A value of shape {given} can't be written to an array of elements of shape {elements}"
        wrong = ir.both(old[0].compare(">", 0), ir.either(*unequal))
        low.fail_when(wrong, "InvalidArgumentError", message, node, (*element, *old[1:]), node.op.label)
    total = writable(low, node)
    if node.attrs["fixed"] and least == old[0]:
        write(low, node, row_view(low, total, row), value)
        low.define(node.outputs[0], total)
        return
    length = low.atom(product(element), "length")
    # This memory has no other user, so its variable may hold the grown array.
    rows, data = low.assign(old[0], "rows"), total.buffer.variable
    capacity = ir.size_variable(low.names.fresh("capacity"))
    growth: ir.Block = [
        ir.assign(capacity, ir.call("lib.capacity", rows, row + 1, least)),
        ir.assign(data, ir.call("lib.resized", data, rows * length, capacity * length)),
        ir.assign(rows, capacity),
    ]
    low.branch(rows.compare("<", ir.call("max", least, row + 1)), growth)
    grown = Array(total.buffer, (rows, *element))
    write(low, node, row_view(low, grown, row), value)
    low.define(node.outputs[0], grown)


@emitter("resize_rows")
def _resize_rows(low: Lowering, node: Node) -> None:
    array = low.array(node.inputs[0])
    count = low.size_of(node.inputs[1])
    if count == array.dims[0]:
        low.define(node.outputs[0], array)
        return
    if not low.is_size(count):
        count = low.assign(ir.call("max", count, 0), "n")
    if node.attrs["within"]:
        count = low.assign(ir.call("min", count, array.dims[0]), "n")
        low.define(node.outputs[0], Array(array.buffer, (count, *array.dims[1:]), None, array.offset, whole=False))
        return
    low.define(node.outputs[0], _resized(low, array, count, node.outputs[0].name))


def _resized(low: Lowering, array: Array, count: Atom, name: str | None) -> Array:
    """The first `count` rows of an array; rows that don't exist are zeros."""
    length = low.atom(product(array.dims[1:]), "length")
    grown = ir.call("lib.resized", array.buffer.variable, array.dims[0] * length, count * length)
    resized = Buffer(low.assign(grown, name or "rows").name, array.dtype)
    resized.may_be(array.buffer)
    return Array(resized, (count, *array.dims[1:]))
