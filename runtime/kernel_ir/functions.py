"""The functions that kernels call: one row for each, with all that passes and compilers ask about it.

    "lib.top_of_row": _loop(_NONE, reads=(0, 3, 4), writes=(3, 4))

Passes ask a function's row (`row_of`) and have no lists of names. A function that writes an array, or that returns
memory of its arguments, says so here, or passes move code past it wrongly.

*Kept by* `tests/kernel_ir/test_functions.py`: rows agree with the text of functions in plain Python
(`analysis/effects.py`). *Kept by* `verify.py`: kernels call no function without a row.

The rules for results raise Unsupported for operands that our own compiler doesn't take.
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from runtime.kernel_ir.result_types import element
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
    promoted,
)

Rule = Callable[..., Type | None]  # the type of the result from the types of the arguments; None: there is no result


class Cost(enum.IntEnum):
    """How long a call takes."""

    INSTRUCTION = 0  # one machine instruction, or a few that every backend writes in place
    SHORT = 1  # arithmetic without loops
    FORMULA = 2  # tens of instructions; loops over elements compute several results at a time
    LONG = 3  # tens of instructions, one result at a time
    LOOP = 4  # as long as its arguments say


class Effect(NamedTuple):
    """What a function does with the arrays that it is given, which are named by their positions.

    reads      those whose elements it reads
    writes     those whose elements it writes
    keeps      those whose memory its result may be, or be a view of
    allocates  whether it makes arrays
    """

    reads: Sequence[int] = ()
    writes: Sequence[int] = ()
    keeps: Sequence[int] = ()
    allocates: bool = False

    @property
    def changes_memory(self) -> bool:
        """Whether it writes arrays, or makes some."""
        return self.allocates or bool(self.writes)


EVERY = range(sys.maxsize)  # all arguments
NOTHING = Effect()
UNKNOWN = Effect(EVERY, EVERY, EVERY, True)  # that of a function that may do anything


class Row(NamedTuple):
    """What is known of a function. Arguments are given by their positions; a tuple of arrays counts as one argument.

    result     gives the type of the result
    effect     what it does with arrays
    view       the array whose memory the result is
    cost       how long a call takes
    is_pure    whether it does nothing else, and its result depends only on its arguments
    joins      whether it joins two partial results in a reduction: in any order, and from any neutral element
    is_angular whether it is a formula of an angle, of which one computes several jointly
    """

    result: Rule
    effect: Effect = NOTHING
    view: int | None = None
    cost: Cost = Cost.INSTRUCTION
    is_pure: bool = True
    joins: bool = False
    is_angular: bool = False

    @property
    def is_arithmetic(self) -> bool:
        """Whether it computes numbers from numbers in little time. No such function fails."""
        return self.is_pure and self.effect == NOTHING and self.cost <= Cost.SHORT


# --- results ---------------------------------------------------------------------------------------------------------


def _common(*types: Any) -> Scalar:
    if not types or not all(isinstance(type_, Scalar) for type_ in types):
        raise Unsupported("a function of numbers with an operand that isn't a number")
    first: Scalar = types[0]
    for other in types[1:]:
        first = promoted(first, other)
    return first


def same_float(*types: Any) -> Scalar:
    """Formulas, whose operands are floats of one type."""
    common = _common(*types)
    if not common.is_float or any(type_ != common for type_ in types):
        raise Unsupported("a function of floats with an operand that isn't a float")
    return common


def real(*types: Any) -> Scalar:
    """NumPy's and math's functions: floats keep their type, integers become float64."""
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


def _always(type_: Type | None) -> Rule:
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


# --- the table -------------------------------------------------------------------------------------------------------

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
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "erf", "erfc", "exp", "expm1",
    "hypot", "log", "log1p", "pow", "sigmoid", "sin", "sinh", "softplus", "tan", "tanh",
)  # fmt: skip

_NONE, _INTEGER, _TRUTH = _always(None), _always(INT64), _always(BOOL)


def _view(result: Rule, array: int) -> Row:
    return Row(result, Effect(keeps=(array,)), view=array)


def _loop(result: Rule, reads: Sequence[int] = (), writes: Sequence[int] = ()) -> Row:
    return Row(result, Effect(reads, writes), cost=Cost.LOOP)


ROWS: dict[str, Row] = {
    "abs": Row(_first_number),
    "max": Row(_common),
    "min": Row(_common),
    **{f"np.{name}": Row(real) for name in ("floor", "ceil", "trunc", "rint", "sqrt", "copysign")},
    **{f"math.{name}": Row(real) for name in ("sqrt", "fabs", "copysign")},
    **{f"{module}.{name}": Row(_TRUTH) for module in ("np", "math") for name in ("isfinite", "isinf", "isnan")},
    # Of most, lowering calls the formula instead; passes come before or after that.
    **{f"math.{name}": Row(real, cost=Cost.FORMULA if name in FORMULAS else Cost.LONG) for name in C_FUNCTIONS},
    **{f"lib.{name}": Row(same_float, cost=Cost.FORMULA, is_angular=name in ("sin", "cos")) for name in FORMULAS},
    # Steps of a reduction, whose order the machine may choose.
    "lib.add": Row(_first_number, joins=True),
    "lib.mul": Row(_first_number, joins=True),
    "lib.maximum": Row(real, joins=True),
    "lib.minimum": Row(real, joins=True),
    # Numbers.
    "lib.bits": Row(_INTEGER),
    "lib.as_bits": Row(_bits_of(AS_BITS)),
    "lib.from_bits": Row(_bits_of(FROM_BITS)),
    **{f"lib.to_{name}": Row(_always(type_), cost=Cost.SHORT) for name, type_ in SCALARS.items() if type_.kind in "iu"},
    **{f"lib.to_{name}": Row(_always(type_)) for name, type_ in SCALARS.items() if type_.kind == "h"},
    **{f"lib.from_{name}": Row(_always(FLOAT32)) for name, type_ in SCALARS.items() if type_.kind == "h"},
    "lib.rounded_to_odd": Row(_always(FLOAT32), cost=Cost.SHORT),
    **{
        f"lib.{name}": Row(_INTEGER, cost=Cost.SHORT)
        for name in (
            "nonfinite_scalar", "capacity", "clamped", "slice_start", "slice_count", "int_range_length",
            "float_range_length", "rows_of_strip", "images_of_strip",
        )
    },
    "lib.hash_width": _loop(_INTEGER),
    # Whether a result leaves 64 bits.
    **{f"lib.{name}_exceeds": Row(_TRUTH) for name in ("sum", "difference", "product")},
    **{
        f"lib.{name}_exceeds": Row(_TRUTH, cost=Cost.SHORT) for name in ("shifted", "quotient", "negative", "float")
    },
    "lib.power_exceeds": _loop(_TRUTH),
    "lib.random_words": Row(_always(UINT64), cost=Cost.LONG),
    # Arrays.
    "lib.flat": _view(_flat, 0),
    "lib.shaped": _view(_shaped, 1),
    **{f"lib.{name}": Row(_first, Effect(reads=(0,), allocates=True), cost=Cost.LOOP) for name in ("copied", "grown")},
    "lib.resized": Row(_first, Effect(reads=(0,), keeps=(0,), allocates=True), cost=Cost.LOOP),
    "lib.all_true": _loop(_TRUTH, reads=(0,)),
    "lib.nonfinite": _loop(_INTEGER, reads=(0,)),
    "lib.scalar_count": _loop(_INTEGER, reads=(0,)),
    "lib.place_in": _loop(_INTEGER, reads=(0,)),
    "lib.distinct": _loop(_INTEGER, reads=(0, 1, 3, 6), writes=(3, 5, 6)),
    "lib.order_of_row": _loop(_NONE, reads=(0, 4, 5, 6, 7), writes=(4, 5, 6, 7)),
    "lib.order_of_rows": _loop(_NONE, reads=(0, 4, 5, 6, 7), writes=(4, 5, 6, 7)),
    "lib.top_of_row": _loop(_NONE, reads=(0, 3, 4), writes=(3, 4)),
    "lib.suppress_boxes": _loop(_INTEGER, reads=(0, 2, 10), writes=(10, 11, 12)),
    # Matrices.
    "lib.gemm": _loop(_NONE, reads=(0, 2), writes=(4,)),
    **{f"lib.{name}": _loop(_NONE, reads=(0, 2, 4), writes=(4,)) for name in ("int_matmul", "matmul")},
    "lib.indirect_gemm": _loop(_NONE, reads=(0, 2, 4, 5, 7), writes=(7,)),
    "lib.solved": _loop(_INTEGER, reads=(0, 3), writes=(0, 3)),
    "lib.solve_each": _loop(_NONE, reads=(0, 3), writes=(0, 3, 5)),
    "lib.cholesky": _loop(_TRUTH, reads=(0,), writes=(0,)),
    "lib.cholesky_of_each": _loop(_NONE, reads=(0,), writes=(0, 3)),
    "lib.substituted": _loop(_TRUTH, reads=(0, 3), writes=(3,)),
    "lib.substitute_each": _loop(_NONE, reads=(0, 3), writes=(3, 7)),
    # Images.
    "lib.copy_windows": _loop(_NONE, reads=(0,), writes=(4,)),
    "lib.fill_places": _loop(_NONE, writes=(0,)),
    "lib.pad_rows": _loop(_NONE, reads=(0,), writes=(7,)),
    "lib.transpose_matrix": _loop(_NONE, reads=(0,), writes=(2,)),
    # Random numbers.
    "lib.fill_words": _loop(_NONE, writes=(0,)),
    "lib.fill_truncated": _loop(_NONE, writes=(0,)),
    "lib.fill_permutation": _loop(_NONE, reads=(0,), writes=(0,)),
    "lib.draw_classes": _loop(_NONE, reads=(0, 3), writes=(3, 4)),
    # What is outside of the kernel.
    "lib.interrupted": Row(_TRUTH, is_pure=False),
    "lib.here": Row(_INTEGER, is_pure=False),
    "lib.in_threads": Row(_NONE, Effect(EVERY, EVERY), cost=Cost.LOOP, is_pure=False),
    "lib.call_out": Row(_NONE, Effect(EVERY, EVERY), cost=Cost.LONG, is_pure=False),
    # Functions that only kernels in SPMD form call (`llvm/device_calls.py`, `codegen/device/library.py`).
    **{f"lib.near_{name}": Row(same_float, cost=Cost.FORMULA) for name in ("sin", "cos")},
    **{f"lib.{name}_of_four": Row(_each, cost=Cost.FORMULA) for name in ("sin", "cos")},
    "gpu.fma": Row(_last),
    **{f"gpu.{name}": Row(_INTEGER) for name in ("udiv", "urem", "peel_count")},
    "gpu.is_aligned": Row(_TRUTH),
    "gpu.zero_like": Row(_element_of_first),
    **{f"gpu.{name}": _view(_first, 0) for name in ("view", "aligned_view")},
    **{
        f"gpu.{name}": Row(_INTEGER, is_pure=False)
        for name in (
            "thread", "threads", "thread_in_block", "block", "block_size", "blocks", "warp_size", "buffer",
            "first_failure", "load_detail",
        )
    },
    **{f"gpu.{name}": Row(_TRUTH, is_pure=False) for name in ("interrupted", "failed")},
    "gpu.shuffle": Row(_first, is_pure=False),
    **{
        f"gpu.{name}": Row(_last, is_pure=False)
        for name in (
            "load_warp_partial", "load_block_partial", "load_total", "load_column_partial", "load_shared",
            "load_broadcast",
        )
    },
    **{
        f"gpu.{name}": Row(_NONE, is_pure=False)
        for name in (
            "barrier", "block_barrier", "warp_barrier", "store_warp_partial", "store_block_partial", "store_total",
            "store_shared", "store_column_partial", "swap_buffers", "store_broadcast", "record_failure", "store_detail",
        )
    },
}  # fmt: skip


def row_of(function: str) -> Row | None:
    """The row of a function by its name in the IR; None for the others, which are known by their text. The library's
    own functions name each other without `lib.`."""
    return ROWS.get(function) or ROWS.get(f"lib.{function}")


def effect_of(function: str) -> Effect:
    """What a function does with arrays, as far as rows say."""
    row = row_of(function)
    return UNKNOWN if row is None else row.effect


def cost_of(function: str) -> Cost:
    """How long a call takes; of a function that is known by its text, as long as any."""
    row = row_of(function)
    return Cost.LOOP if row is None else row.cost


def result(function: str, *types: Any) -> Type | None:
    """The type of a call's result; None if it has none, or for a function that isn't in the table."""
    row = row_of(function)
    return None if row is None else row.result(*types)
