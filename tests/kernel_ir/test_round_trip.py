"""Kernel IR is printed as Python and parsed again: both directions give back what went in."""

import ast
from pathlib import Path

import pytest

import runtime.codegen
from runtime.kernel_ir import ir
from runtime.kernel_ir.parse_python import block as statements_of
from runtime.kernel_ir.parse_python import function, parse_expression, parse_functions
from runtime.kernel_ir.print_python import expression, lines
from runtime.kernel_ir.print_python import function as printed
from runtime.kernel_ir.safe_parsing import parse
from runtime.kernel_ir.types import BOOL, FLOAT32, FLOAT64, INT32, INT64, UINT64, Unsupported
from runtime.kernel_ir.verify import verify

EXPRESSIONS = [
    "x", "-x", "not a", "a + b + c", "a + (b + c)", "a - (b - c)", "(a + b) * c", "a * b + c", "a / b / c",
    "a // (b % c)", "-x ** 2", "(-x) ** 2", "x ** -y", "x ** -2", "(x ** y) ** z", "x ** y ** z", "-(a * b)",
    "-a * b", "a << 3 | b & 7", "(a | b) & c", "a < b", "not a < b", "a and b or c", "a and (b or c)",
    "a and (b and c)", "not (a and b)", "(a < b) == c", "a if b else c", "(a if b else c) + d",
    "a if b else c if d else e", "(a if b else c) if d else e", "x[i * n + j]", "x[i] + y[i]", "x.size", "x.shape[1]",
    "lib.tanh(x[i] * w)", "max(a, b, 3)", "lib.shaped((n, m), a)", "lib.shaped((n,), a)", "np.int32(i + np.int32(1))",
    "np.float32(2.5)", "np.float32(-2.5)", "np.float32(np.nan)", "-np.inf", "np.float32(1e-45)", "-0.0", "True",
    "np.uint64(18446744073709551615)", "np.int8(-128)", "-3", "a - -3", "np.float32(3)", "np.float64(x)",
]  # fmt: skip


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions(text):
    parsed = parse_expression(text)
    again = expression(parsed)
    assert parse_expression(again) == parsed
    assert ast.dump(ast.parse(again)) == ast.dump(ast.parse(text))


BLOCK = """
a = np.empty(n * m, np.float32)
x, y = y, x
s, t = lib.pair(x, 1)
for i in range(n):
    for j in range(1, m):
        a[i * m + j] = x[i] + np.float32(1.0)
    for k in range(n - 1, -1, -1):
        a[k] = -a[k]
while True:
    if n > 3:
        break
    elif n == 2:
        continue
    else:
        n = n + 1
lib.fill(a, 0)
return 1, a
"""


def test_blocks():
    block = statements_of(parse(BLOCK).body)
    text = "\n".join(line[4:] for line in lines(block))
    assert text == BLOCK.strip()


@pytest.mark.parametrize("name", ["library", "algorithms", "random_words"])
def test_the_library_comes_back(name):
    paths = [path for path in Path(runtime.codegen.__file__).parent.rglob("*.py") if path.stem in _NAMES[name]]
    count = 0
    for node in ast.parse(paths[0].read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            try:
                first = function(node)
            except Unsupported:
                continue  # an intrinsic, which is written for numba alone
            (second,) = parse_functions(printed(first))
            assert printed(second) == printed(first)
            count += 1
    assert count > 3


_NAMES = {
    "library": ("library", "functions"),
    "algorithms": ("algorithms",),
    "random_words": ("random_words", "philox"),
}


def test_a_part_has_unsigned_indices():
    body = [ir.Store(ir.Var("a"), ir.Var("i"), ir.Load(ir.Var("x"), ir.Var("i")))]
    text = printed(ir.Function("part", ("first", "last", "a", "x"), body, kind="part"))
    assert text == "@lib.part\ndef part(first, last, a, x):\n    a[np.uint64(i)] = x[np.uint64(i)]"


def test_constants_are_equal_where_type_and_bits_are():
    same = ir.Const(1, INT64)
    assert same == ir.Const(1, INT64)
    assert hash(same) == hash(ir.Const(1, INT64))
    different = [ir.Const(1, INT32), ir.Const(1.0, FLOAT64), ir.Const(True, BOOL), ir.Const(1, UINT64)]
    assert all(same != other for other in different)
    assert ir.Const(0.0, FLOAT32) != ir.Const(-0.0, FLOAT32)


@pytest.mark.parametrize("text", ["a < b < c", "lambda: 1", "f(x=1)", "x[1:2]", "'a'", "[1]", "x.y"])
def test_other_python_is_refused(text):
    with pytest.raises(Unsupported):
        parse_expression(text)


def test_walks_and_rewriting():
    block = statements_of(parse(BLOCK).body)
    assert ir.assigned(block) == {"a", "x", "y", "s", "t", "i", "j", "k", "n"}
    assert ir.variables(parse_expression("x[i] + lib.f(n, 3)")) == {"x", "i", "n"}
    changed = ir.substituted(parse_expression("x[i] + i"), {"i": parse_expression("j + 1")})
    assert expression(changed) == "x[j + 1] + (j + 1)"
    unchanged = parse_expression("x[i] + i")
    assert ir.substituted(unchanged, {"k": ir.Var("l")}) is unchanged
    copy = ir.copied(block)
    ir.map_block(copy, lambda each: ir.Var("z") if each == ir.Var("a") else None)
    assert "z[" in "\n".join(lines(copy))
    assert "z[" not in "\n".join(lines(block))


def test_a_loop_without_an_end_is_a_kernel():
    body = statements_of(parse("while True:\n    x = 1\nreturn x").body)
    verify([ir.Function("kernel", (), body)], typed=False)
