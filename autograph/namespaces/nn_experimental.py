"""`ag.nn.experimental`: dropout whose random numbers a seed decides."""

from __future__ import annotations

from runtime.ops.nn.nn_ops import stateless_dropout

__all__ = ["stateless_dropout"]
