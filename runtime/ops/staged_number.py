"""`StagedNumber`: a Python number whose value is known only when the program runs.

A Python int or float that a staged loop changes or a staged branch chooses becomes one; so do `float(t)`, `int(t)` and
the items of `range(t)`. It behaves as the number does in eager Python:

    k + 1, k / 2, k // 2    another number: ints have 64 bits, floats are float64
    x * k                   k in the dtype of the tensor x
    ag.zeros(3) + ag.exp(k) as a tensor of its own it has its `default`, int32 or float32
    a[k], range(k)          an index, a bound

An int that 64 bits can't hold is an OverflowError when the program runs, unless only its low bits are read, as in
`(a * k + c) & mask`. So is one that becomes a tensor of fewer bits and doesn't fit. A float divided by zero is infinite
or NaN, as a tensor's quotient is.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from enum import EnumMeta
from typing import TYPE_CHECKING, Any

import numpy as np

from runtime import dtypes, nest
from runtime.context import ctx
from runtime.dtypes import DType
from runtime.ops.convert import convert_to_tensor, is_tensor_like
from runtime.ops.dispatch import apply, call
from runtime.ops.elementwise.checked import CHECKED
from runtime.ops.flags import flag_of, flagged
from runtime.ops.strings.staged_string import StagedString, StandsForString
from runtime.ops.table import OPS
from runtime.ops.values import common_default, default_of
from runtime.shapes import TensorShape
from runtime.tensor import SymbolicTensor, Tensor


def storage(default: DType) -> DType:
    """The dtype that holds all values of a number with this default."""
    if default.is_bool or default is dtypes.string:
        return default
    return dtypes.int64 if default.is_integer else dtypes.float64


def is_number(value: Any) -> bool:
    """Whether a value is a Python number, known now or when the program runs."""
    return type(value) in (StagedNumber, int, float, bool)


def kind_of(value: Any) -> type:
    """The Python type that a value has, or will have when the program runs."""
    return value.kind if isinstance(value, (StagedNumber, StandsForString)) else type(value)


def is_text(value: Any) -> bool:
    """Whether a value is a Python string, known now or when the program runs."""
    return type(value) is str or isinstance(value, StandsForString)


def staged_value(tensor: Any, default: DType) -> Any:
    """The Python number or string of the program that a tensor holds."""
    return StagedString(tensor) if default is dtypes.string else StagedNumber(tensor, default)


@nest.leaf
class StagedNumber:
    """A number of a trace.

    tensor    a scalar that holds it, of any integer or floating dtype that holds it exactly
    default   the dtype that it has as a tensor where nothing else decides
    """

    __slots__ = ("tensor", "default", "_as_default", "__weakref__")
    __ag_number__ = True
    __ag_priority__ = 1  # tensors leave their operators to it

    def __init__(self, tensor: Any, default: DType) -> None:
        self.tensor: SymbolicTensor = tensor
        self.default = default
        self._as_default: Any = None

    @property
    def kind(self) -> type:
        """int or float."""
        return float if self.tensor.dtype.is_floating else int

    def to(self, dtype: DType) -> Tensor:
        """The number as a tensor of a dtype. Raises TypeError for a float as an integer, as Python numbers do."""
        own = self.tensor.dtype
        if own is dtype:
            return self.tensor
        if dtype.kind not in ("fc" if own.is_floating else "iufc"):
            raise TypeError(f"Cannot convert a Python {self.kind.__name__} to EagerTensor of dtype {dtype.label}")
        return as_dtype(self.tensor, dtype)

    def wide(self) -> Tensor:
        """The number in 64 bits."""
        return self.to(storage(self.default))

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Tensor:
        if dtype is not None:
            return self.to(dtypes.as_dtype(dtype))
        made = self._as_default
        if made is None or made.builder is not ctx.builder:
            made = self._as_default = self.to(self.default)
        return made

    @property
    def dtype(self) -> DType:
        return self.default

    @property
    def shape(self) -> TensorShape:
        return TensorShape(())

    def __getattr__(self, name: str) -> Any:
        # Programs written for TensorFlow take it for a tensor.
        if name.startswith("_") or not hasattr(SymbolicTensor, name):
            raise AttributeError(f"'{self.kind.__name__}' object has no attribute '{name}'")
        return getattr(self.__tf_tensor__(), name)

    # --- what needs the value now, or asks for it ------------------------------------------------------------------

    def __bool__(self) -> bool:
        return bool(call("not_equal", self.tensor, _constant(0, self.tensor.dtype)))

    def __int__(self) -> int:
        return int(self.tensor)

    def __float__(self) -> float:
        return float(self.tensor)

    def __index__(self) -> int:
        if self.kind is float:
            raise TypeError("'float' object cannot be interpreted as an integer")
        return self.tensor.__index__()

    def __format__(self, spec: str) -> str:
        return format(self.tensor, spec)

    def __repr__(self) -> str:
        return f"<Python {self.kind.__name__} of {self.tensor!r}>"

    def __str__(self) -> str:
        return str(self.tensor)

    def __pos__(self) -> StagedNumber:
        return self

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    if TYPE_CHECKING:
        # What `_install` gives, for type checkers.
        def __floordiv__(self, other: Any) -> Any: ...
        def __rfloordiv__(self, other: Any) -> Any: ...
        def __mod__(self, other: Any) -> Any: ...
        def __rmod__(self, other: Any) -> Any: ...

    def __copy__(self) -> StagedNumber:
        return self

    def __deepcopy__(self, memo: Any) -> StagedNumber:
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.tensor.__array__(dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        result = getattr(ufunc, method)(*_beside(inputs), **kwargs)
        # A NumPy scalar, in eager code: it takes the dtype of the tensors that it meets.
        of_numbers = isinstance(result, Tensor) and all(map(is_number, inputs)) and result.dtype.kind in "iuf"
        return StagedNumber(result, result.dtype) if of_numbers else result

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        args, kwargs = nest.map_structure(lambda v: v.wide() if type(v) is StagedNumber else v, (args, kwargs))
        return function(*args, **kwargs)


def _beside(values: Any) -> Any:
    """NumPy's operands with tensors in the place of numbers: in the dtype of an array that is among them."""
    arrays = [v for v in values if isinstance(v, (np.ndarray, np.generic, Tensor))]
    dtype = convert_to_tensor(arrays[0]).dtype if arrays else None

    def tensor(number: StagedNumber) -> Tensor:
        return number.wide() if dtype is None or (dtype.is_integer and number.kind is float) else number.to(dtype)

    return [tensor(v) if type(v) is StagedNumber else v for v in values]


def as_number(value: Any) -> Any:
    """A Python bool of the program as the number that it is in Python, too; any other value as it is."""
    flag = flag_of(value)
    if flag is None:
        return value
    flag.use()
    return StagedNumber(call("cast", value, dtype=dtypes.int32), dtypes.int32)


def as_dtype(tensor: Any, dtype: DType) -> Tensor:
    """A tensor of numbers in another dtype; an integer that this can't hold is an error when the program runs."""
    if tensor.dtype is dtype:
        return tensor
    checked = dtype.is_integer and tensor.dtype.is_integer and not _holds(dtype, tensor.dtype)
    return call("narrow" if checked else "cast", tensor, dtype=dtype)


def _holds(dtype: DType, source: DType) -> bool:
    """Whether an integer dtype has all numbers of another one."""
    return bool(dtype.min <= source.min and source.max <= dtype.max)


# --- operators -----------------------------------------------------------------------------------------------------


def _constant(value: float, dtype: DType) -> Tensor:
    builder = ctx.builder
    made = builder.number(value, dtype) if builder is not None else None
    return convert_to_tensor(value, dtype) if made is None else made


def as_storage(value: Any, dtype: DType) -> Tensor:
    """A Python or staged number as a tensor of a 64-bit dtype."""
    if type(value) is StagedNumber:
        return value.tensor if value.tensor.dtype is dtype else call("cast", value.tensor, dtype=dtype)
    return _constant(dtypes_kind(dtype)(value), dtype)


def kind_of_default(default: DType) -> type:
    """The Python type of a value that has a default dtype."""
    return str if default is dtypes.string else dtypes_kind(default)


def dtypes_kind(dtype: DType) -> type:
    """The Python type of the numbers that a dtype holds."""
    return float if dtype.is_floating else int


def _is_float(value: Any) -> bool:
    return value.kind is float if type(value) is StagedNumber else type(value) is float


def _defaults(values: Any) -> list[DType]:
    """Of staged numbers, and of Python ints that need 64 bits: other literals decide nothing."""
    found = [(v, default_of(v)) for v in values]
    return [default for v, default in found if type(v) is StagedNumber or default is dtypes.int64]


def computed(op: str, *values: Any, to_float: bool = False) -> StagedNumber:
    """The number that an op of the table makes of numbers: in float64 if one of them is a float, else in int64, by the
    row that checks the result if there is one."""
    floating = to_float or any(map(_is_float, values))
    dtype = dtypes.float64 if floating else dtypes.int64
    default = common_default(*_defaults(values))
    if floating != default.is_floating:
        default = dtypes.float32
    row = OPS[op] if floating else CHECKED.get(op, OPS[op])
    return StagedNumber(apply(row, [as_storage(v, dtype) for v in values]), default)


def whole_number(tensor: Any) -> StagedNumber:
    """The int that `int` makes of a float64. Infinities, NaN and what 64 bits can't hold are errors, as Python's."""
    return StagedNumber(apply(CHECKED["cast"], [tensor], {"dtype": dtypes.int64}), dtypes.int32)


def _arithmetic(op: str) -> Callable[[Any, Any], Any]:
    return lambda x, y: computed(op, x, y)


def _floordiv(x: Any, y: Any) -> StagedNumber:
    if not (_is_float(x) or _is_float(y)):
        return computed("floordiv", x, y)
    # Python's quotient belongs to its remainder; the floor of x / y may be one more.
    quotient = computed("divide", computed("subtract", x, _float_remainder(x, y)), y)
    return StagedNumber(call("rint", quotient.tensor), quotient.default)


def _mod(x: Any, y: Any) -> StagedNumber:
    if _is_float(x) or _is_float(y):
        return _float_remainder(x, y)
    made = computed("floormod", x, y)
    return StagedNumber(made.tensor, default_of(y)) if type(y) is int else made  # what is smaller than y needs no more


def _float_remainder(x: Any, y: Any) -> StagedNumber:
    return computed("floormod", x, y, to_float=True)


def _pow(x: Any, y: Any) -> StagedNumber:
    if type(y) is int and y == 2:
        return computed("multiply", x, x)
    return computed("pow", x, y, to_float=type(y) is int and y < 0)


def _of_ints(op: str) -> Callable[[Any, Any], Any]:
    return lambda x, y: NotImplemented if _is_float(x) or _is_float(y) else computed(op, x, y)


_NUMBERS: dict[str, Callable[[Any, Any], Any]] = {
    "add": _arithmetic("add"),
    "sub": _arithmetic("subtract"),
    "mul": _arithmetic("multiply"),
    "truediv": lambda x, y: computed("divide", x, y, to_float=True),
    "floordiv": _floordiv,
    "mod": _mod,
    "pow": _pow,
    "lshift": _of_ints("left_shift"),
    "rshift": _of_ints("right_shift"),
    "and_": _of_ints("bitwise_and"),
    "or_": _of_ints("bitwise_or"),
    "xor": _of_ints("bitwise_xor"),
}
_COMPARISONS = {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal",
}  # fmt: skip


def _is_operand(value: Any) -> bool:
    if isinstance(value, StandsForString):
        return False  # which has these operators itself
    return isinstance(value, (np.ndarray, np.generic)) or is_tensor_like(value)


def _binary(name: str, of_numbers: Callable[[Any, Any], Any]) -> tuple[Callable, Callable]:
    function = getattr(operator, name)

    def apply(x: Any, y: Any, self: StagedNumber, other: Any) -> Any:
        if is_number(other):
            return of_numbers(x, y)
        if flag_of(other) is not None:
            number = as_number(other)
            return of_numbers(self, number) if x is self else of_numbers(number, self)
        if not _is_operand(other) or hasattr(other, "__ag_elementwise__"):
            return NotImplemented
        tensor = convert_to_tensor(other)
        try:
            beside = self.to(tensor.dtype)
        except TypeError:
            # Operands of different dtypes: the op words the error.
            beside = self.__tf_tensor__()
        return function(beside, tensor) if x is self else function(tensor, beside)

    def forward(self: StagedNumber, other: Any) -> Any:
        other = _plain(other)
        return apply(self, other, self, other)

    def reflected(self: StagedNumber, other: Any) -> Any:
        other = _plain(other)
        return apply(other, self, self, other)

    return forward, reflected


def _plain(value: Any) -> Any:
    """The number that a member of an enum of numbers is; any other value itself."""
    kind = type(value)
    if not isinstance(kind, EnumMeta) or not issubclass(kind, (int, float)):
        return value
    return int(value) if issubclass(kind, int) else float(value)


def _comparison(name: str, op: str) -> Callable:
    function = getattr(operator, name)

    def compare(self: StagedNumber, other: Any) -> Any:
        other = as_number(_plain(other))
        if is_number(other):
            own = self.tensor.dtype
            if own.is_integer and type(other) in (int, bool) and own.min <= other <= own.max:
                return flagged(call(op, self.tensor, _constant(int(other), own)))
            dtype = dtypes.float64 if self.kind is float or _is_float(other) else dtypes.int64
            return flagged(call(op, as_storage(self, dtype), as_storage(other, dtype)))
        if other is None or not _is_operand(other) or hasattr(other, "__ag_elementwise__"):
            return NotImplemented
        tensor = convert_to_tensor(other)
        if tensor.dtype.is_integer and tensor.dtype is not dtypes.uint64 and self.kind is int:
            if tensor.dtype is not self.tensor.dtype:
                # In 64 bits both are what they are.
                tensor = call("cast", tensor, dtype=dtypes.int64) if tensor.dtype is not dtypes.int64 else tensor
                return function(as_storage(self, dtypes.int64), tensor)
            return function(self.tensor, tensor)
        try:
            return function(self.to(tensor.dtype), tensor)
        except TypeError:
            return function(self.__tf_tensor__(), tensor)

    return compare


def _install() -> None:
    for name, of_numbers in _NUMBERS.items():
        forward, reflected = _binary(name, of_numbers)
        bare = name.rstrip("_")
        setattr(StagedNumber, f"__{bare}__", forward)
        setattr(StagedNumber, f"__r{bare}__", reflected)
    for name, op in _COMPARISONS.items():
        setattr(StagedNumber, f"__{name}__", _comparison(name, op))
    for name, op in {"neg": "negative", "abs": "abs", "invert": "invert"}.items():
        setattr(StagedNumber, f"__{name}__", lambda self, op=op: computed(op, self))


_install()
