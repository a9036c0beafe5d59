"""Types in kernels: those of constants and loop counters, and what failures return."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from runtime.codegen.backends import llvm_backend
from runtime.kernel_ir import ir, print_python
from runtime.kernel_ir.parse_python import parse_functions
from runtime.kernel_ir.types import FLOAT32, FLOAT64, INT32, INT64, SCALARS, Scalar, Tuple, Unsupported
from runtime.llvm import target
from runtime.llvm.infer import Inference
from runtime.llvm.program import Program
from tests.growth import work
from tests.llvm.kernels import needed, ours
from tests.llvm.test_outer_loops import SPIRAL

pytestmark = needed

X, N = ir.Var("x"), ir.Var("n")


def function(*body: ir.Statement, parameters: tuple[str, ...] = ("x",)) -> ir.Function:
    return ir.Function("kernel", parameters, list(body))


def program(*functions: ir.Function, **options: Any) -> Program:
    return Program(functions, llvm_backend._library(), **options)


def inferred(kernel: ir.Function, *types: Scalar) -> Inference:
    return Inference(program(kernel), kernel, types)


def run(module: Program, signature: str, name: str, *arguments: Any) -> Any:
    code = target.machine_code(module.text("kernel", signature, name), [])
    return target.entry_point(code, name, llvm_backend._symbols())(*arguments)


# --- constants -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "signature", "given", "expected"),
    [
        ("x + np.float32(0.1)", "(float64,)", 1.0, 1.0 + float(np.float32(0.1))),
        ("x + np.uint8(200)", "(int64,)", 1, 201),
        ("x + np.float64(np.uint8(200))", "(float64,)", 1.0, 201.0),
        ("x + np.int8(-56)", "(int64,)", 1, -55),
        ("x + np.int64(np.uint32(4294967295))", "(int64,)", 1, 4294967296),
        ("x + -np.float32(0.1)", "(float64,)", 1.0, 1.0 - float(np.float32(0.1))),
        ("x + np.float32(1e39)", "(float64,)", 1.0, np.inf),
        ("x + (4611686018427387904 + 4611686018427387904)", "(int64,)", 1, 1 - 2**63),  # as int64 wraps
    ],
)
def test_a_constant_has_the_value_that_its_type_holds(text: str, signature: str, given: Any, expected: Any) -> None:
    assert ours(f"def kernel(x):\n    return {text}\n", signature)(given) == expected


def test_constants_of_float32_are_rounded_where_they_are_stored_wider() -> None:
    text = "def kernel(n):\n    a = np.empty(1, np.float64)\n    a[0] = np.float32(0.1)\n    return a\n"
    assert ours(text, "(int64,)")(1)[0] == np.float32(0.1)


def test_a_constant_is_no_instruction() -> None:
    kernel = function(ir.Return((ir.Binary("*", X, ir.Const(0.1, FLOAT32)),)))
    text = program(kernel).text("kernel", "(float32,)", "k")
    assert "fptrunc double 0x" not in text
    assert "fmul float" in text


# --- variables -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        (ir.For("i", ir.Const(0, INT64), N, ir.Const(1, INT64), []), INT32),  # range(n)
        (ir.For("i", ir.Const(1, INT64), N, ir.Const(1, INT64), []), INT64),  # range(1, n)
        (ir.For("i", ir.Const(1, INT32), N, ir.Const(1, INT64), []), INT32),
        (ir.For("i", ir.Const(1, INT32), N, ir.Const(2, INT64), []), INT64),
    ],
)
def test_a_loop_counts_in_the_type_of_what_range_is_given(loop: ir.For, expected: Scalar) -> None:
    assert inferred(function(loop, ir.Return((N,)), parameters=("n",)), INT32).variables["i"] == expected


def test_types_go_around_a_loop() -> None:
    (kernel,) = parse_functions(
        "def kernel(x, n):\n    a = n\n    b = n\n    while b < 9:\n        b = a\n        a = a + x\n    return a, b\n"
    )
    found = inferred(kernel, FLOAT32, SCALARS["int8"])
    assert found.result == Tuple((FLOAT32, FLOAT32))


def test_what_is_never_assigned_is_refused() -> None:
    with pytest.raises(Unsupported, match="the type of y"):
        inferred(function(ir.Assign(("y",), ir.Var("z")), ir.Return((X,))), INT64)


def test_inference_is_linear_in_the_depth_of_expressions() -> None:
    def cost(depth: int) -> int:
        item: ir.Expr = X
        for _ in range(depth):
            item = ir.Binary("+", item, X)
        return work(lambda: program(function(ir.Return((item,)))).text("kernel", "(float64,)", "k"))[0]

    small, middle, large = cost(20), cost(40), cost(80)
    assert large - middle <= 2.2 * (middle - small)


# --- leaving ---------------------------------------------------------------------------------------------------------

FAILING = function(
    ir.If(ir.Compare("<", X, ir.Const(0, INT64)), [ir.Fail(3, (X,))]),
    ir.Return((ir.Const(0, INT64), ir.Const(0, INT64), ir.Convert(FLOAT64, X))),
)


def test_a_failure_returns_what_the_program_s_owner_says() -> None:
    def failure(function: ir.Function, item: ir.Fail) -> tuple[ir.Expr, ...]:
        assert isinstance(item.status, int)
        return ir.Const(item.status, INT64), *item.details, ir.Const(0.0, FLOAT64)

    found = [run(program(FAILING, failure=failure), "(int64,)", f"t_fails_{x}", x) for x in (5, 6)]
    assert [tuple(each) for each in found] == [(0, 0, 5.0), (0, 0, 6.0)]
    assert tuple(run(program(FAILING, failure=failure), "(int64,)", "t_fails", -7)) == (3, -7, 0.0)


def test_a_failure_that_nobody_knows_the_results_of_is_refused() -> None:
    with pytest.raises(Unsupported, match="kernel"):
        program(FAILING).text("kernel", "(int64,)", "k")


def test_an_array_that_only_a_condition_makes_may_be_refused_by_the_machine() -> None:
    text = """
def first(n):
    a = np.empty(n, np.int64)
    a[0] = n
    return a[0]


def kernel(n):
    if first(n) > 3:
        return 1
    return 0
"""
    kernel = ours(text, "(int64,)")
    assert (kernel(3), kernel(4)) == (0, 1)
    with pytest.raises(MemoryError):
        kernel(1 << 60)


# --- what is handed over stays as it is ------------------------------------------------------------------------------


def test_translation_leaves_the_functions_as_they_are() -> None:
    functions = parse_functions(SPIRAL)
    before = [print_python.function(each) for each in functions]
    module = Program(functions, llvm_backend._library())
    module.text("kernel", "(float64[::1], float64)", "k")
    assert module.lanes  # the loop's sums have been taken apart
    assert [print_python.function(each) for each in functions] == before


def test_types_are_pickled_to_the_same_bytes_whatever_has_been_asked_of_them() -> None:
    fresh = Scalar("float32", "f", 32)
    before = pickle.dumps(fresh)
    assert (fresh.ir, fresh.memory, fresh.is_float, fresh.is_signed) == ("float", "float", True, False)
    assert pickle.dumps(fresh) == before
    assert pickle.loads(before) == fresh
