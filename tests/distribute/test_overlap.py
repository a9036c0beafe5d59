"""All-reduces that run beside other work: in the background, by starts and waits, where graphs allow it."""

import os
import random
import signal
import threading

import numpy as np
import pytest

import autograph as ag
from runtime import profiling
from runtime.collectives import group as groups_module
from runtime.collectives.cost_model import ETHERNET, SHARED_MEMORY
from runtime.engine.function import GraphFunction
from runtime.graph.builder import Builder, emit_cond, emit_while, trace_region
from runtime.graph.interpreter import interpret
from runtime.graph.ir import Graph
from runtime.graph.passes.pipeline import optimize
from runtime.graph.passes.rewrites.overlap import with_overlap
from runtime.graph.verify import verify
from runtime.ops import collective
from runtime.ops.dispatch import apply, call
from runtime.ops.table import OpDef
from runtime.tensor import EagerTensor
from runtime.types import TensorType
from tests.distribute.launch import check, needs_mpi
from tests.distribute.threads import groups, together

ROWS = TensorType(ag.float32, (40,))


@pytest.fixture
def always_pays(monkeypatch):
    monkeypatch.setattr(groups_module, "BACKGROUND", -1.0)


def values(rank, count=1, size=40):
    rng = np.random.default_rng(rank)
    return [rng.normal(size=size).astype(np.float32) for _ in range(count)]


def same(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        np.testing.assert_array_equal(one, other, strict=True)


# --- groups ---


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("mean", [False, True])
def test_an_all_reduce_in_the_background_gives_the_same_bits(size, mean):
    def work(group):
        arrays = [*values(group.rank, 3), *values(group.rank, 2, 30_000), np.arange(7) + group.rank]
        started = [group.start_all_reduce(arrays, mean, pack) for pack in (None, 200, 8)]
        at_once = [group.all_reduce(arrays, mean, pack) for pack in (None, 200, 8)]
        return [each.results() for each in started], at_once

    for background, at_once in together(groups(size), work):
        for found, expected in zip(background, at_once):
            same(found, expected)


def test_operations_run_in_the_order_in_which_they_start():
    def work(group):
        pending = [group.start_all_reduce(values(group.rank), place=f"line {i}") for i in range(20)]
        group.barrier("between")  # waits for those before it
        pending += [group.start_all_reduce(values(group.rank), place=f"line {i}") for i in range(20, 25)]
        for each in reversed(pending):
            each.results()
        return [text.rpartition(" at ")[2] for text in group.log]

    order = [f"line {i}" for i in range(20)] + ["between"] + [f"line {i}" for i in range(20, 25)]
    assert together(groups(3), work) == [order] * 3


def test_a_mismatch_in_the_background_is_named_where_the_results_are_used():
    def work(group):
        good = group.start_all_reduce(values(group.rank), place="train.py:1")
        bad = group.start_all_reduce(values(group.rank, size=40 + group.rank), place="train.py:2")
        later = group.start_all_reduce(values(group.rank), place="train.py:3")
        good.results()
        errors = []
        for use in (bad.results, bad.results, later.results, group.barrier):
            with pytest.raises(ag.errors.InvalidArgumentError) as caught:
                use()
            errors.append(str(caught.value))
        return errors

    for errors in together(groups(2), work):
        for text in errors:
            assert "rank 0: all_reduce(SUM) of float32[40] at train.py:2 (operation 2)" in text
            assert "rank 1: all_reduce(SUM) of float32[41] at train.py:2 (operation 2)" in text


def test_nothing_follows_an_operation_that_failed_in_the_background(monkeypatch):
    workers = groups(2)

    def fails(vector, mean, doing):
        raise MemoryError("no room")

    def work(group):
        started = [group.start_all_reduce(values(group.rank)) for _ in range(2)]
        with pytest.raises(MemoryError, match="no room"):
            started[0].results()
        with pytest.raises(ag.errors.UnavailableError, match=f"rank {group.rank} has left all_reduce by MemoryError"):
            started[1].results()
        with pytest.raises(ag.errors.UnavailableError, match="MemoryError"):
            group.all_gather(values(group.rank), 0)
        return len(group.log)

    for worker in workers:
        monkeypatch.setattr(worker, "_reduced", fails)
    assert together(workers, work) == [3, 3]


def test_ctrl_c_ends_the_wait_but_not_the_operation():
    first, second = groups(2)
    interrupted = threading.Event()

    def other(group):
        assert interrupted.wait(30)
        return group.all_reduce(values(1)), group.all_reduce(values(1, size=8))

    found = []
    thread = threading.Thread(target=lambda: found.extend(other(second)), daemon=True)
    thread.start()
    pending = first.start_all_reduce(values(0))
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        pending.results()
    interrupted.set()
    # What follows is still in order.
    same(first.all_reduce(values(0, size=8)), [values(0, size=8)[0] + values(1, size=8)[0]])
    same(pending.results(), [values(0)[0] + values(1)[0]])
    thread.join(30)
    same(found[0], pending.results())


def test_one_worker_runs_at_once():
    (group,) = groups(1)
    assert not group.overlaps and not group.pays_beside([1 << 30], 1e3)
    (array,) = values(0)
    same(group.start_all_reduce([array]).results(), [array])
    assert group._background._thread is None


def test_what_pays():
    (group, _) = groups(2)
    assert group.pays_beside([4 << 20], 1e-2)
    assert not group.pays_beside([4 << 20], 1e-5), "there is nothing to do meanwhile"
    assert not group.pays_beside([1 << 10], 1e-2), "it takes a few microseconds"
    for network in (SHARED_MEMORY, ETHERNET):
        sizes = [network.pack(workers) for workers in (1, 2, 4, 16, 64, 4096)]
        assert sizes == sorted(sizes) and sizes[0] == 1 << 20 and sizes[-1] == 32 << 20
        assert network.seconds(2, 1 << 27) < network.seconds(2, 1 << 28)


# --- graphs ---


def trace(function, count, type_=ROWS):
    """The graph of a function of so many arguments of one type."""
    builder = Builder("f")
    inputs = [builder.add_input(type_, name) for name in "abcdefgh"[:count]]
    with builder:
        builder.graph.outputs = [builder.use(t) for t in function(*map(builder.tensor, inputs))]
    verify(builder.graph)
    return builder.graph


def step(group, pack=None, mean=False):
    """A small training step: gradients, which the backward pass makes from the last to the first, and updates."""

    def body(w1, w2, w3, x):
        g3 = call("tanh", w3 * x)
        g2 = call("tanh", w2 * g3)
        g1 = call("tanh", w1 * g2)
        s1, s2, s3 = collective.all_reduce(group, [g1, g2, g3], mean, pack, "train.py:7")
        return [w1 - s1, w2 - s2, w3 - s3]

    return trace(body, 4)


def names(graph: Graph) -> list[str]:
    return [node.op.name.removeprefix("all_reduce_") for node in graph.nodes]


def test_gradients_start_when_they_are_made_and_are_awaited_when_they_are_used(always_pays):
    group = groups(2)[0]
    graph = step(group, pack=160)
    before = str(graph)
    split = with_overlap(graph)
    verify(split)
    assert str(graph) == before
    assert names(split) == [
        "multiply", "tanh", "start", "multiply", "tanh", "start", "multiply", "tanh", "start", "wait", "subtract",
        "wait", "subtract", "wait", "subtract",
    ]  # fmt: skip
    starts = [node for node in split.nodes if node.op is collective.ALL_REDUCE_START]
    assert [node.inputs[0] for node in starts] == [split.nodes[i].outputs[0] for i in (1, 4, 7)]
    assert [node.inputs[-1] for node in starts[1:]] == [node.outputs[-1] for node in starts[:-1]], "the order token"


def test_gradients_that_travel_together_start_together(always_pays):
    split = with_overlap(step(groups(2)[0], pack=320))
    assert [name for name in names(split) if name not in ("multiply", "tanh")] == [
        "start", "start", "wait", "subtract", "subtract", "wait", "subtract"
    ]  # fmt: skip
    first = next(node for node in split.nodes if node.op is collective.ALL_REDUCE_START)
    assert [value.node.op.name for value in first.inputs[:-1]] == ["tanh", "tanh"]
    assert [name for name in names(with_overlap(step(groups(2)[0]))) if name in ("start", "wait")] == ["start", "wait"]


def test_packs_that_are_small_start_together():
    """Each of 64 KiB takes 31 us by the cost model, less than what it costs to start one."""
    type_ = TensorType(ag.float32, (1 << 14,))

    def body(group, w, x):
        gradients = []
        for _ in range(6):
            x = call("tanh", x)
            gradients.insert(0, x)
        return [w - total for total in collective.all_reduce(group, gradients, pack=1 << 16)]

    split = names(with_overlap(trace(lambda w, x: body(groups(2)[0], w, x), 2, type_)))
    assert [name for name in split if name in ("tanh", "start")] == ["tanh", "tanh", "start", "start"] * 3


def test_nothing_is_split_where_it_does_not_pay():
    group = groups(2)[0]
    small = step(group, pack=160)
    assert with_overlap(small) is small

    def body(x, y):
        (total,) = collective.all_reduce(group, [x])
        return [total * y]

    large = TensorType(ag.float32, (1 << 20,))
    nothing_meanwhile = trace(body, 2, large)
    assert with_overlap(nothing_meanwhile) is nothing_meanwhile
    work_meanwhile = trace(lambda x, y: [body(x, y)[0] + call("tanh", y)], 2, large)
    assert names(with_overlap(work_meanwhile)) == ["start", "tanh", "wait", "multiply", "add"]
    unknown = trace(lambda x, y: [body(x, y)[0] + call("tanh", y)], 2, TensorType(ag.float32, (None, 1 << 20)))
    assert with_overlap(unknown) is unknown
    alone = step(groups(1)[0])
    assert with_overlap(alone) is alone


def test_starts_pass_no_other_collective(always_pays):
    group = groups(2)[0]

    def body(w, x, reduce):
        early = call("tanh", w)
        (total,) = reduce(group, [call("exp", x)])
        late = call("sin", total)
        found = collective.all_reduce(group, [late, early], pack=160, place="gradients")
        return [found[0] * w, found[1] * w]

    rest = ["sin", "start", "wait", "multiply", "wait", "multiply"]
    for reduce, statistics in (
        (lambda group, tensors: collective.broadcast(group, tensors), ["broadcast", "start"]),
        (lambda group, tensors: collective.all_reduce(group, tensors), ["start", "start", "wait"]),
    ):
        graph = trace(lambda w, x, reduce=reduce: body(w, x, reduce), 2)
        assert names(with_overlap(graph)) == ["tanh", "exp", *statistics, *rest]


def test_effects_keep_their_places(always_pays):
    """What follows an effect isn't reordered, and what precedes it isn't passed."""
    group = groups(2)[0]

    def body(w, x):
        gradient = call("tanh", w)
        ag.debugging.assert_equal(x, x)
        other = call("exp", x)
        second, first = collective.all_reduce(group, [other, gradient], pack=160)
        free = call("sin", w)
        (loss,) = collective.broadcast(group, [x])
        return [w - second, w - first, free, loss]

    found = names(with_overlap(optimize(trace(body, 2))))
    checked = found.index("assert")
    assert found.index("tanh") < checked < found.index("start")
    assert [name for name in found[checked + 1 :] if name != "constant"] == [
        "start", "exp", "start", "sin", "wait", "wait", "broadcast", "subtract", "subtract"
    ]  # fmt: skip


def in_loop(group):
    def body(w, x):
        def trip(i, a):
            gradients = call("tanh", a * w), call("sin", a)
            first, second = collective.all_reduce(group, list(gradients), pack=160, place="a trip")
            return [i + ag.constant(1), a - first * second]

        types = [TensorType(ag.int32, ()), ROWS]
        test = trace_region("test", lambda i, a: [i < ag.constant(25)], types)
        return emit_while(test, trace_region("body", trip, types), [ag.constant(0), x])[1:]

    return trace(body, 2)


def mixed(group):
    """Several reductions of several dtypes, whose results feed each other."""

    def body(w, x):
        wide, narrow = ag.cast(x, ag.float64), ag.cast(w, ag.bfloat16)
        a, b, c, d = collective.all_reduce(group, [call("tanh", w), wide, call("exp", x), narrow], True, 200, "first")
        e, f = collective.all_reduce(group, [a * c, ag.cast(b, ag.float32) + ag.cast(d, ag.float32)], place="second")
        (g,) = collective.broadcast(group, [e - f], 1, "third")
        return [g, a, b, d]

    return trace(body, 2)


def random_program(group, seed):
    """Elementwise ops, reductions of several packs, other collectives, effects and branches, in any order."""
    rng = random.Random(seed)

    def grown(known, count, depth):
        for _ in range(count):
            kind = rng.choice(
                ["tanh", "tanh", "multiply", "subtract", "reduce", "reduce", "broadcast", "assert", "cond"]
            )
            if kind == "tanh":
                known.append(call("tanh", rng.choice(known)))
            elif kind in ("multiply", "subtract"):
                known.append(call(kind, rng.choice(known), rng.choice(known)))
            elif kind == "reduce":
                chosen = rng.choices(known, k=rng.randint(1, 4))
                known += collective.all_reduce(group, chosen, rng.random() < 0.5, rng.choice([8, 160, 320, None]))
            elif kind == "broadcast":
                known += collective.broadcast(group, [rng.choice(known)], rng.randrange(2))
            elif kind == "assert":
                one = rng.choice(known)
                ag.debugging.assert_equal(one, one)
            elif depth < 2:
                branches = [
                    trace_region(name, lambda: grown(known[:], rng.randint(1, 6), depth + 1)[-1:])
                    for name in ("then", "else")
                ]
                known += emit_cond(rng.choice([ag.constant(True), ag.constant(False)]), *branches)
        return known

    return trace(lambda *arguments: rng.choices(grown(list(arguments), 20, 0), k=3), 3)


PROGRAMS = {
    "step": lambda group: step(group, 160), "whole step": step, "means": lambda group: step(group, 320, True),
    "loop": in_loop, "mixed": mixed,
}  # fmt: skip


def check_overlap(program, size):
    """The program gives the same bits, and its workers exchange the same, whichever of them split their graphs."""

    def run(group, splits):
        graph = program(group)
        changed = with_overlap(graph)
        verify(changed)
        inputs = [value for value in graph.inputs if isinstance(value.type, TensorType)]
        given = values(group.rank, len(inputs)) + [None] * (len(graph.inputs) - len(inputs))  # and the order token
        return interpret(changed if splits else graph, given), group.log, changed is not graph

    ways = [lambda rank: False, lambda rank: True, lambda rank: rank == 0]
    runs = [together(groups(size), lambda group, way=way: run(group, way(group.rank))) for way in ways]
    for rank in range(size):
        (expected, log, is_split), *others = [each[rank] for each in runs]
        for found, other_log, _ in others:
            same(found, expected)
            assert other_log == log
    return is_split


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("size", [2, 3])
def test_the_same_bits_by_the_same_operations(always_pays, program, size):
    assert check_overlap(lambda group: optimize(PROGRAMS[program](group)), size)


def test_random_programs(always_pays):
    split = [check_overlap(lambda group, seed=seed: random_program(group, seed), 2) for seed in range(40)]
    assert sum(split) > 30


def test_other_work_runs_while_the_network_is_slow(always_pays):
    """The network brings the first results only when what follows in the backward pass has been computed."""
    computed = [threading.Event(), threading.Event()]
    workers = groups(2)

    def compute(array, rank):
        computed[rank].set()
        return array

    work = OpDef("compute", lambda inputs, attrs: tuple(inputs), compute)

    def run(group):
        join = group._join

        def slow(*arguments):
            assert computed[group.rank].wait(30), "nothing is computed meanwhile"
            return join(*arguments)

        group._join = slow

        def body(w, x):
            first = call("tanh", w)
            second = apply(work, [call("exp", x)], {"rank": group.rank})
            found = collective.all_reduce(group, [second, first], pack=160)
            return [w - found[0], x - found[1]]

        return GraphFunction(optimize(trace(body, 2)), jit_compile=True)([EagerTensor(a) for a in values(0, 2)])

    for found in together(workers, run):
        assert isinstance(found, list), found


# --- gradients ---


def test_gradients_of_starts_and_waits(always_pays):
    def run(group):
        x = ag.constant(values(group.rank)[0])
        attrs = {"group": group, "mean": True, "pack": None, "place": "here"}

        def split(x):
            (handle,) = apply(collective.ALL_REDUCE_START, [x * x], attrs)
            return apply(collective.ALL_REDUCE_WAIT, [handle, x * x], attrs)[0]

        def whole(x):
            return collective.all_reduce(group, [x * x], True, place="here")[0]

        found = []
        for function in (split, whole, ag.function(split), ag.function(whole)):
            with ag.GradientTape() as outer:
                outer.watch(x)
                with ag.GradientTape() as inner:
                    inner.watch(x)
                    y = ag.reduce_sum(function(x) ** 2)
                first = inner.gradient(y, x)
            found.append([np.asarray(each) for each in (y, first, outer.gradient(first, x))])
        return found

    for found in together(groups(2), run):
        for each in found[1:]:
            for one, other in zip(each, found[0]):
                np.testing.assert_allclose(one, other, rtol=1e-5)


# --- what is shown ---


def large_step(group):
    def train(w, v):
        first = ag.tanh(w)
        second = ag.tanh(first * v)
        a, b = collective.all_reduce(group, [second, first], place="train.py:3")
        return w - a, v - b

    return ag.function(train, jit_compile=True)


def test_reports_show_starts_and_waits(always_pays):
    workers = groups(2)
    spec = ag.TensorSpec([40], ag.float32)
    concrete = large_step(workers[0]).get_concrete_function(spec, spec)
    # As long as it may be differentiated.
    assert [node.op.name for node in concrete.graph.nodes].count("all_reduce") == 1
    text = str(large_step(workers[0]).explain(spec, spec))
    assert "all_reduce_start" in text and "all_reduce_wait" in text


def test_profiles_show_what_runs_in_the_background(always_pays):
    profile = profiling.start()
    try:
        for found in together(groups(2), lambda group: large_step(group)(*values(0, 2))):
            assert isinstance(found, tuple), found
    finally:
        profiling.stop(profile)
    spans = [event for event in profile.events if event.category == "collective"]
    behind = [event for event in spans if event.name == "all_reduce in the background"]
    waits = [event for event in spans if event.name == "all_reduce_wait"]
    assert len(behind) == len(waits) == 2 and all(event.arguments == {"bytes": 320} for event in behind)
    assert {profile.threads[event.thread] for event in behind} == {"autograph-collectives"}
    assert not {event.thread for event in behind} & {event.thread for event in waits}


@needs_mpi
@pytest.mark.parametrize("workers", [2, 3])
def test_training_on_processes(workers):
    assert sorted(check("overlap.py", workers)) == [f"rank {rank}: equal" for rank in range(workers)]
