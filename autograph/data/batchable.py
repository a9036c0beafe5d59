"""`ag.experimental.BatchableExtensionType`: extension types of which one value can hold a batch of values.

    Masked([1, 2], [True, False])      batched with      Masked([3, 4], [True, True])
    Masked([[1, 2], [3, 4]], [[True, False], [True, True]])

An encoder says how: as which tensors a value is stacked, split and concatenated, and what the specs of batches are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from autograph.data.rows import batched_spec_of_leaf, row_spec_of_leaf
from runtime.extension_types.values import ExtensionType
from runtime.shapes import TensorShape


class ExtensionTypeBatchEncoder:
    """How batches of an extension type are made: by this class, with one more axis for each of its tensors, extension
    types and `TensorShape`s.

    A subclass, an instance of which is the class's `__batch_encoder__`, overrides all methods to make them otherwise.
    What `encode` returns is stacked, split along the first axis and concatenated, and `decode` makes values of it.
    """

    def batch(self, spec: Any, batch_size: int | None) -> Any:
        """The spec of a batch of values of a spec; batch_size: their number, None if it isn't known."""
        static, parts = spec.__tf_flatten__()
        made = [batched_spec_of_leaf(part, batch_size) for part in parts]
        return type(spec)._ag_made(static.with_shapes(lambda shape: TensorShape([batch_size]).concatenate(shape)), made)

    def unbatch(self, spec: Any) -> Any:
        """The spec of the values of which a spec describes a batch. Raises ValueError for what has no first axis."""
        static, parts = spec.__tf_flatten__()
        return type(spec)._ag_made(static.with_shapes(_without_first), list(map(row_spec_of_leaf, parts)))

    def encode(self, spec: Any, value: Any, minimum_rank: int = 0) -> list[Any]:
        """The tensors that stand for a value of a spec; each has at least the rank `minimum_rank`."""
        return list(value.__tf_flatten__()[1])

    def decode(self, spec: Any, encoded_value: Sequence[Any]) -> Any:
        """The value of a spec for which tensors stand."""
        return spec.value_type._ag_made(spec.__tf_flatten__()[0], encoded_value)

    def encoding_specs(self, spec: Any) -> list[Any]:
        """The specs of what `encode` returns for a value of a spec."""
        return list(spec.__tf_flatten__()[1])


def _without_first(shape: TensorShape) -> TensorShape:
    if shape.rank == 0:
        raise ValueError("a batch has a first axis, but the shape of this value is ()")
    return shape[1:] if shape.rank is not None else shape


class BatchableExtensionType(ExtensionType):
    """An `ExtensionType` that datasets can batch and split into rows, and `map_fn` maps: a value can also be a batch.

    A batch has one more axis in each tensor, extension type and `TensorShape`; a class for which that doesn't do has
    an `ExtensionTypeBatchEncoder` of its own as `__batch_encoder__`.
    """

    __batch_encoder__ = ExtensionTypeBatchEncoder()
