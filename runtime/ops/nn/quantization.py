"""Fake quantization: numbers rounded to the steps of a few bits, with gradients as if they weren't.

Jacob et al., "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference" (2018).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from runtime import dtypes, errors
from runtime.ops.arrays.creation import zeros_like
from runtime.ops.arrays.reduce import reduce_sum
from runtime.ops.arrays.shape_ops import stop_gradient
from runtime.ops.convert import convert_to_tensor
from runtime.ops.deferred_calls import deferrable
from runtime.ops.elementwise.compare import (
    equal,
    greater,
    greater_equal,
    is_finite,
    less,
    less_equal,
    logical_and,
    where,
)
from runtime.ops.elementwise.elementary import cast, floor
from runtime.ops.rules import brackets
from runtime.tensor import Tensor

_FLOAT = dtypes.float32


class _Range:
    """The ends of a range, moved so that 0 is one of its steps."""

    def __init__(self, low: Tensor, high: Tensor, num_bits: int, narrow_range: bool) -> None:
        first, last = float(narrow_range), float(2**num_bits - 1)
        self.empty = logical_and(equal(low, 0.0), equal(high, 0.0))
        step = (high - low) / (last - first)
        self.step = where(self.empty, step + 1.0, step)
        zero = first - low / self.step
        nudged = where(less(zero, first), zero * 0.0 + first, where(greater(zero, last), zero * 0.0 + last,
                                                                    floor(zero + 0.5)))  # fmt: skip
        self.low, self.high = (first - nudged) * self.step, (last - nudged) * self.step


def _check(num_bits: int) -> None:
    if not 2 <= num_bits <= 16:
        raise errors.InvalidArgumentError(f"num_bits must be between 2 and 16, inclusive, got {num_bits}")


def _quantized(x: Tensor, low: Tensor, high: Tensor, num_bits: int, narrow_range: bool) -> Tensor:
    ends = _Range(low, high, num_bits, narrow_range)
    # What passes gradients on: numbers within the range, and its ends for those outside. How far these are moved has
    # no part in it.
    least, most = (end + stop_gradient(moved - end) for end, moved in ((low, ends.low), (high, ends.high)))
    held = where(less(x, ends.low), least, where(greater(x, ends.high), most, x))
    steps = floor((held - ends.low) / ends.step + 0.5)
    rounded = held + stop_gradient(steps * ends.step + ends.low - held)
    finite = where(is_finite(x), x, zeros_like(x))
    return where(ends.empty, finite + stop_gradient(-finite), rounded)


@deferrable
def fake_quant_with_min_max_args(
    inputs: Any, min: float = -6, max: float = 6, num_bits: int = 8, narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Clips numbers to [min, max] and rounds them to 2 ** num_bits steps, one of which is 0.

    inputs: float32. narrow_range: one step less, so that the steps are symmetric. The gradient is that of clipping
    alone.
    Raises InvalidArgumentError for less than 2 or more than 16 bits, and for a range that is empty.
    """
    _check(num_bits)
    if not min < max:
        raise errors.InvalidArgumentError(f"min has to be smaller than max, was: {min} >= {max}")
    ends = [convert_to_tensor(float(end), _FLOAT) for end in (min, max)]
    return _quantized(convert_to_tensor(inputs, _FLOAT), ends[0], ends[1], num_bits, narrow_range)


@deferrable
def fake_quant_with_min_max_vars(
    inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False, name: str | None = None
) -> Tensor:
    """`fake_quant_with_min_max_args` with a range of two float32 scalars, which get the gradients of the values
    outside.

    Where both are 0, the result is 0. Raises InvalidArgumentError for less than 2 or more than 16 bits, and ends that
    aren't scalars.
    """
    _check(num_bits)
    low, high = convert_to_tensor(min, _FLOAT), convert_to_tensor(max, _FLOAT)
    for end in (low, high):
        if end._shape not in ((), None):
            raise errors.InvalidArgumentError(f"`min` and `max` must be rank 0, got shape {brackets(end._shape)}")
    return _quantized(convert_to_tensor(inputs, _FLOAT), low, high, num_bits, narrow_range)


@deferrable
def fake_quant_with_min_max_vars_per_channel(
    inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False, name: str | None = None
) -> Tensor:
    """`fake_quant_with_min_max_vars` with a range for each element of the last dimension.

    min, max: float32 vectors of that length. Raises InvalidArgumentError for less than 2 or more than 16 bits, and for
    other shapes.
    """
    _check(num_bits)
    x, low, high = (convert_to_tensor(each, _FLOAT) for each in (inputs, min, max))
    for end in (low, high):
        shape = end._shape
        if shape is not None and (len(shape) != 1 or (x._shape and None not in (shape[0], x._shape[-1]) and
                                                      shape[0] != x._shape[-1])):  # fmt: skip
            raise errors.InvalidArgumentError(
                f"min and max must be vectors of the last dimension's length, got shape {brackets(shape)} beside "
                f"{brackets(x._shape)}"
            )
    return _quantized(x, low, high, num_bits, narrow_range)


# --- their gradients as functions ------------------------------------------------------------------------------------


class QuantizationGradient(NamedTuple):
    """The gradients that fake quantization passes on: to its inputs, and to both ends of the range."""

    backprops_wrt_input: Tensor
    backprop_wrt_min: Tensor
    backprop_wrt_max: Tensor


def _gradients(
    gradients: Any, inputs: Any, min: Any, max: Any, num_bits: int, narrow_range: bool, axes: Any
) -> QuantizationGradient:
    _check(num_bits)
    dy, x, low, high = (convert_to_tensor(each, _FLOAT) for each in (gradients, inputs, min, max))
    ends = _Range(low, high, num_bits, narrow_range)
    none = zeros_like(dy)
    below, above = (
        where(logical_and(outside, equal(x, x)), dy, none) for outside in (less(x, ends.low), greater(x, ends.high))
    )
    inside = logical_and(greater_equal(x, ends.low), less_equal(x, ends.high))
    return QuantizationGradient(
        where(ends.empty, dy, dy * cast(inside, _FLOAT)),
        reduce_sum(where(ends.empty, none, below), axes),
        reduce_sum(where(ends.empty, none, above), axes),
    )


@deferrable
def fake_quant_with_min_max_args_gradient(
    gradients: Any, inputs: Any, min: float = -6, max: float = 6, num_bits: int = 8, narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """`gradients` where `inputs` lie within the range of `fake_quant_with_min_max_args`, 0 elsewhere."""
    return _gradients(gradients, inputs, float(min), float(max), num_bits, narrow_range, None).backprops_wrt_input


@deferrable
def fake_quant_with_min_max_vars_gradient(
    gradients: Any, inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False,
    name: str | None = None,
) -> QuantizationGradient:  # fmt: skip
    """What `fake_quant_with_min_max_vars` makes of `gradients`: those of its inputs, of `min` and of `max`."""
    return _gradients(gradients, inputs, min, max, num_bits, narrow_range, None)


@deferrable
def fake_quant_with_min_max_vars_per_channel_gradient(
    gradients: Any, inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False,
    name: str | None = None,
) -> QuantizationGradient:  # fmt: skip
    """What `fake_quant_with_min_max_vars_per_channel` makes of `gradients`: those of its inputs, `min` and `max`."""
    rank = len(convert_to_tensor(inputs).shape)
    return _gradients(gradients, inputs, min, max, num_bits, narrow_range, list(range(rank - 1)))
