"""Strength reduction: an operation becomes a cheaper one.

    %2 = divide(%x, 8.0)               %2 = multiply(%x, 0.125)
    %3 = pow(%y, 3.0)          →       %3 = square(%y)
                                       %4 = multiply(%3, %y)

The reciprocal of a power of two is exact, where it is a normal number: the bits stay the same. Whole powers up to 6
become products, from -3 on with a reciprocal first, and those to 0.5 and -0.5 roots. Products round five times at most,
which is 3.4 units in the last place, where `pow` is allowed 4; what is too large or too small, infinite, NaN or zero
comes out the same. With `fast_math` every divisor has a reciprocal, and a power to 0.5 is a root also of -0.0 and of
minus infinity. Counters of loops, products that become sums and shifts of integers are left to LLVM, which knows what
the machine has.
"""

from __future__ import annotations

import numpy as np

from runtime.graph.ir import Node, Value
from runtime.graph.passes.rules import Rewrite, Rule, is_floating, never_widens

# Powers that products take, and of what.
_LOWEST, _HIGHEST = -3, 6
_POWERS_OF = frozenset({"float32", "float64", "int8", "int16", "int32", "int64"})


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
    power = rewrite.constant(y)
    if power is None or not never_widens(y, x) or x.dtype.name not in _POWERS_OF:
        return None
    if x.dtype.is_integer:
        return _product(rewrite, x, int(power)) if 2 <= power <= _HIGHEST else None
    if abs(power) == 0.5:
        # Of -0.0 and of minus infinity the powers are those of 0.0 and infinity, the roots aren't.
        root = rewrite.emit("sqrt", [rewrite.emit("add", [x, rewrite.number(y, 0.0)])])
        infinity = rewrite.number(y, np.inf)
        lowest = rewrite.emit("equal", [x, rewrite.number(y, -np.inf)])
        root = rewrite.emit("select", [lowest, infinity, root])
        return root if power > 0 else rewrite.emit("reciprocal", [root])
    if not (2 <= power <= _HIGHEST or _LOWEST <= power <= -1) or power != int(power):
        return None
    # The reciprocal comes first: a power that is too large for a float would have 0 for one.
    return _product(rewrite, x if power > 0 else rewrite.emit("reciprocal", [x]), abs(int(power)))


def _product(rewrite: Rewrite, x: Value, power: int) -> Value:
    """x to a power of at least 1, by squares and products with x."""
    result = x
    for digit in f"{power:b}"[1:]:
        result = rewrite.emit("multiply", [result, result]) if x.dtype.is_integer else rewrite.emit("square", [result])
        if digit == "1":
            result = rewrite.emit("multiply", [result, x])
    return result


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
    return None


FAST: dict[str, Rule] = {"divide": _fast_divide, "pow": _fast_pow}
