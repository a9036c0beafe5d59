"""`ag.export`: functions as programs for other systems."""

from __future__ import annotations

from autograph.c_library import CLibrary, c_library

__all__ = ["CLibrary", "c_library"]
