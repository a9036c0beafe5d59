"""``while`` on a symbolic tensor: the loop's body is traced until the types of what it carries no longer change.

Which variables become carries, and with what types, is found by tracing:

- tensors are carries; so are Python numbers that the body changes (``i = 0`` ... ``i += 1``), with the dtype of what
  the body makes of them (``s = 0`` ... ``s += 0.5 * t``); values that the body leaves alone stay what they are;
- a dimension that differs between two trips becomes unknown;
- a variable that has no value before the loop starts from a placeholder of the type that the body gives it; unless its
  reads are known to be safe, a check after the loop raises UnboundLocalError if the loop ran zero times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from autograph.errors import StagingError, StagingTypeError, StagingValueError, user_location
from autograph.operators.frame import Frame
from autograph.operators.state import UNSET, Block, LocalSlot, Slot
from autograph.operators.structure import flatten, map_leaves
from autograph.operators.symbolic import (
    accepts,
    common_dtype,
    condition,
    conflict,
    describe,
    is_tensorable,
    is_weak,
    placeholder,
    same_python_value,
    type_of,
)
from runtime.context import ctx
from runtime.graph.builder import Region, emit_while, trace_region
from runtime.ops.control import assert_op
from runtime.ops.convert import convert_to_tensor, is_tensor_like
from runtime.shapes import widen
from runtime.types import TensorType

# Each round widens a type or adds a carry; a loop that needs more than this many never settles.
_ROUNDS = 20


def stage_while(
    test: Callable[[], Any], body: Callable[[], Any], state: Sequence[Slot], blocks: Sequence[Block]
) -> None:
    """Emits a ``while`` node for a loop in its current state, and sets the variables in ``state`` to its results.

    blocks: the functions whose closure cells the loop may change.
    """
    _Loop(test, body, state, Frame(blocks)).stage()


class _Leaf:
    """One tensor-sized part of a variable: ``carried`` by the loop with a ``type``, or a Python value throughout."""

    def __init__(self, label: str, init: Any) -> None:
        self.label = label
        self.init = init
        self.carried = False
        self.guessed = False  # a Python number made a carry before anything has shown that it changes
        self.type: TensorType | None = None

    def carry(self, type_: TensorType) -> None:
        self.carried, self.type = True, type_


class _Variable:
    """A variable of the loop: a structure of leaves, or None as its structure while it has no value."""

    def __init__(self, slot: Slot) -> None:
        self.slot = slot
        self.structure: Any = slot.get()
        self.born_inside = self.structure is UNSET
        found = [] if self.born_inside else flatten(self.structure, slot.label)
        self.leaves = [_Leaf(label, value) for label, value in found]

    def guess(self) -> None:
        """Chooses what is a carry before any trace."""
        for leaf in self.leaves:
            if is_tensor_like(leaf.init):
                leaf.carry(type_of(leaf.init))
            elif type(leaf.init) in (int, bool):
                # Counters and flags: nearly always changed, and then with this type. A wrong guess costs a trace.
                leaf.carry(type_of(leaf.init))
                leaf.guessed = True

    def adopt(self, value: Any) -> None:
        """Takes the structure of the value that the body gives to a variable born in it."""
        self.structure = value
        self.leaves = [_Leaf(label, UNSET) for label, _ in flatten(value, self.slot.label)]
        for leaf, (_, found) in zip(self.leaves, flatten(value)):
            if is_tensorable(found):
                leaf.carry(type_of(found))
            else:
                leaf.init = found

    def assemble(self, values: Sequence[Any]) -> Any:
        if self.structure is UNSET:
            return UNSET
        remaining = iter(values)
        return map_leaves(self.structure, lambda _: next(remaining))


class _Loop:
    def __init__(self, test: Callable[[], Any], body: Callable[[], Any], state: Sequence[Slot], frame: Frame) -> None:
        self.test = test
        self.body = body
        self.frame = frame
        self.before = [(slot, slot.get()) for slot in state]
        self.variables = [_Variable(slot) for slot in state]
        self.known = {slot.place for slot in state}
        self.discovered: list[Slot] = []
        self.ran: LocalSlot | None = None
        for variable in self.variables:
            variable.guess()

    @property
    def leaves(self) -> list[_Leaf]:
        return [leaf for variable in self.variables for leaf in variable.leaves]

    @property
    def carried(self) -> list[_Leaf]:
        return [leaf for leaf in self.leaves if leaf.carried]

    # --- tracing ---------------------------------------------------------------------------------------------------

    def stage(self) -> None:
        body, after = self.settle()
        test = self.trace("test", lambda: [condition(convert_to_tensor(self.test()), "while")])[0]
        self.emit(test, body, after)

    def settle(self) -> tuple[Region, dict[_Leaf, Any]]:
        """Traces the body until its types are stable; gives the last trace and the leaves' values after it."""
        for _ in range(_ROUNDS):
            try:
                region, values = self.trace("body", self.run_body)
            except Exception:
                guesses = [leaf for leaf in self.leaves if leaf.guessed]
                if not guesses:
                    raise
                # The body needs the Python number itself: `s = 0; s += t` takes the dtype of t.
                for leaf in guesses:
                    leaf.carried = leaf.guessed = False
                continue
            for leaf in self.leaves:
                leaf.guessed = False
            if self.discovered:
                self.add_discovered()
                continue
            after = self.compare(values, self.inputs(region))
            if after is not None:
                return region, after
        raise StagingError("the types of this loop's variables never settle", location=user_location())

    def add_discovered(self) -> None:
        """State that the body changes through functions and objects is carried too."""
        for slot in self.discovered:
            self.before.append((slot, slot.get()))
            variable = _Variable(slot)
            variable.guess()
            self.variables.append(variable)
            self.known.add(slot.place)
        self.discovered = []

    def inputs(self, region: Region) -> dict[_Leaf, Any]:
        return {leaf: region.builder.tensor(value) for leaf, value in zip(self.carried, region.carries)}

    def run_body(self) -> list[Any]:
        self.body()
        if self.ran is not None:
            self.ran.set(True)
        return []

    def trace(self, name: str, function: Callable[[], list[Any]]) -> tuple[Region, list[Any]]:
        """Runs a function on symbolic carries; gives the region and the variables' values after it."""
        values: list[Any] = []

        def traced(*tensors: Any) -> list[Any]:
            given = dict(zip(self.carried, tensors))
            for variable in self.variables:
                current = [given.get(leaf, leaf.init) for leaf in variable.leaves]
                variable.slot.set(variable.assemble(current))
            outputs = function()
            values.extend(variable.slot.get() for variable in self.variables)
            self.discovered = [slot for slot, _ in self.frame.changes() if slot.place not in self.known]
            return outputs

        types = [leaf.type for leaf in self.carried]
        names = [_identifier(leaf.label) for leaf in self.carried]
        try:
            region = trace_region(name, traced, types, names)  # type: ignore[arg-type]
        finally:
            self.restore()
        return region, values

    def restore(self) -> None:
        for slot, value in self.before:
            if slot.get() is not value:
                slot.set(value)
        self.frame.restore()

    # --- types -----------------------------------------------------------------------------------------------------

    def compare(self, values: list[Any], inputs: dict[_Leaf, Any]) -> dict[_Leaf, Any] | None:
        """The leaves' values after the body if the types agree with what it was traced with; else adjusts them."""
        after: dict[_Leaf, Any] = {}
        stable = True
        for variable, value in zip(list(self.variables), values):
            if variable.structure is UNSET:
                if value is not UNSET:
                    variable.adopt(value)
                    self.need_check(variable)
                    stable = False
                continue
            found = self.match(variable, value)
            for leaf, result in zip(variable.leaves, found):
                after[leaf] = result
                stable &= self.settled(leaf, result, inputs.get(leaf))
        return after if stable else None

    def need_check(self, variable: _Variable) -> None:
        """A variable born in the loop may have no value after it: carry whether the body has run."""
        if not variable.slot.covered and self.ran is None:
            self.ran = LocalSlot("ran", False)
            self.variables.append(_Variable(self.ran))
            self.leaves[-1].carry(type_of(False))

    def match(self, variable: _Variable, value: Any) -> list[Any]:
        """The values of a variable's leaves after the body."""
        label = variable.slot.label
        if value is UNSET:
            raise StagingValueError(
                f"'{label}' loses its value in a loop on tensors",
                location=user_location(),
                cause="the loop's next iteration or the code after it may use the variable",
                fix=f"don't delete '{label}' in the loop",
            )
        found = flatten(value, label)
        if [key for key, _ in found] != [leaf.label for leaf in variable.leaves]:
            raise StagingTypeError(
                f"'{label}' changes its structure in a loop on tensors: from {_shape_of(variable.structure)} before an "
                f"iteration to {_shape_of(value)} after it",
                location=user_location(),
                cause="the number of iterations is known only at run time, so every iteration must keep the structure",
                fix="collect values in an ag.TensorArray, or keep the length of lists and tuples",
            )
        return [each for _, each in found]

    def settled(self, leaf: _Leaf, result: Any, given: Any) -> bool:
        """Whether a leaf's value after the body fits; if not, adjusts how the next round treats it."""
        if not leaf.carried:
            if leaf.init is result or same_python_value(leaf.init, result):
                return True
            if leaf.init is UNSET and is_tensorable(result):  # the first write to a TensorArray
                leaf.carry(type_of(result))
                return False
            if not (is_tensorable(leaf.init) and is_tensorable(result)):
                raise self.changed(leaf, result)
            leaf.carry(self.join(leaf, type_of(leaf.init), result))
            return False
        if given is result or same_python_value(leaf.init, result):
            return True
        if not is_tensorable(result):
            raise self.changed(leaf, result)
        assert leaf.type is not None
        type_ = self.join(leaf, leaf.type, result)
        if type_ == leaf.type:
            return True
        leaf.type = type_
        return False

    def join(self, leaf: _Leaf, type_: TensorType, result: Any) -> TensorType:
        """The type that covers a leaf at the start of an iteration and after it."""
        found = type_of(result)
        shape = widen(type_.shape, found.shape)
        if is_weak(result) and accepts(type_.dtype, type(result)):
            return TensorType(type_.dtype, shape)
        if is_weak(leaf.init):
            # The dtype so far came from a Python number; the body's tensor decides, if it can hold the number.
            dtype = common_dtype(leaf.init, result)
            if dtype is not None:
                return TensorType(dtype, shape)
        elif found.dtype is type_.dtype:
            return TensorType(type_.dtype, shape)
        elif leaf.init is UNSET and is_weak(result):
            return TensorType(found.dtype, shape)
        init = leaf.init if leaf.init is not UNSET else placeholder(type_)
        raise conflict(f"'{leaf.label}'", init, result, ("before the loop", "after an iteration"))

    def changed(self, leaf: _Leaf, result: Any) -> StagingError:
        before, after = describe(leaf.init), describe(result)
        return StagingTypeError(
            f"'{leaf.label}' is {before} before a loop on tensors and {after} after an iteration",
            location=user_location(),
            cause="how often the loop runs is known only at run time, and only numbers and tensors can change",
            fix=f"give '{leaf.label}' a tensor before the loop, or don't set it in the loop",
        )

    # --- emitting --------------------------------------------------------------------------------------------------

    def emit(self, test: Region, body: Region, after: dict[_Leaf, Any]) -> None:
        parent = ctx.builder
        inputs = self.inputs(body)
        carried: list[_Leaf] = []
        constant: list[_Leaf] = []
        for leaf in self.carried:
            unchanged = after[leaf] is inputs[leaf] or same_python_value(leaf.init, after[leaf])
            (constant if unchanged and leaf.init is not UNSET else carried).append(leaf)
        position = {leaf: index for index, leaf in enumerate(self.carried)}
        start = {leaf: self.start(leaf) for leaf in self.carried}
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
        outputs = emit_while(test, body, [start[leaf] for leaf in kept])
        self.finish(dict(zip(carried, outputs)))

    def start(self, leaf: _Leaf) -> Any:
        """What a carry starts from."""
        assert leaf.type is not None
        if leaf.init is UNSET:
            return placeholder(leaf.type)
        return convert_to_tensor(leaf.init, leaf.type.dtype)

    def finish(self, results: dict[_Leaf, Any]) -> None:
        """Sets the variables to the loop's results and checks those that may have none."""
        for variable in self.variables:
            values = [results.get(leaf, leaf.init) for leaf in variable.leaves]
            variable.slot.set(variable.assemble(values))
        if self.ran is None:
            return
        for variable in self.variables:
            if variable.born_inside and variable.structure is not UNSET and not variable.slot.covered:
                label = variable.slot.label
                message = f"cannot access local variable '{label}': its loop ran zero times, so it has no value"
                assert_op(self.ran.get(), message, "UnboundLocalError")


def _identifier(label: str) -> str:
    return "".join(char if char.isalnum() else "_" for char in label)


def _shape_of(structure: Any) -> str:
    leaves = flatten(structure)
    if len(leaves) == 1 and not leaves[0][0]:
        return describe(structure)
    return f"a {type(structure).__name__} of {len(leaves)} values"
