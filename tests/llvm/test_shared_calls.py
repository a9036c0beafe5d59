"""The sine and the cosine of one number come from one call, with the bits of the functions by themselves."""

from __future__ import annotations

import numpy as np
import pytest

from tests.llvm.kernels import needed, ours

pytestmark = needed

KERNEL = """
def kernel(x, n):
    index = 0
    a = np.empty(n, np.{kind})
    b = np.empty(n, np.{kind})
    while index < n:
        y = x[index]
        a[index] = {first}
        b[index] = {second}
        index = index + 1
    return a, b
"""
AWKWARD = [0.0, -0.0, 1e-30, 1e-310, 0.5, 1.0, np.pi / 4, np.pi / 2, np.pi, 355.0, 1e5, 2.0**41, 1e300, np.inf, np.nan]


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_both_in_one_call_are_what_they_are_alone(kind: str) -> None:
    signature = f"({kind}[::1], int64)"
    with np.errstate(over="ignore"):
        numbers = np.concatenate([AWKWARD, np.random.default_rng(0).uniform(-1e4, 1e4, 5000)]).astype(kind)
    x = np.concatenate([numbers, -numbers])
    joint = ours(KERNEL.format(kind=kind, first="lib.sin(y)", second="lib.cos(y)"), signature)
    alone = [
        ours(KERNEL.format(kind=kind, first=f"lib.{name}(y)", second="y"), signature)(x, x.size)[0]
        for name in ("sin", "cos")
    ]
    for got, want in zip(joint(x, x.size), alone):
        is_nan = np.isnan(want)
        assert (np.isnan(got) == is_nan).all()  # whose sign means nothing
        assert got[~is_nan].tobytes() == want[~is_nan].tobytes()


def test_lanes_call_both_at_once_too() -> None:
    text = """
def kernel(x):
    index = 0
    total = 0.0
    while index < x.size:
        y = x[index]
        while y > 1.0:
            y = y - 0.6 - lib.sin(y) * lib.cos(y)
        total = total + y
        index = index + 1
    return total
"""
    x = np.random.default_rng(0).uniform(0.0, 20.0, 203)
    total = 0.0
    for y in x:
        while y > 1.0:
            y = y - 0.6 - np.sin(y) * np.cos(y)
        total += y
    assert abs(ours(text, "(float64[::1])")(x) - total) < 1e-9
