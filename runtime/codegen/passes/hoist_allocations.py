"""Allocations that leave a loop: its trips write into the same memory again and again.

    h = x                                       a = np.empty(n, np.float32)
    while i < m:                                h = lib.copied(x, x.size)
        a = np.empty(n, np.float32)             while i < m:
        for j in range(n):                          for j in range(n):
            a[j] = h[j] * 2.0           →               a[j] = h[j] * 2.0
        h = a                                       h, a = a, h
        i = i + 1                                   i = i + 1

A buffer whose size the loop doesn't change and that no other name keeps is allocated once, before the loop. One that
becomes a carry takes turns with the carry's old memory, which must then be the loop's own: its first value is copied.
So do three or more, where a carry's old value becomes another carry (`before, x, a = x, a, before`).
Sizes and offsets that are the same in each trip leave the loop too.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from runtime.codegen.kernel.names import words
from runtime.graph.passes import options
from runtime.kernel_ir.parsing import parse

_ALLOCATION = re.compile(r"(\w+) = np\.empty\((.*)\)")
_ASSIGNMENT = re.compile(r"(\w+(?:, \w+)*) (?:[-+*/|&]|//)?= ")
_ALIAS = re.compile(r"(\w+) = (\w+)")
_ARITHMETIC = frozenset(
    [
        "np.int32", "np.int64", "np.float32", "np.float64", "max", "min", "lib.clamped", "lib.slice_start",
        "lib.slice_count",
    ]
)  # fmt: skip
_PURE = (
    ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Compare, ast.IfExp, ast.Call, ast.operator,
    ast.unaryop, ast.cmpop, ast.expr_context,
)  # fmt: skip
# Functions of the library that read or write a buffer and don't keep it.
_TRANSIENT = frozenset({"matmul", "solved", "in_threads", "all_true", "add_rows", "nonfinite"})


def hoist_allocations(low: Any, block: list, owned: dict[str, bool], carried: set[str]) -> list[str]:
    """Takes allocations out of the body of a loop, in place; gives the lines to print before the loop.

    owned: the buffer variables of the carries whose shape the loop keeps -> whether they hold memory of the kernel's
    own from the start. carried: all variables that have a value when the loop begins.
    """
    if not options.get("memory_optimization"):
        return []
    # What a variable holds after an error has another value before the loop, and keeps it when there are no trips.
    carried = carried | {name for kept in low.kept.values() for name in (kept.flag, kept.name, *kept.dims)}
    mentions: dict[str, list[str]] = {}  # variable -> the lines that it stands in
    targets: Counter[str] = Counter()
    for text in _texts(block):
        targets.update(_targets(text))
        for name in words(text):
            mentions.setdefault(name, []).append(text)
    assigned = set(targets)
    moved: list[str] = []
    for item in list(block):
        if not isinstance(item, str):
            continue
        if _is_invariant(item, assigned):
            (target,) = _targets(item)
            if targets[target] == 1 and target not in carried:
                block.remove(item)
                moved.append(item)
                assigned.discard(target)
            continue
        found = _ALLOCATION.fullmatch(item)
        if found is None or found[1] not in low.fresh or words(found[2]) & assigned:
            continue
        name = found[1]
        if targets[name] != 1:
            continue
        texts = mentions[name]
        aliases = [text for text in texts if (m := _ALIAS.fullmatch(text)) and m[2] == name]
        if not all(_is_transient(name, text) for text in texts if text != item and text not in aliases):
            continue
        if not aliases:
            block.remove(item)
            moved.append(item)
            continue
        chain = _handed_on(name, aliases, owned, block, mentions, targets)
        if not chain:
            continue
        block.remove(item)
        turn = [*chain[::-1], name]
        for carry, source in pairwise(turn[:-1]):
            block.remove(f"{carry} = {source}")
        block[block.index(f"{chain[0]} = {name}")] = f"{', '.join(turn)} = {', '.join([*turn[1:], turn[0]])}"
        moved.append(item)
        moved += [f"{carry} = lib.copied({carry}, {carry}.size)" for carry in chain if not owned[carry]]
    return moved


def _is_invariant(text: str, assigned: set[str]) -> bool:
    """Whether the line computes a number from what the loop doesn't change. No such line can fail."""
    name, sign, right = text.partition(" = ")
    if not sign or not name.isidentifier() or words(right) & assigned:
        return False
    statement = parse(right).body[0]
    assert isinstance(statement, ast.Expr)
    tree = statement.value
    calls = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    if not all(ast.unparse(call) in _ARITHMETIC for call in calls):
        return False
    named = {inner for call in calls for inner in ast.walk(call)}
    # A name alone may be a buffer, which another line writes to.
    return not isinstance(tree, ast.Name) and all(isinstance(node, _PURE) or node in named for node in ast.walk(tree))


def _handed_on(
    name: str,
    aliases: list[str],
    owned: dict[str, bool],
    block: list,
    mentions: dict[str, list[str]],
    targets: Counter[str],
) -> list[str]:
    """The carry that the buffer `name` becomes, the one that takes over that carry's memory, and so on: the memory of
    the last is free when the trip is over. None where something else keeps any of it."""
    chain: list[str] = []
    before = last = name
    while aliases:
        carry = aliases[0].partition(" = ")[0]
        own = f"{carry} = {before}"
        if len(aliases) > 1 or own not in block or carry not in owned or carry in (name, *chain):
            return []
        if chain and block.index(own) > block.index(last):
            return []
        if targets[carry] != 1:
            return []
        chain.append(carry)
        last = own
        kept = [text for text in mentions[carry] if text != own and not _is_transient(carry, text)]
        aliases = [text for text in kept if (found := _ALIAS.fullmatch(text)) and found[2] == carry]
        if len(kept) != len(aliases):
            return []
        before = carry
    return chain


def _texts(block: list) -> Iterator[str]:
    for item in block:
        if isinstance(item, str):
            yield item
        elif isinstance(item, list):
            yield from _texts(item)


def _targets(text: str) -> list[str]:
    """The variables that a line assigns or changes."""
    found = _ASSIGNMENT.match(text)
    if found is not None:
        return found[1].split(", ")
    return [text.split()[1]] if text.startswith("for ") else []


def _is_transient(name: str, text: str) -> bool:
    """Whether the line only reads or writes elements of the buffer `name`."""
    if name not in words(text):
        return True
    tree = parse(f"{text}\n    pass" if text.endswith(":") else text)
    fine: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript):
            fine.add(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _TRANSIENT:
            fine.update(node.args)
            fine.update(inner for each in node.args if isinstance(each, ast.Tuple) for inner in each.elts)
    return all(node in fine for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == name)
