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
        """The value whose tensors are in `structure`."""
        return structure

    def settle(self, items: Any) -> None:
        """Called before a list is read: writes changed containers back that are its elements."""

    def read(self, items: Any, value: Any, position: Any) -> Any:
        """An element is read; gives the object to use for it."""
        return value

    def taken(self, items: Any, value: Any, position: Any) -> Any:
        """An element is about to leave the list; gives the object to use for it."""
        return value

    def made(self, items: Any, values: Any) -> None:
        """Called when a staged list has replaced a Python list with these values."""

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
