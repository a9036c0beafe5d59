"""Algebraic simplification and strength reduction.

    %2 = multiply(%x, 1.0)                     %3 = divide(%x, 8.0)      →   %3 = multiply(%x, 0.125)
    %3 = negative(%y)                  →       %4 = subtract(%x, %y)
    %4 = add(%2, %3)                           return %4

The rules give the same bits for every operand, infinities, NaN and the sign of zero included: `x + 0.0` stays, because
it turns -0.0 into 0.0, and `x * 0.0` stays, because it may be NaN. With the option `fast_math` those and some more
apply (see `_FAST`), as if floating-point numbers were real numbers.

Moves of data are simplified too: a reshape of a reshape, a transpose of a transpose, moves that change nothing; a
transposed operand of a product becomes the product's attribute.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runtime.graph.ir import Graph, Node, Substitution, Value
from runtime.graph.making import add_op, constant_node, known_array
from runtime.graph.passes import options
from runtime.shapes import element_count
from runtime.types import TensorType


class _Rewrite:
    """What a rule may ask and do: look at constants, add nodes in place of the one that it looks at."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.span: Any = None

    def constant(self, value: Value) -> Any:
        """The number that all elements of a constant are, or None."""
        array = known_array(value)
        if array is None or array.dtype == object or not array.size:
            return None
        first = array.flat[0]
        return first if array.size == 1 or (array == first).all() else None

    def emit(self, op: str, inputs: list[Value], attrs: dict | None = None) -> Value:
        return add_op(self.graph, op, inputs, attrs or {}, self.span)

    def number(self, like: Value, value: Any) -> Value:
        node = constant_node(self.graph, np.asarray(value, like.dtype.np), self.span)
        self.graph.nodes.append(node)
        return node.outputs[0]


Rule = Callable[[_Rewrite, Node], "Value | None"]


def simplify_algebra(graph: Graph) -> None:
    """Applies the rules in place, in regions too."""
    mapping = Substitution()
    nodes, graph.nodes = graph.nodes, []
    rewrite = _Rewrite(graph)
    rules = {**_RULES, **_FAST} if options.get("fast_math") else _RULES
    for node in nodes:
        if mapping:
            node.inputs = [mapping.get(v, v) for v in node.inputs]
        for region in node.regions:
            simplify_algebra(region)
        rule = rules.get(node.op.name)
        if rule is not None and isinstance(node.outputs[0].type, TensorType):
            rewrite.span = node.span
            found = rule(rewrite, node)
            if found is not None and found.type == node.outputs[0].type:
                if found.name is None and found.node is not None:
                    found.name = node.outputs[0].name
                if graph.nodes and found.node is graph.nodes[-1] and found.node.name is None:
                    found.node.name = node.name
                mapping[node.outputs[0]] = found
                continue
        graph.nodes.append(node)
    graph.outputs = [mapping[v] for v in graph.outputs]
    graph.program = None


def _made_by(value: Value, op: str) -> Node | None:
    node = value.node
    return node if node is not None and node.op.name == op else None


def _floating(node: Node) -> bool:
    return not (node.outputs[0].dtype.is_integer or node.outputs[0].dtype.is_bool)


# --- arithmetic -------------------------------------------------------------------------------------------------------


def _add(rewrite: _Rewrite, node: Node) -> Value | None:
    x, y = node.inputs
    for a, b in ((x, y), (y, x)):
        zero = rewrite.constant(b)
        if zero is not None and zero == 0 and (not _floating(node) or np.signbit(np.real(zero))):
            return a
    if (negated := _made_by(y, "negative")) is not None:
        return rewrite.emit("subtract", [x, negated.inputs[0]])
    if (negated := _made_by(x, "negative")) is not None:
        return rewrite.emit("subtract", [y, negated.inputs[0]])
    return None


def _subtract(rewrite: _Rewrite, node: Node) -> Value | None:
    x, y = node.inputs
    zero = rewrite.constant(y)
    if zero is not None and zero == 0 and not (_floating(node) and np.signbit(np.real(zero))):
        return x
    if (negated := _made_by(y, "negative")) is not None:
        return rewrite.emit("add", [x, negated.inputs[0]])
    return None


def _multiply(rewrite: _Rewrite, node: Node) -> Value | None:
    x, y = node.inputs
    for a, b in ((x, y), (y, x)):
        if rewrite.constant(b) == 1:
            return a
    return None


def _divide(rewrite: _Rewrite, node: Node) -> Value | None:
    x, y = node.inputs
    divisor = rewrite.constant(y)
    if divisor is None or not _floating(node) or np.iscomplexobj(divisor):
        return None
    if divisor == 1:
        return x
    mantissa, exponent = np.frexp(np.float64(divisor))
    # The reciprocal of a power of two is exact, where it is a normal number.
    limits = np.finfo(node.outputs[0].dtype.np) if node.outputs[0].dtype.name in ("float32", "float64") else None
    if limits is not None and abs(mantissa) == 0.5 and limits.minexp + 1 < exponent < limits.maxexp:
        return rewrite.emit("multiply", [x, rewrite.number(y, 1 / np.float64(divisor))])
    return None


def _pow(rewrite: _Rewrite, node: Node) -> Value | None:
    x, y = node.inputs
    exponent = rewrite.constant(y)
    if exponent is not None and exponent == 1:
        return x
    if exponent is not None and exponent == 2 and x.dtype.name in ("float32", "float64"):
        return rewrite.emit("square", [x])
    return None


def _inverse_of_itself(rewrite: _Rewrite, node: Node) -> Value | None:
    inner = _made_by(node.inputs[0], node.op.name)
    return inner.inputs[0] if inner is not None else None


def _of_equals(rewrite: _Rewrite, node: Node) -> Value | None:
    return node.inputs[0] if node.inputs[0] is node.inputs[1] else None


def _select(rewrite: _Rewrite, node: Node) -> Value | None:
    test, x, y = node.inputs
    constant = rewrite.constant(test)
    if x is not y and constant is None:
        return None
    chosen, other = (x, y) if x is y or constant else (y, x)
    return chosen if _never_widens(test, chosen) and (x is y or _never_widens(other, chosen)) else None


def _never_widens(value: Value, target: Value) -> bool:
    """Whether broadcasting with `value` surely leaves `target` its shape."""
    shape, wanted = value.type.shape, target.type.shape  # type: ignore[union-attr]
    if shape is None or wanted is None or len(shape) > len(wanted):
        return bool(shape == ())
    return all(size == 1 or size == same is not None for size, same in zip(shape[::-1], wanted[::-1]))


# --- moves ------------------------------------------------------------------------------------------------------------


def _unchanged(rewrite: _Rewrite, node: Node) -> Value | None:
    """For ops that give their operand where the type says that nothing is to be done."""
    type_ = node.inputs[0].type
    known = isinstance(type_, TensorType) and element_count(type_.shape) is not None
    return node.inputs[0] if known and type_ == node.outputs[0].type else None


def _reduction(rewrite: _Rewrite, node: Node) -> Value | None:
    return node.inputs[0] if node.attrs.get("axis") == () and len(node.inputs) == 1 else None


def _identity(rewrite: _Rewrite, node: Node) -> Value | None:
    return node.inputs[0]


def _reshape(rewrite: _Rewrite, node: Node) -> Value | None:
    if (same := _unchanged(rewrite, node)) is not None:
        return same
    if node.attrs.get("shape") == (-1,) and node.inputs[0].type.rank == 1:  # type: ignore[union-attr]
        return node.inputs[0]
    for name in ("reshape", "expand_dims", "squeeze"):
        inner = _made_by(node.inputs[0], name)
        # Only a first operand with all elements, and a shape that doesn't depend on the operand's.
        if inner is not None and len(node.inputs) == 1 and _is_static(node.outputs[0]):
            return rewrite.emit("reshape", [inner.inputs[0]], node.attrs)
    return None


def _transpose(rewrite: _Rewrite, node: Node) -> Value | None:
    perm = node.attrs.get("perm")
    if perm is None or len(node.inputs) != 1:
        return None
    if perm == tuple(range(len(perm))):
        return node.inputs[0]
    inner = _made_by(node.inputs[0], "transpose")
    if inner is None or inner.attrs.get("perm") is None:
        return None
    composed = tuple(inner.attrs["perm"][axis] for axis in perm)
    if composed == tuple(range(len(composed))):
        return inner.inputs[0]
    return rewrite.emit("transpose", [inner.inputs[0]], {**node.attrs, "perm": composed})


def _matmul(rewrite: _Rewrite, node: Node) -> Value | None:
    """matmul(transpose(a), b) → matmul(a, b, transpose_a=True), for matrices."""
    inputs, attrs = list(node.inputs), dict(node.attrs)
    for index, key in enumerate(("transpose_a", "transpose_b")):
        inner = _made_by(inputs[index], "transpose")
        if inner is not None and inner.attrs.get("perm") == (1, 0) and key in attrs:
            inputs[index] = inner.inputs[0]
            attrs[key] = not attrs[key]
    return None if inputs == node.inputs else rewrite.emit("matmul", inputs, attrs)


def _is_static(value: Value) -> bool:
    return isinstance(value.type, TensorType) and element_count(value.type.shape) is not None


_RULES: dict[str, Rule] = {
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
    **dict.fromkeys(("reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod"), _reduction),
    "cast": _unchanged,
    "broadcast_to": _unchanged,
    "expand_dims": _unchanged,
    "sum_to_shape_of": _unchanged,
    "reshape": _reshape,
    "transpose": _transpose,
    "matmul": _matmul,
}


# --- as if numbers were real ------------------------------------------------------------------------------------------


def _fast_add(rewrite: _Rewrite, node: Node) -> Value | None:
    for a, b in (node.inputs, node.inputs[::-1]):
        if rewrite.constant(b) == 0:
            return a
    return _add(rewrite, node) or _gathered(rewrite, node)


def _fast_multiply(rewrite: _Rewrite, node: Node) -> Value | None:
    for b in node.inputs:
        if rewrite.constant(b) == 0 and b.type == node.outputs[0].type:
            return b
    return _multiply(rewrite, node) or _gathered(rewrite, node)


def _gathered(rewrite: _Rewrite, node: Node) -> Value | None:
    """(x · 2) · 3 → x · 6, and so for sums."""
    name = node.op.name
    for a, b in (node.inputs, node.inputs[::-1]):
        outer, inner = rewrite.constant(b), _made_by(a, name)
        if outer is None or inner is None or b.type.rank != 0:  # type: ignore[union-attr]
            continue
        for c, d in (inner.inputs, inner.inputs[::-1]):
            number = rewrite.constant(d)
            if number is not None and d.type == b.type:
                both = number * outer if name == "multiply" else number + outer
                return rewrite.emit(name, [c, rewrite.number(b, both)])
    return None


def _fast_divide(rewrite: _Rewrite, node: Node) -> Value | None:
    divisor = rewrite.constant(node.inputs[1])
    if divisor is not None and divisor != 0 and _floating(node):
        return rewrite.emit("multiply", [node.inputs[0], rewrite.number(node.inputs[1], 1 / divisor)])
    return _divide(rewrite, node)


def _fast_pow(rewrite: _Rewrite, node: Node) -> Value | None:
    exponent = rewrite.constant(node.inputs[1])
    if exponent is not None and exponent == 0.5:
        return rewrite.emit("sqrt", [node.inputs[0]])
    if exponent is not None and exponent == -1 and _floating(node):
        return rewrite.emit("reciprocal", [node.inputs[0]])
    return _pow(rewrite, node)


def _undone_by(name: str) -> Rule:
    def rule(rewrite: _Rewrite, node: Node) -> Value | None:
        inner = _made_by(node.inputs[0], name)
        return inner.inputs[0] if inner is not None else None

    return rule


_FAST: dict[str, Rule] = {
    "add": _fast_add,
    "multiply": _fast_multiply,
    "divide": _fast_divide,
    "pow": _fast_pow,
    "log": _undone_by("exp"),
    "exp": _undone_by("log"),
}
