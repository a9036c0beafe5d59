"""How the work of tracing, differentiating and compiling a program grows with its size. Counted, never timed.

Work is the number of calls of Python functions. A construct is a function from a size to the text of a program
`f(x, n)`, whose `n` is 1; `works` follows it through the stages.
"""

from __future__ import annotations

import itertools
import linecache
import sys
from collections.abc import Callable
from typing import Any

import autograph as ag
from runtime.codegen.backends import llvm_backend
from runtime.codegen.lower.lower_graph import lower
from runtime.graph.ir import Graph

Construct = Callable[[int], str]

STAGES = ("value", "value compiled", "value interpreted", "gradient", "gradient compiled", "second", "second compiled")

# Calls after which a stage isn't waited for: exponential work would never end.
_MOST = 3_000_000
_serial = itertools.count()


class TooMuch(BaseException):
    """The work was cut off. Not an Exception, which whatever is running might handle."""


def load(text: str) -> Any:
    """The function `f` that a program's text defines."""
    filename = f"<growth {next(_serial)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    namespace: dict[str, Any] = {"ag": ag, "__name__": __name__}
    exec(compile(text, filename, "exec"), namespace)
    return namespace["f"]


def forget() -> None:
    """Drops the sources of programs that were loaded."""
    for name in [name for name in linecache.cache if name.startswith("<growth ")]:
        del linecache.cache[name]


def work(function: Callable[[], Any]) -> tuple[int, Any]:
    """How many Python functions a call calls, and what it returns. Raises TooMuch where they are too many."""
    count = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        if event == "call":
            count += 1
            if count > _MOST:
                raise TooMuch

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        result = function()
    finally:
        sys.setprofile(before)
    return count, result


def compiled(graphs: list[Graph]) -> int:
    """The work of making LLVM's text of some graphs, each as one kernel, or the text's lines, if they are more."""
    lines = 0

    def make() -> None:
        nonlocal lines
        for graph in graphs:
            source = lower(graph)
            program = llvm_backend.program(source)
            lines += source.text.count("\n") + program.text("kernel", source.signature, "kernel").count("\n")

    return max(work(make)[0], lines)


def works(text: str, arguments: tuple[Any, ...]) -> dict[str, int]:
    """The work of each stage for one program, by the stage's name (see STAGES)."""
    found: dict[str, int] = {}
    staged = ag.function(load(text), jit_compile=False)
    found["value"], concrete = work(lambda: staged.get_concrete_function(*arguments))
    found["value compiled"] = compiled([concrete.graph])
    found["value interpreted"], _ = work(lambda: concrete(*arguments))
    found["gradient"], gradient = work(lambda: concrete.function.gradient((0,)))
    found["gradient compiled"] = compiled([gradient.forward.graph, gradient.backward.graph])

    def slope(*arguments: Any) -> Any:
        with ag.GradientTape() as outer:
            outer.watch(arguments[0])
            with ag.GradientTape() as inner:
                inner.watch(arguments[0])
                y = staged(*arguments)
            slope = inner.gradient(y, arguments[0])
        return outer.gradient(slope, arguments[0])

    twice = ag.function(slope, jit_compile=False)
    found["second"], concrete = work(lambda: twice.get_concrete_function(*arguments))
    found["second compiled"] = compiled([concrete.graph])
    return found


def growth(three: list[int]) -> float:
    """How much more the second doubling of a size adds to the work than the first: 2 where work is linear, 4 where it
    is quadratic, and 2.2 where it is n log n from size 8 on. What doesn't depend on the size doesn't count."""
    one, two, four = three
    return (four - two) / max(two - one, 1)
