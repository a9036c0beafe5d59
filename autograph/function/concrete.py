"""`ConcreteFunction`: one traced graph with the structure of its arguments and results."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from autograph.function.function_type import FunctionType, function_type, trace_type_of, type_text
from autograph.function.signature import Arguments, WeakArgument, is_tensor_like, key_of_call, recalled
from runtime import dtypes, nest
from runtime.context import ctx
from runtime.dtypes import as_dtype
from runtime.engine.function import GraphFunction
from runtime.errors import InvalidArgumentError
from runtime.graph.ir import Graph
from runtime.graph.printer import as_text
from runtime.graph.unrolled import hand_on
from runtime.ops.convert import convert_to_tensor
from runtime.shapes import as_shape
from runtime.spec import TensorSpec
from runtime.tensor import EagerTensor, Tensor

_serial = itertools.count()
_NO_TOKEN = EagerTensor(None, dtypes.bool_)


class IncompatibleArgumentError(InvalidArgumentError, TypeError):
    """A concrete function was called with a tensor of another dtype or shape than it was traced for."""


class _Misfit(Exception):
    """Arguments that don't fit one way of calling a concrete function."""


def is_array(value: Any) -> bool:
    """Whether a value is an array or converts itself to a tensor, as variables do."""
    return hasattr(value, "__array__") or hasattr(type(value), "__tf_tensor__")


def _serves(traced: Any, value: Any) -> bool:
    """Whether a Python value counts as the one that was traced."""
    own, other = trace_type_of(traced), trace_type_of(value)
    if own is not None and other is not None:
        return bool(own == other or other.is_subtype_of(own))
    return key_of_call((traced,), {}, []) == key_of_call((value,), {}, [])


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
        parameters: Arguments,
    ) -> None:
        self.graph = graph
        self.name = f"__inference_{graph.name}_{next(_serial)}"
        self.function = GraphFunction(graph, jit_compile)
        self.variables = tuple(variables)
        self.guards: tuple = ()  # what must still hold for the trace to be used (see guards.py)
        self.checked = False  # whether it was traced with `enable_check_numerics`
        self.used = True  # since the cache last looked for room
        # Once it is known how calls run: from tensors to the result, where no tape and no trace is open.
        self.direct: Callable[[list[Any]], Any] | None = None
        self._may_be_direct = not variables
        self._captures = list(captures)
        self.symbolic_captures = symbolic_captures
        self._specs = specs
        graph.outside = (len(specs), [*captures, *symbolic_captures, *variables])
        self._arguments = arguments
        self._parameters = parameters
        self._written = written
        self._commits = commits
        self._result = result
        self._is_none = is_none
        self._single = result is None and is_none == [False]
        self._has_token = len(graph.inputs) > len(specs) + len(captures) + len(symbolic_captures) + len(variables)
        self._extra: list[Any] = [*captures, *([_NO_TOKEN] if self._has_token and not variables else ())]
        self._count = is_none.count(False)
        # Whether calls with another key than the one it was traced for may use it.
        self._is_general = any(None in (s._shape or (None,)) for s in specs) or any(
            trace_type_of(recalled(a)) is not None for a in nest.flatten(arguments)
        )

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
        if self._may_be_direct and self.function.executable.settled is not None:
            self.direct, self._may_be_direct = self._direct(), False
        if self._single:
            return results[0]
        return self._pack(results)

    def _direct(self) -> Callable[[list[Any]], Any] | None:
        run, dtypes = self.function.direct(), [v.dtype for v in self.graph.outputs if v.is_tensor]
        if run is None:
            return None
        extra = [t._array for t in self._extra]
        if self._single:
            (dtype,) = dtypes
            return lambda tensors: EagerTensor(run([t._array for t in tensors] + extra)[0], dtype)

        def call(tensors: list[Any]) -> Any:
            results = run([t._array for t in tensors] + extra)
            return self._pack([EagerTensor(result, dtype) for result, dtype in zip(results, dtypes)])

        return call

    def inputs_for(self, tensors: Sequence[Any]) -> list[Any]:
        """All that the graph takes: the tensors of a call, what was captured, the variables' values, the token."""
        if not self.variables:
            return [*tensors, *self._extra]
        token = [_NO_TOKEN] if self._has_token else []
        return [*tensors, *self._extra, *[v.read_value() for v in self.variables], *token]

    def _call_with_variables(self, tensors: Sequence[Any]) -> list[Any]:
        inputs = self.inputs_for(tensors)
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
        arguments = [*tensors, *self._captures, *self.symbolic_captures, *reads, *token]
        values = builder.inline(self.graph, arguments)
        hand_on(self.graph, builder)
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
        """The tensors of a call: either all arguments as the function takes them, or its tensors alone."""
        try:
            return self._structured_call(args, kwargs)
        except _Misfit as structured:
            try:
                return self._flat_call(args, kwargs)
            except _Misfit as flat:
                raise TypeError(
                    f"Binding inputs to {self.graph.name}{self.function_type} failed: {structured}. As a call with its "
                    f"tensors alone it fails too: {flat}."
                ) from None

    def _structured_call(self, args: tuple, kwargs: dict[str, Any]) -> list[Tensor]:
        """Arguments by position or by the parameters' names; Python values may be left out, or must be those traced."""
        traced, traced_kwargs = self._arguments
        if len(args) > len(traced):
            raise _Misfit(f"{len(args)} arguments were given, {len(traced)} were traced")
        names = [*map(self._parameters.name_of, range(len(traced))), *sorted(traced_kwargs)]
        expected = dict(zip(names, [*traced, *[traced_kwargs[k] for k in sorted(traced_kwargs)]]))
        given = dict(zip(names, args))
        for name, value in kwargs.items():
            if name not in expected or name in given:
                raise _Misfit(f"got an unexpected argument '{name}'")
            given[name] = value
        tensors: list[Tensor] = []
        specs = iter(enumerate(self._specs))
        for name, before in expected.items():
            tensors += self._fit(name, before, given, specs)
        return tensors

    def _fit(self, name: str, before: Any, given: dict[str, Any], specs: Any) -> list[Tensor]:
        leaves = nest.flatten(before)
        if name not in given:
            if any(map(is_tensor_like, leaves)):
                raise _Misfit(f"missing the argument '{name}' ({type_text(before)})")
            return []
        now = given[name]
        if is_tensor_like(before):
            index, spec = next(specs)
            if not (isinstance(now, (Tensor, list, tuple, int, float, complex, str, bytes)) or is_array(now)):
                raise _Misfit(f"'{name}' must be a tensor, got {now!r}")
            return [self._check(index, spec, now)]
        try:
            nest.assert_same_structure(before, now)
        except (TypeError, ValueError):
            raise _Misfit(f"'{name}' doesn't have the structure of {type_text(before)}: {now!r}") from None
        tensors = []
        for old, new in zip(leaves, nest.flatten(now)):
            if is_tensor_like(old):
                index, spec = next(specs)
                tensors.append(self._check(index, spec, new))
            elif is_tensor_like(new) or not _serves(recalled(old), new):
                raise _Misfit(f"can not cast {new!r} of '{name}' to Literal[{old!r}], which the trace has baked in")
        return tensors

    def _flat_call(self, args: tuple, kwargs: dict[str, Any]) -> list[Tensor]:
        """The tensors alone, by position, then by name."""
        specs = self._specs
        values = nest.flatten(list(args))
        if len(values) > len(specs) or any(not (isinstance(v, Tensor) or is_array(v)) for v in values):
            raise _Misfit(f"{len(specs)} tensors are needed, {len(values)} values were given")
        names = [spec.name for spec in specs]
        by_name = dict(zip(names, values))
        for name, value in kwargs.items():
            if name not in names or name in by_name:
                raise _Misfit(f"got an unexpected argument '{name}'")
            by_name[name] = value
        missing = [name for name in names if name not in by_name]
        if missing:
            raise _Misfit(f"missing {', '.join(map(repr, missing))}")
        return [self._check(index, spec, by_name[spec.name]) for index, spec in enumerate(specs)]

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
        if len(mine) != len(theirs) or not self._is_general:
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
            elif is_tensor_like(other) or not _serves(recalled(own), other):
                return False
        return True

    # --- looking at it -------------------------------------------------------------------------------------------

    @property
    def argument_specs(self) -> list[TensorSpec]:
        """One for each tensor among the arguments."""
        return list(self._specs)

    @property
    def captured_inputs(self) -> list[Any]:
        """What the graph takes besides its arguments: tensors from outside, then the variables that it uses."""
        return [*self._captures, *self.symbolic_captures, *self.variables]

    @property
    def inputs(self) -> list[TensorSpec]:
        """All that the graph takes: the tensors among the arguments, then `captured_inputs`."""
        captured = [TensorSpec(as_shape(c.shape), c.dtype, getattr(c, "name", None)) for c in self.captured_inputs]
        return [*self._specs, *captured]

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

        def show(value: Any) -> Any:
            if is_tensor_like(value):
                return next(specs)
            # An object that is gone is shown by what stands for it.
            return value if type(value) is WeakArgument and value.get() is None else recalled(value)

        return nest.map_structure(show, self._arguments)

    @property
    def structured_outputs(self) -> Any:
        outputs = iter(self.outputs)
        return nest.pack_sequence_as(self._result, [None if none else next(outputs) for none in self._is_none])

    @property
    def trainable_variables(self) -> tuple:
        return tuple(v for v in self.variables if v.trainable)

    @property
    def function_type(self) -> FunctionType:
        """Parameters with the types they were traced for, and the result's."""
        return function_type(self._parameters.signature, self.structured_input_signature, self.structured_outputs)

    def pretty_printed_signature(self, verbose: bool = True) -> str:
        """The signature as text: parameter names, kinds and types, the result's type, and what the trace captured."""
        if not verbose:
            return f"{self.graph.name}{self.function_type}"
        type_ = self.function_type
        captures = [f"  {v.name}: TensorSpec(shape={v.shape}, dtype={v.dtype!r}, name=None)" for v in self.variables]
        captures += [f"  <tensor>: TensorSpec(shape={t.shape}, dtype={t.dtype!r}, name=None)" for t in self._captures]
        return "\n".join(
            ["Input Parameters:", *(type_.lines() or ["  None"]), "Output Type:", f"  {type_text(type_.output)}",
             "Captures:", *(captures or ["  None"])]
        )  # fmt: skip

    def as_text(self) -> str:
        """The graph as text."""
        return as_text(self.graph)

    def __str__(self) -> str:
        return f"ConcreteFunction {self.pretty_printed_signature()}"

    def __repr__(self) -> str:
        return f"<ConcreteFunction {self.pretty_printed_signature(verbose=False)} at 0x{id(self):X}>"
