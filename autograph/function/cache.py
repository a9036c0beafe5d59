"""The traces of one function: by key, with the guards that must hold, bounded in number.

A key may have several traces, made under different values of what they guard (`training` True and False): going back to
an earlier value finds its trace again. When there are more traces than the limit, those of arguments that no longer
exist go first, then the ones that were not used since the last time that room was needed (the clock algorithm, an
approximation of least-recently-used that costs a call nothing but setting a flag).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from autograph.function.concrete import ConcreteFunction
from autograph.function.guards import broken
from autograph.function.signature import Identity

DEFAULT_LIMIT = 512


class TraceCache:
    """`current` maps a key to the trace that served it last; callers check its guards, then ask `revive`."""

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self.current: dict[Any, ConcreteFunction] = {}
        self.limit = limit
        self._variants: dict[Any, list[ConcreteFunction]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._variants.values()))

    def traces(self) -> list[ConcreteFunction]:
        """All traces, each once, oldest first: one that serves several sets of variables counts once."""
        return list({id(c.graph): c for c in [*self._all()][::-1]}.values())[::-1]

    def _all(self) -> Iterator[ConcreteFunction]:
        return (c for variants in self._variants.values() for c in variants)

    def revive(self, key: Any) -> ConcreteFunction | None:
        """A trace for the key whose guards hold now; it becomes the current one."""
        for concrete in self._variants.get(key, ()):
            if broken(concrete.guards) is None:
                self.current[key] = concrete
                return concrete
        return None

    def add(self, key: Any, concrete: ConcreteFunction) -> None:
        if len(self) >= self.limit:
            self._make_room()
        self._variants.setdefault(key, []).append(concrete)
        self.current[key] = concrete

    def _make_room(self) -> None:
        for key in [k for k in self._variants if _is_dead(k)]:
            self._drop(key)
        for key in list(self._variants):
            if len(self) < self.limit:
                return
            if any(c.used for c in self._variants[key]):
                for concrete in self._variants[key]:
                    concrete.used = False
                # To the end of the line: it was used.
                self._variants[key] = self._variants.pop(key)
            else:
                self._drop(key)
        while len(self) >= self.limit and self._variants:
            self._drop(next(iter(self._variants)))

    def _drop(self, key: Any) -> None:
        del self._variants[key]
        self.current.pop(key, None)


def _is_dead(key: Any) -> bool:
    """Whether a key names an object that no longer exists, so that no call can have it again."""
    return isinstance(key, tuple) and any(isinstance(part, Identity) and part.is_dead() for part in key)
