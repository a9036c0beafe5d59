"""When a running loop leaves the interpreter: it is compiled on its own, and goes on in native code with its next trip.

How long a loop still runs is not known, so it is interpreted for four fifths of the time that it would have to wait for
its native form: what that costs is at most some two and a half times what the better choice had cost, and loops that
are interpreted for long mostly go on. It waits while the compiler's thread runs Python code, since Python runs one
thread at a time and two would only hinder each other. While LLVM works, which takes longer, it is interpreted, and may
end so.
Where an earlier process has left the native form on disk (`codegen/backends/graph_cache.py`) it is taken almost at
once: of loops on their own only those are kept for which that pays, in graphs that are no kernel as a whole.

Of loops in one another the outermost is taken, which brings the inner ones with it; but the innermost first where a
single run of it takes so long. A recursive function is a loop whose trips are its calls. Time is that of the thread, as
other programs slow compilers down as well.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from runtime.codegen.backends import graph_cache
from runtime.codegen.backends.driver import hurrying
from runtime.collecting import rarely
from runtime.engine import background
from runtime.graph.ir import Graph, Node, Substitution, copy_nodes

Call = Callable[[Sequence[Any]], "list[Any]"]

# Seconds of Python code until LLVM begins: the first time in a process, a kernel, a node that gives a number, an array.
_STARTING, _KERNEL, _NUMBER, _ARRAY = 0.03, 0.008, 0.0005, 0.002
_SHARE = 0.8  # of these, that a loop is interpreted first
_LOADING = 0.03  # seconds that a native form on disk takes, the first time in a process
_GLANCE = 0.002  # seconds after which it is worth it to look for one
_TRIP = 0.03  # seconds that a trip may still go on when its loop's native form is there
_BREATH = 0.0003  # seconds after which the compiler's thread may have Python, where it wants to
_LONGEST_WAIT = 1.0  # for Python code of the compiler's


class Loop:
    """A `while` or `letrec` node and its native form on its own, once somebody had to wait for it."""

    def __init__(self, node: Node, compile_it: Callable[[Graph], Call | None]) -> None:
        self.node = node
        self.call: Call | None = None
        self.refused = False  # it has no native form
        self.spent = 0.0  # seconds of its longest run on the interpreter, where it is in no other loop
        self._compile = compile_it
        self._lock = threading.Lock()
        self._compiler: background.Worker | None = None  # that it was given to
        self._outside = threading.Event()  # the compiler's Python code is over
        self._kept: bool | None = None  # whether an earlier process has left a native form; None: nobody has looked
        self._cost = _KERNEL + sum(_cost(inner) for region in node.regions for inner in region.walk())

    def patience(self, spent: float) -> float:
        """Seconds to interpret it before it is compiled, after so many that it has been."""
        if self._kept is None and spent > _GLANCE:
            self._kept = graph_cache.find(self._graph()) is not None
        if self._kept:
            return _GLANCE
        return _SHARE * (self._cost + (0.0 if "runtime.engine.partition" in sys.modules else _STARTING))

    def pause(self) -> float:
        """Seconds to wait for the next trip of a native loop around it before it is compiled as well."""
        return _GLANCE if self._kept else _TRIP

    def prepare(self) -> None:
        """Compiles it for processes to come, where that would have been worth it here."""
        if self.spent > _LOADING and self.call is None and not self.refused:
            self._work()

    def settled(self) -> Call | None:
        """The native form, made now unless it is there; None where there is none."""
        if self.call is None and not self.refused:
            with self._lock:
                if self.call is None and not self.refused:
                    self._work()
        return self.call

    @property
    def has_begun(self) -> bool:
        """Whether the compiler has it, and isn't done."""
        return self._compiler is not None and self.call is None and not self.refused

    def begin(self) -> None:
        """Has it compiled, unless it is; comes back when only LLVM is left to work, or when all is done."""
        with self._lock:
            if self._compiler is not background.worker:
                self._compiler = background.worker
                if not background.worker.submit(self._work, urgent=True):
                    return  # the process ends
        # Whatever else it compiles now may take long.
        if background.worker.works_at(self._work):
            self._outside.wait(_LONGEST_WAIT)

    def _work(self) -> None:
        with rarely():  # whoever waits doesn't wait for the collector, too
            try:
                with hurrying(self._outside.set) as later:
                    self.call = self._compile(self._graph())
            finally:
                self.refused = self.call is None
                self._outside.set()
            for work in later:
                work()

    def _graph(self) -> Graph:
        return graph_of_loop(self.node)


def graph_of_loop(node: Node) -> Graph:
    """A `while` or `letrec` node as a graph of its own."""
    graph = Graph(f"loop of {node.graph.name}")
    mapping = Substitution()
    # What is carried has the type of every trip: it may begin with a shape that only the first one meets.
    carried = node.outputs
    types = [*(v.type for v in carried), *(v.type for v in node.inputs[len(carried) :])]
    if node.op.name == "letrec":
        types = [v.type for v in node.regions[0].inputs]
    arguments = [graph.add_input(type_, v.name) for type_, v in zip(types, node.inputs)]
    # By position: the same value may be several operands.
    copy_nodes([node], graph, mapping)
    (copy,) = graph.nodes
    copy.inputs = arguments
    graph.outputs = list(copy.outputs)
    return graph


def _cost(node: Node) -> float:
    return _ARRAY if any(getattr(v.type, "rank", 0) != 0 for v in node.outputs) else _NUMBER


@dataclass
class _Run:
    """A loop that runs, and since when; due: when its trip was first waited for."""

    loop: Loop
    since: float
    due: float | None = None

    def is_ripe(self, now: float) -> bool:
        """Whether it has run for long enough to leave the interpreter, and may."""
        loop, spent = self.loop, now - self.since
        return not loop.refused and (loop.call is not None or spent >= loop.patience(spent))


class Pace:
    """One run of a graph on the interpreter: which loops it is in, and since when."""

    def __init__(self, loop_of: Callable[[Node], Loop]) -> None:
        self._loop_of = loop_of
        self._running: list[_Run] = []
        self.hurry = False  # an outer loop is to be asked at its next trip
        self._breath = 0.0  # when other threads could run last

    def enter(self, node: Node) -> None:
        """A loop begins."""
        self._running.append(_Run(self._loop_of(node), time.thread_time()))

    def leave(self) -> None:
        """The innermost loop ends."""
        run = self._running.pop()
        if not self._running:
            run.loop.spent = max(run.loop.spent, time.thread_time() - run.since)

    def finish(self, operands: Sequence[Any]) -> Sequence[Any] | None:
        """The innermost running loop's results, if it is time to leave the interpreter; None to go on there."""
        innermost = self._running[-1]
        if innermost.loop.call is not None:
            return innermost.loop.call(operands)
        now = time.thread_time()
        ripe = [run for run in self._running if run.is_ripe(now)]
        if not ripe:
            return None
        outermost = ripe[0]
        if outermost.loop.call is not None:
            # Its trip is waited for; where that goes on and on, what runs in it is asked.
            self.hurry = True
            outermost.due = now if outermost.due is None else outermost.due
            ripe = ripe[1:]
            if not ripe or now - outermost.due <= ripe[-1].loop.pause():
                return None
        # One at a time; a loop that has been running for so long goes on for long, too, and keeps those around it.
        chosen = next((run for run in ripe if run.loop.has_begun), innermost if ripe[-1] is innermost else ripe[0])
        chosen.loop.begin()
        call = chosen.loop.call
        if chosen is innermost and call is not None:
            self.hurry = False
            return call(operands)
        if call is None and not chosen.loop.refused:
            self.hurry = False
            if now > self._breath + _BREATH:
                # LLVM is called some fifty times, and Python lets a thread that comes back wait for 5 ms.
                time.sleep(_BREATH / 6)
                self._breath = time.thread_time()
        return None


class FixedPace:
    """An accelerator for which time doesn't count: a loop with a native form takes it after its first trip, in each
    run. So the same trips give the same bits."""

    hurry = True  # to be asked at each trip

    def __init__(self, loop_of: Callable[[Node], Loop]) -> None:
        self._loop_of = loop_of
        self._running: list[Loop] = []

    def enter(self, node: Node) -> None:
        self._running.append(self._loop_of(node))

    def leave(self) -> None:
        self._running.pop()

    def finish(self, operands: Sequence[Any]) -> Sequence[Any] | None:
        call = self._running[-1].settled()
        return None if call is None else call(operands)
