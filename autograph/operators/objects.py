"""Objects told apart by their identity, where the program holds copies of them.

An object that a branch or loop exchanges for another one of its class becomes a copy with the attributes of either
(structure.py). Beside these the program holds which object it stands for: `is` asks for that, and so does all of
Python's that compares objects of a class without ``__eq__``.
"""

from __future__ import annotations

from typing import Any

from autograph.errors import StagingTypeError, user_location
from autograph.operators.aliases import may_be_one
from autograph.operators.choices import Alternatives, Choice
from autograph.operators.identity import same_value
from autograph.operators.selecting import raise_at_run_time, select
from autograph.operators.structure import New, Which, children, is_mutable, is_told_apart, which
from runtime.ops.convert import convert_to_tensor


def same(left: Any, right: Any) -> Any:
    """``left is right`` in a trace, of two that aren't one object and no choices: a bool, or a boolean tensor."""
    if is_told_apart(left) or is_told_apart(right):
        return type(left) is type(right) and _same_object(which(left), which(right), left)
    if is_mutable(left) and is_mutable(right) and may_be_one(left, right):
        raise _unknown("is", left)
    return same_value(left, right)


def _same_object(one: Any, other: Any, value: Any) -> Any:
    """Whether two identities are one. value: an object with one of them."""
    if isinstance(one, Choice):
        return select(one, lambda each: _same_object(each, other, value))
    if isinstance(other, Choice):
        return _same_object(other, one, value)
    for new, known in ((one, other), (other, one)):
        if type(new) is New and (type(known) is New or not new.is_outside(known.object)):
            raise _unknown("is", value)
    return one is other


def compares_by_identity(value: Any) -> bool:
    """Whether ``==`` tells objects apart that a program may have copied, as ``is`` does."""
    return is_told_apart(value) and type(value).__eq__ is object.__eq__


def as_key(value: Any, question: str) -> Any:
    """What a hash, an ``id`` or code of C tells from others by its identity: the object itself, or a choice of some.

    question: what asks.
    """
    if not compares_by_identity(value):
        return value
    found = which(value)
    each_found = found.ag_alternatives if isinstance(found, Choice) else (found,)
    if any(type(each) is New for each in each_found):
        raise _unknown(question, value)
    objects = [each.object for each in each_found]
    return Choice(found.ag_index, Alternatives(objects)) if isinstance(found, Choice) else objects[0]


def _unknown(question: str, value: Any) -> StagingTypeError:
    kind = type(value).__name__
    return StagingTypeError(
        f"`{question}` of an object of class {kind} that a branch or loop on tensors has chosen or taken from a list",
        location=user_location(),
        cause="the program holds a copy of what was chosen, and doesn't know which object of Python's it is",
        fix="compare an attribute that tells the objects apart, or choose between objects made before the function",
    )


class _Untold:
    """Stands in a comparison for an object that can't be told from the one in its place on the other side."""

    def __init__(self, kind: type) -> None:
        self.kind = kind

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Untold):
            return False
        error = TypeError(f"objects of class {self.kind.__name__} have no order, and all before them is equal")
        raise_at_run_time(error, unless=convert_to_tensor(False))
        return True

    __hash__ = None  # type: ignore[assignment]


def comparable(one: Any, other: Any) -> tuple[Any, Any]:
    """Two tuples or lists whose order is asked for.

    Where that depends on objects which are told apart by their identity, and may be copies, the program raises
    TypeError.
    """
    return (_without_objects(one), _without_objects(other)) if _holds_copy(one) or _holds_copy(other) else (one, other)


def _holds_copy(value: Any) -> bool:
    return type(value) in (tuple, list) and any(_is_copy(each) or _holds_copy(each) for each in value)


def _without_objects(value: Any) -> Any:
    if type(value) not in (tuple, list):
        return value
    return type(value)(
        [_Untold(type(each)) if compares_by_identity(each) else _without_objects(each) for each in value]
    )


def _is_copy(value: Any) -> bool:
    if not compares_by_identity(value):
        return False
    found = which(value)
    return type(found) is not Which or found.object is not value


def refuse_copies(question: str, value: Any) -> None:
    """Raises StagingTypeError if code of C would compare copies of objects that are told apart by their identity."""
    if _is_copy(value):
        raise _unknown(question, value)
    elif isinstance(value, (list, tuple)):
        for _, item in children(value) or ():
            refuse_copies(question, item)
