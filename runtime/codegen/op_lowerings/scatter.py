"""Lowerings of reads and writes at index vectors: gather_nd, scatter_nd, tensor_scatter_nd_*.

%y = tensor_scatter_nd_add(%x, [[%i, %j]], [%v])   →   if not (0 <= i < n and 0 <= j < m): return …
                                                       x[i * m + j] = x[i * m + j] + v

Few index vectors that consist of scalars are unrolled; for others there is a loop. The tensor is updated in place if it
has no other user.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from runtime.codegen.kernel import scalars
from runtime.codegen.kernel.names import joined
from runtime.codegen.kernel.values import Array, Buffer, Dims, Scalar, Vector, product
from runtime.codegen.loops.access import total as total_of
from runtime.codegen.loops.scalarize import is_small, items, vector
from runtime.codegen.lower.state import REFUSALS, Lowering, emitter
from runtime.codegen.op_lowerings.gather import place_of
from runtime.codegen.op_lowerings.slice import writable, zeros
from runtime.codegen.op_lowerings.view import bind, filled
from runtime.codegen.symbolic.ranges import Atom, Range, index_of, learn_inside, outside
from runtime.dtypes import bool_, float32
from runtime.graph.ir import Node, Value
from runtime.graph.node_helpers import known_array
from runtime.graph.structural import ASSIGN
from runtime.kernel_ir import ir
from runtime.kernel_ir.types import INT64
from runtime.ops.table import OPS
from runtime.shapes import element_count


def _refusal(node: Node) -> str | None:
    where = {"gather_nd": (1, 0, None), "scatter_nd": (0, None, 1)}.get(node.op.name, (1, 0, 2))
    indices, table, updates = (None if i is None else node.inputs[i].shape for i in where)
    assert indices is not None
    depth = indices[-1]
    if depth is None:
        return "index vectors of unknown length"
    rank = len(node.attrs["shape"] if table is None else table)
    if depth > rank or (rank == 0 and node.op.name != "gather_nd"):
        return "index vectors longer than the tensor's rank"
    return (
        "updates of another rank" if updates is not None and len(updates) != len(indices) - 1 + rank - depth else None
    )


_UPDATES = ["tensor_scatter_nd_update", "tensor_scatter_nd_add", "tensor_scatter_nd_max", "tensor_scatter_nd_min"]
REFUSALS.update(dict.fromkeys([*_UPDATES, "scatter_nd", "gather_nd"], _refusal))


# (offset in the table, number) -> statement
Body = Callable[[ir.Expr, ir.Expr], ir.Statement]


class Places(NamedTuple):
    """What index vectors select in a table."""

    table: Dims
    outer: Dims  # the dimensions of the vectors' batch
    inner: Dims  # the dimensions of what each selects


@emitter(*_UPDATES)
def _scatter(low: Lowering, node: Node) -> None:
    _, indices, updates = node.inputs
    places = _places(low, low.dims(node.inputs[0]), indices)
    new = _updates(low, node, updates, places)
    if not isinstance(low.ref(indices), Vector):
        low.array(indices)
    total = writable(low, node)
    flags = _Flags(low, node, total, indices, new, places) if len(node.outputs) > 1 else None
    if flags is not None and flags.are_wanted:
        flags.read_before()
        _write(low, node, total, indices, flags.new, places, node.op.joins)
        flags.compare()
    else:
        _write(low, node, total, indices, new, places, node.op.joins)


@emitter("scatter_nd")
def _scatter_nd(low: Lowering, node: Node) -> None:
    indices, updates, *holes = node.inputs
    dims = filled(low, node, node.attrs["shape"], holes)
    places = _places(low, dims, indices)
    new = _updates(low, node, updates, places)
    _write(low, node, zeros(low, node, dims), indices, new, places, "add")


@emitter("gather_nd")
def _gather_nd(low: Lowering, node: Node) -> None:
    params, indices = node.inputs
    table = low.array(params)
    places = _places(low, table.dims, indices)
    ref = low.ref(indices)
    if isinstance(ref, Vector) and product(places.outer) == ir.ONE:
        start = _start(low, node, ref.items, places, ir.ZERO, (), _numbers(low, indices))
        view = Array(table.buffer, (*places.outer, *places.inner), None, low.atom(start, "at"), whole=False)
        bind(low, node, view)
        return
    dims = (*places.outer, *places.inner)
    out = low.new_buffer(product(dims), table.dtype, node.outputs[0].name)

    def body(source: ir.Expr, target: ir.Expr) -> ir.Statement:
        return ir.store(out.variable, target, ir.load(table.buffer.variable, source))

    _walk(low, node, indices, places, body)
    low.define(node.outputs[0], Array(out, dims))


def _places(low: Lowering, table: Dims, indices: Value) -> Places:
    return Places(table, tuple(low.dims(indices)[:-1]), tuple(table[indices.shape[-1] :]))


def _updates(low: Lowering, node: Node, updates: Value, places: Places) -> Any:
    """The updates, contiguous in memory or in variables; adds the check of their dimensions."""
    wanted = (*places.outer, *places.inner)
    own = low.dims(updates)
    wrong = [got.compare("!=", size) for got, size in zip(own, wanted) if got != size]
    if wrong:
        details: list[ir.Expr] = []
        shapes = []
        depth = ir.as_expr(len(places.table) - len(places.inner))
        for dims in (own, (*places.outer, depth), places.table, wanted):
            shapes.append(",".join(f"{{{len(details) + k}}}" for k in range(len(dims))))
            details += dims
        message = (
            f"updates of shape [{shapes[0]}] don't fit indices of shape [{shapes[1]}] and a tensor of shape "
            f"[{shapes[2]}]: expected [{shapes[3]}] [Op:{node.op.label}]"
        )
        low.fail_when(ir.either(*wrong), "InvalidArgumentError", message, node, details, node.op.label)
    if is_small(updates) and known_array(updates) is not None:
        return vector(low, updates, items(low, updates))
    ref = low.ref(updates)
    if isinstance(ref, Scalar):
        return Vector(ref.dtype, (low.scalar_name(updates),), (ir.ONE,))
    return ref if isinstance(ref, Vector) else low.array(updates)


def _write(
    low: Lowering, node: Node, total: Array, indices: Value, new: Any, places: Places, joins: str
) -> None:  # fmt: skip
    """Adds the updates at the index vectors. joins: the elementwise op of an element and its update; empty where the
    update replaces the element."""

    def store(place: ir.Expr, value: ir.Expr) -> ir.Statement:
        into = ir.load(total.buffer.variable, place)
        return ir.set_to(into, joined(OPS[joins], into, value, total.dtype) if joins else value)

    ref = low.ref(indices)
    if isinstance(ref, Vector) and isinstance(new, Vector):
        depth = len(places.table) - len(places.inner)
        each = len(new.items) * depth // len(ref.items)
        numbers = _numbers(low, indices)
        stores: list[ir.Statement] = []
        fails_first = _fails_first(low, node)
        for k in range(len(ref.items) // depth):
            own = slice(k * depth, (k + 1) * depth)
            at = _start(low, node, ref.items[own], places, ir.as_expr(k), places.outer, numbers[own])
            start = at if each == 1 else low.atom(at, "at")
            stores += [store(start + j if j else start, v) for j, v in enumerate(new.items[k * each : (k + 1) * each])]
            if not fails_first:
                low.add(*stores)
                stores = []
        low.add(*stores)
    else:
        if _fails_first(low, node) and product(places.outer) != ir.ONE:
            _walk(low, node, indices, places, None)
        source = low.solid(new)
        _walk(low, node, indices, places, lambda place, origin: store(place, ir.load(source.buffer.variable, origin)))
    low.define(node.outputs[0], total)


class _Flags:
    """The further results of an extreme: whether the tensor's old element, and whether an update, equals the new
    element."""

    def __init__(self, low: Lowering, node: Node, total: Array, indices: Value, new: Any, places: Places) -> None:
        self.low, self.node, self.total, self.indices, self.new, self.places = low, node, total, indices, new, places
        region = low.region
        self.are_wanted = any(
            v in region.outputs or not region.live.isdisjoint(region.users.get(v, ())) for v in node.outputs[1:]
        )
        self.at: list[ir.Expr] | None = None

    def _starts(self, ref: Vector) -> list[ir.Expr]:
        """The offset of each update in the table."""
        low, places = self.low, self.places
        depth = len(places.table) - len(places.inner)
        count = len(ref.items) // depth
        each = len(self.new.items) // count
        numbers = _numbers(low, self.indices)
        found: list[ir.Expr] = []
        for k in range(count):
            own = slice(k * depth, (k + 1) * depth)
            place = _start(low, self.node, ref.items[own], places, ir.as_expr(k), places.outer, numbers[own])
            start = low.atom(place, "at")
            found += [start + j if j else start for j in range(each)]
        return found

    def read_before(self) -> None:
        low, total = self.low, self.total.buffer.variable
        ref = low.ref(self.indices)
        if isinstance(ref, Vector) and isinstance(self.new, Vector):
            self.at = self._starts(ref)
            self.before = [low.assign(ir.load(total, place), "before") for place in self.at]
            return
        self.new = low.solid(self.new)
        size = product((*self.places.outer, *self.places.inner))
        self.old = low.new_buffer(size, self.total.dtype, "before")
        old = self.old.variable
        _walk(low, self.node, self.indices, self.places, lambda at, k: ir.store(old, k, ir.load(total, at)))

    def _are_equal(self, a: ir.Expr, b: ir.Expr) -> ir.Expr:
        dtype = self.total.dtype
        wide = float32 if dtype.is_narrow else dtype  # the bits of equal numbers may differ
        return scalars.convert(a, dtype, wide).compare("==", scalars.convert(b, dtype, wide))

    def compare(self) -> None:
        low, total = self.low, self.total.buffer.variable
        dims = (*self.places.outer, *self.places.inner)
        outputs = self.node.outputs[1:]
        if self.at is not None:
            after = [low.assign(ir.load(total, place), "after") for place in self.at]
            for output, values in zip(outputs, (self.before, self.new.items)):
                items = tuple(low.assign(self._are_equal(a, b), output.name) for a, b in zip(values, after))
                low.define(output, Vector(bool_, items, dims) if dims else Scalar(items[0], bool_))
            return
        for output, values in zip(outputs, (self.old, self.new.buffer)):
            found = low.new_buffer(product(dims), bool_, output.name)

            def compared(
                at: ir.Expr, k: ir.Expr, found: Buffer = found, values: Buffer = values
            ) -> ir.Statement:  # fmt: skip
                return ir.store(found.variable, k, self._are_equal(ir.load(values.variable, k), ir.load(total, at)))

            _walk(low, self.node, self.indices, self.places, compared)
            low.define(output, Array(found, dims) if dims else Scalar(low.assign(ir.load(found.variable, 0)), bool_))


def _fails_first(low: Lowering, node: Node) -> bool:
    """Whether all index vectors must be checked before an element changes: an error leaves the old value of a variable
    in the memory (see `buffer_reuse.commits_in_step`)."""
    return any(user.op is ASSIGN for user in low.region.users.get(node.outputs[0], ()))


def _walk(low: Lowering, node: Node, indices: Value, places: Places, body: Body | None) -> None:
    """Adds a loop over the index vectors. body(place, number): the statement for an element of the table, given its
    offset and its number among the selected elements; None only to check the vectors."""
    positions = low.array(indices)
    depth = len(places.table) - len(places.inner)
    count, inner = low.atom(product(places.outer)), low.atom(product(places.inner))
    i, j = low.index_name(0), low.index_name(1)
    with low.nested() as block:
        parts = [ir.load(positions.buffer.variable, i if depth == 1 else i * depth + axis) for axis in range(depth)]
        start = _start(low, node, parts, places, i, places.outer)
        if body is None:
            pass
        elif inner == ir.ONE:
            low.add(body(start, i))
        else:
            at = low.atom(start, "at")
            low.loop(j, inner, [body(at + j, i * inner + j)])
    low.loop(i, count, block)


def _numbers(low: Lowering, indices: Value) -> list[Value | None]:
    """The scalars that were stacked to index vectors in this region, about which more may be known than their
    expressions say; None for vectors from elsewhere."""
    node = indices.node
    if indices.shape and node is not None and node.op.name == "stack" and node.attrs["axis"] == 0:
        return [number for value in node.inputs for number in _numbers(low, value)]
    is_scalar = not indices.shape and isinstance(low.region.env.get(indices), Scalar)
    return [indices] if is_scalar else [None] * (element_count(indices.shape) or 0)


def _start(
    low: Lowering, node: Node, parts: Sequence[ir.Expr], places: Places, number: ir.Expr, outer: Dims,
    values: Sequence[Value | None] = (),
) -> ir.Expr:  # fmt: skip
    """The offset in the table's buffer that an index vector selects; adds its check. number: that of the vector.
    values: its indices as graph values, if known."""
    table = places.table
    values = values or [None] * len(parts)
    found: list[tuple[Atom, Range | None]] = [
        (low.assign(ir.Convert(INT64, part), "row"), None) if value is None else index_of(low, value, "row")
        for value, part in zip(values, parts)
    ]
    rows = [row for row, _ in found]
    if not rows:
        return ir.ZERO
    outsides = [outside(low, row, known, size) for (row, known), size in zip(found, table)]
    wrong = [test for each in outsides if each is not None for test in ir.alternatives(each)]
    where, parts_of_where = place_of(outer, number, len(rows) + len(table))
    details = [*rows, *table, *parts_of_where]
    vector = ",".join(f"{{{k}}}" for k in range(len(rows)))
    shape = ",".join(f"{{{k}}}" for k in range(len(rows), len(rows) + len(table)))
    message = f"indices[{where}] = [{vector}] does not index into shape [{shape}] [Op:{node.op.label}]"
    if wrong:
        low.fail_when(ir.either(*wrong), "InvalidArgumentError", message, node, details, node.op.label)
    for value, size in zip(values, table):
        if value is not None:
            learn_inside(low, value, size)
    terms: list[ir.Expr] = []
    for axis, row in enumerate(rows):
        stride = product(table[axis + 1 :])
        terms.append(row if stride == ir.ONE else row * stride)
    return total_of(terms)
