"""``while`` on a symbolic tensor: the loop's body is traced until the types of what it carries no longer change.

Which variables become carries, and with what types, is found by tracing:

- tensors are carries; so are Python numbers that the body changes. They stay numbers, of 64 bits (``i = 0`` ...
  ``i += 1``: see `StagedNumber`), or have the dtype of the tensor that the body makes of them (``s = 0`` ...
  ``s += 0.5 * t``); values that the body leaves alone stay what they are;
- a dimension that differs between two trips becomes unknown;
- a variable that has no value before the loop, or None, starts from a placeholder of the type that the body gives it;
  unless its reads are known to be safe, the loop also carries whether it has a value (see absence.py).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from autograph.errors import StagingError, StagingValueError, user_location
from autograph.operators.absence import UNBOUND, absences, assert_present, no_iteration, plain, trial
from autograph.operators.aliases import check_chosen, forget_chosen, is_exchanged, look_at_chosen, same
from autograph.operators.changes import Images
from autograph.operators.changing_conditions import condition_changes_state
from autograph.operators.choices import like_choices, outgrown, with_new
from autograph.operators.containers import STAGED, ContentSlot, ListRequest, NeedsStagedLists, is_content
from autograph.operators.elements import enter_loop, settle_elements
from autograph.operators.endless import refuse_endless
from autograph.operators.frame import Frame
from autograph.operators.items import note_reach
from autograph.operators.logic import and_
from autograph.operators.loop_aliases import Copies, remember
from autograph.operators.loop_lists import remember_lists, with_any_contents
from autograph.operators.loop_memory import Memory, Seen, key_of
from autograph.operators.loop_options import Options, before_loop, options_of
from autograph.operators.loop_variables import (
    Leaf,
    NeedsAttributes,
    Variable,
    as_staged,
    changes_kind,
    first_outgrown,
    identifier,
    with_staged_lists,
)
from autograph.operators.raising import check_refused, forget_refused, refuse_handlers, refused, stage_raise
from autograph.operators.state import UNSET, LocalSlot, Slot, after_block
from autograph.operators.structure import New, flatten, known_objects
from autograph.operators.symbolic import (
    accepts,
    common_dtype,
    common_number,
    condition,
    conflict,
    has_tensor,
    is_tensorable,
    is_weak,
    number_of,
    placeholder,
    same_python_value,
    truth,
    type_of,
)
from autograph.operators.unfinished import Unfinished
from runtime import dtypes
from runtime.autodiff.budget import memory_of_function
from runtime.context import ctx
from runtime.dtypes import DType
from runtime.errors import OperatorNotAllowedInGraphError
from runtime.graph.builder import Region, emit_while, trace_region
from runtime.ops.convert import convert_to_tensor
from runtime.ops.elementwise.elementary import cast
from runtime.ops.flags import is_flag
from runtime.ops.staged_number import StagedNumber, is_number, is_text, kind_of, kind_of_default, storage
from runtime.ops.strings.staged_string import StagedString
from runtime.ops.values import common_default, default_of
from runtime.shapes import as_shape, widen
from runtime.staged_list import StagedList
from runtime.tensor import SymbolicTensor
from runtime.types import TensorType

# Each round widens a type or adds a carry. A type goes from variable to variable (`z2 = z1; z1 = z0`) one a round, so a
# loop that needs more rounds than this, and so many for each of its values, never settles.
_ROUNDS, _ROUNDS_EACH = 20, 3


class Loop:
    def __init__(
        self,
        test: Callable[[], Any],
        body: Callable[[], Any],
        state: Sequence[Slot],
        frame: Frame,
        memory: Memory,
    ) -> None:
        self.memory = memory
        self.test = test
        self.body = body
        self.frame = frame
        contents = [each.slot() for each in frame.containers if isinstance(each.owner, STAGED)]
        state = [*state, *contents]
        far = frame.far_slots(memory.found) if memory.found else []
        places = {slot.place for slot in state}
        self.before = [(slot, slot.get()) for slot in (*state, *[slot for slot in far if slot.place not in places])]
        # A variable that holds a list or array which the body only changes keeps it: other variables may hold it too.
        self.pinned = [
            slot
            for slot, value in self.before
            if is_content(value) and frame.is_outside(value) and key_of(slot) not in memory.found
        ]
        self.variables: list[Variable] = []
        self.starts: dict[Variable, Hashable] = {}  # what the types of the variables depend on before any trace
        self.is_resumed = False  # whether they started from types that an earlier trace has found
        self.ends: dict[tuple[int, str], list[Any]] = {}  # what variables may hold when an iteration ends
        told_before = known_objects()
        self.new = New(lambda value: frame.is_outside(value) or id(value) in told_before)
        self.known = {slot.place for slot, _ in self.before}
        self.discovered: list[tuple[Slot, Any]] = []  # with the values after the body
        self.unpinned: list[tuple[Slot, Any]] = []
        self.given: Sequence[Any] = ()
        self.ran: LocalSlot | None = None
        self.made_with: dict[Any, str] = {}  # what the traces changed in which something has come to be
        self.grown: list[ListRequest] = []  # lists that must become staged, once all types have settled
        for slot, _ in self.before:
            if slot not in self.pinned:
                self.add(slot)
        self.resume()

    @property
    def leaves(self) -> list[Leaf]:
        return [leaf for variable in self.variables for leaf in variable.leaves]

    @property
    def carried(self) -> list[Leaf]:
        return [leaf for leaf in self.leaves if leaf.carried]

    def add(self, slot: Slot) -> None:
        variable = Variable(slot, self.memory.choices.get(key_of(slot), {}))
        variable.guess(key_of(slot) not in self.memory.plain)
        self.variables.append(variable)
        self.starts[variable] = variable.described()

    # --- tracing ---------------------------------------------------------------------------------------------------

    def stage(self) -> None:
        settled = self.settle()
        if settled is None:
            return
        body, after = settled
        if self.options.limit is not None:
            self.count_trips(body, after)
        test = self.trace("test", lambda: [self.run_test()])[0]
        if self.discovered or self.unpinned or self.grown or self.touched:
            raise condition_changes_state()
        self.emit(test, body, after)

    def settle(self) -> tuple[Region, dict[Leaf, Any]] | None:
        """Traces the body until its types are stable; gives the last trace and the leaves' values after it.

        None where the loop around has to be traced again anyway: then this one has gone on with the types found so far.
        """
        rounds, most = 0, _ROUNDS + _ROUNDS_EACH * len(self.leaves)
        while rounds < most:
            rounds += 1
            if rounds <= _ROUNDS:  # what still grows then grows without end
                most = _ROUNDS + _ROUNDS_EACH * len(self.leaves)
            try:
                settled = self.attempt()
            except (NeedsAttributes, NeedsStagedLists):
                raise
            except Exception as error:
                forget_refused(ctx.builder)
                if self.may_try_again():
                    continue
                if isinstance(error, (StagingError, OperatorNotAllowedInGraphError)):
                    refused(ctx.builder, error)
                raise
            if settled is not None or self.was_left_to_outer_loop:
                return settled
        if self.may_settle_one_by_one():
            return self.settle()
        raise StagingError("the types of this loop's variables never settle", location=user_location())

    was_left_to_outer_loop = False

    def attempt(self) -> tuple[Region, dict[Leaf, Any]] | None:
        """One trace of the body; gives it if nothing it was traced with has changed."""
        memory = self.memory
        self.grown = []
        before = self.learned()
        waiting = any(variable.lacks_value or variable.awaits_elements for variable in self.variables)
        with trial(waiting) as errors:
            region, values = self.trace("body", self.run_body)
        for leaf in self.leaves:
            leaf.guessed = False
        may_wait = memory.may_wait and memory.has_had_enough
        is_new = bool(self.discovered or self.unpinned or self.has_made)
        if is_new:
            values += self.add_discovered()
            if not may_wait:
                self.learn()
                return None
        with region.builder:
            values = [with_new(value, self.new) for value in values]
        if self.finds_choices(values):
            self.forget_types()
            return None
        after, stable = self.compare(values, self.inputs(), region.builder)
        fits = self.has_fitting_start(_evidence(region, after))
        if stable and not is_new and not memory.is_open:
            if errors:
                raise errors[0]
            if self.grown and not may_wait:
                raise NeedsStagedLists(self.grown)
            if not self.grown and fits and self.meets_invariants():
                self.refuse_lost()
                self.learn()
                return region, after
        if fits:
            self.learn()
        else:
            memory.forget()
        if may_wait and (memory.is_open or self.grown or not fits or self.learned() != before):
            self.leave_to_outer_loop(region, after)
        elif not fits:
            self.forget_types()
        return None

    def refuse_lost(self) -> None:
        """Raises StagingError if only the trace that made something on first use changed other state, too."""
        lost = [label for place, label in self.made_with.items() if place not in self.touched]
        if lost:
            raise StagingError(
                f"'{lost[0]}' is changed where a loop on tensors makes an object that it needs first",
                location=user_location(),
                cause="the loop's body is traced for all iterations at once, of which only the first makes the object",
                fix="make the object before the loop",
            )

    def may_try_again(self) -> bool:
        """Whether a trace that has failed may have failed for what it began with; begins with something else then."""
        if self.memory.is_open:
            return True
        guessed = [variable for variable in self.variables if any(leaf.guessed for leaf in variable.leaves)]
        for variable in guessed:
            # The body needs the Python number itself: `s = 0; s += t` takes the dtype of t.
            self.memory.plain.add(key_of(variable.slot))
            for leaf in variable.leaves:
                if leaf.guessed:
                    leaf.carried = leaf.guessed = False
        if guessed:
            return True
        if self.is_resumed:
            self.memory.forget()
            self.forget_types()
            return True
        return self.may_settle_one_by_one()

    def may_settle_one_by_one(self) -> bool:
        """Whether loops in this one have gone on with types that weren't settled; begins again without that if so."""
        memory = self.memory
        if memory.may_wait or memory.is_exact or not memory.was_open:
            return False
        memory.settle_one_by_one()
        self.forget_types()
        return True

    # --- what an earlier trace has found ---------------------------------------------------------------------------

    def resume(self) -> None:
        """Starts from the types that the last trace of the loop ended with, where it started as it does now."""
        for variable in self.variables:
            seen = self.memory.seen.get(key_of(variable.slot))
            if seen is None or seen.start != self.starts[variable]:
                continue
            lacked_value = variable.lacks_value
            variable.resume(seen.structure, seen.parts, seen.numbers)
            if lacked_value and not variable.lacks_value:
                self.need_check(variable)
            self.is_resumed |= variable.described() != self.starts[variable]

    def forget_types(self) -> None:
        """Drops the types that were found."""
        self.discovered, self.unpinned, self.ran, self.is_resumed = [], [], None, False
        self.ends.clear()
        slots = [variable.slot for variable in self.variables if variable in self.starts]
        self.variables, self.starts = [], {}
        for slot in slots:
            self.add(slot)

    def learn(self) -> None:
        """Remembers what is known now for the next trace of the loop."""
        memory = self.memory
        memory.seen = {
            key_of(variable.slot): Seen.of(variable, self.starts[variable])
            for variable in self.variables
            if variable in self.starts
        }

    def learned(self) -> Hashable:
        """All that is known of the types of the variables."""
        return tuple([(key_of(variable.slot), variable.described()) for variable in self.variables])

    def has_fitting_start(self, evidence: Any) -> bool:
        """Whether types that were found in an earlier trace, where the loop stood among other values, are as good here.

        They are if what the body captures and gives has at most become less definite, as it does while types settle.
        Remembers the evidence.
        """
        before, self.memory.evidence = self.memory.evidence, evidence
        if not self.is_resumed:
            return True
        self.is_resumed = False
        if before is None:
            return True
        return evidence == before if self.memory.is_exact else _covers(evidence, before)

    def leave_to_outer_loop(self, body: Region, after: dict[Leaf, Any]) -> None:
        """Gives the variables results of the types found so far: the loop around is going to be traced again."""
        assert self.memory.outer is not None
        self.was_left_to_outer_loop = True
        self.memory.outer.is_open = self.memory.outer.was_open = True
        builder, inputs = ctx.builder, self.inputs()
        for key in body.builder.written:
            builder.write_state(key, builder.unknown(builder.read_state(key).type).value)
        results: dict[Leaf, Any] = {}
        for leaf in self.carried:
            is_kept = leaf in after and (after[leaf] is inputs.get(leaf) or same_python_value(leaf.init, after[leaf]))
            if not is_kept or leaf.init is UNSET:
                results[leaf] = leaf.holding(builder.unknown(leaf.type))
        self.finish(results)
        remember_lists(self.memory, self.grown)
        for request in self.grown:
            with_any_contents(request, self.frame)

    def meets_invariants(self) -> bool:
        """Whether the carries have the shapes that `set_loop_options` demands; gives them these shapes if not."""
        fits = True
        for leaf, given in zip(self.carried, self.given):
            for tensor, shape in self.options.shapes:
                if tensor is given and leaf.type is not None and leaf.type.shape != as_shape(shape):
                    widened = widen(leaf.type.shape, as_shape(shape))
                    if widened != as_shape(shape):
                        raise StagingValueError(
                            f"'{leaf.label}' has shape {leaf.type.shape} after one iteration, which does not conform "
                            f"with its shape invariant {shape}",
                            location=user_location(),
                            cause="a shape invariant holds before the loop and after every iteration",
                            fix="leave the dimensions that change out of the invariant (None)",
                        )
                    leaf.carry(TensorType(leaf.type.dtype, widened), leaf.number)
                    fits = False
        return fits

    def add_discovered(self) -> list[Any]:
        """State that the body changes through functions and objects is carried too; gives the values after it."""
        found = [*self.discovered, *self.unpinned]
        for slot, _ in found:
            if slot in self.pinned:
                self.pinned.remove(slot)
            else:
                self.before.append((slot, slot.get()))
            self.add(slot)
            self.memory.found.add(key_of(slot))
            self.known.add(slot.place)
        self.discovered, self.unpinned = [], []
        return [value for _, value in found]

    def inputs(self) -> dict[Leaf, Any]:
        """What the carries were in the last trace of the body."""
        return dict(zip(self.carried, self.given))

    copies: Copies | None = None
    has_made = False  # whether attributes have come to be in the last trace
    touched: Mapping[Any, str] = {}  # the places that the last trace has changed, with their labels

    def run_test(self) -> Any:
        value = self.test()
        tensor = truth(value)
        return condition(convert_to_tensor(value) if tensor is None else tensor, "while")

    def run_body(self) -> list[Any]:
        self.options = Options()
        try:
            with options_of(self.options):
                self.body()
        except Unfinished:
            self.restore_variables()
        except BaseException as error:
            if not stage_raise(error):
                refuse_handlers(error)
                raise
            if self.copies is not None:
                self.copies.refuse_changed()  # perhaps there is an error only because a copy wasn't changed, too
            self.restore_variables()
        check_refused(ctx.builder)
        if self.ran is not None:
            self.ran.set(True)
        return []

    def restore_variables(self) -> None:
        """Gives the variables the values that they had before the iteration: none comes after it."""
        self.frame.restore()
        given = dict(zip(self.carried, self.given))
        for variable in self.variables:
            variable.slot.set(variable.assemble(lambda leaf: given.get(leaf, leaf.init)))

    def trace(self, name: str, function: Callable[[], list[Any]]) -> tuple[Region, list[Any]]:
        """Runs a function on symbolic carries; gives the region and the variables' values after it."""
        values: list[Any] = []

        def traced(*tensors: Any) -> list[Any]:
            note_reach(ctx.builder, self.frame)
            given = {leaf: leaf.holding(tensor) for leaf, tensor in zip(self.carried, tensors)}
            if name == "body":
                self.given = list(given.values())
            enter_loop(self.frame.blocks)
            for variable in self.variables:
                variable.slot.set(variable.assemble(lambda leaf: given.get(leaf, leaf.init)))
            starts = [variable.slot.get() for variable in self.variables]
            copies = self.copies = Copies(self.variables, self.frame)
            outputs = function()
            settle_elements()
            self.frame.check_iterators()
            images = self.frame.images()
            values.extend(images.inside(after_block(variable.slot, variable.initial)) for variable in self.variables)
            self.unpinned = [
                (slot, images.inside(slot.get()))
                for slot, value in self.before
                if slot in self.pinned and slot.get() is not value
            ]
            self.touched = {
                variable.slot.place: variable.slot.label
                for variable, start in zip(self.variables, starts)
                if start is not UNSET and start is not None and _differ(start, after_block(variable.slot, start))
            }
            self.discover(images)
            if self.unpinned or self.grown:  # it will be traced again
                forget_chosen(ctx.builder)
            else:
                ends = copies.check()
                if name == "body":
                    self.ends = ends
                check_chosen(ctx.builder, copies.changing)
            return outputs

        types = [leaf.type for leaf in self.carried]
        names = [identifier(leaf.label) for leaf in self.carried]
        try:
            with self.frame.tracing(), self.memory.of_body() if name == "body" else nullcontext():
                region = trace_region(name, traced, types, names)  # type: ignore[arg-type]
        finally:
            self.restore()
        return region, values

    def discover(self, images: Images) -> None:
        """Finds out what else has changed: more state, or a list that has grown."""
        self.discovered = []
        self.has_made = self.frame.keep_made()
        before = {id(snapshot.owner): snapshot.before for snapshot in self.frame.containers}
        for slot, now in self.frame.changes(self.known):
            owner = slot.owner if isinstance(slot, ContentSlot) else None
            if type(owner) is list and (isinstance(now, StagedList) or len(now) != len(before[id(owner)])):
                self.must_be_staged(slot.label, owner, now)
            else:
                self.discovered.append((slot, images.inside(now)))
        if not (self.discovered or self.unpinned):
            self.has_made |= self.frame.adopt_made()
        if self.has_made:
            changed = [slot for slot, _ in (*self.discovered, *self.unpinned)]
            self.made_with |= {**self.touched, **{slot.place: slot.label for slot in changed}}

    def must_be_staged(self, label: str, place: Any, now: Any) -> None:
        like = now if isinstance(now, StagedList) else None
        self.grown.append(ListRequest(label, place, now if like is None else (), like))

    def restore(self) -> None:
        self.frame.restore()
        for slot, value in self.before:
            if slot.get() is not value:
                slot.set(value)

    # --- types -----------------------------------------------------------------------------------------------------

    def finds_choices(self, values: list[Any]) -> bool:
        """Whether the body exchanges objects for others than those known so far; notes them for the next trace."""
        is_new = False
        for variable, value in zip(self.variables, values):
            found = outgrown(variable.structure, value, variable.slot.label)
            known = self.memory.choices.setdefault(key_of(variable.slot), {}) if found else {}
            is_new |= any(known.get(label) != each for label, each in found.items())
            known |= found
        return is_new

    def compare(self, values: list[Any], inputs: dict[Leaf, Any], builder: Any) -> tuple[dict[Leaf, Any], bool]:
        """The leaves' values after the body, and whether their types agree with what it was traced with.

        Those that don't are adjusted.
        """
        after: dict[Leaf, Any] = {}
        stable = True
        for variable, value in zip(list(self.variables), values):
            structure = variable.structure
            with builder:
                value = like_choices(structure, value)
            if structure is UNSET or (structure is None and value is not UNSET and has_tensor(value)):
                if value is not structure:
                    with builder:
                        variable.adopt(value)
                    for leaf in variable.parts:
                        self.frame.watch(leaf.label, leaf.init)
                    self.need_check(variable)
                    stable = False
                continue
            if variable.slot.get() is not UNSET:
                value = as_staged(variable.slot.label, structure, value, builder)
                outgrown = first_outgrown(variable.slot.label, structure, value)
                if outgrown is not None and (variable.born_inside or variable.initial is None):
                    with builder:
                        variable.adopt(with_staged_lists(variable.slot.label, structure, value))
                    stable = False
                    continue
                if outgrown is not None:
                    label, held, now = outgrown
                    self.must_be_staged(label, variable.slot if held is structure else held, now)
                    continue
            if isinstance(value, StagedList) and isinstance(structure, StagedList):
                numbers = structure.numbers_beside(value)
                if numbers != structure.numbers:  # a tensor, or a float, has come to Python numbers
                    variable.numbers = numbers
                    stable = False
                with builder:
                    value = value.alongside(structure)
            if value is None and structure is not None and variable.may_be_none():
                found = [(inputs.get(leaf, leaf.init), [none]) for leaf, none in zip(variable.parts, variable.nones())]
            else:
                found = [(plain(result), absences(result, builder)) for result in variable.match(value)]
            for leaf, (result, ways) in zip(variable.parts, found):
                after[leaf] = result
                stable &= self.settled(leaf, result, inputs.get(leaf))
                stable &= all(leaf.may_be_absent(each, True) for each in ways)
                for key, flag in leaf.flags.items():
                    after[flag] = next((each.present for each in ways if each.key == key), True)
                    stable &= self.settled(flag, after[flag], inputs.get(flag))
        return after, stable

    def need_check(self, variable: Variable) -> None:
        """A Python value born in the loop may not be there after it: carry whether the body has run."""
        if not (variable.slot.covered or variable.is_flagged()) and self.ran is None:
            self.ran = LocalSlot("ran", False)
            self.variables.append(Variable(self.ran, {}))
            self.leaves[-1].carry(type_of(False))

    def settled(self, leaf: Leaf, result: Any, given: Any) -> bool:
        """Whether a leaf's value after the body fits; if not, adjusts how the next round treats it."""
        if not leaf.carried:
            if not is_exchanged(leaf.init, result):
                return True
            if leaf.init is UNSET and is_tensorable(result):  # the first write to a TensorArray
                leaf.carry_like(result)
                return False
            if not (is_tensorable(leaf.init) and is_tensorable(result)):
                raise changes_kind(leaf, result)
            leaf.carry_like(leaf.init)
            leaf.carry(*self.join(leaf, result))
            leaf.meet_first(result)
            return False
        if given is result or same_python_value(leaf.init, result):
            return True
        if not is_tensorable(result):
            raise changes_kind(leaf, result)
        before = leaf.type, leaf.number
        leaf.carry(*self.join(leaf, result))
        relied_on = not is_flag(result) and leaf.is_no_flag()
        relied_on |= leaf.note_kind(result) and type(given) is SymbolicTensor and given.is_asked
        return leaf.meet(result) and before == (leaf.type, leaf.number) and not relied_on

    def join(self, leaf: Leaf, result: Any) -> tuple[TensorType, DType | None]:
        """The type (and default of the number) that covers a leaf at the start of an iteration and after it."""
        type_, number, found = leaf.type, leaf.number, type_of(result)
        assert type_ is not None
        shape = widen(type_.shape, found.shape)
        if number is dtypes.string and is_text(result):
            return found, number
        if number is not None and is_number(result):
            number = common_default(number, default_of(result))
            return TensorType(storage(number), ()), number
        if number is not None:
            # The body's tensor decides, if it can hold the number.
            if not is_weak(result) and accepts(found.dtype, kind_of_default(number)):
                return TensorType(found.dtype, shape), None
        elif is_weak(result) and accepts(type_.dtype, kind_of(result)):
            return TensorType(type_.dtype, shape), None
        elif is_weak(leaf.init):
            # The dtype so far came from a Python value, or from another tensor that it met.
            number, dtype = common_number(leaf.init, result), common_dtype(leaf.init, result)
            if number is not None:
                return TensorType(storage(number), ()), number
            if dtype is not None:
                return TensorType(dtype, shape), None
        elif found.dtype is type_.dtype:
            return TensorType(type_.dtype, shape), None
        elif leaf.flexible:
            leaf.flexible = found.dtype is dtypes.float64 and type_.dtype is dtypes.int64
            return TensorType(found.dtype, shape), None
        elif leaf.init is UNSET and is_weak(result):
            return found, number_of(result)
        init = leaf.init if leaf.init is not UNSET else placeholder(type_)
        raise conflict(f"'{leaf.label}'", init, result, ("before the loop", "after an iteration"))

    # --- emitting --------------------------------------------------------------------------------------------------

    def count_trips(self, body: Region, after: dict[Leaf, Any]) -> None:
        """Ends the loop after the number of iterations that its body has asked for: it carries how many there were."""
        given = [each.tensor if type(each) in (StagedNumber, StagedString) else each for each in self.given]
        starts = {tensor.value: leaf.start for leaf, tensor in zip(self.carried, given)}
        found = before_loop(self.options.limit, body.builder, starts)
        limit = cast(convert_to_tensor(found), dtypes.int32)
        trips, test = LocalSlot("trips", convert_to_tensor(0, dtypes.int32)), self.test
        self.add(trips)
        (leaf,) = self.variables[-1].parts
        value = body.builder.add_input(leaf.type, "trips")  # type: ignore[arg-type]
        body.carries.append(value)
        count = body.builder.tensor(value)
        self.given = [*self.given, count]
        with body.builder:
            after[leaf] = count + 1
        self.test = lambda: and_(trips.get() < limit, test)

    def emit(self, test: Region, body: Region, after: dict[Leaf, Any]) -> None:
        parent = ctx.builder
        inputs = self.inputs()
        carried: list[Leaf] = []
        constant: list[Leaf] = []
        for leaf in self.carried:
            unchanged = after[leaf] is inputs[leaf] or same_python_value(leaf.init, after[leaf])
            (constant if unchanged and leaf.init is not UNSET else carried).append(leaf)
        position = {leaf: index for index, leaf in enumerate(self.carried)}
        start = {leaf: leaf.start() for leaf in self.carried}
        kept = list(carried)
        for leaf in constant:
            outer = parent.use(start[leaf])
            # The body never changes it: what looked like a carry is a value from outside.
            if any(outer in region.builder.captured for region in (test, body)):
                kept.append(leaf)
                continue
            for region in (test, body):
                region.builder.captured[outer] = region.carries[position[leaf]]
        with body.builder:
            body.outputs = []
            for leaf in kept:
                assert leaf.type is not None
                value = after[leaf] if leaf in carried else inputs[leaf]
                body.outputs.append(body.builder.use(convert_to_tensor(value, leaf.type.dtype)))
        for region in (test, body):
            region.carries = [region.carries[position[leaf]] for leaf in kept]
        memory = self.options.memory or memory_of_function(parent)
        attrs = None if memory is None else {"memory": memory}
        refuse_endless(test, body, ((leaf.label, leaf.init, after[leaf]) for leaf in self.carried))
        outputs = emit_while(test, body, [start[leaf] for leaf in kept], attrs)
        self.finish({leaf: leaf.holding(output) for leaf, output in zip(carried, outputs)})

    def finish(self, results: dict[Leaf, Any]) -> None:
        """Sets the variables to the loop's results and checks those that may have none."""
        for variable in self.variables:
            variable.slot.set(variable.assemble(lambda leaf: results.get(leaf, leaf.init)))
        remember(self.variables, self.ends, self.frame)
        look_at_chosen(ctx.builder)
        if self.ran is None:
            return
        for variable in self.variables:
            is_born = variable.born_inside and variable.structure is not UNSET
            if is_born and not (variable.slot.covered or variable.is_flagged()):
                label = variable.slot.label
                assert_present(self.ran.get(), UNBOUND, label, no_iteration(label))


def _differ(start: Any, end: Any) -> bool:
    """Whether a variable holds something else than when the iteration started."""
    return end is not start and not same([leaf for _, leaf in flatten(start)], [leaf for _, leaf in flatten(end)])


def _evidence(body: Region, after: Mapping[Leaf, Any]) -> tuple[Any, ...]:
    """The types that a trace of a loop's body met: of what it captured, and of its results."""
    results = [(leaf.label, type_of(value) if is_tensorable(value) else value) for leaf, value in after.items()]
    return tuple(each.type for each in body.builder.captured), tuple(results)


def _covers(evidence: Any, before: Any) -> bool:
    """Whether the types in some evidence are those of another, or less definite."""
    captured, results = evidence
    others, earlier = before
    if len(captured) != len(others):
        return False
    labels = dict(earlier)
    pairs = [*zip(others, captured), *[(labels.get(label, each), each) for label, each in results]]
    return all(widen(a.shape, b.shape) == b.shape for a, b in pairs if type(a) is type(b) is TensorType)
