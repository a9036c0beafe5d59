"""`Choice`: one of several known Python objects; which of them, is known only when the program runs.

    phase = Phase.IDLE
    if x > 1.0:
        phase = Phase.BUSY          # a choice: one of (Phase.IDLE, Phase.BUSY), at the index cond(x > 1.0, 1, 0)

A member of an enum, or a function or class of a module, that a staged branch or loop exchanges becomes one. The
alternatives are these themselves, and None; the program holds the index. What Python code asks of a choice, choosing.py
answers. To branches and loops it is a container of one tensor, its index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import EnumMeta, Flag
from types import BuiltinFunctionType, FunctionType
from typing import Any, NoReturn

from autograph.errors import StagingTypeError, user_location
from autograph.operators.absence import absences, guarded, plain
from autograph.operators.structure import New, Which, children, rebuild, same_structure
from runtime import dtypes, nest
from runtime.context import ctx
from runtime.dtypes import DType
from runtime.ops.arrays.gather import gather
from runtime.ops.convert import convert_to_tensor, is_tensor_like
from runtime.ops.elementwise.compare import equal, logical_not, logical_or, where
from runtime.ops.staged_number import is_text
from runtime.ops.strings.staged_string import StagedString, StandsForString
from runtime.tensor import DeviceTensor, EagerTensor

# More alternatives than these are a sign of values that never repeat.
_MOST = 256
# A loop expects all members of an enum of at most so many as soon as it has met two of them.
_SMALL = 64
# Fewer values are selected by comparisons, which need no array.
_FEW = 8


class Alternatives(tuple[Any, ...]):
    """Objects that a program chooses from; each is there once."""

    __slots__ = ()

    @classmethod
    def of(cls, *values: Any) -> Alternatives:
        """What some values may be."""
        found: dict[Any, Any] = {}
        for value in values:
            for each in value.ag_alternatives if isinstance(value, Choice) else (value,):
                found.setdefault(_key(each), each)
        return cls(found.values())

    @property
    def are_texts(self) -> bool:
        """Whether all of them are strings."""
        return all(type(each) is str for each in self)

    def position(self, value: Any) -> int:
        key = _key(value)
        return next(index for index, each in enumerate(self) if _key(each) == key)

    def covers(self, value: Any) -> bool:
        """Whether a value is one of them, or a choice of them."""
        return all(each in self for each in Alternatives.of(value))

    def __contains__(self, value: object) -> bool:
        key = _key(value)
        return any(_key(each) == key for each in self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Alternatives) and [*map(_key, self)] == [*map(_key, other)]

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(tuple(map(_key, self)))


def _key(value: Any) -> Any:
    """The key that identifies an alternative: a string's content, any other object's id."""
    return value if type(value) is str else id(value)


class Choice:
    """One of some objects. Its own attributes have names that no program uses: all others are those of the objects.

    ag_index          a scalar tensor: the position of the object
    ag_alternatives   the objects
    ag_is_made        whether some of them were computed from those of another choice, as strings are
    """

    __slots__ = ("ag_index", "ag_alternatives", "ag_is_made", "__weakref__")
    __ag_priority__ = 1  # tensors leave their operators to it

    ag_index: Any
    ag_alternatives: Alternatives
    ag_is_made: bool

    def __new__(cls, index: Any, alternatives: Alternatives, is_made: bool = False) -> Choice:
        return object.__new__(TextChoice if alternatives.are_texts else cls)

    def __init__(self, index: Any, alternatives: Alternatives, is_made: bool = False) -> None:
        object.__setattr__(self, "ag_index", index)
        object.__setattr__(self, "ag_alternatives", alternatives)
        object.__setattr__(self, "ag_is_made", is_made)

    def __tf_flatten__(self) -> tuple[Alternatives, tuple[Any, ...]]:
        return self.ag_alternatives, (self.ag_index,)

    @classmethod
    def __tf_unflatten__(cls, metadata: Alternatives, components: Any) -> Any:
        (index,) = components
        return metadata[int(index)] if isinstance(index, (EagerTensor, DeviceTensor)) else Choice(index, metadata)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The class that all of the objects have: patterns and code of C ask for it. Of classes it isn't a class."""
        kinds = {type(each) for each in self.ag_alternatives}
        kind = kinds.pop()
        return kind if not kinds and not issubclass(kind, (FunctionType, BuiltinFunctionType, type)) else Choice

    def __repr__(self) -> str:
        return f"<one of {', '.join(map(str, self.ag_alternatives))}>"

    def __copy__(self) -> Choice:
        return self

    def __deepcopy__(self, memo: Any) -> Choice:
        return self

    def __hash__(self) -> int:
        refuse(self, "is the key of a dictionary or an element of a set", "look it up with d[k], d.get(k) or `in`")

    def __setattr__(self, name: str, value: Any) -> None:
        refuse(self, f"has its attribute '{name}' set", "set it in the branches that choose the object")

    def __delattr__(self, name: str) -> None:
        refuse(self, f"has its attribute '{name}' deleted", "delete it in the branches that choose the object")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        refuse(self, "is used as a tensor", "use its `.value`, or int(...) of it")


@nest.leaf
class TextChoice(StandsForString, Choice):
    """One of some strings. It becomes a string tensor where one is asked for."""

    __slots__ = ()

    def wide(self) -> Any:
        return constant_of(self, self.ag_alternatives, dtypes.string)


def refuse(choice: Choice, what: str, fix: str) -> NoReturn:
    """Raises the error for something that can't be done with a choice."""
    raise StagingTypeError(
        f"a value that a tensor chooses, {choice!r}, {what}",
        location=user_location(),
        cause="which object it is, is known only when the program runs",
        fix=fix,
    )


def holds(choice: Choice, positions: Iterable[int]) -> Any:
    """Whether the object is one of those at some positions: a bool, or a boolean tensor."""
    wanted = set(positions)
    others = set(range(len(choice.ag_alternatives))) - wanted
    if not (wanted and others):
        return not others
    found: Any = None
    for position in sorted(wanted if len(wanted) <= len(others) else others):
        same = equal(choice.ag_index, position)
        found = same if found is None else logical_or(found, same)
    return found if len(wanted) <= len(others) else logical_not(found)


def truth_of(choice: Choice) -> Any:
    """``bool(choice)``: a bool, or a boolean tensor."""
    return holds(choice, [position for position, each in enumerate(choice.ag_alternatives) if each])


def texts_of(choice: Choice, show: Callable[[Any], str]) -> tuple[Any, tuple[str, ...]]:
    """The text that a function gives for the object, as a piece of a `StagedText`."""
    return choice.ag_index, tuple([show(each) for each in choice.ag_alternatives])


def constant_of(choice: Choice, values: Sequence[Any], dtype: DType) -> Any:
    """The scalar tensor with the one of some values that stands at the position of the object."""
    if len(values) > _FEW:
        return gather(convert_to_tensor(list(values), dtype), choice.ag_index)
    found = convert_to_tensor(values[-1], dtype)
    for position, value in reversed(list(enumerate(values[:-1]))):
        found = where(equal(choice.ag_index, position), convert_to_tensor(value, dtype), found)
    return found


def among(choice: Choice, alternatives: Alternatives) -> Choice:
    """The same object as a choice among other alternatives: more of them, or fewer, without those that it can't be."""
    places = [alternatives.position(each) if each in alternatives else 0 for each in choice.ag_alternatives]
    if places == list(range(len(places))):
        return Choice(choice.ag_index, alternatives, choice.ag_is_made)
    index = choice.ag_index
    moved = constant_of(Choice(plain(index), choice.ag_alternatives), places, dtypes.int32)
    return Choice(guarded(moved, absences(index, ctx.builder)), alternatives, choice.ag_is_made)


def is_member(value: Any) -> bool:
    """Whether a value is a member of an enum."""
    return isinstance(type(value), EnumMeta)


def is_choosable(value: Any) -> bool:
    """Whether a value can be an alternative beside others, or is a choice."""
    return isinstance(value, Choice) or type(value) in (str, Which, New) or is_member(value) or _is_of_module(value)


def _is_of_module(value: Any) -> bool:
    """Whether a value is a function or class that there is once: one made in a function may be another at each call."""
    return isinstance(value, (FunctionType, BuiltinFunctionType, type)) and "<locals>" not in value.__qualname__


def holds_choice(value: Any) -> bool:
    """Whether a member of an enum, or a choice that no tensor can be, is somewhere in a structure."""
    if is_text(value):  # which a string tensor holds as well
        return False
    return is_choosable(value) or any(holds_choice(item) for _, item in children(value) or ())


def are_alternatives(one: Any, other: Any) -> bool:
    """Whether a choice can stand for two values."""
    if is_choosable(one):
        return other is None or is_choosable(other)
    return one is None and is_choosable(other)


def as_choice(value: Any, alternatives: Alternatives) -> Choice:
    """A choice for a value, which is one of the alternatives or a choice of some of them."""
    if isinstance(value, Choice):
        return among(value, alternatives)
    return Choice(convert_to_tensor(alternatives.position(value), dtypes.int32), alternatives)


def as_string(text: Any) -> StagedString:
    """A string, known or not, as one that a tensor holds."""
    return text if type(text) is StagedString else StagedString(convert_to_tensor(text, dtypes.string))


def with_strings(value: Any) -> Any:
    """A structure with strings that tensors hold in the place of choices of strings and of texts."""
    if is_text(value):
        return value if type(value) is str else as_string(value)
    return _rebuilt(value, lambda _, item: with_strings(item))


# --- variables of loops --------------------------------------------------------------------------------------------

# What a variable's parts may be, by their labels.
Known = Mapping[str, Alternatives]
# Strings of which no list is known: a string tensor holds them.
UNBOUNDED = Alternatives()


def with_choices(value: Any, label: str, known: Known) -> Any:
    """A value with choices in the places of which a loop knows that other objects come there."""
    if not known:
        return value
    if label in known and known[label] is UNBOUNDED:
        return as_string(value) if is_text(value) else value
    if (is_choosable(value) or value is None) and label in known:
        # A place that holds something else than what it held when that was found out is found out about again.
        return as_choice(value, known[label]) if known[label].covers(value) else value
    return _rebuilt(value, lambda key, item: with_choices(item, label + key, known))


def like_choices(structure: Any, value: Any) -> Any:
    """A value with choices in the places where a structure like it has them."""
    if type(structure) is StagedString:
        return as_string(value) if is_text(value) else value
    if isinstance(structure, Choice):
        return as_choice(value, structure.ag_alternatives) if structure.ag_alternatives.covers(value) else value
    if isinstance(value, Choice) or children(structure) is None or children(value) is None:
        return value
    if not same_structure(structure, value):
        return value
    held = dict(children(structure) or ())
    return _rebuilt(value, lambda key, item: like_choices(held[key], item))


def with_new(value: Any, new: New) -> Any:
    """A value with ``new`` in the place of all objects, by their identity, that weren't there before the loop."""
    kind = type(value)
    if kind is Which or kind is New:
        return new if kind is New or not new.is_outside(value.object) else value
    if issubclass(kind, Choice):
        found = [with_new(each, new) for each in value.ag_alternatives]
        if all(a is b for a, b in zip(found, value.ag_alternatives)):
            return value
        alternatives = Alternatives.of(*found)
        places = [alternatives.position(each) for each in found]
        return Choice(constant_of(value, places, dtypes.int32), alternatives)
    return _rebuilt(value, lambda key, item: with_new(item, new))


def outgrown(structure: Any, value: Any, label: str) -> dict[str, Alternatives]:
    """Where a structure has one object, or a choice, and a value another one: what there may be, by label."""
    if structure is value:
        return {}
    if is_text(structure) and not is_choosable(value):
        # A string that isn't among known ones, or a tensor.
        return {label: UNBOUNDED} if isinstance(structure, Choice) and is_tensor_like(value) else {}
    if are_alternatives(structure, value):
        if isinstance(structure, Choice) and structure.ag_alternatives.covers(value):
            return {}
        found = Alternatives.of(structure, value)
        if Alternatives([each for each in found if each is not None]).are_texts and (
            len(found) > _MOST or (isinstance(value, Choice) and value.ag_is_made)
        ):
            # Each iteration may make another string of the one before it.
            return {label: UNBOUNDED}
        return {label: _all_of(found)} if len(found) > 1 else {}
    if is_choosable(structure) or is_choosable(value):
        return {}
    first, second = children(structure), children(value)
    if first is None or second is None or not same_structure(structure, value):
        return {}
    parts: dict[str, Alternatives] = {}
    for (key, held), (_, item) in zip(first, second):
        parts |= outgrown(held, item, label + key)
    return parts


def _all_of(alternatives: Alternatives) -> Alternatives:
    """With the other members of small enums: so a loop needs one more trace, however many of them it meets."""
    members: list[Any] = []
    for kind in dict.fromkeys(map(type, alternatives)):
        if isinstance(kind, EnumMeta) and Flag not in kind.__mro__ and len(kind) <= _SMALL:
            members += kind.__members__.values()
    found = Alternatives.of(*alternatives, *members)
    if len(found) > _MOST:
        raise StagingTypeError(
            f"a loop on tensors chooses between more than {_MOST} objects, such as {found[0]!r} and {found[-1]!r}",
            location=user_location(),
            cause="the program holds the position of the chosen object in a list that is made while tracing",
            fix="compute with numbers: the `.value` of a flag, or an index of your own",
        )
    return found


def _rebuilt(value: Any, change: Callable[[str, Any], Any]) -> Any:
    items = children(value) if not isinstance(value, Choice) else None
    if not items:
        return value
    made = [change(key, item) for key, item in items]
    return value if all(a is b for a, (_, b) in zip(made, items)) else rebuild(value, made)
