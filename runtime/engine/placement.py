"""Runs ops and graphs on GPUs: on the device of their operands, or on that of a `device` block.

The first use of a GPU puts a `Placer` into `runtime.context.placing`. An op is a graph of one node; a graph is compiled
for a GPU once (`placed_graph.py`). An op without GPU code runs on the CPU, unless soft placement is off.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime import device as devices
from runtime import errors
from runtime.codegen.kernel.source import NATIVE_DTYPES, NotNative
from runtime.context import ctx, placing
from runtime.engine.across_devices import GraphAcrossDevices
from runtime.engine.placed_graph import PlacedGraph, no_form
from runtime.gpu.memory import DeviceArray, LogicalGPU, on_gpu
from runtime.graph.builder import Builder
from runtime.graph.callers import user_span
from runtime.graph.ir import Graph
from runtime.graph.passes.pipeline import optimize
from runtime.ops.table import OpDef
from runtime.tensor import DeviceTensor, EagerTensor, eager, held_by
from runtime.types import TensorType


def start() -> None:
    """Installs the placer for ops and functions."""
    if not placing:
        placing.append(Placer())


class Placer:
    """Decides on which device ops and graphs run, and runs them there."""

    def __init__(self) -> None:
        self._kernels: dict[tuple, Call | NotNative] = {}
        self._lock = threading.Lock()

    def place_of(self, inputs: Sequence[Any]) -> LogicalGPU | None:
        """The GPU on which to run with these operands; None: the CPU."""
        if ctx.device is not None:
            return devices.gpu_named(ctx.device)
        for tensor in inputs:
            place = _place_of(tensor)
            if place is not None:
                return place
        return None

    # --- tensors -------------------------------------------------------------------------------------------------

    def put(self, tensor: Any, place: LogicalGPU | None) -> Any:
        """A tensor on a GPU (None: the CPU); of a dtype that GPUs don't have, the tensor itself."""
        if place is None:
            return tensor.cpu()
        if tensor.__class__ is DeviceTensor:
            return tensor if tensor.held.place is place else DeviceTensor(tensor.held.moved_to(place), tensor.dtype)
        if tensor.__class__ is not EagerTensor or tensor.dtype.name not in NATIVE_DTYPES:
            return tensor
        return DeviceTensor(on_gpu(tensor._array, place), tensor.dtype)

    def made(self, tensor: EagerTensor) -> Any:
        """A tensor made from Python values, on the device of the `device` block."""
        place = None if ctx.device is None else devices.gpu_named(ctx.device)
        return tensor if place is None else self.put(tensor, place)

    def home(self, tensor: EagerTensor) -> LogicalGPU | None:
        """Where a variable with this initial value lives."""
        place = self.place_of((tensor,))
        return place if tensor.dtype.name in NATIVE_DTYPES else None

    # --- ops -----------------------------------------------------------------------------------------------------

    def apply(self, op: OpDef, inputs: Sequence[Any], attrs: dict[str, Any]) -> tuple | None:
        """The op's outputs; None where it runs on the CPU, which copies what it needs.

        Raises InvalidArgumentError for an op that has no form for the GPU while soft placement is off,
        ResourceExhaustedError.
        """
        place = self.place_of(inputs)
        if op.cost == 0 and not op.reads_elements(len(inputs)) and inputs[0].__class__ is DeviceTensor:
            # The op needs only a shape, so nothing is copied. Its result is on the CPU.
            return self._measured(op, inputs, attrs)
        if place is None or op.effect or op.calls_python:
            self._log_placement(op.label, None)
            return None
        if (
            op.keeps_order
            and not op.can_fail
            and inputs[0].dtype.name in NATIVE_DTYPES
            and inputs[0].__class__ in _PLAIN
        ):
            return self._view(op, inputs, attrs, place)
        try:
            call = self._kernel(op, [t.type for t in inputs], attrs, place)
            values = call([held_by(t) for t in inputs])
        except errors.ResourceExhaustedError:
            raise
        except NotNative as refusal:
            if not devices.get_soft_device_placement():
                raise no_form(op.label, str(refusal), place, user_span()) from None
            self._log_placement(op.label, None)
            return None
        except errors.OpError:
            return None  # the CPU raises the error, with the text of an eager op
        self._log_placement(op.label, place)
        return tuple([eager(value) for value in values])

    def _measured(self, op: OpDef, inputs: Sequence[Any], attrs: dict[str, Any]) -> tuple:
        found = op.kernel(_stand_in(inputs[0]), *[t._array for t in inputs[1:]], **attrs)
        return tuple(EagerTensor(each) for each in (found if op.multiple else (found,)))

    def _view(self, op: OpDef, inputs: Sequence[Any], attrs: dict[str, Any], place: LogicalGPU) -> tuple | None:
        try:
            shape = op.kernel(_stand_in(inputs[0]), *[t._array for t in inputs[1:]], **attrs).shape
        except Exception:
            return None  # the CPU raises the error
        self._log_placement(op.label, place)
        held = on_gpu(held_by(inputs[0]), place)
        return (DeviceTensor(held.reshaped(shape), inputs[0].dtype),)

    def _kernel(self, op: OpDef, types: Sequence[Any], attrs: dict[str, Any], place: LogicalGPU) -> Call:
        """The op as a kernel. Raises NotNative where it has none."""
        if not all(isinstance(type_, TensorType) and type_.dtype.name in NATIVE_DTYPES for type_ in types):
            dtypes = {getattr(getattr(type_, "dtype", None), "name", "?") for type_ in types} - NATIVE_DTYPES
            raise NotNative(f"GPUs don't support {', '.join(sorted(dtypes)) or 'such'} tensors")
        # A kernel serves any size, except that dimensions of size 1 are fixed, because they broadcast. If there is no
        # such kernel, one is made for exactly these sizes.
        general = [TensorType(t.dtype, tuple([d if d == 1 else None for d in t.shape])) for t in types]
        refusal: NotNative | None = None
        for kinds in (general, types):
            try:
                return self._compiled(op, kinds, attrs, place)
            except NotNative as reason:
                refusal = reason
        assert refusal is not None
        raise refusal

    def _compiled(self, op: OpDef, types: Sequence[Any], attrs: dict[str, Any], place: LogicalGPU) -> Call:
        key = op.name, tuple(types), tuple(sorted(attrs.items(), key=lambda item: item[0])), place
        with self._lock:
            found = self._kernels.get(key)
            if found is None:
                try:
                    graph = _graph_of(op, types, attrs)
                    found = PlacedGraph(graph, place).whole()
                except (NotNative, errors.OpError, ValueError, TypeError) as reason:
                    found = NotNative(str(reason))
                self._kernels[key] = found
        if isinstance(found, NotNative):
            raise found
        return found

    # --- graphs --------------------------------------------------------------------------------------------------

    def run(self, executable: Any, inputs: Sequence[Any], wanted: str | None) -> list[Any] | None:
        """The values of a graph's outputs; None where it runs on the CPU. wanted: the GPU that a block in the function
        names. Raises as `apply`."""
        place = self.place_of_graph(inputs, wanted)
        self._log_placement(executable.graph.name, place)
        placed = executable.placed.get(place) or self._placed(executable, place, inputs)
        return None if placed is None else placed([held_by(t) for t in inputs])

    def _placed(
        self, executable: Any, place: LogicalGPU | None, inputs: Sequence[Any]
    ) -> PlacedGraph | GraphAcrossDevices | None:
        """A graph as it runs on a GPU, or on the devices that it names; None for the CPU."""
        graph = executable.graph
        if executable.names_devices:
            # `explain` passes the arguments of a call only.
            each = (*map(_place_of, inputs), *[None] * (len(graph.inputs) - len(inputs)))
            key: Any = (place, *each)
            if key not in executable.placed:
                made = GraphAcrossDevices(graph, each, place, executable.jit_compile)
                executable.placed.setdefault(key, made)
            across: GraphAcrossDevices = executable.placed[key]
            return None if across.is_on_cpu else across
        if place is None:
            return None
        if place not in executable.placed:
            executable.placed.setdefault(place, PlacedGraph(graph, place))
        found: PlacedGraph = executable.placed[place]
        return found

    def place_of_graph(self, inputs: Sequence[Any], wanted: str | None) -> LogicalGPU | None:
        """The GPU on which to run a graph that names one, or none; None: the CPU."""
        found = devices.gpu_named(wanted) if wanted is not None and ctx.device is None else None
        return found or self.place_of(inputs)

    def prepare(self, executable: Any, inputs: Sequence[Any], wanted: str | None) -> None:
        """Compiles a graph for the GPU on which a call with these operands would run, if there is one."""
        placed = self._placed(executable, self.place_of_graph(inputs, wanted), inputs)
        if placed is not None:
            placed.prepare()

    @staticmethod
    def _log_placement(what: str, place: LogicalGPU | None) -> None:
        if devices.get_log_device_placement():
            name = devices.CPU if place is None else place.name
            wanted = ctx.device
            note = ""
            if place is None and wanted is not None and devices.parse(wanted)[0] != "CPU":
                note = f" ({wanted} was asked for)"
            span = user_span()
            where = f", at {errors.place(*span[:2])}" if span is not None else ""
            print(f"Executing op {what} in device {name}{note}{where}", file=sys.stderr)


Call = Callable[[Sequence[Any]], "list[Any]"]
_PLAIN = (EagerTensor, DeviceTensor)


def _place_of(tensor: Any) -> LogicalGPU | None:
    """The GPU where a tensor, or a stack, is; None: on the CPU."""
    if tensor.__class__ is DeviceTensor:
        place: LogicalGPU = tensor.held.place
        return place
    if isinstance(tensor, EagerTensor) and tensor.dtype is not None:
        store = getattr(tensor._array, "store", None)  # of a stack
        if store is not None and store.data.__class__ is DeviceArray:
            return store.data.place
    return None


def _stand_in(tensor: Any) -> np.ndarray:
    """An array with a tensor's dtype and shape that allocates no elements."""
    return np.broadcast_to(np.zeros((), tensor.dtype.np), tensor._shape)


def _graph_of(op: OpDef, types: Sequence[Any], attrs: dict[str, Any]) -> Graph:
    """A graph of one op."""
    builder = Builder(op.label)
    numerics, ctx.numerics = ctx.numerics, None
    try:
        with builder:
            inputs = [builder.tensor(builder.add_input(type_)) for type_ in types]
            outputs = builder.emit(op, inputs, attrs)
    finally:
        ctx.numerics = numerics
    builder.graph.outputs = [each.value for each in outputs]  # type: ignore[attr-defined]
    for node in builder.graph.walk():
        node.span = node.name = None  # the kernel serves other lines, too
    return optimize(builder.graph)
