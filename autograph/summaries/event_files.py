"""Event files, which TensorBoard reads: records of protocol buffers, written by the package `tensorboard`.

The package is imported when the first file is made. Its own `EventFileWriter` isn't used: it opens files through
TensorFlow where that is installed, and writes from a thread. What it is made of needs neither.
"""

from __future__ import annotations

import itertools
import os
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from runtime.errors import NotFoundError
from runtime.ops.strings import wire
from runtime.storage.records import RecordWriter, read_records

_VERSION = "brain.Event:2"
_WRITER = "autograph.summary"
# Files that are made in the same second have different numbers.
_numbers = itertools.count()
# Where the name in TensorBoard's enumeration isn't the dtype's own.
ENUM = {
    "float16": "DT_HALF", "float32": "DT_FLOAT", "float64": "DT_DOUBLE", "object": "DT_STRING", "string": "DT_STRING",
}  # fmt: skip


def protos() -> Any:
    """The modules `event_pb2`, `summary_pb2`, `tensor_pb2` and `types_pb2` of TensorBoard.

    Raises ImportError, which says how to get them, where TensorBoard isn't installed.
    """
    try:
        from tensorboard.compat import proto
        from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2, types_pb2  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "Writing summaries needs TensorBoard: python -m pip install 'tensorboard>=2.21,<3'"
        ) from error
    return proto


def records(path: str) -> Iterator[bytes]:
    """The records of a file. Raises DataLossError if the file is damaged."""
    return read_records(path)


def tensor_proto(array: np.ndarray) -> Any:
    """The array as TensorFlow writes it: the bytes of numbers, or a list of strings."""
    proto = protos()
    kind = ENUM.get(array.dtype.name, f"DT_{array.dtype.name.upper()}")
    made = proto.tensor_pb2.TensorProto(dtype=proto.types_pb2.DataType.Value(kind))
    made.tensor_shape.SetInParent()
    for size in array.shape:
        made.tensor_shape.dim.add(size=size)
    if array.dtype == object:
        made.string_val.extend(v.encode() if isinstance(v, str) else v for v in array.ravel())
    else:
        made.tensor_content = array.tobytes()
    return made


# What a plugin's metadata say; those of others are empty. Audio: field 2, the encoding, is WAV.
_CONTENTS = {"audio": wire.integer_field(2, 11)}


def metadata_of(plugin: str, description: str | None) -> Any:
    """The metadata by which a plugin of TensorBoard knows its summaries, of version 0 of its format."""
    summary_pb2 = protos().summary_pb2
    data = summary_pb2.SummaryMetadata.PluginData(plugin_name=plugin, content=_CONTENTS.get(plugin, b""))
    return summary_pb2.SummaryMetadata(summary_description=description, plugin_data=data)


class EventFile:
    """A file of events in the folder `logdir`, which is made where it isn't there.

    Events wait in a queue. They are written when it holds more than `max_queue`, and by the first event that comes
    `flush_millis` milliseconds after the last time they were, by `flush` and by `close`.
    """

    def __init__(self, logdir: str, max_queue: int, flush_millis: int, suffix: str) -> None:
        self._proto = protos()
        self._limit, self._interval = max_queue, flush_millis / 1000
        name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.{next(_numbers)}"
        self.path = os.path.join(logdir, name + suffix)
        self._lock = threading.Lock()
        self._queue: list[bytes] = []
        self._written = time.monotonic()
        self._records: Any = None
        self._closed = False

    def open(self) -> None:
        """Makes the file, if it isn't there yet, with the event that says its version."""
        with self._lock:
            self._open()

    def add_summary(self, tag: str, array: np.ndarray, step: int, metadata: Any) -> None:
        """Adds an event with one summary. Raises NotFoundError when the file is closed."""
        summary = self._proto.summary_pb2.Summary()
        summary.value.add(tag=tag, tensor=tensor_proto(array), metadata=metadata)
        self._add(self._proto.event_pb2.Event(wall_time=time.time(), step=step, summary=summary))

    def add_graph(self, content: bytes) -> None:
        """Adds an event with a serialized `GraphDef`. Raises NotFoundError when the file is closed."""
        self._add(self._proto.event_pb2.Event(wall_time=time.time(), graph_def=content))

    def _add(self, event: Any) -> None:
        with self._lock:
            if self._closed:
                raise NotFoundError(f"The summary writer of {self.path} is already closed")
            self._open()
            self._queue.append(event.SerializeToString())
            if len(self._queue) > self._limit or time.monotonic() - self._written > self._interval:
                self._flush()

    def flush(self) -> None:
        """Writes what waits in the queue. Does nothing when the file is closed."""
        with self._lock:
            if self._records is not None and not self._closed:
                self._flush()

    def close(self) -> None:
        """Writes what waits in the queue, and closes the file."""
        with self._lock:
            if not self._closed and self._records is not None:
                self._flush()
                self._records.close()
            self._closed = True

    def _open(self) -> None:
        if self._records is not None or self._closed:
            return
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        self._records = RecordWriter(self.path, new=True)
        source = self._proto.event_pb2.SourceMetadata(writer=_WRITER)
        event = self._proto.event_pb2.Event(wall_time=time.time(), file_version=_VERSION, source_metadata=source)
        self._records.write(event.SerializeToString())
        self._flush()

    def _flush(self) -> None:
        waiting, self._queue = self._queue, []
        for event in waiting:
            self._records.write(event)
        self._records.flush()
        self._written = time.monotonic()
