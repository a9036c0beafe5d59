"""Checks that a graph is what `ir.py` says a graph is. With AUTOGRAPH_STRICT=1 (in tests) it runs after each pass and
names the one that broke a graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from runtime import shapes
from runtime.graph.ir import Graph, Node, Value
from runtime.types import StackType, TensorType, TokenType, Type

# The functions that `call` nodes may call, by name. Each has a graph and a number of captures; those that a `letrec`
# around the graph defines are unknown.
Functions = Mapping[str, "tuple[Graph, int] | None"]


class VerificationError(Exception):
    """A graph that breaks an invariant, with the invariant, the node and (when known) the pass."""


def verify(graph: Graph, after: str = "building", is_part: bool = False) -> None:
    """Raises VerificationError unless every value is defined once and before use, every node's types agree with its
    op's rule, regions see only their own inputs, and tokens form one chain.

    is_part: the graph may call functions of a `letrec` that will be around it.
    """
    outside = {node.attrs["function"]: None for node in graph.walk() if node.op.name == "call"} if is_part else {}
    try:
        _verify_graph(graph, outside)
    except VerificationError as error:
        raise VerificationError(f"after {after}, graph '{graph.name}': {error}\n{graph}") from None


def fits(expected: Type, actual: Type) -> bool:
    """Whether a value of type `actual` may stand where `expected` is declared (shapes may be more precise)."""
    if isinstance(expected, TensorType) and isinstance(actual, TensorType):
        return expected.dtype is actual.dtype and shapes.covers(expected.shape, actual.shape)
    if isinstance(expected, StackType) and isinstance(actual, StackType):
        return expected.element.dtype is actual.element.dtype and expected.element.rank == actual.element.rank
    return isinstance(expected, TokenType) and isinstance(actual, TokenType)


def _verify_graph(graph: Graph, functions: Functions) -> None:
    defined: set[Value] = set()

    def define(value: Value, node: Node | None) -> None:
        if value in defined:
            raise VerificationError(f"{value!r} is defined twice")
        if value.node is not node or value.graph is not graph:
            raise VerificationError(f"{value!r} refers to a wrong node or graph")
        defined.add(value)

    for value in graph.inputs:
        define(value, None)
    spent: set[Value] = set()
    for node in graph.nodes:
        for value in node.inputs:
            if value not in defined:
                raise VerificationError(f"{node!r} reads {value!r}, which isn't defined before it in this graph")
            if isinstance(value.type, TokenType):
                if value in spent:
                    raise VerificationError(f"{node!r} reads an order token that an earlier effect has used")
                spent.add(value)
        _verify_node(node, functions)
        for value in node.outputs:
            define(value, node)
    for value in graph.outputs:
        if value not in defined:
            raise VerificationError(f"output {value!r} isn't defined in this graph")


def _verify_letrec(node: Node, functions: Functions) -> None:
    names, count = node.attrs["functions"], node.attrs["captures"]
    if len(names) != len(node.regions) or not names:
        raise VerificationError(f"letrec has the names {names}, but {len(node.regions)} functions")
    own = {name: (region, count) for name, region in zip(names, node.regions)}
    for region in node.regions:
        _verify_graph(region, {**functions, **own})
        first = len(region.inputs) - count
        if first < 0 or not all(
            fits(inner.type, outer.type)
            for inner, outer in zip(region.inputs[first:], node.inputs[len(node.inputs) - count :])
        ):
            raise VerificationError(f"letrec passes {node.inputs}, but its function has the inputs {region.inputs}")
    _verify_application(node, node.inputs[: len(node.inputs) - count], names[0], own)


def _verify_call(node: Node, functions: Functions) -> None:
    name = node.attrs["function"]
    if name not in functions:
        raise VerificationError(f"{node!r} calls {name}, but no enclosing letrec defines a function of that name")
    _verify_application(node, node.inputs, name, functions)


def _verify_application(node: Node, arguments: Sequence[Value], name: str, functions: Functions) -> None:
    function = functions[name]
    if function is None:
        return
    region, captures = function
    parameters = region.inputs[: len(region.inputs) - captures]
    if len(parameters) != len(arguments) or not all(
        fits(inner.type, outer.type) for inner, outer in zip(parameters, arguments)
    ):
        raise VerificationError(f"{node!r} calls {name} with {arguments}, but its parameters are {parameters}")
    if len(region.outputs) != len(node.outputs) or not all(
        fits(outer.type, inner.type) for inner, outer in zip(region.outputs, node.outputs)
    ):
        raise VerificationError(f"{node!r} has the outputs {node.outputs}, but {name} returns {region.outputs}")


def _verify_node(node: Node, functions: Functions) -> None:
    name = node.op.name
    if name == "cond":
        _verify_regions(node, node.inputs[1:], [node.outputs, node.outputs], functions)
    elif name == "while":
        carries = node.attrs["carries"]
        _verify_regions(node, node.inputs, [[None], node.outputs], functions)
        for start, output in zip(node.inputs, node.outputs):
            if not fits(output.type, start.type):
                raise VerificationError(
                    f"the initial value {start!r} of a while doesn't fit the type of its carry {output!r}"
                )
        if len(node.outputs) != carries:
            raise VerificationError(f"a while has {carries} carries, but {len(node.outputs)} outputs")
    elif name == "letrec":
        _verify_letrec(node, functions)
    elif name == "call":
        _verify_call(node, functions)
    else:
        for region in node.regions:  # the gradient of a custom_gradient
            _verify_graph(region, {})
        inputs = [v.type for v in node.inputs]
        outputs = [v.type for v in node.outputs]
        ends = [types.pop() for types in (inputs, outputs) if node.op.effect and types]
        if node.op.effect and not (len(ends) == 2 and all(isinstance(t, TokenType) for t in ends)):
            raise VerificationError(f"effect {node!r} isn't ordered by a token")
        expected = node.op.infer(inputs, node.attrs)
        if len(expected) != len(outputs) or not all(map(fits, outputs, expected)):
            raise VerificationError(
                f"{node!r} has outputs of other types than the type rule of {name} infers: {expected}"
            )


def _verify_regions(node: Node, arguments: list[Value], results: list, functions: Functions) -> None:
    for region, outputs in zip(node.regions, results):
        _verify_graph(region, functions)
        if len(region.inputs) != len(arguments) or not all(
            fits(inner.type, outer.type) for inner, outer in zip(region.inputs, arguments)
        ):
            raise VerificationError(f"{node.op.name} passes {arguments}, but its region has the inputs {region.inputs}")
        if len(region.outputs) != len(outputs):
            raise VerificationError(
                f"a region of {node.op.name} returns {region.outputs}, but the outputs of the node are {outputs}"
            )
        for inner, outer in zip(region.outputs, outputs):
            if outer is None:
                if not isinstance(inner.type, TensorType) or inner.dtype.name != "bool" or inner.shape != ():
                    raise VerificationError(f"the test of a while must be a scalar bool, not {inner!r}")
            elif not fits(outer.type, inner.type):
                raise VerificationError(
                    f"a region of {node.op.name} returns {inner!r}, which doesn't fit the output {outer!r}"
                )
