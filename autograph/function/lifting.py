"""Variables that a function creates on its first call.

    @ag.function
    def layer(x):
        if self.w is None:
            self.w = ag.Variable(ag.random.normal([3, 4]))
        return x @ self.w

While the function is traced for the first time its variables really come to be: an initial value that was computed by
ops of the trace is computed now, from the part of the graph that leads to it and the arguments of this call. That trace
is thrown away; the function is traced once more, and must not create any variable this time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from runtime.context import ctx, init_scope
from runtime.errors import InaccessibleTensorError
from runtime.graph.interpreter import interpret
from runtime.graph.ir import Graph, Node, Substitution, Value, copy_nodes
from runtime.ops.convert import convert_to_tensor
from runtime.tensor import SymbolicTensor
from runtime.types import TensorType, TokenType
from runtime.variable import CREATED_ONCE

Trace = TypeVar("Trace")


class Lifting:
    """Takes the variables that are created while it is active (`ctx.lifting`)."""

    def __init__(self) -> None:
        self.created: list[Any] = []

    def create_variable(self, variable: Any, initial_value: Any, dtype: Any) -> TensorType:
        """Gives the variable its value. Raises ValueError when that depends on something that only a run knows."""
        value = initial_value
        if callable(value) and not isinstance(value, SymbolicTensor):
            try:
                with init_scope():
                    value = initial_value()
            except InaccessibleTensorError:  # it uses tensors of the trace
                value = initial_value()
        value = convert_to_tensor(value, dtype)
        array = evaluate(value.value, known_inputs(ctx.builder)) if isinstance(value, SymbolicTensor) else value._array  # type: ignore[attr-defined]
        variable._array = np.array(array) if np.shape(array) else array
        self.created.append(variable)
        return TensorType(value.dtype, np.shape(array))


class _SecondTrace(Lifting):
    """Takes none: a function whose first call has created variables is traced once more, and creates others."""

    def create_variable(self, variable: Any, initial_value: Any, dtype: Any) -> TensorType:
        raise ValueError(
            "tf.function-decorated function tried to create variables on every call: it was traced twice for this one, "
            f"its first, and created one both times. {CREATED_ONCE}"
        )


@contextlib.contextmanager
def _lifting_to(lifting: Lifting | None) -> Iterator[None]:
    outer, ctx.lifting = ctx.lifting, lifting
    try:
        yield
    finally:
        ctx.lifting = outer


def known_inputs(builder: Any) -> dict[Value, Any]:
    """What a trace's inputs are in the call that it is made for: arguments, captured tensors, variables."""
    known = {value: tensor._array for value, tensor in getattr(builder, "given", {}).items()}
    known.update((value, tensor._array) for tensor, value in builder.eager_captures.values())
    for key, value in builder.state_inputs.items():
        if isinstance(value.type, TensorType):
            variable = key.deref()
            known[value] = None if variable._array is None else variable.current_array()
    return known


def evaluate(value: Value, known: Mapping[Value, Any] = MappingProxyType({})) -> Any:
    """What a value of a graph being traced is, if it depends on no input but those that are known."""
    needed: dict[Node, None] = {}
    _collect(value, needed, known)
    order = {id(node): index for index, node in enumerate(value.graph.nodes)}
    graph = Graph("initial value")
    mapping = Substitution()
    nodes = sorted(needed, key=lambda n: order[id(n)])
    defined = {v for node in nodes for v in node.outputs}
    # Effects (random numbers) run once here; the order among them is the program's, so the tokens may start anywhere.
    for node in nodes:
        for operand in node.inputs:
            if operand not in defined and operand not in mapping:
                mapping[operand] = graph.add_input(operand.type)
    copy_nodes(nodes, graph, mapping)
    if value in known:
        return known[value]
    graph.outputs = [mapping[value]]
    given = {mapping[outer]: array for outer, array in known.items() if outer in mapping}
    return interpret(graph, [given.get(own) for own in graph.inputs])[0]


def _collect(value: Value, needed: dict[Node, None], known: Mapping[Value, Any]) -> None:
    pending = [value]
    while pending:
        current = pending.pop()
        if isinstance(current.type, TokenType) or current in known:
            continue
        if current.node is None:
            raise ValueError(
                f"The initial value of a variable created in the function '{value.graph.name}' depends on "
                f"'{current.name or 'a captured tensor'}', which is known only when the function runs. Create the "
                "variable outside of the function, or give it a callable that needs no argument of the function."
            )
        if current.node not in needed:
            needed[current.node] = None
            pending += current.node.inputs


def trace_once_or_twice(trace: Callable[[Callable[[], bool]], Trace | None], is_first: bool) -> Trace:
    """What `trace` gives, run a second time if the first run created variables, which only the first call may.

    trace: is given a function that says, once the traced function has run, whether its trace is thrown away.
    """
    lifting = Lifting() if is_first else None
    with _lifting_to(lifting):
        result = trace(lambda: lifting is not None and bool(lifting.created))
    if result is None:
        with _lifting_to(_SecondTrace()):
            result = trace(lambda: False)
    assert result is not None
    return result
