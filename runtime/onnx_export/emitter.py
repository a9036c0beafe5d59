"""What lowerings write with: nodes of the graph that is being made, constants, casts, shapes.

A `Ref` is a tensor of the ONNX graph: its name and dtype. ONNX' kernels in ONNX Runtime don't take every dtype that the
standard allows (`kernels.py`): `compute` casts to the next wider one that they take, and back.

Regions become subgraphs, which see the names of the graphs around them; so every name is unique in the model.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePath
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from runtime import dtypes
from runtime.dataclass import dataclass
from runtime.dtypes import DType
from runtime.errors import UnimplementedError
from runtime.graph.ir import Node, Value
from runtime.graph.spans import describe_span
from runtime.onnx_export.kernels import computing_dtype
from runtime.types import StackType, TensorType, TokenType, Type

OPSET = 20
_KINDS = {
    "bool": "BOOL", "int8": "INT8", "int16": "INT16", "int32": "INT32", "int64": "INT64", "uint8": "UINT8",
    "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64", "float16": "FLOAT16", "float32": "FLOAT",
    "float64": "DOUBLE", "bfloat16": "BFLOAT16", "string": "STRING", "complex64": "COMPLEX64",
    "complex128": "COMPLEX128", "float8_e4m3fn": "FLOAT8E4M3FN", "float8_e5m2": "FLOAT8E5M2",
}  # fmt: skip


class NoForm(UnimplementedError):
    """A node that can't be exported to ONNX: the error names it and its line, and says what to do instead."""

    def __init__(self, node: Node, reason: str, instead: str) -> None:
        at = f"\n    at {describe_span(node.span)}" if node.span else ""
        super().__init__(f"{node.op.name} can't be exported to ONNX: {reason}. {instead}.{at}", node.op.name)


@dataclass(frozen=True)
class Ref:
    """A tensor of the ONNX graph; of a sequence, `dtype` is that of its elements."""

    name: str
    dtype: DType
    is_sequence: bool = False


Lowering = Callable[["Emitter", Node], "Ref | Sequence[Ref]"]
LOWERINGS: dict[str, Lowering] = {}


def lowering(*names: str) -> Callable[[Lowering], Lowering]:
    """Makes a function the lowering of ops."""

    def register(function: Lowering) -> Lowering:
        for name in names:
            if name in LOWERINGS:
                raise ValueError(f"{name!r} has two lowerings")
            LOWERINGS[name] = function
        return function

    return register


def element_type(dtype: DType) -> int:
    """ONNX' number for a dtype. Raises ValueError if it has none."""
    if dtype.name not in _KINDS:
        raise ValueError(f"ONNX has no {dtype.name}")
    return int(onnx.TensorProto.DataType.Value(_KINDS[dtype.name]))


def value_info(name: str, type_: Type, shape: Sequence[Any] | None = None) -> onnx.ValueInfoProto:
    """The ONNX description of an input or output; without a shape if the shape may be any."""
    if isinstance(type_, StackType):
        tensor = helper.make_tensor_type_proto(element_type(type_.element.dtype), None)
        return helper.make_value_info(name, helper.make_sequence_type_proto(tensor))
    assert isinstance(type_, TensorType)
    return helper.make_tensor_value_info(name, element_type(type_.dtype), shape)


class Emitter:
    """Collects the nodes of one graph or subgraph at a time; constants go to the outermost graph."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.refs: dict[Value, Ref] = {}
        self.dropped: list[str] = []  # what has no place in ONNX and no result: a line for each
        self.node: Node | None = None  # which is being lowered
        self._names: set[str] = set()
        self._refused: dict[str, NoForm] = {}
        self._constants: dict[Any, Ref] = {}

    # --- names and nodes ---------------------------------------------------------------------------------------------

    def unique(self, name: str) -> str:
        """A name that the model doesn't have yet."""
        base = name = re.sub(r"[^\w.\-/:]", "_", name) or "_"
        number = 1
        while name in self._names:
            number += 1
            name = f"{base}_{number}"
        self._names.add(name)
        return name

    def emit_many(
        self, op: str, inputs: Sequence[Ref | None], outputs: Sequence[tuple[DType, bool]], **attrs: Any
    ) -> list[Ref]:
        """Adds a node; gives its outputs, each of a dtype, and a sequence or not."""
        made = [Ref(self.unique(op), dtype, is_sequence) for dtype, is_sequence in outputs]
        names = ["" if each is None else each.name for each in inputs]
        node = helper.make_node(op, names, [each.name for each in made], name=self.unique(f"{op}_node"), **attrs)
        if self.node is not None and self.node.span:
            file, line, _ = self.node.span
            node.doc_string = f"{PurePath(file).name}:{line}"
        self.nodes.append(node)
        return made

    def emit(self, op: str, *inputs: Ref | None, dtype: DType | None = None, **attrs: Any) -> Ref:
        """Adds a node with one output, which has the first operand's dtype unless told otherwise."""
        if dtype is None:
            first = inputs[0]
            assert first is not None
            dtype = first.dtype
        return self.emit_many(op, inputs, [(dtype, False)], **attrs)[0]

    def compute(self, op: str, *inputs: Ref, dtype: DType | None = None, **attrs: Any) -> Ref:
        """Adds a node whose operands have one dtype. If ONNX Runtime's kernel doesn't take that dtype, the node
        computes in a wider one between casts.

        dtype: of the result, if it isn't the operands'.
        """
        own = inputs[0].dtype
        wide = computing_dtype(op, own)
        if wide is own:
            return self.emit(op, *inputs, dtype=dtype or own, **attrs)
        result = self.emit(op, *[self.cast(each, wide) for each in inputs], dtype=dtype or wide, **attrs)
        return result if dtype is not None else self.cast(result, own)

    def computing(self, op: str, ref: Ref) -> Ref:
        """The operand in the dtype that an op's kernel takes."""
        return self.cast(ref, computing_dtype(op, ref.dtype))

    def on_first(self, op: str, ref: Ref, *others: Ref, value: Any = None, **attrs: Any) -> Ref:
        """A node of which only the first operand has the result's dtype; and `value`, a number after the others."""
        wide = self.computing(op, ref)
        last = [] if value is None else [self.number(value, wide)]
        return self.cast(self.emit(op, wide, *others, *last, **attrs), ref.dtype)

    def cast(self, ref: Ref, dtype: DType) -> Ref:
        if ref.dtype is dtype:
            return ref
        return self.emit("Cast", ref, dtype=dtype, to=element_type(dtype))

    @contextlib.contextmanager
    def scope(self) -> Iterator[list[onnx.NodeProto]]:
        """Collects what is emitted inside apart, for a subgraph."""
        outer, self.nodes = self.nodes, []
        try:
            yield self.nodes
        finally:
            self.nodes = outer

    def graph(
        self, name: str, nodes: Sequence[onnx.NodeProto], inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> onnx.GraphProto:
        """A subgraph."""
        kept = self.pruned(nodes, [each.name for each in outputs])
        return helper.make_graph(kept, self.unique(name), inputs, outputs)

    def unless_pruned(self, error: NoForm, dtype: DType) -> Ref:
        """A placeholder for a tensor that has no form in ONNX. `pruned` raises the error if a remaining node reads
        it."""
        ref = Ref(self.unique("none"), dtype)
        self._refused[ref.name] = error
        return ref

    def pruned(self, nodes: Sequence[onnx.NodeProto], outputs: Sequence[str]) -> list[onnx.NodeProto]:
        """The nodes of a graph that something reads. Raises NoForm for what can't be made."""
        needed = set(outputs)
        kept = []
        for node in reversed(nodes):
            if needed.isdisjoint(node.output):
                continue
            kept.append(node)
            read = reads(node)
            needed |= read
            for name in read & self._refused.keys():
                raise self._refused[name]
        return kept[::-1]

    # --- constants ---------------------------------------------------------------------------------------------------

    def constant(self, array: Any, name: str = "constant") -> Ref:
        """A tensor of the outermost graph; equal ones are one."""
        array = np.asarray(array)
        dtype = dtypes.as_dtype(array.dtype)
        content = tuple(array.ravel().tolist()) if array.dtype == object else array.tobytes()
        key = (dtype.name, array.shape, content)
        found = self._constants.get(key)
        if found is None:
            found = self._constants[key] = self.initializer(array, name)
        return found

    def initializer(self, array: Any, name: str) -> Ref:
        array = np.asarray(array)
        dtype = dtypes.as_dtype(array.dtype)
        name = self.unique(name)
        self.initializers.append(self.proto(array, dtype, name))
        return Ref(name, dtype)

    def proto(self, array: Any, dtype: DType, name: str) -> onnx.TensorProto:
        """An array as ONNX writes it."""
        array = np.asarray(array)
        if dtype is dtypes.string:
            flat = [each if isinstance(each, bytes) else str(each).encode() for each in array.ravel().tolist()]
            return helper.make_tensor(name, onnx.TensorProto.STRING, array.shape, flat)
        return numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)

    def ints(self, *numbers: int) -> Ref:
        """An int64 vector."""
        return self.constant(np.array(numbers, np.int64))

    def number(self, value: Any, like: Ref | DType) -> Ref:
        """A scalar of a dtype."""
        dtype = like.dtype if isinstance(like, Ref) else like
        return self.constant(np.asarray(value, dtype.np))

    # --- operands ----------------------------------------------------------------------------------------------------

    def ref(self, value: Value) -> Ref:
        return self.refs[value]

    def inputs(self, node: Node) -> list[Ref]:
        """The ONNX values of a node's operands, without order tokens."""
        return [self.refs[v] for v in node.inputs if not isinstance(v.type, TokenType)]

    def rank(self, value: Value) -> int:
        """The rank of an operand. Raises NoForm where the graph doesn't know it."""
        shape = value.shape
        if shape is None:
            assert self.node is not None
            raise NoForm(
                self.node, "the rank of an operand isn't known",
                "Give it in the signature, as in ag.TensorSpec([None, None]), or by ag.ensure_shape",
            )  # fmt: skip
        return len(shape)

    # --- shapes ------------------------------------------------------------------------------------------------------

    def shape(self, ref: Ref) -> Ref:
        """The dimensions, an int64 vector."""
        return self.emit("Shape", ref, dtype=dtypes.int64)

    def dim(self, ref: Ref, axis: int) -> Ref:
        """One dimension, an int64 vector of one element."""
        until: dict[str, Any] = {} if axis == -1 else {"end": axis + 1}
        return self.emit("Shape", ref, dtype=dtypes.int64, start=axis, **until)

    def vector(self, ref: Ref) -> Ref:
        """A scalar as an int64 vector of one element."""
        return self.emit("Reshape", self.cast(ref, dtypes.int64), self.ints(1))

    def scalar(self, ref: Ref) -> Ref:
        """A vector of one element as a scalar."""
        return self.emit("Squeeze", ref, self.ints(0))

    def concat(self, *parts: Ref) -> Ref:
        """Vectors one after the other."""
        return parts[0] if len(parts) == 1 else self.emit("Concat", *parts, axis=0)

    def filled(self, sizes: Sequence[int | None], holes: Sequence[Ref]) -> Ref:
        """An int64 vector of sizes, of which those that are None are given by scalars."""
        if None not in sizes:
            return self.ints(*[int(size) for size in sizes if size is not None])
        given = iter(holes)
        parts = [self.vector(next(given)) if size is None else self.ints(size) for size in sizes]
        return self.concat(*parts)

    def reshape(self, ref: Ref, shape: Ref) -> Ref:
        return self.emit("Reshape", ref, shape, allowzero=1)

    def unsqueeze(self, ref: Ref, *axes: int) -> Ref:
        return self.emit("Unsqueeze", ref, self.ints(*axes)) if axes else ref

    def squeeze(self, ref: Ref, *axes: int) -> Ref:
        return self.emit("Squeeze", ref, self.ints(*axes)) if axes else ref

    def transpose(self, ref: Ref, perm: Sequence[int]) -> Ref:
        if list(perm) == list(range(len(perm))):
            return ref
        return self.emit("Transpose", ref, perm=list(perm))

    def zeros(self, shape: Ref, dtype: DType) -> Ref:
        return self.full(shape, b"" if dtype is dtypes.string else 0, dtype)

    def full(self, shape: Ref, value: Any, dtype: DType) -> Ref:
        wide = computing_dtype("Expand", dtype)
        return self.cast(self.emit("Expand", self.number(value, wide), shape), dtype)

    def slice(self, ref: Ref, starts: Ref, ends: Ref, axes: Ref, steps: Ref | None = None) -> Ref:
        return self.emit("Slice", ref, starts, ends, axes, *([] if steps is None else [steps]))

    def first_rows(self, ref: Ref, count: Ref) -> Ref:
        """The first rows; count: an int64 vector of one element."""
        return self.slice(ref, self.ints(0), count, self.ints(0))

    def where(self, condition: Ref, x: Ref, y: Ref) -> Ref:
        own = x.dtype
        wide = computing_dtype("Where", own)
        return self.cast(self.emit("Where", condition, self.cast(x, wide), self.cast(y, wide), dtype=wide), own)

    def extremum(self, op: str, *numbers: Ref) -> Ref:
        """The Max or Min of int64 numbers."""
        return self.emit(op, *numbers)


def reads(node: onnx.NodeProto) -> set[str]:
    """The names that a node reads, in its subgraphs too."""
    found = set(node.input)
    for attribute in node.attribute:
        if attribute.HasField("g"):
            found |= {name for inner in attribute.g.node for name in reads(inner)}
            found |= {output.name for output in attribute.g.output}
    return found
