"""What goes wrong in native code raises at the user's line, with the numbers, as interpreted code does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runtime.ops.operators  # noqa: F401
from runtime import errors
from runtime.dtypes import bool_, float32, float64, int32, int64
from runtime.ops.control import assert_op
from runtime.ops.dispatch import call
from tests.autodiff.graphs import I32, integer, number, while_loop
from tests.codegen.compare import build, run_both, typed


def raised(graph: Any, *inputs: Any) -> Exception:
    expected, actual = run_both(graph, inputs)
    assert isinstance(expected, Exception)
    assert type(expected) is type(actual), (expected, actual)
    return actual


def test_integer_division_by_zero_names_the_line() -> None:
    graph = build(lambda a, b: call("floordiv", a, b), [I32, I32])
    error = raised(graph, np.int32(1), np.int32(0))
    assert isinstance(error, errors.InvalidArgumentError)
    assert "division by zero" in str(error)
    assert "test_errors.py" in str(error)
    assert 'call("floordiv", a, b)' in str(error)


def test_division_of_the_smallest_integer_by_minus_one_is_no_crash() -> None:
    for dtype in (int32, int64):
        graph = build(
            lambda a, b: [call("floordiv", a, b), call("floormod", a, b), call("truncatediv", a, b)],
            [typed(dtype), typed(dtype)],
        )
        expected, actual = run_both(graph, [dtype.np.type(np.iinfo(dtype.np).min), dtype.np.type(-1)])
        assert actual == expected


def test_division_by_zero_inside_an_array() -> None:
    graph = build(lambda a, b: call("floormod", a, b), [typed(int32, None), typed(int32, None)])
    error = raised(graph, np.arange(4, dtype=np.int32), np.array([1, 2, 0, 3], np.int32))
    assert "division by zero" in str(error)


@pytest.mark.parametrize("index", [-1, 3, 7])
def test_gather_out_of_range(index: int) -> None:
    graph = build(lambda x, i: call("gather", x, i, axis=0), [typed(float32, None), typed(int32, None)])
    error = raised(graph, np.ones(3, np.float32), np.array([0, index], np.int32))
    assert f"indices[1] = {index} is not in [0, 3)" in str(error)


def test_gather_names_the_place_in_a_table_of_indices() -> None:
    graph = build(lambda x, i: call("gather", x, i, axis=0), [typed(float32, None), typed(int32, None, None)])
    error = raised(graph, np.ones(3, np.float32), np.array([[0, 1], [2, 5]], np.int32))
    assert "indices[1,1] = 5 is not in [0, 3)" in str(error)


def test_index_out_of_range_in_a_loop() -> None:
    def total(x: Any, n: Any) -> Any:
        return while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s + x[i]), [integer(0), number(0)])[1]

    graph = build(total, [typed(float64, None), I32])
    error = raised(graph, np.ones(3), np.int32(5))
    assert "slice index 3 of dimension 0 out of bounds" in str(error)


def test_shapes_that_do_not_broadcast_at_run_time() -> None:
    graph = build(lambda x, y: x + y, [typed(float32, None), typed(float32, None)])
    raised(graph, np.ones(3, np.float32), np.ones(2, np.float32))


def test_matmul_of_matrices_that_do_not_fit() -> None:
    types = [typed(float32, None, None), typed(float32, None, None)]
    graph = build(lambda x, y: call("matmul", x, y, transpose_a=False, transpose_b=False), types)
    raised(graph, np.ones((2, 3), np.float32), np.ones((4, 2), np.float32))


def test_a_failed_assertion_shows_its_data() -> None:
    def checked(flag: Any, x: Any, n: Any) -> Any:
        assert_op(flag, "too far", error="ValueError", data=[x, n])
        return x

    graph = build(checked, [typed(bool_), typed(float32), I32])
    expected, actual = run_both(graph, [np.bool_(False), np.float32(0.1), np.int32(7)])
    assert type(actual) is ValueError
    assert str(actual).split("\n")[0] == str(expected).split("\n")[0] == "too far: 0.1, 7"


def test_of_two_failed_assertions_the_first_is_raised() -> None:
    def checked(a: Any, b: Any) -> Any:
        assert_op(a, "first")
        assert_op(b, "second")
        return a

    graph = build(checked, [typed(bool_), typed(bool_)])
    assert "first" in str(raised(graph, np.bool_(False), np.bool_(False)))
    assert "second" in str(raised(graph, np.bool_(True), np.bool_(False)))


def test_errors_leave_no_memory_behind() -> None:
    """Early returns release what the kernel holds."""
    import resource

    from runtime.codegen.backends.call_stub import load
    from runtime.codegen.lower.lower_graph import lower

    def leaky(x: Any, i: Any) -> Any:
        return call("gather", call("concat", x, x, axis=0), i, axis=0)

    native = load(lower(build(leaky, [typed(float64, None), typed(int32, None)])))
    x, index = np.ones(100_000), np.array([-1], np.int32)

    def failing() -> None:
        with pytest.raises(errors.InvalidArgumentError):
            native([x, index])

    failing()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(200):
        failing()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kB; leaking would take 300 MB


def test_kernels_with_many_results() -> None:
    """Python makes a list of a display of more than 30, which numba can't make a tuple of."""

    def many(x: Any, i: Any, j: Any) -> list[Any]:
        return [*[x * np.float32(k) for k in range(40)], call("floordiv", i, j), call("floordiv", j, i)]

    graph = build(many, [typed(float32), I32, I32])
    expected, actual = run_both(graph, [np.float32(2), np.int32(7), np.int32(2)])
    assert list(expected) == list(actual)
    assert float(actual[39]) == 78 and int(actual[40]) == 3
    for i, j in ((0, 1), (1, 0)):
        assert "division by zero" in str(raised(graph, np.float32(2), np.int32(i), np.int32(j)))
