"""The kernel cache on disk: one readable module per kernel text, beside its machine code.

    <cache>/kernels/k_3f2a….py    the text, named by its hash with everything that compiled code depends on
    <cache>/kernels/k_3f2a….code  a line with the format and a digest, one with the compiler's name, machine code
    <cache>/kernels/g_7c01….index the kernel of a graph, see `backends/graph_cache.py`

Each file is written under a temporary name and renamed, so processes may share the folder and be killed at any moment.
A file that doesn't match its digest is removed and built again. Where nothing can be written (a read-only file system,
a full disk), or another user could have written the files (`private_files.py`), kernels stay in memory only, with one
warning. `eviction.py` keeps the folder within its size limit.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import linecache
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from runtime import errors, system
from runtime.codegen.cache import private_files
from runtime.tracebacks import warn

# Increase when generated code changes its meaning without changing its text, or the file format changes.
FORMAT = 3
KERNELS = "kernels"
_MAGIC = b"autograph kernel"
# Functions that kernels call stand in these packages, beside the compiler that uses numba.
_PACKAGES = ("backends/numba_backend", "kernel_library", "math")
_COMPILER = "backends.numba_backend.compiler"
_NAME = re.compile(rb"\w+")
# It begins with text that `re` can look for; with `^` it would try each line, which takes a millisecond.
_IMPORTED = re.compile(rb"\nfrom runtime\.codegen(?:\.([\w.]+))? import (\([^)]*\)|.*)")


def cache_dir() -> Path:
    """The cache folder: `AUTOGRAPH_CACHE_DIR`, or one in the platform's user cache folder."""
    chosen = os.environ.get("AUTOGRAPH_CACHE_DIR")
    if chosen:
        return Path(chosen).expanduser()  # no shell has expanded it
    return system.user_cache_folder() / "autograph-numba"


def kernel_folder() -> Path:
    """The folder of the files."""
    return cache_dir() / KERNELS


def digest(content: bytes) -> str:
    """SHA-256, in hexadecimal digits."""
    import hashlib  # loads OpenSSL, 2 ms of an import that needs no digests

    return hashlib.sha256(content).hexdigest()


@functools.cache
def platform_key() -> str:
    """What compiled code depends on besides its text: versions, the processor, and the functions that kernels call."""
    import numpy

    from runtime.llvm.layouts import known

    called = _called_by_kernels(Path(__file__).parents[1])
    contents = [called[name] for name in sorted(called)]
    for room in ("kernel_ir", "llvm"):
        contents += [_read(file.path) for file in source_files(Path(__file__).parents[2] / room)]
    parts = (
        FORMAT, *machine(), numpy.__version__, sys.version_info[:2], known(),
        digest(b"".join(contents)),
    )  # fmt: skip
    return repr(parts)


def _modules(package: bytes, names: bytes) -> list[bytes]:
    """The modules that `from package import names` may refer to: the package, or modules in it. (`a as b` and comments
    give further names; the caller drops those that aren't modules.)"""
    found = _NAME.findall(names)
    return [package, *(package + b"." + name for name in found)] if package else found


def source_files(folder: str | Path) -> Iterator[os.DirEntry[str]]:
    """The Python files in a folder and the folders in it, in a fixed order. (`Path.rglob` takes twice as long, and
    the first native call waits for it.)"""
    try:
        with os.scandir(folder) as files:
            entries = sorted(files, key=lambda each: each.name)
    except FileNotFoundError:
        return
    for entry in entries:
        if entry.is_dir() and entry.name != "__pycache__":
            yield from source_files(entry.path)
        elif entry.name.endswith(".py"):
            yield entry


def _called_by_kernels(codegen: Path) -> dict[str, bytes]:
    """The texts of modules that hold functions which kernels call, and of those that they import (tables of
    coefficients, say), by their names."""
    start = len(str(codegen)) + 1
    texts = {
        file.path[start:-3].replace(os.sep, "."): _read(file.path)
        for package in _PACKAGES
        for file in source_files(codegen / package)
    }
    left = [name for name in texts if name != _COMPILER]
    found: dict[str, bytes] = {}
    while left:
        name = left.pop()
        text = None if name in found else texts.get(name) or _text_of(codegen, name)
        if text is not None:
            found[name] = text
            left += [each.decode() for line in _IMPORTED.findall(text) for each in _modules(*line)]
    return found


def _text_of(codegen: Path, name: str) -> bytes | None:
    """The text of a module of this room; None where a name is none of a module."""
    path = os.path.join(codegen, *name.split(".")) + ".py"
    return _read(path) if os.path.isfile(path) else None


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def machine() -> tuple[str, ...]:
    """The version of llvmlite, the system and the kind of machine, the processor, and a hash of its features."""
    import llvmlite

    from runtime.llvm import processor

    features = digest(processor.flags().encode())
    return llvmlite.__version__, system.NAME, processor.triple(), processor.name(), features


def kernel_name(text: str, signature: str) -> str:
    """The name of a kernel's module: a hash of all that its machine code depends on."""
    key = "\0".join((text, signature, platform_key()))
    return "k_" + digest(key.encode())[:24]


def keep_text(name: str, text: str) -> bool:
    """Writes a kernel's text to its file; whether its machine code may be cached beside it."""
    try:
        _written(name, text)
    except OSError as error:
        in_memory_only(error)
        return False
    return True


def module_of(name: str, text: str) -> ModuleType:
    """The kernel's module: from its file, or from memory where that can't be written."""
    try:
        path = _written(name, text)
    except OSError:
        return module_in_memory(name, text)
    spec = importlib.util.spec_from_file_location(f"autograph_kernels.{name}", path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    # numba finds the module by its name when it loads compiled code.
    sys.modules[module.__name__] = module
    # Python's bytecode cache goes by time stamps; compile the text itself.
    exec(compile(text, str(path), "exec"), module.__dict__)
    return module


def module_in_memory(name: str, text: str) -> ModuleType:
    """A kernel's module that has no file."""
    filename = f"<kernel {name}>"
    module = ModuleType(f"autograph_kernels.{name}")
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    exec(compile(text, filename, "exec"), module.__dict__)
    return module


def _written(name: str, text: str) -> Path:
    path, content = text_file(name), text.encode()
    with private_files.folder(cache_dir(), KERNELS, make=True) as folder:
        with contextlib.suppress(FileNotFoundError):
            if folder.read(path.name) == content:
                return path
        folder.write(path.name, content)  # absent or damaged
    return path


def text_file(name: str) -> Path:
    """The readable file of a kernel."""
    return kernel_folder() / f"{name}.py"


def code_file(name: str) -> Path:
    """The file with a kernel's machine code."""
    return kernel_folder() / f"{name}.code"


def write_atomically(path: Path, content: bytes) -> None:
    """Replaces a file of the folder in one step. Raises OSError, and leaves nothing behind then."""
    with private_files.folder(cache_dir(), KERNELS, make=True) as folder:
        folder.write(path.name, content)


# --- machine code ----------------------------------------------------------------------------------------------------


def _header(content: bytes) -> bytes:
    return b"%s %d %s\n" % (_MAGIC, FORMAT, digest(content).encode())


def read_code(name: str) -> bytes | None:
    """A kernel's machine code, None if it isn't cached. A file that doesn't match its digest is removed."""
    return read_kept(code_file(name))


def read_kept(path: Path) -> bytes | None:
    """What `write_kept` wrote, None if there is no such file. A file that doesn't match its digest is removed."""
    try:
        with private_files.folder(cache_dir(), KERNELS) as folder:
            whole = folder.read(path.name, used=True)  # marks it as recently used
            head, _, content = whole.partition(b"\n")
            if head + b"\n" != _header(content):
                folder.remove(path.name)
                return None
    except private_files.Untrusted as error:
        in_memory_only(error)
        return None
    except OSError:
        return None
    return content


def write_code(name: str, content: bytes) -> bool:
    """Caches a kernel's machine code; False (and one warning per process) if it can't be written."""
    return write_kept(code_file(name), content)


def write_kept(path: Path, content: bytes) -> bool:
    """Writes a file with its digest; False (and one warning per process) if it can't be written."""
    try:
        write_atomically(path, _header(content) + content)
    except OSError as error:
        in_memory_only(error)
        return False
    return True


def discard_code(name: str) -> None:
    """Removes a kernel's machine code."""
    # Another process may have removed it, or the folder may be read-only by now: the kernel is compiled again anyway.
    with contextlib.suppress(OSError), private_files.folder(cache_dir(), KERNELS) as folder:
        folder.remove(code_file(name).name)


def why_unusable() -> str | None:
    """Why the folder can't be used: it isn't a folder, may not be read or written, or another user may write to it;
    None if it can be used or created."""
    folder = kernel_folder()
    for place in (folder, *folder.parents):
        if place.is_dir():
            missing = [word for word, mode in (("read", os.R_OK), ("written", os.W_OK)) if not os.access(place, mode)]
            if missing:
                return f"{place} can't be {' or '.join(missing)}"
            break
        if place.exists():
            return f"{place} is not a folder"
    try:
        with private_files.folder(cache_dir(), KERNELS):
            return None
    except FileNotFoundError:
        return None
    except private_files.Untrusted as error:
        return f"{error.path}: {error.why}"
    except OSError as error:
        return f"{error.filename}: {error.strerror}"


_reasons: list[str] = []  # why kernels stay in memory only; the first is warned about


def memory_reason() -> str | None:
    """Why kernels of this process weren't cached on disk; None if they were."""
    return _reasons[0] if _reasons else None


def in_memory_only(error: OSError) -> None:
    """Warns once that the folder can't be written or trusted."""
    if isinstance(error, private_files.Untrusted):
        reason = f"{error.path}: {error.strerror}"
        fix = error.fix
    else:
        reason = f"{cache_dir()}: {error.strerror or error}"
        fix = "AUTOGRAPH_CACHE_DIR names another folder"
    _reasons.append(reason)
    if len(_reasons) == 1:
        warn(
            f"compiled kernels are kept in memory only, so the next process compiles them again ({reason}); {fix}",
            errors.CacheWarning,
        )
