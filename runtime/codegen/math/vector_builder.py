"""Builds the LLVM code of a formula over floats, from one description for scalars and for vectors.

A `SimdValue` is an SSA value, scalar or vector; its operators append instructions:

    def sigmoid(m, x):                        %0 = call float @llvm.fabs.f32(float %x)
        s = exp(m, -abs(x))            →      ...
        return s / (s + 1)                    %9 = fadd float %8, 1.0

Formulas have no branches, only `m.select`, so that loops over them can be vectorised. Building the instructions
directly skips type inference and lowering of statements, which would take most of the compile time. How kernels call
formulas: `vector_functions.py`.

Every operation gives the same bits for a scalar and in a vector, so results don't depend on where the remainder of a
vectorised loop begins.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import llvmlite.binding
from llvmlite import ir

from runtime.llvm import processor

Formula = Callable[..., "SimdValue"]


class FormulaModule(NamedTuple):
    """A module that defines a formula: its text, and the functions that it declares and others define."""

    text: str
    needs: frozenset[str]


def finished(module: Any, text: str | None = None) -> FormulaModule:
    """An llvmlite module that is complete. text: its text, if it isn't what llvmlite prints."""
    needs = frozenset(each.name for each in module.functions if each.is_declaration)
    return FormulaModule(str(module) if text is None else text, needs)


PURE = ("nounwind", "readnone")
HALF_TURNS = "gpu_half_turns"
STEP = "autograph_step_"  # the symbols of intrinsics of `vector_intrinsics.py` begin with it


class SimdValue:
    """A scalar or vector SSA value: floats, integers of the same width, or booleans."""

    __slots__ = ("m", "value")

    def __init__(self, m: FormulaBuilder, value: Any) -> None:
        self.m = m
        self.value = value

    def _binary(self, name: str, other: Any, swapped: bool = False) -> SimdValue:
        if not isinstance(other, SimdValue):
            other = self.m.like(self, other)
        a, b = (other, self) if swapped else (self, other)
        return SimdValue(self.m, getattr(self.m.builder, name)(a.value, b.value))

    def _arithmetic(self, name: str, other: Any, swapped: bool = False) -> SimdValue:
        return self._binary(f"f{name}" if self.m.is_float(self) else name, other, swapped)

    def __add__(self, other: Any) -> SimdValue:
        return self._arithmetic("add", other)

    def __sub__(self, other: Any) -> SimdValue:
        return self._arithmetic("sub", other)

    def __rsub__(self, other: Any) -> SimdValue:
        return self._arithmetic("sub", other, True)

    def __mul__(self, other: Any) -> SimdValue:
        return self._arithmetic("mul", other)

    def __truediv__(self, other: Any) -> SimdValue:
        return self._binary("fdiv", other)

    def __rtruediv__(self, other: Any) -> SimdValue:
        return self._binary("fdiv", other, True)

    def __neg__(self) -> SimdValue:
        return SimdValue(self.m, self.m.builder.fneg(self.value))

    def __abs__(self) -> SimdValue:
        return self.m.intrinsic("fabs", self)

    def __and__(self, other: Any) -> SimdValue:
        return self._binary("and_", other)

    def __or__(self, other: Any) -> SimdValue:
        return self._binary("or_", other)

    def __xor__(self, other: Any) -> SimdValue:
        return self._binary("xor", other)

    def __lshift__(self, other: int) -> SimdValue:
        return self._binary("shl", other)

    def __rshift__(self, other: int) -> SimdValue:
        """A logical right shift."""
        return self._binary("lshr", other)

    def _compare(self, sign: str, other: Any) -> SimdValue:
        """An ordered comparison, false if either side is NaN; `!=` is unordered."""
        if not isinstance(other, SimdValue):
            other = self.m.like(self, other)
        compare = self.m.builder.fcmp_unordered if sign == "!=" else self.m.builder.fcmp_ordered
        return SimdValue(self.m, compare(sign, self.value, other.value))

    def __lt__(self, other: Any) -> SimdValue:
        return self._compare("<", other)

    def __le__(self, other: Any) -> SimdValue:
        return self._compare("<=", other)

    def __gt__(self, other: Any) -> SimdValue:
        return self._compare(">", other)

    def __ge__(self, other: Any) -> SimdValue:
        return self._compare(">=", other)

    def equals(self, other: Any) -> SimdValue:
        return self._compare("==", other)

    def differs(self, other: Any) -> SimdValue:
        return self._compare("!=", other)

    def bits(self) -> SimdValue:
        """The float's bits as an integer."""
        return SimdValue(self.m, self.m.builder.bitcast(self.value, self.m.int_type))

    def float(self) -> SimdValue:
        """The float with these bits."""
        return SimdValue(self.m, self.m.builder.bitcast(self.value, self.m.float_type))


class FormulaBuilder:
    """Appends the instructions of a formula: a builder, a float format of `size` bits, and `width` lanes. portable: no
    instructions that only this computer's processor has."""

    def __init__(self, builder: Any, size: int, width: int, portable: bool = False) -> None:
        self.builder = builder
        self.portable = portable
        self.size = size
        self.width = width
        self.mantissa, self.bias = (23, 127) if size == 32 else (52, 1023)
        self.parts = 512 // size  # entries of a table
        self.float_type = self._type(ir.FloatType() if size == 32 else ir.DoubleType())
        self.int_type = self._type(ir.IntType(size))

    def _type(self, element: Any) -> Any:
        return ir.VectorType(element, self.width) if self.width > 1 else element

    def is_float(self, lane: SimdValue) -> bool:
        return lane.value.type == self.float_type

    def like(self, lane: SimdValue, number: Any) -> SimdValue:
        """A constant of the value's type."""
        type_ = lane.value.type
        if self.width == 1:
            return SimdValue(self, ir.Constant(type_, number))
        return SimdValue(self, ir.Constant(type_, [ir.Constant(type_.element, number)] * self.width))

    def number(self, value: float) -> SimdValue:
        if self.width == 1:
            return SimdValue(self, ir.Constant(self.float_type, value))
        return SimdValue(self, ir.Constant(self.float_type, [ir.Constant(self.float_type.element, value)] * self.width))

    def bits_of(self, value: float) -> int:
        """The bits of a constant."""
        code, whole = ("<f", "<i") if self.size == 32 else ("<d", "<q")
        return int(struct.unpack(whole, struct.pack(code, value))[0])

    def rounded(self, value: float) -> float:
        """A number rounded to this format."""
        code = "<f" if self.size == 32 else "<d"
        (found,) = struct.unpack(code, struct.pack(code, value))
        return float(found)

    def intrinsic(self, name: str, *operands: SimdValue) -> SimdValue:
        """A call of an LLVM intrinsic over floats."""
        vector = f"v{self.width}" if self.width > 1 else ""
        declared = self.builder.module.declare_intrinsic(
            f"llvm.{name}.{vector}f{self.size}", (), ir.FunctionType(self.float_type, [self.float_type] * len(operands))
        )
        return SimdValue(self, self.builder.call(declared, [operand.value for operand in operands]))

    def _floats(self, *values: Any) -> list[SimdValue]:
        return [value if isinstance(value, SimdValue) else self.number(value) for value in values]

    def fma(self, a: Any, b: Any, c: Any) -> SimdValue:
        """a * b + c, fused (one rounding) where the machine has the instruction."""
        return self.intrinsic("fmuladd", *self._floats(a, b, c))

    def exact_fma(self, a: Any, b: Any, c: Any) -> SimdValue:
        """a * b + c with one rounding on every machine."""
        return self.intrinsic("fma", *self._floats(a, b, c))

    def sqrt(self, x: SimdValue) -> SimdValue:
        return self.intrinsic("sqrt", x)

    def floor(self, x: SimdValue) -> SimdValue:
        return self.intrinsic("floor", x)

    def copysign(self, size: SimdValue, sign: SimdValue) -> SimdValue:
        return self.intrinsic("copysign", size, sign)

    def select(self, condition: SimdValue, yes: Any, no: Any) -> SimdValue:
        """One of two floats, or of two integers if `yes` is an integer."""
        known = yes if isinstance(yes, SimdValue) else no if isinstance(no, SimdValue) else self.number(0.0)
        a, b = (value if isinstance(value, SimdValue) else self.like(known, value) for value in (yes, no))
        return SimdValue(self, self.builder.select(condition.value, a.value, b.value))

    def unordered(self, a: SimdValue, b: SimdValue) -> SimdValue:
        """Whether either is NaN."""
        return SimdValue(self, self.builder.fcmp_unordered("uno", a.value, b.value))

    def nonzero(self, integer: SimdValue) -> SimdValue:
        return SimdValue(self, self.builder.icmp_unsigned("!=", integer.value, self.like(integer, 0).value))

    def clamp(self, x: SimdValue, low: float, high: float) -> SimdValue:
        """x within the bounds; NaN stays."""
        x = self.select(self.number(high) < x, high, x)
        return self.select(self.number(low) > x, low, x)

    def polynomial(self, x: SimdValue, coefficients: Sequence[Any]) -> SimdValue:
        """c[0] + c[1] x + c[2] x**2 + ..., by Estrin-like pairs c[i] + c[i + 1] x and Horner's rule in x**2: one
        multiplication more than Horner's rule in x, but half its dependency chain."""
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

    def nearest(self, x: SimdValue, factor: float, parts: int = 1) -> tuple[SimdValue, SimdValue]:
        """x * factor rounded to a multiple of 1 / parts: as a float, and as an integer whose low bits are parts times
        it.

        Adding 1.5 * 2**mantissa rounds away the fraction. Correct below 2**(mantissa - 2) / parts. It avoids
        conversions between floats and 64-bit integers, which older machines lack for vectors.
        """
        magic = 1.5 * 2.0**self.mantissa / parts
        shifted = self.fma(x, factor, magic)
        return shifted - magic, shifted.bits()

    def ldexp(self, x: SimdValue, n: SimdValue) -> SimdValue:
        """x * 2**n with one rounding, for |x| near 1 and integers |n| < 2 * bias."""
        if _has_ldexp() and not self.portable:
            vector = f"v{self.width}" if self.width > 1 else ""
            declared = self.builder.module.declare_intrinsic(
                f"llvm.ldexp.{vector}f{self.size}.{vector}i{self.size}", (),
                ir.FunctionType(self.float_type, [self.float_type, self.int_type]),
            )  # fmt: skip
            return SimdValue(self, self.builder.call(declared, [x.value, n.value]))
        # In two multiplications, of which the first is exact.
        biased = n + 2 * self.bias
        half = biased >> 1
        return x * (half << self.mantissa).float() * ((biased - half) << self.mantissa).float()

    def converted(self, integer: SimdValue) -> SimdValue:
        """An integer as a float, rounded."""
        return SimdValue(self, self.builder.sitofp(integer.value, self.float_type))

    def at_least(self, integer: SimdValue, number: int) -> SimdValue:
        """Whether an integer without a sign isn't less than a number."""
        return SimdValue(self, self.builder.icmp_unsigned(">=", integer.value, self.like(integer, number).value))

    def approximate(self, name: str, x: SimdValue) -> SimdValue:
        """An instruction of GPUs whose result is nearly right (`codegen/device/approximations.py`), of float32: `rcp`
        is 1 / x, `ex2` 2**x."""
        module, symbol = self.builder.module, f"gpu_{name}"
        declared = module.globals.get(symbol)
        if declared is None:
            declared = ir.Function(module, ir.FunctionType(self.float_type, [self.float_type]), symbol)
        return SimdValue(self, self.builder.call(declared, [x.value], attrs=PURE))

    def half_turns(self, x: SimdValue) -> SimdValue:
        """x / pi modulo 2, times 2**63, as an integer of 64 bits, of a float32 (`codegen/device/c_functions.py`)."""
        wide, module = self.wide(), self.builder.module
        declared = module.globals.get(HALF_TURNS)
        if declared is None:
            declared = ir.Function(module, ir.FunctionType(wide.int_type, [self.float_type]), HALF_TURNS)
        return SimdValue(wide, self.builder.call(declared, [x.value], attrs=PURE))

    def outlined(self, name: str, formula: Formula, x: SimdValue, number: int) -> SimdValue:
        """A call of a formula of a float and an integer of 64 bits, whose code is in the module once: for what is
        seldom computed."""
        module, whole = self.builder.module, self.wide().int_type
        function = module.globals.get(f"autograph_{name}_f{self.size}")
        if function is None:
            type_ = ir.FunctionType(self.float_type, [self.float_type, whole])
            function = ir.Function(module, type_, f"autograph_{name}_f{self.size}")
            function.linkage = "linkonce_odr"
            for attribute in (*PURE, "noinline"):
                function.attributes.add(attribute)
            m = FormulaBuilder(ir.IRBuilder(function.append_basic_block()), self.size, self.width)
            operands = (SimdValue(each, value) for each, value in zip((m, m.wide()), function.args))
            m.builder.ret(formula(m, *operands).value)
        return SimdValue(self, self.builder.call(function, [x.value, ir.Constant(whole, number)], attrs=PURE))

    def deferred(self, name: str, *operands: SimdValue) -> SimdValue:
        """A call of an intrinsic of `vector_intrinsics.py`, whose result has the type of its first operand."""
        builder, kinds = self.builder, [self.is_float(operand) for operand in operands]

        def declared(width: int) -> Any:
            m, symbol = FormulaBuilder(None, self.size, width), self._symbol(name, width)
            types = [m.float_type if is_float else m.int_type for is_float in kinds]
            found = builder.module.globals.get(symbol)
            return found or ir.Function(builder.module, ir.FunctionType(types[0], types), symbol)

        call = builder.call(declared(self.width), [operand.value for operand in operands], attrs=PURE)
        if self.width == 1:
            letters = "v" * len(operands)
            versions = [declared(bits // self.size).name for bits in vector_lengths()]
            # llvmlite supports attributes without values only.
            text = ",".join(
                f"_ZGV_LLVM_N{bits // self.size}{letters}_{self._symbol(name, 1)}({version})"
                for bits, version in zip(vector_lengths(), versions)
            )
            set.add(call.attributes, f'"vector-function-abi-variant"="{text}"')
        return SimdValue(self, call)

    def _symbol(self, name: str, width: int) -> str:
        return f"{STEP}{name}_f{self.size}_{width}"

    def lookup(self, table: str, index: SimdValue) -> SimdValue:
        """The entry of an integer table at the low bits of `index`."""
        return self.deferred(table, index)

    def times_power(self, x: SimdValue, n: SimdValue) -> SimdValue:
        """x * 2**floor(n) with one rounding, for |x| near 1 and floats |n| < 2 * bias."""
        return self.deferred("power", x, n)

    def wide(self) -> FormulaBuilder:
        """A builder of formulas in float64, with as many lanes as this one."""
        return FormulaBuilder(self.builder, 64, self.width)

    def widened(self, x: SimdValue) -> SimdValue:
        wide = self.wide()
        return SimdValue(wide, self.builder.fpext(x.value, wide.float_type))

    def narrowed(self, x: SimdValue) -> SimdValue:
        return SimdValue(self, self.builder.fptrunc(x.value, self.float_type))

    def low_bits(self, integer: SimdValue) -> SimdValue:
        """Truncates an integer of the float64 builder (`wide`) to this builder's integer type."""
        return SimdValue(self, self.builder.trunc(integer.value, self.int_type))


@functools.cache
def vector_lengths() -> tuple[int, ...]:
    """The vector lengths in bits that loops may be compiled for: LLVM sometimes chooses half of the longest."""
    longest = processor.vector_bits()
    return (longest // 2, longest) if longest > 128 else (longest,)


@functools.cache
def _has_ldexp() -> bool:
    """Whether the processor has a vector ldexp, and LLVM selects it."""
    features = processor.features()
    newest = llvmlite.binding.llvm_version_info[0] >= 22
    return newest and all(features.get(name) for name in ("avx512f", "avx512dq", "avx512vl"))
