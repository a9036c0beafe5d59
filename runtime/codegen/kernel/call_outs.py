"""Calls from a kernel to Python, for nodes that have no native form.

    record[0] = 0; record[1] = lib.bits(x)      what it is told: numbers as the bits of an int64, sizes of arrays
    lib.call_out(f, record, a, out)             f is the address of a C function, an argument of the kernel
    if record[0] != 0:                          what it tells: whether Python raised an error, which it keeps
        return 1, ...

The C function is ctypes'. It takes the interpreter lock, runs a graph on the interpreter, whose errors name the user's
line, and writes the results to arrays of the kernel's. So the text of a kernel doesn't depend on what it calls.
"""

from __future__ import annotations

import ctypes
import functools
import signal
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime import performance, profiling
from runtime.codegen.kernel.source import ErrorSite, scalar_of_bits
from runtime.dataclass import dataclass
from runtime.errors import place
from runtime.graph.interpreter import runner
from runtime.graph.ir import Graph, Node, Substitution, copy_nodes
from runtime.ops.control import PRINT

FAILED = 0  # the place in the record that says whether there was an error
FIRST = 1  # the first of the numbers
CATEGORY = "call-out"  # of spans in profiles


class CallOut:
    """A Python function that a kernel calls by its address."""

    def __init__(
        self, function: Callable[[Any, Sequence[Any]], None], arrays: int, node: Node | None = None
    ) -> None:  # fmt: skip
        """function: takes the numbers of the record and the addresses of the arrays. arrays: how many there are. node:
        what it runs, if that is a node of the graph."""
        self.node = node
        self.calls = 0
        self.seconds = 0.0  # of all calls
        self._function = function
        self._arrays = arrays
        self._errors = threading.local()

    @functools.cached_property
    def address(self) -> int:
        """The address of the C function, which exists as long as this object."""
        found = ctypes.cast(self._entry, ctypes.c_void_p).value
        assert found is not None
        return found

    @functools.cached_property
    def _entry(self) -> Any:
        addresses = [ctypes.c_void_p] * self._arrays
        return ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_int64), *addresses)(self._run)

    def _run(self, record: Any, *addresses: Any) -> None:
        start = time.perf_counter()
        try:
            if profiling.recording and self.node is not None:
                with profiling.span(CATEGORY, f"Python: {self.node.op.name}", **named(self.node)):
                    self._function(record, addresses)
            else:
                self._function(record, addresses)
        except BaseException as error:  # the kernel ends, and its stub raises it
            self._errors.raised = error
            record[FAILED] = 1
        self.calls += 1
        self.seconds += time.perf_counter() - start

    def error(self) -> BaseException:
        """The error of this thread's last call, which is forgotten here."""
        raised: BaseException = self._errors.raised
        del self._errors.raised
        return raised


@dataclass(frozen=True)
class Failed(ErrorSite):
    """An error that Python has raised in a call from the kernel."""

    call: Any = None  # a `CallOut`

    def exception(self, details: Sequence[int]) -> Exception | None:
        error: Exception = self.call.error()
        return error


def of_node(node: Node) -> CallOut:
    """Runs a node. Its inputs that aren't tokens come in order, then its outputs: a scalar input as a number; an array
    as an address, and its sizes as numbers; an output as the address of memory for it, whose sizes are known."""
    graph = Graph(node.op.name)
    mapping = Substitution({value: graph.add_input_like(value) for value in dict.fromkeys(node.inputs)})
    graph.inputs = [mapping[value] for value in node.inputs]
    copy_nodes([node], graph, mapping)
    graph.outputs = [mapping[value] for value in node.outputs]
    keeps = node.op is not PRINT  # others may keep their operands, so they get copies
    read = [(value.dtype, len(value.shape)) if value.is_tensor else None for value in graph.inputs]
    written = [
        (index, value.dtype.np, value.shape) for index, value in enumerate(graph.outputs) if value.is_tensor
    ]  # fmt: skip
    run_graph = runner(graph)

    def run(record: Any, addresses: Sequence[Any]) -> None:
        at, rest = FIRST, iter(addresses)
        operands: list[Any] = []
        for each in read:
            if each is None:
                operands.append(None)
                continue
            dtype, rank = each
            if rank == 0:
                operands.append(scalar_of_bits(dtype, record[at]))
                at += 1
            else:
                array = _array(next(rest), dtype.np, record[at : at + rank])
                operands.append(array.copy() if keeps else array)
                at += rank
        results = run_graph(operands)
        for index, dtype, shape in written:
            _array(next(rest), dtype, shape)[...] = results[index]

    return CallOut(run, sum(1 for each in read if each is not None and each[1]) + len(written), node)


def named(node: Node) -> dict[str, str]:
    """How spans of a node's call-outs say whose they are."""
    return {"op": node.op.name, "line": place(*node.span[:2]) if node.span else ""}


def watched(call: Callable[[Sequence[Any]], list[Any]], calls: Sequence[CallOut]) -> Any:
    """The stub of a kernel with such `calls`, with a warning once most of its time has gone to them."""
    spent = in_python = 0.0
    had_warned = False

    def run(arguments: Sequence[Any]) -> list[Any]:
        nonlocal spent, in_python, had_warned
        if had_warned:
            return call(arguments)
        # Machine code may have called the kernel meanwhile, which isn't known here.
        before = sum([each.seconds for each in calls])
        start = time.perf_counter()
        results = call(arguments)
        spent += time.perf_counter() - start
        in_python += sum([each.seconds for each in calls]) - before
        if in_python > max(performance.SLOW_CALL_OUTS, performance.LARGE_PART_OF_CALL_OUTS * spent):
            had_warned = True
            _warn(max(calls, key=lambda each: each.seconds), spent, in_python)
        return results

    vars(run).update(vars(call))
    return run


def _warn(call: CallOut, spent: float, in_python: float) -> None:
    node = call.node
    if node is None or not node.span:
        return
    performance.warn_once(
        "call-outs",
        node.span[2],
        node.span,
        f"native code of '{node.span[2]}' has spent {in_python:.2f} s of {spent:.2f} s in calls of Python, most of it "
        f"in {call.calls} calls for op '{node.op.name}'",
        f"op '{node.op.name}' has no native code, so the loop or branch around it asks Python each time",
        "do it before the loop or after it, for all iterations at once, or less often, or write it with operations "
        "that have native code",
    )


def of_signals() -> CallOut:
    """Runs the user's handler of Ctrl-C, after which the kernel goes on unless the handler raises an error."""
    return CallOut(lambda record, addresses: signal.raise_signal(signal.SIGINT), 0)


def _array(address: int | None, dtype: np.dtype, shape: Sequence[int]) -> np.ndarray:
    """The array at an address, as long as the kernel keeps its memory."""
    size = dtype.itemsize
    for each in shape:
        size *= each
    if not size:
        return np.empty(shape, dtype)
    memory: Any = (ctypes.c_char * size).from_address(address or 0)
    return np.frombuffer(memory, dtype).reshape(shape)


def argument(constant: Any) -> Any:
    """The argument that the kernel is passed for a constant: the address of a call of Python, or the constant
    itself."""
    return constant.address if isinstance(constant, CallOut) else constant
