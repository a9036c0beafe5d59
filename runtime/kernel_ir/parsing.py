"""Kernel text as syntax trees, also while other threads parse.

CPython 3.11 before 3.11.8 and 3.12 before 3.12.2 count the depth of the trees of all threads together, and say
SystemError where one was made in the middle of another. That happens when a finalizer runs while a tree is made and
lets another thread have its turn. So no finalizer runs in the middle of ours, and ours isn't begun in the middle of
somebody else's; what remains is a turn that ends in the few instructions between looking and beginning.
"""

from __future__ import annotations

import ast
import gc
import sys
import threading
import time
from typing import Any

_IS_CONCERNED = (3, 11) <= sys.version_info < (3, 11, 8) or (3, 12) <= sys.version_info < (3, 12, 2)
_PATIENCE = 1.0  # seconds


def parse(text: str) -> ast.Module:
    """`ast.parse`."""
    if not _IS_CONCERNED:
        return ast.parse(text)
    deadline = time.monotonic() + _PATIENCE
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        while _somebody_parses() and time.monotonic() < deadline:
            time.sleep(0.001)
        # Not `ast.parse`, which would be a further chance to lose the turn.
        tree: Any = compile(text, "<kernel>", "exec", ast.PyCF_ONLY_AST)
        return tree
    finally:
        if was_enabled:
            gc.enable()


def _somebody_parses() -> bool:
    """Whether another thread is inside of `ast.parse`."""
    own = threading.get_ident()
    for thread, top in sys._current_frames().items():
        frame = top if thread != own else None
        while frame is not None:
            if frame.f_code is ast.parse.__code__:
                return True
            frame = frame.f_back
    return False
