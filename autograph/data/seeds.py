"""Seeds of datasets that draw at random: another pair for each iteration, or always the same.

A dataset that is made in a traced function is another one in each run, as in TensorFlow: its iterations start again.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.context import ctx
from runtime.ops.control import HOST_CALL
from runtime.ops.dispatch import apply
from runtime.ops.random import philox
from runtime.ops.random.stateful import STREAMS
from runtime.types import TensorType


class Seeds:
    """Iterator over the pairs of seeds for the iterations over a dataset."""

    def __init__(self, own: tuple[int, int], is_new_each_time: bool) -> None:
        """own: the two seeds of the dataset itself."""
        self._own = own
        self._words = words(*own) if is_new_each_time else None
        self._lock = threading.Lock()

    def __next__(self) -> tuple[int, int]:
        if self._words is None:
            return self._own
        with self._lock:
            return next(self._words), next(self._words)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.Lock()

    def position(self) -> tuple[int, int, int]:
        """The dataset's seeds, and how many words of the stream are used up: what `set_position` takes."""
        with self._lock:
            return *self._own, 0 if self._words is None else self._words.used

    def set_position(self, first: int, second: int, used: int) -> None:
        """Has the next iteration be the one that followed a `position`."""
        with self._lock:
            self._own = first, second
            if self._words is not None:
                self._words = words(first, second)
                self._words.skip(used)


class SeedsInProgram:
    """The seeds of a dataset that a traced function makes: each run has others, which a tensor of one object holds.

    It is a structure of that tensor; rebuilt with the tensor's value it is that run's `Seeds`.
    """

    def __init__(self, own: tuple[int, int] | None, is_new_each_time: bool) -> None:
        """own: None if each run draws its own."""

        def made() -> np.ndarray:
            array = np.empty((), object)
            array[()] = Seeds(STREAMS.seeds(None) if own is None else own, is_new_each_time)
            return array

        self.handle = apply(HOST_CALL, (), {"function": made, "types": (TensorType(dtypes.string, ()),)})[0]

    def __tf_flatten__(self) -> tuple[Any, tuple]:
        return None, (self.handle,)

    @classmethod
    def __tf_unflatten__(cls, metadata: Any, components: Sequence[Any]) -> Seeds:
        return components[0]._array.item()


def words(first: int, second: int) -> philox.Words:
    """The random words that two seeds are expanded to."""
    return philox.Words(first, second << 64)


def seeds_for(seed: int | None, is_new_each_time: bool) -> Any:
    """The seeds of a new dataset that was given `seed` or None."""
    if ctx.builder is None:
        return Seeds(STREAMS.seeds(seed), is_new_each_time)
    return SeedsInProgram(STREAMS.seeds(seed) if STREAMS.is_predictable(seed) else None, is_new_each_time)
