"""The windows of an image in a kernel for the processor: loops over them, over their elements in the image, and over
those that came from a row of the image. `patches.py` has examples."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy

from runtime.codegen import cost_model
from runtime.codegen.kernel import scalars
from runtime.codegen.kernel.values import Array, Buffer, product
from runtime.codegen.lower.state import Bounds, Lowering
from runtime.codegen.symbolic.ranges import Atom
from runtime.graph.ir import Node, Value
from runtime.kernel_ir import ir
from runtime.types import TensorType


class Windows:
    """The windows of a node over an image: their positions, and the loops over them."""

    def __init__(
        self, low: Lowering, node: Node, image: Sequence[Atom], channels: int | None,
        places: Sequence[Atom] | None = None,
    ) -> None:  # fmt: skip
        """image: its dimensions. channels: their number, if it is static. places: the number of windows along each
        spatial dimension, where it is known."""
        self.low, self._depth = low, 0
        attrs = node.attrs
        self.sizes, self.strides, self.rates = attrs["sizes"], attrs["strides"], attrs["rates"]
        self.batch, *self.space = image[:-1]
        self.span = [span_of(low, size, rate) for size, rate in zip(self.sizes, self.rates)]
        padding = attrs["padding"]
        axes = range(len(self.sizes))
        self.places = list(places) if places is not None else [self._places(axis, padding) for axis in axes]
        self.before = [self._before(axis, padding) for axis in axes]
        self.padded = padding != "VALID"
        is_short = channels is not None and channels <= cost_model.WINDOW_UNROLL
        self.channels: ir.Expr = ir.as_expr(channels) if channels is not None and is_short else image[-1]
        self.rows = math.prod(self.sizes[:-1])  # of a window
        self.elements = self.rows * self.sizes[-1]

    def _places(self, axis: int, padding: object) -> Atom:
        length, stride = self.space[axis], self.strides[axis]
        if padding == "SAME":
            return self.low.atom((length + stride - 1) // stride)
        before, after = (0, 0) if padding == "VALID" else padding[axis]  # type: ignore[index]
        return self.low.atom(ir.call("max", (length + (before + after - self.span[axis])) // stride + 1, 0))

    def _before(self, axis: int, padding: object) -> ir.Expr:
        """The number of elements that padding adds before the image."""
        if padding != "SAME":
            return ir.as_expr(0 if padding == "VALID" else padding[axis][0])  # type: ignore[index]
        reach = (self.places[axis] - 1) * self.strides[axis] + self.span[axis]
        return self.low.atom(ir.call("max", reach - self.space[axis], 0) // 2)

    def split(self, number: ir.Expr, dims: Sequence[ir.Expr | int]) -> list[ir.Expr]:
        """The indices of the element with this number. The size of the first dimension isn't needed."""
        found: list[ir.Expr] = []
        for size in reversed(dims[1:]):
            found.append(self.low.assign(number % size, "at"))
            number = self.low.assign(number // size, "at")
        return [number, *reversed(found)]

    def loop(self, depth: int, bounds: Bounds, body: Callable[[ir.Var], None]) -> None:
        self.low.loop_over(self._depth + depth, bounds, body)

    def nest(self, size: ir.Expr, large: bool, body: Callable[[ir.Var], None]) -> None:
        index = self.low.index_name(self._depth)
        with self.low.nested() as block:
            body(index)
        self.low.nest(index, size, block, large, may_join=False)

    def when(self, test: ir.Expr | None, body: Callable[[], None], other: Callable[[], None] | None = None) -> None:
        if test is None:
            body()
            return
        with self.low.nested() as block:
            body()
        with self.low.nested() as orelse:
            if other is not None:
                other()
        self.low.branch(test, block, orelse)

    def each(self, large: bool, visit: Callable[[ir.Expr, ir.Expr, list[ir.Expr]], None]) -> None:
        """Adds loops over windows. visit(number, batch, at): lowers the body for a window that begins at `at` in the
        image."""
        rows = self.low.atom(product([self.batch, *self.places[:-1]]))
        self.nest(rows, large, lambda i: self.each_of_row(i, visit))

    def each_of_row(self, i: ir.Var, visit: Callable[[ir.Expr, ir.Expr, list[ir.Expr]], None]) -> None:
        """Adds a loop over the windows of row `i`, one for each position along the last dimension. visit: as in
        `each`."""
        batch, *outer = self.split(i, [self.batch, *self.places[:-1]])

        def window(j: ir.Var) -> None:
            number = self.low.assign(i * self.places[-1] + j, "window")
            axes = zip([*outer, j], self.strides, self.before)
            visit(number, batch, [self.low.assign(place * stride - before, "at") for place, stride, before in axes])

        self.loop(1, self.places[-1], window)

    def each_row(
        self, batch: ir.Expr, at: Sequence[ir.Expr], visit: Callable[[ir.Expr, ir.Expr, ir.Expr | None], None]
    ) -> None:
        """Calls visit(k, row, inside) for each row of the window at `at`. row: its number in the image. inside: the
        condition that the image has this row; None if it always does."""

        def body(k: ir.Var) -> None:
            offsets = self.split(k, self.sizes[:-1])
            tests: list[ir.Expr] = []
            row = batch
            for position, offset, rate, length in zip(at, offsets, self.rates, self.space[:-1]):
                where = self.low.assign(position + offset * rate, "row")
                tests += [where.compare(">=", 0), where.compare("<", length)]
                row = row * length + where
            visit(k, self.low.assign(row, "row"), ir.both(*tests) if tests and self.padded else None)

        if self.rows == 1 and len(self.sizes) == 1:
            visit(ir.ZERO, batch, None)
        else:
            self.loop(2, ir.as_expr(self.rows), body)

    def copy_window(
        self, array: Array, batch: ir.Expr, at: list[ir.Expr], out: ir.Var, number: ir.Expr, fill: ir.Const
    ) -> None:  # fmt: skip
        """Writes the elements of the window at `at` to `out`, after `number` other windows."""
        low, length, channels = self.low, self.space[-1], self.channels
        together = self.rates[-1] == 1  # whether the elements of a window's row are contiguous
        run = channels * self.sizes[-1] if together else channels
        if together and isinstance(channels, ir.Const) and channels.value * self.sizes[-1] <= cost_model.WINDOW_UNROLL:
            run = ir.as_expr(int(channels.value) * self.sizes[-1])

        def put(to: ir.Expr, value: Callable[[ir.Expr], ir.Expr], bounds: Bounds) -> None:
            self.loop(4, bounds, lambda j: low.add(ir.store(out, to + j, value(j))))

        def part(to: ir.Expr, row: ir.Expr, first: ir.Expr, inside: ir.Expr | None) -> None:
            """Copies contiguous elements of the image, from column `first` of a row on."""
            begin = low.assign(row * length * array.dims[-1] + first * channels, "from")

            def element(j: ir.Expr) -> ir.Expr:
                return ir.load(array.buffer.variable, begin + j)

            def cut() -> None:
                """Copies the elements that are in the image."""
                left = low.assign(ir.call("min", ir.call("max", -(first * channels), 0), run), "left")
                right = low.assign(ir.call("max", ir.call("min", (length - first) * channels, run), left), "right")
                put(to, lambda j: fill, (ir.ZERO, left))
                put(to, element, (left, right))
                put(to, lambda j: fill, (right, run))

            def copied() -> None:
                # Usually all are in the image, and their number is constant.
                count = self.sizes[-1] if together else 1
                whole = ir.both(first.compare(">=", 0), first.compare("<=", length - count)) if self.padded else None
                self.when(whole, lambda: put(to, element, run), cut)

            self.when(inside, copied, lambda: put(to, lambda j: fill, run))

        def row(k: ir.Expr, row: ir.Expr, inside: ir.Expr | None) -> None:
            to = (number * self.elements + k * self.sizes[-1]) * channels
            if together:
                part(low.assign(to, "to"), row, at[-1], inside)
                return

            def column(o: ir.Var) -> None:
                part(low.assign(to + o * channels, "to"), row, low.assign(at[-1] + o * self.rates[-1], "at"), inside)

            self.loop(3, ir.as_expr(self.sizes[-1]), column)

        self.each_row(batch, at, row)

    def copy_row(self, array: Array, i: ir.Var, out: ir.Var, before: ir.Expr) -> None:
        """Writes the windows of a row to `out`, after `before` others, with zeros outside of the image. (One call for
        each row of a window: see `kernel_library/windows.py`.)"""
        low, length, channels = self.low, self.space[-1], array.dims[-1]
        batch, *outer = self.split(i, [self.batch, *self.places[:-1]])
        axes = zip(outer, self.strides, self.before)
        at = [low.assign(place * stride - before, "at") for place, stride, before in axes]
        step = low.assign(channels * self.elements, "step")
        together = self.rates[-1] == 1  # whether the elements of a window's row are contiguous

        def row(k: ir.Expr, row: ir.Expr, inside: ir.Expr | None) -> None:
            to = low.assign(before * step + k * self.sizes[-1] * channels, "to")
            # A row outside of the image is one without columns.
            begin = low.assign(row * length * channels, "from")
            columns = length if inside is None else low.assign(inside.choose(length, ir.ZERO), "columns")

            def copied(first: ir.Expr, offset: ir.Expr, count: int) -> None:
                low.add(ir.Run(ir.call(
                    "lib.copy_windows", array.buffer.variable, begin, columns, channels, out, to + offset, step,
                    self.places[-1], first, self.strides[-1], count,
                )))  # fmt: skip

            if together:
                copied(-self.before[-1], ir.ZERO, self.sizes[-1])
            else:
                each = ir.as_expr(self.sizes[-1])
                self.loop(3, each, lambda o: copied(o * self.rates[-1] - self.before[-1], o * channels, 1))

        self.each_row(batch, at, row)

    def inside(self, depth: int) -> Windows:
        """The same windows, lowered inside `depth` loops."""
        found = copy(self)
        found._depth = depth
        return found

    def begin_of_row(self, number: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
        """The offset of a row of the image, and its length."""
        width = self.low.assign(self.space[-1] * self.channels, "width")
        return self.low.assign(number * width, "begin"), width

    def clear(self, out: Buffer, begin: ir.Expr, width: ir.Expr) -> None:
        """Sets a row of an array of the image's shape to zero."""
        zero = scalars.literal(0, out.dtype)
        self.loop(1, width, lambda j: self.low.add(ir.store(out.variable, begin + j, zero)))

    def add_up(
        self, out: Buffer, begin: ir.Expr, number: ir.Expr, term: Callable[[ir.Expr, ir.Expr, ir.Expr], ir.Expr],
        among: tuple[ir.Expr, ir.Expr] | None = None,
    ) -> None:  # fmt: skip
        """Adds to a row the elements that were taken from it; term(element, window, channel) computes one."""

        def add(element: ir.Expr, window: ir.Expr, at: ir.Expr, channel: ir.Expr) -> None:
            found = term(element, window, channel)
            total = ir.load(out.variable, begin + at)
            self.low.add(ir.set_to(total, scalars.narrow(total + found, out.dtype)))

        self.each_source(number, add, among)

    def reached(self, first: ir.Expr, last: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
        """The first row of an image that some rows of windows reach, and the row after the last."""
        if len(self.sizes) == 1:
            return ir.ZERO, ir.ONE
        low, inner = self.low, product(self.places[1:-1])
        top = low.assign(first // inner * self.strides[0] - self.before[0], "top")
        bottom = low.assign((last - 1) // inner * self.strides[0] - self.before[0] + self.span[0], "bottom")
        rows = product(self.space[1:-1])
        return ir.call("max", top, 0) * rows, ir.call("min", bottom, self.space[0]) * rows

    def each_source(
        self, number: ir.Expr, visit: Callable[[ir.Expr, ir.Expr, ir.Expr, ir.Expr], None],
        among: tuple[ir.Expr, ir.Expr] | None = None,
    ) -> None:  # fmt: skip
        """Calls visit(element, window, at, channel) for all elements of windows that came from a row of the image, in
        the order of the elements. at: the index in that row. among: the first row of windows to visit, and the one
        after the last."""
        low = self.low
        batch, *rows = self.split(number, [self.batch, *self.space[:-1]])

        def elements(k: ir.Expr, windows: ir.Expr) -> None:
            def column(o: ir.Var) -> None:
                stride, length = self.strides[-1], self.space[-1]
                shift = low.assign(o * self.rates[-1] - self.before[-1], "shift")
                begin = low.assign(ir.call("max", -(shift // stride), 0), "begin")
                end = low.assign(ir.call("min", (length - 1 - shift) // stride + 1, self.places[-1]), "end")
                element = low.assign(k * self.sizes[-1] + o, "element")

                def place(p: ir.Var) -> None:
                    window = low.assign(windows * self.places[-1] + p, "window")
                    at = low.assign((p * stride + shift) * self.channels, "at")
                    self.loop(4, self.channels, lambda c: visit(element, window, at + c, c))

                self.loop(3, (begin, end), place)

            self.loop(2, ir.as_expr(self.sizes[-1]), column)

        def body(k: ir.Var) -> None:
            offsets = self.split(k, self.sizes[:-1])
            tests: list[ir.Expr] = []
            windows = batch
            for axis, (row, offset) in enumerate(zip(rows, offsets)):
                from_first = low.assign(row + self.before[axis] - offset * self.rates[axis], "row")
                place = low.assign(from_first // self.strides[axis], "place")
                tests += [from_first.compare(">=", 0), place.compare("<", self.places[axis])]
                if self.strides[axis] > 1:
                    tests.append((from_first % self.strides[axis]).compare("==", 0))
                windows = windows * self.places[axis] + place
            found = low.assign(windows, "windows")
            if among is not None:
                tests += [found.compare(">=", among[0]), found.compare("<", among[1])]
            self.when(ir.both(*tests), lambda: elements(k, found))

        if len(self.sizes) == 1:
            elements(ir.ZERO, batch)
        else:
            self.loop(1, ir.as_expr(self.rows), body)


def span_of(low: Lowering, size: int, rate: int) -> int | ir.Var:
    """The elements of an image from the first to the last one of a window. That of dilated windows isn't part of the
    text, so layers with growing rates share a kernel."""
    return size if rate == 1 else low.static_number((size - 1) * rate + 1, "span")


def channels_of(value: Value) -> int | None:
    """The last dimension of a value, if it is static."""
    assert isinstance(value.type, TensorType)
    return value.type.shape[-1] if value.type.shape is not None else None
