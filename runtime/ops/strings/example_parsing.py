"""Features of TensorFlow's `Example` and `SequenceExample` messages as arrays.

    example_features(serialized; features)   serialized: strings, [n]; for each feature the arrays that `_OUTPUTS` lists

A feature is (kind, key, dtype, shape, default, partitions). Of a feature that isn't "fixed" an output holds the values
of all messages one after the other, and others how many each has: kinds that begin with "steps" are of the lists of
features that a `SequenceExample` has, of which each entry is a step.

    Example: {features = 1}          SequenceExample: {context = 1, feature_lists = 2}
    Features: {map feature = 1}      FeatureLists: {map feature_list = 1}      FeatureList: {repeated feature = 1}
    Feature: {bytes_list = 1 | float_list = 2 | int64_list = 3}                each of these: {repeated value = 1}
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.dtypes import DType
from runtime.ops.strings import wire
from runtime.ops.table import OpDef, register
from runtime.types import TensorType

_BYTES, _FLOATS, _INTEGERS = 1, 2, 3
_LISTS = {dtypes.string: _BYTES, dtypes.float32: _FLOATS, dtypes.int64: _INTEGERS}
_NAMES = {_BYTES: "bytes_list", _FLOATS: "float_list", _INTEGERS: "int64_list"}
_EMPTY = (0, b"")

# (field of the list, its message)
Feature = tuple[int, bytes]


def feature_map(message: bytes) -> dict[bytes, bytes]:
    """The entries of `Features` or `FeatureLists`, undecoded. Raises WireError."""
    found = {}
    for number, kind, entry in wire.fields(message):
        if number != 1 or kind != wire.BYTES:
            continue
        key = value = b""
        for part, part_kind, content in wire.fields(entry):
            if part_kind == wire.BYTES and part == 1:
                key = content
            elif part_kind == wire.BYTES and part == 2:
                value = content
        found[key] = value
    return found


def feature_of(message: bytes) -> Feature:
    """Which list a `Feature` has; (0, b"") for none. Raises WireError."""
    found: Feature = _EMPTY
    for number, kind, content in wire.fields(message):
        if kind == wire.BYTES and number in _NAMES:
            found = number, content
    return found


def values_of(feature: Feature) -> Any:
    """The values of a list: strings, or an array of float32 or int64. Raises WireError."""
    kind, message = feature
    parts: list[Any] = []
    for number, form, content in wire.fields(message):
        if number != 1:
            continue
        if kind == _BYTES:
            if form != wire.BYTES:
                raise wire.WireError("a bytes_list holds a value of another type")
            parts.append(content)
        elif kind == _FLOATS:
            if form not in (wire.BYTES, wire.FIXED32):
                raise wire.WireError("a float_list holds a value of another type")
            parts.append(wire.packed_floats(content))
        elif form == wire.BYTES:
            parts.append(wire.packed_integers(content))
        elif form == wire.VARINT:
            parts.append(np.array([wire.signed(content)], np.int64))
        else:
            raise wire.WireError("an int64_list holds a value of another type")
    if kind == _BYTES:
        return parts
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.empty(0, np.float32 if kind == _FLOATS else np.int64)


class _Reader:
    """Reads one feature of each message. Fails with InvalidArgumentError, which names the message and the key."""

    def __init__(self, key: str, dtype: DType) -> None:
        self.key, self.dtype = key.encode(), dtype
        self._name = key
        self._list = _LISTS[dtype]

    def fail(self, number: int, problem: str) -> errors.InvalidArgumentError:
        return errors.InvalidArgumentError(f"Key: {self._name}, Index: {number}.  {problem}")

    def read(self, number: int, message: bytes | None) -> Any:
        """The values of message `number`; None where it has none."""
        if message is None:
            return None
        feature = feature_of(message)
        if feature == _EMPTY:
            return None
        if feature[0] != self._list:
            wanted, found = self.dtype.name, _NAMES[feature[0]]
            raise self.fail(number, f"Data types don't match. Expected type: {wanted}, but the message has a {found}")
        return values_of(feature)

    def joined(self, rows: Sequence[Any]) -> np.ndarray:
        """The values of all messages, one after the other."""
        if self.dtype is dtypes.string:
            flat = [item for row in rows for item in row]
            found = np.empty(len(flat), object)
            found[:] = flat
            return found
        full = [row for row in rows if len(row)]
        return np.concatenate(full) if full else np.empty(0, self.dtype._np)


def _lengths(rows: Sequence[Any]) -> np.ndarray:
    return np.array([len(row) for row in rows], np.int64)


# --- kinds of features: the arrays for all messages, given the entries of each ---------------------------------------

Entries = Sequence[dict[bytes, bytes]]


def _fixed(reader: _Reader, entries: Entries, shape: tuple, default: Any, partitions: tuple) -> list[np.ndarray]:
    """[n, *shape]"""
    count = int(np.prod(shape, dtype=np.int64))
    rows = []
    for number, each in enumerate(entries):
        row = reader.read(number, each.get(reader.key))
        if row is None:
            if default is None:
                raise reader.fail(
                    number, f"Feature (data type: {reader.dtype.name}) is required but could not be found."
                )
            row = default if len(default) == count else default * count
            row = row if reader.dtype is dtypes.string else np.array(row, reader.dtype._np)
        if len(row) != count:
            raise reader.fail(
                number, f"Number of {reader.dtype.name} values != expected.  values size: {len(row)} but output shape: "
                f"{list(shape)}"
            )  # fmt: skip
        rows.append(row)
    return [reader.joined(rows).reshape(len(rows), *shape)]


def _sequence(reader: _Reader, entries: Entries, shape: tuple, default: Any, partitions: tuple) -> list[np.ndarray]:
    """[n, longest, *shape]: rows that are shorter are filled up."""
    step = int(np.prod(shape, dtype=np.int64))
    rows = [row if row is not None else [] for row in _rows(reader, entries)]
    for number, row in enumerate(rows):
        if step and len(row) % step:
            raise reader.fail(number, f"Number of values ({len(row)}) is not a multiple of the size of a step, {step}")
    longest = max([len(row) // step for row in rows], default=0) if step else 0
    found = np.empty((len(rows), longest * step), reader.dtype._np)
    blank = b"" if reader.dtype is dtypes.string else 0
    found[:] = blank if default is None else default[0]
    for target, row in zip(found, rows):
        target[: len(row)] = row
    return [found.reshape(len(rows), longest, *shape)]


def _rows(reader: _Reader, entries: Entries) -> Iterator[Any]:
    for number, each in enumerate(entries):
        yield reader.read(number, each.get(reader.key))


def _list(reader: _Reader, entries: Entries, shape: tuple, default: Any, partitions: tuple) -> list[np.ndarray]:
    """values [total], lengths [n]"""
    rows = [[] if row is None else row for row in _rows(reader, entries)]
    return [reader.joined(rows), _lengths(rows)]


def _ragged(reader: _Reader, entries: Entries, shape: tuple, default: Any, partitions: tuple) -> list[np.ndarray]:
    """values, then lengths: of each message, and of the rows that each partition makes, from the outermost"""
    values, counts = _list(reader, entries, shape, default, partitions)
    levels: list[list[np.ndarray]] = [[] for _ in partitions]
    for number, (each, count) in enumerate(zip(entries, counts.tolist())):
        for place in reversed(range(len(partitions))):
            how, argument = partitions[place]
            lengths = _partition(reader, how, argument, each, number, count)
            levels[place].append(lengths)
            count = len(lengths)
    if not partitions:
        return [values, counts]
    outer = _lengths(levels[0])
    return [values, outer, *[np.concatenate(level) if level else np.empty(0, np.int64) for level in levels]]


def _partition(reader: _Reader, how: str, argument: Any, entry: Any, number: int, count: int) -> np.ndarray:
    """The lengths of the rows that a partition makes of `count` values."""
    if how == "uniform_row_length":
        if argument < 1 or count % argument:
            raise reader.fail(number, f"{count} values don't make rows of {argument}")
        return np.full(count // argument, argument, np.int64)
    numbers = _Reader(argument, dtypes.int64).read(number, entry.get(argument.encode()))
    numbers = np.empty(0, np.int64) if numbers is None else numbers
    if how == "row_lengths":
        lengths = numbers
    elif how == "row_splits":
        lengths = np.diff(numbers) if len(numbers) else numbers
    elif how == "row_limits":
        lengths = np.diff(numbers, prepend=0)
    elif how == "row_starts":
        lengths = np.diff(numbers, append=count)
    else:  # value_rowids
        if len(numbers) and (numbers.min() < 0 or (np.diff(numbers) < 0).any()):
            raise reader.fail(number, f"the value_rowids of {argument} must not be negative or decrease")
        lengths = np.bincount(numbers).astype(np.int64)
    if lengths.sum() != count or (lengths < 0).any():
        raise reader.fail(number, f"the {how} of {argument} don't fit {count} values")
    return lengths


def _steps(reader: _Reader, entries: Entries, shape: tuple, default: Any, partitions: tuple) -> list[np.ndarray]:
    """values, lengths of all steps, the number of steps of each message; allow_missing is the default"""
    steps: list[Any] = []
    counts = []
    fixed = int(np.prod(shape, dtype=np.int64)) if shape is not None else None
    for number, each in enumerate(entries):
        message = each.get(reader.key)
        if message is None and not default:
            raise reader.fail(number, "Feature list is required but could not be found.")
        found = [
            reader.read(number, content)
            for field, kind, content in wire.fields(message or b"")
            if field == 1 and kind == wire.BYTES
        ]
        steps += [[] if row is None else row for row in found]
        counts.append(len(found))
        if fixed is not None and any(len(row) != fixed for row in steps[len(steps) - len(found) :]):
            raise reader.fail(number, f"Steps must have {fixed} values each, as the shape {list(shape)} says")
    return [reader.joined(steps), _lengths(steps), np.array(counts, np.int64)]


_KINDS = {"fixed": _fixed, "sequence": _sequence, "list": _list, "ragged": _ragged, "steps": _steps}


def _outputs(feature: Any, count: int | None) -> list[TensorType]:
    kind, _, dtype, shape, _, partitions = feature
    if kind == "fixed":
        return [TensorType(dtype, (count, *shape))]
    if kind == "sequence":
        return [TensorType(dtype, (count, None, *shape))]
    lengths = [TensorType(dtypes.int64, (count,))]
    if kind == "steps":
        lengths.insert(0, TensorType(dtypes.int64, (None,)))
    lengths += [TensorType(dtypes.int64, (None,)) for _ in partitions]
    return [TensorType(dtype, (None,)), *lengths]


def _infer(inputs: Sequence[Any], attrs: dict) -> tuple:
    (serialized,) = inputs
    if serialized.dtype is not dtypes.string:
        raise TypeError(f"serialized must be strings, got {serialized.dtype.label}")
    if serialized.shape is not None and len(serialized.shape) != 1:
        raise ValueError(f"serialized must be a scalar or a vector of strings, got shape {serialized.shape}")
    count = None if serialized.shape is None else serialized.shape[0]
    return tuple(type_ for feature in attrs["features"] for type_ in _outputs(feature, count))


def _kernel(serialized: Any, features: tuple) -> tuple:
    messages = np.asarray(serialized, object).tolist()
    contexts, lists = [], []
    with_steps = any(feature[0] == "steps" for feature in features)
    for number, message in enumerate(messages):
        try:
            parts = {field: content for field, kind, content in wire.fields(message) if kind == wire.BYTES}
            contexts.append(feature_map(parts.get(1, b"")))
            lists.append(feature_map(parts.get(2, b"")) if with_steps else {})
        except wire.WireError as error:
            raise errors.InvalidArgumentError(f"Could not parse example input {number}: {error}") from None
    found: list[np.ndarray] = []
    for kind, key, dtype, shape, default, partitions in features:
        reader = _Reader(key, dtype)
        try:
            found += _KINDS[kind](reader, lists if kind == "steps" else contexts, shape, default, partitions)
        except wire.WireError as error:
            raise errors.InvalidArgumentError(f"Could not parse example input, key {key}: {error}") from None
    return tuple(found)


PARSE = register(
    OpDef(
        "example_features", _infer, _kernel, multiple=True, kinds="O", label="ParseExampleV2",
        doc="Parses the features of serialized Example messages.",
    )
)  # fmt: skip
