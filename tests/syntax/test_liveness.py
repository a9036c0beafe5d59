"""Liveness and unbound reads: a table of small programs, and random programs that are run to catch a wrong answer."""

from __future__ import annotations

import ast
import contextlib
import random
import textwrap

import gast
import pytest

from autograph.syntax.liveness import live_out, liveness, maybe_unbound
from autograph.syntax.parse import parse, to_ast
from runtime.python_text import without_syntax_warnings


def function(text):
    return parse(textwrap.dedent(text)).body[0]


def first(node, *kinds):
    return next(each for each in gast.walk(node) if isinstance(each, kinds))


# Each program has one statement marked by being the first If, or else the first loop, or else Try/With/Match.
LIVE_AFTER = [
    ("def f(a, b):\n if a: b = t = 1\n return b", "b"),
    ("def f(a, b):\n if a: b = t = 1\n b = 2\n return b", ""),
    ("def f(a, b):\n if a: b = 1\n b += 2\n return b", "b"),
    ("def f(a, b):\n if a: b = 1\n return [b for b in a]", "a"),
    ("def f(a, b):\n if a: b = 1\n return [c for c in a if b]", "a b"),
    ("def f(a, b):\n if a: b = 1\n del b", "b"),
    ("def f(a, b):\n if a: b = 1\n return lambda: b", "b"),
    ("def f(a, b):\n if a: b = 1\n return lambda b: b", ""),
    ("def f(a, b):\n g = lambda: b\n if a: b = 1\n return g", "b g"),
    ("def f(a, b):\n def g():\n  nonlocal b\n  b = 1\n if a: b = 1\n h(g)", "b g"),
    ("def f(a, b):\n def g():\n  nonlocal b\n  b = 1\n if a: b = 1\n b = 2", ""),
    ("def f(a, b):\n def g(): return b\n if a: b = 1\n g()", "b g"),
    ("def f(a, b):\n def g(): return b\n g()\n if a: b = 1", ""),
    ("def f(a, b):\n def g(): return b\n def h(): return g()\n if a: b = 1\n h()", "b g h"),
    ("def f(a, b):\n def g(): return b\n h = lambda: g()\n if a: b = 1\n return h", "b g h"),
    ("def f(a, b):\n def g():\n  yield b\n c = g()\n if a: b = 1\n return c", "b c"),
    ("def f(a, b):\n def g(): return lambda: b\n c = g()\n if a: b = 1\n return c", "b c"),
    ("def f(a, b):\n @h\n def g(): return b\n if a: b = 1\n return h", "b"),
    ("def f(a):\n global b\n if a: b = 1", "b"),
    ("def f(a):\n nonlocal b\n if a: b = 1", "b"),
    ("def f(a, self):\n if a: self.h = 1", "self.h"),
    ("def f(a, d):\n if a: d['k'] = x = 1", "d['k']"),
    ("def f(a, self):\n if a: b = 1\n return self.h", "self self.h"),
    ("def f(a, b):\n while a:\n  if a: b = 1\n  a = g(b)", "b"),
    ("def f(a, b):\n while a:\n  if a: b = 1\n  b = 2\n  g(b)", "a"),
    ("def f(a, b):\n while a:\n  if a: b = 1\n  break\n else:\n  return b", ""),
    ("def f(a, b):\n for i in a:\n  if i: b = 1\n  continue\n else:\n  return b", "b"),
    ("def f(a, b):\n while True:\n  if a: break\n  b = 1\n  g(b)\n return a", "a"),
    ("def f(a, b, c):\n try:\n  if a: b = 1\n except E: return b\n return c", "b c"),
    ("def f(a, b, c):\n try:\n  g()\n except E: return b\n if a: b = c = 1\n return c", "c"),
    ("def f(a, b, c):\n try:\n  if a: b = 1\n  return c\n finally: g(b)", "b c"),
    ("def f(a, b):\n if a: b = 1\n match a:\n  case [b]: return b\n  case {'k': c, **b} if c: return b", "a"),
    ("def f(a, b):\n if a: b = 1\n match a:\n  case [b] if a: return 1\n return b", "a b"),
    ("def f(a, b):\n if a: b = 1\n if (b := a): return b\n return b", "a"),
    ("def f(a, b):\n if a: b = 1\n if a and (b := a): return b\n return b", "a b"),
    ("def f(a, b):\n if a: b = 1\n with a as b: return b", "a"),
    ("def f(a, b):\n if a: b = 1\n import b\n return b", ""),
    ("def f(a, b):\n if a: b = 1\n x: int = b", "b"),
    ("def f(a, b):\n if a: b = 1\n x: b = a", "a"),
    ("def f(a, b):\n if a: b = 1\n class C:\n  y = b\n return C", "b"),
    ("def f(a, b):\n if a: b = 1\n return f'{b:{a}}'", "a b"),
    ("def f(a, b):\n if a: b = 1\n return sum(b for x in a)", "a b"),
    ("def f(a, b):\n if a: b = 1\n b.c = 1", "b"),
    ("def f(a, b):\n if a: b = 1\n assert b", "b"),
    ("def f(a, b):\n for b in a: c = b\n return c", "c"),
    ("async def f(a, b):\n async for b in a: c = b\n return b", "b"),
    ("def f(a, b):\n for i in a:\n  w = i\n  b += sum(w * x for x in a)\n return b", "b"),
]


@pytest.mark.parametrize(("text", "expected"), LIVE_AFTER, ids=[case[0] for case in LIVE_AFTER])
def test_live_after(text, expected):
    node = function(text)
    try:
        stmt = first(node, gast.If)
    except StopIteration:
        stmt = first(node, gast.While, gast.For, gast.AsyncFor)
    assert live_out(node)[stmt] == set(expected.split())


LOOP_CARRIES = [
    ("def f(n):\n for i in n:\n  def g(m): return i if m else g(m - 1)\n  h(g(i))\n return n", "n"),
    ("def f(n):\n for i in n:\n  def g(m): return i if m else g(m - 1)\n  h(g)", "g i"),
    ("def f(n):\n i = s = 0\n while i < n:\n  t = i * 2\n  s += t\n  i += 1\n return s", "i n s"),
    ("def f(xs):\n s = 0\n for x in xs:\n  t = x\n  s += t\n return s", "s"),
    ("def f(xs):\n for x in xs:\n  with tape() as t:\n   y = g(x)\n  d = t.grad(y)", ""),
    ("def f(xs):\n for x in xs:\n  try:\n   y = g(x)\n  except E:\n   y = 0\n  h(y)", ""),
    ("def f(xs):\n for x in xs:\n  if x: y = 1\n  h(y)", "y"),
    ("def f(xs):\n for x in xs: pass\n return x", "x"),
    ("def f(xs, p):\n for x in xs:\n  p.q = x", "p p.q"),
    ("def f(xs, p, i):\n for x in xs:\n  g(p[i], p.a)\n  i = x", "p p.a i p[i]"),
    ("def f(xs, p, i):\n for x in xs:\n  i = x\n  g(p[i], p.a)", "p p.a"),
    ("def f(xs):\n for x in xs:\n  w = x\n  any(w for _ in x)", ""),
    ("def f(n):\n while (k := g()) < n and k:\n  h(k)", "n"),
]


@pytest.mark.parametrize(("text", "expected"), LOOP_CARRIES, ids=[case[0] for case in LOOP_CARRIES])
def test_live_at_each_iteration(text, expected):
    node = function(text)
    loop = first(node, gast.While, gast.For)
    assert liveness(node).iteration[loop] == set(expected.split())


UNBOUND = [
    ("def f(a):\n return a", ""),
    ("def f(a):\n if a: b = 1\n return b", "b"),
    ("def f(a):\n if a: b = 1\n else: b = 2\n return b", ""),
    ("def f(a):\n if a: b = 1\n else: return 2\n return b", ""),
    ("def f(a):\n while a: b = 1\n return b", "b"),
    ("def f(a):\n while True:\n  b = 1\n  if a: break\n return b", ""),
    ("def f(a):\n while True:\n  if a: break\n  b = 1\n return b", "b"),
    ("def f(a):\n for i in a: b = i\n return i", "i"),
    ("def f(a):\n for i in a: break\n else: i = 1\n return i", ""),
    ("def f(a):\n del a\n return a", "a"),
    ("def f(a):\n a: int\n b: int\n return a, b", "b"),
    ("def f(a):\n try: b = g()\n except E: pass\n return b", "b"),
    ("def f(a):\n try: b = g()\n except E: return 1\n return b", ""),
    ("def f(a):\n try: b = g()\n finally: h(b)", "b"),
    ("def f(a):\n try: pass\n except E as e: h(e)\n return e", "e"),
    ("def f(a):\n for e in a:\n  try: g()\n  except E as e: break\n else: return 1\n return e", "e"),
    ("def f(a):\n with a: b = 1\n return b", ""),
    ("def f(a):\n if (b := a) and b: return b\n return b", ""),
    ("def f(a):\n if a and (b := a): return b\n return b", "b b"),
    ("def f(a):\n x = x", "x"),
    ("def f(a):\n x += 1", "x"),
    ("def f(a):\n [x for x in a]\n return [x for y in a]", ""),
    ("def f(a):\n [(x := y) for y in a]\n return x", "x"),
    ("def f(a):\n match a:\n  case [x]: pass\n  case _: x = 1\n return x", ""),
    ("def f(a):\n match a:\n  case [x]: pass\n return x", "x"),
    ("def f(a):\n def g(): return h()\n def h(): return g()\n return h", ""),
    ("def f(a):\n return g\n g = 1", "g"),
    ("def f(a):\n (b if (b := a) else b)\n", ""),
    ("def f(a):\n (c if (c := a) < (d := 1) < (e := 2) else 0, d, e)", "e"),
    ("def f(a):\n try:\n  return 1\n finally:\n  b = 1\n return b", ""),
]


@pytest.mark.parametrize(("text", "expected"), UNBOUND, ids=[case[0] for case in UNBOUND])
def test_maybe_unbound(text, expected):
    assert " ".join(node.id for node in maybe_unbound(function(text))) == expected


def test_lambda():
    node = parse("lambda x: (y := x) + y").body[0].value
    assert live_out(node) == {}
    assert maybe_unbound(node) == []


# Random programs. Whatever isn't live after a statement is overwritten there: the outcome must stay. And each
# UnboundLocalError that a run meets must have been foretold.

NAMES = "abcd"


class Writer:
    """Writes a random function over the variables a, b, c, d; `t()` draws a random bit, `g(...)` logs and may raise."""

    def __init__(self, rng):
        self.rng = rng
        self.lines = []

    def function(self):
        self.block(1, 0, 7)
        self.line(1, f"return {self.expr()}")
        return "def f(a, t, g, V, N):\n" + "\n".join(self.lines)

    def line(self, depth, text):
        self.lines.append("    " * depth + text)

    def name(self):
        return self.rng.choice(NAMES)

    def expr(self):
        a, b = self.name(), self.name()
        forms = [a, a, "1", f"{a} + 1", f"g({a}, {b})", f"({a} := {b}) + 1", f"(t() and ({a} := 1)) + {b}"]
        forms += [f"sum({b} for {a} in range(2))", f"[{a} := {b} for _ in range(2)][0]", f"(lambda: {b})()"]
        forms += [f"({a} if t() else {b})", f"(lambda {a}=({b} := 3): {a})()"]
        return self.rng.choice(forms)

    def block(self, depth, loops, size):
        for _ in range(self.rng.randint(1, size)):
            self.stmt(depth, loops)

    def stmt(self, depth, loops):
        rng, a = self.rng, self.name()
        simple = ["assign", "assign", "assign", "aug", "call", "del", "def"]
        compound = ["if", "ifelse", "while", "for", "try", "finally", "with", "match", "forever", "except"]
        jumps = ["break", "continue"] if loops else []
        kind = rng.choice(simple + (compound if depth < 5 else []) + (jumps + ["return", "raise"] if depth > 1 else []))
        inner = depth + 1
        if kind == "assign":
            self.line(depth, f"{a} = {self.expr()}")
        elif kind == "aug":
            self.line(depth, f"{a} += {self.expr()}")
        elif kind == "call":
            self.line(depth, f"g({self.expr()})")
        elif kind == "del":
            self.line(depth, f"{a} = 0; del {a}" if rng.random() < 0.7 else f"del {a}")
        elif kind == "def":
            self.line(depth, f"def {a}h(): nonlocal {a}; {a} = {self.name()}; return {a}")
            self.line(depth, f"{a} = 5")
            if rng.random() < 0.5:
                self.line(depth, f"if t(): g({a}h())")
        elif kind in ("if", "ifelse"):
            self.line(depth, f"if t() and {self.expr()}:")
            self.block(inner, loops, 3)
            if kind == "ifelse":
                self.line(depth, "else:")
                self.block(inner, loops, 3)
        elif kind in ("while", "for", "forever"):
            head = {"while": "while t():", "for": f"for {a} in range(2):", "forever": "while True:"}[kind]
            self.line(depth, head)
            self.line(inner, "t()")  # Uses up fuel, so that every run ends.
            self.block(inner, loops + 1, 4)
            self.line(inner, "if t(): break")
            if rng.random() < 0.3:
                self.line(depth, "else:")
                self.block(inner, loops, 2)
        elif kind in ("try", "except", "finally"):
            self.line(depth, "try:")
            self.block(inner, loops, 3)
            if kind != "finally":
                self.line(depth, f"except V as {a}:" if kind == "except" else "except V:")
                self.block(inner, loops, 2)
                if rng.random() < 0.3:
                    self.line(depth, "else:")
                    self.block(inner, loops, 2)
            if kind == "finally" or rng.random() < 0.3:
                self.line(depth, "finally:")
                self.block(inner, 0, 2)
        elif kind == "with":
            self.line(depth, f"with N({self.name()}) as {a}:")
            self.block(inner, loops, 3)
        elif kind == "match":
            self.line(depth, f"match ({self.expr()}, t()):")
            self.line(inner, f"case ({a}, True) if t():")
            self.block(inner + 1, loops, 2)
            self.line(inner, f"case (int(), {self.name()}):")
            self.block(inner + 1, loops, 2)
        elif kind == "raise":
            self.line(depth, "raise V")
        else:
            self.line(depth, f"return {self.expr()}" if kind == "return" else kind)


class Fuel(BaseException):
    pass


def outcome(tree, seed):
    """What a run returns or raises, and what it logged on the way."""
    rng = random.Random(seed)
    log = []
    fuel = [60]

    def t():
        fuel[0] -= 1
        if fuel[0] < 0:
            raise Fuel
        return rng.random() < 0.5

    def g(*values):
        log.append([value if isinstance(value, int) else type(value).__name__ for value in values])
        if t() and t():
            raise ValueError
        return 1

    space = {}
    with without_syntax_warnings():
        exec(compile(tree, "<random>", "exec"), space)
    try:
        result = space["f"](1, t, g, ValueError, contextlib.nullcontext)
    except UnboundLocalError as error:
        line = error.__traceback__
        while line.tb_next is not None:
            line = line.tb_next
        return log, "unbound", line.tb_lineno, str(error)
    except (Exception, Fuel) as error:
        return log, type(error).__name__, str(error)
    return log, "returned", result if isinstance(result, int) else type(result).__name__


def poisoned(node):
    """The function with each name that isn't live after a statement overwritten there."""
    live = live_out(node)
    for block_owner in list(gast.walk(node)):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(block_owner, name, None)
            if isinstance(block, list) and all(stmt in live for stmt in block):
                made = []
                for stmt in block:
                    made.append(stmt)
                    for dead in set(NAMES) - live[stmt]:
                        made += parse(f"{dead} = 'poison'").body
                setattr(block_owner, name, made)
    return ast.fix_missing_locations(ast.Module([to_ast(node)], []))


def runnable(text):
    """Random text may break rules that only the compiler knows (a name is local and nonlocal, ...)."""
    try:
        with without_syntax_warnings():
            return compile(text, "<random>", "exec") is not None
    except SyntaxError:
        return False


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed):
    ran = 0
    unbound = 0
    for number in range(25):
        rng = random.Random(seed * 1000 + number)
        text = Writer(rng).function()
        # `nonlocal` in nested functions needs every name to be bound by f itself.
        text += "\n    a = b = c = d = 0"
        if not runnable(text):
            continue
        plain = ast.parse(text)
        changed = poisoned(function(text))
        foretold = {(node.lineno, node.id) for node in maybe_unbound(function(text))}
        for run in range(6):
            expected = outcome(plain, run)
            if expected[1] == "unbound":
                unbound += 1
                name = expected[3].split("'")[1]
                assert (expected[2], name) in foretold, text
            found = outcome(changed, run)
            if expected[1] == "unbound":  # The inserted statements shift the line.
                expected, found = (expected[0], expected[3]), (found[0], *found[3:])
            assert found == expected, text + "\n\n" + ast.unparse(changed)
            ran += 1
    assert ran > 60
    assert unbound > 5
