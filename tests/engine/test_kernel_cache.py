"""The kernel cache across processes: damage, other versions, full disks, killed and concurrent writers, its bound."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from autograph.cli import main
from runtime import errors
from runtime.codegen.backends.driver import compile_kernel, record_of
from runtime.codegen.cache import eviction, kernel_cache, private_files
from runtime.codegen.kernel.source import KernelSource
from runtime.engine import background

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import numpy as np
import runtime.ops.operators
from runtime.engine import Executable, kernel_counters
from tests.engine.test_executable import F32, I32, build, logistic

run = Executable(build(logistic, [F32, I32]), jit_compile=True)
print(float(run([np.float32(0.3), np.int32(50)])[0]), kernel_counters().compiled, kernel_counters().loaded)
"""


def start(program: str, folder: Path, **environment: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "AUTOGRAPH_CACHE_DIR": str(folder), "PYTHONPATH": str(ROOT), **environment},
    )  # fmt: skip


def run(program: str, folder: Path, warning: str = "", **environment: str) -> str:
    """What the program prints; it must say `warning` on stderr, once, and nothing else."""
    with start(program, folder, **environment) as process:
        try:
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()  # a program that hangs must not outlive its test
    assert process.returncode == 0, err
    assert err.count("Warning") == (1 if warning else 0) and warning in err, err
    return out.strip()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that one process has filled."""
    folder = tmp_path_factory.mktemp("cache")
    assert run(PROGRAM, folder).split()[1:] == ["1", "0"]
    return folder


@pytest.fixture
def own(filled: Path, tmp_path: Path) -> Path:
    """A copy of it to break."""
    shutil.copytree(filled, tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for kernels of this process."""
    assert background.worker.wait(600)  # for what the tests before have left it: it would go into this folder
    monkeypatch.setenv("AUTOGRAPH_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(kernel_cache, "_reasons", [])
    return tmp_path / "kernels"


def kernel(number: int) -> KernelSource:
    """A kernel that no other test has, with a text of its own."""
    text = f"def kernel(x):\n    return x + {number} - {os.getpid()}\n"
    return KernelSource("test", text, "(int64,)", (), ())


def test_a_second_process_compiles_nothing(filled: Path) -> None:
    assert run(PROGRAM, filled).split()[1:] == ["0", "1"]


def test_kernels_are_readable_files(filled: Path) -> None:
    (file,) = (filled / "kernels").glob("k_*.py")
    assert "def kernel(x0, x1):" in file.read_text()
    assert not list((filled / "kernels").glob(".*")), "no temporary files stay behind"


@pytest.mark.parametrize(
    ("suffix", "damage"), [("py", "cut"), ("py", "remove"), ("code", "cut"), ("code", "flip"), ("code", "empty"),
     ("index", "cut"), ("index", "remove")],
)  # fmt: skip
def test_damaged_files_are_built_again(filled: Path, own: Path, suffix: str, damage: str) -> None:
    (file,) = (own / "kernels").glob(f"*.{suffix}")
    content = file.read_bytes()
    middle = len(content) // 2
    if damage == "remove":
        file.unlink()
    else:
        flipped = content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :]
        file.write_bytes({"cut": content[:middle], "flip": flipped, "empty": b""}[damage])
    compiles = suffix == "code"  # text alone is only written again
    assert run(PROGRAM, own).split()[1:] == [str(int(compiles)), str(int(not compiles))]
    if compiles:
        assert run(PROGRAM, own).split()[1:] == ["0", "1"], "what was written again can be read"
    else:
        assert file.read_bytes() == content


@pytest.mark.parametrize("compiler", ["llvm", "numba"])
def test_code_that_can_not_be_read_is_compiled_again(
    here: Path, monkeypatch: pytest.MonkeyPatch, compiler: str
) -> None:
    """Its digest is right: another build with the same version number may have written it."""
    monkeypatch.setenv("AUTOGRAPH_COMPILER", compiler)
    contents = [b"no pickle, no object file", pickle.dumps(("not", "what", "numba", "expects"))]
    contents += [pickle.dumps(("0.0.1", ())), b"\x7fELF" + bytes(60)]
    for number, code in enumerate(contents, 1000 * (1 + (compiler == "numba"))):
        content = compiler.encode() + b"\n" + code
        source = kernel(number)
        name = kernel_cache.kernel_name(source.text, source.signature)
        assert kernel_cache.write_code(name, content)
        assert compile_kernel(source)(os.getpid()) == number
        record = record_of(source)
        assert record is not None and not record.loaded
        assert record.note is not None and "could not be read" in record.note
        assert kernel_cache.read_code(name) not in (None, content)


def test_other_versions_and_processors_have_other_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    import llvmlite

    from runtime.llvm import processor

    def name() -> str:
        kernel_cache.platform_key.cache_clear()
        return kernel_cache.kernel_name("text", "(int64,)")

    try:
        names = {name()}
        for owner, attribute, value in (
            (llvmlite, "__version__", "0.0.1"),
            (processor, "name", lambda: "abacus"),
            (kernel_cache, "FORMAT", -1),
        ):
            with monkeypatch.context() as patch:
                patch.setattr(owner, attribute, value)
                names.add(name())
        assert len(names) == 4
    finally:
        kernel_cache.platform_key.cache_clear()


CALLED_OR_COMPILING = (
    "codegen/kernel_library", "codegen/math", "codegen/backends/numba_backend", "kernel_ir", "llvm",
)  # fmt: skip


def test_a_change_of_any_file_changes_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the compiler, and of what kernels call, in folders in folders as well: stale kernels would load silently."""
    runtime = Path(kernel_cache.__file__).parents[2]
    for room in ("codegen", "kernel_ir", "llvm"):
        shutil.copytree(runtime / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(kernel_cache, "__file__", str(tmp_path / "codegen" / "cache" / "kernel_cache.py"))

    def key() -> str:
        kernel_cache.platform_key.cache_clear()
        return kernel_cache.platform_key()

    def write(path: str, text: str) -> None:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(file.read_text() + text if file.exists() else text)

    try:
        keys = [key()]
        for path, text in (
            ("llvm/target.py", "# changed"),
            ("kernel_ir/ir.py", "# changed"),
            ("llvm/optimize/lanes/plan.py", "width = 4"),
            ("llvm/optimize/lanes/plan.py", "# changed"),
            ("codegen/kernel_library/functions.py", "\nfrom runtime.codegen.tables.roots import ROOTS\n"),
            ("codegen/tables/roots.py", "ROOTS = 1"),
            ("codegen/tables/roots.py", "# changed"),
            ("codegen/tables/roots.py", "\nfrom runtime.codegen.tables import (\n    signs,\n    sines as s,\n)\n"),
            ("codegen/tables/signs.py", "SIGNS = 1"),
            ("codegen/tables/sines.py", "SINES = 1"),
            ("codegen/tables/roots.py", "\nfrom runtime.codegen.tables import other, tangents\n"),
            ("codegen/tables/tangents.py", "TANGENTS = 1"),
            *[
                (str(file.relative_to(tmp_path)), "# changed")
                for room in CALLED_OR_COMPILING
                for file in sorted((tmp_path / room).rglob("*.py"))
                if file.name not in ("__init__.py", "compiler.py")
            ],
        ):
            write(path, text)
            keys.append(key())
        assert len(set(keys)) == len(keys)
        write("codegen/tables/unrelated.py", "nothing = None")  # no kernel calls it
        assert key() == keys[-1]
    finally:
        kernel_cache.platform_key.cache_clear()


def test_a_folder_that_can_not_be_made(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("a file, not a folder")
    assert run(PROGRAM, blocked, "kept in memory only").split()[1:] == ["1", "0"]


READ_ONLY = """
import errno, os
def refuse(*arguments, **options):
    raise OSError(errno.{name}, os.strerror(errno.{name}))
def only_read(path, flags, *arguments, **options):
    return refuse() if flags & os.O_CREAT else opened(path, flags, *arguments, **options)
opened = os.open
os.{where} = {by}
"""


@pytest.mark.parametrize(
    ("name", "where", "by"),
    [("EROFS", "open", "only_read"), ("ENOSPC", "replace", "refuse"), ("EDQUOT", "fchmod", "refuse")],
)
def test_disks_that_take_no_file(tmp_path: Path, name: str, where: str, by: str) -> None:
    program = READ_ONLY.format(name=name, where=where, by=by) + PROGRAM
    out = run(program, tmp_path, "kept in memory only")
    assert out.split()[1:] == ["1", "0"]
    assert not list((tmp_path / "kernels").glob("k_*")), "nothing half written stays"


def test_a_read_only_folder_that_is_filled_serves_without_a_warning(filled: Path) -> None:
    program = READ_ONLY.format(name="EROFS", where="open", by="only_read") + "os.utime = refuse\n" + PROGRAM
    assert run(program, filled).split()[1:] == ["0", "1"]


def test_a_disk_that_is_full_after_the_text(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = kernel_cache.write_atomically

    def full(path: Path, content: bytes) -> None:
        if path.suffix == ".code":
            raise OSError(28, "No space left on device")
        write(path, content)

    monkeypatch.setattr(kernel_cache, "write_atomically", full)
    first, second = kernel(1), kernel(2)
    with pytest.warns(errors.CacheWarning, match="No space left on device.*AUTOGRAPH_CACHE_DIR") as caught:
        assert compile_kernel(first)(os.getpid()) == 1
        assert compile_kernel(second)(os.getpid()) == 2
    assert len(caught) == 1
    record = record_of(second)
    assert record is not None and "No space left on device" in str(record.note)


KILLED = (
    """
import os, signal
from runtime.codegen.cache import kernel_cache
{patch}
"""
    + PROGRAM
)
BEFORE_RENAME = """
def replace(source, target, **folders):
    if str(target).endswith("{suffix}"):
        os.kill(os.getpid(), signal.SIGKILL)
    rename(source, target, **folders)
rename, os.replace = os.replace, replace
"""


@pytest.mark.parametrize("suffix", [".py", ".code"])
def test_kill_9_while_a_file_is_written(filled: Path, tmp_path: Path, suffix: str) -> None:
    process = start(KILLED.format(patch=BEFORE_RENAME.format(suffix=suffix)), tmp_path)
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    left = list((tmp_path / "kernels").glob(".k_*"))
    assert len(left) == 1, "the temporary file of the killed process"
    expected = run(PROGRAM, filled).split()[0]
    assert run(PROGRAM, tmp_path).split() == [expected, "1", "0"]
    # It goes when somebody makes room an hour later.
    os.utime(left[0], (time.time() - 7200,) * 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTOGRAPH_CACHE_DIR", str(tmp_path))
        assert eviction.make_room("k_0") > 0
    assert not left[0].exists()
    assert run(PROGRAM, tmp_path).split() == [expected, "0", "1"]


def test_processes_that_write_the_same_kernel(tmp_path: Path) -> None:
    processes = [start(PROGRAM, tmp_path) for _ in range(4)]
    printed = []
    for process in processes:
        out, err = process.communicate(timeout=240)
        assert (process.returncode, err) == (0, "")
        printed.append(out.split()[0])
    assert len(set(printed)) == 1
    kinds = sorted(path.suffix for path in (tmp_path / "kernels").iterdir())
    assert kinds == [".code", ".index", ".py"], "one of each, and nothing temporary"
    assert run(PROGRAM, tmp_path).split()[1:] == ["0", "1"]


# --- the bound, and the command --------------------------------------------------------------------------------------


def fill(folder: Path, count: int) -> list[str]:
    """Kernels of 1000 bytes, the first ones used longest ago."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"k_{number:024x}" for number in range(count)]
    for number, name in enumerate(names):
        for suffix, size in ((".py", 100), (".code", 900)):
            (folder / f"{name}{suffix}").write_bytes(b"x" * size)
            os.utime(folder / f"{name}{suffix}", (1e9 + number,) * 2)
    return names


def test_kernels_unused_for_longest_make_room(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = fill(here, 10)
    monkeypatch.setenv("AUTOGRAPH_CACHE_SIZE", "8K")
    os.utime(here / f"{names[0]}.code")  # used just now
    eviction.make_room(names[1])  # as if it had just been written
    left = set(eviction.entries())
    assert {names[0], names[1], names[9]} <= left
    assert names[2] not in left and names[3] not in left
    assert sum(entry.size for entry in eviction.entries().values()) <= 0.9 * 8192
    assert all(len(entry.files) == 2 for entry in eviction.entries().values())
    assert eviction.make_room(names[1]) == 0


def test_all_files_are_looked_at_again_after_a_hundredth_of_the_bound(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTOGRAPH_CACHE_SIZE", "32K")
    fill(here, 2)
    assert eviction.make_room("k_0", 300) == 0
    fill(here, 40)  # by other processes
    assert eviction.make_room("k_0", 300) == 0
    assert eviction.make_room("k_0", 300) > 0


def test_writing_keeps_the_bound(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(here, 40)
    monkeypatch.setenv("AUTOGRAPH_CACHE_SIZE", "32K")
    source = kernel(3)
    compile_kernel(source)
    found = eviction.entries()
    assert kernel_cache.kernel_name(source.text, source.signature) in found
    assert sum(entry.size for entry in found.values()) <= 32 << 10


def test_reading_counts_as_use(here: Path) -> None:
    (name,) = fill(here, 1)
    assert kernel_cache.write_code(name, b"content")
    os.utime(kernel_cache.code_file(name), (1e9, 1e9))
    assert kernel_cache.read_code(name) == b"content"
    assert eviction.entries()[name].used > 1.1e9


@pytest.mark.parametrize(
    ("text", "size"),
    [("1000", 1000), ("2K", 2048), ("1.5M", 3 << 19), ("2GiB", 2 << 30), ("", 512 << 20), ("10mb", 10 << 20)],
)
def test_sizes(monkeypatch: pytest.MonkeyPatch, text: str, size: int) -> None:
    monkeypatch.setenv("AUTOGRAPH_CACHE_SIZE", text)
    assert eviction.bound() == size


def test_the_command(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    fill(here, 3)
    (here / f"k_{9:024x}.py").write_bytes(b"12345")
    assert main(["cache", "info"]) == 0
    out = capsys.readouterr().out
    assert f"folder     {here.parent}\nkernels    4 (3 with compiled code)\nsize       3005 bytes" in out
    assert "512.0 MiB" in out and "llvmlite" in out
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out == f"removed 4 kernels, 3005 bytes, from {here.parent}\n"
    assert not here.exists()
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out == f"removed 0 kernels, 0 bytes, from {here.parent}\n"
    monkeypatch.setenv("AUTOGRAPH_CACHE_SIZE", "lots")
    assert main(["cache", "info"]) == 2
    assert "AUTOGRAPH_CACHE_SIZE must be a number of bytes" in capsys.readouterr().err


def test_the_command_says_what_keeps_the_folder_from_being_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("a file, not a folder")
    for chosen in (blocked, blocked / "inside"):
        monkeypatch.setenv("AUTOGRAPH_CACHE_DIR", str(chosen))
        assert main(["cache", "info"]) == 0
        assert capsys.readouterr().out.startswith(f"folder     {chosen} ({blocked} is not a folder)\n")
    monkeypatch.setenv("AUTOGRAPH_CACHE_DIR", str(tmp_path / "new"))
    assert main(["cache", "info"]) == 0
    assert capsys.readouterr().out.startswith(f"folder     {tmp_path / 'new'}\n")
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    assert kernel_cache.why_unusable() == f"{tmp_path} can't be written"


def test_a_home_that_no_shell_has_put_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOGRAPH_CACHE_DIR", "~/kernels of mine")
    assert kernel_cache.cache_dir() == Path.home() / "kernels of mine"


def test_the_command_says_what_stays(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    names = fill(here, 2)
    remove = private_files.Folder.remove

    def refuse(folder: private_files.Folder, name: str) -> None:
        if name == f"{names[0]}.code":
            raise PermissionError(13, "Permission denied")
        remove(folder, name)

    monkeypatch.setattr(private_files.Folder, "remove", refuse)
    assert main(["cache", "clear"]) == 1
    printed = capsys.readouterr()
    assert printed.out.startswith("removed 1 kernel, 1100 bytes")
    assert printed.err == f"autograph: cannot remove {here / names[0]}.code: Permission denied\n"


def test_importing_does_not_load_numba(tmp_path: Path) -> None:
    program = "import runtime.engine, runtime.codegen.lower.lower_graph, sys; print('numba' in sys.modules)"
    assert run(program, tmp_path) == "False"


def test_a_kernel_whose_compiled_form_is_lost_works_and_is_not_kept(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from numba.core.compiler import CompileResult

    monkeypatch.setenv("AUTOGRAPH_COMPILER", "numba")

    def lost(self: CompileResult) -> tuple:
        raise RuntimeError("no compiled object yet for <Library>")

    monkeypatch.setattr(CompileResult, "_reduce", lost)
    source = kernel(271828)
    assert compile_kernel(source)(os.getpid()) == 271828
    assert record_of(source).note == "numba couldn't export its code"
    assert [path.suffix for path in here.iterdir()] == [".py"]
