"""What a gradient costs: the bytes that loops save, and the number of kernels. Counted, never timed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autograph as ag
from benchmarks import loop_gradients
from runtime.autodiff.checkpoints import Replay
from runtime.autodiff.vjp import build_vjp
from runtime.codegen.backends.call_stub import load
from runtime.context import ctx
from runtime.engine import partition
from runtime.engine.partition import segments
from runtime.graph.interpreter import interpret
from runtime.graph.ir import Graph
from runtime.graph.passes.pipeline import optimize
from runtime.ops.stack import Stack

X = ag.constant(0.4, ag.float64)
N = ag.constant(6)


@pytest.mark.parametrize("program", loop_gradients.programs(quick=True), ids=lambda p: p.name)
def test_loops_save_what_the_adjoint_needs_and_no_more(program: Any) -> None:
    assert loop_gradients.bytes_saved(program.function, program.source(), N) == program.needed


def flags(x, n):
    """Integer and boolean carries decide, a float is summed: nothing to save but the float that is squared."""
    y, i, odd, last = x, ag.constant(0), ag.constant(False), ag.constant(-1)
    while i < n:
        if odd:
            y = y + x
        odd = ag.logical_not(odd)
        last = i * 2
        i += 1
    return y * ag.cast(last, x.dtype)


def invariant(x, n):
    """What the loop doesn't change is there anyway."""
    scale = ag.exp(x)
    y = x
    for _ in ag.range(n):
        y = y * scale + scale
    return y


def linear(x, n):
    """A linear recurrence with a constant factor needs no value at all."""
    y = x
    for _ in ag.range(n):
        y = 0.5 * y + 1.0
    return y


@pytest.mark.parametrize(
    ("function", "most"), [(flags, 1), (invariant, 8), (linear, 0)], ids=lambda v: getattr(v, "__name__", str(v))
)
def test_bytes_saved(function: Any, most: int) -> None:
    assert loop_gradients.bytes_saved(function, X, N) <= most


def branches(x, n):
    y = x
    for i in ag.range(n):
        if y > 1.0:
            y = y * 0.5
        elif i > 3:
            break
        else:
            y = ag.exp(y) * x
    return y


def listed(x, n):
    found = []
    y = x
    for _ in ag.range(n):
        y = ag.sin(y)
        found.append(y * x)
    return ag.reduce_sum(ag.stack(found))


def gradient_graphs(function: Any, *args: Any, **options: Any) -> tuple[Graph, Graph]:
    graph = ag.function(function, **options).get_concrete_function(*args).graph
    vjp = build_vjp(graph, [0], [0])
    return optimize(vjp.forward), optimize(vjp.backward)


@pytest.mark.parametrize("function", [branches, listed, invariant, flags, loop_gradients.pendulum])
def test_forward_and_backward_are_one_kernel_each(function: Any) -> None:
    for graph in gradient_graphs(function, X, N):
        assert [native for native, _ in segments(graph)] == [True]


@pytest.mark.usefixtures("empty_cache")
@pytest.mark.parametrize("function", [branches, listed])
def test_a_tape_round_a_call_launches_two_kernels(function: Any, monkeypatch: Any) -> None:
    launches: list[str] = []

    def counting(source: Any) -> Any:
        kernel = load(source)

        def launch(inputs: Any) -> Any:
            launches.append("kernel")
            return kernel(inputs)

        return launch

    monkeypatch.setattr(partition, "load", counting)
    staged = ag.function(function, jit_compile=True)
    for _ in range(2):
        launches.clear()
        with ag.GradientTape() as tape:
            tape.watch(X)
            y = staged(X, N)
        assert launches == ["kernel"]
        assert tape.gradient(y, X) is not None
        assert launches == ["kernel"] * 2


def test_one_kernel_with_a_budget() -> None:
    forward, backward = gradient_graphs(loop_gradients.logistic, X, N, gradient_memory=2**12)
    assert not any(n.op.name == "stack_push" for n in forward.walk())
    assert all(native for native, _ in segments(backward))


def test_a_checkpoint_holds_what_the_gradient_needs(monkeypatch: Any) -> None:
    """A running sum, the list that is filled, and counters that run backwards aren't part of it."""
    kept: list[list[str | None]] = []
    inner = Replay.__init__

    def spy(self: Any, loop: Any, plan: Any) -> None:
        inner(self, loop, plan)
        kept.append([self.body.inputs[i].name for i in self.state])

    monkeypatch.setattr(Replay, "__init__", spy)

    def sums(x, n):
        y, total, found = x, x * 0.0, []
        for _ in ag.range(n):
            total += ag.sin(y)
            y = ag.sin(y) * x
            found.append(total)
        return ag.reduce_sum(ag.stack(found)) + total

    gradient_graphs(sums, X, N, gradient_memory=2**12)
    assert kept and set(kept[0]) <= {"y", "index", "i"} and "y" in kept[0]


def test_an_eager_tape_forgets_after_its_gradient() -> None:
    with ag.GradientTape() as tape:
        tape.watch(X)
        y = ag.sin(X) * X
    np.testing.assert_allclose(float(tape.gradient(y, X)), np.cos(0.4) * 0.4 + np.sin(0.4))
    assert not tape.recorded


def summed_rows(x, n):
    """The gradient of the sum needs the vector's shape, and that is known."""
    v = ag.ones((5,), ag.float64) * x
    total = x
    for _ in ag.range(n):
        v = v * 0.5
        total += ag.reduce_sum(v)
    return total


def test_known_shapes_are_not_saved() -> None:
    assert loop_gradients.bytes_saved(summed_rows, X, N) == 0


def test_a_list_that_is_filled_saves_nothing() -> None:
    def filled(x, n):
        found, total = [], x
        for _ in ag.range(n):
            total = total * 0.5 + x
            found.append(total)
        return ag.reduce_sum(ag.stack(found))

    assert loop_gradients.bytes_saved(filled, X, N) == 0


@pytest.mark.parametrize("function", [loop_gradients.logistic, loop_gradients.recurrent])
def test_buffers_are_exact_where_the_trip_count_is_known(function: Any) -> None:
    x = X if function is loop_gradients.logistic else ag.zeros((128, 128))
    forward, _ = gradient_graphs(function, x, N)
    stacks = [r for r in interpret(forward, [x.numpy(), N.numpy()]) if isinstance(r, Stack)]
    assert stacks
    for saved in stacks:
        elements = saved.top // 6
        # Room for one more, so that nothing grows before the loop finds out that it is at its end.
        assert saved.store.data.size == 7 * elements


def test_buffers_grow_where_it_is_not_known() -> None:
    forward, _ = gradient_graphs(loop_gradients.search, X, N)
    stacks = [r for r in interpret(forward, [X.numpy(), N.numpy()]) if isinstance(r, Stack)]
    assert stacks and all(s.store.data.size >= 6 for s in stacks)


class _Names:
    """Sees the ops that run eagerly, as a tape does."""

    builder = None

    def __init__(self) -> None:
        self.seen: list[str] = []

    def record(self, op: Any, inputs: tuple, attrs: dict, outputs: tuple) -> None:
        self.seen.append(op.name)


def test_an_eager_gradient_computes_nothing_for_constants(monkeypatch: Any) -> None:
    x, w = ag.constant(np.ones((3, 2))), ag.constant(np.ones((2, 2)))
    with ag.GradientTape() as tape:
        tape.watch(w)
        y = ag.reduce_sum((x @ w * 2.0 + x[:, :1]) / 3.0)
    names = _Names()
    monkeypatch.setattr(ctx, "recorders", (names,))
    found = tape.gradient(y, w)
    monkeypatch.undo()
    np.testing.assert_array_equal(found, np.full((2, 2), 2.0))
    assert names.seen.count("matmul") == names.seen.count("multiply") == names.seen.count("divide") == 1
    assert "sum_to_shape_of" not in names.seen and "negative" not in names.seen
