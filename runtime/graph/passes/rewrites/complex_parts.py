"""Complex numbers as pairs of real ones, in a copy of a graph that is about to become native code.

    %z = while(0, %c) ...: complex64[]            %x, %y = while(0, %a, %b) ...: float32[], float32[]
      %2 = multiply(%z, %z)                →        %2 = subtract(multiply(%x, %x), multiply(%y, %y))
      %3 = add(%2, %c)                              %3 = add(multiply(%x, %y), multiply(%y, %x))

Not in the pipeline: the interpreter is faster with NumPy's complex numbers. What has no rule here stays as it is,
between `complex`, `real` and `imag`; a loop in which something has none stays as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.dataclass import dataclass
from runtime.dtypes import DType
from runtime.graph.ir import Graph, Node, Value
from runtime.graph.node_helpers import add_op, constant_node, known_array
from runtime.types import StackType, TensorType, Type

_MOST_FACTORS = 8
_WORTH = 4  # elementwise operations outside of loops that pay for taking numbers apart and together
_REAL = {"complex64": dtypes.float32, "complex128": dtypes.float64}


class _NoRule(Exception):
    """A node that has no form on parts."""


@dataclass(frozen=True)
class _Pair:
    """The parts of a complex value."""

    real: Value
    imag: Value


_Part = Value | _Pair


def is_complex(type_: Type) -> bool:
    element = type_.element if isinstance(type_, StackType) else type_
    return isinstance(element, TensorType) and element.dtype.is_complex


def in_parts(graph: Graph, always: bool = False) -> Graph | None:
    """The graph on parts: of a complex input or output both parts, one after the other. None where it has no loop over
    complex numbers that has a form on parts, and isn't a longer computation that has one as a whole.

    always: for a target without complex numbers, whether it pays or not.
    """
    if not any(_has_complex(node) for node in graph.nodes):
        return None
    if any(isinstance(v.type, StackType) and is_complex(v.type) for v in (*graph.inputs, *graph.outputs)):
        return None  # what one function keeps for the gradient that another computes
    return _Copy().whole(graph, always)


def _values(graph: Graph) -> list[Value]:
    return [*graph.inputs, *(v for node in graph.walk() for v in node.outputs)]


class _Copy:
    """Makes the copy of a graph, and of the regions in it."""

    def __init__(self) -> None:
        self.graph = Graph("")
        self.span: Any = None
        self.found: dict[Value, _Part] = {}

    # --- graphs ------------------------------------------------------------------------------------------------------

    def whole(self, graph: Graph, always: bool) -> Graph | None:
        self.graph = Graph(graph.name)
        self._inputs(graph.inputs)
        loops, others, refused = 0, 0, 0
        for node in graph.nodes:
            count = len(self.graph.nodes)
            try:
                self._node(node)
                if _has_complex(node):
                    loops += node.op.name == "while"
                    others += node.op.is_elementwise
            except _NoRule:
                del self.graph.nodes[count:]
                self._as_it_is(node)
                refused += 1
        self.graph.outputs = self._flat(graph.outputs)
        return self.graph if always or loops or (others >= _WORTH and not refused) else None

    def _region(self, region: Graph) -> Graph:
        inner = _Copy()
        inner.graph = Graph(region.name)
        inner._inputs(region.inputs)
        for node in region.nodes:
            inner._node(node)
        inner.graph.outputs = inner._flat(region.outputs)
        return inner.graph

    def _inputs(self, values: Sequence[Value]) -> None:
        for value in values:
            if is_complex(value.type):
                parts = [self.graph.add_input(_real_type(value.type), value.name) for _ in range(2)]
                self.found[value] = _Pair(*parts)
            else:
                self.found[value] = self.graph.add_input(value.type, value.name)

    def _flat(self, values: Sequence[Value]) -> list[Value]:
        flat: list[Value] = []
        for value in values:
            part = self.found[value]
            flat += [part.real, part.imag] if isinstance(part, _Pair) else [part]
        return flat

    # --- nodes -------------------------------------------------------------------------------------------------------

    def emit(self, op: str, *inputs: Value, **attrs: Any) -> Value:
        return add_op(self.graph, op, inputs, attrs, self.span)

    def number(self, like: Value, number: float) -> Value:
        node = constant_node(self.graph, np.asarray(number, like.dtype.np), self.span)
        self.graph.nodes.append(node)
        return node.outputs[0]

    def _node(self, node: Node) -> None:
        self.span = node.span
        operands = [self.found[v] for v in node.inputs]
        if not _has_complex(node):
            self._copied(node, self._flat(node.inputs))
        elif node.regions:
            self._with_regions(node)
        elif node.op.name in _RULES:
            (output,) = node.outputs
            self.found[output] = _RULES[node.op.name](self, node, operands)
        elif node.op.by_parts or node.op.is_move:
            self._by_parts(node, operands)
        elif not node.op.reads_elements(len(node.inputs)):
            self._copied(node, [_first(part) for part in operands])
        else:
            raise _NoRule

    def _copied(self, node: Node, inputs: Sequence[Value]) -> list[Value]:
        """A copy of the node on other inputs; binds its outputs to the copy's."""
        types = [v.type for v in node.outputs]
        copy = self.graph.add_node(node.op, inputs, dict(node.attrs), types, node.regions, node.span)
        copy.name = node.name
        for old, new in zip(node.outputs, copy.outputs):
            new.name = old.name
            self.found[old] = new
        return copy.outputs

    def _as_it_is(self, node: Node) -> None:
        """A copy on whole complex numbers."""
        self.span = node.span
        inputs = [self._joined(self.found[v]) for v in node.inputs]
        for old, new in zip(node.outputs, self._copied(node, inputs)):
            if is_complex(old.type) and not isinstance(old.type, StackType):
                self.found[old] = _Pair(self.emit("real", new), self.emit("imag", new))

    def _joined(self, part: _Part) -> Value:
        return self.emit("complex", part.real, part.imag) if isinstance(part, _Pair) else part

    def _with_regions(self, node: Node) -> None:
        inputs = self._flat(node.inputs)
        attrs = dict(node.attrs)
        if "carries" in attrs:
            attrs["carries"] += sum(is_complex(v.type) for v in node.inputs[: attrs["carries"]])
        types: list[Type] = []
        for value in node.outputs:
            types += [_real_type(value.type)] * 2 if is_complex(value.type) else [value.type]
        if "types" in attrs:
            attrs["types"] = tuple(types)
        regions = [self._region(region) for region in node.regions]
        made = iter(self.graph.add_node(node.op, inputs, attrs, types, regions, node.span).outputs)
        for value in node.outputs:
            first = next(made)
            self.found[value] = _Pair(first, next(made)) if is_complex(value.type) else first

    def _by_parts(self, node: Node, operands: Sequence[_Part]) -> None:
        attrs = {name: _real_attribute(value) for name, value in node.attrs.items()}
        both: list[Sequence[Value]] = []
        for pick in (_first, _second):
            inputs = [pick(part) for part in operands]
            try:
                types = node.op.infer([v.type for v in inputs], attrs)
            except (TypeError, ValueError) as error:
                raise _NoRule from error
            both.append(self.graph.add_node(node.op, inputs, attrs, types, (), node.span).outputs)
        for output, real, imag in zip(node.outputs, *both):
            self.found[output] = _Pair(real, imag) if is_complex(output.type) else real


def _has_complex(node: Node) -> bool:
    values = [*node.inputs, *node.outputs, *(v for region in node.regions for v in _values(region))]
    return any(is_complex(v.type) for v in values)


def _first(part: _Part) -> Value:
    return part.real if isinstance(part, _Pair) else part


def _second(part: _Part) -> Value:
    return part.imag if isinstance(part, _Pair) else part


def _real_type(type_: Type) -> Type:
    if isinstance(type_, StackType):
        element = _real_type(type_.element)
        assert isinstance(element, TensorType)
        return StackType(element)
    assert isinstance(type_, TensorType)
    return TensorType(_REAL[type_.dtype.name], type_.shape)


def _real_attribute(value: Any) -> Any:
    if isinstance(value, DType):
        return _REAL.get(value.name, value)
    return _real_type(value) if isinstance(value, (TensorType, StackType)) and is_complex(value) else value


# --- rules -----------------------------------------------------------------------------------------------------------


def _pair(part: _Part) -> tuple[Value, Value]:
    if not isinstance(part, _Pair):
        raise _NoRule
    return part.real, part.imag


def _constant(copy: _Copy, node: Node, operands: Sequence[_Part]) -> _Part:
    array = known_array(node.outputs[0])
    assert array is not None
    nodes = [constant_node(copy.graph, np.array(part), node.span) for part in (array.real, array.imag)]
    copy.graph.nodes += nodes
    return _Pair(*(each.outputs[0] for each in nodes))


def _multiply(copy: _Copy, node: Node, operands: Sequence[_Part]) -> _Part:
    (a, b), (c, d) = _pair(operands[0]), _pair(operands[-1])
    return _product(copy, lambda x, y: copy.emit("multiply", x, y), a, b, c, d)


def _matmul(copy: _Copy, node: Node, operands: Sequence[_Part]) -> _Part:
    (a, b), (c, d) = _pair(operands[0]), _pair(operands[1])
    return _product(copy, lambda x, y: copy.emit("matmul", x, y, **node.attrs), a, b, c, d)


def _product(copy: _Copy, times: Callable[[Value, Value], Value], a: Value, b: Value, c: Value, d: Value) -> _Pair:
    return _Pair(
        copy.emit("subtract", times(a, c), times(b, d)),
        copy.emit("add", times(a, d), times(b, c)),
    )


def _divide(copy: _Copy, node: Node, operands: Sequence[_Part]) -> _Part:
    """R. Smith's algorithm (Communications of the ACM, 1962), as NumPy has it: the larger part of the divisor divides
    the smaller one, so that nothing overflows."""
    (a, b), (c, d) = _pair(operands[0]), _pair(operands[1])
    emit = copy.emit
    larger = emit("greater_equal", emit("abs", c), emit("abs", d))
    first, second = emit("select", larger, c, d), emit("select", larger, d, c)
    none = emit("logical_and", emit("equal", c, copy.number(c, 0)), emit("equal", d, copy.number(d, 0)))
    ratio = emit("select", none, copy.number(c, 0), emit("divide", second, first))
    below = emit("select", none, emit("abs", c), emit("add", first, emit("multiply", second, ratio)))
    x, y = emit("multiply", a, ratio), emit("multiply", b, ratio)
    scale = emit("divide", copy.number(c, 1), below)
    real = emit("select", none, a, emit("select", larger, emit("add", a, y), emit("add", x, b)))
    imag = emit("select", none, b, emit("select", larger, emit("subtract", b, x), emit("subtract", y, a)))
    return _Pair(emit("multiply", real, scale), emit("multiply", imag, scale))


def _pow(copy: _Copy, node: Node, operands: Sequence[_Part]) -> _Part:
    """Small whole powers as products."""
    exponent = known_array(node.inputs[1])
    if exponent is None or exponent.ndim or exponent not in range(1, _MOST_FACTORS + 1):
        raise _NoRule
    found: _Part = operands[0]
    for bit in f"{int(exponent.real):b}"[1:]:
        found = _multiply(copy, node, [found])
        if bit == "1":
            found = _multiply(copy, node, [found, operands[0]])
    return found


def _reciprocal(copy: _Copy, node: Node, operands: Sequence[_Part]) -> _Part:
    real, _ = _pair(operands[0])
    one = _Pair(copy.emit("ones_like", real), copy.emit("zeros_like", real))
    return _divide(copy, node, [one, operands[0]])


def _abs(copy: _Copy, node: Node, operands: Sequence[_Part]) -> _Part:
    """sqrt(x² + y²): in float64 for float32, which has room for the squares; else of the numbers over the larger."""
    x, y = _pair(operands[0])
    emit = copy.emit
    if x.dtype.name == "float32":
        wide = [emit("cast", part, dtype=dtypes.float64) for part in (x, y)]
        total = emit("add", *(emit("square", part) for part in wide))
        return emit("cast", emit("sqrt", total), dtype=dtypes.float32)
    x, y = emit("abs", x), emit("abs", y)
    large, small = emit("maximum", x, y), emit("minimum", x, y)
    ratio = emit("select", emit("greater", large, copy.number(x, 0)), emit("divide", small, large), large)
    size = emit("multiply", large, emit("sqrt", emit("add", emit("square", ratio), copy.number(x, 1))))
    infinity = copy.number(x, np.inf)
    infinite = emit("logical_or", emit("equal", x, infinity), emit("equal", y, infinity))
    return emit("select", infinite, infinity, size)


def _exp(copy: _Copy, node: Node, operands: Sequence[_Part]) -> _Part:
    x, y = _pair(operands[0])
    size = copy.emit("exp", x)
    return _Pair(*(copy.emit("multiply", size, copy.emit(name, y)) for name in ("cos", "sin")))


def _complex(copy: _Copy, node: Node, operands: Sequence[_Part]) -> _Part:
    x, y = (_first(part) for part in operands)
    if x.shape != y.shape or x.shape is None or None in x.shape:
        raise _NoRule  # one may have to be broadcast
    return _Pair(x, y)


def _cast(copy: _Copy, node: Node, operands: Sequence[_Part]) -> _Part:
    (part,) = operands
    wanted: DType = node.attrs["dtype"]
    if not wanted.is_complex:
        return copy.emit("cast", _first(part), dtype=wanted)
    kind = _REAL[wanted.name]
    if isinstance(part, _Pair):
        return _Pair(*(copy.emit("cast", each, dtype=kind) for each in (part.real, part.imag)))
    real = copy.emit("cast", part, dtype=kind)
    return _Pair(real, copy.emit("zeros_like", real))


def _compared(comparison: str, together: str) -> Callable[[_Copy, Node, Sequence[_Part]], _Part]:
    def rule(copy: _Copy, node: Node, operands: Sequence[_Part]) -> _Part:
        (a, b), (c, d) = _pair(operands[0]), _pair(operands[1])
        return copy.emit(together, copy.emit(comparison, a, c), copy.emit(comparison, b, d))

    return rule


_RULES: dict[str, Callable[[_Copy, Node, Sequence[_Part]], _Part]] = {
    "constant": _constant,
    "multiply": _multiply,
    "square": _multiply,
    "matmul": _matmul,
    "pow": _pow,
    "divide": _divide,
    "reciprocal": _reciprocal,
    "complex_abs": _abs,
    "exp": _exp,
    "cast": _cast,
    "equal": _compared("equal", "logical_and"),
    "not_equal": _compared("not_equal", "logical_or"),
    "complex": _complex,
    "real": lambda copy, node, operands: _pair(operands[0])[0],
    "imag": lambda copy, node, operands: _pair(operands[0])[1],
    "conj": lambda copy, node, operands: _Pair(_pair(operands[0])[0], copy.emit("negative", _pair(operands[0])[1])),
    "ones_like": lambda copy, node, operands: _Pair(
        *(copy.emit(name, _pair(operands[0])[0]) for name in ("ones_like", "zeros_like"))
    ),
}
