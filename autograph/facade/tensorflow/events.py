"""Event files for TensorFlow's names: TensorBoard's protocol buffers, and records of bytes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from autograph.summaries.event_files import protos, records


def tf_record_iterator(path: Any) -> Iterator[bytes]:
    """The records of a file in TensorFlow's format. Raises DataLossError if it is damaged."""
    return records(os.fspath(path))


MODULES: dict[str, dict[str, Any]] = {
    # TensorFlow has it in `compat.v1.io`, which is this module here. TensorBoard reads files with it.
    "tensorflow.io": {"tf_record_iterator": tf_record_iterator},
    "tensorflow.core.util": {},
    "tensorflow.core.framework": {},
    "tensorflow.python.lib.io.tf_record": {"tf_record_iterator": tf_record_iterator},
}
# What needs TensorBoard, made when it is asked for.
LATE: dict[str, dict[str, Callable[[], Any]]] = {
    "tensorflow.compat.v1": {
        "Event": lambda: protos().event_pb2.Event,
        "Summary": lambda: protos().summary_pb2.Summary,
        "SummaryMetadata": lambda: protos().summary_pb2.SummaryMetadata,
    },
    "tensorflow.core.framework": {"summary_pb2": lambda: protos().summary_pb2},
    "tensorflow.core.util": {"event_pb2": lambda: protos().event_pb2},
}
