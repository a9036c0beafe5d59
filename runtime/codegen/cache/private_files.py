"""Files with code, in a folder that no other user can write to.

Machine code and pickles run with the rights of whoever loads them. So a folder or file is used only if it belongs to
this user (or to root, who may do anything anyway) and its permission bits let no one else write to it. So that nobody
can replace it, each folder above it must be safe too: owned by this user or the system, and writable by others only
with the sticky bit, which keeps them from renaming files of other owners, as in `/tmp`.

The folders above are checked by name: if all of them are safe, nobody else can change what the names refer to. The
folder itself and its files are opened first, without following a link, and the open descriptor is checked.

Windows has no such bits; there the folder of the user's profile is private by its access list.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from runtime.dataclass import dataclass

_HAS_OWNERS = hasattr(os, "geteuid")
_MOST_LINKS = 40  # as many as Linux follows in one path
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
# Opening a named pipe instead of a file must not block.
_READ = os.O_RDONLY | _NO_FOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW | getattr(os, "O_BINARY", 0)


class Untrusted(OSError):
    """A file or folder that another user may have written. `strerror` says why, `fix` what can be done."""

    def __init__(self, path: str | Path, why: str, fix: str) -> None:
        super().__init__(errno.EPERM, f"{why}, so machine code from there isn't run", str(path))
        self.path, self.why, self.fix = Path(path), why, fix


_ANOTHER = "set AUTOGRAPH_CACHE_DIR to a folder of your own"


@dataclass(frozen=True)
class Folder:
    """An open folder. handle: its descriptor; None where names can't be looked up in one (Windows)."""

    path: Path
    handle: int | None

    def at(self, name: str) -> str:
        """A file's name as functions with `dir_fd=handle` take it."""
        return str(self.path / name) if self.handle is None else name

    def read(self, name: str, used: bool = False) -> bytes:
        """A file's content. used: sets its modification time to now. Raises OSError, Untrusted among others."""
        with self._opened(name) as handle:
            with open(handle, "rb", closefd=False) as file:
                content = file.read()
            if used:
                with contextlib.suppress(OSError):  # a read-only file system
                    os.utime(handle if os.utime in os.supports_fd else self.at(name))
        return content

    def write(self, name: str, content: bytes) -> None:
        """Replaces a file atomically. Raises OSError, and leaves nothing behind then; Untrusted if the file that it
        would replace isn't trusted."""
        with contextlib.suppress(FileNotFoundError), self._opened(name):
            pass
        temporary = self.at(f".{name}.{os.urandom(8).hex()}")
        handle = os.open(temporary, _CREATE, 0o600, dir_fd=self.handle)
        try:
            with open(handle, "wb") as file:
                if hasattr(os, "fchmod"):
                    os.fchmod(file.fileno(), 0o600)  # whatever the umask is
                file.write(content)
            self._put_in_place(temporary, name)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=self.handle)
            raise

    def _put_in_place(self, temporary: str, name: str) -> None:
        try:
            os.replace(temporary, self.at(name), src_dir_fd=self.handle, dst_dir_fd=self.handle)
        except PermissionError:
            # Windows: somebody is reading the file that it would replace. Names tell what files hold, so that one will
            # do; if it is damaged, its reader removes it.
            if self.handle is not None or not os.path.isfile(self.at(name)):
                raise
            os.unlink(temporary)

    def status(self, name: str) -> os.stat_result:
        """The status of a file, or of the link itself. Raises OSError."""
        return os.stat(self.at(name), dir_fd=self.handle, follow_symlinks=False)

    def remove(self, name: str) -> None:
        """Removes a file. Raises OSError."""
        os.unlink(self.at(name), dir_fd=self.handle)

    @contextlib.contextmanager
    def _opened(self, name: str) -> Iterator[int]:
        path = self.path / name
        try:
            handle = os.open(self.at(name), _READ, dir_fd=self.handle)
        except OSError as error:
            raise (_link(path) if error.errno in (errno.ELOOP, errno.EMLINK) else error) from None
        try:
            _check_ours(path, os.fstat(handle), stat.S_ISREG, "a regular file")
            yield handle
        finally:
            os.close(handle)


@contextlib.contextmanager
def folder(base: Path, name: str, make: bool = False) -> Iterator[Folder]:
    """The folder `name` in `base`, both of which must be private. make: makes what is missing, for this user only.
    Raises OSError: FileNotFoundError if there is no such folder, Untrusted if another user may write to it."""
    if not _HAS_OWNERS:
        path = base / name
        if make:
            path.mkdir(parents=True, exist_ok=True)
        elif not path.is_dir():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        yield Folder(path, None)
        return
    # Links that lead to the folder are the user's own choice; one in it is not.
    real = _resolved(base, make)
    outer = _open_folder(real, None)
    try:
        if make:
            _make(name, outer)
        inner = _open_folder(real / name, outer)
    finally:
        os.close(outer)
    try:
        yield Folder(real / name, inner)
    finally:
        os.close(inner)


def _open_folder(path: Path, within: int | None) -> int:
    named = str(path) if within is None else path.name
    try:
        handle = os.open(named, os.O_RDONLY | os.O_DIRECTORY | _NO_FOLLOW, dir_fd=within)
    except OSError as error:
        # Linux reports ENOTDIR for a link where a folder is required.
        if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENOTDIR) and path.is_symlink():
            raise _link(path) from None
        raise OSError(error.errno, error.strerror, str(path)) from None
    try:
        _check_ours(path, os.fstat(handle), stat.S_ISDIR, "a folder")
    except BaseException:
        os.close(handle)
        raise
    return handle


def _make(path: str | Path, within: int | None = None) -> None:
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700, dir_fd=within)
        os.chmod(path, 0o700, dir_fd=within)  # whatever the umask takes away


# --- who may write ---------------------------------------------------------------------------------------------------


def _check_ours(path: Path, status: os.stat_result, is_kind: Callable[[int], bool], kind: str) -> None:
    """Raises Untrusted unless only this user may write to what `status` describes."""
    if not is_kind(status.st_mode):
        raise Untrusted(path, f"it is not {kind}", f"remove it, or {_ANOTHER}")
    if not _HAS_OWNERS:
        return
    if status.st_uid not in (os.geteuid(), 0):
        raise _foreign(path, status)
    _check_writers(path, status, status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _resolved(path: Path, make: bool) -> Path:
    """The path without links. Each folder above it, and each link on the way, must be safe from other users. make:
    makes the folders that are missing, the last one too."""
    current, left = _parts(os.path.abspath(path))
    status = os.stat(current)
    system = {os.geteuid(), 0, status.st_uid}  # in a container `/` may belong to what isn't root's number
    links = 0
    while left:
        _check_above(current, status, system)
        part = left.pop()
        if part == "..":  # out of a link
            current = os.path.dirname(current)
            status = os.lstat(current)
            continue
        following = os.path.join(current, part)
        try:
            found = os.lstat(following)
        except FileNotFoundError:
            if not make:
                raise
            _make(following)
            found = os.lstat(following)
        if not stat.S_ISLNK(found.st_mode):
            current, status = following, found
            continue
        if found.st_uid not in system:  # in a folder with the sticky bit
            raise _foreign(following, found)
        links += 1
        if links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        target = os.readlink(following)
        start, more = _parts(target)
        left += more
        if start:
            current, status = start, os.lstat(start)
    return Path(current)


def _parts(path: str) -> tuple[str, list[str]]:
    """Where a path starts, empty for a relative one, and the names that follow, the last one first."""
    start, rest = ("/", path[1:]) if path.startswith("/") else ("", path)
    return start, [name for name in reversed(rest.split("/")) if name not in ("", ".")]


def _check_above(path: str, status: os.stat_result, system: set[int]) -> None:
    """Raises Untrusted if another user may rename or replace the entries of a folder."""
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
    if status.st_uid not in system:
        raise _foreign(path, status)
    if status.st_mode & stat.S_ISVTX:
        return
    writers = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if writers == stat.S_IWGRP and _is_private_group(status.st_gid):
        return
    _check_writers(path, status, writers)


def _is_private_group(group: int) -> bool:
    """Whether it is the user private group that many systems create, with a umask that lets groups write."""
    import grp
    import pwd

    try:
        user, found = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except (KeyError, OSError):
        return False
    return user.pw_gid == group and found.gr_name == user.pw_name and set(found.gr_mem) <= {user.pw_name}


def _check_writers(path: str | Path, status: os.stat_result, writers: int) -> None:
    """Raises Untrusted if there are any writers."""
    if not writers:
        return
    who = {stat.S_IWGRP: "its group", stat.S_IWOTH: "any user"}.get(writers, "any user")
    mode = stat.S_IMODE(status.st_mode)
    mend = f"chmod go-w {path}, or {_ANOTHER}" if status.st_uid == os.geteuid() else _ANOTHER
    raise Untrusted(path, f"{who} can write to it (mode {mode:04o})", mend)


def _foreign(path: str | Path, status: os.stat_result) -> Untrusted:
    why = f"it belongs to {_user(status.st_uid)}, while this process runs as {_user(os.geteuid())}"
    return Untrusted(path, why, _ANOTHER)


def _link(path: Path) -> Untrusted:
    return Untrusted(path, "it is a symbolic link", f"remove it, or {_ANOTHER}")


def _user(number: int) -> str:
    import pwd

    try:
        return f"user {pwd.getpwuid(number).pw_name}"
    except (KeyError, OSError):
        return f"user {number}"
