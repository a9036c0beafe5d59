"""Sparse tensors: each operation gives what it gives on the whole tensors."""

import numpy as np
import pytest

import autograph as ag

A = np.array([[1, 0, 2], [0, 0, 3]])
B = np.array([[0, 5, 1], [1, 0, 0]])


def sparse(array):
    return ag.sparse.from_dense(ag.constant(array, ag.int32))


def dense(value):
    return ag.sparse.to_dense(value).numpy()


def test_making_and_facts():
    made = ag.SparseTensor(indices=[[0, 0], [1, 2]], values=[1, 2], dense_shape=[3, 4])
    assert (made.dtype, made.shape.as_list()) == (ag.int32, [3, 4])
    assert dense(made).tolist() == [[1, 0, 0, 0], [0, 0, 2, 0], [0, 0, 0, 0]]
    assert ag.sparse.to_dense(made, -1).numpy()[2].tolist() == [-1] * 4
    assert str(made) == (
        "SparseTensor(indices=tf.Tensor(\n[[0 0]\n [1 2]], shape=(2, 2), dtype=int64), values=tf.Tensor([1 2], "
        "shape=(2,), dtype=int32), dense_shape=tf.Tensor([3 4], shape=(2,), dtype=int64))"
    )
    assert sparse(A).indices.numpy().tolist() == [[0, 0], [0, 2], [1, 2]]
    words = ag.SparseTensor([[0], [2]], ["a", "b"], [3])
    assert dense(words).tolist() == [b"a", b"", b"b"]
    assert dense(ag.SparseTensor([], ag.constant([], ag.float32), [2])).tolist() == [0, 0]
    with pytest.raises(ValueError):
        ag.SparseTensor([[0, 0]], [1, 2], [3, 4])
    with pytest.raises(ValueError, match="rank"):
        ag.SparseTensor([0], [1], [3])


@pytest.mark.parametrize("traced", [False, True])
def test_operations(traced):
    def run(function, *args):
        return (ag.function(function, jit_compile=False) if traced else function)(*args)

    a, b = sparse(A), sparse(B)
    np.testing.assert_array_equal(dense(run(ag.sparse.add, a, b)), A + B)
    np.testing.assert_array_equal(run(ag.sparse.add, a, ag.constant(B, ag.int32)), A + B)
    np.testing.assert_array_equal(run(lambda x: ag.sparse.reduce_sum(x, axis=0), a), A.sum(0))
    np.testing.assert_array_equal(run(lambda x: ag.sparse.reduce_sum(x), a), A.sum())
    np.testing.assert_array_equal(dense(run(lambda x: ag.sparse.transpose(x), a)), A.T)
    np.testing.assert_array_equal(dense(run(lambda x: x * 3, a)), A * 3)
    np.testing.assert_array_equal(dense(run(lambda x: x * ag.constant([[2], [5]]), a)), A * [[2], [5]])
    np.testing.assert_array_equal(dense(run(lambda x: -x, a)), -A)
    matrix = ag.constant(np.arange(6).reshape(3, 2), ag.int32)
    np.testing.assert_array_equal(run(ag.sparse.sparse_dense_matmul, a, matrix), A @ matrix.numpy())
    adjoint = run(lambda x: ag.sparse.sparse_dense_matmul(x, ag.ones([2, 2], ag.int32), adjoint_a=True), a)
    np.testing.assert_array_equal(adjoint, A.T @ np.ones([2, 2]))
    doubled = run(lambda x: ag.sparse.map_values(ag.square, x), a)
    np.testing.assert_array_equal(dense(doubled), A**2)
    np.testing.assert_array_equal(dense(run(lambda x: ag.sparse.retain(x, x.values > 1), a)), A * (A > 1))


def test_operations_that_need_the_shape():
    a, b = sparse(A), sparse(B)
    for axis in (0, 1, -1):
        np.testing.assert_array_equal(dense(ag.sparse.concat(axis, [a, b])), np.concatenate([A, B], axis))
    np.testing.assert_array_equal(dense(ag.sparse.slice(a, [0, 1], [2, 5])), A[:, 1:])
    behind = dense(ag.sparse.slice(a, [0, A.shape[1] + 3], [2, 5]))
    assert behind.shape == (2, 0), "a block behind the end is empty"
    np.testing.assert_array_equal(ag.sparse.reduce_max(a, axis=1), A.max(1))
    np.testing.assert_array_equal(ag.sparse.reduce_max(a), A.max())
    np.testing.assert_array_equal(dense(ag.sparse.eye(2, 3)), np.eye(2, 3))
    mixed = ag.SparseTensor([[1, 2], [0, 0], [0, 2]], [3, 1, 2], [2, 3])
    np.testing.assert_array_equal(ag.sparse.reorder(mixed).indices, a.indices)
    with pytest.raises(ValueError, match="can't be joined"):
        ag.sparse.concat(0, [a, sparse(B[:, :2])])
    with pytest.raises(TypeError, match="doesn't accept sparse tensors"):
        ag.matmul(a, ag.ones([3, 2], ag.int32))


def test_argument_result_and_gradient():
    @ag.function
    def double(x):
        return ag.SparseTensor(x.indices, x.values * 2, x.dense_shape)

    np.testing.assert_array_equal(dense(double(sparse(A))), A * 2)
    values, matrix = ag.Variable([1.0, 2.0]), ag.Variable([[1.0], [3.0]])
    with ag.GradientTape() as tape:
        st = ag.SparseTensor([[0, 0], [1, 1]], values, [2, 2])
        total = ag.reduce_sum(ag.square(ag.sparse.sparse_dense_matmul(st, matrix)))
    gradients = tape.gradient(total, [values, matrix])
    assert [g.numpy().reshape(-1).tolist() for g in gradients] == [[2.0, 36.0], [2.0, 24.0]]


def test_extremes_count_absent_elements_as_zero():
    one, other = ag.sparse.from_dense([[-1, 0, 2], [0, 0, 0]]), ag.sparse.from_dense([[0, 5, 1], [0, -4, 0]])
    assert ag.sparse.to_dense(ag.sparse.maximum(one, other)).numpy().tolist() == [[0, 5, 2], [0, 0, 0]]
    assert ag.sparse.to_dense(ag.sparse.minimum(one, other)).numpy().tolist() == [[-1, 0, 1], [0, -4, 0]]
    with pytest.raises(ag.errors.InvalidArgumentError, match="shapes do not match"):
        ag.sparse.maximum(one, ag.sparse.from_dense([1]))


def test_reshaping_keeps_the_order():
    x = np.arange(24).reshape(2, 3, 4) % 5
    sparse = ag.sparse.from_dense(x)
    for shape in ([6, 4], [-1], [4, -1, 2]):
        found = ag.sparse.reshape(sparse, shape)
        assert ag.sparse.to_dense(found).numpy().tolist() == x.reshape(shape).tolist()
    with pytest.raises(ag.errors.InvalidArgumentError, match="24 elements"):
        ag.sparse.reshape(sparse, [5, 5])


def test_reshaping_in_a_function_keeps_what_is_known():
    @ag.function(input_signature=[ag.SparseTensorSpec([None, 4], ag.float32)])
    def reshaped(x):
        found = ag.sparse.reshape(x, [-1, 2, 2])
        assert found.shape.as_list() == [None, 2, 2]
        return ag.sparse.to_dense(found)

    assert reshaped(ag.sparse.from_dense([[1.0, 0, 0, 4]])).numpy().tolist() == [[[1, 0], [0, 4]]]


def test_filling_empty_rows():
    filled, was_empty = ag.sparse.fill_empty_rows(ag.sparse.from_dense([[0, 0], [0, 3], [0, 0]]), 7)
    assert filled.indices.numpy().tolist() == [[0, 0], [1, 1], [2, 0]]
    assert filled.values.numpy().tolist() == [7, 3, 7]
    assert was_empty.numpy().tolist() == [True, False, True]


def test_bincount():
    def dense(*arguments, **options):
        found = ag.sparse.bincount(*arguments, **options)
        assert (np.diff(found.indices.numpy(), axis=0).ravel() != 0).any() or len(found.indices) < 2
        return ag.sparse.to_dense(found).numpy().tolist()

    assert dense([0, 3, 3]) == [1, 0, 0, 2]
    assert dense([[0, 1, 1], [3, 3, 9]], axis=-1, maxlength=5) == [[1, 2, 0, 0, 0], [0, 0, 0, 2, 0]]
    assert dense([[0, 1, 1], [3, 3, 3]], axis=-1, minlength=5, binary_output=True) == [[1, 1, 0, 0, 0], [0, 0, 0, 1, 0]]
    assert dense([0, 1, 1], weights=[0.5, 1.0, 2.0]) == [0.5, 3.0]
    assert dense(ag.sparse.from_dense([[1, 0, 2], [0, 2, 2]]), axis=-1) == [[0, 1, 1], [0, 0, 2]]
    ragged = ag.ragged.constant([[1, 2, 1], [], [0]])
    assert dense(ragged, axis=-1) == [[0, 2, 1], [0, 0, 0], [1, 0, 0]]
    assert dense(ragged) == [1, 2, 1]
    assert dense(ragged, weights=ag.ragged.constant([[0.5, 1.0, 2.0], [], [4.0]])) == [4.0, 2.5, 1.0]
    with pytest.raises(ValueError, match="Only 0 and -1"):
        ag.sparse.bincount([1], axis=1)
    with pytest.raises(ValueError, match="mutually exclusive"):
        ag.sparse.bincount([1], weights=[1.0], binary_output=True)


def test_a_static_shape_that_is_said():
    @ag.function(input_signature=[ag.SparseTensorSpec([None, None], ag.float32)])
    def known(x):
        x.set_shape([None, 3])
        return ag.constant(x.shape[1])

    sparse = ag.sparse.from_dense([[1.0, 0, 2]])
    assert int(known(sparse)) == 3
    with pytest.raises(ValueError):
        sparse.set_shape([2, 2])


def test_map_fn_goes_over_the_rows_of_a_sparse_tensor():
    x = np.array([[[1, 0], [0, 2]], [[0, 0], [3, 0]], [[0, 4], [0, 0]]], "float32")
    y = np.arange(12, dtype="float32").reshape(3, 2, 2)

    def product(row):
        return ag.sparse.sparse_dense_matmul(row[0], row[1])

    def run(sparse, dense):
        return ag.map_fn(product, (sparse, dense), fn_output_signature=ag.float32)

    spec = ag.SparseTensorSpec([None, None, None], ag.float32)
    staged = ag.function(run, input_signature=[spec, ag.TensorSpec([None, 2, 2])])
    for way in (run, staged, ag.function(lambda a, b: ag.map_fn(product, (a, b)))):
        np.testing.assert_array_equal(way(ag.sparse.from_dense(x), ag.constant(y)), x @ y)
