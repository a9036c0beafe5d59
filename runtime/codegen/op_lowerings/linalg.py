"""Lowering of matrix products: `native_runtime/gemm.py` for floats unless the matrices are small, plain loops
otherwise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from runtime import system
from runtime.codegen import cost_model
from runtime.codegen.kernel.values import Array, Dims, product
from runtime.codegen.loops.loop_nest import broadcast_dims, fail_unless_shapes_fit
from runtime.codegen.lower.state import Lowering, emitter
from runtime.codegen.passes.parallelize import thread_count_in
from runtime.dtypes import DType
from runtime.graph.ir import Node, Value
from runtime.kernel_ir import ir
from runtime.types import TensorType


def _operand(low: Lowering, value: Value, transposed: bool) -> tuple[Array, bool]:
    """A contiguous array, and whether its matrices are stored transposed."""
    ref: Any = low.ref(value)
    if isinstance(ref, Array) and ref.strides is not None and len(ref.dims) == 2 and ref.offset == "0":
        rows, columns = ref.dims
        if ref.strides == ("1", rows) and rows != "1":
            # The transpose of a contiguous matrix is that matrix with the flag changed.
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

    def fail(wrong: ir.Expr, message: str) -> None:
        fail_unless_shapes_fit(low, wrong, node, [low.dims(each) for each in node.inputs], message)

    if inner != other:
        fail(inner.compare("!=", other), "Matrix size-incompatible: In[0]: {}, In[1]: {}")
    message = "In[0] and In[1] must have compatible batch dimensions: {} vs. {}"
    batch = broadcast_dims(low, a.dims[:-2], b.dims[:-2], node, lambda wrong: fail(wrong, message))
    batch = batch or b.dims[:-2]
    dims = low.type_dims(output.type, (*batch, rows, columns))  # type: ignore[arg-type]
    out = low.new_buffer(product(dims), output.dtype, output.name)
    flips = (ir.truth(flip_a), ir.truth(flip_b))
    sizes = (rows, inner, columns)
    places = [a.offset, b.offset, ir.ZERO]
    if not batch or all(d == ir.ONE for d in batch):
        arrays = (a.buffer.variable, b.buffer.variable, out.variable)
        low.add(product_call(low, a.dtype, arrays, places, sizes, flips, _is_large(node)))
    else:
        _batched(low, node, a, b, out.variable, batch, sizes, flips)
    low.define(output, Array(out, dims))


def _is_large(node: Node) -> bool:
    """Whether static sizes show that tiles pay."""
    return (_multiplications(node) or 0) >= cost_model.GEMM_MULTIPLICATIONS


def _multiplications(node: Node) -> int | None:
    """The number of multiplications in one product of two matrices; None if it isn't static."""
    a, out = node.inputs[0].type, node.outputs[0].type
    assert isinstance(a, TensorType)
    assert isinstance(out, TensorType)
    if a.shape is None or out.shape is None:
        return None
    sizes = (a.shape[-2 if node.attrs["transpose_a"] else -1], *out.shape[-2:])
    return None if None in sizes else math.prod(sizes)  # type: ignore[arg-type]


def _shares_batch(node: Node) -> bool:
    """Whether each thread takes whole products of a batch, rather than a part of each product."""
    shape, each = node.outputs[0].shape, _multiplications(node)
    if each is None or None in shape or not system.has_posix_threads():
        return False
    whole = each * math.prod(shape[:-2])
    return each < cost_model.SHARED_PRODUCT and whole >= cost_model.SHARED_BATCH


def product_call(
    low: Lowering, dtype: DType, arrays: Sequence[ir.Var], places: Sequence[ir.Expr], sizes: Dims, flips: Dims,
    is_large: bool, threads: ir.Expr | None = None,
) -> ir.Statement:  # fmt: skip
    """The product of two matrices, written to the third of the arrays.

    places: the offset of each. sizes: rows, inner dimension, columns. flips: whether the first and the second are
    stored transposed. is_large: whether tiles pay. threads: how many threads to use; None for all.
    """
    given = [each for pair in zip(arrays, places) for each in pair]
    if not dtype.is_floating:
        return ir.Run(ir.call("lib.int_matmul", *given, *sizes, *flips))
    function = "lib.gemm" if is_large else "lib.matmul"
    threads = ir.size_variable(thread_count_in(low.constants)) if threads is None else threads
    return ir.Run(ir.call(function, *given, *sizes, *flips, threads))


def _batched(low: Lowering, node: Node, a: Array, b: Array, out: ir.Var, batch: Dims, sizes: Dims, flips: Dims) -> None:
    rows, inner, columns = sizes
    count = low.atom(product(batch))
    index = low.index_name(0)
    lengths = [low.atom(rows * inner), low.atom(inner * columns), low.atom(rows * columns)]
    places: list[ir.Expr] = []
    is_shared = _shares_batch(node)
    with low.nested() as block:
        for array, length in zip((a, b), lengths):
            place = _batch_place(low, array.dims[:-2], batch, index)
            start = ir.ZERO if place == ir.ZERO else place * length
            places.append(start if array.offset == ir.ZERO else array.offset + start)
        places.append(index * lengths[2])
        arrays = (a.buffer.variable, b.buffer.variable, out)
        threads = ir.ONE if is_shared else None
        low.add(product_call(low, a.dtype, arrays, places, sizes, flips, _is_large(node), threads))
    low.nest(index, count, block, is_shared, may_join=False)


def _batch_place(low: Lowering, own: Dims, batch: Dims, index: ir.Expr) -> ir.Expr:
    """The number of an operand's matrix for flat batch position `index`."""
    if own == batch:
        return index
    own = (ir.ONE,) * (len(batch) - len(own)) + own
    place: ir.Expr = ir.ZERO
    for axis, (size, whole) in enumerate(zip(own, batch)):
        if size == ir.ONE:
            continue
        rest = product(batch[axis + 1 :])
        at: ir.Expr = (index if rest == ir.ONE else index // rest) % whole
        if size != whole:
            at = size.compare("!=", 1).choose(at, 0)
        place = at if place == ir.ZERO else place * size + at
    return place
