"""Identities, zeros, and diagonal matrices."""

from __future__ import annotations

from typing import Any

import autograph as ag
from autograph.linear_operators.base import LinearOperator, conjugated, hints_of, last_two_swapped, reference
from runtime.shapes import TensorShape


def shared(left: LinearOperator, right: LinearOperator) -> dict[str, Any]:
    """The hints of a product of two operators that commute: both are diagonal."""
    definite = left.is_positive_definite and right.is_positive_definite
    adjoint = left.is_self_adjoint and right.is_self_adjoint
    return {
        "is_non_singular": bool(left.is_non_singular and right.is_non_singular) or None,
        "is_self_adjoint": bool(adjoint) or None,
        "is_positive_definite": bool(definite and adjoint) or None,
        "is_square": True,
    }


class LinearOperatorDiag(LinearOperator):
    """Square diagonal matrices.

    diag: the diagonals, `[..., N]`, of floats or complex numbers. Raises ValueError for a scalar.
    """

    def __init__(
        self,
        diag: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorDiag",
    ) -> None:
        parameters = dict(locals())
        self._diag = reference(diag)
        if self._diag.shape.rank == 0:
            raise ValueError(f"Argument `diag` must have at least 1 dimension. Found: {self._diag}.")
        if not self._diag.dtype.is_complex:
            if is_self_adjoint is False:
                raise ValueError("A real diagonal operator is always self adjoint.")
            is_self_adjoint = True
        if is_square is False:
            raise ValueError("Only square diagonal operators currently supported.")
        super().__init__(
            self._diag.dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, True, name, parameters
        )

    @property
    def diag(self) -> Any:
        """The diagonals."""
        return self._diag

    @property
    def _experimental_parameter_ndims_to_matrix_ndims(self) -> dict[str, Any]:
        return {"diag": 1}

    def _shape(self) -> Any:
        return self._diag.shape.concatenate(self._diag.shape[-1:])

    def _shape_tensor(self) -> Any:
        shape = ag.shape(self._diag)
        return ag.concat([shape, shape[-1:]], 0)

    def _scaling(self, adjoint: bool) -> Any:
        return conjugated(self._diag) if adjoint else ag.convert_to_tensor(self._diag)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._scaling(adjoint)[..., None] * (last_two_swapped(x) if adjoint_arg else x)

    def _matvec(self, x: Any, adjoint: bool = False) -> Any:
        return self._scaling(adjoint) * x

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return (last_two_swapped(rhs) if adjoint_arg else rhs) / self._scaling(adjoint)[..., None]

    def _solvevec(self, rhs: Any, adjoint: bool = False) -> Any:
        return rhs / self._scaling(adjoint)

    def _determinant(self) -> Any:
        return ag.reduce_prod(self._diag, axis=-1)

    def _log_abs_determinant(self) -> Any:
        return ag.reduce_sum(ag.math.log(ag.abs(self._diag)), axis=-1)

    def _to_dense(self) -> Any:
        return ag.linalg.diag(self._diag)

    def _diag_part(self) -> Any:
        return ag.convert_to_tensor(self._diag)

    def _add_to_tensor(self, x: Any) -> Any:
        shape = ag.broadcast_dynamic_shape(self.shape_tensor(), ag.shape(x))
        x = ag.broadcast_to(x, shape)
        return ag.linalg.set_diag(x, ag.linalg.diag_part(x) + self._diag)

    def _eigvals(self) -> Any:
        return ag.convert_to_tensor(self._diag)

    def _cond(self) -> Any:
        sizes = ag.abs(self._diag)
        return ag.reduce_max(sizes, axis=-1) / ag.reduce_min(sizes, axis=-1)

    def _assert_non_singular(self) -> Any:
        return ag.debugging.assert_none_equal(
            self._diag, ag.zeros([], self.dtype), message="Singular operator:  Diagonal contained zero values."
        )

    def _assert_positive_definite(self) -> Any:
        real = ag.math.real(self._diag)
        return ag.debugging.assert_positive(real, message="Not positive definite: the diagonal isn't positive.")

    def _assert_self_adjoint(self) -> Any:
        imaginary = ag.math.imag(self._diag)
        return ag.debugging.assert_equal(
            imaginary, ag.zeros_like(imaginary), message="This diagonal operator contained non-zero imaginary values."
        )

    def _linop_adjoint(self) -> LinearOperator:
        return LinearOperatorDiag(conjugated(self._diag), **hints_of(self))

    def _linop_inverse(self) -> LinearOperator:
        return LinearOperatorDiag(1 / ag.convert_to_tensor(self._diag), **hints_of(self))

    def _linop_cholesky(self) -> LinearOperator:
        return LinearOperatorDiag(ag.sqrt(self._diag), True, True, True, True)

    def _linop_matmul(self, left_operator: Any, right_operator: Any) -> LinearOperator:
        if isinstance(right_operator, LinearOperatorDiag):
            diag = ag.convert_to_tensor(left_operator.diag) * right_operator.diag
            return LinearOperatorDiag(diag, **shared(left_operator, right_operator))
        return super()._linop_matmul(left_operator, right_operator)


class LinearOperatorIdentity(LinearOperator):
    """Identity matrices.

    num_rows: N. batch_shape: the shape of the batch, an integer vector (default: one matrix). dtype: float32 where it
    is None. Raises ValueError for a negative number of rows, and for hints that say that it isn't an identity.
    """

    def __init__(
        self,
        num_rows: Any,
        batch_shape: Any = None,
        dtype: Any = None,
        is_non_singular: bool | None = True,
        is_self_adjoint: bool | None = True,
        is_positive_definite: bool | None = True,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorIdentity",
    ) -> None:
        parameters = dict(locals())
        dtype = ag.as_dtype(dtype or ag.float32)
        if not is_self_adjoint:
            raise ValueError("An identity operator is always self adjoint.")
        if not is_non_singular:
            raise ValueError("An identity operator is always non-singular.")
        if not is_positive_definite:
            raise ValueError("An identity operator is always positive-definite.")
        if not is_square:
            raise ValueError("An identity operator is always square.")
        super().__init__(dtype, None, True, True, True, True, name, parameters)
        self._num_rows, self._rows = num_rows, number_of_rows(num_rows)
        self._batch_shape = batch_shape

    def _shape(self) -> Any:
        return known_shape(self._batch_shape).concatenate([self._rows, self._rows])

    def _shape_tensor(self) -> Any:
        rows = ag.cast(ag.convert_to_tensor(self._num_rows), ag.int32)
        return ag.concat([shape_argument(self._batch_shape), [rows, rows]], 0)

    def _spread(self, x: Any) -> Any:
        """x, with the batch of the operator."""
        if self._batch_shape is None:
            return x
        batch = ag.broadcast_dynamic_shape(self.batch_shape_tensor(), ag.shape(x)[:-2])
        return ag.broadcast_to(x, ag.concat([batch, ag.shape(x)[-2:]], 0))

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._spread(last_two_swapped(x) if adjoint_arg else x)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._matmul(rhs, adjoint_arg=adjoint_arg)

    def _determinant(self) -> Any:
        return ag.ones(self.batch_shape_tensor(), self.dtype)

    def _log_abs_determinant(self) -> Any:
        return ag.zeros(self.batch_shape_tensor(), self.dtype)

    def _diag_part(self) -> Any:
        return ag.ones(self.shape_tensor()[:-1], self.dtype)

    def _trace(self) -> Any:
        return ag.cast(self.domain_dimension_tensor(), self.dtype) * ag.ones(self.batch_shape_tensor(), self.dtype)

    def _to_dense(self) -> Any:
        return ag.eye(self.domain_dimension_tensor(), batch_shape=self.batch_shape_tensor(), dtype=self.dtype)

    def _eigvals(self) -> Any:
        return self._diag_part()

    def _cond(self) -> Any:
        return ag.ones(self.batch_shape_tensor(), self.dtype)

    def add_to_tensor(self, mat: Any, name: str = "add_to_tensor") -> Any:
        """The matrices added to a tensor."""
        return self._add_to_tensor(self._operand(mat))

    def _assert_non_singular(self) -> Any:
        return ag.no_op()

    def _assert_positive_definite(self) -> Any:
        return ag.no_op()

    def _assert_self_adjoint(self) -> Any:
        return ag.no_op()

    @property
    def _experimental_parameter_ndims_to_matrix_ndims(self) -> dict[str, Any]:
        return {}

    def _linop_adjoint(self) -> LinearOperator:
        return self

    def _linop_inverse(self) -> LinearOperator:
        return self

    def _linop_cholesky(self) -> LinearOperator:
        return self

    def _linop_matmul(self, left_operator: Any, right_operator: Any) -> LinearOperator:
        return right_operator if self._batch_shape is None else super()._linop_matmul(left_operator, right_operator)


def number_of_rows(num_rows: Any) -> int | None:
    """A number of rows where it is known. Raises ValueError for one that is negative or no integer."""
    known = ag.get_static_value(num_rows)
    if known is None:
        return None
    if getattr(known, "ndim", 0) != 0:
        raise ValueError(f"Argument `num_rows` must be a 0-D Tensor. Found: {num_rows}")
    if int(known) != known:
        raise TypeError(f"Argument `num_rows` must be an integer. Found: {num_rows}")
    if known < 0:
        raise ValueError(f"Argument `num_rows` must be non-negative. Found: {num_rows}")
    return int(known)


def known_shape(batch_shape: Any) -> TensorShape:
    """What is known of a batch's shape, given as an argument (None: no batch)."""
    if batch_shape is None:
        return TensorShape([])
    known = ag.get_static_value(batch_shape)
    if known is None:
        return TensorShape([None] * ag.convert_to_tensor(batch_shape).shape[0])
    if getattr(known, "ndim", 1) != 1:
        raise ValueError(f"Argument `batch_shape` must be a 1-D Tensor. Found: {batch_shape}")
    if any(int(size) < 0 for size in known):
        raise ValueError(f"Argument `batch_shape` must be non-negative. Found: {batch_shape}")
    return TensorShape([int(size) for size in known])


def shape_argument(batch_shape: Any) -> Any:
    """A batch's shape, given as an argument (None: no batch), as an int32 vector."""
    return ag.constant([], ag.int32) if batch_shape is None else ag.cast(batch_shape, ag.int32)


class LinearOperatorScaledIdentity(LinearOperator):
    """Multiples of the identity.

    num_rows: N. multiplier: the factors, `[...]`, of floats or complex numbers.
    Raises ValueError for a negative number of rows.
    """

    def __init__(
        self,
        num_rows: Any,
        multiplier: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorScaledIdentity",
    ) -> None:
        parameters = dict(locals())
        self._multiplier = reference(multiplier)
        if not self._multiplier.dtype.is_complex:
            if is_self_adjoint is False:
                raise ValueError("A real diagonal operator is always self adjoint.")
            is_self_adjoint = True
        if not is_square:
            raise ValueError("A ScaledIdentity operator is always square.")
        self._num_rows, self._rows = num_rows, number_of_rows(num_rows)
        super().__init__(
            self._multiplier.dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, True, name, parameters
        )

    @property
    def multiplier(self) -> Any:
        """The factors."""
        return self._multiplier

    @property
    def _experimental_parameter_ndims_to_matrix_ndims(self) -> dict[str, Any]:
        return {"multiplier": 0}

    def _shape(self) -> Any:
        return self._multiplier.shape.concatenate([self._rows, self._rows])

    def _shape_tensor(self) -> Any:
        rows = ag.cast(ag.convert_to_tensor(self._num_rows), ag.int32)
        return ag.concat([ag.shape(self._multiplier), [rows, rows]], 0)

    def _factor(self, adjoint: bool) -> Any:
        return (conjugated(self._multiplier) if adjoint else ag.convert_to_tensor(self._multiplier))[..., None, None]

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._factor(adjoint) * (last_two_swapped(x) if adjoint_arg else x)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return (last_two_swapped(rhs) if adjoint_arg else rhs) / self._factor(adjoint)

    def _determinant(self) -> Any:
        return ag.convert_to_tensor(self._multiplier) ** ag.cast(self.domain_dimension_tensor(), self.dtype)

    def _log_abs_determinant(self) -> Any:
        size = ag.abs(self._multiplier)
        return ag.cast(self.domain_dimension_tensor(), size.dtype) * ag.math.log(size)

    def _diag_part(self) -> Any:
        return ag.convert_to_tensor(self._multiplier)[..., None] * ag.ones(
            [self.domain_dimension_tensor()], self.dtype
        )  # fmt: skip

    def _trace(self) -> Any:
        return self._multiplier * ag.cast(self.domain_dimension_tensor(), self.dtype)

    def _to_dense(self) -> Any:
        return self._factor(False) * ag.eye(self.domain_dimension_tensor(), dtype=self.dtype)

    def _eigvals(self) -> Any:
        return self._diag_part()

    def _cond(self) -> Any:
        return ag.ones_like(ag.abs(self._multiplier))

    def _assert_non_singular(self) -> Any:
        return ag.debugging.assert_positive(ag.abs(self._multiplier), message="LinearOperator was singular")

    def _assert_positive_definite(self) -> Any:
        real = ag.math.real(self._multiplier)
        return ag.debugging.assert_positive(real, message="LinearOperator was not positive definite.")

    def _assert_self_adjoint(self) -> Any:
        imaginary = ag.math.imag(self._multiplier)
        return ag.debugging.assert_equal(
            imaginary, ag.zeros_like(imaginary), message="LinearOperator was not self-adjoint"
        )  # fmt: skip

    def _linop_adjoint(self) -> LinearOperator:
        return LinearOperatorScaledIdentity(self._num_rows, conjugated(self._multiplier), **hints_of(self))

    def _linop_inverse(self) -> LinearOperator:
        return LinearOperatorScaledIdentity(
            self._num_rows, 1 / ag.convert_to_tensor(self._multiplier), **hints_of(self)
        )

    def _linop_cholesky(self) -> LinearOperator:
        return LinearOperatorScaledIdentity(self._num_rows, ag.sqrt(self._multiplier), True, True, True, True)

    def _linop_matmul(self, left_operator: Any, right_operator: Any) -> LinearOperator:
        hints = shared(left_operator, right_operator)
        factor = ag.convert_to_tensor(self._multiplier)
        if isinstance(right_operator, LinearOperatorScaledIdentity):
            return LinearOperatorScaledIdentity(self._num_rows, factor * right_operator.multiplier, **hints)
        if isinstance(right_operator, LinearOperatorDiag):
            return LinearOperatorDiag(factor[..., None] * right_operator.diag, **hints)
        return super()._linop_matmul(left_operator, right_operator)


class LinearOperatorZeros(LinearOperator):
    """Matrices of zeros.

    num_rows, num_columns: M and N (default: M). batch_shape: the shape of the batch (default: one matrix).
    Raises ValueError for negative sizes, and for hints that say that it isn't zero.
    """

    def __init__(
        self,
        num_rows: Any,
        num_columns: Any = None,
        batch_shape: Any = None,
        dtype: Any = None,
        is_non_singular: bool | None = False,
        is_self_adjoint: bool | None = True,
        is_positive_definite: bool | None = False,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorZeros",
    ) -> None:
        parameters = dict(locals())
        if not is_self_adjoint and is_square:
            raise ValueError("A zero operator is always self adjoint.")
        if is_non_singular:
            raise ValueError("A zero operator is always singular.")
        if is_positive_definite:
            raise ValueError("A zero operator is always not positive-definite.")
        self._num_rows, self._num_columns = num_rows, num_rows if num_columns is None else num_columns
        self._rows, self._columns = number_of_rows(num_rows), number_of_rows(self._num_columns)
        if is_square and self._rows is not None and self._columns is not None and self._rows != self._columns:
            raise ValueError(f"LinearOperatorZeros initialized as is_square={is_square}, but is not square")
        self._batch_shape = batch_shape
        super().__init__(
            ag.as_dtype(dtype or ag.float32), None, False, is_self_adjoint if is_square else None, False, is_square,
            name, parameters,
        )  # fmt: skip

    def _argument(self, name: str) -> Any:
        return self._parameters[name]

    @property
    def _experimental_parameter_ndims_to_matrix_ndims(self) -> dict[str, Any]:
        return {}

    def _shape(self) -> Any:
        return known_shape(self._batch_shape).concatenate([self._rows, self._columns])

    def _shape_tensor(self) -> Any:
        sizes = [ag.cast(ag.convert_to_tensor(each), ag.int32) for each in (self._num_rows, self._num_columns)]
        return ag.concat([shape_argument(self._batch_shape), sizes], 0)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        x = last_two_swapped(x) if adjoint_arg else x
        rows = self.domain_dimension_tensor() if adjoint else self.range_dimension_tensor()
        batch = ag.broadcast_dynamic_shape(self.batch_shape_tensor(), ag.shape(x)[:-2])
        return ag.zeros(ag.concat([batch, [rows, ag.shape(x)[-1]]], 0), x.dtype)

    def _determinant(self) -> Any:
        return ag.zeros(self.batch_shape_tensor(), self.dtype)

    def _log_abs_determinant(self) -> Any:
        return ag.fill(self.batch_shape_tensor(), ag.cast(float("-inf"), self.dtype.real_dtype))

    def _to_dense(self) -> Any:
        return ag.zeros(self.shape_tensor(), self.dtype)

    def _diag_part(self) -> Any:
        shape = self.shape_tensor()
        return ag.zeros(ag.concat([shape[:-2], [ag.minimum(shape[-1], shape[-2])]], 0), self.dtype)

    def _add_to_tensor(self, x: Any) -> Any:
        return x + self._to_dense()

    def _eigvals(self) -> Any:
        return self._diag_part()

    def _assert_non_singular(self) -> Any:
        raise ag.errors.InvalidArgumentError("Zero operators are always non-invertible.")

    def _assert_positive_definite(self) -> Any:
        raise ag.errors.InvalidArgumentError("Zero operators are always non-positive definite.")

    def _assert_self_adjoint(self) -> Any:
        return ag.no_op()
