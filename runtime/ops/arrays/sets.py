"""Sets and sequences along the last dimension of sparse tensors, which are given by their indices, values and shapes.

set_operation(a..., b...; how)          →   indices, values, shape of a sparse tensor of sorted sets
edit_distance(a..., b...; normalize)    →   the Levenshtein distance between the sequences, dense
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.ops.dispatch import apply
from runtime.ops.table import OpDef, register
from runtime.tensor import Tensor
from runtime.types import TensorType

_OPERATIONS: dict[str, Callable[..., Any]] = {"intersection": np.intersect1d, "union": np.union1d, "a-b": np.setdiff1d}


def _rows(indices: Any, values: Any) -> dict[tuple[int, ...], list[Any]]:
    """The values of each row, by its place."""
    rows: dict[tuple[int, ...], list[Any]] = {}
    for place, value in zip(indices[:, :-1].tolist(), values):
        rows.setdefault(tuple(place), []).append(value)
    return rows


def _outer_shape(a: Any, b: Any, same: bool) -> tuple[int, ...]:
    if len(a) != len(b) or (same and list(a[:-1]) != list(b[:-1])):
        raise errors.InvalidArgumentError(f"Mismatched group shapes {a[:-1].tolist()} and {b[:-1].tolist()}")
    return tuple(int(d) for d in np.maximum(a, b)[:-1])


def _set_kernel(
    a_indices: Any, a_values: Any, a_shape: Any, b_indices: Any, b_values: Any, b_shape: Any, how: str
) -> tuple:
    outer = _outer_shape(a_shape, b_shape, same=True)
    left, right = _rows(a_indices, a_values), _rows(b_indices, b_values)
    if how == "b-a":
        left, right, how = right, left, "a-b"
    indices, values, width = [], [], 0
    for place in sorted({*left, *right}):
        operands = [np.asarray(side.get(place, []), a_values.dtype) for side in (left, right)]
        found = _OPERATIONS[how](*operands)
        width = max(width, len(found))
        indices += [(*place, i) for i in range(len(found))]
        values += list(found)
    result = np.empty(len(values), a_values.dtype)
    result[:] = values
    return np.array(indices, np.int64).reshape(-1, len(outer) + 1), result, np.array([*outer, width], np.int64)


def _infer_set(inputs: Sequence[Any], attrs: dict) -> tuple:
    a, b = inputs[1], inputs[4]
    if a.dtype is not b.dtype or a.dtype.kind not in "iuO":
        raise TypeError(f"sets need integers or strings of one dtype, got {a.dtype.label} and {b.dtype.label}")
    rank = inputs[2].shape and inputs[2].shape[0]
    return (
        TensorType(dtypes.int64, (None, rank)), TensorType(a.dtype, (None,)), TensorType(dtypes.int64, (rank,)),
    )  # fmt: skip


SET_OPERATION = register(
    OpDef(
        "set_operation", _infer_set, _set_kernel, multiple=True, kinds="biuO",
        doc="Intersection, union or difference of sets along the last dimension.",
    )
)  # fmt: skip


def set_operation(a: Sequence[Tensor], b: Sequence[Tensor], how: str) -> Any:
    """Indices, values and shape of "intersection", "union", "a-b" or "b-a" of two sparse tensors' parts."""
    return apply(SET_OPERATION, (*a, *b), {"how": how})


def _distance(a: Sequence[Any], b: Sequence[Any]) -> int:
    """Wagner and Fischer, "The String-to-String Correction Problem" (1974), a row at a time."""
    others = np.asarray(b)
    steps = np.arange(len(b) + 1)
    row = steps.copy()
    for count, item in enumerate(a, 1):
        changed = np.minimum(row[1:] + 1, row[:-1] + (others != item))
        # Insertions run along the row: a running minimum, less the number of steps.
        row = np.minimum.accumulate(np.concatenate([[count], changed]) - steps) + steps
    return int(row[-1])


def _distance_kernel(
    a_indices: Any, a_values: Any, a_shape: Any, b_indices: Any, b_values: Any, b_shape: Any, normalize: bool
) -> Any:
    outer = _outer_shape(a_shape, b_shape, same=False)
    hypotheses, truths = _rows(a_indices, a_values), _rows(b_indices, b_values)
    result = np.zeros(outer, np.float32)
    for place in {*hypotheses, *truths}:
        truth = truths.get(place, [])
        distance = float(_distance(hypotheses.get(place, []), truth))
        result[place] = distance if not normalize else distance / len(truth) if truth else np.inf
    return result[()]


def _infer_distance(inputs: Sequence[Any], attrs: dict) -> tuple:
    if inputs[1].dtype is not inputs[4].dtype:
        raise TypeError(f"sequences need one dtype, got {inputs[1].dtype.label} and {inputs[4].dtype.label}")
    rank = inputs[2].shape and inputs[2].shape[0]
    return (TensorType(dtypes.float32, None if rank is None else (None,) * (rank - 1)),)


EDIT_DISTANCE = register(
    OpDef("edit_distance", _infer_distance, _distance_kernel, doc="The Levenshtein distance between sequences.")
)


def edit_distance(a: Sequence[Tensor], b: Sequence[Tensor], normalize: bool) -> Tensor:
    """The distances of the sequences in two sparse tensors' parts; over the second one's length if `normalize`."""
    return apply(EDIT_DISTANCE, (*a, *b), {"normalize": normalize})
