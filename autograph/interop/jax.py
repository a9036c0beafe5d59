"""`ag.interop.jax`: functions of ours in JAX's programs, under all of its transformations.

A call is one primitive. Its shapes come from our type rules; its derivative is a call of the program's pushforward,
which is linear in the tangents, and whose transpose is the pullback; rows are a program too. On the CPU XLA calls the C
function of the compiled program through its foreign function interface, without Python. Programs that have none, and
other devices, are called through `pure_callback`.
"""

from __future__ import annotations

import ctypes
import functools
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from autograph.c_library import load
from autograph.interop.programs import Program, Programs, leaves, owned, with_leaves
from runtime.dtypes import as_dtype
from runtime.errors import UnimplementedError
from runtime.spec import TensorSpec
from runtime.tensor import EagerTensor, held_by

__all__ = ["wrap"]

# Parameters: `program`; `linear`: None, or for a pushforward the program that it is of, and the positions of the
# arguments whose tangents come last.
_call = Primitive("autograph_call")
_call.multiple_results = True
# XLA may keep compiled programs on disk, where a name must not mean something else in another process.
_PROCESS = uuid.uuid4().hex[:12]


# --- types -----------------------------------------------------------------------------------------------------------


def _specs(avals: Sequence[Any]) -> list[TensorSpec]:
    return [TensorSpec(aval.shape, as_dtype(np.dtype(aval.dtype))) for aval in avals]


def _shapes(program: Program, avals: Sequence[Any]) -> list[Any]:
    """Those of the results. Raises TypeError for results that JAX's arrays can't be."""
    found = []
    for spec in leaves(program.types(_specs(avals))):
        if None in (shape := spec.shape.as_list() if spec.shape.rank is not None else [None]):
            raise TypeError(
                f"a result of {program.name} has a size that depends on values: {spec.shape}. JAX's arrays have fixed "
                "sizes: pad it, or fix it with ag.ensure_shape"
            )
        dtype = np.dtype(spec.dtype.as_numpy_dtype)
        if dtype != jax.dtypes.canonicalize_dtype(dtype):
            raise TypeError(
                f"a result of {program.name} is {dtype}, which JAX has only with jax.config.update('jax_enable_x64', "
                "True). Switch it on, or cast the result (ag.cast)"
            )
        found.append(jax.ShapeDtypeStruct(tuple(shape), dtype))
    return found


@_call.def_abstract_eval
def _(*avals: Any, program: Program, linear: Any) -> list[Any]:
    return [jax.core.ShapedArray(each.shape, each.dtype) for each in _shapes(program, avals)]


# --- execution -------------------------------------------------------------------------------------------------------


@functools.partial(jax.jit, static_argnames=("program", "linear"))
def _compiled(*arrays: Any, program: Program, linear: Any) -> Any:
    return _call.bind(*arrays, program=program, linear=linear)


_call.def_impl(_compiled)


def _from_python(*arrays: Any, program: Program) -> list[Any]:
    """The call as XLA asks Python for it."""
    given = [np.ascontiguousarray(array) for array in map(np.asarray, arrays)]
    tensors = [EagerTensor(array if array.ndim else array[()], as_dtype(array.dtype)) for array in given]
    return [owned(held_by(result), given) for result in leaves(program(tensors))]


def _by_callback(*arrays: Any, program: Program, linear: Any) -> Any:
    run = functools.partial(_from_python, program=program)
    return jax.pure_callback(run, _shapes(program, arrays), *arrays)


def _by_c_function(*arrays: Any, program: Program, linear: Any) -> Any:
    target = _target(program, tuple([(array.shape, np.dtype(array.dtype)) for array in arrays]))
    if target is None:
        return _by_callback(*arrays, program=program, linear=linear)
    return jax.ffi.ffi_call(target, _shapes(program, arrays))(*arrays)


@functools.cache
def _target(program: Program, types: tuple) -> str | None:
    """The name under which XLA knows the C function of a program for arguments of these types; None without one."""
    from runtime.codegen.export.loaded import Buffer, xla_handler

    try:
        function = program.function.get_concrete_function(
            *[TensorSpec(shape, as_dtype(dtype)) for shape, dtype in types]
        )
        loaded = load(function)
    except UnimplementedError:
        return None

    def buffers(values: Sequence[Any]) -> list[Buffer]:
        sizes = [int(np.prod(each.shape, dtype=np.int64)) * each.slot.dtype.size for each in values]
        kinds = [each.slot.kind == "array" for each in values]
        return [Buffer(each.memory, size if is_array else None) for each, size, is_array in zip(values, sizes, kinds)]

    handler = xla_handler(loaded.address, loaded.free_address, buffers(loaded.parameters), buffers(loaded.results))
    name = f"autograph_{_PROCESS}_{program.number}_{loaded.address:x}"
    pointer = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(handler)
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(pointer), platform="cpu")
    return name


mlir.register_lowering(_call, mlir.lower_fun(_by_callback, multiple_results=True))
mlir.register_lowering(_call, mlir.lower_fun(_by_c_function, multiple_results=True), platform="cpu")


# --- derivatives -----------------------------------------------------------------------------------------------------


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, program: Program, linear: Any) -> tuple[Any, Any]:
    results = _call.bind(*primals, program=program, linear=linear)
    moved = tuple(i for i, tangent in enumerate(tangents) if type(tangent) is not ad.Zero)
    pushed = iter(())
    if any(_is_float(result) for result in results):
        given = [tangents[i] for i in moved]
        pushed = iter(_call.bind(*primals, *given, program=program.pushforward(moved), linear=(program, moved)))
    zero = [ad.Zero(jax.typeof(result).to_tangent_aval()) for result in results]
    return results, [next(pushed) if _is_float(result) else none for result, none in zip(results, zero)]


def _is_float(value: Any) -> bool:
    return jnp.issubdtype(value.dtype, jnp.inexact)


def _transpose(cotangents: Sequence[Any], *values: Any, program: Program, linear: Any) -> list[Any]:
    assert linear is not None, "only pushforwards are linear"
    root, moved = linear
    primals, tangents = values[: root.count], values[root.count :]
    arrived = [ad.instantiate_zeros(cotangent) for cotangent in cotangents]
    wanted = tuple(i for i, tangent in zip(moved, tangents) if ad.is_undefined_primal(tangent))
    pullback = root.pullback(wanted, len(arrived))
    found = iter(_call.bind(*primals, *arrived, program=pullback, linear=None))
    return [*[None] * root.count, *(next(found) if ad.is_undefined_primal(t) else None for t in tangents)]


def _rows(arrays: Sequence[Any], dims: Sequence[Any], *, program: Program, linear: Any) -> tuple[Any, Any]:
    size = next(array.shape[axis] for array, axis in zip(arrays, dims) if axis is not batching.not_mapped)
    is_mapped = [axis is not batching.not_mapped for axis in dims]
    count = program.count if linear is None else linear[0].count
    if linear is not None:  # an argument and its tangent have the same shape
        for place, position in enumerate(linear[1]):
            is_mapped[position] = is_mapped[count + place] = is_mapped[position] or is_mapped[count + place]
    given = []
    for array, axis, mapped in zip(arrays, dims, is_mapped):
        if axis is not batching.not_mapped:
            array = jnp.moveaxis(array, axis, 0)
        elif mapped:
            array = jnp.broadcast_to(array, (size, *array.shape))
        given.append(array)
    axes = tuple([0 if mapped else None for mapped in is_mapped])
    if linear is None:
        rows, of_rows = program.over_rows(axes), None
    else:
        root = linear[0].over_rows(axes[:count])
        rows, of_rows = root.pushforward(linear[1]), (root, linear[1])
    results = _call.bind(*given, program=rows, linear=of_rows)
    return results, [0] * len(results)


ad.primitive_jvps[_call] = _jvp
ad.primitive_transposes[_call] = _transpose
batching.primitive_batchers[_call] = _rows


# --- the wrapper -----------------------------------------------------------------------------------------------------


def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, which works on tensors of this project, as one on JAX's arrays.

    function: plain Python or an `ag.function`; loops may depend on data, and have gradients. It is traced and compiled
    for each combination of dtypes and shapes. Arguments and results are arrays, or trees of them; numbers are arrays
    too.

    Works within `jit`, `grad` of every order, `jvp`, `vjp`, `vmap`, `scan` and the others. The derivative of a call
    runs the function once more.

    Raises TypeError for arguments that aren't arrays or numbers, and for results whose sizes depend on values, or whose
    dtype JAX doesn't have switched on.

    >>> jax.grad(jax.jit(wrap(lambda x: x * x)))(3.0)
    Array(6., dtype=float32, weak_type=True)
    """
    name = getattr(function, "__name__", type(function).__name__)
    programs = Programs(function, name)

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        flat, tree = jax.tree_util.tree_flatten((args, kwargs))
        try:
            arrays = [jnp.asarray(each) for each in flat]
        except TypeError as error:
            raise TypeError(f"the arguments of {name} must be arrays and numbers: {error}") from None
        program = programs.of(tree, lambda tensors: jax.tree_util.tree_unflatten(tree, list(tensors)), len(arrays))
        structure = program.types(_specs(arrays))
        return with_leaves(structure, _call.bind(*arrays, program=program, linear=None))

    return wrapped
