"""Function merging: of parts that differ only in names, one is kept and runs for all of them.

    def part(first, last, a):                     def part(first, last, a):
        for i in range(first, last):                  for i in range(first, last):
            a[i] = lib.tanh(a[i])                         a[i] = lib.tanh(a[i])

    def part_1(first, last, b):             →     lib.in_threads(part, threads, n, (a,))
        for j in range(first, last):              lib.in_threads(part, threads, m, (b,))
            b[j] = lib.tanh(b[j])

    lib.in_threads(part, threads, n, (a,))
    lib.in_threads(part_1, threads, m, (b,))

The unrolled layers of a network give a part each, and LLVM spends more time on each of these loops, after vectorising
it, than on the rest of the kernel. Parts whose variables have different types aren't merged.
"""

from __future__ import annotations

from runtime.codegen.passes.kernel import Kernel
from runtime.kernel_ir import ir
from runtime.kernel_ir.print_python import function as printed
from runtime.kernel_ir.types import Type

_Form = tuple[str, tuple[tuple[str, Type | None], ...]]


def run(kernel: Kernel) -> None:
    """Merges the parts of a kernel."""
    parts = [function for function in kernel.functions if function.kind == "part"]
    if len(parts) < 2:
        return
    first: dict[_Form, tuple[str, tuple[str, ...]]] = {}  # canonical form -> the part that is kept, its parameters
    merged: dict[
        str, tuple[str, list[int]]
    ] = {}  # a part that is removed -> the one that is kept, and for each parameter
    # of that one the position of the parameter in the removed part
    for part in parts:
        form, parameters = _canonical(part)
        kept = first.setdefault(form, (part.name, parameters))
        if kept[0] != part.name:
            merged[part.name] = kept[0], [parameters.index(name) for name in kept[1]]
    if not merged:
        return
    kernel.functions[:] = [function for function in kernel.functions if function.name not in merged]
    for function in kernel.functions:
        for item in ir.walk(function.body):
            if isinstance(item, ir.Run) and item.call.function == "lib.in_threads":
                _redirect(item, merged)


def _redirect(item: ir.Run, merged: dict[str, tuple[str, list[int]]]) -> None:
    called, threads, total, given = item.call.arguments
    assert isinstance(called, ir.Var)
    assert isinstance(given, ir.Tuple)
    if called.name in merged:
        name, order = merged[called.name]
        arguments = ir.Tuple(tuple(given.items[position] for position in order))
        item.call = ir.call("lib.in_threads", ir.Var(name), threads, total, arguments)


def _canonical(part: ir.Function) -> tuple[_Form, tuple[str, ...]]:
    """A part's text with its variables numbered in order of occurrence, and their types; and the new names of its
    parameters after the bounds, in order. (Parameters are sorted by name, so their order alone means nothing.)"""
    bounds, given = part.parameters[:2], part.parameters[2:]
    names = {name: name for name in bounds}
    own = {*given, *ir.assigned(part.body)}  # any other variable is a function

    def renamed(name: str) -> str:
        return names.setdefault(name, f"v{len(names)}") if name in own else name

    body = ir.copied(part.body)
    types: dict[str, Type | None] = {}

    def change(each: ir.Expr) -> ir.Expr | None:
        if not isinstance(each, ir.Var):
            return None
        variable = ir.Var(renamed(each.name), each.type)
        types[variable.name] = each.type
        return variable

    ir.map_block(body, change)
    for item in ir.walk(body):
        ir.rename_targets(item, renamed)
    parameters = tuple(renamed(name) for name in given)
    text = printed(ir.Function("part", (*bounds, *sorted(parameters)), body, "part"))
    return (text, tuple(sorted(types.items(), key=lambda each: each[0]))), parameters
