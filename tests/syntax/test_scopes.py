"""Scopes: a table of tricky statements, and the standard symbol table as an oracle."""

from __future__ import annotations

import ast
import builtins
import glob
import os
import symtable
import sys
import textwrap

import gast
import pytest

from autograph.syntax.parse import parse
from autograph.syntax.scopes import activity, function_scope

# text, read, bound, deleted
CASES = [
    ("x = y", "y", "x", ""),
    ("x = y = z", "z", "x y", ""),
    ("x += y", "x y", "x", ""),
    ("a.b = c", "a c", "", ""),
    ("a[i] += c", "a i c", "", ""),
    ("(a, *b), [c, d.e] = f", "d f", "a b c", ""),
    ("x: int", "", "", ""),
    ("x: T = y", "y", "x", ""),
    ("a.b: T", "a", "", ""),
    ("del x, a.b, c[i]", "a c i", "", "x"),
    ("import a.b.c, d.e as f", "", "a f", ""),
    ("from m import a, b as c", "", "a c", ""),
    ("global g\ng = h", "h", "g", ""),
    ("y = [i * k for i in xs if i > lo]", "k xs lo", "y", ""),
    ("y = [i for i in i]", "i", "y", ""),
    ("y = [(last := i) for i in xs]", "xs", "y last", ""),
    ("y = [[(w := j) for j in i] for i in xs]", "xs", "y w", ""),
    ("y = {k: v for k, v in d.items() for u in v if u}", "d", "y", ""),
    ("y = sum(x for x in a for y in b)", "sum a b", "y", ""),
    ("f(lambda x, y=d: x + y + z)", "f d z", "", ""),
    ("f(lambda: (w := 1))", "f", "", ""),
    ("if (n := f()) > m: p", "f m p n".replace(" n", ""), "n", ""),
    ("for i, j in xs:\n    s += i\nelse:\n    t = j", "xs s i j", "i j s t", ""),
    ("while c:\n    pass", "c", "", ""),
    ("with a as b, c as (d, e.f):\n    g", "a c e g", "b d", ""),
    ("try:\n    a\nexcept E as e:\n    b(e)\nelse:\n    c\nfinally:\n    d", "a E b e c d", "e", "e"),
    (
        "match s:\n    case [x, *rest] if g: pass\n    case {'k': v, **kw}: pass\n"
        "    case C(f=z) as w: pass\n    case m.K | 1: pass",
        "s g C m",
        "x rest v kw z w",
        "",
    ),
    ("match s:\n    case _: pass", "s", "", ""),
    ("def f(a, b=d, *c, e: T = h, **k) -> R:\n    local = a + free\n    return local", "d T h R free", "f", ""),
    ("@deco(x)\ndef f():\n    pass", "deco x", "f", ""),
    ("def f():\n    nonlocal n\n    n = 1", "", "f n", ""),
    ("def f():\n    nonlocal n\n    del n", "", "f n", "n"),
    ("def f():\n    global g\n    g = 1\n    return g", "", "f", ""),
    ("def f():\n    def g():\n        nonlocal n\n        n = 1\n", "", "f n", ""),
    ("def f():\n    n = 0\n    def g():\n        nonlocal n\n        n = 1\n", "", "f", ""),
    ("def f():\n    return f", "f", "f", ""),
    ("class C(B, metaclass=M):\n    x = y\n    z = x\n    def m(self):\n        return x + w\n", "B M y x w", "C", ""),
    ("class C:\n    z = x\n    def m(self):\n        return __class__\n", "x", "C", ""),
    ("class C:\n    x = 1\n    ys = [x for _ in x]", "x", "C", ""),
    ("class C:\n    x: T = 1", "T", "C", ""),
    ("class C:\n    nonlocal n\n    n = 1", "", "C n", ""),
    ("async with a as b:\n    await c", "a c", "b", ""),
    ("x = yield y", "y", "x", ""),
    ("assert a, b", "a b", "", ""),
    ("raise A from b", "A b", "", ""),
    ("print(f'{x:{w}} {y!r}')", "print x w y", "", ""),
]


@pytest.mark.parametrize(("text", "read", "bound", "deleted"), CASES, ids=[case[0] for case in CASES])
def test_activity(text, read, bound, deleted):
    found = activity(parse(text).body)
    assert found.read == set(read.split())
    assert found.bound == set(bound.split())
    assert found.deleted == set(deleted.split())
    assert found.modified == set(bound.split()) | set(deleted.split())


@pytest.mark.parametrize(
    ("text", "read", "modified"),
    [
        ("x.y = z.w", ["z.w"], ["x.y"]),
        ("self.h['k'] = 1", ["self.h"], ["self.h['k']"]),
        ("self.n += 1", ["self.n"], ["self.n"]),
        ("del d['k']", [], ["d['k']"]),
        ("x[i + 1] = y", [], []),
        ("for self.i in xs: pass", [], ["self.i"]),
        ("a.b: int", [], []),
        ("f(x.y for x in xs)", [], []),
        ("f(z.y for x in xs)", ["z.y"], []),
        ("def f(a):\n    a.p = self.q\n    self.r = 1", ["self.q"], ["self.r"]),
        ("def f():\n    self = g()\n    self.r = self.q", [], []),
    ],
)
def test_paths(text, read, modified):
    found = activity(parse(text).body)
    assert sorted(map(str, found.paths_read)) == read
    assert sorted(map(str, found.paths_modified)) == modified


def test_declarations():
    found = activity(parse("global a, b\nnonlocal c\nd: int").body)
    assert found.globals == {"a", "b"}
    assert found.nonlocals == {"c"}
    assert found.declared == {"d"}
    assert found.bound == set()


def test_one_node_or_list():
    module = parse("x = 1\ny = x")
    assert activity(module.body[1]).read == {"x"}
    assert activity([]).read == set()
    assert activity(module.body[1].value).read == {"x"}


def scope(text):
    return function_scope(parse(textwrap.dedent(text)).body[0])


def test_function_scope():
    found = scope(
        """
        def f(a, /, b, *args, c=deflt, **kw):
            nonlocal n
            global g
            x = y = n = g = a
            z: int
            [w for w in range(x) if (v := w)]
            def inner():
                nonlocal x
                x = h + q
            return lambda: outer
        """
    )
    assert found.params == ("a", "b", "args", "c", "kw")
    assert found.locals == {"a", "b", "args", "c", "kw", "x", "y", "z", "v", "inner"}
    assert found.free == {"n", "range", "h", "q", "outer"}
    assert found.globals == {"g"}
    assert found.nonlocals == {"n"}


def test_lambda_scope():
    found = function_scope(parse("lambda x, *y: x + z").body[0].value)
    assert found.params == ("x", "y")
    assert found.locals == {"x", "y"}
    assert found.free == {"z"}


def test_nonlocal_of_deeper_function_passes_by():
    found = scope("def f():\n    def g():\n        nonlocal n\n        n = 1\n    return g")
    assert found.locals == {"g"}
    assert found.free == {"n"}


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters are Python 3.12 syntax")
def test_type_parameters():
    found = activity(parse("def f[T: B](x: T, y: A = d) -> T:\n    return T, z").body)
    assert found.read == {"B", "A", "d", "z"}
    found = activity(parse("type X[T] = dict[T, U]").body)
    assert (found.read, found.bound) == ({"dict", "U"}, {"X"})
    found = activity(parse("class C[T](B[T]):\n    x = T\n    def m(self): return T").body)
    assert found.read == {"B"}


# CPython's own symbol table decides which names of a function are local and which come from outside.


def stdlib_files():
    root = os.path.dirname(os.__file__)
    return sorted(glob.glob(os.path.join(root, "*.py")))[::6]


def functions_of(tree):
    return {
        (node.name, first_line(node)): node
        for node in gast.walk(tree)
        if isinstance(node, (gast.FunctionDef, gast.AsyncFunctionDef))
    }


def first_line(node):
    return node.decorator_list[0].lineno if node.decorator_list else node.lineno


def tables(table):
    for child in table.get_children():
        yield child
        yield from tables(child)


def test_against_symtable():
    compared = 0
    for file in stdlib_files():
        with open(file, "rb") as handle:
            text = handle.read()
        tree = gast.ast_to_gast(ast.parse(text))
        mangled = {
            n
            for n in (getattr(node, "id", getattr(node, "attr", "")) for node in gast.walk(tree))
            if n.startswith("__")
        }
        functions = functions_of(tree)
        for table in tables(symtable.symtable(text.decode("utf-8"), file, "exec")):
            if table.get_type() != "function":
                continue
            node = functions.get((table.get_name(), table.get_lineno()))
            if node is None or mangled & {s.get_name() for s in table.get_symbols()}:
                continue
            found = function_scope(node)
            expected = set(table.get_locals())
            if sys.version_info >= (3, 12):  # The compiler inlines comprehensions there, targets and all.
                expected -= comprehension_targets(node) - found.locals
            frees = set(table.get_frees())
            where = f"{file}:{node.lineno} {node.name}"
            assert set(found.params) == set(table.get_parameters()), where
            assert found.locals == expected - frees, where
            assert frees - {"__class__"} <= found.free, where
            assert found.free <= frees | set(table.get_globals()) | nested_reads(table) | set(dir(builtins)), where
            compared += 1
    assert compared > 500


def comprehension_targets(node):
    return {
        name.id
        for inner in gast.walk(node)
        if isinstance(inner, gast.comprehension)
        for name in gast.walk(inner.target)
        if isinstance(name, gast.Name)
    }


def nested_reads(table):
    names = set()
    for child in tables(table):
        names |= {symbol.get_name() for symbol in child.get_symbols()}
    return names
