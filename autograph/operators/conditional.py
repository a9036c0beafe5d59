"""``if`` statements and conditional expressions: Python's own on Python values, staged on symbolic tensors."""

from __future__ import annotations

from typing import Any

from autograph.operators.staged_if import stage_if
from autograph.operators.state import Block
from autograph.operators.symbolic import DECIDED, truth
from autograph.operators.unbound import as_unbound_local


def if_stmt(test: Any, body: Block, orelse: Block | None = None, names: tuple[str, ...] = ()) -> Any:
    """Runs ``body`` if ``test`` holds, else ``orelse``, and gives what that returns.

    names: the variables set in either that matter afterwards.
    """
    if test is not True and test is not False and type(test) not in DECIDED:
        tensor = truth(test)
        if tensor is not None:
            return stage_if(tensor, body, orelse, names)
    block = body if test else orelse
    if block is None:
        return None
    # What `run` does, without the cost of calling it.
    try:
        return block()
    except NameError as error:
        changed = as_unbound_local(error, block.__code__)
        if changed is error:
            raise
    raise changed


def if_exp(test: Any, body: Block, orelse: Block) -> Any:
    """The value of ``body()`` if ``test`` holds, else of ``orelse()``."""
    if test is not True and test is not False and type(test) not in DECIDED and truth(test) is not None:
        return if_stmt(test, body, orelse)
    block = body if test else orelse
    try:
        return block()
    except NameError as error:
        changed = as_unbound_local(error, block.__code__)
        if changed is error:
            raise
    raise changed
