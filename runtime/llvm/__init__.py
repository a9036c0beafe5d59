"""Kernel text to machine code through LLVM, without numba's front end.

Kernels are printed in a small part of Python (see `infer.py` for its grammar). numba takes about a second to import and
to start, and 3 ms for each operation; this room types and translates the same text in about a hundredth of that and
leaves the rest to LLVM, by way of llvmlite, which is numba's own back end. What it doesn't know it refuses with
`Unsupported`, and numba compiles the kernel.

    parsing.py      text as syntax trees
    types.py        the types of values, and how they meet
    infer.py        what type each expression and variable of a function has
    calls.py        what `np.`, `math.` and `lib.` functions take, give and print
    arithmetic.py   operators and conversions as instructions
    writer.py       a function being written: blocks, temporaries, variables
    expressions.py  expressions as instructions
    statements.py   statements, returns, loops
    optimize/jump_threading.py         loops that a flag ends leave at once
    optimize/outer_loop_plan.py        loops whose trips can run side by side, in the lanes of vectors
    optimize/outer_loop_vectorize.py   those loops as instructions
    optimize/version_select.py         whether they are faster in lanes, found out as they run
    memory.py       arrays: allocation and counting of references
    threads.py      parts of a nest on threads of their own
    wrapper.py      what Python calls: arguments from objects, results to objects
    program.py      a kernel's text and the library's functions, as one LLVM module
    target.py       optimising, machine code, linking
"""

from runtime.kernel_ir.types import Unsupported

__all__ = ["Unsupported"]
