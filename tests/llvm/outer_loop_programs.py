"""Random kernels whose trips can run side by side, for tests of lanes: `python -m tests.llvm.outer_loop_programs
--count N`.

Each has a counting loop around loops and branches over numbers; what lanes compute must be, to the last bit, what the
loop computes trip by trip.
"""

from __future__ import annotations

import argparse
import random
from typing import Any

import numpy as np

TYPES = ["float32", "float64", "int32", "int64", "uint8"]
SIZES = [0, 1, 3, 7, 16, 33, 70]


class Program:
    """The text of a kernel `kernel(x, y, n)`; x and y hold `kind`. Errors are status 2."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.kind = self.random.choice(TYPES)
        self.is_float = self.kind.startswith("float")
        self.counters = 0
        self.lines: list[str] = []
        self.signature = f"({self.kind}[::1], {self.kind}[::1], int64)"
        self._write()
        self.text = "\n".join(self.lines) + "\n"

    def _write(self) -> None:
        r = self.random
        zero = self._number(0)
        self._line(0, "def kernel(x, y, n):")
        for text in ("ticks = 0", "index = 0", f"total = {zero}", "count = 0", f"out = np.empty(n, np.{self.kind})"):
            self._line(1, text)
        self._line(1, "while index < n:")
        self._line(2, "a = x[index]")
        self._line(2, "b = y[index]" if r.random() < 0.7 else f"b = {self._number(r.randint(1, 5))}")
        self._line(2, f"c = {zero}")
        self._line(2, "steps = 0")
        self._loop(2, 0)
        for _ in range(r.randint(0, 2)):
            self._statement(2, 0)
        if r.random() < 0.3:
            self._line(2, f"if {self._condition()} and index > {r.randint(0, 60)}:")
            self._line(3, f"return 2, {zero}, count, out")
        rest = ["out[index] = c", f"total = {self._typed('total + a')}", "count = count + steps"]
        r.shuffle(rest)
        for text in rest:
            self._line(2, text)
        self._line(2, "index = index + 1")
        self._line(1, "return 0, total, count, out")

    def _line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def _number(self, value: int) -> str:
        return f"np.{self.kind}({value})"

    def _typed(self, expression: str) -> str:
        return expression if self.is_float or self.kind == "int64" else f"np.{self.kind}({expression})"

    def _expression(self, depth: int = 0) -> str:
        r = self.random
        leaves = ["a", "b", "c", self._number(r.randint(0, 9)), "x[index]"]
        if self.is_float:
            leaves.append(f"np.{self.kind}(steps)")
        if depth > 1 or r.random() < 0.3:
            return r.choice(leaves)
        left, right = self._expression(depth + 1), self._expression(depth + 1)
        operators = ["+", "-", "*", "/"] if self.is_float else ["+", "-", "*", "//", "%", "&", "^"]
        if self.kind == "int64":
            operators = ["+", "-", "*", "&", "^"]
        forms = [f"({left} {r.choice(operators)} {right})"] * 5
        forms.append(f"({left} if {self._condition(depth + 1)} else {right})")
        forms += [f"min({left}, {right})", f"max({left}, {right})", f"abs({left})"]
        if self.is_float:
            forms += [f"math.sqrt(abs({left}))", f"lib.sin({left})", f"lib.exp(min({left}, {self._number(2)}))"]
            forms += [f"np.floor({left})", f"lib.maximum({left}, {right})", f"math.cbrt({left})", f"({left} % {right})"]
        else:
            forms += [f"({left} // {self._number(r.choice([1, 2, 3, 7, 8]))})"]
            forms += [f"({left} % {self._number(r.choice([1, 2, 3, 7, 8]))})"]
        chosen = r.choice(forms)
        return self._typed(chosen)

    def _condition(self, depth: int = 0) -> str:
        r = self.random
        one = f"{self._expression(depth + 1)} {r.choice(['<', '<=', '>', '!=', '=='])} {self._expression(depth + 1)}"
        kind = r.random()
        if kind < 0.2 and depth < 2:
            return f"({one}) {r.choice(['and', 'or'])} ({self._condition(depth + 1)})"
        return f"not ({one})" if kind < 0.3 else one

    def _loop(self, depth: int, nested: int) -> None:
        """A loop that ends: its counter is bounded by what a lane holds, or by a number."""
        r = self.random
        counter, self.counters = f"k{self.counters}", self.counters + 1
        self._line(depth, f"{counter} = 0")
        bound = r.choice([str(r.randint(0, 4)), "index % 5", "index % 3 + 1", "n % 4", "steps % 6"])
        test = f"{counter} < {bound}"
        if r.random() < 0.5:
            test = f"{test} and ({self._condition(1)})"
        self._line(depth, f"while {test}:")
        self._line(depth + 1, f"{counter} = {counter} + 1")
        for _ in range(r.randint(1, 3)):
            self._statement(depth + 1, nested + 1)
        if r.random() < 0.3:
            self._line(depth + 1, f"if {self._condition()} and index > {r.randint(20, 80)}:")
            self._line(depth + 2, f"return 3, a, {counter}, out")
        if r.random() < 0.5:
            self._line(depth + 1, "ticks = ticks + 3")
            self._line(depth + 1, "if ticks > 16777216:")
            self._line(depth + 2, "ticks = 0")
            self._line(depth + 2, "if lib.interrupted():")
            self._line(depth + 3, f"return 1, {self._number(0)}, 0, out")

    def _statement(self, depth: int, nested: int) -> None:
        r = self.random
        kind = r.random()
        if kind < 0.15 and nested < 3:
            self._loop(depth, nested)
        elif kind < 0.4 and nested < 4:
            self._line(depth, f"if {self._condition()}:")
            for _ in range(r.randint(1, 2)):
                self._statement(depth + 1, nested + 1)
            if r.random() < 0.5:
                self._line(depth, "else:")
                self._statement(depth + 1, nested + 1)
        elif kind < 0.55:
            self._line(depth, f"steps = steps + {r.choice(['1', '2', 'index', 'n'])}")
        elif kind < 0.65:
            self._line(depth, f"a, b = b, {self._expression()}")
        elif kind < 0.75:
            name = f"t{self.counters}"
            self.counters += 1
            self._line(depth, f"{name} = {self._expression()}")
            self._line(depth, f"c = {self._typed(f'{name} + c')}")
        else:
            self._line(depth, f"{r.choice('abc')} = {self._expression()}")


def arguments(kind: str, size: int, seed: int) -> tuple[np.ndarray, np.ndarray, int]:
    rng = np.random.default_rng(seed)
    if kind.startswith("float"):
        values = [rng.normal(size=size).astype(kind) * 3 for _ in range(2)]
        for array in values:
            array[rng.random(size) < 0.05] = np.nan
            array[rng.random(size) < 0.05] = np.inf
    else:
        low, high = (0, 255) if kind == "uint8" else (-40, 40)
        values = [rng.integers(low, high, size).astype(kind) for _ in range(2)]
    return values[0], values[1], size


def bits(result: Any) -> tuple[Any, ...]:
    """What a call gave, so that equal results are equal; NaN is one number."""
    status, total, count, out = result
    if status:
        out = out[:0]
    return int(status), np.asarray(total).astype(np.float64).tobytes() if total == total else "nan", int(count), [
        "nan" if value != value else value.tobytes() for value in out
    ]  # fmt: skip


def main() -> None:
    from tests.llvm.test_outer_loops import both

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    used = 0
    for seed in range(given.first, given.first + given.count):
        program = Program(seed)
        lanes, alone, planned = both(program.text, program.signature)
        used += planned
        for size in SIZES:
            values = arguments(program.kind, size, seed)
            if bits(lanes(*values)) != bits(alone(*values)):
                raise SystemExit(f"program {seed} with {size} elements differs:\n{program.text}")
    print(f"{given.count} programs, {used} of them in lanes: no difference")


if __name__ == "__main__":
    main()
