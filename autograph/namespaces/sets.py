"""`ag.sets`: sets in the last dimension of tensors."""

from __future__ import annotations

from runtime.sparse import set_difference as difference
from runtime.sparse import set_intersection as intersection
from runtime.sparse import set_size as size
from runtime.sparse import set_union as union

__all__ = ["difference", "intersection", "size", "union"]
