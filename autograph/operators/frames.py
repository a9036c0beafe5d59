"""Functions that look at the frames around them see the user's: ``warnings.warn``, ``locals``, ``vars``, ``dir``."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from types import FrameType
from typing import Any

from autograph.errors import is_own_file
from runtime import tracebacks

_ROOM = Path(__file__).resolve().parent
tracebacks.operand_callers |= {str(_ROOM / name) for name in ("logic.py", "conditional.py", "loops.py", "unbound.py")}


def warn(message: Any, category: Any = None, stacklevel: Any = 1, source: Any = None, **options: Any) -> None:
    """``warnings.warn``; ``stacklevel`` counts the user's functions, not the blocks and operators between them."""
    if type(stacklevel) is int and stacklevel > 1:
        stacklevel = _distance(sys._getframe(1), stacklevel - 1)
    # The text itself: `warnings` looks it up among those shown before.
    warnings.warn(str(message) if isinstance(message, str) else message, category, stacklevel + 1, source, **options)


def _distance(frame: FrameType | None, levels: int) -> int:
    """How many frames up from one, counted from 1, the function is that stands some levels above its function."""
    distance, code = 1, None
    while frame is not None:
        if not is_own_file(frame.f_code.co_filename):
            if code is not None and not any(const is code for const in frame.f_code.co_consts):
                levels -= 1
                if levels == 0:
                    return distance
            code = frame.f_code
        frame = frame.f_back
        distance += 1
    return distance + levels


def own_names(names: Any, added: tuple[str, ...]) -> Any:
    """What ``locals()`` or ``dir()`` gave, without the names that conversion has added."""
    if isinstance(names, dict):
        return {name: value for name, value in names.items() if name not in added}
    return [name for name in names if name not in added]
