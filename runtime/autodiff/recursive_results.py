"""Keeps the results of recursive calls for the gradient, which otherwise runs each call again for every call around it.

    f(x):       a = call f(x - 1)        →    saving f(x, S):   a, S = call saving f(x - 1, S)
                return a · x                                    return a · x, push(S, a, size of S)
    f'(x, dy):  a = call f(x - 1)        →    reading f'(x, dy, S):
                b = call f'(x - 1, x · dy)                      S, a, size = pop(S)
                return a · dy + b                               b = call reading f'(x - 1, x · dy, first `size` of S)
                                                                return a · dy + b
    letrec f'(x, dy)                     →    letrec reading f'(x, dy, letrec saving f(x, empty S))

At its end each function pushes a frame: the results of its calls that its adjoint needs, and the size of the stacks
after each call, which is where the frame of that call ends. Frames of one function are alike: calls in a branch that
wasn't taken leave zeros. A call in a loop stays as it is, so the gradient runs it again.

The rewrite comes last, when nobody differentiates the graph any more. It builds the adjoints anew from the functions
themselves: the calls in them then still tell which call of the function they stand for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from runtime import dtypes
from runtime.autodiff.buffers import mark_growing
from runtime.autodiff.recursion import ADJOINT_OF, SITE, adjoint_functions, called_from
from runtime.autodiff.residuals import stored_type
from runtime.autodiff.zeros import empty_like_type
from runtime.graph.builder import Builder
from runtime.graph.ir import Graph, Node, Value, copy_graph
from runtime.graph.passes.dead_code import remove_dead_code
from runtime.ops import stack
from runtime.ops.table import OPS
from runtime.types import StackType, TensorType, Type

_COUNT = TensorType(dtypes.int64, ())


def keep_results_of_calls(graph: Graph) -> Graph:
    """The graph, or a copy whose gradients of recursive functions don't run calls again."""
    if not any(_base(node) is not None for node in graph.walk()):
        return graph
    graph = copy_graph(graph)
    mark_growing(graph.nodes)
    seen: set[Node] = set()
    while True:
        # The functions that a rewrite makes may contain further ones.
        node = next((node for node in graph.walk() if node not in seen and _base(node) is not None), None)
        if node is None:
            break
        seen.add(node)
        _rewrite(node)
    remove_dead_code(graph)
    return graph


def _base(node: Node) -> str | None:
    """The function that a `letrec` node calls the adjoint of, if no other of its functions is an adjoint."""
    if node.op.name != "letrec":
        return None
    entry = node.attrs["functions"][0]
    functions = dict(zip(node.attrs["functions"], node.regions))
    base = entry[:-1]
    if not entry.endswith("'") or base not in functions or node.attrs["captures"]:
        return None
    return None if any(f"{name}'" in called_from(functions, base) for name in called_from(functions, base)) else base


def _rewrite(node: Node) -> None:
    base = _base(node)
    assert base is not None
    functions = dict(zip(node.attrs["functions"], node.regions))
    originals = {name: functions[name] for name in called_from(functions, base)}
    frames = _Frames(originals, base)
    if not frames.keeps_results:
        return
    functions = frames.functions()
    graph, place = node.graph, node.graph.nodes.index(node)
    before, after = graph.nodes[:place], graph.nodes[place + 1 :]
    graph.nodes = before
    arguments = node.inputs[: len(originals[base].inputs)]
    saved = [
        graph.add_node(stack.EMPTY, (), {"dtype": t.element.dtype, "shape": t.element.shape}, [t]).outputs[0]
        for t in frames.types
    ]
    forward = _letrec(graph, functions, _saving(base), [*arguments, *saved], node.span)
    stacks = forward.outputs[len(forward.outputs) - len(saved) :]
    backward = _letrec(graph, functions, _reading(base), [*node.inputs, *stacks], node.span)
    graph.nodes += after
    graph.program = None
    mapping = dict(zip(node.outputs, backward.outputs))
    for each in graph.nodes:
        each.inputs = [mapping.get(v, v) for v in each.inputs]
    graph.outputs = [mapping.get(v, v) for v in graph.outputs]


def _letrec(graph: Graph, functions: dict[str, Graph], entry: str, inputs: Sequence[Value], span: Any) -> Node:
    names = [entry, *[name for name in called_from(functions, entry) if name != entry]]
    regions = [copy_graph(functions[name]) for name in names]
    types = [v.type for v in regions[0].outputs]
    attrs = {"functions": tuple(names), "captures": 0, "types": tuple(types)}
    return graph.add_node(OPS["letrec"], inputs, attrs, types, regions, span)


def _saving(name: str) -> str:
    return f"{name}'saving"


def _reading(name: str) -> str:
    return f"{name}'reading"


class _Frames:
    """The functions of a group that save and read frames, beside the others.

    needed: for each call that isn't in a loop, the positions of its results that the adjoint reads.
    types: of the stacks: one for each type of such results, and, last, one for sizes.
    """

    def __init__(self, originals: dict[str, Graph], base: str) -> None:
        self.originals = {name: copy_graph(function) for name, function in originals.items()}
        self.calls = {name: list(_calls_outside_of_loops(function)) for name, function in self.originals.items()}
        everything = [node for calls in self.calls.values() for node in calls]
        for number, node in enumerate(everything):
            node.attrs = {**node.attrs, SITE: number}
        with Builder("adjoints"):
            self.adjoints = adjoint_functions(self.originals, base)
        self.needed: dict[int, set[int]] = {number: set() for number in range(len(everything))}
        for adjoint in self.adjoints.values():
            for node in _calls_outside_of_loops(adjoint):
                if SITE in node.attrs:
                    used = _used(node.graph)
                    self.needed[node.attrs[SITE]] |= {k for k, v in enumerate(node.outputs) if v in used}
        results = [v.type for node in everything for v in self._kept(node)]
        self.types = [StackType(t) for t in dict.fromkeys(map(stored_type, results)) if t != _COUNT]
        self.types.append(StackType(_COUNT))
        self.keeps_results = bool(results)

    def functions(self) -> dict[str, Graph]:
        made = {**self.originals, **self.adjoints}
        made |= {_saving(name): self._that_saves(name) for name in self.originals}
        made |= {_reading(name): self._that_reads(name) for name in self.originals if f"{name}'" in self.adjoints}
        for function in made.values():
            for node in function.walk():
                node.attrs = {key: value for key, value in node.attrs.items() if key not in (SITE, ADJOINT_OF)}
        return made

    def _kept(self, call: Node) -> list[Value]:
        return [call.outputs[k] for k in sorted(self.needed[call.attrs[SITE]])]

    def _frame(self, name: str) -> list[TensorType]:
        """The types of what a frame of the function holds: for each call its results and the sizes of the stacks."""
        types: list[TensorType] = []
        for call in self.calls[name]:
            types += [_tensor_type(v) for v in self._kept(call)] + [_COUNT] * len(self.types)
        return types

    # --- saving ------------------------------------------------------------------------------------------------------

    def _that_saves(self, name: str) -> Graph:
        graph = copy_graph(self.originals[name])
        found, stacks = self._threaded(graph, [graph.add_input(t) for t in self.types])
        values = [v for call in self.calls[name] for v in found[call.attrs[SITE]]]
        for value in values:
            element = stored_type(value.type)
            k = self.types.index(StackType(element))
            if element != value.type:
                value = graph.add_node(OPS["reshape"], [value], {"shape": ()}, [element]).outputs[0]
            stacks[k] = graph.add_node(stack.PUSH, [stacks[k], value], {}, [self.types[k]]).outputs[0]
        graph.outputs = [*graph.outputs, *stacks]
        return graph

    def _threaded(self, graph: Graph, stacks: list[Value]) -> tuple[dict[int, list[Value]], list[Value]]:
        """Passes stacks through the calls of a graph, in place. Returns what the frame holds of each call, and the
        stacks after the last."""
        found: dict[int, list[Value]] = {}
        nodes, graph.nodes = graph.nodes, []
        for node in nodes:
            graph.nodes.append(node)
            if SITE in node.attrs:
                stacks, results = self._saving_call(node, stacks), self._kept(node)
                sizes = [graph.add_node(stack.SIZE, [s], {}, [_COUNT]).outputs[0] for s in stacks]
                found[node.attrs[SITE]] = [*results, *sizes]
            elif node.op.name == "cond" and any(SITE in call.attrs for call in _calls_outside_of_loops_in(node)):
                parts = []
                for region in node.regions:
                    parts.append(self._threaded(region, [region.add_input(t) for t in self.types]))
                node.inputs += stacks
                inside = {site: values for values_of, _ in parts for site, values in values_of.items()}
                for (values_of, after), region in zip(parts, node.regions):
                    region.outputs += after
                    for site, values in inside.items():
                        blanks = [] if site in values_of else [empty_like_type(region, _tensor_type(v)) for v in values]
                        region.outputs += values_of.get(site, blanks)
                    region.program = None
                stacks = _with_results(node, self.types)
                for site, values in inside.items():
                    found[site] = _with_results(node, [v.type for v in values])
        return found, stacks

    def _saving_call(self, call: Node, stacks: list[Value]) -> list[Value]:
        call.inputs += stacks
        call.attrs = {**call.attrs, "function": _saving(call.attrs["function"])}
        return _with_results(call, self.types)

    # --- reading -----------------------------------------------------------------------------------------------------

    def _that_reads(self, name: str) -> Graph:
        graph = copy_graph(self.adjoints[f"{name}'"])
        nodes, graph.nodes = graph.nodes, []
        stacks = [graph.add_input(t) for t in self.types]
        values: list[Value] = []
        for type_ in reversed(self._frame(name)):
            element = stored_type(type_)
            k = self.types.index(StackType(element))
            stacks[k], value = graph.add_node(stack.POP, [stacks[k]], {}, [self.types[k], element]).outputs
            if element != type_:
                value = graph.add_node(OPS["reshape"], [value], {"shape": type_.shape}, [type_]).outputs[0]
            values.append(value)
        frame: dict[int, tuple[list[Value], list[Value]]] = {}
        for call in self.calls[name]:
            results = [values.pop() for _ in self._kept(call)]
            frame[call.attrs[SITE]] = results, [values.pop() for _ in self.types]
        graph.nodes += nodes
        self._reads_frame(graph, frame, stacks)
        return graph

    def _reads_frame(
        self, graph: Graph, frame: dict[int, tuple[list[Value], list[Value]]], stacks: list[Value]
    ) -> None:
        """Lets the calls in a graph use the frame, in place."""
        mapping: dict[Value, Value] = {}
        nodes, graph.nodes = graph.nodes, []
        for node in nodes:
            node.inputs = [mapping.get(v, v) for v in node.inputs]
            if node.attrs.get(SITE) in frame:
                mapping |= zip(self._kept(node), frame[node.attrs[SITE]][0])
                continue
            if ADJOINT_OF in node.attrs:
                sizes = frame[node.attrs[ADJOINT_OF]][1]
                for pile, size in zip(stacks, sizes):
                    types = [pile.type] * 2
                    node.inputs.append(graph.add_node(stack.SPLIT, [pile, size], {}, types).outputs[0])
                node.attrs = {**node.attrs, "function": _reading(node.attrs["function"][:-1])}
            elif node.op.name == "cond" and any(True for _ in _calls_outside_of_loops_in(node)):
                given = [*stacks, *[v for results, sizes in frame.values() for v in (*results, *sizes)]]
                node.inputs += given
                for region in node.regions:
                    own = iter([region.add_input_like(v) for v in given])
                    inner_stacks = [next(own) for _ in stacks]
                    inner = {
                        site: ([next(own) for _ in results], [next(own) for _ in sizes])
                        for site, (results, sizes) in frame.items()
                    }
                    self._reads_frame(region, inner, inner_stacks)
            graph.nodes.append(node)
        graph.outputs = [mapping.get(v, v) for v in graph.outputs]
        graph.program = None


def _calls_outside_of_loops(graph: Graph) -> Iterator[Node]:
    for node in graph.nodes:
        if node.op.name == "call":
            yield node
        elif node.op.name == "cond":
            yield from _calls_outside_of_loops_in(node)


def _calls_outside_of_loops_in(cond: Node) -> Iterator[Node]:
    for region in cond.regions:
        yield from _calls_outside_of_loops(region)


def _used(graph: Graph) -> set[Value]:
    return {*graph.outputs, *[v for node in graph.nodes for v in node.inputs]}


def _with_results(node: Node, types: Sequence[Type]) -> list[Value]:
    """Gives a node more results."""
    made = [Value(t, node.graph, node) for t in types]
    node.outputs += made
    if "types" in node.attrs:
        node.attrs = {**node.attrs, "types": (*node.attrs["types"], *types)}
    return made


def _tensor_type(value: Value) -> TensorType:
    assert isinstance(value.type, TensorType)
    return value.type
