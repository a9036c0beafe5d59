"""Files of records, as TensorFlow's TFRecord files and TensorBoard's event files are.

    record:  length, 8 bytes | its check | content | its check      all numbers little-endian
    check:   4 bytes: CRC-32C of the bytes before it, rotated by 15 bits, plus a constant

A file may be compressed as a whole: "GZIP" or "ZLIB".
"""

from __future__ import annotations

import gzip
import io
import os
import struct
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

from runtime.errors import DataLossError, InvalidArgumentError

COMPRESSIONS = ("", "GZIP", "ZLIB")
_POLYNOMIAL = 0x82F63B78  # Castagnoli's, bits reversed
_MASK = 0xA282EAD8
# Messages of up to so many bytes are checked byte by byte.
_SHORT = 96
_ROW = 64  # bytes that one look into the tables takes
_AT_ONCE = 1024  # rows


def _byte_table() -> np.ndarray:
    table: np.ndarray = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> np.uint32(1)) ^ np.uint32(_POLYNOMIAL), table >> np.uint32(1))
    return table


_TABLE = _byte_table()
_STEPS = _TABLE.tolist()


def _followed(remainders: np.ndarray, count: int) -> np.ndarray:
    """Remainders of messages with so many zero bytes behind them."""
    for _ in range(count):
        remainders = (remainders >> np.uint32(8)) ^ _TABLE[remainders & np.uint32(0xFF)]
    return remainders


class _Tables:
    """The remainder of a message is the sum of those of its bytes, each with zeros in place of the others.

    rows    [place * 256 + byte]: of a byte at a place in a row of 64
    joins   [(place * 4 + k) * 256 + byte]: of byte k of the remainder of a row, with 63 - place rows behind it
    """

    def __init__(self) -> None:
        places = [_TABLE]
        for _ in range(_ROW - 1):
            places.append(_followed(places[-1], 1))
        self.rows = np.concatenate(places[::-1])
        bytes_ = np.arange(256, dtype=np.uint32)
        parts = [np.stack([bytes_ << np.uint32(8 * k) for k in range(4)])]
        for _ in range(_ROW - 1):
            parts.append(_followed(parts[-1], _ROW))
        self.joins = np.concatenate([part.reshape(-1) for part in parts[::-1]])
        self.row_places = np.arange(_ROW, dtype=np.int64) * 256
        self.join_places = np.arange(_ROW * 4, dtype=np.int64) * 256

    def remainders(self, rows: np.ndarray) -> np.ndarray:
        """The CRC remainders of rows of 64 bytes. `rows`: uint8 [n, 64]. Returns uint32 [n]."""
        found = np.empty(len(rows), np.uint32)
        for start in range(0, len(rows), _AT_ONCE):  # which bounds the memory that the indices take
            part = slice(start, start + _AT_ONCE)
            np.bitwise_xor.reduce(self.rows[rows[part] + self.row_places], 1, out=found[part])
        return found

    def joined(self, remainders: np.ndarray) -> np.ndarray:
        """Of 64 rows after one another, from those of each: shape [n, 64] to [n]."""
        bytes_ = np.ascontiguousarray(remainders.astype("<u4")).view(np.uint8).reshape(len(remainders), -1)
        return np.bitwise_xor.reduce(self.joins[bytes_ + self.join_places], 1)


_tables: list[_Tables] = []


def crc32c(content: bytes) -> int:
    """The CRC-32C of some bytes (Castagnoli et al. 1993), as RFC 3720 has it."""
    remainder = 0xFFFFFFFF
    if len(content) > _SHORT:
        if not _tables:
            _tables.append(_Tables())
        tables = _tables[0]
        whole = len(content) - len(content) % _ROW
        rows = np.frombuffer(content, np.uint8, whole).reshape(-1, _ROW).copy()
        rows[0, :4] ^= 0xFF  # which is what the remainder of a message begins with
        found = tables.remainders(rows)
        lead = -len(found) % _ROW  # rows of zeros in front change nothing
        padded = np.concatenate([np.zeros(lead, np.uint32), found]).reshape(-1, _ROW)
        remainder = 0
        for joined in tables.joined(padded).tolist():
            if remainder:
                remainder = int(_far(remainder))
            remainder ^= joined
        content = content[whole:]
    for byte in content:
        remainder = (remainder >> 8) ^ _STEPS[(remainder ^ byte) & 0xFF]
    return remainder ^ 0xFFFFFFFF


_far_tables: list[np.ndarray] = []


def _far(remainder: int) -> int:
    """The remainder of a message with 64 rows of zeros behind it."""
    if not _far_tables:
        bytes_ = np.arange(256, dtype=np.uint32)
        powers = np.stack([bytes_ << np.uint32(8 * k) for k in range(4)])
        _far_tables.append(_followed(powers, _ROW * _ROW))
    table = _far_tables[0]
    return int(
        table[0, remainder & 0xFF] ^ table[1, remainder >> 8 & 0xFF] ^ table[2, remainder >> 16 & 0xFF]
        ^ table[3, remainder >> 24]
    )  # fmt: skip


def masked(content: bytes) -> int:
    """The check of some bytes."""
    crc = crc32c(content)
    return ((crc >> 15 | crc << 17) + _MASK) & 0xFFFFFFFF


def checked_compression(kind: Any) -> str:
    """A kind of compression; "" for None. Raises InvalidArgumentError for another one."""
    text = kind.decode() if isinstance(kind, bytes) else kind or ""
    if text not in COMPRESSIONS:
        raise InvalidArgumentError(f'compression_type must be "", "ZLIB" or "GZIP", got {kind!r}')
    return str(text)


class _Inflated(io.RawIOBase):
    """A reader of the decompressed bytes of a zlib stream in a file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._inflate = file, zlib.decompressobj()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._inflate.eof:
            found = self._inflate.decompress(self._inflate.unconsumed_tail or self._file.read(1 << 16), len(buffer))
            if found:
                buffer[: len(found)] = found
                return len(found)
            if not self._inflate.unconsumed_tail and not self._file.peek(1):  # type: ignore[attr-defined]
                raise EOFError("the stream is cut off")
        return 0

    def close(self) -> None:
        self._file.close()
        super().close()


def open_compressed(path: str, compression: str) -> Any:
    """A file to be read, whose content is compressed. Raises OSError."""
    if compression == "GZIP":
        return gzip.open(path, "rb")
    file = open(path, "rb")  # noqa: SIM115 (closed by whoever reads)
    return io.BufferedReader(_Inflated(file)) if compression == "ZLIB" else file


def read_records(path: str, compression: str = "") -> Iterator[bytes]:
    """The records of a file.

    Raises OSError if it can't be read, DataLossError if it is damaged or of another compression.
    """
    try:
        with open_compressed(path, compression) as file:
            place = 0
            while header := file.read(12):
                if len(header) < 12:
                    raise DataLossError(f"truncated record at {place} of {path}")
                length, check = struct.unpack("<QI", header)
                if check != masked(header[:8]):
                    raise DataLossError(
                        f"corrupted record at {place} of {path}: it isn't a file of records, or damaged"
                    )
                content = file.read(length)
                tail = file.read(4)
                if len(content) < length or len(tail) < 4:
                    raise DataLossError(f"truncated record at {place} of {path}")
                if int.from_bytes(tail, "little") != masked(content):
                    raise DataLossError(f"corrupted record at {place} of {path}")
                yield content
                place += length + 16
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataLossError(f"{path} can't be decompressed as {compression}: {error}") from None


class RecordWriter:
    """Writes records to a file, in place of what it holds; with ``new`` there must be none. Raises OSError."""

    def __init__(self, path: str, compression: str = "", level: int | None = None, new: bool = False) -> None:
        self._path = path
        self._file: Any = open(path, "xb" if new else "wb")  # noqa: SIM115 (closed by `close`)
        self._deflate: Any = None
        if compression:
            bits = 31 if compression == "GZIP" else 15
            self._deflate = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, bits)

    def write(self, record: bytes) -> None:
        """Adds a record. Raises ValueError when the writer is closed."""
        if self._file is None:
            raise ValueError(f"The writer of {self._path} is closed")
        header = struct.pack("<Q", len(record))
        self._put(b"".join([
            header, struct.pack("<I", masked(header)), record, struct.pack("<I", masked(record))
        ]))  # fmt: skip

    def _put(self, content: bytes) -> None:
        self._file.write(content if self._deflate is None else self._deflate.compress(content))

    def flush(self) -> None:
        """Hands over to the system what has been written."""
        if self._file is not None:
            if self._deflate is not None:
                self._file.write(self._deflate.flush(zlib.Z_SYNC_FLUSH))
            self._file.flush()

    def close(self, sync: bool = False) -> None:
        """Completes the file; with `sync` its content is on the disk then."""
        if self._file is not None:
            if self._deflate is not None:
                self._file.write(self._deflate.flush())
            self._file.flush()
            if sync:
                os.fsync(self._file.fileno())
            self._file.close()
            self._file = None
