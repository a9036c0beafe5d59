"""Lowerings of reductions. They become part of nests, which do the work (`loops/reduction_nest.py`)."""

from __future__ import annotations

from runtime.codegen.kernel import scalars
from runtime.codegen.kernel.values import Array, Virtual, product
from runtime.codegen.loops.loop_nest import fail_unless_shapes_fit
from runtime.codegen.loops.reductions import REDUCTIONS, accumulator, result
from runtime.codegen.lower.state import Lowering, emitter
from runtime.graph.ir import Node
from runtime.kernel_ir import ir


@emitter(*(name for name in REDUCTIONS if name.startswith("reduce_")))
def _reduce(low: Lowering, node: Node) -> None:
    source = node.inputs[0]
    rank = source.type.rank  # type: ignore[union-attr]
    if not rank:
        # There is nothing to loop over; only the mean's conversions remain.
        reduction = REDUCTIONS[node.op.name]
        wide = accumulator(reduction, source.dtype)
        total = scalars.convert(low.scalar(source), source.dtype, wide)
        low.define_scalar(node, result(reduction, total, ir.ONE, node.outputs[0].dtype))
        return
    axes = node.attrs["axis"]
    axes = tuple(range(rank)) if axes is None else tuple(axes)
    if not axes:
        low.define(node.outputs[0], low.ref(source))
        return
    dims = low.dims(source)
    keep = node.attrs["keepdims"]
    out = tuple(ir.ONE if axis in axes else d for axis, d in enumerate(dims) if keep or axis not in axes)
    low.fusion.add_reduction(node, axes, out)


@emitter("sum_to_shape_of")
def _sum_to_shape_of(low: Lowering, node: Node) -> None:
    """Sums over the dimensions that broadcasting to the first operand repeats; some are known only at run time."""
    source, like = node.inputs
    old, new = low.dims(source), low.dims(like)
    lead = len(old) - len(new)
    axes = (*range(lead), *(lead + i for i, d in enumerate(new) if d == ir.ONE and old[lead + i] != ir.ONE))
    if all(d in (ir.ONE, old[lead + i]) for i, d in enumerate(new)):
        if axes:
            low.fusion.add_reduction(node, axes, new)
        else:
            low.define(node.outputs[0], low.ref(source))
        return
    for i, wanted in enumerate(new):
        got = old[lead + i]
        if wanted not in (ir.ONE, got):
            wrong = ir.both(wanted.compare("!=", got), wanted.compare("!=", 1))
            fail_unless_shapes_fit(low, wrong, node, (old, new))
    dtype = source.dtype
    wide = accumulator(REDUCTIONS[node.op.name], dtype)
    ref = low.ref(source)
    total = low.solid(Virtual(wide, new, lambda indices: scalars.literal(0, wide), uniform=True), node.outputs[0].name)
    low.copy_into(total, ref, add=True, dims=old)
    if wide is not dtype:
        buffer, count = total.buffer.variable, low.atom(product(new))
        narrow = Virtual(
            dtype, (count,), lambda indices: scalars.convert(ir.load(buffer, indices[0]), wide, dtype)
        )  # fmt: skip
        total = Array(low.solid(narrow, node.outputs[0].name).buffer, new)
    low.define(node.outputs[0], total)
