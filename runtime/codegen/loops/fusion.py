"""The fusion plan: which elementwise nodes share a loop nest.

    %a = mul(%x, %w)            for i in range(n):
    %b = tanh(%a)         →         b_i = math.tanh(x[i] * w[i])
    %c = reduce_sum(%b)             c = lib.add(c, b_i)

Nodes are taken in program order. An elementwise node joins the open group with the same dimensions (the same atoms, so
equality is certain) and is not lowered yet; a reduction joins the group of its operand. A group is lowered as soon as
anything outside it needs one of its values. By then all of its inputs exist: when a node joins a group, the other
groups that compute its operands are lowered. Hence open groups never depend on each other.

If two ops fail, the first in program order must raise its error, and assignments before it must have happened. So a
group whose nest may fail (a divisor may be 0) is lowered before anything else that may fail or has an effect.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, NamedTuple

from runtime.codegen import cost_model
from runtime.codegen.kernel.reports import report
from runtime.codegen.kernel.values import Dims, Scalar
from runtime.codegen.loops.builder import KernelBuilder
from runtime.codegen.loops.concat_views import ConcatView
from runtime.codegen.loops.loop_nest import Nest, broadcast_dims
from runtime.codegen.loops.reductions import REDUCING
from runtime.codegen.symbolic.ranges import checks, known_range
from runtime.dataclass import dataclass
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


class Pending(NamedTuple):
    """A value that an open group will compute."""

    group: Group
    dims: Dims


class Fusion:
    """The open groups of the region being lowered."""

    def __init__(self, low: KernelBuilder) -> None:
        self.low = low
        self.groups: dict[Dims, Group] = {}
        self.views: dict[Value, ConcatView] = {}  # concatenated views that are not lowered yet
        self.literals: dict[ir.Expr, ir.Expr] = {}  # atoms that the nest being lowered writes out as numbers

    def keep_order(self, node: Node) -> None:
        """Lowers the groups whose errors must come before the effect or error of `node`."""
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
        # Lowering the inputs may have lowered the group itself.
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
        """Lowers everything pending that will be needed."""
        while self.groups:  # a nest may leave values to recompute
            for group in list(self.groups.values()):
                self.flush(group)
        region = self.low.region
        waiting, self.views = self.views, {}
        for value, found in waiting.items():
            if region.env[value] is found and region.last_use.get(value, -1) >= region.index:
                self.low.ref(value)

    def taken(self, value: Value) -> Group | None:
        """Takes over the group that computes a value, if only one node needs the value and nothing needs another value
        of the group. The caller then lowers the group."""
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
        """Lowers a group so that one of its values is stored at a given place in memory."""
        low, nest = self.low, Nest(self.low, group)
        before = low.nest_loop
        nest.lower_into(value, place)
        low.reports.append(report(nest, before))

    def rematerialize(self, node: Node, dims: Dims) -> None:
        """Binds a value that a nest has computed but not stored, so that its next use computes it again."""
        group = self.groups.setdefault(dims, Group(dims))
        group.nodes.append(node)
        group.members.add(node.outputs[0])
        self.low.region.env[node.outputs[0]] = Pending(group, dims)


def _checks(low: KernelBuilder, node: Node) -> bool:
    """Whether a nest with the node checks operands, for example for division by zero (also in the integer mean of no
    elements)."""
    known = [known_range(low.region.env[v]) for v in node.inputs]
    return node.op.name == "reduce_mean" or bool(checks(node, known, lambda _: ir.ONE))
