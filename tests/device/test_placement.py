"""Where things run, on emulated GPUs: names, `device` blocks, tensors, variables, functions, and what is copied."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import autograph as ag
from runtime import device, profiling
from tests.device.on_device import gpus

CPU, GPU = (f"/job:localhost/replica:0/task:0/device:{name}:0" for name in ("CPU", "GPU"))


@pytest.fixture(autouse=True)
def _two() -> Iterator[None]:
    with gpus(2, memory=1 << 27):
        yield


def on_gpu(value: Any) -> Any:
    with ag.device("/GPU:0"):
        return ag.constant(value)


X = np.arange(1, 7, dtype=np.float32).reshape(2, 3)


# --- what there is ---------------------------------------------------------------------------------------------------


def test_devices_and_their_names() -> None:
    assert [d.name for d in ag.config.list_physical_devices("GPU")] == [f"/physical_device:GPU:{n}" for n in (0, 1)]
    assert [d.name for d in ag.config.list_logical_devices()] == ["/device:CPU:0", "/device:GPU:0", "/device:GPU:1"]
    details = ag.config.experimental.get_device_details(ag.config.list_physical_devices("GPU")[0])
    assert details == {"device_name": "Emulated GPU", "compute_capability": (9, 0)}


def test_devices_may_be_hidden_until_one_is_used() -> None:
    first, second = ag.config.list_physical_devices("GPU")
    ag.config.set_visible_devices(second, "GPU")
    assert ag.config.get_visible_devices("GPU") == [second]
    assert len(ag.config.list_logical_devices("GPU")) == 1
    with pytest.raises(RuntimeError, match="the devices are .*GPU:0"):
        ag.constant(1.0).gpu(1)
    assert ag.constant(1.0).gpu().device == GPU
    with pytest.raises(RuntimeError, match="cannot be modified after being initialized"):
        ag.config.set_visible_devices(first, "GPU")
    ag.config.set_visible_devices(second, "GPU")  # as it is


def test_a_device_in_two_parts_with_limits() -> None:
    first, second = ag.config.list_physical_devices("GPU")
    limits = [ag.config.LogicalDeviceConfiguration(memory_limit=1), ag.config.LogicalDeviceConfiguration()]
    ag.config.set_logical_device_configuration(first, limits)
    assert len(ag.config.list_logical_devices("GPU")) == 3
    big = np.zeros(1 << 20, np.float32)
    with ag.device("GPU:1"):
        assert float(ag.reduce_sum(big)) == 0.0
    with ag.device("GPU:0"), pytest.raises(ag.errors.ResourceExhaustedError, match=r"GPU:0: 4\.0 MiB .* of 1\.0 MiB"):
        ag.reduce_sum(big)
    with pytest.raises(RuntimeError, match="cannot be modified after being initialized"):
        ag.config.set_logical_device_configuration(second, limits)


def test_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    ag.config.emulate_gpus(0)
    with ag.device("/GPU:0"):
        assert ag.constant(1.0).device == CPU  # soft placement
    with pytest.raises(RuntimeError, match=r"unknown device.*no CUDA driver.*emulate_gpus"):
        ag.constant(1.0).gpu()
    ag.config.set_soft_device_placement(False)
    with pytest.raises(ag.errors.InvalidArgumentError, match=r"soft placement is off.*no CUDA driver"):
        ag.device("/GPU:0").__enter__()
    with pytest.raises(ValueError, match="is not a GPU of this machine"):
        ag.config.experimental.get_memory_info("GPU:0")
    monkeypatch.setattr(device._state, "emulated", None)
    monkeypatch.setenv("AUTOGRAPH_EMULATED_GPUS", "3")
    assert len(ag.config.list_physical_devices("GPU")) == 3
    monkeypatch.setattr(device._state, "emulated", None)
    monkeypatch.setenv("AUTOGRAPH_EMULATED_GPUS", "many")
    with pytest.raises(ag.errors.InvalidArgumentError, match="AUTOGRAPH_EMULATED_GPUS=many"):
        ag.config.list_physical_devices()


# --- tensors and ops -------------------------------------------------------------------------------------------------


def test_work_follows_its_operands() -> None:
    x = on_gpu(X)
    assert x.device == GPU
    y = x * 2.0 + ag.constant(1.0)
    assert y.device == GPU
    assert ag.reduce_sum(y).device == GPU
    np.testing.assert_array_equal(y.numpy(), 2 * X + 1)
    with ag.device("/CPU:0"):
        assert (x + 1.0).device == CPU
    assert (ag.constant(X) + 1.0).device == CPU
    with ag.device("/GPU:1"):
        assert (x + 1.0).device.endswith("GPU:1")
    assert y.cpu().device == CPU
    assert y.cpu().gpu(1).device.endswith("GPU:1")


def test_a_block_moves_what_is_made_in_it() -> None:
    with ag.device("GPU:0"):
        made = [
            ag.constant([1, 2]), ag.zeros([2, 3]), ag.range(4), ag.eye(2), ag.fill([2], 7), ag.convert_to_tensor(X),
            ag.identity(ag.constant(2.0)), ag.ones_like(X), ag.random.stateless_uniform([3], [1, 2]),
        ]  # fmt: skip
        text = ag.constant("text")
    assert {each.device for each in made} == {GPU}
    assert text.device == CPU  # GPUs have no strings
    np.testing.assert_array_equal(made[1].numpy(), np.zeros((2, 3)))
    np.testing.assert_array_equal(made[2].numpy(), range(4))
    expected = ag.random.stateless_uniform([3], [1, 2])
    np.testing.assert_array_equal(made[-1].numpy(), expected.numpy())
    with pytest.raises(RuntimeError, match="don't support string tensors"):
        ag.constant("text").gpu()


def test_tensors_behave_as_those_of_the_cpu() -> None:
    x, n = on_gpu(X), on_gpu(3)
    assert len(x) == 2
    assert [row.device for row in x] == [GPU, GPU]
    assert int(n) == 3 and float(n) == 3.0 and bool(n) and list(range(5))[n] == 3
    assert repr(x) == repr(ag.constant(X)) and str(n) == "tf.Tensor(3, shape=(), dtype=int32)"
    assert np.asarray(x).tolist() == X.tolist() and x.shape == (2, 3) and x.ndim == 2
    assert pickle.loads(pickle.dumps(x)).device == CPU
    assert x[1].device == GPU and x[1, 2].numpy() == 6.0
    rows, columns = ag.unstack(ag.shape(x))
    assert (int(rows), int(columns)) == (2, 3)
    with pytest.raises(TypeError, match="Scalar tensor has no"):
        len(n)
    assert ag.reshape(x, [3, 2]).device == ag.expand_dims(x, 0).device == GPU
    np.testing.assert_array_equal(np.sin(x), np.sin(X))


def test_copies_are_made_once_and_counted() -> None:
    info = ag.config.experimental.get_transfer_info
    before = info("GPU:0")
    x = on_gpu(np.ones(1000, np.float32))
    assert info("GPU:0") == before  # nothing has asked for it
    y = x + x
    z = ag.reshape(y, [10, 100]) * x[0]
    after = info("GPU:0")
    assert (after["to_device"] - before["to_device"], after["to_device_bytes"] - before["to_device_bytes"]) == (1, 4000)
    assert after["from_device"] == before["from_device"]
    for _ in range(2):
        assert z.numpy().sum() == 2000
        assert info("GPU:0")["from_device_bytes"] - after["from_device_bytes"] == 4000


def test_a_function_on_several_devices() -> None:
    @ag.function
    def f(x: Any, y: Any) -> Any:
        with ag.device("/GPU:0"):
            a = x * 2.0
        with ag.device("/GPU:1"):
            b = a + y
            r = ag.random.stateless_uniform([3], [1, 2])
            c = b
            for _ in ag.range(3):
                c = c * b
        d = c + a  # where its first operand is
        with ag.device("/CPU:0"):
            e = d - 1.0
        return a, b, c, d, e, r

    x = ag.Variable(X)
    with ag.GradientTape() as tape:
        found = f(x, X)
        total = ag.reduce_sum(found[4])
    assert [each.device[-5:] for each in found] == ["GPU:0", "GPU:1", "GPU:1", "GPU:1", "CPU:0", "GPU:1"]
    gradient = tape.gradient(total, x)
    again = f(x, X)
    assert f.experimental_get_tracing_count() == 1
    said = f.explain(x, X)
    assert "on the CPU: 1 of the function's 3 parts" in said
    assert "on GPU:0" in said and "on GPU:1" in said
    ag.config.emulate_gpus(0)
    with ag.GradientTape() as tape:
        expected = f(x, X)
        total = ag.reduce_sum(expected[4])
    for one, two, other in zip(found, again, expected):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-6)
        np.testing.assert_allclose(two.numpy(), other.numpy(), rtol=1e-6)
    np.testing.assert_allclose(gradient.numpy(), tape.gradient(total, x).numpy(), rtol=1e-6)


def test_gradients_across_devices() -> None:
    """Of loops whose residuals lie on the second device."""

    @ag.function
    def f(x: Any, w: Any) -> Any:
        with ag.GradientTape() as tape:
            tape.watch(x)
            with ag.device("/GPU:0"):
                y = ag.tanh(x) * w
            with ag.device("/GPU:1"):
                z, n = y, 0
                while ag.reduce_max(ag.abs(z)) > 0.1 and n < 20:
                    z = ag.sin(z) * 0.5
                    n += 1
                loss = ag.reduce_sum(z * z)
        return loss, tape.gradient(loss, x)

    found = f(ag.constant(X), ag.constant(2.0 * X).gpu())
    assert found[0].device.endswith("GPU:1")
    ag.config.emulate_gpus(0)
    for one, other in zip(found, f(ag.constant(X), ag.constant(2.0 * X))):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5, atol=1e-6)


def test_a_loop_on_several_devices_is_told() -> None:
    @ag.function
    def f(x: Any) -> Any:
        for _ in ag.range(3):
            with ag.device("/GPU:1"):
                x = x + 1.0
            with ag.device("/GPU:0"):
                x = x * 2.0
        return x

    with pytest.warns(UserWarning, match=r"a while in 'f' runs on one device, /GPU:1: /GPU:0 .*test_placement.py:\d+"):
        found = f(ag.constant(X))
    assert found.device.endswith("GPU:1")
    np.testing.assert_allclose(found.numpy(), X * 8 + 14)


def test_replicas_exchange_without_the_host() -> None:
    strategy = ag.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
    with strategy.scope():
        w = ag.Variable(np.full(1000, 2.0, np.float32))

    @ag.function
    def step(x: Any) -> Any:
        with ag.GradientTape() as tape:
            loss = ag.reduce_sum(w * w * x)
        gradient = ag.distribute.get_replica_context().all_reduce("SUM", tape.gradient(loss, w))
        w.assign_sub(0.1 * gradient)
        return gradient

    rows = [np.full(1000, i + 1.0, np.float32) for i in range(2)]
    each = strategy.experimental_distribute_values_from_function(
        lambda context: ag.constant(rows[context.replica_id_in_sync_group])
    )
    gradients = strategy.run(step, (each,))
    info = ag.config.experimental.get_transfer_info
    assert [info(name)["from_device"] for name in ("GPU:0", "GPU:1")] == [0, 0]
    for number in range(2):
        assert gradients.values[number].device.endswith(f"GPU:{number}")
        np.testing.assert_allclose(gradients.values[number].numpy(), 4.0 * 3)
        np.testing.assert_allclose(w.values[number].numpy(), 2.0 - 0.1 * 12, rtol=1e-6)


def test_memory_is_counted_and_given_back() -> None:
    info = ag.config.experimental.get_memory_info
    x = on_gpu(np.ones(1 << 18, np.float32))
    y = x + 1.0
    full = info("GPU:0")["current"]
    assert full >= 2 << 20
    del x, y
    assert info("GPU:0")["current"] <= full - (2 << 20)
    assert info("GPU:0")["peak"] >= full
    ag.config.experimental.reset_memory_stats("GPU:0")
    assert info("GPU:0")["peak"] == info("GPU:0")["current"]
    assert ag.config.experimental.get_memory_growth(ag.config.list_physical_devices("GPU")[0])
    with pytest.raises(ValueError, match="allocated as needed"):
        ag.config.experimental.set_memory_growth(ag.config.list_physical_devices("GPU")[0], False)


def test_out_of_memory_names_the_largest_holders() -> None:
    held = ag.Variable(on_gpu(np.zeros(8 << 20, np.float32)), name="kernel")
    held.assign_add(ag.ones_like(held))
    with pytest.raises(ag.errors.ResourceExhaustedError) as caught:
        held + 1.0 + held * 2.0
    said = str(caught.value)
    assert "Out of memory on GPU:0: 32.0 MiB for a result of 'AddV2'" in said
    assert "32.0 MiB the variable 'kernel'" in said
    with ag.device("CPU:0"):
        assert float(held[0] + 1.0) == 2.0


def test_errors_are_those_of_the_cpu() -> None:
    for x in (ag.constant(X), on_gpu(X)):
        with pytest.raises(ag.errors.InvalidArgumentError, match=r"indices\[1\] = 5 is not in \[0, 2\)"):
            ag.gather(x, [0, 5])
        with pytest.raises(ag.errors.InvalidArgumentError, match="[Ii]ncompatible"):
            x + ag.constant([1.0, 2.0])
        with pytest.raises(ag.errors.InvalidArgumentError, match="float32"):
            x + ag.constant([1, 2, 3])


def test_what_has_no_form_for_gpus() -> None:
    x = on_gpu([1.0, 2.0])
    assert ag.as_string(x).numpy().tolist() == [b"1.000000", b"2.000000"]
    assert ag.signal.rfft(x).device == CPU
    ag.config.set_soft_device_placement(False)
    with pytest.raises(ag.errors.InvalidArgumentError, match=r"AsString can't run on a GPU: (.|\n)*test_placement.py"):
        ag.as_string(x)
    with ag.device("/CPU:0"):
        ag.as_string(x)
    ag.debugging.assert_greater(x, 0.5)  # effects are the host's


def test_soft_placement_is_asked_for_in_each_call() -> None:
    x = on_gpu(X)

    def looped(x: Any) -> Any:
        for _ in ag.range(2):
            x = x * ag.linalg.svd(x, compute_uv=False)[0]
        return x

    functions = [ag.function(lambda x: ag.linalg.svd(x, compute_uv=False) + 1.0), ag.function(looped)]
    before = [f(x).numpy() for f in functions]
    ag.config.set_soft_device_placement(False)
    for f in functions:
        with pytest.raises(ag.errors.InvalidArgumentError, match="Svd can't run on a GPU"):
            f(x)
    ag.config.set_soft_device_placement(True)
    for f, value in zip(functions, before, strict=True):
        np.testing.assert_array_equal(f(x).numpy(), value)


def test_launches_leave_the_random_numbers_of_the_program_alone() -> None:
    random.seed(3)
    expected = random.random()
    random.seed(3)
    (on_gpu(X) + 1.0).numpy()
    assert random.random() == expected


def test_a_block_takes_a_logical_device() -> None:
    with ag.device(ag.config.list_logical_devices("GPU")[1]):
        assert ag.ones([2]).device == GPU.replace("GPU:0", "GPU:1")
    with pytest.raises(TypeError, match="Expecting a string device name"), ag.device(1):
        pass


def test_placement_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    x = on_gpu(X)
    ag.debugging.set_log_device_placement(True)
    try:
        assert ag.debugging.get_log_device_placement()
        x + x
        ag.constant(1.0) + 1.0
        with ag.device("GPU:0"):
            ag.as_string(x)
    finally:
        ag.debugging.set_log_device_placement(False)
    x + x
    first, second, third = capsys.readouterr().err.splitlines()
    assert first.startswith(f"Executing op AddV2 in device {GPU}, at ") and "test_placement.py" in first
    assert second.startswith(f"Executing op AddV2 in device {CPU}, at ")
    assert third.startswith(f"Executing op AsString in device {CPU} (GPU:0 was asked for), at ")


def test_profiles_show_copies_and_kernels() -> None:
    profile = profiling.start()
    try:
        with ag.device("/GPU:0"):
            y = ag.function(lambda x: x * 2.0 + 1.0, jit_compile=True)(ag.constant(X))
        np.testing.assert_array_equal(y.numpy(), X * 2.0 + 1.0)
    finally:
        profiling.stop(profile)
    found = {(event.category, event.name): event.arguments for event in profile.events}
    assert found["copy", "copy to GPU:0"] == {"bytes": X.nbytes}
    assert found["copy", "copy from GPU:0"] == {"bytes": X.nbytes}
    assert [name for kind, name in found if kind == "device"] == ["<lambda> on GPU:0"]
