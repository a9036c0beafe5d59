"""Arrays in kernels: reference-counted blocks of memory.

    owner → { reference count, the Python object that owns the elements or null, start of the block, is it kept }
            64 bytes before the elements, which begin at a multiple of 64, large ones at a page

The alignment avoids 4K aliasing: processors compare the last 12 bits of addresses first, and take a load soon after a
store for one of the stored data if the written array begins some 64 to 500 bytes further into its page than the array
that is read. A loop took half as long again. NumPy's large arrays begin 16 bytes into a page, so no array that is read
begins that closely before one of ours.

Small blocks come from malloc. Those from `KEPT` bytes on come from two functions in a table with the symbol
`autograph_blocks`, which allocate and free (`codegen/native_runtime/allocator.py`).

An argument's owner lies on the wrapper's stack, with a count that never falls to zero, and refers to the Python object.
Counting needs no atomic instructions: until a kernel returns, only its own thread has its arrays, and parallel loops
count no references; afterwards capsules hold them, which the interpreter lock guards.
"""

from __future__ import annotations

from collections.abc import Callable

from runtime.kernel_ir.types import Array
from runtime.llvm.function_builder import FunctionBuilder, defined
from runtime.llvm.writer import OUT_OF_MEMORY, ArrayValue, Value, Writer

HEADER = 64
BLOCKS = "autograph_blocks"
KEPT = 1 << 16  # bytes: malloc returns such blocks to the system, again and again
LARGE = 1 << 20  # bytes
_PAGE = 4096
_MOST = 1 << 46  # elements: more can't be allocated, and twice their bytes fit an int64

# The fields of an owner, in bytes from its start.
_COUNT, _OBJECT, _BLOCK, _IS_KEPT = 0, 8, 16, 24


def reference_counting(
    take: str, drop: str, free: Callable[[FunctionBuilder], None],
    counts: Callable[[FunctionBuilder], str] | None = None,
) -> str:  # fmt: skip
    """The functions `@take` and `@drop`, by which an array has a reference more or less. A null owner counts nothing.

    take, drop: their attributes. free: writes what frees an array without references. counts: writes whether the
    calling thread counts; each does where that is None.
    """
    texts = []
    for name, step, attributes in (("take", 1, take), ("drop", -1, drop)):
        f = FunctionBuilder(f"define internal void @{name}(ptr %owner) {attributes}")
        f.leave_if(f.is_null("%owner"), "void")
        if counts is not None:
            f.leave_if(f.negated(counts(f)), "void")
        count = f.binary("add", f.load("i64", "%owner"), step)
        f.store("i64", count, "%owner")
        if name == "drop":
            with f.if_then(f.binary("icmp eq", count, 0)):
                free(f)
        f.end("ret void")
        texts.append(f.text())
    return "\n".join(texts)


def _free(f: FunctionBuilder) -> None:
    """Frees the block of `%owner`."""
    block = f.load("ptr", f.at("%owner", _BLOCK))
    with f.if_then(f.binary("icmp ne", f.load("i64", f.at("%owner", _IS_KEPT)), 0)):
        f.run(f.load_atomic("ptr", f.at(f"@{BLOCKS}", 8)), f"ptr {block}")
        f.end("ret void")
    f.run("@free", f"ptr {block}")


def _allocate(f: FunctionBuilder) -> str:
    """The elements of a new array of `%count` elements of `%size` bytes; null where there is no memory."""
    f.leave_if(f.binary("icmp ugt", "%count", _MOST), "ptr null")
    size = f.binary("mul", "%count", "%size")
    unit = f.select(f.binary("icmp uge", size, LARGE), _PAGE, HEADER)
    spare = f.binary("add", unit, HEADER)
    room = f.binary("add", size, spare)
    is_kept = f.binary("icmp uge", size, KEPT)
    block = f.either(
        is_kept, "ptr",
        lambda: f.call("ptr", f.load_atomic("ptr", f"@{BLOCKS}"), f"i64 {room}"),
        lambda: f.call("ptr", "@malloc", f"i64 {room}"),
    )  # fmt: skip
    f.leave_if(f.is_null(block), "ptr null")
    start = f.op(f"ptrtoint ptr {block} to i64")
    end = f.binary("sub", f.binary("add", start, spare), 1)
    aligned = f.binary("and", end, f.binary("sub", "0", unit))
    data = f.at(block, f.binary("sub", aligned, start))
    owner = f.at(data, -HEADER)
    f.store("i64", 1, owner)
    f.store("ptr", "null", f.at(owner, _OBJECT))
    f.store("ptr", block, f.at(owner, _BLOCK))
    f.store("i64", f.op(f"zext i1 {is_kept} to i64"), f.at(owner, _IS_KEPT))
    return data


# Calls, since written out they would double the time that LLVM takes, and what `allocate` returns is known to be nobody
# else's memory only while it is a call.
SUPPORT = "\n".join([
    f"""
%owner = type {{ i64, ptr, ptr, i64 }}
declare noalias ptr @malloc(i64)
declare void @free(ptr)
@{BLOCKS} = external global [2 x ptr]
""",
    # Apart from `drop`, whose attributes leave out what freeing does to memory that nobody else has.
    defined("internal void @drop_last(ptr %owner) noinline nounwind", _free),
    reference_counting(
        "noinline nounwind memory(argmem: readwrite)",
        "noinline nounwind memory(argmem: readwrite, inaccessiblemem: readwrite)",
        lambda f: f.run("@drop_last", "ptr %owner"),
    ),
    defined("internal noalias ptr @allocate(i64 %count, i64 %size) noinline nounwind", _allocate),
])  # fmt: skip


def empty(w: Writer, type_: Array, count: Value) -> ArrayValue:
    """A new flat array."""
    alone = "" if w.program.spmd else "noalias "
    data = w.op(f"call {alone}align 64 ptr @allocate(i64 {count.text}, i64 {type_.element.size})")
    w.fail(w.op(f"icmp eq ptr {data}, null"), OUT_OF_MEMORY)
    owner = w.op(f"getelementptr i8, ptr {data}, i64 {-HEADER}")
    return ArrayValue(type_, owner, data, (count.text,), owned=True)


def take(w: Writer, array: ArrayValue) -> None:
    """One reference more, unless one comes with the value."""
    if not array.owned:
        w.line(f"call void @take(ptr {array.owner})")


def assign(w: Writer, name: str, array: ArrayValue) -> None:
    """Lets a variable hold an array instead of what it held."""
    take(w, array)
    before = w.op(f"load ptr, ptr {w.places[name][0]}")
    w.store(name, array)
    w.line(f"call void @drop(ptr {before})")


def drop(w: Writer, owner: str) -> None:
    w.line(f"call void @drop(ptr {owner})")
