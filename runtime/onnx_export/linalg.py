"""Factorizations of matrices, which ONNX has no operations for: written with ours, as loops, and lowered as programs.

    matrix_solve, matrix_inverse, determinants     elimination of Gauss and Jordan with pivots from the column
    cholesky                                       column by column, what is left after each
    matrix_triangular_solve                        substitution, row by row

A matrix that can't be factorized gives NaN or infinities here, where our programs end with an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runtime import dtypes
from runtime.graph.builder import Builder, emit_while, trace_region
from runtime.graph.ir import Node
from runtime.onnx_export.control_flow import lower_region
from runtime.onnx_export.emitter import Emitter, Ref, lowering
from runtime.ops.dispatch import call
from runtime.types import TensorType

Program = Callable[..., Sequence[Any]]


def _lowered(e: Emitter, node: Node, program: Program) -> list[Ref]:
    """What a program on tensors of the operands' types computes of them. Half floats are computed in float32."""
    own = node.inputs[0].dtype
    wide = dtypes.float32 if own.size < 4 else own
    builder = Builder(node.op.name)
    inputs = [builder.add_input(TensorType(wide, (None,) * e.rank(v))) for v in node.inputs]
    with builder:
        results = [builder.use(each) for each in program(*[builder.tensor(v) for v in inputs], **node.attrs)]
    builder.graph.outputs = results
    made = lower_region(e, builder.graph, [e.cast(ref, wide) for ref in e.inputs(node)])
    return [e.cast(ref, own) for ref in made]


def _times(count: Any, step: Callable[..., Sequence[Any]], *start: Any) -> list[Any]:
    """What a loop carries after so many trips of `step(number of the trip, *carries)`."""
    types = [TensorType(dtypes.int32, ()), *[TensorType(x.dtype, (None,) * len(x.shape)) for x in start]]
    test = trace_region("test", lambda k, *_: [call("less", k, count)], types)
    body = trace_region("body", lambda k, *carries: [k + 1, *step(k, *carries)], types)
    return emit_while(test, body, [call("cast", call("zeros_like", count), dtype=dtypes.int32), *start])[1:]


def _rows(x: Any) -> tuple[Any, Any, Any]:
    """How many rows matrices have, the rows' numbers as a column, and the columns' as a row."""
    count = call("dim", x, axis=len(x.shape) - 2)
    wide = call("dim", x, axis=len(x.shape) - 1)
    return count, call("expand_dims", _numbers(count), axis=(1,)), _numbers(wide)


def _numbers(count: Any) -> Any:
    zero = call("zeros_like", count)
    return call("range", zero, count, zero + 1, size=None)


def _row(x: Any, k: Any) -> Any:
    """Row k, as matrices of one row."""
    return call("expand_dims", call("gather", x, k, axis=len(x.shape) - 2), axis=(len(x.shape) - 2,))


def _column(x: Any, k: Any) -> Any:
    return call("expand_dims", call("gather", x, k, axis=len(x.shape) - 1), axis=(len(x.shape) - 1,))


def _flipped(x: Any) -> Any:
    rank = len(x.shape)
    return call("transpose", x, perm=(*range(rank - 2), rank - 1, rank - 2))


def _eliminated(x: Any, count: Any) -> tuple[Any, Any, Any]:
    """Matrices whose first `count` columns have become diagonal, the diagonal's product's sign, and the sum of the
    logarithms of its sizes."""
    _, rows, _ = _rows(x)
    zero = call("reduce_sum", call("zeros_like", x), axis=(len(x.shape) - 2, len(x.shape) - 1), keepdims=False)

    def step(k: Any, x: Any, sign: Any, size: Any) -> Sequence[Any]:
        here = _column(x, k)
        below = call("select", call("less", rows, k), call("zeros_like", here) - 1, call("abs", here))
        place = call("argmax", below, axis=len(x.shape) - 2, output_type=dtypes.int32)
        place = call("expand_dims", place, axis=(len(x.shape) - 2,))
        at = call("equal", rows, place)
        pivots = call(
            "reduce_sum", call("select", at, x, call("zeros_like", x)), axis=(len(x.shape) - 2,), keepdims=True
        )
        swapped = call("select", at, _row(x, k), x)
        pivot = _column(pivots, k)
        factors = call("divide", _column(swapped, k), pivot)
        is_k = call("equal", rows, k)
        left = call("select", is_k, pivots, swapped - call("multiply", factors, pivots))
        number = call("squeeze", pivot, axis=(len(x.shape) - 2, len(x.shape) - 1))
        moved = call("squeeze", call("equal", place, k), axis=(len(x.shape) - 2, len(x.shape) - 1))
        turn = call("select", moved, call("ones_like", sign), call("negative", call("ones_like", sign)))
        sign = call("multiply", call("multiply", sign, turn), call("sign", number))
        return left, sign, size + call("log", call("abs", number))

    found = _times(count, step, x, call("ones_like", zero), zero)
    return found[0], found[1], found[2]


def _solve(matrix: Any, right: Any, adjoint: bool = False) -> Sequence[Any]:
    matrix = _flipped(matrix) if adjoint else matrix
    count, _, _ = _rows(matrix)
    left, _, _ = _eliminated(call("concat", matrix, right, axis=len(matrix.shape) - 1), count)
    rows, columns = _numbers(count), _numbers(call("dim", left, axis=len(left.shape) - 1))
    on = call("equal", call("expand_dims", rows, axis=(1,)), columns)
    diagonal = call(
        "reduce_sum", call("select", on, left, call("zeros_like", left)), axis=(len(left.shape) - 1,), keepdims=True
    )
    places = call("range", count, call("dim", left, axis=len(left.shape) - 1), call("ones_like", count), size=None)
    return (call("divide", call("gather", left, places, axis=len(left.shape) - 1), diagonal),)


def _inverse(matrix: Any) -> Sequence[Any]:
    _, rows, columns = _rows(matrix)
    zeros = call("zeros_like", matrix)
    return _solve(matrix, call("select", call("equal", rows, columns), call("ones_like", matrix), zeros))


def _determinant(matrix: Any) -> Sequence[Any]:
    sign, size = _log_determinant(matrix)
    return (call("multiply", sign, call("exp", size)),)


def _log_determinant(matrix: Any) -> Sequence[Any]:
    count, _, _ = _rows(matrix)
    _, sign, size = _eliminated(matrix, count)
    return sign, size


def _cholesky(matrix: Any) -> Sequence[Any]:
    count, rows, columns = _rows(matrix)

    def step(k: Any, left: Any, found: Any) -> Sequence[Any]:
        here = _column(left, k)
        column = call("divide", here, call("sqrt", _row(here, k)))
        column = call("select", call("less", rows, k), call("zeros_like", column), column)
        product = call("multiply", column, _flipped(column))
        return left - product, call("select", call("equal", columns, k), column, found)

    return _times(count, step, matrix, call("zeros_like", matrix))[1:]


def _triangular_solve(matrix: Any, right: Any, lower: bool, adjoint: bool) -> Sequence[Any]:
    rank = len(matrix.shape)
    if adjoint:
        matrix, lower = _flipped(matrix), not lower
    if not lower:
        matrix = call("reverse", matrix, axis=(rank - 2, rank - 1))
        right = call("reverse", right, axis=(len(right.shape) - 2,))
    count, rows, _ = _rows(matrix)

    def step(k: Any, left: Any) -> Sequence[Any]:
        column = _column(matrix, k)
        solved = call("divide", _row(left, k), _row(column, k))
        rest = left - call("multiply", column, solved)
        after = call("select", call("greater", rows, k), rest, left)
        return (call("select", call("equal", rows, k), solved, after),)

    (found,) = _times(count, step, right)
    return (found if lower else call("reverse", found, axis=(len(right.shape) - 2,)),)


_PROGRAMS: dict[str, Program] = {
    "matrix_solve": _solve,
    "matrix_inverse": _inverse,
    "matrix_determinant": _determinant,
    "log_matrix_determinant": _log_determinant,
    "cholesky": _cholesky,
    "matrix_triangular_solve": _triangular_solve,
}


@lowering(*_PROGRAMS)
def _program(e: Emitter, node: Node) -> Sequence[Ref]:
    return _lowered(e, node, _PROGRAMS[node.op.name])
