"""What type checkers and completion make of the public names."""

import importlib.util
import json
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

import autograph as ag

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "tests" / "typed_programs"
RIGHT = sorted((PROGRAMS / "right").glob("*.py"))
WRONG = sorted((PROGRAMS / "wrong").glob("*.py"))


def _mypy(folder):
    """The places at which mypy, in its strict mode, finds errors, as (file, line)."""
    options = "--config-file= --strict --follow-imports=silent --explicit-package-bases --ignore-missing-imports"
    command = [sys.executable, "-m", "mypy", *options.split(), "--cache-dir", str(folder), *map(str, [*RIGHT, *WRONG])]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert found.returncode in (0, 1), found.stdout + found.stderr
    return re.findall(r"/(\w+\.py):(\d+): error: (.*)", found.stdout)


def _pyright(folder):
    if importlib.util.find_spec("pyright") is None:
        pytest.skip("pyright isn't installed")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, str(PROGRAMS)]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if not found.stdout.startswith("{"):
        pytest.skip(f"pyright can't start, for want of Node.js: {(found.stdout + found.stderr)[-300:]}")
    report = json.loads(found.stdout)
    assert report["summary"]["filesAnalyzed"] == len(RIGHT) + len(WRONG)
    errors = [each for each in report["generalDiagnostics"] if each["severity"] == "error"]
    return [(Path(e["file"]).name, e["range"]["start"]["line"] + 1, e["message"]) for e in errors]


@pytest.mark.parametrize("checker", [_mypy, _pyright], ids=["mypy", "pyright"])
def test_checkers_accept_right_programs_and_report_wrong_lines(checker, tmp_path):
    found = {(file, int(line)): message for file, line, message in checker(tmp_path)}
    wrong = {
        (path.name, number)
        for path in WRONG
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if line.endswith("# error")
    }
    assert len(wrong) >= 16
    assert {place: text for place, text in found.items() if place not in wrong} == {}
    assert wrong - set(found) == set()


@pytest.mark.parametrize("path", RIGHT, ids=lambda path: path.stem)
def test_right_programs_run(path, capsys):
    exec(compile(path.read_text(), str(path), "exec"), {"__name__": path.stem})
    assert capsys.readouterr().out.count("\n") >= 2


def _namespaces(module, done):
    if module not in done:
        done.append(module)
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, types.ModuleType) and value.__name__.startswith(("autograph.namespaces", "runtime.a")):
                _namespaces(value, done)
    return done


def test_completion_shows_public_names_only():
    modules = _namespaces(ag, [])
    assert len(modules) > 30
    for module in modules:
        shown = {name for name in dir(module) if not name.startswith("__")}
        public = {name for name in module.__all__ if not name.startswith("__")}
        # Those are no namespaces: what they need isn't installed everywhere.
        others = {"interop", "keras", "testing"} if module is ag else set()
        assert shown == public | others, module.__name__


def test_generic_classes_are_the_ones_that_run():
    """What annotations name can be looked at while the program runs."""
    assert isinstance(ag.function(lambda x: x), ag.types.experimental.PolymorphicFunction)
    assert ag.types.experimental.PolymorphicFunction[[ag.Tensor], ag.Tensor].__origin__ is type(ag.function(abs))
