"""`ag.cond`, `ag.while_loop`, `ag.case`, `ag.switch_case` and the options of loops, eagerly and traced."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import autograph as ag
from autograph.errors import StagingError, StagingValueError
from tests.operators.harness import Staged


def both_ways(function, *arguments):
    """The results of a function called eagerly and traced, which must agree."""
    tensors = [ag.constant(a) for a in arguments]
    eager, traced = function(*tensors), ag.function(function, autograph=False)(*tensors)
    ag.nest.assert_same_structure(eager, traced)
    for a, b in zip(ag.nest.flatten(eager), ag.nest.flatten(traced)):
        np.testing.assert_allclose(a, b)
    return eager


@pytest.mark.parametrize(("x", "expected"), [(3.0, 9.0), (-3.0, 3.0)])
def test_cond(x, expected):
    result = both_ways(lambda x: ag.cond(x > 0, lambda: {"y": x * x}, lambda: {"y": -x}), x)
    assert float(result["y"]) == expected


@pytest.mark.parametrize("x", [3.0, -3.0])
def test_rows_whose_numbers_have_other_dtypes(x):
    def rows(x, dtype):
        return ag.IndexedSlices(ag.fill([1, 2], x), ag.constant([2], dtype), ag.constant([4, 2]))

    def f(x):
        found = ag.cond(x > 0, lambda: rows(x, ag.int64), lambda: rows(-x, ag.int32))
        return ag.convert_to_tensor(found)

    assert both_ways(f, x).numpy().tolist() == [[0, 0], [0, 0], [3, 3], [0, 0]]


def test_cond_gradient():
    @ag.function
    def f(x):
        return ag.cond(x > 0, lambda: x * x, lambda: -x)

    x = ag.constant(3.0)
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert float(tape.gradient(y, x)) == 6


def test_cond_wants_functions():
    with pytest.raises(TypeError, match="true_fn"):
        ag.cond(ag.constant(True), 1, lambda: 2)


@pytest.mark.parametrize("limit", [None, 2])
def test_while_loop(limit):
    def f(n):
        return ag.while_loop(
            lambda i, s: i < n, lambda i, s: (i + 1, {"s": s["s"] + i}), [0, {"s": 0}], maximum_iterations=limit
        )

    i, s = both_ways(f, 5)
    assert (int(i), int(s["s"])) == ((5, 10) if limit is None else (2, 1))


def test_while_loop_of_one_variable():
    assert int(both_ways(lambda n: ag.while_loop(lambda i: i < n, lambda i: i * 2, [1]), 9)[0]) == 16


def test_while_loop_with_growing_shape():
    def f(n):
        return ag.while_loop(
            lambda i, xs: i < n,
            lambda i, xs: (i + 1, ag.concat([xs, xs], 0)),
            (ag.constant(0), ag.ones([1])),
            shape_invariants=(ag.TensorShape([]), ag.TensorShape([None])),
        )

    assert both_ways(f, 3)[1].shape == (8,)


@pytest.mark.parametrize(("x", "expected"), [(0, 10), (1, 20), (5, 30)])
def test_case(x, expected):
    def f(x):
        pairs = [(ag.equal(x, 0), lambda: ag.constant(10)), (ag.equal(x, 1), lambda: ag.constant(20))]
        return ag.case(pairs, default=lambda: ag.constant(30))

    assert int(both_ways(f, x)) == expected


def test_case_without_default():
    @ag.function
    def f(x):
        return ag.case([(x > 0, lambda: x), (x > 10, lambda: -x)], exclusive=True)

    assert int(f(ag.constant(2))) == 2
    with pytest.raises(ag.errors.InvalidArgumentError, match="none of the predicates"):
        f(ag.constant(-1))
    with pytest.raises(ag.errors.InvalidArgumentError, match="more than one"):
        f(ag.constant(11))


@pytest.mark.parametrize(("index", "expected"), [(0, 1), (1, 2), (2, 3), (-1, 3), (9, 3)])
def test_switch_case(index, expected):
    def f(i):
        return ag.switch_case(i, [lambda: ag.constant(1), lambda: ag.constant(2), lambda: ag.constant(3)])

    assert int(both_ways(f, index)) == expected


def test_switch_case_by_number_with_default():
    def f(i):
        return ag.switch_case(i, {3: lambda: ag.constant(3), 1: lambda: ag.constant(1)}, default=lambda: ag.constant(0))

    assert [int(both_ways(f, i)) for i in (1, 2, 3)] == [1, 0, 3]


# --- options -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "expected"), [(10, 3), (2, 2)])
def test_maximum_iterations(n, expected):
    def f(n):
        count = 0
        while n > 0:
            ag.autograph.experimental.set_loop_options(maximum_iterations=3, parallel_iterations=1)
            n -= 1
            count += 1
        return count

    assert Staged(f, (np.int32(n),)).run() == expected


def test_maximum_iterations_of_for():
    def f(xs):
        total = 0.0
        for x in xs:
            ag.autograph.experimental.set_loop_options(maximum_iterations=2)
            total += x
        return total

    assert Staged(f, (np.array([1, 2, 4], np.float32),)).run() == 3


def test_maximum_iterations_are_computed_before_the_loop():
    limit = ag.Variable(7)

    def f(n):
        count = 0
        while n > 0:
            ag.autograph.experimental.set_loop_options(maximum_iterations=n - limit)
            n -= 1
            count += 1
        return count

    def drawn(n):
        while n > 0:
            ag.autograph.experimental.set_loop_options(maximum_iterations=ag.random.uniform([], 1, 3, ag.int32))
            n -= 1
        return n

    def in_a_branch(n):
        while n > 0:
            if n > 1:
                ag.autograph.experimental.set_loop_options(maximum_iterations=n - 1)
            n -= 1
        return n

    assert int(ag.function(f)(np.int32(10))) == 3
    assert int(ag.function(f, jit_compile=True)(np.int32(9))) == 2
    for refused in (drawn, in_a_branch):
        with pytest.raises(StagingError, match="maximum_iterations"):
            ag.function(refused)(np.int32(2))


def test_an_unrolled_step_before_a_loop_over_tensor_arrays():
    # As Sonnet's dynamic_unroll: the first step outside, the others in a loop over structures of arrays.
    def cell(inputs, state):
        return inputs * state, state + 1.0

    @ag.function(input_signature=[ag.TensorSpec([None, 3])])
    def unroll(sequence):
        steps = ag.shape(sequence)[0]
        inputs = ag.nest.map_structure(lambda i: ag.TensorArray(i.dtype, steps).unstack(i), sequence)
        output, state = cell(ag.nest.map_structure(lambda i: i.read(0), inputs), ag.constant(1.0))
        outputs = ag.nest.map_structure(lambda o: ag.TensorArray(o.dtype, steps).write(0, o), output)
        for t in ag.range(1, steps):
            ag.autograph.experimental.set_loop_options(maximum_iterations=steps - 1)
            output, state = cell(ag.nest.map_structure(lambda i, t=t: i.read(t), inputs), state)
            outputs = ag.nest.map_structure(lambda ta, o, t=t: ta.write(t, o), outputs, output)
        return ag.nest.map_structure(ag.TensorArray.stack, outputs), state

    outputs, state = unroll(ag.ones([4, 3]))
    np.testing.assert_array_equal(outputs, np.repeat([[1.0], [2.0], [3.0], [4.0]], 3, axis=1))
    assert float(state) == 5.0


def test_shape_invariants():
    def f(n):
        xs = ag.ones([2, 3])
        while n > 0:
            ag.autograph.experimental.set_loop_options(shape_invariants=[(xs, ag.TensorShape([None, 3]))])
            xs = xs * 2
            n -= 1
        return xs

    staged = Staged(f, (np.int32(2),))
    assert tuple(staged.structure.shape) == (None, 3)
    np.testing.assert_array_equal(staged.run(), np.full((2, 3), 4))


def test_shape_invariant_that_does_not_hold():
    def f(n):
        xs = ag.ones([2, 3])
        while n > 0:
            ag.autograph.experimental.set_loop_options(shape_invariants=[(xs, ag.TensorShape([5, 3]))])
            xs = xs * 2
            n -= 1
        return xs

    with pytest.raises(StagingValueError, match="invariant"):
        Staged(f, (np.int32(2),))


def test_loop_that_python_runs_has_no_options():
    def f(x):
        for _ in range(5):
            ag.autograph.experimental.set_loop_options(maximum_iterations=2)
            x = x + 1
        return x

    assert int(ag.function(f)(ag.constant(0))) == 5


def test_verbosity(caplog, capsys):
    ag.autograph.set_verbosity(10, alsologtostdout=True)
    try:
        with caplog.at_level(logging.INFO, "autograph"):
            ag.function(lambda x: x + 1 if x > 0 else x)(ag.constant(1))
    finally:
        ag.autograph.set_verbosity(0)
    assert "Converted" in caplog.text
    assert "ag__.if_exp" in capsys.readouterr().out


# --- TensorArrays whose element shape nobody has given ---------------------------------------------------------------


def doubled(n):
    def body(i, array):
        before = ag.cond(i > 0, lambda: array.read(i - 1), lambda: 0.5)
        return i + 1, array.write(i, 2.0 * before)

    return ag.while_loop(lambda i, array: i < n, body, [0, ag.TensorArray(ag.float32, n)])[1].stack()


def fibonacci(n):
    array = ag.TensorArray(ag.int32, size=n, clear_after_read=False)
    for i in ag.range(n):
        if i < 2:
            array = array.write(i, 1)
        else:
            array = array.write(i, array.read(i - 1) + array.read(i - 2))
    return array.stack()


def longest_so_far(n):
    """Read in an inner loop before anything was written."""
    array = ag.TensorArray(ag.int32, size=n)
    for i in ag.range(n):
        best = 0
        for j in ag.range(i):
            best = ag.maximum(best, array.read(j) + j % 2)
        array = array.write(i, best + 1)
    return array.stack()


def powers(n):
    matrix = ag.constant([[0.0, 1.0], [1.0, 1.0]])
    array = ag.TensorArray(ag.float32, size=n)
    for i in ag.range(n):
        if i == 0:
            array = array.write(i, [1.0, 2.0])
        else:
            array = array.write(i, ag.linalg.matvec(matrix, array.read(i - 1)))
    return array.stack()


@pytest.mark.parametrize("program", [doubled, fibonacci, longest_so_far, powers], ids=lambda p: p.__name__)
def test_elements_are_read_where_their_shape_is_not_known_yet(program):
    for compiled in (False, True):
        np.testing.assert_array_equal(ag.function(program, jit_compile=compiled)(ag.constant(6)), program(6))


def test_shape_invariants_beside_a_tensor_array():
    def program(n):
        array, x = ag.TensorArray(ag.float32, 0, dynamic_size=True), ag.zeros([1])
        return ag.while_loop(
            lambda i, array, x: i < n,
            lambda i, array, x: (i + 1, array.write(i, ag.reduce_sum(x)), ag.concat([x, [1.0]], 0)),
            [0, array, x],
            shape_invariants=[ag.TensorShape([]), ag.TensorShape(None), ag.TensorShape([None])],
        )[2]

    np.testing.assert_array_equal(ag.function(program)(ag.constant(3)), [0.0, 1.0, 1.0, 1.0])


def test_an_array_that_nothing_is_written_to_has_no_elements_to_read():
    for program in (lambda: ag.TensorArray(ag.float32, 3).read(0), lambda: ag.TensorArray(ag.float32, 3).stack()):
        with pytest.raises(ag.errors.InvalidArgumentError, match=r"give element_shape"):
            ag.function(program)()
