"""Array ops made of several rows: values by hand or NumPy, gradients and unknown dimensions by the harness."""

import numpy as np
import pytest

import autograph as ag
from tests.ops import test_composed as harness

F = harness.f

CASES = {
    "repeat": (lambda x: ag.repeat(x, [2, 0, 1], axis=0), F(3, 2)), "repeat all": (lambda x: ag.repeat(x, 2), F(2, 2)),
    "space_to_batch": (lambda x: ag.space_to_batch(x, [2, 2], [[0, 0], [1, 1]]), F(1, 2, 4, 1)),
    "batch_to_space": (lambda x: ag.batch_to_space(x, [2, 2], [[0, 0], [1, 0]]), F(4, 1, 2, 2)),
    "space_to_depth": (lambda x: ag.nn.space_to_depth(x, 2), F(1, 4, 2, 1)),
    "depth_to_space": (lambda x: ag.nn.depth_to_space(x, 2), F(1, 2, 1, 4)),
    "dynamic_partition": (lambda x: ag.dynamic_partition(x, [1, 0, 1], 2)[1], F(3, 2)),
    "dynamic_stitch": (lambda x, y: ag.dynamic_stitch([[0, 2], [1]], [x, y]), F(2, 2), F(1, 2)),
    "reverse_sequence": (lambda x: ag.reverse_sequence(x, [2, 3, 0], seq_axis=1, batch_axis=0), F(3, 3, 2)),
    "gather_nd batch": (lambda x: ag.gather_nd(x, [[[1]], [[0]]], batch_dims=1), F(2, 3, 2)),
    "scatter sub": (lambda x, u: ag.tensor_scatter_nd_sub(x, [[1], [1]], u), F(3), F(2)),
    "linspace of tensors": (lambda a, b: ag.linspace(a, b, 4), F(2), F(2)),
    "linspace last": (lambda a, b: ag.linspace(a, b, 3, axis=-1), F(2), F(2)),
    "gather batch": (lambda x: ag.gather(x, [[1, 0], [2, 2]], axis=1, batch_dims=1), F(2, 3)),
    "boolean_mask": (lambda x: ag.boolean_mask(x, [True, False, True]), F(3, 2)),
    "roll": (lambda x: ag.roll(x, [1, -1], [0, 1]), F(3, 2)), "identity_n": (lambda x: ag.identity_n([x])[0], F(2)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_gradient(name, monkeypatch):
    monkeypatch.setattr(harness, "CASES", CASES)
    harness.test_gradient(name)


@pytest.mark.parametrize("name", CASES)
def test_staged_with_unknown_dimensions(name, monkeypatch):
    monkeypatch.setattr(harness, "CASES", CASES)
    harness.test_staged_with_unknown_dimensions(name)


def both(function, *arguments):
    """The value, eager and staged, which must be the same."""
    eager = function(*[ag.constant(a) for a in arguments])
    staged = ag.function(function, autograph=False, jit_compile=False)(*[ag.constant(a) for a in arguments])
    np.testing.assert_array_equal(np.asarray(eager), np.asarray(staged))
    return eager.numpy().tolist()


def test_repeat():
    assert both(lambda x: ag.repeat(x, repeats=[3, 1]), [1, 2]) == [1, 1, 1, 2]
    assert both(lambda x, n: ag.repeat(x, n, axis=1), [[1, 2]], 2) == [[1, 1, 2, 2]]
    with pytest.raises(ag.errors.InvalidArgumentError, match="negative"):
        ag.repeat([1, 2], [1, -1])
    with pytest.raises(ag.errors.InvalidArgumentError, match="negative"):
        ag.repeat([1, 2], -1)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_repeat_with_a_known_count_keeps_what_is_known_of_the_shape(count):
    @ag.function(input_signature=[ag.TensorSpec([None, None, 2])])
    def repeated(x):
        found = [ag.repeat(x, count, axis) for axis in range(3)]
        assert [each.shape.as_list() for each in found] == [[None, None, 2], [None, None, 2], [None, None, 2 * count]]
        assert ag.repeat(ag.reshape(x, [ag.shape(x)[0], 1, -1]), count, 1).shape[1] == count
        return found

    x = np.arange(12.0, dtype=np.float32).reshape(2, 3, 2)
    for axis, each in enumerate(repeated(x)):
        np.testing.assert_array_equal(each, np.repeat(x, count, axis))


def test_sequence_mask():
    assert both(lambda n: ag.sequence_mask(n, 3, ag.int32), [1, 3, 0]) == [[1, 0, 0], [1, 1, 1], [0, 0, 0]]
    assert both(lambda n: ag.sequence_mask(n), [[1], [2]]) == [[[True, False]], [[True, True]]]


def test_blocks_of_space():
    x = np.arange(1, 17).reshape(1, 4, 4, 1)
    found = ag.space_to_batch(x, [2, 2], [[0, 0], [0, 0]])
    assert found.shape == (4, 2, 2, 1)
    assert found.numpy()[:, :, :, 0].tolist() == [[[1, 3], [9, 11]], [[2, 4], [10, 12]], [[5, 7], [13, 15]],
                                                  [[6, 8], [14, 16]]]  # fmt: skip
    np.testing.assert_array_equal(ag.batch_to_space(found, [2, 2], [[0, 0], [0, 0]]).numpy(), x)
    with pytest.raises(ag.errors.InvalidArgumentError, match="not divisible"):
        ag.space_to_batch(x, [3, 1], [[0, 0], [0, 0]])


def test_partition_and_stitch():
    parts = ag.dynamic_partition([10, 20, 30, 40], [0, 1, 1, 0], 2)
    assert [p.numpy().tolist() for p in parts] == [[10, 40], [20, 30]]
    assert both(lambda a, b: ag.dynamic_stitch([[0, 3], [1, 2]], [a, b]), [10, 40], [20, 30]) == [10, 20, 30, 40]
    assert both(lambda a: ag.dynamic_stitch([[0, 0]], [a]), [1, 2]) == [2]
    with pytest.raises(ag.errors.InvalidArgumentError, match=r"partitions must be in \[0, 2\)"):
        ag.dynamic_partition([1], [2], 2)


def test_bitcast():
    assert both(lambda x: ag.bitcast(x, ag.int32), [1.0, -2.0]) == [0x3F800000, -0x40000000]
    assert both(lambda x: ag.bitcast(x, ag.uint8), np.int32([258])) == [[2, 1, 0, 0]]
    assert both(lambda x: ag.bitcast(x, ag.uint16), np.uint8([[2, 1], [0, 1]])) == [258, 256]
    with pytest.raises((ValueError, ag.errors.InvalidArgumentError), match="Cannot bitcast"):
        ag.bitcast(np.uint8([1, 2, 3]), ag.uint16)


def test_saturate_cast():
    assert both(lambda x: ag.saturate_cast(x, ag.uint8), [-5.0, 300.5, 7.9]) == [0, 255, 7]
    assert both(lambda x: ag.saturate_cast(x, ag.int32), [3e9, -3e9]) == [2147483520, -2147483648]
    assert both(lambda x: ag.saturate_cast(x, ag.int8), [300, -300, 5]) == [127, -128, 5]


def test_scatter_extremes():
    assert both(lambda x: ag.tensor_scatter_nd_max(x, [[1], [0]], [5, 0]), [1, 2, 3]) == [1, 5, 3]
    assert both(lambda x: ag.tensor_scatter_nd_min(x, [[1], [0]], [5, 0]), [1, 2, 3]) == [0, 2, 3]
    assert both(lambda x: ag.tensor_scatter_nd_sub(x, [[1]], np.uint8([3])), np.uint8([1, 2, 3])) == [1, 255, 3]


def test_shapes():
    assert [s.numpy().tolist() for s in ag.shape_n([[1, 2], [[3]]])] == [[2], [1, 1]]
    assert both(ag.broadcast_dynamic_shape, [3, 1], [2]) == [3, 2]
    assert (
        both(lambda i: ag.unravel_index(i, [3, 3]), [2, 5, 7]) == np.stack(np.unravel_index([2, 5, 7], (3, 3))).tolist()
    )
