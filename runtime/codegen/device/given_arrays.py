"""Arrays that a kernel makes once, of a size that its host can compute: the host allocates them before the launch.

    def kernel(x):                            def kernel(x, given_a):
        n = x.shape[0]                            n = x.shape[0]
        if n == 0:                                if n == 0:
            return 1                                  return 1
        a = np.empty(n, np.float32)       →       a = given_a
        for i in range(n):                        for i in range(n):
            a[i] = x[i] * 2.0                         a[i] = x[i] * 2.0
        return a                                  return a

So threads need not wait for each other where an array is made, nothing has to be copied out of a heap, and a kernel
that makes no other arrays needs none. What the host runs is the part of the kernel that leads to the sizes:

    def plan(x):
        sizes = [0]
        n = x.shape[0]
        if n == 0:
            return sizes, None
        sizes[0] = max(n, 0)
        return sizes, ((sizes[0],),)

A size is computed where numbers, dimensions and earlier sizes say it; a test that needs the elements of an array is
taken for false, which may only allocate what the kernel doesn't come to.

What a kernel returns is known as well, if it ends in one place, but for such tests, and returns arguments and arrays
that it was given: their shapes stand behind the sizes. Nobody has to wait for the end of such a kernel, which can't
fail; numbers that it computes can be read later.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from runtime.kernel_ir import ir
from runtime.kernel_ir.print_python import expression
from runtime.kernel_ir.types import BOOL, INT64, Array, Scalar, Type

_FUNCTIONS = frozenset({"min", "max", "abs"})
# Whole numbers of the host's don't overflow.
_NUMBERS = SimpleNamespace(int64=int, bool_=bool)

Shapes = tuple[tuple[int, ...] | None, ...]


ZERO, UNKNOWN = -1, -2


@dataclass
class Given:
    """What a kernel's host knows of it.

    parameters   the name that an array has among the kernel's parameters, by the statement that made it
    elements     the types of these arrays, in the same order
    plan         says for a kernel's arguments how many elements they have, and the shapes of what it returns; None:
                 these aren't known
    returned     for each of its results the position of the array among all parameters, ZERO, or UNKNOWN; None: there
                 are several ways out, and the host doesn't know which
    """

    parameters: dict[ir.Statement, str] = field(default_factory=dict)
    elements: list[Scalar] = field(default_factory=list)
    plan: Callable[..., tuple[list[int], Shapes | None]] = lambda *arguments: ([], None)
    returned: tuple[int, ...] | None = None


def given_arrays(function: ir.Function, types: Sequence[Type]) -> Given:
    """Of a kernel, in the form that it has before it is in SPMD form."""
    found = Given()
    arrays = {name for name, type_ in zip(function.parameters, types) if isinstance(type_, Array)}
    known = {
        name for name, type_ in zip(function.parameters, types) if isinstance(type_, Scalar) and type_.kind in "ib"
    }
    # Where the memory of a variable comes from (a parameter's position), and its shape as text.
    memory = {name: (at, f"{name}.shape") for at, name in enumerate(function.parameters) if name in arrays}
    assignments = Counter(name for item in ir.walk(function.body) for name in ir.targets(item))
    names = ir.mentioned(function.body).union(function.parameters)
    sizes, product = _unused("sizes", names), _unused("product", names)
    lines: list[str] = []
    left = sum(isinstance(item, ir.Return) for item in ir.walk(function.body))  # ways out that aren't known yet
    for item in function.body:
        if isinstance(item, ir.Alloc) and isinstance(item.element, Scalar) and _is_known(item.size, known, arrays):
            name = _unused(f"given_{item.name}", names)
            number = len(found.elements)
            lines.append(f"{sizes}[{number}] = max({expression(item.size)}, 0)")
            memory[item.name] = len(function.parameters) + number, f"({sizes}[{number}],)"
            found.parameters[item] = name
            found.elements.append(item.element)
        elif isinstance(item, ir.Assign) and len(item.targets) == 1 and _is_known(item.value, known, arrays):
            lines.append(f"{item.targets[0]} = {expression(item.value)}")
            known.add(item.targets[0])
        elif isinstance(item, ir.If) and not item.orelse and _only_leaves(item.body):
            if _is_known(item.test, known, arrays):
                lines += [f"if {expression(item.test)}:", f"    return {sizes}, None"]
                left -= 1
        else:
            changed = ir.assigned([item])
            known -= changed
            arrays -= changed
            if isinstance(item, ir.Assign) and len(item.targets) == 1:
                source = _memory_of(item.value, memory, product)
                if source is not None:
                    memory[item.targets[0]] = source
    last = function.body[-1] if function.body else None
    shapes = "None"
    if left == 1 and isinstance(last, ir.Return):
        fixed = {
            name: where for name, where in memory.items() if assignments[name] == (name not in function.parameters)
        }
        values = [_returned(value, fixed, known, arrays, product) for value in last.values]
        found.returned = tuple(at for at, _ in values)
        shapes = f"({''.join(f'{shape}, ' for _, shape in values)})"
    head = [f"def plan({', '.join(function.parameters)}):", f"{sizes} = [0] * {len(found.elements)}"]
    text = "\n    ".join([*head, *lines, f"return {sizes}, {shapes}"])
    space: dict[str, Any] = {"np": _NUMBERS, product: math.prod}
    exec(compile(text, f"{__file__}: plan of {function.name}", "exec"), space)
    found.plan = space["plan"]
    return found


def _unused(name: str, names: set[str]) -> str:
    while name in names:
        name += "_"
    names.add(name)
    return name


def _memory_of(item: ir.Expr, memory: dict[str, tuple[int, str]], product: str) -> tuple[int, str] | None:
    """Whose memory an expression is, and its shape. product: what multiplies dimensions."""
    if isinstance(item, ir.Var):
        return memory.get(item.name)
    if isinstance(item, ir.Call) and item.function == "lib.flat" and isinstance(item.arguments[0], ir.Var):
        source = memory.get(item.arguments[0].name)
        return source and (source[0], f"({product}({source[1]}),)")
    return None


def _returned(
    item: ir.Expr, memory: dict[str, tuple[int, str]], known: set[str], arrays: set[str], product: str
) -> tuple[int, str]:
    """The same for what a kernel returns."""
    if isinstance(item, ir.Const) and item.type == INT64 and item.value == 0:
        return ZERO, "None"
    if isinstance(item, ir.Call) and item.function == "lib.shaped":
        dims, array = item.arguments
        source = _memory_of(array, memory, product)
        if source is None or not isinstance(dims, ir.Tuple) or not all(_is_known(d, known, arrays) for d in dims.items):
            return UNKNOWN, "None"
        return source[0], expression(dims)
    return _memory_of(item, memory, product) or (UNKNOWN, "None")


def _only_leaves(block: ir.Block) -> bool:
    return bool(block) and isinstance(block[-1], ir.Return) and not any(ir.assigned([item]) for item in block)


def _is_known(item: ir.Expr, known: set[str], arrays: set[str]) -> bool:
    """Whether a whole number, or a truth value, follows from known numbers and the shapes of arguments."""
    if isinstance(item, ir.Var):
        return item.name in known
    if isinstance(item, ir.Const):
        return item.type in (INT64, BOOL)
    if isinstance(item, (ir.Dim, ir.Size)):
        return isinstance(item.array, ir.Var) and item.array.name in arrays
    if isinstance(item, ir.Convert):
        return item.target == INT64 and _is_known(item.operand, known, arrays)  # others would wrap around
    if isinstance(item, ir.Call):
        return item.function in _FUNCTIONS and all(_is_known(each, known, arrays) for each in item.arguments)
    if isinstance(item, ir.Binary):
        return item.op in ("+", "-", "*", "//", "%") and all(
            _is_known(e, known, arrays) for e in (item.left, item.right)
        )
    if isinstance(item, (ir.Unary, ir.Compare, ir.Logic, ir.Select)):
        return all(_is_known(each, known, arrays) for each in ir.operands(item))
    return False
