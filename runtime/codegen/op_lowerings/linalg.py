"""Printed form of matrix products: `native_runtime/gemm.py` for floats but in the smallest, plain loops for the rest,
behind one helper."""

from __future__ import annotations

from typing import Any

from runtime.codegen.kernel.values import Array, Dims, product
from runtime.codegen.loops.loop_nest import broadcast_dims
from runtime.codegen.lower.state import Lowering, emitter
from runtime.codegen.passes.parallelize import threads_of
from runtime.graph.ir import Node, Value


def _operand(low: Lowering, value: Value, transposed: bool) -> tuple[Array, bool]:
    """A contiguous array and whether its last two dimensions are to be read the other way round."""
    ref: Any = low.ref(value)
    if isinstance(ref, Array) and ref.strides is not None and len(ref.dims) == 2 and ref.offset == "0":
        rows, columns = ref.dims
        if ref.strides == ("1", rows) and rows != "1":
            # The transpose of a contiguous matrix is that matrix, read the other way round.
            return Array(ref.buffer, (columns, rows)), not transposed
    if isinstance(ref, Array) and ref.strides is None:
        return ref, transposed
    return low.array(value), transposed


@emitter("matmul")
def _matmul(low: Lowering, node: Node) -> None:
    output = node.outputs[0]
    a, flip_a = _operand(low, node.inputs[0], node.attrs["transpose_a"])
    b, flip_b = _operand(low, node.inputs[1], node.attrs["transpose_b"])
    rows, inner = a.dims[-2:][::-1] if flip_a else a.dims[-2:]
    other, columns = b.dims[-2:][::-1] if flip_b else b.dims[-2:]
    if inner != other:
        message = "Matrix size-incompatible: inner dimensions {0} and {1} [Op:MatMul]"
        low.fail_when(f"{inner} != {other}", "InvalidArgumentError", message, node, (inner, other), "MatMul")
    batch = broadcast_dims(low, a.dims[:-2], b.dims[:-2], node)
    batch = batch or b.dims[:-2]
    dims = low.type_dims(output.type, (*batch, rows, columns))  # type: ignore[arg-type]
    out = low.new_buffer(product(dims), output.dtype, output.name)
    flips = f"{flip_a}, {flip_b}"
    sizes = (rows, inner, columns)
    places = [a.offset, b.offset, "0"]
    if not batch or all(d == "1" for d in batch):
        low.line(_call(low, a, b, out.name, places, sizes, flips))
    else:
        _batched(low, a, b, out.name, batch, sizes, flips)
    low.define(output, Array(out, dims))


def _call(
    low: Lowering, a: Array, b: Array, out: str, places: list[str], sizes: tuple[str, str, str], flips: str
) -> str:
    given = (
        f"{a.buffer.name}, {places[0]}, {b.buffer.name}, {places[1]}, {out}, {places[2]}, {', '.join(sizes)}, {flips}"
    )
    if not a.dtype.is_floating:
        return f"lib.int_matmul({given})"
    return f"lib.matmul({given}, {threads_of(low)})"


def _batched(low: Lowering, a: Array, b: Array, out: str, batch: Dims, sizes: tuple[str, str, str], flips: str) -> None:
    rows, inner, columns = sizes
    count = low.atom(product(batch))
    index = low.index_name(0)
    lengths = [low.atom(f"{rows} * {inner}"), low.atom(f"{inner} * {columns}"), low.atom(f"{rows} * {columns}")]
    places: list[str] = []
    with low.nested() as block:
        for array, length in zip((a, b), lengths):
            place = _batch_place(low, array.dims[:-2], batch, index)
            text = "0" if place == "0" else f"({place}) * {length}"
            places.append(text if array.offset == "0" else f"{array.offset} + {text}")
        places.append(f"{index} * {lengths[2]}")
        low.line(_call(low, a, b, out, places, sizes, flips))
    low.loop(index, count, block)


def _batch_place(low: Lowering, own: Dims, batch: Dims, index: str) -> str:
    """Which matrix of an operand belongs to flat batch position `index`."""
    if own == batch:
        return index
    own = ("1",) * (len(batch) - len(own)) + own
    text = "0"
    for axis, (size, whole) in enumerate(zip(own, batch)):
        if size == "1":
            continue
        rest = product(batch[axis + 1 :])
        at = index if rest == "1" else f"{index} // ({rest})"
        at = f"({at}) % {whole}"
        if size != whole:
            at = f"({at} if {size} != 1 else 0)"
        text = at if text == "0" else f"({text}) * {size} + {at}"
    return text
