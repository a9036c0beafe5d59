"""`ag.audio`: sound as files."""

from __future__ import annotations

from runtime.ops.signal.wav import decode_wav, encode_wav

__all__ = ["decode_wav", "encode_wav"]
