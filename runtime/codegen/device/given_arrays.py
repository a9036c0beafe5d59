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

    def sizes(x):
        found = [0]
        n = x.shape[0]
        if n == 0:
            return found
        found[0] = n
        return found

A size is computed where numbers, dimensions and earlier sizes say it; a test that needs the elements of an array is
taken for false, which may only allocate what the kernel doesn't come to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from runtime.kernel_ir import ir
from runtime.kernel_ir.print_python import expression
from runtime.kernel_ir.types import INT64, Array, Scalar, Type

_FUNCTIONS = frozenset({"min", "max", "abs"})


@dataclass
class Given:
    """parameters: the name that an array has among the kernel's parameters, by the statement that made it. elements:
    their types, in the same order. sizes: says for a kernel's arguments how many elements they have."""

    parameters: dict[ir.Statement, str] = field(default_factory=dict)
    elements: list[Scalar] = field(default_factory=list)
    sizes: Callable[..., list[int]] = lambda *arguments: []


def given_arrays(function: ir.Function, types: Sequence[Type]) -> Given:
    """The arrays of a kernel, in the form that it has before it is in SPMD form, which its host can make."""
    found = Given()
    arrays = {name for name, type_ in zip(function.parameters, types) if isinstance(type_, Array)}
    known = {
        name for name, type_ in zip(function.parameters, types) if isinstance(type_, Scalar) and type_.kind in "ib"
    }
    names = ir.mentioned(function.body).union(function.parameters)
    lines: list[str] = []
    for item in function.body:
        if isinstance(item, ir.Alloc) and isinstance(item.element, Scalar) and _is_known(item.size, known, arrays):
            name = f"given_{item.name}"
            while name in names:
                name += "_"
            names.add(name)
            lines.append(f"found[{len(found.elements)}] = {expression(item.size)}")
            found.parameters[item] = name
            found.elements.append(item.element)
        elif isinstance(item, ir.Assign) and len(item.targets) == 1 and _is_known(item.value, known, arrays):
            lines.append(f"{item.targets[0]} = {expression(item.value)}")
            known.add(item.targets[0])
        elif isinstance(item, ir.If) and not item.orelse and _only_leaves(item.body):
            if _is_known(item.test, known, arrays):
                lines += [f"if {expression(item.test)}:", "    return found"]
        else:
            changed = ir.assigned([item])
            known -= changed
            arrays -= changed
    if found.elements:
        text = "\n    ".join([f"def sizes({', '.join(function.parameters)}):", *lines, "return found"])
        text = text.replace("\n", f"\n    found = [0] * {len(found.elements)}\n", 1)
        space: dict[str, Any] = {"np": np}
        exec(compile(text, f"{__file__}: sizes of {function.name}", "exec"), space)
        found.sizes = space["sizes"]
    return found


def _only_leaves(block: ir.Block) -> bool:
    return bool(block) and isinstance(block[-1], ir.Return) and not any(ir.assigned([item]) for item in block)


def _is_known(item: ir.Expr, known: set[str], arrays: set[str]) -> bool:
    """Whether a whole number, or a truth value, follows from known numbers and the shapes of arguments."""
    if isinstance(item, ir.Var):
        return item.name in known
    if isinstance(item, ir.Const):
        return item.type.kind in "ib"
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
