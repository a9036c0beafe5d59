"""What values are, types of one's own, initialisers, facts of shapes."""

import numpy as np
import pytest

import autograph as ag
from runtime.ops.facts import constant_value_as_shape


class Celsius:
    def __init__(self, degrees):
        self.degrees = degrees


def test_types_of_ones_own_convert():
    ag.register_tensor_conversion_function(
        Celsius, lambda value, dtype=None, name=None, as_ref=False: ag.constant(value.degrees, dtype)
    )
    assert float(ag.constant(1.0) + Celsius(2.0)) == 3.0
    assert not ag.is_tensor(Celsius(1.0)) and float(ag.reduce_sum(ag.stack([Celsius(1.0), Celsius(4.0)]))) == 5.0
    deferred = Celsius(2.5)
    deferred.is_tensor_like = True
    assert ag.is_tensor(deferred) and int(ag.cast(deferred, ag.int32)) == 2
    with pytest.raises(TypeError, match="Cannot register"):
        ag.register_tensor_conversion_function(int, lambda *arguments: None)


def test_what_values_are():
    x = ag.constant([1, 2])
    assert ag.is_tensor(x) and ag.is_tensor(ag.Variable(1)) and not ag.is_tensor([1]) and not ag.is_tensor(np.ones(2))
    assert not ag.is_symbolic_tensor(x) and not ag.inside_function()
    np.testing.assert_array_equal(ag.get_static_value(x), [1, 2])
    seen = []

    @ag.function
    def f(x):
        seen.extend([ag.is_symbolic_tensor(x), ag.inside_function(), ag.get_static_value(x)])
        seen.append(int(ag.get_static_value(ag.constant(3))))
        return x

    f(x)
    assert seen == [True, True, None, 3]
    with pytest.raises(TypeError):
        ag.is_symbolic_tensor(3)


def test_values_of_known_dimensions():
    seen = []

    @ag.function
    def f(x, n):
        rows, columns = ag.shape(x)[0], ag.shape(x)[1]
        seen.extend(map(ag.get_static_value, (columns * 2, columns > 1, ag.equal(columns, 3))))
        seen.extend(map(ag.get_static_value, (rows, rows > 1, ag.shape(x), columns > n, x[0] > x[1])))
        return x

    f.get_concrete_function(ag.TensorSpec([None, 4]), ag.TensorSpec([], ag.int32))
    assert seen == [8, True, False, None, None, None, None, None]
    np.testing.assert_array_equal(seen[:3], [8, True, False])


def test_initialisers():
    np.testing.assert_array_equal(ag.zeros_initializer()([2], ag.int32), [0, 0])
    np.testing.assert_array_equal(ag.ones_initializer()([2]), [1, 1])
    np.testing.assert_array_equal(ag.constant_initializer(3.0)([2]), [3, 3])
    np.testing.assert_array_equal(ag.constant_initializer([1, 2, 3, 4])([2, 2]), [[1, 2], [3, 4]])
    drawn = ag.random_uniform_initializer(1.0, 2.0, seed=3)([1000]).numpy()
    assert 1 <= drawn.min() < 1.05 < 1.95 < drawn.max() < 2
    assert abs(ag.random_normal_initializer(5.0, 0.1)([1000]).numpy().mean() - 5) < 0.05


def test_shapes():
    s = ag.TensorShape([2, None])
    assert s.most_specific_compatible_shape([2, 3]) == [2, None]
    assert s.most_specific_compatible_shape([3, 3]) == [None, None]
    assert s.most_specific_compatible_shape([2]).rank is None
    assert s.is_subtype_of([None, None]) and not s.is_subtype_of([2, 3]) and s.is_subtype_of(None)
    assert s.with_rank(2) is s and ag.TensorShape(None).with_rank(1) == [None]
    for call in (
        lambda: s.with_rank(1), lambda: s.with_rank_at_least(3), lambda: s.with_rank_at_most(1),
        lambda: s.assert_has_rank(3), lambda: s.assert_same_rank([1]), lambda: s.assert_is_fully_defined(),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="rank|fully"):
            call()


def test_a_shape_that_is_set_is_checked():
    @ag.function(input_signature=[ag.TensorSpec([None])])
    def f(x):
        x.set_shape([3])
        assert x.shape == [3]
        return x * 2

    np.testing.assert_array_equal(f([1.0, 2, 3]), [2, 4, 6])
    with pytest.raises(ag.errors.InvalidArgumentError, match="3"):
        f([1.0, 2])
    ag.constant([1.0]).set_shape([1])
    with pytest.raises(ValueError, match="not compatible"):
        ag.constant([1.0]).set_shape([2])


def test_what_is_no_tensor_is_its_own_value():
    assert ag.get_static_value(10) == 10
    assert ag.get_static_value([1, 2]) == [1, 2]
    assert ag.get_static_value(None) is None
    assert ag.get_static_value(ag.Variable(3)) is None


def test_an_empty_list_is_a_shape():
    assert ag.broadcast_dynamic_shape([], ag.constant([2])).numpy().tolist() == [2]
    assert ag.concat([ag.constant([3]), []], 0).dtype is ag.int32


def test_what_a_vector_says_of_a_shape():
    seen = []

    @ag.function(input_signature=[ag.TensorSpec([None, 3]), ag.TensorSpec([], ag.int32)])
    def f(x, n):
        seen.append(constant_value_as_shape(ag.stack([2, n, ag.shape(x)[1]])))
        seen.append(constant_value_as_shape(ag.shape(ag.zeros([n]))))
        return x

    f(ag.zeros([2, 3]), 1)
    assert [shape.as_list() for shape in seen] == [[2, None, 3], [None]]
    assert constant_value_as_shape([2, -1]).as_list() == [2, None]
