"""Loops as Python functions, beside the same loops run node by node: values, errors, effects, and questions asked."""

import numpy as np
import pytest

import autograph as ag
from runtime.graph import interpreter
from runtime.graph.hot_loops import HotLoop
from runtime.graph.interpreter import interpret
from runtime.graph.verify import verify


def outcome(function, *arguments, until):
    """The results or the error of a run in which loops become functions after `until` trips."""
    given = [ag.constant(a) for a in arguments]
    concrete = ag.function(function, jit_compile=False).get_concrete_function(*given)
    verify(concrete.graph)
    before = interpreter.TRIPS_UNTIL_HOT
    interpreter.TRIPS_UNTIL_HOT = until
    try:
        return [np.asarray(r).tolist() for r in interpret(concrete.graph, [np.asarray(a) for a in given])]
    except Exception as error:
        return type(error), str(error)
    finally:
        interpreter.TRIPS_UNTIL_HOT = before


def nested(n):
    total = ag.constant(0)
    for i in ag.range(n):
        j = i
        while j < n:
            if j % 3 == 0:
                total += j
            elif j % 3 == 1:
                for k in ag.range(j):
                    total -= k
            j += 1
    return total, n


def swapping(n):
    a, b, c = ag.constant(0), ag.constant(1), ag.constant(2)
    for _ in ag.range(n):
        a, b, c = b, c, a + b
    return a, b, c


def arrays(n):
    x = ag.ones([3, 3])
    rows = ag.TensorArray(ag.float32, size=n, element_shape=[3])
    for i in ag.range(n):
        x = ag.tanh(x @ x) + ag.cast(i, ag.float32)
        rows = rows.write(i, ag.reduce_sum(x, 0))
    return rows.stack(), x


def slope(n):
    x = ag.constant(0.3)
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in ag.range(n):
            y = 2.5 * y * (1.0 - y)
    return tape.gradient(y, x)


def unchanged(n):
    """Carries that no trip moves, and a loop whose results nobody reads."""
    kept, i = n * 2, ag.constant(0)
    while i < n:
        kept = kept
        j = ag.constant(0)
        while j < 2:
            j += 1
        i += 1
    return kept


def extended(n):
    """Two elements a trip, with a gradient: the second write follows the first in place."""
    x = ag.range(ag.cast(n, ag.float32))
    found = [0.5]
    with ag.GradientTape() as tape:
        tape.watch(x)
        for v in x:
            found.extend([v, v * 2.0])
        y = ag.stack(found)
    return y, tape.gradient(y, x)


def sieve(n):
    """A list that inner loops and branches write."""
    composite, primes = [False] * 40, [0]
    for i in ag.range(2, n + 2):
        if not composite[i]:
            primes.append(i)
            j = i * i
            while j < 40:
                composite[j] = True
                j += i
    return ag.convert_to_tensor(primes), ag.convert_to_tensor(composite)


def rows(n):
    """A list that replaces another one in each trip, and one that is read before and after it is written."""
    before, sums = [1, 2, 3, 4], [0, 0, 0, 0]
    for i in ag.range(n):
        now = [0, 0, 0, 0]
        for j in ag.range(1, 4):
            now[j] = (before[j] + before[j - 1] + i) % 1000
            sums[j] = sums[j] + now[j]
        before = now
    return ag.convert_to_tensor(before), ag.convert_to_tensor(sums)


def earlier_contents(n):
    """Contents that are kept while the list changes."""
    values, kept = [5, 6, 7], ag.constant(0)
    snapshot = ag.convert_to_tensor(values)
    for i in ag.range(n):
        values[i % 3] = values[(i + 1) % 3] + i
        if i % 4 == 0:
            snapshot = ag.convert_to_tensor(values)
        kept += snapshot[0]
    return kept, snapshot, ag.convert_to_tensor(values)


def both_kept(n):
    """An array of which two versions live on."""
    first = ag.TensorArray(ag.int32, size=3, element_shape=[], clear_after_read=False).unstack([1, 2, 3])
    second = first
    for i in ag.range(n):
        first, second = second.write(i % 3, i), first
    return first.stack(), second.stack()


def exchanged(n):
    a, b = [1, 2, 3], [4, 5, 6]
    for i in ag.range(n):
        a[i % 3] = b[0] + 1
        if a[0] > b[1]:
            a, b = b, a
        b[2] = a[1]
    return ag.convert_to_tensor(a), ag.convert_to_tensor(b)


def slope_through_a_list(n):
    x = ag.constant(0.7)
    with ag.GradientTape() as tape:
        tape.watch(x)
        powers = [1.0, x, 0.0]
        for i in ag.range(n):
            powers[2] = powers[1] * x
            powers[1] = powers[2] + 0.1
        y = powers[1]
    return y, tape.gradient(y, x)


LISTS = [sieve, rows, earlier_contents, both_kept, exchanged, slope_through_a_list]


@pytest.mark.parametrize("function", [nested, swapping, arrays, slope, unchanged, extended, *LISTS])
@pytest.mark.parametrize("trips", [0, 1, 30])
def test_results_are_those_of_the_nodes(function, trips):
    expected = outcome(function, trips, until=1 << 60)
    assert outcome(function, trips, until=0) == expected
    assert outcome(function, trips, until=3) == expected


def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


def twice_fibonacci(n):
    """Recursion with a loop inside and one around, and a capture."""
    scale = ag.constant(2)

    def f(k, x):
        if k < 1:
            return x * scale
        y = x
        for _ in ag.range(k):
            y = y + 1
        return f(k - 1, y) + f(k - 2, x)

    total = ag.constant(0)
    for i in ag.range(ag.minimum(n, 6)):
        total += f(i, total % 7)
    return total


def alternating(n):
    """Functions that call each other."""

    def is_even(k, steps):
        if k == 0:
            return True, steps
        return is_odd(k - 1, steps + 1.0)

    def is_odd(k, steps):
        if k == 0:
            return False, steps
        return is_even(k - 1, steps + 1.0)

    return is_even(n, ag.constant(0.0))


def slope_of_recursion(n):
    x = ag.constant(0.9)

    def power(k):
        if k < 1:
            return x
        return power(k - 1) * x + ag.sin(x)

    with ag.GradientTape() as tape:
        tape.watch(x)
        y = power(ag.minimum(n, 12))
    return y, tape.gradient(y, x)


@pytest.mark.parametrize("function", [fibonacci, twice_fibonacci, alternating, slope_of_recursion])
@pytest.mark.parametrize("argument", [0, 1, 9, 15])
def test_recursion_gives_what_the_nodes_give(function, argument):
    expected = outcome(function, argument, until=1 << 60)
    assert outcome(function, argument, until=0) == expected
    assert outcome(function, argument, until=3) == expected


def divides_deeply(n):
    if n < -2:
        return n
    return divides_deeply(n - 1) + 12 // n


def never_ends(n):
    if n < 0:
        return n
    return never_ends(n + 1) + 1


@pytest.mark.parametrize("function", [divides_deeply, never_ends])
def test_errors_in_recursion_are_those_of_the_nodes(function):
    expected = outcome(function, 30, until=1 << 60)
    assert isinstance(expected, tuple) and "test_hot_loops.py" in expected[1]
    assert outcome(function, 30, until=0) == expected
    assert outcome(function, 30, until=3) == expected


def test_the_accelerator_finishes_calls():
    graph = graph_of(fibonacci, ag.constant(0))
    interpret(graph, [np.int32(12)])
    tier_up = TierUp(results=[np.int32(100)])
    (found,) = interpret(graph, [np.int32(12)], tier_up)
    assert tier_up.depth == 0 and tier_up.asked > 3
    assert int(found) != 144  # one of the calls gave a hundred


def divides(n):
    x = ag.constant(100)
    for i in ag.range(n):
        x = x // (7 - i)
    return x


def reads_outside(n):
    a = ag.range(25)
    total = ag.constant(0)
    for i in ag.range(n):
        if i > 3:
            total += a[i]
    return total


def shapes_grow_apart(n):
    x = ag.ones([1])
    for i in ag.range(n):
        ag.autograph.experimental.set_loop_options(shape_invariants=[(x, ag.TensorShape([None]))])
        if i == 25:
            x = x + ag.ones([ag.shape(x)[0] + 3])[: ag.shape(x)[0] + 1]
        x = ag.concat([x, [1.0]], 0)
    return x


def asserts(n):
    for i in ag.range(n):
        assert i < 25, "too far"
    return n


@pytest.mark.parametrize("function", [divides, reads_outside, shapes_grow_apart, asserts])
def test_errors_name_the_line_and_are_those_of_the_nodes(function):
    expected = outcome(function, 30, until=1 << 60)
    assert isinstance(expected, tuple) and "test_hot_loops.py" in expected[1]
    assert outcome(function, 30, until=0) == expected
    assert outcome(function, 30, until=3) == expected


def test_effects_happen_once_and_in_order(capfd):
    def talks(n):
        i = ag.constant(0)
        while said(i) < n:
            ag.print("body", i)
            i += 1
        return i

    def said(i):
        ag.print("test", i)
        return i

    outcome(talks, 6, until=2)
    printed = capfd.readouterr()
    lines = (printed.out + printed.err).split("\n")[:-1]
    assert lines == [f"{where} {i}" for i in range(6) for where in ("test", "body")] + ["test 6"]


def test_loops_nested_too_deep_for_python_are_left_to_the_interpreter():
    def f(n):
        total = ag.constant(0)
        return deeper(total, n, 12)

    def deeper(total, n, levels):
        if levels == 0:
            return total + 1
        for _ in ag.range(n):
            total = deeper(total, n, levels - 1)
        return total

    assert outcome(f, 2, until=1) == [2**12]


class TierUp:
    """An accelerator that notes what it hears; finishes the loop of `carries` carries at its second question."""

    polls_each_trip = False

    def __init__(self, carries=None, results=None):
        self.heard, self.depth, self.asked = [], 0, 0
        self.carries, self.results = carries, results

    def enter(self, node):
        self.depth += 1
        self.heard.append(node.attrs.get("carries"))

    def leave(self):
        self.depth -= 1

    def finish(self, operands):
        self.asked += 1
        if self.asked == 2 and self.results is not None:
            return self.results
        return None


def graph_of(function, *arguments):
    return ag.function(function, jit_compile=False).get_concrete_function(*arguments).graph


def test_the_accelerator_hears_of_each_loop_and_is_asked():
    graph = graph_of(nested, ag.constant(0))
    tier_up = TierUp()
    interpret(graph, [np.int32(40)], tier_up)
    assert tier_up.depth == 0 and len(tier_up.heard) > 41
    assert tier_up.asked >= 40 * 20 // interpreter.TRIPS_PER_POLL

    tier_up = TierUp()
    graph = graph_of(divides, ag.constant(0))
    with pytest.raises(ag.errors.InvalidArgumentError):
        interpret(graph, [np.int32(40)], tier_up)
    assert tier_up.depth == 0


def test_the_accelerator_finishes_a_loop():
    graph = graph_of(swapping, ag.constant(0))
    node = next(n for n in graph.nodes if n.op.name == "while")
    results = [np.int32(k) for k in range(node.attrs["carries"])]
    tier_up = TierUp(results=results)
    found = interpret(graph, [np.int32(1000)], tier_up)
    assert tier_up.asked == 2 and tier_up.depth == 0
    assert [int(v) for v in found] == [int(results[node.outputs.index(v)]) for v in graph.outputs]


def test_an_accelerator_in_a_hurry_is_asked_at_each_trip():
    tier_up = TierUp()
    tier_up.polls_each_trip = True
    interpret(graph_of(swapping, ag.constant(0)), [np.int32(50)], tier_up)
    assert tier_up.asked == 50


def test_lists_are_written_in_place():
    graph = graph_of(sieve, ag.constant(0))
    node = next(n for n in graph.nodes if n.op.name == "while")
    text = HotLoop(node, interpreter._executor).text
    assert sum(".copy()" in line for line in text) == 2  # once for each list, before the loop


def test_big_intermediates_are_freed_in_the_trip():
    def f(x, n):
        for _ in ag.range(n):
            y = ag.tanh(x)
            x = ag.sin(y) + ag.cos(x)
        return x

    graph = graph_of(f, ag.ones([4]), ag.constant(0))
    node = next(n for n in graph.nodes if n.op.name == "while")
    text = "\n".join(HotLoop(node, interpreter._executor).text)
    assert text.count("= None") >= 2
