"""Which kernels are compiled without some of LLVM's passes: those for vectors, those that unroll loops."""

import re
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest

from runtime.codegen.backends import llvm_backend
from runtime.llvm import target
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
OVER_A_ROW = """
    def kernel(n, r):
        total = np.float32(0.0)
        for i in range(n):
            for j in range(3):
                total = lib.add(total, np.float32(j) * r)
        return total
"""
OUTER_LOOP = """
    def kernel(n, r):
        index = 0
        a = np.empty(n, np.float32)
        while index < 3:
            for i in range(n):
                a[i] = r
            index = index + 1
        return a
"""
SERIAL = [RECURRENCE, THROUGH_OTHERS, UNCOUNTED, LEFT_BY_BREAK, NO_LOOP]
VECTORS = [INTEGER_SUM, ANY_ORDER, COUNTED_BREAK, OVER_ELEMENTS]


def written(text: str) -> Any:
    _, given = source(text, "(int64, float32)")
    program = llvm_backend.program(given)
    program.text("kernel", given.signature, "kernel")
    return program


def has_vectors(text: str) -> bool:
    return written(text).vectors


@pytest.mark.parametrize("text", SERIAL)
def test_loops_that_have_no_vectors(text: str) -> None:
    assert not has_vectors(text)


@pytest.mark.parametrize("text", VECTORS)
def test_loops_that_may_have_vectors(text: str) -> None:
    assert has_vectors(text)


@pytest.mark.parametrize("text", [UNCOUNTED, NO_LOOP, OVER_ELEMENTS])
def test_without_constant_trip_counts_unrolling_changes_nothing(text: str) -> None:
    assert not written(text).unrolls
    _, given = source(text, "(int64, float32)")
    program = written(text)
    module = program.text("kernel", given.signature, "kernel")
    lengths = [
        target.optimised_text(module, program.modules.values(), target.Passes("all", unrolling)).count("\n")
        for unrolling in (False, True)
    ]
    assert lengths[0] == lengths[1]


@pytest.mark.parametrize("text", [INTEGER_SUM, COUNTED_BREAK, OVER_A_ROW])
def test_loops_that_may_be_unrolled(text: str) -> None:
    assert written(text).unrolls


def test_loops_around_others_are_not_unrolled() -> None:
    assert not written(OUTER_LOOP).unrolls


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (RECURRENCE, "scalar"),
        (OUTER_LOOP, "all"),
        (OUTER_LOOP.replace("return a", "while index < n: index = index + 1\n        return a"), "twice"),
        (OUTER_LOOP.replace("for i in", "for i in range(n): a[i] = -r\n            " * 2 + "for i in"), "nests"),
        (OVER_ELEMENTS, "nests"),
    ],
)
def test_the_loops_of_a_kernel_choose_the_passes(text: str, kind: str) -> None:
    _, given = source(text, "(int64, float32)")
    assert llvm_backend.passes(given, written(text)).kind == kind


@pytest.mark.parametrize("kind", get_args(get_type_hints(target.Passes)["kind"]))
def test_functions_that_run_once_are_left_as_they_are_without_a_word(kind: Any, capfd: Any) -> None:
    """LLVM took a tenth of a first result for them; it reported each on stderr where passes ran one after another."""
    _, given = source(OUTER_LOOP, "(int64, float32)")
    program = written(OUTER_LOOP)
    module = program.text("kernel", given.signature, "kernel")
    text = target.optimised_text(module, program.modules.values(), target.Passes(kind))
    assert re.search(r"attributes #\d+ = \{ .*\boptnone\b", text)
    assert capfd.readouterr().err == ""


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
