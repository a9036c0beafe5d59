"""What runs the cells of guides (`python -m tests.keras.guides`), on a small guide."""

import importlib.util
import subprocess
import sys

import pytest

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


@pytest.mark.skipif(
    importlib.util.find_spec("keras") is None, reason="needs the keras extra: pip install -e '.[keras]'"
)
def test_it_says_which_cells_fail(tmp_path):
    (tmp_path / "guides").mkdir()
    (tmp_path / "guides" / "small.py").write_text(GUIDE)
    (tmp_path / "guides" / "small_in_torch.py").write_text("import torch\n")
    command = [sys.executable, "-m", "tests.keras.guides", "--source", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines()[-1] == "small.py: 3 cells, 1 failed", done.stdout
    assert "small.py:19 failed" in done.stdout and "Data cardinality is ambiguous" in done.stdout
