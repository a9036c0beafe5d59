"""Looking into checkpoints without the objects that they are of."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from autograph.saving.checkpoint_files import SavedCheckpoint
from autograph.saving.state import latest_checkpoint
from runtime.dtypes import DType
from runtime.tensor import EagerTensor


class CheckpointReader:
    """The values of a checkpoint by their keys, such as `model/w/.ATTRIBUTES/VARIABLE_VALUE`. `load_checkpoint` makes
    one."""

    def __init__(self, saved: SavedCheckpoint) -> None:
        self._saved = saved

    def has_tensor(self, key: str) -> bool:
        """Whether there is a value of that key."""
        return self._saved.has(key)

    def get_tensor(self, key: str) -> Any:
        """The value of a key, a NumPy array. Raises NotFoundError if there is none, DataLossError if it is damaged."""
        array, dtype = self._saved.read(key)
        return EagerTensor(array, dtype).numpy()

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """The shapes of all values by key."""
        return {key: self._saved.shape(key) for key in sorted(self._saved.tensors)}

    def get_variable_to_dtype_map(self) -> dict[str, DType]:
        """The dtypes of all values by key."""
        return {key: self._saved.dtype(key) for key in sorted(self._saved.tensors)}


def load_checkpoint(ckpt_dir_or_file: str | os.PathLike[str]) -> CheckpointReader:
    """A reader of a checkpoint, or of the latest one in a folder.

    Raises ValueError for a folder without checkpoints, NotFoundError, DataLossError for damaged files,
    UnimplementedError for files of a newer version.
    """
    path = os.fspath(ckpt_dir_or_file)
    if Path(path).is_dir():
        latest = latest_checkpoint(path)
        if latest is None:
            raise ValueError(f"Couldn't find 'checkpoint' file or checkpoints in given directory {path}")
        path = latest
    return CheckpointReader(SavedCheckpoint(path))


def list_variables(ckpt_dir_or_file: str | os.PathLike[str]) -> list[tuple[str, list[int]]]:
    """The keys of a checkpoint's values and their shapes, sorted. Raises the errors of `load_checkpoint`."""
    return list(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())


def load_variable(ckpt_dir_or_file: str | os.PathLike[str], name: str) -> Any:
    """One value of a checkpoint by its key, a NumPy array. Raises the errors of `load_checkpoint`, and NotFoundError
    for an unknown key."""
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name.removesuffix(":0"))
