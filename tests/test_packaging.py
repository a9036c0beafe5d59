"""The wheel and the sdist: built, complete, installed in a folder of their own, and run from there."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

pytest.importorskip("build", reason="needs the test extra: pip install -e '.[test]'")
ROOT = Path(__file__).resolve().parent.parent
LISTED = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
pytestmark = pytest.mark.skipif(LISTED.returncode != 0, reason="needs the repository, which says what there is")


def _run(*command, cwd, **environment):
    # What is imported must be what is installed.
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, *map(str, command)], cwd=cwd, env={**clean, **environment}, capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with both; they are built from a copy, so that nothing is left in the tree."""
    folder = tmp_path_factory.mktemp("build")
    source = folder / "source"
    for name in LISTED.stdout.splitlines():
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    _run("-m", "build", "--no-isolation", "--outdir", folder / "dist", cwd=source)  # the wheel is made from the sdist
    return folder / "dist"


@pytest.fixture(scope="module")
def wheel(built):
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("installed")
    options = "--no-deps --no-index --no-compile --disable-pip-version-check"
    _run("-m", "pip", "install", *options.split(), "--target", folder, wheel, cwd=folder)
    return folder


def test_the_wheel_has_the_packages_whole_and_nothing_else(wheel):
    listed = {name for name in LISTED.stdout.splitlines() if name.startswith(("autograph/", "runtime/"))}
    with zipfile.ZipFile(wheel) as archive:
        found = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert len(found) > 500
    assert found == listed


def test_the_sdist_has_all_that_the_repository_has(built):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        found = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {name for name in LISTED.stdout.splitlines() if name != ".gitignore"}
    assert wanted - found == set()


def test_the_metadata_is_complete(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        said = Parser().parsestr(archive.read(name).decode())
    assert said["Name"] == "autograph-numba"
    assert said["Description-Content-Type"] == "text/markdown"
    assert said.get_payload().startswith("# autograph")
    for field in ("Version", "Summary", "Author", "Requires-Python", "Keywords"):
        assert said[field], field
    assert len(said.get_all("Classifier")) > 5
    assert {"keras", "test", "docs"} <= set(said.get_all("Provides-Extra"))


def test_what_is_installed_runs(installed, tmp_path):
    program = f"""
import sys
sys.path[:0] = [{str(installed)!r}]
import autograph as ag
assert ag.__file__.startswith({str(installed)!r}), ag.__file__
import runtime
assert runtime.__file__.startswith({str(installed)!r}), runtime.__file__

@ag.function(jit_compile=True)
def cube(x):
    y = 1.0
    for _ in ag.range(3):
        y = y * x
    return y

x = ag.constant(2.0)
with ag.GradientTape() as tape:
    tape.watch(x)
    y = cube(x)
print(float(y), float(tape.gradient(y, x)), ag.math.log.__doc__.count(">>>") > 0)
"""
    (tmp_path / "program.py").write_text(program)
    printed = _run(tmp_path / "program.py", cwd=tmp_path, AUTOGRAPH_CACHE_DIR=str(tmp_path / "kernels"))
    assert printed.split() == ["8.0", "12.0", "True"]


def test_the_command_is_installed(installed, tmp_path):
    (script,) = (installed / "bin").glob("autograph*") if os.name != "nt" else (installed / "bin").glob("*.exe")
    (tmp_path / "program.py").write_text("def f(x):\n    while x > 0:\n        x -= 1\n    return x\n")
    printed = _run(script, "to-code", "program.py:f", cwd=tmp_path, PYTHONPATH=str(installed))
    assert "ag__.while_stmt" in printed


def test_a_report_says_what_there_is(tmp_path):
    printed = _run(
        "-m", "autograph", "--version", "--verbose", cwd=ROOT, AUTOGRAPH_CACHE_DIR=str(tmp_path), AUTOGRAPH_STRICT="1"
    )
    said = {line[:16].strip(): line[16:].strip() for line in printed.splitlines()}
    assert said["Python"].startswith(".".join(map(str, sys.version_info[:3])))
    assert said["numpy"] == __import__("numpy").__version__
    assert "cores to use" in said["processor"]
    assert said["GPU"]
    assert said["cache folder"].startswith(str(tmp_path))
    assert said["AUTOGRAPH_STRICT"] == "1"


def test_a_report_says_what_is_wrong_with_settings(tmp_path):
    printed = _run(
        "-m", "autograph", "--version", "--verbose", cwd=ROOT, AUTOGRAPH_PROCESSOR="i386", AUTOGRAPH_CACHE_SIZE="much"
    )
    assert "AUTOGRAPH_PROCESSOR='i386'" in printed
    assert "AUTOGRAPH_CACHE_SIZE" in printed


def test_the_hook_of_pre_commit_runs_the_command():
    """The file is read line by line: a parser of YAML isn't among what tests need."""
    said = dict(line.strip("- \n").split(": ", 1) for line in (ROOT / ".pre-commit-hooks.yaml").open() if ": " in line)
    assert said["id"] == "autograph-check"
    command = said["entry"].split()
    assert command[0] == "autograph"
    _run("-m", *command, "examples/quickstart.py", cwd=ROOT)
