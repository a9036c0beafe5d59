"""Elementary functions of float32 for GPUs: formulas of their own where those of the processor take many instructions.

On a GPU, a table costs loads and an exact division costs a call. But there are approximate instructions for 2**x and 1
/ x (`vector_builder.py`, `approximate`). If these are off by at most 1 unit in the last place, the functions are off by
at most 2 over all numbers; special values are C99's. The bits differ from those of the processor's formulas. float64
uses the processor's formulas on GPUs, too.

Coefficients: as in `coefficients.py`.

- EXP: exp(r) - 1 - r over r**2 for |r| < log(2) / 2
- LOG: (log(1 + f) - f + f**2 / 2) / f**3 for |f| < 1 / 3
- SIN: (sin(r) - r) / r**3 in r**2 for |r| < pi / 2
- TANH: (tanh(x) - x) / x**3 in x**2 for |x| < 0.65
"""

from __future__ import annotations

import math

from runtime.codegen.math import coefficients as tables
from runtime.codegen.math.vector_builder import FormulaBuilder, SimdValue
from runtime.codegen.math.vector_functions import Function, Joined

_LOG = (0.33333215, -0.24999797, 0.20010407, -0.16680485, 0.14005859, -0.12184291, 0.13984482, -0.12891553)
_SIN = (-0.1666666, 0.008333066, -0.00019809577, 2.6057205e-06)
_TANH = (-0.3333326, 0.1333083, -0.05368802, 0.02046941, -0.005515154)

_MAGIC = 1.5 * 2.0**23  # adding it rounds to a whole number, whose bits are then the lowest ones
_LOG2_E = (1.4426950216293335, 1.9259629911266175e-08)
_LN2 = (0.693145751953125, 1.42860677e-06)
# No part is negative, so that n = 0 keeps the sign of -0.
_PI = (3.141592502593994, 1.5099578831723193e-07, 1.078060505991553e-14)


def _horner(m: FormulaBuilder, x: SimdValue, coefficients: tuple[float, ...]) -> SimdValue:
    """c[0] + c[1] x + c[2] x**2 + ...: other threads hide the latency of the chain."""
    result = m.number(coefficients[-1])
    for each in reversed(coefficients[:-1]):
        result = m.fma(x, result, each)
    return result


def _power_of_two(m: FormulaBuilder, shifted: SimdValue, more: int = 0) -> SimdValue:
    """2**(n + more) for a whole number to which the magic one was added."""
    return ((shifted.bits() << 23) + ((127 + more) << 23)).float()


def _quotient(m: FormulaBuilder, above: SimdValue, below: SimdValue, lost: SimdValue | None = None) -> SimdValue:
    """above / (below + lost), for normal numbers far from overflow: the approximate one, corrected by its remainder."""
    inverse = m.approximate("rcp", below)
    quotient = above * inverse
    left = m.fma(-quotient, below, above)
    if lost is not None:
        left = m.fma(-quotient, lost, left)
    return m.fma(left, inverse, quotient)


# --- exponentials ----------------------------------------------------------------------------------------------------


def _exp(m: FormulaBuilder, x: SimdValue) -> SimdValue:
    """2**n 2**r, with n kept within the normal powers: r takes what is beyond, and 2**r overflows or vanishes."""
    bounded = m.intrinsic("maxnum", m.intrinsic("minnum", x, m.number(88.0)), m.number(-87.3))
    shifted = m.fma(bounded, _LOG2_E[0], _MAGIC)
    n = shifted - _MAGIC
    r = m.fma(x, _LOG2_E[1], m.fma(x, _LOG2_E[0], -n))
    return m.approximate("ex2", r) * _power_of_two(m, shifted)


def _near_exp(m: FormulaBuilder, x: SimdValue) -> SimdValue:
    """exp(x) for x below 0, to hardly more than half a unit in the last place."""
    bounded = m.intrinsic("maximum", x, m.number(-104.0))
    shifted = m.fma(bounded, _LOG2_E[0], _MAGIC)
    n = shifted - _MAGIC
    r = m.fma(n, -_LN2[1], m.fma(n, -_LN2[0], bounded))
    p = _horner(m, r, (1.0, 1.0, *tables.EXP[32]))
    # The first product is exact: the least powers aren't normal numbers.
    return p * _power_of_two(m, shifted, 64) * 2.0**-64


def _sigmoid(m: FormulaBuilder, x: SimdValue) -> SimdValue:
    """s / (1 + s) or 1 / (1 + s), with the sum's rounding error."""
    s = _near_exp(m, -abs(x))
    below = s + 1.0
    return _quotient(m, m.select(x < 0.0, s, 1.0), below, s - (below - 1.0))


def _tanh(m: FormulaBuilder, x: SimdValue) -> SimdValue:
    """1 - 2 / (exp(2 |x|) + 1), of which the second part is small where its error is large; a polynomial near 0."""
    size = abs(x)
    z = x * x
    # The zero keeps the sign of -0.
    near = m.fma(m.fma(z, size, 0.0), _horner(m, z, _TANH), size)
    inverse = m.approximate("rcp", m.approximate("ex2", size * (2.0 * math.log2(math.e))) + 1.0)
    return m.copysign(m.select(size < 0.65, near, m.fma(inverse, -2.0, 1.0)), x)


# --- logarithms ------------------------------------------------------------------------------------------------------


def _logarithm(m: FormulaBuilder, f: SimdValue, n: SimdValue) -> SimdValue:
    """n log(2) + log(1 + f)."""
    p = m.fma(f, _horner(m, f, _LOG), -0.5)
    return m.fma(n, math.log(2), m.fma(p, f * f, f))


def _log(m: FormulaBuilder, x: SimdValue) -> SimdValue:
    subnormal = x < 2.0**-126
    scaled = m.select(subnormal, x * 2.0**23, x)
    bits = scaled.bits()
    power = (bits - m.bits_of(2 / 3)) & -(1 << 23)
    f = (bits - power).float() - 1.0
    n = m.fma(m.converted(power), 2.0**-23, m.select(subnormal, -23.0, m.number(0.0)))
    result = _logarithm(m, f, n)
    # NaN of NaN and of what is below zero, infinity of itself.
    result = m.select(m.at_least(bits, m.bits_of(math.inf)), m.fma(scaled, math.inf, math.inf), result)
    return m.select(x.equals(0.0), -math.inf, result)


def _softplus(m: FormulaBuilder, x: SimdValue) -> SimdValue:
    s = _near_exp(m, -abs(x))
    large = s > 1 / 3
    f = m.select(large, m.fma(s, 0.5, -0.5), s)
    return m.select(x > 0.0, x, m.number(0.0)) + _logarithm(m, f, m.select(large, 1.0, m.number(0.0)))


# --- circular functions ----------------------------------------------------------------------------------------------


def _sine(m: FormulaBuilder, r: SimdValue, odd: SimdValue) -> SimdValue:
    """sin(r) for |r| below pi / 2, with the other sign if the lowest bit is set."""
    z = r * r
    # The zero keeps the sign of -0.
    value = m.fma(m.fma(z, r, 0.0), _horner(m, z, _SIN), r)
    return (value.bits() ^ (odd << 31)).float()


def _turned(m: FormulaBuilder, x: SimdValue, n: SimdValue, shifted: SimdValue) -> SimdValue:
    """sin(x - n pi), with the other sign if the lowest bit is set. n: halves of whole numbers."""
    r = x
    for part in _PI:  # the first product is exact
        r = m.exact_fma(n, -part, r)
    return _sine(m, r, shifted.bits())


def _sin(m: FormulaBuilder, x: SimdValue) -> SimdValue:
    shifted = m.fma(x, 1 / math.pi, _MAGIC)
    return _turned(m, x, shifted - _MAGIC, shifted)


def _cos(m: FormulaBuilder, x: SimdValue) -> SimdValue:
    """sin(x + pi / 2)."""
    shifted = m.fma(x, 1 / math.pi, 0.5) + _MAGIC
    return _turned(m, x, (shifted - _MAGIC) - 0.5, shifted)


FAR = 2.0**15


def _far(m: FormulaBuilder, x: SimdValue) -> SimdValue:
    """The mask of arguments whose reduction needs more digits of pi."""
    return abs(x) > FAR


def _turned_exactly(m: FormulaBuilder, x: SimdValue, further: SimdValue) -> SimdValue:
    """sin(x + pi further / 2**63): the angle is a whole number, of which the first bit counts half turns, and the
    others are what is beyond. NaN of infinities."""
    turns = m.half_turns(x) + further
    # Signed: beyond the nearest whole number of half turns.
    rest = turns.m.converted(turns << 1) * (math.pi * 2.0**-64)
    odd = m.low_bits((turns ^ (turns << 1)) >> 63)
    return _sine(m, m.narrowed(rest), odd) + (x - x)


def _far_sin(m: FormulaBuilder, x: SimdValue) -> SimdValue:
    return m.outlined("far_sine", _turned_exactly, x, 0)


def _far_cos(m: FormulaBuilder, x: SimdValue) -> SimdValue:
    return m.outlined("far_sine", _turned_exactly, x, 1 << 62)


_SINE, _COSINE = Function("sin", _sin, 1, _far, _far_sin), Function("cos", _cos, 1, _far, _far_cos)
Joined("sine_and_cosine", (_SINE, _COSINE), lambda m, x: (_sin(m, x), _cos(m, x)), _far)

# In place of the processor's formulas, for float32.
FORMULAS = {
    "exp": Function("exp", _exp),
    "sigmoid": Function("sigmoid", _sigmoid),
    "tanh": Function("tanh", _tanh),
    "log": Function("log", _log),
    "softplus": Function("softplus", _softplus),
    "sin": _SINE,
    "cos": _COSINE,
}

# Parts of these: the results for arguments that aren't far.
NEAR = {"near_sin": Function("near_sin", _sin), "near_cos": Function("near_cos", _cos)}
