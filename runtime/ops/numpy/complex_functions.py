"""NumPy's functions of complex numbers and its Fourier transforms, on tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.ops.arrays.shape_ops import known_rank
from runtime.ops.convert import convert_to_tensor
from runtime.ops.dispatch import call
from runtime.ops.elementwise import complex_numbers
from runtime.ops.numpy.array_functions import implements
from runtime.ops.numpy.ufuncs import UFUNCS, floating
from runtime.ops.signal import fourier
from runtime.tensor import Tensor

UFUNCS[np.conjugate] = complex_numbers.conj
implements("real")(lambda val: complex_numbers.real(val))
implements("imag")(lambda val: complex_numbers.imag(val))


@implements("angle")
def angle(z: Any, deg: bool = False) -> Tensor:
    found = complex_numbers.angle(floating(z))
    return found * (180 / np.pi) if deg else found


def _complex(a: Any) -> Tensor:
    x = floating(a)
    return x if x.dtype.is_complex else call("cast", x, dtype=dtypes.as_dtype(np.result_type(x.dtype.np, np.complex64)))


def _along(function: Callable[..., Tensor], prepare: Callable[[Any], Tensor]) -> Callable[..., Tensor]:
    """A transform of the last dimension as one of any axis, to n points."""

    def transform(a: Any, n: int | None = None, axis: int = -1) -> Tensor:
        x = prepare(a)
        rank = known_rank(x, "fft")
        last = axis % rank == rank - 1
        order = (*[i for i in range(rank) if i != axis % rank], axis % rank)
        moved = x if last else call("transpose", x, perm=order)
        found = function(moved, n)
        return found if last else call("transpose", found, perm=tuple(int(i) for i in np.argsort(order)))

    return transform


def _cut(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda x, n: function(x if n is None else fourier.fitted(x, [n]))


implements("fft.fft")(_along(_cut(fourier.fft), _complex))
implements("fft.ifft")(_along(_cut(fourier.ifft), _complex))
implements("fft.rfft")(_along(lambda x, n: fourier.rfft(x, None if n is None else [n]), floating))
implements("fft.irfft")(_along(lambda x, n: fourier.irfft(x, None if n is None else [n]), _complex))
implements("fft.fft2")(lambda a: fourier.fft2d(_complex(a)))
implements("fft.ifft2")(lambda a: fourier.ifft2d(_complex(a)))
implements("fft.rfft2")(lambda a: fourier.rfft2d(floating(a)))
implements("fft.fftshift")(lambda x, axes=None: fourier.fftshift(x, axes))
implements("fft.ifftshift")(lambda x, axes=None: fourier.ifftshift(x, axes))


@implements("vdot")
def vdot(a: Any, b: Any) -> Tensor:
    x, y = (call("reshape", convert_to_tensor(v), shape=(-1,)) for v in (a, b))
    wide = dtypes.as_dtype(np.result_type(x.dtype.np, y.dtype.np))
    product = complex_numbers.conj(call("cast", x, dtype=wide)) * call("cast", y, dtype=wide)
    return call("reduce_sum", product, axis=(0,), keepdims=False)
