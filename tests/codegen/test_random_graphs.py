"""Random small programs over scalars, arrays, branches and loops: native against interpreted."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import runtime.ops.operators  # noqa: F401
from runtime.context import ctx
from runtime.dtypes import float64
from runtime.graph.builder import emit_cond, trace_region
from runtime.ops.dispatch import call
from tests.autodiff.graphs import F64, I32, integer, while_loop
from tests.codegen.compare import build, check, typed

UNARY = ["tanh", "sin", "negative", "abs", "relu", "sigmoid", "square"]
BINARY = ["add", "subtract", "multiply", "maximum", "minimum"]


@st.composite
def programs(draw: Any) -> list[tuple]:
    """Steps that make a new value out of earlier ones, by position."""
    steps = []
    for _ in range(draw(st.integers(2, 9))):
        kind = draw(
            st.sampled_from(
                ["unary", "binary", "binary", "reduce", "row", "cond", "while", "broadcast", "concat", "update"]
            )
        )
        picks = [draw(st.integers(0, 30)) for _ in range(3)]
        steps.append((kind, draw(st.sampled_from(UNARY)), draw(st.sampled_from(BINARY)), *picks))
    return steps


def scalar_of(value: Any) -> Any:
    if not value._shape:
        return value
    return call("reduce_mean", value, axis=tuple(range(len(value._shape))), keepdims=False)


def run_program(steps: list[tuple], x: Any, m: Any, s: Any, n: Any) -> list[Any]:
    values = [x, m, s]
    for kind, unary, binary, *picks in steps:
        a, b, c = (values[p % len(values)] for p in picks)
        if kind == "unary":
            values.append(call(unary, a))
        elif kind == "binary":
            values.append(call(binary, a, b))
        elif kind == "reduce" and a._shape:
            axis = picks[1] % len(a._shape)
            values.append(
                call(
                    ["reduce_sum", "reduce_max", "reduce_mean"][picks[2] % 3],
                    a,
                    axis=(axis,),
                    keepdims=picks[2] % 2 == 0,
                )
            )
        elif kind == "row" and a._shape:
            values.append(call("gather", a, integer(picks[1] % 2), axis=0))
        elif kind == "broadcast" and not a._shape:
            values.append(call("broadcast_like", a, values[0]))
        elif kind == "concat" and a._shape:
            values.append(call("reduce_sum", call("concat", a, call(unary, a), axis=0), axis=(0,), keepdims=True))
        elif kind == "update" and a._shape and len(a._shape) == 1:
            values.append(call("row_update", a, integer(0), scalar_of(b)))
        elif kind == "cond":
            flag = scalar_of(b) > 0.1
            then = trace_region("then", lambda a=a, u=unary: [call(u, a)])
            other = trace_region("else", lambda a=a, c=c: [a + scalar_of(c)])
            values.append(emit_cond(flag, then, other)[0])
        elif kind == "while":
            if a._shape is None or None in a._shape:
                continue

            def body(i: Any, v: Any, u: Any = unary, c: Any = c) -> Any:
                return i + 1, call(u, v) * 0.5 + scalar_of(c)

            values.append(while_loop(lambda i, v: i < n, body, [integer(0), a])[1])
    assert ctx.builder is not None
    return values[3:] or values


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(), st.integers(0, 3), st.booleans())
def test_native_code_gives_what_the_interpreter_gives(steps: list[tuple], trips: int, unknown: bool) -> None:
    size = None if unknown else 3
    types = [typed(float64, size), typed(float64, None if unknown else 2, size), F64, I32]
    try:
        graph = build(lambda *inputs: run_program(steps, *inputs), types)
    except (ValueError, TypeError):
        return  # shapes that don't fit each other
    random = np.random.default_rng(len(steps))
    arrays = [random.normal(size=3), random.normal(size=(2, 3)), np.float64(random.normal()), np.int32(trips)]
    check(graph, *arrays, rtol=1e-9)
