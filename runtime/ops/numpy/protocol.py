"""`np.sin(tensor)`, `np.sum(tensor)`, `array @ tensor`: NumPy's functions on tensors are ops, eager and traced.

NumPy asks its arguments by two methods: `__array_ufunc__` for universal functions, `__array_function__` for the others.
On eager tensors the result is an array, as in TensorFlow, unless a tape watches an operand: then it is a tensor, so
the gradient isn't lost. Python's operators (`array + tensor`) reach us as universal functions too; they give tensors.
A function that no op stands for runs on the values of eager tensors and gives arrays, as in TensorFlow; on a symbolic
tensor it raises, since that has no value.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from runtime.context import ctx
from runtime.device import gpu_in_dlpack
from runtime.ops.convert import convert_to_tensor, is_tensor_like
from runtime.ops.deferred_calls import with_deferral
from runtime.ops.numpy import array_making, complex_functions, shape_functions, ufuncs  # noqa: F401 - they register their functions
from runtime.ops.numpy.array_functions import FUNCTIONS
from runtime.tensor import DeviceTensor, EagerTensor, SymbolicTensor, Tensor, eager
from runtime.tracebacks import shows_no_frames


def contains_symbolic(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(contains_symbolic(v) for v in value)
    return isinstance(_as_tensor(value), SymbolicTensor)


def _as_tensor(value: Any) -> Any:
    """Variables as their current value."""
    if not isinstance(value, Tensor) and is_tensor_like(value):
        return value.__tf_tensor__()
    return value


def as_array(value: Any) -> Any:
    """Eager tensors as arrays, in lists and tuples too."""
    value = _as_tensor(value)
    if isinstance(value, EagerTensor):
        return np.asarray(value._array)
    if isinstance(value, (list, tuple)):
        made = [as_array(v) for v in value]
        return made if isinstance(value, list) else tuple(made)
    return value


def refuse(function: Any, why: str) -> TypeError:
    name = getattr(function, "__name__", str(function))
    return TypeError(
        f"np.{name} can't be staged on a symbolic tensor: {why}. Use a similar function of `ag`, or "
        "ag.numpy_function to call NumPy at run time."
    )


@functools.cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


def fits(function: Callable[..., Any], args: Any, kwargs: dict) -> bool:
    try:
        _signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def without_defaults(kwargs: dict) -> dict:
    """Keyword arguments that NumPy hands over but that only say "the usual"."""
    no_value = getattr(np, "_NoValue", None)
    return {k: v for k, v in kwargs.items() if v is not no_value and not (v is None and k in ("out", "dtype", "where"))}


def _array_ufunc(self: Any, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """NumPy's hook for universal functions."""
    if any(getattr(type(value), "__ag_priority__", 0) > 0 for value in inputs):
        return NotImplemented
    out = kwargs.pop("out", None)
    options = without_defaults(kwargs)
    dtype = options.pop("dtype", None)
    function = ufuncs.find(ufunc, method)
    if ufunc not in _OPERATORS and _is_plain(inputs):
        function = None
    if function is not None and dtype is None and fits(function, inputs, options):
        result = function(*[_as_tensor(v) for v in inputs], **options)
        return result if out is None else _write(ufunc, result, out)
    if any(contains_symbolic(v) for v in (*inputs, out)):
        raise refuse(ufunc, "there is no op for it with these arguments")
    if dtype is not None:
        options["dtype"] = dtype
    if out is not None:
        if any(isinstance(target, Tensor) for target in out):
            raise TypeError("A tensor is immutable: it can't be the `out` of a NumPy function.")
        options["out"] = out
    return getattr(ufunc, method)(*[as_array(v) for v in inputs], **options)


# What NumPy's arrays and scalars call for Python's operators.
_OPERATORS = frozenset(
    {
        np.add, np.subtract, np.multiply, np.divide, np.floor_divide, np.remainder, np.power, np.matmul, np.equal,
        np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal, np.bitwise_and, np.bitwise_or,
        np.bitwise_xor, np.left_shift, np.right_shift,
    }
)  # fmt: skip


def _is_plain(values: Any) -> bool:
    """Whether a call concerns no trace and no tape: NumPy's own function on the values is as good."""
    if ctx.builder is not None or any(contains_symbolic(v) for v in values):
        return False
    return not ctx.recorders or not any(map(is_watched, values))


def is_watched(value: Any) -> bool:
    """Whether a tape that is open watches a tensor, or one in a list."""
    if isinstance(value, (list, tuple)):
        return any(map(is_watched, value))
    # Reading a variable shows it to the tapes, which begin to watch it if they should.
    tensor = _as_tensor(value)
    return isinstance(tensor, Tensor) and any(r.builder is None and r.is_tracking(tensor) for r in ctx.recorders)


# Told of a write of what has no value yet into an array; may raise what is better than a refusal.
_changes_in_place: Callable[[], None] = lambda: None  # noqa: E731


def install_in_place(told: Callable[[], None]) -> None:
    """Sets the function that is called after a NumPy function has written into an array of the caller's."""
    global _changes_in_place
    _changes_in_place = told


def _write(ufunc: Any, result: Any, out: tuple) -> Any:
    """`out=` and `array += tensor`: into the caller's arrays."""
    results = result if isinstance(result, tuple) else (result,)
    for value, target in zip(results, out):
        if isinstance(value, SymbolicTensor):
            _changes_in_place()
            raise refuse(
                ufunc, "its result has no value yet, so it can't be written into an array, as `array += tensor` does"
            )
        if not isinstance(target, np.ndarray):
            raise TypeError("A tensor is immutable: it can't be the `out` of a NumPy function.")
        target[...] = value._array
    return out[0] if len(out) == 1 else out


def _array_function(self: Any, function: Any, types: Any, args: Any, kwargs: dict) -> Any:
    """NumPy's hook for its other functions."""
    if not all(issubclass(t, (Tensor, np.ndarray, np.generic)) or hasattr(t, "__tf_tensor__") for t in types):
        return NotImplemented
    options = without_defaults(kwargs)
    own = None if _is_plain((*args, *kwargs.values())) else FUNCTIONS.get(function)
    if own is not None and fits(own, args, options):
        return (own if ctx.builder is None else with_deferral(own))(*args, **options)
    if any(contains_symbolic(v) for v in (*args, *kwargs.values())):
        raise refuse(function, "there is no op for it" if own is None else "not with these arguments")
    return function(*[as_array(v) for v in args], **{k: as_array(v) for k, v in kwargs.items()})


def _dlpack(
    self: Any,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """The value in the exchange format of arrays (DLPack), for `torch.from_dlpack` and others. Read-only is not said
    by older consumers, so they get a copy."""
    value = _as_tensor(self)
    if isinstance(value, SymbolicTensor):
        raise TypeError(f"{value} has no value while its function is being traced, so it has no DLPack form.")
    if value.__class__ is DeviceTensor:
        return _dlpack_of_gpu(value, max_version, dl_device, copy)
    if stream is not None or dl_device not in (None, _dlpack_device(self)):
        raise BufferError(
            f"The tensor is on the CPU, which has no streams; got stream={stream!r}, dl_device={dl_device!r}."
        )
    versioned: dict[str, Any] = {} if max_version is None or not _VERSIONED_DLPACK else {"max_version": max_version}
    if copy is not False:
        return np.array(value._array).__dlpack__(**versioned)
    if versioned and max_version >= (1, 0):  # type: ignore[operator]
        array = np.asarray(value._array)
        array.flags.writeable = False
        return array.__dlpack__(**versioned, copy=False)
    raise BufferError(
        "A tensor's memory is read-only, which only version 1 of DLPack can express. Pass max_version=(1, 0), or "
        "copy=True."
    )


def _dlpack_of_gpu(
    value: DeviceTensor, max_version: tuple[int, int] | None, dl_device: tuple[int, int] | None, copy: bool | None
) -> Any:
    from runtime.gpu.dlpack import capsule

    if dl_device not in (None, _dlpack_device(value)):
        raise BufferError(
            f"The tensor is on {value.held.place.short}, not on DLPack's device {dl_device}; copy it with cpu()."
        )
    versioned = max_version is not None and max_version >= (1, 0)
    if copy is False and not versioned:
        raise BufferError(
            "A tensor's memory is read-only, which only version 1 of DLPack can express. Pass "
            "max_version=(1, 0), or copy=True."
        )
    held = value.held
    return capsule(held.copied() if copy or not versioned else held, versioned)


# NumPy 2.1 and later hand out capsules of the protocol's version 1.
_VERSIONED_DLPACK = np.lib.NumpyVersion(np.__version__) >= "2.1.0"


def _dlpack_device(self: Any) -> tuple[int, int]:
    value = _as_tensor(self)
    if value.__class__ is not DeviceTensor:
        return (1, 0)
    return value.held.place.backend.dlpack_type, value.held.place.backend.ordinal


def to_dlpack(tf_tensor: Any) -> Any:
    """A DLPack capsule with the tensor's value, for other libraries. Raises TypeError while tracing."""
    return _dlpack(convert_to_tensor(tf_tensor))


class _Capsule:
    """What NumPy reads: a capsule behind the protocol's two methods."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def from_dlpack(dlcapsule: Any) -> Tensor:
    """The tensor of a DLPack capsule (once), or of an object with `__dlpack__`. Its memory is copied; an array on a GPU
    is shared, and must not be changed afterwards.

    Raises TypeError for anything else, and what NumPy raises for a capsule that it can't read; BufferError for an array
    on a GPU that has gaps between elements.
    """
    if not hasattr(dlcapsule, "__dlpack__") and type(dlcapsule).__name__ != "PyCapsule":
        kind = type(dlcapsule).__name__
        raise TypeError(f"from_dlpack takes an object with `__dlpack__`, or a DLPack capsule, not {kind}")
    where = dlcapsule.__dlpack_device__() if hasattr(dlcapsule, "__dlpack_device__") else (1, 0)
    place = None if where[0] == 1 else gpu_in_dlpack(*map(int, where))
    if place is not None:
        from runtime.gpu.dlpack import taken

        return eager(taken(dlcapsule.__dlpack__(stream=1), place))
    source = dlcapsule if hasattr(dlcapsule, "__dlpack__") else _Capsule(dlcapsule)
    return convert_to_tensor(np.array(np.from_dlpack(source)))


def install(cls: type) -> None:
    """Gives `cls` (tensors, variables) NumPy's protocols."""
    for name, method in {
        "__array_ufunc__": _array_ufunc, "__array_function__": _array_function, "__dlpack__": _dlpack,
        "__dlpack_device__": _dlpack_device,
    }.items():  # fmt: skip
        setattr(cls, name, shows_no_frames(method))
