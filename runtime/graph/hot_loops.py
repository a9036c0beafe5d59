"""A `while` node as one Python function: what the interpreter runs of a loop that has made a few trips. The functions
of a `letrec` node that has made a few calls become Python functions that call each other.

    %i, %x = while(%i0, %x0, %n)              v0 = p0.item()
      test(%i, %x, %n):                       while True:
        %less = less(%i, %n)                      v3 = v0 < v2
        return %less                              if not v3:
      body(%i, %x, %n):                →              break
        %y = tanh(%x)                             v4 = k0(v1)
        %j = add(%i, %one)                        v5 = v0 + 1
        return %j, %y                             if not -2147483648 <= v5 <= 2147483647: v5 = k1(int32(v0), k2).item()
                                                  v0, v1 = v5, v4
                                                  ...

Regions become blocks, so that a trip costs little more than the ops' kernels do. Single numbers are Python's where that
keeps all bits (`python_numbers.py`), elements of arrays are read without NumPy's detours, and lists are written in
place (`owned_buffers.py`). Each node has lines of its own, which say after an error which node it was.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

from runtime.dataclass import dataclass
from runtime.dtypes import DType
from runtime.graph import python_numbers
from runtime.graph.ir import Graph, Node, Value
from runtime.graph.owned_buffers import owned_carries
from runtime.graph.python_numbers import Expression, Range, full_range, number
from runtime.ops.arrays.slicing import HOLE
from runtime.recursion import DEEPEST
from runtime.types import TensorType

_INFIX = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.lt: "<", operator.le: "<=", operator.gt: ">",
    operator.ge: ">=", operator.eq: "==", operator.ne: "!=",
}  # fmt: skip
# Loops in more loops than this, and regions in more regions, are left to the interpreter; Python allows 20 and 100.
_LOOPS, _REGIONS = 8, 60


@dataclass(frozen=True)
class _Name:
    """What holds a value. dtype: the value is a number of Python's, which stands for one of this dtype; None: it is an
    array, or one of NumPy's numbers. range: of an integer. constant: the text of the same as NumPy has it, where it is
    known."""

    text: str
    dtype: DType | None = None
    range: Range | None = None
    constant: str = ""


_NOTHING = _Name("None")


@dataclass(frozen=True)
class _Function:
    """A function of a `letrec`: its name in the text, and which operands and results are numbers of Python's."""

    name: str
    operands: list[DType | None]
    results: list[DType | None]


class _Writer:
    """Writes regions as blocks. `executor` gives what computes a node without regions from its operands, or one with
    regions from a list of its operands and what to ask."""

    def __init__(self, executor: Callable[[Node], Callable[..., Any]]) -> None:
        self._executor = executor
        self._names: dict[Value, _Name] = {}
        self._space: dict[str, Any] = dict(python_numbers.NAMES)
        self._fresh_names = 0
        self.text: list[str] = []  # its lines
        self._nodes: dict[int, tuple[Node, list[_Name]]] = {}  # by line
        self._delayed: dict[Node, dict[int, Node]] = {}  # by the choice that takes their results, and by its operand
        self._owned: set[Value] = set()  # arrays that are written in place
        self._functions: dict[str, _Function] = {}  # those of a `letrec`
        self._too_deep: Callable[[Node], Any] | None = None
        self._codes: set[CodeType] = set()

    def _compile(self, *names: str) -> list[Callable[..., Any]]:
        """The functions of these names that the text defines."""
        before = dict(self._space)
        exec(compile("\n".join(self.text), f"{__file__}: {names[0]}", "exec"), self._space)
        self._codes = {f.__code__ for name, f in self._space.items() if name not in before and callable(f)}
        return [self._space[name] for name in names]

    def failed(self, error: BaseException) -> tuple[Node, list[Any]] | None:
        """The node that raised an error, and its operands, if it was one of this function's."""
        trace, innermost = error.__traceback__, None
        while trace is not None:
            if trace.tb_frame.f_code in self._codes:
                innermost = trace
            trace = trace.tb_next
        if innermost is None or innermost.tb_lineno not in self._nodes:
            return None
        node, names = self._nodes[innermost.tb_lineno]
        values = {**self._space, **innermost.tb_frame.f_locals, "True": True, "False": False}
        found = []
        for name in names:
            value = values.get(name.constant or name.text)
            found.append(value if name.dtype is None or name.constant else name.dtype.as_numpy_dtype(value))
        return node, found

    # --- names -------------------------------------------------------------------------------------------------------

    def _line(self, depth: int, text: str) -> None:
        self.text.append(" " * depth + text)

    def _name(self, dtype: DType | None = None) -> _Name:
        self._fresh_names += 1
        return _Name(f"v{self._fresh_names - 1}", dtype, full_range(dtype) if dtype is not None else None)

    def _fresh(self, value: Value) -> _Name:
        name = self._names[value] = self._name(number(value.type))
        return name

    def _constant(self, value: Any) -> str:
        name = f"k{len(self._space)}"
        self._space[name] = value
        return name

    def _array(self, name: _Name) -> str:
        """A value as NumPy has it."""
        if name.dtype is None or name.constant:
            return name.constant or name.text
        type_ = f"np_{name.dtype.name}"
        self._space[type_] = name.dtype.as_numpy_dtype
        return f"{type_}({name.text})"

    def _arrays(self, names: Sequence[_Name]) -> str:
        return ", ".join(self._array(name) for name in names)

    def _as_number(self, name: _Name, value: Value, depth: int) -> _Name:
        """What a kernel has computed, as a number of Python's if it is one."""
        dtype = number(value.type)
        if dtype is None or name.dtype is not None:
            if _is_number(value) and name.text.startswith("p"):
                self._line(depth, f"{name.text} = {name.text}[()]")
            return name
        self._line(depth, f"{name.text} = {name.text}.item()")
        return _Name(name.text, dtype, full_range(dtype))

    def _moved(self, targets: Sequence[_Name], sources: Sequence[_Name]) -> str:
        """An assignment of all at once; "" where nothing moves."""
        moved = [(target, source) for target, source in zip(targets, sources) if target.text != source.text]
        if not moved:
            return ""
        texts = [self._as(target.dtype, source) for target, source in moved]
        return f"{', '.join(target.text for target, _ in moved)} = {', '.join(texts)}"

    def _as(self, dtype: DType | None, source: _Name) -> str:
        """A value as a number of Python's, or as NumPy has it if there is no dtype."""
        if dtype is None:
            return self._array(source)
        return source.text if source.dtype is not None else f"{source.text}.item()"

    def _received(self, targets: Sequence[_Name], source: str, depth: int) -> None:
        """The values of a list of NumPy's."""
        if targets:
            self._line(depth, f"{_tuple([each.text for each in targets])} = {source}")
        for each in targets:
            if each.dtype is not None:
                self._line(depth, f"{each.text} = {each.text}.item()")

    # --- text --------------------------------------------------------------------------------------------------------

    def _region(self, graph: Graph, operands: Sequence[_Name], depth: int, loops: int) -> list[_Name]:
        """Writes the nodes of a region; gives the names of its outputs."""
        self._names.update(zip(graph.inputs, operands))
        kept = set(graph.outputs)
        last: dict[Value, Node] = {value: node for node in graph.nodes for value in node.inputs}
        delayed = self._choices(graph)
        for node in graph.nodes:
            if node in delayed:
                continue
            self._node(node, depth, loops)
            # Big intermediates are freed as early as in eager code.
            dead = [v for v in dict.fromkeys(node.inputs) if last[v] is node and v not in kept and _is_big(v)]
            living = {self._names[v].text for v in node.outputs if v in self._names}  # what was written to in place
            texts = [self._names[v].text for v in dead if v.node is not None]
            owned = [text for text in texts if text.startswith("v") and text not in living]
            if owned:
                self._line(depth, f"{' = '.join(owned)} = None")
        return [self._names[v] for v in graph.outputs]

    def _choices(self, graph: Graph) -> set[Node]:
        """The nodes of a region that only one operand of a `select` uses: they are computed where it takes that one."""
        uses: dict[Value, list[tuple[Node | None, int]]] = {value: [(None, 0)] for value in graph.outputs}
        for node in graph.nodes:
            for position, value in enumerate(node.inputs):
                uses.setdefault(value, []).append((node, position))
        found = set()
        for node in graph.nodes:
            using = uses.get(node.outputs[0], []) if _may_be_left_out(node) else []
            chooser, position = using[0] if len(using) == 1 else (None, 0)
            if chooser is not None and chooser.op.name == "select" and position > 0 and number(chooser.outputs[0].type):
                found.add(node)
                self._delayed.setdefault(chooser, {})[position] = node
        return found

    def _node(self, node: Node, depth: int, loops: int) -> None:
        if node in self._delayed:
            self._choice(node, depth, loops)
            return
        if node.op.name == "cond" and depth < _REGIONS:
            self._cond(node, [self._names[v] for v in node.inputs], depth, loops)
            return
        if node.op.name == "while" and depth < _REGIONS and loops < _LOOPS:
            self._line(depth, f"tier_up.enter({self._constant(node)})")
            self._line(depth, "try:")
            inputs = [self._names[v] for v in node.inputs]
            self._names.update(zip(node.outputs, self._while(node, inputs, depth + 1, loops)))
            self._line(depth, "finally:")
            self._line(depth + 1, "tier_up.leave()")
            return
        if node.op.name == "constant":
            self._names[node.outputs[0]] = self._known(node)
            return
        inputs = [self._names[v] for v in node.inputs]
        first = len(self.text)
        writer = _WRITERS.get(node.op.name, _Writer._expression)
        if not writer(self, node, inputs, depth):
            self._kernel(node, inputs, depth)
        for line in range(first, len(self.text)):
            self._nodes.setdefault(line + 1, (node, inputs))

    def _known(self, node: Node) -> _Name:
        array = node.attrs["value"].array
        dtype = number(node.outputs[0].type)
        # NumPy's own numbers are several times faster than arrays without dimensions.
        kept = self._constant(array[()] if _is_number(node.outputs[0]) else array)
        if dtype is None:
            return _Name(kept)
        value = array.item()
        return _Name(self._constant(value), dtype, (value, value) if full_range(dtype) else None, kept)

    def _kernel(self, node: Node, inputs: list[_Name], depth: int) -> None:
        """A node by its op's kernel."""
        asks = bool(node.regions) and node.op.name != "custom_gradient"
        run = self._executor(node)
        outputs = node.outputs
        if node.op.effect:
            self._names[outputs[-1]] = _NOTHING
            inputs, outputs = inputs[:-1], outputs[:-1]
        targets = [self._name() for _ in outputs]
        if asks:
            text = f"{self._constant(run)}([{self._arrays(inputs)}], tier_up)"
        elif run in _INFIX and len(inputs) == 2:
            text = f"{self._array(inputs[0])} {_INFIX[run]} {self._array(inputs[1])}"
        else:
            text = f"{self._constant(run)}({self._arrays(inputs)})"
        if targets and (node.op.multiple or asks):
            text = f"{', '.join(each.text for each in targets)}{',' if len(targets) == 1 else ''} = {text}"
        elif targets:
            text = f"{targets[0].text} = {text}"
        self._line(depth, text)
        self._names.update((v, self._as_number(each, v, depth)) for v, each in zip(outputs, targets))

    def _slowly(self, node: Node, inputs: Sequence[_Name]) -> str:
        """The text of one result by the op's kernel."""
        text = f"{self._constant(self._executor(node))}({self._arrays(inputs)})"
        return text if number(node.outputs[0].type) is None else f"{text}.item()"

    def _expression(self, node: Node, inputs: list[_Name], depth: int) -> bool:
        """A node on single numbers."""
        if any(number(v.type) is not each.dtype for v, each in zip(node.inputs, inputs)):
            return False
        found = python_numbers.expression(node, [each.range for each in inputs])
        if found is None:
            return False
        texts = [each.text for each in inputs]
        dtype = number(node.outputs[0].type)
        if found == Expression("{0}", range=found.range) and dtype is not None:
            self._names[node.outputs[0]] = _Name(texts[0], dtype, found.range)
            return True
        if found.text in ("True", "False"):
            self._names[node.outputs[0]] = _Name(found.text, dtype)
            return True
        name = self._names[node.outputs[0]] = _Name(self._name().text, dtype, found.range)
        target, text = name.text, found.text.format(*texts)
        if found.before:
            text = f"{text} if {found.before.format(*texts)} else {self._slowly(node, inputs)}"
        self._line(depth, f"{target} = {text}")
        if found.after:
            self._line(depth, f"if not {found.after.format(r=target)}: {target} = {self._slowly(node, inputs)}")
        return True

    def _element(self, node: Node, inputs: list[_Name], depth: int) -> bool:
        """An element of an array. Out of bounds, the kernel says so."""
        array, *holes = inputs
        spec = node.attrs["spec"]
        type_: Any = node.inputs[0].type
        is_one = all(item[0] == "index" for item in spec) and len(spec) == type_.rank
        if not is_one or not _has_plain_elements(type_) or any(hole.dtype is None for hole in holes):
            return False
        rest = iter(holes)
        indices = ", ".join(next(rest).text if item[1] == HOLE else str(item[1]) for item in spec)
        target = self._fresh(node.outputs[0])
        read = f"{array.text}[{indices}]" if target.dtype is None else f"{array.text}.item({indices})"
        self._line(depth, "try:")
        self._line(depth + 1, f"{target.text} = {read}")
        self._line(depth, "except IndexError:")
        self._line(depth + 1, f"{target.text} = {self._slowly(node, inputs)}")
        return True

    def _row(self, node: Node, inputs: list[_Name], depth: int) -> bool:
        """An element of a growable array."""
        buffer, index, *size = inputs
        type_: Any = node.inputs[0].type
        if type_.rank != 1 or not _has_plain_elements(type_) or any(each.dtype is None for each in inputs[1:]):
            return False
        target = self._fresh(node.outputs[0])
        read = f"{buffer.text}[{index.text}]" if target.dtype is None else f"{buffer.text}.item({index.text})"
        bounds = f"0 <= {index.text} < len({buffer.text})"
        if size:
            bounds += f" and {index.text} < {size[0].text}"
        self._line(depth, f"{target.text} = {read} if {bounds} else {self._slowly(node, inputs)}")
        return True

    def _check(self, node: Node, inputs: list[_Name], depth: int) -> bool:
        """An assertion, whose kernel is asked for the error alone."""
        if getattr(node.inputs[0].type, "rank", None) != 0:
            return False
        self._names[node.outputs[-1]] = _NOTHING
        run = self._constant(self._executor(node))
        self._line(depth, f"if not {inputs[0].text}: {run}({self._arrays(inputs[:-1])})")
        return True

    def _write(self, node: Node, inputs: list[_Name], depth: int) -> bool:
        """An element of a growable array is replaced, in place if it exists."""
        buffer, index, value, size = inputs
        if node.inputs[0] not in self._owned or index.dtype is None or size.dtype is None:
            return False
        bound = size.text if node.attrs["fixed"] else f"len({buffer.text})"
        self._line(depth, f"if 0 <= {index.text} < {bound} and {size.text} <= len({buffer.text}):")
        self._line(depth + 1, f"{buffer.text}[{index.text}] = {value.text}")
        self._line(depth, "else:")
        self._line(depth + 1, f"{buffer.text} = {self._slowly(node, inputs)}")
        self._names[node.outputs[0]] = buffer
        return True

    def _call(self, node: Node, inputs: list[_Name], depth: int) -> bool:
        """A call of a function of this `letrec`."""
        function = self._functions.get(node.attrs["function"])
        if function is None or self._too_deep is None:
            return False
        self._line(depth, f"if depth >= {DEEPEST}: {self._constant(self._too_deep(node))}()")
        arguments = ", ".join(self._as(dtype, each) for dtype, each in zip(function.operands, inputs))
        results = [self._name(dtype) for dtype in function.results]
        self._line(depth, f"{_tuple([each.text for each in results])} = {function.name}({arguments}, run, depth + 1)")
        self._names.update(zip(node.outputs, results))
        return True

    def _choice(self, node: Node, depth: int, loops: int) -> None:
        """A `select` that computes an operand only where it takes it."""
        delayed = self._delayed[node]
        condition = self._names[node.inputs[0]].text
        target, ranges = self._name(number(node.outputs[0].type)), []
        for position, head, never in ((1, f"if {condition}:", "False"), (2, "else:", "True")):
            if condition == never:
                continue
            is_sure = condition in ("True", "False")
            if not is_sure:
                self._line(depth, head)
            if position in delayed:
                self._node(delayed[position], depth + (not is_sure), loops)
            source = self._names[node.inputs[position]]
            self._line(depth + (not is_sure), self._moved([target], [source]))
            ranges.append(source.range)
        known = [each for each in ranges if each is not None]
        range_ = (min(a for a, _ in known), max(b for _, b in known)) if len(known) == len(ranges) else target.range
        self._names[node.outputs[0]] = _Name(target.text, target.dtype, range_)

    def _cond(self, node: Node, inputs: list[_Name], depth: int, loops: int) -> None:
        targets = [self._name(number(v.type)) for v in node.outputs]
        for head, region in zip((f"if {inputs[0].text}:", "else:"), node.regions):
            self._line(depth, head)
            results = self._region(region, inputs[1:], depth + 1, loops)
            self._line(depth + 1, self._moved(targets, results) or "pass")
        self._names.update(zip(node.outputs, targets))

    def _bounded(self, node: Node, operands: list[_Name], starts: Sequence[_Name]) -> list[_Name]:
        """A loop's operands as its body sees them: a counter is smaller than what the test compares it with, and never
        smaller than at the start."""
        test, body = node.regions
        compared = test.outputs[0].node
        if compared is None or compared.op.name != "less" or compared.inputs[0] not in test.inputs:
            return operands
        position = test.inputs.index(compared.inputs[0])
        counter, limit = operands[position], self._names[compared.inputs[1]]
        if counter.range is None or limit.range is None or position >= node.attrs["carries"]:
            return operands
        least, greatest = counter.range[0], limit.range[1] - 1
        step, start = body.outputs[position].node, starts[position].range
        is_counted = step is not None and step.op.name == "add" and step.inputs[0] is body.inputs[position]
        added = step.inputs[1].node if step is not None and is_counted else None
        amount = added.attrs["value"].array.item() if added is not None and added.op.name == "constant" else -1
        if start is not None and 0 <= amount <= counter.range[1] - greatest:
            least = start[0]
        bounded = list(operands)
        bounded[position] = _Name(counter.text, counter.dtype, (least, greatest))
        return bounded

    def _while(self, node: Node, inputs: list[_Name], depth: int, loops: int) -> list[_Name]:
        test, body = node.regions
        count = node.attrs["carries"]
        carries = [self._name(number(v.type)) for v in node.outputs]
        start = self._moved(carries, inputs[:count])
        if start:
            self._line(depth, start)
        for position, values in owned_carries(node):
            if node.inputs[position] not in self._owned:
                self._line(depth, f"{carries[position].text} = {inputs[position].text}.copy()")
            self._owned.update(values)
        operands = [*carries, *inputs[count:]]
        trips = f"trips{len(self.text)}"
        self._line(depth, f"{trips} = 0")
        self._line(depth, "while True:")
        (go,) = self._region(test, operands, depth + 1, loops + 1)
        self._line(depth + 1, f"if not {go.text}: break")
        results = self._region(body, self._bounded(node, operands, inputs), depth + 1, loops + 1)
        moved = self._moved(carries, results)
        if moved:
            self._line(depth + 1, moved)
        self._line(depth + 1, f"{trips} += 1")
        self._line(depth + 1, f"if {trips} >= poll_interval or tier_up.polls_each_trip:")
        self._line(depth + 2, f"{trips} = 0")
        self._line(depth + 2, f"finished = tier_up.finish([{self._arrays(operands)}])")
        self._line(depth + 2, "if finished is not None:")
        self._received(carries, "finished", depth + 3)
        self._line(depth + 3, "break")
        return carries


class HotLoop(_Writer):
    """The function of a `while` node."""

    def __init__(self, node: Node, executor: Callable[[Node], Callable[..., Any]]) -> None:
        super().__init__(executor)
        names = [f"p{index}" for index in range(len(node.inputs))]
        self._line(0, f"def loop({', '.join([*names, 'tier_up', 'poll_interval'])}):")
        parameters = [self._as_number(_Name(name), value, 1) for name, value in zip(names, node.inputs)]
        results = self._while(node, parameters, 1, 0)
        self._line(1, f"return [{self._arrays(results)}]")
        (self._loop,) = self._compile("loop")

    def run(self, operands: Sequence[Any], tier_up: Any, poll_interval: int) -> list[Any]:
        """The results of the loop. `tier_up` is an accelerator of the interpreter's, which knows of this loop already
        and is asked every `poll_interval` trips of a loop."""
        return self._loop(*operands, tier_up, poll_interval)


@dataclass
class Recursion:
    """A run of a `letrec`. finish: gives the results of a call by native code, None to go on. poll_interval: calls
    until that is asked; that of loops is `loop_interval`."""

    tier_up: Any
    finish: Callable[[list[Any]], Sequence[Any] | None]
    loop_interval: int
    poll_interval: int
    captures: tuple[Any, ...] = ()
    calls: int = 0


class HotRecursion(_Writer):
    """The functions of a `letrec` node, which call each other as Python's functions do."""

    def __init__(
        self, node: Node, executor: Callable[[Node], Callable[..., Any]], too_deep: Callable[[Node], Any]
    ) -> None:
        """too_deep: what a `call` node raises when the limit of calls in calls is reached."""
        super().__init__(executor)
        self._too_deep = too_deep
        for index, (name, region) in enumerate(zip(node.attrs["functions"], node.regions)):
            operands, results = ([number(v.type) for v in values] for values in (region.inputs, region.outputs))
            self._functions[name] = _Function(f"f{index}", operands, results)
        for function, region in zip(self._functions.values(), node.regions):
            self._function(region, node.attrs["captures"], function, is_asked=region is node.regions[0])
        entries = self._compile(*(f"enter_{function.name}" for function in self._functions.values()))
        self._enter = dict(zip(self._functions, entries))

    def run(self, name: str, operands: Sequence[Any], run: Recursion, depth: int) -> list[Any]:
        """The results of a function. depth: the calls around this one."""
        return self._enter[name](*operands, run, depth)

    def _function(self, region: Graph, captures: int, function: _Function, is_asked: bool) -> None:
        operands = [self._name(dtype) for dtype in function.operands]
        names = [each.text for each in operands]
        kept = names[len(names) - captures :]
        arguments = ", ".join([*names[: len(names) - captures], "run", "depth"])
        results = [self._name(dtype) for dtype in function.results]
        self._line(0, f"def enter_{function.name}({', '.join([*names, 'run', 'depth'])}):")
        for each in operands:
            if each.dtype is not None:
                self._line(1, f"{each.text} = {each.text}.item()")
        self._line(1, f"run.captures = {_tuple(kept)}")
        self._line(1, f"{_tuple([each.text for each in results])} = {function.name}({arguments})")
        self._line(1, f"return [{self._arrays(results)}]")

        self._line(0, f"def {function.name}({arguments}):")
        if kept:
            self._line(1, f"{_tuple(kept)} = run.captures")
        self._line(1, "tier_up, poll_interval = run.tier_up, run.loop_interval")
        if is_asked:
            self._line(1, "run.calls += 1")
            self._line(1, "if run.calls >= run.poll_interval or tier_up.polls_each_trip:")
            self._line(2, "run.calls = 0")
            self._line(2, f"finished = run.finish([{self._arrays(operands)}])")
            self._line(2, "if finished is not None:")
            self._received(results, "finished", 3)
            self._line(3, f"return {_tuple([each.text for each in results])}")
        outputs = self._region(region, operands, 1, 0)
        moved = self._moved(results, outputs)
        if moved:
            self._line(1, moved)
        self._line(1, f"return {_tuple([each.text for each in results])}")


def _tuple(texts: Sequence[str]) -> str:
    return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"


# What writes the nodes of an op, if it can; the others are expressions, or calls of their kernels.
_WRITERS: dict[str, Callable[[_Writer, Node, list[_Name], int], bool]] = {
    "strided_slice": _Writer._element,
    "row": _Writer._row,
    "array_write": _Writer._write,
    "assert": _Writer._check,
    "call": _Writer._call,
}


def _may_be_left_out(node: Node) -> bool:
    """Whether a node computes one number, and can't fail."""
    dtype = number(node.outputs[0].type) if node.op.is_elementwise and len(node.outputs) == 1 else None
    is_single = dtype is not None and all(getattr(v.type, "rank", 1) == 0 for v in node.inputs)
    return is_single and not node.op.checks_numbers(dtype)


def _has_plain_elements(type_: Any) -> bool:
    """Whether an element of such an array is a number as loops have it, Python's or NumPy's."""
    return type_.dtype.kind in "bif" and not type_.dtype.is_narrow


def _is_number(value: Value) -> bool:
    type_ = value.type
    return isinstance(type_, TensorType) and type_.rank == 0 and _has_plain_elements(type_)


def _is_big(value: Value) -> bool:
    return getattr(value.type, "rank", 1) != 0
