"""`ag.strings`: string tensors."""

from __future__ import annotations

from runtime.ragged.api import (
    as_string,
    join,
    length,
    lower,
    regex_full_match,
    regex_replace,
    strip,
    substr,
    to_hash_bucket,
    to_hash_bucket_fast,
    to_hash_bucket_strong,
    to_number,
    upper,
)
from runtime.ragged.strings import (
    bytes_split,
    reduce_join,
    split,
    unicode_decode,
    unicode_encode,
    unicode_split,
)

__all__ = [
    "as_string", "bytes_split", "join", "length", "lower", "reduce_join", "regex_full_match", "regex_replace",
    "split", "strip", "substr", "to_hash_bucket", "to_hash_bucket_fast", "to_hash_bucket_strong", "to_number",
    "unicode_decode", "unicode_encode", "unicode_split", "upper",
]  # fmt: skip
