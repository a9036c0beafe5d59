"""Divisions and square roots of vectors by multiplication, where a loop would wait for the divider.

    %root = call <16 x float> @llvm.sqrt(...)         %root = call <16 x float> @llvm.sqrt(...)
    %q = fdiv <16 x float> %a, %b               →     %q = call <16 x float> @autograph_quotient_16xfloat(%a, %b)

A processor has one unit for divisions and square roots, which takes 6 to 16 cycles for a vector; meanwhile those for
products have nothing to do. The results are those that the divider gives, to the last bit: P. Markstein, Computation
of elementary functions on the IBM RISC System/6000 processor (1990). Both begin with an estimate of 14 bits.

Newton's iteration gives the reciprocal y of b rounded correctly; q = a y is off by less than two units in the last
place, a - q b has no rounding then, and q + (a - q b) y rounds to the quotient. This holds where nothing over- or
underflows, and but for significands of ones alone: vectors with such a number, or with a zero, go to the divider after
all.

Goldschmidt's iteration gives g next to the root of a, and h next to 1 / (2 g); a - g g has no rounding then, and
g + (a - g g) h is off by some 2**-2p of itself before it is rounded to p bits. No root is halfway between two numbers,
and the few that are that close are in the tests, as are all of float32.

Looks at code that is vectorised already, and at blocks that are loops. Only processors with AVX-512 have the estimates.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence

from runtime.llvm import processor

# For a vector of 512 bits: cycles of a division and a square root, steps of Newton's iteration.
_COSTS = {"<16 x float>": (6, 10, 2), "<8 x double>": (9, 16, 3)}
_PACE = 0.78  # cycles of an instruction of vectors, measured
_WORTHWHILE = 1.1  # how much shorter the loop has to become
_BLOCK = re.compile(r'^([\w.$-]+|"[^"]+"):.*\n(?:.+\n)+', re.MULTILINE)
_DIVISION = re.compile(r"^  (%\S+) = fdiv (<16 x float>|<8 x double>) (.*)$", re.MULTILINE)
_ROOT = re.compile(
    r"^  (%\S+) = (?:tail )?call (<16 x float>|<8 x double>) @llvm\.sqrt\.\w+\((<\S+ x \w+> %\S+)\).*$", re.MULTILINE
)
_VECTORS = re.compile(r"^  .*<(?:16 x (?:float|i32)|8 x (?:double|i64))>.*$", re.MULTILINE)
_PRODUCT = re.compile(r"= (?:fmul|fcmp|(?:tail )?call <\d+ x \w+> @llvm\.(?:fma|fmuladd)\.)")


@functools.cache
def _is_known() -> bool:
    """Only AMD's processors with AVX-512: the costs are theirs, and on Intel's LLVM keeps to vectors of 256 bits."""
    return bool(processor.features().get("avx512f")) and processor.name().startswith("znver")


def may_change(text: str) -> bool:
    """Whether a module may have something for `relieved`, before it is vectorised."""
    return _is_known() and "fdiv" in text and "@llvm.sqrt." in text


def relieved(text: str) -> str | None:
    """The text of an optimised module with divisions by multiplication, and what they call, which has to be inlined.
    None: there is nothing to change."""
    used: set[str] = set()
    changed = _BLOCK.sub(lambda found: _relieved_block(found, used), text)
    if not used:
        return None
    functions = [
        write(vector)
        for kind, write in (("quotient", _quotient), ("root", _root))
        for vector in _COSTS
        if _symbol(kind, vector) in used
    ]
    declared = set(re.findall(r"^declare .* @([\w.]+)\(", text, re.MULTILINE))
    called = {name: line for each in functions for name, line in _declarations(each)}
    return "\n".join([changed, *functions, *(line for name, line in called.items() if name not in declared)])


def _relieved_block(found: re.Match[str], used: set[str]) -> str:
    block, label = found[0], found[1]
    divisions, roots = _DIVISION.findall(block), _ROOT.findall(block)
    if not divisions or not re.search(rf"label %{re.escape(label)}\b.*$", block.rstrip("\n").rpartition("\n")[2]):
        return block
    quotients, squares = _chosen([each[1] for each in divisions], [each[1] for each in roots], block)
    moved = {name for name, _, _ in divisions[:quotients]} | {name for name, *_ in roots[:squares]}
    used.update(_symbol("quotient", vector) for _, vector, _ in divisions[:quotients])
    used.update(_symbol("root", vector) for _, vector, _ in roots[:squares])

    def quotient(division: re.Match[str]) -> str:
        name, vector, operands = division.groups()
        if name not in moved:
            return division[0]
        a, b = _two(operands)
        return f"  {name} = call {vector} @{_symbol('quotient', vector)}({vector} {a}, {vector} {b})"

    def root(call: re.Match[str]) -> str:
        name, vector, operand = call.groups()
        return f"  {name} = call {vector} @{_symbol('root', vector)}({operand})" if name in moved else call[0]

    return _ROOT.sub(root, _DIVISION.sub(quotient, block))


def _chosen(divisions: Sequence[str], roots: Sequence[str], block: str) -> tuple[int, int]:
    """How many divisions and roots to do by multiplication: what makes the loop shortest."""
    products, vectors = len(_PRODUCT.findall(block)), len(_VECTORS.findall(block))

    def cycles(quotients: int, squares: int) -> float:
        left = [_COSTS[vector][0] for vector in divisions[quotients:]] + [
            _COSTS[vector][1] for vector in roots[squares:]
        ]
        steps = sum(4 + 2 * _COSTS[vector][2] for vector in divisions[:quotients])
        steps += sum(2 + 3 * _COSTS[vector][2] for vector in roots[:squares])
        checks = 8 * quotients + 2 * squares
        # What the divider does takes two cycles of the units for products, too.
        return max(sum(left), products + steps + 2 * len(left), (vectors + steps + checks) * _PACE)

    options = [(q, s) for q in range(len(divisions) + 1) for s in range(len(roots) + 1)]
    best = min(options, key=lambda option: cycles(*option))
    return best if cycles(*best) * _WORTHWHILE <= cycles(0, 0) else (0, 0)


def _two(operands: str) -> tuple[str, str]:
    """The operands of an instruction: constants have commas and brackets."""
    depth = 0
    for position, letter in enumerate(operands):
        depth += (letter in "(<") - (letter in ")>")
        if letter == "," and not depth:
            return operands[:position], operands[position + 2 :].partition(", !")[0]
    raise AssertionError(f"one operand: {operands}")


def _symbol(kind: str, vector: str) -> str:
    return f"autograph_{kind}_{vector.strip('<>').replace(' ', '')}"


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
    body = "\n  ".join([*lines, *_ends(count)])
    return f"""
define internal {vector} @{_symbol("quotient", vector)}({vector} %a, {vector} %b) alwaysinline nounwind {{
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


def _root(vector: str) -> str:
    """The text of a function that takes square roots of vectors."""
    count, element = vector.strip("<>").split(" x ")
    bits, name, mantissa, bias = (32, "ps", 23, 127) if element == "float" else (64, "pd", 52, 1023)
    integers, fma = f"<{count} x i{bits}>", f"llvm.fma.v{count}f{bits}"
    low, span = (bias - bias // 2) << mantissa, (bias // 2 * 2) << mantissa
    half = f"splat ({element} 0.5)"
    lines = [
        f"%y = call {vector} @llvm.x86.avx512.rsqrt14.{name}.512({vector} %a, {vector} %a, i{count} -1)",
        f"%g0 = fmul {vector} %a, %y",
        f"%h0 = fmul {vector} %y, {half}",
    ]
    steps = _COSTS[vector][2] - 1
    for k in range(steps):
        lines.append(f"%minus{k} = fneg {vector} %h{k}")
        lines.append(f"%e{k} = call {vector} @{fma}({vector} %minus{k}, {vector} %g{k}, {vector} {half})")
        lines.append(f"%g{k + 1} = call {vector} @{fma}({vector} %g{k}, {vector} %e{k}, {vector} %g{k})")
        lines.append(f"%h{k + 1} = call {vector} @{fma}({vector} %h{k}, {vector} %e{k}, {vector} %h{k})")
    lines.append(f"%minus = fneg {vector} %g{steps}")
    lines.append(f"%d = call {vector} @{fma}({vector} %minus, {vector} %g{steps}, {vector} %a)")
    lines.append(f"%product = call {vector} @{fma}({vector} %d, {vector} %h{steps}, {vector} %g{steps})")
    lines.append(f"%bits = bitcast {vector} %a to {integers}")
    lines.append(f"%above = sub {integers} %bits, splat (i{bits} {low})")
    lines.append(f"%far = icmp uge {integers} %above, splat (i{bits} {span})")
    lines.append(f"%mask = bitcast <{count} x i1> %far to i{count}")
    body = "\n  ".join([*lines, *_ends(count)])
    return f"""
define internal {vector} @{_symbol("root", vector)}({vector} %a) alwaysinline nounwind {{
begin:
  {body}
divide:
  %root = call {vector} @llvm.sqrt.v{count}f{bits}({vector} %a)
  br label %end
end:
  %result = phi {vector} [ %product, %begin ], [ %root, %divide ]
  ret {vector} %result
}}
"""


def _ends(count: str) -> list[str]:
    """The way to the divider, which a lane of the mask asks for."""
    return [
        f"%any = icmp ne i{count} %mask, 0",
        'br i1 %any, label %divide, label %end, !prof !{!"branch_weights", i32 1, i32 1000}',
    ]


_CALLED = re.compile(r"call (<[^>]+>) @(llvm\.[\w.]+)\((.*)\)$", re.MULTILINE)
_TYPE = re.compile(r"(<\d+ x \w+>|i\d+) (?:%|splat|-?\d)")


def _declarations(function: str) -> Iterator[tuple[str, str]]:
    """The names and declarations of LLVM's functions that one of ours calls."""
    for result, name, given in _CALLED.findall(function):
        yield name, f"declare {result} @{name}({', '.join(_TYPE.findall(given))})"
