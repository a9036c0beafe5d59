"""Strings taken apart: every string of a tensor gives a row of parts, all rows one after the other, and their lengths.

string_parts(["a b", "c"]; how="split", ...)   →   ["a", "b", "c"], [2, 1]
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.dtypes import DTypeLike
from runtime.ops.convert import convert_to_tensor
from runtime.ops.dispatch import apply
from runtime.ops.table import OpDef, Sample, register
from runtime.tensor import Tensor
from runtime.types import TensorType


def _parts(item: bytes, how: str, sep: bytes, maxsplit: int, encoding: str, on_error: str) -> list[Any]:
    if how == "split":
        return list(item.split(sep or None, maxsplit))
    if how == "bytes":
        return [bytes([b]) for b in item]
    if how == "offsets":
        return _offsets(item, encoding, on_error)
    text = item.decode(encoding, on_error)
    return [ord(c) for c in text] if how == "codes" else [c.encode(encoding) for c in text]


def _offsets(item: bytes, encoding: str, on_error: str) -> list[int]:
    """The byte at which each character begins: fed byte by byte, the decoder says when it is complete."""
    decoder = codecs.getincrementaldecoder(encoding)(on_error)
    starts: list[int] = []
    begin = 0
    for position in range(len(item)):
        text = decoder.decode(item[position : position + 1], final=position + 1 == len(item))
        # A byte that ends a broken character may be one of its own.
        starts += [begin, *[position] * (len(text) - 1)][: len(text)]
        begin = position + 1 if text else begin
    return starts


def _kernel(x: Any, how: str, sep: bytes, maxsplit: int, encoding: str, errors: str) -> tuple:
    rows = [_parts(item, how, sep, maxsplit, encoding, errors) for item in np.asarray(x).reshape(-1)]
    flat = [part for row in rows for part in row]
    if how in ("codes", "offsets"):
        values = np.array(flat, np.int32 if how == "codes" else np.int64)
    else:
        values = np.empty(len(flat), np.dtype(object))
        values[:] = flat
    return values, np.array([len(row) for row in rows], np.int64)


def _infer(inputs: Sequence[Any], attrs: dict) -> tuple:
    if inputs[0].dtype is not dtypes.string:
        raise TypeError(f"expected strings, got {inputs[0].dtype.label}")
    shape = inputs[0].shape
    count = None if shape is None or None in shape else int(np.prod(shape, dtype=np.int64))
    values = {"codes": dtypes.int32, "offsets": dtypes.int64}.get(attrs["how"], dtypes.string)
    return TensorType(values, (None,)), TensorType(dtypes.int64, (count,))


_WORDS = np.array([b"a b", b"", b"caf\xc3\xa9"], object)
_ATTRS = {"sep": b"", "maxsplit": -1, "encoding": "utf-8", "errors": "replace"}
PARTS = register(
    OpDef(
        "string_parts", _infer, _kernel, kinds="O", multiple=True,
        doc="Splits strings into parts, and counts the parts of each.",
        grad=lambda op, *dy: [None] * len(op.inputs),
        samples=tuple(
            Sample(((3,),), {"how": how, **_ATTRS}, fixed={0: _WORDS}, gradient=())
            for how in ("split", "bytes", "codes", "characters")
        ),
    )
)  # fmt: skip


def string_parts(
    input: Any, how: str, sep: bytes = b"", maxsplit: int = -1, encoding: str = "utf-8", errors: str = "replace"
) -> tuple[Tensor, Tensor]:
    """All parts of all strings, and for each string how many it has.

    how: "split" at separators (white space by default), "bytes", "characters", "codes" (code points, int32).
    """
    attrs = {"how": how, "sep": sep, "maxsplit": maxsplit, "encoding": encoding, "errors": errors}
    values, lengths = apply(PARTS, (convert_to_tensor(input),), attrs)
    return values, lengths


def _raw_kernel(x: Any, dtype: Any, little_endian: bool) -> Any:
    array = np.asarray(x)
    items = [bytes(item) for item in array.reshape(-1)]
    sizes = {len(item) for item in items}
    if len(sizes) > 1:
        raise errors.InvalidArgumentError(
            f"DecodeRaw requires input strings to all be the same size, got {sorted(sizes)}"
        )
    size = sizes.pop() if sizes else 0
    if size % dtype.size:
        raise errors.InvalidArgumentError(
            f"Input to DecodeRaw has length {size} that is not a multiple of {dtype.size}, the size of {dtype.name}"
        )
    order = "<" if little_endian else ">"
    raw = np.frombuffer(b"".join(items), np.dtype(dtype._np).newbyteorder(order)).astype(dtype._np)
    return raw.reshape(*array.shape, size // dtype.size)


def _infer_raw(inputs: Sequence[Any], attrs: dict) -> tuple:
    if inputs[0].dtype is not dtypes.string:
        raise TypeError(f"expected strings, got {inputs[0].dtype.label}")
    shape = inputs[0].shape
    return (TensorType(attrs["dtype"], None if shape is None else (*shape, None)),)


DECODE_RAW = register(
    OpDef(
        "decode_raw", _infer_raw, _raw_kernel, kinds="O",
        doc="Decodes bytes into numbers.",
        grad=lambda op, dy: (None,),
        samples=(
            Sample(((2,),), {"dtype": dtypes.uint8, "little_endian": True},
                   fixed={0: np.array([b"ab", b"cd"], object)}, gradient=()),
            Sample(((),), {"dtype": dtypes.int16, "little_endian": False},
                   fixed={0: np.array(b"abcd", object)}, gradient=()),
        ),
    )
)  # fmt: skip


def decode_raw(
    input_bytes: Any, out_type: DTypeLike, little_endian: bool = True, fixed_length: int | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The bytes of strings of one length as numbers, in a dimension more.

    Raises InvalidArgumentError when the strings' lengths differ, or aren't a multiple of the number's size.
    """
    if fixed_length is not None:
        raise ValueError("decode_raw takes strings of one length; cut them with ag.strings.substr instead")
    attrs = {"dtype": dtypes.as_dtype(out_type), "little_endian": bool(little_endian)}
    return apply(DECODE_RAW, (convert_to_tensor(input_bytes),), attrs)
