"""`python -m tests.tfp --source DIR`: TensorFlow Probability's own tests on this project.

DIR is a checkout of the release that is installed (v0.25.0); the installed package has no tests, and the checkout lacks
files that are generated for a release, so they are put together in a folder that goes at the end. Prints a table with a
row for each folder, and the failures grouped by their reasons; `known.txt` has those that are known, each with its
reason. As for Keras (`python -m tests.keras --help`), `--tensorflow`, `--output` and `--beside` compare:

    python -m tests.tfp --source DIR --only distributions/normal_test bijectors/

Tests that need TensorFlow 1's graphs ("_graph") aren't run: there are none here. By default the folders run that
the table in docs/tensorflow_probability.md has.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
import tempfile
from pathlib import Path

from tests.foreign.suite import Suite, arguments, finish, read_known

PACKAGE = "tensorflow_probability"
LEFT_OUT = {
    "/internal/backend/": "of other back ends",
    "/substrates/": "of other back ends",
    "/examples/": "programs for TensorFlow 1",
    "/experimental/auto_batching/": "auto-batching builds on TensorFlow's own converter",
    "/google/": "of Google's own build",
}


def group(file: str) -> str:
    """The folder, two deep in `experimental` and `math`."""
    parts = Path(file).parts
    parts = parts[parts.index("python") + 1 : -1] if "python" in parts else parts[:-1]
    return "/".join(parts[: 2 if parts[:1] in (("experimental",), ("math",)) else 1]) or "."


def put_together(installed: Path, source: Path, folder: Path) -> None:
    """A copy of the installed package with the tests of a checkout, and what only these import."""
    shutil.copytree(installed, folder / PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))
    for file in (source / PACKAGE).rglob("*.py"):
        place = folder / file.relative_to(source)
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, place)


def main() -> int:
    parser = arguments(__doc__.partition("\n")[0])
    parser.add_argument("--source", type=Path, required=True, help="a checkout of tensorflow/probability, v0.25.0")
    options = parser.parse_args()
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        parser.error("TensorFlow Probability isn't installed: pip install -e '.[tfp]'")
    if not (options.source / PACKAGE / "python").is_dir():
        parser.error(f"{options.source} holds no folder {PACKAGE}/python")
    with tempfile.TemporaryDirectory() as folder:
        put_together(Path(found.origin).parent, options.source.resolve(), Path(folder))
        known = read_known(Path(__file__).with_name("known.txt"))
        suite = Suite(Path(folder), f"{PACKAGE}/python", "*_test.py", LEFT_OUT, group, known)
        options.select = options.select or "not _graph"
        return finish(suite, options, {"KERAS_BACKEND": "tensorflow", "TF2_BEHAVIOR": "1"})


if __name__ == "__main__":
    sys.exit(main())
