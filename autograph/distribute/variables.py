"""Variables of strategies, of which each replica has a copy: in a process of its own, or (`device_copies`) on a device.

synchronization   ON_WRITE: all copies are equal, and stay so; ON_READ: each replica has its own, and what the
                  program outside of replicas reads is that of all together
aggregation       what becomes of the replicas' values: their SUM or MEAN, that of ONLY_FIRST_REPLICA; with NONE
                  each process assigns its own
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from autograph.distribute.contexts import current, place_of_user, reduced, updating
from runtime.device import VariableAggregation, VariableSynchronization
from runtime.errors import UnimplementedError
from runtime.ops import collective
from runtime.ops.arrays.scatter import IndexedSlices
from runtime.ops.convert import convert_to_tensor
from runtime.ops.elementwise.elementary import cast
from runtime.tensor import Tensor
from runtime.variable import Variable, variable_creator_scope


class Aggregated:
    """A variable that replicas assign together. `group_size`: how many replicas there are."""

    group_size: int

    if TYPE_CHECKING:
        name: Any
        dtype: Any
        aggregation: Any

    def _aggregated(self, value: Any) -> Any:
        """What all replicas together assign where this one assigns a value; they meet for it."""
        raise NotImplementedError

    def _aggregated_rows(self, rows: IndexedSlices) -> IndexedSlices:
        """The rows that all replicas together add, or take away, where this one adds some; they meet for it."""
        raise NotImplementedError

    def _all_together(self) -> Any:
        """The value of all replicas together, outside of them."""
        raise NotImplementedError

    def _parts_of_sum(self, tensor: Tensor) -> Any:
        """The values that the replicas are assigned, which sum to a tensor."""
        raise NotImplementedError


def part_of_sum(tensor: Tensor, rank: int, size: int) -> Tensor:
    """The value that this replica is assigned so that all of them sum to a tensor. For integers the first replica gets
    the remainder."""
    count = cast(convert_to_tensor(size), tensor.dtype)
    if tensor.dtype.is_floating or tensor.dtype.is_complex:
        return tensor / count
    part = tensor // count
    return tensor - part * (count - 1) if rank == 0 else part


class ProcessCopy(Variable, Aggregated):
    """A variable of which each process of a group has a copy."""

    def __init__(self, group: Any, **options: Any) -> None:
        self.group, self.group_size = group, group.size
        initial, dtype = options.pop("initial_value"), options.get("dtype")
        if initial is not None:
            # All begin with the value of rank 0.
            place = place_of_user()

            def agreed() -> Tensor:
                value = initial() if callable(initial) else initial
                return collective.broadcast(group, [convert_to_tensor(value, dtype)], place=place)[0]

            super().__init__(initial_value=agreed, **options)
        else:
            super().__init__(initial_value=None, **options)

    def facts(self) -> tuple:
        """All by which a function may tell this variable from another."""
        return (*super().facts(), id(self.group))

    def _aggregated(self, value: Any) -> Tensor:
        """What all replicas together assign where this one assigns a value."""
        tensor = convert_to_tensor(value, self.dtype)
        if self.aggregation is VariableAggregation.NONE:
            return tensor
        if self.aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
            return collective.broadcast(self.group, [tensor], place=place_of_user())[0]
        is_mean = self.aggregation is VariableAggregation.MEAN
        return collective.all_reduce(self.group, [tensor], is_mean, place=place_of_user())[0]

    def _aggregated_rows(self, rows: IndexedSlices) -> IndexedSlices:
        if self.aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
            first = collective.broadcast(self.group, [rows.values, rows.indices], place=place_of_user())
            return IndexedSlices(*first)
        return reduced(self.group, rows, self.aggregation is VariableAggregation.MEAN)

    def _all_together(self) -> Tensor:
        return self._aggregated(self.own_value())

    def _parts_of_sum(self, tensor: Tensor) -> Tensor:
        return part_of_sum(tensor, self.group.rank, self.group_size)

    def __reduce__(self) -> Any:
        raise UnimplementedError(
            f"the variable {self.name} belongs to a strategy and can't be pickled: pickle ag.Variable(v.numpy()) "
            "instead"
        )


if TYPE_CHECKING:

    class _Policy(Variable, Aggregated): ...
else:

    class _Policy:
        """The base of policies, which say what replicas may do with a variable. Policies are mixed into the classes of
        variables with copies."""


class MirroredPolicy(_Policy):
    """Copies are equal: replicas assign what they all together say."""

    def _is_aggregating(self) -> bool:
        return current.replica is not None and not current.updating and self.aggregation is not VariableAggregation.NONE

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        """Sets the value; in a replica to what all replicas together say. Raises as `Variable.assign`."""
        return super().assign(self._aggregated(value) if self._is_aggregating() else value, read_value=read_value)

    def assign_add(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Adds to the value; in a replica what all replicas together add."""
        return self._changed(super().assign_add, delta, read_value)

    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtracts from the value; in a replica what all replicas together subtract."""
        return self._changed(super().assign_sub, delta, read_value)

    def _changed(self, change: Callable[..., Any], delta: Any, read_value: bool) -> Any:
        agreed = self._aggregated(delta) if self._is_aggregating() else delta
        with updating():
            return change(agreed, read_value=read_value)

    def _scatter_rows(self, function: Callable[..., Any], sparse_delta: Any) -> Any:
        adds = function in (self.scatter_nd_add, self.scatter_nd_sub)
        is_of_first = self.aggregation is VariableAggregation.ONLY_FIRST_REPLICA
        if not isinstance(sparse_delta, IndexedSlices) or not self._is_aggregating() or not (adds or is_of_first):
            return super()._scatter_rows(function, sparse_delta)
        own = IndexedSlices(self._row_updates(sparse_delta), convert_to_tensor(sparse_delta.indices))
        agreed = self._aggregated_rows(own)
        with updating():
            return super()._scatter_rows(function, agreed)

    def _replace(self, function: Callable[[Tensor], Tensor]) -> Any:
        if self._is_aggregating():
            raise UnimplementedError(
                f"replicas can't assign parts of {self.name}, whose aggregation is {self.aggregation.name}: reduce the "
                "new value with get_replica_context().all_reduce, and assign it with strategy.extended.update"
            )
        return super()._replace(function)


class SyncOnReadPolicy(_Policy):
    """Each replica has its own value; outside of replicas the value is that of all together."""

    def _is_own(self) -> bool:
        return current.replica is not None or current.updating

    def read_value(self) -> Tensor:
        """The replica's value; outside of replicas that of all together, for which all processes must ask.

        Raises ValueError outside of replicas where the aggregation is NONE.
        """
        if self._is_own():
            return super().read_value()
        if self.aggregation is VariableAggregation.NONE:
            raise ValueError(
                f"{self.name} has a value in each replica, and its aggregation NONE doesn't combine them: read it in "
                "strategy.run, or make it with another aggregation"
            )
        return self._all_together()

    def value(self) -> Tensor:
        """The same."""
        return self.read_value()

    def numpy(self) -> Any:
        """The current value, as `read_value` gives it."""
        return super().numpy() if self._is_own() else self.read_value().numpy()

    def array_to_save(self) -> Any:
        """The array that a checkpoint holds: of the value of all replicas together, for which all processes must ask;
        where that isn't defined, of this one's."""
        if self.aggregation is VariableAggregation.NONE:
            return self.current_array()
        return self.read_value()._array  # type: ignore[attr-defined]

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        """Sets the replica's value; outside of replicas all of theirs, so that together they are the value."""
        if not self._is_own() and self.aggregation is VariableAggregation.SUM:
            value = self._parts_of_sum(convert_to_tensor(value, self.dtype))
        with updating():
            return super().assign(value, read_value=read_value)

    def assign_add(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Adds to the replica's value. Raises ValueError outside of replicas where these are summed up."""
        self._refuse_outside("assign_add")
        with updating():
            return super().assign_add(delta, read_value=read_value)

    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtracts from the replica's value. Raises ValueError outside of replicas where these are summed up."""
        self._refuse_outside("assign_sub")
        with updating():
            return super().assign_sub(delta, read_value=read_value)

    def _refuse_outside(self, what: str) -> None:
        if not self._is_own() and self.aggregation is VariableAggregation.SUM:
            raise ValueError(
                f"SyncOnReadVariable does not support `{what}` in cross-replica context when aggregation is set to "
                "`VariableAggregation.SUM`: call it in strategy.run"
            )


class MirroredVariable(MirroredPolicy, ProcessCopy):
    """A variable whose copies are equal: replicas assign what they all together say."""


class SyncOnReadVariable(SyncOnReadPolicy, ProcessCopy):
    """A variable that each replica has for itself; outside of replicas its value is that of all together."""


def is_on_read(options: dict[str, Any]) -> bool:
    """Whether a variable's options ask for a value in each replica."""
    return options.get("synchronization") in (VariableSynchronization.ON_READ, "on_read", "ON_READ")


def creating(group: Any) -> contextlib.AbstractContextManager[None]:
    """A block in which variables have a copy in each process of a group."""

    def make(next_creator: Callable[..., Any], **options: Any) -> Any:
        kind: type[ProcessCopy] = SyncOnReadVariable if is_on_read(options) else MirroredVariable
        return kind(group, **options)

    return variable_creator_scope(make)
