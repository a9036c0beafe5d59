"""Loops that a flag ends leave at once. Flags, in which `break` and `return` of the user's loops end up, make each trip
wait for what decides about the next one, and a processor guesses at branches but not at choices.

    while i < n and not done:               while i < n and not done:
        if x[i] == y:                           if x[i] == y:
            r = True                                r = True
            r_1 = i                                 r_1 = i
        else:                                       done = r
            r = done                →               place = r_1
            r_1 = place                             i = i + 1
        done = r                                    break
        place = r_1                             r = done
        i = i + 1                               r_1 = place
                                                done = r
                                                place = r_1
                                                i = i + 1
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence

_MOST = 24  # statements after the choice, which are there twice then


def shorten(function: ast.FunctionDef) -> None:
    """Changes the loops of a kernel in place."""
    for node in ast.walk(function):
        if isinstance(node, ast.While):
            for flag in _flags(node.test):
                if _shortened(node, flag):
                    break


def _flags(test: ast.expr) -> list[str]:
    """The names that end a loop when they are true."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return [flag for value in test.values for flag in _flags(value)]
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) and isinstance(test.operand, ast.Name):
        return [test.operand.id]
    return []


def _shortened(loop: ast.While, flag: str) -> bool:
    body = loop.body
    last = [s for s in body if _target(s) == flag]
    if len(last) != 1 or _stores([loop], flag) != 1 or not isinstance(last[0].value, ast.Name):  # type: ignore[attr-defined]
        return False
    new = last[0].value.id  # type: ignore[attr-defined]
    for position, statement in enumerate(body[: body.index(last[0])]):
        if not isinstance(statement, ast.If) or (_stores([statement], new), _stores([loop], new)) != (2, 2):
            continue
        yes, no, test = statement.body, statement.orelse, statement.test
        if not _is_set(yes, new):
            yes, no, test = no, yes, ast.UnaryOp(ast.Not(), test)
        rest = [s for s in body[position + 1 :] if not _is_about_ticks(s)]
        if not _is_set(yes, new) or not _is_kept(no, new, flag) or len(rest) > _MOST:
            return False
        if not all(_target(s) for s in rest):
            return False
        body[position : position + 1] = [ast.If(test, [*yes, *copy.deepcopy(rest), ast.Break()], []), *no]
        return True
    return False


def _target(statement: ast.stmt) -> str | None:
    """The variable that a plain assignment is to."""
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id
    return None


def _stores(nodes: Sequence[ast.AST], name: str) -> int:
    parts = (part for node in nodes for part in ast.walk(node))
    return sum(isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Store) for part in parts)


def _is_set(body: Sequence[ast.stmt], name: str) -> bool:
    """Whether statements make a variable true."""
    values = [s.value for s in body if _target(s) == name]  # type: ignore[attr-defined]
    return len(values) == 1 and isinstance(values[0], ast.Constant) and values[0].value is True


def _is_kept(body: Sequence[ast.stmt], name: str, flag: str) -> bool:
    """Whether they make it what the flag was."""
    values = [s.value for s in body if _target(s) == name]  # type: ignore[attr-defined]
    return len(values) == 1 and isinstance(values[0], ast.Name) and values[0].id == flag


def _is_about_ticks(statement: ast.stmt) -> bool:
    """Whether a statement counts, or asks, for Ctrl-C: a loop that ends needn't."""
    return _target(statement) == "ticks" or (isinstance(statement, ast.If) and "ticks" in ast.unparse(statement.test))
