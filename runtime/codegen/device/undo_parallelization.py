"""The parts of nests that the processor's threads run (`passes/parallelize.py`) become loops again, which all threads
of a GPU share.

    def kernel_part(first, last, number, x, a):      def kernel(x):
        for i in range(first, last):                     …
            a[i] = x[i] * 2.0                      →     for i in range(0, n):
                                                             a[i] = x[i] * 2.0
    def kernel(x):
        …
        lib.in_threads(kernel_part, 1, n, (x, a))
"""

from __future__ import annotations

from runtime.codegen.device.kernel import Kernel
from runtime.kernel_ir import ir


def run(kernel: Kernel) -> None:
    parts = {function.name: function for function in kernel.functions if function.kind == "part"}
    if not parts:
        return
    kernel.functions = [function for function in kernel.functions if function.kind != "part"]
    for function in kernel.functions:
        for block in ir.walk_blocks(function.body):
            for position, item in enumerate(block):
                if isinstance(item, ir.Run) and item.call.function == "lib.in_threads":
                    name, _, size, _ = item.call.arguments
                    assert isinstance(name, ir.Var)
                    (loop,) = parts[name.name].body
                    assert isinstance(loop, ir.For)
                    block[position] = ir.For(loop.index, ir.ZERO, size, ir.ONE, ir.copied(loop.body), nest=True)
