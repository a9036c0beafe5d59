"""Lowerings of windows over space dimensions, for what `windows.py` has no operator for."""

from __future__ import annotations

import itertools
import math

import numpy as np

from runtime import dtypes
from runtime.graph.ir import Node
from runtime.onnx_export.emitter import Emitter, NoForm, Ref, lowering
from runtime.onnx_export.indexing import scattered
from runtime.ops.nn.patches import borders, places

# --- windows ---------------------------------------------------------------------------------------------------------


@lowering("patches")
def _patches(e: Emitter, node: Node) -> Ref:
    """Along one dimension after the other its windows are gathered; then their elements are brought together."""
    (x,) = e.inputs(node)
    sizes, strides, rates = (node.attrs[name] for name in ("sizes", "strides", "rates"))
    count = len(sizes)
    if None in (node.inputs[0].shape or (None,))[1:-1]:
        # An operator that ONNX has may need none of them.
        return e.unless_pruned(_unknown(node), x.dtype)
    space = [int(length or 0) for length in (node.inputs[0].shape or ())[1:-1]]
    pairs = borders(space, sizes, strides, rates, node.attrs["padding"])
    if any(map(any, pairs)):
        pads = [0, *[a for a, _ in pairs], 0, 0, *[b for _, b in pairs], 0]
        x = e.on_first("Pad", x, e.ints(*pads), value=node.attrs["fill"])
    wide = [length + a + b for length, (a, b) in zip(space, pairs)]
    for place, (length, size, stride, rate) in enumerate(zip(wide, sizes, strides, rates)):
        many = places(length, size, stride, rate, (0, 0)) or 0
        index = np.arange(many)[:, None] * stride + np.arange(size) * rate
        x = e.emit("Gather", x, e.constant(index.astype(np.int64)), axis=1 + 2 * place)
    order = [0, *range(1, 2 * count, 2), *range(2, 2 * count + 1, 2), 2 * count + 1]
    x = e.transpose(x, order)
    output = node.outputs[0].shape
    lead = e.emit("Shape", x, dtype=dtypes.int64, end=count + 1)
    return e.reshape(x, e.concat(lead, e.ints(math.prod(sizes)), e.dim(x, -1))) if output else x


def _unknown(node: Node) -> NoForm:
    return NoForm(
        node, "the sizes of the space dimensions aren't known",
        "Give them in the signature, as in ag.TensorSpec([None, 28, 28, 1])",
    )  # fmt: skip


@lowering("patches_grad")
def _patches_grad(e: Emitter, node: Node) -> Ref:
    """Each element of a window is added to its place among the target's, which are rows for the time."""
    dy, *holes = e.inputs(node)
    target = node.attrs["shape"]
    if None in target[1:-1]:
        raise _unknown(node)
    sizes, strides, rates = (node.attrs[name] for name in ("sizes", "strides", "rates"))
    space = [int(size) for size in target[1:-1]]
    pairs = borders(space, sizes, strides, rates, node.attrs["padding"])
    wide = [length + a + b for length, (a, b) in zip(space, pairs)]
    many = [places(n, k, s, r, (0, 0)) or 0 for n, k, s, r in zip(wide, sizes, strides, rates)]
    grid = np.arange(math.prod(wide)).reshape(wide)
    found = [
        grid[np.ix_(*[np.arange(m) * s + o * r for m, s, o, r in zip(many, strides, offset, rates)])]
        for offset in itertools.product(*map(range, sizes))
    ]
    rows = np.stack(found, axis=-1).reshape(-1, 1).astype(np.int64)
    full = e.filled(target, holes)
    batch, depth = e.slice(full, e.ints(0), e.ints(1), e.ints(0)), e.slice(full, e.ints(-1), e.ints(2**31), e.ints(0))
    values = e.transpose(e.reshape(dy, e.concat(batch, e.ints(len(rows)), depth)), (1, 0, 2))
    zeros = e.zeros(e.concat(e.ints(math.prod(wide)), batch, depth), dy.dtype)
    made = e.transpose(scattered(e, zeros, e.constant(rows), values, "add"), (1, 0, 2))
    made = e.reshape(made, e.concat(batch, e.ints(*wide), depth))
    axes = e.ints(*range(1, len(wide) + 1))
    return e.slice(made, e.ints(*[a for a, _ in pairs]), e.ints(*[a + n for n, (a, _) in zip(space, pairs)]), axes)
