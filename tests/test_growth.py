"""Compile time grows as the program does: tracing, gradients and code generation, counted at three sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import autograph as ag
from autograph.operators import staged_loop
from runtime.codegen.backends import llvm_backend
from runtime.codegen.lower.lower_graph import lower
from tests.growth import STAGES, Construct, forget, growth, load, work, works

X = ag.constant(0.5)
ONE = ag.constant(1)
# Linear work doubles with the size. A logarithm, and tables that double now and then, may come on top.
MOST = 2.6
QUADRATIC = 4.4


@pytest.fixture(autouse=True, scope="module")
def sources() -> Iterator[None]:
    yield
    forget()


def indent(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


def in_loop(lines: list[str], before: tuple[str, ...] = (), after: str = "x") -> str:
    body = [*before, "for _ in ag.range(n):", *indent(lines), f"return {after}"]
    return "\n".join(["def f(x, n):", *indent(body), ""])


def chain(size: int) -> str:
    """A loop over a number, unrolled in a staged loop."""
    return in_loop([f"for _ in range({size}):", "    x = x - 0.1 * x * x"])


def array_chain(size: int) -> str:
    return in_loop(
        [f"for _ in range({size}):", "    v = v - 0.1 * v * v"], ("v = x * ag.ones([20])",), "ag.reduce_sum(v)"
    )


def mixed_chain(size: int) -> str:
    """Cheap steps from two carries: what is worth computing again isn't obvious."""
    lines = [f"for _ in range({size}):", "    y = y + 0.5 * x", "    x = x + ag.exp(y) * 0.1"]
    return in_loop(lines, ("y = x",), "x + y")


def integer_chain(size: int) -> str:
    return in_loop([f"i = (i * i + {k}) // {k + 2} % 97" for k in range(size)], ("i = n",), "x * ag.cast(i, x.dtype)")


def unrolled(size: int) -> str:
    """A long tape, without any staged control flow."""
    return f"def f(x, n):\n    for _ in range({size}):\n        x = x - 0.1 * ag.sin(x)\n    return x\n"


def nested_ifs(size: int) -> str:
    lines = ["x = x * 0.5"]
    for k in range(size):
        lines = [f"if x > {k}.5:", *indent(lines), "else:", f"    x = ag.sin(x) * {k}.5"]
    return in_loop(lines)


def tree_of_ifs(size: int) -> str:
    """`size` leaves: nested in both branches."""

    def tree(leaves: int) -> list[str]:
        if leaves == 1:
            return ["x = x * 0.5"]
        return [f"if x > {leaves}.5:", *indent(tree(leaves // 2)), "else:", *indent(tree(leaves - leaves // 2))]

    return in_loop(tree(size))


def elif_ladder(size: int) -> str:
    lines = ["if x < 0.0:", "    x = -x"]
    for k in range(size):
        lines += [f"elif x > {size - k}.0:", f"    x = ag.sin(x) * {k}.5"]
    return in_loop([*lines, "else:", "    x = x * 1.1"])


def ifs_in_a_row(size: int) -> str:
    return in_loop([line for k in range(size) for line in (f"if x > {k}.5:", f"    x = ag.sin(x) * {k}.5")])


def conditional_expressions(size: int) -> str:
    text = "x"
    for k in range(size):
        text = f"(ag.sin(x) if x > {k}.5 else {text})"
    return in_loop([f"x = {text}"])


def early_returns(size: int) -> str:
    return in_loop(
        [line for k in range(size) for line in (f"if x > {k}.5:", f"    return x * {k}.5", "x = x + 0.1 * ag.sin(x)")]
    )


def breaks(size: int) -> str:
    return in_loop([line for k in range(size) for line in (f"if x > {k}.5:", "    break", "x = x + 0.1 * ag.sin(x)")])


def boolean_expressions(size: int) -> str:
    test = " or ".join(f"(x > {k}.0 and not x < {k}.5)" for k in range(size))
    return f"def f(x, n):\n    while n > 0 and ({test}):\n        x = ag.sin(x)\n        n -= 1\n    return x\n"


def carries(size: int) -> str:
    before = tuple(f"y{k} = x * {k}.5" for k in range(size))
    lines = [f"y{k} = y{k} * y{(k + 1) % size}" for k in range(size)]
    return in_loop(lines, before, " + ".join(f"y{k}" for k in range(size)))


def chained_carries(size: int) -> str:
    """Each depends on the next, and only the first is wanted."""
    before = tuple(f"y{k} = x * {k}.5" for k in range(size))
    lines = [f"y{k} = y{k} * 0.5 + ag.sin(y{(k + 1) % size})" for k in range(size)]
    return in_loop(lines, before, "y0")


def loops_in_a_row(size: int) -> str:
    lines = [line for _ in range(size) for line in ("for _ in ag.range(n):", "    x = x + 0.1 * ag.sin(x)")]
    return "\n".join(["def f(x, n):", *indent([*lines, "return x"]), ""])


def loops_in_a_loop(size: int) -> str:
    return in_loop([line for _ in range(size) for line in ("for _ in ag.range(n):", "    x = x + 0.1 * ag.sin(x)")])


def nested_loops(size: int) -> str:
    lines = ["x = x * 0.9 + ag.sin(x)"]
    for k in range(size):
        lines = [f"for i{k} in ag.range(n):", *indent(lines)]
    return "\n".join(["def f(x, n):", *indent([*lines, "return x"]), ""])


def reads(size: int) -> str:
    lines = [f"s = s * 0.5 + v[i] * v[(i + {k}) % 3]" for k in range(size)]
    return in_loop([*lines, "i = (i + 1) % 3"], ("v = x * [1.0, 2.0, 3.0]", "s = x", "i = 0"), "s")


def writes(size: int) -> str:
    lines = [f"v = ag.tensor_scatter_nd_update(v, [[(i + {k}) % 3]], [v[i] * 0.5])" for k in range(size)]
    return in_loop([*lines, "i = (i + 1) % 3"], ("v = x * [1.0, 2.0, 3.0]", "i = 0"), "ag.reduce_sum(v)")


def appends(size: int) -> str:
    return in_loop([f"found.append(x * {k}.5)" for k in range(size)], ("found = []",), "ag.reduce_sum(ag.stack(found))")


def functions(size: int) -> str:
    """Functions with early returns that call one another."""
    lines = ["def g0(x):", "    return x * 0.5", ""]
    for k in range(1, size):
        lines += [
            f"def g{k}(x):",
            f"    if x > {k}.5:",
            "        return ag.sin(x)",
            f"    return g{k - 1}(x) + 0.1",
            "",
        ]
    return "\n".join(lines) + "\n" + in_loop([f"x = g{size - 1}(x)"])


def helpers(size: int) -> str:
    """Helpers that call one another twice: `size` copies of the lowest."""
    lines = ["def h1(x):", "    while x > 1.0:", "        x = x * 0.5", "    return x", ""]
    k = 1
    while k < size:
        k *= 2
        lines += [f"def h{k}(x):", f"    return h{k // 2}(x) + h{k // 2}(x * 0.5)", ""]
    return "\n".join(lines) + "\n" + in_loop([f"x = h{size}(x)"])


def accumulators(size: int) -> str:
    """Each loop has a sum of its own, a Python number at first, of those of the loop in it."""
    lines = ["x = x * 0.5"]
    for k in range(size):
        lines = [f"s{k} = 0", f"for i{k} in ag.range(n):", *indent(lines), f"    s{k} += x", f"x = x + s{k}"]
    return "\n".join(["def f(x, n):", *indent([*lines, "return x"]), ""])


def one_sum(size: int) -> str:
    """A Python number before all loops, to which the innermost adds a tensor."""
    return nested("s = 0", "s = s + x", "s", size)


def nested(before: str, innermost: str, result: str, size: int) -> str:
    lines = [innermost]
    for k in range(size):
        lines = [f"for i{k} in ag.range(n):", *indent(lines)]
    return "\n".join(["def f(x, n):", *indent([before, *lines, f"return {result}"]), ""])


def growing_array(size: int) -> str:
    return nested("a = x * ag.ones([1])", "a = ag.concat([a, a[:1]], 0)", "ag.reduce_sum(a)", size)


def growing_list(size: int) -> str:
    return nested("found = []", "found.append(x)", "ag.reduce_sum(ag.stack(found))", size)


def late_variable(size: int) -> str:
    return nested("a = None", "a = x if a is None else a + 1.0", "x if a is None else a", size)


def python_flags(size: int) -> str:
    """Loops whose tests are Python's `True` before their first trip."""
    lines = ["x = x * 0.9"]
    for k in range(size):
        lines = [f"go{k} = True", f"while go{k}:", *indent([*lines, "x = x - 0.1", f"go{k} = x > {k}.5"])]
    return "\n".join(["def f(x, n):", *indent([*lines, "return x"]), ""])


def endless_loops(size: int) -> str:
    """Loops that only a `break` ends."""
    lines = ["x = x * 0.9"]
    for k in range(size):
        lines = ["while True:", *indent([*lines, "x = x - 0.1", f"if x <= {k}.5:", "    break"])]
    return "\n".join(["def f(x, n):", *indent([*lines, "return x"]), ""])


# The adjoint of a branch runs the branch again, and that of the adjoint runs it again at each level.
NESTS = {"second": QUADRATIC, "second compiled": QUADRATIC}
# Gradients and code generation look at each loop with all that it holds; tracing does not.
DEEP = dict.fromkeys([stage for stage in STAGES if stage not in ("value", "value interpreted")], QUADRATIC)

# Second-order gradients ask for each loop of a nest anew which arrays it and the loops in it change in place.
CHANGED_IN_PLACE = {**DEEP, "second": 5.0}
# A nest that joins the one before it has the text of both looked at once more.
JOINED = {"gradient compiled": QUADRATIC, "second compiled": QUADRATIC}

CONSTRUCTS: list[tuple[Construct, int, dict[str, float]]] = [
    (chain, 8, {}),
    (array_chain, 4, JOINED),
    (mixed_chain, 4, {}),
    (integer_chain, 8, {}),
    (unrolled, 8, {}),
    (nested_ifs, 4, NESTS),
    (tree_of_ifs, 4, {}),
    (elif_ladder, 6, NESTS),
    (ifs_in_a_row, 3, {}),
    (conditional_expressions, 4, NESTS),
    (early_returns, 3, NESTS),
    (breaks, 3, NESTS),
    (boolean_expressions, 6, {}),
    (carries, 4, {}),
    (chained_carries, 4, {}),
    (loops_in_a_row, 2, {}),
    (loops_in_a_loop, 2, {}),
    (nested_loops, 2, DEEP),
    (accumulators, 2, DEEP),
    (growing_array, 2, CHANGED_IN_PLACE),
    (growing_list, 2, DEEP),
    (reads, 4, {}),
    (writes, 2, {}),
    (appends, 2, {}),
    (functions, 4, NESTS),
    (helpers, 8, {}),
]


@pytest.mark.parametrize(("construct", "size", "allowed"), CONSTRUCTS, ids=lambda v: getattr(v, "__name__", ""))
def test_work_grows_as_the_program_does(construct: Construct, size: int, allowed: dict[str, float]) -> None:
    # The first is for what is done once in a process.
    _, *counts = [works(construct(each), (X, ONE)) for each in (size, size, 2 * size, 4 * size)]
    grown = {stage: (growth([each[stage] for each in counts]), [each[stage] for each in counts]) for stage in STAGES}
    too_fast = {stage: found for stage, found in grown.items() if found[0] > allowed.get(stage, MOST)}
    assert not too_fast


def test_text_of_a_kernel_with_many_checks_and_many_results() -> None:
    """Each loop of the forward kernel is left when Ctrl-C was pressed, and gives a stack. Wrote each such return all
    of the results, there would be four times as many for twice the loops."""
    lines = []
    for size in (32, 64, 128):
        concrete = ag.function(load(helpers(size)), jit_compile=False).get_concrete_function(X, ONE)
        source = lower(concrete.function.gradient((0,)).forward.graph)
        lines.append(llvm_backend.program(source).text("kernel", source.signature, "kernel").count("\n"))
    assert growth(lines) < 2.1


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the regions of loops that have been traced."""
    names: list[str] = []
    trace_region = staged_loop.trace_region

    def counted(name: str, *arguments: Any) -> Any:
        names.append(name)
        return trace_region(name, *arguments)

    monkeypatch.setattr(staged_loop, "trace_region", counted)
    return names


def traces_of_bodies(text: str, monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """How often each block that stands in a loop of a program is run while it is traced, by the depth of its text."""
    counts: Counter[int] = Counter()
    # A name of a module is no state of the program, as a variable of the test would be.
    monkeypatch.setattr(ag, "note_trace", lambda depth: counts.update([depth]), raising=False)
    lines = []
    for line in text.splitlines():
        lines.append(line)
        if line.lstrip().startswith("for "):
            depth = len(line) - len(line.lstrip()) + 4
            lines.append(" " * depth + f"ag.note_trace({depth})")
    ag.function(load("\n".join([*lines, ""])), jit_compile=False).get_concrete_function(X, ONE)
    return counts


@pytest.mark.parametrize("construct", [accumulators, one_sum, growing_array, growing_list, late_variable])
def test_nested_loops_whose_types_settle_late(
    construct: Construct, traced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bodies are traced again when a type changes: all of them a few times, however deep they are."""
    most = 7 if construct is growing_list else 4  # a list must become staged first, and then its buffer grows
    counts = []
    for depth in (2, 4, 8, 16):
        traced.clear()
        traces = traces_of_bodies(construct(depth), monkeypatch)
        assert len(traces) == depth
        assert max(traces.values()) <= most
        counts.append(len(traced))
    assert growth(counts[1:]) < MOST


@pytest.mark.parametrize("construct", [python_flags, endless_loops])
def test_nested_loops_that_begin_as_pythons(construct: Construct, traced: list[str]) -> None:
    """The first trip stands before the innermost loop, but not the first trips of all loops in one another."""
    traces, nodes = [], []
    for depth in (2, 4, 8):
        traced.clear()
        concrete = ag.function(load(construct(depth)), jit_compile=False).get_concrete_function(X, ONE)
        traces.append(len(traced))
        nodes.append(sum(1 for _ in concrete.graph.walk()))
    assert growth(nodes) < MOST
    assert growth(traces) < QUADRATIC
    assert traces[-1] <= 3 * 8 * 8


def test_the_same_nested_text_again() -> None:
    """As when a notebook's cell is run again. Were equal code objects compared, this would take 2 ** 40 steps."""
    counts = []
    for _ in range(3):
        staged = ag.function(load(nested_ifs(40)), jit_compile=False)
        counts.append(work(lambda staged=staged: staged.get_concrete_function(X, ONE))[0])  # type: ignore[misc]
    assert counts[2] == pytest.approx(counts[1], rel=0.1)


def test_what_the_loop_of_a_map_carries_is_complete_before_it_is_traced(traced: list[str]) -> None:
    rows = ag.constant([[0.5, 1.0], [1.5, 2.0]])
    ag.function(lambda x: ag.map_fn(lambda row: (row * 2.0, row > 1.0), x)).get_concrete_function(rows)
    assert traced == ["body", "test"]


def test_eager_tapes() -> None:
    """A tape that records more calls: value, gradient, and the gradient of that."""

    def slope_of_slope(steps: int) -> Any:
        with ag.GradientTape() as outer:
            outer.watch(X)
            with ag.GradientTape() as inner:
                inner.watch(X)
                y = X
                for _ in range(steps):
                    y = y - 0.1 * ag.sin(y)
            slope = inner.gradient(y, X)
        return outer.gradient(slope, X)

    _, *counts = [work(lambda size=size: slope_of_slope(size))[0] for size in (50, 50, 100, 200)]  # type: ignore[misc]
    assert growth(counts) < MOST


@pytest.mark.parametrize("size", [60, 120])
def test_long_ladders(size: int) -> None:
    """Beyond some ninety blocks in one another no kernel can be printed, and the interpreter runs the branches."""
    function = load(elif_ladder(size))
    staged = ag.function(function, jit_compile=True)
    with ag.GradientTape(persistent=True) as tape:
        tape.watch(X)
        wanted, found = function(X, ONE), staged(X, ONE)
    assert found.numpy() == pytest.approx(wanted.numpy())
    assert tape.gradient(found, X).numpy() == pytest.approx(tape.gradient(wanted, X).numpy())


def test_growth_tells_linear_from_quadratic() -> None:
    assert growth([10 + 3 * n for n in (4, 8, 16)]) == 2
    assert growth([10 + n * n for n in (4, 8, 16)]) == 4
    assert growth([2**n for n in (4, 8, 16)]) > 100
