"""Restoring: the saved graph of objects is laid over the program's, name by name, from the root on.

Where the program has no object for a saved one yet, its holder waits: when it gets an attribute of that name, the value
is restored then, and when a list or dictionary has got it, as soon as the holder's attribute is read. A restore lives
as long as a holder waits for it. What of it has found no place when it ends, a warning says.
"""

from __future__ import annotations

import functools
import sys
import warnings
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

from autograph import module
from autograph.saving import objects
from autograph.saving.checkpoint_files import SavedCheckpoint, SavedObject
from runtime.errors import is_own_file
from runtime.tracebacks import warn

_SHOWN = 10
_DEEPEST = 5  # lists in lists that are looked into for new elements


class _Report:
    """Warns, when a restore ends, of the saved values that were never restored."""

    def __init__(self, saved: SavedCheckpoint) -> None:
        self.saved = saved
        self.found: set[int] = set()
        self.silent = False
        frame: Any = sys._getframe()
        while frame is not None and is_own_file(frame.f_code.co_filename):
            frame = frame.f_back
        self.place = ("sys", 1) if frame is None else (frame.f_code.co_filename, frame.f_lineno)

    def missing(self) -> list[str]:
        """The paths of the saved values that haven't been restored to any object."""
        return [
            thing.path
            for number, thing in enumerate(self.saved.objects)
            if thing.values and thing.path and number not in self.found
        ]

    def __call__(self) -> None:
        missing = [] if self.silent else self.missing()
        if not missing:
            return
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        warnings.warn_explicit(
            f"{len(missing)} values of the checkpoint {self.saved.prefix} could not be found in the restored object, "
            f"and weren't restored: {', '.join(missing[:_SHOWN])}{more}. `status.expect_partial()` silences this "
            "warning, `status.assert_consumed()` turns it into an error.",
            UserWarning,
            *self.place,
        )


class Restore:
    """One restore of a checkpoint: maps the saved objects to objects of the program, also to those created later."""

    def __init__(self, saved: SavedCheckpoint) -> None:
        self.saved = saved
        # By the saved object's number: a weak reference; None for lists and the like, which are looked through.
        self.found: dict[int, weakref.ref | None] = {}
        self._values: dict[int, weakref.ref] = {}  # the objects that have got their values, by id
        self._warned: set[tuple[int, int]] = set()
        self.report = _Report(saved)
        weakref.finalize(self, self.report)

    def start(self, root: Any) -> None:
        """Restores every object that can be reached from the root now. Raises what `objects.check` raises, before it
        changes anything."""
        self._bind([(root, 0)])

    def restore_new_objects(self) -> None:
        """Restores objects that the program has attached to restored ones since the last call, which no hook
        reported."""
        holders = [(thing, number) for number in list(self.found) if (thing := self._thing(number)) is not None]
        self._bind(holders)

    def _thing(self, number: int) -> Any:
        reference = self.found.get(number)
        return None if reference is None else reference()

    def ids(self) -> set[int]:
        """The ids of the program's objects that saved objects are mapped to."""
        return {id(reference()) for reference in self.found.values() if reference is not None}

    def _bind(self, pairs: Iterable[tuple[Any, int]]) -> None:
        """Maps saved objects to objects of the program, and so on along the names of their children, and assigns their
        values. `pairs`: (object of the program, number of the saved object)."""
        found: dict[int, Any] = {}
        assignments: list[tuple[Any, SavedObject]] = []
        waiting: list[tuple[Any, int]] = []
        pending = list(pairs)
        seen: set[tuple[int, int]] = set()
        for thing, number in pending:
            if (id(thing), number) in seen:
                continue
            seen.add((id(thing), number))
            saved = self.saved.objects[number]
            if objects.has_value(thing) != bool(saved.values):
                continue
            if not _is_looked_through(thing):
                known = found.get(number, self._thing(number))
                if known is not None and not _are_one(known, thing):
                    self._warn_of_two(number, known, thing)
                    continue
                if known is None:
                    assignments += [(thing, saved)] if saved.values else []
            found.setdefault(number, thing)
            held = objects.settled_children(thing)
            for name, other in saved.children.items():
                if name in held:
                    pending.append((held[name], other))
            waiting.append((thing, number))
        self._assign(assignments)
        for number, thing in found.items():
            if self._thing(number) is None:
                self.found[number] = None if _is_looked_through(thing) else weakref.ref(thing)
            self.report.found.add(number)
        for thing, number in waiting:
            if not _is_looked_through(thing) and not self._is_complete(number):
                _wait(thing, self, number)

    def _warn_of_two(self, number: int, first: Any, second: Any) -> None:
        if (number, id(second)) in self._warned:
            return
        self._warned.add((number, id(second)))
        warn(
            "Inconsistent references when loading the checkpoint into this object graph: "
            f"{self.saved.objects[number].path} is one object in the checkpoint, but two here: {first!r} and "
            f"{second!r}. Only the first was restored."
        )

    def _assign(self, assignments: list[tuple[Any, SavedObject]]) -> None:
        ready: dict[int, Any] = {}
        for thing, saved in assignments:
            known = self._values.get(id(thing))
            if id(thing) in ready or (known is not None and known() is thing):
                continue  # two saved objects are one here, which has its value
            values = {kind: self.saved.read(key) for kind, key in saved.values.items()}
            objects.check(thing, values, saved.path)
            ready[id(thing)] = thing, values
        self.saved.close()
        for thing, values in ready.values():
            objects.assign(thing, values)
            self._values[id(thing)] = weakref.ref(thing)

    def _is_complete(self, number: int) -> bool:
        """Whether every child of a saved object, in lists and dictionaries too, is mapped to an object of the
        program."""
        pending, seen = [number], {number}
        for each in pending:
            for child in self.saved.objects[each].children.values():
                if child not in self.found:
                    return False
                if self.found[child] is None and child not in seen:
                    seen.add(child)
                    pending.append(child)
        return True

    def restore_children(self, thing: Any, number: int) -> bool:
        """Restores children that an object has got since the last call. Returns whether all saved children are mapped
        now."""
        self._bind([(thing, number)])
        return self._is_complete(number)


def _are_one(first: Any, second: Any) -> bool:
    """Whether two objects are identical, or one is a `Checkpoint` and the other the root that it stands for."""
    return first is second or any(
        isinstance(one, objects.Holder) and one.stands_for() is other
        for one, other in ((first, second), (second, first))
    )


def _is_looked_through(thing: Any) -> bool:
    return not objects.is_certain(thing) and (objects.is_container(thing) or not hasattr(type(thing), "__weakref__"))


# --- holders that wait -----------------------------------------------------------------------------------------------

# By the holder's id.
_waiting: dict[int, tuple[weakref.ref, list[tuple[Restore, int]]]] = {}


def _wait(thing: Any, restore: Restore, number: int) -> None:
    root = thing.stands_for() if isinstance(thing, objects.Holder) else None
    for holder in (thing, root):
        if holder is None or _is_looked_through(holder):
            continue
        key = id(holder)
        if key not in _waiting:
            _waiting[key] = weakref.ref(holder, functools.partial(_forget, key)), []
        if (restore, number) not in _waiting[key][1]:
            _waiting[key][1].append((restore, number))
    module.watch_attributes(changed, was_read)


def _forget(key: int, reference: Any = None) -> None:
    _waiting.pop(key, None)
    if not _waiting:
        module.watch_attributes(None)
        _contents.clear()


# What the lists and dictionaries of holders held when they were last read, by their ids.
_contents: dict[int, tuple[int, ...]] = {}


def was_read(thing: Any, container: Any) -> None:
    """A list or dictionary of a holder is read: what has been put into it since is restored first."""
    if id(thing) not in _waiting:
        return
    content = tuple(_ids(container, 0))
    if _contents.get(id(container)) != content:
        _contents[id(container)] = content
        changed(thing)


def _ids(container: Any, depth: int) -> Iterator[int]:
    for item in container.values() if isinstance(container, dict) else container:
        yield id(item)
        if depth < _DEEPEST and isinstance(item, (list, dict)):
            yield from _ids(item, depth + 1)


def is_waiting(thing: Any) -> bool:
    """Whether values wait for attributes of an object."""
    return id(thing) in _waiting


def changed(thing: Any) -> None:
    """Restores the values that waited for an attribute of `thing`. Called when an attribute of it has been set."""
    entry = _waiting.get(id(thing))
    if entry is None:
        return
    for restore, number in list(entry[1]):
        if restore.restore_children(thing, number) and (restore, number) in entry[1]:
            entry[1].remove((restore, number))
    if not entry[1]:
        _forget(id(thing))


# --- what a restore returns ------------------------------------------------------------------------------------------


class InitializationOnlyStatus:
    """What restoring from None returns: there is nothing to be restored."""

    def expect_partial(self) -> InitializationOnlyStatus:
        """Does nothing; returns the status."""
        return self

    def _nothing(self) -> Any:
        raise AssertionError("No checkpoint specified (save_path=None); nothing is being restored.")

    assert_consumed = assert_existing_objects_matched = assert_nontrivial_match = _nothing


class CheckpointLoadStatus:
    """What restoring returns: tells whether all was restored."""

    def __init__(self, restore: Restore, root: Any) -> None:
        self._restore = restore
        self._root = root

    def assert_consumed(self) -> CheckpointLoadStatus:
        """Raises AssertionError unless each saved object has a counterpart in the program, and each object of the
        program was restored."""
        self.assert_existing_objects_matched()
        for number, saved in enumerate(self._restore.saved.objects):
            if number not in self._restore.found:
                raise AssertionError(f"Unresolved object in checkpoint {saved.path}: {_description(saved)}")
        return self

    def assert_existing_objects_matched(self) -> CheckpointLoadStatus:
        """Raises AssertionError unless each object of the program was restored."""
        self._restore.restore_new_objects()
        unmatched = self._unmatched()
        if unmatched:
            shown = unmatched[:_SHOWN]
            raise AssertionError(
                f"Found {len(unmatched)} Python objects that were not bound to checkpointed values, likely due to "
                f"changes in the Python program. Showing {len(shown)} of {len(unmatched)} unmatched objects: "
                + ", ".join(f"{'.'.join(map(str, ('(root)', *path)))}: {thing!r}" for path, thing in shown)
            )
        return self

    def assert_nontrivial_match(self) -> CheckpointLoadStatus:
        """Raises AssertionError if nothing but the root was restored."""
        self._restore.restore_new_objects()
        if any(number and reference is not None for number, reference in self._restore.found.items()):
            return self
        unmatched = self._unmatched()
        if unmatched:
            raise AssertionError(
                "Nothing except the root object matched a checkpointed value. Typically this means that the checkpoint "
                "does not match the Python program. The following objects have no matching checkpointed value: "
                f"{[thing for _, thing in unmatched]}"
            )
        raise AssertionError(f"Nothing to load. No dependencies have been added to {self._root!r} yet.")

    def expect_partial(self) -> CheckpointLoadStatus:
        """Silences the warning about saved values that were not restored; returns the status."""
        self._restore.report.silent = True
        return self

    def initialize_or_restore(self, session: Any = None) -> None:
        """Does nothing: all that can be restored has already been restored."""

    def _unmatched(self) -> list[tuple[tuple, Any]]:
        graph, found = objects.Graph(self._root), self._restore.ids()
        return [
            (path, thing)
            for path, thing in list(zip(graph.paths, graph.things))[1:]
            if objects.is_certain(thing) and id(thing) not in found
        ]


def _description(saved: Any) -> str:
    values = ", ".join(f"{kind} under the key {key}" for kind, key in saved.values.items())
    return values or f"an object that holds {', '.join(saved.children) or 'nothing'}"
