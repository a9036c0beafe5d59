"""Keras' TensorBoard callback, which writes through `tf.summary`."""

import importlib.util
import subprocess
import sys

import numpy as np
import pytest

import autograph as ag
from tests.summaries.test_summary import summaries

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("keras", "tensorboard")),
    reason="needs the keras and tensorboard extras",
)


def by_tag(folder):
    """{tag: [(step, array), ...]}, without TensorBoard's accumulator, which takes our `tensorflow` for TensorFlow."""
    found = {}
    for tag, step, array in summaries(folder):
        found.setdefault(tag, []).append((step, array))
    return found


@pytest.fixture
def keras(tensorflow):
    yield ag.keras
    ag.keras.backend.clear_session()


def test_the_callback_writes_metrics_and_weights(keras, tmp_path):
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x, y = np.ones((8, 4)), np.ones((8, 1))
    callback = keras.callbacks.TensorBoard(tmp_path, histogram_freq=1, write_images=True, update_freq=1)
    history = model.fit(x, y, batch_size=4, epochs=2, verbose=0, validation_data=(x, y), callbacks=[callback])
    train = by_tag(tmp_path / "train")
    assert [step for step, _ in train["epoch_loss"]] == [0, 1]
    np.testing.assert_allclose([v for _, v in train["epoch_loss"]], history.history["loss"], rtol=1e-6)
    assert len(train["batch_loss"]) == 4
    (kernel,) = (tag for tag in train if tag.endswith("kernel/histogram"))
    assert train[kernel][1][1][:, 2].sum() == 4
    assert any(tag.endswith("kernel/image") for tag in train)
    validation = by_tag(tmp_path / "validation")
    np.testing.assert_allclose([v for _, v in validation["epoch_loss"]], history.history["val_loss"], rtol=1e-6)


def test_tensorboard_reads_files_beside_the_facade(tmp_path):
    # In a process of its own: TensorBoard keeps the first `tensorflow` that it finds.
    program = (
        "import sys, autograph as ag\n"
        "ag.keras\n"
        "with ag.summary.create_file_writer(sys.argv[1]).as_default(step=4):\n"
        "    ag.summary.scalar('x', 1.0)\n"
        "from tests.summaries.test_summary import events\n"
        "for _ in range(2):\n"
        "    assert events(sys.argv[1]) == {'x': [(4, 1.0)]}\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)
