"""Complex numbers: their parts, conjugates, absolute values and angles, and the function `complex` that makes them.

A cotangent of a complex number z = x + iy is dL/dx + i dL/dy of the real result L, as in TensorFlow. The functions here
aren't holomorphic, so their rules say by themselves what they do (`complex_rule`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.dtypes import DType
from runtime.ops.convert import check_kind, convert_to_tensor, operands
from runtime.ops.dispatch import apply, call
from runtime.ops.elementwise.arithmetic import abs as absolute
from runtime.ops.elementwise.arithmetic import sign
from runtime.ops.elementwise.compare import where
from runtime.ops.rules import binary_samples, broadcast_types, infer_same, unary_samples, unbroadcast
from runtime.ops.table import OpDef, register
from runtime.tensor import Tensor, TensorLike
from runtime.types import TensorType

_COMPLEX = {"float32": dtypes.complex64, "float64": dtypes.complex128}


def _infer_part(inputs: Sequence[Any], attrs: dict) -> tuple:
    return (TensorType(inputs[0].dtype.real_dtype, inputs[0].shape),)


def _of_real(x: Any) -> Any:
    """A real cotangent as that of a complex operand."""
    return call("cast", x, dtype=_COMPLEX[x.dtype.name])


def _i(dtype: DType) -> Tensor:
    return convert_to_tensor(1j, dtype)


def _grad_abs(op: Any, dy: Any) -> Sequence[Any]:
    # The direction of z; at 0, where there is none, 0.
    return (_of_real(dy) * sign(op.inputs[0]),)


def _grad_angle(op: Any, dy: Any) -> Sequence[Any]:
    z = op.inputs[0]
    # The angle grows along i z, by 1 / |z|.
    size = absolute(z)
    zero = convert_to_tensor(0, size.dtype)
    scaled = where(size > 0, dy / where(size > 0, size, convert_to_tensor(1, size.dtype)), zero)
    return (_of_real(scaled) * sign(z) * _i(z.dtype),)


def _part(name: str, kernel: Callable[..., Any], grad: Any, doc: str, label: str = "") -> OpDef:
    return register(
        OpDef(
            name, _infer_part, kernel, grad=grad, kinds="c", cheap=True, doc=doc, label=label, complex_rule=True,
            samples=unary_samples(),
        )
    )  # fmt: skip


_REAL = _part("real", lambda z: z.real.copy(), lambda op, dy: (_of_real(dy),), "The real part of complex numbers.")
_IMAG = _part(
    "imag", lambda z: z.imag.copy(), lambda op, dy: (_of_real(dy) * _i(op.inputs[0].dtype),), "The imaginary part."
)
_ABS = _part("complex_abs", np.abs, _grad_abs, "The absolute value of complex numbers.")
_ANGLE = _part("angle", np.angle, _grad_angle, "The angle of complex numbers, in radians.")
_CONJ = register(
    OpDef(
        "conj", infer_same, np.conj, grad=lambda op, dy: (conj(dy),), kinds="c", cheap=True, complex_rule=True,
        doc="The complex conjugate.", samples=unary_samples(),
    )
)  # fmt: skip


def _infer_complex(inputs: Sequence[Any], attrs: dict) -> tuple:
    first, second = inputs
    if first.dtype is not second.dtype or first.dtype.name not in _COMPLEX:
        raise TypeError(
            f"The `real` and `imag` components have incorrect types: {first.dtype.name} {second.dtype.name}. They must "
            "be consistent, and one of float32, float64"
        )
    return (TensorType(_COMPLEX[first.dtype.name], broadcast_types(first, second)),)


def _grad_complex(op: Any, dy: Any) -> Sequence[Any]:
    x, y = op.inputs
    return unbroadcast(real(dy), x, y), unbroadcast(imag(dy), y, x)


_MAKE = register(
    OpDef(
        "complex", _infer_complex, lambda x, y: x + y * np.result_type(x.dtype, np.complex64).type(1j),
        grad=_grad_complex, kinds="f", cheap=True, complex_rule=True, doc="x + i y.", samples=binary_samples(),
    )
)  # fmt: skip


def complex(real: Any, imag: Any, name: str | None = None) -> Tensor:
    """Complex numbers from their real and imaginary parts, float32 or float64, which broadcast.

    Raises TypeError for other dtypes and for parts whose dtypes differ.
    """
    x, y = convert_to_tensor(real), convert_to_tensor(imag)
    _infer_complex([x, TensorType(y.dtype, x._shape)], {})
    return apply(_MAKE, operands("Complex", x, y))


def real(input: TensorLike, name: str | None = None) -> Tensor:
    """The real part; real numbers are unchanged."""
    x = convert_to_tensor(input)
    return apply(_REAL, (x,)) if x.dtype.is_complex else x


def imag(input: TensorLike, name: str | None = None) -> Tensor:
    """The imaginary part; 0 for real numbers."""
    x = convert_to_tensor(input)
    return apply(_IMAG, (x,)) if x.dtype.is_complex else call("zeros_like", x)


def conj(x: TensorLike, name: str | None = None) -> Tensor:
    """The complex conjugate; real numbers are unchanged. Raises InvalidArgumentError for bool and string."""
    z = convert_to_tensor(x)
    if z.dtype.is_complex:
        return apply(_CONJ, (z,))
    if not z.dtype.is_numeric:
        check_kind(_CONJ, z.dtype)
    return z


def angle(input: TensorLike, name: str | None = None) -> Tensor:
    """The angle in the complex plane, in radians: pi for negative real numbers, 0 for the others."""
    x = convert_to_tensor(input)
    if x.dtype.is_complex:
        return apply(_ANGLE, (x,))
    return where(x < 0, convert_to_tensor(np.pi, x.dtype), call("zeros_like", x))
