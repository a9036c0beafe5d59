"""Measures training on several processes of one machine, and writes docs/scaling.md.

    python -m benchmarks.workers            1 to 4 processes, started by mpiexec; needs `pip install -e '.[mpi]'`
    python -m benchmarks.workers --quick    shorter, and writes nothing

Each number is the least of several runs, since others may use the machine. A model of a step's time is fitted to one
and two processes only, and compared with what three and four take.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import math
import os
import platform
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import autograph as ag
from runtime.collectives.cost_model import BACKGROUND, ETHERNET, SHORT, Network, messages, sent
from runtime.ops import collective
from runtime.ops.dispatch import apply
from runtime.ops.table import OpDef

PAGE = Path(__file__).resolve().parents[1] / "docs" / "scaling.md"
SIZES = [4, 1 << 10, 1 << 14, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26]  # bytes
# Which of them gives the bandwidth: about as many bytes as gradients have.
LARGE = 1 << 20
# Steps that take a millisecond or two, so that other programs leave some of them alone.
WIDTH, ROWS = 256, 512
# Of steps that show how communication overlaps with computing: layers, the seconds that one takes forward (backward it
# takes twice as long), and the bytes of its gradient, which travels alone. Bandwidths in Gbit/s.
LAYERS, LAYER_SECONDS, OVERLAP_PACK = 16, 1e-3, 1 << 19
OVERLAP_NETWORKS = [40.0, 10.0, 5.0, 2.5, 1.25]
PREDICTED = [8, 16, 64, 256, 1024, 4096]


# --- in each process ---


def least_seconds(runs: dict[str, Any], group: Any, repeats: int) -> dict[str, float]:
    """The least time that rank 0 waits for each result, after all have come together. The runs take turns."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats + 1):
        for name, run in runs.items():
            group.barrier()
            began = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - began)
    return {name: min(each[1:]) for name, each in times.items()}


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


@contextlib.contextmanager
def slowed(group: Any, bandwidth: float) -> Iterator[None]:
    """A block in which bytes take as long as on a network with that bandwidth: workers sleep meanwhile."""
    moves = group._join, group._exchange

    def slow(move: Any) -> Any:
        def run(array: np.ndarray, *arguments: Any) -> Any:
            # Of a sum's two exchanges each moves half of the bytes that are sent for it.
            time.sleep(array.nbytes / group.size / bandwidth)
            return move(array, *arguments)

        return run

    group._join, group._exchange = map(slow, moves)
    try:
        yield
    finally:
        del group._join, group._exchange


def make_slow_step(group: Any) -> tuple[Any, Any, list[np.ndarray]]:
    """A step of a model whose layers sleep, the same without communication, and its gradients.

    So what it takes doesn't depend on what else the machine does, only on what waits for what.
    """
    forward, backward = [
        OpDef(name, lambda inputs, attrs: tuple(inputs), functools.partial(_asleep, seconds))
        for name, seconds in (("forward", LAYER_SECONDS), ("backward", 2 * LAYER_SECONDS))
    ]
    x = ag.ones([OVERLAP_PACK // 4])

    def step(with_others: bool) -> list[Any]:
        hidden = x
        for _ in range(LAYERS):
            hidden = apply(forward, [hidden])
        gradients: list[Any] = []
        for _ in range(LAYERS):
            hidden = apply(backward, [hidden])
            gradients.insert(0, hidden)
        return collective.all_reduce(group, gradients, True, OVERLAP_PACK) if with_others else gradients

    together = ag.function(lambda: step(True), jit_compile=True)
    return together, ag.function(lambda: step(False), jit_compile=True), [x.numpy()] * LAYERS


def _asleep(seconds: float, array: np.ndarray) -> np.ndarray:
    time.sleep(seconds)
    return array


def measure_overlap(group: Any, repeats: int) -> dict[str, dict[str, float]]:
    """Seconds of a step on slow networks, by their bandwidth in Gbit/s: in one piece, and overlapping."""
    steps: dict[str, Any] = {}
    for name, on in (("one piece", False), ("overlap", True)):
        ag.config.optimizer.set_experimental_options({"communication_overlap": on})
        steps[name], steps["compute"], gradients = make_slow_step(group)
        steps[name](), steps["compute"]()
    steps["all_reduce"] = lambda: group.all_reduce(gradients, True, OVERLAP_PACK)
    found = {}
    for bandwidth in OVERLAP_NETWORKS:
        with slowed(group, bandwidth * 1e9 / 8):
            found[str(bandwidth)] = least_seconds(steps, group, repeats)
    return found


def measure(quick: bool) -> dict[str, Any]:
    """What this number of processes takes, in seconds."""
    ag.config.threading.set_intra_op_parallelism_threads(1)
    strategy = ag.distribute.MultiWorkerMirroredStrategy()
    group = strategy._group
    repeats = 5 if quick else 40
    found: dict[str, Any] = {"workers": group.size, "all_reduce": {}}
    found |= least_seconds({"barrier": group.barrier}, group, 5 * repeats)
    for size in SIZES[: 5 if quick else None]:
        array = np.ones(size // 4, np.float32)
        few = 5 if size >= 1 << 24 else repeats if size > LARGE else 5 * repeats
        found["all_reduce"][size] = least_seconds({"": lambda array=array: group.all_reduce([array])}, group, few)[""]
    one = np.ones(1, np.float32)
    found |= least_seconds({"background": lambda: group.start_all_reduce([one]).results()}, group, 5 * repeats)
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
        found |= least_seconds({name: together, f"{name} alone": alone}, group, 5 * repeats)
    if group.size == 2:
        found["overlap"] = measure_overlap(group, repeats)
    return found


# --- the page ---


def started(workers: int, quick: bool) -> dict[str, Any]:
    """The measurements of so many processes."""
    launcher = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")
    if launcher is None:
        raise SystemExit("there is no mpiexec: pip install -e '.[mpi]'")
    environment = {
        **os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OPENBLAS_NUM_THREADS": "1",
    }  # fmt: skip
    if workers > (os.cpu_count() or 1):
        # Up to then each has a core of its own: else a message may wait until the core's other process is done.
        environment["PRTE_MCA_rmaps_default_mapping_policy"] = ":oversubscribe"
    command = [launcher, "-n", str(workers), sys.executable, "-m", "benchmarks.workers", "--measure"]
    command += ["--quick"] if quick else []
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        raise SystemExit(f"{command} failed:\n{done.stderr}")
    return json.loads(lines[0])


class Model:
    """A step's time: computing, messages, bytes.

        step(n) = share · (compute + messages(n) · message + bytes sent / bandwidth),  share = max(1, n / cores)

    All processes first tell each other what they are about to do, which takes log2(n) messages one after the other. In
    an all-reduce of a few bytes all send theirs to all in the same way; of many, a process sends a part to each other
    one, and the sum of its own part, 2 (n - 1) messages. `compute` is measured on one process, `message` and
    `bandwidth` on two: by the all-reduces of the fewest bytes and of `LARGE`.
    """

    def __init__(self, one: dict[str, Any], two: dict[str, Any], cores: int) -> None:
        self.cores = cores
        self.compute = {name: one[f"{name} alone"] for name in ("weak", "strong")}
        self.bytes = two["bytes"]
        small = min(two["all_reduce"], key=int)
        message = two["all_reduce"][small] / messages(2, int(small))
        rest = two["all_reduce"][str(LARGE)] - messages(2, LARGE) * message
        self.network = Network(message, sent(2, LARGE) / rest)

    def all_reduce(self, workers: int, size: int, network: Network | None = None) -> float:
        """Seconds of an all-reduce. network: default: what was measured here."""
        return (network or self.network).seconds(workers, size)

    def step(self, kind: str, workers: int, own_cores: bool = False, network: Network | None = None) -> float:
        """Seconds of a training step. own_cores: each process has a core, as on machines of its own."""
        share = 1.0 if own_cores else max(1.0, workers / self.cores)
        compute = self.compute["weak"] / (workers if kind == "strong" else 1)
        return share * (compute + self.all_reduce(workers, self.bytes, network))


def paragraph(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), 120)


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
    least = [2 * (each["workers"] - 1) / each["workers"] * each["bytes"] for each in found[1:]]
    sent = [
        [f"{each['workers']}", f"{each['sent_a_step']:,}", f"{bound:,.0f}", f"{each['sent_a_step'] / bound:.3f}"]
        for each, bound in zip(found[1:], least)
    ]
    reduce_check = [[f"{size:,}", *[_beside(each, size, model) for each in found[1:]]] for size in sizes]
    steps = [
        [f"{each['workers']}", *_scaling(each, one, model, "weak"), *_scaling(each, one, model, "strong")]
        for each in found
    ]
    predicted = []
    for n in PREDICTED:
        alone, here, net = (
            model.step("weak", 1, True),
            model.step("weak", n, True),
            model.step("weak", n, True, ETHERNET),
        )
        gain = alone / model.step("strong", n, True, ETHERNET)
        predicted.append([f"{n:,}", ms(here), f"{alone / here:.0%}", ms(net), f"{alone / net:.0%}", f"{gain:.1f}"])
    about_reduces = paragraph(
        f"""In brackets: what the model below says. It knows the first row and {LARGE:,} bytes, for two processes, and
        says too little where arrays outgrow the caches."""
    )
    barriers = ", ".join(f"{ms(each['barrier'])} ms for {each['workers']}" for each in found[1:])
    introduction = paragraph(
        f"""Training on several processes of one machine, measured by `python -m benchmarks.workers`, which writes this
        page. The machine has {cores} cores ({platform.machine()}), and each process has one thread. More processes
        than cores take turns: three and four can't be faster than two, and each exchange waits until the others have
        had their turn. While this was measured the machine had a load of {os.getloadavg()[1]:.1f}; only an idle machine
        gives figures to rely on. Times are in milliseconds, the least of several runs."""
    )
    about_bytes = paragraph(
        f"""What each process sends in a training step whose gradients have {two["bytes"]:,} bytes. No all-reduce can do
        with less than 2 (n - 1) / n times as many bytes, which is what a ring sends:"""
    )
    about_steps = paragraph(
        f"""A network with two hidden layers of {WIDTH}. Weak scaling: {ROWS} rows in each process; the efficiency is
        the time of one process over that of n. Strong scaling: {ROWS} rows in all; the speed-up is that of one process
        over that of n. The model knows one and two processes only:"""
    )
    about_predictions = paragraph(
        """For processes with a core each: with messages and bytes as here, in shared memory; and over a network with
        20 µs for a message and 25 Gbit/s. Nothing of this was measured. The model leaves out that processes contend
        for the network, that all wait for the slowest, and, above, what it costs to take turns on a core."""
    )
    about_messages = paragraph(
        """The number of messages is what grows: a process sends 2 (n - 1) of them, one to each other process for the
        parts and one for the sums. This keeps sums in the order of the ranks with the fewest bytes. For thousands of
        processes with small models it costs more than it gives."""
    )
    about_overlap = paragraph(
        f"""What waits for what, shown by a step in which neither the machine's processors nor its memory matter: each
        of {LAYERS} layers sleeps for {ms(LAYER_SECONDS)} ms forward and {ms(2 * LAYER_SECONDS)} ms backward, and the
        {OVERLAP_PACK:,} bytes of its gradient sleep for as long as they would take on a network. In one piece, a step
        takes the sum of both, or more. Overlapping, it takes as long as computing and the exchange of the last gradient
        or, where the network is slower, as what is computed before the first gradient and the exchange of all."""
    )
    overlaps = [
        [bandwidth, *[ms(each[name]) for name in ("compute", "all_reduce")], ms(each["compute"] + each["all_reduce"]),
         ms(max(each["compute"], each["all_reduce"])), ms(each["one piece"]), ms(each["overlap"])]
        for bandwidth, each in two["overlap"].items()
    ]  # fmt: skip
    more = 1e6 * (two["background"] - two["all_reduce"][str(sizes[0])])
    about_background = paragraph(
        f"""An all-reduce of a few bytes takes {more:.0f} µs more in the background than at once. Only what takes
        {1e6 * BACKGROUND:.0f} µs or more, beside work that does, too, runs there."""
    )
    formula = f"""
    step(n)     = share · (compute + messages(n) · message + bytes sent / bandwidth)
    share       = max(1, n / cores)
    messages(n) = log2(n) + 2 (n - 1); of up to {SHORT:,} bytes in all processes together 2 log2(n)

    compute     = {ms(model.compute["weak"])} ms for {ROWS} rows
    message     = {1e6 * model.network.message:.0f} µs
    bandwidth   = {model.network.bandwidth / 1e9:.2f} GB/s
""".strip("\n")
    return f"""# Scaling

{introduction}

## The cost of an all-reduce

{about_reduces}

{table(["bytes", *[f"{each['workers']} processes" for each in found[1:]]], reduce_check)}

Without any bytes, coming together (`barrier`) takes {barriers}.

## Bytes sent

{about_bytes}

{table(["processes", "bytes sent", "lower bound", "ratio"], sent)}

## Training steps

{about_steps}

{formula}

{table(["processes", "weak", "model", "off by", "efficiency", "strong", "model", "off by", "speed-up"], steps)}

## Communication beside computing

{about_overlap}

{table(["Gbit/s", "computing", "all-reduce", "sum", "maximum", "one piece", "overlapping"], overlaps)}

{about_background}

## What the model predicts

{about_predictions}

{table(["processes", "weak here", "efficiency", "weak, network", "efficiency", "strong: speed-up"], predicted)}

{about_messages}
"""


def _beside(found: dict[str, Any], size: int, model: Model) -> str:
    """A measured all-reduce, and what the model says."""
    workers = found["workers"]
    said = max(1.0, workers / model.cores) * model.all_reduce(workers, size)
    return f"{ms(found['all_reduce'][str(size)])} ({ms(said)})"


def _scaling(found: dict[str, Any], one: dict[str, Any], model: Model, kind: str) -> list[str]:
    """A measured step, what the model says, how far off it is, and efficiency or speed-up."""
    measured, said = found[kind], model.step(kind, found["workers"])
    gain = one[kind] / measured
    return [ms(measured), ms(said), f"{measured / said - 1:+.0%}", f"{gain:.0%}" if kind == "weak" else f"{gain:.2f}"]


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
