"""Parses kernel text to syntax trees, safely while other threads parse.

CPython 3.11 before 3.11.8 and 3.12 before 3.12.2 have one depth counter for the syntax trees of all threads, and raise
SystemError if one tree is made while another one is unfinished. That happens if a finalizer runs during parsing and
releases the interpreter lock. So finalizers are disabled while we parse, and we wait while another thread parses. A
thread switch in the few instructions between the check and the start remains possible.
"""

from __future__ import annotations

import ast
import gc
import sys
import threading
import time
from typing import Any

_IS_CONCERNED = (3, 11) <= sys.version_info < (3, 11, 8) or (3, 12) <= sys.version_info < (3, 12, 2)
_TIMEOUT = 1.0  # seconds


def parse(text: str) -> ast.Module:
    """`ast.parse`."""
    if not _IS_CONCERNED:
        return ast.parse(text)
    deadline = time.monotonic() + _TIMEOUT
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        while _somebody_parses() and time.monotonic() < deadline:
            time.sleep(0.001)
        # Not `ast.parse`, during which the thread might be switched before parsing starts.
        tree: Any = compile(text, "<kernel>", "exec", ast.PyCF_ONLY_AST)
        return tree
    finally:
        if was_enabled:
            gc.enable()


def _somebody_parses() -> bool:
    """Whether another thread is in `ast.parse`."""
    own = threading.get_ident()
    for thread, top in sys._current_frames().items():
        frame = top if thread != own else None
        while frame is not None:
            if frame.f_code is ast.parse.__code__:
                return True
            frame = frame.f_back
    return False
