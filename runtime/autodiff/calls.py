"""The calls that the reverse walk visits: ops that ran, eagerly or as nodes of a graph, under one interface.

A call has `op`, `attrs`, `inputs` and `outputs` (tensors). Tensors are identified by `key_of`: an eager tensor by
identity, a symbolic one by its value.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Hashable, Iterable, Mapping, Sequence
from typing import Any

from runtime.graph.builder import Builder
from runtime.graph.ir import Node, Value
from runtime.ops.elementwise.elementary import CAST
from runtime.tensor import SymbolicTensor
from runtime.types import StackType, TensorType, Type


class EagerCall:
    """An op that ran eagerly. Tapes keep (op, inputs, attrs, outputs, span). That keeps the tensors alive, so their
    identities stay unique while the tape lives. The reverse walk uses one object of this class for all rules in
    turn."""

    __slots__ = ("op", "inputs", "attrs", "outputs", "tracked", "sliced", "span", "calls")

    masks: Mapping[Value, Value | None] = {}

    op: Any
    inputs: tuple
    attrs: dict
    outputs: tuple
    span: Any  # the user's line, of ops that let no gradient through

    def __init__(
        self,
        tracked: Container[Hashable],
        record: tuple | None = None,
        sliced: Collection[Hashable] = (),
        calls: Sequence[tuple] = (),
    ) -> None:
        self.tracked = tracked  # identities of the tensors that a cotangent is wanted for
        self.sliced = sliced  # of those whose cotangents may be slices
        self.calls = calls  # all records, in which casts of these tensors are looked for when one is asked for
        if record is not None:
            self.op, self.inputs, self.attrs, self.outputs, self.span = record

    def wants(self, index: int) -> bool:
        """Whether the cotangent of the operand is needed; a rule may return None for the others."""
        return id(self.inputs[index]) in self.tracked

    def takes_slices(self, index: int) -> bool:
        """Whether a rule may give `gather.Slices` for the operand."""
        key = id(self.inputs[index])
        if key not in self.sliced and self.sliced and self.calls:
            casts = [(id(inputs[0]), id(outputs[0])) for op, inputs, _, outputs, _ in self.calls if op is CAST]
            self.sliced, self.calls = with_casts(self.sliced, casts), ()
        return key in self.sliced


class NodeCall:
    """A node of a graph. Reads the node's operands and results on each access, because adjoints of loops add to
    them.

    masks: the operands whose cotangents count only where a flag holds, or never; see `watches.py`
    """

    __slots__ = ("node", "builder", "sliced", "masks")

    def __init__(self, node: Node, builder: Builder, masks: Mapping[Value, Value | None] | None = None) -> None:
        self.node = node
        self.builder = builder
        self.masks = masks or {}
        self.sliced: Container[Hashable] = ()  # the values whose cotangents may be slices

    def wants(self, index: int) -> bool:
        """Always true: in a graph, unused cotangents are dead code and are removed."""
        return True

    def takes_slices(self, index: int) -> bool:
        """Whether a rule may give `gather.Slices` for the operand."""
        return self.node.inputs[index] in self.sliced

    @property
    def op(self) -> Any:
        return self.node.op

    @property
    def attrs(self) -> dict:
        return self.node.attrs

    @property
    def inputs(self) -> tuple[SymbolicTensor, ...]:
        return self._tensors(self.node.inputs)

    @property
    def outputs(self) -> tuple[SymbolicTensor, ...]:
        return self._tensors(self.node.outputs)

    def _tensors(self, values: Sequence[Value]) -> tuple[SymbolicTensor, ...]:
        # The token of an effect isn't an operand; among the inputs of control flow it keeps its position.
        count = len(values) - 1 if self.node.op.effect else len(values)
        return tuple([SymbolicTensor(v, self.builder) for v in values[:count]])


def with_casts(sliced: Iterable[Hashable], casts: Iterable[tuple[Hashable, Hashable]]) -> set[Hashable]:
    """The keys of tensors, and of what casts make of them. casts: the keys of operands and results, in order."""
    found = set(sliced)
    for source, result in casts:
        if source in found:
            found.add(result)
    return found


def key_of(tensor: Any) -> Hashable:
    """The key that identifies a tensor on a tape."""
    return tensor.value if type(tensor) is SymbolicTensor else id(tensor)


def is_differentiable(type_: Type) -> bool:
    """Whether values of this type can have a cotangent: floating tensors, and stacks of them."""
    if isinstance(type_, StackType):
        type_ = type_.element
    return isinstance(type_, TensorType) and type_.dtype.is_differentiable
