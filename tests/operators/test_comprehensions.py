"""Comprehensions over what is staged give what Python's give, and Python's own stay as they are."""

from __future__ import annotations

import numpy as np
import pytest

import autograph as ag
from autograph.convert.api import converted
from autograph.errors import StagingError
from tests.operators.harness import Table, check_same_as_python

i32 = np.int32
f32 = np.float32
TABLE = Table()
case = TABLE.case


def vector(*items, dtype=f32):
    return np.array(items, dtype)


def rows(items):
    return np.array(items) if ag.executing_eagerly() else ag.stack(items)


@case((vector(1, 2, 3),))
def squares(t):
    found = [x * x for x in t]
    found.append(t[0])
    return rows(found), len(found), found[-1]


@case((vector(1, 2, 3),), (vector(3, 1),))
def with_conditions(t):
    return len([x for x in t if x > 1]), sum([x for i, x in enumerate(t) if x > 1 if i < 2])


@case((i32(4),), (i32(0),))
def several_generators(n):
    return rows([i * j for i in range(n) for j in range(i)]), len([0 for i in range(n) if i % 2 for _ in range(i)])


@case((vector(1, 2, 3),))
def nested(t):
    return rows([sum([x * y for y in t]) for x in t])


@case((vector(1, 2, 3),))
def matrix(t):
    table = [[x * y for y in t] for x in t]
    return rows(table), table[1][2], len(table)


@case((vector(1, 2, 3),))
def conditions_on_python_items(t):
    return sum(k for k in (1, 2, 3) if t[k - 1] > 1), rows([k * t[0] for k in (0, 1, 2) if t[k] > 1])


@case((vector(1, 2, 3),))
def python_items_around_tensors(t):
    return rows([a * x for a in (1, 2) for x in t]), rows([a * x for x in t for a in (1, 2) if x > a])


@case((vector(1, 2, 3),), (vector(-1, -2),))
def generators(t):
    return (
        sum(x * x for x in t), sum((x for x in t), 1.0), max(x - 1 for x in t), min(-x for x in t if x < 9),
        any(x > 2 for x in t), all(x > 0 for x in t), any(t[k] > 0 for k in (0, 1)), all(t[k] > 1 for k in range(2)),
        rows(list(x for x in t if x < 3)), rows(sorted(-x for x in t)),
    )  # fmt: skip


@case((i32(5),))
def in_a_loop(n):
    total = 0
    while n > 0:
        total += sum(k * n for k in range(n) if k % 2)
        n -= 1
    return total


@case((vector(1, 2),))
def destructuring(t):
    pairs = [(x, (x + 1, x + 2)) for x in t]
    return rows([a + b * c for a, (b, c) in pairs]), sum(a * b for a, b in zip(t, reversed(t)))


@case((vector(1, 2, 3),))
def over_comprehensions(t):
    total = 0.0
    for x in [y * 2 for y in t if y > 1]:
        total += x
    return total, sum(z + 1 for z in [y * 2 for y in t])


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize(("function", "arguments"), TABLE.rows)
def test_same_as_python(function, arguments, dynamic):
    check_same_as_python(function, arguments, dynamic)


@pytest.mark.parametrize(("function", "arguments"), TABLE.rows[::2])
def test_compiled(function, arguments):
    found = ag.function(function, jit_compile=True)(*[ag.constant(a) for a in arguments])
    for a, b in zip(ag.nest.flatten(found), ag.nest.flatten(function(*arguments))):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5)


def test_gradient():
    @ag.function
    def f(t):
        return ag.reduce_sum(ag.stack([x * x for x in t if x > 1])) + sum(x**3 for x in t)

    t = ag.constant([1.0, 2.0, 3.0])
    with ag.GradientTape() as tape:
        tape.watch(t)
        y = f(t)
    np.testing.assert_allclose(tape.gradient(y, t), [3.0, 16.0, 33.0])


def test_rows_of_unlike_length_fail_when_the_program_runs():
    f = ag.function(lambda n: ag.stack([[j for j in range(i)] for i in range(n)]))
    with pytest.raises((ag.errors.InvalidArgumentError, StagingError)):
        f(ag.constant(3))


# --- Python's comprehensions ---


def late_binding():
    x = "outer"
    functions = [lambda: x for x in range(3)]
    generators = [(x + y for y in range(2)) for x in range(2)]
    return [f() for f in functions], [list(g) for g in generators], x, [y for y in (1, 2) if (seen := y)], seen


def laziness():
    order = []

    def note(item):
        order.append(item)
        return item

    lazy = (note(x) for x in map(note, [1, 2, 3]) if note(x) > 1)
    order.append("made")
    first = next(lazy)
    lazy.close()
    return first, order, list(lazy), type(lazy).__name__


def scopes():
    class Box:
        size = 3
        items = [i for i in range(size)]

        def double(self):
            return [[self.size * i for i in self.items if i] for _ in range(2)]

    a = [b for a in ([1], [2, 3]) for b in a if b > 1 if b < 9]
    return Box().double(), a, {k: v for k, v in zip("ab", a)}, {c for c in "aa"}, [*(d for d in (1, 2))]


def failing():
    try:
        return [missing for _ in range(2)]  # noqa: F821
    except NameError as error:
        return type(error), str(error)


@pytest.mark.parametrize("function", [late_binding, laziness, scopes, failing], ids=lambda f: f.__name__)
def test_python_is_unchanged(function):
    assert converted(function)() == function()


def test_closures_in_a_trace_share_their_variable():
    @ag.function
    def f(t):
        functions = [lambda: t * k for k in (1.0, 2.0)]
        return sum(g() for g in functions)

    assert float(f(ag.constant(3.0))) == 12.0


def test_endless_generator_in_a_trace():
    def count():
        k = 0
        while True:
            yield k
            k += 1

    @ag.function
    def f(t):
        total = t
        for k in (k for k in count() if k % 2):
            if k > 5:
                break
            total = total + k
        return total

    assert float(f(ag.constant(0.0))) == 9.0


def dictionaries_of_a_known_length(t):
    found = {i: x * 2 for i, x in enumerate(t)}
    pairs = dict(zip(["a", "b", "c"], t))
    return found[0] + found[2], len(found), pairs["b"], {k: v for k, v in zip("xy", reversed(t))}["x"]


def items_taken_off(t):
    numbered = enumerate(t)
    first = next(numbered)
    total = first[1]
    for i, x in numbered:
        total = total * 10 + x * i
    return total, next(zip(t, t))[1], next(reversed(t)), next(map(lambda x: x * 2, t)), next(iter(t))


def the_first_item_that_fits(t):
    large = (x for x in t if x > 1)
    first = next(large, -1.0)
    return first, next(large, -1.0), next((x for x in t if x > 9), -2.0)


@pytest.mark.parametrize("items", [(1, 2, 3), (7, 1, 1)])
@pytest.mark.parametrize("function", [dictionaries_of_a_known_length, items_taken_off, the_first_item_that_fits])
def test_known_lengths(function, items):
    check_same_as_python(function, (vector(*items),), dynamic=False)


def test_a_generator_without_a_further_item():
    @ag.function
    def f(t):
        return next(x for x in t if x > 5)

    with pytest.raises(StopIteration, match="no further item"):
        f(ag.constant([1, 2]))


def test_python_runs_over_known_lengths_only():
    @ag.function
    def f(n):
        return {i for i in range(n)}

    with pytest.raises(ag.errors.OperatorNotAllowedInGraphError, match=r"range\(\) of tensors is run over by Python"):
        f(ag.constant(3))


def test_sums_of_lists_of_unknown_length():
    @ag.function(input_signature=[ag.TensorSpec([None], ag.float32)])
    def f(v):
        return ag.add_n([a * a if a > 0 else -a for a in v])

    assert float(f([0.5, -1.0, 2.0])) == 5.25
