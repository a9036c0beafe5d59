"""`ag.strings`: strings are bytes; kernels are Python's own, element by element, and re for patterns.

What takes strings apart is in `string_split.py`.
"""

from __future__ import annotations

import base64
import functools
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.dtypes import DTypeLike
from runtime.ops.arrays.shape_ops import known_rank
from runtime.ops.convert import convert_to_tensor, operands
from runtime.ops.deferred_calls import deferrable
from runtime.ops.dispatch import apply, call
from runtime.ops.rules import broadcast_types
from runtime.ops.strings import hashes
from runtime.ops.table import OpDef, Sample, register
from runtime.tensor import Tensor, TensorLike
from runtime.types import TensorType

_WORDS = np.array([b"Hello World", b" caf\xc3\xa9 ", b""], object)


def _objects(x: Any, function: Callable[[bytes], bytes]) -> Any:
    result = np.empty(np.shape(x), np.dtype(object))
    for index, item in np.ndenumerate(np.asarray(x)):
        result[index] = function(item)
    return result


def _numbers(x: Any, function: Callable[[bytes], Any], dtype: Any) -> Any:
    result = np.empty(np.shape(x), dtype)
    for index, item in np.ndenumerate(np.asarray(x)):
        result[index] = function(item)
    return result[()] if not result.ndim else result


def _to_string(inputs: Sequence[Any], attrs: dict) -> tuple:
    if inputs[0].dtype is not dtypes.string:
        raise TypeError(f"expected strings, got {inputs[0].dtype.label}")
    return (TensorType(dtypes.string, inputs[0].shape),)


def _row(name: str, kernel: Callable[..., Any], doc: str, attrs: dict, infer: Any = _to_string) -> OpDef:
    return register(
        OpDef(
            name, infer, kernel, kinds="O", doc=doc, grad=lambda op, *dy: [None] * len(op.inputs),
            samples=(Sample(((3,),), attrs, fixed={0: _WORDS}, gradient=()),),
        )
    )  # fmt: skip


def _to(dtype: Any) -> Callable[..., tuple]:
    def infer(inputs: Sequence[Any], attrs: dict) -> tuple:
        _to_string(inputs, attrs)
        return (TensorType(attrs.get("dtype", dtype), inputs[0].shape),)

    return infer


def _cased(function: str) -> Callable[..., Any]:
    def kernel(x: Any, encoding: str) -> Any:
        if encoding == "utf-8":
            return _objects(x, lambda s: getattr(s.decode("utf-8", "replace"), function)().encode())
        return _objects(x, lambda s: getattr(s, function)())

    return kernel


def _length_kernel(x: Any, unit: str) -> Any:
    measure = len if unit == "BYTE" else lambda s: len(s.decode("utf-8", "replace"))
    return _numbers(x, measure, np.int32)


@functools.lru_cache(maxsize=256)
def _pattern(pattern: bytes) -> re.Pattern[bytes]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise errors.InvalidArgumentError(f"Invalid pattern: {pattern!r}, error: {error}") from None


def _replace_kernel(x: Any, pattern: bytes, rewrite: bytes, everywhere: bool) -> Any:
    # RE2 writes \0 for the whole match, which Python writes \g<0>.
    target = re.sub(rb"\\0", rb"\\g<0>", rewrite)
    return _objects(x, lambda s: _pattern(pattern).sub(target, s, count=0 if everywhere else 1))


def _match_kernel(x: Any, pattern: bytes) -> Any:
    return _numbers(x, lambda s: _pattern(pattern).fullmatch(s) is not None, np.bool_)


def _substr_kernel(x: Any, pos: Any, length: Any, unit: str) -> Any:
    def cut(item: Any, pos: int, length: int) -> bytes:
        text: Any = item if unit == "BYTE" else item.decode("utf-8", "replace")
        size = len(text)
        if not -size <= pos <= size:
            raise errors.InvalidArgumentError(f"pos {pos} out of range for string b'{item.decode(errors='replace')}'")
        start = pos + size if pos < 0 else pos
        part = text[start : start + max(0, length)]
        return part if unit == "BYTE" else part.encode()

    if np.shape(pos) != np.shape(length):
        raise errors.InvalidArgumentError(
            f"pos and len should have the same shape, got: {list(np.shape(pos))} vs. {list(np.shape(length))}"
        )
    items, starts, lengths = np.broadcast_arrays(np.asarray(x, object), pos, length)
    result = np.empty(items.shape, object)
    for index in np.ndindex(*items.shape):
        result[index] = cut(items[index], int(starts[index]), int(lengths[index]))
    return result


def _infer_substr(inputs: Sequence[Any], attrs: dict) -> tuple:
    _to_string(inputs, attrs)
    if any(i.dtype not in (dtypes.int32, dtypes.int64) for i in inputs[1:]):
        raise TypeError(f"pos and len must be int32 or int64, got {inputs[1].dtype.name} and {inputs[2].dtype.name}")
    if None not in (inputs[1].shape, inputs[2].shape) and inputs[1].rank != inputs[2].rank:
        raise ValueError(f"pos and len should have the same shape, got: {inputs[1].shape} vs. {inputs[2].shape}")
    return (TensorType(dtypes.string, broadcast_types(inputs[0], inputs[1])),)


def _number_kernel(x: Any, dtype: Any) -> Any:
    def parse(item: bytes) -> Any:
        try:
            return float(item) if dtype.kind == "f" else int(item)
        except ValueError:
            raise errors.InvalidArgumentError(
                f"StringToNumberOp could not correctly convert string: {item.decode(errors='replace')}"
            ) from None

    return _numbers(x, parse, dtype._np)


_HASHES: dict[str, Callable[..., int]] = {
    "farm": hashes.fingerprint64,
    "murmur": hashes.murmur64,
    "sip": hashes.siphash,
}


def _hash_kernel(x: Any, buckets: int, method: str, key: tuple[int, ...]) -> Any:
    number = _HASHES[method]
    return _numbers(x, lambda item: (number(item, key) if key else number(item)) % buckets, np.int64)


LENGTH = _row("string_length", _length_kernel, "The length of strings.", {"unit": "BYTE"}, _to(dtypes.int32))
LOWER = _row("string_lower", _cased("lower"), "Strings in lower case.", {"encoding": ""})
UPPER = _row("string_upper", _cased("upper"), "Strings in upper case.", {"encoding": "utf-8"})
STRIP = _row("string_strip", lambda x: _objects(x, bytes.strip), "Strings without white space at both ends.", {})
REPLACE = _row(
    "regex_replace",
    _replace_kernel,
    "Strings with matches of a pattern replaced.",
    {"pattern": b"o", "rewrite": b"<\\0>", "everywhere": True},
)
MATCH = _row("regex_full_match", _match_kernel, "Whether a pattern matches.", {"pattern": b"H.*"}, _to(dtypes.bool_))
SUBSTR = register(
    OpDef(
        "substr", _infer_substr, _substr_kernel, kinds="O", doc="A substring of each string.",
        grad=lambda op, dy: (None, None, None),
        samples=(
            Sample(
                ((3,), (), ()), {"unit": "UTF8_CHAR"}, fixed={0: _WORDS, 1: np.int32(0), 2: np.int32(3)}, gradient=(),
            ),
        ),
    )
)  # fmt: skip
HASH = _row(
    "string_hash", _hash_kernel, "The bucket of each string's hash.", {"buckets": 10, "method": "farm", "key": ()},
    _to(dtypes.int64),
)  # fmt: skip
TO_NUMBER = register(
    OpDef(
        "string_to_number", _to(dtypes.float32), _number_kernel, kinds="O", doc="Parses strings into numbers.",
        grad=lambda op, dy: (None,),
        samples=(
            Sample(((2,),), {"dtype": dtypes.float32}, fixed={0: np.array([b"1.5", b"-2e3"], object)}, gradient=()),
            Sample(((2,),), {"dtype": dtypes.int64}, fixed={0: np.array([b"15", b"-2"], object)}, gradient=()),
        ),
    )
)  # fmt: skip


def _base64_kernel(x: Any, padded: bool) -> Any:
    def encode(item: bytes) -> bytes:
        text = base64.urlsafe_b64encode(item)
        return text if padded else text.rstrip(b"=")

    return _objects(x, encode)


def _decode_base64(item: bytes) -> bytes:
    text = item[: -(item.endswith(b"==") + item.endswith(b"=")) or None]
    if not re.fullmatch(rb"[A-Za-z0-9_-]*", text):
        raise errors.InvalidArgumentError("Invalid character found in base64: only letters, digits, - and _ are in it.")
    if len(text) % 4 == 1:
        raise errors.InvalidArgumentError("Base64 string length cannot be 1 modulo 4.")
    return base64.urlsafe_b64decode(text + b"=" * (-len(text) % 4))


ENCODE_BASE64 = _row("encode_base64", _base64_kernel, "Strings in base64, for the web.", {"padded": False})
DECODE_BASE64 = register(
    OpDef(
        "decode_base64", _to_string, lambda x: _objects(x, _decode_base64), kinds="O",
        doc="Strings from base64, for the web.", grad=lambda op, dy: (None,),
        samples=(Sample(((3,),), fixed={0: np.array([b"SGk", b"SGk=", b"SGkh"], object)}, gradient=()),),
    )
)  # fmt: skip


def encode_base64(input: TensorLike, pad: bool = False, name: str | None = None) -> Tensor:
    """Strings in base64 with - and _ in place of + and /, so that they can stand in addresses of the web. pad: whether
    to add = up to a multiple of 4 characters."""
    return apply(ENCODE_BASE64, (convert_to_tensor(input, dtypes.string),), {"padded": bool(pad)})


def decode_base64(input: TensorLike, name: str | None = None) -> Tensor:
    """The strings that `encode_base64` encoded, with or without padding. Raises InvalidArgumentError for other
    characters and lengths."""
    return apply(DECODE_BASE64, (convert_to_tensor(input, dtypes.string),))


def _as_string_kernel(x: Any, precision: int, scientific: bool, shortest: bool, width: int, fill: str) -> Any:
    """As C's printf does it; `fill` is one of its flags. A complex number is a pair of numbers."""
    kind = np.asarray(x).dtype.kind
    size = "" if width < 0 else f"{width}"
    letter = f".{6 if precision < 0 else precision}{'e' if scientific else 'g' if shortest else 'f'}"

    def number(value: Any) -> str:
        flag = "" if fill == "0" and not math.isfinite(value) else fill
        return f"%{flag}{size}{letter}" % float(value)

    def show(value: Any) -> str:
        if kind == "b":
            return "true" if value else "false"
        if kind in "iu":
            return f"%{fill if kind == 'i' or fill in '0-' else ''}{size}d" % int(value)
        return f"({number(value.real)},{number(value.imag)})" if kind == "c" else number(value)

    result = np.empty(np.shape(x), np.dtype(object))
    for index, item in np.ndenumerate(np.asarray(x)):
        result[index] = show(item).encode()
    return result


AS_STRING = register(
    OpDef(
        "as_string", lambda inputs, attrs: (TensorType(dtypes.string, inputs[0].shape),), _as_string_kernel,
        kinds="biuf", doc="Formats numbers as strings.", grad=lambda op, dy: (None,),
        samples=(
            Sample(((3,),), {"precision": 2, "scientific": False, "shortest": False, "width": -1, "fill": ""},
                   fixed={0: np.array([1.5, -2.25, 0.0])}, gradient=()),
        ),
    )
)  # fmt: skip


# --- public functions ----------------------------------------------------------------------------------------------


def _bytes(text: Any) -> bytes:
    return text.encode() if isinstance(text, str) else bytes(text)


def _unit(unit: str) -> str:
    if unit not in ("BYTE", "UTF8_CHAR"):
        raise ValueError(f"unit must be 'BYTE' or 'UTF8_CHAR', got {unit!r}")
    return unit


def length(input: TensorLike, unit: str = "BYTE", name: str | None = None) -> Tensor:
    """The length of each string, in bytes or in characters ("UTF8_CHAR")."""
    return apply(LENGTH, (convert_to_tensor(input),), {"unit": _unit(unit)})


def lower(input: TensorLike, encoding: str = "", name: str | None = None) -> Tensor:
    """Lower case: of ASCII letters, or of all with encoding "utf-8"."""
    return apply(LOWER, (convert_to_tensor(input),), {"encoding": encoding})


def upper(input: TensorLike, encoding: str = "", name: str | None = None) -> Tensor:
    """Upper case: of ASCII letters, or of all with encoding "utf-8"."""
    return apply(UPPER, (convert_to_tensor(input),), {"encoding": encoding})


def strip(input: TensorLike, name: str | None = None) -> Tensor:
    """Without white space at both ends."""
    return apply(STRIP, (convert_to_tensor(input),))


def regex_replace(
    input: TensorLike, pattern: Any, rewrite: Any, replace_global: bool = True, name: str | None = None
) -> Tensor:
    """Replaces matches of a pattern (Python's syntax); `\\1` stands for a group, `\\0` for the whole match."""
    attrs = {"pattern": _bytes(pattern), "rewrite": _bytes(rewrite), "everywhere": bool(replace_global)}
    return apply(REPLACE, (convert_to_tensor(input),), attrs)


def regex_full_match(input: TensorLike, pattern: Any, name: str | None = None) -> Tensor:
    """Whether the whole string matches a pattern (Python's syntax)."""
    return apply(MATCH, (convert_to_tensor(input),), {"pattern": _bytes(pattern)})


def substr(input: TensorLike, pos: Any, len: Any, unit: str = "BYTE", name: str | None = None) -> Tensor:
    """`len` bytes (characters) from `pos` on; negative positions count from the end.

    pos, len: integers, or integer tensors of one shape, which broadcasts with the strings'.
    Raises InvalidArgumentError for a position beyond a string, and where the shapes differ.
    """
    start, length = operands("Substr", pos, len)
    return apply(SUBSTR, (convert_to_tensor(input), start, length), {"unit": _unit(unit)})


def to_number(input: TensorLike, out_type: DTypeLike = dtypes.float32, name: str | None = None) -> Tensor:
    """Parses strings as numbers. Raises InvalidArgumentError for other strings."""
    return apply(TO_NUMBER, (convert_to_tensor(input),), {"dtype": dtypes.as_dtype(out_type)})


def as_string(
    input: TensorLike,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
    name: str | None = None,
) -> Tensor:
    """Numbers and bools as strings, with `precision` digits after the point (6 by default).

    fill: "" (spaces), "0", "-" (to the left), "+" (with a sign) or " ": how to pad a number to `width`. Raises
    ValueError for another `fill`.
    """
    x = convert_to_tensor(input)
    if fill not in ("", "0", "-", "+", " "):
        raise ValueError(f"Fill argument not supported: {fill!r}")
    attrs = {"precision": precision, "scientific": scientific, "shortest": shortest, "width": width, "fill": fill}
    return x if x.dtype is dtypes.string else apply(AS_STRING, (x,), attrs)


def _bucket(input: Any, num_buckets: int, method: str, key: tuple[int, ...] = ()) -> Tensor:
    if num_buckets < 1:
        raise errors.InvalidArgumentError(f"num_buckets must be at least 1, got {num_buckets}")
    attrs = {"buckets": int(num_buckets), "method": method, "key": key}
    return apply(HASH, (convert_to_tensor(input),), attrs)


def to_hash_bucket(input: TensorLike, num_buckets: int, name: str | None = None) -> Tensor:
    """A number below `num_buckets` for each string (MurmurHash64A), the same as TensorFlow's.

    Raises InvalidArgumentError for no buckets.
    """
    return _bucket(input, num_buckets, "murmur")


def to_hash_bucket_fast(input: TensorLike, num_buckets: int, name: str | None = None) -> Tensor:
    """A number below `num_buckets` for each string (FarmHash's Fingerprint64), the same as TensorFlow's.

    Raises InvalidArgumentError for no buckets.
    """
    return _bucket(input, num_buckets, "farm")


def to_hash_bucket_strong(input: TensorLike, num_buckets: int, key: Sequence[int], name: str | None = None) -> Tensor:
    """A number below `num_buckets` for each string (SipHash-2-4), the same as TensorFlow's: unpredictable without the
    key.

    key: two integers. Raises InvalidArgumentError for another number of them, and for no buckets.
    """
    if len(key) != 2:
        raise errors.InvalidArgumentError(f"Key must have 2 elements, got {len(key)}")
    return _bucket(input, num_buckets, "sip", (int(key[0]), int(key[1])))


def string_vector(items: Sequence[bytes]) -> Any:
    """An array of strings, of rank 1."""
    result = np.empty(len(items), np.dtype(object))
    result[:] = list(items)
    return result


def _encode_kernel(x: Any, encoding: str, errors: str) -> Any:
    codes = np.asarray(x)
    lines = codes.reshape(math.prod(codes.shape[:-1]), codes.shape[-1])
    items = ["".join(map(chr, line)).encode(encoding, errors) for line in lines]
    return string_vector(items).reshape(codes.shape[:-1])


ENCODE = register(
    OpDef(
        "unicode_encode", lambda inputs, attrs: (
            TensorType(dtypes.string, None if inputs[0].shape is None else inputs[0].shape[:-1]),
        ),
        _encode_kernel, kinds="i", doc="Encodes code points as strings.", grad=lambda op, dy: (None,),
        samples=(
            Sample(((2, 2),), {"encoding": "utf-8", "errors": "replace"},
                   fixed={0: np.array([[72, 233], [105, 33]], np.int32)}, gradient=()),
        ),
    )
)  # fmt: skip


@deferrable
def unicode_encode(
    input: Any, output_encoding: str, errors: str = "replace", replacement_char: int = 65533, name: str | None = None
) -> Any:
    """Strings from code points along the last dimension, or from a list of vectors of them."""
    attrs = {"encoding": output_encoding, "errors": errors}
    if isinstance(input, (list, tuple)) and any(isinstance(i, (list, tuple, Tensor)) for i in input):
        lines = [apply(ENCODE, (convert_to_tensor(i),), attrs) for i in input]
        return call("stack", *lines, axis=0)
    return apply(ENCODE, (convert_to_tensor(input),), attrs)


@functools.cache
def _scripts() -> tuple[np.ndarray, np.ndarray]:
    """The first code points of the ranges of one script, ascending, and the scripts' numbers."""
    lines = Path(__file__).with_name("unicode_scripts.txt").read_text(encoding="ascii").splitlines()
    ranges = [item.split(":") for line in lines if not line.startswith("#") for item in line.split()]
    return np.array([int(first, 16) for first, _ in ranges]), np.array([int(code) for _, code in ranges], np.int32)


def _script_kernel(x: Any) -> Any:
    firsts, codes = _scripts()
    found = codes[np.searchsorted(firsts, np.maximum(x, 0), side="right") - 1]
    return np.where((x >= 0) & (x <= 0x10FFFF), found, -1).astype(np.int32)[()]


SCRIPT = register(
    OpDef(
        "unicode_script", lambda inputs, attrs: (TensorType(dtypes.int32, inputs[0].shape),), _script_kernel,
        kinds="i", doc="The Unicode script of each code point.", grad=lambda op, dy: (None,),
        samples=(Sample(((3,),), fixed={0: np.array([65, 1072, -1], np.int32)}, gradient=()),),
    )
)  # fmt: skip


def unicode_script(input: Any, name: str | None = None) -> Tensor:
    """The script that each code point (int32) belongs to, by ICU's numbers: Latin is 25, Greek 14, Cyrillic 8; 103
    stands for characters without a script, -1 for numbers that aren't code points. By the Unicode Standard, version
    13."""
    return apply(SCRIPT, (convert_to_tensor(input, dtypes.int32),))


def _join_kernel(x: Any, axis: tuple[int, ...], keepdims: bool, separator: bytes) -> Any:
    array = np.asarray(x)
    rest = [i for i in range(array.ndim) if i not in axis]
    moved = array.transpose(*rest, *axis)
    lines = moved.reshape(int(np.prod([array.shape[i] for i in rest])), -1)
    shape = [1 if i in axis else d for i, d in enumerate(array.shape) if keepdims or i not in axis]
    return string_vector([separator.join(line) for line in lines]).reshape(shape)


def _infer_join(inputs: Sequence[Any], attrs: dict) -> tuple:
    shape, axis = inputs[0].shape, attrs["axis"]
    if shape is None:
        return (TensorType(dtypes.string, None),)
    kept = tuple(1 if i in axis else d for i, d in enumerate(shape) if attrs["keepdims"] or i not in axis)
    return (TensorType(dtypes.string, kept),)


REDUCE_JOIN = _row(
    "reduce_join", _join_kernel, "Joins strings along axes.", {"axis": (0,), "keepdims": False, "separator": b"-"},
    _infer_join,
)  # fmt: skip


@deferrable
def reduce_join(
    inputs: Any, axis: Any = None, keepdims: bool = False, separator: str = "", name: str | None = None
) -> Tensor:
    """Strings joined over axes (all by default)."""
    x = convert_to_tensor(inputs)
    rank = known_rank(x, "reduce_join")
    axes = range(rank) if axis is None else [axis] if isinstance(axis, int) else axis
    attrs = {"axis": tuple(a % rank for a in axes), "keepdims": bool(keepdims), "separator": _bytes(separator)}
    return apply(REDUCE_JOIN, (x,), attrs)
