"""Machine code that stays loaded until the process ends; kernels are linked with its functions by their names."""

from __future__ import annotations

from collections.abc import Callable

from runtime.codegen.cache import kernel_cache
from runtime.llvm.ctrl_c import interrupts_deferred


@interrupts_deferred()
def machine_code(
    stem: str, text: str | Callable[[], str], level: int = 2, key: str = "", codegen_level: int = 2
) -> bytes:
    """The object file of LLVM code: from the kernel cache, or compiled at these levels (`target.machine_code`) and
    cached. Where the text takes long to build, `text` is a function that builds it, and `key` states all that it
    depends on."""
    from runtime.llvm import target

    named = key if callable(text) else text
    name = f"{stem}_{kernel_cache.digest((named + kernel_cache.platform_key()).encode())[:24]}"
    found = kernel_cache.read_code(name)
    if found is None:
        found = target.machine_code(text() if callable(text) else text, (), level, codegen_level=codegen_level)
        kernel_cache.write_code(name, found)
    return found


@interrupts_deferred()
def link(code: str, *names: str) -> list[int]:
    """Loads LLVM code into the process and defines its functions `names` as symbols for later linking; their addresses.

    The code is never unloaded: a thread may be running it, or an array may need it to be freed.
    """
    import llvmlite.binding as llvm

    from runtime.llvm import target

    kept = target.available()
    # It runs for a moment between kernels; LLVM would take six times as long to make the best of it.
    addresses = (
        target.link(machine_code("resident", code, level=0, codegen_level=0), names, {})
        if kept
        else _compiled(code, names)
    )
    for name, address in zip(names, addresses):
        llvm.add_symbol(name, address)
    return addresses


def _compiled(code: str, names: tuple[str, ...]) -> list[int]:
    """The same by MCJIT, on machines where only numba compiles kernels."""
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
    return addresses
