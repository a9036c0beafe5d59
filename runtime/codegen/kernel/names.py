"""Identifiers made from the user's names, and the expressions of ops' scalar rules.

>>> names = Names()
>>> names.fresh("x"), names.fresh("x"), names.fresh("self.h"), names.fresh("lambda")
('x', 'x_1', 'self_h', 'lambda_1')
"""

from __future__ import annotations

import builtins
import functools
import keyword
import re
from collections.abc import Sequence
from typing import Any

from runtime.codegen.kernel import scalars
from runtime.dtypes import DType, float32
from runtime.kernel_ir import ir
from runtime.kernel_ir.parse_python import parse_expression
from runtime.ops.table import OpDef

# Names in kernel text that aren't its variables.
_OWN = {"np", "math", "kernel", "lib", ir.TICKS, "threads", "first", "last"}
_RESERVED = frozenset({*_OWN, *keyword.kwlist, *keyword.softkwlist, *dir(builtins)})


class Names:
    """Makes identifiers that are unique in a kernel."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}
        self._taken: set[str] = set()

    def fresh(self, base: str | None) -> str:
        """A new identifier that reads like `base`."""
        base = re.sub(r"\W+", "_", base or "").strip("_")
        # Other scripts are legal in identifiers, but ASCII can be read and compared by everybody.
        if not base or not base.isascii() or base[0].isdigit():
            base = "t"
        number = self._next.get(base, 0)
        name = base if number == 0 and base not in _RESERVED and base != "t" else f"{base}_{max(number, 1)}"
        while name in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._next[base] = max(number, 1)
        self._taken.add(name)
        return name

    def snapshot(self) -> tuple:
        return dict(self._next), set(self._taken)

    def restore(self, saved: tuple) -> None:
        self._next, self._taken = dict(saved[0]), set(saved[1])


def rule_expression(rule: Any, operands: Sequence[ir.Expr], sources: Sequence[DType], output: DType) -> ir.Expr:
    """The expression of an op's scalar rule with the given operands."""
    template = template_of(rule, operands, sources, output)
    return ir.substituted(template, {_slot(k): each for k, each in enumerate(operands)})


def joined(op: OpDef, element: ir.Expr, update: ir.Expr, dtype: DType) -> ir.Expr:
    """The new element of an update by an elementwise op, in `dtype`; of narrow floats it is computed in float32."""
    own = float32 if dtype.is_narrow else dtype
    operands = [scalars.convert(each, dtype, own) for each in (element, update)]
    return scalars.convert(scalars.narrow(rule_expression(op.scalar, operands, [own, own], own), own), own, dtype)


def template_of(rule: Any, operands: Sequence[ir.Expr], sources: Sequence[DType], output: DType) -> ir.Expr:
    """A scalar rule as an expression in which the variables `_0`, `_1` ... stand for the operands. Constants stand for
    themselves, since a rule may depend on them."""
    shown = tuple(str(each) if isinstance(each, ir.Const) else _slot(k) for k, each in enumerate(operands))
    return _template(rule, shown, tuple(sources), output)


@functools.lru_cache(maxsize=1 << 12)
def _template(rule: Any, operands: tuple[str, ...], sources: tuple[DType, ...], output: DType) -> ir.Expr:
    return parse_expression(rule.format(*operands) if isinstance(rule, str) else rule(operands, sources, output))


def uses(template: ir.Expr, index: int) -> int:
    """How often a template uses an operand."""
    slot = _slot(index)
    return sum(isinstance(each, ir.Var) and each.name == slot for each in ir.subexpressions(template))


def _slot(index: int) -> str:
    return f"_{index}"
