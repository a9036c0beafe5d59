"""Runs the cells of guides, each guide in a process of its own, on this project or on TensorFlow itself.

TensorFlow's interpreter runs this file without the project on its path, so only the standard library is imported here.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import linecache
import os
import subprocess
import sys
import tempfile
import textwrap
import time
import traceback
import types
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Cell:
    """A cell's program, under the name and at the line of the file where its functions are looked up."""

    file: str
    line: int
    program: str | list[ast.stmt]


def of_notebook(guide: Path, changed: Callable[[str], str]) -> list[Cell]:
    """The cells of code of a notebook. Commands of IPython and of the shell are left out, but for `%%writefile`."""
    cells = []
    for number, cell in enumerate(json.loads(guide.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] == "code":
            file = f"{guide.with_suffix('')}-{number}.py"
            text = changed(_as_python("".join(cell["source"])))
            linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
            cells.append(Cell(file, 1, text))
    return cells


def _as_python(text: str) -> str:
    with contextlib.suppress(SyntaxError):
        ast.parse(text)
        return text
    return _without_commands(textwrap.dedent(text))


def _without_commands(text: str) -> str:
    first, _, rest = text.partition("\n")
    command, _, file = first.partition(" ")
    if command == "%%writefile":
        return f"open({file!r}, 'w').write({rest!r})"
    if command in ("%%bash", "%%html", "%%javascript"):
        return ""
    lines = text.splitlines()
    return "\n".join(
        line[: len(line) - len(line.lstrip())] + "pass" if _is_command(line.strip()) else line for line in lines
    )


def _is_command(line: str) -> bool:
    return line.startswith(("!", "%")) or (line.endswith("?") and not line.startswith("#"))


def run(name: str, cells: Iterable[Cell], output: Path | None) -> int:
    """Runs cells in this process; how many of them fail. Writes what became of each to the file `output`."""
    main = sys.modules["__main__"] = types.ModuleType("__main__")  # where classes look their annotations up
    told = []
    for cell in cells:
        began = time.monotonic()
        said = io.StringIO()
        error = ""
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
                _run(cell, vars(main))
        except Exception:
            error = traceback.format_exc()
            took = time.monotonic() - began
            print(f"{Path(cell.file).name}:{cell.line} failed after {took:.0f} s\n{error}")
        told.append({"cell": f"{Path(cell.file).name}:{cell.line}", "error": error, "said": said.getvalue()})
    failed = sum(bool(each["error"]) for each in told)
    print(f"{name}: {len(told)} cells, {failed} failed", flush=True)
    if output is not None:
        output.write_text(json.dumps(told, indent=1), encoding="utf-8")
    return failed


def _run(cell: Cell, names: dict[str, Any]) -> None:
    """Runs a cell as a notebook does: it shows the value of the last statement."""
    names["__file__"] = cell.file
    body = ast.parse(cell.program, cell.file).body if isinstance(cell.program, str) else cell.program
    last = body[-1] if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body[:-1] if last is not None else body, []), cell.file, "exec"), names)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), cell.file, "eval"), names)
        if value is not None:
            print(repr(value))


def arguments(description: str, source: str) -> argparse.ArgumentParser:
    """The options of commands that run guides."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--source", type=Path, required=True, help=source)
    parser.add_argument(
        "--only", nargs="*", default=[""], metavar="TEXT", help="guides whose paths contain one of these"
    )
    parser.add_argument(
        "--tensorflow", metavar="PYTHON", help="run on TensorFlow itself, with the interpreter that has it"
    )
    parser.add_argument("--output", type=Path, metavar="DIR", help="write what became of each cell, as JSON")
    parser.add_argument("--timeout", type=int, default=600, help="seconds for a guide (default: 600)")
    parser.add_argument("--guide", type=Path, help=argparse.SUPPRESS)
    return parser


def run_all(module: str, given: argparse.Namespace, guides: Sequence[Path]) -> int:
    """Runs guides by `python -m MODULE --guide`, each in an empty folder; 0 if no cell fails."""
    failed = False
    for guide in guides:
        with tempfile.TemporaryDirectory() as empty:
            try:
                done = subprocess.run(
                    _command(module, given, guide), cwd=empty, env=_environment(given), check=False,
                    timeout=given.timeout,
                )  # fmt: skip
                failed |= done.returncode != 0
            except subprocess.TimeoutExpired:
                print(f"{guide.name}: {given.timeout} s were not enough", flush=True)
                failed = True
    return int(failed)


def _command(module: str, given: argparse.Namespace, guide: Path) -> list[str]:
    """What runs one guide, in a process of its own."""
    runner = [sys.executable, "-m", "autograph", "run"] if given.tensorflow is None else [given.tensorflow]
    command = [*runner, "-m", module, "--source", str(given.source), "--guide", str(guide.resolve())]
    if given.output is not None:
        given.output.mkdir(parents=True, exist_ok=True)
        command += ["--output", str((given.output / guide.name).with_suffix(".json").resolve())]
    return command


def _environment(given: argparse.Namespace) -> dict[str, str]:
    return {
        **os.environ, "KERAS_BACKEND": "tensorflow", "MPLBACKEND": "agg", "TF_CPP_MIN_LOG_LEVEL": "3",
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")])),
    }  # fmt: skip
