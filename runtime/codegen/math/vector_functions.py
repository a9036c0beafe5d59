"""Formulas (`vector_builder.py`) as functions that kernels call.

- `inline`: the instructions are inlined into the kernel.
- `outlined`: for functions with a slow path, which needs a branch. The kernel calls a function, which has vector
  variants that LLVM's loop vectoriser finds by the call's attribute `vector-function-abi-variant`.
- `joined`: several outlined functions of one operand that share most of their work (sine and cosine), in one call.
  It has vector variants, too.

`FORMULAS` (see `function_table.py`) holds them all: `runtime.llvm` links their modules, numba gets intrinsics
(`backends/numba_backend/math_intrinsics.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from runtime.codegen.math import vector_intrinsics
from runtime.codegen.math.vector_builder import (
    PURE,
    Formula,
    FormulaBuilder,
    FormulaModule,
    SimdValue,
    finished,
    vector_lengths,
)

SlowPathMask = Callable[["FormulaBuilder", "SimdValue"], "SimdValue"]


class Function:
    """A function over floats for kernels: the code of a call, and the module that defines the callee."""

    def __init__(
        self,
        name: str,
        formula: Formula,
        arity: int = 1,
        slow_path: SlowPathMask | None = None,
        slow_formula: Formula | None = None,
    ) -> None:
        """slow_path: the mask of operands for which `slow_formula` gives the result; without one, the C library."""
        self.name = name
        self.formula = formula
        self.arity = arity
        self.slow_path = slow_path
        self.slow_formula = slow_formula or functools.partial(_per_lane, name=name)
        self.joined: Joined | None = None
        self.module = functools.cache(self._module)

    def symbol(self, size: int, width: int = 1) -> str:
        """The function's symbol for floats of `size` bits, or vectors of `width` of them."""
        return f"autograph_{self.name}_f{size}{f'x{width}' if width > 1 else ''}"

    def attributes(self, size: int, width: int = 1) -> str:
        """The LLVM attributes of a call."""
        return _attributes(self.symbol(size), size, self.slow_path is not None and width == 1)

    def _module(self, size: int, width: int = 1) -> FormulaModule:
        """A module that defines the function."""
        module = ir.Module()
        if width == 1:
            self.define(module, size)
        elif self.slow_path is None:
            self._define_inline(module, size, width)
        else:
            self._write(module, self.symbol(size, width), FormulaBuilder(None, size, width))
        return finished(module, vector_intrinsics.keep_variants(module))

    def scalar_module(self, size: int) -> FormulaModule:
        """The module without versions for vectors."""
        module = ir.Module()
        if self.slow_path is None:
            self._define_inline(module, size, 1)
        else:
            self._write(module, self.symbol(size), FormulaBuilder(None, size, 1), "alwaysinline")
        return finished(module)

    def define(self, module: Any, size: int) -> Any:
        """The function in an llvmlite module, defined there if it isn't yet."""
        symbol = self.symbol(size)
        function = module.globals.get(symbol)
        if function is not None:
            return function
        if self.slow_path is not None:
            function = self._write(module, symbol, FormulaBuilder(None, size, 1))
            _write_variants(size, lambda w: self._write(module, f"{symbol}_{w}", FormulaBuilder(None, size, w)))
            return function
        return self._define_inline(module, size, 1)

    def _write(self, module: Any, symbol: str, m: FormulaBuilder, scalar: str = "noinline") -> Any:
        formulas = (self.slow_formula,)
        return _write(module, symbol, m, lambda m, x: (self.formula(m, x),), self.slow_path, formulas, scalar)

    def _define_inline(self, module: Any, size: int, width: int) -> Any:
        m = FormulaBuilder(None, size, width)
        type_ = ir.FunctionType(m.float_type, [m.float_type] * self.arity)
        function = ir.Function(module, type_, self.symbol(size, width))
        function.linkage = "linkonce_odr"
        for attribute in (*PURE, "alwaysinline"):
            function.attributes.add(attribute)
        m.builder = ir.IRBuilder(function.append_basic_block())
        m.builder.ret(self.formula(m, *(SimdValue(m, argument) for argument in function.args)).value)
        return function

    def write(self, builder: Any, size: int, arguments: Sequence[Any]) -> Any:
        """Appends a call, or the inlined formula, to an llvmlite builder."""
        if self.slow_path is None:
            m = FormulaBuilder(builder, size, 1)
            result = self.formula(m, *(SimdValue(m, value) for value in arguments)).value
            vector_intrinsics.define_in(builder.module)
            return result
        call = builder.call(self.define(builder.module, size), arguments, attrs=PURE)
        # llvmlite supports attributes without values only.
        set.add(call.attributes, f'"vector-function-abi-variant"="{_variants(self.symbol(size), size)}"')
        return call


class Joined:
    """Functions of one operand that share most of their work, in one call that returns a struct of their results."""

    def __init__(self, name: str, functions: Sequence[Function], formula: Any, slow_path: SlowPathMask) -> None:
        self.name = name
        self.names = [function.name for function in functions]
        self._formula = formula
        self._slow_path = slow_path
        self._slow_formulas = [function.slow_formula for function in functions]
        self.module = functools.cache(self._module)
        for function in functions:
            function.joined = self

    def symbol(self, size: int, width: int = 1) -> str:
        return f"autograph_{self.name}_f{size}{f'x{width}' if width > 1 else ''}"

    def attributes(self, size: int, width: int = 1) -> str:
        """The LLVM attributes of a call."""
        return _attributes(self.symbol(size), size, width == 1)

    def _module(self, size: int, width: int = 1) -> FormulaModule:
        module = ir.Module()
        symbol = self.symbol(size, width)
        self._write(module, symbol, size, width)
        if width == 1:
            _write_variants(size, lambda w: self._write(module, f"{symbol}_{w}", size, w))
        return finished(module)

    def scalar_module(self, size: int) -> FormulaModule:
        """The module without versions for vectors."""
        module = ir.Module()
        self._write(module, self.symbol(size), size, 1, "alwaysinline")
        return finished(module)

    def _write(self, module: Any, symbol: str, size: int, width: int, scalar: str = "noinline") -> Any:
        m = FormulaBuilder(None, size, width)
        return _write(module, symbol, m, self._formula, self._slow_path, self._slow_formulas, scalar)


FORMULAS: dict[str, Function] = {}


def inline(name: str, formula: Formula, arity: int = 1) -> Function:
    """Declares a function that is inlined into kernels."""
    function = FORMULAS[name] = Function(name, formula, arity)
    return function


def outlined(name: str, formula: Formula, slow_path: SlowPathMask) -> Function:
    """Declares a function of one operand with vector variants. slow_path: the mask of operands that the C library's
    function `name` computes."""
    function = FORMULAS[name] = Function(name, formula, 1, slow_path)
    return function


def joined(name: str, functions: Sequence[Function], formula: Any, slow_path: SlowPathMask) -> Joined:
    """Declares a formula that gives the results of several functions, bit for bit."""
    return Joined(name, functions, formula, slow_path)


def _attributes(symbol: str, size: int, has_variants: bool) -> str:
    named = f' "vector-function-abi-variant"="{_variants(symbol, size)}"' if has_variants else ""
    return f"nounwind memory(none) willreturn{named}"


def _variants(symbol: str, size: int) -> str:
    """The vector variants of a scalar function, in the syntax of LLVM's attribute."""
    widths = [bits // size for bits in vector_lengths()]
    return ",".join(f"_ZGV_LLVM_N{w}v_{symbol}({symbol}_{w})" for w in widths)


def _write_variants(size: int, write: Callable[[int], Any]) -> None:
    for bits in vector_lengths():
        # It has no caller before loop vectorisation: this linkage keeps it until then.
        write(bits // size).linkage = "weak_odr"


def _write(
    module: Any, symbol: str, m: FormulaBuilder, formula: Any, slow_path: Any, slow_formulas: Sequence[Formula],
    scalar: str,
) -> Any:  # fmt: skip
    """Defines a function over m.width lanes: the formula's results, and those of `slow_formulas` in the lanes of
    `slow_path`. scalar: the attribute of one over scalars. The vectoriser needs calls, machines without vectors do
    without."""
    several = len(slow_formulas) > 1
    result_type = ir.LiteralStructType([m.float_type] * len(slow_formulas)) if several else m.float_type
    function = ir.Function(module, ir.FunctionType(result_type, [m.float_type]), symbol)
    function.linkage = "linkonce_odr"  # several modules of one program may define it
    for attribute in (*PURE, *((scalar,) if m.width == 1 else ())):
        function.attributes.add(attribute)
    builder = m.builder = ir.IRBuilder(function.append_basic_block())
    x = SimdValue(m, function.args[0])
    results = formula(m, x)
    mask = slow_path(m, x)
    found = mask.value
    if m.width > 1:
        found = builder.icmp_unsigned("!=", builder.bitcast(found, ir.IntType(m.width)), ir.IntType(m.width)(0))
    start = builder.block
    with builder.if_then(found, likely=False):
        slow = [m.select(mask, other(m, x), result) for other, result in zip(slow_formulas, results)]
        end = builder.block
    chosen = []
    for result, other in zip(results, slow):
        phi = builder.phi(m.float_type)
        phi.add_incoming(result.value, start)
        phi.add_incoming(other.value, end)
        chosen.append(phi)
    whole = chosen[0]
    if several:
        whole = ir.Constant(result_type, ir.Undefined)
        for position, each in enumerate(chosen):
            whole = builder.insert_value(whole, each, position)
    builder.ret(whole)
    return function


def _per_lane(m: FormulaBuilder, x: SimdValue, name: str) -> SimdValue:
    """Calls the C library's float64 function for each lane."""
    builder = m.builder
    double = ir.DoubleType()
    library = builder.module.globals.get(name)
    if library is None:
        library = ir.Function(builder.module, ir.FunctionType(double, [double]), name)

    def single(value: Any) -> Any:
        if m.size == 64:
            return builder.call(library, [value], attrs=PURE)
        wide = builder.call(library, [builder.fpext(value, double)], attrs=PURE)
        return builder.fptrunc(wide, ir.FloatType())

    if m.width == 1:
        return SimdValue(m, single(x.value))
    before = builder.block
    loop = builder.append_basic_block("each")
    after = builder.append_basic_block("done")
    builder.branch(loop)
    builder.position_at_end(loop)
    index = builder.phi(ir.IntType(32))
    vector = builder.phi(m.float_type)
    index.add_incoming(ir.IntType(32)(0), before)
    vector.add_incoming(x.value, before)
    filled = builder.insert_element(vector, single(builder.extract_element(vector, index)), index)
    following = builder.add(index, ir.IntType(32)(1))
    index.add_incoming(following, loop)
    vector.add_incoming(filled, loop)
    builder.cbranch(builder.icmp_unsigned("<", following, ir.IntType(32)(m.width)), loop, after)
    builder.position_at_end(after)
    return SimdValue(m, filled)
