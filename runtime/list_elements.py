"""What staged lists tell of their elements, which may be containers: see `autograph.operators.elements`."""

from __future__ import annotations

from typing import Any


class Elements:
    """Told of what happens to the elements of staged lists. This one doesn't care.

    A position is a scalar tensor.
    """

    def taken_apart(self, value: Any) -> Any:
        """A value that is to be an element as a structure of tensors and numbers."""
        return value

    def put_together(self, structure: Any) -> Any:
        """The value that has been taken apart to such a structure."""
        return structure

    def settle(self, items: Any) -> None:
        """A list is about to be read: it may have to take what has changed in containers that are its elements."""

    def read(self, items: Any, value: Any, position: Any) -> Any:
        """An element is read; gives the object to use for it."""
        return value

    def taken(self, items: Any, value: Any, position: Any) -> Any:
        """An element is about to leave the list; gives the object to use for it."""
        return value

    def made(self, items: Any, values: Any) -> None:
        """A list has been made of values in the place of a Python list."""

    def stored(self, items: Any, value: Any, position: Any) -> None:
        """A value has become an element; position is None where several, or none, may be it."""

    def replaced(self, items: Any, position: Any) -> None:
        """The element at a position has been replaced."""

    def moved(self, items: Any) -> None:
        """Elements may have moved to other positions, or left."""

    def cleared(self, items: Any) -> None:
        """Called when a list has been cleared."""

    def copied(self, items: Any) -> None:
        """Called when another list has been given the elements of this one."""
