"""`ag.io.parse_example` and its kin: features of TensorFlow's messages as tensors, sparse and ragged tensors.

What the messages hold comes from one row of the op table (`ops/strings/example_parsing.py`); here it is put together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from runtime import dtypes
from runtime.context import init_scope
from runtime.dtypes import DType
from runtime.ops.api import cast, concat, cumsum, gather, reduce_max, reshape, shape, stack
from runtime.ops.api import range as range_
from runtime.ops.arrays.miscellaneous import repeat
from runtime.ops.convert import convert_to_tensor
from runtime.ops.dispatch import apply
from runtime.ops.elementwise.arithmetic import maximum
from runtime.ops.strings import example_parsing
from runtime.ragged.tensor import RaggedTensor
from runtime.shapes import as_shape
from runtime.sparse import SparseTensor, reorder
from runtime.tensor import Tensor


class FixedLenFeature(NamedTuple):
    """A feature with a fixed number of values in each message, given by `shape`.

    default_value: the value of a missing feature, of that shape or a scalar; with None, a missing feature is an error.
    """

    shape: Any
    dtype: Any
    default_value: Any = None


class FixedLenSequenceFeature(NamedTuple):
    """A feature that is a list of steps, each with a fixed number of values, given by `shape`.

    allow_missing: whether it may be missing; must be True for `parse_example`. default_value: a scalar that pads
    shorter lists of a batch; by default 0 or the empty string."""

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


class VarLenFeature(NamedTuple):
    """A feature with any number of values: a sparse tensor."""

    dtype: Any


class SparseFeature(NamedTuple):
    """A sparse tensor of which one feature has the values and others the indices.

    index_key: the key of the indices, or a list with one for each dimension. size: the dimension, or a list of them.
    already_sorted: whether the values stand in order.
    """

    index_key: Any
    value_key: str
    dtype: Any
    size: Any
    already_sorted: bool = False


class RowSplits(NamedTuple):
    """A partition by the key of its row splits."""

    key: str


class RowLengths(NamedTuple):
    """A partition by the key of the lengths of its rows."""

    key: str


class RowStarts(NamedTuple):
    """A partition by the key of the places where its rows begin."""

    key: str


class RowLimits(NamedTuple):
    """A partition by the key of the places where its rows end."""

    key: str


class ValueRowIds(NamedTuple):
    """A partition by the key of the numbers of the rows that values are in."""

    key: str


class UniformRowLength(NamedTuple):
    """A partition into rows of one length."""

    length: int


_PARTITIONS = {
    RowSplits: "row_splits", RowLengths: "row_lengths", RowStarts: "row_starts", RowLimits: "row_limits",
    ValueRowIds: "value_rowids", UniformRowLength: "uniform_row_length",
}  # fmt: skip


class RaggedFeature(NamedTuple):
    """A feature with any number of values: a ragged tensor.

    value_key: its key in the messages, by default the name of the feature. partitions: how values are divided into
    rows, the outermost first: `RaggedFeature.RowLengths(key)` and the like. row_splits_dtype is without effect: row
    splits
    are int64."""

    dtype: Any
    value_key: str | None = None
    partitions: Any = ()
    row_splits_dtype: Any = dtypes.int32
    validate: bool = False


for _kind in _PARTITIONS:
    setattr(RaggedFeature, _kind.__name__, _kind)


class _Wanted:
    """The features that are asked for, and where their arrays are among those that the op gives."""

    def __init__(self) -> None:
        self.features: list[tuple] = []
        self.places: dict[tuple, tuple[int, int]] = {}
        self._count = 0

    def add(
        self, kind: str, key: str, dtype: Any, shape: Any = (), default: Any = None, partitions: tuple = ()
    ) -> tuple:
        """Adds a feature to those that are parsed, unless it is there already; returns its name in `Found`."""
        found = dtypes.as_dtype(dtype)
        if found not in (dtypes.float32, dtypes.int64, dtypes.string):
            raise TypeError(
                f"Feature {key!r} has dtype {found.name}, but messages hold only float32, int64 and string; parse "
                "one of these, and cast the result"
            )
        feature = (kind, str(key), found, shape, default, partitions)
        if feature not in self.places:
            size = {"fixed": 1, "sequence": 1, "list": 2, "ragged": 2 + len(partitions), "steps": 3}[kind]
            self.places[feature] = self._count, self._count + size
            self._count += size
            self.features.append(feature)
        return feature

    def read(self, serialized: Tensor) -> dict[tuple, list[Tensor]]:
        """The arrays of each feature for a vector of messages."""
        if not self.features:
            return {}
        flat = apply(example_parsing.PARSE, (serialized,), {"features": tuple(self.features)})
        return {feature: list(flat[start:stop]) for feature, (start, stop) in self.places.items()}


def _default(value: Any, dtype: DType, shape: tuple, key: str) -> tuple | None:
    """A default value as an attribute: all elements, or one for all. Raises ValueError for another number of them."""
    if value is None:
        return None
    with init_scope():
        array = np.asarray(convert_to_tensor(value, dtype))
    size = int(np.prod(shape, dtype=np.int64))
    if array.size not in (1, size):
        raise ValueError(f"The default_value of feature {key!r} has {array.size} elements for the shape {list(shape)}")
    return tuple(array.reshape(-1).tolist())


def _static_shape(given: Any, key: str) -> tuple[int, ...]:
    found = as_shape([given] if isinstance(given, int) else given)
    if found is None or None in found:
        raise ValueError(f"The shape of feature {key!r} must be known, got {given}; VarLenFeature takes any number")
    return tuple(size for size in found if size is not None)


def _ask(wanted: _Wanted, key: str, feature: Any) -> Any:
    """Asks for what a feature of an `Example` needs; gives the names."""
    if isinstance(feature, FixedLenFeature):
        shape = _static_shape(feature.shape, key)
        return wanted.add("fixed", key, feature.dtype, shape, _default(
            feature.default_value, dtypes.as_dtype(feature.dtype), shape, key
        ))  # fmt: skip
    if isinstance(feature, FixedLenSequenceFeature):
        if not feature.allow_missing:
            raise ValueError(f"Unsupported: FixedLenSequenceFeature requires allow_missing to be True (key {key!r})")
        dtype = dtypes.as_dtype(feature.dtype)
        shape = _static_shape(feature.shape, key)
        return wanted.add("sequence", key, dtype, shape, _default(feature.default_value, dtype, (), key))
    if isinstance(feature, VarLenFeature):
        return wanted.add("list", key, feature.dtype)
    if isinstance(feature, SparseFeature):
        keys = [feature.index_key] if isinstance(feature.index_key, str) else list(feature.index_key)
        indices = [wanted.add("list", each, dtypes.int64) for each in keys]
        return indices, wanted.add("list", feature.value_key, feature.dtype)
    if isinstance(feature, RaggedFeature):
        partitions = []
        for each in feature.partitions:
            if type(each) not in _PARTITIONS:
                raise TypeError(f"Feature {key!r} has a partition that is not one of RaggedFeature's: {each!r}")
            partitions.append((_PARTITIONS[type(each)], each[0]))
        return wanted.add("ragged", feature.value_key or key, feature.dtype, (), None, tuple(partitions))
    raise TypeError(f"Feature {key!r} is {feature!r}: use FixedLenFeature, VarLenFeature, RaggedFeature and the like")


def _count(serialized: Tensor) -> Any:
    return shape(serialized, out_type=dtypes.int64)[0]


def _longest(lengths: Tensor) -> Tensor:
    return reduce_max(concat([lengths, convert_to_tensor([0], dtypes.int64)], 0))


def _places(lengths: Tensor) -> tuple[Tensor, Tensor]:
    """For each value its row and its position in the row, two int64 vectors. `lengths`: int64 [rows], the number of
    values in each row."""
    rows = repeat(range_(shape(lengths, out_type=dtypes.int64)[0]), lengths)
    starts = cumsum(lengths, exclusive=True)
    places = range_(shape(rows, out_type=dtypes.int64)[0]) - gather(starts, rows)
    return rows, places


def _sparse(values: Tensor, lengths: Tensor) -> SparseTensor:
    rows, places = _places(lengths)
    dense_shape = stack([shape(lengths, out_type=dtypes.int64)[0], _longest(lengths)])
    return SparseTensor(stack([rows, places], 1), values, dense_shape)


def _given(found: Any, names: Any, feature: Any, count: Any) -> Any:
    """The tensor of a feature, for a batch of `Example` messages: dense, sparse or ragged, as `feature` says."""
    if isinstance(feature, (FixedLenFeature, FixedLenSequenceFeature)):
        return found[names][0]
    if isinstance(feature, VarLenFeature):
        return _sparse(*found[names])
    if isinstance(feature, RaggedFeature):
        values, *lengths = found[names]
        return RaggedTensor.from_nested_row_lengths(values, lengths, validate=False)
    index_names, value_name = names
    values, lengths = found[value_name]
    rows, _ = _places(lengths)
    sizes = [feature.size] if isinstance(feature.size, int) else list(feature.size)
    indices = stack([rows, *[found[name][0] for name in index_names]], 1)
    dense_shape = stack([count, *[convert_to_tensor(size, dtypes.int64) for size in sizes]])
    made = SparseTensor(indices, values, dense_shape)
    return made if feature.already_sorted else reorder(made)


def parse_example(serialized: Any, features: Any, example_names: Any = None, name: str | None = None) -> dict[str, Any]:
    """The features of a vector of `Example` messages, each with an axis for the messages in front.

    serialized: strings, shape [n], or one string, for which this is `parse_single_example`. features: for each key a
    FixedLenFeature (a tensor), FixedLenSequenceFeature (a tensor, filled up), VarLenFeature, SparseFeature (sparse
    tensors) or RaggedFeature. Raises InvalidArgumentError for a string that is no such message, and for a feature that
    is missing or of another dtype or size; ValueError if there are no features.
    """
    messages = convert_to_tensor(serialized, dtypes.string)
    if messages.shape.rank == 0:
        return parse_single_example(messages, features)
    _need(features, "features")
    wanted = _Wanted()
    names = {key: _ask(wanted, key, feature) for key, feature in features.items()}
    found, count = wanted.read(messages), _count(messages)
    return {key: _given(found, names[key], features[key], count) for key in sorted(features)}


def parse_single_example(
    serialized: Any, features: Any, example_names: Any = None, name: str | None = None
) -> dict[str, Any]:
    """The features of one `Example` message, a scalar string: `parse_example` without the axis for the messages."""
    _need(features, "features")
    batch = parse_example(reshape(convert_to_tensor(serialized, dtypes.string), [1]), features)
    return {key: _without_batch(value) for key, value in batch.items()}


def _without_batch(value: Any) -> Any:
    if isinstance(value, SparseTensor):
        return SparseTensor(value.indices[:, 1:], value.values, value.dense_shape[1:])
    return value[0]


def _need(features: Any, what: str) -> None:
    if not features:
        raise ValueError(f"Argument `{what}` cannot be None or empty.")
    if not isinstance(features, Mapping):
        raise TypeError(f"Argument `{what}` must be a dictionary, got {features!r}")


# --- sequences -------------------------------------------------------------------------------------------------------


def parse_sequence_example(
    serialized: Any, context_features: Any = None, sequence_features: Any = None, example_names: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:  # fmt: skip
    """The features of a vector of `SequenceExample` messages: those of the contexts, those of the lists, and the
    numbers of steps of the latter where they are FixedLenSequenceFeatures, int64 of shape [n].

    context_features: as for `parse_example`. sequence_features: FixedLenSequenceFeature (a tensor [n, longest,
    *shape]), VarLenFeature (a sparse tensor [n, steps, values]) and RaggedFeature (with the same axes)."""
    if not (context_features or sequence_features):
        raise ValueError("One of `context_features` and `sequence_features` at least must have values.")
    messages = convert_to_tensor(serialized, dtypes.string)
    context, sequences = context_features or {}, sequence_features or {}
    wanted = _Wanted()
    names = {key: _ask(wanted, key, feature) for key, feature in context.items()}
    lists = {key: _ask_steps(wanted, key, feature) for key, feature in sequences.items()}
    found, count = wanted.read(messages), _count(messages)
    steps = {key: _given_steps(found[lists[key]], sequences[key]) for key in sorted(sequences)}
    lengths = {
        key: found[lists[key]][2] for key in sorted(sequences) if isinstance(sequences[key], FixedLenSequenceFeature)
    }
    return {key: _given(found, names[key], context[key], count) for key in sorted(context)}, steps, lengths


def parse_single_sequence_example(
    serialized: Any, context_features: Any = None, sequence_features: Any = None, example_name: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:  # fmt: skip
    """The features of one `SequenceExample` message, a scalar string: `parse_sequence_example` without the axis for the
    messages, and without lengths."""
    messages = reshape(convert_to_tensor(serialized, dtypes.string), [1])
    context, sequences, _ = parse_sequence_example(messages, context_features, sequence_features)
    return tuple({key: _without_batch(value) for key, value in each.items()} for each in (context, sequences))  # type: ignore[return-value]


def _ask_steps(wanted: _Wanted, key: str, feature: Any) -> tuple:
    if isinstance(feature, FixedLenSequenceFeature):
        shape = _static_shape(feature.shape, key)
        return wanted.add("steps", key, feature.dtype, shape, bool(feature.allow_missing))
    if isinstance(feature, VarLenFeature):
        return wanted.add("steps", key, feature.dtype, None, True)
    if isinstance(feature, RaggedFeature) and not feature.partitions:
        return wanted.add("steps", feature.value_key or key, feature.dtype, None, True)
    raise TypeError(
        f"Feature {key!r} of a sequence is {feature!r}: use FixedLenSequenceFeature, VarLenFeature, or RaggedFeature "
        "without partitions"
    )


def _given_steps(arrays: Sequence[Tensor], feature: Any) -> Any:
    """The tensor of a feature list, for a batch of `SequenceExample` messages: dense, sparse or ragged, as `feature`
    says."""
    values, lengths, counts = arrays
    if isinstance(feature, RaggedFeature):
        return RaggedTensor.from_nested_row_lengths(values, [counts, lengths], validate=False)
    if isinstance(feature, FixedLenSequenceFeature):
        inner = _static_shape(feature.shape, "")
        rows = reshape(
            values, concat([shape(lengths, out_type=dtypes.int64), convert_to_tensor(inner, dtypes.int64)], 0)
        )
        blank = b"" if values.dtype is dtypes.string else 0
        fill = blank if feature.default_value is None else feature.default_value
        ragged: Any = RaggedTensor.from_row_lengths(rows, counts, validate=False)
        return ragged.to_tensor(default_value=fill)
    steps, places = _places(lengths)
    rows, numbers = _places(counts)
    indices = stack([gather(rows, steps), gather(numbers, steps), places], 1)
    dense_shape = stack([shape(counts, out_type=dtypes.int64)[0], _longest(counts), maximum(_longest(lengths), 0)])
    return SparseTensor(indices, values, cast(dense_shape, dtypes.int64))
