"""Kills workers at random moments, and says whether anything is lost beyond the steps since the last checkpoint.

    python -m tests.distribute.soak [--kills N] [--seed S]

Trains a model to its end with `mpiexec`, over and over: at a random moment a worker gets SIGKILL. The others must end,
with an error that names it, within `SECONDS`; the next run begins at the last checkpoint that was saved, with another
number of workers. At the end the weights are those of a run that nobody disturbed. Exit code 1 otherwise.
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
import time
from pathlib import Path

import numpy as np

from tests.distribute.launch import PROGRAMS, ROOT, check, mpiexec, settings
from tests.distribute.test_faults import last_line

STEPS_A_RUN, EVERY, PAUSE = 20, 5, 0.05
# How long the others may take to end.
SECONDS = 15.0


def children_of(launcher: int) -> dict[int, int]:
    """The workers that a launcher has started: process ids by rank."""
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
        if rank is not None and values.get(b"AUTOGRAPH_SOAK") == str(launcher).encode() and b"train.py" in command:
            found[int(rank)] = int(entry.name)
    return found


def disturbed(folder: str, steps: int, workers: int, rng: random.Random, key: int) -> dict:
    """A run in which a worker is killed, or that comes to its end before: what it has said."""
    command = [str(mpiexec()), "-n", str(workers), sys.executable, str(PROGRAMS / "train.py"), folder]
    command += [str(steps), str(EVERY), str(PAUSE)]
    environment = {**os.environ, **settings(), "PYTHONPATH": str(ROOT), "AUTOGRAPH_SOAK": str(key)}
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    time.sleep(rng.uniform(1.0, 4.5))
    alive = children_of(key)
    victim = rng.choice(sorted(alive)) if alive and process.poll() is None else None
    if victim is not None:
        os.kill(alive[victim], signal.SIGKILL)
    killed = time.monotonic()
    try:
        out, err = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
    return {
        "victim": victim, "seconds": time.monotonic() - killed, "code": process.returncode, "workers": workers,
        "begins": [int(n) for n in re.findall(r"begins at step (\d+)", out)],
        "saved": [int(n) for n in re.findall(r"saved (\d+)", out)], "out": out, "err": err,
        "named": victim is not None and re.search(rf"rank {victim}\b.*(died|exited on)", err, re.DOTALL) is not None,
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng = random.Random(given.seed)
    kills = lost = unnamed = late = runs = 0
    slowest = 0.0
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        steps, saved = 10**6, 0
        while kills < given.kills:
            runs += 1
            seen = disturbed(folder, steps, rng.randint(1, 3), rng, runs)
            if seen["begins"] and not all(saved <= step <= saved + EVERY for step in seen["begins"]):
                lost += 1
                print(f"run {runs} began at {seen['begins']}, after {saved} was saved")
            # One that was whole when its writer died, but had not been said to be, counts from the next run on.
            saved = max([saved, *seen["saved"], *seen["begins"]])
            if seen["victim"] is None:
                continue
            kills += 1
            slowest = max(slowest, seen["seconds"])
            late += seen["seconds"] > SECONDS
            # Before the workers know each other only the launcher can say who died.
            if not seen["named"]:
                unnamed += 1
                print(f"run {runs}: rank {seen['victim']} of {seen['workers']} wasn't named:\n{seen['err'][-600:]}")
        steps = saved + EVERY
        resumed = last_line(check("train.py", 2, folder, str(steps), str(EVERY)))
        alone = last_line(check("train.py", 1, folder + "/alone", str(steps), str(EVERY)))
    same = resumed[0] == alone[0] and np.allclose(resumed[1], alone[1], rtol=1e-9)
    print(
        f"{kills} workers killed in {runs} runs and {time.monotonic() - began:.0f} s, {steps} steps trained: "
        f"{lost} times lost more than the steps since the last checkpoint, {unnamed} times the rank wasn't named, "
        f"{late} times the others took over {SECONDS:.0f} s (at most {slowest:.1f} s); weights "
        f"{'as' if same else 'NOT as'} without kills (largest difference {np.abs(resumed[1] - alone[1]).max():.1e})"
    )
    return int(bool(lost or late or not same))


if __name__ == "__main__":
    sys.exit(main())
