"""``if`` statements and conditional expressions: Python's own on Python values, staged on symbolic tensors."""

from __future__ import annotations

from typing import Any

from autograph.operators.staged_if import stage_if
from autograph.operators.state import Block
from autograph.operators.symbolic import truth
from autograph.operators.unbound import run


def if_stmt(test: Any, body: Block, orelse: Block | None = None, names: tuple[str, ...] = ()) -> Any:
    """Runs ``body`` if ``test`` holds, else ``orelse``, and gives what that returns.

    names: the variables set in either that matter afterwards.
    """
    tensor = truth(test)
    if tensor is not None:
        return stage_if(tensor, body, orelse, names)
    block = body if test else orelse
    return None if block is None else run(block)


def if_exp(test: Any, body: Block, orelse: Block) -> Any:
    """The value of ``body()`` if ``test`` holds, else of ``orelse()``."""
    return if_stmt(test, body, orelse)
