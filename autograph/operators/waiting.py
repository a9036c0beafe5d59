"""Which values wait in expressions of the functions being traced, where no variable holds them.

    change(rows[0], swap(rows))     # while `swap` is traced, only this expression still has what was `rows[0]`

They lie on the stacks of frames, which can't be looked into. The bytecode tells which places of a stack are taken, and
by what instructions; what these could reach may lie there.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from autograph.operators.by_code import remembered
from autograph.operators.calls import is_library
from autograph.operators.live import ATOMS, frames_from, places_of
from runtime.dataclass import dataclass

# Instructions that leave what they take on the stack, or only add to it.
_LOADS = ("LOAD_FAST", "LOAD_CONST", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_CLOSURE", "LOAD_CLASSDEREF", "LOAD_NAME")
_ONLY_PUSH = (
    *_LOADS, "LOAD_SMALL_INT", "LOAD_BUILD_CLASS", "LOAD_ASSERTION_ERROR", "PUSH_NULL", "COPY", "DUP_TOP",
    "RETURN_GENERATOR",
)  # fmt: skip
# Those that leave the stack alone.
_IDLE = (
    "NOP", "CACHE", "EXTENDED_ARG", "RESUME", "COPY_FREE_VARS", "MAKE_CELL", "KW_NAMES", "SETUP_FINALLY",
    "SETUP_ANNOTATIONS",
)  # fmt: skip
# Those that take one value, whatever they give.
_TAKE_ONE = ("LOAD_ATTR", "LOAD_METHOD", "UNPACK_", "FOR_ITER", "SEND", "BEFORE_", "GET_", "YIELD_VALUE", "SETUP_WITH")
# Those that give nothing.
_ONLY_TAKE = (
    "STORE_", "DELETE_", "POP_", "LIST_", "SET_", "DICT_", "MAP_ADD", "END_", "GEN_START", "RETURN_", "RAISE_",
    "RERAISE",
)  # fmt: skip
_COLLECTING = ("BUILD_LIST", "BUILD_SET", "BUILD_MAP", "BUILD_CONST_KEY_MAP")
_MANAGERS = ("BEFORE_WITH", "BEFORE_ASYNC_WITH", "SETUP_WITH", "SETUP_ASYNC_WITH", "LOAD_SPECIAL")
_IN_VARIABLES = ("LOAD_FAST", "LOAD_DEREF", "LOAD_GLOBAL", "LOAD_NAME", "LOAD_CLOSURE", "LOAD_CLASSDEREF")
_QUIET = ("CACHE", "PRECALL", "PUSH_NULL", "LOAD_CONST", "RESUME", "NOP", "COPY_FREE_VARS", "EXTENDED_ARG")

Originals = Callable[[Any], Iterable[Any]]


@dataclass(frozen=True)
class _Place:
    """A place of a stack that is taken while an instruction runs.

    names     the variables that its value was made of
    is_plain  whether the value is that of the variable itself, or a method of it
    last      the instruction that takes it
    """

    names: tuple[str, ...]
    is_plain: bool
    last: int


Expression = tuple[int, CodeType, int, int]


def may_wait(value: Any, originals: Originals) -> bool:
    """Whether an expression of a function that is being traced may have an object that it has not used yet.

    originals: what a copy stands for, which expressions may have had before it.
    """
    return any(_reaches(held, place, value, originals) for _, place, held in _waiting(sys._getframe(1)))


def expressions_with(values: Iterable[Any]) -> list[Expression]:
    """The expressions that may have one of some objects: for each its frame's id and code, and where it stands."""
    values = list(values)
    return [
        (id(frame), frame.f_code, frame.f_lasti, place.last)
        for frame, place, held in _waiting(sys._getframe(1))
        if any(_reaches(held, place, value, lambda _: ()) for value in values)
    ]


def are_running(expressions: Iterable[Expression]) -> bool:
    """Whether one of some expressions has not used its values yet."""
    frames = {id(frame): frame for frame in frames_from(sys._getframe(1))}
    return any(
        key in frames and frames[key].f_code is code and first <= frames[key].f_lasti <= last
        for key, code, first, last in expressions
    )


def _waiting(frame: FrameType) -> Iterator[tuple[FrameType, _Place, list[Any]]]:
    """The places of the stacks that may have a container, each with the values of its variables."""
    for each in frames_from(frame):
        places = _places_at(each.f_code, each.f_lasti)
        variables = each.f_locals if places else {}
        for place in places:
            values = [variables[name] if name in variables else each.f_globals.get(name) for name in place.names]
            held = [value for value in values if type(value) not in ATOMS and not _is_harmless(value)]
            if held:
                yield each, place, held


def _reaches(held: list[Any], place: _Place, value: Any, originals: Originals) -> bool:
    if not place.is_plain:
        return _reach(held, value, originals)
    return any(each is value or any(before is value for before in originals(each)) for each in held)


def _is_harmless(found: Any) -> bool:
    return isinstance(found, (type, ModuleType)) or (type(found) is FunctionType and is_library(found))


def _reach(held: list[Any], value: Any, originals: Originals) -> bool:
    """Whether an object can be reached from others, through what copies among these stand for, and globals."""
    waiting, seen = list(held), {id(each): each for each in held}
    while waiting:
        each = waiting.pop()
        if each is value:
            return True
        if _is_harmless(each):
            continue
        places = places_of(each)
        items = list(() if places is None else places.values() if hasattr(places, "values") else places)
        if type(each) is FunctionType:
            items += _globals_of(each.__code__, each.__globals__)
        for item in [*items, *originals(each)]:
            if type(item) not in ATOMS and id(item) not in seen:
                seen[id(item)] = item
                waiting.append(item)
    return False


def _globals_of(code: CodeType, namespace: dict[str, Any]) -> Iterator[Any]:
    for name in code.co_names:
        if name in namespace and not isinstance(namespace[name], ModuleType):
            yield namespace[name]
    for nested in code.co_consts:
        if isinstance(nested, CodeType):
            yield from _globals_of(nested, namespace)


# --- the bytecode ---------------------------------------------------------------------------------------------------


@remembered(1024)
def _places_at(code: CodeType, here: int) -> tuple[_Place, ...]:
    """The places of the stack below the operands of the instruction at an offset that may have a container."""
    instructions, depths = _layout(code)
    position = max((i for i, each in enumerate(instructions) if each.offset <= here), default=0)
    if position and instructions[position].opname == "RESUME" and instructions[position - 1].opname == "YIELD_VALUE":
        position -= 1  # a generator that waits stands behind its `yield` since Python 3.13: what it gave isn't there
    below = _below(instructions[position], depths)
    if below is None:
        return ()
    found = []
    for level in range(below):
        place = _place(code, level, position)
        if place.names:
            found.append(place)
    return tuple(found)


def _place(code: CodeType, level: int, position: int) -> _Place:
    instructions, depths = _layout(code)
    first = position
    while first > 0 and depths.get(instructions[first].offset, level + 1) > level:
        first -= 1
    made = [i for i in range(first, position) if _reaches_down_to(instructions[i], depths, level)]
    last = next(
        (i for i in range(position + 1, len(instructions)) if _reaches_down_to(instructions[i], depths, level)),
        len(instructions) - 1,
    )
    end = instructions[last].offset
    its = instructions[first : made[-1] + 1] if made else []
    if its and its[-1].opname in _COLLECTING:
        its = instructions[first : last + 1]  # a display or comprehension, with what it has got so far
    if its and its[-1].opname in _MANAGERS:
        its = []  # what a `with` statement holds is known: `live.pending`
    its = [each for each in its if not each.opname.startswith(_QUIET)]
    reads = [each for each in its if each.opname.startswith(_IN_VARIABLES)]
    names = [name for each in reads for name in (each.argval if isinstance(each.argval, tuple) else (each.argval,))]
    rest = [each for each in its if each not in reads]
    if names[:1] == ["ag__"] and len(names) == 2:  # a function that is about to be called
        is_plain = _callee(rest)
    else:
        is_plain = all(each.opname == "GET_ITER" for each in rest)
    return _Place(tuple(dict.fromkeys([name for name in names if name != "ag__"])), is_plain, end)


def _callee(rest: list[dis.Instruction]) -> bool:
    """Whether these get ``ag__.converted_call(f)`` or ``ag__.converted_call(x.f)``."""
    kinds = [each.opname for each in rest]
    attributes = [each.argval for each in rest if each.opname in ("LOAD_ATTR", "LOAD_METHOD")]
    return attributes[:1] == ["converted_call"] and len(attributes) <= 2 and len(kinds) - len(attributes) == 1


def _reaches_down_to(instruction: dis.Instruction, depths: dict[int, int], level: int) -> bool:
    """Whether an instruction takes, or gives, the value at a place of the stack."""
    below = _below(instruction, depths)
    return below is not None and below <= level


def _below(instruction: dis.Instruction, depths: dict[int, int]) -> int | None:
    """How many values on the stack an instruction leaves alone; None where it isn't known."""
    before = depths.get(instruction.offset)
    if before is None:
        return None
    name = instruction.opname
    if name == "STORE_FAST_LOAD_FAST":
        return before - 1
    if name.startswith((*_ONLY_PUSH, *_IDLE)):
        return before
    if name.startswith(_TAKE_ONE):
        return before - 1
    if name.startswith(("SWAP", "ROT_")):
        return before - (instruction.arg or 2)
    after = before + _effect(instruction, False)
    return after if name.startswith(_ONLY_TAKE) or "JUMP" in name else after - 1


def _effect(instruction: dis.Instruction, jump: bool) -> int:
    if instruction.opname == "RETURN_GENERATOR":
        return 1  # what is sent to the generator, of which `stack_effect` knows nothing before Python 3.13
    argument = instruction.arg if instruction.opcode >= dis.HAVE_ARGUMENT else None
    return dis.stack_effect(instruction.opcode, argument, jump=jump)


@remembered(256)
def _layout(code: CodeType) -> tuple[list[dis.Instruction], dict[int, int]]:
    """The instructions of a function, and how many values are on the stack before each, by its offset."""
    instructions = list(dis.get_instructions(code))
    positions = {each.offset: position for position, each in enumerate(instructions)}
    depths: dict[int, int] = {}
    # A generator of Python 3.10 starts with what is sent to it.
    waiting = [(0, 1 if instructions[0].opname == "GEN_START" else 0)]
    for entry in getattr(dis.Bytecode(code), "exception_entries", ()):
        waiting.append((entry.target, entry.depth + 1 + bool(entry.lasti)))
    while waiting:
        offset, depth = waiting.pop()
        position = positions.get(offset)
        while position is not None and position < len(instructions):
            each = instructions[position]
            if each.offset in depths:
                break
            depths[each.offset] = max(depth, 0)
            if each.opcode in dis.hasjrel or each.opcode in dis.hasjabs:
                waiting.append((each.argval, depth + _effect(each, True)))
            if each.opname in _ENDS:
                break
            depth = depth + _effect(each, False)
            position += 1
    return instructions, depths


_ENDS = (
    "RETURN_VALUE",
    "RETURN_CONST",
    "RAISE_VARARGS",
    "RERAISE",
    "JUMP_FORWARD",
    "JUMP_ABSOLUTE",
    "JUMP_BACKWARD",
    "JUMP_BACKWARD_NO_INTERRUPT",
)
