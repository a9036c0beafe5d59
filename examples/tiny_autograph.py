"""This project's compiler in one file, to be read in an hour: Python's control flow, staged, differentiated, compiled.

It takes functions of numbers, with `if`, `while`, `for … in range(…)`, `break`, `continue` and `return`, and does with
them, in the same order, what `@ag.function` does with functions of tensors:

1. convert    the source is rewritten with gast: blocks become functions, `if` and `while` become calls of operators.
2. trace      the converted function runs once on symbolic values, which write a graph.
3. print      the graph becomes a Python function of plain loops, which numba compiles. For a gradient it keeps a tape.

`docs/tiny_autograph.md` walks through it. Run it to see each stage: `python examples/tiny_autograph.py`.
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
import textwrap
import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import gast
import numba

# ---- The graph -------------------------------------------------------------------------------------------------------
#     graph   ::= inputs, nodes, outputs                       a region may also read values of the graphs around it
#     node    ::= value = op(operands)                         op: a row of OPS
#               | values = cond(operand) {then} {orelse}       regions without inputs; their outputs are the node's
#               | values = while(operands) {test} {body}       regions whose inputs are the carries; body gives the next
#     operand ::= value | number of Python's

OPEN: list[Graph] = []  # the graphs that are being written, the innermost one last


def infix(op: str) -> tuple[Any, Any]:
    return lambda a, b: emit(op, [a, b])[0], lambda a, b: emit(op, [b, a])[0]  # as in a + b, and with __radd__


@dataclass(eq=False)
class Value:
    """What a node gives, or a graph takes. A function that computes with Values writes a graph."""

    name: str  # the printed name begins with it

    __add__, __radd__, __sub__, __rsub__ = *infix("add"), *infix("sub")
    __mul__, __rmul__, __truediv__, __rtruediv__ = *infix("mul"), *infix("div")
    __lt__, __gt__, __le__, __ge__ = *infix("lt"), *infix("le")

    def __neg__(self) -> Value:
        return -1 * self

    def __bool__(self) -> bool:
        raise TypeError("a truth value that is known only at run time was asked for where nothing is staged")


class Node(NamedTuple):
    op: str
    operands: list[Any]
    outputs: list[Value]
    regions: tuple[Graph, ...]


@dataclass(eq=False)
class Graph:  # a function, or a region of one
    inputs: list[Value]
    nodes: list[Node] = field(default_factory=list)
    outputs: Any = None  # a list of operands


def emit(op: str, operands: Iterable[Any], names: Iterable[str] = "v", *regions: Graph) -> list[Value]:
    """Adds a node to the open graph. Gives its results, which have these names."""
    node = Node(op, [*operands], [Value(name) for name in names], regions)
    OPEN[-1].nodes.append(node)
    return node.outputs


def region(function: Callable, names: Iterable[str] = ()) -> Graph:
    """The graph that a function of Values writes; what it returns are the outputs."""
    OPEN.append(graph := Graph([Value(name) for name in names]))
    try:
        graph.outputs = function(*graph.inputs)
    finally:
        OPEN.pop()
    return graph


# An op is a row: its result `y` as Python text, and the partial derivatives of `y` by the operands `a` and `b`.
OPS: dict[str, tuple[str, ...]] = {
    "add": ("{a} + {b}", "1.0", "1.0"),
    "sub": ("{a} - {b}", "1.0", "-1.0"),
    "mul": ("{a} * {b}", "{b}", "{a}"),
    "div": ("{a} / {b}", "1.0 / {b}", "-{y} / {b}"),
    "abs": ("abs({a})", "math.copysign(1.0, {a})"),
    "exp": ("math.exp({a})", "{y}"),
    "sin": ("math.sin({a})", "math.cos({a})"),
    "sqrt": ("math.sqrt({a})", "0.5 / {y}"),
    "lt": ("{a} < {b}",),
    "le": ("{a} <= {b}",),
    "eq": ("{a} == {b}",),
    "not": ("not {a}",),
}

# ---- 1. Conversion ---------------------------------------------------------------------------------------------------
ALLOWED = """FunctionDef arguments Assign AugAssign Expr Pass Return If For While Break Continue Name Constant Attribute
Tuple BinOp BoolOp UnaryOp Compare IfExp Call operator boolop unaryop cmpop expr_context""".split()
indent = functools.partial(textwrap.indent, prefix="    ")


@functools.cache
def convert(function: Any) -> Callable:
    """The converted function. It shares the original's closure cells and globals."""
    parameters = ", ".join(["ag__", *function.__code__.co_freevars])
    namespace: dict[str, Any] = {}
    exec(f"def factory({parameters}):\n{indent(to_code(function))}    return {function.__name__}", namespace)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()), ag__=types.CellType(OPERATORS))
    code = namespace["factory"](*cells).__code__
    closure = tuple(cells[name] for name in code.co_freevars)
    return types.FunctionType(code, function.__globals__, code.co_name, function.__defaults__, closure)


def to_code(function: Any) -> str:
    """The converted function's source."""
    lines, first = inspect.getsourcelines(function)
    (tree,) = gast.parse(textwrap.dedent("".join(lines))).body
    tree.decorator_list = []
    for node in gast.walk(tree):  # convert or refuse: nothing falls back silently
        staged = any(isinstance(node, getattr(gast, kind)) for kind in ALLOWED) and len(getattr(node, "ops", [0])) == 1
        staged &= not isinstance(node, (gast.For, gast.While)) or not node.orelse
        staged &= not isinstance(node, gast.Attribute) or isinstance(node.ctx, gast.Load)
        if isinstance(node, gast.For):
            staged &= gast.unparse(node.iter).startswith("range(") and len(node.iter.args) < 3
        if not staged:
            file, line = function.__code__.co_filename, first - 1 + getattr(node, "lineno", 1)
            raise SyntaxError(f"{file}:{line}: a {type(node).__name__} of this form can't be staged")
    parameters = [parameter.id for parameter in tree.args.args]
    body = "did_return, retval = False, 0.0\n" + block(tree.body, function)
    # An annotation makes a name a variable of this function, which blocks may declare `nonlocal`; it assigns nothing.
    local = "".join(f"{name}: 'local'\n" for name in assigned(body) if name not in parameters)
    return f"def {tree.name}({', '.join(parameters)}):\n{indent(local + body)}    return retval\n"


def block(statements: list[Any], around: Any) -> str:
    """Converts a block. No statement follows a jump: what follows an `if` with a jump moves into its branches. `break`
    and `return` set flags, which loops test. `around` is the loop whose trip ends with the block, or the function."""
    if not statements and isinstance(around, types.FunctionType):
        raise SyntaxError(f"{around.__code__.co_filename}: {around.__name__} must return a number on every path")
    if not statements or isinstance(statements[0], gast.Continue):
        return ""
    first, rest = statements[0], statements[1:]
    kinds = {type(node) for node in gast.walk(first)}
    match first:
        case gast.Return():
            return f"did_return, retval = True, {expression(first.value)}\n"
        case gast.Break():
            return f"did_break_{around.lineno} = True\n"
        case gast.If() if kinds & {gast.Return, gast.Break, gast.Continue}:
            return if_text(expression(first.test), block(first.body + rest, around), block(first.orelse + rest, around))
        case gast.If():
            text = if_text(expression(first.test), block(first.body, first), block(first.orelse, first))
            return text + block(rest, around)
        case gast.For(lineno=line):
            bounds = ["0", *map(expression, first.iter.args)][-2:]
            step = f"{first.target.id}, next_{line} = next_{line}, next_{line} + 1"
            (loop,) = gast.parse(f"while next_{line} < stop_{line}:\n    {step}").body
            loop.body, loop.lineno = loop.body + first.body, line
            return f"next_{line}, stop_{line} = {', '.join(bounds)}\n{block([loop, *rest], around)}"
        case gast.While(lineno=line):
            text, test = "", expression(first.test)
            trip, after = block(first.body, first), block(rest, around)
            if gast.Break in kinds:
                text = f"did_break_{line} = False\n"
                test = f"ag__.and_(ag__.not_(did_break_{line}), lambda: {test})"
            if gast.Return in kinds:
                test = f"ag__.and_(ag__.not_(did_return), lambda: {test})"
                after = if_text("ag__.not_(did_return)", after, "")
            text += f"def loop_test():\n    return {test}\ndef loop_body():\n{body_text(trip, trip)}"
            return f"{text}ag__.while_stmt(loop_test, loop_body, {assigned(trip)})\n{after}"
    return f"{expression(first)}\n{block(rest, around)}"


def if_text(test: str, then: str, orelse: str) -> str:
    functions = f"def if_body():\n{body_text(then, then + orelse)}def else_body():\n{body_text(orelse, then + orelse)}"
    return f"{functions}ag__.if_stmt({test}, if_body, else_body, {assigned(then + orelse)})\n"


def body_text(text: str, state: str) -> str:
    return indent((f"nonlocal {', '.join(assigned(state))}\n" if assigned(state) else "pass\n") + text)


def assigned(text: str) -> list[str]:
    """The variables that a text assigns."""
    return sorted({n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)})


def expression(node: Any) -> str:
    return gast.unparse(Expressions().visit(node)).strip()


class Expressions(gast.NodeTransformer):
    """What asks for truth values, and what calls, becomes a call of an operator."""

    def visit(self, node: Any) -> Any:
        self.generic_visit(node)
        match node:
            case gast.IfExp():
                parts = map(gast.unparse, (node.test, node.body, node.orelse))
                text = "ag__.if_exp({}, lambda: {}, lambda: {})".format(*parts)
            case gast.BoolOp():
                op = f"ag__.{type(node.op).__name__.lower()}_"
                text = functools.reduce(lambda a, b: f"{op}({a}, lambda: {b})", map(gast.unparse, node.values))
            case gast.UnaryOp(op=gast.Not()):
                text = f"ag__.not_({gast.unparse(node.operand)})"
            case gast.Compare(ops=[gast.Eq() | gast.NotEq() as op]):
                equal = f"ag__.eq({gast.unparse(node.left)}, {gast.unparse(node.comparators[0])})"
                text = equal if isinstance(op, gast.Eq) else f"ag__.not_({equal})"
            case gast.Call():
                text = f"ag__.converted({gast.unparse(node.func)})({', '.join(map(gast.unparse, node.args))})"
            case _:
                return node
        return gast.Name(text, gast.Load(), None, None)


# ---- 2. Tracing: the operators that converted code calls -------------------------------------------------------------
# Where a Python value decides, they do what Python does; where a Value decides, they write regions. A block's variables
# are closure cells, which they read and write; those without a value are empty.


class Variables:  # of these names, which a block declares `nonlocal`
    def __init__(self, block: Any, names: list[str]) -> None:
        cells = dict(zip(block.__code__.co_freevars, block.__closure__ or ()))
        self.cells = {name: cells[name] for name in names}

    def write(self, values: dict[str, Any]) -> None:
        for name, cell in self.cells.items():
            cell.cell_contents = values.get(name)
            if name not in values:
                del cell.cell_contents

    def read(self) -> dict[str, Any]:
        return {name: cell.cell_contents for name, cell in self.cells.items() if cell != types.CellType()}

    def after(self, values: dict[str, Any], block: Callable) -> dict[str, Any]:
        self.write(values)
        block()
        return self.read()


def if_stmt(test: Any, body: Callable, orelse: Callable, names: list[str]) -> None:
    """`if`. A variable that only one branch gives a value has none afterwards."""
    if not isinstance(test, Value):
        return (body if test else orelse)()
    variables = Variables(body, names)
    trace = functools.partial(variables.after, variables.read())
    branches = [region(functools.partial(trace, block)) for block in (body, orelse)]
    a, b = (branch.outputs for branch in branches)
    chosen = [name for name in a if name in b and a[name] is not b[name]]
    for branch in branches:
        branch.outputs = [branch.outputs[name] for name in chosen]
    results = zip(chosen, emit("cond", [test], chosen, *branches))
    return variables.write({name: a[name] for name in a if name in b} | dict(results))


def while_stmt(test: Callable, body: Callable, names: list[str]) -> None:
    """`while`. Trips that are decided while tracing are unrolled; what is left becomes one node."""
    while not isinstance(go := region(test).outputs, Value):
        if not go:
            return
        body()
    variables = Variables(body, names)
    initial = variables.read()

    def goes_on(*carries: Value) -> list[Any]:
        variables.write(dict(zip(initial, carries)))
        return [test()]

    def trip(*carries: Value) -> list[Any]:
        after = variables.after(dict(zip(initial, carries)), body)
        return [after[name] for name in initial]

    results = emit("while", initial.values(), initial, region(goes_on, initial), region(trip, initial))
    variables.write(dict(zip(initial, results)))


def if_exp(test: Any, body: Callable, orelse: Callable) -> Any:
    """`a if test else b`, `and` and `or`: only what is chosen is computed."""
    if not isinstance(test, Value):
        return body() if test else orelse()
    return emit("cond", [test], "v", region(lambda: [body()]), region(lambda: [orelse()]))[0]


def apply(op: str, function: Callable, *operands: Any) -> Any:
    """A node, if an operand is a Value; else what Python's function gives."""
    return emit(op, operands)[0] if any(isinstance(each, Value) for each in operands) else function(*operands)


def converted(function: Any) -> Any:
    """What is called in place of a function: those of the user's are converted, too."""
    if op := {abs: "abs", math.exp: "exp", math.sin: "sin", math.sqrt: "sqrt"}.get(function):
        return functools.partial(apply, op, function)
    return convert(function) if isinstance(function, types.FunctionType) else function


OPERATORS = types.SimpleNamespace(if_stmt=if_stmt, while_stmt=while_stmt, if_exp=if_exp, converted=converted)
OPERATORS.and_, OPERATORS.or_ = lambda a, b: if_exp(a, b, lambda: a), lambda a, b: if_exp(a, lambda: a, b)
OPERATORS.not_ = functools.partial(apply, "not", lambda a: not a)
OPERATORS.eq = functools.partial(apply, "eq", lambda a, b: a == b)


# ---- 3. Python text: what a graph means, how its gradient is computed, what numba compiles ---------------------------
@dataclass
class Printer:
    """Writes a graph as Python text. With a tape, each number `x` has a number `x_at` beside it: where its item is on
    the tape. The item of a result is the places of its two operands, each with the partial derivative by it. What
    doesn't depend on an argument is at 0."""

    has_tape: bool
    names: dict[Value, str] = field(default_factory=dict)

    def name(self, operand: Any) -> str:
        is_value = isinstance(operand, Value)
        return self.names.setdefault(operand, f"{operand.name}_{len(self.names)}") if is_value else repr(operand)

    def at(self, operand: Any) -> str:
        return f"{self.name(operand)}_at" if isinstance(operand, Value) else "0"

    def assign(self, targets: list[Value], operands: list[Any]) -> str:
        parts = (self.name, self.at) if self.has_tape else (self.name,)
        left, right = (", ".join(part(each) for each in side for part in parts) for side in (targets, operands))
        return f"{left} = {right}\n" if targets else "pass\n"

    def block(self, graph: Graph, targets: list[Value]) -> str:
        return indent(self.text(graph) + self.assign(targets, graph.outputs))

    def text(self, graph: Graph) -> str:
        return "".join(map(self.node, graph.nodes))

    def node(self, node: Node) -> str:
        if node.op == "cond":
            then, orelse = (self.block(part, node.outputs) for part in node.regions)
            return f"if {self.name(node.operands[0])}:\n{then}else:\n{orelse}"
        if node.op == "while":
            test, body = node.regions
            before = self.assign(node.outputs, node.operands)
            for carries in (test.inputs, body.inputs):  # they are the same variables
                self.names |= {carry: self.name(result) for carry, result in zip(carries, node.outputs)}
            go_on = indent(f"{self.text(test)}if not {self.name(test.outputs[0])}: break\n")
            return f"{before}while True:\n{go_on}{self.block(body, node.outputs)}"
        y, a, b = [*node.outputs, *node.operands, 0][:3]
        text, *partials = OPS[node.op]
        by_a, by_b = [*partials, "0.0", "0.0"][:2]
        item = (
            f"len(tape)\ntape.append(({self.at(a)}, float({by_a}), {self.at(b)}, float({by_b})))" if partials else "0"
        )
        text = f"{{y}} = {text}\n" + (f"{{y}}_at = {item}\n" if self.has_tape else "")
        return text.format(y=self.name(y), a=self.name(a), b=self.name(b))


def as_text(function: Any, has_tape: bool = False) -> str:
    """The function's graph as a Python function, which gives its value; with a tape, also a list of the derivatives."""
    graph = region(lambda *inputs: [convert(function)(*inputs)], inspect.signature(function).parameters)
    printer, (result,), count = Printer(has_tape), graph.outputs, len(graph.inputs)
    parameters = ", ".join(map(printer.name, graph.inputs))
    text, end = printer.text(graph), printer.name(result)
    if has_tape:
        places = [f"{printer.at(value)} = {place}\n" for place, value in enumerate(graph.inputs, 1)]
        text = f"tape = [(0, 0.0, 0, 0.0)] * {1 + count}\n{''.join(places)}{text}"
        end += f", walk_back(tape, {printer.at(result)}, {count})"
    return f"def {function.__name__}({parameters}):\n{indent(text)}    return {end}\n"


def walk_back(tape, at, count):
    """The derivatives, by each of `count` arguments, of the result whose item is at this place on the tape."""
    cotangents = [0.0] * len(tape)
    cotangents[at] = 1.0
    for place in range(len(tape) - 1, count, -1):
        a, by_a, b, by_b = tape[place]
        cotangents[a] += by_a * cotangents[place]
        cotangents[b] += by_b * cotangents[place]
    return cotangents[1 : 1 + count]


def compiled(function: Any, has_tape: bool = False, compiler: Callable = numba.njit) -> Callable:
    """The function as native code; with a tape it gives its value and the list of its derivatives by the arguments."""
    namespace = {"math": math, "inf": math.inf, "nan": math.nan, "walk_back": compiler(walk_back)}
    exec(as_text(function, has_tape), namespace)
    return compiler(namespace[function.__name__])


def root(a):  # the square root, by Newton's method
    x = a
    while abs(x * x - a) > 1e-12 * a:
        x = 0.5 * (x + a / x)
    return x


if __name__ == "__main__":
    print(to_code(root), as_text(root), as_text(root, has_tape=True), compiled(root, has_tape=True)(2.0), sep="\n")
