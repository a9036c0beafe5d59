"""Loops differentiated in bounded memory: the same gradients to the last bit, at any budget, to second order."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import numpy as np
import pytest

import autograph as ag
from runtime.autodiff import budget
from runtime.autodiff.checkpoints import _advance
from runtime.engine import wait_for_background
from runtime.graph.ir import Graph
from tests.autodiff.graphs import F64, I32, build, gradient, run
from tests.autodiff.test_control_flow import PROGRAMS

TRIPS = (0, 1, 2, 5, 23, 60)


@pytest.fixture
def everywhere() -> Any:
    """Sets the global budget for a test."""
    yield budget.set_gradient_memory
    budget.set_gradient_memory(None)


def has_checkpoints(graph: Graph) -> bool:
    return any(n.op.name == "while" and "memory" in n.attrs for n in graph.walk())


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_first_order_is_exact_and_second_order_agrees(program: Any, everywhere: Any) -> None:
    # Interpreted, loops in loops that run again take their time.
    slow = program.__name__ in ("nested", "three_deep", "loop_in_branch_in_loop")
    trips = TRIPS[:4] if slow else TRIPS
    budgets = (64,) if slow else (128, 2048)
    found: dict[Any, list[list[float]]] = {}
    for memory in (None, *budgets):
        everywhere(memory)
        graph = build(program, [F64, I32])
        found[memory] = []
        for _ in range(2):
            graph = gradient(graph)
            found[memory].append([float(run(graph, 0.43, t)) for t in trips])
        if memory == budgets[0] and program.__name__ in ("logistic", "swap", "left_by_value", "nested"):
            assert has_checkpoints(graph)
    for memory in budgets:
        assert found[memory][0] == found[None][0]
        np.testing.assert_allclose(found[memory][1], found[None][1], rtol=1e-12)


def cost(chunks: int, slots: int, memo: dict) -> int:
    """Chunks run to get near, with the schedule's choices: each chunk is then run once more to be walked back."""
    if chunks <= 1:
        return 0
    key = chunks, slots
    if key not in memo:
        ahead = advance(chunks, slots)
        memo[key] = ahead + cost(chunks - ahead, slots - 1, memo) + cost(ahead, slots, memo)
    return memo[key]


def advance(chunks: int, slots: int) -> int:
    return int(run(ADVANCE, chunks, slots))


def optimum(chunks: int, slots: int, memo: dict) -> int:
    """The least number of chunks run again, by trying all advances."""
    if chunks <= 1:
        return 0
    if slots == 1:
        return chunks * (chunks - 1) // 2
    key = chunks, slots
    if key not in memo:
        memo[key] = min(a + optimum(chunks - a, slots - 1, memo) + optimum(a, slots, memo) for a in range(1, chunks))
    return memo[key]


ADVANCE = build(lambda m, s: ag.cast(_advance(m, s), ag.float64), [I32, I32])


@pytest.mark.parametrize("slots", [1, 2, 3, 5])
def test_the_schedule_is_optimal(slots: int) -> None:
    ours: dict = {}
    best: dict = {}
    for chunks in range(2, 41):
        assert 1 <= advance(chunks, slots) < chunks
        assert cost(chunks, slots, ours) == optimum(chunks, slots, best)


def logistic(r, n):
    x = ag.constant(0.3, ag.float64)
    for _ in ag.range(n):
        x = r * x * (1.0 - x)
    return x


def bounded_logistic(r, n):
    x = ag.constant(0.3, ag.float64)
    for _ in ag.range(n):
        ag.autograph.experimental.set_loop_options(gradient_memory=512)
        x = r * x * (1.0 - x)
    return x


def derivative(function: Any, *args: Any, **options: Any) -> Any:
    source = ag.constant(args[0], ag.float64)
    compiled = ag.function(function, **options)
    with ag.GradientTape() as tape:
        tape.watch(source)
        y = compiled(source, *args[1:])
    return tape.gradient(y, source).numpy()


@pytest.mark.parametrize("jit", [True, False])
def test_converted_loop_with_a_budget(jit: bool) -> None:
    n = ag.constant(500)
    full = derivative(logistic, 3.2, n, jit_compile=jit)
    assert derivative(bounded_logistic, 3.2, n, jit_compile=jit) == full
    assert derivative(logistic, 3.2, n, jit_compile=jit, gradient_memory=512) == full


def loop(r, n, memory):
    return ag.while_loop(
        lambda i, x: i < n,
        lambda i, x: (i + 1, r * x * (1.0 - x)),
        (ag.constant(0), ag.constant(0.3, ag.float64)),
        gradient_memory=memory,
    )[1]


def test_while_loop_with_a_budget() -> None:
    n = ag.constant(100)
    assert derivative(lambda r, n: loop(r, n, 256), 3.2, n) == derivative(lambda r, n: loop(r, n, None), 3.2, n)


def test_where_the_budget_goes() -> None:
    """Loop options win over the function's; both end up on the loop, and a limit on the trips doesn't lose it."""

    @ag.function(gradient_memory=4096)
    def f(x, n):
        for _ in ag.range(n):
            x = ag.sin(x)
        for _ in ag.range(n):
            ag.autograph.experimental.set_loop_options(gradient_memory=1024, maximum_iterations=7)
            x = ag.sin(x)
        return x

    graph = f.get_concrete_function(ag.constant(1.0), ag.constant(3)).graph
    loops = [n for n in graph.nodes if n.op.name == "while"]
    assert [n.attrs["memory"].bytes for n in loops] == [4096, 1024]


def arrays(x, n):
    """A vector that a loop changes, until a value says to stop; a matrix that it reads."""
    w = ag.reshape(ag.range(16.0, dtype=ag.float64), (4, 4)) * x / 40.0
    v = ag.ones((4,), ag.float64)
    i = ag.constant(0)
    while i < n:
        if ag.reduce_max(v) > 1e6:
            break
        v = ag.tanh(ag.linalg.matvec(w, v)) + x
        i += 1
    return ag.reduce_sum(v * v)


def test_arrays_and_breaks() -> None:
    n = ag.constant(37)
    assert derivative(arrays, 0.7, n, gradient_memory=1024) == derivative(arrays, 0.7, n)


def lists(x, n):
    """The list is only written to: it isn't part of a checkpoint."""
    found = []
    y = x
    for i in ag.range(n):
        y = ag.sin(y) + x / ag.cast(i + 1, x.dtype)
        found.append(y)
    return ag.reduce_sum(ag.stack(found) ** 2)


@pytest.mark.parametrize("jit", [True, False])
def test_lists(jit: bool) -> None:
    n = ag.constant(41)
    assert derivative(lists, 0.3, n, jit_compile=jit, gradient_memory=512) == derivative(lists, 0.3, n, jit_compile=jit)


def table(x, n):
    """A dynamic program: each entry is computed from earlier ones."""
    entries = ag.TensorArray(ag.float64, size=n + 2, clear_after_read=False, element_shape=())
    entries = entries.write(0, x).write(1, x * x)
    for i in ag.range(n):
        entries = entries.write(i + 2, ag.sin(entries.read(i)) + entries.read(i + 1) * 0.5)
    return entries.read(n + 1)


@pytest.mark.parametrize("jit", [True, False])
def test_a_carry_that_is_read_is_in_the_checkpoint(jit: bool) -> None:
    n = ag.constant(30)
    assert derivative(table, 0.4, n, jit_compile=jit, gradient_memory=2**12) == derivative(
        table, 0.4, n, jit_compile=jit
    )
    with pytest.raises(ag.errors.InvalidArgumentError, match="gradient_memory=512 bytes is too little"):
        derivative(table, 0.4, ag.constant(100), jit_compile=jit, gradient_memory=512)


def large(x, n):
    v = ag.ones((100,), ag.float64)
    for _ in ag.range(n):
        v = ag.sin(v) * x
    return ag.reduce_sum(v)


def test_a_budget_known_to_be_too_small_names_the_loop() -> None:
    with pytest.raises(ValueError, match=r"test_checkpoints\.py:\d+: this loop .*at least [\d,]+ bytes.*is 512"):
        derivative(large, 1.1, ag.constant(3), gradient_memory=512)


def test_where_nobody_asked_for_this_loop_all_is_kept(everywhere: Any) -> None:
    full = derivative(large, 1.1, ag.constant(9))
    everywhere(512)
    assert ag.config.get_gradient_memory() == 512
    assert derivative(large, 1.1, ag.constant(9)) == full


def noisy(x, n):
    y = x
    for _ in ag.range(n):
        y = ag.sin(y) * ag.random.uniform((), dtype=ag.float64) + x
    return y


def test_random_numbers_without_state_cant_come_twice(everywhere: Any) -> None:
    with pytest.raises(ValueError, match="random_uniform.*can't be computed again"):
        derivative(noisy, 0.5, ag.constant(10), gradient_memory=512)
    everywhere(512)
    assert np.isfinite(derivative(noisy, 0.5, ag.constant(10)))


def test_a_generator_gives_the_same_numbers_again() -> None:
    def drawn(memory: int | None) -> Any:
        generator = ag.random.Generator.from_seed(7)

        def walk(x, n):
            y = x
            for _ in ag.range(n):
                y = ag.sin(y) * generator.uniform((), dtype=ag.float64) + x
            return y

        found = derivative(walk, 0.5, ag.constant(40), gradient_memory=memory)
        return found, generator.state.numpy().tolist()

    assert drawn(512) == drawn(None)


def test_effects_happen_once(capsys: Any) -> None:
    calls: list[float] = []
    total = ag.Variable(0.0, dtype=ag.float64)

    def f(x, n):
        y = x
        for i in ag.range(n):
            y = ag.sin(y) + x
            total.assign_add(y)
            if i % 10 == 0:
                ag.print("trip", i, output_stream="stdout")
                ag.py_function(lambda v: calls.append(float(v)), [y], [])
        return y

    found = derivative(f, 0.5, ag.constant(30), gradient_memory=256)
    assert capsys.readouterr().out == "trip 0\ntrip 10\ntrip 20\n"
    assert len(calls) == 3
    kept, total_kept = total.numpy(), None
    total.assign(0.0)
    assert derivative(f, 0.5, ag.constant(30)) == found
    total_kept = total.numpy()
    assert kept == total_kept


def test_variables_that_a_loop_assigns_and_reads() -> None:
    v = ag.Variable(0.4, dtype=ag.float64)

    def f(x, n):
        v.assign(0.4)
        y = x
        for _ in ag.range(n):
            y = ag.sin(y * v) + x
            v.assign(v * 0.9 + 0.1)
        return y

    assert derivative(f, 0.5, ag.constant(33), gradient_memory=512) == derivative(f, 0.5, ag.constant(33))


def test_second_order_through_tapes() -> None:
    def second(**options: Any) -> float:
        f = ag.function(logistic, **options)
        r, n = ag.constant(3.1, ag.float64), ag.constant(50)
        with ag.GradientTape() as outer:
            outer.watch(r)
            with ag.GradientTape() as tape:
                tape.watch(r)
                y = f(r, n)
            first = tape.gradient(y, r)
        return float(outer.gradient(first, r))

    np.testing.assert_allclose(second(gradient_memory=256), second(), rtol=1e-10)


def test_a_tape_inside_the_function() -> None:
    @ag.function(gradient_memory=256)
    def bounded(r, n):
        with ag.GradientTape() as tape:
            tape.watch(r)
            y = logistic(r, n)
        return tape.gradient(y, r)

    assert bounded(ag.constant(3.2, ag.float64), ag.constant(50)).numpy() == derivative(logistic, 3.2, ag.constant(50))


@pytest.mark.parametrize("value", [0, -1])
def test_a_budget_is_positive(value: int) -> None:
    with pytest.raises(ValueError, match="positive number of bytes"):
        ag.function(logistic, gradient_memory=value)


def test_a_budget_is_an_int() -> None:
    with pytest.raises(TypeError, match="number of bytes"):
        ag.config.set_gradient_memory("1 MiB")


def test_second_order_keeps_what_the_documented_formula_says() -> None:
    """docs/gradients.md: ceil(n / k) (c + g) bytes for chunks of k = B / 4s trips; up to five times that while buffers
    double. NumPy tells tracemalloc what it allocates."""
    width, budget = 64, 2**14

    @ag.function(jit_compile=False, gradient_memory=budget)
    def second(r: Any, n: Any) -> Any:
        with ag.GradientTape() as outer:
            outer.watch(r)
            with ag.GradientTape() as inner:
                inner.watch(r)
                x = ag.fill([width], ag.constant(0.3, ag.float64))
                for _ in ag.range(n):
                    x = r * x * (1.0 - x)
                y = ag.reduce_sum(x)
            slope = inner.gradient(y, r)
        return outer.gradient(slope, r)

    def peak(n: int) -> int:
        gc.collect()
        tracemalloc.start()
        second(ag.constant(3.2, ag.float64), ag.constant(n))
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    saved = carried = cotangents = 8 * width
    wait_for_background(120)  # compilers that other tests have started allocate too
    peak(200)  # traces, and makes functions of the loops
    chunks = 800 // (budget // (4 * saved))
    # Without a budget it would be four times this.
    assert peak(1000) - peak(200) <= 5 * chunks * (carried + cotangents)
