"""Reductions, running sums, products of matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from autograph.onnx_models.operators.registry import Call, operator
from runtime import dtypes
from runtime.ops import api as ops
from runtime.ops.dispatch import call
from runtime.ops.linalg.einsum import einsum


def _whole(reduce: Callable[..., Any]) -> Callable[..., Any]:
    """The reduction `reduce_max` or `reduce_min`, extended to booleans, where they are `any` and `all`."""

    def run(x: Any, axis: Any, keepdims: bool) -> Any:
        if x.dtype is dtypes.bool_:
            reduce_ = ops.reduce_any if reduce is ops.reduce_max else ops.reduce_all
            return reduce_(x, axis, keepdims)
        return reduce(x, axis, keepdims)

    return run


_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "ReduceSum": ops.reduce_sum, "ReduceProd": ops.reduce_prod, "ReduceMean": ops.reduce_mean,
    "ReduceMax": _whole(ops.reduce_max), "ReduceMin": _whole(ops.reduce_min),
    "ReduceSumSquare": lambda x, *how: ops.reduce_sum(x * x, *how),
    "ReduceL1": lambda x, *how: ops.reduce_sum(ops.abs(x), *how),
    "ReduceL2": lambda x, *how: ops.sqrt(ops.reduce_sum(x * x, *how)),
    "ReduceLogSum": lambda x, *how: ops.log(ops.reduce_sum(x, *how)),
    "ReduceLogSumExp": lambda x, *how: ops.reduce_logsumexp(x, *how),
}  # fmt: skip


@operator(*_REDUCTIONS)
def _reduce(node: Call, x: Any, axes: Any = None) -> Any:
    found = node.axes(axes)
    if not found:
        if node.get("noop_with_empty_axes", 0):
            # Of each element by itself.
            return _REDUCTIONS[node.op](x[None], 0, False)
        found = None
    return _REDUCTIONS[node.op](x, None if found is None else list(found), bool(node.get("keepdims", 1)))


@operator("ArgMax", "ArgMin")
def _arg(node: Call, x: Any) -> Any:
    axis, find = node.get("axis", 0) % node.rank(x), ops.argmax if node.op == "ArgMax" else ops.argmin
    if node.get("select_last_index", 0):
        size = ops.cast(call("dim", x, axis=axis), dtypes.int64)
        found = size - 1 - find(ops.reverse(x, [axis]), axis, output_type=dtypes.int64)
    else:
        found = find(x, axis, output_type=dtypes.int64)
    return ops.expand_dims(found, axis) if node.get("keepdims", 1) else found


@operator("CumSum", "CumProd")
def _cumulated(node: Call, x: Any, axis: Any) -> Any:
    run = ops.cumsum if node.op == "CumSum" else ops.cumprod
    place = node.ints(axis, "the axis")[0]
    return run(x, place, exclusive=bool(node.get("exclusive", 0)), reverse=bool(node.get("reverse", 0)))


# --- products --------------------------------------------------------------------------------------------------------


@operator("MatMul")
def _matmul(node: Call, a: Any, b: Any) -> Any:
    one, other = node.rank(a) == 1, node.rank(b) == 1
    result = ops.matmul(a[None] if one else a, b[:, None] if other else b)
    if one:
        result = ops.squeeze(result, [-1 if other and node.rank(result) == 1 else -2])
    return ops.squeeze(result, [-1]) if other else result


@operator("MatMulInteger")
def _matmul_integer(node: Call, a: Any, b: Any, a_zero: Any = None, b_zero: Any = None) -> Any:
    a, b = ops.cast(a, dtypes.int32), ops.cast(b, dtypes.int32)
    if a_zero is not None:
        zero = ops.cast(a_zero, dtypes.int32)
        a = a - (zero[:, None] if node.rank(zero) == 1 else zero)
    return _matmul(node, a, b if b_zero is None else b - ops.cast(b_zero, dtypes.int32))


@operator("Gemm")
def _gemm(node: Call, a: Any, b: Any, c: Any = None) -> Any:
    product = ops.matmul(a, b, transpose_a=bool(node.get("transA", 0)), transpose_b=bool(node.get("transB", 0)))
    product = _times(product, node.get("alpha", 1.0))
    return product if c is None else product + _times(c, node.get("beta", 1.0))


def _times(x: Any, factor: float) -> Any:
    return x if factor == 1 else x * ops.cast(ops.constant(factor, dtypes.float64), x.dtype)


@operator("Einsum")
def _einsum(node: Call, *inputs: Any) -> Any:
    return einsum(node.get("equation").replace(" ", ""), *inputs)


@operator("Det")
def _det(node: Call, x: Any) -> Any:
    return call("matrix_determinant", x)
