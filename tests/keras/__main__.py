"""`python -m tests.keras`: Keras' own tests on this project.

The installed package has its tests; `--source DIR` takes a checkout of a release instead. Prints a table with a row for
each folder, and the failures grouped by their reasons. `--output` keeps the results, `--tensorflow PYTHON` runs the
same tests on TensorFlow, and `--beside FILE` compares with what was kept:

    python -m tests.keras --tensorflow OTHER/bin/python --output tensorflow.json
    python -m tests.keras --beside tensorflow.json

It takes about ten minutes for each core (TensorFlow: an hour).
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from tests.foreign.suite import Suite, arguments, finish

LEFT_OUT = {
    "src/applications/": "downloads weights",
    "src/backend/jax/": "of another back end",
    "src/backend/torch/": "of another back end",
    "src/backend/numpy/": "of another back end",
    "src/backend/openvino/": "of another back end",
    "src/distribution/": "several devices",
    "distribute_test.py": "several devices",
    "src/utils/torch_utils_test.py": "PyTorch",
    "src/export/torch_test.py": "PyTorch",
    "src/export/litert_torch_test.py": "PyTorch",
    "src/utils/jax_layer_test.py": "JAX",
}


def group(file: str) -> str:
    """The folder, two deep where there are many."""
    parts = Path(file).parts
    parts = parts[parts.index("src") + 1 :] if "src" in parts else parts
    deep = parts[0] in ("layers", "backend") and len(parts) > 2
    return "/".join(parts[: 2 if deep else 1])


def main() -> int:
    parser = arguments(__doc__.partition("\n")[0])
    parser.add_argument("--source", type=Path, help="a checkout of Keras (default: the installed package)")
    options = parser.parse_args()
    if options.source is None:
        found = importlib.util.find_spec("keras")
        if found is None or found.origin is None:
            parser.error("Keras isn't installed: pip install -e '.[keras]', or give a checkout by --source")
        options.source = Path(found.origin).parents[1]
    if not (options.source / "keras" / "src").is_dir():
        parser.error(f"{options.source} holds no folder keras/src")
    suite = Suite(options.source.resolve(), "keras/src", "*_test.py", LEFT_OUT, group)
    return finish(suite, options, {"KERAS_BACKEND": "tensorflow"})


if __name__ == "__main__":
    sys.exit(main())
