"""Paths: which expressions have one, and what it looks like."""

from __future__ import annotations

import ast

import gast
import pytest

from autograph.syntax.names import Path
from autograph.syntax.parse import parse, to_ast


def expr(text):
    return parse(text).body[0].value


@pytest.mark.parametrize(
    "text",
    ["x", "x.y", "x['k']", "x[0]", "x[-1]", "x[i]", "x[i].y", "x[y.z]", "x[None]", "x[b'k']", "x[...]", "x[True]"],
)
def test_text_and_node_round_trip(text):
    path = Path.of(expr(text))
    assert str(path) == text
    assert Path.parse(text) == path and hash(Path.parse(text)) == hash(path)
    assert ast.unparse(to_ast(path.to_node())) == text


@pytest.mark.parametrize("text", ["f()", "f().x", "x[i + 1]", "x[1:2]", "x[1, 2]", "1", "x[-True]", "x[f'{a}']"])
def test_no_path(text):
    assert Path.of(expr(text)) is None
    with pytest.raises(ValueError, match="not a path"):
        Path.parse(text)


def test_parse_rejects_broken_text():
    with pytest.raises(ValueError, match="not a path"):
        Path.parse("x.")


def test_none_key_is_not_no_path():
    assert Path.parse("x[None]") != Path.parse("x")


def test_parts():
    path = Path.parse("self.a[i]['k']")
    assert path.root == "self"
    assert path.names == {"self", "i"}
    assert [str(p) for p in path.prefixes] == ["self", "self.a", "self.a[i]"]
    assert str(path.parent) == "self.a[i]"
    assert Path.parse("x").is_name and Path.parse("x").parent is None
    assert path.starts_with(Path.parse("self.a")) and not path.starts_with(Path.parse("self.b"))
    assert isinstance(path.to_node(gast.Store()).ctx, gast.Store)
    assert isinstance(path.to_node(gast.Store()).value.ctx, gast.Load)


def test_same_key_in_other_types_differs():
    assert Path.parse("x[1]") != Path.parse("x[True]")
    assert Path.parse("x[1]") != Path.parse("x['1']")
