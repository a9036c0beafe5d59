"""Operators of blocks."""

from __future__ import annotations

import functools
import operator as python_operator
from collections.abc import Sequence
from typing import Any

import autograph as ag
from autograph.linear_operators.base import HINTS, LinearOperator, hints_of, last_two_swapped
from autograph.linear_operators.parts import (
    OfOperators,
    all_are,
    batch_shape,
    batch_shape_tensor,
    common_dtype,
    same_batch,
)


class LinearOperatorBlockDiag(OfOperators):
    """Operators along a diagonal of blocks.

    A product or solution takes a tensor of all rows, or a list with the rows of each block, and gives the same.
    Raises ValueError for no operators, TypeError for different dtypes.
    """

    def __init__(
        self,
        operators: Sequence[LinearOperator],
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        name: str | None = None,
    ) -> None:
        parameters = dict(locals())
        self._operators = list(operators)
        dtype = common_dtype(self._operators)
        hints = []
        given = (is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        for name_of, each in zip(HINTS, given):
            if all_are(self._operators, name_of):
                if each is False:
                    raise ValueError(f"All the blocks are {name_of}, but the hint says {name_of}=False")
                each = True
            hints.append(each)
        super().__init__(
            dtype, name=name or "_ds_".join(each.name for each in self._operators), parameters=parameters,
            **dict(zip(HINTS, hints)),
        )  # fmt: skip

    def _block_range_dimensions(self) -> list[int | None]:
        return [each.range_dimension for each in self._operators]

    def _block_domain_dimensions(self) -> list[int | None]:
        return [each.domain_dimension for each in self._operators]

    def _block_range_dimension_tensors(self) -> list[Any]:
        return [each.range_dimension_tensor() for each in self._operators]

    def _block_domain_dimension_tensors(self) -> list[Any]:
        return [each.domain_dimension_tensor() for each in self._operators]

    def _shape(self) -> Any:
        sizes = (self._block_range_dimensions(), self._block_domain_dimensions())
        ends = [None if None in each else sum(each) for each in sizes]  # type: ignore[arg-type]
        return batch_shape(self._operators).concatenate(ends)

    def _shape_tensor(self) -> Any:
        ends = [ag.add_n(self._block_range_dimension_tensors()), ag.add_n(self._block_domain_dimension_tensors())]
        return ag.concat([batch_shape_tensor(self._operators), ends], 0)

    def matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul") -> Any:
        """The product with matrices, with a list of the blocks' rows, or with another operator."""
        if isinstance(x, (list, tuple)):
            return [
                each.matmul(part, adjoint=adjoint, adjoint_arg=adjoint_arg) for each, part in zip(self._operators, x)
            ]
        return super().matmul(x, adjoint, adjoint_arg, name)

    def matvec(self, x: Any, adjoint: bool = False, name: str = "matvec") -> Any:
        """The product with vectors, or with a list of the blocks' entries."""
        if isinstance(x, (list, tuple)):
            return [each.matvec(part, adjoint=adjoint) for each, part in zip(self._operators, x)]
        return super().matvec(x, adjoint, name)

    def solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "solve") -> Any:
        """The X with A X = rhs, of matrices, of a list of the blocks' rows, or of another operator."""
        if isinstance(rhs, (list, tuple)):
            return [
                each.solve(part, adjoint=adjoint, adjoint_arg=adjoint_arg) for each, part in zip(self._operators, rhs)
            ]
        return super().solve(rhs, adjoint, adjoint_arg, name)

    def solvevec(self, rhs: Any, adjoint: bool = False, name: str = "solve") -> Any:
        """The x with A x = rhs, of vectors, or of a list of the blocks' entries."""
        if isinstance(rhs, (list, tuple)):
            return [each.solvevec(part, adjoint=adjoint) for each, part in zip(self._operators, rhs)]
        return super().solvevec(rhs, adjoint, name)

    def _by_blocks(self, method: str, x: Any, sizes: list[Any], adjoint: bool, adjoint_arg: bool) -> Any:
        parts = ag.split(x, sizes, axis=-1 if adjoint_arg else -2)
        found = [
            getattr(each, method)(part, adjoint=adjoint, adjoint_arg=adjoint_arg)
            for each, part in zip(self._operators, parts)
        ]
        return ag.concat(same_batch(found, 2), axis=-2)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        sizes = self._block_range_dimension_tensors() if adjoint else self._block_domain_dimension_tensors()
        return self._by_blocks("matmul", x, sizes, adjoint, adjoint_arg)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._by_blocks("solve", rhs, self._block_range_dimension_tensors(), adjoint, adjoint_arg)

    def _determinant(self) -> Any:
        return functools.reduce(python_operator.mul, [each.determinant() for each in self._operators])

    def _log_abs_determinant(self) -> Any:
        return functools.reduce(python_operator.add, [each.log_abs_determinant() for each in self._operators])

    def _trace(self) -> Any:
        return functools.reduce(python_operator.add, [each.trace() for each in self._operators])

    def _diag_part(self) -> Any:
        return ag.concat(same_batch([each.diag_part() for each in self._operators], 1), axis=-1)

    def _eigvals(self) -> Any:
        return ag.concat(same_batch([each.eigvals() for each in self._operators], 1), axis=-1)

    def _to_dense(self) -> Any:
        blocks = same_batch([each.to_dense() for each in self._operators], 2)
        sizes = [ag.shape(each) for each in blocks]
        rows = []
        for place, block in enumerate(blocks):
            height = sizes[place][-2:-1]
            zeros = [ag.zeros(ag.concat([each[:-2], height, each[-1:]], 0), self.dtype) for each in sizes]
            rows.append(ag.concat([*zeros[:place], block, *zeros[place + 1 :]], axis=-1))
        return ag.concat(rows, axis=-2)

    def _assert_all(self, name: str) -> Any:
        return ag.group(*[getattr(each, name)() for each in self._operators])

    def _assert_non_singular(self) -> Any:
        return self._assert_all("assert_non_singular")

    def _assert_positive_definite(self) -> Any:
        return self._assert_all("assert_positive_definite")

    def _assert_self_adjoint(self) -> Any:
        return self._assert_all("assert_self_adjoint")

    def _linop_adjoint(self) -> LinearOperator:
        return LinearOperatorBlockDiag([each.adjoint() for each in self._operators], **hints_of(self))

    def _linop_inverse(self) -> LinearOperator:
        return LinearOperatorBlockDiag([each.inverse() for each in self._operators], **hints_of(self))

    def _linop_cholesky(self) -> LinearOperator:
        if not all(each._can_use_cholesky() for each in self._operators):
            return super()._linop_cholesky()
        return LinearOperatorBlockDiag([each.cholesky() for each in self._operators], is_non_singular=True)

    def _linop_matmul(self, left_operator: Any, right_operator: Any) -> LinearOperator:
        if isinstance(right_operator, LinearOperatorBlockDiag):
            pairs = list(zip(left_operator.operators, right_operator.operators))
            fits = all(left.domain_dimension == right.range_dimension for left, right in pairs)
            if len(left_operator.operators) == len(right_operator.operators) and fits:
                return LinearOperatorBlockDiag([left.matmul(right) for left, right in pairs], is_square=None)
        return super()._linop_matmul(left_operator, right_operator)


class LinearOperatorBlockLowerTriangular(LinearOperator):
    """Blocks on and below a diagonal.

    operators: for each row of blocks a list of its operators, one more than the row before.
    Raises ValueError for another number, and for blocks whose dimensions don't fit; TypeError for different dtypes.
    """

    def __init__(
        self,
        operators: Sequence[Sequence[LinearOperator]],
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorBlockLowerTriangular",
    ) -> None:
        parameters = dict(locals())
        self._operators = [list(row) for row in operators]
        for place, row in enumerate(self._operators):
            if len(row) != place + 1:
                raise ValueError(
                    f"The `i`th row-partition (0-indexed) must contain `i + 1` operators: row {place} has {len(row)}"
                )
            for block in row:
                if block.range_dimension != row[-1].range_dimension:
                    raise ValueError(f"The blocks of row {place} must have the same range dimension: {row}")
        dtype = common_dtype([block for row in self._operators for block in row])
        diagonal = [row[-1] for row in self._operators]
        if is_square is False or any(each.is_square is False for each in diagonal):
            raise ValueError("`LinearOperatorBlockLowerTriangular` must be square.")
        if all_are(diagonal, "is_non_singular"):
            is_non_singular = True
        super().__init__(
            dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, True, name, parameters
        )  # fmt: skip

    @property
    def operators(self) -> list[list[LinearOperator]]:
        """The rows of blocks."""
        return self._operators

    def _diagonal(self) -> list[LinearOperator]:
        return [row[-1] for row in self._operators]

    def _block_range_dimensions(self) -> list[int | None]:
        return [each.range_dimension for each in self._diagonal()]

    _block_domain_dimensions = _block_range_dimensions

    def _sizes(self) -> list[Any]:
        return [each.range_dimension_tensor() for each in self._diagonal()]

    def _blocks(self) -> list[LinearOperator]:
        return [block for row in self._operators for block in row]

    def _shape(self) -> Any:
        sizes = self._block_range_dimensions()
        total = None if None in sizes else sum(sizes)  # type: ignore[arg-type]
        return batch_shape(self._blocks()).concatenate([total, total])

    def _shape_tensor(self) -> Any:
        total = ag.add_n(self._sizes())
        return ag.concat([batch_shape_tensor(self._blocks()), [total, total]], 0)

    def _parts(self, x: Any, adjoint_arg: bool) -> list[Any]:
        return list(ag.split(last_two_swapped(x) if adjoint_arg else x, self._sizes(), axis=-2))

    def matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul") -> Any:
        """The product with matrices, with a list of the blocks' rows, or with another operator."""
        if isinstance(x, (list, tuple)):
            return self._products([last_two_swapped(each) if adjoint_arg else each for each in x], adjoint)
        return super().matmul(x, adjoint, adjoint_arg, name)

    def matvec(self, x: Any, adjoint: bool = False, name: str = "matvec") -> Any:
        """The product with vectors, or with a list of the blocks' entries."""
        if isinstance(x, (list, tuple)):
            return [each[..., 0] for each in self._products([each[..., None] for each in x], adjoint)]
        return super().matvec(x, adjoint, name)

    def solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "solve") -> Any:
        """The X with A X = rhs, of matrices, of a list of the blocks' rows, or of another operator."""
        if isinstance(rhs, (list, tuple)):
            return self._solutions([last_two_swapped(each) if adjoint_arg else each for each in rhs], adjoint)
        return super().solve(rhs, adjoint, adjoint_arg, name)

    def solvevec(self, rhs: Any, adjoint: bool = False, name: str = "solve") -> Any:
        """The x with A x = rhs, of vectors, or of a list of the blocks' entries."""
        if isinstance(rhs, (list, tuple)):
            return [each[..., 0] for each in self._solutions([each[..., None] for each in rhs], adjoint)]
        return super().solvevec(rhs, adjoint, name)

    def _products(self, parts: list[Any], adjoint: bool) -> list[Any]:
        count = len(self._operators)
        if adjoint:
            return [
                functools.reduce(
                    python_operator.add,
                    [self._operators[row][column].matmul(parts[row], adjoint=True) for row in range(column, count)],
                )
                for column in range(count)
            ]
        return [
            functools.reduce(python_operator.add, [block.matmul(part) for block, part in zip(row, parts)])
            for row in self._operators
        ]

    def _solutions(self, parts: list[Any], adjoint: bool) -> list[Any]:
        """Forward (or, for the adjoint, backward) substitution by blocks."""
        count = len(self._operators)
        found: dict[int, Any] = {}
        for place in reversed(range(count)) if adjoint else range(count):
            rest = parts[place]
            for other, solved in found.items():
                block = self._operators[other][place] if adjoint else self._operators[place][other]
                rest = rest - block.matmul(solved, adjoint=adjoint)
            found[place] = self._operators[place][place].solve(rest, adjoint=adjoint)
        return [found[place] for place in range(count)]

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return ag.concat(same_batch(self._products(self._parts(x, adjoint_arg), adjoint), 2), axis=-2)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return ag.concat(same_batch(self._solutions(self._parts(rhs, adjoint_arg), adjoint), 2), axis=-2)

    def _determinant(self) -> Any:
        return functools.reduce(python_operator.mul, [each.determinant() for each in self._diagonal()])

    def _log_abs_determinant(self) -> Any:
        return functools.reduce(python_operator.add, [each.log_abs_determinant() for each in self._diagonal()])

    def _trace(self) -> Any:
        return functools.reduce(python_operator.add, [each.trace() for each in self._diagonal()])

    def _diag_part(self) -> Any:
        return ag.concat(same_batch([each.diag_part() for each in self._diagonal()], 1), axis=-1)

    def _to_dense(self) -> Any:
        sizes = self._sizes()
        rows = []
        for place, row in enumerate(self._operators):
            blocks = same_batch([each.to_dense() for each in row], 2)
            batch = ag.shape(blocks[0])[:-2]
            zeros = [ag.zeros(ag.concat([batch, [sizes[place], each]], 0), self.dtype) for each in sizes[place + 1 :]]
            rows.append(ag.concat([*blocks, *zeros], axis=-1))
        return ag.concat(same_batch(rows, 2), axis=-2)
