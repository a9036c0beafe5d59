"""Random numbers by the code that kernels call, for eager draws.

A program that draws many numbers has the background thread compile it. Until then, and for few numbers, NumPy makes
them: the same ones (`ops.random.philox.native`).
"""

from __future__ import annotations

import functools
import threading
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.dtypes import DType
from runtime.engine import background, settings
from runtime.engine.executable import Executable
from runtime.graph.builder import Builder
from runtime.graph.ir import Graph
from runtime.ops.dispatch import apply
from runtime.ops.random import stateless
from runtime.ops.random.philox import native
from runtime.ops.table import OpDef
from runtime.types import TensorType

_ROWS: dict[str, tuple[OpDef, DType]] = {
    "words": (stateless.FULL_INTEGERS, dtypes.uint32),
    "normal": (stateless.NORMAL, dtypes.float32),
    "truncated_normal": (stateless.TRUNCATED, dtypes.float32),
}
_WORD = (1 << 64) - 1

_lock = threading.Lock()
_requested: set[str] = set()


def _request(kind: str) -> None:
    """Has the function for a kind of numbers compiled, unless nothing is to be."""
    with _lock:
        if kind in _requested or settings.jit_mode(None) is False:
            return
        _requested.add(kind)
    executable = Executable(_graph(*_ROWS[kind]))

    def step() -> bool:
        more = executable.compile_step()
        if not more and executable.is_native:
            native.functions[kind] = functools.partial(_drawn, executable)
        return more

    background.worker.submit(step)


native.request = _request


def _drawn(executable: Executable, key: int, counter: int, count: int) -> Any:
    state = np.array([counter & _WORD, counter >> 64 & _WORD, key & _WORD], np.uint64).view(np.int64)
    return executable([state, np.int64(count)])[0]


def _graph(row: OpDef, dtype: DType) -> Graph:
    """(state int64[3], count int64[]) -> `count` numbers from the state's block on."""
    builder = Builder(row.name)
    with builder:
        inputs = [builder.tensor(builder.add_input(TensorType(dtypes.int64, shape))) for shape in ((3,), ())]
        builder.graph.outputs = [builder.use(apply(row, inputs, {"shape": (None,), "dtype": dtype}))]
    return builder.graph
