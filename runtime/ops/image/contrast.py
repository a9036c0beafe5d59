"""The contrast of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.ops.convert import convert_to_tensor
from runtime.ops.dispatch import apply, call
from runtime.ops.table import OpDef, Sample, register
from runtime.tensor import Tensor


def _infer(inputs: Sequence[Any], attrs: dict) -> tuple:
    shape = inputs[0].shape
    if shape is not None and len(shape) < 3:
        raise ValueError(f"images must have at least 3 dimensions (height, width, channels), got shape {shape}")
    return (inputs[0],)


def _kernel(images: Any, factor: Any) -> Any:
    mean = images.mean(axis=(-3, -2), keepdims=True, dtype=np.float64)
    return ((images - mean) * factor + mean).astype(images.dtype)


ADJUST_CONTRAST = register(
    OpDef(
        "adjust_contrast", _infer, _kernel, kinds="f", label="AdjustContrastv2",
        doc="Changes the contrast of images. As in TensorFlow, the op has no gradient.",
        samples=(Sample(((2, 3, 3), ()), gradient=()),),
    )
)  # fmt: skip


def contrasted(x: Tensor, factor: Any) -> Tensor:
    """(x - mean) * factor + mean, with the mean over each channel of each image."""
    amount = call("cast", convert_to_tensor(factor, dtype_hint=dtypes.float32), dtype=x.dtype)
    return apply(ADJUST_CONTRAST, (x, amount))
