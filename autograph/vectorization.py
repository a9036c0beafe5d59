"""`ag.vectorize`: functions of numbers as NumPy's ufuncs."""

from __future__ import annotations

import ctypes
import functools
import importlib
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from autograph.function.polymorphic import Function, python_function_of, traced
from runtime.dtypes import as_dtype
from runtime.signatures import signature_of
from runtime.spec import TensorSpec

if TYPE_CHECKING:
    from autograph.c_library import LoadedFunction

_FROM_FUNCTIONS = 1  # the place of PyUFunc_FromFuncAndData in NumPy's table
_IDENTITIES = {0: 0, 1: 1, None: -1}
_forever: list[Any] = []  # what ufuncs refer to


def vectorize(
    function: Callable[..., Any] | None = None, *, dtypes: Sequence[str] = ("f", "d"), identity: int | None = None
) -> Any:
    """A NumPy ufunc that computes a function of numbers for all elements of arrays; also a decorator.

    It is a `numpy.ufunc`: it broadcasts, has `reduce`, `accumulate`, `outer` and `at`, takes `out=`, `where=` and
    `dtype=`, and runs without Python. It has no gradient: use `ag.vmap` where you need one.

    function: takes scalar tensors and gives one. It may have loops whose trip counts differ between elements.
    dtypes: those of its arguments, as NumPy's codes: `"dl"`, or `"d"` for all alike. NumPy chooses the first entry to
    which it can cast the arguments safely. All are compiled at once.
    identity: what `reduce` gives for nothing: 0, 1, or None, for which that is an error.

    Raises TypeError for a function whose number of arguments isn't fixed, or that gives anything but one number, and
    UnimplementedError for what has no native code. The ufunc raises RuntimeError with the message of our errors.
    """
    if function is None:
        return functools.partial(_ufunc, dtypes=dtypes, identity=identity)
    return _ufunc(function, dtypes, identity)


def _ufunc(function: Callable[..., Any], dtypes: Sequence[str], identity: int | None) -> np.ufunc:
    python = python_function_of(function)
    name = getattr(python, "__name__", type(python).__name__)
    parameters = list(signature_of(python).parameters.values())
    fixed = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if not parameters or any(each.kind not in fixed for each in parameters):
        shown = ", ".join(map(str, parameters))
        raise TypeError(f"a ufunc takes a fixed number of numbers, but the parameters of {name} are ({shown})")
    if identity not in _IDENTITIES:
        raise ValueError(f"the identity of a ufunc is 0, 1 or None, not {identity!r}")
    of_tensors = traced(function)
    loops, codes = [], b""
    for given in dtypes:
        given = given * len(parameters) if len(given) == 1 else given
        if len(given) != len(parameters):
            raise TypeError(f"{name} takes {len(parameters)} numbers, but {given!r} names {len(given)} dtypes")
        loaded = _elementwise(of_tensors, given)
        loops.append(_loop(loaded))
        codes += bytes(np.dtype(each.slot.dtype.as_numpy_dtype).num for each in (*loaded.parameters, *loaded.results))
    return _made(name, python.__doc__ or "", loops, codes, len(parameters), _IDENTITIES[identity])


def _elementwise(function: Function, codes: str) -> LoadedFunction:
    from autograph.c_library import load

    specs = [TensorSpec([], as_dtype(np.dtype(code))) for code in codes]
    concrete = function.get_concrete_function(*specs)
    result = concrete.structured_outputs
    if not isinstance(result, TensorSpec) or result.shape.rank != 0:
        raise TypeError(f"a ufunc gives one number, but {concrete.graph.name} gives {result} for numbers")
    return load(concrete)


def _loop(loaded: LoadedFunction) -> int:
    from runtime.codegen.export.loaded import Call, ufunc_loop

    (result,) = loaded.results
    return ufunc_loop(Call(loaded.address, result.memory), [each.memory for each in loaded.parameters])


def _made(name: str, doc: str, loops: Sequence[int], codes: bytes, count: int, identity: int) -> np.ufunc:
    core: Any = importlib.import_module("numpy._core._multiarray_umath")
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    table = ctypes.cast(get(core._UFUNC_API, None), ctypes.POINTER(ctypes.c_void_p))
    pointer, number, text = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
    make = ctypes.PYFUNCTYPE(
        ctypes.py_object, pointer, pointer, text, number, number, number, number, text, text, number
    )(table[_FROM_FUNCTIONS])  # fmt: skip
    functions, data = (pointer * len(loops))(*loops), (pointer * len(loops))()
    given = (functions, data, codes, name.encode(), doc.encode())
    _forever.append(given)
    return make(functions, data, codes, len(loops), count, 1, identity, given[3], given[4], 0)
