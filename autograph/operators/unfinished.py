"""The signal that a block needs the result of a call whose type isn't known yet (see recursion.py)."""

from __future__ import annotations


class Unfinished(BaseException):
    """Leaves a branch or a loop's body, which is traced without a result this time. No handler of the user's may catch
    it."""
