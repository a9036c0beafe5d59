"""Operators of a matrix, or of some of its entries."""

from __future__ import annotations

from typing import Any

import numpy as np

import autograph as ag
from autograph.linear_operators.base import (
    LinearOperator,
    conjugated,
    hints_of,
    last_two_swapped,
    makes,
    reference,
    with_common_batch,
)
from autograph.linear_operators.elementary import (
    LinearOperatorDiag,
    LinearOperatorIdentity,
    LinearOperatorScaledIdentity,
)


def _need_rank(value: Any, rank: int, name: str) -> Any:
    value = reference(value)
    if value.shape.rank is not None and value.shape.rank < rank:
        raise ValueError(f"Argument `{name}` must have at least {rank} dimensions. Found: {value}.")
    return value


class LinearOperatorFullMatrix(LinearOperator):
    """Matrices of which nothing but the hints is known.

    matrix: `[..., M, N]`, floats or complex numbers. Raises ValueError for fewer than two dimensions.
    """

    def __init__(
        self,
        matrix: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorFullMatrix",
    ) -> None:
        parameters = dict(locals())
        self._matrix = _need_rank(matrix, 2, "matrix")
        super().__init__(
            self._matrix.dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, is_square, name,
            parameters,
        )  # fmt: skip

    @property
    def matrix(self) -> Any:
        """The matrices."""
        return self._matrix

    @property
    def _experimental_parameter_ndims_to_matrix_ndims(self) -> dict[str, Any]:
        return {"matrix": 2}

    def _shape(self) -> Any:
        return self._matrix.shape

    def _shape_tensor(self) -> Any:
        return ag.shape(self._matrix)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return ag.matmul(self._matrix, x, adjoint_a=adjoint, adjoint_b=adjoint_arg)

    def _to_dense(self) -> Any:
        return ag.convert_to_tensor(self._matrix)


@makes("triangle")
class LinearOperatorLowerTriangular(LinearOperator):
    """Square lower triangular matrices.

    tril: `[..., N, N]`; what is above the diagonals counts as zero. Raises ValueError for fewer than two dimensions.
    """

    def __init__(
        self,
        tril: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorLowerTriangular",
    ) -> None:
        parameters = dict(locals())
        if is_square is False:
            raise ValueError("Only square lower triangular operators supported at this time.")
        self._tril = _need_rank(tril, 2, "tril")
        super().__init__(
            self._tril.dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, True, name, parameters
        )

    @property
    def tril(self) -> Any:
        """The matrices, with what was given above the diagonals."""
        return self._tril

    @property
    def _experimental_parameter_ndims_to_matrix_ndims(self) -> dict[str, Any]:
        return {"tril": 2}

    def _get_tril(self) -> Any:
        return ag.linalg.band_part(self._tril, -1, 0)

    def _shape(self) -> Any:
        return self._tril.shape

    def _shape_tensor(self) -> Any:
        return ag.shape(self._tril)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return ag.matmul(self._get_tril(), x, adjoint_a=adjoint, adjoint_b=adjoint_arg)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        tril, rhs = with_common_batch(self._tril, last_two_swapped(rhs) if adjoint_arg else rhs)
        return ag.linalg.triangular_solve(tril, rhs, lower=True, adjoint=adjoint)

    def _determinant(self) -> Any:
        return ag.reduce_prod(self._diag_part(), axis=-1)

    def _log_abs_determinant(self) -> Any:
        return ag.reduce_sum(ag.math.log(ag.abs(self._diag_part())), axis=-1)

    def _to_dense(self) -> Any:
        return self._get_tril()

    def _diag_part(self) -> Any:
        return ag.linalg.diag_part(self._tril)

    def _eigvals(self) -> Any:
        return self._diag_part()

    def _assert_non_singular(self) -> Any:
        return ag.debugging.assert_none_equal(
            self._diag_part(), ag.zeros([], self.dtype),
            message="Singular operator:  Diagonal contained zero values.",
        )  # fmt: skip

    def _linop_matmul(self, left_operator: Any, right_operator: Any) -> LinearOperator:
        hints: dict[str, Any] = {
            "is_non_singular": bool(left_operator.is_non_singular and right_operator.is_non_singular) or None,
            "is_square": True,
        }
        tril = self._get_tril()
        if isinstance(right_operator, LinearOperatorIdentity):
            return super()._linop_matmul(left_operator, right_operator)
        if isinstance(right_operator, LinearOperatorScaledIdentity):
            scale = ag.convert_to_tensor(right_operator.multiplier)[..., None, None]
            return LinearOperatorLowerTriangular(tril * scale, **hints)
        if isinstance(right_operator, LinearOperatorDiag):
            return LinearOperatorLowerTriangular(
                tril * ag.convert_to_tensor(right_operator.diag)[..., None, :], **hints
            )  # fmt: skip
        if isinstance(right_operator, LinearOperatorLowerTriangular):
            return LinearOperatorLowerTriangular(ag.matmul(tril, right_operator.to_dense()), **hints)
        return super()._linop_matmul(left_operator, right_operator)


class LinearOperatorHouseholder(LinearOperator):
    """Reflections about the hyperplanes that are orthogonal to vectors: `I - 2 v v^H / |v|^2`.

    reflection_axis: the vectors v, `[..., N]`. Raises ValueError for a scalar, and for hints that say otherwise.
    """

    def __init__(
        self,
        reflection_axis: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorHouseholder",
    ) -> None:
        parameters = dict(locals())
        self._reflection_axis = _need_rank(reflection_axis, 1, "reflection_axis")
        if is_self_adjoint is False:
            raise ValueError("A Householder operator is always self adjoint.")
        if is_positive_definite:
            raise ValueError("A Householder operator is always non-positive definite.")
        if is_square is False:
            raise ValueError("A Householder operator is always square.")
        if is_non_singular is False:
            raise ValueError("A Householder operator is always non-singular.")
        super().__init__(self._reflection_axis.dtype, None, True, True, False, True, name, parameters)

    @property
    def reflection_axis(self) -> Any:
        """The vectors."""
        return self._reflection_axis

    @property
    def _experimental_parameter_ndims_to_matrix_ndims(self) -> dict[str, Any]:
        return {"reflection_axis": 1}

    def _shape(self) -> Any:
        return self._reflection_axis.shape.concatenate(self._reflection_axis.shape[-1:])

    def _shape_tensor(self) -> Any:
        shape = ag.shape(self._reflection_axis)
        return ag.concat([shape, shape[-1:]], 0)

    def _unit(self) -> Any:
        axis = ag.convert_to_tensor(self._reflection_axis)
        return axis / ag.norm(axis, axis=-1, keepdims=True)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        x = last_two_swapped(x) if adjoint_arg else x
        unit = self._unit()[..., None]
        return x - 2 * unit * ag.matmul(unit, x, adjoint_a=True)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._matmul(rhs, adjoint, adjoint_arg)

    def _determinant(self) -> Any:
        return -ag.ones(self.batch_shape_tensor(), self.dtype)

    def _log_abs_determinant(self) -> Any:
        return ag.zeros(self.batch_shape_tensor(), self.dtype)

    def _trace(self) -> Any:
        return (ag.cast(self.domain_dimension_tensor(), self.dtype) - 2) * ag.ones(
            self.batch_shape_tensor(), self.dtype
        )

    def _diag_part(self) -> Any:
        unit = self._unit()
        return 1 - 2 * unit * conjugated(unit)

    def _to_dense(self) -> Any:
        unit = self._unit()[..., None]
        return ag.eye(self.domain_dimension_tensor(), dtype=self.dtype) - 2 * unit * last_two_swapped(unit)

    def _eigvals(self) -> Any:
        shape = self.shape_tensor()[:-2]
        ones = ag.ones(ag.concat([shape, [self.domain_dimension_tensor() - 1]], 0), self.dtype)
        return ag.concat([-ag.ones(ag.concat([shape, [1]], 0), self.dtype), ones], -1)

    def _cond(self) -> Any:
        return ag.ones(self.batch_shape_tensor(), self.dtype.real_dtype)

    def _linop_inverse(self) -> LinearOperator:
        return self


class LinearOperatorPermutation(LinearOperator):
    """Permutations: row i of a product is row `perm[i]` of the argument.

    perm: `[..., N]`, integers, each from 0 to N - 1 once. dtype: that of the matrices.
    Raises ValueError for a scalar, and for a vector that isn't a permutation.
    """

    def __init__(
        self,
        perm: Any,
        dtype: Any = ag.float32,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorPermutation",
    ) -> None:
        parameters = dict(locals())
        self._perm = _need_rank(perm, 1, "perm")
        if not self._perm.dtype.is_integer:
            raise TypeError(f"Argument `perm` must be integer dtype. Found: {self._perm}.")
        known = ag.get_static_value(self._perm)
        if known is not None and (np.sort(known, axis=-1) != np.arange(known.shape[-1])).any():
            raise ValueError(f"Argument `perm` must have each integer from 0 to {known.shape[-1] - 1} once: {known}.")
        if is_non_singular is False or is_square is False:
            raise ValueError("A Permutation operator is always non-singular and square.")
        super().__init__(dtype, None, True, is_self_adjoint, is_positive_definite, True, name, parameters)

    @property
    def perm(self) -> Any:
        """The permutations."""
        return self._perm

    @property
    def _experimental_parameter_ndims_to_matrix_ndims(self) -> dict[str, Any]:
        return {"perm": 1}

    def _shape(self) -> Any:
        return self._perm.shape.concatenate(self._perm.shape[-1:])

    def _shape_tensor(self) -> Any:
        shape = ag.shape(self._perm)
        return ag.concat([shape, shape[-1:]], 0)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        x = last_two_swapped(x) if adjoint_arg else x
        perm = ag.argsort(self._perm, axis=-1) if adjoint else ag.convert_to_tensor(self._perm)
        batch = ag.broadcast_dynamic_shape(ag.shape(perm)[:-1], ag.shape(x)[:-2])
        perm = ag.broadcast_to(perm, ag.concat([batch, ag.shape(perm)[-1:]], 0))
        x = ag.broadcast_to(x, ag.concat([batch, ag.shape(x)[-2:]], 0))
        return ag.gather(x, perm, axis=-2, batch_dims=len(perm.shape) - 1)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._matmul(rhs, adjoint=not adjoint, adjoint_arg=adjoint_arg)

    def _determinant(self) -> Any:
        return ag.linalg.det(self.to_dense())

    def _log_abs_determinant(self) -> Any:
        return ag.zeros(self.batch_shape_tensor(), self.dtype.real_dtype)

    def _to_dense(self) -> Any:
        return ag.one_hot(self._perm, self.domain_dimension_tensor(), dtype=self.dtype)

    def _cond(self) -> Any:
        return ag.ones(self.batch_shape_tensor(), self.dtype.real_dtype)


class LinearOperatorTridiag(LinearOperator):
    """Square tridiagonal matrices.

    diagonals: as `diagonals_format` says. "compact": `[..., 3, N]`, the superdiagonal (whose last entry doesn't count),
    the diagonal, and the subdiagonal (whose first doesn't). "sequence": these three, of N - 1, N and N - 1 or all of N
    entries. "matrix": `[..., N, N]`, of which only the three diagonals count.
    """

    def __init__(
        self,
        diagonals: Any,
        diagonals_format: str = "compact",
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorTridiag",
    ) -> None:
        parameters = dict(locals())
        if diagonals_format not in ("compact", "sequence", "matrix"):
            raise ValueError(
                f"Argument `diagonals_format` must be one of compact, matrix, sequence. Found : {diagonals_format}"
            )
        if is_square is False:
            raise ValueError("Only square tridiagonal operators currently supported.")
        whole = diagonals_format != "sequence"
        given: Any = _need_rank(diagonals, 2, "diagonals") if whole else list(map(reference, diagonals))
        self._diagonals, self._diagonals_format = given, diagonals_format
        dtype = (given if whole else given[1]).dtype
        super().__init__(
            dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, True, name, parameters
        )  # fmt: skip

    @property
    def diagonals(self) -> Any:
        """What the operator was made of."""
        return self._diagonals

    @property
    def diagonals_format(self) -> str:
        """How the diagonals were given."""
        return self._diagonals_format

    @property
    def _experimental_parameter_ndims_to_matrix_ndims(self) -> dict[str, Any]:
        return {"diagonals": 1 if self._diagonals_format == "sequence" else 2}

    def _parts(self) -> tuple[Any, Any, Any]:
        """The superdiagonal, diagonal and subdiagonal, each of N entries."""
        if self._diagonals_format == "compact":
            upper, main, lower = ag.unstack(ag.convert_to_tensor(self._diagonals), num=3, axis=-2)
            return upper, main, lower
        if self._diagonals_format == "sequence":
            upper, main, lower = map(ag.convert_to_tensor, self._diagonals)
        else:
            matrix = ag.convert_to_tensor(self._diagonals)
            upper, main, lower = (ag.linalg.diag_part(matrix, k=k) for k in (1, 0, -1))
        size = ag.shape(main)[-1]
        return _filled(upper, size, after=True), main, _filled(lower, size, after=False)

    def _shape(self) -> Any:
        if self._diagonals_format == "matrix":
            return self._diagonals.shape
        if self._diagonals_format == "compact":
            return self._diagonals.shape[:-2].concatenate([self._diagonals.shape[-1]] * 2)
        shape = self._diagonals[1].shape
        for each in self._diagonals[::2]:
            shape = ag.broadcast_static_shape(shape[:-1], each.shape[:-1]).concatenate(shape[-1:])
        return shape.concatenate(shape[-1:])

    def _shape_tensor(self) -> Any:
        upper, main, lower = self._parts()
        shape = ag.broadcast_dynamic_shape(ag.shape(upper), ag.broadcast_dynamic_shape(ag.shape(main), ag.shape(lower)))
        return ag.concat([shape, shape[-1:]], 0)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        upper, main, lower = self._parts()
        if adjoint:
            before, after = conjugated(lower), conjugated(upper)
            upper, main, lower = ag.roll(before, -1, axis=-1), conjugated(main), ag.roll(after, 1, axis=-1)
        x = last_two_swapped(x) if adjoint_arg else x
        zero = ag.zeros_like(x[..., :1, :])
        below, above = ag.concat([x[..., 1:, :], zero], -2), ag.concat([zero, x[..., :-1, :]], -2)
        return upper[..., None] * below + main[..., None] * x + lower[..., None] * above

    def _to_dense(self) -> Any:
        parts = [ag.broadcast_to(each, self.shape_tensor()[:-1]) for each in self._parts()]
        upper, main, lower = parts
        return (
            ag.linalg.diag(main) + ag.linalg.diag(upper[..., :-1], k=1) + ag.linalg.diag(lower[..., 1:], k=-1)
        )  # fmt: skip

    def _diag_part(self) -> Any:
        return ag.broadcast_to(self._parts()[1], self.shape_tensor()[:-1])

    def _linop_adjoint(self) -> LinearOperator:
        upper, main, lower = map(conjugated, self._parts())
        return LinearOperatorTridiag(
            [ag.roll(lower, -1, axis=-1), main, ag.roll(upper, 1, axis=-1)], "sequence", **hints_of(self)
        )


def _filled(diagonal: Any, size: Any, after: bool) -> Any:
    """A diagonal beside the main one, of one entry less or with one that doesn't count, with `size` entries."""
    short = diagonal[..., : size - 1] if after else diagonal[..., ag.shape(diagonal)[-1] - size + 1 :]
    zero = ag.zeros_like(short[..., :1])
    return ag.concat([short, zero] if after else [zero, short], -1)


class LinearOperatorToeplitz(LinearOperator):
    """Square matrices with the same number along each diagonal.

    col, row: the first columns and rows, `[..., N]`; the first entry of `row` doesn't count.
    """

    def __init__(
        self,
        col: Any,
        row: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorToeplitz",
    ) -> None:
        parameters = dict(locals())
        self._col, self._row = _need_rank(col, 1, "col"), _need_rank(row, 1, "row")
        if is_square is False:
            raise ValueError("Only square Toeplitz operators currently supported.")
        super().__init__(
            self._row.dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, True, name, parameters
        )

    @property
    def col(self) -> Any:
        """The first columns."""
        return self._col

    @property
    def row(self) -> Any:
        """The first rows."""
        return self._row

    @property
    def _experimental_parameter_ndims_to_matrix_ndims(self) -> dict[str, Any]:
        return {"row": 1, "col": 1}

    def _shape(self) -> Any:
        shape = ag.broadcast_static_shape(self._row.shape, self._col.shape)
        return shape.concatenate(shape[-1:])

    def _shape_tensor(self) -> Any:
        shape = ag.broadcast_dynamic_shape(ag.shape(self._row), ag.shape(self._col))
        return ag.concat([shape, shape[-1:]], 0)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        x = last_two_swapped(x) if adjoint_arg else x
        col, row = ag.convert_to_tensor(self._col), ag.convert_to_tensor(self._row)
        if adjoint:
            col, row = ag.concat([conjugated(col[..., :1]), conjugated(row[..., 1:])], -1), conjugated(col)
        # As part of a circulant matrix of twice the size, which Fourier transforms diagonalise.
        size = self.domain_dimension_tensor()
        circulant = ag.concat([col, ag.zeros_like(col[..., :1]), ag.reverse(row[..., 1:], [-1])], -1)
        kind = ag.complex128 if self.dtype.size >= 8 and self.dtype != ag.complex64 else ag.complex64
        spectrum = ag.signal.fft(ag.cast(circulant, kind))[..., None, :]
        columns = ag.cast(ag.linalg.matrix_transpose(x), kind)
        padded = ag.concat([columns, ag.zeros_like(columns)], -1)
        found = ag.linalg.matrix_transpose(ag.signal.ifft(spectrum * ag.signal.fft(padded)))[..., :size, :]
        return ag.cast(found if self.dtype.is_complex else ag.math.real(found), self.dtype)

    def _to_dense(self) -> Any:
        size = self.domain_dimension_tensor()
        places = ag.range(size)
        offsets = places[:, None] - places[None, :]
        shape = self.shape_tensor()[:-1]
        col, row = ag.broadcast_to(self._col, shape), ag.broadcast_to(self._row, shape)
        entries = ag.concat([ag.reverse(row[..., 1:], [-1]), col], -1)
        return ag.gather(entries, offsets + size - 1, axis=-1)

    def _diag_part(self) -> Any:
        return ag.broadcast_to(ag.convert_to_tensor(self._col)[..., :1], self.shape_tensor()[:-1])

    def _trace(self) -> Any:
        first = ag.convert_to_tensor(self._col)[..., 0]
        return ag.cast(self.domain_dimension_tensor(), self.dtype) * ag.broadcast_to(first, self.batch_shape_tensor())
