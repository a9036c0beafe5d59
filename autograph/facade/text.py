"""`ag.compat.as_text` and its like: strings as bytes and as text."""

from __future__ import annotations

import os
from typing import Any


def as_bytes(bytes_or_text: Any, encoding: str = "utf-8") -> bytes:
    """The bytes of a string, bytearray or bytes. Raises TypeError for anything else."""
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    if isinstance(bytes_or_text, (bytes, bytearray)):
        return bytes(bytes_or_text)
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


def as_text(bytes_or_text: Any, encoding: str = "utf-8") -> str:
    """The text of bytes or a string. Raises TypeError for anything else."""
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    if isinstance(bytes_or_text, (bytes, bytearray)):
        return bytes(bytes_or_text).decode(encoding)
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


as_str = as_text


def as_str_any(value: Any, encoding: str = "utf-8") -> str:
    """The text of bytes, or `str(value)` of anything else."""
    return as_text(value, encoding) if isinstance(value, (bytes, bytearray)) else str(value)


def path_to_str(path: Any) -> Any:
    """The string of a path object; anything else as it is."""
    return os.fspath(path) if isinstance(path, os.PathLike) else path
