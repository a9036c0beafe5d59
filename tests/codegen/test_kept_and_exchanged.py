"""Arrays that a loop changes in place, and that a branch keeps or trips exchange: values, and no copy in each trip."""

import numpy as np
import pytest

import autograph as ag
from runtime.engine.function import to_run
from runtime.graph.passes.pipeline import optimize
from tests.autodiff.work import lines_run


def _with(t, i, value):
    return ag.tensor_scatter_nd_update(t, [[i]], [value])


def kept_when_better(x):
    t = ag.zeros_like(x)
    best, score = t, -1.0
    for i in range(len(x)):
        t = _with(t, i, x[i])
        if x[i] > score:
            score, best = x[i], t
    return best + t


def kept_by_two(x):
    t = ag.zeros_like(x)
    low = high = t
    for i in range(len(x)):
        t = _with(t, i, x[i])
        if x[i] > 0.9:
            high = t
        elif x[i] < 0.1:
            low = t
        t = _with(t, 0, x[i] * 2.0)
    return low - high * t


def kept_and_changed(x):
    t, best = ag.zeros_like(x), ag.ones_like(x)
    for i in range(len(x)):
        t = _with(t, i, x[i])
        if x[i] > 0.95:
            best = t
        best = _with(best, i, -1.0)
    return best + t


def kept_before_the_change(x):
    t, before = ag.zeros_like(x), ag.ones_like(x)
    for i in range(len(x)):
        if x[i] > 0.95:
            before = t
        t = _with(t, i, x[i])
    return before + t


def exchanged(x):
    t, u = ag.zeros_like(x), ag.ones_like(x)
    for i in range(len(x)):
        t = _with(t, i, x[i] + u[i])
        t, u = u, t
    return t - 2.0 * u


def rotated(x):
    t, u, v = ag.zeros_like(x), ag.ones_like(x), -x
    for i in range(len(x)):
        t = _with(t, i, x[i] + v[i])
        u = _with(u, 0, t[i])
        t, u, v = u, v, t
    return t - 2.0 * u + 3.0 * v


def exchanged_with_one_array_at_first(x):
    t = u = ag.zeros_like(x)
    for i in range(len(x)):
        t = _with(t, i, x[i])
        t, u = u, t
    return t - 2.0 * u


def exchanged_in_a_branch(x):
    t, u = ag.zeros_like(x), ag.ones_like(x)
    for i in range(len(x)):
        t = _with(t, i, x[i] + u[i])
        if x[i] > 0.5:
            t, u = u, t
    return t - 2.0 * u


def overwritten_by_the_other(x):
    t, u = ag.zeros_like(x), ag.ones_like(x)
    for i in range(len(x)):
        t = _with(t, i, x[i])
        if x[i] > 0.95:
            t = u
    return t + u


def nested(x):
    t = ag.zeros_like(x)
    best = t
    for i in range(len(x)):
        for j in range(2):
            t = _with(t, i, x[i] + t[j])
            if x[i] > 0.95:
                best = t
        t, best = best, t
    return best - 2.0 * t


LINEAR = [kept_when_better, exchanged, rotated]
PROGRAMS = [
    *LINEAR, kept_by_two, kept_and_changed, kept_before_the_change, exchanged_with_one_array_at_first,
    exchanged_in_a_branch, overwritten_by_the_other, nested,
]  # fmt: skip
X = ag.constant(np.random.default_rng(1).random(40).astype(np.float32))


def _slope(program):
    def slope(x):
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = ag.reduce_sum(program(x) ** 2)
        return tape.gradient(y, x)

    return slope


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("of", [lambda program: program, _slope], ids=["value", "slope"])
def test_values(program, of):
    expected = of(program)(X)
    for jit in (False, True):
        np.testing.assert_allclose(ag.function(of(program), jit_compile=jit)(X), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("program", LINEAR, ids=lambda each: each.__name__)
def test_costs(program):
    """One copy for each time that an array is kept, which happens to a fixed number of items here."""
    graph = to_run(optimize(ag.function(program).get_concrete_function(ag.TensorSpec([None], ag.float32)).graph))
    counts = []
    for n in (200, 400):
        x = np.full(n, 0.5, np.float32)
        x[[3, 50, 120]] = 0.96, 0.05, 0.99
        counts.append(lines_run(graph, x))
    assert counts[1] < 2.2 * counts[0]
