"""Which loops surely end: only those may be left out where nobody reads their results.

    while i < n and ...:                while n != 0:
        i = i + 1             ends          n = n - 2             ends if n starts at 8, and not if it starts at 7

A loop (a `Node` of `ir.py`, which asks this module) ends if its test compares an integer that each trip moves towards a
number that doesn't change.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

# comparison → the sign of the steps towards its end, where the moving number stands first
_TOWARDS = {"less": 1, "less_equal": 1, "greater": -1, "greater_equal": -1, "not_equal": 0}


def ends(loop: Any) -> bool:
    """Whether a `while` is known to end. (An integer tensor that wraps at the end of its dtype is taken not to.)"""
    return any(_is_decided(loop, test) for test in _conjuncts(loop.regions[0].outputs[0]))


def _conjuncts(test: Any) -> Iterator[Any]:
    """The conditions all of which must hold for another trip, as far as they are values of the test's own graph."""
    node = test.node
    if node is not None and node.op.name == "logical_and":
        for operand in node.inputs:
            yield from _conjuncts(operand)
    elif node is not None and node.op.name == "cond" and _number(node.regions[1].outputs[0]) == 0:
        yield from _conjuncts(node.inputs[0])
    else:
        yield test


def _is_decided(loop: Any, test: Any) -> bool:
    node = test.node
    if node is None:
        return False
    if node.op.name == "constant":
        return _number(test) == 0
    if node.op.name not in _TOWARDS:
        return False
    sides = ((0, _TOWARDS[node.op.name]), (1, -_TOWARDS[node.op.name]))
    return any(_moves_towards(loop, node.inputs[side], node.inputs[1 - side], sign) for side, sign in sides)


def _moves_towards(loop: Any, value: Any, limit: Any, sign: int) -> bool:
    """sign: of the steps that lead to the end; 0 where a step must meet the limit."""
    test, body = loop.regions
    count = loop.attrs["carries"]
    if value not in test.inputs[:count] or not getattr(getattr(value, "dtype", None), "is_integer", False):
        return False
    if limit.node is None:
        place = test.inputs.index(limit)
        if place < count and body.outputs[place] is not body.inputs[place]:
            return False
    elif _number(limit) is None:
        return False
    index = test.inputs.index(value)
    steps = _steps(body.outputs[index], body.inputs[index])
    if steps is None:
        return False
    if sign:
        return all(step * sign > 0 for step in steps)
    start, end = _number(loop.inputs[index]), _number(limit)
    if start is None or end is None or len(steps) != 1:
        return False
    (step,) = steps
    return start == end or (step != 0 and (end - start) % step == 0 and (end - start) // step > 0)


def _steps(after: Any, before: Any) -> set[int] | None:
    """By what a trip may move a number; None if that isn't known."""
    if after is before:
        return {0}
    node = after.node
    if node is None:
        return None
    if node.op.arithmetic in ("add", "subtract"):
        x, y = node.inputs
        is_sum = node.op.arithmetic == "add"
        number = _number(y) if x is before else _number(x) if y is before and is_sum else None
        return None if number is None else {number if is_sum else -number}
    if node.op.name == "select":
        ways = [_steps(value, before) for value in node.inputs[1:]]
    elif node.op.name == "cond" and before in node.inputs[1:]:
        place, output = node.inputs[1:].index(before), node.outputs.index(after)
        ways = [_steps(region.outputs[output], region.inputs[place]) for region in node.regions]
    else:
        return None
    return None if None in ways else set().union(*ways)  # type: ignore[arg-type]


def _number(value: Any) -> Any:
    """The number that a scalar constant is; None for every other value."""
    node = value.node
    if node is None or node.op.name != "constant" or node.attrs["value"].array.ndim:
        return None
    return node.attrs["value"].array.item()
