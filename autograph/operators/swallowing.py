"""Context managers that would swallow an error: with a staged ``raise``, they have been left long before it comes.

    with suppress(ValueError):
        if x > 0:                   # a tensor
            raise ValueError

Known are `contextlib.suppress`, classes whose ``__exit__`` may return something true, and generator functions with
``@contextmanager`` that catch the error round their ``yield``. They are looked up by the ``with`` statement's text.
"""

from __future__ import annotations

import ast
import contextlib
import linecache
from collections.abc import Iterator, Sequence
from functools import lru_cache
from types import CodeType, FrameType, FunctionType
from typing import Any

from runtime.python_text import python_ast

_EXPRESSIONS = frozenset({"<lambda>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})


def swallower(frame: FrameType, error: BaseException, but_suppress: bool = False) -> str | None:
    """The text of a context manager around the line where a frame stands that would swallow an error, or None.

    but_suppress: `contextlib.suppress` doesn't count.
    """
    filename, line = frame.f_code.co_filename, frame.f_lineno
    for first, last, managers in _withs(filename):
        if first <= line <= last:
            inner = [each for each in tries(filename) if first <= each[0] <= line <= each[1] <= last]
            if any(catches(handler, frame.f_globals, frame.f_locals, error) for each in inner for handler in each[2]):
                continue
            for text, callee, arguments in managers:
                if _swallows(callee, arguments, frame, error, but_suppress):
                    return text
    return None


def hides(frame: FrameType, error: BaseException) -> bool:
    """Whether a ``try`` or ``with`` around the line where a frame stands keeps an error from those who called it."""
    if frame.f_code.co_name in _EXPRESSIONS:  # lines around it are those of the function that it stands in
        return False
    line = frame.f_lineno
    return swallower(frame, error) is not None or any(
        first <= line <= last and any(catches(each, frame.f_globals, frame.f_locals, error) for each in handlers)
        for first, last, handlers in tries(frame.f_code.co_filename)
    )


def catches(types: str, namespace: dict[str, Any], variables: Any, error: BaseException) -> bool:
    """Whether an ``except`` clause for ``types``, a text that is empty for a bare one, catches an error."""
    if not types:
        return True
    try:
        return isinstance(error, eval(types, namespace, variables))
    except Exception:
        # A name that isn't bound yet, or no exception class: then Python would fail too, but only when it gets there.
        return True


def _swallows(callee: str, arguments: list[str], frame: FrameType, error: BaseException, but_suppress: bool) -> bool:
    try:
        manager = eval(callee, frame.f_globals, frame.f_locals)
    except Exception:
        return False  # made in the `with` statement itself, or gone by now
    if manager is contextlib.suppress:
        return not but_suppress and any(catches(each, frame.f_globals, frame.f_locals, error) for each in arguments)
    leave = getattr(manager if isinstance(manager, type) else type(manager), "__exit__", None)
    if type(leave) is FunctionType:
        return _may_return_true(leave.__code__) and not leave.__module__.startswith(
            ("contextlib", "autograph", "runtime")
        )
    generator = getattr(manager, "__wrapped__", None)
    if type(generator) is not FunctionType:
        return False
    code = generator.__code__
    lines = [line for _, _, line in code.co_lines() if line is not None]
    around = [each for each in tries(code.co_filename) if min(lines) <= each[0] and each[1] <= max(lines)]
    return any(catches(handler, generator.__globals__, {}, error) for each in around for handler in each[2])


def _may_return_true(code: CodeType) -> bool:
    """Whether a function has a `return` of something true, or has no text that would tell."""
    for node in ast.walk(tree_of(code.co_filename)):
        if not isinstance(node, _FUNCTIONS) or node.name != code.co_name:
            continue
        if code.co_firstlineno in (node.lineno, *[each.lineno for each in node.decorator_list]):
            return any(_is_true(each.value) for each in _returns(node.body))
    return True


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _returns(block: Sequence[ast.AST]) -> Iterator[ast.Return]:
    """The `return` statements in a block that are its function's own."""
    for node in block:
        if isinstance(node, ast.Return):
            yield node
        elif not isinstance(node, (*_FUNCTIONS, ast.ClassDef, ast.expr)):
            yield from _returns(list(ast.iter_child_nodes(node)))


def _is_true(value: ast.expr | None) -> bool:
    return value is not None and not (isinstance(value, ast.Constant) and not value.value)


@lru_cache(maxsize=256)
def tries(filename: str) -> list[tuple[int, int, list[str]]]:
    """The bodies of the ``try`` statements of a file: first and last line, and what the clauses catch, as text.

    A ``finally`` clause with a jump counts as a bare ``except``: an error that comes there goes no further.
    """
    found = []
    for node in ast.walk(tree_of(filename)):
        if not isinstance(node, ast.Try):
            continue
        if node.handlers:
            types = [ast.unparse(each.type) if each.type is not None else "" for each in node.handlers]
            found.append((*_lines(node.body), types))
        if _jumps(node.finalbody):
            before = [*node.body, *[stmt for each in node.handlers for stmt in each.body], *node.orelse]
            found.append((*_lines(before), [""]))
    return found


def _jumps(block: list[ast.stmt], in_loop: bool = False) -> bool:
    """Whether a `finally` block contains a jump that leaves it: a `return`, or a `break` or `continue` of a loop around
    it."""
    for stmt in block:
        if isinstance(stmt, ast.Return) or (isinstance(stmt, (ast.Break, ast.Continue)) and not in_loop):
            return True
        if isinstance(stmt, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        is_loop = isinstance(stmt, (ast.For, ast.While, ast.AsyncFor))
        if _jumps(getattr(stmt, "body", []), in_loop or is_loop):
            return True
        others = [getattr(stmt, field, []) for field in ("orelse", "finalbody")]
        others += [each.body for each in (*getattr(stmt, "handlers", ()), *getattr(stmt, "cases", ()))]
        if any(_jumps(each, in_loop) for each in others):
            return True
    return False


@lru_cache(maxsize=64)
def _withs(filename: str) -> list[tuple[int, int, list[tuple[str, str, list[str]]]]]:
    """The bodies of the ``with`` statements of a file, with each manager's text, callee and arguments."""
    found = []
    for node in ast.walk(tree_of(filename)):
        if isinstance(node, ast.With):
            made = [each.context_expr for each in node.items]
            callees = [each.func if isinstance(each, ast.Call) else each for each in made]
            arguments = [
                [ast.unparse(part) for part in each.args] if isinstance(each, ast.Call) else [] for each in made
            ]
            named = [isinstance(each, (ast.Name, ast.Attribute)) for each in callees]
            managers = [
                (ast.unparse(whole), ast.unparse(callee), given)
                for whole, callee, given, is_named in zip(made, callees, arguments, named)
                if is_named
            ]
            found.append((*_lines(node.body), managers))
    return found


def _lines(body: list[ast.stmt]) -> tuple[int, int]:
    return body[0].lineno, body[-1].end_lineno or 0


@lru_cache(maxsize=16)
def tree_of(filename: str) -> ast.AST:
    """The syntax tree of a file; empty if it isn't there or isn't Python."""
    try:
        return python_ast("".join(linecache.getlines(filename)))
    except (SyntaxError, ValueError):
        return ast.Module([], [])
