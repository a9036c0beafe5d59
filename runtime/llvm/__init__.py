"""Kernel IR to machine code through LLVM, without numba's front end.

numba takes about a second to import and to start, and 3 ms for each operation; this folder infers types and translates
in about a hundredth of that and leaves the rest to LLVM, by way of llvmlite, which is numba's own back end. What it
can't translate it refuses with `Unsupported`, and numba compiles the kernel.

    infer.py        the type of each expression and variable in a function
    calls.py        what `np.`, `math.` and `lib.` functions take and give, and their instructions
    arithmetic.py   operators and conversions as instructions
    function_text.py   a function being written: instructions, blocks, places on the stack
    writer.py       a function of a kernel being written: variables, statuses
    expressions.py  expressions as instructions
    statements.py   statements as instructions
    optimize/jump_threading.py         loops that a flag ends are left at once
    optimize/outer_loop_plan.py        loops whose trips can run side by side, in the lanes of vectors
    optimize/outer_loop_vectorize.py   those loops as instructions
    optimize/version_select.py         whether they are faster in lanes, measured as they run
    optimize/divide_by_newton.py       divisions by multiplication, where a loop would wait for the divider
    memory.py       arrays: allocation and counting of references
    threads.py      parts of a nest on threads of their own
    wrapper.py      what Python calls: arguments from objects, results to objects
    program.py      a kernel's functions and those of the library that they call, as one LLVM module
    target.py       optimising, machine code, linking
"""

from runtime.kernel_ir.types import Unsupported

__all__ = ["Unsupported"]
