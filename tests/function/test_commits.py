"""An error at run time keeps the assignments that ran before it, in program order, as in eager code."""

from __future__ import annotations

import numpy as np
import pytest

import autograph as ag
from runtime.codegen.lower.lower_graph import lower
from runtime.graph.passes.rewrites.commits import insert_commits
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


def test_a_convolutional_training_step_has_none():
    kernel, hits = ag.Variable(np.ones((3, 3, 1, 2), np.float32)), ag.Variable(0.0)

    @ag.function
    def step(images):
        with ag.GradientTape() as tape:
            features = ag.nn.max_pool2d(ag.nn.conv2d(images, kernel, 1, "SAME"), 2, 2, "VALID")
            features = ag.nn.max_pool2d(
                ag.nn.conv2d(ag.reduce_sum(features, 3, True), kernel, 1, "SAME"), 2, 2, "VALID"
            )
            loss = ag.reduce_sum(features)
        hits.assign_add(loss)
        kernel.assign_sub(tape.gradient(loss, kernel))
        return ag.bitcast(loss, ag.int32)

    graph = step.get_concrete_function(ag.TensorSpec([4, 8, 8, 1], ag.float32)).graph
    assert {"max_pool_grad", "convolution_input_grad", "bitcast"} <= {node.op.name for node in graph.walk()}
    assert not any(node.op is COMMIT for node in graph.walk())


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


# --- elements assigned in loops, in the variable's memory -------------------------------------------------------------


def one(w, u, x, places):
    for i in places:
        w[i].assign(w[i] + 1.0)


def two_after_each_other(w, u, x, places):
    for i in places:
        w[i % 40].assign(w[i % 40] + 1.0)
        w[i].assign(x[i - 1] * 2.0)


def computed_before_it_is_assigned(w, u, x, places):
    for i in places:
        w[7].assign(w[7] + 1.0)
        later = ag.tensor_scatter_nd_update(w, [[3]], [w[7] * 10.0])
        w.assign(later * x[i])


def two_variables(w, u, x, places):
    for i in places:
        u[i % 2, 1].assign(u[i % 2, 0] + 1.0)
        w[i].assign_add(u[1, 1])
        u[0].assign(u[0] + w[:30])


def nested_loops(w, u, x, places):
    for j in ag.range(3):
        for i in places:
            w[i - j].assign(w[i - j] * 2.0 + x[i])
        w.assign_add(x)
        ag.debugging.assert_less(j, 2)


def in_a_branch(w, u, x, places):
    for i in places:
        if i % 2 == 0:
            w[i].assign(w[i] + 1.0)
        else:
            w[i].assign(-w[i])


def changed_after_the_loop(w, u, x, places):
    for i in places:
        w[i % 40].assign(w[i % 40] + 1.0)
    later = ag.tensor_scatter_nd_update(w, [[5]], [-1.0])
    w.assign(later * 2.0 + x[places[-1]])


def two_loops(w, u, x, places):
    for i in places:
        w[i % 40].assign(w[i % 40] + 1.0)
    for i in places:
        w[i % 39].assign(x[i])
        w.assign(w * 1.5)


def scattered(w, u, x, places):
    for i in places:
        w.scatter_nd_update([[i]], [x[i % 40]])
        w.scatter_nd_add([[i % 40], [i]], [1.0, x[3]])


def scattered_rows(w, u, x, places):
    for i in places:
        u.scatter_update(ag.IndexedSlices(ag.stack([w[:30], w[10:]]), [0, i // 5 - i // 7]))
        w.scatter_sub(ag.IndexedSlices([x[0], 2.0, x[1]], [1, i, i % 40]))


def scattered_from_tensors(w, u, x, places):
    for i in places:
        w.scatter_nd_max(ag.reshape(places % 20 + i, [5, 1]), x[:5] * 40.0)
        w.scatter_nd_min(ag.reshape(ag.stack([3, i, 5]), [3, 1]), x[:3])


IN_PLACE = [
    one, scattered, scattered_rows, scattered_from_tensors, two_after_each_other, computed_before_it_is_assigned,
    two_variables, nested_loops, in_a_branch, changed_after_the_loop, two_loops,
]  # fmt: skip


@pytest.mark.parametrize("last", [3, 60])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("program", IN_PLACE, ids=lambda p: p.__name__)
def test_elements_of_variables_as_eager(program, compiled, last):
    x = ag.constant(np.linspace(1.0, 2.0, 40, dtype=np.float32))
    places = ag.constant([5, 2, 8, 5, last])
    found = []
    for f in (program, ag.function(program, jit_compile=compiled)):
        w, u = ag.Variable(np.arange(40, dtype=np.float32)), ag.Variable(np.ones((2, 30), np.float32))
        outcome = "finished"
        try:
            f(w, u, x, places)
        except ag.errors.InvalidArgumentError:
            outcome = "failed"
        found.append((outcome, w.numpy().tolist(), u.numpy().tolist()))
    assert found[0] == found[1]
    assert found[0][0] == ("failed" if last == 60 or program is nested_loops else "finished")


@pytest.mark.parametrize("program", [one, scattered, scattered_rows], ids=lambda p: p.__name__)
def test_a_trip_that_assigns_an_element_copies_nothing(program):
    w, u = ag.Variable(np.zeros(40, np.float32)), ag.Variable(np.zeros((2, 30), np.float32))
    x, places = ag.TensorSpec([40], ag.float32), ag.TensorSpec([None], ag.int32)
    graph = ag.function(program).get_concrete_function(w, u, x, places).graph
    before, _, trips = lower(graph).text.partition("while ")
    assert "np.empty(" in before and trips and "np.empty(" not in trips
