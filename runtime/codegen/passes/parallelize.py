"""Parallelisation: large loop nests run on several threads.

    for i in range(n):             @lib.part
        a[i] = x[i] + 1.0          def part(first, last, a, x):
                                       for i in range(first, last):
                            →              a[np.uint64(i)] = x[np.uint64(i)] + 1.0

                                   lib.in_threads(part, threads, n, (a, x))

A loop that doesn't start at 0 does so in the part: `for i_1 in range(first, last): i = i_1 + 1`.

Indices are printed as unsigned, because numba lets negative ones count from the end, which can't be vectorised. In a
loop from 0, numba knows that there are none.

The outer loop of a nest is split into parts, which the threads of a pool take one by one
(`native_runtime/thread_pool.py`). One thread computes each element, in the same way as without threads, so that results
don't depend on their number. That costs some 1 us, or 10 us if the threads have to be woken, and the processor time of
threads that wait for the next nest. So only nests over tensors whose sizes are known while tracing, and large, are
split. The text says that a nest is large, but not how large it is.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from runtime import system
from runtime.codegen import cost_model
from runtime.codegen.passes.kernel import Kernel
from runtime.graph.ir import Node, Value
from runtime.kernel_ir import ir, simplify
from runtime.shapes import element_count
from runtime.types import TensorType

_chosen = 0
_cores = 1
_cores_checked_at = float("-inf")


class ThreadCount:
    """Stands for the number of threads among the arguments of a kernel. It is read at each call."""


def thread_count() -> int:
    """The number of threads for a large nest: the number that was set, or the number of cores of this process."""
    return _chosen or cores()


def chosen_thread_count() -> int:
    """The number that was set; 0 stands for the number of cores."""
    return _chosen


def set_thread_count(count: int) -> None:
    """Sets the number of threads; 0 stands for the number of cores. Raises ValueError for negative numbers."""
    global _chosen
    if count < 0:
        raise ValueError(f"the number of threads must not be negative, got {count}")
    _chosen = count


def cores() -> int:
    """The number of cores that this process may use. It is read once a second, since that takes longer than a small
    kernel."""
    global _cores, _cores_checked_at
    now = time.monotonic()
    if now >= _cores_checked_at + 1.0:
        _cores = system.usable_cores()
        _cores_checked_at = now
    return _cores


def is_large(nodes: Sequence[Node]) -> bool:
    """Whether a fusion group of these nodes has enough work to be split."""
    if not system.has_posix_threads():
        return False
    read = {value for node in nodes for value in node.inputs}
    made = {value for node in nodes for value in node.outputs}
    count = max(map(_elements, read | made), default=0)
    in_memory = sum(map(_elements, read ^ made))  # values between the nodes stay in registers
    return count * sum(node.op.cost for node in nodes) + in_memory >= cost_model.PARALLEL_WORK


def is_costly(nodes: Sequence[Node]) -> bool:
    """Whether a fusion group computes functions such as exp."""
    return any(node.op.cost >= cost_model.COSTLY_OP for node in nodes)


def _elements(value: Value) -> int:
    return (element_count(value.type.shape) or 0) if isinstance(value.type, TensorType) else 0


def run(kernel: Kernel) -> None:
    """Moves parallel loops into functions of their own, which threads run."""
    for function in list(kernel.functions):
        for block in ir.walk_blocks(function.body):
            for position, item in enumerate(block):
                if isinstance(item, ir.For) and item.parallel:
                    block[position] = _on_threads(kernel, item)


def _on_threads(kernel: Kernel, loop: ir.For) -> ir.Run:
    if loop.start != ir.ZERO:
        loop = _from_zero(kernel, loop)
    own = ir.assigned(loop.body) | {loop.index}
    read = {each for item in ir.walk(loop.body) for each in ir.expressions(item) if isinstance(each, ir.Var)}
    used = tuple(sorted((each for each in read if each.name not in own), key=lambda each: each.name))
    part = kernel.names.fresh("part")
    inner = ir.For(loop.index, ir.size_variable("first"), ir.size_variable("last"), ir.ONE, loop.body)
    kernel.functions.append(ir.Function(part, ("first", "last", *(each.name for each in used)), [inner], kind="part"))
    threads = ir.size_variable(thread_count_in(kernel.constants))
    return ir.Run(ir.call("lib.in_threads", ir.Var(part), threads, loop.stop, ir.Tuple(used)))


def _from_zero(kernel: Kernel, loop: ir.For) -> ir.For:
    """An equal loop whose index starts at 0; the old index is computed from it in the body."""
    index = kernel.names.fresh(loop.index)
    body = [ir.assign(loop.index, ir.size_variable(index) + loop.start), *loop.body]
    return ir.For(index, ir.ZERO, simplify.difference(loop.stop, loop.start), ir.ONE, body)


def thread_count_in(constants: list[tuple[str, Any]]) -> str:
    """The variable for the number of threads, which becomes a parameter of the kernel."""
    if not any(isinstance(value, ThreadCount) for _, value in constants):
        constants.append(("threads", ThreadCount()))
    return "threads"
