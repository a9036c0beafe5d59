"""Whether LLVM could vectorise a function's loops, or unroll them. If not, the passes that would try are left out:
those for vectors take a third of LLVM's time.

    while abs(x * x - a) > 1e-6:      the trip count is known only at the end: no vectors
        x = 0.5 * (x + a / x)

    while index < n:                  each trip needs the float of the last one: no vectors
        x = r * x * (1.0 - x)
        index = index + 1

    while index < n:                  sums of integers: vectors
        total = total + values[index]
        index = index + 1

Outer loops are vectorised by ourselves (`outer_loop_vectorize.py`), before LLVM gets the text.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from runtime.kernel_ir import ir
from runtime.kernel_ir.analysis.liveness import Liveness
from runtime.kernel_ir.analysis.loops import has_loops
from runtime.kernel_ir.types import Scalar, Type


def no_loop_has_vectors(body: ir.Block, types: Mapping[str, Type | None]) -> bool:
    """types: of the function's variables."""
    for item in ir.walk(body):
        if isinstance(item, ir.For):
            return False
        if isinstance(item, ir.While) and not has_loops(item.body) and _may_have_vectors(item, types):
            return False
    return True


def a_trip_count_may_be_constant(body: ir.Block) -> bool:
    """Whether LLVM could unroll a loop: one over a constant range, or an innermost one by a condition. Around another
    loop, unrolling would only make more code."""
    for item in ir.walk(body):
        if isinstance(item, ir.For) and all(isinstance(each, ir.Const) for each in (item.start, item.stop)):
            return True
        if isinstance(item, ir.While) and not has_loops(item.body) and _may_be_counted(item):
            return True
    return False


def _may_have_vectors(loop: ir.While, types: Mapping[str, Type | None]) -> bool:
    return _may_be_counted(loop) and not _has_float_recurrence(loop.body, types)


def _may_be_counted(loop: ir.While) -> bool:
    """Whether the trip count may be known when the loop begins."""
    assigned = ir.assigned(loop.body)
    exits = [item.test for item in ir.walk(loop.body) if isinstance(item, ir.If) and _leaves(item)]
    return any(_may_count(each, assigned) for test in (loop.test, *exits) for each in _parts(test))


def _leaves(item: ir.If) -> bool:
    return any(isinstance(each, ir.Break) for block in ir.blocks(item) for each in ir.walk(block))


def _parts(test: ir.Expr) -> tuple[ir.Expr, ...]:
    return tuple(part for each in test.operands for part in _parts(each)) if isinstance(test, ir.Logic) else (test,)


def _may_count(test: ir.Expr, assigned: set[str]) -> bool:
    """Whether a test may be on an induction variable."""
    while isinstance(test, ir.Unary):
        test = test.operand
    if not isinstance(test, ir.Compare):
        return False
    return _is_linear(test.left, assigned) and _is_linear(test.right, assigned)


def _is_linear(item: ir.Expr, assigned: set[str]) -> bool:
    """Whether an expression changes by a constant in each trip if the variables of the loop do."""
    if ir.variables(item).isdisjoint(assigned):
        return True
    if isinstance(item, ir.Convert):
        return _is_linear(item.operand, assigned)
    if isinstance(item, ir.Binary):
        both = _is_linear(item.left, assigned) and _is_linear(item.right, assigned)
        varying = [not ir.variables(each).isdisjoint(assigned) for each in (item.left, item.right)]
        return both and (item.op in "+-" or (item.op == "*" and not all(varying)))
    return isinstance(item, ir.Var)


def _has_float_recurrence(body: ir.Block, types: Mapping[str, Type | None]) -> bool:
    """Whether a trip computes a float from that of the trip before by operations that can't be reordered. (`lib.add`
    can.)"""
    made_of: dict[str, set[str]] = defaultdict(set)  # the variables that a variable is computed from
    in_order: dict[str, set[str]] = defaultdict(
        set
    )  # those of them that it is computed from by operations that can't be reordered
    for item in ir.walk(body):
        if isinstance(item, ir.Assign):
            operations = [each for each in ir.expressions(item) if isinstance(each, ir.Binary)]
            for name in item.targets:
                made_of[name] |= ir.variables(item.value)
                if _is_float(types.get(name)):
                    in_order[name] |= {used for each in operations for used in ir.variables(each)}
    carried = Liveness().exposed(body) & made_of.keys()
    for name in carried:
        if _is_float(types.get(name)):
            before = _sources(name, made_of)
            for made in before | {name}:
                if any(name == used or name in _sources(used, made_of) for used in in_order[made]):
                    return True
    return False


def _is_float(type_: Type | None) -> bool:
    return isinstance(type_, Scalar) and type_.is_float


def _sources(name: str, made_of: Mapping[str, set[str]]) -> set[str]:
    """All variables from which a variable is computed, in this trip or in earlier ones."""
    found: set[str] = set()
    left = [name]
    while left:
        for each in made_of.get(left.pop(), ()):
            if each not in found:
                found.add(each)
                left.append(each)
    return found
