"""Strategies with a replica in each process: programs that `mpiexec` starts."""

from pathlib import Path

import pytest

from tests.distribute.launch import check, needs_mpi


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
