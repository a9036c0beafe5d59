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

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from autograph.errors import StagingError, StagingValueError, user_location
from autograph.operators.absence import UNBOUND, absences, assert_present, no_iteration, plain, trial
from autograph.operators.aliases import check_chosen, forget_chosen, is_exchanged, look_at_chosen
from autograph.operators.containers import ContentSlot, NeedsStagedList, is_list
from autograph.operators.elements import enter_loop, settle_elements
from autograph.operators.endless import refuse_endless
from autograph.operators.frame import Frame
from autograph.operators.items import note_reach
from autograph.operators.loop_aliases import Copies, remember
from autograph.operators.loop_memory import Memory, Settled
from autograph.operators.loop_options import HasLimit, Options, before_loop, options_of
from autograph.operators.loop_variables import Leaf, Variable, as_staged, changes_kind, first_outgrown, identifier
from autograph.operators.raising import check_refused, forget_refused, refuse_handlers, refused, stage_raise
from autograph.operators.state import UNSET, LocalSlot, Slot, after_block
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
from runtime.graph.builder import Region, emit_while, trace_region
from runtime.ops.convert import convert_to_tensor
from runtime.ops.staged_number import StagedNumber, is_number, kind_of, storage
from runtime.ops.values import common_default, default_of
from runtime.shapes import as_shape, widen
from runtime.staged_list import StagedList
from runtime.types import TensorType

# Each round widens a type or adds a carry; a loop that needs more than this many never settles.
_ROUNDS = 20


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
        contents = [each.slot() for each in frame.containers if isinstance(each.owner, StagedList)]
        state = [*state, *contents]
        self.before = [(slot, slot.get()) for slot in state]
        # A variable that holds a list which the body only changes keeps it: other variables may hold it too.
        self.pinned = [slot for slot, value in self.before if is_list(value) and frame.is_outside(value)]
        self.variables = [Variable(slot) for slot in state if slot not in self.pinned]
        self.ends: dict[tuple[int, str], list[Any]] = {}  # what variables may hold when an iteration ends
        self.known = {slot.place for slot in state}
        self.discovered: list[Slot] = []
        self.unpinned: list[Slot] = []
        self.given: Sequence[Any] = ()
        self.ran: LocalSlot | None = None
        self.grown: NeedsStagedList | None = None  # a list that must become staged, once all types have settled
        for variable in self.variables:
            variable.guess()

    @property
    def leaves(self) -> list[Leaf]:
        return [leaf for variable in self.variables for leaf in variable.leaves]

    @property
    def carried(self) -> list[Leaf]:
        return [leaf for leaf in self.leaves if leaf.carried]

    # --- tracing ---------------------------------------------------------------------------------------------------

    def stage(self) -> None:
        body, after = self.settle()
        test = self.trace("test", lambda: [self.run_test()])[0]
        if self.discovered or self.unpinned or self.grown is not None:
            raise StagingError(
                "the condition of a loop on tensors changes state that it didn't change at first",
                location=user_location(),
                cause="the condition is evaluated once more than the body",
                fix="change the state in the loop's body",
            )
        self.emit(test, body, after)

    def settle(self) -> tuple[Region, dict[Leaf, Any]]:
        """Traces the body until its types are stable; gives the last trace and the leaves' values after it."""
        start = self.start()
        before = self.memory.settled
        settled = self.settle_as(before) if before is not None and before.start == start else None
        if settled is None:
            self.memory.settled = None
            settled = self.settle_anew()
            if start is not None and self.ran is None and len(self.leaves) == len(start):
                leaves = [(leaf.carried, leaf.type, leaf.number, leaf.flexible) for leaf in self.leaves]
                numbers = [variable.numbers for variable in self.variables]
                self.memory.settled = Settled(start, leaves, numbers, self.evidence(*settled))
        return settled

    def start(self) -> tuple[Any, ...] | None:
        """What the types of the loop's variables depend on before any trace; None where they have no values yet."""
        if any(variable.structure is UNSET or variable.structure is None for variable in self.variables):
            return None
        return tuple([(leaf.described(), leaf.carried, leaf.guessed, leaf.flexible) for leaf in self.leaves])

    def evidence(self, body: Region, after: Mapping[Leaf, Any]) -> tuple[Any, ...]:
        """The types that a trace of the body met: of what it captured, and of its results."""
        results = [(number_of(each), type_of(each) if is_tensorable(each) else each) for each in after.values()]
        return tuple(each.type for each in body.builder.captured), tuple(results)

    def settle_as(self, before: Settled) -> tuple[Region, dict[Leaf, Any]] | None:
        """One trace of the body with the types of an earlier one; None, and nothing changed, where they don't fit."""
        leaves = self.leaves
        first = [(leaf.carried, leaf.type, leaf.number, leaf.guessed, leaf.flexible) for leaf in leaves]
        for leaf, (carried, type_, number, flexible) in zip(leaves, before.leaves):
            leaf.carried, leaf.type, leaf.number = carried, type_, number
            leaf.guessed, leaf.flexible = False, flexible
        for variable, numbers in zip(self.variables, before.numbers):
            variable.numbers = numbers
        self.grown = None
        try:
            region, values = self.trace("body", self.run_body)
            is_new = bool(self.discovered or self.unpinned)
            after = None if is_new else self.compare(values, self.inputs(), region.builder)
            is_plain = self.grown is None and self.options.limit is None and len(self.leaves) == len(leaves)
            if after is not None and is_plain and self.evidence(region, after) == before.evidence:
                return region, after
        except Exception:
            # If it is a mistake of the user's, the trace from the beginning meets it again.
            forget_refused(ctx.builder)
        self.discovered, self.unpinned, self.grown, self.ran = [], [], None, None
        self.ends.clear()
        self.variables = [Variable(variable.slot) for variable in self.variables]
        for leaf, (carried, type_, number, guessed, flexible) in zip(self.leaves, first):
            leaf.carried, leaf.type, leaf.number = carried, type_, number
            leaf.guessed, leaf.flexible = guessed, flexible
        return None

    def settle_anew(self) -> tuple[Region, dict[Leaf, Any]]:
        for _ in range(_ROUNDS):
            self.grown = None
            waiting = any(variable.structure is UNSET or variable.structure is None for variable in self.variables)
            waiting |= any(variable.awaits_elements for variable in self.variables)
            try:
                with trial(waiting) as errors:
                    region, values = self.trace("body", self.run_body)
            except Exception as error:
                forget_refused(ctx.builder)
                guesses = [leaf for leaf in self.leaves if leaf.guessed]
                if not guesses:
                    if isinstance(error, StagingError):
                        refused(ctx.builder, error)
                    raise
                # The body needs the Python number itself: `s = 0; s += t` takes the dtype of t.
                for leaf in guesses:
                    leaf.carried = leaf.guessed = False
                continue
            for leaf in self.leaves:
                leaf.guessed = False
            if self.discovered or self.unpinned:
                self.add_discovered()
                continue
            after = self.compare(values, self.inputs(), region.builder)
            if after is not None:
                if errors:
                    raise errors[0]
                if self.grown is not None:
                    raise self.grown
                if self.options.limit is not None:
                    given = [each.tensor if isinstance(each, StagedNumber) else each for each in self.given]
                    starts = {tensor.value: leaf.start for leaf, tensor in zip(self.carried, given)}
                    raise HasLimit(before_loop(self.options.limit, region.builder, starts))
                if not self.meets_invariants():
                    continue
                return region, after
        raise StagingError("the types of this loop's variables never settle", location=user_location())

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

    def add_discovered(self) -> None:
        """State that the body changes through functions and objects is carried too."""
        for slot in (*self.discovered, *self.unpinned):
            if slot in self.pinned:
                self.pinned.remove(slot)
            else:
                self.before.append((slot, slot.get()))
            variable = Variable(slot)
            variable.guess()
            self.variables.append(variable)
            self.known.add(slot.place)
        self.discovered, self.unpinned = [], []

    def inputs(self) -> dict[Leaf, Any]:
        """What the carries were in the last trace of the body."""
        return dict(zip(self.carried, self.given))

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
            self.hand_on()
        except BaseException as error:
            if not stage_raise(error):
                refuse_handlers(error)
                raise
            self.hand_on()
        check_refused(ctx.builder)
        if self.ran is not None:
            self.ran.set(True)
        return []

    def hand_on(self) -> None:
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
            copies = Copies(self.variables, self.frame)
            outputs = function()
            settle_elements()
            images = self.frame.images()
            values.extend(images.inside(after_block(variable.slot, variable.initial)) for variable in self.variables)
            self.unpinned = [slot for slot, value in self.before if slot in self.pinned and slot.get() is not value]
            self.discover()
            if self.unpinned:
                forget_chosen(ctx.builder)
            else:
                ends = copies.check()
                if name == "body":
                    self.ends = ends
                check_chosen(ctx.builder, copies.moving())
            return outputs

        types = [leaf.type for leaf in self.carried]
        names = [identifier(leaf.label) for leaf in self.carried]
        try:
            with self.frame.tracing(), self.memory.of_body() if name == "body" else nullcontext():
                region = trace_region(name, traced, types, names)  # type: ignore[arg-type]
        finally:
            self.restore()
        return region, values

    def discover(self) -> None:
        """Finds out what else has changed: more state, or a list that has grown."""
        self.discovered = []
        before = {id(snapshot.owner): snapshot.before for snapshot in self.frame.containers}
        for slot, now in self.frame.changes(self.known):
            owner = slot.owner if isinstance(slot, ContentSlot) else None
            if type(owner) is list and (isinstance(now, StagedList) or len(now) != len(before[id(owner)])):
                self.must_be_staged(slot.label, owner, now)
            else:
                self.discovered.append(slot)

    def must_be_staged(self, label: str, place: Any, now: Any) -> None:
        if isinstance(now, StagedList):
            self.grown = NeedsStagedList(label, place, (), now)
        else:
            self.grown = NeedsStagedList(label, place, now)

    def restore(self) -> None:
        self.frame.restore()
        for slot, value in self.before:
            if slot.get() is not value:
                slot.set(value)

    # --- types -----------------------------------------------------------------------------------------------------

    def compare(self, values: list[Any], inputs: dict[Leaf, Any], builder: Any) -> dict[Leaf, Any] | None:
        """The leaves' values after the body if the types agree with what it was traced with; else adjusts them."""
        after: dict[Leaf, Any] = {}
        stable = True
        for variable, value in zip(list(self.variables), values):
            structure = variable.structure
            if structure is UNSET or (structure is None and value is not UNSET and has_tensor(value)):
                if value is not structure:
                    variable.adopt(value)
                    self.need_check(variable)
                    stable = False
                continue
            if variable.slot.get() is not UNSET:
                value = as_staged(variable.slot.label, structure, value, builder)
                outgrown = first_outgrown(variable.slot.label, structure, value)
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
        return after if stable else None

    def need_check(self, variable: Variable) -> None:
        """A Python value born in the loop may not be there after it: carry whether the body has run."""
        if not (variable.slot.covered or variable.is_flagged()) and self.ran is None:
            self.ran = LocalSlot("ran", False)
            self.variables.append(Variable(self.ran))
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
            return False
        if given is result or same_python_value(leaf.init, result):
            return True
        if not is_tensorable(result):
            raise changes_kind(leaf, result)
        before = leaf.type, leaf.number
        leaf.carry(*self.join(leaf, result))
        return before == (leaf.type, leaf.number)

    def join(self, leaf: Leaf, result: Any) -> tuple[TensorType, DType | None]:
        """The type (and default of the number) that covers a leaf at the start of an iteration and after it."""
        type_, number, found = leaf.type, leaf.number, type_of(result)
        assert type_ is not None
        shape = widen(type_.shape, found.shape)
        if number is not None and is_number(result):
            number = common_default(number, default_of(result))
            return TensorType(storage(number), ()), number
        if number is not None:
            # The body's tensor decides, if it can hold the number.
            if not is_weak(result) and accepts(found.dtype, float if number.is_floating else int):
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
