"""What passes do to a program: its text before and after each of them, for whoever wants to see it.

    with recorded() as steps:
        f.get_concrete_function(x)
    steps  →  [Step("graph", "constant folding", ...), ...]

The pipelines of graphs and of kernels run their passes by `run_pass`. Nothing is printed unless somebody records, and a
thread records only what it does itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import field
from typing import Any

from runtime import cancellation
from runtime.dataclass import dataclass
from runtime.profiling import span

# Makes a program's text. The dictionary is the printer's: it keeps names in it, so that a value has one name in all
# texts of the program.
Printer = Callable[[Any, dict[Any, Any]], str]


@dataclass(frozen=True)
class Step:
    """One run of a pass. level: 'graph', 'kernel' or 'device'. program: what it made: the object that it was
    given, or a copy."""

    level: str
    name: str
    program: Any
    before: str
    after: str

    @property
    def is_change(self) -> bool:
        return self.before != self.after


@dataclass
class _Log:
    steps: list[Step] = field(default_factory=list)
    names: dict[int, tuple[Any, dict[Any, Any]]] = field(default_factory=dict)  # by id of a program, with it

    def names_in(self, program: Any) -> dict[Any, Any]:
        return self.names.setdefault(id(program), (program, {}))[1]


_current: ContextVar[_Log | None] = ContextVar("pass_log", default=None)


@contextlib.contextmanager
def recorded() -> Iterator[list[Step]]:
    """The steps of all passes that this thread runs within the block, in order."""
    log = _Log()
    token = _current.set(log)
    try:
        yield log.steps
    finally:
        _current.reset(token)


def run_pass(level: str, name: str, change: Callable[[Any], Any], program: Any, printer: Printer) -> Any:
    """`change(program)`, recorded. The program after it is what `change` gives (of a tuple, the first item), if that is
    of the program's class, else the program itself, changed in place."""
    cancellation.point()
    log = _current.get()
    if log is None:
        with span("pass", f"{level} pass: {name}"):
            return change(program)
    before = printer(program, log.names_in(program))
    result = change(program)
    first = result[0] if isinstance(result, tuple) else result
    after = first if isinstance(first, type(program)) else program
    log.steps.append(Step(level, name, after, before, printer(after, log.names_in(after))))
    return result
