"""`python -m tests.sonnet --source DIR`: Sonnet 2's own tests on this project.

DIR is a checkout of deepmind/sonnet. The tests need absl-py, dm-tree, tabulate and wrapt: pip install -e '.[sonnet]'
brings them. Prints a table and the failures grouped by their reasons; `--tensorflow`, `--output` and `--beside` are
those of `python -m tests.keras`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.foreign.suite import Suite, arguments, finish

LEFT_OUT = {
    "conformance/checkpoint_test.py": "reads checkpoints in TensorFlow's format",
    "conformance/saved_model_test.py": "writes TensorFlow's saved models",
    "distribute/": "several devices",
    "src/functional/": "experimental: not in the package",
}


def group(file: str) -> str:
    """The folder."""
    parts = Path(file).parts
    return parts[parts.index("src") + 1] if len(parts) > parts.index("src") + 2 else "modules"


def main() -> int:
    parser = arguments(__doc__.partition("\n")[0])
    parser.add_argument("--source", type=Path, required=True, help="a checkout of deepmind/sonnet")
    options = parser.parse_args()
    if not (options.source / "sonnet" / "src").is_dir():
        parser.error(f"{options.source} holds no folder sonnet/src")
    return finish(Suite(options.source.resolve(), "sonnet/src", "*_test.py", LEFT_OUT, group), options, {})


if __name__ == "__main__":
    sys.exit(main())
