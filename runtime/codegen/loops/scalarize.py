"""Small tensors in loops as single numbers: a product of 2 x 2 matrices is eight multiplications, not a loop nest.

    while index < n:                                 while index < n:
        for i in range(2):                               state_0 = a * state + b * state_1
            for j in range(2):                →          state_1 = c * state + d * state_1
                a_1[i] += w[i * 2 + j] * state[j]        ...

In the regions of a `while`, an op on tensors of few elements whose shapes are static is lowered element by element. Ops
that only move elements run their NumPy kernel on arrays of expressions, so they generate no code. An operand in memory
is read once; a result that is needed in memory is written there (`Lowering.solid`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime.codegen import cost_model
from runtime.codegen.kernel import scalars
from runtime.codegen.kernel.names import joined
from runtime.codegen.kernel.values import Array, Broadcast, Scalar, Vector, Virtual
from runtime.codegen.loops.access import total
from runtime.codegen.loops.buffer_reuse import Updates
from runtime.codegen.loops.builder import KernelBuilder
from runtime.codegen.loops.reductions import REDUCTIONS, accumulator, result
from runtime.dtypes import DType
from runtime.graph.ir import Graph, Node, Value
from runtime.graph.node_helpers import known_array
from runtime.kernel_ir import ir
from runtime.ops.table import OPS
from runtime.shapes import element_count
from runtime.types import TensorType

_FILLED = {"zeros_like": 0, "ones_like": 1}
_REDUCED = frozenset(REDUCTIONS)


def is_small(value: Value) -> bool:
    """Whether a value is a tensor of rank 1 or more with a few elements, of a shape known while tracing."""
    count = _count(value)
    return count is not None and bool(value.type.rank) and 0 < count <= cost_model.SCALARIZED_ELEMENTS  # type: ignore[union-attr]


def _count(value: Value) -> int | None:
    return element_count(value.type.shape) if isinstance(value.type, TensorType) else None


class Scalarization:
    """Decides what is lowered element by element in the loops of one kernel."""

    def __init__(self, updates: Updates) -> None:
        self._updates = updates
        self._nodes: dict[Graph, frozenset[Node]] = {}
        self._users: dict[Graph, dict[Value, list[Node]]] = {}
        self._wants_elements: dict[Value, bool] = {}
        self._made: dict[Value, bool] = {}
        self.lowered: set[Node] = set()

    def nodes(self, graph: Graph) -> frozenset[Node]:
        """The nodes of a loop's region that are lowered element by element; none if the text would become too long."""
        if graph not in self._nodes:
            found = {node for node in graph.nodes if _is_supported(node)}
            _drop_mere_moves(graph, found)
            self._nodes[graph] = frozenset(found if sum(map(_cost, found)) <= cost_model.SCALARIZED_STATEMENTS else ())
        return self._nodes[graph]

    def keeps(self, node: Node, k: int, in_place: bool) -> bool:
        """Whether carry `k` of a `while` is kept in scalar variables, because the body works on its elements one by
        one."""
        body = node.regions[1]
        value, after = body.inputs[k], body.outputs[k]
        if in_place or not is_small(value) or not is_small(after):
            return False
        return self.wants_elements(body, value) and self._makes(body, after)

    def wants_elements(self, graph: Graph, value: Value) -> bool:
        """Whether a node of a loop's region, or of the regions in it, works on the elements of a small value."""
        known = self._wants_elements.get(value)
        if known is None:
            known = self._wants_elements[value] = any(
                self._works_on(graph, user, value) for user in self._users_in(graph, value)
            )
        return known

    def _works_on(self, graph: Graph, user: Node, value: Value) -> bool:
        if user in self.nodes(graph):
            return True
        skipped = 1 if user.op.name == "cond" else 0
        places = [p - skipped for p, v in enumerate(user.inputs) if v is value and p >= skipped]
        return any(self.wants_elements(region, region.inputs[p]) for region in user.regions for p in places)

    def _users_in(self, graph: Graph, value: Value) -> list[Node]:
        if graph not in self._users:
            users = self._users[graph] = {}
            for node in graph.nodes:
                for each in dict.fromkeys(node.inputs):
                    users.setdefault(each, []).append(node)
        return self._users[graph].get(value, [])

    def _makes(self, graph: Graph, value: Value) -> bool:
        known = self._made.get(value)
        if known is None:
            known = self._made[value] = self._is_made(graph, value)
        return known

    def _is_made(self, graph: Graph, value: Value) -> bool:
        node = value.node
        if node is None or node.op.name == "stack_pop" or node in self.nodes(graph):
            return True
        k = node.outputs.index(value)
        if node.op.name == "cond":
            return all(self._makes(region, region.outputs[k]) for region in node.regions)
        return node.op.name == "while" and self.keeps(node, k, k in self._updates.carries(node))


def _drop_mere_moves(graph: Graph, found: set[Node]) -> None:
    """Drops ops that only move elements, unless single elements of them are needed: as views they cost nothing. A
    rank-0 result counts as a single element, because a view of it would be stored and loaded. Integers don't: as views
    of shapes, more is known of them."""
    kept = set(graph.outputs)
    for node in reversed(graph.nodes):
        if node in found and node.op.is_move and not any(value in kept or _is_number(value) for value in node.outputs):
            found.remove(node)
        if node in found or node.regions:
            kept.update(node.inputs)


def _is_number(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.type.rank == 0 and not value.dtype.is_integer


def _is_supported(node: Node) -> bool:
    values = (*node.inputs, *node.outputs)
    if node.regions or (not any(map(is_small, node.outputs)) and not any(map(is_small, node.inputs))):
        return False
    if any(_count(v) is None or not 0 < _count(v) <= cost_model.SCALARIZED_ELEMENTS for v in values):  # type: ignore[operator]
        return False
    op, attrs = node.op, node.attrs
    if "?" in repr(attrs.get("spec")) or None in (attrs.get("shape") or ()):
        return False
    if op.name == "matmul":
        return all(v.type.rank == 2 for v in node.inputs)  # type: ignore[union-attr]
    if op.is_elementwise:
        return not op.checks_numbers(node.outputs[0].dtype)
    return op.is_move or op.name in _FILLED or op.name in _REDUCED or op.name == "slice_add"


def _cost(node: Node) -> int:
    if node.op.is_move or node.op.name in _FILLED:
        return 0
    if node.op.name == "matmul":
        rows, columns = node.inputs[0].shape[-2:]
        return (_count(node.outputs[0]) or 1) * (rows if node.attrs["transpose_a"] else columns)
    return max(_count(v) or 1 for v in (*node.inputs, *node.outputs))


# --- lowering --------------------------------------------------------------------------------------------------------


def emit(low: KernelBuilder, node: Node) -> None:
    """Lowers one of `Scalarization.nodes`."""
    low.scalarization.lowered.add(node)
    name, attrs = node.op.name, node.attrs
    outputs = node.outputs
    dtype = outputs[0].dtype
    if name in _FILLED:
        define(low, outputs[0], np.full(outputs[0].shape, scalars.literal(_FILLED[name], dtype), object))
        return
    arrays = [
        np.empty(v.shape, object) if index in node.op.shape_only or (name == "sum_to_shape_of" and index == 1)
        else items(low, v)
        for index, v in enumerate(node.inputs)
    ]  # fmt: skip
    if node.op.is_move:
        moved = node.op.kernel(*arrays, **attrs)
        for output, each in zip(outputs, moved if isinstance(moved, (list, tuple)) else [moved]):
            define(low, output, np.asarray(each, object))
    elif name == "matmul":
        define(low, outputs[0], _matmul(low, dtype, arrays[0], arrays[1], **attrs))
    elif name == "slice_add":
        define(low, outputs[0], _slice_add(low, dtype, *arrays, **attrs))
    elif name in _REDUCED:
        define(low, outputs[0], _reduced(low, node, arrays[0]))
    else:
        made = np.empty(outputs[0].shape, object)
        for place, operands in zip(np.ndindex(made.shape), zip(*[a.flat for a in np.broadcast_arrays(*arrays)])):
            made[place] = _named(low, low.expression(node, operands, alone=True))
        define(low, outputs[0], made)


def define(low: KernelBuilder, value: Value, elements: Any) -> None:
    """Binds a value to its elements; a NumPy kernel's padding becomes 0 of the value's dtype."""
    zero = scalars.literal(0, value.dtype)
    flat = [_element(item, zero) for item in np.ravel(elements)]
    low.define(value, vector(low, value, flat) if value.shape else Scalar(flat[0], value.dtype))


def vector(low: KernelBuilder, value: Value, elements: Any) -> Vector:
    """The ref of a small value with these elements."""
    items = elements.ravel() if isinstance(elements, np.ndarray) else elements
    return Vector(value.dtype, tuple(items), tuple(low.static_dim(d) for d in value.shape))


def _element(item: Any, zero: ir.Expr) -> ir.Expr:
    if isinstance(item, np.ndarray):  # a number that was assigned to an element
        item = item[()]
    if isinstance(item, ir.Operators):
        return item  # type: ignore[return-value]
    assert item == 0
    return zero


def items(low: KernelBuilder, value: Value, shape: Sequence[int] | None = None) -> Any:
    """The elements of a small value as variables and constants: an object array of its shape (or of `shape`, if the
    caller knows it better)."""
    known = known_array(value)
    if known is not None:
        return _array([scalars.literal(e, value.dtype) for e in known.flat], known.shape)
    shape = value.shape if shape is None else shape
    if not shape:
        return _array([low.scalar_name(value)], ())
    found = low.region.items.get(value)
    if found is None:
        found = low.region.items[value] = items_of(low, low.ref(value), shape)
    return found


def keep_elements(low: KernelBuilder, value: Value) -> None:
    """Loads a small value from memory into scalar variables, because its memory is about to be overwritten."""
    low.define(value, vector(low, value, items(low, value)))


def items_of(low: KernelBuilder, ref: Any, shape: Sequence[int]) -> Any:
    """Like `items`, for the ref of a value of that shape."""
    if isinstance(ref, Vector):
        return _array(ref.items, shape)
    if isinstance(ref, Broadcast):
        own = tuple(
            1 if d == ir.ONE else size for d, size in zip(ref.source.dims, shape[len(shape) - len(ref.source.dims) :])
        )
        return np.broadcast_to(items_of(low, ref.source, own), shape)
    made = np.empty(shape, object)
    if isinstance(ref, Virtual) and ref.uniform:
        made[...] = _named(low, ref.element([ir.ZERO] * len(ref.dims)))
        return made
    for number, place in enumerate(np.ndindex(*shape)):
        if isinstance(ref, Virtual):
            expr = ref.element([ir.as_expr(i) for i in place])
        else:
            assert isinstance(ref, Array)
            expr = ir.load(ref.buffer.variable, _offset(ref, place, number))
        made[place] = _named(low, expr)
    return made


def _array(elements: Sequence[ir.Expr], shape: Sequence[int]) -> Any:
    """An array of expressions."""
    made = np.empty(len(elements), object)
    made[:] = elements
    return made.reshape(shape)


def _offset(ref: Array, place: Sequence[int], number: int) -> ir.Expr:
    terms: list[ir.Expr]
    if ref.strides is None:
        terms = [ir.as_expr(number)] if number else []
    else:
        terms = [s if i == 1 else i * s for i, s in zip(place, ref.strides) if i and s != ir.ZERO]
    if ref.offset != ir.ZERO:
        terms.insert(0, ref.offset)
    return total(terms)


def _named(low: KernelBuilder, expr: ir.Expr) -> ir.Expr:
    return expr if isinstance(expr, (ir.Var, ir.Const)) else low.assign(expr)


def _matmul(low: KernelBuilder, dtype: DType, a: Any, b: Any, transpose_a: bool, transpose_b: bool) -> Any:
    a, b = a.T if transpose_a else a, b.T if transpose_b else b
    made = np.empty((a.shape[0], b.shape[1]), object)
    for i, j in np.ndindex(*made.shape):
        terms = [scalars.narrow(x * y, dtype) for x, y in zip(a[i], b[:, j])]
        found = terms[0]
        for term in terms[1:]:
            found = scalars.narrow(found + term, dtype)
        made[i, j] = low.assign(found)
    return made


def _slice_add(low: KernelBuilder, dtype: DType, total: Any, dy: Any, spec: Any) -> Any:
    places = OPS["strided_slice"].kernel(np.arange(total.size).reshape(total.shape), spec=spec)
    made = total.copy().reshape(-1)
    for place, expr in zip(np.ravel(places), np.broadcast_to(dy, np.shape(places)).flat):
        made[place] = low.assign(joined(OPS["add"], made[place], expr, dtype))
    return made.reshape(total.shape)


def _reduced(low: KernelBuilder, node: Node, array: Any) -> Any:
    """Reduces along the axes, in the same way as a nest over a short row."""
    shape, reduction = node.outputs[0].shape, REDUCTIONS[node.op.name]
    if node.op.name == "sum_to_shape_of":
        wide = (1,) * (array.ndim - len(shape)) + tuple(shape)
        axes = tuple(axis for axis, (size, own) in enumerate(zip(array.shape, wide)) if own == 1 and size != 1)
    else:
        wanted = node.attrs["axis"]
        axes = tuple(range(array.ndim)) if wanted is None else tuple(axis % array.ndim for axis in wanted)
    if not axes:
        return array.reshape(shape)
    kept = [axis for axis in range(array.ndim) if axis not in axes]
    rows = array.transpose([*kept, *axes]).reshape(-1, int(np.prod([array.shape[axis] for axis in axes])))
    dtype = node.inputs[0].dtype
    own = accumulator(reduction, dtype, short=True)
    made = []
    for row in rows:
        reduced: ir.Expr = scalars.literal(np.asarray(reduction.start(own)).astype(own.np)[()], own)
        for expr in row:
            # Named, because a minimum uses its operand twice: nested expressions would double with each element.
            reduced = _named(low, reduction.step(reduced, scalars.convert(expr, dtype, own), own))
        made.append(low.assign(result(reduction, reduced, ir.as_expr(len(row)), dtype, short=True)))
    return _array(made, shape)
