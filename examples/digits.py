"""Train an image classifier with Keras and watch it: the losses, the accuracy, and the digits that it gets wrong.

The images are the 1797 handwritten digits of 8 x 8 pixels that come with scikit-learn (E. Alpaydin and C. Kaynak, 1998,
UCI repository). A pipeline of `ag.data` shuffles them, moves each by up to a pixel, and makes the batches ahead of the
training. The network is small: two convolutions, a hidden layer. It learns from three quarters of the images; the
others tell how good it is.

Run it: `python examples/digits.py [FILE.png]`, and keep the picture open in a viewer that reloads it: it is drawn anew
after each epoch. It needs Keras, scikit-learn and matplotlib (`pip install '.[keras,examples]'`).
"""

import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import autograph as ag
from autograph import keras

layers = keras.layers

EPOCHS = 15
BATCH = 32
HELD_OUT = 450  # images


class Digits(NamedTuple):
    """Images of shape [n, 8, 8, 1], between 0 and 1, and what they show."""

    images: np.ndarray
    labels: np.ndarray


def read_data(seed: int = 0) -> tuple[Digits, Digits]:
    """The images to learn from, and those held out."""
    from sklearn.datasets import load_digits

    found = load_digits()
    order = np.random.default_rng(seed).permutation(len(found.target))
    images = (found.images[order, :, :, None] / 16.0).astype(np.float32)
    labels = found.target[order].astype(np.int32)
    return Digits(images[HELD_OUT:], labels[HELD_OUT:]), Digits(images[:HELD_OUT], labels[:HELD_OUT])


def moved(image, label):
    """The image, moved by up to a pixel in each direction: the digit is the same."""
    padded = ag.pad(image, [[1, 1], [1, 1], [0, 0]])
    down, right = ag.unstack(ag.random.uniform([2], 0, 3, ag.int32))
    return ag.slice(padded, [down, right, 0], [8, 8, 1]), label


def batches(digits: Digits, seed: int = 0) -> Any:
    """What an epoch of training sees, in another order each time."""
    images = ag.data.Dataset.from_tensor_slices(tuple(digits))
    return images.shuffle(len(digits.labels), seed=seed).map(moved).batch(BATCH).prefetch(ag.data.AUTOTUNE)


def make_model() -> Any:
    model = keras.Sequential(
        [
            layers.Input((8, 8, 1)),
            layers.Conv2D(16, 3, padding="same", activation="relu"),
            layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dropout(0.3),
            layers.Dense(64, activation="relu"),
            layers.Dense(10),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(2e-3), loss, metrics=["accuracy"])
    return model


class Watch(keras.callbacks.Callback):
    """Draws how the training goes after each epoch; `history` has the numbers of all epochs so far."""

    def __init__(self, path: Path | None, held_out: Digits) -> None:
        super().__init__()
        self.path, self.held_out = path, held_out
        self.history: dict[str, list[float]] = {}

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        for name, value in (logs or {}).items():
            self.history.setdefault(name, []).append(float(value))
        logits = self.model.predict(self.held_out.images, verbose=0)
        wrong = np.flatnonzero(logits.argmax(1) != self.held_out.labels)
        print(
            f"epoch {epoch + 1:2}: loss {logs['loss']:.3f}, held out {logs['val_loss']:.3f}; accuracy "
            f"{logs['accuracy']:.3f}, held out {logs['val_accuracy']:.3f}; {len(wrong)} of {len(logits)} wrong"
        )
        if self.path is not None:
            draw(self.path, self.history, self.held_out, logits)


def draw(path: Path, history: dict[str, list[float]], held_out: Digits, logits: np.ndarray) -> None:
    """Losses and accuracy of the epochs so far, and the mistakes of which the network is surest."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.2), layout="constrained")
    parts: Any = figure.subfigures(1, 2, width_ratios=[1, 1.25])
    left, right = parts
    upper, lower = left.subplots(2, 1, sharex=True)
    epochs = np.arange(1, len(history["loss"]) + 1)
    for axes, name, what in ((upper, "loss", "loss"), (lower, "accuracy", "wrong")):
        for key, label, colour in (
            (name, "in training: moved, with dropout", "tab:blue"),
            (f"val_{name}", "held out", "tab:red"),
        ):
            values = np.array(history[key])
            axes.plot(epochs, values if what == "loss" else 1.0 - values, "o-", color=colour, ms=3, lw=1.2, label=label)
        axes.set_yscale("log")
        axes.set_ylabel("cross entropy" if what == "loss" else "share that is wrong")
        axes.grid(alpha=0.3)
    upper.legend(fontsize=8, frameon=False)
    lower.set_xlabel("epoch")
    lower.set_xlim(0.5, max(EPOCHS, len(epochs)) + 0.5)
    lower.xaxis.get_major_locator().set_params(integer=True)

    chances = np.exp(logits - logits.max(1, keepdims=True))
    chances /= chances.sum(1, keepdims=True)
    guesses = logits.argmax(1)
    wrong = np.flatnonzero(guesses != held_out.labels)
    wrong = wrong[np.argsort(-chances[wrong, guesses[wrong]])]
    right.suptitle(f"{len(wrong)} of {len(logits)} held-out digits are wrong", fontsize=10)
    rows = min(max(-(-len(wrong) // 5), 1), 3)
    places = right.subplots(rows, 5, squeeze=False).ravel()
    for axes in places:
        axes.set_axis_off()
    for axes, number in zip(places, wrong):
        axes.imshow(held_out.images[number, :, :, 0], cmap="gray_r", vmin=0, vmax=1)
        guess = guesses[number]
        axes.set_title(f"{guess} ({chances[number, guess]:.0%}), is {held_out.labels[number]}", fontsize=8)
    figure.savefig(path, dpi=130)


def train(path: Path | None = None, epochs: int = EPOCHS, seed: int = 0) -> tuple[Any, dict[str, list[float]], Digits]:
    """The trained model, the numbers of its epochs, and the images held out. path: of the picture; None: without."""
    keras.utils.set_random_seed(seed)
    learned, held_out = read_data(seed)
    model, watch = make_model(), Watch(path, held_out)
    model.fit(
        batches(learned, seed),
        validation_data=tuple(held_out),
        epochs=epochs,
        verbose=0,
        shuffle=False,
        callbacks=[watch],
    )
    return model, watch.history, held_out


def main() -> None:
    path: Path | None = Path(sys.argv[1] if len(sys.argv) > 1 else "digits.png")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        print("no picture: that needs matplotlib, `python -m pip install matplotlib`")
        path = None
    start = time.perf_counter()
    train(path)
    print(f"{time.perf_counter() - start:.1f} s" + (f"; wrote {path}" if path else ""))


if __name__ == "__main__":
    main()
