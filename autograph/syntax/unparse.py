"""Syntax trees to text that a person would want to read.

Extends ``astunparse.Unparser`` by what it lacks (match statements, ``except*``, type parameters, nested f-strings,
template strings ...) and prints parentheses only where the precedence of operators asks for them. Parsing the text
gives the same tree again; tests/syntax/test_roundtrip.py tries that on Python's standard library.

Example::

    >>> print(unparse(parse("x = ((a*b) + (c)) ** -2")), end="")
    x = (a * b + c) ** -2
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from autograph.syntax.expressions import ExpressionPrinter, Level
from autograph.syntax.literals import docstring_text
from autograph.syntax.parse import is_gast, to_ast, with_deep_stack

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def unparse(node: Any) -> str:
    """The text of a gast or ast node, or of a list of statements.

    Statements end with a newline, expressions don't; there is no other white space around the text.
    """
    if isinstance(node, list):
        return "".join(unparse(each) for each in node)
    if is_gast(node):
        node = to_ast(node)
    text = with_deep_stack(lambda: _Printer(node).text())
    ends_line = isinstance(node, (ast.stmt, ast.Module, ast.Interactive)) and text
    return text + "\n" if ends_line else text


class _Printer(ExpressionPrinter):
    """Adds the statements to the expressions. Methods that are named after a node class print such a node."""

    @contextmanager
    def indented(self) -> Iterator[None]:
        self.enter()
        yield
        self.leave()

    def suite(self, head: str, body: list[Any]) -> None:
        """A block whose first line has been begun, or is ``head``."""
        if head:
            self.fill(head)
        with self.indented():
            self.dispatch(body)

    # Modules and definitions

    def definitions_apart(self, body: list[Any], blank: str) -> None:
        """Statements, with blank lines around definitions."""
        for index, stmt in enumerate(body):
            if index and (isinstance(stmt, _DEFINITIONS) or isinstance(body[index - 1], _DEFINITIONS)):
                self.write(blank)
            self.dispatch(stmt)

    def body_with_docstring(self, body: list[Any]) -> list[Any]:
        """Print the docstring, if there is one; returns the rest."""
        first = body[0].value if body and isinstance(body[0], ast.Expr) else None
        if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
            return body
        self.fill(("u" if first.kind == "u" else "") + docstring_text(first.value))
        return body[1:]

    def _Module(self, tree: Any) -> None:
        self.definitions_apart(self.body_with_docstring(tree.body), "\n\n")

    _Interactive = _Module

    def _ClassDef(self, node: Any) -> None:
        self.decorators(node)
        self.fill("class " + node.name)
        self.type_params(node)
        if node.bases or node.keywords:
            self.write("(")
            self.commas([*node.bases, *node.keywords], self.argument)
            self.write(")")
        with self.indented():
            self.definitions_apart(self.body_with_docstring(node.body), "\n")

    def _FunctionDef(self, node: Any) -> None:
        self.function(node, "def ")

    def _AsyncFunctionDef(self, node: Any) -> None:
        self.function(node, "async def ")

    def function(self, node: Any, keyword: str) -> None:
        self.decorators(node)
        self.fill(keyword + node.name)
        self.type_params(node)
        self.write("(")
        self.dispatch(node.args)
        self.write(")")
        if node.returns is not None:
            self.write(" -> ")
            self.dispatch(node.returns)
        with self.indented():
            self.dispatch(self.body_with_docstring(node.body))

    def decorators(self, node: Any) -> None:
        for decorator in node.decorator_list:
            self.fill("@")
            self.dispatch(decorator)

    def type_params(self, node: Any) -> None:
        if getattr(node, "type_params", None):
            self.write("[")
            self.commas(node.type_params)
            self.write("]")

    def type_param(self, node: Any, stars: str) -> None:
        self.write(stars + node.name)
        if getattr(node, "bound", None) is not None:
            self.write(": ")
            self.dispatch(node.bound)
        if getattr(node, "default_value", None) is not None:
            self.write(" = ")
            self.dispatch(node.default_value)

    def _TypeVar(self, node: Any) -> None:
        self.type_param(node, "")

    def _TypeVarTuple(self, node: Any) -> None:
        self.type_param(node, "*")

    def _ParamSpec(self, node: Any) -> None:
        self.type_param(node, "**")

    def _TypeAlias(self, node: Any) -> None:
        self.fill("type ")
        self.dispatch(node.name)
        self.type_params(node)
        self.write(" = ")
        self.dispatch(node.value)

    # Simple statements

    def _Expr(self, node: Any) -> None:
        self.fill()
        # A statement can't begin with an unparenthesised walrus.
        self.expression(node.value, Level.TEST if isinstance(node.value, ast.NamedExpr) else Level.YIELD)

    def _Assign(self, node: Any) -> None:
        self.fill()
        for target in node.targets:
            self.expression(target, Level.TUPLE)
            self.write(" = ")
        self.value(node.value)

    def _AugAssign(self, node: Any) -> None:
        self.fill()
        self.dispatch(node.target)
        self.write(" " + self.binop[type(node.op).__name__] + "= ")
        self.value(node.value)

    def _AnnAssign(self, node: Any) -> None:
        self.fill()
        bare = isinstance(node.target, ast.Name) and not node.simple
        self.write("(" if bare else "")
        self.dispatch(node.target)
        self.write("): " if bare else ": ")
        self.dispatch(node.annotation)
        if node.value is not None:
            self.write(" = ")
            self.value(node.value)

    def value(self, node: Any) -> None:
        """The right side of an assignment."""
        self.expression(node, Level.TEST if isinstance(node, ast.NamedExpr) else Level.YIELD)

    def _Return(self, node: Any) -> None:
        self.fill("return")
        if node.value is not None:
            self.write(" ")
            self.items(node.value)

    def _Import(self, node: Any) -> None:
        self.fill(_lazy(node) + "import ")
        self.commas(node.names)

    def _ImportFrom(self, node: Any) -> None:
        self.fill(_lazy(node) + "from " + "." * (node.level or 0) + (node.module or "") + " import ")
        self.commas(node.names)

    # Compound statements

    def test(self, node: Any) -> None:
        self.expression(node, Level.NAMED)

    def _If(self, node: Any) -> None:
        keyword = "if "
        while True:
            self.fill(keyword)
            self.test(node.test)
            self.suite("", node.body)
            if len(node.orelse) != 1 or not isinstance(node.orelse[0], ast.If):
                break
            keyword = "elif "
            node = node.orelse[0]
        self.orelse(node)

    def orelse(self, node: Any) -> None:
        if node.orelse:
            self.suite("else", node.orelse)

    def _While(self, node: Any) -> None:
        self.fill("while ")
        self.test(node.test)
        self.suite("", node.body)
        self.orelse(node)

    def _For(self, node: Any) -> None:
        self.loop(node, "for ")

    def _AsyncFor(self, node: Any) -> None:
        self.loop(node, "async for ")

    def loop(self, node: Any, keyword: str) -> None:
        self.fill(keyword)
        self.items(node.target)
        self.write(" in ")
        self.items(node.iter)
        self.suite("", node.body)
        self.orelse(node)

    def _With(self, node: Any) -> None:
        self.with_statement(node, "with ")

    def _AsyncWith(self, node: Any) -> None:
        self.with_statement(node, "async with ")

    def with_statement(self, node: Any, keyword: str) -> None:
        self.fill(keyword)
        only = node.items[0]
        if len(node.items) == 1 and only.optional_vars is None and isinstance(only.context_expr, ast.Tuple):
            # `with (a, b):` has two managers; to have a tuple takes another pair.
            self.write("(")
            self.dispatch(only)
            self.write(")")
        else:
            self.commas(node.items)
        self.suite("", node.body)

    def _Try(self, node: Any, except_keyword: str = "except") -> None:
        self.suite("try", node.body)
        for handler in node.handlers:
            self.fill(except_keyword)
            if handler.type is not None:
                self.write(" ")
                self.dispatch(handler.type)
            if handler.name is not None:
                self.write(" as " + handler.name)
            self.suite("", handler.body)
        self.orelse(node)
        if node.finalbody:
            self.suite("finally", node.finalbody)

    def _TryStar(self, node: Any) -> None:
        self._Try(node, "except*")

    # Match statements

    def _Match(self, node: Any) -> None:
        self.fill("match ")
        self.dispatch(node.subject)
        with self.indented():
            for case in node.cases:
                self.fill("case ")
                self.dispatch(case.pattern)
                if case.guard is not None:
                    self.write(" if ")
                    self.test(case.guard)
                self.suite("", case.body)

    def _MatchValue(self, node: Any) -> None:
        self.dispatch(node.value)

    def _MatchSingleton(self, node: Any) -> None:
        self.write(repr(node.value))

    def _MatchSequence(self, node: Any) -> None:
        self.write("[")
        self.commas(node.patterns)
        self.write("]")

    def _MatchStar(self, node: Any) -> None:
        self.write("*" + (node.name or "_"))

    def _MatchMapping(self, node: Any) -> None:
        self.write("{")
        self.commas(
            [*zip(node.keys, node.patterns), *([node.rest] if node.rest is not None else [])], self.mapping_item
        )
        self.write("}")

    def mapping_item(self, item: Any) -> None:
        if isinstance(item, str):
            self.write("**" + item)
        else:
            self.dispatch(item[0])
            self.write(": ")
            self.dispatch(item[1])

    def _MatchClass(self, node: Any) -> None:
        self.expression(node.cls, Level.ATOM)
        self.write("(")
        self.commas([*node.patterns, *zip(node.kwd_attrs, node.kwd_patterns)], self.class_item)
        self.write(")")

    def class_item(self, item: Any) -> None:
        if isinstance(item, tuple):
            self.write(item[0] + "=")
            item = item[1]
        self.dispatch(item)

    def _MatchAs(self, node: Any) -> None:
        if node.pattern is not None:
            self.alternative(node.pattern, (ast.MatchAs,))
            self.write(" as ")
        self.write(node.name or "_")

    def _MatchOr(self, node: Any) -> None:
        for index, pattern in enumerate(node.patterns):
            if index:
                self.write(" | ")
            self.alternative(pattern, (ast.MatchAs, ast.MatchOr))

    def alternative(self, pattern: Any, loose: tuple[type, ...]) -> None:
        """A pattern that needs parentheses when it is of a kind that binds no tighter."""
        needed = isinstance(pattern, loose) and getattr(pattern, "pattern", pattern) is not None
        self.write("(" if needed else "")
        self.dispatch(pattern)
        self.write(")" if needed else "")


def _lazy(node: Any) -> str:
    return "lazy " if getattr(node, "is_lazy", 0) else ""  # Python 3.15 on
