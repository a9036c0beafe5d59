"""Printed forms of running sums and products, and of positions of extremes: along rows, or along columns by rows.

Along the last axis each row is a loop. Along another one, the state of a block of columns is kept in memory, and the
inner loop walks along the rows of the block:

    for q in range(before * blocks):                    # on threads, where there is much to do
        first = q % blocks * 1024
        for j in range(first, min(first + 1024, behind)):
            total[q // blocks * behind + j] = 0.0
        for k in range(length):
            for j in range(first, min(first + 1024, behind)):
                total[...] = total[...] + x[...]
                y[...] = total[...]
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from runtime.codegen.kernel import spelling
from runtime.codegen.kernel.values import Array, Scalar, product
from runtime.codegen.lower.state import Lowering, emitter
from runtime.codegen.passes.loop_fusion import place
from runtime.codegen.passes.parallelize import is_large
from runtime.graph.ir import Node
from runtime.shapes import element_count

_TOGETHER = 4096  # elements of an operand that isn't looked at on its own
_COLUMNS = 1024  # of a block
_BLOCK = 128  # elements of a row that are looked at together for an extreme


class _Lines:
    """The loops around a scan of `array` along `axis`, and the names in them."""

    def __init__(self, low: Lowering, node: Node, array: Array, axis: int) -> None:
        self.low = low
        self.node = node
        self.before = low.atom(product(array.dims[:axis]))
        self.length = low.atom(array.dims[axis])
        self.behind = low.atom(product(array.dims[axis + 1 :]))
        self.outer, self.step, self.column = (low.index_name(depth) for depth in range(3))

    def rows(self, print_row: Callable[[], None]) -> None:
        """print_row writes what is done for row number `outer`."""
        with self.low.nested() as block:
            print_row()
        place(self.low, self.outer, self.before, block, is_large([self.node]))

    def columns(self, start: Callable[[str], None], each: Callable[[str, str, str], None]) -> None:
        """start(column) begins a column, counted over all rows of columns; each(row, element, column) goes on."""
        low = self.low
        blocks = low.assign(f"({self.behind} + {_COLUMNS} - 1) // {_COLUMNS}", "blocks")
        count = low.assign(f"{self.before} * {blocks}", "n")
        with low.nested() as block:
            line = low.assign(f"{self.outer} // {blocks}", "line")
            first = low.assign(f"{self.outer} % {blocks} * {_COLUMNS}", "begin")
            end = low.assign(f"min({first} + {_COLUMNS}, {self.behind})", "end")
            self._along(first, end, lambda: start(low.assign(f"{line} * {self.behind} + {self.column}", "at")))

            def row() -> None:
                def element() -> None:
                    at = low.assign(f"({line} * {self.length} + {self.step}) * {self.behind} + {self.column}", "at")
                    each(self.step, at, low.assign(f"{line} * {self.behind} + {self.column}", "at"))

                self._along(first, end, element)

            self.loop(self.step, self.length, row)
        place(low, self.outer, count, block, is_large([self.node]))

    def _along(self, first: str, end: str, body: Callable[[], None]) -> None:
        self.loop(self.column, f"{first}, {end}", body)

    def loop(self, index: str, bounds: str, body: Callable[[], None]) -> None:
        with self.low.nested() as block:
            body()
        self.low.loop(index, bounds, block)


@emitter("cumsum", "cumprod")
def _running(low: Lowering, node: Node) -> None:
    array = low.array(node.inputs[0])
    output = node.outputs[0]
    lines = _Lines(low, node, array, node.attrs["axis"])
    out = low.new_buffer(product(array.dims), output.dtype, output.name)
    sign, neutral = ("+", 0) if node.op.name == "cumsum" else ("*", 1)
    start = spelling.literal(neutral, output.dtype)
    reverse, exclusive = node.attrs["reverse"], node.attrs["exclusive"]

    def move(total: str, at: str) -> None:
        step = (
            f"{total} = {spelling.strip(spelling.narrow(f'({total} {sign} {array.buffer.name}[{at}])', output.dtype))}"
        )
        store = f"{out.name}[{at}] = {total}"
        for text in [store, step] if exclusive else [step, store]:
            low.line(text)

    if lines.behind == "1":

        def row() -> None:
            total = low.assign(start, "total")
            position = f"{lines.length} - 1 - {lines.step}" if reverse else lines.step
            lines.loop(
                lines.step,
                lines.length,
                lambda: move(total, low.assign(f"{lines.outer} * {lines.length} + {position}", "at")),
            )

        lines.rows(row)
    else:
        totals = low.new_buffer(f"{lines.before} * {lines.behind}", output.dtype, "total")

        def element(step: str, at: str, column: str) -> None:
            if reverse:
                at = low.assign(f"{at} + ({lines.length} - 1 - {step} - {step}) * {lines.behind}", "at")
            move(f"{totals.name}[{column}]", at)

        lines.columns(lambda column: low.line(f"{totals.name}[{column}] = {start}"), element)
    low.define(output, Array(out, array.dims))


def _is_few(low: Lowering, node: Node) -> bool:
    """Whether the operand is so small that it is looked at together with what else is computed of it."""
    shape = node.inputs[0].type.shape  # type: ignore[union-attr]
    count = element_count(shape)
    return low.region.in_loop and count is not None and 0 < count <= _TOGETHER


def _join(low: Lowering, node: Node) -> None:
    """Leaves it to the nest over the operand, in which reductions are too."""
    dims, axis = low.dims(node.inputs[0]), node.attrs["axis"]
    low.fusion.add_reduction(node, (axis,), dims[:axis] + dims[axis + 1 :])


@emitter("argmax", "argmin")
def _extreme(low: Lowering, node: Node) -> None:
    if _is_few(low, node):
        _join(low, node)
        return
    array = low.array(node.inputs[0])
    output = node.outputs[0]
    axis = node.attrs["axis"]
    lines = _Lines(low, node, array, axis)
    shape = ",".join(f"{{{position}}}" for position in range(len(array.dims)))
    message = f"Reduction axis {axis} is empty in shape [{shape}] [Op:{node.op.label}]"
    low.fail_when(f"{lines.length} == 0", "InvalidArgumentError", message, node, array.dims, node.op.label)
    dims = array.dims[:axis] + array.dims[axis + 1 :]
    out = low.new_buffer(product(dims), output.dtype, output.name)
    floating, kind = array.dtype.is_floating, spelling.type_name(output.dtype)
    sign = ">" if node.op.name == "argmax" else "<"
    # NaN is never the extreme.
    lowest = spelling.literal(-np.inf if sign == ">" else np.inf, array.dtype) if floating else ""

    def first(text: str) -> str:
        value = low.assign(text, "value")
        return low.assign(f"{lowest} if {value} != {value} else {value}", "best") if floating else value

    def row() -> None:
        begin = low.assign(f"{lines.outer} * {lines.length}", "at")
        best, where = first(f"{array.buffer.name}[{begin}]"), low.assign("0", "place")

        def look(start: str, end: str) -> None:
            def element() -> None:
                value = low.assign(f"{array.buffer.name}[{begin} + {lines.column}]", "value")
                low.branch(f"{value} {sign} {best}", low.lines(f"{best} = {value}", f"{where} = {lines.column}"))

            lines.loop(lines.column, f"{start}, {end}", element)

        def block() -> None:
            """Looks closely only where a block has something better, or NaN."""
            start = low.assign(f"{lines.step} * {_BLOCK}", "begin")
            end = low.assign(f"min({start} + {_BLOCK}, {lines.length})", "end")
            top = low.assign(best, "top")

            def element() -> None:
                value = low.assign(f"{array.buffer.name}[{begin} + {lines.column}]", "value")
                if floating:
                    low.line(f"{top} = lib.{'maximum' if sign == '>' else 'minimum'}({top}, {value})")
                else:
                    low.line(f"{top} = {value} if {value} {sign} {top} else {top}")

            lines.loop(lines.column, f"{start}, {end}", element)
            with low.nested() as closely:
                look(start, end)
            low.branch(f"{top} != {best}", closely)

        look("1", f"min({lines.length}, {_BLOCK})")
        lines.loop(lines.step, f"1, ({lines.length} + {_BLOCK} - 1) // {_BLOCK}", block)
        low.line(f"{out.name}[{lines.outer}] = {kind}({where})")

    def start_column(column: str) -> None:
        low.line(f"{out.name}[{column}] = {kind}(0)")
        low.line(f"{bests.name}[{column}] = {first(first_element(column))}")

    def first_element(column: str) -> str:
        """A column's number counts rows of columns, each of which begins `length` rows behind the other."""
        line = f"({column} // {lines.behind})"
        return f"{array.buffer.name}[{column} + {line} * ({lines.length} - 1) * {lines.behind}]"

    def element(step: str, at: str, column: str) -> None:
        value, best = low.assign(f"{array.buffer.name}[{at}]", "value"), low.assign(f"{bests.name}[{column}]", "best")
        low.line(f"{out.name}[{column}] = {kind}({step}) if {value} {sign} {best} else {out.name}[{column}]")
        low.line(f"{bests.name}[{column}] = {value} if {value} {sign} {best} else {best}")

    if lines.behind == "1":
        lines.rows(row)
    else:
        bests = low.new_buffer(f"{lines.before} * {lines.behind}", array.dtype, "best")
        lines.columns(start_column, element)
    if dims:
        low.define(output, Array(out, dims))
    else:
        low.define(output, Scalar(low.assign(f"{out.name}[0]", output.name), output.dtype))
