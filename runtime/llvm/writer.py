"""Writes a function of a kernel: variables on the stack, status, arrays.

Every variable has a stack slot, which LLVM's first pass turns into registers. A function that can't run out of memory
and has at most one result, a number, returns it directly. Any other returns a status (0, or how it failed) and writes
its results through pointers.
"""

from __future__ import annotations

import struct
from typing import Any

from runtime.dataclass import dataclass
from runtime.kernel_ir import ir
from runtime.kernel_ir.analysis.aliases import parameters_named
from runtime.kernel_ir.types import BOOL, FLOAT32, INT64, Array, Scalar, Tuple, Type, Unsupported
from runtime.llvm.function_builder import UNLIKELY, FunctionBuilder
from runtime.llvm.optimize import outer_loop_plan

OUT_OF_MEMORY = 1
# From this many arrays on, their owners stay in memory. In registers, each owner is live wherever the function may be
# left, so all of them are at each allocation, which may fail.
_MANY_ARRAYS = 5


@dataclass(frozen=True)
class Value:
    """A number: its type and its operand in LLVM's text. first: the first lane, an int64, of a vector whose lanes are
    known to go up by 1."""

    type: Scalar
    text: str
    first: str | None = None


@dataclass(frozen=True)
class ArrayValue:
    """An array: the operands of its owner, its elements and its dimensions. owned: the value comes with a reference.
    alignment: in bytes, of the elements that are loaded and stored, if it is known to exceed that of their type."""

    type: Array
    owner: str
    data: str
    dims: tuple[str, ...]
    owned: bool = False
    alignment: int | None = None


def literal(value: bool | int | float, type_: Scalar) -> Value:
    """A constant of a type, as numba would convert it."""
    if type_.lanes > 1:
        one = literal(value, type_.times(1))
        return Value(type_, f"splat ({one.type.ir} {one.text})")
    if type_.is_float:
        number = float(value)
        if type_ == FLOAT32:
            try:
                number = struct.unpack("f", struct.pack("f", number))[0]
            except OverflowError:
                number = float("inf") if number > 0 else float("-inf")
        # Floats are written by their bits as float64, which is exact.
        return Value(type_, f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}")
    if type_ == BOOL:
        return Value(type_, "true" if value else "false")
    whole = int(value) & ((1 << type_.bits) - 1)
    return Value(type_, str(whole - (1 << type_.bits) if whole >> (type_.bits - 1) else whole))


def parts(item: Value | ArrayValue) -> list[tuple[str, str]]:
    """The registers that hold a value: types and operands."""
    if isinstance(item, Value):
        return [(item.type.ir, item.text)]
    return [("ptr", item.owner), ("ptr", item.data), *(("i64", size) for size in item.dims)]


def part_types(type_: Any) -> list[str]:
    """The types of the registers that hold a value of this type."""
    if isinstance(type_, Scalar):
        return [type_.ir]
    if isinstance(type_, Array):
        return ["ptr", "ptr", *["i64"] * type_.rank]
    if isinstance(type_, Tuple):
        return [part for item in type_.items for part in part_types(item)]
    return []


# Metadata of loops. NOT_VECTORIZED: neither vectorised nor unrolled. ROW: vectorised, not unrolled. MASKED_ROW: also
# the remainder is a vector, with some lanes masked. INTERLEAVED: two vectors in each trip. ELEMENTWISE: the scalar
# remainder isn't unrolled. !0, !1 and !2: function_builder.UNLIKELY, LIKELY and IS_SIZE.
NOT_VECTORIZED, ROW, MASKED_ROW, INTERLEAVED, ELEMENTWISE = "!10", "!20", "!21", "!30", "!40"
HINTS = """
!0 = !{!"branch_weights", i32 1, i32 2000}
!1 = !{!"branch_weights", i32 2000, i32 1}
!2 = !{i64 0, i64 9223372036854775807}
!10 = distinct !{!10, !11, !12}
!11 = !{!"llvm.loop.vectorize.enable", i1 false}
!12 = !{!"llvm.loop.unroll.disable"}
!20 = distinct !{!20, !12}
!21 = distinct !{!21, !12, !22}
!22 = !{!"llvm.loop.vectorize.predicate.enable", i1 true}
!30 = distinct !{!30, !31}
!31 = !{!"llvm.loop.interleave.count", i32 2}
!40 = distinct !{!40, !41}
!41 = !{!"llvm.loop.unroll.runtime.disable"}
"""


def _borrowed(types: Any) -> set[str]:
    """The variables that hold no references: each is assigned once, a parameter, for which the caller holds one until
    the function ends."""
    names = parameters_named(types.function)
    return {name for name in names if isinstance(types.variables.get(name), Array)}


def _gathered(types: Any, borrowed: set[str]) -> dict[str, int]:
    """The variables whose owners stand in one array, and where; none of a function with few arrays. Those that loops
    assign aren't among them."""
    function = types.function
    loops = [item.body for item in ir.walk(function.body) if isinstance(item, (ir.For, ir.While))]
    apart = {*borrowed, *function.parameters, *(name for body in loops for name in ir.assigned(body))}
    names = [name for name, type_ in types.variables.items() if isinstance(type_, Array) and name not in apart]
    return {name: position for position, name in enumerate(names)} if len(names) >= _MANY_ARRAYS else {}


class Writer(FunctionBuilder):
    """Writes one function of a kernel.

    program  provides the functions that it calls
    types    the types of its variables (`infer.Inference`)
    direct   whether it returns its result directly
    """

    def __init__(self, program: Any, types: Any, direct: bool) -> None:
        super().__init__()
        self.program = program
        self.types = types
        self.direct = direct
        self.loops: list[tuple[str, str]] = []  # the labels that `continue` and `break` jump to
        self.slots: dict[str, Any] = {}
        self.arrays: list[str] = []  # variables that hold references
        self.borrowed = _borrowed(types)
        # Those whose owners stand in one array, and their positions in it.
        self.gathered: dict[str, int] = {} if program.spmd else _gathered(types, self.borrowed)
        self.lanes: Any = None  # set while statements are vectorised (optimize/outer_loop_vectorize.py)
        self.plans = {} if program.spmd else outer_loop_plan.plans(types)
        self.joined: frozenset[Any] = program.joined_arguments(types)
        self.common_results: tuple[Any, ...] | None = None  # see `statements._return`; None while nobody has asked
        if not direct:
            self.stack("i32", "status", align=4)
            with self.at_start():
                self.store("i32", 0, "%status")
        elif types.result is not None:
            assert isinstance(types.result, Scalar)
            self.stack(types.result.ir, "result")
        if self.gathered:
            owners = self.stack("ptr", "owners", len(self.gathered))
            with self.at_start():
                self.clear(owners, 8 * len(self.gathered))
        self.declare_new()

    def declare_new(self) -> None:
        """Allocates stack slots for the variables that have none yet."""
        for name, type_ in self.types.variables.items():
            if name not in self.slots:
                assert type_ is not None
                self._declare(name, type_)

    def mark(self) -> Any:
        """The current end of the function, for `back_to`."""
        return len(self.entry), len(self.lines), len(self.loops), self.current, self._finished

    def back_to(self, mark: Any) -> None:
        """Removes what was written since a mark."""
        entry, lines, loops, self.current, self._finished = mark
        del self.entry[entry:], self.lines[lines:], self.loops[loops:]
        self.lanes = None

    def _declare(self, name: str, type_: Type) -> None:
        if isinstance(type_, Scalar):
            self.slots[name] = self.stack(type_.ir, f"v.{name}")
        elif isinstance(type_, Array):
            self.slots[name] = [self._owner(name), self.stack("ptr", f"v.{name}.data")]
            self.slots[name] += [self.stack("i64", f"v.{name}.{i}") for i in range(type_.rank)]
            if name not in self.borrowed:
                self.arrays.append(name)
        else:
            raise Unsupported("a variable that holds a tuple")

    def _owner(self, name: str) -> str:
        """The slot for the owner of an array that a variable holds."""
        if name not in self.gathered:
            slot = self.stack("ptr", f"v.{name}.owner")
            if name not in self.borrowed:
                with self.at_start():
                    self.store("ptr", "null", slot)
            return slot
        with self.at_start():
            return self.at("%owners", self.gathered[name], "ptr")

    # --- blocks ------------------------------------------------------------------------------------------------------

    def repeat(self, label: str, hint: str = NOT_VECTORIZED) -> None:
        """Jumps back to the beginning of a loop, with a hint for LLVM."""
        self.jump(label, f", !llvm.loop {hint}")

    def branch(self, condition: str, yes: str, no: str, unlikely: bool = False) -> None:
        self.split(condition, yes, no, UNLIKELY if unlikely else "")

    def fail(self, condition: str, status: int) -> None:
        """Leaves the function with a status if the condition holds."""
        bad, good = self.label(), self.label()
        self.branch(condition, bad, good, unlikely=True)
        self.block(bad)
        self.store("i32", status, "%status")
        self.jump("exit")
        self.block(good)

    # --- variables ---------------------------------------------------------------------------------------------------

    def read(self, name: str) -> Value | ArrayValue:
        if self.lanes is not None and self.lanes.holds(name):
            lanes: Value = self.lanes.load(name)
            return lanes
        type_ = self.types.variables[name]
        if isinstance(type_, Scalar):
            return Value(type_, self.load(type_.ir, self.slots[name]))
        assert isinstance(type_, Array)
        owner, data, *dims = self.slots[name]
        loaded = tuple(self.load("i64", slot) for slot in dims)
        return ArrayValue(type_, self.load("ptr", owner), self.load("ptr", data), loaded)

    def write(self, name: str, value: Value | ArrayValue) -> None:
        """Writes a variable. It doesn't release the array that an array variable held before (see `memory.assign`)."""
        if isinstance(value, Value):
            if self.lanes is not None and self.lanes.holds(name):
                self.lanes.store(name, value)
                return
            if value.type.lanes > 1:
                raise Unsupported("a vector in a variable that all lanes share")
            self.store(value.type.ir, value.text, self.slots[name])
            return
        owner, data, *dims = self.slots[name]
        self.store("ptr", value.owner, owner)
        self.store("ptr", value.data, data)
        for slot, size in zip(dims, value.dims):
            self.store("i64", size, slot)

    def size(self, array: ArrayValue) -> str:
        """The number of elements of an array."""
        total, *others = array.dims
        for size in others:
            total = self.binary("mul", total, size)
        return total

    def element(self, array: ArrayValue, index: Value) -> str:
        """The address of an element of a flat array."""
        offset = index.text
        if index.type != INT64 and index.type.bits < 64:
            offset = self.convert("sext" if index.type.is_signed else "zext", index.type.ir, index.text, "i64")
        return self.at(array.data, offset, f"inbounds {array.type.element.memory}")
