"""Machine code that stays until the process ends, and that kernels find by the names of its functions."""

from __future__ import annotations


def link(code: str, *names: str) -> list[int]:
    """Compiles LLVM code, makes its functions `names` known to whatever is linked from then on; their addresses.

    The code is never taken out of memory: a thread may be in it, or an array may need it to be freed.
    """
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(code)
    module.verify()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=2)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    addresses = [int(engine.get_function_address(name)) for name in names]
    engine.detach()
    for name, address in zip(names, addresses):
        llvm.add_symbol(name, address)
    return addresses
