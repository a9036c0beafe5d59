"""A traced function that changes Python's state, called in another trace, does so at each call, as in Python."""

from __future__ import annotations

import functools

import pytest

import autograph as ag
from autograph.errors import StagingError

GIVEN = [3.0, 0.0, 2.0, 5.0, 1.0, 4.0]
total = 0.0


class Box:
    def __init__(self):
        self.n = 0.0

    def add(self, v):
        self.n += v


# Each gives a function that is called with a number, and one that tells what the state is. `traced` is `ag.function`
# or, for Python's own result, nothing.


def of_list(traced):
    found = []
    return traced(lambda v: found.append(v)), lambda: len(found) + sum(found)


def of_constants(traced):
    found = []
    return traced(lambda v: found.append(1)), lambda: len(found)


def of_variable(traced):
    n = 0

    @traced
    def add(v):
        nonlocal n
        n += 1
        return v

    return add, lambda: n


def of_item(traced):
    table = {"n": 0.0}

    @traced
    def add(v):
        table["n"] += v

    return add, lambda: table["n"]


def of_global(traced):
    global total
    total = 0.0

    @traced
    def add(v):
        global total
        total += v

    return add, lambda: total


def of_attribute(traced):
    box = Box()

    @traced
    def add(v):
        box.n += v

    return add, lambda: box.n


def of_bound_method(traced):
    box = Box()
    return traced(box.add), lambda: box.n


def of_method(traced):
    class Decorated(Box):
        add = traced(Box.add)

    box = Decorated()
    return box.add, lambda: box.n


def of_call(traced):
    class Called(Box):
        __call__ = traced(Box.add)

    box = Called()
    return box, lambda: box.n


def of_partial(traced):
    box = Box()
    return functools.partial(traced(Box.add), box), lambda: box.n


def of_argument(traced):
    box = Box()
    add = traced(Box.add)
    return lambda v: add(box, v), lambda: box.n


def of_default(traced):
    box = Box()

    @traced
    def add(v, box=box):
        box.n += v

    return add, lambda: box.n


def of_class(traced):
    class Counted:
        n = 0

        @classmethod
        def add(cls, v):
            cls.n += 1

    return traced(Counted.add), lambda: Counted.n


def of_nested(traced):
    add, read = of_list(traced)

    @traced
    def twice(v):
        add(v)
        add(v + 1.0)

    return twice, read


def of_loop(traced):
    box = Box()

    @traced
    def add(v):
        while v > 0.0:
            box.n += v
            v -= 1.0

    return add, lambda: box.n


def of_recursion(traced):
    box = Box()

    @traced
    def add(v):
        if v > 0.0:
            box.n += 1.0
            add(v - 1.0)

    return add, lambda: box.n


def of_result(traced):
    box = Box()

    @traced
    def add(v):
        box.n += v
        return box.n * 2.0

    return lambda v: box.add(add(v)), lambda: box.n


STATES = [
    of_list, of_constants, of_variable, of_item, of_global, of_attribute, of_bound_method, of_method, of_call,
    of_partial, of_argument, of_default, of_class, of_nested, of_loop, of_recursion, of_result,
]  # fmt: skip


def in_loop(t, add):
    for v in t:
        add(v)


def in_branch(t, add):
    if t[0] > 1.0:
        add(t[0])
    if t[1] > 1.0:
        add(t[1])


def in_both(t, add):
    for v in t:
        if v > 1.5:
            add(v)


def in_lines(t, add):
    add(t[0])
    add(t[2])


def in_map(t, add):
    ag.map_fn(lambda v: (add(v), v)[1], t)


def program(state, block, traced):
    def run(t):
        add, read = state(traced)
        block(t, add)
        return read() + 0.0

    return run


def plain(function):
    return function


@pytest.mark.parametrize("block", [in_loop, in_branch, in_both, in_lines, in_map])
@pytest.mark.parametrize("state", STATES)
def test_each_call_changes_the_state(state, block):
    right, slope = with_slope(program(state, block, plain))
    traced = ag.function(program(state, block, ag.function), jit_compile=state is of_list)
    assert with_slope(traced) == (right, slope)


def with_slope(function):
    t = ag.constant(GIVEN)
    with ag.GradientTape() as tape:
        tape.watch(t)
        result = ag.convert_to_tensor(function(t))
    slope = tape.gradient(result, t, unconnected_gradients=ag.UnconnectedGradients.ZERO)
    return float(result), slope.numpy().tolist()


def test_one_that_python_has_called_before_is_taken_in():
    box = Box()

    @ag.function
    def add(v):
        box.n += 1.0
        return v

    @ag.function
    def run(t):
        box.n = 0.0
        for v in t:
            add(v)
        return box.n

    add(ag.constant(1.0))
    assert float(run(ag.constant(GIVEN))) == 6.0


def test_outside_of_blocks_what_was_there_before_changes_once_in_a_trace():
    """TensorFlow's rule, by which programs count traces."""
    traces = []

    @ag.function
    def inner(v):
        traces.append("inner")
        return v + 1.0

    @ag.function
    def outer(v):
        return inner(v) + inner(v)

    assert float(outer(ag.constant(1.0))) == 4.0
    assert traces == ["inner"]


def test_what_is_taken_in_gives_tensors_of_the_dtypes_of_a_trace():
    @ag.function(input_signature=[ag.TensorSpec([], ag.float64)])
    def add(v):
        seen.append(v.dtype)
        box.n += v
        return 2

    seen = []

    @ag.function
    def run(t):
        nonlocal box
        box = Box()
        box.n = ag.constant(0.0, ag.float64)
        result = add(t[0])
        return result, box.n

    box = Box()
    result, n = run(ag.constant(GIVEN, ag.float64))
    assert (result.dtype, n.dtype, float(n)) == (ag.int32, ag.float64, 3.0)
    assert set(seen) == {ag.float64}


def test_a_trace_by_itself_of_what_changes_the_state_of_another_is_refused():
    @ag.function
    def run(t):
        found = []
        ag.function(lambda v: found.append(v)).get_concrete_function(t[0])
        return len(found)

    with pytest.raises(StagingError, match="changes Python's state") as caught:
        run(ag.constant(GIVEN))
    assert "test_taking_in.py" in str(caught.value)


@pytest.mark.parametrize("call", [ag.py_function, ag.numpy_function])
def test_functions_that_the_program_calls_may_not_change_what_the_trace_has_made(call):
    @ag.function
    def run(t):
        found = []

        def note(v):
            found.append(float(v))
            return v

        for v in t:
            call(note, [v], ag.float32)
        return len(found)

    with pytest.raises(
        StagingError, match=r"note\(\), which the program calls when it runs, changes 'found'"
    ) as caught:
        run(ag.constant(GIVEN))
    assert "fix: make it outside of the traced function" in str(caught.value)
    assert "test_taking_in.py" in str(caught.value)


@pytest.mark.parametrize("call", [ag.py_function, ag.numpy_function])
def test_they_may_change_what_was_there_before_it(call):
    found, n, box = [], 0, Box()

    @ag.function
    def run(t):
        def note(v):
            nonlocal n
            n += 1
            found.append(float(v))
            box.add(float(v))
            return v

        for v in t:
            call(note, [v], ag.float32)

    run(ag.constant(GIVEN))
    run(ag.constant(GIVEN))
    assert (found, n, box.n) == (GIVEN * 2, 12, 30.0)
