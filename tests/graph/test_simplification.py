"""The simplifying passes: what becomes of small graphs, and that no value changes, special ones included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autograph as ag
from runtime.graph.interpreter import interpret
from runtime.graph.ir import Graph
from runtime.graph.passes import options, pipeline
from runtime.graph.passes.dead_code import remove_dead_code
from runtime.graph.passes.pipeline import LAST, PASSES, REGION_PASSES, optimize
from runtime.graph.passes.shape_propagation import propagate_shapes
from runtime.graph.verify import VerificationError
from runtime.pass_log import recorded
from tests.graph.tracing import F32, I32, MATRIX, ops, simplified, traced

SPECIAL = [0.0, -0.0, 1.0, -1.5, 3.0, 1e-45, -1e-40, 1e-38, 3e38, np.inf, -np.inf, np.nan]
INTEGERS = [0, 1, -1, 2, 7, -(2**31), 2**31 - 1]


@pytest.fixture
def no_passes():
    options.set_options({"disable_meta_optimizer": True})
    yield
    options._chosen.clear()


@pytest.fixture
def fast_math():
    options.set_options({"fast_math": True})
    yield
    options._chosen.clear()


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


# program, ops that are left
FLOATS = {
    "times one": (lambda x, y: x * 1.0 + 1.0 * y, ["add"]),
    "minus zero": (lambda x, y: (x - 0.0) * y, ["multiply"]),
    "plus negative zero": (lambda x, y: (x + -0.0) * y, ["multiply"]),
    "plus zero stays": (lambda x, y: (x + 0.0) * y, ["add", "multiply"]),
    "times zero stays": (lambda x, y: (x * 0.0) * y, ["multiply", "multiply"]),
    "minus itself stays": (lambda x, y: (x - x) * y, ["subtract", "multiply"]),
    "plus negative": (lambda x, y: x + -y, ["subtract"]),
    "negative plus": (lambda x, y: -x + y, ["subtract"]),
    "minus negative": (lambda x, y: x - -y, ["add"]),
    "negative times": (lambda x, y: x * y + -x * y, ["multiply", "multiply", "subtract"]),
    "negated twice": (lambda x, y: -(-x) * y, ["multiply"]),
    "over a power of two": (lambda x, y: x / 8.0 + y / 0.25, ["multiply", "multiply", "add"]),
    "over three stays": (lambda x, y: x / 3.0 + y / 1.0, ["divide", "add"]),
    "over the smallest stays": (lambda x, y: x / 2.0**-127 + y, ["divide", "add"]),
    "squared": (lambda x, y: x**2.0 + y**1.0, ["square", "add"]),
    "maximum of equals": (lambda x, y: ag.maximum(x, x) + ag.minimum(y, y), ["add"]),
    "select of equals": (lambda x, y: ag.where(x > y, x, x) + y, ["add"]),
    "cast to its own type": (lambda x, y: ag.cast(x, ag.float32) + y, ["add"]),
}
WHOLE = {
    "plus zero": (lambda x, y: (x + 0) * (0 + y), ["multiply"]),
    "minus zero": (lambda x, y: (x - 0) * (y * 1), ["multiply"]),
    "plus negative": (lambda x, y: x + -y, ["subtract"]),
    "not not": (
        lambda x, y: ag.logical_not(ag.logical_not(x > y)),
        ["greater"],
    ),
}


@pytest.mark.parametrize("name", FLOATS)
def test_floating_rules(name):
    program, left = FLOATS[name]
    before = traced(program, F32, F32)
    after = simplified(before)
    assert ops(after) == left
    for x in SPECIAL:
        for y in SPECIAL:
            given = [np.float32(x), np.float32(y)]
            (one,), (two,) = interpret(before, given), interpret(after, given)
            assert np.asarray(one).tobytes() == np.asarray(two).tobytes() or (np.isnan(one) and np.isnan(two)), (x, y)


@pytest.mark.parametrize("name", WHOLE)
def test_integer_rules(name):
    program, left = WHOLE[name]
    before = traced(program, I32, I32)
    after = simplified(before)
    assert ops(after) == left
    for x in INTEGERS:
        for y in INTEGERS:
            given = [np.int32(x), np.int32(y)]
            assert interpret(before, given) == interpret(after, given), (x, y)


# program, shapes of its operands
SUMS = {
    "product": ("ij,jk->ik", ["ij", "jk"]),
    "rows of a batch": ("btd,bd->bt", ["btd", "bd"]),
    "mean by weights": ("bt,btd->bd", ["bt", "btd"]),
    "heads": ("bqhd,bkhd->bhqk", ["bqhd", "bkhd"]),
    "several of a kind": ("btd,dhk->bthk", ["btd", "dhk"]),
    "several summed": ("bthk,hkd->btd", ["bthk", "hkd"]),
    "outer": ("i,j->ji", ["i", "j"]),
    "inner": ("ij,ij->i", ["ij", "ij"]),
    "dots": ("...ij,...jk->...ik", ["bhij", "bhjk"]),
    "three": ("bi,ijk,bj->bk", ["bi", "ijk", "bj"]),
    "three side by side": ("i,j,k->kij", ["i", "j", "k"]),
    "moved": ("ijk->kij", ["ijk"]),
}


@pytest.mark.parametrize("name", SUMS)
def test_sums_over_named_dimensions_become_products(name):
    equation, terms = SUMS[name]
    shapes = [[2 + "bhijkdqt".index(label) for label in term] for term in terms]
    random = np.random.default_rng(2)
    arrays = [random.normal(size=shape) for shape in shapes]
    specs = [ag.TensorSpec(shape, ag.float64) for shape in shapes]
    before = traced(lambda *operands: ag.einsum(equation, *operands), *specs)
    after = simplified(before)
    assert "einsum" not in ops(after)
    np.testing.assert_allclose(interpret(after, arrays)[0], interpret(before, arrays)[0], 1e-12, 1e-12)


@pytest.mark.parametrize("dtype", [ag.float16, ag.bfloat16])
@pytest.mark.parametrize("name", SUMS)
def test_sums_of_narrow_floats_are_rounded_once(name, dtype):
    equation, terms = SUMS[name]
    shapes = [[2 + "bhijkdqt".index(label) for label in term] for term in terms]
    random = np.random.default_rng(2)
    arrays = [random.normal(size=shape).astype(dtype.as_numpy_dtype) for shape in shapes]
    before = traced(lambda *operands: ag.einsum(equation, *operands), *[ag.TensorSpec(s, dtype) for s in shapes])
    after = simplified(before)
    assert "einsum" not in ops(after) and ops(after).count("cast") in (0, len(terms) + 1)
    found, wanted = (interpret(graph, arrays)[0] for graph in (after, before))
    apart = np.abs(found.astype(np.float64) - wanted.astype(np.float64))
    assert found.dtype == wanted.dtype and np.mean(apart > 0) < 0.02


@pytest.mark.parametrize("shapes", [([1, 2, 3], [4, 3, 2]), ([None, 2, 3], [None, 3, 2])])
def test_sums_that_stretch_or_compare_sizes_later_stay(shapes):
    specs = [ag.TensorSpec(shape, ag.float32) for shape in shapes]
    assert ops(simplified(traced(lambda a, b: ag.einsum("...ij,...jk->...ik", a, b), *specs))) == ["einsum"]


def test_fast_math(fast_math):
    def f(x, y):
        return (x + 0.0) * 2.0 * 3.0 + y / 3.0 + x**0.5 + ag.exp(ag.math.log(y))

    graph = ag.function(f).get_concrete_function(F32, F32).graph
    assert sorted(ops(graph)) == ["add", "add", "add", "multiply", "multiply", "sqrt"]
    expected = f(ag.constant(2.0), ag.constant(5.0)).numpy()
    np.testing.assert_allclose(interpret(graph, [np.float32(2), np.float32(5)])[0], expected, 1e-6)


# --- conditionals --------------------------------------------------------------------------------------------------


def test_a_negated_predicate_swaps_the_branches():
    def f(x):
        if not (x > 0.0):
            y = ag.sin(x)
        else:
            y = ag.cos(x)
        return y

    graph = ag.function(f).get_concrete_function(F32).graph
    assert ops(graph) == ["greater", "cond", "cos", "sin"]
    np.testing.assert_array_equal(interpret(graph, [np.float32(2)])[0], np.cos(np.float32(2)))


def test_a_result_that_is_the_same_in_both_branches_is_none():
    def f(x, y):
        z = y
        if x > 0.0:
            a, z = x * 2.0, y
        else:
            a, z = x * 3.0, y
        return a, z

    graph = ag.function(f).get_concrete_function(F32, F32).graph
    (cond,) = (n for n in graph.nodes if n.op.name == "cond")
    assert len(cond.outputs) == 1
    assert graph.outputs[1] is graph.inputs[1]


def test_the_predicate_is_known_inside():
    def f(x):
        positive = x > 0.0
        if positive:
            if positive:
                y = ag.sin(x)
            else:
                y = ag.cos(x)
        else:
            y = ag.where(positive, ag.tan(x), ag.exp(x))
        return y

    graph = ag.function(f).get_concrete_function(F32).graph
    assert ops(graph).count("cond") == 1
    assert "cos" not in ops(graph)
    for x in (0.5, -0.5):
        np.testing.assert_array_equal(interpret(graph, [np.float32(x)])[0], f(ag.constant(x)).numpy())


# --- loops ---------------------------------------------------------------------------------------------------------


def loop_of(graph: Graph) -> Any:
    return next(n for n in graph.nodes if n.op.name == "while")


def test_invariants_leave_nested_loops():
    def f(x, w, n):
        for _ in ag.range(n):
            for _ in ag.range(n):
                x = x + ag.exp(w) * ag.reduce_sum(w)
        return x

    specs = ag.TensorSpec([3], ag.float32), ag.TensorSpec([3], ag.float32), I32
    graph = ag.function(f).get_concrete_function(*specs).graph
    assert {"exp", "reduce_sum", "multiply"} <= {n.op.name for n in graph.nodes}
    assert not {"exp", "reduce_sum", "multiply"} & {n.op.name for n in loop_of(graph).regions[1].walk()}
    given = [np.arange(3, dtype=np.float32), np.ones(3, np.float32), np.int32(2)]
    expected = f(*map(ag.constant, given)).numpy()
    np.testing.assert_allclose(interpret(graph, given)[0], expected, 1e-6)


def test_what_may_fail_stays_in_the_loop():
    def f(x, k, n):
        for _ in ag.range(n):
            x = x + ag.cast(10 // k, ag.float32)
        return x

    graph = ag.function(f).get_concrete_function(F32, I32, I32).graph
    assert "floordiv" in {n.op.name for n in loop_of(graph).regions[1].walk()}
    assert interpret(graph, [np.float32(1), np.int32(0), np.int32(0)]) == [1]  # the loop never runs


def test_a_carry_that_never_changes_is_a_capture():
    def f(x, y, n):
        i = ag.constant(0)
        while i < n:
            x, y = x + y, y
            i += 1
        return x, y

    graph = ag.function(f).get_concrete_function(F32, F32, I32).graph
    assert loop_of(graph).attrs["carries"] == 2
    assert graph.outputs[1] is graph.inputs[1]


def test_equal_carries_are_one():
    def f(n):
        i, j, s = ag.constant(0), ag.constant(0), ag.constant(0)
        while i < n:
            s = s + i * j
            i, j = i + 1, j + 1
        return s, i, j

    graph = ag.function(f).get_concrete_function(I32).graph
    assert loop_of(graph).attrs["carries"] == 2
    assert [int(v) for v in interpret(graph, [np.int32(4)])] == [14, 4, 4]


def rnn(xs, h, w, u):
    for x in xs:
        h = ag.tanh(x @ w + h @ u)
    return h


RNN = [ag.TensorSpec(shape, ag.float32) for shape in ([None, 4, 3], [4, 2], [3, 2], [2, 2])]


def test_products_leave_a_loop_over_rows():
    graph = ag.function(rnn).get_concrete_function(*RNN).graph
    assert ops(graph).count("matmul") == 2
    assert [n.op.name for n in loop_of(graph).regions[1].nodes].count("matmul") == 1
    rng = np.random.default_rng(0)
    for rows in (0, 1, 5):
        given = [rng.normal(size=s).astype(np.float32) for s in ((rows, 4, 3), (4, 2), (3, 2), (2, 2))]
        np.testing.assert_allclose(interpret(graph, given)[0], rnn(*map(ag.constant, given)).numpy(), 1e-5, 1e-6)


@pytest.mark.parametrize("trips, inside", [(5, 1), (4, 2)])
def test_products_leave_a_loop_over_a_known_number_of_rows(trips, inside):
    def f(xs, h, w, u):
        for i in ag.range(trips):
            h = ag.tanh(xs[i] @ w + h @ u)
        return h

    rng = np.random.default_rng(0)
    given = [rng.normal(size=s).astype(np.float32) for s in ((5, 4, 3), (4, 2), (3, 2), (2, 2))]
    graph = ag.function(f).get_concrete_function(*map(ag.constant, given)).graph
    assert [n.op.name for n in loop_of(graph).regions[1].nodes].count("matmul") == inside
    np.testing.assert_allclose(interpret(graph, given)[0], f(*map(ag.constant, given)).numpy(), 1e-5, 1e-6)


def test_products_stay_where_the_loop_may_end_early():
    def f(xs, h, w, u):
        for x in xs:
            h = ag.tanh(x @ w + h @ u)
            if ag.reduce_sum(h) > 3.0:
                break
        return h

    graph = ag.function(f).get_concrete_function(*RNN).graph
    inside = [n.op.name for n in loop_of(graph).regions[1].walk()]
    assert inside.count("matmul") == 2


def test_gradients_through_moved_code():
    rng = np.random.default_rng(1)
    given = [rng.normal(size=s).astype(np.float32) for s in ((5, 4, 3), (4, 2), (3, 2), (2, 2))]
    found = []
    for f in (rnn, ag.function(rnn)):
        tensors = [ag.constant(a) for a in given]
        with ag.GradientTape() as tape:
            tape.watch(tensors)
            y = ag.reduce_sum(f(*tensors) ** 2)
        found.append([g.numpy() for g in tape.gradient(y, tensors)])
    for eager, staged in zip(*found):
        np.testing.assert_allclose(staged, eager, 1e-4, 1e-5)


# --- shapes --------------------------------------------------------------------------------------------------------


def test_shapes_reach_inlined_functions_and_loops():
    @ag.function(input_signature=[ag.TensorSpec([None, None], ag.float32), I32])
    def inner(x, n):
        for _ in ag.range(n):
            x = x + ag.cast(ag.shape(x)[0], ag.float32)
        return x, ag.size(x)

    before = traced(lambda x, n: inner(x, n), MATRIX, I32)
    after = simplified(before, propagate_shapes, remove_dead_code)
    assert after.outputs[0].shape == (2, 3)
    assert after.outputs[1].node.op.name == "constant"
    assert "shape" not in ops(after)
    given = [np.ones((2, 3), np.float32), np.int32(3)]
    for one, two in zip(interpret(before, given), interpret(after, given)):
        np.testing.assert_array_equal(one, two)


def test_a_loop_that_changes_shapes_keeps_unknown_dimensions():
    def f(x, n):
        for _ in ag.range(n):
            x = ag.concat([x, x], 0)
        return x

    graph = ag.function(f).get_concrete_function(ag.TensorSpec([2], ag.float32), I32).graph
    assert graph.outputs[0].shape == (None,)


# --- the whole list ------------------------------------------------------------------------------------------------


def test_options_switch_passes(no_passes):
    graph = ag.function(lambda x: (x * 1.0) + 0 * 2).get_concrete_function(F32).graph
    assert "multiply" in ops(graph)
    with pytest.raises(ValueError, match="unknown option 'nothing'"):
        options.set_options({"nothing": True})
    with pytest.raises(TypeError, match="must be a bool"):
        options.set_options({"fast_math": 1})


def test_the_passes_run_in_order():
    graph = traced(rnn, *RNN)
    with recorded() as steps:
        optimize(graph)
    assert [step.name for step in steps] == [name for name, _, _ in (*PASSES, *REGION_PASSES, *LAST)]


def test_the_pass_that_breaks_a_graph_is_named(monkeypatch):
    def drop_first(graph):
        del graph.nodes[0]

    monkeypatch.setattr(pipeline, "PASSES", (*PASSES, ("drop first", "constant_folding", drop_first)))
    with pytest.raises(VerificationError, match="after drop first, graph '.*reads .* which isn't defined before it"):
        optimize(traced(rnn, *RNN))
