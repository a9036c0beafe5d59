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
    with pytest.raises(TypeError, match="takes no sparse tensors"):
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
