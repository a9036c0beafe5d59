"""Lowerings of products of windows with filters. Large ones of floats leave the windows in the image.

    %y = convolution(%x, %w)     for i in range(lanes):                           # on threads
                                     for s in range(strips of the lane):
                              →          padded[...] = rows of x                  # in the second-level cache
                                         lib.indirect_gemm(padded, ..., w, 0, y, ...)

Windows overlap, and an indirect product reads their elements where they are (`windows_in_place.py`). A strip consists
of some rows of an image, with its padding, or of some images; without padding nothing is copied. A lane consists of
strips that use the same memory one after the other; threads take lanes.

    convolution               the windows times the filters
    convolution_filters_grad  the transposed windows times the cotangent. Of few filters, each lane has a sum over its
                              strips, and they are added up; of many filters, each lane has some rows of the result.
                              The order of the sums doesn't depend on the number of threads
    convolution_input_grad    the cotangent convolved with the flipped filters, if all strides are 1. Otherwise, and of
                              images with few channels, the cotangent times the transposed filters, which gives windows;
                              they are added to the image, a strip at a time. A lane has whole images then, and takes
                              the strips of an image from the last to the first, so that each sum has its terms in the
                              order of `patches_grad`

Other convolutions write all windows to memory, for one product of matrices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from runtime import system
from runtime.codegen import cost_model
from runtime.codegen.kernel import scalars
from runtime.codegen.kernel.values import Array, Buffer, product
from runtime.codegen.lower.state import Lowering, emitter
from runtime.codegen.op_lowerings.linalg import product_call
from runtime.codegen.op_lowerings.view import filled
from runtime.codegen.op_lowerings.windows import Windows
from runtime.codegen.op_lowerings.windows_by_element import ByElement, col2im
from runtime.codegen.op_lowerings.windows_in_place import MOST_DIMENSIONS, Place, WindowsInPlace
from runtime.codegen.passes.parallelize import thread_count_in
from runtime.codegen.symbolic.ranges import Atom
from runtime.dtypes import DType
from runtime.graph.ir import Node, Value
from runtime.kernel_ir import ir
from runtime.ops.nn.patches import window_dims
from runtime.ops.nn.window_products import CHANNELS, DEPTHS, PLACES, SIZES
from runtime.types import TensorType

_LANE, _STRIP, _ROW = 0, 1, 2  # depths of loops
_ROWS_OF_LANE = 16  # of the gradient by the filters: two tiles of a product


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
        has_threads = system.has_posix_threads() and not low.for_device
        few = len(node.attrs["sizes"]) <= MOST_DIMENSIONS
        self.in_place = dtype.is_floating and self.is_large and few and not low.for_device
        work, least = self.elements, cost_model.PARALLEL_WORK
        if self.in_place:
            work, least = self.elements * self.depth, cost_model.SHARED_BATCH
        self.on_threads = has_threads and work >= least
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
        self.all = windows
        self.places = windows.places[-1]  # windows in a row
        self.zero = scalars.literal(0, dtype)
        self.inner = low.atom(product([low.static_dim(windows.elements), channels]))  # elements of a window
        self.count = low.atom(product([windows.batch, *windows.places]))  # windows

    # --- all windows at once -----------------------------------------------------------------------------------------

    def written(self, image: Array, on_threads: bool) -> Buffer:
        out = self.low.new_buffer(self.count * self.inner, self.dtype, "windows")
        if self.low.for_device:
            ByElement(self.all).write(image, out.variable, self.zero)
            return out
        rows = self.low.atom(product([self.all.batch, *self.all.places[:-1]]))
        self.all.nest(rows, on_threads, lambda i: self.all.copy_row(image, i, out.variable, i * self.places))
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

    def each_lane(self, lanes: ir.Expr, body: Callable[[ir.Var], None], on_threads: bool = True) -> None:
        lane = self.low.index_name(_LANE)
        with self.low.nested() as block:
            body(lane)
        self.low.nest(lane, lanes, block, large=on_threads, may_join=False)

    def each_item(self, lane: ir.Var, lanes: ir.Expr, items: ir.Expr, body: Callable[[ir.Var], None]) -> None:
        """Adds a loop over the items of a lane."""
        begin, end = (self.low.assign(each * items // lanes, "begin") for each in (lane, lane + 1))
        self.low.loop_over(_STRIP, (begin, end), body)

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


def _product(
    low: Lowering, a: Place, rows_at: Place, inner_at: Buffer, b: Place, out: Place, sizes: Sequence[ir.Expr],
    add: bool,
) -> None:  # fmt: skip
    """An indirect product. rows_at, inner_at: the tables of the rows and the columns of `a`."""
    arrays = [each for array, place in (a, rows_at) for each in (array.variable, place)]
    arrays += [inner_at.variable, *(each for array, place in (b, out) for each in (array.variable, place))]
    low.add(ir.Run(ir.call("lib.indirect_gemm", *arrays, *sizes, ir.truth(add))))


class _Strips:
    """The loops over strips of windows in place, for one op. A strip is a part of an image, or some whole images."""

    def __init__(self, c: _Convolution, windows: WindowsInPlace, parts: ir.Expr | int, on_threads: bool) -> None:
        """parts: the number of strips there should be at least."""
        low = c.low
        self.c, self.windows, self.on_threads = c, windows, on_threads
        self.height, self.images = windows.height(parts), windows.images(parts)
        self.of_image = windows.strips(self.height)
        groups = (windows.batch + self.images - 1) // self.images
        self.count = low.assign(groups * self.of_image, "items")
        self.windows_at, self.elements_at = windows.windows_at(self.images, self.height), windows.elements_at()

    def each(
        self, lanes: ir.Expr, body: Callable[[ir.Var, Place, ir.Expr, ir.Expr], None],
        before: Callable[[ir.Var], None] = lambda lane: None, divided: bool = True,
    ) -> None:  # fmt: skip
        """Adds the loops. body(lane, strip, first, count): takes windows from number `first` on, whose strip this is.
        before(lane): comes before the strips of a lane. divided: each lane has some strips; otherwise, each has all."""
        c, low, windows, work = self.c, self.c.low, self.windows, None
        if windows.padded:
            size = windows.memory(self.images, self.height)
            work = low.new_buffer(lanes * size, c.dtype, "padded")

        def lane(i: ir.Var) -> None:
            before(i)
            at = low.assign(i * size, "place") if work is not None else ir.ZERO

            def strip(s: ir.Var) -> None:
                group = low.assign(s // self.of_image, "group")
                b = low.assign(group * self.images, "image")
                images = low.assign(ir.call("min", self.images, windows.batch - b), "images")
                first = low.assign((s - group * self.of_image) * self.height, "first")
                last = low.assign(ir.call("min", first + self.height, windows.places[0]), "last")
                made = windows.strip(b, images, (first, last), work, at, _ROW)
                number = low.assign((b * windows.places[0] + first) * windows.windows_of_row, "window")
                body(i, made, number, low.assign(images * (last - first) * windows.windows_of_row, "count"))

            if divided:
                c.each_item(i, lanes, self.count, strip)
            else:
                low.loop_over(_STRIP, (ir.ZERO, self.count), strip)

        c.each_lane(lanes, lane, self.on_threads)


def _in_place(low: Lowering, node: Node, image: Array, windows: Windows) -> WindowsInPlace:
    attrs = node.attrs
    spans = [(size - 1) * rate for size, rate in zip(attrs["sizes"], attrs["rates"])]
    padded = windows.padded and (attrs["padding"] != "SAME" or any(spans))
    return WindowsInPlace(
        low, image, attrs["sizes"], attrs["strides"], attrs["rates"], windows.before, windows.places, padded
    )


@emitter("convolution")
def _convolution(low: Lowering, node: Node) -> None:
    (x, w), output = map(low.array, node.inputs), node.outputs[0]
    c = _Convolution(low, windows_over(low, node, x), x.dims[-1], output.dtype, w.dims[-1])
    check_filters(low, node, x.dims[-1], w.dims)
    dims = low.type_dims(output.type, (x.dims[0], *c.all.places, c.depth))  # type: ignore[arg-type]
    out = low.new_buffer(product(dims), output.dtype, output.name)
    low.define(output, Array(out, dims))
    sizes = _Sizes(low, node, output, _shape(node.inputs[0]), _shape(node.inputs[1])[-1])
    if not sizes.in_place:
        arrays = (c.written(x, sizes.on_threads), w.buffer, out)
        c.product(arrays, _START, (c.count, c.inner, c.depth), (False, False), sizes.is_large, None)
        return
    _sums_of_windows(c, _in_place(low, node, x, c.all), w.buffer, c.depth, out, sizes.on_threads)


def _sums_of_windows(
    c: _Convolution, windows: WindowsInPlace, filters: Buffer, depth: Atom, out: Buffer, on_threads: bool
) -> None:
    """Writes the products of windows in place with filters of shape [elements of a window, depth]."""
    parts = c.lanes(windows.batch * windows.places[0]) if on_threads else ir.ONE
    strips = _Strips(c, windows, parts, on_threads)

    def strip(lane: ir.Var, images: Place, first: ir.Expr, count: ir.Expr) -> None:
        rows_at, sizes = (strips.windows_at, ir.ZERO), (count, windows.elements, depth)
        _product(c.low, images, rows_at, strips.elements_at, (filters, ir.ZERO), (out, first * depth), sizes, add=False)

    strips.each(c.low.assign(ir.call("min", parts, strips.count), "lanes"), strip)


@emitter("convolution_filters_grad")
def _filters_grad(low: Lowering, node: Node) -> None:
    (x, dy), output = map(low.array, node.inputs), node.outputs[0]
    c = _Convolution(low, windows_over(low, node, x), x.dims[-1], output.dtype, dy.dims[-1])
    for one, other in zip((x.dims[0], *c.all.places), dy.dims):
        check_same(low, node, PLACES, one, other)
    own = (*map(low.static_dim, node.attrs["sizes"]), x.dims[-1], c.depth)
    dims = low.type_dims(output.type, own)  # type: ignore[arg-type]
    out = low.new_buffer(product(dims), output.dtype, output.name)
    low.define(output, Array(out, dims))
    sizes = _Sizes(low, node, node.inputs[1], _shape(node.inputs[0]), _shape(node.inputs[1])[-1])
    if not sizes.in_place:
        arrays = (c.written(x, sizes.on_threads), dy.buffer, out)
        c.product(arrays, _START, (c.inner, c.count, c.depth), (True, False), sizes.is_large, None)
        return
    windows, size = _in_place(low, node, x, c.all), low.atom(c.inner * c.depth, "size")
    if sizes.on_threads and sizes.filters <= cost_model.CONVOLUTION_FILTERS:
        _sums_of_lanes(c, windows, dy.buffer, out, size)
        return
    strips = _Strips(c, windows, 1, sizes.on_threads)
    lanes = c.lanes((c.inner + _ROWS_OF_LANE - 1) // _ROWS_OF_LANE) if sizes.on_threads else ir.ONE

    def share(i: ir.Expr) -> ir.Expr:
        return low.assign(i * c.inner // lanes, "row")

    def clear(i: ir.Var) -> None:
        bounds = share(i) * c.depth, share(i + 1) * c.depth
        low.loop_over(_STRIP, bounds, lambda j: low.add(ir.store(out.variable, j, c.zero)))

    def strip(i: ir.Var, images: Place, first: ir.Expr, count: ir.Expr) -> None:
        begin, end = share(i), share(i + 1)
        rows_at, of_product = (strips.elements_at, begin), (end - begin, count, c.depth)
        places = (dy.buffer, first * c.depth), (out, begin * c.depth)
        _product(low, images, rows_at, strips.windows_at, *places, of_product, add=True)

    strips.each(lanes, strip, clear, divided=False)


def _sums_of_lanes(c: _Convolution, windows: WindowsInPlace, dy: Buffer, out: Buffer, size: Atom) -> None:
    """The gradient by few filters: a sum for each lane of strips, then their total."""
    low = c.low
    strips = _Strips(c, windows, cost_model.CONVOLUTION_SUMS, True)
    lanes = low.assign(ir.call("min", strips.count, cost_model.CONVOLUTION_SUMS), "lanes")
    sums = low.new_buffer(lanes * size, c.dtype, "sums")

    def clear(i: ir.Var) -> None:
        begin = low.assign(i * size, "at")
        low.loop_over(_STRIP, (ir.ZERO, size), lambda j: low.add(ir.store(sums.variable, begin + j, c.zero)))

    def strip(i: ir.Var, images: Place, first: ir.Expr, count: ir.Expr) -> None:
        rows_at, of_product = (strips.elements_at, ir.ZERO), (c.inner, count, c.depth)
        places = (dy, first * c.depth), (sums, low.assign(i * size, "at"))
        _product(low, images, rows_at, strips.windows_at, *places, of_product, add=True)

    strips.each(lanes, strip, clear)
    low.loop_over(_STRIP, (ir.ZERO, size), lambda j: low.add(ir.store(out.variable, j, c.zero)))

    def total(i: ir.Var) -> None:
        low.loop_over(_STRIP, (ir.ZERO, size), lambda j: _add(low, out, j, ir.load(sums.variable, i * size + j)))

    low.loop_over(_LANE, (ir.ZERO, lanes), total)


def _convolved_back(
    low: Lowering, node: Node, c: _Convolution, dy: Array, w: Array, out: Buffer, sizes: _Sizes
) -> None:
    """The gradient by the input where all strides are 1: the cotangent, convolved with the flipped filters."""
    attrs, channels = node.attrs, w.dims[-2]
    before = [low.atom(span - 1 - own, "before") for span, own in zip(c.all.span, c.all.before)]
    ones = [1] * len(before)
    windows = WindowsInPlace(low, dy, attrs["sizes"], ones, attrs["rates"], before, c.all.space, True, flipped=True)
    filters, size = (
        low.new_buffer(windows.elements * channels, c.dtype, "filters"),
        low.atom(channels * c.depth, "size"),
    )

    def transposed(e: ir.Var) -> None:
        place = low.assign(e * size, "at")
        arrays = (w.buffer.variable, place, filters.variable, place)
        low.add(ir.Run(ir.call("lib.transpose_matrix", *arrays, channels, c.depth)))

    c.each_lane(ir.as_expr(c.all.elements), transposed, sizes.on_threads)
    _sums_of_windows(c, windows, filters, channels, out, sizes.on_threads)


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
    is_wide = (shape[-1] or 0) >= cost_model.CONVOLUTION_CHANNELS
    if sizes.in_place and is_wide and set(node.attrs["strides"]) == {1}:
        _convolved_back(low, node, c, dy, w, out, sizes)
        return
    if not sizes.in_strips or sizes.images < cost_model.CONVOLUTION_IMAGES:
        made = low.new_buffer(c.count * c.inner, output.dtype, "windows")
        arrays = (dy.buffer, w.buffer, made)
        c.product(arrays, _START, (c.count, c.depth, c.inner), (False, True), sizes.is_large, None)

        col2im(c.all, out, lambda element, window, channel: c.term(made, element, window, channel), sizes.on_threads)
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
            low.loop_over(_ROW, (begin, begin + own), lambda r: windows.clear(out, *windows.begin_of_row(r)))
            low.loop_over(_ROW, (ir.ZERO, strips), lambda s: strip(b, begin, s))

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

            low.loop_over(_ROW + 1, (reached[0], reached[1]), add_up)

        c.each_item(i, lanes, dims[0], image)

    c.each_lane(lanes, lane)
