"""Softmax, layer normalisation and variance of the rows of a matrix, [512, 1024] float32.

Reductions and what is done with them, in as few passes over memory as may be; by the libraries' own functions where
they have one.
"""

from typing import Any

import numpy as np

from benchmarks import build, native, peers
from benchmarks.harness import Case

EPSILON = 1e-5


def shape(quick: bool) -> tuple[int, int]:
    return (8, 32) if quick else (512, 1024)


def rows(quick: bool) -> tuple[np.ndarray]:
    return (np.random.default_rng(0).normal(size=shape(quick)).astype(np.float32),)


def layer(quick: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(1)
    scale, shift = (random.normal(size=shape(quick)[1]).astype(np.float32) for _ in range(2))
    return rows(quick)[0], scale, shift


def softmax(m: Any, x: Any) -> Any:
    return m.nn.softmax(x)


def numpy_softmax(x):
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def machine_softmax(x):
    out = np.empty_like(x)
    for i in range(x.shape[0]):
        highest = x[i].max()
        total = np.float32(0.0)
        for j in range(x.shape[1]):
            out[i, j] = np.exp(x[i, j] - highest)
            total += out[i, j]
        for j in range(x.shape[1]):
            out[i, j] /= total
    return out


C_SOFTMAX = """
void run(float *out, const float *x) {
    for (int i = 0; i < ROWS; i++, x += COLUMNS, out += COLUMNS) {
        float highest = x[0], total = 0;
        for (int j = 1; j < COLUMNS; j++) if (x[j] > highest) highest = x[j];
        for (int j = 0; j < COLUMNS; j++) total += out[j] = expf(x[j] - highest);
        for (int j = 0; j < COLUMNS; j++) out[j] /= total;
    }
}
"""


def layer_norm(m: Any, x: Any, scale: Any, shift: Any) -> Any:
    mean, variance = m.nn.moments(x, axes=[1], keepdims=True)
    return (x - mean) * m.math.rsqrt(variance + EPSILON) * scale + shift


def numpy_layer_norm(x, scale, shift):
    centred = x - x.mean(axis=1, keepdims=True)
    variance = np.mean(centred * centred, axis=1, keepdims=True)
    return centred / np.sqrt(variance + np.float32(EPSILON)) * scale + shift


def machine_layer_norm(x, scale, shift):
    out = np.empty_like(x)
    n = np.float32(x.shape[1])
    for i in range(x.shape[0]):
        total = np.float32(0.0)
        for j in range(x.shape[1]):
            total += x[i, j]
        mean, squares = total / n, np.float32(0.0)
        for j in range(x.shape[1]):
            squares += (x[i, j] - mean) * (x[i, j] - mean)
        factor = np.float32(1.0) / np.sqrt(squares / n + np.float32(EPSILON))
        for j in range(x.shape[1]):
            out[i, j] = (x[i, j] - mean) * factor * scale[j] + shift[j]
    return out


C_LAYER_NORM = """
void run(float *out, const float *x, const float *scale, const float *shift) {
    for (int i = 0; i < ROWS; i++, x += COLUMNS, out += COLUMNS) {
        float total = 0, squares = 0;
        for (int j = 0; j < COLUMNS; j++) total += x[j];
        float mean = total / COLUMNS;
        for (int j = 0; j < COLUMNS; j++) squares += (x[j] - mean) * (x[j] - mean);
        float factor = 1 / sqrtf(squares / COLUMNS + 1e-5f);
        for (int j = 0; j < COLUMNS; j++) out[j] = (x[j] - mean) * factor * scale[j] + shift[j];
    }
}
"""


def variance(m: Any, x: Any) -> Any:
    return m.math.reduce_variance(x, axis=1)


def machine_variance(x):
    out = np.empty(x.shape[0], x.dtype)
    n = np.float32(x.shape[1])
    for i in range(x.shape[0]):
        total = np.float32(0.0)
        for j in range(x.shape[1]):
            total += x[i, j]
        mean, squares = total / n, np.float32(0.0)
        for j in range(x.shape[1]):
            squares += (x[i, j] - mean) * (x[i, j] - mean)
        out[i] = squares / n
    return out


C_VARIANCE = """
void run(float *out, const float *x) {
    for (int i = 0; i < ROWS; i++, x += COLUMNS) {
        float total = 0, squares = 0;
        for (int j = 0; j < COLUMNS; j++) total += x[j];
        float mean = total / COLUMNS;
        for (int j = 0; j < COLUMNS; j++) squares += (x[j] - mean) * (x[j] - mean);
        out[i] = squares / COLUMNS;
    }
}
"""


def in_c(text: str, arguments: build.Arguments, out: Any) -> build.Build:
    def make(quick: bool) -> build.Call:
        height, width = shape(quick)
        return native.c(f"#define ROWS {height}\n#define COLUMNS {width}\n{text}", arguments, out)(quick)

    return make


def jax_layer_norm(jax: Any) -> Any:
    def normalised(x, scale, shift):
        centred = jax.nn.standardize(x, axis=1, epsilon=EPSILON)
        return centred * scale + shift

    return normalised


def torch_softmax(torch: Any) -> Any:
    return lambda x: torch.softmax(x, dim=1)


def torch_layer_norm(torch: Any) -> Any:
    return lambda x, scale, shift: torch.nn.functional.layer_norm(x, x.shape[1:], scale, shift, EPSILON)


def torch_variance(torch: Any) -> Any:
    return lambda x: torch.var(x, dim=1, correction=0)


def _case(name: str, title: str, arguments: build.Arguments, program: Any, **others: Any) -> Case:
    c_text, out = others["c"]
    return Case(
        name,
        f"{title}, [512, 1024] float32",
        {
            peers.AUTOGRAPH: build.ours(program, arguments),
            peers.C: in_c(c_text, arguments, out),
            peers.NUMBA: build.numba(others["numba"], arguments),
            peers.NUMPY: build.plain(others["numpy"], arguments),
            peers.JAX: build.jax(others["jax"], arguments),
            peers.TF: build.tensorflow(program, arguments),
            peers.TF_XLA: build.tensorflow(program, arguments, xla=True),
            peers.TORCH: build.torch(others["torch"], arguments),
            peers.TORCH_COMPILED: build.torch(others["torch"], arguments, compile=True),
        },
        rtol=1e-4,
        kind="reduction",
    )


CASES = [
    _case(
        "softmax",
        "Softmax of rows",
        rows,
        softmax,
        c=(C_SOFTMAX, np.empty_like),
        numba=machine_softmax,
        numpy=numpy_softmax,
        jax=lambda jax: lambda x: jax.nn.softmax(x, axis=1),
        torch=torch_softmax,
    ),
    _case(
        "layer-norm",
        "Layer normalisation",
        layer,
        layer_norm,
        c=(C_LAYER_NORM, lambda x, scale, shift: np.empty_like(x)),
        numba=machine_layer_norm,
        numpy=numpy_layer_norm,
        jax=jax_layer_norm,
        torch=torch_layer_norm,
    ),
    _case(
        "variance",
        "Variance of rows",
        rows,
        variance,
        c=(C_VARIANCE, lambda x: np.empty(x.shape[0], x.dtype)),
        numba=machine_variance,
        numpy=lambda x: np.var(x, axis=1),
        jax=lambda jax: lambda x: jax.numpy.var(x, axis=1),
        torch=torch_variance,
    ),
]
