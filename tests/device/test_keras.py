"""A Keras model trained on an (emulated) GPU: as on the CPU."""

from __future__ import annotations

import functools
import importlib.util

import numpy as np
import pytest

import autograph as ag
from tests.device.on_device import gpus

if importlib.util.find_spec("keras") is None:
    pytest.skip("Keras is missing: pip install -e '.[keras]'", allow_module_level=True)

pytestmark = pytest.mark.usefixtures("tensorflow")


def test_fit() -> None:
    x = np.random.default_rng(0).normal(size=(64, 4)).astype(np.float32)
    y = (x.sum(1) > 0).astype(np.float32)
    found = []
    with gpus():
        for name in ("CPU:0", "GPU:0"):
            with ag.device(name):
                keras = ag.keras
                keras.utils.set_random_seed(1)
                model = keras.Sequential([keras.layers.Dense(3, activation="relu"), keras.layers.Dense(1)])
                model.compile("sgd", "mse")
                history = model.fit(x, y, epochs=1, batch_size=32, verbose=0, shuffle=False)
                found.append(history.history["loss"])
                assert model.layers[0].kernel.value.device.endswith(name)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-4)


def test_recurrent_layers_need_no_cudnn() -> None:
    """Keras asks for cuDNN where there is a GPU, which takes no sequences that are padded on the left."""
    tokens = np.random.default_rng(0).integers(1, 9, (8, 5))
    tokens[:, :2] = 0
    weights, found = None, []
    with gpus():
        for name in ("CPU:0", "GPU:0"):
            with ag.device(name):
                layers = ag.keras.layers
                embedding = layers.Embedding(9, 4, mask_zero=True)
                recurrent = layers.LSTM(3, return_sequences=True), layers.GRU(3)
                model = ag.keras.Sequential([embedding, *recurrent, layers.Dense(1)])
                model.compile("sgd", "mse")
                model.build((8, 5))
                weights = weights or model.get_weights()
                model.set_weights(weights)
                history = model.fit(tokens, np.ones((8, 1), np.float32), epochs=2, verbose=0, shuffle=False)
                found.append(history.history["loss"])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-4)


def test_only_batches_are_copied() -> None:
    """The dataset's functions run on the CPU, and a step needs nothing else from there."""
    x = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
    with gpus(), ag.device("GPU:0"):
        layers = ag.keras.layers
        model = ag.keras.Sequential([layers.Dense(3, activation="relu"), layers.Dense(1)])
        model.compile("sgd", "mse")
        fit = functools.partial(model.fit, x, x[:, :1], batch_size=4, verbose=0, shuffle=False)
        fit(epochs=2)
        before = ag.config.experimental.get_transfer_info("GPU:0")
        fit()
        after = ag.config.experimental.get_transfer_info("GPU:0")
    copied = {key: after[key] - before[key] for key in after}
    size = x.nbytes + x[:, :1].nbytes
    assert copied == {"to_device": 4, "to_device_bytes": size, "from_device": 0, "from_device_bytes": 0}
