"""Signatures as text and as objects: what `print(concrete_function)` and `concrete_function.function_type` show.

    (x: TensorSpec(shape=(3,), dtype=tf.float32, name=None), n: Literal[2]) -> TensorSpec(...)

`TraceType` is the protocol by which an object says how it counts among a function's arguments.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from runtime import nest
from runtime.dtypes import as_dtype
from runtime.spec import TensorSpec


class TracingContext:
    """The argument of `__tf_tracing_type__`; it is empty."""


class TraceType(ABC):
    """The type of an argument for tracing: a function is traced once per type.

    An object defines its own by a method `__tf_tracing_type__(self, context)`. Calls whose arguments have equal types,
    or subtypes of those of an earlier trace, share that trace. Types must be hashable, and shouldn't keep the object
    alive longer than the trace.
    """

    @abstractmethod
    def is_subtype_of(self, other: TraceType) -> bool:
        """Whether a trace made for `other` serves this type."""

    @abstractmethod
    def most_specific_common_supertype(self, others: Sequence[TraceType]) -> TraceType | None:
        """The narrowest type that covers this one and all others, if there is one."""

    def placeholder_value(self, placeholder_context: Any = None) -> Any:
        """The value that the function's body sees in the argument's place while it is traced; by default the argument
        itself."""
        return NotImplemented

    @abstractmethod
    def __hash__(self) -> int: ...

    @abstractmethod
    def __eq__(self, other: object) -> bool: ...


def trace_type_of(value: Any) -> Any:
    """The type that an object gives itself by `__tf_tracing_type__`, or None."""
    hook = getattr(type(value), "__tf_tracing_type__", None)
    return None if hook is None else hook(value, TracingContext())


class FunctionType:
    """The parameters of a traced function with the types it was traced for, and the type of its result."""

    def __init__(self, parameters: list[tuple[str, str, Any]], output: Any) -> None:
        self._parameters = parameters
        self.output = output

    @property
    def parameters(self) -> dict[str, Any]:
        """Types by parameter: a `TensorSpec` for each tensor, Python values as they are."""
        return {name: value for name, _, value in self._parameters}

    def lines(self) -> list[str]:
        """A line per parameter: its name, kind and type."""
        return [f"  {name} ({kind}): {type_text(value)}" for name, kind, value in self._parameters]

    def __str__(self) -> str:
        shown: list[str] = []
        kinds = [kind for _, kind, _ in self._parameters]
        for index, (name, kind, value) in enumerate(self._parameters):
            if kind == "KEYWORD_ONLY" and "KEYWORD_ONLY" not in kinds[:index]:
                shown.append("*")
            shown.append(f"{name}: {type_text(value)}")
            if kind == "POSITIONAL_ONLY" and "POSITIONAL_ONLY" not in kinds[index + 1 :]:
                shown.append("/")
        return f"({', '.join(shown)}) -> {type_text(self.output)}"

    __repr__ = __str__


def function_type(signature: inspect.Signature | None, arguments: tuple[tuple, dict], output: Any) -> FunctionType:
    """The type of a trace.

    arguments: (positional, keyword) as traced, with a `TensorSpec` for each tensor. output: the same of the result.
    """
    args, kwargs = arguments
    declared = list(signature.parameters.values()) if signature is not None else []
    places = [p for p in declared if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = len(args) > len(places)  # with *args nothing before them can be given by name
    parameters: list[tuple[str, str, Any]] = []
    for index, value in enumerate(args):
        if index < len(places):
            kind = "POSITIONAL_ONLY" if rest else places[index].kind.name
            parameters.append((places[index].name, kind, value))
        else:
            parameters.append((f"args_{index - len(places)}", "POSITIONAL_ONLY", value))
    order = [p.name for p in declared if p.kind is p.KEYWORD_ONLY]
    names = [n for n in order if n in kwargs] + [n for n in kwargs if n not in order]
    parameters += [(name, "KEYWORD_ONLY", kwargs[name]) for name in names]
    return FunctionType(parameters, output)


def type_text(value: Any) -> str:
    """The type of an argument or result as text.

    >>> type_text([1, {'a': 'x'}])
    "List[Literal[1], Dict[['a', Literal['x']]]]"
    """
    if isinstance(value, TensorSpec):
        return f"TensorSpec(shape={value.shape}, dtype={value.dtype!r}, name=None)"
    if hasattr(type(value), "spec_text"):
        return repr(value)
    if isinstance(value, Mapping):
        items = ", ".join(f"[{key!r}, {type_text(part)}]" for key, part in value.items())
        return f"Dict[{items}]"
    if isinstance(value, list) or type(value) is tuple:
        name = "List" if isinstance(value, list) else "Tuple"
        return f"{name}[{', '.join(map(type_text, value))}]"
    own = trace_type_of(value)
    if own is not None:
        return repr(own)
    if nest.is_nested(value):
        return f"{type(value).__name__}[{', '.join(map(type_text, nest.children(value)))}]"
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"TensorSpec(shape={tuple(value.shape)}, dtype={as_dtype(value.dtype)!r}, name=None)"
    return f"Literal[{value!r}]"
