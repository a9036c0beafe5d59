"""Loops in lanes give the bits that they give trip by trip; which loops run in lanes, and what happens at errors."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from runtime.codegen.backends import llvm_backend
from runtime.kernel_ir import ir, print_python
from runtime.kernel_ir.parse_python import parse_functions
from runtime.llvm.optimize import jump_threading, outer_loop_vectorize
from tests.llvm.kernels import needed, ours, source
from tests.llvm.outer_loop_programs import SIZES, Program, arguments, bits

pytestmark = needed


def both(text: str, signature: str) -> tuple[Callable[..., Any], Callable[..., Any], bool]:
    """The kernel with lanes and without them, and whether there are any."""
    name, kernel = source(text, signature)
    written: list[bool] = []
    original = outer_loop_vectorize.write

    def noting(*arguments: Any) -> bool:
        written.append(original(*arguments))
        return written[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outer_loop_vectorize, "write", noting)
        lanes = llvm_backend.compile(f"{name}_lanes", kernel)[0]
        patch.setattr(outer_loop_vectorize, "write", lambda *arguments: False)
        alone = llvm_backend.compile(f"{name}_alone", kernel)[0]
    return lanes, alone, any(written)


@pytest.mark.parametrize("seed", range(60))
def test_random_loops_are_what_they_are_alone(seed: int) -> None:
    program = Program(seed)
    lanes, alone, _ = both(program.text, program.signature)
    for size in SIZES:
        values = arguments(program.kind, size, seed)
        assert bits(lanes(*values)) == bits(alone(*values)), f"{size} elements:\n{program.text}"


SPIRAL = """
def kernel(x, limit):
    ticks = 0
    index = 0
    total = 0.0
    found = 0
    while index < x.size:
        z = x[index]
        steps = 0
        while abs(z) < limit:
            if z == 0.0:
                return 2, float_index(index), 0
            z = z * z + 0.5
            steps = steps + 1
            found = found + 1
            ticks = ticks + 3
            if ticks > 1000:
                ticks = 0
                if lib.interrupted():
                    return 1, 0.0, 0
        index = index + 1
        total = total * 0.5 + np.float64(steps)
    return 0, total, found
""".replace("float_index(index)", "np.float64(index)")


def test_a_loop_of_loops_runs_in_lanes() -> None:
    lanes, alone, planned = both(SPIRAL, "(float64[::1], float64)")
    assert planned
    x = np.linspace(0.1, 3.0, 101)
    assert lanes(x, 50.0) == alone(x, 50.0)


def test_errors_come_in_the_order_of_trips() -> None:
    lanes, alone, _ = both(SPIRAL, "(float64[::1], float64)")
    x = np.linspace(0.1, 3.0, 101)
    for positions in ([0], [100], [40, 41, 90], [17, 3]):
        bad = x.copy()
        bad[positions] = 0.0
        assert lanes(bad, 50.0) == alone(bad, 50.0) == (2, min(positions), 0)


STEPS = """
def kernel(x, y):
    index = 0
    total = 0
    out = np.empty(x.size, np.float64)
    while index < x.size:
        z = x[index]
        while z > 1.0:
            z = {inner}
        {rest}
        index = index + 1
    return total, out
"""


@pytest.mark.parametrize(
    "inner, rest, planned",
    [
        ("z * 0.5", "out[index] = z", True),
        ("z * 0.5", "total = total + 1", True),
        ("z - y[np.int64(z) % 3]", "out[index] = z", True),  # gathers from an argument
        ("z * 0.5 if total < 5 else 0.0", "total = total + 1", False),  # needs what the last trip made
        ("z - out[0] - 1.0", "out[index] = 0.0", False),  # reads what trips write
        ("z - np.float64(total // np.int64(z)) - 1.0", "out[index] = z", False),  # divides 64 bits
    ],
)
def test_what_runs_in_lanes(inner: str, rest: str, planned: bool) -> None:
    lanes, alone, is_planned = both(STEPS.format(inner=inner, rest=rest), "(float64[::1], float64[::1])")
    assert is_planned == planned
    x, y = np.linspace(0.0, 40.0, 77), np.array([0.5, 0.25, 1.0])
    ours, theirs = lanes(x, y), alone(x, y)
    assert ours[0] == theirs[0]
    if "out[index]" in rest:
        np.testing.assert_array_equal(ours[1], theirs[1])


def test_elements_that_no_lane_may_read_are_not_read() -> None:
    text = """
def kernel(x, n):
    index = 0
    total = 0.0
    while index < n:
        at = index
        z = 0.0
        while at < x.size and x[at] < 1.0:
            z = z + (x[at + 100000000] if at + 100000000 < x.size else 1.0)
            at = at + 1
        index = index + 1
        total = total + z
    return total
"""
    lanes, alone, planned = both(text, "(float64[::1], int64)")
    assert planned
    x = np.zeros(50)
    assert lanes(x, 80) == alone(x, 80) == 50 * 51 / 2


def test_ctrl_c_ends_lanes() -> None:
    text = """
def kernel(x):
    ticks = 0
    index = 0
    total = 0.0
    while index < x.size:
        z = x[index]
        while z > 0.0:
            z = z + 1.0
            ticks = ticks + 1
            if ticks > 100000:
                ticks = 0
                if lib.interrupted():
                    return 1, 0.0
        index = index + 1
        total = total + z
    return 0, total
"""
    lanes, _, planned = both(text, "(float64[::1])")
    assert planned
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
        timer.start()
        status, _ = lanes(np.array([-1.0, -1.0, 5.0, -1.0] * 10))
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert status == 1


SEARCH = """
def kernel(x, y, n):
    index = 0
    done = False
    place = -1
    while index < n and (not done):
        if x[index] {sign} y:
            {first}
        else:
            {second}
        index = index + 1
        done = r
        place = r_1
    return place, index
"""


@pytest.mark.parametrize("swapped", [False, True])
def test_a_loop_that_a_flag_ends_leaves_where_it_did(swapped: bool) -> None:
    found, kept = "r = True\n            r_1 = index", "r = done\n            r_1 = place"
    first, second = (kept, found) if swapped else (found, kept)
    text = SEARCH.format(sign="!=" if swapped else "==", first=first, second=second)
    run = ours(text, "(float64[::1], float64, int64)")
    (function,) = parse_functions(text)
    before = print_python.function(function)
    threaded = jump_threading.threaded(function)
    assert any(isinstance(item, ir.Break) for item in ir.walk(threaded.body))
    assert print_python.function(function) == before
    x = np.arange(10.0)
    assert [tuple(run(x, y, 10)) for y in (0.0, 4.0, 9.0, 11.0)] == [(0, 1), (4, 5), (9, 10), (-1, 10)]
    assert tuple(run(x, 4.0, 0)) == (-1, 0)


@pytest.mark.parametrize(
    "change",
    [
        ("        done = r\n", "        done = r\n        done = False\n"),  # the flag doesn't stay
        ("        index = index + 1\n", "        r = r and index < 3\n        index = index + 1\n"),
        ("and (not done)", "or (not done)"),
    ],
)
def test_a_flag_that_may_not_end_the_loop_stays_a_flag(change: tuple[str, str]) -> None:
    text = SEARCH.format(
        sign="==", first="r = True\n            r_1 = index", second="r = done\n            r_1 = place"
    )
    (function,) = parse_functions(text.replace(*change))
    assert jump_threading.threaded(function) is function


@pytest.mark.parametrize("divisor", [1, 2, 3, 7, 8, 64, 100, 127])
@pytest.mark.parametrize("kind", ["int8", "int32", "int64", "uint8", "uint32"])
def test_division_by_literals_is_python_s(kind: str, divisor: int) -> None:
    text = f"""
def kernel(x, q, r):
    a = np.empty(x.size, np.{kind})
    b = np.empty(x.size, np.{kind})
    for i in range(x.size):
        a[i] = x[i] // np.{kind}({divisor})
        b[i] = x[i] % np.{kind}({divisor})
    return a, b
"""
    info = np.iinfo(kind)
    whole = [v for v in (info.min, info.min + 1, -129, -8, -3, -1, 0, 1, 2, 7, 8, 63, 100, info.max) if v >= info.min]
    x = np.array([v for v in whole if v <= info.max], kind)
    quotients, rests = ours(text, f"({kind}[::1], int64, int64)")(x, 0, 0)
    assert quotients.tolist() == [int(v) // divisor for v in x]
    assert rests.tolist() == [int(v) % divisor for v in x]


def test_versions_of_a_loop_whose_trips_get_longer_are_compared_again():
    """Trips are short at first, and lanes win; later ones differ by so much that most lanes wait."""
    import autograph as ag

    @ag.function(jit_compile=True)
    def primes(limit):
        count = 0
        for n in ag.range(2, limit):
            divisor = 2
            while divisor * divisor <= n:
                if n % divisor == 0:
                    break
                divisor += 1
            if divisor * divisor > n:
                count += 1
        return count

    for limit, expected in ((2, 0), (3, 1), (100, 25), (5_000, 669), (100_000, 9592)):
        assert int(primes(ag.constant(limit))) == expected
