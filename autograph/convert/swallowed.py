"""A ``return``, ``break`` or ``continue`` that an error on the way out undoes, when a ``with`` further out swallows it.

    with suppress(KeyError):          with suppress(KeyError):
        with box:                         try:
            if x > 0:                         with box:
                return x          →               if x > 0:
                                                      return x
                                          except:
                                              raise

If leaving ``box`` raises, the function goes on after the outer ``with``. The next passes put a flag in the place of the
jump and take it back wherever such an error is caught; the clause gives them the place.
"""

from __future__ import annotations

from typing import Any

import gast

from autograph.convert.context import Context
from autograph.convert.tree import CONVERTIBLE, Block, blocks, functions, map_blocks, statements
from autograph.syntax import templates

CLEANING = (gast.With, gast.AsyncWith, gast.Try, gast.TryStar)
_JUMPS = (gast.Return, gast.Break, gast.Continue)


def lower(tree: Any, context: Context) -> Any:
    """Adds such clauses to the ``with`` statements of a tree."""
    for function in functions(tree):
        if any(isinstance(stmt, gast.With) for stmt in statements(function.body)):
            kept = context.pinned(function)
            function.body = _block(function.body, kept, False)
    return tree


def jumps_may_be_undone(block: Block) -> bool:
    """Whether there is a jump in a block that leaves a ``with`` or a ``try`` in it, which may raise then."""
    inner = [stmt for stmt in statements(block) if isinstance(stmt, CLEANING)]
    return any(isinstance(each, _JUMPS) for stmt in inner for part in blocks(stmt) for each in statements(part))


def _block(block: Block, kept: frozenset[Any], converted: bool) -> Block:
    made: Block = []
    for stmt in block:
        here = converted or (isinstance(stmt, CONVERTIBLE) and stmt not in kept)
        if isinstance(stmt, gast.With) and stmt not in kept:
            if len(stmt.items) > 1 and _has_jump(stmt.body):
                rest = gast.copy_location(gast.With(stmt.items[1:], stmt.body, None), stmt)
                stmt.items, stmt.body = stmt.items[:1], [rest]
            if jumps_may_be_undone(stmt.body) and (here or _converts(stmt, kept)):
                stmt.body = templates.replace(
                    """
                    try:
                        body
                    except:
                        raise
                    """,
                    at=stmt,
                    body=stmt.body,
                )
        map_blocks(stmt, lambda inner, here=here: _block(inner, kept, here))  # type: ignore[misc]
        made.append(stmt)
    return made


def _has_jump(block: Block) -> bool:
    return any(isinstance(each, _JUMPS) for each in statements(block))


def _converts(stmt: Any, kept: frozenset[Any]) -> bool:
    """Whether a jump in the statement stands in something that becomes a function."""
    inner = [each for each in statements(stmt.body) if isinstance(each, CONVERTIBLE) and each not in kept]
    return any(_has_jump(part) for each in inner for part in blocks(each))
