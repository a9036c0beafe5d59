"""Launches that nobody waits for: what they leave is right, whoever asks for it, and whatever goes meanwhile.

The stand-in for the driver (`driver.c`) runs them as late as it may."""

from __future__ import annotations

import gc
import io
import pickle
import re
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest

import autograph as ag
from runtime import device, errors, profiling
from runtime.codegen.device import entry
from runtime.gpu import cuda, cuda_driver
from runtime.gpu.dlpack import capsule, taken
from runtime.gpu.interface import Shape
from runtime.tensor import eager
from tests.device.pretended import Pretended
from tests.device.test_cuda_driver import VECTOR, _process, driver

__all__ = ["driver"]  # the fixture


def doubled(x: Any) -> Any:
    return x * 2.0


def started(function: Any, *given: Any) -> Any:
    """A compiled function that has run: later calls find the memory that launches share as they expect it."""
    compiled = ag.function(function, jit_compile=True)
    compiled(*given).numpy()
    return compiled


def test_a_call_does_not_wait(driver: Pretended) -> None:
    x = ag.constant(VECTOR).gpu()
    f = started(doubled, x)
    ran = len(driver.launches)
    y = f(x)
    z = f(f(y))
    assert z.shape == x.shape and z.device.endswith("GPU:0")
    assert driver["launches"] == ran + 3 and len(driver.launches) == ran
    np.testing.assert_array_equal(z.numpy(), 8 * VECTOR)
    assert len(driver.launches) == ran + 3
    np.testing.assert_array_equal(y.numpy(), 2 * VECTOR)


def prepared(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The positions of the arguments that change, for each launch that is prepared."""
    found: list[Any] = []
    prepare = cuda.Cuda.prepare

    def noted(self: Any, kernel: Any, arguments: Any, changing: Any, shape: Any, meet: bool) -> Any:
        found.append(changing)
        return prepare(self, kernel, arguments, changing, shape, meet)

    monkeypatch.setattr(cuda.Cuda, "prepare", noted)
    return found


def test_a_launch_is_prepared_once_for_a_shape(driver: Pretended, monkeypatch: pytest.MonkeyPatch) -> None:
    found = prepared(monkeypatch)

    @ag.function(input_signature=[ag.TensorSpec([None]), ag.TensorSpec([], ag.int32), ag.TensorSpec([])])
    def f(x: Any, n: Any, rate: Any) -> Any:
        return x * ag.cast(n, ag.float32) + rate

    vectors = [np.arange(size, dtype=np.float32) for size in (5, 7, 5, 300)]
    given = [ag.constant(each).gpu() for each in vectors]
    for round_ in range(6):
        results = [f(x, round_ * 3, round_ / 2) for x in given]
        for vector, result in zip(vectors, results, strict=True):
            np.testing.assert_allclose(result.numpy(), vector * (round_ * 3) + round_ / 2, rtol=1e-6)
    assert len(found) == 3 and {len(each) for each in found} == {len(found[0])}


def test_numbers_that_decide_about_sizes(driver: Pretended, monkeypatch: pytest.MonkeyPatch) -> None:
    found = prepared(monkeypatch)

    @ag.function(input_signature=[ag.TensorSpec([None]), ag.TensorSpec([], ag.int32)])
    def f(x: Any, n: Any) -> Any:
        return ag.fill([n], 1.0) * x[0]

    x = ag.constant(VECTOR[7:]).gpu()
    for n in [4, 9, 4, 1, 9, 9]:
        np.testing.assert_array_equal(f(x, n).numpy(), np.full(n, VECTOR[7]))
    assert len(found) in (3, 0)  # 0: the kernel is waited for


def test_more_shapes_than_are_remembered(driver: Pretended, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry, "_KNOWN", 3)
    found = prepared(monkeypatch)
    f = ag.function(doubled, input_signature=[ag.TensorSpec([None])])
    for size in [*range(1, 9), *range(1, 9)]:
        np.testing.assert_array_equal(f(ag.constant(VECTOR[:size]).gpu()).numpy(), 2 * VECTOR[:size])
    assert len(found) > 8


def test_a_prepared_launch_in_a_forked_child(driver: Pretended, monkeypatch: pytest.MonkeyPatch) -> None:
    x = ag.constant(VECTOR).gpu()
    f = started(doubled, x)
    f(x)
    with monkeypatch.context() as changed:
        changed.setattr(cuda, "_process", 0)  # what a fork changes
        with pytest.raises(errors.InternalError, match="forked children"):
            f(x)
    np.testing.assert_array_equal(f(x).numpy(), 2 * VECTOR)


def test_memory_goes_to_later_launches_only(driver: Pretended) -> None:
    x = ag.constant(VECTOR).gpu()
    f, g = started(doubled, x), started(lambda x: ag.sqrt(x) + 1.0, x)
    expected = VECTOR
    y = x
    kept = []
    for number in range(20):  # each result lies where one lay that the launch before has read
        y = f(y) if number % 2 else g(y)
        expected = expected * np.float32(2) if number % 2 else np.sqrt(expected) + np.float32(1)
        if number % 7 == 0:
            kept.append((y, expected))
    large = ag.constant(np.ones(5_000_000, np.float32)).gpu()
    for _ in range(3):  # what is freed goes back to the driver: 20 of 64 MiB each, beyond what is kept
        f(large)
    for tensor, right in [*kept, (y, expected)]:
        np.testing.assert_allclose(tensor.numpy(), right, rtol=1e-6)


def test_numbers_are_read_later(driver: Pretended) -> None:
    x = ag.constant(VECTOR).gpu()
    f = started(lambda x: (ag.reduce_sum(x), ag.reduce_max(x) > 3.0, x * 2.0)[0], x)
    g = ag.function(lambda x: (ag.reduce_sum(x), ag.reduce_max(x) > 3.0, x * 2.0), jit_compile=True)
    ran = len(driver.launches)
    totals = []
    for number in range(5):
        total, large, double = g(x if number % 2 else f(x) * x)
        totals.append((total, large))
    expected = VECTOR.sum()
    assert total.shape == () and total.dtype == ag.float32 and total.device.endswith("GPU:0")
    assert len(driver.launches) < driver["launches"] and len(driver.launches) > ran
    for number, (total, large) in enumerate(totals):
        np.testing.assert_allclose(float(total), expected if number % 2 else expected * expected, rtol=1e-5)
        assert bool(large)
    np.testing.assert_allclose(double.numpy(), 2 * expected * VECTOR, rtol=1e-5)


def test_memory_of_numbers_is_used_again(driver: Pretended) -> None:
    x = ag.constant(VECTOR).gpu()
    f = started(lambda x: ag.reduce_sum(x), x)
    kept = [f(x) for _ in range(10)]
    for _ in range(50):
        f(x)
    place = device.logical_gpus()[0]
    with place.lock:
        assert sum(map(len, place._spare.values())) == 1
    del kept
    with place.lock:
        assert sum(map(len, place._spare.values())) == 11


@pytest.mark.parametrize(
    "read",
    [
        lambda total: (total.cpu() + 0.0).numpy(),
        lambda total: ag.reshape(total, [1]).numpy()[0],
        lambda total: (total + ag.zeros([2])).numpy()[0],
        lambda total: (total * 1.0).numpy(),
        lambda total: total.held.copied().on_host(),
        lambda total: total.held.moved_to(device.logical_gpus()[1]).on_host(),
        lambda total: eager(taken(capsule(total.held, versioned=True), total.held.place)).numpy(),
        lambda total: float(str(total).split("(")[1].split(",")[0]),
        lambda total: pickle.loads(pickle.dumps(total)).numpy(),
        lambda total: ag.Variable(total).numpy(),
        lambda total: total.numpy() if total > 3.0 else None,
    ],
)
def test_numbers_that_nobody_has_read(read: Any, driver: Pretended) -> None:
    x = ag.constant(VECTOR).gpu()
    f = started(lambda x: ag.reduce_sum(x), x)
    ran = len(driver.launches)
    totals = [f(x) for _ in range(3)]
    assert len(driver.launches) == ran
    del totals[0]
    f(x)
    for total in totals:
        assert read(total) == VECTOR.sum()


def test_arguments_that_are_results(driver: Pretended) -> None:
    f = started(lambda x: (ag.reshape(x, [5, 10]), x, x[3:7])[0], ag.constant(VECTOR).gpu())
    x = ag.constant(VECTOR).gpu()
    y = ag.function(lambda x: (ag.reshape(x, [5, 10]), x + 1.0))(x)
    del x
    np.testing.assert_array_equal(y[0].numpy(), VECTOR.reshape(5, 10))
    np.testing.assert_array_equal(y[1].numpy(), VECTOR + 1)
    assert f(ag.constant(VECTOR).gpu()).shape == (5, 10)


def test_what_may_fail_is_waited_for(driver: Pretended) -> None:
    x, rows = ag.constant(VECTOR).gpu(), ag.constant([1, 7]).gpu()
    f, g = started(doubled, x), started(lambda x, i: ag.gather(x, i), x, rows)
    y = f(x)
    with pytest.raises(errors.InvalidArgumentError, match="77") as caught:
        g(y, ag.constant([1, 77]).gpu())
    assert "test_launches.py" in str(caught.value)
    ran = len(driver.launches)
    z = f(f(x))
    np.testing.assert_array_equal(g(z, rows).numpy(), [4, 28])
    assert len(driver.launches) > ran


def test_an_error_of_the_driver_names_what_ran(driver: Pretended) -> None:
    x = ag.constant(VECTOR).gpu()
    f = started(doubled, x)
    driver["fail_next_launch"] = 1
    y = f(x)
    with pytest.raises(errors.InternalError) as caught:
        y.numpy()
    text = str(caught.value)
    assert "illegal memory access" in text and "kernel 'doubled', 1 blocks of 64 threads" in text
    del x, y


def test_threads(driver: Pretended) -> None:
    driver["slow"] = 1
    x = ag.constant(VECTOR).gpu()
    f = started(doubled, x)
    found: list[np.ndarray] = []

    def run() -> None:
        y = x
        for _ in range(10):
            y = f(y)
        found.append(y.numpy())

    threads = [threading.Thread(target=run) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 4
    for each_found in found:
        np.testing.assert_array_equal(each_found, VECTOR * 2**10)


def test_a_kernel_that_goes_while_it_runs(driver: Pretended) -> None:
    x = ag.constant(VECTOR).gpu()
    f = started(doubled, x)
    modules = driver["live_modules"]
    y = f(x)
    del f
    gc.collect()
    assert driver["live_modules"] < modules
    np.testing.assert_array_equal(y.numpy(), 2 * VECTOR)


def test_arrays_of_others_are_given_back_when_nobody_reads_them(driver: Pretended) -> None:
    x = ag.constant(VECTOR).gpu()
    f = started(doubled, x)
    ran = len(driver.launches)
    given = eager(taken(capsule(x.held, versioned=True), x.held.place))
    y = f(given)
    assert len(driver.launches) == ran
    del given
    assert len(driver.launches) == ran + 1
    np.testing.assert_array_equal(y.numpy(), 2 * VECTOR)


def test_ctrl_c_while_a_result_is_waited_for(driver: Pretended) -> None:
    x = ag.constant(VECTOR).gpu()
    f = started(doubled, x)
    driver["slow"] = 1
    y = x
    for _ in range(300):
        y = f(y)
    main = threading.main_thread().ident
    assert main is not None
    done = threading.Event()

    def interrupt() -> None:
        while not done.wait(0.01):
            signal.pthread_kill(main, signal.SIGINT)

    def handler(*_: Any) -> None:
        done.set()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, handler)
    thread = threading.Thread(target=interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            thread.start()
            while not done.is_set():
                y.numpy()
                time.sleep(0.001)
    finally:
        done.set()
        thread.join()
        signal.signal(signal.SIGINT, before)
    np.testing.assert_array_equal(f(x).numpy(), 2 * VECTOR)


def test_a_profile_shows_how_long_a_kernel_takes(driver: Pretended) -> None:
    x = ag.constant(VECTOR).gpu()
    f = started(doubled, x)
    ran = len(driver.launches)
    profile = profiling.start()
    f(x)
    profiling.stop(profile)
    assert len(driver.launches) == ran + 1
    assert [event.arguments for event in profile.events if event.category == "device"] == [{"threads": 64}]


def test_a_process_that_ends_while_kernels_run() -> None:
    done = _process(
        "import autograph as ag\n"
        "from tests.device.pretended import Pretended\n"
        "pretended = Pretended()\n"
        "block = pretended.installed()\n"
        "block.__enter__()\n"
        "x = ag.ones([50]).gpu()\n"
        "for _ in range(3):\n"
        "    y = ag.sqrt(x)\n"
        "print(y.shape, len(pretended.launches))\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "(50,) 1\n", "")


def test_the_log_has_launches(driver: Pretended) -> None:
    found = cuda_driver.driver()
    assert found is not None
    found._log = log = io.StringIO()
    x = ag.constant(VECTOR).gpu()
    started(doubled, x)(x).numpy()
    calls = re.findall(r"cuLaunchKernel\(0x\w+, 1, 1, 1, 64, 1, 1, 0, None, 0x\w+, None\) = 0\n", log.getvalue())
    assert len(calls) == 2
    assert "cuStreamQuery(None) = 0\n" in log.getvalue()


def test_later_calls_do_as_the_first(driver: Pretended, capsys: pytest.CaptureFixture[str]) -> None:
    """Later calls look at little more than where their arguments are."""
    spec = ag.TensorSpec([None], ag.float32)

    @ag.function(input_signature=[spec, spec])
    def f(x: Any, y: Any) -> Any:
        return x * y + 1.0, ag.reduce_sum(x)

    x, y = (ag.constant(VECTOR).gpu() for _ in range(2))
    errors_said = []
    for _ in range(3):
        with pytest.raises(errors.InvalidArgumentError) as caught:
            f(x, y[:3])
        errors_said.append(str(caught.value))
        found = f(x, y)
        np.testing.assert_array_equal(found[0].numpy(), VECTOR * VECTOR + 1)
        assert float(found[1]) == VECTOR.sum()
    assert len(set(errors_said)) == 1 and "test_launches.py" in errors_said[0]
    place = device.logical_gpus()[0]
    assert f.get_concrete_function().on_gpus[place] is not None

    copies = ag.config.experimental.get_transfer_info("GPU:0")["to_device"]
    np.testing.assert_array_equal(f(x, ag.constant(VECTOR))[0].numpy(), VECTOR * VECTOR + 1)
    assert ag.config.experimental.get_transfer_info("GPU:0")["to_device"] == copies + 1
    for name in ("GPU:1", "CPU:0"):
        with ag.device(name):
            there = f(x, y)[0]
        assert there.device.endswith(name)
        np.testing.assert_array_equal(there.numpy(), VECTOR * VECTOR + 1)
    with ag.GradientTape() as tape:
        tape.watch(x)
        result = f(x, y)[0]
    np.testing.assert_array_equal(tape.gradient(result, x).numpy(), VECTOR)
    ag.debugging.set_log_device_placement(True)
    try:
        f(x, y)
    finally:
        ag.debugging.set_log_device_placement(False)
    assert re.search(r"Executing op f in device .*GPU:0", capsys.readouterr().err)
    assert "on GPU:0 (Pretended GPU 0): 1 kernel, " in f.explain(x, y)


def test_captured_tensors_are_copied_once(driver: Pretended) -> None:
    w, rows = ag.constant(2 * VECTOR), ag.constant(np.arange(50, dtype=np.int32))
    total = ag.Variable(ag.zeros([50]).gpu())
    f = ag.function(lambda x: x * w)

    @ag.function
    def g(x: Any) -> Any:
        total.assign_add(x * ag.gather(w, rows))
        return total + 0.0

    def copies() -> int:
        return sum(ag.config.experimental.get_transfer_info(name)["to_device"] for name in ("GPU:0", "GPU:1"))

    x = ag.constant(VECTOR).gpu()
    for function in (f, g):
        function(x)
        before = copies()
        for _ in range(3):
            found = function(x)
        assert copies() == before
    np.testing.assert_array_equal(found.numpy(), 4 * 2 * VECTOR * VECTOR)
    for where in (x, ag.constant(VECTOR), ag.constant(VECTOR).gpu(1), x):
        found = f(where)
        assert found.device == where.device
        np.testing.assert_array_equal(found.numpy(), 2 * VECTOR * VECTOR)
    with ag.GradientTape() as tape:
        tape.watch(w)
        found = f(x)
    np.testing.assert_array_equal(tape.gradient(found, w).numpy(), VECTOR)


def test_launches_of_several_sizes(driver: Pretended) -> None:
    """The form of a launch is said anew where it changes."""
    f = ag.function(lambda x: x + 1.0, input_signature=[ag.TensorSpec([None], ag.float32)])
    sizes = [10, 1000, 100_000, 1000, 10, 10]
    results = [f(ag.constant(np.full(size, 3.0, np.float32)).gpu()) for size in sizes]
    for size, result in zip(sizes, results):
        np.testing.assert_array_equal(result.numpy(), np.full(size, 4.0, np.float32))
    assert driver.launches[-6:] == [
        Shape(1, 32), Shape(4, 256), Shape(8, 256), Shape(4, 256), Shape(1, 32), Shape(1, 32),
    ]  # fmt: skip
