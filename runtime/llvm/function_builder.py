"""Writes functions as LLVM text: instructions, blocks, loops.

All machine code of ours is written with it: kernels (`writer.py` adds their variables and statuses), the functions that
Python calls (`wrapper.py`), memory, threads, matrix products and inline caches. Only formulas over floats
(`codegen/math/vector_builder.py`) are built with llvmlite's own builder.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping

# Metadata of branches that are seldom taken, and of those that are nearly always.
UNLIKELY, LIKELY = ", !prof !0", ", !prof !1"
# Attributes of functions that take little time beside a kernel's loops: LLVM translates them as they are.
UNOPTIMISED = "noinline optnone nounwind"
IS_SIZE = ", !range !2"  # of a load: the number isn't negative


class Loop:
    """A loop being built: its index if it counts, its loop-carried values, and the label of the block after it. The
    body puts the values for the next trip into `following`; after the loop, `values` are the final ones."""

    def __init__(self, index: str, values: list[str], end: str) -> None:
        self.index = index
        self.values = values
        self.following = list(values)
        self.end = end


class FunctionBuilder:
    """Builds one function. Operands are names or integer literals; offsets of pointers are in bytes.

    entry: what comes first: the stack slots, and what fills them. lines: all other lines. current: the block that is
    being written.
    """

    def __init__(self, head: str = "") -> None:
        self.head = head
        self.entry: list[str] = []
        self.lines: list[str] = []
        self.current = "start"
        self._count = 0
        self._finished = False  # the block has its terminator

    def text(self) -> str:
        return "\n".join([f"{self.head} {{", "start:", *self.entry, *self.lines, "}", ""])

    def stack(self, type_: str, name: str | None = None, count: int = 1, align: int = 8) -> str:
        """A stack slot."""
        slot = f'%"{name}"' if name is not None else self.name()
        self.entry.append(f"  {slot} = alloca {type_}{f', i64 {count}' if count > 1 else ''}, align {align}")
        return slot

    @contextlib.contextmanager
    def at_start(self) -> Iterator[None]:
        """Writes what stands in its body before all blocks, after the stack slots so far."""
        kept = self.lines, self._finished
        self.lines, self._finished = self.entry, False
        yield
        self.lines, self._finished = kept

    # --- lines -------------------------------------------------------------------------------------------------------

    def name(self) -> str:
        """A new name for a result."""
        self._count += 1
        return f"%t{self._count}"

    def line(self, text: str) -> None:
        """An instruction without a result."""
        if self._finished:
            self.block(self.label())  # unreachable, LLVM removes it
        self.lines.append("  " + text)

    def op(self, text: str) -> str:
        """An instruction's result."""
        self._count += 1
        name = f"%t{self._count}"
        if self._finished:
            self.block(self.label())  # unreachable, LLVM removes it
        self.lines.append(f"  {name} = {text}")
        return name

    # --- memory ------------------------------------------------------------------------------------------------------

    def load(self, type_: str, address: str, align: int | None = None) -> str:
        """align: of the address, in bytes; by default that of the type."""
        return self.op(f"load {type_}, ptr {address}{f', align {align}' if align else ''}")

    def store(self, type_: str, value: str | int, address: str, align: int | None = None) -> None:
        self.line(f"store {type_} {value}, ptr {address}{f', align {align}' if align else ''}")

    def at(self, base: str, offset: str | int, unit: str = "i8") -> str:
        """An address plus a number of bytes, or of elements of type `unit`."""
        return self.op(f"getelementptr {unit}, ptr {base}, i64 {offset}")

    def field(self, type_: str, base: str, offset: str | int, unit: str = "i8") -> str:
        """The value at such an address."""
        return self.load(type_, self.at(base, offset, unit))

    def member(self, struct: str, address: str, number: int) -> str:
        """The address of a member of a struct."""
        return self.op(f"getelementptr {struct}, ptr {address}, i64 0, i32 {number}")

    def room(self, type_: str, count: str) -> str:
        """Memory on the stack for a number of elements that is only known when the function runs."""
        return self.op(f"alloca {type_}, i64 {count}")

    def copy(self, target: str, source: str, count: str) -> None:
        """Copies bytes between blocks of memory that don't overlap."""
        self.line(f"call void @llvm.memcpy(ptr {target}, ptr {source}, i64 {count}, i1 false)")

    def clear(self, address: str, count: str | int) -> None:
        """Sets bytes to 0."""
        self.line(f"call void @llvm.memset(ptr {address}, i8 0, i64 {count}, i1 false)")

    def prefetch(self, address: str) -> None:
        """Has the processor read memory into its second-level cache."""
        self.line(f"call void @llvm.prefetch(ptr {address}, i32 0, i32 2, i32 1)")

    # --- memory that threads share -----------------------------------------------------------------------------------

    def load_atomic(self, type_: str, address: str, ordering: str = "monotonic") -> str:
        return self.op(f"load atomic {type_}, ptr {address} {ordering}, align {_alignment(type_)}")

    def store_atomic(self, type_: str, value: str | int, address: str, ordering: str = "monotonic") -> None:
        self.line(f"store atomic {type_} {value}, ptr {address} {ordering}, align {_alignment(type_)}")

    def update(self, operation: str, type_: str, address: str, value: str | int, ordering: str = "monotonic") -> str:
        """Changes memory by one atomic operation (add, sub, xchg, ...). Its value before."""
        return self.op(f"atomicrmw {operation} ptr {address}, {type_} {value} {ordering}")

    def replace(
        self, type_: str, address: str, expected: str | int, new: str | int, orderings: str = "acq_rel acquire"
    ) -> str:
        """Whether memory held the expected value, which the new one has replaced then."""
        pair = self.op(f"cmpxchg ptr {address}, {type_} {expected}, {type_} {new} {orderings}")
        return self.op(f"extractvalue {{ {type_}, i1 }} {pair}, 1")

    # --- calls -------------------------------------------------------------------------------------------------------

    def call(self, type_: str, function: str, *operands: str) -> str:
        """A call's result. operands: with their types."""
        return self.op(f"call {type_} {function}({', '.join(operands)})")

    def run(self, function: str, *operands: str) -> None:
        """A call without a result."""
        self.line(f"call void {function}({', '.join(operands)})")

    def intrinsic(self, name: str, type_: str, *operands: str, flags: str = "") -> str:
        """The result of one of LLVM's intrinsics, which LLVM declares, and whose overload it chooses by the operands'
        types. flags: fast-math flags."""
        return self.op(f"call {flags}{type_} @llvm.{name}({', '.join(operands)})")

    # --- numbers -----------------------------------------------------------------------------------------------------

    def binary(self, instruction: str, a: str | int, b: str | int, type_: str = "i64") -> str:
        """An instruction with two operands."""
        return self.op(f"{instruction} {type_} {a}, {b}")

    def convert(self, instruction: str, type_: str, value: str, to: str) -> str:
        """A number as one of another type."""
        return self.op(f"{instruction} {type_} {value} to {to}")

    def select(self, condition: str, yes: str | int, no: str | int, type_: str = "i64") -> str:
        return self.op(f"select i1 {condition}, {type_} {yes}, {type_} {no}")

    def min(self, a: str | int, b: str | int, type_: str = "i64", is_signed: bool = True) -> str:
        return self.intrinsic("smin" if is_signed else "umin", type_, f"{type_} {a}", f"{type_} {b}")

    def max(self, a: str | int, b: str | int, type_: str = "i64", is_signed: bool = True) -> str:
        return self.intrinsic("smax" if is_signed else "umax", type_, f"{type_} {a}", f"{type_} {b}")

    def leading_zeros(self, number: str, of_zero: bool = False) -> str:
        """The number of leading zeros of an int64. of_zero: whether it is defined for 0, as 64."""
        return self.intrinsic("ctlz", "i64", f"i64 {number}", f"i1 {'false' if of_zero else 'true'}")

    def negative(self, type_: str, x: str) -> str:
        """-x, of a float or a vector of floats."""
        return self.op(f"fneg {type_} {x}")

    def fabs(self, type_: str, x: str) -> str:
        """The absolute value of a float, or of each lane of a vector."""
        return self.intrinsic("fabs", type_, f"{type_} {x}")

    def ceil_div(self, total: str, parts: str | int) -> str:
        """total / parts, rounded up."""
        return self.binary("sdiv", self.binary("sub", self.binary("add", total, parts), 1), parts)

    def multiply_add(self, type_: str, a: str, b: str, c: str) -> str:
        """a * b + c of floats or vectors, with one rounding if the machine has an instruction for it."""
        return self.intrinsic("fmuladd", type_, f"{type_} {a}", f"{type_} {b}", f"{type_} {c}")

    def masked_load(self, type_: str, address: str, align: int, mask: str) -> str:
        """Loads the lanes of a vector that the mask selects; the others are 0. mask: with its type."""
        return self.intrinsic("masked.load", type_, f"ptr {address}", f"i32 {align}", mask, f"{type_} zeroinitializer")

    def masked_store(self, type_: str, value: str, address: str, align: int, mask: str) -> None:
        """Writes only the lanes in the mask."""
        self.run("@llvm.masked.store", f"{type_} {value}", f"ptr {address}", f"i32 {align}", mask)

    def shuffle(self, type_: str, a: str, b: str, lanes: Iterable[int]) -> str:
        """The lanes with these numbers of two vectors."""
        numbers = ", ".join(f"i32 {lane}" for lane in lanes)
        count = numbers.count(",") + 1
        return self.op(f"shufflevector {type_} {a}, {type_} {b}, <{count} x i32> <{numbers}>")

    def lane(self, type_: str, vector: str, number: int) -> str:
        """A lane of a vector."""
        return self.op(f"extractelement {type_} {vector}, i64 {number}")

    def with_lane(self, type_: str, vector: str, value: str, number: int) -> str:
        """A vector with another value in a lane. value: with its type."""
        return self.op(f"insertelement {type_} {vector}, {value}, i64 {number}")

    def splat(self, type_: str, element: str, value: str) -> str:
        """A vector whose lanes all hold this value. element: the type of a lane."""
        first = self.with_lane(type_, "poison", f"{element} {value}", 0)
        return self.op(
            f"shufflevector {type_} {first}, {type_} poison, {type_[: type_.index('x')]}x i32> zeroinitializer"
        )

    # --- conditions --------------------------------------------------------------------------------------------------

    def is_null(self, pointer: str) -> str:
        return self.op(f"icmp eq ptr {pointer}, null")

    def is_same(self, a: str, b: str) -> str:
        """Whether two pointers are equal."""
        return self.op(f"icmp eq ptr {a}, {b}")

    def all_of(self, first: str, *others: str) -> str:
        for other in others:
            first = self.binary("and", first, other, "i1")
        return first

    def any_of(self, first: str, *others: str) -> str:
        for other in others:
            first = self.binary("or", first, other, "i1")
        return first

    def negated(self, condition: str) -> str:
        return self.binary("xor", condition, "true", "i1")

    # --- blocks ------------------------------------------------------------------------------------------------------

    def label(self) -> str:
        """A name for a block."""
        self._count += 1
        return f"b{self._count}"

    def begin(self, label: str) -> None:
        """Begins a block; the last one has ended."""
        self.lines.append(f"{label}:")
        self.current = label
        self._finished = False

    def block(self, label: str) -> None:
        """Begins a block; the last one falls through to it if it hasn't ended."""
        if not self._finished:
            self.lines.append(f"  br label %{label}")
        self.begin(label)

    def jump(self, label: str, note: str = "") -> None:
        """Jumps to a block. note: metadata."""
        if not self._finished:
            self.lines.append(f"  br label %{label}{note}")
        self._finished = True

    def split(self, condition: str, yes: str, no: str, note: str = "") -> None:
        """Jumps to one of two blocks. note: metadata."""
        self.end(f"br i1 {condition}, label %{yes}, label %{no}{note}")

    def switch(self, type_: str, value: str, default: str, cases: Mapping[int, str]) -> None:
        """Jumps to the block for a value, or to the default."""
        listed = " ".join(f"{type_} {case}, label %{label}" for case, label in cases.items())
        self.end(f"switch {type_} {value}, label %{default} [ {listed} ]")

    def end(self, text: str) -> None:
        """Ends the block with this instruction."""
        self.line(text)
        self._finished = True

    def jump_if(self, condition: str, label: str, note: str = "") -> None:
        """Jumps to a block if the condition holds."""
        following = self.label()
        self.split(condition, label, following, note)
        self.begin(following)

    def jump_unless(self, condition: str, label: str, note: str = "") -> None:
        """Jumps to a block if the condition doesn't hold."""
        following = self.label()
        self.split(condition, following, label, note)
        self.begin(following)

    def leave_if(self, condition: str, result: str) -> None:
        """Returns from the function if the condition holds. result: with its type."""
        with self.if_then(condition):
            self.end(f"ret {result}")

    def leave_unless(self, condition: str, result: str) -> None:
        """Returns from the function if the condition doesn't hold. result: with its type."""
        with self.unless(condition):
            self.end(f"ret {result}")

    @contextlib.contextmanager
    def if_then(self, condition: str) -> Iterator[None]:
        base = self.label()
        self.split(condition, f"{base}.then", f"{base}.end")
        self.begin(f"{base}.then")
        yield
        self.block(f"{base}.end")

    @contextlib.contextmanager
    def unless(self, condition: str) -> Iterator[None]:
        base = self.label()
        self.split(condition, f"{base}.end", f"{base}.else")
        self.begin(f"{base}.else")
        yield
        self.block(f"{base}.end")

    def if_else(self, condition: str, yes: Callable[[], None], no: Callable[[], None]) -> None:
        base = self.label()
        self.split(condition, f"{base}.then", f"{base}.else")
        for label, body in ((f"{base}.then", yes), (f"{base}.else", no)):
            self.begin(label)
            body()
            self.jump(f"{base}.end")
        self.begin(f"{base}.end")

    def either(self, condition: str, type_: str, yes: Callable[[], str], no: Callable[[], str], note: str = "") -> str:
        """`yes` or `no`; only the one that is needed is computed. note: metadata of the branch."""
        base = self.label()
        self.split(condition, f"{base}.yes", f"{base}.no", note)
        return self.merge(f"{base}.end", type_, ((f"{base}.yes", yes), (f"{base}.no", no)))

    def merge(self, end: str, type_: str, blocks: Iterable[tuple[str, Callable[[], str]]]) -> str:
        """The value that one of several blocks computes, each given by its label. All of them go on at `end`."""
        found = []
        for label, value in blocks:
            self.begin(label)
            found.append(f"[ {value()}, %{self.current} ]")
            self.jump(end)
        self.begin(end)
        return self.op(f"phi {type_} {', '.join(found)}")

    # --- loops -------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def forever(self, *carried: tuple[str, str]) -> Iterator[Loop]:
        """Repeats its body, which leaves it by a return or a jump to `end`; carried: type and initial value of each
        loop-carried value."""
        before, start = self.current, self.label()
        loop = Loop("", [self.name() for _ in carried], f"{start}.end")
        self.block(start)
        head = len(self.lines)
        yield loop
        after = self.current
        self.jump(start)
        self._carry(head, before, after, carried, loop)
        self.begin(loop.end)

    @contextlib.contextmanager
    def loop(
        self, start: str | int, end: str | int, step: int | str = 1, carried: Iterable[tuple[str, str]] = ()
    ) -> Iterator[Loop]:
        """for index in range(start, end, step); carried: as for `forever`."""
        carried = [("i64", str(start)), *carried]
        before, base = self.current, self.label()
        index, *values = (self.name() for _ in carried)
        loop = Loop(index, values, f"{base}.end")
        self.block(f"{base}.test")
        head = len(self.lines)
        self.split(self.binary("icmp slt", index, end), f"{base}.body", loop.end)
        self.begin(f"{base}.body")
        yield loop
        following = self.binary("add", index, step)
        after = self.current
        self.jump(f"{base}.test")
        whole = Loop(index, [index, *values], loop.end)
        whole.following = [following, *loop.following]
        self._carry(head, before, after, carried, whole)
        self.begin(loop.end)

    def _carry(self, head: int, before: str, after: str, carried: Iterable[tuple[str, str]], loop: Loop) -> None:
        """Writes the phi instructions of a loop at line `head`, where its first block begins."""
        self.lines[head:head] = [
            f"  {value} = phi {type_} [ {first}, %{before} ], [ {new}, %{after} ]"
            for (type_, first), value, new in zip(carried, loop.values, loop.following, strict=True)
        ]


def _alignment(type_: str) -> int:
    return 4 if type_ == "i32" else 8


_BEFORE_TYPE = ("internal", "linkonce_odr", "noalias", "ptx_kernel")


def defined(head: str, body: Callable[[FunctionBuilder], str | None]) -> str:
    """The text of a function. head: such as `internal i64 @f(i64 %x) nounwind`. body: writes the function and gives its
    result, None if there is none."""
    f = FunctionBuilder(f"define {head}")
    result = body(f)
    type_ = " ".join(word for word in head.partition("@")[0].split() if word not in _BEFORE_TYPE)
    f.end("ret void" if result is None else f"ret {type_} {result}")
    return f.text()


def definitions(functions: Mapping[str, Callable[[FunctionBuilder], str | None]]) -> str:
    """The text of functions: their bodies by their heads, as `defined` takes them."""
    return "\n".join(defined(head, body) for head, body in functions.items())
