"""Expressions to text, with no parenthesis that the precedence of operators doesn't ask for.

Half of ``unparse``, which adds the statements.

Example::

    >>> ExpressionPrinter(ast.parse("((a*b) + (c)) ** -2", mode="eval").body).text()
    '(a * b + c) ** -2'
"""

from __future__ import annotations

import ast
import io
from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Any

import astunparse

from autograph.syntax.literals import constant_text, fstring_text, string_text


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


def _level_of(node: Any) -> Level:
    if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.BoolOp)):
        return _OPERATOR_LEVELS[type(node.op)]
    if isinstance(node, ast.Tuple) and not node.elts:
        return Level.ATOM
    if isinstance(node, ast.Constant) and constant_text(node.value).startswith("-"):
        return Level.FACTOR
    return _LEVELS.get(type(node), Level.ATOM)


class ExpressionPrinter(astunparse.Unparser):
    """Prints one expression; methods that are named after a node class print such a node.

    ``expression(node, level)`` prints a node where expressions binding looser than ``level`` need parentheses;
    ``dispatch(node)``, which the inherited methods call, is that with the level that most places of the grammar want.
    """

    def __init__(self, tree: Any, quotes: tuple[str, ...] | None = None) -> None:
        self.quotes = quotes  # inside an f-string, the quotes that strings may use
        super().__init__(tree, file=io.StringIO())

    def text(self) -> str:
        """What has been printed so far."""
        return str(self.f.getvalue()).strip("\n")

    def dispatch(self, tree: Any) -> None:
        if isinstance(tree, list):
            for each in tree:
                self.dispatch(each)
        elif isinstance(tree, ast.expr):
            self.expression(tree, Level.TEST)
        else:
            getattr(self, "_" + type(tree).__name__)(tree)

    def expression(self, node: Any, level: Level) -> None:
        """Print an expression, in parentheses if it binds looser than ``level``."""
        method = getattr(self, "_" + type(node).__name__)
        if _level_of(node) < level:
            self.write("(")
            method(node)
            self.write(")")
        else:
            method(node)

    def commas(self, items: Iterable[Any], write: Callable[[Any], None] | None = None) -> None:
        """Print items with commas between, each by ``write``."""
        for index, item in enumerate(items):
            if index:
                self.write(", ")
            (write or self.dispatch)(item)

    def items(self, node: Any) -> None:
        """An expression, or several separated by commas."""
        self.expression(node, Level.TUPLE if isinstance(node, ast.Tuple) else Level.TEST)

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

    def _DictComp(self, node: Any) -> None:
        self.write("{")
        # Python 3.15 on: without a value, the key is a dictionary of which all is taken.
        self.dict_item((node.key, node.value) if node.value is not None else (None, node.key))
        for generator in node.generators:
            self.dispatch(generator)
        self.write("}")

    # Literals

    def _Constant(self, node: Any) -> None:
        if isinstance(node.value, str):
            self.write(("u" if node.kind == "u" else "") + string_text(node.value, self.quotes))
        else:
            self.write(constant_text(node.value, self.quotes))

    def _JoinedStr(self, node: Any) -> None:
        self.write(fstring_text(node, self.quotes, _field_text))

    _TemplateStr = _JoinedStr  # Python 3.14 on


def _field_text(node: Any, quotes: tuple[str, ...] | None) -> str:
    """An expression as it stands in a replacement field of an f-string."""
    text = ExpressionPrinter(node, quotes).text()
    # The colon of a lambda would begin the format.
    exposed = _level_of(node) < Level.OR and any(isinstance(each, ast.Lambda) for each in ast.walk(node))
    return f"({text})" if exposed else text
