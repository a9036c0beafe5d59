"""What is known, while tracing, of the entries of small integer tensors: of shapes that a program computes.

    x: [?, 3, 4]    concat([shape(x)[:1], [shape(x)[1] * 4]], 0)   →   [dimension 0 of x, 12]

An entry is an int, or an `Origin`: the place where the number is first to be had. Nothing is emitted to find out.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from runtime.ops.dispatch import call
from runtime.tensor import SymbolicTensor, Tensor
from runtime.types import TensorType

# Shapes are short; what is longer, or further away, isn't looked at.
_MOST_ENTRIES = 64
_DEEPEST = 64

_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "floordiv": operator.floordiv,
    "floormod": operator.mod, "maximum": max, "minimum": min,
}  # fmt: skip
_REDUCTIONS: dict[str, Callable[[Any], Any]] = {
    "reduce_prod": np.prod, "reduce_sum": np.sum, "reduce_max": np.max, "reduce_min": np.min,
}  # fmt: skip

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt, "less_equal": operator.le,
    "greater": operator.gt, "greater_equal": operator.ge,
}  # fmt: skip


class Origin(NamedTuple):
    """Where a number comes from: a dimension of a value (`is_size`), an entry of a vector, or a scalar (no place)."""

    value: Any
    place: int | None
    is_size: bool = False

    def tensor(self, builder: Any) -> Tensor:
        """The number as a scalar tensor, of any integer dtype."""
        whole = SymbolicTensor(self.value, builder)
        if self.place is None:
            return whole
        if self.is_size:
            return call("dim", whole, axis=self.place)
        return call("strided_slice", whole, spec=(("index", self.place),))


def entries(tensor: SymbolicTensor) -> np.ndarray | None:
    """The entries of an integer tensor of rank 0 or 1, in an array of objects; None for other tensors.

    Raises nothing: what isn't known is its own origin.
    """
    if tensor.guard is not None:  # it may turn out that there is no tensor
        return None
    return _entries(tensor.value, tensor.builder, 0)


def known_value(tensor: Any) -> np.ndarray | None:
    """The value of a symbolic integer tensor of rank 0 or 1, or of a comparison of two, where all entries are known.

    None for other tensors.
    """
    if type(tensor) is not SymbolicTensor:
        return None
    node = tensor.value.node
    if node is not None and node.op.name in _COMPARISONS and tensor.guard is None:
        sides = [known_value(SymbolicTensor(side, tensor.builder)) for side in node.inputs]
        return None if sides[0] is None or sides[1] is None else np.asarray(_COMPARISONS[node.op.name](*sides))
    found = entries(tensor)
    if found is None or not all(type(entry) is int for entry in found.flat):
        return None
    return found.astype(tensor.dtype.np)


def _entries(value: Any, builder: Any, depth: int) -> np.ndarray | None:
    type_ = value.type
    if not isinstance(type_, TensorType):  # a token
        return None
    shape = type_.shape
    if type_.dtype.kind not in "iu" or shape is None or len(shape) > 1 or None in shape or shape > (_MOST_ENTRIES,):
        return None
    while builder is not None and builder.graph is not value.graph:
        builder = builder.parent
    if builder is None or depth > _DEEPEST:
        return _unknown(value)
    found = builder.entries.get(value)
    if found is None:
        found = _look(value, builder, depth)
        own = _unknown(value)
        if found is None or any(type(entry) is int and not _fits(entry, type_.dtype.np) for entry in found.flat):
            found = own
        else:
            found = _array([b if a is None else a for a, b in zip(found.flat, own.flat)], found.shape)
        builder.entries[value] = found
    return found


def _unknown(value: Any) -> np.ndarray:
    if value.type.shape == ():
        return _array([Origin(value, None)], ())
    return _array([Origin(value, index) for index in range(value.type.shape[0])], value.type.shape)


def _array(items: list[Any], shape: tuple[int, ...]) -> np.ndarray:
    made = np.empty(len(items), object)
    for index, item in enumerate(items):  # one by one, since NumPy would take tuples apart
        made[index] = int(item) if isinstance(item, np.integer) else item
    return made.reshape(shape)


def _fits(number: int, kind: np.dtype) -> bool:
    limits = np.iinfo(kind)
    return bool(limits.min <= number <= limits.max)


def _look(value: Any, builder: Any, depth: int) -> np.ndarray | None:
    """The entries of a value as far as the node that computes it shows them; unknown entries are None."""
    node = value.node
    if node is None:
        outer = builder.outside.get(value)
        return None if outer is None or builder.parent is None else _entries(outer, builder.parent, depth + 1)
    name = node.op.name
    if name == "constant":
        array = np.asarray(node.attrs["value"].array)
        return _array(array.reshape(-1).tolist(), array.shape)
    if name in ("shape", "dim"):
        source = node.inputs[0]
        sizes = source.type.shape
        found = [Origin(source, axis, True) if size is None else size for axis, size in enumerate(sizes)]
        return _array(found, (len(found),)) if name == "shape" else _array([found[node.attrs["axis"]]], ())
    operands = [_entries(operand, builder, depth + 1) for operand in node.inputs]
    if any(operand is None for operand in operands):
        return None
    if name == "cast":
        # Sizes fit into every dtype that shapes have; other numbers might change.
        source = operands[0]
        wider = np.can_cast(node.inputs[0].type.dtype.np, value.type.dtype.np)
        sure = all(type(entry) is int or entry.is_size or wider for entry in source.flat)  # type: ignore[union-attr]
        return source if sure else None
    if node.op.is_move or (name == "gather" and all(type(entry) is int for entry in operands[1].flat)):  # type: ignore[union-attr]
        return _moved(node, operands, value)
    if name in _ARITHMETIC:
        return _computed(_ARITHMETIC[name], operands)
    if name in _REDUCTIONS and all(type(entry) is int for entry in operands[0].flat) and operands[0].size:  # type: ignore[union-attr]
        return _array([_REDUCTIONS[name](operands[0])], ()) if value.type.shape == () else None
    return None


def _moved(node: Any, operands: list[Any], value: Any) -> np.ndarray:
    """The entries of a result whose op only moves entries: the op is applied to their numbers in a list."""
    items: list[Any] = [0]  # what a move puts where no entry goes
    labels = []
    numbers_after = len(operands) if node.op.numbers_after is None else node.op.numbers_after
    for position, operand in enumerate(operands):
        if position and node.op.name == "gather":
            labels.append(operand.astype(np.int64))
            continue
        if position >= numbers_after:
            labels.append(operand.astype(np.int64) if all(type(e) is int for e in operand.flat) else None)
            continue
        labels.append(np.arange(len(items), len(items) + operand.size).reshape(operand.shape))
        items += operand.reshape(-1).tolist()
    if any(label is None for label in labels):
        return _unknown(value)
    results = node.op.kernel(*labels, **node.attrs)
    result = np.asarray(results[node.outputs.index(value)] if len(node.outputs) > 1 else results)
    return _array([items[label] for label in result.reshape(-1).tolist()], result.shape)


def _computed(function: Callable[[int, int], int], operands: list[Any]) -> np.ndarray | None:
    """The entries of a sum or the like, None for those that aren't known."""
    a, b = np.broadcast_arrays(*operands)
    found: list[int | None] = []
    for x, y in zip(a.flat, b.flat):
        if type(x) is not int or type(y) is not int:
            found.append(None)
        elif function in (operator.floordiv, operator.mod) and y == 0:
            return None
        else:
            found.append(function(x, y))
    return _array(found, a.shape)
