"""The lowering of non-maximum suppression.

%order, %kept, %counts = suppress_boxes(%boxes[a, n, 4], %scores[a, c, n], %limit, %most, %least, %sigma)
→   for i in range(a * c):
        counts[i] = lib.suppress_boxes(boxes, i // c * n * 4, scores, i * n, n, limit, most, least, sigma, False,
                                       left, order, kept)
"""

from __future__ import annotations

from runtime.codegen.kernel.values import Array, product
from runtime.codegen.lower.state import Lowering, emitter
from runtime.graph.ir import Node
from runtime.kernel_ir import ir
from runtime.kernel_ir.types import INT32, INT64


@emitter("suppress_boxes")
def _suppress_boxes(low: Lowering, node: Node) -> None:
    boxes, scores = low.array(node.inputs[0]), low.array(node.inputs[1])
    limit, *thresholds = (low.scalar_name(value) for value in node.inputs[2:])
    images, classes, count = (low.atom(size) for size in scores.dims)
    overlaps = node.attrs["overlaps"]
    expected = (images, count, count if overlaps else ir.as_expr(4))
    wrong = [have.compare("!=", need) for have, need in zip(boxes.dims, expected) if have != need]
    if wrong:
        message = f"boxes and scores have different sizes [Op:{node.op.label}]"
        low.fail_when(ir.either(*wrong), "InvalidArgumentError", message, node, (), node.op.label)
    row, size = low.index_name(0), product(scores.dims)
    left = low.new_buffer(size, scores.dtype, "left")
    order, kept = (low.new_buffer(size, value.dtype, value.name) for value in node.outputs[:2])
    counts = low.new_buffer(product(scores.dims[:2]), node.outputs[2].dtype, node.outputs[2].name)
    call = ir.call(
        "lib.suppress_boxes", boxes.buffer.variable, row // classes * (product(boxes.dims[1:])),
        scores.buffer.variable, row * count, count, ir.Convert(INT64, limit), *thresholds, ir.truth(overlaps),
        left.variable, order.variable, kept.variable,
    )  # fmt: skip
    rows = low.atom(product(scores.dims[:2]))
    low.nest(row, rows, [ir.store(counts.variable, row, ir.Convert(INT32, call))], low.is_large([node]), may_join=False)
    for output, buffer in zip(node.outputs, (order, kept, counts)):
        low.define(output, Array(buffer, scores.dims if buffer is not counts else scores.dims[:2]))
