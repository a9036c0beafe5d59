"""`%load_ext autograph`: the magic `%%autograph`, which runs a cell and shows the functions that it defines beside what
they are rewritten to.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any

from autograph.convert.api import to_code
from autograph.display import side_by_side
from autograph.errors import AutographError
from autograph.function.polymorphic import Function


def load(shell: Any) -> None:
    """Registers the magic with IPython's shell."""
    from IPython.display import HTML, display

    def magic(line: str, cell: str) -> None:
        """%%autograph [NAME ...]

        Runs the cell, and shows the functions that it defines (or those named) beside what they are rewritten to.
        """
        ran = _run(shell, cell)
        if not ran.success:  # IPython has shown the error
            return
        defined = [
            node.name for node in ast.parse(shell.transform_cell(cell)).body if isinstance(node, ast.FunctionDef)
        ]
        names = line.split() or defined
        if not names:
            print("%%autograph: the cell defines no function")
        for name in names:
            if name not in shell.user_ns:
                print(f"%%autograph: there is no {name!r}")
                continue
            display(HTML(beside(shell.user_ns[name])))

    shell.register_magic_function(magic, "cell", "autograph")


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
    """A function's source and what it is rewritten to, in two columns, or why it isn't."""
    original = function.python_function if isinstance(function, Function) else function
    try:
        source = textwrap.dedent(inspect.getsource(original))
        return side_by_side(source, to_code(original))
    except (AutographError, OSError, TypeError) as error:
        return side_by_side(getattr(original, "__name__", repr(original)), str(error), ("function", "not converted"))
