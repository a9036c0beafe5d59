"""Loops that count, and the checks that what is known of their counters makes needless: native code beside the
interpreter, and what its text has and hasn't."""

import numpy as np
import pytest

import autograph as ag
from runtime.codegen.kernel.values import Scalar
from runtime.codegen.lower.lower_graph import lower
from runtime.codegen.symbolic.ranges import Range, known_range, result_of
from runtime.dtypes import float64, int32, int64, uint8
from runtime.graph.builder import Builder, emit_while, trace_region
from runtime.graph.passes.pipeline import optimize
from runtime.kernel_ir import ir
from runtime.kernel_ir.types import FLOAT64, INT32, INT64
from runtime.ops import stack
from runtime.ops.dispatch import apply
from runtime.ops.table import OPS
from runtime.types import TensorType
from tests.codegen.compare import check, run_both

N, I = ir.Var("n"), ir.Var("i")


def graph_of(function, *arguments):
    return optimize(ag.function(function, jit_compile=False).get_concrete_function(*arguments).graph)


def text_and_results(function, *arguments):
    given = [ag.constant(a) for a in arguments]
    graph = graph_of(function, *given)
    return lower(graph).text, check(graph, *[g.numpy() for g in given])


def same_error(graph, *inputs):
    expected, actual = run_both(graph, inputs)
    assert isinstance(expected, ag.errors.OpError)
    assert type(actual) is type(expected) and str(actual) == str(expected)


def upwards(start, stop, step):
    i, total = start, ag.constant(0)
    while i < stop:
        total = total * 3 + i
        i += step
    return total, i


def inclusive(start, stop, step):
    i, total = start, ag.constant(0)
    while i <= stop:
        total = total * 3 + i
        i += step
    return total, i


def downwards(start, stop, step):
    i, total = start, ag.constant(0)
    while i > stop:
        total = total * 3 + i
        i -= step
    return total, i


def backwards_inclusive(start, stop, step):
    i, total = start, ag.constant(0)
    while stop <= i:
        total = total * 3 + i
        i -= step
    return total, i


@pytest.mark.parametrize("loop", [upwards, inclusive, downwards, backwards_inclusive])
@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("static", ["neither", "start", "stop", "both"])
def test_counters_and_what_they_are_afterwards(loop, step, static):
    for start, stop in [(0, 10), (10, 0), (-7, 7), (7, -7), (5, 5), (4, 5), (5, 4)]:
        if static == "both":
            graph = graph_of(lambda: loop(ag.constant(start), ag.constant(stop), step))  # noqa: B023
            check(graph)
        elif static == "start":
            check(graph_of(lambda n: loop(ag.constant(start), n, step), ag.constant(0)), np.int32(stop))  # noqa: B023
        elif static == "stop":
            check(graph_of(lambda n: loop(n, ag.constant(stop), step), ag.constant(0)), np.int32(start))  # noqa: B023
        else:
            check(
                graph_of(lambda a, b: loop(a, b, step), ag.constant(0), ag.constant(0)), np.int32(start), np.int32(stop)
            )


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_counters_at_the_ends_of_their_dtype(dtype):
    least, greatest = np.iinfo(dtype).min, np.iinfo(dtype).max

    def up(start, stop):
        i, trips = start, ag.constant(0)
        while i < stop:
            i += 1
            trips += 1
        return i, trips

    def down(start, stop):
        i, trips = start, ag.constant(0)
        while i > stop:
            i -= 1
            trips += 1
        return i, trips

    kind = np.dtype(dtype).type
    spec = ag.TensorSpec([], dtype)
    check(graph_of(up, spec, spec), kind(greatest - 5), kind(greatest))
    check(graph_of(down, spec, spec), kind(least + 5), kind(least))


def test_a_step_that_jumps_over_the_end_of_the_dtype_wraps():
    def f(start, stop):
        i, trips = start, ag.constant(0)
        while i < stop:
            i += 1_000_000_000
            trips += 1
            if trips > 7:
                i = stop
        return i, trips

    check(graph_of(f, ag.constant(0), ag.constant(0)), np.int32(2_000_000_000), np.int32(2_147_483_647))


def test_the_counter_is_64_bits_and_the_question_stands_outside():
    def f(x, n):
        for _ in ag.range(n):
            x = x * 0.5 + 1.0
        return x

    text, _ = text_and_results(f, np.float32(0.3), 7)
    inner = text[text.index("while index < stop") :]
    assert "np.int32" not in inner.split("if ticks")[0]
    assert inner.index("lib.interrupted()") > inner.index("index = index + 1")


def strides(given):
    flags = ag.TensorArray(ag.int32, size=50, clear_after_read=False).unstack(given)
    total = ag.constant(0)
    for p in ag.range(1, 40):
        multiple = p + p
        while multiple < 50:
            total = total * 3 + multiple
            flags = flags.write(multiple, p)
            multiple += p
        total += multiple
    return flags.stack(), total


def strides_from_behind(given):
    flags = ag.TensorArray(ag.int32, size=50, clear_after_read=False).unstack(given)
    total, p = ag.constant(0), ag.constant(-1)
    while p > -40:
        at = 49 + p
        while at >= 0:
            total = total * 3 + at
            flags = flags.write(at, p)
            at += p - 1
        total += at
        p -= 1
    return flags.stack(), total


@pytest.mark.parametrize("loop", [strides, strides_from_behind])
def test_steps_that_an_outer_counter_is(loop):
    text, _ = text_and_results(loop, np.zeros(50, np.int32))
    assert "row" not in text and " + step\n" in text


def test_steps_that_may_be_zero_or_leave_the_dtype_are_not_counted():
    def may_be_zero(n):
        total = ag.constant(0)
        for p in ag.range(0, 5):
            i = ag.constant(0)
            while i < 10 * p:
                total += i
                i += p
        return total + n

    def may_wrap(n):
        total = ag.constant(0)
        for p in ag.range(1, n):
            i = p
            while i < 2147483600:
                total += 1
                i += p * 100_000_000
        return total

    check(graph_of(may_be_zero, ag.constant(0)), np.int32(1))
    assert "i = np.int32(i + " in lower(graph_of(may_wrap, ag.constant(0))).text


def test_few_trips_ask_nothing():
    def f(x):
        for _ in ag.range(100):
            x = x * 0.5 + 1.0
        return x

    text, _ = text_and_results(f, np.float32(0.3))
    assert "interrupted" not in text and "return 1" not in text


def test_few_trips_in_a_loop_without_end_ask():
    def f(x):
        while x < 1000.0:
            for i in ag.range(100):
                x = x + ag.cast(i, ag.float32)
        return x

    text, _ = text_and_results(f, np.float32(0.0))
    assert text.count("interrupted") == 2


def test_an_outer_counter_is_carried_by_the_inner_loop():
    def f(n):
        total, last = ag.constant(0), ag.constant(0)
        for i in ag.range(n):
            last = i
            for j in ag.range(i, n):
                total = total * 3 + j - last
                last = j
        return total, last

    text_and_results(f, 9)


def test_indices_below_a_static_size_are_not_checked():
    def f(a):
        total = ag.constant(0)
        for i in ag.range(ag.shape(a)[0] - 1):
            total += a[i] * a[i + 1]
        return total

    text, results = text_and_results(f, np.arange(9, dtype=np.int32))
    assert results[0] == sum(i * (i + 1) for i in range(8))
    assert text.count("return") == 1 and "+= " not in text


def test_indices_below_an_unknown_size_are_not_checked():
    def f(a):
        total = ag.constant(0)
        for i in ag.range(ag.shape(a)[0]):
            total += a[i]
        return total

    graph = graph_of(f, ag.TensorSpec([None], ag.int32))
    assert lower(graph).text.count("return") == 2  # after Ctrl-C, and at the end
    check(graph, np.arange(7, dtype=np.int32))


@pytest.mark.parametrize("offset", [-1, 1])
def test_indices_that_may_be_outside_are_checked(offset):
    def f(a):
        total = ag.constant(0)
        for i in ag.range(ag.shape(a)[0]):
            total += ag.gather(a, i + offset)
        return total

    for spec in (ag.TensorSpec([7], ag.int32), ag.TensorSpec([None], ag.int32)):
        same_error(graph_of(f, spec), np.arange(7, dtype=np.int32))


@pytest.mark.parametrize("width", [7, 8])
def test_indices_in_vectors_are_checked_where_they_may_be_outside(width):
    def f(a):
        for i in ag.range(6):
            for j in ag.range(7):
                a = ag.tensor_scatter_nd_add(a, [[i, j + 1], [i, 0]], [ag.gather_nd(a, [i, j]) + i, j])
        return a

    graph = graph_of(f, ag.constant(np.zeros((6, width), np.int32)))
    checks = [site for site in lower(graph).errors if "does not index" in getattr(site, "message", "")]
    # What the outer loop makes, [i, 0], is checked: there is no more to it than its text.
    assert len(checks) == (2 if width == 7 else 1)
    check(graph, np.arange(6 * width, dtype=np.int32).reshape(6, width))


def test_indices_of_an_array_that_another_one_counts_are_checked():
    def f(a, b):
        total = ag.constant(0)
        for i in ag.range(ag.shape(a)[0]):
            total += b[i]
        return total

    spec = ag.TensorSpec([None], ag.int32)
    same_error(graph_of(f, spec, spec), np.arange(7, dtype=np.int32), np.arange(6, dtype=np.int32))
    check(graph_of(f, spec, spec), np.arange(6, dtype=np.int32), np.arange(7, dtype=np.int32))


def test_remainders_are_known():
    def f(a, n):
        total = ag.constant(0)
        for i in ag.range(n):
            total = total * 2 + a[i % 4] // 3
        return total

    text, _ = text_and_results(f, np.arange(1, 5, dtype=np.int32), 11)
    assert "return 2" not in text  # the only failure is Ctrl-C

    text, _ = text_and_results(lambda a, n: a[n % 4], np.arange(5, dtype=np.int32), 11)
    assert "if" not in text


def test_a_table_in_a_tensor_array_has_no_checks():
    def f(a):
        n = ag.shape(a)[0]
        row = ag.TensorArray(ag.int32, size=n + 1, clear_after_read=False).unstack(ag.range(n + 1))
        for i in ag.range(n):
            row = row.write(i + 1, row.read(i) + a[i])
        return row.read(n)

    text, results = text_and_results(f, np.arange(6, dtype=np.int32))
    assert results[0] == 15
    assert text.count("return") == 1


def test_arithmetic_of_what_is_known():
    assert result_of(OPS["add"], [Range(0, 9), Range(1, 2)], int32) == Range(1, 11)
    assert result_of(OPS["subtract"], [Range(0, 9, N, I), Range(2, 2)], int64) == Range(-2, 7, N, I - 2)
    assert result_of(OPS["multiply"], [Range(-3, 2), Range(-5, 4)], int32) == Range(-12, 15)
    assert result_of(OPS["multiply"], [Range(0, 2**20), Range(0, 2**20)], int32) is None
    assert result_of(OPS["add"], [Range(0, 250), Range(0, 6)], uint8) is None
    assert result_of(OPS["floormod"], [Range(-9, 9), Range(1, 4)], int32) == Range(0, 3)
    assert result_of(OPS["floormod"], [Range(-9, 9), Range(0, 4)], int32) is None
    assert result_of(OPS["floordiv"], [Range(-9, 9), Range(2, 4)], int32) == Range(-5, 4)
    assert result_of(OPS["minimum"], [Range(-9, 9), Range(0, 4, N)], int32) == Range(-9, 4, N)
    assert result_of(OPS["maximum"], [Range(-9, 9), Range(0, 4, N)], int32) == Range(0, 9)
    assert result_of(OPS["add"], [Range(0, 9), None], int32) is None
    assert result_of(OPS["floormod"], [None, Range(1, 4)], int32) == Range(0, 3)
    constants = [ir.Const(3, INT64), ir.Const(-3, INT32), N]
    assert [known_range(Scalar(each, int32)) and known_range(Scalar(each, int32)).low for each in constants] == [
        3,
        -3,
        None,
    ]
    assert known_range(Scalar(ir.Const(3.0, FLOAT64), float64)) is None


def test_an_index_is_checked_once():
    def program(x, places):
        for i in ag.range(ag.shape(places)[0]):
            k = places[i]
            x = ag.tensor_scatter_nd_update(x, [[i % 4]], [ag.gather(x, k) + ag.gather(x * x, k) + x[k]])
        return x

    text, _ = text_and_results(program, np.arange(4.0), np.array([3, 1, 2], np.int32))
    assert text.count("row >= 4") == 1
    same_error(
        graph_of(program, np.arange(4.0), np.array([0, 4], np.int32)), np.arange(4.0), np.array([0, 4], np.int32)
    )


@pytest.mark.parametrize("size", [5, 1, 0])
def test_tensors_of_one_computed_size_fit(size):
    def knapsack(weights, n):
        places = ag.range(n + 1)
        best = ag.zeros([n + 1], ag.int32)
        for i in ag.range(ag.shape(weights)[0]):
            best = ag.maximum(best, ag.where(places > weights[i], places * 2, best + 1))
        return best

    text, _ = text_and_results(knapsack, np.array([2, 1, 3], np.int32), np.int32(size - 1))
    assert "!=" not in text


# --- stacks ----------------------------------------------------------------------------------------------------------


def pushes_and_pops(pushed, popped, step=1):
    """A graph that pushes in a counted loop and pops in another."""
    builder = Builder("stacks")
    with builder:
        counter = builder.constant(np.int32(0))
        empty = stack.empty(TensorType(float64, ()))

        def loop(count, start, trip):
            types = [counter.type, *[t.type for t in start]]
            test = trace_region("test", lambda i, *state: [i < count], types)
            body = trace_region("body", lambda i, *state: [i + step, *trip(i, *state)], types)
            return emit_while(test, body, [counter, *start])[1:]

        def push(i, kept):
            return [apply(stack.PUSH, [kept, ag.cast(i, ag.float64) * 0.5])]

        def pop(i, kept, total):
            rest, value = apply(stack.POP, [kept])
            return [rest, total * 2.0 + value]

        kept = loop(pushed, [empty], push)
        results = loop(popped, [*kept, builder.constant(np.float64(0.0))], pop)
        builder.graph.outputs = [builder.use(results[1])]
    return builder.graph


@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("count", [0, 1, 5, 100])
def test_stacks_in_counted_loops_are_asked_once(count, step):
    graph = pushes_and_pops(count, count, step)
    check(graph)
    text = lower(graph).text
    assert text.count("lib.grown") == 1
    loops = text[text.index("    while ") :]
    assert not [line for line in loops.splitlines() if line.startswith("        ") and "if " in line]


def test_more_pops_than_pushes_are_an_error():
    expected, actual = run_both(pushes_and_pops(3, 5), [])
    assert "pop from an empty stack" in str(expected) and "pop from an empty stack" in str(actual)


@pytest.mark.parametrize("twice", [False, True])
def test_a_test_with_nodes_that_no_condition_needs(twice):
    """A graph that nothing has optimised yet may have them."""

    def total(x):
        def test(i, found):
            _ = i * 3
            return ag.logical_and(i < 4, i < 4) if twice else i < 4

        return ag.while_loop(test, lambda i, found: (i + 1, found + x[i]), [ag.constant(0), ag.constant(0.0)])[1]

    x = np.arange(6, dtype=np.float32)
    graph = ag.function(total, jit_compile=False).get_concrete_function(x).graph
    check(graph, x)
