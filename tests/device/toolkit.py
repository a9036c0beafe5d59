"""What of NVIDIA's tools is installed: by Python packages (`nvidia-cuda-nvcc`, `nvidia-cuda-runtime`), by a toolkit,
or on the path."""

from __future__ import annotations

import functools
import shutil
import site
import sysconfig
from collections.abc import Iterator
from pathlib import Path


def _roots() -> Iterator[Path]:
    for folder in {sysconfig.get_path("purelib"), *site.getsitepackages()}:
        yield from sorted(Path(folder).glob("nvidia/cu*"), reverse=True)
        yield Path(folder) / "nvidia" / "cuda_nvcc"
        yield Path(folder) / "nvidia" / "cuda_runtime"
    yield from sorted(Path("/usr/local").glob("cuda*"), reverse=True)


@functools.cache
def ptxas() -> str | None:
    """NVIDIA's assembler."""
    found = (root / "bin" / "ptxas" for root in _roots())
    return next((str(path) for path in found if path.is_file()), shutil.which("ptxas"))


@functools.cache
def cuda_header() -> Path | None:
    """`cuda.h`."""
    found = (root / "include" / "cuda.h" for root in _roots())
    return next((path for path in found if path.is_file()), None)
