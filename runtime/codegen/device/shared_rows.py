"""How threads share a loop over rows or columns, each of which is summed.

- Warps share the rows, and the lanes of a warp share the loops over a row. - Neighbouring threads take neighbouring
columns, so that a warp loads contiguous elements, and several threads share the
  loops over a column. If there are fewer columns than threads of a block, a block takes all of them; otherwise a group
  of blocks takes as many columns as a block has threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from runtime.codegen.device.several_trips import offset
from runtime.kernel_ir import ir
from runtime.kernel_ir.types import INT64
from runtime.llvm.device_layout import COLUMN_NUMBERS

MOST_COLUMNS = COLUMN_NUMBERS // 4
_NEVER = 1 << 40  # more trips than any loop has

_PLACE, _SIZE, _WARP = (ir.call(f"gpu.{name}") for name in ("place_in_block", "block_size", "warp_size"))
_BLOCK, _BLOCKS = ir.call("gpu.block"), ir.call("gpu.blocks")

Fresh = Callable[[str], str]


@dataclass(frozen=True)
class Rows:
    """start: the statements before the loop. row, bound, warps: the loop's index, bound and step. lane, lanes: the
    number of a thread among those that share a row, and how many these are."""

    start: ir.Block
    row: ir.Var
    bound: ir.Var
    warps: ir.Var
    lane: ir.Var
    lanes: ir.Var


@dataclass(frozen=True)
class Columns:
    """start: the statements that compute a thread's column. part, parts: the number of a thread among those that share
    the column, and how many these are. total: further arguments of the function that joins partial results."""

    start: ir.Block
    part: ir.Var
    parts: ir.Var
    total: tuple[ir.Expr, ...]


def trips(loop: ir.For) -> ir.Expr:
    return loop.stop if loop.start == ir.ZERO else loop.stop - loop.start


def by_warps(loop: ir.For, fresh: Fresh) -> Rows:
    row, warps, lane, lanes, bound = (ir.Var(fresh(name)) for name in ("row", "warps", "lane", "lanes", "stop"))
    of_block = (_SIZE + _WARP - 1) // _WARP
    first = _BLOCK * of_block + _PLACE // _WARP
    start: ir.Block = [
        ir.assign(lane.name, _PLACE % _WARP),
        ir.assign(lanes.name, ir.call("min", _WARP, _SIZE - (_PLACE - lane))),
        ir.assign(warps.name, _BLOCKS * of_block),
        ir.assign(row.name, first if loop.start == ir.ZERO else loop.start + first),
        ir.assign(bound.name, ir.Convert(INT64, loop.stop)),
    ]
    return Rows(start, row, bound, warps, lane, lanes)


def by_columns(loop: ir.For, fresh: Fresh) -> Columns:
    """For at least one column, and at most `MOST_COLUMNS` or the number of threads."""
    columns, width, of_group, column, part, parts = (
        ir.Var(fresh(name)) for name in ("columns", "width", "of_group", "column", "part", "parts")
    )
    in_block = _SIZE // width
    groups = (columns + width - 1) // width
    has_one = ir.both((_PLACE // width).compare("<", in_block), column.compare("<", columns))
    index = ir.call("min", column, columns - 1)
    start: ir.Block = [
        ir.assign(columns.name, ir.Convert(INT64, trips(loop))),
        ir.assign(width.name, ir.call("min", columns, _SIZE)),
        ir.assign(of_group.name, ir.call("min", _BLOCKS // groups, COLUMN_NUMBERS // columns - 1)),
        ir.assign(parts.name, of_group * in_block),
        ir.assign(column.name, _BLOCK // of_group * width + _PLACE % width),
        ir.assign(part.name, has_one.choose(_BLOCK % of_group * in_block + _PLACE // width, _NEVER)),
        ir.assign(loop.index, index if loop.start == ir.ZERO else loop.start + index),
    ]
    return Columns(start, part, parts, (index, columns, of_group))


def goes_down_columns(loop: ir.For) -> bool:
    """Whether neighbouring trips of a loop load neighbouring elements, and those of inner loops don't."""
    values: dict[str, ir.Expr] = {}
    found = False
    for item in ir.walk(loop.body):
        inner = next((each for each in loop.body if isinstance(each, ir.For) and item in each.body), None)
        for each in ir.expressions(item):
            if inner is None or not isinstance(each, ir.Load):
                continue
            index = ir.substituted(each.index, values)
            if inner.index in ir.variables(index):
                if offset(index, ir.Var(inner.index)) is not None:
                    return False
                found |= offset(index, ir.Var(loop.index)) is not None
        if isinstance(item, ir.Assign) and len(item.targets) == 1:
            values[item.targets[0]] = ir.substituted(item.value, values)
    return found
