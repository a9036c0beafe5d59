"""`ag.debugging`: assertions that hold when the program runs."""

from __future__ import annotations

from runtime.ops.api import (
    Assert,
    assert_equal,
    assert_greater,
    assert_greater_equal,
    assert_less,
    assert_less_equal,
    assert_none_equal,
)  # fmt: skip

__all__ = [
    "Assert", "assert_equal", "assert_greater", "assert_greater_equal", "assert_less", "assert_less_equal",
    "assert_none_equal",
]  # fmt: skip
