"""What each op should compute, written apart from its kernel: plain NumPy, SciPy or Python's math module.

A reference takes the operands (NumPy arrays) and the op's attributes. Elementwise ops have theirs in `pointwise.py`;
those here are others beside them, by another definition.
"""

import cmath
import math

import numpy as np

from tests.ops.library import LIBRARY


def by_element(function):
    """A function of Python floats, applied to each element; of complex numbers the one of that name in `cmath`."""
    name = getattr(function, "__name__", "")
    of_complex = {"expm1": lambda z: cmath.exp(z) - 1, "log1p": lambda z: cmath.log(1 + z)}.get(name, function)
    of_complex = getattr(cmath, name, of_complex)

    def reference(*arrays):
        if arrays[0].dtype.kind == "c":
            return np.vectorize(of_complex, otypes=[np.complex128])(*arrays)
        return np.vectorize(function, otypes=[np.float64])(*arrays)

    return reference


def logistic(v):
    return 1 / (1 + (cmath if isinstance(v, complex) else math).exp(-v))


def loop(shape, function, dtype):
    """An array filled by Python code, one index at a time."""
    result = np.zeros(shape, dtype)
    for index in np.ndindex(*shape):
        result[index] = function(*index)
    return result


def holes(shape, extra):
    rest = iter(extra)
    return tuple(int(next(rest)) if d is None else d for d in shape)


def key_of(spec, extra):
    rest = iter(extra)

    def value(part):
        return int(next(rest)) if part == "?" else part

    key = []
    for kind, *parts in spec:
        if kind == "newaxis":
            key.append(None)
        elif kind == "index":
            key.append(value(parts[0]))
        else:
            key.append(slice(*[value(p) for p in parts]))
    return tuple(key)


def slice_grad(dy, *rest, spec, shape):
    count = shape.count(None)
    positions = np.arange(math.prod(holes(shape, rest[:count]))).reshape(holes(shape, rest[:count]))
    result = np.zeros(positions.size, dy.dtype)
    result[positions[key_of(spec, rest[count:])].reshape(-1)] = dy.reshape(-1)
    return result.reshape(positions.shape)


def running(neutral, combine):
    def reference(x, axis, exclusive, reverse):
        lines = np.moveaxis(x, axis, -1)
        result = np.zeros_like(lines)
        for index in np.ndindex(*lines.shape[:-1]):
            total = x.dtype.type(neutral)
            order = range(lines.shape[-1])
            for i in reversed(order) if reverse else order:
                if exclusive:
                    result[(*index, i)] = total
                total = combine(total, lines[(*index, i)])
                if not exclusive:
                    result[(*index, i)] = total
        return np.moveaxis(result, -1, axis)

    return reference


def sum_to(x, like):
    result = np.zeros(like.shape, x.dtype)
    for index in np.ndindex(*x.shape):
        tail = index[len(index) - like.ndim :]
        result[tuple(0 if d == 1 else i for i, d in zip(tail, like.shape))] += x[index]
    return result


def matmul(a, b, transpose_a, transpose_b):
    a = a.swapaxes(-1, -2) if transpose_a else a
    b = b.swapaxes(-1, -2) if transpose_b else b
    return np.einsum("...ij,...jk->...ik", a, b)


def scattered(shape, indices, updates, start=None, add=True):
    result = np.zeros(shape, updates.dtype) if start is None else start.copy()
    for position in np.ndindex(*indices.shape[:-1]):
        target = tuple(int(i) for i in indices[position])
        result[target] = result[target] + updates[position] if add else updates[position]
    return result


def gather_grad(dy, indices, *rest, axis, shape):
    return index_add(np.zeros(holes(shape, rest), dy.dtype), indices, dy, axis)


def index_add(acc, indices, values, axis):
    result = acc.copy()
    for position in np.ndindex(*indices.shape):
        target = [slice(None)] * acc.ndim
        target[axis] = int(indices[position])
        result[tuple(target)] += values[(slice(None),) * axis + position]
    return result


def reduction(function):
    return lambda x, axis, keepdims: function(x, axis=tuple(axis), keepdims=keepdims)


def integer_mean(x, axis, keepdims):
    if x.dtype.kind in "fc":
        return np.mean(x.astype(np.result_type(x.dtype, np.float64)), axis=axis, keepdims=keepdims)
    with np.errstate(over="ignore"):
        total = np.sum(x, axis=axis, dtype=x.dtype, keepdims=keepdims)
    count = x.size // np.size(total)
    return np.vectorize(lambda t: int(math.trunc(int(t) / count)), otypes=[x.dtype])(total)


def extreme(function, of_nothing):
    def reference(x, axis, keepdims):
        if x.size:
            return function(x, axis, keepdims=keepdims)
        return np.full(np.sum(x, axis, keepdims=keepdims).shape, of_nothing(x.dtype))

    return reference


def gather(x, indices, axis):
    count = indices.ndim
    picked = np.moveaxis(x, axis, 0)[indices]
    return np.moveaxis(picked, range(count), range(axis, axis + count))


def extremes(choose, x, indices, updates):
    result = x.copy()
    vectors = np.ndindex(indices.shape[:-1])
    places = [(k, (*map(int, indices[k]), ...)) for k in vectors]
    for k, place in places:
        result[place] = choose(result[place], updates[k])
    kept, won = (np.zeros(updates.shape, bool) for _ in range(2))
    for k, place in places:
        kept[(*k, ...)], won[(*k, ...)] = x[place] == result[place], updates[k] == result[place]
    return result, kept, won


def row_update(buffer, i, value):
    return np.stack([value if k == i else row for k, row in enumerate(buffer)])


REFERENCES = {
    "identity": lambda x: x, "ones_like": np.ones_like,
    "to_device": lambda x, device: x,
    "check_numerics": lambda x, message: x,
    "floormod": lambda x, y: x - np.floor(x / y) * y if x.dtype.kind == "f" else x % y,
    "truncatediv": lambda x, y: np.trunc(x / y),
    "pow": lambda x, y: np.exp(y * np.log(x)) if x.dtype.kind == "f" else x**y,
    "atan2": by_element(math.atan2),
    "real": lambda z: (z + z.conj()) / 2, "imag": lambda z: (z - z.conj()) / 2j, "conj": lambda z: abs(z) ** 2 / z,
    "complex_abs": lambda z: np.sqrt(z * z.conj()), "angle": by_element(cmath.phase),
    "complex": lambda x, y: x + 1j * y,
    "reciprocal": lambda x: x ** x.dtype.type(-1),
    "exp": by_element(math.exp), "expm1": by_element(math.expm1), "log": by_element(math.log),
    "log1p": by_element(math.log1p), "sqrt": by_element(math.sqrt), "rsqrt": by_element(lambda v: v**-0.5),
    "sin": by_element(math.sin), "cos": by_element(math.cos), "tan": by_element(math.tan),
    "asin": by_element(math.asin), "acos": by_element(math.acos), "atan": by_element(math.atan),
    "sinh": by_element(math.sinh), "cosh": by_element(math.cosh), "tanh": by_element(math.tanh),
    "sech": by_element(lambda v: 2 / (math.exp(v) + math.exp(-v))),
    "asinh": by_element(math.asinh), "acosh": by_element(math.acosh), "atanh": by_element(math.atanh),
    "erf": by_element(math.erf), "erfc": by_element(math.erfc), "sigmoid": by_element(logistic),
    "relu": lambda x: np.where(x > 0, x, 0), "softplus": by_element(lambda v: math.log(math.exp(v) + 1)),
    "where_true": lambda x: np.array([i for i in np.ndindex(*x.shape) if x[i]], np.int64).reshape(
        np.sum(x != 0), x.ndim
    ),
    "reduce_sum": reduction(np.sum), "reduce_prod": reduction(np.prod), "reduce_mean": integer_mean,
    "reduce_max": extreme(np.max, lambda dtype: -np.inf if dtype.kind == "f" else np.iinfo(dtype).min),
    "reduce_min": extreme(np.min, lambda dtype: np.inf if dtype.kind == "f" else np.iinfo(dtype).max),
    "reduce_any": reduction(np.any), "reduce_all": reduction(np.all),
    "argmax": lambda x, axis, output_type: np.argmax(x, axis),
    "argmin": lambda x, axis, output_type: np.argmin(x, axis),
    "cumsum": running(0, lambda a, b: a + b), "cumprod": running(1, lambda a, b: a * b),
    "cumulative_logsumexp": running(-np.inf, np.logaddexp),
    "shape": lambda x, dtype: np.array(x.shape, dtype.np), "dim": lambda x, axis: np.array(x.shape[axis]),
    "size": lambda x, dtype: np.array(x.size), "rank": lambda x: np.array(x.ndim),
    "reshape": lambda x, *extra, shape: np.reshape(x, holes(shape, extra)),
    "expand_dims": lambda x, axis: np.expand_dims(x, axis), "squeeze": lambda x, axis: np.squeeze(x, axis),
    "transpose": lambda x, perm: loop(
        tuple(x.shape[p] for p in perm), lambda *i: x[tuple(i[perm.index(k)] for k in range(x.ndim))], x.dtype
    ),
    "broadcast_to": lambda x, *extra, shape: np.zeros(holes(shape, extra), x.dtype) + x if x.dtype != object else (
        np.broadcast_to(x, holes(shape, extra))
    ),
    "fill": lambda dims, value: np.broadcast_to(value, tuple(dims.tolist())),
    "broadcast_like": lambda x, like: np.broadcast_to(x, like.shape),
    "sum_to_shape_of": sum_to,
    "ensure_shape": lambda x, shape: x,
    "strided_slice": lambda x, *extra, spec: np.asarray(x[key_of(spec, extra)]),
    "slice_grad": slice_grad,
    "slice_add": lambda acc, dy, *extra, spec: acc + slice_grad(dy, *extra, spec=spec, shape=acc.shape),
    "concat": lambda *xs, axis: np.concatenate(xs, axis),
    "stack": lambda *xs, axis: np.moveaxis(np.array(xs), 0, axis),
    "unstack": lambda x, axis, num: tuple(np.moveaxis(x, axis, 0)),
    "split": lambda x, axis, sizes: tuple(
        np.take(x, range(sum(sizes[:i]), sum(sizes[: i + 1])), axis) for i in range(len(sizes))
    ),
    "tile": lambda x, *extra, multiples: loop(
        tuple(d * m for d, m in zip(x.shape, holes(multiples, extra))),
        lambda *i: x[tuple(k % d for k, d in zip(i, x.shape))], x.dtype,
    ),
    "pad": lambda x, paddings, constant_values: loop(
        tuple(a + d + b for d, (a, b) in zip(x.shape, paddings)),
        lambda *i: (
            x[tuple(k - a for k, (a, _) in zip(i, paddings))]
            if all(a <= k < a + d for k, d, (a, _) in zip(i, x.shape, paddings)) else constant_values
        ),
        x.dtype,
    ),
    "reverse": lambda x, axis: x[tuple(slice(None, None, -1 if k in axis else 1) for k in range(x.ndim))],
    "gather": gather,
    "gather_grad": gather_grad, "index_add": index_add,
    "gather_nd": lambda x, indices: np.stack([x[tuple(i)] for i in indices]),
    "scatter_nd": lambda indices, updates, *extra, shape: scattered(holes(shape, extra), indices, updates),
    "tensor_scatter_nd_update": lambda x, i, u: scattered(None, i, u, x, add=False),
    "tensor_scatter_nd_add": lambda x, i, u: scattered(None, i, u, x),
    "tensor_scatter_nd_max": lambda x, i, u: extremes(np.maximum, x, i, u),
    "tensor_scatter_nd_min": lambda x, i, u: extremes(np.minimum, x, i, u),
    "repeated_positions": lambda x: np.array([i for i, n in enumerate(x) for _ in range(n)], np.int32),
    "bitcast": lambda x, dtype: np.frombuffer(x.tobytes(), dtype.np).reshape(
        x.shape if x.itemsize == 1 else (*x.shape, x.itemsize)
    ),
    "zeros_like": lambda x: np.full(x.shape, b"" if x.dtype == object else 0, x.dtype),
    "row_update": row_update,
    "boolean_mask": lambda x, mask: np.array([x[i] for i in np.ndindex(*mask.shape) if mask[i]], x.dtype),
    "range": lambda start, limit, delta, size: np.arange(start, limit, delta),
    "matmul": matmul,
    "string_add": lambda x, y: np.vectorize(lambda a, b: a + b, otypes=[object])(x, y),
}  # fmt: skip
REFERENCES.update(LIBRARY)
