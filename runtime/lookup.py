"""`ag.lookup`: tables from keys to values, in eager and in staged code."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.context import init_scope
from runtime.dtypes import DType, DTypeLike
from runtime.ops import hash_tables
from runtime.ops.api import cast, convert_to_tensor, less, where
from runtime.ops.convert import is_tensor_like, static_value
from runtime.ops.dispatch import apply
from runtime.ops.strings.string_ops import as_string, to_hash_bucket_fast
from runtime.ragged.tensor import RaggedTensor
from runtime.sparse import SparseTensor
from runtime.tensor import EagerTensor, Tensor


class KeyValueTensorInitializer:
    """The keys and values of a table, as vectors of one length: tensors, or values that convert to tensors.

    key_dtype, value_dtype: by default those of the tensors.
    """

    def __init__(
        self,
        keys: Any,
        values: Any,
        key_dtype: DTypeLike = None,
        value_dtype: DTypeLike = None,
        name: str | None = None,
    ) -> None:
        with init_scope():
            self._keys, self._values = convert_to_tensor(keys, key_dtype), convert_to_tensor(values, value_dtype)
        self._key_dtype, self._value_dtype = self._keys.dtype, self._values.dtype

    @property
    def key_dtype(self) -> DType:
        return self._key_dtype

    @property
    def value_dtype(self) -> DType:
        return self._value_dtype

    def initialize(self, table: Any) -> None:
        """Fills a table. Raises InvalidArgumentError if the numbers of keys and values differ."""
        table._fill(_array(self._keys), _array(self._values))


def _array(tensor: Tensor) -> np.ndarray:
    found = static_value(tensor)
    if found is None:
        raise ValueError(f"a table needs keys and values that are known while tracing, got {tensor!r}")
    return np.asarray(found)


class TextFileIndex:
    """Stands for a column of `TextFileInitializer`: the whole line, or its number from 0."""

    WHOLE_LINE = -2
    LINE_NUMBER = -1


class TextFileInitializer:
    """Keys and values of a table, read from the lines of a text file.

    filename: a path. key_index, value_index: a column counted from 0, or one of `TextFileIndex`. vocab_size: how many
    lines are read, all by default. delimiter: between columns. value_index_offset: added to the numbers of lines that
    are values.
    Raises ValueError for line numbers that aren't int64 and other negative indices; the table raises NotFoundError for
    a file that isn't there and InvalidArgumentError for lines that don't fit.
    """

    def __init__(
        self, filename: Any, key_dtype: DTypeLike, key_index: int, value_dtype: DTypeLike, value_index: int,
        vocab_size: int | None = None, delimiter: str = "\t", name: str | None = None, value_index_offset: int = 0,
    ) -> None:  # fmt: skip
        self._key_dtype, self._value_dtype = dtypes.as_dtype(key_dtype), dtypes.as_dtype(value_dtype)
        for what, dtype, index in (("key", self._key_dtype, key_index), ("value", self._value_dtype, value_index)):
            if index < TextFileIndex.WHOLE_LINE:
                raise ValueError(f"`{what}_index` should be >= {TextFileIndex.WHOLE_LINE}, received: {index}")
            if index == TextFileIndex.LINE_NUMBER and dtype is not dtypes.int64:
                raise ValueError(f"`{what}_dtype` must be int64 for `{what}_index` {index}, received: {dtype}")
            if index == TextFileIndex.WHOLE_LINE and not (dtype is dtypes.string or dtype.is_integer):
                raise ValueError(f"`{what}_dtype` must be string for `{what}_index` {index}, received: {dtype}")
        if vocab_size is not None and vocab_size <= 0:
            raise ValueError(f"Invalid `vocab_size`: {vocab_size}")
        if is_tensor_like(filename):
            filename = static_value(convert_to_tensor(filename))[()]
        self._filename = os.fsdecode(filename)
        self._indices, self._vocab_size = (int(key_index), int(value_index)), vocab_size
        self._delimiter, self._offset = delimiter.encode(), int(value_index_offset)

    @property
    def key_dtype(self) -> DType:
        return self._key_dtype

    @property
    def value_dtype(self) -> DType:
        return self._value_dtype

    def initialize(self, table: Any) -> None:
        """Reads the file and fills a table."""
        try:
            with open(self._filename, "rb") as file:
                lines = file.read().split(b"\n")
        except FileNotFoundError:
            raise errors.NotFoundError(f"{self._filename}; No such file or directory") from None
        if lines and not lines[-1]:
            lines.pop()
        if self._vocab_size is not None:
            if self._vocab_size > len(lines):
                raise errors.InvalidArgumentError(
                    f"Invalid vocab_size in {self._filename}: expected {self._vocab_size} but got {len(lines)}"
                )
            lines = lines[: self._vocab_size]
        rows = [line.removesuffix(b"\r") for line in lines]
        if b"" in rows:
            raise errors.InvalidArgumentError(f"Invalid content in {self._filename}: empty line found")
        keys = self._column(rows, self._indices[0], self._key_dtype, 0)
        table._fill(keys, self._column(rows, self._indices[1], self._value_dtype, self._offset))

    def _column(self, rows: list[bytes], index: int, dtype: DType, offset: int) -> np.ndarray:
        found = np.empty(len(rows), dtype._np)
        for number, row in enumerate(rows):
            if index == TextFileIndex.LINE_NUMBER:
                found[number] = number + offset
                continue
            fields = [row] if index == TextFileIndex.WHOLE_LINE else row.split(self._delimiter)
            place = max(index, 0)
            if place >= len(fields):
                raise errors.InvalidArgumentError(
                    f"Invalid number of columns in {self._filename} line {number} ({row.decode(errors='replace')}): "
                    f"expected at least {place + 1} but got {len(fields)}"
                )
            found[number] = self._number(fields[place], dtype, number)
        return found

    def _number(self, field: bytes, dtype: DType, line: int) -> Any:
        if dtype is dtypes.string:
            return field
        try:
            return dtype._np.type(int(field) if dtype.is_integer else float(field))
        except (ValueError, OverflowError):
            raise errors.InvalidArgumentError(
                f"Field {field.decode(errors='replace')} in line {line} is not a valid {dtype.name}."
            ) from None


class _Lookups:
    """What tables of all kinds have in common."""

    _key_dtype: DType
    _value_dtype: DType

    @property
    def key_dtype(self) -> DType:
        return self._key_dtype

    @property
    def value_dtype(self) -> DType:
        return self._value_dtype

    def _lookup(self, keys: Tensor, default: Any) -> Tensor:
        raise NotImplementedError

    def _of(self, keys: Any, default: Any = None) -> Any:
        """The values of keys, in the structure of these. Raises TypeError for keys of another dtype."""
        if isinstance(keys, SparseTensor):
            return keys.with_values(self._of(keys.values, default))
        if isinstance(keys, RaggedTensor):
            return keys.with_flat_values(self._of(keys.flat_values, default))
        wanted = convert_to_tensor(keys, None if is_tensor_like(keys) else self._key_dtype)
        if wanted.dtype is not self._key_dtype:
            raise TypeError(f"Dtype of argument `keys` must be {self._key_dtype!r}, received: {wanted.dtype!r}")
        return self._lookup(wanted, default)

    def __getitem__(self, keys: Any) -> Any:
        return self._of(keys)


class _Static(_Lookups):
    """Tables that never change."""

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of keys: a tensor of any shape, a ragged or sparse one. Other keys give the default.

        Raises TypeError for keys of another dtype.
        """
        return self._of(keys)


class StaticHashTable(_Static):
    """An immutable table.

    initializer: `KeyValueTensorInitializer` or `TextFileInitializer`. default_value: the value of all other keys.
    Raises InvalidArgumentError if there aren't as many values as keys, FailedPreconditionError for a key that has
    two values, TypeError and ValueError for a default of another dtype or shape.
    """

    def __init__(
        self, initializer: Any, default_value: Any, name: str | None = None, experimental_is_anonymous: bool = False
    ) -> None:
        # An initializer of another's may say "string".
        self._key_dtype, self._value_dtype = map(dtypes.as_dtype, (initializer.key_dtype, initializer.value_dtype))
        self._name = name
        with init_scope():
            self._default = convert_to_tensor(default_value, self._value_dtype)
            if self._default._shape != ():
                raise ValueError(f"Shapes {self._default.shape} and () are not compatible: default_value is a scalar")
            empty = [np.empty(0, dtype._np) for dtype in (self._key_dtype, self._value_dtype)]
            self._keys, self._values = EagerTensor(empty[0]), EagerTensor(empty[1])
            initializer.initialize(self)

    def _fill(self, keys: np.ndarray, values: np.ndarray) -> None:
        if keys.ndim != 1 or keys.shape != values.shape:
            raise errors.InvalidArgumentError(
                f"Expected shape {list(keys.shape)} for value, got {list(values.shape)} [Op:LookupTableImportV2]"
            )
        found: dict[Any, Any] = {}
        for key, value in zip(keys.tolist(), values.tolist()):
            known = found.setdefault(key, value)
            if known != value:
                raise errors.FailedPreconditionError(
                    f"HashTable has different value for same key. Key {key!r} has {known!r} and trying to add value "
                    f"{value!r}"
                )
        first, second = np.empty(len(found), keys.dtype), np.empty(len(found), values.dtype)
        first[:], second[:] = list(found), list(found.values())
        self._keys, self._values = EagerTensor(first), EagerTensor(second)

    @property
    def name(self) -> str | None:
        return self._name

    @property
    def default_value(self) -> Tensor:
        return self._default

    def _lookup(self, keys: Tensor, default: Any) -> Tensor:
        return hash_tables.find_constant(keys, self._keys, self._values, self._default)

    def size(self, name: str | None = None) -> Tensor:
        """How many keys there are, int64."""
        return convert_to_tensor(len(self._keys._array), dtypes.int64)

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """All keys, and their values."""
        return convert_to_tensor(self._keys._array), convert_to_tensor(self._values._array)


class StaticVocabularyTable(_Static):
    """Numbers words, int64: by a table, and other words by a hash, with one of `num_oov_buckets` numbers after the
    table's.

    initializer: with int64 values 0, 1, ... for its keys; None for hashes alone. lookup_key_dtype: of the words that
    are looked up, int32, int64 or string; by default that of the keys.
    Raises ValueError for no buckets, TypeError for other dtypes.
    """

    def __init__(
        self, initializer: Any, num_oov_buckets: int, lookup_key_dtype: DTypeLike = None, name: str | None = None,
        experimental_is_anonymous: bool = False,
    ) -> None:  # fmt: skip
        if num_oov_buckets <= 0:
            raise ValueError("`num_oov_buckets` must be > 0; use StaticHashTable.")
        own = dtypes.string
        self._table: StaticHashTable | None = None
        if initializer is not None:
            own = dtypes.as_dtype(initializer.key_dtype)
            if dtypes.as_dtype(initializer.value_dtype) is not dtypes.int64:
                raise TypeError(
                    f"Invalid `value_dtype`, expected {dtypes.int64!r} but got {initializer.value_dtype!r}."
                )
            if own not in (dtypes.int64, dtypes.string):
                raise TypeError(f"Invalid `key_dtype`, expected int64 or string, but got {own!r}.")
            self._table = StaticHashTable(initializer, -1, name)
        self._key_dtype = own if lookup_key_dtype is None else dtypes.as_dtype(lookup_key_dtype)
        self._value_dtype = dtypes.int64
        if self._key_dtype.is_integer != own.is_integer and initializer is not None:
            raise TypeError(f"Invalid `lookup_key_dtype` {self._key_dtype!r} for keys of {own!r}")
        self._buckets, self._name = int(num_oov_buckets), name

    @property
    def name(self) -> str | None:
        return self._name

    def _known(self) -> int:
        return 0 if self._table is None else len(self._table._keys._array)

    def _lookup(self, keys: Tensor, default: Any) -> Tensor:
        wide = cast(keys, dtypes.int64) if keys.dtype is dtypes.int32 else keys
        words = as_string(wide) if wide.dtype is dtypes.int64 else wide
        others = to_hash_bucket_fast(words, self._buckets) + self._known()
        if self._table is None:
            return others
        found = self._table.lookup(wide)
        return where(less(found, 0), others, found)

    def size(self, name: str | None = None) -> Tensor:
        """How many numbers there are: of keys and buckets, int64."""
        return convert_to_tensor(self._known() + self._buckets, dtypes.int64)


class MutableHashTable(_Lookups):
    """A table whose keys and values change, in eager and in staged code.

    default_value: the value of all other keys; its shape is that of all values. checkpoint: whether checkpoints save
    the table's contents.
    """

    def __init__(
        self, key_dtype: DTypeLike, value_dtype: DTypeLike, default_value: Any, name: str = "MutableHashTable",
        checkpoint: bool = True, experimental_is_anonymous: bool = False,
    ) -> None:  # fmt: skip
        self.is_saved = bool(checkpoint)
        self._make(key_dtype, value_dtype, default_value, name, {})

    def _make(
        self, key_dtype: DTypeLike, value_dtype: DTypeLike, default: Any, name: str, reserved: dict[Any, str]
    ) -> None:
        self._key_dtype, self._value_dtype = dtypes.as_dtype(key_dtype), dtypes.as_dtype(value_dtype)
        with init_scope():
            self._default = convert_to_tensor(default, self._value_dtype)
        shape = self._default._shape or ()
        self._table = hash_tables.Table(self._key_dtype, self._value_dtype, shape, reserved)  # type: ignore[arg-type]
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    def _lookup(self, keys: Tensor, default: Any) -> Tensor:
        blank = self._default if default is None else convert_to_tensor(default, self._value_dtype)
        found: Tensor = apply(hash_tables.FIND, (keys, blank), {"table": self._table})
        return found

    def lookup(self, keys: Any, dynamic_default_values: Any = None, name: str | None = None) -> Any:
        """The values of keys, of any shape.

        dynamic_default_values: a default value for each key. Raises TypeError for
        keys of another dtype, InvalidArgumentError for defaults of another shape.
        """
        return self._of(keys, dynamic_default_values)

    def insert(self, keys: Any, values: Any, name: str | None = None) -> None:
        """Sets the values of keys; if a key is repeated, the last value counts.

        Raises ValueError for other dtypes, InvalidArgumentError for values of another shape.
        """
        operands = convert_to_tensor(keys, self._key_dtype), convert_to_tensor(values, self._value_dtype)
        apply(hash_tables.INSERT, operands, {"table": self._table})

    def remove(self, keys: Any, name: str | None = None) -> None:
        """Removes keys and their values; unknown keys are ignored. Raises TypeError for keys of another dtype."""
        wanted = convert_to_tensor(keys, None if is_tensor_like(keys) else self._key_dtype)
        if wanted.dtype is not self._key_dtype:
            raise TypeError(f"Dtype of argument `keys` must be {self._key_dtype!r}, received: {wanted.dtype!r}")
        apply(hash_tables.REMOVE, (wanted,), {"table": self._table})

    def size(self, name: str | None = None) -> Tensor:
        """How many keys there are, int64."""
        found: Tensor = apply(hash_tables.SIZE, (), {"table": self._table})
        return found

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """All keys and their values, in the order in which the keys came."""
        keys, values = apply(hash_tables.EXPORT, (), {"table": self._table})
        return keys, values

    def content(self) -> tuple[np.ndarray, np.ndarray]:
        """All keys and their values as arrays, for checkpoints."""
        return self._table.export()

    def set_content(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Has the table hold these keys and values alone. Raises InvalidArgumentError for keys that it refuses."""
        self._table.replace(keys, values)

    @property
    def value_shape(self) -> tuple[int, ...]:
        """The shape of each value."""
        return self._table.shape


class DenseHashTable(MutableHashTable):
    """A `MutableHashTable` with two reserved keys, as in TensorFlow.

    empty_key, deleted_key: these keys. initial_num_buckets: taken, a power of 2.
    Raises InvalidArgumentError if they are equal, and for another number of buckets.
    """

    def __init__(
        self, key_dtype: DTypeLike, value_dtype: DTypeLike, default_value: Any, empty_key: Any, deleted_key: Any,
        initial_num_buckets: int | None = None, name: str = "MutableDenseHashTable", checkpoint: bool = True,
        experimental_is_anonymous: bool = False,
    ) -> None:  # fmt: skip
        kind = dtypes.as_dtype(key_dtype)
        with init_scope():
            first, second = (np.asarray(convert_to_tensor(k, kind)._array) for k in (empty_key, deleted_key))  # type: ignore[attr-defined]
        if first.ndim or second.ndim:
            raise ValueError("DenseHashTable takes keys that are scalars")
        if first == second:
            raise errors.InvalidArgumentError("Empty and deleted keys cannot be equal")
        buckets = initial_num_buckets
        if buckets is not None and (buckets < 4 or buckets & (buckets - 1)):
            raise errors.InvalidArgumentError(f"Number of buckets must be at least 4 and a power of 2, got: {buckets}")
        self.is_saved = bool(checkpoint)
        self._make(kind, value_dtype, default_value, name, {first.item(): "empty_key", second.item(): "deleted_key"})

    def insert_or_assign(self, keys: Any, values: Any, name: str | None = None) -> None:
        """`insert`."""
        self.insert(keys, values)

    def erase(self, keys: Any, name: str | None = None) -> None:
        """`remove`."""
        self.remove(keys)
