"""Parses and compiles Python text that Python has compiled before: a user's function, file or notebook cell.

Python warns of doubtful syntax (``"\\d"``, ``x is 1``, ``return`` in a ``finally``) whenever text or a tree is
compiled. The user has seen that warning when the file was imported, and must not see it again.
"""

from __future__ import annotations

import ast
import contextlib
import sys
import warnings
from collections.abc import Iterator
from typing import Any

# Python 3.10 and 3.11 say that doubtful strings and numbers are deprecated.
_FILTERS = [("ignore", None, category, None, 0) for category in (SyntaxWarning, DeprecationWarning)]


@contextlib.contextmanager
def without_syntax_warnings() -> Iterator[None]:
    """Keeps Python from warning of the text or tree that is compiled inside.

    Unlike `warnings.catch_warnings` without flags, this leaves alone which warnings have been shown once, and threads
    that use both at the same time leave no filter behind.
    """
    if getattr(sys.flags, "context_aware_warnings", False):  # Python 3.14 on: the filters belong to the thread
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
        return
    filters: Any = warnings.filters
    filters[:0] = _FILTERS
    try:
        yield
    finally:
        for each in _FILTERS:
            with contextlib.suppress(ValueError):  # another thread has removed all filters
                filters.remove(each)


def python_ast(text: str | bytes, filename: str = "<string>", mode: str = "exec") -> Any:
    """`ast.parse` without warnings, which may be called while other threads do so. Raises SyntaxError.

    CPython 3.11 counts the depth of the trees of all threads together, and says SystemError when the count is wrong.
    """
    with without_syntax_warnings():
        for _ in range(10):
            try:
                return ast.parse(text, filename, mode)
            except SystemError:
                continue
        return ast.parse(text, filename, mode)
