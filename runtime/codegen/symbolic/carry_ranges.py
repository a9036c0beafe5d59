"""The ranges of integers that loops carry, and what tests say of integers.

    low, high = 0, 4096                   test   low 0 to 4095, high 1 to 4096
    while low < high:                     body   middle 0 to 4095
        middle = (low + high) // 2   →    next   low 0 to 4096, high 0 to 4096
        if a[middle] < x:
            low = middle + 1
        else:
            high = middle

Interval analysis of the loop's body: it is evaluated with ranges instead of numbers, from those at the start, until no
range grows. A range that grows is widened to the next of a few bounds first, so that a few evaluations suffice; the
last evaluation gives the final ranges, which are narrower. A test narrows the ranges of its operands where it holds,
and so does an index check for the trips that follow. Loops in the body are not looked into.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from runtime.codegen.kernel.region import live_nodes
from runtime.codegen.symbolic.ranges import Range, limits, result_of
from runtime.graph.ir import Graph, Node, Value
from runtime.graph.node_helpers import known_array
from runtime.types import TensorType

Ranges = dict[Value, Range]
RangeOf = Callable[[Value], Range | None]
Bound = tuple[Value, int | None, int | None]  # the least and the greatest that a value can be

_EVALUATIONS = 8
_SMALL, _INT32 = 1 << 15, 1 << 31  # bounds to which ranges are widened: products of two small numbers fit 32 bits

# comparison -> the one of the operands exchanged, and the one that holds where it doesn't
_EXCHANGED = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}
_NEGATED = {"less": "greater_equal", "less_equal": "greater", "greater": "less_equal", "greater_equal": "less"}


class LoopRanges(NamedTuple):
    """The ranges of a loop's carries in every trip: at the test, and in the body. None where nothing is known."""

    at_test: list[Range | None]
    in_body: list[Range | None]


def ranges_of_carries(
    loop: Node, starts: Sequence[Range | None], captures: Sequence[Range | None]
) -> LoopRanges:  # fmt: skip
    """starts, captures: the ranges at the start of the loop, of what it carries and of what it reads."""
    body = loop.regions[1]
    first = [_range(known) if is_integer(v) else None for known, v in zip(starts, loop.outputs)]
    wanted = [k for k, known in enumerate(first) if known is not None and body.outputs[k] is not body.inputs[k]]
    least = [limits(v.dtype) if is_integer(v) else (0, 0) for v in loop.outputs]
    now = list(first)
    for _ in range(_EVALUATIONS if wanted else 0):
        in_body = _after_test(loop, now, captures)
        after = _after_body(loop, in_body)
        joined = [_joined(a, b, limit) for a, b, limit in zip(first, after, least)]
        if all(_contains(now[k], joined[k]) for k in wanted):
            joined = _over_all_trips(loop, first, joined, in_body)
            return LoopRanges(joined, _after_test(loop, joined, captures)[: len(joined)])
        now = [_widened(a, b, limit) for a, b, limit in zip(now, joined, least)]
    return LoopRanges([None] * len(first), [None] * len(first))


def _over_all_trips(
    loop: Node, first: Sequence[Range | None], joined: Sequence[Range | None], in_body: Sequence[Range | None]
) -> list[Range | None]:  # fmt: skip
    """The ranges of carries, narrowed for those to which each trip adds: the number of trips is limited where one of
    them counts. first, joined: at the start, and at the test; in_body: of the body's operands."""
    body = loop.regions[1]
    found = _inputs(body, in_body)
    _evaluate(body, found)
    changes = [
        _change(after, before, found) if start is not None else None
        for start, before, after in zip(first, body.inputs, body.outputs)
    ]
    trips = [
        (inside.high - inside.low) // min(abs(change.low), abs(change.high)) + 1
        for inside, change, v in zip(in_body, changes, body.inputs)
        if inside is not None and change is not None and (change.low > 0 or change.high < 0)
        if _contains(
            Range(*limits(v.dtype)), Range(inside.low + change.low, inside.high + change.high)
        )  # it never wraps
    ]
    if not trips:
        return list(joined)
    most = min(trips)
    result = []
    for start, change, known, v in zip(first, changes, joined, body.inputs):
        if start is not None and change is not None and known is not None:
            within = Range(start.low + most * min(change.low, 0), start.high + most * max(change.high, 0))
            if _contains(Range(*limits(v.dtype)), within):
                known = Range(max(known.low, within.low), min(known.high, within.high))
        result.append(known)
    return result


def _change(after: Value, before: Value, found: Ranges) -> Range | None:
    """What a trip adds to an integer, if it only adds. found: the ranges of the values of a trip."""
    if after is before:
        return Range(0, 0)
    node = after.node
    if node is None:
        return None
    if node.op.arithmetic in ("add", "subtract"):
        is_sum = node.op.arithmetic == "add"
        for x, y in (node.inputs, node.inputs[::-1]) if is_sum else (node.inputs,):
            change, added = _change(x, before, found), _known(y, found.get)
            if change is not None and added is not None:
                low, high = (added.low, added.high) if is_sum else (-added.high, -added.low)
                return Range(change.low + low, change.high + high)
        return None
    if node.op.name == "select":
        ways = [_change(v, before, found) for v in node.inputs[1:]]
    elif node.op.name == "cond" and before in node.inputs[1:]:
        place, output = node.inputs[1:].index(before), node.outputs.index(after)
        ways = []
        for region, holds in zip(node.regions, (True, False)):
            inside = _inputs(region, inside_branch(node, holds, found.get))
            _evaluate(region, inside)
            ways.append(_change(region.outputs[output], region.inputs[place], inside))
    else:
        return None
    known = [way for way in ways if way is not None]
    return Range(min(w.low for w in known), max(w.high for w in known)) if len(known) == len(ways) else None


def _after_test(
    loop: Node, carries: Sequence[Range | None], captures: Sequence[Range | None]
) -> list[Range | None]:  # fmt: skip
    """The ranges of the loop's operands where its test holds."""
    test = loop.regions[0]
    found = _inputs(test, [*carries, *captures])
    _evaluate(test, found)
    _narrow(found, bounds_of(test.outputs[0], True, found.get))
    return [found.get(v) for v in test.inputs]


def _after_body(loop: Node, operands: Sequence[Range | None]) -> list[Range | None]:
    body = loop.regions[1]
    found = _inputs(body, operands)
    _evaluate(body, found)
    return [found.get(v) for v in body.outputs]


def inside_branch(node: Node, holds: bool, known: RangeOf) -> list[Range | None]:
    """The ranges of a `cond` node's operands in the branch that is taken if its predicate `holds`, or doesn't."""
    return _operands(node, bounds_of(node.inputs[0], holds, known), known)


def _operands(node: Node, bounds: Sequence[Bound], known: RangeOf) -> list[Range | None]:
    found = {v: each for v in node.inputs[1:] if is_integer(v) and (each := known(v)) is not None}
    _narrow(found, [each for each in bounds if each[0] in node.inputs])
    return [found.get(v) for v in node.inputs[1:]]


def position_carries(loop: Node) -> set[int]:
    """The integer carries from which a loop computes positions of elements that it reads or writes."""
    found: set[int] = set()
    for region in loop.regions:
        carries = zip(region.inputs, loop.outputs)
        _find_positions(region, {v: frozenset([k]) for k, (v, _) in enumerate(carries) if is_integer(v)}, found)
    return found


def _find_positions(graph: Graph, sources: dict[Value, frozenset[int]], found: set[int]) -> None:
    """sources: the carries from which integers are computed."""
    nothing: frozenset[int] = frozenset()
    for node in graph.nodes:
        given = [sources.get(v, nothing) for v in node.inputs]
        if not any(given):
            continue
        if node.regions:
            for region in node.regions:
                inner = dict(zip(region.inputs, given[len(given) - len(region.inputs) :]))
                _find_positions(region, inner, found)
                for output, value in zip(node.outputs, region.outputs):
                    sources[output] = sources.get(output, nothing) | inner.get(value, nothing)
        elif node.op.is_elementwise or (node.op.is_move and given[0]):
            sources[node.outputs[0]] = nothing.union(*given)
        else:
            found |= nothing.union(*given[1:])


# --- evaluation ------------------------------------------------------------------------------------------------------


def is_integer(value: Value) -> bool:
    """Whether a value is a rank-0 integer."""
    return isinstance(value.type, TensorType) and value.type.rank == 0 and value.type.dtype.is_integer


def _inputs(graph: Graph, known: Sequence[Range | None]) -> Ranges:
    return {v: each for v, each in zip(graph.inputs, known) if each is not None and is_integer(v)}


def _evaluate(graph: Graph, found: Ranges) -> None:
    """Adds the ranges of the results of a graph's nodes."""
    live = live_nodes(graph)
    for node in graph.nodes:
        if node not in live:
            continue  # it isn't lowered, so its indices aren't checked
        if node.op.name == "cond":
            _evaluate_branches(node, found)
        elif node.op.is_elementwise:
            output = node.outputs[0]
            if is_integer(output):
                known = result_of(node.op, [_known(v, found.get) for v in node.inputs], output.dtype)
                if known is not None:
                    found[output] = Range(known.low, known.high)
        else:
            _narrow(found, _checked(node))


def _evaluate_branches(node: Node, found: Ranges) -> None:
    results = []
    for region, holds in zip(node.regions, (True, False)):
        inside = _inputs(region, inside_branch(node, holds, found.get))
        _evaluate(region, inside)
        results.append([_known(v, inside.get) if is_integer(v) else None for v in region.outputs])
    for output, then, other in zip(node.outputs, *results):
        if then is not None and other is not None:
            found[output] = Range(min(then.low, other.low), max(then.high, other.high))


def _known(value: Value, known: RangeOf) -> Range | None:
    """What is known of an integer, which may be a constant; None for other values."""
    if not is_integer(value):
        return None
    array = known_array(value)
    if array is not None:
        return Range(int(array), int(array))
    return known(value) or Range(*limits(value.dtype))


def _checked(node: Node) -> list[Bound]:
    """What the checks of a node's indices say of them afterwards."""
    if not node.inputs or not isinstance(node.inputs[0].type, TensorType) or not node.inputs[0].type.shape:
        return []
    sizes = node.inputs[0].type.shape
    if node.op.name == "gather" and is_integer(node.inputs[1]):
        size = sizes[node.attrs["axis"]]
        return [] if size is None else [(node.inputs[1], 0, size - 1)]
    if node.op.name != "strided_slice" or any(item[0] != "index" for item in node.attrs["spec"]):
        return []
    indices = iter(node.inputs[1:])
    given = [(next(indices), size) for item, size in zip(node.attrs["spec"], sizes) if item[1] == "?"]
    return [(index, -size, size - 1) for index, size in given if size is not None]


# --- what predicates say ---------------------------------------------------------------------------------------------


def bounds_of(predicate: Value, holds: bool, known: RangeOf) -> list[Bound]:
    """What follows for integers from a predicate that is true (`holds`) or false."""
    node = predicate.node
    if node is None:
        return []
    name = node.op.name
    if name == "logical_not":
        return bounds_of(node.inputs[0], not holds, known)
    if name == ("logical_and" if holds else "logical_or"):
        return [each for v in node.inputs for each in bounds_of(v, holds, known)]
    if name == "cond" and holds:
        k = node.outputs.index(predicate)
        second = next((index for index in (0, 1) if _is_false(node.regions[1 - index].outputs[k])), None)
        return [] if second is None else _bounds_of_both(node, k, second, known)
    if name in ("equal", "not_equal") and holds == (name == "equal"):
        return [each for order in ("less_equal", "greater_equal") for each in _compared(order, node, known)]
    if name in _EXCHANGED:
        return _compared(name if holds else _NEGATED[name], node, known)
    return []


def is_conjunction(node: Node, k: int) -> bool:
    """Whether a result of a `cond` node is `a and b`: its second branch returns False."""
    return _is_false(node.regions[1].outputs[k])


def _is_false(value: Value) -> bool:
    array = known_array(value)
    return array is not None and array.dtype == bool and not array.any()


def _bounds_of_both(node: Node, k: int, second: int, known: RangeOf) -> list[Bound]:
    """What follows from `a and b`, or `not a and b`. second: the branch that returns b."""
    then = node.regions[second]
    bounds = bounds_of(node.inputs[0], second == 0, known)
    inside = _inputs(then, _operands(node, bounds, known))
    _evaluate(then, inside)
    _narrow(inside, bounds_of(then.outputs[k], True, inside.get))
    outside = dict(zip(then.inputs, node.inputs[1:]))
    return [*bounds, *((outside[v], each.low, each.high) for v, each in inside.items() if v in outside)]


def _compared(name: str, node: Node, known: RangeOf) -> list[Bound]:
    a, b = node.inputs
    x, y = _known(a, known), _known(b, known)
    return [] if x is None or y is None else [*_bounded(name, a, y, known), *_bounded(_EXCHANGED[name], b, x, known)]


def _bounded(name: str, value: Value, other: Range, known: RangeOf) -> Iterator[Bound]:
    """What `value < other`, and the like, says of the value; of `i * i < n` also what it says of `i`."""
    if name in ("greater", "greater_equal"):
        yield value, other.low + (name == "greater"), None
        return
    most = other.high - (name == "less")
    yield value, None, most
    node = value.node
    if node is None or node.op.arithmetic != "multiply" or node.inputs[0] is not node.inputs[1] or most < 0:
        return
    if result_of(node.op, [_known(v, known) for v in node.inputs], value.dtype) is not None:  # it doesn't wrap
        yield node.inputs[0], -math.isqrt(most), math.isqrt(most)


def _narrow(found: Ranges, bounds: Sequence[Bound]) -> None:
    """Narrows ranges. A range that would be empty, in code that is never reached, stays as it is."""
    for value, low, high in bounds:
        if is_integer(value):
            known = found.get(value) or Range(*limits(value.dtype))
            least = known.low if low is None else max(known.low, low)
            greatest = known.high if high is None else min(known.high, high)
            if least <= greatest:
                found[value] = known._replace(low=least, high=greatest)


# --- ranges ----------------------------------------------------------------------------------------------------------


def _range(known: Range | None) -> Range | None:
    return None if known is None else Range(known.low, known.high)


def _contains(outer: Range | None, inner: Range | None) -> bool:
    return outer is not None and inner is not None and outer.low <= inner.low and inner.high <= outer.high


def _joined(start: Range | None, after: Range | None, limit: tuple[int, int]) -> Range | None:
    if start is None:
        return None
    if after is None:
        return Range(*limit)
    return Range(min(start.low, after.low), max(start.high, after.high))


def _widened(now: Range | None, joined: Range | None, limit: tuple[int, int]) -> Range | None:
    """The next range of a carry that was in the range `now`, and is in `joined` after a trip."""
    if now is None or joined is None:
        return None
    lows = (0, -1, -_SMALL, -_INT32, limit[0])
    highs = (_SMALL, _INT32 - 1, limit[1])
    low = now.low if joined.low >= now.low else max(each for each in lows if each <= joined.low)
    high = now.high if joined.high <= now.high else min(each for each in highs if each >= joined.high)
    return Range(low, high)
