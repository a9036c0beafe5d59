"""`ConcreteFunction`: one traced graph with the structure of its arguments and results."""

from __future__ import annotations

import copy
import itertools
import operator
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec, TypeVar, overload

from autograph.function.calling import bind_call, serves
from autograph.function.function_type import FunctionType, function_type, trace_type_of, type_text
from autograph.function.sharing import calls_python, reaches, substitution
from autograph.function.signature import (
    Arguments,
    Identity,
    VariableArgument,
    WeakArgument,
    is_tensor_like,
    recalled,
)
from runtime import dtypes, locks, nest, performance
from runtime.context import ctx, placing
from runtime.device import get_log_device_placement
from runtime.dtypes import as_dtype
from runtime.engine.function import GraphFunction
from runtime.errors import OpError
from runtime.graph.ir import Graph, copy_graph
from runtime.graph.printer import as_text
from runtime.graph.unrolled import costliest_in, inherit_notes
from runtime.shapes import as_shape
from runtime.spec import TensorSpec
from runtime.tensor import DeviceTensor, EagerTensor, eager, held_by
from runtime.variable import Variable

_serial = itertools.count()
_MAX_TWINS = 512
# With defaults left out and given, with other objects of equal value.
_FAST_CALLS = 3
_NO_TOKEN = EagerTensor(None, dtypes.bool_)


def _is_one(spec: Any, value: Any) -> bool:
    """Whether the value is a tensor that the spec describes."""
    return value.__class__ is EagerTensor and value.dtype is spec.dtype and value._array.shape == spec._shape


P = ParamSpec("P")
Result = TypeVar("Result")


class ConcreteFunction(Generic[P, Result]):
    """A traced function. Calling it runs the graph; it never traces.

    Attributes: `graph` (print it to read it), `structured_input_signature`, `structured_outputs`, `inputs`, `outputs`,
    `variables`, `captured_inputs`, `name`. `as_text(stage)` shows the program at each stage from the graph to assembly.
    """

    def __init__(
        self,
        graph: Graph,
        specs: list[TensorSpec],
        arguments: tuple[tuple, dict[str, Any]],
        captures: list[EagerTensor],
        symbolic_captures: list[Any],
        variables: list[Any],
        written: list[int],
        commits: bool,
        result: Any,
        is_none: list[bool],
        jit_compile: bool | None,
        parameters: Arguments,
    ) -> None:
        self.graph = graph
        self.name = f"__inference_{graph.name}_{next(_serial)}"
        self.function = GraphFunction(graph, jit_compile)
        self._variables = tuple(variables)
        self.trace_seconds = 0.0  # for which a call waited for it
        # The loop whose copies it mostly consists of, until a warning has named it.
        self._unrolled = costliest_in(graph)
        self.guards: tuple = ()  # what must still hold for the trace to be used (see guards.py)
        self.here: Any = None  # under which checks, and for which replica, it was traced
        self.of_replica = False  # whether it was traced for a replica
        self.used = True  # since the cache last looked for room
        # Once it is known how calls run: from tensors to the result, where no tape and no trace is open.
        self.direct: Callable[[list[Any]], Any] | None = None
        # The same for tensors on a GPU; None: it has to be looked at more closely.
        self.on_gpus: dict[Any, Callable[[list[Any]], Any] | None] = {}
        self._was_settled = self._has_fast_call = False
        self.fast_calls_left = 0  # how many more kinds of calls its inline cache may learn
        self._captures = list(captures)
        self.symbolic_captures = symbolic_captures
        self._specs = specs
        graph.outside = (len(specs), [*captures, *symbolic_captures, *variables])
        self._arguments = arguments
        self.parameters = parameters
        self._written = written
        self._commits = commits
        self._jit_compile = jit_compile
        self._result = result
        self._is_none = is_none
        self._packer: Callable[[Sequence[Any]], Any] | None = None  # makes the result's structure of its leaves
        self._single = result is None and is_none == [False]
        self._has_token = len(graph.inputs) > len(specs) + len(captures) + len(symbolic_captures) + len(variables)
        self._extra: list[Any] = [*captures, *([_NO_TOKEN] if self._has_token and not variables else ())]
        self._extra_on: dict[Any, list[Any]] = {}  # the same on GPUs
        self._count = is_none.count(False)
        leaves = nest.flatten(arguments)
        # Whether a call by position with such tensors needs no look at anything else.
        self._plain = not arguments[1] and len(specs) == len(arguments[0]) and all(map(is_tensor_like, arguments[0]))
        self._given_variables = [a for a in leaves if isinstance(a, VariableArgument)]
        # Python code may wait for a thread that calls this function too: such a call takes no locks.
        self._waits = bool(variables or self._given_variables) and calls_python(graph)
        self._locks: tuple[int, ...] | None = None  # of the variables that are assigned
        self._shares_variables = bool(self._given_variables) and not self._waits
        # Whether calls with another key than the one it was traced for may use it.
        self._is_general = (
            any(None in (s._shape or (None,)) for s in specs)
            or any(trace_type_of(recalled(a)) is not None for a in leaves)
            or self._shares_variables
        )
        # Of a twin, which is a trace (`_origin`) on other variables than it was made with: those, by the old ones' ids.
        self._instead: dict[int, Any] = {}
        self._origin: ConcreteFunction | None = None
        self._twins: dict[tuple, ConcreteFunction] = {}
        self.python_function: Any = None
        self.kept_alive: Any = None  # of a trace out of a pickle: the objects that it is for
        # Of the function that made the trace: traces it once more, so that what its passes do can be seen.
        self.retrace: Callable[[], Callable[[ConcreteFunction], ConcreteFunction] | None] = lambda: None

    def made_of(self) -> dict[str, Any]:
        """What makes this trace again: the arguments of the class but `commits`, which the graph tells."""
        origin = self._origin or self
        return {
            "graph": origin.graph, "specs": origin._specs, "arguments": origin._arguments,
            "captures": origin._captures, "symbolic_captures": origin.symbolic_captures,
            "variables": origin._variables, "written": origin._written, "result": origin._result,
            "is_none": origin._is_none, "jit_compile": origin._jit_compile, "parameters": origin.parameters,
        }  # fmt: skip

    # --- variables among the arguments ---------------------------------------------------------------------------

    @property
    def variables(self) -> tuple:
        """The variables that the graph reads or assigns."""
        if self._origin is None:
            return self._variables
        variables = tuple([v() if type(v) is weakref.ref else v for v in self._variables])
        if any(v is None for v in variables):
            raise ReferenceError(f"A variable that {self.graph.name} was to be called with has been deleted.")
        return variables

    def serving(self, args: tuple, kwargs: dict[str, Any]) -> ConcreteFunction | None:
        """The trace for these canonical arguments: itself, or itself on their variables; None if it doesn't fit."""
        if not self.covers(args, kwargs):
            return None
        return self._on([a for a in nest.flatten((args, kwargs)) if isinstance(a, Variable)], args, kwargs)

    def _on(self, variables: list[Any], args: tuple, kwargs: dict[str, Any]) -> ConcreteFunction | None:
        """This trace on other variables than it was made with (see sharing.py); None where it can't serve them."""
        if self._origin is not None:
            return self._origin._on(variables, args, kwargs)
        before = [a.get() for a in self._given_variables]
        if all(map(operator.is_, before, variables)):
            return self
        instead = substitution(self._given_variables, variables)
        if instead is None or not self._shares_variables:
            return None
        key = tuple(map(Identity, variables))
        if key not in self._twins:
            others = [v for v in before if v is not None]
            if reaches(self.python_function, args, kwargs, [*variables, *others]):
                return None
            if len(self._twins) >= _MAX_TWINS:
                self._twins.clear()
            self._twins[key] = self._twin(instead)
        return self._twins[key]

    def _twin(self, instead: dict[int, Variable]) -> ConcreteFunction:
        """The same graph on other variables, which it doesn't keep alive: `instead` has them by the first ones' ids."""
        twin = copy.copy(self)
        twin._origin, twin._instead = self, {key: weakref.ref(v) for key, v in instead.items()}
        twin._locks = None
        twin._variables = tuple([twin._instead.get(id(v), v) for v in self._variables])
        twin._arguments = nest.map_structure(
            lambda a: VariableArgument(instead[a.id], a.name_counts) if isinstance(a, VariableArgument) else a,
            self._arguments,
        )
        return twin

    def __copy__(self) -> ConcreteFunction:
        """A shallow copy shares the graph; pickles and deep copies have their own."""
        made = ConcreteFunction.__new__(ConcreteFunction)
        vars(made).update(vars(self))
        return made

    def __reduce__(self) -> tuple:
        from autograph.function.pickling import reduced_trace  # loads what reads and writes graphs

        return reduced_trace(self, ConcreteFunction)

    def graph_on_its_variables(self) -> Graph:
        """The graph with the call's variables in place of the traced ones, where assignments name them."""
        if self._origin is None:
            return self.graph
        graph = copy_graph(self.graph)
        for node in graph.walk():
            variable = node.attrs.get("variable")
            if variable is not None and id(variable.deref()) in self._instead:
                node.attrs["variable"] = self._instead[id(variable.deref())]().ref()
        return graph

    # --- calling -------------------------------------------------------------------------------------------------

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Result: ...
    @overload  # Python values that the trace has baked in may be left out
    def __call__(self, *args: Any, **kwargs: Any) -> Result: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the graph on tensors, given by position or by the traced function's parameter names.

        Raises IncompatibleArgumentError (an InvalidArgumentError and a TypeError) for the wrong dtype or shape.
        """
        if self._plain and not kwargs and len(args) == len(self._specs) and all(map(_is_one, self._specs, args)):
            if self.direct is not None and ctx.builder is None and not ctx.recorders and not placing:
                return self.direct(list(args))
            return self.call_flat(args)
        tensors, variables, called = bind_call(self, args, kwargs)
        concrete = self._on(variables, *called)
        if concrete is None:
            raise ValueError(
                f"{self.graph.name} can't be called with other variables than it was traced with: it reaches one of "
                "them otherwise than through its arguments, or runs Python code, or some were one variable and are two "
                "now, or the other way round. Call the ag.function, which makes a trace for them."
            )
        return concrete.call_flat(tensors)

    def call_flat(self, tensors: Sequence[Any]) -> Any:
        """Runs the graph on the flat list of its tensor arguments, which must fit; gives the structured result."""
        self.used = True
        if ctx.builder is not None:
            results = self._inline(tensors)
        elif not self._variables:
            results = self.function(self.inputs_for(tensors))
        else:
            results = self._call_with_variables(tensors)
        if not self._was_settled and self.function.executable.settled is not None:
            self._was_settled = True
            if self.function.device is None:
                self.direct = None if self._variables else self._direct()
                self.fast_calls_left = _FAST_CALLS if self._kernel is not None and not self._given_variables else 0
        if self._unrolled is not None and ctx.builder is None:
            self._warn_if_slow()
        if self._single:
            return results[0]
        return self._pack(results)

    def _warn_if_slow(self) -> None:
        """Names the loop that was unrolled once tracing and compiling has taken long."""
        seconds = self.trace_seconds + self.function.compile_seconds
        if seconds > performance.SLOW_COMPILATION:
            from runtime.engine import slowness  # loads the code generator

            loop, self._unrolled = self._unrolled, None
            if loop is not None:  # another thread's call may have named it
                slowness.warn_of_unrolling(self.graph.name, loop, seconds)

    def _direct(self) -> Callable[[list[Any]], Any] | None:
        run, dtypes = self.function.direct(), [v.dtype for v in self.graph.outputs if v.is_tensor]
        if run is None:
            return None
        extra = [t._array for t in self._extra]
        if self._single:
            (dtype,) = dtypes
            if not extra and len(self.graph.inputs) == 1:
                return lambda tensors: EagerTensor(run([tensors[0]._array])[0], dtype)
            return lambda tensors: EagerTensor(run([t._array for t in tensors] + extra)[0], dtype)

        def call(tensors: list[Any]) -> Any:
            results = run([t._array for t in tensors] + extra)
            return self._pack([EagerTensor(result, dtype) for result, dtype in zip(results, dtypes)])

        return call

    def call_on(self, place: Any, tensors: list[Any]) -> Any:
        """Runs the graph on a GPU, where no tape and no trace is open; gives the structured result."""
        run = self.on_gpus.get(place)
        if run is not None:
            self.used = True
            return run(tensors)
        result = self.call_flat(tensors)
        if place not in self.on_gpus:
            self.on_gpus[place] = self._direct_on(place)
        return result

    def _direct_on(self, place: Any) -> Callable[[list[Any]], Any] | None:
        placed = self.function.placed_on(place)
        if placed is None or self._variables or self._has_token:
            return None
        direct = placed.direct
        assert direct is not None
        captured = [held_by(t) for t in self._extra_at(place)]

        def run(tensors: list[Any]) -> Any:
            given = []
            for tensor in tensors:
                held = tensor.held if tensor.__class__ is DeviceTensor else None
                if held is None or held.place is not place or not (held.is_there or held.shape == ()):
                    return self.call_flat(tensors)  # which counts copies
                given.append(held)
            if get_log_device_placement():
                return self.call_flat(tensors)
            try:
                results = self.function.wrapped(direct(given + captured))
            except (OpError, AssertionError):
                return self.call_flat(tensors)  # which says more about the error
            placed.calls += 1
            return results[0] if self._single else self._pack(results)

        return run

    @property
    def _kernel(self) -> Any:
        """The kernel that all the graph has become; None where it is more than one, or partly interpreted."""
        return getattr(self.function.executable.settled, "kernel", None)

    def answered_by(self) -> str:
        """What answers calls of the native function, and why: a part of `f.explain`."""
        if self._kernel is None:
            why = getattr(self.function.executable.settled, "by_python", "since there is more than one kernel")
            return f"answered in Python, {why}"
        if self._has_fast_call:
            return "answered by machine code, if the arguments are of the kinds seen before"
        return "answered in Python; by machine code after a few calls"

    def plan(
        self, pattern: Any, order: Sequence[int], fallback: Callable[..., Any], raising: Callable[..., Any]
    ) -> Any:
        """The inline cache's plan for calls that match a pattern; None if there can't be one.

        order: the permutation of the pattern's tensors into the order of the parameters.
        """
        from runtime.engine.fastcall import inline_cache

        structure, variables = self._result, self.variables
        written = [variables[index] for index in self._written]
        if self._commits or not all(pattern.variable(v, "_array") for v in variables):
            return None
        for lock in locks.of(v._id for v in written):
            pattern.lock(lock)
        is_tuple = type(structure) is tuple and not any(map(nest.is_nested, structure)) and not any(self._is_none)
        nothing = structure is None and self._is_none == [True]
        pack: Any = None if self._single else tuple if is_tuple else inline_cache.NOTHING if nothing else self._pack
        extra, dtypes = [t._array for t in self._extra], [v.dtype for v in self.graph.outputs if v.is_tensor]
        assign = [v.set_array for v in written]
        plan = inline_cache.make_plan(self._kernel, pattern, order, extra, dtypes, assign, pack, fallback, raising)
        self._has_fast_call = self._has_fast_call or plan is not None
        return plan

    def shapes_like(self, tensors: Sequence[EagerTensor]) -> list[tuple]:
        """The tensors' shapes, with None for dimensions that the trace leaves open."""
        return [
            tuple([n if open is not None else None for n, open in zip(t._array.shape, s._shape or t._array.shape)])
            for s, t in zip(self._specs, tensors, strict=True)
        ]

    def inputs_for(self, tensors: Sequence[Any]) -> list[Any]:
        """All that the graph takes: the tensors of a call, what was captured, the variables' values, the token."""
        own = [v.own_value() for v in self.variables] if self._variables else []
        token = [_NO_TOKEN] if self._variables and self._has_token else []
        extra = self._extra
        across = bool(placing) and self.function.executable.names_devices
        if placing and self._captures and not ctx.recorders and not across:  # tapes know them by identity
            extra = self._extra_at(placing[0].place_of_graph([*tensors, *own], self.function.device))
        return [*tensors, *extra, *own, *token]

    def _extra_at(self, place: Any) -> list[Any]:
        """What was captured, for a call that runs on a GPU: copied there once."""
        if place not in self._extra_on:
            copied = [t if t.__class__ is not EagerTensor else placing[0].put(t, place) for t in self._captures]
            self._extra_on[place] = [*copied, *self._extra[len(copied) :]] if place is not None else self._extra
        return self._extra_on[place]

    def _call_with_variables(self, tensors: Sequence[Any]) -> list[Any]:
        if not self._written or self._waits:
            return self._run_on_variables(tensors)
        if self._locks is None:
            variables = self.variables
            self._locks = locks.places(variables[index]._id for index in self._written)
        with locks.Held(self._locks):
            return self._run_on_variables(tensors)

    def _run_on_variables(self, tensors: Sequence[Any]) -> list[Any]:
        if not ctx.recorders:
            if not placing:
                values = [v.current_array() for v in self.variables]
                return self._run_unseen(self.function.executable, tensors, self._extra, values)
            placed = self._placed_unseen(tensors)
            if placed is not None:
                values = [v.array_in_place() for v in self.variables]
                return self._run_unseen(placed, tensors, self._extra_at(placed.place), values)
        inputs, variables = self.inputs_for(tensors), self.variables
        results = self._run(self.function, inputs)
        for index, value in zip(self._written, results[self._count :]):
            variables[index].assign_own(value)
        return results

    def _run_unseen(
        self, run: Callable[[list[Any]], list[Any]], tensors: Sequence[Any], extra: Sequence[Any], values: list[Any]
    ) -> list[Any]:
        """The same where no tape looks on: no tensors are made of the variables' values. run: takes arrays, and gives
        them. extra: what was captured; values: the variables' arrays, both where the graph runs."""
        arrays = [*map(held_by, tensors), *map(held_by, extra), *values]
        if self._has_token:
            arrays.append(None)
        results = self._run(run, arrays)
        variables = self.variables
        for index, array in zip(self._written, results[self._count :]):
            variables[index].set_array(array)
        return self.function.wrapped(results[: self._count])

    def _placed_unseen(self, tensors: Sequence[Any]) -> Any:
        """The graph on the GPU where it and all its variables are, if it has run there; else None."""
        executable, variables = self.function.executable, self.variables
        if executable.names_devices or get_log_device_placement():
            return None
        place = placing[0].place_of_graph(tensors, self.function.device)
        if place is None and ctx.device is None and variables:
            place = variables[0].place
        placed = executable.placed.get(place)
        if placed is None or any(v.place is not place or not v.is_plain for v in variables):
            return None
        return placed

    def _run(self, run: Callable[[list[Any]], list[Any]], inputs: list[Any]) -> list[Any]:
        """What `run` gives. Assignments that ran before an error count, as they do in eager code."""
        if not self._commits:
            return run(inputs)
        outer, ctx.commits = ctx.commits, {}
        try:
            return run(inputs)
        except BaseException:
            for reference, value in ctx.commits.items():
                variable = reference.deref()
                variable = self._instead.get(id(variable), reference.deref)()
                variable.assign_own(eager(value, variable.dtype))
            raise
        finally:
            ctx.commits = outer

    def inline_on(self, tensors: Sequence[Any], values: dict[Any, Any]) -> tuple[Any, dict[Any, Any]]:
        """Makes the graph part of the one being traced, on other values of variables than they have.

        values: by the variables' references. Gives the structured result, and the new values of those of these
        variables that the graph assigns, which keep the ones they have.
        """
        assigned: dict[Any, Any] = {}
        results = self._inline(tensors, values, assigned)
        return (results[0] if self._single else self._pack(results)), assigned

    def _inline(
        self, tensors: Sequence[Any], values: dict[Any, Any] | None = None, assigned: dict[Any, Any] | None = None
    ) -> list[Any]:
        """Makes the graph part of the one being traced. values, assigned: see `inline_on`."""
        builder, variables, values = ctx.builder, self.variables, values or {}
        reads = [values[v.ref()] if v.ref() in values else builder.read_variable(v) for v in variables]
        token = [builder.read_token()] if self._has_token else []
        arguments = [*tensors, *self._captures, *self.symbolic_captures, *reads, *token]
        outputs = builder.inline(self.graph_on_its_variables(), arguments)
        inherit_notes(self.graph, builder)
        for argument in nest.flatten(self._arguments):
            if isinstance(argument, VariableArgument) and argument.name_counts:
                builder.note_name(argument.get())
        for index, value in zip(self._written, outputs[self._count :]):
            reference = variables[index].ref()
            if assigned is not None and reference in values:
                assigned[reference] = builder.tensor(value)
            else:
                builder.merge_state(reference, value)
        if self._has_token:
            builder.write_token(outputs[-1])
        return [builder.tensor(v) for v in outputs[: self._count]]

    def _pack(self, results: Sequence[Any]) -> Any:
        if self._packer is None:
            self._packer = nest.packer(self._result)
        if len(results) != self._count:  # a token comes last
            results = results[: self._count]
        if len(self._is_none) != self._count:
            values = iter(results)
            results = [None if none else next(values) for none in self._is_none]
        return self._packer(results)

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
            elif isinstance(own, VariableArgument):
                if not own.looks_like(other):
                    return False
            elif is_tensor_like(other) or not serves(recalled(own), other):
                return False
        return True

    # --- looking at it -------------------------------------------------------------------------------------------

    @property
    def argument_specs(self) -> list[TensorSpec]:
        """One for each tensor among the arguments."""
        return list(self._specs)

    @property
    def captured_inputs(self) -> list[Any]:
        """The graph's inputs besides its arguments: captured tensors, then the variables that it uses."""
        return [*self._captures, *self.symbolic_captures, *self.variables]

    @property
    def inputs(self) -> list[TensorSpec]:
        """All inputs of the graph: the tensors among the arguments, then `captured_inputs`."""
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
            return value if isinstance(value, WeakArgument) and value.get() is None else recalled(value)

        return nest.map_structure(show, self._arguments)

    @property
    def structured_outputs(self) -> Any:
        outputs = iter(self.outputs)
        return nest.pack_sequence_as(self._result, [None if none else next(outputs) for none in self._is_none])

    def add_to_graph(self, g: Any = None, overwrite: bool = False) -> None:
        """Does nothing: graphs keep no lists of functions, because calls are inlined."""

    def add_gradient_functions_to_graph(self, g: Any = None) -> None:
        """Does nothing: gradients are made on demand."""

    @property
    def output_shapes(self) -> Any:
        """The static shapes of the results."""
        return nest.map_structure(lambda spec: None if spec is None else spec.shape, self.structured_outputs)

    @property
    def output_dtypes(self) -> Any:
        """The dtypes of the results."""
        return nest.map_structure(lambda spec: None if spec is None else spec.dtype, self.structured_outputs)

    @property
    def trainable_variables(self) -> tuple:
        return tuple(v for v in self.variables if v.trainable)

    @property
    def assigned_variables(self) -> tuple:
        """The variables that the graph assigns."""
        return tuple([self.variables[index] for index in self._written])

    @property
    def function_type(self) -> FunctionType:
        """Parameters with the types they were traced for, and the result's."""
        return function_type(self.parameters.signature, self.structured_input_signature, self.structured_outputs)

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

    def as_text(self, stage: str = "graph", gradient: str | None = None) -> str:
        """The program at a stage of its compilation, as text. Nothing runs.

        Args:
            stage: "graph": the graph after all passes. "passes": the graph as it was traced and after each
                pass that changes it, changed lines marked with - and +; for this the function is traced again.
                "kernel": the native code as Python. "kernel-passes": what each pass over the kernel changes. "llvm":
                the kernel as LLVM IR. "optimized-llvm": the same after LLVM's passes. "asm": its assembly for
                this machine. "device-passes": what each pass changes that makes the native code one that all threads
                of a GPU run. "device-kernel": that code, as Python. "ptx": the same as PTX, NVIDIA's assembly
                language. Where some operations stay on the interpreter, there is a kernel for each native part.
            gradient: None: the function. "forward": the function with what its gradient needs. "backward": the
                gradient with respect to all floating-point inputs, variables among them.

        Raises ValueError for another stage, or where there is no gradient; UnimplementedError where nothing is native;
        ReferenceError if the function can't be traced again because it, or an argument of its, is gone.
        """
        if (stage, gradient) == ("graph", None):
            return as_text(self.graph)
        from runtime.engine.stages import text_of  # loads the code generator

        return text_of(stage, gradient, self.function, self._traced_again)

    def _traced_again(self) -> GraphFunction:
        retrace = self.retrace()
        if retrace is None:
            raise ReferenceError(f"the function that made the trace {self.graph.name!r} is gone, or made it otherwise")
        return retrace(self).function

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return self.graph._repr_html_()

    def __str__(self) -> str:
        return f"ConcreteFunction {self.pretty_printed_signature()}"

    def __repr__(self) -> str:
        return f"<ConcreteFunction {self.pretty_printed_signature(verbose=False)} at 0x{id(self):X}>"
