"""Loop carries that change their type: eagerly, staged and compiled they end up the same, and so do their gradients."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import autograph as ag

PROGRAMS = []


def case(program):
    PROGRAMS.append(program)
    return program


# --- programs of a vector of three floats and a number of trips ----------------------------------------------------


@case
def promo(x, n):
    s = 0
    for i in ag.range(n):
        s += 0.5 * x[0]
    return s * 1.0


@case
def promo_nested(x, n):
    s = 0
    for i in ag.range(n):
        t = 0
        for j in ag.range(i + 1):
            t += x[1] * 2
        s += t
    return s * 1.0


@case
def number_to_vector(x, n):
    s = 0
    for i in ag.range(n):
        s = 0.5 * s + x * x
    return ag.reduce_sum(ag.cast(s, ag.float32))


@case
def number_to_vector_left_early(x, n):
    s = 1.0
    for i in ag.range(n):
        if i > 2:
            break
        s = s * x
    return ag.reduce_sum(s)


@case
def concat(x, n):
    y = x
    for i in ag.range(n):
        y = ag.concat([y, x], 0)
    return ag.reduce_sum(y)


@case
def concat_whiletrue(x, n):
    y = x[:1]
    i = 0
    while True:
        if i >= n:
            break
        y = ag.concat([y, x], 0)
        i += 1
    return ag.reduce_sum(y * y), i


@case
def concat_nested(x, n):
    y = x[:1]
    for i in ag.range(n):
        z = y[:1]
        for j in ag.range(i):
            z = ag.concat([z, x[:2]], 0)
        y = ag.concat([y, z], 0)
    return ag.reduce_sum(y)


@case
def slices(x, n):
    y = x
    i = 0
    while i < n and ag.shape(y)[0] > 1:
        y = y[1:]
        i += 1
    return ag.reduce_sum(y)


@case
def grow_2d(x, n):
    m = ag.reshape(x, (1, 3))
    for i in ag.range(n):
        m = ag.concat([m, m[:1] * 2.0], 0)
    return ag.reduce_sum(m, 0)


@case
def swap_shapes(x, n):
    a, b = x[:1], x
    for i in ag.range(n):
        a, b = b, a
    return ag.reduce_sum(a), ag.reduce_sum(b)


@case
def int_to_float(x, n):
    k = 1
    for i in ag.range(n):
        k = k / 2
    return k * 1.0


@case
def two_promo(x, n):
    a, b = 0, 1
    for i in ag.range(n):
        a, b = a + x[0], b * 2
    return a * 1.0, b


@case
def tuple_state(x, n):
    st = (0, (1.0, x))
    for i in ag.range(n):
        st = (st[0] + 1, (st[1][0] * 2, st[1][1] + st[0]))
    return st[1][0], ag.reduce_sum(st[1][1])


@case
def dict_state(x, n):
    d = {"a": 0, "b": x}
    for i in ag.range(n):
        d["a"] += x[0]
        d["b"] = d["b"] * 2
    return d["a"] * 1.0, d["b"]


@case
def cond_promo(x, n):
    s = 0
    for i in ag.range(n):
        if i % 2 == 0:
            s += x[0]
        else:
            s -= 1
    return s * 1.0


@case
def break_promo(x, n):
    s = 0
    i = 0
    while True:
        s = s + x[i % 3]
        i += 1
        if s > 4 or i > n:
            break
    return s, i


@case
def return_promo(x, n):
    s = 0
    for i in ag.range(n):
        s += x[i % 3]
        if s > 4:
            return s
    return -1.0


@case
def none_state(x, n):
    last = None
    for i in ag.range(n):
        last = x if last is None else ag.concat([last, x], 0)
    return 0.0 if last is None else ag.reduce_sum(last)


@case
def none_pair(x, n):
    st = None
    i = 0
    while i < n:
        if st is not None:
            a, b = st
            st = (a + b, a)
        else:
            st = (x[0], x[1])
        i += 1
    if st is None:
        return 0.0, 0.0
    return st


@case
def py_for_break(x, n):
    s = 0.0
    for k in [1, 2, 3, 4]:
        if k > n:
            break
        s += k * x[0]
    return s


@case
def py_for_else(x, n):
    s = 0.0
    for k in range(4):
        if k == n:
            break
        s += x[k % 3]
    else:
        s = -s
    return s


@case
def try_loop(x, n):
    s = 0.0
    for k in range(4):
        try:
            if k == n:
                continue
            s += x[k % 3]
        finally:
            s += 1.0
    return s


@case
def try_break(x, n):
    s = 0.0
    for k in range(4):
        try:
            if k == n:
                break
            s += x[k % 3]
        finally:
            s += 1.0
        s += 10.0
    return s


@case
def with_ret(x, n):
    s = 0.0
    for k in range(4):
        with contextlib.nullcontext():
            if k == n:
                return s
            s += x[k % 3]
    return -s


@case
def for_over_growing(x, n):
    total = 0
    y = x
    for i in ag.range(n):
        for v in y:
            total += v
        y = ag.concat([y, x[:1]], 0)
    return total * 1.0


@case
def invariants(x, n):
    y = ag.zeros((0,))
    for i in ag.range(n):
        y = ag.concat([y, x[:1]], 0)
    return ag.reduce_sum(y)


@case
def aug_attr(x, n):
    class S:
        pass

    s = S()
    s.h = 0
    s.c = None
    for i in ag.range(n):
        s.h += x[0]
        s.c = x if s.c is None else s.c * 2
    return s.h * 1.0, (0.0 if s.c is None else ag.reduce_sum(s.c))


@case
def list_state(x, n):
    l = [0, x]
    for i in ag.range(n):
        l[0] += 1
        l[1] = l[1] * 2.0
    return l[0], l[1]


@case
def while_else(x, n):
    i = 0
    s = 0
    while i < n:
        s += x[i % 3]
        i += 1
        if s > 5:
            break
    else:
        s = s - 100
    return s * 1.0


@case
def nested_break_none(x, n):
    hit = None
    for i in ag.range(n):
        for v in x:
            if v > 1.5:
                hit = v + ag.cast(i, ag.float32)
                break
        if hit is not None and hit > 3:
            break
    return -1.0 if hit is None else hit


# --- how they are run ----------------------------------------------------------------------------------------------


class Point:
    def __init__(self, v):
        self.v = v

    def moved(self, step):
        if self.v > 0:
            return Point(self.v * step)
        return Point(-self.v - step)


@case
def exchanged_by_a_branch_in_the_loop(x, n):
    point = Point(x[0])
    for i in ag.range(n):
        point = point.moved(x[1])
        if point.v < 3.0:
            point = Point(point.v * x[2])
    return point.v


def results_and_gradient(program, n):
    x = ag.constant([1.0, 2.0, 0.5])
    with ag.GradientTape() as tape:
        tape.watch(x)
        results = ag.nest.flatten(program(x, ag.constant(n)))
        targets = [each for each in results if hasattr(each, "dtype") and each.dtype.is_floating]
    gradient = tape.gradient(targets, x) if targets else None
    return results, np.zeros(3) if gradient is None else gradient.numpy()


def check(staged, program, n):
    expected, slope = results_and_gradient(program, n)
    found, staged_slope = results_and_gradient(staged, n)
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        np.testing.assert_allclose(np.asarray(one, np.float64), np.asarray(other, np.float64), rtol=1e-6)
    np.testing.assert_allclose(staged_slope, slope, rtol=1e-6)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_staged(program):
    static = ag.function(program)
    dynamic = ag.function(program, input_signature=[ag.TensorSpec([None], ag.float32), ag.TensorSpec([], ag.int32)])
    for n in (0, 1, 4):
        check(static, program, n)
        check(dynamic, program, n)


@pytest.mark.parametrize("program", [swap_shapes, none_state, concat_nested])
def test_compiled(program):
    compiled = ag.function(program, jit_compile=True)
    for n in (0, 1, 4):
        check(compiled, program, n)
