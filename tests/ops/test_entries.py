"""Static shapes of what is made in shapes that a program computes: known where the numbers are, and right."""

import numpy as np
import pytest

import autograph as ag
from runtime.ops.entries import entries, known_value

SPEC = ag.TensorSpec([None, 3, 4])

# Of x: float32[?, 3, 4] and s = shape(x): a tensor, and its static shape.
MADE = {
    "concat with numbers": (lambda x, s: ag.reshape(x, ag.concat([ag.shape(x)[:1], [12]], 0)), [None, 12]),
    "concat of parts": (lambda x, s: ag.zeros(ag.concat([s[1:], s[:1], [5]], 0)), [3, 4, None, 5]),
    "inferred": (lambda x, s: ag.reshape(x, ag.concat([[-1], s[1:]], 0)), [None, 3, 4]),
    "two rows": (lambda x, s: ag.reshape(x, ag.stack([s[0] * s[1], s[2]])), [None, 4]),
    "a list": (lambda x, s: ag.zeros([s[0], s[1], 5]), [None, 3, 5]),
    "a list of int64": (lambda x, s: ag.zeros(ag.shape(x, ag.int64)[1:]), [3, 4]),
    "product": (lambda x, s: ag.reshape(x, [s[0], ag.reduce_prod(s[1:])]), [None, 12]),
    "arithmetic": (lambda x, s: ag.ones((s + 1) * 2 - s // 2 % 3), [None, 7, 8]),
    "limits": (lambda x, s: ag.fill(ag.minimum(ag.maximum(s, 2), 3), 1.0), [None, 3, 3]),
    "casts": (lambda x, s: ag.ones(ag.cast(ag.cast(s, ag.int64), ag.int32)[::2]), [None, 4]),
    "unstack": (lambda x, s: ag.ones(ag.unstack(s)[::-1]), [4, 3, None]),
    "split": (lambda x, s: ag.ones(ag.split(s, [1, 2])[1]), [3, 4]),
    "gather": (lambda x, s: ag.ones(ag.gather(s, [2, 0])), [4, None]),
    "reverse": (lambda x, s: ag.ones(ag.reverse(s, [0])), [4, 3, None]),
    "tile": (lambda x, s: ag.tile(x, ag.stack([1, s[1], 2])), [None, 9, 8]),
    "expand": (lambda x, s: ag.ones(ag.expand_dims(s[1], 0)), [3]),
    "slice": (lambda x, s: ag.slice(x, [0, 0, 0], [-1, s[1] - 1, 2]), [None, 2, 2]),
    "index": (lambda x, s: x[:, : s[1] - 1], [None, 2, 4]),
    "range": (lambda x, s: ag.range(s[1]), [3]),
    "eye": (lambda x, s: ag.eye(s[1]), [3, 3]),
    "one_hot": (lambda x, s: ag.one_hot(ag.zeros(s[:2], ag.int32), s[2]), [None, 3, 4]),
    "random": (lambda x, s: ag.random.normal(ag.concat([s[:1], [2]], 0)), [None, 2]),
    "rank": (lambda x, s: ag.reduce_sum(x, axis=ag.rank(x) - 1), [None, 3]),
    "zero times": (lambda x, s: ag.zeros([s[1] * 0, s[0]]), [0, None]),
    "another tensor": (lambda x, s: ag.zeros(ag.concat([s[:1], ag.shape(ag.zeros([5, 6]))], 0)), [None, 5, 6]),
}


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("compiled", [False, True])
def test_static_shapes_hold_at_run_time(name, compiled):
    make, expected = MADE[name]
    shapes = []

    @ag.function(input_signature=[SPEC], jit_compile=compiled)
    def f(x):
        made = make(x, ag.shape(x))
        shapes.append(made.shape.as_list())
        return made

    for rows in (2, 0, 5):
        x = ag.ones([rows, 3, 4])
        result, eager = f(x), make(x, ag.shape(x))
        assert result.shape == eager.shape
        if name != "random":
            np.testing.assert_array_equal(result, eager)
    assert shapes == [expected]


def test_shapes_from_outside_of_a_loop():
    @ag.function(input_signature=[SPEC, ag.TensorSpec([], ag.int32)])
    def f(x, n):
        size = ag.shape(x)[1:] + 1
        total = ag.zeros(size)
        while n > 0:
            step = ag.ones(ag.concat([size[:1], ag.shape(total)[1:]], 0))
            assert step.shape.as_list() == [4, 5]
            total += step
            n -= 1
        return total

    np.testing.assert_array_equal(f(ag.ones([2, 3, 4]), 3), np.full((4, 5), 3))


def test_a_size_that_a_loop_changes_is_not_known():
    @ag.function
    def f(n):
        size = ag.constant(3)
        while n > 0:
            size += 1
            n -= 1
        return ag.zeros([size, 2])

    assert f.get_concrete_function(ag.TensorSpec([], ag.int32)).structured_outputs.shape.as_list() == [None, 2]
    assert f(ag.constant(4)).shape.as_list() == [7, 2]


def test_what_is_not_known_is_not_guessed():
    @ag.function
    def f(x, v, there):
        s = ag.shape(x)
        largest = ag.constant(2**31 - 1)
        for unknown in (v, v[0] + 1, s[0], s[1] // (s[2] - 4), largest + s[1], ag.cast(s[1:], ag.float32)):
            assert known_value(unknown) is None
        assert entries(ag.cast(s[1:], ag.float32)) is None and entries(x) is None
        assert known_value(s[1] + 1) == 4
        if there:
            count = s[1]
        return ag.zeros([count])

    x, v = ag.ones([2, 3, 4]), ag.constant([1, 2])
    f.get_concrete_function(SPEC, v, ag.TensorSpec([], ag.bool))
    assert f(x, v, ag.constant(True)).shape.as_list() == [3]
    with pytest.raises(UnboundLocalError, match="count"):
        f(x, v, ag.constant(False))


def test_long_chains_are_left_alone():
    @ag.function
    def f(x):
        n = ag.shape(x)[1]
        for _ in range(3000):
            n = n + 1
        return ag.zeros([n])

    assert f.get_concrete_function(SPEC)(ag.ones([2, 3, 4])).shape.as_list() == [3003]
