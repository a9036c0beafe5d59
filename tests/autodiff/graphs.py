"""Builds graphs by hand and differentiates them as graphs, for tests below the tape and the converter."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from runtime import dtypes
from runtime.autodiff.vjp import build_vjp
from runtime.context import ctx
from runtime.graph.builder import Builder, emit_cond, emit_while, trace_region
from runtime.graph.interpreter import interpret
from runtime.graph.ir import Graph
from runtime.graph.passes.pipeline import optimize
from runtime.graph.verify import verify
from runtime.types import TensorType

F64 = TensorType(dtypes.float64, ())
I32 = TensorType(dtypes.int32, ())


def vector(size: int | None) -> TensorType:
    return TensorType(dtypes.float64, (size,))


def build(function: Callable[..., Any], types: Sequence[TensorType]) -> Graph:
    """The optimised, verified graph of `function`, which returns one tensor."""
    builder = Builder(getattr(function, "__name__", "f"))
    inputs = [builder.add_input(t, f"x{i}") for i, t in enumerate(types)]
    with builder:
        builder.graph.outputs = [builder.use(function(*map(builder.tensor, inputs)))]
    verify(builder.graph)
    return optimize(builder.graph)


def gradient(graph: Graph, wanted: int = 0) -> Graph:
    """The graph of the derivative of (scalar) `graph` with respect to one input."""
    vjp = build_vjp(graph, [wanted], [0])
    verify(vjp.forward, "vjp forward")
    verify(vjp.backward, "vjp backward")
    builder = Builder(f"d {graph.name}")
    inputs = [builder.add_input(v.type, v.name) for v in graph.inputs]
    with builder:
        outputs = builder.inline(vjp.forward, inputs)
        extra = iter(outputs[len(graph.outputs) :])
        residuals = [next(extra) if source is None else inputs[source] for source in vjp.sources]
        one = builder.constant(np.float64(1))
        builder.graph.outputs = builder.inline(vjp.backward, [one, *residuals])
    verify(builder.graph, "gradient")
    return optimize(builder.graph)


def run(graph: Graph, *inputs: Any) -> Any:
    arrays = [np.asarray(x, v.dtype.np) for x, v in zip(inputs, graph.inputs)]
    return interpret(graph, arrays)[0]


def differences(graph: Graph, *inputs: Any, step: float = 1e-5) -> Any:
    """The derivative with respect to the first input by central differences."""
    base = np.asarray(inputs[0], np.float64)
    result = np.zeros_like(base)
    for index in np.ndindex(base.shape):
        high, low = base.copy(), base.copy()
        high[index] += step
        low[index] -= step
        result[index] = (run(graph, high, *inputs[1:]) - run(graph, low, *inputs[1:])) / (2 * step)
    return result


def number(value: float) -> Any:
    return ctx.builder.constant(np.float64(value))


def integer(value: int) -> Any:
    return ctx.builder.constant(np.int32(value))


def while_loop(test: Callable[..., Any], body: Callable[..., Any], init: Sequence[Any]) -> Any:
    types = [t.type for t in init]
    return emit_while(
        trace_region("test", lambda *c: [test(*c)], types), trace_region("body", lambda *c: list(body(*c)), types), init
    )


def cond(pred: Any, then: Callable[[], Any], other: Callable[[], Any]) -> Any:
    return emit_cond(pred, trace_region("then", lambda: [then()]), trace_region("else", lambda: [other()]))[0]
