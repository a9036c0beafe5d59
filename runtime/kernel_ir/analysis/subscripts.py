"""Subscripts: which elements the trips of a loop access.

for i in range(n):
    row = i * m
    for j in range(m):
        a[row + j] = x[j]         a at i * m + j, which no two trips of `i` have in common; x at j
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from runtime.kernel_ir import ir, simplify
from runtime.kernel_ir.analysis.accesses import has_memory_reads
from runtime.kernel_ir.analysis.polynomial import Polynomial
from runtime.kernel_ir.analysis.uses import assignment_counts
from runtime.kernel_ir.types import INT64


def _polynomial(item: ir.Expr, of_other: Callable[[ir.Expr], Polynomial | None]) -> Polynomial | None:
    """A sum of products as a polynomial; None if a part isn't one. of_other: gives those of other expressions."""
    if isinstance(item, ir.Const) and isinstance(item.value, int):
        return Polynomial.of(int(item.value))
    if isinstance(item, ir.Binary) and item.op in "+-*":
        left, right = _polynomial(item.left, of_other), _polynomial(item.right, of_other)
        if left is None or right is None:
            return None
        return left * right if item.op == "*" else left + right if item.op == "+" else left - right
    return of_other(item)


def fixed_sizes(function: ir.Function) -> dict[str, Polynomial]:
    """The sizes that a function computes outside of loops and branches, once, as polynomials of others."""
    times = assignment_counts(ir.walk(function.body))
    found: dict[str, Polynomial] = {}

    def of_variable(item: ir.Expr) -> Polynomial | None:
        if not isinstance(item, ir.Var):
            return None
        is_fixed = times[item.name] == (item.name not in function.parameters)
        return found.get(item.name) or (Polynomial.of(item) if is_fixed else None)

    for item in function.body:
        if isinstance(item, ir.Assign) and len(item.targets) == 1 and times[item.targets[0]] == 1:
            sums = [each for each in ir.subexpressions(item.value) if isinstance(each, ir.Binary)]
            wraps = any(each.type != INT64 for each in sums)
            value = None if wraps else _polynomial(item.value, of_variable)
            if value is not None and item.targets[0] not in function.parameters:
                found[item.targets[0]] = value
    return found


class Subscripts:
    """Offsets in arrays as polynomials of loop invariants and of the indices of inner loops."""

    def __init__(self, loop: ir.For, sizes: Mapping[str, Polynomial]) -> None:
        """sizes: see `fixed_sizes`."""
        self._index, self._loop, self._sizes = loop.index, loop, sizes
        self._inner: dict[str, list[ir.For]] = {}
        self._values: dict[str, ir.Expr | None] = {}
        for item in ir.walk(loop.body):
            if isinstance(item, ir.For):
                self._inner.setdefault(item.index, []).append(item)
            for name in ir.targets(item):
                once = isinstance(item, ir.Assign) and len(item.targets) == 1 and name not in self._values
                self._values[name] = item.value if once else None  # type: ignore[union-attr]

    def terms(self, item: ir.Expr) -> Polynomial | None:
        """An offset as a polynomial; None if it isn't one."""
        return _polynomial(item, self._term)

    def _term(self, item: ir.Expr) -> Polynomial | None:
        if isinstance(item, ir.Var):
            if item.name == self._index or item.name in self._inner:
                return Polynomial.of(item)
            if item.name not in self._values:
                return self._sizes.get(item.name) or Polynomial.of(item)
            value = self._values[item.name]
            return None if value is None else self.terms(value)
        if isinstance(item, ir.Convert) and item.target.kind in "iu" and item.target.bits == 64:
            return self.terms(item.operand)
        is_known = not self._changes(item) and not has_memory_reads(item)
        return Polynomial.of(f"({item})") if is_known else None

    def _changes(self, item: ir.Expr) -> bool:
        names = ir.variables(item)
        return self._index in names or not names.isdisjoint(self._inner) or not names.isdisjoint(self._values)

    def depends(self, terms: Polynomial) -> bool:
        """Whether an offset depends on the index, and on nothing that other loops' indices are multiplied by."""
        factor = terms.factor_of(self._index)
        return factor is not None and bool(factor.terms) and factor.variables.isdisjoint(self._inner)

    def are_apart(self, found: Sequence[Polynomial]) -> bool:
        """Whether two trips never have an offset in common: the range of the inner loops' terms, and the constants in
        which the offsets differ, are less than the distance between trips."""
        terms = found[0]
        step = terms.factor_of(self._index)
        offsets = [(each - terms).number for each in found]
        numbers = [offset for offset in offsets if offset is not None]
        if step is None or len(numbers) < len(offsets):
            return False
        spread = max(numbers) - min(numbers)
        if spread and abs(step.number or 0) <= spread:
            return False
        inner = {name: terms.factor_of(name) for name in terms.variables & self._inner.keys()}
        span = Polynomial.of(1)
        if spread and inner:
            return False
        # As with the digits of a number, an index's factor has to be the product of the sizes of the indices before it.
        while inner:
            name = next((name for name, factor in inner.items() if factor == span), None)
            if name is None:
                if step is None or step != span:
                    return False
                loops, step = [self._loop], None
            else:
                del inner[name]
                loops = self._inner[name]
            sizes = [self.terms(loop.stop) for loop in loops]
            size = sizes[0]
            if (
                size is None
                or any(each != size for each in sizes)
                or any(loop.start != ir.ZERO or loop.step != ir.ONE for loop in loops)
            ):
                return False
            span = span * size
        return step is None or step == span or (span.number == 1 and bool(step.number))


def unit_stride_store(loop: ir.For) -> tuple[str, ir.Expr] | None:
    """The array to which all stores of an innermost loop go, and the offset of the first trip's store, if each trip
    stores one element behind the trip before it."""
    stores = [item for item in loop.body if isinstance(item, ir.Store)]
    if not stores or not all(isinstance(item, (ir.Store, ir.Assign)) for item in loop.body) or loop.step != ir.ONE:
        return None
    array, index = stores[0].array, stores[0].index
    if not isinstance(array, ir.Var) or any((each.array, each.index) != (array, index) for each in stores):
        return None
    terms = Subscripts(loop, {}).terms(index)
    factor = None if terms is None else terms.factor_of(loop.index)
    if factor is None or factor.number != 1 or not ir.variables(index).isdisjoint(ir.assigned(loop.body)):
        return None
    return array.name, simplify.simplified(ir.substituted(index, {loop.index: ir.ZERO}))


def offset_from(index: ir.Expr, trip: ir.Var) -> ir.Expr | None:
    """The expression that an index adds to the loop's index `trip`; None if the index isn't a sum with it."""
    if index == trip:
        return ir.ZERO
    if isinstance(index, ir.Binary) and index.op in ("+", "-"):
        left, right = index.left, index.right
        if trip.name not in ir.variables(right):
            found = offset_from(left, trip)
            return None if found is None else simplify.total(found, right) if index.op == "+" else found - right
        if index.op == "+" and trip.name not in ir.variables(left):
            found = offset_from(right, trip)
            return None if found is None else simplify.total(left, found)
    return None


def is_in_row(subscripts: Sequence[ir.Expr], index: ir.Var) -> bool:
    """Whether all subscripts of an array lie in the row number `index`: `index`, or `index * stride + column`."""
    if all(item == index for item in subscripts):
        return True
    strides = set()
    for item in subscripts:
        row = item
        if isinstance(item, ir.Binary) and item.op == "+" and isinstance(item.right, (ir.Var, ir.Const)):
            row = item.left
        if not isinstance(row, ir.Binary) or row.op != "*" or row.left != index:
            return False
        if not isinstance(row.right, (ir.Var, ir.Const)):
            return False
        strides.add(row.right)
    return len(strides) == 1
