"""Which kernels are compiled without LLVM's passes for vectors."""

import re

import numpy as np
import pytest

from runtime.codegen.backends import llvm_backend
from tests.llvm.kernels import needed, ours, source

pytestmark = needed

RECURRENCE = """
    def kernel(n, r):
        index, x = 0, np.float32(0.5)
        while index < n:
            x = r * x * (np.float32(1.0) - x)
            index = index + 1
        return x
"""
THROUGH_OTHERS = """
    def kernel(n, r):
        index, x, y = 0, np.float32(0.5), np.float32(0.0)
        while index < n:
            if x > r:
                y_1 = x - r
            else:
                y_1 = y
            x = y_1 * r
            y = y_1
            index = index + 1
        return x
"""
UNCOUNTED = """
    def kernel(n, r):
        count, x = 0, n
        while x * x > 5:
            x = x // 2
            count = count + 1
        return count
"""
LEFT_BY_BREAK = """
    def kernel(n, r):
        count, x = 0, n
        while x * x > 5:
            if n % x == 0:
                break
            x = x - 1
            count = count + 1
        return count
"""
NO_LOOP = """
    def kernel(n, r):
        return r * r
"""
INTEGER_SUM = """
    def kernel(n, r):
        index, total = 0, 0
        while index < n:
            total = total + (index ^ 5)
            index = index + 1
        return total
"""
ANY_ORDER = """
    def kernel(n, r):
        index, total = 0, np.float32(0.0)
        while index < n:
            total = lib.add(total, np.float32(index) * r)
            index = index + 1
        return total
"""
COUNTED_BREAK = """
    def kernel(n, r):
        index, total = 0, 0
        while total >= 0:
            if index >= n:
                break
            total = total + (index ^ 5)
            index = index + 1
        return total
"""
OVER_ELEMENTS = """
    def kernel(n, r):
        a = np.empty(n, np.float32)
        for i in range(n):
            a[i] = r
        return a
"""
SERIAL = [RECURRENCE, THROUGH_OTHERS, UNCOUNTED, LEFT_BY_BREAK, NO_LOOP]
VECTORS = [INTEGER_SUM, ANY_ORDER, COUNTED_BREAK, OVER_ELEMENTS]


def has_vectors(text: str) -> bool:
    _, given = source(text, "(int64, float32)")
    program = llvm_backend.program(given)
    program.text("kernel", given.signature, "kernel")
    return program.vectors


@pytest.mark.parametrize("text", SERIAL)
def test_loops_that_have_no_vectors(text: str) -> None:
    assert not has_vectors(text)


@pytest.mark.parametrize("text", VECTORS)
def test_loops_that_may_have_vectors(text: str) -> None:
    assert has_vectors(text)


@pytest.mark.parametrize("text", [INTEGER_SUM, ANY_ORDER])
def test_llvm_makes_vectors_of_them(text: str) -> None:
    _, given = source(text, "(int64, float32)")
    assert re.search(r"<\d+ x (i64|float)>", llvm_backend.text(given, "optimized-llvm"))


def test_what_is_compiled_with_fewer_passes_computes_the_same() -> None:
    r = np.float32(3.2)
    x = np.float32(0.5)
    for _ in range(100):
        x = np.float32(np.float32(r * x) * np.float32(np.float32(1.0) - x))
    assert ours(RECURRENCE, "(int64, float32)")(100, r) == x
    assert ours(LEFT_BY_BREAK, "(int64, float32)")(91, r) == 0
    assert ours(UNCOUNTED, "(int64, float32)")(40, r) == 5 - 1
