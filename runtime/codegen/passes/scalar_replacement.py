"""Scalar replacement: a row's values stay in registers.

    total = np.empty(n, np.float32)
    for i in range(n):                              for i in range(n):
        sum = 0.0                                       sum = 0.0
        for j in range(m):                              for j in range(m):
            sum = lib.add(sum, x[i * m + j])                sum = lib.add(sum, x[i * m + j])
        total[i] = sum                       →          total_1 = sum
        for j in range(m):                              for j in range(m):
            y[i * m + j] /= total[i]                        y[i * m + j] /= total_1

When neighbouring nests have become one loop (`loop_fusion.py`), what the first computed for each row is often read
nowhere else. Then it needs no array: and in the inner loops no load that might see what they store, which keeps loops
from being vectorised. It runs on a complete kernel, since only then it's known who reads what.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from runtime.kernel_ir import ir
from runtime.kernel_ir.types import BOOL

_NOTHING = ir.Const(False, BOOL)  # an expression without variables
_User = tuple[ir.Block, ir.Statement]  # a statement and the block that it stands in


def keep_in_registers(low: Any) -> None:
    """Changes the block and the parts of a kernel."""
    users: dict[str, list[_User]] = {}
    allocations: dict[str, list[_User]] = {}
    for block, item in _statements(low.block):
        if isinstance(item, ir.Alloc) and item.name in low.fresh:
            allocations.setdefault(item.name, []).append((block, item))
            continue
        for name in ir.variables(item).union(ir.targets(item)):
            users.setdefault(name, []).append((block, item))
    for name, found in allocations.items():
        if len(found) == 1 and name in users and _replace(low, name, users[name]):
            ((block, item),) = found
            block.remove(item)


def _statements(block: ir.Block) -> Iterator[_User]:
    """In program order."""
    for item in block:
        yield block, item
        for inner in ir.blocks(item):
            yield from _statements(inner)


def _replace(low: Any, name: str, users: list[_User]) -> bool:
    """Makes the elements of the buffer `name` a variable. False, and nothing, where it is more than a row's value."""
    if len(users) == 1 and (part := _part_of(low, users[0][1])) is not None:
        return _replace_in_part(low, name, users[0][1], part)
    around = users[0][0]
    loop = next((item for item in ir.walk(low.block) if isinstance(item, ir.For) and item.body is around), None)
    if loop is None or not _is_value(name, loop, [item for _, item in users]):
        return False
    _make_variable(low.names.fresh(name), name, loop)
    return True


def _part_of(low: Any, item: ir.Statement) -> ir.Function | None:
    """The function that a statement has threads run."""
    if not isinstance(item, ir.Run) or item.call.function != "lib.in_threads":
        return None
    part = item.call.arguments[0]
    return next(each for each in low.parts if part == ir.Var(each.name))


def _replace_in_part(low: Any, name: str, user: Any, part: ir.Function) -> bool:
    (loop,) = part.body
    assert isinstance(loop, ir.For)
    users = [item for _, item in _statements(part.body) if name in ir.variables(item)]
    if not users or not _is_value(name, loop, users):
        return False
    _make_variable(low.names.fresh(name), name, loop)
    part.parameters = tuple(each for each in part.parameters if each != name)
    *first, arguments = user.call.arguments
    assert isinstance(arguments, ir.Tuple)
    left = ir.Tuple(tuple(each for each in arguments.items if each != ir.Var(name)))
    user.call = ir.Call(user.call.function, (*first, left))
    return True


def _is_value(name: str, loop: ir.For, users: list[ir.Statement]) -> bool:
    """Whether a buffer is used in the body of a loop alone, there at the loop's element, which is written first."""
    inside = set(ir.walk(loop.body))
    first, element = users[0], ir.Var(loop.index)
    if not all(user in inside for user in users) or first not in loop.body:
        return False
    if any(isinstance(item, ir.For) and item.index == loop.index for item in inside):
        return False  # another loop counts with the same variable
    if not isinstance(first, ir.Store) or first.array != ir.Var(name) or name in ir.variables(first.value):
        return False
    return all(_only_at(name, element, user) for user in users)


def _only_at(name: str, element: ir.Expr, item: ir.Statement) -> bool:
    """Whether a statement, without its blocks, reads and writes nothing of a buffer but this element."""
    buffer = ir.Var(name)

    def without(each: ir.Expr) -> ir.Expr | None:
        return _NOTHING if isinstance(each, ir.Load) and each.array == buffer and each.index == element else None

    parts = list(ir.operands(item))
    if isinstance(item, ir.Store) and item.array == buffer:
        if item.index != element:
            return False
        parts = [item.value]
    return all(name not in ir.variables(ir.mapped(part, without)) for part in parts)


def _make_variable(variable: str, name: str, loop: ir.For) -> None:
    """Replaces the element of a buffer that a loop is at."""
    buffer, value = ir.Var(name), ir.Var(variable)
    for block in ir.walk_blocks(loop.body):
        for position, item in enumerate(block):
            if isinstance(item, ir.Store) and item.array == buffer:
                block[position] = ir.Assign((variable,), item.value)
    ir.map_block(loop.body, lambda each: value if isinstance(each, ir.Load) and each.array == buffer else None)
