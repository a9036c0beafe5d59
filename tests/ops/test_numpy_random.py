"""`ag.experimental.numpy.random`: NumPy's names and shapes, with TensorFlow's numbers."""

import numpy as np
import pytest

import autograph as ag

random = ag.experimental.numpy.random


@pytest.fixture(autouse=True)
def seeded():
    random.seed(3)
    yield
    ag.random.set_seed(None)


@pytest.mark.parametrize("draw", [
    lambda r: r.randn(2, 3), lambda r: r.rand(4), lambda r: r.rand(), lambda r: r.random(), lambda r: r.random(3),
    lambda r: r.uniform([1, 2], [3, 4]), lambda r: r.uniform(size=(2, 2)), lambda r: r.standard_normal(2),
    lambda r: r.randint(5), lambda r: r.randint(2, 9, 3), lambda r: r.randint(2, 9, (3, 1)),
    lambda r: r.poisson(3.0, 2),
])  # fmt: skip
def test_shapes_and_dtypes_are_numpys(draw):
    theirs = np.asarray(draw(np.random))
    for found in (draw(random), ag.function(lambda: draw(random))()):
        assert (found.shape, found.dtype.as_numpy_dtype) == (theirs.shape, theirs.dtype)


def test_numbers_are_tensorflows():
    """Numbers that TensorFlow 2.21 gave after this seed."""
    assert random.randn(2).numpy() == pytest.approx([-0.423621, 2.271344], abs=1e-6)
    assert random.rand(2).numpy() == pytest.approx([0.556576, 0.992096], abs=1e-6)
    assert random.uniform(1, 2, (2,)).numpy() == pytest.approx([1.825806, 1.038268], abs=1e-6)
    assert random.randint(2, 9, (4,)).numpy().tolist() == [7, 7, 4, 7]
    assert random.poisson(3.0, (4,)).numpy().tolist() == [6, 2, 3, 3]


def test_bounds():
    drawn = random.randint(2, 5, 1000).numpy()
    assert set(drawn.tolist()) == {2, 3, 4}
    assert set(random.randint(2, size=1000, dtype=ag.int32).numpy().tolist()) == {0, 1}
    assert (np.abs(random.uniform(-1, 3, 1000).numpy() - 1) <= 2).all()
    assert random.poisson(4.0, 1000).numpy().mean() == pytest.approx(4, abs=0.3)


def test_refusals():
    with pytest.raises(ValueError, match="gives int32 or int64, not int8"):
        random.randint(5, dtype=np.int8)
    with pytest.raises(ValueError, match="is an integer, got 'a'"):
        random.seed("a")
