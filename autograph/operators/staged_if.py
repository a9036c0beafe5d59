"""``if`` on a symbolic tensor: both branches are traced from the same state, then their results are merged.

A variable that both branches leave alone, or set to equal Python values, stays what it is. Others become outputs of the
``cond`` node, Python numbers taking the dtype of the tensor that the other branch holds. A variable that has a tensor
after one branch only, and is unbound or None after the other, gets a guard (see absence.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import field, replace
from typing import Any

from autograph.errors import StagingError, StagingTypeError, StagingValueError, user_location
from autograph.operators import absence
from autograph.operators.absence import Absence, absences, guarded, plain
from autograph.operators.aliases import (
    Holder,
    born,
    canonical,
    check_chosen,
    chosen,
    current,
    forget_chosen,
    look_at_chosen,
    mutables,
    note_changed,
)
from autograph.operators.arrays import note_chosen, view_error
from autograph.operators.changes import Change, Images
from autograph.operators.choices import Alternatives, Choice, TextChoice, are_alternatives, as_choice, as_string
from autograph.operators.containers import ContentSlot, become_staged, is_list, staged_list, unwrapped, without_refs
from autograph.operators.elements import begin_branch, settle_elements
from autograph.operators.frame import Frame
from autograph.operators.raising import (
    AlwaysRaises,
    check_refused,
    forget_refused,
    hand_over,
    keeps_refusals,
    refuse_handlers,
    refused,
    stage_raise,
)
from autograph.operators.state import UNSET, Block, PathSlot, Slot, after_block, single_places, slots
from autograph.operators.structure import (
    IDENTITY,
    children,
    flatten,
    is_composite,
    is_mutable,
    open_class,
    rebuild,
    same_structure,
)
from autograph.operators.symbolic import (
    common_dtype,
    common_number,
    condition,
    conflict,
    describe,
    has_tensor,
    is_tensorable,
    number_of,
    placeholder,
    same_python_value,
    type_of,
)
from autograph.operators.unbound import run
from autograph.operators.unfinished import Unfinished
from runtime import dtypes
from runtime.context import ctx
from runtime.dataclass import dataclass
from runtime.dtypes import DType
from runtime.extension_types.values import ExtensionType
from runtime.graph.builder import Region, emit_cond, trace_region
from runtime.ops.arrays.scatter import IndexedSlices
from runtime.ops.convert import convert_to_tensor
from runtime.ops.flags import flagged, is_flag
from runtime.ops.host_array import of_arrays
from runtime.ops.staged_number import StagedNumber, staged_value, storage
from runtime.ops.strings.staged_string import StagedString, StagedText
from runtime.staged_array import StagedArray
from runtime.staged_list import StagedList
from runtime.tensor import SymbolicTensor, Tensor

RESULT = "the returned value"
# Makes a merged value from the outputs of the node.
_Plan = Callable[[Sequence[Any]], Any]
_BRANCHES = ("in the first branch", "in the `else` branch")


@keeps_refusals
def stage_if(test: Any, body: Block, orelse: Block | None, names: Sequence[str], statement: str = "if") -> Any:
    """Emits a ``cond`` node; gives the merged results of the branches and sets the variables that they changed."""
    blocks = [block for block in (body, orelse) if block is not None]
    branches = [lambda: run(body), lambda: None if orelse is None else run(orelse)]
    return stage_branches(condition(test, statement), branches, slots(names, blocks), Frame(blocks))


@keeps_refusals
def stage_branches(predicate: Any, branches: Sequence[Callable[[], Any]], state: Sequence[Slot], frame: Frame) -> Any:
    """``stage_if`` for branches that aren't block functions; ``frame`` knows the variables that they may change."""
    state = single_places(state)
    frame.takes_made = True
    facts = [absence.facts(predicate, holds) for holds in (True, False)]
    traces = [_trace(*each, state, frame) for each in zip(("then", "else"), branches, facts)]
    one, other = traces
    _decide(predicate, traces)
    state = _whole_state(state, traces)
    merge = _Merge(one, other, frame, predicate)
    plans = [
        merge.plan(f"'{slot.label}'", first, second, slot.covered, slot.is_listed)
        for slot, first, second in zip(state, one.values, other.values)
    ]
    merge.contents = {id(value) for slot, value in zip(state, one.values) if isinstance(slot, ContentSlot)}
    result = merge.plan(RESULT, one.result, other.result, False)
    outputs = merge.emit(predicate)
    if one.raises and other.raises:
        if one.error or other.error:
            raise one.error or other.error  # type: ignore[misc]
        raise AlwaysRaises(
            "both branches of a condition on a tensor raise",
            location=user_location(),
            cause="neither branch continues, so the function has no result",
            fix="return something in one of the branches",
        )
    # Lists become staged ones first: what else is set holds these.
    lists = {id(slot): slot.owner for slot in state if isinstance(slot, ContentSlot) and type(slot.owner) is list}
    values = {id(slot): plan(outputs) for slot, plan in zip(state, plans) if id(slot) in lists}
    if any(isinstance(value, StagedList) for value in values.values()):
        state = [slot.fixed() if isinstance(slot, PathSlot) else slot for slot in state]  # paths may lead through them
    for key, value in values.items():
        if isinstance(value, StagedList):
            become_staged(lists[key], value, frame.replace)
    for slot, plan in zip(state, plans):
        value = values[id(slot)] if id(slot) in values else plan(outputs)
        if not (id(slot) in lists and isinstance(value, StagedList)):
            slot.set(value)
    returned = result(outputs)
    merge.remember_choices(returned)
    look_at_chosen(ctx.builder)
    return returned


@dataclass
class _Trace:
    region: Region
    result: Any
    values: list[Any]  # of the state after the branch
    places: list[Any] = field(default_factory=list)  # of the state after the branch
    changes: list[Change] = field(default_factory=list)  # what else has changed: see frame.py
    images: Images = field(default_factory=Images)
    raises: bool = False  # always: what follows comes from the other branch
    error: BaseException | None = None  # why a trial goes on without the branch


def _trace(name: str, branch: Callable[[], Any], facts: set[Any], state: Sequence[Slot], frame: Frame) -> _Trace:
    """Traces one branch. facts: booleans that are true in it."""
    before = [slot.get() for slot in state]
    trace = _Trace(None, None, [])  # type: ignore[arg-type]

    def function() -> list[Any]:
        ctx.builder.known |= facts
        begin_branch({id(owner) for owner in frame.owners()})
        try:
            trace.result = branch()
        except Unfinished as error:
            trace.error, trace.raises = error, True
        except BaseException as error:
            if not hand_over(error, state):
                if not stage_raise(error):
                    if not absence.tolerates(error):
                        refuse_handlers(error)
                        raise
                    forget_refused(ctx.builder)
                    trace.error = error
                trace.raises = True
        check_refused(ctx.builder)
        settle_elements()
        frame.check_iterators()
        if not trace.raises and frame.adopt_made():
            forget_chosen(ctx.builder)
            raise _HasMade
        check_chosen(ctx.builder)
        trace.values = [after_block(slot, value) for slot, value in zip(state, before)]
        trace.places = [slot.place for slot in state]
        trace.changes, trace.images = frame.changed(), frame.images()
        if trace.raises:
            # What it would have gone on with is lost; that it changes them isn't: the error may be one that Python,
            # where two lists are one, doesn't raise.
            note_changed([each.owner for each in trace.changes if each.owner is not None], ctx.builder.parent)
        return []

    try:
        with frame.tracing():
            trace.region = trace_region(name, function)
    except _HasMade:
        pass  # traced again below, from what was there before
    except StagingError as error:
        refused(ctx.builder, error)
        raise
    finally:
        frame.restore()
        for slot, value in zip(state, before):
            if slot.get() is not value:
                slot.set(value)
    return trace if trace.region is not None else _trace(name, branch, facts, state, frame)


class _HasMade(Exception):
    """A branch has made objects that stay: only another trace of it tells whether it changes them, too."""


def _decide(predicate: Any, traces: Sequence[_Trace]) -> None:
    """In its own branches a predicate that a variable still holds is known, where the branches disagree on it."""
    for position, values in enumerate(zip(*[trace.values for trace in traces])):
        for side, value in enumerate(values):
            if value is predicate and values[1 - side] is not value:
                traces[side].values[position] = side == 0


def _whole_state(state: Sequence[Slot], traces: Sequence[_Trace]) -> list[Slot]:
    """The slots of which both branches know the values, with what they reached through functions and objects.

    An attribute or item of something that a branch has exchanged isn't one place; nor are there two accounts of one
    container, item by item and as a whole. The values of the traces become those of the result.
    """
    known = {slot.place for slot in state}
    running = [trace for trace in traces if not trace.raises]
    moved_places = {
        slot.place
        for trace in running
        for slot, place in zip(state, trace.places)
        if place != slot.place and isinstance(slot, PathSlot)
    }
    known -= moved_places
    far = {
        slot.place: slot
        for trace in running
        for each in trace.changes
        if not each.is_known(known)
        for slot in (each.slot(),)
    }
    whole = {id(slot.owner) for slot in far.values() if isinstance(slot, ContentSlot)}
    kept = [slot.place not in moved_places and not _is_in(slot, whole) for slot in state]
    for trace in traces:
        after = {each.place: each.now for each in trace.changes}
        trace.values = [value for value, is_kept in zip(trace.values, kept) if is_kept]
        trace.values += [after[place] if place in after else slot.get() for place, slot in far.items()]
    return [*[slot for slot, is_kept in zip(state, kept) if is_kept], *far.values()]


def _is_in(slot: Slot, owners: Collection[int]) -> bool:
    """Whether a slot is an item of one of some containers, given by their ids."""
    place = slot.place
    return isinstance(slot, PathSlot) and isinstance(place, tuple) and place[0] in owners


class _Merge:
    """Collects what must become outputs of the two regions.

    Two objects that a variable holds after the branches become one, and the same two always the same one: so names for
    one object in both branches are names for one object afterwards.
    """

    def __init__(self, one: _Trace, other: _Trace, frame: Frame, predicate: Any) -> None:
        self.regions = (one.region, other.region)
        self.raises = (one.raises, other.raises)
        self.images = (one.images, other.images)
        self.frame = frame
        self.predicate = predicate
        self.pairs: list[tuple[Any, Any, DType]] = []
        self.merged: dict[tuple[int, int], _Merged] = {}  # by the ids of the two objects
        self.contents: set[int] = set()  # the ids of what isn't an object of the program's, but in one

    def plan(self, label: str, one: Any, other: Any, covered: bool, is_listed: bool = False) -> _Plan:
        """How to make the value of a variable from its values after the branches.

        covered, is_listed: see `Slot`.
        """
        if self.raises == (True, True):
            return lambda outputs: one
        if any(self.raises):
            return self._only(other if self.raises[0] else one)
        one, other = (images.original(unwrapped(each)) for images, each in zip(self.images, (one, other)))
        if one is other:
            return lambda outputs: current(one)
        if one is UNSET or other is UNSET:
            if not covered and (is_listed or not has_tensor(other if one is UNSET else one)):
                raise _unset(label, one is UNSET)
            return self._partly(label, one, other, None if covered else absence.UNBOUND)
        one, other = self._alike_texts(one, other)
        if are_alternatives(one, other) and not same_python_value(one, other):
            return self._choice(label, one, other)
        if (one is None or other is None) and has_tensor(other if one is None else one):
            return self._partly(label, UNSET if one is None else one, UNSET if other is None else other, absence.NONE)
        known = self.merged.get((id(one), id(other)))
        if known is not None:
            return known.get
        after = [images.of(each) for images, each in zip(self.images, (one, other))]
        after = self._alike(label, after)
        first, second = map(children, after)
        if first is not None and second is not None and same_structure(*after):
            merged = _Merged(label, one, other, after)
            if is_mutable(one) or is_mutable(other):
                self.merged[id(one), id(other)] = merged
            may_be_unset = covered or is_composite(after[0])
            merged.plans = [self.plan(label + key, a, b, may_be_unset) for (key, a), (_, b) in zip(first, second)]
            return merged.get
        if same_python_value(one, other):
            note_chosen(one, other)
            if not isinstance(one, (set, deque, bytearray)):
                return lambda outputs: one
            merged = self.merged[id(one), id(other)] = _Merged(label, one, other, after)
            return merged.get
        if first is None and second is None and is_tensorable(one) and is_tensorable(other):
            note_chosen(one, other)
            return self._output(label, one, other)
        if open_class(*after):
            return self.plan(label, one, other, covered, is_listed)
        raise _mismatch(label, *after)

    def _alike_texts(self, *values: Any) -> list[Any]:
        """A choice of strings beside a string that isn't known, or a tensor, as a string that a tensor holds."""
        if not any(isinstance(each, TextChoice) for each in values) or are_alternatives(*values):
            return list(values)
        made = []
        for region, value in zip(self.regions, values):
            with region.builder:
                made.append(as_string(value) if isinstance(value, TextChoice) else value)
        return made

    def _choice(self, label: str, one: Any, other: Any) -> _Plan:
        """One of two Python objects, or of those that may be there already."""
        alternatives = Alternatives.of(one, other)
        is_made = any(isinstance(each, Choice) and each.ag_is_made for each in (one, other))
        with self.regions[0].builder:
            first = as_choice(one, alternatives).ag_index
        with self.regions[1].builder:
            second = as_choice(other, alternatives).ag_index
        index = self.plan(label, first, second, False)
        return lambda outputs: Choice(index(outputs), alternatives, is_made)

    def _alike(self, label: str, values: list[Any]) -> list[Any]:
        """Lists of different lengths, or of which one is staged, as staged lists; IndexedSlices with one dtype."""
        if all(isinstance(value, IndexedSlices) for value in values):
            return self._alongside(values)
        if any(type(value) is StagedArray for value in values):
            return [StagedArray(value) if isinstance(value, Tensor) else value for value in values]
        if not all(map(is_list, values)):
            return values
        if all(type(value) is list for value in values):
            if len(values[0]) == len(values[1]):
                return values
        elif type(values[0]) is type(values[1]):
            return self._aligned(values)
        made = []
        for region, images, value, other in zip(self.regions, self.images, values, reversed(values)):
            if type(value) is list:
                with region.builder:
                    like = other if isinstance(other, StagedList) else None
                    objects = [without_refs(item) for item in value]
                    try:
                        items = [images.inside(item) for item in objects]
                        value = staged_list(label, items, other if like is None else (), like)
                        value.elements.made(value, objects)
                    except StagingTypeError:
                        if label == RESULT:
                            return values
                        raise
            made.append(value)
        return self._aligned(made)

    def _aligned(self, values: list[Any]) -> list[Any]:
        """Two staged lists, of which one has Python numbers, with one dtype."""
        return values if values[0].numbers == values[1].numbers else self._alongside(values)

    def _alongside(self, values: list[Any]) -> list[Any]:
        one, other = values
        with self.regions[0].builder:
            first = one.alongside(other)
        with self.regions[1].builder:
            return [first, other.alongside(one)]

    def remember_choices(self, returned: Any) -> None:
        """Notes which objects are one for Python on one way only, now that all variables are set."""
        results = {id(each) for _, each in mutables("", returned)}
        for each in self.merged.values():
            for side in each.sides:
                if side is not UNSET and is_mutable(side) and not self.frame.is_outside(canonical(side)):
                    born(side, self)
        for each in self.merged.values():
            if each.made is UNSET or id(each.sides[0]) in self.contents:
                continue
            sides = [[] if side is UNSET else [side] for side in each.sides]
            chosen(each.label, each.made, sides, self._holders, self, id(each.made) in results)

    def _holders(self, value: Any) -> list[Holder]:
        """Who held a value before the branches, as a list that is a staged one now, or holds it after them."""
        before = [owner for owner in self.frame.owners() if current(owner) is value] or [value]
        return [*self.frame.holders(before[0]), *self.frame.holders_now(value)]

    def _output(self, label: str, one: Any, other: Any) -> _Plan:
        dtype = common_dtype(one, other)
        if dtype is None:
            raise conflict(label, one, other, _BRANCHES)
        number = common_number(one, other)
        if number is None:
            value = self._leaf(one, other, dtype)
            if dtype.is_bool and is_flag(one) and is_flag(other):
                return lambda outputs: flagged(value(outputs), one, other)

            def tensor(outputs: Sequence[Any]) -> Any:
                made = value(outputs)
                made.chosen = self.predicate, one, other
                return of_arrays(made, one, other)

            return tensor
        value = self._leaf(one, other, storage(number))
        return lambda outputs: staged_value(value(outputs), number)

    def _leaf(self, one: Any, other: Any, dtype: DType, *found: tuple[Absence, list[Any]]) -> _Plan:
        """A tensor that a variable holds after both branches, with the guards of both; UNSET where there is none.

        found: a further way in which it may be absent, and whether it is there after each of the branches.
        """
        flags = {each.key: (each, presence) for each, presence in found}
        for side, value in enumerate((one, other)):
            for each in absences(value, self.regions[side].builder):
                presence = flags.setdefault(each.key, (each, [True, True]))[1]
                presence[side] = each.present
        value = self._add(plain(one), plain(other), dtype)
        doubtful = [(each, presence) for each, presence in flags.values() if not (presence[0] is presence[1] is True)]
        guards = [(each, self._presence(presence)) for each, presence in doubtful]
        if not guards:
            return value
        return lambda outputs: guarded(
            value(outputs), [replace(each, present=presence(outputs)) for each, presence in guards]
        )

    def _presence(self, presence: list[Any]) -> _Plan:
        one, other = presence
        return (lambda outputs: one) if one is other else self._add(one, other, dtypes.bool_)

    def _add(self, one: Any, other: Any, dtype: DType) -> _Plan:
        index = len(self.pairs)
        self.pairs.append((one, other, dtype))
        return lambda outputs: outputs[index]

    def _only(self, value: Any) -> _Plan:
        """The value after the one branch that doesn't raise."""
        side = 1 if self.raises[0] else 0
        images, builder = self.images[side], self.regions[side].builder
        value = images.original(unwrapped(value))
        if value is UNSET:
            return lambda outputs: UNSET
        if self.frame.is_outside(value):  # its contents are state
            return lambda outputs: current(value)
        known = self.merged.get((id(value), id(value)))
        if known is not None:
            return known.get
        items = children(value)
        if items is None and _has_tensors(value) and open_class(value, value):
            items = children(value)  # made in the branch, as are its attributes
        if items is not None:
            merged = _Merged("", value, value, [value, value])
            if is_mutable(value):
                self.merged[id(value), id(value)] = merged
            merged.plans = [self._only(item) for _, item in items]
            return merged.get
        if type(value) is StagedText:
            with builder:
                value = StagedString(value.wide())
        tensor = value.tensor if type(value) in (StagedNumber, StagedString) else value
        if not isinstance(tensor, SymbolicTensor) or (tensor.guard is None and tensor.builder is not builder):
            return lambda outputs: value  # nothing that the branch has made
        one, other = (UNSET, value) if self.raises[0] else (value, UNSET)
        return self._like(value, self._leaf(one, other, type_of(value).dtype))

    @staticmethod
    def _like(value: Any, plan: _Plan) -> _Plan:
        """The plan for a number or Python bool, if that is what the value is."""
        number = number_of(value)
        if is_flag(value):
            return lambda outputs: flagged(plan(outputs), value)
        return plan if number is None else lambda outputs: staged_value(plan(outputs), number)

    def _partly(self, label: str, one: Any, other: Any, kind: str | None, level: int = 0) -> _Plan:
        """A value of which one branch has nothing; ``kind`` says what it has instead, None that no one will ask."""
        images = self.images[1 if one is UNSET else 0]
        value = images.original(unwrapped(other if one is UNSET else one))
        after = images.of(value)
        items = children(after)
        if items is not None:
            sides = [(UNSET, item) if one is UNSET else (item, UNSET) for _, item in items]
            merged = _Merged(
                label, UNSET if one is UNSET else value, UNSET if other is UNSET else value, [after, after]
            )
            key = id(merged.sides[0]), id(merged.sides[1])
            if key in self.merged:
                return self.merged[key].get
            if is_mutable(value):
                self.merged[key] = merged
            merged.plans = [self._partly(label, *each, kind, level + 1) for each in sides]
            return merged.get
        if not is_tensorable(value):
            return lambda outputs: value
        presence = [one is not UNSET, other is not UNSET]
        if kind is None:
            return self._like(value, self._leaf(one, other, type_of(value).dtype))
        name = label.strip("'")
        refusal = None
        if label == RESULT:
            refusal = _mismatch(label, *[None if each is UNSET else each for each in (one, other)])
        found = Absence(kind, level, None, name, user_location(), refusal)
        return self._like(value, self._leaf(one, other, type_of(value).dtype, (found, presence)))

    def emit(self, predicate: Any) -> list[Any]:
        """Adds the node to the current builder; gives its outputs."""
        for side, region in enumerate(self.regions):
            with region.builder:
                for pair in self.pairs:
                    value = placeholder(type_of(pair[1 - side])) if pair[side] is UNSET else pair[side]
                    region.outputs.append(region.builder.use(convert_to_tensor(value, pair[2])))
        return emit_cond(predicate, *self.regions)


class _Merged:
    """What two objects become that stand for each other after the branches.

    sides   the objects; after: what was in them at the end of the branches
    """

    def __init__(self, label: str, one: Any, other: Any, after: Sequence[Any]) -> None:
        self.label = label
        self.sides = (one, other)
        self.after = after
        self.plans: list[_Plan] = []
        self.made: Any = UNSET

    def get(self, outputs: Sequence[Any]) -> Any:
        """The one object, made when it is first asked for."""
        if self.made is UNSET:
            like = self.after[0]
            is_leaf = isinstance(like, (set, deque, bytearray))
            self.made = like.copy() if is_leaf else rebuild(like, [plan(outputs) for plan in self.plans])
        return self.made


def _has_tensors(value: Any) -> bool:
    """Whether attributes of an object hold tensors of the program's."""
    attributes = getattr(value, "__dict__", None)
    items = attributes.values() if isinstance(attributes, dict) else ()
    return any(isinstance(leaf, SymbolicTensor) for item in items for _, leaf in flatten(item))


def _unset(label: str, first: bool) -> StagingValueError:
    return StagingValueError(
        f"{label} must also be initialized in the {'main' if first else 'else'} branch of a condition on a tensor",
        location=user_location(),
        cause=f"both branches become part of the program, and {label} may be used after them",
        fix=f"give {label} a value before the `if`, or in both branches",
    )


def _mismatch(label: str, one: Any, other: Any) -> StagingTypeError | StagingValueError:
    found = view_error(label, one, other)
    if found is not None:
        return found
    names = [describe(each) for each in (one, other)]
    if label == RESULT and (one is None or other is None):
        return StagingValueError(
            f"the function returns {names[0]} {_BRANCHES[0]} of a condition on a tensor, {names[1]} {_BRANCHES[1]}: "
            f"the {'main' if one is None else 'else'} branch must also have a return",
            location=user_location(),
            cause="the branch is known only at run time (a path without `return` returns None)",
            fix="return a value of the same type in both cases",
        )
    parts = [children(each) for each in (one, other)]
    if parts[0] is not None and parts[1] is not None:
        kind = StagingValueError if label == RESULT else StagingTypeError
        sizes = [sum(key != IDENTITY for key, _ in part or ()) for part in parts]
        names = [
            name if isinstance(each, ExtensionType) else f"{name} of {size}"
            for each, name, size in zip((one, other), names, sizes)
        ]
        return kind(
            f"a condition on a tensor must return the same nested structure in both branches: {label} is {names[0]} in "
            f"the first, {names[1]} in the other",
            location=user_location(),
            cause="which one would be known only at run time, and the code after it is traced once, for one structure",
            fix="return the same number of values, or stack them into one tensor",
        )
    return StagingTypeError(
        f"{label} is {names[0]} {_BRANCHES[0]} of a condition on a tensor, {names[1]} {_BRANCHES[1]}",
        location=user_location(),
        cause="the branch is known only at run time, and only numbers and tensors can be selected then",
        fix=f"make {label} a value of the same type and structure in both branches",
    )
