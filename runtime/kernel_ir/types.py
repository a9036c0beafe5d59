"""The types of values in kernels, and their common types: numba's, so that all back ends give the same numbers."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

from runtime.dataclass import dataclass


class Unsupported(Exception):
    """The kernel IR or our own compiler has no form for something; numba compiles the kernel."""


@dataclass(frozen=True)
class Scalar:
    """A machine number. kind: 'b' (bool), 'i', 'u', 'f', 'h' (a float of 16 bits: an unsigned integer of these, with
    which nothing is computed); `ir` is its type in registers, `memory` in arrays. lanes: how many of them stand side by
    side in a vector (see `runtime/llvm`)."""

    name: str
    kind: str
    bits: int
    lanes: int = 1

    # Types are compared and hashed for every instruction, so only name and lanes are considered.
    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Scalar) and self.name == other.name and self.lanes == other.lanes)

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles contain only the fields, not the cached properties, so that they are the same each time."""
        return Scalar, (self.name, self.kind, self.bits, self.lanes)

    @functools.cached_property
    def ir(self) -> str:
        one = f"i{self.bits}" if self.kind != "f" else "float" if self.bits == 32 else "double"
        return one if self.lanes == 1 else f"<{self.lanes} x {one}>"

    def times(self, lanes: int) -> Scalar:
        """A vector of this type with so many lanes."""
        return self if lanes == self.lanes else replace(self, lanes=lanes)

    @functools.cached_property
    def memory(self) -> str:
        return "i8" if self.kind == "b" else self.ir

    @property
    def size(self) -> int:
        """Bytes in an array."""
        return max(self.bits // 8, 1)

    @functools.cached_property
    def is_float(self) -> bool:
        return self.kind == "f"

    @functools.cached_property
    def is_signed(self) -> bool:
        return self.kind == "i"


@dataclass(frozen=True)
class Array:
    """A C-contiguous array."""

    element: Scalar
    rank: int = 1


@dataclass(frozen=True)
class Tuple:
    """The type of a tuple: of a function's results, or of a variable that holds several values."""

    items: tuple[Type, ...]


Type = Scalar | Array | Tuple

BOOL = Scalar("bool", "b", 1)
INT64 = Scalar("int64", "i", 64)
UINT64 = Scalar("uint64", "u", 64)
FLOAT32 = Scalar("float32", "f", 32)
FLOAT64 = Scalar("float64", "f", 64)
FLOAT16, BFLOAT16 = Scalar("float16", "h", 16), Scalar("bfloat16", "h", 16)
_INTEGERS = [Scalar(f"{'u' * (kind == 'u')}int{bits}", kind, bits) for kind in "iu" for bits in (8, 16, 32, 64)]
SCALARS = {scalar.name: scalar for scalar in (BOOL, FLOAT16, BFLOAT16, FLOAT32, FLOAT64, *_INTEGERS)}
INT32, UINT16, UINT32 = SCALARS["int32"], SCALARS["uint16"], SCALARS["uint32"]
SCALARS["bool_"] = SCALARS["boolean"] = BOOL


def unified(a: Type | None, b: Type | None) -> Type | None:
    """The type of a variable that is assigned values of both types; None is an unknown type."""
    if a is None or b is None or a == b:
        return b if a is None else a
    if isinstance(a, Scalar) and isinstance(b, Scalar):
        return promoted(a, b)
    if isinstance(a, Tuple) and isinstance(b, Tuple) and len(a.items) == len(b.items):
        items = [unified(x, y) for x, y in zip(a.items, b.items)]
        return Tuple(tuple(item for item in items if item is not None))
    raise Unsupported(f"{a} and {b} in one variable")


def promoted(a: Scalar, b: Scalar) -> Scalar:
    """The smallest type that holds both, by numba's rules."""
    if a == b:
        return a
    if a.kind == "h" or b.kind == "h":
        raise Unsupported(f"{a.name} with {b.name}")
    if a.kind == "b" or b.kind == "b":
        return b if a.kind == "b" else a
    if a.is_float or b.is_float:
        return _promoted_float(a, b)
    if a.kind == b.kind:
        return a if a.bits > b.bits else b
    signed, unsigned = (a, b) if a.is_signed else (b, a)
    if unsigned.bits >= 64:
        raise Unsupported("int64 with uint64")
    return SCALARS[f"int{max(signed.bits, 2 * unsigned.bits)}"]


def _promoted_float(a: Scalar, b: Scalar) -> Scalar:
    if a.is_float and b.is_float:
        return FLOAT64
    number, integer = (a, b) if a.is_float else (b, a)
    return number if integer.bits <= 16 else FLOAT64


def arithmetic(a: Scalar, b: Scalar) -> Scalar:
    """The type of `+`, `-`, `*`, `//`, `%` and `**` of two numbers; that of integers has 64 bits."""
    if a.kind == "h" or b.kind == "h":
        raise Unsupported(f"arithmetic with {a.name} and {b.name}")
    if a.is_float or b.is_float:
        return promoted(a, b)
    return UINT64 if a.kind == "u" and b.kind == "u" else INT64


def results(returned: Type | None) -> tuple[Type, ...]:
    """The types of a function's results, from the type of its return value."""
    if returned is None:
        return ()
    return returned.items if isinstance(returned, Tuple) else (returned,)


def parsed(text: str) -> Scalar | Array:
    """The type that a signature names: `float32`, `int64[:,::1]`."""
    name, bracket, dims = text.partition("[")
    scalar = SCALARS.get(name)
    if scalar is None:
        raise Unsupported(f"type {name}")
    return Array(scalar, dims.count(",") + 1) if bracket else scalar


def signature(text: str) -> list[Scalar | Array]:
    """The types of a kernel's parameters: `(float32[:,::1], int64)`."""
    parts: list[str] = []
    depth, part = 0, ""
    for letter in text.strip()[1:-1] + ",":
        depth += {"[": 1, "]": -1}.get(letter, 0)
        if letter == "," and not depth:
            parts.append(part.strip())
            part = ""
        else:
            part += letter
    return [parsed(part) for part in parts if part]
