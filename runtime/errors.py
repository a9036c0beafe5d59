"""Exceptions of the runtime, under TensorFlow's names (`ag.errors`)."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[1]
_OWN = (str(_ROOT / "autograph") + os.sep, str(_ROOT / "runtime") + os.sep)
# What stands in a message before the user's line.
AT_SPAN = "\n  at "


def place(filename: str, line: int) -> str:
    """A line of a file as messages name it: `model.py:12`, or `Cell In[3], line 2` in a notebook."""
    cell = cell_of(filename)
    return f"{cell}, line {line}" if cell else f"{filename}:{line}"


def cell_of(filename: str) -> str:
    """`Cell In[3]` for a cell of a notebook, else ""."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    named = getattr(getattr(shell, "compile", None), "format_code_name", None)  # since IPython 8
    found = named(filename) if named is not None else None
    return " ".join(found) if found else ""


def describe_span(span: Any) -> str:
    """`file.py:12, in f` and the source line, or '' when the span is unknown."""
    if not span:
        return ""
    filename, line, function = span
    source = linecache.getline(filename, line).strip()
    text = f"{place(filename, line)}, in {function}"
    return f"{text}\n    {source}" if source else text


def is_own_file(filename: str) -> bool:
    """Whether a file belongs to this project's packages."""
    return filename.startswith(_OWN)


class OpError(Exception):
    """Base of the errors that running an op raises.

    Made from a message, or from `node_def, op, message` as in TensorFlow, where a program gives None for the first two.
    `OpError` itself takes an error code after them.
    """

    def __init__(self, node_def: Any = None, op: Any = None, message: str | None = None, *details: Any) -> None:
        if message is None:
            node_def, message = None, node_def
        super().__init__(message)
        self.node_def = node_def
        self.op = op
        self.message = message
        self._code = details[0] if details and isinstance(details[0], int) else None

    @property
    def error_code(self) -> int:
        """TensorFlow's number of the kind of error, such as 3 (`INVALID_ARGUMENT`)."""
        own = next((CODES[cls.__name__] for cls in type(self).__mro__ if cls.__name__ in CODES), None)
        return next(code for code in (own, self._code, UNKNOWN) if code is not None)


class InvalidArgumentError(OpError):
    """An operation got a value, shape or dtype that it doesn't accept."""


class IndexOutOfBoundsError(InvalidArgumentError, IndexError):
    """An index is outside of its dimension.

    TensorFlow raises InvalidArgumentError for it, Python and NumPy IndexError; this is both.
    """


class FailedAssertion(InvalidArgumentError, AssertionError):
    """An `assert` on a tensor that doesn't hold.

    TensorFlow raises InvalidArgumentError for it, Python AssertionError; this is both.
    """


class DivisionByZeroError(InvalidArgumentError, ZeroDivisionError):
    """An integer division by zero.

    TensorFlow raises InvalidArgumentError for it, Python ZeroDivisionError; this is both.
    """


class GeneratorTypeError(InvalidArgumentError, TypeError):
    """A TypeError in the Python code of a dataset. TensorFlow raises InvalidArgumentError for it; this is both."""


class GeneratorValueError(InvalidArgumentError, ValueError):
    """A ValueError in the Python code of a dataset. TensorFlow raises InvalidArgumentError for it; this is both."""


class UnsetVariableError(InvalidArgumentError, UnboundLocalError):
    """A variable that a loop or branch on tensors would have set is used where it has no value.

    TensorFlow raises InvalidArgumentError for it, Python UnboundLocalError; this is both.
    """


class UnsetItemError(InvalidArgumentError, KeyError):
    """An item of a container that a loop or branch on tensors would have set is used where it has no value.

    TensorFlow raises InvalidArgumentError for it, Python KeyError; this is both.
    """


class UnsetAttributeError(InvalidArgumentError, AttributeError):
    """An attribute that a loop or branch on tensors would have set is used where it has no value.

    TensorFlow raises InvalidArgumentError for it, Python AttributeError; this is both.
    """


class NoneValueError(InvalidArgumentError, TypeError, ValueError):
    """A variable that is None on some paths through the program is used as a tensor on one of them.

    TensorFlow refuses such programs with ValueError; Python raises TypeError where None can't be used.
    """


class DTypeError(InvalidArgumentError, TypeError):
    """An operation got a dtype that it doesn't accept, or dtypes that can't be combined.

    TensorFlow raises InvalidArgumentError for this in eager code and TypeError while tracing; this is both.
    """


class FailedPreconditionError(OpError):
    """The system isn't in the state that the operation requires."""


class NotFoundError(OpError):
    """Something requested doesn't exist."""


class OutOfRangeError(OpError):
    """An iterator ran past its end."""


class UnimplementedError(OpError):
    """Something that this project, or this machine, doesn't support."""


class AbortedError(OpError):
    """An operation was aborted, usually because another one failed."""


class AlreadyExistsError(OpError):
    """Something to be created already exists."""


class CancelledError(OpError):
    """An operation was cancelled."""


class DataLossError(OpError):
    """Data that can't be recovered is lost."""


class DeadlineExceededError(OpError):
    """An operation didn't finish in time."""


class PermissionDeniedError(OpError):
    """The caller doesn't have permission."""


class ResourceExhaustedError(OpError, MemoryError):
    """Memory or another resource is exhausted. It is also a MemoryError."""


class UnauthenticatedError(OpError):
    """The caller has no valid credentials."""


class UnavailableError(OpError):
    """A service or worker isn't available at the moment."""


class UnknownError(OpError):
    """An error that has no class of its own."""


class InternalError(OpError):
    """An invariant of this project is broken; please report it."""


class OperatorNotAllowedInGraphError(TypeError):
    """A symbolic tensor was used where Python needs a value (`if t:`, `int(t)`, iterating it)."""


# What says where in the user's code a value is asked for, why, and what to do instead: `explain_refusals`.
_where: Callable[[str, str], str] = "\n  cause: {}\n  fix: {}".format
# What a program calls a tensor, as far as it has a variable for it.
_variable_of: Callable[[Any], str | None] = lambda tensor: None  # noqa: E731
# Remembers a refusal, which must end the trace even if a handler of the program's catches it.
_keep: Callable[[Exception], None] = id  # type: ignore[assignment]


def explain_refusals(
    where: Callable[[str, str], str], keep: Callable[[Exception], None], variable_of: Callable[[Any], str | None]
) -> None:
    """Sets what gives the lines behind the message of a refusal, from the usual cause and fix, what remembers one, and
    what names a tensor. The compiler does, which knows the user's code."""
    global _where, _keep, _variable_of
    _where, _keep, _variable_of = where, keep, variable_of


def variable_of(tensor: Any) -> str | None:
    """The name of the variable that holds a tensor in the innermost of the user's functions that run, if there is
    one."""
    return _variable_of(tensor)


NO_VALUE = "while a function is traced its tensors are symbolic; they have values only when the program runs"


def no_value(message: str, fix: str, cause: str = NO_VALUE) -> OperatorNotAllowedInGraphError:
    """The error for a symbolic tensor that is asked for its value."""
    error = OperatorNotAllowedInGraphError(message + _where(cause, fix))
    keep_refusal(error)
    return error


def keep_refusal(error: Exception) -> None:
    """Has an error that says that something can't be traced end the trace, even if a handler of the program's hides it.

    To be called where it is made, on the stack that it will be raised on.
    """
    _keep(error)


class InaccessibleTensorError(TypeError, ValueError):
    """A symbolic tensor was used outside the function that it was traced in. TensorFlow raises a TypeError for it."""


def leaked(value: Any, function: str, user: str | None = None) -> InaccessibleTensorError:
    """The error for a value of a traced function's graph that is used outside of it.

    function: the name of the function or block that it belongs to; user: that of the traced function that uses it.
    """
    if value.node is not None and value.node.span:
        filename, line, within = value.node.span
        origin = f", made at {place(filename, line)}, in {within},"
    else:
        origin = f" '{value.name}'" if value.name else ""
    where = "outside of it" if user is None else f"in '{user}', which can't see it"
    return InaccessibleTensorError(
        f"a tensor{origin} belongs to the function '{function}' and is used {where}{_where(_LEAK, _LEAK_FIX)}"
    )


_LEAK = "it was stored in an outer object while the function was traced, and has a value only while the function runs"
_LEAK_FIX = "return it from the function, or keep it in an ag.Variable that is made outside: `v.assign(x)`"


class KernelError(InternalError):
    """Generated code could not be compiled; the interpreter takes over, with a warning. node: the op, if known."""

    node: Any = None


class CompilationWarning(RuntimeWarning):
    """A graph runs on the interpreter because compiling it failed (please report it)."""


class PerformanceWarning(UserWarning):
    """A program is right, but far slower than it need be. The message names the line, the cause and what to do."""


class RetracingWarning(PerformanceWarning):
    """A function is traced again and again; tracing costs far more than running."""


class CacheWarning(RuntimeWarning):
    """Compiled kernels can't be kept on disk."""


# What generated code may raise at run time, by the name that the IR stores.
BY_NAME: dict[str, type[Exception]] = {
    cls.__name__: cls
    for cls in (
        InvalidArgumentError, FailedPreconditionError, NotFoundError, OutOfRangeError, UnimplementedError,
        InternalError, AssertionError, UnboundLocalError, ValueError, TypeError, IndexError, ZeroDivisionError,
        RuntimeError, RecursionError, OverflowError, ArithmeticError, KeyError, AttributeError, StopIteration,
        IndexOutOfBoundsError, UnsetVariableError, UnsetItemError, UnsetAttributeError, NoneValueError,
        DivisionByZeroError,
    )
}  # fmt: skip
BY_NAME["AssertionError"] = FailedAssertion

# TensorFlow's numbers of the kinds of errors: `error_code` of each class and its subclasses.
CODES: dict[str, int] = {
    "CancelledError": 1, "UnknownError": 2, "InvalidArgumentError": 3, "DeadlineExceededError": 4, "NotFoundError": 5,
    "AlreadyExistsError": 6, "PermissionDeniedError": 7, "ResourceExhaustedError": 8, "FailedPreconditionError": 9,
    "AbortedError": 10, "OutOfRangeError": 11, "UnimplementedError": 12, "InternalError": 13, "UnavailableError": 14,
    "DataLossError": 15, "UnauthenticatedError": 16,
}  # fmt: skip
OK = 0
CANCELLED, UNKNOWN, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED = range(1, 8)
RESOURCE_EXHAUSTED, FAILED_PRECONDITION, ABORTED, OUT_OF_RANGE, UNIMPLEMENTED, INTERNAL = range(8, 14)
UNAVAILABLE, DATA_LOSS, UNAUTHENTICATED = range(14, 17)
