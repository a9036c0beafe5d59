"""Whole files as strings, in eager and in staged code."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.files import makedirs, translated
from runtime.ops.convert import convert_to_tensor
from runtime.ops.dispatch import apply
from runtime.ops.table import OpDef, register
from runtime.tensor import Tensor
from runtime.types import TensorType


def _bytes(value: Any) -> bytes:
    if np.ndim(value):
        raise errors.InvalidArgumentError(f"expected a scalar string, got shape {list(np.shape(value))}")
    return bytes(np.asarray(value, object)[()])


def _path(value: Any) -> str:
    return os.fsdecode(_bytes(value))


def _scalar(content: bytes) -> np.ndarray:
    found = np.empty((), np.dtype(object))
    found[()] = content
    return found


def _read_kernel(filename: Any) -> Any:
    path = _path(filename)
    with translated(path), open(path, "rb") as file:
        return _scalar(file.read())


def _write_kernel(filename: Any, contents: Any) -> tuple:
    path = _path(filename)
    if folder := os.path.dirname(path):
        makedirs(folder)
    with translated(path), open(path, "wb") as file:
        file.write(_bytes(contents))
    return ()


def _matching_kernel(pattern: Any) -> Any:
    patterns = np.asarray(pattern).reshape(-1).tolist()
    found = sorted({os.fsencode(path) for each in patterns for path in glob.glob(os.fsdecode(each))})
    result = np.empty(len(found), np.dtype(object))
    result[:] = found
    return result


def _need_strings(inputs: Sequence[Any], scalar: bool = True) -> None:
    for operand in inputs:
        if operand.dtype is not dtypes.string:
            raise TypeError(f"expected strings, got {operand.dtype.label}")
        if scalar and operand.shape not in ((), None):
            raise ValueError(f"expected a scalar, got shape {operand.shape}")


def _infer_read(inputs: Sequence[Any], attrs: dict) -> tuple:
    _need_strings(inputs)
    return (TensorType(dtypes.string, ()),)


def _infer_write(inputs: Sequence[Any], attrs: dict) -> tuple:
    _need_strings(inputs)
    return ()


def _infer_matching(inputs: Sequence[Any], attrs: dict) -> tuple:
    _need_strings(inputs, False)
    return (TensorType(dtypes.string, (None,)),)


_WHY = "uses files of the machine that it runs on"
READ = register(
    OpDef(
        "read_file",
        _infer_read,
        _read_kernel,
        effect=True,
        kinds="O",
        doc="The bytes of a file.",
        not_in_files=_WHY,
    )
)
WRITE = register(
    OpDef(
        "write_file",
        _infer_write,
        _write_kernel,
        effect=True,
        multiple=True,
        kinds="O",
        doc="Writes a file.",
        not_in_files=_WHY,
    )
)
MATCHING = register(
    OpDef(
        "matching_files",
        _infer_matching,
        _matching_kernel,
        effect=True,
        kinds="O",
        doc="The paths that match patterns.",
        not_in_files=_WHY,
    )
)


def _filename(value: Any) -> Tensor:
    return convert_to_tensor(os.fspath(value) if isinstance(value, os.PathLike) else value)


def read_file(filename: Any, name: str | None = None) -> Tensor:
    """The bytes of a file, as a scalar string. Raises NotFoundError if there is none."""
    found: Tensor = apply(READ, (_filename(filename),))
    return found


def write_file(filename: Any, contents: Any, name: str | None = None) -> None:
    """Writes a scalar string to a file, replacing its contents; missing folders are created.

    Raises PermissionDeniedError and the like if that fails.
    """
    apply(WRITE, (_filename(filename), convert_to_tensor(contents)))


def matching_files(pattern: Any, name: str | None = None) -> Tensor:
    """The paths that match a pattern with `*`, `?` and `[...]`, or one of a vector of them, sorted."""
    found: Tensor = apply(MATCHING, (_filename(pattern),))
    return found
