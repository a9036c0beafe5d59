"""Loops in loops whose types settle late: together they have the types that they have when they settle one by one."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

import autograph as ag
from autograph.errors import StagingTypeError
from autograph.operators import loop_memory, staged_loop
from tests.growth import forget, load

X = ag.constant([0.5, 1.5])
DEPTHS = (1, 2, 3, 4, 6)


@pytest.fixture(autouse=True, scope="module")
def sources():
    yield
    forget()


def nest(depth, innermost, before=(), after=(), first=(), result="x", loop="for i{k} in ag.range(n):"):
    """The text of `f(x, n)`, a nest of loops; {k} is a loop's number, 0 for the innermost.

    before, after: statements around each loop; first: those before the outermost.
    """
    lines = list(innermost)
    for k in range(depth):
        inside = ["    " + line for line in lines]
        lines = [*before, loop, *inside, *after]
        lines = [line.replace("{k}", str(k)) for line in lines]
    body = [*first, *lines, f"return {result}"]
    return "\n".join(["def f(x, n):", *["    " + line for line in body], ""])


PROGRAMS = {
    "own sums": dict(
        before=["s{k} = 0"], innermost=["x = x * 0.5"], after=["    s{k} += ag.reduce_sum(x)", "x = x + s{k} * 0.1"]
    ),
    "one sum": dict(first=["s = 0"], innermost=["s = s + x"], result="s"),
    "numbers become floats": dict(
        first=["s = 0", "t = 1"], innermost=["t = s", "s = s + 0.5"], result="x * s + t"
    ),
    "growing array": dict(innermost=["x = ag.concat([x, x[:1]], 0)[:20]"], result="ag.reduce_sum(x)"),
    "arrays of their own": dict(
        before=["a{k} = x[:1]"],
        innermost=["x = x * 0.5"],
        after=["    a{k} = ag.concat([a{k}, x[:1]], 0)", "x = x + ag.reduce_sum(a{k}) * 0.1"],
    ),
    "one list": dict(first=["found = []"], innermost=["found.append(x)"], result="ag.reduce_sum(ag.stack(found))"),
    "lists of their own": dict(
        before=["l{k} = []"],
        innermost=["x = x * 0.5"],
        after=["    l{k}.append(x)", "x = x + ag.reduce_sum(ag.stack(l{k})) * 0.1"],
    ),
    "lists of numbers": dict(
        before=["l{k} = [1]"],
        innermost=["x = x * 0.5"],
        after=["    l{k}.append(l{k}[-1] * 2)", "x = x + ag.reduce_sum(ag.cast(ag.stack(l{k}), x.dtype)) * 0.1"],
    ),
    "first seen in the loop": dict(
        first=["a = None"], innermost=["a = x if a is None else a * 0.5 + x"], result="x if a is None else a"
    ),
    "born in the loop": dict(innermost=["b = x * 2.0", "x = b * 0.25"], after=["    x = x + b * 0.1"], result="x + b"),
    "pairs": dict(first=["p = (0, x)"], innermost=["p = (p[0] + x, x)"], result="p[0] * p[1]"),
    "integers": dict(first=["k = 0", "last = -1"], innermost=["last = k", "k += 1"], result="x * k + last"),
    "python numbers": dict(
        before=["w{k} = 2"], innermost=["x = x * 0.5"], after=["    w{k} = 2", "    x = ag.reshape(x, [w{k}, 1])[:, 0]"]
    ),
    "while": dict(
        before=["c{k} = 0"], loop="while c{k} < n:", innermost=["x = x * 0.5"], after=["    c{k} += 1"]
    ),
    "left early": dict(
        before=["s{k} = 0"],
        innermost=["x = x * 0.9"],
        after=["    s{k} += x", "    if ag.reduce_sum(x) < 1.0:", "        break", "x = x + s{k} * 0.1"],
    ),
    "under conditions": dict(
        before=["s{k} = 0.0"],
        innermost=["if ag.reduce_sum(x) > 1.0:", "    x = x * 0.5"],
        after=["    if ag.reduce_sum(x) > 0.1:", "        s{k} = s{k} + x", "x = x + s{k} * 0.1"],
    ),
    "attributes": dict(
        first=["class Box: pass", "box = Box()", "box.total = 0", "box.count = 0"],
        innermost=["box.total = box.total + x", "box.count += 1"],
        result="box.total * box.count",
    ),
    "functions of outer variables": dict(
        first=["s = 0", "def add(v):", "    nonlocal s", "    s = s + v"], innermost=["add(x)"], result="s"
    ),
    "limits": dict(
        before=["s{k} = 0"],
        innermost=["x = x * 0.5"],
        after=["    ag.autograph.experimental.set_loop_options(maximum_iterations=2)", "    s{k} += x", "x = x + s{k}"],
    ),
    "indices of lists": dict(
        first=["w = [1.0, 2.0, 3.0]", "s = 0"], innermost=["s = s + w[i0] * x"], result="s"
    ),
    "tapes": dict(
        innermost=["x = x * 0.9"],
        after=[
            "    with ag.GradientTape() as tape:",
            "        tape.watch(x)",
            "        y = 0",
            "        for j{k} in ag.range(2):",
            "            y = y + x * x",
            "        y = ag.reduce_sum(y)",
            "    x = x - 0.01 * tape.gradient(y, x)",
        ],
    ),
}  # fmt: skip


def results(function, n):
    """The value and the gradient, as NumPy arrays."""
    with ag.GradientTape() as tape:
        tape.watch(X)
        y = ag.convert_to_tensor(function(X, n))
    slope = tape.gradient(y, X)
    return y.numpy(), None if slope is None else ag.convert_to_tensor(slope).numpy()


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients(name, depth):
    function = load(nest(depth, **PROGRAMS[name]))
    n = ag.constant(2) if depth < 6 else ag.constant(1)
    wanted, slope = results(function, n)
    found, staged_slope = results(ag.function(function, jit_compile=False), n)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    if slope is not None:
        np.testing.assert_allclose(staged_slope, slope, rtol=1e-5)


def text_of(source, at_once, monkeypatch):
    monkeypatch.setattr(loop_memory, "_AT_ONCE", at_once)
    graph = ag.function(load(source), jit_compile=False).get_concrete_function(X, ag.constant(2)).graph
    return re.sub(r"<growth \d+>", "<file>", graph.as_text())


@pytest.mark.parametrize("depth", DEPTHS[:-1])
@pytest.mark.parametrize("name", PROGRAMS)
def test_graphs(name, depth, monkeypatch):
    source = nest(depth, **PROGRAMS[name])
    one_by_one = text_of(source, 10**9, monkeypatch)
    for at_once in (0, 1, 3):
        assert text_of(source, at_once, monkeypatch) == one_by_one


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_body_is_traced_a_few_times(name, monkeypatch):
    """However deep the nest is."""
    counts = []
    trace = staged_loop.Loop.trace
    for depth in (4, 8):
        traced = []

        def counted(self, block, function, traced=traced):
            traced.append((self.body.__code__, block))
            return trace(self, block, function)

        monkeypatch.setattr(staged_loop.Loop, "trace", counted)
        ag.function(load(nest(depth, **PROGRAMS[name])), jit_compile=False).get_concrete_function(X, ag.constant(2))
        counts.append(len(traced))
    assert counts[1] <= 2.3 * counts[0]
    assert counts[1] <= 8 * 2 * 7


MISTAKES = {
    "shapes": dict(before=["s{k} = 0"], innermost=["x = x + ag.ones([3])"], after=["    s{k} += 1"]),
    "dtypes": dict(first=["s = ag.constant(1)"], innermost=["s = x * 1.0"], result="s"),
    "structures": dict(
        first=["p = (x, x)"], before=["s{k} = 0"], innermost=["p = (x, x, x)"], after=["    s{k} += x"], result="p[0]"
    ),
    "names": dict(before=["s{k} = 0"], innermost=["x = unknown + x"], after=["    s{k} += x"]),
    "late": dict(
        before=["s{k} = 0"], innermost=["x = x * 0.5"], after=["    s{k} += x", "x = x + ag.cast(s{k}, ag.int32)"]
    ),
    "numbers": dict(before=["c{k} = 0"], loop="while c{k} < n:", innermost=["x = x + y"], after=["    c{k} += 1"]),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name, monkeypatch):
    """They are the same ones as when the loops settle one by one."""
    source = nest(4, **MISTAKES[name])

    def error(at_once):
        with pytest.raises(Exception) as found:  # noqa: PT011
            text_of(source, at_once, monkeypatch)
        lines = [line for line in str(found.value).splitlines() if "<growth" not in line]
        return type(found.value), lines

    wanted = error(10**9)
    assert [error(at_once) for at_once in (0, 1, 3)] == [wanted] * 3


def test_comprehensions_that_only_some_traces_reach():
    """What one loop has found is not taken for another's where their order changes from trace to trace."""
    traces = itertools.count()

    @ag.autograph.experimental.do_not_convert
    def is_first():
        return next(traces) == 0

    @ag.function
    def program(x, n):
        items, total, grown = [x], 0, [x]
        for _ in ag.range(n):
            items.append(x)
        for _ in ag.range(n):
            if is_first():
                total = sum([v * 0.5 for v in items])
            if any([v > 0.3 for v in items]):
                total = total + x
            grown.append(x)
        return total

    assert float(program(ag.constant(0.5), ag.constant(2))) == 1.0
    assert next(traces) > 1


def test_a_list_that_a_loop_exchanges_in_a_dictionary():
    """What the error is about belongs to a trace that has been dropped."""

    def f(x, n):
        kept = {"items": [x]}
        for _ in ag.range(n):
            found = []
            for _ in ag.range(n):
                found.append(x)
            kept.update(items=found)
        return kept

    with pytest.raises(StagingTypeError, match="length is known only at run time"):
        ag.function(f, jit_compile=False).get_concrete_function(X, ag.constant(2))
