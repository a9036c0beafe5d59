"""The types of the results of operators, from the types of their operands.

Those of functions are in their rows (`functions.py`). No other place has such rules: expressions take their types from
here when they are made (`ir.py`), and so does inference in library functions, which are generic
(`runtime/llvm/infer.py`). numba has the same rules.

The functions raise Unsupported for operations that our own compiler doesn't have.
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.kernel_ir.types import (
    BOOL,
    FLOAT64,
    INT64,
    UINT64,
    Array,
    Scalar,
    Tuple,
    Type,
    Unsupported,
    arithmetic,
)

# --- operators -------------------------------------------------------------------------------------------------------

_BITWISE, _SHIFTS = frozenset({"&", "|", "^"}), frozenset({"<<", ">>"})


def binary(op: str, a: Type, b: Type) -> Type:
    """The type of `a op b`. Raises Unsupported for arrays."""
    if isinstance(a, Tuple) and isinstance(b, Tuple) and op == "+":
        return Tuple(a.items + b.items)
    if not isinstance(a, Scalar) or not isinstance(b, Scalar):
        raise Unsupported("an operator of arrays")
    if op == "/":
        return arithmetic(a, b) if a.is_float or b.is_float else FLOAT64
    if op in _BITWISE and a == b == BOOL:
        return BOOL
    if op in _SHIFTS:
        return UINT64 if a.kind == "u" else INT64
    return arithmetic(a, b)


def unary(op: str, operand: Type) -> Type:
    """The type of `op operand`. Raises Unsupported for truth values (but `not`) and arrays."""
    if op == "not":
        return BOOL
    if not isinstance(operand, Scalar) or operand == BOOL:
        raise Unsupported("an operator of a truth value or an array")
    if operand.is_float:
        return operand
    return UINT64 if operand.kind == "u" else INT64


def several(*items: Type) -> Tuple:
    """The type of a tuple of values of these types."""
    return Tuple(items)


def element(array: Type) -> Scalar:
    """The type of an element of a one-dimensional array. Raises Unsupported for anything else."""
    if not isinstance(array, Array) or array.rank != 1:
        raise Unsupported("an element of a value that isn't a flat array")
    return array.element


# --- assignments -----------------------------------------------------------------------------------------------------


def assigned(targets: Sequence[str], value: Type | None) -> dict[str, Type | None]:
    """The types of the variables that a value is assigned to, by name; None where the type isn't known."""
    if len(targets) > 1 and isinstance(value, Tuple):
        return dict(zip(targets, value.items))
    return dict.fromkeys(targets, value if len(targets) == 1 else None)
