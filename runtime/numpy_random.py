"""`ag.experimental.numpy.random`: random numbers under the names of `numpy.random`, as tensors.

They are those of `ag.random`: staged, and chosen by its seeds. Floats are float64, as NumPy's.
"""

from __future__ import annotations

import operator
from typing import Any

from runtime import dtypes
from runtime.dtypes import DTypeLike
from runtime.generator import poisson as random_poisson
from runtime.ops.arrays.miscellaneous import broadcast_dynamic_shape
from runtime.ops.arrays.shape_ops import shape as shape_of
from runtime.ops.convert import convert_to_tensor
from runtime.ops.random import stateful
from runtime.tensor import Tensor


def seed(s: Any) -> None:
    """Sets the global seed, an integer, as `ag.random.set_seed` does. Raises ValueError for anything else."""
    try:
        number = operator.index(s)
    except TypeError:
        raise ValueError(f"the seed of numpy.random is an integer, got {s!r}") from None
    stateful.set_seed(number)


def standard_normal(size: Any = None) -> Tensor:
    """Normally distributed numbers of mean 0 and deviation 1, float64. size: their shape, an int or several."""
    return stateful.normal(_shape(size), dtype=dtypes.float64)


def randn(*args: Any) -> Tensor:
    """Normally distributed numbers of mean 0 and deviation 1, float64; the arguments are the sizes of dimensions."""
    return standard_normal(args)


def uniform(low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Tensor:
    """Uniformly distributed numbers in [low, high), float64. size: their shape; by default that of low and high."""
    low, high = convert_to_tensor(low, dtypes.float64), convert_to_tensor(high, dtypes.float64)
    shape = broadcast_dynamic_shape(shape_of(low), shape_of(high)) if size is None else _shape(size)
    return stateful.uniform(shape, low, high, dtypes.float64)


def random(size: Any = None) -> Tensor:
    """Uniformly distributed numbers in [0, 1), float64. size: their shape, an int or several."""
    return uniform(size=_shape(size))


def rand(*size: Any) -> Tensor:
    """Uniformly distributed numbers in [0, 1), float64; the arguments are the sizes of the dimensions."""
    return uniform(size=size)


def randint(low: Any, high: Any = None, size: Any = None, dtype: DTypeLike = dtypes.int64) -> Tensor:
    """Integers in [low, high), or in [0, low) without `high`. dtype: int32 or int64.

    Raises ValueError for another dtype.
    """
    wanted = dtypes.as_dtype(dtype)
    if wanted not in (dtypes.int32, dtypes.int64):
        raise ValueError(f"numpy.random.randint gives int32 or int64, not {wanted.label}")
    low, high = (0, low) if high is None else (low, high)
    return stateful.uniform(_shape(size), int(low), int(high), wanted)


def poisson(lam: Any = 1.0, size: Any = None) -> Tensor:
    """Poisson-distributed numbers of the rates `lam`, int64: as many for each as `size`, an int or several, says."""
    return random_poisson(_shape(size), lam, dtypes.int64)


def _shape(size: Any) -> Any:
    if size is None:
        return ()
    return (size,) if isinstance(size, int) else size
