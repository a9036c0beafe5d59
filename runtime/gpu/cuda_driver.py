"""The library of NVIDIA's driver, by ctypes: which functions are called, what they take, and what they say when they
fail.

`PROTOTYPES` are those of `cuda.h`, under the names that the library exports (`cuMemAlloc` of the header is
`cuMemAlloc_v2`). Each returns a CUresult. *Kept by* `tests/device/test_cuda_driver.py`, which reads the header.

`AUTOGRAPH_CUDA_LOG` names a file for every call, its arguments and its status, written before the next one begins;
`-` is the standard error. `AUTOGRAPH_CUDA_DRIVER` names another library.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any

from runtime import errors, system

_SO_FAR = 12000  # the oldest driver that has everything here: CUDA 12.0

OUT_OF_MEMORY, DEINITIALIZED, NO_DEVICE, CONTEXT_IS_DESTROYED = 2, 4, 100, 709
# After these the driver refuses all that the process asks of the GPU.
_STICKY = {700, 702, 714, 715, 716, 717, 718, 719, 999}

# CUdevice is an int, CUdeviceptr an unsigned 64-bit integer; contexts, modules, functions, streams, pools and states of
# the linker are pointers. What is written to, and what C declares as an array, are pointers too.
_DEVICE, _ADDRESS, _HANDLE, _OUT = c_int, c_uint64, c_void_p, c_void_p
_DIMENSIONS = (c_uint,) * 6
PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuDriverGetVersion": (POINTER(c_int),),
    "cuGetErrorName": (c_int, POINTER(c_char_p)),
    "cuGetErrorString": (c_int, POINTER(c_char_p)),
    # devices
    "cuDeviceGetCount": (POINTER(c_int),),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDeviceGetName": (c_char_p, c_int, _DEVICE),
    "cuDeviceGetAttribute": (POINTER(c_int), c_int, _DEVICE),
    "cuDevicePrimaryCtxRetain": (POINTER(_HANDLE), _DEVICE),
    # contexts: each thread has a stack of them
    "cuCtxPushCurrent_v2": (_HANDLE,),
    "cuCtxPopCurrent_v2": (POINTER(_HANDLE),),
    # memory
    "cuMemGetInfo_v2": (POINTER(c_size_t), POINTER(c_size_t)),
    "cuDeviceGetDefaultMemPool": (POINTER(_HANDLE), _DEVICE),
    "cuMemPoolSetAttribute": (_HANDLE, c_int, _OUT),
    "cuMemAllocAsync": (POINTER(_ADDRESS), c_size_t, _HANDLE),
    "cuMemFreeAsync": (_ADDRESS, _HANDLE),
    "cuMemAlloc_v2": (POINTER(_ADDRESS), c_size_t),
    "cuMemFree_v2": (_ADDRESS,),
    "cuMemHostAlloc": (POINTER(c_void_p), c_size_t, c_uint),
    "cuMemHostGetDevicePointer_v2": (POINTER(_ADDRESS), c_void_p, c_uint),
    "cuMemcpyHtoD_v2": (_ADDRESS, c_void_p, c_size_t),
    "cuMemcpyHtoDAsync_v2": (_ADDRESS, c_void_p, c_size_t, _HANDLE),
    "cuMemcpyDtoH_v2": (c_void_p, _ADDRESS, c_size_t),
    "cuMemcpyDtoD_v2": (_ADDRESS, _ADDRESS, c_size_t),
    "cuMemcpyPeer": (_ADDRESS, _HANDLE, _ADDRESS, _HANDLE, c_size_t),
    # code
    "cuLinkCreate_v2": (c_uint, _OUT, _OUT, POINTER(_HANDLE)),
    "cuLinkAddData_v2": (_HANDLE, c_int, c_void_p, c_size_t, c_char_p, c_uint, _OUT, _OUT),
    "cuLinkComplete": (_HANDLE, POINTER(c_void_p), POINTER(c_size_t)),
    "cuLinkDestroy": (_HANDLE,),
    "cuModuleLoadData": (POINTER(_HANDLE), c_void_p),
    "cuModuleGetFunction": (POINTER(_HANDLE), _HANDLE, c_char_p),
    "cuModuleUnload": (_HANDLE,),
    "cuFuncGetAttribute": (POINTER(c_int), c_int, _HANDLE),
    "cuOccupancyMaxActiveBlocksPerMultiprocessor": (POINTER(c_int), _HANDLE, c_int, c_size_t),
    # streams and launches: function, grid and block, bytes of shared memory, stream, arguments
    "cuStreamCreate": (POINTER(_HANDLE), c_uint),
    "cuStreamQuery": (_HANDLE,),
    "cuStreamSynchronize": (_HANDLE,),
    "cuLaunchKernel": (_HANDLE, *_DIMENSIONS, c_uint, _HANDLE, _OUT, _OUT),
    "cuLaunchCooperativeKernel": (_HANDLE, *_DIMENSIONS, c_uint, _HANDLE, _OUT),
}


class Driver:
    """The driver's library, initialised.

    reason    why it can't be used; None: it can
    version   the newest CUDA that it knows: 12080 is 12.8
    process   which initialised it: its forked children can't use it
    lost      what ended the process's work on the GPU, if something did
    """

    def __init__(self, library: Any, log: Any = None) -> None:
        self._log = log
        self.version = 0
        self.process = os.getpid()
        self.lost: str | None = None
        self._functions: dict[str, Any] = {}
        self._logged: list[Any] = []  # functions that machine code calls
        for name, types in PROTOTYPES.items():
            function = getattr(library, name, None)
            if function is not None:
                function.argtypes, function.restype = types, c_int
                self._functions[name] = function
        self.reason = self._started(getattr(library, "_name", "libcuda"))

    def _started(self, name: str) -> str | None:
        if "cuInit" not in self._functions:
            return f"{name} isn't the CUDA driver: it has no cuInit"
        status = self.status("cuInit", 0)
        if status:
            return f"cuInit failed: {self.meaning(status)}"
        version = c_int()
        status = self.status("cuDriverGetVersion", ctypes.byref(version))
        if status:
            return f"cuDriverGetVersion failed: {self.meaning(status)}"
        self.version = version.value
        missing = sorted(PROTOTYPES.keys() - self._functions.keys())
        if missing:
            return (
                f"the CUDA driver {self.version_text()} is too old (it lacks {', '.join(missing)}); "
                f"update it to {_SO_FAR // 1000}.0 or later"
            )
        return None

    @functools.cached_property
    def devices(self) -> int:
        """How many GPUs it finds."""
        if self.reason is not None:
            return 0
        count = c_int()
        status = self.status("cuDeviceGetCount", ctypes.byref(count))
        if status == NO_DEVICE:
            return 0
        if status:
            raise self.error("cuDeviceGetCount", status)
        return count.value

    def version_text(self) -> str:
        return f"{self.version // 1000}.{self.version % 1000 // 10}"

    def status(self, name: str, *arguments: Any) -> int:
        """Calls a function; its CUresult."""
        if self._log is None:
            found: int = self._functions[name](*arguments)
            return found
        self._log.write(f"{name}({', '.join(_shown(each) for each in arguments)})")
        self._log.flush()
        found = self._functions[name](*arguments)
        self._log.write(f" = {self.meaning(found) if found else 0}\n")
        self._log.flush()
        return found

    def address(self, name: str) -> int:
        """The address of a function for machine code: of one that logs its calls, where they are logged."""
        function = self._functions[name]
        if self._log is not None:
            logged = ctypes.CFUNCTYPE(c_int, *PROTOTYPES[name])(functools.partial(self.status, name))
            self._logged.append(logged)
            function = logged
        found = ctypes.cast(function, c_void_p).value
        assert found is not None
        return found

    def __call__(self, name: str, *arguments: Any) -> None:
        """Calls a function. Raises InternalError if it fails."""
        status = self.status(name, *arguments)
        if status:
            raise self.error(name, status)

    def error(self, name: str, status: int, more: str = "") -> errors.InternalError:
        """The error for a call that failed."""
        text = f"the CUDA driver's {name} failed: {self.meaning(status)}{more}"
        if status in _STICKY:
            self.lost = self.lost or text
            text += (
                ". The driver refuses further work on the GPU from this process: start a new process. This is a bug of "
                "the compiler; `compute-sanitizer python ...` shows which access was wrong"
            )
        return errors.InternalError(text)

    def meaning(self, status: int) -> str:
        """A CUresult in words."""
        name, text = c_char_p(), c_char_p()
        if "cuGetErrorName" in self._functions:
            self._functions["cuGetErrorName"](status, ctypes.byref(name))
            self._functions["cuGetErrorString"](status, ctypes.byref(text))
        said = (text.value or b"an unknown error").decode(errors="replace")
        return f"{said} ({(name.value or b'CUresult').decode(errors='replace')}, status {status})"


def _shown(argument: Any) -> str:
    """An argument of a call, for the log."""
    if isinstance(argument, bytes):
        return f"<{len(argument)} bytes>"
    if isinstance(argument, ctypes._SimpleCData):
        argument = argument.value
    return hex(argument) if isinstance(argument, int) and argument > 1 << 16 else repr(argument).replace("\n", " ")


@functools.cache
def driver() -> Driver | None:
    """The driver; None where there is no library of that name."""
    chosen = os.environ.get("AUTOGRAPH_CUDA_DRIVER")
    for name in (chosen,) if chosen else system.cuda_drivers():
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        return Driver(library, _log())
    return None


def _log() -> Any:
    path = os.environ.get("AUTOGRAPH_CUDA_LOG")
    if not path:
        return None
    return sys.stderr if path == "-" else open(path, "a", encoding="utf-8")  # for as long as the process lives
