"""`python -m tests.keras.guides --source DIR`: the cells of Keras' guides, which are TensorFlow's guides on Keras, too.

DIR is a checkout of Keras. The guides import TensorFlow, which is this project here. Nothing is downloaded: data sets
are made up, in their shapes but smaller, and models of `keras.applications` begin with random weights. Prints the cells
that fail, with the line where each begins. It takes some ten minutes. `--tensorflow PYTHON` runs the same cells on
TensorFlow itself, for comparison.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import os
import subprocess
import sys
import tempfile
import time
import traceback
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

# Sizes that guides write out, and their counterparts for made-up data; PyTorch stays out.
_CHANGED = {
    "reshape(60000": "reshape(-1", "reshape(10000": "reshape(-1", "-10000": "-100", "samples = 10000": "samples = 100",
    "take(100)": "take(1)", "import torch\n": "pass\n",
}  # fmt: skip
_LEFT_OUT = ("_in_jax", "_in_torch", "_with_jax", "_with_torch")


def cells(source: str) -> Iterator[list[ast.stmt]]:
    """The statements between the texts of a guide. Cells about PyTorch are left out."""
    cell: list[ast.stmt] = []
    for statement in [*ast.parse(source).body, None]:
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if statement is not None and not is_text:
            cell.append(statement)
            continue
        if cell and not any(word in ast.unparse(part) for part in cell for word in ("torch", "train_dataloader")):
            yield cell
        cell = []


def prepare(keras: Any, tf: Any) -> None:
    """Puts made-up data and random weights in place of what is downloaded, and a picture of nothing for Graphviz'."""
    rng = np.random.default_rng(0)

    def images(shape: tuple[int, ...], columns: tuple[int, ...] = ()) -> Any:
        def part(count: int) -> Any:
            return rng.integers(0, 256, (count, *shape), np.uint8), rng.integers(0, 10, (count, *columns), np.uint8)

        return lambda: (part(500), part(200))

    def texts(num_words: int) -> Any:
        def part(count: int) -> Any:
            rows = np.empty(count, object)
            rows[:] = [rng.integers(1, num_words, length).tolist() for length in rng.integers(5, 200, count)]
            return rows, rng.integers(0, 2, count)

        return part(100), part(50)

    def loaded(*names: Any, **options: Any) -> list[Any]:
        sizes = (16, 8, 8)
        return [
            tf.data.Dataset.from_tensor_slices(
                (rng.integers(0, 256, (n, 160, 150, 3), np.uint8), rng.integers(0, 2, n))
            )
            for n in sizes
        ]

    keras.datasets.mnist.load_data = images((28, 28))
    keras.datasets.cifar10.load_data = images((32, 32, 3), (1,))
    keras.datasets.imdb.load_data = texts
    keras.utils.plot_model = lambda *arguments, **options: None
    for name in ("VGG19", "Xception"):
        model = getattr(keras.applications, name)
        setattr(
            keras.applications,
            name,
            lambda *given, _make=model, **options: _make(*given, **options | {"weights": None}),
        )
    sys.modules["tensorflow_datasets"] = types.SimpleNamespace(  # type: ignore[assignment]
        disable_progress_bar=lambda: None, load=loaded
    )


def run(guide: Path) -> int:
    """Runs a guide in this process; how many of its cells fail."""
    import tensorflow as tf

    import keras

    prepare(keras, tf)
    source = guide.read_text(encoding="utf-8")
    for here, there in _CHANGED.items():
        source = source.replace(here, there)
    names = {"__name__": "__main__", "__file__": str(guide)}
    count = failed = 0
    for cell in cells(source):
        count += 1
        began = time.monotonic()
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                exec(compile(ast.Module(cell, []), str(guide), "exec"), names)
        except Exception:
            failed += 1
            print(
                f"{guide.name}:{cell[0].lineno} failed after {time.monotonic() - began:.0f} s\n{traceback.format_exc()}"
            )
    print(f"{guide.name}: {count} cells, {failed} failed", flush=True)
    return failed


def _command(given: argparse.Namespace, guide: Path) -> list[str]:
    """What runs one guide, in a process of its own."""
    runner = [sys.executable, "-m", "autograph", "run", "-m", "tests.keras.guides"]
    if given.tensorflow is not None:
        runner = [given.tensorflow, __file__]
    return [*runner, "--source", str(given.source), "--guide", str(guide)]


def _environment(given: argparse.Namespace) -> dict[str, str]:
    path = [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH", "")]
    if given.tensorflow is not None:
        path = []
    return {
        **os.environ, "KERAS_BACKEND": "tensorflow", "PYTHONPATH": os.pathsep.join(filter(None, path)),
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--source", type=Path, required=True, help="a checkout of Keras")
    parser.add_argument(
        "--only", nargs="*", default=[""], metavar="TEXT", help="guides whose names contain one of these"
    )
    parser.add_argument(
        "--tensorflow", metavar="PYTHON", help="run on TensorFlow itself, with the interpreter that has it"
    )
    parser.add_argument("--guide", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.guide is not None:
        return 1 if run(given.guide) else 0
    folder = given.source / "guides"
    if not folder.is_dir():
        parser.error(f"{given.source} holds no folder guides")
    worst = 0
    for guide in sorted(folder.glob("*.py")):
        if any(text in guide.name for text in given.only) and not any(text in guide.stem for text in _LEFT_OUT):
            with tempfile.TemporaryDirectory() as empty:
                done = subprocess.run(_command(given, guide.resolve()), cwd=empty, env=_environment(given), check=False)
            worst = max(worst, abs(done.returncode))
    return 1 if worst else 0


if __name__ == "__main__":
    sys.exit(main())
