"""Types of expressions: each gets its own when it is made, and the verifier finds those that are missing or wrong."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.codegen.backends import llvm_backend
from runtime.codegen.device import library as device_library
from runtime.codegen.math.function_table import FORMULAS
from runtime.kernel_ir import functions, ir
from runtime.kernel_ir.types import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    UINT32,
    UINT64,
    Array,
    Tuple,
    Type,
)
from runtime.kernel_ir.verify import InvalidKernel, verify
from runtime.llvm import calls, device_calls
from runtime.llvm.infer import Inference
from runtime.llvm.program import Program
from tests.llvm.kernels import needed

X, N, A, B = ir.Var("x", FLOAT32), ir.size_variable("n"), ir.array_variable("a", FLOAT32), ir.Var("b", BOOL)
UNKNOWN = ir.Var("u")


@pytest.mark.parametrize(
    ("item", "type_"),
    [
        (N + 1, INT64),
        (ir.Var("k", INT32) + ir.Var("k", INT32), INT64),
        (ir.Var("k", UINT32) * ir.Var("k", UINT32), UINT64),
        (N / N, FLOAT64),
        (X * X, FLOAT32),
        (X * N, FLOAT64),
        (ir.Binary("&", B, B), BOOL),
        (ir.Unary("-", ir.Var("k", INT32)), INT64),
        (ir.negated(B), BOOL),
        (X.compare("<", X), BOOL),
        (B.choose(X, X), FLOAT32),
        (ir.load(A, N), FLOAT32),
        (ir.Size(A), INT64),
        (ir.call("max", N, 3), INT64),
        (ir.call("math.sqrt", N), FLOAT64),
        (ir.call("lib.exp", X), FLOAT32),
        (ir.call("lib.shaped", ir.Tuple((N, N)), A), Array(FLOAT32, 2)),
        (ir.Tuple((N, X)), Tuple((INT64, FLOAT32))),
        (ir.Binary("+", ir.Tuple((N,)), ir.Tuple((X,))), Tuple((INT64, FLOAT32))),
        # Not known, and not to be guessed from what is known.
        (UNKNOWN + 1, None),
        (B.choose(0, UNKNOWN), None),
        (ir.call("max", UNKNOWN, 1), None),
        (ir.call("kernel", N), None),
        # Our own compiler has no such operation.
        (ir.call("max", N, ir.Var("w", UINT64)), None),
        (A + A, None),
    ],
    ids=str,
)
def test_types_follow_from_operands(item: ir.Expr, type_: Type | None) -> None:
    assert item.type == type_


def test_rewritten_expressions_have_types() -> None:
    template = UNKNOWN * UNKNOWN
    assert template.type is None
    assert ir.substituted(template, {"u": X}).type == FLOAT32


# --- the verifier ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([ir.assign(N, UNKNOWN)], "the variable 'u' has no type"),
        ([ir.assign(N, X)], "the variable 'n' is of type float32, and here of type int64"),
        ([ir.assign("y", N), ir.assign("y", X)], "the variable 'y' is of type int64, and here of type float32"),
        ([ir.store(A, 0, N)], "n of type int64 is stored as float32"),
        ([ir.store(A, X, X)], "the index x of type float32"),
        ([ir.If(N, [ir.Return(())])], "the condition n of type int64"),
        ([ir.assign("y", ir.both(B, N))], "the condition n of type int64"),
        ([ir.For("i", ir.ZERO, ir.Var("k", INT32), ir.ONE, [])], "the bound k of type int32"),
        ([ir.assign("y", ir.Binary("+", N, N, FLOAT64))], "n + n is declared as float64, but its type is int64"),
        ([ir.assign("y", ir.call("kernel", N))], "kernel(n) has no type"),
        ([ir.assign("y", ir.call("lib.gemm", A))], "lib.gemm(a) has no type"),
        (
            [ir.Assign(("s", "y"), ir.Tuple((N, A))), ir.assign("y", ir.Var("y", Array(FLOAT64)))],
            "'y' is of type float",
        ),
    ],
)
def test_wrong_types_are_found(body: ir.Block, message: str, monkeypatch: Any) -> None:
    monkeypatch.setenv("AUTOGRAPH_STRICT", "1")
    kernel = ir.Function("kernel", ("a", "b", "k", "n", "u", "x"), [*ir.copied(body), ir.Return((N,))])
    with pytest.raises(InvalidKernel) as found:
        verify([kernel], stage="some pass")
    assert message in str(found.value)
    assert "in 'kernel' after some pass" in str(found.value)


# --- functions -------------------------------------------------------------------------------------------------------


@needed
def test_every_function_in_the_table_exists() -> None:
    """What the library's functions return is compared with the table where kernels are compiled (`llvm/infer.py`)."""
    library = llvm_backend._library()
    assert set(functions.FORMULAS) == set(FORMULAS)
    of_devices = {*device_library.library().functions, *device_library.formulas()}
    known = {*functions.FORMULAS, *library.functions, *(name for module, name in calls.BUILTINS if module == "lib")}
    known |= of_devices
    named = {name.removeprefix("lib.") for name in functions.ROWS if name.startswith("lib.")}
    assert named <= known
    machine = {f"{module}.{name}" for module, name in device_calls.BUILTINS if module == "gpu"}
    assert {name for name in functions.ROWS if name.startswith("gpu.")} == machine


@needed
def test_a_function_must_return_what_its_call_says(monkeypatch: Any) -> None:
    monkeypatch.setenv("AUTOGRAPH_STRICT", "1")
    row = functions.ROWS["lib.all_true"]
    monkeypatch.setitem(functions.ROWS, "lib.all_true", row._replace(result=lambda flags: INT64))
    kernel = ir.Function(
        "kernel", ("flags",), [ir.Return((ir.call("lib.all_true", ir.array_variable("flags", BOOL)),))]
    )
    with pytest.raises(AssertionError, match=r"lib.all_true\(flags\) is declared as .*int64"):
        Inference(Program([kernel], llvm_backend._library()), kernel, [Array(BOOL)])
