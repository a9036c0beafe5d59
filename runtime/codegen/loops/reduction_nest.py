"""Prints the reductions of a fusion group: of rows, of columns, and of large arrays in parts.

Where the reduced dimensions are the inner ones, each row has its totals in variables:

    for i in range(n):
        total = 0.0
        for j in range(m):
            total = lib.add(total, x[i * m + j])
        s[i] = total

Where they are the outer ones, the totals of all columns are in memory, so that the inner loop walks along rows. Large
arrays are then, as when everything is reduced, taken in parts, whose totals are added up at the end:

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

Of few columns, several rows are added to a total between its load and its store, unless functions are computed of them,
which take longer than that.

Parts depend on sizes only, so that the result doesn't depend on the number of threads. They are short enough for sums
of float32 in float32 (see `reductions.py`); the sum over the parts is in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runtime.codegen.kernel import spelling
from runtime.codegen.kernel.values import Array, Buffer, Dims, Scalar, Virtual, product
from runtime.codegen.loops.access import Access, Loop, closed
from runtime.codegen.loops.reductions import EXTREMES, REDUCTIONS, SHORT, Reduction, accumulator, result
from runtime.codegen.passes.loop_fusion import place
from runtime.codegen.passes.parallelize import is_costly, is_large
from runtime.graph.ir import Node
from runtime.shapes import element_count
from runtime.types import TensorType

_PART = 4096  # elements of a part when everything is reduced
_ROWS = 32  # rows of a part when columns are reduced
_FEW_ROWS = 8
_TOGETHER = 8  # rows that are added to the totals of few columns at once: each total waits for its last store

Buffers = dict[Node, Buffer]
Steps = dict[Node, Callable[[str], None]]


def print_reductions(nest: Any, nodes: Sequence[Node], places: dict[Node, Array]) -> None:
    """Prints a nest with reductions; `places` get the elementwise values that something else needs."""
    running = [loop for loop in nest.loops if loop.index != "0"]
    inner = len(running)
    while inner and running[inner - 1].reduced:
        inner -= 1
    printer = _Reductions(nest, nodes, places)
    printer.check_means(nodes)
    if any(loop.reduced for loop in running[:inner]):
        printer.columns(running)
    elif inner:
        printer.rows(running[:inner], running[inner:])
    else:
        printer.everything(running)


def _reduction(node: Node) -> Reduction:
    """How the totals of a node accumulate; of a position of an extreme, the extreme itself."""
    name = node.op.name
    return REDUCTIONS[EXTREMES[name][0] if name in EXTREMES else name]


def _is_short(node: Node, axes: Sequence[int]) -> bool:
    type_ = node.inputs[0].type
    assert isinstance(type_, TensorType)
    assert type_.shape is not None
    count = element_count(tuple(type_.shape[axis] for axis in axes))
    return count is not None and count <= SHORT


class _Reductions:
    def __init__(self, nest: Any, nodes: Sequence[Node], places: dict[Node, Array]) -> None:
        self.nest = nest
        self.low = nest.low
        self.axes: tuple[int, ...] = nest.group.axes
        self.nodes = nodes
        self.places = places
        self.short = False  # the loops that accumulate are short
        self.where: dict[Node, str] = {}  # of positions of extremes: the variable or the memory that holds them
        self.kept: Dims = tuple("1" if axis in self.axes else d for axis, d in enumerate(nest.dims))

    # --- shapes of loops -----------------------------------------------------------------------------------------

    def everything(self, inside: Sequence[Loop]) -> None:
        """One total of each."""
        if inside and is_large(self.nest.group.nodes):
            totals = self._everything_in_parts(inside)
        else:
            # Not in float32: the number of elements often has a batch in it, and a new batch size must not need another
            # kernel.
            totals = self._accumulate(inside)
        for node in self.nodes:
            self._define_single(node, totals[node])

    def rows(self, outer: Sequence[Loop], inside: Sequence[Loop]) -> None:
        """Reduced dimensions inside kept ones: totals of each row."""
        self.short = _is_short(self.nodes[0], self.axes)
        outs = {node: self.nest.new_buffer(node, self.kept) for node in self.nodes}

        def body() -> None:
            totals = self._accumulate(inside)
            self.nest.offsets = {}
            offset = self._place_of(self.nodes[0]).offset(outer, self.nest.name_offset)
            for node in self.nodes:
                self.low.line(f"{outs[node].name}[{offset}] = {spelling.strip(self._result(node, totals[node]))}")

        self.nest.print_nest(outer, body)
        for node in self.nodes:
            self._define_array(node, outs[node])

    def columns(self, running: Sequence[Loop]) -> None:
        """Reduced dimensions outside kept ones: whole rows are accumulated at once."""
        low = self.low
        size = low.atom(product(self.kept))
        large = is_large(self.nest.group.nodes)
        if large and running[0].reduced:
            totals = self._columns_in_parts(running, size)
        else:
            totals = {node: self._cleared(node, size, self._dtype(node)) for node in self.nodes}
            steps = {node: self._column_step(node, totals[node].name, "") for node in self.nodes}
            self.nest.print_loops(self.nest.loops, lambda: self.nest.print_body(self.places, steps))
        for node in self.nodes:
            if node in self.where:
                self._define_array(node, Buffer(self.where[node], node.outputs[0].dtype, owned=True))
                continue
            total = totals[node]
            index = low.index_name(0)
            text = self._result(node, f"{total.name}[{index}]")
            if text != f"{total.name}[{index}]":
                out = low.new_buffer(size, node.outputs[0].dtype, node.outputs[0].name)
                low.loop(index, size, low.lines(f"{out.name}[{index}] = {spelling.strip(text)}"))
                total = out
            self._define_array(node, total)

    # --- in parts ------------------------------------------------------------------------------------------------

    def _everything_in_parts(self, inside: Sequence[Loop]) -> dict[Node, str]:
        low, first = self.low, inside[0]
        around = product([loop.size for loop in inside[1:]])
        length = str(_PART) if around == "1" else low.assign(f"max({_PART} // max({around}, 1), 1)", "rows")
        number, parts = self._split(first, length)
        wide = {node: self._dtype(node) for node in self.nodes}
        self.short = True
        some = {node: low.new_buffer(parts, self._dtype(node), node.outputs[0].name) for node in self.nodes}
        with low.nested() as block:
            self._set_bounds(first, number, length)
            found = self._accumulate(inside)
            for node in self.nodes:
                low.line(f"{some[node].name}[{number}] = {found[node]}")
        place(low, number, parts, block, large=True)
        self.short = False
        totals = {node: self._start(node, wide[node]) for node in self.nodes}
        with low.nested() as block:
            for node in self.nodes:
                self._add(node, totals[node], f"{some[node].name}[{number}]", self._narrow(node), wide[node])
        low.loop(number, parts, block)
        return totals

    def _columns_in_parts(self, running: Sequence[Loop], size: str) -> Buffers:
        low, first = self.low, running[0]
        length = low.assign(f"{_ROWS} if {first.size} > {_ROWS * 16} else {_FEW_ROWS}", "rows")
        number, parts = self._split(first, length)
        some = {
            node: low.new_buffer(f"{parts} * {closed(size)}", self._narrow(node), node.outputs[0].name)
            for node in self.nodes
        }
        index = low.index_name(1)
        with low.nested() as block:
            self._set_bounds(first, number, length)
            for node in self.nodes:
                start = _reduction(node).start(self._narrow(node))
                target = f"{some[node].name}[{number} * {size} + {index}]"
                low.loop(index, size, low.lines(f"{target} = {spelling.literal(start, self._narrow(node))}"))
            self.short = True
            begin = low.assign(f"{number} * {size}", "at")
            if len(running) == 2 and running[1].size.isdigit() and not is_costly(self.nest.group.nodes):
                self._rows_together(running, some, begin)
            steps = {node: self._column_step(node, some[node].name, begin) for node in self.nodes}
            self.nest.print_loops(self.nest.loops, lambda: self.nest.print_body(self.places, steps))
        place(low, number, parts, block, large=True)
        self.short = False
        totals = {node: self._cleared(node, size, self._dtype(node)) for node in self.nodes}
        with low.nested() as block:
            for node in self.nodes:
                with low.nested() as columns:
                    target, part = f"{totals[node].name}[{index}]", f"{some[node].name}[{number} * {size} + {index}]"
                    self._add(node, target, part, self._narrow(node), self._dtype(node))
                low.loop(index, size, columns)
        low.loop(number, parts, block)
        return totals

    def _rows_together(self, running: Sequence[Loop], some: Buffers, begin: str) -> None:
        """Adds several rows at a time to the totals; leaves the last ones of the part to a loop over them."""
        low, (rows, columns) = self.low, running
        assert rows.bounds is not None
        known = dict(self.nest.texts)
        start, end = (low.assign(bound, "row") for bound in rows.bounds.split(", ", 1))
        rest = low.assign(f"{end} - ({end} - {start}) % {_TOGETHER}", "rest")
        first = low.names.fresh("row")
        places = {node: f"{some[node].name}[{begin} + {columns.index}]" for node in self.nodes}
        with low.nested() as block:
            with low.nested() as column:
                totals = {node: low.assign(places[node], "total") for node in self.nodes}
                steps = {node: self._step(node, totals[node]) for node in self.nodes}
                rows.bounds = f"{first}, {first} + {_TOGETHER}"
                self.nest.print_loops([rows], lambda: self.nest.print_body(self.places, steps))
                for node in self.nodes:
                    low.line(f"{places[node]} = {totals[node]}")
            low.loop(columns.index, columns.range, column)
        low.loop(first, f"{start}, {rest}, {_TOGETHER}", block)
        self.nest.texts = known
        rows.bounds = f"{rest}, {end}"

    def _split(self, loop: Loop, length: str) -> tuple[str, str]:
        """The variable that counts parts of a loop, and how many there are."""
        number = self.low.index_name(len(self.nest.loops))
        return number, self.low.assign(f"({loop.size} + {length} - 1) // {length}", "parts")

    def _set_bounds(self, loop: Loop, number: str, length: str) -> None:
        begin = self.low.assign(f"{number} * {length}", "begin")
        loop.bounds = f"{begin}, min({begin} + {length}, {loop.size})"

    # --- totals --------------------------------------------------------------------------------------------------

    def _dtype(self, node: Node) -> Any:
        return accumulator(_reduction(node), node.inputs[0].dtype, self.short)

    def _narrow(self, node: Node) -> Any:
        """The dtype of a part's totals."""
        return accumulator(_reduction(node), node.inputs[0].dtype, short=True)

    def _start(self, node: Node, dtype: Any) -> str:
        """A variable that holds the neutral element."""
        start = spelling.literal(_reduction(node).start(dtype), dtype)
        name = node.outputs[0].name or node.op.name.removeprefix("reduce_").split("_")[0]
        return str(self.low.assign(start, name))

    def _add(self, node: Node, target: str, value: str, source: Any, dtype: Any) -> None:
        name = self.low.assign(spelling.convert(value, source, dtype), "v")
        self.low.line(f"{target} = {spelling.strip(REDUCTIONS[node.op.name].step(target, name, dtype))}")

    def _accumulate(self, inside: Sequence[Loop]) -> dict[Node, str]:
        totals = {node: self._start(node, self._dtype(node)) for node in self.nodes}
        steps = {node: self._step(node, totals[node]) for node in self.nodes}
        self.nest.print_loops(inside, lambda: self.nest.print_body(self.places, steps))
        return totals

    def _step(self, node: Node, total: str) -> Callable[[str], None]:
        if node.op.name in EXTREMES:
            where = self.where[node] = self.low.assign("0", "place")

            def look(value: str) -> None:
                self.low.branch(
                    f"{value} {EXTREMES[node.op.name][1]} {total}",
                    self.low.lines(f"{total} = {value}", f"{where} = {self._position()}"),
                )

            return look
        step, dtype = REDUCTIONS[node.op.name].step, self._dtype(node)
        return lambda value: self.low.line(f"{total} = {spelling.strip(step(total, value, dtype))}")

    def _position(self) -> str:
        """Where the nest is along the axis that is reduced."""
        return next(loop.index for loop in self.nest.loops if self.axes[0] in loop.axes)

    def _cleared(self, node: Node, size: str, dtype: Any) -> Buffer:
        """Memory for the totals of all columns, each the neutral element."""
        total: Buffer = self.low.new_buffer(size, dtype, node.outputs[0].name)
        index = self.low.index_name(0)
        lines = [f"{total.name}[{index}] = {spelling.literal(_reduction(node).start(dtype), dtype)}"]
        if node.op.name in EXTREMES:
            own = node.outputs[0].dtype
            self.where[node] = self.low.new_buffer(size, own, node.outputs[0].name).name
            lines.append(f"{self.where[node]}[{index}] = {spelling.literal(0, own)}")
        self.low.loop(index, size, self.low.lines(*lines))
        return total

    def _place_of(self, node: Node) -> Access:
        """How the nest walks over the results of a reduction."""
        access = Access(self.low, Array(Buffer("", node.outputs[0].dtype), self.kept), self.nest.dims)
        access.kinds = ["one" if axis in self.axes else "full" for axis in range(len(self.nest.dims))]
        return access

    def _column_step(self, node: Node, buffer: str, begin: str) -> Callable[[str], None]:
        """Adds to a column's total; `begin`: where the totals lie."""
        access, dtype = self._place_of(node), self._dtype(node)

        def step(value: str) -> None:
            at = access.offset(self.nest.loops, self.nest.name_offset)
            place_ = f"{buffer}[{begin} + {at}]" if begin else f"{buffer}[{at}]"
            if node.op.name in EXTREMES:
                where = f"{self.where[node]}[{at}]"
                better = f"{value} {EXTREMES[node.op.name][1]} {place_}"
                position = f"{spelling.type_name(node.outputs[0].dtype)}({self._position()})"
                self.low.line(f"{where} = {position} if {better} else {where}")
                self.low.line(f"{place_} = {value} if {better} else {place_}")
                return
            self.low.line(f"{place_} = {spelling.strip(REDUCTIONS[node.op.name].step(place_, value, dtype))}")

        return step

    # --- results -------------------------------------------------------------------------------------------------

    def _result(self, node: Node, total: str) -> str:
        if node.op.name in EXTREMES:
            return f"{spelling.type_name(node.outputs[0].dtype)}({self.where[node]})"
        count = product([self.nest.dims[a] for a in self.axes])
        return result(REDUCTIONS[node.op.name], total, closed(count), node.outputs[0].dtype, self.short)

    def check_means(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            if node.op.name == "reduce_mean" and not node.outputs[0].dtype.is_floating:
                message = "Integer division by zero: the mean of no elements [Op:Mean]"
                self.low.fail_when(f"{product(self.nest.dims)} == 0", "InvalidArgumentError", message, node, (), "Mean")

    def _define_single(self, node: Node, total: str) -> None:
        text = self._result(node, total)
        if not text.isidentifier():
            text = self.low.assign(text, node.outputs[0].name)
        output = node.outputs[0]
        if output.type.rank == 0:  # type: ignore[union-attr]
            self.low.define(output, Scalar(text, output.dtype))
            return
        dims: Dims = ("1",) * (output.type.rank or 0)  # type: ignore[union-attr]
        self.low.define(output, Virtual(output.dtype, dims, lambda indices: text, uniform=True))

    def _define_array(self, node: Node, buffer: Buffer) -> None:
        self.low.define(node.outputs[0], Array(buffer, self.nest.group.results[node]))
