"""What runs the cells of guides (`python -m tests.keras.guides` and `tests.guides`), on small guides."""

import importlib.util
import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("keras") is None, reason="needs the keras extra: pip install -e '.[keras]'"
)

GUIDE = '''"""Title"""
import keras
import numpy as np

"""A cell that works, on made-up data."""

(x_train, y_train), _ = keras.datasets.mnist.load_data()
x_train = x_train.reshape(60000, 784).astype("float32") / 255
model = keras.Sequential([keras.layers.Dense(10, activation="softmax")])
model.compile("sgd", "sparse_categorical_crossentropy")
model.fit(x_train, y_train, epochs=1)

"""One about another library, which is left out."""

loader = torch.utils.data.DataLoader(x_train)

"""One that fails."""

model.fit(x_train, y_train[:-1])
'''


def test_it_says_which_cells_fail(tmp_path):
    (tmp_path / "guides").mkdir()
    (tmp_path / "guides" / "small.py").write_text(GUIDE)
    (tmp_path / "guides" / "small_in_torch.py").write_text("import torch\n")
    command = [sys.executable, "-m", "tests.keras.guides", "--source", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines()[-1] == "small.py: 3 cells, 1 failed", done.stdout
    assert "small.py:19 failed" in done.stdout and "Data cardinality is ambiguous" in done.stdout


CELLS = [
    ("code", "!pip install nothing\nimport tensorflow as tf"),
    ("markdown", "A file:"),
    ("code", "%%writefile numbers.csv\n1,2\n3,4\n"),
    ("code", "rows = tf.data.experimental.CsvDataset('numbers.csv', [0, 0])\n[[int(n) for n in row] for row in rows]"),
    ("code", "tf.constant(1) +"),
    ("code", "class Box:\n  size: tf.Tensor\n\nimport typing\nlist(typing.get_type_hints(Box))"),
]


def test_cells_of_notebooks(tmp_path):
    cells = [{"cell_type": kind, "source": text.splitlines(keepends=True)} for kind, text in CELLS]
    (tmp_path / "small.ipynb").write_text(json.dumps({"cells": cells}))
    command = [sys.executable, "-m", "tests.guides", "--source", str(tmp_path), "--output", str(tmp_path / "told")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines()[-1] == "small: 5 cells, 1 failed", done.stdout
    assert "small-4.py:1 failed" in done.stdout and "SyntaxError" in done.stdout
    told = json.loads((tmp_path / "told" / "small.json").read_text())
    assert [each["said"] for each in told] == ["", "8\n", "[[1, 2], [3, 4]]\n", "", "['size']\n"]
