"""Large results that take over the memory of operands: the same values, and nothing overwritten that somebody reads."""

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
