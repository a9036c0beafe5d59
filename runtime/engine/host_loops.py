"""Loops and conditionals that the host steers: their regions run on a device, and the host reads the tests.

This is for bodies that can't be one kernel, such as those with operations that only the CPU has, or that print. Arrays
stay on the device from trip to trip. Each trip costs a launch for each kernel, and the time to read a boolean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime.graph.ir import Graph, Node

Call = Callable[[Sequence[Any]], "list[Any]"]


def _while(node: Node, compiled: Callable[[Graph], Call]) -> Call:
    test, body = map(compiled, node.regions)
    carries = node.attrs["carries"]

    def run(values: Sequence[Any]) -> list[Any]:
        operands = list(values)
        while _is_true(test(operands)[0]):
            operands[:carries] = body(operands)
        return operands[:carries]

    return run


def _cond(node: Node, compiled: Callable[[Graph], Call]) -> Call:
    then, other = map(compiled, node.regions)

    def run(values: Sequence[Any]) -> list[Any]:
        return (then if _is_true(values[0]) else other)(values[1:])

    return run


def _is_true(value: Any) -> bool:
    """The truth value of a scalar on the host or on a device; waits for the device."""
    return bool(np.asarray(value))


STEERED: dict[str, Callable[[Node, Callable[[Graph], Call]], Call]] = {"while": _while, "cond": _cond}


def steered(node: Node, compiled: Callable[[Graph], Call]) -> Call:
    """A callable for a node's operands. compiled: makes the callables of its regions."""
    return STEERED[node.op.name](node, compiled)
