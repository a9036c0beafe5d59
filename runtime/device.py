"""Devices: what there is, and the `device` block that says where ops should run.

The CPU is where everything is that nothing else was said of. GPUs are those of the CUDA driver, and emulated ones
(`emulate_gpus`). Work follows its operands: what has an operand on a GPU runs there; a `device` block says otherwise.
"""

from __future__ import annotations

import enum
import operator
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from runtime import system
from runtime.context import block_inline_caches, ctx, placing
from runtime.dataclass import dataclass
from runtime.errors import InvalidArgumentError, UnimplementedError

if TYPE_CHECKING:
    from runtime.gpu.memory import LogicalGPU

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"


@dataclass(frozen=True)
class PhysicalDevice:
    """A device of this machine."""

    name: str
    device_type: str

    def __repr__(self) -> str:
        return f"PhysicalDevice(name='{self.name}', device_type='{self.device_type}')"


@dataclass(frozen=True)
class LogicalDevice:
    """A device to place operations on: a physical device, or a part of one."""

    name: str
    device_type: str

    def __repr__(self) -> str:
        return f"LogicalDevice(name='{self.name}', device_type='{self.device_type}')"


@dataclass(frozen=True)
class LogicalDeviceConfiguration:
    """How large a logical device is. memory_limit: MiB that tensors may take on a GPU. The CPU's memory isn't divided:
    its limit has no effect."""

    memory_limit: float | None = None
    experimental_priority: int | None = None
    experimental_device_ordinal: int | None = None


class _State:
    """What was configured, and the GPUs in use. emulated: how many GPUs are, with how much memory, with how many blocks
    and threads."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.soft = True
        self.logging = False
        self.emulated: tuple[int, int, tuple[int, int]] | None = None
        self.visible: list[PhysicalDevice] | None = None
        self.logical: dict[str, list[LogicalDeviceConfiguration]] = {}
        self.backends: dict[str, Any] = {}
        self.gpus: list[LogicalGPU] | None = None  # None: no GPU has been used yet
        self.named: dict[str, LogicalGPU | None] = {}


_state = _State()
# Called when the first GPU is used, or placement is to be told: puts what places work into `runtime.context.placing`.
on_first_use: list[Callable[[], None]] = []

_EMULATED = "AUTOGRAPH_EMULATED_GPUS"
_MEMORY, _THREADS = 1 << 30, (2, 2)


def emulate_gpus(count: int = 1, memory: int = _MEMORY, blocks: int = 2, threads: int = 2) -> None:
    """Adds emulated GPUs, which use this computer's threads and memory, to try GPU programs on a machine without one.

    They run the same kernels as a GPU, compiled for the processor, and slowly: a launch takes milliseconds. The
    environment variable AUTOGRAPH_EMULATED_GPUS sets their number from the start. Tensors on earlier emulated GPUs can
    still be read; without any GPU, the CPU computes with them.

    Args:
        count: how many; 0 removes them.
        memory: bytes of each.
        blocks, threads: how many blocks a kernel has, and how many threads each of these.

    Raises ValueError for numbers that are too small, TypeError for numbers that aren't whole.
    """
    count, memory, blocks, threads = map(operator.index, (count, memory, blocks, threads))
    if count < 0 or memory < 1 or blocks < 1 or threads < 1:
        raise ValueError(f"emulate_gpus takes positive numbers, got {count=}, {memory=}, {blocks=}, {threads=}")
    _require_threads(count)
    with _state.lock:
        _state.emulated = count, memory, (blocks, threads)
        _forget_gpus()
        _state.visible = None
        if not count and not _real_count() and not _state.logging:
            placing.clear()  # ops and calls need not ask any more


def _forget_gpus() -> None:
    _state.gpus = None
    _state.named.clear()
    for name in [name for name, backend in _state.backends.items() if backend.record is not None]:
        del _state.backends[name]
    for name in [name for name in _state.logical if ":GPU:" in name]:
        del _state.logical[name]


def _emulated() -> tuple[int, int, tuple[int, int]]:
    """How many GPUs are emulated, and what they have. Raises InvalidArgumentError for a number that isn't one."""
    if _state.emulated is None:
        text = os.environ.get(_EMULATED) or "0"
        if not text.isdigit():
            raise InvalidArgumentError(f"{_EMULATED}={text} in the environment is not a number of GPUs")
        _require_threads(int(text))
        _state.emulated = int(text), _MEMORY, _THREADS
    return _state.emulated


def _require_threads(gpus: int) -> None:
    if gpus and not system.has_posix_threads():
        raise UnimplementedError(f"emulated GPUs run on POSIX threads, which {system.NAME} doesn't have")


def _real_count() -> int:
    from runtime.gpu import cuda

    return cuda.device_count()


def _backend(number: int) -> Any:
    """The GPU of that number: those of the CUDA driver come first."""
    name = f"/physical_device:GPU:{number}"
    with _state.lock:
        if name not in _state.backends:
            real = _real_count()
            if number < real:
                from runtime.gpu.cuda import Cuda

                _state.backends[name] = Cuda(number)
            else:
                from runtime.gpu.emulator import Emulator
                from runtime.gpu.interface import Shape

                _, memory, shape = _emulated()
                _state.backends[name] = Emulator(Shape(*shape), memory)
        return _state.backends[name]


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices of this machine, of one type ("CPU", "GPU") if given: the CPU, the GPUs that the CUDA driver finds
    (the environment variable CUDA_VISIBLE_DEVICES counts), and emulated ones (`ag.config.emulate_gpus`)."""
    devices = [PhysicalDevice("/physical_device:CPU:0", "CPU")]
    if device_type in (None, "GPU"):
        count = _real_count() + _emulated()[0]
        devices += [PhysicalDevice(f"/physical_device:GPU:{number}", "GPU") for number in range(count)]
    return [d for d in devices if device_type is None or d.device_type == device_type]


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """The devices that `ag.device` accepts, of one type ("CPU", "GPU") if given."""
    found: list[LogicalDevice] = []
    for kind in ("CPU", "GPU") if device_type is None else (device_type,):
        count = sum(len(_state.logical.get(each.name, ())) or 1 for each in get_visible_devices(kind))
        found += [LogicalDevice(f"/device:{kind}:{number}", kind) for number in range(count)]
    return found


def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The physical devices that are used: all of them, unless `set_visible_devices` has chosen some."""
    there = list_physical_devices(device_type)
    return there if _state.visible is None else [each for each in there if each in _state.visible]


def set_visible_devices(devices: Any, device_type: str | None = None) -> None:
    """Chooses the devices to use, of one type ("CPU", "GPU") if given. The CPU can't be hidden.

    Raises ValueError for a device that isn't in `list_physical_devices()`, or for a list without the CPU; RuntimeError
    if other GPUs were used before.
    """
    wanted = list(devices) if isinstance(devices, (list, tuple)) else [] if devices is None else [devices]
    there = list_physical_devices(device_type)
    for each in wanted:
        if each not in there:
            raise ValueError(f"Unrecognized device: {each!r}; the devices are {there}")
    hidden = set(there) - set(wanted)
    if any(each.device_type == "CPU" for each in hidden):
        raise ValueError(f"The CPU can't be hidden: {sorted(d.name for d in hidden)}")
    with _state.lock:
        others = [each for each in get_visible_devices() if each not in there]
        visible = [each for each in list_physical_devices() if each in others or each in wanted]
        if _state.gpus is not None and visible != get_visible_devices():
            raise RuntimeError("Visible devices cannot be modified after being initialized, by their first use")
        _state.visible = visible
        _state.named.clear()


def set_logical_device_configuration(device: PhysicalDevice, logical_devices: list[LogicalDeviceConfiguration]) -> None:
    """Divides a device into logical ones (`GPU:0`, `GPU:1`, ...), all of which run on it. A GPU's may have a memory
    limit. An empty list undoes the division.

    Raises ValueError for an unknown device, RuntimeError for a GPU if one was used before.
    """
    if device not in list_physical_devices():
        raise ValueError(f"Unrecognized device: {device!r}")
    with _state.lock:
        if device.device_type == "GPU" and _state.gpus is not None:
            raise RuntimeError("Virtual devices cannot be modified after being initialized, by their first use")
        _state.logical[device.name] = list(logical_devices)
        if not logical_devices:
            del _state.logical[device.name]


def get_logical_device_configuration(device: PhysicalDevice) -> list[LogicalDeviceConfiguration] | None:
    """What `set_logical_device_configuration` set, or None."""
    return _state.logical.get(getattr(device, "name", ""))


def get_device_details(device: PhysicalDevice) -> dict[str, Any]:
    """A GPU's `device_name` and `compute_capability`; an empty dictionary for the CPU. Raises ValueError for an unknown

    device.
    """
    if device not in list_physical_devices():
        raise ValueError(f"Unrecognized device: {device!r}; the devices are {list_physical_devices()}")
    if device.device_type == "CPU":
        return {}
    backend = _backend(int(device.name.rsplit(":", 1)[1]))
    return {"device_name": backend.name, "compute_capability": backend.compute_capability}


def get_soft_device_placement() -> bool:
    """Whether operations that can't run on the requested device run on the CPU (the default)."""
    return _state.soft


def set_soft_device_placement(enabled: bool) -> None:
    """With False, a `device` block for a missing device raises InvalidArgumentError, and so does an operation without a
    GPU form whose operands are on a GPU."""
    _state.soft = bool(enabled)


def get_memory_info(device: str) -> dict[str, int]:
    """Bytes that tensors take on a GPU: `current`, and the `peak` since the start or `reset_memory_stats`.

    Raises ValueError for the CPU, whose memory isn't counted, and for an unknown GPU.
    """
    place = _counted(device)
    return {"current": place.current, "peak": place.peak}


def reset_memory_stats(device: str) -> None:
    """Sets the `peak` of `get_memory_info` to the memory in use now. Raises the errors of `get_memory_info`."""
    place = _counted(device)
    place.peak = place.current


def get_transfer_info(device: str) -> dict[str, int]:
    """The copies to the GPU and from it to the host so far: their numbers and bytes. What comes from another GPU counts
    as a copy to this one. Raises the errors of `get_memory_info`."""
    traffic = _counted(device).traffic
    return {
        "to_device": traffic.to, "to_device_bytes": traffic.to_bytes, "from_device": traffic.back,
        "from_device_bytes": traffic.back_bytes,
    }  # fmt: skip


def _counted(device: str) -> LogicalGPU:
    found = gpu_named(device)
    if found is None:
        raise ValueError(f"{device!r} is not a GPU of this machine; its GPUs are {list_logical_devices('GPU')}")
    return found


def get_memory_growth(device: PhysicalDevice) -> bool:
    """Whether a GPU's memory is allocated as needed: always True. Raises ValueError for other devices."""
    if device not in list_physical_devices("GPU"):
        raise ValueError(f"Unrecognized device: {device!r}; the GPUs are {list_physical_devices('GPU')}")
    return True


def set_memory_growth(device: PhysicalDevice, enable: bool) -> None:
    """Accepts True: a GPU's memory is always taken as needed. Raises ValueError for False and for other devices."""
    get_memory_growth(device)
    if not enable:
        raise ValueError(
            "GPU memory is always allocated as needed, never all at once. To limit it, use "
            "ag.config.set_logical_device_configuration(gpu, [ag.config.LogicalDeviceConfiguration(memory_limit=MiB)])"
        )


# --- GPUs in use -----------------------------------------------------------------------------------------------------


def logical_gpus() -> list[LogicalGPU]:
    """The logical GPUs; from now on they are fixed."""
    if _state.gpus is None:
        from runtime.gpu.memory import LogicalGPU

        with _state.lock:
            if _state.gpus is None:
                found: list[LogicalGPU] = []
                for physical in get_visible_devices("GPU"):
                    backend = _backend(int(physical.name.rsplit(":", 1)[1]))
                    for part in _state.logical.get(physical.name) or [LogicalDeviceConfiguration()]:
                        limit = None if part.memory_limit is None else int(part.memory_limit * (1 << 20))
                        found.append(LogicalGPU(f"GPU:{len(found)}", backend, limit))
                if not found:
                    return []
                _start_placing()  # first: other threads take GPUs that they see for ready
                _state.gpus = found
    return _state.gpus


def _start_placing() -> None:
    if not placing:
        for start in on_first_use:
            start()


def gpu_named(name: str) -> LogicalGPU | None:
    """The logical GPU of a name; None for the CPU and for a GPU that isn't there. Raises ValueError for other texts."""
    if name not in _state.named:
        kind, index = parse(name)
        found = logical_gpus() if kind == "GPU" else []
        _state.named[name] = found[index] if index < len(found) else None
    return _state.named[name]


def gpu_in_dlpack(device_type: int, number: int) -> LogicalGPU | None:
    """The logical GPU in whose memory an array of DLPack's lies."""
    for gpu in logical_gpus():
        if (gpu.backend.dlpack_type, gpu.backend.ordinal) == (device_type, number):
            return gpu
    return None


def sync_devices() -> None:
    """Waits until the GPUs in use have done what they were given, so that time can be measured: a call of a compiled
    function may return while its kernels run.

    Raises RuntimeError in a traced function, InternalError if the driver says that a kernel has failed.
    """
    if ctx.builder is not None:
        raise RuntimeError("sync_devices() waits for what runs, so it must be called outside of traced functions")
    for gpu in _state.gpus or ():
        gpu.backend.synchronize()


def set_log_device_placement(enabled: bool) -> None:
    """Whether each operation and function prints its device to standard error."""
    with _state.lock:
        if bool(enabled) != _state.logging:
            block_inline_caches(1 if enabled else -1)  # machine code says nothing
        _state.logging = bool(enabled)
    if enabled:
        _start_placing()


def get_log_device_placement() -> bool:
    """Whether `set_log_device_placement` is on."""
    return _state.logging


_NAME = re.compile(
    r"^(/job:\w+)?(/replica:\d+)?(/task:\d+)?/?(?P<prefix>device:)?(?P<type>[A-Za-z_]+)(:(?P<index>\d+|\*))?$"
)
_TYPES = frozenset({"CPU", "GPU", "TPU", "XLA_CPU", "XLA_GPU"})


def parse(name: str) -> tuple[str, int]:
    """Type and index of a device name such as "/gpu:0", "CPU:0" or TensorFlow's long form.

    Raises ValueError for a name that isn't one.
    """
    found = _NAME.match(name)
    # As in TensorFlow, other types need "device:" before them.
    if found is None or (found["prefix"] is None and found["type"].upper() not in _TYPES):
        raise ValueError(f"Malformed device specification '{name}': expected a name such as '/CPU:0' or '/GPU:0'.")
    index = found["index"]
    return found["type"].upper(), 0 if index in (None, "*") else int(index)


@contextmanager
def device(device_name: Any) -> Iterator[None]:
    """A block whose ops, variables and functions should be on a device: `ag.device("/GPU:0")`. Operands from elsewhere
    are copied there. If this machine lacks the device, the CPU takes its place.

    In a traced function, ops outside of its blocks run where their operands are, or else on the first GPU that a block
    names, unless a block around the call names another device. If all blocks name the same GPU, all of the function
    runs there. So does all of a loop or conditional: blocks in it must name one device.

    A device of `list_logical_devices` and a `DeviceSpec` stand for their names. Raises ValueError for a malformed name,
    TypeError for what isn't a name, InvalidArgumentError for a missing device if `set_soft_device_placement(False)` was
    called.
    """
    place = None
    if hasattr(device_name, "to_string"):
        device_name = device_name.to_string()
    elif isinstance(device_name, LogicalDevice):
        device_name = device_name.name
    if device_name is not None:
        if not isinstance(device_name, str):
            raise TypeError(f"Expecting a string device name, got {device_name!r}: pass a name such as '/GPU:0'.")
        kind, index = parse(device_name)
        place = gpu_named(device_name)
        there = place is not None or f"/device:{kind}:{index}" in [d.name for d in list_logical_devices(kind)]
        if not there and not _state.soft:
            raise InvalidArgumentError(
                f"Could not satisfy device specification '{device_name}': the devices are {list_logical_devices()}, "
                f"and soft placement is off{missing(kind)}"
            )
    before = ctx.device, ctx.traced_in
    ctx.device = device_name
    ctx.traced_in = None if ctx.builder is None else ctx.builder.root
    if place is not None:
        block_inline_caches(1)  # machine code looks at the operands only
        if ctx.builder is not None and ctx.builder.root.graph.device is None:
            ctx.builder.root.graph.device = device_name
    try:
        yield
    finally:
        ctx.device, ctx.traced_in = before
        if place is not None:
            block_inline_caches(-1)


def missing(kind: str) -> str:
    """What can be done about a GPU that isn't there."""
    if kind != "GPU" or list_physical_devices("GPU"):
        return ""
    from runtime.gpu import cuda

    return (
        f": {cuda.why_none()} (nvidia-smi shows what the driver sees); "
        "ag.config.emulate_gpus() adds a GPU emulated by threads of the CPU, to try programs out"
    )


class VariableSynchronization(enum.Enum):
    """How copies of a variable on several devices would be kept equal. All variables are in one place here."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(enum.Enum):
    """How updates of a variable from several devices are combined."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3
