"""First results: from an imported library to the first result of a workload, inputs, tracing and compiling included.

Each is measured in a process of its own, forked from one that has only imported the library. Ours runs at its default
settings, first with an empty cache of kernels, then in another process with those that the first has left behind.
`python -m benchmarks.first LABEL NAME...` is one such process with its forks; it prints a line of JSON for each.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import peers
from benchmarks.harness import Build, arrays

WORKLOADS = (
    "logistic", "logistic-gradient", "mandelbrot", "newton", "newton-gradient", "ode", "edit-distance", "sieve",
    "kalman", "arithmetic-32-1e6", "softmax", "rnn", "lstm-gradient", "mlp", "call-1",
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
Times = dict[str, dict[str, Any]]  # workload → what `_child` measured


def measure(quick: bool = False, only: Sequence[str] | None = None) -> dict[str, Times]:
    """For each label of LIBRARIES and FULL_CACHE: what each workload took. Empty where processes can't fork."""
    found: dict[str, Times] = {}
    if not hasattr(os, "fork"):
        return found
    names = [name for name in (QUICK if quick else WORKLOADS) if only is None or name in only]
    with tempfile.TemporaryDirectory(prefix="autograph-benchmarks-", ignore_cleanup_errors=True) as cache:
        for label in (peers.AUTOGRAPH, FULL_CACHE, *list(LIBRARIES)[1:]):
            library = LIBRARIES.get(label, "autograph")
            if library != "autograph" and peers.version(library) is None:
                continue
            command = [sys.executable, "-m", "benchmarks.first", label, *names]
            environment = {**os.environ, "AUTOGRAPH_CACHE_DIR": cache, "TF_CPP_MIN_LOG_LEVEL": "3"}
            root = Path(__file__).resolve().parent.parent
            done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=root, timeout=1200)
            lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
            found[label] = {line.pop("name"): line for line in lines if line.get("seconds") is not None}
            if library == "autograph" and len(found[label]) < len(names):
                raise RuntimeError(f"first results of {label}: {done.stderr[-2000:]}")
    return found


def _main(label: str, names: Sequence[str]) -> None:
    from benchmarks.workloads import cases

    known = cases()
    if LIBRARIES.get(label, "autograph") != "autograph":
        peers.load(LIBRARIES[label])
    for name in names:
        build = known[name].implementations.get(peers.AUTOGRAPH if label == FULL_CACHE else label)
        if build is not None:
            _forked(name, build, label)


def _forked(name: str, build: Build, label: str) -> None:
    sys.stdout.flush()
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    status = 1
    try:
        print(json.dumps({"name": name, **_child(build, label)}), flush=True)
        status = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _child(build: Build, label: str) -> dict[str, Any]:
    """Seconds to the first result; of ours also those until the background has compiled all, and kernels compiled."""
    from benchmarks.build import setting

    with setting(None):
        began = time.perf_counter()
        arrays(build(False)())
        seconds = time.perf_counter() - began
        if LIBRARIES.get(label, "autograph") != "autograph":
            return {"seconds": seconds}
        from runtime.engine import kernel_counters, wait_for_background

        wait_for_background(120)
        native = time.perf_counter() - began
    return {"seconds": seconds, "native": native, "compiled": kernel_counters().compiled}


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2:])
