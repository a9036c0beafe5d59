"""Jacobians: the reverse walk for every element of a target, as one staged loop.

The walk is traced once, with the cotangent as an unknown; a `while` over the elements runs it with one unit cotangent
after the other and writes each result into its row. So there is no Python per row, and inside a function the loop is
part of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.context import ctx
from runtime.graph.builder import Builder, emit_while, trace_region
from runtime.graph.ir import Graph
from runtime.ops.dispatch import apply, call
from runtime.ops.growable import ARRAY_WRITE
from runtime.types import TensorType

INDEX = TensorType(dtypes.int32, ())

# Gives the results of a graph for eager inputs, visible to tapes. Set by `runtime.engine.function`, which is above this
# room and knows how to compile.
RUN: list[Callable[[Graph, Sequence[Any]], list[Any]]] = []


def rows_of_pullback(
    pull_back: Callable[[Any], list[Any]], shape: tuple[int, ...], batch: int, dtype: Any
) -> list[Any]:
    """`pull_back` applied to each unit cotangent of a target of `shape`, stacked along a new first axis.

    The first `batch` axes (0 or 1) don't count: the unit cotangent has its one in every batch element at once.
    `pull_back` gives a list of tensors, or None for sources that the target doesn't depend on; so does this.
    """
    if ctx.builder is not None:
        return _loop(pull_back, shape, batch, dtype)
    builder = Builder("jacobian")
    with builder:
        found = _loop(pull_back, shape, batch, dtype)
        builder.graph.outputs = [builder.use(t) for t in found if t is not None]
    inputs = []
    graph_inputs = []
    for tensor, value in builder.eager_captures.values():
        inputs.append(tensor)
        graph_inputs.append(value)
    builder.graph.inputs = graph_inputs
    results = iter(RUN[0](builder.graph, inputs))
    return [None if t is None else next(results) for t in found]


def _loop(pull_back: Callable[[Any], list[Any]], shape: tuple[int, ...], batch: int, dtype: Any) -> list[Any]:
    inner = shape[batch:]
    count = int(np.prod(inner, dtype=np.int64))
    connected: list[bool] = []

    def row(index: Any) -> list[Any]:
        unit = call("reshape", _one_hot(index, count, dtype), shape=(*[1] * batch, *inner))
        parts = pull_back(call("broadcast_to", unit, shape=shape) if batch else unit)
        connected[:] = [p is not None for p in parts]
        return [p for p in parts if p is not None]

    types = [v for v in trace_region("row", row, [INDEX]).types if isinstance(v, TensorType)]
    size = ctx.builder.constant(np.int32(count))

    def body(index: Any, *buffers: Any) -> list[Any]:
        written = [apply(ARRAY_WRITE, (b, index, r, size), {"fixed": True}) for b, r in zip(buffers, row(index))]
        return [index + ctx.builder.constant(np.int32(1)), *written]

    start = [_zero_rows(count, t) for t in types]
    carries = [INDEX, *[t.type for t in start]]
    test = trace_region("test", lambda index, *_: [index < size], carries)
    results = iter(
        emit_while(test, trace_region("rows", body, carries), [ctx.builder.constant(np.int32(0)), *start])[1:]
    )
    return [next(results) if c else None for c in connected]


def _one_hot(index: Any, count: int, dtype: Any) -> Any:
    positions = ctx.builder.constant(np.arange(count, dtype=np.int32))
    return call("cast", call("equal", positions, index), dtype=dtype)


def _zero_rows(count: int, row: TensorType) -> Any:
    shape = row.shape
    if shape is None or None in shape:
        raise ValueError(f"a Jacobian needs sources of known shape, not {row}")
    zero = ctx.builder.constant(np.zeros((), row.dtype.np))
    return call("broadcast_to", zero, shape=(count, *shape))
