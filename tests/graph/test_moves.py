"""Reshapes and transposes sink: which are left, and that no element is another."""

from __future__ import annotations

import numpy as np
import pytest

import autograph as ag
from runtime.graph.interpreter import interpret
from tests.graph.tracing import MATRIX, ops, simplified, traced

MOVES = {
    "reshape twice": (lambda x: ag.reshape(ag.reshape(x, [6]), [3, 2]), ["reshape"]),
    "reshape to the same": (lambda x: ag.reshape(x, [2, 3]), []),
    "expand and reshape": (lambda x: ag.reshape(ag.expand_dims(x, 0), [6]), ["reshape"]),
    "transpose twice": (lambda x: ag.transpose(ag.transpose(x)), []),
    "transpose that does nothing": (lambda x: ag.transpose(x, [0, 1]), []),
    "broadcast to the same": (lambda x: ag.broadcast_to(x, [2, 3]), []),
    "product of a transposed": (lambda x: ag.transpose(x) @ x, ["matmul"]),
    "product with a transposed": (lambda x: x @ ag.transpose(x), ["matmul"]),
    "transpose, exp, transpose": (lambda x: ag.transpose(ag.exp(ag.transpose(x)) * 2.0), ["exp", "multiply"]),
    "transposes of both": (lambda x: ag.transpose(ag.transpose(x) + ag.exp(ag.transpose(x))), ["exp", "add"]),
    "other transposes": (
        lambda x: ag.transpose(ag.exp(ag.reshape(ag.transpose(x, [1, 0]), [3, 2, 1])), [1, 2, 0]),
        ["transpose", "reshape", "exp", "transpose"],
    ),
    "two transposes in one": (
        lambda x: ag.transpose(ag.exp(ag.transpose(x[None], [1, 2, 0])), [1, 2, 0]),
        ["strided_slice", "exp", "transpose"],
    ),
    "of what is read elsewhere": (
        lambda x: ag.transpose(y := ag.exp(ag.transpose(x))) * ag.reduce_sum(y[0]),
        ["transpose", "exp", "transpose", "strided_slice", "reduce_sum", "multiply"],
    ),
    "of what is broadcast": (
        lambda x: ag.transpose(ag.transpose(x) * ag.reduce_sum(x, 0, keepdims=True)[:, :2]),
        ["transpose", "reduce_sum", "strided_slice", "multiply", "transpose"],
    ),
    "product of a transposed and scaled": (
        lambda x: (ag.exp(ag.transpose(x)) * 2.0) @ x,
        "exp multiply matmul".split(),
    ),
    "reshape, exp, reshape": (lambda x: ag.reshape(ag.exp(ag.reshape(x, [6])), [2, 3]), ["exp"]),
    "reshape, exp, another reshape": (lambda x: ag.reshape(ag.exp(ag.reshape(x, [6])), [3, 2]), ["exp", "reshape"]),
    "expand, exp, squeeze": (lambda x: ag.squeeze(ag.exp(ag.expand_dims(x, 1)), [1]), ["exp"]),
    "expand, exp, squeeze another": (
        lambda x: ag.squeeze(ag.exp(ag.expand_dims(x[:1], 1)), [0]),
        ["strided_slice", "exp"],
    ),
    "cast between reshapes": (
        lambda x: ag.reshape(ag.cast(ag.reshape(x, [6]), ag.float64), [2, 3]),
        ["cast"],
    ),
    "integer division stays in its place": (
        lambda x: ag.reshape(ag.reshape(y := ag.cast(x, ag.int32), [6]) // ag.reshape(y + 1, [6]), [2, 3]),
        ["cast", "reshape", "add", "reshape", "floordiv", "reshape"],
    ),
    "slice of a padded": (lambda x: ag.pad(x, [[0, 0], [2, 1]])[:, 1:4], ["strided_slice", "pad"]),
    "slice of a padded without its edges": (lambda x: ag.pad(x, [[1, 1], [0, 0]])[1:-1], []),
    "slice of nothing but padding": (lambda x: ag.pad(x, [[1, 1], [0, 0]])[:1], ["pad", "strided_slice"]),
    "slice of every second of a padded": (lambda x: ag.pad(x, [[1, 1], [0, 0]])[::2], ["pad", "strided_slice"]),
    "slice of all": (lambda x: ag.exp(x[:, 0:3]), ["exp"]),
    "slice of one piece": (lambda x: ag.concat([x[:1], x[1:]], 0)[1:], ["strided_slice"]),
    "rolled along two axes": (
        lambda x: ag.roll(x, [1, 1], [0, 1]),
        [
            "strided_slice",
            "strided_slice",
            "strided_slice",
            "strided_slice",
            "concat",
            "strided_slice",
            "strided_slice",
            "concat",
            "concat",
        ],
    ),
    "slice of what is computed and joined": (
        lambda x: ag.concat([ag.exp(x), x], 0)[1:3],
        ["exp", "concat", "strided_slice"],
    ),
    "pieces without elements": (lambda x: ag.concat([x[:0], ag.exp(x), x[2:]], 0), ["exp"]),
    "sum over nothing": (lambda x: ag.reduce_sum(ag.reduce_sum(x), axis=[]), ["reduce_sum"]),
}


@pytest.mark.parametrize("name", MOVES)
def test_moves(name):
    program, left = MOVES[name]
    before = traced(program, MATRIX)
    after = simplified(before)
    assert ops(after) == left
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(interpret(before, [x])[0], interpret(after, [x])[0])


def test_long_ways_between_moves_are_not_gone():
    def f(x):
        y = ag.transpose(x)
        for _ in range(2000):
            y = ag.sin(y)
        return ag.transpose(y)

    graph = simplified(traced(f, MATRIX))
    assert ops(graph).count("transpose") == 2


def test_an_unknown_shape_is_no_reason_to_drop_a_reshape():
    graph = simplified(traced(lambda x: ag.reshape(x, [-1]), ag.TensorSpec([None], ag.float32)))
    assert ops(graph) == []  # a vector stays a vector
    graph = simplified(traced(lambda x: ag.reshape(x, [-1, 3]), ag.TensorSpec([None, None], ag.float32)))
    assert ops(graph) == ["reshape"]
