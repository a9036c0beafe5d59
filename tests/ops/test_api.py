"""Public functions made of several rows, against NumPy and SciPy; TensorFlow's errors for their arguments."""

import numpy as np
import pytest
from scipy import special

import autograph as ag
from runtime.ops import api

X = np.random.default_rng(0).normal(size=(3, 4))
T = ag.constant(X)


def close(tensor, expected, tolerance=1e-12):
    expected = np.asarray(expected)
    assert tensor.shape == expected.shape
    np.testing.assert_allclose(np.asarray(tensor), expected, tolerance, tolerance)


@pytest.mark.parametrize("axis, keepdims", [(None, False), (0, False), (-1, True), ([0, 1], True)])
def test_composed_reductions(axis, keepdims):
    where = tuple(axis) if isinstance(axis, list) else axis
    close(ag.reduce_logsumexp(T, axis, keepdims), special.logsumexp(X, where, keepdims=keepdims))
    close(ag.math.reduce_variance(T, axis, keepdims), X.var(where, keepdims=keepdims))
    close(ag.math.reduce_std(T, axis, keepdims), X.std(where, keepdims=keepdims))
    close(ag.norm(T, axis=axis, keepdims=keepdims), np.sqrt((X**2).sum(where, keepdims=keepdims)))
    close(ag.math.count_nonzero(T > 0, axis, keepdims), (X > 0).sum(where, keepdims=keepdims))


def test_logsumexp_of_extremes():
    assert float(ag.reduce_logsumexp([1000.0, 1000.0])) == pytest.approx(1000 + np.log(2))
    assert float(ag.reduce_logsumexp([-np.inf, -np.inf])) == -np.inf
    assert float(ag.reduce_logsumexp([np.inf, 0.0])) == np.inf


def test_activations():
    nn = ag.nn
    close(nn.softmax(T), special.softmax(X, -1))
    close(nn.softmax(T, axis=0), special.softmax(X, 0))
    close(nn.log_softmax(T), special.log_softmax(X, -1))
    close(nn.leaky_relu(T, 0.1), np.where(X > 0, X, 0.1 * X))
    close(nn.elu(T), np.where(X > 0, X, np.exp(X) - 1))
    close(nn.selu(T), 1.0507009873554805 * np.where(X > 0, X, 1.6732632423543772 * (np.exp(X) - 1)))
    close(nn.silu(T), X * special.expit(X))
    close(nn.gelu(T), X * special.ndtr(X))
    close(nn.gelu(T, approximate=True), X * special.ndtr(X), 1e-3)
    close(nn.softsign(T), X / (1 + abs(X)))
    close(nn.relu6(T * 10), np.clip(X * 10, 0, 6))
    close(nn.l2_normalize(T, 1), X / np.linalg.norm(X, axis=1, keepdims=True))
    close(nn.l2_loss(T), (X**2).sum() / 2)
    close(nn.bias_add(T, [1.0, 2.0, 3.0, 4.0]), X + [1, 2, 3, 4])
    mean, variance = nn.moments(T, [0])
    close(mean, X.mean(0)), close(variance, X.var(0))


def test_cross_entropies():
    classes = np.array([0, 3, 1])
    expected = -special.log_softmax(X, -1)[range(3), classes]
    close(ag.nn.sparse_softmax_cross_entropy_with_logits(classes, T), expected)
    close(ag.nn.softmax_cross_entropy_with_logits(np.eye(4)[classes], T), expected)
    targets = np.linspace(0, 1, 12).reshape(3, 4)
    p = special.expit(X)
    close(
        ag.nn.sigmoid_cross_entropy_with_logits(targets, T), -targets * np.log(p) - (1 - targets) * np.log(1 - p), 1e-9
    )
    with pytest.raises(ag.errors.InvalidArgumentError, match=r"outside the valid range of \[0, 4\)"):
        ag.nn.sparse_softmax_cross_entropy_with_logits([0, 4, 1], T)


def test_dropout():
    ag.random.set_seed(1)
    kept = ag.nn.dropout(ag.ones((1000,)), 0.25).numpy()
    assert set(np.unique(kept)) == {0.0, np.float32(1 / 0.75)}
    assert 0.7 < (kept > 0).mean() < 0.8
    with pytest.raises(ValueError, match="rate"):
        ag.nn.dropout(T, 1.0)
    ag.random.set_seed(None)


@pytest.mark.parametrize("axes", [0, 1, 2, [[2], [0]], [[1, 2], [1, 0]]])
def test_tensordot(axes):
    a, b = np.random.default_rng(1).normal(size=(2, 3, 3)), np.random.default_rng(2).normal(size=(3, 3, 4))
    close(ag.tensordot(a, ag.constant(b), axes), np.tensordot(a, b, axes))


def test_diagonals():
    for shape in [(3, 3), (2, 4), (4, 2), (2, 3, 3), (0, 2)]:
        m = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
        close(ag.linalg.diag_part(m), np.diagonal(m, axis1=-2, axis2=-1))
        close(ag.linalg.trace(m), np.trace(m, axis1=-2, axis2=-1))
    close(ag.linalg.diag([1.0, 2.0]), np.diag([1.0, 2.0]))
    close(ag.linalg.matvec([[1.0, 2.0], [3.0, 4.0]], [1.0, 1.0]), [3.0, 7.0])
    close(ag.linalg.matrix_transpose(T), X.T)
    close(ag.eye(2, 3, batch_shape=[2]), np.stack([np.eye(2, 3)] * 2))


@pytest.mark.parametrize("batch, axis", [(1, 1), (1, 2), (2, 2), (1, None)])
def test_gather_with_batches(batch, axis):
    params = np.random.default_rng(3).normal(size=(2, 3, 4))
    indices = np.array([[[0, 2], [1, 1], [2, 0]], [[2, 2], [0, 0], [1, 0]]])[:, : 3 if batch == 2 else 2]
    result = ag.gather(params, indices, axis=axis, batch_dims=batch)
    at = batch if axis is None else axis
    for place in np.ndindex(*indices.shape[:batch]):
        close(result[place], np.take(params[place], indices[place], at - batch))


def test_one_hot():
    close(ag.one_hot([0, 2, -1], 3), [[1, 0, 0], [0, 0, 1], [0, 0, 0]])
    close(ag.one_hot([0, 1], 2, 5, -1, axis=0), [[5, -1], [-1, 5]])
    assert ag.one_hot([0], 2, True, False).dtype is ag.bool
    close(ag.one_hot([[1], [0]], 2, axis=1), [[[0], [1]], [[1], [0]]])


@pytest.mark.parametrize(
    ("bounds", "float32", "float64"),  # how many numbers TensorFlow gives
    [
        ((0.1, 1.1, 0.1), 10, 10), ((0.0, 0.3, 0.1), 3, 3), ((0.1, 0.4, 0.1), 3, 4), ((0.1, 0.7, 0.2), 3, 3),
        ((1.0, 0.0, -0.1), 10, 10), ((0.0, 0.6, 0.2), 3, 3), ((0.0, 1e5, 0.3), 333334, 333334),
    ],
)  # fmt: skip
@pytest.mark.parametrize("made", ["eager", "interpreted", "compiled"])
def test_ranges_of_floats_are_counted_in_their_precision(bounds, float32, float64, made):
    f = ag.range if made == "eager" else ag.function(lambda *bounds: ag.range(*bounds), jit_compile=made == "compiled")
    for dtype, count in ((ag.float32, float32), (ag.float64, float64)):
        assert f(*(ag.constant(bound, dtype) for bound in bounds)).shape[0] == count
        assert ag.range(*bounds, dtype=dtype).shape[0] == count


def test_ranges():
    assert ag.range(3, 9, 2).numpy().tolist() == [3, 5, 7]
    assert ag.range(3, 0, -1).numpy().tolist() == [3, 2, 1]
    assert ag.range(ag.constant(3, ag.int64)).dtype is ag.int64
    assert ag.range(2, dtype=ag.float64).dtype is ag.float64
    assert ag.range(1, 2, 0.25).numpy().tolist() == [1, 1.25, 1.5, 1.75]
    with pytest.raises(ag.errors.InvalidArgumentError, match="Requires start <= limit when delta > 0: 3/0"):
        ag.range(3, 0)
    with pytest.raises(ag.errors.InvalidArgumentError, match="Requires delta != 0"):
        ag.range(0, 3, 0)
    for bounds in ((0.0, np.inf, 1.0), (0.0, np.nan, 1.0), (0.0, 1e30, 1.0), (0.0, 1.0, np.nan)):
        for traced in (ag.range, ag.function(ag.range), ag.function(ag.range, jit_compile=True)):
            with pytest.raises(ag.errors.InvalidArgumentError, match="Requires"):
                traced(*(ag.constant(bound) for bound in bounds))
    close(ag.linspace(0.0, 0.3, 4), np.linspace(0, 0.3, 4), 1e-6)
    assert ag.linspace(1, 2, 1).numpy().tolist() == [1.0]
    for indexing in ("xy", "ij"):
        grids = ag.meshgrid([1, 2, 3], [4, 5], indexing=indexing)
        for ours, numpys in zip(grids, np.meshgrid([1, 2, 3], [4, 5], indexing=indexing)):
            close(ours, numpys)


@pytest.mark.parametrize("mode", ["REFLECT", "SYMMETRIC", "CONSTANT"])
def test_pad(mode):
    pads = [[1, 2], [0, 3]]
    close(ag.pad(T, pads, mode), np.pad(X, pads, mode.lower()))
    with pytest.raises(ValueError, match="mode"):
        ag.pad(T, pads, "EDGE")


@pytest.mark.parametrize("shift, axis", [(1, 0), (-1, 1), (7, 1), ([1, 2], [0, 1])])
def test_roll(shift, axis):
    close(ag.roll(T, shift, axis), np.roll(X, shift, axis))


def test_joining_and_splitting():
    assert [p.shape[0] for p in ag.split(ag.range(6), 3)] == [2, 2, 2]
    assert [p.numpy().tolist() for p in ag.split(ag.range(5), [1, -1, 1])] == [[0], [1, 2, 3], [4]]
    assert len(ag.unstack(T, axis=1)) == 4
    close(ag.stack([[1, 2], [3, 4]], -1), [[1, 3], [2, 4]])
    for mixed in ([1, 2.5], [2.5, 1], [1, 2.5, True], [1, np.float64(2.5)], [[1, 2.5], [3, 4]]):
        assert ag.stack(mixed).dtype in (ag.float32, ag.float64)
        close(ag.stack(mixed), np.array(mixed, np.float32))
    assert ag.stack([1, 2.5]).dtype is ag.float32
    with pytest.raises(TypeError, match="dtype bool"):
        ag.stack([True, 2.0])
    close(ag.boolean_mask(T, [True, False, True, True], axis=1), X[:, [0, 2, 3]])


def test_scatter():
    close(ag.scatter_nd([[1], [1], [3]], [1.0, 2.0, 3.0], [5]), [0, 3, 0, 3, 0])
    close(ag.tensor_scatter_nd_update([1.0, 2.0], [[0]], [9.0]), [9, 2])
    close(ag.tensor_scatter_nd_add([1.0, 2.0], [[0], [0]], [9.0, 1.0]), [11, 2])
    with pytest.raises(ag.errors.InvalidArgumentError, match=r"indices\[0\] = \[7\] does not index into shape \[2\]"):
        ag.tensor_scatter_nd_update([1.0, 2.0], [[7]], [9.0])
    # Each index vector needs an update of its own: nothing is broadcast, as in TensorFlow.
    for updates in ([[5.0, 6.0]], [5.0, 6.0], 5.0, [[1.0], [2.0]]):
        with pytest.raises(ag.errors.InvalidArgumentError, match=r"of shape \[2,1\] and a tensor of shape \[3,2\]"):
            ag.tensor_scatter_nd_add(ag.ones([3, 2]), [[0], [1]], updates)
    with pytest.raises(ag.errors.InvalidArgumentError, match="expected .2,2."):
        ag.scatter_nd([[0], [1]], [[5.0, 6.0]], [3, 2])
    with pytest.raises(ag.errors.InvalidArgumentError, match="index vectors of length 3"):
        ag.gather_nd(ag.ones([3, 2]), [[0, 1, 2]])
    # Vectors of no numbers lead to the whole.
    close(ag.gather_nd([1.0, 2.0], ag.zeros([3, 0], ag.int32)), [[1, 2]] * 3)


def test_results_have_names():
    assert ag.unique([3, 3, 1]).y.numpy().tolist() == [3, 1]
    assert ag.unique_with_counts([3, 3, 1]).count.numpy().tolist() == [2, 1]
    close(ag.linalg.slogdet(ag.eye(2) * 2.0).log_abs_determinant, 2 * np.log(2), 1e-6)
    close(ag.linalg.lu(ag.eye(2)).p, [0, 1])
    assert ag.nn.max_pool_with_argmax(ag.ones([1, 2, 2, 1]), 2, 2, "VALID").argmax.shape == (1, 1, 1, 1)


def test_unwritten_strings_are_empty():
    array = ag.TensorArray(ag.string, 0, dynamic_size=True, clear_after_read=False, element_shape=())
    array = array.write(2, "a")

    @ag.function
    def f():
        words = ag.TensorArray(ag.string, 0, dynamic_size=True, element_shape=())
        for i in ag.range(3):
            if i != 1:
                words = words.write(i, ag.strings.as_string(i))
        return words.stack()

    assert array.stack().numpy().tolist() == [b"", b"", b"a"]
    assert f().numpy().tolist() == [b"0", b"", b"2"]


def test_seeded_initializers_give_the_same_numbers_again():
    """TensorFlow's numbers, of which the seed is [seed, 0]."""
    for _ in range(2):
        close(ag.random_normal_initializer(seed=1)([3]), [0.006332515, -0.024650829, 0.031559538], 1e-6)
        close(ag.random_uniform_initializer(seed=2)([2]), [0.030097906, 0.020471681], 1e-6)
        assert ag.random_uniform_initializer(0, 10, seed=5)([3], ag.int32).numpy().tolist() == [3, 0, 7]


def test_small_functions():
    close(ag.math.divide_no_nan([1.0, 2.0], [0.0, 4.0]), [0, 0.5])
    close(ag.clip_by_value([1.0, 2.0, 3.0], 1.5, 2.5), [1.5, 2, 2.5])
    close(ag.add_n([[1, 2], [3, 4], [5, 6]]), [9, 12])
    close(ag.round([0.5, 1.5, 2.5, -0.5]), [0, 2, 2, -0.0])
    assert ag.round(3).numpy() == 3
    assert ag.strings.join(["a", ag.constant(["b", "c"])], "-").numpy().tolist() == [b"a-b", b"a-c"]
    close(ag.zeros((2,), ag.int8), np.zeros(2)), close(ag.fill([2], 7), [7, 7])
    assert ag.zeros((1,), ag.string).numpy().tolist() == [b""]
    assert (int(ag.size(T)), int(ag.rank(T)), ag.shape(T).numpy().tolist()) == (12, 2, [3, 4])
    assert ag.broadcast_static_shape((2, 1), (3,)) == [2, 3]


@pytest.mark.parametrize(
    "compute, message",
    [
        (lambda: ag.reshape(T, (5, 2)), "Input to reshape is a tensor with 12 values, but the requested shape has 10"),
        (lambda: ag.reshape(T, (5, -1)), "the requested shape requires a multiple of 5"),
        (lambda: ag.reshape(T, (-1, -1)), "Only one input size may be -1, not both 0 and 1"),
        (lambda: ag.concat([T, T[:, :1]], 0),
         "Dimension 1 in both shapes must be equal: shape[0] = [3,4] vs. shape[1] = "),
        (lambda: ag.concat([T, T[0]], 0),
         "Ranks of all input tensors should match: shape[0] = [3,4] vs. shape[1] = [4]"),
        (lambda: ag.stack([T, T[0]]), "Shapes of all inputs must match: values[0].shape = [3,4] != values[1].shape"),
        (lambda: ag.reduce_sum(T, 2), "Invalid reduction dimension 2 for input with 2 dimension(s)"),
        (lambda: ag.reduce_sum(T, [0, 0]), "Axes contains duplicate dimension: 0"),
        (lambda: ag.expand_dims(T, 4), "Tried to expand dim index 4 for tensor with 2 dimensions"),
        (lambda: ag.squeeze(T, 1), "Can not squeeze dim[1], expected a dimension of 1, got 4"),
        (lambda: ag.transpose(T, [0]), "transpose expects a vector of size 2. But input(1) is a vector of size 1"),
        (lambda: ag.split(T, 2), "should evenly divide the split dimension, but got split_dim 0 (size = 3)"),
        (lambda: ag.tile(T, [2]), "Expected multiples argument to be a vector of length 2 but got length 1"),
        (lambda: ag.broadcast_to(T, (2, 2)), "Incompatible shapes: [3,4] vs. [2,2]"),
        (lambda: T + T[:, :2], "Incompatible shapes: [3,4] vs. [3,2] [Op:AddV2]"),
        (lambda: ag.matmul(T, T), "Matrix size-incompatible: In[0]: [3,4], In[1]: [3,4]"),
        (lambda: ag.gather(T, [0, 3]), "indices[1] = 3 is not in [0, 3)"),
        (lambda: ag.zeros(-1), "Dimension -1 must be >= 0"),
        (lambda: ag.argmax(ag.zeros((0,))), "Reduction axis 0 is empty in shape [0]"),
        (lambda: ag.ensure_shape(T, (3, 3)), "Shape of tensor input [3,4] is not compatible with expected shape [3,3]"),
    ],
)  # fmt: skip
def test_errors_are_tensorflows(compute, message):
    with pytest.raises(ag.errors.InvalidArgumentError) as caught:
        compute()
    assert message in str(caught.value)


def test_casting_strings_is_not_supported():
    with pytest.raises(ag.errors.UnimplementedError, match="Cast string to float is not supported"):
        ag.cast("a", ag.float32)


def test_every_public_name_exists_and_says_what_it_is():
    for module in (ag, ag.math, ag.nn, ag.linalg, ag.random, ag.bitwise, ag.strings, ag.debugging, ag.nest, ag.config):
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value) and not isinstance(value, type):
                assert value.__doc__, f"{module.__name__}.{name} has no docstring"
    for name in api.__all__:
        assert hasattr(api, name)


def test_einsum_compares_sizes_that_come_late():
    spec = [ag.TensorSpec([None, None]), ag.TensorSpec([None, None])]
    product = ag.function(lambda x, y: ag.einsum("ij,jk->ik", x, y), spec)
    close(product(ag.ones([2, 3]), ag.ones([3, 1])), [[3], [3]])
    for rows in (1, 4):
        with pytest.raises(ag.errors.InvalidArgumentError, match="'j'|for 'j'"):
            product(ag.ones([2, 3]), ag.ones([rows, 2]))
    batches = ag.function(lambda x, y: ag.einsum("...ij,...jk->...ik", x, y), [ag.TensorSpec([None] * 3)] * 2)
    assert batches(ag.ones([4, 2, 3]), ag.ones([1, 3, 2])).shape == (4, 2, 2)
