"""`Tensor`: what users hold. Eager tensors wrap a NumPy array; symbolic ones name a value of a graph being traced.

Operators (`+`, `[]`, ...) are installed by `runtime.ops.operators`, so that this module knows no op.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from runtime import dtypes, errors, nest, profiling
from runtime.bytecode import is_at
from runtime.context import ctx, placing
from runtime.device import CPU, gpu_named, list_logical_devices, missing
from runtime.dtypes import DType
from runtime.gpu.memory import DeviceArray
from runtime.interpreter import reads_bytecode
from runtime.shapes import Shape, TensorShape, format_shape, public_shape
from runtime.tracebacks import leaving, shows_no_frames
from runtime.types import TensorType

_DTYPE_OF = {dtype.np: dtype for dtype in (*dtypes.ALL, *dtypes.STORED)}


if TYPE_CHECKING:

    class Operators:
        """What runtime.ops.operators installs in tensors and variables, for type checkers."""

        def __getitem__(self, key: Any) -> Tensor: ...
        def __add__(self, other: TensorLike) -> Tensor: ...
        def __radd__(self, other: TensorLike) -> Tensor: ...
        def __sub__(self, other: TensorLike) -> Tensor: ...
        def __rsub__(self, other: TensorLike) -> Tensor: ...
        def __mul__(self, other: TensorLike) -> Tensor: ...
        def __rmul__(self, other: TensorLike) -> Tensor: ...
        def __truediv__(self, other: TensorLike) -> Tensor: ...
        def __rtruediv__(self, other: TensorLike) -> Tensor: ...
        def __floordiv__(self, other: TensorLike) -> Tensor: ...
        def __rfloordiv__(self, other: TensorLike) -> Tensor: ...
        def __mod__(self, other: TensorLike) -> Tensor: ...
        def __rmod__(self, other: TensorLike) -> Tensor: ...
        def __pow__(self, other: TensorLike) -> Tensor: ...
        def __rpow__(self, other: TensorLike) -> Tensor: ...
        def __matmul__(self, other: TensorLike) -> Tensor: ...
        def __rmatmul__(self, other: TensorLike) -> Tensor: ...
        def __and__(self, other: TensorLike) -> Tensor: ...
        def __rand__(self, other: TensorLike) -> Tensor: ...
        def __or__(self, other: TensorLike) -> Tensor: ...
        def __ror__(self, other: TensorLike) -> Tensor: ...
        def __xor__(self, other: TensorLike) -> Tensor: ...
        def __rxor__(self, other: TensorLike) -> Tensor: ...
        def __lshift__(self, other: TensorLike) -> Tensor: ...
        def __rlshift__(self, other: TensorLike) -> Tensor: ...
        def __rshift__(self, other: TensorLike) -> Tensor: ...
        def __rrshift__(self, other: TensorLike) -> Tensor: ...
        def __divmod__(self, other: TensorLike) -> tuple[Tensor, Tensor]: ...
        def __rdivmod__(self, other: TensorLike) -> tuple[Tensor, Tensor]: ...
        def __lt__(self, other: TensorLike) -> Tensor: ...
        def __le__(self, other: TensorLike) -> Tensor: ...
        def __gt__(self, other: TensorLike) -> Tensor: ...
        def __ge__(self, other: TensorLike) -> Tensor: ...
        def __eq__(self, other: object) -> Tensor: ...  # type: ignore[override]
        def __ne__(self, other: object) -> Tensor: ...  # type: ignore[override]
        def __neg__(self) -> Tensor: ...
        def __pos__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...

        # The methods of NumPy's arrays, which runtime.ops.numpy.array_methods installs.
        def sum(self, *args: Any, **kwargs: Any) -> Tensor: ...
        def prod(self, *args: Any, **kwargs: Any) -> Tensor: ...
        def mean(self, *args: Any, **kwargs: Any) -> Tensor: ...
        def std(self, *args: Any, **kwargs: Any) -> Tensor: ...
        def var(self, *args: Any, **kwargs: Any) -> Tensor: ...
        def max(self, *args: Any, **kwargs: Any) -> Tensor: ...
        def min(self, *args: Any, **kwargs: Any) -> Tensor: ...
        def any(self, *args: Any, **kwargs: Any) -> Tensor: ...
        def all(self, *args: Any, **kwargs: Any) -> Tensor: ...
        def argmax(self, *args: Any, **kwargs: Any) -> Tensor: ...
        def argmin(self, *args: Any, **kwargs: Any) -> Tensor: ...
        def cumsum(self, *args: Any, **kwargs: Any) -> Tensor: ...
        def cumprod(self, *args: Any, **kwargs: Any) -> Tensor: ...
        def ravel(self, *args: Any, **kwargs: Any) -> Tensor: ...
        def squeeze(self, *args: Any, **kwargs: Any) -> Tensor: ...
        def swapaxes(self, *args: Any, **kwargs: Any) -> Tensor: ...
        def clip(self, *args: Any, **kwargs: Any) -> Tensor: ...
        def round(self, *args: Any, **kwargs: Any) -> Tensor: ...
        def dot(self, *args: Any, **kwargs: Any) -> Tensor: ...
        def take(self, *args: Any, **kwargs: Any) -> Tensor: ...
        def repeat(self, *args: Any, **kwargs: Any) -> Tensor: ...
        def argsort(self, *args: Any, **kwargs: Any) -> Tensor: ...
        def diagonal(self, *args: Any, **kwargs: Any) -> Tensor: ...
        def trace(self, *args: Any, **kwargs: Any) -> Tensor: ...
        def searchsorted(self, *args: Any, **kwargs: Any) -> Tensor: ...
        def copy(self, *args: Any, **kwargs: Any) -> Tensor: ...
        def nonzero(self) -> tuple[Tensor, ...]: ...
        def reshape(self, *shape: Any, order: str = "C") -> Tensor: ...
        def transpose(self, *axes: Any) -> Tensor: ...
        def flatten(self) -> Tensor: ...
        def astype(self, dtype: Any) -> Tensor: ...
        def tolist(self) -> Any: ...
        def item(self, *index: Any) -> Any: ...
        @property
        def T(self) -> Tensor: ...
        @property
        def size(self) -> Any: ...
        @property
        def itemsize(self) -> int: ...
        @property
        def nbytes(self) -> int: ...

else:
    Operators = object


class SupportsArray(Protocol):
    """Whatever NumPy takes for an array: arrays, tensors, variables, columns of data frames."""

    def __array__(self, *args: Any, **kwargs: Any) -> Any: ...


class Tensor(Operators):
    """An immutable multi-dimensional array with one dtype.

    `Tensor` is the type to test with `isinstance`; make one with `ag.constant` or `ag.convert_to_tensor`.
    """

    __slots__ = ("__weakref__",)
    __array_priority__ = 100
    # Annotations for the type checker; both subclasses define them.
    dtype: DType

    @property
    def shape(self) -> TensorShape:
        """The static shape: dimensions that are known only at run time are None."""
        return public_shape(self._shape)

    @property
    def _shape(self) -> Shape:
        raise NotImplementedError

    @property
    def ndim(self) -> int:
        """The rank. Raises ValueError when it is unknown."""
        shape = self._shape
        if shape is None:
            raise ValueError("The rank of this tensor is unknown.")
        return len(shape)

    def get_shape(self) -> TensorShape:
        return self.shape

    @shows_no_frames
    def __hash__(self) -> int:
        raise TypeError("Tensor is unhashable. Instead, use tensor.ref() as the key.")

    if TYPE_CHECKING:
        # What both kinds have; of those that need a value, the symbolic one's raise.
        @property
        def device(self) -> str: ...
        def gpu(self, gpu_index: int = 0) -> Tensor: ...
        def cpu(self) -> Tensor: ...
        def numpy(self) -> Any: ...
        def set_shape(self, shape: Any) -> None: ...
        def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray: ...
        def __len__(self) -> int: ...
        def __iter__(self) -> Iterator[Tensor]: ...
        def __bool__(self) -> bool: ...
        def __int__(self) -> int: ...
        def __float__(self) -> float: ...
        def __complex__(self) -> complex: ...
        def __index__(self) -> int: ...

    def ref(self) -> TensorReference:
        """A hashable reference that compares by identity, for use in sets and as dictionary key."""
        return TensorReference(self)

    # --- slices of variables: `v[1:3].assign(...)` ---------------------------------------------------------------

    @shows_no_frames
    def _from_variable(self, name: str) -> Any:
        """The variable and the key that this tensor is a slice of, set by `Variable.__getitem__`."""
        origin = getattr(self, "_origin", None)
        if origin is None:
            raise AttributeError(
                f"'{type(self).__name__}' object has no attribute '{name}': tensors are immutable. Assign to a "
                "variable, or to a slice of a variable. (`v = v - 0.1` binds the variable's name to a tensor; "
                "`v.assign_sub(0.1)` changes the variable.)"
            )
        return origin

    @property
    @shows_no_frames
    def assign(self) -> Any:
        variable, key = self._from_variable("assign")
        return shows_no_frames(lambda value, name=None: variable._assign_slice(key, value))

    @property
    @shows_no_frames
    def assign_add(self) -> Any:
        variable, key = self._from_variable("assign_add")
        return shows_no_frames(lambda value, name=None: variable._assign_slice(key, variable[key] + value))

    @property
    @shows_no_frames
    def assign_sub(self) -> Any:
        variable, key = self._from_variable("assign_sub")
        return shows_no_frames(lambda value, name=None: variable._assign_slice(key, variable[key] - value))


@nest.leaf
class EagerTensor(Tensor):
    """A tensor with a value: a read-only NumPy array (or NumPy scalar for rank 0) of exactly `dtype`."""

    # `__dict__` is for what a program hangs on its tensors (`x._keras_mask = mask`).
    __slots__ = ("_array", "_origin", "dtype", "__dict__")

    def __init__(self, array: Any, dtype: DType | None = None) -> None:
        self._array = array
        self.dtype = dtype if dtype is not None else _DTYPE_OF[array.dtype]

    @property
    def _shape(self) -> Shape:
        return self._array.shape

    @property
    def type(self) -> TensorType:
        return TensorType(self.dtype, self._array.shape)

    def numpy(self) -> Any:
        """The value: a NumPy scalar for rank 0 (Python `bytes` for strings), else an array of its own memory."""
        if ctx.recorders:
            ctx.leave(self)
        array = self._array
        if isinstance(array, np.ndarray):
            if not array.ndim:
                return array[()]
            if not profiling.recording:
                return array.copy()
            with profiling.span("copy", "copy to NumPy", bytes=array.nbytes):
                return array.copy()
        return array

    @property
    def device(self) -> str:
        """Where the value lies, in TensorFlow's long form."""
        return CPU

    def gpu(self, gpu_index: int = 0) -> EagerTensor:
        """The tensor on a GPU, to which it is copied when something there needs it.

        Raises RuntimeError if there is no such GPU, and for dtypes that GPUs don't have.
        """
        return _on_gpu(self, gpu_index)

    def cpu(self) -> EagerTensor:
        """The tensor on the CPU."""
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if ctx.recorders:
            ctx.leave(self)
        array = np.asarray(self._array)
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        # The array may be shared with other tensors, so nobody may write to it.
        return array.copy()

    @shows_no_frames
    def __len__(self) -> int:
        if not self._array.shape:
            raise TypeError("Scalar tensor has no `len()`")
        return self._array.shape[0]

    @shows_no_frames
    def __iter__(self) -> Iterator[Tensor]:
        if not self._array.shape:
            raise TypeError("Cannot iterate over a scalar tensor.")
        return (self[i] for i in range(self._array.shape[0]))

    # Loops in Python ask for these all the time: they have no wrapper.

    def __bool__(self) -> bool:
        try:
            return bool(self._array)
        except leaving():
            raise

    def __int__(self) -> int:
        try:
            return int(self._array)
        except leaving():
            raise

    def __float__(self) -> float:
        if ctx.recorders:
            ctx.leave(self)
        try:
            return float(self._array)
        except leaving():
            raise

    def __index__(self) -> int:
        try:
            return operator.index(self._array)
        except leaving():
            raise

    @shows_no_frames
    def __complex__(self) -> complex:
        return complex(self._array)

    def __round__(self, digits: int = 0) -> Any:
        return EagerTensor(np.round(self._array, digits), self.dtype)

    def __format__(self, spec: str) -> str:
        # The bare value, as TensorFlow formats eager tensors.
        return format(self.numpy(), spec)

    def __copy__(self) -> EagerTensor:
        return self

    def __deepcopy__(self, memo: Any) -> EagerTensor:
        return self

    def __reduce__(self) -> tuple:
        return EagerTensor, (self._array, self.dtype)

    def __repr__(self) -> str:
        return f"<tf.Tensor: shape={self._array.shape}, dtype={self.dtype.name}, numpy={self._text(repr)}>"

    def __str__(self) -> str:
        return f"tf.Tensor({self._text(str)}, shape={self._array.shape}, dtype={self.dtype.name})"

    def _text(self, show: Any) -> str:
        array = self._array
        if array.shape == () if hasattr(array, "shape") else True:
            value = array[()] if isinstance(array, np.ndarray) else array
            # `np.str` would show `np.float32(2.0)`; TensorFlow shows the bare number.
            return repr(value) if isinstance(value, bytes) else str(value)
        text = show(array)
        # A line break sets the rows of a matrix apart from the text before them, as TensorFlow prints them.
        return "\n" + text if "\n" in text else text


@nest.leaf
class DeviceTensor(EagerTensor):
    """A tensor on a GPU. What asks for its NumPy array gets a copy from there, made once."""

    __slots__ = ("held",)

    def __init__(self, held: DeviceArray, dtype: DType | None = None) -> None:
        self.held = held
        self.dtype = dtype if dtype is not None else _DTYPE_OF[held.dtype]

    @property
    def _array(self) -> Any:
        return self.held.on_host()

    @property
    def _shape(self) -> Shape:
        return self.held.shape

    @property
    def type(self) -> TensorType:
        return TensorType(self.dtype, self.held.shape)

    @property
    def device(self) -> str:
        return self.held.place.name

    def cpu(self) -> EagerTensor:
        return EagerTensor(self._array, self.dtype)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Where the elements are, for numba, CuPy and others. Emulated GPUs have none."""
        backend = self.held.place.backend
        if backend.record is not None:
            raise AttributeError(f"a tensor on the device {backend.name!r} isn't in the memory of an NVIDIA GPU")
        if self.held.dtype.kind == "V":
            raise AttributeError(f"the array interface has no {self.dtype.name}: exchange the tensor by DLPack")
        data = (self.held.address() if self.held.size else 0), True
        backend.synchronize()
        return {
            "shape": self.held.shape, "typestr": self.held.dtype.str, "data": data, "version": 3, "strides": None,
            "stream": 1,
        }  # fmt: skip

    @shows_no_frames
    def __len__(self) -> int:
        if not self.held.shape:
            raise TypeError("Scalar tensor has no `len()`")
        return self.held.shape[0]

    @shows_no_frames
    def __iter__(self) -> Iterator[Tensor]:
        if not self.held.shape:
            raise TypeError("Cannot iterate over a scalar tensor.")
        return (self[i] for i in range(self.held.shape[0]))


def eager(value: Any, dtype: DType | None = None) -> EagerTensor:
    """The tensor of an array, where that lies."""
    return DeviceTensor(value, dtype) if value.__class__ is DeviceArray else EagerTensor(value, dtype)


def held_by(tensor: Any) -> Any:
    """The array of an eager tensor, where it lies."""
    return tensor.held if tensor.__class__ is DeviceTensor else tensor._array


def _on_gpu(tensor: EagerTensor, index: int) -> EagerTensor:
    place = gpu_named(f"GPU:{index}")
    if place is None:
        raise RuntimeError(
            f"Error copying tensor to device: GPU:{index}. GPU:{index} unknown device; the devices are "
            f"{[each.name for each in list_logical_devices()]}{missing('GPU')}"
        )
    found = placing[0].put(tensor, place)
    if found.__class__ is not DeviceTensor:
        raise RuntimeError(
            f"Error copying tensor to device: GPU:{index}. GPUs don't support {tensor.dtype.name} tensors"
        )
    return found


# What to do about a text that shows a tensor.
FORMAT_LATER = (
    "write it as an f-string, or as a literal text with `%` or `.format`, in a converted function, or make a string "
    "tensor with ag.strings.format or ag.as_string"
)


@nest.leaf
class SymbolicTensor(Tensor):
    """A tensor that has no value yet: it stands for `value` in the graph that `builder` builds.

    guard: has a `demand(builder)`, called where the tensor is used, if it may turn out that there is no tensor.
    flag: of what is a Python bool outside of traces, a `runtime.ops.flags.Flag`.
    chosen: of what a branch has chosen, the condition and the two values that the variable had after the branches; of
    what a loop has, None and values of both kinds. is_asked: whether a program has asked for its class.
    """

    __slots__ = ("value", "builder", "guard", "_origin", "__dict__")

    flag: Any = None
    chosen: tuple[Any, Any, Any] | None = None
    is_asked = False

    def __init__(self, value: Any, builder: Any) -> None:
        self.value = value
        self.builder = builder
        self.guard: Any = None

    @property
    def shape(self) -> TensorShape:
        """The static shape: dimensions that are known only at run time are None."""
        dims = self._shape
        return public_shape(dims, tuple((self, axis) for axis in range(len(dims))) if dims and None in dims else ())

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.value.type.dtype

    @property
    def _shape(self) -> Shape:
        return self.value.type.shape

    @property
    def type(self) -> TensorType:
        return self.value.type

    @property
    def name(self) -> str:
        return f"{self.value.name or self.value.id}:0"

    @property
    def graph(self) -> Any:
        return self.builder.graph

    @property
    def numpy(self) -> Any:
        """Raises AttributeError, so that `hasattr` says False, as of TensorFlow's symbolic tensors."""
        raise AttributeError(
            f"{self!r} has no value: it is symbolic, part of the function '{self.builder.name}' being traced. "
            "Return it from the function and call .numpy() outside, or print it with ag.print."
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        raise NotImplementedError(
            f"Cannot convert a symbolic tensor ({self._described()}) to a NumPy array. It has no value while its "
            "function is being traced. Use the function of the same name in `ag` instead of the one in NumPy."
        )

    def __copy__(self) -> SymbolicTensor:
        return self

    def __deepcopy__(self, memo: Any) -> SymbolicTensor:
        return self

    def __len__(self) -> int:
        shape = self._shape
        if not shape:
            raise TypeError("len is not well defined for a symbolic tensor of rank 0 or unknown rank.")
        if shape[0] is None:
            raise TypeError(f"len is not known while tracing {self._described()}; use ag.shape(x)[0].")
        return shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        shape = self._shape
        if not shape or shape[0] is None:
            raise errors.no_value(
                f"Iterating over a symbolic tensor of shape {format_shape(shape)} needs a `for` statement that "
                "`ag.function` converted; its length isn't known while tracing.",
                "loop over it with `for` in a converted function, or index the tensor instead of unpacking it",
            )
        return (self[i] for i in range(shape[0]))

    def __bool__(self) -> bool:
        if ctx.decide is not None:
            return ctx.decide(self)
        frame = sys._getframe(1)
        use = "use it in an `if`, `while`, `and`, `or`, `not` of a converted function, or ag.cond"
        compare = "write `tuple(a) < tuple(b)`, which makes the comparison part of the program"
        if is_at(frame.f_code, frame.f_lasti, "COMPARE_OP", "CONTAINS_OP"):
            fix = f"it is an element of a tuple or list that is compared; {compare}"
        elif reads_bytecode():
            fix = use
        else:
            fix = f"{use}; if it is an element of a tuple or list that is compared, {compare}"
        raise errors.no_value(
            f"Using a symbolic tensor as a Python bool is not allowed: {self._described()} has no value while its "
            "function is being traced.",
            fix,
        )

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        raise errors.no_value(
            f"Formatting {self._described()} with '{spec}' needs its value, which is known only when the program runs.",
            FORMAT_LATER,
        )

    def _described(self) -> str:
        """What errors call it: by the user's variable, else by the operation that computes it."""
        kind = f"{self.dtype.name} tensor"
        shape = f"of shape {format_shape(self._shape)}"
        node = self.value.node
        name = errors.variable_of(self) or (self.value.name if node is None else None)
        if name is not None:
            return f"the {kind} '{name}' {shape}"
        return f"a {kind} {shape}" if node is None else f"the {kind} {shape} that '{node.op.name}' computes"

    def _no_value(
        self, what: str, fix: str = f"use ag.cast to change its dtype; to show it, {FORMAT_LATER}"
    ) -> TypeError:
        return errors.no_value(
            f"{what}() needs a value, but {self._described()} is symbolic: it has none while its function is being "
            "traced.",
            fix,
        )

    def __int__(self) -> int:
        raise self._no_value("int")

    def __float__(self) -> float:
        raise self._no_value("float")

    def __index__(self) -> int:
        raise self._no_value(
            "index",
            "a symbolic tensor can index a list or tuple that the same function creates (by a literal, by list(x), or "
            "by setting its items); for any other list, stack the items: ag.stack(x)[i]; `range` takes tensors in a "
            "converted function",
        )

    def __repr__(self) -> str:
        return f"<tf.Tensor '{self.name}' shape={format_shape(self._shape)} dtype={self.dtype.name}>"

    def __str__(self) -> str:
        return f'Tensor("{self.name}", shape={format_shape(self._shape)}, dtype={self.dtype.name})'


# What `convert_to_tensor` takes: sequences nest.
TensorLike: TypeAlias = (
    Tensor | SupportsArray | np.generic | bool | int | float | complex | str | bytes | Sequence["TensorLike"]
)


class TensorReference:
    """Hashable stand-in for a tensor or variable, equal only to references to the same object."""

    __slots__ = ("_wrapped",)

    def __init__(self, wrapped: Any) -> None:
        self._wrapped = wrapped

    def deref(self) -> Any:
        return self._wrapped

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorReference) and self._wrapped is other._wrapped

    def __hash__(self) -> int:
        return id(self._wrapped)

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._wrapped!r}>"


def is_symbolic(value: Any) -> bool:
    """Whether `value` is a tensor of a graph being traced."""
    return type(value) is SymbolicTensor
