"""What tracing a block may change, found out by looking: so that nothing of a trace leaks out of it.

A block changes the variables that it names. It may also call functions that change variables of theirs (``nonlocal``)
or attributes of objects (``self.total += x`` in a method). A `Frame` remembers all of these that can be reached from
the block's closure cells and the globals it names, puts them back after a trace, and tells which have changed: they
are state like any other. So are the contents of lists and dictionaries (see containers.py).
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from contextvars import ContextVar
from functools import cached_property, partial, partialmethod
from types import BuiltinMethodType, CodeType, FunctionType, MethodType, MethodWrapperType, ModuleType
from typing import Any

import numpy as np

from autograph.operators.aliases import Holder, is_exchanged
from autograph.operators.arrays import make_writable, written_in_block
from autograph.operators.attributes import (
    ClassAttributes,
    ContextValue,
    SomeItems,
    attributes_of,
    classes_above,
    is_method,
)
from autograph.operators.calls import is_library as is_library_function
from autograph.operators.changes import Change, Images
from autograph.operators.containers import CONTAINERS, STAGED, ContentSlot, Snapshot, contents
from autograph.operators.elements import settle_elements
from autograph.operators.foreign import (
    answer_of_foreign,
    is_silent,
    of_current_context,
    parts_of_foreign,
    reaches_context,
)
from autograph.operators.foreign import outside as outside_of_block
from autograph.operators.holdings import (
    AttributeSlot,
    Holding,
    Names,
    Way,
    is_internal,
    is_library,
    is_ours,
    is_users,
    names_of,
)
from autograph.operators.iterators import Position, Positioned, is_of_c, outside, taking_from
from autograph.operators.libraries import library_attributes
from autograph.operators.live import rebind
from autograph.operators.makeup import Parts, makeup_of, refuse_change_of_new, refuse_exchange, refuse_first_value
from autograph.operators.opaque import Answer, answer_of, referents
from autograph.operators.restored_numbers import SYMBOLIC
from autograph.operators.state import UNSET, Block, CellSlot, Slot, cells, read_cell, write_cell
from autograph.operators.structure import flatten
from autograph.operators.symbolic import is_weak
from runtime.bytecode import names_written
from runtime.context import ctx
from runtime.interpreter import require_writes
from runtime.ops.staged_number import StagedNumber
from runtime.ops.strings.staged_string import StagedString, StagedText
from runtime.staged_array import ArrayView
from runtime.staged_list import StagedList, moved
from runtime.tensor import EagerTensor, SymbolicTensor, Tensor

# Methods of C code, of lists and the like, which may be kept in variables: ``add = found.append``.
_METHODS_OF_C = frozenset({BuiltinMethodType, MethodWrapperType})
# Where properties, static methods and the like keep their functions.
_FUNCTIONS = ("__func__", "fget", "fset", "fdel", "func")
_WITH_FUNCTIONS = (staticmethod, classmethod, property, cached_property, partialmethod)
_ATOMS = frozenset(
    {
        int,
        float,
        bool,
        str,
        bytes,
        complex,
        type(None),
        SymbolicTensor,
        EagerTensor,
        StagedNumber,
        StagedString,
        StagedText,
    }
)


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
        self.objects: list[Holding] = []
        self.answers: list[Answer] = []
        self.silent: list[Any] = []  # objects whose state nothing tells
        self.takes_made = False  # whether an attribute that comes to be in the blocks, and holds a number, is state
        self._kept: set[Any] = set()  # the places of those that stayed
        self._made: set[int] = set()  # the ids of objects and containers that came to be there, and stay
        self._classes: dict[int, Holding] = {}  # by id
        self._modules: dict[int, Holding] = {}  # by id of the dictionary of a module's variables
        self._names: list[Names] = []  # in the code that is reached
        self._seen_modules: dict[tuple[int, int], Names] = {}
        self._kept_by_libraries: set[int] = set()  # the ids of containers
        self._seen = {id(cell) for cell in direct.values()}
        self._waiting: deque[tuple[str | Way, Any]] = deque()
        for name, cell in direct.items():
            self._reach(name, read_cell(cell))
        for block in blocks:
            self._reach_globals(block.__code__, block.__globals__)
        for each in others:
            self._reach("the list", each)
        self._reach_waiting()
        if any("__annotations__" in names.read for names in self._names):
            self._hold_annotations()
        self._outside = {id(owner) for owner in self.owners()}
        self._created = ctx.created
        self._positions: list[Position] = []  # of the iterators, when the trace of a block began

    @classmethod
    def of(cls, *values: Any) -> Frame:
        """What can be reached from some values."""
        return cls((), values)

    def changed(self) -> list[Change]:
        """The state beyond the blocks' own variables that has changed."""
        self._keep_flags()
        found = []
        for slot, _, before in self.changed_far_slots():
            now = slot.get()
            if isinstance(now, StagedList) and moved(before) is now:
                continue  # the same list in its staged form, whose contents are state anyway
            is_of_made = isinstance(slot, AttributeSlot) and id(slot.owner) in self._made
            if now is not before and (is_of_made or self._is_state(before, now, slot)):
                make = partial(refuse_first_value, slot.label) if slot.place in self._kept else lambda slot=slot: slot
                make = partial(refuse_change_of_new, slot.label) if is_of_made else make
                found.append(Change(make, now, slot.place, frozenset({slot.place})))
        for each in self.objects:
            for name in each.exchanged():
                place = "makeup", id(each.owner), name
                found.append(Change(partial(refuse_exchange, each.label(name), name), None, place, frozenset({place})))
        found += [
            Change(each.refuse, None, each.place, frozenset({each.place})) for each in self.answers if each.changed()
        ]
        for snapshot in self.containers:
            if snapshot.changed() and not self._is_of_library(snapshot):
                places = frozenset(snapshot.changed_places())
                is_of_made = id(snapshot.owner) in self._made
                found.append(
                    Change(
                        partial(refuse_change_of_new, snapshot.label) if is_of_made else snapshot.slot,
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
        for each in self.objects:
            slots += [each.slot(key) for key in {**each.before, **each.attributes}]
        kinds = (list, dict, *STAGED)
        slots += [ContentSlot(each.label, each.owner) for each in self.containers if isinstance(each.owner, kinds)]
        for each in self.objects:  # what has no value yet
            for kind, label in wanted:
                key = label.rpartition(".")[2]
                is_new = key not in each.attributes and key not in each.before and key.isidentifier()
                if kind is AttributeSlot and is_new and label == each.label(key):
                    slots.append(each.slot(key))
        found: dict[tuple[type[Slot], str], list[Slot]] = {}
        for slot in slots:
            found.setdefault((type(slot), slot.label), []).append(slot)
        return [each[0] for key, each in found.items() if key in wanted and len(each) == 1]

    def images(self) -> Images:
        """What is in the containers and objects that have changed, to be read when they have been put back."""
        images = Images()
        for snapshot in self.containers:
            owner = snapshot.owner
            if isinstance(owner, (list, dict, *STAGED)) and snapshot.changed():
                staged = moved(owner)
                copied = owner if staged is None else staged
                images.add(owner, copied.clone() if isinstance(copied, STAGED) else copied.copy())
                if isinstance(owner, list) and staged is not None:
                    images.became(staged, owner)
        for each in self.objects:
            if not (each.is_single or isinstance(each.owner, CONTAINERS)) and each.is_changed():
                images.add(each.owner, dict(each.attributes))
        return images

    def owners(self) -> list[Any]:
        """The containers and objects."""
        return [*[snapshot.owner for snapshot in self.containers], *[each.owner for each in self.objects]]

    def things(self) -> list[Any]:
        """All that can change: the variables of other functions, the containers and objects."""
        return [*[cell for _, cell, _ in self.far_cells], *self.owners(), *[each.owner for each in self.answers]]

    def changed_things(self) -> Iterator[tuple[str, Any]]:
        """Those that have changed, each with the way to what has changed there."""
        for slot, _, _ in self.changed_far_slots():
            yield slot.label, slot.cell if isinstance(slot, CellSlot) else slot.owner  # type: ignore[attr-defined]
        yield from [(str(each.label), each.owner) for each in self.containers if each.changed()]
        yield from [(str(each.way), each.owner) for each in self.answers if each.changed()]

    def holders(self, value: Any) -> list[Holder]:
        """The attributes and items that hold a value."""
        found: list[Holder] = []
        for each in self.objects:
            found += [(each.attributes, key) for key, held in each.before.items() if held is value]
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
        for each in self.objects:
            found += [(each.attributes, key) for key, held in each.attributes.items() if held is value]
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
        for each in self.objects:
            each.put_makeup_back()
        for slot, held, before in list(self.changed_far_slots()):
            now = slot.get()
            if now is not before and self._is_state(before, now, slot):
                slot.set(held)
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
        for each in self.objects:
            own = frozenset[str]() if each.is_single else library_attributes(type(each.owner))
            for key, before in each.before.items() if own or ctx.created != self._created else ():
                is_set = before is False and each.attributes.get(key) is True
                if is_set and (key in own or ctx.created != self._created):
                    each.before[key] = True

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
        for each in self.objects:
            for key, value in each.before.items():
                if value is old:
                    each.attributes[key] = new
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
            self._positions = [Position(each) for each in self.iterators]
            with outside(self.iterators, self._positions), outside_of_block(self.silent):
                yield
        except ValueError as error:
            if "read-only" not in str(error) or not self.arrays:
                raise
            raise written_in_block(error) from error
        finally:
            make_writable(self.arrays)

    def check_iterators(self) -> None:
        """Raises StagingError if the block that is being traced has taken items from iterators and may not."""
        for each in self._positions:
            if each.has_moved():
                taking_from(each.iterator)

    def changed_far_slots(self) -> Iterator[tuple[Slot, Any, Any]]:
        """The variables and attributes that hold another object than before, and what they held, stored and read.

        These differ for an attribute that only the class had.
        """
        for variable, cell, value in self.far_cells:
            if read_cell(cell) is not value:
                yield CellSlot(variable, cell), value, value
        for each in self.objects:
            for key, before, now in each.changed():
                own = library_attributes(type(each.owner))
                if not _is_private(key, own) or holds_symbolic(now):
                    yield each.slot(key), before, self._inherited(each.owner, key) if before is UNSET else before

    def _inherited(self, owner: Any, name: str) -> Any:
        """What an object, or a class, without an attribute of its own got from a class before the blocks."""
        for kind in classes_above(owner):
            attributes = self._classes[id(kind)].before if id(kind) in self._classes else vars(kind)
            if name in attributes:
                return UNSET if hasattr(type(attributes[name]), "__get__") else attributes[name]
        return UNSET

    def keep_made(self) -> bool:
        """Lets attributes stay that a loop has made and that hold numbers; gives whether there are new ones.

        A function that makes such an attribute on first use, a constant, does nothing in later iterations. If the
        attribute changes when the body is traced again, it is refused.
        """
        found = False
        for each in self.objects:
            for key, before, now in each.changed():
                if before is UNSET and _is_number(now) and self._inherited(each.owner, key) is UNSET:
                    each.before[key] = now
                    self._kept.add(each.slot(key).place)
                    found = True
        return found

    def adopt_made(self) -> bool:
        """Watches from now on what has come to be in the last trace of a block and stays; gives whether there is any.

        The next traces find it. If they change it, that is refused: nobody knows what it was when it was made.
        """
        if ctx.created != self._created:
            return False  # objects with variables, of which the function is traced again
        made: list[tuple[Slot, Any]] = []
        for index, (name, cell, before) in enumerate(self.far_cells):
            variable = CellSlot(name, cell)
            if self._is_made(before, before, variable):
                self.far_cells[index] = name, cell, variable.get()
                made.append((variable, variable.get()))
        for each in self.objects:
            for key, before, now in list(each.changed()):
                slot, read = each.slot(key), self._inherited(each.owner, key) if before is UNSET else before
                is_known = id(each.owner) in self._made or _is_private(key, library_attributes(type(each.owner)))
                if not is_known and self._is_made(before, read, slot):
                    each.before[key] = now
                    made.append((slot, now))
        for place, item in made:
            self._kept.add(place.place)
            self.watch(place.label, item)
        return bool(made)

    def watch(self, label: str, made: Any) -> None:
        """Refuses changes of what has come to be in the last trace of a block, and of what can be reached from it."""
        known = {id(owner) for owner in self.owners()}
        self._reach(label, made)
        self._reach_waiting()
        self._made.update(id(owner) for owner in self.owners() if id(owner) not in known)

    def _is_made(self, held: Any, before: Any, slot: Slot) -> bool:
        """Whether a place got an object, or another value that stays, on first use."""
        now = slot.get()
        is_first = (held is None or held is UNSET) and now is not None and now is not UNSET
        return is_first and not _is_number(now) and not self._is_state(before, now, slot)

    def _is_state(self, before: Any, now: Any, slot: Slot) -> bool:
        """Whether a change belongs to the program; what it makes on first use (``self.w = None``) doesn't."""
        if holds_symbolic(now) or (isinstance(slot, AttributeSlot) and slot.is_always_there):
            return True
        if before is UNSET and isinstance(slot, AttributeSlot) and is_method(slot.owner, slot.name):
            return True
        if before is UNSET:
            return self.takes_made and _is_number(now) and ctx.created == self._created
        if before is None and not _is_value(now):
            return False
        return is_exchanged(before, now)

    def _is_of_library(self, snapshot: Snapshot) -> bool:
        """Whether a container holds what a library keeps of an object, such as the names of its attributes."""
        owner = snapshot.owner
        return id(owner) in self._kept_by_libraries and moved(owner) is None and not holds_symbolic(owner)

    def _reach(self, name: str | Way, value: Any) -> None:
        if type(value) not in _ATOMS:
            self._waiting.append((name, value))

    def _reach_waiting(self) -> None:
        done = []  # what lives only here (the arguments of a partial) must not give its id to another
        while self._waiting:
            done.append(self._waiting.popleft())
            self._reach_one(*done[-1])

    def _reach_one(self, name: str | Way, value: Any) -> None:
        if id(value) in self._seen or isinstance(value, Tensor):
            return
        kind = type(value)
        self._seen.add(id(value))
        if isinstance(value, type):
            self._reach_class(value)
        elif kind is ModuleType:
            for names in list(self._names):
                self._reach_module(value, names)
        elif kind is FunctionType:
            if is_library_function(value):
                # Its variables are its own business (a cache); the user's functions that it calls aren't.
                for cell in value.__closure__ or ():
                    if callable(read_cell(cell)):
                        self._reach(name, read_cell(cell))
            else:
                self._reach_closure(value)
                self._reach_globals(value.__code__, value.__globals__)
                self._reach_defaults(value)
                self._hold(name, value)
                self._hold(name, value, Parts(value, ("__defaults__", "__kwdefaults__")))
        elif kind is MethodType:
            self._reach(name, value.__self__)
            self._reach(name, value.__func__)
        elif kind in _METHODS_OF_C:
            if not isinstance(value.__self__, ModuleType):
                self._reach(Way(name, ".__self__"), value.__self__)
            elif reaches_context(value):
                self.answers.append(Answer("decimal.getcontext()", value, of_current_context))
        elif (found := referents(value)) is not None:
            for step, each in found:
                self._reach(Way(name, step), each)
            self._hold_if_any(name, value)
        elif (ask := answer_of(value)) is not None:
            self.answers.append(Answer(name, value, ask))
            if is_of_c(value):  # a stream gives lines
                self.iterators.append(value)
            self._hold_if_any(name, value)
        elif isinstance(value, ContextVar):
            self._hold(name, value, ContextValue(value))
        elif isinstance(value, partial):
            self._reach(name, value.func)
            self._reach(name, (*value.args, *value.keywords.values()))
        elif isinstance(value, (*CONTAINERS, tuple)):
            if not isinstance(value, tuple):
                self.containers.append(Snapshot(name, value))
                self._reach(name, moved(value))
            if not is_library(kind.__module__):
                self._hold_if_any(name, value)
            if isinstance(value, (list, tuple, deque)):
                for index, item in enumerate(value):
                    if type(item) not in _ATOMS:
                        self._reach(Way(name, f"[{index}]"), item)
            elif isinstance(value, dict):
                for key, item in value.items():
                    if type(item) not in _ATOMS:
                        self._reach(Way(name, f"[{key!r}]"), item)
        elif kind is ArrayView:
            self._reach(Way(name, ".base"), value.base)
        elif (ask := answer_of_foreign(value)) is not None:
            self.answers.append(Answer(name, value, ask))
            for part in parts_of_foreign(self.answers[-1].before):
                self._reach(name, part)
            self._hold_if_any(name, value)
        elif is_silent(value):
            self.silent.append(value)
            if is_of_c(value):  # a cursor gives rows, a file lines
                self.iterators.append(value)
            self._hold_if_any(name, value)
        elif getattr(kind, "is_iterator", False) or is_of_c(value):
            self.iterators.append(value)
        elif isinstance(value, Positioned):
            self._hold(name, value, SomeItems(vars(value), (value.STATE,)))
            self._reach(name, value.arguments)
        elif isinstance(value, np.ndarray):
            if value.flags.writeable:
                self.arrays.append(value)
            self._hold_if_any(name, value)
        elif isinstance(value, BaseException):
            self._hold(name, value)
            self._hold(name, value, Parts(value, ("args",)))
        elif is_ours(kind.__module__) and (function := getattr(value, "python_function", None)) is not None:
            self._reach(name, function)  # of an `ag.function`
        elif is_ours(kind.__module__) and hasattr(kind, "__self__"):  # a method that keeps its object weakly
            self._reach(name, value.__func__)
            with contextlib.suppress(ReferenceError):  # it is gone
                self._reach(name, value.__self__)
        elif not is_library(kind.__module__) and attributes_of(value) is not None:
            own = library_attributes(kind)
            for key, item in self._hold(name, value).items():
                if _is_private(key, own) and isinstance(item, CONTAINERS):
                    self._kept_by_libraries.add(id(item))
            self._reach(kind.__name__, kind)

    def _hold(self, name: str | Way, value: Any, attributes: Any = None) -> dict[str, Any]:
        """Remembers the attributes of an object, and reaches what they hold; gives them."""
        attributes = attributes_of(value) if attributes is None else attributes
        assert attributes is not None
        makeup = {} if isinstance(attributes, (Parts, SomeItems)) else makeup_of(value)
        holding = Holding(name, value, attributes, dict(attributes), makeup, isinstance(attributes, Parts))
        self.objects.append(holding)
        for key, item in holding.before.items():
            if type(item) not in _ATOMS and not is_internal(value, key):
                self._reach(name if isinstance(value, ContextVar) else Way(name, f".{key}"), item)
        return holding.before

    def _hold_annotations(self) -> None:
        """Remembers the annotations of functions and classes, which only code that names them changes: Python may have
        yet to evaluate them."""
        for each in list(self.objects):
            if isinstance(each.owner, (FunctionType, type)) and not isinstance(each.attributes, (Parts, SomeItems)):
                self._hold(each.way or "", each.owner, Parts(each.owner, ("__annotations__",)))
        self._reach_waiting()

    def _hold_if_any(self, name: str | Way, value: Any) -> None:
        """The same for an object of a class of C code, or one derived from it, which may have attributes, too: a type
        variable has room for them, but no way to them."""
        if type(value).__dictoffset__ and attributes_of(value) is not None:
            self._hold(name, value)

    def _reach_class(self, kind: type) -> None:
        """The attributes of a class and its bases, and what its methods can reach."""
        for each in [each for each in kind.__mro__ if each is kind or id(each) not in self._seen]:
            self._seen.add(id(each))
            if is_users(each.__module__):
                for key, item in vars(each).items():
                    for function in _functions_of(item):
                        self._reach(Way(each.__name__, f".{key}"), function)
                self._hold(each.__name__, each)
                self._classes[id(each)] = self.objects[-1]
            elif not is_ours(each.__module__) and each is not object:
                assigned = {name for names in self._names for name in names.assigned}
                attributes = SomeItems(ClassAttributes(each), assigned)
                self.objects.append(Holding(each.__name__, each, attributes, dict(attributes)))
        if type(kind) is not type:
            self._reach(type(kind).__name__, type(kind))

    def _reach_closure(self, function: FunctionType) -> None:
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            if id(cell) not in self._seen:
                self._seen.add(id(cell))
                self.far_cells.append((name, cell, read_cell(cell)))
                self._reach(name, read_cell(cell))

    def _reach_defaults(self, function: FunctionType) -> None:
        code, values = function.__code__, function.__defaults__ or ()
        names = code.co_varnames[code.co_argcount - len(values) : code.co_argcount]
        for name, value in (*zip(names, values), *(function.__kwdefaults__ or {}).items()):
            self._reach(name, value)

    def _reach_globals(self, code: CodeType, namespace: dict[str, Any]) -> None:
        """What a function can reach by the names of globals, and those of them that it sets."""
        if is_library(namespace.get("__name__")):
            return
        names = names_of(code)
        self._names.append(names)
        if names.stored is None or names.stored:
            self._hold_globals(namespace, names.stored)
        for name in names.read:
            if name in namespace:
                value = namespace[name]
                if type(value) is ModuleType:
                    self._reach_module(value, names)
                else:
                    self._reach(name, value)

    def _reach_module(self, module: ModuleType, names: Names) -> None:
        """What code with some names can reach in a module, and change there."""
        if (id(module), id(names)) in self._seen_modules:
            return
        self._seen_modules[id(module), id(names)] = names
        namespace = vars(module)
        if not is_users(module.__name__):
            if names.assigned and not is_ours(module.__name__):
                self._hold_globals(namespace, names.assigned)
            if module is os and "environ" in names.read:
                self._reach("os.environ", os.environ)
            for name in names.read:
                member = namespace.get(name)
                if isinstance(member, type) or reaches_context(member):
                    self._reach(name, member)
            return
        self._hold_globals(namespace, names.attributes)
        for name in names.read:
            value = namespace.get(name)
            if type(value) is ModuleType:
                self._reach_module(value, names)
            else:
                self._reach(name, value)

    def _hold_globals(self, namespace: dict[str, Any], names: frozenset[str] | None) -> None:
        """Remembers variables of a module: those with some names, or all."""
        holding = self._modules.get(id(namespace))
        if holding is None:
            holding = self._modules[id(namespace)] = Holding(None, namespace, SomeItems(namespace, ()), {})
            self.objects.append(holding)
        if names is None:
            holding.attributes, holding.before = namespace, dict(namespace)
        elif isinstance(holding.attributes, SomeItems):
            holding.attributes = SomeItems(namespace, {*holding.attributes.names, *names})
            holding.before = dict(holding.attributes)


def _functions_of(member: Any) -> list[Any]:
    """The functions behind what a class holds that is no function itself: a property, a static method and so on."""
    if not isinstance(member, _WITH_FUNCTIONS):  # asking another object for an attribute may do anything
        return []
    return [each for each in (getattr(member, name, None) for name in _FUNCTIONS) if isinstance(each, FunctionType)]


def _is_private(name: str, own: Collection[str]) -> bool:
    """Whether an attribute, of which those in `own` are a library's, is the library's business alone."""
    return name.startswith("_") and name in own


def holds_symbolic(value: Any) -> bool:
    """Whether there is a value of a trace among the leaves of a structure."""
    return any(type(leaf) in SYMBOLIC for _, leaf in flatten(value))


def _is_value(value: Any) -> bool:
    return is_weak(value) or isinstance(value, Tensor)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float, bool)
