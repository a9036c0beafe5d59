"""Templates: every kind of placeholder value, contexts, locations, misuse."""

from __future__ import annotations

import ast

import gast
import pytest

from autograph.syntax.parse import parse, to_ast
from autograph.syntax.templates import TemplateError, expression, literal, replace


def text_of(nodes):
    nodes = nodes if isinstance(nodes, list) else [nodes]
    tree = gast.Module([n if isinstance(n, gast.stmt) else gast.Expr(n) for n in nodes], [])
    return ast.unparse(ast.fix_missing_locations(to_ast(tree)))


def expr(text):
    return parse(text).body[0].value


def test_block_and_names():
    loop = parse("while a:\n    x = 1\n    y = 2", first_line=7).body[0]
    made = replace(
        """
        def body_name(params):
            nonlocal state
            body
        ag__.while_stmt(test, body_name, names)
        """,
        at=loop,
        body_name="loop_body",
        params=["p", "q"],
        state=["x", "y"],
        body=loop.body,
        test=loop.test,
        names=("x", "y"),
    )
    assert text_of(made) == (
        "def loop_body(p, q):\n    nonlocal x, y\n    x = 1\n    y = 2\nag__.while_stmt(a, loop_body, ('x', 'y'))"
    )
    assert made[0].lineno == made[1].lineno == 7
    assert made[0].body[1].lineno == 8
    compile(to_ast(gast.Module(replace("def g():\n    x = y = 0\n    made", made=made, at=loop), [])), "f", "exec")


def test_empty_block_gets_pass_and_empty_nonlocal_goes():
    assert text_of(replace("def f():\n    nonlocal names\n    body", names=[], body=[])) == "def f():\n    pass"
    assert text_of(replace("if test:\n    body\nelse:\n    other", test=expr("c"), body=[], other=[])) == (
        "if c:\n    pass"
    )


@pytest.mark.parametrize(
    ("template", "values", "expected"),
    [
        ("target = value", {"target": "x", "value": "y"}, "x = y"),
        ("target = value", {"target": expr("a.b[c]"), "value": expr("1 + 2")}, "a.b[c] = 1 + 2"),
        ("target = value", {"target": expr("(a, *b)"), "value": expr("c")}, "a, *b = c"),
        ("del target", {"target": expr("a.b")}, "del a.b"),
        ("f(args, last)", {"args": [expr("1"), "x", expr("*y")]}, "f(1, x, *y, last)"),
        ("f(key=1)", {"key": "name"}, "f(name=1)"),
        ("obj.attr", {"attr": "field"}, "obj.field"),
        ("f(value)", {"value": None}, "f(None)"),
        ("f(value)", {"value": (-1, "s", (True,))}, "f((-1, 's', (True,)))"),
        ("lambda params: value", {"params": expr("lambda x, *, k=1: 0").args, "value": "x"}, "lambda x, *, k=1: x"),
        ("lambda: value", {"value": expr("a if b else c")}, "lambda: a if b else c"),
        ("global names", {"names": ["a", "b"]}, "global a, b"),
        ("class name(base):\n    pass", {"name": "A", "base": expr("m.B")}, "class A(m.B):\n    pass"),
        ("name: 'local'", {"name": "x"}, "x: 'local'"),
        ("(t := value)", {"t": "tmp", "value": expr("f()")}, "(tmp := f())"),
    ],
)
def test_values(template, values, expected):
    assert text_of(replace(template, **values)) == ast.unparse(ast.parse(expected))


def test_store_target_becomes_load_and_source_is_untouched():
    target = parse("a.b = 1").body[0].targets[0]
    made = expression("f(place)", place=target)
    assert isinstance(made.args[0].ctx, gast.Load)
    assert isinstance(target.ctx, gast.Store)


def test_second_use_is_a_copy():
    value = expr("x + 1")
    made = expression("f(value, value)", value=value)
    assert made.args[0] is value
    assert made.args[1] is not value
    assert text_of(made) == "f(x + 1, x + 1)"


def test_template_itself_stays_clean():
    first = expression("f(x)", x=expr("1"))
    assert text_of(expression("f(x)", x=expr("2"))) == "f(2)"
    assert text_of(first) == "f(1)"


def test_misuse():
    with pytest.raises(TemplateError, match="typo"):
        replace("x = 1", typo="y")
    with pytest.raises(TemplateError):
        replace("value = 1", value=expr("f()"))
    with pytest.raises(TemplateError):
        expression("x = 1")
    with pytest.raises(TemplateError):
        expression("f(x)", x=parse("a = 1").body[0])
    with pytest.raises(TemplateError):
        expression("f(x)", x=object())


def test_literal():
    assert text_of(literal({"a": [1, -2.5], "b": (None, b"x")})) == "{'a': [1, -2.5], 'b': (None, b'x')}"
