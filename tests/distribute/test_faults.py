"""Workers that fail: the others end soon, with an error that names the rank and what happened; training goes on from
the last checkpoint with another number of workers. `python -m tests.distribute.soak` kills workers many times."""

import re

import numpy as np
import pytest

from tests.distribute.launch import check, needs_mpi, run

pytestmark = needs_mpi
SAID = {
    "interrupt": r"A worker failed: rank 2 raised KeyboardInterrupt \(.*faults\.py:\d+\)",
    "raise": r"A worker failed: rank 2 raised ValueError: no such luck \(.*faults\.py:\d+\)",
    "kill": r"A worker failed: rank 2 died: its process ended without an error message",
    "stop": r"ranks 0, 1 waited in all_reduce\(SUM\) of float32\[10\] at .*faults\.py:\d+ for 2 s; rank 2 doesn't",
    "stall": r"ranks 0, 1 waited in .*; rank 2 hasn't reached it; it is at .*faults\.py:\d+ in fail",
    "leave": r"rank 2 has ended, while rank [01] waits for all workers in all_reduce",
    "branch": r"different collective operations:\n.*\n.*\n *rank 2: all_reduce\(SUM\) of float32\[\] at .*faults",
}  # fmt: skip


@pytest.mark.parametrize("how", [*SAID, *[f"{how} background" for how in ("interrupt", "kill", "stall", "branch")]])
def test_the_others_hear_of_it(how):
    how, *further = how.split()
    done = run("faults.py", 3, how, *further, seconds=120)
    assert done.returncode != 0 and "is done" not in done.stdout
    # A launcher that sees a process end may end the others before they have printed all.
    heard = re.findall(SAID[how], done.stderr)
    assert heard, done.stderr


def test_a_worker_that_fails_before_it_makes_its_strategy():
    done = run("late.py", 3, seconds=120)
    assert done.returncode != 0 and "ValueError: no such luck" in done.stderr
    assert re.search(r"rank [01] has waited 2 s for all 3 processes to create their strategy", done.stderr), done.stderr


def last_line(lines):
    (found,) = [line.split()[2:] for line in lines if line.startswith("ends with")]
    return int(found[0]), np.array(found[1:], float)


def test_training_goes_on_with_another_number_of_workers(tmp_path):
    alone = last_line(check("train.py", 1, str(tmp_path / "alone"), "12", "4"))
    assert alone[0] == 12 * 24
    together = check("train.py", 2, str(tmp_path / "together"), "7", "4")
    assert "saved 4" in together
    resumed = check("train.py", 3, str(tmp_path / "together"), "12", "4")
    assert "rank 2 of 3 begins at step 4" in resumed
    seen, weights = last_line(resumed)
    assert seen == alone[0]  # each row counts once, whoever had it
    np.testing.assert_allclose(weights, alone[1], rtol=1e-12)
