"""A random program as data: statements that print as Python source, and can be taken out one by one."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field

HEADER = """\
import numpy as np
import autograph as ag

v = ag.Variable([1.0, -2.0, 0.5])
w = ag.Variable(3)
"""


@dataclass
class Statement:
    """A line, or a head with blocks: `body` under it, `other` under `else:`."""

    text: str
    body: list[Statement] | None = None
    other: list[Statement] | None = None

    def lines(self, indent: str) -> Iterator[str]:
        yield indent + self.text
        for block, head in ((self.body, None), (self.other, "else:")):
            if block is None:
                continue
            if head:
                yield indent + head
            for statement in block or [Statement("pass")]:
                yield from statement.lines(indent + "    ")


@dataclass
class Program:
    """inputs: parameter name -> the Python expression of its value; dynamic: parameters whose dimensions stay unknown
    to the trace; gradient: whether the program's gradient is compared too; more: further values of n to run it with."""

    inputs: dict[str, str]
    body: list[Statement] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    dynamic: frozenset[str] = frozenset()
    gradient: bool = False
    more: tuple[int, ...] = ()

    def source(self) -> str:
        """The module: variables, and the function `program`."""
        lines = [HEADER, f"def program({', '.join(self.inputs)}):"]
        if self.gradient:
            watched = ", ".join(self.inputs)
            lines.append(f"    watched = [x for x in [{watched}] if x.dtype.is_floating]")
            lines += ["    with ag.GradientTape() as tape:", "        tape.watch(watched)"]
            lines.append(f"        results = forward({watched})")
            lines.append("    floats = [r for r in results if r.dtype.is_floating]")
            lines.append("    return [*results, *tape.gradient(floats, [*watched, v], unconnected_gradients='zero')]")
            lines += ["", f"def forward({watched}):"]
        for statement in self.body:
            lines += statement.lines("    ")
        lines.append(f"    return [{', '.join(self.results)}]")
        return "\n".join(lines) + "\n"

    def script(self) -> str:
        """A file that shows the difference by itself."""
        specs = ""
        lines = [self.source()]
        if self.dynamic:
            lines.append(f"DYNAMIC = {sorted(self.dynamic)}")
        lines.append("inputs = {")
        lines += [f"    {name!r}: ag.constant({text})," for name, text in self.inputs.items()]
        lines.append("}")
        if self.dynamic:
            lines.append("specs = [ag.TensorSpec([None] * x.shape.rank if name in DYNAMIC else x.shape, x.dtype)")
            lines.append("         for name, x in inputs.items()]")
            specs = "input_signature=specs, "
        lines.append(f"for n in [inputs['n'], *map(ag.constant, {list(self.more)})]:")
        lines.append("    for compiled in (False, True):")
        lines.append("        v.assign([1.0, -2.0, 0.5]), w.assign(3)")
        lines.append("        try:")
        lines.append(f"            staged = ag.function(program, {specs}jit_compile=compiled)")
        lines.append("            print(staged(*{**inputs, 'n': n}.values()))")
        lines.append("        except Exception as error:")
        lines.append("            print(type(error).__name__, error)")
        lines.append("        print(v.numpy(), w.numpy())")
        return "\n".join(lines) + "\n"

    def reductions(self) -> Iterator[Program]:
        """Smaller programs: without a statement, with a block's content in its place, with fewer results."""
        if self.gradient:
            yield self._with(lambda p: setattr(p, "gradient", False))
        if self.dynamic:
            for name in sorted(self.dynamic):
                yield self._with(lambda p, name=name: setattr(p, "dynamic", p.dynamic - {name}))
        for n in self.more:
            yield self._with(lambda p, n=n: setattr(p, "more", tuple(m for m in p.more if m != n)))
            yield self._with(lambda p, n=n: (setattr(p, "more", ()), p.inputs.update(n=f"np.int32({n})")))
        count = len(list(_places(self.body)))
        for size in sorted({max(1, count // 2), max(1, count // 4), 1}, reverse=True):
            for start in range(count - size, -1, -1):
                yield self._with(lambda p, start=start, size=size: _remove(p.body, range(start, start + size)))
        for index in range(count):
            yield from self._unwrapped(index)
        if len(self.results) > 1:
            for name in self.results:
                yield self._with(lambda p, name=name: p.results.remove(name))
        text = self.source().split("def program", 1)[1].split(":", 1)[1]
        for name in self.inputs:
            if text.count(name) == 0 and name != "n":
                yield self._with(lambda p, name=name: p.inputs.pop(name))

    def _with(self, change) -> Program:  # type: ignore[no-untyped-def]
        smaller = copy.deepcopy(self)
        change(smaller)
        return smaller

    def _unwrapped(self, index: int) -> Iterator[Program]:
        block, place = list(_places(self.body))[index]
        for part in (block[place].body, block[place].other):
            if part is None:
                continue
            smaller = copy.deepcopy(self)
            block_, place_ = list(_places(smaller.body))[index]
            statement = block_[place_]
            block_[place_ : place_ + 1] = (statement.body if part is block[place].body else statement.other) or []
            yield smaller


def _places(block: list[Statement]) -> Iterator[tuple[list[Statement], int]]:
    for index, statement in enumerate(block):
        yield block, index
        for inner in (statement.body, statement.other):
            if inner:
                yield from _places(inner)


def _remove(body: list[Statement], which: range) -> None:
    places = list(_places(body))
    doomed = {id(places[i][0][places[i][1]]) for i in which}

    def clean(block: list[Statement]) -> None:
        block[:] = [s for s in block if id(s) not in doomed]
        for statement in block:
            for inner in (statement.body, statement.other):
                if inner:
                    clean(inner)

    clean(body)
