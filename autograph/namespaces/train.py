"""`ag.train`: checkpoints, and the messages that records hold."""

from __future__ import annotations

from autograph.data.messages import (
    BytesList,
    Example,
    Feature,
    FeatureList,
    FeatureLists,
    Features,
    FloatList,
    Int64List,
    SequenceExample,
)
from autograph.namespaces import train_experimental as experimental
from autograph.saving.checkpoint import Checkpoint
from autograph.saving.manager import CheckpointManager
from autograph.saving.objects import TrackableView
from autograph.saving.options import CheckpointOptions
from autograph.saving.reader import list_variables, load_checkpoint, load_variable
from autograph.saving.state import checkpoints_iterator, get_checkpoint_state, latest_checkpoint
from runtime.moving_average import ExponentialMovingAverage

__all__ = [
    "BytesList", "Checkpoint", "CheckpointManager", "CheckpointOptions", "Example", "ExponentialMovingAverage",
    "Feature", "FeatureList", "FeatureLists", "Features", "FloatList", "Int64List", "SequenceExample", "TrackableView",
    "experimental", "checkpoints_iterator", "get_checkpoint_state", "latest_checkpoint", "list_variables",
    "load_checkpoint", "load_variable",
]  # fmt: skip
