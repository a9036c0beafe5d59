"""Kernel files on disk: one readable module per kernel text, beside numba's compiled code for it.

    <cache>/kernels/k_3f2a….py               the text, named by its hash with everything that compiled code depends on
    <cache>/kernels/__pycache__/k_3f2a….nbi  numba's index and code, with a digest of ours (.sum)

Writing is atomic (a temporary file is renamed), so processes may share the folder. Whatever is unreadable or doesn't
match its digest is removed and built again; without a writable folder kernels live in memory only.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import linecache
import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

# Raise when generated code changes its meaning without changing its text.
FORMAT = 1


def cache_dir() -> Path:
    """The folder for kernels: `AUTOGRAPH_CACHE_DIR`, or the platform's user cache folder."""
    chosen = os.environ.get("AUTOGRAPH_CACHE_DIR")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "autograph-numba"


@functools.cache
def _platform_key() -> str:
    import llvmlite.binding
    import numba
    import numpy

    library = Path(__file__).with_name("library.py").read_bytes()
    parts = (
        FORMAT, numba.__version__, numpy.__version__, sys.version_info[:2], llvmlite.binding.get_host_cpu_name(),
        hashlib.sha256(library).hexdigest(),
    )  # fmt: skip
    return repr(parts)


def kernel_name(text: str, signature: str) -> str:
    """The name of a kernel's module: a hash of all that its compiled code depends on."""
    key = "\0".join((text, signature, _platform_key()))
    return "k_" + hashlib.sha256(key.encode()).hexdigest()[:24]


def open_module(name: str, text: str) -> tuple[ModuleType, bool]:
    """The kernel's module, from its file, and whether its compiled code may be kept beside it."""
    try:
        path = _written(name, text)
    except OSError:
        return _module_in_memory(name, text), False
    spec = importlib.util.spec_from_file_location(f"autograph_kernels.{name}", path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    # numba finds the module by its name when it loads compiled code.
    sys.modules[module.__name__] = module
    # Python's own bytecode cache goes by time stamps; compile what stands in the file.
    exec(compile(text, str(path), "exec"), module.__dict__)
    return module, True


def _module_in_memory(name: str, text: str) -> ModuleType:
    filename = f"<kernel {name}>"
    module = ModuleType(f"autograph_kernels.{name}")
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    exec(compile(text, filename, "exec"), module.__dict__)
    return module


def _written(name: str, text: str) -> Path:
    folder = cache_dir() / "kernels"
    path = folder / f"{name}.py"
    try:
        if path.read_text(encoding="utf-8") == text:
            return path
    except (OSError, UnicodeDecodeError):
        pass  # absent or damaged: written below
    write_atomically(path, text.encode())
    return path


def write_atomically(path: Path, content: bytes) -> None:
    """Replaces a file's content in one step. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


# --- digests of numba's files ----------------------------------------------------------------------------------------


def _compiled_files(name: str) -> list[Path]:
    folder = cache_dir() / "kernels" / "__pycache__"
    return sorted(p for p in folder.glob(f"{name}.*") if p.suffix in (".nbi", ".nbc"))


def _digest(paths: Iterable[Path]) -> str:
    total = hashlib.sha256()
    for path in paths:
        total.update(path.name.encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


def check_compiled(name: str) -> None:
    """Removes compiled code that isn't what was written: numba would run it unseen."""
    files = _compiled_files(name)
    if not files:
        return
    try:
        if _sum_file(name).read_text() == _digest(files):
            return
    except (OSError, UnicodeDecodeError):
        pass  # no digest: a write was interrupted, so the files aren't trusted
    discard_compiled(name)


def seal_compiled(name: str) -> None:
    """Notes the digest of freshly written compiled code."""
    try:
        write_atomically(_sum_file(name), _digest(_compiled_files(name)).encode())
    except OSError:
        discard_compiled(name)


def discard_compiled(name: str) -> None:
    for path in _compiled_files(name):
        # Another process may be faster, or the folder read-only by now: compiling anew doesn't need the file gone.
        with contextlib.suppress(OSError):
            path.unlink()


def _sum_file(name: str) -> Path:
    return cache_dir() / "kernels" / "__pycache__" / f"{name}.sum"
