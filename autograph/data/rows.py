"""Rows of tensors, ragged and sparse tensors and extension types, and batches of such rows; and the specs of both.

A ragged tensor's row may be an ordinary tensor. Its spec remembers that it came from a ragged one (`RaggedTensorSpec`
of ragged rank 0), so that a batch of such rows is ragged again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from autograph.data.none_values import NoneTensorSpec
from runtime import dtypes, nest
from runtime.context import ctx
from runtime.extension_types.values import ExtensionType, ExtensionTypeSpec, batch_encoder
from runtime.ops.api import concat, pad, stack, zeros_like
from runtime.ops.api import shape as shape_of
from runtime.ops.convert import convert_to_tensor
from runtime.ragged.arrays import stack_rows
from runtime.ragged.spec import RaggedTensorSpec
from runtime.ragged.tensor import RaggedTensor
from runtime.shapes import widen
from runtime.sparse import SparseTensor, SparseTensorSpec, sparse_concat, sparse_row, sparse_slice
from runtime.spec import TensorSpec
from runtime.tensor import EagerTensor


def _encoder(leaf: Any) -> Any:
    """What makes batches of the values of an extension type; None for everything else.

    Raises TypeError for an extension type that doesn't say how.
    """
    found = batch_encoder(leaf)
    if found is None and isinstance(leaf, (ExtensionType, ExtensionTypeSpec)):
        kind = leaf.value_type if isinstance(leaf, ExtensionTypeSpec) else type(leaf)
        raise TypeError(
            f"{kind.__qualname__} can't be batched or split into rows: derive it from "
            "ag.experimental.BatchableExtensionType"
        )
    return found


def spec_of_leaf(leaf: Any) -> Any:
    """The spec of a tensor, ragged or sparse tensor, extension type or dataset."""
    if isinstance(leaf, NoneTensorSpec):
        return leaf
    if hasattr(leaf, "_type_spec"):
        return leaf._type_spec
    return TensorSpec(leaf.shape, leaf.dtype)


def row_spec_of_leaf(spec: Any) -> Any:
    """The spec of the rows of what a spec describes. Raises ValueError for scalars."""
    if isinstance(spec, NoneTensorSpec):
        return spec
    encoder = _encoder(spec)
    if encoder is not None:
        return encoder.unbatch(spec)
    shape = spec._shape
    if shape == ():
        raise ValueError(
            f"Only tensors of rank 1 or more have rows, got scalars ({spec}): batch() makes vectors of scalars, and "
            "tensors(...) in place of tensor_slices(...) takes them as they are"
        )
    inner = None if shape is None else shape[1:]
    if isinstance(spec, RaggedTensorSpec):
        return RaggedTensorSpec(inner, spec.dtype, max(spec.ragged_rank - 1, 0))
    return type(spec)(inner, spec.dtype)


def batched_spec_of_leaf(spec: Any, size: int | None) -> Any:
    """The spec of a batch of what a spec describes. Raises TypeError for datasets, which don't go into one."""
    if isinstance(spec, NoneTensorSpec):
        return spec
    if hasattr(spec, "element_spec"):
        raise TypeError(
            "Datasets can't be batched: `flat_map(lambda window: window.batch(size))` batches the elements of each"
        )
    encoder = _encoder(spec)
    if encoder is not None:
        return encoder.batch(spec, size)
    shape = None if spec._shape is None else (size, *spec._shape)
    if isinstance(spec, RaggedTensorSpec):
        return RaggedTensorSpec(shape, spec.dtype, spec.ragged_rank + 1)
    return type(spec)(shape, spec.dtype)


def ragged_spec_of_leaf(spec: Any) -> Any:
    """The spec under which a batch is ragged: dimensions of unknown size may differ from row to row."""
    if not isinstance(spec, TensorSpec) or spec._shape is None or None not in spec._shape:
        return spec
    last = max(axis for axis, size in enumerate(spec._shape) if size is None)
    return RaggedTensorSpec(spec._shape, spec.dtype, last)


def joined_spec_of_leaves(one: Any, other: Any) -> Any:
    """The spec that covers both. Raises TypeError if kinds or dtypes differ."""
    if isinstance(one, NoneTensorSpec) and isinstance(other, NoneTensorSpec):
        return one
    if isinstance(one, ExtensionTypeSpec):
        return nest.map_structure(joined_spec_of_leaves, one, other)
    if type(one) is not type(other) or one.dtype is not other.dtype:
        raise TypeError(f"One dataset can't hold elements of both {one} and {other}.")
    shape = widen(one._shape, other._shape)
    if isinstance(one, RaggedTensorSpec):
        return RaggedTensorSpec(shape, one.dtype, one.ragged_rank)
    return type(one)(shape, one.dtype)


def number_of_rows(leaf: Any) -> Any:
    """An int where it is known, else an int64 scalar."""
    encoder = _encoder(leaf)
    if encoder is not None:
        return number_of_rows(encoder.encode(leaf._type_spec, leaf, 1)[0])
    known = leaf.shape[0] if leaf.shape.rank else None
    if known is not None:
        return known
    if isinstance(leaf, RaggedTensor):
        return leaf.nrows()
    return leaf.dense_shape[0] if isinstance(leaf, SparseTensor) else shape_of(leaf, out_type=dtypes.int64)[0]


def row_of_leaf(leaf: Any, index: Any) -> Any:
    """The row at an index, an int or an int64 scalar."""
    if isinstance(leaf, NoneTensorSpec):
        return leaf
    if isinstance(leaf, SparseTensor):
        return sparse_row(leaf, index)
    encoder = _encoder(leaf)
    if encoder is not None:
        spec = leaf._type_spec
        rows = [row_of_leaf(part, index) for part in encoder.encode(spec, leaf, 1)]
        return encoder.decode(encoder.unbatch(spec), rows)
    return leaf[index]


def has_spans(leaf: Any) -> bool:
    """Whether some rows of a leaf are had as a whole, by slicing it."""
    encoder = _encoder(leaf)
    if encoder is not None:
        return all(map(has_spans, encoder.encode(leaf._type_spec, leaf, 1)))
    return not isinstance(leaf, SparseTensor)


def rows_between(leaf: Any, start: Any, stop: Any) -> Any:
    """The rows from one index, an int or an int64 scalar, to another."""
    if isinstance(leaf, NoneTensorSpec):
        return leaf
    encoder = _encoder(leaf)
    if encoder is not None:
        spec = leaf._type_spec
        parts = [rows_between(part, start, stop) for part in encoder.encode(spec, leaf, 1)]
        known = stop - start if isinstance(start, int) and isinstance(stop, int) else None
        return encoder.decode(encoder.batch(encoder.unbatch(spec), known), parts)
    if not isinstance(leaf, SparseTensor):
        return leaf[start:stop]
    inner = leaf.dense_shape[1:]
    first, count = (stack([convert_to_tensor(number, inner.dtype)]) for number in (start, stop - start))
    return sparse_slice(leaf, concat([first, zeros_like(inner)], 0), concat([count, inner], 0))


def batch_of_leaves(leaves: list[Any], spec: Any) -> Any:
    """Eager rows, each of this spec, as one.

    Raises InvalidArgumentError for dense tensors, and ValueError for sparse ones, of different shapes.
    """
    if isinstance(spec, NoneTensorSpec):
        return spec
    encoder = _encoder(spec)
    if encoder is not None:
        columns = zip(*[encoder.encode(spec, leaf) for leaf in leaves])
        parts = [batch_of_leaves(list(rows), its) for rows, its in zip(columns, encoder.encoding_specs(spec))]
        return encoder.decode(encoder.batch(spec, len(leaves)), parts)
    if isinstance(spec, SparseTensorSpec):
        return sparse_concat(0, [_with_first_axis(leaf) for leaf in leaves])
    if not isinstance(spec, RaggedTensorSpec):
        first = leaves[0]._array.shape
        if not ctx.recorders and all(leaf._array.shape == first for leaf in leaves):
            return EagerTensor(stacked_arrays(leaves), spec.dtype)
        return stack(leaves)  # which says what doesn't fit
    if spec.ragged_rank:
        return stack_rows([_as_ragged(leaf, spec.ragged_rank) for leaf in leaves])
    return RaggedTensor.from_row_lengths(concat(leaves, 0), [leaf.shape[0] for leaf in leaves], validate=False)


def stacked_arrays(leaves: list[Any]) -> np.ndarray:
    """The arrays of eager tensors of one shape and dtype as one, along a new first axis."""
    dtype = leaves[0].dtype
    if dtype is dtypes.string:  # of which NumPy would put scalars, as arrays, into the array
        return np.stack([np.asarray(leaf._array, object) for leaf in leaves])
    return np.array([leaf._array for leaf in leaves], dtype._np)


def dense_argument(spec: Any) -> Any:
    """The spec of what a traced function is called with: rows of ragged tensors that are tensors are tensors there."""
    if isinstance(spec, RaggedTensorSpec) and spec.ragged_rank == 0:
        return TensorSpec(spec.shape, spec.dtype)
    if isinstance(spec, ExtensionTypeSpec):
        static, parts = spec.__tf_flatten__()
        return type(spec)._ag_made(static, list(map(dense_argument, parts)))
    return spec


def _with_first_axis(leaf: SparseTensor) -> SparseTensor:
    """One row of a sparse tensor."""
    indices = pad(leaf.indices, [[0, 0], [1, 0]])
    return SparseTensor(indices, leaf.values, pad(leaf.dense_shape, [[1, 0]], constant_values=1))


def _as_ragged(leaf: Any, rank: int) -> RaggedTensor:
    return leaf if isinstance(leaf, RaggedTensor) else RaggedTensor.from_tensor(leaf, ragged_rank=rank)
