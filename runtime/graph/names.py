"""Names of operations, for people: `as_text`, `get_operations`, pictures and errors show the same ones.

An operation is called what the user calls it: its `name=` argument, else the variable that its result is assigned to
in the source (`y = x * x` makes `y`), else its op. Scopes of `ag.name_scope` stand before the name, `_1`, `_2` ...
behind it where a name is taken. While a function is traced only `name=` and the scope are noted.
"""

from __future__ import annotations

import ast
import functools
import linecache
from typing import Any

from runtime.python_text import python_ast

# Graphs and nodes are known here by their attributes alone, since `ir.py` uses this module.


def operation_names(graph: Any, kept: dict[Any, str] | None = None) -> dict[Any, str]:
    """A unique name for each node of the graph and its regions, and for each graph input (a value).

    kept: names that nodes and inputs were given before and keep; new ones are added.
    """
    taken: dict[str, int] = dict.fromkeys(kept.values(), 0) if kept else {}
    names: dict[Any, str] = dict(kept or {})
    _add_names(graph, names, taken)
    if kept is not None:
        kept.update(names)
    return names


def _add_names(graph: Any, names: dict[Any, str], taken: dict[str, int], operands: Any = ()) -> None:
    for index, value in enumerate(graph.inputs):
        if value in names:
            continue
        name = value.name or ("capture" if hasattr(value.type, "dtype") else "token")
        if value.name is None and index < len(operands):  # an argument of a region: named after what it stands for
            outer = operands[index]
            name = outer.name or names[outer.node if outer.node is not None else outer]
        names[value] = _unique(name, taken)
    chosen = _from_source(graph)
    for node in graph.nodes:
        if node not in names:
            given = node.name or ""
            if not given or given.endswith("/"):
                given += chosen.get(node) or node.op.arithmetic
            names[node] = _unique(given, taken)
        for region in node.regions:
            _add_names(region, names, taken, node.inputs[1:] if node.op.name == "cond" else node.inputs)


def _unique(name: str, taken: dict[str, int]) -> str:
    base = name
    while name in taken:
        taken[base] += 1
        name = f"{base}_{taken[base]}"
    taken[name] = 0
    return name


def value_name(value: Any, names: dict[Any, str]) -> str:
    """The name of a value: its operation's, with `:1` and so on for the results after the first."""
    # The verifier prints broken graphs too, in which a value may come from nowhere.
    owner = names.get(value if value.node is None else value.node, f"?{value.id}")
    index = 0 if value.node is None else value.node.outputs.index(value)
    return f"{owner}:{index}" if index else owner


def _from_source(graph: Any) -> dict[Any, str]:
    """The last node of each assignment statement, named after the variable that the statement assigns."""
    # A statement that makes a lambda assigns that, not what the lambda's operations give.
    nodes = [node for node in graph.nodes if node.span and node.span[2] != "<lambda>" and node.op.name != "constant"]
    last = {node.span[:2]: node for node in nodes}
    found: dict[Any, str] = {}
    for (filename, line), node in last.items():
        target = targets(filename).get(line)
        if target is not None:
            # A statement of several lines has a span on each of them; its last node counts.
            found = {n: t for n, t in found.items() if t is not target}
            found[node] = target
    return found


class Target(str):
    """The text of an assignment's target. Statements that assign the same name differ: compared by identity."""

    __slots__ = ()


def targets(filename: str) -> dict[int, Target]:
    """For each line of a file that belongs to an assignment of one variable: its name."""
    return _targets_of("".join(linecache.getlines(filename)))


@functools.lru_cache(maxsize=32)
def _targets_of(text: str) -> dict[int, Target]:
    try:
        tree = python_ast(text)
    except (SyntaxError, ValueError):  # a notebook cell with magics, a template: no names from there
        return {}
    found: dict[int, Target] = {}
    for statement in ast.walk(tree):
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
        elif isinstance(statement, (ast.AugAssign, ast.AnnAssign)) and statement.value is not None:
            target = statement.target
        else:
            continue
        if isinstance(target, (ast.Name, ast.Attribute)):
            name = Target(ast.unparse(target))
            for line in range(statement.lineno, (statement.end_lineno or statement.lineno) + 1):
                found[line] = name
    return found
