"""Jump threading: a loop that a flag ends is left where the flag is set.

`break` and `return` in the user's loops become flags. With a flag, each trip waits for the value that decides about the
next one; a branch is predicted.

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

from collections.abc import Iterable
from dataclasses import replace

from runtime.kernel_ir import ir
from runtime.kernel_ir.types import BOOL

_MOST = 24  # statements after the branch, which are duplicated


def threaded(function: ir.Function) -> ir.Function:
    """The function with such loops changed; the function itself if there are none."""
    if not any(_flags_of(item) for item in ir.walk(function.body) if isinstance(item, ir.While)):
        return function
    result = replace(function, body=ir.copied(function.body))
    is_changed = False
    for item in ir.walk(result.body):
        if isinstance(item, ir.While):
            is_changed |= any(_thread(item, flag) for flag in _flags_of(item))
    return result if is_changed else function


def _flags_of(loop: ir.While) -> list[str]:
    """The variables that end a loop when they are true: by its test, or where its body begins."""
    found = _flags(loop.test)
    for item in loop.body:
        if not isinstance(item, ir.If) or item.orelse or len(item.body) != 1 or not isinstance(item.body[0], ir.Break):
            break
        found += _flags(ir.negated(item.test))
    return found


def _flags(test: ir.Expr) -> list[str]:
    """The variables that have to be false for a test to hold."""
    if isinstance(test, ir.Logic) and test.op == "and":
        return [flag for operand in test.operands for flag in _flags(operand)]
    if isinstance(test, ir.Unary) and test.op == "not" and isinstance(test.operand, ir.Var):
        return [test.operand.name]
    return []


def _thread(loop: ir.While, flag: str) -> bool:
    """Changes a loop in place for one of its flags, if that is possible."""
    body = loop.body
    updates = [item for item in body if _target(item) == flag]
    if len(updates) != 1 or _assignments(body, flag) != 1:
        return False
    value = updates[0].value if isinstance(updates[0], ir.Assign) else None
    if not isinstance(value, ir.Var):
        return False
    new = value.name
    for position, item in enumerate(body[: body.index(updates[0])]):
        if not isinstance(item, ir.If) or (_assignments([item], new), _assignments(body, new)) != (2, 2):
            continue
        yes, no, test = item.body, item.orelse, item.test
        if not _sets(yes, new):
            yes, no, test = no, yes, ir.Unary("not", test, BOOL)
        rest = [each for each in body[position + 1 :] if not _counts_ticks(each)]
        if not _sets(yes, new) or not _keeps(no, new, flag) or len(rest) > _MOST:
            return False
        if not all(_target(each) for each in rest):
            return False
        body[position : position + 1] = [ir.If(test, [*yes, *ir.copied(rest), ir.Break()]), *no]
        return True
    return False


def _target(item: ir.Statement) -> str | None:
    """The target of an assignment to one variable."""
    return item.targets[0] if isinstance(item, ir.Assign) and len(item.targets) == 1 else None


def _assignments(block: Iterable[ir.Statement], name: str) -> int:
    """The number of statements in a block, including nested ones, that assign a variable."""
    return sum(ir.targets(item).count(name) for item in ir.walk(block))


def _sets(block: ir.Block, name: str) -> bool:
    """Whether a block sets a variable to true."""
    return _values(block, name) == [ir.TRUE]


def _keeps(block: ir.Block, name: str, flag: str) -> bool:
    """Whether a block gives a variable the flag's old value."""
    return _values(block, name) == [ir.Var(flag)]


def _values(block: ir.Block, name: str) -> list[ir.Expr]:
    return [item.value for item in block if isinstance(item, ir.Assign) and item.targets == (name,)]


def _counts_ticks(item: ir.Statement) -> bool:
    """Whether a statement belongs to the poll for Ctrl-C, which a loop that ends doesn't need."""
    return _target(item) == ir.TICKS or (isinstance(item, ir.If) and ir.TICKS in ir.variables(item.test))
