"""Running a graph: interpreter, background compilation, native code."""

from runtime.engine import native_random  # noqa: F401 - for eager random numbers
from runtime.engine.executable import Executable
from runtime.engine.settings import kernel_counters, set_jit, wait_for_background

__all__ = ["Executable", "kernel_counters", "set_jit", "wait_for_background"]
