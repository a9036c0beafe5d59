"""`ag.profiler.experimental`: profiles as TensorFlow starts, stops and stores them."""

from __future__ import annotations

from autograph.summaries.profiler import Profile, ProfilerOptions, Trace, start, stop

__all__ = ["Profile", "ProfilerOptions", "Trace", "start", "stop"]
