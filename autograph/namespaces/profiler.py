"""`ag.profiler`: what a program does when, as a file that Perfetto and chrome://tracing open."""

from __future__ import annotations

from autograph.namespaces import profiler_experimental as experimental
from autograph.summaries.profiler import trace

__all__ = ["experimental", "trace"]
