"""A Keras model trained on an (emulated) GPU: as on the CPU."""

from __future__ import annotations

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
