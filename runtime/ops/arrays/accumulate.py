"""Rows of an array joined with others, also several with one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def accumulate(ufunc: np.ufunc, result: np.ndarray, indices: Any, values: Any, axis: int = 0) -> None:
    """Joins values with `result` at indices along an axis, one after another where an index repeats: `ufunc.at`.

    result: a contiguous array. indices: integers in range. values: of the shape of `result`, with that of the indices
    in place of the axis. Element by element, since NumPy takes a sixth of the time for arrays with one dimension; the
    order of what meets in an element, and so each bit, is the same.
    """
    outer, size, inner = math.prod(result.shape[:axis]), result.shape[axis], math.prod(result.shape[axis + 1 :])
    rows = np.arange(outer)[:, None] * size + np.asarray(indices, np.intp).reshape(1, -1)
    places = rows[:, :, None] * inner + np.arange(inner)
    ufunc.at(result.reshape(-1), places.reshape(-1), np.reshape(values, -1))
