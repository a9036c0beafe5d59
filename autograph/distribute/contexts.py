"""Which strategy and which replica the current thread runs for, and what replicas do together.

with strategy.scope():                   cross-replica: one program, that of all replicas
    strategy.run(step)                   replica: `step` runs once for each, and sees its number
        get_replica_context().all_reduce("SUM", x)
"""

from __future__ import annotations

import contextlib
import enum
import threading
from collections.abc import Callable, Iterator
from typing import Any

from runtime import composites, errors, nest
from runtime.context import apart
from runtime.graph.callers import user_span
from runtime.ops import collective
from runtime.ops.arrays.scatter import IndexedSlices
from runtime.ops.convert import convert_to_tensor
from runtime.ops.elementwise.elementary import cast
from runtime.tensor import Tensor
from runtime.thread_state import propagated


class ReduceOp(enum.Enum):
    """How the values of replicas are combined."""

    SUM = "SUM"
    MEAN = "MEAN"


def as_reduce_op(value: Any) -> ReduceOp:
    """The reduction of that name. Raises ValueError for another one."""
    if isinstance(value, ReduceOp):
        return value
    try:
        return ReduceOp[str(value).upper()]
    except KeyError:
        raise ValueError(f"reduce_op must be ReduceOp.SUM or ReduceOp.MEAN, got {value!r}") from None


class _Current(threading.local):
    """The strategy and the replica of the current thread; updating: inside `StrategyExtended.update`, there position:
    of the copy that is updated, of several in this process."""

    strategy: Any = None
    replica: ReplicaContext | None = None
    updating = False
    position: int | None = None


current = propagated(_Current())


class ReplicaContext:
    """The context of a replica: the result of `get_replica_context` inside `Strategy.run`."""

    def __init__(self, strategy: Any, replica_id_in_sync_group: int = 0) -> None:
        self._strategy = strategy
        self._id = replica_id_in_sync_group

    @property
    def strategy(self) -> Any:
        """The strategy that runs this replica."""
        return self._strategy

    @property
    def replica_id_in_sync_group(self) -> int:
        """The number of this replica, from 0."""
        return self._id

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas that run at the same time."""
        return self._strategy.num_replicas_in_sync

    @property
    def devices(self) -> tuple[str, ...]:
        """The device of this replica, in a tuple."""
        return (self._strategy.extended.worker_devices[self._id % len(self._strategy.extended.worker_devices)],)

    def all_reduce(self, reduce_op: Any, value: Any, options: Any = None) -> Any:
        """The sum or mean over all replicas of a structure of tensors, which are sent together; differentiable.

        All replicas must call it, with tensors of the same dtypes and shapes. Sums are taken in the order of the
        replicas. Raises InvalidArgumentError if the replicas' calls differ, TypeError for booleans.
        """
        is_mean = as_reduce_op(reduce_op) is ReduceOp.MEAN
        pack = getattr(options, "bytes_per_pack", 0) or self._strategy._pack
        return reduced(self._strategy._group, value, is_mean, pack)

    def all_gather(self, value: Any, axis: int, options: Any = None) -> Any:
        """The tensors of all replicas, concatenated along ``axis``; differentiable.

        Raises ValueError for an axis out of range, InvalidArgumentError if other dimensions differ.
        """
        return gathered(self._strategy._group, value, axis)

    def merge_call(self, merge_fn: Callable[..., Any], args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
        """The result of ``merge_fn(strategy, *args, **kwargs)``, which runs once for all replicas."""
        with in_replica(None):
            return merge_fn(self._strategy, *args, **(kwargs or {}))

    def __repr__(self) -> str:
        return f"<replica {self._id} of {self.num_replicas_in_sync}>"


def place_of_user() -> str:
    """The user's line, for errors."""
    span = user_span()
    return "" if span is None else errors.place(span[0], span[1])


def reduced(group: Any, value: Any, is_mean: bool, pack: int | None = None) -> Any:
    """A structure of tensors reduced over a group; None: over one replica."""
    if group is None:
        return nest.map_structure(convert_to_tensor, value) if _is_plain(value) else value
    leaves = composites.flatten(value)
    dense = [i for i, leaf in enumerate(leaves) if not isinstance(leaf, IndexedSlices) and leaf is not None]
    tensors = [convert_to_tensor(leaves[i]) for i in dense]
    found: list[Any] = list(leaves)
    if tensors:
        # Means of whole numbers are floats, as quotients of tensors are.
        divides = is_mean and any(tensor.dtype.is_integer for tensor in tensors)
        results = collective.all_reduce(group, tensors, is_mean and not divides, pack, place_of_user())
        if divides:
            results = [tensor / cast(convert_to_tensor(group.size), tensor.dtype) for tensor in results]
        for i, tensor in zip(dense, results):
            found[i] = tensor
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, IndexedSlices):
            # Of rows that several replicas have, each is there several times: they add up where they are used.
            rows, indices = collective.all_gather(
                group, [convert_to_tensor(leaf.values), convert_to_tensor(leaf.indices)], 0, place_of_user()
            )
            found[i] = IndexedSlices(
                rows / cast(convert_to_tensor(group.size), rows.dtype) if is_mean else rows, indices, leaf.dense_shape
            )
    return composites.pack_sequence_as(value, found)


def _is_plain(value: Any) -> bool:
    return not any(leaf is None or isinstance(leaf, IndexedSlices) for leaf in composites.flatten(value))


def check_axis_to_gather(tensor: Tensor, axis: int) -> None:
    """Raises ValueError for a scalar, and for an axis that a tensor hasn't got."""
    rank = None if tensor._shape is None else len(tensor._shape)
    if rank == 0:
        raise ValueError("all_gather needs tensors with at least one dimension: ag.expand_dims(x, 0) adds one")
    if rank is not None and not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is out of range for a tensor of rank {rank}")


def gathered(group: Any, value: Any, axis: int) -> Any:
    """A structure of tensors gathered over a group; None: over one replica."""
    tensors = [convert_to_tensor(leaf) for leaf in nest.flatten(value)]
    for tensor in tensors:
        check_axis_to_gather(tensor, axis)
    if group is None:
        return nest.pack_sequence_as(value, tensors)
    found: list[Tensor] = []
    for tensor in tensors:
        if axis < 0 and tensor._shape is None:
            raise ValueError("all_gather along a negative axis needs tensors of known rank")
        counted = axis if axis >= 0 else axis + len(tensor._shape or ())
        found += collective.all_gather(group, [tensor], counted, place_of_user())
    return nest.pack_sequence_as(value, found)


@contextlib.contextmanager
def in_replica(replica: ReplicaContext | None) -> Iterator[None]:
    """A block that runs as a replica; None: as the program of all of them."""
    before = current.replica
    current.replica = replica
    # Functions have a trace for each replica: its number is a Python integer there.
    variant = None
    if replica is not None and (replica.strategy._group is not None or replica.num_replicas_in_sync > 1):
        variant = replica.strategy, replica.replica_id_in_sync_group
    try:
        with apart(variant):
            yield
    finally:
        current.replica = before


@contextlib.contextmanager
def updating(position: int | None = None) -> Iterator[None]:
    """A block in which assignments are meant for the copy of a variable that is at hand, or for that of a position."""
    before = current.updating, current.position
    current.updating = True
    if position is not None:
        current.position = position
    try:
        yield
    finally:
        current.updating, current.position = before


def get_strategy() -> Any:
    """The strategy whose `scope` is open, else a default strategy with one replica."""
    return default_strategy() if current.strategy is None else current.strategy


def has_strategy() -> bool:
    """Whether the `scope` of a strategy is open."""
    return current.strategy is not None


def in_cross_replica_context() -> bool:
    """Whether the `scope` of a strategy is open and no replica is running."""
    return has_strategy() and current.replica is None


def get_replica_context() -> ReplicaContext | None:
    """The context of the running replica; None in a strategy's `scope` outside of `run`."""
    if current.replica is not None or has_strategy():
        return current.replica
    return ReplicaContext(get_strategy())


def number_of_replicas() -> int:
    """How many replicas the strategy whose `scope` is open has; 1 if none is."""
    return 1 if current.strategy is None else int(current.strategy.num_replicas_in_sync)


_default: list[Any] = []


def default_strategy() -> Any:
    """The strategy of programs without one."""
    return _default[0]


def set_default_strategy(strategy: Any) -> None:
    """Says which strategy programs without one have."""
    _default[:] = [strategy]
