"""Lowerings of ops that select elements: the size of their result is known once the elements have been counted.

%y = boolean_mask(%x[n], %mask[n])  →   for c in range(chunks):             # on threads, where there is much to do
                                            counts[c] = the true elements of mask[c * 128 : (c + 1) * 128]
                                        total = 0
                                        for c in range(chunks):
                                            starts[c] = total
                                            total = total + counts[c]
                                        y = np.empty(total, np.float32)
                                        for c in range(chunks):             # on threads
                                            at, end, i = starts[c], starts[c] + counts[c], c * 128
                                            while at < end:
                                                y[at] = x[i]
                                                at = at + np.int64(mask[i])
                                                i = i + 1

The elements keep their order, whatever the number of threads. An element that isn't selected is written as well, and
overwritten by the next one: so no branch depends on the mask.
"""

from __future__ import annotations

from collections.abc import Callable

from runtime import dtypes
from runtime.codegen import cost_model
from runtime.codegen.kernel import scalars
from runtime.codegen.kernel.values import Array, Buffer, product
from runtime.codegen.loops.loop_nest import fail_unless_shapes_fit
from runtime.codegen.lower.state import Lowering, emitter
from runtime.codegen.symbolic.ranges import Atom
from runtime.dtypes import DType
from runtime.graph.ir import Node
from runtime.kernel_ir import ir
from runtime.kernel_ir.types import INT32, INT64, UINT64


class _Chunks:
    """The elements of an array that are true, or not zero, counted in chunks.

    count: the number of all of them, as an atom.
    """

    def __init__(self, low: Lowering, node: Node, flags: Array) -> None:
        self._low, self._node, self._flags = low, node, flags
        self._size = low.product(flags.dims)
        self._length = cost_model.DEVICE_SELECTION_CHUNK if low.for_device else cost_model.SELECTION_CHUNK
        self._chunks = low.assign((self._size + (self._length - 1)) // self._length, "chunks")
        self._counts, self._starts = (
            low.new_buffer(self._chunks, dtypes.int64, base).variable for base in ("counts", "starts")
        )
        self._chunk, self._place = low.index_name(0), low.index_name(1)
        self._add_counts()
        self.count = self._add_starts()

    def _is_true(self, place: ir.Expr) -> ir.Expr:
        value = ir.load(self._flags.buffer.variable, place)
        return value if self._flags.dtype.is_bool else value.compare("!=", scalars.literal(0, self._flags.dtype))

    def _add_counts(self) -> None:
        low = self._low
        with low.nested() as block:
            first = low.assign(self._chunk * self._length, "begin")
            last = low.assign(ir.call("min", first + self._length, self._size), "end")
            own = low.assign(ir.Const(0, INT32), "count")
            step = ir.assign(own, ir.Convert(INT32, own + ir.Convert(INT32, self._is_true(self._place))))
            low.loop(self._place, (first, last), [step])
            low.add(ir.store(self._counts, self._chunk, ir.Convert(INT64, own)))
        low.nest(self._chunk, self._chunks, block, low.is_large([self._node]), may_join=False)

    def _add_starts(self) -> Atom:
        low = self._low
        total = low.assign(ir.ZERO, "total")
        with low.nested() as block:
            low.add(ir.store(self._starts, self._chunk, total))
            low.add(ir.assign(total, total + ir.load(self._counts, self._chunk)))
        low.loop(self._chunk, self._chunks, block)
        return low.assign(total, "n")

    def fill(self, dtype: DType, base: str | None, element: Callable[[ir.Expr], ir.Expr]) -> Buffer:
        """New memory with what `element` gives for the offset of each selected element."""
        low = self._low
        out = low.new_buffer(self.count, dtype, base)
        with low.nested() as block:
            at = low.assign(ir.load(self._starts, self._chunk), "at")
            end = low.assign(at + ir.load(self._counts, self._chunk), "end")
            place = low.assign(self._chunk * self._length, "place")
            low.add(
                ir.While(
                    at.compare("<", end),
                    [
                        ir.store(out.variable, at, element(place)),
                        ir.assign(at, at + ir.Convert(INT64, self._is_true(place))),
                        ir.assign(place, place + 1),
                    ],
                )
            )
        low.nest(self._chunk, self._chunks, block, low.is_large([self._node]), may_join=False, independent=True)
        return out


def _places(low: Lowering, chunks: _Chunks) -> Buffer:
    """The offsets of the selected elements."""
    return chunks.fill(dtypes.int64, "places", lambda place: place)


@emitter("where_true")
def _where_true(low: Lowering, node: Node) -> None:
    flags, output = low.array(node.inputs[0]), node.outputs[0]
    chunks = _Chunks(low, node, flags)
    rank = len(flags.dims)
    if rank == 1:
        found = chunks.fill(dtypes.int64, output.name, lambda place: place)
        low.define(output, Array(found, (chunks.count, ir.ONE)))
        return
    out = low.new_buffer(chunks.count * rank, dtypes.int64, output.name)
    if rank:
        places, i = _places(low, chunks), low.index_name(0)
        with low.nested() as block:
            rest: ir.Expr = low.assign(ir.load(places.variable, i), "place")
            for axis in range(rank - 1):
                size = product(flags.dims[axis + 1 :])
                coordinate = low.assign(rest // size, "at")
                low.add(ir.store(out.variable, i * rank + axis, coordinate))
                rest = low.assign(rest - coordinate * size, "rest")
            low.add(ir.store(out.variable, i * rank + (rank - 1), rest))
        low.nest(i, chunks.count, block, low.is_large([node]))
    low.define(output, Array(out, (chunks.count, low.static_dim(rank))))


@emitter("boolean_mask")
def _boolean_mask(low: Lowering, node: Node) -> None:
    array, flags = low.array(node.inputs[0]), low.array(node.inputs[1])
    output = node.outputs[0]
    lead, rest = array.dims[: len(flags.dims)], array.dims[len(flags.dims) :]
    wrong = [a.compare("!=", b) for a, b in zip(lead, flags.dims) if a != b]
    if wrong:
        fail_unless_shapes_fit(low, ir.either(*wrong), node, (lead, flags.dims), "Shapes {} and {} are incompatible")
    chunks = _Chunks(low, node, flags)
    inner = low.atom(product(rest))
    if inner == ir.ONE:
        out = chunks.fill(array.dtype, output.name, lambda place: ir.load(array.buffer.variable, place))
    else:
        places, i, j = _places(low, chunks), low.index_name(0), low.index_name(1)
        out = low.new_buffer(chunks.count * inner, array.dtype, output.name)
        with low.nested() as block:
            row = low.assign(ir.load(places.variable, i) * inner, "row")
            low.loop(j, inner, [ir.store(out.variable, i * inner + j, ir.load(array.buffer.variable, row + j))])
        low.nest(i, chunks.count, block, low.is_large([node]))
    low.define(output, Array(out, (chunks.count, *rest)))


@emitter("repeated_positions")
def _repeated_positions(low: Lowering, node: Node) -> None:
    times, output = low.array(node.inputs[0]), node.outputs[0]
    size = low.product(times.dims)
    i, j = low.index_name(0), low.index_name(1)

    def own() -> ir.Expr:
        return ir.Convert(INT64, ir.load(times.buffer.variable, i))

    if not times.dtype.is_unsigned:
        least = low.assign(ir.ZERO, "least")
        with low.nested() as block:
            value = low.assign(own(), "value")
            low.add(ir.assign(least, value.compare("<", least).choose(value, least)))
        low.loop(i, size, block)
        message = f"repeats must not be negative [Op:{node.op.label}]"
        low.fail_when(least.compare("<", 0), "InvalidArgumentError", message, node, (), node.op.label)
    starts, total = low.new_buffer(size, dtypes.int64, "starts").variable, low.assign(ir.ZERO, "total")
    low.loop(i, size, [ir.store(starts, i, total), ir.assign(total, total + own())])
    count = low.assign(total, "n")
    out = low.new_buffer(count, output.dtype, output.name)
    with low.nested() as block:
        begin = low.assign(ir.load(starts, i), "begin")
        store = ir.store(out.variable, j, ir.Convert(scalars.machine_type(output.dtype), i))
        low.loop(j, (begin, begin + own()), [store])
    low.nest(i, size, block, low.is_large([node]), may_join=False, independent=True)
    low.define(output, Array(out, (count,)))


@emitter("unique")
def _unique(low: Lowering, node: Node) -> None:
    array = low.array(node.inputs[0])
    values, numbers, counts = node.outputs
    size, i = low.product(array.dims), low.index_name(0)
    kind = scalars.machine_type(numbers.dtype)

    def key(element: ir.Expr) -> ir.Expr:
        if not array.dtype.is_floating:
            return ir.Convert(UINT64, element)
        # Zeros are equal, whatever their signs.
        return ir.Convert(UINT64, ir.call("lib.as_bits", element + scalars.literal(0, array.dtype)))

    keys = low.new_buffer(size, dtypes.uint64, "keys").variable
    low.nest(i, size, [ir.store(keys, i, key(ir.load(array.buffer.variable, i)))], False)
    width = low.assign(ir.call("lib.hash_width", size), "width")
    table = low.new_buffer(ir.Binary("<<", ir.ONE, width), numbers.dtype, "table").variable
    firsts = low.new_buffer(size, numbers.dtype, "firsts").variable
    found = low.new_buffer(size, numbers.dtype, numbers.name)
    call = ir.call("lib.distinct", array.buffer.variable, keys, size, table, width, firsts, found.variable)
    count = low.assign(call, "n")
    out = low.new_buffer(count, array.dtype, values.name)
    low.nest(i, count, [ir.store(out.variable, i, ir.load(array.buffer.variable, ir.load(firsts, i)))], False)
    low.define(values, Array(out, (count,)))
    low.define(numbers, Array(found, array.dims))
    if low.region.uses[counts]:
        times = low.new_buffer(count, numbers.dtype, counts.name)
        low.loop(i, count, [ir.store(times.variable, i, ir.Const(0, kind))])
        own = ir.load(times.variable, ir.load(found.variable, i))
        low.loop(i, size, [ir.set_to(own, ir.Convert(kind, own + ir.Const(1, kind)))])
        low.define(counts, Array(times, (count,)))
