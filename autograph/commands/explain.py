"""`autograph explain`: how the program of a function runs: kernels, loops, what isn't native. Runs the file."""

from __future__ import annotations

from typing import Any

from autograph.commands.files import UsageError
from autograph.commands.graph import function_of, untraceable
from autograph.function.explaining import explained, traced
from autograph.function.polymorphic import Function
from runtime.ops.arrays.creation import ones
from runtime.spec import TensorSpec


def run(options: Any) -> int:
    """Prints the report, and writes the page where one is asked for; exit code 1 where tracing fails."""
    name, function, arguments = function_of(options)
    function = Function(function, jit_compile=True)
    if options.measure:
        arguments = {key: _ones(value) if isinstance(value, TensorSpec) else value for key, value in arguments.items()}
    try:
        found = traced(function, (), arguments, options.measure, options.compile)
    except Exception as error:
        return untraceable(name, error)
    try:
        print(explained(*found, function, (), arguments, options.html, options.measure), flush=True)
    except OSError as error:
        raise UsageError(f"cannot write {options.html}: {error.strerror}") from None
    return 0


def _ones(spec: TensorSpec) -> Any:
    """A tensor to run the program on. Raises UsageError if its size is open."""
    if spec.dtype.name == "string" or not spec.shape.is_fully_defined():
        raise UsageError(
            f"--measure calls the function with ones, but can't make {spec.name}: {spec.dtype.name}{spec.shape}. "
            "Use numeric dtypes and fixed shapes in --signature, or call f.explain(..., measure=True) from Python"
        )
    return ones(spec.shape, spec.dtype)
