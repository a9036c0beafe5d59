"""How kernel text for the CPU is spelled: types, literals, memory, the head of a kernel file.

The loop program above this (which loops, which expressions) doesn't depend on it; another device brings its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from runtime.dtypes import DType

HEAD = """import math

import numpy as np

import runtime.codegen.kernel_library.functions as lib
"""

INDENT = "    "


def type_name(dtype: DType) -> str:
    """`np.float32`, as an expression that also converts."""
    return "np.bool_" if dtype.is_bool else f"np.{dtype.name}"


def literal(value: Any, dtype: DType) -> str:
    """A scalar constant of exactly this dtype.

    Plain Python numbers are float64 and int64 to numba; everything else names its type.
    """
    if dtype.is_bool:
        return "True" if value else "False"
    if dtype.is_floating:
        number = float(value)
        if math.isnan(number):
            text = "np.nan"
        elif math.isinf(number):
            text = "np.inf" if number > 0 else "-np.inf"
        else:
            # float32 values print with the fewest digits that give the same float32.
            text = str(dtype.np.type(value)) if dtype.name == "float32" else repr(number)
        if dtype.name == "float64":
            return f"({text})" if text.startswith("-") else text
        return f"{type_name(dtype)}({text})"
    number = int(value)
    if dtype.name == "int64" and number > -(2**63):
        return str(number) if number >= 0 else f"({number})"
    return f"{type_name(dtype)}({number})"


def narrow(text: str, dtype: DType) -> str:
    """The result of an arithmetic expression over operands of `dtype`, back in `dtype`.

    numba widens small integers to 64 bits; floats, bools and int64 stay what they are.
    """
    if dtype.is_floating or dtype.is_bool or dtype.name == "int64":
        return text
    return f"{type_name(dtype)}({strip(text)})"


def convert(text: str, source: DType, target: DType) -> str:
    """A cast. Floats become integers by losing their fraction; `lib` defines what out of range means."""
    if source is target:
        return text
    if target.is_bool:
        return f"({text} != {literal(0, source)})"
    if source.is_floating and target.is_integer:
        return f"lib.to_{target.name}({strip(text)})"
    return f"{type_name(target)}({strip(text)})"


# Functions that loops can vectorise, our own: the C library computes one number at a time. `math` has no sigmoid and no
# softplus; the ops' rules name them all the same, since they are better computed as one function.
OWN = (
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "erf", "erfc", "exp", "expm1", "log",
    "log1p", "pow", "sigmoid", "sin", "sinh", "softplus", "tan", "tanh",
)  # fmt: skip
# Where there is one number only, the C library's tables answer these in half the time.
_QUICK_ALONE = {"exp", "log", "pow"}


def _calls(names: Iterable[str]) -> re.Pattern[str]:
    return re.compile(rf"\bmath\.(?=(?:{'|'.join(names)})\()")


_CALL = _calls(OWN)
_CALL_ALONE = _calls(name for name in OWN if name not in _QUICK_ALONE)


def fast(text: str, dtype: DType, alone: bool = False) -> str:
    """The expression with our own vector math where there is some; `alone`: not in a loop over elements."""
    if not dtype.is_floating:
        return text
    return (_CALL_ALONE if alone else _CALL).sub("lib.", text)


def strip(text: str) -> str:
    """The expression without brackets around the whole of it."""
    while text.startswith("(") and text.endswith(")"):
        depth = 0
        for position, char in enumerate(text):
            depth += (char == "(") - (char == ")")
            if depth == 0 and position < len(text) - 1:
                return text
        text = text[1:-1]
    return text


def allocate(size: str, dtype: DType) -> str:
    """An uninitialised flat buffer."""
    return f"np.empty({size}, {type_name(dtype)})"


def indented(block: Sequence[Any], depth: int, format_leaf: Any) -> list[str]:
    """The lines of nested blocks: a list is a deeper block, anything else is formatted by `format_leaf`."""
    lines: list[str] = []
    for item in block:
        if isinstance(item, list):
            lines += indented(item, depth + 1, format_leaf)
        else:
            lines.append(INDENT * depth + (item if isinstance(item, str) else format_leaf(item)))
    return lines
