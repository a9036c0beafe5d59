"""First results: from an imported library to the first result of a workload, inputs, tracing and compiling included.

Each is measured in a fresh process of its own that has only imported the library, and NumPy's random numbers, of which
inputs are made. (Not in forks of one such process: each page that a child writes to is copied first, ten milliseconds
that no user pays.) Ours runs at its default settings, first with an empty cache of kernels, then in another process
with those that the first has left behind; and with `jit_compile=True`, which compiles before it answers, as JAX does.
`python -m benchmarks.overheads.first LABEL NAME...` prints a line of JSON for each.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import peers
from benchmarks.harness import Build, arrays

WORKLOADS = (
    "logistic", "logistic-gradient", "mandelbrot", "newton", "newton-gradient", "ode", "edit-distance", "sieve",
    "kalman", "viterbi", "trial-division", "arithmetic-32-1e6", "softmax", "conjugate-gradient", "sinkhorn",
    "spectral-norm-gradient", "products", "k-means", "n-body", "rnn", "lstm-gradient", "gru-gradient",
    "attention-gradient", "cnn", "mlp", "call-1",
)  # fmt: skip
QUICK = ("logistic", "call-1")
LIBRARIES = {
    peers.AUTOGRAPH: "autograph",
    peers.NUMBA: "numba",
    peers.JAX: "jax",
    peers.TF: "tensorflow",
    peers.TF_XLA: "tensorflow",
    peers.TORCH: "torch",
}
FULL_CACHE = "autograph, full cache"
COMPILED = "autograph, jit_compile=True"
OURS = (peers.AUTOGRAPH, FULL_CACHE, COMPILED)
Times = dict[str, dict[str, Any]]  # workload → what a process of its own measured


def measure(quick: bool = False, only: Sequence[str] | None = None) -> dict[str, Times]:
    """For each label of LIBRARIES and OURS: what each workload took."""
    found: dict[str, Times] = {}
    names = [name for name in (QUICK if quick else WORKLOADS) if only is None or name in only]
    with tempfile.TemporaryDirectory(prefix="autograph-benchmarks-", ignore_cleanup_errors=True) as cache:
        for label in (*OURS, *list(LIBRARIES)[1:]):
            if _library(label) == "autograph" or peers.version(_library(label)) is not None:
                folder = os.path.join(cache, "compiled" if label == COMPILED else "default")
                environment = peers.environment(folder)
                taken = ((name, _in_a_process(label, name, environment)) for name in names)
                found[label] = {name: times for name, times in taken if times is not None}
    return found


def _in_a_process(label: str, name: str, environment: Mapping[str, str]) -> dict[str, Any] | None:
    """What a fresh process measures; None where the library has no such workload, or can't run it."""
    command = [sys.executable, "-c", f"from benchmarks.overheads import first; first.one({label!r}, {name!r})"]
    root = Path(__file__).resolve().parent.parent.parent
    environment = {**environment, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=root, timeout=600)
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            found: dict[str, Any] = json.loads(line)
            return found
    if done.returncode and _library(label) == "autograph":
        raise RuntimeError(f"first result of {name}, {label}: {done.stderr[-2000:]}")
    return None


def one(label: str, name: str) -> None:
    """Prints what this process, which has done nothing yet, takes for a workload; nothing where there is none such."""
    import numpy.random

    from benchmarks.workloads import cases

    assert numpy.random
    build = cases()[name].implementations.get(peers.AUTOGRAPH if label in OURS else label)
    if build is not None:
        if _library(label) != "autograph":
            peers.load(_library(label))
        print(json.dumps(_timed(build, label)), flush=True)


def _library(label: str) -> str:
    return LIBRARIES.get(label, "autograph")


def _timed(build: Build, label: str) -> dict[str, Any]:
    """Seconds to the first result; of ours also those until the background has compiled all, and kernels compiled."""
    from benchmarks.build import setting

    with setting(True if label == COMPILED else None):
        began = time.perf_counter()
        arrays(build(False)())
        seconds = time.perf_counter() - began
        if _library(label) != "autograph":
            return {"seconds": seconds}
        from runtime.engine import kernel_counters, wait_for_background

        wait_for_background(120)
        native = time.perf_counter() - began
    return {"seconds": seconds, "native": native, "compiled": kernel_counters().compiled}


if __name__ == "__main__":
    for _name in sys.argv[2:]:
        _found = _in_a_process(sys.argv[1], _name, os.environ)
        if _found is not None:
            print(json.dumps({"name": _name, **_found}), flush=True)
