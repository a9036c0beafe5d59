"""Strategies with a replica in each process: programs that `mpiexec` starts."""

from pathlib import Path

import pytest

from tests.distribute.launch import check, needs_mpi, run


@needs_mpi
def test_the_example_gives_the_same_losses_on_any_number_of_workers():
    example = Path(__file__).resolve().parents[2] / "examples" / "distributed_training.py"
    alone, together = (check(example, workers)[0].split("losses: ") for workers in (1, 3))
    assert alone[1] == together[1] and together[0] == "3 replicas, "


@needs_mpi
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_contracts_of_strategies(workers):
    assert sorted(check("contracts.py", workers)) == [
        f"rank {rank} of {workers}: all contracts hold" for rank in range(workers)
    ]


@needs_mpi
@pytest.mark.parametrize("how", [[], ["background"]], ids=["", "background"])
def test_workers_that_come_to_different_operations_are_told(how):
    assert len(check("mismatches.py", 3, *how)) == 12


@needs_mpi
def test_workers_on_other_machines_try_all_addresses_of_the_first():
    assert len(check("addresses.py", 2, "second")) == 2
    done = run("addresses.py", 2, "none", seconds=120)
    assert done.returncode != 0 and "rank 1 can't connect to rank 0 (192.0.2.77" in done.stderr


@needs_mpi
def test_a_worker_may_end_while_others_still_move_their_parts():
    assert sorted(check("ending.py", 3)) == ["rank 0: 3", "rank 1: 3", "rank 2: 3"]


@needs_mpi
def test_a_worker_may_end_while_it_reduces_in_the_background():
    assert sorted(check("unawaited.py", 3)) == ["rank 0: 3", "rank 1: 3"]
