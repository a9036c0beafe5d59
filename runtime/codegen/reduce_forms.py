"""Printed forms of reductions; the work is in the nests that they join."""

from __future__ import annotations

from runtime.codegen import cpu
from runtime.codegen.lowering import Lowering, emitter
from runtime.codegen.reductions import REDUCTIONS, accumulator, result
from runtime.graph.ir import Node


@emitter(*REDUCTIONS)
def _reduce(low: Lowering, node: Node) -> None:
    source = node.inputs[0]
    rank = source.type.rank  # type: ignore[union-attr]
    if not rank:
        # Nothing to walk over; only the mean's conversions remain.
        reduction = REDUCTIONS[node.op.name]
        wide = accumulator(reduction, source.dtype)
        text = result(reduction, cpu.convert(low.scalar(source), source.dtype, wide), "1", node.outputs[0].dtype)
        low.define_scalar(node, text)
        return
    axes = node.attrs["axis"]
    axes = tuple(range(rank)) if axes is None else tuple(axes)
    if not axes:
        low.define(node.outputs[0], low.ref(source))
        return
    dims = low.dims(source)
    keep = node.attrs["keepdims"]
    out = tuple("1" if axis in axes else d for axis, d in enumerate(dims) if keep or axis not in axes)
    low.fusion.add_reduction(node, axes, out)


