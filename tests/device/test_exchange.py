"""Tensors on GPUs in and out of other libraries, without copies."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import autograph as ag
from runtime import device
from runtime.gpu import dlpack
from tests.device.on_device import gpus


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An emulated GPU."""
    with gpus():
        yield device.logical_gpus()[0].backend


def test_numpy_reads_an_emulated_gpus_memory(gpu: Any) -> None:
    if gpu.record is None:
        pytest.skip("NumPy doesn't come to a real GPU's memory")
    x = ag.constant([[1.0, 2.0], [3.0, 4.0]]).gpu() * 2.0
    assert x.__dlpack_device__() == (1, 0)
    array = np.from_dlpack(x)
    np.testing.assert_array_equal(array, [[2, 4], [6, 8]])
    if dlpack_is_versioned():
        assert array.ctypes.data == x.held.address()  # type: ignore[attr-defined]
        assert not array.flags.writeable
    held = len(dlpack._held)
    del array
    gc.collect()
    assert len(dlpack._held) == held - 1


def dlpack_is_versioned() -> bool:
    return bool(np.lib.NumpyVersion(np.__version__) >= "2.1.0")


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "uint16", "float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3, 4)])
def test_there_and_back(dtype: str, shape: tuple[int, ...], gpu: Any) -> None:
    gpu.dlpack_type = 2  # taken for a GPU of NVIDIA's, to which NumPy doesn't come
    numbers = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    x = ag.constant(numbers).gpu()
    assert x.__dlpack_device__() == (2, 0)
    y = ag.experimental.dlpack.from_dlpack(x)
    assert y.device.endswith("GPU:0")
    assert y.dtype == x.dtype and y.shape == x.shape
    np.testing.assert_array_equal(y.numpy(), numbers)
    np.testing.assert_array_equal((y == x).numpy(), numbers == numbers)


def test_memory_is_shared_and_given_back(gpu: Any) -> None:
    gpu.dlpack_type = 2
    x = ag.constant([1.0, 2.0, 3.0]).gpu()

    class Consumer:
        """What asks for version 1, as CuPy and torch do."""

        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 0

        def __dlpack__(self, **options: Any) -> Any:
            return x.__dlpack__(**options, max_version=(1, 0))

    before = len(dlpack._held)
    y = ag.experimental.dlpack.from_dlpack(Consumer())
    theirs, ours = (each.held.address() for each in (y, x))
    assert theirs == ours
    assert len(dlpack._held) == before + 1
    del x
    assert float((y + 1.0)[2]) == 4.0
    del y
    gc.collect()
    assert len(dlpack._held) == before


def test_capsules_that_nobody_takes(gpu: Any) -> None:
    x = ag.constant([1.0, 2.0]).gpu()
    before = len(dlpack._held)
    for version in (None, (1, 0)):
        capsule = x.__dlpack__(max_version=version)
        assert len(dlpack._held) == before + 1
        del capsule
        assert len(dlpack._held) == before
    capsule = x.__dlpack__()
    dlpack.taken(capsule, device.logical_gpus()[0])
    with pytest.raises(ValueError, match="already consumed"):
        dlpack.taken(capsule, device.logical_gpus()[0])
    with pytest.raises(BufferError, match="read-only"):
        x.__dlpack__(copy=False)
    with pytest.raises(BufferError, match=r"on GPU:0, not on DLPack's device \(2, 5\)"):
        x.__dlpack__(dl_device=(2, 5))


def test_arrays_with_gaps_are_refused(gpu: Any) -> None:
    capsule = np.zeros((4, 6), np.float32)[:, ::2].__dlpack__()
    with pytest.raises(BufferError, match="gaps"):
        dlpack.taken(capsule, device.logical_gpus()[0])
    capsule = np.zeros(3, np.complex64).__dlpack__()
    with pytest.raises(BufferError, match=r"dtype \(5, 64, 1\)"):
        dlpack.taken(capsule, device.logical_gpus()[0])


def test_cuda_array_interface(gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = ag.constant([[1, 2, 3]]).gpu()
    emulated = gpu.record is not None
    assert hasattr(x, "__cuda_array_interface__") == (not emulated)
    assert not hasattr(ag.constant(1), "__cuda_array_interface__")
    monkeypatch.setattr(gpu, "record", None)
    facts = x.__cuda_array_interface__
    address, read_only = facts.pop("data")
    assert read_only
    assert facts == {"shape": (1, 3), "typestr": "<i4", "version": 3, "strides": None, "stream": 1}
    if emulated:
        assert list((ctypes.c_int32 * 3).from_address(address)) == [1, 2, 3]
