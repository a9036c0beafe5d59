"""How ragged tensors are printed: nested brackets, as TensorFlow prints them."""

from __future__ import annotations

from typing import Any

import numpy as np


def text_of(array: np.ndarray) -> str:
    """An array of arrays as nested brackets, without their dtypes.

    >>> text_of(np.array([[1, 2], [3, 4]]))
    '[[1, 2],\\n [3, 4]]'
    """

    def show(part: Any) -> str:
        if not isinstance(part, np.ndarray):
            return str(part)
        # NumPy writes `[]` for every empty array, whatever its shape.
        return np.array2string(part, separator=", ") if part.size else repr(part.tolist())

    with np.printoptions(formatter={"all": show}):
        return show(array)
