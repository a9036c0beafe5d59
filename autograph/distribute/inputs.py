"""Datasets of replicas: each gets its part of every batch, or makes its own."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import numpy as np

from autograph.data.dataset import Dataset
from autograph.data.iterators import shuffles_of
from autograph.data.options import AutoShardPolicy
from autograph.data.rows import number_of_rows, rows_between
from runtime import composites
from runtime.dataclass import dataclass
from runtime.ops.elementwise.arithmetic import minimum


class InputReplicationMode(enum.Enum):
    """The unit for which `distribute_datasets_from_function` makes a dataset: each worker."""

    PER_WORKER = "PER_WORKER"
    PER_REPLICA = "PER_REPLICA"


@dataclass(frozen=True)
class InputOptions:
    """TensorFlow's options for distributed datasets; they have no effect here."""

    experimental_fetch_to_device: bool | None = None
    experimental_replication_mode: InputReplicationMode = InputReplicationMode.PER_WORKER
    experimental_place_dataset_on_device: bool = False
    experimental_per_replica_buffer_size: int = 1


@dataclass(frozen=True)
class InputContext:
    """The argument of a function that makes a dataset: the index of its pipeline, and the numbers of pipelines and
    replicas."""

    num_input_pipelines: int = 1
    input_pipeline_id: int = 0
    num_replicas_in_sync: int = 1

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """One replica's part of a batch size. Raises ValueError if it can't be divided evenly."""
        if global_batch_size % self.num_replicas_in_sync:
            raise ValueError(
                f"The `global_batch_size` {global_batch_size} is not divisible by `num_replicas_in_sync` "
                f"{self.num_replicas_in_sync}"
            )
        return global_batch_size // self.num_replicas_in_sync


class DistributedDataset(Dataset):
    """A dataset that is divided among the replicas; made by `experimental_distribute_dataset`."""


def share(rows: Any, rank: int, size: int) -> tuple[Any, Any]:
    """Which rows of a batch a replica gets, from and to: as many as others; the first replicas get those left over."""
    each, left = rows // size, rows % size
    smaller = min if isinstance(left, int) else minimum
    return rank * each + smaller(left, rank), (rank + 1) * each + smaller(left, rank + 1)


def rows_of_share(batch: Any, rank: int, size: int) -> Any:
    """A replica's rows of a batch, a structure of tensors. Raises ValueError if it has no rows."""
    leaves = composites.flatten(batch)
    if not leaves:
        return batch
    for leaf in leaves:
        if not composites.is_composite(leaf) and leaf._shape == ():
            raise ValueError(
                "experimental_distribute_dataset divides batches among replicas, but the elements of this dataset "
                "contain scalars: call dataset.batch(global_batch_size) first"
            )
    start, stop = share(number_of_rows(leaves[0]), rank, size)
    return composites.map_structure(lambda leaf: rows_between(leaf, start, stop), batch)


def part_of_batches(dataset: Any, group: Any, options: Any = None) -> Any:
    """The dataset of a worker's part of each batch: contiguous rows, those of all workers together being the batch.

    Each worker makes the whole batches, in the same order: shuffles without a seed go by that of rank 0. With
    `AutoShardPolicy.OFF` the dataset stays as it is. Raises ValueError for `AutoShardPolicy.FILE`.
    """
    if not isinstance(dataset, Dataset):
        return dataset
    policy = dataset.options().experimental_distribute.auto_shard_policy
    if policy == AutoShardPolicy.FILE:
        raise ValueError(
            "AutoShardPolicy.FILE isn't supported: divide the files with dataset.shard(context.num_input_pipelines, "
            "context.input_pipeline_id) in distribute_datasets_from_function"
        )
    if group is None or group.size == 1 or policy == AutoShardPolicy.OFF:
        return DistributedDataset(dataset._plan)
    _agree_on_order(dataset, group)
    rank, size = group.rank, group.size
    return DistributedDataset(dataset.map(_sharing(dataset.element_spec, rank, size))._plan)


def _sharing(spec: Any, rank: int, size: int) -> Callable[..., Any]:
    def take_share(*parts: Any) -> Any:
        # `map` hands over the parts of a tuple one by one.
        return rows_of_share(parts if type(spec) is tuple else parts[0], rank, size)

    return take_share


def _agree_on_order(dataset: Dataset, group: Any) -> None:
    found = shuffles_of(dataset._plan)
    if found:
        positions = np.array([shuffle.seeds.position() for shuffle in found], np.int64)
        (agreed,) = group.broadcast([positions])
        for shuffle, position in zip(found, agreed):
            shuffle.seeds.set_position(*map(int, position))
