"""``if`` on a symbolic tensor: both branches are traced from the same state, then their results are merged.

A variable that both branches leave alone, or set to equal Python values, stays what it is. Others become outputs of the
``cond`` node, Python numbers taking the dtype of the tensor that the other branch holds. A variable that has a tensor
after one branch only, and is unbound or None after the other, gets a guard (see absence.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from autograph.errors import StagingError, StagingTypeError, StagingValueError, user_location
from autograph.operators import absence
from autograph.operators.absence import Absence, absences, guarded, plain
from autograph.operators.aliases import check_chosen, chosen, look_at_chosen
from autograph.operators.containers import ContentSlot, become_staged, is_list, staged_list
from autograph.operators.frame import Frame
from autograph.operators.raising import (
    AlwaysRaises,
    check_refused,
    hand_over,
    refuse_handlers,
    refused,
    stage_raise,
)
from autograph.operators.state import UNSET, Block, Slot, after_block, outside_staged_lists, slots
from autograph.operators.structure import children, is_composite, open_class, rebuild, same_structure
from autograph.operators.symbolic import (
    common_dtype,
    condition,
    conflict,
    describe,
    has_tensor,
    is_tensorable,
    placeholder,
    same_python_value,
    type_of,
)
from autograph.operators.unbound import run
from autograph.operators.unfinished import Unfinished
from runtime import dtypes
from runtime.context import ctx
from runtime.dtypes import DType
from runtime.graph.builder import Region, emit_cond, trace_region
from runtime.ops.convert import convert_to_tensor
from runtime.staged_list import StagedList
from runtime.tensor import SymbolicTensor

# Makes a merged value from the outputs of the node.
_Plan = Callable[[Sequence[Any]], Any]
_BRANCHES = ("in the first branch", "in the `else` branch")


def stage_if(test: Any, body: Block, orelse: Block | None, names: Sequence[str], statement: str = "if") -> Any:
    """Emits a ``cond`` node; gives the merged results of the branches and sets the variables that they changed."""
    blocks = [block for block in (body, orelse) if block is not None]
    branches = [lambda: run(body), lambda: None if orelse is None else run(orelse)]
    return stage_branches(condition(test, statement), branches, slots(names, blocks), Frame(blocks))


def stage_branches(predicate: Any, branches: Sequence[Callable[[], Any]], state: Sequence[Slot], frame: Frame) -> Any:
    """``stage_if`` for branches that aren't block functions; ``frame`` knows the variables that they may change."""
    state = outside_staged_lists(state)
    facts = [absence.facts(predicate, holds) for holds in (True, False)]
    traces = [_trace(*each, state, frame) for each in zip(("then", "else"), branches, facts)]
    one, other = traces
    _decide(predicate, traces)
    state = [*state, *_far_state(traces)]
    for position, slot in enumerate(state if not (one.raises or other.raises) else ()):
        _make_lists_alike(slot.label, traces, position)
    merge = _Merge(one, other, frame)
    plans = [
        merge.plan(f"'{slot.label}'", first, second, slot.covered, slot.is_listed)
        for slot, first, second in zip(state, one.values, other.values)
    ]
    result = merge.plan("the returned value", one.result, other.result, False)
    outputs = merge.emit(predicate)
    if one.raises and other.raises:
        if one.error or other.error:
            raise one.error or other.error  # type: ignore[misc]
        raise AlwaysRaises(
            "both branches of a condition on a tensor raise",
            location=user_location(),
            cause="no way leads on from here, so the function has no result",
            fix="return something in one of the branches",
        )
    lists: list[tuple[list[Any], StagedList]] = []
    for slot, plan in zip(state, plans):
        value = plan(outputs)
        if isinstance(slot, ContentSlot) and type(slot.owner) is list and isinstance(value, StagedList):
            lists.append((slot.owner, value))
        else:
            slot.set(value)
    for owner, staged in lists:
        become_staged(owner, staged, frame.replace)
    returned = result(outputs)
    look_at_chosen(ctx.builder)
    return returned


@dataclass
class _Trace:
    region: Region
    result: Any
    values: list[Any]  # of the state after the branch
    far: list[tuple[Slot, Any]]  # what else has changed: see frame.py
    raises: bool = False  # always: what follows comes from the other branch
    sources: dict[int, Any] = field(default_factory=dict)  # by id of a list that became staged here, what it was
    error: BaseException | None = None  # why a trial goes on without the branch


def _trace(name: str, branch: Callable[[], Any], facts: set[Any], state: Sequence[Slot], frame: Frame) -> _Trace:
    """Traces one branch. facts: booleans that are true in it."""
    before = [slot.get() for slot in state]
    known = {slot.place for slot in state}
    trace = _Trace(None, None, [], [])  # type: ignore[arg-type]

    def function() -> list[Any]:
        ctx.builder.known |= facts
        try:
            trace.result = branch()
        except Unfinished as error:
            trace.error, trace.raises = error, True
        except Exception as error:
            if not hand_over(error, state):
                if not stage_raise(error):
                    if not absence.put_up_with(error):
                        refuse_handlers(error)
                        raise
                    trace.error = error
                trace.raises = True
        check_refused(ctx.builder)
        check_chosen(ctx.builder)
        trace.values = [after_block(slot, value) for slot, value in zip(state, before)]
        trace.far = frame.changes(known)
        return []

    try:
        with frame.tracing():
            trace.region = trace_region(name, function)
    except StagingError as error:
        refused(ctx.builder, error)
        raise
    finally:
        frame.restore()
        for slot, value in zip(state, before):
            if slot.get() is not value:
                slot.set(value)
    return trace


def _decide(predicate: Any, traces: Sequence[_Trace]) -> None:
    """In its own branches a predicate that a variable still holds is known, where the branches disagree on it."""
    for position, values in enumerate(zip(*[trace.values for trace in traces])):
        for side, value in enumerate(values):
            if value is predicate and values[1 - side] is not value:
                traces[side].values[position] = side == 0


def _far_state(traces: Sequence[_Trace]) -> list[Slot]:
    """The state that the branches reached through functions and objects; its values join those of the traces."""
    slots = {slot.place: slot for trace in traces for slot, _ in trace.far}
    for trace in traces:
        after = {slot.place: value for slot, value in trace.far}
        trace.values.extend(after[place] if place in after else slot.get() for place, slot in slots.items())
    return list(slots.values())


def _make_lists_alike(label: str, traces: Sequence[_Trace], position: int) -> None:
    """Lists of different lengths after the branches become staged lists in both."""
    values = [trace.values[position] for trace in traces]
    if not all(map(is_list, values)):
        return
    if all(type(value) is list for value in values):
        if len(values[0]) == len(values[1]):
            return
    elif type(values[0]) is type(values[1]):
        return
    for side, trace in enumerate(traces):
        value, other = values[side], values[1 - side]
        if type(value) is list:
            with trace.region.builder:
                if isinstance(other, StagedList):
                    made = staged_list(label, value, (), other)
                else:
                    made = staged_list(label, value, other)
            trace.values[position] = made
            trace.sources[id(made)] = value


class _Merge:
    """Collects what must become outputs of the two regions."""

    def __init__(self, one: _Trace, other: _Trace, frame: Frame) -> None:
        self.regions = (one.region, other.region)
        self.raises = (one.raises, other.raises)
        self.frame = frame
        self.sources = {**one.sources, **other.sources}
        self.pairs: list[tuple[Any, Any, DType]] = []

    def plan(self, label: str, one: Any, other: Any, covered: bool, is_listed: bool = False) -> _Plan:
        """How to make the value of a variable from its values after the branches.

        covered, is_listed: see `Slot`.
        """
        if self.raises == (True, True):
            return lambda outputs: one
        if any(self.raises):
            return self._only(other if self.raises[0] else one)
        if one is other:
            return lambda outputs: one
        if one is UNSET or other is UNSET:
            if not covered and (is_listed or not has_tensor(other if one is UNSET else one)):
                raise _unset(label, one is UNSET)
            return self._partly(label, one, other, None if covered else absence.UNBOUND)
        if (one is None or other is None) and has_tensor(other if one is None else one):
            return self._partly(label, UNSET if one is None else one, UNSET if other is None else other, absence.NONE)
        first, second = children(one), children(other)
        if first is not None and second is not None and same_structure(one, other):
            may_be_unset = covered or is_composite(one)
            plans = [self.plan(label + key, a, b, may_be_unset) for (key, a), (_, b) in zip(first, second)]
            return lambda outputs: self._choice(label, rebuild(one, [plan(outputs) for plan in plans]), one, other)
        if same_python_value(one, other):
            return lambda outputs: one
        if first is None and second is None and is_tensorable(one) and is_tensorable(other):
            return self._output(label, one, other)
        if open_class(one, other):
            return self.plan(label, one, other, covered, is_listed)
        raise _mismatch(label, one, other)

    def _choice(self, label: str, made: Any, one: Any, other: Any) -> Any:
        originals = [each for side in (one, other) for each in (side, self.sources.get(id(side)))]
        chosen(label, made, originals, self.frame.holders)
        return made

    def _output(self, label: str, one: Any, other: Any) -> _Plan:
        dtype = common_dtype(one, other)
        if dtype is None:
            raise conflict(label, one, other, _BRANCHES)
        return self._leaf(one, other, dtype)

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
        if value is UNSET:
            return lambda outputs: UNSET
        items = children(value)
        if items is not None:
            plans = [self._only(item) for _, item in items]
            return lambda outputs: rebuild(value, [plan(outputs) for plan in plans])
        if not isinstance(value, SymbolicTensor):
            return lambda outputs: value
        one, other = (UNSET, value) if self.raises[0] else (value, UNSET)
        return self._leaf(one, other, value.dtype)

    def _partly(self, label: str, one: Any, other: Any, kind: str | None, level: int = 0) -> _Plan:
        """A value of which one branch has nothing; ``kind`` says what it has instead, None that no one will ask."""
        value = other if one is UNSET else one
        items = children(value)
        if items is not None:
            sides = [(UNSET, item) if one is UNSET else (item, UNSET) for _, item in items]
            plans = [self._partly(label, *each, kind, level + 1) for each in sides]
            return lambda outputs: rebuild(value, [plan(outputs) for plan in plans])
        if not is_tensorable(value):
            return lambda outputs: value
        presence = [one is not UNSET, other is not UNSET]
        if kind is None:
            return self._leaf(one, other, type_of(value).dtype)
        name = label.strip("'")
        refusal = None
        if label == "the returned value":
            refusal = _mismatch(label, *[None if each is UNSET else each for each in (one, other)])
        found = Absence(kind, level, None, name, user_location(), refusal)
        return self._leaf(one, other, type_of(value).dtype, (found, presence))

    def emit(self, predicate: Any) -> list[Any]:
        """Adds the node to the current builder; gives its outputs."""
        for side, region in enumerate(self.regions):
            with region.builder:
                for pair in self.pairs:
                    value = placeholder(type_of(pair[1 - side])) if pair[side] is UNSET else pair[side]
                    region.outputs.append(region.builder.use(convert_to_tensor(value, pair[2])))
        return emit_cond(predicate, *self.regions)


def _unset(label: str, first: bool) -> StagingValueError:
    return StagingValueError(
        f"{label} must also be initialized in the {'main' if first else 'else'} branch of a condition on a tensor",
        location=user_location(),
        cause=f"both branches become part of the program, and {label} may be used after them",
        fix=f"give {label} a value before the `if`, or in both branches",
    )


def _mismatch(label: str, one: Any, other: Any) -> StagingTypeError | StagingValueError:
    names = [describe(each) for each in (one, other)]
    if label == "the returned value" and (one is None or other is None):
        return StagingValueError(
            f"the function returns {names[0]} {_BRANCHES[0]} of a condition on a tensor, {names[1]} {_BRANCHES[1]}: "
            f"the {'main' if one is None else 'else'} branch must also have a return",
            location=user_location(),
            cause="which one would be known only at run time (a way through without `return` gives None)",
            fix="return a value of the same type in both cases",
        )
    parts = [children(each) for each in (one, other)]
    if parts[0] is not None and parts[1] is not None:
        kind = StagingValueError if label == "the returned value" else StagingTypeError
        names = [f"{name} of {len(part)}" for name, part in zip(names, parts)]  # type: ignore[arg-type]
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
        cause="which one would be known only at run time, and then only numbers and tensors can be chosen",
        fix=f"make {label} a value of the same type and structure in both branches",
    )
