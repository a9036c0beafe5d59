"""Whose files the kernel cache runs: only those that nobody else can have written.

Folders and files are given to another user where the tests run as root; elsewhere what the system says of their owner
is changed.
"""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from autograph.cli import main
from runtime import errors
from runtime.codegen.backends import graph_cache
from runtime.codegen.backends.driver import compile_kernel, record_of
from runtime.codegen.cache import eviction, kernel_cache, private_files
from runtime.codegen.kernel.source import KernelSource
from runtime.codegen.native_runtime import jit_module
from runtime.engine import background

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows has no such owners and permission bits")

ROOT = Path(__file__).resolve().parents[2]
STRANGER = 54321  # no user here
IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of this process that isn't there yet."""
    assert background.worker.wait(600)  # for what the tests before have left it: it would go into this folder
    monkeypatch.setenv("AUTOGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(kernel_cache, "_reasons", [])
    return tmp_path / "cache"


_numbers = iter(range(10**6))


def kernel() -> tuple[KernelSource, int]:
    """A kernel that no other test has, and what it adds to its argument."""
    number = next(_numbers)
    return KernelSource(
        "test", f"def kernel(x):\n    return x - {os.getpid()} + {number}\n", "(int64,)", (), ()
    ), number


def stored(base: Path) -> tuple[str, KernelSource]:
    """A kernel's name and source, whose files are on disk."""
    source, number = kernel()
    assert compile_kernel(source)(os.getpid()) == number
    name = kernel_cache.kernel_name(source.text, source.signature)
    assert kernel_cache.code_file(name).exists()
    return name, source


def given_away(path: Path, monkeypatch: pytest.MonkeyPatch, to: int = STRANGER) -> None:
    """Gives a file, folder or link to another user."""
    if IS_ROOT:
        os.chown(path, to, to, follow_symlinks=False)
        return
    given = os.lstat(path)

    def owned(look: Callable[..., os.stat_result]) -> Callable[..., os.stat_result]:
        def changed(*arguments: object, **options: object) -> os.stat_result:
            found = look(*arguments, **options)
            if (found.st_ino, found.st_dev) != (given.st_ino, given.st_dev):
                return found
            return os.stat_result((*found[:4], to, *found[5:]))

        return changed

    for name in ("stat", "lstat", "fstat"):
        monkeypatch.setattr(os, name, owned(getattr(os, name)))


@contextlib.contextmanager
def one_warning(pattern: str) -> Iterator[None]:
    """Kernels stay in memory, and that is said once, with a cause and a fix."""
    with pytest.warns(errors.CacheWarning, match=f"kept in memory only.*{pattern}.*AUTOGRAPH_CACHE_DIR") as caught:
        yield
    assert len(caught) == 1


def files(base: Path) -> dict[str, tuple[int, int]]:
    """What lies in the folder, with times of change and sizes."""
    return {
        str(path.relative_to(base)): (path.lstat().st_mtime_ns, path.lstat().st_size)
        for path in base.rglob("*")
        if not path.is_dir()
    }


# --- modes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o022, 0o077, 0o277, 0o777])
def test_folders_and_files_are_for_this_user_only(tmp_path: Path, base: Path, umask: int, monkeypatch) -> None:
    monkeypatch.setenv("AUTOGRAPH_CACHE_DIR", str(base / "deep" / "er"))
    before = os.umask(umask)
    try:
        stored(base)
        jit_module.machine_code("resident", "define i64 @trust_of_files() {\n  ret i64 1\n}\n")
    finally:
        os.umask(before)
    found = sorted(base.rglob("*"))
    assert {path.suffix for path in found} == {"", ".py", ".code"}
    for path in [base, *found]:
        wanted = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == wanted, path


# --- what isn't read -------------------------------------------------------------------------------------------------


def others_may_write(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.chmod(0o777 if path.is_dir() else 0o666)


def group_may_write(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.chmod(0o770 if path.is_dir() else 0o660)


def shared_like_tmp(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.chmod(0o1777)


def is_a_link(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = kernel_cache.cache_dir().parent / f"elsewhere_{path.name}"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


UNSAFE = [
    ("folder", given_away, "belongs to user 54321, while this process runs as user"),
    ("folder", others_may_write, "any user can write to it .mode 0777.*chmod go-w"),
    ("folder", group_may_write, "its group can write to it .mode 0770.*chmod go-w"),
    ("folder", shared_like_tmp, "any user can write to it .mode 1777.*chmod go-w"),
    ("folder", is_a_link, "is a symbolic link"),
    ("base", given_away, "belongs to user 54321"),
    ("base", others_may_write, "any user can write to it"),
    ("base", group_may_write, "its group can write to it"),
    ("parent", given_away, "belongs to user 54321"),
    ("parent", others_may_write, "any user can write to it"),
    ("file", given_away, "belongs to user 54321"),
    ("file", others_may_write, "any user can write to it .mode 0666.*chmod go-w"),
    ("file", group_may_write, "its group can write to it"),
    ("file", is_a_link, "is a symbolic link"),
]


@pytest.fixture(params=UNSAFE, ids=lambda each: f"{each[0]}-{each[1].__name__}")
def unsafe(request, base: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, KernelSource, str, Path]:
    """A kernel on disk that may not be read, why, and what is unsafe."""
    which, spoil, why = request.param
    name, source = stored(base)
    path = {"folder": base / "kernels", "base": base, "parent": base.parent, "file": kernel_cache.code_file(name)}[
        which
    ]
    spoil(path, monkeypatch)
    return name, source, why, path


def test_what_others_may_write_is_not_read(unsafe, monkeypatch: pytest.MonkeyPatch) -> None:
    name, source, why, path = unsafe
    with one_warning(f"{path}: .*{why}"):
        assert kernel_cache.read_code(name) is None
        assert kernel_cache.read_code(name) is None
    reason = kernel_cache.why_unusable()
    assert path.suffix == ".code" or (reason is not None and str(path) in reason)


def test_kernels_stay_in_memory_and_files_as_they_are(unsafe, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, source, why, path = unsafe
    if path.suffix == ".code":
        monkeypatch.setattr("runtime.codegen.backends.driver._entries", {})  # as in another process
        wanted = [(source, int(source.text.rsplit("+ ")[1]))]
    else:
        wanted = [kernel(), kernel()]
    before = files(base)
    with one_warning(why):
        for each, number in wanted:
            assert compile_kernel(each)(os.getpid()) == number
            record = record_of(each)
            assert record is not None and not record.loaded and "machine code from there isn't run" in str(record.note)
    assert files(base) == before


def test_the_command_leaves_what_is_not_ours_alone(unsafe, base: Path, capsys: pytest.CaptureFixture) -> None:
    name, source, why, path = unsafe
    if path.suffix == ".code":
        return  # it lies in a folder of ours
    before = files(base)
    assert main(["cache", "clear"]) == 1
    assert f"autograph: cannot remove {path}: " in capsys.readouterr().err
    assert eviction.make_room("k_0") == 0
    assert files(base) == before
    assert main(["cache", "info"]) == 0
    assert f"({path}: " in capsys.readouterr().out


@pytest.mark.parametrize("compiler", ["llvm", "numba"])
def test_other_files_with_code_are_held_to_the_same(base: Path, monkeypatch: pytest.MonkeyPatch, compiler: str) -> None:
    """Entries of graphs (pickles), code that stays in the process, and numba's form of a kernel (a pickle)."""
    monkeypatch.setenv("AUTOGRAPH_COMPILER", compiler)
    name, source = stored(base)
    text = "define i64 @trust_of_other_files() {\n  ret i64 1\n}\n"
    code = jit_module.machine_code("resident", text)
    (kept,) = (base / "kernels").glob("resident_*.code")
    assert kernel_cache.write_kept(graph_cache._file("g_1"), b"an entry")
    assert kernel_cache.read_kept(graph_cache._file("g_1")) == b"an entry"
    kept.write_bytes(b"somebody else's")
    os.chmod(base / "kernels", 0o777)
    monkeypatch.setattr("runtime.codegen.backends.driver._entries", {})
    with one_warning("any user can write to it"):
        assert kernel_cache.read_kept(graph_cache._file("g_1")) is None
        assert jit_module.machine_code("resident", text) == code
        compile_kernel(source)
    record = record_of(source)
    assert record is not None and not record.loaded
    assert kept.read_bytes() == b"somebody else's"


def test_a_named_pipe_does_not_keep_the_reader_waiting(base: Path) -> None:
    name, _ = stored(base)
    kernel_cache.code_file(name).unlink()
    os.mkfifo(kernel_cache.code_file(name), 0o600)
    with one_warning("is not a regular file"):
        assert kernel_cache.read_code(name) is None


# --- what is read ----------------------------------------------------------------------------------------------------


def test_a_folder_in_a_shared_one_whose_entries_only_their_owners_rename(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in /tmp."""
    name, _ = stored(base)
    base.parent.chmod(0o1777)
    assert kernel_cache.read_code(name) is not None
    base.parent.chmod(0o777)
    with one_warning(f"{base.parent}: any user can write to it"):
        assert kernel_cache.read_code(name) is None


def test_a_link_of_the_users_to_the_folder(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, _ = stored(base)
    (tmp_path / "links").mkdir()
    for number, target in enumerate((base, Path("..") / "cache", Path("..") / "links" / "0")):
        link = tmp_path / "links" / str(number)
        link.symlink_to(target)
        monkeypatch.setenv("AUTOGRAPH_CACHE_DIR", str(link))
        assert kernel_cache.read_code(name) is not None
    given_away(link, monkeypatch)
    with one_warning(f"{link}: it belongs to user 54321"):
        assert kernel_cache.read_code(name) is None


def test_links_that_lead_nowhere(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    monkeypatch.setenv("AUTOGRAPH_CACHE_DIR", str(tmp_path / "a"))
    source, number = kernel()
    with one_warning(str(tmp_path / "a")):
        assert compile_kernel(source)(os.getpid()) == number


def test_folders_of_a_group_with_one_member(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the umask is 002 everybody has a group of their own."""
    name, _ = stored(base)
    base.parent.chmod(0o775)
    monkeypatch.setattr(private_files, "_is_private_group", lambda group: group == base.parent.stat().st_gid)
    assert kernel_cache.read_code(name) is not None
    monkeypatch.setattr(private_files, "_is_private_group", lambda group: False)
    with one_warning(f"{base.parent}: its group can write to it"):
        assert kernel_cache.read_code(name) is None


@pytest.mark.parametrize(
    ("name", "members", "primary", "private"),
    [("ada", [], 7, True), ("ada", ["ada"], 7, True), ("ada", ["eve"], 7, False), ("staff", [], 7, False),
     ("ada", [], 8, False)],
)  # fmt: skip
def test_private_groups(monkeypatch: pytest.MonkeyPatch, name: str, members: list, primary: int, private: bool) -> None:
    import grp
    import pwd

    user = pwd.struct_passwd(("ada", "x", os.geteuid(), primary, "", "/", ""))
    monkeypatch.setattr(pwd, "getpwuid", lambda number: user)
    monkeypatch.setattr(grp, "getgrgid", lambda number: grp.struct_group((name, "x", number, members)))
    assert private_files._is_private_group(7) is private

    def nobody(number: int) -> None:
        raise KeyError(number)

    monkeypatch.setattr(pwd, "getpwuid", nobody)  # a container that runs under a number
    assert private_files._is_private_group(7) is False


def test_damage_in_a_safe_folder_is_still_mended(base: Path) -> None:
    name, _ = stored(base)
    kernel_cache.code_file(name).write_bytes(b"damaged")
    assert kernel_cache.read_code(name) is None and not kernel_cache.code_file(name).exists()


def test_files_of_others_in_the_folder_are_not_counted_or_removed(base: Path) -> None:
    """A folder that was given may have files of the user's own."""
    stored(base)
    mine = base / "kernels" / "fast_fourier.cu"
    mine.write_text("the user's own")
    assert "fast_fourier.cu" not in eviction.entries()
    eviction.clear()
    assert [path.name for path in (base / "kernels").iterdir()] == [mine.name]


def test_without_owners_files_are_still_written_and_read(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows."""
    monkeypatch.setattr(private_files, "_HAS_OWNERS", False)
    monkeypatch.setattr(private_files, "_NO_FOLLOW", 0)
    name, _ = stored(base)
    assert kernel_cache.read_code(name) is not None
    assert eviction.entries()
    eviction.clear()
    assert not base.exists()
    assert kernel_cache.read_code(name) is None


# --- other users, really ---------------------------------------------------------------------------------------------

AS_USER = """
import os, sys, warnings
from runtime.codegen.cache import kernel_cache
from runtime.codegen.backends.driver import compile_kernel, record_of
from runtime.codegen.kernel.source import KernelSource

def kernel(number):
    return KernelSource("test", f"def kernel(x):\\n    return x + {number}\\n", "(int64,)", (), ())

os.environ["AUTOGRAPH_CACHE_DIR"] = sys.argv[2]
assert compile_kernel(kernel(1))(1) == 2  # all modules are imported now, whoever may read them
os.setgroups([])
os.setgid(int(sys.argv[1]))
os.setuid(int(sys.argv[1]))
os.environ["AUTOGRAPH_CACHE_DIR"] = sys.argv[3]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert compile_kernel(kernel(2))(1) == 3
print(record_of(kernel(2)).loaded, [str(each.message) for each in caught])
"""


@pytest.mark.skipif(not IS_ROOT, reason="only root can run as another user")
def test_as_another_user(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    for above in tmp_path.parents:
        if above.owner() == "root" and above.stat().st_uid == 0 and above not in (Path("/"), Path("/tmp")):
            above.chmod(above.stat().st_mode | 0o011)

    def run(user: int, folder: Path) -> str:
        arguments = [sys.executable, "-c", AS_USER, str(user), str(tmp_path / "root"), str(folder)]
        done = subprocess.run(
            arguments,
            cwd=ROOT,
            text=True,
            capture_output=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    own = tmp_path / "own"
    own.mkdir()
    os.chown(own, STRANGER, STRANGER)
    assert run(STRANGER, own / "cache") == "False []"
    assert run(STRANGER, own / "cache") == "True []"
    made = [own / "cache", own / "cache" / "kernels", *(own / "cache" / "kernels").iterdir()]
    assert {path.stat().st_uid for path in made} == {STRANGER}
    # Another user, and root, who could read it, run nothing of that.
    assert f"belongs to user {STRANGER}, while this process runs as user 54322" in run(54322, own / "cache") or (
        "Permission denied" in run(54322, own / "cache")
    )
    assert f"belongs to user {STRANGER}, while this process runs as user root" in run(0, own / "cache")
    # Root's files may be read by those who are let in: root can do anything anyway.
    shared = tmp_path / "shared"
    assert run(0, shared / "cache") == "False []"
    for path in [shared, *shared.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    assert run(STRANGER, shared / "cache") == "True []"
    (shared / "cache").chmod(0o777)
    assert "any user can write to it (mode 0777)" in run(STRANGER, shared / "cache")
