"""Ten products of 256 × 256 matrices, one after the other, with a tanh between them, float32: unrolled in Python, as
layers are."""

from typing import Any

import numpy as np

from benchmarks import build, peers
from benchmarks.harness import Case


def arguments(quick: bool) -> tuple[np.ndarray, np.ndarray]:
    size = 16 if quick else 256
    random = np.random.default_rng(0)
    return random.normal(size=(size, size)).astype(np.float32), (
        random.normal(size=(10, size, size)) / size**0.5
    ).astype(np.float32)


def chain(m: Any, x: Any, weights: Any) -> Any:
    for i in range(10):
        x = m.tanh(m.linalg.matmul(x, weights[i]))
    return x


def numpy_chain(x, weights):
    for weight in weights:
        x = np.tanh(x @ weight)
    return x


def make_jax(jax: Any) -> Any:
    def jax_chain(x, weights):
        for i in range(10):
            x = jax.numpy.tanh(x @ weights[i])
        return x

    return jax_chain


def make_torch(torch: Any) -> Any:
    def torch_chain(x, weights):
        for i in range(10):
            x = torch.tanh(x @ weights[i])
        return x

    return torch_chain


CASES = [
    Case(
        "products",
        "Ten matrix products with tanh between them, 256 × 256, float32",
        {
            peers.AUTOGRAPH: build.ours(chain, arguments),
            peers.NUMPY: build.plain(numpy_chain, arguments),
            peers.JAX: build.jax(make_jax, arguments),
            peers.TF: build.tensorflow(chain, arguments),
            peers.TF_XLA: build.tensorflow(chain, arguments, xla=True),
            peers.TORCH: build.torch(make_torch, arguments),
        },
        rtol=1e-4,
        kind="array program",
    )
]
