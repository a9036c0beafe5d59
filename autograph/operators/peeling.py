"""Loops whose test is a Python flag at first, and a tensor after the first trip.

    while True:                     did_break = False
        x = step(x)           →     while not did_break:
        if x < tolerance:               ...
            break                       did_break = x < tolerance

Such a loop is peeled: its first trip stands before the staged loop, and may do what only Python values can do. In a
nest of d such loops the innermost body would stand there 2 ** d times. So the trip of a loop that has peeled another
one is taken back, and the loop is staged from its start, where that can be done. When it is met again in the same trace
(in the body of the loop around it), it is staged at once.
"""

from __future__ import annotations

from dataclasses import field
from types import CellType
from typing import Any
from weakref import WeakKeyDictionary

from autograph.operators.frame import Frame
from autograph.operators.raising import forget_refused
from autograph.operators.staged_while import stage_while
from autograph.operators.state import Block, read_cell, slots
from autograph.operators.symbolic import truth
from autograph.operators.unbound import run
from runtime.context import ctx
from runtime.dataclass import dataclass


@dataclass
class _Known:
    """What is known in one trace of the loops that were peeled."""

    peeled: int = 0
    # By the ids of their tests' code: those that can be staged from the start, and those that can't.
    from_start: set[int] = field(default_factory=set)
    refused: set[int] = field(default_factory=set)


_known: WeakKeyDictionary[Any, _Known] = WeakKeyDictionary()  # by root builder


class Start:
    """The start of a loop whose test reads Python flags only, to come back to."""

    def __init__(self, test: Block, body: Block, names: tuple[str, ...], flags: list[CellType]) -> None:
        self.test, self.body, self.names, self.flags = test, body, names, flags
        self.builder = ctx.builder
        self.rewind = self.builder.mark()
        self.count = len(self.builder.graph.nodes)
        self.frame = Frame((test, body))
        self.known = _of_trace()
        self.peeled = self.known.peeled

    def stage_at_once(self) -> bool:
        """Stages the loop if an earlier trip of a loop around it has shown that this can be done."""
        code = id(self.test.__code__)
        if code not in self.known.from_start:
            return False
        is_staged = self._stage()
        if not is_staged:
            self.known.from_start.remove(code)
        return is_staged

    def stage_with_first_trip(self) -> bool:
        """Takes the first trip back and stages the loop with it, if the trip has peeled a loop.

        Otherwise, and where it can't be staged so, the loop is as it is after that trip.
        """
        code = id(self.test.__code__)
        if self.known.peeled == self.peeled or code in self.known.refused:
            self.known.peeled += 1
            return False
        after, nodes, frame = self.builder.mark(), self.builder.graph.nodes[self.count :], Frame((self.test, self.body))
        self._take_back()
        if self._stage():
            self.known.from_start.add(code)
            return True
        self.known.refused.add(code)
        self.known.peeled += 1
        self.builder.graph.nodes[self.count :] = nodes
        after()
        frame.restore()
        return False

    def _stage(self) -> bool:
        blocks = (self.test, self.body)
        try:
            stage_while(lambda: run(self.test), lambda: run(self.body), slots(self.names, blocks), blocks)
            if any(truth(read_cell(each)) is not None for each in self.flags):
                return True
        except Exception:
            forget_refused(self.builder)
        self._take_back()
        return False

    def _take_back(self) -> None:
        self.rewind()
        self.rewind = self.builder.mark()  # each takes the builder back once
        self.frame.restore()


def start_of(test: Block, body: Block, names: tuple[str, ...]) -> Start | None:
    """The start of a loop that may be staged from there; None for one whose test reads more than Python flags."""
    cells = zip(test.__code__.co_freevars, test.__closure__ or ())
    flags = [cell for name, cell in cells if name != "ag__"]
    if not flags or not all(type(read_cell(cell)) is bool for cell in flags):
        return None
    if any(recorder.builder is ctx.builder for recorder in ctx.recorders):  # what a tape forgets doesn't come back
        return None
    return Start(test, body, names, flags)


def _of_trace() -> _Known:
    root = ctx.builder
    while root.parent is not None:
        root = root.parent
    return _known.setdefault(root, _Known())
