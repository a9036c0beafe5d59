"""What tracing a block may change, found out by looking: so that nothing of a trace leaks out of it.

A block changes the variables that it names. It may also call functions that change variables of theirs (``nonlocal``)
or attributes of objects (``self.total += x`` in a method). A `Frame` remembers all of these that can be reached from
the block's closure cells and the globals it names, puts them back after a trace, and tells which have changed: they
are state like any other. So are the contents of lists and dictionaries (see containers.py).
"""

from __future__ import annotations

import contextlib
import functools
from collections import deque
from collections.abc import Callable, Collection, Iterator, MutableMapping, Sequence
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from autograph.errors import StagingError, StagingValueError, user_location
from autograph.operators.aliases import Holder, is_exchanged
from autograph.operators.attributes import attributes_of, identity, twin
from autograph.operators.calls import is_library
from autograph.operators.containers import CONTAINERS, ContentSlot, Snapshot, contents, conversions
from autograph.operators.elements import settle_elements
from autograph.operators.iterators import outside
from autograph.operators.left_numbers import SYMBOLIC, note_number, put_numbers_back
from autograph.operators.libraries import LIBRARIES, library_attributes
from autograph.operators.live import rebind
from autograph.operators.raising import check_refused
from autograph.operators.state import UNSET, Block, CellSlot, Slot, cells, read_cell, write_cell
from autograph.operators.structure import children, flatten, rebuild
from autograph.operators.symbolic import is_weak
from runtime.bytecode import names_written
from runtime.context import ctx
from runtime.dataclass import dataclass
from runtime.interpreter import require_writes
from runtime.ops.staged_number import StagedNumber
from runtime.staged_list import StagedList, moved
from runtime.tensor import EagerTensor, SymbolicTensor, Tensor

_ATOMS = frozenset({int, float, bool, str, bytes, complex, type(None), SymbolicTensor, EagerTensor, StagedNumber})


class _Way:
    """How a value is reached, as text that is made when it is asked for: ways may be long, and there are many."""

    __slots__ = ("before", "step")

    def __init__(self, before: str | _Way, step: str) -> None:
        self.before = before
        self.step = step

    def __str__(self) -> str:
        steps: list[str] = []
        way: str | _Way = self
        while isinstance(way, _Way):
            steps.append(way.step)
            way = way.before
        return way + "".join(reversed(steps))


class AttributeSlot(Slot):
    """An attribute of one object, whatever the way to it."""

    def __init__(self, label: str, owner: Any, attributes: MutableMapping[str, Any], name: str) -> None:
        super().__init__(label)
        self.owner = owner
        self.attributes = attributes
        self.name = name

    @property
    def place(self) -> Any:
        return identity(self.owner), self.name

    def get(self) -> Any:
        return self.attributes.get(self.name, UNSET)

    def set(self, value: Any) -> None:
        if value is UNSET:
            self.attributes.pop(self.name, None)
        else:
            note_number(self.owner, self.name, value)
            self.attributes[self.name] = value


@dataclass
class Change:
    """State that a block has changed: what it is now, and the places that differ from before.

    slot      makes the slot; raises StagingError for a container that can't be state
    place     what the slot will name as its place
    owner     the container whose contents have changed, None for a variable or an attribute
    """

    slot: Callable[[], Slot]
    now: Any
    place: Any
    places: frozenset[Any]
    owner: Any = None

    def is_known(self, known: Collection[Any]) -> bool:
        """Whether the places are state already, one by one or as the contents of their owner."""
        return self.places <= set(known) or self.place in known


class Images:
    """The containers and objects that a block has changed as they were at its end."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[Any, Any]] = {}  # by id of the original, which must live on; and what was in it
        self._originals: dict[int, tuple[Any, Any]] = {}  # by id of a staged list, the list that it was before

    def add(self, original: Any, inside: Any) -> None:
        """inside: a copy of a container, the attributes of an object."""
        self._found[id(original)] = original, inside

    def became(self, staged: StagedList, original: list[Any]) -> None:
        self._originals[id(staged)] = staged, original

    def original(self, value: Any) -> Any:
        """The list that has become a staged one in the block; any other value itself."""
        return self._originals[id(value)][1] if id(value) in self._originals else value

    def of(self, value: Any) -> Any:
        """A value as it was at the end of the block."""
        if id(value) not in self._found:
            return value
        _, inside = self._found[id(value)]
        if isinstance(value, (list, dict, StagedList)):
            return inside
        return twin(value, inside)

    def inside(self, value: Any) -> Any:
        """A value with the images of all that is in it."""
        if not self._found:
            return value
        after = self.of(value)
        items = children(after)
        if items is None:
            return value
        inside = [self.inside(item) for _, item in items]
        return value if after is value and all(a is b for a, (_, b) in zip(inside, items)) else rebuild(after, inside)


class Frame:
    """The variables, attributes and containers that blocks can reach, as they were when this was made.

    others: what they can reach besides.
    """

    def __init__(self, blocks: Sequence[Block], others: Sequence[Any] = ()) -> None:
        settle_elements()
        direct = cells(blocks)
        self.blocks = blocks
        self.containers: list[Snapshot] = []
        self.arrays: list[np.ndarray] = []
        self.iterators: list[Any] = []
        # Variables of other functions, and those that the blocks read but only functions that they call may set.
        require_writes()
        written = frozenset().union(*[names_written(block.__code__) for block in blocks])
        self.before = [(cell, read_cell(cell)) for name, cell in direct.items() if name in written]
        self.far_cells = [(name, cell, read_cell(cell)) for name, cell in direct.items() if name not in written]
        self.objects: list[tuple[str | _Way, Any, MutableMapping[str, Any], dict[str, Any]]] = []
        self._kept_by_libraries: set[int] = set()  # the ids of containers
        self._seen = {id(cell) for cell in direct.values()}
        self._waiting: deque[tuple[str | _Way, Any]] = deque()
        for name, cell in direct.items():
            self._reach(name, read_cell(cell))
        for block in blocks:
            self._reach_globals(block.__code__, block.__globals__)
        for each in others:
            self._reach("the list", each)
        self._reach_waiting()
        self._outside = {id(owner) for owner in self.owners()}
        self._created = ctx.created

    @classmethod
    def of(cls, *values: Any) -> Frame:
        """What can be reached from some values."""
        return cls((), values)

    def changed(self) -> list[Change]:
        """The state beyond the blocks' own variables that has changed."""
        self._keep_flags()
        found = []
        for slot, before in self.changed_far_slots():
            now = slot.get()
            if isinstance(now, StagedList) and moved(before) is now:
                continue  # the same list in its staged form, whose contents are state anyway
            if now is not before and _is_state(before, now):
                found.append(Change(lambda slot=slot: slot, now, slot.place, frozenset({slot.place})))  # type: ignore[misc]
        for snapshot in self.containers:
            if snapshot.changed() and not self._is_of_library(snapshot):
                places = frozenset(snapshot.changed_places())
                found.append(
                    Change(
                        snapshot.slot,
                        contents(snapshot.owner),
                        ContentSlot(snapshot.label, snapshot.owner).place,
                        places,
                        snapshot.owner,
                    )
                )
        return found

    def changes(self, known: Collection[Any] = ()) -> list[tuple[Slot, Any]]:
        """The state beyond the blocks' own variables that has changed, each with its value now.

        known: places that are state already. Raises StagingError for a change that can't be state.
        """
        return [(each.slot(), each.now) for each in self.changed() if not each.is_known(known)]

    def far_slots(self, wanted: Collection[tuple[type[Slot], str]]) -> list[Slot]:
        """The state beyond the blocks' own variables with these kinds and labels, where they tell which it is."""
        if not wanted:
            return []
        slots: list[Slot] = [CellSlot(name, cell) for name, cell, _ in self.far_cells]
        for way, owner, attributes, values in self.objects:
            slots += [AttributeSlot(f"{way}.{key}", owner, attributes, key) for key in {**values, **attributes}]
        kinds = (list, dict, StagedList)
        slots += [ContentSlot(each.label, each.owner) for each in self.containers if isinstance(each.owner, kinds)]
        for way, owner, attributes, _ in self.objects:  # what has no value yet
            name = str(way)
            for kind, label in wanted:
                key = label[len(name) + 1 :]
                if kind is AttributeSlot and label == f"{name}.{key}" and key.isidentifier() and key not in attributes:
                    slots.append(AttributeSlot(label, owner, attributes, key))
        found: dict[tuple[type[Slot], str], list[Slot]] = {}
        for slot in slots:
            found.setdefault((type(slot), slot.label), []).append(slot)
        return [each[0] for key, each in found.items() if key in wanted and len(each) == 1]

    def images(self) -> Images:
        """What is in the containers and objects that have changed, to be read when they have been put back."""
        images = Images()
        for snapshot in self.containers:
            owner = snapshot.owner
            if isinstance(owner, (list, dict, StagedList)) and snapshot.changed():
                staged = moved(owner)
                copied = owner if staged is None else staged
                images.add(owner, copied.clone() if isinstance(copied, StagedList) else copied.copy())
                if isinstance(owner, list) and staged is not None:
                    images.became(staged, owner)
        for _, owner, attributes, before in self.objects:
            if attributes.keys() != before.keys() or any(attributes[key] is not item for key, item in before.items()):
                images.add(owner, dict(attributes))
        return images

    def owners(self) -> list[Any]:
        """The containers and objects."""
        return [*[snapshot.owner for snapshot in self.containers], *[owner for _, owner, _, _ in self.objects]]

    def holders(self, value: Any) -> list[Holder]:
        """The attributes and items that hold a value."""
        found: list[Holder] = []
        for _, _, attributes, before in self.objects:
            found += [(attributes, key) for key, held in before.items() if held is value]
        for snapshot in self.containers:
            if isinstance(snapshot.owner, dict):
                found += [(snapshot.owner, key) for key, held in snapshot.before.items() if held is value]
            elif isinstance(snapshot.owner, list):
                found += [(snapshot.owner, index) for index, held in enumerate(snapshot.before) if held is value]
        return found

    def all_holders(self, value: Any) -> list[Holder]:
        """Who held a value before the blocks, or holds it since."""
        return [*self.holders(value), *self.holders_now(value)]

    def holders_now(self, value: Any) -> list[Holder]:
        """The attributes and items that hold a value since the blocks have run."""
        found: list[Holder] = []
        for _, _, attributes, _ in self.objects:
            found += [(attributes, key) for key, held in attributes.items() if held is value]
        for snapshot in self.containers:
            owner = snapshot.owner
            if isinstance(owner, (dict, list)):
                items = owner.items() if isinstance(owner, dict) else enumerate(owner)
                found += [(owner, key) for key, held in items if held is value]
        return found

    def is_outside(self, value: Any) -> bool:
        """Whether a container or object was there, within reach, before the blocks."""
        return id(value) in self._outside

    def restore(self) -> None:
        """Puts everything back, save what is no state of the program (objects made while tracing stay)."""
        self._keep_flags()
        for slot, before in list(self.changed_far_slots()):
            now = slot.get()
            if now is not before and _is_state(before, now):
                slot.set(before)
        for snapshot in self.containers:
            staged = moved(snapshot.owner)
            if snapshot.touched() and not self._is_of_library(snapshot):
                snapshot.restore()
            if staged is not None and moved(snapshot.owner) is None:
                rebind(staged, snapshot.owner)
        for cell, value in self.before:
            if read_cell(cell) is not value:
                write_cell(cell, value)

    def _keep_flags(self) -> None:
        """Lets attributes stay that became True while variables were created, and those of a library's class, such as
        `built` of a Keras layer: they say that the variables are there, which they are from now on."""
        for _, owner, attributes, values in self.objects:
            own = library_attributes(type(owner))
            for key, before in values.items() if own or ctx.created != self._created else ():
                if before is False and attributes.get(key) is True and (key in own or ctx.created != self._created):
                    values[key] = True

    def replace(self, old: Any, new: Any) -> None:
        """Puts one object in the place of another, in every variable, attribute and container of the frame.

        And in the variables of the functions that are being traced, which no block mentions.
        """
        rebind(old, new)
        for cell, value in self.before:
            if value is old:
                write_cell(cell, new)
        for _, cell, value in self.far_cells:
            if value is old:
                write_cell(cell, new)
        for _, _, attributes, values in self.objects:
            for key, value in values.items():
                if value is old:
                    attributes[key] = new
        for snapshot in self.containers:
            owner = snapshot.owner
            if isinstance(owner, (list, dict)):
                for place, item in list(enumerate(owner) if isinstance(owner, list) else owner.items()):
                    if item is old:
                        owner[place] = new

    @contextlib.contextmanager
    def tracing(self) -> Iterator[None]:
        """Keeps NumPy arrays from being written to while a block is traced: nothing could undo or carry that."""
        for array in self.arrays:
            array.flags.writeable = False
        self._created = ctx.created
        try:
            with outside(self.iterators):
                yield
        except ValueError as error:
            if "read-only" not in str(error) or not self.arrays:
                raise
            raise StagingValueError(
                "a NumPy array is written to in a branch or loop on tensors",
                location=user_location(),
                cause="whether and how often that happens is known only at run time, and an array isn't a tensor",
                fix="make it a tensor, and use ag.tensor_scatter_nd_update, or a list",
            ) from error
        finally:
            for array in self.arrays:
                array.flags.writeable = True

    def changed_far_slots(self) -> Iterator[tuple[Slot, Any]]:
        """The variables and attributes that hold another object than before, and what they held."""
        for variable, cell, value in self.far_cells:
            if read_cell(cell) is not value:
                yield CellSlot(variable, cell), value
        for name, owner, attributes, values in self.objects:
            if len(attributes) == len(values) and all(attributes.get(k, UNSET) is v for k, v in values.items()):
                continue
            own = library_attributes(type(owner))
            for key in dict.fromkeys([*values, *attributes]):
                before = values.get(key, UNSET)
                now = attributes.get(key, UNSET)
                if now is not before and (not _is_private(key, own) or _holds_symbolic(now)):
                    yield AttributeSlot(f"{name}.{key}", owner, attributes, key), before

    def _is_of_library(self, snapshot: Snapshot) -> bool:
        """Whether a container holds what a library keeps of an object, such as the names of its attributes."""
        owner = snapshot.owner
        return id(owner) in self._kept_by_libraries and moved(owner) is None and not _holds_symbolic(owner)

    def _reach(self, name: str | _Way, value: Any) -> None:
        if type(value) not in _ATOMS:
            self._waiting.append((name, value))

    def _reach_waiting(self) -> None:
        done = []  # what lives only here (the arguments of a partial) must not give its id to another
        while self._waiting:
            done.append(self._waiting.popleft())
            self._reach_one(*done[-1])

    def _reach_one(self, name: str | _Way, value: Any) -> None:
        if id(value) in self._seen or isinstance(value, (type, ModuleType, Tensor)):
            return
        kind = type(value)
        self._seen.add(id(value))
        if kind is FunctionType:
            if is_library(value):
                # Its variables are its own business (a cache); the user's functions that it calls aren't.
                for cell in value.__closure__ or ():
                    if isinstance(read_cell(cell), (FunctionType, MethodType)):
                        self._reach(name, read_cell(cell))
            else:
                self._reach_closure(value)
                self._reach_globals(value.__code__, value.__globals__)
        elif kind is MethodType:
            self._reach(name, value.__self__)
            self._reach(name, value.__func__)
        elif isinstance(value, functools.partial):
            self._reach(name, value.func)
            self._reach(name, (*value.args, *value.keywords.values()))
        elif isinstance(value, (*CONTAINERS, tuple)):
            if not isinstance(value, tuple):
                self.containers.append(Snapshot(name, value))
                self._reach(name, moved(value))
            if isinstance(value, (list, tuple, deque)):
                for index, item in enumerate(value):
                    if type(item) not in _ATOMS:
                        self._reach(_Way(name, f"[{index}]"), item)
            elif isinstance(value, dict):
                for key, item in value.items():
                    if type(item) not in _ATOMS:
                        self._reach(_Way(name, f"[{key!r}]"), item)
        elif (kind.__module__ == "builtins" and isinstance(value, Iterator)) or getattr(kind, "is_iterator", False):
            self.iterators.append(value)
        elif isinstance(value, np.ndarray):
            if value.flags.writeable:
                self.arrays.append(value)
        elif not _is_library(kind.__module__) and (attributes := attributes_of(value)) is not None:
            self.objects.append((name, value, attributes, dict(attributes)))
            own = library_attributes(kind)
            for key, item in list(attributes.items()):
                if _is_private(key, own) and isinstance(item, CONTAINERS):
                    self._kept_by_libraries.add(id(item))
                if type(item) not in _ATOMS:
                    self._reach(_Way(name, f".{key}"), item)

    def _reach_closure(self, function: FunctionType) -> None:
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            if id(cell) not in self._seen:
                self._seen.add(id(cell))
                self.far_cells.append((name, cell, read_cell(cell)))
                self._reach(name, read_cell(cell))

    def _reach_globals(self, code: CodeType, namespace: dict[str, Any]) -> None:
        """What a function can reach by the names of globals; a module's own variables are state by name only."""
        if _is_library(namespace.get("__name__")):
            return
        for name in code.co_names:
            if name in namespace:
                self._reach(name, namespace[name])
        for nested in code.co_consts:
            if isinstance(nested, CodeType):
                self._reach_globals(nested, namespace)


def end_trace(builder: Any, *outside: Any) -> None:
    """Puts the lists back that became staged in a trace, and the numbers of objects of libraries' classes.

    outside: what the caller of the trace can still see. Raises StagingError if such a list is reached from there, or if
    the function has swallowed one.
    """
    put_numbers_back(builder)
    found = conversions(builder)
    check_refused(builder)
    if not found:
        return
    frame = Frame.of(*outside)
    labels = {id(each.owner): each.label for each in frame.containers}
    for each in found:
        frame.replace(each.staged, each.owner)
    for each in found:
        label = labels.get(id(each.owner), labels.get(id(each.staged)))
        if label is not None:
            raise StagingError(
                f"'{label}' is a list from outside of the function, and a branch or loop on tensors changes its "
                "length, or an item at an index that is a tensor",
                location=each.location,
                cause="it would then hold tensors that exist only inside of the function",
                fix="make the list in the function and return it",
            )


def _is_library(module: Any) -> bool:
    return not isinstance(module, str) or module.partition(".")[0] in LIBRARIES or module == "builtins"


def _is_state(before: Any, now: Any) -> bool:
    """Whether a change belongs to the program; what it makes on first use (``self.w = None``) doesn't."""
    if _holds_symbolic(now):
        return True
    if before is UNSET or (before is None and not _is_value(now)):
        return False
    return is_exchanged(before, now)


def _is_private(name: str, own: Collection[str]) -> bool:
    """Whether an attribute, of which those in `own` are a library's, is the library's business alone."""
    return name.startswith("_") and name in own


def _holds_symbolic(value: Any) -> bool:
    return any(type(leaf) in SYMBOLIC for _, leaf in flatten(value))


def _is_value(value: Any) -> bool:
    return is_weak(value) or isinstance(value, Tensor)
