"""Printed text: the same tree again, and no parenthesis too many."""

from __future__ import annotations

import ast
import sys
import textwrap

import gast
import pytest

from autograph.syntax.parse import parse, to_ast
from autograph.syntax.templates import literal
from autograph.syntax.unparse import unparse

# Text that must be printed exactly as it stands here.
EXACT = """
x = a + b * c - d
x = (a + b) * c
x = a - (b - c)
x = a / b / c
x = a / (b / c)
x = -a ** -b
x = (-a) ** b
x = (a ** b) ** c
x = a ** b ** c
x = not a == b
x = (not a) == b
x = a < b <= c
x = (a < b) < c
x = a or b and c
x = (a or b) and c
x = (a and b) and c
x = a if b else c if d else e
x = (a if b else c) if d else e
x = a if (b if c else d) else e
x = lambda: 0
x = lambda a, /, b=1, *c, d, e=2, **f: a
x = lambda *, a: a
x = (lambda: 0)()
x = (lambda: 0) if a else lambda: 1
x = [i for i in (lambda: a)() if (yield)]
x = ~a & b | c ^ d << e
x = --a
x = (a, b)[0]
a, b = b, a
a, = b
(a, b), c = d
a, *b = c
*a, = b
x = ()
x = (a,), {}, [], {a}, {a: b}, {**a, b: c}
x[i, j] = y[i:j, ::2, ...]
x[()] = y[a,]
x[a:b:c] = x[:]
x = (1).real + 1.5.real + 1j.imag
x = -1
x = (-1).real
x = (-1) ** 2
x = 1e309 + 1e309j
x = b'a' + b"'"
x = 'a' "b" if 0 else "don't"
f(a, *b, c=d, **e)
f((a for a in b), c)
f(a for a in b)
f(*a or b)
f(**a or b)
f((yield))
f((x := 1), y=(z := 2))
x = yield
x = yield a, b
x = yield from a
x += yield
x = await a + await b.c()
x = await a ** 2
x = [a async for a in b if c if d]
x = {a: b for a, b in c for d in e}
x = {a for a in b}
x = [a for a in (b, c)]
x = [a for a in (b if c else d)]
x: int
x: int = 1
x: a = b, c
(x): int = 1
x.y: int
del a, b.c, d[e]
del (a, b)
assert a, b
raise
raise A from b
global a, b
import a.b as c, d
from . import a
from ..a import b as c, d
from a import *
return_value = a
print(f'{a} b {c!r:>{d}} {{e}}')
print(f'{a["k"]}')
print(f'{a:%Y-%m-%d}')
print(f'{(lambda: 1)} { {1: 2}} {a if b else c}')
print(f'{a!s}{b!a}')
print(f'')
print(f"it's {a}")
print(f'{a}\\n')
a @= b
a //= b, c
x = a is not b not in c
x = a @ b % c
pass
(x := 1)
"""

BLOCKS = '''
if a:
    b
elif c:
    d
else:
    e
---
while (x := f()) and y:
    break
else:
    continue
---
while x := f():
    pass
---
for a, b in c, d:
    pass
else:
    pass
---
async def f():
    async for a in b:
        async with c as d, e:
            await f
---
with a as (b, c), d:
    pass
---
with ((a, b)):
    pass
---
with (a, b) as c:
    pass
---
try:
    a
except B:
    c
except (D, E) as f:
    g
except:
    h
else:
    i
finally:
    j
---
@a
@b.c(d)
@e[0]
class F(G, *h, metaclass=I):
    """Doc."""
    x = 1

    def f(self):
        """Two
        lines."""
        def g():
            pass
        return g

    y = 2
---
class A:
    pass


def f(a: int, /, b: str = 'x', c=1, *d: e, f: g = h, **i: j) -> k:
    return a, *b


x = 1
---
def f():
    yield
    return (yield)
---
match a, b:
    case 1 | -1 | 1.5 - 2j | 'x' | None | a.b:
        pass
    case [x, *_, y] if z:
        pass
    case {'k': v, **rest}:
        pass
    case {}:
        pass
    case C(1, x, k=D()) as w:
        pass
    case (1 as x) | (2 as x):
        pass
    case (1 | 2) as x:
        pass
    case [[x, y as z], (a as b) as c]:
        pass
    case _:
        pass
---
@(yield)
def f():
    return lambda x: (yield x)
'''


@pytest.mark.parametrize("text", EXACT.strip().splitlines())
def test_exact_lines(text):
    expected = text.replace("'a' \"b\" if 0 else", "'ab' if 0 else")
    inside = "async def f():\n    " if "await" in text or "async" in text else ""
    printed = unparse(parse(inside + text))
    assert printed == inside + expected + "\n"


@pytest.mark.parametrize("text", BLOCKS.strip().split("\n---\n"))
def test_blocks(text):
    printed = unparse(parse(text + "\n"))
    assert ast.dump(ast.parse(printed)) == ast.dump(ast.parse(text))
    changes = {"match a, b:": "match (a, b):", "case (1 | 2) as x:": "case 1 | 2 as x:", "@(yield)": "@(yield)"}
    for old, new in changes.items():
        text = text.replace(old, new)
    assert printed == text + "\n"


def same_again(text):
    printed = unparse(parse(text))
    assert ast.dump(ast.parse(printed)) == ast.dump(ast.parse(text)), printed
    return printed


@pytest.mark.parametrize(
    "text",
    [
        '''f"""{a["k"]} {b['k']}"""''',
        '''f"{f'{x}' + 'y'}"''',
        '''f"""{f"{f'{x}'}"}"""''',
        """f"{x}"""  # two kinds of quotes in the literal part
        + """ \\" ' '''\"""",
        "f'{x:{y}{z:>3}}'",
        "f'{x:}'",
        "f'{x=}' f'{x = !r:>3}'",
        "f'{ {1, 2} } { {k: v for k, v in d} }'",
        "f'{x!r}' 'tail{}'",
        "f'{x:\\x7b\\x7d}'",
        "f'\\N{GREEK SMALL LETTER ALPHA}{x}\\\\'",
        "f'''{\nx}\n'''",
        "f'{(x := 1)} {x:=1}'",
        "f'{(yield)}'",
        "f'{a, b}'",
        "f'{*a, b}'",
        "f'{a != b}'",
        "rf'\\d{x}'",
        'f\'{x["a"]:{y["b"]}}\'',
        "f'{-x ** 2!r}'",
        "f'a'",
        "u'a'",
        "'\\ud800\\0\\x7f\\u2028'",
        "b'\\x00\\xff'",
        "'''doc'''",
        '\'doc \\\\ with """ and trailing "\'',
        "'doc\\nlines\\r\\t\\x00'",
        "def f():\n    'doc\\\\'",
        "def f():\n    u'doc'",
        "def f():\n    f'not doc'",
        "x[(yield)]",
        "x = *a, b",
        "for x in *a, b: pass",
        "x[(*a, b)]",
        "x[a:b, (c, d)]",
        "lambda x=(y := 1): x",
        "assert (a, b)",
        "1 if (yield) else 2",
        "(await_ := x).y",
        "(a.b).c[d](e)",
        "(a for b in c).d",
        "if (yield): pass",
        "(a, b): int = c",
    ],
)
def test_same_tree(text):
    if text.startswith("(a, b): int"):
        with pytest.raises(SyntaxError):
            ast.parse(text)
        return
    same_again(text)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.11 syntax")
@pytest.mark.parametrize(
    "text",
    [
        "try:\n    a\nexcept* B as c:\n    d\nexcept* (E, F):\n    g\n",
        "x[*a, b] = y[*c]\n",
        "def f(*args: *Ts):\n    pass\n",
        "x[a:b, *c]\n",
    ],
)
def test_python_3_11(text):
    same_again(text)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python 3.12 syntax")
@pytest.mark.parametrize(
    "text",
    [
        "type X = int\n",
        "type X[T, *Ts, **P] = dict[T, U]\n",
        "def f[T: (int, str), U: A](x: T) -> U:\n    pass\n",
        "class C[T](B[T]):\n    pass\n",
        "async def f[T]():\n    pass\n",
    ],
)
def test_python_3_12(text):
    assert same_again(text) == text


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python 3.12 syntax")
@pytest.mark.parametrize(
    "text", ["f'{f'{f'{x + '\\n'}'}'}'", "f'{\"\\n\".join(a)}'", "f'{'a' 'b'}'", "f'{x:{'\"' + \"'\"}}'"]
)
def test_free_fields(text):
    same_again(text)


@pytest.mark.skipif(sys.version_info < (3, 13), reason="Python 3.13 syntax")
def test_python_3_13():
    text = "class C[T = int, *Ts = *tuple[int], **P = [int]]:\n    pass\n"
    assert same_again(text) == text


@pytest.mark.skipif(sys.version_info < (3, 14), reason="Python 3.14 syntax")
@pytest.mark.parametrize(
    "text",
    [
        "t'{x}'\n",
        "t'a{ x+1 }b{y!r:>{w}}{{'\n",
        "t'{ {1: 2}[1] }{x if y else z}'\n",
        "t'{x !r}{f'{y}'}{t\"{ z }\"}'\n",
        "t'{*a, b}{(lambda: 1)}'\n",
    ],
)
def test_python_3_14(text):
    same_again(text)


def test_a_field_of_a_template_that_has_changed():
    pytest.importorskip("string.templatelib", reason="Python 3.14 syntax")
    tree = parse("t'{ x+1 }'")
    field = tree.body[0].value.values[0]
    assert unparse(tree) == "t'{ x+1 }'\n"
    field.value = gast.Name("y", gast.Load(), None, None)
    assert unparse(tree) == "t'{y}'\n"


@pytest.mark.skipif(sys.version_info < (3, 15), reason="Python 3.15 syntax")
@pytest.mark.parametrize(
    "text",
    [
        "lazy import a.b as c, d\n",
        "lazy from .a import b as c\n",
        "[*x for x in y]\n",
        "{*x for x in y if x}\n",
        "f((*x for x in y), z)\n",
        "{**x for x in y}\n",
        "{**(x or {}) for x in y}\n",
    ],
)
def test_python_3_15(text):
    assert same_again(text) == text


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (gast.Constant(-1, None), "-1"),
        (gast.Attribute(gast.Constant(-1, None), "real", gast.Load()), "(-1).real"),
        (gast.BinOp(gast.Constant(-1.5, None), gast.Pow(), gast.Constant(2, None)), "(-1.5) ** 2"),
        (gast.Constant(float("nan"), None), "(1e309 - 1e309)"),
        (gast.Constant(float("-inf"), None), "-1e309"),
        (gast.Constant((1, "a", (2,)), None), "(1, 'a', (2,))"),
        (gast.Constant(Ellipsis, None), "..."),
        (gast.Set([]), "{*()}"),
        (literal(("i", "x")), "('i', 'x')"),
        (gast.Call(gast.Name("f", gast.Load(), None, None), [literal(("i",))], []), "f(('i',))"),
        (ast.parse("a+b").body[0].value, "a + b"),
    ],
)
def test_nodes_made_by_hand(node, expected):
    assert unparse(node) == expected


def test_statement_list_and_ends():
    stmts = parse("x = 1\ny = 2").body
    assert unparse(stmts) == "x = 1\ny = 2\n"
    assert unparse(stmts[0]) == "x = 1\n"
    assert unparse(stmts[0].value) == "1"
    assert unparse(parse("")) == ""
    assert unparse(to_ast(parse("f(x)"))) == "f(x)\n"


def test_huge_numbers():
    huge = 16**6000 - 1
    assert ast.literal_eval(unparse(gast.Constant(huge, None))) == huge


def test_long_chains():
    text = " + ".join(["x"] * 900)
    limit = sys.getrecursionlimit()
    assert unparse(parse(text)) == text + "\n"
    assert sys.getrecursionlimit() == limit


def test_docstrings_read_well():
    text = textwrap.dedent(
        '''
        def f():
            """Says "hi".

            More: \\\\alpha, it's.
            """
        '''
    ).lstrip()
    assert unparse(parse(text)) == text
