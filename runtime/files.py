"""`ag.io.gfile`: files and folders of this machine, under TensorFlow's names and with its errors.

Paths are strings, bytes or objects like `pathlib.Path`; results are strings.
"""

from __future__ import annotations

import contextlib
import glob as glob_
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from runtime import errors

Path = Any


def _text(path: Path) -> str:
    return os.fsdecode(path)


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """Has errors of the system come as those of `ag.errors`."""
    try:
        yield
    except OSError as error:
        kinds: list[tuple[Any, type[errors.OpError]]] = [
            (FileNotFoundError, errors.NotFoundError),
            (FileExistsError, errors.AlreadyExistsError),
            (PermissionError, errors.PermissionDeniedError),
            ((IsADirectoryError, NotADirectoryError), errors.FailedPreconditionError),
        ]
        found = next((to for kind, to in kinds if isinstance(error, kind)), errors.UnknownError)
        raise found(f"{_text(path)}; {error.strerror or error}") from None


class GFile:
    """A file that is opened when it is first read or written.

    mode: "r", "w", "a", "r+", "w+" or "a+", with "b" for bytes instead of text (UTF-8). Raises InvalidArgumentError for
    another mode; reading and writing raise NotFoundError and the like, and PermissionDeniedError for what the mode
    doesn't allow.
    """

    def __init__(self, name: Path, mode: str = "r") -> None:
        plain = mode.replace("b", "")
        if plain not in ("r", "w", "a", "r+", "w+", "a+"):
            raise errors.InvalidArgumentError("mode is not 'r' or 'w' or 'a' or 'r+' or 'w+' or 'a+'")
        self._name, self._mode = _text(name), mode
        self._binary = "b" in mode
        self._file: Any = None
        self._reads, self._writes = plain[0] == "r" or "+" in plain, plain[0] != "r" or "+" in plain

    @property
    def name(self) -> str:
        return self._name

    @property
    def mode(self) -> str:
        return self._mode

    def _open(self) -> Any:
        if self._file is None:
            with translated(self._name):
                self._file = open(self._name, self._mode.replace("b", "") + "b")  # noqa: SIM115
        return self._file

    def _shown(self, content: bytes) -> Any:
        return content if self._binary else content.decode()

    def _for_reading(self) -> Any:
        if not self._reads:
            raise errors.PermissionDeniedError("File isn't open for reading")
        return self._open()

    def read(self, n: int = -1) -> Any:
        """The next `n` bytes or characters, by default all that follow."""
        file = self._for_reading()
        if self._binary or n < 0:
            return self._shown(file.read(n))
        found = b""
        while len(found.decode(errors="ignore")) < n and (more := file.read(1)):
            found += more
        return found.decode()

    def readline(self) -> Any:
        """The next line, with its line end; "" after the last."""
        return self._shown(self._for_reading().readline())

    def readlines(self) -> list[Any]:
        """All lines that follow."""
        return list(self)

    def write(self, file_content: Any) -> None:
        """Writes text, or bytes."""
        if not self._writes:
            raise errors.PermissionDeniedError("File isn't open for writing")
        self._open().write(file_content.encode() if isinstance(file_content, str) else bytes(file_content))

    def seek(self, offset: int, whence: int = 0) -> None:
        """Goes to a byte, counted from the beginning (0), from here (1) or from the end (2)."""
        self._open().seek(offset, whence)

    def tell(self) -> int:
        """The position of the next byte."""
        found: int = self._open().tell()
        return found

    def size(self) -> int:
        """How many bytes the file has."""
        return stat(self._name).length

    def seekable(self) -> bool:
        return True

    def flush(self) -> None:
        """Hands written data to the system."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Closes the file. A file opened for writing exists afterwards, even if nothing was written."""
        if self._file is None and self._writes and not self._reads:
            self._open()
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> GFile:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        line = self.readline()
        if not line:
            raise StopIteration
        return line


class FileStatistics(NamedTuple):
    """What is known of a file: length in bytes, when it changed (nanoseconds since 1970), whether it is a folder."""

    length: int
    mtime_nsec: int
    is_directory: bool


def exists(path: Path) -> bool:
    """Whether there is a file or folder."""
    return os.path.exists(path)


def isdir(path: Path) -> bool:
    """Whether there is a folder."""
    return os.path.isdir(path)


def stat(path: Path) -> FileStatistics:
    """Information about a file or folder. Raises NotFoundError if there is none."""
    with translated(path):
        found = os.stat(path)
    return FileStatistics(found.st_size, found.st_mtime_ns, os.path.isdir(path))


def join(path: Path, *paths: Path) -> Any:
    """Parts of a path with separators between them; a part that begins with a separator replaces those before it."""
    return os.path.join(path, *paths)


def listdir(path: Path) -> list[str]:
    """The names in a folder. Raises NotFoundError if there is none."""
    if not isdir(path):
        raise errors.NotFoundError(f"Could not find directory {_text(path)}")
    with translated(path):
        return [_text(name) for name in os.listdir(path)]


def glob(pattern: Any) -> list[str]:
    """The paths that match a pattern with `*`, `?` and `[...]`, or one of several, sorted."""
    patterns: Sequence[Any] = pattern if isinstance(pattern, (list, tuple)) else [pattern]
    return sorted({path for each in patterns for path in glob_.glob(_text(each))})


def mkdir(path: Path) -> None:
    """Creates a folder, if it doesn't exist. Raises NotFoundError if its parent doesn't exist."""
    with translated(path), contextlib.suppress(FileExistsError):
        os.mkdir(path)


def makedirs(path: Path) -> None:
    """Creates a folder and its parents, if they don't exist."""
    with translated(path):
        os.makedirs(path, exist_ok=True)


def _need_room(path: Path, overwrite: bool) -> None:
    if not overwrite and exists(path):
        raise errors.AlreadyExistsError(f"file already exists: {_text(path)}")


def copy(src: Path, dst: Path, overwrite: bool = False) -> None:
    """Copies a file. Raises AlreadyExistsError if `dst` exists and `overwrite` isn't set, NotFoundError if there is no
    file."""
    _need_room(dst, overwrite)
    with translated(src):
        shutil.copyfile(src, dst)


def rename(src: Path, dst: Path, overwrite: bool = False) -> None:
    """Renames a file or folder. Raises AlreadyExistsError if the new name exists and `overwrite` isn't set."""
    _need_room(dst, overwrite)
    with translated(src):
        os.replace(src, dst)


def remove(path: Path) -> None:
    """Removes a file. Raises NotFoundError if there is none, FailedPreconditionError for a folder."""
    if isdir(path):
        raise errors.FailedPreconditionError(f"{_text(path)}; Is a directory")
    with translated(path):
        os.remove(path)


def rmtree(path: Path) -> None:
    """Removes a folder with all that is in it. Raises NotFoundError if there is none."""
    if not exists(path):
        raise errors.NotFoundError(f"{_text(path)} not found")
    with translated(path):
        shutil.rmtree(path)


def walk(
    top: Path, topdown: bool = True, onerror: Callable[[Any], Any] | None = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """For a folder and each one in it: its path, the names of its folders, those of its files.

    topdown: a folder comes before its subfolders. onerror: called with errors, which are ignored otherwise.
    """
    yield from os.walk(_text(top), topdown, onerror)


def get_registered_schemes() -> list[str]:
    """The supported prefixes of paths: only local paths."""
    return [""]
