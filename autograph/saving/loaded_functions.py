"""Functions of saved models: the traces that were saved, behind the parameters of the function that they are of."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from autograph.function.calling import bind_call
from autograph.function.concrete import ConcreteFunction
from autograph.function.polymorphic import Function
from autograph.function.signature import Arguments, key_of_call
from runtime.spec import TensorSpec


class Original:
    """Stands for the Python function that a saved function was made from: its name, parameters and documentation.

    It is called where no trace fits as it is: then a trace is looked for that takes the arguments as tensors.
    """

    def __init__(self, name: str, doc: str | None, signature: inspect.Signature | None) -> None:
        self.__name__ = self.__qualname__ = name
        self.__doc__ = doc
        if signature is not None:
            self.__signature__ = signature
        self.traces: Sequence[ConcreteFunction] = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for concrete in self.traces:
            try:
                bind_call(concrete, args, kwargs)
            except (TypeError, ValueError):
                continue
            return concrete(*args, **kwargs)
        if not self.traces:
            raise ValueError(
                f"Found zero restored functions: '{self.__name__}' has no traces, because it wasn't called before it "
                "was saved. Call it, or give it an input signature, before saving."
            )
        options = "\n".join(f"  {concrete.graph.name}{concrete.function_type}" for concrete in self.traces)
        given = ", ".join([*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items())])
        raise ValueError(
            f"Could not find a trace of the function '{self.__name__}', loaded from a saved model, for the arguments "
            f"({given}). There are:\n{options}"
        )

    def reduce_function(self, function: Function) -> tuple:
        """The result of `__reduce_ex__` for a `Function` whose Python function is this one."""
        parts = self.__name__, self.__doc__, getattr(self, "__signature__", None)
        return _unpickled, (*parts, list(self.traces), function.input_signature, function._jit_compile)

    def __repr__(self) -> str:
        return f"<loaded {self.__name__}>"


def loaded_function(
    original: Original, traces: Sequence[ConcreteFunction], input_signature: tuple | None, jit_compile: bool | None
) -> Function:
    """A function that has these traces and makes no others."""
    original.traces = traces
    function = Function(original, input_signature, autograph=False, jit_compile=jit_compile)
    function._arguments = Arguments(original)
    for concrete in traces:
        concrete._is_general = True
        concrete.python_function = original
        concrete.retrace = _nothing
    return function


def _unpickled(
    name: str, doc: str | None, signature: Any, traces: list[ConcreteFunction], *options: Any
) -> Function:  # fmt: skip
    function = loaded_function(Original(name, doc, signature), traces, *options)
    enter(function, traces)
    return function


def enter(function: Function, traces: Sequence[ConcreteFunction]) -> None:
    """Has calls of a function find its traces."""
    for concrete in traces:
        args, kwargs = concrete.structured_input_signature
        function._cache.add(key_of_call(args, kwargs, []), concrete)


def _nothing() -> None:
    """The source is not there: nothing is traced again."""


class SignatureFunction:
    """A signature of a saved model: it takes tensors by name and returns a dictionary of tensors.

    Attributes: `structured_input_signature`, `structured_outputs` (a dictionary of specs with their names), `inputs`,
    `outputs`, `variables`, `graph`, `name`.
    """

    def __init__(self, name: str, function: Function, concrete: ConcreteFunction) -> None:
        self.name = name
        self._function, self._concrete = function, concrete

    def __call__(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Runs the function. Its tensors are given by name; the only one may be given by position.

        Raises TypeError for other names, dtypes or shapes.
        """
        names = list(self.structured_input_signature[1])
        if len(args) == 1 and not kwargs and len(names) == 1:
            kwargs = {names[0]: args[0]}
        elif args or kwargs.keys() != set(names):
            raise TypeError(
                f"The signature {self.name!r} takes keyword arguments only: {', '.join(names) or 'none'}; got "
                f"{len(args)} by position and, by name, {', '.join(kwargs) or 'none'}"
            )
        return self._concrete(**kwargs)

    @property
    def structured_outputs(self) -> dict[str, TensorSpec]:
        found = self._concrete.structured_outputs
        return {name: TensorSpec(spec.shape, spec.dtype, name) for name, spec in found.items()}

    def __getattr__(self, name: str) -> Any:
        if name in _OF_CONCRETE:
            return getattr(self._concrete, name)
        raise AttributeError(f"a signature has no attribute {name!r}")

    def __repr__(self) -> str:
        parts = [f"{name}: {_text(spec)}" for name, spec in self.structured_input_signature[1].items()]
        results = [f"{name}: {_text(spec)}" for name, spec in self.structured_outputs.items()]
        return f"<signature {self.name}({', '.join(parts)}) -> {{{', '.join(results)}}}>"


_OF_CONCRETE = frozenset([
    "as_text", "captured_inputs", "graph", "inputs", "outputs", "structured_input_signature", "trainable_variables",
    "variables",
])  # fmt: skip


def _text(spec: TensorSpec) -> str:
    return f"{spec.dtype.name}{'' if spec._shape is None else list(spec._shape)}"
