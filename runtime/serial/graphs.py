"""Graphs as JSON, and back.

    program ::= {"types": [type ...], "texts": [text ...], "graphs": [graph ...]}
    graph   ::= {"name": text, "inputs": [[type, name?] ...], "nodes": [node ...], "outputs": [value ...]}
    node    ::= {"op": name, "inputs": [value ...], "attributes"?: {name: value}, "outputs": [[type, name?] ...],
                 "regions"?: [graph ...], "span"?: [file, line, function], "name"?: text}

Types, texts (files and functions in spans) and regions are numbers, places in those lists. A value is the number of its
definition in its graph: inputs first, then the outputs of each node. The regions of a node come after its graph, and no
two nodes share one.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime.errors import UnimplementedError
from runtime.graph.ir import ConstantArray, Graph, Node, Value
from runtime.graph.spans import describe_span
from runtime.graph.verify import verify
from runtime.serial import schema
from runtime.serial.names import op_called
from runtime.serial.values import Damaged, Decoder, Encoder, is_index, type_from_json, type_to_json
from runtime.types import TokenType, Type

_MOST_NAME = 1000


class Writer:
    """Collects graphs. `constants` are the arrays that they use.

    variable_number: gives a variable that a graph assigns its number.
    """

    def __init__(self, variable_number: Callable[[Any], int]) -> None:
        self.constants: list[ConstantArray] = []
        self.variable_number = variable_number
        self._constants: dict[ConstantArray, int] = {}
        self._types: dict[Type, int] = {}
        self._texts: dict[str, int] = {}
        self._graphs: list[Any] = []
        self._encoder = Encoder(self.type_number, self.constant_number, self.variable_number)

    def program(self) -> dict[str, Any]:
        """All that was added."""
        return {"types": list(map(type_to_json, self._types)), "texts": list(self._texts), "graphs": self._graphs}

    def add(self, graph: Graph) -> int:
        """Adds a graph with its regions; returns its number. Raises UnimplementedError if it calls Python, or holds
        something else that files can't."""
        first = len(self._graphs)
        waiting = [graph]
        self._graphs.append(None)
        for place, each in enumerate(waiting, first):

            def region(inner: Graph) -> int:
                waiting.append(inner)
                self._graphs.append(None)
                return len(self._graphs) - 1

            self._graphs[place] = self._graph(each, region)
        return first

    def _graph(self, graph: Graph, region: Callable[[Graph], int]) -> dict[str, Any]:
        numbers: dict[Value, int] = {}

        def defined(values: Sequence[Value]) -> list[Any]:
            said = []
            for value in values:
                numbers[value] = len(numbers)
                said.append([self.type_number(value.type), *([value.name] if value.name else [])])
            return said

        inputs = defined(graph.inputs)
        nodes = []
        for node in graph.nodes:
            read = [numbers[value] for value in node.inputs]
            nodes.append(self._node(node, read, defined, region))
        outputs = [numbers[value] for value in graph.outputs]
        return {"name": graph.name, "inputs": inputs, "nodes": nodes, "outputs": outputs}

    def _node(self, node: Node, inputs: list[int], defined: Any, region: Callable[[Graph], int]) -> dict[str, Any]:
        if schema.is_refused(node.op):
            what = f"{node.op.name} {schema.reason(node.op)}"
            raise UnimplementedError(
                f"{what}, which can't be saved{_where(node)}; write it with functions of `ag`, or compute the value "
                "outside and pass it as an argument"
            )
        said: dict[str, Any] = {"op": node.op.name, "inputs": inputs}
        try:
            attributes = {name: self._encoder.to_json(value) for name, value in node.attrs.items()}
            schema.check(node.op, len(node.inputs), node.attrs)
        except UnimplementedError as error:
            raise UnimplementedError(f"{node.op.name} can't be saved: {error.message}{_where(node)}") from None
        except Damaged as error:
            raise UnimplementedError(f"{node.op.name} can't be saved: {error}{_where(node)}") from None
        if attributes:
            said["attributes"] = attributes
        said["outputs"] = defined(node.outputs)
        if node.regions:
            said["regions"] = [region(inner) for inner in node.regions]
        if node.span:
            file, line, function = node.span
            said["span"] = [self._text(short_path(file)), line, self._text(function)]
        if node.name:
            said["name"] = node.name
        return said

    def type_number(self, type_: Type) -> int:
        return self._types.setdefault(type_, len(self._types))

    def _text(self, text: str) -> int:
        return self._texts.setdefault(str(text), len(self._texts))

    def constant_number(self, constant: ConstantArray) -> int:
        number = self._constants.get(constant)
        if number is None:
            array = constant.array
            if array.dtype == object and not all(isinstance(value, bytes) for value in np.ravel(array).tolist()):
                raise UnimplementedError("a constant holds Python objects")
            number = self._constants[constant] = len(self.constants)
            self.constants.append(constant)
        return number


@functools.lru_cache(maxsize=1 << 10)
def short_path(file: str) -> str:
    """A source file's path, relative to where Python imports from, so that it says nothing of this machine."""
    if not os.path.isabs(file):
        return file
    folders = [os.path.abspath(each) for each in sys.path if isinstance(each, str)]
    inside = [folder for folder in folders if file.startswith(folder.rstrip(os.sep) + os.sep) and folder != os.sep]
    return os.path.relpath(file, max(inside, key=len)).replace(os.sep, "/") if inside else os.path.basename(file)


def _where(node: Node) -> str:
    return f", at {describe_span(node.span)}" if node.span else ""


def read(program: Any, constants: Sequence[np.ndarray], variables: Sequence[Any]) -> list[Graph | None]:
    """The graphs of a program by number, verified; None for those that are regions of others.

    Raises Damaged for anything that no `Writer` has written.
    """
    try:
        return _Reader(program, list(map(ConstantArray, constants)), variables).graphs
    except Damaged:
        raise
    # Type rules are written for programs: of a file's they may raise anything.
    except Exception as error:
        raise Damaged(f"{type(error).__name__}: {str(error)[:500]}") from None


class _Reader:
    def __init__(self, program: Any, constants: Sequence[ConstantArray], variables: Sequence[Any]) -> None:
        lists = [field(program, name, list) for name in ("types", "texts", "graphs")]
        self._types = list(map(type_from_json, lists[0]))
        self._texts = [checked(text, str) for text in lists[1]]
        self._decoder = Decoder(self._types, constants, variables)
        # From the last on, so that a node's regions are there.
        graphs: list[Any] = [None] * len(lists[2])
        self._free = graphs
        used: set[int] = set()
        for number in reversed(range(len(graphs))):
            graphs[number] = self._graph(lists[2][number], number, used)
        self.graphs: list[Graph | None] = [None if number in used else graph for number, graph in enumerate(graphs)]
        for graph in self.graphs:
            if graph is not None:
                verify(graph, "reading")

    def _graph(self, said: Any, number: int, used: set[int]) -> Graph:
        graph = Graph(name_from(field(said, "name", str)))
        values: list[Value] = []
        for one in field(said, "inputs", list):
            values.append(graph.add_input(*self._definition(one)))
        for one in field(said, "nodes", list):
            self._node(one, graph, values, number, used)
        graph.outputs = [at(values, place) for place in field(said, "outputs", list)]
        return graph

    def _definition(self, said: Any) -> tuple[Type, str | None]:
        if not isinstance(said, list) or len(said) not in (1, 2):
            raise Damaged("a value's definition is damaged")
        return at(self._types, said[0]), name_from(said[1]) if len(said) == 2 else None

    def _node(self, said: Any, graph: Graph, values: list[Value], number: int, used: set[int]) -> None:
        op = op_called(field(said, "op", str))
        if op is None:
            raise Damaged(f"there is no operation {said['op']!r}")
        inputs = [at(values, place) for place in field(said, "inputs", list)]
        attributes = field(said, "attributes", dict) if "attributes" in said else {}
        attrs = {name: self._decoder.from_json(value) for name, value in attributes.items()}
        schema.check(op, len(inputs), attrs)
        outputs = [self._definition(one) for one in field(said, "outputs", list)]
        regions = []
        for place in field(said, "regions", list) if "regions" in said else ():
            if not is_index(place, len(self._free)) or place <= number or place in used:
                raise Damaged("a region doesn't come after its node, or belongs to two nodes")
            used.add(place)
            regions.append(self._free[place])
        if op.regions is not None and len(regions) != len(op.regions):
            raise Damaged(f"{op.name} has {len(regions)} regions")
        node = graph.add_node(op, inputs, attrs, [type_ for type_, _ in outputs], regions, self._span(said))
        if "name" in said:
            node.name = name_from(said["name"])
        for value, (_, name) in zip(node.outputs, outputs):
            value.name = name
            values.append(value)
        if op.name == "assign" or op.name == "commit":
            _check_variable(node)

    def _span(self, said: Any) -> Any:
        span = said.get("span")
        if span is None:
            return None
        if not isinstance(span, list) or len(span) != 3 or not is_index(span[1], 1 << 31):
            raise Damaged("a span is damaged")
        return at(self._texts, span[0]), span[1], at(self._texts, span[2])


def _check_variable(node: Node) -> None:
    reference = node.attrs.get("variable")
    if reference is None:
        return
    type_ = reference.deref()._state_type()
    for value in node.inputs:
        if not isinstance(value.type, TokenType) and value.type.dtype is not type_.dtype:  # type: ignore[union-attr]
            raise Damaged("a variable is assigned a value of another dtype")


def field(said: Any, name: str, kind: type) -> Any:
    """A field of a JSON object, of this type. Raises Damaged."""
    if not isinstance(said, dict) or type(said.get(name)) is not kind:
        raise Damaged(f"the field {name!r} is missing or damaged")
    return said[name]


def checked(value: Any, kind: type) -> Any:
    """A value of this type. Raises Damaged."""
    if type(value) is not kind:
        raise Damaged(f"{str(value)[:100]} is not of type {kind.__name__}")
    return value


def name_from(said: Any) -> str:
    if type(said) is not str or len(said) > _MOST_NAME:
        raise Damaged("a name is damaged")
    return said


def at(among: Sequence[Any], place: Any) -> Any:
    """The item at an index of a list. Raises Damaged for anything that isn't one."""
    if not is_index(place, len(among)):
        raise Damaged(f"{place!r} is not an index of a list of {len(among)}")
    return among[place]
