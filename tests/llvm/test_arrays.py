"""Arrays of kernels: who owns their memory, and for how long; what Python may pass, and what it gets."""

from __future__ import annotations

import gc
import resource
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

from runtime.llvm import Unsupported
from tests.llvm.kernels import needed, ours

pytestmark = needed

CHOICE = """
def kernel(x, fresh):
    r = x
    if fresh:
        a = np.empty(x.size, np.float64)
        for i in range(x.size):
            a[i] = x[i] + 1.0
        r = a
    return r
"""


def test_a_result_that_is_an_argument_is_a_view_of_it() -> None:
    run = ours(CHOICE, "(float64[::1], boolean)")
    x = np.arange(4.0)
    view = run(x, False)
    assert np.shares_memory(view, x)
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is not None
    np.testing.assert_array_equal(view, np.arange(4.0))
    del view
    gc.collect()
    assert gone() is None


def test_a_new_result_lives_as_long_as_its_last_view() -> None:
    run = ours(CHOICE, "(float64[::1], boolean)")
    x = np.arange(1000.0)
    before = sys.getrefcount(x)
    part = run(x, True)[10:20]
    for _ in range(100):
        run(x, True)
    np.testing.assert_array_equal(part, np.arange(11.0, 21.0))
    assert part.flags.writeable
    assert part.ctypes.data % 16 == 0
    del part
    assert sys.getrefcount(x) == before


def test_nothing_leaks() -> None:
    """Arrays that are dropped, exchanged, grown, returned twice, and left behind by an early return."""
    run = ours(
        """
        def kernel(n, stop):
            a = np.empty(n, np.float64)
            b = np.empty(n, np.float64)
            for i in range(n):
                a[i] = 1.0
                b[i] = 2.0
            for k in range(4):
                c = np.empty(n, np.float64)
                c[0] = a[0]
                a, b = b, a
                a = lib.resized(a, n, n + k)
                if k == stop:
                    return 1, lib.shaped((1, n), c), c
                b = lib.copied(c, n)
            d = lib.grown(b, n, 2 * n)
            return 0, lib.shaped((2, n), d), d
        """,
        "(int64, int64)",
    )
    n = 1 << 17  # a mebibyte each
    for stop in (9, 2, 0):
        assert run(n, stop)[0] == int(stop < 4)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for k in range(300):
        run(n, k % 6)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 64 << 10, "KiB; each call makes some ten mebibytes"


MANY = """
def kernel(x, n, size):
    flat = lib.flat(x)
    a = np.empty(n, np.float64)
    b = np.empty(n, np.float64)
    if size < 0:
        return a, lib.shaped((n, 1), b), flat, flat
    c = np.empty(size, np.float64)
    d = np.empty(n, np.float64)
    e = np.empty(n, np.float64)
    for i in range(n):
        t = np.empty(1, np.float64)
        t[0] = flat[i]
        e[i] = t[0]
    r = flat
    if size == 0:
        r = d
    return e, lib.shaped((n, 1), e), flat, r
"""


def test_nothing_leaks_of_many_arrays() -> None:
    run = ours(MANY, "(float64[:, ::1], int64, int64)")
    n = 1 << 17  # a mebibyte each
    x = np.arange(float(n)).reshape(2, -1)
    count = sys.getrefcount(x)

    def all_ways() -> None:
        run(x, n, -1)
        run(x, n, 0)
        e, column, flat, same = run(x, n, 7)
        assert np.shares_memory(flat, x) and np.shares_memory(same, x) and np.shares_memory(e, column)
        with pytest.raises(MemoryError):
            run(x, n, 1 << 60)

    all_ways()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(100):
        all_ways()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 << 10, "KiB"
    assert sys.getrefcount(x) == count


def test_too_large_an_array_is_a_memory_error() -> None:
    run = ours(
        "def kernel(n):\n    a = np.empty(8, np.int8)\n    b = np.empty(n, np.int64)\n    return a, b\n", "(int64,)"
    )
    for n in (1 << 45, 1 << 60, -1):
        with pytest.raises(MemoryError):
            run(n)
    assert run(0)[1].shape == (0,)


def test_numbers_may_be_of_any_class_that_converts() -> None:
    run = ours("def kernel(x, n, b, u):\n    return x, n, b, u\n", "(float32, int32, boolean, uint64)")
    for given in (
        (np.float32(0.5), np.int32(-3), np.True_, np.uint64(2**64 - 1)),
        (0.5, -3, True, 2**64 - 1),
        (np.float64(0.5), np.int64(-3), 1, np.uint64(2**64 - 1)),
        (np.array(0.5), np.int8(-3), [0], 2**64 - 1),
    ):
        x, n, b, u = run(*given)
        assert [type(v) for v in (x, n, b, u)] == [np.float32, np.int32, np.bool_, np.uint64]
        assert (x, n, b, u) == (0.5, -3, True, 2**64 - 1)
    assert type(ours("def kernel(n):\n    return n\n", "(int64,)")(np.int64(7))) is int


def test_arguments_of_the_wrong_class_are_errors() -> None:
    run = ours(CHOICE, "(float64[::1], boolean)")
    for wrong in (
        ([1.0], True),
        (np.zeros((2, 2)), True),
        (np.zeros(2),),
        (np.zeros(2), True, 3),
        (np.float64(1), True),
    ):
        with pytest.raises(TypeError, match="wrong arguments"):
            run(*wrong)
    numbers = ours("def kernel(x, n):\n    return x, n\n", "(float64, int64)")
    with pytest.raises(TypeError, match="real number"):
        numbers("x", 1)
    with pytest.raises(TypeError):
        numbers(1.0, 1.5)
    with pytest.raises(OverflowError):
        numbers(1.0, 2**70)


@pytest.mark.parametrize(
    "body",
    [
        "return [x]", "return x[0:1]", "return x.T", "x.sort()", "return sorted(x)", "y = x\n    y = 1.0\n    return y",
        "return x if n else x", "while n:\n        n = 0\n    else:\n        n = 1\n    return n", "return 1 < n < 3",
        "return n ** 2.0 | 1", "return np.linalg.norm(x)", "return lib.flat(x, order=1)", "del x", "return undefined",
        "for v in x:\n        n = v\n    return n", "return x[-1]", "return x[n, n]", "return 'text'",
        "global g\n    g = 1\n    return g", "t = (n, n)\n    t = (n, n, n)\n    return t",
    ],
)  # fmt: skip
def test_what_is_not_in_its_part_of_python_is_refused(body: str) -> None:
    with pytest.raises(Unsupported):
        ours(f"def kernel(x, n):\n    {body}\n", "(float64[::1], int64)")


def test_arrays_that_outlive_everything_are_freed_without_a_crash() -> None:
    program = """
import builtins, sys, types
import numpy as np
from tests.llvm.kernels import ours
run = ours("def kernel(n):\\n    a = np.empty(n, np.float64)\\n    a[0] = 1.0\\n    return a\\n", "(int64,)")
builtins.kept, sys.kept = run(1000), run(300000)
sys.modules["late"] = types.ModuleType("late")
sys.modules["late"].array = run(10)
circle = [run(20)]
circle.append(circle)
"""
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
