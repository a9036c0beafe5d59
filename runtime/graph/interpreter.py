"""Runs a graph node by node with the ops' NumPy kernels: the living definition of the IR, and tier 0 of the engine.

A graph is first flattened to a program: a list of instructions over numbered slots, kept on the graph. Arrays and NumPy
scalars stand for tensors, `Stack` for stacks, None for order tokens. Loops that go on become Python functions
(`hot_loops.py`).
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import math
import operator
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from runtime import errors, freed_memory
from runtime.dataclass import dataclass
from runtime.graph.horizontal_fusion import Fused, fused
from runtime.graph.hot_loops import HotLoop, HotRecursion, Recursion
from runtime.graph.ir import Graph, Node, Value
from runtime.graph.spans import AT_SPAN, at_span, note_span, with_op
from runtime.ops.dispatch import explain_failure, out_of_memory, widened
from runtime.profiling import span
from runtime.recursion import DEEPEST, TOO_DEEP, deep, is_deep, room, room_for
from runtime.types import TensorType


class Accelerator(Protocol):
    """Told of the loops that run; asked every so often for the results of the innermost one, which it may finish in
    native code from the loop's current operands. None: go on here. A recursive function counts as a loop, each of its
    calls as a trip."""

    polls_each_trip: bool  # to be asked at the next trip

    def enter(self, node: Node) -> None: ...

    def leave(self) -> None: ...

    def finish(self, operands: Sequence[Any]) -> Sequence[Any] | None: ...


# Trips between two questions to the accelerator: rare enough to cost nothing, often enough to switch in milliseconds.
TRIPS_PER_POLL = 16
# Trips of a loop, in all its runs, before it becomes a Python function: writing one costs as much as some twenty do.
TRIPS_UNTIL_HOT = 20


def interpret(graph: Graph, inputs: Sequence[Any], accelerator: Accelerator | None = None) -> list[Any]:
    """The values of the graph's outputs for `inputs` (arrays, NumPy scalars, stacks).

    Raises what the ops raise, with the user's line in the message.
    """
    program = _program(graph)
    if program.context is None:
        freed_memory.keep()
        program.context = _context_of(graph)
    with program.context(), span("interpret", f"interpret {graph.name}"):
        return program.run(inputs, accelerator)


def runner(graph: Graph) -> Callable[[Sequence[Any]], list[Any]]:
    """`interpret` for a graph of a few nodes that is run over and over, without what long runs need."""
    program, context = Program(graph), _context_of(graph)
    if context is contextlib.nullcontext:
        return lambda inputs: program.run(inputs, None)

    def run(inputs: Sequence[Any]) -> list[Any]:
        with context():
            return program.run(inputs, None)

    return run


def _run_region(graph: Graph, inputs: Sequence[Any], accelerator: Accelerator | None) -> list[Any]:
    return _program(graph).run(inputs, accelerator)


def _program(graph: Graph) -> Program:
    program = graph.program
    if program is None:
        program = graph.program = Program(graph)
    return program


def _context_of(graph: Graph) -> Callable[[], contextlib.AbstractContextManager[None]]:
    """What runs of a graph need around them."""
    with room_for(graph):
        calls_host = any(node.op.calls_python for node in graph.walk())
        if not calls_host:
            usual: Callable[[], contextlib.AbstractContextManager[None]] = _ignoring_float_errors
        else:
            usual = _ignoring_ours if any(map(_may_warn, graph.walk())) else contextlib.nullcontext
    return functools.partial(_with_stack_space, usual) if is_deep(graph) else usual


def _may_warn(node: Node) -> bool:
    """Whether NumPy may meet floating-point errors in a node of ours; in `fit`, none is left beside compiled parts."""
    return bool(node.inputs) and not (node.op.calls_python or node.op.is_quiet or node.op.is_move)


def _ignoring_float_errors() -> contextlib.AbstractContextManager[None]:
    """A context in which NumPy doesn't warn of floating-point errors: 1 / 0 is infinite, as in eager code."""
    return np.errstate(all="ignore")


# How the caller of the graph that runs treats floating-point errors; None: nobody has changed that.
_CALLERS: contextvars.ContextVar[Any] = contextvars.ContextVar("the caller's floating-point errors", default=None)


@contextlib.contextmanager
def _ignoring_ours() -> Iterator[None]:
    """A context like `_ignoring_float_errors`, for graphs that call Python functions: those run with the caller's
    settings."""
    before = _CALLERS.set(np.geterr())
    try:
        with _ignoring_float_errors():
            yield
    finally:
        _CALLERS.reset(before)


def _with_callers_errors(run: Callable[..., Any]) -> Callable[..., Any]:
    def run_host(*operands: Any) -> Any:
        errors_of_caller = _CALLERS.get()
        if errors_of_caller is None:
            return run(*operands)
        before = _CALLERS.set(None)  # graphs that the function runs have another caller
        try:
            with np.errstate(**errors_of_caller):
                return run(*operands)
        finally:
            _CALLERS.reset(before)

    return run_host


@contextlib.contextmanager
def _with_stack_space(usual: Callable[[], contextlib.AbstractContextManager[None]]) -> Iterator[None]:
    with room(), usual():
        yield


class Program:
    """A graph with its values numbered; of a loop's body also the trips that it has made, and its fast form."""

    def __init__(self, graph: Graph) -> None:
        self.trips = 0
        self.hot: HotLoop | None = None
        self.recursion: HotRecursion | None = None  # of a `letrec`'s first function: all of its functions
        slot = {value: index for index, value in enumerate(graph.inputs)}
        nodes = fused(graph.nodes, graph.outputs)
        for node in nodes:
            for value in node.outputs:
                slot[value] = len(slot)
        self.size = len(slot)
        self.context: Callable[[], contextlib.AbstractContextManager[None]] | None = None  # of the outermost graph
        self.outputs = [slot[v] for v in graph.outputs]
        self.instructions: list[tuple] = []
        last_use: dict[int, int] = {}
        lent: set[Value] = set()  # to what may keep it, or a view of it
        in_order: set[Value] = set()  # read in row-major order
        for index, node in enumerate(nodes):
            for value in node.inputs:
                last_use[slot[value]] = index
            if _ufunc(node) is None:
                lent.update(node.inputs)
            if node.op.is_reshape or node.op.is_reduction:
                in_order.add(node.inputs[0])
        keep = set(self.outputs)
        for index, node in enumerate(nodes):
            inputs = [slot[v] for v in node.inputs]
            outputs = [slot[v] for v in node.outputs]
            run = _executor(node)
            if _reorders(node) and node.outputs[0] in in_order:
                run = _stored(run)
            if node.op.effect:
                inputs, outputs = inputs[:-1], outputs[:-1]
            # Slots are emptied after their last use, so that big intermediates are freed as early as in eager code.
            dead = [s for s in inputs if last_use[s] == index and s not in keep]
            for position, value in enumerate(node.inputs):
                if slot[value] in dead and value not in lent and _may_overwrite(node, value):
                    run = _into(_ufunc(node), position)
                    break
            self.instructions.append((run, _form(node, inputs, outputs), inputs, outputs, dead, node))

    def run(self, inputs: Sequence[Any], accelerator: Accelerator | None) -> list[Any]:
        slots: list[Any] = [None] * self.size
        slots[: len(inputs)] = inputs
        node = None
        try:
            for run, form, sources, targets, dead, node in self.instructions:
                if form is _BINARY:
                    one, other = sources
                    slots[targets[0]] = run(slots[one], slots[other])
                elif form is _UNARY:
                    slots[targets[0]] = run(slots[sources[0]])
                elif form is _REGIONS_INSIDE:
                    results = run([slots[s] for s in sources], accelerator)
                    for target, result in zip(targets, results):
                        slots[target] = result
                elif node.op.multiple:
                    for target, result in zip(targets, run(*[slots[s] for s in sources])):
                        slots[target] = result
                elif targets:
                    slots[targets[0]] = run(*[slots[s] for s in sources])
                else:
                    run(*[slots[s] for s in sources])
                for s in dead:
                    slots[s] = None
        except _EXPECTED as error:
            located = None if node is None else _located(error, node, [slots[s] for s in sources])
            if located is None:
                raise
            raise located from (error if isinstance(error, MemoryError) else None)
        return [slots[s] for s in self.outputs]


# How an instruction is run: as most are, without a list of its operands; with the accelerator; as its op says.
_UNARY, _BINARY, _REGIONS_INSIDE, _OTHER = "unary", "binary", "regions inside", "other"


def _form(node: Node, inputs: Sequence[int], outputs: Sequence[int]) -> str:
    if node.regions and node.op.name != "custom_gradient":
        return _REGIONS_INSIDE
    if node.op.multiple or not outputs:
        return _OTHER
    return {1: _UNARY, 2: _BINARY}.get(len(inputs), _OTHER)


def _reorders(node: Node) -> bool:
    """Whether a node gives a view of all elements of an array, in another order."""
    if not node.op.is_view or node.op.keeps_order or len(node.inputs) != 1:
        return False
    sizes = [getattr(value.type, "shape", None) or () for value in (node.inputs[0], node.outputs[0])]
    return len(sizes[0]) > 1 and sorted(map(str, sizes[0])) == sorted(map(str, sizes[1]))


def _stored(view: Callable[..., Any]) -> Callable[..., Any]:
    """What stores a view's elements in their order, once for all that read them so."""

    def run(x: Any) -> Any:
        return np.ascontiguousarray(view(x))

    return run


# Elements of arrays whose memory is worth taking over: the system gives, and clears, fresh pages for large ones.
_LARGE = 1 << 15
_UFUNCS = {
    operator.add: np.add, operator.sub: np.subtract, operator.mul: np.multiply, operator.truediv: np.true_divide,
    operator.neg: np.negative,
}  # fmt: skip


def _ufunc(node: Node) -> np.ufunc | None:
    """The function whose results are a node's, always in memory of their own; None where there is none such."""
    kernel = node.op.kernel
    return None if node.attrs else kernel if isinstance(kernel, np.ufunc) else _UFUNCS.get(kernel)


def _may_overwrite(node: Node, value: Value) -> bool:
    """Whether a node may put its result into the memory of an operand that was computed here and has no other use."""
    type_ = value.type
    return (
        _ufunc(node) is not None
        and value.node is not None
        and _ufunc(value.node) is not None
        and isinstance(type_, TensorType)
        and type_ == node.outputs[0].type
        and not type_.dtype.is_narrow
        and math.prod([size or 0 for size in type_.shape or ()]) >= _LARGE  # unknown sizes may turn out larger
    )


def _into(ufunc: Any, position: int) -> Callable[..., Any]:
    def run(*operands: Any) -> Any:
        return ufunc(*operands, out=operands[position])

    return run


_EXPECTED = (
    ValueError, TypeError, IndexError, errors.OpError, MemoryError, AssertionError, LookupError, ArithmeticError,
    RuntimeError, NameError, AttributeError, StopIteration,
)  # fmt: skip


def _located(error: Exception, node: Node, operands: Sequence[Any]) -> Exception | None:
    """A node's error with the user's line in it; None if the error is raised unchanged."""
    if node.op.name == "call":
        return None  # it comes from a node of the function
    if node.op.name == "assert" or node.op.unchecked:
        return at_span(error, node.span)
    if isinstance(error, (ValueError, TypeError, IndexError)):
        if node.regions or node.op.effect:
            return None
        # The types that the operands have now: static ones may not know what is wrong.
        types = [_type_now(v.type, value) for v, value in zip(node.inputs, operands)]
        return at_span(_naming(explain_failure(node.op, types, node.attrs, error), node), node.span)
    if isinstance(error, errors.OpError):
        return None if AT_SPAN in str(error) else at_span(_naming(error, node), node.span)
    if isinstance(error, MemoryError):
        return None if node.regions else at_span(_naming(out_of_memory(node.op, error), node), node.span)
    return None


def _type_now(type_: Any, value: Any) -> Any:
    return TensorType(type_.dtype, value.shape) if isinstance(type_, TensorType) and hasattr(value, "shape") else type_


def _naming(error: Exception, node: Node) -> Exception:
    if isinstance(error, errors.OpError):
        error.message = with_op(error.message, type(error), node)
        error.args = (error.message, *error.args[1:])
    return error


def _raiser(node: Node) -> Callable[..., Any]:
    def run(*operands: Any) -> Any:
        try:
            return node.op.kernel(*operands, **node.attrs)
        except BaseException as error:
            note_span(error, node.span)
            raise

    return run


def _executor(node: Any) -> Callable[..., Any]:
    if isinstance(node, Fused):
        return node.run
    if node.op.name in _REGIONS:
        return _with_node(_REGIONS[node.op.name], node)
    if node.op.name == "call":
        return _caller(node)
    kernel = node.op.kernel
    if node.op.calls_python:
        return _with_callers_errors(functools.partial(kernel, **node.attrs))
    if node.op.name == "raise":
        return _raiser(node)
    if node.op.widens and any(getattr(getattr(v.type, "dtype", None), "is_narrow", False) for v in node.inputs):
        kernel = widened(node.op, [getattr(v.type, "dtype", None) for v in node.outputs])
    elif node.op.prepared is not None:
        return node.op.prepared(**node.attrs)
    return functools.partial(kernel, **node.attrs) if node.attrs else kernel


def _run_cond(node: Node, operands: list[Any], accelerator: Accelerator | None) -> list[Any]:
    return _run_region(node.regions[0 if operands[0] else 1], operands[1:], accelerator)


def _with_node(run: Callable[..., list[Any]], node: Node) -> Callable[..., list[Any]]:
    # Not a partial: calls of C code in calls of C code use up the system's stack.
    def run_node(operands: list[Any], accelerator: Accelerator | None) -> list[Any]:
        return run(node, operands, accelerator)

    return run_node


class _NoAccelerator:
    """An accelerator that finishes no loop."""

    polls_each_trip = False

    def enter(self, node: Node) -> None:
        pass

    def leave(self) -> None:
        pass

    def finish(self, operands: Sequence[Any]) -> None:
        pass


_NO_ACCELERATOR = _NoAccelerator()


@dataclass
class _Function:
    """A function of a `letrec` that runs. node: the `letrec`, of the function that it calls itself; None for others.
    poll_interval: calls until the accelerator is asked."""

    graph: Graph
    captures: list[Any]
    tier_up: Accelerator
    node: Node | None
    letrec: Node
    calls: int = 0
    poll_interval: int = TRIPS_PER_POLL


class _Functions(threading.local):
    """The functions of the `letrec` nodes that are running, by name, and how many calls in calls there are."""

    def __init__(self) -> None:
        self.known: dict[str, _Function] = {}
        self.depth = 0


_functions = _Functions()


def _run_letrec(node: Node, operands: list[Any], accelerator: Accelerator | None) -> list[Any]:
    captures = operands[len(operands) - node.attrs["captures"] :]
    tier_up: Accelerator = _NO_ACCELERATOR if accelerator is None else accelerator
    before = _functions.known
    _functions.known = dict(before)
    for index, (name, region) in enumerate(zip(node.attrs["functions"], node.regions)):
        _functions.known[name] = _Function(region, captures, tier_up, None if index else node, node)
    tier_up.enter(node)
    try:
        with deep() if _functions.depth == 0 else contextlib.nullcontext():
            _functions.depth += 1
            try:
                name = node.attrs["functions"][0]
                return _run_function(name, _functions.known[name], operands)
            finally:
                _functions.depth -= 1
    finally:
        tier_up.leave()
        _functions.known = before


def _caller(node: Node) -> Callable[..., Sequence[Any]]:
    name, span = node.attrs["function"], node.span

    def call(*arguments: Any) -> Sequence[Any]:
        known = _functions.known
        function = known[name]
        if _functions.depth >= DEEPEST:
            raise at_span(RecursionError(TOO_DEEP), span)
        operands = [*arguments, *function.captures]
        function.calls += 1
        if function.node is not None and (
            function.calls % function.poll_interval == 0 or function.tier_up.polls_each_trip
        ):
            finished = _finished(function.node, operands, function.tier_up)
            if finished is not None:
                function.poll_interval = 1  # what is left of the calls around this one is native, too
                return finished
        _functions.depth += 1
        try:
            return _run_function(name, function, operands)
        finally:
            _functions.depth -= 1
            _functions.known = known

    return call


def _run_function(name: str, function: _Function, operands: list[Any]) -> list[Any]:
    """A call of a function of a `letrec`. After a few of them, it and those in it are calls of Python functions."""
    node, tier_up = function.letrec, function.tier_up
    program = _program(node.regions[0])
    program.trips += 1
    if program.trips <= TRIPS_UNTIL_HOT:
        return _run_region(function.graph, operands, tier_up)
    if program.recursion is None:
        program.recursion = HotRecursion(node, _executor, _raising_too_deep)

    def finish(values: list[Any]) -> Sequence[Any] | None:
        finished = _finished(node, values, tier_up)
        if finished is not None:
            run.poll_interval = 1  # what is left of the calls around this one is native, too
        return finished

    run = Recursion(tier_up, finish, TRIPS_PER_POLL, TRIPS_PER_POLL)
    return _located_errors(program.recursion, lambda hot: hot.run(name, operands, run, _functions.depth))


def _raising_too_deep(node: Node) -> Callable[[], None]:
    def fail() -> None:
        raise at_span(RecursionError(TOO_DEEP), node.span)

    return fail


def _finished(node: Node, operands: list[Any], tier_up: Accelerator) -> Sequence[Any] | None:
    """The results of a call by native code of the `letrec`, if there is any by now."""
    tier_up.enter(node)
    try:
        return tier_up.finish(operands)
    finally:
        tier_up.leave()


def _run_while(node: Node, operands: list[Any], accelerator: Accelerator | None) -> list[Any]:
    test, body = node.regions
    carries = node.attrs["carries"]
    tier_up: Accelerator = _NO_ACCELERATOR if accelerator is None else accelerator
    program = _program(body)
    tier_up.enter(node)
    try:
        while program.trips < TRIPS_UNTIL_HOT:
            if not _run_region(test, operands, tier_up)[0]:
                return operands[:carries]
            operands[:carries] = program.run(operands, tier_up)
            program.trips += 1
            if program.trips % TRIPS_PER_POLL == 0 or tier_up.polls_each_trip:
                finished = tier_up.finish(operands)
                if finished is not None:
                    return list(finished)
        return _run_hot(node, program, operands, tier_up)
    finally:
        tier_up.leave()


_REGIONS = {"cond": _run_cond, "while": _run_while, "letrec": _run_letrec}


def _run_hot(node: Node, program: Program, operands: list[Any], tier_up: Accelerator) -> list[Any]:
    """Runs the remaining trips of a loop as a Python function, which is made the first time. Returns the loop's
    results."""
    if program.hot is None:
        program.hot = HotLoop(node, _executor)
    return _located_errors(program.hot, lambda hot: hot.run(operands, tier_up, TRIPS_PER_POLL))


_Hot = TypeVar("_Hot", HotLoop, HotRecursion)


def _located_errors(hot: _Hot, run: Callable[[_Hot], list[Any]]) -> list[Any]:
    try:
        return run(hot)
    except _EXPECTED as error:
        failed = hot.failed(error)
        located = None if failed is None else _located(error, *failed)
        if located is None:
            raise
        raise located from (error if isinstance(error, MemoryError) else None)
