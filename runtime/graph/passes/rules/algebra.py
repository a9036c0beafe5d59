"""Algebraic simplification.

    %2 = multiply(%x, 1.0)                     %4 = subtract(%x, %y)
    %3 = negative(%y)                  →       return %4
    %4 = add(%2, %3)
    return %4

The rules give the same bits for every operand, infinities, NaN and the sign of zero included: `x + 0.0` stays, because
it turns -0.0 into 0.0, and `x * 0.0` stays, because it may be NaN. With the option `fast_math` those and some more
apply (see `FAST`), as if floating-point numbers were real numbers.
"""

from __future__ import annotations

import numpy as np

from runtime.graph.ir import Node, Value
from runtime.graph.passes.rules.rewriting import Rewrite, Rule, is_floating, made_by, never_widens


def _add(rewrite: Rewrite, node: Node) -> Value | None:
    x, y = node.inputs
    for a, b in ((x, y), (y, x)):
        zero = rewrite.constant(b)
        if zero is not None and zero == 0 and (not is_floating(node) or np.signbit(np.real(zero))):
            return a
    if (negated := made_by(y, "negative")) is not None:
        return rewrite.emit("subtract", [x, negated.inputs[0]])
    if (negated := made_by(x, "negative")) is not None:
        return rewrite.emit("subtract", [y, negated.inputs[0]])
    return None


def _subtract(rewrite: Rewrite, node: Node) -> Value | None:
    x, y = node.inputs
    zero = rewrite.constant(y)
    if zero is not None and zero == 0 and not (is_floating(node) and np.signbit(np.real(zero))):
        return x
    if (negated := made_by(y, "negative")) is not None:
        return rewrite.emit("add", [x, negated.inputs[0]])
    if node.outputs[0].dtype.is_integer and (total := made_by(x, "add")) is not None and y in total.inputs:
        # Integers wrap: what was added comes off again.
        rest = total.inputs[1] if total.inputs[0] is y else total.inputs[0]
        return rest if rest.type == node.outputs[0].type else None
    return None


def _multiply(rewrite: Rewrite, node: Node) -> Value | None:
    x, y = node.inputs
    for a, b in ((x, y), (y, x)):
        if rewrite.constant(b) == 1:
            return a
    if node.outputs[0].dtype.is_complex:
        return None  # whose products are sums: the sign of a zero would change
    for a, b in ((x, y), (y, x)):
        # Last, it is often part of a sum, and the product is often there without it, as in exp(-x * x).
        negated = made_by(a, "negative") if rewrite.is_used_once(a) else None
        if negated is not None and negated.inputs[0].type == node.outputs[0].type:
            return rewrite.emit("negative", [rewrite.emit("multiply", [negated.inputs[0], b])])
    return None


def _divide(rewrite: Rewrite, node: Node) -> Value | None:
    by_one = is_floating(node) and rewrite.constant(node.inputs[1]) == 1
    return node.inputs[0] if by_one else None


def _pow(rewrite: Rewrite, node: Node) -> Value | None:
    return node.inputs[0] if rewrite.constant(node.inputs[1]) == 1 else None


def _inverse_of_itself(rewrite: Rewrite, node: Node) -> Value | None:
    inner = made_by(node.inputs[0], node.op.name)
    return inner.inputs[0] if inner is not None else None


def _of_equals(rewrite: Rewrite, node: Node) -> Value | None:
    return node.inputs[0] if node.inputs[0] is node.inputs[1] else None


def _select(rewrite: Rewrite, node: Node) -> Value | None:
    test, x, y = node.inputs
    constant = rewrite.constant(test)
    if x is not y and constant is None:
        return None
    chosen, other = (x, y) if x is y or constant else (y, x)
    return chosen if never_widens(test, chosen) and (x is y or never_widens(other, chosen)) else None


def _reduction(rewrite: Rewrite, node: Node) -> Value | None:
    return node.inputs[0] if node.attrs.get("axis") == () and len(node.inputs) == 1 else None


def _identity(rewrite: Rewrite, node: Node) -> Value | None:
    return node.inputs[-1]


RULES: dict[str, Rule] = {
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "divide": _divide,
    "pow": _pow,
    "negative": _inverse_of_itself,
    "logical_not": _inverse_of_itself,
    "conj": _inverse_of_itself,
    "maximum": _of_equals,
    "minimum": _of_equals,
    "logical_and": _of_equals,
    "logical_or": _of_equals,
    "select": _select,
    "identity": _identity,
    "unrecorded": _identity,
    "from_replicas": _identity,
    **dict.fromkeys(("reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod"), _reduction),
}


# --- as if numbers were real ------------------------------------------------------------------------------------------


def _fast_add(rewrite: Rewrite, node: Node) -> Value | None:
    for a, b in (node.inputs, node.inputs[::-1]):
        if rewrite.constant(b) == 0:
            return a
    return _add(rewrite, node) or _gathered(rewrite, node)


def _fast_multiply(rewrite: Rewrite, node: Node) -> Value | None:
    for b in node.inputs:
        if rewrite.constant(b) == 0 and b.type == node.outputs[0].type:
            return b
    return _multiply(rewrite, node) or _gathered(rewrite, node)


def _gathered(rewrite: Rewrite, node: Node) -> Value | None:
    """(x · 2) · 3 → x · 6, and so for sums."""
    name = node.op.name
    for a, b in (node.inputs, node.inputs[::-1]):
        outer, inner = rewrite.constant(b), made_by(a, name)
        if outer is None or inner is None or b.type.rank != 0:  # type: ignore[union-attr]
            continue
        for c, d in (inner.inputs, inner.inputs[::-1]):
            number = rewrite.constant(d)
            if number is not None and d.type == b.type:
                both = number * outer if name == "multiply" else number + outer
                return rewrite.emit(name, [c, rewrite.number(b, both)])
    return None


def _undone_by(name: str) -> Rule:
    def rule(rewrite: Rewrite, node: Node) -> Value | None:
        inner = made_by(node.inputs[0], name)
        return inner.inputs[0] if inner is not None else None

    return rule


FAST: dict[str, Rule] = {
    "add": _fast_add,
    "multiply": _fast_multiply,
    "log": _undone_by("exp"),
    "exp": _undone_by("log"),
}
