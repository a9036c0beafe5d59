"""Text with the values of tensors in it that are known only when the program runs: an f-string of symbolic tensors.

    StagedText("x is ", (x, ".2f"))

To Python it is the text that shows the symbolic tensors themselves. `print`, and errors that a program raises, put the
values in when the program gets there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runtime.tensor import EagerTensor, Tensor


class StagedText(str):
    """A string made of ``pieces``: strings, and tensors with the way to format them.

    That is a format specification or, of an index, the texts of which it selects one.
    """

    pieces: tuple[Any, ...]

    def __new__(cls, *pieces: Any) -> StagedText:
        made = super().__new__(cls, "".join(each if isinstance(each, str) else str(each[0]) for each in pieces))
        made.pieces = pieces
        return made

    def template(self, place: Callable[[Tensor], int]) -> list[Any]:
        """Strings and `Formatted`; ``place`` gives the position that a tensor gets among an op's inputs."""
        return [each if isinstance(each, str) else Formatted(place(each[0]), each[1]) for each in self.pieces]


class Formatted:
    """The place of a tensor in a text, and its format specification; of an index the texts that it selects from."""

    __slots__ = ("index", "spec")

    def __init__(self, index: int, spec: str | tuple[str, ...]) -> None:
        self.index = index
        self.spec = spec

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Formatted) and (self.index, self.spec) == (other.index, other.spec)

    def __hash__(self) -> int:
        return hash((self.index, self.spec))

    def text(self, values: Sequence[Any]) -> str:
        """What stands there."""
        value = values[self.index]
        return self.spec[int(value)] if isinstance(self.spec, tuple) else format(EagerTensor(value), self.spec)
