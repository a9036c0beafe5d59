"""Loops and branches, and their gradients (which push and pop stacks), native against interpreted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runtime.ops.operators  # noqa: F401  installs + and * on tensors
from runtime.dtypes import float32, float64, int32
from runtime.graph.builder import emit_cond, emit_while, trace_region
from runtime.ops.dispatch import call
from tests.autodiff.graphs import F64, I32, gradient, integer, number, while_loop
from tests.autodiff.graphs import build as build_optimized
from tests.autodiff.test_control_flow import PROGRAMS, rows, vectors
from tests.codegen.compare import build, check, typed


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_programs_and_their_gradients(program: Any) -> None:
    graph = build_optimized(program, [F64, I32])
    for _ in range(3):
        for trips in (0, 1, 2, 5):
            check(graph, np.float64(0.43), np.int32(trips))
        graph = gradient(graph)


@pytest.mark.parametrize("size", [3, None])
@pytest.mark.parametrize("program", [rows, vectors], ids=lambda p: p.__name__)
def test_gradients_of_arrays(program: Any, size: int | None) -> None:
    graph = build_optimized(program, [typed(float64, size), I32])
    x = np.array([0.3, -0.8, 1.1])
    for _ in range(3):
        for trips in (0, 1, 3):
            check(graph, x, np.int32(trips))
        graph = gradient(graph) if graph.outputs[0].type.rank == 0 else build_sum_of(graph)


def build_sum_of(graph: Any) -> Any:
    """The sum of a graph's vector output, so that it can be differentiated again."""

    def total(*inputs: Any) -> Any:
        from runtime.context import ctx

        (value,) = ctx.builder.inline(graph, inputs)
        return call("reduce_sum", ctx.builder.tensor(value) * ctx.builder.tensor(value), axis=(0,), keepdims=False)

    return build_optimized(total, [v.type for v in graph.inputs])


def test_carries_that_change_places_need_a_temporary() -> None:
    def rotate(a: Any, b: Any, c: Any, n: Any) -> Any:
        return while_loop(lambda i, a, b, c: i < n, lambda i, a, b, c: (i + 1, b, c, a), [integer(0), a, b, c])[1:]

    graph = build(rotate, [F64, F64, F64, I32])
    for trips in range(5):
        assert check(graph, *map(np.float64, (1, 2, 3)), np.int32(trips))[0] == [1, 2, 3][trips % 3]


def test_array_carries_change_places() -> None:
    def rotate(a: Any, b: Any, n: Any) -> Any:
        return while_loop(lambda i, a, b: i < n, lambda i, a, b: (i + 1, b, a + b), [integer(0), a, b])[1:]

    graph = build(rotate, [typed(float32, None), typed(float32, None), I32])
    for trips in range(4):
        check(graph, np.ones(3, np.float32), np.arange(3, dtype=np.float32), np.int32(trips))


def test_a_carry_whose_shape_grows() -> None:
    def doubling(x: Any, n: Any) -> Any:
        carried = [typed(int32), typed(float64, None)]
        test = trace_region("test", lambda i, x: [i < n], carried)
        body = trace_region("body", lambda i, x: [i + 1, call("concat", x, x, axis=0)], carried)
        return emit_while(test, body, [integer(0), x])[1]

    graph = build(doubling, [typed(float64, None), I32])
    for trips in range(4):
        assert check(graph, np.arange(3.0), np.int32(trips))[0].shape == (3 * 2**trips,)


def test_branches_with_arrays_of_different_shapes() -> None:
    def choose(flag: Any, x: Any) -> Any:
        then = trace_region("then", lambda: [call("concat", x, x, axis=0), call("exp", x)])
        other = trace_region("else", lambda: [x, x])
        wide, same = emit_cond(flag, then, other)
        return wide, same, call("reduce_sum", wide, axis=(0,), keepdims=False) + same

    from runtime.dtypes import bool_

    graph = build(choose, [typed(bool_), typed(float64, None)])
    for flag in (True, False):
        check(graph, np.bool_(flag), np.arange(4.0))


def test_a_branch_that_updates_in_place_leaves_the_callers_array_alone() -> None:
    def sieve(marks: Any, n: Any) -> Any:
        def body(i: Any, marks: Any) -> Any:
            one = number(1)
            then = trace_region("then", lambda: [call("row_update", marks, i, one)])
            other = trace_region("else", lambda: [marks])
            return i + 1, emit_cond(i % 2 == 0, then, other)[0]

        return while_loop(lambda i, m: i < n, body, [integer(0), marks])[1]

    graph = build(sieve, [typed(float64, None), I32])
    marks = np.zeros(7)
    result = check(graph, marks, np.int32(7))[0]
    assert result.tolist() == [1, 0, 1, 0, 1, 0, 1]
    assert not marks.any()


def test_a_loop_keeps_the_start_of_an_updated_carry() -> None:
    def both(n: Any) -> Any:
        start = call("broadcast_to", number(0), shape=(4,)) + 1.0
        end = while_loop(
            lambda i, a: i < n, lambda i, a: (i + 1, call("row_update", a, i, number(9))), [integer(0), start]
        )
        return start, end[1], call("row_update", end[1], integer(0), number(5)), end[1] + 0.0

    check(build(both, [I32]), np.int32(3))


def test_names_of_the_user_that_mean_something_in_kernels() -> None:
    graph = build(lambda a, b, c, d: a + b * c - d, [F64] * 4, ["np", "lambda", "range", "lib"])
    assert check(graph, *map(np.float64, (1, 2, 3, 4)))[0] == 3


def test_integers_wrap_as_in_numpy() -> None:
    from runtime import dtypes

    for dtype in (dtypes.int8, dtypes.uint8, dtypes.int32, dtypes.int64, dtypes.uint64):
        graph = build(lambda a, b: [a + b, a * b, a - b, (a + b) * a], [typed(dtype), typed(dtype)])
        top = np.iinfo(dtype.np).max
        check(graph, dtype.np.type(top), dtype.np.type(top // 2 + 3))
