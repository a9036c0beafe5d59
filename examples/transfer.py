"""Transfer learning: a trunk that has learned some shapes, frozen, helps to learn others from a few images each.

A convolutional trunk learns to tell 48 shapes apart: the digits 0 to 5 of scikit-learn's images, turned and mirrored in
eight ways, at random places in larger images. Then the digits 6 to 9 are to be told apart with few examples of each. A
new head on the trunk, whose weights stay as they are, is trained on these; so is a network of the same shape that
starts from nothing. The picture shows how many of the other images each gets right, for more and more examples, and
where the trunk puts digits that it has never seen.

Run it: `python examples/transfer.py [FILE.png]`. It needs Keras, scikit-learn and, for the picture, matplotlib
(`pip install '.[keras,examples]'`).
"""

import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import autograph as ag
from autograph import keras

layers = keras.layers

KNOWN, NEW = range(6), range(6, 10)
ORIENTATIONS = 8
SIZE = 14  # pixels along a side
FEATURES = 64
COUNTS = (1, 2, 4, 8, 16)  # examples of each new digit
REPEATS = 4  # draws of examples


class Digits(NamedTuple):
    """Images of shape [n, SIZE, SIZE, 1], and what they show, counted from 0."""

    images: np.ndarray
    labels: np.ndarray

    def some(self, which: Any) -> "Digits":
        return Digits(self.images[which], self.labels[which])


def read_data(digits: range, seed: int = 0) -> Digits:
    """The images of some digits, each at a random place, in a random order."""
    from sklearn.datasets import load_digits

    found = load_digits()
    random = np.random.default_rng(seed)
    order = random.permutation(np.flatnonzero(np.isin(found.target, digits)))
    images = random.uniform(0.0, 0.3, (len(order), SIZE, SIZE, 1))
    for image, digit in zip(images, found.images[order, :, :, None] / 16.0):
        down, right = random.integers(0, SIZE - 8 + 1, 2)
        image[down : down + 8, right : right + 8] += digit
    return Digits(images.astype(np.float32), (found.target[order] - digits[0]).astype(np.int32))


def read_shapes(seed: int = 0) -> Digits:
    """The known digits in all orientations, each of which is a class of its own, in a random order."""
    ways = [read_data(KNOWN, seed + way) for way in range(ORIENTATIONS)]
    images = np.concatenate([
        np.rot90(digits.images, way % 4, (1, 2))[:, :, :: 1 if way < 4 else -1] for way, digits in enumerate(ways)
    ])  # fmt: skip
    labels = np.concatenate([digits.labels * ORIENTATIONS + way for way, digits in enumerate(ways)])
    order = np.random.default_rng(seed).permutation(len(labels))
    return Digits(images[order], labels[order])


def make_trunk() -> Any:
    """Features [batch, FEATURES] of images."""
    return keras.Sequential([
        layers.Input((SIZE, SIZE, 1)),
        layers.Conv2D(16, 3, activation="relu"),
        layers.Conv2D(32, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(FEATURES, 3, activation="relu"),
        layers.GlobalMaxPooling2D(),
    ], name="trunk")  # fmt: skip


def with_head(trunk: Any, classes: int, rate: float = 3e-3) -> Any:
    """A classifier: the trunk, and on it a layer of its own. rate: how fast it learns."""
    model = keras.Sequential([trunk, layers.Dense(classes, name="head")])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(rate), loss, metrics=["accuracy"])
    return model


def trained_trunk(epochs: int = 6, seed: int = 0) -> tuple[Any, float]:
    """A trunk that has learned the shapes, and the accuracy on images that were held out."""
    keras.utils.set_random_seed(seed)
    shapes = read_shapes(seed)
    train, held_out = shapes.some(slice(500, None)), shapes.some(slice(500))
    trunk = make_trunk()
    model = with_head(trunk, len(KNOWN) * ORIENTATIONS)
    images = ag.data.Dataset.from_tensor_slices(tuple(train)).shuffle(len(train.labels), seed=seed).batch(32)
    model.fit(images.prefetch(ag.data.AUTOTUNE), epochs=epochs, verbose=0, shuffle=False)
    return trunk, float(model.evaluate(*held_out, verbose=0)[1])


def few(digits: Digits, count: int, random: np.random.Generator) -> tuple[Digits, Digits]:
    """`count` examples of each digit, and the other images."""
    places = [np.flatnonzero(digits.labels == label) for label in np.unique(digits.labels)]
    chosen = np.concatenate([random.choice(each, count, replace=False) for each in places])
    others = np.setdiff1d(np.arange(len(digits.labels)), chosen)
    return digits.some(chosen), digits.some(others)


def learn(model: Any, examples: Digits, others: Digits, steps: int = 120) -> float:
    """Trains on a few examples, over and over; the accuracy on the other images."""
    batch = min(len(examples.labels), 32)
    images = ag.data.Dataset.from_tensor_slices(tuple(examples)).shuffle(256, seed=0).repeat()
    model.fit(images.batch(batch), steps_per_epoch=steps, verbose=0, shuffle=False)
    return float(model.evaluate(*others, batch_size=256, verbose=0)[1])


class Comparison(NamedTuple):
    """Accuracies for each of `COUNTS` and each draw, [counts, repeats]."""

    frozen: np.ndarray
    scratch: np.ndarray


def compare(trunk: Any, counts: Any = COUNTS, repeats: int = REPEATS) -> Comparison:
    """How well new digits are learned on the frozen trunk, and from scratch, with the same examples."""
    trunk.trainable = False
    digits = read_data(NEW)
    found = np.zeros((2, len(counts), repeats))
    for row, count in enumerate(counts):
        for draw in range(repeats):
            keras.utils.set_random_seed(100 + draw)
            examples, others = few(digits, count, np.random.default_rng(draw))
            found[0, row, draw] = learn(with_head(trunk, len(NEW), 2e-2), examples, others)
            found[1, row, draw] = learn(with_head(make_trunk(), len(NEW)), examples, others)
        frozen, scratch = found[:, row].mean(1)
        print(f"{count:2} of each: {frozen:.1%} right on the frozen trunk, {scratch:.1%} from scratch")
    return Comparison(*found)


def draw(path: Path, comparison: Comparison, trunk: Any) -> None:
    """Accuracies against the number of examples, and the features of the new digits in two dimensions."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    curves = (("frozen trunk", comparison.frozen, "tab:blue"), ("from scratch", comparison.scratch, "tab:red"))
    for name, values, colour in curves:
        left.plot(COUNTS, 100 * values.mean(1), "o-", color=colour, label=name)
        left.fill_between(COUNTS, 100 * values.min(1), 100 * values.max(1), color=colour, alpha=0.15, lw=0)
    left.set(xscale="log", xlabel="examples of each new digit", ylabel="other images that are right (%)")
    left.set_xticks(COUNTS, [str(count) for count in COUNTS])
    left.minorticks_off()
    left.grid(alpha=0.3)
    left.legend(fontsize=9, frameon=False, loc="lower right")
    left.set_title(f"Means of {REPEATS} draws, and their ranges", fontsize=10, loc="left")

    digits = read_data(NEW)
    features = np.asarray(trunk(ag.constant(digits.images)))
    centred = features - features.mean(0)
    axes = np.linalg.svd(centred, full_matrices=False)[2][:2]
    places = centred @ axes.T
    for label, digit in enumerate(NEW):
        right.scatter(*places[digits.labels == label].T, s=9, label=str(digit), alpha=0.7, lw=0)
    right.set(xlabel="first principal component", ylabel="second")
    right.legend(fontsize=9, frameon=False, markerscale=2)
    right.set_title("Digits that the trunk has never seen, by its features", fontsize=10, loc="left")
    figure.savefig(path, dpi=130)


def main() -> None:
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "transfer.png")
    start = time.perf_counter()
    trunk, accuracy = trained_trunk()
    print(f"the trunk tells {len(KNOWN) * ORIENTATIONS} shapes apart: {accuracy:.1%} of the held-out images are right")
    comparison = compare(trunk)
    print(f"{time.perf_counter() - start:.1f} s")
    try:
        draw(path, comparison, trunk)
    except ImportError:
        print("no picture: that needs matplotlib, `python -m pip install matplotlib`")
    else:
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
