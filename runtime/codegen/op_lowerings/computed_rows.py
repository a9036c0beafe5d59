"""Rows at computed places, in kernels for GPUs.

The places are checked first, all at once, so that the loops over rows can't end early. Rows that are added up, or
joined otherwise, are sorted by their places; each place then joins its rows in their order, as the processor does:

    for i in range(n):                             lib.order_of_rows(places, …, order, …)
        place = places[i]                          for k in range(n): ranked[k] = places[order[k]]
        for j in range(m):                         for k in range(n):                       # warps share the rows
            y[place * m + j] += x[i * m + j]   →       if ranked[k] isn't ranked[k - 1]:
                                                           end = the first behind k that differs
                                                           for j in range(m):               # and lanes the elements
                                                               total = y[ranked[k] * m + j]
                                                               for r in range(k, end):
                                                                   total += x[order[r] * m + j]
                                                               y[ranked[k] * m + j] = total

Otherwise each thread would go through all places, for the elements that are its own.
"""

from __future__ import annotations

from collections.abc import Callable

from runtime import dtypes
from runtime.codegen import cost_model
from runtime.codegen.kernel.values import Array, Buffer, product
from runtime.codegen.lower.state import Lowering
from runtime.codegen.symbolic.ranges import Atom
from runtime.kernel_ir import ir
from runtime.kernel_ir.types import INT64

_ROW, _ELEMENT, _TERM = 0, 1, 2  # depths of loops


def place_at(places: Array, number: ir.Expr) -> ir.Expr:
    return ir.Convert(INT64, ir.load(places.buffer.variable, number))


def check_all(
    low: Lowering, places: Array, is_wrong: Callable[[ir.Expr], ir.Expr], fail: Callable[[ir.Var, ir.Var], None]
) -> None:
    """Adds the check of all places: whether one is wrong, and if so, which is the first. fail(number, place): adds the
    check of one."""
    count, number = low.atom(product(places.dims)), low.index_name(_ROW)
    wrong = low.assign(ir.ZERO, "wrong")
    with low.nested() as block:
        place = low.assign(place_at(places, number), "place")
        low.add(ir.assign(wrong, ir.Binary("|", wrong, is_wrong(place).choose(ir.ONE, ir.ZERO))))
    low.nest(number, count, block, False, may_join=False, independent=True)
    with low.nested() as block:
        fail(number, low.assign(place_at(places, number), "place"))
    with low.nested() as search:
        low.loop(number, count, block)
    low.branch(wrong.compare("!=", 0), search)


def each_element(low: Lowering, rows: ir.Expr, inner: Atom, body: Callable[[ir.Expr, ir.Expr], ir.Statement]) -> None:
    """Adds loops over rows and their elements, which threads share. body(row, element): stores an element of its own;
    of rows with one element, 0."""
    row, element = low.index_name(_ROW), low.index_name(_ELEMENT)
    is_scalar = inner == ir.ONE
    with low.nested() as block:
        low.add(body(row, ir.ZERO if is_scalar else element))
    if not is_scalar:
        with low.nested() as outer:
            low.nest(element, inner, block, False, may_join=False, independent=True)
        block = outer
    low.nest(row, low.atom(rows), block, False, may_join=False, independent=True)


def join_rows(
    low: Lowering, places: Array, inner: Atom, out: Buffer, join: Callable[[ir.Expr, ir.Expr], ir.Expr]
) -> None:
    """Joins row i of `inner` elements with that of `out` whose number is place i, for all places that aren't negative.
    join(total, source): what a total becomes with the element at `source`."""
    count = low.atom(product(places.dims))
    known = low.static_size(count)
    if known is not None and known <= cost_model.DEVICE_FEW_ROWS:
        _one_by_one(low, places, count, inner, out, join)
        return
    order = low.new_buffer(count, dtypes.int32, "order")
    other_order = low.new_buffer(count, dtypes.int32, "other_order")
    dtype = places.buffer.dtype
    keys, other_keys = low.new_buffer(count, dtype, "keys"), low.new_buffer(count, dtype, "other_keys")
    arrays = order.variable, keys.variable, other_keys.variable, other_order.variable
    low.add(ir.Run(ir.call("lib.order_of_rows", places.buffer.variable, 1, count, ir.FALSE, *arrays)))
    ranked = low.new_buffer(count, dtype, "ranked")
    k, j, r = (low.index_name(depth) for depth in (_ROW, _ELEMENT, _TERM))
    of_order = ir.load(places.buffer.variable, ir.Convert(INT64, ir.load(order.variable, k)))
    low.nest(k, count, [ir.store(ranked.variable, k, of_order)], False, may_join=False, independent=True)
    with low.nested() as block:
        own = low.assign(ir.load(ranked.variable, k), "own")
        before = low.assign(ir.load(ranked.variable, ir.call("max", k - 1, 0)), "before")
        place = low.assign(ir.Convert(INT64, own), "place")
        starts = ir.both(ir.either(k.compare("==", 0), before.compare("!=", own)), place.compare(">=", 0))
        width = low.assign(starts.choose(inner, ir.ZERO), "width")
        behind = low.assign(ir.call("lib.place_in", ranked.variable, k, count - k, own, ir.TRUE), "behind")
        begin = low.assign(place * inner, "begin")

        with low.nested() as element:
            total = low.assign(ir.load(out.variable, begin + j), "total")
            source = ir.Convert(INT64, ir.load(order.variable, r)) * inner + j
            low.loop(r, (k, k + behind), [ir.assign(total, join(total, source))])
            low.add(ir.store(out.variable, begin + j, total))
        low.nest(j, width, element, False, may_join=False, independent=True)
    low.nest(k, count, block, False, may_join=False, independent=True)


def _one_by_one(
    low: Lowering, places: Array, count: Atom, inner: Atom, out: Buffer, join: Callable[[ir.Expr, ir.Expr], ir.Expr]
) -> None:
    """Lowers `join_rows` for few rows: a loop over the rows, one after the other."""
    i, j = low.index_name(_ROW), low.index_name(_ELEMENT)

    def joined(at: ir.Expr, source: ir.Expr) -> ir.Statement:
        into = ir.load(out.variable, at)
        return ir.set_to(into, join(into, source))

    with low.nested() as block:
        place = low.assign(place_at(places, i), "place")
        row = (
            joined(place, i) if inner == ir.ONE else low.for_each(j, inner, [joined(place * inner + j, i * inner + j)])
        )
        low.branch(place.compare(">=", 0), [row])
    low.loop(i, count, block)
