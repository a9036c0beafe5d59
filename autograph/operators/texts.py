"""f-strings in what is printed or raised: tensors in them show the values that they have when the program runs.

ag__.text(f"x is {ag__.shown(x):.2f}")
"""

from __future__ import annotations

import re
import threading
from typing import Any

from autograph.operators.symbolic import symbolic
from runtime.context import ctx
from runtime.ops.staged_text import StagedText

_MARK = re.compile("\\0(\\d+)\\0")


class _Marks(threading.local):
    """The tensors of the f-strings that are being put together, with their format specifications."""

    def __init__(self) -> None:
        self.found: list[tuple[Any, str]] = []


_marks = _Marks()


class _Shown:
    """Stands for a symbolic tensor in an f-string: becomes a mark that `text` finds."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def __format__(self, spec: str) -> str:
        _marks.found.append((self.tensor, spec))
        return f"\0{len(_marks.found) - 1}\0"

    def __str__(self) -> str:
        return format(self, "")

    __repr__ = __str__


def shown(value: Any) -> Any:
    """A value of an f-string."""
    if ctx.builder is None:
        return value
    tensor = symbolic(value)
    return value if tensor is None or isinstance(value, list) else _Shown(tensor)


def text(string: str) -> str:
    """The f-string, which holds marks if there were tensors in it."""
    if not _marks.found or ctx.builder is None:
        return string
    parts = _MARK.split(string)
    if len(parts) == 1:
        return string
    found, _marks.found = _marks.found, []
    return StagedText(*[part if at % 2 == 0 else found[int(part)] for at, part in enumerate(parts) if at % 2 or part])
