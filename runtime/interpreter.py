"""What this project takes from CPython beyond what its documentation promises, each thing tried before it is used.

| relied on | tried by | where the trial fails |
| --- | --- | --- |
| counts of references | `ALONE` | nothing is changed in place, and values count as in use |
| what the garbage collector knows of iterators | `SEES_ITERATORS` | each counts as holding everything |
| rules of the bytecode | `understands` | variables count as read, and expressions as waiting for all that they name |
| which instructions set variables | `require_writes` | nothing is staged: an error says why |
| names in code objects | `RENAMES` | methods and signatures are made in the standard library's way |

Where a value that counts as in use is changed under another name, the program is refused, and `doubt` is the reason
that the error gives. So with an interpreter that is newer than this release, programs are slower, or more of them are
refused, but none computes anything else. All trials together take less than a millisecond.

`AUTOGRAPH_UNKNOWN_INTERPRETER` names trials that are treated as failed (`references,bytecode`, or `all`).
"""

from __future__ import annotations

import functools
import gc
import itertools
import linecache
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import CodeType, FunctionType, TracebackType
from typing import Any

from runtime import bytecode
from runtime.code_memos import remembered

TRIALS = ("references", "iterators", "bytecode", "names")
VARIABLE = "AUTOGRAPH_UNKNOWN_INTERPRETER"
_VERSION = ".".join(map(str, sys.version_info[:2]))
# Threads change counts of references while they are read there, and the interpreter leaves some out.
IS_FREE_THREADED = "free-threading build" in sys.version


def named_in(variable: str, known: Sequence[str], what: str) -> set[str]:
    """The names that an environment variable lists, all of them for ``all``. what: they are called so in the ValueError
    for another name."""
    named = {name.strip() for name in os.environ.get(variable, "").split(",")} - {""}
    if wrong := named.difference(known, ["all"]):
        raise ValueError(f"{variable} names {', '.join(sorted(wrong))}; the {what} are {', '.join(known)}, and all")
    return set(known) if "all" in named else named


def _is_left_out(trial: str) -> bool:
    return trial in named_in(VARIABLE, TRIALS, "trials")


# --- counts of references -------------------------------------------------------------------------------------------


class _Owner:
    __slots__ = ("held",)

    def __init__(self) -> None:
        self.held: Any = [0]

    def __getitem__(self, key: Any) -> Any:
        return self.held[key]


def _count_alone() -> int:
    """The count of a value that only an attribute holds, if every other holder adds one to it, else 0."""
    if IS_FREE_THREADED or _is_left_out("references"):
        return 0
    owner = _Owner()
    alone = sys.getrefcount(owner.held)
    counts = [(owner.held, sys.getrefcount(owner.held))[1]]  # an expression holds it
    variable = owner.held
    counts.append(sys.getrefcount(owner.held))
    held = [variable]
    counts.append(sys.getrefcount(owner.held) - 1)
    del variable
    counts.append(sys.getrefcount(owner.held))
    held.clear()
    return alone if alone == sys.getrefcount(owner.held) and set(counts) == {alone + 1} else 0


ALONE = _count_alone()
"""What `sys.getrefcount(x.name)` gives for a value that nothing but the attribute holds; 0 where counts don't tell."""


# --- iterators ------------------------------------------------------------------------------------------------------


def _see_iterators() -> bool:
    """Whether the garbage collector tells what iterators and generators that wait run over and hold."""
    if _is_left_out("iterators"):
        return False

    def generator(make: Callable[[], list[Any]]) -> Iterator[Any]:
        own = [1]
        for each in make():
            yield each, own

    items = [0]
    waiting = generator(lambda: items)
    _, own = next(waiting)
    held = referents(waiting)
    # The list that a loop runs over stands on the stack itself (Python 3.15), or in an iterator.
    is_run_over = any(each is items or any(it is items for it in gc.get_referents(each)) for each in held)
    found = [is_run_over, any(each is own for each in held), (items,) in gc.get_referents(partial(len, items))]
    found += [any(each is items for each in gc.get_referents(it)) for it in (iter(items), reversed(items))]
    found.append(any(type(each) is type(iter(items)) for each in gc.get_referents(enumerate(items))))
    return all(found)


def referents(generator: Any) -> list[Any]:
    """What a generator that waits refers to: its variables' values, and those that its expressions hold."""
    frame = generator.gi_frame
    found = () if frame is None else gc.get_referents(generator if sys.version_info >= (3, 11) else frame)
    return [each for each in found if each is not frame.f_globals and each is not frame.f_builtins]


SEES_ITERATORS = _see_iterators()
"""Whether `gc.get_referents` tells what iterators hold; elsewhere they count as holding everything."""


# --- bytecode -------------------------------------------------------------------------------------------------------


@remembered(1024)
def understands(code: CodeType) -> bool:
    """Whether the rules of `bytecode` hold for some code."""
    return reads_bytecode() and all(each.opname in bytecode.KNOWN for each in bytecode.instructions(code))


@functools.cache
def reads_bytecode() -> bool:
    """Whether the rules give the right answers for functions whose answers are known."""
    if _is_left_out("bytecode"):
        return False
    try:
        return _flow_is_right() and _stack_is_right() and _raise_is_right()
    except _WRONG:
        return False


# What rules for something else may raise.
_WRONG = (AttributeError, IndexError, KeyError, TypeError, ValueError)


def _flow(items, other, third):
    kept = items
    while other:
        third = kept
        kept = [other]
    try:
        items = third()
    except ValueError:
        return kept
    del other
    return items


# By lines after the first, which of the variables are read from there on before they are written.
_READ = {
    1: "items other third", 2: "kept other third", 3: "kept other", 4: "other third", 6: "kept third", 8: "kept",
    9: "items", 10: "items",
}  # fmt: skip


def _flow_is_right() -> bool:
    code = _flow.__code__
    first: dict[int, int] = {}
    for start, _, line in code.co_lines():
        if line is not None:
            first.setdefault(line - code.co_firstlineno, start)
    return all(
        [name for name in code.co_varnames if bytecode.read_from(code, first[line], name)]
        == [name for name in code.co_varnames if name in names.split()]
        for line, names in _READ.items()
    )


def _stack_is_right() -> bool:
    seen = []

    def look(*_: Any) -> Any:
        frame = sys._getframe(1)
        code, here = frame.f_code, frame.f_lasti
        held = [(each.names[0], each.is_plain) for each in bytecode.places_at(code, here)]
        read = [name for name in code.co_varnames if bytecode.read_after(code, here, name)]
        seen.append((held, bytecode.key_taken_next(code, here), read))
        return owner

    owner = _Owner()
    _stack(look, 0, [0])
    its, depths = bytecode.layout(_stack.__code__)
    return seen == _SEEN and all((bytecode.unchanged_depth(each, depths) or 0) >= 0 for each in its)


def _stack(look, other, rows):
    other = (rows[0], rows, look(other))
    other = look()[0]
    other = look().held
    return rows


# For each call of `look`: what waits on the stack and whether it is the variable's value itself, what is taken out of
# the call's result at once, and which variables are read later.
_SEEN = [
    ([("rows", False), ("rows", True)], None, ["look", "rows"]),
    ([], "[]", ["look", "rows"]),
    ([], ".held", ["rows"]),
]


def is_raise(code: CodeType, here: int) -> bool:
    """Whether the instruction at which a traceback stands in some code is that of a ``raise`` statement.

    Where the bytecode isn't understood, the text at the instruction's position tells. Tracebacks that were put together
    have no instruction (-1).
    """
    if here < 0:
        return False
    if reads_bytecode():
        return bytecode.is_at(code, here, "RAISE_VARARGS")
    line = next((line for start, end, line in code.co_lines() if start <= here < end), None)
    column = None
    if sys.version_info >= (3, 11):
        line, _, column, _ = next(itertools.islice(code.co_positions(), here // 2, None), (line, None, None, None))
    text = linecache.getline(code.co_filename, line or 0).encode()
    return (text.lstrip() if column is None else text[column:]).startswith(b"raise")


def _raise_is_right() -> bool:
    try:
        _raising()
    except KeyError as error:
        raised = error.__traceback__
    return raised is not None and raised.tb_next is not None and _is_raise_of(raised.tb_next)


def _is_raise_of(entry: TracebackType) -> bool:
    return bytecode.is_at(entry.tb_frame.f_code, entry.tb_lasti, "RAISE_VARARGS")


def _raising() -> None:
    raise KeyError


def require_writes() -> None:
    """Raises RuntimeError if the interpreter doesn't tell which variables and attributes a function sets."""
    if not _writes_are_right():
        raise RuntimeError(
            f"this release can't find out which variables a function sets in Python {_VERSION}, whose compiler it "
            "doesn't know. Use a Python that it names as supported, or a newer release"
        )


@functools.cache
def _writes_are_right() -> bool:
    def setting(owner, own):
        nonlocal one, two
        one = own = three
        owner.attribute = owner.other

        def inner():
            nonlocal two
            del two
            return own

        return inner, owner.method()

    one = two = three = 0
    code = setting.__code__
    try:
        found = bytecode.names_written(code), bytecode.attributes_set(code)
    except _WRONG:
        return False
    return found == ({"one", "two"}, {"attribute"})


def doubt() -> str:
    """What to add to the cause of a refusal that may be owed to a trial that has failed; else empty."""
    failed = [*["reference counts"] * (not ALONE), *["garbage collector"] * (not SEES_ITERATORS)]
    failed += ["bytecode"] * (not reads_bytecode())
    if not failed:
        return ""
    return (
        f" (this release can't rely on the {' and '.join(failed)} of this Python {_VERSION}, so all that may be in use "
        "counts as in use)"
    )


# --- names in code objects ------------------------------------------------------------------------------------------


def _rename() -> bool:
    """Whether a function with other names in its code has other parameters, attributes and strings."""
    if _is_left_out("names"):
        return False

    def example(old, more=1):
        old.old = more
        return "old"

    code = example.__code__
    try:
        made: Callable[..., Any] = FunctionType(renamed(code, {"old": "held"}), {}, "example", (1,))
        owner = _Owner()
        return (made(more=2, held=owner), owner.held) == ("held", 2)
    except (AttributeError, TypeError, ValueError):
        return False


def renamed(code: CodeType, names: dict[str, str]) -> CodeType:
    """Some code with other names for its parameters and variables, attributes and globals, and in strings."""

    def changed(old: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple([names.get(each, each) if type(each) is str else each for each in old])

    return code.replace(
        co_names=changed(code.co_names), co_varnames=changed(code.co_varnames), co_consts=changed(code.co_consts)
    )


RENAMES = _rename()
"""Whether `renamed` does what it says."""
