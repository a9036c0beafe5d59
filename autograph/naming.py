"""Traces for programs outside of Python: which one it is, and what its arguments and results are called there."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from autograph.function.concrete import ConcreteFunction
from autograph.function.polymorphic import Function
from runtime import nest
from runtime.signatures import signature_of
from runtime.spec import TensorSpec


def trace_to_export(function: Any, exporter: str) -> ConcreteFunction:
    """A concrete function, or the one of a function that takes no arguments or has an input signature.

    Raises TypeError, with the exporter's name, for anything else.
    """
    if isinstance(function, ConcreteFunction):
        return function
    if not isinstance(function, Function):
        raise TypeError(
            f"{exporter} takes an ag.function or what its get_concrete_function returns, got an object of the type "
            f"{type(function).__name__!r}"
        )
    if function.input_signature is None:
        try:
            signature_of(function.python_function).bind()
        except TypeError:
            raise TypeError(
                f"{exporter} must know the types of the arguments of {function._name!r}: pass it "
                f"{function._name}.get_concrete_function(ag.TensorSpec(...), ...), or decorate the function with "
                "ag.function(input_signature=[...])"
            ) from None
    return function.get_concrete_function()


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
