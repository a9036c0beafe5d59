"""Files that are there whole or not at all, and JSON documents that say what they are.

A file is written beside its place under a name of its own, brought to the disk (`fsync`), and renamed; so is the
folder's entry. Whatever ends the process, and whenever, the place holds the old content or the new one.

A process that is killed leaves its unfinished file behind. The next that writes to the folder removes it, if nobody
holds it and it wasn't changed for an hour: on some network file systems, locks of other machines aren't seen.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import stat
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows, which doesn't let files be removed that somebody holds
    fcntl = None  # type: ignore[assignment]

from runtime.dtypes import article
from runtime.errors import DataLossError, NotFoundError, UnimplementedError

# What begins the name of a file that is being written. One that stays behind is of no use to anybody.
UNFINISHED = ".writing-"
_ABANDONED = 3600.0  # seconds
# No document of ours comes near; Python's parser needs several times as much memory.
_MOST_BYTES = 1 << 30
_DEPTH = "it is nested too deeply"


def write_atomically(path: Path, write: Callable[[str], None]) -> None:
    """Has `write` make a file, given its name, and puts it in place of `path`. Raises OSError."""
    remove_abandoned(path.parent)
    beside = path.with_name(f"{UNFINISHED}{secrets.token_hex(6)}-{path.name}"[:200])
    try:
        with open(beside, "xb"):
            mode = beside.stat().st_mode  # what the user's umask leaves
        with contextlib.closing(Hold(beside)):
            write(str(beside))
            if beside.stat().st_mode != mode:
                beside.chmod(stat.S_IMODE(mode))
            _sync(beside)
            os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise
    sync_folder(path.parent)


class Hold:
    """Says that a file is being written, until it is closed or the process ends."""

    def __init__(self, path: str | Path) -> None:
        self._file = None if fcntl is None else open(path, "rb")  # noqa: SIM115
        if self._file is not None:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def remove_abandoned(folder: Path) -> None:
    """Removes the unfinished files of processes that were killed. What can't be removed stays."""
    with contextlib.suppress(OSError):
        for each in folder.glob(f"{UNFINISHED}*"):
            with contextlib.suppress(OSError):
                if time.time() - each.lstat().st_mtime > _ABANDONED and each.is_file() and not _is_held(each):
                    each.unlink()


def _is_held(path: Path) -> bool:
    """Whether a process is writing a file."""
    if fcntl is None:
        return False
    with open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Brings a folder's entries to the disk. Windows can't open folders, and needs none of it."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _checksum(document: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(document, sort_keys=True, separators=(",", ":")).encode())


def write_document(path: Path, kind: str, version: int, content: dict[str, Any], compact: bool = False) -> None:
    """Writes a JSON document: its kind and version, a checksum, and the content; compact: on one line. Raises
    OSError."""
    document = {"format": kind, "version": version, **content}
    layout: Any = {"separators": (",", ":")} if compact else {"indent": 1}
    text = json.dumps({"format": kind, "version": version, "crc32": _checksum(document), **content}, **layout)

    def write(name: str) -> None:
        Path(name).write_text(text + "\n", encoding="utf-8")

    write_atomically(path, write)


def read_document(path: Path, kind: str, version: int) -> dict[str, Any]:
    """A document's content, of this version or an earlier one.

    Raises NotFoundError if there is no file, DataLossError if it isn't such a document or is damaged,
    UnimplementedError if it is of a later version.
    """
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise DataLossError(f"{path} is not {article(kind)}: it is not a regular file")  # a device might never end
        if found.st_size > _MOST_BYTES:
            raise DataLossError(f"{path} is not {article(kind)}: it is larger than 1 GiB")
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        raise NotFoundError(f"There is no file {path}") from None
    except UnicodeDecodeError as error:
        raise DataLossError(f"{path} is not {article(kind)}: {error}") from None
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = _DEPTH if isinstance(error, RecursionError) else str(error)
        raise DataLossError(f"{path} is not {article(kind)}, or it is damaged: {reason}") from None
    if not isinstance(document, dict) or document.get("format") != kind:
        raise DataLossError(f"{path} is not {article(kind)}")
    own = document.get("version")
    if type(own) is not int or own < 1:
        raise DataLossError(f"{path} is damaged: it has no version")
    if own > version:
        raise UnimplementedError(
            f"{path} is {article(kind)} of version {own}, written by a newer autograph; this one reads versions up to "
            f"{version}. Update autograph, or write the file with this version of it."
        )
    said = document.pop("crc32", None)
    if said != _checksum(document):
        raise DataLossError(f"{path} is damaged: its content doesn't match its checksum")
    return document
