"""`ag.strings`: string tensors."""

from __future__ import annotations

from runtime.ops.api import (
    strings_join as join,
)  # fmt: skip
from runtime.ops.text_rows import (
    as_string,
    bytes_split,
    length,
    lower,
    reduce_join,
    regex_full_match,
    regex_replace,
    split,
    strip,
    substr,
    to_hash_bucket,
    to_hash_bucket_fast,
    to_hash_bucket_strong,
    to_number,
    unicode_decode,
    unicode_encode,
    upper,
)

__all__ = [
    "as_string", "bytes_split", "join", "length", "lower", "reduce_join", "regex_full_match", "regex_replace",
    "split", "strip", "substr", "to_hash_bucket", "to_hash_bucket_fast", "to_hash_bucket_strong", "to_number",
    "unicode_decode", "unicode_encode", "upper",
]  # fmt: skip
