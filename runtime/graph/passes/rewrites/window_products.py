"""Convolutions as windows and products of matrices, in a copy of a graph that a GPU runs: its library multiplies.

    %y = convolution(%x, %w)                        %p = patches(%x)                    [b, h, w, elements, channels]
                                             →      %r = reshape(%p)                    [b, h, w, elements * channels]
                                                    %y = matmul(%r, reshape(%w))        [b, h, w, depth]

    %w' = convolution_filters_grad(%x, %dy)  →      %w' = reshape(matmul(transposed windows, %dy))
    %x' = convolution_input_grad(%dy, %w)    →      %x' = patches_grad(matmul(%dy, transposed filters))

Windows take as much memory as the image times the elements of a window. Where that is more than `MOST`, they are made
and used in pieces, each of some images; if the number of images isn't known, all windows are made at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from runtime.graph.ir import Graph, Node, Substitution, Value, copy_nodes
from runtime.graph.node_helpers import add_op
from runtime.ops.arrays.slicing import FULL
from runtime.ops.nn.window_products import ATTRS
from runtime.types import TensorType

MOST = 1 << 30  # bytes of windows at a time
_UNKNOWN = 256  # what a size is taken for

Sizes = Sequence["int | None"]


def as_products(graph: Graph, least: int) -> Graph:
    """The graph itself if it has no such convolution, else a copy. least: the multiplications from which a convolution
    of floats is taken apart. Those in loops and conditionals stay."""
    parts = {node: _Parts(node) for node in graph.nodes if node.op.name in _FORMS}
    chosen = {node: each for node, each in parts.items() if each.fits and each.multiplications >= least}
    if not chosen:
        return graph
    copy, mapping = Graph(graph.name), Substitution()
    for value in graph.inputs:
        mapping[value] = copy.add_input_like(value)
    for node in graph.nodes:
        if node in chosen:
            inputs = [mapping[value] for value in node.inputs]
            (output,) = node.outputs
            mapping[output] = _FORMS[node.op.name](_Copy(copy, chosen[node]), *inputs)
            mapping[output].name = output.name
        else:
            copy_nodes([node], copy, mapping)
    copy.outputs = [mapping[value] for value in graph.outputs]
    return copy


def _type_of(value: Value) -> TensorType:
    assert isinstance(value.type, TensorType)
    return value.type


class _Parts:
    """The sizes of a convolution, or of one of its adjoints.

    lead, depth        the dimensions of the result of the convolution: (batch, *places), and the number of filters
    elements, channels   of a window
    """

    def __init__(self, node: Node) -> None:
        self.node, self.window = node, {name: node.attrs[name] for name in ATTRS}
        one, other, output = map(_type_of, (*node.inputs[:2], node.outputs[0]))
        of_result = {"convolution": output, "convolution_filters_grad": other}.get(node.op.name, one)
        of_image = output if node.op.name == "convolution_input_grad" else one
        self.image: Sizes = of_image.shape or (None,)
        *self.lead, self.depth = of_result.shape or (None,)
        self.channels = self.image[-1]
        self.elements = math.prod(node.attrs["sizes"])
        self.dtype = one.dtype

    @property
    def fits(self) -> bool:
        """Whether all sizes but that of the batch are known, and the numbers are those of the library."""
        known = None not in (self.depth, self.channels, *self.lead[1:], *self.image[1:])
        return known and self.dtype.name in ("float32", "float64") and bool(self.lead) and 0 not in self.lead

    @property
    def row(self) -> int:
        """The numbers in a window."""
        return self.elements * (self.channels or 0)

    @property
    def count(self) -> int:
        """The number of windows. An unknown size counts as `_UNKNOWN`."""
        return math.prod(_UNKNOWN if size is None else size for size in self.lead)

    @property
    def multiplications(self) -> int:
        return self.count * self.row * (self.depth or 0)

    @property
    def is_pointwise(self) -> bool:
        """Whether each window is a single pixel, read without strides or padding."""
        w = self.window
        pairs = w["padding"] if not isinstance(w["padding"], str) else ()
        return self.elements == 1 and set(w["strides"]) == {1} and not any(map(any, pairs))

    def pieces(self) -> list[tuple[int, int] | None]:
        """The first image of each piece and the one after its last; None: all images."""
        batch = self.lead[0]
        size = 0 if self.is_pointwise else self.count * self.row * self.dtype.np.itemsize
        if batch is None or size <= MOST:
            return [None]
        images = max(batch * MOST // size, 1)
        return [(first, min(first + images, batch)) for first in range(0, batch, images)]


class _Copy:
    """Adds the nodes that replace a convolution to a graph."""

    def __init__(self, graph: Graph, parts: _Parts) -> None:
        self.graph, self.parts = graph, parts

    def add(self, op: str, inputs: Sequence[Value], **attrs: Any) -> Value:
        return add_op(self.graph, op, inputs, attrs, self.parts.node.span)

    def reshaped(self, value: Value, *shape: int) -> Value:
        return self.add("reshape", [value], shape=shape)

    def images(self, value: Value, piece: tuple[int, int] | None) -> Value:
        """Some images of a batch."""
        if piece is None:
            return value
        rest = (FULL,) * (len(_type_of(value).shape or ()) - 1)
        return self.add("strided_slice", [value], spec=(("slice", *piece, None), *rest))

    def batch(self, piece: tuple[int, int] | None) -> int:
        """The number of images of a piece; -1: all."""
        return -1 if piece is None else piece[1] - piece[0]

    def filters(self, w: Value) -> Value:
        return self.reshaped(w, self.parts.row, self.parts.depth or 0)

    def windows(self, x: Value, piece: tuple[int, int] | None) -> Value:
        """[images, *places, numbers in a window]"""
        x = self.images(x, piece)
        if self.parts.is_pointwise:
            return x
        found = self.add("patches", [x], fill=0, **self.parts.window)
        return self.reshaped(found, self.batch(piece), *self.parts.lead[1:], self.parts.row)  # type: ignore[arg-type]

    def product(self, a: Value, b: Value, transpose_a: bool = False, transpose_b: bool = False) -> Value:
        return self.add("matmul", [a, b], transpose_a=transpose_a, transpose_b=transpose_b)

    def joined(self, pieces: Sequence[Value]) -> Value:
        return pieces[0] if len(pieces) == 1 else self.add("concat", pieces, axis=0)


def _convolution(copy: _Copy, x: Value, w: Value) -> Value:
    filters = copy.filters(w)
    return copy.joined([copy.product(copy.windows(x, piece), filters) for piece in copy.parts.pieces()])


def _filters_grad(copy: _Copy, x: Value, dy: Value) -> Value:
    parts = copy.parts
    total: Value | None = None
    for piece in parts.pieces():
        rows = copy.reshaped(copy.windows(x, piece), -1, parts.row)
        found = copy.product(rows, copy.reshaped(copy.images(dy, piece), -1, parts.depth or 0), transpose_a=True)
        total = found if total is None else copy.add("add", [total, found])
    assert total is not None
    return copy.reshaped(total, *parts.window["sizes"], parts.channels or 0, parts.depth or 0)


def _input_grad(copy: _Copy, dy: Value, w: Value, *holes: Value) -> Value:
    parts = copy.parts
    filters = copy.filters(w)
    found: list[Value] = []
    for piece in parts.pieces():
        rows = copy.product(copy.images(dy, piece), filters, transpose_b=True)
        if parts.is_pointwise:
            found.append(rows)
            continue
        places = *parts.lead[1:], parts.elements, parts.channels
        windows = copy.reshaped(rows, copy.batch(piece), *places)
        shape = parts.image if piece is None else (copy.batch(piece), *parts.image[1:])
        found.append(copy.add("patches_grad", [windows, *holes], shape=tuple(shape), **parts.window))
    return copy.joined(found)


_FORMS: dict[str, Callable[..., Value]] = {
    "convolution": _convolution,
    "convolution_filters_grad": _filters_grad,
    "convolution_input_grad": _input_grad,
}
