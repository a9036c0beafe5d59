"""The functions that kernels call: the type of each one's result, and the instructions of a call.

Functions of the library that are plain Python are translated like kernels (`program.py`). Those that are machine
operations, which the library has as intrinsics for numba, are in the table `BUILTINS` here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from runtime.kernel_ir.types import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    Array,
    Scalar,
    Tuple,
    Type,
    Unsupported,
    met,
)
from runtime.llvm import arithmetic, memory, products, threads
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


@dataclass(frozen=True)
class CallRule:
    """How a function is called.

    type_of     gives the type of the result for those of the arguments; None where there is no result
    write       writes the instructions: of a Writer, operands and the result's type
    allocates   whether it may fail for want of memory, by the types of the arguments
    lanes       whether operands may be vectors
    """

    type_of: Callable[[Sequence[Any]], Type | None]
    write: Callable[[Writer, Sequence[Any], Any], Any]
    allocates: Callable[[Sequence[Any]], bool] = lambda types: False
    lanes: bool = False


def rule(program: Any, function: str) -> CallRule:
    """The rule for a function by its name in the IR. The library's own functions name each other without `lib.`."""
    module, dot, name = function.rpartition(".")
    builtins = program.builtins
    found = builtins.get((module, name)) or (builtins.get(("lib", name)) if not dot else None)
    if found is not None:
        return found
    if module == "math" and name in C_FUNCTIONS:
        return _c_library(C_FUNCTIONS[name])
    if module not in ("", "lib"):
        raise Unsupported(f"the function {function}")
    if program.has_formula(name):
        return CallRule(_same_float, lambda w, operands, type_: w.program.vector_call(w, name, operands), lanes=True)
    return CallRule(
        lambda types: program.function(name, types).result,
        lambda w, operands, type_: w.program.call(w, name, operands),
        lambda types: bool(program.function(name, types).allocates),
    )


# --- type rules ------------------------------------------------------------------------------------------------------


def _scalars(types: Sequence[Any]) -> list[Scalar]:
    if not types or not all(isinstance(type_, Scalar) for type_ in types):
        raise Unsupported("a function of numbers with an operand that isn't a number")
    return list(types)


def _common(types: Sequence[Any]) -> Scalar:
    first, *others = _scalars(types)
    for other in others:
        first = met(first, other)
    return first


def _same_float(types: Sequence[Any]) -> Scalar:
    common = _common(types)
    if not common.is_float or any(type_ != common for type_ in types):
        raise Unsupported("a function of floats with an operand that isn't a float")
    return common


def real(types: Sequence[Any]) -> Scalar:
    """Of NumPy's and math's functions: floats keep their type, integers become float64."""
    common = _common(types)
    return common if common.is_float else FLOAT64


def _fixed(type_: Type | None) -> Callable[[Sequence[Any]], Type | None]:
    return lambda types: type_


def _first(types: Sequence[Any]) -> Type:
    return _scalars(types[:1])[0]


# --- builtins --------------------------------------------------------------------------------------------------------


def _intrinsic(name: str, flags: str = "") -> CallRule:
    def write(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
        return w.program.intrinsic(w, name, *(arithmetic.cast(w, operand, type_) for operand in operands), flags=flags)

    return CallRule(real, write, lanes=True)


def _c_library(name: str) -> CallRule:
    def write(w: Writer, operands: Sequence[Any], type_: Scalar) -> Value:
        arguments = [arithmetic.cast(w, operand, type_) for operand in operands]
        return w.program.external(w, name + ("f" if type_ == FLOAT32 else ""), type_, arguments)

    return CallRule(real, write)


def _abs(w: Writer, operands: Sequence[Any], type_: Scalar) -> Value:
    (x,) = operands
    if type_.is_float:
        return w.program.intrinsic(w, "fabs", x)
    if not type_.is_signed:
        return x
    below = arithmetic.compare(w, "<", x, literal(0, x.type))
    return arithmetic.chosen(w, below, arithmetic.negated(w, x, x.type), x)


def _chosen(op: str) -> CallRule:
    """Python's `min` and `max`: the first of equals, and the first where a comparison with NaN is false."""

    def write(w: Writer, operands: Sequence[Any], type_: Scalar) -> Value:
        best, *others = (arithmetic.cast(w, operand, type_) for operand in operands)
        for other in others:
            best = arithmetic.chosen(w, arithmetic.compare(w, op, other, best), other, best)
        return best

    return CallRule(_common, write, lanes=True)


def _classified(comparison: str, value: float) -> CallRule:
    """A truth value from the size of a float."""

    def write(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
        x = arithmetic.cast(w, operands[0], real([operands[0].type.times(1)]))
        size = w.program.intrinsic(w, "fabs", x)
        found = w.op(f"fcmp {comparison} {x.type.ir} {size.text}, {literal(value, x.type).text}")
        return Value(BOOL.times(x.type.lanes), found)

    return CallRule(_fixed(BOOL), write, lanes=True)


def _reassociable(instruction: str) -> CallRule:
    """An accumulation step whose order the machine may choose, so that loops over it use vector registers."""

    def write(w: Writer, operands: Sequence[Any], type_: Scalar) -> Value:
        total, value = operands[0], arithmetic.cast(w, operands[1], type_)
        return Value(type_, w.op(f"{instruction} reassoc nsz {type_.ir} {total.text}, {value.text}"))

    return CallRule(_first, write)


def _bits(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
    wide = arithmetic.cast(w, operands[0], FLOAT64)
    return Value(INT64, w.op(f"bitcast double {wide.text} to i64"))


def _reinterpretation(kinds: dict[Scalar, Scalar]) -> CallRule:
    """The same bits as a number of another kind. kinds: by the operand's type, that of the result."""

    def type_of(types: Sequence[Any]) -> Scalar:
        found = kinds.get(_scalars(types[:1])[0].times(1))
        if found is None:
            raise Unsupported(f"the bits of {types[0]}")
        return found

    def write(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
        (x,) = operands
        wanted = kinds[x.type.times(1)].times(x.type.lanes)
        return Value(wanted, w.op(f"bitcast {x.type.ir} {x.text} to {wanted.ir}"))

    return CallRule(type_of, write, lanes=True)


def _here(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
    """The address of the stack where the function stands."""
    w.program.declare("declare ptr @llvm.frameaddress.p0(i32)")
    return Value(INT64, w.op(f"ptrtoint ptr {w.op('call ptr @llvm.frameaddress.p0(i32 0)')} to i64"))


def _interrupted(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
    w.program.need("@interrupted")
    return Value(BOOL, w.op("call i1 @interrupted()"))


def _empty_type(types: Sequence[Any]) -> Array:
    count, element = types
    if not isinstance(count, Scalar) or count.is_float or not isinstance(element, ElementType):
        raise Unsupported("np.empty with such arguments")
    return Array(element.type)


def _empty(w: Writer, operands: Sequence[Any], type_: Array) -> ArrayValue:
    return memory.empty(w, type_, arithmetic.cast(w, operands[0], INT64))


def _flat_type(types: Sequence[Any]) -> Array:
    return Array(types[0].element)


def _flat(w: Writer, operands: Sequence[Any], type_: Array) -> ArrayValue:
    (array,) = operands
    return ArrayValue(type_, array.owner, array.data, (w.size(array),), array.owned)


def _shaped_type(types: Sequence[Any]) -> Array:
    dims, line = types
    if not isinstance(dims, Tuple) or not isinstance(line, Array):
        raise Unsupported("lib.shaped with such arguments")
    return Array(line.element, len(dims.items))


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


# Functions of the C library, which float32 has with an f at the end.
C_FUNCTIONS = {
    name: name
    for name in (
        "exp", "expm1", "log", "log1p", "log2", "log10", "exp2", "cbrt", "pow", "sin", "cos", "tan", "asin", "acos",
        "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "atan2", "hypot", "fmod", "erf", "erfc", "lgamma",
    )
} | {"gamma": "tgamma"}  # fmt: skip

JOINED = frozenset({"lib.sin", "lib.cos"})  # formulas of one number that have a joint one

BUILTINS: dict[tuple[str, str], CallRule] = {
    **{("np", name): _intrinsic(name) for name in ("floor", "ceil", "trunc", "rint", "sqrt")},
    **{("math", name): _intrinsic(name) for name in ("sqrt", "fabs", "copysign")},
    ("np", "copysign"): _intrinsic("copysign"),
    **{(module, "isfinite"): _classified("olt", float("inf")) for module in ("np", "math")},
    **{(module, "isinf"): _classified("oeq", float("inf")) for module in ("np", "math")},
    **{(module, "isnan"): _classified("uno", 0.0) for module in ("np", "math")},
    ("np", "empty"): CallRule(_empty_type, _empty, lambda types: True),
    ("", "abs"): CallRule(_first, _abs, lanes=True),
    ("", "max"): _chosen(">"),
    ("", "min"): _chosen("<"),
    ("lib", "flat"): CallRule(_flat_type, _flat),
    ("lib", "shaped"): CallRule(_shaped_type, _shaped),
    ("lib", "add"): _reassociable("fadd"),
    ("lib", "mul"): _reassociable("fmul"),
    ("lib", "maximum"): _intrinsic("maximum", "nsz "),
    ("lib", "minimum"): _intrinsic("minimum", "nsz "),
    ("lib", "bits"): CallRule(_fixed(INT64), _bits),
    ("lib", "as_bits"): _reinterpretation({FLOAT32: INT32, FLOAT64: INT64}),
    ("lib", "from_bits"): _reinterpretation({INT32: FLOAT32, INT64: FLOAT64}),
    ("lib", "here"): CallRule(_fixed(INT64), _here),
    ("lib", "interrupted"): CallRule(_fixed(BOOL), _interrupted),
    ("lib", "in_threads"): CallRule(_fixed(None), _in_threads),
    ("lib", "gemm"): CallRule(_fixed(None), products.write),
}
