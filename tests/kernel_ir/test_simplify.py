"""The rules that simplify expressions: what they give, and that it has the same value and type."""

from __future__ import annotations

import random
from collections import Counter
from types import SimpleNamespace

import pytest

from runtime.kernel_ir import ir, simplify
from runtime.kernel_ir.types import BOOL, FLOAT32, INT32, INT64, UINT64, Scalar

N, M = ir.size_variable("n"), ir.size_variable("m")
K, X, T = ir.Var("k", INT32), ir.Var("x", FLOAT32), ir.Var("t", BOOL)
ZERO, ONE = ir.ZERO, ir.ONE


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (N * 1 + (M - 0), N + M),
        ((0 + N) // 1, N),
        (N % 1, ZERO),
        (ir.as_expr(3) * 4 - 2, ir.as_expr(10)),
        (ir.as_expr(-7) // 2, ir.as_expr(-4)),
        (ir.Unary("-", ONE), ir.as_expr(-1)),
        (ir.negated(ir.Unary("not", ir.Unary("not", T))), ir.Unary("not", T)),
        (ir.Unary("not", ir.TRUE), ir.FALSE),
        (ZERO.compare("<", 1), ir.TRUE),
        (ir.both(T, ir.TRUE), T),
        (ir.either(T, ir.TRUE, N.compare("<", 1)), ir.Logic("or", (T, ir.TRUE))),
        (ir.both(ir.FALSE, T), ir.FALSE),
        (ir.TRUE.choose(N, M), N),
        (T.choose(X, X), X),
        (ir.Convert(INT64, N), N),
        (ir.Convert(INT32, ir.as_expr(5)), ir.Const(5, INT32)),
        (ir.call("max", 8, 0, 3), ir.as_expr(8)),
        (ir.call("min", N, N), N),
    ],
)
def test_what_the_rules_give(item: ir.Expr, expected: ir.Expr) -> None:
    assert simplify.simplified(item) == expected


@pytest.mark.parametrize(
    "item",
    [
        N + M,
        N // 0,
        X + ir.Const(0.0, FLOAT32),  # of -0.0, the sum is 0.0
        X * ir.Const(1.0, FLOAT32),
        K + 0,  # int64
        ir.as_expr(2**62) * 4,  # it wraps around
        ir.Convert(INT32, ir.as_expr(2**40)),
        ir.Var("unknown") + 0,
        ir.call("max", N, 0),
    ],
)
def test_what_stays(item: ir.Expr) -> None:
    assert simplify.simplified(item) is item


def _random(choose: random.Random, depth: int) -> ir.Expr:
    if not depth or choose.random() < 0.2:
        return choose.choice([N, M, ir.as_expr(choose.choice([-3, -1, 0, 1, 1, 2])), ir.Convert(INT64, K)])
    a, b = _random(choose, depth - 1), _random(choose, depth - 1)
    kind = choose.randrange(9)
    if kind < 5:
        return ir.Binary("+-*//%"[kind] if kind < 3 else ("//", "%")[kind - 3], a, b)
    test = a.compare(choose.choice(["<", "<=", ">", ">=", "==", "!="]), b)
    if kind == 5:
        test = ir.both(test, choose.choice([ir.TRUE, ir.FALSE, T]))
    if kind == 6:
        test = ir.either(choose.choice([ir.TRUE, ir.FALSE, T]), ir.Unary("not", test))
    return ir.call("max", a, b) if kind == 7 else test.choose(a, b)


def test_values_and_types_stay() -> None:
    """For random integers; a division by zero stays where it was, or where it isn't computed goes."""
    choose = random.Random(0)
    kinds: Counter[type] = Counter()
    for _ in range(3000):
        item = _random(choose, 4)
        found = simplify.simplified(item)
        assert found.type == item.type
        values = {**{name: choose.randint(-5, 5) for name in "nmk"}, "t": choose.random() < 0.5}
        space = {"np": SimpleNamespace(int64=int), **values}
        try:
            expected = eval(str(item), dict(space))
        except ZeroDivisionError:
            continue
        assert eval(str(found), dict(space)) == expected, (str(item), str(found), values)
        if found != item:
            kinds[type(item)] += 1
    assert sum(kinds.values()) > 1000


def test_sums_and_products() -> None:
    assert simplify.total(N, 0, M) == N + M
    assert simplify.product(N, 1, 1) == N
    assert simplify.product(N, 0) == ZERO
    assert simplify.difference(N, ZERO) is N
    number = Scalar("uint64", "u", 64)
    assert number == UINT64
    assert simplify.outermost(ir.Binary("-", ir.Const(1, number), ir.Const(2, number))).type == number
