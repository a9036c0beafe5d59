"""`python -m tests.device.first_calls`: what is installed, and the first calls of the driver, one after the other, so
that the first failure on a machine that nobody has tried is clear from this output alone.

AUTOGRAPH_TEST_DEVICE says where: `cuda` (by default), `pretended`, or BLOCKSxTHREADS of the emulator.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("AUTOGRAPH_CUDA_LOG", "-")

import autograph as ag  # noqa: E402
from runtime import device, profiling  # noqa: E402
from runtime.codegen.device.device_kernel import DeviceKernel  # noqa: E402
from runtime.codegen.lower.lower_graph import lower  # noqa: E402
from runtime.gpu import cuda, cuda_driver  # noqa: E402
from runtime.gpu.memory import DeviceArray  # noqa: E402
from tests.device.on_device import gpus  # noqa: E402

_PACKAGES = "numpy llvmlite numba numba-cuda cuda-bindings torch jax cupy-cuda13x cupy-cuda12x".split()


def what_is_here() -> None:
    """Versions, and what nvidia-smi says."""
    print(f"Python {platform.python_version()}, {platform.platform()}")
    for name in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            print(f"  {name} {importlib.metadata.version(name)}")
    for name in ("nvidia-smi", "compute-sanitizer", "ptxas"):
        print(f"  {name}: {shutil.which(name) or 'not found'}")
    if shutil.which("nvidia-smi"):
        done = subprocess.run(["nvidia-smi"], capture_output=True, text=True, timeout=30)
        print(done.stdout + done.stderr)
    chosen = {name: value for name, value in os.environ.items() if name.startswith(("CUDA", "NVIDIA", "AUTOGRAPH"))}
    print(f"  environment: {chosen}")


def _kernel(place: Any, function: Callable[..., Any]) -> DeviceKernel:
    spec = ag.TensorSpec([None], ag.float32)
    return DeviceKernel(lower(ag.function(function).get_concrete_function(spec).graph, for_device=True), place)


def checks() -> Iterator[tuple[str, Callable[[], object]]]:
    """What is tried, in an order in which each needs what was before."""
    vector = np.arange(100, dtype=np.float32)
    large = np.ones(1_000_000, np.float32)
    state: dict[str, Any] = {}

    def driver_found() -> None:
        if os.environ.get("AUTOGRAPH_TEST_DEVICE", "cuda") in ("cuda", "pretended"):
            found = cuda_driver.driver()
            assert found is not None and found.reason is None, cuda.why_none()
            print(f"  CUDA {found.version_text()}, {found.devices} GPUs")

    def place() -> None:
        state["place"] = found = device.logical_gpus()[0]
        print(f"  {found}, {found.backend.compute_capability}, memory {found.backend.memory_info()}")

    def copies() -> None:
        array = DeviceArray(state["place"], vector.shape, vector.dtype, vector)
        array.address()
        again = array.copied()
        again._host = None
        np.testing.assert_array_equal(again.on_host(), vector)

    def across() -> None:
        first, second = device.logical_gpus()[:2]
        array = DeviceArray(first, vector.shape, vector.dtype, vector)
        array.address()
        array._host = None
        back = second.traffic.back + first.traffic.back
        moved = array.moved_to(second)
        assert second.traffic.back + first.traffic.back == back, "it went by way of the host"
        np.testing.assert_array_equal(moved.on_host(), vector)

    def runs(function: Callable[..., Any], array: np.ndarray, expected: Any) -> Callable[[], None]:
        def check() -> None:
            kernel = _kernel(state["place"], function)
            before = time.perf_counter()
            found = kernel([array])[-1]
            found = found.on_host() if isinstance(found, DeviceArray) else found
            print(f"  {kernel.form}, {(time.perf_counter() - before) * 1e6:.0f} us with its copies")
            np.testing.assert_allclose(found, expected, rtol=1e-5)

        return check

    def compiling() -> None:
        """How long it takes, step by step: the first function also pays for what the process loads once."""
        functions = [lambda x: ag.tanh(ag.exp(-x * x) * 2.0 + ag.sin(x)), lambda x: ag.exp(-x * x) * 3.0 + ag.tanh(x)]
        with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            patch.setenv("AUTOGRAPH_CACHE_DIR", folder)
            x = ag.constant(vector).gpu()
            for function in functions:
                compiled = ag.function(function, jit_compile=True)
                before, profile = time.perf_counter(), profiling.start()
                compiled(x).numpy()
                profiling.stop(profile)
                print(f"  {(time.perf_counter() - before) * 1e3:.0f} ms:")
                for event in profile.events:
                    if event.category in ("trace", "compile", "device", "copy"):
                        print(f"    {event.duration / 1e6:7.1f} ms  {event.category}: {event.name}")

    def loop(x: Any) -> Any:
        n = 0
        while ag.reduce_sum(x) > 1.0 and n < 50:
            x = x * 0.5
            n += 1
        return x

    def placed() -> None:
        with ag.device("/GPU:0"):
            weights = ag.Variable(ag.ones([3]))
            with ag.GradientTape() as tape:
                total = ag.reduce_sum(weights * weights)
            np.testing.assert_array_equal(tape.gradient(total, weights).numpy(), [2, 2, 2])

    yield "the driver", driver_found
    yield "the GPU: context, attributes, pool, memory", place
    yield "copies to the GPU, within it and back", copies
    yield "a kernel without barriers", runs(lambda x: x * 2.0 + 1.0, vector, vector * 2 + 1)
    yield "the same, large", runs(lambda x: x * 2.0 + 1.0, large, large * 3)
    yield "how long compiling takes", compiling
    yield "a sum, in one block", runs(ag.reduce_sum, vector, vector.sum())
    yield "a sum, in a cooperative grid", runs(ag.reduce_sum, large, large.sum())
    yield "vector math", runs(lambda x: ag.sin(x) + ag.exp(-x), vector, np.sin(vector) + np.exp(-vector))
    yield "a loop in one block", runs(loop, vector + 1.0, (vector + 1.0) * 0.5**13)
    yield "a loop in a cooperative grid", runs(loop, large, large * 0.5**20)

    def replicas() -> None:
        strategy = ag.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
        with strategy.scope():
            weights: Any = ag.Variable(ag.ones([1000]))

        @ag.function
        def step(number: Any) -> None:
            with ag.GradientTape() as tape:
                loss = ag.reduce_sum(weights * weights) * number
            replica: Any = ag.distribute.get_replica_context()
            weights.assign_sub(0.1 * replica.all_reduce("SUM", tape.gradient(loss, weights)))

        numbers = strategy.experimental_distribute_values_from_function(
            lambda context: ag.constant(context.replica_id_in_sync_group + 1.0)
        )
        strategy.run(step, (numbers,))
        for each in weights.values:
            np.testing.assert_allclose(each.numpy(), 1 - 0.1 * 2 * 3, rtol=1e-6)

    yield "variables and a gradient", placed
    yield "a copy from one GPU to another", across
    yield "replicas on two GPUs", replicas


def main() -> int:
    """The exit code is 1 at the first failure."""
    what_is_here()
    with gpus():
        physical = ag.config.list_physical_devices("GPU")
        if len(physical) == 1:  # two logical ones are enough
            ag.config.set_logical_device_configuration(physical[0], [ag.config.LogicalDeviceConfiguration()] * 2)
        for name, check in checks():
            print(f"{name} ...", flush=True)
            sys.stderr.flush()
            try:
                check()
            except Exception:
                traceback.print_exc(file=sys.stdout)
                print(f"{name}: FAILED", flush=True)
                return 1
    print("all of the first calls work")
    return 0


if __name__ == "__main__":
    sys.exit(main())
