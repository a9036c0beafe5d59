"""Loops whose condition changes state: it is evaluated before the loop and after each iteration, as Python does.

while self.advance():          go = self.advance()
    self.use()            →    while go:
                                   self.use()
                                   go = self.advance()
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from autograph.errors import StagingError, user_location
from autograph.operators.state import LocalSlot
from autograph.operators.symbolic import condition, truth
from runtime.ops.convert import convert_to_tensor


class ConditionChangesState(StagingError):
    """The condition of a loop changes state, but a staged one is evaluated once more than the body."""


def condition_changes_state() -> ConditionChangesState:
    """The error for the condition of the loop that is being staged."""
    return ConditionChangesState(
        "the condition of a loop on tensors changes state",
        location=user_location(),
        cause="the condition is evaluated once more than the body",
        fix="change the state in the loop's body",
    )


def decided(going: Any) -> Any:
    """The value of a loop's condition as a tensor."""
    tensor = truth(going)
    return condition(convert_to_tensor(going) if tensor is None else tensor, "while")


def moved_test(going: Any, test: Callable[[], Any], body: Callable[[], Any]) -> tuple[LocalSlot, Callable[[], None]]:
    """The variable that says whether the loop goes on, now as `going` says, and a body that sets it."""
    go = LocalSlot("go", decided(going))

    def step() -> None:
        body()
        go.set(decided(test()))

    return go, step
