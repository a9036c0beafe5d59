"""Formulas over floats written once, as LLVM code: for one number in a kernel, and for a vector of them in a function.

A `Lane` is a value in code being written; its operators append instructions:

    def sigmoid(m, x):                        %0 = call float @llvm.fabs.f32(float %x)
        s = exp(m, -abs(x))            →      ...
        return s / (s + 1)                    %9 = fadd float %8, 1.0

There are no branches in formulas, only `m.select`, so that a loop over them becomes vector code. Nothing types or
lowers them statement by statement, which would take most of the compile time. How kernels call them:
`vector_functions.py`.

Every operation is the same for a number and for a vector, so results don't depend on where a loop's remainder begins.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Sequence
from typing import Any

import llvmlite.binding
from llvmlite import ir

from runtime.llvm import processor

Formula = Callable[..., "Lane"]

PURE = ("nounwind", "readnone")


class Lane:
    """A value, or a vector of values, in code being written: floats, integers of the same width, or truth values."""

    __slots__ = ("m", "value")

    def __init__(self, m: Math, value: Any) -> None:
        self.m = m
        self.value = value

    def _binary(self, name: str, other: Any, swapped: bool = False) -> Lane:
        if not isinstance(other, Lane):
            other = self.m.like(self, other)
        a, b = (other, self) if swapped else (self, other)
        return Lane(self.m, getattr(self.m.builder, name)(a.value, b.value))

    def _arithmetic(self, name: str, other: Any, swapped: bool = False) -> Lane:
        return self._binary(f"f{name}" if self.m.is_float(self) else name, other, swapped)

    def __add__(self, other: Any) -> Lane:
        return self._arithmetic("add", other)

    def __sub__(self, other: Any) -> Lane:
        return self._arithmetic("sub", other)

    def __rsub__(self, other: Any) -> Lane:
        return self._arithmetic("sub", other, True)

    def __mul__(self, other: Any) -> Lane:
        return self._arithmetic("mul", other)

    def __truediv__(self, other: Any) -> Lane:
        return self._binary("fdiv", other)

    def __rtruediv__(self, other: Any) -> Lane:
        return self._binary("fdiv", other, True)

    def __neg__(self) -> Lane:
        return Lane(self.m, self.m.builder.fneg(self.value))

    def __abs__(self) -> Lane:
        return self.m.intrinsic("fabs", self)

    def __and__(self, other: Any) -> Lane:
        return self._binary("and_", other)

    def __or__(self, other: Any) -> Lane:
        return self._binary("or_", other)

    def __xor__(self, other: Any) -> Lane:
        return self._binary("xor", other)

    def __lshift__(self, other: int) -> Lane:
        return self._binary("shl", other)

    def __rshift__(self, other: int) -> Lane:
        """The bits moved down; zeros come in from above."""
        return self._binary("lshr", other)

    def _compare(self, sign: str, other: Any) -> Lane:
        """False where either side is NaN, but for `!=`."""
        if not isinstance(other, Lane):
            other = self.m.like(self, other)
        compare = self.m.builder.fcmp_unordered if sign == "!=" else self.m.builder.fcmp_ordered
        return Lane(self.m, compare(sign, self.value, other.value))

    def __lt__(self, other: Any) -> Lane:
        return self._compare("<", other)

    def __le__(self, other: Any) -> Lane:
        return self._compare("<=", other)

    def __gt__(self, other: Any) -> Lane:
        return self._compare(">", other)

    def __ge__(self, other: Any) -> Lane:
        return self._compare(">=", other)

    def equals(self, other: Any) -> Lane:
        return self._compare("==", other)

    def differs(self, other: Any) -> Lane:
        return self._compare("!=", other)

    def bits(self) -> Lane:
        """The float's bits as an integer."""
        return Lane(self.m, self.m.builder.bitcast(self.value, self.m.int_type))

    def float(self) -> Lane:
        """The float with these bits."""
        return Lane(self.m, self.m.builder.bitcast(self.value, self.m.float_type))


class Math:
    """Where a formula is written to: a builder, a float format of `size` bits, a number of lanes."""

    def __init__(self, builder: Any, size: int, width: int) -> None:
        self.builder = builder
        self.size = size
        self.width = width
        self.mantissa, self.bias = (23, 127) if size == 32 else (52, 1023)
        self.parts = 512 // size  # entries of a table
        self.float_type = self._type(ir.FloatType() if size == 32 else ir.DoubleType())
        self.int_type = self._type(ir.IntType(size))

    def _type(self, element: Any) -> Any:
        return ir.VectorType(element, self.width) if self.width > 1 else element

    def is_float(self, lane: Lane) -> bool:
        return lane.value.type == self.float_type

    def like(self, lane: Lane, number: Any) -> Lane:
        """A constant of the lane's type."""
        type_ = lane.value.type
        if self.width == 1:
            return Lane(self, ir.Constant(type_, number))
        return Lane(self, ir.Constant(type_, [ir.Constant(type_.element, number)] * self.width))

    def number(self, value: float) -> Lane:
        if self.width == 1:
            return Lane(self, ir.Constant(self.float_type, value))
        return Lane(self, ir.Constant(self.float_type, [ir.Constant(self.float_type.element, value)] * self.width))

    def bits_of(self, value: float) -> int:
        """The bits of a constant."""
        code, whole = ("<f", "<i") if self.size == 32 else ("<d", "<q")
        return int(struct.unpack(whole, struct.pack(code, value))[0])

    def rounded(self, value: float) -> float:
        """The number of this format next to another one."""
        code = "<f" if self.size == 32 else "<d"
        (found,) = struct.unpack(code, struct.pack(code, value))
        return float(found)

    def intrinsic(self, name: str, *operands: Lane) -> Lane:
        """One of LLVM's functions of floats that is a machine instruction."""
        vector = f"v{self.width}" if self.width > 1 else ""
        declared = self.builder.module.declare_intrinsic(
            f"llvm.{name}.{vector}f{self.size}", (), ir.FunctionType(self.float_type, [self.float_type] * len(operands))
        )
        return Lane(self, self.builder.call(declared, [operand.value for operand in operands]))

    def _floats(self, *values: Any) -> list[Lane]:
        return [value if isinstance(value, Lane) else self.number(value) for value in values]

    def fma(self, a: Any, b: Any, c: Any) -> Lane:
        """a * b + c, with one rounding where the machine can, in two steps elsewhere."""
        return self.intrinsic("fmuladd", *self._floats(a, b, c))

    def exact_fma(self, a: Any, b: Any, c: Any) -> Lane:
        """a * b + c with one rounding, on every machine."""
        return self.intrinsic("fma", *self._floats(a, b, c))

    def sqrt(self, x: Lane) -> Lane:
        return self.intrinsic("sqrt", x)

    def floor(self, x: Lane) -> Lane:
        return self.intrinsic("floor", x)

    def copysign(self, size: Lane, sign: Lane) -> Lane:
        return self.intrinsic("copysign", size, sign)

    def select(self, condition: Lane, yes: Any, no: Any) -> Lane:
        """One of two floats, or of two integers where `yes` is an integer lane."""
        known = yes if isinstance(yes, Lane) else no if isinstance(no, Lane) else self.number(0.0)
        a, b = (value if isinstance(value, Lane) else self.like(known, value) for value in (yes, no))
        return Lane(self, self.builder.select(condition.value, a.value, b.value))

    def unordered(self, a: Lane, b: Lane) -> Lane:
        """Whether either is NaN."""
        return Lane(self, self.builder.fcmp_unordered("uno", a.value, b.value))

    def nonzero(self, integer: Lane) -> Lane:
        return Lane(self, self.builder.icmp_unsigned("!=", integer.value, self.like(integer, 0).value))

    def clamp(self, x: Lane, low: float, high: float) -> Lane:
        """x within the bounds; NaN stays."""
        x = self.select(self.number(high) < x, high, x)
        return self.select(self.number(low) > x, low, x)

    def polynomial(self, x: Lane, coefficients: Sequence[Any]) -> Lane:
        """c[0] + c[1] x + c[2] x**2 + ..., as pairs c[i] + c[i + 1] x by Horner's rule in x**2: one product more than
        Horner's rule in x, which loops over many numbers are bound by, and half of its chain, for loops over one."""
        pairs: list[Any] = [
            self.fma(x, coefficients[i + 1], coefficients[i]) for i in range(0, len(coefficients) - 1, 2)
        ]
        if len(coefficients) % 2:
            pairs.append(coefficients[-1])
        square = x * x
        result = pairs.pop()
        while pairs:
            result = self.fma(square, result, pairs.pop())
        return self._floats(result)[0]

    def nearest(self, x: Lane, factor: float, parts: int = 1) -> tuple[Lane, Lane]:
        """The integer next to x * factor, as a float and as bits, the lowest of which are the integer's; or the number
        of so many parts of one, and how many.

        Adding 1.5 * 2**mantissa leaves no room for a fraction. Right below 2**(mantissa - 2) / parts; no conversion
        between floats and integers, which older machines lack for vectors of 64 bits.
        """
        magic = 1.5 * 2.0**self.mantissa / parts
        shifted = self.fma(x, factor, magic)
        return shifted - magic, shifted.bits()

    def ldexp(self, x: Lane, n: Lane) -> Lane:
        """x * 2**n with one rounding, for |x| near 1 and integers |n| < 2 * bias."""
        if _scales():
            vector = f"v{self.width}" if self.width > 1 else ""
            declared = self.builder.module.declare_intrinsic(
                f"llvm.ldexp.{vector}f{self.size}.{vector}i{self.size}", (),
                ir.FunctionType(self.float_type, [self.float_type, self.int_type]),
            )  # fmt: skip
            return Lane(self, self.builder.call(declared, [x.value, n.value]))
        # In two steps, of which the first is exact.
        biased = n + 2 * self.bias
        half = biased >> 1
        return x * (half << self.mantissa).float() * ((biased - half) << self.mantissa).float()

    def step(self, name: str, *operands: Lane) -> Lane:
        """A call of one of the steps in `vector_intrinsics.py`, which gives what its first operand is."""
        builder, kinds = self.builder, [self.is_float(operand) for operand in operands]

        def declared(width: int) -> Any:
            m, symbol = Math(None, self.size, width), self._step(name, width)
            types = [m.float_type if is_float else m.int_type for is_float in kinds]
            found = builder.module.globals.get(symbol)
            return found or ir.Function(builder.module, ir.FunctionType(types[0], types), symbol)

        call = builder.call(declared(self.width), [operand.value for operand in operands], attrs=PURE)
        if self.width == 1:
            letters = "v" * len(operands)
            versions = [declared(bits // self.size).name for bits in vector_lengths()]
            # llvmlite knows the attributes without values only.
            text = ",".join(
                f"_ZGV_LLVM_N{bits // self.size}{letters}_{self._step(name, 1)}({version})"
                for bits, version in zip(vector_lengths(), versions)
            )
            set.add(call.attributes, f'"vector-function-abi-variant"="{text}"')
        return Lane(self, call)

    def _step(self, name: str, width: int) -> str:
        return f"autograph_step_{name}_f{self.size}_{width}"

    def look_up(self, table: str, index: Lane) -> Lane:
        """The integer that a table has at the last bits of another one."""
        return self.step(table, index)

    def times_power(self, x: Lane, n: Lane) -> Lane:
        """x * 2**floor(n) with one rounding, for |x| near 1 and floats |n| < 2 * bias."""
        return self.step("power", x, n)

    def wide(self) -> Math:
        """The same place and width, in float64."""
        return Math(self.builder, 64, self.width)

    def widened(self, x: Lane) -> Lane:
        wide = self.wide()
        return Lane(wide, self.builder.fpext(x.value, wide.float_type))

    def narrowed(self, x: Lane) -> Lane:
        return Lane(self, self.builder.fptrunc(x.value, self.float_type))


@functools.cache
def vector_lengths() -> tuple[int, ...]:
    """The lengths in bits that loops are compiled for here: LLVM takes half of the longest where it has reasons to."""
    features = processor.features()
    return (256, 512) if features.get("avx512f") else (128, 256) if features.get("avx2") else (128,)


@functools.cache
def _scales() -> bool:
    """Whether the processor multiplies by powers of two in one instruction, and LLVM knows of it for vectors."""
    features = processor.features()
    newest = llvmlite.binding.llvm_version_info[0] >= 22
    return newest and all(features.get(name) for name in ("avx512f", "avx512dq", "avx512vl"))
