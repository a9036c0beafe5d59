"""Kernels from their text, by either compiler."""

from __future__ import annotations

import hashlib
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

from runtime.codegen.backends import llvm_backend
from runtime.codegen.backends.numba_backend import compiler as numba_compiler
from runtime.codegen.kernel.source import KernelSource

HEAD = "import math\n\nimport numpy as np\n\nimport runtime.codegen.kernel_library.functions as lib\n\n\n"
needed = pytest.mark.skipif(not llvm_backend.available(), reason="this machine or this Python has numba only")


def source(text: str, signature: str) -> tuple[str, KernelSource]:
    whole = HEAD + textwrap.dedent(text)
    name = "t_" + hashlib.sha256(f"{whole}{signature}".encode()).hexdigest()[:16]
    return name, KernelSource("test", whole, signature, (), ())


def ours(text: str, signature: str) -> Callable[..., Any]:
    return llvm_backend.compile(*source(text, signature))[0]


def numbas(text: str, signature: str) -> Callable[..., Any]:
    return numba_compiler.compile(*source(text, signature))[0]
