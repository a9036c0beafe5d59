"""Kernel IR to machine code through LLVM, without numba's front end.

numba takes about a second to import and start, and 3 ms for each operation. This folder translates kernel IR in about a
hundredth of that and leaves the rest to LLVM, through llvmlite, which numba uses as well. It refuses a kernel that it
can't translate with `Unsupported`; numba compiles that one.

    infer.py            types in library functions, and in kernels that are known as text
    calls.py            instructions of `np.`, `math.` and `lib.` functions
    arithmetic.py       instructions of operators and conversions
    expressions.py      instructions of expressions
    statements.py       instructions of statements
    function_builder.py writes functions: instructions, blocks, loops, LLVM's intrinsics
    writer.py           the same for functions of kernels: variables, statuses
    layouts.py          where Python's and NumPy's objects have their fields, found by looking at live objects
    python_objects.py   Python's objects: reading and making them, functions of the C APIs
    memory.py           arrays: allocation and reference counts
    threads.py          calls of parallel loops
    wrapper.py          the function that Python calls: arguments from objects, results to objects
    program.py          the module of a kernel and the library functions that it calls
    target.py           optimisation, machine code, linking
    device*.py          the same for kernels in SPMD form, on GPUs
    optimize            what LLVM doesn't do by itself: outer-loop vectorisation, jump threading, division by Newton's
                        method
"""

from runtime.kernel_ir.types import Unsupported

__all__ = ["Unsupported"]
