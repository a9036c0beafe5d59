"""Elementwise chains over 1e3, 1e6 and 1e7 values, float32 and float64: fusion, and vector math.

Arithmetic: (x² + 1) √(x² + ½) / (x² + 2) - x, which a processor vectorises by itself. Functions: tanh(x) exp(-x²) +
√(1 + x²), which needs vector math. A new array each call, in all of the libraries.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import build, native, peers
from benchmarks.build import Arguments
from benchmarks.harness import Case

SIZES = {"1e3": 1_000, "1e6": 1_000_000, "1e7": 10_000_000}


def arguments(size: int, dtype: Any) -> Arguments:
    def make(quick: bool) -> tuple[np.ndarray]:
        count = min(size, 10_000) if quick else size
        return (np.random.default_rng(0).normal(size=count).astype(dtype),)

    return make


def arithmetic(m: Any, x: Any) -> Any:
    """The words of any of the libraries."""
    square = x * x
    return (square + 1.0) * m.sqrt(square + 0.5) / (square + 2.0) - x


def functions(m: Any, x: Any) -> Any:
    return m.tanh(x) * m.exp(-x * x) + m.sqrt(1.0 + x * x)


def machine_arithmetic(parallel: bool, dtype: Any) -> Callable[..., Any]:
    numba = peers.load("numba")
    half, one, two = dtype(0.5), dtype(1.0), dtype(2.0)

    def loop(x):
        out = np.empty_like(x)
        for i in numba.prange(x.shape[0]):
            square = x[i] * x[i]
            out[i] = (square + one) * math.sqrt(square + half) / (square + two) - x[i]
        return out

    return loop


def machine_functions(parallel: bool, dtype: Any) -> Callable[..., Any]:
    numba = peers.load("numba")
    one = dtype(1.0)

    def loop(x):
        out = np.empty_like(x)
        for i in numba.prange(x.shape[0]):
            v = x[i]
            out[i] = math.tanh(v) * math.exp(-v * v) + math.sqrt(one + v * v)
        return out

    return loop


C_ARITHMETIC = """
void run(T *out, const T *x) {
    for (long i = 0; i < COUNT; i++) {
        T square = x[i] * x[i];
        out[i] = (square + 1) * SQRT(square + (T)0.5) / (square + 2) - x[i];
    }
}
"""
C_FUNCTIONS = """
void run(T *out, const T *x) {
    for (long i = 0; i < COUNT; i++) out[i] = TANH(x[i]) * EXP(-x[i] * x[i]) + SQRT(1 + x[i] * x[i]);
}
"""


def in_c(text: str, given: Arguments, dtype: Any) -> build.Build:
    def make(quick: bool) -> build.Call:
        suffix = "f" if dtype is np.float32 else ""
        names = "".join(f"#define {name.upper()} {name}{suffix}\n" for name in ("sqrt", "tanh", "exp"))
        kind = f"#define T {'float' if suffix else 'double'}\n#define COUNT {given(quick)[0].size}\n"
        return native.c(names + kind + text, given, np.empty_like)(quick)

    return make


def in_numba(make: Callable[..., Any], given: Arguments, dtype: Any, parallel: bool) -> build.Build:
    return lambda quick: build.numba(make(parallel, dtype), given, parallel)(quick)


@dataclass(frozen=True)
class Chain:
    """A chain in the words of each library."""

    name: str
    program: Callable[[Any, Any], Any]
    machine: Callable[[bool, Any], Callable[..., Any]]
    c: str

    def of_jax(self, jax: Any) -> Callable[..., Any]:
        return lambda x: self.program(jax.numpy, x)

    def of_torch(self, torch: Any) -> Callable[..., Any]:
        return lambda x: self.program(torch, x)

    def of_numpy(self, x: Any) -> Any:
        return self.program(np, x)

    def case(self, dtype: Any, label: str) -> Case:
        given = arguments(SIZES[label], dtype)
        # torch takes seconds to compile, so it does that for one size.
        compiled = {peers.TORCH_COMPILED: build.torch(self.of_torch, given, compile=True)} if label == "1e6" else {}
        return Case(
            f"{self.name}-{dtype.__name__[5:]}-{label}",
            f"Elementwise chain of {self.name} over {label} values, {dtype.__name__}",
            {
                peers.AUTOGRAPH: build.ours(self.program, given),
                peers.C: in_c(self.c, given, dtype),
                peers.NUMBA: in_numba(self.machine, given, dtype, parallel=False),
                peers.NUMBA_THREADS: in_numba(self.machine, given, dtype, parallel=True),
                peers.NUMPY: build.plain(self.of_numpy, given),
                peers.JAX: build.jax(self.of_jax, given),
                peers.TF: build.tensorflow(self.program, given),
                peers.TF_XLA: build.tensorflow(self.program, given, xla=True),
                peers.TORCH: build.torch(self.of_torch, given),
                **compiled,
            },
            kind=f"chain {label}",
        )


CHAINS = (
    Chain("arithmetic", arithmetic, machine_arithmetic, C_ARITHMETIC),
    Chain("functions", functions, machine_functions, C_FUNCTIONS),
)
CASES = [chain.case(dtype, label) for chain in CHAINS for dtype in (np.float32, np.float64) for label in SIZES]
