"""Warnings about slow programs: once for each place, with the right line, and never about what is fast."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import pytest

import autograph as ag
from runtime import performance
from runtime.engine import on_stack_replacement, wait_for_background
from runtime.graph.unrolled import unrolled_in
from runtime.ops import eager_loops

ALWAYS, NEVER = -1.0, float("inf")


@pytest.fixture(autouse=True)
def thresholds(monkeypatch):
    """Times count for nothing: what could be slow is slow, unless a test says otherwise."""
    performance.forget()

    def choose(seconds):
        for name in ("SLOW_COMPILATION", "SLOW_INTERPRETATION", "SLOW_CALL_OUTS"):
            monkeypatch.setattr(performance, name, seconds)
        monkeypatch.setattr(performance, "LARGE_PART_OF_CALL_OUTS", -1.0)
        monkeypatch.setattr(eager_loops, "MOST_SECONDS", NEVER)
        monkeypatch.setattr(eager_loops, "MANY", 2 * eager_loops.EVERY)
        monkeypatch.setattr(eager_loops, "_counts", {})

    choose(ALWAYS)
    yield SimpleNamespace(choose=choose, set=monkeypatch.setattr)
    performance.forget()


def warned(run, times=3):
    """The warnings that calls give, as (line relative to this file, text)."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(times):
            run()
    found = [each for each in caught if issubclass(each.category, ag.errors.PerformanceWarning)]
    assert all(each.filename == __file__ for each in found)
    return [(each.lineno, str(each.message)) for each in found]


def line(function, offset):
    return function.__code__.co_firstlineno + offset


def flat(text):
    return " ".join(text.split())


# --- loops that were unrolled -----------------------------------------------------------------------------------------


def unrolled(x):
    for _ in range(40):
        x = ag.sin(x) + ag.cos(x) * 0.5
    return x


def counted_in_python(x):
    trip = 0
    while trip < 40:
        x = ag.sin(x) + ag.cos(x) * 0.5
        trip += 1
    return x


def left_early(x):
    for _ in range(100):
        x = x * 0.9
        if x < 0.1:
            break
    return x


def inner_and_outer(x):
    for _ in range(3):
        for _ in range(30):
            x = ag.sin(x) * 0.5
    return x


def in_a_staged_loop(x):
    y = 0
    for i in ag.range(3):
        for _ in range(50):
            x = ag.sin(x) * 0.5
        y = y + x  # becomes a tensor: the body is traced again
    return x + y


@pytest.mark.parametrize(
    ("program", "offset", "source", "trips", "operations"),
    [
        (unrolled, 1, "for _ in range(40):", 40, 160),
        (counted_in_python, 2, "while trip < 40:", 40, 160),
        (left_early, 1, "for _ in range(100):", 100, None),
        (inner_and_outer, 2, "for _ in range(30):", 90, 180),
        (in_a_staged_loop, 3, "for _ in range(50):", 50, 100),
    ],
)
@pytest.mark.parametrize("jit", [True, None, False])
def test_an_unrolled_loop_is_named_once(program, offset, source, trips, operations, jit):
    f = ag.function(program, jit_compile=jit)
    ((found, text),) = warned(lambda: f(ag.constant(0.5)))
    assert found == line(program, offset)
    assert f"'{program.__name__}' has taken" in text
    assert f"{__file__}:{found}, in {program.__name__}\n      {source}\n" in text
    assert f"\n  cause: the loop ran {trips} times while the function was traced" in text
    assert operations is None or f"left {operations} operations" in text
    assert "\n  fix: loop over `ag.range(n)`" in text
    assert not warned(lambda: f(ag.constant([0.5, 0.25][:1])[0]))  # nor for another trace of it
    assert wait_for_background(60)


def test_small_and_quick_functions_are_quiet(thresholds):
    def small(x):
        for _ in range(20):
            x = ag.sin(x) * 0.5
        return x

    assert not warned(lambda: ag.function(small, jit_compile=True)(ag.constant(0.5)))

    def part_of_more(x):  # a fifth of the operations are copies
        for _ in range(40):
            x = ag.sin(x) * 0.5
        y = ag.cos(x)
        for i in ag.range(2):
            if i > 0:
                y = unrolled(y)
            else:
                y = unrolled(y) * 2.0
        return y

    ((found, _),) = warned(lambda: ag.function(part_of_more)(ag.constant(0.5)))
    assert found == line(unrolled, 1)
    thresholds.choose(NEVER)
    performance.forget()
    assert not warned(lambda: ag.function(unrolled, jit_compile=True)(ag.constant(0.5)))


def test_a_staged_loop_is_quiet():
    @ag.function(jit_compile=True)
    def staged(x):
        for _ in ag.range(100):
            x = ag.sin(x) + ag.cos(x) * 0.5
        return x

    assert not warned(lambda: staged(ag.constant(0.5)))


def test_time_of_compiling_counts(thresholds):
    f = ag.function(unrolled, jit_compile=True)
    concrete = f.get_concrete_function(ag.constant(0.5))
    concrete.trace_seconds = 0.25
    thresholds.choose(0.5)
    concrete.function.executable.compile()
    concrete.function.executable.compile_seconds = 0.125
    assert not warned(lambda: concrete(ag.constant(0.5)), 1)
    with ag.GradientTape() as tape:
        x = ag.Variable(0.5)
        y = concrete.function([x.read_value()])[0]
    tape.gradient(y, x)
    (gradient,) = concrete.function.gradients()
    gradient.forward.executable.compile_seconds = gradient.backward.executable.compile_seconds = 0.25
    assert len(warned(lambda: concrete.call_flat([ag.constant(0.5)]))) == 1


def test_a_function_in_another_warns_for_that_one():
    inner = ag.function(unrolled)
    outer = ag.function(lambda x: inner(x) * 2.0)
    ((found, text),) = warned(lambda: outer(ag.constant(0.5)))
    assert found == line(unrolled, 1)
    assert "in unrolled" in text


def test_explain_counts_the_copies_of_the_last_trace():
    text = flat(ag.function(in_a_staged_loop).explain(ag.constant(0.5)))
    assert "unrolled while tracing: 50 iterations, which left 100 operations" in text
    text = flat(ag.function(left_early).explain(ag.constant(0.5)))
    assert "unrolled while tracing: 100 iterations" in text


def test_notes_of_dropped_traces_are_dropped():
    concrete = ag.function(in_a_staged_loop).get_concrete_function(ag.constant(0.5))
    (note,) = unrolled_in(concrete.graph)
    assert (note.trips, note.times, note.operations, note.copies) == (50, 1, 100, 98)


# --- filters ----------------------------------------------------------------------------------------------------------


def test_filters_apply():
    f = ag.function(unrolled, jit_compile=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", category=ag.errors.PerformanceWarning)
        f(ag.constant(0.5))
    assert not caught


def test_a_warning_that_is_an_error_is_raised_once():
    f = ag.function(unrolled, jit_compile=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ag.errors.PerformanceWarning, match="was unrolled"):
            f(ag.constant(0.5))
        assert float(f(ag.constant(0.5))) == pytest.approx(float(unrolled(ag.constant(0.5))), rel=1e-5)


def test_retracing_is_such_a_warning():
    f = ag.function(lambda x, n: x * n)
    with pytest.warns(ag.errors.PerformanceWarning, match="has been traced 8 times") as caught:
        for n in range(8):
            f(ag.constant(1.0), n)
    assert [each.category for each in caught] == [ag.errors.RetracingWarning]


# --- calls of Python --------------------------------------------------------------------------------------------------


def spectral(x, n):
    for _ in ag.range(n):
        values = ag.linalg.svd(x)[0]
        x = x * 0.5 + ag.reduce_max(values) * 0.1
    return x


def test_calls_of_python_are_named_once():
    f = ag.function(spectral, jit_compile=True)
    ((found, text),) = warned(lambda: f(ag.eye(3), ag.constant(20)), 6)
    assert found == line(spectral, 2)
    assert "'spectral' has spent" in text and "20 calls for op 'svd'" in text
    assert "values = ag.linalg.svd(x)[0]" in text
    assert "\n  cause: op 'svd' has no native code" in text and "\n  fix: do it before the loop" in text


def test_calls_of_python_that_take_little_are_quiet(thresholds):
    thresholds.set(performance, "LARGE_PART_OF_CALL_OUTS", 2.0)
    f = ag.function(spectral, jit_compile=True)
    assert not warned(lambda: f(ag.eye(3), ag.constant(20)))
    thresholds.choose(NEVER)
    assert not warned(lambda: f(ag.eye(3), ag.constant(20)))


def test_calls_of_python_that_are_not_made_are_quiet(thresholds):
    @ag.function(jit_compile=True)
    def f(x):
        for _ in ag.range(3):
            if x > 100.0:
                ag.print(x)
            x = x + 1.0
        return x

    thresholds.set(performance, "SLOW_CALL_OUTS", 0.0)
    assert not warned(lambda: f(ag.constant(0.5)))


# --- loops on the interpreter -----------------------------------------------------------------------------------------


def texts(n):
    s = ag.constant("")
    for i in ag.range(n):
        s = ag.strings.substr(ag.strings.join([s, ag.as_string(i)]), 0, 5)
    return s


@pytest.mark.parametrize("jit", [True, None])
def test_an_interpreted_loop_is_named_once(jit):
    f = ag.function(texts, jit_compile=jit)
    ((found, text),) = warned(lambda: f(ag.constant(20)))
    assert found == line(texts, 2)
    assert "the interpreter has run this loop for" in text and "for i in ag.range(n):" in text
    assert f"cause: op 'as_string' can't be compiled, at {__file__}:{line(texts, 3)}, in texts" in text
    assert "\n  fix: do that before the loop or after it" in text


def test_loops_that_can_be_compiled_are_quiet(thresholds):
    f = ag.function(lambda x, n: _doubled(x, n))
    assert not warned(lambda: f(ag.constant(1.0), ag.constant(5)))
    assert not warned(lambda: ag.function(texts, jit_compile=False)(ag.constant(20)))  # as was asked for
    thresholds.choose(NEVER)
    assert not warned(lambda: ag.function(texts)(ag.constant(20)))


def _doubled(x, n):
    z = ag.complex(x, x)
    for _ in ag.range(n):
        z = z * z * 0.5
    return ag.math.real(z)


def test_the_time_of_native_loops_in_an_interpreted_one_does_not_count(monkeypatch):
    clock = SimpleNamespace(now=0.0)

    def read():
        return clock.now

    monkeypatch.setattr(on_stack_replacement, "time", SimpleNamespace(thread_time=read, perf_counter=read))

    def native(operands):
        clock.now += 8.0
        return operands

    outer, inner = [], []
    loops = {
        "outer": SimpleNamespace(call=None, refused=True, spent=0.0, ran=outer.append),
        "inner": SimpleNamespace(call=native, refused=False, spent=0.0, ran=inner.append),
    }
    tier_up = on_stack_replacement.TierUp(lambda node: loops[node.name])
    for _ in range(2):
        tier_up.enter(SimpleNamespace(name="outer"))
        clock.now += 1.0
        for _ in range(3):
            tier_up.enter(SimpleNamespace(name="inner"))
            assert tier_up.finish([1]) == [1]
            tier_up.leave()
        clock.now += 0.5
        tier_up.leave()
    assert outer == [1.5, 1.5] and not inner
    assert loops["outer"].spent == 25.5


# --- eager loops ------------------------------------------------------------------------------------------------------


def over_rows(t):
    total = 0.0
    for v in t:
        total += float(v)
    return total


def by_index(t):
    total = 0.0
    for i in range(len(t)):
        total += float(t[i])
    return total


@pytest.mark.parametrize(("program", "offset"), [(over_rows, 2), (by_index, 3)])
def test_an_eager_loop_over_elements_is_named_once(program, offset):
    t = ag.ones([3 * eager_loops.EVERY])
    found = []
    for line_, text in warned(lambda: program(t)):
        found.append(line_)
        assert "elements or slices out of tensors, one by one, in eager code" in text
        assert f", in {program.__name__}\n" in text
        assert "decorate it with `@ag.function`" in text
    assert found == [line(program, offset)]


def test_eager_code_that_takes_few_elements_is_quiet(thresholds):
    t = ag.ones([eager_loops.EVERY // 4])
    assert not warned(lambda: (t[0], t[1:], over_rows(t)), 1)
    thresholds.set(eager_loops, "MOST_SECONDS", 0.0)  # elements that are taken now and then
    assert not warned(lambda: by_index(ag.ones([3 * eager_loops.EVERY])))


def test_traced_loops_over_elements_are_quiet():
    t = ag.ones([3 * eager_loops.EVERY])
    assert not warned(lambda: ag.function(over_elements)(t))

    ag.config.run_functions_eagerly(True)
    try:
        assert not warned(lambda: ag.function(over_elements)(t))
    finally:
        ag.config.run_functions_eagerly(False)


def over_elements(t):
    total = 0.0
    for v in t:
        total += v
    return total
