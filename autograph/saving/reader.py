"""Looking into checkpoints without the objects that they are of."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from autograph.saving.checkpoint_files import SavedCheckpoint, SavedObject
from autograph.saving.state import latest_checkpoint
from runtime import dtypes
from runtime.dtypes import DType
from runtime.ops.strings import wire
from runtime.tensor import EagerTensor

OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"


class CheckpointReader:
    """The values of a checkpoint by their keys, such as `model/w/.ATTRIBUTES/VARIABLE_VALUE`. `load_checkpoint` makes
    one.

    As in TensorFlow, `_CHECKPOINTABLE_OBJECT_GRAPH` is the key of a string, which holds the graph of objects as a
    message of TensorFlow's type `TrackableObjectGraph`.
    """

    def __init__(self, saved: SavedCheckpoint) -> None:
        self._saved = saved

    def has_tensor(self, key: str) -> bool:
        """Whether there is a value of that key."""
        return key == OBJECT_GRAPH or self._saved.has(key)

    def get_tensor(self, key: str) -> Any:
        """The value of a key, a NumPy array; of `_CHECKPOINTABLE_OBJECT_GRAPH` bytes. Raises NotFoundError if there is
        none, DataLossError if it is damaged."""
        if key == OBJECT_GRAPH:
            return _object_graph(self._saved.objects)
        array, dtype = self._saved.read(key)
        return EagerTensor(array, dtype).numpy()

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """The shapes of all values by key."""
        return {OBJECT_GRAPH: [], **{key: self._saved.shape(key) for key in sorted(self._saved.tensors)}}

    def get_variable_to_dtype_map(self) -> dict[str, DType]:
        """The dtypes of all values by key."""
        return {OBJECT_GRAPH: dtypes.string, **{key: self._saved.dtype(key) for key in sorted(self._saved.tensors)}}


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
    """The keys of a checkpoint's values and their shapes, sorted; among them `_CHECKPOINTABLE_OBJECT_GRAPH`, see
    `CheckpointReader`. Raises the errors of `load_checkpoint`."""
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())


def load_variable(ckpt_dir_or_file: str | os.PathLike[str], name: str) -> Any:
    """One value of a checkpoint by its key, a NumPy array. Raises the errors of `load_checkpoint`, and NotFoundError
    for an unknown key."""
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name.removesuffix(":0"))


def _object_graph(objects: Sequence[SavedObject]) -> bytes:
    """The objects as a message.

    TrackableObjectGraph   1 nodes
    node                   1 children (1 number of a node, 2 name), 2 values (1 kind, 2 name in errors, 3 key)
    """

    def text(field: int, value: str) -> bytes:
        return wire.field(field, value.encode())

    nodes = []
    for thing in objects:
        children = [wire.integer_field(1, number) + text(2, name) for name, number in thing.children.items()]
        values = [text(1, kind) + text(2, thing.path) + text(3, key) for kind, key in thing.values.items()]
        nodes.append(b"".join([wire.field(1, each) for each in children] + [wire.field(2, each) for each in values]))
    return b"".join(wire.field(1, node) for node in nodes)
