"""Generic functions of the library for given types of their parameters, with the type of each expression.

    def added(x, total):                       def added_float32(x, total):
        for i in range(x.size):          →         for i in range(x.size):
            total = total + x[i]                       total = total + x[i]      float32[:], float64

What inference finds is written to the expressions (`infer.py`). Where a variable gets a value of another type than its
own, the value is converted; where a number is tested, it is compared with 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runtime.kernel_ir import ir
from runtime.kernel_ir.functions import row_of
from runtime.kernel_ir.types import BOOL, FLOAT64, INT64, UINT64, Array, Scalar, Type
from runtime.llvm.infer import Inference


def specialized(
    function: ir.Function, name: str, types: Inference, callee: Callable[[ir.Call], str] = lambda call: call.function
) -> ir.Function:
    """A copy of the function with this name, for the types that inference has found. callee: the name of the function
    that takes the place of the one in a call with typed arguments."""
    return ir.Function(name, function.parameters, _Specialized(types, callee).block(function.body), "library")


class _Specialized:
    def __init__(self, types: Inference, callee: Callable[[ir.Call], str]) -> None:
        self._types, self._callee = types, callee

    def block(self, block: ir.Block) -> ir.Block:
        found: ir.Block = []
        for item in block:
            if isinstance(item, ir.Assign) and item.targets[0] in self._types.tuples:
                continue  # its reads have the items
            (new,) = ir.copied([item])
            ir.map_operands(new, self.expression)
            self._convert(new)
            for inner in ir.blocks(new):
                inner[:] = self.block(inner)
            found.append(new)
        return found

    def _convert(self, item: ir.Statement) -> None:
        """Converts the operands of a statement to the types that it needs."""
        if isinstance(item, ir.Assign):
            wanted = [self._types.variables[name] for name in item.targets]
            if isinstance(item.value, ir.Tuple):
                item.value = ir.Tuple(tuple(map(_converted, item.value.items, wanted)))
            elif len(wanted) == 1:
                item.value = _converted(item.value, wanted[0])
        elif isinstance(item, ir.Alloc):
            if isinstance(item.element, ir.Named):
                item.element = item.element.target
        elif isinstance(item, ir.Store):
            assert isinstance(item.array.type, Array)
            item.value = _converted(item.value, item.array.type.element)
        elif isinstance(item, ir.For):
            item.start, item.stop, item.step = (_converted(each, INT64) for each in (item.start, item.stop, item.step))
        elif isinstance(item, (ir.If, ir.While)):
            item.test = _truth(item.test)

    def expression(self, item: ir.Expr) -> ir.Expr:
        types = self._types
        if isinstance(item, ir.Var):
            if item.name in types.variables:
                return ir.Var(item.name, types.variables[item.name])
            if item.name in types.tuples:
                return ir.Tuple(tuple(map(self.expression, types.tuples[item.name])))
        if isinstance(item, ir.ElementType):
            named: Any = types.named(item)
            return ir.Named(named.type)
        if isinstance(item, (ir.Var, ir.Unary, ir.Binary)):
            value = types.constant(item)
            if value is not None:
                return ir.Const(value, _literal_type(value))
        new = ir.rebuilt(item, self.expression)
        if isinstance(new, ir.Select):
            return ir.Select(_truth(new.test), new.yes, new.no)
        if isinstance(new, ir.Call):
            assert isinstance(item, ir.Call)
            stated = types.result_of(item) if row_of(item.function) is None else None
            return ir.Call(self._callee(new), new.arguments, stated)
        return new


def _literal_type(value: bool | int | float) -> Scalar:
    if isinstance(value, bool):
        return BOOL
    return FLOAT64 if isinstance(value, float) else INT64 if -(2**63) <= value < 2**63 else UINT64


def _converted(item: ir.Expr, wanted: Type | None) -> ir.Expr:
    return ir.Convert(wanted, item) if isinstance(wanted, Scalar) and item.type != wanted else item


def _truth(item: ir.Expr) -> ir.Expr:
    return item if item.type == BOOL else item.compare("!=", 0)
