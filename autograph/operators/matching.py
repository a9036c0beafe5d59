"""``match`` on symbolic tensors: Python does the matching, once for every way that its comparisons can turn out.

What Python tells by the class or the identity of a part, without a comparison, it asks classes of ours instead: the
part may be a number or flag of the program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from autograph.operators.deciding import decided
from autograph.operators.frame import Frame
from autograph.operators.identity import is_instance
from autograph.operators.logic import is_
from autograph.operators.special_methods import operate
from autograph.operators.state import Block, slots
from autograph.operators.unbound import run
from runtime.context import ctx


def match_stmt(body: Block, names: tuple[str, ...] = ()) -> None:
    """Runs a block that does nothing but match a pattern and note the outcome.

    names: the variables set in it that matter afterwards.
    """
    if ctx.builder is None:
        run(body)
    else:
        decided(lambda: run(body), "match", slots(names, (body,)), Frame((body,)))


class _Pattern(type):
    """The type of classes that stand in patterns; ``asked`` tells whether a value is an instance."""

    asked: Callable[[Any], Any]

    def __instancecheck__(cls, value: Any) -> bool:
        return bool(cls.asked(value))


def _kind(kind: type) -> type:
    # Derived from a built-in class it takes, as that does, one pattern for the value itself: `case int(n)`.
    base = int if kind is bool else kind
    return _Pattern(
        f"{kind.__name__}_pattern", (base,), {"asked": staticmethod(lambda value: is_instance(value, kind))}
    )


_KINDS = {kind: _kind(kind) for kind in (bool, int, float, str)}
_VALUES = {
    value: _Pattern(f"{value}_pattern", (), {"asked": staticmethod(lambda found, value=value: is_(found, value))})
    for value in (True, False, None)
}


def kind_pattern(kind: Any) -> Any:
    """What stands for a built-in class in a class pattern: ``case (int(n), _)``."""
    return _KINDS.get(kind, kind) if ctx.builder is not None else kind


def equal_pattern(value: Callable[[], Any]) -> type:
    """The class of which all that is equal to a value is an instance: for ``case (Color.RED, _)``."""
    return _Pattern("equal_pattern", (), {"asked": staticmethod(lambda found: operate(found, "==", value()))})


def value_pattern(value: bool | None) -> Any:
    """The class of which nothing but a value is an instance: for ``case (True, _)``."""
    return _VALUES[value]
