"""Measures training on several processes of one machine, and writes docs/scaling.md.

    python -m benchmarks.workers            1 to 4 processes, started by mpiexec; needs `pip install -e '.[mpi]'`
    python -m benchmarks.workers --quick    shorter, and writes nothing

Each number is the least of several runs, since others may use the machine. A model of a step's time is fitted to
one and two processes only, and
compared with what three and four take.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import autograph as ag

PAGE = Path(__file__).resolve().parents[1] / "docs" / "scaling.md"
SIZES = [4, 1 << 10, 1 << 14, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26]  # bytes
WIDTH, ROWS = 256, 2048
PREDICTED = [8, 16, 64, 256, 1024, 4096]
# Of a network: seconds for a message, bytes a second. 25 Gbit/s Ethernet, as the literature has it; not measured
# here.
NETWORK = (20e-6, 25e9 / 8)


# --- in each process ---


def least_seconds(run: Any, group: Any, repeats: int) -> float:
    """The least time that rank 0 waits for the result, after all have come together."""
    run()
    times = []
    for _ in range(repeats):
        group.barrier()
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return min(times)


def make_step(strategy: Any, rows: int) -> tuple[Any, Any, int]:
    """A training step of a network with two hidden layers on so many rows, the same without communication, and the
    bytes of its gradients."""
    rng = np.random.default_rng(0)
    shapes = [(64, WIDTH), (WIDTH, WIDTH), (WIDTH, 1)]
    with strategy.scope():
        weights = [ag.Variable((rng.normal(size=s) / math.sqrt(s[0])).astype(np.float32)) for s in shapes]
    x = ag.constant(rng.normal(size=(rows, 64)).astype(np.float32))
    y = ag.constant(rng.normal(size=(rows, 1)).astype(np.float32))

    def replica(with_others: bool) -> Any:
        with ag.GradientTape() as tape:
            hidden = x
            for weight in weights[:-1]:
                hidden = ag.nn.relu(ag.matmul(hidden, weight))
            loss = ag.reduce_mean((ag.matmul(hidden, weights[-1]) - y) ** 2)
        gradients = tape.gradient(loss, weights)
        if with_others:
            context: Any = ag.distribute.get_replica_context()
            gradients = context.all_reduce("MEAN", gradients)
        for weight, gradient in zip(weights, gradients):
            strategy.extended.update(weight, lambda v, g: v.assign_sub(1e-3 * g), args=(gradient,))
        return loss

    together = ag.function(lambda: strategy.run(replica, args=(True,)), jit_compile=None)
    alone = ag.function(lambda: strategy.run(replica, args=(False,)), jit_compile=None)
    return together, alone, 4 * sum(a * b for a, b in shapes)


def measure(quick: bool) -> dict[str, Any]:
    """What this number of processes takes, in seconds."""
    ag.config.threading.set_intra_op_parallelism_threads(1)
    strategy = ag.distribute.MultiWorkerMirroredStrategy()
    group = strategy._group
    repeats = 5 if quick else 15
    found: dict[str, Any] = {"workers": group.size, "barrier": least_seconds(group.barrier, group, 5 * repeats)}
    found["all_reduce"], found["sent"] = {}, {}
    for size in SIZES[: 5 if quick else None]:
        array = np.ones(size // 4, np.float32)
        before = group.sent
        group.all_reduce([array])
        found["sent"][size] = group.sent - before
        few = repeats if size < 1 << 24 else 5
        found["all_reduce"][size] = least_seconds(lambda array=array: group.all_reduce([array]), group, few)
    for name, rows in (("weak", ROWS), ("strong", ROWS // group.size)):
        together, alone, found["bytes"] = make_step(strategy, rows)
        # The number of calls is the same for all: they wait for each other.
        for _ in range(20 if quick else 60):
            together()
            alone()
            time.sleep(0.03)  # for the compiler
        before = group.sent
        together()
        found["sent_a_step"] = group.sent - before
        found[name] = least_seconds(together, group, 2 * repeats)
        found[f"{name} alone"] = least_seconds(alone, group, 2 * repeats)
    return found


# --- the page ---


def started(workers: int, quick: bool) -> dict[str, Any]:
    """The measurements of so many processes."""
    launcher = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")
    if launcher is None:
        raise SystemExit("there is no mpiexec: pip install -e '.[mpi]'")
    environment = {
        **os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", "OPENBLAS_NUM_THREADS": "1",
    }  # fmt: skip
    command = [launcher, "-n", str(workers), sys.executable, "-m", "benchmarks.workers", "--measure"]
    command += ["--quick"] if quick else []
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        raise SystemExit(f"{command} failed:\n{done.stderr}")
    return json.loads(lines[0])


class Model:
    """A step's time: computing, heads and messages, bytes.

        step(n) = compute · max(1, n / cores) + (3 · log2(n) + 2 · (n - 1)) · message + bytes sent / bandwidth

    An all-reduce has one exchange of heads, whose messages double in reach, and two steps in which each process sends
    to all others. `message` and `bandwidth` are fitted to two processes.
    """

    def __init__(self, one: dict[str, Any], two: dict[str, Any], cores: int) -> None:
        self.cores = cores
        self.compute = {name: one[f"{name} alone"] for name in ("weak", "strong")}
        self.bytes = two["bytes"]
        small, large = min(two["all_reduce"], key=int), max(two["all_reduce"], key=int)
        self.bandwidth = (int(large) - int(small)) / (two["all_reduce"][large] - two["all_reduce"][small])
        self.message = two["all_reduce"][small] / self.messages(2)

    @staticmethod
    def messages(workers: int) -> float:
        return 0.0 if workers == 1 else math.log2(workers) + 2 * (workers - 1)

    def all_reduce(
        self, workers: int, size: int, message: float | None = None, bandwidth: float | None = None
    ) -> float:
        """Seconds of an all-reduce of so many bytes."""
        sent = 2 * (workers - 1) / workers * size
        return self.messages(workers) * (message or self.message) + sent / (bandwidth or self.bandwidth)

    def step(
        self, kind: str, workers: int, own_cores: bool = False, network: tuple[float, float] | None = None
    ) -> float:
        """Seconds of a training step. own_cores: each process has a core, as on machines of its own."""
        share = 1.0 if own_cores else max(1.0, workers / self.cores)
        compute = self.compute["weak"] / (workers if kind == "strong" else 1)
        message, bandwidth = network or (None, None)
        return compute * share + self.all_reduce(workers, self.bytes, message, bandwidth)


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---:"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def ms(seconds: float) -> str:
    return f"{1000 * seconds:.2f}"


def page(found: list[dict[str, Any]]) -> str:
    """The text of docs/scaling.md."""
    cores = os.cpu_count() or 1
    one, two = found[0], found[1]
    model = Model(one, two, cores)
    sizes = [int(size) for size in two["all_reduce"]]
    reduces = [[f"{size:,}", *[ms(each["all_reduce"][str(size)]) for each in found[1:]]] for size in sizes]
    sent = [
        [f"{each['workers']}", f"{each['sent_a_step']:,}",
         f"{2 * (each['workers'] - 1) / each['workers'] * each['bytes']:,.0f}",
         f"{each['sent_a_step'] / (2 * (each['workers'] - 1) / each['workers'] * each['bytes']):.3f}"]
        for each in found[1:]
    ]  # fmt: skip
    steps = []
    for each in found:
        n = each["workers"]
        weak, strong = model.step("weak", n), model.step("strong", n)
        steps.append(
            [f"{n}", ms(each["weak"]), ms(weak), f"{each['weak'] / weak - 1:+.0%}", f"{one['weak'] / each['weak']:.0%}",
             ms(each["strong"]), ms(strong), f"{each['strong'] / strong - 1:+.0%}",
f"{one['strong'] / each['strong']:.2f}"]
        )  # fmt: skip
    predicted = []
    for n in PREDICTED:
        own, net = model.step("weak", n, True), model.step("weak", n, True, NETWORK)
        strong = model.step("strong", n, True, NETWORK)
        alone = model.step("weak", 1, True)
        predicted.append(
            [f"{n:,}", ms(own), f"{alone / own:.0%}", ms(net), f"{alone / net:.0%}", f"{alone / strong:.1f}"]
        )
    return f"""# Scaling

Training on several processes of one machine, measured by `python -m benchmarks.workers`, which writes this page.
The machine has {cores} cores
({platform.machine()}); processes have one thread each. With more processes than cores they take turns: three and
four can't be faster than two, and
each exchange waits until the others have had their turn. Other programs ran meanwhile, too (load
{os.getloadavg()[1]:.1f}): figures to rely on need an idle machine. The least of several
runs, in milliseconds.

## The cost of an all-reduce

{table(["bytes", *[f"{each['workers']} processes" for each in found[1:]]], reduces)}

Without any bytes, coming together (`barrier`) takes
{", ".join(f"{ms(each['barrier'])} ms for {each['workers']}" for each in found[1:])}.

## Bytes sent

What each process sends in a training step whose gradients have {two["bytes"]:,} bytes, against the least that an
all-reduce can do with, 2 (n - 1) / n
of them, which a ring reaches:

{table(["processes", "bytes sent", "lower bound", "ratio"], sent)}

## Training steps

A network with two hidden layers of {WIDTH}. Weak scaling: {ROWS} rows in each process; efficiency is the time of
one over that of n. Strong
scaling: {ROWS} rows in all; speed-up is the time of one over that of n. The model has seen one and two processes:

    step(n) = compute · max(1, n / cores) + (log2(n) + 2 (n - 1)) · message + bytes sent / bandwidth
    compute {ms(model.compute["weak"])} ms for {ROWS} rows, message {1e6 * model.message:.1f} µs, bandwidth
{model.bandwidth / 1e9:.2f} GB/s

{table(["processes", "weak", "model", "off by", "efficiency", "strong", "model", "off by", "speed-up"], steps)}

## What the model predicts

For processes with a core each: with messages and bytes as here, in shared memory; and over a network with 20 µs
for a message and 25 Gbit/s, figures that
weren't measured. Not measured here either, so to be taken as an estimate: nothing contends for the network, and no
process is slower than others.

{table(["processes", "weak here", "efficiency", "weak, network", "efficiency", "strong: speed-up"], predicted)}

What grows is the number of messages: in two steps of an all-reduce each process sends to all others, so that a
process sends 2 (n - 1) of them.
That keeps sums in the order of the ranks, with the fewest bytes. For thousands of processes with small models it
costs more than it gives.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="shorter, and writes nothing")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        found = measure(given.quick)
        if ag.distribute.MultiWorkerMirroredStrategy().cluster_resolver.task_id == 0:
            print(json.dumps(found))
        return 0
    text = page([started(workers, given.quick) for workers in ((1, 2) if given.quick else (1, 2, 3, 4))])
    if given.quick:
        print(text)
    else:
        PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
