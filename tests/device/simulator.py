"""`python -m tests.device.simulator`, with NUMBA_ENABLE_CUDASIM=1: kernels in SPMD form, as Python, in the simulator of
numba.cuda: threads of one block, `cuda.syncthreads` for barriers.

What threads ask of their launch (`gpu.thread()` and the like) is written below in numba.cuda's terms. Prints a line for
each program that gives what the interpreter gives; ends with an error otherwise.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
from numba import cuda

import autograph as ag
from runtime.codegen.device.device_module import spmd_of
from runtime.codegen.device.kernel import printed
from runtime.codegen.lower.lower_graph import lower
from tests.autodiff.work import Library
from tests.device.test_programs import fractal, newton, own_trips, recurrence, stencil, written

THREADS = 5
_NO_FAILURE = (1 << 63) - 1

# In the namespace of a kernel, in which the simulator puts its own `cuda`.
GPU = f"""
class gpu:
    thread = staticmethod(lambda: cuda.grid(1))
    threads = staticmethod(lambda: cuda.gridsize(1))
    thread_in_block = staticmethod(lambda: cuda.threadIdx.x)
    block_size = staticmethod(lambda: cuda.blockDim.x)
    block = staticmethod(lambda: cuda.blockIdx.x)
    blocks = staticmethod(lambda: cuda.gridDim.x)
    barrier = block_barrier = staticmethod(lambda: cuda.syncthreads())
    udiv = staticmethod(lambda a, b: a // b)
    urem = staticmethod(lambda a, b: a % b)
    # The simulator has no shuffles: each thread is a warp.
    warp_size = staticmethod(lambda: 1)
    shuffle = staticmethod(lambda value, lane: value)
    store_warp_partial = staticmethod(lambda place, value: of_warps.__setitem__(place, value))
    load_warp_partial = staticmethod(lambda place, like: of_warps[place])
    store_broadcast = staticmethod(lambda place, value: handed.__setitem__(place, value))
    load_broadcast = staticmethod(lambda place, like: handed[place])
    record_failure = staticmethod(lambda trip: cuda.atomic.min(first, 0, trip))
    failed = staticmethod(lambda: first[0] != {_NO_FAILURE})
    first_failure = staticmethod(lambda: first[0])
    store_detail = staticmethod(lambda place, value: details.__setitem__(place, value))
    load_detail = staticmethod(lambda place: details[place])

    @staticmethod
    def empty(size, dtype):  # one array for all threads, as the first one makes it
        cuda.syncthreads()
        if cuda.grid(1) == 0:
            made[0] = np.empty(size, dtype)
        cuda.syncthreads()
        return made[0]
"""


class OfDevices(Library):
    """The library of kernels, as far as these need it."""

    tanh, maximum, minimum, to_int32, abs = np.tanh, np.maximum, np.minimum, np.int32, np.abs


def run(source: Any, arguments: list[Any]) -> tuple:
    """What a kernel returns in the simulator."""
    kernel = spmd_of(source)
    given = kernel.given
    values = [*arguments, *source.constants]
    sizes, _ = given.plan(*values)
    values += [np.empty(max(int(n), 0), each.name) for n, each in zip(sizes, given.elements)]
    found: list[Any] = []
    space: dict[str, Any] = {
        "np": np, "math": math, "lib": OfDevices(), "cuda": cuda, "found": found, "of_warps": [0] * THREADS,
        "made": [None], "handed": [0] * 64, "details": [0] * 17, "first": np.array([_NO_FAILURE]),
    }  # fmt: skip
    names = ", ".join(f"x{number}" for number in range(len(values)))
    entry = (
        f"def entry({names}):\n    result = kernel({names})\n    if gpu.thread() == 0:\n        found.append(result)\n"
    )
    text = f"{GPU}\n\n{printed(kernel)}\n\n\n{entry}".replace(" = np.empty(", " = gpu.empty(")
    text = text.replace("made[0] = gpu.empty(", "made[0] = np.empty(")
    exec(compile(text, "kernel", "exec"), space)
    with np.errstate(all="ignore"):
        cuda.jit(space["entry"])[1, THREADS](*values)
    (result,) = found
    return result if isinstance(result, tuple) else (result,)


def chain(x: Any) -> Any:
    return ag.tanh(x) * 2.0 + ag.reduce_sum(x * x), ag.reduce_max(x)


def gathered(x: Any) -> Any:
    return ag.gather(x, ag.cast(x * 30.0, ag.int32))


def totals(x: Any) -> Any:
    return ag.cumsum(x), ag.cumsum(x, exclusive=True, reverse=True)


def segments(x: Any) -> Any:
    return ag.math.unsorted_segment_sum(x, ag.cast(x * 3.0, ag.int32), 6)


def main() -> int:
    random = np.random.default_rng(3)
    vector = random.uniform(0.5, 2.0, 23).astype(np.float32)
    programs: list[tuple[Any, np.ndarray]] = [
        (chain, vector), (newton, vector), (stencil, vector), (fractal, vector - 1.2),
        (recurrence, random.normal(size=(40, 30)).astype(np.float32)), (own_trips, vector), (totals, vector),
        (segments, vector), (written, random.normal(size=300).astype(np.float32)), (gathered, vector),
    ]  # fmt: skip
    for program, argument in programs:
        function = ag.function(program, jit_compile=False)
        source = lower(function.get_concrete_function(ag.constant(argument)).graph, for_device=True)
        result = run(source, [argument])
        skipped = 1 + source.details if source.errors else 0
        if program is gathered:
            rows = (argument * 30.0).astype(np.int32)
            first = int(np.argmax(rows >= rows.size))
            assert [int(each) for each in result[:4]] == [1, rows[first], rows.size, first], result[:skipped]
        else:
            assert not skipped or result[0] == 0, result[:skipped]
            wanted = ag.nest.flatten(function(ag.constant(argument)))
            for one, other in zip(result[skipped:], wanted, strict=True):
                np.testing.assert_allclose(np.asarray(one), other.numpy(), rtol=2e-5)
        print(f"{program.__name__}: right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
