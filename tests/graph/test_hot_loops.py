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


@pytest.mark.parametrize("function", [nested, swapping, arrays, slope, unchanged])
@pytest.mark.parametrize("trips", [0, 1, 30])
def test_results_are_those_of_the_nodes(function, trips):
    expected = outcome(function, trips, until=1 << 60)
    assert outcome(function, trips, until=0) == expected
    assert outcome(function, trips, until=3) == expected


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
        self.heard.append(node.attrs["carries"])

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
