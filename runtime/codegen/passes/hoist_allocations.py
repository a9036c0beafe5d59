"""Hoisting: allocations, sizes and offsets that are the same in each trip move out of the loop.

    h = x                                       a = np.empty(n, np.float32)
    while i < m:                                h = lib.copied(x, x.size)
        a = np.empty(n, np.float32)             while i < m:
        for j in range(n):                          for j in range(n):
            a[j] = h[j] * 2.0           →               a[j] = h[j] * 2.0
        h = a                                       h, a = a, h
        i = i + 1                                   i = i + 1

A buffer whose size is loop-invariant and that no other variable keeps is allocated once, before the loop. If the buffer
becomes a loop-carried value, the two exchange their memory at the end of each trip. The carry's memory must then belong
to the loop, so its first value is copied. Three or more buffers rotate if one carry becomes another
(`before, x, a = x, a, before`).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from runtime.codegen.passes.kernel import Kernel, loops_inside_out
from runtime.graph.passes import options
from runtime.kernel_ir import ir
from runtime.kernel_ir.analysis.accesses import accesses
from runtime.kernel_ir.analysis.aliases import copied_from
from runtime.kernel_ir.analysis.uses import assignment_counts, mentions
from runtime.kernel_ir.functions import row_of
from runtime.kernel_ir.types import FLOAT32, FLOAT64, INT32, INT64

_CONVERSIONS = (INT32, INT64, FLOAT32, FLOAT64)
_PURE = (ir.Var, ir.Const, ir.Binary, ir.Unary, ir.Compare, ir.Select, ir.Convert, ir.Call)


def run(kernel: Kernel) -> None:
    """Hoists allocations and invariants out of the loops of the program, inner loops first."""
    if not options.get("memory_optimization"):
        return
    for function in kernel.functions:
        for block, item in loops_inside_out(function.body):
            position = block.index(item)
            block[position:position] = _hoisted(kernel, item)


def _hoisted(kernel: Kernel, loop: ir.While) -> ir.Block:
    """Removes allocations and invariants from the body of a loop, in place; returns the statements to put before it."""
    assert loop.loop is not None
    block, owned = loop.body, loop.loop.carried
    # A variable whose value an error returns has an earlier value before the loop, and keeps it if there are no trips.
    given = loop.loop.given | kernel.kept
    body = _Body(loop)
    assigned = set(body.times)
    moved: ir.Block = []
    for item in list(block):
        if isinstance(item, ir.Assign) and _is_invariant(item, assigned):
            (target,) = item.targets
            if body.times[target] == 1 and target not in given:
                block.remove(item)
                moved.append(item)
                assigned.discard(target)
            continue
        if not isinstance(item, ir.Alloc) or item.name not in kernel.own or ir.variables(item.size) & assigned:
            continue
        name = item.name
        if body.times[name] != 1:
            continue
        users = [user for user in body.mentions[name] if user is not item]
        aliases = [user for user in users if copied_from(user) == name]
        if not all(_is_transient(name, user) for user in users if user not in aliases):
            continue
        chain: list[str] = []
        if aliases:
            chain = _alias_chain(name, aliases, owned, body)
            if not chain:
                continue
            _rotate_memory(body, [replace(item, name=each).variable for each in (*chain[::-1], name)])
        block.remove(item)
        moved.append(item)
        moved += [
            ir.assign(carry, ir.call("lib.copied", carry, ir.Size(carry)))
            for carry in (replace(item, name=each).variable for each in chain)
            if not owned[carry.name]
        ]
    return moved


class _Body:
    """Facts about the statements in a loop's body, including nested ones, and about its test.

    mentions  variable -> the statements that read or assign it
    times     how often each variable is assigned
    """

    def __init__(self, loop: ir.While) -> None:
        self.block = loop.body
        items = list(ir.walk([loop]))
        self.mentions, self.times = mentions(items), assignment_counts(items)

    def position(self, target: str, source: str) -> int | None:
        """The position of `target = source` in the body, not in nested blocks."""
        for position, item in enumerate(self.block):
            if copied_from(item) == source and ir.targets(item) == (target,):
                return position
        return None


def _is_invariant(item: ir.Assign, assigned: set[str]) -> bool:
    """Whether the statement computes a number from loop invariants. No such statement can fail."""
    if len(item.targets) != 1 or ir.variables(item.value) & assigned:
        return False
    # A variable may be a buffer, to which another statement writes.
    return not isinstance(item.value, ir.Var) and all(_is_pure(each) for each in ir.subexpressions(item.value))


def _is_pure(item: ir.Expr) -> bool:
    if isinstance(item, ir.Call):
        row = row_of(item.function)
        return row is not None and row.is_arithmetic
    if isinstance(item, ir.Convert):
        return item.target in _CONVERSIONS
    return isinstance(item, _PURE)


def _rotate_memory(body: _Body, turn: list[ir.Var]) -> None:
    """Replaces the assignments between several buffers by one that rotates their memory at the end of a trip.

    turn: the carried variables, in the order in which they pass their memory on; the new buffer comes last.
    """
    block = body.block
    for carry, source in pairwise(turn[:-1]):
        position = body.position(carry.name, source.name)
        assert position is not None
        del block[position]
    position = body.position(turn[-2].name, turn[-1].name)
    assert position is not None
    block[position] = ir.Assign(tuple(each.name for each in turn), ir.Tuple((*turn[1:], turn[0])))


def _alias_chain(name: str, aliases: list[ir.Statement], owned: dict[str, bool], body: _Body) -> list[str]:
    """The carried variable that the buffer `name` becomes, the carried variable that takes that one's old memory, and
    so on; the old memory of the last is free at the end of a trip. Empty if anything else keeps some of this memory."""
    chain: list[str] = []
    before, last = name, -1
    while aliases:
        (carry,) = ir.targets(aliases[0])
        position = body.position(carry, before)
        if len(aliases) > 1 or position is None or carry not in owned or carry in (name, *chain):
            return []
        if chain and position > last:
            return []
        if body.times[carry] != 1:
            return []
        chain.append(carry)
        last, own = position, body.block[position]
        kept = [user for user in body.mentions[carry] if user is not own and not _is_transient(carry, user)]
        aliases = [user for user in kept if copied_from(user) == carry]
        if len(kept) != len(aliases):
            return []
        before = carry
    return chain


def _is_transient(name: str, item: ir.Statement) -> bool:
    """Whether the statement, without its blocks, uses the buffer `name` only to read or write elements."""
    if name in ir.targets(item):
        return False
    used = accesses([item])
    return name not in used.kept and name not in used.sizes and name not in used.others
