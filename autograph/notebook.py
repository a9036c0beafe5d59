"""`%load_ext autograph`: the magic `%%autograph`, which runs a cell and shows each function that it defines beside its
converted source.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any

from autograph.convert.api import to_code
from autograph.display import side_by_side
from autograph.errors import AutographError
from autograph.function.polymorphic import Function, python_function_of
from runtime.python_text import python_ast


def load(shell: Any) -> None:
    """Registers the magic with IPython's shell."""
    from IPython.display import HTML, display

    def magic(line: str, cell: str) -> None:
        """%%autograph [NAME ...]

        Runs the cell, and shows the functions and methods that it defines (or those named: a function, a class, or
        CLASS.METHOD) beside their converted source.
        """
        ran = _run(shell, cell)
        if not ran.success:  # IPython has shown the error
            return
        defined = [
            node.name
            for node in python_ast(shell.transform_cell(cell)).body
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        ]
        shown = [function for name in line.split() or defined for function in _functions(shell.user_ns, name)]
        if not shown and not line.split():
            print("%%autograph: the cell doesn't define a function")
        for function in shown:
            display(HTML(beside(function)))

    shell.register_magic_function(magic, "cell", "autograph")


def _functions(space: dict[str, Any], name: str) -> list[Any]:
    """The function of a name, the method `CLASS.METHOD`, or the methods that a class defines itself."""
    first, *rest = name.split(".")
    try:
        found = space[first]
        for each in rest:
            found = inspect.getattr_static(found, each)
    except (KeyError, AttributeError):
        print(f"%%autograph: {name!r} isn't defined")
        return []
    if not inspect.isclass(found):
        return [_unwrapped(found)]
    members = [_unwrapped(member) for member in vars(found).values()]
    return [each for each in members if isinstance(each, Function) or _is_written(each, found)]


def _is_written(member: Any, owner: type) -> bool:
    """Whether it is a function in the class's module with a source: those that `dataclass` adds aren't.

    Nor is the one that evaluates the class's annotations, from Python 3.14 on.
    """
    if not inspect.isfunction(member) or member.__module__ != owner.__module__ or member.__name__ == "__annotate__":
        return False
    try:
        return bool(inspect.getsource(member))
    except OSError:
        return False


def _unwrapped(member: Any) -> Any:
    """The function in a static method, class method or property."""
    if isinstance(member, property):
        return member.fget
    return member.__func__ if isinstance(member, (staticmethod, classmethod)) else member


def _run(shell: Any, cell: str) -> Any:
    """Runs the cell under the number of the cell that the magic stands in, so that errors name that one. (Since
    IPython 9 the count is one ahead while a cell runs.)"""
    ahead = shell.execution_count
    shell.execution_count = max(len(shell.user_ns.get("In", ())) - 1, 1)
    try:
        return shell.run_cell(cell)
    finally:
        shell.execution_count = ahead


def beside(function: Any) -> str:
    """A function's source and its converted source, in two columns, or the reason why it isn't converted."""
    original = python_function_of(function)
    try:
        source = textwrap.dedent(inspect.getsource(original))
        return side_by_side(source, to_code(original))
    except (AutographError, OSError, TypeError) as error:
        return side_by_side(getattr(original, "__name__", repr(original)), str(error), ("function", "not converted"))
