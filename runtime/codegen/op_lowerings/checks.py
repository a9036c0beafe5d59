"""Lowering of `check_numerics`: a check; the result is the operand."""

from __future__ import annotations

from runtime.codegen.kernel.values import Scalar
from runtime.codegen.lower.state import Lowering, emitter
from runtime.graph.ir import Node
from runtime.kernel_ir import ir
from runtime.ops.numerics import NONFINITE, words


@emitter("check_numerics")
def _check(low: Lowering, node: Node) -> None:
    (value,) = node.inputs
    # Pending nodes are lowered first, so that their errors come first.
    low.fusion.flush_all()
    if isinstance(low.ref(value), Scalar):
        name = low.scalar_name(value)
        found = low.assign(ir.call("lib.nonfinite_scalar", name), "found")
    else:
        found = low.assign(ir.call("lib.nonfinite", low.array(value).buffer.variable), "found")
    for kind in NONFINITE:
        message = words(node.attrs["message"], kind)
        low.fail_when(found.compare("==", kind), "InvalidArgumentError", message, node, (), "check_numerics")
    low.define(node.outputs[0], low.ref(value))
