"""Makes workers fail at random moments, and says whether anything is lost beyond the steps since the last checkpoint.

    python -m tests.distribute.soak [--faults N] [--kinds kill,raise,stall] [--seed S] [--background]

Trains a model with `mpiexec`, over and over: at a random moment a worker gets SIGKILL (kill), a signal on which it
raises (raise), or SIGSTOP (stall). The others must end, with an error that names it, within `SECONDS`; the next run
begins at the last checkpoint that was saved, with another number of workers. At the end the weights are those of a run
that nobody disturbed. Exit code 1 otherwise. With --background, workers reduce in the background.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from tests.distribute.launch import PROGRAMS, ROOT, check, mpiexec, settings
from tests.distribute.test_faults import last_line

EVERY, PAUSE = 5, 0.02
# For how long a worker waits for the others, and how long they may take to end after a fault.
LIMIT, SECONDS = 4.0, 20.0
SIGNALS = {"kill": signal.SIGKILL, "raise": signal.SIGUSR1, "stall": signal.SIGSTOP}
# What the others, or the launcher, say of rank {0}.
NAMED = {
    "kill": r"rank {0}\b.*(died|exited on)",
    "raise": r"rank {0} raised RuntimeError: told to fail",
    "stall": r"rank {0}\b.*doesn't answer",
}
# How many of the faults come while workers start.
EARLY = 0.15


def workers_of(key: str) -> dict[int, int]:
    """The workers of the run with a key: process ids by rank."""
    found = {}
    for entry in Path("/proc").iterdir():
        try:
            if not entry.name.isdigit():
                continue
            environment = (entry / "environ").read_bytes().split(b"\0")
            command = (entry / "cmdline").read_bytes()
        except (OSError, ValueError):
            continue
        values = dict(part.split(b"=", 1) for part in environment if b"=" in part)
        rank = values.get(b"OMPI_COMM_WORLD_RANK", values.get(b"PMI_RANK"))
        if rank is not None and values.get(b"AUTOGRAPH_SOAK") == key.encode() and b"train.py" in command:
            found[int(rank)] = int(entry.name)
    return found


def disturbed(folder: str, workers: int, kind: str, rng: random.Random, key: str, further: list[str]) -> dict[str, Any]:
    """A run in which a worker fails: what the run has said. victim: None where it had ended before."""
    command = [str(mpiexec()), "-n", str(workers), sys.executable, str(PROGRAMS / "train.py"), folder]
    command += [str(10**6), str(EVERY), str(PAUSE), str(LIMIT), *further]
    environment = {**os.environ, **settings(), "PYTHONPATH": str(ROOT), "AUTOGRAPH_SOAK": key}
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    said: dict[str, list[str]] = {"out": [], "err": []}
    trains = threading.Event()

    def listen(name: str, stream: Any) -> None:
        for line in stream:
            said[name].append(line)
            if "begins at step" in line:
                trains.set()

    listeners = [
        threading.Thread(target=listen, args=each) for each in (("out", process.stdout), ("err", process.stderr))
    ]
    for each in listeners:
        each.start()
    # Before it trains a worker has no handler that raises, and a stalled one has no others that wait for it.
    if kind != "kill" or rng.random() > EARLY:
        trains.wait(120)
    time.sleep(rng.uniform(0.0, 3.0))
    alive = workers_of(key)
    victim = rng.choice(sorted(alive)) if alive and process.poll() is None else None
    if victim is not None:
        os.kill(alive[victim], SIGNALS[kind])
    began = time.monotonic()
    try:
        process.wait(120)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
    seconds = time.monotonic() - began
    for pid in workers_of(key).values():  # a stalled one outlives its launcher
        os.kill(pid, signal.SIGKILL)
    for each in listeners:
        each.join()
    out, err = "".join(said["out"]), "".join(said["err"])
    return {
        "victim": victim, "seconds": seconds, "err": err,
        "begins": [int(n) for n in re.findall(r"begins at step (\d+)", out)],
        "saved": [int(n) for n in re.findall(r"saved (\d+)", out)],
        "named": victim is not None and re.search(NAMED[kind].format(victim), err, re.DOTALL) is not None,
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--kinds", default="kill", help="kill, raise, stall, with commas between them")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--background", action="store_true", help="workers reduce in the background")
    given = parser.parse_args()
    kinds = given.kinds.split(",")
    rng = random.Random(given.seed)
    faults: Counter[str] = Counter()
    lost = unnamed = late = runs = 0
    slowest = 0.0
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        saved = 0
        while faults.total() < given.faults:
            runs += 1
            kind = rng.choice(kinds)
            # Of one that dies the launcher says so, of others only workers that wait for it.
            workers = rng.randint(1 if kind == "kill" else 2, 3)
            seen = disturbed(folder, workers, kind, rng, f"{os.getpid()}-{runs}", ["background"] * given.background)
            if seen["begins"] and not all(saved <= step <= saved + EVERY for step in seen["begins"]):
                lost += 1
                print(f"run {runs} began at {seen['begins']}, after {saved} was saved")
            # One that was whole when its writer died, but had not been said to be, counts from the next run on.
            saved = max([saved, *seen["saved"], *seen["begins"]])
            if seen["victim"] is None:
                continue
            faults[kind] += 1
            slowest = max(slowest, seen["seconds"])
            late += seen["seconds"] > SECONDS
            # Before the workers know each other only the launcher can say who died.
            if not seen["named"]:
                unnamed += 1
                print(f"run {runs}, {kind}: rank {seen['victim']} of {workers} wasn't named:\n{seen['err'][-600:]}")
            if faults.total() % 10 == 0:
                print(f"{faults.total()} faults, {saved} steps, {time.monotonic() - began:.0f} s", flush=True)
        steps = saved + EVERY
        resumed = last_line(check("train.py", 2, folder, str(steps), str(EVERY), seconds=600))
        alone = last_line(check("train.py", 1, folder + "/alone", str(steps), str(EVERY), seconds=600))
    same = resumed[0] == alone[0] and np.allclose(resumed[1], alone[1], rtol=1e-9)
    print(
        f"{', '.join(f'{count} times {kind}' for kind, count in faults.items())} in {runs} runs and "
        f"{time.monotonic() - began:.0f} s, {steps} steps trained: {lost} times lost more than the steps since the "
        f"last checkpoint, {unnamed} times the rank wasn't named, {late} times the others took over {SECONDS:.0f} s "
        f"(at most {slowest:.1f} s); weights {'as' if same else 'NOT as'} without faults (largest difference "
        f"{np.abs(resumed[1] - alone[1]).max():.1e})"
    )
    return int(bool(lost or late or not same))


if __name__ == "__main__":
    sys.exit(main())
