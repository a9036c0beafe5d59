"""Loops that count: their counter is a 64-bit variable, and Ctrl-C is asked for outside of them.

    while i < n:                                while i < limit:
        x = x * x                                   part = min(limit - i, 5592405)
        i = np.int32(i + np.int32(1))               ticks = ticks + part * 3
        ticks = ticks + 3                           stop = i + part
        if ticks > 16777216:               →        while i < stop:
            ticks = 0                                   x = x * x
            if lib.interrupted():                       i = i + 1
                return 1, ...                       if ticks > 16777216:
                                                        ticks = 0
                                                        if lib.interrupted():
                                                            return 1, ...

The inner loop has one way out, and its trips are known when it begins: LLVM unrolls it, or makes vectors of it. Where
few trips are sure to be enough there is no outer loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from runtime import dtypes
from runtime.codegen.kernel import spelling
from runtime.codegen.kernel.values import Scalar
from runtime.codegen.lower.state import Lowering
from runtime.codegen.passes.interrupt_polls import LIMIT, question, ticks_of
from runtime.codegen.symbolic.polynomial import Polynomial
from runtime.codegen.symbolic.ranges import Known, form_of, known_of, limits
from runtime.dtypes import DType
from runtime.graph.ir import Graph, Node, Value
from runtime.graph.making import known_array
from runtime.kernel_ir import ir
from runtime.types import TensorType

# test op → (which operand counts, what the limit of a `<` or `>` is more than the other operand, the step's sign)
_TESTS = {
    ("less", 0): (0, 1), ("less_equal", 0): (1, 1), ("greater", 0): (0, -1), ("greater_equal", 0): (-1, -1),
    ("greater", 1): (0, 1), ("greater_equal", 1): (1, 1), ("less", 1): (0, -1), ("less_equal", 1): (-1, -1),
}  # fmt: skip


@dataclass(frozen=True)
class Counter:
    """A carry that each trip moves by the same `step` until it reaches `limit`."""

    index: int  # which carry
    name: str  # its 64-bit variable
    start: Known
    limit: str  # a 64-bit variable or literal
    stop: Known  # what is known of the limit; `below`: a dimension that the carry stays below in the body
    step: Known  # all that it can be is above zero, or all below; `wide` is its text
    dtype: DType

    @property
    def is_up(self) -> bool:
        return self.step.low > 0

    @property
    def test(self) -> str:
        return f"{self.name} {'<' if self.is_up else '>'} {self.limit}"

    @property
    def trips(self) -> str:
        """How many trips there will be, before the first."""
        distance = f"{self.limit} - {self.name}" if self.is_up else f"{self.name} - {self.limit}"
        if abs(self.step.low) == 1 and abs(self.step.high) == 1:
            return f"max({distance}, 0)"
        if self.step.low == self.step.high:
            step = str(abs(self.step.low))
        else:
            step = str(self.step.wide) if self.is_up else f"(-{self.step.wide})"
        return f"(max({distance}, 0) - 1) // {step} + 1"

    def inside(self) -> Scalar:
        """The carry in the body."""
        if self.is_up:
            low, high = self.start.low, max(self.stop.high - 1, self.start.low)
        else:
            low, high = min(self.stop.low + 1, self.start.high), self.start.high
        return self._scalar(Known(low, high, self.stop.below if self.is_up else self.start.below, self.name))

    def after(self) -> Scalar:
        """The carry when the loop is over: the start, if there was no trip, or the first that fails the test."""
        if self.is_up:
            low, high = self.start.low, max(self.start.high, self.stop.high + self.step.high - 1)
        else:
            low, high = min(self.start.low, self.stop.low + self.step.low + 1), self.start.high
        return self._scalar(Known(low, high, None, self.name))

    def _scalar(self, known: Known) -> Scalar:
        text = self.name if self.dtype.name == "int64" else f"np.{self.dtype.name}({self.name})"
        return Scalar(text, self.dtype, known)

    @property
    def advanced(self) -> str:
        """The counter at the end of a trip."""
        if self.step.low == self.step.high:
            return f"{self.name} {'+' if self.is_up else '-'} {abs(self.step.low)}"
        return f"{self.name} + {self.step.wide}"


def counter_of(low: Lowering, node: Node, starts: Sequence[Any], captures: Sequence[Any], name: Any) -> Counter | None:
    """The counter of a `while` node whose test is on nothing else. Prints its first value and its limit.

    name: from the number of a carry to a new variable.
    """
    test, body = node.regions
    count = node.attrs["carries"]
    compare = test.outputs[0].node
    if compare is None or any(n is not compare and n.op.name != "constant" for n in test.nodes):
        return None
    for side in (0, 1):
        rule = _TESTS.get((compare.op.name, side))
        if rule is None or compare.inputs[side] not in test.inputs[:count]:
            continue
        index = test.inputs.index(compare.inputs[side])
        step = _step(body, index, count, captures)
        bound = _operand(test, compare.inputs[1 - side], count, captures)
        start = starts[index]
        if step is None or min(step.low * rule[1], step.high * rule[1]) <= 0:
            continue
        if not isinstance(bound, Scalar) or not isinstance(start, Scalar):
            continue
        return _counter(low, index, start, bound, rule[0], step, lambda: name(index))  # noqa: B023
    return None


def _counter(low: Lowering, index: int, start: Any, bound: Any, more: int, step: Known, name: Any) -> Counter | None:
    dtype = start.dtype
    if dtype.name not in ("int32", "int64"):
        return None
    least, greatest = limits(dtype)
    first = known_of(start) or Known(least, greatest)
    last = known_of(bound) or Known(least, greatest)
    # The counter must not leave its dtype, where it would wrap, and distances must fit 64 bits.
    if step.low > 0:
        safe = last.high + more + step.high - 1 <= greatest
    else:
        safe = last.low + more + step.low + 1 >= least
    ends = [first.low, first.high, last.low + more, last.high + more]
    if not safe or max(ends) - min(ends) > limits(dtypes.int64)[1]:
        return None
    if last.low == last.high:
        limit = str(last.low + more)
    else:
        wide = last.wide or f"np.int64({bound.text})"
        limit = low.atom(f"{wide} + {more}" if more > 0 else f"{wide} - {-more}" if more else wide, "limit")
    # A limit that was read off a tensor, or that tensors were made from, is a dimension, which the counter stays below.
    size = low.sizes.get(bound.text) or (last.wide if last.wide and last.wide.isidentifier() else None)
    below = last.below or (size if more <= 0 else None)
    if step.wide is not None and step.low != step.high:
        step = replace(step, wide=low.atom(step.wide, "step"))
    variable = name()
    low.line(f"{variable} = {first.wide or f'np.int64({spelling.strip(start.text)})'}")
    begin = form_of(known_of(start)) or Polynomial.of(first.low)
    form = form_of(known_of(bound))
    end = Polynomial.of(limit) if form is None else form + more
    low.extents.counts(variable, *((begin, end - 1) if step.low > 0 else (end + 1, begin)))
    return Counter(index, variable, first, limit, Known(last.low + more, last.high + more, below), step, dtype)


def _step(body: Graph, index: int, count: int, captures: Sequence[Any]) -> Known | None:
    """What each trip adds to a carry, if that is always the same: a literal, or a variable that no trip changes."""
    before, made = body.inputs[index], body.outputs[index].node
    if made is None or made.op.name not in ("add", "subtract") or before not in made.inputs:
        return None
    if made.op.name == "subtract" and made.inputs[0] is not before:
        return None
    other = made.inputs[1] if made.inputs[0] is before else made.inputs[0]
    array = known_array(other)
    if array is not None:
        known: Known | None = Known(int(array), int(array))
    else:
        known = known_of(captures[body.inputs.index(other) - count]) if other in body.inputs[count:] else None
    if known is None or (known.low != known.high and (known.wide is None or made.op.name == "subtract")):
        return None
    return known if made.op.name == "add" else Known(-known.high, -known.low)


def _operand(test: Graph, value: Value, count: int, captures: Sequence[Any]) -> Any:
    """What stands for an operand that no trip changes."""
    array = known_array(value)
    if array is not None and isinstance(value.type, TensorType) and value.dtype.is_integer:
        return Scalar(f"np.{value.dtype.name}({int(array)})", value.dtype)
    if value in test.inputs[count:]:
        return captures[test.inputs.index(value) - count]
    return None


def counted_loop(low: Lowering, node: Node, counter: Counter, block: ir.Block) -> ir.Block:
    """A loop with this body, which moves the counter at its end."""
    start, stop, name, limit, step = counter.start, counter.stop, counter.name, counter.limit, counter.step
    up = counter.is_up
    far, near = (limit, name) if up else (name, limit)
    ticks, least = ticks_of(node), min(abs(step.low), abs(step.high))
    most = max(0, stop.high - start.low if up else start.high - stop.low)
    cost = -(-ticks // least)
    test = low.expr(counter.test)
    if most * cost <= LIMIT:
        loop = ir.While(test, block)
        if not low.region.in_loop:
            return [loop]
        low.prologue["ticks"] = "0"
        if start.low == start.high and stop.low == stop.high:
            spent = str(most * cost)
        elif step.low == step.high:
            spent = f"max({far} - {near}, 0) * {cost}"
        else:
            spent = f"max({far} - {near}, 0) // {step.wide if up else f'(-{step.wide})'} * {ticks}"
        return [*low.lines(f"ticks = ticks + {spent}"), loop, question(low, node)]
    low.prologue["ticks"] = "0"
    part, end = low.names.fresh("part"), low.names.fresh("stop")
    inner = low.lines(
        f"{part} = min({far} - {near}, {LIMIT // cost})",
        f"ticks = ticks + {part} * {cost}",
        f"{end} = {name} {'+' if up else '-'} {part}",
    )
    trips = ir.While(low.expr(f"{name} {'<' if up else '>'} {end}"), block)
    return [ir.While(test, [*inner, trips, question(low, node)])]
