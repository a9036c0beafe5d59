"""Operators and conversions of numbers as instructions, with numba's meaning (error model of NumPy: no exceptions)."""

from __future__ import annotations

import ast

from runtime.llvm.types import BOOL, INT64, Scalar, Unsupported, met
from runtime.llvm.writer import Value, Writer, literal

_PLAIN = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor"}
_FLOAT_COMPARISONS = {
    ast.Lt: "olt", ast.LtE: "ole", ast.Gt: "ogt", ast.GtE: "oge", ast.Eq: "oeq", ast.NotEq: "une",
}  # fmt: skip
_UNSIGNED = {ast.Lt: "ult", ast.LtE: "ule", ast.Gt: "ugt", ast.GtE: "uge", ast.Eq: "eq", ast.NotEq: "ne"}
_COMPARISONS = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}


def cast(w: Writer, value: Value, target: Scalar) -> Value:
    """A number as another type: integers wrap, floats are cut off, as machine instructions do."""
    source = value.type
    if source == target:
        return value
    if target == BOOL:
        return truth(w, value)
    if source.is_float and target.is_float:
        instruction = "fpext" if target.bits > source.bits else "fptrunc"
    elif target.is_float:
        instruction = "sitofp" if source.is_signed else "uitofp"
    elif source.is_float:
        instruction = "fptosi" if target.is_signed else "fptoui"
    elif target.bits < source.bits:
        instruction = "trunc"
    elif target.bits > source.bits:
        instruction = "sext" if source.is_signed else "zext"
    else:
        return Value(target, value.text)
    return Value(target, w.op(f"{instruction} {source.ir} {value.text} to {target.ir}"))


def truth(w: Writer, value: Value) -> Value:
    """Whether a number isn't zero."""
    if value.type == BOOL:
        return value
    if value.type.is_float:
        return Value(BOOL, w.op(f"fcmp une {value.type.ir} {value.text}, {literal(0.0, value.type).text}"))
    return Value(BOOL, w.op(f"icmp ne {value.type.ir} {value.text}, 0"))


def binary(w: Writer, op: ast.operator, a: Value, b: Value, result: Scalar) -> Value:
    """An operator's result, of the type that `infer` says."""
    if isinstance(op, (ast.FloorDiv, ast.Mod)):
        return _divided(w, isinstance(op, ast.Mod), a, b, result)
    if isinstance(op, (ast.LShift, ast.RShift)):
        return _shifted(w, isinstance(op, ast.LShift), a, b, result)
    if isinstance(op, ast.Pow):
        return _power(w, a, b, result)
    a, b = cast(w, a, result), cast(w, b, result)
    if isinstance(op, ast.Div):
        return Value(result, w.op(f"fdiv {result.ir} {a.text}, {b.text}"))
    name = _PLAIN.get(type(op))
    if name is None or (result.is_float and name in ("and", "or", "xor")):
        raise Unsupported(f"the operator {type(op).__name__}")
    return Value(result, w.op(f"{'f' if result.is_float else ''}{name} {result.ir} {a.text}, {b.text}"))


def compare(w: Writer, op: ast.cmpop, a: Value, b: Value) -> Value:
    """A comparison; false where either side is NaN, but for `!=`."""
    if type(op) not in _COMPARISONS:
        raise Unsupported(f"the comparison {type(op).__name__}")
    if {a.type.kind, b.type.kind} == {"i", "u"} and max(a.type.bits, b.type.bits) == 64:
        return _compare_mixed(w, op, a, b)
    common = met(a.type, b.type)
    a, b = cast(w, a, common), cast(w, b, common)
    if common.is_float:
        return Value(BOOL, w.op(f"fcmp {_FLOAT_COMPARISONS[type(op)]} {common.ir} {a.text}, {b.text}"))
    name = _COMPARISONS[type(op)]
    sign = "" if name in ("eq", "ne") else "s" if common.is_signed else "u"
    return Value(BOOL, w.op(f"icmp {sign}{name} {common.ir} {a.text}, {b.text}"))


def _compare_mixed(w: Writer, op: ast.cmpop, a: Value, b: Value) -> Value:
    """int64 and uint64, which no type holds both: a number below zero is less than any other."""
    below = a.type.is_signed
    signed = a if below else b
    negative = w.op(f"icmp slt {signed.type.ir} {signed.text}, 0")
    unsigned = w.op(f"icmp {_UNSIGNED[type(op)]} i64 {cast(w, a, INT64).text}, {cast(w, b, INT64).text}")
    true_when_below = (ast.Lt, ast.LtE, ast.NotEq) if below else (ast.Gt, ast.GtE, ast.NotEq)
    outcome = "true" if isinstance(op, true_when_below) else "false"
    return Value(BOOL, w.op(f"select i1 {negative}, i1 {outcome}, i1 {unsigned}"))


def negated(w: Writer, value: Value, result: Scalar) -> Value:
    value = cast(w, value, result)
    if result.is_float:
        return Value(result, w.op(f"fneg {result.ir} {value.text}"))
    return Value(result, w.op(f"sub {result.ir} 0, {value.text}"))


def inverted(w: Writer, value: Value, result: Scalar) -> Value:
    """All bits of an integer turned over."""
    if result.is_float:
        raise Unsupported("~ of a float")
    value = cast(w, value, result)
    return Value(result, w.op(f"xor {result.ir} {value.text}, -1"))


def negation(w: Writer, value: Value) -> Value:
    """`not`."""
    return Value(BOOL, w.op(f"xor i1 {truth(w, value).text}, true"))


def _shifted(w: Writer, left: bool, a: Value, b: Value, result: Scalar) -> Value:
    if a.type.is_float or b.type.is_float:
        raise Unsupported("a shift of floats")
    instruction = "shl" if left else "ashr" if result.is_signed else "lshr"
    a, b = cast(w, a, result), cast(w, b, result)
    return Value(result, w.op(f"{instruction} {result.ir} {a.text}, {b.text}"))


def _divided(w: Writer, remainder: bool, a: Value, b: Value, result: Scalar) -> Value:
    if result.is_float:
        return _divided_floats(w, remainder, cast(w, a, result), cast(w, b, result))
    if BOOL in (a.type, b.type):
        a, b = cast(w, a, INT64), cast(w, b, INT64)
    # Division of 64 bits costs several times that of 32, so it is done in the width of the operands.
    common = met(a.type, b.type)
    a, b = cast(w, a, common), cast(w, b, common)
    ir = common.ir
    zero = w.op(f"icmp eq {ir} {b.text}, 0")
    if not common.is_signed:
        safe = w.op(f"select i1 {zero}, {ir} 1, {ir} {b.text}")
        found = w.op(f"{'urem' if remainder else 'udiv'} {ir} {a.text}, {safe}")
        return cast(w, Value(common, w.op(f"select i1 {zero}, {ir} 0, {ir} {found}")), result)
    # Nothing is divided by zero: NumPy's answer is 0. The smallest integer by -1 has no answer of the same width.
    minus = w.op(f"icmp eq {ir} {b.text}, -1")
    special = w.op(f"or i1 {zero}, {minus}")
    safe = w.op(f"select i1 {special}, {ir} 1, {ir} {b.text}")
    rest = w.op(f"srem {ir} {a.text}, {safe}")
    unequal = w.op(f"icmp ne {ir} {rest}, 0")
    signs = w.op(f"xor {ir} {rest}, {safe}")
    differ = w.op(f"icmp slt {ir} {signs}, 0")
    turned = w.op(f"and i1 {unequal}, {differ}")
    if remainder:
        added = w.op(f"add {ir} {rest}, {safe}")
        found = w.op(f"select i1 {turned}, {ir} {added}, {ir} {rest}")
        return cast(w, Value(common, w.op(f"select i1 {special}, {ir} 0, {ir} {found}")), result)
    quotient = w.op(f"sdiv {ir} {a.text}, {safe}")
    step = w.op(f"sext i1 {turned} to {ir}")
    floor = cast(w, Value(common, w.op(f"add {ir} {quotient}, {step}")), result)
    wide = cast(w, a, result)
    opposite = w.op(f"sub {result.ir} 0, {wide.text}")
    by_minus = w.op(f"select i1 {minus}, {result.ir} {opposite}, {result.ir} {floor.text}")
    return Value(result, w.op(f"select i1 {zero}, {result.ir} 0, {result.ir} {by_minus}"))


def _divided_floats(w: Writer, remainder: bool, a: Value, b: Value) -> Value:
    """CPython's float_divmod, without its exception."""
    ir, zero = a.type.ir, literal(0.0, a.type).text
    rest = w.op(f"frem {ir} {a.text}, {b.text}")
    some = w.op(f"fcmp une {ir} {rest}, {zero}")
    differ = w.op(f"xor i1 {w.op(f'fcmp olt {ir} {b.text}, {zero}')}, {w.op(f'fcmp olt {ir} {rest}, {zero}')}")
    turned = w.op(f"and i1 {some}, {differ}")
    if remainder:
        added = w.op(f"select i1 {turned}, {ir} {w.op(f'fadd {ir} {rest}, {b.text}')}, {ir} {rest}")
        signed = _called(w, "copysign", Value(a.type, zero), b)
        return Value(a.type, w.op(f"select i1 {some}, {ir} {added}, {ir} {signed.text}"))
    difference = w.op(f"fsub {ir} {a.text}, {rest}")
    quotient = w.op(f"fdiv {ir} {difference}, {b.text}")
    one, half = literal(1.0, a.type).text, literal(0.5, a.type).text
    quotient = w.op(f"select i1 {turned}, {ir} {w.op(f'fsub {ir} {quotient}, {one}')}, {ir} {quotient}")
    floor = _called(w, "floor", Value(a.type, quotient)).text
    far = w.op(f"fcmp ogt {ir} {w.op(f'fsub {ir} {quotient}, {floor}')}, {half}")
    rounded = w.op(f"select i1 {far}, {ir} {w.op(f'fadd {ir} {floor}, {one}')}, {ir} {floor}")
    whole = w.op(f"fdiv {ir} {a.text}, {b.text}")
    nothing = w.op(f"fcmp oeq {ir} {quotient}, {zero}")
    signed = _called(w, "copysign", Value(a.type, zero), Value(a.type, whole))
    result = w.op(f"select i1 {nothing}, {ir} {signed.text}, {ir} {rounded}")
    by_zero = w.op(f"fcmp oeq {ir} {b.text}, {zero}")
    return Value(a.type, w.op(f"select i1 {by_zero}, {ir} {whole}, {ir} {result}"))


def _called(w: Writer, name: str, *operands: Value) -> Value:
    return w.program.intrinsic(w, name, *operands)


def _power(w: Writer, a: Value, b: Value, result: Scalar) -> Value:
    a, b = cast(w, a, result), cast(w, b, result)
    if result.is_float:
        return _called(w, "pow", a, b)
    # By squaring; exponents below zero don't come here (the text checks them), and would give 1.
    base, exponent, product = (w.stack(result.ir) for _ in range(3))
    for place, value in ((base, a.text), (exponent, b.text), (product, "1")):
        w.line(f"store {result.ir} {value}, ptr {place}")
    test, body, after = w.label(), w.label(), w.label()
    w.block(test)
    left = w.op(f"load {result.ir}, ptr {exponent}")
    w.branch(w.op(f"icmp {'sgt' if result.is_signed else 'ugt'} {result.ir} {left}, 0"), body, after)
    w.block(body)
    odd = w.op(f"trunc {result.ir} {left} to i1")
    factor = w.op(f"load {result.ir}, ptr {base}")
    before = w.op(f"load {result.ir}, ptr {product}")
    times = w.op(f"mul {result.ir} {before}, {factor}")
    w.line(f"store {result.ir} {w.op(f'select i1 {odd}, {result.ir} {times}, {result.ir} {before}')}, ptr {product}")
    w.line(f"store {result.ir} {w.op(f'mul {result.ir} {factor}, {factor}')}, ptr {base}")
    w.line(f"store {result.ir} {w.op(f'lshr {result.ir} {left}, 1')}, ptr {exponent}")
    w.jump(test)
    w.block(after)
    return Value(result, w.op(f"load {result.ir}, ptr {product}"))
