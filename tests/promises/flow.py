"""Promises: Functions that call themselves, errors, printing, random numbers, datasets."""

from __future__ import annotations

import contextlib
import io

import numpy as np

import autograph as ag
from autograph.errors import StagingError
from tests.promises.registry import GIVEN, checked, kept, refused


class Counter:
    def __init__(self):
        self.calls = 0

    def depth(self, n):
        self.calls += 1
        return 0 if n < 1.0 else 1 + self.depth(n - 1.0)


def is_even(n):
    return True if n < 0.5 else is_odd(n - 1.0)


def is_odd(n):
    return False if n < 0.5 else is_even(n - 1.0)


@kept("This includes functions that call each other")
def recursion(t):
    def nested(n):
        return n if n < 1.0 else nested(n - 1.0) * 2.0 + 1.0

    return is_even(t[0]), Counter().depth(t[3]), nested(t[2])


@kept("Arguments that differ between calls")
def state_of_recursion(t):
    counter = Counter()
    return counter.depth(t[3]) + counter.calls, counter.calls


@refused("Results may be structures", StagingError, "")
def no_base_case(t):
    def endless(n):
        return endless(n - 1.0) if n > 0.0 else endless(n + 1.0)

    return endless(t[0])


@kept("Calls that differ in Python values")
def unrolled_calls(t):
    def power(x, n):
        return 1.0 if n == 0 else x * power(x, n - 1)

    return power(t[0], 3)


@checked("Like a loop's body, the function is traced")
def recursion_prints(mode):
    def fall(n):
        print("traced")
        return n if n < 1.0 else fall(n - 1.0)

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert float(mode(fall)(ag.constant(2.5))) == 0.5
    assert printed.getvalue().count("traced") >= 1


@refused("More than 1000 nested calls", RecursionError, "")
def deep_recursion(t):
    def sink(n):
        return n if n < 1.0 else sink(n - 1.0) + 1.0

    return sink(t[0] * 1000.0)


@kept("Native code makes real calls")
def arrays_in_calls(t):
    def fill(x, n):
        return x if n < 0.5 else fill(ag.tensor_scatter_nd_update(x, [[int(n)]], [n]), n - 1.0)

    return fill(t, t[0]), t


@checked("Gradients of any order flow")
def gradients_of_recursion(mode):
    def cube(x, n):
        return ag.ones_like(x) if n < 0.5 else x * cube(x, n - 1.0)

    x, run = ag.constant(2.0), mode(cube)
    with ag.GradientTape() as outer:
        outer.watch(x)
        with ag.GradientTape() as inner:
            inner.watch(x)
            y = run(x, ag.constant(3.0))
        slope = inner.gradient(y, x)
    assert [float(slope), float(outer.gradient(slope, x))] == [12.0, 12.0]


# --- raise, print and what follows ----------------------------------------------------------------------------------


@kept("try in the same function")
def raised_and_caught(t):
    caught = 0
    for v in t:
        try:
            if v > 2.5:
                raise ValueError("large")
            caught += 10
        except ValueError:
            caught += 1
        else:
            caught += 100
        finally:
            caught += 1000
    return caught


@refused("Errors from elsewhere", StagingError, "a `try` around the condition would catch it")
def error_from_elsewhere(t):
    def check(v):
        if v > 2.5:
            raise ValueError("large")

    try:
        check(t[0])
    except ValueError:
        return 1.0
    return t[0]


@refused("IndexError, KeyError and ZeroDivisionError", IndexError, "")
def python_value_out_of_range(t):
    empty = []
    if t[0] > 1.0:
        return empty[0]
    return t[0]


@refused("assert: in a try", AssertionError, "too small")
def failed_assertion(t):
    for v in t:
        assert v > 0.5, "too small"
    return t[0]


@kept("assert: in a try")
def caught_assertion(t):
    caught = 0
    for v in t:
        try:
            assert v > 0.5
        except AssertionError:
            caught += 1
    return caught


@kept("with contextlib.suppress")
def suppressed(t):
    passed = 0
    for v in t:
        with contextlib.suppress(KeyError):
            if v > 2.5:
                raise KeyError("large")
            passed += 1
    return passed


def _printed(run, *arguments):
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        for _ in range(2):
            run(*arguments)
    return shown.getvalue()


@checked("Outside of staged blocks print")
def prints_while_tracing(mode):
    def run(t):
        print("once")
        return t[0]

    assert _printed(mode(run), ag.constant(GIVEN)) == "once\n"


@checked("Inside a staged branch or loop, print")
def prints_at_run_time(mode):
    def run(t):
        for v in t:
            if v > 2.5:
                print("large", v, f"{v:.2f}")

    assert _printed(mode(run), ag.constant(GIVEN)) == "large 3 3.00\nlarge 5 5.00\n" * 2


@checked("ag.print always prints at run time")
def ag_print(mode):
    def run(t):
        ag.print("sum", ag.reduce_sum(t), output_stream=shown)

    shown = io.StringIO()
    for _ in range(2):
        traced = mode(run)
        traced(ag.constant(GIVEN))
    assert shown.getvalue() == "sum 11\n" * 2


@refused("An f-string shows the values", ValueError, "the sum is 11.00")
def f_string_in_an_error(t):
    if t[0] > 1.0:
        raise ValueError(f"the sum is {ag.reduce_sum(t):.2f}")


@checked("np.random. and random.")
def random_numbers(mode):
    def run(t):
        drawn = 0.0
        for _ in t:
            drawn = drawn * 2.0 + np.random.random()
        return drawn

    traced = mode(run)
    for seed in (1, 2):
        np.random.seed(seed)
        got = float(traced(ag.constant(GIVEN)))
        np.random.seed(seed)
        np.testing.assert_allclose(got, run(GIVEN), rtol=1e-6)


@checked("time. (")
def the_time(mode):
    import time

    traced = mode(lambda t: time.perf_counter() + 0.0 * t[0])
    first = traced(ag.constant(GIVEN, ag.float64))
    assert float(traced(ag.constant(GIVEN, ag.float64))) > float(first)


# --- datasets -------------------------------------------------------------------------------------------------------


@kept("If an element follows from its index")
def datasets_from_indices(t):
    result = 0.0
    for i, v in ag.data.Dataset.from_tensor_slices(t).map(lambda v: v * 2.0).take(4).repeat(2).enumerate():
        if v > 9.0:
            continue
        result += v * ag.cast(i, ag.float32)
    return result


@kept("Ragged and sparse tensors have rows, too")
def ragged_rows(t):
    rows = ag.RaggedTensor.from_row_lengths(t, [2, 0, 3])
    result = 0.0
    for row in ag.data.Dataset.from_tensor_slices(rows):
        result = result * 10.0 + ag.reduce_sum(row)
    return result


@kept("Other elements (filter")
def datasets_from_python(t):
    result = 0.0
    for v in ag.data.Dataset.from_tensor_slices(GIVEN).filter(lambda v: v > 1.5):
        result = result * 2.0 + v
    return result + t[0]


@checked("iter(dataset) inside a function")
def iterators_of_datasets(mode):
    def run(t):
        iterator = iter(ag.data.Dataset.range(3))
        return next(iterator) + next(iterator)

    traced = mode(run)
    assert [int(traced(ag.constant(GIVEN))) for _ in range(2)] == [1, 1]


@kept("batch(n) accepts a computed number")
def computed_batches(t):
    result = 0.0
    for rows in ag.data.Dataset.range(6).batch(ag.cast(t[2] + 1.0, ag.int64)):
        result = result * 10.0 + ag.cast(ag.reduce_sum(rows), ag.float32)
    return result


@checked("A function is traced again for each dataset")
def traces_of_datasets(mode):
    traced = mode(lambda data: data.reduce(ag.constant(0, ag.int64), lambda one, other: one + other))
    assert [int(traced(ag.data.Dataset.range(n))) for n in (3, 4)] == [3, 6]
    assert traced.experimental_get_tracing_count() == 2


# --- syntax ---------------------------------------------------------------------------------------------------------


@kept("Annotations and type parameters")
def annotated(t: Undefined) -> AlsoUndefined:  # noqa: F821 - nobody evaluates them
    result: Undefined = 0.0  # noqa: F821
    for v in t:
        result += v
    return result
