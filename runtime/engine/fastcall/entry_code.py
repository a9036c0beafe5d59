"""The machine code of inline caches (`inline_cache.py`): from the arguments of a Python call to a kernel and to
tensors.

It works on Python objects: like `llvm/wrapper.py` it reads fields where `llvm/layouts.py` has found them, and calls C
functions of CPython's and NumPy's for everything else. It interprets plans (`plan_encoding.py`): the checks are in
`guard_code.py`, the kernel's call in `run_code.py`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from runtime.codegen.backends import llvm_backend
from runtime.codegen.native_runtime import jit_module
from runtime.context import ctx, eagerly
from runtime.engine.fastcall.guard_code import checks
from runtime.engine.fastcall.plan_encoding import (
    BUILDER,
    CONTEXT,
    EAGERLY,
    NUMERICS,
    PLAN_ARGUMENTS,
    PLAN_LENGTH,
    RECORDERS,
    STATE,
    TENSOR,
    TENSOR_ARRAY,
    TENSOR_DTYPE,
    ZERO,
)
from runtime.engine.fastcall.plan_reading import DECLARATIONS, called, pointer, release, word
from runtime.engine.fastcall.run_code import running
from runtime.llvm import layouts
from runtime.llvm.function_builder import FunctionBuilder, defined
from runtime.llvm.python_objects import first_byte, support, tuple_item, tuple_length
from runtime.tensor import EagerTensor

_NAME = "autograph_shortcut"


def text(array: int | None, dtype: int | None) -> str:
    """The whole module. array, dtype: where tensors have these fields (`layouts.slot`)."""
    entry = defined(f"ptr @{_NAME}(ptr %self, ptr %args, i64 %count, ptr %names)", _call)
    return "\n".join([DECLARATIONS, support(array, dtype), checks(array, dtype), running(array, dtype), entry])


def _call(f: FunctionBuilder) -> str:
    cursor, free = f.stack("ptr"), f.stack("ptr")
    f.store("ptr", first_byte(f, tuple_item(f, "%self", 0)), cursor)
    fallback = pointer(f, cursor)
    most_values, most_inputs, plans = (word(f, cursor) for _ in range(3))
    first = f.load("ptr", cursor)
    is_unnamed = f.is_null("%names")
    name_count = f.either(is_unnamed, "i64", lambda: "0", lambda: tuple_length(f, "%names"))
    with f.if_then(f.call("i1", "@undisturbed")):
        values, inputs = f.room("ptr", most_values), f.room("ptr", most_inputs)
        with f.loop(0, plans, carried=[("ptr", first)]) as loop:
            (plan,) = loop.values
            following = f.label()
            f.store("ptr", f.at(plan, PLAN_ARGUMENTS, "i64"), cursor)
            f.store("ptr", values, free)
            _try(f, plan, (cursor, free), (values, inputs), name_count, following)
            f.block(following)
            loop.following = [f.at(plan, f.field("i64", plan, PLAN_LENGTH, "i64"), "i64")]
    with f.unless(f.is_null(f.call("ptr", "@PyErr_Occurred"))):
        f.run("@PyErr_Clear")
    with f.if_then(is_unnamed):
        f.end(f"ret ptr {called(f, fallback, '%args', '%count')}")
    keywords = f.call("ptr", "@PyDict_New")
    f.leave_if(f.is_null(keywords), "ptr null")
    named = f.at("%args", "%count", "ptr")
    with f.loop(0, name_count) as each:
        name, value = tuple_item(f, "%names", each.index), f.field("ptr", named, each.index, "ptr")
        status = f.call("i32", "@PyDict_SetItem", f"ptr {keywords}", f"ptr {name}", f"ptr {value}")
        with f.if_then(f.binary("icmp slt", status, 0, "i32")):
            release(f, keywords)
            f.end("ret ptr null")
    answer = called(f, fallback, "%args", "%count", keywords)
    release(f, keywords)
    return answer


def _try(
    f: FunctionBuilder,
    plan: str,
    places: tuple[str, str],
    arrays: tuple[str, str],
    name_count: str,
    following: str,
) -> None:
    """Runs a plan and returns its result, if the call is as it says; else jumps to `following`.

    places: of the cursor, and of the pointer behind the values so far. arrays: room for values and inputs. name_count:
    the number of keyword arguments.
    """
    cursor, free = places
    values, inputs = arrays
    unfit = f.label()
    total = f.binary("add", "%count", name_count)
    wanted, wanted_names = word(f, cursor), word(f, cursor)
    is_count, is_name_count = f.binary("icmp eq", "%count", wanted), f.binary("icmp eq", name_count, wanted_names)
    f.jump_unless(f.all_of(is_count, is_name_count), following)
    with f.loop(0, name_count) as name:
        f.jump_unless(f.is_same(tuple_item(f, "%names", name.index), pointer(f, cursor)), following)

    def fits(obj: str) -> str:
        return f.call("i1", "@fits", f"ptr {cursor}", f"ptr {obj}", f"ptr {free}")

    def give_locks(count: str) -> None:
        f.run("@give_locks", f"ptr {locks}", f"i64 {count}")

    def let_go() -> None:
        f.run("@let_go", f"ptr {values}", f"ptr {f.load('ptr', free)}")

    with f.loop(0, total) as argument:
        f.jump_unless(fits(f.field("ptr", "%args", argument.index, "ptr")), unfit)
    f.jump_unless(f.call("i1", "@holds", f"ptr {cursor}"), unfit)
    lock_count = word(f, cursor)
    locks = f.load("ptr", cursor)
    locked = f.call("i64", "@take_locks", f"ptr {cursor}", f"i64 {lock_count}")
    with f.unless(f.binary("icmp eq", locked, lock_count)):  # interrupted
        give_locks(locked)
        let_go()
        f.end("ret ptr null")
    with f.loop(0, word(f, cursor)), f.unless(fits("@_Py_NoneStruct")):
        give_locks(lock_count)
        f.jump(unfit)
    given = [f"ptr {place}" for place in (plan, cursor, values, inputs, "%args")]
    result = f.call("ptr", "@run", *given, f"i64 {total}")
    give_locks(lock_count)
    let_go()
    f.end(f"ret ptr {result}")
    f.begin(unfit)
    let_go()


def methods() -> Callable[[tuple], Callable[..., Any]] | None:
    """The function that makes a callable of an encoded plan; None on platforms without machine code. From the kernel
    cache if possible."""
    if not llvm_backend.available():
        return None
    from runtime.llvm import target

    array, dtype = layouts.slot(EagerTensor, "_array"), layouts.slot(EagerTensor, "dtype")
    machine_code = jit_module.machine_code("shortcut", text(array, dtype))
    named = {
        TENSOR: EagerTensor,
        CONTEXT: ctx,
        STATE: "__dict__",
        BUILDER: "builder",
        RECORDERS: "recorders",
        NUMERICS: "numerics",
        ZERO: 0,
    }
    addresses = {symbol: id(target.kept(obj)) for symbol, obj in named.items()}
    for symbol, name in ((TENSOR_ARRAY, b"_array"), (TENSOR_DTYPE, b"dtype")):
        addresses[symbol] = ctypes.addressof(target.kept(ctypes.create_string_buffer(name)))
    addresses[EAGERLY] = eagerly.__array_interface__["data"][0]
    return target.methods(machine_code, _NAME, addresses)
