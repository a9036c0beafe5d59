"""When a running loop leaves the interpreter: it is compiled on its own, and goes on in native code with its next trip.

How long a loop still runs is not known, so it is interpreted for half the time that compiling it would take: what that
costs is at most three times what the better choice had cost, and loops that are interpreted for long mostly go on. Then
the thread that runs it compiles it, since Python runs one thread at a time and two would only wait for each other. Of
loops in one another the outermost is taken, which brings the inner ones with it; an inner one where the outer trip
doesn't end. Time is that of the thread, as other programs slow compilers down as well.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from runtime.graph.ir import Graph, Node, Substitution, copy_nodes

Call = Callable[[Sequence[Any]], "list[Any]"]

# Seconds that compiling takes: the first time in a process, a kernel, a node that gives a number, or an array.
_STARTING, _KERNEL, _NUMBER, _ARRAY = 0.06, 0.02, 0.0006, 0.012
_NEAR = 0.1  # of that time: a run of this length might be a hot one on another day


class Loop:
    """A `while` node and its native form on its own, once somebody had to wait for it."""

    def __init__(self, node: Node, compile_it: Callable[[Graph], Call | None]) -> None:
        self.node = node
        self.call: Call | None = None
        self.refused = False  # it has no native form
        self.spent = 0.0  # seconds of its longest run on the interpreter, where it is in no other loop
        self._compile = compile_it
        self._lock = threading.Lock()
        self._cost = _KERNEL + sum(_cost(inner) for region in node.regions for inner in region.walk())

    def patience(self) -> float:
        """Seconds to interpret it before it is compiled."""
        return 0.5 * (self._cost + (0.0 if "llvmlite.binding" in sys.modules else _STARTING))

    def prepare(self) -> None:
        """Compiles it for processes to come, where it may be hot: a run here came near to that."""
        if self.spent > _NEAR * (self._cost + _STARTING):
            self.native()

    def native(self) -> Call | None:
        """The native form, compiled now if it isn't there; None where there is none."""
        with self._lock:
            if self.call is None and not self.refused:
                self.call = self._compile(self._graph())
                self.refused = self.call is None
        return self.call

    def _graph(self) -> Graph:
        graph = Graph(f"loop of {self.node.graph.name}")
        mapping = Substitution()
        arguments = [graph.add_input(v.type, v.name) for v in self.node.inputs]
        # By position: the same value may be several operands.
        copy_nodes([self.node], graph, mapping)
        (copy,) = graph.nodes
        copy.inputs = arguments
        graph.outputs = list(copy.outputs)
        return graph


def _cost(node: Node) -> float:
    return _ARRAY if any(getattr(v.type, "rank", 0) != 0 for v in node.outputs) else _NUMBER


class Pace:
    """One run of a graph on the interpreter: which loops it is in, and since when."""

    def __init__(self, loop_of: Callable[[Node], Loop]) -> None:
        self._loop_of = loop_of
        self._running: list[Loop] = []
        self._since: list[float] = []
        self.hurry = False  # an outer loop is to be asked at its next trip

    def enter(self, node: Node) -> None:
        """A loop begins."""
        self._running.append(self._loop_of(node))
        self._since.append(time.thread_time())

    def leave(self) -> None:
        """The innermost loop ends."""
        loop, since = self._running.pop(), self._since.pop()
        if not self._running:
            loop.spent = max(loop.spent, time.thread_time() - since)

    def finish(self, operands: Sequence[Any]) -> Sequence[Any] | None:
        """The innermost running loop's results, if it is time to leave the interpreter; None to go on there."""
        loop = self._running[-1]
        if loop.call is not None:
            return loop.call(operands)
        now = time.thread_time()
        for outer, since in zip(self._running, self._since):
            if outer.refused:
                continue
            late = now - since - outer.patience()
            if late < 0:
                return None
            if outer is loop:
                self.hurry = False
                call = loop.native()
                return None if call is None else call(operands)
            self.hurry = True
            if late < outer.patience():
                return None
            # The outer loop's trip goes on and on: the next loop inside is asked.
        return None
