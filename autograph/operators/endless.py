"""Loops that can't end: an error while tracing, in place of a program that hangs."""

from __future__ import annotations

from typing import Any

from autograph.errors import StagingValueError, user_location
from runtime.graph.builder import Region

# What can't fail, whatever numbers it is given; drawing random numbers aside.
_SAFE = frozenset({"constant", "range", "cast", "add", "subtract", "multiply"})


def refuse_endless(test: Region, body: Region) -> None:
    """Raises StagingValueError for a loop that nothing can end and nobody could see running.

    Its condition is always true, it has no effect, and each iteration does what the last one did, so that an error that
    the first one doesn't raise is never raised.
    """
    node = test.outputs[0].node
    if node is None or node.op.name != "constant" or not bool(node.attrs["value"].array) or test.builder.written:
        return
    nodes: list[Any] = list(body.builder.graph.walk())
    draws = [each for each in nodes if each.op.name.startswith("random_")]
    if any(each.op.effect for each in nodes if each not in draws):
        return
    if draws and any(each.op.name not in _SAFE for each in nodes if each not in draws):
        return
    if body.builder.written and not draws:
        return
    own = set(body.carries)
    if any(value in own for each in nodes for value in each.inputs):
        return
    raise StagingValueError(
        "this loop never ends",
        location=user_location(),
        cause="its condition is always true, no `break` or `return` leaves it, and all its iterations are the same",
        fix="give it a condition that changes, or a `break`",
    )
