"""What the bytecode of functions tells. No other module reads it.

Bytecode is the interpreter's own business, and each version of CPython has other instructions. Here are the rules of
3.10 to 3.15. Before they are relied on, `interpreter.understands` says whether they hold for a code object: every
instruction of it must be one of those below, and the rules must have given the right answers for a few known functions.
Who asks for more than `is_at` and `names_written` has an answer for the other case.
"""

from __future__ import annotations

import dis
import inspect
import sys
from types import CodeType
from typing import Any, NamedTuple

from runtime.code_memos import remembered

_NAMES = """
ANNOTATIONS_PLACEHOLDER ASYNC_GEN_WRAP BEFORE_ASYNC_WITH BEFORE_WITH BINARY_ADD BINARY_AND BINARY_FLOOR_DIVIDE
BINARY_LSHIFT BINARY_MATRIX_MULTIPLY BINARY_MODULO BINARY_MULTIPLY BINARY_OP BINARY_OR BINARY_POWER BINARY_RSHIFT
BINARY_SLICE BINARY_SUBSCR BINARY_SUBTRACT BINARY_TRUE_DIVIDE BINARY_XOR BUILD_CONST_KEY_MAP BUILD_INTERPOLATION
BUILD_LIST BUILD_MAP BUILD_SET BUILD_SLICE BUILD_STRING BUILD_TEMPLATE BUILD_TUPLE CACHE CALL CALL_FUNCTION
CALL_FUNCTION_EX CALL_FUNCTION_KW CALL_INTRINSIC_1 CALL_INTRINSIC_2 CALL_KW CALL_METHOD CHECK_EG_MATCH CHECK_EXC_MATCH
CLEANUP_THROW COMPARE_OP CONTAINS_OP CONVERT_VALUE COPY COPY_DICT_WITHOUT_KEYS COPY_FREE_VARS DELETE_ATTR DELETE_DEREF
DELETE_FAST DELETE_GLOBAL DELETE_NAME DELETE_SUBSCR DICT_MERGE DICT_UPDATE DUP_TOP DUP_TOP_TWO END_ASYNC_FOR END_FOR
END_SEND EXTENDED_ARG FORMAT_SIMPLE FORMAT_VALUE FORMAT_WITH_SPEC FOR_ITER GEN_START GET_AITER GET_ANEXT GET_AWAITABLE
GET_ITER GET_LEN GET_YIELD_FROM_ITER IMPORT_FROM IMPORT_NAME IMPORT_STAR INPLACE_ADD INPLACE_AND INPLACE_FLOOR_DIVIDE
INPLACE_LSHIFT INPLACE_MATRIX_MULTIPLY INPLACE_MODULO INPLACE_MULTIPLY INPLACE_OR INPLACE_POWER INPLACE_RSHIFT
INPLACE_SUBTRACT INPLACE_TRUE_DIVIDE INPLACE_XOR IS_OP JUMP_ABSOLUTE JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT
JUMP_FORWARD JUMP_IF_FALSE_OR_POP JUMP_IF_NOT_EXC_MATCH JUMP_IF_TRUE_OR_POP KW_NAMES LIST_APPEND LIST_EXTEND
LIST_TO_TUPLE LOAD_ASSERTION_ERROR LOAD_ATTR LOAD_BUILD_CLASS LOAD_CLASSDEREF LOAD_CLOSURE LOAD_COMMON_CONSTANT
LOAD_CONST LOAD_DEREF LOAD_FAST LOAD_FAST_AND_CLEAR LOAD_FAST_BORROW LOAD_FAST_BORROW_LOAD_FAST_BORROW LOAD_FAST_CHECK
LOAD_FAST_LOAD_FAST LOAD_FROM_DICT_OR_DEREF LOAD_FROM_DICT_OR_GLOBALS LOAD_GLOBAL LOAD_LOCALS LOAD_METHOD LOAD_NAME
LOAD_SMALL_INT LOAD_SPECIAL LOAD_SUPER_ATTR MAKE_CELL MAKE_FUNCTION MAP_ADD MATCH_CLASS MATCH_KEYS MATCH_MAPPING
MATCH_SEQUENCE NOP NOT_TAKEN POP_BLOCK POP_EXCEPT POP_ITER POP_JUMP_BACKWARD_IF_FALSE POP_JUMP_BACKWARD_IF_NONE
POP_JUMP_BACKWARD_IF_NOT_NONE POP_JUMP_BACKWARD_IF_TRUE POP_JUMP_FORWARD_IF_FALSE POP_JUMP_FORWARD_IF_NONE
POP_JUMP_FORWARD_IF_NOT_NONE POP_JUMP_FORWARD_IF_TRUE POP_JUMP_IF_FALSE POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE
POP_JUMP_IF_TRUE POP_TOP PRECALL PREP_RERAISE_STAR PRINT_EXPR PUSH_EXC_INFO PUSH_NULL RAISE_VARARGS RERAISE RESUME
RETURN_CONST RETURN_GENERATOR RETURN_VALUE ROT_FOUR ROT_N ROT_THREE ROT_TWO SEND SETUP_ANNOTATIONS SETUP_ASYNC_WITH
SETUP_FINALLY SETUP_WITH SET_ADD SET_FUNCTION_ATTRIBUTE SET_UPDATE STORE_ATTR STORE_DEREF STORE_FAST
STORE_FAST_LOAD_FAST STORE_FAST_STORE_FAST STORE_GLOBAL STORE_NAME STORE_SLICE STORE_SUBSCR SWAP TO_BOOL UNARY_INVERT
UNARY_NEGATIVE UNARY_NOT UNARY_POSITIVE UNPACK_EX UNPACK_SEQUENCE WITH_EXCEPT_START YIELD_FROM YIELD_VALUE
"""
KNOWN = frozenset(_NAMES.split())

_ALWAYS_JUMP = ("JUMP_FORWARD", "JUMP_ABSOLUTE", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
# Instructions that no other follows in its place.
_ENDS = ("RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", *_ALWAYS_JUMP)

# Those that leave what they take on the stack, or only add to it.
_LOADS = ("LOAD_FAST", "LOAD_CONST", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_CLOSURE", "LOAD_CLASSDEREF", "LOAD_NAME")
_ONLY_PUSH = (
    *_LOADS, "LOAD_SMALL_INT", "LOAD_COMMON_CONSTANT", "LOAD_BUILD_CLASS", "LOAD_ASSERTION_ERROR", "PUSH_NULL", "COPY",
    "DUP_TOP", "RETURN_GENERATOR",
)  # fmt: skip
# Those that leave the stack alone.
_IDLE = (
    "NOP", "NOT_TAKEN", "CACHE", "EXTENDED_ARG", "RESUME", "COPY_FREE_VARS", "MAKE_CELL", "KW_NAMES", "SETUP_FINALLY",
    "SETUP_ANNOTATIONS", "ANNOTATIONS_PLACEHOLDER",
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
_QUIET = (
    "CACHE", "PRECALL", "PUSH_NULL", "LOAD_CONST", "LOAD_SMALL_INT", "LOAD_COMMON_CONSTANT", "RESUME", "NOP",
    "NOT_TAKEN", "COPY_FREE_VARS", "EXTENDED_ARG",
)  # fmt: skip


@remembered(128)
def instructions(code: CodeType) -> tuple[dis.Instruction, ...]:
    """The instructions of a code object, in order, without inline caches."""
    return tuple([each for each in dis.get_instructions(code) if each.opname != "CACHE"])


def is_at(code: CodeType, offset: int, *names: str) -> bool:
    """Whether the instruction at an offset has one of these names; False where the interpreter calls it otherwise."""
    return 0 <= offset < len(code.co_code) and dis.opname[code.co_code[offset]] in names


def can_branch(code: CodeType) -> bool:
    """Whether some code has a conditional or a loop."""
    jumps = [each for each in instructions(code) if each.opcode in dis.hasjrel or each.opcode in dis.hasjabs]
    return any(not each.opname.startswith(("SETUP_", "SEND", *_ALWAYS_JUMP)) for each in jumps)


# --- variables ------------------------------------------------------------------------------------------------------


@remembered(256)
def read_from(code: CodeType, start: int, name: str) -> bool:
    """Whether some way from an instruction on reads a variable before it is written."""
    following, used = successors(code), _uses(code)
    waiting, seen = [start], {start}
    while waiting:
        offset = waiting.pop()
        use = used.get(offset, {}).get(name)
        if use == "read":
            return True
        if use is None:
            waiting += [each for each in following[offset] if each not in seen]
            seen.update(following[offset])
    return False


def read_after(code: CodeType, here: int, name: str) -> bool:
    """Whether some way behind the instruction at which a frame stands reads a variable before it is written."""
    return any(read_from(code, offset, name) for offset in successors(code)[_current(code, here)])


@remembered(256)
def read_in_expression(code: CodeType, here: int) -> frozenset[str]:
    """The variables read since the last statement ended: their values may wait to be used, ``f(a, b if c else d)``."""
    found: set[str] = set()
    used, here = _uses(code), _current(code, here)
    for each in reversed([each for each in instructions(code) if each.offset <= here]):
        if each.opname in ("POP_TOP", "YIELD_VALUE") or each.opname.startswith("STORE_"):
            break
        found |= {name for name, use in used.get(each.offset, {}).items() if use == "read"}
    return frozenset(found)


def _current(code: CodeType, here: int) -> int:
    """The offset of the instruction that a frame is executing; it may point to an inline cache after the
    instruction."""
    return max((offset for offset in successors(code) if offset <= here), default=0)


@remembered(64)
def successors(code: CodeType) -> dict[int, tuple[int, ...]]:
    """For each instruction the ones that may follow it."""
    its = instructions(code)
    handlers = _handlers(code)
    found = {}
    for position, each in enumerate(its):
        targets = []
        if each.opname not in _ENDS and position + 1 < len(its):
            targets.append(its[position + 1].offset)
        if each.opcode in dis.hasjrel or each.opcode in dis.hasjabs:
            targets.append(each.argval)
        targets += [target for start, end, target in handlers if start <= each.offset < end]
        found[each.offset] = tuple(targets)
    return found


def _entries(code: CodeType) -> list[Any]:
    """The table of exceptions, which functions have since Python 3.11."""
    made: Any = dis.Bytecode(code)
    return made.exception_entries if sys.version_info >= (3, 11) else []


def _handlers(code: CodeType) -> list[tuple[int, int, int]]:
    """Where the instructions start and end that may raise, and where the handler stands to which that leads."""
    if sys.version_info >= (3, 11):
        return [(each.start, each.end, each.target) for each in _entries(code)]
    # `SETUP_` instructions name the handlers, until `POP_BLOCK`.
    its = instructions(code)
    positions = {each.offset: position for position, each in enumerate(its)}
    around: dict[int, tuple[int, ...]] = {}
    waiting: list[tuple[int, tuple[int, ...]]] = [(0, ())]
    while waiting:
        position, targets = waiting.pop()
        while position < len(its) and position not in around:
            each = its[position]
            around[position] = targets
            is_jump = each.opcode in dis.hasjrel or each.opcode in dis.hasjabs
            if is_jump:
                waiting.append((positions[each.argval], targets))
            if is_jump and each.opname.startswith("SETUP_"):
                targets = (*targets, each.argval)
            elif each.opname == "POP_BLOCK":
                targets = targets[:-1]
            if each.opname in _ENDS:
                break
            position += 1
    return [(its[i].offset, its[i].offset + 1, targets[-1]) for i, targets in around.items() if targets]


@remembered(64)
def _uses(code: CodeType) -> dict[int, dict[str, str]]:
    """For each instruction that names variables, whether it reads each of them first, or writes it."""
    found = {}
    for each in instructions(code):
        kinds = [part for part in each.opname.split("_") if part in ("LOAD", "STORE", "DELETE")]
        names = each.argval if isinstance(each.argval, tuple) else (each.argval,)
        if kinds and ("FAST" in each.opname or "DEREF" in each.opname or "CLOSURE" in each.opname):
            used: dict[str, str] = {}
            for kind, name in zip(kinds, names):
                used.setdefault(name, "read" if kind == "LOAD" else "write")
            found[each.offset] = used
    return found


@remembered(1024)
def names_written(code: CodeType) -> frozenset[str]:
    """The variables of functions around it that a function's own code sets, or that of the functions in it.

    No name of an instruction is needed: of those on such variables, one that sets takes a value and gives none. One
    that deletes neither takes nor gives any. So does one that reads in the body of a class, where nothing is deleted.
    """
    most = 0 if code.co_flags & inspect.CO_OPTIMIZED else -1
    on_cells = [each for each in instructions(code) if each.opcode in dis.hasfree]
    found = {each.argval for each in on_cells if _effect(each, False) <= most}
    for nested in code.co_consts:
        if isinstance(nested, CodeType):
            found |= names_written(nested)
    return frozenset(found.intersection(code.co_freevars))


def attributes_set(code: CodeType) -> frozenset[str]:
    """The names of the attributes that some code sets."""
    return frozenset([each.argval for each in instructions(code) if each.opcode in _SETS_ATTRIBUTE])


def globals_set(code: CodeType) -> frozenset[str]:
    """The names of the variables of its module that some code sets or deletes."""
    return frozenset([each.argval for each in instructions(code) if each.opcode in _SETS_GLOBAL])


def _example(owner: Any) -> None:
    owner.example = 0


example: int


def _global_example() -> None:
    global example
    example = 0
    del example


# Found by examples, not by their names.
_SETS_ATTRIBUTE = [each.opcode for each in dis.get_instructions(_example) if each.argval == "example"]
_SETS_GLOBAL = [each.opcode for each in dis.get_instructions(_global_example) if each.argval == "example"]


# --- expressions ----------------------------------------------------------------------------------------------------


class Place(NamedTuple):
    """A place of a stack that is taken while an instruction runs.

    names     the variables that its value was made of
    is_plain  whether the value is that of the variable itself, or a method of it
    last      the instruction that takes it
    """

    names: tuple[str, ...]
    is_plain: bool
    last: int


@remembered(1024)
def places_at(code: CodeType, here: int) -> tuple[Place, ...]:
    """The places of the stack below the operands of the instruction at an offset that may have a container."""
    its, depths = layout(code)
    position = max((i for i, each in enumerate(its) if each.offset <= here), default=0)
    if position and its[position].opname == "RESUME" and its[position - 1].opname == "YIELD_VALUE":
        position -= 1  # a generator that waits stands behind its `yield` since Python 3.13: what it gave isn't there
    below = unchanged_depth(its[position], depths)
    if below is None:
        return ()
    found = [_place(code, level, position) for level in range(below)]
    return tuple([each for each in found if each.names])


def _place(code: CodeType, level: int, position: int) -> Place:
    all_, depths = layout(code)
    first = position
    while first > 0 and depths.get(all_[first].offset, level + 1) > level:
        first -= 1
    made = [i for i in range(first, position) if _reaches_down_to(all_[i], depths, level)]
    last = next(
        (i for i in range(position + 1, len(all_)) if _reaches_down_to(all_[i], depths, level)),
        len(all_) - 1,
    )
    its = all_[first : made[-1] + 1] if made else ()
    if its and its[-1].opname in _COLLECTING:
        its = all_[first : last + 1]  # a display or comprehension, with what it has got so far
    if any(each.opname in _MANAGERS for each in its):
        its = ()  # what a `with` statement holds is known: `live.pending`
    its = tuple([each for each in its if not each.opname.startswith(_QUIET)])
    reads = [each for each in its if each.opname.startswith(_IN_VARIABLES)]
    names = [name for each in reads for name in (each.argval if isinstance(each.argval, tuple) else (each.argval,))]
    rest = [each for each in its if each not in reads]
    if names[:1] == ["ag__"] and len(names) == 2:  # a function that is about to be called
        is_plain = _callee(rest)
    else:
        is_plain = all(each.opname == "GET_ITER" for each in rest)
    return Place(tuple(dict.fromkeys([name for name in names if name != "ag__"])), is_plain, all_[last].offset)


def _callee(rest: list[dis.Instruction]) -> bool:
    """Whether these get ``ag__.converted_call(f)`` or ``ag__.converted_call(x.f)``."""
    attributes = [each.argval for each in rest if each.opname in ("LOAD_ATTR", "LOAD_METHOD")]
    return attributes[:1] == ["converted_call"] and len(attributes) <= 2 and len(rest) - len(attributes) == 1


def _reaches_down_to(instruction: dis.Instruction, depths: dict[int, int], level: int) -> bool:
    """Whether an instruction pops or pushes the value at a level of the evaluation stack."""
    below = unchanged_depth(instruction, depths)
    return below is not None and below <= level


def unchanged_depth(instruction: dis.Instruction, depths: dict[int, int]) -> int | None:
    """The number of values at the bottom of the evaluation stack that an instruction doesn't touch; None if it isn't
    known."""
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
def layout(code: CodeType) -> tuple[tuple[dis.Instruction, ...], dict[int, int]]:
    """The instructions of a function, and how many values are on the stack before each, by its offset."""
    its = instructions(code)
    positions = {each.offset: position for position, each in enumerate(its)}
    depths: dict[int, int] = {}
    # A generator of Python 3.10 starts with what is sent to it.
    waiting = [(0, 1 if its[0].opname == "GEN_START" else 0)]
    for entry in _entries(code):
        waiting.append((entry.target, entry.depth + 1 + bool(entry.lasti)))
    while waiting:
        offset, depth = waiting.pop()
        position = positions.get(offset)
        while position is not None and position < len(its):
            each = its[position]
            if each.offset in depths:
                break
            depths[each.offset] = max(depth, 0)
            if each.opcode in dis.hasjrel or each.opcode in dis.hasjabs:
                waiting.append((each.argval, depth + _effect(each, True)))
            if each.opname in _ENDS:
                break
            depth = depth + _effect(each, False)
            position += 1
    return its, depths


_KEYS = ("LOAD_CONST", "LOAD_FAST", "LOAD_DEREF", "LOAD_GLOBAL", "LOAD_SMALL_INT", "LOAD_FAST_BORROW", "LOAD_NAME")


def key_taken_next(code: CodeType, here: int) -> str | None:
    """What is taken at once out of the value that a frame is about to get: an attribute ``.name``, or any item, ``[]``.

    None if something else follows: ``rows[i][0]`` takes an item out of ``rows[i]``, and ``f(rows[i])`` doesn't.
    """
    its = instructions(code)
    position = max((i for i, each in enumerate(its) if each.offset <= here), default=0)
    following = its[position : position + 3]
    if len(following) < 3 or not (_is_subscript(following[0]) or following[0].opname in ("CALL", "CALL_FUNCTION")):
        return None
    _, first, second = following
    if first.opname == "LOAD_ATTR":
        return f".{first.argval}"
    return "[]" if first.opname in _KEYS and _is_subscript(second) else None


def _is_subscript(instruction: dis.Instruction) -> bool:
    # One of the binary operators since Python 3.14.
    return instruction.opname == "BINARY_SUBSCR" or (instruction.opname, instruction.argrepr) == ("BINARY_OP", "[]")
