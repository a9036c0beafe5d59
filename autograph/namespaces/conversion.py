"""`ag.autograph`: the converter, without the tracing."""

from __future__ import annotations

from autograph.convert.api import do_not_convert, to_code, to_graph
from autograph.convert.verbosity import set_verbosity, trace
from autograph.namespaces import experimental_conversion as experimental

__all__ = ["do_not_convert", "experimental", "set_verbosity", "to_code", "to_graph", "trace"]
