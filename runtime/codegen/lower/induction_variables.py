"""Counted loops: the counter becomes a 64-bit induction variable, which the passes know.

    while i < n:                                while i < limit:
        x = x * x                         →         x = x * x
        i = np.int32(i + np.int32(1))               i = i + 1

A loop may test something else as well, which then leaves it:

    while i < n and a[i] != x:                  while i < limit:
        i = np.int32(i + np.int32(1))     →         if not a[i] != x:
                                                        break
                                                    i = i + 1

This is done only if positions are computed from the counter. In other loops, vectors of 32-bit counters are worth more
(`llvm/optimize/outer_loop_vectorize.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from runtime import dtypes
from runtime.codegen.kernel import scalars
from runtime.codegen.kernel.region import live_nodes
from runtime.codegen.kernel.values import Scalar
from runtime.codegen.lower.state import Lowering
from runtime.codegen.symbolic.carry_ranges import is_conjunction
from runtime.codegen.symbolic.ranges import Atom, Range, known_range, limits, polynomial_of
from runtime.dataclass import dataclass
from runtime.dtypes import DType
from runtime.graph.ir import Graph, Node, Substitution, Value, copy_nodes
from runtime.graph.node_helpers import known_array
from runtime.kernel_ir import ir
from runtime.kernel_ir.analysis.polynomial import Polynomial
from runtime.kernel_ir.types import INT64
from runtime.types import TensorType

# test op → (position of the counter, offset to add to the other operand for an equivalent `<` or `>`, the step's sign)
_TESTS = {
    ("less", 0): (0, 1), ("less_equal", 0): (1, 1), ("greater", 0): (0, -1), ("greater_equal", 0): (-1, -1),
    ("greater", 1): (0, 1), ("greater_equal", 1): (1, 1), ("less", 1): (0, -1), ("less_equal", 1): (-1, -1),
}  # fmt: skip


@dataclass(frozen=True)
class Counter:
    """A carry that each trip changes by the same `step` until it reaches `limit`. rest: what else the loop tests in
    each trip; None if nothing."""

    index: int  # which carry
    name: str  # its 64-bit variable
    start: Range
    limit: Atom  # 64 bits wide
    stop: Range  # what is known of the limit; `below`: a dimension that the carry stays below in the body
    step: Range  # its range is above zero, or below; `wide` is its value
    dtype: DType
    rest: Graph | None = None

    @property
    def is_up(self) -> bool:
        return self.step.low > 0

    @property
    def variable(self) -> ir.Var:
        return ir.Var(self.name, INT64)

    @property
    def test(self) -> ir.Expr:
        return self.variable.compare("<" if self.is_up else ">", self.limit)

    def inside(self) -> Scalar:
        """The carry in the body."""
        if self.is_up:
            low, high = self.start.low, max(self.stop.high - 1, self.start.low)
        else:
            low, high = min(self.stop.low + 1, self.start.high), self.start.high
        return self._scalar(Range(low, high, self.stop.below if self.is_up else self.start.below, self.variable))

    def after(self) -> Scalar:
        """The carry after the loop: the initial value if there was no trip, otherwise the first value that fails the
        test."""
        if self.is_up:
            low, high = self.start.low, max(self.start.high, self.stop.high + self.step.high - 1)
        else:
            low, high = min(self.start.low, self.stop.low + self.step.low + 1), self.start.high
        return self._scalar(Range(low, high, None, self.variable))

    def _scalar(self, known: Range) -> Scalar:
        return Scalar(scalars.convert(self.variable, dtypes.int64, self.dtype), self.dtype, known)

    @property
    def trips(self) -> ir.Expr:
        """The number of trips, computed before the first one."""
        distance = ir.call("max", self.limit - self.variable if self.is_up else self.variable - self.limit, 0)
        if self.step.low == self.step.high:
            size = abs(self.step.low)
            return distance if size == 1 else (distance - 1) // size + 1
        assert self.step.wide is not None
        return (distance - 1) // (self.step.wide if self.is_up else -self.step.wide) + 1

    @property
    def induction(self) -> ir.Induction:
        """The counter as an induction variable, for the passes."""
        start, stop, step = self.start, self.stop, self.step
        most = max(0, stop.high - start.low if self.is_up else start.high - stop.low)
        is_known = start.low == start.high and stop.low == stop.high
        moved: ir.Expr = ir.as_expr(abs(step.low)) if step.low == step.high else step.wide or ir.ONE
        least = min(abs(step.low), abs(step.high))
        return ir.Induction(
            self.variable, self.limit, moved, self.is_up, least, most, most if is_known else None, self.rest is not None
        )

    @property
    def advanced(self) -> ir.Expr:
        """The counter at the end of a trip."""
        if self.step.low == self.step.high:
            return ir.Binary("+" if self.is_up else "-", self.variable, ir.as_expr(abs(self.step.low)))
        assert self.step.wide is not None
        return self.variable + self.step.wide


def counter_of(
    low: Lowering, node: Node, starts: Sequence[Any], captures: Sequence[Any], name: Any, positions: Collection[int]
) -> Counter | None:  # fmt: skip
    """The counter of a `while` node. Adds statements for its initial value and its limit.

    name: makes a new variable for the carry at a position. positions: the carries from which positions of elements are
    computed.
    """
    test, body = node.regions
    count = node.attrs["carries"]
    tests = [n for n in live_nodes(test) if n.op.name != "constant"]
    for compare in _conjuncts(test.outputs[0]):
        is_all = tests == [compare]
        for side in (0, 1):
            rule = _TESTS.get((compare.op.name, side))
            if rule is None or compare.inputs[side] not in test.inputs[:count]:
                continue
            index = test.inputs.index(compare.inputs[side])
            if not is_all and index not in positions:
                continue
            step = _step(body, index, count, captures)
            bound = _operand(test, compare.inputs[1 - side], count, captures)
            start = starts[index]
            if step is None or min(step.low * rule[1], step.high * rule[1]) <= 0:
                continue
            if not isinstance(bound, Scalar) or not isinstance(start, Scalar):
                continue
            rest = None if is_all else _without(test, compare.outputs[0])
            if rest is None and not is_all:
                continue
            counter = _counter(low, index, start, bound, rule[0], step, lambda: name(index))  # noqa: B023
            if counter is not None:
                return replace(counter, rest=rest)
    return None


def _conjuncts(test: Value) -> Iterator[Node]:
    """The nodes that compute the operands of a conjunction, in order."""
    node = test.node
    if node is None:
        return
    if node.op.name == "logical_and":
        for operand in node.inputs:
            yield from _conjuncts(operand)
    elif node.op.name == "cond":
        if is_conjunction(node, node.outputs.index(test)):
            yield from _conjuncts(node.inputs[0])
    else:
        yield node


def _without(test: Graph, true: Value) -> Graph | None:
    """A copy of a test in which one of the conditions that it joins is true; None if there is no other."""
    rest = Graph(test.name)
    mapping = Substitution({value: rest.add_input_like(value) for value in test.inputs})
    is_true = {true}
    for node in test.nodes:
        if node is true.node:
            continue
        operands = [v for v in node.inputs if v not in is_true]
        if len(operands) == len(node.inputs):
            copy_nodes([node], rest, mapping)
        elif node.op.name == "logical_and":
            if operands:
                mapping[node.outputs[0]] = mapping[operands[0]]
            else:
                is_true.add(node.outputs[0])
        else:
            (then, _), captured = node.regions, [mapping[v] for v in node.inputs[1:]]
            mapping.update(zip(then.inputs, captured))
            copy_nodes(then.nodes, rest, mapping)
            mapping.update((output, mapping[v]) for output, v in zip(node.outputs, then.outputs))
    if not is_true.isdisjoint(test.outputs):
        return None
    rest.outputs = [mapping[v] for v in test.outputs]
    return rest


def _counter(low: Lowering, index: int, start: Any, bound: Any, more: int, step: Range, name: Any) -> Counter | None:
    dtype = start.dtype
    if dtype.name not in ("int32", "int64"):
        return None
    least, greatest = limits(dtype)
    first = known_range(start) or Range(least, greatest)
    last = known_range(bound) or Range(least, greatest)
    # The counter must stay within its dtype, because it would wrap beyond, and distances must fit 64 bits.
    if step.low > 0:
        safe = last.high + more + step.high - 1 <= greatest
    else:
        safe = last.low + more + step.low + 1 >= least
    ends = [first.low, first.high, last.low + more, last.high + more]
    if not safe or max(ends) - min(ends) > limits(dtypes.int64)[1]:
        return None
    if last.low == last.high:
        limit = low.atom(ir.as_expr(last.low + more), "limit")
    else:
        wide = last.wide or ir.Convert(INT64, bound.expr)
        limit = low.atom(wide + more if more > 0 else wide - -more if more else wide, "limit")
    # A limit that comes from a tensor's shape, or that a shape comes from, is a dimension, and the counter stays below
    # it.
    size = low.sizes.get(bound.expr) or (last.wide if isinstance(last.wide, ir.Var) else None)
    below = last.below or (size if more <= 0 else None)
    if step.wide is not None and step.low != step.high:
        step = step._replace(wide=low.atom(step.wide, "step"))
    variable = name()
    low.add(ir.assign(variable, first.wide or ir.Convert(INT64, start.expr)))
    begin = polynomial_of(known_range(start)) or Polynomial.of(first.low if step.low > 0 else first.high)
    polynomial = polynomial_of(known_range(bound))
    end = Polynomial.of(limit) if polynomial is None else polynomial + more
    low.shape_env.enter_loop(variable, *((begin, end - 1) if step.low > 0 else (end + 1, begin)))
    return Counter(index, variable, first, limit, Range(last.low + more, last.high + more, below), step, dtype)


def _step(body: Graph, index: int, count: int, captures: Sequence[Any]) -> Range | None:
    """The number that each trip adds to a carry, if it is always the same: a literal or a loop-invariant variable."""
    before, made = body.inputs[index], body.outputs[index].node
    if made is None or made.op.arithmetic not in ("add", "subtract") or before not in made.inputs:
        return None
    if made.op.arithmetic == "subtract" and made.inputs[0] is not before:
        return None
    other = made.inputs[1] if made.inputs[0] is before else made.inputs[0]
    array = known_array(other)
    if array is not None:
        known: Range | None = Range(int(array), int(array))
    else:
        known = known_range(captures[body.inputs.index(other) - count]) if other in body.inputs[count:] else None
    if known is None or (known.low != known.high and (known.wide is None or made.op.arithmetic == "subtract")):
        return None
    return known if made.op.arithmetic == "add" else Range(-known.high, -known.low)


def _operand(test: Graph, value: Value, count: int, captures: Sequence[Any]) -> Any:
    """The expression for a loop-invariant operand."""
    array = known_array(value)
    if array is not None and isinstance(value.type, TensorType) and value.dtype.is_integer:
        return Scalar(scalars.literal(array, value.dtype), value.dtype)
    if value in test.inputs[count:]:
        return captures[test.inputs.index(value) - count]
    return None
