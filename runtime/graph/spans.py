"""Spans in messages: where in the user's file something went wrong."""

from __future__ import annotations

from typing import Any

from runtime import errors
from runtime.errors import AT_SPAN, describe_span


def with_op(message: str, error: type[BaseException], node: Any) -> str:
    """The message of an error that a node raises, with TensorFlow's name of the op and the user's name of the node."""
    if node.op.has_user_messages or not issubclass(error, errors.OpError):
        return message
    if "[Op:" not in message:
        message += f" [Op:{node.op.label}]"
    if node.name and not node.name.endswith("/"):
        message += f" name: {node.name}"
    return message


def note_span(error: BaseException, span: Any) -> None:
    """Notes the user's line on an error whose message is the user's. Python shows notes from 3.11 on."""
    if span and hasattr(error, "add_note"):
        error.add_note(f"{AT_SPAN[1:]}{describe_span(span)}")


def at_span(error: Exception, span: Any) -> Exception:
    """The error with the user's line in its message; unchanged when it names one already, or when what it says isn't
    text and the class is the user's."""
    if not span or not error.args:
        return error
    # The message of an operation's error is text: tensors that an assertion shows become their values.
    said = str(error.args[0]) if isinstance(error, errors.OpError) else error.args[0]
    if not isinstance(said, str) or AT_SPAN in said:
        return error
    message = f"{said}{AT_SPAN}{describe_span(span)}"
    error.args = (message, *error.args[1:])
    if hasattr(error, "message"):
        error.message = message
    return error
