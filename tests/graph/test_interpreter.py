"""The memory of results: large ones take over that of operands, and nothing is overwritten that somebody reads. Views
that are read in row-major order are stored once."""

import tracemalloc

import numpy as np
import pytest

import autograph as ag
from runtime.engine.settings import wait_for_background
from runtime.graph.interpreter import interpret

COUNT = 1 << 16


def chain(x):
    square = x * x
    return (square + 1.0) * ag.sqrt(square + 0.5) / (square + 2.0) - x


def read_later(x):
    a = x + 1.0
    b = ag.exp(a)
    return b * b, a - b


def seen_by_a_view(x):
    a = x + 1.0
    view = ag.reshape(a, [2, -1])
    b = ag.exp(a)
    return b, view * 2.0


def of_another_type(x):
    a = x + 1.0
    return a < 0.5, ag.cast(a, ag.float64) * 2.0


def broadcast(x):
    a = x[:1] + 1.0
    return a * x, -a


def in_branches(x):
    a = x + 1.0
    if ag.reduce_sum(x) > 0.0:
        b = ag.tanh(a)
    else:
        b = a
    return b * 2.0, -a


@pytest.mark.parametrize("program", [chain, read_later, seen_by_a_view, of_another_type, broadcast, in_branches])
def test_the_values_are_those_of_small_arrays(program):
    x = np.linspace(-2.0, 2.5, COUNT, dtype=np.float32)
    given = x.copy()
    graph = ag.function(program, jit_compile=False).get_concrete_function(ag.constant(x)).graph
    expected = program(ag.constant(x)) if program is not in_branches else (np.tanh(x + 1) * 2, -(x + 1))
    expected = expected if isinstance(expected, tuple) else (expected,)
    for _ in range(2):
        results = interpret(graph, [given])
        for result, value in zip(results, expected):
            np.testing.assert_array_equal(result, np.asarray(value))
    np.testing.assert_array_equal(given, x)


def test_a_long_chain_needs_the_memory_of_few_arrays():
    x = np.ones(COUNT, np.float32)

    def program(x):
        for _ in range(20):
            x = ag.tanh(x * 0.5 + 1.0)
        return x

    graph = ag.function(program, jit_compile=False).get_concrete_function(ag.constant(x)).graph
    interpret(graph, [x])
    wait_for_background()  # whose memory would count too
    tracemalloc.start()
    try:
        interpret(graph, [x])
        assert tracemalloc.get_traced_memory()[1] < 1.5 * x.nbytes
    finally:
        tracemalloc.stop()


def test_a_transposed_array_is_stored_once_for_all_that_read_it_in_order():
    x = np.arange(60, dtype=np.float32).reshape(3, 4, 5)

    def program(x):
        turned = ag.transpose(x, [0, 2, 1])
        return ag.reshape(turned, [15, 4]), ag.reshape(turned, [-1, 2]), ag.reduce_sum(turned, [0, 1])

    graph = ag.function(program, jit_compile=False).get_concrete_function(ag.constant(x)).graph
    one, other, total = interpret(graph, [x])
    turned = x.transpose(0, 2, 1)
    np.testing.assert_array_equal(one, turned.reshape(15, 4))
    np.testing.assert_array_equal(other, turned.reshape(-1, 2))
    np.testing.assert_array_equal(total, turned.sum((0, 1)))
    assert np.shares_memory(one, other)


def test_a_transposed_array_that_nothing_reads_in_order_stays_a_view():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    graph = ag.function(lambda x: ag.transpose(x), jit_compile=False).get_concrete_function(ag.constant(x)).graph
    (turned,) = interpret(graph, [x])
    np.testing.assert_array_equal(turned, x.T)
    assert np.shares_memory(turned, x)


def test_a_shape_that_does_not_fit_is_explained_by_the_interpreter():
    @ag.function(jit_compile=False, input_signature=[ag.TensorSpec([None], ag.float32)])
    def program(x):
        return ag.reshape(x, [2, 3])

    assert program(np.ones(6, np.float32)).shape == (2, 3)
    with pytest.raises(ag.errors.InvalidArgumentError, match="tensor with 5 values, but the requested shape has 6"):
        program(np.ones(5, np.float32))
