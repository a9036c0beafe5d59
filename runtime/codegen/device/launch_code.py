"""Machine code that launches a kernel on a GPU in one call, during which other Python threads run.

It reads a `LaunchCall` (`runtime/gpu/interface.py`), which has the addresses of the driver's functions: this code knows
their types only.
"""

from __future__ import annotations

import ctypes
import functools

from runtime.codegen.native_runtime import jit_module
from runtime.gpu.interface import LAUNCH_FAILED, NOT_READY, PUSH_FAILED, QUERY_FAILED, LaunchCall

_NAME = "autograph_gpu_launch"


def _text() -> str:
    loads = []
    for name, type_, *_ in LaunchCall._fields_:
        loads.append(f"  %p.{name} = getelementptr i8, ptr %call, i64 {getattr(LaunchCall, name).offset}")
        loads.append(f"  %{name} = load {'ptr' if type_ is ctypes.c_void_p else 'i64'}, ptr %p.{name}")
    sizes = "i32 %grid, i32 1, i32 1, i32 %block, i32 1, i32 1, i32 0, ptr null, ptr %arguments"
    fields = "\n".join(loads)
    return f"""
define i64 @{_NAME}(ptr %call) {{
  %popped = alloca ptr
{fields}
  %grid = trunc i64 %blocks to i32
  %block = trunc i64 %block_size to i32
  %pushed = call i32 %push(ptr %context)
  %entered = icmp eq i32 %pushed, 0
  br i1 %entered, label %choose, label %refused
refused:
  %why = zext i32 %pushed to i64
  %outside = or i64 %why, {PUSH_FAILED << 32}
  ret i64 %outside
choose:
  %nothing = icmp eq ptr %kernel, null
  br i1 %nothing, label %wait, label %some
some:
  %all = icmp ne i64 %together, 0
  br i1 %all, label %meeting, label %apart
meeting:
  %one = call i32 %launch_together(ptr %kernel, {sizes})
  br label %launched
apart:
  %other = call i32 %launch(ptr %kernel, {sizes}, ptr null)
  br label %launched
launched:
  %status = phi i32 [ %one, %meeting ], [ %other, %apart ]
  %fine = icmp eq i32 %status, 0
  br i1 %fine, label %wait, label %failed
failed:
  %wide = zext i32 %status to i64
  %failure = or i64 %wide, {LAUNCH_FAILED << 32}
  br label %leave
wait:
  %asked = phi i64 [ 0, %choose ], [ 0, %launched ], [ %next, %not_yet ]
  %found = phi i64 [ 0, %choose ], [ 0, %launched ], [ %state, %not_yet ]
  %more = icmp slt i64 %asked, %asks
  br i1 %more, label %ask, label %leave
ask:
  %answer = call i32 %query(ptr null)
  %next = add i64 %asked, 1
  %number = zext i32 %answer to i64
  %state = or i64 %number, {QUERY_FAILED << 32}
  %done = icmp eq i32 %answer, 0
  br i1 %done, label %leave, label %not_done
not_done:
  %busy = icmp eq i32 %answer, {NOT_READY}
  br i1 %busy, label %not_yet, label %leave
not_yet:
  br label %wait
leave:
  %result = phi i64 [ %failure, %failed ], [ %found, %wait ], [ 0, %ask ], [ %state, %not_done ]
  call i32 %pop(ptr %popped)
  ret i64 %result
}}
"""


@functools.cache
def address() -> int:
    """Where the function is; it stays in the process."""
    return jit_module.link(_text(), _NAME)[0]
