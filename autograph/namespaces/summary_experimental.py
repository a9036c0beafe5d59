"""`ag.summary.experimental`: the default step, and tags for kinds of summaries of one's own."""

from __future__ import annotations

from autograph.summaries.write import summary_scope
from autograph.summaries.writers import get_step, set_step

__all__ = ["get_step", "set_step", "summary_scope"]
