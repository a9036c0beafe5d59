"""Statements as instructions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runtime import cancellation
from runtime.kernel_ir import ir
from runtime.kernel_ir.analysis.liveness import Liveness
from runtime.kernel_ir.types import BOOL, INT64, Scalar, Unsupported, results
from runtime.llvm import memory
from runtime.llvm.arithmetic import cast
from runtime.llvm.expressions import call, condition, element, typed, value
from runtime.llvm.optimize import outer_loop_vectorize
from runtime.llvm.writer import (
    ELEMENTWISE,
    INTERLEAVED,
    MASKED_ROW,
    ROW,
    ArrayValue,
    Value,
    Writer,
    part_types,
    parts,
)


def block(w: Writer, statements: Sequence[ir.Statement]) -> None:
    """Writes statements in order."""
    for item in statements:
        cancellation.point()
        _WRITERS[type(item)](w, item)


# --- variables and elements ------------------------------------------------------------------------------------------


def _assign(w: Writer, item: ir.Assign) -> None:
    if len(item.targets) > 1:
        if isinstance(item.value, ir.Call):
            _assign_results(w, item.targets, item.value)
        else:
            _assign_several(w, item.targets, w.types.items(item.value))
        return
    (name,) = item.targets
    if name not in w.types.tuples:  # the items of a tuple take its place
        _to_variable(w, name, _for_variable(w, name, item.value))


def _for_variable(w: Writer, name: str, item: ir.Expr) -> Value | ArrayValue:
    type_ = w.types.variables[name]
    assert type_ is not None
    return typed(w, item, type_)


def _to_variable(w: Writer, name: str, found: Value | ArrayValue) -> None:
    if isinstance(found, ArrayValue):
        memory.assign(w, name, found)
    else:
        w.write(name, found)


def _assign_several(w: Writer, names: Sequence[str], values: Sequence[ir.Expr]) -> None:
    found = [_for_variable(w, name, item) for name, item in zip(names, values)]
    sources = [item.name for item in values if isinstance(item, ir.Var)]
    if sorted(names) == sorted(sources):  # an exchange leaves the reference counts as they are
        for name, each in zip(names, found):
            w.write(name, each)
        return
    for each in found:
        if isinstance(each, ArrayValue):
            memory.take(w, each)
    for name, each in zip(names, found):
        if isinstance(each, ArrayValue):
            each = ArrayValue(each.type, each.owner, each.data, each.dims, owned=True)
        _to_variable(w, name, each)


def _assign_results(w: Writer, names: Sequence[str], item: ir.Call) -> None:
    for name, found in zip(names, call(w, item)):
        kind = w.types.variables[name]
        _to_variable(w, name, cast(w, found, kind) if isinstance(kind, Scalar) else found)


def _alloc(w: Writer, item: ir.Alloc) -> None:
    type_ = w.types.variables[item.name]
    memory.assign(w, item.name, memory.empty(w, type_, value(w, item.size, INT64)))


def _store(w: Writer, item: ir.Store) -> None:
    kind = w.types.element(item.array)
    found = value(w, item.value, kind)
    address = element(w, item.array, item.index)
    text = w.convert("zext", "i1", found.text, "i8") if kind == BOOL else found.text
    w.line(f"store {kind.memory} {text}, {address}")


# --- branches and loops ----------------------------------------------------------------------------------------------


def _if(w: Writer, item: ir.If) -> None:
    if w.lanes is not None and w.lanes.plan.differs(item.test):
        w.lanes.if_(item)
        return
    yes, no, after = w.label(), w.label(), w.label()
    w.branch(condition(w, item.test), yes, no if item.orelse else after, unlikely=leaves(item.body))
    w.block(yes)
    block(w, item.body)
    w.jump(after)
    if item.orelse:
        w.block(no)
        block(w, item.orelse)
        w.jump(after)
    w.block(after)


def _while(w: Writer, item: ir.While) -> None:
    if w.lanes is not None and w.lanes.plan.diverges(item):
        w.lanes.while_(item)
        return
    if outer_loop_vectorize.write(w, block, item):
        return
    test, body, after = w.label(), w.label(), w.label()
    w.block(test)
    w.branch(condition(w, item.test), body, after)
    w.block(body)
    w.loops.append((test, after))
    block(w, item.body)
    w.loops.pop()
    w.jump(test)
    w.block(after)


def _for(w: Writer, item: ir.For) -> None:
    kind = w.types.variables[item.index]
    assert isinstance(kind, Scalar)
    if kind.is_float:
        raise Unsupported("a range of floats")
    start, stop = value(w, item.start, kind), value(w, item.stop, kind)
    step = w.types.constant(item.step)
    if not isinstance(step, int) or step == 0:
        raise Unsupported("a range with a computed step")
    counter = w.stack(kind.ir)
    w.store(kind.ir, start.text, counter)
    test, body, following, after = (w.label() for _ in range(4))
    w.block(test)
    index = w.load(kind.ir, counter)
    sign = "s" if kind.is_signed else "u"
    w.branch(w.binary(f"icmp {sign}{'lt' if step > 0 else 'gt'}", index, stop.text, kind.ir), body, after)
    w.block(body)
    w.write(item.index, Value(kind, index))
    w.loops.append((following, after))
    block(w, item.body)
    w.loops.pop()
    w.block(following)
    # With a step of 1 the index can't overflow, since it is below the bound.
    flags = f" n{sign}w" if step == 1 else ""
    again = w.load(kind.ir, counter)
    w.store(kind.ir, w.binary(f"add{flags}", again, step, kind.ir), counter)
    hint = _row_hint(w, item, stop.text) or _interleaving_hint(item) or _elementwise_hint(item)
    if hint:
        w.repeat(test, hint)
    else:
        w.jump(test)
    w.block(after)


# Up to so many elements, LLVM may unroll a row, and then vectorise over several rows.
_UNROLLED = 4
_WIDE = 16  # elements: about as many as fit a vector
_TAKEN_TOGETHER = 32  # bytes of a row: up to so many, LLVM computes totals of several rows as vectors


def _row_hint(w: Writer, item: ir.For, count: str) -> str | None:
    """The hint for a loop along a row of constant length in a part of a nest; None for other loops."""
    function = w.types.function
    if not count.isdigit() or function.kind != "part" or int(count) <= _UNROLLED:
        return None
    statements = [item, *ir.walk(item.body)]
    expressions = [each for statement in statements for each in ir.expressions(statement)]
    if _reduces_rows(function):
        sizes = [(w.types.scalar(each).bits + 7) // 8 for each in expressions if isinstance(each, (ir.Load, ir.Dim))]
        stores = [statement for statement in statements if isinstance(statement, ir.Store)]
        sizes += [(w.types.element(store.array).bits + 7) // 8 for store in stores]
        if int(count) * max(sizes, default=1) <= _TAKEN_TOGETHER:
            return None
    slow = any(isinstance(each, ir.Call) and _is_formula(w, each.function) for each in expressions)
    left_over = int(count) % _WIDE
    return MASKED_ROW if slow and (int(count) < _WIDE or left_over > _WIDE // 2) else ROW


def _is_formula(w: Writer, function: str) -> bool:
    found: bool = "." in function and w.program.has_formula(function.rpartition(".")[2])
    return found


def _reduces_rows(function: ir.Function) -> bool:
    """Whether a part of a nest stores nothing along its rows."""
    (rows,) = (item for item in function.body if isinstance(item, ir.For))
    inner = [item for item in ir.walk(rows.body) if isinstance(item, ir.For)]
    return not any(isinstance(item, ir.Store) for loop in inner for item in ir.walk(loop.body))


def _interleaving_hint(item: ir.For) -> str | None:
    """Has a loop with both divisions and roots process two vectors in each trip, so that some of these can be computed
    by Newton's iteration while the divider is busy (`divide_by_newton.py`)."""
    divides = roots = False
    for statement in ir.walk(item.body):
        if isinstance(statement, (ir.For, ir.While)):
            return None
        for each in ir.expressions(statement):
            divides |= isinstance(each, ir.Binary) and each.op == "/"
            roots |= isinstance(each, ir.Call) and each.function.endswith(".sqrt")
    return INTERLEAVED if divides and roots else None


def _elementwise_hint(item: ir.For) -> str | None:
    """The hint for a loop that stores elements and carries nothing from a trip to the next. LLVM vectorises such a loop
    and keeps a scalar version for arrays that overlap. Ours never do, so the scalar version isn't worth unrolling: that
    was a third of the code of many kernels."""
    if not {type(statement) for statement in item.body} <= {ir.Assign, ir.Store}:
        return None
    carried = Liveness().exposed(item.body) & ir.assigned(item.body) - {item.index}
    return ELEMENTWISE if not carried else None


def _break(w: Writer, item: ir.Break) -> None:
    w.jump(w.loops[-1][1])


def _continue(w: Writer, item: ir.Continue) -> None:
    w.jump(w.loops[-1][0])


# --- leaving the function --------------------------------------------------------------------------------------------


def leaves(body: ir.Block) -> bool:
    """Whether a block ends by leaving the function."""
    return bool(body) and isinstance(body[-1], (ir.Return, ir.Fail))


def _return(w: Writer, item: ir.Return | ir.Fail) -> None:
    if w.lanes is not None and w.lanes.must_run_alone(item):
        w.jump(w.lanes.alone)
        return
    items = _returned_items(w, item)
    if items:
        if w.types.result is None:
            raise Unsupported("a result whose type isn't known")
        if w.direct:
            (found,) = _typed_results(w, items, 0)
            w.store(found.type.ir, found.text, "%result")  # type: ignore[union-attr]
            w.jump("exit")
            return
        shared = _common_results(w) if _fails(items) and w.lanes is None else 0
        _write_results(w, items[: len(items) - shared], 0)
        if shared:
            w.jump(_FAILED)
            return
    w.jump("exit")


_FAILED = "failed"  # the block that writes the results that all failing returns of a function have in common
_FEW_RESULTS = 4  # which aren't worth a block


def _returned_items(w: Writer, item: ir.Return | ir.Fail) -> Sequence[ir.Expr]:
    """The results of a return, those of a tuple one by one."""
    values = w.types.returned(item)
    items = w.types.items(values[0]) if len(values) == 1 else None
    return tuple(values if items is None else items)


def _fails(items: Sequence[ir.Expr]) -> bool:
    return len(items) > 1 and items[0] != ir.ZERO


def _common_results(w: Writer) -> int:
    """How many of the last results are the same variables and constants in all returns with an error's status.

    A kernel with many loops has as many of these returns, and its gradient as many results, all of which each of them
    would write.
    """
    if w.common_results is None:
        common: Sequence[ir.Expr] | None = None
        count = 0
        for item in ir.walk(w.types.function.body):
            if not isinstance(item, (ir.Return, ir.Fail)):
                continue
            items = _returned_items(w, item)
            if not _fails(items):
                continue
            count += 1
            common = _common_end(items[1:] if common is None else common, items)
        w.common_results = () if common is None or count < 2 or len(common) < _FEW_RESULTS else tuple(common)
    return len(w.common_results)


def _common_end(one: Sequence[ir.Expr], other: Sequence[ir.Expr]) -> Sequence[ir.Expr]:
    """The last of some results as far as they are the same variables and constants as the last of others."""
    length = 0
    for a, b in zip(reversed(one), reversed(other)):
        if not isinstance(a, (ir.Var, ir.Const)) or (a is not b and a != b):
            break
        length += 1
    return one[len(one) - length :]


def write_common_results(w: Writer) -> None:
    """Writes the block of results that failing returns share, if there is one."""
    if w.common_results:
        w.jump("exit")
        w.block(_FAILED)
        _write_results(w, w.common_results, len(results(w.types.result)) - len(w.common_results))
        w.jump("exit")


def _typed_results(w: Writer, items: Sequence[ir.Expr], first: int) -> list[Value | ArrayValue]:
    found = [typed(w, each, type_) for each, type_ in zip(items, results(w.types.result)[first:])]
    if any(isinstance(each, Value) and each.type.lanes > 1 for each in found):
        raise Unsupported("a vector as a result")
    return found


def _write_results(w: Writer, items: Sequence[ir.Expr], first: int) -> None:
    """Writes results to the memory that the caller gave, from the result number `first` on."""
    position = sum(len(part_types(each)) for each in results(w.types.result)[:first])
    for each in _typed_results(w, items, first):
        position = _write_result(w, each, position)


def _write_result(w: Writer, item: Value | ArrayValue, position: int) -> int:
    """Writes a result to the memory that the caller gave; returns the position of the next result."""
    if isinstance(item, Value):
        w.store(item.type.ir, item.text, f"%out{position}")
        return position + 1
    memory.take(w, item)
    for offset, (type_, text) in enumerate(parts(item)):
        w.store(type_, text, f"%out{position + offset}")
    return position + 2 + item.type.rank


def _run(w: Writer, item: ir.Run) -> None:
    found = call(w, item.call)
    if isinstance(found, ArrayValue) and found.owned:
        memory.drop(w, found.owner)


_WRITERS: dict[type, Callable[[Writer, Any], None]] = {
    ir.Assign: _assign,
    ir.Alloc: _alloc,
    ir.Store: _store,
    ir.If: _if,
    ir.While: _while,
    ir.For: _for,
    ir.Break: _break,
    ir.Continue: _continue,
    ir.Run: _run,
    ir.Return: _return,
    ir.Fail: _return,
}
