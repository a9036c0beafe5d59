"""Replicas on the devices of one process."""

from __future__ import annotations

import contextlib
import functools
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from autograph.data.dataset import Dataset
from autograph.data.grouping import Dealt
from autograph.distribute import device_copies
from autograph.distribute.contexts import ReduceOp, ReplicaContext, as_reduce_op, current, in_replica, updating
from autograph.distribute.inputs import DistributedDataset, InputContext, rows_of_share
from autograph.distribute.rendezvous import Meeting, meet
from autograph.distribute.strategy import Strategy, StrategyExtended, ValueContext
from autograph.distribute.values import DistributedValues, PerReplica, of_replica, together
from autograph.function.polymorphic import Function, functions_run_eagerly
from autograph.operators.calls import converted_argument
from runtime import composites, nest
from runtime.context import ctx
from runtime.device import device, list_logical_devices, parse
from runtime.errors import InvalidArgumentError
from runtime.ops.arrays.reduce import reduce_sum
from runtime.ops.arrays.scatter import IndexedSlices
from runtime.ops.arrays.shape_ops import shape
from runtime.ops.convert import convert_to_tensor
from runtime.ops.elementwise.elementary import cast
from runtime.tracebacks import shows_no_frames


class _Extended(StrategyExtended):
    def __init__(self, strategy: MirroredStrategy, devices: Sequence[str]) -> None:
        super().__init__(strategy)
        self.worker_devices = self.parameter_devices = tuple(devices)
        self.num_replicas_per_host = len(devices)

    def _use_merge_call(self) -> bool:
        return self.num_replicas_per_host > 1

    def update(
        self,
        var: Any,
        fn: Callable[..., Any],
        args: tuple = (),
        kwargs: dict[str, Any] | None = None,
        group: bool = True,
    ) -> Any:
        """The results of ``fn(copy, *args, **kwargs)`` for each copy of a variable; of `PerReplica` arguments each copy
        gets its own. ``group=False`` gives them in a tuple. A replica updates its own copy."""
        if self.num_replicas_per_host == 1:
            return super().update(var, fn, args, kwargs, group)
        if current.replica is not None:
            position = current.replica.replica_id_in_sync_group
            with updating(position):
                return fn(var.component(), *args, **(kwargs or {}))
        results = []
        for position, name in enumerate(self.worker_devices):
            own, named = of_replica((tuple(args), kwargs or {}), position)
            with updating(position), device(name):
                results.append(fn(of_replica(var, position), *own, **named))
        return together(results) if group else tuple(results)

    def call_for_each_replica(self, fn: Callable[..., Any], args: tuple = (), kwargs: Any = None) -> Any:
        """The results of ``fn(*args, **kwargs)``, which runs for each replica."""
        return self._strategy.run(fn, args, kwargs)


class _ReplicaContext(ReplicaContext):
    """A replica that meets others of this process."""

    def all_reduce(self, reduce_op: Any, value: Any, options: Any = None) -> Any:
        return device_copies.combined(device_copies.Sum(as_reduce_op(reduce_op) is ReduceOp.MEAN), value)

    def all_gather(self, value: Any, axis: int, options: Any = None) -> Any:
        return device_copies.combined(device_copies.Gather(axis), value)

    def merge_call(self, merge_fn: Callable[..., Any], args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
        """What ``merge_fn(strategy, *args, **kwargs)`` gives each replica: it runs once, as the program of all of them,
        with their arguments as `PerReplica`. Raises RuntimeError if replicas can't meet."""
        strategy, count = self._strategy, self.num_replicas_in_sync

        def merged(*arguments: Any) -> list[Any]:
            own, named = together(arguments)
            result = merge_fn(strategy, *own, **named)
            return [of_replica(result, i) for i in range(count)]

        return meet(f"merge_call of {getattr(merge_fn, '__name__', merge_fn)}", merged, (tuple(args), kwargs or {}))


class MirroredStrategy(Strategy):
    """A replica on each device of this process.

    devices           their names; default: all GPUs, or all logical CPUs if there is none
                      (`ag.config.set_logical_device_configuration` makes several of one)
    cross_device_ops  without effect

    The replicas take turns: one runs until it has to wait for the others (`all_reduce`, `merge_call`, an assignment to
    a variable with an aggregation). In an `ag.function`, all of them are traced into one graph. Several logical CPUs
    share the same cores, so they show how a program for several devices behaves, but don't make it faster.

    Raises ValueError for no devices or a repeated one, InvalidArgumentError for an unknown device.
    """

    def __init__(self, devices: Sequence[str] | None = None, cross_device_ops: Any = None) -> None:
        there = [each.name for each in list_logical_devices("GPU") or list_logical_devices("CPU")]
        names = there if devices is None else [_full_name(name) for name in devices]
        if not names:
            raise ValueError("MirroredStrategy needs at least one device")
        if len(set(names)) < len(names):
            raise ValueError(f"MirroredStrategy needs different devices, one for each replica, got {names}")
        known = [each.name for each in list_logical_devices()]
        for name in names:
            # Of one device the name doesn't matter: soft placement takes the CPU for one that isn't there.
            if name not in known and len(names) > 1:
                raise InvalidArgumentError(
                    f"There is no device {name}; the devices are {known}. To divide the CPU into several, call "
                    "ag.config.set_logical_device_configuration at the start of the program"
                )
        self._devices = names
        self.extended = _Extended(self, names)
        self._stepping: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of devices."""
        return len(self._devices)

    def _creating(self) -> contextlib.AbstractContextManager[None]:
        return device_copies.creating(self) if len(self._devices) > 1 else contextlib.nullcontext()

    @shows_no_frames
    def run(
        self, fn: Callable[..., Any], args: tuple = (), kwargs: dict[str, Any] | None = None, options: Any = None
    ) -> Any:
        """The results of ``fn(*args, **kwargs)``, which each replica runs, with its values of `PerReplica` arguments.

        Values that may differ between replicas are `PerReplica`, leaf by leaf; with one replica, the result itself. An
        `ag.function` is traced for all replicas at once. Raises RuntimeError in a replica, if replicas reach different
        reductions, and for a reduction in a loop or conditional on tensors.
        """
        if len(self._devices) == 1:
            return super().run(fn, args, kwargs)
        if current.replica is not None:
            raise RuntimeError(
                "strategy.run can't be called in a function that strategy.run already runs: call the function itself"
            )
        if isinstance(fn, Function):
            if ctx.builder is None and not functions_run_eagerly():
                return self._step_of(fn)(tuple(args), kwargs or {})
            function: Any = fn.python_function
            if hasattr(function, "__func__"):  # a method, of which Python has other forms
                function = types.MethodType(function.__func__, function.__self__)
            if ctx.builder is not None:
                function = converted_argument(function, by_default=fn.converts)
        else:
            function = converted_argument(fn, by_default=False)

        def body(index: int, own: tuple, named: dict[str, Any]) -> Any:
            with in_replica(_ReplicaContext(self, index)), device(self._devices[index]):
                return function(*own, **named)

        given = [of_replica((tuple(args), kwargs or {}), i) for i in range(len(self._devices))]
        with self.scope():
            return together(Meeting().run([functools.partial(body, i, *each) for i, each in enumerate(given)]))

    def _step_of(self, fn: Any) -> Any:
        """The function of all replicas for an `ag.function` of one."""
        found = self._stepping.get(fn)
        if found is None:
            behind: Any = weakref.ref(fn)
            strategy: Any = weakref.ref(self)

            def step(args: tuple, kwargs: dict[str, Any]) -> Any:
                return strategy().run(behind(), args, kwargs)

            found = self._stepping[fn] = fn.around(step)
        return found

    def reduce(self, reduce_op: Any, value: Any, axis: int | None = None) -> Any:
        """The replicas' values, reduced by ``ReduceOp`` or its name; with ``axis``, also along that dimension.

        A mean with ``axis`` is taken over all elements along it, even if replicas have different numbers of them. A
        value that isn't `PerReplica` counts as the value of each replica.
        """
        if len(self._devices) == 1:
            return super().reduce(reduce_op, value, axis)
        is_mean = as_reduce_op(reduce_op) is ReduceOp.MEAN

        def one(*own: Any) -> Any:
            tensors: list[Any] = [each if isinstance(each, IndexedSlices) else convert_to_tensor(each) for each in own]
            if axis is None or getattr(tensors[0], "_shape", None) == ():
                return device_copies.Sum(is_mean).combine(tensors)
            total = device_copies.Sum(False).combine([reduce_sum(each, axis=axis) for each in tensors])
            if not is_mean:
                return total
            count = sum((shape(each)[axis] for each in tensors[1:]), shape(tensors[0])[axis])
            return total / cast(count, total.dtype)

        each = [composites.flatten(of_replica(value, i)) for i in range(len(self._devices))]
        return composites.pack_sequence_as(of_replica(value, 0), [one(*leaves) for leaves in zip(*each)])

    def experimental_distribute_dataset(self, dataset: Any, options: Any = None) -> Any:
        """The dataset whose elements are `PerReplica`: each replica gets its rows of each batch."""
        count = len(self._devices)
        if count == 1 or not isinstance(dataset, Dataset):
            return super().experimental_distribute_dataset(dataset, options)
        spec = dataset.element_spec

        def divided(*parts: Any) -> Any:
            # `map` hands over the parts of a tuple one by one.
            batch = parts if type(spec) is tuple else parts[0]
            return _per_replica([rows_of_share(batch, i, count) for i in range(count)])

        return DistributedDataset(dataset.map(divided)._plan)

    def distribute_datasets_from_function(self, dataset_fn: Callable[[Any], Any], options: Any = None) -> Any:
        """The dataset that a function of an `InputContext` makes, batched for one replica: each replica gets an element
        in turn. At the end, replicas without an element get one without rows; elements with a fixed number of rows
        (``drop_remainder=True``, or no batches) are dropped."""
        count = len(self._devices)
        if count == 1:
            return super().distribute_datasets_from_function(dataset_fn, options)
        made = dataset_fn(InputContext(1, 0, count))
        if not isinstance(made, Dataset):
            return made
        return DistributedDataset(Dealt(made._plan, count, _per_replica))

    def experimental_distribute_values_from_function(self, value_fn: Callable[[ValueContext], Any]) -> Any:
        """Calls a function for each replica, with a context that has `replica_id_in_sync_group`, and returns the
        values."""
        count = len(self._devices)
        values = [value_fn(ValueContext(i, count)) for i in range(count)]
        return values[0] if count == 1 else _per_replica(values)

    def experimental_local_results(self, value: Any) -> tuple:
        """The replicas' values, in a tuple; a structure gives a tuple of structures."""
        if not isinstance(value, DistributedValues) and not composites.is_nested(value):
            return (value,)
        return tuple(of_replica(value, i) for i in range(len(self._devices)))

    def gather(self, value: Any, axis: int) -> Any:
        """The replicas' values, concatenated along ``axis``. A value that isn't `PerReplica` is returned as it is."""
        if len(self._devices) == 1 or of_replica(value, 0) is value:
            return super().gather(value, axis)
        each = [nest.flatten(of_replica(value, i)) for i in range(len(self._devices))]
        joined = [device_copies.Gather(axis).combine([*map(convert_to_tensor, leaves)]) for leaves in zip(*each)]
        return nest.pack_sequence_as(of_replica(value, 0), joined)

    def __reduce__(self) -> Any:
        raise TypeError("a strategy can't be pickled: make one in each process")


def _full_name(name: str) -> str:
    kind, index = parse(name)
    return f"/device:{kind}:{index}"


def _per_replica(elements: Sequence[Any]) -> Any:
    """A structure of `PerReplica` of structures."""
    flat = [composites.flatten(each) for each in elements]
    return composites.pack_sequence_as(elements[0], [PerReplica(leaves) for leaves in zip(*flat)])
