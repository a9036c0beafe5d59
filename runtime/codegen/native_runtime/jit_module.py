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

    # It runs for a moment between kernels; LLVM would take six times as long to make the best of it.
    addresses = target.link(machine_code("resident", code, level=0, codegen_level=0), names, {})
    for name, address in zip(names, addresses):
        llvm.add_symbol(name, address)
    return addresses
