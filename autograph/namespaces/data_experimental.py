"""`ag.data.experimental`: older names of what datasets do."""

from autograph.data.dataset import AUTOTUNE, dense_to_ragged_batch

__all__ = ["AUTOTUNE", "dense_to_ragged_batch"]
