"""Exceptions of the runtime, under TensorFlow's names (`ag.errors`)."""

from __future__ import annotations


class OpError(Exception):
    """Base of the errors that running an op raises."""

    def __init__(self, message: str, op: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.op = op


class InvalidArgumentError(OpError):
    """An op got a value, shape or dtype that it can't take."""


class FailedAssertion(InvalidArgumentError, AssertionError):
    """An `assert` on a tensor that doesn't hold.

    TensorFlow raises InvalidArgumentError for it, Python AssertionError; this is both.
    """


class UnsetVariableError(InvalidArgumentError, UnboundLocalError):
    """A variable that a loop or branch on tensors would have set is used where it has no value.

    TensorFlow raises InvalidArgumentError for it, Python UnboundLocalError; this is both.
    """


class UnsetItemError(InvalidArgumentError, KeyError):
    """The same of an item of a container."""


class UnsetAttributeError(InvalidArgumentError, AttributeError):
    """The same of an attribute."""


class NoneValueError(InvalidArgumentError, TypeError, ValueError):
    """A variable that is None on some ways through the program is used as a tensor on one of them.

    TensorFlow refuses such programs with ValueError; Python raises TypeError for what isn't done with None.
    """


class DTypeError(InvalidArgumentError, TypeError):
    """Operands of dtypes that an op doesn't take, or that don't mix.

    TensorFlow raises InvalidArgumentError for this in eager code and TypeError while tracing; this is both.
    """


class FailedPreconditionError(OpError):
    """The system is not in a state that the operation needs."""


class NotFoundError(OpError):
    """Something that was asked for doesn't exist."""


class OutOfRangeError(OpError):
    """An iterator ran past its end."""


class UnimplementedError(OpError):
    """A documented combination that has no implementation."""


class InternalError(OpError):
    """An invariant of this project is broken; please report it."""


class OperatorNotAllowedInGraphError(TypeError):
    """A symbolic tensor was used where Python needs a value (`if t:`, `int(t)`, iterating it)."""


class InaccessibleTensorError(TypeError, ValueError):
    """A symbolic tensor was used outside the function that it was traced in. TensorFlow raises a TypeError for it."""


class KernelError(InternalError):
    """Generated code could not be compiled; the interpreter takes over, with a warning."""


class CompilationWarning(RuntimeWarning):
    """A graph stays on the interpreter because its native code could not be made; please report it."""


# What generated code may raise at run time, by the name that the IR stores.
BY_NAME: dict[str, type[Exception]] = {
    cls.__name__: cls
    for cls in (
        InvalidArgumentError, FailedPreconditionError, NotFoundError, OutOfRangeError, UnimplementedError,
        InternalError, AssertionError, UnboundLocalError, ValueError, TypeError, IndexError, ZeroDivisionError,
        RuntimeError, OverflowError, ArithmeticError, KeyError, AttributeError,
        UnsetVariableError, UnsetItemError, UnsetAttributeError, NoneValueError,
    )
}  # fmt: skip
BY_NAME["AssertionError"] = FailedAssertion
