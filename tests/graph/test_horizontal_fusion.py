"""Equal computations on many small arrays run as one, with the same bits, and where the program's order allows it."""

from __future__ import annotations

import numpy as np
import pytest

import autograph as ag
from runtime.graph.horizontal_fusion import Fused, fused
from runtime.graph.interpreter import interpret

SHAPES = [(3,), (40, 2), (7, 1, 5), (2000,), (1,), (64, 32), (5, 5), (9,)]


def arrays(seed: int, shapes=SHAPES, dtype=np.float32) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


def graph_of(program, *structures):
    specs = [[ag.TensorSpec(a.shape, a.dtype) for a in arrays] for arrays in structures]
    return ag.function(program, jit_compile=False).get_concrete_function(*specs).graph


def fusions(graph) -> list[Fused]:
    return [node for node in fused(graph.nodes, graph.outputs) if isinstance(node, Fused)]


def adam(xs, ms, vs, gs):
    """One step of Adam for each variable."""
    found = []
    for x, m, v, g in zip(xs, ms, vs, gs):
        m = m + (g - m) * 0.1
        v = v + (ag.square(g) - v) * 0.001
        found += [x - m * 0.01 / (ag.sqrt(v) + 1e-7), m, v]
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_updates_of_variables_are_one_computation_with_the_same_bits(dtype):
    given = [arrays(seed, dtype=dtype) for seed in range(4)]
    given[2] = [abs(v) for v in given[2]]
    graph = graph_of(adam, *given)
    (one,) = fusions(graph)
    assert len(one.outputs) == 3 * len(SHAPES)
    results = interpret(graph, [array for group in given for array in group])
    expected = adam(*given)
    for result, value in zip(results, expected):
        assert result.dtype == dtype
        np.testing.assert_array_equal(result, np.asarray(value))


def test_assigned_variables_keep_their_own_values():
    start = arrays(1)
    variables = [ag.Variable(x) for x in start]

    @ag.function(jit_compile=False)
    def program(gs):
        for variable, g in zip(variables, gs):
            half = g * 0.5
            variable.assign_sub(half * half + variable * 0.25)
            variable.assign_add(g - half)
        return ag.reduce_sum(variables[3])

    given = [ag.constant(g) for g in arrays(2)]
    graph = program.get_concrete_function(given).graph
    assert fusions(graph)
    for _ in range(2):
        before = [v.numpy().copy() for v in variables]
        total = program(given)
        for variable, x, g in zip(variables, before, arrays(2)):
            half = g * np.float32(0.5)
            expected = (x - (half * half + x * np.float32(0.25))) + (g - half)
            np.testing.assert_array_equal(variable.numpy(), expected)
        assert total == ag.reduce_sum(variables[3])
    variables[0].assign(ag.zeros_like(variables[0]))  # without a trace in the others
    assert (variables[1].numpy() != 0).all()


def test_computations_that_wait_for_each_other_stay_apart():
    """Layer after layer does the same, but each on the result of the one before."""
    weights = arrays(3, [(6, 6)] * 20)

    def program(x, weights):
        for w in weights:
            x = ag.matmul(x * 0.5 + 1.0 - x / 3.0, w) - 2.0
        return x

    x = arrays(4, [(4, 6)])
    graph = ag.function(program, jit_compile=False).get_concrete_function(
        ag.TensorSpec([4, 6]), [ag.TensorSpec([6, 6])] * 20
    ).graph  # fmt: skip
    assert not fusions(graph)
    expected = x[0]
    for w in weights:
        expected = ag.matmul(expected * np.float32(0.5) + np.float32(1) - expected / np.float32(3), w) - 2.0
    np.testing.assert_array_equal(interpret(graph, [*x, *weights])[0], expected)


def test_some_wait_for_a_result_of_others():
    given = arrays(5)

    def program(xs):
        first = [(x * 2.0 + 1.0) / 3.0 - x for x in xs]
        total = ag.add_n([ag.reduce_max(x) for x in first])
        second = [(x * 2.0 + 1.0) / 3.0 - x for x in [ag.tanh(y) + total for y in first]]
        return [*first, *second, *[y * total - 1.0 for y in second]]

    graph = graph_of(program, given)
    assert len(fusions(graph)) >= 2
    for result, value in zip(interpret(graph, given), program([ag.constant(x) for x in given]), strict=True):
        np.testing.assert_array_equal(result, np.asarray(value))


def test_others_are_left_alone():
    """Large arrays, integers, other numbers or operations, and few computations."""

    def program(xs):
        large = [ag.tile(x[:1], [5000]) * 2.0 + 1.0 - 3.0 for x in xs]
        whole = [ag.cast(x, ag.int32) * 2 + 1 - 3 for x in xs]
        different = [(x * float(i) + float(i + 1)) / float(i + 2) - x for i, x in enumerate(xs)]
        others = [ag.exp(ag.sin(x)) for x in xs]
        single = [x + x for x in xs]  # which joining would cost more than it saves
        return [*large, *whole, *different, *others, *single, (xs[0] * 7.0) / 8.0]

    given = arrays(6, [(n,) for n in range(2, 10)])
    assert not fusions(graph_of(program, given))


def test_commits_before_an_error_hold_what_was_assigned():
    variables = [ag.Variable(x) for x in arrays(7)]

    @ag.function(jit_compile=False)
    def program(gs, limit):
        for number, (variable, g) in enumerate(zip(variables, gs)):
            variable.assign_sub(g * 0.5 + g / 3.0 - variable * 0.25 + variable / 7.0 - 1.0)
            if number == 3:
                ag.debugging.assert_less(ag.reduce_sum(g), limit)

    given = [ag.constant(g) for g in arrays(8)]
    before = [v.numpy().copy() for v in variables]
    with pytest.raises(ag.errors.InvalidArgumentError):
        program(given, -1e9)
    assert [bool((v.numpy() == x).all()) for v, x in zip(variables, before)] == [False] * 4 + [True] * 4
