"""`python -m tests.keras.guides --source DIR`: the cells of Keras' guides, which are TensorFlow's guides on Keras, too.

DIR is a checkout of Keras. The guides import TensorFlow, which is this project here. Nothing is downloaded: data sets
are made up (`tests/guides/made_data.py`), and models of `keras.applications` begin with random weights. Prints the
cells that fail, with the line where each begins. It takes some ten minutes. `--tensorflow PYTHON` runs the same cells
on TensorFlow itself, for comparison.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.foreign.cells import Cell, arguments, run, run_all
from tests.guides import made_data

# Sizes that guides write out, and their counterparts for made-up data; PyTorch stays out.
_CHANGED = {
    "reshape(60000": "reshape(-1", "reshape(10000": "reshape(-1", "-10000": "-100", "samples = 10000": "samples = 100",
    "take(100)": "take(1)", "import torch\n": "pass\n",
}  # fmt: skip
_LEFT_OUT = ("_in_jax", "_in_torch", "_with_jax", "_with_torch")


def cells(guide: Path) -> Iterator[Cell]:
    """The statements between the texts of a guide. Cells about PyTorch are left out."""
    source = guide.read_text(encoding="utf-8")
    for here, there in _CHANGED.items():
        source = source.replace(here, there)
    cell: list[ast.stmt] = []
    for statement in [*ast.parse(source).body, None]:
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if statement is not None and not is_text:
            cell.append(statement)
            continue
        if cell and not any(word in ast.unparse(part) for part in cell for word in ("torch", "train_dataloader")):
            yield Cell(str(guide), cell[0].lineno, cell)
        cell = []


def main() -> int:
    parser = arguments((__doc__ or "").splitlines()[0], "a checkout of Keras")
    given = parser.parse_args()
    if given.guide is not None:
        import tensorflow as tf

        made_data.install(tf)
        return 1 if run(given.guide.name, cells(given.guide), given.output) else 0
    folder = given.source / "guides"
    if not folder.is_dir():
        parser.error(f"{given.source} holds no folder guides")
    guides = [guide for guide in sorted(folder.glob("*.py")) if not any(text in guide.stem for text in _LEFT_OUT)]
    return run_all("tests.keras.guides", given, [each for each in guides if any(t in each.name for t in given.only)])


if __name__ == "__main__":
    sys.exit(main())
