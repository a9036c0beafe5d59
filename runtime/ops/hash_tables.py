"""Tables from keys to values, of any dtypes with keys that are equal or not: the rows under `ag.lookup`.

A table that never changes is a pair of constants, keys and values, so that looking up is a function of tensors like
others. One that changes is an object, a `Table`, which its ops have as an attribute; they are effects, in the order of
the program.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.dtypes import DType
from runtime.ops.dispatch import apply
from runtime.ops.rules import brackets
from runtime.ops.table import OpDef, Sample, register
from runtime.tensor import Tensor
from runtime.types import TensorType


def _nothing(op: Any, *dy: Any) -> Sequence[Any]:
    return [None] * len(op.inputs)


# --- tables that never change ----------------------------------------------------------------------------------------

# Where each key stands, by the array of keys as long as that lives.
_places: dict[int, tuple[Any, dict[Any, int]]] = {}


def _places_of(keys: np.ndarray) -> dict[Any, int]:
    known = _places.get(id(keys))
    if known is not None and known[0]() is keys:
        return known[1]
    places = {key: place for place, key in enumerate(keys.tolist())}
    number = id(keys)
    _places[number] = weakref.ref(keys, lambda _: _places.pop(number, None)), places
    return places


def _find_constant_kernel(wanted: Any, keys: Any, values: Any, default: Any) -> Any:
    places = _places_of(keys)
    array = np.asarray(wanted)
    rows = np.array([places.get(key, -1) for key in array.reshape(-1).tolist()], np.int64)
    blank = np.empty(1, values.dtype)
    blank[0] = default[()] if isinstance(default, np.ndarray) else default
    return np.concatenate([values, blank])[rows].reshape(array.shape)  # -1 is the place of the default


def _infer_find_constant(inputs: Sequence[Any], attrs: dict) -> tuple:
    wanted, keys, values, default = inputs
    if wanted.dtype is not keys.dtype or values.dtype is not default.dtype:
        raise TypeError(
            f"keys and values must have the table's dtypes, got {wanted.dtype.name} for {keys.dtype.name} and "
            f"{default.dtype.name} for {values.dtype.name}"
        )
    return (TensorType(values.dtype, wanted.shape),)


FIND_CONSTANT = register(
    OpDef(
        "find_constant", _infer_find_constant, _find_constant_kernel, grad=_nothing, label="LookupTableFindV2",
        doc="The values that a constant table has for keys.",
        samples=(
            Sample(((2, 2), (3,), (3,), ()), fixed={
                0: np.array([[5, 7], [1, 5]], np.int64), 1: np.array([7, 5, 6], np.int64),
                2: np.array([b"a", b"b", b"c"], object), 3: np.array(b"?", object)}, gradient=()),
            Sample(((3,), (2,), (2,), ()), fixed={
                0: np.array([b"x", b"y", b"z"], object), 1: np.array([b"z", b"x"], object),
                2: np.array([1.5, 2.5], np.float32), 3: np.float32(-1)}, gradient=()),
        ),
    )
)  # fmt: skip


def find_constant(wanted: Tensor, keys: Tensor, values: Tensor, default: Tensor) -> Tensor:
    """The values of the keys `wanted`, of any shape; `default` for those that the table doesn't have."""
    found: Tensor = apply(FIND_CONSTANT, (wanted, keys, values, default))
    return found


# --- tables that change ----------------------------------------------------------------------------------------------


class Table:
    """Keys and values, which have one shape. Keys in `reserved` are refused, with what is said of each."""

    def __init__(
        self, key_dtype: DType, value_dtype: DType, shape: tuple[int, ...] = (), reserved: dict[Any, str] | None = None
    ) -> None:
        self.key_dtype, self.value_dtype, self.shape = key_dtype, value_dtype, shape
        self._reserved = reserved or {}
        self._values: dict[Any, Any] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<table of {self.key_dtype.name} and {self.value_dtype.name}>"

    def keys_of(self, keys: Any) -> list[Any]:
        found: list[Any] = np.asarray(keys).reshape(-1).tolist()
        for key in self._reserved:
            if key in found:
                raise errors.InvalidArgumentError(
                    f"Using the {self._reserved[key]} as a table key is not allowed: {key!r}"
                )
        return found

    def find(self, keys: Any, default: Any) -> np.ndarray:
        flat = self.keys_of(keys)
        result = np.empty((len(flat), *self.shape), self.value_dtype._np)
        result[...] = default if np.ndim(default) == len(self.shape) else np.reshape(default, result.shape)
        with self._lock:
            for place, key in enumerate(flat):
                if key in self._values:
                    result[place] = self._values[key]
        return result.reshape((*np.shape(keys), *self.shape))

    def insert(self, keys: Any, values: Any) -> None:
        expected = (*np.shape(keys), *self.shape)
        if np.shape(values) != expected:
            raise errors.InvalidArgumentError(
                f"Expected shape {brackets(expected)} for value, got {brackets(np.shape(values))}"
            )
        rows = np.asarray(values).reshape(-1, *self.shape)
        flat = self.keys_of(keys)
        with self._lock:
            self._values.update(zip(flat, np.array(rows) if self.shape else rows.tolist()))

    def remove(self, keys: Any) -> None:
        flat = self.keys_of(keys)
        with self._lock:
            for key in flat:
                self._values.pop(key, None)

    def export(self) -> tuple[np.ndarray, np.ndarray]:
        """Keys and values, in the order in which the keys came."""
        with self._lock:
            keys, values = list(self._values), list(self._values.values())
        first, second = (
            np.empty(len(keys), self.key_dtype._np),
            np.empty((len(keys), *self.shape), self.value_dtype._np),
        )
        for place, (key, value) in enumerate(zip(keys, values)):
            first[place], second[place] = key, value
        return first, second

    def replace(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Has the table hold these keys and values alone."""
        flat = self.keys_of(keys)
        rows = np.array(values) if self.shape else values.tolist()
        with self._lock:
            self._values = dict(zip(flat, rows))

    def __len__(self) -> int:
        return len(self._values)


def _infer_find(inputs: Sequence[Any], attrs: dict) -> tuple:
    table, keys = attrs["table"], inputs[0]
    return (TensorType(table.value_dtype, None if keys.shape is None else (*keys.shape, *table.shape)),)


def _find_kernel(keys: Any, default: Any, table: Table) -> Any:
    given, own = np.shape(default), table.shape
    if given not in (own, (*np.shape(keys), *own)):
        raise errors.InvalidArgumentError(
            f"Expected shape {brackets(own)} or {brackets((*np.shape(keys), *own))} for default value, got "
            f"{brackets(given)} [Op:LookupTableFindV2]"
        )
    found = table.find(keys, default)
    return found if found.ndim or found.dtype == object else found[()]


def _insert_kernel(keys: Any, values: Any, table: Table) -> tuple:
    table.insert(keys, values)
    return ()


def _remove_kernel(keys: Any, table: Table) -> tuple:
    table.remove(keys)
    return ()


def _infer_export(inputs: Sequence[Any], attrs: dict) -> tuple:
    table = attrs["table"]
    return TensorType(table.key_dtype, (None,)), TensorType(table.value_dtype, (None, *table.shape))


def _row(name: str, infer: Any, kernel: Any, label: str, doc: str, multiple: bool = True) -> OpDef:
    why = "uses a table of this process"
    return register(OpDef(name, infer, kernel, effect=True, multiple=multiple, label=label, doc=doc, not_in_files=why))


FIND = _row(
    "table_find", _infer_find, _find_kernel, "LookupTableFindV2", "The values that a table has for keys.", False
)
INSERT = _row(
    "table_insert", lambda inputs, attrs: (), _insert_kernel, "LookupTableInsertV2", "Sets the values of keys."
)
REMOVE = _row("table_remove", lambda inputs, attrs: (), _remove_kernel, "LookupTableRemoveV2", "Removes keys.")
SIZE = _row(
    "table_size", lambda inputs, attrs: (TensorType(dtypes.int64, ()),), lambda table: np.int64(len(table)),
    "LookupTableSizeV2", "The number of keys in a table.", False,
)  # fmt: skip
EXPORT = _row(
    "table_export",
    _infer_export,
    lambda table: table.export(),
    "LookupTableExportV2",
    "All keys and values of a table.",
)
