"""Lowerings of products of windows with filters. Many windows with few filters are made a strip at a time.

    %y = convolution(%x, %w)     for i in range(lanes):                           # on threads
                                     for s in range(strips of the lane):
                              →          work[...] = rows of windows              # in the second-level cache
                                         lib.gemm(work, ..., w, 0, y, ..., 1)

A strip consists of some rows of windows. A lane consists of strips that use the same memory one after the other;
threads take lanes. Without strips, all windows would be written to memory and read again, which takes longer than their
product. Other windows are made all at once, and all threads compute one product.

    convolution               the windows times the filters
    convolution_filters_grad  the transposed windows times the cotangent: a sum for each lane, then their total. The
                              number of lanes doesn't depend on the number of threads
    convolution_input_grad    the cotangent times the transposed filters, which gives windows; they are added to the
                              image. A lane has whole images, and takes the strips of an image from the last to the
                              first, so that each sum has its terms in the order of `patches_grad`
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence

from runtime.codegen import cost_model
from runtime.codegen.kernel import scalars
from runtime.codegen.kernel.values import Array, Buffer, product
from runtime.codegen.lower.state import Lowering, emitter
from runtime.codegen.op_lowerings.linalg import product_call
from runtime.codegen.op_lowerings.view import filled
from runtime.codegen.op_lowerings.windows import Windows
from runtime.codegen.passes.parallelize import thread_count_in
from runtime.codegen.symbolic.ranges import Atom
from runtime.dtypes import DType
from runtime.graph.ir import Node, Value
from runtime.kernel_ir import ir
from runtime.ops.nn.patches import window_dims
from runtime.ops.nn.window_products import CHANNELS, DEPTHS, PLACES, SIZES
from runtime.types import TensorType

_LANE, _STRIP, _ROW = 0, 1, 2  # depths of loops


class _Sizes:
    """The static sizes of a convolution's windows and filters."""

    def __init__(self, low: Lowering, node: Node, of_windows: Value, image: Sequence[int | None], depth: int | None):
        """of_windows: a value whose dimensions before the last are the windows' batch and places."""
        lead = _shape(of_windows)[:-1]
        terms = (math.prod(node.attrs["sizes"]), image[-1])
        known = None not in (*lead, *terms, depth)
        self.images: int = lead[0] or 0 if known else 0
        self.elements: int = math.prod((*lead, *terms)) if known else 0  # type: ignore[arg-type]  # of all windows
        self.depth: int = depth or 0 if known else 0
        self.filters: int = math.prod((*terms, depth)) if known else 0  # type: ignore[arg-type]
        dtype = node.outputs[0].dtype
        self.is_large = self.elements * self.depth >= cost_model.GEMM_MULTIPLICATIONS
        has_threads = sys.platform != "win32" and not low.for_device
        self.on_threads = has_threads and self.elements >= cost_model.PARALLEL_WORK
        self.in_strips = (
            dtype.is_floating
            and has_threads
            and self.elements * dtype.np.itemsize >= 2 * cost_model.CONVOLUTION_STRIP
            and self.elements * self.depth >= cost_model.PARALLEL_WORK
            and 0 < self.depth <= cost_model.CONVOLUTION_DEPTH
        )


def _shape(value: Value) -> tuple[int | None, ...]:
    assert isinstance(value.type, TensorType)
    assert value.type.shape is not None  # kernels have no values of unknown rank
    return value.type.shape


def check_same(low: Lowering, node: Node, what: str, one: Atom, other: Atom) -> None:
    if one != other:
        message = f"{what} differ: {{0}} and {{1}} [Op:{node.op.label}]"
        low.fail_when(one.compare("!=", other), "InvalidArgumentError", message, node, (one, other), node.op.label)


def check_filters(low: Lowering, node: Node, channels: Atom, filters: Sequence[Atom]) -> None:
    """filters: the dimensions (*sizes, channels, depth)."""
    for size, own in zip(node.attrs["sizes"], filters):
        check_same(low, node, SIZES, own, low.static_dim(size))
    check_same(low, node, CHANNELS, channels, filters[-2])


def windows_over(low: Lowering, node: Node, image: Array) -> Windows:
    _, *places, channels = window_dims(_shape(node.inputs[0]), node.attrs)
    known = None if None in places else [low.static_dim(each) for each in places]  # type: ignore[arg-type]
    return Windows(low, node, image.dims, channels, known)


def _add(low: Lowering, out: Buffer, at: ir.Expr, term: ir.Expr) -> None:
    total = ir.load(out.variable, at)
    low.add(ir.set_to(total, scalars.narrow(total + term, out.dtype)))


class _Convolution:
    """One of the three ops in a kernel: its windows, and the loops over strips of them."""

    def __init__(self, low: Lowering, windows: Windows, channels: Atom, dtype: DType, depth: Atom) -> None:
        """depth: the number of filters."""
        self.low, self.dtype, self.depth = low, dtype, depth
        self.all, self.of_strip = windows, windows.inside(_ROW)
        self.places = windows.places[-1]  # windows in a row
        self.zero = scalars.literal(0, dtype)
        self.inner = low.atom(product([low.static_dim(windows.elements), channels]))  # elements of a window
        self.count = low.atom(product([windows.batch, *windows.places]))  # windows

    # --- all windows at once -----------------------------------------------------------------------------------------

    def written(self, image: Array, on_threads: bool) -> Buffer:
        out = self.low.new_buffer(self.count * self.inner, self.dtype, "windows")
        if not self.low.for_device:
            rows = self.low.atom(product([self.all.batch, *self.all.places[:-1]]))
            self.all.nest(rows, on_threads, lambda i: self.all.copy_row(image, i, out.variable, i * self.places))
            return out
        self.all.each(
            on_threads,
            lambda number, batch, at: self.all.copy_window(image, batch, at, out.variable, number, self.zero),
        )
        return out

    # --- strips ------------------------------------------------------------------------------------------------------

    def strips(self, rows: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
        """The number of rows of windows in a strip, and the number of strips."""
        low = self.low
        most = cost_model.CONVOLUTION_STRIP // self.dtype.np.itemsize
        row = low.assign(self.all.places[-1] * self.inner, "row")
        height = low.assign(ir.call("max", ir.as_expr(most) // row, 1), "height")
        return height, low.assign((rows + height - 1) // height, "strips")

    def lanes(self, items: ir.Expr) -> ir.Expr:
        """The number of lanes for so many items; the results don't depend on it."""
        threads = ir.size_variable(thread_count_in(self.low.constants))
        return self.low.assign(ir.call("min", threads * cost_model.CONVOLUTION_LANES, items), "lanes")

    def each_lane(self, lanes: ir.Expr, body: Callable[[ir.Var], None]) -> None:
        lane = self.low.index_name(_LANE)
        with self.low.nested() as block:
            body(lane)
        self.low.nest(lane, lanes, block, large=True, may_join=False)

    def each_item(self, lane: ir.Var, lanes: ir.Expr, items: ir.Expr, body: Callable[[ir.Var], None]) -> None:
        """Adds a loop over the items of a lane."""
        begin, end = (self.low.assign(each * items // lanes, "begin") for each in (lane, lane + 1))
        self.loop(_STRIP, (begin, end), body)

    def loop(self, depth: int, bounds: tuple[ir.Expr, ir.Expr], body: Callable[[ir.Var], None]) -> None:
        index = self.low.index_name(depth)
        with self.low.nested() as block:
            body(index)
        self.low.loop(index, bounds, block)

    def make_strip(self, image: Array, work: Buffer, place: ir.Expr, first: ir.Expr, last: ir.Expr) -> None:
        """Writes the windows of some rows to `work`, after `place` others."""
        windows = self.of_strip
        begin = self.low.assign(place - first * self.places, "before")

        def row(r: ir.Var) -> None:
            windows.copy_row(image, r, work.variable, self.low.assign(begin + r * self.places, "place"))

        self.loop(_ROW, (first, last), row)

    def term(self, windows: Buffer, element: ir.Expr, window: ir.Expr, channel: ir.Expr) -> ir.Expr:
        """An element of windows in memory."""
        place = (window * self.all.elements + element) * self.all.channels + channel
        return ir.load(windows.variable, place)

    def product(
        self, arrays: Sequence[Buffer], places: Sequence[ir.Expr], sizes: tuple[ir.Expr, ...], flips: tuple[bool, bool],
        is_large: bool = True, threads: int | None = 1,
    ) -> None:  # fmt: skip
        variables = [each.variable for each in arrays]
        on = None if threads is None else ir.as_expr(threads)
        truths = tuple(map(ir.truth, flips))
        self.low.add(product_call(self.low, self.dtype, variables, places, sizes, truths, is_large, on))  # type: ignore[arg-type]


_START = (ir.ZERO,) * 3


@emitter("convolution")
def _convolution(low: Lowering, node: Node) -> None:
    (x, w), output = map(low.array, node.inputs), node.outputs[0]
    c = _Convolution(low, windows_over(low, node, x), x.dims[-1], output.dtype, w.dims[-1])
    check_filters(low, node, x.dims[-1], w.dims)
    dims = low.type_dims(output.type, (x.dims[0], *c.all.places, c.depth))  # type: ignore[arg-type]
    out = low.new_buffer(product(dims), output.dtype, output.name)
    sizes = _Sizes(low, node, output, _shape(node.inputs[0]), _shape(node.inputs[1])[-1])
    if not sizes.in_strips:
        arrays = (c.written(x, sizes.on_threads), w.buffer, out)
        c.product(arrays, _START, (c.count, c.inner, c.depth), (False, False), sizes.is_large, None)
        low.define(output, Array(out, dims))
        return
    places = c.places
    rows = low.atom(product([x.dims[0], *c.all.places[:-1]]))
    height, strips = c.strips(rows)
    lanes = c.lanes(strips)
    work = low.new_buffer(lanes * height * places * c.inner, output.dtype, "windows")

    def lane(i: ir.Var) -> None:
        place = low.assign(i * height * places, "place")

        def strip(s: ir.Var) -> None:
            first = low.assign(s * height, "first")
            last = low.assign(ir.call("min", first + height, rows), "last")
            c.make_strip(x, work, place, first, last)
            starts = (place * c.inner, ir.ZERO, first * places * c.depth)
            c.product((work, w.buffer, out), starts, ((last - first) * places, c.inner, c.depth), (False, False))

        c.each_item(i, lanes, strips, strip)

    c.each_lane(lanes, lane)
    low.define(output, Array(out, dims))


@emitter("convolution_filters_grad")
def _filters_grad(low: Lowering, node: Node) -> None:
    (x, dy), output = map(low.array, node.inputs), node.outputs[0]
    c = _Convolution(low, windows_over(low, node, x), x.dims[-1], output.dtype, dy.dims[-1])
    for one, other in zip((x.dims[0], *c.all.places), dy.dims):
        check_same(low, node, PLACES, one, other)
    own = (*map(low.static_dim, node.attrs["sizes"]), x.dims[-1], c.depth)
    dims = low.type_dims(output.type, own)  # type: ignore[arg-type]
    out = low.new_buffer(product(dims), output.dtype, output.name)
    sizes = _Sizes(low, node, node.inputs[1], _shape(node.inputs[0]), _shape(node.inputs[1])[-1])
    if not sizes.in_strips or sizes.filters > cost_model.CONVOLUTION_FILTERS:
        arrays = (c.written(x, sizes.on_threads), dy.buffer, out)
        c.product(arrays, _START, (c.inner, c.count, c.depth), (True, False), sizes.is_large, None)
        low.define(output, Array(out, dims))
        return
    places = c.places
    rows = low.atom(product([x.dims[0], *c.all.places[:-1]]))
    height, strips = c.strips(rows)
    lanes = low.assign(ir.call("min", strips, cost_model.CONVOLUTION_SUMS), "lanes")
    size = low.atom(c.inner * c.depth, "size")
    work = low.new_buffer(lanes * height * places * c.inner, output.dtype, "windows")
    sums, parts = (low.new_buffer(lanes * size, output.dtype, name) for name in ("sums", "products"))

    def lane(i: ir.Var) -> None:
        place, begin = low.assign(i * height * places, "place"), low.assign(i * size, "at")
        c.loop(_ROW, (ir.ZERO, size), lambda j: low.add(ir.store(sums.variable, begin + j, c.zero)))

        def strip(s: ir.Var) -> None:
            first = low.assign(s * height, "first")
            last = low.assign(ir.call("min", first + height, rows), "last")
            c.make_strip(x, work, place, first, last)
            starts = (place * c.inner, first * places * c.depth, begin)
            c.product((work, dy.buffer, parts), starts, (c.inner, (last - first) * places, c.depth), (True, False))
            c.loop(_ROW, (ir.ZERO, size), lambda j: _add(low, sums, begin + j, ir.load(parts.variable, begin + j)))

        c.each_item(i, lanes, strips, strip)

    c.each_lane(lanes, lane)
    c.loop(_STRIP, (ir.ZERO, size), lambda j: low.add(ir.store(out.variable, j, c.zero)))

    def total(i: ir.Var) -> None:
        c.loop(_STRIP, (ir.ZERO, size), lambda j: _add(low, out, j, ir.load(sums.variable, i * size + j)))

    c.loop(_LANE, (ir.ZERO, lanes), total)
    low.define(output, Array(out, dims))


@emitter("convolution_input_grad")
def _input_grad(low: Lowering, node: Node) -> None:
    dy, w = map(low.array, node.inputs[:2])
    output, shape = node.outputs[0], node.attrs["shape"]
    dims = filled(low, node, shape, node.inputs[2:])
    c = _Convolution(low, Windows(low, node, dims, shape[-1], dy.dims[1:-1]), dims[-1], output.dtype, dy.dims[-1])
    check_same(low, node, DEPTHS, dy.dims[-1], w.dims[-1])
    check_filters(low, node, dims[-1], w.dims)
    check_same(low, node, PLACES, dims[0], dy.dims[0])
    out = low.new_buffer(product(dims), output.dtype, output.name)
    sizes = _Sizes(low, node, node.inputs[0], shape, _shape(node.inputs[1])[-1])
    low.define(output, Array(out, dims))
    if not sizes.in_strips or sizes.images < cost_model.CONVOLUTION_IMAGES:
        made = low.new_buffer(c.count * c.inner, output.dtype, "windows")
        arrays = (dy.buffer, w.buffer, made)
        c.product(arrays, _START, (c.count, c.depth, c.inner), (False, True), sizes.is_large, None)

        def row(i: ir.Var) -> None:
            begin, width = c.all.begin_of_row(i)
            c.all.clear(out, begin, width)
            c.all.add_up(out, begin, i, lambda element, window, channel: c.term(made, element, window, channel))

        c.all.nest(low.atom(product(dims[:-2])), sizes.on_threads, row)
        return
    places, windows = c.places, c.all.inside(_ROW + 1)
    rows = low.atom(product(c.all.places[:-1]))  # of an image's windows
    height, strips = c.strips(rows)
    lanes = c.lanes(dims[0])
    made = low.new_buffer(lanes * height * places * c.inner, output.dtype, "windows")
    own = low.atom(product(dims[1:-2]))  # rows of an image

    def lane(i: ir.Var) -> None:
        place = low.assign(i * height * places, "place")

        def image(b: ir.Var) -> None:
            begin = low.assign(b * own, "row")
            c.loop(_ROW, (begin, begin + own), lambda r: windows.clear(out, *windows.begin_of_row(r)))
            c.loop(_ROW, (ir.ZERO, strips), lambda s: strip(b, begin, s))

        def strip(b: ir.Var, begin: ir.Expr, s: ir.Var) -> None:
            first = low.assign((strips - 1 - s) * height, "first")
            last = low.assign(ir.call("min", first + height, rows), "last")
            top = low.assign(b * rows, "top")
            starts = ((top + first) * places * c.depth, ir.ZERO, place * c.inner)
            c.product((dy.buffer, w.buffer, made), starts, ((last - first) * places, c.depth, c.inner), (False, True))
            among = (low.assign(top + first, "first"), low.assign(top + last, "last"))
            before = low.assign(place - among[0] * places, "before")
            reached = [low.assign(begin + each, "row") for each in windows.reached(first, last)]

            def term(element: ir.Expr, window: ir.Expr, channel: ir.Expr) -> ir.Expr:
                return c.term(made, element, low.assign(before + window, "place"), channel)

            def add_up(r: ir.Var) -> None:
                windows.add_up(out, windows.begin_of_row(r)[0], r, term, among)

            c.loop(_ROW + 1, (reached[0], reached[1]), add_up)

        c.each_item(i, lanes, dims[0], image)

    c.each_lane(lanes, lane)
