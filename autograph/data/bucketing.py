"""`Dataset.bucket_by_sequence_length`: groups of elements of similar length, filled up to one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from autograph.data.arguments import flat_shapes, known_value, padding, static_int
from runtime import dtypes, nest
from runtime.errors import InvalidArgumentError
from runtime.ops.arrays.reduce import reduce_sum
from runtime.ops.convert import convert_to_tensor
from runtime.ops.elementwise.elementary import cast
from runtime.shapes import as_shape
from runtime.tensor import SymbolicTensor


def bucketed(
    dataset: Any, length_of: Callable[..., Any], boundaries: Any, sizes: Any, shapes: Any, values: Any,
    pad_to_boundary: bool, no_padding: bool, drop_remainder: bool,
) -> Any:  # fmt: skip
    """See `Dataset.bucket_by_sequence_length`."""
    ends = [static_int(end, "bucket_boundaries") for end in boundaries]
    batch_sizes = [static_int(size, "bucket_batch_sizes") for size in sizes]
    if len(batch_sizes) != len(ends) + 1:
        raise ValueError(
            f"`len(bucket_batch_sizes)` must equal `len(bucket_boundaries) + 1` but `len(bucket_batch_sizes)="
            f"{len(batch_sizes)}` and `len(bucket_boundaries)={len(ends)}`."
        )
    if sorted(ends) != ends:
        raise ValueError(f"bucket_boundaries must be strictly increasing, got {ends}")
    limits = np.array(ends, np.int64)
    spec = dataset.element_spec
    given = None if shapes is None else flat_shapes(spec, shapes)
    fills = [known_value(each, "padding_values") for each in padding(nest.flatten(spec), values)]

    def bucket_of(*element: Any) -> Any:
        length = cast(convert_to_tensor(length_of(*element)), dtypes.int64)
        return reduce_sum(cast(length >= limits, dtypes.int64))

    def size_of(bucket: Any) -> int:
        return batch_sizes[int(bucket)]

    def batched(bucket: Any, group: Any) -> Any:
        probing = isinstance(bucket, SymbolicTensor)  # for the spec, which is the same for all buckets
        size = batch_sizes[0] if probing else size_of(bucket)
        whole = drop_remainder and not probing
        if no_padding:
            return group.batch(size, drop_remainder=whole)
        filler = None
        if pad_to_boundary and not probing:
            if int(bucket) == len(ends):
                raise InvalidArgumentError(
                    "When pad_to_bucket_boundary=True, elements must have length < max(bucket_boundaries)."
                )
            filler = ends[int(bucket)] - 1
        filled = []
        for leaf, shape in zip(nest.flatten(spec), given or [None] * len(nest.flatten(spec))):
            wanted = leaf._shape if shape is None else as_shape(shape)
            if wanted is None:
                raise ValueError(f"Elements of unknown rank can't be padded without padded_shapes: {spec}")
            filled.append([filler if size in (None, -1) else size for size in wanted])
        whole_shape = nest.pack_sequence_as(spec, filled) if nest.is_nested(spec) else filled[0]
        return group.padded_batch(size, whole_shape, fills, drop_remainder=whole)

    return dataset.group_by_window(bucket_of, batched, window_size_func=size_of)
