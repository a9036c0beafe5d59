"""Machine code that launches a kernel on a GPU in one call, during which other Python threads run.

It reads a `LaunchCall` (`runtime/gpu/interface.py`), which has the addresses of the driver's functions: this code knows
their types only.
"""

from __future__ import annotations

import ctypes
import functools

from runtime.codegen.native_runtime import jit_module
from runtime.gpu.interface import LAUNCH_FAILED, NOT_READY, PUSH_FAILED, QUERY_FAILED, LaunchCall
from runtime.llvm.function_builder import FunctionBuilder, defined

_NAME = "autograph_gpu_launch"


def _launch(f: FunctionBuilder) -> str:
    """The status of a launch: 0, a failure's kind and the driver's number of it, or `NOT_READY` for a launch that goes
    on."""
    given = {
        name: f.field("ptr" if type_ is ctypes.c_void_p else "i64", "%call", getattr(LaunchCall, name).offset)
        for name, type_, *_ in LaunchCall._fields_
    }
    popped = f.stack("ptr")
    pushed = f.call("i32", given["push"], f"ptr {given['context']}")
    with f.if_then(f.binary("icmp ne", pushed, 0, "i32")):
        f.end(f"ret i64 {_failure(f, pushed, PUSH_FAILED)}")
    leave, wait = f.label(), f.label()
    result = f.stack("i64")
    f.store("i64", 0, result)
    f.jump_if(f.is_null(given["kernel"]), wait)
    grid, block = (f.convert("trunc", "i64", given[name], "i32") for name in ("blocks", "block_size"))
    shape = [f"i32 {size}" for size in (grid, 1, 1, block, 1, 1, 0)]
    launch = [f"ptr {given['kernel']}", *shape, "ptr null", f"ptr {given['arguments']}"]
    status = f.either(
        f.binary("icmp ne", given["together"], 0), "i32",
        lambda: f.call("i32", given["launch_together"], *launch),
        lambda: f.call("i32", given["launch"], *launch, "ptr null"),
    )  # fmt: skip
    f.jump_if(f.binary("icmp eq", status, 0, "i32"), wait)
    f.store("i64", _failure(f, status, LAUNCH_FAILED), result)
    f.jump(leave)
    f.begin(wait)
    with f.loop(0, given["asks"]):
        answer = f.call("i32", given["query"], "ptr null")
        is_done = f.binary("icmp eq", answer, 0, "i32")
        f.store("i64", f.select(is_done, 0, _failure(f, answer, QUERY_FAILED)), result)
        f.jump_unless(f.binary("icmp eq", answer, NOT_READY, "i32"), leave)
    f.block(leave)
    f.call("i32", given["pop"], f"ptr {popped}")
    return f.load("i64", result)


def _failure(f: FunctionBuilder, number: str, kind: int) -> str:
    return f.binary("or", f.convert("zext", "i32", number, "i64"), kind << 32)


def _text() -> str:
    return defined(f"i64 @{_NAME}(ptr %call)", _launch)


@functools.cache
def address() -> int:
    """Where the function is; it stays in the process."""
    return jit_module.link(_text(), _NAME)[0]
