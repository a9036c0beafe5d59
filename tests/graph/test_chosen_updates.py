"""Arrays that a scalar chooses between, where one is the other with a few elements changed: trips change elements."""

import numpy as np
import pytest

import autograph as ag
from runtime.engine.function import to_run
from runtime.graph.passes.pipeline import optimize
from tests.autodiff.work import lines_run


def replaced(x):
    t = ag.zeros_like(x)
    for i in range(len(x)):
        t = ag.where(x[i] > 0.5, ag.tensor_scatter_nd_update(t, [[i]], [x[i]]), t)
    return t


def added_to(x):
    t = -ag.zeros_like(x)
    for i in range(len(x)):
        t = ag.where(x[i] > 0.5, t, ag.tensor_scatter_nd_add(t, [[i], [0], [0]], [x[i], 1.0, 2.0]))
    return t


def chained(x):
    t = ag.zeros([len(x), 3])
    for i in range(len(x)):
        u = ag.tensor_scatter_nd_update(t, [[i]], [x[:3]])
        u = ag.tensor_scatter_nd_add(u, [[0, 1]], [x[i]])
        t = ag.where(x[i] > 0.5, ag.tensor_scatter_nd_update(u, [[5, 2]], [x[i] * 2.0]), t)
    return t


def several(x):
    t = ag.zeros([len(x), 3])
    for i in range(len(x)):
        u = ag.tensor_scatter_nd_update(t, [[i]], [x[:3]])
        u = ag.tensor_scatter_nd_add(u, [[0, 1]], [u[i, 0]])
        u = ag.tensor_scatter_nd_update(u, [[5]], [u[0] * 2.0])
        t = ag.where(x[i] > 0.5, u, t)
    return t


def read_besides(x):
    """Not one to rewrite: the changed array is used, whatever is chosen."""
    t, s = ag.zeros_like(x), 0.0
    for i in range(len(x)):
        u = ag.tensor_scatter_nd_update(t, [[i]], [x[i]])
        s += ag.reduce_sum(u)
        t = ag.where(x[i] > 0.5, u, t)
    return t * s


def _slope(program):
    def slope(x):
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = ag.reduce_sum(program(x) ** 2)
        return tape.gradient(y, x)

    return slope


X = ag.constant(np.random.default_rng(0).random(8).astype(np.float32))


@pytest.mark.parametrize(
    "program", [replaced, added_to, chained, several, read_besides], ids=lambda each: each.__name__
)
@pytest.mark.parametrize("of", [lambda program: program, _slope], ids=["value", "slope"])
def test_values(program, of):
    expected = of(program)(X).numpy()
    for jit in (None, True):
        found = ag.function(of(program), jit_compile=jit)(X).numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


@pytest.mark.parametrize("program", [replaced, added_to, chained], ids=lambda each: each.__name__)
def test_costs(program):
    graph = to_run(optimize(ag.function(program).get_concrete_function(ag.TensorSpec([None], ag.float32)).graph))
    small, large = (lines_run(graph, np.linspace(0.0, 1.0, n, dtype=np.float32)) for n in (100, 200))
    assert large < 2.2 * small


def test_an_index_that_is_not_there_is_an_error_whatever_is_chosen():
    @ag.function
    def f(t, i, c):
        return ag.where(c, ag.tensor_scatter_nd_update(t, [[i]], [1.0]), t)

    t = ag.zeros([3])
    assert f(t, ag.constant(2), ag.constant(True)).numpy().tolist() == [0.0, 0.0, 1.0]
    with pytest.raises(ag.errors.InvalidArgumentError, match="does not index into"):
        f(t, ag.constant(3), ag.constant(False))


@pytest.mark.parametrize("program", [replaced, added_to], ids=lambda each: each.__name__)
def test_gradients_save_no_array_in_each_trip(program):
    graph = ag.function(_slope(program)).get_concrete_function(ag.TensorSpec([None], ag.float32)).graph
    pushed = [node.inputs[1] for node in graph.walk() if node.op.name == "stack_push"]
    assert pushed and all(value.shape == () for value in pushed)
