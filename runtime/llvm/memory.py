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

from runtime.kernel_ir.types import Array
from runtime.llvm.writer import OUT_OF_MEMORY, ArrayValue, Value, Writer

HEADER = 64
BLOCKS = "autograph_blocks"
KEPT = 1 << 16  # bytes: malloc returns such blocks to the system, again and again
LARGE = 1 << 20  # bytes
_PAGE = 4096
_MOST = 1 << 46  # elements: more can't be allocated, and twice their bytes fit an int64

# Calls, since written out they would double the time that LLVM takes, and what `allocate` returns is known to be nobody
# else's memory only while it is a call.
SUPPORT = f"""
%owner = type {{ i64, ptr, ptr, i64 }}
declare noalias ptr @malloc(i64)
declare void @free(ptr)
@{BLOCKS} = external global [2 x ptr]

define internal void @take(ptr %owner) noinline nounwind memory(argmem: readwrite) {{
  %none = icmp eq ptr %owner, null
  br i1 %none, label %done, label %some
some:
  %count = load i64, ptr %owner
  %more = add i64 %count, 1
  store i64 %more, ptr %owner
  br label %done
done:
  ret void
}}

define internal void @drop_last(ptr %owner) noinline nounwind {{
  %place = getelementptr %owner, ptr %owner, i64 0, i32 2
  %block = load ptr, ptr %place
  %kept = getelementptr %owner, ptr %owner, i64 0, i32 3
  %kind = load i64, ptr %kept
  %waits = icmp ne i64 %kind, 0
  br i1 %waits, label %give, label %free
give:
  %place2 = getelementptr ptr, ptr @{BLOCKS}, i64 1
  %give_block = load atomic ptr, ptr %place2 monotonic, align 8
  call void %give_block(ptr %block)
  ret void
free:
  call void @free(ptr %block)
  ret void
}}

define internal void @drop(ptr %owner) noinline nounwind memory(argmem: readwrite, inaccessiblemem: readwrite) {{
  %none = icmp eq ptr %owner, null
  br i1 %none, label %done, label %some
some:
  %count = load i64, ptr %owner
  %less = sub i64 %count, 1
  store i64 %less, ptr %owner
  %last = icmp eq i64 %less, 0
  br i1 %last, label %free, label %done
free:
  call void @drop_last(ptr %owner)
  br label %done
done:
  ret void
}}

define internal noalias ptr @allocate(i64 %count, i64 %size) noinline nounwind {{
  %bad = icmp ugt i64 %count, {_MOST}
  br i1 %bad, label %fail, label %right
right:
  %bytes = mul i64 %count, %size
  %large = icmp uge i64 %bytes, {LARGE}
  %unit = select i1 %large, i64 {_PAGE}, i64 {HEADER}
  %spare = add i64 %unit, {HEADER}
  %room = add i64 %bytes, %spare
  %kept = icmp uge i64 %bytes, {KEPT}
  br i1 %kept, label %take, label %plain
plain:
  %small = call ptr @malloc(i64 %room)
  br label %both
take:
  %take_block = load atomic ptr, ptr @{BLOCKS} monotonic, align 8
  %waiting = call ptr %take_block(i64 %room)
  br label %both
both:
  %block = phi ptr [ %small, %plain ], [ %waiting, %take ]
  %missing = icmp eq ptr %block, null
  br i1 %missing, label %fail, label %found
found:
  %number = ptrtoint ptr %block to i64
  %past = add i64 %number, %spare
  %beyond = sub i64 %past, 1
  %mask = sub i64 0, %unit
  %aligned = and i64 %beyond, %mask
  %ahead = sub i64 %aligned, %number
  %data = getelementptr i8, ptr %block, i64 %ahead
  %owner = getelementptr i8, ptr %data, i64 {-HEADER}
  store i64 1, ptr %owner
  %object = getelementptr %owner, ptr %owner, i64 0, i32 1
  store ptr null, ptr %object
  %place = getelementptr %owner, ptr %owner, i64 0, i32 2
  store ptr %block, ptr %place
  %mark = getelementptr %owner, ptr %owner, i64 0, i32 3
  %kind = zext i1 %kept to i64
  store i64 %kind, ptr %mark
  ret ptr %data
fail:
  ret ptr null
}}
"""


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
