"""`ag.io`: bytes as numbers."""

from __future__ import annotations

from runtime.ops.strings.string_split import decode_raw

__all__ = ["decode_raw"]
