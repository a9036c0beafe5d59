"""Syntax trees to text that a person would want to read.

Extends ``astunparse.Unparser`` by what it lacks (match statements, ``except*``, type parameters, nested f-strings ...)
and prints parentheses only where the precedence of operators asks for them. Parsing the text gives the same tree again;
tests/syntax/test_roundtrip.py tries that on Python's standard library.

Example::

    >>> print(unparse(parse("x = ((a*b) + (c)) ** -2")), end="")
    x = (a * b + c) ** -2
"""

from __future__ import annotations

import ast
import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

import astunparse

from autograph.syntax.literals import constant_text, docstring_text, fstring_text, string_text
from autograph.syntax.parse import is_gast, to_ast, with_deep_stack


class Level(IntEnum):
    """How tightly an expression binds, loosest first (Python language reference, 6.17)."""

    YIELD = 0
    TUPLE = 1
    NAMED = 2
    TEST = 3  # conditional expressions and lambdas
    OR = 4
    AND = 5
    NOT = 6
    COMPARE = 7
    BIT_OR = 8
    BIT_XOR = 9
    BIT_AND = 10
    SHIFT = 11
    SUM = 12
    TERM = 13
    FACTOR = 14
    POWER = 15
    AWAIT = 16
    ATOM = 17

    def tighter(self) -> Level:
        return Level(self + 1)


_LEVELS: dict[type, Level] = {
    ast.Yield: Level.YIELD,
    ast.YieldFrom: Level.YIELD,
    ast.Tuple: Level.TUPLE,
    ast.NamedExpr: Level.NAMED,
    ast.IfExp: Level.TEST,
    ast.Lambda: Level.TEST,
    ast.Compare: Level.COMPARE,
    ast.Await: Level.AWAIT,
}
_OPERATOR_LEVELS: dict[type, Level] = {
    ast.Or: Level.OR,
    ast.And: Level.AND,
    ast.Not: Level.NOT,
    ast.BitOr: Level.BIT_OR,
    ast.BitXor: Level.BIT_XOR,
    ast.BitAnd: Level.BIT_AND,
    ast.LShift: Level.SHIFT,
    ast.RShift: Level.SHIFT,
    ast.Add: Level.SUM,
    ast.Sub: Level.SUM,
    ast.Mult: Level.TERM,
    ast.MatMult: Level.TERM,
    ast.Div: Level.TERM,
    ast.Mod: Level.TERM,
    ast.FloorDiv: Level.TERM,
    ast.UAdd: Level.FACTOR,
    ast.USub: Level.FACTOR,
    ast.Invert: Level.FACTOR,
    ast.Pow: Level.POWER,
}
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def unparse(node: Any) -> str:
    """The text of a gast or ast node, or of a list of statements.

    Statements end with a newline, expressions don't; there is no other white space around the text.
    """
    if isinstance(node, list):
        return "".join(unparse(each) for each in node)
    if is_gast(node):
        node = to_ast(node)
    text = with_deep_stack(lambda: _Printer(node).text()).strip("\n")
    return (
        text + "\n" if text and isinstance(node, (ast.stmt, ast.mod)) and not isinstance(node, ast.Expression) else text
    )


def _level_of(node: Any) -> Level:
    if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.BoolOp)):
        return _OPERATOR_LEVELS[type(node.op)]
    if isinstance(node, ast.Tuple) and not node.elts:
        return Level.ATOM
    if isinstance(node, ast.Constant) and constant_text(node.value).startswith("-"):
        return Level.FACTOR
    return _LEVELS.get(type(node), Level.ATOM)


class _Printer(astunparse.Unparser):
    """``expression(node, level)`` prints a node where expressions binding looser than ``level`` need parentheses;
    ``dispatch(node)``, which the inherited methods call, is that with the level that most places of the grammar want.
    """

    def __init__(self, tree: Any, quotes: tuple[str, ...] | None = None) -> None:
        self.quotes = quotes  # inside an f-string, the quotes that strings may use
        super().__init__(tree, file=io.StringIO())

    def text(self) -> str:
        return self.f.getvalue()

    def dispatch(self, tree: Any) -> None:
        if isinstance(tree, list):
            for each in tree:
                self.dispatch(each)
        elif isinstance(tree, ast.expr):
            self.expression(tree, Level.TEST)
        else:
            getattr(self, "_" + type(tree).__name__)(tree)

    def expression(self, node: Any, level: Level) -> None:
        method = getattr(self, "_" + type(node).__name__)
        if _level_of(node) < level:
            self.write("(")
            method(node)
            self.write(")")
        else:
            method(node)

    def commas(self, items: Iterable[Any], write: Callable[[Any], None] | None = None) -> None:
        for index, item in enumerate(items):
            if index:
                self.write(", ")
            (write or self.dispatch)(item)

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

    def _arguments(self, node: Any) -> None:
        positional = [*node.posonlyargs, *node.args]
        defaults = [None] * (len(positional) - len(node.defaults)) + node.defaults
        items: list[Any] = list(zip(positional, defaults))
        if node.posonlyargs:
            items.insert(len(node.posonlyargs), "/")
        if node.vararg is not None:
            items.append(("*", node.vararg))
        elif node.kwonlyargs:
            items.append("*")
        items += zip(node.kwonlyargs, node.kw_defaults)
        if node.kwarg is not None:
            items.append(("**", node.kwarg))
        self.commas(items, self.parameter)

    def parameter(self, item: Any) -> None:
        if isinstance(item, str):
            self.write(item)
        elif isinstance(item[0], str):
            self.write(item[0])
            self.dispatch(item[1])
        else:
            arg, default = item
            self.dispatch(arg)
            if default is not None:
                self.write("=" if arg.annotation is None else " = ")
                self.dispatch(default)

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

    def items(self, node: Any) -> None:
        """An expression, or several separated by commas."""
        self.expression(node, Level.TUPLE if isinstance(node, ast.Tuple) else Level.TEST)

    def _Return(self, node: Any) -> None:
        self.fill("return")
        if node.value is not None:
            self.write(" ")
            self.items(node.value)

    def _ImportFrom(self, node: Any) -> None:
        self.fill("from " + "." * (node.level or 0) + (node.module or "") + " import ")
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

    # Expressions

    def _NamedExpr(self, node: Any) -> None:
        self.dispatch(node.target)
        self.write(" := ")
        self.dispatch(node.value)

    def _Yield(self, node: Any) -> None:
        self.write("yield")
        if node.value is not None:
            self.write(" ")
            self.items(node.value)

    def _YieldFrom(self, node: Any) -> None:
        self.write("yield from ")
        self.dispatch(node.value)

    def _Await(self, node: Any) -> None:
        self.write("await ")
        self.expression(node.value, Level.ATOM)

    def _IfExp(self, node: Any) -> None:
        self.expression(node.body, Level.OR)
        self.write(" if ")
        self.expression(node.test, Level.OR)
        self.write(" else ")
        self.dispatch(node.orelse)

    def _Lambda(self, node: Any) -> None:
        args = node.args
        some = args.posonlyargs or args.args or args.vararg or args.kwonlyargs or args.kwarg
        self.write("lambda " if some else "lambda")
        self.dispatch(args)
        self.write(": ")
        self.dispatch(node.body)

    def _BoolOp(self, node: Any) -> None:
        level = _level_of(node).tighter()
        for index, value in enumerate(node.values):
            if index:
                self.write(f" {self.boolops[type(node.op)]} ")
            self.expression(value, level)

    def _UnaryOp(self, node: Any) -> None:
        self.write(self.unop[type(node.op).__name__] + (" " if isinstance(node.op, ast.Not) else ""))
        self.expression(node.operand, _level_of(node))

    def _BinOp(self, node: Any) -> None:
        level = _level_of(node)
        # Powers bind to the right, and less tightly than a sign on their right.
        power = isinstance(node.op, ast.Pow)
        self.expression(node.left, Level.AWAIT if power else level)
        self.write(f" {self.binop[type(node.op).__name__]} ")
        self.expression(node.right, Level.FACTOR if power else level.tighter())

    def _Compare(self, node: Any) -> None:
        self.expression(node.left, Level.BIT_OR)
        for operator, comparator in zip(node.ops, node.comparators):
            self.write(f" {self.cmpops[type(operator).__name__]} ")
            self.expression(comparator, Level.BIT_OR)

    def _Attribute(self, node: Any) -> None:
        # `1.real` would be read as a number.
        number = isinstance(node.value, ast.Constant) and type(node.value.value) is int and node.value.value >= 0
        self.write("(" if number else "")
        self.expression(node.value, Level.ATOM)
        self.write((")" if number else "") + "." + node.attr)

    def _Subscript(self, node: Any) -> None:
        self.expression(node.value, Level.ATOM)
        self.write("[")
        # Python 3.10 has no unparenthesised starred items here; slices, on the other hand, stand only outside.
        items = getattr(node.slice, "elts", [])
        starred = any(isinstance(item, ast.Starred) for item in items)
        sliced = any(isinstance(item, ast.Slice) for item in items)
        if isinstance(node.slice, ast.Tuple) and (sliced or not starred):
            self.expression(node.slice, Level.TUPLE)
        else:
            self.dispatch(node.slice)
        self.write("]")

    def _Call(self, node: Any) -> None:
        self.expression(node.func, Level.ATOM)
        if len(node.args) == 1 and not node.keywords and isinstance(node.args[0], ast.GeneratorExp):
            self.dispatch(node.args[0])  # brings its own parentheses
            return
        self.write("(")
        self.commas([*node.args, *node.keywords], self.argument)
        self.write(")")

    def argument(self, node: Any) -> None:
        if isinstance(node, ast.Starred):
            self.write("*")
            self.dispatch(node.value)
        else:
            self.dispatch(node)

    def _Starred(self, node: Any) -> None:
        self.write("*")
        self.expression(node.value, Level.BIT_OR)

    def _Tuple(self, node: Any) -> None:
        if not node.elts:
            self.write("()")
            return
        self.commas(node.elts)
        if len(node.elts) == 1:
            self.write(",")

    def _Set(self, node: Any) -> None:
        self.write("{")
        self.commas(node.elts)
        self.write("}" if node.elts else "*()}")

    def _Dict(self, node: Any) -> None:
        self.write("{")
        self.commas(zip(node.keys, node.values), self.dict_item)
        self.write("}")

    def dict_item(self, item: Any) -> None:
        key, value = item
        if key is None:
            self.write("**")
            self.expression(value, Level.BIT_OR)
        else:
            self.dispatch(key)
            self.write(": ")
            self.dispatch(value)

    def _comprehension(self, node: Any) -> None:
        self.write(" async for " if node.is_async else " for ")
        self.items(node.target)
        self.write(" in ")
        self.expression(node.iter, Level.OR)
        for test in node.ifs:
            self.write(" if ")
            self.expression(test, Level.OR)

    # Literals

    def _Constant(self, node: Any) -> None:
        if isinstance(node.value, str):
            self.write(("u" if node.kind == "u" else "") + string_text(node.value, self.quotes))
        else:
            self.write(constant_text(node.value, self.quotes))

    def _JoinedStr(self, node: Any) -> None:
        self.write(fstring_text(node, self.quotes, _field_text))


def _field_text(node: Any, quotes: tuple[str, ...] | None) -> str:
    """An expression as it stands in a replacement field of an f-string."""
    printer = _Printer(ast.Tuple([], ast.Load()), quotes)
    printer.f = io.StringIO()
    # The colon of a lambda would begin the format.
    has_lambda = any(isinstance(each, ast.Lambda) for each in ast.walk(node))
    printer.expression(node, Level.OR if has_lambda else Level.TEST)
    return printer.text()
