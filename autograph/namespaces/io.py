"""`ag.io`: files, and bytes as numbers."""

from __future__ import annotations

from autograph.data.record_files import TFRecordOptions, TFRecordWriter
from autograph.namespaces import io_gfile as gfile
from runtime.ops.image.codecs import (
    decode_and_crop_jpeg,
    decode_bmp,
    decode_gif,
    decode_image,
    decode_jpeg,
    decode_png,
    encode_jpeg,
    encode_png,
    extract_jpeg_shape,
    is_jpeg,
)
from runtime.ops.strings.csv import decode_csv
from runtime.ops.strings.files import matching_files, read_file, write_file
from runtime.ops.strings.string_ops import decode_base64, encode_base64
from runtime.ops.strings.string_split import decode_raw
from runtime.ops.strings.tensor_protos import parse_tensor, serialize_tensor
from runtime.parsing import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    SparseFeature,
    VarLenFeature,
    parse_example,
    parse_sequence_example,
    parse_single_example,
    parse_single_sequence_example,
)

__all__ = [
    "FixedLenFeature", "FixedLenSequenceFeature", "RaggedFeature", "SparseFeature", "TFRecordOptions",
    "TFRecordWriter", "VarLenFeature", "decode_and_crop_jpeg", "decode_base64", "decode_bmp", "decode_csv",
    "decode_gif", "decode_image", "decode_jpeg", "decode_png", "decode_raw", "encode_base64", "encode_jpeg",
    "encode_png", "extract_jpeg_shape", "gfile", "is_jpeg", "matching_files", "parse_example",
    "parse_sequence_example", "parse_single_example", "parse_single_sequence_example", "parse_tensor", "read_file",
    "serialize_tensor", "write_file",
]  # fmt: skip
