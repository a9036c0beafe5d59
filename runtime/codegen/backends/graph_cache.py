"""Kernels of graphs that earlier processes met, found without lowering: that takes longer than loading one.

    <cache>/kernels/g_7c01….index   named by a hash of the graph and all that lowering depends on; a line with a digest,
                                    then the kernel's name and how it is called

An entry is a pickle, and as trustworthy as the machine code beside it (`cache/private_files.py`). A graph with
something in it whose value isn't known here (a variable, a function) has no entry and is lowered each time.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import os
import pickle
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from runtime.codegen.backends import call_stub, llvm_backend
from runtime.codegen.backends.driver import recalled, record_of
from runtime.codegen.cache import kernel_cache
from runtime.codegen.kernel.source import KernelSource
from runtime.dtypes import DType
from runtime.graph.ir import ConstantArray, Graph, Node, Value
from runtime.graph.passes import options
from runtime.ops.table import OPS
from runtime.types import StackType, TensorType, TokenType

# What kernels are printed and compiled by.
_ROOT = Path(__file__).parents[2]
_LOWERING = ("remapping", "memory_optimization")  # the options that it reads
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


@dataclass(frozen=True)
class Recalled:
    """What an entry holds. source: without what `explain` shows; machine: what `cache.machine` was."""

    kernel: str
    machine: tuple[str, ...]
    source: KernelSource

    def load(self, graph: Graph) -> call_stub.NativeCall | None:
        """The kernel as a function of the graph's inputs; None where it is gone, or was made for another machine."""
        if not llvm_backend.available() or self.machine != kernel_cache.machine():
            return None
        entry = recalled(self.kernel, self.source.text)
        if entry is None:
            return None
        return call_stub.glue(replace(self.source, general=functools.partial(_general, graph)), entry, gives_numpy=True)


def _general(graph: Graph) -> KernelSource:
    from runtime.codegen.lower.lower_graph import lower  # with all forms: what is recalled mostly does without

    return lower(graph, assuming=False)


def find(graph: Graph) -> Recalled | None:
    """The entry of a graph, if there is one that can be read."""
    if os.environ.get("AUTOGRAPH_COMPILER") not in (None, "", llvm_backend.NAME):
        return None
    name = _name(graph) if kernel_cache.kernel_folder().is_dir() else None
    content = None if name is None else kernel_cache.read_kept(_file(name))
    if content is None:
        return None
    # A digest says that it is what was written; a class may have changed its place since.
    with contextlib.suppress(pickle.UnpicklingError, AttributeError, ImportError, TypeError, EOFError):
        found = pickle.loads(content)
        return found if isinstance(found, Recalled) else None
    return None


def keep(graph: Graph, source: KernelSource) -> None:
    """Writes the entry of a graph whose kernel has just been made, if that is on disk."""
    record = record_of(source)
    name = _name(graph)
    if record is None or record.path is None or record.compiler != llvm_backend.NAME or name is None or source.kept:
        return
    short = dataclasses.replace(source, reports=(), small=frozenset(), general=None)
    kernel_cache.write_kept(_file(name), pickle.dumps(Recalled(record.name, kernel_cache.machine(), short)))


def _file(name: str) -> Path:
    return kernel_cache.kernel_folder() / f"{name}.index"


# --- what names a graph ----------------------------------------------------------------------------------------------


def _name(graph: Graph) -> str | None:
    about = _this_build()
    if about is None:
        return None
    text = description(graph)
    if text is None:
        return None
    parts = [about, *[f"{name}={options.get(name)}" for name in _LOWERING], text]
    return "g_" + hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:24]


def description(graph: Graph) -> str | None:
    """All that a kernel depends on in a graph; None where something in it can't be told from others like it."""
    parts: list[str] = []
    try:
        _graph(graph, parts)
    except _Unknown:
        return None
    return "\0".join(parts)


@functools.cache
def _this_build() -> str | None:
    """The files of this project by size and time, as Python knows whether its own compiled files are current, and the
    versions that texts depend on. None where there are no files."""
    found: list[str] = []
    with contextlib.suppress(OSError):
        for file in kernel_cache.source_files(_ROOT):
            status = file.stat()
            found.append(f"{file.path} {status.st_size} {status.st_mtime_ns}")
    versions = (kernel_cache.FORMAT, np.__version__, sys.version_info[:3], sys.platform)
    return "\n".join([repr(versions), *found]) if found else None


class _Unknown(Exception):
    """Something in a graph that can't be told from others like it."""


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
    for key, value in node.attrs.items():
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
        return f"{value.array.dtype.str} {value.array.shape} {hashlib.sha256(value.array.tobytes()).hexdigest()}"
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
