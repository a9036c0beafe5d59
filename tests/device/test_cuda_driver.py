"""The calls of the CUDA driver, against its header and against a library in C that keeps its rules (`driver.c`)."""

from __future__ import annotations

import ctypes
import ctypes.util
import gc
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autograph as ag
from runtime import device, errors
from runtime.codegen.device.device_kernel import DeviceKernel
from runtime.codegen.lower.lower_graph import lower
from runtime.gpu import cuda, cuda_driver
from runtime.gpu.interface import Shape
from runtime.gpu.memory import DeviceArray
from tests.device.pretended import Pretended, compiled
from tests.device.toolkit import cuda_header

ROOT = Path(__file__).resolve().parents[2]
VECTOR = np.arange(50, dtype=np.float32)


@pytest.fixture
def driver() -> Iterator[Pretended]:
    with Pretended().installed() as found:
        yield found
        gc.collect()
    assert found.complaints() == []
    assert found.library.fake_context_depth() == 0


# --- the header ------------------------------------------------------------------------------------------------------

_C_TYPES = {
    "int": ctypes.c_int, "unsigned int": ctypes.c_uint, "size_t": ctypes.c_size_t, "CUdevice": ctypes.c_int,
    "CUdeviceptr": ctypes.c_uint64, "CUresult": ctypes.c_int, "CUdevice_attribute": ctypes.c_int,
    "CUfunction_attribute": ctypes.c_int, "CUmemPool_attribute": ctypes.c_int, "CUjitInputType": ctypes.c_int,
    **dict.fromkeys(
        ["CUcontext", "CUmodule", "CUfunction", "CUstream", "CUmemoryPool", "CUlinkState"], ctypes.c_void_p
    ),
}  # fmt: skip


def _in_ctypes(text: str) -> Any:
    """The type of a parameter in C, without its name."""
    text = text.replace("const", "").strip()
    stars = text.count("*")
    base = text.replace("*", "").strip()
    if not stars:
        return _C_TYPES[base]
    if base == "char":
        return ctypes.c_char_p if stars == 1 else ctypes.POINTER(ctypes.c_char_p)
    if base == "void":
        return ctypes.c_void_p if stars == 1 else ctypes.POINTER(ctypes.c_void_p)
    return ctypes.POINTER(_C_TYPES[base]) if base in _C_TYPES else ctypes.c_void_p


@pytest.mark.skipif(cuda_header() is None, reason="cuda.h isn't installed (the package nvidia-cuda-runtime has it)")
def test_prototypes_are_those_of_the_header() -> None:
    path = cuda_header()
    assert path is not None
    text = path.read_text(encoding="utf-8", errors="replace")
    # The names that the library exports: the header's macros, but for those of streams per thread.
    exported = dict(re.findall(r"^ *#define +(cu\w+) +(?:__CUDA_API_PT[DS]Z?S?\()?(cu\w+_v\d)\)?$", text, re.MULTILINE))
    seen = set()
    for name, parameters in re.findall(r"^CUresult CUDAAPI\s+(cu\w+)\(([^)]*)\);", text, re.MULTILINE):
        symbol = exported.get(name, name)
        if symbol not in cuda_driver.PROTOTYPES or symbol in seen:
            continue
        seen.add(symbol)
        declared = [each.strip() for each in parameters.split(",") if each.strip() not in ("", "void")]
        types = [_in_ctypes(re.sub(r"\w+$", "", each)) for each in declared]
        ours = cuda_driver.PROTOTYPES[symbol]
        assert len(ours) == len(types), symbol
        for one, other in zip(ours, types):
            # Any pointer may be declared as an address without a type; sizes have to agree.
            is_pointer = one is ctypes.c_void_p and ctypes.sizeof(other) == 8
            assert one is other or is_pointer, (symbol, one, other)
    assert seen == cuda_driver.PROTOTYPES.keys()


def test_the_pretended_driver_exports_what_is_called() -> None:
    if compiled() is None:
        pytest.skip("there is no C compiler")
    library = ctypes.CDLL(str(compiled()))
    assert [name for name in cuda_driver.PROTOTYPES if not hasattr(library, name)] == []


# --- launches --------------------------------------------------------------------------------------------------------


@ag.function
def scaled(x: Any, n: Any) -> Any:
    return x * ag.cast(n, ag.float32), ag.reduce_sum(x), x > 3.0


def test_a_function(driver: Pretended) -> None:
    with ag.device("/GPU:0"):
        product, total, large = scaled(ag.constant(VECTOR), ag.constant(3))
    assert product.device.endswith("GPU:0")
    np.testing.assert_array_equal(product.numpy(), 3 * VECTOR)
    np.testing.assert_array_equal(large.numpy(), VECTOR > 3)
    assert float(total) == VECTOR.sum()
    assert driver.launches == [Shape(1, 64)]
    assert not driver["cooperative_launches"]


def test_forms_of_launches(driver: Pretended) -> None:
    """As many threads as there is work for: one block or a cooperative grid, or threads that don't wait at all."""
    large = ag.constant(np.ones(100_000, np.float32)).gpu()
    total = ag.function(lambda x: ag.reduce_sum(x))
    total(large).numpy()
    assert driver.launches[-1] == Shape(8, 256)  # as many as run at a time
    assert driver["cooperative_launches"] == 1
    total(ag.constant(VECTOR).gpu()).numpy()
    assert driver.launches[-1] == Shape(1, 64)
    ag.function(lambda x: ag.sqrt(x) + 1.0)(large).numpy()
    assert driver.launches[-1] == Shape(8, 256)
    assert driver["cooperative_launches"] == 1

    ag.function(lambda x: ag.stack([x[0] * 2.0, x[1]]))(large[:100]).numpy()
    assert driver.launches[-1] == Shape(1, 32)


@pytest.mark.parametrize(
    ("rows", "columns", "products", "shape"),
    [
        (100_000, 1, False, Shape(4, 768)),
        (30_000, 1, False, Shape(4, 512)),
        (3_500, 1, False, Shape(1, 768)),
        (9_000, 1, False, Shape(4, 256)),
        (12_500, 8, True, Shape(8, 256)),  # a product's tiles are for 256 threads
    ],
)
def test_forms_of_loops_whose_trips_wait(
    rows: int, columns: int, products: bool, shape: Shape, driver: Pretended
) -> None:
    """One block for each multiprocessor, which grows, once there is work for that."""

    @ag.function(jit_compile=True)
    def halved(x: Any) -> Any:
        n = 0
        while ag.reduce_max(x) > 1.0:
            x = x * 0.5
            if products:
                x = x + 0.0 * (x @ ag.transpose(x[:8]))
            n += 1
        return n

    assert int(halved(ag.constant(np.full((rows, columns), 4.0, np.float32)).gpu())) == 2
    assert driver.launches[-1] == shape


def test_numbers_alone_stay_on_the_processor(driver: Pretended) -> None:
    @ag.function
    def root(x: Any) -> Any:
        y = x
        while y * y > x + 1e-3:
            y = 0.5 * (y + x / y)
        return y

    found = root(ag.constant(2.0).gpu())
    assert found.device.endswith("GPU:0")
    assert abs(float(found) - 2**0.5) < 1e-3
    assert driver.launches == []
    assert "since it computes with numbers only" in root.explain(ag.constant(2.0).gpu())


def test_two_gpus(driver: Pretended) -> None:
    assert len(ag.config.list_physical_devices("GPU")) == 2
    details = ag.config.experimental.get_device_details(ag.config.list_physical_devices("GPU")[1])
    assert details == {"device_name": "Pretended GPU 1", "compute_capability": (9, 0)}
    with ag.device("/GPU:1"):
        x = ag.constant(VECTOR) + 1.0
    assert x.device.endswith("GPU:1")
    with ag.device("/GPU:0"):
        y = x * 2.0
    assert driver["peer_copies"] == 1
    assert ag.config.experimental.get_transfer_info("GPU:1")["from_device"] == 0
    np.testing.assert_array_equal(y.numpy(), 2 * VECTOR + 2)


def test_memory_is_given_back(driver: Pretended) -> None:
    x = ag.constant(np.ones(100_000, np.float32)).gpu()
    (x + 1.0).numpy()
    before = driver.library.fake_taken()
    for _ in range(5):
        (x + 1.0).numpy()
    assert driver.library.fake_taken() == before
    del x  # it is kept for the next array of this size
    again = ag.constant(np.ones(100_000, np.float32)).gpu()
    (again + 1.0).numpy()
    assert driver.library.fake_taken() == before
    del again
    # All that is kept goes back when it is needed: 40 of 64 MiB fit twice only one after the other.
    for _ in range(2):
        y = ag.constant(np.ones(10_000_000, np.float32)).gpu()
        ag.reduce_sum(y).numpy()
        del y
        gone = ag.constant(np.ones(7_000_000, np.float32)).gpu()
        ag.reduce_sum(gone).numpy()
        del gone


def test_code_is_kept(driver: Pretended, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOGRAPH_CACHE_DIR", str(tmp_path))

    def first(x: Any) -> Any:
        return ag.sinh(x) * 3.0

    for expected in (1, 1, 2):
        place = device.logical_gpus()[0]
        x = DeviceArray(place, VECTOR.shape, VECTOR.dtype, VECTOR)
        spec = ag.TensorSpec([None], ag.float32)
        kernel = DeviceKernel(lower(ag.function(first).get_concrete_function(spec).graph, for_device=True), place)
        np.testing.assert_allclose(kernel([x])[-1].on_host(), np.sinh(VECTOR) * 3, rtol=1e-5)
        assert driver["assembled"] == expected
        if len(driver.launches) == 2:
            for file in (tmp_path / "kernels").glob("d_*"):
                file.write_bytes(b"damaged")
        del kernel
        assert driver["live_modules"] == 0


def test_a_gpu_without_pools(driver: Pretended) -> None:
    driver["no_pools"] = 1
    x = ag.constant(VECTOR).gpu()
    np.testing.assert_array_equal((x + 1.0).numpy(), VECTOR + 1)
    del x
    gc.collect()


def test_threads(driver: Pretended) -> None:
    """Each thread has contexts of its own."""
    x = ag.constant(VECTOR).gpu()
    f = ag.function(lambda x: ag.reduce_sum(x * x))
    found: list[float] = []

    def run() -> None:
        for _ in range(5):
            found.append(float(f(x)))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [float((VECTOR * VECTOR).sum())] * 20


# --- what goes wrong -------------------------------------------------------------------------------------------------


def test_no_memory(driver: Pretended) -> None:
    x = ag.constant(np.ones(10_000_000, np.float32)).gpu()
    with pytest.raises(errors.ResourceExhaustedError, match=r"38\.1 MiB for .* but .* of 64\.0 MiB are free"):
        x + 1.0  # noqa: B018
    del x
    gc.collect()
    assert float((ag.constant(VECTOR).gpu() + 1.0)[0]) == 1.0


def test_errors_at_the_users_line(driver: Pretended) -> None:
    f = ag.function(lambda x, i: ag.gather(x, i))
    x = ag.constant(VECTOR).gpu()
    with pytest.raises(errors.InvalidArgumentError, match="77"):
        f(x, ag.constant([1, 77]).gpu())
    np.testing.assert_array_equal(f(x, ag.constant([1, 7]).gpu()).numpy(), [1, 7])


def test_a_kernel_that_fails(driver: Pretended) -> None:
    x = ag.constant(VECTOR).gpu()
    driver["fail_next_launch"] = 1
    with pytest.raises(errors.InternalError) as caught:
        ag.function(lambda x: x + 2.0)(x)
    text = str(caught.value)
    assert (
        "cuStreamQuery failed: an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS, status 700)"
        in text
    )
    assert "blocks of 64 threads" in text and "start a new process" in text and "compute-sanitizer" in text
    del x
    gc.collect()  # nothing is said about memory that can't be freed any more


def test_ptx_that_is_refused(driver: Pretended) -> None:
    gpu = cuda.Cuda()
    with gpu.entered, pytest.raises(errors.InternalError, match="fatal: Parsing error.*PTX: .version 8.0"):
        gpu._assembled(".version 8.0\n.visible .entry kernel()\n syntax error", "kernel")


def _all_together(x: Any) -> Any:
    while ag.reduce_max(x) < 1e30:
        x = x * 0.5
    return x


def _each_alone(x: Any) -> Any:
    def one(v: Any) -> Any:
        while v < 1e30:
            v = v * 0.5
        return v

    return ag.vectorized_map(one, x)


def _one_thread(x: Any) -> Any:
    total, numbers = x[0], ag.TensorArray(ag.float32, size=3, clear_after_read=False)
    numbers = numbers.unstack(x[:3])
    while total < 1e30:
        numbers = numbers.write(1, numbers.read(0) + numbers.read(1))
        total = total * 0.5
    return numbers.stack()


@pytest.mark.parametrize("program", [_all_together, _each_alone, _one_thread])
def test_ctrl_c_ends_a_loop(program: Any, driver: Pretended) -> None:
    driver["slow"] = 1
    forever = ag.function(program, jit_compile=True)
    x = ag.constant(VECTOR).gpu()
    forever.get_concrete_function(x)

    def interrupt() -> None:
        while not driver["launches"]:
            time.sleep(0.01)
        time.sleep(0.2)
        signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            forever(x)
    finally:
        signal.signal(signal.SIGINT, before)
    thread.join()
    driver["slow"] = 0
    np.testing.assert_array_equal((x + 1.0).numpy(), VECTOR + 1)


# --- processes -------------------------------------------------------------------------------------------------------


def _process(text: str, **environment: str) -> subprocess.CompletedProcess[str]:
    if compiled() is None:
        pytest.skip("there is no C compiler")
    chosen = {"AUTOGRAPH_CUDA_DRIVER": str(compiled()), **environment}
    command = [sys.executable, "-c", text]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **chosen}, capture_output=True, text=True, timeout=120)


def test_a_forked_child() -> None:
    done = _process(
        "import os, autograph as ag\n"
        "x = ag.ones([3]).gpu()\n"
        "x.__cuda_array_interface__\n"
        "if os.fork() == 0:\n"
        "    try:\n"
        "        ag.ones([4]).gpu().__cuda_array_interface__\n"
        "    except ag.errors.InternalError as error:\n"
        "        print(error)\n"
        "    del x\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "print(x.device)\n"
    )
    assert "can't be used by its forked children" in done.stdout, done.stderr
    assert done.stdout.endswith("GPU:0\n") and not done.stderr


def test_the_log() -> None:
    done = _process("import autograph as ag\nag.ones([3]).gpu().__cuda_array_interface__\n", AUTOGRAPH_CUDA_LOG="-")
    assert done.returncode == 0
    assert "cuInit(0) = 0\n" in done.stderr
    assert re.search(r"cuMemcpyHtoD_v2\(0x\w+, 0x\w+, 12\) = 0\n", done.stderr)


@pytest.mark.parametrize(
    ("library", "said"),
    [("/nowhere/libcuda.so", "no CUDA driver"), (ctypes.util.find_library("m") or "", "it has no cuInit")],
)
def test_no_driver(library: str, said: str) -> None:
    done = _process(
        "import autograph as ag\nassert not ag.config.list_physical_devices('GPU')\nag.ones([3]).gpu()\n",
        AUTOGRAPH_CUDA_DRIVER=library,
    )
    assert done.returncode == 1
    assert said in done.stderr, done.stderr


def test_the_driver_finds_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Pretended()
    found["no_device"] = 1
    with found.installed():
        assert cuda.device_count() == 0
        assert cuda.why_none() == (
            "cuInit failed: no CUDA-capable device is detected (CUDA_ERROR_NO_DEVICE, status 100)"
        )
        with pytest.raises(errors.InvalidArgumentError, match="there is no GPU 0: cuInit failed"):
            cuda.Cuda()


def test_a_gpu_that_is_too_old() -> None:
    found = Pretended()
    found["old"] = 1
    with (
        found.installed(),
        pytest.raises(errors.InvalidArgumentError, match=r"compute capability 6\.0; kernels need at least 7\.0"),
    ):
        cuda.Cuda()
