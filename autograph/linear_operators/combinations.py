"""Operators made of operators."""

from __future__ import annotations

import functools
import operator as python_operator
from collections.abc import Sequence
from typing import Any

import autograph as ag
from autograph.linear_operators.base import (
    HINTS,
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
    LinearOperatorZeros,
)
from autograph.linear_operators.matrices import LinearOperatorFullMatrix, LinearOperatorLowerTriangular
from autograph.linear_operators.parts import (
    OfOperator,
    OfOperators,
    all_are,
    batch_shape,
    batch_shape_tensor,
    common_dtype,
    same_batch,
    spread,
)


@makes("adjoint")
class LinearOperatorAdjoint(OfOperator):
    """The adjoint of an operator. Hints are those of the operator where they aren't given."""

    def __init__(
        self,
        operator: LinearOperator,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        parameters = dict(locals())
        self._operator = operator
        hints = _hints(operator, (is_non_singular, is_self_adjoint, is_positive_definite, is_square))
        super().__init__(
            operator.dtype, name=name or f"{operator.name}_adjoint", parameters=parameters, **dict(zip(HINTS, hints))
        )

    def _shape(self) -> Any:
        shape = self._operator.shape
        return shape[:-2].concatenate([shape[-1], shape[-2]]) if shape.rank is not None else shape

    def _shape_tensor(self) -> Any:
        shape = self._operator.shape_tensor()
        return ag.concat([shape[:-2], [shape[-1], shape[-2]]], 0)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._operator.matmul(x, adjoint=not adjoint, adjoint_arg=adjoint_arg)

    def _matvec(self, x: Any, adjoint: bool = False) -> Any:
        return self._operator.matvec(x, adjoint=not adjoint)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._operator.solve(rhs, adjoint=not adjoint, adjoint_arg=adjoint_arg)

    def _solvevec(self, rhs: Any, adjoint: bool = False) -> Any:
        return self._operator.solvevec(rhs, adjoint=not adjoint)

    def _determinant(self) -> Any:
        return conjugated(self._operator.determinant())

    def _log_abs_determinant(self) -> Any:
        return self._operator.log_abs_determinant()

    def _trace(self) -> Any:
        return conjugated(self._operator.trace())

    def _to_dense(self) -> Any:
        return last_two_swapped(self._operator.to_dense())

    def _linop_adjoint(self) -> LinearOperator:
        return self._operator


def _hints(operator: LinearOperator, given: tuple[bool | None, ...]) -> list[Any]:
    """Hints, taken from an operator where they aren't given. Raises ValueError where they contradict it."""
    found = []
    for (name, own), each in zip(hints_of(operator).items(), given):
        if each is not None and own is not None and each != own:
            raise ValueError(f"{operator.name} was {name}={own}, but the hint says {each}")
        found.append(own if each is None else each)
    return found


@makes("inverse")
class LinearOperatorInversion(OfOperator):
    """The inverse of an operator. Hints are those of the operator where they aren't given.

    Raises ValueError for an operator that is singular or not square, according to its hints.
    """

    def __init__(
        self,
        operator: LinearOperator,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        parameters = dict(locals())
        self._operator = operator
        if operator.is_square is False or is_square is False:
            raise ValueError("Inverse operators must be square.")
        if operator.is_non_singular is False or is_non_singular is False:
            raise ValueError("Inverse operators must be non-singular.")
        _, adjoint, definite, _ = _hints(
            operator, (is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        )  # fmt: skip
        super().__init__(
            operator.dtype, None, True, adjoint, definite, True, name or f"{operator.name}_inv", parameters
        )

    def _shape(self) -> Any:
        return self._operator.shape

    def _shape_tensor(self) -> Any:
        return self._operator.shape_tensor()

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._operator.solve(x, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._operator.matmul(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _determinant(self) -> Any:
        return 1 / self._operator.determinant()

    def _log_abs_determinant(self) -> Any:
        return -self._operator.log_abs_determinant()

    def _eigvals(self) -> Any:
        return 1 / self._operator.eigvals()

    def _linop_inverse(self) -> LinearOperator:
        return self._operator


class LinearOperatorComposition(OfOperators):
    """The product of operators, the first of which is applied last.

    Raises ValueError for no operators, or such whose dimensions don't fit, TypeError for different dtypes.
    """

    def __init__(
        self,
        operators: Sequence[LinearOperator],
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        parameters = dict(locals())
        self._operators = list(operators)
        dtype = common_dtype(self._operators)
        for left, right in zip(self._operators, self._operators[1:]):
            inner = left.domain_dimension, right.range_dimension
            if None not in inner and inner[0] != inner[1]:
                raise ValueError(f"Operators don't fit together: {left!r} and {right!r}")
        if all_are(self._operators, "is_non_singular"):
            if is_non_singular is False:
                raise ValueError(
                    "The composition of non-singular operators is always non-singular. Found hint is_non_singular=False"
                )
            is_non_singular = True
        if _is_with_adjoint(self._operators):  # A A^H
            is_square = is_self_adjoint = True
            is_positive_definite = True if is_non_singular else is_positive_definite
        super().__init__(
            dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, is_square,
            name or "_o_".join(each.name for each in self._operators), parameters,
        )  # fmt: skip

    def _shape(self) -> Any:
        ends = [self._operators[0].range_dimension, self._operators[-1].domain_dimension]
        return batch_shape(self._operators).concatenate(ends)

    def _shape_tensor(self) -> Any:
        ends = [self._operators[0].range_dimension_tensor(), self._operators[-1].domain_dimension_tensor()]
        return ag.concat([batch_shape_tensor(self._operators), ends], 0)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        first, *rest = self._operators if adjoint else reversed(self._operators)
        found = first.matmul(x, adjoint=adjoint, adjoint_arg=adjoint_arg)
        for each in rest:
            found = each.matmul(found, adjoint=adjoint)
        return found

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        if not all_are(self._operators, "is_square"):
            return super()._solve(rhs, adjoint, adjoint_arg)
        first, *rest = reversed(self._operators) if adjoint else self._operators
        found = first.solve(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)
        for each in rest:
            found = each.solve(found, adjoint=adjoint)
        return found

    def _determinant(self) -> Any:
        if not all_are(self._operators, "is_square"):
            return super()._determinant()
        return functools.reduce(python_operator.mul, [each.determinant() for each in self._operators])

    def _log_abs_determinant(self) -> Any:
        if not all_are(self._operators, "is_square"):
            return super()._log_abs_determinant()
        return functools.reduce(python_operator.add, [each.log_abs_determinant() for each in self._operators])

    def _to_dense(self) -> Any:
        found = self._operators[-1].to_dense()
        for each in reversed(self._operators[:-1]):
            found = each.matmul(found)
        return found

    def _linop_adjoint(self) -> LinearOperator:
        return LinearOperatorComposition([each.adjoint() for each in reversed(self._operators)], **hints_of(self))

    def _linop_inverse(self) -> LinearOperator:
        if not all_are(self._operators, "is_square"):
            return super()._linop_inverse()
        return LinearOperatorComposition([each.inverse() for each in reversed(self._operators)], **hints_of(self))


def _is_with_adjoint(operators: Sequence[LinearOperator]) -> bool:
    """Whether two operators are one and its adjoint."""
    if len(operators) != 2:
        return False
    left, right = operators
    return (
        getattr(right, "operator", None) is left
        if isinstance(right, LinearOperatorAdjoint)
        else (isinstance(left, LinearOperatorAdjoint) and left.operator is right)
    )


@makes("product")
def product(left: LinearOperator, right: LinearOperator) -> LinearOperator:
    """The product of two operators, simpler than a composition where their classes allow it."""
    for one, other in ((left, right), (right, left)):
        if isinstance(one, LinearOperatorIdentity) and one.batch_shape.rank == 0:
            return other
        if isinstance(one, LinearOperatorZeros) and left.is_square and right.is_square:
            return one
    if isinstance(left, LinearOperatorDiag) and isinstance(right, LinearOperatorScaledIdentity):
        return right._linop_matmul(right, left)
    if isinstance(right, LinearOperatorLowerTriangular) and isinstance(
        left, (LinearOperatorDiag, LinearOperatorScaledIdentity)
    ):
        rows = ag.convert_to_tensor(left.diag_part())[..., None]
        return LinearOperatorLowerTriangular(
            rows * right.to_dense(), bool(left.is_non_singular and right.is_non_singular) or None, is_square=True
        )
    hints: dict[str, Any] = {"is_square": bool(left.is_square and right.is_square) or None}
    hints["is_non_singular"] = bool(left.is_non_singular and right.is_non_singular) or None
    return LinearOperatorComposition([left, right], **hints)


class LinearOperatorKronecker(OfOperators):
    """The Kronecker product of operators. Raises ValueError for no operators, TypeError for different dtypes."""

    def __init__(
        self,
        operators: Sequence[LinearOperator],
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        parameters = dict(locals())
        self._operators = list(operators)
        dtype = common_dtype(self._operators)
        if all_are(self._operators, "is_square") and is_square is not False:
            is_square = True
        if all_are(self._operators, "is_non_singular"):
            if is_non_singular is False:
                raise ValueError(
                    "The Kronecker product of non-singular operators is always non-singular. Found hint "
                    "is_non_singular=False"
                )
            is_non_singular = True
        if all_are(self._operators, "is_self_adjoint"):
            if is_self_adjoint is False:
                raise ValueError(
                    "The Kronecker product of self-adjoint operators is always self-adjoint. Found hint "
                    "is_self_adjoint=False"
                )
            is_self_adjoint = True
        if all_are(self._operators, "is_positive_definite") and all_are(self._operators, "is_self_adjoint"):
            is_positive_definite = True
        super().__init__(
            dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, is_square,
            name or "_x_".join(each.name for each in self._operators), parameters,
        )  # fmt: skip

    def _shape(self) -> Any:
        ends = []
        for dimension in ("range_dimension", "domain_dimension"):
            sizes = [getattr(each, dimension) for each in self._operators]
            ends.append(None if None in sizes else functools.reduce(python_operator.mul, sizes))
        return batch_shape(self._operators).concatenate(ends)

    def _shape_tensor(self) -> Any:
        rows = functools.reduce(python_operator.mul, [each.range_dimension_tensor() for each in self._operators])
        columns = functools.reduce(python_operator.mul, [each.domain_dimension_tensor() for each in self._operators])
        return ag.concat([batch_shape_tensor(self._operators), [rows, columns]], 0)

    def _by_factors(self, method: str, x: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        """Applies each factor to its axis of the rows, as `[..., n1, n2, ..., R]`."""
        x = last_two_swapped(x) if adjoint_arg else x
        batch = ag.broadcast_dynamic_shape(ag.shape(x)[:-2], self.batch_shape_tensor())
        x = spread(x, batch, 2)
        columns = ag.shape(x)[-1:]
        is_wide = (method == "solve") != adjoint
        sizes = [
            each.range_dimension_tensor() if is_wide else each.domain_dimension_tensor() for each in self._operators
        ]
        # The factor whose turn it is has the first axis of the rows; the others, and the columns, come after it.
        for place, each in enumerate(self._operators):
            x = ag.reshape(x, ag.concat([batch, [sizes[place], -1]], 0))
            x = getattr(each, method)(x, adjoint=adjoint)
            height = ag.shape(x)[-2:-1]
            rest = ag.reshape(x, ag.concat([batch, height, [-1], columns], 0))
            rank = len(rest.shape)
            x = ag.transpose(rest, [*range(rank - 3), rank - 2, rank - 3, rank - 1])
            x = ag.reshape(x, ag.concat([batch, [-1], columns], 0))
        return x

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._by_factors("matmul", x, adjoint, adjoint_arg)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        if not all_are(self._operators, "is_square"):
            return super()._solve(rhs, adjoint, adjoint_arg)
        return self._by_factors("solve", rhs, adjoint, adjoint_arg)

    def _power(self, each: LinearOperator, dtype: Any) -> Any:
        return ag.cast(self.domain_dimension_tensor() // each.domain_dimension_tensor(), dtype)

    def _determinant(self) -> Any:
        parts = [each.determinant() ** self._power(each, each.dtype) for each in self._operators]
        return functools.reduce(python_operator.mul, parts)

    def _log_abs_determinant(self) -> Any:
        logs = [each.log_abs_determinant() for each in self._operators]
        parts = [log * self._power(each, log.dtype) for each, log in zip(self._operators, logs)]
        return functools.reduce(python_operator.add, parts)

    def _trace(self) -> Any:
        return functools.reduce(python_operator.mul, [each.trace() for each in self._operators])

    def _outer(self, vectors: Sequence[Any]) -> Any:
        found = vectors[0]
        for each in vectors[1:]:
            one, other = same_batch([found, each], 1)
            both = one[..., :, None] * other[..., None, :]
            found = ag.reshape(both, ag.concat([ag.shape(both)[:-2], [-1]], 0))
        return found

    def _diag_part(self) -> Any:
        if not all_are(self._operators, "is_square"):
            return super()._diag_part()
        return self._outer([each.diag_part() for each in self._operators])

    def _eigvals(self) -> Any:
        return self._outer([each.eigvals() for each in self._operators])

    def _to_dense(self) -> Any:
        found = self._operators[0].to_dense()
        for each in self._operators[1:]:
            one, other = with_common_batch(found, each.to_dense())
            both = one[..., :, None, :, None] * other[..., None, :, None, :]
            shape = ag.shape(both)
            sizes = [shape[-4] * shape[-3], shape[-2] * shape[-1]]
            found = ag.reshape(both, ag.concat([shape[:-4], sizes], 0))
        return ag.ensure_shape(found, self.shape)

    def _linop_adjoint(self) -> LinearOperator:
        return LinearOperatorKronecker([each.adjoint() for each in self._operators], **hints_of(self))

    def _linop_inverse(self) -> LinearOperator:
        if not all_are(self._operators, "is_square"):
            return super()._linop_inverse()
        return LinearOperatorKronecker([each.inverse() for each in self._operators], **hints_of(self))

    def _linop_cholesky(self) -> LinearOperator:
        if not all(each._can_use_cholesky() for each in self._operators):
            return super()._linop_cholesky()
        return LinearOperatorKronecker([each.cholesky() for each in self._operators], is_non_singular=True)


class LinearOperatorLowRankUpdate(LinearOperator):
    """`L + U D V^H`, with few columns in U and V.

    base_operator: L. u, v: `[..., M, K]` and `[..., N, K]` (v: u by default). diag_update: D's diagonal, `[..., K]`
    (the identity by default). is_diag_update_positive: whether D is known to be positive.
    Raises ValueError for hints that contradict the parts, and for a base of another class of numbers than floats.
    """

    def __init__(
        self,
        base_operator: LinearOperator,
        u: Any,
        diag_update: Any = None,
        v: Any = None,
        is_diag_update_positive: bool | None = None,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorLowRankUpdate",
    ) -> None:
        parameters = dict(locals())
        if diag_update is None:
            if is_diag_update_positive is False:
                raise ValueError("Default diagonal is the identity, which is positive, but the hint says it isn't")
            is_diag_update_positive = True
        self._use_cholesky = bool(
            base_operator.is_self_adjoint and base_operator.is_positive_definite and v is None
            and is_diag_update_positive
        )  # fmt: skip
        if base_operator.is_self_adjoint and v is None and not base_operator.dtype.is_complex:
            if is_self_adjoint is False:
                raise ValueError("LinearOperatorLowRankUpdate should be self-adjoint, but the hint says it isn't")
            is_self_adjoint = True
        if self._use_cholesky:
            if is_positive_definite is False or is_non_singular is False or is_self_adjoint is False:
                raise ValueError("Arguments imply self-adjoint positive-definite operator, but a hint denies it")
            is_positive_definite = is_self_adjoint = True
        self._base_operator = base_operator
        self._u = reference(u, base_operator.dtype)
        self._v = self._u if v is None else reference(v, base_operator.dtype)
        self._diag_update = None if diag_update is None else reference(diag_update, base_operator.dtype)
        self._is_diag_update_positive = is_diag_update_positive
        if not base_operator.shape[-2:-1].is_compatible_with(self._u.shape[-2:-1]):
            raise ValueError(f"base_operator and u don't fit: {base_operator.shape} and {self._u.shape}")
        super().__init__(
            base_operator.dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, is_square, name,
            parameters,
        )  # fmt: skip

    @property
    def base_operator(self) -> LinearOperator:
        """L."""
        return self._base_operator

    @property
    def u(self) -> Any:
        """U."""
        return self._u

    @property
    def v(self) -> Any:
        """V."""
        return self._v

    @property
    def is_diag_update_positive(self) -> bool | None:
        """Whether D is known to be positive."""
        return self._is_diag_update_positive

    @property
    def diag_update(self) -> Any:
        """The diagonal of D, or None for the identity."""
        return self._diag_update

    @property
    def diag_operator(self) -> LinearOperator:
        """D."""
        if self._diag_update is not None:
            return LinearOperatorDiag(self._diag_update, is_positive_definite=self._is_diag_update_positive)
        return LinearOperatorIdentity(ag.shape(self._u)[-1], dtype=self.dtype)

    @property
    def _experimental_parameter_ndims_to_matrix_ndims(self) -> dict[str, Any]:
        return {"base_operator": 0, "diag_update": 1, "u": 2, "v": 2}

    def _shape(self) -> Any:
        batch = self._base_operator.batch_shape
        for each in (self._u, self._v):
            batch = ag.broadcast_static_shape(batch, each.shape[:-2])
        if self._diag_update is not None:
            batch = ag.broadcast_static_shape(batch, self._diag_update.shape[:-1])
        return batch.concatenate(self._base_operator.shape[-2:])

    def _shape_tensor(self) -> Any:
        batch = self._base_operator.batch_shape_tensor()
        for each in (self._u, self._v):
            batch = ag.broadcast_dynamic_shape(batch, ag.shape(each)[:-2])
        if self._diag_update is not None:
            batch = ag.broadcast_dynamic_shape(batch, ag.shape(self._diag_update)[:-1])
        return ag.concat([batch, self._base_operator.shape_tensor()[-2:]], 0)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        left, right = (self._v, self._u) if adjoint else (self._u, self._v)
        inner = ag.matmul(right, x, adjoint_a=True, adjoint_b=adjoint_arg)
        update = ag.matmul(left, self.diag_operator.matmul(inner, adjoint=adjoint))
        return self._base_operator.matmul(x, adjoint=adjoint, adjoint_arg=adjoint_arg) + update

    def _capacitance(self) -> Any:
        """C = D^-1 + V^H L^-1 U (the matrix determinant lemma, and Woodbury's identity)."""
        inner = ag.matmul(self._v, self._base_operator.solve(ag.convert_to_tensor(self._u)), adjoint_a=True)
        if self._diag_update is None:
            return inner + ag.eye(ag.shape(inner)[-1], dtype=self.dtype)
        return inner + ag.linalg.diag(1 / ag.convert_to_tensor(self._diag_update))

    def _capacitance_operator(self) -> LinearOperator:
        known = True if self._use_cholesky else None
        return LinearOperatorFullMatrix(
            self._capacitance(), is_self_adjoint=known, is_positive_definite=known, is_square=True
        )

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        left, right = (self._v, self._u) if adjoint else (self._u, self._v)
        solved = self._base_operator.solve(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)
        inner = self._capacitance_operator().solve(ag.matmul(right, solved, adjoint_a=True), adjoint=adjoint)
        return solved - self._base_operator.solve(ag.matmul(left, inner), adjoint=adjoint)

    def _determinant(self) -> Any:
        return (
            self._capacitance_operator().determinant() * self.diag_operator.determinant()
            * self._base_operator.determinant()
        )  # fmt: skip

    def _log_abs_determinant(self) -> Any:
        return (
            self._capacitance_operator().log_abs_determinant() + self.diag_operator.log_abs_determinant()
            + self._base_operator.log_abs_determinant()
        )  # fmt: skip

    def _diag_part(self) -> Any:
        scaled = ag.convert_to_tensor(self._u)
        if self._diag_update is not None:
            scaled = scaled * ag.convert_to_tensor(self._diag_update)[..., None, :]
        product_ = scaled * conjugated(ag.convert_to_tensor(self._v))
        return self._base_operator.diag_part() + ag.reduce_sum(product_, axis=-1)
