"""``and``, ``or``, ``not``, ``in``, comparisons: Python's own on Python values, staged on symbolic tensors."""

from __future__ import annotations

import operator
from typing import Any

from autograph.operators.absence import none_test
from autograph.operators.choices import Choice
from autograph.operators.deciding import decided
from autograph.operators.objects import as_key, comparable, compares_by_identity, refuse_copies, same
from autograph.operators.selecting import select
from autograph.operators.staged_logic import stage_and, stage_contains, stage_not, stage_or
from autograph.operators.staged_strings import contains as contains_text
from autograph.operators.staged_strings import is_staged_text
from autograph.operators.standard_library import as_staged_list, contains, items_of_deque
from autograph.operators.state import Block
from autograph.operators.structure import children
from autograph.operators.symbolic import DECIDED, UNSTAGED, symbolic, truth
from autograph.operators.unbound import as_unbound_local
from autograph.standard_library.deques import Deque
from runtime.context import ctx
from runtime.ops.elementwise.compare import logical_and, logical_not, logical_or
from runtime.ops.flags import flagged
from runtime.ops.staged_number import is_number
from runtime.tensor import SymbolicTensor


def and_(first: Any, second: Block, *others: Block) -> Any:
    """``first and second() and others[0]() ...``; a later operand is evaluated only when those before it hold."""
    block = second
    try:
        if first is not True:
            if type(first) not in DECIDED:
                tensor = truth(first)
                if tensor is not None:
                    return stage_and(first, (second, *others))
            if not first:
                return first
        if not others:
            return second()
        value = second()
        for index, block in enumerate(others):
            if type(value) not in DECIDED:
                tensor = truth(value)
                if tensor is not None:
                    return stage_and(value, others[index:])
            if not value:
                return value
            value = block()
        return value
    except NameError as error:  # what `run` does, without the cost of calling it
        changed = as_unbound_local(error, block.__code__)
        if changed is error:
            raise
    raise changed


def or_(first: Any, second: Block, *others: Block) -> Any:
    """``first or second() or others[0]() ...``; a later operand is evaluated only when those before it don't hold."""
    block = second
    try:
        if first is not False:
            if type(first) not in DECIDED:
                tensor = truth(first)
                if tensor is not None:
                    return stage_or(first, (second, *others))
            if first:
                return first
        if not others:
            return second()
        value = second()
        for index, block in enumerate(others):
            if type(value) not in DECIDED:
                tensor = truth(value)
                if tensor is not None:
                    return stage_or(value, others[index:])
            if value:
                return value
            value = block()
        return value
    except NameError as error:  # what `run` does, without the cost of calling it
        changed = as_unbound_local(error, block.__code__)
        if changed is error:
            raise
    raise changed


def not_(value: Any) -> Any:
    """``not value``."""
    if type(value) in DECIDED:
        return not value
    tensor = truth(value)
    return stage_not(tensor) if tensor is not None else not value


def is_(left: Any, right: Any) -> Any:
    """``left is right``."""
    if left is right or ctx.builder is None:
        return left is right
    if isinstance(left, Choice):
        return select(left, lambda each: is_(each, right))
    return is_(right, left) if isinstance(right, Choice) else same(left, right)


def is_not(left: Any, right: Any) -> Any:
    """``left is not right``."""
    return not_(is_(left, right))


def is_none(value: Any) -> Any:
    """``value is None``: a tensor where it depends on the way through the program."""
    if type(value) in DECIDED:
        return value is None
    return is_(value, None) if isinstance(value, Choice) else none_test(value)


def is_not_none(value: Any) -> Any:
    """``value is not None``."""
    return value is not None if type(value) in DECIDED else not_(is_none(value))


_COMPARISONS = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
}


def compare(left: Any, comparison: str, right: Any) -> Any:
    """``left < right`` and the like for tuples and lists: Python's order, also where they hold tensors."""
    function = _COMPARISONS[comparison]
    if ctx.builder is None:
        return function(left, right)
    if comparison in ("==", "!="):
        refuse_copies(comparison, left)
        refuse_copies(comparison, right)
    else:
        left, right = comparable(left, right)
    if type(left) is tuple and type(right) is tuple and all(map(_are_scalars, left, right)):
        return _compare_scalars(left, comparison, right)
    return decided(lambda: function(left, right), comparison)


def _are_scalars(one: Any, other: Any) -> bool:
    """Whether two values are numbers or scalar tensors, so that comparing them can't fail at run time."""
    return all(is_number(each) or (type(each) is SymbolicTensor and each._shape == ()) for each in (one, other))


def _compare_scalars(left: tuple[Any, ...], comparison: str, right: tuple[Any, ...]) -> Any:
    """Compares tuples of scalars without branches: ``a < c or (a == c and b < d)``."""
    function = _COMPARISONS[comparison]
    if comparison in ("==", "!="):
        found: Any = len(left) == len(right)
        for one, other in zip(left, right) if found else ():
            found = _both(found, one is other or one == other)
        return found == (comparison == "==") if type(found) is bool else _flag(found, comparison == "!=")
    found = function(len(left), len(right))
    strict = _COMPARISONS[comparison[0]]
    for one, other in reversed(list(zip(left, right))):
        if one is not other:
            found = _either(strict(one, other), _both(one == other, found))
    return found


def _flag(tensor: Any, is_negated: bool) -> Any:
    return flagged(logical_not(tensor) if is_negated else tensor)


def _both(one: Any, other: Any) -> Any:
    if type(one) is bool or type(other) is bool:
        known, rest = (one, other) if type(one) is bool else (other, one)
        return rest if known else False
    return logical_and(one, other)


def _either(one: Any, other: Any) -> Any:
    if type(one) is bool or type(other) is bool:
        known, rest = (one, other) if type(one) is bool else (other, one)
        return True if known else rest
    return logical_or(one, other)


_HASHED = (dict, set, frozenset)


def in_(item: Any, container: Any) -> Any:
    """``item in container``."""
    if type(item) in DECIDED and type(container) in UNSTAGED and type(container) is not tuple:
        return item in container
    if isinstance(container, _HASHED):
        item = as_key(item, "in")
    if isinstance(item, Choice):
        return select(item, lambda each: in_(each, container))
    if isinstance(container, Choice):
        return select(container, lambda each: in_(item, each))
    if is_staged_text(container) or (type(container) is str and is_staged_text(item)):
        return contains_text(container, item)
    if ctx.builder is not None and type(container) is Deque:
        container = items_of_deque(container)
    many = as_staged_list(container) if ctx.builder is not None else None
    if many is not None and not many.is_generator:
        return contains(item, many)
    if symbolic(container) is not None or _holds_tensor(item) or _holds_tensor(container):
        return stage_contains(item, container)
    return operator.contains(container, item)


def _holds_tensor(value: Any) -> bool:
    if isinstance(value, Choice) or is_staged_text(value) or compares_by_identity(value):
        return True
    if ctx.builder is None or symbolic(value) is not None:
        return ctx.builder is not None
    return not isinstance(value, dict) and any(_holds_tensor(each) for _, each in children(value) or ())


def not_in(item: Any, container: Any) -> Any:
    """``item not in container``."""
    return not_(in_(item, container))
