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
has made of a trip, and two vectors of the same root may be computed in different ways, so this can't be decided when
the loop is written. The pass reads LLVM's instructions and replaces them in the text of the module, since llvmlite
can't change a module otherwise. Only processors with AVX-512 have the estimates.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runtime.llvm import processor
from runtime.llvm.function_builder import FunctionBuilder, defined

# For vectors of 512 bits: cycles of a division, cycles of a square root, steps of Newton's iteration.
_COSTS = {"<16 x float>": (6, 10, 2), "<8 x double>": (9, 16, 3)}
_CYCLES = 0.78  # cycles of a vector instruction, measured
_LEAST_GAIN = 1.1  # by how much the loop has to become shorter
_OF_VECTORS = ("<16 x float>", "<16 x i32>", "<8 x double>", "<8 x i64>")
_PRODUCTS = ("llvm.fma.", "llvm.fmuladd.")
_SQRT = "sqrt"


@functools.cache
def _is_known() -> bool:
    """Whether this is an AMD processor with AVX-512: the costs are theirs, and for Intel's, LLVM uses vectors of 256
    bits."""
    return bool(processor.features().get("avx512f")) and processor.name().startswith("znver")


def may_change(text: str) -> bool:
    """Whether `with_fewer_divisions` may change a module; decided before it is vectorised."""
    return _is_known() and "fdiv" in text and f"@llvm.{_SQRT}" in text


def with_fewer_divisions(module: Any) -> str | None:
    """The text of an optimised module with divisions by multiplication, and the functions that they call, which have to
    be inlined; None if there is nothing to change."""
    used: dict[tuple[str, str], None] = {}  # what is called: kind and type
    text, changed = str(module), {}
    if _may_divide(text):
        changed = {each.name: _replaceable(each, used) for each in module.functions if not each.is_declaration}
    if not used:
        return None
    return "\n".join([_with_calls(text, changed), *(_helper(kind, vector) for kind, vector in used)])


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
        roots = [each for each in instructions if _is_call(each, f"llvm.{_SQRT}.") and str(each.type) in _COSTS]
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


class _Steps:
    """Writes the steps of an iteration over vectors of one type."""

    def __init__(self, f: FunctionBuilder, vector: str) -> None:
        self.f, self.vector = f, vector
        self.count, self.element = vector.strip("<>").split(" x ")
        is_single = self.element == "float"
        self.bits, self.mantissa, bias = (32, 23, 127) if is_single else (64, 52, 1023)
        self.integers = f"<{self.count} x i{self.bits}>"
        self.flags = f"<{self.count} x i1>"
        self._format = "ps" if is_single else "pd"
        # Exponents far from both ends, so that no product of two over- or underflows.
        self._low, self._span = (bias - bias // 2) << self.mantissa, (bias // 2 * 2) << self.mantissa

    def number(self, value: float) -> str:
        return f"splat ({self.element} {value})"

    def whole(self, value: int) -> str:
        return f"splat (i{self.bits} {value})"

    def estimate(self, function: str, x: str) -> str:
        """`function` of x, to 14 bits."""
        given = [f"{self.vector} {x}", f"{self.vector} {x}", f"i{self.count} -1"]
        return self.f.intrinsic(f"x86.avx512.{function}.{self._format}.512", self.vector, *given)

    def fma(self, a: str, b: str, c: str) -> str:
        """a * b + c with one rounding."""
        return self.f.intrinsic("fma", self.vector, *(f"{self.vector} {each}" for each in (a, b, c)))

    def minus(self, x: str) -> str:
        return self.f.negative(self.vector, x)

    def times(self, a: str, b: str) -> str:
        return self.f.binary("fmul", a, b, self.vector)

    def to_bits(self, x: str) -> str:
        return self.f.convert("bitcast", self.vector, x, self.integers)

    def above_low(self, bits: str) -> str:
        """How far bits are above the lowest exponent that isn't rare."""
        return self.f.binary("sub", bits, self.whole(self._low), self.integers)

    def is_far(self, above: str) -> str:
        return self.f.binary("icmp uge", above, self.whole(self._span), self.integers)

    def unless_rare(self, rare: str, result: str, exact: Callable[[], str]) -> str:
        """The result, or what the divider gives if any lane has a rare operand."""
        mask = self.f.convert("bitcast", self.flags, rare, f"i{self.count}")
        is_any = self.f.binary("icmp ne", mask, 0, f"i{self.count}")
        return self.f.either(is_any, self.vector, exact, lambda: result, _RARE)


def _quotient(f: FunctionBuilder, vector: str) -> str:
    """Divides `%a` by `%b`."""
    steps = _Steps(f, vector)
    y, minus_b = steps.estimate("rcp14", "%b"), steps.minus("%b")
    for _ in range(_COSTS[vector][2]):
        y = steps.fma(y, steps.fma(minus_b, y, steps.number(1.0)), y)
    q = steps.times("%a", y)
    product = steps.fma(steps.fma(minus_b, q, "%a"), y, q)
    bits = {x: steps.to_bits(x) for x in ("%a", "%b")}
    sizes = [f.binary("and", each, steps.whole((1 << (steps.bits - 1)) - 1), steps.integers) for each in bits.values()]
    above_a, above_b = (steps.above_low(size) for size in sizes)
    above = f.max(above_a, above_b, steps.integers, is_signed=False)
    digits = f.binary("or", bits["%b"], steps.whole(-1 << steps.mantissa), steps.integers)
    is_ones = f.binary("icmp eq", digits, steps.whole(-1), steps.integers)
    rare = f.binary("or", steps.is_far(above), is_ones, steps.flags)
    return steps.unless_rare(rare, product, lambda: f.binary("fdiv", "%a", "%b", vector))


def _root(f: FunctionBuilder, vector: str) -> str:
    """The square root of `%a`."""
    steps = _Steps(f, vector)
    y, half = steps.estimate("rsqrt14", "%a"), steps.number(0.5)
    g, h = steps.times("%a", y), steps.times(y, half)
    for _ in range(_COSTS[vector][2] - 1):
        e = steps.fma(steps.minus(h), g, half)
        g, h = steps.fma(g, e, g), steps.fma(h, e, h)
    product = steps.fma(steps.fma(steps.minus(g), g, "%a"), h, g)
    rare = steps.is_far(steps.above_low(steps.to_bits("%a")))
    return steps.unless_rare(rare, product, lambda: f.intrinsic(_SQRT, vector, f"{vector} %a"))


_RARE = ', !prof !{!"branch_weights", i32 1, i32 1000}'
_HELPERS = {"quotient": (_quotient, ("%a", "%b")), "root": (_root, ("%a",))}


def _helper(kind: str, vector: str) -> str:
    """The function that replaces divisions or square roots of vectors."""
    write, parameters = _HELPERS[kind]
    declared = ", ".join(f"{vector} {name}" for name in parameters)
    head = f"internal {vector} @{_symbol(kind, vector)}({declared}) alwaysinline nounwind"
    return defined(head, lambda f: write(f, vector))
