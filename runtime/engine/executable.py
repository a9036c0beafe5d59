"""A callable graph with tiered execution: it is interpreted at first, and runs as native code once that is compiled.

jit_compile=True    compiles before the first run
jit_compile=None    interprets while a background thread compiles; later calls, and the next trips of a loop that is
                    still running, use the native code
jit_compile=False   always interprets
"""

from __future__ import annotations

import functools
import math
import os
import threading
import time
from collections.abc import Callable, Generator, Sequence
from typing import Any

from runtime import errors
from runtime.codegen.backends import graph_cache
from runtime.codegen.backends.driver import (
    check_environment,
    compiling,
    interrupts_deferred,
    provide_threads,
    run_deferred_work,
    urgent_compilation,
)
from runtime.codegen.kernel.source import NotNative
from runtime.codegen.native_runtime import thread_pool
from runtime.engine import background, settings
from runtime.engine.compile_cost import counted, python_seconds, threshold
from runtime.engine.native_products import native
from runtime.engine.on_stack_replacement import FixedTierUp, Loop, TierUp
from runtime.garbage_collection import promote_compiler, raised_threshold
from runtime.graph.interpreter import Accelerator, interpret
from runtime.graph.ir import Graph, Node
from runtime.profiling import span
from runtime.progress import progress
from runtime.recursion import room_for

Call = Callable[[Sequence[Any]], "list[Any]"]
# Yields None once the cache turns out not to have the graph's kernel. Then, after each kernel except the last, yields a
# callable that uses the kernels so far, or None. Returns the graph as a callable, or None if no part of it is native.
Compilation = Generator["Call | None", None, "Call | None"]

_LOCK_TIMEOUT = 0.03  # seconds to wait while another thread loads a kernel from the cache


def compilation(
    graph: Graph, tier_up: Callable[[], Accelerator] | None, warned: set[str], whole: bool = False
) -> Compilation:
    """The graph's kernel from the cache, or `partition.compilation`, which is imported only when something is compiled,
    since nothing else needs the code generator."""
    call = _load_cached(graph)
    if call is not None:
        return call
    yield None
    with interrupts_deferred(), span("compile", "import the code generator"):
        from runtime.engine import partition

    return (yield from partition.compilation(graph, tier_up, warned, whole))


def finished(work: Compilation, advance: Callable[[], None] = lambda: None) -> Call | None:
    """Runs a compilation to its end and returns its result. Calls `advance` after each kernel but the last."""
    try:
        next(work)
        while True:
            next(work)
            advance()
    except StopIteration as end:
        return end.value


def _load_cached(graph: Graph) -> Call | None:
    found = graph_cache.lookup(graph)
    if found is None:
        return None
    with span("compile", f"load {graph.name} from the cache"):
        return found.load(graph)


class Executable:
    """Runs `graph` on lists of values: arrays and NumPy scalars, stacks, None for order tokens."""

    def __init__(self, graph: Graph, jit_compile: bool | None = None, warned: set[str] | None = None) -> None:
        """warned: the causes of warnings so far, shared with the executables of the function's gradients."""
        self.graph = graph
        self.jit_compile = jit_compile
        self.warned: set[str] = set() if warned is None else warned
        self.spent = 0.0  # seconds of the processor on the interpreter so far
        self._call: Call | None = None
        self._work: Compilation | None = None  # the background thread's unfinished compilation
        self._partly: Call | None = None  # the callable that uses its kernels so far
        self._cost = 0.0  # seconds that compiling it keeps the interpreter lock, roughly
        self.compile_seconds = 0.0  # of the processor, that compiling it has taken so far
        self._lock = threading.Lock()
        self._requested = False
        self._loops: dict[int, Loop] = {}
        self.failure: str | None = None  # the text of the warning, if compilation failed
        self.placed: dict[Any, Any] = {}  # GPU -> the graph compiled for it (`placed_graph.py`)
        self._error: Exception | None = None  # of the background compiler, with AUTOGRAPH_STRICT=1

    @functools.cached_property
    def names_devices(self) -> bool:
        """Whether the graph may run on several devices (`across_devices.py`)."""
        return any(node.op.is_copy_to_device for node in self.graph.nodes)

    @property
    def is_native(self) -> bool:
        """Whether calls run native code (at least for parts of the graph)."""
        return self._call is not None and self._call != self._interpret

    @property
    def settled(self) -> Call | None:
        """The callable that all further calls run; None until it is decided."""
        return self._call

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        """The graph's outputs. Raises what its ops raise, with the user's line in the message."""
        call = self._call
        return call(inputs) if call is not None else self._first_calls(inputs)

    def _first_calls(self, inputs: Sequence[Any]) -> list[Any]:
        mode = settings.jit_mode(self.jit_compile)
        if mode is False:
            return interpret(self.graph, inputs)
        if mode is True:
            with background.worker.held_back():
                self.compile()
                call = self._call
                return call(inputs) if call is not None else interpret(self.graph, inputs)
        if self._error is not None:
            raise self._error
        if not self._requested:
            check_environment()
            with self._lock:
                is_first, self._requested = not self._requested, True
            if is_first:
                with background.worker.held_back():
                    if self._has_loop() and self._load_from_cache():
                        return self(inputs)
                    background.worker.submit(self.compile_step, gain=self.gain)
                    return self._interpret_timed(inputs)
        return self._interpret_timed(inputs)

    def _interpret_timed(self, inputs: Sequence[Any]) -> list[Any]:
        with background.worker.held_back(only_early=True), native:
            start = time.thread_time()  # other programs slow the compiler down as well
            try:
                partly = self._partly
                return interpret(self.graph, inputs, self._accelerator()) if partly is None else partly(inputs)
            finally:
                self.spent += time.thread_time() - start

    def gain(self) -> float:
        """The priority of compilation: interpretation time so far, which predicts more, in units of the time that
        justifies compiling. Looking for a kernel on disk takes little, and comes first."""
        if self._work is None:
            return math.inf
        if not self._cost:
            self._cost = python_seconds(counted(self.graph.walk()))
        return self.spent / threshold(self._cost)

    def _has_loop(self) -> bool:
        return any(node.op.name in ("while", "letrec") for node in self.graph.nodes)

    def _load_from_cache(self) -> bool:
        """Loads the graph's kernel if it is cached. That takes milliseconds: less than most interpreted loops, more
        than most array operations."""
        if not compiling.acquire(timeout=_LOCK_TIMEOUT):
            return False  # another thread compiles, which may take long
        try:
            call = self._guarded(lambda: _load_cached(self.graph), waits=True)
        finally:
            compiling.release()
        with self._lock:
            self._call = self._call or call
        return self._call is not None

    def compile(self) -> None:
        """Compiles now, once; does nothing if no part of the graph can be native.

        With `AUTOGRAPH_STRICT=1` raises KernelError when code generation fails; otherwise warns and
        interprets. Raises InvalidArgumentError if AUTOGRAPH_COMPILER or AUTOGRAPH_CACHE_SIZE is invalid.
        """
        check_environment()
        with self._lock:
            self._requested = True
            if self._call is None:
                with progress(f"compiling {self.graph.name}", "kernels") as bar:

                    def advance() -> None:
                        bar.advance()
                        run_deferred_work()

                    self._call = self._guarded(
                        lambda: finished(compilation(self.graph, self._accelerator, self.warned), advance), waits=True
                    )
                if self._call is None:
                    self._call = self._interpret

    def _interpret(self, inputs: Sequence[Any]) -> list[Any]:
        return interpret(self.graph, inputs, self._accelerator())

    def compile_step(self) -> bool:
        """Compiles the next kernel, in the background thread; True if there are more."""
        if self._call is not None:  # compiled by a call meanwhile
            return False
        # Without the lock: calls meanwhile only read `_requested`.
        unfinished = False

        def next_kernel() -> Call | None:
            nonlocal unfinished
            if self._work is None:
                self._work = compilation(self.graph, self._accelerator, self.warned)
            try:
                partly = next(self._work)
            except StopIteration as end:
                return end.value
            unfinished = True
            if partly is not None and self._partly is None:
                self._partly = self._describing_values(partly) if can_describe_values(self.graph) else partly
            return None

        try:
            call = self._guarded(next_kernel)
        except Exception as error:
            self._error = error
            settings.note_background_error(error)
            return False
        if unfinished:
            return True
        self._work = None
        with self._lock:
            if self._call is None:
                self._call = call if call is not None else self._interpret
            self._partly = None
        if graph_cache.lookup(self.graph) is None:  # otherwise later processes load the whole graph's kernel
            for loop in list(self._loops.values()):
                loop.prepare()
        return False

    def _guarded(self, compile_it: Callable[[], Call | None], waits: bool = False) -> Call | None:
        """waits: a call is waiting."""
        start = time.thread_time()
        if waits:
            call, self.failure = self._waited_for(compile_it)
        else:
            call, self.failure = _guarded(compile_it, self.graph, self.warned)
        self.compile_seconds += time.thread_time() - start
        if call is not None and any(getattr(v.type, "rank", 0) != 0 for node in self.graph.nodes for v in node.outputs):
            if waits:
                background.worker.submit(_provide_allocator)
            else:
                _provide_allocator()
        return call if call is None or not can_describe_values(self.graph) else self._describing_values(call)

    def _waited_for(self, compile_it: Callable[[], Call | None]) -> tuple[Call | None, str | None]:
        """`_guarded` for a call that waits: what the call doesn't need is left to the background."""
        with urgent_compilation() as later:
            try:
                result = _guarded(compile_it, self.graph, self.warned)
            except BaseException:  # Ctrl-C: the next call continues from the files
                run_deferred_work()
                raise
        if thread_pool.is_awaited():
            background.worker.submit(provide_threads, urgent=True)  # the call may take long, and gain by it

        def finish() -> None:
            for work in later:
                work()
            later.clear()

        if later and (background.may_end_at_once() or not background.worker.submit(finish, before_exit=True)):
            finish()
        return result

    def _describing_values(self, call: Call) -> Call:
        """Interprets the graph once more when an assertion fails: its message shows values of arrays, which a kernel's
        can't."""

        def run(inputs: Sequence[Any]) -> list[Any]:
            try:
                return call(inputs)
            except (errors.OpError, AssertionError):
                interpret(self.graph, inputs)
                raise

        return run

    # --- on-stack replacement ----------------------------------------------------------------------------------------

    def _accelerator(self) -> Accelerator:
        return FixedTierUp(self._loop_of) if settings.is_deterministic() else TierUp(self._loop_of)

    def _loop_of(self, node: Node) -> Loop:
        loop = self._loops.get(id(node))
        return (
            loop
            if loop is not None
            else self._loops.setdefault(id(node), Loop(node, functools.partial(_compile_loop, self.warned)))
        )


def _provide_allocator() -> None:
    from runtime.codegen.native_runtime import allocator

    allocator.provide_to_kernels()


def _compile_loop(warned: set[str], graph: Graph) -> Call | None:
    try:
        return _guarded(lambda: finished(compilation(graph, None, warned, whole=True)), graph, warned)[0]
    except Exception as error:  # only with AUTOGRAPH_STRICT=1
        settings.note_background_error(error)
        return None


def can_describe_values(graph: Graph) -> bool:
    """Whether an assertion shows arrays, and the graph may run again for its message: it has no other effects and no
    loops."""
    shows = False
    for node in graph.walk():
        if node.op.name == "assert":
            shows = shows or any(getattr(v.type, "rank", 0) != 0 for v in node.inputs[1:-1])
        elif node.op.effect or node.op.name in ("while", "commit"):
            return False
    return shows


def _guarded(compile_it: Callable[[], Call | None], graph: Graph, warned: set[str]) -> tuple[Call | None, str | None]:
    """The compiled graph, None if it can't be native, and the text of the warning if the compiler failed. Each cause is
    warned about once.

    With `AUTOGRAPH_STRICT=1` failures are raised.
    """
    try:
        with room_for(graph), raised_threshold(), span("compile", f"compile {graph.name}"):
            call = compile_it()
            promote_compiler()
            return call, None
    except NotNative:
        return None, None
    except Exception as error:
        if os.environ.get("AUTOGRAPH_STRICT") == "1":
            raise
        from runtime.engine import failures

        return None, failures.warn(graph, error, warned)


__all__ = ["Accelerator", "Call", "Executable"]
