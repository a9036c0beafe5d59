"""Finds what may be written in place: loop carries that are updated, and operands whose last use is an elementwise
nest.

A loop may write such a carry in place if nothing else uses the memory. So its initial value is copied once before the
loop (unless this kernel owns it), and the update in each trip needs no copy.
"""

from __future__ import annotations

from typing import Any

from runtime.codegen.kernel.values import Array, Buffer, Dims, Scalar
from runtime.graph.ir import Graph, Node, Value
from runtime.graph.passes import options
from runtime.graph.passes.rewrites.commits import may_fail
from runtime.graph.structural import ASSIGN, COMMIT
from runtime.graph.updates import Origins


class Updates:
    """Finds which inputs of regions and which carries of loops are updated in place, once for each region."""

    def __init__(self) -> None:
        self._inputs: dict[Graph, set[int]] = {}
        self._origins = Origins()
        self.parameters: dict[str, set[int]] = {}  # by name of a recursive function

    def carries(self, node: Node) -> set[int]:
        """The carries of a `while` that its body updates, directly or in nested control flow, and those whose memory
        becomes that of one (`t, u = u, t`)."""
        body, count = node.regions[1], node.attrs["carries"]
        found = {k for k in self.inputs(body) if k < count}
        origins, waiting = self._origins.of(body), list(found)
        places = {value: k for k, value in enumerate(body.inputs[:count])}
        while waiting:
            source = places.get(origins.get(body.outputs[waiting.pop()]))  # type: ignore[arg-type]
            if source is not None and source not in found:
                found.add(source)
                waiting.append(source)
        return found

    def inputs(self, graph: Graph) -> set[int]:
        """Positions of the graph's inputs that an update op takes as the array to change."""
        found = self._inputs.get(graph)
        if found is None:
            # A branch may have returned the input before it is updated.
            origins = self._origins.of(graph)
            values = {origins.get(v) for node in graph.nodes for v in self._updated(node)}
            found = self._inputs[graph] = {index for index, v in enumerate(graph.inputs) if v in values}
        return found

    def _updated(self, node: Node) -> list[Value]:
        """The operands of a node that it updates."""
        if node.op.is_update:
            return node.inputs[:1]
        if node.op.name == "while":
            return [node.inputs[k] for k in self.carries(node)]
        if node.op.name == "cond":
            return [node.inputs[k + 1] for region in node.regions for k in self.inputs(region)]
        if node.op.name == "call":
            return [node.inputs[k] for k in self.parameters.get(node.attrs["function"], ())]
        if node.op.name == "letrec":
            return [node.inputs[k] for k in self.of_functions(node)[node.attrs["functions"][0]]]
        return []

    def of_functions(self, node: Node) -> dict[str, set[int]]:
        """The parameters that the functions of a `letrec` update, by their names. Captures must be arguments."""
        names = node.attrs["functions"]
        if names[0] not in self.parameters:
            inner = Updates()
            found: dict[str, set[int]] = {name: set() for name in names}
            while True:
                inner.parameters = {**self.parameters, **found}
                inner._inputs = {}
                following = {name: inner.inputs(region) for name, region in zip(names, node.regions)}
                if following == found:
                    break
                found = following
            self.parameters.update(found)
        return {name: self.parameters[name] for name in names}


def commits_in_step(body: Graph, carry: int) -> list[Node]:
    """The commits of a variable that a loop carries and changes in place, where an error never finds its memory between
    two of its values: each change is an update that checks its indices before it writes, and nothing from there to the
    commit fails. Empty where the loop isn't like that.
    """
    found: list[Node] = []
    value, target = body.inputs[carry], body.outputs[carry]
    places = {node: index for index, node in enumerate(body.nodes)}
    while value is not target:
        users = [node for node in body.nodes if value in node.inputs]
        update = next((n for n in users if n.op.fails_first), None)
        assign = next((n for n in users if n.op is ASSIGN), None)
        commit = next((n for n in body.nodes if assign and n.op is COMMIT and n.inputs[0] is assign.outputs[0]), None)
        if update is None or assign is None or commit is None or assign.inputs[1] is not update.outputs[0]:
            return []
        if update.inputs.count(value) > 1 or any(n.regions or (n.op.is_update and not n.op.fails_first) for n in users):
            return []
        after = body.nodes[places[update] + 1 : places[commit]]
        if any(n is not assign and (may_fail(n) or update.outputs[0] in n.inputs) for n in after):
            return []
        found.append(commit)
        value = assign.outputs[0]
    return found


def last_buffer(nest: Any) -> Buffer | None:
    """The memory of an operand that the last node of an elementwise nest may write its result to.

    The operand has the result's shape and dtype, this kernel made it in this region, and nothing reads it after this
    nest. Each element is read before it is written, since the last node's store is the last line of the nest; so long
    as the nest doesn't also read the memory in another order, as `x * reverse(x)` does.
    """
    if not options.get("memory_optimization"):
        return None
    region, group = nest.low.region, nest.group
    result = group.nodes[-1].outputs[0]
    inside = set(group.nodes)
    for access in nest.accesses.values():
        ref = access.ref
        if not (isinstance(ref, Array) and ref.is_plain and ref.buffer.owned and ref.dims == nest.dims):
            continue
        if ref.dtype is not result.dtype or ref.buffer.name not in nest.low.fresh:
            continue
        values = [v for buffer in ref.buffer.sharers for v in buffer.values]
        if not all(_reads_own_element(other.ref, ref.buffer, nest.dims) for other in nest.accesses.values()):
            continue
        if not values or any(v.node is None or v not in region.env or v in region.outputs for v in values):
            continue
        if all(user in inside or _is_lowered(region, user) for v in values for user in region.users.get(v, ())):
            return ref.buffer
    return None


def _reads_own_element(ref: Any, buffer: Buffer, dims: Dims) -> bool:
    """Whether a nest over `dims` reads the buffer only at the element that it is at."""
    return not isinstance(ref, Array) or ref.buffer not in buffer.sharers or (ref.is_plain and ref.dims == dims)


def _is_lowered(region: Any, node: Node) -> bool:
    """Whether all that the node reads has been read: its results are in memory or in variables."""
    refs = [region.env.get(v) for v in node.outputs]
    return bool(refs) and all(isinstance(r, Array) or (isinstance(r, Scalar) and r.is_name) for r in refs)
