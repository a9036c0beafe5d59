"""Operations that are one vector instruction but that LLVM wouldn't select: table lookup by a permutation of a 512-bit
register, and multiplication by a power of two.

    %bits = call i64 @autograph_step_root_f64_1(i64 %k) #0       while loops are vectorised
    %bits = call <8 x i64> @llvm.x86.avx512.permvar.di.512(<8 x i64> <…>, <8 x i64> %k)

A scalar formula calls an opaque function with the attribute `vector-function-abi-variant`, by which LLVM's loop
vectoriser finds the vector variants. Their bodies are supplied after vectorisation: kernels of `runtime.llvm` are
linked with `definitions`, which are inlined; numba's get functions (`define_in`). Without the instructions, loads and
multiplications give the same bits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from decimal import Decimal, localcontext
from typing import Any

from llvmlite import ir

from runtime.codegen.math.vector_builder import PURE, STEP, FormulaBuilder, SimdValue
from runtime.llvm import processor


def _named(symbol: str) -> tuple[str, int, int] | None:
    """The intrinsic of a symbol (`FormulaBuilder.deferred`): its name, the size of floats in bits, the lanes."""
    if not symbol.startswith(STEP):
        return None
    name, size, width = symbol[len(STEP) :].split("_")
    return name, int(size[1:]), int(width)


@functools.cache
def _features() -> frozenset[str]:
    return frozenset(name for name, present in processor.features().items() if present)


# --- tables ----------------------------------------------------------------------------------------------------------


@functools.cache
def _roots(parts: int) -> list[Decimal]:
    """2 ** (j / parts), to 60 digits. parts: a power of two."""
    with localcontext() as context:
        context.prec = 60
        root = Decimal(2)
        for _ in range(parts.bit_length() - 1):  # powers of fractions would take a millisecond
            root = root.sqrt()
        return [root**j for j in range(parts)]


def _root(m: FormulaBuilder) -> list[int]:
    return [m.bits_of(float(root)) for root in _roots(m.parts)]


def _tail(m: FormulaBuilder) -> list[int]:
    """The rounding errors of the roots."""
    return [m.bits_of(float(root - Decimal(m.rounded(float(root))))) for root in _roots(m.parts)]


def _scaled(m: FormulaBuilder) -> list[int]:
    """Bits of the roots, arranged so that adding parts * k + j, shifted to the mantissa's top bits, adds k to the
    exponent."""
    return [bits - j * ((1 << m.mantissa) // m.parts) for j, bits in enumerate(_root(m))]


def _lost(m: FormulaBuilder) -> list[int]:
    """The relative rounding error of a root, with that of an argument reduced by parts - j times a fraction of log(2),
    where log(2) was rounded."""
    with localcontext() as context:
        context.prec = 60
        ln2 = Decimal(2).ln()
        too_much = (Decimal(m.rounded(float(ln2))) - ln2) / m.parts
        lost = [
            root * (1 + (j - m.parts) * too_much) / Decimal(m.rounded(float(root))) - 1
            for j, root in enumerate(_roots(m.parts))
        ]
    return [0, *(m.bits_of(float(each)) for each in lost[1:])]


_TABLES = {"root": _root, "tail": _tail, "scaled": _scaled, "lost": _lost}


def _table_lookup(name: str) -> Callable[[FormulaBuilder, SimdValue], SimdValue]:
    """The entry of a table at the integer's low bits."""

    def write(m: FormulaBuilder, index: SimdValue) -> SimdValue:
        element = ir.IntType(m.size)
        mask = (1 << m.size) - 1
        entries = [ir.Constant(element, entry & mask) for entry in _TABLES[name](m)]
        if m.width == 1:
            return SimdValue(m, _loaded(m, name, entries, index.value))
        if "avx512f" in _features():
            return _split_vector(m, index, 512 // m.size, functools.partial(_permuted, m, entries))
        if m.size == 32 and "avx2" in _features():
            return _split_vector(m, index, 8, functools.partial(_permuted_halves, m, entries))
        return _split_vector(m, index, 1, lambda lane: _loaded(m, name, entries, lane))

    return write


def _loaded(m: FormulaBuilder, name: str, entries: list[Any], index: Any) -> Any:
    builder, type_ = m.builder, ir.ArrayType(ir.IntType(m.size), m.parts)
    symbol = f"autograph_table_{name}_f{m.size}"
    table = builder.module.globals.get(symbol)
    if table is None:
        table = ir.GlobalVariable(builder.module, type_, symbol)
        table.linkage, table.global_constant = "internal", True
        table.initializer = ir.Constant(type_, entries)
        table.align = 64
    low = builder.and_(index, ir.Constant(index.type, m.parts - 1))
    return builder.load(builder.gep(table, [ir.Constant(index.type, 0), low], inbounds=True))


def _split_vector(m: FormulaBuilder, index: SimdValue, size: int, lookup: Callable[[Any], Any]) -> SimdValue:
    """Looks up a vector of any length by a function over vectors of one length, or over scalars."""
    builder, element = m.builder, ir.IntType(m.size)
    whole = ir.Constant(m.int_type, ir.Undefined)
    if size == 1:
        for lane in range(m.width):
            number = ir.Constant(ir.IntType(32), lane)
            whole = builder.insert_element(whole, lookup(builder.extract_element(index.value, number)), number)
        return SimdValue(m, whole)
    positions = ir.VectorType(ir.IntType(32), size)
    nothing = ir.Constant(m.int_type, ir.Undefined)
    parts = []
    for start in range(0, m.width, size):
        chosen = [min(start + lane, m.width - 1) for lane in range(size)]
        parts.append(lookup(builder.shuffle_vector(index.value, nothing, ir.Constant(positions, chosen))))
    while len(parts) > 1:
        length = parts[0].type.count * 2
        order = ir.Constant(ir.VectorType(ir.IntType(32), length), list(range(length)))
        parts = [builder.shuffle_vector(a, b, order) for a, b in zip(parts[::2], parts[1::2])]
    (found,) = parts
    if found.type.count > m.width:
        order = ir.Constant(ir.VectorType(ir.IntType(32), m.width), list(range(m.width)))
        found = builder.shuffle_vector(found, ir.Constant(found.type, ir.Undefined), order)
    assert found.type.element == element
    return SimdValue(m, found)


def _permuted(m: FormulaBuilder, entries: list[Any], index: Any) -> Any:
    """AVX-512: one register holds the table."""
    letter = "s" if m.size == 32 else "d"
    return _called(m, f"llvm.x86.avx512.permvar.{letter}i.512", index.type, _vector(entries), index)


def _permuted_halves(m: FormulaBuilder, entries: list[Any], index: Any) -> Any:
    """AVX2: two registers of 8 entries; the fourth bit selects one."""
    builder = m.builder
    low, high = (
        _called(m, "llvm.x86.avx2.permd", index.type, _vector(half), index) for half in (entries[:8], entries[8:])
    )
    is_high = builder.and_(index, ir.Constant(index.type, [8] * 8))
    return builder.select(builder.icmp_unsigned("==", is_high, ir.Constant(index.type, [0] * 8)), low, high)


def _vector(entries: list[Any]) -> Any:
    return ir.Constant(ir.VectorType(entries[0].type, len(entries)), entries)


def _called(m: FormulaBuilder, name: str, result: Any, *operands: Any) -> Any:
    type_ = ir.FunctionType(result, [operand.type for operand in operands])
    declared = m.builder.module.globals.get(name) or ir.Function(m.builder.module, type_, name)
    return m.builder.call(declared, operands, attrs=PURE)


# --- powers of two ---------------------------------------------------------------------------------------------------


def _times_power(m: FormulaBuilder, x: SimdValue, n: SimdValue) -> SimdValue:
    """x * 2**floor(n) with one rounding, for x from 1/2 to 4 and |n| < 2 * bias."""
    bits = m.size * m.width
    if not m.portable and {"avx512vl", "avx512f"} <= _features() and bits in (m.size, 256, 512):
        letter = "s" if m.size == 32 else "d"
        if m.width == 1:
            length, name = 128 // m.size, f"llvm.x86.avx512.mask.scalef.s{letter}"
        else:
            length, name = m.width, f"llvm.x86.avx512.mask.scalef.p{letter}.{bits}"
        type_ = ir.VectorType(m.float_type if m.width == 1 else m.float_type.element, length)
        zero = ir.IntType(32)(0)
        given = [x.value, n.value]
        if m.width == 1:
            given = [m.builder.insert_element(ir.Constant(type_, ir.Undefined), each, zero) for each in given]
        lanes = ir.IntType(8 if m.width == 1 else max(length, 8))
        rounding = [] if bits == 256 else [ir.IntType(32)(4)]
        found = _called(m, name, type_, *given, ir.Constant(type_, None), lanes(-1), *rounding)
        return SimdValue(m, m.builder.extract_element(found, zero) if m.width == 1 else found)
    whole = m.floor(n) + 1.5 * 2.0**m.mantissa
    return m.ldexp(x, whole.bits() - m.bits_of(1.5 * 2.0**m.mantissa))


INTRINSICS: dict[str, Callable[..., SimdValue]] = {
    **{name: _table_lookup(name) for name in _TABLES},
    "power": _times_power,
}


# --- definitions ----------------------------------------------------------------------------------------------------


def keep_variants(module: Any) -> str:
    """The text of a module in which the vector variants survive until loop vectorisation, though nothing calls them."""
    text = str(module)
    names = [name for name, each in module.globals.items() if _named(name) and each.is_declaration]
    if not names:
        return text
    places = ", ".join(f"ptr @{name}" for name in names)
    return f'{text}\n@llvm.compiler.used = appending global [{len(names)} x ptr] [{places}], section "llvm.metadata"\n'


def definitions(needs: Iterable[str], portable: bool = False) -> str:
    """A module that defines those of these functions that are intrinsics, to be linked and inlined after loop
    vectorisation; empty if none is.

    portable: without instructions of this processor's; the bits are the same.
    """
    found = {symbol: named for symbol in sorted(needs) if (named := _named(symbol))}
    if not found:
        return ""
    module = ir.Module()
    for symbol, (name, size, width) in found.items():
        m = FormulaBuilder(None, size, width, portable)
        types = [m.float_type] * 2 if name == "power" else [m.int_type]
        function = ir.Function(module, ir.FunctionType(types[0], types), symbol)
        _write(function, name, m, "available_externally", "alwaysinline")
    return str(module)


def define_in(module: Any) -> None:
    """Defines the intrinsics that an llvmlite module declares, as functions."""
    for symbol, declared in list(module.globals.items()):
        named = _named(symbol)
        if named and declared.is_declaration:
            name, size, width = named
            # This linkage keeps functions without callers until loop vectorisation.
            _write(declared, name, FormulaBuilder(None, size, width), "weak_odr", "noinline")


def _write(function: Any, name: str, m: FormulaBuilder, linkage: str, inlining: str) -> None:
    function.linkage = linkage
    for attribute in (*PURE, inlining):
        function.attributes.add(attribute)
    m.builder = ir.IRBuilder(function.append_basic_block())
    m.builder.ret(INTRINSICS[name](m, *(SimdValue(m, argument) for argument in function.args)).value)
