"""The adjoint of `letrec`: a `letrec` of adjoint functions, which run their function again and walk it back.

    f(x): a = call f(x - 1)          f'(x, dy): a = call f(x - 1)
          return a · x         →                dx = a · dy + call f'(x - 1, x · dy)
                                                return dx

A call in a function is a call in its adjoint, to know its results, and one of the callee's adjoint. Unused results are
dropped (of a sum of calls only the adjoints remain). Where results are needed, each call would run again for every call
around it: `recursive_results.py` keeps them, once no further derivative is taken. In higher orders, and for calls in
loops, the gradient costs up to `d` times what the value does if calls are `d` deep. Captures become arguments of all
calls first, so that their cotangents are results.

The adjoint of `f` is named `f'`, a name that no user function can have. Adjoints have adjoints: their group holds the
functions that they call.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from runtime.autodiff.calls import NodeCall, is_differentiable
from runtime.autodiff.reverse import REGION_RULES, Cotangents, walk_back
from runtime.autodiff.zeros import exact_zeros_for, with_shape, zeros_for
from runtime.context import ctx
from runtime.errors import UnimplementedError
from runtime.graph.builder import Builder, emit_call, emit_functions
from runtime.graph.ir import Graph, Node, Substitution, copy_graph, copy_nodes
from runtime.graph.passes.dead_code import remove_dead_code
from runtime.graph.passes.rewrites.explicit_captures import pass_captures
from runtime.graph.passes.rewrites.silence import runs_once, silenced
from runtime.graph.spans import at_span
from runtime.thread_state import propagated
from runtime.types import TokenType

# Attributes of `call` nodes while `recursive_results.py` works: the number of a call, and, of a call of an adjoint, the
# number of the call that it belongs to.
SITE, ADJOINT_OF = "site", "adjoint of"


class _Group:
    """The functions of a `letrec` that is being differentiated, without effects and captures, and their adjoints."""

    def __init__(self, functions: dict[str, Graph]) -> None:
        self.functions = functions
        self.wanted: list[str] = []  # functions whose adjoints are called

    def adjoint(self, name: str) -> str:
        """The name of a function's adjoint, which is built later."""
        adjoint = f"{name}'"
        if adjoint not in self.functions and name not in self.wanted:
            self.wanted.append(name)
        return adjoint


class _Groups(threading.local):
    """The groups that enclose the function being differentiated, outermost first."""

    def __init__(self) -> None:
        self.open: list[_Group] = []


_groups = propagated(_Groups())


def adjoint_of_letrec(
    call: NodeCall, arrived: Sequence[Any], tracked: Callable[[Any], bool], sums: Cotangents
) -> list[Any]:
    """Cotangents of (arguments..., captures...)."""
    node, wrap = call.node, call.builder.tensor
    effect = next((inner for region in node.regions for inner in region.nodes if runs_once(inner)), None)
    if effect is not None:
        raise _refusal(effect)
    functions = _without_captures(node)
    first = node.attrs["functions"][0]
    functions |= adjoint_functions(functions, first)
    entry = f"{first}'"
    inputs = [wrap(v) for v in node.inputs if not isinstance(v.type, TokenType)]
    operands = [*inputs, *_seeds(call.outputs, arrived)]
    names = [entry, *[name for name in called_from(functions, entry) if name != entry]]
    graphs = [functions[name] for name in names]
    results = iter(emit_functions(names, graphs, operands))
    return [next(results) if is_differentiable(v.type) else None for v in node.inputs]


def adjoint_functions(functions: dict[str, Graph], entry: str) -> dict[str, Graph]:
    """The adjoint of a function, and those that it calls, by name."""
    group = _Group(dict(functions))
    group.adjoint(entry)
    made: dict[str, Graph] = {}
    _groups.open.append(group)
    try:
        while group.wanted:
            name = group.wanted.pop()
            made[f"{name}'"] = group.functions[f"{name}'"] = _adjoint_function(f"{name}'", group.functions[name]).graph
    finally:
        _groups.open.pop()
    return made


def adjoint_of_call(
    call: NodeCall, arrived: Sequence[Any], tracked: Callable[[Any], bool], sums: Cotangents
) -> list[Any]:
    """Cotangents of the arguments of a call inside a function."""
    name = call.node.attrs["function"]
    group = next((each for each in reversed(_groups.open) if name in each.functions), None)
    if group is None:
        raise at_span(
            UnimplementedError(
                f"no gradient: the tape is in the function '{name}' itself, which calls itself under a condition on a "
                "tensor, so its body isn't known yet. Take the gradient outside of the function"
            ),
            call.node.span,
        )
    types = [v.type for v in group.functions[name].inputs if is_differentiable(v.type)]
    operands = [*call.inputs, *_seeds(call.outputs, arrived)]
    adjoints = emit_call(group.adjoint(name), operands, types)
    if SITE in call.node.attrs and adjoints:
        made = adjoints[0].value.node
        made.attrs = {**made.attrs, ADJOINT_OF: call.node.attrs[SITE]}
    results = iter(adjoints)
    return [next(results) if is_differentiable(v.type) else None for v in call.node.inputs]


def _seeds(outputs: Sequence[Any], arrived: Sequence[Any]) -> list[Any]:
    """The cotangents of all results that can have one."""
    pairs = [(tensor, dy) for tensor, dy in zip(outputs, arrived) if is_differentiable(tensor.type)]
    return [zeros_for(tensor) if dy is None else dy for tensor, dy in pairs]


def _adjoint_function(name: str, function: Graph) -> Builder:
    builder = Builder(name, ctx.builder)
    parameters = [builder.graph.add_input_like(v) for v in function.inputs]
    arrived = [builder.add_input(v.type) for v in function.outputs if is_differentiable(v.type)]
    with builder:
        mapping = Substitution(zip(function.inputs, parameters))
        copy_nodes(function.nodes, builder.graph, mapping)
        calls = [NodeCall(node, builder) for node in builder.graph.nodes]
        varied = {own for own in parameters if is_differentiable(own.type)}
        for each in calls:
            if any(t.value in varied for t in each.inputs):
                varied.update(t.value for t in each.outputs if is_differentiable(t.type))
        cotangents = Cotangents()
        outputs = [mapping[v] for v in function.outputs if is_differentiable(v.type)]
        for output, own in zip(outputs, arrived):
            cotangents.add(builder.tensor(output), builder.tensor(own))
        walk_back(calls, cotangents, lambda t: builder.use(t) in varied, keep=lambda t: t.value.node is None)
        results = []
        for own in parameters:
            if is_differentiable(own.type):
                found = cotangents.get(builder.tensor(own))
                found = exact_zeros_for(builder.tensor(own)) if found is None else found
                results.append(with_shape(found, own.type))
        builder.graph.outputs = [builder.use(t) for t in results]
    assert not builder.captured
    remove_dead_code(builder.graph)
    return builder


def called_from(functions: dict[str, Graph], entry: str) -> list[str]:
    """The functions that `entry` may call, directly or indirectly, and itself."""
    found = [entry]
    for name in found:
        for node in functions[name].walk():
            called = node.attrs["function"] if node.op.name == "call" else None
            if called in functions and called not in found:
                found.append(called)
    return found


def _without_captures(node: Node) -> dict[str, Graph]:
    """Copies of a `letrec` node's functions without effects, which take its captures as arguments."""
    (silent,) = silenced([node])
    regions = [copy_graph(region) for region in silent.regions]
    copy = Node(node.op, silent.inputs, dict(silent.attrs), (), node.graph, regions)
    pass_captures(copy)
    return dict(zip(node.attrs["functions"], regions))


def _refusal(effect: Node) -> Exception:
    inner = effect
    while inner.regions:
        inner = next(n for region in inner.regions for n in region.nodes if runs_once(n))
    return at_span(
        UnimplementedError(
            f"no gradient: {inner.op.name} is in a function that calls itself. The gradient runs the function a second "
            "time, which would change its result or repeat its effect. Compute it before the call, or draw from an "
            "`ag.random.Generator` or with `ag.random.stateless_*`, which repeat their numbers"
        ),
        inner.span or effect.span,
    )


REGION_RULES["letrec"] = adjoint_of_letrec
REGION_RULES["call"] = adjoint_of_call
