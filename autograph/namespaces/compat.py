"""`ag.compat`: programs and libraries written for TensorFlow, and strings of either kind."""

from __future__ import annotations

from autograph.facade.dimensions import dimension_at_index, dimension_value
from autograph.facade.installation import FacadeError, install, is_installed, uninstall
from autograph.facade.text import as_bytes, as_str, as_str_any, as_text, path_to_str

__all__ = [
    "FacadeError", "as_bytes", "as_str", "as_str_any", "as_text", "dimension_at_index", "dimension_value",
    "install", "is_installed", "path_to_str", "uninstall",
]  # fmt: skip
