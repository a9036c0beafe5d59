"""Which local variables of the functions being traced hold an object and will be read again.

    a = b = [1.0]
    for v in xs:
        a = a + [v]         # while this loop is traced: does `b` matter later?
    b.append(2.0)

No block mentions ``b``, so no closure cell tells. The frames of the functions do, and their bytecode tells whether a
variable is read on some way from where each of them stands.
"""

from __future__ import annotations

import dis
import sys
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

from autograph.errors import is_own_file

# A variable may hold the object inside of containers; further down nobody looks.
_DEPTH = 3
_ENDS = ("RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE")
_ALWAYS = ("JUMP_FORWARD", "JUMP_ABSOLUTE", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
_TRACE = "autograph.function.trace"


def is_live(value: Any, in_loops_only: bool = False) -> bool:
    """Whether a local variable of a function that is being traced holds an object and may be read again.

    in_loops_only: of the blocks that are being traced only those of loops run again.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") != _TRACE:
        code = frame.f_code
        if not is_own_file(code.co_filename):
            for name, held in frame.f_locals.items():
                again = name in code.co_freevars and not (in_loops_only and _is_branch(frame))
                if _holds(held, value, _DEPTH) and _is_read(name, frame, again):
                    return True
        frame = frame.f_back
    return False


def _is_branch(frame: FrameType) -> bool:
    """Whether a frame is that of a conditional's block."""
    operator, caller = None, frame.f_back
    while caller is not None and is_own_file(caller.f_code.co_filename):
        operator, caller = caller.f_code.co_name, caller.f_back
    return operator == "if_stmt"


def _holds(held: Any, value: Any, depth: int) -> bool:
    if held is value:
        return True
    if depth == 0 or type(held) not in (list, tuple, dict):
        return False
    return any(_holds(each, value, depth - 1) for each in (held.values() if type(held) is dict else held))


def _is_read(name: str, frame: FrameType, again: bool) -> bool:
    code = frame.f_code
    if again and _read_from(code, 0, name):  # a loop's body runs again
        return True
    successors = _successors(code)
    here = max((offset for offset in successors if offset <= frame.f_lasti), default=0)  # behind it stand caches
    return any(_read_from(code, offset, name) for offset in successors[here])


@lru_cache(maxsize=256)
def _read_from(code: CodeType, start: int, name: str) -> bool:
    """Whether some way from an instruction on reads a variable before it is written."""
    successors, uses = _successors(code), _uses(code)
    waiting, seen = [start], {start}
    while waiting:
        offset = waiting.pop()
        use = uses.get(offset, {}).get(name)
        if use == "read":
            return True
        if use is None:
            waiting += [each for each in successors[offset] if each not in seen]
            seen.update(successors[offset])
    return False


@lru_cache(maxsize=64)
def _successors(code: CodeType) -> dict[int, tuple[int, ...]]:
    """For each instruction the ones that may follow it."""
    instructions = list(dis.get_instructions(code))
    handlers = getattr(dis.Bytecode(code), "exception_entries", ())  # before 3.11 they are jumps
    found = {}
    for position, each in enumerate(instructions):
        targets = []
        if each.opname not in (*_ENDS, *_ALWAYS) and position + 1 < len(instructions):
            targets.append(instructions[position + 1].offset)
        if each.opcode in dis.hasjrel or each.opcode in dis.hasjabs:
            targets.append(each.argval)
        targets += [entry.target for entry in handlers if entry.start <= each.offset < entry.end]
        found[each.offset] = tuple(targets)
    return found


@lru_cache(maxsize=64)
def _uses(code: CodeType) -> dict[int, dict[str, str]]:
    """For each instruction that names variables, whether it reads each of them first, or writes it."""
    found = {}
    for each in dis.get_instructions(code):
        kinds = [part for part in each.opname.split("_") if part in ("LOAD", "STORE", "DELETE")]
        names = each.argval if isinstance(each.argval, tuple) else (each.argval,)
        if kinds and ("FAST" in each.opname or "DEREF" in each.opname or "CLOSURE" in each.opname):
            uses: dict[str, str] = {}
            for kind, name in zip(kinds, names):
                uses.setdefault(name, "read" if kind == "LOAD" else "write")
            found[each.offset] = uses
    return found
