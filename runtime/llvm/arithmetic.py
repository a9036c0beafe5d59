"""Instructions of operators and conversions of numbers. They give what numba's do under NumPy's error model, which
raises no exceptions.

A number may be a vector (`lanes` of its type). Every operator works lane by lane; a single number is broadcast to the
lanes of the other operand.
"""

from __future__ import annotations

from runtime.kernel_ir.types import BOOL, FLOAT64, INT64, Scalar, Unsupported, promoted
from runtime.llvm.writer import Value, Writer, literal

_INSTRUCTIONS = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor"}
_FLOAT_COMPARISONS = {"<": "olt", "<=": "ole", ">": "ogt", ">=": "oge", "==": "oeq", "!=": "une"}
_UNSIGNED = {"<": "ult", "<=": "ule", ">": "ugt", ">=": "uge", "==": "eq", "!=": "ne"}
_COMPARISONS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}


def cast(w: Writer, value: Value, target: Scalar) -> Value:
    """Converts a number as machine instructions do: integers wrap around, floats lose their fraction."""
    if target.lanes > value.type.lanes:
        return splat(w, cast(w, value, target.times(1)), target.lanes)
    source, target = value.type, target.times(value.type.lanes)
    if source == target:
        return value
    if source.lanes == 1 and source.kind in "iu" and value.text.lstrip("-").isdigit():
        whole = int(value.text)
        if source.kind == "u":  # LLVM prints the upper half of its range as negative
            whole &= (1 << source.bits) - 1
        if target.kind in "iu" or (target.is_float and abs(whole) <= 1 << 24):
            return literal(whole, target)
    if target.kind == "b":
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
    found = w.convert(instruction, source.ir, value.text, target.ir)
    if source.lanes > 1 and instruction.startswith("fpto"):
        found = w.op(f"freeze {target.ir} {found}")  # inactive lanes hold arbitrary numbers
    return Value(target, found)


def splat(w: Writer, value: Value, lanes: int) -> Value:
    """A vector with the number in each lane; a vector stays as it is."""
    if value.type.lanes == lanes:
        return value
    target = value.type.times(lanes)
    if not value.text.startswith("%"):  # a constant
        return Value(target, f"splat ({value.type.ir} {value.text})")
    return Value(target, w.splat(target.ir, value.type.ir, value.text))


def broadcast(w: Writer, *values: Value) -> list[Value]:
    """The numbers, each with as many lanes as the widest of them."""
    lanes = max([value.type.lanes for value in values])
    return list(values) if lanes == 1 else [splat(w, value, lanes) for value in values]


def common(a: Scalar, b: Scalar) -> Scalar:
    """The common type of numbers that have the same number of lanes."""
    if a is b:
        return a
    return promoted(a.times(1), b.times(1)).times(a.lanes)


def truth(w: Writer, value: Value) -> Value:
    """Whether a number isn't zero."""
    type_ = value.type
    if type_.kind == "b":
        return value
    compare = "fcmp une" if type_.is_float else "icmp ne"
    return Value(BOOL.times(type_.lanes), w.binary(compare, value.text, literal(0, type_).text, type_.ir))


def select(w: Writer, condition: Value, yes: Value, no: Value) -> Value:
    """One of two numbers of the same type; lane by lane if the condition or a number is a vector."""
    condition, yes, no = broadcast(w, condition, yes, no)
    return Value(
        yes.type,
        w.op(f"select {condition.type.ir} {condition.text}, {yes.type.ir} {yes.text}, {no.type.ir} {no.text}"),
    )


def binary(w: Writer, op: str, a: Value, b: Value, result: Scalar) -> Value:
    """An operator's result, lane by lane. result: its type for one lane."""
    first = _consecutive(w, op, a, b)
    a, b = broadcast(w, a, b)
    result = result.times(a.type.lanes)
    if op in ("//", "%"):
        return _divided(w, op == "%", a, b, result)
    if op in ("<<", ">>"):
        return _shifted(w, op == "<<", a, b, result)
    if op == "**":
        return _power(w, a, b, result)
    a, b = cast(w, a, result), cast(w, b, result)
    if op == "/":
        return Value(result, w.binary("fdiv", a.text, b.text, result.ir))
    name = _INSTRUCTIONS[op]
    if result.is_float and name in ("and", "or", "xor"):
        raise Unsupported(f"{op} of floats")
    return Value(result, w.binary(f"{'f' if result.is_float else ''}{name}", a.text, b.text, result.ir), first)


def _consecutive(w: Writer, op: str, a: Value, b: Value) -> str | None:
    """The first lane of a sum, if its lanes go up by 1: the sum of such a vector and a single number."""
    if op != "+" or (a.first is not None and b.first is not None):
        return None
    line, number = (a, b) if a.first is not None else (b, a)
    if line.first is None or number.type != INT64 or line.type.times(1) != INT64:
        return None
    return w.binary("add", line.first, number.text)


def compare(w: Writer, op: str, a: Value, b: Value) -> Value:
    """A comparison. Except for `!=`, it is false if either side is NaN."""
    a, b = broadcast(w, a, b)
    if {a.type.kind, b.type.kind} == {"i", "u"} and max(a.type.bits, b.type.bits) == 64:
        return _compare_mixed(w, op, a, b)
    both = common(a.type, b.type)
    result = BOOL.times(both.lanes)
    a, b = cast(w, a, both), cast(w, b, both)
    if both.is_float:
        return Value(result, w.binary(f"fcmp {_FLOAT_COMPARISONS[op]}", a.text, b.text, both.ir))
    name = _COMPARISONS[op]
    sign = "" if name in ("eq", "ne") else "s" if both.is_signed else "u"
    return Value(result, w.binary(f"icmp {sign}{name}", a.text, b.text, both.ir))


def _compare_mixed(w: Writer, op: str, a: Value, b: Value) -> Value:
    """Compares int64 with uint64. No type holds both; a negative number is less than any unsigned one."""
    below = a.type.is_signed
    signed = a if below else b
    result = BOOL.times(signed.type.lanes)
    negative = Value(result, w.binary("icmp slt", signed.text, literal(0, signed.type).text, signed.type.ir))
    a, b = cast(w, a, INT64), cast(w, b, INT64)
    unsigned = Value(result, w.binary(f"icmp {_UNSIGNED[op]}", a.text, b.text, a.type.ir))
    true_when_below = ("<", "<=", "!=") if below else (">", ">=", "!=")
    return select(w, negative, literal(op in true_when_below, result), unsigned)


def negated(w: Writer, value: Value, result: Scalar) -> Value:
    value = cast(w, value, result)
    if value.type.is_float:
        return Value(value.type, w.negative(value.type.ir, value.text))
    return Value(value.type, w.binary("sub", literal(0, value.type).text, value.text, value.type.ir))


def inverted(w: Writer, value: Value, result: Scalar) -> Value:
    """`~`: the integer with all bits inverted."""
    if result.is_float:
        raise Unsupported("~ of a float")
    value = cast(w, value, result)
    return Value(value.type, w.binary("xor", value.text, literal(-1, value.type).text, value.type.ir))


def negation(w: Writer, value: Value) -> Value:
    """`not`."""
    value = truth(w, value)
    return Value(value.type, w.binary("xor", value.text, literal(True, value.type).text, value.type.ir))


def _shifted(w: Writer, left: bool, a: Value, b: Value, result: Scalar) -> Value:
    if a.type.is_float or b.type.is_float:
        raise Unsupported("a shift of floats")
    instruction = "shl" if left else "ashr" if result.is_signed else "lshr"
    a, b = cast(w, a, result), cast(w, b, result)
    return Value(result, w.binary(instruction, a.text, b.text, result.ir))


def _divided(w: Writer, remainder: bool, a: Value, b: Value, result: Scalar) -> Value:
    if result.is_float:
        return _divided_floats(w, remainder, cast(w, a, result), cast(w, b, result))
    if a.type.kind == "b" or b.type.kind == "b":
        a, b = cast(w, a, INT64), cast(w, b, INT64)
    # A 64-bit division costs several times as much as a 32-bit one, so the operands keep their width.
    both = common(a.type, b.type)
    a, b = cast(w, a, both), cast(w, b, both)
    ir, flag = both.ir, BOOL.times(both.lanes)
    none, one = literal(0, both), literal(1, both)
    number = _divisor(b)
    if number is not None and not number & (number - 1):  # a power of two
        shift, mask = literal(number.bit_length() - 1, both), literal(number - 1, both)
        other, how = (mask, "and") if remainder else (shift, "ashr" if both.is_signed else "lshr")
        return cast(w, Value(both, w.binary(how, a.text, other.text, ir)), result)
    if number is not None:
        quotient, rest = _whole(w, a, b)
        if not both.is_signed:
            return cast(w, rest if remainder else quotient, result)
        negative = w.binary("icmp slt", rest.text, none.text, ir)
        if remainder:
            added = Value(both, w.binary("add", rest.text, b.text, ir))
            return cast(w, select(w, Value(flag, negative), added, rest), result)
        below = w.convert("sext", flag.ir, negative, ir)
        return cast(w, Value(both, w.binary("add", quotient.text, below, ir)), result)
    zero = Value(flag, w.binary("icmp eq", b.text, none.text, ir))
    if not both.is_signed:
        safe = select(w, zero, one, b)
        quotient, rest = _whole(w, a, safe)
        return cast(w, select(w, zero, none, rest if remainder else quotient), result)
    # Two divisors need care: by 0, NumPy gives 0; by -1, the quotient of the smallest integer has no value of that
    # width.
    minus = Value(flag, w.binary("icmp eq", b.text, literal(-1, both).text, ir))
    special = Value(flag, w.binary("or", zero.text, minus.text, flag.ir))
    safe = select(w, special, one, b)
    quotient, rest = _whole(w, a, safe)
    unequal = w.binary("icmp ne", rest.text, none.text, ir)
    signs = w.binary("xor", rest.text, safe.text, ir)
    differ = w.binary("icmp slt", signs, none.text, ir)
    turned = Value(flag, w.binary("and", unequal, differ, flag.ir))
    if remainder:
        added = Value(both, w.binary("add", rest.text, safe.text, ir))
        return cast(w, select(w, special, none, select(w, turned, added, rest)), result)
    step = w.convert("sext", flag.ir, turned.text, ir)
    floor = cast(w, Value(both, w.binary("add", quotient.text, step, ir)), result)
    by_minus = select(w, minus, negated(w, a, result), floor)
    return select(w, zero, literal(0, result), by_minus)


def _divisor(value: Value) -> int | None:
    """The value of a divisor that is a positive constant, which needs no checks; else None."""
    text = value.text.removeprefix(f"splat ({value.type.times(1).ir} ").rstrip(")")
    return int(text) if text.isdigit() and int(text) > 0 else None


def _whole(w: Writer, a: Value, b: Value) -> tuple[Value, Value]:
    """Quotient and remainder of integers, rounded towards zero; `b` isn't zero. LLVM removes what isn't used."""
    type_ = a.type
    sign = "s" if type_.is_signed else "u"
    if type_.lanes == 1 or type_.bits == 64 or b.text.startswith("splat"):
        return tuple(Value(type_, w.binary(f"{sign}{name}", a.text, b.text, type_.ir)) for name in ("div", "rem"))  # type: ignore[return-value]
    # No machine divides vectors of integers. In float64, the rounding error of a quotient of 32-bit integers is less
    # than its distance to the next integer, so truncation gives the exact quotient.
    x, y = cast(w, a, FLOAT64), cast(w, b, FLOAT64)
    quotient = cast(w, Value(x.type, w.binary("fdiv", x.text, y.text, x.type.ir)), type_)
    product = w.binary("mul", quotient.text, b.text, type_.ir)
    return quotient, Value(type_, w.binary("sub", a.text, product, type_.ir))


def _divided_floats(w: Writer, remainder: bool, a: Value, b: Value) -> Value:
    """CPython's float_divmod, without its exception."""
    type_, flag = a.type, BOOL.times(a.type.lanes)
    zero, one, half = (literal(number, type_) for number in (0.0, 1.0, 0.5))

    def made(instruction: str, x: Value, y: Value) -> Value:
        return Value(type_, w.binary(instruction, x.text, y.text, type_.ir))

    def is_(comparison: str, x: Value, y: Value) -> Value:
        return Value(flag, w.binary(f"fcmp {comparison}", x.text, y.text, type_.ir))

    rest = made("frem", a, b)
    some = is_("une", rest, zero)
    differ = w.binary("xor", is_("olt", b, zero).text, is_("olt", rest, zero).text, flag.ir)
    turned = Value(flag, w.binary("and", some.text, differ, flag.ir))
    if remainder:
        added = select(w, turned, made("fadd", rest, b), rest)
        return select(w, some, added, _called(w, "copysign", zero, b))
    quotient = made("fdiv", made("fsub", a, rest), b)
    quotient = select(w, turned, made("fsub", quotient, one), quotient)
    floor = _called(w, "floor", quotient)
    rounded = select(w, is_("ogt", made("fsub", quotient, floor), half), made("fadd", floor, one), floor)
    whole = made("fdiv", a, b)
    result = select(w, is_("oeq", quotient, zero), _called(w, "copysign", zero, whole), rounded)
    return select(w, is_("oeq", b, zero), whole, result)


def _called(w: Writer, name: str, *operands: Value) -> Value:
    return w.program.intrinsic(w, name, *operands)


def _power(w: Writer, a: Value, b: Value, result: Scalar) -> Value:
    a, b = cast(w, a, result), cast(w, b, result)
    if result.is_float:
        return _called(w, "pow", a, b)
    if result.lanes > 1:
        raise Unsupported("integer powers of vectors")
    # By squaring. Kernels check beforehand that the exponent isn't negative; one that is would give 1.
    base, exponent, product = (w.stack(result.ir) for _ in range(3))
    for slot, value in ((base, a.text), (exponent, b.text), (product, "1")):
        w.store(result.ir, value, slot)
    test, body, after = w.label(), w.label(), w.label()
    w.block(test)
    left = w.load(result.ir, exponent)
    w.branch(w.binary(f"icmp {'sgt' if result.is_signed else 'ugt'}", left, 0, result.ir), body, after)
    w.block(body)
    odd = w.convert("trunc", result.ir, left, "i1")
    factor = w.load(result.ir, base)
    before = w.load(result.ir, product)
    times = w.binary("mul", before, factor, result.ir)
    w.store(result.ir, w.select(odd, times, before, result.ir), product)
    w.store(result.ir, w.binary("mul", factor, factor, result.ir), base)
    w.store(result.ir, w.binary("lshr", left, 1, result.ir), exponent)
    w.jump(test)
    w.block(after)
    return Value(result, w.load(result.ir, product))
