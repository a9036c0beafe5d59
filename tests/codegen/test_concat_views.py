"""Stencils: nests over padded, concatenated and rolled arrays, which are read where their segments lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autograph as ag
from runtime.codegen import cost_model
from runtime.codegen.loops import loop_nest
from runtime.codegen.loops.concat_views import Parts
from runtime.codegen.lower.lower_graph import lower
from runtime.graph.interpreter import interpret
from tests.codegen.compare import check
from tests.graph.tracing import simplified, traced

X = ag.TensorSpec([7, 9], ag.float64)
ROW = ag.TensorSpec([9], ag.float64)
UNKNOWN = (ag.TensorSpec([None, None], ag.float64), ag.TensorSpec([None], ag.float64))


def heat(x: Any, row: Any) -> Any:
    inner = x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2] - 4.0 * x[1:-1, 1:-1]
    return x + ag.pad(0.1 * inner, [[1, 1], [1, 1]])


def jacobi(x: Any, row: Any) -> Any:
    p = ag.pad(x, [[1, 1], [1, 1]])
    return 0.25 * (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] + row)


def torus(x: Any, row: Any) -> Any:
    total = ag.zeros_like(x)
    for dy in (-1, 0, 1):
        for dx in (-1, 0, 1):
            total += ag.roll(x, [dy, dx], [0, 1]) * float(dx - 3 * dy)
    return total


def fixed_ends(x: Any, row: Any) -> Any:
    return ag.concat([row[:1], row[1:-1] * row[2:] - row[:-2], row[-2:-1] * 2.0], 0)


def rows_of_other_sizes(x: Any, row: Any) -> Any:
    both = ag.concat([x[:2] * row, ag.sqrt(ag.abs(x[3:6])), x[:1] + x[1:2]], 0)
    return ag.concat([both, both], 0)[:6] - ag.concat([x[:1], x[2:]], 0)[:6], both * 2.0


def nested(x: Any, row: Any) -> Any:
    left = ag.concat([ag.pad(x[:3, :4] * 2.0, [[0, 0], [1, 0]]), x[3:5, :5]], 0)
    right = ag.pad(row[:4][None] * x[:5, :4], [[0, 0], [0, 0]])
    return ag.concat([left, right], 1) * x[:5] + row


def of_a_range(x: Any, row: Any) -> Any:
    steps = ag.range(4, dtype=ag.float64)
    return ag.concat([steps, row[:1], steps * steps], 0) * row


def value_used_twice(x: Any, row: Any) -> Any:
    inner = x[1:-1] * 2.0
    padded = ag.pad(inner, [[1, 1], [0, 0]])
    return padded * padded + x, inner, ag.reduce_max(padded)


def padded_and_written(x: Any, row: Any) -> Any:
    y = x * 2.0
    p = ag.pad(y[1:-1], [[1, 1], [0, 0]])
    y = ag.tensor_scatter_nd_update(y, [[3, 3]], [ag.constant(100.0, ag.float64)])
    return p + y


def chosen(x: Any, row: Any) -> Any:
    p = ag.pad(row[1:], [[0, 1]], constant_values=3.0)
    return p + (row if row[0] > 0.0 else ag.roll(row, 2, 0))


def nothing_inside(x: Any, row: Any) -> Any:
    return ag.pad(x, [[0, 0], [0, 0]]) + ag.concat([x[:0], x], 0), ag.pad(x, [[1, 0], [0, 2]])[:1] + 1.0


PROGRAMS = [
    heat, jacobi, torus, fixed_ends, rows_of_other_sizes, nested, of_a_range, value_used_twice, padded_and_written,
    chosen, nothing_inside,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("rewritten", [False, True])
def test_stencils(program: Callable, rewritten: bool) -> None:
    graph = traced(ag.function(program), X, ROW)
    graph = simplified(graph) if rewritten else graph
    random = np.random.default_rng(3)
    x, row = random.normal(size=(7, 9)), random.normal(size=9)
    found = check(graph, x, row)
    for got, wanted in zip(found, interpret(graph, [x, row])):
        np.testing.assert_array_equal(got, wanted)


def looped(program: Callable) -> Callable:
    def loop(x: Any, row: Any) -> Any:
        for _ in ag.range(5):
            x = program(x, row)
        return x

    return loop


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("shape", [(7, 9), (9, 9), (8, 1), (1, 6), (2, 2), (3, 3), (0, 5), (0, 0)])
def test_stencils_of_unknown_sizes(program: Callable, shape: tuple[int, int]) -> None:
    graph = simplified(traced(ag.function(program), *UNKNOWN))
    random = np.random.default_rng(3)
    x, row = random.normal(size=shape), random.normal(size=shape[1])
    found = check(graph, x, row)
    if not isinstance(found[0], Exception):
        for got, wanted in zip(found, interpret(graph, [x, row])):
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("program", [heat, jacobi, torus])
@pytest.mark.parametrize("specs", [(X, ROW), UNKNOWN])
def test_a_stencil_in_a_loop_is_one_nest_that_writes_new_memory(program: Callable, specs: Any) -> None:
    graph = simplified(traced(ag.function(looped(program)), *specs))
    text = lower(graph).text
    # One array besides the one that the loop begins with: they take turns.
    assert text.count("np.empty(") - text.count("np.empty(0,") == 1
    random = np.random.default_rng(4)
    check(graph, random.normal(size=(7, 9)), random.normal(size=9))


def test_values_before_the_last_take_their_turns_too() -> None:
    def wave(x: Any, row: Any) -> Any:
        before, earlier = x, x * 0.5
        for _ in ag.range(4):
            x, before, earlier = 2.0 * x - before + 0.1 * ag.roll(earlier, 1, 0), x, before
        return x, before, earlier

    graph = simplified(traced(ag.function(wave), X, ROW))
    assert lower(graph).text.count("np.empty(") <= 3
    random = np.random.default_rng(5)
    check(graph, random.normal(size=(7, 9)), random.normal(size=9))


def test_gradients_of_stencils() -> None:
    def gradient(x: Any, row: Any) -> Any:
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = looped(heat)(x, row)
            loss = ag.reduce_sum(y * y)
        return tape.gradient(loss, x)

    x = np.random.default_rng(6).normal(size=(7, 9))
    compiled = ag.function(gradient, jit_compile=True)(x, np.ones(9))
    np.testing.assert_allclose(compiled, gradient(ag.constant(x), ag.ones([9], ag.float64)), rtol=1e-12)


def random_program(seed: int) -> Callable:
    """A program of slices, pads, concatenations, rolls and arithmetic in one another."""

    def array(random: np.random.Generator, x: Any, row: Any, shape: tuple[int, int], depth: int) -> Any:
        """An expression of this shape."""
        rows, columns = shape
        kind = random.integers(8) if depth else 0
        if kind == 0 or 0 in shape:
            i, j = random.integers(7 - rows + 1), random.integers(9 - columns + 1)
            return x[i : i + rows, j : j + columns]
        if kind in (1, 2, 3):
            axis = int(random.integers(2))
            cut = int(random.integers(shape[axis] + 1))
            parts = [(cut, columns), (rows - cut, columns)] if axis == 0 else [(rows, cut), (rows, columns - cut)]
            return ag.concat([array(random, x, row, part, depth - 1) for part in parts], axis)
        if kind == 4:
            before, behind = int(random.integers(rows + 1)), int(random.integers(columns + 1))
            inner = array(random, x, row, (rows - before, columns - behind), depth - 1)
            return ag.pad(inner, [[before, 0], [0, behind]], constant_values=float(random.integers(3)))
        if kind == 5:
            shift = [int(s) for s in random.integers(-2, 3, 2)]
            return ag.roll(array(random, x, row, shape, depth - 1), shift, [0, 1])
        if kind == 6:
            return array(random, x, row, shape, depth - 1) * row[:columns] - 0.5
        return array(random, x, row, shape, depth - 1) + array(random, x, row, shape, depth - 1)

    def program(x: Any, row: Any) -> Any:
        random = np.random.default_rng(seed)
        shape = int(random.integers(1, 7)), int(random.integers(1, 9))
        return 2.0 * array(random, x, row, shape, 4) + 1.0, array(random, x, row, shape, 3)

    return program


@pytest.mark.parametrize("seed", range(40))
def test_joined_arrays_in_one_another(seed: int) -> None:
    test_stencils(random_program(seed), seed % 2 == 0)


def wrapped(nest: Any, operands: Any) -> Parts | None:
    """Splits a nest along its innermost axis only, wherever that is possible."""
    parts = Parts(nest, operands, wraps=True)
    return parts if parts.fit() else None


@pytest.mark.parametrize("program", [*PROGRAMS, *map(random_program, range(40, 70))])
def test_rows_that_wrap_around(program: Callable, monkeypatch: Any) -> None:
    monkeypatch.setattr(loop_nest, "split", wrapped)
    test_stencils(program, True)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("shape", [(7, 9), (9, 9), (8, 1), (1, 6), (2, 2), (3, 3), (0, 5), (0, 0)])
def test_rows_of_unknown_number_that_wrap_around(program: Callable, shape: tuple[int, int], monkeypatch: Any) -> None:
    monkeypatch.setattr(loop_nest, "split", wrapped)
    test_stencils_of_unknown_sizes(program, shape)


@pytest.mark.parametrize("program", [*PROGRAMS, *map(random_program, range(70, 90))])
@pytest.mark.parametrize("wraps", [False, True])
def test_parts_on_threads(program: Callable, wraps: bool, monkeypatch: Any) -> None:
    monkeypatch.setattr(cost_model, "PARALLEL_WORK", 1)
    if wraps:
        monkeypatch.setattr(loop_nest, "split", wrapped)
    test_stencils(program, True)


def rolled_along_three(x: Any) -> Any:
    total = 0.0 * x
    for number, shift in enumerate(np.ndindex(3, 3, 3)):
        total += float(number) * ag.roll(x, [each - 1 for each in shift], [0, 1, 2])
    return total


def padded_along_three(x: Any) -> Any:
    p = ag.pad(x, [[1, 1], [1, 1], [1, 1]])
    return p[2:, 1:-1, 1:-1] - p[1:-1, :-2, 1:-1] + 2.0 * p[1:-1, 1:-1, 2:] - x


@pytest.mark.parametrize("program", [rolled_along_three, padded_along_three])
@pytest.mark.parametrize("known", [False, True])
def test_three_axes(program: Callable, known: bool) -> None:
    graph = simplified(traced(ag.function(program), ag.TensorSpec([None] * 3, ag.float64)))
    for shape in [(4, 5, 6), (5, 5, 5), (1, 3, 4), (3, 1, 4), (3, 4, 1), (2, 2, 2), (1, 1, 1), (2, 0, 3)]:
        if known:
            graph = simplified(traced(ag.function(program), ag.TensorSpec(shape, ag.float64)))
        x = np.random.default_rng(3).normal(size=shape)
        (found,) = check(graph, x)
        np.testing.assert_array_equal(found, interpret(graph, [x])[0])


def test_many_rolls_along_three_axes_are_one_nest() -> None:
    """Rows wrap around: there are three bodies instead of 27."""
    text = lower(simplified(traced(ag.function(rolled_along_three), ag.TensorSpec([32, 32, 32], ag.float64)))).text
    assert text.count("np.empty(") == 1
    assert text.count("lib.in_threads(") == 1


def test_a_rotation_of_a_rotation() -> None:
    """Found by fuzzing: the joined segment of a concatenated view was not cut."""

    def program(x: Any, row: Any) -> Any:
        for _ in range(2):
            x = ag.concat([x[1:], x[:1]], 0)
        return x * 3.0

    test_stencils(program, True)


# --- reductions ------------------------------------------------------------------------------------------------------


REDUCTIONS: dict[str, Callable] = {
    "all": lambda y: ag.reduce_sum(y),
    "rows": lambda y: ag.reduce_mean(y, axis=-1),
    "columns": lambda y: ag.reduce_sum(y, axis=0),
    "kept axis": lambda y: ag.reduce_max(y, axis=0, keepdims=True) + ag.reduce_min(y),
    "several": lambda y: (ag.reduce_sum(y, axis=0), ag.reduce_max(y, axis=0), 2.0 * y),
    "position in all": lambda y: ag.argmax(ag.reshape(y, [-1]), axis=0),
    "position in columns": lambda y: ag.argmax(y, axis=0),
    "position in rows": lambda y: ag.argmin(y, axis=-1),
}


def reduced(program: Callable, reduction: Callable) -> Callable:
    def ended(x: Any, row: Any) -> Any:
        found = program(x, row)
        return [reduction(each) for each in (found if isinstance(found, tuple) else (found,)) if each.shape.rank]

    return ended


def check_reduction(program: Callable, reduction: Callable, *arguments: Any) -> None:
    check(simplified(traced(ag.function(reduced(program, reduction)), X, ROW)), *arguments)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("wraps", [False, True])
def test_reductions_of_stencils(reduction: str, wraps: bool, monkeypatch: Any) -> None:
    if wraps:
        monkeypatch.setattr(loop_nest, "split", wrapped)
    random = np.random.default_rng(3)
    x, row = random.normal(size=(7, 9)), random.normal(size=9)
    for program in (torus, jacobi, fixed_ends, random_program(90), random_program(91)):
        check_reduction(program, REDUCTIONS[reduction], x, row)


@pytest.mark.parametrize("reduction", ["all", "rows", "columns", "several"])
def test_reductions_of_stencils_of_unknown_sizes(reduction: str) -> None:
    random = np.random.default_rng(4)
    for program in (heat, torus):
        graph = simplified(traced(ag.function(reduced(program, REDUCTIONS[reduction])), *UNKNOWN))
        for shape in [(7, 9), (8, 1), (1, 6), (2, 2), (0, 5), (5, 0)]:
            check(graph, random.normal(size=shape), random.normal(size=shape[1]))


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_reductions_of_stencils_in_chunks(reduction: str, monkeypatch: Any) -> None:
    """On threads, with chunks that begin and end within parts."""
    monkeypatch.setattr(cost_model, "PARALLEL_WORK", 1)
    monkeypatch.setattr(cost_model, "REDUCTION_CHUNK", 20)
    monkeypatch.setattr(cost_model, "COLUMN_CHUNK_FEW_ROWS", 2)
    random = np.random.default_rng(5)
    x, row = random.normal(size=(7, 9)), random.normal(size=9)
    for program in (torus, jacobi, fixed_ends, random_program(92)):
        check_reduction(program, REDUCTIONS[reduction], x, row)


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_reductions_of_three_axes(axes: tuple[int, ...]) -> None:
    arrays = [np.random.default_rng(6).normal(size=shape) for shape in [(4, 5, 6), (3, 1, 4), (2, 3, 1)]]
    for program in (rolled_along_three, padded_along_three):
        f = ag.function(lambda x, program=program: ag.reduce_sum(program(x) * x, axis=list(axes)))
        of_any_size = simplified(traced(f, ag.TensorSpec([None] * 3, ag.float64)))
        for x in arrays:
            check(of_any_size, x)
        for x in arrays:
            check(simplified(traced(f, ag.TensorSpec(x.shape, ag.float64))), x)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_reductions_make_no_copies_of_rolled_operands(axis: int | None) -> None:
    def program(x: Any) -> Any:
        return ag.reduce_sum((x - ag.roll(x, 1, 0)) * (x - ag.roll(x, -1, 1)), axis=axis)

    text = lower(simplified(traced(ag.function(program), ag.TensorSpec([32, 32], ag.float64)))).text
    assert text.count("np.empty(") == (axis is not None)  # the result
