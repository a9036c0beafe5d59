"""`ag.config.threading`: how many threads the engine uses."""

from __future__ import annotations

from runtime.engine.options import (
    get_inter_op_parallelism_threads,
    get_intra_op_parallelism_threads,
    set_inter_op_parallelism_threads,
    set_intra_op_parallelism_threads,
)

__all__ = [
    "get_inter_op_parallelism_threads", "get_intra_op_parallelism_threads", "set_inter_op_parallelism_threads",
    "set_intra_op_parallelism_threads",
]  # fmt: skip
