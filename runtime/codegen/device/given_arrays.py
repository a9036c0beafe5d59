"""Arrays that a kernel makes once, and whose sizes the host can compute, are allocated before the launch.

    def kernel(x):                            def kernel(x, given_a):
        n = x.shape[0]                            n = x.shape[0]
        if n == 0:                                if n == 0:
            return 1                                  return 1
        a = np.empty(n, np.float32)       →       a = given_a
        for i in range(n):                        for i in range(n):
            a[i] = x[i] * 2.0                         a[i] = x[i] * 2.0
        return a                                  return a

Then threads needn't synchronise for an allocation, and no result has to be copied out of the heap; a kernel that makes
no other arrays needs no heap. The host runs the part of the kernel that computes the sizes:

    def plan(x):
        sizes = [0]
        n = x.shape[0]
        if n == 0:
            return sizes, None
        sizes[0] = max(n, 0)
        return sizes, ((sizes[0],),)

A size may depend on numbers, dimensions and earlier sizes. A test that depends on the elements of an array is assumed
to be false; at worst, an array is allocated that the kernel doesn't use.

If a kernel has a single exit, apart from such tests, and returns only arguments and given arrays, the host knows the
shapes of the results; they follow the sizes. If such a kernel can't fail, nobody has to wait for its end; numbers that
it computes can be read later.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from runtime.codegen.device.kernel import UNKNOWN, ZERO, Given
from runtime.kernel_ir import ir
from runtime.kernel_ir.analysis.uses import assignment_counts
from runtime.kernel_ir.functions import ROWS
from runtime.kernel_ir.print_python import expression
from runtime.kernel_ir.types import BOOL, INT64, Array, Scalar, Type

# Python integers don't overflow.
_NUMBERS = SimpleNamespace(int64=int, bool_=bool)


def given_arrays(function: ir.Function, types: Sequence[Type]) -> Given:
    """The given arrays of a kernel that isn't in SPMD form yet."""
    found = Given()
    arrays = {name for name, type_ in zip(function.parameters, types) if isinstance(type_, Array)}
    known = {
        name for name, type_ in zip(function.parameters, types) if isinstance(type_, Scalar) and type_.kind in "ib"
    }
    # By variable: the position of the parameter whose memory it has, and its shape as text.
    memory = {name: (at, f"{name}.shape") for at, name in enumerate(function.parameters) if name in arrays}
    assignments = assignment_counts(ir.walk(function.body))
    names = ir.mentioned(function.body).union(function.parameters)
    sizes, product = _unused("sizes", names), _unused("product", names)
    lines: list[str] = []
    # By known variable: the numbers among the parameters that it depends on. And those that the plan looks at.
    origins = {name: {name} for name in known}
    looked_at: set[str] = set()
    left = sum(isinstance(item, ir.Return) for item in ir.walk(function.body))  # exits that aren't known yet
    for item in function.body:
        if isinstance(item, ir.Alloc) and isinstance(item.element, Scalar) and is_known(item.size, known, arrays):
            name = _unused(f"given_{item.name}", names)
            number = len(found.elements)
            lines.append(f"{sizes}[{number}] = max({expression(item.size)}, 0)")
            looked_at |= _origins_of(item.size, origins)
            memory[item.name] = len(function.parameters) + number, f"({sizes}[{number}],)"
            found.parameters[item] = ir.array_variable(name, item.element)
            found.elements.append(item.element)
        elif isinstance(item, ir.Assign) and len(item.targets) == 1 and is_known(item.value, known, arrays):
            lines.append(f"{item.targets[0]} = {expression(item.value)}")
            origins[item.targets[0]] = _origins_of(item.value, origins)
            known.add(item.targets[0])
        elif isinstance(item, ir.If) and not item.orelse and _only_leaves(item.body):
            if is_known(item.test, known, arrays):
                lines += [f"if {expression(item.test)}:", f"    return {sizes}, None"]
                looked_at |= _origins_of(item.test, origins)
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
        for (at, _), value in zip(values, last.values):
            looked_at |= _origins_of(value, origins) if at != UNKNOWN else set()
    head = [f"def plan({', '.join(function.parameters)}):", f"{sizes} = [0] * {len(found.elements)}"]
    text = "\n    ".join([*head, *lines, f"return {sizes}, {shapes}"])
    space: dict[str, Any] = {"np": _NUMBERS, product: math.prod}
    exec(compile(text, f"{__file__}: plan of {function.name}", "exec"), space)
    found.plan = space["plan"]
    found.numbers = frozenset(at for at, name in enumerate(function.parameters) if name in looked_at)
    return found


def _origins_of(item: ir.Expr, origins: Mapping[str, set[str]]) -> set[str]:
    """The numbers among the parameters that an expression depends on."""
    return {origin for name in ir.variables(item) for origin in origins.get(name, ())}


def _unused(name: str, names: set[str]) -> str:
    while name in names:
        name += "_"
    names.add(name)
    return name


def _memory_of(item: ir.Expr, memory: dict[str, tuple[int, str]], product: str) -> tuple[int, str] | None:
    """The parameter whose memory an expression has, and its shape. product: multiplies dimensions."""
    if isinstance(item, ir.Var):
        return memory.get(item.name)
    if isinstance(item, ir.Call) and item.function == "lib.flat" and isinstance(item.arguments[0], ir.Var):
        source = memory.get(item.arguments[0].name)
        return source and (source[0], f"({product}({source[1]}),)")
    return None


def _returned(
    item: ir.Expr, memory: dict[str, tuple[int, str]], known: set[str], arrays: set[str], product: str
) -> tuple[int, str]:
    """The parameter whose memory an array that the kernel returns has, and its shape; `ZERO` and "None" for the
    constant 0."""
    if isinstance(item, ir.Const) and item.type == INT64 and item.value == 0:
        return ZERO, "None"
    if isinstance(item, ir.Call) and item.function == "lib.shaped":
        dims, array = item.arguments
        source = _memory_of(array, memory, product)
        if source is None or not isinstance(dims, ir.Tuple) or not all(is_known(d, known, arrays) for d in dims.items):
            return UNKNOWN, "None"
        return source[0], expression(dims)
    return _memory_of(item, memory, product) or (UNKNOWN, "None")


def _only_leaves(block: ir.Block) -> bool:
    return bool(block) and isinstance(block[-1], ir.Return) and not any(ir.assigned([item]) for item in block)


def is_known(item: ir.Expr, known: Container[str], arrays: Container[str]) -> bool:
    """Whether an integer or a truth value can be computed from known numbers and the shapes of arguments."""
    if isinstance(item, ir.Var):
        return item.name in known
    if isinstance(item, ir.Const):
        return item.type in (INT64, BOOL)
    if isinstance(item, (ir.Dim, ir.Size)):
        return isinstance(item.array, ir.Var) and item.array.name in arrays
    if isinstance(item, ir.Convert):
        return item.target == INT64 and is_known(item.operand, known, arrays)  # others would wrap around
    if isinstance(item, ir.Call):
        is_python = item.function in ROWS and "." not in item.function
        return is_python and all(is_known(each, known, arrays) for each in item.arguments)
    if isinstance(item, ir.Binary):
        return item.op in ("+", "-", "*", "//", "%") and all(
            is_known(e, known, arrays) for e in (item.left, item.right)
        )
    if isinstance(item, (ir.Unary, ir.Compare, ir.Logic, ir.Select)):
        return all(is_known(each, known, arrays) for each in ir.operands(item))
    return False


def evaluated(item: ir.Expr, numbers: Mapping[str, int]) -> int | None:
    """The value of an integer or boolean expression, given the values of its variables; None if it divides by 0."""
    try:
        found: int = eval(expression(item), {"np": _NUMBERS, **numbers})
    except ZeroDivisionError:
        return None
    return found
