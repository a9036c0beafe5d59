"""Sums of operators whose classes allow it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from autograph.linear_operators.base import LinearOperator
from autograph.linear_operators.elementary import (
    LinearOperatorDiag,
    LinearOperatorIdentity,
    LinearOperatorScaledIdentity,
)
from autograph.linear_operators.matrices import LinearOperatorFullMatrix, LinearOperatorLowerTriangular

# From the simplest on: a sum is of the class of its last one.
_TIERS: tuple[tuple[type[LinearOperator], ...], ...] = (
    (LinearOperatorIdentity, LinearOperatorScaledIdentity, LinearOperatorDiag),
    (LinearOperatorLowerTriangular,),
    (LinearOperatorFullMatrix,),
)
SUPPORTED_OPERATORS = [kind for tier in _TIERS for kind in tier]


def _tier(operator: LinearOperator) -> int:
    """The place of its class among `_TIERS`; their number for another class."""
    return next((place for place, kinds in enumerate(_TIERS) if isinstance(operator, kinds)), len(_TIERS))


def add_operators(
    operators: Sequence[LinearOperator], operator_name: str | None = None, addition_tiers: Any = None, name: Any = None
) -> list[LinearOperator]:
    """Operators with the sum of the given ones, as few as can be: those of other classes than diagonals, triangles and
    full matrices stay by themselves."""
    apart = [each for each in operators if _tier(each) == len(_TIERS)]
    known = sorted((each for each in operators if _tier(each) < len(_TIERS)), key=_tier)
    if not known:
        return apart
    first, *rest = known
    for each in rest:
        first = _sum(first, each)
    return [first, *apart]


def _sum(one: LinearOperator, other: LinearOperator) -> LinearOperator:
    """The sum of two operators, the simpler one first."""
    is_definite = bool(one.is_positive_definite and other.is_positive_definite) or None
    hints: dict[str, Any] = {
        "is_self_adjoint": bool(one.is_self_adjoint and other.is_self_adjoint) or None,
        "is_positive_definite": is_definite, "is_non_singular": is_definite,
    }  # fmt: skip
    if _tier(other) == 0:
        return LinearOperatorDiag(one.diag_part() + other.diag_part(), **hints)
    made = (LinearOperatorLowerTriangular, LinearOperatorFullMatrix)[_tier(other) - 1]
    return made(one.add_to_tensor(other.to_dense()), **hints)
