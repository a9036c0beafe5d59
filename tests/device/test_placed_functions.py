"""Functions whose operands are on an (emulated) GPU: control flow, gradients, variables, errors, what stays on the
CPU."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import autograph as ag
from runtime.codegen import cost_model
from runtime.codegen.device import launch
from runtime.context import placing
from tests.device.on_device import gpus
from tests.device.test_programs import MATRIX, VECTOR, descent, distances, fractal, growing, newton, recurrence, stencil

CPU, GPU = (f"/job:localhost/replica:0/task:0/device:{name}:0" for name in ("CPU", "GPU"))


@pytest.fixture(autouse=True)
def _one() -> Iterator[None]:
    with gpus():
        yield


def on_gpu(value: Any) -> Any:
    return ag.constant(value).gpu()


def check(program: Any, *arguments: Any, tolerance: float = 2e-5) -> None:
    """A function gives on the GPU what it gives on the CPU, and leaves it there."""
    function = ag.function(program)
    expected = ag.nest.flatten(function(*map(ag.constant, arguments)))
    found = ag.nest.flatten(function(*map(on_gpu, arguments)))
    assert function.experimental_get_tracing_count() == 1
    for one, other in zip(found, expected, strict=True):
        assert one.device == GPU
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("program", "argument"),
    [(newton, VECTOR), (descent, VECTOR), (stencil, VECTOR), (recurrence, MATRIX), (distances, MATRIX),
     (fractal, VECTOR - 1.2), (growing, VECTOR)],
)  # fmt: skip
def test_loops(program: Any, argument: Any) -> None:
    check(program, argument)


def large_factors(a: Any, v: Any) -> Any:
    """What the processor leaves to LAPACK and NumPy because of its size."""
    symmetric = ag.matmul(a, a, transpose_b=True)
    factor = ag.linalg.cholesky(symmetric)
    return (
        ag.linalg.solve(a, a[:, :3] * 2.0), ag.linalg.inv(a), factor, ag.linalg.slogdet(a)[1],
        ag.linalg.triangular_solve(factor, a[:, :2]), ag.sort(v),
    )  # fmt: skip


def test_size_sends_nothing_to_the_processor() -> None:
    size = cost_model.DEVICE_LARGE_MATRIX + 3
    matrix = np.random.default_rng(6).normal(size=(size, size)) + 20 * np.eye(size)
    ag.config.set_soft_device_placement(False)
    try:
        check(large_factors, matrix, np.random.default_rng(7).normal(size=cost_model.SORT_ROW * 2), tolerance=1e-9)
        with pytest.raises(ag.errors.InvalidArgumentError, match="Input is not invertible"):
            ag.function(ag.linalg.inv)(on_gpu(matrix * 0.0))
    finally:
        ag.config.set_soft_device_placement(True)


def test_blocks_place_functions() -> None:
    @ag.function(jit_compile=True)
    def f(x: Any) -> Any:
        return x * 2.0, 5

    x = ag.constant(VECTOR)
    for _ in range(8):  # so that calls are answered by machine code
        assert f(x)[0].device == CPU
    with ag.device("/GPU:0"):
        assert f(x)[0].device == GPU
    assert f(x)[0].device == CPU
    assert f(x.gpu())[0].device == GPU
    with ag.device("/CPU:0"):
        assert f(x.gpu())[0].device == CPU
    concrete = f.get_concrete_function(x)
    assert concrete(x.gpu())[0].device == GPU
    assert concrete(x)[0].device == CPU


def test_blocks_in_a_function() -> None:
    """All of a traced function whose blocks name one GPU runs there."""

    @ag.function(jit_compile=True)
    def f(x: Any) -> Any:
        with ag.device("/GPU:0"):
            y = x * 2.0
        return y + 1.0

    x = ag.Variable(VECTOR)
    for _ in range(6):
        assert f(ag.constant(VECTOR)).device == GPU
    with ag.GradientTape() as tape:
        y = f(x)
    assert y.device == tape.gradient(y, x).device == GPU
    with ag.device("/CPU:0"):
        assert f(ag.constant(VECTOR)).device == CPU
    ag.config.set_soft_device_placement(True)
    with ag.device("/GPU:5"):  # which this machine lacks
        assert f(ag.constant(VECTOR)).device == CPU


def test_a_dataset_for_variables_on_a_gpu() -> None:
    with ag.device("/GPU:0"):
        total = ag.Variable(ag.zeros([3]))

    @ag.function
    def add(row: Any) -> None:
        total.assign_add(row)

    for row in ag.data.Dataset.from_tensor_slices(MATRIX[:4, :3]).apply(
        ag.data.experimental.prefetch_to_device("/GPU:0")
    ):
        add(row)
    assert total.device == GPU
    np.testing.assert_allclose(total.numpy(), MATRIX[:4, :3].sum(0), rtol=1e-5)


def test_without_gpus_nothing_asks_for_them() -> None:
    x = on_gpu(VECTOR)
    v = ag.Variable(x)
    ag.config.emulate_gpus(0)
    if not ag.config.list_physical_devices("GPU"):
        assert not placing
        assert (x + 1.0).device == CPU
        np.testing.assert_array_equal((x + 1.0).numpy(), VECTOR + 1)
        v.assign(v * 2.0)
        np.testing.assert_array_equal(v.numpy(), VECTOR * 2)


def test_captured_tensors_and_structures() -> None:
    weights = on_gpu(MATRIX)

    @ag.function
    def f(batch: Any) -> Any:
        return {"sum": ag.reduce_sum(batch["x"] @ ag.transpose(weights)), "x": batch["x"]}

    found = f({"x": ag.constant(MATRIX)})  # the captured tensor is there
    assert found["x"].numpy().shape == (40, 30)
    found = f({"x": on_gpu(MATRIX)})
    assert {each.device for each in found.values()} == {GPU}
    np.testing.assert_allclose(found["sum"].numpy(), (MATRIX @ MATRIX.T).sum(), rtol=1e-4)


# --- gradients -------------------------------------------------------------------------------------------------------


def gradients(program: Any) -> Any:
    """The first and the second derivative of the sum of squares of a program's first result."""

    def both(x: Any) -> Any:
        with ag.GradientTape() as outer:
            outer.watch(x)
            with ag.GradientTape() as tape:
                tape.watch(x)
                found = program(x)
                total = ag.reduce_sum((found[0] if isinstance(found, tuple) else found) ** 2)
            first = tape.gradient(total, x)
            weighted = ag.reduce_sum(first * first)
        return first, outer.gradient(weighted, x)

    return both


@pytest.mark.parametrize("program", [descent, stencil])
def test_gradients_of_a_function(program: Any) -> None:
    short = VECTOR[:40]
    function = ag.function(program)
    expected = gradients(function)(ag.constant(short))
    found = gradients(function)(on_gpu(short))  # tapes outside: residuals stay on the GPU
    for one, other in zip(found, expected, strict=True):
        assert one.device == GPU
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-3, atol=1e-4)


def test_gradients_within_a_function() -> None:
    check(gradients(stencil), VECTOR[:20], tolerance=1e-3)


def waves(x: Any) -> Any:
    """Trips whose number depends on values, each with an array to keep for the way back."""
    trips = ag.constant(0)
    while trips < 1000 and ag.reduce_max(ag.abs(x)) > 1e-3:
        x = ag.sin(x) * 1.0005
        trips += 1
    return x


@pytest.mark.parametrize("memory", [None, 1 << 16])
def test_residuals_that_outgrow_a_kernels_memory(memory: int | None) -> None:
    """The kernel gets more memory and goes on; with a budget, it keeps checkpoints instead."""

    @ag.function(gradient_memory=memory)
    def gradient(x: Any) -> Any:
        with ag.GradientTape() as tape:
            tape.watch(x)
            total = ag.reduce_sum(waves(x) ** 2)
        return tape.gradient(total, x)

    assert 1000 * VECTOR.nbytes > launch._HEAP
    expected = gradient(ag.constant(VECTOR))
    gpu = on_gpu(VECTOR)
    found = gradient(gpu)
    assert found.device == GPU
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-3, atol=1e-6)
    (placed,) = gradient.get_concrete_function(gpu).function.executable.placed.values()
    grown = max(kernel._launches._heap for kernel in placed.kernels)
    assert grown < 1000 * VECTOR.nbytes if memory else grown > launch._HEAP


def thinned(x: Any) -> Any:
    while ag.size(x) > 3:
        x = ag.boolean_mask(x, x > ag.reduce_mean(x)) * x[0]
    return x


def test_gradients_of_arrays_that_shrink() -> None:
    check(gradients(thinned), VECTOR[:50], tolerance=1e-3)


def test_gradients_of_eager_ops() -> None:
    def program(x: Any) -> Any:
        return ag.tanh(x) * ag.reduce_sum(x[1:] * x[:-1]) + ag.gather(x, [0, 0, 1])[2]

    expected = gradients(program)(ag.constant(VECTOR[:9]))
    found = gradients(program)(on_gpu(VECTOR[:9]))
    for one, other in zip(found, expected, strict=True):
        assert one.device == GPU
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-4)


# --- variables -------------------------------------------------------------------------------------------------------


def test_variables_live_where_they_were_made() -> None:
    with ag.device("/GPU:0"):
        v = ag.Variable([1.0, 2.0], name="v")
    w = ag.Variable(on_gpu([3.0, 4.0]))
    assert v.device == w.device == v.read_value().device == GPU
    v.assign([5.0, 6.0])
    v.assign_add(w)
    v[0].assign(1.0)
    assert v.device == GPU and v.numpy().tolist() == [1.0, 10.0]
    here = ag.Variable([0.0, 0.0])
    here.assign(v)
    assert here.device == CPU and here.numpy().tolist() == [1.0, 10.0]
    assert "numpy=array([ 1., 10.]" in repr(v)
    with pytest.raises(ValueError, match="Shape mismatch"):
        v.assign([1.0])


def test_training() -> None:
    """Momentum on a device: only the loss is read."""

    def train(device: str) -> tuple[list[float], list[Any]]:
        with ag.device(device):
            x, y = ag.constant(MATRIX), ag.constant(MATRIX @ np.ones((30, 1), np.float32))
            weights, bias = ag.Variable(ag.zeros([30, 1])), ag.Variable([0.0])
            speeds = [ag.Variable(ag.zeros_like(each)) for each in (weights, bias)]

        @ag.function
        def step() -> Any:
            with ag.GradientTape() as tape:
                loss = ag.reduce_mean((ag.tanh(x @ weights + bias) - y) ** 2)
            for variable, speed, gradient in zip((weights, bias), speeds, tape.gradient(loss, [weights, bias])):
                speed.assign(0.9 * speed - 0.05 * gradient)
                variable.assign_add(speed)
            return loss

        losses = [float(step()) for _ in range(5)]
        return losses, [weights, bias]

    expected, _ = train("/CPU:0")
    info = ag.config.experimental.get_transfer_info
    before = info("GPU:0")
    found, variables = train("/GPU:0")
    after = info("GPU:0")
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert found[-1] < found[0]
    assert {each.device for each in variables} == {GPU}
    assert after["from_device"] == before["from_device"]  # numbers come with a kernel's status
    assert after["to_device_bytes"] - before["to_device_bytes"] < MATRIX.nbytes + 1000


def test_assignments_before_an_error_count() -> None:
    with ag.device("/GPU:0"):
        v = ag.Variable(1.0)

    @ag.function
    def f(x: Any, i: Any) -> Any:
        v.assign(7.0)
        return ag.gather(x, i)

    with pytest.raises(ag.errors.InvalidArgumentError):
        f(on_gpu(VECTOR), 1000)
    assert float(v) == 7.0 and v.device == GPU


# --- errors ----------------------------------------------------------------------------------------------------------


def test_errors_are_those_of_the_cpu_at_the_users_line() -> None:
    @ag.function
    def row(x: Any, i: Any) -> Any:
        return ag.gather(x, [0, i]) * 2.0

    @ag.function
    def small(x: Any, i: Any) -> Any:
        ag.debugging.assert_less(x, 1.5, message="too large")
        return x

    @ag.function
    def raising(x: Any, i: Any) -> Any:
        for k in ag.range(i):
            if x[k] > 1.9:
                raise ValueError("too large")
        return x

    for function, kind in (
        (row, ag.errors.InvalidArgumentError),
        (small, ag.errors.InvalidArgumentError),
        (raising, ValueError),
    ):
        said = []
        for x in (ag.constant(VECTOR), on_gpu(VECTOR)):
            with pytest.raises(kind) as caught:
                function(x, ag.constant(300))
            said.append(str(caught.value))
        assert said[0] == said[1]
        assert "test_placed_functions.py" in said[0]
    assert row(on_gpu(VECTOR), 1).device == GPU  # the GPU goes on


def test_what_has_no_form_for_gpus_runs_on_the_cpu() -> None:
    @ag.function
    def f(x: Any) -> Any:
        y = x * 2.0
        z = ag.linalg.svd(y, compute_uv=False)
        return z + ag.reduce_sum(y)

    expected = f(ag.constant(MATRIX))
    assert "2 kernels, 0 calls so far" in f.explain(on_gpu(MATRIX))  # what a call would do
    found = f(on_gpu(MATRIX))
    assert found.device == GPU
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-4)
    said = f.explain(on_gpu(MATRIX))
    assert re.search(r"on GPU:0 \(.+\): 2 kernels, 1 call so far", said)
    assert "on the CPU: svd, since op 'svd' can't be compiled" in said
    # The matrix twice (once each way), and svd's 30 numbers.
    assert "over the bus: 2 copies to the GPU (4.8 KiB), 1 from it (4.7 KiB)" in said

    @ag.function
    def g(x: Any) -> Any:
        return ag.linalg.svd(x + 1.0, compute_uv=False)

    ag.config.set_soft_device_placement(False)
    with pytest.raises(ag.errors.InvalidArgumentError, match=r"Svd can't run on a GPU(.|\n)*return ag.linalg.svd"):
        g(on_gpu(MATRIX))


def test_explain_says_that_a_gpu_is_missing() -> None:
    f = ag.function(lambda x: x + 1.0)
    with ag.device("/GPU:7"):
        assert "on the CPU: /GPU:7 was requested, but this machine doesn't have it" in f.explain(ag.constant(1.0))
    assert "was requested" not in f.explain(ag.constant(1.0))


def test_random_numbers_are_those_of_the_cpu() -> None:
    @ag.function
    def f(x: Any) -> Any:
        return x + ag.random.normal([5]), ag.random.stateless_uniform([4], [1, 2])

    found = []
    for put in (ag.constant, on_gpu):
        ag.random.set_seed(3)
        found.append([[each.numpy() for each in f(put(np.zeros(5, np.float32)))] for _ in range(2)])
    for one, other in zip(found[0], found[1], strict=True):
        for mine, theirs in zip(one, other, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-6)
    assert not np.array_equal(found[0][0][0], found[0][1][0])


def test_strings_effects_and_python_calls_are_the_hosts(capsys: pytest.CaptureFixture[str]) -> None:
    @ag.function
    def f(x: Any) -> Any:
        ag.print("sum", ag.reduce_sum(x))
        y = ag.py_function(lambda t: t.numpy() * 2, [x], ag.float32)
        return ag.reshape(y, [2]) + x, ag.strings.length("abc")

    total, length = f(on_gpu([1.0, 2.0]))
    assert total.numpy().tolist() == [3.0, 6.0] and int(length) == 3
    assert "sum 3" in capsys.readouterr().err


def test_the_host_steers_what_cannot_be_one_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    """Arrays stay on the GPU from trip to trip."""

    @ag.function
    def f(x: Any) -> Any:
        n = 0
        while ag.reduce_sum(ag.abs(x)) > 1.0:
            x = ag.tanh(x) * 0.7
            ag.print("trip", n)
            n += 1
        return x, n

    expected, trips = f(ag.constant(MATRIX))
    printed = capsys.readouterr().err
    before = ag.config.experimental.get_transfer_info("GPU:0")
    found, count = f(on_gpu(MATRIX))
    assert capsys.readouterr().err == printed and int(count) == int(trips) > 2
    after = ag.config.experimental.get_transfer_info("GPU:0")
    assert after["from_device"] == before["from_device"]
    assert after["to_device_bytes"] - before["to_device_bytes"] == MATRIX.nbytes
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=2e-5, atol=1e-6)
    said = " ".join(f.explain(on_gpu(MATRIX)).split())  # lines are wrapped
    assert re.search(r"steered by the host: while at .*test_placed_functions.py:\d+, since op 'print' can't be", said)


def test_parts_of_steered_loops_run_on_the_cpu() -> None:
    def g(x: Any) -> Any:
        total = ag.zeros([4])
        for i in ag.range(3):
            values = ag.linalg.svd(x + ag.cast(i, ag.float32), compute_uv=False)
            total = total + values
            if ag.reduce_sum(total) > 5.0:
                x = x * 0.5 + ag.reduce_sum(ag.linalg.svd(x, compute_uv=False)) * 0.01
            else:
                x = x + 1.0
        return total, x

    check(g, MATRIX[:4, :4])
    ag.config.set_soft_device_placement(False)
    where = r"Svd can't run on a GPU.*\n.*test_placed_functions.py:\d+"
    with pytest.raises(ag.errors.InvalidArgumentError, match=where):
        ag.function(g)(on_gpu(MATRIX[:4, :4]))


def test_threads_share_a_gpu() -> None:
    f = ag.function(lambda x: ag.reduce_sum(ag.sin(x) * x))
    expected = float(f(ag.constant(VECTOR)))
    found: list[float] = []
    placing.clear()  # as before the first use of a GPU, which is one of these threads'
    threads = [threading.Thread(target=lambda: found.append(float(f(on_gpu(VECTOR))))) for _ in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    np.testing.assert_allclose(found, [expected] * 6, rtol=1e-5)


@pytest.mark.skipif(
    os.environ.get("AUTOGRAPH_TEST_DEVICE") == "pretended",
    reason="test_cuda_driver.py has its kernels run beside Python",
)
def test_ctrl_c_ends_a_loop() -> None:
    @ag.function(jit_compile=True)
    def forever(x: Any) -> Any:
        while ag.reduce_max(x) < 1e30:
            x = x * 0.5
        return x

    x = on_gpu(VECTOR)
    backend = placing[0].place_of([x]).backend
    before = backend.launches

    def interrupt() -> None:
        while backend.launches == before:
            time.sleep(0.01)
        time.sleep(0.2)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            forever(x)
    finally:
        signal.signal(signal.SIGINT, handler)
        thread.join()
    np.testing.assert_array_equal((x + 1.0).numpy(), VECTOR + 1)


def test_equal_updates_of_few_variables_are_few_kernels() -> None:
    """On the processor they share a kernel; on a GPU each would be a launch."""
    with gpus(), ag.device("GPU:0"):
        variables = [ag.Variable(ag.ones([size])) for size in range(3, 13)]
        slots = [ag.Variable(ag.zeros([size])) for size in range(3, 13)]

        @ag.function
        def update(rate: Any) -> None:
            for variable, slot in zip(variables, slots):
                gradient = ag.tanh(variable * 2.0) - ag.sin(variable)
                slot.assign(0.9 * slot + 0.1 * gradient * gradient)
                variable.assign_sub(rate * gradient / (ag.sqrt(slot) + 1e-3))

        rate = ag.constant(0.1)
        update(rate)
        (line,) = (each for each in update.explain(rate).splitlines() if each.startswith("on GPU:0"))
    assert "2 kernels" in line
    x = np.ones(3, np.float32)
    gradient = np.tanh(x * 2) - np.sin(x)
    np.testing.assert_allclose(variables[0].numpy(), x - 0.1 * gradient / (np.sqrt(0.1) * gradient + 1e-3), 1e-4)


def test_loops_with_barriers_are_counted() -> None:
    with gpus():
        x = ag.ones([40]).gpu()
        halved = ag.function(halved_together)
        halved(x)
        assert "1 loop in whose trips all threads wait for each other" in halved.explain(x)
        twice = ag.function(lambda x: x * 2.0)
        twice(x)
        assert "in whose trips" not in twice.explain(x)


def halved_together(x: Any) -> Any:
    while ag.reduce_max(x) > 0.1:
        x = x * 0.5
    return x
