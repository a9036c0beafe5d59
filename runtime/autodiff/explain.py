"""`GradientTape.explain`: why a gradient is None, in words, with the user's line.

On an eager tape the recorded calls are walked back from the target, and the gradient rules themselves show where no
gradient comes out; paths that the tape doesn't record are found in its `Breaks`. Inside a function, the graph contains
every computation. Its edges, including those in the regions of loops and branches, are walked from both ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from runtime.autodiff.breaks import Break, discrete
from runtime.autodiff.calls import NodeCall, is_differentiable
from runtime.context import ctx
from runtime.graph.builder import Builder
from runtime.graph.ir import Graph, Node, Value
from runtime.graph.spans import describe_span
from runtime.ops.table import OPS, OpDef
from runtime.variable import Variable

_MOST = 3


def explain(tape: Any, target: Any, source: Any) -> str:
    """Whether and how `target` depends on `source` on the tape."""
    if not target.dtype.is_differentiable:
        return f"No gradient: the target is {target.dtype.name}, and only floating-point and complex tensors have one."
    if not source.dtype.is_differentiable:
        return f"No gradient: the source is {source.dtype.name}, and only floating-point and complex tensors have one."
    unwatched = _why_unwatched(tape, source)
    if unwatched is not None:
        return f"No gradient: {unwatched}"
    if tape.builder is None:
        return _Eager(tape).explain(target, source)
    values = list(map(tape.builder.use, _reads(tape, target)[-1:]))
    return _told(_graph_breaks(tape.builder.graph, values, [tape.builder.use(t) for t in _reads(tape, source)]))


def _reads(tape: Any, of: Any) -> list[Any]:
    """The tensors on the tape that represent a tensor or variable."""
    return list(tape.reads_of(of)) if isinstance(of, Variable) else [of]


def _why_unwatched(tape: Any, source: Any) -> str | None:
    if isinstance(source, Variable):
        if tape.reads_of(source):
            return None
        if tape.is_watching(source):
            return f"the variable '{source.name}' is watched, but it isn't read while the tape is recording."
        if not source.trainable:
            return (
                f"the variable '{source.name}' isn't trainable, so the tape doesn't watch it automatically. Call "
                "tape.watch(variable) before it is read."
            )
        if not tape.watches_accessed_variables:
            return (
                f"the tape was made with watch_accessed_variables=False, and the variable '{source.name}' was never "
                "watched. Call tape.watch(variable) before it is read."
            )
        return f"the variable '{source.name}' isn't read while the tape is recording."
    if tape.is_tracking(source if tape.builder is None else tape.builder.tensor(tape.builder.use(source))):
        return None
    found = None if tape.builder is not None else tape.breaks.of(source)
    if found is not None:
        return f"the source itself is cut off from what the tape watches:\n{_point(found)}"
    return (
        "the source was never watched. Trainable variables are watched automatically; watch a tensor with "
        "tape.watch(source) before it is used."
    )


def _told(breaks: list[Break] | None) -> str:
    if breaks is None:
        return "The target depends on the source, and a gradient flows all the way."
    if not breaks:
        return (
            "No gradient: the target isn't computed from the source. Nothing that the tape has recorded leads from one "
            "to the other; a constant, or what was computed before the tape was opened or while it was paused, depends "
            "on nothing."
        )
    head = "No gradient: the path from source to target breaks"
    shown = breaks[:_MOST]
    lines = [head + (" here:" if len(shown) == 1 else f" at {len(breaks)} places:")]
    lines += map(_point, shown)
    if len(breaks) > _MOST:
        lines.append(f"  and at {len(breaks) - _MOST} more")
    return "\n".join(lines)


def _point(found: Break) -> str:
    where = describe_span(found.span).replace("\n", "\n  ")
    return f"  {found.reason}" + (f"\n    at {where}" if where else "")


# --- eager tapes -----------------------------------------------------------------------------------------------------


class _Eager:
    def __init__(self, tape: Any) -> None:
        self.tape = tape
        self.calls = tape.recorded

    def explain(self, target: Any, source: Any) -> str:
        sources = {id(t) for t in _reads(self.tape, source)}
        targets = _reads(self.tape, target)[-1:] or [target]
        from_source = self.after(sources)
        to_target, met = self.before(targets)
        if sources & to_target:
            return _told(self.cuts(targets, sources, from_source))
        lost = [b for b in map(self.tape.breaks.of, [*targets, *met]) if b is not None]
        ends = [b for b in dict.fromkeys(lost) if self.leads(b, from_source)]
        # It isn't known how a NumPy array was used, so every value that left the tape may be the cause.
        return _told(ends or [b for b in self.tape.breaks.exits if self.leads(b, from_source)])

    def leads(self, found: Break, from_source: set[int]) -> bool:
        """Whether a break cuts off a value that depends on the source, directly or through other breaks."""
        for tensor in found.before:
            if id(tensor) in from_source:
                return True
            earlier = self.tape.breaks.of(tensor)
            if earlier is not None and earlier is not found and self.leads(earlier, from_source):
                return True
        return False

    def after(self, sources: Iterable[int]) -> set[int]:
        """What is computed from the sources, and they themselves."""
        found = set(sources)
        for call in self.calls:
            if any(id(t) in found for t in call.inputs):
                found.update(id(t) for t in call.outputs)
        return found

    def before(self, targets: Sequence[Any]) -> tuple[set[int], list[Any]]:
        """What the targets are computed from: the numbers of the tensors, and the tensors."""
        found = {id(t) for t in targets}
        tensors = []
        for call in reversed(self.calls):
            if any(id(t) in found for t in call.outputs):
                found.update(id(t) for t in call.inputs)
                tensors += call.inputs
        return found, tensors

    def cuts(self, targets: Sequence[Any], sources: set[int], from_source: set[int]) -> list[Break] | None:
        """Where the gradient rules let nothing through on the way from the targets to the sources."""
        reached = {id(t) for t in targets}
        breaks = []
        for call in reversed(self.calls):
            seeds = [OPS["ones_like"].kernel if id(t) in reached else None for t in call.outputs]
            wanted = [i for i, t in enumerate(call.inputs) if id(t) in from_source]
            if not wanted or not any(seeds):
                continue
            arrived = [None if s is None else type(t)(s(t._array), t.dtype) for s, t in zip(seeds, call.outputs)]
            given = _rule_gives(call, arrived)
            through = [i for i in wanted if given is None or (given and given[i] is not None)]
            reached.update(id(call.inputs[i]) for i in through)
            if not through:
                breaks += self.cut(call, wanted)
        return None if sources & reached else breaks

    def cut(self, call: Any, wanted: Sequence[int]) -> list[Break]:
        before = tuple(call.inputs[i] for i in wanted)
        graph = getattr(getattr(call.op, "function", None), "graph", None)
        if isinstance(graph, Graph):
            targets = [v for v in graph.outputs if is_differentiable(v.type)]
            inside = _graph_breaks(graph, targets, [graph.inputs[i] for i in wanted])
            if inside:
                return [Break(f"in the {call.op.name}: {b.reason}", b.span, before) for b in inside]
        return [Break(_reason(call.op), call.span, before)]


def _rule_gives(call: Any, arrived: Sequence[Any]) -> list[Any] | None:
    """The cotangents that an op's gradient rule returns; [] for an op without one, None if they can't be determined."""
    if call.op.grad is None:
        return []
    recorders, ctx.recorders = ctx.recorders, ()
    try:
        return list(call.op.grad(call, *arrived))
    except LookupError:
        return []
    except Exception:  # a user's own gradient, or one that needs the real cotangents: it isn't this rule that says None
        return None
    finally:
        ctx.recorders = recorders


def _cut(op: Any) -> str:
    """Why no gradient flows through an op of the table; a custom gradient isn't one."""
    return op.cuts_gradient if isinstance(op, OpDef) else ""


def _reason(op: Any) -> str:
    cut = _cut(op)
    if cut:
        return cut
    label = getattr(op, "label", None) or op.name
    return (
        f"'{label}' has no gradient" if op.grad is None else f"the gradient of '{label}' with respect to this is None"
    )


# --- graphs ----------------------------------------------------------------------------------------------------------


def _graph_breaks(graph: Graph, targets: Sequence[Value], sources: Sequence[Value]) -> list[Break] | None:
    """The breaks between the parts of a graph that gradients reach from either end; None if they meet."""
    edges = list(_edges(graph, [graph]))
    smooth = [(a, b) for a, b, node, why in edges if why is None]
    all_to_target = _closure([(b, a) for a, b, _, _ in edges], targets)
    from_source = _closure(smooth, sources)
    if any(t in from_source for t in targets):
        return None
    found: dict[tuple, Break] = {}
    for a, b, node, why in edges:
        if why is not None and a in from_source and b in all_to_target:
            found.setdefault((why, node.span), Break(why, node.span, ()))
    return list(found.values())


def _closure(edges: Iterable[tuple[Value, Value]], start: Iterable[Value]) -> set[Value]:
    after: dict[Value, list[Value]] = {}
    for a, b in edges:
        after.setdefault(a, []).append(b)
    found = set(start)
    pending = list(found)
    while pending:
        new = [v for v in after.get(pending.pop(), ()) if v not in found]
        found.update(new)
        pending += new
    return found


def _edges(graph: Graph, around: list[Graph]) -> Iterator[tuple[Value, Value, Node, str | None]]:
    """(operand, result, node, why no gradient flows from one to the other, or None), regions included."""
    for node in graph.nodes:
        if node.op.name == "cond":
            yield from _cond_edges(node, around)
        elif node.op.name == "while":
            yield from _while_edges(node, around)
        else:
            yield from _op_edges(node, around)


def _op_edges(node: Node, around: list[Graph]) -> Iterator[tuple[Value, Value, Node, str | None]]:
    given: list[Any] | None = None
    if node.op.grad is not None and not node.regions and any(is_differentiable(v.type) for v in node.outputs):
        scratch = Builder("explain", None, around)
        with scratch:
            arrived = [scratch.tensor(scratch.use(v)) if is_differentiable(v.type) else None for v in node.outputs]
            given = _rule_gives(NodeCall(node, scratch), arrived)
    for index, operand in enumerate(node.inputs):
        for result in node.outputs:
            yield operand, result, node, _why_not(node, index, operand, result, given)


def _why_not(node: Node, index: int, operand: Value, result: Value, given: list[Any] | None) -> str | None:
    op = node.op
    if not is_differentiable(operand.type) or not (result.is_tensor and operand.is_tensor):
        return None  # the break lies before, where the operand was made
    if op.name == "assign":
        if operand is node.inputs[0]:
            return None
        return "the value is assigned to a variable, and what is read from a variable depends on the variable alone"
    if not is_differentiable(result.type):
        return discrete(op, node.attrs, result.dtype)
    if op.name == "custom_gradient":
        if index < node.attrs["sources"]:
            return (
                None
                if node.attrs["given"][index]
                else "its own gradient (custom_gradient) is None with respect to this"
            )
        return "custom_gradient: the gradient flows to the function's arguments only"
    if _cut(op) or op.grad is None:
        return _reason(op)
    return _reason(op) if given is not None and index < len(given) and given[index] is None else None


def _cond_edges(node: Node, around: list[Graph]) -> Iterator[tuple[Value, Value, Node, str | None]]:
    for result in node.outputs:
        yield node.inputs[0], result, node, None
    for region in node.regions:
        for outer, own in zip(node.inputs[1:], region.inputs):
            yield outer, own, node, None
        for own, result in zip(region.outputs, node.outputs):
            yield own, result, node, None
        yield from _edges(region, [*around, region])


def _while_edges(node: Node, around: list[Graph]) -> Iterator[tuple[Value, Value, Node, str | None]]:
    test, body = node.regions
    for region in node.regions:
        for outer, own in zip(node.inputs, region.inputs):
            yield outer, own, node, None
        yield from _edges(region, [*around, region])
    for start, result in zip(node.inputs, node.outputs):
        yield start, result, node, None
    for own, result, first, tested in zip(body.outputs, node.outputs, body.inputs, test.inputs):
        yield own, result, node, None
        yield own, first, node, None
        yield own, tested, node, None
    for result in node.outputs:
        yield test.outputs[0], result, node, None
