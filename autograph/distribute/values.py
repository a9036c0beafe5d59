"""`PerReplica`: a value for each replica of this process. Structures of them go in and out of `Strategy.run`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runtime import composites, nest
from runtime.tensor import Tensor


class DistributedValues:
    """A value for each replica: `values`, a tuple."""

    values: tuple[Any, ...]


class PerReplica(DistributedValues):
    """A value for each replica. It is a structure of them, so traced functions and datasets accept and return it."""

    __slots__ = ("values",)

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = tuple(values)

    def __tf_flatten__(self) -> tuple[Any, tuple]:
        return None, self.values

    @classmethod
    def __tf_unflatten__(cls, metadata: Any, components: Sequence[Any]) -> PerReplica:
        return cls(components)

    def __repr__(self) -> str:
        return "PerReplica:{\n" + ",\n".join(f"  {i}: {value!s}" for i, value in enumerate(self.values)) + "\n}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PerReplica) and self.values == other.values

    def __hash__(self) -> int:
        return hash(self.values)


def of_replica(structure: Any, index: int) -> Any:
    """What a structure is for one replica: its `DistributedValues` replaced by their values."""
    if isinstance(structure, DistributedValues):
        return structure.values[index]
    if composites.is_composite(structure) or not nest.is_nested(structure):
        return structure
    parts = nest.children(structure)
    own = [of_replica(part, index) for part in parts]
    return structure if all(a is b for a, b in zip(parts, own)) else nest.rebuild(structure, own)


def together(results: Sequence[Any]) -> Any:
    """The structures of the replicas as one. Leaves are `PerReplica`; an object that all have, and is no tensor, isn't.

    Raises ValueError if the structures differ.
    """
    first = results[0]
    if isinstance(first, Tensor):
        return PerReplica(results)
    if all(each is first for each in results) and not nest.is_nested(first):
        return first
    containers = [getattr(each, "_distributed_container", None) for each in results]
    if all(containers):
        (owner, *others) = (container() for container in containers if container)
        if all(each is owner for each in others):
            return owner
    if composites.is_composite(first) or not nest.is_nested(first) or isinstance(first, DistributedValues):
        return PerReplica(results)
    for index, each in enumerate(results):
        if type(each) is not type(first) or len(each) != len(first) or _keys(each) != _keys(first):
            raise ValueError(
                f"The replicas returned different structures: replica 0 {first!r}, replica {index} {each!r}"
            )
    return nest.rebuild(first, [together(parts) for parts in zip(*map(nest.children, results))])


def _keys(structure: Any) -> Any:
    return nest.sorted_keys(structure) if hasattr(structure, "keys") else None
