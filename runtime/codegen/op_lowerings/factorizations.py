"""Printed forms of inverses, solutions of linear equations, determinants and Cholesky factors: `lib.solved` and its
like on copies of the operands.

Large matrices stay with LAPACK: it takes them in blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runtime.codegen.kernel import spelling
from runtime.codegen.kernel.values import Array, Scalar, Virtual, product
from runtime.codegen.lower.state import REFUSALS, Lowering, emitter
from runtime.dtypes import DType
from runtime.graph.ir import Node, Value

_LARGE = 64  # rows of a matrix


def _refusal(node: Node) -> str | None:
    rows = node.inputs[0].shape[-1]
    return None if rows is None or rows <= _LARGE else f"a matrix of {rows} rows is a matter for LAPACK"


_FACTORS = (
    "matrix_inverse", "matrix_solve", "matrix_determinant", "log_matrix_determinant", "cholesky",
    "matrix_triangular_solve",
)  # fmt: skip
REFUSALS.update(dict.fromkeys(_FACTORS, _refusal))


def _need_equal(low: Lowering, node: Node, got: Sequence[str], wanted: Sequence[str], message: str) -> None:
    for one, other in zip(got, wanted):
        if one != other:
            text = f"{message} [Op:{node.op.label}]"
            low.fail_when(f"{one} != {other}", "InvalidArgumentError", text, node, (one, other), node.op.label)


def _matrices(low: Lowering, node: Node, transposed: bool = False) -> Array:
    """The square matrices that a node takes first, in memory that may be overwritten."""
    _need_square(low, node)
    return _copied(low, node.inputs[0], transposed)


def _need_square(low: Lowering, node: Node) -> None:
    dims = low.dims(node.inputs[0])
    _need_equal(low, node, dims[-1:], dims[-2:-1], "Input matrix must be square, not {1} x {0}")


def _right_sides(low: Lowering, node: Node, matrices: Array) -> Array:
    """What a node takes second, in memory that the solutions may be written to."""
    rhs = low.dims(node.inputs[1])
    _need_equal(low, node, rhs[:-1], matrices.dims[:-1], "Input matrix and rhs don't fit: {1} and {0} rows or matrices")
    return _copied(low, node.inputs[1])


def _copied(low: Lowering, value: Value, transposed: bool = False) -> Array:
    ref: Any = low.ref(value)
    if transposed:
        array = ref if isinstance(ref, Array) else low.array(value)
        strides = low.strides(array)
        ref = Array(array.buffer, array.dims, (*strides[:-2], strides[-1], strides[-2]), array.offset, whole=False)
    buffer = low.new_buffer(product(ref.dims), ref.dtype, value.name)
    low.copy_into(Array(buffer, ref.dims), ref)
    return Array(buffer, ref.dims)


def _solve(low: Lowering, node: Node, matrices: Array, out: Array, message: str) -> None:
    """Prints the elimination of each matrix; `out` holds the right sides."""
    size, columns = matrices.dims[-1], out.dims[-1]
    _each(
        low, node, matrices, message,
        lambda at: f"lib.solved({matrices.buffer.name}, {at} * {size}, {size}, {out.buffer.name}, {at} * {columns}, "
        f"{columns}) < 0",
    )  # fmt: skip


def _each(low: Lowering, node: Node, matrices: Array, message: str, failed: Callable[[str], str]) -> None:
    """Prints a loop over matrices. failed: the text of what a matrix, whose rows begin at the given one, fails by."""
    size = matrices.dims[-1]
    count = low.atom(product(matrices.dims[:-2]))
    index = "0" if count == "1" else low.index_name(0)
    with low.nested() as block:
        wrong = low.assign(failed(f"{index} * {size}"), "wrong")
        low.fail_when(wrong, "InvalidArgumentError", message, node, (), node.op.label)
    if count == "1":
        low.block += block
    else:
        low.loop(index, count, block)


@emitter("matrix_inverse")
def _inverse(low: Lowering, node: Node) -> None:
    matrices = _matrices(low, node)
    dtype = matrices.dtype
    one, zero = spelling.literal(1, dtype), spelling.literal(0, dtype)
    unit = Virtual(dtype, matrices.dims, lambda indices: f"({one} if {indices[-2]} == {indices[-1]} else {zero})")
    out = low.solid(unit, node.outputs[0].name)
    _solve(low, node, matrices, out, "Input is not invertible.")
    low.define(node.outputs[0], out)


@emitter("matrix_solve")
def _equations(low: Lowering, node: Node) -> None:
    matrices = _matrices(low, node, node.attrs["adjoint"])
    out = _right_sides(low, node, matrices)
    _solve(low, node, matrices, out, "Input matrix is not invertible.")
    low.define(node.outputs[0], out)


@emitter("cholesky")
def _cholesky(low: Lowering, node: Node) -> None:
    matrices = _matrices(low, node)
    size = matrices.dims[-1]
    _each(
        low, node, matrices, "Cholesky decomposition was not successful. The input might not be valid.",
        lambda at: f"not lib.cholesky({matrices.buffer.name}, {at} * {size}, {size})",
    )  # fmt: skip
    low.define(node.outputs[0], matrices)


@emitter("matrix_triangular_solve")
def _triangular(low: Lowering, node: Node) -> None:
    _need_square(low, node)
    array = low.array(node.inputs[0])
    out = _right_sides(low, node, array)
    size, columns = array.dims[-1], out.dims[-1]
    _each(
        low, node, array, "Input matrix is not invertible.",
        lambda at: f"not lib.substituted({array.buffer.name}, {at} * {size}, {size}, {out.buffer.name}, "
        f"{at} * {columns}, {columns}, {node.attrs['lower']}, {node.attrs['adjoint']})",
    )  # fmt: skip
    low.define(node.outputs[0], out)


@emitter("matrix_determinant")
def _determinant(low: Lowering, node: Node) -> None:
    """The product of the pivots, with another sign for each exchange of rows."""
    _of_pivots(
        low, node, lambda swaps, dtype: [_sign(swaps, dtype)],
        lambda pivot, total: [f"{total} = {total} * {pivot}"],
    )  # fmt: skip


@emitter("log_matrix_determinant")
def _logarithm_of_determinant(low: Lowering, node: Node) -> None:
    """The sign, and the sum of the logarithms of the pivots."""
    _of_pivots(
        low, node,
        lambda swaps, dtype: [
            _sign(swaps, dtype), f"-np.{dtype.name}(np.inf) if {swaps} < 0 else {spelling.literal(0, dtype)}"
        ],
        lambda pivot, sign, total: [
            f"{sign} = -{sign} if {pivot} < 0 else {sign}", f"{total} = {total} + math.log(abs({pivot}))"
        ],
    )  # fmt: skip


def _sign(swaps: str, dtype: DType) -> str:
    one, zero = spelling.literal(1, dtype), spelling.literal(0, dtype)
    return f"{zero} if {swaps} < 0 else {one} if {swaps} % 2 == 0 else -{one}"


def _of_pivots(
    low: Lowering, node: Node, start: Callable[[str, DType], list[str]], step: Callable[..., list[str]]
) -> None:  # fmt: skip
    """Prints what the pivots of each matrix make, and binds the outputs to it. start: what each begins with, from how
    often rows changed places, below 0 for a singular matrix; step: the lines that take in a pivot."""
    matrices = _matrices(low, node)
    size, name, dims = matrices.dims[-1], matrices.buffer.name, matrices.dims[:-2]
    count = low.atom(product(dims))
    outs = [low.new_buffer(count, output.dtype, output.name) for output in node.outputs]
    index, k = low.index_name(0), low.index_name(1)
    with low.nested() as block:
        at = low.assign(f"{index} * {size} * {size}", "at")
        swaps = low.assign(f"lib.solved({name}, {at}, {size}, {name}, 0, 0)", "swaps")
        totals = [low.assign(text, "total") for text in start(swaps, matrices.dtype)]
        # The elimination of a singular matrix stopped somewhere.
        body = low.lines(*step(f"{name}[{at} + {k} * ({size} + 1)]", *totals))
        low.loop(k, f"{size} if {swaps} >= 0 else 0", body)
        for out, total in zip(outs, totals):
            low.line(f"{out.name}[{index}] = {total}")
    low.loop(index, count, block)
    for output, out in zip(node.outputs, outs):
        if dims:
            low.define(output, Array(out, dims))
        else:
            low.define(output, Scalar(low.assign(f"{out.name}[0]", output.name), output.dtype))
