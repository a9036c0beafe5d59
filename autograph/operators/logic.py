"""``and``, ``or``, ``not``, ``in``, ``is None``: Python's own on Python values, staged on symbolic tensors."""

from __future__ import annotations

import operator
from typing import Any

from autograph.operators.absence import none_test
from autograph.operators.staged_logic import stage_and, stage_contains, stage_not, stage_or
from autograph.operators.state import Block
from autograph.operators.symbolic import symbolic, truth
from autograph.operators.unbound import run


def and_(first: Any, *others: Block) -> Any:
    """``first and others[0]() and ...``; a later operand is evaluated only when those before it hold."""
    value = first
    for index, other in enumerate(others):
        tensor = truth(value)
        if tensor is not None:
            return stage_and(tensor, others[index:])
        if not value:
            return value
        value = run(other)
    return value


def or_(first: Any, *others: Block) -> Any:
    """``first or others[0]() or ...``; a later operand is evaluated only when those before it don't hold."""
    value = first
    for index, other in enumerate(others):
        tensor = truth(value)
        if tensor is not None:
            return stage_or(tensor, others[index:])
        if value:
            return value
        value = run(other)
    return value


def not_(value: Any) -> Any:
    """``not value``."""
    tensor = truth(value)
    return stage_not(tensor) if tensor is not None else not value


def is_none(value: Any) -> Any:
    """``value is None``: a tensor where it depends on the way through the program."""
    return none_test(value)


def is_not_none(value: Any) -> Any:
    """``value is not None``."""
    return not_(none_test(value))


def in_(item: Any, container: Any) -> Any:
    """``item in container``."""
    if symbolic(container) is not None or symbolic(item) is not None:
        return stage_contains(item, container)
    return operator.contains(container, item)


def not_in(item: Any, container: Any) -> Any:
    """``item not in container``."""
    return not_(in_(item, container))
