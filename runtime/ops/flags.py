"""Python's bools whose values are known only when the program runs.

A bool that a staged branch chooses or a staged loop changes is a boolean tensor; so are `not x` and comparisons of
staged numbers. In Python such a flag is an int, too, which a boolean tensor isn't: `count += flag`, `3 * flag`. The
tensor carries a `Flag` that says so, and operators that a boolean tensor doesn't have take the number in its place
(`staged_number.as_number`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runtime import dtypes
from runtime.tensor import SymbolicTensor


class Flag:
    """Says that a boolean tensor is a Python bool.

    sources   the flags that it is one because of
    is_used   whether something has been made that no other boolean tensor would have given
    """

    __slots__ = ("is_used", "sources")

    def __init__(self, sources: Sequence[Flag] = ()) -> None:
        self.sources = sources
        self.is_used = False

    def use(self) -> None:
        if not self.is_used:
            self.is_used = True
            for each in self.sources:
                each.use()


def flag_of(value: Any) -> Flag | None:
    """The `Flag` of a tensor that has one."""
    return value.flag if value.__class__ is SymbolicTensor else None


def is_flag(value: Any) -> bool:
    """Whether a value is a Python bool, now or when the program runs."""
    return value.__class__ is bool or flag_of(value) is not None


def flagged(tensor: Any, *sources: Any) -> Any:
    """A tensor that no one else holds yet, as a Python bool.

    sources: the values that it is one because of.
    """
    if tensor.__class__ is SymbolicTensor and tensor.dtype is dtypes.bool_ and tensor._shape == ():
        tensor.flag = Flag([found for each in sources if (found := flag_of(each)) is not None])
        if tensor.guard is not None:
            tensor.guard.plain.flag = tensor.flag
    return tensor
