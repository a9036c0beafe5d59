"""Python strings that are known only when the program runs.

    StagedString(tensor)                a string that a staged loop builds (`marks += "x"`)
    StagedText("x is ", (x, ".2f"))     an f-string of symbolic tensors

What Python code asks of a `StagedString` autograph/operators/staged_strings.py answers, in a trace. A `StagedText` is,
to Python, the text that shows the symbolic tensors themselves. `print`, and errors that a program raises, put the
values in when the program gets there; whoever asks something of it asks the string that it is when the program runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from runtime import dtypes, nest
from runtime.dtypes import DTypeLike
from runtime.tensor import EagerTensor, Tensor

# In place of format specifications: what `str` and `repr` give for the tensor.
AS_STR, AS_REPR = "!s", "!r"


class StandsForString:
    """What stands for a Python string of a trace. It is to string tensors what a `StagedNumber` is to those of numbers.

    It has the dtype `default` where it becomes a tensor, and none of its own beside others.
    """

    __slots__ = ()
    __ag_number__ = True
    __ag_priority__ = 1  # tensors leave their operators to it
    default = dtypes.string
    kind = str

    def wide(self) -> Tensor:
        """The scalar tensor that holds it, in UTF-8."""
        raise NotImplementedError

    def __tf_tensor__(self, dtype: DTypeLike = None, name: str | None = None) -> Tensor:
        if dtype is not None and dtypes.as_dtype(dtype) is not dtypes.string:
            raise TypeError(f"Cannot convert a Python str to EagerTensor of dtype {dtypes.as_dtype(dtype).label}")
        return self.wide()


@nest.leaf
class StagedString(StandsForString):
    """A Python string that a tensor holds."""

    __slots__ = ("tensor", "__weakref__")

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def wide(self) -> Tensor:
        return self.tensor

    def __repr__(self) -> str:
        return f"<Python str of {self.tensor!r}>"

    def __copy__(self) -> StagedString:
        return self

    def __deepcopy__(self, memo: Any) -> StagedString:
        return self


def decoded(value: Any) -> str:
    """The Python string that a string tensor's value holds."""
    item = value.item() if hasattr(value, "item") else value
    return item.decode() if isinstance(item, bytes) else item


def shown_with(value: Any, spec: str) -> str:
    """The text of a tensor's value, as a format specification says, or as `str` and `repr` show the tensor."""
    tensor = EagerTensor(value)
    if spec in _WHOLE:
        return _WHOLE[spec](tensor)
    return format(tensor, spec)


_WHOLE: dict[str, Callable[[Any], str]] = {AS_STR: str, AS_REPR: repr}


class StagedText(StandsForString, str):
    """A string made of ``pieces``: strings, and tensors with the way to format them.

    That is a format specification or, of an index, the texts of which it selects one. A string tensor with None is
    text as it stands.
    """

    pieces: tuple[Any, ...]
    make: ClassVar[Callable[[StagedText], Tensor]]  # which makes the string of it; converted programs set it

    def __new__(cls, *pieces: Any) -> StagedText:
        made = super().__new__(cls, "".join(each if isinstance(each, str) else str(each[0]) for each in pieces))
        made.pieces = pieces
        return made

    def wide(self) -> Tensor:
        return StagedText.make(self)

    def template(self, place: Callable[[Tensor], int]) -> list[Any]:
        """Strings and `Formatted`; ``place`` gives the position that a tensor gets among an op's inputs."""
        return [each if isinstance(each, str) else Formatted(place(each[0]), each[1]) for each in self.pieces]


class Formatted:
    """The place of a tensor in a text, and its format specification; of an index the texts that it selects from.

    None in place of a specification: the tensor is a string of Python's.
    """

    __slots__ = ("index", "spec")

    def __init__(self, index: int, spec: str | tuple[str, ...] | None) -> None:
        self.index = index
        self.spec = spec

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Formatted) and (self.index, self.spec) == (other.index, other.spec)

    def __hash__(self) -> int:
        return hash((self.index, self.spec))

    def text(self, values: Sequence[Any]) -> str:
        """The text of this part, given the values of all parts at run time."""
        value = values[self.index]
        if self.spec is None:
            return decoded(value)
        return self.spec[int(value)] if isinstance(self.spec, tuple) else shown_with(value, self.spec)
