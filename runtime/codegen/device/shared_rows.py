"""How threads share a loop over rows or columns, each of which is summed.

- Warps share the rows, and the lanes of a warp share the loops over a row.
- Neighbouring threads take neighbouring columns, so that a warp loads contiguous elements, and several threads share
  the loops over a column. If there are fewer columns than threads of a block, a block takes all of them; otherwise a
  group of blocks takes as many columns as a block has threads.
"""

from __future__ import annotations

from runtime.codegen.device.kernel import FreshSize
from runtime.dataclass import dataclass
from runtime.kernel_ir import ir, simplify
from runtime.kernel_ir.analysis.subscripts import offset_from
from runtime.llvm.device_layout import COLUMN_NUMBERS

MOST_COLUMNS = COLUMN_NUMBERS // 4
_NEVER = 1 << 40  # more trips than any loop has

_THREAD, _SIZE, _WARP = (ir.call(f"gpu.{name}") for name in ("thread_in_block", "block_size", "warp_size"))
_BLOCK, _BLOCKS = ir.call("gpu.block"), ir.call("gpu.blocks")


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
    return simplify.difference(loop.stop, loop.start)


def by_warps(loop: ir.For, fresh: FreshSize) -> Rows:
    row, warps, lane, lanes, bound = (fresh(name) for name in ("row", "warps", "lane", "lanes", "stop"))
    of_block = (_SIZE + _WARP - 1) // _WARP
    first = _BLOCK * of_block + _THREAD // _WARP
    start: ir.Block = [
        ir.assign(lane, _THREAD % _WARP),
        ir.assign(lanes, ir.call("min", _WARP, _SIZE - (_THREAD - lane))),
        ir.assign(warps, _BLOCKS * of_block),
        ir.assign(row, simplify.total(loop.start, first)),
        ir.assign(bound, loop.stop),
    ]
    return Rows(start, row, bound, warps, lane, lanes)


def by_columns(loop: ir.For, fresh: FreshSize) -> Columns:
    """For at least one column, and at most `MOST_COLUMNS` or the number of threads."""
    columns, width, of_group, column, part, parts = (
        fresh(name) for name in ("columns", "width", "of_group", "column", "part", "parts")
    )
    in_block = _SIZE // width
    groups = (columns + width - 1) // width
    has_one = ir.both((_THREAD // width).compare("<", in_block), column.compare("<", columns))
    index = ir.call("min", column, columns - 1)
    start: ir.Block = [
        ir.assign(columns, trips(loop)),
        ir.assign(width, ir.call("min", columns, _SIZE)),
        ir.assign(of_group, ir.call("min", _BLOCKS // groups, COLUMN_NUMBERS // columns - 1)),
        ir.assign(parts, of_group * in_block),
        ir.assign(column, _BLOCK // of_group * width + _THREAD % width),
        ir.assign(part, has_one.choose(_BLOCK % of_group * in_block + _THREAD // width, _NEVER)),
        ir.assign(loop.index, simplify.total(loop.start, index)),
    ]
    return Columns(start, part, parts, (index, columns, of_group))


def loads_along_columns(loop: ir.For) -> bool:
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
                if offset_from(index, ir.size_variable(inner.index)) is not None:
                    return False
                found |= offset_from(index, ir.size_variable(loop.index)) is not None
        if isinstance(item, ir.Assign) and len(item.targets) == 1:
            values[item.targets[0]] = ir.substituted(item.value, values)
    return found
