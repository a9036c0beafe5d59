"""`ag.nest` as TensorFlow has it: ragged and sparse tensors are leaves there, unless `expand_composites` is True.

Inside the project they are structures everywhere (`runtime.nest`), so that functions, loops and gradients go through
them. A class is a composite when it has `__ag_composite__`, a name that it shares with the class of its specs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from runtime import nest


class _Whole:
    """Hides a composite from `runtime.nest`."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return repr(self.value)


def is_composite(value: Any) -> bool:
    """Whether a value is a ragged or sparse tensor, or a spec of one."""
    return hasattr(type(value), "__ag_composite__")


def as_composite(value: Any, spec: Any) -> Any:
    """A value that a function takes as a composite of this spec: a dataset, which is a Python object elsewhere.

    Raises ValueError where its elements aren't those of the spec. Other values are returned as they are.
    """
    convert = getattr(type(value), "__ag_as_composite__", None)
    return value if convert is None or not is_composite(spec) else convert(value, spec)


def _hidden(structure: Any) -> Any:
    if is_composite(structure):
        return _Whole(structure)
    if not nest.is_nested(structure):
        return structure
    parts = nest.children(structure)
    hidden = list(map(_hidden, parts))
    return structure if all(a is b for a, b in zip(parts, hidden)) else nest.rebuild(structure, hidden)


def _shown(value: Any) -> Any:
    return value.value if type(value) is _Whole else value


def is_nested(seq: Any) -> bool:
    """Whether the value is a structure, rather than a leaf."""
    return not is_composite(seq) and nest.is_nested(seq)


def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """The leaves, in order. A leaf gives a list of itself."""
    if expand_composites:
        return nest.flatten(structure)
    return list(map(_shown, nest.flatten(_hidden(structure))))


def pack_sequence_as(structure: Any, flat_sequence: Iterable[Any], expand_composites: bool = False) -> Any:
    """`structure` with its leaves replaced by those of `flat_sequence`.

    Raises ValueError when their number differs.
    """
    return nest.pack_sequence_as(structure if expand_composites else _hidden(structure), flat_sequence)


def map_structure(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """func applied to the corresponding leaves of one or several structures, in the shape of the first.

    Raises ValueError or TypeError when the structures differ.
    """
    if kwargs.pop("expand_composites", False):
        return nest.map_structure(func, *structure, **kwargs)
    if not callable(func):
        raise TypeError(f"func must be callable, got: {func}")
    return nest.map_structure(
        lambda *leaves: func(*map(_shown, leaves)), *map(_hidden, structure), **kwargs
    )  # fmt: skip


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False) -> None:
    """Raises ValueError when the structures have different shapes, TypeError when sequence types or keys differ."""
    if not expand_composites:
        nest1, nest2 = _hidden(nest1), _hidden(nest2)
    nest.assert_same_structure(nest1, nest2, check_types)
