"""Functions that call themselves under conditions on tensors, beside the same functions run as plain Python."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import numpy as np
import pytest

import autograph as ag
from autograph.errors import StagingError
from runtime.graph.ir import Graph, copy_graph
from runtime.graph.passes.pipeline import optimize
from runtime.graph.verify import VerificationError, verify
from runtime.recursion import DEEPEST
from tests.graph.tracing import traced

LEFT = [1, 3, -1, -1, 6, -1, -1]
RIGHT = [2, 4, 5, -1, -1, -1, -1]
VALUES = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
left, right, values = ag.constant(LEFT), ag.constant(RIGHT), ag.constant(VALUES)
seen = ag.Variable(0.0)


def fib(n: Any) -> Any:
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


def factorial(n: Any) -> Any:
    return 1 if n < 2 else n * factorial(n - 1)


def ackermann(m: Any, n: Any) -> Any:
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


def gcd(a: Any, b: Any) -> Any:
    return a if b == 0 else gcd(b, a % b)


def is_even(n: Any) -> Any:
    if n == 0:
        return True
    return is_odd(n - 1)


def is_odd(n: Any) -> Any:
    if n == 0:
        return False
    return is_even(n - 1)


def both_ways(n: Any) -> Any:
    if n <= 0:
        return 1
    return both_ways(n - 1) + other_way(n - 2)


def other_way(n: Any) -> Any:
    if n <= 0:
        return 2
    return other_way(n - 2) - both_ways(n - 3)


def tree_sum(i: Any) -> Any:
    if i < 0:
        return 0.0
    return values[i] + tree_sum(left[i]) + tree_sum(right[i])


def tree_depth(i: Any) -> Any:
    if i < 0:
        return 0
    return 1 + ag.maximum(tree_depth(left[i]), tree_depth(right[i]))


def counts_visits(i: Any) -> Any:
    n = 0

    def visit(i: Any) -> None:
        nonlocal n
        n += 1
        if left[i] >= 0:
            visit(left[i])
        if right[i] >= 0:
            visit(right[i])

    visit(i)
    return n


class Walk:
    def __init__(self) -> None:
        self.total = 0.0

    def visit(self, i: Any) -> None:
        if i >= 0:
            self.total += values[i]
            self.visit(left[i])
            self.visit(right[i])

    def path(self, i: Any, depth: int = 0) -> Any:
        if left[i] < 0:
            return depth
        return self.path(left[i], depth=depth + 1)


def method(i: Any) -> Any:
    walk = Walk()
    walk.visit(i)
    return walk.total, walk.path(i)


def collects(i: Any) -> Any:
    out: list[Any] = []

    def visit(i: Any) -> None:
        if i >= 0:
            visit(left[i])
            out.append(values[i])
            visit(right[i])

    visit(i)
    return ag.stack(out)


def fills_a_list_that_is_given(i: Any) -> Any:
    def visit(i: Any, out: list[Any]) -> None:
        if i >= 0:
            out.append(values[i])
            visit(left[i], out)
            visit(right[i], out)

    found: list[Any] = []
    visit(i, found)
    return ag.stack(found)


def assigns(i: Any) -> Any:
    if i >= 0:
        seen.assign_add(values[i])
        assigns(left[i])
        assigns(right[i])


def reads_what_it_assigned(i: Any) -> Any:
    seen.assign(0.0)
    assigns(i)
    return seen.read_value()


def partition(a: Any, low: Any, high: Any) -> Any:
    pivot, place = a[high], low
    for j in ag.range(low, high):
        if a[j] < pivot:
            x, y = a[place], a[j]
            a = ag.tensor_scatter_nd_update(a, [[place], [j]], [y, x])
            place += 1
    x, y = a[place], a[high]
    return ag.tensor_scatter_nd_update(a, [[place], [high]], [y, x]), place


def sort(a: Any, low: Any, high: Any) -> Any:
    if low < high:
        a, middle = partition(a, low, high)
        a = sort(a, low, middle - 1)
        a = sort(a, middle + 1, high)
    return a


def quicksort(a: Any) -> Any:
    return sort(a, 0, ag.size(a) - 1)


def flood(grid: Any, y: Any, x: Any) -> Any:
    def fill(g: Any, y: Any, x: Any) -> Any:
        if y < 0 or y >= 4 or x < 0 or x >= 5:
            return g
        if g[y, x] != 0:
            return g
        g = ag.tensor_scatter_nd_update(g, [[y, x]], [2])
        g = fill(g, y + 1, x)
        g = fill(g, y - 1, x)
        g = fill(g, y, x + 1)
        return fill(g, y, x - 1)

    return fill(grid, y, x)


def simpson(a: Any, b: Any, tolerance: Any) -> Any:
    def f(x: Any) -> Any:
        return ag.sin(x) * x

    def part(a: Any, b: Any, fa: Any, fm: Any, fb: Any, whole: Any, tolerance: Any) -> Any:
        m = (a + b) / 2
        low, high = f((a + m) / 2), f((m + b) / 2)
        one, two = (m - a) / 6 * (fa + 4 * low + fm), (b - m) / 6 * (fm + 4 * high + fb)
        error = one + two - whole
        if ag.abs(error) <= 15 * tolerance:
            return one + two + error / 15
        return part(a, m, fa, low, fm, one, tolerance / 2) + part(m, b, fm, high, fb, two, tolerance / 2)

    fa, fm, fb = f(a), f((a + b) / 2), f(b)
    return part(a, b, fa, fm, fb, (b - a) / 6 * (fa + 4 * fm + fb), tolerance)


def collatz(n: Any, steps: Any) -> Any:
    if n == 1:
        return steps
    if n % 2 == 0:
        return collatz(n // 2, steps + 1)
    return collatz(3 * n + 1, steps + 1)


def fibonacci_pair(n: Any) -> Any:
    if n == 0:
        return (0, 1)
    a, b = fibonacci_pair(n - 1)
    return (b, a + b)


def structures(n: Any, *rest: Any, scale: Any = 1, **more: Any) -> Any:
    if n <= 0:
        return {"scale": scale, "rest": rest[0], "more": more["z"]}
    return structures(n - 1, rest[0] + 1, scale=scale * 2, z=more["z"] - 1.5)


def calls_structures(n: Any, a: Any) -> Any:
    return structures(n, a, z=5.0)


@dataclasses.dataclass
class Interval:
    low: Any
    high: Any


def bisect(of: Interval, n: Any) -> Any:
    if n == 0:
        return of
    middle = (of.low + of.high) / 2
    if middle * middle > 2.0:
        return bisect(Interval(of.low, middle), n - 1)
    return bisect(Interval(middle, of.high), n - 1)


def root(x: Any, n: Any) -> Any:
    found = bisect(Interval(x, 2.0 * x), n)
    return found.low, found.high


def partitions_of(n: Any, largest: Any) -> Any:
    """A loop in a recursion."""
    if n == 0:
        return 1
    total = 0
    for k in ag.range(1, ag.minimum(n, largest) + 1):
        total += partitions_of(n - k, k)
    return total


def sum_of_fibs(n: Any) -> Any:
    """A recursion in a loop."""
    total = 0
    for i in ag.range(n):
        total += fib(i)
    return total


def functions_made_in_a_loop(n: Any) -> Any:
    total = 0
    for k in ag.range(3):

        def factorial(m: Any) -> Any:
            return 1 if m <= 1 else m * factorial(m - 1)

        def is_even(m: Any) -> Any:
            return k if m == 0 else is_odd(m - 1)

        def is_odd(m: Any) -> Any:
            return -k if m == 0 else is_even(m - 1)

        total = total + factorial(n % 4 + k) * is_even(n)
    return total


def functions_made_in_a_branch(n: Any) -> Any:
    if n > 2:

        def down(m: Any) -> Any:
            return m if m <= 2 else down(m - 2) + 1

        n = down(n)
    return n


def row_of_pascal(n: Any) -> Any:
    """Results of sizes that only a run knows."""
    if n == 0:
        return ag.ones([1])
    row = row_of_pascal(n - 1)
    return ag.concat([row, [0.0]], 0) + ag.concat([[0.0], row], 0)


def uses_closure(n: Any, step: Any) -> Any:
    def down(n: Any) -> Any:
        return n if n <= 0 else down(n - step)

    return down(n)


def numbers_in_python(x: Any, depth: int) -> Any:
    if depth == 0 or x > 100.0:
        return x
    return numbers_in_python(x * 2.0, depth - 1) + depth


class Steps:
    """Python's state ends the recursion, and only Python can use it."""

    def __init__(self) -> None:
        self.i = 0

    def go(self, x: Any) -> Any:
        if self.i == len(VALUES):
            return x
        value = VALUES[self.i]
        self.i += 1
        if x > 1000.0:
            return x
        return self.go(x * value)


def python_state(x: Any) -> Any:
    return Steps().go(x)


def mirrored(x: Any) -> Any:
    """Python numbers that have an end only where a tensor says so: beyond it, an index is out of range."""

    def swap(x: Any, low: Any, high: Any) -> Any:
        if low >= high:
            return x
        a, b = x[low], x[high]
        return swap(ag.tensor_scatter_nd_update(x, [[low], [high]], [b, a]), low + 1, high - 1)

    return swap(x, 0, ag.size(x) - 1)


def leading(x: Any) -> Any:
    """Sizes that get smaller for as long as a tensor says so."""
    if x[0] > 2.0:
        return 0
    return 1 + leading(x[1:])


def tower(x: Any) -> Any:
    return x if x > 10.0 else tower(tower(x + 3.0))


def raises(n: Any) -> Any:
    if n < 0:
        raise ValueError("negative")
    if n == 0:
        return 0
    return raises(n - 2) + 1


def with_try(n: Any) -> Any:
    try:
        if n <= 0:
            return 0
        return with_try(n - 1) + 2
    finally:
        n = 0


class Adder:
    def __init__(self, k: float) -> None:
        self.k = k

    def __call__(self, n: Any) -> Any:
        return self.k if n == 0 else self(n - 1) + 1


def object_that_is_called(n: Any) -> Any:
    return Adder(3.0)(n)


def staged_by_cond(n: Any) -> Any:
    return ag.cond(n < 2, lambda: n, lambda: staged_by_cond(n - 1) + staged_by_cond(n - 2))


def searches(i: Any, key: Any) -> Any:
    """A return from a loop."""
    if i == key:
        return True
    for child in (left[i], right[i]):
        if child >= 0:
            if searches(child, key):
                return True
    return False


def moves_of_hanoi(n: Any) -> Any:
    out: list[Any] = []

    def move(n: Any, a: Any, b: Any, c: Any) -> None:
        if n > 0:
            move(n - 1, a, c, b)
            out.append(a * 10 + b)
            move(n - 1, c, b, a)

    move(n, 1, 2, 3)
    return ag.stack(out)


def merge_sort(x: Any) -> Any:
    n = ag.size(x)
    if n <= 1:
        return x
    a, b = merge_sort(x[: n // 2]), merge_sort(x[n // 2 :])
    out, i, j = ag.TensorArray(ag.float32, n), 0, 0
    for k in ag.range(n):
        take_first = j >= ag.size(b)
        if not take_first and i < ag.size(a):
            take_first = a[i] <= b[j]
        if take_first:
            out = out.write(k, a[i])
            i += 1
        else:
            out = out.write(k, b[j])
            j += 1
    return out.stack()


def int32(*numbers: int) -> tuple:
    return tuple([np.int32(n) for n in numbers])


CASES = [
    (fib, int32(0)), (fib, int32(11)), (fib, (np.float32(7),)), (factorial, int32(6)), (factorial, (np.float64(5),)),
    (ackermann, int32(2, 3)), (gcd, int32(48, 36)), (is_even, int32(7)), (is_odd, int32(7)), (is_even, int32(0)),
    (both_ways, int32(8)), (tree_sum, int32(0)), (tree_depth, int32(0)), (counts_visits, int32(0)),
    (method, int32(0)), (collects, int32(0)), (fills_a_list_that_is_given, int32(0)),
    (reads_what_it_assigned, int32(1)), (quicksort, (np.float32([3, 1, 2, 9, 7, 7, 0, 4]),)),
    (quicksort, (np.int32([2, 1]),)),
    (flood, (np.int32([[0, 0, 1, 0, 0], [0, 1, 1, 0, 0], [0] * 5, [1] * 5]), *int32(0, 0))),
    (simpson, (np.float64(0), np.float64(3), np.float64(1e-6))), (simpson, (np.float64(0), np.float64(3), 1e-6)),
    (collatz, (np.int32(27), 0)), (fibonacci_pair, int32(10)), (calls_structures, int32(3, 1)),
    (root, (np.float32(1), np.int32(12))), (partitions_of, int32(7, 7)), (sum_of_fibs, int32(8)),
    (functions_made_in_a_loop, int32(6)),
    (functions_made_in_a_branch, int32(7)), (functions_made_in_a_branch, int32(1)),
    (row_of_pascal, int32(5)), (uses_closure, int32(10, 3)), (numbers_in_python, (np.float32(1), 5)),
    (mirrored, (np.float32([1, 2, 3, 4, 5]),)), (leading, (np.float32([1, 2, 1, 3, 4]),)),
    (tower, (np.float32(1),)), (raises, int32(6)), (with_try, int32(4)),
    (python_state, (np.float32(2),)), (python_state, (np.float32(0.5),)),
    (object_that_is_called, int32(4)), (staged_by_cond, int32(9)), (searches, int32(0, 4)), (searches, int32(0, 9)),
    (moves_of_hanoi, int32(3)), (merge_sort, (np.float32([3, 1, 2, 9, 7, 7, 0]),)),
]  # fmt: skip


def numbers(structure: Any) -> list[Any]:
    return [np.asarray(leaf) for leaf in ag.nest.flatten(structure)]


@pytest.mark.parametrize("jit", [False, None, True], ids=["interpreted", "default", "compiled"])
@pytest.mark.parametrize(("function", "arguments"), CASES, ids=[f"{f.__name__}-{i}" for i, (f, _) in enumerate(CASES)])
def test_as_in_python(function: Any, arguments: tuple, jit: bool | None) -> None:
    tensors = [ag.constant(a) if isinstance(a, (np.ndarray, np.generic)) else a for a in arguments]
    expected = function(*tensors)
    found = ag.function(function, jit_compile=jit)(*tensors)
    assert len(numbers(found)) == len(numbers(expected))
    for a, b in zip(numbers(found), numbers(expected)):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def graph_of(function: Any, *arguments: Any) -> Graph:
    return ag.function(function).get_concrete_function(*arguments).graph


def operations(graph: Graph) -> list[str]:
    return [node.op.name for node in graph.walk()]


INT = ag.TensorSpec([], ag.int32)


def test_one_node_holds_the_function_and_calls_are_nodes() -> None:
    found = operations(graph_of(fib, INT))
    assert found.count("letrec") == 1
    assert found.count("call") == 2


def test_functions_that_call_each_other_are_one_node() -> None:
    found = operations(graph_of(is_even, INT))
    assert found.count("letrec") == found.count("call") == 1


def test_recursion_on_python_values_is_unrolled() -> None:
    found = operations(graph_of(numbers_in_python, ag.TensorSpec([], ag.float32), 5))
    assert "letrec" not in found
    assert found.count("cond") == 5


def test_passes_keep_the_graph_valid() -> None:
    for function, arguments in CASES:
        tensors = [ag.constant(a) if isinstance(a, (np.ndarray, np.generic)) else a for a in arguments]
        graph = copy_graph(traced(function, *tensors))
        verify(graph)
        optimize(graph)


def test_decorated_functions_may_call_themselves_and_each_other() -> None:
    @ag.function
    def power(x: Any, n: Any) -> Any:
        if n == 0:
            return 1.0
        return x * power(x, n - 1)

    @ag.function
    def ping(n: Any) -> Any:
        return n if n <= 0 else pong(n - 1)

    @ag.function
    def pong(n: Any) -> Any:
        return n if n <= 0 else ping(n - 2)

    assert float(power(ag.constant(2.0), ag.constant(10))) == 1024.0
    assert [int(ping(ag.constant(n))) for n in (0, 5, 6)] == [0, -1, 0]
    assert [int(pong(ag.constant(n))) for n in (0, 1, 6)] == [0, -1, 0]


def test_a_method_that_is_a_function_calls_itself() -> None:
    class Scaled:
        def __init__(self) -> None:
            self.scale = ag.Variable(3.0)

        @ag.function
        def times(self, n: Any) -> Any:
            if n == 0:
                return 1.0
            return self.scale * self.times(n - 1)

    scaled = Scaled()
    assert float(scaled.times(ag.constant(3))) == 27.0
    scaled.scale.assign(2.0)
    assert float(scaled.times(ag.constant(4))) == 16.0


def test_prints_come_in_the_order_of_the_calls(capsys: Any) -> None:
    def down(n: Any) -> None:
        if n > 0:
            ag.print(n, output_stream=sys.stdout)
            down(n - 1)
            ag.print(-n, output_stream=sys.stdout)

    ag.function(down)(ag.constant(3))
    assert capsys.readouterr().out.split() == ["3", "2", "1", "-1", "-2", "-3"]


@pytest.mark.parametrize("jit", [False, True])
def test_an_error_names_the_line(jit: bool) -> None:
    with pytest.raises(ValueError, match="negative"):
        ag.function(raises, jit_compile=jit)(ag.constant(5))


@pytest.mark.parametrize("jit", [False, True])
def test_too_deep_is_an_error_and_deep_is_not(jit: bool) -> None:
    def depth(n: Any) -> Any:
        if n <= 1:
            return 1
        return depth(n - 1) + 1

    limit = sys.getrecursionlimit()
    f = ag.function(depth, jit_compile=jit)
    assert int(f(ag.constant(DEEPEST))) == DEEPEST
    with pytest.raises(RecursionError, match=r"(?s)maximum recursion depth exceeded.*return depth\(n - 1\) \+ 1"):
        f(ag.constant(DEEPEST + 1))
    assert int(f(ag.constant(7))) == 7
    assert sys.getrecursionlimit() == limit


def test_without_a_case_that_ends_it_is_refused() -> None:
    def endless(n: Any) -> Any:
        if n == 0:
            return endless(n - 1)
        return endless(n - 2)

    with pytest.raises(StagingError, match="'endless' has no case in which it doesn't call itself"):
        ag.function(endless)(ag.constant(3))


def test_results_that_differ_in_dtype_or_structure_are_refused() -> None:
    def dtype(n: Any) -> Any:
        return n if n == 0 else ag.cast(dtype(n - 1), ag.float32)

    def structure(n: Any) -> Any:
        return (n, n) if n == 0 else (n, structure(n - 1))

    with pytest.raises(TypeError, match="dtype int32 .* dtype float32"):
        ag.function(dtype)(ag.constant(3))
    with pytest.raises(TypeError, match="structure"):
        ag.function(structure)(ag.constant(3))


def test_a_call_without_its_function_is_found_by_the_verifier() -> None:
    graph = copy_graph(graph_of(fib, INT))
    (node,) = [node for node in graph.walk() if node.op.name == "letrec"]
    node.attrs = {**node.attrs, "functions": ("other",)}
    with pytest.raises(VerificationError, match="calls fib, but no enclosing letrec"):
        verify(graph)


def test_what_a_trace_throws_away_leaves_nothing_behind() -> None:
    calls: list[int] = []

    def visit(i: Any, log: list[Any]) -> Any:
        log.append(values[i])
        if left[i] < 0:
            return values[i]
        return values[i] + visit(left[i], log)

    def first(i: Any) -> Any:
        calls.append(1)
        log: list[Any] = []
        return visit(i, log), ag.stack(log)

    total, log = ag.function(first)(ag.constant(0))
    assert float(total) == 7.0
    assert log.numpy().tolist() == [1.0, 2.0, 4.0]
    assert len(calls) == 1


def test_a_long_run_goes_on_in_native_code(monkeypatch: Any, tmp_path: Any) -> None:
    """In the default mode a call does not have to wait for the next one: a function may call itself a million times."""
    from runtime.engine import on_stack_replacement as osr

    monkeypatch.setenv("AUTOGRAPH_CACHE_DIR", str(tmp_path))  # no kernel of an earlier process
    asked: list[Any] = []
    finish = osr.TierUp.finish

    def noted(self: Any, operands: Any) -> Any:
        found = finish(self, operands)
        asked.append(found)
        return found

    monkeypatch.setattr(osr.TierUp, "finish", noted)
    assert int(ag.function(fib)(ag.constant(27))) == 196418
    assert any(found is not None for found in asked)
    assert len(asked) < 832040 // 16  # not all of the calls were interpreted


def test_the_tree_that_calls_make_is_no_larger_than_pythons() -> None:
    found = traced(fib, INT)
    nodes = sum(1 for _ in found.walk())
    assert nodes < 20
