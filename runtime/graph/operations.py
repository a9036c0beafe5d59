"""A graph as TensorFlow shows one: `Operation` objects with names, types, inputs and outputs, and a `GraphDef`.

They are views, made when they are asked for: the graph itself knows nodes and values only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from runtime.graph.names import operation_names
from runtime.graph.printer import regions
from runtime.graph.spans import describe_span

# Graphs, nodes and values are known here by their attributes alone, since `ir.py` uses this module.


class OperationOutput:
    """One result of an operation: `name` ("y:0"), `dtype`, `shape`, `op`, `value_index`."""

    def __init__(self, op: Operation, index: int, value: Any) -> None:
        self.op = op
        self.value_index = index
        self.value = value

    @property
    def name(self) -> str:
        return f"{self.op.name}:{self.value_index}"

    @property
    def dtype(self) -> Any:
        """The dtype; None for an order token."""
        return getattr(self.value.type, "dtype", None)

    @property
    def shape(self) -> Any:
        """The static shape; None for what is no tensor."""
        return getattr(self.value.type, "shape", None)

    def consumers(self) -> list[Operation]:
        """The operations of the same graph that read it."""
        return [op for op in self.op.view.operations(self.value.graph) if self.value in op.values_read()]

    def __repr__(self) -> str:
        return f"<output '{self.name}': {self.value.type}>"


class Operation:
    """One operation of a graph, or one of its arguments (of type "Placeholder")."""

    def __init__(self, view: _View, name: str, node: Any, argument: Any = None) -> None:
        self.view = view
        self.name = name
        self.node = node  # None for an argument
        self._values = [argument] if node is None else node.outputs

    @property
    def type(self) -> str:
        """TensorFlow's name of the op, such as "AddV2"; "Placeholder" for an argument."""
        return "Placeholder" if self.node is None else self.node.op.label

    @property
    def inputs(self) -> tuple[OperationOutput, ...]:
        return tuple(self.view.output(value) for value in self.values_read())

    @property
    def outputs(self) -> list[OperationOutput]:
        return [OperationOutput(self, index, value) for index, value in enumerate(self._values)]

    @property
    def regions(self) -> dict[str, list[Operation]]:
        """The operations of the regions of an If or While: {"test": ..., "body": ...}."""
        found = [] if self.node is None else regions(self.node)
        return {label: self.view.operations(region) for label, region in found}

    @property
    def span(self) -> tuple[str, int, str] | None:
        """File, line and function of the user's statement."""
        return None if self.node is None else self.node.span

    @property
    def graph(self) -> Any:
        return self.view.graph

    def get_attr(self, name: str) -> Any:
        """An attribute. Raises ValueError, with the names that there are."""
        attrs = {} if self.node is None else self.node.attrs
        if name not in attrs:
            raise ValueError(f"Operation '{self.name}' has no attr named '{name}'; it has {sorted(attrs)}.")
        return attrs[name]

    def values_read(self) -> list[Any]:
        return [] if self.node is None else self.node.inputs

    def __repr__(self) -> str:
        return f"<Operation '{self.name}' type={self.type}>"

    def __str__(self) -> str:
        inputs = ", ".join(each.name for each in self.inputs)
        place = describe_span(self.span)
        return f"{self.name} = {self.type}({inputs})" + (f"\n  at {place}" if place else "")


class _View:
    """The names of one graph, and its operations by node or argument."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.names = operation_names(graph)
        self.found: dict[Any, Operation] = {}

    def operation(self, key: Any) -> Operation:
        if key not in self.found:
            is_node = hasattr(key, "outputs")
            self.found[key] = Operation(self, self.names[key], key if is_node else None, None if is_node else key)
        return self.found[key]

    def operations(self, graph: Any) -> list[Operation]:
        return [self.operation(key) for key in (*graph.inputs, *graph.nodes)]

    def output(self, value: Any) -> OperationOutput:
        if value.node is None:
            return OperationOutput(self.operation(value), 0, value)
        return OperationOutput(self.operation(value.node), value.node.outputs.index(value), value)


def of_graph(graph: Any) -> list[Operation]:
    """The operations of a graph, arguments first."""
    return _View(graph).operations(graph)


def by_name(graph: Any, name: str) -> Operation:
    """The operation of that name, in the graph or in a region. Raises KeyError."""
    view = _View(graph)
    for key, own in view.names.items():
        if own == name:
            return view.operation(key)
    raise KeyError(
        f"The name '{name}' refers to an Operation not in the graph; it has {', '.join(view.names.values())}"
    )


class NodeDef:
    """One node of a `GraphDef`: `name`, `op`, `input` (names), `attr` (a dict), `region` (label → nodes)."""

    def __init__(self, operation: Operation) -> None:
        self.name = operation.name
        self.op = operation.type
        self.input = [each.name.removesuffix(":0") for each in operation.inputs]
        attrs = {} if operation.node is None else {k: v for k, v in operation.node.attrs.items() if k != "types"}
        self.attr: dict[str, Any] = attrs
        self.output = [str(each.value.type) for each in operation.outputs]
        self.region = {label: [NodeDef(each) for each in inner] for label, inner in operation.regions.items()}

    def lines(self) -> Iterator[str]:
        yield "node {"
        yield f'  name: "{self.name}"'
        yield f'  op: "{self.op}"'
        for name in self.input:
            yield f'  input: "{name}"'
        for key, value in self.attr.items():
            value = value.deref().name if hasattr(value, "deref") else value
            yield from ("  attr {", f'    key: "{key}"', f"    value: {value}", "  }")
        for type_ in self.output:
            yield f"  output: {type_}"
        for label, inner in self.region.items():
            yield "  region {"
            yield f'    name: "{label}"'
            for node in inner:
                yield from ("    " + line for line in node.lines())
            yield "  }"
        yield "}"

    def __str__(self) -> str:
        return "\n".join(self.lines())


class GraphDef:
    """A graph as plain data: `node` is a list of `NodeDef`. Printed like TensorFlow's, with regions in their nodes.

    It is for reading; nothing loads it. `graph` is the graph that it shows.
    """

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.node = [NodeDef(operation) for operation in of_graph(graph)]

    def __str__(self) -> str:
        return "\n".join(map(str, self.node))

    __repr__ = __str__
