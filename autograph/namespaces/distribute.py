"""`ag.distribute`: programs that run as several replicas."""

from autograph.distribute.contexts import (
    ReduceOp,
    ReplicaContext,
    get_replica_context,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
)
from autograph.distribute.inputs import DistributedDataset, InputContext, InputOptions, InputReplicationMode
from autograph.distribute.mirrored import MirroredStrategy
from autograph.distribute.multi_worker import MultiWorkerMirroredStrategy
from autograph.distribute.options import (
    CrossDeviceOps,
    HierarchicalCopyAllReduce,
    NcclAllReduce,
    ReductionToOneDevice,
    RunOptions,
)
from autograph.distribute.strategy import OneDeviceStrategy, Strategy, StrategyExtended
from autograph.distribute.tasks import map_blocks, task
from autograph.distribute.values import DistributedValues
from autograph.namespaces import distribute_experimental as experimental

__all__ = [
    "CrossDeviceOps", "DistributedDataset", "DistributedValues", "HierarchicalCopyAllReduce", "InputContext",
    "InputOptions", "InputReplicationMode", "MirroredStrategy", "MultiWorkerMirroredStrategy", "NcclAllReduce",
    "OneDeviceStrategy", "ReduceOp", "ReductionToOneDevice", "ReplicaContext", "RunOptions", "Strategy",
    "StrategyExtended", "experimental", "get_replica_context", "get_strategy", "has_strategy",
    "in_cross_replica_context", "map_blocks", "task",
]  # fmt: skip
