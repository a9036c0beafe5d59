"""Strength reduction: an operation becomes a cheaper one with the same bits.

    %2 = divide(%x, 8.0)               %2 = multiply(%x, 0.125)
    %3 = pow(%y, 2.0)          →       %3 = square(%y)

The reciprocal of a power of two is exact, where it is a normal number. With `fast_math` every divisor has a reciprocal,
and some more powers are other functions. Counters of loops, products that become sums and shifts of integers are left
to LLVM, which knows what the machine has.
"""

from __future__ import annotations

import numpy as np

from runtime.graph.ir import Node, Value
from runtime.graph.passes.rules.rewriting import Rewrite, Rule, is_floating


def _divide(rewrite: Rewrite, node: Node) -> Value | None:
    x, y = node.inputs
    divisor = rewrite.constant(y)
    if divisor is None or not is_floating(node) or np.iscomplexobj(divisor):
        return None
    mantissa, exponent = np.frexp(np.float64(divisor))
    limits = np.finfo(node.outputs[0].dtype.np) if node.outputs[0].dtype.name in ("float32", "float64") else None
    if limits is not None and abs(mantissa) == 0.5 and limits.minexp + 1 < exponent < limits.maxexp:
        return rewrite.emit("multiply", [x, rewrite.number(y, 1 / np.float64(divisor))])
    return None


def _pow(rewrite: Rewrite, node: Node) -> Value | None:
    x, y = node.inputs
    if rewrite.constant(y) == 2 and x.dtype.is_floating:
        return rewrite.emit("square", [x])
    return None


RULES: dict[str, Rule] = {"divide": _divide, "pow": _pow}


# --- as if numbers were real ------------------------------------------------------------------------------------------


def _fast_divide(rewrite: Rewrite, node: Node) -> Value | None:
    divisor = rewrite.constant(node.inputs[1])
    if divisor is not None and divisor != 0 and is_floating(node):
        return rewrite.emit("multiply", [node.inputs[0], rewrite.number(node.inputs[1], 1 / divisor)])
    return None


def _fast_pow(rewrite: Rewrite, node: Node) -> Value | None:
    exponent = rewrite.constant(node.inputs[1])
    if exponent is not None and exponent == 0.5:
        return rewrite.emit("sqrt", [node.inputs[0]])
    if exponent is not None and exponent == -1 and is_floating(node):
        return rewrite.emit("reciprocal", [node.inputs[0]])
    return None


FAST: dict[str, Rule] = {"divide": _fast_divide, "pow": _fast_pow}
