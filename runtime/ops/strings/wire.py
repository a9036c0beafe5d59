"""The wire format of protocol buffers, as much of it as the messages in files of records need.

message: (tag, value)*      tag: a varint, field number * 8 + kind
value:   a varint | 8 bytes | length, bytes | 4 bytes
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_WORD = (1 << 64) - 1
_FEW = 16


class WireError(ValueError):
    """Bytes that aren't a message."""


def varint(number: int) -> bytes:
    """An integer, of which a negative one counts modulo 2**64, 7 bits a byte, the lowest first."""
    number &= _WORD
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def varints(numbers: Any) -> bytes:
    """Integers one after the other."""
    return b"".join(map(varint, numbers))


def signed(number: int) -> int:
    """A varint's 64 bits as a signed number."""
    return number - (1 << 64) if number >> 63 else number


def field(number: int, content: bytes) -> bytes:
    """A field with bytes, or with a message."""
    return varint(number << 3 | BYTES) + varint(len(content)) + content


def integer_field(number: int, value: int) -> bytes:
    """A field with an integer."""
    return varint(number << 3 | VARINT) + varint(value)


def read_varint(buffer: bytes, place: int) -> tuple[int, int]:
    """Reads a varint; returns it and the position after it. Raises WireError."""
    result = shift = 0
    while True:
        if place >= len(buffer) or shift > 63:
            raise WireError("a number is cut off")
        byte = buffer[place]
        place += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & _WORD, place
        shift += 7


def fields(buffer: bytes) -> Iterator[tuple[int, int, Any]]:
    """The fields of a message: number, kind, and an int (varints) or bytes (all others). Raises WireError."""
    place, end = 0, len(buffer)
    while place < end:
        tag, place = read_varint(buffer, place)
        kind = tag & 7
        if kind == VARINT:
            value, place = read_varint(buffer, place)
            yield tag >> 3, kind, value
            continue
        if kind == BYTES:
            size, place = read_varint(buffer, place)
        elif kind in (FIXED64, FIXED32):
            size = 8 if kind == FIXED64 else 4
        else:
            raise WireError(f"field {tag >> 3} has the kind {kind}")
        if place + size > end or not tag >> 3:
            raise WireError("a field is cut off")
        yield tag >> 3, kind, buffer[place : place + size]
        place += size


def packed_integers(content: bytes) -> np.ndarray:
    """Varints one after the other, int64. Raises WireError."""
    if len(content) <= _FEW:
        found, place = [], 0
        while place < len(content):
            number, place = read_varint(content, place)
            found.append(signed(number))
        return np.array(found, np.int64)
    bytes_ = np.frombuffer(content, np.uint8)
    ends = np.flatnonzero(bytes_ < 0x80)
    if not len(ends) or ends[-1] != len(bytes_) - 1:
        raise WireError("a number is cut off")
    if len(ends) == len(bytes_):
        return bytes_.astype(np.int64)
    starts = np.concatenate([[0], ends[:-1] + 1])
    lengths = ends - starts + 1
    if lengths.max() > 10:
        raise WireError("a number is too long")
    shifts = np.arange(len(bytes_), dtype=np.uint64) - np.repeat(starts, lengths).astype(np.uint64)
    parts = (bytes_ & np.uint8(0x7F)).astype(np.uint64) << (shifts * np.uint64(7))
    return np.add.reduceat(parts, starts).view(np.int64)


def packed_floats(content: bytes) -> np.ndarray:
    """32-bit floats one after the other. Raises WireError."""
    if len(content) % 4:
        raise WireError("a number is cut off")
    return np.frombuffer(content, "<f4").astype(np.float32)


def one_float(content: bytes) -> float:
    """A 32-bit float."""
    return float(struct.unpack("<f", content)[0])
