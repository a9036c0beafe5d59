"""Calls of matrix products of floats, which are linked by their symbols: `codegen/native_runtime/gemm.py` and
`indirect_gemm.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runtime.kernel_ir.types import INT64
from runtime.llvm import arithmetic
from runtime.llvm.writer import Writer

SYMBOLS = {"float32": "autograph_product_float32", "float64": "autograph_product_float64"}
INDIRECT_SYMBOLS = {
    "float32": "autograph_indirect_product_float32",
    "float64": "autograph_indirect_product_float64",
}


def write(w: Writer, operands: Sequence[Any], type_: Any) -> None:
    """Calls the product. operands: the three arrays, each with an offset; rows, inner dimension, columns; whether `a`
    and `b` are stored transposed; the number of threads."""
    a, a0, b, b0, out, out0, rows, inner, columns, transposed_a, transposed_b, threads = operands
    symbol = SYMBOLS[out.type.element.name]
    w.program.declare(f"declare void @{symbol}(ptr, ptr, ptr, i64, i64, i64, i64, i64)")
    addresses = [w.element(array, arithmetic.cast(w, at, INT64)) for array, at in ((a, a0), (b, b0), (out, out0))]
    bits = [w.convert("zext", "i1", arithmetic.truth(w, each).text, "i64") for each in (transposed_a, transposed_b)]
    transposed = w.binary("or", bits[0], w.binary("shl", bits[1], 1))
    numbers = [arithmetic.cast(w, number, INT64).text for number in (rows, inner, columns)]
    given = [*(f"ptr {address}" for address in addresses), *(f"i64 {number}" for number in (*numbers, transposed))]
    w.run(f"@{symbol}", *given, f"i64 {arithmetic.cast(w, threads, INT64).text}")


def write_indirect(w: Writer, operands: Sequence[Any], type_: Any) -> None:
    """Calls the indirect product. operands: the first array and the table of its rows, with offsets; that of its
    columns; the second array and the result, with offsets; rows, inner dimension, columns; whether it is added to the
    result."""
    a, a0, rows_at, rows_at0, inner_at, b, b0, out, out0, rows, inner, columns, add = operands
    symbol = INDIRECT_SYMBOLS[out.type.element.name]
    w.program.declare(f"declare void @{symbol}(ptr, ptr, ptr, ptr, ptr, i64, i64, i64, i64)")
    places = (a, a0), (rows_at, rows_at0), (b, b0), (out, out0)
    addresses = [w.element(array, arithmetic.cast(w, at, INT64)) for array, at in places]
    addresses.insert(2, inner_at.data)
    numbers = [arithmetic.cast(w, number, INT64).text for number in (rows, inner, columns)]
    numbers.append(w.convert("zext", "i1", arithmetic.truth(w, add).text, "i64"))
    w.run(f"@{symbol}", *(f"ptr {each}" for each in addresses), *(f"i64 {each}" for each in numbers))
