"""x to the power y for kernels, as exp(y log(x)) with the logarithm to more digits; special values as in C99's Annex F.

float32 computes in float64. float64 carries log(x) as a sum of two numbers, with the error-free product and sum of
T. J. Dekker, A floating-point technique for extending the available precision (1971), by fused multiply-add.
"""

from __future__ import annotations

import math

from runtime.codegen.math import coefficients as tables
from runtime.codegen.math.elementary_functions import LN2, reduced, split
from runtime.codegen.math.vector_builder import FormulaBuilder, SimdValue
from runtime.codegen.math.vector_functions import inline

# 2 / 3 as a sum of two numbers.
_TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)


def _power(m: FormulaBuilder, x: SimdValue, y: SimdValue) -> SimdValue:
    size = abs(x)
    # An infinite exponent is replaced by a huge one, to avoid 0 * inf.
    bounded = m.clamp(y, -1e30, 1e30) if m.size == 32 else m.clamp(y, -1e300, 1e300)
    result = _positive_f32(m, size, bounded) if m.size == 32 else _positive_f64(m, size, bounded)
    infinite = size.equals(math.inf)
    grows = m.select(y > 0.0, m.select(infinite, m.number(math.inf), 0.0), m.select(infinite, m.number(0.0), math.inf))
    result = m.select(infinite | size.equals(0.0), grows, result)
    integer = m.floor(y).equals(y)
    half = y * 0.5
    odd = m.floor(half).differs(half)
    result = m.select(integer & odd, m.copysign(result, x), result)
    undefined = (x < 0.0) & (size < math.inf) & m.floor(y).differs(y)
    result = m.select(undefined | m.unordered(x, y), math.nan, result)
    return m.select(y.equals(0.0) | x.equals(1.0), 1.0, result)


def _positive_f32(m: FormulaBuilder, x: SimdValue, y: SimdValue) -> SimdValue:
    wide = m.wide()
    _, n, q = split(wide, m.widened(x))
    f = q - 1.0
    s = f / (f + 2.0)
    z = s * s
    logarithm = wide.fma(n, math.log(2), s * wide.fma(z, wide.polynomial(z, tables.POW_LOG_F32), 2.0))
    # Far beyond float32's range, and far within float64's.
    n2, r = reduced(wide, wide.clamp(logarithm * m.widened(y), -120.0, 120.0))
    p = wide.fma(r * r, wide.polynomial(r, tables.POW_EXP_F32), r) + 1.0
    return m.narrowed(p * ((n2 + wide.bias) << wide.mantissa).float())


def _positive_f64(m: FormulaBuilder, x: SimdValue, y: SimdValue) -> SimdValue:
    logarithm, rest = _long_logarithm(m, x)
    product = y * logarithm
    low = m.exact_fma(y, logarithm, -product) + y * rest
    low = m.select(abs(product) < 2048.0, low, m.number(0.0))
    bounded = m.clamp(product, -746.0, 710.0)
    n, r = reduced(m, bounded)
    r = r + low
    return m.ldexp(m.fma(r * r, m.polynomial(r, tables.EXP[64]), r) + 1.0, n)


def _long_logarithm(m: FormulaBuilder, x: SimdValue) -> tuple[SimdValue, SimdValue]:
    """log(x) of a positive number as an unevaluated sum of two numbers."""
    subnormal = x < 2.0**-1022
    _, n, q = split(m, m.select(subnormal, x * 2.0**54, x))
    n = n - m.select(subnormal, 54.0, m.number(0.0))
    # s + s_low = (q - 1) / (q + 1); then log(q) = 2 s + 2/3 s**3 + s**5 T(s**2).
    f = q - 1.0
    below = q + 1.0
    inverse = 1.0 / below
    s = f * inverse
    left = m.fma(-s, q - (below - 1.0), m.exact_fma(-s, below, f))
    s_low = left * inverse
    z = s * s
    z_low = m.fma(s + s, s_low, m.exact_fma(s, s, -z))
    third, third_low = _TWO_THIRDS
    p = z * third
    p_low = m.fma(z * z, m.polynomial(z, tables.POW_LOG_F64), m.exact_fma(z, third, -p))
    p_low = m.fma(z_low, third, m.fma(z, third_low, p_low))
    cube = s * p
    cube_low = m.fma(s, p_low, m.fma(s_low, p, m.exact_fma(s, p, -cube)))
    double = s + s
    total = double + cube
    total_low = (double - total) + cube + m.fma(2.0, s_low, cube_low)
    high, low = LN2[64]
    whole = n * high
    result = whole + total
    return result, (whole - result) + total + m.fma(n, low, total_low)


pow = inline("pow", _power, 2)
