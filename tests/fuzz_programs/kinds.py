"""Random programs with what isn't a number: classes, enums, globals, helpers with state, default arguments, identity
tests, `match`, iterators, strings, None, and traced functions in traced functions.

What a helper keeps is set to its start when a program begins, and everything is returned in the end.
"""

from __future__ import annotations

import random

from tests.fuzz_programs.writer import PRELUDE

_KINDS = """\
import enum
import itertools


class Phase(enum.IntEnum):
    A = 1
    B = 2
    C = 3


class Mood(enum.Enum):
    CALM = "calm"
    WILD = "wild"


class Meter:
    total = 0

    def __init__(self, n):
        self.n = n

    def hit(self, value):
        Meter.total += 1
        self.n = self.n * 0.5 + value

    @property
    def twice(self):
        return self.n * 2.0

    def __call__(self, value):
        self.hit(value)
        return self.n


class Slow(Meter):
    def hit(self, value):
        super().hit(value * 0.25)


g = 0


def bump(step=1):
    global g
    g += step


def keep(value, kept={"n": 0.0}):
    kept["n"] = kept["n"] * 0.5 + value
    return kept["n"]


def tally():
    tally.calls += 1
    return tally.calls


def traced(function):
    return function if ag.executing_eagerly() else ag.function(function)


def euler(value):
    return value * 0.5 + 0.25


def half(value):
    return value * 0.5


"""
_START = """\
global g
g = Meter.total = tally.calls = 0
keep.__defaults__[0]["n"] = 0.0
a, b, k = x, y, 0
phase, mood, text, flag, maybe, func = Phase.A, Mood.CALM, "ab", False, None, euler
one, two = Meter(0.25), Slow(0.5)
now = one
counts, log, ids = {Phase.A: 0, Phase.B: 0, Phase.C: 0}, [], itertools.count()
def inc(step=1):
    nonlocal k
    k += step
note = traced(lambda value: log.append(value * 0.5))
"""
_SHOWN = (
    "a", "b", "k", "g", "tally.calls", "Meter.total", "keep(0.0)", "phase.value", "mood is Mood.WILD", "len(text)",
    "text.count('a')", "flag is True", "maybe is None", "func(a)", "func is half", "now.n", "now is one", "one.n",
    "two.n", "counts[Phase.B]", "len(log)", "sum(log) + 0.0", "next(ids)", "phase in (Phase.A, Phase.C)",
)  # fmt: skip
_MOST_STATEMENTS = 12


class Writer:
    def __init__(self, seed: int) -> None:
        self.choices = random.Random(f"kinds {seed}")
        self.lines: list[str] = []
        self.left = self.choices.choice([2, 4, 7, _MOST_STATEMENTS])
        self.names = 0

    def pick(self, *options: str) -> str:
        return self.choices.choice(options)

    def add(self, depth: int, *lines: str) -> None:
        self.lines += ["    " * depth + line for line in lines]

    def text(self) -> str:
        self.add(0, "def program(x, y, n):")
        self.add(1, *_START.splitlines())
        # Half of the programs leave something out that nobody reads then.
        shown = [each for each in _SHOWN if self.choices.randrange(3)] if self.choices.randrange(2) else list(_SHOWN)
        self.block(1, loops=0, most=6)
        self.add(1, f"return {', '.join(shown or ['a'])}")
        return PRELUDE + _KINDS + "\n".join(self.lines) + "\n"

    def number(self) -> str:
        return self.pick(
            "a", "b", "0.5", "a * 0.5", "b + 0.25", "now.n", "now.twice", "func(b)", "keep(a)", "(a if flag else b)",
            "one(0.25)", "k * 0.125", "len(text) * 0.25", "phase * 0.25", "(0.75 if maybe is None else maybe)",
            "a * counts[phase]", "tally() * 0.125", "(a if phase is Phase.B else 0.5)",
        )  # fmt: skip

    def condition(self, depth: int = 0) -> str:
        if depth < 2 and not self.choices.randrange(5):
            joined = f" {self.pick('and', 'or')} ".join([self.condition(depth + 1), self.condition(depth + 1)])
            return self.pick(f"({joined})", f"not ({joined})")
        return self.pick(
            f"{self.number()} > {self.pick('0.3', 'b', '-0.1')}", f"{self.number()} > {self.pick('0.3', 'a', '0.0')}",
            "a > 0.3", "b < a", "a < 0.5", "b > 0.0", "phase is Phase.A", "phase == Phase.B", "phase >= Phase.B",
            "phase in (Phase.A, Phase.C)", "mood is Mood.WILD", "mood != Mood.CALM", "text == 'ab'", "'b' in text",
            "text.startswith('a')", "flag", "flag is True", "not flag", "maybe is None", "maybe != None",
            "now is one", "now is not two", "func is half", "func in (half,)", "isinstance(k, int)", "k > 2",
            "k % 2 == 0", "k in (1, 3)", "g % 2 == 0", "isinstance(now, Slow)", "type(now) is Meter", "len(log) > 2",
            "tally.calls < 3", "isinstance(maybe, type(None))", "n > 1",
        )  # fmt: skip

    def simple(self) -> str:
        value = self.number()
        return self.pick(
            f"a = {value}", f"b = {value}", f"a, b = b, {value}", "k += 1", "k = k * 3 % 7", "inc()", "inc(2)",
            "bump()", "bump(2)", f"keep({value})", "tally()", "phase = Phase.B", "phase = Phase.C",
            "phase = Phase(phase % 3 + 1)",
            "mood = Mood.WILD", "mood = Mood.CALM", "text += 'a'", "text = 'ba'", "text = text[::-1]",
            "text = text.upper()", "text = text[:1] + 'b'", f"flag = {self.condition()}", "flag = not flag",
            "maybe = None", f"maybe = {value}", "func = half", "func = euler", "now = two", "now = one",
            f"now.hit({value})", f"now({value})", "now.n *= 0.5", f"two.hit({value})", "counts[phase] += 1",
            "counts[Phase.B] += 1", f"note({value})", f"log.append({value})", "k += next(ids)", "Meter.total += 1",
            "globals()['g'] += 1", "mood = Mood('wild')", "a = a + now.n * 0.125",
        )  # fmt: skip

    def block(self, depth: int, loops: int, most: int = 3) -> None:
        for _ in range(self.choices.randint(1, most)):
            if self.left <= 0:
                break
            self.left -= 1
            self.statement(depth, loops)
        else:
            return
        self.add(depth, "pass")

    def statement(self, depth: int, loops: int) -> None:
        kind = self.choices.randrange(12) if depth < 4 else 11
        if kind < 2:
            self.add(depth, f"if {self.condition()}:")
            self.block(depth + 1, loops)
            if self.choices.randrange(2):
                self.add(depth, "else:")
                self.block(depth + 1, loops)
        elif kind < 4 and loops < 2:
            self.names += 1
            name = f"i{self.names}"
            self.add(depth, self.pick(f"for {name} in ag.range(n):", f"for {name} in ag.stack([x, y, a]):"))
            if self.choices.randrange(4) == 0:
                self.add(depth + 1, f"if {self.condition()}:", f"    {self.pick('break', 'continue')}")
            self.block(depth + 1, loops + 1)
        elif kind == 4:
            self.match(depth, loops)
        elif kind == 5 and loops < 2:
            self.add(depth, "try:", f"    if {self.condition()}:", "        raise ValueError('no')")
            self.block(depth + 1, loops)
            self.add(depth, "except ValueError:")
            self.block(depth + 1, loops)
        else:
            self.add(depth, self.simple())

    def match(self, depth: int, loops: int) -> None:
        subject, *cases = self.choices.choice([
            ("phase", "Phase.A", "Phase.B | Phase.C"), ("mood", "Mood.WILD", "_"), ("flag", "True", "False"),
            ("text", "'ab' | 'AB'", "_"), ("(flag, maybe)", "(True, None)", "(False, _)"), ("k", "0", "int()"),
            ("now", "Slow()", "Meter()"), ("maybe", "None", "_"),
        ])  # fmt: skip
        self.add(depth, f"match {subject}:")
        for case in cases:
            self.add(depth + 1, f"case {case}:")
            self.block(depth + 2, loops)


def random_kinds_program(seed: int) -> str:
    return Writer(seed).text()
