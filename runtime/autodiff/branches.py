"""The adjoint of `cond`: another `cond` on the same predicate, whose branches run the branch again and walk it back.

    y = cond(p, x): then: exp(x) · x     →     dx = cond(p, x, dy): then: e = exp(x); dy · e · x + dy · e
                    else: x                                         else: dy

Running the branch again costs less than it looks: what its gradient doesn't need is dropped, and in exchange nothing is
kept for the branch that isn't taken. Results of effects (random numbers, host calls) can't be had a second time: the
forward node hands them out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runtime.autodiff.calls import NodeCall, is_differentiable
from runtime.autodiff.reverse import REGION_RULES, Cotangents, walk_back
from runtime.autodiff.zeros import empty_like_type, exact_zeros_for
from runtime.context import ctx
from runtime.errors import UnimplementedError
from runtime.graph.builder import Builder, emit_cond, trace_region
from runtime.graph.ir import Graph, Node, Substitution, Value, copy_graph, copy_nodes
from runtime.graph.passes.silence import gives_by_effect, silenced
from runtime.graph.spans import at_span
from runtime.types import TensorType, TokenType


def adjoint_of_cond(call: NodeCall, arrived: Sequence[Any], tracked: Callable[[Any], bool]) -> list[Any]:
    """Cotangents of (predicate, captures...)."""
    node, wrap = call.node, call.builder.tensor
    _hand_out_effects(node)
    captures = node.inputs[1:]
    wanted = [i for i, v in enumerate(captures) if is_differentiable(v.type) and tracked(wrap(v))]
    # A value that is captured twice, as common subexpressions are, is one value in the adjoint: it has one cotangent.
    wanted = [i for i in wanted if captures.index(captures[i]) == i]
    if not wanted:
        return [None] * len(node.inputs)

    def adjoint_region(region: Graph, handed: dict[Value, Value]) -> Any:
        sharing: list[Node] = []

        def trace() -> list[Any]:
            return _walk_branch(node, region, handed, captures, wanted, arrived, sharing)

        traced = trace_region(f"adjoint of {region.name}", trace)
        traced.builder.graph.outputs = traced.outputs
        _keep_what_is_used(traced.builder, sharing)
        return traced

    regions = [adjoint_region(r, dict(_handed_out(node, r))) for r in node.regions]
    results = emit_cond(node.inputs[0], *regions)
    found: list[Any] = [None] * len(node.inputs)
    for index, result in zip(wanted, results):
        found[1 + index] = result
    return found


class _HandedOut:
    """An effect that isn't repeated, as the reverse walk sees calls: its operands as they are computed again, and its
    results as the forward node hands them out."""

    def __init__(self, node: Node, builder: Builder, mapping: Substitution) -> None:
        self.op, self.attrs = node.op, node.attrs
        self.inputs = self._tensors(node.inputs, builder, mapping)
        self.outputs = self._tensors(node.outputs, builder, mapping)

    @staticmethod
    def _tensors(values: Sequence[Value], builder: Builder, mapping: Substitution) -> list[Any]:
        return [builder.tensor(mapping[v]) for v in values if not isinstance(v.type, TokenType)]


def _walk_branch(
    node: Node,
    region: Graph,
    handed: dict[Value, Value],
    captures: list[Value],
    wanted: list[int],
    arrived: Sequence[Any],
    sharing: list[Node],
) -> list[Any]:
    """sharing: gets the branches that share the regions of those that they are copies of."""
    builder = ctx.builder
    mapping = Substitution()
    for own, outer in zip(region.inputs, captures):
        if not isinstance(outer.type, TokenType):
            mapping[own] = builder.use(outer)
    for own, outer in handed.items():
        mapping[own] = builder.use(outer)
    calls: list[Any] = []
    for inner in region.nodes:
        if gives_by_effect(inner):
            calls.append(_HandedOut(inner, builder, mapping))
        else:
            start = len(builder.graph.nodes)
            # Mostly only the adjoint of a branch in this one is used, and its copy is dropped: to copy all that it
            # holds at each level of nested branches would be quadratic in the levels.
            shares = inner.op.name == "cond"
            copy_nodes(silenced([inner]), builder.graph, mapping, _itself if shares else None)
            made = builder.graph.nodes[start:]
            sharing += made if shares else ()
            calls += [NodeCall(n, builder) for n in made]
    varied = {mapping[region.inputs[i]] for i in wanted}
    for each in calls:
        if any(t.value in varied for t in each.inputs):
            varied.update(t.value for t in each.outputs if is_differentiable(t.type))
    cotangents = Cotangents()
    for output, cotangent in zip(region.outputs, arrived):
        if cotangent is not None:
            cotangents.add(builder.tensor(mapping[output]), cotangent)
    walk_back(calls, cotangents, lambda t: builder.use(t) in varied)
    results = []
    for index in wanted:
        own = builder.tensor(mapping[region.inputs[index]])
        cotangent = cotangents.get(own)
        results.append(exact_zeros_for(own) if cotangent is None else cotangent)
    return results


def _itself(region: Graph) -> Graph:
    return region


def _keep_what_is_used(builder: Builder, sharing: list[Node]) -> None:
    """Drops what doesn't reach the adjoint's results, not looking into regions; gives the branches that stay their
    own. What regions hold is looked at when all levels are there."""
    graph = builder.graph
    live = set(graph.outputs)
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if node.op.effect or node.has_effect or not live.isdisjoint(node.outputs):
            live.update(node.inputs)
            kept.append(node)
    graph.nodes = kept[::-1]
    builder.forget_captures(live)
    for node in set(sharing).intersection(kept):
        node.regions = tuple(map(copy_graph, node.regions))


def _handed_out(node: Node, region: Graph) -> list[tuple[Value, Value]]:
    """(value in the region, output of the node) for each result of an effect in the region."""
    effects = {v for n in region.nodes if gives_by_effect(n) for v in n.outputs if isinstance(v.type, TensorType)}
    return [(own, outer) for own, outer in zip(region.outputs, node.outputs) if own in effects]


def _hand_out_effects(node: Node) -> None:
    """Makes the results of effects in either branch outputs of the node; the other branch gives empty placeholders."""
    for region in node.regions:
        for inner in region.nodes:
            if not gives_by_effect(inner):
                continue
            results = [v for v in inner.outputs if isinstance(v.type, TensorType) and v not in region.outputs]
            if inner.regions and (results or any(is_differentiable(v.type) for v in inner.outputs)):
                raise _refusal(inner)
            for value in results:
                _add_output(node, region, value)


def _refusal(loop: Node) -> Exception:
    """Says which effect stands in the loop (or branch), in which line, and what does the same and has a gradient."""
    effect = loop
    while effect.regions:
        effect = next(n for region in effect.regions for n in region.nodes if gives_by_effect(n))
    where = "a loop" if loop.op.name == "while" else "a branch"
    fix = "let the loop make no trips instead, as in `for _ in ag.range(ag.where(condition, n, 0))`"
    if "random" in effect.op.name:
        fix = "draw from an `ag.random.Generator` or with `ag.random.stateless_*`, which give the same numbers again"
    return at_span(
        UnimplementedError(
            f"no gradient: {effect.op.name} stands in {where} inside of a branch. The gradient runs the branch again, "
            f"where it would give something else, or do something twice. Compute it before the `if`, or {fix}"
        ),
        effect.span or loop.span,
    )


def _add_output(node: Node, region: Graph, value: Value) -> None:
    assert isinstance(value.type, TensorType)
    other = node.regions[1] if region is node.regions[0] else node.regions[0]
    region.outputs.append(value)
    other.outputs.append(empty_like_type(other, value.type))
    rank = value.type.rank
    type_ = value.type if not rank else TensorType(value.type.dtype, (None,) * rank)
    node.outputs.append(Value(type_, node.graph, node))
    for graph in (region, other, node.graph):
        graph.program = None


REGION_RULES["cond"] = adjoint_of_cond
