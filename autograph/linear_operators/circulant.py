"""Circulant matrices, which Fourier transforms diagonalise, also of blocks and of blocks of blocks.

With the spectrum s, `A x = ifft(s * fft(x))`: a product takes O(N log N) for each column (R. M. Gray, Toeplitz and
Circulant Matrices: A Review, 2006, section 3.1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import autograph as ag
from autograph.linear_operators.base import LinearOperator, conjugated, hints_of, last_two_swapped, reference
from autograph.linear_operators.elementary import shared
from runtime.shapes import TensorShape

# By the number of dimensions.
_TRANSFORMS = {
    1: (ag.signal.fft, ag.signal.ifft), 2: (ag.signal.fft2d, ag.signal.ifft2d), 3: (ag.signal.fft3d, ag.signal.ifft3d)
}  # fmt: skip


class _Circulant(LinearOperator):
    """What the circulant operators have in common. `_depth`: over how many dimensions they transform."""

    _depth: ClassVar[int]

    def __init__(
        self,
        spectrum: Any,
        input_output_dtype: Any = ag.complex64,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        name: str | None = None,
    ) -> None:
        parameters = dict(locals())
        self._spectrum = reference(spectrum)
        rank, dtype = self._spectrum.shape.rank, self._spectrum.dtype
        if not (dtype.is_floating or dtype.is_complex):
            raise TypeError(f"Argument `spectrum` must have a floating or complex dtype. Found: {dtype.name}")
        if rank is not None and rank < self._depth:
            raise ValueError(f"Argument `spectrum` must have at least {self._depth} dimensions. Found: {spectrum}")
        if not dtype.is_complex:
            if is_self_adjoint is False:
                raise ValueError("A real spectrum always corresponds to a self-adjoint operator.")
            is_self_adjoint = True
        if is_square is False:
            raise ValueError("A [[nested] block] circulant operator is always square.")
        super().__init__(
            input_output_dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, True, name, parameters
        )

    @property
    def spectrum(self) -> Any:
        """The eigenvalues, as the operator was made of them."""
        return self._spectrum

    @property
    def block_depth(self) -> int:
        """1 for circulant matrices, 2 for circulant ones of circulant blocks, 3 for such blocks of blocks."""
        return self._depth

    @property
    def block_shape(self) -> TensorShape:
        """The shape of one matrix's spectrum, as far as it is known."""
        return TensorShape(self._spectrum.shape[-self._depth :])

    def block_shape_tensor(self) -> Any:
        """The shape of one matrix's spectrum, int32."""
        return ag.shape(self._spectrum)[-self._depth :]

    @property
    def _experimental_parameter_ndims_to_matrix_ndims(self) -> dict[str, Any]:
        return {"spectrum": self._depth}

    def _shape(self) -> Any:
        sizes = self.block_shape
        size = math.prod([each or 0 for each in sizes]) if sizes.is_fully_defined() else None
        return self._spectrum.shape[: -self._depth].concatenate([size, size])

    def _shape_tensor(self) -> Any:
        size = ag.reduce_prod(self.block_shape_tensor())
        return ag.concat([ag.shape(self._spectrum)[: -self._depth], [size, size]], 0)

    @property
    def _axes(self) -> list[int]:
        return list(range(-self._depth, 0))

    def _own_dtype(self, x: Any) -> Any:
        """A number of the matrices', in their dtype: the spectrum of real ones is complex all the same."""
        real = x.dtype.is_complex and not self.dtype.is_complex
        return ag.cast(ag.math.real(x) if real else x, self.dtype)

    def _complex_spectrum(self) -> Any:
        spectrum = ag.convert_to_tensor(self._spectrum)
        is_double = spectrum.dtype in (ag.float64, ag.complex128) or self.dtype in (ag.float64, ag.complex128)
        return ag.cast(spectrum, ag.complex128 if is_double else ag.complex64)

    def convolution_kernel(self, name: str = "convolution_kernel") -> Any:
        """What columns are convolved with, `[..., *block_shape]`: the first columns of the matrices."""
        _, inverse = _TRANSFORMS[self._depth]
        return self._own_dtype(inverse(self._complex_spectrum()))

    def assert_hermitian_spectrum(self, name: str = "assert_hermitian_spectrum") -> Any:
        """An operation that fails where a matrix isn't real, as far as its dtype's precision tells."""
        _, inverse = _TRANSFORMS[self._depth]
        imaginary = ag.math.imag(inverse(self._complex_spectrum()))
        eps = ag.experimental.numpy.finfo(self.dtype.real_dtype.as_numpy_dtype).eps
        limit = ag.cast(eps, imaginary.dtype) * ag.cast(self.domain_dimension_tensor(), imaginary.dtype)
        return ag.debugging.assert_less(ag.abs(imaginary), limit, message="Spectrum was not Hermitian")

    def _filtered(self, x: Any, change: Callable[[Any, Any], Any], adjoint: bool, adjoint_arg: bool) -> Any:
        """Columns whose transforms are changed: `change(transforms, spectrum)`."""
        forward, inverse = _TRANSFORMS[self._depth]
        spectrum = self._complex_spectrum()
        spectrum = ag.expand_dims(conjugated(spectrum) if adjoint else spectrum, -self._depth - 1)
        rows = ag.math.conj(x) if adjoint_arg else ag.linalg.matrix_transpose(x)
        blocks = ag.reshape(rows, ag.concat([ag.shape(rows)[:-1], self.block_shape_tensor()], 0))
        found = inverse(change(forward(ag.cast(blocks, spectrum.dtype)), spectrum))
        flat = ag.reshape(found, ag.concat([ag.shape(found)[: -self._depth], [self.domain_dimension_tensor()]], 0))
        return self._own_dtype(last_two_swapped(flat, conjugate=False))

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._filtered(x, lambda transforms, spectrum: transforms * spectrum, adjoint, adjoint_arg)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._filtered(rhs, lambda transforms, spectrum: transforms / spectrum, adjoint, adjoint_arg)

    def _determinant(self) -> Any:
        return self._own_dtype(ag.reduce_prod(self._complex_spectrum(), axis=self._axes))

    def _log_abs_determinant(self) -> Any:
        return ag.cast(ag.reduce_sum(ag.math.log(ag.abs(self._spectrum)), axis=self._axes), self.dtype)

    def _trace(self) -> Any:
        return self._own_dtype(ag.reduce_sum(self._complex_spectrum(), axis=self._axes))

    def _diag_part(self) -> Any:
        mean = self._own_dtype(ag.reduce_mean(self._complex_spectrum(), axis=self._axes))
        return ag.broadcast_to(mean[..., None], self.shape_tensor()[:-1])

    def _eigvals(self) -> Any:
        spectrum = ag.convert_to_tensor(self._spectrum)
        return ag.reshape(spectrum, self.shape_tensor()[:-1])

    def _cond(self) -> Any:
        sizes = ag.abs(self._spectrum)
        return ag.reduce_max(sizes, axis=self._axes) / ag.reduce_min(sizes, axis=self._axes)

    def _assert_non_singular(self) -> Any:
        sizes = ag.abs(self._spectrum)
        message = "Singular operator:  Spectrum contained zero values."
        return ag.debugging.assert_none_equal(sizes, ag.zeros_like(sizes), message=message)

    def _assert_positive_definite(self) -> Any:
        message = "Not positive definite:  Real part of spectrum was not all positive."
        return ag.debugging.assert_positive(ag.math.real(self._spectrum), message=message)

    def _assert_self_adjoint(self) -> Any:
        imaginary = ag.math.imag(self._spectrum)
        message = "Not self-adjoint:  The spectrum contained non-zero imaginary part."
        return ag.debugging.assert_equal(imaginary, ag.zeros_like(imaginary), message=message)

    def _linop_adjoint(self) -> LinearOperator:
        return type(self)(conjugated(self._spectrum), self.dtype, **hints_of(self))

    def _linop_inverse(self) -> LinearOperator:
        return type(self)(1 / ag.convert_to_tensor(self._spectrum), self.dtype, **hints_of(self))

    def _linop_matmul(self, left_operator: Any, right_operator: Any) -> LinearOperator:
        if type(left_operator) is not type(right_operator) or left_operator.block_shape != right_operator.block_shape:
            return super()._linop_matmul(left_operator, right_operator)
        one, other = (ag.convert_to_tensor(each.spectrum) for each in (left_operator, right_operator))
        if one.dtype != other.dtype:
            one, other = left_operator._complex_spectrum(), right_operator._complex_spectrum()
        return type(self)(one * other, self.dtype, **shared(left_operator, right_operator))


class LinearOperatorCirculant(_Circulant):
    """Circulant matrices: each column is the one before it, moved down by one in a circle.

    spectrum: the eigenvalues, `[..., N]`, of floats or complex numbers: the Fourier transforms of the first columns.
    input_output_dtype: the dtype of the matrices and of all results; a real one is right only where the spectrum is
    Hermitian, `s[n] = conj(s[-n])`, since imaginary parts are dropped.
    Raises TypeError for a spectrum of integers, ValueError for a scalar and for hints that say that a real spectrum's
    operator isn't self-adjoint, or not square.
    """

    _depth = 1


class LinearOperatorCirculant2D(_Circulant):
    """Circulant matrices of circulant blocks: convolutions in two dimensions.

    spectrum: the eigenvalues, `[..., N0, N1]`, for matrices of N0 x N0 blocks, each of N1 x N1 numbers; the other
    arguments and errors are those of `LinearOperatorCirculant`.
    """

    _depth = 2


class LinearOperatorCirculant3D(_Circulant):
    """Circulant matrices of circulant blocks of circulant blocks: convolutions in three dimensions.

    spectrum: the eigenvalues, `[..., N0, N1, N2]`; the other arguments and errors are those of
    `LinearOperatorCirculant`.
    """

    _depth = 3
