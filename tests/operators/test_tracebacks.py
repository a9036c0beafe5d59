"""Tracebacks and debuggers see the user's functions, each once, under its own lines."""

from __future__ import annotations

import bdb
import inspect
import os
import pathlib
import subprocess
import sys
import traceback
import warnings

import numpy as np
import pytest

import autograph as ag
from autograph.convert.api import converted

ROOT = pathlib.Path(__file__).resolve().parents[2]
needs_311 = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python raises on with the traceback it caught")


def helper(x):
    return 1 / x


def nested(x, n):
    """Fails in a loop, in a conditional, in the third operand of a condition."""
    while n > 0:
        if n == 2:
            for i in [1]:
                y = x or (i and helper(x))
        n -= 1
    return y


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    return first + next(index for index, line in enumerate(lines) if text in line)


def frames(function, *arguments):
    """The traceback of a call as (function name, line) pairs, without the caller's own entry."""
    with pytest.raises(Exception) as caught:
        function(*arguments)
    return [(each.name, each.lineno) for each in traceback.extract_tb(caught.value.__traceback__)][1:]


@needs_311
def test_converted_function():
    expected = [("nested", line_of(nested, "and helper(x)")), ("helper", line_of(helper, "1 / x"))]
    assert frames(nested, 0, 3) == expected
    assert frames(converted(nested), 0, 3) == expected


@needs_311
def test_function_that_is_traced():
    @ag.function
    def step(x):
        while ag.reduce_sum(x) > 0:
            if x[0] > 0:
                x = x - ag.ones([3, 5])
        return x

    assert frames(step, ag.constant([1.0, 2.0])) == [("step", line_of(step.python_function, "x = x - ag.ones"))]


def test_no_frame_of_the_project_on_any_python():
    with pytest.raises(ZeroDivisionError) as caught:
        converted(nested)(0, 3)
    names = [each.filename for each in traceback.extract_tb(caught.value.__traceback__)]
    assert set(names) == {__file__}


def test_the_switch():
    assert ag.debugging.is_traceback_filtering_enabled()
    ag.debugging.disable_traceback_filtering()
    try:
        assert not ag.debugging.is_traceback_filtering_enabled()
        found = frames(converted(nested), 0, 3)
    finally:
        ag.debugging.enable_traceback_filtering()
    names = [name for name, _ in found]
    assert {"while_stmt", "if_stmt", "for_stmt", "nested", "helper"} <= set(names)
    lines = [line for name, line in found if name == "nested"]
    # The calls of the operators stand where the user's headers do.
    for text in ("while n > 0:", "if n == 2:", "for i in [1]:"):
        assert line_of(nested, text) in lines


@needs_311
def test_recursion_keeps_each_call():
    def countdown(n):
        if n == 0:
            raise KeyError("done")
        else:
            return countdown(n - 1)

    deep = line_of(countdown, "countdown(n - 1)")
    assert frames(converted(countdown), 2) == [("countdown", deep)] * 2 + [("countdown", line_of(countdown, "raise"))]


@needs_311
def test_caught_and_raised_again():
    def outer(x):
        try:
            if x == 0:
                helper(x)
        except ZeroDivisionError as error:
            if x == 0:
                raise ValueError("wrapped") from error

    with pytest.raises(ValueError) as caught:
        converted(outer)(0)
    raised = traceback.extract_tb(caught.value.__traceback__)
    cause = traceback.extract_tb(caught.value.__cause__.__traceback__)
    assert [(each.name, each.lineno) for each in raised][1:] == [("outer", line_of(outer, "raise"))]
    assert [each.name for each in cause if each.filename == __file__][-1] == "helper"


@needs_311
def test_raised_again_by_raise_alone():
    def outer(x):
        try:
            while x == 0:
                if x == 0:
                    helper(x)
        except ZeroDivisionError:
            if x == 0:
                raise

    assert frames(converted(outer), 0) == frames(outer, 0)
    assert [name for name, _ in frames(outer, 0)] == ["outer", "helper"]


class Breakpoints(bdb.Bdb):
    """Stops at breakpoints and remembers where, and what the variables were."""

    def __init__(self):
        super().__init__()
        self.stops = []

    def user_line(self, frame):
        if self.get_breaks(frame.f_code.co_filename, frame.f_lineno):
            self.stops.append((frame.f_code.co_name, frame.f_lineno, dict(frame.f_locals)))
        self.set_continue()


def test_breakpoints_stop_in_blocks():
    def total(xs):
        s = 0
        for x in xs:
            if x > 1:
                s += x
        return s

    line = line_of(total, "s += x")
    debugger = Breakpoints()
    assert debugger.set_break(__file__, line) is None
    try:
        result = debugger.runcall(converted(total), [1, 2, 3])
    finally:
        debugger.clear_all_breaks()
    assert result == 5
    assert [(name, where, found["s"], found["x"]) for name, where, found in debugger.stops] == [
        ("total", line, 0, 2),
        ("total", line, 2, 3),
    ]


def test_breakpoints_stop_while_tracing():
    @ag.function
    def step(x):
        if x > 0:
            x = x * 2
        return x

    line = line_of(step.python_function, "x = x * 2")
    debugger = Breakpoints()
    assert debugger.set_break(__file__, line) is None
    try:
        result = debugger.runcall(step, ag.constant(np.float32(3)))
    finally:
        debugger.clear_all_breaks()
    assert float(result) == 6
    assert [(name, where) for name, where, _ in debugger.stops] == [("step", line)]


# --- eager code ------------------------------------------------------------------------------------------------------


def own_frames(error):
    """The frames of this project in what Python would show of an error."""
    text = "".join(traceback.format_exception(error))
    own = [str(pathlib.Path(ag.__file__).parent), str(pathlib.Path(ag.__file__).parents[1] / "runtime")]
    return [line for line in text.splitlines() if "File " in line and any(each in line for each in own)]


class Odd:
    """What no function takes."""


ODD_VALUES = [Odd, lambda: "text", lambda: ag.constant([1.0, 2.0]), lambda: None, lambda: -7, lambda: [[1], [2, 3]]]
# They read or write files, or change how the process works.
LEFT_OUT = {"disable_traceback_filtering", "main"}


def public_functions(module, found):
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.ismodule(value):
            public_functions(value, found)
        elif inspect.isfunction(value) and name not in LEFT_OUT:
            found.setdefault(value, f"{module.__name__}.{name}")
    return found


@needs_311
def test_no_public_function_shows_frames(tmp_path):
    """Each is called with what it doesn't take; some do. In a process of its own: some set options, or write files."""
    done = subprocess.run(
        [sys.executable, "-c", "from tests.operators import test_tracebacks as t; t.call_all()"],
        cwd=tmp_path, capture_output=True, text=True, timeout=600, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    calls, refused = map(int, done.stdout.split()[-2:])
    assert refused > 2000 and calls > refused


def call_all():
    warnings.simplefilter("ignore")
    calls = refused = 0
    shown = []
    for function, name in public_functions(ag, {}).items():
        parameters = inspect.signature(function).parameters.values()
        required = [each for each in parameters if each.default is each.empty and each.kind in (0, 1)]
        for make in ODD_VALUES:
            calls += 1
            try:
                function(*[make() for _ in required])
            except Exception as error:
                refused += 1
                if own_frames(error):
                    shown.append(f"{name}: {type(error).__name__}: {error}\n{own_frames(error)}")
    assert not shown, "\n".join(shown)
    print(calls, refused)


def persistent(tape):
    tape.gradient(ag.constant(1.0), ag.constant(2.0))


EAGER = {
    "operator": lambda: ag.zeros([2, 3]) + ag.zeros([4, 5]),
    "product": lambda: ag.zeros([2, 3]) @ ag.zeros([4, 5]),
    "reflected": lambda: [1.0, 2.0] - ag.zeros([3]),
    "comparison": lambda: ag.zeros([2]) < ag.zeros([3]),
    "logic": lambda: ag.constant([True]) & ag.constant([1.0]),
    "negation": lambda: -ag.constant("text"),
    "index": lambda: ag.zeros([2])[5],
    "iteration": lambda: list(ag.constant(1.0)),
    "length": lambda: len(ag.constant(1.0)),
    "truth": lambda: bool(ag.zeros([2])),
    "number": lambda: float(ag.zeros([2])),
    "integer": lambda: [1, 2, 3][ag.constant(1.5)],
    "key": lambda: {ag.constant(1.0)},
    "conversion": lambda: ag.constant([[1.0], [2.0, 3.0]]),
    "NumPy's function": lambda: np.add(ag.zeros([2]), ag.zeros([3])),
    "NumPy's method": lambda: ag.zeros([2]).reshape([3]),
    "variable": lambda: ag.Variable(None),
    "assign": lambda: ag.Variable([1.0, 2.0]).assign([1.0]),
    "assign_add": lambda: ag.Variable([1.0, 2.0]).assign_add(ag.constant([1, 2])),
    "a slice": lambda: ag.Variable([1.0, 2.0])[:1].assign([1.0, 2.0]),
    "scatter": lambda: ag.Variable([1.0, 2.0]).scatter_update(3.0),
    "watch": lambda: ag.GradientTape().watch("text"),
    "array": lambda: ag.TensorArray(ag.float32, size=1).read(3),
    "dataset": lambda: ag.data.Dataset.from_tensor_slices(([1, 2], [1])),
    "map": lambda: list(ag.data.Dataset.range(3).map(lambda x: x + "text")),
    "elements": lambda: list(ag.data.Dataset.range(3).map(lambda x: 1 // x)),
    "batches": lambda: list(ag.data.Dataset.range(3).map(lambda x: 1 // x).batch(2)),
    "elements of unlike shapes": lambda: list(ag.data.Dataset.range(3).map(lambda x: ag.zeros([x])).batch(2)),
    "a dataset's length": lambda: len(ag.data.Dataset.range(3).repeat()),
    "the end of a dataset": lambda: iter(ag.data.Dataset.range(0)).get_next(),
    "the size of a batch": lambda: ag.data.Dataset.range(3).batch(2.5),
    "array API version": lambda: ag.zeros([2]).__array_namespace__(api_version="1999.01"),
    "DLPack": lambda: ag.array_api.from_dlpack(3),
    "ragged": lambda: ag.RaggedTensor.from_row_splits([1, 2], [0, 5]),
    "sparse": lambda: ag.SparseTensor([[0]], [1, 2], [3]),
    "generator": lambda: ag.random.Generator.from_seed(1).normal("text"),
    "unknown argument": lambda: ag.add(1.0, 2.0, names="x"),
    "missing argument": lambda: ag.add(1.0),
    "arguments of a function": lambda: ag.function(lambda x, y: x)(1.0),
    "an error in a callback": lambda: ag.map_fn(helper, ag.zeros([2, 2]) + [[1, 2, 3]]),
}


@needs_311
@pytest.mark.parametrize("program", EAGER.values(), ids=EAGER)
def test_eager_errors_show_the_users_frames_only(program):
    with pytest.raises(Exception) as caught:
        program()
    assert own_frames(caught.value) == []
    assert traceback.extract_tb(caught.value.__traceback__)[-1].filename == __file__
    assert "During handling" not in "".join(traceback.format_exception(caught.value))


@needs_311
def test_tapes():
    x = ag.Variable(1.0)
    with ag.GradientTape() as tape:
        y = x * x
    tape.gradient(y, x)
    for ask in (
        lambda: tape.gradient(y, x), lambda: tape.gradient("text", x), lambda: tape.jacobian(y, x),
        lambda: tape.batch_jacobian(y, x), lambda: ag.GradientTape().gradient(y, "text"),
    ):  # fmt: skip
        with pytest.raises(Exception) as caught:
            ask()
        assert own_frames(caught.value) == []


@needs_311
def test_users_frames_under_ours_stay():
    def row(x):
        return helper(ag.reduce_sum(x) - ag.reduce_sum(x)) + [][3]

    with pytest.raises(IndexError) as caught:
        ag.map_fn(row, ag.zeros([2, 2]))
    assert own_frames(caught.value) == []
    assert [each.name for each in traceback.extract_tb(caught.value.__traceback__)][1:] == ["row"]


@needs_311
def test_what_python_shows_before_an_error():
    """Causes and contexts of ours are cleaned, too."""
    with pytest.raises(Exception) as caught:
        try:
            ag.zeros([2]) + ag.zeros([3])
        except ag.errors.InvalidArgumentError:
            ag.reshape(ag.zeros([2]), [3])
    assert caught.value.__context__ is not None and own_frames(caught.value) == []


@needs_311
def test_mistakes_of_ours_keep_their_frames(monkeypatch):
    from runtime.ops.linalg import matrix_products

    monkeypatch.setattr(matrix_products, "MATMUL", None)
    with pytest.raises(AttributeError) as caught:
        ag.linalg.matmul(ag.zeros([2, 2]), ag.zeros([2, 2]))
    assert own_frames(caught.value)


def test_the_switches_bring_them_back(monkeypatch):
    ag.debugging.disable_traceback_filtering()
    try:
        with pytest.raises(Exception) as caught:
            ag.zeros([2]) + ag.zeros([3])
    finally:
        ag.debugging.enable_traceback_filtering()
    assert len(own_frames(caught.value)) >= 2
    program = "import autograph as ag; ag.zeros([2]) + ag.zeros([3])"
    for full, wanted in (("full", True), ("", False)):
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, timeout=120,
            env={**os.environ, "AUTOGRAPH_TRACEBACKS": full},
        )  # fmt: skip
        assert ("dispatch.py" in done.stderr) is (wanted or sys.version_info < (3, 11))


def test_names_and_signatures_are_those_of_the_functions():
    assert ag.reduce_sum.__name__ == "reduce_sum" and ag.math.reduce_sum is ag.reduce_sum
    assert list(inspect.signature(ag.eye).parameters)[:2] == ["num_rows", "num_columns"]
    assert list(inspect.signature(ag.Variable.assign).parameters)[:2] == ["self", "value"]


@needs_311
def test_decorators_and_what_they_give():
    @ag.custom_gradient
    def custom(x):
        return x + ag.zeros([3]), lambda dy: dy

    @ag.recompute_grad
    def again(x):
        return x + ag.zeros([3])

    spec = ag.TensorSpec([None], ag.float32)
    for program in (
        lambda: custom(ag.zeros([2])), lambda: again(ag.zeros([2])),
        lambda: ag.function(3), lambda: ag.function(input_signature=[spec])(lambda x, y: x),
        lambda: ag.zeros([2]).assign([1.0, 2.0]),
    ):  # fmt: skip
        with pytest.raises(Exception) as caught:
            program()
        assert own_frames(caught.value) == []
