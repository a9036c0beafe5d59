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
from autograph.operators.selecting import select
from autograph.operators.structure import New, Which, children, is_mutable, is_told_apart, which


def same(left: Any, right: Any) -> Any:
    """``left is right`` in a trace, of two that aren't one object and no choices: a bool, or a boolean tensor."""
    if is_told_apart(left) or is_told_apart(right):
        return type(left) is type(right) and _same_object(which(left), which(right))
    if is_mutable(left) and is_mutable(right) and may_be_one(left, right):
        raise _unknown("is", left)
    return same_value(left, right)


def _same_object(one: Any, other: Any) -> Any:
    """Whether two identities are one."""
    if isinstance(one, Choice):
        return select(one, lambda each: _same_object(each, other))
    if isinstance(other, Choice):
        return _same_object(other, one)
    for new, known in ((one, other), (other, one)):
        if type(new) is New and (type(known) is New or not new.is_outside(known.object)):
            raise _unknown("is", known.object)
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
        f"`{question}` of an object of class {kind} that a branch or loop on tensors has chosen",
        location=user_location(),
        cause="the program holds a copy of what was chosen, and doesn't know which object of Python's it is",
        fix="compare an attribute that tells the objects apart, or choose between objects made before the function",
    )


def refuse_copies(question: str, value: Any) -> None:
    """Raises StagingTypeError if code of C would compare copies of objects that are told apart by their identity."""
    if compares_by_identity(value):
        found = which(value)
        if type(found) is not Which or found.object is not value:
            raise _unknown(question, value)
    elif isinstance(value, (list, tuple)):
        for _, item in children(value) or ():
            refuse_copies(question, item)
