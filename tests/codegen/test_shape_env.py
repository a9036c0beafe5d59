"""Sizes that only a call knows: kernels for usual ones, and another one for all others."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autograph as ag
from runtime import errors
from runtime.codegen.backends import call_stub, graph_cache
from runtime.codegen.backends.driver import afterwards
from runtime.codegen.lower.lower_graph import lower
from runtime.engine import executable, partition
from runtime.kernel_ir.analysis.polynomial import Polynomial, product
from tests.codegen.compare import check
from tests.graph.tracing import simplified, traced

ROW = ag.TensorSpec([None], ag.float64)
TABLE = ag.TensorSpec([None, None], ag.float64)
SIZES = (0, 1, 2, 3, 4, 9)


def test_polynomials() -> None:
    n, m = Polynomial.of("n"), Polynomial.of("m")
    assert (n + 2) * (m - 1) == n * m - n + m * 2 - 2
    assert n - n == Polynomial.of(0) and (n - n).number == 0 and (n + 1).number is None
    assert n.variable == "n" and (n + n).variable is None
    assert (n * m + n).replaced("n", m - 1) == m * m - 1
    assert (n * m - n * 2).factor_of("n") == m - 2 and (n * n).factor_of("n") is None
    assert str(product([n, m, Polynomial.of(3)]).expr) == "(3 * m * n)"
    assert [str(each.expr) for each in (m - n, -n, n * -2 + 2)] == ["(m - n)", "(-n)", "(2 - 2 * n)"]


def differences(x: Any) -> Any:
    return x[1:-1] + 0.5 * (x[2:] - x[:-2])


def heat(x: Any) -> Any:
    for _ in ag.range(3):
        x = ag.concat([x[:1], differences(x), x[-1:]], 0)
    return x


def rolled(x: Any) -> Any:
    return x + ag.roll(x, 1, 0) * 2.0 - ag.roll(x, -2, 0)


def ends(x: Any) -> Any:
    return x[0] - x[-1], x[:3], x[-2:] * 2.0, x[5:]


def products_of_neighbours(x: Any) -> Any:
    out = ag.TensorArray(ag.float64, size=ag.shape(x)[0] - 2)
    for i in ag.range(ag.shape(x)[0] - 2):
        out = out.write(i, x[i] * x[i + 1] + x[i + 2])
    return out.stack()


def backwards(x: Any) -> Any:
    total = ag.constant(0.0, ag.float64)
    n = ag.shape(x)[0]
    for i in ag.range(n):
        total = total * 0.5 + x[n - 1 - i]
    return total


def triangles(x: Any) -> Any:
    total = ag.constant(0.0, ag.float64)
    for i in ag.range(ag.shape(x)[0]):
        for j in ag.range(i, ag.shape(x)[0]):
            total += x[i] * x[j] * x[j - i]
    return total


def beyond(x: Any) -> Any:
    total = ag.constant(0.0, ag.float64)
    for i in ag.range(ag.shape(x)[0]):
        total += x[i + 1]
    return total


def cut_to_what_was_padded(x: Any) -> Any:
    padded = ag.pad(x - x * 0.5, [[0, 2]])[:-2]
    for i in ag.range(3):
        x = x + padded * ag.cast(i, ag.float64)
    return x, padded


ROWS = [cut_to_what_was_padded, differences, heat, rolled, ends, products_of_neighbours, backwards, triangles, beyond]


@pytest.mark.parametrize("program", ROWS)
def test_rows(program: Callable) -> None:
    graph = simplified(traced(ag.function(program), ROW))
    for size in SIZES:
        check(graph, np.random.default_rng(size).normal(size=size))


def convolved(x: Any, y: Any) -> Any:
    h, w = ag.shape(x)[0] - 1, ag.shape(x)[1] - 1
    out = ag.TensorArray(ag.float64, size=h * w)
    for i in ag.range(h):
        for j in ag.range(w):
            out = out.write(i * w + j, x[i, j] * y[0, 0] + x[i + 1, j + 1] * y[1, 1])
    return ag.reshape(out.stack(), [h, w])


def paths(x: Any, y: Any) -> Any:
    for k in ag.range(ag.shape(x)[0]):
        x = ag.minimum(x, x[:, k : k + 1] + x[k : k + 1, :])
    return x


def eliminated(x: Any, y: Any) -> Any:
    place = ag.range(ag.shape(x)[0])
    for k in ag.range(ag.shape(x)[0] - 1):
        column = ag.where(place > k, x[:, k] / (x[k, k] + 3.0), 0.0)
        x = x - column[:, None] * ag.where(place > k, x[k, :], 0.0)[None, :]
    return x


def together(x: Any, y: Any) -> Any:
    return (x + y) * x, ag.reduce_sum(x * y, 0) + y


def side_by_side(x: Any, y: Any) -> Any:
    both = ag.concat([x, y[1:] * 2.0, x[:1]], 0)
    return both + 1.0, both[1:] - both[:-1]


def of_sizes_that_fit_now_and_then(x: Any, y: Any) -> Any:
    return ag.pad(y, [[2, 1], [0, 0]]) - ag.concat([x, y, y], 0)


def flat(x: Any, y: Any) -> Any:
    return ag.reshape(x, [-1]) + ag.reshape(y, [ag.shape(x)[0] * ag.shape(x)[1]])


@pytest.mark.parametrize(
    "program", [convolved, paths, eliminated, together, side_by_side, of_sizes_that_fit_now_and_then, flat]
)
def test_tables(program: Callable) -> None:
    graph = simplified(traced(ag.function(program), TABLE, TABLE))
    random = np.random.default_rng(1)
    shapes = list(itertools.product((0, 1, 2, 5), repeat=2))
    pairs = [(s, s) for s in (*shapes, (6, 6), (6, 7))] + [
        (s, t) for s in shapes for t in ((1, 1), (1, 5), (2, 2), (5, 1))
    ]
    for first, second in pairs:
        check(graph, random.normal(size=first), random.normal(size=second))


def text_of(program: Callable, *specs: Any) -> str:
    return lower(simplified(traced(ag.function(program), *specs))).text


def test_slices_of_one_length_are_one_nest_without_steps() -> None:
    text = text_of(differences, ROW)
    assert text.count("for ") == 1 and "clamped" not in text and "step" not in text
    assert "if x_d0 < 2:" in text


def test_what_carries_keep_their_shape_for_is_assumed() -> None:
    text = text_of(heat, ROW)
    assert text.count("np.empty(") == 2  # one of them of nothing, for errors
    assert "a, x_1" in text  # they take turns


def test_indices_of_loops_over_sizes_need_no_checks() -> None:
    for program, specs in (
        (products_of_neighbours, [ROW]),
        (backwards, [ROW]),
        (triangles, [ROW]),
        (convolved, [TABLE] * 2),
    ):
        text = text_of(program, *specs)
        assert ">=" not in text and text.count("return 1,") <= 1, text


def test_the_check_of_an_index_that_may_be_wrong_stays() -> None:
    assert ">= x_d0" in text_of(beyond, ROW)


def count_kernels(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    texts: list[str] = []
    compiled = call_stub.compile_kernel
    thread = threading.get_ident()  # the background thread may still compile what other tests have called

    def counting(source: Any) -> Any:
        if threading.get_ident() == thread:
            texts.append(source.text)
        return compiled(source)

    monkeypatch.setattr(call_stub, "compile_kernel", counting)
    return texts


@pytest.mark.usefixtures("empty_cache")
def test_there_are_two_kernels_for_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = count_kernels(monkeypatch)
    f = ag.function(rolled, input_signature=[ROW], jit_compile=True)
    for size in (7, 100, 3, 50):
        np.testing.assert_array_equal(f(ag.ones([size], ag.float64)), np.full(size, 2.0))
    assert len(texts) == 1
    for size in (1, 2, 7, 1, 2, 3, 1):
        np.testing.assert_array_equal(f(ag.ones([size], ag.float64)), np.full(size, 2.0))
    assert len(texts) == 2 and "x_d0 < 3" in texts[0] and "x_d0 < 3" not in texts[1]


def test_shortcuts_leave_unusual_sizes_to_the_other_kernel() -> None:
    f = ag.function(together, input_signature=[TABLE, TABLE], jit_compile=True)
    wide, one = ag.ones([3, 4], ag.float64), ag.ones([1, 1], ag.float64)
    for _ in range(300):
        for first, second, shape in (
            (wide, wide, (3, 4)),
            (wide, one, (3, 4)),
            (one, wide, (3, 4)),
            (one, one, (1, 1)),
        ):
            assert f(first, second)[0].shape == shape
    with pytest.raises(errors.InvalidArgumentError, match=r"Incompatible shapes: \[3,4\] vs. \[2,4\]"):
        f(wide, ag.ones([2, 4], ag.float64))


def test_a_kernel_that_an_earlier_process_made_finds_the_other_one() -> None:
    graph = simplified(traced(ag.function(rolled), ROW))
    executable.finished(partition.compilation(graph, None, set()))
    afterwards(lambda: None)
    found = graph_cache.lookup(graph)
    assert found is not None and found.source.unfit is not None and found.source.general is None
    run = found.load(graph)
    assert run is not None
    for size in (9, 1, 2):
        np.testing.assert_array_equal(run([np.ones(size)])[0], np.full(size, 2.0))
