"""`autograph run`: a program written for TensorFlow. Runs the file."""

from __future__ import annotations

from typing import Any

from autograph.commands.files import UsageError
from autograph.facade.installation import FacadeError
from autograph.facade.script import run_file, run_module


def run(options: Any) -> int:
    """Runs a script or module with the arguments after it; returns its exit code."""
    try:
        if options.module:
            return run_module(options.script, options.arguments)
        return run_file(options.script, options.arguments)
    except OSError as error:
        raise UsageError(f"cannot read {options.script}: {error.strerror}") from None
    except FacadeError as error:
        raise UsageError(str(error)) from None
