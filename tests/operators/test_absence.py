"""Variables that have a value only on some ways through a program: None, or unbound, on the others."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import autograph as ag

VECTOR = np.array([1.0, 5.0, 2.0], np.float32)
NOTHING = np.zeros(0, np.float32)


# --- programs: the same in Python on arrays and numbers, and staged ------------------------------------------------


def largest(xs):
    best = None
    for x in xs:
        best = x if best is None else max(best, x)
    return -1.0 if best is None else best


def largest_by_or(xs):
    best = None
    for x in xs:
        if best is None or x > best:
            best = x
    if best is None:
        return -1.0
    return best


def differences(xs):
    previous, total, n = None, 0.0, len(xs)
    i = 0 * n
    while i < n:
        if previous is not None:
            total += (xs[i] - previous) ** 2
        previous = xs[i]
        i += 1
        if total > 100:
            break
    return total


def pair_in_nested_loops(xs):
    best = None
    for x in xs:
        for y in xs:
            if best is None or x - y > best[0]:
                best = (x - y, x)
    if best is None:
        return 0.0, 0.0
    return best


def first_needs_it_only_later(xs):
    total = None
    i = 0
    for x in xs:
        if i == 0:
            total = x
        else:
            total = total + x
        i += 1
    if total is not None:
        return total
    return 0.0


def unbound_until_a_flag(xs):
    first = True
    for x in xs:
        if first:
            low = high = x
            first = False
        else:
            low = min(low, x)
            high = max(high, x)
    if first:
        return 0.0, 0.0
    return low, high


def born_and_read_under_the_same_test(xs):
    n = len(xs)
    for i in range(n):
        last = i
    if n > 0:
        return last
    return -1


def loses_it(xs):
    best = xs
    for x in xs:
        best = None if x > 1 else best
    return len(xs) if best is None else -1


def found_by_a_function(xs):
    def first_above(limit):
        for x in xs:
            if x > limit:
                return x
        return None

    x = first_above(1.5)
    y = first_above(100.0)
    return 0.0 if x is None else x, 0.0 if y is None else y


def truth_of_none(xs):
    found = None
    for x in xs:
        if x > 4:
            found = x
            break
    if not found:
        return -1.0
    return found * 2


def narrowed_by_a_conjunction(xs):
    previous, ups = None, 0
    for x in xs:
        if previous is not None and x > previous:
            ups += 1
        previous = x
    return ups


def pair_or_none(xs):
    state = None
    if len(xs) > 1:
        state = (xs[0], xs[1])
    if state is None:
        state = (-1.0, -2.0)
    a, b = state
    return a + b


def attribute(xs):
    class Box:
        top = None

    box = Box()
    box.top = None
    for x in xs:
        if box.top is None or x > box.top:
            box.top = x
    return 0.0 if box.top is None else box.top


PROGRAMS = [
    largest,
    largest_by_or,
    differences,
    pair_in_nested_loops,
    first_needs_it_only_later,
    unbound_until_a_flag,
    born_and_read_under_the_same_test,
    loses_it,
    found_by_a_function,
    truth_of_none,
    narrowed_by_a_conjunction,
    pair_or_none,
    attribute,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_same_as_python(program):
    staged = ag.function(program, input_signature=[ag.TensorSpec([None], ag.float32)])
    for xs in (VECTOR, VECTOR[::-1].copy(), VECTOR[:1], NOTHING):
        np.testing.assert_allclose(ag.nest.flatten(staged(xs)), np.ravel(program(xs)), rtol=1e-6)


def test_compiled():
    staged = ag.function(largest, input_signature=[ag.TensorSpec([None], ag.float32)], jit_compile=True)
    assert float(staged(VECTOR)) == 5.0
    assert float(staged(NOTHING)) == -1.0


@pytest.mark.parametrize("program", [largest, largest_by_or])
def test_gradient(program):
    xs = ag.constant(VECTOR)
    with ag.GradientTape() as tape:
        tape.watch(xs)
        y = ag.function(program)(xs) ** 2
    assert tape.gradient(y, xs).numpy().tolist() == [0.0, 10.0, 0.0]


# --- errors at run time --------------------------------------------------------------------------------------------


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    return first + next(index for index, line in enumerate(lines) if text in line)


def check(function, error, name, line, good, bad):
    """It runs with ``good`` and fails with ``bad``, at the line, naming the variable; the trace itself doesn't fail."""
    staged = ag.function(function)
    staged(ag.constant(good))
    with pytest.raises(error, match=f"'{name}'") as caught:
        staged(ag.constant(bad))
    assert isinstance(caught.value, ag.errors.InvalidArgumentError)  # TensorFlow's, where it has one
    assert f"{__file__}:{line_of(function, line)}, in {function.__name__}" in str(caught.value)


def test_returned_after_a_branch():
    def f(x):
        if x > 0:
            y = x
        return x, y  # here

    check(f, UnboundLocalError, "y", "# here", 1, -1)


def test_used_after_a_branch():
    def f(x):
        if x > 0:
            y = x
        z = x * 2
        return z + y  # here

    check(f, UnboundLocalError, "y", "# here", 1, -1)


def test_used_after_a_loop():
    def f(n):
        for i in range(n):
            last = i * 2
        return last  # here

    check(f, UnboundLocalError, "last", "# here", 2, 0)


def test_loop_variable():
    def f(n):
        for i in range(n):
            pass
        return i + 1  # here

    check(f, UnboundLocalError, "i", "# here", 2, 0)


def test_born_in_a_nested_loop_and_read_in_a_branch():
    def f(n):
        total = 0
        for i in range(n):
            for j in range(i):
                inner = j
            if i > 0:
                total += inner
        if n == 0:
            total += inner  # here
        return total

    check(f, UnboundLocalError, "inner", "# here", 3, 0)


def test_attribute_that_only_one_branch_sets():
    class Box:
        pass

    def f(x):
        box = Box()
        if x > 0:
            box.h = x
        return box.h * 2  # here

    check(f, AttributeError, "box.h", "# here", 1, -1)


def test_none_is_used():
    def f(x):
        y = None
        if x > 0:
            y = x
        return y + 1  # here

    check(f, TypeError, "y", "# here", 1, -1)


def test_none_is_returned():
    def f(n):
        best = None
        for i in range(n):  # here
            best = i
        return best

    check(f, TypeError, "best", "# here", 1, 0)


def test_not_read_is_no_error():
    @ag.function
    def f(x):
        if x > 0:
            y = x
            x += 1
        alias = y if x > 0 else x
        return x if x < 0 else alias

    assert [int(f(ag.constant(x))) for x in (1, -1)] == [1, -1]


def test_trial_that_never_finds_a_value_shows_the_first_error():
    @ag.function
    def f(n):
        while n > 0:
            if n > 2:
                n -= missing_here  # noqa: F821
            n -= 1
        return n

    with pytest.raises(NameError, match="missing_here"):
        f(ag.constant(3))
