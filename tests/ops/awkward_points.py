"""What functions and their gradients give at awkward points: zeros, ties, ends, infinities, empty tensors.

`cases(T)` makes them from a namespace, `ag` or TensorFlow's. awkward_points.json holds TensorFlow's answers; where
TensorFlow is installed, `python -m tests.ops.awkward_points` writes them anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ANSWERS = Path(__file__).with_suffix(".json")
nan, inf = float("nan"), float("inf")
Case = tuple[Callable[..., Any], tuple[Any, ...]]


def cases(T: Any) -> dict[str, Case]:
    """name -> (function of float64 tensors, their values)."""
    m, nn = T.math, T.nn
    found: dict[str, Case] = {}

    def C(value: Any) -> Any:
        return T.constant(np.array(value, np.float64))

    def I(value: Any) -> Any:
        return T.constant(np.array(value, np.int32))

    def case(name: str, f: Callable[..., Any], *args: Any) -> None:
        found[name] = (f, args)

    for fn in ("abs", "sign", "sqrt", "square", "exp", "tanh", "sigmoid", "sin", "round", "floor"):
        case(fn + "@0", getattr(T, fn), [0.0, -0.0])
    for fn in (
        "rsqrt",
        "log",
        "log1p",
        "reciprocal",
        "lgamma",
        "digamma",
        "erf",
        "erfinv",
        "softplus",
        "log_sigmoid",
        "expm1",
        "asinh",
    ):
        case("math." + fn + "@0", getattr(m, fn), [0.0, -0.0])
    for fn in ("acos", "asin", "atanh", "acosh"):
        case(fn + "@1", getattr(T, fn), [1.0, -1.0] if fn != "acosh" else [1.0])
    case("log1p@-1", m.log1p, [-1.0])
    case("norm@0", lambda x: T.norm(x), [0.0, 0.0])
    case("norm ax", lambda x: T.norm(x, axis=1), [[0.0, 0.0], [3.0, 4.0]])
    case("norm1@0", lambda x: T.norm(x, ord=1), [0.0, -2.0])
    case("norminf tie", lambda x: T.norm(x, ord=np.inf), [2.0, -2.0, 1.0])
    case("l2_normalize@0", lambda x: m.l2_normalize(x), [0.0, 0.0])
    case("l2_normalize ax", lambda x: m.l2_normalize(x, axis=1), [[0.0, 0.0], [3.0, 4.0]])
    for a, b in (
        (0.0, 0.0),
        (0.0, 1.0),
        (0.0, 2.0),
        (0.0, 0.5),
        (0.0, -1.0),
        (2.0, 0.0),
        (-2.0, 2.0),
        (-2.0, 3.0),
        (-2.0, 0.5),
        (-0.0, 3.0),
        (1.0, inf),
        (inf, 0.0),
    ):
        case(f"pow {a} {b}", T.pow, [a], [b])
    case("max tie", T.maximum, [1.0, 2.0, 3.0], [1.0, 3.0, 2.0])
    case("min tie", T.minimum, [1.0, 2.0, 3.0], [1.0, 3.0, 2.0])
    case("maximum nan", T.maximum, [nan, 1.0], [1.0, nan])
    case("reduce_max tie", T.reduce_max, [2.0, 2.0, 1.0])
    case("reduce_min tie", T.reduce_min, [1.0, 2.0, 1.0])
    case("reduce_max tie ax", lambda x: T.reduce_max(x, axis=1), [[2.0, 2.0, 1.0], [1.0, 1.0, 1.0]])
    case("reduce_max nan", T.reduce_max, [2.0, nan, 1.0])
    case("argmax tie", lambda x: T.cast(T.argmax(x), T.float64), [2.0, 2.0, 1.0])
    for fn in ("relu", "relu6", "leaky_relu", "elu", "selu", "silu", "gelu", "softplus", "softsign", "sigmoid"):
        case("nn." + fn, getattr(nn, fn), [0.0, -0.0, 6.0, -1.0, 7.0])
    case("where nan", lambda x: T.where(x > 0.0, T.sqrt(x), 0.0 * x), [-1.0, 0.0, 4.0])
    case("where2 nan", lambda x: T.where(x > 0.0, m.log(x), x), [-1.0, 0.0, 4.0])
    case(
        "where safe", lambda x: T.where(x > 0.0, T.sqrt(T.where(x > 0.0, x, T.ones_like(x))), 0.0 * x), [-1.0, 0.0, 4.0]
    )
    case("divide_no_nan", m.divide_no_nan, [1.0, 0.0, 3.0], [0.0, 0.0, 2.0])
    case("multiply_no_nan", m.multiply_no_nan, [inf, nan, 3.0], [0.0, 0.0, 2.0])
    case("divide0", T.divide, [1.0, 0.0], [0.0, 0.0])
    case("xlogy", m.xlogy, [0.0, 0.0, 2.0, 0.0], [0.0, 2.0, 3.0, nan])
    case("xlog1py", m.xlog1py, [0.0, 0.0, 2.0], [-1.0, 2.0, 3.0])
    case("xdivy", m.xdivy, [0.0, 0.0, 2.0], [0.0, 2.0, 3.0])
    case("atan2", T.atan2, [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, -1.0])
    for n_, v in (("0z", [2.0, 3.0, 4.0]), ("1z", [2.0, 0.0, 4.0]), ("2z", [0.0, 0.0, 4.0]), ("3z", [0.0, 0.0, 0.0])):
        case("prod " + n_, T.reduce_prod, v)
        case("cumprod " + n_, lambda x: m.cumprod(x), v)
        case("cumprod ex " + n_, lambda x: m.cumprod(x, exclusive=True), v)
        case("cumprod rev " + n_, lambda x: m.cumprod(x, reverse=True), v)
    case("prod ax", lambda x: T.reduce_prod(x, axis=1), [[2.0, 0.0], [3.0, 4.0], [0.0, 0.0]])
    for fn in ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_mean", "reduce_logsumexp", "norm"):
        case("empty " + fn, getattr(T, fn), np.zeros((0,)))
    case("empty sum ax", lambda x: T.reduce_sum(x, axis=0), np.zeros((0, 3)))
    case("empty max ax", lambda x: T.reduce_max(x, axis=1), np.zeros((0, 3)))
    case("empty mean ax", lambda x: T.reduce_mean(x, axis=0), np.zeros((0, 3)))
    case("empty cumsum", T.cumsum, np.zeros((0,)))
    case("empty matmul", T.matmul, np.zeros((2, 0)), np.zeros((0, 3)))
    case("empty softmax", lambda x: nn.softmax(x), np.zeros((2, 0)))
    case("clip ends", lambda x: T.clip_by_value(x, 0.0, 1.0), [0.0, 1.0, -1.0, 2.0, 0.5])
    case("clip lohi", lambda x, l, h: T.clip_by_value(x, l, h), [0.0, 1.0, -1.0, 2.0, 0.5], [0.0] * 5, [1.0] * 5)
    case("clip_by_norm 0", lambda x: T.clip_by_norm(x, 1.0), [0.0, 0.0])
    case("clip_by_norm edge", lambda x: T.clip_by_norm(x, 5.0), [3.0, 4.0])
    case("clip_by_norm", lambda x: T.clip_by_norm(x, 1.0), [3.0, 4.0])
    case("lse -inf", T.reduce_logsumexp, [-inf, -inf])
    case("lse -inf 1", T.reduce_logsumexp, [-inf, 1.0])
    case("lse inf", T.reduce_logsumexp, [inf, 1.0])
    case("lse big", T.reduce_logsumexp, [1000.0, 1000.0, -1000.0])
    case("softmax big", lambda x: nn.softmax(x), [1000.0, 1000.0, -1000.0])
    case("log_softmax big", lambda x: nn.log_softmax(x), [1000.0, 1000.0, -1000.0])
    case("softmax -inf", lambda x: nn.softmax(x), [-inf, 1.0])
    case("xent", lambda x, y: nn.softmax_cross_entropy_with_logits(labels=y, logits=x), [[1000.0, 0.0]], [[0.0, 1.0]])
    case(
        "sig xent",
        lambda x, y: nn.sigmoid_cross_entropy_with_logits(labels=y, logits=x),
        [0.0, 1000.0, -1000.0],
        [0.0, 0.0, 1.0],
    )
    case("sort tie", lambda x: T.sort(x), [2.0, 1.0, 2.0, 1.0])
    case("sort desc tie", lambda x: T.sort(x, direction="DESCENDING"), [2.0, 1.0, 2.0, 1.0])
    case("argsort tie", lambda x: T.cast(T.argsort(x, direction="DESCENDING"), T.float64) * 1.0, [2.0, 1.0, 2.0, 1.0])
    case("top_k tie", lambda x: m.top_k(x, 2)[0], [1.0, 2.0, 2.0, 2.0])
    case("top_k idx", lambda x: T.cast(m.top_k(x, 3)[1], T.float64), [1.0, 2.0, 2.0, 2.0])
    for fn in ("segment_sum", "segment_mean", "segment_max", "segment_min", "segment_prod"):
        case(fn, lambda x, fn=fn: getattr(m, fn)(x, I([0, 0, 2, 2])), [1.0, 1.0, 3.0, 0.0])
    for fn in (
        "unsorted_segment_sum",
        "unsorted_segment_mean",
        "unsorted_segment_max",
        "unsorted_segment_min",
        "unsorted_segment_prod",
        "unsorted_segment_sqrt_n",
    ):
        case(fn, lambda x, fn=fn: getattr(m, fn)(x, I([3, 0, 3, -1]), 5) * 1.0, [0.0, 1.0, 0.0, 2.0])
    case("gather rep", lambda x: T.gather(x, I([1, 1, 0, 1])), [1.0, 2.0, 3.0])
    case("gather_nd rep", lambda x: T.gather_nd(x, I([[1], [1]])), [1.0, 2.0, 3.0])
    case("scatter rep", lambda x: T.scatter_nd(I([[1], [1]]), x, I([3])), [1.0, 2.0])
    case("tsnu rep", lambda x, y: T.tensor_scatter_nd_update(x, I([[1], [1]]), y), [1.0, 2.0, 3.0], [5.0, 6.0])
    case("tsn max tie", lambda x, y: T.tensor_scatter_nd_max(x, I([[1], [0]]), y), [1.0, 2.0, 3.0], [2.0, 5.0])
    case("mm bc", lambda a, b: T.matmul(a, b), np.arange(8.0).reshape(2, 1, 2, 2), np.arange(12.0).reshape(3, 2, 2))
    case(
        "mm bc2",
        lambda a, b: T.matmul(a, b, transpose_b=True),
        np.arange(4.0).reshape(2, 2),
        np.arange(12.0).reshape(3, 2, 2),
    )
    case("einsum trace", lambda a: T.einsum("ii", a), np.arange(9.0).reshape(3, 3))
    case("einsum diag", lambda a: T.einsum("ii->i", a), np.arange(9.0).reshape(3, 3))
    case("einsum rep", lambda a, b: T.einsum("ij,ij->i", a, b), np.arange(6.0).reshape(2, 3), np.ones((2, 3)))
    case("einsum sumaway", lambda a, b: T.einsum("ij,k->i", a, b), np.arange(6.0).reshape(2, 3), np.arange(2.0))
    case(
        "einsum bc",
        lambda a, b: T.einsum("...ij,jk->...ik", a, b),
        np.arange(6.0).reshape(1, 2, 3),
        np.arange(6.0).reshape(3, 2),
    )
    case("mod", m.floormod, [5.0, -5.0, 4.0], [2.0, 3.0, -2.0])
    case("floordiv", m.floordiv, [5.0], [2.0])
    case("truncatemod", T.truncatemod if hasattr(T, "truncatemod") else m.floormod, [5.0, -5.0], [2.0, 3.0])
    case("sqdiff", m.squared_difference, [0.0], [0.0])
    case("std0", m.reduce_std, [1.0, 1.0])
    case("var0", m.reduce_variance, [1.0, 1.0])
    case("euclid", lambda x: m.reduce_euclidean_norm(x), [0.0, 0.0])
    case("cumulative_logsumexp", lambda x: m.cumulative_logsumexp(x), [-inf, 1.0, -inf])
    case("nextafter", m.nextafter, [0.0], [1.0])
    case("dropout0", lambda x: nn.dropout(x, 0.0), [0.0, 1.0])
    case("bessel_i0e", lambda x: m.bessel_i0e(x), [0.0])
    case("max_pool tie", lambda x: nn.max_pool2d(T.reshape(x, [1, 2, 2, 1]), 2, 2, "VALID"), [1.0, 1.0, 1.0, 0.0])
    case("moments", lambda x: nn.moments(x, [0])[1], [1.0, 1.0])
    case("complex abs", lambda x: T.abs(T.complex(x, x)), [0.0, 1.0])
    case("polyval", lambda x: m.polyval([C(1.0), C(2.0)], x), [0.0])
    case("zero_fraction", lambda x: nn.zero_fraction(x) * 1.0, [0.0, 1.0])
    case("det sing", lambda a: T.linalg.det(a), [[1.0, 0.0], [0.0, 2.0]])
    case("trace", lambda a: T.linalg.trace(a), [[1.0, 0.0], [0.0, 2.0]])
    case("clip_by_global_norm 0", lambda x: T.clip_by_global_norm([x], 1.0)[0][0], [0.0, 0.0])

    return found


def numbers(tensor: Any) -> Any:
    return np.asarray(tensor.numpy(), np.float64).tolist()


def answer(T: Any, f: Callable[..., Any], arguments: tuple[Any, ...]) -> list[Any]:
    """[value, gradients of its sum by the arguments, None where there is none], as lists."""
    points = [T.constant(np.array(a, np.float64)) for a in arguments]
    with T.GradientTape() as tape:
        tape.watch(points)
        y = f(*points)
    slopes = tape.gradient(y, points)
    return [numbers(y), [None if s is None else numbers(T.convert_to_tensor(s)) for s in slopes]]


def main() -> None:
    import tensorflow as tf

    found = {}
    for name, (f, arguments) in cases(tf).items():
        try:
            found[name] = answer(tf, f, arguments)
        except LookupError:  # no gradient there
            continue
    rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in found.items())
    ANSWERS.write_text("{\n" + rows + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
