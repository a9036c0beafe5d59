"""`ag.compat.dimension_value` and its like: sizes of dimensions, whichever version of TensorFlow a library is for."""

from __future__ import annotations

from typing import Any

from runtime.shapes import TensorShape


def dimension_value(dimension: Any) -> int | None:
    """The size of a dimension: an int, or None where it isn't known. TensorFlow 1 has objects there."""
    return getattr(dimension, "value", dimension)


def dimension_at_index(shape: TensorShape, index: int) -> int | None:
    """The size of a shape's dimension, None where it or the rank isn't known.

    Raises TypeError if `shape` isn't a TensorShape, IndexError if it has no such dimension.
    """
    if not isinstance(shape, TensorShape):
        raise TypeError(f"shape must be a TensorShape, got {type(shape).__name__}: write tf.TensorShape(...)")
    return None if shape.rank is None else dimension_value(shape[index])
