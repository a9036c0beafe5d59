"""`train.Checkpoint`: the values of a graph of objects, saved to files and restored from them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, SupportsIndex

from autograph.saving import checkpoint_files, objects, restoring
from autograph.saving.options import CheckpointOptions
from autograph.saving.state import update_state
from runtime import dtypes
from runtime.context import ctx, init_scope
from runtime.errors import NotFoundError
from runtime.signatures import signature_of
from runtime.variable import Variable

_OWN = "_self_"  # begins the attributes that aren't the user's


class Checkpoint(objects.Holder):
    """A group of objects whose values are saved and restored together.

    root       an object whose parts are saved as if they were the checkpoint's own, under the same names
    kwargs     objects by name; they become attributes. More may be set as attributes later.

    It saves variables, random generators, iterators over datasets and mutable tables, in modules, lists, tuples,
    dictionaries and objects with attributes. When it is restored, the attributes, keys and indices on the path from the
    checkpoint identify a value, not the names of variables.

    An iterator continues where the saved one was, by producing the elements up to there again.

    Raises ValueError for objects that can't hold values, and for a name that the root uses.
    """

    def __init__(self, root: Any = None, **kwargs: Any) -> None:
        self._self_root = root
        self._self_counter: Variable | None = None
        self._self_writer = _Writer()
        if root is not None and not objects.may_hold(root):
            raise ValueError(_not_trackable("root", root))
        inside = objects.children(root) if root is not None else {}
        for name in sorted(kwargs):
            if not objects.may_hold(kwargs[name]):
                raise ValueError(_not_trackable(name, kwargs[name]))
            if name in inside and inside[name] is not kwargs[name]:
                raise ValueError(
                    f"Cannot create a Checkpoint with keyword argument {name} if root.{name} already exists."
                )
            setattr(self, name, kwargs[name])

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith(_OWN) and restoring.is_waiting(self):
            value = _watched(value, self)
        object.__setattr__(self, name, value)
        restoring.changed(self)

    def _held(self) -> dict[str, Any]:
        root = objects.children(self._self_root) if self._self_root is not None else {}
        own = {name: value for name, value in vars(self).items() if not name.startswith(_OWN)}
        for value in own.values():
            _check_watched(value)
        counter = {} if self._self_counter is None else {"save_counter": self._self_counter}
        return {**root, **own, **counter}

    def stands_for(self) -> Any:
        return self._self_root

    @property
    def save_counter(self) -> Variable:
        """How many times `save` was called, an int64 variable; it is saved and restored, too."""
        if self._self_counter is None:
            with init_scope():
                counter = Variable(0, dtype=dtypes.int64, name="save_counter", trainable=False)
            self._self_counter = counter
        return self._self_counter

    # --- writing -------------------------------------------------------------------------------------------------

    def save(self, file_prefix: str | os.PathLike[str], options: CheckpointOptions | None = None) -> str:
        """Saves the values under the path `file_prefix-N`, where N counts the calls; returns that path.

        The folder's file `checkpoint` then names it as the latest one. A missing folder is created. While files are
        written, an earlier checkpoint stays intact, whatever happens to the process.

        Raises InvalidArgumentError for values that can't be written, OSError if files can't, RuntimeError in a
        traced function.
        """
        check_eager("Checkpoint.save")
        self.save_counter.assign_add(1)
        path = f"{os.fspath(file_prefix)}-{int(self.save_counter)}"
        folder = str(Path(path).absolute().parent)
        self._write(path, options, lambda: update_state(folder, path, [path]))
        return path

    def write(self, file_prefix: str | os.PathLike[str], options: CheckpointOptions | None = None) -> str:
        """Writes the values under exactly this path, for `read`; returns the path. It adds no number, and writes no
        file `checkpoint`. Raises the errors of `save`."""
        check_eager("Checkpoint.write")
        path = os.fspath(file_prefix)
        self._write(path, options)
        return path

    def _write(self, path: str, options: CheckpointOptions | None, after: Callable[[], None] | None = None) -> None:
        """Takes the values now, and writes them and calls `after` now or in another thread."""
        options = options or CheckpointOptions()
        self.sync()
        graph = objects.Graph(self)
        needed = graph.needed()
        saved = checkpoint_files.saved_objects(graph, needed)
        values: dict[str, tuple[Any, dtypes.DType]] = {}
        kept = [(path, thing) for path, thing, mark in zip(graph.paths, graph.things, needed) if mark]
        for one, (way, thing) in zip(saved, kept):
            if objects.has_value(thing):
                for kind, value in objects.values_of(thing).items():
                    one.values[kind] = checkpoint_files.key_of(way, kind)
                    values[one.values[kind]] = value
        callbacks = options.experimental_write_callbacks

        def run() -> None:
            checkpoint_files.write(checkpoint_files.prefix_of(path), saved, values, options.largest_shard)
            if after is not None:
                after()
            for callback in callbacks:
                callback(*[path][: len(signature_of(callback).parameters)])

        self._self_writer.run(run, options.enable_async)

    def sync(self) -> None:
        """Waits until another thread has written its files. Raises the error of that thread."""
        self._self_writer.wait()

    # --- reading -------------------------------------------------------------------------------------------------

    def restore(self, save_path: str | os.PathLike[str] | None, options: CheckpointOptions | None = None) -> Any:
        """Restores the values that `save` saved: now or, for objects that don't exist yet, when they become attributes.

        save_path   what `save` returned, or `latest_checkpoint`; None restores nothing

        Returns a status, whose `assert_consumed()` and `assert_existing_objects_matched()` raise AssertionError if not
        everything was restored; `expect_partial()` silences the warning about values that never were.

        Raises NotFoundError if there is no such checkpoint, ValueError and InvalidArgumentError if a variable has
        another shape or dtype, DataLossError for damaged files, UnimplementedError for files of a newer version; then
        no value has changed.
        """
        check_eager("Checkpoint.restore")
        self.save_counter  # noqa: B018 - it is to be restored, too, so it must be there
        try:
            return self._restored(save_path)
        except NotFoundError as error:
            raise NotFoundError(f"Error when restoring from checkpoint at {save_path}: {error}") from None

    def read(self, save_path: str | os.PathLike[str], options: CheckpointOptions | None = None) -> Any:
        """Restores the values that `write` wrote. Returns and raises the same as `restore`."""
        check_eager("Checkpoint.read")
        return self._restored(save_path)

    def _restored(self, save_path: Any) -> Any:
        self.sync()
        if save_path is None:
            return restoring.InitializationOnlyStatus()
        restore = restoring.Restore(checkpoint_files.SavedCheckpoint(os.fspath(save_path)))
        try:
            restore.start(self)
        except BaseException:
            restore.report.silent = True
            raise
        for name, value in list(vars(self).items()):
            if not name.startswith(_OWN) and restoring.is_waiting(self):
                object.__setattr__(self, name, _watched(value, self))
        return restoring.CheckpointLoadStatus(restore, self)


def _not_trackable(name: str, value: Any) -> str:
    return (
        f"`Checkpoint` was expecting {name} to be an object that holds values (a variable, module, random generator or "
        f"dataset's iterator, a list or dictionary, or an object with attributes), got {value!r}."
    )


def check_eager(name: str) -> None:
    """Raises RuntimeError while a function is traced."""
    if ctx.builder is not None:
        raise RuntimeError(
            f"{name} reads and writes files, which a traced function can't: call it outside, or through py_function"
        )


class _Writer:
    """Writes now or in a thread, one checkpoint after another."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def run(self, write: Callable[[], None], in_thread: bool) -> None:
        if not in_thread:
            write()
            return

        def guarded() -> None:
            try:
                write()
            except BaseException as error:  # raised by `wait`
                self._error = error

        # Not a daemon: the process doesn't end before the files are complete.
        self._thread = threading.Thread(target=guarded, name="checkpoint")
        self._thread.start()

    def wait(self) -> None:
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        error, self._error = self._error, None
        if error is not None:
            raise error


# --- lists and dictionaries that tell of their changes ---------------------------------------------------------------


class ListWrapper(list):
    """A checkpoint's list while saved values wait for elements: what is appended is restored.

    It changes the list that it was made of, too; that one must not be changed otherwise.
    """

    def __init__(self, source: list, holder: Checkpoint) -> None:
        super().__init__(source)
        self._source, self._holder = source, holder

    def __repr__(self) -> str:
        return f"ListWrapper({super().__repr__()})"

    def __reduce__(self) -> tuple:
        return list, (list(self),)

    def _has_changed(self) -> None:
        self._source[:] = self
        restoring.changed(self._holder)

    def append(self, value: Any) -> None:
        super().append(value)
        self._has_changed()

    def extend(self, values: Iterable[Any]) -> None:
        super().extend(values)
        self._has_changed()

    def insert(self, index: SupportsIndex, value: Any) -> None:
        super().insert(index, value)
        self._has_changed()

    def pop(self, index: SupportsIndex = -1) -> Any:
        value = super().pop(index)
        self._has_changed()
        return value

    def remove(self, value: Any) -> None:
        super().remove(value)
        self._has_changed()

    def clear(self) -> None:
        super().clear()
        self._has_changed()

    def reverse(self) -> None:
        super().reverse()
        self._has_changed()

    def sort(self, **options: Any) -> None:
        super().sort(**options)
        self._has_changed()

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(index, value)
        self._has_changed()

    def __delitem__(self, index: Any) -> None:
        super().__delitem__(index)
        self._has_changed()

    def __iadd__(self, values: Iterable[Any]) -> ListWrapper:  # type: ignore[misc]
        self.extend(values)
        return self


class DictWrapper(dict):
    """A dictionary that an attribute of a `Checkpoint` holds: changes of it are tracked, as those of a `ListWrapper`
    are."""

    def __init__(self, source: dict, holder: Checkpoint) -> None:
        super().__init__(source)
        self._source, self._holder = source, holder

    def __reduce__(self) -> tuple:
        return dict, (dict(self),)

    def _has_changed(self) -> None:
        self._source.clear()
        self._source.update(self)
        restoring.changed(self._holder)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        self._has_changed()

    def __delitem__(self, key: Any) -> None:
        super().__delitem__(key)
        self._has_changed()

    def update(self, *others: Any, **values: Any) -> None:
        super().update(*others, **values)
        self._has_changed()

    def setdefault(self, key: Any, default: Any = None) -> Any:
        value = super().setdefault(key, default)
        self._has_changed()
        return value

    def pop(self, key: Any, *default: Any) -> Any:
        value = super().pop(key, *default)
        self._has_changed()
        return value

    def popitem(self) -> tuple[Any, Any]:
        item = super().popitem()
        self._has_changed()
        return item

    def clear(self) -> None:
        super().clear()
        self._has_changed()

    def __ior__(self, other: Any) -> DictWrapper:  # type: ignore[misc]
        self.update(other)
        return self


def _watched(value: Any, holder: Checkpoint) -> Any:
    if type(value) is list:
        return ListWrapper(value, holder)
    return DictWrapper(value, holder) if type(value) is dict else value


def _check_watched(value: Any) -> None:
    if not isinstance(value, (ListWrapper, DictWrapper)):
        return
    pairs: Any = zip(value, value._source)
    if isinstance(value, Mapping):
        pairs = ((value[key], value._source.get(key)) for key in value)
    if len(value) != len(value._source) or any(one is not other for one, other in pairs):
        raise ValueError(
            f"Unable to save the object {value!r}: it wraps {value._source!r}, which was changed directly while the "
            "checkpoint still had elements to restore. Change the checkpoint's attribute instead."
        )
