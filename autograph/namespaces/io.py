"""`ag.io`: bytes as numbers."""

from __future__ import annotations

from runtime.ops.text_parts import decode_raw

__all__ = ["decode_raw"]
