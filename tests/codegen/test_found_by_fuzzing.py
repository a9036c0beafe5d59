"""Programs that `python -m tests.fuzz_kernels` found to differ, in their smallest form."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import autograph as ag
import runtime.ops.operators  # noqa: F401
from runtime.dtypes import bool_, float32, int32
from runtime.ops.dispatch import call
from tests.autodiff.graphs import I32, integer, while_loop
from tests.codegen.compare import build, check, typed

SQUARE = np.array([[1.5, -2.0], [0.25, 3.0]], np.float32)


def test_a_view_that_was_copied_is_not_written_over_while_it_lives() -> None:
    """The copy that a loop wants of a strided view is a buffer of the view's own."""

    def program(a: Any, n: Any) -> Any:
        x = call("transpose", call("matmul", a, a, transpose_a=False, transpose_b=False), perm=(1, 0))
        y = x * x
        end = while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * call("gather", x, i, axis=0)), [integer(0), y])
        return end[1], x

    graph = build(program, [typed(float32, 2, 2), I32])
    for trips in (0, 1, 2):
        check(graph, SQUARE, np.int32(trips))


def test_an_assignment_in_a_loop_without_trips_did_not_run() -> None:
    for initial, value in (([1.0, -2.0], [3.0, 3.0]), (1.0, 3.0)):
        v = ag.Variable(initial)

        @ag.function(jit_compile=True)
        def program(n: Any, v: Any = v, value: Any = value) -> Any:
            i = 0
            while i < n:
                v.assign(value)
                i += 1
            if n >= -1:
                raise ValueError("on purpose")
            return n

        for trips, expected in ((0, initial), (2, value)):
            with pytest.raises(ValueError, match="on purpose"):
                program(ag.constant(trips))
            assert v.numpy().tolist() == expected


def test_a_row_that_few_variables_hold_is_scattered_as_a_whole() -> None:
    def program(c: Any, n: Any) -> Any:
        for i in ag.range(n):
            c = ag.tensor_scatter_nd_update(c, [[i]], c[:1])
            c = ag.tensor_scatter_nd_add(c, [[i], [0]], c[1:] * 0.5)
        return c

    rows = ag.constant(np.arange(9.0).reshape(3, 3))
    for n in (0, 1, 3):
        got, expected = (
            ag.function(program, jit_compile=compiled)(rows, ag.constant(n)).numpy() for compiled in (True, False)
        )
        np.testing.assert_array_equal(got, expected)


def test_the_least_of_few_integers_is_found_by_a_short_text() -> None:
    """It doubled with each element: a kernel of 80 kB, which took minutes to compile."""
    from runtime.codegen.lower.lower_graph import lower

    @ag.function(jit_compile=True)
    def program(a: Any, n: Any) -> Any:
        for _ in ag.range(n):
            a = a + a[::-1] * ag.reduce_min(a) - ag.reduce_max(a)
        return a

    graph = program.get_concrete_function(ag.TensorSpec([16], ag.int32), ag.TensorSpec([], ag.int32)).graph
    assert max(map(len, lower(graph).text.splitlines())) < 200
    a = np.arange(16, dtype=np.int32) - 7
    expected = a
    for _ in range(3):
        expected = expected + expected[::-1] * expected.min() - expected.max()
    np.testing.assert_array_equal(program(ag.constant(a), ag.constant(3)), expected)


@pytest.mark.parametrize("name", ["floordiv", "floormod", "truncatediv"])
def test_no_elements_divided_by_zero_are_no_error(name: str) -> None:
    graph = build(lambda x, y: call(name, x, y), [typed(int32, None, 3), I32])
    (result,) = check(graph, np.zeros((0, 3), np.int32), np.int32(0))
    assert result.shape == (0, 3)
    (error,) = check(graph, np.ones((1, 3), np.int32), np.int32(0))
    assert "Integer division by zero" in str(error)


def test_a_reversed_operand_of_one_element_stays() -> None:
    def program(x: Any, chosen: Any, n: Any) -> Any:
        return call("select", call("reverse", chosen, axis=(0,)), n, x)

    graph = build(program, [typed(int32, 5, 3), typed(bool_, 1), I32])
    check(graph, np.arange(15, dtype=np.int32).reshape(5, 3), np.array([True]), np.int32(3))


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("size", [0, 2])
def test_elements_whose_sizes_only_the_call_knows(jit: bool, size: int) -> None:
    """Before anything is written, an array of elements like x has the sizes of x, as it has in eager mode."""

    def program(x: Any, n: Any) -> Any:
        whole = ag.TensorArray(ag.float32, size=n, dynamic_size=False, element_shape=x.shape)
        rows = ag.TensorArray(ag.float32, size=0, dynamic_size=True, element_shape=x.shape[1:])
        for i in ag.range(n):
            rows = rows.write(i, x[0])
        return whole.stack(), whole.concat(), rows.stack(), rows.concat()

    specs = [ag.TensorSpec([None, None, None], ag.float32), ag.TensorSpec([], ag.int32)]
    x, n = ag.ones([2, 3, 4]), ag.constant(size)
    staged = ag.function(program, input_signature=specs, jit_compile=jit)(x, n)
    for one, other in zip(staged, program(x, n), strict=True):
        assert one.shape == other.shape
        np.testing.assert_array_equal(one, other)


def test_choosing_between_equals_spreads_them_over_the_condition() -> None:
    def chosen(test: Any, x: Any) -> Any:
        return ag.where(test, x, x), ag.where(True, x, ag.zeros_like(test, x.dtype))

    graph = build(chosen, [typed(bool_, None), typed(float32, None)])
    one, other = check(graph, np.array([True, False, True]), np.array([1.5], np.float32))
    assert one.tolist() == other.tolist() == [1.5, 1.5, 1.5]


@pytest.mark.parametrize("jit", [False, True])
def test_shapes_of_updates_are_looked_at_before_indices(jit: bool) -> None:
    specs = [ag.TensorSpec([None, None], ag.float32), ag.TensorSpec([None, 1], ag.int32)]
    function = ag.function(lambda x, at: ag.tensor_scatter_nd_add(x, at, x), input_signature=specs, jit_compile=jit)
    with pytest.raises(ag.errors.InvalidArgumentError, match="updates of shape .* don't fit indices"):
        function(SQUARE, [[7]])


def test_a_shape_that_is_refused_is_named() -> None:
    def program(x: Any, n: Any) -> Any:
        return ag.broadcast_to(x, [n, 2])

    for jit in (False, True):
        with pytest.raises(ag.errors.InvalidArgumentError, match="Incompatible shapes: "):
            ag.function(program, jit_compile=jit)(ag.ones([3, 2]), ag.constant(2))
    with pytest.raises(ag.errors.InvalidArgumentError, match=r"Incompatible shapes: \[3,2\] vs. \[2,2\]"):
        program(ag.ones([3, 2]), ag.constant(2))


FIRST = {
    "in an array, then a number": lambda a, x, n, v: (a // n, x % n),
    "in a number, then an array": lambda a, x, n, v: (x % n, a // n),
    "in one pass, at an earlier element": lambda a, x, n, v: (a // (5 - a - n), a % (a - 3 + n)),
    "in an array, then an assertion": lambda a, x, n, v: (a // n, ag.debugging.Assert(n > 0, [n]))[:1],
    "in an array, then an assignment": lambda a, x, n, v: (a // n, v.assign(x), x % n),
    "in a mean, then a number": lambda a, x, n, v: (ag.reduce_mean(a[:n]), x % n),
}


@pytest.mark.parametrize("name", FIRST)
def test_of_two_errors_the_first_in_the_program_is_raised(name: str) -> None:
    told = []
    for jit in (False, True):
        v = ag.Variable(7)

        @ag.function(jit_compile=jit)
        def program(a: Any, x: Any, n: Any, v: Any = v) -> Any:
            return FIRST[name](a, x, n, v)

        with pytest.raises(ag.errors.InvalidArgumentError) as caught:
            program(ag.constant([3, 2, 5]), ag.constant(1), ag.constant(0))
        told.append((str(caught.value).splitlines()[0], int(v)))
    assert told[0] == told[1]
    assert told[0][1] == 7


@pytest.mark.parametrize("shape", [(3, 7, 7), (4, 2, 2), (2, 3, 5), (5, 6), (2, 4, 4, 4)])
def test_rows_of_merged_axes_have_the_product_of_their_sizes(shape: tuple[int, ...]) -> None:
    """Two axes of one size share its name in the text."""

    def program(x: Any, n: Any) -> Any:
        for i in ag.range(n):
            x = x + x[i]
        return x

    start = np.arange(math.prod(shape), dtype=np.int32).reshape(shape)
    want = start.copy()
    for i in range(2):
        want = want + want[i]
    got = ag.function(program, jit_compile=True)(ag.constant(start), ag.constant(2))
    np.testing.assert_array_equal(got.numpy(), want)


def test_small_carries_whose_shape_only_the_loop_knows() -> None:
    """The loop's first values come from a list, of which the graph knows the rows' shape only inside of the loop."""

    def forward(a: Any, b: Any, n: Any) -> Any:
        rows = ag.TensorArray(ag.float32, size=3, element_shape=[3], clear_after_read=False).unstack(b)
        for i in ag.range(n + 1):
            rows = rows.write(2, ag.fill([3], ag.constant(1, ag.float32)))
            if i >= 0:
                b = rows.stack()
                negative = []
                for row in b:
                    negative.append(-row)
                rows = rows.write(2, ag.fill([3], ag.constant(0, ag.float32)))
            k = ag.constant(0)
            while k < n * 2 and i == -2:
                a = ag.tensor_scatter_nd_update(a, [[i]], a[:1])
                for _ in ag.range(0):
                    a = ag.sin(a) + a
        first, kept = b, rows.stack()
        for i in ag.range(n + 1):
            a = b * b[i]
        return [first, kept, a, rows.stack()]

    def program(a: Any, b: Any, n: Any) -> Any:
        with ag.GradientTape() as tape:
            tape.watch([a, b])
            results = forward(a, b, n)
        return [*results, *tape.gradient(results, [a, b], unconnected_gradients="zero")]

    args = (ag.constant(np.eye(3, dtype=np.float32)), ag.constant(np.arange(9, dtype=np.float32).reshape(3, 3)))
    interpreted, compiled = (ag.function(program, jit_compile=jit)(*args, ag.constant(2)) for jit in (False, True))
    for one, other in zip(interpreted, compiled):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_roll_of_no_elements():
    @ag.function(jit_compile=True)
    def program(a, n):
        rows = ag.TensorArray(ag.int32, size=0, dynamic_size=True, element_shape=a.shape)
        for i in ag.range(n):
            rows = rows.write(i, a)
        return ag.roll(rows.stack(), 1, 0)

    a = ag.constant([[1], [2]])
    assert program(a, ag.constant(0)).shape == (0, 2, 1)
    np.testing.assert_array_equal(program(a, ag.constant(2)), [[[1], [2]], [[1], [2]]])
    assert ag.function(program.python_function)(a, ag.constant(0)).shape == (0, 2, 1)


def test_a_transposed_constant_is_what_a_loop_over_small_arrays_begins_with():
    def program(b):
        with ag.GradientTape() as tape:
            tape.watch(b)
            r = b
            for _ in ag.range(3):
                r = ag.roll(r, 1, 0)
            r = ag.transpose(r)
        return tape.gradient(r, b)

    b = ag.constant(np.arange(4.0).reshape(2, 2))
    np.testing.assert_array_equal(ag.function(program, jit_compile=True)(b), np.ones((2, 2)))
