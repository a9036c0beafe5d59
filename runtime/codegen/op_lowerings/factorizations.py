"""Lowerings of inverses, solutions of linear equations, determinants and Cholesky factors: calls of `lib.solved` and
similar functions on copies of the operands.

The interpreter computes large matrices by LAPACK, which works in blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from runtime import dtypes
from runtime.codegen import cost_model
from runtime.codegen.kernel import scalars
from runtime.codegen.kernel.values import Array, Scalar, Virtual, product
from runtime.codegen.lower.state import LEFT_TO_LIBRARIES, Lowering, emitter
from runtime.dtypes import DType
from runtime.graph.ir import Node, Value
from runtime.kernel_ir import ir
from runtime.kernel_ir.types import Array as ArrayType


def _reason(node: Node) -> str | None:
    rows = node.inputs[0].shape[-1]
    is_left = rows is not None and rows > cost_model.FACTORIZATION_ROWS
    return f"a matrix of {rows} rows, which LAPACK handles faster" if is_left else None


_FACTORS = (
    "matrix_inverse", "matrix_solve", "matrix_determinant", "log_matrix_determinant", "cholesky",
    "matrix_triangular_solve",
)  # fmt: skip
LEFT_TO_LIBRARIES.update(dict.fromkeys(_FACTORS, _reason))


def _need_equal(low: Lowering, node: Node, got: Sequence[ir.Expr], wanted: Sequence[ir.Expr], message: str) -> None:
    for one, other in zip(got, wanted):
        if one != other:
            text = f"{message} [Op:{node.op.label}]"
            low.fail_when(one.compare("!=", other), "InvalidArgumentError", text, node, (one, other), node.op.label)


def _matrices(low: Lowering, node: Node, transposed: bool = False) -> Array:
    """The first operand of a node, square matrices, in memory that may be overwritten."""
    _need_square(low, node)
    return _copied(low, node.inputs[0], transposed)


def _need_square(low: Lowering, node: Node) -> None:
    dims = low.dims(node.inputs[0])
    _need_equal(low, node, dims[-1:], dims[-2:-1], "Input matrix must be square, not {1} x {0}")


def _right_sides(low: Lowering, node: Node, matrices: Array) -> Array:
    """The second operand of a node, in memory to which the solutions may be written."""
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
    """Adds the elimination of each matrix; `out` holds the right sides."""
    swaps = _Each(low, matrices, dtypes.int64).results("solve", out.buffer.variable, out.dims[-1])
    swaps.check(node, message, lambda found: found.compare("<", 0))


class _Each:
    """A library function that takes square matrices one by one, and its results: a variable where there is one matrix,
    else an array."""

    def __init__(self, low: Lowering, matrices: Array, dtype: DType) -> None:
        self._low, self._matrices, self._dtype = low, matrices, dtype
        self.count = low.atom(product(matrices.dims[:-2]))
        self._results: ir.Var

    def results(self, name: str, *arguments: ir.Expr) -> _Each:
        """Adds the call of a function (see `_FUNCTIONS`)."""
        low, matrix, size = self._low, self._matrices.buffer.variable, self._matrices.dims[-1]
        one, each = _FUNCTIONS[name]
        if self.count == ir.ONE and not low.for_device:
            given: list[ir.Expr] = [matrix, ir.ZERO, size]
            for argument in arguments:  # of an array, where it begins
                given += [argument, ir.ZERO] if isinstance(argument.type, ArrayType) else [argument]
            self._results = low.assign(ir.call(one, *given), "found")
        else:
            self._results = low.new_buffer(self.count, self._dtype, "found").variable
            low.add(ir.Run(ir.call(each, matrix, self.count, size, *arguments, self._results)))
        return self

    def of(self, number: ir.Expr) -> ir.Expr:
        """The result for a matrix."""
        return ir.load(self._results, number) if isinstance(self._results.type, ArrayType) else self._results

    def check(self, node: Node, message: str, failed: Callable[[ir.Expr], ir.Expr]) -> None:
        """Adds checks that no result shows a failure."""
        low, number = self._low, self._low.index_name(0)
        with low.nested() as block:
            wrong = failed(self.of(number))
            low.fail_when(wrong, "InvalidArgumentError", message, node, (), node.op.label)
        if isinstance(self._results.type, ArrayType):
            low.loop(number, self.count, block)
        else:
            low.add(*block)


# For one matrix from an offset on, and for several from the first element on, whose results go into an array.
_FUNCTIONS = {
    "solve": ("lib.solved", "lib.solve_each"),
    "cholesky": ("lib.cholesky", "lib.cholesky_of_each"),
    "substitute": ("lib.substituted", "lib.substitute_each"),
}


@emitter("matrix_inverse")
def _inverse(low: Lowering, node: Node) -> None:
    matrices = _matrices(low, node)
    dtype = matrices.dtype
    one, zero = scalars.literal(1, dtype), scalars.literal(0, dtype)
    unit = Virtual(dtype, matrices.dims, lambda indices: indices[-2].compare("==", indices[-1]).choose(one, zero))
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
    message = "Cholesky decomposition was not successful. The input might not be valid."
    _Each(low, matrices, dtypes.bool_).results("cholesky").check(node, message, ir.negated)
    low.define(node.outputs[0], matrices)


@emitter("matrix_triangular_solve")
def _triangular(low: Lowering, node: Node) -> None:
    _need_square(low, node)
    array = low.array(node.inputs[0])
    out = _right_sides(low, node, array)
    sides = (ir.truth(node.attrs["lower"]), ir.truth(node.attrs["adjoint"]))
    sound = _Each(low, array, dtypes.bool_).results("substitute", out.buffer.variable, out.dims[-1], *sides)
    sound.check(node, "Input matrix is not invertible.", ir.negated)
    low.define(node.outputs[0], out)


@emitter("matrix_determinant")
def _determinant(low: Lowering, node: Node) -> None:
    """The product of the pivots; each exchange of rows changes its sign."""
    _of_pivots(
        low, node, lambda swaps, dtype: [_sign(swaps, dtype)],
        lambda pivot, total: [ir.assign(total, total * pivot)],
    )  # fmt: skip


@emitter("log_matrix_determinant")
def _logarithm_of_determinant(low: Lowering, node: Node) -> None:
    """The sign, and the sum of the logarithms of the pivots."""
    _of_pivots(
        low, node,
        lambda swaps, dtype: [
            _sign(swaps, dtype),
            swaps.compare("<", 0).choose(scalars.literal(-math.inf, dtype), scalars.literal(0, dtype)),
        ],
        lambda pivot, sign, total: [
            ir.assign(sign, pivot.compare("<", 0).choose(-sign, sign)),
            ir.assign(total, total + ir.call("math.log", ir.call("abs", pivot))),
        ],
    )  # fmt: skip


def _sign(swaps: ir.Expr, dtype: DType) -> ir.Expr:
    one, zero = scalars.literal(1, dtype), scalars.literal(0, dtype)
    is_even = (swaps % 2).compare("==", 0)
    return swaps.compare("<", 0).choose(zero, is_even.choose(one, -one))


def _of_pivots(
    low: Lowering, node: Node, start: Callable[[ir.Expr, DType], list[ir.Expr]], step: Callable[..., ir.Block]
) -> None:  # fmt: skip
    """Adds loops that accumulate the pivots of each matrix, and binds the outputs to the totals. start: the first
    totals, from the number of exchanges of rows, which is negative for a singular matrix. step: the statements for a
    pivot."""
    matrices = _matrices(low, node)
    size, matrix, dims = matrices.dims[-1], matrices.buffer.variable, matrices.dims[:-2]
    every = _Each(low, matrices, dtypes.int64).results("solve", matrix, ir.ZERO)
    outs = [low.new_buffer(every.count, output.dtype, output.name) for output in node.outputs]
    index, k = low.index_name(0), low.index_name(1)
    with low.nested() as block:
        at = low.assign(index * size * size, "at")
        swaps = low.assign(every.of(index), "swaps")
        totals = [low.assign(each, "total") for each in start(swaps, matrices.dtype)]
        # The elimination of a singular matrix stopped early, so its pivots are skipped.
        body = step(ir.load(matrix, at + k * (size + 1)), *totals)
        low.loop(k, swaps.compare(">=", 0).choose(size, 0), body)
        for out, total in zip(outs, totals):
            low.add(ir.store(out.variable, index, total))
    low.loop(index, every.count, block)
    for output, out in zip(node.outputs, outs):
        if dims:
            low.define(output, Array(out, dims))
        else:
            low.define(output, Scalar(low.assign(ir.load(out.variable, 0), output.name), output.dtype))
