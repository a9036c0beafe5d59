"""The files of a checkpoint: an index, which lists the objects and their values, and shards with the values.

    PREFIX.index                                    a JSON document (see docs/formats.md)
    PREFIX.data-ID-00000-of-00001.safetensors       the values; ID is new for each write

A checkpoint is there when its index is. Shards are written first, under names that no other index refers to; so an
earlier checkpoint of this prefix is whole until the new one is.
"""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.collectives import world
from runtime.dataclass import dataclass
from runtime.dtypes import DType
from runtime.errors import DataLossError, NotFoundError
from runtime.storage import files, tensors

# Version 2 has tables; files without any are of version 1.
KIND, VERSION = "autograph checkpoint", 2
INDEX = ".index"
_SHARD = re.compile(r"\.data-[0-9a-f]{16}-[0-9]{5,}-of-[0-9]{5,}\.safetensors")
KINDS = ("VARIABLE_VALUE", "ITERATOR_STATE", "table-keys", "table-values")


@dataclass
class SavedObject:
    """children: numbers of objects by name. values: keys of tensors by the kind of value. path: its name in errors."""

    children: dict[str, int] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    path: str = "(root)"


def key_of(path: Iterable[str], kind: str) -> str:
    """The name of a value in the files, TensorFlow's: `model/layers/0/w/.ATTRIBUTES/VARIABLE_VALUE`."""
    return "/".join([*(name.replace(".", "..").replace("/", ".S") for name in path), f".ATTRIBUTES/{kind}"])


def prefix_of(path: Any) -> Path:
    """The path that begins the names of a checkpoint's files, of that path or of its index."""
    text = str(path)
    return Path(text.removesuffix(INDEX)).absolute()


def index_of(prefix: Path) -> Path:
    return prefix.with_name(prefix.name + INDEX)


# --- writing ---------------------------------------------------------------------------------------------------------


def write(
    prefix: Path,
    objects: Sequence[SavedObject],
    values: Mapping[str, tuple[Any, DType]],
    largest_shard: int | None = None,
) -> None:
    """Writes a checkpoint. values: the arrays by key. largest_shard: bytes of values in one file, if there are more
    than one. Of several processes of a strategy the chief writes. Raises OSError, InvalidArgumentError for values that
    can't be written."""
    if not world.is_chief():
        return
    shards: list[dict[str, np.ndarray]] = [{}]
    said: dict[str, dict[str, Any]] = {}
    size = 0
    for key, (array, dtype) in values.items():
        parts = tensors.stored(key, array, dtype)
        needed = sum(part.nbytes for part in parts.values())
        if largest_shard is not None and shards[-1] and size + needed > largest_shard:
            shards.append({})
            size = 0
        size += needed
        said[key] = {**tensors.described(parts, np.shape(array), dtype), "shard": len(shards) - 1}
        shards[-1].update(parts)
    prefix.parent.mkdir(parents=True, exist_ok=True)
    unique = secrets.token_hex(8)
    names = [f"{prefix.name}.data-{unique}-{i:05}-of-{len(shards):05}.safetensors" for i in range(len(shards))]
    before = _shards_of(prefix)
    try:
        for name, arrays in zip(names, shards):
            tensors.write_arrays(prefix.with_name(name), arrays)
        content = {
            "shards": names,
            "objects": [{"children": thing.children, "values": thing.values} for thing in objects],
            "tensors": said,
        }
        has_tables = any("table-keys" in thing.values for thing in objects)
        files.write_document(index_of(prefix), KIND, VERSION if has_tables else 1, content)
    except BaseException:
        _remove(prefix.with_name(name) for name in names)
        raise
    _remove(before)


def _shards_of(prefix: Path) -> list[Path]:
    """The shards that are there, of checkpoints of this prefix."""
    if not prefix.parent.is_dir():
        return []
    begin = len(prefix.name)
    names = [path for path in prefix.parent.iterdir() if path.name.startswith(prefix.name)]
    return [path for path in names if _SHARD.fullmatch(path.name[begin:])]


def remove(prefix: Path) -> None:
    """Deletes a checkpoint: its index first, so that no broken one can be seen."""
    if not world.is_chief():
        return
    _remove([index_of(prefix)])
    _remove(_shards_of(prefix))


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()


# --- reading ---------------------------------------------------------------------------------------------------------


class SavedCheckpoint:
    """A checkpoint's index, and its values when they are asked for.

    Raises NotFoundError if there is none, DataLossError for damaged files, UnimplementedError for those of a newer
    version.
    """

    def __init__(self, path: Any) -> None:
        self.prefix = prefix_of(path)
        try:
            document = files.read_document(index_of(self.prefix), KIND, VERSION)
        except NotFoundError:
            raise NotFoundError(_not_found(self.prefix)) from None
        self.objects: list[SavedObject] = []
        self.tensors: dict[str, dict[str, Any]] = {}
        self._shards: list[str] = []
        self._open: dict[int, tensors.ArrayFile] = {}
        if not self._understand(document):
            raise DataLossError(f"{index_of(self.prefix)} is damaged: its contents don't match its format version")
        self._name()

    def _understand(self, document: dict[str, Any]) -> bool:
        shards, said, objects = (document.get(name) for name in ("shards", "tensors", "objects"))
        if not isinstance(shards, list) or not isinstance(said, dict) or not isinstance(objects, list) or not objects:
            return False
        # No way out of the folder: shards have the prefix's name.
        begin = self.prefix.name
        for name in shards:
            if not isinstance(name, str) or not _SHARD.search(name) or "/" in name or "\\" in name or "\0" in name:
                return False
        for one in said.values():
            if not tensors.is_description(one) or type(one.get("shard")) is not int:
                return False
            if not 0 <= one["shard"] < len(shards):
                return False
        for one in objects:
            if not isinstance(one, dict):
                return False
            children, values = one.get("children"), one.get("values")
            if not isinstance(children, dict) or not isinstance(values, dict):
                return False
            if not all(type(number) is int and 0 <= number < len(objects) for number in children.values()):
                return False
            if not all(kind in KINDS and isinstance(key, str) and key in said for kind, key in values.items()):
                return False
            self.objects.append(SavedObject(children, values, ""))
        self._shards, self.tensors = [_renamed(name, begin) for name in shards], said
        return True

    def _name(self) -> None:
        """Gives each object the shortest path to it."""
        self.objects[0].path = "(root)"
        pending = [0]
        for number in pending:
            for name, child in self.objects[number].children.items():
                if not self.objects[child].path:
                    self.objects[child].path = f"{self.objects[number].path}.{name}"
                    pending.append(child)

    def has(self, key: str) -> bool:
        return key in self.tensors

    def shape(self, key: str) -> list[int]:
        return list(self.tensors[key]["shape"])

    def dtype(self, key: str) -> DType:
        return dtypes.as_dtype(self.tensors[key]["dtype"])

    def read(self, key: str) -> tuple[np.ndarray, DType]:
        """A value and its dtype. Raises NotFoundError if there is none of that key, DataLossError."""
        said = self.tensors.get(key)
        if said is None:
            raise NotFoundError(f"Key {key} not found in checkpoint {self.prefix}")
        number = said["shard"]
        if number not in self._open:
            try:
                self._open[number] = tensors.ArrayFile(self.prefix.with_name(self._shards[number]))
            except NotFoundError as error:
                raise DataLossError(f"The checkpoint {self.prefix} is incomplete: {error}") from None
        return self._open[number].read(key, said)

    def close(self) -> None:
        """Closes the files; they are opened again when a value is asked for."""
        self._open.clear()


def _renamed(name: str, begin: str) -> str:
    """A shard's name beside an index that may have been renamed together with it."""
    found = _SHARD.search(name)
    assert found is not None
    return begin + found.group()


def _not_found(prefix: Path) -> str:
    text = f"Failed to find any matching files for {prefix}"
    if prefix.is_dir():
        return f"{text}: it is a folder; ag.train.latest_checkpoint(folder) returns the path of its latest checkpoint."
    return (
        f"{text}\nPlease double-check that the path is correct. You may be missing the checkpoint suffix (e.g. the "
        "'-1' in 'path/to/ckpt-1')."
    )


def saved_objects(graph: Any, needed: Sequence[bool]) -> list[SavedObject]:
    """The objects of an `objects.Graph` that belong to it, without values. Raises ValueError for names that aren't
    strings."""
    numbers: dict[int, int] = {}
    for index, mark in enumerate(needed):
        if mark:
            numbers[index] = len(numbers)
    found = []
    for index in numbers:
        thing = SavedObject()
        for name, other in graph.edges[index]:
            if other not in numbers:
                continue
            if not isinstance(name, str):
                raise ValueError(
                    f"Unable to save the object {graph.things[index]!r}: it is a dictionary with a key that isn't a "
                    f"string, {name!r}, for something that checkpoints hold. Use a string, or keep the dictionary "
                    "out of the object."
                )
            thing.children[name] = numbers[other]
        found.append(thing)
    return found
