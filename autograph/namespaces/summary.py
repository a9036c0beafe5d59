"""`ag.summary`: what programs write for TensorBoard while they run."""

from __future__ import annotations

from autograph.namespaces import summary_experimental as experimental
from autograph.summaries.graphs import graph, trace_export, trace_off, trace_on
from autograph.summaries.write import audio, histogram, image, scalar, text, write
from autograph.summaries.writers import (
    SummaryWriter,
    create_file_writer,
    create_noop_writer,
    flush,
    record_if,
    should_record_summaries,
)

__all__ = [
    "SummaryWriter", "audio", "create_file_writer", "create_noop_writer", "experimental", "flush", "graph", "histogram",
    "image", "record_if", "scalar", "should_record_summaries", "text", "trace_export", "trace_off", "trace_on", "write",
]  # fmt: skip
