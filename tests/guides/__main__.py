"""`python -m tests.guides --source DIR`: the cells of TensorFlow's guides, with data that are made up.

DIR is a folder with notebooks, such as `site/en/guide` of a checkout of tensorflow/docs. Prints the cells that fail;
`--tensorflow PYTHON` runs the same cells on TensorFlow itself, for comparison.
"""

from __future__ import annotations

import sys

from tests.foreign.cells import arguments, of_notebook, run, run_all
from tests.guides import made_data

# What notebooks write out for the sizes of data that they download, and what fits made-up ones.
_CHANGED = {"reshape(60000": "reshape(-1", "reshape(10000": "reshape(-1", "-10000": "-100"}
_LEFT_OUT = {
    "estimator": "estimators", "migrate/": "TensorFlow 1", "tpu": "TPUs", "jax2tf": "JAX", "dtensor": "several devices",
    "core/distribution": "several devices",
}  # fmt: skip


def changed(text: str) -> str:
    for here, there in _CHANGED.items():
        text = text.replace(here, there)
    return text


def main() -> int:
    parser = arguments((__doc__ or "").splitlines()[0], "a folder with TensorFlow's notebooks")
    given = parser.parse_args()
    if given.guide is not None:
        import tensorflow as tf

        made_data.install(tf)
        return 1 if run(given.guide.stem, of_notebook(given.guide, changed), given.output) else 0
    found = sorted(given.source.rglob("*.ipynb"))
    if not found:
        parser.error(f"{given.source} holds no notebooks")
    found = [
        guide
        for guide in found
        if any(text in guide.as_posix() for text in given.only)
        and not any(text in guide.relative_to(given.source).as_posix() for text in _LEFT_OUT)
    ]
    return run_all("tests.guides", given, found)


if __name__ == "__main__":
    sys.exit(main())
