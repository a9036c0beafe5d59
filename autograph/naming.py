"""What the tensors among a trace's arguments and results are called outside of Python."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from autograph.function.concrete import ConcreteFunction
from runtime import nest
from runtime.spec import TensorSpec


def argument_names(concrete: ConcreteFunction) -> list[str]:
    """A name for each tensor among the arguments: the parameter's, with the way to it in a structure."""
    positional, keywords = concrete.structured_input_signature
    signature = concrete.parameters.signature
    parameters = [] if signature is None else list(signature.parameters.values())
    found: list[str] = []
    for index, argument in enumerate(positional):
        last = min(index, len(parameters) - 1)
        name = parameters[last].name if parameters else "x"
        several = not parameters or parameters[last].kind is inspect.Parameter.VAR_POSITIONAL
        found += _paths(argument, f"{name}_{index - max(last, 0)}" if several else name)
    for key in sorted(keywords):
        found += _paths(keywords[key], key)
    return found


def result_names(structure: Any) -> list[str]:
    """A name for each tensor of a result: `result`, or the way to it in a structure, such as `loss` or `result_0`."""
    if isinstance(structure, TensorSpec):
        return ["result"]
    return [each.removeprefix("result_") if not each[7:8].isdigit() else each for each in _paths(structure, "result")]


def _paths(structure: Any, base: str) -> Iterator[str]:
    """The ways to the tensors of a structure, in the order in which it is flattened."""
    leaves = nest.flatten(structure)
    numbered = nest.pack_sequence_as(structure, [_Leaf(each) for each in leaves])
    by_leaf: dict[int, str] = {}
    _walk(numbered, base, by_leaf)
    for leaf in nest.flatten(numbered):
        if isinstance(leaf.value, TensorSpec):
            yield by_leaf.get(id(leaf), base)


class _Leaf:
    def __init__(self, value: Any) -> None:
        self.value = value


def _walk(structure: Any, path: str, found: dict[int, str]) -> None:
    if isinstance(structure, _Leaf):
        found[id(structure)] = path
    elif isinstance(structure, dict):
        for key, value in structure.items():
            _walk(value, f"{path}_{key}", found)
    elif hasattr(structure, "_fields"):
        for key in structure._fields:
            _walk(getattr(structure, key), f"{path}_{key}", found)
    elif isinstance(structure, (list, tuple)):
        for index, value in enumerate(structure):
            _walk(value, f"{path}_{index}", found)
