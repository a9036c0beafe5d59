"""`ConcreteFunction`: one traced graph with the structure of its arguments and results."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from autograph.function.signature import is_tensor_like, key_of_call
from runtime import dtypes, nest
from runtime.context import ctx
from runtime.dtypes import as_dtype
from runtime.engine.function import GraphFunction
from runtime.errors import InvalidArgumentError
from runtime.graph.ir import Graph
from runtime.graph.printer import as_text
from runtime.ops.convert import convert_to_tensor
from runtime.shapes import as_shape
from runtime.spec import TensorSpec
from runtime.tensor import EagerTensor, Tensor

_serial = itertools.count()
_NO_TOKEN = EagerTensor(None, dtypes.bool_)


class IncompatibleArgumentError(InvalidArgumentError, TypeError):
    """A concrete function was called with a tensor of another dtype or shape than it was traced for."""


class ConcreteFunction:
    """A traced function. Calling it runs the graph; it never traces.

    Attributes: `graph` (print it to read it), `structured_input_signature`, `structured_outputs`, `inputs`, `outputs`,
    `variables`, `captured_inputs`, `name`.
    """

    def __init__(
        self,
        graph: Graph,
        specs: list[TensorSpec],
        arguments: tuple[tuple, dict[str, Any]],
        captures: list[EagerTensor],
        symbolic_captures: list[Any],
        variables: list[Any],
        written: list[Any],
        commits: bool,
        result: Any,
        is_none: list[bool],
        jit_compile: bool | None,
    ) -> None:
        self.graph = graph
        self.name = f"__inference_{graph.name}_{next(_serial)}"
        self.function = GraphFunction(graph, jit_compile)
        self.variables = tuple(variables)
        self.guards: tuple = ()  # what must still hold for the trace to be used (see guards.py)
        self.checked = False  # whether it was traced with `enable_check_numerics`
        self.used = True  # since the cache last looked for room
        self.captured_inputs = list(captures)
        self.symbolic_captures = symbolic_captures
        self._specs = specs
        self._arguments = arguments
        self._written = written
        self._commits = commits
        self._result = result
        self._is_none = is_none
        self._single = result is None and is_none == [False]
        self._has_token = len(graph.inputs) > len(specs) + len(captures) + len(symbolic_captures) + len(variables)
        self._extra: list[Any] = [*captures, *([_NO_TOKEN] if self._has_token and not variables else ())]
        self._count = is_none.count(False)

    # --- calling -------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the graph on tensors, given by position or by the traced function's parameter names.

        Raises IncompatibleArgumentError (an InvalidArgumentError and a TypeError) for the wrong dtype or shape.
        """
        return self.call_flat(self._flatten_call(args, kwargs))

    def call_flat(self, tensors: Sequence[Any]) -> Any:
        """Runs the graph on the flat list of its tensor arguments, which must fit; gives the structured result."""
        self.used = True
        if ctx.builder is not None:
            results = self._inline(tensors)
        elif not self.variables:
            results = self.function([*tensors, *self._extra])
        else:
            results = self._call_with_variables(tensors)
        if self._single:
            return results[0]
        return self._pack(results)

    def _call_with_variables(self, tensors: Sequence[Any]) -> list[Any]:
        reads = [v.read_value() for v in self.variables]
        token = [_NO_TOKEN] if self._has_token else []
        inputs = [*tensors, *self._extra, *reads, *token]
        results = self._run_with_commits(inputs) if self._commits else self.function(inputs)
        for variable, value in zip(self._written, results[self._count :]):
            variable.assign(value)
        return results

    def _run_with_commits(self, inputs: list[Any]) -> list[Any]:
        """Assignments that ran before an error count, as they do in eager code."""
        outer, ctx.commits = ctx.commits, {}
        try:
            return self.function(inputs)
        except BaseException:
            for reference, value in ctx.commits.items():
                variable = reference.deref()
                variable.assign(EagerTensor(value, variable.dtype))
            raise
        finally:
            ctx.commits = outer

    def _inline(self, tensors: Sequence[Any]) -> list[Any]:
        """Makes the graph part of the one being traced."""
        builder = ctx.builder
        reads = [builder.read_variable(v) for v in self.variables]
        token = [builder.read_token()] if self._has_token else []
        arguments = [*tensors, *self.captured_inputs, *self.symbolic_captures, *reads, *token]
        values = builder.inline(self.graph, arguments)
        for variable, value in zip(self._written, values[self._count :]):
            builder.hand_on_state(variable.ref(), value)
        if self._has_token:
            builder.write_token(values[-1])
        return [builder.tensor(v) for v in values[: self._count]]

    def _pack(self, results: Sequence[Any]) -> Any:
        values = iter(results)
        flat = [None if none else next(values) for none in self._is_none]
        return nest.pack_sequence_as(self._result, flat)

    def _flatten_call(self, args: tuple, kwargs: dict[str, Any]) -> list[Tensor]:
        given: dict[str, Any] = {}
        # Where one tensor was traced, a list of numbers stands for a tensor.
        traced = [*self._arguments[0], *[None] * len(args)]
        args = tuple(
            convert_to_tensor(a) if is_tensor_like(t) and isinstance(a, (list, tuple)) else a
            for a, t in zip(args, traced)
        )
        flat = nest.flatten(list(args))
        values = [v for v in flat if v is not None]
        names = [spec.name for spec in self._specs]
        for key, value in kwargs.items():
            leaves = nest.flatten(value)
            for index, leaf in enumerate(leaves):
                given[key if len(leaves) == 1 else f"{key}_{index}"] = leaf
        tensors: list[Tensor] = []
        position = iter(self._tensor_arguments(values))
        for index, (spec, name) in enumerate(zip(self._specs, names)):
            if name in given:
                value = given.pop(name)
            else:
                try:
                    value = next(position)
                except StopIteration:
                    raise TypeError(f"{self.name}() is missing the argument '{name}' ({spec})") from None
            tensors.append(self._check(index, spec, value))
        extra = len(list(position))
        if extra or given:
            raise TypeError(
                f"{self.name}() takes {len(self._specs)} tensors: {', '.join(map(repr, self._specs))}; "
                f"got {f'{extra} more' if extra else f'unknown names {sorted(given)}'}"
            )
        return tensors

    def _tensor_arguments(self, values: list[Any]) -> list[Any]:
        """Drops the Python values that the trace has baked in, if the call repeats them."""
        if len(values) <= len(self._specs):
            return values
        return [v for v in values if isinstance(v, Tensor) or hasattr(v, "__array__")]

    def _check(self, index: int, spec: TensorSpec, value: Any) -> Tensor:
        tensor = convert_to_tensor(value, dtype_hint=spec.dtype)
        if tensor.dtype is not spec.dtype:
            raise IncompatibleArgumentError(
                f"cannot compute {self.name} as input #{index}(zero-based) was expected to be a {spec.dtype.name} "
                f"tensor but is a {tensor.dtype.name} tensor [Op:{self.name}]"
            )
        if not spec.covers(tensor.dtype, tensor._shape):
            raise IncompatibleArgumentError(
                f"cannot compute {self.name} as input #{index}(zero-based), '{spec.name}', was expected to have shape "
                f"{spec.shape} but has shape {tensor.shape} [Op:{self.name}]"
            )
        return tensor

    def covers(self, args: tuple, kwargs: dict[str, Any]) -> bool:
        """Whether the trace serves these canonical arguments: its specs may be more general, the rest must be equal."""
        mine, theirs = nest.flatten(self._arguments), nest.flatten((args, kwargs))
        if len(mine) != len(theirs) or all(None not in (s._shape or (None,)) for s in self._specs):
            return False
        try:
            nest.assert_same_structure(self._arguments, (args, kwargs))
        except (TypeError, ValueError):
            return False
        specs = iter(self._specs)
        for own, other in zip(mine, theirs):
            if is_tensor_like(own):
                if not is_tensor_like(other) or not next(specs).covers(as_dtype(other.dtype), as_shape(other.shape)):
                    return False
            elif is_tensor_like(other) or key_of_call((own,), {}, []) != key_of_call((other,), {}, []):
                return False
        return True

    # --- looking at it -------------------------------------------------------------------------------------------

    @property
    def inputs(self) -> list[TensorSpec]:
        return list(self._specs)

    @property
    def arguments(self) -> tuple[tuple, dict[str, Any]]:
        """The canonical (positional, keyword) arguments that the trace was made from."""
        return self._arguments

    @property
    def outputs(self) -> list[TensorSpec]:
        return [TensorSpec(v.shape, v.dtype) for v in self.graph.outputs[: self._count]]

    @property
    def structured_input_signature(self) -> tuple[tuple, dict[str, Any]]:
        """(positional, keyword) arguments as traced: `TensorSpec` for tensors, the values themselves for the rest."""
        specs = iter(self._specs)
        return nest.map_structure(lambda v: next(specs) if is_tensor_like(v) else v, self._arguments)

    @property
    def structured_outputs(self) -> Any:
        outputs = iter(self.outputs)
        return nest.pack_sequence_as(self._result, [None if none else next(outputs) for none in self._is_none])

    @property
    def trainable_variables(self) -> tuple:
        return tuple(v for v in self.variables if v.trainable)

    def pretty_printed_signature(self) -> str:
        """The signature as text: parameter names, dtypes, shapes, and the result's."""
        inputs = ", ".join(f"{s.name}: {s.type}" for s in self._specs)
        return f"{self.graph.name}({inputs}) -> {self.structured_outputs!r}"

    def as_text(self) -> str:
        """The graph as text."""
        return as_text(self.graph)

    def __repr__(self) -> str:
        return f"<ConcreteFunction {self.pretty_printed_signature()} at 0x{id(self):X}>"
