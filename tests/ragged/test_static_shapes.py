"""What is known of the shape of sparse tensors while a function is traced."""

import pytest

import autograph as ag


def sparse(rows):
    return ag.sparse.from_dense(rows)


def test_arguments_keep_theirs():
    traced = []

    @ag.function
    def program(x):
        traced.append(x.shape.as_list())
        return ag.sparse.to_dense(x)

    for rows in ([[1.0, 0.0, 2.0]], [[0.0, 3.0, 4.0]], [[1.0, 0.0], [0.0, 2.0]]):
        assert program(sparse(rows)).numpy().tolist() == rows
    assert traced == [[1, 3], [2, 2]]  # a trace for each shape, as with tensors


def test_elements_of_iterators_have_what_their_spec_says():
    traced = []

    @ag.function
    def program(iterator):
        element = next(iterator)
        traced.append(element.shape.as_list())
        return ag.sparse.to_dense(element)

    iterator = iter(ag.data.Dataset.from_tensor_slices(sparse([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]])).batch(2))
    assert program(iterator).numpy().tolist() == [[1.0, 0.0], [0.0, 2.0]]
    assert program(iterator).numpy().tolist() == [[3.0, 0.0]]
    assert traced == [[None, 2]]


@pytest.mark.parametrize("chosen", [0, 1])
def test_branches_may_give_different_ones(chosen):
    one, other = sparse([[1.0, 0.0, 2.0]]), sparse([[3.0, 0.0], [0.0, 4.0]])

    @ag.function
    def program(x, y, n):
        z = x
        if n > 0:
            z = y
        return ag.sparse.to_dense(z)

    found = program(one, other, ag.constant(chosen))
    assert found.numpy().tolist() == ag.sparse.to_dense((one, other)[chosen]).numpy().tolist()
