"""Loops over the rows of ragged tensors in traced functions: the values are those of Python's loops."""

import numpy as np
import pytest

import autograph as ag

ROWS = ag.ragged.constant([[1.0, 2.0], [], [3.0, 4.0, 5.0]])
CUBE = ag.ragged.constant([[[1.0, 2.0], [3.0]], [], [[3.0, 4.0, 5.0], [7.0], []]])
WEIGHTS = ag.constant([1.0, 2.0, 3.0])


def totals(r):
    s = 0.0
    for row in r:
        s += ag.reduce_sum(row)
    return s


def numbered(r):
    s = 0.0
    for i, row in enumerate(r):
        s += i * ag.reduce_sum(row)
    return s


def beside_a_tensor(r):
    s = 0.0
    for row, weight in zip(r, WEIGHTS):
        s += weight * ag.reduce_sum(row)
    return s


def backwards(r):
    s = 0.0
    for row in reversed(r):
        s = 2 * s + ag.reduce_sum(row)
    return s


def in_a_comprehension(r):
    return ag.stack([ag.reduce_sum(row) for row in r])


def summed(r):
    return sum(ag.reduce_sum(row) for row in r)


def mapped(r):
    s = 0.0
    for v in map(ag.reduce_sum, r):
        s += v
    return s


def left_early(r):
    s = 0.0
    for row in r:
        if ag.size(row) == 0:
            break
        s += ag.reduce_sum(row)
    return s


def by_index(r):
    s = 0.0
    for i in range(len(r)):
        s += i * ag.reduce_sum(r[i])
    return s


def of_the_module(r):
    s = ag.reduce_sum(r.flat_values)
    for row in ROWS:
        if ag.size(row) > 0:
            s += ag.reduce_sum(row)
    return s


PROGRAMS = [
    totals, numbered, beside_a_tensor, backwards, in_a_comprehension, summed, mapped, left_early, by_index,
    of_the_module,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
def test_rows(program, known):
    signature = None if known else [ag.RaggedTensorSpec([None, None], ag.float32, ragged_rank=1)]
    expected = np.asarray(program(ROWS))
    for jit in (None, True):
        traced = ag.function(program, jit_compile=jit, input_signature=signature)
        np.testing.assert_array_equal(traced(ROWS), expected)


def test_rows_that_are_ragged():
    def above_two(r):
        s = 0.0
        for rows in r:
            for row in rows:
                for v in row:
                    if v > 2.0:
                        s += v
        return s

    assert float(above_two(CUBE)) == float(ag.function(above_two)(CUBE)) == 22.0


def test_the_gradient_flows_to_the_values():
    @ag.function
    def squares(x):
        s = 0.0
        for row in ROWS.with_values(x):
            s += ag.reduce_sum(row * row)
        return s

    x = ag.constant([1.0, 2.0, 3.0, 4.0, 5.0])
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = squares(x)
    np.testing.assert_array_equal(tape.gradient(y, x), 2 * x)


def test_a_ragged_tensor_has_no_truth_value():
    with pytest.raises(TypeError, match="may not be used as a boolean"):
        ag.function(lambda r: 1 if r else 0)(ROWS)
