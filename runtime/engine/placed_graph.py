"""A graph on a GPU: its native parts run there as kernels; the rest runs on the CPU, with copies in between."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime import device as devices
from runtime import errors
from runtime.codegen.backends import call_stub
from runtime.codegen.backends.driver import compiling, interrupts_deferred
from runtime.codegen.device.device_kernel import DeviceKernel
from runtime.codegen.device.kernel import NotOnDevice
from runtime.codegen.kernel.source import KernelSource, NotNative
from runtime.codegen.lower.lower_graph import is_native, lower, why_interpreted
from runtime.engine import library_products
from runtime.engine.executable import can_describe_values
from runtime.engine.host_loops import STEERED, steered
from runtime.engine.library_products import LibraryProduct
from runtime.engine.partition import part_by_part, runs, sequence
from runtime.garbage_collection import raised_threshold
from runtime.gpu.memory import DeviceArray, LogicalGPU, Traffic
from runtime.graph.interpreter import interpret
from runtime.graph.ir import Graph, Node
from runtime.graph.passes.pipeline import rewrite
from runtime.graph.passes.rewrites.repetition import is_constant
from runtime.graph.spans import describe_span
from runtime.ops.stack import Stack, Store
from runtime.recursion import room_for
from runtime.types import TensorType

Call = Callable[[Sequence[Any]], "list[Any]"]


def no_form(what: str, why: str, place: LogicalGPU, span: Any) -> errors.InvalidArgumentError:
    """The error for something that can't run on a GPU while soft placement is off."""
    where = f"\n  at {describe_span(span)}" if span else ""
    return errors.InvalidArgumentError(
        f"Could not satisfy device specification '{place.name}': {what} can't run on a GPU: {why}. "
        "Let it run on the CPU with ag.config.set_soft_device_placement(True), or place it there with "
        f"ag.device('/CPU:0').{where}"
    )


class PlacedGraph:
    """A graph compiled for a GPU. It is called with the values of the graph's inputs (arrays on the GPU or the CPU,
    numbers, stacks, None for tokens) and returns the values of its outputs, on the GPU.

    kernels    the kernels that it runs
    products   what it asks the GPU's library of matrix products for
    on_cpu     what runs on the CPU: (names of ops, why)
    by_host    loops and conditionals that the host steers: (what, why)
    traffic    copies over the bus that its calls have made
    """

    def __init__(self, graph: Graph, place: LogicalGPU) -> None:
        self.graph, self.place = graph, place
        self.kernels: list[DeviceKernel] = []
        self.products: list[LibraryProduct] = []
        self.calls = 0
        self.on_cpu: list[tuple[list[str], str]] = []
        self.by_host: list[tuple[str, str]] = []
        self._hosted: list[tuple[Any, str]] = []  # operations that run on the CPU, and why
        self.traffic = Traffic()
        self._call: Call | None = None
        self._lock = threading.Lock()

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """Raises what the graph's ops raise, InvalidArgumentError for one that has no form for GPUs while soft
        placement is off, and ResourceExhaustedError."""
        if self._hosted:
            self._check_soft_placement()  # it may have been turned off since
        call = self._call or self.prepare()
        traffic = self.place.traffic
        before = traffic.counts()
        try:
            return call(values)
        except (errors.OpError, AssertionError) as error:
            if not isinstance(error, errors.ResourceExhaustedError) and can_describe_values(self.graph):
                interpret(self.graph, [on_host(value) for value in values])
            raise
        finally:
            self.calls += 1
            now = traffic.counts()
            if now != before:
                self.traffic.add(now, before)

    @property
    def direct(self) -> Call | None:
        """The call that runs the graph, if it is one kernel that runs asynchronously; else None. Such a call needs no
        checks beside the devices of its inputs."""
        kernel = getattr(self._call, "kernel", None)
        return self._call if kernel is not None and kernel.is_asynchronous else None

    def prepare(self) -> Call:
        """Compiles the graph, once."""
        with self._lock:
            if self._call is None:
                self._hosted.clear()
                with room_for(self.graph), raised_threshold():
                    self._call = self._compiled_in_parts(self.graph)
            return self._call

    def _compiled_in_parts(self, graph: Graph) -> Call:
        return self._with_products(graph) or sequence(graph, self._native, self._interpreted, for_device=True)

    def _with_products(self, graph: Graph) -> Call | None:
        """Runs a graph in parts, cut around the matrix products that the GPU's library computes; None if it has
        none."""
        if not self.place.backend.multiplies():
            return None
        graph = rewrite("window products", graph, library_products.LARGE)
        parts = library_products.cuts(graph)
        return part_by_part(graph, parts, self._with_or_without_product) if parts else None

    def _with_or_without_product(self, number: int, part: Graph) -> Call:
        """A part that is a product for the library, or has none."""
        if any(map(library_products.is_large, part.nodes)):
            self.products.append(LibraryProduct(part, self.place, lambda: self._native(part)))
            return self.products[-1]
        return sequence(part, self._native, self._interpreted, for_device=True)

    def whole(self) -> Call:
        """The graph as one kernel, or as products and kernels. Raises NotNative."""
        for node in self.graph.nodes:
            found = why_interpreted(node, for_device=True)
            if found is not None:
                raise NotNative(found[0])
        return self._with_products(self.graph) or self._compiled(self.graph)

    def _native(self, part: Graph) -> Call:
        try:
            return self._compiled(part)
        except NotNative as reason:
            return self._divided(part, str(reason))

    def _divided(self, part: Graph, why: str) -> Call:
        """A part that can't be a kernel: the host steers the loops and conditionals whose bodies have work for the GPU;
        the rest runs on the CPU."""
        cuts = runs(part, lambda node: node if _has_work_for_gpu(node) else None)
        if all(steered is None for steered, _ in cuts):
            return self._on_cpu(part, why, _interpreting(part))

        def make(number: int, own: Graph) -> Call:
            steered, nodes = cuts[number]
            if steered is not None:
                return self._by_host(own)
            return self._native(own) if all(map(is_native, nodes)) else self._interpreted(own)

        return part_by_part(part, [nodes for _, nodes in cuts], make)

    def _by_host(self, part: Graph) -> Call:
        """A loop or conditional whose regions become parts of their own."""
        (node,) = (node for node in part.nodes if not is_constant(node))
        found = why_interpreted(node, for_device=True)
        where = f" at {errors.place(*node.span[:2])}" if node.span else ""
        self.by_host.append((f"{node.op.name}{where}", found[0] if found else "it has no form for GPUs as a whole"))
        run = steered(node, self._compiled_in_parts)
        known = {value: each.attrs["value"].array for each in part.nodes for value in each.outputs if is_constant(each)}
        taken = [part.inputs.index(v) if v not in known else -1 for v in node.inputs]
        given = [known.get(v) for v in node.inputs]
        wanted = [node.outputs.index(v) for v in part.outputs]

        def call(values: Sequence[Any]) -> list[Any]:
            results = run([values[at] if at >= 0 else own for at, own in zip(taken, given)])
            return [results[at] for at in wanted]

        return call

    def _compiled(self, part: Graph) -> Call:
        """A part as a kernel. Raises NotNative."""
        source = lower(part, for_device=True)
        return self._of_numbers(part, source) if _has_numbers_only(part) else self._on_gpu(source)

    def _of_numbers(self, part: Graph, source: KernelSource) -> Call:
        """A part that computes with numbers only, on the processor: one thread of a GPU is slower, and its numbers are
        kept on the host anyway."""
        names = sorted({node.op.name for node in part.nodes if node.op.name != "constant"})
        if names:
            self.on_cpu.append((names, "it computes with numbers only"))
        call = call_stub.load(source)
        return lambda values: [self._here(found) for found in call([on_host(value) for value in values])]

    def _on_gpu(self, source: KernelSource) -> Call:
        """A kernel's stub. Raises NotNative where it has no form for GPUs."""
        place = self.place
        with compiling, interrupts_deferred():
            try:
                kernel = DeviceKernel(source, place)
            except NotOnDevice as reason:
                raise NotNative(str(reason)) from reason
        self.kernels.append(kernel)
        constants = tuple(
            DeviceArray(place, each.shape, each.dtype, each, note=f"constants of '{source.name}'")
            if isinstance(each, np.ndarray)
            else each
            for each in source.constants
        )
        stub = call_stub.make_device_stub(source, kernel.entry, constants, self._on_gpu)

        def call(values: Sequence[Any]) -> list[Any]:
            return [
                value if value.__class__ is DeviceArray and value.place is place else self._here(value)
                for value in stub(values)
            ]

        call.kernel = kernel  # type: ignore[attr-defined]
        return call

    def _here(self, value: Any) -> Any:
        """The results of a kernel, on the GPU: numbers may come with its status, and arguments may be on another
        device."""
        if value.__class__ is DeviceArray:
            return value if value.place is self.place else value.moved_to(self.place)
        if isinstance(value, np.generic):
            return self.place.scalar(value)
        if isinstance(value, np.ndarray):
            return DeviceArray(self.place, value.shape, value.dtype, value)
        return value

    def _interpreted(self, part: Graph) -> Call:
        nodes = [node for node in part.nodes if node.op.name != "constant"]
        reasons = [found[0] for node in nodes if (found := why_interpreted(node, for_device=True))]
        return self._divided(part, reasons[0] if reasons else "")

    def _on_cpu(self, part: Graph, why: str, call: Call) -> Call:
        nodes = [node for node in part.nodes if node.op.name != "constant"]
        culprits = [node for node in nodes if not (node.op.effect or node.op.calls_python)]
        if culprits:
            found = next(((n, r) for n in culprits if (r := why_interpreted(n, for_device=True))), None)
            self._hosted.append((found[1][1], found[1][0]) if found else (culprits[0], why))
            self._check_soft_placement()
        if nodes:
            self.on_cpu.append((sorted({node.op.name for node in nodes}), why))
        return lambda values: call([on_host(value) for value in values])

    def _check_soft_placement(self) -> None:
        """Raises InvalidArgumentError if something runs on the CPU that may not."""
        if self._hosted and not devices.get_soft_device_placement():
            node, reason = self._hosted[-1]
            raise no_form(node.op.label, reason, self.place, node.span)

    def lines(self) -> list[str]:
        """For `explain`."""
        found = [
            f"on {self.place.short} ({self.place.backend.name}): {_counted(len(self.kernels), 'kernel')}, "
            f"{_counted(self.calls, 'call')} so far"
        ]
        found += [f"  '{kernel.name}': {line}" for kernel in self.kernels for line in kernel.lines()]
        asked = sum(product.calls for product in self.products)
        found += [f"  {_counted(asked, 'product')} by the GPU's library so far"] if self.products else []
        found += [f"  steered by the host: {what}{f', since {why}' if why else ''}" for what, why in self.by_host]
        found += [f"  on the CPU: {', '.join(names)}{f', since {why}' if why else ''}" for names, why in self.on_cpu]
        return [*dict.fromkeys(found), f"  over the bus: {self.traffic}"]


def _has_work_for_gpu(node: Node) -> bool:
    """Whether a loop or conditional computes with arrays in a way that GPUs can."""
    return node.op.name in STEERED and any(
        not inner.regions
        and is_native(inner, for_device=True)
        and any(getattr(v.type, "shape", ()) != () for v in inner.outputs)
        for region in node.regions
        for inner in region.walk()
        if not is_constant(inner)
    )


def _has_numbers_only(graph: Graph) -> bool:
    values = [*graph.inputs, *(value for node in graph.walk() for value in node.outputs)]
    return all(isinstance(value.type, TensorType) and value.type.shape == () for value in values)


def _interpreting(part: Graph) -> Call:
    return lambda values: interpret(part, values)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def on_host(value: Any) -> Any:
    """A value on the CPU."""
    if value.__class__ is DeviceArray:
        return value.on_host()
    if value.__class__ is Stack and value.store.data.__class__ is DeviceArray:
        store = value.store
        copied = Store(np.array(store.data), np.array(store.dims), store.used, store.dims_used)
        return Stack(copied, int(value.top), int(value.dims_top), value.rank, int(value.size))
    return value
