"""`ag.autograph`: the converter, without the tracing."""

from __future__ import annotations

from autograph.convert.api import do_not_convert, to_code, to_graph

__all__ = ["do_not_convert", "to_code", "to_graph"]
