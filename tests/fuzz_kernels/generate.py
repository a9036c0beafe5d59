"""Makes random programs by running them: an expression is kept when eager execution takes it.

So shapes and dtypes need no rules here: what a name holds is known from its value. Now and then an expression that
fails is kept on purpose.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import autograph as ag
from tests.fuzz_kernels.expressions import Expressions
from tests.fuzz_kernels.program import Program, Statement
from tests.fuzz_kernels.sharing import SHAPES, Elements, Sharing

_SIZES = [0, 1, 1, 2, 3, 3, 4, 5, 7]
_LARGE = [(1 << 20) + 3, (1 << 19) + 1]
_MIXED = {
    "new": 10, "update": 2, "for": 2.4, "while": 1.6, "if": 2.0, "variable": 1.6, "assert": 0.5, "collect": 1.0,
}  # fmt: skip
_SHARING = {
    "alias": 2.0, "swap": 2.0, "array": 1.0, "write": 2.5, "take": 2.5, "list": 0.7, "change": 1.5, "slice_assign": 0.8,
    "element_update": 3.0, "small": 3.0, "for": 3.0, "while": 1.0, "if": 2.5, "update": 1.0, "new": 0.5,
}  # fmt: skip
_DTYPES = ["float32", "float32", "float64", "int32", "int32", "int64", "bool", "uint8", "float16", "bfloat16"]


class Generator(Sharing):
    """One program in the making. Half of them are about memory that several values share, on small static tensors."""

    def __init__(self, seed: str, longest: int = 9) -> None:
        self.longest = longest
        self.random = random.Random(seed)
        self.values: dict[str, Any] = {}
        self.serial = 0
        self.sharing = self.random.random() < 0.5
        self.large = not self.sharing and self.random.random() < 0.06
        self.arrays: dict[str, Elements] = {}
        self.lists: dict[str, Elements] = {}
        self.program = Program({})
        self.v, self.w = ag.Variable([1.0, -2.0, 0.5]), ag.Variable(3)
        self.expressions = Expressions(self.random, self.values)

    def make(self) -> Program:
        choose = self.random
        program = self.program
        sizes = [choose.choice(_SIZES) for _ in range(3)]
        for name in "abcd"[: choose.randint(2, 4)]:
            program.inputs[name] = text = self._input(sizes)
            self._bind(name, text)
        program.inputs["n"] = text = f"np.int32({choose.randint(0, 6)})"
        program.more = tuple(choose.sample(range(5), 2))
        self._bind("n", text)
        if choose.random() < (0.1 if self.sharing else 0.35) and not self.large:
            program.dynamic = frozenset(x for x in "abcd" if x in program.inputs and choose.random() < 0.7)
        program.gradient = choose.random() < 0.15
        program.body = self.block(choose.randint(3, min(5, self.longest) if self.large else self.longest), 0)
        own = [name for name in self.values if name not in program.inputs]
        if self.sharing:
            program.body += [s for name in [*self.arrays] for s in [Statement(f"r{name} = {name}.stack()")]]
            own = [*own, *(name for name in program.inputs if name != "n"), *(f"r{name}" for name in self.arrays)]
            program.results = own[-12:]
        else:
            program.results = choose.sample(own, min(len(own), choose.randint(1, 5))) or ["n"]
        return program

    def _input(self, sizes: list[int]) -> str:
        choose = self.random
        dtype = choose.choice(_DTYPES)
        if self.sharing:
            dtype = choose.choice(["float32", "float32", "float32", "float64", "int32"])
        shape: tuple[int, ...] = tuple(choose.choice(sizes) for _ in range(choose.choice([0, 1, 1, 2, 2, 3])))
        if self.sharing:
            shape = choose.choice(SHAPES)
        if self.large:
            shape = choose.choice([(choose.choice(_LARGE),), (1025, 1030), (1030,), ()])
            dtype = choose.choice(["float32", "float64", "int32"])
        random = f"np.random.default_rng({choose.randint(0, 99)})"
        if dtype == "bool":
            return f"{random}.integers(0, 2, {shape}).astype('bool')"
        if "float" in dtype:
            if choose.random() < 0.7:
                return f"({random}.integers(-12, 13, {shape}) / 4).astype('{dtype}')"
            number = f"np.float32({choose.gauss(0, 2)}).astype('{dtype}')"
            return f"{random}.normal(size={shape}).astype('{dtype}')" if shape else number
        low = 0 if dtype == "uint8" else -5
        return f"{random}.integers({low}, 6, {shape}).astype('{dtype}')"

    def _bind(self, name: str, text: str) -> None:
        self.values[name] = ag.constant(eval(text, {"np": np}))

    # --- statements ----------------------------------------------------------------------------------------------

    def block(self, count: int, depth: int) -> list[Statement]:
        made: list[Statement] = []
        for _ in range(count):
            made += self.statement(depth)
        return made

    def statement(self, depth: int) -> list[Statement]:
        choose = self.random
        weights = _SHARING if self.sharing else {**_MIXED, "update": 6 if depth else 2}
        kind = choose.choices(list(weights), list(weights.values()))[0]
        if kind in ("for", "while", "if", "collect") and depth >= 3:
            kind = "update"
        return getattr(self, f"_{kind}")(depth)

    def _new(self, depth: int) -> list[Statement]:
        for _ in range(20):
            text = self.expressions.any()
            value = self.expressions.value_of(text)
            if value is None:
                continue
            self.serial += 1
            name = f"x{self.serial}"
            self.values[name] = value
            return [Statement(f"{name} = {text}")]
        return []

    def _update(self, depth: int) -> list[Statement]:
        """A name gets a new value of the same type, as loop variables must."""
        names = [x for x in self.values if x != "n" and not x.startswith("i")] or ["n"]
        for _ in range(30):
            name = self.random.choice(names)
            text = self.expressions.like(name)
            value = self.expressions.value_of(text)
            old = self.values[name]
            if value is not None and value.dtype is old.dtype and value.shape == old.shape:
                self.values[name] = value
                return [Statement(f"{name} = {text}")]
        return []

    def _inside(self, depth: int, low: int = 1, high: int = 4) -> list[Statement]:
        """A block whose own names end with it."""
        tables: tuple[dict[str, Any], ...] = (self.values, self.arrays, self.lists)
        before = [set(table) for table in tables]
        body = self._update(depth) + self.block(self.random.randint(low, high), depth + 1)
        for table, names in zip(tables, before):
            for name in set(table) - names:
                del table[name]
        return body

    def _for(self, depth: int) -> list[Statement]:
        index = f"i{depth}"
        if index in self.values:
            return []
        trips = self.random.choice(["n", "2", "3", "n + 1", "n // 2", "0", "17"] if not self.large else ["2", "n"])
        self.values[index] = ag.constant(1)
        body = self._inside(depth)
        if self.random.random() < 0.25:
            leave = self.random.choice(["break", "continue"])
            body.insert(self.random.randint(0, len(body)), self._leave(leave))
        del self.values[index]
        return [Statement(f"for {index} in ag.range({trips}):", body)]

    def _while(self, depth: int) -> list[Statement]:
        self.serial += 1
        count = f"k{self.serial}"
        self.values[count] = ag.constant(0)
        extra = self.expressions.condition()
        test = f"{count} < {self.random.choice(['n', '3', 'n * 2'])}"
        if extra and self.random.random() < 0.5:
            test += f" and {extra}"
        # Only read inside: updating the counter could make the loop endless.
        counter = self.values.pop(count)
        self.expressions.readable[count] = counter
        body = [*self._inside(depth), Statement(f"{count} += 1")]
        del self.expressions.readable[count]
        self.values[count] = ag.constant(2)
        return [Statement(f"{count} = ag.constant(0)"), Statement(f"while {test}:", body)]

    def _leave(self, word: str) -> Statement:
        return Statement(f"if {self.expressions.condition() or 'n > 3'}:", [Statement(word)])

    def _if(self, depth: int) -> list[Statement]:
        test = self.expressions.condition()
        if test is None:
            return []
        before = dict(self.values)
        body = self._inside(depth, 0, 3)
        other = None
        if self.random.random() < 0.6:
            other = self._inside(depth, 0, 3)
        for name in set(self.values) & set(before):
            if self.random.random() < 0.5:
                self.values[name] = before[name]
        return [Statement(f"if {test}:", body, other)]

    def _variable(self, depth: int) -> list[Statement]:
        for _ in range(20):
            if self.random.random() < 0.4:
                text = self.expressions.of("int32", ())
                call = self.random.choice(["w.assign_add", "w.assign", "w.assign_sub"])
            else:
                text = self.expressions.of("float32", (3,))
                call = self.random.choice(["v.assign_add", "v.assign", "v.assign_sub"])
            if text and self.expressions.value_of(text) is not None:
                return [Statement(f"{call}({text})")]
        return []

    def _assert(self, depth: int) -> list[Statement]:
        test = self.expressions.condition()
        if test is None:
            return []
        if self.random.random() < 0.4:
            return [Statement(f"if {test}:", [Statement("raise ValueError('on purpose')")])]
        if self.random.random() < 0.5:
            return [Statement(f"assert {test}, 'on purpose'")]
        return [Statement(f"ag.debugging.Assert({test}, [n])")]

    def _collect(self, depth: int) -> list[Statement]:
        """A TensorArray that a loop fills."""
        self.serial += 1
        name, result, index = f"t{self.serial}", f"x{self.serial}", f"i{depth}"
        if index in self.values:
            return []
        choice = [x for x, v in self.values.items() if v.dtype.name != "bool" or True]
        element = self.random.choice(choice)
        dtype = self.values[element].dtype.name
        trips = self.random.choice(["n", "3", "n + 1"])
        self.values[index] = ag.constant(1)
        body = self._inside(depth, 0, 2)
        del self.values[index]
        body.append(Statement(f"{name} = {name}.write({index}, {element})"))
        size = self.random.choice(["size=0, dynamic_size=True", f"size={trips}"])
        shape = f"element_shape={element}.shape"
        stacked = np.stack([self.values[element].numpy()] * 2)
        self.values[result] = ag.constant(stacked)
        return [
            Statement(f"{name} = ag.TensorArray(ag.{dtype}, {size}, {shape})"),
            Statement(f"for {index} in ag.range({trips}):", body),
            Statement(f"{result} = {name}.stack()"),
        ]


def make(seed: str, longest: int = 9) -> Program:
    """The program of a seed, of at most so many statements (those in blocks not counted)."""
    with np.errstate(all="ignore"):
        return Generator(seed, longest).make()
