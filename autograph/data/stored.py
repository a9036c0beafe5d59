"""Elements in files: `Dataset.save` and `load`, `snapshot`, and `cache` with a file name.

A file holds records (`runtime.storage.records`). The first is JSON and says what the elements are; each of the others
is an element: a message with the tensors it consists of, in the order of `nest.flatten`, as fields 1. A file that is
being written has another name, so that what is found under its own is complete.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from autograph.data.none_values import NoneTensorSpec
from autograph.data.plans import Follower, OfFile, Plan
from runtime import composites, dtypes, nest
from runtime.errors import DataLossError, InvalidArgumentError, NotFoundError
from runtime.files import translated
from runtime.ops.random.stateful import Restarted
from runtime.ops.strings import tensor_protos, wire
from runtime.ragged.spec import RaggedTensorSpec
from runtime.sparse import SparseTensorSpec
from runtime.spec import TensorSpec
from runtime.storage.files import UNFINISHED, Hold, remove_abandoned
from runtime.storage.records import RecordWriter, read_records
from runtime.tensor import EagerTensor

_FORMAT, _VERSION = "autograph dataset", 1
FILE = "elements.tfrecord"


def spec_to_json(spec: Any) -> Any:
    """A spec as JSON. Raises TypeError for structures other than tuples, lists, and dictionaries with string keys."""
    if isinstance(spec, (TensorSpec, RaggedTensorSpec, SparseTensorSpec)):
        shape = None if spec._shape is None else list(spec._shape)
        if isinstance(spec, RaggedTensorSpec):
            return {"ragged": [spec.dtype.name, shape, spec.ragged_rank]}
        return {"sparse" if isinstance(spec, SparseTensorSpec) else "tensor": [spec.dtype.name, shape]}
    if isinstance(spec, NoneTensorSpec):
        return {"none": []}
    if type(spec) in (tuple, list):
        return {type(spec).__name__: [spec_to_json(part) for part in spec]}
    if type(spec) is dict and all(isinstance(key, str) for key in spec):
        return {"dict": {key: spec_to_json(part) for key, part in spec.items()}}
    raise TypeError(f"Elements of {spec!r} can't be saved: use tuples, lists, or dictionaries with string keys")


def spec_from_json(said: Any) -> Any:
    """The spec that `spec_to_json` has written. Raises ValueError and the like for anything else."""
    ((kind, content),) = said.items()
    if kind in ("tuple", "list"):
        parts = [spec_from_json(part) for part in content]
        return tuple(parts) if kind == "tuple" else parts
    if kind == "dict":
        return {key: spec_from_json(part) for key, part in content.items()}
    if kind == "none":
        return NoneTensorSpec()
    dtype, shape = dtypes.as_dtype(content[0]), content[1]
    if kind == "ragged":
        return RaggedTensorSpec(shape, dtype, content[2])
    return {"sparse": SparseTensorSpec, "tensor": TensorSpec}[kind](shape, dtype)


class ElementWriter:
    """Writes elements of a spec to a file, which has its name once all are written."""

    def __init__(self, path: str, spec: Any, compression: str) -> None:
        self._path, self._compression = path, compression
        head = {"format": _FORMAT, "version": _VERSION, "element": spec_to_json(spec)}
        folder, name = os.path.split(path)
        self._beside = os.path.join(folder, f"{UNFINISHED}{os.getpid()}-{id(self):x}-{name}")
        with translated(path):
            os.makedirs(folder or ".", exist_ok=True)
            remove_abandoned(Path(folder or "."))
            self._records: RecordWriter | None = RecordWriter(self._beside, compression)
            self._hold = Hold(self._beside)
        self._records.write(json.dumps(head).encode())

    def write(self, element: Any) -> None:
        protos = [
            tensor_protos.to_bytes(np.asarray(leaf._array, leaf.dtype._np), leaf.dtype)
            for leaf in nest.flatten(element)
        ]
        assert self._records is not None
        self._records.write(b"".join(wire.field(1, proto) for proto in protos))

    def complete(self) -> None:
        """Closes the file and moves it from its temporary name to its path."""
        assert self._records is not None
        self._records.close(sync=True)
        self._records = None
        os.replace(self._beside, self._path)
        self._hold.close()

    def __del__(self) -> None:
        if getattr(self, "_records", None) is not None:  # not completed
            self._records.close()  # type: ignore[union-attr]
            self._hold.close()
            Path(self._beside).unlink(missing_ok=True)


def read_spec(path: str, compression: str) -> Any:
    """The spec of the elements of a file. Raises NotFoundError, or DataLossError for another file."""
    with translated(path):
        head = next(read_records(path, compression), b"")
    try:
        said = json.loads(head)
        if said["format"] != _FORMAT or said["version"] > _VERSION:
            raise ValueError(f"its format is {said['format']}, version {said['version']}")
        return spec_from_json(said["element"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DataLossError(f"{path} isn't a saved dataset: {error}") from None


class Stored(OfFile):
    """The elements of a file."""

    def __init__(self, path: str, spec: Any, compression: str) -> None:
        self.path, self.spec, self.compression = path, spec, compression

    def elements(self) -> Iterator[Any]:
        with translated(self.path):
            records = read_records(self.path, self.compression)
            next(records, None)
        return map(self._element, records)

    def _element(self, record: bytes) -> Any:
        try:
            pairs = [tensor_protos.from_bytes(value) for _, _, value in wire.fields(record)]
            leaves = [EagerTensor(array, dtype) for array, dtype in pairs]
            return composites.pack_sequence_as(self.spec, leaves, expand_composites=True)
        except (wire.WireError, ValueError) as error:
            raise DataLossError(f"An element of {self.path} is damaged: {error}") from None


class KeptInFile(Follower):
    """The elements of a source, which the first complete run writes to a file: later ones read it, in any process."""

    def __init__(self, source: Plan, path: str, compression: str) -> None:
        super().__init__(source)
        spec_to_json(source.spec)
        self.indexed = False
        self.path, self.compression = path, compression

    @property
    def waits(self) -> bool:
        return True

    def elements(self) -> Iterator[Any]:
        if os.path.exists(self.path):
            found = read_spec(self.path, self.compression)
            if found != self.spec:
                raise InvalidArgumentError(
                    f"{self.path} holds elements of another dataset: {found}, expected {self.spec}. Delete it, or use "
                    "another name"
                )
            return Stored(self.path, self.spec, self.compression).elements()
        return self._written(self.source.elements())

    def _written(self, source: Iterator[Any]) -> Iterator[Any]:
        writer = ElementWriter(self.path, self.spec, self.compression)
        for element in source:
            writer.write(element)
            yield element
        writer.complete()


def save(plan: Plan, path: str, compression: str) -> None:
    """Writes all elements into a folder."""
    writer = ElementWriter(os.path.join(path, FILE), plan.spec, compression)
    for element in Restarted(plan.elements()):
        writer.write(element)
    writer.complete()


def load(path: str, element_spec: Any, compression: str) -> Stored:
    """Reads the elements that `save` wrote to a folder.

    Raises NotFoundError if there is nothing, InvalidArgumentError if the elements are of another spec.
    """
    file = os.path.join(path, FILE)
    if not os.path.exists(file):
        raise NotFoundError(f"There is no saved dataset in {path}")
    found = read_spec(file, compression)
    if element_spec is not None and found != element_spec:
        raise InvalidArgumentError(f"The elements saved in {path} are {found}, but element_spec is {element_spec}")
    return Stored(file, found, compression)
