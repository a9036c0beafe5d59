"""Divisions of vectors by multiplication, where a loop would wait for the divider.

    %root = call <16 x float> @llvm.sqrt(...)         %root = call <16 x float> @llvm.sqrt(...)
    %q = fdiv <16 x float> %a, %b               →     %q = call <16 x float> @autograph_quotient_16xfloat(%a, %b)

A processor has one unit for divisions and square roots, which takes 6 to 16 cycles for a vector; meanwhile those for
products have nothing to do. The quotient is the one that the divider gives, to the last bit: P. Markstein, Computation
of elementary functions on the IBM RISC System/6000 processor (1990). From an estimate of 14 bits Newton's iteration
gives the reciprocal y of b rounded correctly; q = a y is off by less than two units in the last place, a - q b has no
rounding then, and q + (a - q b) y rounds to the quotient. This holds where nothing over- or underflows, and but for
significands of ones alone: vectors with such a number, or with a zero, go to the divider after all.

Looks at code that is vectorised already, and at blocks that are loops. Only processors with AVX-512 have the estimate.
"""

from __future__ import annotations

import functools
import re

import llvmlite.binding as llvm

# For a vector of 512 bits: cycles of a division and a square root, steps of Newton's iteration.
_COSTS = {"<16 x float>": (6, 10, 2), "<8 x double>": (9, 16, 3)}
_WORTHWHILE = 1.1  # how much shorter the loop has to become
_BLOCK = re.compile(r'^([\w.$-]+|"[^"]+"):.*\n(?:.+\n)+', re.MULTILINE)
_DIVISION = re.compile(r"^  (%\S+) = fdiv (<16 x float>|<8 x double>) (.*)$", re.MULTILINE)
_ROOT = re.compile(r"= (?:tail )?call (<16 x float>|<8 x double>) @llvm\.sqrt\.")
_PRODUCT = re.compile(r"= (?:fmul|fcmp|(?:tail )?call <\d+ x \w+> @llvm\.(?:fma|fmuladd)\.)")


@functools.cache
def _is_known() -> bool:
    return bool(llvm.get_host_cpu_features().get("avx512f"))


def may_change(text: str) -> bool:
    """Whether a module may have something for `relieved`, before it is vectorised."""
    return _is_known() and "fdiv" in text and "@llvm.sqrt." in text


def relieved(text: str) -> str | None:
    """The text of an optimised module with divisions by multiplication, and what they call, which has to be inlined.
    None: there is nothing to change."""
    used: set[str] = set()
    changed = _BLOCK.sub(lambda found: _relieved_block(found, used), text)
    return (
        "\n".join([changed, *(_quotient(vector) for vector in sorted(used)), *_declared(changed, used)])
        if used
        else None
    )


def _relieved_block(found: re.Match[str], used: set[str]) -> str:
    block, label = found[0], found[1]
    divisions = _DIVISION.findall(block)
    if not divisions or not re.search(rf"label %{re.escape(label)}\b.*$", block.rstrip("\n").rpartition("\n")[2]):
        return block
    roots = _ROOT.findall(block)
    # Cycles of the divider, and of the units for products, which what the divider does takes two of.
    busy = sum(_COSTS[vector][1] for vector in roots) + sum(_COSTS[vector][0] for _, vector, _ in divisions)
    products = len(_PRODUCT.findall(block)) + 2 * (len(roots) + len(divisions))
    moved: set[str] = set()
    for name, vector, _ in divisions:
        cost, more = _COSTS[vector][0], 4 + 2 * _COSTS[vector][2]
        if max(busy - cost, products + more) * _WORTHWHILE > max(busy, products):
            break
        busy, products = busy - cost, products + more
        moved.add(name)
        used.add(vector)

    def written(division: re.Match[str]) -> str:
        name, vector, operands = division.groups()
        if name not in moved:
            return division[0]
        a, b = _two(operands)
        return f"  {name} = call {vector} @{_symbol(vector)}({vector} {a}, {vector} {b})"

    return _DIVISION.sub(written, block)


def _two(operands: str) -> tuple[str, str]:
    """The operands of an instruction: constants have commas and brackets."""
    depth = 0
    for position, letter in enumerate(operands):
        depth += (letter in "(<") - (letter in ")>")
        if letter == "," and not depth:
            return operands[:position], operands[position + 2 :].partition(", !")[0]
    raise AssertionError(f"one operand: {operands}")


def _symbol(vector: str) -> str:
    return f"autograph_quotient_{vector.strip('<>').replace(' ', '')}"


def _quotient(vector: str) -> str:
    """The text of a function that divides vectors."""
    count, element = vector.strip("<>").split(" x ")
    bits, name, mantissa, bias = (32, "ps", 23, 127) if element == "float" else (64, "pd", 52, 1023)
    integers, fma = f"<{count} x i{bits}>", f"llvm.fma.v{count}f{bits}"
    # Exponents that are far from both ends, so that no product of two comes there.
    low, span = (bias - bias // 2) << mantissa, (bias // 2 * 2) << mantissa

    def splat(number: int) -> str:
        return f"splat (i{bits} {number})"

    one = f"splat ({element} 1.0)"
    lines = [f"%y0 = call {vector} @llvm.x86.avx512.rcp14.{name}.512({vector} %b, {vector} %b, i{count} -1)"]
    lines.append(f"%minus = fneg {vector} %b")
    steps = _COSTS[vector][2]
    for k in range(steps):
        lines.append(f"%e{k} = call {vector} @{fma}({vector} %minus, {vector} %y{k}, {vector} {one})")
        lines.append(f"%y{k + 1} = call {vector} @{fma}({vector} %y{k}, {vector} %e{k}, {vector} %y{k})")
    lines.append(f"%q = fmul {vector} %a, %y{steps}")
    lines.append(f"%r = call {vector} @{fma}({vector} %minus, {vector} %q, {vector} %a)")
    lines.append(f"%product = call {vector} @{fma}({vector} %r, {vector} %y{steps}, {vector} %q)")
    for x in "ab":
        lines.append(f"%{x}.bits = bitcast {vector} %{x} to {integers}")
        lines.append(f"%{x}.size = and {integers} %{x}.bits, {splat((1 << (bits - 1)) - 1)}")
        lines.append(f"%{x}.above = sub {integers} %{x}.size, {splat(low)}")
    lines.append(f"%above = call {integers} @llvm.umax.v{count}i{bits}({integers} %a.above, {integers} %b.above)")
    lines.append(f"%far = icmp uge {integers} %above, {splat(span)}")
    lines.append(f"%digits = or {integers} %b.bits, {splat(-1 << mantissa)}")
    lines.append(f"%ones = icmp eq {integers} %digits, {splat(-1)}")
    lines.append(f"%rare = or <{count} x i1> %far, %ones")
    lines.append(f"%mask = bitcast <{count} x i1> %rare to i{count}")
    lines.append(f"%any = icmp ne i{count} %mask, 0")
    lines.append('br i1 %any, label %divide, label %end, !prof !{!"branch_weights", i32 1, i32 1000}')
    body = "\n  ".join(lines)
    return f"""
define internal {vector} @{_symbol(vector)}({vector} %a, {vector} %b) alwaysinline nounwind {{
begin:
  {body}
divide:
  %quotient = fdiv {vector} %a, %b
  br label %end
end:
  %result = phi {vector} [ %product, %begin ], [ %quotient, %divide ]
  ret {vector} %result
}}
"""


def _declared(text: str, used: set[str]) -> list[str]:
    """Declarations of what the functions call and the module has not declared."""
    lines = []
    for vector in sorted(used):
        count, element = vector.strip("<>").split(" x ")
        bits, name = (32, "ps") if element == "float" else (64, "pd")
        integers = f"<{count} x i{bits}>"
        for symbol, result, parameters in (
            (f"llvm.x86.avx512.rcp14.{name}.512", vector, f"{vector}, {vector}, i{count}"),
            (f"llvm.fma.v{count}f{bits}", vector, f"{vector}, {vector}, {vector}"),
            (f"llvm.umax.v{count}i{bits}", integers, f"{integers}, {integers}"),
        ):
            if not re.search(rf"^declare .* @{re.escape(symbol)}\(", text, re.MULTILINE):
                lines.append(f"declare {result} @{symbol}({parameters})")
    return lines
