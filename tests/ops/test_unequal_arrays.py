"""`TensorArray(infer_shape=False)`: elements of different shapes."""

import numpy as np
import pytest

import autograph as ag


def rows(*elements, **options):
    array = ag.TensorArray(ag.float32, len(elements), infer_shape=False, **options)
    for index, element in enumerate(elements):
        array = array.write(index, element)
    return array


def test_elements_keep_their_shapes():
    array = rows([1.0, 2.0], [3.0], [])
    assert [array.read(i).numpy().tolist() for i in range(3)] == [[1, 2], [3], []]
    assert array.concat().numpy().tolist() == [1, 2, 3]
    assert int(array.size()) == len(array) == 3
    assert array.write(0, [7.0]).concat().numpy().tolist() == [7, 3]
    assert array.concat().numpy().tolist() == [1, 2, 3]  # it is a value
    assert array.element_shape.rank is None


def test_what_is_stacked_has_one_shape():
    array = rows([1.0, 2.0], [3.0], [4.0, 5.0])
    with pytest.raises(ag.errors.InvalidArgumentError, match="different shapes, so they can't be stacked"):
        array.stack()
    assert array.gather([2, 0]).numpy().tolist() == [[4, 5], [1, 2]]
    assert rows([1.0], [2.0]).stack().numpy().tolist() == [[1], [2]]
    assert rows(1.0, 2.0).stack().numpy().tolist() == [1, 2]


def test_what_is_joined_differs_in_one_axis():
    array = rows(np.ones([1, 2]), np.zeros([2, 2]), element_shape=[None, 2])
    assert array.concat().numpy().tolist() == [[1, 1], [0, 0], [0, 0]]
    assert array.read(1).shape == [2, 2]
    with pytest.raises(ag.errors.InvalidArgumentError, match="different shapes, so they can't be joined"):
        rows(np.ones([1, 2]), np.zeros([2, 3])).concat()
    with pytest.raises(ValueError, match="needs elements of rank 1 or more, not scalars"):
        rows(1.0).concat()


def test_wrong_writes():
    with pytest.raises(ValueError, match=r"elements of shape \(None, 2\) can't hold"):
        rows([1.0], element_shape=[None, 2])
    with pytest.raises(ValueError, match="TensorArray of float32 can't hold a value of dtype int32"):
        rows(ag.constant([1]))
    with pytest.raises(ag.errors.OutOfRangeError, match="Tried to write to index 1 but array is not resizeable"):
        rows([1.0]).write(1, [2.0])


def test_parts_of_a_tensor():
    array = ag.TensorArray(ag.float32, 2, infer_shape=False).split(ag.range(5.0), [2, 3])
    assert [array.read(i).numpy().tolist() for i in range(2)] == [[0, 1], [2, 3, 4]]
    array = ag.TensorArray(ag.float32, 2, infer_shape=False).unstack([[1.0, 2.0], [3.0, 4.0]])
    assert array.read(1).numpy().tolist() == [3, 4]
    array = ag.TensorArray(ag.float32, 2).split(ag.range(4.0), [2, 2])
    assert array.stack().numpy().tolist() == [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match="make the array with infer_shape=False"):
        ag.TensorArray(ag.float32, 2).split(ag.range(5.0), [2, 3])


@pytest.mark.parametrize("jit_compile", [None, True])
def test_a_staged_loop_and_its_gradient(jit_compile):
    """The elements are the beginnings of x, each times its length."""

    @ag.function(jit_compile=jit_compile)
    def joined(x, n):
        array = ag.TensorArray(ag.float32, 0, dynamic_size=True, infer_shape=False)
        for i in ag.range(n):
            array = array.write(i, x[: i + 1] * ag.cast(i + 1, ag.float32))
        return array.concat(), array.read(1)

    x = ag.constant([1.0, 2.0, 3.0])
    with ag.GradientTape() as tape:
        tape.watch(x)
        values, second = joined(x, 3)
        y = ag.reduce_sum(values**2)
    assert values.numpy().tolist() == [1, 2, 4, 3, 6, 9]
    assert second.numpy().tolist() == [2, 4]
    assert tape.gradient(y, x).numpy().tolist() == [28, 52, 54]


def test_a_loop_that_writes_backwards():
    @ag.function
    def joined(n):
        array = ag.TensorArray(ag.int32, n, infer_shape=False, element_shape=[None])
        for i in ag.range(n):
            array = array.write(n - 1 - i, ag.range(i))
        return array.concat()

    assert joined(ag.constant(4)).numpy().tolist() == [0, 1, 2, 0, 1, 0]


def test_a_while_loop_carries_it():
    def body(i, array):
        return i + 1, array.write(i, ag.range(i))

    _, array = ag.while_loop(lambda i, _: i < 4, body, (0, ag.TensorArray(ag.int32, 4, infer_shape=False)))
    assert array.concat().numpy().tolist() == [0, 0, 1, 0, 1, 2]
