"""GPUs that a library in C pretends to have (`driver.c`), in place of the CUDA driver: all that a real GPU is asked for
goes through ctypes, and kernels run on emulated threads."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import itertools
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runtime import device
from runtime.codegen.device import launch
from runtime.gpu import cublas, cuda_driver
from runtime.gpu.emulator import Emulator
from runtime.gpu.interface import C_TYPES, Shape
from runtime.llvm import device_layout as layout
from tests.device.toolkit import cuda_header

_SOURCE = Path(__file__).with_name("driver.c")
_numbers = itertools.count()


@functools.cache
def _folder() -> Path:
    folder = tempfile.TemporaryDirectory()
    _kept.append(folder)
    return Path(folder.name)


_kept: list[Any] = []


@functools.cache
def compiled() -> Path | None:
    """The library; None without a C compiler. Raises CalledProcessError if its prototypes aren't those of `cuda.h`."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    header = cuda_header()
    checked = [] if header is None else ["-DHAVE_CUDA_H", f"-I{header.parent}"]
    path = _folder() / "libcuda.so"
    command = [compiler, "-Wall", "-Wextra", "-Werror", *checked, "-shared", "-fPIC", "-pthread"]
    subprocess.run([*command, "-o", str(path), str(_SOURCE)], check=True, capture_output=True, text=True)
    return path


class Pretended:
    """A loaded library, with nothing in use."""

    def __init__(self, shape: Shape = Shape(2, 2)) -> None:
        """shape: in which its kernels really run."""
        path = compiled()
        if path is None:
            pytest.skip("there is no C compiler")
        own = _folder() / f"libcuda{next(_numbers)}.so"  # whose variables are its own
        shutil.copy(path, own)
        self.library = ctypes.CDLL(str(own))
        self.library.fake_taken.restype = ctypes.c_size_t
        self.emulator = Emulator(shape)
        self.launches: list[Shape] = []
        self._modules: dict[bytes, Any] = {}
        self._launch = ctypes.CFUNCTYPE(
            ctypes.c_int,
            ctypes.c_char_p,
            ctypes.c_char_p,
            ctypes.c_uint,
            ctypes.c_uint,
            ctypes.POINTER(ctypes.c_void_p),
        )(self._run)
        self.library.fake_run_kernels_by(self._launch)

    def __getitem__(self, name: str) -> int:
        return ctypes.c_int.in_dll(self.library, f"fake_{name}").value

    def __setitem__(self, name: str, value: int) -> None:
        ctypes.c_int.in_dll(self.library, f"fake_{name}").value = value

    def complaints(self) -> list[str]:
        """What rules of the driver's were broken."""
        texts = (ctypes.c_char * 256 * 32).in_dll(self.library, "fake_complaints")
        return [texts[number].value.decode() for number in range(self["complaint_count"])]

    def knows(self, source: Any) -> Any:
        """A kernel's module for a GPU; what it is in PTX can be launched from now on."""
        module = _device_module(source)
        self._modules[module.ptx("sm_90").encode()] = source
        return module

    def _run(self, name: bytes, text: bytes, blocks: int, threads: int, parameters: Any) -> int:
        if sys.is_finalizing():
            return 0  # nobody will read what it leaves
        self.launches.append(Shape(blocks, threads))
        found = self._modules[text]
        if not isinstance(found, tuple):
            module = _device_module(found, Emulator.record)
            found = self._modules[text] = module.kinds, self.emulator.load(module)
        kinds, kernel = found
        environment, *given = [C_TYPES[kind].from_address(at).value for kind, at in zip(kinds, parameters)]
        # Emulated threads need more memory than those of a GPU.
        shape, size = self.emulator.shape, layout.EMULATED
        larger = np.zeros(layout.environment_size(shape.blocks, shape.threads), np.uint8)
        own = larger.ctypes.data
        ctypes.memmove(own, environment, size)
        done = threading.Event()
        watch = threading.Thread(target=_forward_stop, args=(environment + layout.STOP, own + layout.STOP, done))
        watch.start()
        collects = gc.isenabled()
        gc.disable()  # what goes meanwhile would wait for the end of this
        try:
            self.emulator.launch(kernel, [own, *given], shape, True, own + layout.STOP)
        finally:
            if collects:
                gc.enable()
            done.set()
            watch.join()
            ctypes.memmove(environment, own, size)
        return 0

    @contextlib.contextmanager
    def installed(self) -> Iterator[Pretended]:
        """Within it, the process finds these GPUs."""
        drivers, modules, library = cuda_driver.driver, launch.device_module, cublas.library
        found = cuda_driver.Driver(self.library)
        backends, device._state.backends = device._state.backends, {}
        device.emulate_gpus(0)
        setattr(cuda_driver, "driver", lambda: found)
        setattr(launch, "device_module", lambda source, record: self.knows(source))
        setattr(cublas, "library", lambda: None)  # which would ask the real driver
        try:
            yield self
        finally:
            device._state.backends = backends
            device.emulate_gpus(0)
            cuda_driver.driver, launch.device_module, cublas.library = drivers, modules, library


_device_module = launch.device_module


def _forward_stop(source: int, target: int, done: threading.Event) -> None:
    """Copies a number, which the host may set, until a launch is done."""
    while not done.wait(0.01):
        ctypes.memmove(target, source, 8)
