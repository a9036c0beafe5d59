"""What is known of integers that loops carry: the checks that it makes needless, and those that it doesn't."""

import numpy as np
import pytest

import autograph as ag
from runtime.codegen import cost_model
from tests.codegen.compare import run_both
from tests.codegen.test_counted_loops import graph_of, text_and_results

X = np.array([3.0, -1.0, 4.0, 1.0, -5.0, 9.0, 2.0, -6.0], np.float32)
SORTED = np.sort(X)


def insertion_sort(x):
    for i in ag.range(1, ag.shape(x)[0]):
        value, j = x[i], i - 1
        while j >= 0 and x[j] > value:
            x = ag.tensor_scatter_nd_update(x, [[j + 1]], [x[j]])
            j -= 1
        x = ag.tensor_scatter_nd_update(x, [[j + 1]], [value])
    return x


def binary_search(x, value):
    low, high = 0, ag.shape(x)[0]
    while low < high:
        middle = (low + high) // 2
        if x[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


def merge(a, b):
    n, m = ag.shape(a)[0], ag.shape(b)[0]
    out, i, j = ag.zeros([n + m]), 0, 0
    while i < n and j < m:
        if a[i] <= b[j]:
            out = ag.tensor_scatter_nd_update(out, [[i + j]], [a[i]])
            i += 1
        else:
            out = ag.tensor_scatter_nd_update(out, [[i + j]], [b[j]])
            j += 1
    while i < n:
        out = ag.tensor_scatter_nd_update(out, [[i + j]], [a[i]])
        i += 1
    while j < m:
        out = ag.tensor_scatter_nd_update(out, [[i + j]], [b[j]])
        j += 1
    return out


def sieve(s):
    n = ag.shape(s)[0]
    i = 2
    while i * i < n:
        if s[i]:
            j = i * i
            while j < n:
                s = ag.tensor_scatter_nd_update(s, [[j]], [False])
                j += i
        i += 1
    return s


@pytest.mark.parametrize(
    ("program", "given", "expected"),
    [
        (insertion_sort, (X,), SORTED),
        (binary_search, (SORTED, np.float32(2.0)), 4),
        (merge, (SORTED, SORTED), np.sort(np.concatenate([X, X]))),
        (sieve, (np.ones(16, np.bool_),), [k < 2 or all(k % d for d in range(2, k)) for k in range(16)]),
    ],
)
def test_indices_that_ranges_prove_are_not_checked(program, given, expected):
    text, (found,) = text_and_results(program, *given)
    np.testing.assert_array_equal(found, expected)
    assert ">= 8" not in text and ">= 16" not in text and "< 0" not in text


def test_the_sizes_of_checks_in_loops_are_numbers():
    def counts(x):
        found = ag.zeros([9], ag.int32)
        for i in ag.range(ag.shape(x)[0]):
            found = ag.tensor_scatter_nd_add(found, [[x[i]]], [1])
        return found

    text, (found,) = text_and_results(counts, np.array([3, 1, 3, 8], np.int32))
    assert "row >= 9" in text
    np.testing.assert_array_equal(found, [0, 1, 0, 2, 0, 0, 0, 0, 1])


def downwards_from(x, i):
    total = x[0]
    while i >= 0:
        total += x[i]
        i -= 1
    return total


def upwards_while_less(x, i):
    while x[i] < 9.0:
        i += 1
    return i


def moves_by_both(x, i):
    j = 6
    while i < j and x[j] < 100.0:
        i += 2
        j -= 3
    return x[i] + x[j]


def read_behind_a_branch(x, i):
    total = x[0]
    for _ in ag.range(3):
        if i < 7:
            total += x[i + 1]
        i += 3
    return total


@pytest.mark.parametrize("start", [-9, -8, -3, -1, 0, 5, 7, 8, 9, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("program", [downwards_from, upwards_while_less, moves_by_both, read_behind_a_branch])
def test_other_indices_are_checked(program, start):
    given = X, np.int32(start)
    expected, actual = run_both(graph_of(program, *map(ag.constant, given)), given)
    if isinstance(expected, Exception):
        assert type(actual) is type(expected)
        assert str(actual) == str(expected)
    else:
        np.testing.assert_array_equal(actual, expected)


def one_beyond_the_end(x):
    i, total = ag.constant(0), x[0]
    while i <= 8:
        total += x[i]
        i += ag.where(total > 0.0, 1, 2)
    return total


def one_before_the_start(x):
    i, total = ag.constant(7), x[0]
    while i >= -1:
        total += ag.gather(x, i)
        i -= ag.where(total > 0.0, 1, 2)
    return total


def one_beyond_by_a_square(x):
    i, total = ag.constant(1), x[0]
    while i * i <= 64:
        total += x[i]
        if total > 3.0:
            i += 1
        elif i < 6:
            i += 2
    return total


def one_beyond_in_a_branch(x):
    total = x[0]
    for i in ag.range(20):
        if i >= 3 and i <= 8:
            total += x[i]
    return total


@pytest.mark.parametrize(
    "program", [one_beyond_the_end, one_before_the_start, one_beyond_by_a_square, one_beyond_in_a_branch]
)
def test_an_index_that_leaves_the_array_by_one(program):
    x = np.abs(X)
    expected, actual = run_both(graph_of(program, ag.constant(x)), (x,))
    assert isinstance(expected, ag.errors.InvalidArgumentError)
    assert type(actual) is type(expected)
    assert str(actual) == str(expected)


def wraps(i, step):
    trips = 0
    while i > 0 and trips < 9:
        i += step
        trips += 1
    return i, trips


def wraps_beside_an_index(x, i):
    total = x[0]
    trips = 0
    while trips < 5:
        if i > 2147483600:
            total += x[trips]
        i += 1
        trips += 1
    return total, i


@pytest.mark.parametrize("start", [2**31 - 1, 2**31 - 3, 1, -1])
def test_int32_wraps_around(start):
    text_and_results(wraps, np.int32(start), np.int32(2))
    text_and_results(wraps, np.int32(start), np.int32(2**30))
    text_and_results(wraps_beside_an_index, X, np.int32(start))


def first_at_least(x, value):
    i, n = 0, ag.shape(x)[0]
    while i < n and x[i] < value:
        i += 1
    return i


def last_at_least(x, value):
    i = ag.shape(x)[0] - 1
    while i >= 0 and x[i] < value:
        i -= 1
    return i


def first_equal(x, value):
    found = -1
    for i in ag.range(ag.shape(x)[0]):
        if x[i] == value:
            found = i
            break
    return found


def run_of(x, value):
    count, i = 0, 0
    for start in ag.range(ag.shape(x)[0]):
        i = start
        while i < ag.shape(x)[0] and x[i] >= value:
            i += 1
            count += 1
    return count, i


@pytest.mark.parametrize("ticks", [10, 60, cost_model.POLL_TICKS])
@pytest.mark.parametrize("value", [-9.0, 2.0, 9.0, 10.0])
@pytest.mark.parametrize("program", [first_at_least, last_at_least, first_equal, run_of])
def test_a_counted_loop_that_a_trip_may_leave(program, value, ticks, monkeypatch):
    monkeypatch.setattr(cost_model, "POLL_TICKS", ticks)
    text, _ = text_and_results(program, X, np.float32(value))
    assert "while i < 8" in text or "while i > limit" in text or "while index < 8" in text


def test_stacks_of_a_loop_that_a_trip_may_leave():
    def program(x):
        with ag.GradientTape() as tape:
            tape.watch(x)
            total, i = ag.constant(1.0), 0
            while i < 8 and total < 1e4:
                total = total * x[i] * x[i] + ag.sin(total)
                i += 1
        return tape.gradient(total, x)

    given = ag.constant(X)
    compiled, plain = ag.function(program, jit_compile=True)(given), program(given)
    np.testing.assert_allclose(compiled.numpy(), plain.numpy(), rtol=1e-5)


def test_what_joined_tests_say():
    def program(x, i, j):
        total = x[0]
        for _ in ag.range(2):
            if (i >= 0 and i < 8) and not (j < 0 or j > 7):
                total += x[i] * x[j]
            if i == 3:
                total += x[i]
            i += 4
            j += 5
        return total

    for i, j in ((0, 0), (3, 7), (-1, 2), (7, 8), (2, -3)):
        text, _ = text_and_results(program, X, np.int32(i), np.int32(j))
        assert ">= 8" not in text
