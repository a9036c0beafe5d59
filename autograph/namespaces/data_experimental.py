"""`ag.data.experimental`: older names of what datasets do."""

from autograph.data.dataset import AUTOTUNE, dense_to_ragged_batch
from autograph.data.iterators import get_next_as_optional
from autograph.data.optional import Optional
from autograph.data.options import (
    AutoShardPolicy,
    AutotuneAlgorithm,
    AutotuneOptions,
    DistributeOptions,
    ExternalStatePolicy,
    OptimizationOptions,
    ServiceOptions,
    ThreadingOptions,
)  # fmt: skip

__all__ = [
    "AUTOTUNE", "AutoShardPolicy", "AutotuneAlgorithm", "AutotuneOptions", "DistributeOptions", "ExternalStatePolicy",
    "OptimizationOptions", "Optional", "ServiceOptions", "ThreadingOptions", "dense_to_ragged_batch",
    "get_next_as_optional",
]  # fmt: skip
