"""`train.CheckpointManager`: several checkpoints of one program in a folder, of which the old ones are deleted."""

from __future__ import annotations

import numbers
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from autograph.saving import checkpoint_files, state
from autograph.saving.checkpoint import Checkpoint, check_eager
from autograph.saving.options import CheckpointOptions
from runtime.variable import Variable


class CheckpointManager:
    """Saves checkpoints in a folder, and keeps the latest ones.

    checkpoint     the Checkpoint
    directory      the folder for its files, in which it also finds the checkpoints of an earlier run
    max_to_keep    how many stay; None: all
    keep_checkpoint_every_n_hours   keep one checkpoint permanently in each period of so many hours
    checkpoint_name                 begins the names of files
    step_counter, checkpoint_interval
                   a variable, and by how much it must have grown since the last save for `save` to write
    init_fn        called by `restore_or_initialize` if there is no checkpoint
    last_checkpoint_step            the value of the step counter at a save before this manager's

    Raises ValueError for a `max_to_keep` below 1 and for a `checkpoint_interval` without a `step_counter`.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        directory: str | os.PathLike[str],
        max_to_keep: int | None,
        keep_checkpoint_every_n_hours: float | None = None,
        checkpoint_name: str = "ckpt",
        step_counter: Variable | None = None,
        checkpoint_interval: int | None = None,
        init_fn: Callable[[], Any] | None = None,
        last_checkpoint_step: int | None = None,
    ) -> None:
        if max_to_keep is not None and (not isinstance(max_to_keep, numbers.Integral) or max_to_keep <= 0):
            raise ValueError(f"Expected a positive integer or `None` for `max_to_keep`, got {max_to_keep!r}.")
        if checkpoint_interval is not None and step_counter is None:
            raise ValueError("`step_counter` should be passed if `checkpoint_interval` is not None.")
        self._checkpoint = checkpoint
        self._directory = os.fspath(directory)
        self._max_to_keep = max_to_keep
        self._keep_every = keep_checkpoint_every_n_hours
        self._prefix = os.path.join(self._directory, checkpoint_name)
        self._step_counter, self._interval, self._init_fn = step_counter, checkpoint_interval, init_fn
        self._last_step = last_checkpoint_step
        self._latest: str | None = None
        # When each checkpoint that may be deleted was saved, the oldest first.
        self._times: dict[str, float] = {}
        found = state.get_checkpoint_state(self._directory)
        now = time.time()
        self._last_preserved = now
        if found is not None:
            paths = found.all_model_checkpoint_paths
            times = found.all_model_checkpoint_timestamps
            times = times if len(times) == len(paths) else [now] * len(paths)
            self._times = {path: when for path, when in zip(paths, times) if _is_there(path)}
            self._latest = found.model_checkpoint_path if _is_there(found.model_checkpoint_path) else None
            self._last_preserved = now if found.last_preserved_timestamp is None else found.last_preserved_timestamp

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint that is saved."""
        return self._checkpoint

    @property
    def directory(self) -> str:
        """The folder."""
        return self._directory

    @property
    def checkpoint_interval(self) -> int | None:
        """By how much the step counter grows between two saves."""
        return self._interval

    @property
    def checkpoints(self) -> list[str]:
        """The paths of the checkpoints that may still be deleted, the latest one last."""
        return list(self._times)

    @property
    def latest_checkpoint(self) -> str | None:
        """The path of the latest checkpoint, for `Checkpoint.restore`; None if there is none."""
        return self._latest

    def save(
        self,
        checkpoint_number: int | Variable | None = None,
        check_interval: bool = True,
        options: CheckpointOptions | None = None,
    ) -> str | None:
        """Saves the checkpoint and deletes surplus ones; returns the path.

        checkpoint_number   ends the path, in place of the number of calls of `save`
        check_interval      do nothing, and return None, before the step counter has grown by the interval

        Raises the errors of `Checkpoint.save`.
        """
        check_eager("CheckpointManager.save")
        step = None if self._step_counter is None else int(self._step_counter)
        if self._interval is not None and step is not None:
            if check_interval and self._last_step is not None and step < self._last_step + self._interval:
                return None
            self._last_step = step
        counter = self._checkpoint.save_counter
        counter.assign_add(1)
        if checkpoint_number is None:
            checkpoint_number = counter
        path = f"{self._prefix}-{int(checkpoint_number)}"
        Path(self._directory).mkdir(parents=True, exist_ok=True)
        self._checkpoint._write(path, options, lambda: self._saved(path))
        return path

    def _saved(self, path: str) -> None:
        """Enters a checkpoint that is there now, and deletes what is too much."""
        self._times.pop(path, None)
        self._times[path] = time.time()
        self._latest = path
        spare: list[str] = []
        if self._max_to_keep is not None:
            for old in list(self._times)[: -self._max_to_keep]:
                when = self._times.pop(old)
                if self._keep_every is not None and when - self._keep_every * 3600 >= self._last_preserved:
                    self._last_preserved = when
                else:
                    spare.append(old)
        # Before anything is deleted, so that the file never names a checkpoint that isn't there.
        state.update_state(self._directory, path, self.checkpoints, list(self._times.values()), self._last_preserved)
        for old in spare:
            checkpoint_files.remove(checkpoint_files.prefix_of(old))

    def restore_or_initialize(self) -> str | None:
        """Restores the latest checkpoint and returns its path. If there is none, it calls `init_fn`, if given, and
        returns None. Raises the errors of `Checkpoint.restore`, and AssertionError if objects of the program weren't
        restored."""
        if self._latest is not None:
            self._checkpoint.restore(self._latest).assert_existing_objects_matched()
            if self._step_counter is not None:
                self._last_step = int(self._step_counter)
            return self._latest
        if self._init_fn is not None:
            self._init_fn()
        return None

    def sync(self) -> None:
        """Waits until another thread has written its files. Raises the error of that thread."""
        self._checkpoint.sync()


def _is_there(path: str) -> bool:
    return checkpoint_files.index_of(checkpoint_files.prefix_of(path)).is_file()
