"""`ag.lookup.experimental`: tables that change."""

from __future__ import annotations

from runtime.lookup import DenseHashTable, MutableHashTable

__all__ = ["DenseHashTable", "MutableHashTable"]
