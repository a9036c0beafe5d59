"""What a staged loop carries: the variables it may change, and the tensor-sized parts that they are made of."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

from autograph.errors import StagingTypeError, StagingValueError, user_location
from autograph.operators.absence import NONE, UNBOUND, Absence, absences, guarded, no_iteration, plain
from autograph.operators.arrays import note_chosen, view_error
from autograph.operators.choices import Known, with_choices
from autograph.operators.containers import is_list, staged_list, unwrapped
from autograph.operators.state import UNSET, Slot, text_of
from autograph.operators.structure import (
    IDENTITY,
    children,
    flatten,
    map_leaves,
    open_class,
    rebuild,
    same_fixed_parts,
    same_structure,
)
from autograph.operators.symbolic import describe, is_tensorable, is_weak, number_of, placeholder, type_of
from runtime import dtypes, nest
from runtime.context import ctx
from runtime.dtypes import DType
from runtime.extension_types.values import ExtensionType
from runtime.ops.convert import convert_to_tensor, has_dtype, is_tensor_like
from runtime.ops.elementwise.elementary import cast
from runtime.ops.flags import flagged, is_flag
from runtime.ops.host_array import HostArray
from runtime.ops.staged_number import kind_of, staged_value
from runtime.staged_array import StagedArray
from runtime.staged_list import Numbers, StagedList
from runtime.tensor import SymbolicTensor, Tensor
from runtime.tensor_array import TensorArray
from runtime.types import TensorType


class Leaf:
    """One tensor-sized part of a variable: ``carried`` by the loop with a ``type``, or a Python value throughout.

    number   if it holds a Python number, the dtype that this has where nothing else decides
    is_flag  whether it holds Python bools only, as far as is known
    is_array    whether it holds numbers of NumPy's only, which take the dtype of a tensor that they meet
    flags    for each way in which it may be absent the boolean leaf that tells whether it is there (see absence.py)
    """

    def __init__(self, label: str, init: Any) -> None:
        self.label = label
        self.init = init
        self.carried = False
        self.flexible = False  # the buffer of a staged list of Python numbers: takes the dtype of what is stored
        self.guessed = False  # a Python number made a carry before anything has shown that it changes
        self.type: TensorType | None = None
        self.number: DType | None = None
        self.is_flag = False
        self.is_array = False
        self.python_kind: type | None = None  # of what is there on some ways, if it is a tensor on others
        self.given: list[Any] = []  # the Python bools that stood for it
        self.flags: dict[tuple[str, int], Leaf] = {}
        self.absence: Absence | None = None  # what a flag tells

    def may_be_absent(self, absence: Absence, present: Any) -> bool:
        """Adds a flag, which starts as ``present``; gives whether it was there already."""
        if absence.key in self.flags:
            return True
        flag = self.flags[absence.key] = Leaf(f"{self.label}_present", present)
        flag.absence = absence
        flag.carry(TensorType(dtypes.bool_, ()))
        return False

    def described(self) -> Hashable:
        """A key of everything that the variable's type may depend on before the loop is traced."""
        init = None if is_tensor_like(self.init) else (type(self.init), text_of(self.init))
        kind = self.type, self.number, self.is_flag, self.is_array
        return self.label, kind, init, tuple(self.flags), self.absence is not None

    def resume(self, before: Leaf) -> None:
        """Takes the type that the same leaf had at the end of an earlier trace."""
        self.carried, self.type, self.number = before.carried, before.type, before.number
        self.is_flag, self.is_array = before.is_flag, before.is_array
        self.python_kind = before.python_kind
        self.flexible, self.guessed = before.flexible, False
        for key, flag in before.flags.items():
            if key not in self.flags:
                assert flag.absence is not None
                self.may_be_absent(flag.absence, flag.init)

    def carry(self, type_: TensorType, number: DType | None = None) -> None:
        self.carried, self.type, self.number = True, type_, number

    def carry_like(self, value: Any) -> None:
        self.carry(type_of(value), number_of(value))
        self.is_flag, self.is_array = is_flag(value), type(value) is HostArray

    def holding(self, tensor: Any) -> Any:
        """The value that the variable has in the body, given the tensor that the loop carries for it."""
        if self.is_flag:
            self.given.append(flagged(tensor, self.init))
        elif self.python_kind is not None and self.number is None:
            tensor.chosen = None, self.python_kind(), SymbolicTensor(tensor.value, tensor.builder)
        if self.is_array:
            return HostArray(tensor)
        return tensor if self.number is None else staged_value(tensor, self.number)

    def note_kind(self, result: Any) -> bool:
        """Notes whether a tensor and a Python value come to stand in its place; gives whether that is new."""
        before = self.python_kind
        values = [each for each in (self.init, result) if each is not UNSET]
        found = [kind for each in values for kind in _kinds(each)]
        if None in found:
            self.python_kind = next((kind for kind in found if kind is not None), before)
        return self.python_kind is not before

    def is_no_flag(self) -> bool:
        """Notes that it may hold a boolean tensor that is no Python bool; gives whether a trace has relied on that."""
        is_used = self.is_flag and any(each.flag.is_used for each in self.given)
        self.is_flag = False
        return is_used

    def meet_first(self, result: Any) -> None:
        """Takes what the first traced iteration ends with that changes it."""
        self.meet(result)
        self.note_kind(result)

    def meet(self, result: Any) -> bool:
        """Takes what an iteration ends with; gives whether it still holds, or doesn't, numbers of NumPy's only."""
        before = self.is_array
        self.is_array = (before or is_weak(self.init)) and (type(result) is HostArray or (before and is_weak(result)))
        return self.is_array == before

    def start(self) -> Any:
        """What a carry starts from."""
        assert self.type is not None
        if self.init is UNSET:
            return placeholder(self.type)
        if has_dtype(self.init) and type_of(self.init).dtype is not self.type.dtype:
            return cast(self.init, self.type.dtype)  # Python numbers in a list
        return convert_to_tensor(self.init, self.type.dtype)


def _kinds(value: Any) -> list[type | None]:
    """The class of a Python value, None for a tensor; both for a tensor that was chosen from two such."""
    if is_weak(value) or is_flag(value):
        return [bool if is_flag(value) else kind_of(value)]
    chosen = value.chosen if type(value) is SymbolicTensor else None
    return [None] if chosen is None else [kind for side in chosen[1:] for kind in _kinds(side)]


def _holds_array(value: Any) -> bool:
    if isinstance(value, TensorArray):
        return True
    return type(value) in (list, tuple, dict) and any(map(_holds_array, nest.children(value)))


class Variable:
    """A variable of the loop: a structure of leaves; UNSET or None as its structure while it has no value.

    choices: what its parts may be that are exchanged for other objects.
    """

    def __init__(self, slot: Slot, choices: Known) -> None:
        self.slot = slot
        self.choices = choices
        self.initial: Any = slot.get()
        self.structure = with_choices(self.initial, slot.label, choices)
        self.born_inside = self.structure is UNSET
        found = [] if self.born_inside else flatten(self.structure, slot.label)
        self.parts = [Leaf(label, plain(value)) for label, value in found]
        for leaf, (_, value) in zip(self.parts, found):
            for absence in absences(value, ctx.builder):
                leaf.may_be_absent(absence, absence.present)
        for leaf, number in zip(self.parts, self.numbers or ()):
            leaf.flexible = number is not None

    @property
    def leaves(self) -> list[Leaf]:
        """The parts and their flags."""
        return [each for leaf in self.parts for each in (leaf, *leaf.flags.values())]

    @property
    def numbers(self) -> Numbers:
        """The default dtypes of the Python numbers in a staged list; None for a variable that isn't one."""
        return self.structure.numbers if isinstance(self.structure, StagedList) else None

    @numbers.setter
    def numbers(self, numbers: Numbers) -> None:
        if isinstance(self.structure, StagedList):
            self.structure = self.structure.with_numbers(numbers)

    @property
    def awaits_elements(self) -> bool:
        """Whether it holds a TensorArray without elements: their shape isn't known until the body has written one."""
        return any(leaf.init is UNSET and not leaf.carried for leaf in self.parts) and _holds_array(self.initial)

    def guess(self, numbers: bool = True) -> None:
        """Chooses what is a carry before any trace. numbers: whether Python's integers are."""
        for leaf in self.parts:
            if is_tensor_like(leaf.init):
                leaf.carry_like(leaf.init)
            elif numbers and type(leaf.init) in (int, bool):
                # Counters and flags: nearly always changed, and then with this type. A wrong guess costs a trace.
                leaf.carry_like(leaf.init)
                leaf.guessed = True

    @property
    def lacks_value(self) -> bool:
        """Whether it has no value, or None, as far as is known."""
        return self.structure is UNSET or self.structure is None

    def described(self) -> Hashable:
        """All that is known of its types."""
        if self.lacks_value:
            return text_of(self.structure)
        return self.numbers, tuple(
            [(each.described(), each.carried, each.guessed, each.flexible) for each in self.leaves]
        )

    def resume(self, structure: Any, parts: Sequence[Leaf], numbers: Numbers) -> None:
        """Takes what the same variable, which started alike, had at the end of an earlier trace."""
        if self.lacks_value:
            label = self.slot.label
            if [key for key, _ in flatten(structure, label)] != [leaf.label for leaf in parts]:
                return  # objects in it have come to count by their attributes since
            self.structure = map_leaves(structure, lambda leaf: leaf)  # a container of its own
            self.parts = [Leaf(leaf.label, leaf.init) for leaf in parts]
        elif len(self.parts) != len(parts):
            return
        for leaf, known in zip(self.parts, parts):
            leaf.resume(known)
        if numbers is not None:
            self.numbers = numbers

    def adopt(self, value: Any) -> None:
        """Takes the structure of the value that the body gives to a variable that has none before the loop."""
        kind = NONE if self.initial is None else None if self.slot.covered or self.slot.is_listed else UNBOUND
        value = with_choices(value, self.slot.label, self.choices)
        self.structure = value
        self.parts = [Leaf(label, UNSET) for label, _ in flatten(value, self.slot.label)]
        for leaf, (_, found), level in zip(self.parts, flatten(value), levels(value)):
            if not is_tensorable(found):
                leaf.init = found
                continue
            leaf.carry_like(found)
            if kind is not None:
                label = self.slot.label
                reason = no_iteration(label) if kind is UNBOUND else ""
                leaf.may_be_absent(Absence(kind, level, None, label, user_location(), reason=reason), False)

    def is_flagged(self) -> bool:
        """Whether all that the variable can lack is told by flags."""
        return any(leaf.flags for leaf in self.parts)

    def may_be_none(self) -> bool:
        """Whether a variable that has a value can become None: it consists of tensors and numbers."""
        return all(is_tensorable(leaf.init) or leaf.carried for leaf in self.parts) and not any(
            isinstance(leaf.init, (str, bytes)) for leaf in self.parts
        )

    def nones(self) -> list[Absence]:
        """For each part that the variable is None."""
        return [Absence(NONE, level, False, self.slot.label, user_location()) for level in levels(self.structure)]

    def match(self, value: Any) -> list[Any]:
        """The values of the variable's leaves after the body. Raises StagingError if the structure has changed."""
        label = self.slot.label
        if value is UNSET:
            raise StagingValueError(
                f"'{label}' loses its value in a loop on tensors",
                location=user_location(),
                cause="the loop's next iteration or the code after it may use the variable",
                fix=f"don't delete '{label}' in the loop",
            )
        found = flatten(value, label)
        labels = [leaf.label for leaf in self.parts]
        if [key for key, _ in found] != labels or not same_fixed_parts(self.structure, value):
            if [key for key, _ in flatten(self.structure, label)] != labels:
                raise NeedsAttributes  # a branch of the body has exchanged objects of the class
            if (error := view_error(f"'{label}'", self.structure, value)) is not None:
                raise error
            raise StagingTypeError(
                f"'{label}' does not have the same nested structure before and after an iteration of a loop on "
                f"tensors: {shape_of(self.structure)} before, {shape_of(value)} after",
                location=user_location(),
                cause="the number of iterations is known only at run time, so every iteration must keep the structure",
                fix="collect values in an ag.TensorArray, or keep the lengths of lists and tuples",
            )
        for leaf, (_, each) in zip(self.parts, found):
            note_chosen(leaf.init, each)
        return [each for _, each in found]

    def assemble(self, read: Callable[[Leaf], Any]) -> Any:
        """The variable's value from those of its leaves."""
        if self.structure is UNSET:
            return UNSET
        if [key for key, _ in flatten(self.structure, self.slot.label)] != [leaf.label for leaf in self.parts]:
            raise NeedsAttributes  # the body has exchanged objects of a class in there
        remaining = iter(self.parts)
        return map_leaves(self.structure, lambda _: _with_guard(next(remaining), read))


def levels(value: Any, level: int = 0) -> list[int]:
    """For each leaf of a structure how many containers it is in."""
    items = children(value)
    return [level] if items is None else [each for _, item in items for each in levels(item, level + 1)]


def _with_guard(leaf: Leaf, read: Callable[[Leaf], Any]) -> Any:
    found = []
    for flag in leaf.flags.values():
        assert flag.absence is not None
        present = read(flag)
        if present is not True:
            found.append(replace(flag.absence, present=present))
    return guarded(read(leaf), found)


def identifier(label: str) -> str:
    """A label as the name of a graph's value."""
    return "".join(char if char.isalnum() else "_" for char in label)


def shape_of(structure: Any) -> str:
    """A structure in words."""
    leaves = [leaf for leaf in flatten(structure) if IDENTITY not in leaf[0]]
    if (len(leaves) == 1 and not leaves[0][0]) or isinstance(structure, ExtensionType):
        return describe(structure)
    return f"a {type(structure).__name__} of {len(leaves)} values"


def as_staged(label: str, structure: Any, value: Any, builder: Any) -> Any:
    """A value with staged lists in the place of Python's where the structure from before has staged ones, and arrays in
    the place of tensors.

    builder: of the loop's body, which makes them.
    """
    if type(structure) is StagedArray and isinstance(value, Tensor):
        return StagedArray(value)
    if isinstance(structure, StagedList) and type(value) is list:
        with builder:
            return staged_list(label, value, (), structure)
    pairs = _items_of_both(structure, value)
    items = [as_staged(label + key, held, item, builder) for key, held, item in pairs]
    return value if all(a is item for a, (_, _, item) in zip(items, pairs)) else rebuild(value, items)


def first_outgrown(label: str, structure: Any, value: Any) -> tuple[str, list[Any], Any] | None:
    """The first Python list in a structure that must become a staged one: another length, or staged, in the value.

    With its label, and what is in its place in the value.
    """
    if type(structure) is list and is_list(value) and (type(value) is not list or len(value) != len(structure)):
        return label, structure, value
    for key, held, item in _items_of_both(structure, value):
        found = first_outgrown(label + key, held, item)
        if found is not None:
            return found
    return None


def with_staged_lists(label: str, structure: Any, value: Any) -> Any:
    """A value with staged lists in the place of Python's that are longer or shorter in a structure from before."""
    if type(structure) is list and is_list(value) and (type(value) is not list or len(value) != len(structure)):
        return staged_list(label, value, structure) if type(value) is list else value
    pairs = _items_of_both(structure, value)
    items = [with_staged_lists(label + key, held, item) for key, held, item in pairs]
    return rebuild(value, items) if pairs else value


def _items_of_both(structure: Any, value: Any) -> list[tuple[str, Any, Any]]:
    """The items of two containers of one kind, with their keys; none if they are of two."""
    first, second = children(structure), children(value)
    if first is None or second is None or isinstance(structure, StagedList) or not same_structure(structure, value):
        return []
    return [(key, held, item) for (key, held), (_, item) in zip(first, second)]


class NeedsAttributes(Exception):
    """An object has been exchanged for another of its class: from now on they count by their attributes."""


def changes_kind(leaf: Leaf, result: Any) -> Exception:
    """The error for a variable that holds something after an iteration that can't be exchanged for what it held."""
    if open_class(leaf.init, result):
        return NeedsAttributes()
    held, result = unwrapped(leaf.init), unwrapped(result)
    before, after = describe(held), describe(result)
    fix = f"give '{leaf.label}' a tensor before the loop, or don't set it in the loop"
    kind = type(result).__name__
    if type(held) is type(result) and isinstance(result, (list, dict)):
        before, after = f"one {kind}", "another one"
        fix = f"set the items of '{leaf.label}' instead of exchanging it, or make it a tensor"
    elif type(held) is type(result) and hasattr(result, "__dict__"):
        before, after = f"one {kind}", "another one"
        fix = f"set the attributes of '{leaf.label}' instead of exchanging it, or give both the same attributes"
    return StagingTypeError(
        f"'{leaf.label}' is {before} before a loop on tensors and {after} after an iteration",
        location=user_location(),
        cause="how often the loop runs is known only at run time, and only numbers and tensors can change",
        fix=fix,
    )
