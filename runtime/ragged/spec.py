"""`RaggedTensorSpec`: the dtype and shape of a ragged tensor that isn't there yet, for `input_signature`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runtime import dtypes, shapes
from runtime.spec import TensorSpec

_SPLITS = TensorSpec([None], dtypes.int64)


class RaggedTensorSpec:
    """Describes a ragged tensor: `shape` (None for ragged and unknown dimensions), `dtype`, `ragged_rank`.

    ragged_rank: how many dimensions after the first are partitioned into rows (default: all of them). With 0 it
    describes a plain tensor that is a row of a ragged one; a dataset makes ragged batches of these.
    """

    __slots__ = ("_ragged_rank", "_shape", "_uniform", "dtype")
    spec_text = True
    __ag_composite__ = "ragged"
    value_type: Any = None  # set by `tensor.py`, which knows this module

    def __init__(
        self, shape: Any = None, dtype: Any = dtypes.float32, ragged_rank: int | None = None,
        row_splits_dtype: Any = dtypes.int64,
    ) -> None:  # fmt: skip
        self._shape = shapes.as_shape(shape)
        self.dtype = dtypes.as_dtype(dtype)
        if ragged_rank is None:
            if self._shape is None:
                raise ValueError("Must specify ragged_rank or a shape of known rank")
            ragged_rank = len(self._shape) - 1
        if self._shape is not None and not 0 <= ragged_rank < len(self._shape):
            raise ValueError(f"ragged_rank must be at least 0 and below the rank, got {ragged_rank} for {self.shape}")
        self._ragged_rank = ragged_rank
        self._uniform = (None,) * ragged_rank if self._shape is None else self._shape[1 : 1 + ragged_rank]

    @classmethod
    def from_value(cls, value: Any) -> RaggedTensorSpec:
        """The spec of a ragged tensor."""
        return cls(value.shape, value.dtype, value.ragged_rank)

    @property
    def shape(self) -> shapes.TensorShape:
        return shapes.TensorShape(self._shape)

    @property
    def ragged_rank(self) -> int:
        return self._ragged_rank

    def __tf_flatten__(self) -> tuple[Any, tuple]:
        if not self._ragged_rank:
            return (), (TensorSpec(self._shape, self.dtype),)
        if self._shape is None:
            return self._uniform, (TensorSpec(None, self.dtype), *[_SPLITS] * self._ragged_rank)
        rows = self._shape[0]
        outer = TensorSpec([None if rows is None else rows + 1], dtypes.int64)
        inner = [None, *self._shape[1 + self._ragged_rank :]]
        return self._uniform, (TensorSpec(inner, self.dtype), outer, *[_SPLITS] * (self._ragged_rank - 1))

    @classmethod
    def __tf_unflatten__(cls, metadata: Any, components: Sequence[Any]) -> Any:
        flat, *nested = components
        if not isinstance(flat, TensorSpec):
            return cls.value_type.__tf_unflatten__(metadata, components)
        if not nested:
            return cls(flat.shape, flat.dtype, 0)
        known = nested[0].shape[0]
        inner = [] if flat.shape.rank is None else list(flat.shape)[1:]
        return cls([None if known is None else known - 1, *metadata, *inner], flat.dtype, len(nested))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RaggedTensorSpec) and self._facts() == other._facts()

    def __hash__(self) -> int:
        return hash(self._facts())

    def _facts(self) -> tuple:
        return self._shape, self.dtype, self._ragged_rank

    def __repr__(self) -> str:
        return f"RaggedTensorSpec({self.shape!r}, {self.dtype!r}, {self._ragged_rank}, tf.int64)"
