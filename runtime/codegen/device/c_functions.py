"""Functions of the C library for devices, which have no C library, as LLVM IR.

Our formulas call `sin`, `cos` and `tan` for large angles. These are reduced exactly: if x = m * 2**e with an integer m
of 53 bits, then m times the 192 bits of 2/pi from 2**(2 - e) on is x * 2/pi modulo 4, with at least 128 bits after the
point (Payne and Hanek, "Radian reduction for trigonometric functions", 1983). The formula for small angles does the
rest, with an error of at most 2 units in the last place.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from decimal import Decimal, localcontext
from typing import Any

_ANGLES = ("sin", "cos", "tan")
_BEFORE = 64  # zero bits in front of those of 2/pi, for angles below 2**53
_BITS = 1280


@functools.cache
def _two_over_pi() -> list[int]:
    """The bits of 2/pi after the point, after `_BEFORE` zeros, in 64-bit words."""
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
    text = "0" * _BEFORE + bin(number)[2:].zfill(_BITS)
    return [int(text[at : at + 64], 2) for at in range(0, len(text), 64)]


def definitions(modules: Iterable[str], formulas: Mapping[str, Any]) -> list[str]:
    """The modules that define `sin`, `cos` and `tan`, if other modules declare them."""
    texts = list(modules)
    if not any(f"@{name}(" in text or f'@"{name}"(' in text for text in texts for name in _ANGLES):
        return []
    # The linker takes only declared functions.
    return [_text(), *(formulas[name].module(64) for name in ("sin", "cos"))]


@functools.cache
def _text() -> str:
    words = _two_over_pi()
    table = ", ".join(f"i64 {word}" for word in words)
    return f"""
@two_over_pi = internal constant [{len(words)} x i64] [{table}]
declare double @autograph_sin_f64(double)
declare double @autograph_cos_f64(double)
declare i64 @llvm.ctlz.i64(i64, i1)
declare i64 @llvm.fshl.i64(i64, i64, i64)

; 64 bits of the table from a bit on.
define internal i64 @angle_bits(i64 %from) {{
  %word = lshr i64 %from, 6
  %shift = and i64 %from, 63
  %following = add i64 %word, 1
  %place = getelementptr i64, ptr @two_over_pi, i64 %word
  %next = getelementptr i64, ptr @two_over_pi, i64 %following
  %high = load i64, ptr %place
  %low = load i64, ptr %next
  %found = call i64 @llvm.fshl.i64(i64 %high, i64 %low, i64 %shift)
  ret i64 %found
}}

; The quadrant of an angle, and what is left: at most pi/4 on either side.
define internal {{ i64, double }} @reduced_angle(double %x) noinline {{
  %bits = bitcast double %x to i64
  %shifted = lshr i64 %bits, 52
  %exponent = and i64 %shifted, 2047
  %fraction = and i64 %bits, {(1 << 52) - 1}
  %m = or i64 %fraction, {1 << 52}
  %start = sub i64 %exponent, {1075 + 2 - _BEFORE}
  %start1 = add i64 %start, 64
  %start2 = add i64 %start, 128
  %w2 = call i64 @angle_bits(i64 %start)
  %w1 = call i64 @angle_bits(i64 %start1)
  %w0 = call i64 @angle_bits(i64 %start2)
  %wide.m = zext i64 %m to i128
  %wide0 = zext i64 %w0 to i128
  %wide1 = zext i64 %w1 to i128
  %product0 = mul i128 %wide.m, %wide0
  %product1 = mul i128 %wide.m, %wide1
  %carry0 = lshr i128 %product0, 64
  %sum1 = add i128 %product1, %carry0
  %p0 = trunc i128 %product0 to i64
  %p1 = trunc i128 %sum1 to i64
  %carry1.wide = lshr i128 %sum1, 64
  %carry1 = trunc i128 %carry1.wide to i64
  %product2 = mul i64 %m, %w2
  %p2 = add i64 %product2, %carry1
  ; two bits of the quadrant, and the rest as a fraction of it
  %quadrant = lshr i64 %p2, 62
  %high = call i64 @llvm.fshl.i64(i64 %p2, i64 %p1, i64 2)
  %low = call i64 @llvm.fshl.i64(i64 %p1, i64 %p0, i64 2)
  %above = icmp slt i64 %high, 0
  %one = zext i1 %above to i64
  %nearest = add i64 %quadrant, %one
  %not.high = xor i64 %high, -1
  %not.low = xor i64 %low, -1
  %size.high = select i1 %above, i64 %not.high, i64 %high
  %size.low = select i1 %above, i64 %not.low, i64 %low
  %zeros = call i64 @llvm.ctlz.i64(i64 %size.high, i1 false)
  %none = icmp eq i64 %zeros, 64
  %shift = and i64 %zeros, 63
  %moved = call i64 @llvm.fshl.i64(i64 %size.high, i64 %size.low, i64 %shift)
  %top = select i1 %none, i64 %size.low, i64 %moved
  %number = uitofp i64 %top to double
  ; times 2**(-64 - zeros)
  %scale.exponent = sub i64 {1023 - 64}, %zeros
  %scale.bits = shl i64 %scale.exponent, 52
  %scale = bitcast i64 %scale.bits to double
  %part = fmul double %number, %scale
  %size = fmul double %part, 0x3FF921FB54442D18
  %less = fneg double %size
  %turned = select i1 %above, double %less, double %size
  ; a negative angle is the mirror image
  %is.negative = icmp slt i64 %bits, 0
  %mirrored = fneg double %turned
  %rest = select i1 %is.negative, double %mirrored, double %turned
  %opposite = sub i64 0, %nearest
  %way = select i1 %is.negative, i64 %opposite, i64 %nearest
  %four = and i64 %way, 3
  %a = insertvalue {{ i64, double }} undef, i64 %four, 0
  %b = insertvalue {{ i64, double }} %a, double %rest, 1
  ret {{ i64, double }} %b
}}

; The sine of an angle, a number of quadrants further on.
define internal double @far_sine(double %x, i64 %further) noinline {{
  %nothing = fsub double %x, %x
  %finite = fcmp oeq double %nothing, 0.0
  br i1 %finite, label %number, label %no
no:
  ret double %nothing
number:
  %reduced = call {{ i64, double }} @reduced_angle(double %x)
  %quadrant = extractvalue {{ i64, double }} %reduced, 0
  %rest = extractvalue {{ i64, double }} %reduced, 1
  %sum = add i64 %quadrant, %further
  %sine = call double @autograph_sin_f64(double %rest)
  %cosine = call double @autograph_cos_f64(double %rest)
  %odd.bit = and i64 %sum, 1
  %odd = icmp ne i64 %odd.bit, 0
  %value = select i1 %odd, double %cosine, double %sine
  %half.bit = and i64 %sum, 2
  %half = icmp ne i64 %half.bit, 0
  %negative = fneg double %value
  %found = select i1 %half, double %negative, double %value
  ret double %found
}}
define double @sin(double %x) {{
  %found = call double @far_sine(double %x, i64 0)
  ret double %found
}}
define double @cos(double %x) {{
  %found = call double @far_sine(double %x, i64 1)
  ret double %found
}}
define double @tan(double %x) {{
  %sine = call double @far_sine(double %x, i64 0)
  %cosine = call double @far_sine(double %x, i64 1)
  %found = fdiv double %sine, %cosine
  ret double %found
}}
"""
