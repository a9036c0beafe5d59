"""``else`` clauses of loops become ordinary statements after the loop.

    for x in xs:                        did_break = False
        if x > 3:                       for x in xs:
            break                           if x > 3:
    else:                     →                 did_break = True
        found = False                           break
                                        if not did_break:
                                            found = False

A loop without ``break`` always runs its ``else`` clause, which then simply follows it.
"""

from __future__ import annotations

from typing import Any

import gast

from autograph.convert.context import Context
from autograph.convert.tree import LOOPS, Block, functions, map_blocks, own_jumps
from autograph.syntax import templates


def lower(tree: Any, context: Context) -> Any:
    """Removes the ``else`` clause of every loop that isn't pinned; a ``break`` knows the flag that was set for it."""
    for function in functions(tree):
        kept = context.pinned(function)

        def change(block: Block, function: Any = function, kept: frozenset[Any] = kept) -> Block:
            made: Block = []
            for stmt in block:
                map_blocks(stmt, change)
                if isinstance(stmt, LOOPS) and stmt.orelse and stmt not in kept:
                    made.extend(_without_else(stmt, function, context))
                else:
                    made.append(stmt)
            return made

        function.body = change(function.body)
    return tree


def _without_else(loop: Any, function: Any, context: Context) -> Block:
    after, loop.orelse = loop.orelse, []
    if not any(isinstance(jump, gast.Break) for jump in own_jumps(loop.body)):
        return [loop, *after]
    flag = context.new_name(function, "did_break")
    loop.body = _set_flag(loop.body, flag)
    return templates.replace(
        """
        flag = False
        loop
        if not flag:
            after
        """,
        at=loop,
        flag=flag,
        loop=loop,
        after=after,
    )


def _set_flag(block: Block, flag: str) -> Block:
    made: Block = []
    for stmt in block:
        if isinstance(stmt, gast.Break):
            made.extend(templates.replace("flag = True", at=stmt, flag=flag))
            stmt.flag = flag
        elif isinstance(stmt, LOOPS):
            stmt.orelse = _set_flag(stmt.orelse, flag)
        else:
            map_blocks(stmt, lambda inner: _set_flag(inner, flag))
        made.append(stmt)
    return made
