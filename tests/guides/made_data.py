"""Made-up data in place of what guides download: in the same shapes and files, but smaller.

It runs on this project and on TensorFlow, so it imports neither.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np


def install(tf: Any) -> None:
    """Replaces the functions that download: of `tf.keras`, `tensorflow_datasets` and pandas."""
    keras = tf.keras
    rng = np.random.default_rng(0)
    keras.datasets.mnist.load_data = keras.datasets.fashion_mnist.load_data = _images(rng, (28, 28), ())
    keras.datasets.cifar10.load_data = _images(rng, (32, 32, 3), (1,))
    keras.datasets.imdb.load_data = _texts(rng)
    keras.utils.plot_model = lambda *arguments, **options: None
    for name in ("MobileNet", "MobileNetV2", "ResNet50", "VGG19", "Xception"):
        setattr(keras.applications, name, _with_random_weights(getattr(keras.applications, name)))
    keras.utils.get_file = _FileMaker(tf, rng).get
    sys.modules["tensorflow_datasets"] = types.SimpleNamespace(  # type: ignore[assignment]
        disable_progress_bar=lambda: None, load=_Datasets(tf, rng).load
    )
    try:
        import pandas
    except ImportError:
        return
    read = pandas.read_csv
    pandas.read_csv = lambda path, **options: read(_table(rng, path), **options)


def _images(rng: Any, shape: tuple[int, ...], columns: tuple[int, ...]) -> Callable[[], Any]:
    def part(count: int) -> Any:
        return rng.integers(0, 256, (count, *shape), np.uint8), rng.integers(0, 10, (count, *columns), np.uint8)

    return lambda: (part(500), part(200))


def _texts(rng: Any) -> Callable[..., Any]:
    def part(num_words: int, count: int) -> Any:
        rows = np.empty(count, object)
        rows[:] = [rng.integers(1, num_words, length).tolist() for length in rng.integers(5, 200, count)]
        return rows, rng.integers(0, 2, count)

    return lambda num_words: (part(num_words, 100), part(num_words, 50))


def _with_random_weights(make: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given, **options: make(*given, **options | {"weights": None})


class _Datasets:
    """`tensorflow_datasets`, of two data sets."""

    shapes = {"mnist": ((28, 28, 1), 10), "cats_vs_dogs": ((160, 150, 3), 2)}

    def __init__(self, tf: Any, rng: Any) -> None:
        self._tf, self._rng = tf, rng

    def load(
        self, name: str, split: Any = None, batch_size: int | None = None, as_supervised: bool = False,
        with_info: bool = False, **options: Any,
    ) -> Any:  # fmt: skip
        made: Any
        if isinstance(split, list):
            made = [self._part(name, batch_size) for _ in split]
        elif split is None:
            made = {part: self._part(name, batch_size) for part in ("train", "test")}
        else:
            made = self._part(name, batch_size)
        return (made, types.SimpleNamespace(name=name)) if with_info else made

    def _part(self, name: str, batch_size: int | None) -> Any:
        shape, classes = self.shapes[name]
        count = 600 if name == "mnist" else 40
        images, labels = self._rng.integers(0, 256, (count, *shape), np.uint8), self._rng.integers(0, classes, count)
        if batch_size == -1:
            return self._tf.constant(images), self._tf.constant(labels)
        made = self._tf.data.Dataset.from_tensor_slices((images, labels))
        return made if batch_size is None else made.batch(batch_size)


def _table(rng: Any, path: Any) -> Any:
    """A file of made-up columns in place of an address."""
    if not str(path).startswith("http"):
        return path
    file = Path(str(path).rpartition("/")[2])
    if file.name == "auto-mpg.data":
        rows = (
            f"{n(9, 46):.1f} {int(n(3, 9))} {n(68, 455):.1f} {n(46, 230):.1f} {n(1600, 5100):.0f} {n(8, 25):.1f} "
            f'{int(n(70, 83))} {int(n(1, 4))}\t"a car"'
            for _ in range(300)
            for n in [rng.uniform]
        )
    else:
        rows = (
            f"{number},{rng.choice(['M', 'B'])},{','.join(f'{value:.4f}' for value in rng.uniform(0, 30, 30))}"
            for number in range(300)
        )
    return _write(file, rows)


def _write(file: Path, lines: Iterable[str]) -> Path:
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return file


class _FileMaker:
    """`keras.utils.get_file`: writes the file where it is asked for first, into the working folder."""

    def __init__(self, tf: Any, rng: Any) -> None:
        self._tf, self._rng = tf, rng

    def get(self, fname: str | None = None, origin: str = "", **options: Any) -> str:
        name = origin.rpartition("/")[2]
        file = Path(name).absolute()
        makers = {
            "cats_and_dogs_filtered.zip": self._cats_and_dogs,
            "flower_photos.tgz": self._flowers,
            "fsns-00000-of-00001": self._records,
            "train.csv": self._passengers,
            "creditcard.zip": self._payments,
            "grace_hopper.jpg": self._picture,
            "ImageNetLabels.txt": lambda file: _write(file, (f"label {number}" for number in range(1001))),
        }
        make = makers.get(name, self._poem)
        return str(make(file))

    def _picture(self, file: Path) -> Path:
        pixels = self._rng.integers(0, 256, (60, 50, 3), np.uint8)
        file.write_bytes(self._tf.io.encode_jpeg(pixels).numpy())
        return file

    def _flowers(self, file: Path) -> Path:
        folder = file.with_suffix("")
        for kind in ("daisy", "dandelion", "roses", "sunflowers", "tulips"):
            (folder / kind).mkdir(parents=True, exist_ok=True)
            for number in range(20):
                self._picture(folder / kind / f"{number}.jpg")
        _write(folder / "LICENSE.txt", ["made up"])
        return folder

    def _cats_and_dogs(self, file: Path) -> Path:
        """Six batches of 32 to validate with: a fifth of them, one, is set aside."""
        for part, count in (("train", 32), ("validation", 96)):
            for kind in ("cats", "dogs"):
                folder = file.with_suffix("") / part / kind
                folder.mkdir(parents=True, exist_ok=True)
                for number in range(count):
                    self._picture(folder / f"{number}.jpg")
        return file

    def _records(self, file: Path) -> Path:
        train = self._tf.train
        with self._tf.io.TFRecordWriter(str(file)) as writer:
            for number in range(20):
                feature = {
                    "image/encoded": train.Feature(
                        bytes_list=train.BytesList(
                            value=[self._tf.io.encode_png(self._rng.integers(0, 256, (15, 60, 3), np.uint8)).numpy()]
                        )
                    ),
                    "image/text": train.Feature(bytes_list=train.BytesList(value=[f"Rue {number}".encode()])),
                }
                writer.write(train.Example(features=train.Features(feature=feature)).SerializeToString())
        return file

    def _passengers(self, file: Path) -> Path:
        rng = self._rng
        head = "survived,sex,age,n_siblings_spouses,parch,fare,class,deck,embark_town,alone"
        rows = (
            f"{rng.integers(2)},{rng.choice(['male', 'female'])},{rng.integers(1, 80)}.0,{rng.integers(3)},"
            f"{rng.integers(3)},{rng.uniform(5, 100):.4f},{rng.choice(['First', 'Second', 'Third'])},unknown,"
            f"{rng.choice(['Southampton', 'Cherbourg'])},{rng.choice(['y', 'n'])}"
            for _ in range(627)
        )
        return _write(file, [head, *rows])

    def _payments(self, file: Path) -> Path:
        columns = [f"V{number}" for number in range(1, 29)]
        rows = (
            f"{number},{','.join(f'{value:.4f}' for value in self._rng.normal(size=28))},1.5,{int(number % 20 == 0)}"
            for number in range(12_000)
        )
        _write(file.with_suffix(".csv"), [",".join(["Time", *columns, "Amount", "Class"]), *rows])
        return file

    def _poem(self, file: Path) -> Path:
        return _write(file, (f"\ufeffline {number} of {file.name}" for number in range(50)))
