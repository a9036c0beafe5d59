"""Unrolled loops: their repetitions share kernels, whatever differs between them by the trip's number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autograph as ag
from runtime.dtypes import float32
from runtime.engine import Executable, executable, kernel_counters, partition, wait_for_background
from runtime.engine.run_splitting import split_run
from runtime.errors import PerformanceWarning
from runtime.graph.interpreter import interpret
from runtime.graph.ir import Graph, Node
from runtime.graph.passes.rewrites.commits import insert_commits
from runtime.graph.passes.rewrites.repetition import Stretch, alike, stretches
from runtime.graph.verify import verify
from runtime.ops.dispatch import call
from tests.codegen.compare import build, typed


def chain(*names: str) -> list[Node]:
    def run(x: Any) -> Any:
        for name in names:
            x = call(name, x)
        return x

    return build(run, [typed(float32, 4)]).nodes


PATTERN = ("sin", "cos", "tanh")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (PATTERN * 5, [Stretch(0, 3, 5)]),
        (("exp", "log", *PATTERN * 5, "sinh"), [Stretch(2, 3, 5)]),
        (("exp", *PATTERN * 4, "log", *("abs", "sqrt") * 6), [Stretch(1, 3, 4), Stretch(14, 2, 6)]),
        (("sin",) * 9, [Stretch(0, 1, 9)]),
        (PATTERN * 3, []),
        (("sin", "cos", "tanh", "exp", "log", "sinh", "cosh", "atan"), []),
        # The shorter of two patterns, not one that holds it twice.
        (("sin", "sin", "cos") * 8, [Stretch(0, 3, 8)]),
    ],
)
def test_stretches(names: tuple[str, ...], expected: list[Stretch]) -> None:
    assert stretches(chain(*names)) == expected


def test_a_pattern_in_a_pattern_is_found() -> None:
    nodes = chain(*(*("sin",) * 4, "cos") * 20)
    (stretch,) = stretches(nodes)
    assert (stretch.period, stretch.start, stretch.count) == (5, 0, 20)


def layers(*channels: int) -> Graph:
    """Convolutions of an image, each with the functions behind it."""
    shapes = [(3, 3, given, made) for given, made in zip(channels, channels[1:])]

    def run(x: Any, *filters: Any) -> Any:
        for f in filters:
            x = ag.tanh(ag.nn.conv2d(x, f, 1, "SAME")) * 0.5
        return x

    return build(run, [typed(float32, 2, 9, 9, channels[0]), *(typed(float32, *shape) for shape in shapes)])


def test_a_subgraph_starts_at_each_convolution() -> None:
    parts = split_run(layers(40, 40, 50, 60).nodes, 100)
    assert [[node.op.name for node in part] for part in parts] == [["convolution", "tanh", "multiply"]] * 3


def test_layers_of_other_sizes_share_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "SEGMENT_LIMIT", 6)
    graph = layers(40, 41, 42, 43)
    rng = np.random.default_rng(0)
    inputs = [np.float32(0.1) * rng.normal(size=getattr(v.type, "shape", ())).astype(np.float32) for v in graph.inputs]
    run = Executable(graph, jit_compile=True)
    before = kernel_counters().shared
    np.testing.assert_allclose(run(inputs)[0], interpret(graph, inputs)[0], rtol=1e-4, atol=1e-5)
    assert kernel_counters().shared - before >= 2


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ((2, 3, 4), (5, 6, 7), True),
        ((2, 3, 2), (5, 6, 5), True),
        ((2, 3, 4), (5, 6, 5), False),
        ((2, 3, 4), (5, 6, 1), False),
    ],
)
def test_a_form_has_equalities_of_sizes(one: tuple[int, ...], other: tuple[int, ...], same: bool) -> None:
    graphs = [build(lambda x: call("sin", x), [typed(float32, *shape)]) for shape in (one, other)]
    assert (partition._form(graphs[0]) == partition._form(graphs[1])) == same


def test_updates_behind_the_last_commit_are_apart() -> None:
    count = ag.Variable(0.0)
    variables = [ag.Variable(np.zeros(4, np.float32)) for _ in range(4)]

    @ag.function(jit_compile=False)
    def f(x, place):
        count.assign_add(1.0)
        for variable in variables:
            variable.assign(ag.cos(ag.sin(variable)) + variable)
        chosen = ag.gather(x, place)
        count.assign_add(1.0)
        for variable in variables:
            variable.assign(ag.tanh(ag.sin(variable)) + variable)
        return chosen

    graph = f.get_concrete_function(ag.TensorSpec([4], ag.float32), ag.TensorSpec([], ag.int32)).graph
    assert insert_commits(graph)
    parts = split_run(graph.nodes, 100)
    names = [[node.op.name for node in part] for part in parts]
    (last,) = [number for number, part in enumerate(names) if "commit" in part]
    assert last == 0
    assert names[last].count("assign") == 5, "one subgraph, in order"
    updates = [part for part in names[1:] if "tanh" in part]
    assert [sorted(part) for part in updates] == [["add", "assign", "sin", "tanh"]] * 4


def test_what_has_a_kernel_already_is_compiled_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "SEGMENT_LIMIT", 6)
    order: list[int] = []
    compile_step = partition._Step.compile

    def noting(step: Any, made: Any) -> bool:
        order.append(step.inputs[1].type.shape[2])
        return compile_step(step, made)

    monkeypatch.setattr(partition._Step, "compile", noting)
    # The second layer has as many filters as channels, and so has the fourth.
    executable.finished(executable.compilation(layers(40, 50, 50, 60, 60), None, set()))
    assert order == [40, 50, 50, 60]


def test_types_are_part_of_a_pattern() -> None:
    def run(x: Any) -> Any:
        for _ in range(6):
            x = call("reshape", call("sin", x), shape=(-1, 2))
        return x

    (stretch,) = stretches(build(run, [typed(float32, 2, 3)]).nodes)
    assert (stretch.start, stretch.period) == (2, 2), "the first one makes another shape"


def test_values_of_variables_are_no_part_of_a_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = [ag.Variable(np.zeros(4, np.float32), name="v") for _ in range(5)]

    @ag.function(jit_compile=False)
    def f(x):
        for variable in variables:
            variable.assign_add(ag.sin(x))

    nodes = f.get_concrete_function(ag.TensorSpec([4], ag.float32)).graph.nodes
    monkeypatch.setattr(ag.Variable, "__repr__", lambda variable: pytest.fail("read a variable"))
    assert stretches(nodes) == []


def viterbi(steps: int) -> Callable[..., Any]:
    def run(start: Any, moves: Any, seen: Any) -> list[Any]:
        score, back = start + seen[0], []
        for t in range(1, steps):
            total = score[:, None] + moves
            back.append(call("argmax", total, axis=0, output_type=ag.int64))
            score = call("reduce_max", total, axis=(0,), keepdims=False) + seen[t]
        best = call("argmax", score, axis=0, output_type=ag.int64)
        path = [best]
        for came_from in reversed(back):
            best = came_from[best]
            path.append(best)
        return [score, *path]

    return run


def decayed(steps: int) -> Callable[..., Any]:
    """The trip's number as a constant, and indices from the end."""

    def run(x: Any, y: Any, z: Any) -> Any:
        for t in range(1, steps):
            x = x * (0.5 + 0.01 * t) + z[-t % steps]
        return x + y[0]

    return run


def written(steps: int) -> Callable[..., Any]:
    """Elements set and slices' adjoints."""

    def run(x: Any, y: Any, z: Any) -> Any:
        for t in range(steps):
            z = call("slice_add", z, x * 0.25, spec=(("index", t), ("slice", None, None, None)))
            x = x * 0.5 + z[t]
        return z + y[0]

    return run


def windows(steps: int) -> Callable[..., Any]:
    """Slices that move, beside a bound that stays, from both ends."""

    def run(x: Any, y: Any, z: Any) -> Any:
        for t in range(steps - 3):
            x = x * 0.5 + call("reduce_sum", z[t : t + 3, 0:4], axis=(0,), keepdims=False)
            x = x - call("reduce_sum", z[-t - 4 : steps - t - 1], axis=(0,), keepdims=False)
        return x + y[0]

    return run


PROGRAMS = {"viterbi": viterbi, "decayed": decayed, "written": written, "windows": windows}


def arrays(steps: int) -> list[np.ndarray]:
    random = np.random.default_rng(3)
    return [random.normal(size=shape).astype(np.float32) for shape in ((4,), (4, 4), (steps, 4))]


def graph_of(name: str, steps: int) -> Graph:
    return build(PROGRAMS[name](steps), [typed(float32, *array.shape) for array in arrays(steps)])


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.usefixtures("empty_cache")
def test_kernels_do_not_grow_with_the_trips(name: str) -> None:
    """And so neither does the time that LLVM takes."""
    compiled = []
    for steps in (60, 120, 240):
        graph, given = graph_of(name, steps), arrays(steps)
        sizes = {id(step.description): step.part for step in partition._steps(graph, None)[2] if step.native}
        distinct = {step.description for step in partition._steps(graph, None)[2] if step.native}
        assert max(len(part.nodes) for part in sizes.values()) <= partition.SEGMENT_LIMIT
        compiled.append(len(distinct))
        if steps == 60:
            wait_for_background()  # what other tests have left to compile counts too
            before = kernel_counters().compiled
            found = Executable(graph, jit_compile=True)(given)
            assert kernel_counters().compiled - before <= compiled[0]
            for want, got in zip(interpret(graph, given), found):
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    assert max(compiled) <= 8
    assert compiled[0] >= compiled[1] == compiled[2]


def test_short_stretches_are_not_cut_out() -> None:
    nodes = chain("exp", *("sin",) * 5, "log", "cos")
    assert stretches(nodes) == [Stretch(1, 1, 5)]
    assert split_run(nodes, 100) == [nodes]
    assert list(map(len, split_run(chain("exp", *("sin",) * 40, "log"), 100))) == [1, 16, 16, 9]


def test_what_is_made_alike_is_the_same_program() -> None:
    for name in PROGRAMS:
        graph, given = graph_of(name, 20), arrays(20)
        found = alike(graph, [[node for node in graph.nodes if node.op.name != "constant"]])
        assert found is not None
        same, more = found
        verify(same)
        assert len(same.inputs) == len(graph.inputs) + len(more)
        for want, got in zip(interpret(graph, given), interpret(same, [*given, *more])):
            np.testing.assert_array_equal(got, want)


def test_programs_without_repetitions_are_left_alone() -> None:
    graph = build(lambda x: call("sin", x) * 2.0 + x[0], [typed(float32, 4)])
    assert alike(graph, [graph.nodes]) is None


def test_gradients_of_unrolled_loops_share_kernels() -> None:
    @ag.function(jit_compile=True)
    def gradient(x: Any, w: Any) -> Any:
        with ag.GradientTape() as tape:
            tape.watch(w)
            h = x[0]
            for t in range(1, 60):
                h = ag.tanh(h * w + x[t])
            loss = ag.reduce_sum(h)
        return tape.gradient(loss, w)

    x, w = ag.ones([60, 3]) * 0.1, ag.constant([0.3, 0.2, 0.1])
    graph = gradient.get_concrete_function(x, w).graph
    steps = [step for step in partition._steps(graph, None)[2] if step.native]
    assert len({step.description for step in steps}) < len(steps) / 2
    np.testing.assert_allclose(gradient(x, w), gradient.python_function(x, w), rtol=1e-4)


def test_an_operation_on_very_many_values_stays_on_the_interpreter_where_a_graph_is_cut() -> None:
    """Its kernel would take each of them from Python."""
    graph = build(lambda x: ag.stack([x[i % 7] * 2.0 for i in range(200)]), [typed(float32, 7)])
    ends = [part for native, part in partition.parts(graph) if not native]
    assert [[node.op.name for node in part.nodes] for part in ends] == [["stack"]]
    x = np.arange(7, dtype=np.float32)
    np.testing.assert_array_equal(Executable(graph, jit_compile=True)([x])[0], interpret(graph, [x])[0])


def test_a_long_compilation_says_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "_LONG", 50)
    monkeypatch.setattr(partition, "_form", lambda graph: (id(graph),))  # nothing is shared

    @ag.function
    def unrolled(x: Any) -> Any:
        for _ in range(40):
            x = ag.sin(x) + ag.cos(x) * 0.5
        return x

    x = ag.constant([0.5, 0.25])
    with pytest.warns(PerformanceWarning) as caught:
        unrolled(x)
        assert wait_for_background(300)
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = unrolled(x)
        tape.gradient(y, x)
        assert wait_for_background(300)
    assert len(caught) == 1
    text = str(caught[0].message)
    assert "compiling 'unrolled' to native code takes about 1 s: it has 160 different operations on arrays" in text
    assert "test_repetition.py" in text and "ran 40 times while the function was traced" in text
    assert "ag.range(n)" in text
    assert caught[0].filename == __file__


def test_compilations_yield_between_kernels() -> None:
    graph = graph_of("viterbi", 60)
    work = executable.compilation(graph, None, set())
    assert next(work) is None  # it isn't on disk
    kernels = len({step.description for step in partition._steps(graph, None)[2] if step.native})
    yields = 0
    while True:
        try:
            next(work)
            yields += 1
        except StopIteration as end:
            assert end.value is not None
            break
    assert yields == kernels > 1


def test_what_a_compilation_yields_computes_the_same() -> None:
    graph = graph_of("viterbi", 60)
    rng = np.random.default_rng(3)
    inputs = [rng.normal(size=value.type.shape).astype(value.type.dtype.np) for value in graph.inputs]
    wanted = interpret(graph, inputs)
    calls = [found for found in executable.compilation(graph, None, set()) if found is not None]
    assert calls
    # The last one, too, goes on where nothing was compiled.
    for each in calls:
        for expected, found in zip(wanted, each(inputs), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_updates_of_many_variables_share_kernels() -> None:
    """Though assignments keep them in order, and a number is computed for all."""
    rng = np.random.default_rng(2)
    weights = [ag.Variable(rng.normal(size=(3 + k, 2)).astype(np.float32)) for k in range(12)]
    slots = [ag.Variable(np.zeros((3 + k, 2), np.float32)) for k in range(12)]
    step = ag.Variable(0)

    @ag.function(jit_compile=True)
    def update() -> Any:
        rate = 0.1 / ag.sqrt(ag.cast(step.assign_add(1), ag.float32))
        for weight, slot in zip(weights, slots):
            gradient = weight * weight - ag.sin(weight)
            slot.assign(slot + (gradient - slot) * 0.1)
            weight.assign(weight - rate * slot / (ag.sqrt(ag.abs(gradient)) + 1e-7))

    graph = update.get_concrete_function().function.executable.graph
    pieces = [part for native, part in partition.parts(graph) if native]
    assert len(pieces) >= 12
    expected = [w.numpy() for w in weights], [s.numpy() for s in slots]
    before = kernel_counters().compiled + kernel_counters().loaded
    update()
    assert kernel_counters().compiled + kernel_counters().loaded - before <= 6
    for weight, slot, w, s in zip(weights, slots, *expected, strict=True):
        gradient = w * w - np.sin(w)
        s = s + (gradient - s) * np.float32(0.1)
        np.testing.assert_allclose(slot, s, rtol=1e-5)
        np.testing.assert_allclose(weight, w - 0.1 * s / (np.sqrt(np.abs(gradient)) + 1e-7), rtol=1e-4)


def test_a_piece_that_assigns_what_it_does_not_return(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error in it leaves the assignment: the kernel needs an empty array of its dtype until then."""
    monkeypatch.setattr(partition, "SEGMENT_LIMIT", 6)
    v = ag.Variable([1.0, -2.0, 0.5])

    @ag.function(jit_compile=True)
    def f(b: Any, a: Any, n: Any) -> Any:
        for i in ag.range(3):
            b = ag.tensor_scatter_nd_update(b, [[i]], b[:1])
        v[n % 3].assign(v[0] * 0.5)
        return b, ag.TensorArray(ag.int32, size=4, element_shape=[], clear_after_read=False).unstack(a).stack()

    b, a = f(ag.constant([1.0, 2.0, 3.0], ag.float64), ag.constant([1, 2, 3, 4]), ag.constant(5))
    assert b.numpy().tolist() == [1.0, 1.0, 1.0]
    assert a.numpy().tolist() == [1, 2, 3, 4]
    assert v.numpy().tolist() == [1.0, -2.0, 0.5]
