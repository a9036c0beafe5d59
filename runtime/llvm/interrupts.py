"""The poll for Ctrl-C: a call of Python's, under the interpreter lock."""

from __future__ import annotations

from runtime.llvm.function_builder import FunctionBuilder, defined
from runtime.llvm.python_objects import functions


def _interrupted(f: FunctionBuilder) -> str:
    state = f.call("i32", "@PyGILState_Ensure")
    occurred = f.call("i32", "@PyOS_InterruptOccurred")
    f.run("@PyGILState_Release", f"i32 {state}")
    return f.binary("icmp ne", occurred, 0, "i32")


SUPPORT = "\n".join([
    functions("PyGILState_Ensure", "PyGILState_Release", "PyOS_InterruptOccurred"),
    defined("internal i1 @interrupted() noinline cold nounwind", _interrupted),
])  # fmt: skip
