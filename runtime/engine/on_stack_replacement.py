"""On-stack replacement: a loop that runs on the interpreter is compiled by itself and continues in native code at
its next trip.

`compile_cost.py` says for how long a loop is interpreted first. The loop waits while the compiler's thread runs Python
code, since Python runs one thread at a time and both would slow each other down. While LLVM works, which takes longer,
the loop is interpreted and may end. Compiled code that an earlier process left on disk
(`codegen/backends/graph_cache.py`) is loaded almost at once. Single loops are stored there only if loading them would
have paid, and if the graph as a whole isn't one kernel.

Of nested loops, the outermost is replaced, and its inner loops with it. The innermost is replaced first if a single run
of it already takes that long. A recursive function counts as a loop whose trips are its calls. Time is the thread's CPU
time, since other programs slow the compiler down as well.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from runtime import performance, profiling
from runtime.codegen.backends import graph_cache
from runtime.codegen.backends.driver import provide_threads, urgent_compilation
from runtime.dataclass import dataclass
from runtime.engine import background
from runtime.engine.compile_cost import python_seconds, threshold
from runtime.errors import place
from runtime.garbage_collection import raised_threshold
from runtime.graph.ir import Graph, Node, Substitution, copy_nodes

Call = Callable[[Sequence[Any]], "list[Any]"]

_LOAD_TIME = 0.03  # seconds to load compiled code from disk, the first time in a process
_LOOKUP_THRESHOLD = 0.002  # seconds after which it pays to look for some
_TRIP_LIMIT = 0.03  # seconds that a trip of a compiled outer loop may last before its inner loop is compiled
_YIELD_INTERVAL = 0.0003  # seconds between offers of the interpreter lock to the compiler's thread
_LONGEST_WAIT = 1.0  # seconds, for the compiler's Python code
LOOP = "loop"  # the category of spans of interpreted loops in profiles


class Loop:
    """A `while` or `letrec` node, and, once it was worth compiling, the node compiled as a graph of its own."""

    def __init__(self, node: Node, compile_it: Callable[[Graph], Call | None]) -> None:
        self.node = node
        self.call: Call | None = None
        self.refused = False  # it can't be compiled
        self.spent = 0.0  # seconds of its longest interpreted run as an outermost loop
        self.interpreted = 0.0  # seconds of all of these, without those of native loops in it
        self.is_slow = False  # whether these have been many
        self._compile = compile_it
        self._lock = threading.Lock()
        self._compiler: background.Worker | None = None  # the worker that it was submitted to
        self._python_done = threading.Event()  # set when the compiler has left Python for LLVM
        self._on_disk: bool | None = None  # whether the graph cache has it; None: not looked up yet
        self._cost = python_seconds(inner for region in node.regions for inner in region.walk())

    def threshold(self, spent: float) -> float:
        """The seconds of interpretation after which a loop is compiled. spent: the seconds so far."""
        if self._on_disk is None and spent > _LOOKUP_THRESHOLD:
            self._on_disk = graph_cache.lookup(self._graph()) is not None
        if self._on_disk:
            return _LOOKUP_THRESHOLD
        return threshold(self._cost)

    def trip_limit(self) -> float:
        """Seconds to wait for the next trip of a compiled loop around it before it is compiled as well."""
        return _LOOKUP_THRESHOLD if self._on_disk else _TRIP_LIMIT

    def prepare(self) -> None:
        """Compiles it for later processes, if that would have paid in this one."""
        if self.spent > _LOAD_TIME and self.call is None and not self.refused:
            self._work()

    def compiled(self) -> Call | None:
        """The compiled loop, compiled now if need be; None if it can't be."""
        if self.call is None and not self.refused:
            with self._lock:
                if self.call is None and not self.refused:
                    self._work()
        return self.call

    @property
    def is_compiling(self) -> bool:
        """Whether its compilation was requested and hasn't finished."""
        return self._compiler is not None and self.call is None and not self.refused

    def start_compiling(self) -> None:
        """Requests its compilation. Returns when only LLVM's work is left, or none."""
        with self._lock:
            if self._compiler is not background.worker:
                self._compiler = background.worker
                if not background.worker.submit(self._work, urgent=True):
                    return  # the process is exiting
        # Don't wait while the compiler works on something else, which may take long.
        if background.worker.is_compiling(self._work):
            self._python_done.wait(_LONGEST_WAIT)

    def _work(self) -> None:
        with raised_threshold():  # a garbage collection would delay the waiting loop
            try:
                with urgent_compilation(self._python_done.set) as later:
                    self.call = self._compile(self._graph())
            finally:
                self.refused = self.call is None
                self._python_done.set()
            provide_threads()
            for work in later:
                work()

    def ran(self, spent: float) -> None:
        """Adds the seconds of an interpreted run, and warns once these are many, though it can't be compiled."""
        self.interpreted += spent
        if not self.is_slow and self.interpreted > performance.SLOW_INTERPRETATION:
            self.is_slow = True
            from runtime.engine import slowness  # loads the code generator

            slowness.warn_of_interpretation(self.node, self._graph(), self.interpreted)

    def _graph(self) -> Graph:
        return graph_of_loop(self.node)


def graph_of_loop(node: Node) -> Graph:
    """A `while` or `letrec` node as a graph of its own."""
    graph = Graph(f"loop of {node.graph.name}")
    mapping = Substitution()
    # A carry has the type of all trips; its initial value may have a more specific shape.
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


@dataclass
class _Run:
    """A running loop. since: when it began; due: when its next trip was first waited for."""

    loop: Loop
    since: float
    due: float | None = None

    def is_hot(self, now: float) -> bool:
        """Whether it may be replaced and has run for long enough."""
        loop, spent = self.loop, now - self.since
        return not loop.refused and (loop.call is not None or spent >= loop.threshold(spent))


class TierUp:
    """The interpreter's accelerator for one run of a graph: tracks the running loops and replaces the hot ones."""

    def __init__(self, loop_of: Callable[[Node], Loop]) -> None:
        self._loop_of = loop_of
        self._running: list[_Run] = []
        self.polls_each_trip = False  # an outer loop is to be replaced at its next trip
        self._yielded = 0.0  # when the interpreter lock was offered last
        self._native = 0.0  # seconds of native loops so far
        self._span: Any = None  # of the outermost loop, while a profile is recorded

    def enter(self, node: Node) -> None:
        """A loop starts."""
        if profiling.recording and not self._running:
            line = place(*node.span[:2]) if node.span else ""
            self._span = profiling.span(LOOP, f"interpret the loop at {line}", line=line).__enter__()
        self._running.append(_Run(self._loop_of(node), time.thread_time()))

    def leave(self) -> None:
        """The innermost loop ends."""
        run = self._running.pop()
        if not self._running:
            spent = time.thread_time() - run.since
            run.loop.spent = max(run.loop.spent, spent)
            native, self._native = self._native, 0.0
            if self._span is not None:
                self._span.__exit__(None, None, None)
                self._span = None
            run.loop.ran(spent - native)

    def finish(self, operands: Sequence[Any]) -> Sequence[Any] | None:
        """The results of the innermost running loop if it is replaced now; None to go on interpreting."""
        innermost = self._running[-1]
        if innermost.loop.call is not None:
            return self._timed(innermost.loop.call, operands)
        now = time.thread_time()
        hot = [run for run in self._running if run.is_hot(now)]
        if not hot:
            return None
        outermost = hot[0]
        if outermost.loop.call is not None:
            # It continues in native code at its next trip. If the current trip takes long, an inner loop is replaced
            # first.
            self.polls_each_trip = True
            outermost.due = now if outermost.due is None else outermost.due
            hot = hot[1:]
            if not hot or now - outermost.due <= hot[-1].loop.trip_limit():
                return None
        # One at a time. A loop that has run for this long will probably go on, and delay the enclosing ones.
        chosen = next((run for run in hot if run.loop.is_compiling), innermost if hot[-1] is innermost else hot[0])
        chosen.loop.start_compiling()
        call = chosen.loop.call
        if chosen is innermost and call is not None:
            self.polls_each_trip = False
            return self._timed(call, operands)
        if call is None and not chosen.loop.refused:
            self.polls_each_trip = False
            if now > self._yielded + _YIELD_INTERVAL:
                # The compiler calls LLVM some fifty times, and would wait 5 ms for the interpreter lock after each
                # call.
                time.sleep(_YIELD_INTERVAL / 6)
                self._yielded = time.thread_time()
        return None

    def _timed(self, call: Call, operands: Sequence[Any]) -> Sequence[Any]:
        start = time.perf_counter()
        try:
            return call(operands)
        finally:
            self._native += time.perf_counter() - start


class FixedTierUp:
    """The accelerator of deterministic runs: every loop that can be compiled is replaced after its first trip, so that
    the same trips give the same bits in each run."""

    polls_each_trip = True

    def __init__(self, loop_of: Callable[[Node], Loop]) -> None:
        self._loop_of = loop_of
        self._running: list[Loop] = []

    def enter(self, node: Node) -> None:
        self._running.append(self._loop_of(node))

    def leave(self) -> None:
        self._running.pop()

    def finish(self, operands: Sequence[Any]) -> Sequence[Any] | None:
        call = self._running[-1].compiled()
        return None if call is None else call(operands)
