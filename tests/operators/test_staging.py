"""Conditionals and while loops on symbolic tensors give what the same Python gives on numbers."""

from __future__ import annotations

import copy
import functools

import numpy as np
import pytest

from tests.operators.harness import Table, check_same_as_python

i32 = np.int32
f32 = np.float32
f64 = np.float64
TABLE = Table()
case = TABLE.case


def vector(*items, dtype=f32):
    return np.array(items, dtype)


# --- conditionals ---


@case((f32(2),), (f32(-2),), (f32(0),))
def branches(x):
    if x > 0:
        y = x * 2
    elif x < 0:
        y = -x
    else:
        y = 7.0
    return y


@case((f32(2),), (f32(-2),))
def returns(x):
    if x > 0:
        return x * 2
    x = x - 1
    if x < -2.5:
        return x
    return x * 10


@functools.singledispatch
def by_kind(value):
    return 1.0


@by_kind.register
def _(value: int):
    return value * 2.0


@case((f32(2),), (f32(-2),))
def caches_of_the_standard_library_are_no_state(x):
    return by_kind(3) + x if x > 0 else by_kind("a") - x


@case((f32(2),), (f32(-2),))
def copies_of_state(x):
    state = {"a": [x, 1.0]}
    other = copy.deepcopy(state)
    if x > 0:
        other["a"][0] = copy.copy(x) * 3
    return state["a"], other["a"]


@case((f32(2),), (f32(-2),))
def numbers_become_tensors(x):
    a, b, c = 0, 1.5, True
    if x > 0:
        a, b, c = 3, 2.5, False
    return a, b, c


@case((f32(2),), (f32(-2),))
def equal_values_stay(x):
    mode, k = "same", 3
    if x > 0:
        mode, k, y = "same", 3, x
    else:
        y = x * len(mode) ** k
    return [y] * k


@case((f32(2),), (f32(-2),))
def structures(x):
    state = {"a": x, "b": (1, x)}
    if x > 0:
        state = {"a": x + 1, "b": (2, x * 2)}
    return state["a"], state["b"]


@case((f32(2),), (f32(-2),))
def ternary(x):
    return (1.0 if x > 0 else x) + (x if x > 5 else 0)


@case((f32(2), True), (f32(-2), False))
def logic(x, flag):
    a = x > 0 and x < 3
    b = x > 3 or x < 0 or flag
    c = not a and flag
    return a, b, c, 0 < x < 3, -1 < x * 2 <= 4 < x * 3


@case((i32(0), i32(6)), (i32(3), i32(6)))
def short_circuit(a, b):
    # On the right of `and` the division by zero must not happen.
    if a != 0 and b // a == 2:
        return a
    return b


@case((f32(1),), (f32(-1),))
def attributes(x):
    class Box:
        pass

    box, d = Box(), {"k": x}
    box.h = 0.0
    if x > 0:
        box.h = x * 2
        d["k"] = x + 1
    for i in range(2):
        if x > i:
            box.h += 1
    return box.h, d["k"]


@case((f32(1),), (f32(-1),))
def only_one_branch_used(x):
    if x > 0:
        unused = x
        y = unused * 2
    else:
        y = x
    return y


# --- while ---


@case((i32(27),), (i32(1),))
def collatz(n):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


@case((i32(10), f32(3)), (i32(0), f32(3)))
def promotes(n, t):
    s, i = 0, 0
    while i < n:
        s += 0.5 * t
        i += 1
    return s, i


@case((i32(3), f64(3)), (i32(0), f64(3)))
def promotes_to_float64(n, t):
    s = 0.0
    i = 0
    while i < n:
        s = s + t * t
        i += 1
    return s


@case((i32(9),), (i32(3),), (i32(0),))
def covered_by_the_break(n):
    total = i = 0
    while i < n:
        if i % 2 == 0:
            if i > 4:
                break
            y = i
        else:
            y = -i * 10
        total += y
        i += 1
    return total


@case((i32(5),))
def python_number_turns_float(n):
    x = 1
    while n > 0:
        x = x / 2
        n -= 1
    return x


@case((i32(5),), (i32(0),))
def endless_with_break(n):
    i = 0
    while True:
        if i >= n:
            break
        i += 1
    return i


@case((i32(5),), (i32(100),))
def endless_with_return(n):
    i = 0
    while True:
        if i * i > n:
            return i, n
        i += 2


@case((i32(10), i32(4)), (i32(3), i32(4)), (i32(0), i32(4)))
def break_and_else(n, stop):
    i = total = 0
    while i < n:
        i += 1
        if i == stop:
            break
        if i % 2 == 0:
            continue
        total += i
    else:
        total = -total
    return i, total


@case((i32(4), i32(3)), (i32(0), i32(3)))
def nested(n, m):
    total = i = 0
    while i < n:
        j = 0
        while j < m:
            if j > i:
                break
            total += i * j
            j += 1
        i += 1
    return total


@case((i32(4),), (i32(0),))
def loop_invariants(n):
    k, name, scale = 2, "s", n * 3
    total = 0
    while n > 0:
        k, name = 2, "s"
        scale = scale
        total += scale * k + len(name)
        n -= 1
    return total, k, scale


@case((i32(3),), (i32(0),))
def tuple_state(n):
    a, b = pair = (0, 1)
    while n > 0:
        a, b = b, a + b
        pair = (a, pair[0] + 1)
        n -= 1
    return a, b, pair


@case((i32(3),))
def born_in_loop(n):
    i = 0
    while i < n:
        last = i * 10
        i += 1
    return last


@case((i32(20),), (i32(2),))
def starts_in_python(n):
    i, doubled = 0, 1
    while i < (3 if isinstance(i, int) and i < 3 else n):
        doubled *= 2
        i = i + 1 if i < 2 else n * 0 + i + 1
    return i, doubled


@case((f32(100),))
def walrus_test(x):
    trips = 0
    while (half := x / 2) > 1:
        x = half
        trips += 1
    return x, half, trips


@case((i32(6),))
def condition_of_python_and_tensor(n):
    i = 0
    on = True
    while on and i < n:
        i += 1
        if i == 3:
            on = False
    return i, on


@case((vector(1, 2, 3),))
def growing_shape(x):
    y = x[:1]
    i = 0
    while i < 2:
        i += 1
    i = x[0] * 0
    while i < 3:
        y = x if i > 1 else y
        i += 1
    return y


@case((i32(-1),), (i32(1),), (i32(6),), (i32(9),))
def returns_out_of_finally(x):
    y = 3
    try:
        if x > 5:
            y = 4
        [][0]
    finally:
        if x > 0:
            if x > 7:
                return 7
            y = y + x
            return y
        return x


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize(("function", "arguments"), TABLE.rows)
def test_same_as_python(function, arguments, dynamic):
    check_same_as_python(function, arguments, dynamic)
