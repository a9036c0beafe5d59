"""``match`` on symbolic tensors: Python does the matching, once for every way that the comparisons can turn out.

Matching asks for truth values in a fixed order. While a pattern is traced, a symbolic tensor that is asked stops the
run; a ``cond`` is emitted for it, and in each of its branches the pattern is matched again from the start, with the
answers given so far. So all patterns, also those inside of classes and mappings, mean what they mean in Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from autograph.operators.frame import Frame
from autograph.operators.staged_if import stage_branches
from autograph.operators.state import Block, Slot, slots
from autograph.operators.symbolic import condition
from autograph.operators.unbound import run
from runtime.context import ctx


class _Undecided(BaseException):
    """A truth value that the program will know when it runs. No handler of the user's may catch it."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor


def match_stmt(body: Block, names: tuple[str, ...] = ()) -> None:
    """Runs a block that does nothing but match a pattern and note the outcome.

    names: the variables set in it that matter afterwards.
    """
    if ctx.builder is None:
        run(body)
    else:
        _match(body, [], slots(names, (body,)), Frame((body,)))


def _match(body: Block, answers: Sequence[bool], state: Sequence[Slot], frame: Frame) -> None:
    given = iter(answers)

    def decide(tensor: Any) -> bool:
        answer = next(given, None)
        if answer is None:
            raise _Undecided(tensor)
        return answer

    outside, ctx.decide = ctx.decide, decide
    try:
        run(body)
        return
    except _Undecided as found:
        tensor = found.tensor
    finally:
        ctx.decide = outside
    frame.restore()
    branches = [lambda answer=answer: _match(body, [*answers, answer], state, frame) for answer in (True, False)]
    stage_branches(condition(tensor, "match"), branches, state, frame)
