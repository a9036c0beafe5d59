"""String functions whose rows differ in length: they give ragged tensors."""

from __future__ import annotations

from typing import Any

from runtime.ops.api import convert_to_tensor, ensure_shape, fill, reduce_prod, shape, size, stack
from runtime.ops.dispatch import apply
from runtime.ops.strings import string_join, string_ops
from runtime.ops.strings.string_split import string_parts
from runtime.ragged.tensor import RaggedTensor


def _rows(input: Any, how: str, **attrs: Any) -> Any:
    """A vector for one string; a ragged tensor with one dimension more for several."""
    if isinstance(input, RaggedTensor):
        return input.with_values(_rows(input.values, how, **attrs))
    x = convert_to_tensor(input)
    rank = x.shape.rank
    if rank is None:  # TensorFlow takes it for a vector, and says when it isn't one
        x, rank = ensure_shape(x, [None]), 1
    values, lengths = string_parts(x, how, **attrs)
    if rank == 0:
        return values
    rows = RaggedTensor.from_row_lengths(values, lengths, validate=False)
    if rank == 1:
        return rows
    # The outer dimensions: rows of one length each.
    outer: Any = rows
    for axis in range(rank - 1, 0, -1):
        length = x.shape[axis]
        if length is not None:
            outer = RaggedTensor.from_uniform_row_length(outer, length)
        else:
            sizes = shape(x)
            outer = RaggedTensor.from_row_lengths(outer, fill([reduce_prod(sizes[:axis])], sizes[axis]), validate=False)
    return outer


def split(input: Any, sep: Any = None, maxsplit: int = -1, name: str | None = None) -> Any:
    """The parts of strings between separators (white space by default): a vector for one string, ragged for several."""
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
        return string_ops.unicode_encode(input, output_encoding, errors, replacement_char)
    if isinstance(input.values, RaggedTensor):
        return input.with_values(unicode_encode(input.values, output_encoding, errors, replacement_char))
    return stack([string_ops.unicode_encode(row, output_encoding, errors, replacement_char) for row in input])


def reduce_join(
    inputs: Any, axis: Any = None, keepdims: bool = False, separator: str = "", name: str | None = None
) -> Any:
    """Strings joined over axes (all by default); the last dimension of a ragged tensor is joined row by row."""
    if not isinstance(inputs, RaggedTensor):
        return string_ops.reduce_join(inputs, axis, keepdims, separator)
    rank = inputs.shape.rank or 0
    if axis is None:
        return string_ops.reduce_join(inputs.flat_values, None, keepdims, separator)
    if axis % rank != rank - 1:
        raise ValueError(f"reduce_join of ragged strings goes over their last dimension, got axis {axis}")
    if isinstance(inputs.values, RaggedTensor):
        return inputs.with_values(reduce_join(inputs.values, -1, keepdims, separator))
    return stack([string_ops.reduce_join(row, 0, keepdims, separator) for row in inputs])


def unicode_split_with_offsets(
    input: Any, input_encoding: str, errors: str = "replace", replacement_char: int = 65533, name: str | None = None
) -> tuple[Any, Any]:
    """`unicode_split`, and at which byte of its string each character begins (int64)."""
    parts = unicode_split(input, input_encoding, errors, replacement_char)
    return parts, _rows(input, "offsets", encoding=input_encoding, errors=errors)


def unicode_decode_with_offsets(
    input: Any, input_encoding: str, errors: str = "replace", replacement_char: int = 65533, name: str | None = None
) -> tuple[Any, Any]:
    """`unicode_decode`, and at which byte of its string each code point begins (int64)."""
    codes = unicode_decode(input, input_encoding, errors, replacement_char)
    return codes, _rows(input, "offsets", encoding=input_encoding, errors=errors)


def ngrams(
    data: Any, ngram_width: Any, separator: str = " ", pad_values: Any = None, padding_width: int | None = None,
    preserve_short_sequences: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """The n-grams of the strings along the last dimension: a vector for a vector, else a ragged tensor.

    ngram_width: an int or several, whose n-grams follow one another. pad_values: one string or two, which pad each row
    before and after, `padding_width` times (by default, and at most, the width minus one). preserve_short_sequences:
    a row that is too short becomes one n-gram. Raises ValueError for widths below 1, for a negative
    padding_width or one without pad_values, and for a scalar; TypeError for pad_values of another kind.
    """
    widths = tuple(int(w) for w in (ngram_width if isinstance(ngram_width, (list, tuple)) else [ngram_width]))
    if not widths or min(widths) < 1:
        raise ValueError(f"All ngram_widths must be greater than 0. Received: {ngram_width}")
    if padding_width is not None and (padding_width < 0 or pad_values is None):
        raise ValueError(f"padding_width must not be negative and needs pad_values, got {padding_width}")
    pads = (pad_values, pad_values) if isinstance(pad_values, (str, bytes)) else pad_values
    is_pair = isinstance(pads, (list, tuple)) and len(pads) == 2
    if pads is not None and not (is_pair and all(isinstance(p, (str, bytes)) for p in pads)):
        raise TypeError(f"pad_values must be a string, tuple of strings, or None. Received: {pad_values!r}")
    attrs = {
        "widths": widths, "separator": _bytes(separator), "padding": padding_width,
        "pads": pads and (_bytes(pads[0]), _bytes(pads[1])), "keep_short": bool(preserve_short_sequences),
    }  # fmt: skip
    rows = data if isinstance(data, RaggedTensor) else convert_to_tensor(data)
    if rows.shape.rank is None or rows.shape.rank == 0:
        raise ValueError(f"ngrams needs strings of a known rank of 1 or more, got shape {rows.shape}")
    if isinstance(rows, RaggedTensor) and isinstance(rows.values, RaggedTensor):
        inner = ngrams(rows.values, ngram_width, separator, pad_values, padding_width, preserve_short_sequences)
        return rows.with_values(inner)
    if not isinstance(rows, RaggedTensor) and rows.shape.rank == 1:
        return apply(string_join.NGRAMS, (rows, stack([0, size(rows)])), attrs)[0]
    if not isinstance(rows, RaggedTensor):
        rows = RaggedTensor.from_tensor(rows, ragged_rank=rows.shape.rank - 1)
        return ngrams(rows, ngram_width, separator, pad_values, padding_width, preserve_short_sequences)
    values, splits = apply(string_join.NGRAMS, (rows.values, rows.row_splits), attrs)
    return RaggedTensor.from_row_splits(values, splits, validate=False)


def _bytes(text: Any) -> bytes:
    return text.encode() if isinstance(text, str) else bytes(text)


def unicode_script(input: Any, name: str | None = None) -> Any:
    if isinstance(input, RaggedTensor):
        return input.with_flat_values(string_ops.unicode_script(input.flat_values))
    return string_ops.unicode_script(input)


unicode_script.__doc__ = string_ops.unicode_script.__doc__
