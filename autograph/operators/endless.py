"""Loops that can't end: an error while tracing, in place of a program that hangs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from autograph.errors import StagingValueError, user_location
from autograph.operators.symbolic import type_of
from runtime.graph.builder import Region
from runtime.graph.passes.rewrites.commits import may_fail
from runtime.ops.convert import is_tensor_like


def refuse_endless(test: Region, body: Region, variables: Iterable[tuple[str, Any, Any]]) -> None:
    """Raises StagingValueError for a loop that nothing can end and nobody could see running.

    Its condition is always true, it has no effect, and each iteration does what the last one did, so that an error that
    the first one doesn't raise is never raised.

    variables: names with the values before the loop and after an iteration.
    """
    node = test.outputs[0].node
    if node is None or node.op.name != "constant" or not bool(node.attrs["value"].array) or test.builder.written:
        return
    nodes: list[Any] = list(body.builder.graph.walk())
    draws = [each for each in nodes if each.op.is_random]
    if any(each.op.effect for each in nodes if each not in draws):
        return
    if draws and any(may_fail(each) for each in nodes if each not in draws):
        return
    if body.builder.written and not draws:
        return
    own = set(body.carries)
    if any(value in own for each in nodes for value in each.inputs):
        return
    changes = [
        f"'{name}' has shape {before} before the loop, but shape {after} after an iteration"
        for name, before, after in ((name, *map(_shape, values)) for name, *values in variables)
        if before != after
    ]
    raise StagingValueError(
        "; ".join(["this loop never ends", *changes]),
        location=user_location(),
        cause="its condition is always true, no `break` or `return` leaves it, and all its iterations are the same",
        fix="give it a condition that changes, or a `break`",
    )


def _shape(value: Any) -> Any:
    return type_of(value).shape if is_tensor_like(value) else None
