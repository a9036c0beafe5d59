"""Initialisers: objects that make the first value of a variable of a given shape."""

from __future__ import annotations

from typing import Any

from runtime import dtypes
from runtime.dtypes import DTypeLike
from runtime.ops.arrays import creation
from runtime.ops.arrays.shape_ops import reshape
from runtime.ops.convert import convert_to_tensor
from runtime.ops.random import stateful, stateless
from runtime.tensor import Tensor


class zeros_initializer:
    """Zeros: `zeros_initializer()(shape, dtype)`."""

    def __call__(self, shape: Any, dtype: DTypeLike = dtypes.float32, **kwargs: Any) -> Tensor:
        return creation.zeros(shape, dtype)


class ones_initializer:
    """Ones."""

    def __call__(self, shape: Any, dtype: DTypeLike = dtypes.float32, **kwargs: Any) -> Tensor:
        return creation.ones(shape, dtype)


class constant_initializer:
    """Fills a tensor with one value, or with a list of values, one for each element."""

    def __init__(self, value: Any = 0, support_partition: bool = False) -> None:
        self.value = value

    def __call__(self, shape: Any, dtype: DTypeLike = None, **kwargs: Any) -> Tensor:
        value = convert_to_tensor(self.value, dtype)
        return creation.fill(shape, value) if value._shape == () else reshape(value, shape)


class _Drawn:
    def __init__(self, first: float, second: float, seed: int | None) -> None:
        self.parameters, self.seed = (first, second), seed

    def _draw(self, function: Any, seeded: Any, shape: Any, dtype: DTypeLike) -> Tensor:
        """With a seed the same numbers at each call, those of the stateless functions for [seed, 0]."""
        if self.seed is None:
            return function(shape, *self.parameters, dtype=dtype)
        return seeded(stateless.state_of([self.seed, 0]), shape, *self.parameters, dtype)


class random_uniform_initializer(_Drawn):
    """Uniformly distributed numbers in [minval, maxval)."""

    def __init__(self, minval: float = -0.05, maxval: float = 0.05, seed: int | None = None) -> None:
        super().__init__(minval, maxval, seed)

    def __call__(self, shape: Any, dtype: DTypeLike = dtypes.float32, **kwargs: Any) -> Tensor:
        return self._draw(stateful.uniform, stateless.uniform, shape, dtype)


class random_normal_initializer(_Drawn):
    """Normally distributed numbers."""

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: int | None = None) -> None:
        super().__init__(mean, stddev, seed)

    def __call__(self, shape: Any, dtype: DTypeLike = dtypes.float32, **kwargs: Any) -> Tensor:
        return self._draw(stateful.normal, stateless.normal, shape, dtype)
