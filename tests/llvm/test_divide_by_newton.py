"""Divisions and roots by multiplication (`runtime/llvm/optimize/divide_by_newton.py`): the bits of the divider's."""

from __future__ import annotations

import re
import threading

import numpy as np
import pytest

from runtime.codegen.backends import llvm_backend
from runtime.llvm import target
from runtime.llvm.optimize import divide_by_newton
from tests.llvm.kernels import needed, source

pytestmark = needed

TEXT = """import math
import numpy as np
import runtime.codegen.kernel_library.functions as lib

def kernel(x, y):
    n = x.shape[0]
    quotients = np.empty(n, np.{dtype})
    roots = np.empty(n, np.{dtype})
    for i in range(n):
        quotients[np.uint64(i)] = x[np.uint64(i)] / y[np.uint64(i)]
        roots[np.uint64(i)] = math.sqrt(x[np.uint64(i)])
    return quotients, roots
"""


def awkward(dtype: type) -> np.ndarray:
    """Numbers at the ends of the range, and around powers of two."""
    info = np.finfo(dtype)
    powers = np.ldexp(dtype(1), np.arange(info.minexp - info.nmant, info.maxexp, 7)).astype(dtype)
    near = [np.nextafter(powers, side).astype(dtype) for side in (dtype(0), dtype(np.inf))]
    special = np.array([0.0, np.inf, np.nan, info.max, info.tiny, info.smallest_subnormal, 3.0, 10.0], dtype)
    sizes = np.concatenate([powers, *near, special])
    return np.concatenate([sizes, -sizes])


def pairs(dtype: type) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(7)
    few = awkward(dtype)
    x, y = (side.ravel() for side in np.meshgrid(few, few))
    a, b = (random.uniform(1, 2, 400_000).astype(dtype) for _ in range(2))
    b[:1000] = np.nextafter(dtype(2), dtype(1))  # a significand of ones
    a[:500] = 1
    # Products that lie halfway between two quotients, but for their rounding.
    halfway = (a[200_000:].astype(np.longdouble) * (1 + np.finfo(dtype).eps / 2)) * b[200_000:]
    a[200_000:] = halfway.astype(dtype)
    return np.concatenate([x, a]), np.concatenate([y, b])


def compiled(text: str, signature: str, monkeypatch: pytest.MonkeyPatch) -> tuple[object, list[str]]:
    """A kernel, and the changed text of its module, if it has been changed."""
    changed: list[str] = []
    original, here = divide_by_newton.with_fewer_divisions, threading.get_ident()

    def noting(module: object) -> str | None:
        found = original(module)
        if threading.get_ident() == here:  # functions of earlier tests may still compile in the background
            changed.extend([found] if found is not None else [])
        return found

    monkeypatch.setattr(target.divide_by_newton, "with_fewer_divisions", noting)
    name, kernel = source(text, signature)
    return llvm_backend.compile(name, kernel)[0], changed


@pytest.mark.parametrize("chosen", [None, (2, 0)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_quotients_are_the_dividers(
    dtype: type, chosen: tuple[int, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if chosen is not None:
        monkeypatch.setattr(divide_by_newton, "_chosen", lambda divisions, roots, block: chosen)
    name = np.dtype(dtype).name
    kernel, changed = compiled(TEXT.format(dtype=name), f"({name}[::1], {name}[::1])", monkeypatch)
    assert bool(changed) == divide_by_newton._is_known()
    x, y = pairs(dtype)
    with np.errstate(all="ignore"):
        expected = x / y, np.sqrt(x)
    for found, wanted in zip(kernel(x, y), expected):  # type: ignore[operator]
        assert np.array_equal(np.isnan(found), np.isnan(wanted))
        kept = ~np.isnan(wanted)
        assert np.array_equal(found[kept].view(f"u{found.itemsize}"), wanted[kept].view(f"u{found.itemsize}"))


def hard_roots(dtype: type) -> np.ndarray:
    """All numbers from 1 to 4 whose roots lie next to the middle of two numbers, and the numbers beside them: A 2**k
    is M**2 - r for an odd M of one bit more than a number has, and a small r."""
    bits = np.finfo(dtype).nmant + 1
    found = []
    for k, scale in ((bits + 1, bits - 1), (bits + 2, bits - 2)):  # between 1 and 2, between 2 and 4
        for r in range(1 - 4096, 4096, 8):
            root = 1  # of r, bit after bit
            for bit in range(3, k):
                if (root * root - r) >> bit & 1:
                    root += 1 << (bit - 1)
            for middle in (root, -root, root + (1 << (k - 1)), -root + (1 << (k - 1))):
                middle %= 1 << k
                number = (middle * middle - r) >> k
                if middle >> bits == 1 and number.bit_length() == bits:
                    found.append(np.ldexp(dtype(number), -scale))
    numbers = np.array(found, dtype)
    assert numbers.size > 1000
    return np.concatenate([numbers, np.nextafter(numbers, dtype(0)), np.nextafter(numbers, dtype(9))])


@pytest.mark.parametrize("chosen", [(0, 2), (2, 2)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_roots_are_the_dividers(dtype: type, chosen: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of float32 all: two powers of two hold every significand."""
    monkeypatch.setattr(divide_by_newton, "_chosen", lambda divisions, roots, block: chosen)
    name = np.dtype(dtype).name
    kernel, changed = compiled(TEXT.format(dtype=name), f"({name}[::1], {name}[::1])", monkeypatch)
    if not divide_by_newton._is_known():
        pytest.skip("only for AMD processors with AVX-512")
    assert "@autograph_root_" in changed[0]
    x = np.concatenate(
        [awkward(dtype), hard_roots(dtype), np.random.default_rng(8).uniform(1, 4, 400_000).astype(dtype)]
    )
    if dtype is np.float32:
        first, last = (int(np.float32(end).view(np.int32)) for end in (1, 4))
        x = np.concatenate([x, np.arange(first, last, dtype=np.int32).view(np.float32)])
    with np.errstate(all="ignore"):
        wanted = np.sqrt(x)
    _, found = kernel(x, x)  # type: ignore[operator]
    assert np.array_equal(np.isnan(found), np.isnan(wanted))
    kept = ~np.isnan(wanted)
    assert np.array_equal(found[kept].view(f"u{found.itemsize}"), wanted[kept].view(f"u{found.itemsize}"))


def test_divisions_are_moved_where_the_divider_is_the_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two quotients and two roots a trip one root: all of them would make the units for products the slower ones."""
    if not divide_by_newton._is_known():
        pytest.skip("only for AMD processors with AVX-512")
    _, changed = compiled(TEXT.format(dtype="float32"), "(float32[::1], float32[::1])", monkeypatch)
    (text,) = changed
    body = re.search(r"^vector\.body:.*\n(?:.+\n)+", text, re.MULTILINE)
    assert body is not None
    assert body[0].count("@autograph_root_16xfloat(") == 1
    assert body[0].count("@llvm.sqrt.v16f32(") == 1
    assert body[0].count(" fdiv <16 x float>") == 2


def test_a_loop_without_roots_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    text = TEXT.format(dtype="float32").replace("math.sqrt(x[np.uint64(i)])", "x[np.uint64(i)] + y[np.uint64(i)]")
    _, changed = compiled(text, "(float32[::1], float32[::1])", monkeypatch)
    assert not changed
