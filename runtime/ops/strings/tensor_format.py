"""How `ag.print` shows a tensor: TensorFlow's format, numbers without trailing zeros, rows as NumPy lays them out."""

from __future__ import annotations

from typing import Any

import numpy as np


def format_number(value: Any) -> str:
    """The shorter of 6 (float64: 15) and 9 (17) significant digits that reads back as the same number."""
    kind = value.dtype.kind
    if kind == "b":
        return "1" if value else "0"
    if kind == "c":
        return f"({format_number(value.real)},{format_number(value.imag)})"
    if kind != "f":
        return str(value) if value.dtype.kind != "V" else format_number(value.astype(np.float32))
    if np.isnan(value):
        return "nan"
    if value.dtype == np.float64:
        short, exact, back = f"{value:.15g}", f"{value:.17g}", np.float64
    else:
        single = np.float32(value)
        short, exact, back = f"{single:.6g}", f"{single:.9g}", np.float32  # type: ignore[assignment]
    return short if back(short) == value else exact


def format_tensor(array: Any, summarize: int = 3) -> str:
    """A tensor as text; `summarize` elements at each end of a dimension, -1 for all."""
    array = np.asarray(array)
    if array.dtype == object:
        return _format(array, summarize, 0, lambda v: '"' + v.decode(errors="replace") + '"')
    return _format(array, summarize, 0, format_number)


def _format(array: Any, summarize: int, depth: int, show: Any) -> str:
    if array.ndim == 0:
        return show(array[()])
    size = len(array)
    cut = summarize >= 0 and size > 2 * summarize
    chosen = [*range(summarize), None, *range(size - summarize, size)] if cut else list(range(size))
    items = ["..." if i is None else _format(array[i, ...], summarize, depth + 1, show) for i in chosen]
    separator = " " if array.ndim == 1 else "\n" * (array.ndim - 1) + " " * (depth + 1)
    return "[" + separator.join(items) + "]"
