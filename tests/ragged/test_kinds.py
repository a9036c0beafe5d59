"""What functions make of tensors that aren't dense: dtypes, shapes and sizes, and conversions between the kinds."""

import numpy as np
import pytest

import autograph as ag

SPARSE = ag.sparse.from_dense([[1, 0], [0, 2], [0, 0]])
RAGGED = ag.ragged.constant([[1.5, 2.5], [3.5]])
SLICES = ag.IndexedSlices(
    ag.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 5.0]]), ag.constant([0, 2, 2]), ag.constant([4, 2])
)
SUMS = [[1, 2], [0, 0], [8, 9], [0, 0]]


def both_ways(f, *args):
    """What a function gives, eager; traced it must give the same."""
    eager, traced = f(*args), ag.function(f)(*args)
    ag.nest.assert_same_structure(eager, traced, expand_composites=True)
    for a, b in zip(ag.nest.flatten(eager, True), ag.nest.flatten(traced, True)):
        np.testing.assert_array_equal(a, b)
        assert a.dtype is b.dtype
    return eager


def test_cast():
    assert both_ways(lambda x: ag.cast(x, ag.float64), SPARSE).dtype is ag.float64
    assert both_ways(lambda x: ag.cast(x, ag.int32), RAGGED).to_list() == [[1, 2], [3]]
    found = both_ways(lambda x: ag.cast(x, dtype=ag.int32), SLICES)
    assert found.values.numpy().tolist() == [[1, 2], [3, 4], [5, 5]] and found.indices.numpy().tolist() == [0, 2, 2]
    assert ag.cast(x=SPARSE, dtype=ag.float32).dense_shape.numpy().tolist() == [3, 2]


@pytest.mark.parametrize(("value", "shape"), [(SPARSE, [3, 2]), (SLICES, [4, 2])])
@pytest.mark.parametrize("dtype", [ag.int32, ag.int64])
def test_shape_size_and_rank(value, shape, dtype):
    found = both_ways(lambda x: ag.shape(x, out_type=dtype), value)
    assert found.numpy().tolist() == shape and found.dtype is dtype
    size = both_ways(lambda x: ag.size(x, out_type=dtype), value)
    assert int(size) == shape[0] * shape[1] and size.dtype is dtype
    assert int(both_ways(ag.rank, value)) == 2


@pytest.mark.parametrize(
    ("lengths", "divided", "inner"),
    [
        ([4, (2, 1, 0, 8), 12], None, [11, 12]),
        ([2, (1, 2), (1, 2, 3), 4], None, [6, 4]),
        ([2, 2, (1, 2, 3, 4)], None, [10]),
        ([2, 3], None, [2, 3]),
        ([2, 3, 4], 1, [6, 4]),
        ([2, (1, 2), 3], 2, [9]),
        ([], None, []),
    ],
)
def test_shapes_from_lengths(lengths, divided, inner):
    shape = ag.experimental.DynamicRaggedShape.from_lengths(lengths, divided)
    assert shape.static_lengths() == lengths and shape.inner_shape.numpy().tolist() == inner
    assert shape.num_row_partitions == len(lengths) - len(inner) and shape.dtype is ag.int64


def test_a_tensor_of_a_shape_from_lengths():
    shape = ag.experimental.DynamicRaggedShape.from_lengths([2, (0, 2)], dtype=ag.int32)
    assert shape.dtype is ag.int32 and ag.ones(shape).to_list() == [[], [1, 1]]


@pytest.mark.parametrize(
    ("lengths", "divided", "message"),
    [
        ([(1, 2)], None, "can't be divided into 0 dimensions of rows"),
        ([2, (1, 2), 3], 0, "can't be divided into 0 dimensions of rows"),
        ([2, 3], 2, "can't be divided into 2 dimensions of rows"),
        ([2, (1, 2, 3)], None, "dimension 1 of .* has the lengths of 3 rows, but there are 2"),
    ],
)
def test_lengths_that_do_not_fit(lengths, divided, message):
    with pytest.raises(ValueError, match=message):
        ag.experimental.DynamicRaggedShape.from_lengths(lengths, divided)


def test_shapes_of_ragged_tensors():
    shape = both_ways(ag.shape, RAGGED)
    assert repr(shape) == "<DynamicRaggedShape lengths=[2, (2, 1)] num_row_partitions=1>"
    assert (shape.rank, shape.inner_rank, shape.num_row_partitions, shape.dtype) == (2, 1, 1, ag.int32)
    assert int(shape[0]) == 2 and shape.is_uniform(0) and not shape.is_uniform(1)
    assert shape.static_lengths(ragged_lengths=False) == [2, None]
    for wrong, error in ((1, ValueError), (-1, ValueError), (2, IndexError)):
        with pytest.raises(error):
            shape[wrong]
    assert int(ag.size(RAGGED)) == 3
    assert bool(shape == ag.shape(RAGGED, ag.int64)) and not bool(shape == ag.shape(ag.ragged.constant([[1], [2]])))
    assert ag.zeros(shape).to_list() == [[0, 0], [0]] and ag.fill(shape, 7).to_list() == [[7, 7], [7]]

    rows = ag.RaggedTensor.from_row_lengths(ag.ones([3, 4]), [2, 1])
    assert ag.shape(rows).static_lengths() == [2, (2, 1), 4] and int(ag.shape(rows)[-1]) == 4
    assert ag.shape(rows)[:2].static_lengths() == [2, (2, 1)] and ag.shape(rows)[:1].static_lengths() == [2]
    assert both_ways(lambda x: ag.ones(ag.shape(x)), rows).shape.as_list() == [2, None, 4]
    even = ag.RaggedTensor.from_uniform_row_length(ag.range(6), 3)
    assert int(ag.shape(even)[1]) == 3 and ag.shape(even).is_uniform(1)


def test_indexed_slices_become_tensors():
    np.testing.assert_array_equal(both_ways(ag.convert_to_tensor, SLICES), SUMS)
    np.testing.assert_array_equal(both_ways(lambda x: x + 1.0, SLICES.__tf_tensor__()), np.add(SUMS, 1))
    np.testing.assert_array_equal(both_ways(lambda x: ag.add(x, 1.0), SLICES), np.add(SUMS, 1))
    np.testing.assert_array_equal(both_ways(lambda x: ag.matmul(x, ag.ones([2, 1])), SLICES), np.sum(SUMS, 1)[:, None])
    np.testing.assert_array_equal((-SLICES).values, -SLICES.values.numpy())
    with pytest.raises(ValueError, match="float64"):
        ag.convert_to_tensor(SLICES, ag.float64)
    with pytest.raises(ValueError, match="dense_shape"):
        ag.convert_to_tensor(ag.IndexedSlices([[1.0]], [0]))
    values = ag.Variable([[1.0], [2.0]])
    with ag.GradientTape() as tape:
        y = ag.reduce_sum(ag.square(ag.convert_to_tensor(ag.IndexedSlices(values * 1.0, [1, 1], [3, 1]))))
    np.testing.assert_array_equal(tape.gradient(y, values), [[6.0], [6.0]])


def test_composites_are_leaves_and_tensors():
    array = ag.TensorArray(ag.float32, 2)
    for value in (SPARSE, RAGGED, SLICES, array):
        assert ag.nest.flatten([value]) == [value] and ag.nest.map_structure(type, value) is type(value)
    assert all(map(ag.is_tensor, (SPARSE, RAGGED, SLICES, ag.constant(1), ag.Variable(1))))
    assert not any(map(ag.is_tensor, (array, 1, [1], np.ones(1), ag.TensorSpec([]), RAGGED._type_spec)))


@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1, -2, -3])
def test_sparse_expand_dims(axis):
    found = both_ways(lambda x: ag.sparse.expand_dims(x, axis), SPARSE)
    expected = np.expand_dims(ag.sparse.to_dense(SPARSE), -1 if axis is None else axis)
    np.testing.assert_array_equal(ag.sparse.to_dense(found), expected)
    assert found.shape.as_list() == list(expected.shape)


def test_sparse_expand_dims_refuses_other_axes():
    for axis in (3, -4):
        with pytest.raises(ag.errors.InvalidArgumentError, match="axis"):
            ag.sparse.expand_dims(SPARSE, axis)


@pytest.mark.parametrize("length", [3, None])
def test_diagonals_of_booleans(length):
    diagonal = ag.constant([True, False, True])
    f = ag.function(lambda x: ag.linalg.diag(x), input_signature=[ag.TensorSpec([length], ag.bool)])
    for made in (ag.linalg.diag(diagonal), f(diagonal)):
        np.testing.assert_array_equal(made, np.diag([True, False, True]))
    np.testing.assert_array_equal(ag.linalg.diag([True], k=1), [[False, True], [False, False]])
    np.testing.assert_array_equal(ag.linalg.diag([False], k=1, padding_value=True), [[True, False], [True, True]])
    corners = ag.linalg.diag_part([[True, True], [True, True]], k=(0, 1))
    np.testing.assert_array_equal(corners, [[False, True], [True, True]])
    np.testing.assert_array_equal(ag.linalg.diag(["a"], k=1), [[b"", b"a"], [b"", b""]])
