"""Functions of the C library for devices, which have no C library.

Our formulas call `sin`, `cos` and `tan` for large angles. These are reduced exactly: if x = m * 2**e with an integer m
of 53 bits, then m times the 192 bits of 2/pi from 2**(2 - e) on is x * 2/pi modulo 4, with at least 128 bits after the
point (Payne and Hanek, "Radian reduction for trigonometric functions", 1983). The formula for small angles does the
rest, with an error of at most 2 units in the last place.

The sine and cosine of a float32 have a reduction of their own, with few instructions: m has 24 bits, and m times 96
bits of 1/pi is x / pi modulo 2, of which 63 bits after the point are kept. No float32 is so near to a multiple of
pi / 2 that fewer than 30 of them are significant.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Set
from decimal import Decimal, localcontext

from runtime.codegen.math.function_table import FORMULAS
from runtime.codegen.math.vector_builder import HALF_TURNS, FormulaModule
from runtime.codegen.math.vector_functions import Function
from runtime.llvm.function_builder import FunctionBuilder, defined, definitions

_ANGLES = ("sin", "cos", "tan")
_BEFORE = 64  # zero bits in front of those of 2/pi, for angles below 2**53
_BITS = 1280
_BEFORE_32 = 32  # in front of those of 1/pi, for float32
_WORDS_32 = 8  # of 1/pi, with the zeros: the largest float32 needs the last ones


@functools.cache
def _two_over_pi() -> str:
    """The bits of 2/pi after the point."""
    with localcontext() as context:
        context.prec = 420

        # Machin: pi = 16 arctan(1/5) - 4 arctan(1/239).
        def arctan_of_inverse(n: int) -> Decimal:
            total, power, k = Decimal(0), Decimal(1) / n, 1
            while power > Decimal(10) ** -415:
                total += power / k if k % 4 == 1 else -power / k
                power /= n * n
                k += 2
            return total

        pi = 16 * arctan_of_inverse(5) - 4 * arctan_of_inverse(239)
        number = int(2 / pi * Decimal(2) ** _BITS)
    return bin(number)[2:].zfill(_BITS)


def modules(needs: Set[str]) -> list[FormulaModule]:
    """The modules that define those of `sin`, `cos`, `tan` and half turns that other modules need."""
    found = []
    if not needs.isdisjoint(_ANGLES):
        # The linker takes only declared functions.
        near = (Function(f"near_{name}", FORMULAS[name].formula).scalar_module(64) for name in ("sin", "cos"))
        found += [FormulaModule(_text(), frozenset()), *near]
    if HALF_TURNS in needs:
        found.append(FormulaModule(_half_turns_text(), frozenset()))
    return found


def _table(name: str, bits: str, size: int) -> str:
    words = [f"i{size} {int(bits[at : at + size], 2)}" for at in range(0, len(bits), size)]
    return f"@{name} = internal constant [{len(words)} x i{size}] [{', '.join(words)}]"


@functools.cache
def _text() -> str:
    return "\n".join([
        _table("two_over_pi", "0" * _BEFORE + _two_over_pi(), 64),
        *(f"declare double @autograph_near_{name}_f64(double)" for name in ("sin", "cos")),
        definitions({
            "internal i64 @angle_bits(i64 %from)": _angle_bits,
            f"internal {_ANGLE} @reduced_angle(double %x)": _reduced_angle,
            "internal double @far_sine(double %x, i64 %further) noinline": _far_sine,
            "double @sin(double %x)": lambda f: _sine(f, 0),
            "double @cos(double %x)": lambda f: _sine(f, 1),
            "double @tan(double %x)": lambda f: f.binary("fdiv", _sine(f, 0), _sine(f, 1), "double"),
        }),
    ])  # fmt: skip


_ANGLE = "{ i64, double }"  # a quadrant, and what is left: at most pi/4 on either side


def _joint_bits(f: FunctionBuilder, high: str, low: str, shift: str | int, type_: str = "i64") -> str:
    """As many bits as a word has of two words one after the other, from a bit of the first on."""
    return f.intrinsic("fshl", type_, f"{type_} {high}", f"{type_} {low}", f"{type_} {shift}")


def _angle_bits(f: FunctionBuilder) -> str:
    """64 bits of the table, from bit `%from` on."""
    word = f.binary("lshr", "%from", 6)
    high, low = (f.field("i64", "@two_over_pi", place, "i64") for place in (word, f.binary("add", word, 1)))
    return _joint_bits(f, high, low, f.binary("and", "%from", 63))


def _reduced_angle(f: FunctionBuilder) -> str:
    bits = f.convert("bitcast", "double", "%x", "i64")
    exponent = f.binary("and", f.binary("lshr", bits, 52), 2047)
    m = f.binary("or", f.binary("and", bits, (1 << 52) - 1), 1 << 52)
    start = f.binary("sub", exponent, 1075 + 2 - _BEFORE)
    w2, w1, w0 = (
        f.call("i64", "@angle_bits", f"i64 {place}")
        for place in (start, f.binary("add", start, 64), f.binary("add", start, 128))
    )
    # The lower 192 bits of m times the three words: p2, p1, p0.
    wide, wide0, wide1 = (f.convert("zext", "i64", each, "i128") for each in (m, w0, w1))
    product0 = f.binary("mul", wide, wide0, "i128")
    product1 = f.binary("mul", wide, wide1, "i128")
    sum1 = f.binary("add", product1, f.binary("lshr", product0, 64, "i128"), "i128")
    p0, p1, carry = (
        f.convert("trunc", "i128", each, "i64") for each in (product0, sum1, f.binary("lshr", sum1, 64, "i128"))
    )
    p2 = f.binary("add", f.binary("mul", m, w2), carry)
    # Two bits of the quadrant, and the rest as a fraction of it.
    quadrant = f.binary("lshr", p2, 62)
    high, low = _joint_bits(f, p2, p1, 2), _joint_bits(f, p1, p0, 2)
    is_above = f.binary("icmp slt", high, 0)
    nearest = f.binary("add", quadrant, f.convert("zext", "i1", is_above, "i64"))
    high, low = (f.select(is_above, f.binary("xor", each, -1), each) for each in (high, low))
    zeros = f.leading_zeros(high, of_zero=True)
    moved = _joint_bits(f, high, low, f.binary("and", zeros, 63))
    top = f.select(f.binary("icmp eq", zeros, 64), low, moved)
    # Times 2**(-64 - zeros).
    scale = f.convert("bitcast", "i64", f.binary("shl", f.binary("sub", 1023 - 64, zeros), 52), "double")
    fraction = f.binary("fmul", f.convert("uitofp", "i64", top, "double"), scale, "double")
    size = f.binary("fmul", fraction, "0x3FF921FB54442D18", "double")
    turned = f.select(is_above, f.negative("double", size), size, "double")
    # A negative angle is the mirror image.
    is_negative = f.binary("icmp slt", bits, 0)
    rest = f.select(is_negative, f.negative("double", turned), turned, "double")
    way = f.select(is_negative, f.binary("sub", 0, nearest), nearest)
    first = f.op(f"insertvalue {_ANGLE} undef, i64 {f.binary('and', way, 3)}, 0")
    return f.op(f"insertvalue {_ANGLE} {first}, double {rest}, 1")


def _far_sine(f: FunctionBuilder) -> str:
    """The sine of an angle, a number of quadrants further on."""
    nothing = f.binary("fsub", "%x", "%x", "double")
    f.leave_unless(f.binary("fcmp oeq", nothing, "0.0", "double"), f"double {nothing}")
    reduced = f.call(_ANGLE, "@reduced_angle", "double %x")
    quadrant, rest = (f.op(f"extractvalue {_ANGLE} {reduced}, {number}") for number in (0, 1))
    quadrants = f.binary("add", quadrant, "%further")
    sine, cosine = (f.call("double", f"@autograph_near_{name}_f64", f"double {rest}") for name in ("sin", "cos"))
    is_odd, is_half = (f.binary("icmp ne", f.binary("and", quadrants, bit), 0) for bit in (1, 2))
    value = f.select(is_odd, cosine, sine, "double")
    return f.select(is_half, f.negative("double", value), value, "double")


def _sine(f: FunctionBuilder, further: int) -> str:
    return f.call("double", "@far_sine", "double %x", f"i64 {further}")


@functools.cache
def _half_turns_text() -> str:
    bits = "0" * (_BEFORE_32 + 1) + _two_over_pi()  # 1/pi is half as much
    return "\n".join([
        _table("inverse_pi", bits[: 32 * _WORDS_32], 32),
        defined(f"linkonce_odr i64 @{HALF_TURNS}(float %x) alwaysinline", _half_turns),
    ])  # fmt: skip


def _half_turns(f: FunctionBuilder) -> str:
    """x / pi modulo 2, times 2**63. Of numbers below 2**-8 and of those that aren't finite, anything."""
    bits = f.convert("bitcast", "float", "%x", "i32")
    exponent = f.binary("and", f.binary("lshr", bits, 23, "i32"), 255, "i32")
    # The first bit counts 2**0 half turns if it is multiplied by the last one of the significand.
    start = f.max(f.binary("sub", exponent, 150 + 1 - _BEFORE_32, "i32"), 0, "i32")
    first = f.convert("zext", "i32", f.binary("lshr", start, 5, "i32"), "i64")
    words = [f.field("i32", "@inverse_pi", f.binary("add", first, n), "i32") for n in range(4)]
    shift = f.binary("and", start, 31, "i32")
    high, middle, low = (
        f.convert("zext", "i32", _joint_bits(f, a, b, shift, "i32"), "i64") for a, b in itertools.pairwise(words)
    )
    significand = f.binary("or", f.binary("and", bits, (1 << 23) - 1, "i32"), 1 << 23, "i32")
    m = f.convert("zext", "i32", significand, "i64")
    above = f.binary("mul", m, f.binary("or", f.binary("shl", high, 32), middle))
    size = f.binary("add", above, f.binary("lshr", f.binary("mul", m, low), 32))
    return f.select(f.binary("icmp slt", bits, 0, "i32"), f.binary("sub", 0, size), size)
