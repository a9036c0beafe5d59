"""Lowerings of convolutions of each channel by itself.

%y = depthwise_convolution(%x, %w)   for i in range(b * h'):              # a row of windows; on threads
                                         for j in range(w'):              # a window
                                →            y[...] = 0
                                             for k in range(elements of a window):
                                                 if that element is in the image:
                                                     for c in range(channels):
                                                         y[...] = y[...] + x[...] * w[...]

depthwise_input_grad      rows of the image, as in `windows.py`
depthwise_filters_grad    a sum for each lane of rows of windows, then their total. The number of lanes doesn't
                          depend on the number of threads
"""

from __future__ import annotations

import math
from collections.abc import Callable

from runtime.codegen import cost_model
from runtime.codegen.kernel import scalars
from runtime.codegen.kernel.values import Array, product
from runtime.codegen.lower.state import Lowering, emitter
from runtime.codegen.op_lowerings.convolution import check_filters, check_same, windows_over
from runtime.codegen.op_lowerings.view import filled
from runtime.codegen.op_lowerings.windows import Windows
from runtime.codegen.op_lowerings.windows_by_element import ByElement, col2im
from runtime.graph.ir import Node, Value
from runtime.kernel_ir import ir
from runtime.ops.nn.window_products import CHANNELS, PLACES
from runtime.types import TensorType

_LANE, _ROW = 0, 1  # depths of loops


def _is_large(low: Lowering, node: Node, windows: Value) -> bool:
    """Whether threads share the work. windows: a value with an element for each window and channel."""
    assert isinstance(windows.type, TensorType)
    shape = windows.type.shape or (None,)
    return (
        not low.for_device
        and None not in shape
        and math.prod((*shape, *node.attrs["sizes"])) >= cost_model.PARALLEL_WORK
    )


def _visit_elements(
    windows: Windows, batch: ir.Expr, at: list[ir.Expr],
    visit: Callable[[ir.Expr, ir.Expr], None],
) -> None:  # fmt: skip
    """Calls visit(element, begin) for each element of the window at `at` that is in the image, which has its channels
    from `begin` on."""
    low, length = windows.low, windows.space[-1]

    def row(k: ir.Expr, row: ir.Expr, inside: ir.Expr | None) -> None:
        def column(o: ir.Var) -> None:
            where = low.assign(at[-1] + o * windows.rates[-1], "at")
            test = ir.both(where.compare(">=", 0), where.compare("<", length)) if windows.padded else None

            def found() -> None:
                begin = low.assign((row * length + where) * windows.channels, "from")
                visit(low.assign((k * windows.sizes[-1] + o) * windows.channels, "element"), begin)

            windows.when(test, found)

        windows.when(inside, lambda: windows.loop(3, ir.as_expr(windows.sizes[-1]), column))

    windows.each_row(batch, at, row)


@emitter("depthwise_convolution")
def _convolution(low: Lowering, node: Node) -> None:
    (x, w), output = map(low.array, node.inputs), node.outputs[0]
    windows = windows_over(low, node, x)
    check_filters(low, node, x.dims[-1], (*w.dims, w.dims[-1]))
    dims = low.type_dims(output.type, (x.dims[0], *windows.places, x.dims[-1]))  # type: ignore[arg-type]
    out = low.new_buffer(product(dims), output.dtype, output.name)
    zero = scalars.literal(0, output.dtype)
    low.define(output, Array(out, dims))
    if low.for_device:
        by_element = ByElement(windows)

        def one(number: ir.Expr, c: ir.Expr) -> None:
            total = low.assign(zero, "total")

            def visit(element: ir.Expr, place: ir.Expr) -> None:
                factor = ir.load(w.buffer.variable, element * windows.channels + c)
                term = ir.load(x.buffer.variable, place * windows.channels + c) * factor
                low.add(ir.assign(total, _sum(total, term, output)))

            by_element.elements(number, visit)
            low.add(ir.store(out.variable, number * windows.channels + c, total))

        by_element.each_window(one)
        return

    def window(number: ir.Expr, batch: ir.Expr, at: list[ir.Expr]) -> None:
        to = low.assign(number * windows.channels, "to")
        windows.loop(2, windows.channels, lambda c: low.add(ir.store(out.variable, to + c, zero)))

        def element(filters: ir.Expr, begin: ir.Expr) -> None:
            def channel(c: ir.Var) -> None:
                term = ir.load(x.buffer.variable, begin + c) * ir.load(w.buffer.variable, filters + c)
                low.add(ir.store(out.variable, to + c, _sum(ir.load(out.variable, to + c), term, output)))

            windows.loop(4, windows.channels, channel)

        _visit_elements(windows, batch, at, element)

    windows.each(_is_large(low, node, output), window)


def _sum(total: ir.Expr, term: ir.Expr, output: Value) -> ir.Expr:
    return scalars.narrow(total + scalars.narrow(term, output.dtype), output.dtype)


@emitter("depthwise_input_grad")
def _input_grad(low: Lowering, node: Node) -> None:
    dy, w = map(low.array, node.inputs[:2])
    output, shape = node.outputs[0], node.attrs["shape"]
    dims = filled(low, node, shape, node.inputs[2:])
    windows = Windows(low, node, dims, shape[-1], dy.dims[1:-1])
    check_same(low, node, CHANNELS, dy.dims[-1], w.dims[-1])
    check_filters(low, node, dims[-1], (*w.dims, w.dims[-1]))
    check_same(low, node, PLACES, dims[0], dy.dims[0])
    out = low.new_buffer(product(dims), output.dtype, output.name)

    def term(element: ir.Expr, window: ir.Expr, channel: ir.Expr) -> ir.Expr:
        cotangent = ir.load(dy.buffer.variable, window * windows.channels + channel)
        filters = ir.load(w.buffer.variable, element * windows.channels + channel)
        return scalars.narrow(cotangent * filters, output.dtype)

    col2im(windows, out, term, _is_large(low, node, node.inputs[0]))
    low.define(output, Array(out, dims))


@emitter("depthwise_filters_grad")
def _filters_grad(low: Lowering, node: Node) -> None:
    (x, dy), output = map(low.array, node.inputs), node.outputs[0]
    outer = windows_over(low, node, x)
    for one, other in zip((x.dims[0], *outer.places, x.dims[-1]), dy.dims):
        check_same(low, node, PLACES, one, other)
    own = (*map(low.static_dim, node.attrs["sizes"]), x.dims[-1])
    dims = low.type_dims(output.type, own)  # type: ignore[arg-type]
    out = low.new_buffer(product(dims), output.dtype, output.name)
    zero = scalars.literal(0, output.dtype)
    rows = low.atom(product([x.dims[0], *outer.places[:-1]]))
    size = low.atom(product(dims), "size")
    large = _is_large(low, node, node.inputs[1])
    most = cost_model.DEVICE_CONVOLUTION_SUMS if low.for_device else cost_model.CONVOLUTION_SUMS
    lanes = low.assign(ir.call("min", rows, most), "lanes")
    sums = low.new_buffer(lanes * size, output.dtype, "sums")
    windows = outer.inside(_ROW)

    def bounds_of(i: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
        return low.assign(i * rows // lanes, "first"), low.assign((i + 1) * rows // lanes, "last")

    def lane(i: ir.Var) -> None:
        to = low.assign(i * size, "to")
        windows.loop(0, size, lambda j: low.add(ir.store(sums.variable, to + j, zero)))

        def window(number: ir.Expr, batch: ir.Expr, at: list[ir.Expr]) -> None:
            cotangent = low.assign(number * windows.channels, "cotangent")

            def element(filters: ir.Expr, begin: ir.Expr) -> None:
                total = low.assign(to + filters, "total")

                def channel(c: ir.Var) -> None:
                    term = ir.load(x.buffer.variable, begin + c) * ir.load(dy.buffer.variable, cotangent + c)
                    low.add(ir.store(sums.variable, total + c, _sum(ir.load(sums.variable, total + c), term, output)))

                windows.loop(4, windows.channels, channel)

            _visit_elements(windows, batch, at, element)

        windows.loop(0, bounds_of(i), lambda r: windows.each_of_row(r, window))

    def element_of_lane(n: ir.Var) -> None:
        """The same for one element of the filters: a GPU has threads enough."""
        i, number, c = outer.split(n, (lanes, ir.as_expr(outer.elements), x.dims[-1]))
        offsets = outer.split(number, outer.sizes)
        total = low.assign(zero, "total")

        def window(number: ir.Expr, batch: ir.Expr, at: list[ir.Expr]) -> None:
            tests: list[ir.Expr] = []
            place = batch
            for first, offset, rate, length in zip(at, offsets, outer.rates, outer.space):
                where = low.assign(first + offset * rate, "at")
                tests += [where.compare(">=", 0), where.compare("<", length)]
                place = place * length + where

            def add() -> None:
                cotangent = ir.load(dy.buffer.variable, number * x.dims[-1] + c)
                term = ir.load(x.buffer.variable, place * x.dims[-1] + c) * cotangent
                low.add(ir.assign(total, _sum(total, term, output)))

            windows.when(ir.both(*tests) if windows.padded else None, add)

        windows.loop(0, bounds_of(i), lambda r: windows.each_of_row(r, window))
        low.add(ir.store(sums.variable, n, total))

    def total_of_element(j: ir.Var) -> None:
        found = low.assign(zero, "total")

        def add(i: ir.Var) -> None:
            part = ir.load(sums.variable, i * size + j)
            low.add(ir.assign(found, scalars.narrow(found + part, output.dtype)))

        outer.loop(_ROW, lanes, add)
        low.add(ir.store(out.variable, j, found))

    low.define(output, Array(out, dims))
    if low.for_device:
        outer.nest(low.atom(lanes * size), large, element_of_lane)
        outer.nest(size, large, total_of_element)
        return
    outer.nest(lanes, large, lane)
    outer.loop(_ROW, size, lambda j: low.add(ir.store(out.variable, j, zero)))

    def total(i: ir.Var) -> None:
        def add(j: ir.Var) -> None:
            so_far = ir.load(out.variable, j)
            low.add(
                ir.store(out.variable, j, scalars.narrow(so_far + ir.load(sums.variable, i * size + j), output.dtype))
            )

        outer.loop(_ROW, size, add)

    outer.loop(_LANE, lanes, total)
