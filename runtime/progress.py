"""Progress bars on the terminal, for work that somebody waits for longer than two seconds.

They are tqdm's, where that is installed (the extra `progress`). Nothing is shown where it isn't, where standard error
is no terminal, or where `show_progress(False)` was called.
"""

from __future__ import annotations

import importlib.util
import sys
import threading
from typing import Any

DELAY = 2.0  # seconds before a bar is shown
_INTERVAL = 0.2  # seconds between two pictures of it
_wanted = True
_shown = threading.Lock()  # held by the one that is shown: bars don't nest


def show_progress(enabled: bool) -> None:
    """Whether work that takes longer than two seconds shows a progress bar on the terminal (default: yes).

    Bars need the package tqdm (`python -m pip install tqdm`), and a terminal as standard error. Raises TypeError unless
    `enabled` is a bool.
    """
    global _wanted
    if not isinstance(enabled, bool):
        raise TypeError(f"show_progress takes True or False, not {enabled!r}")
    _wanted = enabled


def shows_progress() -> bool:
    """Whether `show_progress` is on. Bars also need the package tqdm and a terminal."""
    return _wanted


def is_possible() -> bool:
    """Whether bars would be shown."""
    stream = sys.stderr
    return _wanted and stream is not None and stream.isatty() and importlib.util.find_spec("tqdm") is not None


class progress:
    """A block of work; `advance` says that a part is done.

    what: what the bar says. parts: what they are called; empty: nothing is counted. total: how many there are, if that
    is known.
    """

    def __init__(self, what: str, parts: str = "", total: int | None = None) -> None:
        self._what, self._parts, self._total = what, parts, total
        self._count = 0
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> progress:
        if is_possible() and _shown.acquire(blocking=False):
            self._thread = threading.Thread(target=self._show, name="autograph-progress", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        if self._thread is not None:
            self._ended.set()
            self._thread.join()
            _shown.release()

    def advance(self) -> None:
        """Says that another part is done."""
        self._count += 1

    def _show(self) -> None:
        if self._ended.wait(DELAY):
            return
        bar = self._bar()
        while not self._ended.wait(_INTERVAL):
            bar.n = self._count
            bar.refresh()
        bar.close()

    def _bar(self) -> Any:
        from tqdm import tqdm

        class Bar(tqdm):
            monitor_interval = 0  # this thread refreshes it

        form = "{desc}, {n_fmt} {unit} done [{elapsed}]" if self._parts else "{desc} [{elapsed}]"
        if self._total:
            form = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt} of {total_fmt} {unit} [{elapsed}, {remaining} left]"
        return Bar(
            desc=self._what, total=self._total, unit=self._parts, bar_format=form, leave=False, dynamic_ncols=True,
            file=sys.stderr, mininterval=0,
        )  # fmt: skip
