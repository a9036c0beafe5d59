"""The file `checkpoint` of a folder, which says which checkpoints there are and which is the latest."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from autograph.saving.checkpoint_files import index_of, prefix_of
from runtime.collectives import world
from runtime.dataclass import dataclass
from runtime.errors import DataLossError, NotFoundError
from runtime.storage.files import read_document, write_document

FILE = "checkpoint"
_KIND, _VERSION = "autograph checkpoint state", 1


@dataclass
class CheckpointState:
    """The contents of a folder's file `checkpoint`. Paths in the folder begin with the folder's path as passed;
    times are in seconds since 1970."""

    model_checkpoint_path: str
    all_model_checkpoint_paths: list[str]
    all_model_checkpoint_timestamps: list[float] = field(default_factory=list)
    last_preserved_timestamp: float | None = None


def update_state(
    folder: str | os.PathLike[str],
    latest: str,
    paths: Sequence[str],
    times: Sequence[float] = (),
    last_preserved: float | None = None,
    filename: str = FILE,
) -> None:
    """Writes the file `checkpoint`. Paths in the folder are kept relative to it, so that it can be moved. Of several
    processes of a strategy the chief writes."""
    if not world.is_chief():
        return
    base = Path(folder).absolute()
    content: dict[str, Any] = {
        "model_checkpoint_path": _relative(base, latest),
        "all_model_checkpoint_paths": [_relative(base, path) for path in paths],
        "all_model_checkpoint_timestamps": list(times),
        "last_preserved_timestamp": last_preserved,
    }
    base.mkdir(parents=True, exist_ok=True)
    write_document(base / filename, _KIND, _VERSION, content)


def _relative(base: Path, path: str) -> str:
    absolute = Path(path).absolute()
    return absolute.name if absolute.parent == base else str(absolute)


def get_checkpoint_state(
    checkpoint_dir: str | os.PathLike[str], latest_filename: str | None = None
) -> CheckpointState | None:
    """The contents of a folder's file `checkpoint`; None if there is none.

    Raises DataLossError for a damaged file, UnimplementedError for one of a newer version.
    """
    base = os.fspath(checkpoint_dir)
    path = Path(base, latest_filename or FILE)
    try:
        said = read_document(path, _KIND, _VERSION)
    except NotFoundError:
        return None
    latest: Any = said.get("model_checkpoint_path")
    paths: Any = said.get("all_model_checkpoint_paths")
    times: Any = said.get("all_model_checkpoint_timestamps")
    preserved: Any = said.get("last_preserved_timestamp")
    if not (
        isinstance(latest, str)
        and all(isinstance(each, list) for each in (paths, times))
        and all(isinstance(each, str) for each in paths)
        and all(isinstance(each, (int, float)) for each in times)
        and isinstance(preserved, (int, float, type(None)))
    ):
        raise DataLossError(f"{path} is damaged: its contents don't match its format version")
    return CheckpointState(os.path.join(base, latest), [os.path.join(base, each) for each in paths], times, preserved)


def latest_checkpoint(checkpoint_dir: str | os.PathLike[str], latest_filename: str | None = None) -> str | None:
    """The path of the latest checkpoint in a folder, for `Checkpoint.restore`; None if there is none.

    Raises the errors of `get_checkpoint_state`.
    """
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    if state is None:
        return None
    path = state.model_checkpoint_path
    return path if index_of(prefix_of(path)).is_file() else None


def checkpoints_iterator(
    checkpoint_dir: str | os.PathLike[str],
    min_interval_secs: float = 0,
    timeout: float | None = None,
    timeout_fn: Callable[[], Any] | None = None,
) -> Iterator[str]:
    """The paths of the latest checkpoints in a folder, each as soon as there is one that is newer, for a program that
    evaluates what another one trains. It looks once a second.

    min_interval_secs: the least time between two paths. timeout: the seconds to wait for a checkpoint, without limit if
    it is None. timeout_fn: called after that time; the iterator ends if it returns a true value, or is None. Raises the
    errors of `get_checkpoint_state`.
    """
    last = None
    while True:
        path = _newer_checkpoint(checkpoint_dir, last, timeout)
        if path is None:
            if timeout_fn is None or timeout_fn():
                return
            continue
        began, last = time.monotonic(), path
        yield path
        time.sleep(max(0.0, began + min_interval_secs - time.monotonic()))


def _newer_checkpoint(folder: str | os.PathLike[str], last: str | None, timeout: float | None) -> str | None:
    """The latest checkpoint, once it isn't the last one; None where that takes longer than allowed."""
    end = None if timeout is None else time.monotonic() + timeout
    while (path := latest_checkpoint(folder)) in (None, last):
        if end is not None and time.monotonic() + _PAUSE > end:
            return None
        time.sleep(_PAUSE)
    return path


_PAUSE = 1.0  # seconds between two looks into a folder
