"""Files of records (`ag.io.TFRecordWriter`), which need no datasets."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from runtime.errors import FailedPreconditionError
from runtime.files import translated
from runtime.storage.records import RecordWriter, checked_compression
from runtime.tensor import Tensor


class TFRecordOptions:
    """How a TFRecord file is written: `compression_type` ("", "GZIP", "ZLIB") and `compression_level` (0 to 9). The
    other arguments have no effect."""

    def __init__(
        self, compression_type: Any = None, flush_mode: Any = None, input_buffer_size: Any = None,
        output_buffer_size: Any = None, window_bits: Any = None, compression_level: int | None = None,
        compression_method: Any = None, mem_level: Any = None, compression_strategy: Any = None,
    ) -> None:  # fmt: skip
        self.compression_type = checked_compression(compression_type)
        self.compression_level = compression_level

    @classmethod
    def get_compression_type_string(cls, options: Any) -> str:
        """The compression type of options, which may also be a string or None."""
        return options.compression_type if isinstance(options, cls) else checked_compression(options)


class TFRecordWriter:
    """Writes records to a TFRecord file, replacing its contents; a context manager.

    options: a `TFRecordOptions`, or the kind of compression. Raises NotFoundError and the like if the file can't be
    created.
    """

    def __init__(self, path: Any, options: Any = None) -> None:
        kind = TFRecordOptions.get_compression_type_string(options)
        level = options.compression_level if isinstance(options, TFRecordOptions) else None
        self._path = path_of(path)
        with translated(self._path):
            self._records = RecordWriter(self._path, kind, level)
        self._closed = False

    def write(self, record: Any) -> None:
        """Adds a record: bytes, or a string, encoded as UTF-8. Raises FailedPreconditionError if it is closed."""
        if isinstance(record, Tensor):
            record = np.asarray(record).item()
        content = record.encode() if isinstance(record, str) else record
        if not isinstance(content, (bytes, bytearray, memoryview)):
            raise TypeError(
                f"write() takes bytes, got {type(record).__name__}; for a message, pass message.SerializeToString()"
            )
        if self._closed:
            raise FailedPreconditionError(f"The writer of {self._path} is closed")
        with translated(self._path):
            self._records.write(bytes(content))

    def flush(self) -> None:
        """Passes what has been written to the operating system."""
        self._records.flush()

    def close(self) -> None:
        """Completes the file."""
        self._closed = True
        self._records.close()

    def __enter__(self) -> TFRecordWriter:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()


def path_of(path: Any) -> str:
    """A path, which may be a tensor."""
    return os.fsdecode(np.asarray(path).item() if isinstance(path, Tensor) else path)
