"""`ag.debugging`: assertions that hold when the program runs, and what tracebacks show."""

from __future__ import annotations

from runtime.device import get_log_device_placement, set_log_device_placement
from runtime.ops.api import (
    Assert,
    assert_equal,
    assert_greater,
    assert_greater_equal,
    assert_less,
    assert_less_equal,
    assert_none_equal,
)  # fmt: skip
from runtime.ops.assertions import (
    assert_all_finite,
    assert_integer,
    assert_near,
    assert_negative,
    assert_non_negative,
    assert_non_positive,
    assert_positive,
    assert_proper_iterable,
    assert_rank,
    assert_rank_at_least,
    assert_rank_in,
    assert_same_float_dtype,
    assert_scalar,
    assert_shapes,
    assert_type,
    is_numeric_tensor,
)
from runtime.ops.numerics import check_numerics, disable_check_numerics, enable_check_numerics
from runtime.tracebacks import (
    disable_traceback_filtering,
    enable_traceback_filtering,
    is_traceback_filtering_enabled,
)

__all__ = [
    "Assert", "assert_all_finite", "assert_equal", "assert_greater", "assert_greater_equal", "assert_integer",
    "assert_less", "assert_less_equal", "assert_near", "assert_negative", "assert_non_negative", "assert_non_positive",
    "assert_none_equal", "assert_positive", "assert_proper_iterable", "assert_rank", "assert_rank_at_least",
    "assert_rank_in", "assert_same_float_dtype", "assert_scalar", "assert_shapes", "assert_type", "check_numerics",
    "disable_check_numerics", "disable_traceback_filtering", "enable_check_numerics", "enable_traceback_filtering",
    "get_log_device_placement", "is_numeric_tensor", "is_traceback_filtering_enabled", "set_log_device_placement",
]  # fmt: skip
