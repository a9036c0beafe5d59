"""Elementary functions of float32 and float64 for kernels, without branches, so that loops over them vectorise.

At most 2 units in the last place over all numbers (erfc 4), with the special values of C99's Annex F; measured by
`python -m tests.elementary_functions`. How they are written: `vector_builder.py`, `vector_functions.py`; coefficients:
`coefficients.py`.

Reductions of arguments follow W. J. Cody and W. Waite, Software Manual for the Elementary Functions (1980): subtract a
multiple of a constant that is kept in parts.
"""

from __future__ import annotations

import math

from runtime.codegen.math import coefficients as tables
from runtime.codegen.math.vector_builder import FormulaBuilder, SimdValue
from runtime.codegen.math.vector_functions import inline, joined, outlined

# log(2) in two parts, the first short enough that its products with exponents are exact.
LN2 = {32: (0.693359375, -2.12194440e-4), 64: (6.93145751953125e-1, 1.42860682030941723212e-6)}
_PI = {
    32: (3.1415927410125732, -8.742278000372485e-08, -3.430248963623127e-15),
    64: (3.141592653589793, 1.2246467991473532e-16, -2.9947698097183397e-33),
}
_HALF_PI = {size: tuple(part / 2 for part in parts) for size, parts in _PI.items()}
# Below _TINY a function equals x; within _EXP_RANGE the exponential neither underflows nor overflows.
_TINY = {32: 2.0**-13, 64: 2.0**-28}
_EXP_RANGE = {32: (-104.0, 90.0), 64: (-746.0, 711.0)}
# Above it x**2 + 1 is x**2.
_LARGE = {32: 2.0**13, 64: 2.0**28}
_ROOT_HALF = {32: 0.70710677, 64: 0.7071067811865476}

# --- exponentials ----------------------------------------------------------------------------------------------------


def reduced(m: FormulaBuilder, x: SimdValue) -> tuple[SimdValue, SimdValue]:
    """x = n log(2) + r with |r| at most log(2) / 2: n as an integer, and r."""
    high, low = LN2[m.size]
    n, bits = m.nearest(x, math.log2(math.e))
    r = m.fma(n, -low, m.fma(n, -high, x))
    return bits - m.bits_of(1.5 * 2.0**m.mantissa), r


def _reduced_finely(m: FormulaBuilder, x: SimdValue) -> tuple[SimdValue, SimdValue, SimdValue]:
    """x = n log(2) + r for a multiple n of 1 / m.parts: n as a float and as bits, which end in m.parts * n, and r."""
    high, low = LN2[m.size]
    n, bits = m.nearest(x, math.log2(math.e), m.parts)
    return n, bits, m.fma(n, -low, m.fma(n, -high, x))


def _less_one(m: FormulaBuilder, r: SimdValue) -> SimdValue:
    """exp(r) - 1 for the remainder of the fine reduction."""
    return m.fma(r * r, m.polynomial(r, tables.EXP_NEAR[m.size]), r)


def _exp(m: FormulaBuilder, x: SimdValue) -> SimdValue:
    """2**n times exp(r), with 2**n as a power of two times a root from a table."""
    n, bits, r = _reduced_finely(m, m.clamp(x, *_EXP_RANGE[m.size]))
    root = m.lookup("root", bits).float()
    return m.times_power(m.fma(root, _less_one(m, r), root), n)


def exponential(m: FormulaBuilder, x: SimdValue, halves: int = 0) -> SimdValue:
    """exp(x) / 2**halves, to hardly more than half a unit in the last place, for formulas that continue from it."""
    n, bits, r = _reduced_finely(m, m.clamp(x, *_EXP_RANGE[m.size]))
    root, tail = m.lookup("root", bits).float(), m.lookup("tail", bits).float()
    return m.times_power(m.fma(root, _less_one(m, r), tail) + root, n - float(halves) if halves else n)


def _within(m: FormulaBuilder, x: SimdValue) -> SimdValue:
    """exp(x) where neither x nor the result overflows or underflows."""
    _, bits, r = _reduced_finely(m, x)
    power = _power_of_two(m, bits)
    return m.fma(power, _less_one(m, r), power)


def _power_of_two(m: FormulaBuilder, bits: SimdValue) -> SimdValue:
    """2**n, rounded, from the bits of m.parts * n: the low bits select the root, the others are the exponent."""
    return (m.lookup("scaled", bits) + (bits << (m.mantissa + 1 - m.parts.bit_length()))).float()


def _expm1(m: FormulaBuilder, x: SimdValue) -> SimdValue:
    """2**n (exp(r) - 1) + (2**n - 1), with half of the power, since 2**n may be infinite where the result isn't."""
    high, low = LN2[m.size]
    bounded = m.clamp(x, -44.0, _EXP_RANGE[m.size][1] - 1.0)
    n, bits = m.nearest(bounded, math.log2(math.e))
    first = m.fma(n, -high, bounded)
    r = m.fma(n, -low, first)
    lost = m.fma(n, -low, first - r)
    q = r + m.fma(r * r, m.polynomial(r, tables.EXPM1[m.size]), lost)
    half = ((bits - (m.bits_of(1.5 * 2.0**m.mantissa) - m.bias + 1)) << m.mantissa).float()
    result = m.fma(half, q, half - 0.5)
    return m.select(abs(x) < _TINY[m.size] ** 2, x, result + result)


def _sigmoid(m: FormulaBuilder, x: SimdValue) -> SimdValue:
    """s / (1 + s) or 1 / (1 + s), corrected by the remainder of the division by the unrounded sum."""
    s = exponential(m, -abs(x))
    above, below = m.select(x < 0.0, s, 1.0), s + 1.0
    quotient = above / below
    left = m.fma(-quotient, s - (below - 1.0), m.fma(-quotient, below, above))
    return m.fma(left, m.fma(s, -0.5, 1.0), quotient)


def _tanh(m: FormulaBuilder, x: SimdValue) -> SimdValue:
    """(1 - e) / (1 + e), each halved, for e = exp(-2 |x|) = p (1 + l) exp(-2 r), where l is the rounding error of p and
    of log(2), and r is exact. 1 - p and 1 + p are exact, so numerator and denominator are rounded once."""
    size = abs(x)
    size = m.select(m.number(22.0) < size, 22.0, size)
    n, bits = m.nearest(size, -2 * math.log2(math.e), m.parts)
    r = m.fma(n, math.log(2) / 2, size)
    z = r * r
    p, lost = _power_of_two(m, bits), m.lookup("lost", bits).float()
    half = (p.bits() - (1 << m.mantissa)).float()
    above = half + 0.5
    scaled = [4 * c * (-2.0) ** k for k, c in enumerate(tables.EXPM1_NEAR[m.size])]
    change = m.fma(half, m.fma(z, m.polynomial(r, scaled), lost), half - (above - 0.5))
    change = m.fma(-p, r, change)
    return m.copysign(((1.0 - above) - change) / (above + change), x)


def _sinh(m: FormulaBuilder, x: SimdValue) -> SimdValue:
    size = abs(x)
    z = x * x
    near = m.fma(size * z, m.polynomial(z, tables.SINH[m.size]), size)
    half = _half_exponential(m, size)
    return m.copysign(m.select(size < 1.0, near, half - m.number(0.25) / half), x)


def _cosh(m: FormulaBuilder, x: SimdValue) -> SimdValue:
    half = _half_exponential(m, abs(x))
    return half + m.number(0.25) / half


def _half_exponential(m: FormulaBuilder, x: SimdValue) -> SimdValue:
    """exp(x) / 2 for positive x, without overflow where the half is finite."""
    return exponential(m, x, 1)


# --- logarithms ------------------------------------------------------------------------------------------------------


def split(m: FormulaBuilder, x: SimdValue) -> tuple[SimdValue, SimdValue, SimdValue]:
    """x = 2**n q with q between sqrt(1/2) and sqrt(2), for positive normal x: n + bias as an integer, n, q."""
    root = m.bits_of(_ROOT_HALF[m.size])
    moved = x.bits() + (m.bits_of(1.0) - root)
    exponent = moved >> m.mantissa
    q = ((moved & ((1 << m.mantissa) - 1)) + root).float()
    n = (exponent | m.bits_of(2.0**m.mantissa)).float() - (2.0**m.mantissa + m.bias)
    return exponent, n, q


def _logarithm(m: FormulaBuilder, f: SimdValue, n: SimdValue) -> SimdValue:
    """n log(2) + log(1 + f)."""
    high, low = LN2[m.size]
    square = f * f
    if m.size == 32:
        tail = m.fma(n, low, f * square * m.polynomial(f, tables.LOG[32]))
        return m.fma(n, high, f + m.fma(square, -0.5, tail))
    # As in Sun's fdlibm: log(1 + f) = 2 atanh(s), arranged so that f itself is added last.
    s = f / (f + 2.0)
    z = s * s
    half = square * 0.5
    tail = m.fma(s, m.fma(z, m.polynomial(z, tables.LOG[64]), half), n * low)
    return m.fma(n, high, f - (half - tail))


def _positive(m: FormulaBuilder, x: SimdValue, zero: float, result: SimdValue) -> SimdValue:
    """The logarithm's special values: -inf at `zero`, NaN below it and for NaN, inf for inf."""
    result = m.select(x > zero, result, m.select(x.equals(zero), -math.inf, math.nan))
    return m.select(x.equals(math.inf), x, result)


def _log(m: FormulaBuilder, x: SimdValue) -> SimdValue:
    subnormal = x < 2.0 ** (1 - m.bias)
    step = m.mantissa + 2
    _, n, q = split(m, m.select(subnormal, x * 2.0**step, x))
    n = n - m.select(subnormal, float(step), m.number(0.0))
    return _positive(m, x, 0.0, _logarithm(m, q - 1.0, n))


def _log1p(m: FormulaBuilder, x: SimdValue) -> SimdValue:
    """1 + x = 2**n (1 + f), with f computed from x, since 1 + x would lose bits."""
    exponent, n, q = split(m, x + 1.0)
    scale = ((2 * m.bias - exponent) << m.mantissa).float()
    f = m.select(n > 60.0, q - 1.0, m.fma(x, scale, scale - 1.0))
    result = m.select(abs(x) < _TINY[m.size] ** 2, x, _logarithm(m, f, n))
    return _positive(m, x, -1.0, result)


def _softplus(m: FormulaBuilder, x: SimdValue) -> SimdValue:
    s = exponential(m, -abs(x))
    large = s > 0.41421356
    f = m.select(large, m.fma(s, 0.5, -0.5), s)
    return m.select(x > 0.0, x, m.number(0.0)) + _logarithm(m, f, m.select(large, 1.0, m.number(0.0)))


# --- circular functions ----------------------------------------------------------------------------------------------


def _rest(m: FormulaBuilder, n: SimdValue, x: SimdValue, parts: tuple[float, ...]) -> tuple[SimdValue, SimdValue]:
    """x - n p for a constant p in three parts, as a number and its rounding error."""
    first = m.exact_fma(n, -parts[0], x)  # exact: the difference has no more bits than a float
    second = n * parts[1]
    r = first - second
    low = m.fma(n, -parts[2], m.exact_fma(n, -parts[1], second))
    return r, ((first - r) - second) + low


def _circular(m: FormulaBuilder, x: SimdValue, quarters: int) -> SimdValue:
    """sin(x + quarters pi / 2): x = n pi / 2 + r, then the sine or cosine of r by a polynomial with selected
    coefficients."""
    n, bits = m.nearest(x, 2 / math.pi)
    turned = bits + quarters if quarters else bits
    r, low = _rest(m, n, x, _HALF_PI[m.size])
    z = r * r
    is_cosine = m.nonzero(turned & 1)
    pairs = zip(tables.COS[m.size], tables.SIN[m.size])
    p = m.polynomial(z, [m.select(is_cosine, m.number(c), s) for c, s in pairs])
    start = m.select(is_cosine, 1.0, r)
    rest = m.fma(m.select(is_cosine, z, r * z), p, m.select(is_cosine, -r * low, low))
    return ((start + rest).bits() ^ ((turned & 2) << (m.size - 2))).float()


def _sin(m: FormulaBuilder, x: SimdValue) -> SimdValue:
    return m.select(abs(x) < _TINY[m.size], x, _circular(m, x, 0))


def _cos(m: FormulaBuilder, x: SimdValue) -> SimdValue:
    return _circular(m, x, 1)


def _sine_and_cosine(m: FormulaBuilder, x: SimdValue) -> tuple[SimdValue, SimdValue]:
    """Both, with the bits of either alone: they share the reduction, and each polynomial is evaluated once."""
    n, bits = m.nearest(x, 2 / math.pi)
    r, low = _rest(m, n, x, _HALF_PI[m.size])
    z = r * r
    sine = r + m.fma(r * z, m.polynomial(z, list(tables.SIN[m.size])), low)
    cosine = m.number(1.0) + m.fma(z, m.polynomial(z, list(tables.COS[m.size])), -r * low)
    is_odd = m.nonzero(bits & 1)
    both = []
    for quarters, even, odd in ((0, sine, cosine), (1, cosine, sine)):
        sign = ((bits + quarters) & 2) << (m.size - 2)
        both.append((m.select(is_odd, odd, even).bits() ^ sign).float())
    return m.select(abs(x) < _TINY[m.size], x, both[0]), both[1]


def _tan(m: FormulaBuilder, x: SimdValue) -> SimdValue:
    n, bits = m.nearest(x, 2 / math.pi)
    r, low = _rest(m, n, x, _HALF_PI[m.size])
    z = r * r
    rest = m.fma(r * z, m.polynomial(z, tables.TAN[m.size]), m.fma(z, low, low))
    t = r + rest
    # -1 / (t + lost) = -1 / t + lost / t**2; for even n the quotient is t / 1.
    lost = rest - (t - r)
    is_odd = m.nonzero(bits & 1)
    quotient = m.select(is_odd, -1.0, t) / m.select(is_odd, t, 1.0)
    result = m.select(is_odd, m.fma(quotient * quotient, lost, quotient), t)
    return m.select(abs(x) < _TINY[m.size], x, result)


def _far(m: FormulaBuilder, x: SimdValue) -> SimdValue:
    """The mask of arguments whose reduction needs more digits of pi."""
    size = abs(x)
    return (size > (2.0**15 if m.size == 32 else 2.0**40)) & (size < math.inf)


# --- inverse circular functions --------------------------------------------------------------------------------------


def _atan(m: FormulaBuilder, x: SimdValue) -> SimdValue:
    """atan(t) around 0, 1 and infinity (S. Moshier's Cephes has the same three ranges)."""
    size = abs(x)
    middle, large = size > math.sqrt(2) - 1, size > math.sqrt(2) + 1
    above = m.select(large, m.number(-1.0), m.select(middle, size - 1.0, size))
    below = m.select(large, size, m.select(middle, size + 1.0, m.number(1.0)))
    t = above / below
    z = t * t
    high, low = _PI[m.size][0], _PI[m.size][1]
    base = m.select(large, m.number(high / 2), m.select(middle, high / 4, m.number(0.0)))
    rest = m.select(large, m.number(low / 2), m.select(middle, low / 4, m.number(0.0)))
    return m.copysign(base + (t + m.fma(t * z, m.polynomial(z, tables.ATAN[m.size]), rest)), x)


def _atan2(m: FormulaBuilder, y: SimdValue, x: SimdValue) -> SimdValue:
    """k pi / 4 + atan(t) or k pi / 4 - atan(t), where t is the smaller of |x| and |y| over the larger, or that angle
    rotated by pi / 4: it is rounded in the addition."""
    far, high = abs(x), abs(y)
    steep = high > far
    small, large = m.select(steep, far, high), m.select(steep, high, far)
    # Replaces infinities and zeros by numbers with the same angle, and keeps sums finite.
    infinite = large.equals(math.inf)
    small = m.select(infinite, m.select(small.equals(math.inf), 1.0, m.number(0.0)), small)
    large = m.select(infinite, 1.0, m.select(large > 0.0, large, 1.0))
    scale = m.select(large < 2.0 ** (4 - m.bias), 2.0 ** (m.mantissa + 4), m.number(1.0))
    scale = m.select(large > 2.0 ** (m.bias - 3), 0.0625, scale)
    small, large = small * scale, large * scale
    middle = small > large * (math.sqrt(2) - 1)
    above, below = m.select(middle, small - large, small), m.select(middle, small + large, large)
    lost_above = m.select(middle, (small - above) - large, m.number(0.0))
    lost_below = m.select(middle, small - (below - large), m.number(0.0))
    inverse = 1.0 / below
    t = above * inverse
    left = m.fma(-t, lost_below, m.fma(-t, below, above) + lost_above)
    z = t * t
    k = m.select(middle, m.number(1.0), 0.0)
    k = m.select(steep, 2.0 - k, k)
    ahead = m.copysign(m.number(1.0), x)
    k = m.select(ahead < 0.0, 4.0 - k, k)
    sign = m.select(steep, -ahead, ahead)
    first, rest = _PI[m.size][0] / 4, _PI[m.size][1] / 4
    low = m.fma(t * z, m.polynomial(z, tables.ATAN[m.size]), m.fma(k * sign, rest, left * inverse))
    angle = m.copysign(m.fma(k, first, (t + low) * sign), y)
    return m.select(m.unordered(x, y), math.nan, angle)


def _hypot(m: FormulaBuilder, x: SimdValue, y: SimdValue) -> SimdValue:
    """l sqrt(1 + (s / l)**2), where l is the larger of |x| and |y|, and s the smaller: nothing overflows before the
    result."""
    first, second = abs(x), abs(y)
    swapped = second > first
    large, small = m.select(swapped, second, first), m.select(swapped, first, second)
    ratio = small / m.select(large > 0.0, large, 1.0)
    infinite = m.select(first.equals(math.inf), first, second).equals(math.inf)  # beside NaN, too
    return m.select(infinite, math.inf, large * m.sqrt(m.fma(ratio, ratio, 1.0)))


def _arcsine(m: FormulaBuilder, x: SimdValue) -> tuple[SimdValue, SimdValue, SimdValue]:
    """Whether |x| is above a half; asin of |x|, or of sqrt((1 - |x|) / 2), as a number and a correction."""
    size = abs(x)
    large = size > 0.5
    z = m.select(large, (1.0 - size) * 0.5, size * size)
    s = m.select(large, m.sqrt(z), size)
    return large, s, s * z * m.polynomial(z, tables.ASIN[m.size])


def _asin(m: FormulaBuilder, x: SimdValue) -> SimdValue:
    large, s, rest = _arcsine(m, x)
    high, low = _PI[m.size][0] / 2, _PI[m.size][1] / 2
    far = high - (m.fma(2.0, rest, -low) + (s + s))
    return m.copysign(m.select(large, far, s + rest), x)


def _acos(m: FormulaBuilder, x: SimdValue) -> SimdValue:
    large, s, rest = _arcsine(m, x)
    high, low = _PI[m.size][0], _PI[m.size][1]
    signed, signed_rest = m.copysign(s, x), m.copysign(rest, x)
    near = high / 2 - (signed - (low / 2 - signed_rest))
    double = m.fma(2.0, rest, s + s)
    far = m.select(x < 0.0, high - (m.fma(2.0, rest, -low) + (s + s)), double)
    return m.select(large, far, near)


# --- inverse hyperbolic functions ------------------------------------------------------------------------------------
#
# log1p of a number with its rounding error.


def _log1p_of_sum(m: FormulaBuilder, x: SimdValue, lost: SimdValue) -> SimdValue:
    return _log1p(m, x) + lost / (x + 1.0)


def _asinh(m: FormulaBuilder, x: SimdValue) -> SimdValue:
    """log(|x| + sqrt(x**2 + 1)) = log1p(|x| + x**2 / (sqrt(x**2 + 1) + 1)); log(2 |x|) for large ones."""
    size = abs(x)
    square = size * size
    more = square / (m.sqrt(square + 1.0) + 1.0)
    total = size + more
    near = _log1p_of_sum(m, total, (size - total) + more)
    result = m.select(size > _LARGE[m.size], _log(m, size) + math.log(2), near)
    return m.select(size < _TINY[m.size], x, m.copysign(result, x))


def _acosh(m: FormulaBuilder, x: SimdValue) -> SimdValue:
    """log1p(t + sqrt(t**2 + 2 t)) for t = x - 1, the root with its rounding error; log(2 x) for large ones."""
    t = x - 1.0
    double = t + t
    square = m.fma(t, t, double)
    root = m.sqrt(square)
    left = m.fma(-root, root, square) + m.fma(t, t, double - square)
    total = root + t
    lost = (root - total) + t + left / (root + root)
    near = m.select(x > 1.0, _log1p_of_sum(m, total, lost), m.select(x.equals(1.0), 0.0, m.number(math.nan)))
    return m.select(x > _LARGE[m.size], _log(m, x) + math.log(2), near)


def _atanh(m: FormulaBuilder, x: SimdValue) -> SimdValue:
    """log1p(2 |x| / (1 - |x|)) / 2, the quotient with its rounding error."""
    size = abs(x)
    double = size + size
    below = 1.0 - size
    quotient = double / below
    left = m.fma(-quotient, below, double) - quotient * ((1.0 - below) - size)
    near = _log1p_of_sum(m, quotient, left / below) * 0.5
    result = m.select(size < 1.0, near, m.select(size.equals(1.0), math.inf, m.number(math.nan)))
    return m.select(size < _TINY[m.size], x, m.copysign(result, x))


# --- the error function ----------------------------------------------------------------------------------------------


def _erf(m: FormulaBuilder, x: SimdValue) -> SimdValue:
    """x times a polynomial below 1; above it 1 - exp(-q) with a polynomial q."""
    size, most = abs(x), 4.0 if m.size == 32 else 6.0
    size = m.select(m.number(most) < size, most, size)
    z = size * size
    near = m.fma(size, m.polynomial(z, tables.ERF_NEAR[m.size]), size)
    far = 1.0 - _within(m, -m.polynomial(size - 1.0, tables.ERF_FAR[m.size]))
    return m.copysign(m.select(size < 1.0, near, far), x)


def _erfc(m: FormulaBuilder, x: SimdValue) -> SimdValue:
    """exp(-x**2) p(q) / (1 + 2 x) for large x, as M. Shepherd and J. Laframboise have it (Chebyshev approximation of
    (1 + 2 x) exp(x**2) erfc(x), 1981), with the rounding errors of the square, the sum and the quotient."""
    size = abs(x)
    most, middle = (10.2, 3.0) if m.size == 32 else (27.3, 4.0)
    size = m.select(m.number(most) < size, most, size)
    square = size * size
    lost = m.exact_fma(size, size, -square)
    double = size + size
    below = double + 1.0
    inverse = m.number(1.0) / below
    p = m.polynomial((size - middle) / (size + middle), tables.ERFC[m.size])
    quotient = p * inverse
    left = m.exact_fma(-quotient, below, p) - quotient * ((1.0 - below) + double)
    n, r = reduced(m, -square)
    more = m.fma(r * r, m.polynomial(r, tables.EXP[m.size]), r)  # exp(r) - 1
    more = more - m.fma(more, lost, lost)
    far = m.ldexp(quotient + m.fma(quotient, more, left * m.fma(inverse, more, inverse)), n)
    z = x * x
    near = 1.0 - m.fma(x, m.polynomial(z, tables.ERF_NEAR[m.size]), x)
    return m.select(size < 0.5, near, m.select(x < 0.0, 2.0 - far, far))


exp = inline("exp", _exp)
expm1 = inline("expm1", _expm1)
sigmoid = inline("sigmoid", _sigmoid)
softplus = inline("softplus", _softplus)
tanh = inline("tanh", _tanh)
sinh = inline("sinh", _sinh)
cosh = inline("cosh", _cosh)
log = inline("log", _log)
log1p = inline("log1p", _log1p)
sin = outlined("sin", _sin, _far)
cos = outlined("cos", _cos, _far)
joined("sine_and_cosine", (sin, cos), _sine_and_cosine, _far)
tan = outlined("tan", _tan, _far)
atan = inline("atan", _atan)
atan2 = inline("atan2", _atan2, 2)
hypot = inline("hypot", _hypot, 2)
asin = inline("asin", _asin)
acos = inline("acos", _acos)
asinh = inline("asinh", _asinh)
acosh = inline("acosh", _acosh)
atanh = inline("atanh", _atanh)
erf = inline("erf", _erf)
erfc = inline("erfc", _erfc)
