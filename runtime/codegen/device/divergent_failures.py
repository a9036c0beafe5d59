"""Checks that may fail in divergent statements, which only some threads run.

    if i >= n:                   failure = 0
        return 1, i              if i >= n:
    out[i] = x[i]                    failure = 1
                           →         failure_1 = i
                                     break
                                 out[i] = x[i]

A thread can't return alone: the others would wait for it at the next barrier. So a failure leaves the statements, the
first one is recorded for all threads, and all of them return it behind a barrier.
"""

from __future__ import annotations

from runtime.codegen.device.kernel import FreshSize
from runtime.kernel_ir import ir
from runtime.kernel_ir.types import INT64


class DivergentFailures:
    """The failures of a block, which is changed in place: its returns become breaks."""

    def __init__(self, block: ir.Block, details: int, fresh: FreshSize, in_loop: bool) -> None:
        """details: the number of integers with a status. in_loop: whether the block is the
        body of a loop, which a failure leaves."""
        self._count = details + 1
        self._values = [fresh(f"failure{k}" if k else "failure") for k in range(self._count)]
        self._last: ir.Return | None = None
        self.start: ir.Block = [ir.assign(each, ir.ZERO) for each in self._values]
        self._catch(block, in_loop)

    @property
    def failed(self) -> ir.Expr:
        return self._values[0].compare("!=", 0)

    def record(self) -> ir.Block:
        """Statements that record the failure for all threads."""
        return [ir.Run(ir.call("gpu.store_detail", k, value)) for k, value in enumerate(self._values)]

    def leave(self) -> ir.Return:
        """Statements that return the recorded failure."""
        assert self._last is not None
        recorded = tuple(ir.call("gpu.load_detail", k) for k in range(self._count))
        return ir.Return(_with_status(self._last, recorded))

    def _catch(self, block: ir.Block, in_loop: bool = True) -> bool:
        """Replaces the returns in a block; returns whether there are any."""
        found = False
        for position, item in reversed(list(enumerate(block))):
            if isinstance(item, ir.Return):
                self._last = item
                values = [ir.Convert(INT64, value) for value in _status(item)[: self._count]]
                steps: ir.Block = [ir.assign(each, value) for each, value in zip(self._values, values)]
                block[position : position + 1] = [*steps, ir.Break()]
                found = True
                continue
            is_loop = isinstance(item, (ir.For, ir.While))
            inside = [self._catch(each, in_loop or is_loop) for each in ir.blocks(item)]
            if any(inside):
                found = True
                if is_loop and in_loop:
                    block.insert(position + 1, ir.If(self.failed, [ir.Break()]))
        return found


def _status(item: ir.Return) -> tuple[ir.Expr, ...]:
    """The status and the numbers that a kernel returns, before its results."""
    first = item.values[0]
    while isinstance(first, ir.Binary) and first.op == "+" and len(item.values) == 1:
        first = first.left
    return first.items if isinstance(first, ir.Tuple) else item.values


def _with_status(item: ir.Return, status: tuple[ir.Expr, ...]) -> tuple[ir.Expr, ...]:
    """The statement's values with another status and other numbers of the error."""

    def changed(value: ir.Expr) -> ir.Expr:
        if isinstance(value, ir.Tuple):
            return ir.Tuple(status)
        assert isinstance(value, ir.Binary)
        return ir.Binary("+", changed(value.left), value.right)

    if len(item.values) == 1 and isinstance(item.values[0], ir.Binary):
        return (changed(item.values[0]),)
    return (*status, *item.values[len(status) :])


def is_failure(item: ir.Return) -> bool:
    first = _status(item)[0] if item.values else None
    return isinstance(first, ir.Const) and isinstance(first.value, int) and first.value > 0
