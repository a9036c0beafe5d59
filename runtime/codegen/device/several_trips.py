"""In loops that threads share, a thread takes several trips at a time, so that their loads are in flight together.

    trip = thread                                begin, covered = stop, 0
    while trip < stop:                           ahead = max(gpu.peel_count(x, 0), gpu.peel_count(a, 0))
        v = x[trip]                              if gpu.is_aligned(x, ahead) and gpu.is_aligned(a, ahead):
        a[trip] = v * 2.0              →             begin, covered = ahead, …
        trip = trip + threads                        trip = begin + thread * 4
                                                     while trip < begin + covered:
                                                         v = x[trip]
                                                         v_1 = x[trip + 1]
                                                         …
                                                         a[trip] = v * 2.0
                                                         a[trip + 1] = v_1 * 2.0
                                                         …
                                                         trip = trip + threads * 4
                                                 left = thread
                                                 while left < stop - covered:
                                                     trip = left if left < begin else left + covered
                                                     …

One instruction loads or stores four contiguous elements; in long loops with little work, a thread takes two such groups
at a time. The elements before the first aligned one and behind the last group are left to the loop at the end, which
takes all if no element is aligned in every array. If a trip's elements aren't contiguous with those of the next trip, a
thread takes trips that are as far apart as there are threads. The trips are independent, so that their statements may
be interleaved; each thread adds to a total in the order of its trips. Functions of angles are computed for four trips
in a call, since they have a branch for far angles (`library.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runtime.codegen import cost_model
from runtime.codegen.device.kernel import Kernel, Strided, fresh_name, names_of
from runtime.kernel_ir import ir, result_types, simplify
from runtime.kernel_ir.analysis.subscripts import offset_from
from runtime.kernel_ir.functions import Cost, cost_of, row_of
from runtime.kernel_ir.types import FLOAT32

_VECTOR = 4  # elements that one instruction loads or stores


def run(kernel: Kernel) -> None:
    for function in kernel.functions:
        names = names_of(function)
        for block in list(ir.walk_blocks(function.body)):
            for item in [each for each in block if each in kernel.strided]:
                assert isinstance(item, ir.While)
                if all(isinstance(each, (ir.Assign, ir.Store)) for each in item.body):
                    at = block.index(item)
                    block[at : at + 1] = _Trips(item, kernel.strided[item], names).statements()


class _Trips:
    """One loop."""

    def __init__(self, loop: ir.While, strided: Strided, names: set[str]) -> None:
        *body, step = loop.body
        assert isinstance(loop.test, ir.Compare)
        assert isinstance(step, ir.Assign)
        assert isinstance(step.value, ir.Binary)
        trip, self.threads = step.value.left, step.value.right
        assert isinstance(trip, ir.Var)
        self.whole, self.strided, self.names = loop, strided, names
        self.trip, self.stop = trip, loop.test.right
        parts = [each for item in body for each in ir.expressions(item)]
        self.work = len(parts) + cost_model.DEVICE_CALL * sum(map(_is_long, parts))
        begin = 2 if strided.coordinates else 0
        self.coordinates: ir.Block = list(body[:begin])
        self.body = [each for item in body[begin:] for each in self._taken_apart(item)]
        # The variables that each trip has for itself.
        self.own = {
            name: type_
            for item in [*self.coordinates, *self.body]
            if isinstance(item, ir.Assign)
            for name, type_ in sorted(result_types.assigned(item.targets, item.value.type).items())
            if name not in strided.totals
        }

    def _size(self, base: str) -> ir.Var:
        return ir.size_variable(fresh_name(base, self.names))

    def _taken_apart(self, item: Any) -> ir.Block:
        """A statement, after statements of their own for its loads and the value that it stores. The loads of several
        trips then stand side by side, without branches of a function in between."""
        found: ir.Block = []

        def apart(part: ir.Expr) -> ir.Expr | None:
            if not _is_apart(part):
                return None
            name = "loaded" if isinstance(part, ir.Load) else "turned"
            part = ir.rebuilt(part, lambda operand: ir.mapped(operand, apart))
            value = ir.Var(fresh_name(name, self.names), part.type)
            found.append(ir.assign(value, part))
            return value

        value = item.value
        if not isinstance(value, ir.Load) and not _happens_sometimes(value, _is_apart):
            value = ir.mapped(value, apart)
        if isinstance(item, ir.Assign):
            return [*found, ir.Assign(item.targets, value)]
        if not isinstance(value, (ir.Var, ir.Const)):
            stored = ir.Var(fresh_name("stored", self.names), value.type)
            found.append(ir.assign(stored, value))
            value = stored
        return [*found, ir.Store(item.array, item.index, value)]

    def statements(self) -> ir.Block:
        """The statements that replace the loop."""
        count = cost_model.DEVICE_TRIP_WORK // self.work
        accesses = self._contiguous_accesses()
        if not accesses:
            return [*self._apart(min(cost_model.DEVICE_TRIPS, count)), self.whole]
        vectors = max(1, min(cost_model.DEVICE_VECTORS, count // _VECTOR))
        return self._by_vectors([each.arguments for each in dict.fromkeys(accesses.values())], accesses, vectors)

    def _apart(self, count: int) -> ir.Block:
        """`count` trips at a time, which are as far apart as there are threads."""
        if count <= 1:
            return []
        offsets = [simplify.product(self.threads, number) for number in range(count)]
        return [self._several(offsets, self.threads * count, self.stop)]

    def _by_vectors(self, parts: Sequence[Any], accesses: Mapping[Any, ir.Call], count: int) -> ir.Block:
        """Groups of consecutive trips, then the remaining ones. parts: arrays, and the offsets from which they are
        accessed. count: the number of groups at a time."""
        first, thread = self.strided.first, self.strided.thread
        begin, covered, left = (self._size(name) for name in ("begin", "covered", "left"))
        firsts = [(array, simplify.total(offset, first)) for array, offset in parts]
        found: ir.Block = [ir.assign(begin, self.stop), ir.assign(covered, ir.ZERO)]
        ahead = self._size("ahead")
        most = [ir.call("gpu.peel_count", *each) for each in firsts]
        found.append(ir.assign(ahead, most[0] if len(most) == 1 else ir.call("max", *most)))
        rest = self._rest(begin, covered, left)
        self._use_views(accesses)
        body: ir.Block = [
            ir.assign(begin, simplify.total(first, ahead)),
            ir.assign(covered, ir.call("max", self.stop - begin, 0) // _VECTOR * _VECTOR),
            ir.assign(self.trip, begin + simplify.product(thread, _VECTOR)),
        ]
        step = simplify.product(self.threads, _VECTOR)
        for vectors in sorted({count, 1}, reverse=True):
            bases = [simplify.product(step, number) for number in range(vectors)]
            offsets = [simplify.total(base, ir.as_expr(lane)) for base in bases for lane in range(_VECTOR)]
            body.append(self._several(offsets, simplify.product(step, vectors), begin + covered, _VECTOR))
        aligned = [ir.call("gpu.is_aligned", array, simplify.total(offset, ahead)) for array, offset in firsts]
        # A single array is aligned at `ahead` by definition.
        found += body if len(firsts) == 1 else [ir.If(ir.both(*aligned), body)]
        return [*found, ir.assign(left, simplify.total(first, thread)), rest]

    def _rest(self, begin: ir.Var, covered: ir.Var, left: ir.Var) -> ir.While:
        """The loop over the remaining trips: those before `begin` and those after the ones that are taken several at a
        time."""
        trip = left.compare("<", begin).choose(left, left + covered)
        body = [ir.assign(self.trip, trip), *self.whole.body[:-1], ir.assign(left, left + self.threads)]
        return ir.While(left.compare("<", self.stop - covered), body, self.whole.loop)

    def _several(self, offsets: list[ir.Expr], step: ir.Expr, stop: ir.Expr, vector: int = 0) -> ir.While:
        """A loop each of whose trips does several: those at these offsets from a thread's next one. vector: the number
        of accesses that one instruction does, for which the first is aligned."""
        found: ir.Block = []
        renamed: list[dict[str, ir.Var]] = []
        for offset in offsets:
            values: dict[str, ir.Var] = {}
            if renamed:
                values[self.trip.name] = other = self._size(self.trip.name)
                for name, type_ in self.own.items():
                    values[name] = ir.Var(fresh_name(name, self.names), type_)
                found.append(ir.assign(other, self.trip + offset))
            renamed.append(values)
        for position in range(len(offsets) if self.coordinates else 0):
            if vector and position % vector:
                found += self._next_coordinates(renamed[position - 1], renamed[position])
            else:
                found += [_renamed(item, renamed[position]) for item in ir.copied(self.coordinates)]
        for item in self.body:
            several: ir.Block = []
            for position, values in enumerate(renamed):
                (other_item,) = ir.copied([item])
                if vector and position % vector == 0:
                    ir.map_operands(other_item, lambda each: ir.mapped(each, _as_aligned))
                several.append(_renamed(other_item, values))
            found += _grouped(several)
        found.append(ir.assign(self.trip, self.trip + step))
        return ir.While(self.trip.compare("<", stop - offsets[-1]), found, self.whole.loop)

    def _next_coordinates(self, before: dict[str, ir.Var], values: dict[str, ir.Var]) -> ir.Block:
        """The row and column of the trip that follows another one."""
        assert self.strided.coordinates is not None
        *names, width = self.strided.coordinates
        row, column = (before.get(name, ir.size_variable(name)) for name in names)
        following = column + 1
        is_last = following.compare("==", width)
        return [
            ir.assign(values[names[0]], is_last.choose(row + 1, row)),
            ir.assign(values[names[1]], is_last.choose(0, following)),
        ]

    def _contiguous_accesses(self) -> dict[tuple[ir.Expr, ir.Expr], ir.Call]:
        """The accesses whose element changes from trip to trip, by array and index, each with the view of the array
        that begins with the element of trip 0; none unless consecutive trips access contiguous elements in all."""
        of_coordinates = ir.assigned(self.coordinates)
        changing = {self.trip.name, *of_coordinates, *ir.assigned(self.body)}
        values: dict[str, ir.Expr] = {}
        found: dict[tuple[ir.Expr, ir.Expr], ir.Call] = {}
        for item in self.body:
            if any(map(_loads_sometimes, ir.operands(item))):
                return {}
            for array, index in map(_access, [each for each in (*ir.expressions(item), item) if _is_access(each)]):
                known = ir.substituted(index, values)
                if changing.isdisjoint(ir.variables(known)) and not _loads(known):
                    continue
                if changing.intersection(ir.variables(known)) <= of_coordinates and not _loads(known):
                    continue  # an element of the row or the column, which consecutive trips may share
                first = offset_from(known, self.trip)
                if first is None or not changing.isdisjoint(ir.variables(first)) or _loads(first):
                    return {}
                part = ir.call("gpu.view", array, first)
                if found.setdefault((array, index), part) != part:
                    return {}
            if isinstance(item, ir.Assign):
                known = ir.substituted(item.value, values)
                for name, type_ in result_types.assigned(item.targets, item.value.type).items():
                    values[name] = known if len(item.targets) == 1 else ir.Var(name, type_)
        return {} if _are_never_aligned([each.arguments for each in found.values()]) else found

    def _use_views(self, accesses: Mapping[tuple[ir.Expr, ir.Expr], ir.Call]) -> None:
        """Lets the body load and store the trip's elements of these views."""

        def change(item: ir.Expr) -> ir.Expr | None:
            part = accesses.get(_access(item)) if isinstance(item, ir.Load) else None
            return None if part is None else ir.Load(part, self.trip, item.type)

        self.body = ir.copied(self.body)
        ir.map_block(self.body, change)
        for item in self.body:
            if isinstance(item, ir.Store) and _access(item) in accesses:
                item.array, item.index = accesses[_access(item)], self.trip


def _renamed(item: ir.Statement, values: Mapping[str, ir.Var]) -> ir.Statement:
    """A statement with other variables, in place."""
    ir.map_operands(item, lambda each: ir.substituted(each, values))
    ir.rename_targets(item, lambda name: values[name].name if name in values else name)
    return item


def _is_of_angle(item: ir.Expr) -> bool:
    """Whether it is a function of four of whose angles a call takes care."""
    if not isinstance(item, ir.Call) or item.type != FLOAT32:
        return False
    row = row_of(item.function)
    return row is not None and row.is_angular


def _is_apart(item: ir.Expr) -> bool:
    """Whether an expression is assigned to a variable by a statement of its own: loads, and functions of angles."""
    return isinstance(item, ir.Load) or _is_of_angle(item)


def _grouped(block: ir.Block) -> ir.Block:
    """The statement for several trips at once. Four calls of a function of angles become one call."""
    if not all(isinstance(item, ir.Assign) and _is_of_angle(item.value) for item in block):
        return block
    found: ir.Block = []
    for at in range(0, len(block), 4):
        group: list[Any] = block[at : at + 4]
        if len(group) < 4:
            return [*found, *group]
        targets = tuple(item.targets[0] for item in group)
        arguments = [item.value.arguments[0] for item in group]
        found.append(ir.Assign(targets, ir.call(f"{group[0].value.function}_of_four", *arguments)))
    return found


def _is_access(item: ir.Expr | ir.Statement) -> bool:
    return isinstance(item, (ir.Load, ir.Store))


def _access(item: Any) -> tuple[ir.Expr, ir.Expr]:
    """Array and index of a load or store."""
    return item.array, item.index


def _is_long(item: ir.Expr) -> bool:
    """Whether it takes more than an instruction: a division, or a call of most functions."""
    if not isinstance(item, ir.Call):
        return isinstance(item, ir.Binary) and item.op in ("/", "//", "%", "**")
    return cost_of(item.function) > Cost.INSTRUCTION


def _are_never_aligned(parts: Sequence[Any]) -> bool:
    """Whether an array is accessed at offsets whose distance isn't a multiple of a vector, so that not all of them can
    be aligned."""
    known: dict[Any, int] = {}
    for array, offset in parts:
        constant = 0
        if isinstance(offset, ir.Binary) and offset.op in ("+", "-") and isinstance(offset.right, ir.Const):
            constant = int(offset.right.value) if offset.op == "+" else -int(offset.right.value)
            offset = offset.left
        elif isinstance(offset, ir.Const):
            constant, offset = int(offset.value), ir.ZERO
        if (known.setdefault((array, offset), constant) - constant) % _VECTOR:
            return True
    return False


def _as_aligned(item: ir.Expr) -> ir.Expr | None:
    if isinstance(item, ir.Call) and item.function == "gpu.view":
        return ir.call("gpu.aligned_view", *item.arguments)
    return None


def _loads(item: ir.Expr) -> bool:
    return any(isinstance(each, ir.Load) for each in ir.subexpressions(item))


def _loads_sometimes(item: ir.Expr) -> bool:
    return _happens_sometimes(item, lambda each: isinstance(each, ir.Load))


def _happens_sometimes(item: ir.Expr, what: Callable[[ir.Expr], bool]) -> bool:
    """Whether a part of an expression isn't computed each time."""
    parts = (each for each in ir.subexpressions(item) if isinstance(each, (ir.Select, ir.Logic)))
    operands = (operand for each in parts for operand in ir.operands(each)[1:])
    return any(what(each) for operand in operands for each in ir.subexpressions(operand))
