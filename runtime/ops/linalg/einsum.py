"""Sums of products over named dimensions: einsum.

The row takes equations without `...`, in which no operand names a dimension twice and each name of an operand occurs
in the result or in another operand; `einsum` brings others into this form. The gradient by one operand is then again
such a sum: of the cotangent and the other operands, to that operand's names.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import errors
from runtime.ops.arrays.shape_ops import known_rank
from runtime.ops.convert import check_kind, operands
from runtime.ops.deferred_calls import deferrable
from runtime.ops.dispatch import apply, call
from runtime.ops.linalg.matrix_products import diag_part
from runtime.ops.rules import brackets, need_same_dtype, unbroadcast
from runtime.ops.table import OpDef, Sample, register
from runtime.tensor import Tensor
from runtime.types import TensorType


def _split(equation: str) -> tuple[list[str], str]:
    terms, _, result = equation.partition("->")
    return terms.split(","), result


def _infer(inputs: Sequence[Any], attrs: dict) -> tuple:
    need_same_dtype(inputs)
    terms, result = _split(attrs["equation"])
    sizes: dict[str, int | None] = {}
    for term, operand in zip(terms, inputs):
        if operand.shape is None:
            return (TensorType(inputs[0].dtype, (None,) * len(result)),)
        if len(operand.shape) != len(term):
            raise ValueError(f"einsum: '{term}' has {len(term)} labels for shape {brackets(operand.shape)}")
        for label, size in zip(term, operand.shape):
            known = sizes.get(label, 1)
            if known == 1 or size is None:
                # Only one that isn't known to be 1 decides; unknown ones may be 1 and stretch.
                sizes[label] = known if size is None and known not in (1, None) else size
            elif known is not None and size not in (1, known):
                raise ValueError(
                    f"einsum: expected dimension {known} for '{label}' but got {size} in {brackets(operand.shape)}"
                )
            elif known is None and size != 1:
                sizes[label] = size
    return (TensorType(inputs[0].dtype, tuple(sizes[label] for label in result)),)


def _kernel(*arrays: Any, equation: str, named: str = "") -> Any:
    terms, _ = _split(equation)
    if named:
        _check_sizes(named, equation, [np.shape(a) for a in arrays], terms)
    sizes: dict[str, int] = {}
    plain = True
    for term, array in zip(terms, arrays):
        for label, size in zip(term, np.shape(array)):
            plain = plain and sizes.setdefault(label, size) == size
    # The optimised form uses BLAS, but doesn't stretch dimensions of size 1.
    result = np.einsum(equation, *arrays, optimize=plain and len(arrays) > 1)
    return np.asarray(result, arrays[0].dtype)[()]


def _grad(op: Any, dy: Any) -> Sequence[Any]:
    terms, result = _split(op.attrs["equation"])
    grads = []
    for i, (term, x) in enumerate(zip(terms, op.inputs)):
        names = [result, *terms[:i], *terms[i + 1 :]]
        others = [dy, *op.inputs[:i], *op.inputs[i + 1 :]]
        grads.append(unbroadcast(call("einsum", *others, equation=f"{','.join(names)}->{term}"), x))
    return grads


ROW = register(
    OpDef(
        "einsum", _infer, _kernel, grad=_grad, kinds="iufc", doc="A sum of products over named dimensions.",
        samples=(
            Sample(((2, 3), (3, 4)), {"equation": "ij,jk->ik"}),
            Sample(((2, 3), (2, 3)), {"equation": "ij,ij->i"}),
            Sample(((2, 3), (3,), (2,)), {"equation": "ij,j,i->"}),
            Sample(((2, 1, 3), (4, 3)), {"equation": "bij,ij->bi"}),
            Sample(((2, 3),), {"equation": "ij->ji"}),
        ),
    )
)  # fmt: skip


def _explicit(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """The axis names of the operands and of the result, with names for the axes that `...` covers."""
    text = equation.replace(" ", "")
    left, arrow, result = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ValueError(f"Got {len(ranks)} inputs for equation '{equation}', expecting {len(terms)}")
    free = [c for c in string.ascii_letters if c not in text]
    widest = 0
    for term, rank in zip(terms, ranks):
        if "..." in term:
            widest = max(widest, rank - len(term.replace("...", "")))
    dots = "".join(free[:widest])
    full = []
    for term, rank in zip(terms, ranks):
        own = rank - len(term.replace("...", ""))
        if own < 0 or (own and "..." not in term):
            raise ValueError(f"einsum: '{term}' doesn't fit an operand of rank {rank}")
        full.append(term.replace("...", dots[widest - own :] if own else ""))
    if not arrow:
        counts = "".join(t.replace("...", "") for t in terms)
        result = ("..." if "..." in left else "") + "".join(sorted(c for c in set(counts) if counts.count(c) == 1))
    elif len(set(result.replace(".", ""))) != len(result.replace(".", "")):
        raise ValueError(f"einsum: the result of '{equation}' repeats a label")
    result = result.replace("...", dots)
    unknown = set(result) - set("".join(full))
    if unknown:
        raise ValueError(f"einsum: the result of '{equation}' has labels that no operand has: {sorted(unknown)}")
    return full, result


def _diagonals(x: Tensor, term: str) -> tuple[Tensor, str]:
    """The diagonal over each name that occurs twice."""
    for label in dict.fromkeys(term):
        while term.count(label) > 1:
            first = term.index(label)
            second = term.index(label, first + 1)
            rest = [i for i in range(len(term)) if i not in (first, second)]
            x = diag_part(call("transpose", x, perm=(*rest, first, second)))
            term = "".join(term[i] for i in rest) + label
    return x, term


def _check_sizes(named: str, equation: str, shapes: Sequence[Any], terms: Sequence[str]) -> None:
    """A dimension that the equation names (`named`) has one size; only those that `...` stands for stretch."""
    sizes: dict[str, int] = {}
    for shape, term in zip(shapes, terms):
        for axis, (label, size) in enumerate(zip(term, shape or ())):
            if label in named and size is not None and sizes.setdefault(label, size) != size:
                raise errors.InvalidArgumentError(
                    f"Expected dimension {sizes[label]} at axis {axis} of the input shaped {brackets(shape)} but "
                    f"got dimension {size}: '{label}' in '{equation}' [Op:Einsum]"
                )


@deferrable
def einsum(equation: str, *inputs: Any, **kwargs: Any) -> Tensor:
    """The sum of products that `equation` describes: "ij,jk->ik" is a product of matrices; `...` stands for a batch.

    Raises ValueError for an equation that doesn't fit the operands.
    """
    if kwargs.keys() - {"optimize", "name"}:
        raise TypeError(f"Invalid keyword arguments for this function: {', '.join(sorted(kwargs))}")
    values = list(inputs[0]) if len(inputs) == 1 and isinstance(inputs[0], (list, tuple)) else list(inputs)
    tensors = operands("Einsum", *values)
    check_kind(ROW, tensors[0].dtype)
    terms, result = _explicit(equation, [known_rank(t, "einsum") for t in tensors])
    shapes = [t._shape for t in tensors]
    _check_sizes(equation, equation, shapes, terms)
    ready = []
    names = []
    for i, (x, term) in enumerate(zip(tensors, terms)):
        x, term = _diagonals(x, term)
        elsewhere = set(result).union(*[t for k, t in enumerate(terms) if k != i])
        alone = tuple(axis for axis, label in enumerate(term) if label not in elsewhere)
        if alone:
            x = call("reduce_sum", x, axis=alone, keepdims=False)
            term = "".join(label for label in term if label in elsewhere)
        ready.append(x)
        names.append(term)
    attrs = {"equation": f"{','.join(names)}->{result}"}
    if any(s is None or None in s for s in shapes):
        # What isn't known while tracing is compared when the sum runs.
        attrs["named"] = "".join(sorted(set("".join(names)) & set(equation)))
    return apply(ROW, ready, attrs)
