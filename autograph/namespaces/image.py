"""`ag.image`: windows of images."""

from __future__ import annotations

from runtime.ops.convolution import extract_patches

__all__ = ["extract_patches"]
