"""Builds the functions in LLVM IR that aren't a kernel's own (those: `writer.py`)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from runtime.llvm.function_text import FunctionText

INTRINSICS = (
    "declare i64 @llvm.smin.i64(i64, i64)",
    "declare i64 @llvm.smax.i64(i64, i64)",
    "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
)


class Loop:
    """A loop being built: its counter and its loop-carried values. The body puts the values for the next trip into
    `following`; after the loop, `values` are the final ones."""

    def __init__(self, index: str, values: list[str]) -> None:
        self.index = index
        self.values = values
        self.following = list(values)


class FunctionBuilder(FunctionText):
    """Builds one function. Operands are names or integer literals; offsets of pointers are in bytes."""

    def __init__(self, head: str) -> None:
        super().__init__()
        self._head = head

    def text(self) -> str:
        return "\n".join([f"{self._head} {{", "start:", *self.entry, *self.lines, "}", ""])

    # --- instructions ------------------------------------------------------------------------------------------------

    def load(self, type_: str, place: str) -> str:
        return self.op(f"load {type_}, ptr {place}")

    def store(self, type_: str, value: str | int, place: str) -> None:
        self.line(f"store {type_} {value}, ptr {place}")

    def load_atomic(self, type_: str, place: str, ordering: str = "monotonic") -> str:
        return self.op(f"load atomic {type_}, ptr {place} {ordering}, align 8")

    def call(self, type_: str, function: str, *operands: str) -> str:
        """A call's result. operands: with their types."""
        return self.op(f"call {type_} {function}({', '.join(operands)})")

    def run(self, function: str, *operands: str) -> None:
        """A call without a result."""
        self.line(f"call void {function}({', '.join(operands)})")

    def is_null(self, pointer: str) -> str:
        return self.op(f"icmp eq ptr {pointer}, null")

    def at(self, base: str, offset: str | int) -> str:
        return self.op(f"getelementptr i8, ptr {base}, i64 {offset}")

    def binary(self, instruction: str, a: str, b: str | int, type_: str = "i64") -> str:
        """An instruction with two operands."""
        return self.op(f"{instruction} {type_} {a}, {b}")

    def select(self, condition: str, yes: str | int, no: str | int, type_: str = "i64") -> str:
        return self.op(f"select i1 {condition}, {type_} {yes}, {type_} {no}")

    def min(self, a: str | int, b: str | int) -> str:
        return self.op(f"call i64 @llvm.smin.i64(i64 {a}, i64 {b})")

    def max(self, a: str | int, b: str | int) -> str:
        return self.op(f"call i64 @llvm.smax.i64(i64 {a}, i64 {b})")

    def ceil_div(self, total: str, parts: str | int) -> str:
        """total / parts, rounded up."""
        return self.binary("sdiv", self.binary("sub", self.binary("add", total, parts), 1), parts)

    def all_of(self, a: str, b: str) -> str:
        return self.binary("and", a, b, "i1")

    def any_of(self, a: str, b: str) -> str:
        return self.binary("or", a, b, "i1")

    def negated(self, condition: str) -> str:
        return self.binary("xor", condition, "true", "i1")

    # --- blocks ------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def if_then(self, condition: str) -> Iterator[None]:
        base = self.name()[1:]
        self.split(condition, f"{base}.then", f"{base}.end")
        self.begin(f"{base}.then")
        yield
        self.block(f"{base}.end")

    def leave_if(self, condition: str, result: str) -> None:
        """Returns from the function if the condition holds. result: with its type."""
        with self.if_then(condition):
            self.end(f"ret {result}")

    def either(self, condition: str, type_: str, yes: Callable[[], str], no: Callable[[], str]) -> str:
        """`yes` or `no`, of which only the one that is needed is computed."""
        base = self.name()[1:]
        self.split(condition, f"{base}.yes", f"{base}.no")
        found = []
        for label, value in ((f"{base}.yes", yes), (f"{base}.no", no)):
            self.begin(label)
            found.append(f"[ {value()}, %{self.current} ]")
            self.jump(f"{base}.end")
        self.begin(f"{base}.end")
        return self.op(f"phi {type_} {', '.join(found)}")

    @contextlib.contextmanager
    def forever(self) -> Iterator[None]:
        """Repeats its body, which has to return or to jump to another block."""
        label = self.label()
        self.block(label)
        yield
        self.jump(label)

    @contextlib.contextmanager
    def loop(
        self, start: str | int, end: str | int, step: int | str = 1, carried: Sequence[tuple[str, str]] = ()
    ) -> Iterator[Loop]:
        """for index in range(start, end, step); carried: type and initial value of each loop-carried value."""
        before, base = self.current, self.name()[1:]
        loop = Loop(self.name(), [self.name() for _ in carried])
        following = self.name()
        self.block(f"{base}.test")
        head = len(self.lines)
        more = self.binary("icmp slt", loop.index, end)
        self.split(more, f"{base}.body", f"{base}.end")
        self.begin(f"{base}.body")
        yield loop
        self.line(f"{following} = add i64 {loop.index}, {step}")
        after = self.current
        self.jump(f"{base}.test")
        self.begin(f"{base}.end")
        phis = [("i64", loop.index, start, following)]
        for (type_, first), value, new in zip(carried, loop.values, loop.following):
            phis.append((type_, value, first, new))
        self.lines[head:head] = [
            f"  {value} = phi {type_} [ {first}, %{before} ], [ {new}, %{after} ]" for type_, value, first, new in phis
        ]


def defined(head: str, body: Callable[[FunctionBuilder], str | None]) -> str:
    """The text of a function. head: such as `internal i64 @f(i64 %x) nounwind`. body: writes the function and gives its
    result, None if there is none."""
    f = FunctionBuilder(f"define {head}")
    result = body(f)
    type_ = head.partition("@")[0].split()[-1]
    f.end("ret void" if result is None else f"ret {type_} {result}")
    return f.text()
