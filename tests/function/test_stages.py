"""`ConcreteFunction.as_text(stage)`: the program at each stage of its compilation."""

import gc
import re
import sys
from random import Random

import pytest

import autograph as ag
from autograph.cli import _STAGES
from runtime.engine import kernel_counters, stages
from runtime.engine.stages import GRADIENTS, STAGES

F = ag.TensorSpec([], ag.float32)


@ag.function
def halved(x):
    while x > 1.0:
        x = x * 0.5
    return -(-x)


def test_the_stages_are_those_of_the_command_line():
    assert ["graph", *_STAGES] == list(STAGES)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("gradient", [None, *GRADIENTS])
def test_every_stage_of_a_program_and_its_gradient(stage, gradient):
    concrete = halved.get_concrete_function(F)
    before = kernel_counters()
    text, again = [concrete.as_text(stage, gradient) for _ in range(2)]
    marks = {
        "graph": "graph ",
        "passes": "# before the passes",
        "llvm": "define ",
        "optimized-llvm": "define ",
        "asm": "kernel",
        "ptx": ".visible .entry kernel(",
    }
    assert marks.get(stage, "def kernel(") in text
    assert text == again, "looking changes nothing"
    assert kernel_counters() == before, "what is shown isn't kept"
    assert halved.experimental_get_tracing_count() == 1
    assert not concrete.function.gradients(), "`explain` shows those of calls alone"


def test_the_graph_is_the_default():
    concrete = halved.get_concrete_function(F)
    assert concrete.as_text() == concrete.graph.as_text(spans=False) == concrete.as_text("graph")
    assert concrete.as_text("passes").endswith(f"return {concrete.as_text().rpartition('return ')[2]}")


def test_what_can_not_be_shown():
    concrete = halved.get_concrete_function(F)
    with pytest.raises(ValueError, match="no stage 'hlo'; the stages are graph, passes, kernel"):
        concrete.as_text("hlo")
    with pytest.raises(ValueError, match="gradient must be None or one of forward, backward, not 'reverse'"):
        concrete.as_text("kernel", gradient="reverse")
    texts = ag.function(lambda x: ag.strings.length(x)).get_concrete_function(ag.TensorSpec([], ag.string))
    with pytest.raises(ag.errors.UnimplementedError, match="has no native kernel. On the interpreter: string_length"):
        texts.as_text("kernel")
    with pytest.raises(ValueError, match="has no gradient"):
        texts.as_text("graph", gradient="backward")


def test_passes_are_those_of_a_new_trace():
    runs = []

    @ag.function
    def f(x):
        runs.append(None)
        return x * 1.0

    concrete = f.get_concrete_function(F)
    assert "# after rules" in concrete.as_text("passes")
    assert len(runs) == 2 and f.experimental_get_tracing_count() == 1
    assert f.get_concrete_function(F) is concrete
    del f
    gc.collect()
    with pytest.raises(ReferenceError, match="the function that made the trace 'f' is gone"):
        concrete.as_text("passes")


def test_passes_of_functions_of_variables_objects_and_python_values():
    class Model(ag.Module):
        def __init__(self):
            self.weight = None

        @ag.function
        def __call__(self, x, factor, by=None):
            if self.weight is None:
                self.weight = ag.Variable(2.0)
            by.assign_add(1.0)
            return self.weight * x["a"] * factor * 1.0

    model, by = Model(), ag.Variable(1.0)
    concrete = model.__call__.get_concrete_function({"a": F}, 3, by=by)
    text = concrete.as_text("passes")
    assert "# after rules" in text and "value=3" in text
    assert (by.numpy(), model.weight.numpy()) == (1.0, 2.0), "nothing runs"
    assert "def kernel(" in concrete.as_text("kernel", gradient="backward")

    class Scale:
        factor = 2.0

    scale = Scale()
    concrete = ag.function(lambda x, scale: x * scale.factor).get_concrete_function(F, scale)
    del scale
    gc.collect()
    with pytest.raises(ReferenceError, match="is gone"):
        concrete.as_text("passes")


def test_functions_traced_on_the_way_are_left_out():
    @ag.function
    def inner(x):
        return x * 1.0

    @ag.function
    def outer(x):
        return inner(x) - 0.5

    text = outer.get_concrete_function(F).as_text("passes")
    assert "graph outer" in text and "graph inner" not in text


def shrink(x, rate):
    while ag.reduce_max(x) > 1.0:
        x = x * (1.0 - rate)
    return x


def damped(x):
    while x > 1.0:
        x = ag.sin(x) * 0.5
    return x


def counted(x, n):
    for _ in ag.range(n):
        for _ in ag.range(n):
            x = ag.tanh(x)
    return x


# function, specs, gradient, the passes that change its kernel, a line that the last of them makes
KERNEL_PASSES = [
    (shrink, [([1000], "f"), ([], "f")], None, ["hoisting", "interrupt polls"], "ticks = ticks + "),
    (
        shrink,
        [([1000], "f"), ([], "f")],
        "backward",
        ["hoisting", "interrupt polls"],
        "ticks = ticks + ",
    ),
    (counted, [([None], "f"), ([], "i")], None, ["hoisting", "strip-mining", "copy coalescing"], "x_1, a = a, x_1"),
    (ag.nn.softmax, [([None, 64], "f")], None, ["loop fusion", "scalar replacement"], " = max_1"),
    (lambda x: ag.tanh(x) + 1.0, [([1 << 20], "f")], None, ["parallelisation"], "lib.in_threads("),
    (damped, [([], "f")], "forward", ["strip-mining"], "ticks = ticks + "),
]


@pytest.mark.parametrize(("function", "specs", "gradient", "names", "line"), KERNEL_PASSES)
def test_kernel_passes(function, specs, gradient, names, line):
    dtypes = {"f": ag.float32, "i": ag.int32}
    specs = [ag.TensorSpec(shape, dtypes[kind]) for shape, kind in specs]
    concrete = ag.function(function).get_concrete_function(*specs)
    text = concrete.as_text("kernel-passes", gradient)
    passes, kernel = text.split("\n\n# the kernel\n")
    assert kernel == concrete.as_text("kernel", gradient)
    assert re.findall(r"^# after (.*)$", passes, re.MULTILINE) == names
    assert [made for made in passes.rpartition("# after")[2].splitlines() if made.startswith("+ ") and line in made]
    made = [each[2:].strip() for each in passes.rpartition("# after")[2].splitlines() if each.startswith("+ ")]
    assert {each for each in made if "fail(" not in each} <= {each.strip() for each in kernel.splitlines()}


def _texts(seed):
    random = Random(seed)
    before = [random.choice("abcdefghij") for _ in range(random.randrange(12))]
    after = [line for line in before if random.random() < 0.8]
    for _ in range(random.randrange(4)):
        after.insert(random.randrange(len(after) + 1), random.choice("abcdexyz"))
    return before, after


def test_marked_lines_give_both_texts():
    for before, after in map(_texts, range(300)):
        lines = stages.marked("\n".join(before), "\n".join(after)).splitlines()
        assert [line[2:] for line in lines if line[0] in " -"] == before
        assert [line[2:] for line in lines if line[0] in " +"] == after
    text = stages.marked("a\nx\nb\nc", "a\nb\nc\ny")
    assert text.splitlines() == ["  a", "- x", "  b", "  c", "+ y"]


def test_long_equal_stretches_are_shortened():
    same = [f"line {k}" for k in range(100)]
    text = stages.marked("\n".join(["x", *same]), "\n".join([*same, "y"]))
    assert text.splitlines() == [
        "- x", *[f"  {line}" for line in same[:4]], "  ... 92 lines", *[f"  {line}" for line in same[-4:]], "+ y",
    ]  # fmt: skip


def test_comparing_texts_grows_as_they_do():
    """Lines that move, and lines that are there many times: difflib alone would take the square of their number."""

    def calls(count):
        before = [f"line {k // 2 if k % 2 else 'return'}" for k in range(count)]
        after = [line for k, line in enumerate(before) if k % 7]
        made = 0

        def count_call(frame, event, argument):
            nonlocal made
            made += event in ("call", "c_call")

        sys.setprofile(count_call)
        try:
            stages.marked("\n".join(before), "\n".join(after))
        finally:
            sys.setprofile(None)
        return made

    assert calls(8000) < 2.5 * calls(4000)
