"""f.explain: loops, kernels, what is fused, what stays on the interpreter and why; as text and as a page."""

from __future__ import annotations

import itertools
import re
from importlib import import_module
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

import autograph as ag
from autograph.cli import _STAGES, main
from runtime import profiling
from runtime.codegen.lower import state
from runtime.engine import explain_pictures, timeline, wait_for_background
from runtime.engine import machine as machines
from runtime.engine.machine import Machine
from runtime.errors import CompilationWarning

X = ag.constant(np.linspace(-1.0, 1.0, 1000, dtype=np.float32))


@pytest.fixture(autouse=True)
def known_machine(monkeypatch):
    """10 GB/s and 100 Gflop/s, whatever runs the tests."""
    explaining = import_module("autograph.function.explaining")
    monkeypatch.setattr(explaining, "machine", lambda: Machine(1e10, 1e11, 2, 0.05))


def program(x, w, n):
    for _ in range(3):
        x = ag.tanh(x) * 2.0
    while n > 0:
        x = x * 0.5 + ag.linalg.matvec(w, x)
        n -= 1
    y = ag.signal.dct(x)
    return ag.reduce_sum(ag.square(y))


LINE = program.__code__.co_firstlineno


def test_what_it_says():
    f = ag.function(program)
    text = f.explain(ag.TensorSpec([1000]), ag.TensorSpec([1000, 1000]), ag.TensorSpec([], ag.int32))
    assert "program(x: float32[1000], w: float32[1000, 1000], n: int32[])" in text
    assert "machine: 10.0 GB/s, 100 Gflop/s, 2 threads" in text
    assert "tier: interpreter, until native code is ready" in text
    assert f"test_explain.py:{LINE + 3}  staged: one loop" in text
    assert f"test_explain.py:{LINE + 1}  unrolled while tracing: 3 iterations, which left" in text
    fused = re.search(rf"fused over \[1000\]: 3 x tanh, 3 x multiply  \(test_explain.py:{LINE + 2}\)\n +(.*)", text)
    # It reads and writes 1000 float32 once: 8 kB at 10 GB/s.
    assert fused[1] == "8 kB moved, 6 k operations; floor 800 ns (memory)"
    # The product reads the matrix and a vector and writes a vector, at each iteration.
    product = rf"matmul \(test_explain.py:{LINE + 4}\) 4.01 MB moved, 2 M operations in each iteration of test_explain"
    assert re.search(product, " ".join(text.split()))
    assert re.search(r"fused over \[1000\]: square, reduce_sum.*\n +4 kB moved, 2 k operations", text)
    assert f"dct  (test_explain.py:{LINE + 6}): op 'dct' can't be compiled" in text
    assert max(map(len, text.splitlines())) <= 100
    assert repr(text) == str(text)


def test_it_says_which_loops_run_their_trips_side_by_side():
    @ag.function
    def roots(a):
        total = 0.0
        for i in ag.range(ag.shape(a)[0]):
            x = a[i]
            while ag.abs(x * x - a[i]) > 1e-4:
                x = 0.5 * (x + a[i] / x)
            total += x
        return total

    assert re.search(r"a loop that runs \d+ iterations at a time", roots.explain(X))


def test_it_neither_runs_nor_compiles(capsys):
    v = ag.Variable(1.0)

    @ag.function
    def f(x):
        ag.print("ran")
        v.assign_add(x)
        return x + 41.7

    text = f.explain(ag.constant(1.0), measure=True)
    assert "not timed, because running it has effects" in text
    assert "not compiled yet" in text
    assert float(v) == 1.0 and "ran" not in capsys.readouterr().err
    assert wait_for_background(60)
    assert "interpreter, until native code is ready" in f.explain(ag.constant(1.0))


def test_tiers_and_times():
    f = ag.function(lambda x: x * 3.0 + 1.0, jit_compile=True)
    assert "tier: native before the first run" in f.explain(X)
    f(X)
    text = f.explain(X, measure=True)
    assert re.search(r"tier: native; a call takes [\d.]+ \w+, its floor is 800 ns", text)
    assert "calls: answered in Python; by machine code after a few calls" in text
    for _ in range(3):
        f(X)
    assert "calls: answered by machine code" in f.explain(X)
    several = ag.function(lambda x: ag.strings.length(ag.as_string(x * 2.0)), jit_compile=True)
    several(X)
    assert "calls: answered in Python, since there is more than one kernel" in several.explain(X)
    assert re.search(r"kernel 1  k_\w+: (compiled|loaded from the cache) in [\d.]+ \w+,", text)
    assert "jit_compile=False" in ag.function(lambda x: x + 1.0, jit_compile=False).explain(X)
    strings = ag.function(lambda x: ag.strings.upper(x), jit_compile=True)
    strings(ag.constant("a"))
    assert "tier: interpreter: nothing in it can be compiled" in strings.explain(ag.constant("a"))
    assert "not timed, because that takes values" in f.explain(ag.TensorSpec([3]), measure=True)


def test_gradients_have_sections_of_their_own():
    f = ag.function(lambda x: ag.reduce_sum(ag.sin(x) * x))
    with ag.GradientTape() as tape:
        tape.watch(X)
        y = f(X)
    tape.gradient(y, X)
    text = f.explain(X)
    titles = [line.partition(" ---")[0] for line in text.splitlines() if " ---" in line]
    assert titles == ["the program", "forward, with what its gradient needs", "gradient"]


def test_loops_of_functions_that_are_called_inside():
    @ag.function
    def inner(x):
        for _ in range(2):
            x = x + 1.0
        return x

    f = ag.function(lambda x: inner(x) * 2.0)
    assert "unrolled while tracing: 2 iterations" in f.explain(X)


def test_a_loop_around_something_without_native_form():
    @ag.function
    def f(x, n):
        for _ in ag.range(n):
            x = ag.signal.dct(x) + x
        return x

    text = f.explain(X, ag.constant(3))
    assert "on the interpreter\n  dct" in text
    assert "op 'dct' can't be compiled; the native code around it calls Python" in " ".join(text.split())
    assert "in its body, on the interpreter" not in text


def test_a_loop_that_native_code_can_not_hold():
    @ag.function
    def f(x, n):
        for _ in ag.range(n):
            x = x + ag.cast(ag.strings.length(ag.strings.as_string(x)), x.dtype)
        return x

    text = f.explain(X, ag.constant(3))
    assert "(so neither has the while around it)" in " ".join(text.split())
    assert "in its body, on the interpreter" in text


def test_the_page(tmp_path):
    file = tmp_path / "page.html"
    f = ag.function(program)
    f.explain(X, ag.ones([1000, 1000]), ag.constant(2), html=file)
    page = file.read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>") and "http" not in page
    assert f'<span id="f0-{LINE + 3}" class="used"><em>staged</em>' in page
    assert f'<span id="f0-{LINE + 1}" class="used"><em>unrolled 3x</em>' in page
    assert f'<div class="entry stay" data-at="f0-{LINE + 6}">' in page
    assert ">while</b> n &gt; 0:" in page


def test_the_command(tmp_path, capsys):
    file = tmp_path / "model.py"
    file.write_text("import autograph as ag\n\n@ag.function\ndef f(x):\n    return ag.exp(x) + 1.0\n")
    page = tmp_path / "page.html"
    assert main(["explain", f"{file}:f", "--signature", "x: float32[4]", "--html", str(page)]) == 0
    assert "fused over [4]: exp, add  (model.py:5)" in capsys.readouterr().out
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert main(["explain", f"{file}:f", "--signature", "y: float32[4]"]) == 2
    assert main(["explain", f"{file}:g"]) == 2
    measured = ["explain", f"{file}:f", "--measure", "--signature"]
    assert main([*measured, "x: float32[None]"]) == 2
    assert "--measure calls the function with ones, but can't make x" in capsys.readouterr().err
    assert main([*measured, "x: float32[4]"]) == 0
    assert "measured: 0.25 operations per byte" in capsys.readouterr().out
    file.write_text("import autograph as ag\n\ndef f(x):\n    return x @ x\n")
    capsys.readouterr()
    assert main(["explain", f"{file}:f", "--signature", "x: float32[4]"]) == 1
    assert "can't be traced" in capsys.readouterr().err


def test_measured_kernels_stand_under_the_roofline(tmp_path, monkeypatch):
    monkeypatch.setattr(timeline, "_SHORTEST", 0.0)  # how long each part takes is not this test's matter
    f = ag.function(lambda x: ag.sin(x) * x + 1.0)
    page = tmp_path / "page.html"
    text = f.explain(X, measure=True, html=page)
    # Three operations for two float32; 10 GB/s allow 3.75 Gop/s of them.
    (line,) = (line for line in text.splitlines() if "measured:" in line)
    assert re.search(r"measured: 0.375 operations per byte, [\d.]+ [kMG]op/s in [\d.]+ [mun]s", line)
    page = page.read_text()
    titles = re.findall(r"<figcaption>([^:<]*)", page)
    assert titles == ["tracing and compiling", "a call", "Kernels under the machine's roofline"]
    rows = re.findall(r'<div class="span"><span[^>]*>([^<]*)</span>', page)
    rows = [row for row in rows if "garbage collection" not in row]
    assert "trace &lt;lambda&gt;" in rows
    assert "compile &lt;lambda&gt;" in rows
    assert rows[-2:] == ["call &lt;lambda&gt;", "kernel 1"]
    bars = [tuple(map(float, found)) for found in re.findall(r"left:([\d.]+)%;width:([\d.]+)%", page)]
    assert bars and all(0 <= left and left + width <= 100.1 for left, width in bars)
    picture = ElementTree.fromstring(re.search(r"<svg class=.roof.*?</svg>", page)[0])
    width, height = map(float, picture.get("viewBox").split()[2:])
    (point,) = picture.iter("circle")
    assert point.get("class") is None
    for element in picture.iter():
        for name, most in (("x", width), ("x1", width), ("cx", width), ("y", height), ("y1", height), ("cy", height)):
            assert 0 <= float(element.get(name, 0)) <= most
    # What wasn't measured stands on the line.
    page = tmp_path / "page.html"
    g = ag.function(lambda x: ag.sin(x) * x + 1.0)
    g.explain(ag.TensorSpec([1000]), html=page)
    assert "A</b> kernel 1: 0.375 operations per byte, at most 3.75 Gop/s" in page.read_text()
    assert '<circle class="most"' in page.read_text()
    assert "a call" not in re.findall(r"<figcaption>([^:<]*)", page.read_text())


def test_the_picture_shows_where_kernels_are_and_what_the_machine_allows():
    machine = Machine(1e10, 1e11, 2, 0.05)
    assert machine.allows(1.0) == 1e10
    assert machine.allows(1000.0) == 1e11
    kernels = [SimpleNamespace(intensity=intensity, rate=rate) for intensity, rate in ((0.1, 1e9), (50.0, None))]
    roof = explain_pictures._Roof(kernels, machine)
    # Decades around the points and the ridge, at 10 operations per byte.
    assert (roof.x, roof.y) == ((-1, 2), (9, 11))
    assert roof.place(0.1, 1e9)[0] == explain_pictures._LEFT
    on_line, at_ridge = roof.place(50.0, 1e11), roof.place(10.0, 1e11)
    assert on_line[1] == at_ridge[1] == explain_pictures._TOP


def test_rows_of_a_timeline_put_short_spans_together():
    profile = profiling.start()
    profiling.stop(profile)
    spans = [
        (0, 100, 1, "trace", "trace f"), (10, 5, 1, "pass", "a"), (20, 5, 1, "pass", "b"), (30, 50, 1, "convert", "g"),
        (100, 900, 1, "compile", "compile f"), (150, 100, 1, "compile", "llvm"), (400, 1, 1, "compile", "short"),
        (500, 300, 2, "kernel", "f"),
    ]  # fmt: skip
    for start, length, thread, category, name in spans:
        profile.add(profiling.Event(profile.began + start, length, thread, category, name, {"kernel": "k"}), "thread")
    found = timeline.phase("all", profile, {"k": "kernel 1"})
    assert found.seconds == pytest.approx(1e-6)
    assert [(row.depth, row.name, round(row.seconds * 1e9)) for row in found.rows] == [
        (0, "trace f: kernel 1", 100), (1, "2 passes", 10), (1, "g: kernel 1", 50), (0, "compile f: kernel 1", 900),
        (1, "llvm: kernel 1", 100), (0, "kernel 1", 300),
    ]  # fmt: skip
    assert timeline.phase("none", profiling.Profile()) is None


def test_the_time_of_a_call_is_no_longer_than_the_one_shown(monkeypatch):
    monkeypatch.setattr(timeline, "_SHORTEST", 0.0)
    explanation = ag.function(lambda x: ag.sin(x) * x).explain(X, measure=True)
    (section,) = re.findall(r"a call takes ([\d.]+) (\w+)", explanation)
    (shown,) = re.findall(r"<figcaption>a call: ([\d.]+) (\w+)", explanation.page)
    units = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
    assert float(section[0]) * units[section[1]] <= float(shown[0]) * units[shown[1]]


def test_the_machine_is_measured_once():
    machines.machine.cache_clear()
    found = machines.machine()
    assert found is machines.machine()
    assert 1e8 < found.bandwidth < 1e13 and 1e8 < found.arithmetic < 1e14
    assert found.floor(int(found.bandwidth), 1) == (pytest.approx(1.0), "memory")
    assert found.floor(1, int(found.arithmetic))[1] == "arithmetic"


def test_small_tensors_in_loops_are_said_to_be_variables() -> None:
    @ag.function(jit_compile=True)
    def turn(x, n):
        for _ in ag.range(n):
            x = ag.matmul([[0.8, -0.6], [0.6, 0.8]], x)
        return x

    text = str(turn.explain(ag.ones([2, 1]), 3))
    assert "1 operation on tensors of few elements, in registers" in text


def test_another_variable_is_named_with_the_way_out():
    first, second = ag.Variable(1.0), ag.Variable(1.0, name="second")
    f = ag.function(lambda v, x: v * x + second)
    for v in (first, second, ag.Variable([1.0])):
        f(v, 2.0)
    reason = f.explain_retraces()
    assert "argument 'v': another variable, 'second:0'" in reason and "variable.read_value()" in reason
    assert "argument 'x'" not in reason
    assert "argument 'v': a variable of float32 () → one of float32 (1,)" in reason
    g = ag.function(lambda v, x: v * x)
    for v in (first, second):
        g(v.read_value(), 2.0)
    assert g.experimental_get_tracing_count() == 1


def test_shapes_of_unknown_rank_are_named():
    f = ag.function(lambda x: x + 1)
    for spec in (ag.TensorSpec(None, ag.float32), ag.TensorSpec(None, ag.int32), ag.TensorSpec([3], ag.complex64)):
        f.get_concrete_function(spec)
    f.get_concrete_function(ag.TensorSpec([], ag.int64))
    lines = f.explain_retraces().splitlines()
    assert "dtype float32 → int32" in lines[1] and "shape" not in lines[1]
    assert "dtype int32 → complex64, shape unknown → (3,)" in lines[2]
    assert "shape (3,) → ()" in lines[3]


def test_what_changes_or_reads_few_elements_costs_no_more_for_large_arrays():
    def step(x, n):
        for i in ag.range(n):
            x = ag.tensor_scatter_nd_add(x, [[i]], [1.0])
            x = ag.tensor_scatter_nd_update(x, [[i], [0]], ag.gather(x, [i, i + 1]) * 2.0)
        return x

    costs = []
    for size in (100, 100_000):
        text = ag.function(step, jit_compile=True).explain(ag.TensorSpec([size]), ag.TensorSpec([], ag.int32))
        lines = text.splitlines()
        costs.append([lines[at + 1].split(";")[0] for at, line in enumerate(lines) if "tensor_scatter" in line])
        assert len(costs[-1]) == 2 and all("bytes moved" in cost for cost in costs[-1])
    assert costs[0] == costs[1]


def test_a_fault_of_the_compiler_is_told(monkeypatch):
    def broken(low, node):
        raise KeyError("broken on purpose")

    monkeypatch.delenv("AUTOGRAPH_STRICT", raising=False)
    monkeypatch.setitem(state.EMITTERS, "cumsum", broken)
    f = ag.function(lambda x: ag.cumsum(x) + 1, jit_compile=True)
    x = ag.ones([3])
    with pytest.warns(CompilationWarning):
        f(x)
    text = " ".join(f.explain(x).split())
    assert "tier: interpreter, because the compiler failed" in text
    assert "cumsum, add (test_explain.py:" in text and "its native code could not be made" in text
    assert "KeyError: 'broken on purpose'" in text


def test_equal_kernels_are_shown_once():
    @ag.function
    def f(x):
        for t in range(1, 120):
            x = ag.sin(x) * (0.1 * t + 0.05)  # never 1, which is no operation
        return ag.stack([x[i % 10] for i in range(100)])

    text = " ".join(f.explain(ag.TensorSpec([10])).split())
    assert text.count("kernel ") < 8
    assert re.search(r"kernel 1 run 1\d times; not compiled yet", text)
    assert "stack (test_explain.py" in text and "its 100 operands would each be taken from Python" in text


class Counted:
    """Counts calls where neither tracing nor converted code can see it."""

    def __init__(self):
        self._calls = itertools.count()
        self.seen = 0

    def __call__(self):
        self.seen = next(self._calls) + 1


def _effects(kind, traced, ran):
    """A function that notes when it is traced, and when its program's effect runs."""

    def noted(a):
        ran()
        return a

    def f(x):
        traced()
        if kind == "python call":
            x = ag.numpy_function(noted, [x], ag.float32)
        elif kind == "python call in a loop":
            for _ in ag.range(3):
                x = ag.ensure_shape(ag.numpy_function(noted, [x], ag.float32), [2])
        elif kind == "assignment":
            STEPS.assign_add(1.0)
        return x * 2.0

    return f


STEPS = ag.Variable(0.0)


@pytest.mark.parametrize("jit", [True, False, None])
@pytest.mark.parametrize("kind", ["python call", "python call in a loop", "assignment"])
def test_explaining_never_runs_what_has_effects(kind, jit):
    traced, ran = Counted(), Counted()
    unseen = [ag.autograph.experimental.do_not_convert(each.__call__) for each in (traced, ran)]
    each = 3 if kind.endswith("loop") else 1
    for explain_first in (True, False):
        f = ag.function(_effects(kind, *unseen), jit_compile=jit)
        x = ag.constant([1.0, 2.0])
        traces, runs, steps = traced.seen, ran.seen, STEPS.numpy()
        if explain_first:
            f.explain(x)
            f.explain(x, measure=True)
            assert (traced.seen - traces, ran.seen - runs, STEPS.numpy() - steps) == (1, 0, 0)
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        tape.gradient(y, x, unconnected_gradients="zero")
        wait_for_background(300)
        f.explain(x)
        f.explain(x, measure=True)
        wanted = (1, 0, 1) if kind == "assignment" else (1, each, 0)
        assert (traced.seen - traces, ran.seen - runs, STEPS.numpy() - steps) == wanted


@pytest.mark.parametrize(
    "arguments",
    [([1.0, 2.0],), (np.ones(2),), (np.float32(1),), (1.5,), ({"a": X},), (X, True), (X, "name"), (X, None, 3)],
    ids=["list", "array", "NumPy number", "float", "dict", "bool", "text", "None"],
)
def test_explaining_a_call_traces_what_the_call_does(arguments):
    traced = Counted()
    unseen = ag.autograph.experimental.do_not_convert(traced.__call__)

    def f(x, *more):
        unseen()
        return ag.reduce_sum(ag.convert_to_tensor(ag.nest.flatten(x)[0]))

    for first in ("explain", "call"):
        function, before = ag.function(f), traced.seen
        for what in (function.explain, function) if first == "explain" else (function, function.explain):
            what(*arguments)
            assert traced.seen == before + 1


def test_python_values_are_arguments_too():
    class Model:
        @ag.function
        def step(self, x, rows, *more, rate=0.5, name=None):
            return [x * rate] * rows

    model = Model()
    lines = str(model.step.explain(X, 2, "a", rate=0.25)).splitlines()
    assert lines[0] == "step(x: float32[1000], rows=2, rate=0.25, name=None)"
    assert str(ag.function(lambda a, b: a * b).explain(3, True)).startswith("<lambda>(a=3, b=True)\n")


def test_the_last_lines_name_the_stages(tmp_path):
    """Each option that they name is one of the command line's, and each stage is there."""

    @ag.function
    def f(x):
        return x * x

    def named(text):
        return set(re.findall(r"--([a-z-]+)", " ".join(text.split()).partition(" stages: ")[2]))

    page = tmp_path / "page.html"
    assert named(f.explain(X, html=page)) == {*_STAGES}
    assert "autograph graph FILE.py:f shows the graph" in page.read_text(encoding="utf-8")
    with ag.GradientTape() as tape:
        tape.watch(X)
        y = f(X)
    tape.gradient(y, X)
    assert named(f.explain(X)) == {*_STAGES, "gradient"}
