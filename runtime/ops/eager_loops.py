"""Loops in eager code that take a tensor apart: `for v in t`, `t[i]`.

Each element is an operation of its own then, which takes a thousand times as long as the element does in native code.
To count them for each line would slow all of them down. So only one in `EVERY` is looked at, and stands for the others
since the last one if those came in quick succession: programs that index a tensor now and then aren't meant.
"""

from __future__ import annotations

import itertools
import sys
import time

from runtime import performance
from runtime.context import ctx, eagerly
from runtime.tracebacks import user_frame

# Not a round number, or of several operations in a loop it might always be the same one.
EVERY = 251
# So many elements taken at a line are worth a warning.
MANY = 10_000
# Seconds for each of them since the last look, above which the program mostly does something else.
MOST_SECONDS = 50e-6

# Says True of one in `EVERY`. Whoever takes an element asks this and calls `look`: that costs 20 ns.
is_due = itertools.cycle((*(False,) * (EVERY - 1), True))
_counts: dict[tuple[str, int], int] = {}
_last = 0.0  # when one was looked at


def look() -> None:
    """Counts the line that is taking an element of a tensor, and warns if it has taken many."""
    global _last
    now = time.perf_counter()
    since, _last = now - _last, now
    if since > EVERY * MOST_SECONDS or ctx.builder is not None or eagerly[0]:
        return  # functions that run eagerly for debugging do so on purpose
    frame = user_frame(sys._getframe(1))
    if frame is None:
        return
    code = frame.f_code
    key = code.co_filename, frame.f_lineno
    _counts[key] = _counts.get(key, 0) + EVERY
    if _counts[key] >= MANY:
        performance.warn_once(
            "eager loop",
            code.co_name,
            (*key, code.co_name),
            f"this line has taken more than {MANY} elements or slices out of tensors, one by one, in eager code",
            "outside of an `ag.function` each of them is an operation of its own that Python calls",
            "put the loop into a function and decorate it with `@ag.function`: then it is one loop in native code. Or "
            "compute with whole tensors, or loop over `t.numpy()`",
        )
