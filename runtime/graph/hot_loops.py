"""A `while` node as one Python function: what the interpreter runs of a loop that has made a few trips.

    %i, %x = while(%i0, %x0, %n)              while True:
      test(%i, %x, %n):                           v3 = v0 < v2
        %less = less(%i, %n)                      if not v3:
        return %less                                  break
      body(%i, %x, %n):                →          v4 = k0(v1)
        %y = tanh(%x)                             v5 = v0 + one
        %j = add(%i, %one)                        v0, v1 = v5, v4
        return %j, %y                             trips += 1
                                                  ...

Regions become blocks, so that a trip costs little more than the ops' kernels do. Each node has a line of its own, which
says after an error which node it was.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

from runtime.graph.ir import Graph, Node, Value

_INFIX = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.lt: "<", operator.le: "<=", operator.gt: ">",
    operator.ge: ">=", operator.eq: "==", operator.ne: "!=",
}  # fmt: skip
# Loops in more loops than this, and regions in more regions, are left to the interpreter; Python allows 20 and 100.
_LOOPS, _REGIONS = 8, 60


class HotLoop:
    """The function of a `while` node. `executor` gives what computes a node without regions from its operands, or one
    with regions from a list of its operands and what to ask."""

    def __init__(self, node: Node, executor: Callable[[Node], Callable[..., Any]]) -> None:
        self.node = node
        self._executor = executor
        self._names: dict[Value, str] = {}
        self._space: dict[str, Any] = {}
        self.text: list[str] = []  # its lines
        self._nodes: dict[int, tuple[Node, list[str]]] = {}  # by line
        parameters = [f"p{index}" for index in range(len(node.inputs))]
        self._line(0, f"def loop({', '.join([*parameters, 'tier_up', 'poll_interval'])}):")
        results = self._while(node, parameters, 1, 0)
        self._line(1, f"return [{', '.join(results)}]")
        exec(compile("\n".join(self.text), f"{__file__}: loop", "exec"), self._space)
        self._loop = self._space["loop"]
        self._code: CodeType = self._loop.__code__

    def run(self, operands: Sequence[Any], tier_up: Any, poll_interval: int) -> list[Any]:
        """The results of the loop. `tier_up` is an accelerator of the interpreter's, which knows of this loop already
        and is asked every `poll_interval` trips of a loop."""
        return self._loop(*operands, tier_up, poll_interval)

    def failed(self, error: BaseException) -> tuple[Node, list[Any]] | None:
        """The node that raised an error, and its operands, if it was one of this loop's."""
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code is not self._code:
            trace = trace.tb_next
        if trace is None or trace.tb_lineno not in self._nodes:
            return None
        node, names = self._nodes[trace.tb_lineno]
        values = trace.tb_frame.f_locals
        return node, [values.get(name) for name in names]

    # --- text ----------------------------------------------------------------------------------------------------

    def _line(self, depth: int, text: str) -> None:
        self.text.append(" " * depth + text)

    def _fresh(self, value: Value) -> str:
        name = self._names[value] = f"v{len(self._names)}"
        return name

    def _constant(self, value: Any) -> str:
        name = f"k{len(self._space)}"
        self._space[name] = value
        return name

    def _region(self, graph: Graph, operands: Sequence[str], depth: int, loops: int) -> list[str]:
        """Writes the nodes of a region; gives the names of its outputs."""
        self._names.update(zip(graph.inputs, operands))
        kept = set(graph.outputs)
        last: dict[Value, Node] = {value: node for node in graph.nodes for value in node.inputs}
        for node in graph.nodes:
            self._node(node, depth, loops)
            # Big intermediates are freed as early as in eager code.
            dead = [v for v in dict.fromkeys(node.inputs) if last[v] is node and v not in kept and _is_big(v)]
            owned = [self._names[v] for v in dead if v.node is not None and self._names[v].startswith("v")]
            if owned:
                self._line(depth, f"{' = '.join(owned)} = None")
        return [self._names[v] for v in graph.outputs]

    def _node(self, node: Node, depth: int, loops: int) -> None:
        inputs = [self._names[v] for v in node.inputs]
        if node.op.name == "cond" and depth < _REGIONS:
            self._cond(node, inputs, depth, loops)
            return
        if node.op.name == "while" and depth < _REGIONS and loops < _LOOPS:
            self._line(depth, f"tier_up.enter({self._constant(node)})")
            self._line(depth, "try:")
            self._names.update(zip(node.outputs, self._while(node, inputs, depth + 1, loops)))
            self._line(depth, "finally:")
            self._line(depth + 1, "tier_up.leave()")
            return
        if node.op.name == "constant":
            self._names[node.outputs[0]] = self._constant(node.attrs["value"].array)
            return
        run = self._executor(node)
        targets = [self._fresh(v) for v in node.outputs]
        if node.op.effect:
            self._names[node.outputs[-1]] = "None"
            inputs, targets = inputs[:-1], targets[:-1]
        if node.regions and node.op.name != "custom_gradient":
            text = f"{self._constant(run)}([{', '.join(inputs)}], tier_up)"
        elif run in _INFIX and len(inputs) == 2:
            text = f"{inputs[0]} {_INFIX[run]} {inputs[1]}"
        else:
            text = f"{self._constant(run)}({', '.join(inputs)})"
        if node.op.multiple or (node.regions and node.op.name != "custom_gradient"):
            text = f"{', '.join(targets)}{',' if len(targets) == 1 else ''} = {text}" if targets else text
        elif targets:
            text = f"{targets[0]} = {text}"
        self._nodes[len(self.text) + 1] = node, [self._names[v] for v in node.inputs]
        self._line(depth, text)

    def _cond(self, node: Node, inputs: list[str], depth: int, loops: int) -> None:
        targets = [self._fresh(v) for v in node.outputs]
        for head, region in zip((f"if {inputs[0]}:", "else:"), node.regions):
            self._line(depth, head)
            results = self._region(region, inputs[1:], depth + 1, loops)
            self._line(depth + 1, f"{', '.join(targets)} = {', '.join(results)}" if targets else "pass")

    def _while(self, node: Node, inputs: list[str], depth: int, loops: int) -> list[str]:
        test, body = node.regions
        count = node.attrs["carries"]
        carries = [self._fresh(v) for v in node.outputs]
        if carries:
            self._line(depth, f"{', '.join(carries)} = {', '.join(inputs[:count])}")
        operands = [*carries, *inputs[count:]]
        trips = f"trips{len(self.text)}"
        self._line(depth, f"{trips} = 0")
        self._line(depth, "while True:")
        (go,) = self._region(test, operands, depth + 1, loops + 1)
        self._line(depth + 1, f"if not {go}: break")
        results = self._region(body, operands, depth + 1, loops + 1)
        moved = [(a, b) for a, b in zip(carries, results) if a != b]
        if moved:
            self._line(depth + 1, f"{', '.join(a for a, _ in moved)} = {', '.join(b for _, b in moved)}")
        self._line(depth + 1, f"{trips} += 1")
        self._line(depth + 1, f"if {trips} >= poll_interval or tier_up.polls_each_trip:")
        self._line(depth + 2, f"{trips} = 0")
        self._line(depth + 2, f"finished = tier_up.finish([{', '.join(operands)}])")
        self._line(depth + 2, "if finished is not None:")
        if carries:
            self._line(depth + 3, f"{', '.join(carries)}{',' if len(carries) == 1 else ''} = finished")
        self._line(depth + 3, "break")
        return carries


def _is_big(value: Value) -> bool:
    return getattr(value.type, "rank", 1) != 0
