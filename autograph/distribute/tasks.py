"""Functions as tasks of engines that schedule work: Dask, Ray and what else sends Python functions to other processes.

Functions, concrete functions and models travel by pickle (`function/pickling.py`), tensors by their arrays' memory. An
engine that keeps arrays in shared memory hands out views of it that can't be written to: these become tensors without
a copy.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from autograph.function.polymorphic import traced
from runtime import nest
from runtime.dtypes import as_dtype
from runtime.errors import UnimplementedError
from runtime.spec import TensorSpec
from runtime.tensor import EagerTensor


def task(func: Callable[..., Any]) -> Callable[..., Any]:
    """A plain Python function, for `ray.remote`, that calls ``func`` and returns NumPy arrays instead of tensors.

    Read-only arrays are passed in without a copy. Results are read-only arrays, also without a copy. Raises TypeError
    if ``func`` can't be called.
    """
    if not callable(func):
        raise TypeError(f"task takes a function, got {func!r}")

    def run(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = nest.map_structure(_taken, (args, kwargs))
        return nest.map_structure(_given, func(*args, **kwargs))

    functools.update_wrapper(run, getattr(func, "python_function", func), updated=())
    # What is wrapped is no part of the task: a pickle would hold it a second time.
    del run.__wrapped__  # type: ignore[attr-defined]
    return run


def map_blocks(func: Callable[..., Any], *arrays: Any) -> Any:
    """Maps ``func`` over the blocks of Dask arrays; returns a Dask array.

    arrays   have the same numbers of blocks; `func` gets a block of each, as tensors, and returns one tensor with as
             many dimensions

    Nothing is computed: dtype and chunks of the result come from tracing `func` for each size that blocks have.
    Sizes that tracing can't determine are unknown chunks. Raises ValueError for arrays that don't fit together or
    results with the wrong number of dimensions, UnimplementedError without Dask.
    """
    try:
        import dask.array as da
    except ImportError as error:
        raise UnimplementedError(
            f"map_blocks needs Dask, and importing it failed: {error}. Install it: "
            "python -m pip install 'dask[array,distributed]'"
        ) from None
    if not arrays or not all(isinstance(array, da.Array) for array in arrays):
        raise TypeError("map_blocks takes Dask arrays: convert arrays with dask.array.from_array(x, chunks=...)")
    if len({array.numblocks for array in arrays}) > 1:
        raise ValueError(f"arrays must have the same numbers of blocks, got {[array.numblocks for array in arrays]}")
    mapped = traced(func)
    chunks, dtype = _inferred(mapped, arrays)
    meta = np.empty((0,) * len(chunks), dtype)
    return da.map_blocks(task(mapped), *arrays, chunks=chunks, dtype=dtype, meta=meta)


def _inferred(mapped: Any, arrays: Any) -> tuple[tuple[tuple[Any, ...], ...], np.dtype]:
    """The chunks and the dtype of what a function makes of blocks."""
    counts = arrays[0].numblocks
    known: dict[Any, Any] = {}

    def result(place: tuple[int, ...]) -> Any:
        shapes = tuple([tuple([_size(each[i]) for each, i in zip(array.chunks, place)]) for array in arrays])
        if shapes not in known:
            specs = [TensorSpec(shape, as_dtype(array.dtype)) for shape, array in zip(shapes, arrays)]
            known[shapes] = mapped.get_concrete_function(*specs).structured_outputs
            if not isinstance(known[shapes], TensorSpec):
                raise ValueError(f"the function must return one tensor for each block, got {known[shapes]}")
            if known[shapes].shape.rank != len(counts):
                raise ValueError(
                    f"the function must return tensors with {len(counts)} dimensions, as its blocks have, got shape "
                    f"{known[shapes].shape}: reduce with keepdims=True"
                )
        return known[shapes]

    chunks = []
    for axis, count in enumerate(counts):
        places = [tuple([i if a == axis else 0 for a in range(len(counts))]) for i in range(count)]
        sizes = [result(place).shape[axis] for place in places]
        chunks.append(tuple([float("nan") if size is None else size for size in sizes]))
    for corner in itertools.product(*[{0, count - 1} for count in counts]):
        for axis, i in enumerate(corner):
            size = result(corner).shape[axis]
            if size is not None and size != chunks[axis][i]:
                raise ValueError(
                    f"the results can't be joined to one array: their size in dimension {axis} depends on the sizes of "
                    "the blocks in other dimensions"
                )
    return tuple(chunks), result((0,) * len(counts)).dtype.as_numpy_dtype


def _size(size: Any) -> int | None:
    return None if size != size else int(size)  # of chunks whose size isn't known it is nan


def _taken(value: Any) -> Any:
    if isinstance(value, np.ndarray) and not value.flags.writeable and value.ndim and value.dtype.kind in "biufc":
        return EagerTensor(value, as_dtype(value.dtype))
    return value


def _given(value: Any) -> Any:
    if not isinstance(value, EagerTensor):
        return value
    array = np.asarray(value._array)
    if not array.ndim:
        return array[()]
    view = array.view()
    view.flags.writeable = False
    return view
