"""`ag.saved_model`: programs with their variables as files."""

from __future__ import annotations

from autograph.saving.model_reader import LoadOptions, contains_saved_model, load
from autograph.saving.model_writer import SaveOptions, save
from autograph.saving.saved_objects import Asset

__all__ = ["Asset", "LoadOptions", "SaveOptions", "contains_saved_model", "load", "save"]
