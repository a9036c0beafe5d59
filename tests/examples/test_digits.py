"""examples/digits.py: the data, the pipeline, that it learns, the picture."""

import importlib.util

import numpy as np
import pytest

if importlib.util.find_spec("keras") is None:
    pytest.skip("needs Keras: pip install -e '.[keras]'", allow_module_level=True)
pytest.importorskip("sklearn")

from examples import digits

pytestmark = pytest.mark.usefixtures("tensorflow")


def test_images_to_learn_from_and_to_test_with_are_others():
    learned, held_out = digits.read_data()
    assert learned.images.shape == (1797 - digits.HELD_OUT, 8, 8, 1) and learned.images.dtype == np.float32
    assert held_out.images.shape == (digits.HELD_OUT, 8, 8, 1)
    assert learned.images.min() == 0.0 and learned.images.max() == 1.0
    assert set(learned.labels) == set(held_out.labels) == set(range(10))


def test_an_epoch_has_each_image_once_moved_by_up_to_a_pixel():
    learned, _ = digits.read_data()
    some = digits.Digits(learned.images[:70], learned.labels[:70])
    seen = []
    for images, labels in digits.batches(some):
        assert images.shape[1:] == [8, 8, 1]
        seen += zip(images.numpy(), labels.numpy())
    assert sorted(label for _, label in seen) == sorted(some.labels)
    padded = np.pad(some.images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    for image, label in seen:
        windows = [padded[some.labels == label, i : i + 8, j : j + 8] for i in range(3) for j in range(3)]
        assert any((window == image).all((1, 2, 3)).any() for window in windows)


def test_it_learns_and_is_drawn(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    model, history, held_out = digits.train(tmp_path / "digits.png", epochs=4)
    assert history["val_accuracy"][-1] > 0.85 > 0.7 > history["val_accuracy"][0]
    assert history["loss"] == sorted(history["loss"], reverse=True)
    assert (tmp_path / "digits.png").read_bytes().startswith(b"\x89PNG")
    wrong = (model.predict(held_out.images, verbose=0).argmax(1) != held_out.labels).sum()
    assert f"{wrong} of 450 wrong" in capsys.readouterr().out.splitlines()[-1]
