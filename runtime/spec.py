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
