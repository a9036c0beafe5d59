"""``assert``: Python's own on Python values, checked when the program runs on symbolic tensors."""

from __future__ import annotations

from typing import Any

from autograph.operators.state import Block
from autograph.operators.symbolic import condition, truth
from autograph.operators.unbound import run
from runtime import nest
from runtime.context import ctx
from runtime.errors import FailedAssertion
from runtime.ops.control import assert_op, raise_op
from runtime.ops.convert import is_tensor_like
from runtime.ops.strings.staged_string import StagedText


def failed(message: Any = "") -> AssertionError:
    """The error of an ``assert`` that a ``try`` may catch."""
    if ctx.builder is None:
        return AssertionError(message) if message != "" else AssertionError()
    return FailedAssertion(message)


def assert_stmt(test: Any, message: Block | None = None) -> None:
    """Raises AssertionError with ``message()`` unless ``test`` holds."""
    tensor = truth(test)
    if tensor is None:
        if not test:
            raise AssertionError(run(message)) if message is not None else AssertionError()
        return
    text = "" if message is None else run(message)
    # Tensors in a message are shown with the values that they have then.
    if type(text) is StagedText or any(map(is_tensor_like, nest.flatten(text))):
        raise_op(FailedAssertion(text), unless=condition(tensor, "assert"))
        return
    text = str(text)
    assert_op(condition(tensor, "assert"), text, "AssertionError")
