"""Python lists, dictionaries and objects that staged code changes: carried as Python would, or a clear error."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest

import autograph as ag
from autograph.errors import StagingTypeError
from tests.operators.harness import Table, check_same_as_python

i32 = np.int32
f32 = np.float32
TABLE = Table()
case = TABLE.case


def test_an_item_at_a_tensor_of_unlike_things_is_refused():
    def f(i):
        return [lambda: 1, lambda: 2][i]()

    with pytest.raises(StagingTypeError, match="items have different types") as caught:
        ag.function(f)(ag.constant(1))
    assert "return [lambda: 1, lambda: 2][i]()" in str(caught.value)


def test_an_item_at_a_tensor_of_a_list_from_elsewhere_is_refused_at_its_line():
    def f(items, i):
        return items[i]

    with pytest.raises(ag.errors.OperatorNotAllowedInGraphError, match=r"in f\n +return items[^#]*ag.stack\(x\)\[i\]"):
        ag.function(f)([1.0, 2.0], ag.constant(1))


def test_an_index_beyond_a_list_raises_at_its_line():
    def f(i, x):
        return (x, x + 1)[i]

    with pytest.raises(IndexError, match="tuple index out of range") as caught:
        ag.function(f)(ag.constant(2), ag.constant(1.0))
    assert "return (x, x + 1)[i]" in str(caught.value)


def rows(items):
    return list(items) if ag.executing_eagerly() else ag.stack(items)


# --- items at tensors ---


@case((i32(0), f32(2)), (i32(2), f32(2)), (i32(-1), f32(2)))
def item_of_a_display(i, x):
    return [x, x * 2, x * 3][i] + (1.0, 2.0, 3.0)[i]


@case((i32(0), f32(2)), (i32(1), f32(-2)))
def item_of_a_variable(i, x):
    pairs = [(x, i), (x * 2, i + 5)]
    if x > 0:
        value, number = pairs[i]
    else:
        value, number = pairs[1 - i]
    return value, number


@case((i32(3), i32(1)))
def item_of_a_comprehension_in_a_loop(n, k):
    table = [[10 * row + column for column in range(3)] for row in range(3)]
    total = 0
    for i in range(n):
        line = table[k]
        total += line[i]
    return total


# --- loops ---


@case((f32(2),), (f32(-2),), (f32(-0.5),))
def items_of_an_ordered_dict_that_is_run_over(x):
    table = OrderedDict(a=x, b=x + 1)
    for key, value in table.items():
        if value > 0:
            table[key] = value * 2
    return table["a"], table["b"]


@case((i32(4), f32(2)), (i32(0), f32(2)))
def append_in_loop(n, x):
    found = []
    for i in range(n):
        x = x * 2
        found.append(x)
    return rows(found), len(found)


@case((i32(4), np.ones((2, 3), f32)))
def append_matrices(n, x):
    found = [x]
    while n > 0:
        found.append(found[-1] * 2)
        n -= 1
    return rows(found)


@case((i32(5),), (i32(0),))
def append_under_condition(n):
    odd, even = [], []
    for i in range(n):
        if i % 2:
            odd.append(i)
        else:
            even.append(i)
    return rows(odd), rows(even), len(odd) + len(even)


@case((i32(6),))
def nested_loops(n):
    found = [0]
    for i in range(n):
        for j in range(i):
            found.append(i * j)
    return rows(found)


@case((i32(7),))
def fibonacci(n):
    cache = [1, 1]
    for i in range(2, n):
        cache.append(cache[i - 1] + cache[i - 2])
    return rows(cache)


@case((i32(6), f32(0.5)))
def table_of_numbers(n, x):
    best = [0] * 8
    for i in range(1, n):
        best[i] = best[i - 1] + x
    return rows(best)


@case((i32(3), f32(0.5)))
def numbers_promote(n, x):
    s, found = 0, []
    for i in range(n):
        found.append(s)
        s = s + x
    return rows(found)


@case((i32(9),), (i32(1),))
def work_list(n):
    todo, count = [n], 0
    while todo:
        k = todo.pop()
        count += 1
        if k > 1:
            todo.append(k // 2)
            todo.append(k - k // 2)
    return count


@case((i32(4),))
def insert_and_delete(n):
    xs = [10, 20, 30]
    for i in range(n):
        xs.insert(1, i)
        xs.insert(-1, i * 2)
        if i > 1:
            del xs[0]
        xs.extend([i, i + 1])
        if i == 2:
            xs.reverse()
    xs.append(-1)
    return rows(xs), xs[2], xs[-2], xs.pop(1), rows(xs[1:3])


@case((i32(3),))
def augmented(n):
    xs = [0]
    for i in range(n):
        xs += [i, i]
    ys = xs
    xs = xs + [7]
    return rows(xs), rows(ys)


@case((i32(3),))
def iterate(n):
    xs = []
    for i in range(n):
        xs.append(i * i)
    total = 0
    for x in xs:
        total += x
    for i, x in enumerate(xs):
        total += i * x
    for x, y in zip(xs, reversed(xs)):
        total += x * y
    return total, sum(xs), max(xs), 4 in xs, 5 in xs


@case((i32(3),))
def grows_while_iterated(n):
    xs = [n]
    for x in xs:
        if x > 0:
            xs.append(x - 1)
    return rows(xs)


@case((i32(3),))
def aliases(n):
    a = []
    b = a
    box = {"list": a}
    for i in range(n):
        a.append(i)
        b.append(i * 10)
    box["list"].append(5)
    return rows(b), len(a)


@case((i32(3),))
def through_functions(n):
    seen = []

    def note(x):
        seen.append(x)

    def fill(into, count):
        for i in range(count):
            into.append(i)
            note(i)

    mine = []
    fill(mine, n)
    mine.append(9)
    return rows(mine), rows(seen), len(mine)


@case((i32(3),))
def in_an_object(n):
    class Recorder:
        def __init__(self):
            self.values = []

        def add(self, x):
            self.values.append(x)

    recorder = Recorder()
    for i in range(n):
        recorder.add(i + 1)
    return rows(recorder.values)


@case((i32(3), f32(2)))
def pairs(n, x):
    found = []
    for i in range(n):
        x = x + 1
        found.append((i, x))
    last = found[-1]
    total = 0.0
    for i, y in found:
        total += y
    return last[0], last[1], total


@case((i32(3),), (i32(0),))
def only_read(n):
    xs = [3, 1, 2]
    total = 0
    for i in range(n):
        total += xs[i]
    xs.append(4)
    return total, len(xs) * [xs[0]]


@case((i32(3),))
def fixed_length(n):
    xs, d = [1, 2], {"a": 0, "b": 5}
    key = "a"
    while n > 0:
        xs[0], xs[1] = xs[1], xs[0] + xs[1]
        d[key] += n
        n -= 1
    return xs, d["a"], d["b"]


@case((i32(3),), (i32(0),))
def matrix_of_lists(n):
    grid = [[0, 0], [0, 0]]
    for i in range(n):
        for row in grid:
            row[1] += i
    return grid[0], grid[1]


# --- branches ---


@case((f32(1),), (f32(-1),))
def append_in_branch(x):
    xs = [x]
    if x > 0:
        xs.append(x * 2)
    return rows(xs), len(xs)


@case((f32(1),), (f32(-1),))
def append_in_both_branches(x):
    xs = []
    if x > 0:
        xs.append(x * 2)
    else:
        xs.append(x * 3)
    return xs


@case((f32(1),), (f32(-1),))
def set_in_branch(x):
    xs, d, key = [x, x], {"k": x}, "k"
    if x > 0:
        xs[0] = x * 2
        d[key] = 4.0
    return xs, d["k"]


@case((f32(1),), (f32(-1),))
def pop_in_branch(x):
    xs = [x, x + 1]
    if x > 0:
        y = xs.pop()
    else:
        y = xs.pop(0)
        xs.append(y)
    return rows(xs), y


@case((f32(1),), (f32(-1),))
def rebinding_in_branch(x):
    xs = [x]
    if x > 0:
        xs = xs + [x]
    return rows(xs)


@case((f32(1),), (f32(-1),))
def helper_appends_in_branch(x):
    def helper(into):
        if x > 0:
            into.append(x)

    xs = []
    helper(xs)
    helper(xs)
    xs.append(x)
    n = len(xs)
    total = 0.0
    for each in xs:
        total += each
    return n, total


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize(("function", "arguments"), TABLE.rows)
def test_same_as_python(function, arguments, dynamic):
    check_same_as_python(function, arguments, dynamic)


@pytest.mark.parametrize(("function", "arguments"), TABLE.rows)
def test_compiled(function, arguments):
    compiled = ag.function(function, jit_compile=True, autograph=True)
    expected = function(*[a.copy() if isinstance(a, np.ndarray) else a for a in arguments])
    found = compiled(*[ag.constant(a) for a in arguments])
    for a, b in zip(ag.nest.flatten(found), ag.nest.flatten(expected)) if not _has_list(expected) else ():
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6)


def _has_list(value):
    return isinstance(value, list) or (isinstance(value, tuple) and any(map(_has_list, value)))
