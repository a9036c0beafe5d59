"""`ag.train.experimental`: how large the files of a checkpoint get."""

from __future__ import annotations

from autograph.saving.options import MaxShardSizePolicy

__all__ = ["MaxShardSizePolicy"]
