"""The processes that this one has joined: at most one group of all of them, whoever asks."""

from __future__ import annotations

from typing import Any

from runtime.collectives.group import Group

_joined: list[Any] = []


def joined(communicator: Any = None, patience: float | None = None) -> Group:
    """The group of all processes, or one of a communicator's. Raises UnimplementedError without MPI."""
    from runtime.collectives.mpi import MpiGroup  # loads MPI, which programs in one process don't have

    if communicator is not None:
        return MpiGroup(communicator, patience)
    if not _joined:
        _joined.append(MpiGroup(None, patience))
    elif patience is not None:
        _joined[0].patience = patience
    return _joined[0]


def is_chief() -> bool:
    """Whether this process writes what all processes have in common: it does unless it has joined others, of whom rank
    0 does."""
    return not _joined or _joined[0].rank == 0
