"""Python code that asks tensors for their truth value where no operator can stand: matching, comparing tuples.

Such code asks in a fixed order. While it is traced, a symbolic tensor that is asked stops it; a ``cond`` is emitted for
the answer, and in each of its branches the code runs again from the start, with the answers given so far. So it means
what it means in Python, whatever the ways it takes. It must do nothing but compute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from autograph.operators.frame import Frame
from autograph.operators.staged_if import stage_branches
from autograph.operators.state import Slot
from autograph.operators.symbolic import condition
from runtime.context import ctx


class _Undecided(BaseException):
    """A truth value that the program will know when it runs. No handler of the user's may catch it."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor


def decided(function: Callable[[], Any], statement: str, state: Sequence[Slot] = (), frame: Frame | None = None) -> Any:
    """What ``function`` gives, for every way that the truth values it asks for can turn out.

    state, frame: the variables that it sets.
    """
    return _decided(function, statement, (), state, Frame(()) if frame is None else frame)


def _decided(
    function: Callable[[], Any], statement: str, answers: tuple[bool, ...], state: Sequence[Slot], frame: Frame
) -> Any:
    given = iter(answers)

    def decide(tensor: Any) -> bool:
        answer = next(given, None)
        if answer is None:
            raise _Undecided(tensor)
        return answer

    outside, ctx.decide = ctx.decide, decide
    try:
        return function()
    except _Undecided as found:
        tensor = found.tensor
    finally:
        ctx.decide = outside
    frame.restore()
    branches = [
        lambda answer=answer: _decided(function, statement, (*answers, answer), state, frame)
        for answer in (True, False)
    ]
    return stage_branches(condition(tensor, statement), branches, state, frame)
