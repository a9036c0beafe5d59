"""`ag.distribute`: strategies with one replica."""

from autograph.distribute import (
    InputContext,
    MirroredStrategy,
    OneDeviceStrategy,
    ReduceOp,
    ReplicaContext,
    Strategy,
    StrategyExtended,
    get_replica_context,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
)

__all__ = [
    "InputContext", "MirroredStrategy", "OneDeviceStrategy", "ReduceOp", "ReplicaContext", "Strategy",
    "StrategyExtended", "get_replica_context", "get_strategy", "has_strategy", "in_cross_replica_context",
]  # fmt: skip
