"""`TensorSpec`: the dtype and static shape of a tensor that isn't there yet."""

from __future__ import annotations

from typing import Any

from runtime import dtypes, shapes
from runtime.types import TensorType


class TensorSpec:
    """Describes a tensor: `shape` (None: any rank; None entries: any size), `dtype` and an optional name.

    >>> TensorSpec([None, 3], dtypes.float32)
    TensorSpec(shape=(None, 3), dtype=tf.float32, name=None)
    """

    __slots__ = ("_shape", "dtype", "name")

    def __init__(self, shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> None:
        self._shape = shapes.as_shape(shape)
        self.dtype = dtypes.as_dtype(dtype)
        self.name = name

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> TensorSpec:
        return cls(tensor.shape, tensor.dtype, name)

    @classmethod
    def from_spec(cls, spec: Any, name: str | None = None) -> TensorSpec:
        return cls(spec.shape, spec.dtype, name or spec.name)

    @property
    def shape(self) -> shapes.TensorShape:
        return shapes.TensorShape(self._shape)

    @property
    def type(self) -> TensorType:
        return TensorType(self.dtype, self._shape)

    # What a class of specs says of its values, for composites that have tensors (`runtime.type_specs`).

    def _serialize(self) -> tuple:
        return self.shape, self.dtype, self.name

    @property
    def _component_specs(self) -> TensorSpec:
        return self

    def _to_components(self, value: Any) -> Any:
        return value

    def _from_components(self, components: Any) -> Any:
        return components

    def _with_shape(self, shape: Any) -> TensorSpec:
        return TensorSpec(shape, self.dtype, self.name)

    def _with_tensor_ranks_only(self) -> TensorSpec:
        """The spec without the sizes of dimensions."""
        return self._with_shape(None if self._shape is None else [None] * len(self._shape))

    def _without_tensor_names(self) -> TensorSpec:
        """The spec without its name."""
        return TensorSpec(self._shape, self.dtype)

    def _batch(self, batch_size: int | None) -> TensorSpec:
        """The spec of a batch of such tensors."""
        return self._with_shape(shapes.TensorShape([batch_size]).concatenate(self.shape))

    def _unbatch(self) -> TensorSpec:
        """The spec of an element of a batch. Raises ValueError for a scalar."""
        if self._shape == ():
            raise ValueError("Unbatching a tensor is only supported for rank >= 1")
        return self._with_shape(self.shape[1:])

    def is_subtype_of(self, other: Any) -> bool:
        """Whether every tensor of this spec is one of the other spec."""
        return (
            isinstance(other, TensorSpec) and self.dtype == other.dtype and self.shape.is_subtype_of(other.shape)
            and other.name in (None, self.name)
        )  # fmt: skip

    def most_specific_common_supertype(self, others: Any) -> TensorSpec | None:
        """The most specific spec of which this one and the others are subtypes; None where their dtypes differ."""
        shape, name = self.shape, self.name
        for other in others:
            if type(other) is not type(self) or other.dtype != self.dtype:
                return None
            shape = shape.most_specific_compatible_shape(other.shape)
            name = name if name == other.name else None
        return TensorSpec(shape, self.dtype, name) if type(self) is TensorSpec else self._with_shape(shape)

    def most_specific_compatible_type(self, other: Any) -> TensorSpec:
        """The most specific spec that both are compatible with. Raises ValueError where their dtypes differ."""
        found = self.most_specific_common_supertype([other])
        if found is None:
            raise ValueError(f"Types are not compatible: {self!r} vs {other!r}")
        return found

    def is_compatible_with(self, value: Any) -> bool:
        """Whether a tensor or spec has this dtype and a compatible shape."""
        return value.dtype is self.dtype and self.shape.is_compatible_with(value.shape)

    def covers(self, dtype: dtypes.DType, shape: shapes.Shape) -> bool:
        """Whether every tensor of this dtype and shape fits the spec."""
        return dtype is self.dtype and shapes.covers(self._shape, shape)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TensorSpec)
            and (self._shape, self.dtype, self.name) == (other._shape, other.dtype, other.name)
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash((self._shape, self.dtype))

    def __repr__(self) -> str:
        return f"TensorSpec(shape={shapes.format_shape(self._shape)}, dtype={self.dtype!r}, name={self.name!r})"

    def __reduce__(self) -> tuple:
        return TensorSpec, (self._shape, self.dtype, self.name)
