"""Windows in kernels for GPUs: a thread computes an element, neighbouring threads those of neighbouring channels.

    %y = max_pool(%x)       for i in range(windows):                # threads share both loops
                                for c in range(channels):
                     →              best = -inf
                                    for e in range(elements of a window):
                                        if that element is in the image:
                                            best = max(best, x[...])
                                    y[i * channels + c] = best

    %w = patches(%x)        for i in range(windows * rows of a window):    # warps share the rows
                     →          ...
                                for m in range(columns * channels):        # they lie together in the image
                                    w[...] = x[...] if m is in the image else 0

Sums take their terms in the order of the processor's kernels (`windows.py`), so that they have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable

from runtime.codegen.kernel import scalars
from runtime.codegen.kernel.values import Array, Buffer, product
from runtime.codegen.op_lowerings.windows import Windows
from runtime.kernel_ir import ir

_ROW, _CHANNEL, _ELEMENT = 0, 1, 2  # depths of loops
Visit = Callable[[ir.Expr, ir.Expr], None]


class ByElement:
    """The loops over windows, or over the places of an image, that threads share."""

    def __init__(self, windows: Windows) -> None:
        self.windows, self.low = windows, windows.low

    def each_window(self, body: Visit) -> None:
        """Adds a loop over the windows and channels: body(window, channel)."""
        self._nest(product([self.windows.batch, *self.windows.places]), body)

    def each_place(self, body: Visit) -> None:
        """Adds a loop over the image's places and channels: body(place, channel)."""
        self._nest(product([self.windows.batch, *self.windows.space]), body)

    def _nest(self, count: ir.Expr, body: Visit) -> None:
        low = self.low
        row, channel = low.index_name(_ROW), low.index_name(_CHANNEL)
        with low.nested() as block:
            body(row, channel)
        with low.nested() as outer:
            low.nest(channel, self.windows.channels, block, False, may_join=False, independent=True)
        low.nest(row, low.atom(count), outer, False, may_join=False, independent=True)

    def elements(self, window: ir.Expr, visit: Visit) -> None:
        """Calls visit(element, place) for each element of a window that is in the image, and its place there."""
        windows, low = self.windows, self.low
        batch, *at = windows.split(window, [windows.batch, *windows.places])
        axes = zip(at, windows.strides, windows.before)
        first = [low.assign(place * stride - before, "at") for place, stride, before in axes]

        def body(element: ir.Var) -> None:
            tests: list[ir.Expr] = []
            place = batch
            offsets = windows.split(element, windows.sizes)
            for begin, offset, rate, length in zip(first, offsets, windows.rates, windows.space):
                where = low.assign(begin + offset * rate, "at")
                tests += [where.compare(">=", 0), where.compare("<", length)]
                place = place * length + where
            found = low.assign(place, "place")
            windows.when(ir.both(*tests) if windows.padded else None, lambda: visit(element, found))

        windows.loop(_ELEMENT, ir.as_expr(windows.elements), body)

    def sources(self, place: ir.Expr, visit: Visit) -> None:
        """Calls visit(element, window) for all elements of windows that came from a place of the image."""
        windows, low = self.windows, self.low
        batch, *at = windows.split(place, [windows.batch, *windows.space])
        first = [low.assign(where + before, "at") for where, before in zip(at, windows.before)]

        def body(element: ir.Var) -> None:
            tests: list[ir.Expr] = []
            window = batch
            offsets = windows.split(element, windows.sizes)
            axes = zip(first, offsets, windows.rates, windows.strides, windows.places)
            for begin, offset, rate, stride, count in axes:
                distance = low.assign(begin - offset * rate, "distance")
                number = low.assign(distance // stride, "number")
                tests += [distance.compare(">=", 0), number.compare("<", count)]
                if stride > 1:
                    tests.append((distance % stride).compare("==", 0))
                window = window * count + number
            found = low.assign(window, "window")
            windows.when(ir.both(*tests), lambda: visit(element, found))

        windows.loop(_ELEMENT, ir.as_expr(windows.elements), body)

    def write(self, image: Array, out: ir.Var, fill: ir.Const) -> None:
        """Writes all windows to `out`, with `fill` outside of the image."""
        windows, low = self.windows, self.low
        together = windows.rates[-1] == 1  # whether the columns of a window's row are contiguous
        columns = windows.sizes[-1] if together else 1
        of_window = windows.sizes[:-1] if together else windows.sizes
        channels, length = windows.channels, windows.space[-1]
        run = low.atom(channels * columns, "run")

        def part(i: ir.Var) -> None:
            dims = [windows.batch, *windows.places, windows.elements // columns]
            batch, *at, number = windows.split(i, dims)
            offsets = windows.split(number, of_window) if of_window else []
            offsets += [ir.ZERO] * (len(at) - len(offsets))
            tests: list[ir.Expr] = []
            row = batch
            first: ir.Expr = ir.ZERO
            axes = zip(at, offsets, windows.strides, windows.rates, windows.before, windows.space)
            for axis, (place, offset, stride, rate, before, size) in enumerate(axes):
                first = low.assign(place * stride - before + offset * rate, "at")
                if axis < len(at) - 1:
                    tests += [first.compare(">=", 0), first.compare("<", size)]
                    row = row * size + first
            begin = low.assign((row * length + first) * channels, "from")
            to = low.assign(i * run, "to")
            value: Callable[[ir.Expr], ir.Expr] = lambda m: ir.load(image.buffer.variable, begin + m)  # noqa: E731
            if windows.padded:
                left = low.assign(-(first * channels), "left")
                right = low.assign((length - first) * channels, "right")
                right = low.assign(ir.both(*tests).choose(right, ir.ZERO), "right") if tests else right

                def value(m: ir.Expr) -> ir.Expr:
                    inside = ir.both(m.compare(">=", left), m.compare("<", right))
                    return inside.choose(ir.load(image.buffer.variable, begin + m), fill)

            index = low.index_name(_CHANNEL)
            with low.nested() as block:
                low.add(ir.store(out, to + index, value(index)))
            low.nest(index, run, block, False, may_join=False, independent=True)

        rows = low.index_name(_ROW)
        with low.nested() as block:
            part(rows)
        count = product([windows.batch, *windows.places, low.static_dim(windows.elements // columns)])
        low.nest(rows, low.atom(count), block, False, may_join=False, independent=True)


def col2im(windows: Windows, out: Buffer, term: Callable[[ir.Expr, ir.Expr, ir.Expr], ir.Expr], large: bool) -> None:
    """Writes an image of sums: of the elements of windows that came from each place. term(element, window, channel)
    computes one. large: threads of the processor share the rows."""
    low = windows.low
    if low.for_device:
        by_element = ByElement(windows)

        def one(place: ir.Expr, c: ir.Expr) -> None:
            total = low.assign(scalars.literal(0, out.dtype), "total")

            def visit(element: ir.Expr, window: ir.Expr) -> None:
                low.add(ir.assign(total, scalars.narrow(total + term(element, window, c), out.dtype)))

            by_element.sources(place, visit)
            low.add(ir.store(out.variable, place * windows.channels + c, total))

        by_element.each_place(one)
        return

    def row(i: ir.Var) -> None:
        begin, width = windows.begin_of_row(i)
        windows.clear(out, begin, width)
        windows.add_up(out, begin, i, term)

    windows.nest(low.atom(product([windows.batch, *windows.space[:-1]])), large, row)
