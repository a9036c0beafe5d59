"""The libraries that are measured beside ours, each imported only when a workload asks for it."""

import importlib
import os
import sys
from importlib import metadata
from typing import Any

import autograph as ag

# distribution name of each importable library, for its version
DISTRIBUTIONS = {
    "autograph": "autograph-numba",
    "numba": "numba",
    "numpy": "numpy",
    "jax": "jax",
    "tensorflow": "tensorflow-cpu",
    "torch": "torch",
}

AUTOGRAPH = "autograph"
C = "C, -O3 -march=native"
NUMBA = "numba, hand-written"
NUMBA_THREADS = "numba, hand-written, threads"
NUMPY = "NumPy"
PYTHON = "plain Python"
JAX = "jax.jit"
TF = "tf.function"
TF_XLA = "tf.function, XLA"
TORCH = "torch, eager"
TORCH_COMPILED = "torch.compile"


class Absent(Exception):
    """A library that isn't installed."""


def load(name: str) -> Any:
    """Imports a library, or raises Absent."""
    if name == "tensorflow":
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if name == "torch":
        # It only serves GPUs, and its copy of LLVM ends the process in which TensorFlow has brought another.
        sys.modules.setdefault("triton", None)  # type: ignore[arg-type]
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        if error.name is not None and error.name.split(".")[0] != name.split(".")[0]:
            raise  # installed, and broken: that should be seen
        raise Absent(f"{name} is not installed") from error
    if name == "jax":
        module.config.update("jax_enable_x64", True)  # some workloads are of float64
    return module


def environment(cache: str | None = None) -> dict[str, str]:
    """Of a process that measures, perhaps with a cache of kernels of its own. Python keeps the bytecode of our modules,
    as it does of installed ones, which the peers are."""
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return own if cache is None else {**own, "AUTOGRAPH_CACHE_DIR": cache}


def version(name: str) -> str | None:
    """The version of a library, without importing it; None if it isn't installed. (Ours may run from a checkout.)"""
    if name == AUTOGRAPH:
        return ag.__version__
    for distribution in (DISTRIBUTIONS[name], name):
        try:
            return metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
    return None


def tf_function(xla: bool) -> Any:
    """`tf.function` with or without XLA, as a decorator."""
    return load("tensorflow").function(jit_compile=xla)
