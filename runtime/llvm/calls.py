"""How the functions that kernels call become instructions.

Library functions in plain Python are compiled like kernels (`program.py`). Machine operations, which the library has as
intrinsics for numba, are in the table `BUILTINS` here; the types of their results are in `kernel_ir/functions.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from runtime.dataclass import dataclass
from runtime.kernel_ir import functions
from runtime.kernel_ir.types import (
    BFLOAT16,
    BOOL,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT64,
    UINT16,
    UINT32,
    Array,
    Scalar,
    Type,
    Unsupported,
)
from runtime.llvm import arithmetic, processor, products, threads
from runtime.llvm.writer import ArrayValue, Value, Writer, literal


@dataclass(frozen=True)
class ElementType:
    """An argument that names the type of an array's elements."""

    type: Scalar


@dataclass(frozen=True)
class Function:
    """An argument that names a function of the program."""

    name: str


Operand = Any  # Value, ArrayValue, a tuple of them, ElementType, Function


class CallRule(NamedTuple):
    """How a function is called.

    write       writes the instructions, given a Writer, the operands and the result's type
    allocates   whether it may run out of memory, given the types of the arguments
    lanes       whether operands may be vectors
    type_of     gives the type of the result, or None if there is none, from the types of the arguments. Only functions
                of the program have it, since their results are inferred
    """

    write: Callable[[Writer, Sequence[Any], Any], Any]
    allocates: Callable[[Sequence[Any]], bool] = lambda types: False
    lanes: bool = False
    type_of: Callable[[Sequence[Any]], Type | None] | None = None


def rule(program: Any, function: str) -> CallRule:
    """The rule for a function by its name in the IR. The library's own functions name each other without `lib.`."""
    module, dot, name = function.rpartition(".")
    builtins = program.builtins
    found = builtins.get((module, name)) or (builtins.get(("lib", name)) if not dot else None)
    if found is not None:
        return found
    if module == "math" and name in functions.C_FUNCTIONS:
        return _c_library(_C_NAMES.get(name, name))
    if module not in ("", "lib"):
        raise Unsupported(f"the function {function}")
    if program.has_formula(name):
        return CallRule(lambda w, operands, type_: w.program.vector_call(w, name, operands), lanes=True)
    return CallRule(
        lambda w, operands, type_: w.program.call(w, name, operands),
        lambda types: bool(program.function(name, types).allocates),
        type_of=lambda types: program.function(name, types).result,
    )


# --- builtins --------------------------------------------------------------------------------------------------------


def _intrinsic(name: str, flags: str = "") -> CallRule:
    def write(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
        return w.program.intrinsic(w, name, *(arithmetic.cast(w, operand, type_) for operand in operands), flags=flags)

    return CallRule(write, lanes=True)


_C_NAMES = {"gamma": "tgamma"}  # where C's name differs from Python's; the name for float32 has an f appended


def _c_library(name: str) -> CallRule:
    def write(w: Writer, operands: Sequence[Any], type_: Scalar) -> Value:
        arguments = [arithmetic.cast(w, operand, type_) for operand in operands]
        return w.program.external(w, name + ("f" if type_ == FLOAT32 else ""), type_, arguments)

    return CallRule(write)


def _abs(w: Writer, operands: Sequence[Any], type_: Scalar) -> Value:
    (x,) = operands
    if type_.is_float:
        return Value(x.type, w.fabs(x.type.ir, x.text))
    if not type_.is_signed:
        return x
    below = arithmetic.compare(w, "<", x, literal(0, x.type))
    return arithmetic.select(w, below, arithmetic.negated(w, x, x.type), x)


def _chosen(op: str) -> CallRule:
    """Python's `min` and `max`: of equal operands the first, and also the first if the other is NaN."""

    def write(w: Writer, operands: Sequence[Any], type_: Scalar) -> Value:
        best, *others = (arithmetic.cast(w, operand, type_) for operand in operands)
        for other in others:
            best = arithmetic.select(w, arithmetic.compare(w, op, other, best), other, best)
        return best

    return CallRule(write, lanes=True)


def _classified(comparison: str, value: float) -> CallRule:
    """A comparison of a float's absolute value with a constant."""

    def write(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
        x = arithmetic.cast(w, operands[0], functions.real(operands[0].type.times(1)))
        size = w.fabs(x.type.ir, x.text)
        found = w.binary(f"fcmp {comparison}", size, literal(value, x.type).text, x.type.ir)
        return Value(BOOL.times(x.type.lanes), found)

    return CallRule(write, lanes=True)


def _reassociable(instruction: str) -> CallRule:
    """An accumulation step that may be reordered, so that loops over it can be vectorised."""

    def write(w: Writer, operands: Sequence[Any], type_: Scalar) -> Value:
        total, value = operands[0], arithmetic.cast(w, operands[1], type_)
        return Value(type_, w.binary(f"{instruction} reassoc nsz", total.text, value.text, type_.ir))

    return CallRule(write)


def _exceeds(instruction: str) -> CallRule:
    """Whether the result of an operation on two int64 needs more bits."""

    def write(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
        a, b = arithmetic.broadcast(w, *(arithmetic.cast(w, x, INT64.times(x.type.lanes)) for x in operands))
        number, flag = a.type.ir, BOOL.times(a.type.lanes)
        both = f"{{ {number}, {flag.ir} }}"
        pair = w.intrinsic(f"{instruction}.with.overflow", both, f"{number} {a.text}", f"{number} {b.text}")
        return Value(flag, w.op(f"extractvalue {both} {pair}, 1"))

    return CallRule(write, lanes=True)


def _bits(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
    wide = arithmetic.cast(w, operands[0], FLOAT64)
    return Value(INT64, w.convert("bitcast", "double", wide.text, "i64"))


def _reinterpretation(kinds: dict[Scalar, Scalar]) -> CallRule:
    """A rule that reinterprets the bits of a number as another type. kinds: the type of the operand -> that of the
    result."""

    def write(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
        (x,) = operands
        wanted = kinds[x.type.times(1)].times(x.type.lanes)
        return Value(wanted, w.convert("bitcast", x.type.ir, x.text, wanted.ir))

    return CallRule(write, lanes=True)


def _from_bfloat16(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
    wide = arithmetic.cast(w, operands[0], UINT32)
    shifted = w.binary("shl", wide.text, literal(16, wide.type).text, wide.type.ir)
    found = FLOAT32.times(wide.type.lanes)
    return Value(found, w.convert("bitcast", wide.type.ir, shifted, found.ir))


def _to_bfloat16(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
    """Integer arithmetic, also where there is an instruction: that of x86 takes subnormal numbers for 0."""
    x = arithmetic.cast(w, operands[0], FLOAT32)
    bits = UINT32.times(x.type.lanes)

    def made(instruction: str, a: str, b: int | str) -> str:
        return w.binary(instruction, a, literal(b, bits).text if isinstance(b, int) else b, bits.ir)

    own = w.convert("bitcast", x.type.ir, x.text, bits.ir)
    upper = made("lshr", own, 16)
    rounded = made("lshr", made("add", made("add", own, made("and", upper, 1)), 0x7FFF), 16)
    nan = made("or", made("and", upper, 0x8000), 0x7FC0)
    is_nan = Value(BOOL.times(bits.lanes), w.binary("fcmp uno", x.text, x.text, x.type.ir))
    found = arithmetic.select(w, is_nan, Value(bits, nan), Value(bits, rounded))
    return arithmetic.cast(w, found, BFLOAT16)


def _from_float16(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
    (half,) = operands
    if not processor.has_float16():
        return _by_lane(w, "from_float16", arithmetic.cast(w, half, UINT16), FLOAT32)
    found = FLOAT32.times(half.type.lanes)
    both = found.ir.replace("float", "half")
    number = w.convert("bitcast", half.type.ir, half.text, both)
    return Value(found, w.convert("fpext", both, number, found.ir))


def _to_float16(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
    x = arithmetic.cast(w, operands[0], FLOAT32)
    if not processor.has_float16():
        return arithmetic.cast(w, _by_lane(w, "to_float16", x, UINT16), FLOAT16)
    found = FLOAT16.times(x.type.lanes)
    both = x.type.ir.replace("float", "half")
    number = w.convert("fptrunc", x.type.ir, x.text, both)
    return Value(found, w.convert("bitcast", both, number, found.ir))


def _by_lane(w: Writer, name: str, item: Value, given: Scalar) -> Value:
    """The results of a function of the library that takes one number; given: their type."""
    lanes = item.type.lanes
    if lanes == 1:
        found: Value = w.program.call(w, name, [item])
        return found
    one, all_ = item.type.times(1), given.times(lanes)
    text = "poison"
    for lane in range(lanes):
        operand = Value(one, w.lane(item.type.ir, item.text, lane))
        result = w.program.call(w, name, [operand])
        text = w.with_lane(all_.ir, text, f"{given.ir} {result.text}", lane)
    return Value(all_, text)


def _here(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
    """The address of the function's stack frame."""
    return Value(INT64, w.convert("ptrtoint", "ptr", w.intrinsic("frameaddress", "ptr", "i32 0"), "i64"))


def _interrupted(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
    w.program.need("@interrupted")
    return Value(BOOL, w.call("i1", "@interrupted"))


def _flat(w: Writer, operands: Sequence[Any], type_: Array) -> ArrayValue:
    (array,) = operands
    return ArrayValue(type_, array.owner, array.data, (w.size(array),), array.owned)


def _shaped(w: Writer, operands: Sequence[Any], type_: Array) -> ArrayValue:
    dims, line = operands
    sizes = tuple(arithmetic.cast(w, size, INT64).text for size in dims)
    return ArrayValue(type_, line.owner, line.data, sizes, line.owned)


def _in_threads(w: Writer, operands: Sequence[Any], type_: Any) -> None:
    part, count, size, arguments = operands
    types = [INT64, INT64, *(argument.type for argument in arguments)]
    callee = w.program.function(part.name, types)
    if callee.allocates or callee.result is not None:
        raise Unsupported("a parallel loop nest that can fail")
    total, wanted = (arithmetic.cast(w, operand, INT64).text for operand in (size, count))
    threads.write(w, callee, wanted, total, arguments)


def _call_out(w: Writer, operands: Sequence[Any], type_: Any) -> None:
    """Calls a C function by its address with the addresses of arrays' elements."""
    address, *arrays = operands
    function = w.convert("inttoptr", "i64", arithmetic.cast(w, address, INT64).text, "ptr")
    w.run(function, *(f"ptr {array.data}" for array in arrays))


# Formulas of one number that have a joint one.
JOINED = frozenset(name for name, row in functions.ROWS.items() if row.is_angular)

BUILTINS: dict[tuple[str, str], CallRule] = {
    **{("np", name): _intrinsic(name) for name in ("floor", "ceil", "trunc", "rint", "sqrt")},
    **{("math", name): _intrinsic(name) for name in ("sqrt", "fabs", "copysign")},
    ("np", "copysign"): _intrinsic("copysign"),
    **{(module, "isfinite"): _classified("olt", float("inf")) for module in ("np", "math")},
    **{(module, "isinf"): _classified("oeq", float("inf")) for module in ("np", "math")},
    **{(module, "isnan"): _classified("uno", 0.0) for module in ("np", "math")},
    ("", "abs"): CallRule(_abs, lanes=True),
    ("", "max"): _chosen(">"),
    ("", "min"): _chosen("<"),
    ("lib", "flat"): CallRule(_flat),
    ("lib", "shaped"): CallRule(_shaped),
    ("lib", "add"): _reassociable("fadd"),
    ("lib", "mul"): _reassociable("fmul"),
    ("lib", "maximum"): _intrinsic("maximum", "nsz "),
    ("lib", "minimum"): _intrinsic("minimum", "nsz "),
    ("lib", "sum_exceeds"): _exceeds("sadd"),
    ("lib", "difference_exceeds"): _exceeds("ssub"),
    ("lib", "product_exceeds"): _exceeds("smul"),
    ("lib", "bits"): CallRule(_bits),
    ("lib", "as_bits"): _reinterpretation(functions.AS_BITS),
    ("lib", "from_bits"): _reinterpretation(functions.FROM_BITS),
    ("lib", "from_bfloat16"): CallRule(_from_bfloat16, lanes=True),
    ("lib", "to_bfloat16"): CallRule(_to_bfloat16, lanes=True),
    ("lib", "from_float16"): CallRule(_from_float16, lanes=True),
    ("lib", "to_float16"): CallRule(_to_float16, lanes=True),
    ("lib", "here"): CallRule(_here),
    ("lib", "interrupted"): CallRule(_interrupted),
    ("lib", "in_threads"): CallRule(_in_threads),
    ("lib", "call_out"): CallRule(_call_out),
    ("lib", "gemm"): CallRule(products.write),
    ("lib", "indirect_gemm"): CallRule(products.write_indirect),
}
