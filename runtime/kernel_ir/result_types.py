"""The types of the results of operators and functions, from the types of their operands.

This is the only place with these rules. Expressions take their types from it when they are made (`ir.py`), and so does
inference in library functions, which are generic (`runtime/llvm/infer.py`). numba has the same rules.

The functions raise Unsupported for operations that our own compiler doesn't have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runtime.kernel_ir.types import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    SCALARS,
    UINT64,
    Array,
    Scalar,
    Tuple,
    Type,
    Unsupported,
    arithmetic,
    promoted,
)

Rule = Callable[..., Type | None]  # of the types of the arguments

# --- operators -------------------------------------------------------------------------------------------------------

_BITWISE, _SHIFTS = frozenset({"&", "|", "^"}), frozenset({"<<", ">>"})


def binary(op: str, a: Type, b: Type) -> Type:
    """Of `a op b`."""
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
    """Of `op operand`."""
    if op == "not":
        return BOOL
    if not isinstance(operand, Scalar) or operand == BOOL:
        raise Unsupported("an operator of a truth value or an array")
    if operand.is_float:
        return operand
    return UINT64 if operand.kind == "u" else INT64


def several(*items: Type) -> Tuple:
    """Of several values in one."""
    return Tuple(items)


def element(array: Type) -> Scalar:
    """Of an element of a flat array."""
    if not isinstance(array, Array) or array.rank != 1:
        raise Unsupported("an element of a value that isn't a flat array")
    return array.element


# --- functions -------------------------------------------------------------------------------------------------------


def _common(*types: Any) -> Scalar:
    if not types or not all(isinstance(type_, Scalar) for type_ in types):
        raise Unsupported("a function of numbers with an operand that isn't a number")
    first: Scalar = types[0]
    for other in types[1:]:
        first = promoted(first, other)
    return first


def same_float(*types: Any) -> Scalar:
    """Of formulas, whose operands are floats of one type."""
    common = _common(*types)
    if not common.is_float or any(type_ != common for type_ in types):
        raise Unsupported("a function of floats with an operand that isn't a float")
    return common


def real(*types: Any) -> Scalar:
    """Of NumPy's and math's functions: floats keep their type, integers become float64."""
    common = _common(*types)
    return common if common.is_float else FLOAT64


def _first_number(*types: Any) -> Scalar:
    return _common(types[0])


def _first(*types: Any) -> Type:
    first: Type = types[0]
    return first


def _last(*types: Any) -> Type:
    last: Type = types[-1]
    return last


def _fixed(type_: Type | None) -> Rule:
    return lambda *types: type_


def _bits_of(kinds: dict[Scalar, Scalar]) -> Rule:
    def rule(number: Any) -> Scalar:
        if number not in kinds:
            raise Unsupported(f"the bits of {number}")
        return kinds[number]

    return rule


def _each(*types: Any) -> Tuple:
    return Tuple(types)


def _element_of_first(*types: Any) -> Scalar:
    return element(types[0])


def _flat(*types: Any) -> Array:
    return Array(types[0].element)


def _shaped(dims: Any, line: Any) -> Array:
    if not isinstance(dims, Tuple) or not isinstance(line, Array):
        raise Unsupported("lib.shaped with such arguments")
    return Array(line.element, len(dims.items))


# Floats with the same number of bits as integers, and the other way round.
AS_BITS = {FLOAT32: INT32, FLOAT64: INT64}
FROM_BITS = {integer: number for number, integer in AS_BITS.items()}

# Functions of the C library, which kernels call as those of `math`.
C_FUNCTIONS = (
    "exp", "expm1", "log", "log1p", "log2", "log10", "exp2", "cbrt", "pow", "sin", "cos", "tan", "asin", "acos", "atan",
    "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "atan2", "hypot", "fmod", "erf", "erfc", "lgamma", "gamma",
)  # fmt: skip
# Our formulas, which can be vectorised; the C library computes one number at a time.
FORMULAS = (
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "erf", "erfc", "exp", "expm1", "log",
    "log1p", "pow", "sigmoid", "sin", "sinh", "softplus", "tan", "tanh",
)  # fmt: skip

CALLS: dict[str, Rule] = {
    "abs": _first_number,
    "max": _common,
    "min": _common,
    **{f"np.{name}": real for name in ("floor", "ceil", "trunc", "rint", "sqrt", "copysign")},
    **{f"math.{name}": real for name in ("sqrt", "fabs", "copysign", *C_FUNCTIONS)},
    **{f"{module}.{name}": _fixed(BOOL) for module in ("np", "math") for name in ("isfinite", "isinf", "isnan")},
    **{f"lib.{name}": same_float for name in FORMULAS},
    "lib.add": _first_number,
    "lib.mul": _first_number,
    "lib.maximum": real,
    "lib.minimum": real,
    "lib.as_bits": _bits_of(AS_BITS),
    "lib.from_bits": _bits_of(FROM_BITS),
    **{f"lib.to_{name}": _fixed(type_) for name, type_ in SCALARS.items() if type_.kind in "iuh"},
    **{f"lib.from_{name}": _fixed(FLOAT32) for name, type_ in SCALARS.items() if type_.kind == "h"},
    "lib.rounded_to_odd": _fixed(FLOAT32),
    "lib.random_words": _fixed(UINT64),
    **{
        f"lib.{name}": _fixed(INT64)
        for name in (
            "bits", "here", "nonfinite", "nonfinite_scalar", "scalar_count", "capacity", "clamped", "slice_start",
            "slice_count", "int_range_length", "float_range_length", "place_in", "solved",
            "hash_width", "distinct", "suppress_boxes", "rows_of_strip", "images_of_strip",
        )
    },
    **{f"lib.{name}": _fixed(BOOL) for name in ("interrupted", "all_true", "cholesky", "substituted")},
    **{
        f"lib.{name}_exceeds": _fixed(BOOL)
        for name in ("sum", "difference", "product", "power", "shifted", "quotient", "negative", "float")
    },
    "lib.flat": _flat,
    "lib.shaped": _shaped,
    **{f"lib.{name}": _first for name in ("copied", "grown", "resized")},
    **{
        f"lib.{name}": _fixed(None)
        for name in (
            "in_threads", "call_out", "gemm", "indirect_gemm", "matmul", "int_matmul", "fill_words", "fill_truncated",
            "fill_permutation", "draw_classes", "order_of_row", "order_of_rows", "copy_windows", "fill_places",
            "pad_rows", "transpose_matrix", "top_of_row", "solve_each", "cholesky_of_each", "substitute_each",
        )
    },
    # Functions that only kernels in SPMD form call (`llvm/device_calls.py`, `codegen/device/library.py`).
    **{f"lib.near_{name}": same_float for name in ("sin", "cos")},
    **{f"lib.{name}_of_four": _each for name in ("sin", "cos")},
    **{
        f"gpu.{name}": _fixed(INT64)
        for name in (
            "thread", "threads", "thread_in_block", "block", "block_size", "blocks", "warp_size", "buffer",
            "first_failure", "load_detail", "udiv", "urem", "peel_count",
        )
    },
    **{f"gpu.{name}": _fixed(BOOL) for name in ("interrupted", "failed", "is_aligned")},
    **{f"gpu.{name}": _first for name in ("shuffle", "view", "aligned_view")},
    **{
        f"gpu.{name}": _last
        for name in (
            "load_warp_partial", "load_block_partial", "load_total", "load_column_partial", "load_shared",
            "load_broadcast", "fma",
        )
    },
    "gpu.zero_like": _element_of_first,
    **{
        f"gpu.{name}": _fixed(None)
        for name in (
            "barrier", "block_barrier", "warp_barrier", "store_warp_partial", "store_block_partial", "store_total",
            "store_shared", "store_column_partial", "swap_buffers", "store_broadcast", "record_failure", "store_detail",
        )
    },
}  # fmt: skip


def rule_of(function: str) -> Rule | None:
    """The rule of a function by its name in the IR; None for the others, whose results are inferred. The library's
    own functions name each other without `lib.`."""
    return CALLS.get(function) or CALLS.get(f"lib.{function}")


def call(function: str, *types: Any) -> Type | None:
    """Of a call; None if it has no result, or for a function that isn't in the table."""
    rule = rule_of(function)
    return None if rule is None else rule(*types)


# --- assignments -----------------------------------------------------------------------------------------------------


def assigned(targets: Sequence[str], value: Type | None) -> dict[str, Type | None]:
    """Of the variables that a value of this type is assigned to; None where it isn't known."""
    if len(targets) > 1 and isinstance(value, Tuple):
        return dict(zip(targets, value.items))
    return dict.fromkeys(targets, value if len(targets) == 1 else None)
