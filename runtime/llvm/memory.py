"""Arrays in kernels: reference-counted blocks of memory.

    owner → { reference count, the Python object that owns the elements or null, start of the block, is it cached }
            64 bytes before the elements, which begin at a multiple of 64, or of a page in large arrays

The alignment avoids 4K aliasing: a processor first compares the last 12 bits of addresses, so it takes a load for one
of data just stored if the written array begins some 64 to 500 bytes further into its page than the array that is read.
That made a loop take half as long again. NumPy's large arrays begin 16 bytes into a page, so none of them begins that
closely before one of ours.

Small blocks come from malloc. Blocks of at least `KEPT` bytes come from the functions to allocate and to free in the
table with the symbol `autograph_blocks` (`codegen/native_runtime/allocator.py`).

An argument's owner is on the wrapper's stack and refers to the Python object; its count never drops to zero. Counting
needs no atomic instructions: until a kernel returns, only its own thread uses its arrays, and parallel loops don't
count references. Afterwards capsules hold the arrays, under the interpreter lock, or without one by counting atomically
(`wrapper.py`).
"""

from __future__ import annotations

from collections.abc import Callable

from runtime.kernel_ir.types import Array
from runtime.llvm.function_builder import UNOPTIMISED, FunctionBuilder, defined
from runtime.llvm.writer import OUT_OF_MEMORY, ArrayValue, Value, Writer

HEADER = 64
BLOCKS = "autograph_blocks"
KEPT = 1 << 16  # bytes: malloc would return larger blocks to the system each time
LARGE = 1 << 20  # bytes
_PAGE = 4096
_MOST = 1 << 46  # elements: more can't be allocated, and their bytes fit an int64 twice

_MANY = 1 << 40  # references to an argument: never the last

# The fields of an owner, in bytes from its start.
COUNT, OBJECT = 0, 8
_BLOCK, _IS_KEPT = 16, 24


def reference_counting(
    take: str, drop: str, free: Callable[[FunctionBuilder], None],
    counts: Callable[[FunctionBuilder], str] | None = None,
) -> str:  # fmt: skip
    """The functions `@take` and `@drop`, which add or remove a reference to an array. A null owner has no count.

    take, drop: their attributes. free: writes the code that frees an array without references. counts: writes the
    condition under which the calling thread counts; None if each thread does.
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
    """The elements of a new array of `%count` elements of `%size` bytes; null if there is no memory."""
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
    start = f.convert("ptrtoint", "ptr", block, "i64")
    end = f.binary("sub", f.binary("add", start, spare), 1)
    aligned = f.binary("and", end, f.binary("sub", "0", unit))
    data = f.at(block, f.binary("sub", aligned, start))
    owner = f.at(data, -HEADER)
    f.store("i64", 1, owner)
    f.store("ptr", "null", f.at(owner, OBJECT))
    f.store("ptr", block, f.at(owner, _BLOCK))
    f.store("i64", f.convert("zext", "i1", is_kept, "i64"), f.at(owner, _IS_KEPT))
    return data


# All are called rather than inlined: inlining would double LLVM's time, and only the result of a call is known not to
# alias other memory.
SUPPORT = "\n".join([
    f"""
declare noalias ptr @malloc(i64)
declare void @free(ptr)
@{BLOCKS} = external global [2 x ptr]
""",
    # Apart from `drop`, whose attributes leave out what freeing does to memory that nobody else has.
    defined(f"internal void @drop_last(ptr %owner) {UNOPTIMISED}", _free),
    reference_counting(
        f"{UNOPTIMISED} memory(argmem: readwrite)",
        f"{UNOPTIMISED} memory(argmem: readwrite, inaccessiblemem: readwrite)",
        lambda f: f.run("@drop_last", "ptr %owner"),
    ),
    defined(f"internal noalias ptr @allocate(i64 %count, i64 %size) {UNOPTIMISED}", _allocate),
])  # fmt: skip


def argument(f: FunctionBuilder, holder: str | None = None) -> str:
    """The owner of an argument, on the stack. holder: the Python object that owns the elements, if one does."""
    owner = f.stack("[4 x i64]", align=16)
    f.store("i64", _MANY, f.at(owner, COUNT))
    f.store("ptr", holder or owner, f.at(owner, OBJECT))  # never null: the elements don't follow this owner
    return owner


def _drop_all(f: FunctionBuilder) -> None:
    with f.loop(0, "%count") as each:
        f.run("@drop", f"ptr {f.load('ptr', f.at('%owners', f.binary('shl', each.index, 3)))}")


# What releases the owners that stand side by side in memory.
DROP_ALL = defined("internal void @drop_all(ptr nocapture %owners, i64 %count) noinline nounwind", _drop_all)


def empty(w: Writer, type_: Array, count: Value) -> ArrayValue:
    """A new flat array."""
    alone = "" if w.program.spmd else "noalias "
    data = w.op(f"call {alone}align 64 ptr @allocate(i64 {count.text}, i64 {type_.element.size})")
    w.fail(w.is_null(data), OUT_OF_MEMORY)
    owner = w.at(data, -HEADER)
    return ArrayValue(type_, owner, data, (count.text,), owned=True)


def take(w: Writer, array: ArrayValue) -> None:
    """Adds a reference, unless the value comes with one."""
    if not array.owned:
        w.run("@take", f"ptr {array.owner}")


def assign(w: Writer, name: str, array: ArrayValue) -> None:
    """Assigns an array to a variable, and releases the array that it held."""
    if name in w.borrowed:
        w.write(name, array)
        return
    take(w, array)
    before = w.load("ptr", w.slots[name][0])
    w.write(name, array)
    w.run("@drop", f"ptr {before}")


def drop(w: Writer, owner: str) -> None:
    w.run("@drop", f"ptr {owner}")


def drop_variables(w: Writer) -> None:
    """Releases the arrays of variables, at the end of a function."""
    if w.gathered:
        w.program.need("@drop_all")
        w.run("@drop_all", "ptr %owners", f"i64 {len(w.gathered)}")
    for name in w.arrays:
        if name not in w.gathered:
            drop(w, w.load("ptr", w.slots[name][0]))
