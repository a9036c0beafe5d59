"""The fusion plan: which elementwise nodes share a loop nest.

    %a = mul(%x, %w)            for i in range(n):
    %b = tanh(%a)         →         b_i = math.tanh(x[i] * w[i])
    %c = reduce_sum(%b)             c = lib.add(c, b_i)

Nodes are taken in program order. An elementwise node joins the open group with the same dimensions (the same atoms, so
equality is certain) and is not lowered yet; a reduction joins the group of its operand. A group is lowered as soon as
anything outside it asks for a value of it. By then all of its inputs exist, since whatever a member takes from another
group makes that group be lowered when the member joins. Hence open groups never depend on each other.

Of two errors the first in program order counts, and what was assigned before it: a group whose nest may fail (a divisor
may be 0) is lowered before anything that may fail or has an effect.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from runtime.codegen import cost_model
from runtime.codegen.kernel.reports import report
from runtime.codegen.kernel.values import Dims, Scalar
from runtime.codegen.loops.builder import KernelBuilder
from runtime.codegen.loops.concat_views import Joined
from runtime.codegen.loops.loop_nest import Nest, broadcast_dims
from runtime.codegen.loops.reductions import REDUCING
from runtime.codegen.symbolic.ranges import checks, known_of
from runtime.graph.ir import Node, Value
from runtime.graph.passes import options
from runtime.graph.passes.rewrites.commits import may_fail
from runtime.kernel_ir import ir
from runtime.types import TensorType


@dataclass(eq=False)
class Group:
    """Nodes over one iteration space."""

    dims: Dims
    nodes: list[Node] = field(default_factory=list)
    # Reductions in this group all reduce the same axes.
    axes: tuple[int, ...] | None = None
    members: set[Value] = field(default_factory=set)
    # Dimensions of the results of reductions.
    results: dict[Node, Dims] = field(default_factory=dict)
    fails: bool = False  # its nest checks operands


@dataclass(frozen=True, eq=False)
class Pending:
    """A value that an open group will compute."""

    group: Group
    dims: Dims


class Fusion:
    """The open groups of the region being lowered."""

    def __init__(self, low: KernelBuilder) -> None:
        self.low = low
        self.groups: dict[Dims, Group] = {}
        self.joined: dict[Value, Joined] = {}  # what is still to be lowered of `concat_views.py`
        self.literals: dict[ir.Expr, ir.Expr] = {}  # atoms that the nest being lowered writes out as numbers

    def keep_order(self, node: Node) -> None:
        """Lowers the groups whose errors come before what `node` does."""
        failing = [group for group in self.groups.values() if group.fails]
        if failing and (node.must_stay or may_fail(node)):
            for group in failing:
                self.flush(group)

    def add(self, node: Node) -> None:
        """Takes an elementwise node over arrays."""
        dims: Dims = ()
        for value in node.inputs:
            dims = broadcast_dims(self.low, dims, self.low.dims(value), node)
        type_ = node.outputs[0].type
        assert isinstance(type_, TensorType)
        dims = self.low.type_dims(type_, dims)
        self._join(node, dims, node.outputs[0], dims)

    def add_reduction(self, node: Node, axes: tuple[int, ...], dims: Dims) -> None:
        """Takes a reduction of `axes`; `dims` are its result's."""
        source = node.inputs[0]
        space = self.low.dims(source)
        group = self.groups.get(space)
        if group is not None and group.axes is not None and group.axes != axes:
            self.flush(group)
        group = self._join(node, space, node.outputs[0], dims)
        group.axes = axes
        group.results[node] = dims

    def _join(self, node: Node, space: Dims, output: Value, dims: Dims) -> Group:
        low = self.low
        group = self.groups.get(space)
        limit = cost_model.FUSION_GROUP_NODES if options.get("remapping") else 1
        if group is not None and (len(group.nodes) >= limit or self._feeds_on_reduction(group, node)):
            self.flush(group)
            group = self.groups.get(space)
        for value in node.inputs:
            found = low.region.env[value]
            if isinstance(found, Pending) and found.group is not group:
                low.ref(value)
            elif isinstance(found, Scalar):
                low.scalar_name(value)
        # Asking for the inputs may have lowered the group itself.
        group = self.groups.get(space)
        if group is None:
            group = self.groups[space] = Group(space)
        group.nodes.append(node)
        group.members.add(output)
        group.fails = group.fails or (output.dtype.is_integer and _checks(low, node))
        low.region.env[output] = Pending(group, dims)
        return group

    @staticmethod
    def _feeds_on_reduction(group: Group, node: Node) -> bool:
        return any(v in group.members and v.node is not None and v.node.op.name in REDUCING for v in node.inputs)

    def flush(self, group: Group) -> None:
        """Lowers a group and binds those of its values that something outside it uses."""
        if self.groups.get(group.dims) is group:
            del self.groups[group.dims]
        low, nest = self.low, Nest(self.low, group)
        before = low.nest_loop
        nest.lower()
        low.reports.append(report(nest, before))

    def flush_all(self) -> None:
        """Lowers all that is waiting and will be asked for."""
        while self.groups:  # a nest may leave values to be made again
            for group in list(self.groups.values()):
                self.flush(group)
        region = self.low.region
        waiting, self.joined = self.joined, {}
        for value, found in waiting.items():
            if region.env[value] is found and region.last_use.get(value, -1) >= region.index:
                self.low.ref(value)

    def taken(self, value: Value) -> Group | None:
        """The group that is going to compute a value, if one node asks for that and nothing for another value of the
        group, which is then that node's to lower."""
        region = self.low.region
        found = region.env[value]
        if not isinstance(found, Pending) or not options.get("remapping") or region.uses[value] != 1:
            return None
        group = found.group
        others = (v for v in group.members if v is not value)
        if group.axes is not None or group.fails or value in region.outputs:
            return None
        if any(v in region.outputs or not set(region.users.get(v, ())) <= set(group.nodes) for v in others):
            return None
        if self.groups.get(group.dims) is group:
            del self.groups[group.dims]
        return group

    def lower_into(self, group: Group, value: Value, place: Any) -> None:
        """Lowers a group so that a value of it lies in a given place in memory."""
        low, nest = self.low, Nest(self.low, group)
        before = low.nest_loop
        nest.lower_into(value, place)
        low.reports.append(report(nest, before))

    def again(self, node: Node, dims: Dims) -> None:
        """Has a value that a nest has computed, and not stored, computed again where it is used next."""
        group = self.groups.setdefault(dims, Group(dims))
        group.nodes.append(node)
        group.members.add(node.outputs[0])
        self.low.region.env[node.outputs[0]] = Pending(group, dims)


def _checks(low: KernelBuilder, node: Node) -> bool:
    """Whether a nest with the node checks operands: their dividing by zero, say. (Integer means of nothing, too.)"""
    return node.op.name == "reduce_mean" or bool(checks(node, [known_of(low.region.env[v]) for v in node.inputs]))
