"""``raise``, ``assert`` and ``print`` in staged code happen when the program gets there, in program order."""

from __future__ import annotations

import traceback

import numpy as np
import pytest

import autograph as ag
from tests.operators.harness import Staged
from tests.operators.test_errors import line_of

i32 = np.int32
f32 = np.float32


class OwnError(Exception):
    pass


def test_raise_in_branch():
    def f(x):
        y = 3
        if x < 0:
            raise ValueError("negative")
        return ag.sqrt(x) * y

    staged = Staged(f, (f32(4),))
    assert staged.run() == 6
    with pytest.raises(ValueError, match="^negative"):
        staged.run(f32(-1))


@pytest.mark.parametrize("compiled", [True, False])
def test_raise_in_loop_at_the_users_line(compiled):
    def f(n, k):
        total = 0
        for i in range(n):
            if i == k:
                total += 1
                raise IndexError("there")
            total += i
        return total

    g = ag.function(f, jit_compile=compiled)
    assert int(g(ag.constant(4), ag.constant(9))) == 6
    with pytest.raises(IndexError, match="there") as caught:
        g(ag.constant(4), ag.constant(2))
    text = str(caught.value) + "".join(traceback.format_exception(caught.value))
    assert f"{__file__}:{line_of(f, 'raise IndexError')}" in text


@pytest.mark.parametrize("compiled", [True, False])
def test_raise_of_own_class_with_values(compiled):
    @ag.function(jit_compile=compiled)
    def f(x):
        if x > 1:
            raise OwnError("too large", x, {"by": x - 1})
        return x

    assert int(f(ag.constant(1))) == 1
    with pytest.raises(OwnError) as caught:
        f(ag.constant(3))
    text, value, by = caught.value.args
    assert text == "too large"
    assert int(value) == 3
    assert int(by["by"]) == 2


def test_raise_inside_try_of_the_same_branch():
    def f(x):
        if x > 0:
            try:
                raise KeyError("k")
            except KeyError:
                y = x * 2
        else:
            y = x
        return y

    staged = Staged(f, (f32(4),))
    assert staged.run() == 8
    assert staged.run(f32(-4)) == -4


def test_raise_in_called_function():
    def check(x):
        if x < 0:
            raise ValueError("negative")

    def f(n):
        total = 0
        while n > -2:
            check(n)
            total += n
            n -= 1
        return total

    with pytest.raises(ValueError, match="negative"):
        Staged(f, (i32(3),)).run()


def test_raise_after_elif_chain():
    def f(x):
        if x == 0:
            return x + 10
        elif x == 1:
            return x + 20
        else:
            raise ValueError("other")

    staged = Staged(f, (i32(0),))
    assert staged.run() == 10
    assert staged.run(i32(1)) == 21
    with pytest.raises(ValueError, match="other"):
        staged.run(i32(2))


def test_effects_keep_their_order(capsys):
    @ag.function
    def f(n):
        for i in range(n):
            print("step", i)
            assert i < 2, "at most two"
            if i > 5:
                raise ValueError("never")

    with pytest.raises(AssertionError, match="at most two"):
        f(ag.constant(5))
    assert capsys.readouterr().out == "step 0\nstep 1\nstep 2\n"


def test_assertion_is_both_errors():
    @ag.function
    def f(x):
        assert x > 0
        return x

    for kind in (AssertionError, ag.errors.InvalidArgumentError):
        with pytest.raises(kind):
            f(ag.constant(-1))


def test_print_in_a_branch_runs_with_the_program(capsys):
    @ag.function
    def f(x):
        print("tracing", x)
        if x > 0:
            print("positive:", x, [x, 1], sep="|")
        else:
            print("no values")
        return x

    f(ag.constant(1))
    f(ag.constant(-1))
    f(ag.constant(2))
    assert capsys.readouterr().out == (
        'tracing Tensor("x:0", shape=(), dtype=int32)\npositive:|1|[1, 1]\nno values\npositive:|2|[2, 1]\n'
    )


def test_gradient_past_a_raise():
    @ag.function
    def f(x):
        if x < 0:
            raise ValueError("negative")
        return x * x

    x = ag.constant(3.0)
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert float(tape.gradient(y, x)) == 6
