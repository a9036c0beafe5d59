"""`ag.debugging.assert_*`: what a program may take for granted. What is known while tracing is checked then, with the
errors that TensorFlow raises for it (ValueError, TypeError); the rest when the program runs (InvalidArgumentError).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from runtime import dtypes
from runtime.dtypes import DType, DTypeLike
from runtime.ops.arrays.reduce import reduce_all
from runtime.ops.control import assert_op
from runtime.ops.convert import convert_to_tensor, is_tensor_like, operands, static_value
from runtime.ops.deferred_calls import deferrable
from runtime.ops.dispatch import call
from runtime.shapes import format_shape
from runtime.tensor import Tensor, TensorLike


def _text(message: str | None, text: str) -> str:
    return f"{message}\n{text}" if message else text


class SignCheck(Protocol):
    """A public function that compares with 0."""

    def __call__(
        self, x: TensorLike, message: str | None = None, summarize: int | None = None, name: str | None = None
    ) -> None: ...


def _sign(name: str, row: str, symbol: str) -> SignCheck:
    def check(x: TensorLike, message: str | None = None, summarize: int | None = None, name: str | None = None) -> None:
        tensor = convert_to_tensor(x)
        zero = convert_to_tensor(0, tensor.dtype)
        text = _text(message, f"Condition x {symbol} 0 did not hold element-wise: x =")
        condition = reduce_all(call(row, tensor, zero))
        assert_op(condition, text, data=(tensor,), summarize=3 if summarize is None else summarize)

    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"Raises InvalidArgumentError unless x {symbol} 0 holds for all elements."
    return check


assert_positive = _sign("assert_positive", "greater", ">")
assert_negative = _sign("assert_negative", "less", "<")
assert_non_negative = _sign("assert_non_negative", "greater_equal", ">=")
assert_non_positive = _sign("assert_non_positive", "less_equal", "<=")


def assert_near(
    x: Any,
    y: Any,
    rtol: Any = None,
    atol: Any = None,
    message: str | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> None:
    """Raises InvalidArgumentError unless |x - y| <= atol + rtol |y| for all elements.

    Both tolerances are by default ten times the machine epsilon of the dtype.
    """
    a, b = operands("Sub", x, y)
    real = a.dtype.real_dtype
    if not real.is_floating:
        raise TypeError(f"assert_near needs floating or complex tensors, got {a.dtype.name}")
    eps = 10 * float(dtypes.finfo(real).eps)
    relative = convert_to_tensor(eps if rtol is None else rtol, real)
    absolute = convert_to_tensor(eps if atol is None else atol, real)
    from_y = call("complex_abs" if b.dtype.is_complex else "abs", b)
    apart = call("complex_abs" if a.dtype.is_complex else "abs", a - b)
    text = _text(message, f"x and y not equal to tolerance rtol = {rtol or eps}, atol = {atol or eps}. x, y =")
    condition = reduce_all(apart <= absolute + relative * from_y)
    assert_op(condition, text, data=(a, b), summarize=3 if summarize is None else summarize)


def assert_all_finite(x: TensorLike, message: str, name: str | None = None) -> Tensor:
    """x, after a check that no element is NaN or infinite; raises InvalidArgumentError."""
    tensor = convert_to_tensor(x)
    finite = reduce_all(call("is_finite", call("complex_abs", tensor) if tensor.dtype.is_complex else tensor))
    assert_op(finite, f"{message} : Tensor had NaN or Inf values. x =", data=(tensor,))
    return tensor


# --- ranks and shapes ----------------------------------------------------------------------------------------------


def _rank_check(x: Any, rank: Any, what: str, holds: Callable[[Any, Any], Any], message: str | None) -> None:
    tensor = convert_to_tensor(x)
    wanted = static_value(convert_to_tensor(rank))
    if wanted is not None and np.ndim(wanted):
        raise ValueError(f"Rank must be a scalar, got {rank!r}")
    shape = tensor._shape
    if wanted is not None and shape is not None:
        if not holds(len(shape), int(wanted)):
            raise ValueError(
                _text(message, f"Tensor must have rank {what}{int(wanted)}. Received rank {len(shape)}, "
                               f"shape {format_shape(shape)}")
            )  # fmt: skip
        return
    found = call("rank", tensor)
    condition = holds(found, convert_to_tensor(rank, dtypes.int32))
    assert_op(condition, _text(message, f"Tensor must have rank {what}{rank}. Received rank"), data=(found,))


@deferrable
def assert_rank(x: Any, rank: Any, message: str | None = None, name: str | None = None) -> None:
    """Raises ValueError (InvalidArgumentError at run time) unless x has that many dimensions."""
    _rank_check(x, rank, "", lambda a, b: a == b, message)


@deferrable
def assert_rank_at_least(x: Any, rank: Any, message: str | None = None, name: str | None = None) -> None:
    """Raises ValueError (InvalidArgumentError at run time) unless x has at least that many dimensions."""
    _rank_check(x, rank, "at least ", lambda a, b: a >= b, message)


@deferrable
def assert_rank_in(x: Any, ranks: Iterable[Any], message: str | None = None, name: str | None = None) -> None:
    """Raises ValueError (InvalidArgumentError at run time) unless x has one of these numbers of dimensions."""
    tensor = convert_to_tensor(x)
    allowed = [int(np.asarray(static_value(convert_to_tensor(r)))) for r in ranks]
    text = f"Tensor must have rank in {tuple(allowed)}."
    if tensor._shape is not None:
        if len(tensor._shape) not in allowed:
            found = f" Received rank {len(tensor._shape)}, shape {format_shape(tensor._shape)}"
            raise ValueError(_text(message, text + found))
        return
    rank = call("rank", tensor)
    fits: Any = False
    for one in allowed:
        fits = call("equal", rank, convert_to_tensor(one)) if fits is False else call(
            "logical_or", fits, call("equal", rank, convert_to_tensor(one)))  # fmt: skip
    assert_op(fits, _text(message, text + " Received rank"), data=(rank,))


@deferrable
def assert_scalar(tensor: TensorLike, message: str | None = None, name: str | None = None) -> Tensor:
    """The tensor, of rank 0; raises ValueError (InvalidArgumentError at run time) for another rank."""
    x = convert_to_tensor(tensor)
    if x._shape not in ((), None):
        raise ValueError(_text(message, f"Expected scalar shape, saw shape: {format_shape(x._shape)}."))
    assert_rank(x, 0, message)
    return x


@deferrable
def assert_shapes(
    shapes: Any, data: Any = None, summarize: int | None = None, message: str | None = None, name: str | None = None
) -> None:
    """Checks the shapes of several tensors against each other.

    shapes: a dictionary or a list of pairs: tensor, and a sequence of sizes. A size is an int, a name (which stands for
    the same size everywhere), or None or "." for any. "*" or ... in front stands for any leading dimensions.

        assert_shapes([(x, ("n", 3)), (y, ("n",))])

    Raises ValueError for sizes that are known while tracing, InvalidArgumentError at run time for others.
    """
    sizes: dict[str, Any] = {}
    for value, wanted in shapes.items() if isinstance(shapes, Mapping) else shapes:
        tensor = convert_to_tensor(value)
        symbols = list(wanted) if isinstance(wanted, (Sequence, str)) or hasattr(wanted, "__iter__") else [wanted]
        shape = tensor._shape
        if shape is None:
            raise ValueError(_text(message, "assert_shapes needs tensors of known rank"))
        if symbols and symbols[0] in ("*", Ellipsis):
            symbols = symbols[1:]
            if len(shape) >= len(symbols):
                symbols = [None] * (len(shape) - len(symbols)) + symbols
        if len(symbols) != len(shape):
            raise ValueError(
                _text(message, f"Tensor of shape {format_shape(shape)} must have rank {len(symbols)}: {wanted!r}")
            )
        for axis, symbol in enumerate(symbols):
            _check_size(tensor, axis, symbol, sizes, message)


def _check_size(tensor: Tensor, axis: int, symbol: Any, sizes: dict[str, Any], message: str | None) -> None:
    if symbol is None or symbol == ".":
        return
    size: Any = (tensor._shape or ())[axis]
    found = call("dim", tensor, axis=axis) if size is None else size
    if isinstance(symbol, str):
        if symbol not in sizes:
            sizes[symbol] = found
            return
        expected = sizes[symbol]
    else:
        expected = int(symbol)
    if isinstance(found, int) and isinstance(expected, int):
        if found != expected:
            shape = format_shape(tensor._shape)
            raise ValueError(
                _text(message, f"Tensor of shape {shape}: dimension {axis} ({symbol!r}) must have size {expected}. "
                               f"Received size {found}")
            )  # fmt: skip
        return
    pair = convert_to_tensor(found, dtypes.int32), convert_to_tensor(expected, dtypes.int32)
    text = _text(message, f"Dimension {axis} ({symbol!r}) has another size than expected. found, expected =")
    assert_op(call("equal", *pair), text, data=pair)


# --- dtypes --------------------------------------------------------------------------------------------------------


def assert_type(tensor: Any, tf_type: DTypeLike, message: str | None = None, name: str | None = None) -> None:
    """Raises TypeError unless the tensor has that dtype."""
    x, wanted = convert_to_tensor(tensor), dtypes.as_dtype(tf_type)
    if x.dtype is not wanted:
        raise TypeError(_text(message, f"tensor must be of type {wanted!r}; got {x.dtype!r}"))


def assert_integer(x: Any, message: str | None = None, name: str | None = None) -> None:
    """Raises TypeError unless x holds integers."""
    tensor = convert_to_tensor(x)
    if not tensor.dtype.is_integer:
        raise TypeError(_text(message, f'Expected "x" to be integer type. Found: {tensor.dtype!r}'))


def assert_same_float_dtype(tensors: Any = None, dtype: DTypeLike = None) -> DType:
    """The floating dtype that the tensors (and `dtype`, if given) share; float32 without any.

    Raises ValueError if they differ or aren't floating.
    """
    found = None if dtype is None else dtypes.as_dtype(dtype)
    for value in tensors or ():
        known = getattr(value, "dtype", None)  # also that of what is made of tensors, such as an operator
        own = convert_to_tensor(value).dtype if known is None else dtypes.as_dtype(known)
        if found is not None and own is not found:
            raise ValueError(f"Tensor must be of dtype {found.name}, got {own.name}: {value!r}")
        found = own
    found = dtypes.float32 if found is None else found
    if not found.is_floating:
        raise ValueError(f"Expected floating point type, got {found.name}.")
    return found


def assert_proper_iterable(values: Any) -> None:
    """Raises TypeError for tensors, arrays, strings and objects that can't be iterated; for arguments that must be
    lists."""
    if is_tensor_like(values) or isinstance(values, (np.ndarray, str, bytes)) or not hasattr(values, "__iter__"):
        raise TypeError(f"Expected argument to be a proper iterable (a list, say), got {type(values).__name__}.")


def is_numeric_tensor(tensor: Any) -> bool:
    """Whether this is a tensor of numbers (not of bools or strings)."""
    return isinstance(tensor, Tensor) and tensor.dtype.is_numeric
