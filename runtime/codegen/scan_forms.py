"""Printed forms of running sums and products, and of positions of extremes: one loop along an axis per row."""

from __future__ import annotations

import numpy as np

from runtime.codegen import cpu
from runtime.codegen.lowering import Lowering, emitter
from runtime.codegen.refs import Array, Scalar, product
from runtime.graph.ir import Node


def _around(low: Lowering, array: Array, axis: int) -> tuple[str, str, str]:
    """The number of rows before the axis, its length, and the number of elements behind it."""
    before = low.atom(product(array.dims[:axis]))
    return before, low.atom(array.dims[axis]), low.atom(product(array.dims[axis + 1 :]))


@emitter("cumsum", "cumprod")
def _running(low: Lowering, node: Node) -> None:
    array = low.array(node.inputs[0])
    output = node.outputs[0]
    before, length, behind = _around(low, array, node.attrs["axis"])
    out = low.new_buffer(product(array.dims), output.dtype, output.name)
    i, j, k = (low.index_name(depth) for depth in range(3))
    total, at = low.names.fresh("total"), low.names.fresh("at")
    sign, start = ("+", 0) if node.op.name == "cumsum" else ("*", 1)
    position = f"{length} - 1 - {k}" if node.attrs["reverse"] else k
    step = f"{total} = {cpu.strip(cpu.narrow(f'({total} {sign} {array.buffer.name}[{at}])', output.dtype))}"
    store = f"{out.name}[{at}] = {total}"
    order = [store, step] if node.attrs["exclusive"] else [step, store]
    low.line(f"for {i} in range({before}):")
    low.block.append([
        f"for {j} in range({behind}):",
        [
            f"{total} = {cpu.literal(start, output.dtype)}",
            f"for {k} in range({length}):",
            [f"{at} = ({i} * {length} + {position}) * {behind} + {j}", *order],
        ],
    ])  # fmt: skip
    low.define(output, Array(out, array.dims))


@emitter("argmax", "argmin")
def _extreme(low: Lowering, node: Node) -> None:
    array = low.array(node.inputs[0])
    output = node.outputs[0]
    axis = node.attrs["axis"]
    before, length, behind = _around(low, array, axis)
    message = f"Reduction axis {axis} is empty [Op:{node.op.label}]"
    low.fail_when(f"{length} == 0", "InvalidArgumentError", message, node, (), node.op.label)
    dims = array.dims[:axis] + array.dims[axis + 1 :]
    out = low.new_buffer(product(dims), output.dtype, output.name)
    i, j, k = (low.index_name(depth) for depth in range(3))
    best, place, value = low.names.fresh("best"), low.names.fresh("place"), low.names.fresh("value")
    sign = ">" if node.op.name == "argmax" else "<"
    # NaN is never the extreme.
    lowest = cpu.literal(-np.inf if sign == ">" else np.inf, array.dtype) if array.dtype.is_floating else ""
    nan = [f"if {best} != {best}:", [f"{best} = {lowest}"]] if array.dtype.is_floating else []
    low.line(f"for {i} in range({before}):")
    low.block.append([
        f"for {j} in range({behind}):",
        [
            f"{best} = {array.buffer.name}[{i} * {length} * {behind} + {j}]",
            *nan,
            f"{place} = 0",
            f"for {k} in range(1, {length}):",
            [
                f"{value} = {array.buffer.name}[({i} * {length} + {k}) * {behind} + {j}]",
                f"if {value} {sign} {best}:",
                [f"{best} = {value}", f"{place} = {k}"],
            ],
            f"{out.name}[{i} * {behind} + {j}] = {place}",
        ],
    ])  # fmt: skip
    if dims:
        low.define(output, Array(out, dims))
    else:
        low.define(output, Scalar(low.assign(f"{out.name}[0]", output.name), output.dtype))
