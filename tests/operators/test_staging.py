"""Control flow on symbolic tensors gives what the same Python gives on numbers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.operators.harness import run_staged

i32 = np.int32
f32 = np.float32
f64 = np.float64
CASES = []


def case(*argument_lists):
    def register(function):
        for index, arguments in enumerate(argument_lists):
            CASES.append(pytest.param(function, arguments, id=f"{function.__name__}-{index}"))
        return function

    return register


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


# --- for ---


@case((vector(1, 2, 3),), (np.zeros(0, f32),))
def over_tensor(xs):
    total = 0.0
    for x in xs:
        total += x * x
    return total


@case((np.arange(6, dtype=f32).reshape(3, 2),))
def over_rows(rows):
    best = rows[0]
    for row in rows:
        best = row if row[1] > best[1] else best
    return best


@case((i32(5),), (i32(0),), (i32(-3),))
def over_range(n):
    total = 0
    for i in range(n):
        total += i
    return total


@case((i32(2), i32(11), i32(3)), (i32(11), i32(2), i32(-3)), (i32(3), i32(3), i32(1)), (i32(5), i32(2), i32(1)))
def range_with_step(a, b, c):
    total = count = 0
    for i in range(a, b, c):
        total = total * 10 + i
        count += 1
    return total, count


@case((vector(5, -1, 2, 9), f32(3)), (vector(5, 4), f32(3)), (np.zeros(0, f32), f32(3)))
def find_first(xs, k):
    for x in xs:
        if x < k:
            return x
    return -100.0


@case((vector(1, 2, 3, 4, 5, 6),))
def for_break_continue_else(xs):
    total = 0.0
    for x in xs:
        if x == 2:
            continue
        if x > 4:
            break
        total += x
    else:
        total = -1.0
    return total


@case((vector(1, 2, 3), vector(4, 5, 6)), (vector(1), vector(4, 5, 6)))
def zipped(xs, ys):
    total, places = 0.0, 0
    for i, (x, y) in enumerate(zip(xs, ys), 1):
        total += x * y
        places = places * 10 + i
    return total, places


@case((vector(1, 2, 3),))
def reversed_tensor(xs):
    total = 0.0
    for x in reversed(xs):
        total = total * 10 + x
    return total


@case((i32(3),))
def loop_variable_after(n):
    for i in range(n):
        pass
    return i


@case((vector(1, 2, 3, 0, 5),), (vector(1, 2),))
def tensor_break_in_python_loop(xs):
    total = 0.0
    for k in range(len(xs)):
        if xs[k] == 0:
            break
        total += xs[k]
    return total


@case((vector(1, 2, 3, 0, 5),), (vector(1, 2),))
def tensor_return_in_python_loop(xs):
    for k in [0, 1, 2, 3]:
        if k < len(xs):
            if xs[k] == 0:
                return k
            elif xs[k] > 2:
                continue
    return -1


@case((vector(3, 1, 2),))
def nested_search(xs):
    for i in range(3):
        for x in xs:
            if x == i:
                return x * 10
    return -1.0


@case((i32(12),))
def primes(n):
    count = 0
    for k in range(2, n):
        for d in range(2, k):
            if k % d == 0:
                break
        else:
            count += 1
    return count


@case((vector(0, 1, 2), f32(1)))
def contains(xs, x):
    return x in xs, x in [0.0, 2.0], x not in xs


@case((vector(3, 1, 2),))
def builtin_functions(xs):
    return sum(xs), min(xs), max(xs[0], xs[1]), any(xs > 2), all(xs > 2), len(xs), abs(-xs), int(xs[0]), float(xs[1])


@case((i32(4),))
def helper_functions(n):
    def square(x):
        if x > 1:
            return x * x
        return x

    total = 0
    for i in range(n):
        total += square(i)
    return total, (lambda x: x if x > 2 else -x)(n)


@case((i32(4),), (i32(0),))
def state_behind_methods(n):
    class Acc:
        def __init__(self, start):
            self.total = start if n > 0 else start - 1
            self.calls = 0

        def add(self, x):
            self.calls += 1
            if x > 2:
                self.total += x * x
            return self

    acc = Acc(n * 0)
    for i in range(n):
        acc.add(i)
    if n > 3:
        acc.add(n)
    return acc.total, acc.calls


@case((i32(4),), (i32(0),))
def state_behind_functions(n):
    total = calls = 0

    def add(x):
        nonlocal total, calls
        calls += 1
        if x > 1:
            total += x

    i = 0
    while i < n:
        add(i)
        i += 1
    return total, calls


@case((i32(5),), (i32(2),))
def numbers_as_conditions(n):
    odd = 0
    for i in range(n):
        if not i % 2:
            continue
        odd += 1
    return odd


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize(("function", "arguments"), CASES)
def test_same_as_python(function, arguments, dynamic):
    expected = function(*[a.copy() if isinstance(a, np.ndarray) else a for a in arguments])
    found = run_staged(function, *arguments, dynamic=dynamic)
    assert_equal(found, expected)


def assert_equal(found, expected):
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for a, b in zip(found, expected):
            assert_equal(a, b)
    else:
        np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-6)
