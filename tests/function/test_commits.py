"""An error at run time keeps the assignments that ran before it, in program order, as in eager code."""

from __future__ import annotations

import numpy as np
import pytest

import autograph as ag
from runtime.graph.passes.commits import insert_commits
from runtime.graph.structural import COMMIT


def straight(v, w, n, x):
    v.assign_add(1.0)
    ag.debugging.assert_greater(n, 3)
    v.assign_add(10.0)
    return v.read_value()


def loop(v, w, n, x):
    for i in ag.range(10):
        w.assign(w * 2.0 + x[i])  # x has five elements
        v.assign_add(1.0)
    return v + ag.reduce_sum(w)


def unrolled(v, w, n, x):
    i = 0
    while i < 10:
        v.assign_add(1.0)
        if i == n:
            w.assign(w + 1.0)
            ag.debugging.assert_less(i, 2)
        i += 1
    v.assign(0.0)
    return v.read_value()


def division(v, w, n, x):
    w.assign(w * 3.0)
    y = 10 // (n - 2)
    v.assign(ag.cast(y, ag.float32))
    return v.read_value()


def nested(v, w, n, x):
    for i in ag.range(5):
        if i < n:
            for j in ag.range(3):
                w.assign(w * x[i])
                v.assign_add(ag.reduce_sum(w))
                ag.debugging.assert_less(v, 200.0)
        else:
            ag.debugging.assert_less(i, n)
    return v.read_value()


def overwritten(v, w, n, x):
    """The buffer of `w` must not be changed in place by what fails afterwards."""
    for i in ag.range(4):
        w.assign(ag.tensor_scatter_nd_update(w, [[i]], [x[i]]))
    return ag.reduce_sum(w)


def run(program, mode, n):
    v, w = ag.Variable(1.0), ag.Variable([1.0, 2.0])
    x = ag.constant([1.0, 2.0, 3.0, 4.0, 5.0])
    f = program
    if mode != "eager":
        f = ag.function(program, jit_compile={"interpreted": False, "compiled": True, "gradient": True}[mode])
    try:
        if mode == "gradient":
            with ag.GradientTape() as tape:
                result = f(v, w, ag.constant(n), x)
            tape.gradient(result, w)
        else:
            result = f(v, w, ag.constant(n), x)
        outcome = float(result)
    except Exception as error:
        outcome = type(error).__name__
    return outcome, v.numpy().tolist(), w.numpy().tolist()


@pytest.mark.parametrize("mode", ["interpreted", "compiled", "gradient"])
@pytest.mark.parametrize("program", [straight, loop, unrolled, division, nested, overwritten], ids=lambda p: p.__name__)
def test_as_eager(program, mode):
    for n in (2, 3, 5):
        assert run(program, mode, n) == run(program, "eager", n)


def test_only_before_what_may_fail():
    v = ag.Variable(np.zeros(3, np.float32))

    @ag.function
    def step(x):
        v.assign_add(x)
        v.assign(v * 2.0)
        return ag.reduce_sum(v)

    graph = step.get_concrete_function(ag.TensorSpec([3], ag.float32)).graph
    assert not any(node.op is COMMIT for node in graph.walk())

    @ag.function
    def checked(x, i):
        v.assign_add(x)
        v.assign(v * 2.0)
        return v[i]

    graph = checked.get_concrete_function(ag.TensorSpec([3], ag.float32), ag.TensorSpec([], ag.int32)).graph
    assert sum(node.op is COMMIT for node in graph.walk()) == 1  # the first assignment is covered by the second
    assert insert_commits(graph)
    assert sum(node.op is COMMIT for node in graph.walk()) == 1


def test_inlined_functions():
    v = ag.Variable(0)

    @ag.function
    def bump(x):
        v.assign_add(1)
        return 1 // x

    @ag.function(jit_compile=True)
    def outer(x):
        a = bump(x)
        v.assign_add(10)
        return a + bump(x - 1)

    with pytest.raises(ag.errors.InvalidArgumentError):
        outer(ag.constant(1))
    assert v.numpy() == 12


def test_a_gradient_through_checks_in_loops_in_branches():
    def f(x, n):
        if n > 0:
            for i in ag.range(n):
                ag.debugging.assert_less(i, 10)
                x = x * x
        return x

    with ag.GradientTape() as tape:
        x = ag.constant(1.5)
        tape.watch(x)
        y = ag.function(f)(x, ag.constant(2))
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), 4 * 1.5**3)
