"""``for`` loops, built-in functions and state behind functions on symbolic tensors do what the same Python does."""

from __future__ import annotations

import numpy as np
import pytest

import autograph as ag
from autograph.errors import StagingError
from tests.operators.harness import Table, check_same_as_python

i32 = np.int32
f32 = np.float32
f64 = np.float64
TABLE = Table()
case = TABLE.case


def vector(*items, dtype=f32):
    return np.array(items, dtype)


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
def surely_left_at_the_first_item(n):
    s = 0
    for i in range(n):
        if i > 5:
            s = s + i
            break
        else:
            s = s + i + 10
            break
    return s


@case((i32(5),), (i32(0),))
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


@case((i32(5),), (i32(1),))
def variables_that_the_loop_reads_and_a_function_sets(n):
    def add(k):
        nonlocal n
        n = n + k
        if n > 6:
            return n
        return -n

    s = 0
    while n < 10:
        s += add(2)
        if s > 20:
            break
    else:
        s = s * 2
    return s, n


@case((i32(5),), (i32(1),))
def variables_that_a_branch_reads_and_a_function_sets(n):
    def add(k):
        nonlocal n
        n = n + k

    if n > 2:
        add(3)
        if n > 7:
            add(4)
    value = (add(1), n)[1] if n > 2 else n
    return value, n


@case((i32(5),), (i32(1),))
def variables_that_operands_change(n):
    seen = [n]
    count = 0

    def look(k):
        nonlocal count
        seen.append(k)
        count += 1
        return k > 2

    if n > 3 or look(n):
        n = n + 1
    if n > 3 and look(n) and look(n + 1):
        n = n + 1
    return n, len(seen), seen[-1], count


@case((i32(5),), (i32(2),))
def numbers_as_conditions(n):
    odd = 0
    for i in range(n):
        if not i % 2:
            continue
        odd += 1
    return odd


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize(("function", "arguments"), TABLE.rows)
def test_same_as_python(function, arguments, dynamic):
    check_same_as_python(function, arguments, dynamic)


def from_outside_of_a_loop(n):
    items = iter([1, 2, 3])
    return sum(next(items) for _ in [0]) + sum([next(items) for i in range(n)])


def from_outside_of_a_branch(n):
    items = iter([1, 2, 3])
    first = next(items)
    if n > 5:
        first += next(items)
    return first + next(items)


def in_a_loop_that_is_left(n):
    items = iter([1, 2, 3, 4])
    total = 0
    for i in items:
        if i == n:
            total += next(items)
            break
    return total


def after_a_loop_that_is_left(n):
    items = iter([1, 2, 3, 4])
    total = 0
    for i in items:
        if i == n:
            break
        total += i
    return total + sum(items)


@pytest.mark.parametrize(
    "program", [from_outside_of_a_loop, from_outside_of_a_branch, in_a_loop_that_is_left, after_a_loop_that_is_left]
)
def test_iterators_that_staged_code_would_share_are_refused(program):
    with pytest.raises(StagingError, match="iterator.*(in there|that a condition on a tensor leaves)"):
        ag.function(program)(ag.constant(2))


def in_a_branch_alone(n):
    items = iter([1, 2, 3])
    first = next(items)
    if n > 5:
        first += next(items)
    for i in range(n):
        inner = iter([4, 5])
        first += next(inner) + i
    return first


@pytest.mark.parametrize("n", [2, 9])
def test_iterators_that_nothing_else_uses(n):
    assert int(ag.function(in_a_branch_alone)(ag.constant(n))) == in_a_branch_alone(n)
