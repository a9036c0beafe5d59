"""Converted code of third-party functions, kept on disk beside the kernels.

A program that calls a large library converts hundreds of the library's functions, of which each takes milliseconds, and
they are the same in every process. What is kept is found by a hash of all that the conversion depends on: the
function's own code with its lines and columns, what the names around it mean as far as the passes ask, and the text of
the passes. Like kernels it is read only from files that nobody else can write
(`runtime/codegen/cache/private_files.py`).
"""

from __future__ import annotations

import functools
import importlib.util
import marshal
import sys
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from runtime.codegen.cache import kernel_cache

_THIRD_PARTY = ("site-packages", "dist-packages")
_FACTS = (
    "co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_flags", "co_code", "co_names", "co_varnames",
    "co_freevars", "co_cellvars", "co_filename", "co_name", "co_qualname", "co_firstlineno", "co_linetable",
    "co_exceptiontable",
)  # fmt: skip


def is_third_party(function: FunctionType) -> bool:
    """Whether a function belongs to an installed library."""
    return any(part in function.__code__.co_filename for part in _THIRD_PARTY)


def place(code: CodeType, facts: Any) -> Path:
    """The file for the converted form of some code. facts: what else the conversion depends on."""
    parts = repr((_passes(), _described(code), facts)).encode()
    return kernel_cache.kernel_folder() / f"f_{kernel_cache.digest(parts)[:24]}.function"


def read(path: Path) -> CodeType | None:
    """The converted code in a file; None where there is none."""
    content = kernel_cache.read_kept(path)
    found = None if content is None else marshal.loads(content)
    return found if isinstance(found, CodeType) else None


def write(path: Path, code: CodeType) -> None:
    """Keeps converted code. Where nothing can be written, one warning for all says so."""
    kernel_cache.write_kept(path, marshal.dumps(code))


@functools.cache
def _passes() -> str:
    """What stands for the converter, and for the Python that made the code."""
    texts = []
    for folder in (Path(__file__).parent, Path(__file__).parents[1] / "syntax"):
        texts += [path.read_bytes() for path in sorted(folder.glob("*.py"))]
    version = repr((sys.version_info[:3], importlib.util.MAGIC_NUMBER)).encode()
    return kernel_cache.digest(b"\0".join([version, *texts]))


def _described(value: Any) -> Any:
    """A constant of code, or code, as something whose `repr` tells all that it is, the same in every process."""
    if isinstance(value, CodeType):
        return [getattr(value, name, None) for name in _FACTS], [_described(const) for const in value.co_consts]
    if isinstance(value, tuple):
        return tuple(map(_described, value))
    if isinstance(value, frozenset):
        return type(value).__name__, sorted(repr(_described(each)) for each in value)
    return type(value).__name__, value
