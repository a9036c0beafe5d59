"""What operators made of operators ask of their parts."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import autograph as ag
from autograph.linear_operators.base import LinearOperator


class OfOperator(LinearOperator):
    """Base of an operator made of another one."""

    _operator: LinearOperator

    @property
    def operator(self) -> LinearOperator:
        """The operator that it is made of."""
        return self._operator

    @property
    def _experimental_parameter_ndims_to_matrix_ndims(self) -> dict[str, Any]:
        return {"operator": 0}

    def _cond(self) -> Any:
        return self._operator.cond()


class OfOperators(LinearOperator):
    """Base of an operator made of several in a row."""

    _operators: list[LinearOperator]

    @property
    def operators(self) -> list[LinearOperator]:
        """The operators that it is made of."""
        return self._operators

    @property
    def _experimental_parameter_ndims_to_matrix_ndims(self) -> dict[str, Any]:
        return {"operators": 0}


def all_are(operators: Sequence[LinearOperator], hint: str) -> bool:
    return all(getattr(each, hint) is True for each in operators)


def common_dtype(operators: Sequence[LinearOperator]) -> Any:
    if not operators:
        raise ValueError("Expected a list of >=1 operators. Found: []")
    dtype = operators[0].dtype
    for each in operators:
        if each.dtype != dtype:
            found = [(each.name, each.dtype) for each in operators]
            raise TypeError(f"Expected all operators to have the same dtype. Found {found}")
    return dtype


def batch_shape(operators: Sequence[LinearOperator]) -> Any:
    return functools.reduce(ag.broadcast_static_shape, [each.batch_shape for each in operators])


def batch_shape_tensor(operators: Sequence[LinearOperator]) -> Any:
    return functools.reduce(ag.broadcast_dynamic_shape, [each.batch_shape_tensor() for each in operators])


def spread(value: Any, batch: Any, ndims: int) -> Any:
    """A tensor, broadcast to a batch; its last dimensions are of one matrix."""
    value = ag.convert_to_tensor(value)
    shape = ag.shape(value)
    count = shape.shape[0]
    if count is None:
        raise ValueError("the rank of an operator's argument must be known")
    return ag.broadcast_to(
        value, ag.concat([ag.broadcast_dynamic_shape(batch, shape[: count - ndims]), shape[count - ndims :]], 0)
    )


def same_batch(parts: Sequence[Any], ndims: int) -> list[Any]:
    """Tensors with the batch of all of them."""
    shapes = [each.shape[:-ndims] for each in parts]
    if all(shape.is_fully_defined() and shape == shapes[0] for shape in shapes):
        return list(parts)
    batch = functools.reduce(ag.broadcast_dynamic_shape, [ag.shape(each)[:-ndims] for each in parts])
    return [spread(each, batch, ndims) for each in parts]
