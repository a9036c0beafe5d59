"""String functions whose rows differ in length: they give ragged tensors."""

from __future__ import annotations

from typing import Any

from runtime.ops import text_rows
from runtime.ops.api import convert_to_tensor, reshape, stack
from runtime.ops.text_parts import string_parts
from runtime.ragged.tensor import RaggedTensor


def _rows(input: Any, how: str, **attrs: Any) -> Any:
    """A vector for one string; a ragged tensor with one dimension more for several."""
    if isinstance(input, RaggedTensor):
        return input.with_values(_rows(input.values, how, **attrs))
    x = convert_to_tensor(input)
    rank = x.shape.rank
    if rank is None:
        raise ValueError("the rank of the strings must be known")
    values, lengths = string_parts(x, how, **attrs)
    if rank == 0:
        return values
    rows = RaggedTensor.from_row_lengths(values, lengths, validate=False)
    if rank == 1:
        return rows
    # The outer dimensions: rows of one length each.
    outer: Any = rows
    numbers = reshape(convert_to_tensor(x), [-1, *x.shape[1:]])
    for axis in range(rank - 1, 0, -1):
        size = numbers.shape[axis]
        if size is None:
            raise ValueError(f"dimension {axis} of the strings must be known, got shape {x.shape}")
        outer = RaggedTensor.from_uniform_row_length(outer, size)
    return outer


def split(input: Any, sep: Any = None, maxsplit: int = -1, name: str | None = None) -> Any:
    """The parts of strings between separators (white space by default): a vector of one string's, ragged of several."""
    return _rows(input, "split", sep=_bytes(sep or b""), maxsplit=int(maxsplit))


def bytes_split(input: Any, name: str | None = None) -> Any:
    """The bytes of strings, as strings of one byte."""
    return _rows(input, "bytes")


def unicode_split(
    input: Any, input_encoding: str, errors: str = "replace", replacement_char: int = 65533, name: str | None = None
) -> Any:
    """The characters of strings, as strings. errors: "replace", "ignore" or "strict"."""
    return _rows(input, "characters", encoding=input_encoding, errors=errors)


def unicode_decode(
    input: Any, input_encoding: str, errors: str = "replace", replacement_char: int = 65533, name: str | None = None
) -> Any:
    """The code points of strings, int32. errors: "replace", "ignore" or "strict"."""
    return _rows(input, "codes", encoding=input_encoding, errors=errors)


def unicode_encode(
    input: Any, output_encoding: str, errors: str = "replace", replacement_char: int = 65533, name: str | None = None
) -> Any:
    """Strings from code points along the last dimension, which may be ragged."""
    if not isinstance(input, RaggedTensor):
        return text_rows.unicode_encode(input, output_encoding, errors, replacement_char)
    if isinstance(input.values, RaggedTensor):
        return input.with_values(unicode_encode(input.values, output_encoding, errors, replacement_char))
    return stack([text_rows.unicode_encode(row, output_encoding, errors, replacement_char) for row in input])


def reduce_join(
    inputs: Any, axis: Any = None, keepdims: bool = False, separator: str = "", name: str | None = None
) -> Any:
    """Strings joined over axes (all by default); the last dimension of a ragged tensor is joined row by row."""
    if not isinstance(inputs, RaggedTensor):
        return text_rows.reduce_join(inputs, axis, keepdims, separator)
    rank = inputs.shape.rank or 0
    if axis is None:
        return text_rows.reduce_join(inputs.flat_values, None, keepdims, separator)
    if axis % rank != rank - 1:
        raise ValueError(f"reduce_join of ragged strings goes over their last dimension, got axis {axis}")
    if isinstance(inputs.values, RaggedTensor):
        return inputs.with_values(reduce_join(inputs.values, -1, keepdims, separator))
    return stack([text_rows.reduce_join(row, 0, keepdims, separator) for row in inputs])


def _bytes(text: Any) -> bytes:
    return text.encode() if isinstance(text, str) else bytes(text)
