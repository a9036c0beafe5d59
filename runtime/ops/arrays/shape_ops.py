"""Shapes: reading them and changing them; identity."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.context import ctx
from runtime.dtypes import DTypeLike
from runtime.ops.convert import convert_to_tensor, fill_holes, int_list, shape_args, unknown_now
from runtime.ops.deferred_calls import deferrable
from runtime.ops.dispatch import apply, call
from runtime.ops.rules import brackets, dims, infer_same, shape_attr, unary_samples
from runtime.ops.table import OpDef, Sample, register
from runtime.shapes import Shape, as_shape, element_count, merge
from runtime.tensor import Tensor, TensorLike
from runtime.types import TensorType


def _no_gradient(op: Any, *dy: Any) -> Sequence[Any]:
    return [None] * len(op.inputs)


def known_rank(tensor: Tensor, what: str) -> int:
    """The rank. Raises ValueError when it isn't known while tracing."""
    shape = tensor._shape
    if shape is None:
        raise ValueError(f"{what} needs a tensor of known rank; give its TensorSpec a shape.")
    return len(shape)


def normal_axis(axis: int, rank: int, what: str) -> int:
    if not -rank <= axis < rank:
        raise errors.InvalidArgumentError(f"{what}: axis = {axis} not in [{-rank}, {rank})")
    return axis % rank


# --- reading shapes ------------------------------------------------------------------------------------------------


def _infer_shape(inputs: Sequence[Any], attrs: dict) -> tuple:
    return (TensorType(attrs["dtype"], (inputs[0].rank,)),)


def _infer_scalar(inputs: Sequence[Any], attrs: dict) -> tuple:
    return (TensorType(attrs.get("dtype", dtypes.int32), ()),)


_INT_DTYPES = ({"dtype": dtypes.int32}, {"dtype": dtypes.int64})
SHAPE = register(
    OpDef(
        "shape", _infer_shape, lambda x, dtype: np.array(x.shape, dtype._np), grad=_no_gradient, shape_only=(0,),
        cheap=True, doc="The sizes of the dimensions, as a vector.",
        samples=tuple(Sample((s,), a) for s in [(2, 3), (), (0, 2)] for a in _INT_DTYPES),
        can_fail=False,
        cost=0,
    )
)  # fmt: skip
DIM = register(
    OpDef(
        "dim", _infer_scalar, lambda x, axis: np.int32(x.shape[axis]), grad=_no_gradient, shape_only=(0,), cheap=True,
        doc="The size of one dimension, as an int32 scalar.",
        samples=(Sample(((2, 3),), {"axis": 1}), Sample(((0,),), {"axis": 0})),
        cost=0,
    )
)  # fmt: skip
SIZE = register(
    OpDef(
        "size", _infer_scalar, lambda x, dtype: dtype._np.type(x.size), grad=_no_gradient, shape_only=(0,), cheap=True,
        doc="The number of elements.",
        samples=tuple(Sample((s,), a) for s in [(2, 3), (), (0, 2)] for a in _INT_DTYPES),
        can_fail=False,
        cost=0,
    )
)  # fmt: skip
RANK = register(
    OpDef(
        "rank", _infer_scalar, lambda x: np.int32(x.ndim), grad=_no_gradient, shape_only=(0,), cheap=True,
        doc="The number of dimensions.", samples=(Sample(((2, 3),)), Sample(((),))),
        cost=0,
    )
)  # fmt: skip


def shape(input: TensorLike, out_type: DTypeLike = dtypes.int32, name: str | None = None) -> Tensor:
    """The dimensions of a tensor as an int32 vector; a constant if all are known while tracing."""
    x = convert_to_tensor(input)
    dtype = dtypes.as_dtype(out_type)
    static = x._shape
    if static is not None and None not in static:
        return convert_to_tensor(np.array(static, dtype._np))
    return apply(SHAPE, (x,), {"dtype": dtype})


def size(input: TensorLike, out_type: DTypeLike = dtypes.int32, name: str | None = None) -> Tensor:
    """The number of elements, an int32 scalar; a constant if it is known while tracing."""
    x = convert_to_tensor(input)
    dtype = dtypes.as_dtype(out_type)
    count = element_count(x._shape)
    return apply(SIZE, (x,), {"dtype": dtype}) if count is None else convert_to_tensor(count, dtype)


def rank(input: TensorLike, name: str | None = None) -> Tensor:
    """The number of dimensions, an int32 scalar."""
    x = convert_to_tensor(input)
    return apply(RANK, (x,)) if x._shape is None else convert_to_tensor(len(x._shape), dtypes.int32)


# --- reshape, expand, squeeze, transpose ---------------------------------------------------------------------------


def _infer_reshape(inputs: Sequence[Any], attrs: dict) -> tuple:
    x = inputs[0]
    target: list[int | None] = list(attrs["shape"])
    for position, size in enumerate(target):
        if size is not None and size < -1:
            raise ValueError(f"Size {position} must be non-negative, not {size}")
    if target.count(-1) > 1:
        first = target.index(-1)
        raise ValueError(f"Only one input size may be -1, not both {first} and {target.index(-1, first + 1)}")
    count = element_count(x.shape)
    if count is not None and None not in target:
        _check_count(count, target)
        if -1 in target:
            target[target.index(-1)] = _inferred(x.shape, [d for d in target if d is not None])
    return (TensorType(x.dtype, tuple(None if d == -1 else d for d in target)),)


def _check_count(count: int, target: Sequence[int | None]) -> None:
    """Raises ValueError if `count` elements don't fit a shape, in which a size may be -1."""
    known = element_count(tuple(d for d in target if d != -1)) or 0
    if -1 not in target:
        if known != count:
            raise ValueError(f"Input to reshape is a tensor with {count} values, but the requested shape has {known}")
    elif count % known if known else count:
        raise ValueError(
            f"Input to reshape is a tensor with {count} values, but the requested shape requires a multiple of {known}"
        )


def _inferred(old: Sequence[int], new: Sequence[int]) -> int:
    """The size that stands as -1 in a new shape. If that has another size of 0, it comes from the sizes that aren't 0,
    as in TensorFlow: an empty batch keeps the other dimensions."""
    if 0 in new:
        old, new = [d for d in old if d], [d for d in new if d]
    return math.prod(old) // math.prod(d for d in new if d != -1)


def _reshape_kernel(x: Any, *holes: Any, shape: tuple[int | None, ...]) -> Any:
    target = tuple(fill_holes(shape, holes))
    for position, size in enumerate(target):
        if size < -1:
            raise errors.InvalidArgumentError(f"Size {position} must be non-negative, not {size}")
    if target.count(-1) > 1:
        raise ValueError("Only one input size may be -1")
    if not x.size and 0 in target and -1 in target:
        target = tuple(_inferred(x.shape, target) if d == -1 else d for d in target)
    try:
        result = x.reshape(target)
    except ValueError:
        _check_count(x.size, target)  # NumPy's words aren't TensorFlow's
        raise
    return result if target or x.dtype == object else result[()]


def _prepared_reshape(shape: tuple[int | None, ...]) -> Callable[..., Any]:
    if not shape or any(size is None or size < 0 for size in shape):
        return functools.partial(_reshape_kernel, shape=shape)

    def run(x: Any) -> Any:
        try:
            return x.reshape(shape)
        except ValueError:
            return _reshape_kernel(x, shape=shape)  # whose error says more

    return run


def _grad_reshape(op: Any, dy: Any) -> Sequence[Any]:
    attr, extra = shape_attr(dims(op.inputs[0]))
    return (call("reshape", dy, *extra, shape=attr), *[None] * (len(op.inputs) - 1))


RESHAPE = register(
    OpDef(
        "reshape", _infer_reshape, _reshape_kernel, grad=_grad_reshape, cheap=True, prepared=_prepared_reshape,
        doc="The same elements, in row-major order, in another shape.",
        samples=(
            Sample(((2, 3),), {"shape": (3, 2)}), Sample(((2, 3),), {"shape": (-1,)}), Sample(((1, 1),), {"shape": ()}),
            Sample(((),), {"shape": (1, -1)}), Sample(((0, 3),), {"shape": (3, 0, 2)}),
            Sample(((2, 3), ()), {"shape": (None, 2)}, fixed={1: np.int32(3)}, gradient=(0,)),
        ),
        is_move=True,
        can_fail=False,
        is_view=True,
        is_reshape=True,
        numbers_after=1,
        cost=0,
        keeps_order=True,
    )
)  # fmt: skip


@deferrable
def reshape(tensor: TensorLike, shape: Any, name: str | None = None) -> Tensor:
    """The elements of `tensor`, in row-major order, in another shape; one entry may be -1 and is inferred.

    Raises InvalidArgumentError when the number of elements doesn't fit.
    """
    x = convert_to_tensor(tensor)
    attr, holes = shape_args(shape)
    return apply(RESHAPE, (x, *holes), {"shape": attr})


def _over(name: str, cases: Sequence[tuple[tuple[int, ...], tuple[int, ...]]]) -> tuple[Sample, ...]:
    """One operand and one attribute per case."""
    return tuple(Sample((shape,), {name: value}) for shape, value in cases)


def _infer_expand(inputs: Sequence[Any], attrs: dict) -> tuple:
    shape = inputs[0].shape
    if shape is None:
        return (inputs[0],)
    result = list(shape)
    for axis in attrs["axis"]:
        result.insert(axis, 1)
    return (TensorType(inputs[0].dtype, tuple(result)),)


def _expand_kernel(x: Any, axis: tuple[int, ...]) -> Any:
    return np.expand_dims(x, axis)


EXPAND_DIMS = register(
    OpDef(
        "expand_dims", _infer_expand, _expand_kernel, cheap=True,
        grad=lambda op, dy: (call("squeeze", dy, axis=op.attrs["axis"]),),
        doc="A tensor with dimensions of size 1 inserted; the positions are those in the result.",
        samples=_over("axis", [((2, 3), (0,)), ((2, 3), (1, 3)), ((), (0,)), ((0,), (1,))]),
        is_move=True,
        can_fail=False,
        is_view=True,
        is_reshape=True,
        cost=0,
        keeps_order=True,
    )
)  # fmt: skip


@deferrable
def expand_dims(input: TensorLike, axis: Any, name: str | None = None) -> Tensor:
    """The tensor with a dimension of size 1 inserted at `axis` (a negative one counts from the end of the result)."""
    x = convert_to_tensor(input)
    r = known_rank(x, "expand_dims")
    entries = int_list(axis, "axis")
    if len(entries) != 1:
        raise errors.InvalidArgumentError(f"'dim' must be a single value, got {axis!r} [Op:ExpandDims]", "expand_dims")
    position = entries[0]
    if not isinstance(position, int):
        raise unknown_now("axis", axis)
    if not -r - 1 <= position <= r:
        raise errors.InvalidArgumentError(
            f"Tried to expand dim index {position} for tensor with {r} dimensions. [Op:ExpandDims]", "expand_dims"
        )
    return apply(EXPAND_DIMS, (x,), {"axis": (position % (r + 1),)})


def _infer_squeeze(inputs: Sequence[Any], attrs: dict) -> tuple:
    shape, axes = inputs[0].shape, attrs["axis"]
    if shape is None:
        return (inputs[0],)
    for a in axes:
        if shape[a] not in (1, None):
            raise ValueError(f"Can not squeeze dim[{a}], expected a dimension of 1, got {shape[a]}")
    return (TensorType(inputs[0].dtype, tuple(d for i, d in enumerate(shape) if i not in axes)),)


SQUEEZE = register(
    OpDef(
        "squeeze", _infer_squeeze, lambda x, axis: np.squeeze(x, axis),
        grad=lambda op, dy: (call("expand_dims", dy, axis=op.attrs["axis"]),), cheap=True,
        doc="A tensor without the given dimensions of size 1.",
        samples=_over("axis", [((2, 1), (1,)), ((1, 1), (0, 1)), ((1, 3, 1), (0, 2)), ((2,), ())]),
        is_move=True,
        can_fail=False,
        is_view=True,
        is_reshape=True,
        cost=0,
        keeps_order=True,
    )
)  # fmt: skip


@deferrable
def squeeze(input: TensorLike, axis: Any = None, name: str | None = None) -> Tensor:
    """Removes the dimensions of size 1, or those in `axis`. Raises InvalidArgumentError if one of these has another
    size."""
    x = convert_to_tensor(input)
    r = known_rank(x, "squeeze")
    chosen = [] if axis is None else int_list(axis, "axis")
    if chosen:
        axes = tuple(sorted({normal_axis(a, r, "squeeze") for a in chosen}))  # type: ignore[arg-type]
    else:
        static = x._shape or ()
        if None in static:
            raise ValueError(f"squeeze of {brackets(static)} needs an axis: not all dimensions are known.")
        axes = tuple(i for i, d in enumerate(static) if d == 1)
    return apply(SQUEEZE, (x,), {"axis": axes})


def _infer_transpose(inputs: Sequence[Any], attrs: dict) -> tuple:
    shape, perm = inputs[0].shape, attrs["perm"]
    if shape is None:
        return (TensorType(inputs[0].dtype, (None,) * len(perm)),)
    if len(shape) != len(perm):
        raise ValueError(
            f"transpose expects a vector of size {len(shape)}. But input(1) is a vector of size {len(perm)}"
        )
    if sorted(perm) != list(range(len(perm))):
        raise ValueError(f"perm must be a permutation of 0..{len(perm) - 1}, got {list(perm)}")
    return (TensorType(inputs[0].dtype, tuple(shape[p] for p in perm)),)


def _grad_transpose(op: Any, dy: Any) -> Sequence[Any]:
    inverse = tuple(int(i) for i in np.argsort(op.attrs["perm"]))
    return (call("transpose", dy, perm=inverse),)


TRANSPOSE = register(
    OpDef(
        "transpose", _infer_transpose, lambda x, perm: np.transpose(x, perm), grad=_grad_transpose, cheap=True,
        doc="A tensor with its dimensions in another order.",
        samples=_over("perm", [((2, 3), (1, 0)), ((2, 3, 4), (2, 0, 1)), ((), ()), ((0, 2), (1, 0))]),
        is_move=True,
        can_fail=False,
        is_view=True,
        cost=0,
    )
)  # fmt: skip


@deferrable
def transpose(a: TensorLike, perm: Any = None, conjugate: bool = False, name: str | None = None) -> Tensor:
    """Permutes the dimensions to the order `perm`; reversed by default. conjugate: conjugate complex elements as
    well."""
    x = convert_to_tensor(a)
    if perm is None:
        order = tuple(reversed(range(known_rank(x, "transpose"))))
    else:
        entries = int_list(perm, "perm")
        if not all(isinstance(e, int) for e in entries):
            raise unknown_now("perm", perm)
        r = len(entries)
        order = tuple(e + r if e < 0 else e for e in entries)  # type: ignore[operator,misc]
    result = apply(TRANSPOSE, (x,), {"perm": order})
    return call("conj", result) if conjugate and x.dtype.is_complex else result


# --- identity ------------------------------------------------------------------------------------------------------

IDENTITY = register(
    OpDef(
        "identity", infer_same, lambda x: x, grad=lambda op, dy: (dy,), cheap=True,
        doc="The same tensor, as the result of a new node.", samples=unary_samples(),
        is_move=True,
        can_fail=False,
        is_view=True,
        keeps_rows=True,
        cost=0,
        keeps_order=True,
    )
)  # fmt: skip
TO_DEVICE = register(
    OpDef(
        "to_device",
        infer_same,
        lambda x, device: x,
        grad=lambda op, dy: (dy,),
        cheap=True,
        doc="The same tensor on a device, in functions that name several (`engine/across_devices.py`).",
        label="Identity",
        samples=(Sample(((2, 3),), {"device": "/device:CPU:0"}), Sample(((),), {"device": "/device:GPU:1"})),
        kinds="biufcO",
        is_copy_to_device=True,
        is_move=True,
        can_fail=False,
        is_view=True,
        keeps_rows=True,
        cost=0,
        keeps_order=True,
    )
)
STOP_GRADIENT = register(
    OpDef(
        "stop_gradient",
        infer_same,
        lambda x: x,
        grad=lambda op, dy: (None,),
        cheap=True,
        doc="The same values, cut off from gradients.",
        is_move=True,
        can_fail=False,
        is_view=True,
        cuts_gradient="stop_gradient cuts it off",
        cost=0,
        keeps_order=True,
    )
)


def identity(input: TensorLike, name: str | None = None) -> Tensor:
    """A tensor of the same value, distinct for gradients and names."""
    return apply(IDENTITY, (convert_to_tensor(input),))


def stop_gradient(input: TensorLike, name: str | None = None) -> Tensor:
    """The same values, through which no gradient flows."""
    return apply(STOP_GRADIENT, (convert_to_tensor(input),))


def ensure_shape(x: TensorLike, shape: Any, name: str | None = None) -> Tensor:
    """x, known to have `shape` (None for free dimensions). Raises InvalidArgumentError when it has another."""
    tensor = convert_to_tensor(x)
    wanted: Shape = as_shape(shape)
    try:
        merged = merge(tensor._shape, wanted)
    except ValueError:
        raise errors.InvalidArgumentError(
            f"Shape of tensor {'input' if ctx.builder is None else tensor} {brackets(tensor._shape)} is not compatible "
            f"with expected shape {brackets(wanted)}. [Op:EnsureShape]",
            "ensure_shape",
        ) from None
    return tensor if merged == tensor._shape else apply(ENSURE_SHAPE, (tensor,), {"shape": wanted})


def _infer_ensure(inputs: Sequence[Any], attrs: dict) -> tuple:
    return (TensorType(inputs[0].dtype, merge(inputs[0].shape, attrs["shape"])),)


def _ensure_kernel(x: Any, shape: Shape) -> Any:
    try:
        merge(x.shape, shape)
    except ValueError:
        raise errors.InvalidArgumentError(
            f"Shape of tensor input {brackets(x.shape)} is not compatible with expected shape {brackets(shape)}. "
            "[Op:EnsureShape]",
            "ensure_shape",
        ) from None
    return x


ENSURE_SHAPE = register(
    OpDef(
        "ensure_shape", _infer_ensure, _ensure_kernel, grad=lambda op, dy: (dy,),
        doc="x; raises an error unless it has a given shape.",
        samples=(Sample(((2, 3),), {"shape": (None, 3)}), Sample(((),), {"shape": ()})),
        is_move=True,
        is_view=True,
        keeps_rows=True,
        cost=0,
        keeps_order=True,
    )
)  # fmt: skip
