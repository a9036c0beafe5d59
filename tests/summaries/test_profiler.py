"""`ag.profiler`: files of spans, read as Perfetto reads them."""

import gzip
import json
import threading
import time

import numpy as np
import pytest

import autograph as ag
from runtime import profiling
from runtime.context import eagerly
from runtime.engine import background
from runtime.ops.strings import wire


def read(path):
    """The complete events of a file, with the thread's name in place of its number."""
    content = path.read_bytes()
    document = json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)
    events = document["traceEvents"]
    assert {event["ph"] for event in events} <= {"X", "M"}
    assert len({event["pid"] for event in events}) == 1
    threads = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    spans = [event for event in events if event["ph"] == "X"]
    for event in spans:
        assert {"name", "cat", "ts", "dur", "pid", "tid", "args"} <= event.keys()
        assert event["ts"] >= 0
        assert event["dur"] >= 0
        event["thread"] = threads[event["tid"]]
    assert [e["ts"] for e in spans] == sorted(e["ts"] for e in spans)
    return spans


def read_plane(path):
    """The host, the begin and the spans of a file in TensorFlow's format."""

    def parts(message):
        found = {}
        for number, kind, value in wire.fields(message):
            if kind != wire.BYTES:
                value = wire.signed(value) if kind == wire.VARINT else np.frombuffer(value)[0]
            found.setdefault(number, []).append(value)
        return found

    space = parts(path.read_bytes())
    (plane,) = map(parts, space[1])
    assert plane[2] == [b"/host:CPU"]
    events, stats = (
        {entry[1][0]: parts(entry[2][0])[2][0].decode() for entry in map(parts, plane[field])} for field in (4, 5)
    )
    spans = []
    for line in map(parts, plane[3]):
        for event in map(parts, line[4]):
            values = [parts(stat) for stat in event[4]]
            arguments = {stats[stat.pop(1)[0]]: next(iter(stat.values()))[0] for stat in values}
            arguments = {name: v.decode() if isinstance(v, bytes) else v for name, v in arguments.items()}
            category = arguments.pop("category")
            spans.append((line[2][0].decode(), events[event[1][0]], category, event[2][0], event[3][0], arguments))
    return space[4], parts(plane[3][0])[3][0], spans


def named(spans, name):
    return [event for event in spans if event["name"] == name]


def is_inside(inner, outer):
    # Microseconds with three digits behind the point are sums of nanoseconds, but for the float's last bits.
    ends = inner["ts"] + inner["dur"], outer["ts"] + outer["dur"]
    return inner["tid"] == outer["tid"] and outer["ts"] <= inner["ts"] and ends[0] <= ends[1] + 1e-6


def assert_nested(spans):
    """On each thread spans contain each other or are apart, as the trace viewers demand."""
    for tid in {event["tid"] for event in spans}:
        open_ = []
        for event in [e for e in spans if e["tid"] == tid]:
            while open_ and open_[-1]["ts"] + open_[-1]["dur"] <= event["ts"] + 1e-6:
                open_.pop()
            assert not open_ or is_inside(event, open_[-1])
            open_.append(event)


def a_function(**options):
    @ag.function(**options)
    def my_model(x):
        while ag.reduce_sum(x) < 100.0:
            x = x * 2.0
        return x

    return my_model


@pytest.mark.usefixtures("empty_cache")
def test_a_call_shows_what_it_consists_of(tmp_path):
    background.worker.wait()  # for what other tests have left to compile
    my_model, x = a_function(jit_compile=True), ag.ones([3])
    with ag.profiler.trace(tmp_path / "trace.json"):
        y = my_model(x)
        my_model(x)
    assert y.numpy().tolist() == [64.0, 64.0, 64.0]
    spans = read(tmp_path / "trace.json")
    assert_nested(spans)
    first, second = named(spans, "call my_model")
    (traced,) = named(spans, "trace my_model")
    (compiled,) = named(spans, "compile my_model")
    kernels = named(spans, "my_model")
    (convert,) = [e for e in spans if e["cat"] == "convert" and e["name"].endswith("my_model")]
    assert all(is_inside(each, first) for each in (traced, compiled, convert))
    assert not is_inside(second, first)
    assert [e["cat"] for e in kernels] == ["kernel", "kernel"]
    assert is_inside(kernels[0], first)
    assert is_inside(kernels[1], second)
    assert kernels[0]["args"]["kernel"].startswith("k_")
    passes = {e["name"] for e in spans if e["cat"] == "pass"}
    assert {"graph pass: constant folding", "kernel pass: parallelisation"} <= passes
    assert {e["thread"] for e in spans if "my_model" in e["name"]} == {threading.current_thread().name}


@pytest.mark.usefixtures("empty_cache")
def test_the_compiler_s_thread_has_its_name(tmp_path):
    my_model = a_function()
    with ag.profiler.trace(tmp_path / "trace.json.gz"):
        my_model(ag.ones([4]))
        assert background.worker.wait(60.0)
        my_model(ag.ones([4]))
    spans = read(tmp_path / "trace.json.gz")
    assert_nested(spans)
    assert {e["thread"] for e in named(spans, "compile my_model")} >= {"autograph-compiler"}
    assert named(spans, "interpret my_model")
    assert [e["cat"] for e in named(spans, "my_model")] == ["kernel"]


def test_gradients_copies_and_elements_are_shown(tmp_path):
    @ag.function(jit_compile=True)
    def square(x):
        return ag.reduce_sum(x * x)

    x = ag.ones([3])
    with ag.profiler.trace(tmp_path / "trace.json"):
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = square(x)
        tape.gradient(y, x).numpy()
        square(ag.constant(np.ones((4, 2), np.float32).T[:, :3]))
        list(ag.data.Dataset.range(2))
        ag.exp(x)
    spans = read(tmp_path / "trace.json")
    assert_nested(spans)
    for name in ("differentiate square", "gradient of square", "copy to NumPy", "next element", "Exp"):
        assert named(spans, name), name
    assert named(spans, "copy to NumPy")[0]["args"] == {"bytes": 12}


def test_steps_of_the_user_s_own(tmp_path):
    with ag.profiler.experimental.Profile(tmp_path):
        for step in range(2):
            with ag.profiler.experimental.Trace("train", step_num=step, _r=1) as block:
                block.set_metadata(loss=0.5, what=ag.float32)
    (path,) = tmp_path.glob("plugins/profile/*/*.trace.json.gz")
    steps = named(read(path), "train")
    assert [e["args"] for e in steps] == [
        {"step_num": step, "_r": 1, "loss": 0.5, "what": str(ag.float32)} for step in range(2)
    ]


def test_start_and_stop(tmp_path):
    profiler = ag.profiler.experimental
    with pytest.raises(ag.errors.UnavailableError, match="No profiler is running"):
        profiler.stop()
    profiler.start(tmp_path)
    try:
        with pytest.raises(ag.errors.AlreadyExistsError, match="Another profiler is running"):
            profiler.start(tmp_path)
    finally:
        profiler.stop()
    profiler.start(str(tmp_path), options=profiler.ProfilerOptions(host_tracer_level=3))
    profiler.stop()
    profiler.start(tmp_path)
    profiler.stop(save=False)
    assert len(list(tmp_path.glob("plugins/profile/*/*.trace.json.gz"))) == 2
    assert len(list(tmp_path.glob("plugins/profile/*/*.xplane.pb"))) == 2


def test_both_files_of_a_profile_say_the_same(tmp_path):
    my_model = a_function(jit_compile=True)
    began = time.time_ns()
    with ag.profiler.experimental.Profile(tmp_path):
        with ag.profiler.experimental.Trace("train", step_num=-3, loss=0.5, large=1 << 70):
            my_model(ag.ones([4])).numpy()
    (path,) = tmp_path.glob("plugins/profile/*/*.xplane.pb")
    (other,) = tmp_path.glob("plugins/profile/*/*.trace.json.gz")
    (host,), start, spans = read_plane(path)
    assert began <= start <= time.time_ns()
    assert path.name == f"{host.decode()}.xplane.pb"
    expected = [(e["thread"], e["name"], e["cat"], e["ts"] * 1e6, e["dur"] * 1e6, e["args"]) for e in read(other)]
    assert len(spans) == len(expected) > 10
    for found, wanted in zip(sorted(spans, key=lambda e: (e[3], -e[4])), expected):
        assert found[:3] == wanted[:3]
        np.testing.assert_allclose(found[3:5], wanted[3:5], rtol=0, atol=2000)  # picoseconds, of whole nanoseconds
    (arguments,) = [each[5] for each in spans if each[1] == "train"]
    assert arguments == {"step_num": -3, "loss": 0.5, "large": str(1 << 70)}


def test_levels_leave_out_what_is_fine(tmp_path):
    categories = []
    for level in (0, 1, 2):
        my_model = a_function(jit_compile=True)
        with ag.profiler.trace(tmp_path / "trace.json", ag.profiler.experimental.ProfilerOptions(level)):
            my_model(ag.ones([2])).numpy()
        categories.append({e["cat"] for e in read(tmp_path / "trace.json")})
    assert categories[0] == set()
    assert {"call", "trace", "kernel"} <= categories[1]
    assert not categories[1] & profiling.FINE
    assert {"pass", "copy"} <= categories[2]


def test_python_calls(tmp_path):
    def helper():
        return 1

    def outer():
        return helper()

    options = ag.profiler.experimental.ProfilerOptions(python_tracer_level=1)
    with ag.profiler.trace(tmp_path / "trace.json", options):
        outer()
        thread = threading.Thread(target=helper, name="other")
        thread.start()
        thread.join()
    spans = read(tmp_path / "trace.json")
    assert_nested(spans)
    (call,) = named(spans, "outer")
    one, two = named(spans, "helper")
    assert is_inside(one, call)
    assert two["thread"] == "other"
    assert not [e for e in spans if e["cat"] == "python" and "autograph/summaries" in e["args"]["file"]]
    assert helper() == 1
    assert read(tmp_path / "trace.json") == spans


def test_what_fails_is_written_too(tmp_path):
    with pytest.raises(ZeroDivisionError), ag.profiler.trace(tmp_path / "trace.json"):
        with ag.profiler.experimental.Trace("a block"):
            1 / 0
    assert named(read(tmp_path / "trace.json"), "a block")
    assert not profiling.recording


def test_spans_that_are_open_at_the_end_are_cut(tmp_path):
    begun, done = threading.Event(), threading.Event()

    def work():
        with ag.profiler.experimental.Trace("long"):
            begun.set()
            done.wait(60)

    thread = threading.Thread(target=work)
    with ag.profiler.trace(tmp_path / "trace.json"):
        thread.start()
        assert begun.wait(60)
    done.set()
    thread.join()
    (long,) = named(read(tmp_path / "trace.json"), "long")
    assert long["args"] == {"unfinished": True}


def test_blocks_nest_and_each_has_its_own_part(tmp_path):
    with ag.profiler.trace(tmp_path / "outer.json"):
        ag.exp(1.0)
        with ag.profiler.trace(tmp_path / "inner.json"):
            ag.sin(1.0)
    inner, outer = read(tmp_path / "inner.json"), read(tmp_path / "outer.json")
    assert named(inner, "Sin")
    assert not named(inner, "Exp")
    assert named(outer, "Sin")
    assert named(outer, "Exp")


def test_calls_by_machine_code_wait_until_the_profile_ends(tmp_path):
    my_model, x = a_function(jit_compile=True), ag.ones([3])
    for _ in range(10):
        my_model(x)
    before = int(eagerly[0])
    with ag.profiler.trace(tmp_path / "trace.json"):
        assert int(eagerly[0]) == before + 1
        for _ in range(3):
            my_model(x)
    assert int(eagerly[0]) == before
    assert len(named(read(tmp_path / "trace.json"), "call my_model")) == 3


def test_too_many_events_are_counted(monkeypatch):
    monkeypatch.setattr(profiling, "MOST_EVENTS", 2)
    profile = profiling.start()
    for _ in range(5):
        ag.exp(1.0)
    profiling.stop(profile)
    assert len(profile.events) == 2
    assert profile.dropped >= 3


def test_seconds_count_nested_spans_once():
    profile = profiling.start()
    profiling.stop(profile)
    for start, duration, thread in ((0, 10, 1), (2, 3, 1), (20, 5, 1), (0, 7, 2)):
        event = profiling.Event(profile.began + start, duration, thread, "op", "x", {})
        profile.add(event, "thread")
    assert profile.seconds("op") == pytest.approx(22e-9)
