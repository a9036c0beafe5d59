"""`ag.interop.numba`: functions of ours called in numba's compiled code.

The machine code is the C function that `ag.export.c_library` makes, loaded into the process. numba's code calls it by
its address: no Python runs, and no lock is held.
"""

from __future__ import annotations

import functools
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, errors

from autograph.c_library import LoadedFunction, load
from autograph.function.concrete import ConcreteFunction
from autograph.function.polymorphic import Function
from runtime.errors import UnimplementedError

__all__ = ["gradient", "njit"]

_ROOM = 1024  # bytes of an error's message
_MISFIT = -1  # the status of a call whose arrays don't have the function's sizes
_SIZE, _WORD = ir.IntType(64), ir.IntType(32)


def njit(function: ConcreteFunction[..., Any] | Function[..., Any]) -> Any:
    """A function for numba's compiled code, which runs ours without Python.

    function: what `get_concrete_function` returns, or an `ag.function` with an `input_signature`. The new function
    takes the tensors among its arguments, by position, as numbers and C-contiguous arrays of the same dtypes and ranks;
    it gives one number or array, or a tuple of them. Python code can call it too. Its attributes `address` and
    `free_address` are those of the C functions, which docs/c_library.md describes.

    In use it raises RuntimeError with the message of our error, ValueError for arrays of another size, and numba's
    TypingError for other types. Raises UnimplementedError for what has no native code, or a dtype that numba lacks.

    >>> @function(input_signature=[TensorSpec([], float64)])
    ... def halvings(x):
    ...     n = 0
    ...     while x > 1.0:
    ...         x, n = x / 2.0, n + 1
    ...     return n
    >>> count = njit(halvings)
    >>> numba.njit(lambda x: count(x) + count(2.0 * x))(5.0)
    7
    """
    return _callable(load(function))


def gradient(function: ConcreteFunction[..., Any] | Function[..., Any]) -> Any:
    """The same for a function's derivative: gives a tuple of the results, and then the gradient of the sum of the
    floating-point ones by each floating-point argument."""
    return _callable(load(function, gradient=True))


# --- calls -----------------------------------------------------------------------------------------------------------


def _numba_type(each: Any) -> Any:
    """Of a parameter or result."""
    dtype = each.slot.dtype
    if dtype.kind not in "biuf" or dtype.is_narrow:
        raise UnimplementedError(
            f"numba's code can't take or give {each.name!r}, of dtype {dtype.name}: cast it to float32 (ag.cast)"
        )
    scalar = numba.from_dtype(np.dtype(dtype.as_numpy_dtype))
    return scalar if each.slot.kind != "array" else types.Array(scalar, len(each.shape), "C")


def _callable(loaded: LoadedFunction) -> Any:
    """What numba's code calls: a dispatcher of fixed types."""
    call, fail = _call_of(loaded), _failure_of(loaded)
    pick = _picked(loaded)

    @numba.njit
    def called(*arguments):
        found = call(arguments, 0, 0)
        if found[0] != 0:
            fail(arguments)
        return pick(found)

    called.__name__ = loaded.name
    called.address, called.free_address = loaded.address, loaded.free_address
    return called


def _call_of(loaded: LoadedFunction) -> Any:
    """The call itself: takes the arguments as a tuple, and the address and size of the room for a message. Gives the
    status, then each number, and of arrays a pair of their address and sizes."""
    parameters = [(each, _numba_type(each)) for each in loaded.parameters]
    results = [(each, _numba_type(each)) for each in loaded.results]
    shown = ", ".join(str(type_) for _, type_ in parameters)
    given_types = [_given_type(type_) for _, type_ in results]

    @numba.extending.intrinsic
    def call(typingctx, arguments, message, room):
        found = list(arguments)
        if len(found) != len(parameters) or not all(_fits(a, b) for a, (_, b) in zip(found, parameters)):
            raise errors.TypingError(f"{loaded.name} takes ({shown}), but is called with {tuple(found)}")

        def codegen(context, builder, signature, values):
            return _emit(context, builder, loaded, parameters, results, signature, values)

        return types.Tuple([types.int32, *given_types])(arguments, message, room), codegen

    return call


def _given_type(type_: Any) -> Any:
    if isinstance(type_, types.Array):
        return types.Tuple([types.intp, types.UniTuple(types.intp, type_.ndim)])
    return type_


def _fits(given: Any, wanted: Any) -> bool:
    if isinstance(wanted, types.Array):
        return isinstance(given, types.Array) and (given.dtype, given.ndim, given.layout) == (
            wanted.dtype, wanted.ndim, "C",
        )  # fmt: skip
    return isinstance(given, (types.Number, types.Boolean)) and (
        given == wanted or isinstance(wanted, types.Float) or isinstance(given, types.Integer)
    )


def _emit(
    context: Any, builder: Any, loaded: LoadedFunction, parameters: list, results: list, signature: Any, values: list
) -> Any:
    fits, given = cgutils.true_bit, list[Any]()
    for number, (each, type_) in enumerate(parameters):
        value, own = builder.extract_value(values[0], number), signature.args[0][number]
        if not isinstance(type_, types.Array):
            given.append(_stored(context, builder, type_, context.cast(builder, value, own, type_)))
            continue
        array = context.make_array(own)(context, builder, value)
        given.append(builder.ptrtoint(array.data, _SIZE))
        for size, known in zip(cgutils.unpack_tuple(builder, array.shape, type_.ndim), each.shape):
            if known is None:
                given.append(size)
            else:
                fits = builder.and_(fits, builder.icmp_signed("==", size, ir.Constant(size.type, known)))
    places = [_Place(context, builder, each, type_) for each, type_ in results]
    for place in places:
        given += place.pointers(builder)
    given += [context.cast(builder, value, own, types.intp) for value, own in zip(values[1:], signature.args[1:])]
    status = cgutils.alloca_once_value(builder, ir.Constant(_WORD, _MISFIT))
    with builder.if_then(fits):
        kind = ir.FunctionType(_WORD, [value.type for value in given])
        function = builder.inttoptr(ir.Constant(_SIZE, loaded.address), kind.as_pointer())
        builder.store(builder.call(function, given), status)
    found = [builder.load(status), *(place.value(context, builder) for place in places)]
    return context.make_tuple(builder, signature.return_type, found)


def _stored(context: Any, builder: Any, type_: Any, value: Any) -> Any:
    """A number as memory and C have it: a bool is a byte."""
    return context.get_value_as_data(builder, type_, value)


class _Place:
    """The memory for a result of the C function: of an array, for its address and the sizes that it tells."""

    def __init__(self, context: Any, builder: Any, result: Any, type_: Any) -> None:
        self._type, self._is_array = type_, isinstance(type_, types.Array)
        self._known = result.shape
        self._memory = cgutils.alloca_once(builder, _SIZE if self._is_array else context.get_data_type(type_))
        builder.store(ir.Constant(self._memory.type.pointee, None), self._memory)
        self._sizes = None
        if self._is_array and result.gives_sizes:
            self._sizes = cgutils.alloca_once(builder, _SIZE, size=len(self._known))

    def pointers(self, builder: Any) -> list[Any]:
        return [builder.ptrtoint(each, _SIZE) for each in (self._memory, self._sizes) if each is not None]

    def value(self, context: Any, builder: Any) -> Any:
        if not self._is_array:
            return context.data_model_manager[self._type].from_data(builder, builder.load(self._memory))
        sizes = [ir.Constant(_SIZE, n or 0) for n in self._known]
        if self._sizes is not None:
            at = [builder.gep(self._sizes, [ir.Constant(_SIZE, axis)]) for axis in range(len(sizes))]
            sizes = [builder.load(each) for each in at]
        pair = _given_type(self._type)
        shape = context.make_tuple(builder, pair.types[1], sizes)
        return context.make_tuple(builder, pair, [builder.load(self._memory), shape])


# --- results and errors ----------------------------------------------------------------------------------------------


def _picked(loaded: LoadedFunction) -> Any:
    """From what a call gives: the result, or a tuple of the results."""
    picks = [_pick(loaded, number + 1, _numba_type(each)) for number, each in enumerate(loaded.results)]
    if len(picks) == 1:
        return picks[0]

    @numba.njit
    def nothing(found):
        return ()

    return functools.reduce(_joined, reversed(picks), nothing)


def _joined(rest: Any, first: Any) -> Any:
    @numba.njit
    def joined(found):
        return (first(found), *rest(found))

    return joined


def _pick(loaded: LoadedFunction, number: int, type_: Any) -> Any:
    if not isinstance(type_, types.Array):

        @numba.njit
        def pick(found):
            return found[number]

        return pick
    pointer, free = _pointer_to(type_.dtype), _free_by(loaded.free_address)

    @numba.njit
    def copied(found):
        address, shape = found[number]
        result = numba.carray(pointer(address), shape).copy()
        free(address)
        return result

    return copied


def _pointer_to(dtype: Any) -> Any:
    @numba.extending.intrinsic
    def pointer(typingctx, address):
        def codegen(context, builder, signature, values):
            return builder.inttoptr(values[0], context.get_value_type(signature.return_type))

        return types.CPointer(dtype)(types.intp), codegen

    return pointer


def _free_by(function: int) -> Any:
    @numba.extending.intrinsic
    def free(typingctx, address):
        def codegen(context, builder, signature, values):
            kind = ir.FunctionType(ir.VoidType(), [_SIZE])
            builder.call(builder.inttoptr(ir.Constant(_SIZE, function), kind.as_pointer()), values)
            return context.get_dummy_value()

        return types.void(types.intp), codegen

    return free


def _failure_of(loaded: LoadedFunction) -> Any:
    """Raises the error of a call: the function runs again, to write its message."""
    call, misfit = _call_of(loaded), _MISFIT
    sizes = ", ".join(f"{each.name}: {list(each.shape)}" for each in loaded.parameters if each.slot.kind == "array")
    text = f"{loaded.name} was compiled for arrays of other sizes than it is called with ({sizes}). Leave dimensions "
    text += "open in its signature: ag.TensorSpec([None], ...)"
    room = _ROOM

    @numba.njit
    def fail(arguments):
        message = np.zeros(room, np.uint8)
        if call(arguments, message.ctypes.data, room)[0] == misfit:
            raise ValueError(text)
        # Joined, as numba 0.62 raises an empty text where a loop has assigned the variable.
        raise RuntimeError("".join([chr(byte) for byte in message[: message.argmin()]]))

    return fail
