"""Owned stores: all threads run a loop alike, but each does only the stores to its own part of an array.

    for i in range(n):                      first = thread * part
        k = rows[i]                         last = first + part
        a[k] = a[k] + x[i]                  for i in range(n):
                                      →         k = rows[i]
                                                if first <= k < last:
                                                    a[k] = a[k] + x[i]

Each element thus gets its values in the order of the trips, as on the processor. `independence.py` finds the loops for
this. If rows are stored, a part consists of every n-th element, so that neighbouring threads store neighbouring
elements; the trips over a row are then divided among the threads, unless they carry values or their last values are
used.
"""

from __future__ import annotations

from runtime.codegen.device.kernel import FreshSize
from runtime.kernel_ir import ir, simplify
from runtime.kernel_ir.analysis.accesses import written_by
from runtime.kernel_ir.analysis.liveness import Liveness
from runtime.kernel_ir.analysis.subscripts import unit_stride_store
from runtime.kernel_ir.analysis.uses import Uses


def owned(block: ir.Block, live: set[str], thread: ir.Expr, threads: ir.Expr, fresh: FreshSize) -> ir.Block:
    """A loop in this form; changes it. live: the variables that are live after it."""
    return _Owned(block, live, thread, threads, fresh).statements


class _Owned:
    def __init__(self, block: ir.Block, live: set[str], thread: ir.Expr, threads: ir.Expr, fresh: FreshSize) -> None:
        self._thread, self._threads, self._fresh = thread, threads, fresh
        self._live, self._mentions = live, Uses().counts(block)
        self._parts: dict[str, tuple[ir.Var, ir.Var]] = {}
        self.statements: ir.Block = []
        stored = [item.array for item in ir.walk(block) if isinstance(item, ir.Store)]
        arrays = {each.name: each for each in stored if isinstance(each, ir.Var)}
        for name in sorted(arrays.keys() - self._stored_in_rows(block)):
            part, first, last = (fresh(f"{name}_{word}") for word in ("part", "first", "last"))
            size = ir.Size(arrays[name])
            self.statements.append(ir.assign(part, (size + threads - 1) // threads))
            self.statements.append(ir.assign(first, thread * part))
            self.statements.append(ir.assign(last, first + part))
            self._parts[name] = first, last
        self._block(block)
        self.statements += block

    def _block(self, block: ir.Block) -> None:
        for position in reversed(range(len(block))):
            item = block[position]
            if isinstance(item, ir.Store):
                assert isinstance(item.array, ir.Var)
                first, last = self._parts[item.array.name]
                test = ir.both(item.index.compare(">=", first), item.index.compare("<", last))
                block[position] = ir.If(test, [item])
                continue
            offset = self._row_store(item)
            if offset is not None and isinstance(item, ir.For):
                block[position : position + 1] = self._row(item, *offset)
                continue
            for inner in ir.blocks(item):
                self._block(inner)

    def _row(self, item: ir.For, array: str, offset: ir.Expr) -> ir.Block:
        """The loop over a thread's own trips. offset: that of the first trip's store."""
        base = self._fresh("base")
        if array in self._parts:
            first, last = self._parts[array]
            start, stop = ir.call("max", item.start, first - base), ir.call("min", item.stop, last - base)
            found = ir.For(item.index, start, stop, ir.ONE, item.body, item.nest)
            return [ir.assign(base, offset), found]
        trip = self._fresh("trip")
        own: ir.Expr = (self._thread - base) % self._threads
        offset, own = simplify.total(offset, item.start), simplify.total(item.start, own)
        steps = [ir.assign(item.index, trip), *item.body, ir.assign(trip, trip + self._threads)]
        return [
            ir.assign(base, offset),
            ir.assign(trip, own),
            ir.While(trip.compare("<", item.stop), steps),
        ]

    def _row_store(self, item: ir.Statement) -> tuple[str, ir.Expr] | None:
        """The array that a loop's trips fill element by element, and the first offset, if threads may divide the trips:
        no trip uses values of another."""
        offset = unit_stride_store(item) if isinstance(item, ir.For) else None
        if offset is None or not isinstance(item, ir.For):
            return None
        own = ir.assigned(item.body)
        if own & self._live or Liveness().exposed(item.body) & own:
            return None
        here = Uses().counts([item])
        return None if any(self._mentions[name] > here[name] for name in own) else offset

    def _stored_in_rows(self, block: ir.Block) -> set[str]:
        """The arrays that a block stores to only in such loops."""
        rows, others = set(), set()

        def visit(items: ir.Block) -> None:
            for item in items:
                offset = self._row_store(item)
                if offset is not None:
                    rows.add(offset[0])
                elif isinstance(item, ir.Store):
                    others.update(written_by([item]))
                for inner in ir.blocks(item) if offset is None else ():
                    visit(inner)

        visit(block)
        return rows - others
