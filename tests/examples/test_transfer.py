"""examples/transfer.py: the data, that the trunk stays as it is, the comparison, the picture."""

import importlib.util

import numpy as np
import pytest

if importlib.util.find_spec("keras") is None:
    pytest.skip("needs Keras: pip install -e '.[keras]'", allow_module_level=True)
pytest.importorskip("sklearn")

import autograph as ag
from examples import transfer

pytestmark = pytest.mark.usefixtures("tensorflow")


def test_known_and_new_digits_are_others():
    shapes, new = transfer.read_shapes(), transfer.read_data(transfer.NEW)
    assert shapes.images.shape[1:] == new.images.shape[1:] == (transfer.SIZE, transfer.SIZE, 1)
    assert set(shapes.labels) == set(range(48)) and set(new.labels) == set(range(4))
    assert len(shapes.labels) == 8 * (1797 - len(new.labels))


def test_examples_and_the_other_images_are_all_of_them():
    digits = transfer.read_data(transfer.NEW)
    examples, others = transfer.few(digits, 3, np.random.default_rng(0))
    assert sorted(examples.labels) == sorted([*range(4)] * 3)
    together = np.concatenate([examples.images, others.images]).reshape(len(digits.labels), -1)
    expected = digits.images.reshape(len(digits.labels), -1)
    assert (together[np.lexsort(together.T)] == expected[np.lexsort(expected.T)]).all()


def test_a_frozen_trunk_stays_as_it_is():
    trunk = transfer.make_trunk()
    trunk.trainable = False
    before = [variable.numpy() for variable in trunk.variables]
    examples, others = transfer.few(transfer.read_data(transfer.NEW), 4, np.random.default_rng(0))
    model = transfer.with_head(trunk, 4, 2e-2)
    accuracy = transfer.learn(model, examples, others, steps=5)
    assert 0.0 <= accuracy <= 1.0
    for variable, values in zip(trunk.variables, before):
        np.testing.assert_array_equal(variable.numpy(), values)
    assert len(model.trainable_variables) == 2


def test_the_trunk_helps(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    trunk, accuracy = transfer.trained_trunk(epochs=2)
    assert accuracy > 0.3  # of 48 shapes
    comparison = transfer.compare(trunk, counts=(4,), repeats=2)
    assert comparison.frozen.shape == comparison.scratch.shape == (1, 2)
    assert " 4 of each" in capsys.readouterr().out
    assert comparison.frozen.mean() > comparison.scratch.mean()
    wide = transfer.Comparison(*(np.repeat(values, len(transfer.COUNTS), 0) for values in comparison))
    transfer.draw(tmp_path / "transfer.png", wide, trunk)
    assert (tmp_path / "transfer.png").read_bytes().startswith(b"\x89PNG")
    assert np.asarray(trunk(ag.constant(transfer.read_data(transfer.NEW).images[:2]))).shape == (2, transfer.FEATURES)
