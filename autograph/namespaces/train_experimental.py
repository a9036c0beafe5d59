"""`ag.train.experimental`."""

from __future__ import annotations

from autograph.saving.options import MaxShardSizePolicy

__all__ = ["MaxShardSizePolicy"]
