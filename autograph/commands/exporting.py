"""What commands share that write a function in a form for other programs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from autograph.commands.files import UsageError
from autograph.commands.graph import function_of, untraceable
from autograph.function.polymorphic import Function
from runtime.errors import OpError


def exported(options: Any, export: Callable[[Any], Any], show: Callable[[Any], None]) -> int:
    """Traces a function, exports the concrete function and shows what `export` gives. The exit code is 1 where the
    function can't be traced or exported. Raises UsageError if nothing can be written."""
    name, function, arguments = function_of(options)
    try:
        concrete = Function(function).get_concrete_function(**arguments)
    except Exception as error:
        return untraceable(name, error)
    try:
        made = export(concrete)
    except (OpError, ImportError) as error:
        print(f"autograph: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        raise UsageError(f"cannot write to {options.output}: {error.strerror}") from None
    show(made)
    return 0
