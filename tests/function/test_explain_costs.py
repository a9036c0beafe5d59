"""f.explain(measure=True): which programs it runs, and what it says of calls of Python and of interpreted loops."""

from __future__ import annotations

import re
from importlib import import_module

import numpy as np
import pytest

import autograph as ag
from runtime.engine.machine import Machine

explaining = import_module("autograph.function.explaining")


@pytest.fixture(autouse=True)
def known_machine(monkeypatch):
    monkeypatch.setattr(explaining, "machine", lambda: Machine(1e10, 1e11, 2, 0.05))


def flat(text):
    return " ".join(text.split())


def conjugate_gradients(a, b):
    x = ag.zeros_like(b)
    r = b - ag.linalg.matvec(a, x)
    p, rs = r, ag.reduce_sum(r * r)
    while rs > 1e-10:
        ap = ag.linalg.matvec(a, p)
        assert ag.reduce_sum(p * ap) > 0.0, "the matrix isn't positive definite"
        alpha = rs / ag.reduce_sum(p * ap)
        x, r = x + alpha * p, r - alpha * ap
        new = ag.reduce_sum(r * r)
        p, rs = r + new / rs * p, new
    return x


def shortest(w):
    n = w.shape[0]
    distance, done = [float("inf")] * n, [False] * n
    distance[0] = 0.0
    for _ in ag.range(n):
        best = -1
        for v in ag.range(n):
            if not done[v] and (best < 0 or distance[v] < distance[best]):
                best = v
        done[best] = True
        for v in ag.range(n):
            if distance[best] + w[best, v] < distance[v]:
                distance[v] = distance[best] + w[best, v]
    return ag.stack(distance)


def popped(n):
    items = []
    for i in ag.range(n):
        items.append(i)
    total = 0
    while items:
        total += items.pop()
    return total


def checked(x):
    if x > 100.0:
        raise ValueError(f"{x} is too large")
    return ag.debugging.check_numerics(ag.sqrt(x), "root")


@pytest.mark.parametrize("jit", [True, None, False])
@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        (conjugate_gradients, (2.0 * np.eye(5, dtype=np.float32), np.ones(5, np.float32))),
        (shortest, (np.arange(16.0, dtype=np.float32).reshape(4, 4),)),
        (popped, (ag.constant(7),)),
        (checked, (ag.constant(2.0),)),
    ],
)
def test_programs_that_check_are_measured(program, arguments, jit):
    arguments = [ag.constant(each) for each in arguments]
    f = ag.function(program, jit_compile=jit)
    text = f.explain(*arguments, measure=True)
    assert re.search(r"tier: .*; a call takes [\d.]+ \w+", flat(text)) and "not timed" not in text
    assert np.array_equal(f(*arguments).numpy(), ag.function(program)(*arguments).numpy())


def test_a_call_that_fails_is_reported():
    f = ag.function(checked)
    text = flat(f.explain(ag.constant(200.0), measure=True))
    assert "not timed, because a call raises ValueError (200.0 is too large)" in text
    assert "a call takes" not in text
    assert "a call takes" in flat(f.explain(ag.constant(2.0), measure=True))


def test_effects_are_named():
    @ag.function
    def f(x):
        for i in ag.range(2):
            ag.print(i)
        return x

    text = flat(f.explain(ag.constant(1.0), measure=True))
    assert re.search(
        r"not timed, because running it has effects: op 'print' at \S+test_explain_costs.py:\d+, in f", text
    )


@pytest.mark.parametrize("jit", [True, False])
def test_measuring_leaves_random_streams_alone(jit):
    @ag.function(jit_compile=jit)
    def draw():
        return ag.random.uniform([2]) + ag.random.normal([2], seed=3)

    def two(between):
        ag.random.set_seed(4)
        return [draw().numpy().tolist(), between(), draw().numpy().tolist()][::2]

    plain = two(lambda: None)
    assert plain[0] != plain[1]
    assert two(lambda: draw.explain(measure=True)) == plain
    assert "a call takes" in draw.explain(measure=True)


def test_calls_of_python_have_a_cost():
    @ag.function
    def f(x, n):
        for _ in ag.range(n):
            x = x * 0.5 + ag.linalg.svd(x)[0] * 0.1
        return x

    x, n = ag.eye(3), ag.constant(7)
    assert "times in a call" not in f.explain(x, n)
    text = flat(f.explain(x, n, measure=True))
    assert "on the interpreter svd (test_explain_costs.py:" in text
    assert re.search(r"the native code around it calls Python; 7 times in a call, which takes [\d.]+ \w+", text)


def test_interpreted_loops_have_a_cost_and_a_reason():
    @ag.function
    def f(n):
        s = ag.constant("")
        for i in ag.range(n):
            s = ag.strings.join([s, ag.as_string(i)])
            for _ in ag.range(2):
                s = ag.strings.upper(s)
        return s

    line = f.python_function.__code__.co_firstlineno
    here = "test_explain_costs.py"
    text = flat(f.explain(ag.constant(7)))
    because = f"because of {here}:{line + 4}: op 'as_string' can't be compiled"
    assert f"{here}:{line + 3} staged: one loop, 7 operations in its body, on the interpreter, {because}" in text
    text = flat(f.explain(ag.constant(7), measure=True))
    assert re.search(
        rf"{here}:{line + 3} staged: one loop.*, on the interpreter, [\d.]+ \w+ in a call, because of", text
    )
    assert re.search(
        rf"{here}:{line + 5} staged: one loop, 2 operations in its body, on the interpreter, because", text
    )
