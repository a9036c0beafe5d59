"""Measures Keras' `model.fit` here and on Keras' other back ends, and writes docs/training_speed.md.

    python -m benchmarks.training                      needs `pip install -e '.[keras]'`
    python -m benchmarks.training --peers PYTHON       back ends of another interpreter: TensorFlow, JAX, torch
    python -m benchmarks.training --only lstm --quick  few rows and epochs; prints, writes nothing

Each back end trains the same model on the same rows from the same weights, in a process of its own
(`training_worker.py`), and the losses of the epochs must agree. The processes of a model take turns epoch by epoch, so
that a change in the machine's speed affects all. Only one runs at a time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import peers
from benchmarks.report import machine, seconds
from benchmarks.training_worker import AUTOGRAPH, MODELS
from benchmarks.workers import table

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "training_speed.md"
PEERS = ("tensorflow", "jax", "torch")
TITLES = {
    "mlp": "MLP: 64, 128, 128, 10",
    "wide": "MLP: 1,024, 1,024, 1,024, 10",
    "cnn": "CNN: 28 x 28, 16 and 32 filters of 3 x 3, pooling",
    "lstm": "LSTM: 32 steps of 16, 64 units",
    "transformer": "transformer: 32 tokens of 64, 4 heads, 2 blocks",
}
TARGETS = {"mlp": 0.67, "lstm": 0.67, "transformer": 0.67, "cnn": 1.0}
TOLERANCE = 2e-3  # of an epoch's mean loss: sums of float32 in another order, over an epoch of steps


@dataclass
class Times:
    """What a back end took for a model, in seconds."""

    first: list[float] = field(default_factory=list)
    epochs: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    """Of the same epochs, on all cores together."""
    losses: list[float] = field(default_factory=list)
    """Of the epochs of one process."""
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def steady(self) -> float:
        return statistics.median(self.epochs)

    @property
    def busy(self) -> float:
        return statistics.median(self.processor)

    @property
    def to_first(self) -> float:
        return statistics.median(self.first)


class Worker:
    """A process that trains a model on a back end, an epoch when asked."""

    def __init__(self, backend: str, model: str, python: str, environment: Mapping[str, str], quick: bool) -> None:
        script = str(ROOT / "benchmarks" / "training_worker.py")
        command = [python, script, backend, model, *(["--quick"] if quick else [])]
        self.title = f"{model} on {backend}"
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        self.versions = self._answer()["versions"]

    def epoch(self) -> tuple[float, float, float]:
        """Trains an epoch: its seconds, those of the processor, and its loss."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        answer = self._answer()
        return answer["seconds"], answer["processor"], answer["loss"]

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):
                answer: dict[str, Any] = json.loads(line)
                return answer
        _, error = self.process.communicate()
        raise RuntimeError(f"{self.title}: {error[-2000:]}")

    def stop(self) -> None:
        self.process.kill()
        self.process.communicate()


def measure(
    model: str, pythons: Mapping[str, str], epochs: int, warm: int, processes: int, quick: bool = False
) -> dict[str, Times]:
    """What each back end takes for the model; `pythons` has its interpreter. Raises RuntimeError if losses disagree."""
    found = {backend: Times() for backend in pythons}
    for _ in range(processes - 1):
        for backend, python in pythons.items():
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as cache:
                worker = Worker(backend, model, python, environment(cache), quick)
                try:
                    found[backend].first.append(worker.epoch()[0])
                finally:
                    worker.stop()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as cache:
        workers: dict[str, Worker] = {}
        try:
            for backend, python in pythons.items():
                workers[backend] = Worker(backend, model, python, environment(cache), quick)
                found[backend].versions = workers[backend].versions
            for epoch in range(1 + warm + epochs):
                for backend, worker in workers.items():
                    taken, busy, loss = worker.epoch()
                    times = found[backend]
                    times.losses.append(loss)
                    if epoch == 0:
                        times.first.append(taken)
                    elif epoch > warm:
                        times.epochs.append(taken)
                        times.processor.append(busy)
        finally:
            for worker in workers.values():
                worker.stop()
    check(model, found)
    return found


def check(model: str, found: Mapping[str, Times]) -> None:
    """Raises RuntimeError unless the first epochs' losses agree. (Later ones part, as errors of float32 grow.)"""
    ours = found[AUTOGRAPH].losses[0]
    for backend, times in found.items():
        if not abs(ours - times.losses[0]) <= TOLERANCE * abs(ours):
            raise RuntimeError(
                f"{model}: the loss of the first epoch is {ours} here and {times.losses[0]} on {backend}"
            )


def environment(cache: str) -> dict[str, str]:
    """Of a process: `peers.environment`, and this project where it may be looked for."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return {**peers.environment(cache), "PYTHONPATH": path}


def available(python: str) -> list[str]:
    """Those of the peers that an interpreter has."""
    ask = "import importlib.util, sys; print(*[n for n in sys.argv[1:] if importlib.util.find_spec(n)])"
    done = subprocess.run([python, "-c", ask, *PEERS, "keras"], capture_output=True, text=True, check=True)
    names = done.stdout.split()
    return [name for name in names if name != "keras"] if "keras" in names else []


def fastest(found: Mapping[str, Times], what: str) -> tuple[str, float] | None:
    """The peer that takes the least, and how long."""
    times = {backend: getattr(each, what) for backend, each in found.items() if backend != AUTOGRAPH}
    return min(times.items(), key=lambda item: item[1]) if times else None


# --- the page ---


def rows_of(found: Mapping[str, Mapping[str, Times]], backends: Sequence[str], what: str) -> list[list[str]]:
    rows = []
    for model, times in found.items():
        best = fastest(times, what)
        cells = [seconds(getattr(times[backend], what)) if backend in times else "" for backend in backends]
        ratio = f"{getattr(times[AUTOGRAPH], what) / best[1]:.2f}" if best else ""
        target = {"steady": TARGETS.get(model), "to_first": 1.0}.get(what)
        rows.append([TITLES[model], *cells, ratio, "" if target is None else f"{target:.2f}"])
    return rows


def tables(found: Mapping[str, Mapping[str, Times]], backends: Sequence[str]) -> str:
    parts = []
    for what, head in (
        ("steady", "an epoch"), ("busy", "an epoch, processor time"), ("to_first", "the first epoch"),
    ):  # fmt: skip
        heads = [head, *backends, "ours / the least", "target"]
        parts.append(table(heads, rows_of(found, backends, what)))
    return "\n\n".join(parts) + "\n"


def page(found: Mapping[str, Mapping[str, Times]], backends: Sequence[str], epochs: int, processes: int) -> str:
    last = list(found.values())[-1]
    versions = {name: version for backend in backends for name, version in last[backend].versions.items()}
    return f"""# How fast Keras trains

Written by `python -m benchmarks.training`. `model.fit` of Keras on this project and on Keras' other back ends, on
the CPU, at their default settings: batches of 32 from NumPy arrays, Adam, one metric; 64 steps an epoch for the MLPs,
32 for the others. Each back end trains in a process of its own, from the same weights on the same rows in the same
order, and the losses must agree. The processes take turns, epoch by epoch: an epoch's time is the median of {epochs}.
The first epoch includes making the model, conversion, tracing and compiling, with empty caches, but no imports; it is
the median of {processes} process(es). Epochs after it are measured once nothing is compiled in the background any more.

Processor time is what all threads of a process were busy; it depends less on what else the machine does. Other programs
ran meanwhile (load {os.getloadavg()[1]:.1f} on {os.cpu_count()} cores): figures to rely on need an idle machine.

{machine(versions)}
{tables(found, backends)}"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--peers", default=sys.executable, metavar="PYTHON", help="an interpreter with other back ends")
    parser.add_argument("--only", action="append", choices=list(MODELS), help="a model (default: all)")
    parser.add_argument("--without", action="append", default=[], choices=PEERS, help="a back end to leave out")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--processes", type=int, default=3, help="of each back end, for the first epoch")
    parser.add_argument("--quick", action="store_true", help="few rows and epochs; prints, writes nothing")
    given = parser.parse_args()
    epochs, warm, processes = (2, 0, 1) if given.quick else (given.epochs, 1, given.processes)
    pythons = {AUTOGRAPH: sys.executable}
    pythons |= {name: given.peers for name in available(given.peers) if name not in given.without}
    found: dict[str, dict[str, Times]] = {}
    for model in given.only or MODELS:
        found[model] = measure(model, pythons, epochs, warm, processes, given.quick)
        print(tables({model: found[model]}, list(pythons)), flush=True)
    if not given.quick and not given.only:
        PAGE.write_text(page(found, list(pythons), epochs, processes), encoding="utf-8")
        print(f"wrote {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
