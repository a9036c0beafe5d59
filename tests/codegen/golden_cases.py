"""Golden cases of kernels: `tests/golden/kernels` by family of ops, `tests/golden/kernel_passes` by pass, and
`tests/golden/device_passes` by pass of those for GPUs.

A case of the first is a program with a function `f`, whose annotations give the arguments: `x: float32[None, 4]` is a
matrix of any number of rows of 4, `n: int32` a number. `# forward` or `# backward` as its first line asks for that part
of its gradient.

A case of the others is such a program too, or a kernel `def kernel(...)` as lowering leaves it. What is expected is the
kernel after the pass, with the lines that go marked with - and those that come with +.
"""

from __future__ import annotations

import itertools
import linecache
import re
from typing import Any

import autograph as ag
from runtime.codegen.device import kernel as device_kernel
from runtime.codegen.device import pipeline as device_pipeline
from runtime.codegen.kernel.names import Names
from runtime.codegen.kernel.scalars import HEAD
from runtime.codegen.passes.kernel import Kernel
from runtime.codegen.passes.pipeline import PASSES
from runtime.engine.stages import marked
from runtime.kernel_ir import ir
from runtime.kernel_ir.parse_python import parse_functions
from runtime.kernel_ir.print_python import function as printed
from runtime.kernel_ir.verify import verify
from tests.convert.golden import FOLDER, Case, read

KERNELS, KERNEL_PASSES, DEVICE_PASSES = (FOLDER / name for name in ("kernels", "kernel_passes", "device_passes"))
UNCHANGED = "# the pass changes nothing"
_numbers = itertools.count()


class Spec:
    """A type in an annotation: `float32`, or `float32[None, 4]`."""

    def __init__(self, dtype: Any, shape: tuple[int | None, ...] = ()) -> None:
        self.spec = ag.TensorSpec(list(shape), dtype)

    def __getitem__(self, shape: Any) -> Spec:
        return Spec(self.spec.dtype, shape if isinstance(shape, tuple) else (shape,))


def pass_of(case: Case) -> str:
    """The name of the pass that a case is for: that of its file."""
    passes = device_pipeline.PASSES if case.path.parent == DEVICE_PASSES else PASSES
    files = {re.sub(r"\W", "_", name): name for name, _ in passes}
    assert case.path.stem in files, f"{case.path.name} should be named after a pass: {', '.join(files)}"
    return files[case.path.stem]


def cases_in(folder: Any) -> list[Case]:
    return [case for path in sorted(folder.glob("*.test")) for case in read(path)]


def concrete(source: str) -> tuple[Any, str | None]:
    """The traced function of a case, and the part of its gradient that it asks for."""
    # Conversion reads source through linecache; a name of its own for each case keeps their lines apart.
    filename = f"<golden {next(_numbers)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    names = ("float16", "bfloat16", "float32", "float64", "int32", "int64", "bool")
    space: dict[str, Any] = {"ag": ag, **{name: Spec(getattr(ag, name)) for name in names}}
    exec(compile(source, filename, "exec", dont_inherit=True), space)
    specs = [each.spec for each in space["f"].__annotations__.values()]
    first = source.partition("\n")[0]
    gradient = first[2:] if first in ("# forward", "# backward") else None
    return ag.function(space["f"]).get_concrete_function(*specs), gradient


def kernel_text(source: str) -> str:
    """The kernels of a case, without what they import."""
    function, gradient = concrete(source)
    return function.as_text("kernel", gradient).replace(f"{HEAD}\n\n", "") + "\n"


def pass_text(name: str, source: str) -> str:
    """What a pass changes in the kernel of a case."""
    for_device = name in dict(device_pipeline.PASSES)
    if not source.startswith("def kernel("):
        function, gradient = concrete(source)
        text = function.as_text("device-passes" if for_device else "kernel-passes", gradient)
        changes = text.partition("# the kernel\n")[0].split("# after ")
        own = [text.partition("\n")[2] for text in changes if text.partition("\n")[0] == name]
        return (own[0].strip("\n") if own else UNCHANGED) + "\n"
    if for_device:
        kernel = device_kernel.Kernel(parse_functions(source), [], 0)
        before = device_kernel.printed(kernel)
        dict(device_pipeline.PASSES)[name](kernel)
        verify(kernel.functions, stage=name, typed=False)
        after = device_kernel.printed(kernel)
    else:
        lowered = kernel_of(source)
        before = _printed(lowered)
        dict(PASSES)[name](lowered)
        given = {name: {*known, *lowered.starts[name]} for name, known in lowered.given.items()}
        verify(lowered.functions, len(lowered.sites), name, given, typed=False)
        after = _printed(lowered)
    return (UNCHANGED if before == after else marked(before, after)) + "\n"


def _printed(kernel: Kernel) -> str:
    return "\n\n\n".join(printed(each) for each in kernel.functions)


def kernel_of(text: str) -> Kernel:
    """A kernel for the passes, with what lowering would say of it: loops `for` over arrays are nests, loops `while` are
    the program's, and every buffer that the kernel allocates is its own."""
    functions = parse_functions(text)
    (kernel,) = functions
    names = Names()
    for name in sorted(ir.mentioned(kernel.body) | {*kernel.parameters}):
        names.fresh(name)
    own = {item.name for item in ir.walk(kernel.body) if isinstance(item, ir.Alloc)}
    _describe(kernel.body, {*kernel.parameters}, own, inside=False)
    given = {kernel.name: {*kernel.parameters}}
    return Kernel(functions, {kernel.name: {}}, given, names, own, set(), [], [])


def _describe(block: ir.Block, given: set[str], own: set[str], inside: bool) -> None:
    given = set(given)
    for item in block:
        if isinstance(item, ir.For):
            item.nest = True
        elif isinstance(item, ir.While):
            _describe(item.body, given, own, inside=True)
            handed = {
                each.targets[0]
                for each in item.body
                if isinstance(each, ir.Assign) and isinstance(each.value, ir.Var) and each.value.name in own
            }
            cost = 1 + sum(1 for _ in ir.walk(item.body))
            item.loop = ir.Loop(cost, None, inside, dict.fromkeys(sorted(handed & given), False), set(given))
            item.loop.counter = _counter(item)
        elif isinstance(item, ir.If):
            for inner in ir.blocks(item):
                _describe(inner, given, own, inside)
        given |= {*ir.targets(item)}


def _counter(loop: ir.While) -> ir.Induction | None:
    """The variable of `while i < n:` whose body ends with `i = i + 1`."""
    test, last = loop.test, loop.body[-1]
    if not isinstance(test, ir.Compare) or test.op != "<" or not isinstance(test.left, ir.Var):
        return None
    if not isinstance(last, ir.Assign) or last.targets != (test.left.name,) or last.value != test.left + 1:
        return None
    most = int(test.right.value) if isinstance(test.right, ir.Const) else 1 << 31
    return ir.Induction(test.left, test.right, ir.ONE, True, 1, most, None)
