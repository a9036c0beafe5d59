"""The intermediate representation: graphs of SSA values, with regions for control flow.

    graph   ::= Graph(name, inputs: value*, nodes: node*, outputs: value*)
    node    ::= Node(op, inputs: value*, attrs, outputs: value*, regions: graph*, span)
    value   ::= Value(type, name)                     defined once: a graph input or a node output
    type    ::= see runtime/types.py
    op      ::= a row of the op table; three of them have regions:
                  cond(pred, capture*)      regions (then, else): capture* -> output*
                  while(init*, capture*)    regions (test, body): carry*, capture* -> bool | carry*, capture* -> carry*
                                            attrs: carries = number of carries; outputs = the last carries
                  letrec(argument*, capture*)
                                            regions: functions, which may call each other: argument*, capture* ->
                                            result*; the node calls the first
                                            attrs: functions = their names; captures = number of captures
                call(argument*)             calls a function of a letrec around it, whose captures it keeps
                                            attrs: function = its name; types = those of the results
    span    ::= (file, line, function) of the user's statement

Beside these a node has a `name`: what the user calls it (see names.py), or None. It means nothing.

A region sees only its own inputs: whatever it uses from outside is passed in as a capture. Nodes stand in program
order, each after the nodes that define its inputs. A node with an effect takes the current order token as its last
input and gives the next as its last output, so nothing else needs to know about order.

What is absent: mutation (a variable's value is an input and an output), undefined values, implicit conversions.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from runtime.graph import operations
from runtime.graph.operations import Operation
from runtime.graph.printer import as_text
from runtime.graph.trip_counts import ends
from runtime.ops.table import OpDef
from runtime.types import TensorType, TokenType, Type

_ids = itertools.count()


class Value:
    """One SSA value. `node` is its defining node, or None for a graph input; `graph` is where it lives."""

    __slots__ = ("id", "type", "name", "node", "graph", "grows")

    def __init__(self, type_: Type, graph: Graph, node: Node | None = None, name: str | None = None) -> None:
        self.id = next(_ids)
        self.type = type_
        self.graph = graph
        self.node = node
        self.name = name
        self.grows = False  # whether writes may make the array longer; gradients find out (autodiff/buffers.py)

    @property
    def dtype(self) -> Any:
        return self.type.dtype  # type: ignore[union-attr]

    @property
    def shape(self) -> Any:
        return self.type.shape  # type: ignore[union-attr]

    @property
    def is_tensor(self) -> bool:
        return isinstance(self.type, TensorType)

    def __repr__(self) -> str:
        return f"%{self.name or self.id}: {self.type}"


class Node:
    """One application of an op."""

    __slots__ = ("op", "inputs", "attrs", "outputs", "regions", "span", "graph", "added", "name", "device")

    def __init__(
        self,
        op: OpDef,
        inputs: Sequence[Value],
        attrs: dict[str, Any],
        output_types: Sequence[Type],
        graph: Graph,
        regions: Sequence[Graph] = (),
        span: Any = None,
    ) -> None:
        self.op = op
        self.inputs = list(inputs)
        self.attrs = attrs
        self.regions = tuple(regions)
        self.span = span
        self.graph = graph
        self.outputs = [Value(t, graph, self) for t in output_types]
        # What gradients have added to a loop: {reason: result}. Copies of the node start without.
        self.added: dict[Any, Value] = {}
        # The `name=` of the user's call and the scope that it stood in, `scope/` for a scope alone.
        self.name: str | None = None
        # While a function is traced: the `device` block in it that the node stands in (`rewrites/devices.py`).
        self.device: str | None = None

    @property
    def has_effect(self) -> bool:
        """Whether the node orders itself by a token: its own op acts, or an op in one of its regions does."""
        return bool(self.outputs) and any(isinstance(v.type, TokenType) for v in self.outputs)

    @property
    def must_stay(self) -> bool:
        """Whether the node counts though nobody reads its results.

        It has an effect, commits a variable's value, or is a loop that isn't known to end.
        """
        if not self.regions:
            return self.op.effect or self.op.name == "commit" or (self.op.name == "call" and self.has_effect)
        if self.has_effect or any(inner.must_stay for region in self.regions for inner in region.nodes):
            return True
        return self.op.name == "while" and not ends(self)

    def __repr__(self) -> str:
        return f"{', '.join(map(repr, self.outputs))} = {self.op.name}({', '.join(map(repr, self.inputs))})"


class Graph:
    """A list of nodes from `inputs` to `outputs`."""

    __slots__ = ("name", "inputs", "nodes", "outputs", "program", "outside", "device", "__weakref__")

    def __init__(self, name: str) -> None:
        self.name = name
        self.inputs: list[Value] = []
        self.nodes: list[Node] = []
        self.outputs: list[Value] = []
        # The interpreter's compiled form (runtime.graph.interpreter); dropped whenever the graph changes.
        self.program: Any = None
        # Of a traced function: the number of its arguments, and the tensors and variables that it captured.
        self.outside: tuple[int, list[Any]] = (0, [])
        # Of a traced function: the first GPU that a `device` block in it named. What isn't placed otherwise runs there.
        self.device: str | None = None

    def add_input(self, type_: Type, name: str | None = None) -> Value:
        value = Value(type_, self, None, name)
        self.inputs.append(value)
        return value

    def add_input_like(self, other: Value) -> Value:
        """An input that stands for a value of another graph."""
        value = self.add_input(other.type, other.name)
        value.grows = other.grows
        return value

    def add_node(
        self,
        op: OpDef,
        inputs: Sequence[Value],
        attrs: dict,
        types: Sequence[Type],
        regions: Any = (),
        span: Any = None,
    ) -> Node:
        node = Node(op, inputs, attrs, types, self, regions, span)
        self.nodes.append(node)
        return node

    def walk(self) -> Iterator[Node]:
        """All nodes, those of regions after the node that holds them."""
        waiting = [iter(self.nodes)]
        while waiting:
            for node in waiting[-1]:
                yield node
                if node.regions:
                    waiting += [iter(region.nodes) for region in reversed(node.regions)]
                    break
            else:
                waiting.pop()

    def __str__(self) -> str:
        return as_text(self)

    @property
    def captures(self) -> list[tuple[Any, Value]]:
        """The tensors and variables that a traced function uses from outside, each with the input that stands for
        it."""
        count, outside = self.outside
        return list(zip(outside, self.inputs[count:]))

    @property
    def external_captures(self) -> list[Any]:
        """The tensors and variables that a traced function uses from outside."""
        return [outside for outside, _ in self.captures]

    @property
    def internal_captures(self) -> list[Value]:
        """The inputs that stand for `external_captures`."""
        return [inside for _, inside in self.captures]

    # --- looking at it -------------------------------------------------------------------------------------------

    def as_text(self, spans: bool = True) -> str:
        """The graph as text, one line an operation; ``spans`` adds the file and line of the user's statement."""
        return as_text(self, spans)

    def get_operations(self) -> list[Operation]:
        """The operations in program order: arguments first. Those of regions are in their operation's `regions`."""
        return operations.of_graph(self)

    def get_operation_by_name(self, name: str) -> Operation:
        """The operation of that name, in regions too. Raises KeyError, with the names that there are."""
        return operations.by_name(self, name)

    def as_graph_def(self) -> operations.GraphDef:
        """A picture of the graph as text in the manner of TensorFlow's `GraphDef`: something to print and walk over."""
        return operations.GraphDef(self)

    def to_dot(self) -> str:
        """The graph in Graphviz' language; regions of `while` and `cond` are clusters."""
        from runtime.graph import drawing  # here: it brings ten modules along, and few programs draw

        return drawing.to_dot(self)

    def to_svg(self, path: Any = None) -> str:
        """The picture of `to_dot` as SVG text, written to ``path`` too if that is given.

        Raises FileNotFoundError when Graphviz' program `dot` isn't installed.
        """
        from runtime.graph import drawing

        return drawing.to_svg(self, path)

    def to_html(self, path: Any = None) -> str:
        """A self-contained page: operations in foldable regions beside the user's source; written to ``path`` too."""
        from runtime.graph import page

        return page.to_html(self, path)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from runtime.graph import page

        # A region has a line for itself, its arguments and its results.
        return page.framed(page.to_html(self), sum(1 + 3 * len(node.regions) for node in self.walk()) + 2)


class ConstantArray:
    """A NumPy array as an attribute: hashable by content, never written to."""

    __slots__ = ("array", "_key")

    def __init__(self, array: Any) -> None:
        if isinstance(array, np.generic):
            array = np.asarray(array)  # memory of its own
            array.setflags(write=False)
        else:
            array = np.asarray(array)
        if array.flags.writeable:
            array = array.copy()
            array.setflags(write=False)
        self.array = array
        content: Any = tuple(array.ravel().tolist()) if array.dtype == object else array.tobytes()
        self._key = (array.dtype.str, array.shape, content)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConstantArray) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        text = np.array2string(self.array, threshold=8, separator=", ").replace("\n", "")
        return text


class Substitution(dict):
    """A map from the values of one graph to those of another; what it doesn't hold maps to itself."""

    def __missing__(self, key: Value) -> Value:
        return key


def copy_nodes(
    nodes: Sequence[Node], target: Graph, mapping: Substitution, copy_region: Callable[[Graph], Graph] | None = None
) -> None:
    """Appends copies of `nodes` to `target`, reading inputs through `mapping` and adding the new outputs to it.

    copy_region: makes the regions of the copies, `copy_graph` by default.
    """
    for node in nodes:
        types = [v.type for v in node.outputs]
        regions = [(copy_region or copy_graph)(region) for region in node.regions]
        copy = target.add_node(node.op, [mapping[v] for v in node.inputs], dict(node.attrs), types, regions, node.span)
        copy.name, copy.device = node.name, node.device
        for old, new in zip(node.outputs, copy.outputs):
            new.name, new.grows = old.name, old.grows
            mapping[old] = new


def copy_graph(graph: Graph) -> Graph:
    """A deep copy that shares only ops and attributes."""
    copy = Graph(graph.name)
    mapping = Substitution()
    for value in graph.inputs:
        mapping[value] = copy.add_input_like(value)
    copy_nodes(graph.nodes, copy, mapping)
    copy.outputs = [mapping[v] for v in graph.outputs]
    return copy
