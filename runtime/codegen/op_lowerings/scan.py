"""Lowerings of cumulative sums and products, and of positions of extremes.

Along the last axis, there is a loop for each row. Along another axis, the state of a block of columns is kept in
memory, and the inner loop runs along the rows of the block:

    for q in range(before * blocks):                    # on threads, where there is much to do
        first = q % blocks * 1024
        for j in range(first, min(first + 1024, behind)):
            total[q // blocks * behind + j] = 0.0
        for k in range(length):
            for j in range(first, min(first + 1024, behind)):
                total[...] = total[...] + x[...]
                y[...] = total[...]

A GPU's threads take a column each.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from runtime.codegen import cost_model
from runtime.codegen.kernel import scalars
from runtime.codegen.kernel.values import Array, Buffer, Scalar, product
from runtime.codegen.lower.state import Bounds, Lowering, emitter
from runtime.graph.ir import Node
from runtime.kernel_ir import ir
from runtime.shapes import element_count


class _Lines:
    """The loops around a scan of `array` along `axis`, and their variables."""

    def __init__(self, low: Lowering, node: Node, array: Array, axis: int) -> None:
        self.low = low
        self.node = node
        self.before = low.atom(product(array.dims[:axis]))
        self.length = low.atom(array.dims[axis])
        self.behind = low.atom(product(array.dims[axis + 1 :]))
        self.outer, self.step, self.column = (low.index_name(depth) for depth in range(3))

    def rows(self, lower_row: Callable[[], None]) -> None:
        """Adds a loop over rows. lower_row: lowers its body, for row number `outer`."""
        with self.low.nested() as block:
            lower_row()
        self.low.nest(self.outer, self.before, block, self.low.is_large([self.node]))

    def columns(self, start: Callable[[ir.Var], None], each: Callable[[ir.Var, ir.Var, ir.Var], None]) -> None:
        """Adds loops over blocks of columns. start(column): lowers the start of a column, which is numbered over all
        rows of columns. each(row, element, column): lowers a step."""
        low = self.low
        if low.for_device:
            self._by_column(start, each)
            return
        blocks = low.assign((self.behind + cost_model.SCAN_COLUMNS - 1) // cost_model.SCAN_COLUMNS, "blocks")
        count = low.assign(self.before * blocks, "n")
        with low.nested() as block:
            line = low.assign(self.outer // blocks, "line")
            first = low.assign(self.outer % blocks * cost_model.SCAN_COLUMNS, "begin")
            end = low.assign(ir.call("min", first + cost_model.SCAN_COLUMNS, self.behind), "end")
            self.loop(self.column, (first, end), lambda: start(low.assign(line * self.behind + self.column, "at")))

            def row() -> None:
                def element() -> None:
                    at = low.assign((line * self.length + self.step) * self.behind + self.column, "at")
                    each(self.step, at, low.assign(line * self.behind + self.column, "at"))

                self.loop(self.column, (first, end), element)

            self.loop(self.step, self.length, row)
        low.nest(self.outer, count, block, self.low.is_large([self.node]))

    def _by_column(self, start: Callable[[ir.Var], None], each: Callable[[ir.Var, ir.Var, ir.Var], None]) -> None:
        """Lowers a scan for a GPU: each thread takes a column."""
        low = self.low
        with low.nested() as block:
            column = low.assign(self.outer * self.behind + self.column, "column")
            start(column)

            def element() -> None:
                row = self.outer * self.length + self.step
                each(self.step, low.assign(row * self.behind + self.column, "at"), column)

            self.loop(self.step, self.length, element)
        with low.nested() as outer:
            low.nest(self.column, self.behind, block, False, may_join=False, independent=True)
        low.nest(self.outer, self.before, outer, False, may_join=False, independent=True)

    def loop(self, index: ir.Var, bounds: Bounds, body: Callable[[], None]) -> None:
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
    start = scalars.literal(neutral, output.dtype)
    reverse, exclusive = node.attrs["reverse"], node.attrs["exclusive"]

    def move(total: ir.Var | ir.Load, at: ir.Expr) -> None:
        following = ir.Binary(sign, total, ir.load(array.buffer.variable, at))
        step = ir.set_to(total, scalars.narrow(following, output.dtype))
        store = ir.store(out.variable, at, total)
        low.add(*([store, step] if exclusive else [step, store]))

    if lines.behind == ir.ONE:

        def row() -> None:
            total = low.assign(start, "total")
            start_of_row = lines.outer * lines.length
            at = start_of_row + lines.step
            if reverse:
                at = start_of_row + lines.length - 1 - lines.step
            lines.loop(lines.step, lines.length, lambda: move(total, low.assign(at, "at")))

        lines.rows(row)
    else:
        totals = low.new_buffer(lines.before * lines.behind, output.dtype, "total")

        def element(step: ir.Var, at: ir.Var, column: ir.Var) -> None:
            if reverse:
                at = low.assign(at + (lines.length - 1 - step - step) * lines.behind, "at")
            move(ir.load(totals.variable, column), at)

        lines.columns(lambda column: low.add(ir.store(totals.variable, column, start)), element)
    low.define(output, Array(out, array.dims))


def _is_small(low: Lowering, node: Node) -> bool:
    """Whether the operand is so small that one nest computes this and other reductions of it.

    Long rows are compared in blocks instead, which is faster.
    """
    shape = node.inputs[0].type.shape  # type: ignore[union-attr]
    count = element_count(shape)
    if not low.region.in_loop or shape is None or count is None or not 0 < count <= cost_model.SCAN_IN_LOOP:
        return False
    axis = node.attrs["axis"]
    return axis < len(shape) - 1 or shape[axis] <= cost_model.EXTREME_BLOCK


def _join(low: Lowering, node: Node) -> None:
    """Adds the node to the nest over its operand, like a reduction."""
    dims, axis = low.dims(node.inputs[0]), node.attrs["axis"]
    low.fusion.add_reduction(node, (axis,), dims[:axis] + dims[axis + 1 :])


@emitter("argmax", "argmin")
def _extreme(low: Lowering, node: Node) -> None:
    if _is_small(low, node):
        _join(low, node)
        return
    array = low.array(node.inputs[0])
    output = node.outputs[0]
    axis = node.attrs["axis"]
    lines = _Lines(low, node, array, axis)
    shape = ",".join(f"{{{position}}}" for position in range(len(array.dims)))
    message = f"Reduction axis {axis} is empty in shape [{shape}] [Op:{node.op.label}]"
    low.fail_when(lines.length.compare("==", 0), "InvalidArgumentError", message, node, array.dims, node.op.label)
    dims = array.dims[:axis] + array.dims[axis + 1 :]
    out = low.new_buffer(product(dims), output.dtype, output.name)
    _Search(lines, array, out, node.op.name == "argmax").lower()
    if dims:
        low.define(output, Array(out, dims))
    else:
        low.define(output, Scalar(low.assign(ir.load(out.variable, 0), output.name), output.dtype))


class _Search:
    """Finds the positions of the extremes of lines of an array, and stores them in `out`."""

    def __init__(self, lines: _Lines, array: Array, out: Buffer, is_largest: bool) -> None:
        self.low, self.lines, self.out = lines.low, lines, out
        self.array = array.buffer.variable
        self.dtype = array.dtype
        self.sign, self.joined = (">", "lib.maximum") if is_largest else ("<", "lib.minimum")

    def lower(self) -> None:
        if self.lines.behind == ir.ONE:
            self.lines.rows(self.row)
        else:
            self.columns()

    def first(self, element: ir.Load) -> ir.Var:
        """The extreme of one element. NaN is never the extreme."""
        value = self.low.assign(element, "value")
        if not self.dtype.is_floating:
            return value
        lowest = scalars.literal(-np.inf if self.sign == ">" else np.inf, self.dtype)
        return self.low.assign(value.compare("!=", value).choose(lowest, value), "best")

    def position(self, index: ir.Expr) -> ir.Expr:
        return ir.Convert(scalars.machine_type(self.out.dtype), index)

    # --- along rows --------------------------------------------------------------------------------------------------

    def row(self) -> None:
        """Looks closely at the first block of a row, and at each later one that has a better element, or NaN."""
        low, lines = self.low, self.lines
        begin = low.assign(lines.outer * lines.length, "at")
        best, where = self.first(ir.load(self.array, begin)), low.assign(ir.ZERO, "place")
        size = cost_model.EXTREME_BLOCK

        def block() -> None:
            start = low.assign(lines.step * size, "begin")
            end = low.assign(ir.call("min", start + size, lines.length), "end")
            top = low.assign(best, "top")
            lines.loop(lines.column, (start, end), lambda: self.join(begin, top))
            with low.nested() as closely:
                lines.loop(lines.column, (start, end), lambda: self.look(begin, best, where))
            low.branch(top.compare("!=", best), closely)

        lines.loop(
            lines.column, (ir.ONE, ir.call("min", lines.length, size)), lambda: self.look(begin, best, where)
        )  # fmt: skip
        lines.loop(lines.step, (ir.ONE, (lines.length + size - 1) // size), block)
        low.add(ir.store(self.out.variable, lines.outer, self.position(where)))

    def element_of_row(self, begin: ir.Var) -> ir.Var:
        return self.low.assign(ir.load(self.array, begin + self.lines.column), "value")

    def look(self, begin: ir.Var, best: ir.Var, where: ir.Var) -> None:
        """Compares one element with the best so far, and notes its position."""
        value = self.element_of_row(begin)
        better: ir.Block = [ir.assign(best, value), ir.assign(where, self.lines.column)]
        self.low.branch(value.compare(self.sign, best), better)

    def join(self, begin: ir.Var, top: ir.Var) -> None:
        """Joins one element to the extreme of a block: without a branch, so that the loop is vectorised."""
        value = self.element_of_row(begin)
        larger: ir.Expr = value.compare(self.sign, top).choose(value, top)
        self.low.add(ir.assign(top, ir.call(self.joined, top, value) if self.dtype.is_floating else larger))

    # --- along columns -----------------------------------------------------------------------------------------------

    def columns(self) -> None:
        low, lines, out = self.low, self.lines, self.out.variable
        bests = low.new_buffer(lines.before * lines.behind, self.dtype, "best").variable

        def start(column: ir.Var) -> None:
            low.add(ir.store(out, column, scalars.literal(0, self.out.dtype)))
            # Columns are numbered over rows of columns, which are `length` rows apart.
            before = column // lines.behind * (lines.length - 1) * lines.behind
            low.add(ir.store(bests, column, self.first(ir.load(self.array, column + before))))

        def element(step: ir.Var, at: ir.Var, column: ir.Var) -> None:
            value, best = low.assign(ir.load(self.array, at), "value"), low.assign(ir.load(bests, column), "best")
            is_better, position = value.compare(self.sign, best), ir.load(out, column)
            low.add(ir.set_to(position, is_better.choose(self.position(step), position)))
            low.add(ir.store(bests, column, is_better.choose(value, best)))

        lines.columns(start, element)
