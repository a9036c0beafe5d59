"""Staged lists: gradients, what leaves a function, and errors instead of anything silently wrong."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
import pytest

import autograph as ag
from autograph.errors import StagingError, StagingTypeError, StagingValueError
from tests.operators.harness import Staged, run_staged

i32 = np.int32
f32 = np.float32
LOG: list = []

# --- gradients ---


def test_gradient_through_appended_list():
    @ag.function
    def f(x, n):
        found = []
        for i in range(n):
            x = x * 2
            found.append(x * x)
        return ag.reduce_sum(ag.stack(found))

    x = ag.constant(1.5)
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = f(x, ag.constant(3))
    # x² (4 + 16 + 64)
    np.testing.assert_allclose(y, 84 * 1.5**2, rtol=1e-6)
    np.testing.assert_allclose(tape.gradient(y, x), 2 * 84 * 1.5, rtol=1e-6)


@pytest.mark.parametrize("compiled", [True, False])
def test_gradient_through_recurrence_on_a_list(compiled):
    @ag.function(jit_compile=compiled)
    def f(x, n):
        found = [x, x * x]
        for i in range(2, n):
            found.append(found[i - 1] * found[i - 2])
        last = found.pop()
        return last + found[-1]

    def reference(x):
        found = [x, x * x]
        for i in range(2, 5):
            found.append(found[i - 1] * found[i - 2])
        return found[-1] + found[-2]

    x = ag.constant(1.1, ag.float64)
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = f(x, ag.constant(5))
    np.testing.assert_allclose(y, reference(1.1), rtol=1e-9)
    slope = (reference(1.1 + 1e-6) - reference(1.1 - 1e-6)) / 2e-6
    np.testing.assert_allclose(tape.gradient(y, x), slope, rtol=1e-6)


def test_list_that_a_function_returns_is_a_python_list():
    @ag.function
    def f(n):
        found = []
        for i in range(n):
            found.append((i, i * 2))
        return {"found": found}

    found = f(ag.constant(3))["found"]
    assert type(found) is list
    assert [(int(a), int(b)) for a, b in found] == [(0, 0), (1, 2), (2, 4)]
    assert f(ag.constant(0)) == {"found": []}


def test_list_filled_by_another_function_is_returned():
    def fill(into, n):
        for i in range(n):
            into.append(i)

    @ag.function
    def f(n):
        mine = []
        fill(mine, n)
        return mine

    assert [int(each) for each in f(ag.constant(3))] == [0, 1, 2]


# --- errors ---


def failure(function, *arguments):
    with pytest.raises(StagingError) as caught:
        Staged(function, arguments)
    return caught.value


def test_unlike_elements():
    def f(n):
        found = ["text", 1]
        for i in range(n):
            found.append(i)
        return found

    error = failure(f, i32(3))
    assert isinstance(error, StagingTypeError)
    assert "'found' gets or loses elements" in error.message


def test_dtype_conflict_in_list():
    def f(n, x):
        found = [n]
        for i in range(n):
            found.append(x)
        return found

    assert "int32 and float32" in str(failure(f, i32(3), f32(1)))


def test_set_in_branch():
    def f(x):
        seen = set()
        if x > 0:
            seen.add("positive")
        return x

    error = failure(f, f32(1))
    assert "'seen', a set, is changed" in error.message
    assert error.location.filename == __file__


def test_new_key_in_branch():
    def f(x):
        d = {}
        key = "k"
        if x > 0:
            d[key] = x
        return x

    assert "'d[key]'" in failure(f, f32(1)).message


def test_array_in_loop():
    def f(n):
        a = np.zeros(3)
        while n > 0:
            a[0] = 1
            n -= 1
        return a

    assert isinstance(failure(f, i32(1)), StagingValueError)


def test_object_attribute_in_branch():
    class Box:
        pass

    def f(x):
        box = Box()
        box.mode = 1
        if x > 0:
            box.mode = object()
        return x

    assert "mode" in failure(f, f32(1)).message


@pytest.mark.parametrize("index", [3, -4, 5])
def test_index_out_of_range_at_run_time(index):
    def f(n, i):
        xs = []
        for k in range(n):
            xs.append(k)
        return xs[i]

    staged = Staged(f, (i32(3), i32(0)))
    assert staged.run(i32(3), i32(-1)) == 2
    with pytest.raises(IndexError, match="list index out of range"):
        staged.run(i32(3), i32(index))


def test_pop_from_empty_list():
    def f(n):
        xs = [0, 1]
        for k in range(n):
            xs.pop()
        return len(xs)

    staged = Staged(f, (i32(2),))
    assert staged.run() == 0
    with pytest.raises(IndexError, match="pop from empty list"):
        staged.run(i32(3))


def test_list_from_outside_the_function():
    @ag.function
    def f(n):
        for i in range(n):
            LOG.append(i)
        return n

    with pytest.raises(StagingError, match="LOG"):
        f(ag.constant(3))
    assert LOG == []


def test_list_of_an_object_from_outside():
    class Model:
        def __init__(self):
            self.history = [1]

        @ag.function
        def step(self, n):
            for i in range(n):
                self.history.append(i)
            return n

    model = Model()
    with pytest.raises(StagingError, match="history"):
        model.step(ag.constant(3))
    assert model.history == [1]


def test_alias_that_no_block_sees_follows():
    def f(n):
        xs = []
        other = xs
        inside = {"items": [xs]}
        for i in range(n):
            xs.append(i)
        return other[0] + 1, ag.stack(other[1:]), len(inside["items"][0])

    first, others, count = run_staged(f, i32(3))
    assert (first, others.tolist(), count) == (1, [1, 2], 3)


def test_copy_of_what_is_left_of_a_list_fails():
    def f(n):
        xs = []
        view = MappingProxyType({"items": xs})
        for i in range(n):
            xs.append(i)
        return len(view["items"][:])

    with pytest.raises(TypeError, match="replaced it by another object"):
        Staged(f, (i32(3),))
