"""`Optional`: an element that may not be there. It goes in and out of functions, through loops and branches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from autograph.data.elements import as_element, blank, spec_of
from autograph.data.none_values import shown
from runtime import dtypes, nest
from runtime.ops.control import assert_op
from runtime.ops.convert import convert_to_tensor
from runtime.spec import TensorSpec
from runtime.tensor import EagerTensor


class OptionalSpec:
    """Describes an `Optional` with elements of a spec."""

    __ag_composite__ = "optional"
    __ag_exact__ = True

    def __init__(self, element_spec: Any) -> None:
        self.element_spec = element_spec

    def __tf_flatten__(self) -> tuple[Any, tuple]:
        leaves = [] if self.element_spec is None else nest.flatten(self.element_spec)
        return self.element_spec, (TensorSpec((), dtypes.bool_), *leaves)

    @classmethod
    def __tf_unflatten__(cls, metadata: Any, components: Sequence[Any]) -> Any:
        return Optional.__tf_unflatten__(metadata, components)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OptionalSpec) and self.element_spec == other.element_spec

    def __hash__(self) -> int:
        return hash(tuple(nest.flatten(self.element_spec)))

    def __repr__(self) -> str:
        return f"OptionalSpec({self.element_spec!r})"


class Optional:
    """An element that may be missing; made by `from_value`, `empty`, or an iterator's `get_next_as_optional`."""

    __ag_composite__ = "optional"
    __ag_exact__ = True

    def __init__(self, there: Any, value: Any, spec: Any) -> None:
        self._there = there
        self._value = value
        self._spec = spec

    @staticmethod
    def from_value(value: Any) -> Optional:
        """An optional with an element, a tensor or a structure of tensors."""
        element = as_element(value)
        return Optional(convert_to_tensor(True), element, spec_of(element))

    @staticmethod
    def empty(element_spec: Any) -> Optional:
        """An optional without an element; its spec may be None, and a loop then infers it."""
        return Optional(convert_to_tensor(False), None, element_spec)

    @property
    def element_spec(self) -> Any:
        """The spec of the element, which may be missing."""
        return self._spec

    @property
    def _element_spec(self) -> Any:
        return self._spec

    @_element_spec.setter
    def _element_spec(self, spec: Any) -> None:
        """Keras tells an empty one so what it is empty of."""
        if self._spec is None:
            self._spec = spec

    def has_value(self, name: str | None = None) -> Any:
        """Whether there is an element, a boolean tensor."""
        return self._there

    def get_value(self, name: str | None = None) -> Any:
        """The element. Raises InvalidArgumentError if there is none."""
        if not (isinstance(self._there, EagerTensor) and self._there._array):
            assert_op(self._there, "The given optional does not have a value.", "InvalidArgumentError")
        given = self._value
        return shown(nest.pack_sequence_as(self._spec, self._leaves()) if given is None else given)

    def _leaves(self) -> list[Any]:
        """The tensors of the element, or placeholders if there is none."""
        if self._spec is None:
            return []
        if self._value is None:
            return [convert_to_tensor(blank(leaf.type), leaf.dtype) for leaf in nest.flatten(self._spec)]
        return nest.flatten(self._value)

    def __tf_flatten__(self) -> tuple[Any, tuple]:
        return self._spec, (self._there, *self._leaves())

    @classmethod
    def __tf_unflatten__(cls, metadata: Any, components: Sequence[Any]) -> Any:
        there, *leaves = components
        if isinstance(there, TensorSpec):
            return OptionalSpec(metadata)
        return cls(there, nest.pack_sequence_as(metadata, leaves) if leaves else None, metadata)

    def __repr__(self) -> str:
        return f"<Optional element_spec={self._spec!r}>"
