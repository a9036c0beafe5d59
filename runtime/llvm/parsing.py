"""Kernel text as syntax trees, also while other threads parse.

CPython before 3.11.8 and 3.12.2 counts the depth of the trees of all threads together, and says SystemError
where one was made in the middle of another. Two things let that happen: a finalizer that runs while a tree is made, so
none runs in the middle of ours; and one in the middle of somebody else's, after which ours is made again.
"""

from __future__ import annotations

import ast
import gc

_TRIES = 5


def parse(text: str) -> ast.Module:
    """`ast.parse`."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        for _ in range(_TRIES):
            try:
                return ast.parse(text)
            except SystemError:
                continue
        return ast.parse(text)
    finally:
        if was_enabled:
            gc.enable()
