"""Strings put together: values written into a template, joined by segments, as n-grams, in another encoding."""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.ops.convert import convert_to_indices, convert_to_tensor, scalar_int
from runtime.ops.deferred_calls import deferrable
from runtime.ops.dispatch import apply
from runtime.ops.strings.string_ops import string_vector
from runtime.ops.strings.tensor_format import format_tensor
from runtime.ops.table import OpDef, register
from runtime.tensor import Tensor, TensorLike
from runtime.types import TensorType


def _need_strings(type_: Any) -> None:
    if type_.dtype is not dtypes.string:
        raise TypeError(f"expected strings, got {type_.dtype.label}")


# --- format ----------------------------------------------------------------------------------------------------------


def _format_kernel(*tensors: Any, pieces: tuple[str, ...], summarize: int) -> Any:
    text = pieces[0]
    for tensor, piece in zip(tensors, pieces[1:], strict=True):
        text += format_tensor(tensor, summarize) + piece
    result = np.empty((), object)
    result[()] = text.encode()
    return result


FORMAT = register(
    OpDef(
        "string_format", lambda inputs, attrs: (TensorType(dtypes.string, ()),), _format_kernel,
        doc="A template with values filled in.", grad=None,
    )
)  # fmt: skip


def format(
    template: str, inputs: Any = (), placeholder: str = "{}", summarize: int = 3, name: str | None = None
) -> Tensor:
    """Replaces each `placeholder` in `template` with a tensor's text; a scalar string.

    inputs: a tensor or several. summarize: how many elements to show at each end of a dimension; -1 for all.
    Raises ValueError if there are more or fewer tensors than placeholders.
    """
    if not isinstance(template, str):
        raise TypeError(f"template must be a str, got {template!r}")
    tensors = [convert_to_tensor(i) for i in (inputs if isinstance(inputs, (list, tuple)) else [inputs])]
    pieces = tuple(template.split(placeholder))
    if len(pieces) - 1 != len(tensors):
        raise ValueError(
            f"The template expects {len(pieces) - 1} tensors, but the inputs only has {len(tensors)}. Please ensure "
            "that the number of placeholders in template matches inputs length."
        )
    return apply(FORMAT, tensors, {"pieces": pieces, "summarize": int(summarize)})


# --- segments and n-grams --------------------------------------------------------------------------------------------


def _segments_kernel(x: Any, ids: Any, *count: Any, num: int | None, separator: bytes) -> Any:
    size = int(count[0]) if num is None else num
    x, ids = np.asarray(x, object), np.asarray(ids)
    if x.shape[: ids.ndim] != ids.shape:
        raise errors.InvalidArgumentError(
            f"the shape {ids.shape} of segment_ids is not a prefix of the shape {x.shape} of data"
        )
    if ids.size and ids.max() >= size:
        raise errors.InvalidArgumentError(f"segment id {ids.max()} >= num_segments = {size}")
    rows = x.reshape(ids.size, -1)
    parts: list[list[list[bytes]]] = [[[] for _ in range(rows.shape[1])] for _ in range(size)]
    for segment, row in zip(ids.reshape(-1), rows):
        if segment >= 0:
            for place, item in zip(parts[segment], row):
                place.append(item)
    joined = [separator.join(items) for places in parts for items in places]
    return string_vector(joined).reshape(size, *x.shape[ids.ndim :])


def _infer_segments(inputs: Sequence[Any], attrs: dict) -> tuple:
    x, ids = inputs[:2]
    _need_strings(x)
    shape = None if x.shape is None or ids.shape is None else (attrs["num"], *x.shape[len(ids.shape) :])
    return (TensorType(dtypes.string, shape),)


SEGMENT_JOIN = register(
    OpDef("unsorted_segment_join", _infer_segments, _segments_kernel, doc="The strings of each segment, joined.")
)


@deferrable
def unsorted_segment_join(
    inputs: Any, segment_ids: TensorLike, num_segments: Any, separator: str = "", name: str | None = None
) -> Tensor:
    """The strings of each segment, joined in order; "" for an empty one.

    segment_ids: an integer per row of inputs (its shape is how inputs' shape starts); negative ones drop the row.
    Raises InvalidArgumentError for an id of num_segments or more.
    """
    count = scalar_int(num_segments, "num_segments")
    x, ids = convert_to_tensor(inputs), convert_to_indices(segment_ids)
    attrs = {"num": count if isinstance(count, int) else None, "separator": separator.encode()}
    return apply(SEGMENT_JOIN, (x, ids) if isinstance(count, int) else (x, ids, count), attrs)


def _ngrams_of(
    row: list[bytes], widths: tuple[int, ...], separator: bytes, pads: tuple[bytes, bytes] | None, padding: int | None,
    keep_short: bool,
) -> list[bytes]:  # fmt: skip
    found = []
    for width in widths:
        count = 0 if pads is None else min(width - 1, width - 1 if padding is None else padding)
        padded = row if pads is None else [pads[0]] * count + row + [pads[1]] * count
        found += [separator.join(padded[i : i + width]) for i in range(len(padded) - width + 1)]
        if not found and keep_short and row and width == min(widths):
            found.append(separator.join(padded))
    return found


def _ngrams_kernel(values: Any, splits: Any, **options: Any) -> tuple:
    rows = [list(values[a:b]) for a, b in itertools.pairwise(splits)]
    found = [_ngrams_of(row, **options) for row in rows]
    lengths = [len(grams) for grams in found]
    return string_vector([gram for grams in found for gram in grams]), np.cumsum(
        [0, *lengths], dtype=np.asarray(splits).dtype
    )


NGRAMS = register(
    OpDef(
        "string_ngrams",
        lambda inputs, attrs: (TensorType(dtypes.string, (None,)), inputs[1]),
        _ngrams_kernel, multiple=True,
        doc="The n-grams of rows of strings, and where each row begins and ends among them.",
        attrs=("widths", "separator", "pads", "padding", "keep_short",),
    )
)  # fmt: skip


# --- encodings -------------------------------------------------------------------------------------------------------

_ENCODINGS = {"UTF-8": "utf-8", "UTF-16-BE": "utf-16-be", "UTF-32-BE": "utf-32-be"}


def _transcode_kernel(x: Any, source: str, target: str, errors_: str, replacement: str, controls: bool) -> Any:
    def convert(item: bytes) -> bytes:
        try:
            text = item.decode(source, errors_)
        except UnicodeDecodeError:
            raise errors.InvalidArgumentError(f"Invalid formatting on input string {item!r}") from None
        if errors_ == "replace" and replacement != "\ufffd":
            text = text.replace("\ufffd", replacement)
        if controls:
            text = "".join(replacement if unicodedata.category(c) == "Cc" and ord(c) < 32 else c for c in text)
        return text.encode(target)

    array = np.asarray(x, object)
    return string_vector([convert(item) for item in array.reshape(-1)]).reshape(array.shape)


def _infer_same(inputs: Sequence[Any], attrs: dict) -> tuple:
    _need_strings(inputs[0])
    return (inputs[0],)


TRANSCODE = register(
    OpDef("unicode_transcode", _infer_same, _transcode_kernel, kinds="O", doc="Strings converted to another encoding.")
)


def unicode_transcode(
    input: TensorLike,
    input_encoding: str,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Tensor:
    """Strings in another encoding: "UTF-8", "UTF-16-BE" or "UTF-32-BE"; the input may be in any that Python knows.

    errors: "replace" by `replacement_char`, "ignore" or "strict", which raises InvalidArgumentError for bytes that
    aren't in the encoding. Raises ValueError for other options.
    """
    if output_encoding not in _ENCODINGS:
        raise ValueError(f"output_encoding must be one of {', '.join(_ENCODINGS)}, got {output_encoding!r}")
    if errors not in ("replace", "ignore", "strict"):
        raise ValueError(f"errors must be 'replace', 'ignore' or 'strict', got {errors!r}")
    try:
        b"".decode(input_encoding)
    except LookupError:
        raise ValueError(f"unknown input_encoding {input_encoding!r}") from None
    attrs = {
        "source": input_encoding, "target": _ENCODINGS[output_encoding], "errors_": errors,
        "replacement": chr(replacement_char), "controls": bool(replace_control_characters),
    }  # fmt: skip
    return apply(TRANSCODE, (convert_to_tensor(input),), attrs)
