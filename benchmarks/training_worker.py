"""A process that trains Keras models on one back end, and says how long it took.

    python benchmarks/training_worker.py BACKEND MODEL [--quick]

`benchmarks.training` starts it. An epoch begins when a line is read; its seconds, those of the
processor and its loss are then printed as JSON.
Only Keras and its back end have been imported when the first line is awaited, so that the first epoch has in it the
making of the model, tracing and compiling.

This file needs nothing of this project but for the back end `autograph`: it also runs under interpreters without it.
"""

import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

AUTOGRAPH = "autograph"
SEED = 20
Arrays = tuple[np.ndarray, np.ndarray]


# --- models: each makes its data (inputs, labels), then the layers ---


def mlp(keras: Any, rng: np.random.Generator) -> tuple[Arrays, Any, str]:
    x = rng.normal(size=(2048, 64)).astype("float32")
    layers = [keras.layers.Dense(128, activation="relu"), keras.layers.Dense(128, activation="relu")]
    return (x, _classes(x, 10)), keras.Sequential([keras.Input((64,)), *layers, keras.layers.Dense(10)]), "classes"


def wide(keras: Any, rng: np.random.Generator) -> tuple[Arrays, Any, str]:
    x = rng.normal(size=(2048, 1024)).astype("float32")
    layers = [keras.layers.Dense(1024, activation="relu"), keras.layers.Dense(1024, activation="relu")]
    return (x, _classes(x, 10)), keras.Sequential([keras.Input((1024,)), *layers, keras.layers.Dense(10)]), "classes"


def cnn(keras: Any, rng: np.random.Generator) -> tuple[Arrays, Any, str]:
    x = rng.normal(size=(1024, 28, 28, 1)).astype("float32")
    layers = [
        keras.layers.Conv2D(16, 3, activation="relu"), keras.layers.MaxPooling2D(),
        keras.layers.Conv2D(32, 3, activation="relu"), keras.layers.MaxPooling2D(),
        keras.layers.Flatten(), keras.layers.Dense(10),
    ]  # fmt: skip
    return (x, _classes(x, 10)), keras.Sequential([keras.Input((28, 28, 1)), *layers]), "classes"


def lstm(keras: Any, rng: np.random.Generator) -> tuple[Arrays, Any, str]:
    x = rng.normal(size=(1024, 32, 16)).astype("float32")
    y = np.cumsum(x[:, :, 0], 1)[:, -1:].astype("float32") / 8
    return (x, y), keras.Sequential([keras.Input((32, 16)), keras.layers.LSTM(64), keras.layers.Dense(1)]), "numbers"


def transformer(keras: Any, rng: np.random.Generator) -> tuple[Arrays, Any, str]:
    x = rng.integers(0, 200, size=(1024, 32)).astype("int32")
    inputs = keras.Input((32,), dtype="int32")
    h = keras.layers.Embedding(200, 64)(inputs)
    for _ in range(2):
        attended = keras.layers.MultiHeadAttention(4, 16)(h, h)
        h = keras.layers.LayerNormalization()(h + attended)
        widened = keras.layers.Dense(128, activation="relu")(h)
        h = keras.layers.LayerNormalization()(h + keras.layers.Dense(64)(widened))
    outputs = keras.layers.Dense(10)(keras.layers.GlobalAveragePooling1D()(h))
    return (x, (x.sum(1) % 10).astype("int32")), keras.Model(inputs, outputs), "classes"


MODELS: dict[str, Callable[[Any, np.random.Generator], tuple[Arrays, Any, str]]] = {
    "mlp": mlp, "wide": wide, "cnn": cnn, "lstm": lstm, "transformer": transformer,
}  # fmt: skip


def _classes(x: np.ndarray, number: int) -> np.ndarray:
    flat = x.reshape(len(x), -1)
    return np.argmax(flat[:, :number] + flat[:, number : 2 * number], 1).astype("int32")


# --- the process ---


def load(backend: str) -> Any:
    """Keras on the back end."""
    os.environ["KERAS_BACKEND"] = "tensorflow" if backend == AUTOGRAPH else backend
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    if backend == AUTOGRAPH:
        import autograph as ag

        ag.compat.install()
    import keras

    return keras


def prepare(keras: Any, name: str, quick: bool) -> tuple[Any, Arrays]:
    """A compiled model that starts from the same weights on every back end, and its data."""
    rng = np.random.default_rng(SEED)
    (x, y), model, kind = MODELS[name](keras, rng)
    # Matrices and the like; vectors keep what their initializers say, which is the same everywhere.
    model.set_weights([_weights(rng, array) if array.ndim > 1 else array for array in model.get_weights()])
    if kind == "classes":
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(optimizer=keras.optimizers.Adam(1e-3), loss=loss, metrics=["accuracy"])
    else:
        model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="mse", metrics=["mae"])
    rows = 128 if quick else len(x)
    return model, (x[:rows], y[:rows])


def _weights(rng: np.random.Generator, like: np.ndarray) -> np.ndarray:
    fan_in = like.size // like.shape[-1]
    return (rng.normal(size=like.shape) / np.sqrt(fan_in)).astype(like.dtype)


def _settle(backend: str) -> None:
    """Waits until nothing is compiled in the background any more, which epochs after the first aren't to measure."""
    if backend == AUTOGRAPH:
        from runtime.engine import wait_for_background

        wait_for_background(120)


def _versions(backend: str) -> dict[str, str]:
    return {backend: str(importlib.import_module(backend).__version__)}


def main() -> None:
    backend, name = sys.argv[1:3]
    keras: Any = load(backend)
    began = processor = 0.0

    class Paced(keras.callbacks.Callback):
        """Lets each epoch but the first wait for a line, and prints what it took."""

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            nonlocal began, processor
            if epoch > 0:
                if not sys.stdin.readline():
                    self.model.stop_training = True
                _settle(backend)
                began, processor = time.perf_counter(), time.process_time()

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            taken = {"seconds": time.perf_counter() - began, "processor": time.process_time() - processor}
            print(json.dumps({**taken, "loss": float(logs["loss"])}), flush=True)

    print(json.dumps({"versions": {"keras": keras.__version__, **_versions(backend)}}), flush=True)
    sys.stdin.readline()
    began, processor = time.perf_counter(), time.process_time()
    model, (x, y) = prepare(keras, name, "--quick" in sys.argv)
    model.fit(x, y, batch_size=32, epochs=10_000, shuffle=False, verbose=0, callbacks=[Paced()])


if __name__ == "__main__":
    main()
