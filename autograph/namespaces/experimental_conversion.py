"""`ag.autograph.experimental`: options of conversion and of loops."""

from __future__ import annotations

from autograph.convert.api import do_not_convert
from autograph.convert.features import Feature
from autograph.operators.loop_options import set_loop_options

__all__ = ["Feature", "do_not_convert", "set_loop_options"]
