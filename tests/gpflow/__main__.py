"""`python -m tests.gpflow --source DIR`: GPflow's own tests on this project.

They come in GPflow's wheel, as a package that is called `tests` like ours, and would stand in its place if they were
installed beside it: delete that package from the installation, and let DIR be a folder with the wheel unpacked. Prints
a table with a row for each folder, and the failures grouped by their reasons; `known.txt` has those that are known,
each with its reason. As for Keras (`python -m tests.keras --help`), `--tensorflow`, `--output` and `--beside` compare:

    python -m tests.gpflow --source DIR --only models/ likelihoods/
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
import tempfile
from pathlib import Path

from tests.foreign.suite import Suite, arguments, finish, read_known

TESTS = "tests/gpflow"


def group(file: str) -> str:
    """The folder in `tests/gpflow`."""
    parts = Path(file).parts[2:-1]
    return parts[0] if parts else "."


def main() -> int:
    parser = arguments(__doc__.partition("\n")[0])
    parser.add_argument("--source", type=Path, required=True, help="a folder with GPflow's wheel unpacked")
    options = parser.parse_args()
    if importlib.util.find_spec("gpflow") is None:
        parser.error("GPflow isn't installed: docs/gpflow.md says how")
    if not (options.source / TESTS).is_dir():
        parser.error(f"{options.source} holds no folder {TESTS}")
    with tempfile.TemporaryDirectory() as folder:  # without the library itself: the installed one is tested
        shutil.copytree(options.source / "tests", Path(folder, "tests"), ignore=shutil.ignore_patterns("__pycache__"))
        known = read_known(Path(__file__).with_name("known.txt"))
        suite = Suite(Path(folder), TESTS, "test_*.py", {}, group, known)
        return finish(suite, options, {"KERAS_BACKEND": "tensorflow"})


if __name__ == "__main__":
    sys.exit(main())
