"""Strategies with one replica, and what all strategies have in common."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from autograph.data.dataset import Dataset
from autograph.distribute.contexts import (
    ReduceOp,
    ReplicaContext,
    as_reduce_op,
    current,
    gathered,
    in_replica,
    place_of_user,
    reduced,
    set_default_strategy,
    updating,
)
from autograph.distribute.inputs import DistributedDataset, InputContext, part_of_batches
from autograph.operators.calls import converted_argument
from runtime import nest
from runtime.dataclass import dataclass
from runtime.ops import collective
from runtime.ops.arrays.reduce import reduce_mean, reduce_sum
from runtime.ops.arrays.shape_ops import shape
from runtime.ops.convert import convert_to_tensor
from runtime.ops.elementwise.elementary import cast
from runtime.tensor import Tensor
from runtime.tracebacks import shows_no_frames


@dataclass(frozen=True)
class ValueContext:
    """The argument of a function that makes the replicas' values."""

    replica_id_in_sync_group: int = 0
    num_replicas_in_sync: int = 1


class StrategyExtended:
    """`Strategy.extended`: methods for optimizers and other libraries."""

    should_use_nested_replica_context = False
    num_hosts = 1
    num_replicas_per_host = 1
    parameter_devices: tuple[str, ...] = ("/device:CPU:0",)
    worker_devices: tuple[str, ...] = ("/device:CPU:0",)

    def __init__(self, strategy: Strategy) -> None:
        self._strategy = strategy

    def reduce_to(self, reduce_op: Any, value: Any, destinations: Any, options: Any = None) -> Any:
        """The replicas' values, reduced to one as by `Strategy.reduce`. destinations: without effect."""
        return self._strategy.reduce(reduce_op, value, axis=None)

    def batch_reduce_to(self, reduce_op: Any, value_destination_pairs: Any, options: Any = None) -> list[Any]:
        """Reduces the first element of each pair, like `reduce_to`, all in one exchange."""
        return self._strategy.reduce(reduce_op, [value for value, _ in value_destination_pairs], axis=None)

    def broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        """The tensor itself, which all replicas can read."""
        return convert_to_tensor(tensor)

    def read_var(self, v: Any) -> Any:
        """The value of a variable."""
        return v.read_value()

    def value_container(self, value: Any) -> Any:
        """The variable of all replicas that a replica's copy belongs to; else the value itself."""
        container = getattr(value, "_distributed_container", None)
        return value if container is None else container()

    def non_slot_devices(self, var_list: Any) -> tuple[str, ...]:
        """The devices of an optimizer's variables that belong to no variable of the model."""
        return self.parameter_devices

    def update_non_slot(
        self, colocate_with: Any, fn: Callable[..., Any], args: tuple = (), kwargs: Any = None, group: bool = True
    ) -> Any:
        """The result of ``fn(*args, **kwargs)``, in which assignments aren't aggregated over the replicas."""
        with updating():
            return fn(*args, **(kwargs or {}))

    def colocate_vars_with(self, colocate_with_variable: Any) -> contextlib.AbstractContextManager[None]:
        """A block without effect, for programs written for TensorFlow."""
        return contextlib.nullcontext()

    def update(
        self,
        var: Any,
        fn: Callable[..., Any],
        args: tuple = (),
        kwargs: dict[str, Any] | None = None,
        group: bool = True,
    ) -> Any:
        """The result of ``fn(var, *args, **kwargs)``, which runs where each copy of the variable is.

        Assignments in it change only that copy: they aren't aggregated over the replicas.
        """
        with updating():
            return fn(var, *args, **(kwargs or {}))

    def call_for_each_replica(self, fn: Callable[..., Any], args: tuple = (), kwargs: Any = None) -> Any:
        """The result of ``fn(*args, **kwargs)``, which runs for each replica."""
        return fn(*args, **(kwargs or {}))

    def _in_multi_worker_mode(self) -> bool:
        return False

    def _use_merge_call(self) -> bool:
        return False


class Strategy:
    """Runs a program as one replica.

    Its only replica has the whole value, and datasets are passed to it unchanged.
    """

    # What replicas of several processes or threads talk through, and how many bytes travel together.
    _group: Any = None
    _pack: int | None = None

    def __init__(self) -> None:
        self.extended = StrategyExtended(self)

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas that run at the same time."""
        return 1

    @contextlib.contextmanager
    def scope(self) -> Iterator[Strategy]:
        """A block in which this is the current strategy (`get_strategy`) and creates the variables.

        Raises RuntimeError in the scope of another strategy.
        """
        before, replica = current.strategy, current.replica
        if before is self:
            yield self
            return
        if before is not None:
            raise RuntimeError(
                f"Mixing different tf.distribute.Strategy objects: the scope of {self} was entered, or its `run` was "
                f"called, in the scope of {before}"
            )
        current.strategy = self
        try:
            with self._creating():
                yield self
        finally:
            current.strategy, current.replica = before, replica

    def _creating(self) -> contextlib.AbstractContextManager[None]:
        """A context in which variables are created by the strategy."""
        return contextlib.nullcontext()

    @shows_no_frames
    def run(
        self, fn: Callable[..., Any], args: tuple = (), kwargs: dict[str, Any] | None = None, options: Any = None
    ) -> Any:
        """The result of ``fn(*args, **kwargs)``, which each replica runs; ``fn`` is converted where the caller is."""
        function = converted_argument(fn, by_default=False)
        with self._as_replica():
            return function(*args, **(kwargs or {}))

    @contextlib.contextmanager
    def _as_replica(self) -> Iterator[None]:
        replica = ReplicaContext(self, 0 if self._group is None else self._group.rank)
        with self.scope(), in_replica(replica):
            yield

    def reduce(self, reduce_op: Any, value: Any, axis: int | None = None) -> Any:
        """The replicas' values, reduced by ``ReduceOp`` or its name; with ``axis``, also along that dimension.

        A mean with ``axis`` is taken over all elements along it, even if replicas have different numbers of them. For
        scalars, it is the mean over the replicas.
        """
        is_mean = as_reduce_op(reduce_op) is ReduceOp.MEAN
        if axis is None:
            return reduced(self._group, value, is_mean, self._pack)
        return nest.map_structure(lambda leaf: self._reduce_along(convert_to_tensor(leaf), axis, is_mean), value)

    def _reduce_along(self, tensor: Tensor, axis: int, is_mean: bool) -> Any:
        if self._group is None:
            return (reduce_mean if is_mean else reduce_sum)(tensor, axis=axis)
        if tensor._shape == ():
            return reduced(self._group, tensor, is_mean)
        total = reduce_sum(tensor, axis=axis)
        if not is_mean:
            return reduced(self._group, total, False, self._pack)
        count = cast(shape(tensor)[axis], tensor.dtype)
        total, count = collective.all_reduce(self._group, [total, count], False, self._pack, place_of_user())
        return total / count

    def experimental_distribute_dataset(self, dataset: Any, options: Any = None) -> Any:
        """The dataset, divided among the replicas: each gets its part of every batch."""
        return part_of_batches(dataset, self._group, options)

    def distribute_datasets_from_function(self, dataset_fn: Callable[[Any], Any], options: Any = None) -> Any:
        """The dataset that a function of an `InputContext` makes, which has batched it for one replica."""
        made = dataset_fn(self._input_context())
        return DistributedDataset(made._plan) if isinstance(made, Dataset) else made

    def _input_context(self) -> InputContext:
        group = self._group
        return InputContext() if group is None else InputContext(group.size, group.rank, group.size)

    def experimental_distribute_values_from_function(self, value_fn: Callable[[ValueContext], Any]) -> Any:
        """Calls a function for each replica, with a context that has `replica_id_in_sync_group`, and returns the
        values."""
        return value_fn(ValueContext(0 if self._group is None else self._group.rank, self.num_replicas_in_sync))

    def experimental_local_results(self, value: Any) -> tuple:
        """The values of the replicas on this machine, in a tuple."""
        return (value,)

    def gather(self, value: Any, axis: int) -> Any:
        """The replicas' values, concatenated along ``axis``."""
        return gathered(self._group, value, axis)


class OneDeviceStrategy(Strategy):
    """Everything on one device."""

    def __init__(self, device: str = "/cpu:0") -> None:
        super().__init__()
        self.device = device


set_default_strategy(Strategy())
