"""Divisions and square roots of vectors by multiplication, where a loop would wait for the divider.

    %root = call <16 x float> @llvm.sqrt(...)         %root = call <16 x float> @llvm.sqrt(...)
    %q = fdiv <16 x float> %a, %b               →     %q = call <16 x float> @autograph_quotient_16xfloat(%a, %b)

A processor has one unit for divisions and square roots, which takes 6 to 16 cycles for a vector, while the multipliers
idle. The results equal those of the divider to the last bit (P. Markstein, "Computation of elementary functions on the
IBM RISC System/6000 processor", 1990). Both iterations begin with an estimate of 14 bits.

Newton's iteration gives the correctly rounded reciprocal y of b. Then q = a y is off by less than two units in the last
place, a - q b is exact, and q + (a - q b) y rounds to the quotient. This holds unless something over- or underflows, or
a significand consists of ones alone; vectors with such a number, or with a zero, go to the divider.

Goldschmidt's iteration gives g close to the root of a, and h close to 1 / (2 g). Then a - g g is exact, and
g + (a - g g) h has a relative error of some 2**-2p before it is rounded to p bits. No root lies halfway between two
numbers; the few that come that close are in the tests, as are all of float32.

The pass runs on vectorised code, over blocks that are loops. How many replacements pay depends on how many vectors LLVM
has made of a trip, and of two vectors of one root each may take another way, so it can't be decided when the loop is
written. The pass reads LLVM's instructions and replaces them in the text of the module, since llvmlite can't change a
module otherwise. Only processors with AVX-512 have the estimates.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from runtime.llvm import processor

# For a vector of 512 bits: cycles of a division and a square root, steps of Newton's iteration.
_COSTS = {"<16 x float>": (6, 10, 2), "<8 x double>": (9, 16, 3)}
_CYCLES = 0.78  # cycles of a vector instruction, measured
_LEAST_GAIN = 1.1  # by how much the loop has to become shorter
_OF_VECTORS = ("<16 x float>", "<16 x i32>", "<8 x double>", "<8 x i64>")
_PRODUCTS = ("llvm.fma.", "llvm.fmuladd.")


@functools.cache
def _is_known() -> bool:
    """Whether this is an AMD processor with AVX-512: the costs are theirs, and for Intel's, LLVM uses vectors of 256
    bits."""
    return bool(processor.features().get("avx512f")) and processor.name().startswith("znver")


def may_change(text: str) -> bool:
    """Whether `with_fewer_divisions` may change a module; decided before it is vectorised."""
    return _is_known() and "fdiv" in text and "@llvm.sqrt." in text


def with_fewer_divisions(module: Any) -> str | None:
    """The text of an optimised module with divisions by multiplication, and the functions that they call, which have to
    be inlined; None if there is nothing to change."""
    used: dict[tuple[str, str], None] = {}  # what is called: kind and type
    text, changed = str(module), {}
    if _may_divide(text):
        changed = {each.name: _replaceable(each, used) for each in module.functions if not each.is_declaration}
    if not used:
        return None
    helpers = [_quotient(vector) if kind == "quotient" else _root(vector) for kind, vector in used]
    declared = {function.name for function in module.functions}
    wanted = {name: line for helper in helpers for name, line in helper.declarations.items() if name not in declared}
    return "\n".join([_with_calls(text, changed), *(helper.text for helper in helpers), *wanted.values()])


def _may_divide(text: str) -> bool:
    """Whether code divides vectors. Searching the text is faster than asking LLVM for the instructions one by one."""
    return any(f" = fdiv {vector} " in text for vector in _COSTS)


def _replaceable(function: Any, used: dict[tuple[str, str], None]) -> dict[str, str]:
    """The instructions to replace by calls, by the names of their results."""
    found: dict[str, str] = {}
    for block in function.blocks:
        if not _may_divide(str(block)):
            continue
        instructions = list(block.instructions)
        if all(operand != block for operand in instructions[-1].operands):
            continue  # not a loop
        divisions = [each for each in instructions if each.opcode == "fdiv" and str(each.type) in _COSTS]
        if not divisions:
            continue
        roots = [each for each in instructions if _is_call(each, "llvm.sqrt.") and str(each.type) in _COSTS]
        kinds = [str(each.type) for each in divisions], [str(each.type) for each in roots]
        quotients, squares = _chosen(*kinds, instructions)
        for kind, chosen in (("quotient", divisions[:quotients]), ("root", roots[:squares])):
            for each in chosen:
                vector, (name, definition) = str(each.type), _definition(each)
                given = _two(definition) if kind == "quotient" else (_argument(definition),)
                operands = ", ".join(f"{vector} {operand}" for operand in given)
                found[name] = f"call {vector} @{_symbol(kind, vector)}({operands})"
                used[kind, vector] = None
    return found


def _with_calls(text: str, changed: Mapping[str, Mapping[str, str]]) -> str:
    """A module's text with some instructions, given by the names of their functions and results, replaced by calls."""
    lines = text.split("\n")
    calls: Mapping[str, str] = {}
    for position, line in enumerate(lines):
        if line.startswith("define "):
            calls = next((found for name, found in changed.items() if f"@{name}(" in line or f'@"{name}"(' in line), {})
        name = line.partition(" = ")[0]
        if calls and name.strip() in calls:
            lines[position] = f"{name} = {calls[name.strip()]}"
    return "\n".join(lines)


def _is_call(instruction: Any, *names: str) -> bool:
    """Whether an instruction calls a function whose name begins with this."""
    if instruction.opcode != "call":
        return False
    *_, called = instruction.operands
    return bool(called.name.startswith(names))


def _is_of_vectors(instruction: Any) -> bool:
    """Whether an instruction has vectors of 512 bits as operands or result."""
    return str(instruction.type) in _OF_VECTORS or any(str(each.type) in _OF_VECTORS for each in instruction.operands)


def _definition(instruction: Any) -> tuple[str, str]:
    """The name of an instruction's result, and its right-hand side."""
    name, _, definition = str(instruction).strip().partition(" = ")
    return name, definition


def _chosen(divisions: Sequence[str], roots: Sequence[str], block: Sequence[Any]) -> tuple[int, int]:
    """How many divisions and roots to do by multiplication, so that the loop becomes shortest."""
    products = sum(each.opcode in ("fmul", "fcmp") or _is_call(each, *_PRODUCTS) for each in block)
    vectors = sum(_is_of_vectors(each) for each in block)

    def cycles(quotients: int, squares: int) -> float:
        left = [_COSTS[vector][0] for vector in divisions[quotients:]] + [
            _COSTS[vector][1] for vector in roots[squares:]
        ]
        steps = sum(4 + 2 * _COSTS[vector][2] for vector in divisions[:quotients])
        steps += sum(2 + 3 * _COSTS[vector][2] for vector in roots[:squares])
        checks = 8 * quotients + 2 * squares
        # Each operation of the divider also takes two cycles of the multipliers.
        return max(sum(left), products + steps + 2 * len(left), (vectors + steps + checks) * _CYCLES)

    options = [(q, s) for q in range(len(divisions) + 1) for s in range(len(roots) + 1)]
    best = min(options, key=lambda option: cycles(*option))
    return best if cycles(*best) * _LEAST_GAIN <= cycles(0, 0) else (0, 0)


def _two(division: str) -> tuple[str, str]:
    """The operands of a division; constants contain commas and brackets."""
    _, _, operands = division.partition("> ")
    depth = 0
    for position, letter in enumerate(operands):
        depth += (letter in "(<") - (letter in ")>")
        if letter == "," and not depth:
            return operands[:position], operands[position + 2 :].partition(", !")[0]
    raise AssertionError(f"expected one operand, got {operands}")


def _argument(call: str) -> str:
    """The argument of a call of a function of one vector."""
    _, _, given = call.partition("(")
    return given[: given.rindex(")")].partition("> ")[2]


def _symbol(kind: str, vector: str) -> str:
    return f"autograph_{kind}_{vector.strip('<>').replace(' ', '')}"


class _Helper:
    """Writes a function over vectors: its instructions, and the declarations of the functions that they call."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.declarations: dict[str, str] = {}
        self.text = ""

    def call(self, result: str, type_: str, name: str, *operands: tuple[str, str]) -> None:
        """operands: types and values."""
        given = ", ".join(f"{kind} {value}" for kind, value in operands)
        self.lines.append(f"{result} = call {type_} @{name}({given})")
        self.declarations[name] = f"declare {type_} @{name}({', '.join(kind for kind, _ in operands)})"


def _quotient(vector: str) -> _Helper:
    """A function that divides vectors."""
    count, element = vector.strip("<>").split(" x ")
    bits, name, mantissa, bias = (32, "ps", 23, 127) if element == "float" else (64, "pd", 52, 1023)
    integers, fma = f"<{count} x i{bits}>", f"llvm.fma.v{count}f{bits}"
    # Exponents far from both ends, so that no product of two over- or underflows.
    low, span = (bias - bias // 2) << mantissa, (bias // 2 * 2) << mantissa

    def splat(number: int) -> str:
        return f"splat (i{bits} {number})"

    one = f"splat ({element} 1.0)"
    helper = _Helper()
    lines, v = helper.lines, vector
    helper.call("%y0", v, f"llvm.x86.avx512.rcp14.{name}.512", (v, "%b"), (v, "%b"), (f"i{count}", "-1"))
    lines.append(f"%minus = fneg {vector} %b")
    steps = _COSTS[vector][2]
    for k in range(steps):
        helper.call(f"%e{k}", v, fma, (v, "%minus"), (v, f"%y{k}"), (v, one))
        helper.call(f"%y{k + 1}", v, fma, (v, f"%y{k}"), (v, f"%e{k}"), (v, f"%y{k}"))
    lines.append(f"%q = fmul {vector} %a, %y{steps}")
    helper.call("%r", v, fma, (v, "%minus"), (v, "%q"), (v, "%a"))
    helper.call("%product", v, fma, (v, "%r"), (v, f"%y{steps}"), (v, "%q"))
    for x in "ab":
        lines.append(f"%{x}.bits = bitcast {vector} %{x} to {integers}")
        lines.append(f"%{x}.size = and {integers} %{x}.bits, {splat((1 << (bits - 1)) - 1)}")
        lines.append(f"%{x}.above = sub {integers} %{x}.size, {splat(low)}")
    umax = f"llvm.umax.v{count}i{bits}"
    helper.call("%above", integers, umax, (integers, "%a.above"), (integers, "%b.above"))
    lines.append(f"%far = icmp uge {integers} %above, {splat(span)}")
    lines.append(f"%digits = or {integers} %b.bits, {splat(-1 << mantissa)}")
    lines.append(f"%ones = icmp eq {integers} %digits, {splat(-1)}")
    lines.append(f"%rare = or <{count} x i1> %far, %ones")
    lines.append(f"%mask = bitcast <{count} x i1> %rare to i{count}")
    body = "\n  ".join([*lines, *_fallback(count)])
    helper.text = f"""
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
    return helper


def _root(vector: str) -> _Helper:
    """A function that takes square roots of vectors."""
    count, element = vector.strip("<>").split(" x ")
    bits, name, mantissa, bias = (32, "ps", 23, 127) if element == "float" else (64, "pd", 52, 1023)
    integers, fma = f"<{count} x i{bits}>", f"llvm.fma.v{count}f{bits}"
    low, span = (bias - bias // 2) << mantissa, (bias // 2 * 2) << mantissa
    half = f"splat ({element} 0.5)"
    helper = _Helper()
    lines, v = helper.lines, vector
    helper.call("%y", v, f"llvm.x86.avx512.rsqrt14.{name}.512", (v, "%a"), (v, "%a"), (f"i{count}", "-1"))
    lines += [f"%g0 = fmul {vector} %a, %y", f"%h0 = fmul {vector} %y, {half}"]
    steps = _COSTS[vector][2] - 1
    for k in range(steps):
        lines.append(f"%minus{k} = fneg {vector} %h{k}")
        helper.call(f"%e{k}", v, fma, (v, f"%minus{k}"), (v, f"%g{k}"), (v, half))
        for x in ("%g", "%h"):
            helper.call(f"{x}{k + 1}", v, fma, (v, f"{x}{k}"), (v, f"%e{k}"), (v, f"{x}{k}"))
    lines.append(f"%minus = fneg {vector} %g{steps}")
    helper.call("%d", v, fma, (v, "%minus"), (v, f"%g{steps}"), (v, "%a"))
    helper.call("%product", v, fma, (v, "%d"), (v, f"%h{steps}"), (v, f"%g{steps}"))
    lines.append(f"%bits = bitcast {vector} %a to {integers}")
    lines.append(f"%above = sub {integers} %bits, splat (i{bits} {low})")
    lines.append(f"%far = icmp uge {integers} %above, splat (i{bits} {span})")
    lines.append(f"%mask = bitcast <{count} x i1> %far to i{count}")
    sqrt = f"llvm.sqrt.v{count}f{bits}"
    helper.declarations[sqrt] = f"declare {vector} @{sqrt}({vector})"
    body = "\n  ".join([*lines, *_fallback(count)])
    helper.text = f"""
define internal {vector} @{_symbol("root", vector)}({vector} %a) alwaysinline nounwind {{
begin:
  {body}
divide:
  %root = call {vector} @{sqrt}({vector} %a)
  br label %end
end:
  %result = phi {vector} [ %product, %begin ], [ %root, %divide ]
  ret {vector} %result
}}
"""
    return helper


def _fallback(count: str) -> list[str]:
    """The branch to the divider, taken if any lane of the mask is set."""
    return [
        f"%any = icmp ne i{count} %mask, 0",
        'br i1 %any, label %divide, label %end, !prof !{!"branch_weights", i32 1, i32 1000}',
    ]
