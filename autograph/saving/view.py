"""`TrackableView`: the objects that a checkpoint of an object would have."""

from __future__ import annotations

from typing import Any

from autograph.saving.objects import children, has_value, may_hold


class TrackableView:
    """What an object consists of, and what that consists of."""

    def __init__(self, root: Any) -> None:
        self._root = root

    @classmethod
    def children(cls, obj: Any, save_type: str = "checkpoint", **options: Any) -> dict[str, Any]:
        """What an object holds, by name."""
        if not may_hold(obj):
            return {}
        return {str(name): held for name, held in children(obj).items() if has_value(held) or may_hold(held)}

    @property
    def root(self) -> Any:
        """The object that is looked at."""
        return self._root

    def descendants(self) -> list[Any]:
        """The root and all that can be reached from it, each once, nearest first."""
        found, seen = [self._root], {id(self._root)}
        for each in found:
            for held in self.children(each).values():
                if id(held) not in seen:
                    seen.add(id(held))
                    found.append(held)
        return found
