"""`ag.image`: windows of images, and their contrast."""

from __future__ import annotations

from runtime.ops.nn.convolution import extract_patches
from runtime.ops.nn.images import adjust_contrast

__all__ = ["adjust_contrast", "extract_patches"]
