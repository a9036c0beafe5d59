"""What kernels compute is what numba makes of the same text, to the last bit but for functions of the C library."""

from __future__ import annotations

import itertools
import operator
from typing import Any

import numpy as np
import pytest

from tests.llvm.kernels import needed, numbas, ours

pytestmark = needed

INTEGERS = ["int8", "int32", "int64", "uint8", "uint32", "uint64"]
FLOATS = ["float32", "float64"]
INTEGER_OPS = [
    "a + b",
    "a - b",
    "a * b",
    "a // b",
    "a % b",
    "a & b",
    "a | b",
    "a ^ b",
    "~a",
    "-a",
    "abs(a)",
    "a << c",
    "a >> c",
]
FLOAT_OPS = [
    "a + b", "a - b", "a * b", "a / b", "a // b", "a % b", "-a", "abs(a)", "np.floor(a)", "np.ceil(a)", "np.trunc(a)",
    "np.rint(a)", "math.sqrt(abs(a))", "lib.maximum(a, b)", "lib.minimum(a, b)", "a + 1", "a * 2.5", "a - np.int8(3)",
    "np.float32(a)", "np.float64(a)", "min(a, b)", "max(a, b, a)", "(a if a > b else b)", "(a / b if b != 0 else b)",
    "lib.as_bits(a)", "lib.from_bits(lib.as_bits(a))",
]  # fmt: skip
EITHER_OPS = [
    "a < b", "a <= b", "a > b", "a >= b", "a == b", "a != b", "not a", "a < b and b < 3", "a == b or a > 3", "a < 3",
    "a > 2.5", "np.bool_(a)", "(a < b) != (b < 3)", "np.isfinite(np.float64(a))", "np.isinf(np.float64(a))",
]  # fmt: skip
COMMON_OPS = ["np.float64(a)", "np.float32(b)", "min(a, b)", "max(a, b)", "a / b", "(1 if a == b else 0)"]


def _text(operations: list[str], cast: str) -> str:
    """A kernel that applies operations to the elements of two arrays; arrays of results."""
    lines = ["def kernel(x, y, z):", "    n = x.size"]
    lines += [f"    r{i} = np.empty(n, np.{cast})" for i in range(len(operations))]
    lines += ["    for i in range(n):", "        a = x[i]", "        b = y[i]", "        c = z[i]"]
    lines += [f"        r{i}[i] = {operation}" for i, operation in enumerate(operations)]
    return "\n".join([*lines, f"    return {', '.join(f'r{i}' for i in range(len(operations)))}", ""])


def _pairs(name: str) -> list[np.ndarray]:
    dtype = np.dtype(name)
    if dtype.kind == "f":
        values = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 7.25, -7.25, np.inf, -np.inf, np.nan, 1e30, -1e-30, 123456.5]
    else:
        info = np.iinfo(dtype)
        small = [0, 1, 2, 3, 5, 7, 100] + ([-1, -2, -3, -7, -100] if dtype.kind == "i" else [])
        values = [*small, info.max, info.max - 1, info.min, info.min + 1]
    pairs = list(itertools.product(values, values))
    a, b = np.array([a for a, _ in pairs], dtype), np.array([b for _, b in pairs], dtype)
    if dtype.kind == "i":  # the quotient that overflows: numba makes it 0, NumPy and we the smallest integer
        keep = ~((a == np.iinfo(dtype).min) & (b == dtype.type(-1)))
        a, b = a[keep], b[keep]
    return [a, b, (np.arange(a.size) % 8).astype(dtype)]


def _same(operations: list[str], name: str, cast: str) -> None:
    text, signature = _text(operations, cast), f"({name}[::1], {name}[::1], {name}[::1])"
    arrays = _pairs(name)
    for operation, got, want in zip(operations, ours(text, signature)(*arrays), numbas(text, signature)(*arrays)):
        np.testing.assert_array_equal(got, want, err_msg=f"{operation} of {name}")
        if cast.startswith("f"):
            known = ~np.isnan(want)  # signs of NaN may differ
            np.testing.assert_array_equal(np.signbit(got)[known], np.signbit(want)[known], err_msg=operation)


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name: str) -> None:
    _same(INTEGER_OPS, name, name)


@pytest.mark.parametrize("name", FLOATS)
def test_floats(name: str) -> None:
    _same(FLOAT_OPS, name, "float64")


@pytest.mark.parametrize("name", ["int32", "uint64", "float32"])
def test_comparisons(name: str) -> None:
    _same([*EITHER_OPS, *COMMON_OPS], name, "float64")


def test_int64_against_uint64() -> None:
    """No type holds both: by their values, as Python does, where numba goes by way of float64."""
    names = {
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
        "==": operator.eq,
        "!=": operator.ne,
    }
    text = _text([f"{left} {op} {right}" for op in names for left, right in ("ab", "ba")], "int8")
    run = ours(text, "(int64[::1], uint64[::1], int8[::1])")
    pairs = list(itertools.product([-(2**63), -1, 0, 1, 2**63 - 1], [0, 1, 2**63 - 1, 2**63, 2**64 - 1]))
    results = iter(
        run(np.array([a for a, _ in pairs]), np.array([b for _, b in pairs], np.uint64), np.zeros(25, np.int8))
    )
    for op, compare in names.items():
        assert list(next(results)) == [compare(a, b) for a, b in pairs], f"a {op} b"
        assert list(next(results)) == [compare(b, a) for a, b in pairs], f"b {op} a"


def test_quotients_that_overflow_are_numpys() -> None:
    text = "def kernel(a, b):\n    return a // b, a % b\n"
    least = np.int64(-(2**63))
    assert ours(text, "(int64, int64)")(least, np.int64(-1)) == (least, 0)
    assert ours(text, "(int64, int64)")(least, np.int64(0)) == (0, 0)


def test_powers_of_integers() -> None:
    text = "def kernel(a, b):\n    return a ** b\n"
    for a, b in ((3, 4), (-2, 63), (0, 0), (7, 1), (10, 25)):
        assert ours(text, "(int64, int64)")(np.int64(a), np.int64(b)) == int(np.int64(a) ** np.int64(b))


@pytest.mark.parametrize("bounds", ["n", "1, n", "n, 0, -1", "0, n, 3", "np.int32(2), np.int32(9)"])
def test_ranges(bounds: str) -> None:
    text = f"""
    def kernel(n):
        total = 0
        last = -1
        for i in range({bounds}):
            if i == 7:
                continue
            total = total * 3 + i
            last = i
            if i > 40:
                break
        return total, last
    """
    for n in (-1, 0, 1, 2, 10, 50):
        assert ours(text, "(int64,)")(n) == numbas(text, "(int64,)")(n)


FUNCTIONS = [
    "exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf",
    "erfc", "lgamma", "log1p", "expm1",
]  # fmt: skip


@pytest.mark.parametrize("name", FLOATS)
def test_functions_of_the_c_library(name: str) -> None:
    """Within 2 units in the last place: numba has some of them from elsewhere."""
    operations = [f"math.{function}(a)" for function in FUNCTIONS] + ["math.atan2(a, b)", "math.pow(abs(a), b)"]
    text, signature = _text(operations, name), f"({name}[::1], {name}[::1], {name}[::1])"
    x = np.linspace(-2.5, 2.5, 41).astype(name)
    arrays: list[Any] = [x, x[::-1].copy(), x]
    for operation, got, want in zip(operations, ours(text, signature)(*arrays), numbas(text, signature)(*arrays)):
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want), err_msg=operation)
        np.testing.assert_allclose(got, want, rtol=2 * np.finfo(name).eps, atol=0, err_msg=operation)
