"""The index from graphs to their kernels on disk. It saves a new process the lowering, which takes longer than loading.

    <cache>/kernels/g_7c01….index   named by a hash of the graph and of all that lowering depends on; a line with a
                                    digest, then the kernel's name and calling convention

An entry is a pickle, and as trustworthy as the machine code beside it (`cache/private_files.py`). A graph that refers
to an object without a known value (a function, a variable that failures commit) has no entry and is lowered in each
process.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import pickle
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from runtime import system
from runtime.codegen.backends import call_stub, llvm_backend
from runtime.codegen.backends.driver import afterwards, load_kernel, record_of
from runtime.codegen.cache import kernel_cache
from runtime.codegen.kernel.call_outs import CallOut
from runtime.codegen.kernel.source import KernelSource
from runtime.dataclass import dataclass
from runtime.dtypes import DType
from runtime.graph.ir import ConstantArray, Graph, Node, Value
from runtime.graph.passes import options
from runtime.graph.structural import ASSIGN
from runtime.llvm.layouts import known
from runtime.ops.table import OPS
from runtime.types import StackType, TensorType, TokenType

# The sources that print and compile kernels.
_ROOT = Path(__file__).parents[2]
_LOWERING = ("remapping", "memory_optimization")  # the options that lowering reads
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


@dataclass(frozen=True)
class CachedKernel:
    """An entry. source: without its IR and the reports for `explain`; machine: `kernel_cache.machine()` when it was
    written."""

    kernel: str
    machine: tuple[str, ...]
    source: KernelSource

    def load(self, graph: Graph) -> call_stub.NativeCall | None:
        """The stub of the kernel; None if the kernel was evicted or made for another machine."""
        if not llvm_backend.available() or self.machine != kernel_cache.machine():
            return None
        entry = load_kernel(self.kernel, self.source.text)
        if entry is None:
            return None
        return call_stub.make_stub(
            replace(self.source, general=functools.partial(_general, graph)), entry, gives_numpy=True
        )


def _general(graph: Graph) -> KernelSource:
    from runtime.codegen.lower.lower_graph import lower  # imports all lowerings, which a cache hit seldom needs

    return lower(graph, assuming=False)


def lookup(graph: Graph, described: str | None = None) -> CachedKernel | None:
    """The entry of a graph, None if there is none that can be read. described: its `description`, if that is known."""
    if os.environ.get("AUTOGRAPH_COMPILER") not in (None, "", llvm_backend.NAME):
        return None
    if not kernel_cache.kernel_folder().is_dir():
        return None
    text = description(graph) if described is None else described
    name = None if text is None else _name(_key(text))
    content = None if name is None else kernel_cache.read_kept(_file(name))
    if content is None:
        return None
    # The digest says that the bytes are intact; a class in the pickle may have moved since.
    with contextlib.suppress(pickle.UnpicklingError, AttributeError, ImportError, TypeError, EOFError):
        found = pickle.loads(content)
        return found if isinstance(found, CachedKernel) else None
    return None


def store(graph: Graph, source: KernelSource, described: str | None = None) -> None:
    """Writes the entry of a graph whose kernel has just been compiled, if that is on disk, as soon as nobody waits for
    this thread. Until then it keeps nothing of the graph alive. described: see `lookup`."""
    text = description(graph) if described is None else described
    calls_python = any(isinstance(each, CallOut) for each in source.constants)
    if text is not None and not source.kept and not calls_python:
        short = dataclasses.replace(source, reports=(), small=frozenset(), general=None, functions=())
        key = _key(text)
        afterwards(lambda: _write(key, short))


def _write(key: str, source: KernelSource) -> None:
    record, name = record_of(source), _name(key)
    if record is None or record.path is None or record.compiler != llvm_backend.NAME or name is None:
        return
    kernel_cache.write_kept(_file(name), pickle.dumps(CachedKernel(record.name, kernel_cache.machine(), source)))


def _file(name: str) -> Path:
    return kernel_cache.kernel_folder() / f"{name}.index"


# --- what names a graph ----------------------------------------------------------------------------------------------


def _key(described: str) -> str:
    return "\0".join([*[f"{name}={options.get(name)}" for name in _LOWERING], described])


def _name(key: str) -> str | None:
    about = _this_build()
    return about and "g_" + kernel_cache.digest(f"{about}\0{key}".encode("utf-8", "surrogatepass"))[:24]


def description(graph: Graph) -> str | None:
    """A text of all that a kernel depends on in a graph; None if it refers to an object that has no such text."""
    parts: list[str] = []
    try:
        _graph(graph, parts)
    except _Unknown:
        return None
    return "\0".join(parts)


@functools.cache
def _this_build() -> str | None:
    """A hash of the project's source files with sizes and times of change, by which Python invalidates its bytecode
    too, of the versions that kernels depend on, and of where this build of Python keeps the fields of objects. None if
    there are no files."""
    found: list[str] = []
    with contextlib.suppress(OSError):
        for file in kernel_cache.source_files(_ROOT):
            status = file.stat()
            found.append(f"{file.path} {status.st_size} {status.st_mtime_ns}")
    versions = (kernel_cache.FORMAT, np.__version__, sys.version_info[:3], system.NAME, known())
    text = "\n".join([repr(versions), *found])
    return kernel_cache.digest(text.encode("utf-8", "surrogateescape")) if found else None


class _Unknown(Exception):
    """Something in a graph that can't be described by a text."""


def _graph(graph: Graph, parts: list[str]) -> None:
    place: dict[Value, int] = {}
    parts.append(f"graph {graph.name}")
    for value in graph.inputs:
        place[value] = len(place)
        parts.append(f"{_type(value.type)} {value.name}")
    for node in graph.nodes:
        _node(node, [place[value] for value in node.inputs], parts)
        for value in node.outputs:
            place[value] = len(place)
            parts.append(f"{_type(value.type)} {value.name}")
    parts.append(f"return {[place[value] for value in graph.outputs]}")


def _node(node: Node, inputs: list[int], parts: list[str]) -> None:
    if OPS.get(node.op.name) is not node.op:
        raise _Unknown
    parts.append(f"{node.op.name} {inputs} {node.name} {node.span}")
    # Which variable an assignment is to means nothing to a kernel: its value comes in and goes out like any other.
    for key, value in node.attrs.items() if node.op is not ASSIGN else ():
        parts.append(f"{key} {_attribute(value)}")
    for region in node.regions:
        _graph(region, parts)


@functools.lru_cache(1024)
def _type(type_: Any) -> str:
    if isinstance(type_, (TensorType, StackType, TokenType)):
        return str(type_)
    raise _Unknown


def _attribute(value: Any) -> str:
    if type(value) in _PLAIN:
        return repr(value)
    if type(value) in (tuple, list):
        return f"{type(value).__name__}({','.join([_attribute(part) for part in value])})"
    if isinstance(value, ConstantArray) and value.array.dtype != object:
        return f"{value.array.dtype.str} {value.array.shape} {kernel_cache.digest(value.array.tobytes())}"
    if isinstance(value, DType):
        return value.name
    if isinstance(value, (TensorType, StackType, TokenType)):
        return _type(value)
    if isinstance(value, np.generic) and value.dtype != object:
        return f"{value.dtype.str} {value.tobytes().hex()}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [_attribute(getattr(value, field.name)) for field in dataclasses.fields(value)]
        return f"{type(value).__qualname__}({','.join(fields)})"
    raise _Unknown
