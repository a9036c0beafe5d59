"""`ag.distribute`: strategies with one replica on this machine's device, so that programs written for many run on one.

>>> strategy = MirroredStrategy()
>>> strategy.num_replicas_in_sync
1
"""

from __future__ import annotations

import contextlib
import enum
import threading
from collections.abc import Callable, Iterator
from typing import Any

from autograph.operators.calls import converted_argument
from runtime import nest
from runtime.ops.arrays.reduce import reduce_mean, reduce_sum
from runtime.ops.convert import convert_to_tensor


class ReduceOp(enum.Enum):
    """How the values of replicas become one."""

    SUM = "SUM"
    MEAN = "MEAN"


class ReplicaContext:
    """What `get_replica_context` gives inside `Strategy.run`."""

    replica_id_in_sync_group = 0

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas that run at the same time."""
        return self.strategy.num_replicas_in_sync

    def all_reduce(self, reduce_op: Any, value: Any) -> Any:
        """The sum or mean over the replicas: of one, the value."""
        _reduce_op(reduce_op)
        return value


class StrategyExtended:
    """`Strategy.extended`: what optimisers and other libraries ask of a strategy."""

    should_use_nested_replica_context = False
    num_hosts = 1
    num_replicas_per_host = 1
    parameter_devices = worker_devices = ("/device:CPU:0",)

    def colocate_vars_with(self, colocate_with_variable: Any) -> contextlib.AbstractContextManager[None]:
        """A block in which variables are made where another one is: there is one place."""
        return contextlib.nullcontext()

    def update(
        self,
        var: Any,
        fn: Callable[..., Any],
        args: tuple = (),
        kwargs: dict[str, Any] | None = None,
        group: bool = True,
    ) -> Any:
        """The result of ``fn(var, *args, **kwargs)``, which runs where the variable is."""
        return fn(var, *args, **(kwargs or {}))

    def call_for_each_replica(self, fn: Callable[..., Any], args: tuple = (), kwargs: Any = None) -> Any:
        """The result of ``fn(*args, **kwargs)``: there is one replica."""
        return fn(*args, **(kwargs or {}))

    def _in_multi_worker_mode(self) -> bool:
        return False


class Strategy:
    """Runs a program as one replica.

    What a value is per replica it is altogether; datasets are handed to the one replica as they are.
    """

    num_replicas_in_sync = 1
    extended = StrategyExtended()

    @contextlib.contextmanager
    def scope(self) -> Iterator[Strategy]:
        """A block in which this is the current strategy (`get_strategy`)."""
        before = _current.strategy
        _current.strategy = self
        try:
            yield self
        finally:
            _current.strategy = before

    def run(self, fn: Callable[..., Any], args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
        """The result of ``fn(*args, **kwargs)``; ``fn`` is converted where the caller is."""
        function = converted_argument(fn, by_default=False)
        before = _current.replica
        _current.replica = ReplicaContext(self)
        try:
            return function(*args, **(kwargs or {}))
        finally:
            _current.replica = before

    def reduce(self, reduce_op: Any, value: Any, axis: int | None) -> Any:
        """The values of the replicas as one, by ``ReduceOp`` or its name; with ``axis`` along that dimension too."""
        combine = reduce_sum if _reduce_op(reduce_op) is ReduceOp.SUM else reduce_mean
        if axis is None:
            return nest.map_structure(convert_to_tensor, value)
        return nest.map_structure(lambda leaf: combine(leaf, axis=axis), value)

    def experimental_distribute_dataset(self, dataset: Any, options: Any = None) -> Any:
        """The dataset."""
        return dataset

    def distribute_datasets_from_function(self, dataset_fn: Callable[[Any], Any], options: Any = None) -> Any:
        """The dataset that a function of an `InputContext` makes."""
        return dataset_fn(InputContext())

    def experimental_local_results(self, value: Any) -> tuple:
        """The values of the replicas on this machine, in a tuple."""
        return (value,)

    def gather(self, value: Any, axis: int) -> Any:
        """The values of the replicas one after the other along ``axis``: of one, the value."""
        return convert_to_tensor(value)


class InputContext:
    """What a function that makes datasets is told: there is one pipeline, for one replica."""

    num_input_pipelines = 1
    input_pipeline_id = 0
    num_replicas_in_sync = 1

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """The part of a batch that one replica gets: all of it."""
        return global_batch_size


class OneDeviceStrategy(Strategy):
    """Everything on one device."""

    def __init__(self, device: str = "/cpu:0") -> None:
        self.device = device


class MirroredStrategy(Strategy):
    """A replica on each device of this machine, of which there is one. Raises ValueError for several devices."""

    def __init__(self, devices: Any = None, cross_device_ops: Any = None) -> None:
        if devices is not None and len(devices) > 1:
            raise ValueError(f"There is one device to run on, but {len(devices)} were given: {list(devices)}")


class _Current(threading.local):
    """The strategy and the replica of the current thread."""

    strategy: Strategy = Strategy()
    replica: ReplicaContext | None = None


_current = _Current()


def get_strategy() -> Strategy:
    """The strategy whose `scope` is open, else one that does nothing of its own."""
    return _current.strategy


def has_strategy() -> bool:
    """Whether the `scope` of a strategy is open."""
    return _current.strategy is not _Current.strategy


def in_cross_replica_context() -> bool:
    """Whether the `scope` of a strategy is open and no replica is running."""
    return has_strategy() and _current.replica is None


def get_replica_context() -> ReplicaContext | None:
    """The replica that is running; None in a strategy's `scope` outside `run`."""
    if _current.replica is not None or has_strategy():
        return _current.replica
    return ReplicaContext(_current.strategy)


def _reduce_op(value: Any) -> ReduceOp:
    if isinstance(value, ReduceOp):
        return value
    try:
        return ReduceOp[str(value).upper()]
    except KeyError:
        raise ValueError(f"reduce_op must be ReduceOp.SUM or ReduceOp.MEAN, got {value!r}") from None
