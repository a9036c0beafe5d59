"""The elementary functions as numba intrinsics. Imported by kernels only, since it needs numba."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba import types
from numba.extending import intrinsic

from runtime.codegen.math.function_table import FORMULAS
from runtime.codegen.math.vector_functions import Function


def _size(arguments: Sequence[Any]) -> int | None:
    """The float format of a call's arguments; None for other types, which is a typing error."""
    if all(a == types.float32 for a in arguments):
        return 32
    return 64 if all(a == types.float64 for a in arguments) else None


def _intrinsic(function: Function) -> Any:
    def of(arguments: Sequence[Any]) -> Any:
        size = _size(arguments)
        if size is None:
            return None

        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return function.write(builder, size, values)

        return arguments[0](*arguments), code

    def unary(typing_context: Any, x: Any) -> Any:
        return of((x,))

    def binary(typing_context: Any, x: Any, y: Any) -> Any:
        return of((x, y))

    declared: Any = unary if function.arity == 1 else binary
    declared.__name__ = declared.__qualname__ = function.name
    return intrinsic(declared)


INTRINSICS = {name: _intrinsic(function) for name, function in FORMULAS.items()}
