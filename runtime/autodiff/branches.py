"""The adjoint of `cond`: another `cond` on the same predicate, whose branches run the branch again and walk it back.

    y = cond(p, x): then: exp(x) · x     →     dx = cond(p, x, dy): then: e = exp(x); dy · e · x + dy · e
                    else: x                                         else: dy

Running the branch again costs less than it seems: values that its gradient doesn't need are dropped, and nothing is
saved for the branch that isn't taken. Results of effects (random numbers, host calls) can't be recomputed, so the
forward node returns them as extra outputs. It also returns what a branch reads from an array that an enclosing loop
changes in place: reading it again would need a copy of the whole array for each trip. Sizes are returned in a loop
where only they would be computed again from an array, which each trip would save.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runtime.autodiff.calls import NodeCall, is_differentiable
from runtime.autodiff.loops_in_branches import take_out_loops
from runtime.autodiff.residuals import SIZES, computed_in, is_array, is_overwritten
from runtime.autodiff.reverse import REGION_RULES, Cotangents, taken_sum, walk_back
from runtime.autodiff.zeros import empty_like_type, exact_zeros_for
from runtime.context import ctx
from runtime.errors import UnimplementedError
from runtime.graph.builder import Builder, emit_cond, trace_region
from runtime.graph.ir import Graph, Node, Substitution, Value, copy_graph, copy_nodes
from runtime.graph.passes.rewrites.silence import has_unrepeatable_results, runs_once, silenced
from runtime.graph.spans import at_span
from runtime.graph.structural import CONSTANT
from runtime.graph.updates import Origins
from runtime.shapes import element_count
from runtime.types import TensorType, TokenType

# Up to this many elements, the placeholder in the other branch has the same shape, so the shape stays static.
_SMALL = 16
_EXPOSED = "exposed"  # a key in `Node.added`, with the position of the output


def adjoint_of_cond(
    call: NodeCall, arrived: Sequence[Any], tracked: Callable[[Any], bool], sums: Cotangents
) -> list[Any]:
    """Returns the cotangents of (predicate, captures...). Those of captures include the sums in `sums`."""
    node, wrap = call.node, call.builder.tensor
    known = call.known if isinstance(call, _RecomputedCall) else {}
    overwritten = [is_array(v) and is_overwritten(v, ctx.builder) for v in node.inputs[1:]]
    loop = getattr(ctx.builder, "loop", None)
    if loop is not None and node.graph is loop.regions[1] and any(overwritten):
        made = _take_out_loops(node, overwritten)
        if len(made) > 1:
            _walk_parts(made, call, arrived, tracked, sums)
            return [None] * len(node.inputs)
    _expose(node, overwritten)
    captures = node.inputs[1:]
    wanted = [i for i, v in enumerate(captures) if is_differentiable(v.type) and tracked(wrap(v))]
    # A value may be captured twice, as a common subexpression. The adjoint captures it once and has one cotangent for
    # it.
    wanted = [i for i in wanted if captures.index(captures[i]) == i]
    if not wanted:
        return [None] * len(node.inputs)

    totals = [taken_sum(sums, wrap(captures[i])) for i in wanted]

    def adjoint_region(region: Graph, handed: dict[Value, Value]) -> Any:
        sharing: list[Node] = []
        originals: dict[Value, Value] = {}

        def trace() -> list[Any]:
            return _walk_branch(node, region, handed, captures, wanted, arrived, totals, sharing, originals)

        traced = trace_region(f"adjoint of {region.name}", trace)
        traced.builder.graph.outputs = traced.outputs
        if loop is not None:
            _take_sizes(node, region, traced.builder, originals)
        _keep_what_is_used(traced.builder, sharing)
        return traced

    regions = [
        adjoint_region(r, {own: known.get(outer, outer) for own, outer in _exposed(node, r, overwritten)})
        for r in node.regions
    ]
    results = emit_cond(node.inputs[0], *regions)
    found: list[Any] = [None] * len(node.inputs)
    for index, result in zip(wanted, results):
        found[1 + index] = result
    return found


def _take_out_loops(node: Node, overwritten: Sequence[bool]) -> list[Node]:
    """Moves loops on `overwritten` arrays out of a branch in a loop body."""
    if not any(inner.op.name == "while" for region in node.regions for inner in region.walk()):
        return [node]
    origins = Origins().of(node.graph)
    made = take_out_loops(node, {origins[v] for v, is_so in zip(node.inputs[1:], overwritten) if is_so})
    builder = ctx.builder
    while builder is not None:
        if hasattr(builder, "origins"):
            builder.origins = Origins()
        builder = builder.parent
    return made


def _walk_parts(
    made: list[Node], call: NodeCall, arrived: Sequence[Any], tracked: Callable[[Any], bool], sums: Cotangents
) -> None:
    """Walks back the nodes that replaced a branch, and adds the cotangents of their inputs to `sums`."""
    calls = [NodeCall(node, call.builder) for node in made]
    varied: set[Value] = set()
    is_tracked = lambda t: t.value in varied or tracked(t)  # noqa: E731
    for each in calls:
        if any(map(is_tracked, each.inputs)):
            varied.update(t.value for t in each.outputs if is_differentiable(t.type))
    for output, cotangent in zip(call.outputs, arrived):
        if cotangent is not None:
            sums.add(output, cotangent)
    walk_back(calls, sums, is_tracked)


class _RecomputedCall(NodeCall):
    """A nested branch that is run again. `known`: its results that the first run returned."""

    __slots__ = ("known",)

    def __init__(self, node: Node, builder: Builder, known: dict[Value, Value]) -> None:
        super().__init__(node, builder)
        self.known = known


class _SavedCall(NodeCall):
    """An effect or a read that isn't repeated, as a call for the reverse walk. Its operands are recomputed; its results
    are extra outputs of the forward node."""

    __slots__ = ("recomputed", "handed")

    def __init__(self, node: Node, builder: Builder, mapping: Substitution) -> None:
        super().__init__(node, builder)
        self.recomputed, self.handed = (
            tuple([builder.tensor(mapping[v]) for v in values if not isinstance(v.type, TokenType)])
            for values in (node.inputs, node.outputs)
        )

    @property
    def inputs(self) -> tuple[Any, ...]:
        return self.recomputed

    @property
    def outputs(self) -> tuple[Any, ...]:
        return self.handed


def _walk_branch(
    node: Node,
    region: Graph,
    handed: dict[Value, Value],
    captures: list[Value],
    wanted: list[int],
    arrived: Sequence[Any],
    totals: Sequence[Any],
    sharing: list[Node],
    originals: dict[Value, Value],
) -> list[Any]:
    """sharing: collects the copied branches that still share the regions of their originals. originals: for the
    captures, and what is run again, the values of the branch."""
    builder = ctx.builder
    mapping = Substitution()
    for own, outer in zip(region.inputs, captures):
        if not isinstance(outer.type, TokenType):
            mapping[own] = builder.use(outer)
            originals[mapping[own]] = own
    for own, outer in handed.items():
        mapping[own] = builder.use(outer)
    calls: list[Any] = []
    for inner in region.nodes:
        if has_unrepeatable_results(inner) or (inner.op.reads_part and inner.outputs[0] in handed):
            calls.append(_SavedCall(inner, builder, mapping))
            continue
        start = len(builder.graph.nodes)
        # Usually only the adjoint of a nested branch is used and its copy is dropped. Copying the regions at each level
        # would take quadratic time in the nesting depth.
        shares = inner.op.name == "cond"
        copy_nodes(silenced([inner]), builder.graph, mapping, _itself if shares else None)
        made = builder.graph.nodes[start:]
        sharing += made if shares else ()
        originals.update((mapping[own], own) for own in inner.outputs)
        if inner.op.is_update and inner.outputs[-1] in handed:
            mapping.update((own, builder.use(handed[own])) for own in inner.outputs[1:])
            calls.append(_SavedCall(inner, builder, mapping))
            continue
        for again in made:
            known = {own: builder.use(handed[v]) for v, own in zip(inner.outputs, again.outputs) if v in handed}
            calls.append(_RecomputedCall(again, builder, known) if known else NodeCall(again, builder))
    varied = {mapping[region.inputs[i]] for i in wanted}
    for each in calls:
        if any(t.value in varied for t in each.inputs):
            varied.update(t.value for t in each.outputs if is_differentiable(t.type))
    cotangents = Cotangents()
    for index, total in zip(wanted, totals):
        if total is not None:
            cotangents.add(builder.tensor(mapping[region.inputs[index]]), total)
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
    """Removes nodes that don't reach the adjoint's results, without looking into regions, and gives the remaining
    branches regions of their own. Dead code in regions is removed when all levels are built."""
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


def _take_sizes(node: Node, region: Graph, builder: Builder, originals: dict[Value, Value]) -> None:
    """Has the branch return the sizes of arrays that its adjoint would compute again only for these. Else what they are
    computed from would be saved: of a list that the branch inserts into, the whole list in each trip of a loop."""
    graph = builder.graph
    sizes = {n.outputs[0]: n for n in graph.nodes if n.op.name in SIZES and n.inputs[0] in originals}
    needed = set(graph.outputs)
    for each in reversed(graph.nodes):
        if each.op.effect or each.has_effect or not needed.isdisjoint(each.outputs):
            needed.update(() if each.outputs and each.outputs[0] in sizes else each.inputs)
    replaced = Substitution()
    for value, size in sizes.items():
        if value in needed and size.inputs[0] not in needed:
            found = computed_in(region, size.op, originals[size.inputs[0]], size.attrs)
            if found not in region.outputs:
                _add_output(node, region, found)
            replaced[value] = builder.use(node.outputs[region.outputs.index(found)])
    if replaced:
        for each in graph.nodes:
            each.inputs = [replaced[v] for v in each.inputs]
        graph.outputs = [replaced[v] for v in graph.outputs]


def _exposed(node: Node, region: Graph, overwritten: Sequence[bool]) -> list[tuple[Value, Value]]:
    """Returns (value in the region, output of the node) for each value of the region that isn't recomputed."""
    values = set(_not_recomputed(region, overwritten))
    return [(own, outer) for own, outer in zip(region.outputs, node.outputs) if own in values]


def _expose(node: Node, overwritten: Sequence[bool]) -> None:
    """Adds outputs to the node for values that can't be recomputed in either branch, or only from an `overwritten`
    array (one flag for each capture). The other branch returns empty placeholders for them."""
    for region in node.regions:
        for inner in region.nodes:
            if not inner.regions:
                continue
            if has_unrepeatable_results(inner):
                missing = [v for v in inner.outputs if isinstance(v.type, TensorType) and v not in region.outputs]
                if missing or any(is_differentiable(v.type) for v in inner.outputs):
                    raise _refusal(inner)
            elif inner.op.name == "cond":
                own = _overwritten_inside(region, inner, overwritten)
                if any(own):
                    _expose(inner, own)
        for value in _not_recomputed(region, overwritten):
            if value not in region.outputs:
                _add_output(node, region, value)


def _not_recomputed(region: Graph, overwritten: Sequence[bool]) -> list[Value]:
    """Returns the values of a branch that come from effects, or are read from arrays that a loop overwrites."""
    arrays = _overwritten_arrays(region, overwritten)
    found: list[Value] = []
    for inner in region.nodes:
        if inner.op.reads_part:
            found += inner.outputs if inner.inputs[0] in arrays else []
        elif inner.op.is_update:
            # The further outputs of an update were read from the array.
            found += inner.outputs[1:] if inner.inputs[0] in arrays else []
        elif has_unrepeatable_results(inner):
            found += [v for v in inner.outputs if isinstance(v.type, TensorType)]
        elif inner.op.name == "cond" and arrays:
            own = _overwritten_inside(region, inner, overwritten)
            if any(own):
                found += [outer for branch in inner.regions for _, outer in _exposed(inner, branch, own)]
    return found


def _overwritten_arrays(region: Graph, overwritten: Sequence[bool]) -> set[Value]:
    flags = dict(zip(region.inputs, overwritten))
    return {value for value, origin in Origins().of(region).items() if flags.get(origin)} if any(overwritten) else set()


def _overwritten_inside(region: Graph, inner: Node, overwritten: Sequence[bool]) -> list[bool]:
    """Tells which captures of a nested branch are arrays that a loop overwrites."""
    arrays = _overwritten_arrays(region, overwritten)
    return [value in arrays for value in inner.inputs[1:]]


def _refusal(loop: Node) -> Exception:
    """Returns the error for an effect in a loop (or branch). It names the effect, its line, and a replacement that has
    a gradient."""
    effect = loop
    while effect.regions:
        effect = next(n for region in effect.regions for n in region.nodes if runs_once(n))
    where = "a loop" if loop.op.name == "while" else "a branch"
    fix = "replace the `if` by a loop that may make no trips, as in `for _ in ag.range(ag.where(condition, n, 0))`"
    if "random" in effect.op.name:
        fix = "draw from an `ag.random.Generator` or with `ag.random.stateless_*`, which repeat their numbers"
    return at_span(
        UnimplementedError(
            f"no gradient: {effect.op.name} is in {where} inside a branch. The gradient runs the branch a second time, "
            f"which would change its result or repeat its effect. Compute it before the `if`, or {fix}"
        ),
        effect.span or loop.span,
    )


def _add_output(node: Node, region: Graph, value: Value) -> None:
    """Makes a value of a region an output of the node. Reuses an output for which this region returns a placeholder so
    far, or adds a new one."""
    assert isinstance(value.type, TensorType)
    type_ = value.type
    if (element_count(type_.shape) or _SMALL + 1) > _SMALL:
        type_ = TensorType(type_.dtype, None if type_.rank is None else (None,) * type_.rank)
    other = node.regions[1] if region is node.regions[0] else node.regions[0]
    for k, result in enumerate(node.outputs):
        placeholder = region.outputs[k].node
        is_free = placeholder is not None and placeholder.op is CONSTANT and (_EXPOSED, k) in node.added
        if is_free and result.type == type_ and result.grows == value.grows:
            region.outputs[k] = value
            break
    else:
        region.outputs.append(value)
        other.outputs.append(empty_like_type(other, type_))
        result = Value(type_, node.graph, node)
        result.grows = value.grows
        node.added[_EXPOSED, len(node.outputs)] = result
        node.outputs.append(result)
    for graph in (region, other, node.graph):
        graph.program = None


REGION_RULES["cond"] = adjoint_of_cond
