"""Lowerings of windows of images: extracting them, adding them to the image, and the largest elements of each.

    %w = patches(%x[b, h, w, c])      for i in range(b * h'):                      # a row of windows; on threads
                                          for j in range(w'):                      # a window
                                →             for k in range(rows of a window):
                                                  if that row is in the image:     # where there is padding
                                                      for l in range(columns * c): # they lie together in the image
                                                          w[...] = x[...]

    %x = patches_grad(%w)             for i in range(b * h):                       # a row of the image
                                          for k in range(rows of a window):
                                →             if the image's row is that one in some window:
                                                  for l in range(columns), j in range(w'), n in range(c):
                                                      x[...] = x[...] + w[...]

Sums take a window's elements in the interpreter's order, so that they have the same bits.
"""

from __future__ import annotations

import math

from runtime.codegen.kernel import scalars
from runtime.codegen.kernel.values import Array, product
from runtime.codegen.lower.state import Lowering, emitter
from runtime.codegen.op_lowerings.view import filled
from runtime.codegen.op_lowerings.windows import Windows, channels_of
from runtime.codegen.op_lowerings.windows_by_element import ByElement, col2im
from runtime.graph.ir import Node
from runtime.kernel_ir import ir


@emitter("patches")
def _patches(low: Lowering, node: Node) -> None:
    array, output = low.array(node.inputs[0]), node.outputs[0]
    windows = Windows(low, node, array.dims, channels_of(node.inputs[0]))
    dims = (array.dims[0], *windows.places, low.static_dim(windows.elements), array.dims[-1])
    out = low.new_buffer(product(dims), output.dtype, output.name)
    fill = scalars.literal(node.attrs["fill"], output.dtype)
    low.define(output, Array(out, dims))
    if low.for_device:
        ByElement(windows).write(array, out.variable, fill)
        return

    def window(number: ir.Expr, batch: ir.Expr, at: list[ir.Expr]) -> None:
        windows.copy_window(array, batch, at, out.variable, number, fill)

    windows.each(low.is_large([node]), window)


@emitter("max_pool")
def _max_pool(low: Lowering, node: Node) -> None:
    array, (values, numbers) = low.array(node.inputs[0]), node.outputs
    windows = Windows(low, node, array.dims, channels_of(node.inputs[0]))
    dims = (array.dims[0], *windows.places, array.dims[-1])
    largest = low.new_buffer(product(dims), values.dtype, values.name)
    chosen = low.new_buffer(product(dims), numbers.dtype, "number")
    lowest, first = scalars.literal(-math.inf, values.dtype), scalars.literal(0, numbers.dtype)
    kind, length, channels = scalars.machine_type(numbers.dtype), windows.space[-1], windows.channels
    low.define(values, Array(largest, dims))
    low.define(numbers, Array(chosen, dims))

    def is_better(value: ir.Expr, best: ir.Expr) -> ir.Var:
        # The first NaN counts as the largest.
        is_nan, no_nan = value.compare("!=", value), best.compare("==", best)
        return low.assign(ir.either(value.compare(">", best), ir.both(is_nan, no_nan)), "better")

    if low.for_device:
        by_element = ByElement(windows)

        def one(number: ir.Expr, c: ir.Expr) -> None:
            best, place = low.assign(lowest, "best"), low.assign(first, "number")

            def visit(element: ir.Expr, at: ir.Expr) -> None:
                value = low.assign(ir.load(array.buffer.variable, at * channels + c), "value")
                better = is_better(value, best)
                low.add(ir.assign(best, better.choose(value, best)))
                low.add(ir.assign(place, better.choose(ir.Convert(kind, element), place)))

            by_element.elements(number, visit)
            to = number * channels + c
            low.add(ir.store(largest.variable, to, best), ir.store(chosen.variable, to, place))

        by_element.each_window(one)
        return

    def window(number: ir.Expr, batch: ir.Expr, at: list[ir.Expr]) -> None:
        to = low.assign(number * channels, "to")
        windows.loop(
            2,
            channels,
            lambda c: low.add(ir.store(largest.variable, to + c, lowest), ir.store(chosen.variable, to + c, first)),
        )

        def row(k: ir.Expr, row: ir.Expr, inside: ir.Expr | None) -> None:
            def column(o: ir.Var) -> None:
                where = low.assign(at[-1] + o * windows.rates[-1], "at")
                begin = low.assign((row * length + where) * channels, "from")
                element = low.assign(ir.Convert(kind, k * windows.sizes[-1] + o), "element")

                def channel(c: ir.Var) -> None:
                    value = low.assign(ir.load(array.buffer.variable, begin + c), "value")
                    best = low.assign(ir.load(largest.variable, to + c), "best")
                    better = is_better(value, best)
                    low.add(ir.store(largest.variable, to + c, better.choose(value, best)))
                    low.add(ir.store(chosen.variable, to + c, better.choose(element, ir.load(chosen.variable, to + c))))

                test = ir.both(where.compare(">=", 0), where.compare("<", length)) if windows.padded else None
                windows.when(test, lambda: windows.loop(4, channels, channel))

            windows.when(inside, lambda: windows.loop(3, ir.as_expr(windows.sizes[-1]), column))

        windows.each_row(batch, at, row)

    windows.each(low.is_large([node]), window)


@emitter("patches_grad", "max_pool_grad")
def _fold(low: Lowering, node: Node) -> None:
    of_patches = node.op.name == "patches_grad"
    parts, output = low.array(node.inputs[0]), node.outputs[0]
    numbers = None if of_patches else low.array(node.inputs[1])
    dims = filled(low, node, node.attrs["shape"], node.inputs[1 if of_patches else 2 :])
    windows = Windows(low, node, dims, channels_of(node.inputs[0]), parts.dims[1 : len(node.attrs["sizes"]) + 1])
    out = low.new_buffer(product(dims), output.dtype, output.name)
    zero = scalars.literal(0, output.dtype)

    def term(element: ir.Expr, window: ir.Expr, channel: ir.Expr) -> ir.Expr:
        if numbers is None:
            return ir.load(parts.buffer.variable, (window * windows.elements + element) * windows.channels + channel)
        place = low.assign(window * windows.channels + channel, "at")
        is_it = ir.load(numbers.buffer.variable, place).compare("==", element)
        return is_it.choose(ir.load(parts.buffer.variable, place), zero)

    col2im(windows, out, term, low.is_large([node]))
    low.define(output, Array(out, dims))
