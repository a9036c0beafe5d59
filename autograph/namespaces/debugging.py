"""`ag.debugging`: assertions that hold when the program runs, and what tracebacks show."""

from __future__ import annotations

from autograph.operators.tracebacks import (
    disable_traceback_filtering,
    enable_traceback_filtering,
    is_traceback_filtering_enabled,
)
from runtime.ops.api import (
    Assert,
    assert_equal,
    assert_greater,
    assert_greater_equal,
    assert_less,
    assert_less_equal,
    assert_none_equal,
)  # fmt: skip
from runtime.ops.numerics import check_numerics, disable_check_numerics, enable_check_numerics

__all__ = [
    "Assert", "assert_equal", "assert_greater", "assert_greater_equal", "assert_less", "assert_less_equal",
    "assert_none_equal", "check_numerics", "disable_check_numerics", "enable_check_numerics",
    "disable_traceback_filtering", "enable_traceback_filtering", "is_traceback_filtering_enabled",
]  # fmt: skip
