"""Products of large matrices on a GPU, by its maker's library (`runtime/gpu/cublas.py`) instead of a kernel.

The graph is cut around them: what is before a product is a kernel, and what is behind it another one. Small products
stay in kernels, and so do those in loops. Of a product whose sizes aren't known while tracing each call decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime.engine.partition import runs
from runtime.gpu.interface import Product
from runtime.gpu.memory import DeviceArray, LogicalGPU
from runtime.graph.ir import Graph, Node
from runtime.types import TensorType

Call = Callable[[Sequence[Any]], "list[Any]"]

# Multiplications from which a library multiplies matrices. Trades a call, and the kernels before and behind it, against
# tensor cores and years of tuning: 8 M multiplications take a kernel of ours some 5 us. Estimated.
LARGE = 1 << 23
_UNKNOWN = 256  # what a size is taken for


def cuts(graph: Graph) -> list[list[Node]]:
    """The parts of a graph: each is one product for the library, or contains none. Empty if the graph has no such
    product."""
    found = runs(graph, lambda node: node if is_large(node) else None)
    has_complex = any(_is_complex(value) for _, nodes in found for node in nodes for value in node.inputs)
    if has_complex or all(product is None for product, _ in found):
        return []
    return [nodes for _, nodes in found]


def _is_complex(value: Any) -> bool:
    return isinstance(value.type, TensorType) and value.type.dtype.np.kind == "c"


def is_large(node: Node) -> bool:
    """Whether a node is a product that the library may be faster at."""
    if node.op.name != "matmul":
        return False
    a, b = (value.type for value in node.inputs)
    assert isinstance(a, TensorType)
    assert isinstance(b, TensorType)
    if a.dtype.name not in ("float32", "float64") or a.shape is None or b.shape is None:
        return False
    shapes = [tuple([_UNKNOWN if size is None else size for size in shape]) for shape in (a.shape, b.shape)]
    return _multiplications(shapes, node.attrs) >= LARGE


def _multiplications(shapes: Sequence[tuple[int, ...]], attrs: dict[str, Any]) -> int:
    a, b = shapes
    columns = b[-2] if attrs["transpose_b"] else b[-1]
    return max(math.prod(a), math.prod(a[-2:]) * math.prod(b[:-2])) * columns


_UNSEEN = object()
_PLANS = 100  # the most shapes of operands that a product remembers


class LibraryProduct:
    """A graph of one product. kernel: makes the kernel that computes it where the library doesn't."""

    def __init__(self, part: Graph, place: LogicalGPU, kernel: Callable[[], Call]) -> None:
        (self._node,) = [node for node in part.nodes if node.op.name != "constant"]
        self._place, self._make = place, kernel
        self._kernel: Call | None = None
        constants = {value: node for node in part.nodes for value in node.outputs if node is not self._node}
        # Of each operand its place among the values of a call, or what it always is.
        self._operands = [
            self._constant(constants[value]) if value in constants else part.inputs.index(value)
            for value in self._node.inputs
        ]
        self._plans: dict[Any, Any] = {}  # by the operands' shapes
        self.calls = 0

    def _constant(self, node: Node) -> DeviceArray:
        return self._here(np.asarray(node.attrs["value"].array))

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        a, b = (values[each] if isinstance(each, int) else each for each in self._operands)
        key = a.shape, b.shape
        planned = self._plans.get(key, _UNSEEN)
        if planned is _UNSEEN:
            if len(self._plans) >= _PLANS:
                self._plans.clear()
            planned = self._plans[key] = self._planned(a, b)
        if planned is None:
            if self._kernel is None:
                self._kernel = self._make()
            return self._kernel(values)
        self.calls += 1
        return [self._multiplied(self._here(a), self._here(b), *planned)]

    def _here(self, value: Any) -> DeviceArray:
        if value.__class__ is DeviceArray:
            return value.moved_to(self._place)
        return DeviceArray(self._place, value.shape, value.dtype, value, note="an operand of 'matmul'")

    def _planned(self, a: Any, b: Any) -> tuple[tuple[int, ...], Callable[[int, int, int], None]] | None:
        """The result's shape, and what multiplies; None where it is a kernel's: it is small, or fails, or its batch is
        broadcast in another way than as a whole."""
        attrs = self._node.attrs
        flip_a, flip_b = attrs["transpose_a"], attrs["transpose_b"]
        rows, inner = a.shape[-2:][::-1] if flip_a else a.shape[-2:]
        other, columns = b.shape[-2:][::-1] if flip_b else b.shape[-2:]
        if inner != other or _multiplications((a.shape, b.shape), attrs) < LARGE:
            return None
        batches = a.shape[:-2], b.shape[:-2]
        counts = [math.prod(batch) for batch in batches]
        batch = max(batches, key=lambda each: (math.prod(each), len(each)))
        count = max(counts)
        if any(mine not in (1, count) or (mine == count > 1 and own != batch) for mine, own in zip(counts, batches)):
            return None
        sizes = rows * inner, inner * columns
        apart = (*(size if mine > 1 else 0 for size, mine in zip(sizes, counts)), rows * columns)
        if counts[1] == 1 and not flip_a:  # one product of more rows
            high, number, distances = rows * count, 1, (0, 0, 0)
        else:
            high, number, distances = rows, count, apart
        product = Product(8 * a.dtype.itemsize, high, inner, columns, flip_a, flip_b, number, distances)
        return (*batch, rows, columns), self._place.backend.prepare_product(product)

    def _multiplied(
        self, a: DeviceArray, b: DeviceArray, shape: tuple[int, ...], multiply: Callable[[int, int, int], None]
    ) -> DeviceArray:
        place, note = self._place, "a result of 'matmul'"
        with place.lock:
            buffer = place.allocate(math.prod(shape) * a.dtype.itemsize, note)
            multiply(a.address(), b.address(), buffer.address)
        return DeviceArray(place, shape, a.dtype, None, buffer, buffer.address, note)
