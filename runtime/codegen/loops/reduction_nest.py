"""Lowers the reductions of a fusion group: of rows, of columns, and of large arrays in parts.

If the reduced dimensions are the inner ones, the totals of each row are variables:

    for i in range(n):
        total = 0.0
        for j in range(m):
            total = lib.add(total, x[i * m + j])
        s[i] = total

If they are the outer ones, the totals of all columns are in memory, so that the inner loop runs along rows. Large
arrays are split into parts, as in full reductions, and the totals of the parts are added up at the end:

    parts = (n + 31) // 32
    some = np.empty(parts * m, np.float32)
    for p in range(parts):                                        # on threads
        for j in range(m):
            some[p * m + j] = 0.0
        for i in range(p * 32, min(p * 32 + 32, n)):
            for j in range(m):
                some[p * m + j] = lib.add(some[p * m + j], x[i * m + j])
    for p in range(parts):
        for j in range(m):
            total[j] = lib.add(total[j], some[p * m + j])

If there are few columns, several rows are added to a total between its load and its store, unless the nest computes
functions, which take longer than the loads and stores.

Parts depend on sizes only, so that the result doesn't depend on the number of threads. They are short enough for sums
of float32 in float32 (see `reductions.py`); the sum over the parts is in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runtime.codegen import cost_model
from runtime.codegen.kernel import scalars
from runtime.codegen.kernel.values import Array, Buffer, Dims, Scalar, Virtual, product
from runtime.codegen.loops.access import Access, Loop
from runtime.codegen.loops.reductions import EXTREMES, REDUCTIONS, Reduction, accumulator, result
from runtime.codegen.passes.parallelize import is_costly
from runtime.graph.ir import Node
from runtime.kernel_ir import ir
from runtime.shapes import element_count
from runtime.types import TensorType

Buffers = dict[Node, Buffer]
Steps = dict[Node, Callable[[ir.Expr], None]]
Totals = dict[Node, ir.Var]


def lower_reductions(nest: Any, nodes: Sequence[Node], targets: dict[Node, Array]) -> None:
    """Lowers a nest with reductions. The elementwise values that are needed elsewhere are stored in `targets`."""
    running = [loop for loop in nest.loops if loop.runs]
    are_reduced = [loop.reduced for loop in running]
    reductions = _Reductions(nest, nodes, targets)
    reductions.check_means(nodes)
    if all(are_reduced):
        reductions.everything(running)
    elif nest.low.for_device or are_reduced == sorted(are_reduced):  # many threads add up a column, as they do a row
        reductions.rows()
    else:
        reductions.columns(running)


def _reduction(node: Node) -> Reduction:
    """How the totals of a node accumulate; for an arg-reduction, how the extreme itself does."""
    name = node.op.name
    return REDUCTIONS[EXTREMES[name][0] if name in EXTREMES else name]


def _is_short(node: Node, axes: Sequence[int]) -> bool:
    type_ = node.inputs[0].type
    assert isinstance(type_, TensorType)
    assert type_.shape is not None
    count = element_count(tuple(type_.shape[axis] for axis in axes))
    return count is not None and count <= cost_model.SINGLE_PRECISION_ROW


class _Reductions:
    def __init__(self, nest: Any, nodes: Sequence[Node], targets: dict[Node, Array]) -> None:
        self.nest = nest
        self.low = nest.low
        self.axes: tuple[int, ...] = nest.group.axes
        self.nodes = nodes
        self.targets = targets
        self.short = False  # the loops that accumulate are short
        self.where: dict[Node, ir.Var] = {}  # for arg-reductions: the variable or the memory with the positions
        self.kept: Dims = tuple(ir.ONE if axis in self.axes else d for axis, d in enumerate(nest.dims))

    # --- shapes of loops -----------------------------------------------------------------------------------------

    def everything(self, inside: Sequence[Loop]) -> None:
        """Lowers full reductions: one total for each node."""
        if inside and self.low.is_large(self.nest.group.nodes):
            totals = self._everything_in_parts(inside)
        else:
            # Not in float32: the number of elements often depends on the batch size, and a new batch size must not need
            # another kernel.
            totals = self._accumulate(self.nest.loops)
        for node in self.nodes:
            self._define_single(node, totals[node])

    def rows(self) -> None:
        """Reduced dimensions inside kept ones: totals of each row."""
        outer = [loop for loop in self.nest.loops if not loop.reduced]
        inside = [loop for loop in self.nest.loops if loop.reduced]
        self.short = _is_short(self.nodes[0], self.axes)
        outs = {node: self.nest.new_buffer(node, self.kept) for node in self.nodes}

        def body() -> None:
            totals = self._accumulate(inside)
            self.nest.offsets = {}
            offset = self._place_of(self.nodes[0]).offset(outer, self.nest.name_offset)
            for node in self.nodes:
                self.low.add(ir.store(outs[node].variable, offset, self._result(node, totals[node])))

        self.nest.lower_nest(outer, body)
        for node in self.nodes:
            self._define_array(node, outs[node])

    def columns(self, running: Sequence[Loop]) -> None:
        """Reduced dimensions outside kept ones: whole rows are accumulated at once."""
        low = self.low
        size = low.atom(product(self.kept))
        large = self.low.is_large(self.nest.group.nodes)
        if large and running[0].reduced:
            totals = self._columns_in_parts(running, size)
        else:
            totals = {node: self._cleared(node, size, self._dtype(node)) for node in self.nodes}
            steps = {node: self._column_step(node, totals[node].variable, None) for node in self.nodes}
            self.nest.lower_loops(self.nest.loops, lambda: self.nest.lower_body(self.targets, steps))
        for node in self.nodes:
            if node in self.where:
                self._define_array(node, Buffer(self.where[node].name, node.outputs[0].dtype, owned=True))
                continue
            total = totals[node]
            index = low.index_name(0)
            found = self._result(node, ir.load(total.variable, index))
            if found != ir.load(total.variable, index):
                out = low.new_buffer(size, node.outputs[0].dtype, node.outputs[0].name)
                low.loop(index, size, [ir.store(out.variable, index, found)])
                total = out
            self._define_array(node, total)

    # --- in parts ------------------------------------------------------------------------------------------------

    def _everything_in_parts(self, inside: Sequence[Loop]) -> Totals:
        low, first = self.low, inside[0]
        around = product([loop.size for loop in inside[1:]])
        length: ir.Expr = ir.as_expr(cost_model.REDUCTION_CHUNK)
        if around != ir.ONE:
            length = low.assign(ir.call("max", length // ir.call("max", around, 1), 1), "rows")
        number, parts = self._split(first, length)
        wide = {node: self._dtype(node) for node in self.nodes}
        self.short = True
        some = {node: low.new_buffer(parts, self._dtype(node), node.outputs[0].name) for node in self.nodes}
        with low.nested() as block:
            self._set_bounds(first, number, length)
            found = self._accumulate(self.nest.loops)
            for node in self.nodes:
                low.add(ir.store(some[node].variable, number, found[node]))
        low.nest(number, parts, block, large=True)
        self.short = False
        totals = {node: self._start(node, wide[node]) for node in self.nodes}
        with low.nested() as block:
            for node in self.nodes:
                self._add(node, totals[node], ir.load(some[node].variable, number), self._narrow(node), wide[node])
        low.loop(number, parts, block)
        return totals

    def _columns_in_parts(self, running: Sequence[Loop], size: ir.Expr) -> Buffers:
        low, first = self.low, running[0]
        has_many = first.size.compare(">", cost_model.COLUMN_CHUNK_MANY)
        choice = has_many.choose(cost_model.COLUMN_CHUNK_ROWS, cost_model.COLUMN_CHUNK_FEW_ROWS)
        length = low.assign(choice, "rows")
        number, parts = self._split(first, length)
        some = {node: low.new_buffer(parts * size, self._narrow(node), node.outputs[0].name) for node in self.nodes}
        index = low.index_name(1)
        with low.nested() as block:
            self._set_bounds(first, number, length)
            for node in self.nodes:
                start = scalars.literal(_reduction(node).start(self._narrow(node)), self._narrow(node))
                low.loop(index, size, [ir.store(some[node].variable, number * size + index, start)])
            self.short = True
            begin = low.assign(number * size, "at")
            if self._are_few_columns(running):
                self._rows_together(running, some, begin)
            steps = {node: self._column_step(node, some[node].variable, begin) for node in self.nodes}
            self.nest.lower_loops(self.nest.loops, lambda: self.nest.lower_body(self.targets, steps))
        low.nest(number, parts, block, large=True)
        self.short = False
        totals = {node: self._cleared(node, size, self._dtype(node)) for node in self.nodes}
        with low.nested() as block:
            for node in self.nodes:
                with low.nested() as columns:
                    target, part = (
                        ir.load(totals[node].variable, index),
                        ir.load(some[node].variable, number * size + index),
                    )
                    self._add(node, target, part, self._narrow(node), self._dtype(node))
                low.loop(index, size, columns)
        low.loop(number, parts, block)
        return totals

    def _are_few_columns(self, running: Sequence[Loop]) -> bool:
        if len(running) != 2 or not isinstance(running[1].size, ir.Const) or self.nest.parts is not None:
            return False
        return not is_costly(self.nest.group.nodes)

    def _rows_together(self, running: Sequence[Loop], some: Buffers, begin: ir.Expr) -> None:
        """Adds several rows at a time to the totals. A loop handles the remaining rows of the part."""
        low, (rows, columns) = self.low, running
        known = dict(self.nest.elements)
        start, end = (low.assign(bound, "row") for bound in rows.bounds)
        rest = low.assign(end - (end - start) % cost_model.COLUMN_UNROLL, "rest")
        first = ir.size_variable(low.names.fresh("row"))
        targets = {node: ir.load(some[node].variable, begin + columns.index) for node in self.nodes}
        with low.nested() as block:
            with low.nested() as column:
                totals = {node: low.assign(targets[node], "total") for node in self.nodes}
                steps = {node: self._step(node, totals[node]) for node in self.nodes}
                rows.bounds = (first, first + cost_model.COLUMN_UNROLL)
                self.nest.lower_loops([rows], lambda: self.nest.lower_body(self.targets, steps))
                for node in self.nodes:
                    low.add(ir.Store(targets[node].array, targets[node].index, totals[node]))
            low.loop(columns.index, columns.range, column)
        low.loop(first, (start, rest, ir.as_expr(cost_model.COLUMN_UNROLL)), block)
        self.nest.elements = known
        rows.bounds = (rest, end)

    def _split(self, loop: Loop, length: ir.Expr) -> tuple[ir.Var, ir.Var]:
        """The variable that counts the parts of a loop, and the number of parts."""
        number: ir.Var = self.low.index_name(len(self.nest.loops))
        return number, self.low.assign((loop.size + length - 1) // length, "parts")

    def _set_bounds(self, loop: Loop, number: ir.Expr, length: ir.Expr) -> None:
        begin = self.low.assign(number * length, "begin")
        loop.bounds = (begin, ir.call("min", begin + length, loop.size))

    # --- totals --------------------------------------------------------------------------------------------------

    def _dtype(self, node: Node) -> Any:
        return accumulator(_reduction(node), node.inputs[0].dtype, self.short)

    def _narrow(self, node: Node) -> Any:
        """The dtype of a part's totals."""
        return accumulator(_reduction(node), node.inputs[0].dtype, short=True)

    def _start(self, node: Node, dtype: Any) -> ir.Var:
        """A variable that holds the neutral element."""
        start = scalars.literal(_reduction(node).start(dtype), dtype)
        name = node.outputs[0].name or node.op.name.removeprefix("reduce_").split("_")[0]
        found: ir.Var = self.low.assign(start, name)
        return found

    def _add(self, node: Node, target: ir.Var | ir.Load, value: ir.Expr, source: Any, dtype: Any) -> None:
        name = self.low.assign(scalars.convert(value, source, dtype), "v")
        self.low.add(ir.set_to(target, REDUCTIONS[node.op.name].step(target, name, dtype)))

    def _accumulate(self, inside: Sequence[Loop]) -> Totals:
        totals = {node: self._start(node, self._dtype(node)) for node in self.nodes}
        steps = {node: self._step(node, totals[node]) for node in self.nodes}
        self.nest.lower_loops(inside, lambda: self.nest.lower_body(self.targets, steps))
        return totals

    def _step(self, node: Node, total: ir.Var) -> Callable[[ir.Expr], None]:
        if node.op.name in EXTREMES:
            where = self.low.assign(ir.ZERO, "place")
            self.where[node] = where

            def look(value: ir.Expr) -> None:
                better = value.compare(EXTREMES[node.op.name][1], total)
                self.low.branch(better, [ir.assign(total, value), ir.assign(where, self._position())])

            return look
        step, dtype = REDUCTIONS[node.op.name].step, self._dtype(node)
        return lambda value: self.low.add(ir.assign(total, step(total, value, dtype)))

    def _position(self) -> ir.Expr:
        """The current index of the nest along the reduced axis."""
        return next(loop.index for loop in self.nest.loops if self.axes[0] in loop.axes)

    def _cleared(self, node: Node, size: ir.Expr, dtype: Any) -> Buffer:
        """Memory for the totals of all columns, each the neutral element."""
        total: Buffer = self.low.new_buffer(size, dtype, node.outputs[0].name)
        index = self.low.index_name(0)
        block: ir.Block = [ir.store(total.variable, index, scalars.literal(_reduction(node).start(dtype), dtype))]
        if node.op.name in EXTREMES:
            own = node.outputs[0].dtype
            self.where[node] = self.low.new_buffer(size, own, node.outputs[0].name).variable
            block.append(ir.store(self.where[node], index, scalars.literal(0, own)))
        self.low.loop(index, size, block)
        return total

    def _place_of(self, node: Node) -> Access:
        """How the nest accesses the results of a reduction."""
        access = Access(self.low, Array(Buffer("", node.outputs[0].dtype), self.kept), self.nest.dims)
        access.kinds = ["one" if axis in self.axes else "full" for axis in range(len(self.nest.dims))]
        return access

    def _column_step(self, node: Node, buffer: ir.Var, begin: ir.Expr | None) -> Callable[[ir.Expr], None]:
        """Adds to a column's total; `begin`: the offset of the totals."""
        access, dtype = self._place_of(node), self._dtype(node)

        def step(value: ir.Expr) -> None:
            at = access.offset(self.nest.loops, self.nest.name_offset)
            element = ir.load(buffer, at if begin is None else begin + at)
            if node.op.name in EXTREMES:
                where = ir.load(self.where[node], at)
                better = value.compare(EXTREMES[node.op.name][1], element)
                position = ir.Convert(scalars.machine_type(node.outputs[0].dtype), self._position())
                self.low.add(ir.set_to(where, better.choose(position, where)))
                self.low.add(ir.set_to(element, better.choose(value, element)))
                return
            self.low.add(ir.set_to(element, REDUCTIONS[node.op.name].step(element, value, dtype)))

        return step

    # --- results -------------------------------------------------------------------------------------------------

    def _result(self, node: Node, total: ir.Expr) -> ir.Expr:
        if node.op.name in EXTREMES:
            return ir.Convert(scalars.machine_type(node.outputs[0].dtype), self.where[node])
        count = product([self.nest.dims[a] for a in self.axes])
        return result(REDUCTIONS[node.op.name], total, count, node.outputs[0].dtype, self.short)

    def check_means(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            if node.op.name == "reduce_mean" and not node.outputs[0].dtype.is_floating:
                message = "Integer division by zero: the mean of no elements [Op:Mean]"
                self.low.fail_when(
                    product(self.nest.dims).compare("==", 0), "DivisionByZeroError", message, node, (), "Mean"
                )

    def _define_single(self, node: Node, total: ir.Expr) -> None:
        found = self._result(node, total)
        if not isinstance(found, ir.Var):
            found = self.low.assign(found, node.outputs[0].name)
        output = node.outputs[0]
        if output.type.rank == 0:  # type: ignore[union-attr]
            self.low.define(output, Scalar(found, output.dtype))
            return
        dims: Dims = (ir.ONE,) * (output.type.rank or 0)  # type: ignore[union-attr]
        self.low.define(output, Virtual(output.dtype, dims, lambda indices: found, uniform=True))

    def _define_array(self, node: Node, buffer: Buffer) -> None:
        self.low.define(node.outputs[0], Array(buffer, self.nest.group.results[node]))
