"""What replicas of one process have in common: sums of their tensors, and variables with a copy on each device."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any

from autograph.distribute.contexts import check_axis_to_gather, current, in_replica
from autograph.distribute.rendezvous import has_tapes_of_its_own, meet, shared
from autograph.distribute.values import DistributedValues, of_replica, together
from autograph.distribute.variables import Aggregated, MirroredPolicy, SyncOnReadPolicy, is_on_read, part_of_sum
from runtime import composites
from runtime.device import VariableAggregation, device
from runtime.errors import InvalidArgumentError, UnimplementedError
from runtime.ops.arrays.joining import concat
from runtime.ops.arrays.scatter import IndexedSlices
from runtime.ops.arrays.shape_ops import IDENTITY, shape
from runtime.ops.arrays.slicing import getitem
from runtime.ops.collective import FROM_REPLICAS, check_numbers
from runtime.ops.convert import convert_to_tensor
from runtime.ops.dispatch import apply
from runtime.ops.elementwise.elementary import cast
from runtime.shapes import format_shape
from runtime.tensor import EagerTensor, Tensor
from runtime.variable import Variable, variable_creator_scope

# --- tensors ---------------------------------------------------------------------------------------------------------


class Sum:
    """The sum or mean of the replicas' tensors, in their order."""

    def __init__(self, mean: bool) -> None:
        self.mean = mean

    def __str__(self) -> str:
        return "all_reduce " + ("MEAN" if self.mean else "SUM")

    def combine(self, each: Sequence[Any]) -> Any:
        """The sum or mean of the replicas' tensors or IndexedSlices. `each`: one value per replica."""
        if isinstance(each[0], IndexedSlices):
            # Of rows that several replicas have, each is there several times: they add up where they are used.
            values = concat([convert_to_tensor(one.values) for one in each], 0)
            indices = concat([convert_to_tensor(one.indices) for one in each], 0)
            return IndexedSlices(self._divided(values, len(each)), indices, each[0].dense_shape)
        first = each[0]
        check_numbers(first)
        for index, one in enumerate(each):
            if one.dtype is not first.dtype or not one.shape.is_compatible_with(first.shape):
                raise InvalidArgumentError(
                    f"The replicas reduce different tensors: replica 0 {first.dtype.name}{format_shape(first._shape)}, "
                    f"replica {index} {one.dtype.name}{format_shape(one._shape)}"
                )
        return self._divided(functools.reduce(lambda a, b: a + b, each), len(each))

    def _divided(self, total: Tensor, count: int) -> Tensor:
        if not self.mean:
            return total
        # Means of whole numbers are floats, as quotients of tensors are.
        return total / cast(convert_to_tensor(count), total.dtype)

    def pull_back(self, own: Tensor, dy: Any) -> Any:
        """The cotangent of a replica's tensor, from those of all results: each replica's loss counts as its own."""
        return None if current.replica is None else combined(self, dy)


class Gather:
    """The replicas' tensors one after the other along an axis."""

    def __init__(self, axis: int) -> None:
        self.axis = axis

    def __str__(self) -> str:
        return f"all_gather along axis {self.axis}"

    def combine(self, each: Sequence[Tensor]) -> Tensor:
        """The replicas' tensors, concatenated along the axis. `each`: one tensor per replica. Raises ValueError for
        scalars and for an axis that they don't have."""
        for one in each:
            check_axis_to_gather(one, self.axis)
        return concat(list(each), self.axis)

    def pull_back(self, own: Tensor, dy: Any) -> Any:
        """The cotangent of a replica's tensor: its part of the sum of those of all results."""
        if current.replica is None:
            return None

        def parts(*each: Any) -> list[Any]:
            total = Sum(False).combine([cotangent for cotangent, _ in each])
            found, start = [], convert_to_tensor(0)
            for _, length in each:
                found.append(getitem(total, self._slice(start, start + length, total)))
                start = start + length
            return found

        return meet(f"the gradient of {self}", parts, (dy, shape(own)[self.axis]))

    def _slice(self, start: Any, stop: Any, total: Tensor) -> tuple:
        along = slice(start, stop)
        if self.axis >= 0:
            return (*[slice(None)] * self.axis, along)
        return (..., along, *[slice(None)] * (-self.axis - 1))


def combined(how: Sum | Gather, value: Any) -> Any:
    """A structure of this replica's tensors combined with those of the others; they meet for it."""
    leaves = [
        leaf if leaf is None or isinstance(leaf, IndexedSlices) else convert_to_tensor(leaf)
        for leaf in composites.flatten(value)
    ]

    def all_of_them(*each: Sequence[Any]) -> list[list[Any]]:
        if len({len(one) for one in each}) > 1:
            counts = [len(one) for one in each]
            raise InvalidArgumentError(f"All replicas must pass equally many tensors to {how}, got {counts}")
        results = [None if of_one[0] is None else how.combine(of_one) for of_one in zip(*each)]
        return [results] * len(each)

    # Each replica has the result on its own device. (Slices are copied where they are used.)
    results = [
        apply(IDENTITY, (each,)) if isinstance(each, Tensor) else each for each in meet(str(how), all_of_them, leaves)
    ]
    if has_tapes_of_its_own():
        # These tapes see the result here, and ask `how` for the gradient.
        results = [
            apply(FROM_REPLICAS, (leaf, result), {"pull_back": how.pull_back}) if isinstance(leaf, Tensor) else result
            for leaf, result in zip(leaves, results)
        ]
    return composites.pack_sequence_as(value, results)


# --- variables -------------------------------------------------------------------------------------------------------


class DeviceCopies(Variable, DistributedValues, Aggregated):
    """A variable with a copy on each device, `values`. A replica reads and assigns its own, the program of all of them
    reads the first and assigns all."""

    def __init__(self, strategy: Any, copies: Sequence[Variable]) -> None:
        self.strategy = strategy
        self.values = tuple(copies)
        self.group_size = len(copies)
        first = copies[0]
        self._id, self._name = first._id, first._name
        self.dtype, self._shape, self._trainable = first.dtype, first._shape, first._trainable
        self.constraint = first.constraint
        self.synchronization, self.aggregation = first.synchronization, first.aggregation
        for copy in copies:
            copy._distributed_container = lambda: self  # type: ignore[attr-defined]

    @property
    def _array(self) -> Any:
        return self.component()._array

    @property
    def device(self) -> str:
        """Where the copy is that is meant here."""
        return self.component().device

    def facts(self) -> tuple:
        """All by which a function may tell this variable from another: it is taken for no other."""
        return type(self), id(self)

    def component(self) -> Variable:
        """The copy of the replica that is running, or being updated; else the first."""
        position = self._position()
        return self.values[0 if position is None else position]

    def _position(self) -> int | None:
        replica = current.replica
        if replica is not None and replica.strategy is self.strategy:
            return replica.replica_id_in_sync_group
        return current.position

    def _aggregated(self, value: Any) -> Any:
        tensor = convert_to_tensor(value, self.dtype)
        if self.aggregation is VariableAggregation.NONE:
            return tensor
        return meet(f"an assignment to {self.name}", self._for_all, tensor)

    def _aggregated_rows(self, rows: IndexedSlices) -> IndexedSlices:
        return meet(f"an assignment to {self.name}", self._for_all, rows)

    def _for_all(self, *each: Any) -> list[Any]:
        return [self._as_one(each)] * len(each)

    def _as_one(self, each: Sequence[Any]) -> Any:
        if self.aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
            return each[0]
        together = Sum(self.aggregation is VariableAggregation.MEAN).combine(each)
        return together if isinstance(together, IndexedSlices) else cast(together, self.dtype)

    def _all_together(self) -> Any:
        return self._as_one([copy.read_value() for copy in self.values])

    def read_value(self) -> Tensor:
        """The value of the copy that is meant here."""
        return self.component().read_value()

    own_value = read_value
    is_plain = False

    def current_array(self) -> Any:
        """The array of the copy that is meant here."""
        return self.component().current_array()

    def set_array(self, array: Any) -> None:
        """Sets all copies, unseen by tapes."""
        for copy in self.values:
            copy.set_array(array)

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        """Sets the copy that is meant here; outside of replicas all, to their own of `PerReplica` values."""
        return self._on_copies("assign", value, read_value)

    assign_own = assign

    def assign_add(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Adds to the copy that is meant here; outside of replicas to all."""
        return self._on_copies("assign_add", delta, read_value)

    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtracts from the copy that is meant here; outside of replicas from all."""
        return self._on_copies("assign_sub", delta, read_value)

    def _on_copies(self, method: str, value: Any, read_value: bool) -> Any:
        position = self._position()
        for index, copy in enumerate(self.values):
            if position is None or position == index:
                with device(self.strategy.extended.worker_devices[index]):
                    getattr(copy, method)(of_replica(value, index))
        return self if read_value else None

    def _replace(self, function: Callable[[Tensor], Tensor]) -> Any:
        position = self._position()
        for index, copy in enumerate(self.values):
            if position is None or position == index:
                copy._replace(function)
        return self

    def __reduce__(self) -> Any:
        raise UnimplementedError(
            f"the variable {self.name} belongs to a strategy and can't be pickled: pickle ag.Variable(v.numpy()) "
            "instead"
        )


class MirroredCopies(MirroredPolicy, DeviceCopies):
    """A variable whose copies are equal: replicas assign what they all together say."""


class SyncOnReadCopies(SyncOnReadPolicy, DeviceCopies):
    """A variable that each replica has for itself; outside of replicas its value is that of all together."""

    def _parts_of_sum(self, tensor: Tensor) -> Any:
        return together([part_of_sum(tensor, rank, self.group_size) for rank in range(self.group_size)])


def creating(strategy: Any) -> contextlib.AbstractContextManager[None]:
    """A block in which variables have a copy on each device of a strategy. In replicas the first makes all copies."""
    devices = strategy.extended.worker_devices

    def made(next_creator: Callable[..., Any], options: dict[str, Any]) -> Variable:
        copies: list[Variable] = []
        for index, name in enumerate(devices):
            own = dict(options)
            if index:
                # All begin with the value of the first.
                own["initial_value"] = EagerTensor(copies[0].current_array(), copies[0].dtype)
                own["name"] = f"{options['name'] or 'Variable'}/replica_{index}"
            with device(name):
                copies.append(next_creator(**own))
        kind: type[DeviceCopies] = SyncOnReadCopies if is_on_read(options) else MirroredCopies
        return kind(strategy, copies)

    def make(next_creator: Callable[..., Any], **options: Any) -> Any:
        replica = current.replica
        if replica is None or replica.strategy is not strategy:
            return made(next_creator, options)

        def for_all() -> Variable:
            with in_replica(None):
                return made(next_creator, options)

        return shared(("variable", options["name"]), for_all)

    return variable_creator_scope(make)
