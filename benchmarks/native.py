"""The floor: a workload written in C, compiled with `cc -O3 -march=native` and called through ctypes."""

import atexit
import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.build import Arguments
from benchmarks.harness import Build, Call

FLAGS = ("-O3", "-march=native")
PRELUDE = "#include <math.h>\n#include <stdint.h>\n#include <stdlib.h>\n#include <string.h>\n"
_folder: list[Path] = []


def c(text: str, arguments: Arguments, out: Callable[..., Any]) -> Build:
    """Calls `run`, which `text` defines: `run(out, *arguments)`, arrays by pointers and scalars by value.

    `out(*arguments)` makes the array for the result, anew for each call as the other libraries do; a result of rank 0
    is returned by `run` instead, whose first argument is then left out.
    """

    def build(quick: bool) -> Call:
        given = [np.asarray(value) for value in arguments(quick)]
        function = compile_c(text)
        passed = [_passed(value) for value in given]
        shape = out(*arguments(quick))
        if shape.ndim == 0:
            function.restype = np.ctypeslib.as_ctypes_type(shape.dtype)
            return lambda: (function(*passed), given)[0]  # the closure keeps the arrays alive
        function.restype = None
        function.argtypes = [ctypes.c_void_p, *[type(value) for value in passed]]

        def call() -> np.ndarray:
            result: np.ndarray = out(*given)
            function(result.ctypes.data, *passed)
            return result

        return call

    return build


def compile_c(text: str) -> Any:
    """The function `run` of a C text."""
    compiler = os.environ.get("CC") or shutil.which("cc")
    if compiler is None:
        raise peers.Absent("no C compiler (cc)")
    if not _folder:
        _folder.append(Path(tempfile.mkdtemp(prefix="autograph-benchmarks-c-")))
        atexit.register(shutil.rmtree, _folder[0], ignore_errors=True)
    stem = _folder[0] / hashlib.sha256(text.encode()).hexdigest()[:16]
    library = stem.with_suffix(".so")
    if not library.exists():
        source = stem.with_suffix(".c")
        source.write_text(PRELUDE + text, encoding="utf-8")
        command = [compiler, *FLAGS, "-shared", "-fPIC", "-o", str(library), str(source), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
    return ctypes.CDLL(str(library)).run


def _passed(value: np.ndarray) -> Any:
    if value.ndim == 0:
        return np.ctypeslib.as_ctypes_type(value.dtype)(value.item())
    return ctypes.c_void_p(value.ctypes.data)
