"""None in elements of datasets, such as an input of a model that is left out.

Within a pipeline a `NoneTensorSpec` stands for None, both in elements and in their spec: a structure without tensors,
while None would be a leaf. Functions of elements, loops and iterators are given None (`shown`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runtime import composites, nest


class NoneTensorSpec:
    """Describes None in the elements of a dataset."""

    __ag_composite__ = "none"
    value_type = type(None)

    def __tf_flatten__(self) -> tuple[Any, tuple]:
        return None, ()

    @classmethod
    def __tf_unflatten__(cls, metadata: Any, components: Sequence[Any]) -> NoneTensorSpec:
        return cls()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NoneTensorSpec)

    def __hash__(self) -> int:
        return hash(NoneTensorSpec)

    def __repr__(self) -> str:
        return "NoneTensorSpec()"


def holds_none(spec: Any) -> bool:
    """Whether elements of a spec have None in them."""
    return any(isinstance(leaf, NoneTensorSpec) for leaf in composites.flatten(spec))


def shown(element: Any) -> Any:
    """An element as users see it."""
    if isinstance(element, NoneTensorSpec):
        return None
    if not composites.is_nested(element):
        return element
    return nest.rebuild(element, list(map(shown, nest.children(element))))


def showing(function: Callable[..., Any], as_element: Callable[[Any], Any]) -> Callable[..., Any]:
    """A user's function of elements, as a function of what stands in the pipeline. `as_element` hides its results."""

    def of_element(*parts: Any) -> Any:
        return as_element(function(*map(shown, parts)))

    return of_element
