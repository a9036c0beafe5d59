"""`ag.io`: files, and bytes as numbers."""

from __future__ import annotations

from autograph.namespaces import io_gfile as gfile
from runtime.ops.image.codecs import (
    decode_bmp,
    decode_gif,
    decode_image,
    decode_jpeg,
    decode_png,
    encode_jpeg,
    encode_png,
    is_jpeg,
)
from runtime.ops.strings.files import matching_files, read_file, write_file
from runtime.ops.strings.string_split import decode_raw

__all__ = [
    "decode_bmp", "decode_gif", "decode_image", "decode_jpeg", "decode_png", "decode_raw", "encode_jpeg", "encode_png",
    "gfile", "is_jpeg", "matching_files", "read_file", "write_file",
]  # fmt: skip
