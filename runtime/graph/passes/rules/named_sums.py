"""Sums over named dimensions become products of matrices, which can be compiled.

    %1 = einsum(%a, %b) {bij,bkj->bki}         %1 = matmul(%b, %a, transpose_b=True)
    %2 = einsum(%1, %c) {bki,k->bi}            %2 = transpose(%1) {0, 2, 1}
    return %2                            →     %3 = reshape(%c) {4, 1}
                                               %4 = matmul(%2, %3)
                                               %5 = reshape(%4) {8, 5}
                                               return %5

A name is one of four: of the batch (in both operands and the result), summed over (in both, not in the result), or of
one operand only. An operand is transposed unless a flag of the product does it, dimensions of a kind become one.
A sum with nothing of its own in either operand, and products that sum over nothing, are multiplied element by element.
Three operands and more are taken two at a time, in the order that NumPy's search finds cheapest. Last bits may
change, as the order of terms does. Only where sizes are known and equal: what stretches, and what must be compared
when it runs, stays.
"""

from __future__ import annotations

import math

import numpy as np

from runtime import dtypes
from runtime.graph.ir import Node, Value
from runtime.graph.passes.rules.rewriting import Rewrite, Rule
from runtime.types import TensorType

_KINDS = frozenset({"float32", "float64", "int8", "int16", "int32", "int64", "complex64", "complex128"})


def _einsum(rewrite: Rewrite, node: Node) -> Value | None:
    left, _, result = node.attrs["equation"].partition("->")
    dtype = node.outputs[0].dtype
    if dtype.name not in _KINDS and not dtype.is_narrow:
        return None
    sizes: dict[str, int] = {}
    todo: list[tuple[str, Value]] = []
    for term, value in zip(left.split(","), node.inputs):
        if not isinstance(value.type, TensorType) or value.type.shape is None:
            return None
        for name, size in zip(term, value.type.shape):
            if size is None or sizes.setdefault(name, size) != size:
                return None
        todo.append((term, value))
    widens = dtype.is_narrow and len(todo) > 1  # then the result is rounded once, as that of one operation is
    if widens:
        todo = [(term, rewrite.emit("cast", [value], {"dtype": dtypes.float32})) for term, value in todo]
    for places in _order(node.attrs["equation"], todo):
        chosen = [todo[place] for place in places]
        todo = [operand for place, operand in enumerate(todo) if place not in places]
        term, value = chosen.pop(0)
        while chosen:
            other, y = chosen.pop(0)
            wanted = set(result).union(*(names for names, _ in todo + chosen))
            made = "".join(name for name in dict.fromkeys(term + other) if name in wanted)
            term, value = _product(rewrite, (term, value), (other, y), made, sizes)
        todo.append((term, value))
    ((term, value),) = todo
    found = _transposed_to(rewrite, value, term, result)
    return rewrite.emit("cast", [found], {"dtype": dtype}) if widens else found


def _order(equation: str, operands: list[tuple[str, Value]]) -> list[tuple[int, ...]]:
    """The order of contraction: for each step the positions of the operands to contract; their result is appended to
    the operands."""
    if len(operands) < 3:
        return [tuple(range(len(operands)))]
    shapes = [np.broadcast_to(np.float32(0), value.type.shape) for _, value in operands]  # type: ignore[union-attr,arg-type]
    return list(np.einsum_path(equation, *shapes, optimize="greedy")[0][1:])


def _product(
    rewrite: Rewrite, left: tuple[str, Value], right: tuple[str, Value], made: str, sizes: dict[str, int]
) -> tuple[str, Value]:
    """The sum of products of two operands, and the order of its names, which are those in `made`."""
    (a, x), (b, y) = left, right
    batch = [name for name in a if name in b and name in made]
    summed = [name for name in a if name in b and name not in made]
    own = [name for name in a if name not in b]
    other = [name for name in b if name not in a]
    if not summed or not (own or other):
        # Element by element; names that only one operand has are stretched.
        order = [*batch, *own, *other, *summed]
        pair = [_spread(rewrite, value, term, order, sizes) for term, value in (left, right)]
        value = rewrite.emit("multiply", pair)
        if summed:
            axes = tuple(range(len(order) - len(summed), len(order)))
            value = rewrite.emit("reduce_sum", [value], {"axis": axes, "keepdims": False})
        return "".join([*batch, *own, *other]), value
    x, flip_a = _matrices(rewrite, x, a, (batch, own, summed), sizes)
    y, flip_b = _matrices(rewrite, y, b, (batch, summed, other), sizes)
    value = rewrite.emit("matmul", [x, y], {"transpose_a": flip_a, "transpose_b": flip_b})
    names = [*batch, *own, *other]
    return "".join(names), _shaped(rewrite, value, [sizes[name] for name in names])


def _matrices(
    rewrite: Rewrite, value: Value, term: str, kinds: tuple[list[str], list[str], list[str]], sizes: dict[str, int]
) -> tuple[Value, bool]:
    """The operand as a batch of matrices, and whether they are transposed."""
    batch, rows, columns = kinds
    flip = bool(rows and columns) and list(term) == [*batch, *columns, *rows]
    first, second = (columns, rows) if flip else (rows, columns)
    value = _transposed_to(rewrite, value, term, "".join([*batch, *first, *second]))
    shape = [*(sizes[n] for n in batch), *(math.prod(sizes[n] for n in kind) for kind in (first, second))]
    return _shaped(rewrite, value, shape), flip


def _spread(rewrite: Rewrite, value: Value, term: str, order: list[str], sizes: dict[str, int]) -> Value:
    """The operand with its names in that order, and dimensions of 1 for those that it lacks."""
    value = _transposed_to(rewrite, value, term, "".join(name for name in order if name in term))
    return _shaped(rewrite, value, [sizes[name] if name in term else 1 for name in order])


def _transposed_to(rewrite: Rewrite, value: Value, term: str, target: str) -> Value:
    if term == target:
        return value
    return rewrite.emit("transpose", [value], {"perm": tuple(term.index(name) for name in target)})


def _shaped(rewrite: Rewrite, value: Value, shape: list[int]) -> Value:
    if value.type.shape == tuple(shape):  # type: ignore[union-attr]
        return value
    return rewrite.emit("reshape", [value], {"shape": tuple(shape)})


RULES: dict[str, Rule] = {"einsum": _einsum}
