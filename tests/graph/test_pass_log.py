"""What passes do is recorded, by the pipelines themselves, for whoever asks; and every rewrite has a name in a list."""

import re
from pathlib import Path

import autograph as ag
from runtime.engine.partition import parts
from runtime.graph.passes import pipeline
from runtime.pass_log import recorded, run_pass

F = ag.TensorSpec([], ag.float32)


def program(x):
    ag.exp(x - 1.0)
    y = ag.exp(x)
    z = ag.exp(x)
    return -(-(y + z)) + ag.sqrt(ag.constant(4.0)) * x


def test_each_pass_of_a_trace_is_a_step():
    with recorded() as steps:
        graph = ag.function(program).get_concrete_function(F).graph
    steps = [step for step in steps if step.program is graph]
    names = [step.name for step in steps]
    assert names[:3] == ["random streams", "low bits", "devices"]
    assert {"constant folding", "rules", "common subexpressions"} <= {s.name for s in steps if s.is_change}
    for before, after in zip(steps, steps[1:]):
        assert before.after == after.before, "a step starts where the one before it ended"
    assert steps[0].before.count(" = exp(") == 3 and steps[-1].after.count(" = exp(") == 1


def test_values_keep_their_names_through_a_recording():
    def f(x):
        ag.exp(x)
        return ag.exp(x * 2.0)

    with recorded() as steps:
        ag.function(f).get_concrete_function(F)
    (change,) = [step for step in steps if step.is_change]
    lost = set(change.before.splitlines()) - set(change.after.splitlines())
    assert {line.strip() for line in lost} == {"%exp: float32[] = exp(%x)"}
    assert "%exp_1" in change.after


def test_nothing_is_printed_unless_somebody_records():
    def printer(program, names):
        raise AssertionError("printed")

    assert run_pass("graph", "nothing", lambda items: items.append(1), [], printer) is None


def test_each_block_has_its_own_steps():
    def step(name):
        run_pass("kernel", name, lambda items: items.append(name), [], lambda items, names: str(items))

    with recorded() as steps:
        step("first")
        step("second")
        with recorded() as inner:
            step("inner")
    assert [(s.name, s.after) for s in steps] == [("first", "['first']"), ("second", "['second']")]
    assert [s.name for s in inner] == ["inner"]


def _changes(function, *specs):
    with recorded() as steps:
        concrete = ag.function(function, jit_compile=False).get_concrete_function(*specs)
        for native, part in parts(concrete.function.executable.graph):
            if native:
                from runtime.codegen.lower.lower_graph import lower

                lower(part)
    return {step.name for step in steps if step.is_change}


def test_rewrites_outside_of_the_pipeline_are_steps():
    variable = ag.Variable(1.0)

    @ag.custom_gradient
    def doubled(x):
        return x * 2.0, lambda dy: dy

    def commits(x):
        variable.assign(x)
        ag.debugging.assert_greater(x, 0.0)
        return x

    def julia(z):
        for _ in ag.range(10):
            z = z * z + 0.5
        return z

    def unrolled(x):
        for t in range(1, 60):
            x = ag.tanh(x * 0.5) + x[t] * float(t)
        return x

    scale = 3.0

    def recursive(n, x):
        def power(n):
            if n > 0:
                return power(n - 1) * x * scale
            return x

        return power(n)

    assert "random streams" in _changes(lambda: ag.random.uniform([3]))
    assert "commits" in _changes(commits, F)
    assert "custom gradients" in _changes(lambda x: doubled(x), F)
    assert "complex parts" in _changes(julia, ag.TensorSpec([4], ag.complex64))
    assert "repetitions" in _changes(unrolled, ag.TensorSpec([64], ag.float32))
    assert "recursive captures" in _changes(recursive, ag.TensorSpec([], ag.int32), F)


def test_passes_run_through_the_lists_only():
    """A rewrite that is called by name elsewhere would be missing in dumps (`autodiff` may: it builds)."""
    root = Path(pipeline.__file__).resolve().parents[3]
    names = [change.__name__ for change in pipeline.REWRITES.values()]
    names += [run.__name__ for _, _, run in (*pipeline.PASSES, *pipeline.REGION_PASSES) if run.__name__ != "run"]
    calls = re.compile(rf"\b({'|'.join(names)})\(")
    allowed = {"runtime/engine/explain.py"}  # only looks for loops
    found = set()
    for folder in ("autograph", "runtime/engine", "runtime/codegen", "runtime/graph"):
        for path in (root / folder).rglob("*.py"):
            relative = str(path.relative_to(root))
            if not relative.startswith("runtime/graph/passes/"):
                found |= {relative for line in path.read_text(encoding="utf-8").splitlines()
                          if calls.search(line) and not line.lstrip().startswith("def ")}  # fmt: skip
    assert found <= allowed
