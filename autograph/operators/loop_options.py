"""``set_loop_options``: what the body of a staged loop says about the loop it is in."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from runtime.autodiff.budget import Budget, as_budget


class HasLimit(Exception):
    """The body has set `maximum_iterations`: the loop must count."""

    def __init__(self, limit: Any) -> None:
        super().__init__(limit)
        self.limit = limit


class Options:
    """The options of one loop, as the last trace of its body has set them.

    limit     most iterations, or None
    shapes    pairs of a tensor that the loop carries and its shape in all iterations
    memory    what its gradient may keep, or None
    """

    def __init__(self) -> None:
        self.limit: Any = None
        self.shapes: Sequence[tuple[Any, Any]] = ()
        self.memory: Budget | None = None


class _Loops(threading.local):
    def __init__(self) -> None:
        self.open: list[Options] = []


_loops = _Loops()


@contextmanager
def options_of(options: Options) -> Iterator[None]:
    """Makes `set_loop_options` speak of one loop while its body is traced."""
    _loops.open.append(options)
    try:
        yield
    finally:
        _loops.open.pop()


def set_loop_options(
    parallel_iterations: Any = None,
    swap_memory: Any = None,
    maximum_iterations: Any = None,
    shape_invariants: Sequence[tuple[Any, Any]] | None = None,
    gradient_memory: int | None = None,
) -> None:
    """Says something about the innermost staged loop around the call; in a loop that Python runs it does nothing.

    Call it first in the loop's body, as in TensorFlow.

    maximum_iterations: an int or scalar int tensor; the loop ends after that many iterations at the latest.
    shape_invariants: pairs of a tensor that the loop changes and a shape that holds in all iterations; needed only to
        say less than is true, since shapes that change widen by themselves.
    gradient_memory: how many bytes the loop's gradient may keep. With more iterations than fit, it runs parts of the
        loop again, from checkpoints; its values are the same to the last bit.
    parallel_iterations, swap_memory: accepted and without effect; loops run natively, one iteration after the other.
    """
    if _loops.open:
        options = _loops.open[-1]
        if maximum_iterations is not None:
            options.limit = maximum_iterations
        if shape_invariants is not None:
            options.shapes = tuple(shape_invariants)
        if gradient_memory is not None:
            options.memory = as_budget(gradient_memory)
