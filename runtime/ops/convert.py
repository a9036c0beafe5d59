"""Turning Python and NumPy values into tensors, by TensorFlow 2's rules.

    Python float -> float32      int -> int32 (int64 where it doesn't fit)      bool -> bool      str, bytes -> string
    NumPy arrays and scalars keep their dtype; lists and tuples nest, and may hold tensors (they are packed)
    as an operand beside a tensor, a Python or NumPy value takes the tensor's dtype

While a function is traced the result is a constant of its graph. Tensors pass through unchanged.
Types of one's own convert by a method `__tf_tensor__(self, dtype=None, name=None)`, as variables do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.context import ctx, placing
from runtime.dtypes import DType, DTypeLike
from runtime.ops.dispatch import call
from runtime.ops.entries import entries, known_value
from runtime.ops.table import OpDef
from runtime.ops.values import collect_types, common_default, default_of, quiet_cast, to_array
from runtime.shapes import TensorShape, as_shape
from runtime.tensor import EagerTensor, SymbolicTensor, Tensor, TensorLike


def convert_to_tensor(
    value: Any, dtype: DTypeLike = None, dtype_hint: DTypeLike = None, name: str | None = None
) -> Tensor:
    """`value` as a tensor, of dtype `dtype` if given, else of `dtype_hint` if possible.

    Raises ValueError for a tensor of another dtype and for values that no tensor can hold, TypeError if a Python value
    doesn't fit the dtype (`1.5` as int32).
    """
    if isinstance(value, Tensor):
        if dtype is not None and value.dtype is not dtype and value.dtype is not dtypes.as_dtype(dtype):
            raise ValueError(
                f"Tensor conversion requested dtype {dtypes.as_dtype(dtype).name} for Tensor with dtype "
                f"{value.dtype.name}: {value!r}"
            )
        return value
    wanted = None if dtype is None else dtypes.as_dtype(dtype)
    hook = getattr(type(value), "__tf_tensor__", None)
    if hook is not None:
        if wanted is None and dtype_hint is not None and not has_dtype(value):
            try:
                return hook(value, dtypes.as_dtype(dtype_hint))
            except TypeError:
                pass  # a hint may fail
        return hook(value, wanted)
    if wanted is None and dtype_hint is not None:
        try:
            return _convert(value, dtypes.as_dtype(dtype_hint))
        except (TypeError, ValueError):
            pass  # a hint may fail; the value's own dtype is next
    return _convert(value, wanted)


def convert_to_indices(value: Any) -> Tensor:
    """`value` as a tensor of indices: an empty list holds integers here, where elsewhere it is one of float32."""
    found = convert_to_tensor(value)
    if isinstance(value, (list, tuple)) and found.dtype is dtypes.float32 and 0 in (found._shape or ()):
        return convert_to_tensor(value, dtype_hint=dtypes.int32)
    return found


def constant(value: TensorLike, dtype: DTypeLike = None, shape: Any = None, name: str | None = None) -> Tensor:
    """A tensor of `value`, which must hold no symbolic tensors; with `shape`, reshaped to it or filled with one value.

    Raises TypeError when the number of elements doesn't match `shape`.
    """
    if isinstance(value, EagerTensor) and dtype is not None and value.dtype is not dtypes.as_dtype(dtype):
        value = value._array
    tensor = convert_to_tensor(value, dtype)
    if shape is None:
        return tensor
    static = as_shape(shape)
    array = static_value(tensor)
    if array is None:
        raise TypeError(f"ag.constant needs a value, got the symbolic tensor {value!r}; use ag.reshape or ag.fill.")
    if static is None or None in static:
        raise TypeError(f"ag.constant needs a known shape, got {shape!r}")
    size = int(np.prod(static, dtype=np.int64))  # type: ignore[arg-type]
    if array.size == size:
        return convert_to_tensor(np.reshape(array, static))
    if array.size == 1:
        return convert_to_tensor(np.full(static, np.reshape(array, ())[()], array.dtype))
    raise TypeError(
        f"Eager execution of tf.constant with unsupported shape. Tensor {array} (converted from {value!r}) has "
        f"{array.size} elements, but got `shape` {static} with {size} elements."
    )


def _convert(value: Any, wanted: DType | None) -> Tensor:
    if isinstance(value, (list, tuple)):
        kinds: set[type] = set()
        collect_types(value, kinds)
        if any(issubclass(k, Tensor) or hasattr(k, "__tf_tensor__") for k in kinds):
            return _pack(value, wanted)
    array, dtype = to_array(value, wanted)
    builder = ctx.builder
    if builder is None:
        return placing[0].made(EagerTensor(array, dtype)) if placing else EagerTensor(array, dtype)
    return builder.constant(array)


def quick_scalar(value: float | int, dtype: DType) -> EagerTensor | None:
    """The eager tensor of a Python number in `dtype`, or None where that takes the general way (and its errors)."""
    if value.__class__ is float:
        return EagerTensor(quiet_cast(dtype, value), dtype) if dtype.kind in "fc" else None
    try:
        return EagerTensor(dtype._np.type(value), dtype)
    except OverflowError:
        return None


def _pack(value: Sequence[Any], wanted: DType | None) -> Tensor:
    """Stacks a nested sequence with tensors in it; Python values take the dtype of the first tensor."""
    if wanted is None:
        numbers: list[DType] = []
        stack: list[Any] = [value]
        while stack:
            item = stack.pop()
            if isinstance(item, (list, tuple)):
                stack.extend(reversed(item))
            elif has_dtype(item):
                wanted = _own_dtype(item)
                break
            elif type(item) in (bool, int, float) or hasattr(type(item), "__ag_number__"):
                numbers.append(default_of(item))
        else:
            wanted = common_default(*numbers)
    else:  # what is asked for, the tensors in a list are converted to, as TensorFlow does
        value = [call("cast", i, dtype=wanted) if isinstance(i, Tensor) and i.dtype is not wanted else i for i in value]
    items = [convert_to_tensor(item, dtype_hint=wanted) for item in value]
    check_same_dtype("Pack", items)
    return call("stack", *items, axis=0)


# --- operands of an op ---------------------------------------------------------------------------------------------


def _converting(dtype: DType, found: DType) -> str:
    """What makes a tensor of one dtype of a tensor of another."""
    if dtype is dtypes.string:
        return "ag.as_string(x)"
    if found is dtypes.string:
        return "ag.strings.to_number(x)"
    return "x != 0" if dtype is dtypes.bool_ else f"ag.cast(x, ag.{dtype.name})"


def mismatch(label: str, index: int, expected: DType, found: DType) -> errors.DTypeError:
    """TensorFlow's error for tensors of different dtypes."""
    message = (
        f"cannot compute {label} as input #{index}(zero-based) was expected to be a {expected.label} tensor but is a "
        f"{found.label} tensor [Op:{label}]"
    )
    if _loses_fractions(expected, found):
        return errors.DTypeError(f"{message}{_ways_out(expected, found)}", label)
    return errors.DTypeError(f"{message}; {_converting(expected, found)} would convert it", label)


def _loses_fractions(expected: DType, found: DType) -> bool:
    return expected.is_integer and (found.is_floating or found.is_complex)


def _ways_out(expected: DType, found: DType) -> str:
    """Why a tensor of integers doesn't go with fractions, and what to write."""
    return (
        f"\n  cause: operands have one dtype, which the first tensor gives: {expected.name}, which has no fractions"
        f"\n  fix: ag.cast the {expected.name} tensor to ag.{found.name}; or let NumPy's rules hold everywhere: "
        "ag.experimental.numpy.experimental_enable_numpy_behavior()"
    )


def check_same_dtype(label: str, tensors: Sequence[Tensor]) -> None:
    """Raises DTypeError when the tensors' dtypes differ."""
    for index, tensor in enumerate(tensors):
        if tensor.dtype is not tensors[0].dtype:
            raise mismatch(label, index, tensors[0].dtype, tensor.dtype)


def check_kind(op: OpDef, dtype: DType) -> None:
    """Raises DTypeError when the op doesn't take the dtype."""
    if dtype.kind not in op.kinds:
        if op.kinds == "b":
            raise mismatch(op.label, 0, dtypes.bool_, dtype)
        allowed = ", ".join(d.label for d in dtypes.ALL if d.kind in op.kinds)
        raise errors.DTypeError(
            f"Value for attr 'T' of {dtype.label} is not in the list of allowed values: {allowed} [Op:{op.label}]",
            op.name,
        )


def _own_dtype(value: Any) -> DType:
    """The dtype of a tensor, a variable, or another type with `__tf_tensor__`."""
    dtype = getattr(value, "dtype", None)
    return dtype if isinstance(dtype, DType) else convert_to_tensor(value).dtype


def is_tensor_like(value: Any) -> bool:
    """Whether a value is a tensor or is used as one: a variable, a `StagedNumber`."""
    return isinstance(value, Tensor) or hasattr(type(value), "__tf_tensor__")


def has_dtype(value: Any) -> bool:
    """Whether `value` has a dtype of its own as an operand: a tensor or a variable, but no `StagedNumber`."""
    return isinstance(value, Tensor) or (
        hasattr(type(value), "__tf_tensor__") and not hasattr(type(value), "__ag_number__")
    )


def operands(label: str, *values: Any) -> list[Tensor]:
    """The operands of an op that takes one dtype; Python and NumPy values take the dtype of the first tensor.

    Raises DTypeError if they can't, or where tensors differ.
    """
    # The usual cases first, at a third of the cost.
    if len(values) == 2 and values[0].__class__ is SymbolicTensor:
        quick = quick_operand(values[1], values[0].dtype)
        if quick is not None:
            return [values[0], quick]
    elif ctx.builder is None:
        eager = _eager_operands(values)
        if eager is not None:
            return eager
    anchor = None
    for value in values:
        if has_dtype(value):
            anchor = _own_dtype(value)
            break
    if anchor is None:
        first = convert_to_tensor(values[0])
        anchor = first.dtype
        result = [first, *[_beside(label, i + 1, v, anchor) for i, v in enumerate(values[1:])]]
    else:
        result = [_beside(label, i, v, anchor) for i, v in enumerate(values)]
    check_same_dtype(label, result)
    return result


def _eager_operands(values: Sequence[Any]) -> list[Tensor] | None:
    """The operands as eager tensors of one dtype, Python numbers converted to it; None if that isn't possible."""
    dtype = None
    numbers = False
    for value in values:
        if value.__class__ is EagerTensor:
            if dtype is None:
                dtype = value.dtype
            elif value.dtype is not dtype:
                return None
        elif value.__class__ is float or value.__class__ is int:
            numbers = True
        else:
            return None
    if dtype is None:
        return None
    if not numbers:
        return list(values)
    if dtype.kind not in "iufc":
        return None
    found: list[Any] = [value if value.__class__ is EagerTensor else quick_scalar(value, dtype) for value in values]
    return None if any(each is None for each in found) else found


def quick_operand(value: Any, dtype: DType) -> Tensor | None:
    """A tensor of the dtype, or what a number stands for beside one; None where that takes a longer look."""
    kind = value.__class__
    if kind is SymbolicTensor or kind is EagerTensor:
        return value if value.dtype is dtype else None
    builder = ctx.builder
    if (kind is not float and kind is not int) or dtype.kind not in "iufc" or builder is None:
        return None
    return builder.number(value, dtype)


# Operators whose right operand TensorFlow converts without insisting on the left one's dtype, so that the op complains.
_HINTED = frozenset({"AddV2", "Sub", "Mul", "RealDiv", "FloorDiv", "FloorMod"})


def _beside(label: str, index: int, value: Any, dtype: DType) -> Tensor:
    if has_dtype(value):
        return convert_to_tensor(value)
    if dtype.kind in "iub" and isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "fc":
        # TensorFlow would cut the fractions off here; a silent loss helps nobody.
        raise mismatch(label, index, dtype, dtypes.as_dtype(value.dtype))
    try:
        return convert_to_tensor(value, dtype)
    except TypeError as error:
        try:
            own = convert_to_tensor(value)
        except (TypeError, ValueError):
            raise error from None
        if index == 1 and label in _HINTED:
            raise mismatch(label, index, dtype, own.dtype) from None
        advice = _ways_out(dtype, own.dtype) if _loses_fractions(dtype, own.dtype) else ""
        raise errors.DTypeError(f"{error}{advice}", label) from None


# --- values known while tracing ------------------------------------------------------------------------------------


def static_value(tensor: Any) -> Any:
    """The tensor's array when it is known now: of an eager tensor, or of a constant of the graph. Else None."""
    if isinstance(tensor, EagerTensor):
        return tensor._array
    if isinstance(tensor, SymbolicTensor):
        node = tensor.value.node
        if node is not None and node.op.name == "constant":
            return node.attrs["value"].array
    return None


# Lists in which TensorFlow takes tensors of floats, too, and cuts off their fractions.
_FLOATS_TOO = ("shape", "multiples")


def scalar_int(value: Any, what: str = "dimension") -> int | Tensor:
    """An int when known now, else a scalar int tensor. Raises TypeError for anything else."""
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{what} must be an integer, got {value!r}")
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, str) and what == "shape":
        raise ValueError(f"{what} must be an integer, got the text {value!r}")
    if not is_tensor_like(value):
        if hasattr(value, "__index__"):
            return value.__index__()
        raise errors.DTypeError(
            f"{what} must be an integer or a scalar integer tensor, got {value!r} of type {type(value)}"
        )
    tensor = convert_to_tensor(value) if has_dtype(value) else value.tensor
    if tensor.dtype.kind == "f" and tensor._shape == () and what in _FLOATS_TOO:
        tensor = call("cast", tensor, dtype=dtypes.int32)
    if tensor.dtype.kind not in "iu" or tensor._shape not in ((), None):
        raise errors.DTypeError(f"{what} must be a scalar integer tensor, got {tensor!r}")
    known = static_value(tensor)
    if known is None:
        known = known_value(tensor)
    return tensor if known is None else int(known)


def int_list(value: Any, what: str = "shape") -> list[int | Tensor | None]:
    """The entries of a shape-like argument: ints where known now, scalar int tensors elsewhere, None as given.

    `value` may be an int, a sequence, a TensorShape, an array or an integer tensor of rank 0 or 1 and known length.
    """
    if isinstance(value, TensorShape):
        return list(value.as_list())
    if is_tensor_like(value):
        return _tensor_entries(convert_to_tensor(value), what)
    if isinstance(value, np.ndarray):
        return [int(v) for v in value.reshape(-1)]
    if isinstance(value, (list, tuple)):
        return [None if v is None else scalar_int(v, what) for v in value]
    return [scalar_int(value, what)]


def _tensor_entries(tensor: Tensor, what: str) -> list[int | Tensor | None]:
    if tensor.dtype.kind not in "iu":
        raise errors.DTypeError(f"{what} must be an integer tensor, got {tensor!r}")
    known = static_value(tensor)
    if known is not None:
        return [int(v) for v in np.reshape(known, -1)]
    shape = tensor._shape
    if shape == ():
        return [scalar_int(tensor, what)]
    if shape is None or len(shape) != 1 or shape[0] is None:
        raise ValueError(f"{what} must be a vector whose length is known while tracing, got {tensor!r}")
    found = entries(tensor)  # type: ignore[arg-type]
    if found is None:
        return [call("strided_slice", tensor, spec=(("index", i),)) for i in range(shape[0])]
    return [entry if type(entry) is int else entry.tensor(tensor.builder) for entry in found.tolist()]  # type: ignore[attr-defined]


def unknown_now(what: str, value: Any) -> TypeError:
    """The error for a tensor that decides the shape of a graph, and has no value while it is made."""
    return TypeError(
        f"{what} must be known while tracing, got {value!r}: it decides the shape of the result. Give a Python or "
        "NumPy value, or a constant."
    )


def shape_args(shape: Any, what: str = "shape") -> tuple[tuple[int | None, ...], list[Tensor]]:
    """A shape-like argument as an op wants it: the attribute with None for each unknown entry, and their tensors."""
    if type(shape) is list or type(shape) is tuple:
        for entry in shape:
            if type(entry) is not int:
                break
        else:
            return tuple(shape), []
    entries = int_list(shape, what)
    if any(e is None for e in entries):
        raise ValueError(f"{what} must not have unknown entries, got {shape!r}")
    attr = tuple(e if isinstance(e, int) else None for e in entries)
    return attr, [e for e in entries if isinstance(e, Tensor)]


def fill_holes(shape: Sequence[int | None], values: Sequence[Any]) -> tuple[int, ...]:
    """Kernels' half of `shape_args`: the entries with None replaced by `values`, in order."""
    if not values:
        return tuple(shape)  # type: ignore[arg-type]
    rest = iter(values)
    return tuple(int(next(rest)) if d is None else d for d in shape)
