"""Jacobians: the reverse walk for every element of a target, as one staged loop.

The walk is traced once, with the cotangent as an unknown; a `while` over the elements runs it for each unit cotangent
and writes the result into its row. So no Python runs per row, and inside a function the loop is part of the graph.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.context import ctx
from runtime.graph.builder import Builder, emit_while, join_types, trace_region
from runtime.graph.ir import Graph
from runtime.ops.arrays.broadcasting import broadcast_to
from runtime.ops.arrays.creation import range as range_
from runtime.ops.arrays.shape_ops import reshape
from runtime.ops.convert import convert_to_tensor
from runtime.ops.dispatch import apply, call
from runtime.ops.growable import ARRAY_WRITE
from runtime.ops.rules import dims
from runtime.types import TensorType

INDEX = TensorType(dtypes.int32, ())

# Gives the results of a graph for eager inputs, visible to tapes. Set by `runtime.engine.function`, which is above this
# room and knows how to compile.
RUN: list[Callable[[Graph, Sequence[Any]], list[Any]]] = []


def rows_of_pullback(
    pull_back: Callable[[Any], list[Any]], target: Any, sources: Sequence[Any], batch: int
) -> list[Any]:
    """`pull_back` applied to each unit cotangent of a target, stacked along a new first axis.

    The first `batch` axes (0 or 1) don't count: the unit cotangent has its one in every batch element at once.
    `pull_back` gives a tensor for each source, or None if the target doesn't depend on it; so does this.
    """
    if ctx.builder is not None:
        return _loop(pull_back, target, sources, batch)
    builder = Builder("jacobian")
    with builder:
        found = _loop(pull_back, target, sources, batch)
        builder.graph.outputs = [builder.use(t) for t in found if t is not None]
    inputs = []
    graph_inputs = []
    for tensor, value in builder.eager_captures.values():
        inputs.append(tensor)
        graph_inputs.append(value)
    builder.graph.inputs = graph_inputs
    results = iter(RUN[0](builder.graph, inputs))
    return [None if t is None else next(results) for t in found]


def _loop(pull_back: Callable[[Any], list[Any]], target: Any, sources: Sequence[Any], batch: int) -> list[Any]:
    shape = known_dims(target)
    inner = shape[batch:]
    size = _product(inner)
    static = all(isinstance(d, int) for d in inner)
    count = int(np.prod(inner, dtype=np.int64)) if static else size
    positions = range_(0, count, dtype=dtypes.int32)
    connected: list[bool] = []

    def row(index: Any) -> list[Any]:
        unit = reshape(call("cast", call("equal", positions, index), dtype=target.dtype), [*[1] * batch, *inner])
        parts = pull_back(broadcast_to(unit, shape) if batch else unit)
        connected[:] = [p is not None for p in parts]
        return [p for p in parts if p is not None]

    def body(index: Any, *buffers: Any) -> list[Any]:
        written = [apply(ARRAY_WRITE, (b, index, r, size), {"fixed": True}) for b, r in zip(buffers, row(index))]
        return [index + ctx.builder.constant(np.int32(1)), *written]

    types = trace_region("row", row, [INDEX]).types
    reached = [source for source, c in zip(sources, connected) if c]
    start = [ctx.builder.constant(np.int32(0)), *[_zero_rows(count, s, t) for s, t in zip(reached, types)]]
    carries = [t.type for t in start]
    while True:
        rows = trace_region("rows", body, carries)
        joined = [join_types(a, b) for a, b in zip(carries, rows.types)]
        if joined == carries:
            break
        # The shape in the reverse walk is less precise than that of the source.
        carries = joined
    test = trace_region("test", lambda index, *_: [index < size], carries)
    results = iter(emit_while(test, rows, start)[1:])
    return [next(results) if c else None for c in connected]


def known_dims(tensor: Any) -> list[Any]:
    """The dimensions of a tensor or variable: numbers, or int32 tensors where only the run knows them.

    Raises ValueError when its rank isn't known.
    """
    if tensor._shape is None:
        raise ValueError("Jacobians need tensors of known rank; set the shape with `set_shape` or `ensure_shape`.")
    return dims(convert_to_tensor(tensor) if None in tensor._shape else tensor)


def _product(sizes: Sequence[Any]) -> Any:
    known = ctx.builder.constant(np.int32(np.prod([d for d in sizes if isinstance(d, int)], dtype=np.int64)))
    return functools.reduce(lambda a, b: a * b, [d for d in sizes if not isinstance(d, int)], known)


def _zero_rows(count: Any, source: Any, row: Any) -> Any:
    zero = ctx.builder.constant(np.zeros((), row.dtype.np))
    return broadcast_to(zero, [count, *known_dims(source)])
