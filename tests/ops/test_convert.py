"""TensorFlow's conversion rules: dtypes of Python and NumPy values, operands beside tensors, errors."""

import enum

import numpy as np
import pytest

import autograph as ag
from runtime.graph.builder import Builder
from runtime.ops.convert import int_list, shape_args, static_value
from runtime.types import TensorType


class Color(enum.IntEnum):
    RED = 3


class Metres:
    """A type of the user's own."""

    def __tf_tensor__(self, dtype=None, name=None):
        return ag.constant(2.5, dtype or ag.float64)


@pytest.mark.parametrize(
    "value, dtype, shape",
    [
        (1.5, "float32", ()), (1, "int32", ()), (True, "bool", ()), ("a", "string", ()), (b"a", "string", ()),
        (2**31 - 1, "int32", ()), (2**31, "int64", ()), (-(2**63), "int64", ()), (Color.RED, "int32", ()),
        ([1, 2.5], "float32", (2,)), ([[1], [2]], "int32", (2, 1)), ([], "float32", (0,)),
        ([[], []], "float32", (2, 0)), ([1, True], "int32", (2,)), ([2**40, 1], "int64", (2,)),
        (["a", b"b"], "string", (2,)), ((1, (2)), "int32", (2,)),
        (range(3), "int32", (3,)), (np.float64(1), "float64", ()), (np.int8(1), "int8", ()),
        (np.ones((2, 1), np.float16), "float16", (2, 1)), (np.array(["a", "bc"]), "string", (2,)),
        ([np.float64(1.5), 1], "float64", (2,)), ([np.float32(1), np.float64(1)], "float32", (2,)),
        (ag.TensorShape([2, 3]), "int32", (2,)), (Metres(), "float64", ()), ([Metres(), 1.0], "float64", (2,)),
        (np.array([1, 2], ">i4"), "int32", (2,)),
    ],
)  # fmt: skip
def test_natural_dtype(value, dtype, shape):
    tensor = ag.convert_to_tensor(value)
    assert tensor.dtype.name == dtype
    assert tensor.shape == shape
    assert tensor._array.dtype == tensor.dtype.np


@pytest.mark.parametrize(
    "value, dtype, error, message",
    [
        (1.5, ag.int32, TypeError, "Cannot convert 1.5 to EagerTensor of dtype int32"),
        ([1, 1.5], ag.int32, TypeError, "Cannot convert 1.5 to EagerTensor of dtype int32"),
        (1, ag.bool, TypeError, "Cannot convert 1 to EagerTensor of dtype bool"),
        (1, ag.string, TypeError, "Cannot convert 1 to EagerTensor of dtype string"),
        ("a", ag.float32, TypeError, "Cannot convert 'a' to EagerTensor of dtype float"),
        (["a"], ag.float64, TypeError, "of dtype double"),
        (300, ag.uint8, ValueError, "Cannot convert 300 to a tensor of dtype uint8: it doesn't fit"),
        ([0, -1], ag.uint8, ValueError, "an element doesn't fit"),
        (2**64, None, ValueError, "out-of-range integer"),
        ([2**64], None, ValueError, "out-of-range integer"),
        (None, None, ValueError, "Attempt to convert a value (None) with an unsupported type"),
        ([1, None], None, ValueError, "mixed types"),
        ([True, 1], None, ValueError, "mixed types"),
        ([1, "a"], None, ValueError, "mixed types"),
        ([[1, 2], [3]], None, ValueError, "non-rectangular"),
        ([["a"], ["b", "c"]], None, ValueError, "non-rectangular"),
        (object(), None, ValueError, "unsupported type"),
        (np.array([1j]), ag.float32, TypeError, "Cannot convert"),
        (ag.constant(1.0), ag.int32, ValueError, "requested dtype int32 for Tensor with dtype float32"),
        (ag.Variable(1.0), ag.int32, ValueError, "Incompatible type conversion requested to type int32"),
        (ag.TensorShape([None]), None, ValueError, "partially known TensorShape"),
    ],
)  # fmt: skip
def test_refusals(value, dtype, error, message):
    with pytest.raises(error) as caught:
        ag.convert_to_tensor(value, dtype)
    assert message in str(caught.value)


def test_numpy_values_change_to_a_given_dtype():
    assert ag.convert_to_tensor(np.array([1.5]), ag.int32).numpy().tolist() == [1]
    assert ag.convert_to_tensor(np.int64(3), ag.float32).dtype is ag.float32


def test_a_hint_may_fail():
    assert ag.convert_to_tensor(1, dtype_hint=ag.float32).dtype is ag.float32
    assert ag.convert_to_tensor(1.5, dtype_hint=ag.int32).dtype is ag.float32


def test_tensors_pass_through_and_arrays_are_copied():
    x = ag.constant([1.0])
    assert ag.convert_to_tensor(x) is x
    source = np.array([1.0, 2.0])
    tensor = ag.constant(source)
    source[0] = 9
    assert tensor.numpy().tolist() == [1.0, 2.0]
    taken = tensor.numpy()
    taken[0] = 9
    assert tensor.numpy().tolist() == [1.0, 2.0]


def test_constant_with_shape():
    assert ag.constant(5, shape=(2, 2)).numpy().tolist() == [[5, 5], [5, 5]]
    assert ag.constant([1, 2, 3, 4], shape=(2, 2)).numpy().tolist() == [[1, 2], [3, 4]]
    with pytest.raises(TypeError, match="has 3 elements, but got `shape`"):
        ag.constant([1, 2, 3], shape=(2, 2))


def test_packing_tensors():
    packed = ag.convert_to_tensor([[ag.constant(1.0), 2], [3, ag.Variable(4.0)]])
    assert packed.numpy().tolist() == [[1, 2], [3, 4]]
    with pytest.raises(ag.errors.InvalidArgumentError, match="cannot compute Pack as input #1"):
        ag.convert_to_tensor([ag.constant(1.0), ag.constant(1)])


@pytest.mark.parametrize("other", [2, True, np.float64(2), np.int64(2), np.array(2.0), [2], ag.Variable(2.0)])
def test_operands_take_the_tensors_dtype(other):
    one = ag.constant(1.0)
    assert (one + other).dtype is ag.float32
    assert (other + one).dtype is ag.float32


@pytest.mark.parametrize(
    "compute, message",
    [
        (
            lambda: ag.constant(1.0) + ag.constant(1),
            "cannot compute AddV2 as input #1(zero-based) was expected to be a float tensor but is a int32 tensor "
            "[Op:AddV2]",
        ),
        (lambda: ag.constant(1.0) * ag.constant(1.0, ag.float64), "a float tensor but is a double tensor [Op:Mul]"),
        (lambda: ag.constant(1) + 0.5, "expected to be a int32 tensor but is a float tensor [Op:AddV2]"),
        (lambda: 0.5 + ag.constant(1), "Cannot convert 0.5 to EagerTensor of dtype int32"),
        (lambda: ag.constant(1) < 2.5, "Cannot convert 2.5 to EagerTensor of dtype int32"),
        (lambda: ag.maximum(ag.constant(1), 2.5), "Cannot convert 2.5 to EagerTensor of dtype int32"),
        (lambda: ag.constant(1) + np.float64(1.5), "expected to be a int32 tensor but is a double tensor"),
        (lambda: ag.constant(1.0) + "a", "a float tensor but is a string tensor"),
        (lambda: ag.constant(True) + ag.constant(True), "Value for attr 'T' of bool is not in the list of allowed"),
        (lambda: ag.exp(1), "Value for attr 'T' of int32 is not in the list of allowed values: bfloat16, half, float"),
        (lambda: ag.logical_not(1), "cannot compute LogicalNot as input #0(zero-based) was expected to be a bool"),
        (lambda: ag.where(1, 1.0, 2.0), "cannot compute SelectV2 as input #0(zero-based) was expected to be a bool"),
        (lambda: ag.concat([ag.constant([1]), ag.constant([1.0])], 0), "cannot compute ConcatV2 as input #1"),
    ],
)  # fmt: skip
def test_dtypes_do_not_mix(compute, message):
    # TensorFlow raises one or the other, depending on the op and on whether it traces.
    for kind in (ag.errors.InvalidArgumentError, TypeError):
        with pytest.raises(kind) as caught:
            compute()
        assert message in str(caught.value)


def test_integers_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="2147483648 to a tensor of dtype int32: it doesn't fit"):
        ag.constant(1) + 2**31


def test_while_tracing_values_become_constants():
    builder = Builder("f")
    with builder:
        tensor = ag.convert_to_tensor([1, 2])
        assert tensor.graph is builder.graph
        assert static_value(tensor).tolist() == [1, 2]
        eager = ag.constant([3])
    outside = ag.constant([3])
    with builder:
        assert ag.convert_to_tensor(outside) is outside
    assert eager.dtype is ag.int32


def test_shape_arguments():
    builder = Builder("f")
    with builder:
        x = builder.tensor(builder.add_input(TensorType(ag.float32, (None, 3))))
        n = builder.tensor(builder.add_input(TensorType(ag.int32, ())))
        assert shape_args(ag.shape(x))[0] == (None, 3)
        assert shape_args([n, 4, ag.constant(2)])[0] == (None, 4, 2)
        attr, holes = shape_args(ag.stack([n, 5]))
        assert attr == (None, 5)
        assert holes[0].value is n.value
        assert int_list(ag.TensorShape([2])) == [2]
        with pytest.raises(TypeError, match="must be a scalar integer tensor"):
            shape_args([ag.ones([1])])
        with pytest.raises(ValueError, match="length is known while tracing"):
            shape_args(builder.tensor(builder.add_input(TensorType(ag.int32, (None,)))))


@pytest.mark.parametrize("is_staged", [False, True])
def test_floats_in_a_shape_lose_their_fractions(is_staged):
    def f(n):
        return ag.reshape(ag.ones([6]), (n, 2)), ag.zeros((n, 1)), ag.tile(ag.ones([1, 2]), (n, 1))

    found = (ag.function(f) if is_staged else f)(ag.constant(3.7))
    assert [x.shape.as_list() for x in found] == [[3, 2], [3, 1], [3, 2]]
    with pytest.raises(TypeError, match="must be an integer tensor"):
        ag.zeros(ag.constant(3.0))


def test_tensors_in_a_list_take_the_dtype_that_is_asked_for():
    mixed = [ag.constant(3, ag.int64), 4.0]
    assert ag.convert_to_tensor(mixed, ag.float32).dtype is ag.float32
    joined = ag.concat([ag.constant([1, 2]), [ag.constant(3, ag.int64)]], 0)
    assert (joined.dtype, joined.numpy().tolist()) == (ag.int32, [1, 2, 3])


def test_a_border_known_only_at_run_time():
    x, border = ag.constant(np.arange(4.0).reshape(2, 2)), ag.constant(7.0, ag.float64)
    padded = ag.function(lambda x, c: ag.pad(x, [[1, 0], [0, 2]], constant_values=c))
    with ag.GradientTape() as tape:
        tape.watch([x, border])
        y = padded(x, border)
    np.testing.assert_array_equal(y, np.pad(x.numpy(), [[1, 0], [0, 2]], constant_values=7.0))
    dx, dc = tape.gradient(y, [x, border])
    assert (dx.numpy().tolist(), float(dc)) == ([[1.0, 1.0], [1.0, 1.0]], 8.0)


def test_a_rank_known_only_at_run_time():
    @ag.function
    def blocks(n):
        dims = ag.range(1, n)
        return ag.zeros(dims), ag.ones(dims, ag.int32), ag.fill(dims, 2.5)

    assert [part.shape.as_list() for part in blocks(ag.constant(4))] == [[1, 2, 3]] * 3
    assert [float(part) for part in blocks(ag.constant(1))] == [0.0, 1.0, 2.5]
