"""Formulas (`vector_builder.py`) as functions that kernels call.

- `inline`: the instructions stand where the function is called.
- `outlined`: for functions with a rare slow path, which needs a branch. The kernel calls a function; beside it stand
  versions for vectors, which LLVM's loop vectoriser finds by the call's attribute `vector-function-abi-variant`.
- `joined`: several outlined functions of one number that share most of their work, in one call.

`FORMULAS` (see `function_table.py`) holds them all: kernels take modules from it (`runtime.llvm`), numba intrinsics
(`backends/numba_backend/math_intrinsics.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from runtime.codegen.math import vector_intrinsics
from runtime.codegen.math.vector_builder import PURE, Formula, Lane, Math, vector_lengths

Rare = Callable[["Math", "Lane"], "Lane"]


class Function:
    """A function of floats for kernels: how its call is written, and the module that holds what is called."""

    def __init__(
        self, name: str, formula: Formula, arity: int = 1, rare: Callable[[Math, Lane], Lane] | None = None
    ) -> None:
        self.name = name
        self.formula = formula
        self.arity = arity
        self.rare = rare
        self.joined: Joined | None = None
        self.module = functools.cache(self._module)
        FORMULAS[name] = self

    def symbol(self, size: int, width: int = 1) -> str:
        """The function's name in modules, for floats of `size` bits, or vectors of `width` of them."""
        return f"autograph_{self.name}_f{size}{f'x{width}' if width > 1 else ''}"

    def attributes(self, size: int, width: int = 1) -> str:
        """What LLVM must know of a call."""
        if self.rare is None or width > 1:
            return "nounwind memory(none)"
        return f'nounwind memory(none) "vector-function-abi-variant"="{self._variants(size)}"'

    def _variants(self, size: int) -> str:
        scalar = self.symbol(size)
        widths = [bits // size for bits in vector_lengths()]
        return ",".join(f"_ZGV_LLVM_N{w}v_{scalar}({scalar}_{w})" for w in widths)

    def _module(self, size: int, width: int = 1) -> str:
        """The text of a module that defines the function."""
        module = ir.Module()
        if width == 1:
            self.define(module, size)
        elif self.rare is None:
            self._define_inline(module, size, width)
        else:
            self._write(module, self.symbol(size, width), Math(None, size, width))
        return vector_intrinsics.kept(str(module))

    def define(self, module: Any, size: int) -> Any:
        """The function in a module of llvmlite's; written when it is first asked for."""
        symbol = self.symbol(size)
        function = module.globals.get(symbol)
        if function is not None:
            return function
        if self.rare is not None:
            function = self._write(module, symbol, Math(None, size, 1))
            for w in (bits // size for bits in vector_lengths()):
                # Nothing calls it before loops are vectorised: this linkage keeps it until then.
                variant = self._write(module, f"{symbol}_{w}", Math(None, size, w))
                variant.linkage = "weak_odr"
            return function
        return self._define_inline(module, size, 1)

    def _write(self, module: Any, symbol: str, m: Math) -> Any:
        return _write(module, symbol, m, (self.name,), lambda m, x: (self.formula(m, x),), self.rare)

    def _define_inline(self, module: Any, size: int, width: int) -> Any:
        m = Math(None, size, width)
        type_ = ir.FunctionType(m.float_type, [m.float_type] * self.arity)
        function = ir.Function(module, type_, self.symbol(size, width))
        function.linkage = "linkonce_odr"
        for attribute in (*PURE, "alwaysinline"):
            function.attributes.add(attribute)
        m.builder = ir.IRBuilder(function.append_basic_block())
        m.builder.ret(self.formula(m, *(Lane(m, argument) for argument in function.args)).value)
        return function

    def write(self, builder: Any, size: int, arguments: Sequence[Any]) -> Any:
        """The call, or the formula itself, where llvmlite's builder stands."""
        if self.rare is None:
            m = Math(builder, size, 1)
            result = self.formula(m, *(Lane(m, value) for value in arguments)).value
            vector_intrinsics.complete(builder.module)
            return result
        call = builder.call(self.define(builder.module, size), arguments, attrs=PURE)
        # llvmlite knows the attributes without values only.
        set.add(call.attributes, f'"vector-function-abi-variant"="{self._variants(size)}"')
        return call


class Joined:
    """Functions of one number that share most of their work, in one call: its result holds theirs in order."""

    def __init__(self, name: str, functions: Sequence[Function], formula: Any, rare: Rare) -> None:
        self.name = name
        self.names = [function.name for function in functions]
        self._formula = formula
        self._rare = rare
        self.module = functools.cache(self._module)
        for function in functions:
            function.joined = self

    def symbol(self, size: int, width: int = 1) -> str:
        return f"autograph_{self.name}_f{size}{f'x{width}' if width > 1 else ''}"

    def _module(self, size: int, width: int = 1) -> str:
        module = ir.Module()
        _write(module, self.symbol(size, width), Math(None, size, width), self.names, self._formula, self._rare)
        return str(module)


FORMULAS: dict[str, Function] = {}


def inline(name: str, formula: Formula, arity: int = 1) -> Function:
    """A function for kernels whose code stands in the kernel itself."""
    return Function(name, formula, arity)


def outlined(name: str, formula: Formula, rare: Rare) -> Function:
    """A function of one number, with vector versions; the C library's function `name` does the rare numbers."""
    return Function(name, formula, 1, rare)


def joined(name: str, functions: Sequence[Function], formula: Any, rare: Rare) -> Joined:
    """Says that a formula gives the results of several functions, to the bit."""
    return Joined(name, functions, formula, rare)


def _write(module: Any, symbol: str, m: Math, names: Sequence[str], formula: Any, rare: Any) -> Any:
    """A function over m.width numbers: the formula's results, and for lanes that `rare` names the C library's."""
    several = len(names) > 1
    result_type = ir.LiteralStructType([m.float_type] * len(names)) if several else m.float_type
    function = ir.Function(module, ir.FunctionType(result_type, [m.float_type]), symbol)
    function.linkage = "linkonce_odr"  # several parts of one program may hold it
    for attribute in (*PURE, *(("noinline",) if m.width == 1 else ())):
        function.attributes.add(attribute)
    builder = m.builder = ir.IRBuilder(function.append_basic_block())
    x = Lane(m, function.args[0])
    results = formula(m, x)
    mask = rare(m, x)
    found = mask.value
    if m.width > 1:
        found = builder.icmp_unsigned("!=", builder.bitcast(found, ir.IntType(m.width)), ir.IntType(m.width)(0))
    start = builder.block
    with builder.if_then(found, likely=False):
        slow = [m.select(mask, Lane(m, _one_by_one(m, x, name)), result) for name, result in zip(names, results)]
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


def _one_by_one(m: Math, x: Lane, name: str) -> Any:
    """The C library's float64 function of each number."""
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
        return single(x.value)
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
    return filled
