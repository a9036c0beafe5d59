"""Functions made of several rows: the same eager and traced with unknown dimensions, gradients by finite differences.

Values come from NumPy and SciPy where the function has a counterpart there; the other cases were compared with
TensorFlow 2.21 and hold its numbers' properties by their gradients.
"""

import numpy as np
import pytest
from scipy import signal, special

import autograph as ag

R = np.random.default_rng(3)


def f(*shape):
    return R.uniform(-1.0, 1.0, shape)


def positive(*shape):
    return R.uniform(0.3, 2.0, shape)


X4, W4 = f(1, 5, 4, 2), f(3, 2, 2, 3)
SPD = np.array([[2.0, 0.5, 0.1], [0.5, 3.0, 0.2], [0.1, 0.2, 1.0]])
IDS = np.array([0, 0, 2], np.int32)

# name -> (function of tensors, operands that it is differentiated by)
CASES = {
    "conv2d": (lambda x, w: ag.nn.conv2d(x, w, [1, 2, 1, 1], "SAME"), X4, W4),
    "conv2d dilated": (lambda x, w: ag.nn.conv2d(x, w, 1, "VALID", dilations=2), f(1, 6, 5, 2), W4),
    "conv2d first": (lambda x, w: ag.nn.conv2d(x, w, 1, "SAME", "NCHW"), f(1, 2, 4, 3), W4),
    "conv2d groups": (lambda x, w: ag.nn.conv2d(ag.ensure_shape(x, (1, None, None, 4)), w, 1, "SAME"), f(1, 3, 3, 4),
                      f(2, 2, 2, 2)),
    "conv2d explicit": (lambda x, w: ag.nn.conv2d(x, w, 1, [[0, 0], [1, 0], [2, 1], [0, 0]]), X4, W4),
    "conv1d": (lambda x, w: ag.nn.conv1d(x, w, 2, "SAME"), f(2, 5, 2), f(3, 2, 2)),
    "conv3d": (lambda x, w: ag.nn.conv3d(x, w, [1, 1, 2, 1, 1], "SAME"), f(1, 2, 3, 2, 2), f(2, 2, 1, 2, 1)),
    "conv2d_transpose": (lambda x, w: ag.nn.conv2d_transpose(x, w, [1, 6, 5, 2], 2, "SAME"), f(1, 3, 3, 1),
                         f(2, 3, 2, 1)),
    "depthwise": (lambda x, w: ag.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME"), X4, f(2, 2, 2, 2)),
    "separable": (lambda x, d, p: ag.nn.separable_conv2d(x, d, p, [1, 1, 1, 1], "VALID"), f(1, 3, 3, 2), f(2, 2, 2, 1),
                  f(1, 1, 2, 2)),
    "max_pool": (lambda x: ag.nn.max_pool2d(x, 3, 2, "SAME"), X4),
    "avg_pool": (lambda x: ag.nn.avg_pool2d(x, 3, 2, "SAME"), X4),
    "avg_pool first": (lambda x: ag.nn.avg_pool2d(x, 2, 1, "VALID", "NCHW"), f(1, 2, 3, 4)),
    "extract_patches": (lambda x: ag.image.extract_patches(x, [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], "VALID"), X4),
    "batch_normalization": (lambda x, m, v, o, s: ag.nn.batch_normalization(x, m, v, o, s, 1e-3), f(3, 2), f(2),
                            positive(2), f(2), f(2)),
    "lrn": (lambda x: ag.nn.lrn(x, 1, 1.0, 0.5, 0.7), f(2, 4)),
    "weighted_cross_entropy": (lambda t, x: ag.nn.weighted_cross_entropy_with_logits(t, x, 2.0), f(4), f(4)),
    "log_poisson_loss": (lambda t, x: ag.nn.log_poisson_loss(t, x, True), positive(4) + 1, f(4)),
    "crelu": (lambda x: ag.nn.crelu(x), f(2, 2)), "weighted_moments": (
        lambda x, w: ag.nn.weighted_moments(x, [0], w)[1], f(3, 2), positive(3, 2)),
    "embedding max_norm": (lambda t: ag.nn.embedding_lookup(t, [1, 0, 1], max_norm=0.5), f(3, 2)),
    "clip_by_norm": (lambda x: ag.clip_by_norm(x, 0.7, axes=[0]), f(3, 2)),
    "clip_by_global_norm": (lambda x, y: ag.concat([ag.reshape(t, [-1]) for t in ag.clip_by_global_norm(
        [x, y, None], 0.5)[0][:2]], 0), f(3), f(2, 2)),
    "global_norm": (lambda x, y: ag.linalg.global_norm([x, y]), f(3), f(2)),
    "cholesky": (lambda x: ag.linalg.cholesky(x @ ag.linalg.matrix_transpose(x)), f(2, 2, 3)),
    "cholesky_solve": (lambda x, b: ag.linalg.cholesky_solve(ag.linalg.cholesky(x @ ag.transpose(x)), b), f(2, 3),
                       f(2, 1)),
    "logdet": (lambda x: ag.linalg.logdet(x @ ag.linalg.matrix_transpose(x)), f(2, 3)),
    "lstsq": (lambda a, b: ag.linalg.lstsq(a, b), f(4, 2), f(4, 1)),
    "lstsq wide": (lambda a, b: ag.linalg.lstsq(ag.ensure_shape(a, (2, 4)), b, 0.1), f(2, 4), f(2, 1)),
    "lstsq slow": (lambda a, b: ag.linalg.lstsq(a, b, fast=False), f(4, 2), f(4, 1)),
    "solve batch": (lambda a, b: ag.linalg.solve(a, b), SPD, f(2, 3, 1)),
    "triangular batch": (lambda a, b: ag.linalg.triangular_solve(a, b, lower=False), np.stack([SPD, SPD]), f(3, 1)),
    "eigvalsh": (lambda x: ag.linalg.eigvalsh(x + ag.transpose(x)), f(3, 3)),
    "matrix norm 2": (lambda x: ag.norm(x, 2, axis=[0, 1]), f(3, 2)),
    "matrix norm 1": (lambda x: ag.norm(x, 1, axis=[-2, -1]), f(2, 3, 2)),
    "matrix norm inf": (lambda x: ag.norm(x, np.inf, axis=[0, 1], keepdims=True), f(3, 2)),
    "norm 3": (lambda x: ag.norm(x, 3, axis=1), f(2, 3)),
    "normalize": (lambda x: ag.linalg.normalize(x, axis=1)[0], f(2, 3)),
    "set_diag": (lambda x, d: ag.linalg.set_diag(x, d), f(2, 2, 3), f(2, 2)),
    "set_diag tall": (lambda x, d: ag.linalg.set_diag(x, d), f(3, 2), f(2)),
    "band_part": (lambda x: ag.linalg.band_part(x, 1, 0), f(3, 4)), "cross": (ag.linalg.cross, f(2, 3), f(2, 3)),
    "einsum batch": (lambda a, b: ag.einsum("...ij,...jk->...ik", a, b), f(2, 1, 2, 3), f(2, 3, 2)),
    "einsum diagonal": (lambda a, b: ag.einsum("iij,j->i", a, b), f(2, 2, 3), f(3)),
    "einsum sum": (lambda a, b: ag.einsum("ij,kl->jl", a, b), f(2, 3), f(2, 2)),
    "tensor_diag_part": (lambda x: ag.linalg.tensor_diag_part(ag.ensure_shape(x, (2, 2, 2, 2))), f(2, 2, 2, 2)),
    "segment_sum": (lambda x: ag.math.segment_sum(x, IDS), f(3, 2)),
    "segment_mean": (lambda x: ag.math.segment_mean(x, IDS), f(3, 2)),
    "segment_max": (lambda x: ag.math.segment_max(x, IDS), f(3, 2)),
    "segment_prod": (lambda x: ag.math.segment_prod(x, IDS), f(3)),
    "segment_sqrt_n": (lambda x: ag.math.unsorted_segment_sqrt_n(x, IDS, 3), f(3, 2)),
    "bincount weights": (lambda w: ag.math.bincount([1, 0, 1], w), f(3)),
    "top_k": (lambda x: ag.math.top_k(x, 2).values, f(2, 4)), "sort": (lambda x: ag.sort(x, 0, "DESCENDING"), f(3, 2)),
    "polyval": (lambda a, b, x: ag.math.polyval([a, b, 2.0], x), f(), f(), f(3)),
    "multiply_no_nan": (ag.math.multiply_no_nan, f(3), f(3)), "lbeta": (ag.math.lbeta, positive(2, 3)),
    "log_sigmoid": (ag.math.log_sigmoid, f(3)), "euclidean": (lambda x: ag.math.reduce_euclidean_norm(x, 0), f(3, 2)),
    "accumulate_n": (lambda x, y: ag.math.accumulate_n([x, y, x]), f(2), f(2)),
}  # fmt: skip


def gradients(function, arrays):
    tensors = [ag.constant(a) for a in arrays]
    with ag.GradientTape() as tape:
        for t in tensors:
            tape.watch(t)
        y = function(*tensors)
        total = ag.reduce_sum(ag.sin(y))
    return y, tape.gradient(total, tensors, unconnected_gradients="zero")


def total_of(function, arrays):
    return float(np.sin(np.asarray(function(*[ag.constant(a) for a in arrays]))).sum())


@pytest.mark.parametrize("name", CASES)
def test_gradient(name):
    function, *arrays = CASES[name]
    _, found = gradients(function, arrays)
    for i, gradient in enumerate(found):
        expected = np.zeros_like(arrays[i])
        for index in np.ndindex(*arrays[i].shape):
            sums = []
            for step in (1e-6, -1e-6):
                moved = arrays[i].copy()
                moved[index] += step
                sums.append(total_of(function, [*arrays[:i], moved, *arrays[i + 1 :]]))
            expected[index] = (sums[0] - sums[1]) / 2e-6
        np.testing.assert_allclose(np.asarray(gradient), expected, 1e-5, 1e-6)


@pytest.mark.parametrize("name", CASES)
def test_staged_with_unknown_dimensions(name):
    function, *arrays = CASES[name]
    # Kernels of convolutions have known sizes; what slides over has not.
    fixed = {1} if "conv" in name or name in ("depthwise", "separable") else set()
    fixed |= {2} if name == "separable" else set()
    signature = [ag.TensorSpec(a.shape if i in fixed else [None] * a.ndim, ag.float64) for i, a in enumerate(arrays)]

    @ag.function(input_signature=signature, autograph=False, jit_compile=False)
    def staged(*tensors):
        with ag.GradientTape() as tape:
            for t in tensors:
                tape.watch(t)
            y = function(*tensors)
            total = ag.reduce_sum(ag.sin(y))
        return (y, *tape.gradient(total, tensors, unconnected_gradients="zero"))

    y, expected = gradients(function, arrays)
    found = staged(*[ag.constant(a) for a in arrays])
    for one, other in zip(found, [y, *expected]):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), 1e-10, 1e-12)


# --- values --------------------------------------------------------------------------------------------------------


def test_convolution_is_correlation():
    found = np.asarray(ag.nn.conv2d(X4, W4, 1, "VALID"))
    for channel in range(3):
        expected = sum(signal.correlate(X4[0, :, :, c], W4[:, :, c, channel], "valid") for c in range(2))
        np.testing.assert_allclose(found[0, :, :, channel], expected, 1e-12)


def test_a_transposed_convolution_is_the_adjoint():
    y = f(1, 3, 4, 3)
    forward = np.asarray(ag.nn.conv2d(X4, W4, [2, 1], "SAME"))
    back = np.asarray(ag.nn.conv2d_transpose(y, W4, X4.shape, [2, 1], "SAME"))
    assert np.vdot(forward, y) == pytest.approx(np.vdot(X4, back))


def test_channels_first_is_a_transposition():
    last = ag.nn.conv2d(X4, W4, 1, "SAME")
    first = ag.nn.conv2d(ag.transpose(X4, [0, 3, 1, 2]), W4, 1, "SAME", "NCHW")
    np.testing.assert_allclose(np.asarray(ag.transpose(first, [0, 2, 3, 1])), np.asarray(last), 1e-12)


def test_pooling_leaves_padding_out():
    x = -np.ones((1, 3, 3, 1))
    assert np.asarray(ag.nn.max_pool2d(x, 2, 2, "SAME")).max() == -1
    np.testing.assert_array_equal(np.asarray(ag.nn.avg_pool2d(x, 2, 2, "SAME")), -np.ones((1, 2, 2, 1)))
    ints = ag.constant(np.arange(9).reshape(1, 3, 3, 1), ag.int32)
    assert ag.nn.max_pool2d(ints, 2, 1, "VALID").numpy().ravel().tolist() == [4, 5, 7, 8]


def test_max_pool_gives_the_gradient_to_the_first_of_equals():
    x = ag.constant(np.zeros((1, 2, 2, 1)))
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = ag.nn.max_pool2d(x, 2, 2, "VALID")
    assert tape.gradient(y, x).numpy().ravel().tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: ag.nn.conv2d(X4, W4, 1, "FULL"), "not in the list of allowed values"),
        (lambda: ag.nn.conv2d(X4, W4, [1, 1, 1], "SAME"), "strides should be of length 1, 2 or 4 but was 3"),
        (lambda: ag.nn.conv2d(f(1, 5, 5, 3), W4, 1, "SAME"), "evenly divisible by filter depth"),
        (lambda: ag.nn.conv2d(f(5, 5, 2), W4, 1, "SAME"), "input must be 4-dimensional"),
        (lambda: ag.linalg.cholesky([[1.0, 2.0], [2.0, 1.0]]), "Cholesky decomposition was not successful"),
        (lambda: ag.linalg.inv([[1.0, 1.0], [1.0, 1.0]]), "not invertible"),
        (lambda: ag.linalg.solve([[0.0, 0.0], [0.0, 0.0]], [[1.0], [1.0]]), "not invertible"),
        (lambda: ag.linalg.det([[1.0, 2.0, 3.0]]), "must be square"),
        (lambda: ag.einsum("ij,jk->ik", SPD), "Got 1 inputs"),
        (lambda: ag.einsum("ij->ik", SPD), "labels that no operand has"),
        (lambda: ag.einsum("ij,jk->ik", f(2, 3), f(2, 3)), "Expected dimension"),
        (lambda: ag.math.top_k([1.0, 2.0], 3), "at least k columns"),
        (lambda: ag.math.segment_sum([1.0, 2.0], [1, 0]), "not increasing"),
        (lambda: ag.math.unsorted_segment_sum([1.0, 2.0], [0, 5], 3), r"segment_ids\[1\] = 5 is out of range"),
        (lambda: ag.math.bincount([-1]), "non-negative"),
        (lambda: ag.sort([1.0], direction="UP"), "direction"),
        (lambda: ag.searchsorted([1.0], [1.0], side="up"), "side"),
        (lambda: ag.unique([[1]]), "1D vector"),
        (lambda: ag.math.confusion_matrix([0, 3], [0, 1], num_classes=2), "out of bound"),
        (lambda: ag.norm(SPD, "nuc"), "supported vector norm"),
        (lambda: ag.math.scalar_mul(f(2), 1.0), "must be a 0-D value"),
    ],
)
def test_errors(call, message):
    with pytest.raises((ValueError, ag.errors.InvalidArgumentError), match=message):
        call()


def test_integer_results():
    assert ag.math.confusion_matrix([1, 2, 4], [2, 2, 4]).numpy()[[1, 2, 4], [2, 2, 4]].tolist() == [1, 1, 1]
    assert ag.histogram_fixed_width([-1.0, 0.0, 1.5, 2.0, 5.0, 15.0], [0.0, 5.0], 5).numpy().tolist() == [2, 1, 1, 0, 2]
    assert ag.math.bincount([[1, 1, 2], [0, 3, 1]], axis=-1).numpy().tolist() == [[0, 2, 1, 0], [1, 1, 0, 1]]
    assert ag.math.bincount([1, 1, 2], minlength=5).numpy().tolist() == [0, 2, 1, 0, 0]
    assert ag.math.bincount([1, 1, 4], maxlength=3, binary_output=True).numpy().tolist() == [0, 1, 0]
    values, places, counts = ag.unique_with_counts([7, 7, 2, 7])
    assert (values.numpy().tolist(), places.numpy().tolist(), counts.numpy().tolist()) == ([7, 2], [0, 0, 1, 0], [3, 1])
    assert ag.unique(["b", "a", "b"])[0].numpy().tolist() == [b"b", b"a"]
    assert ag.math.in_top_k([1, 0, 9], [[0.1, 0.9, 0.9], [0.2, 0.3, 0.4], [1.0, 2.0, 3.0]], 1).numpy().tolist() == [
        True, False, False,
    ]  # fmt: skip
    assert ag.math.invert_permutation([2, 0, 1]).numpy().tolist() == [1, 2, 0]
    assert ag.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]]).numpy() == 1
    assert bool(ag.math.is_non_decreasing([1, 1, 2])) and not bool(ag.math.is_strictly_increasing([1, 1, 2]))
    assert ag.math.truncatemod(-7, 3).numpy() == -1
    assert float(ag.math.zero_fraction([0, 1, 0, 2])) == 0.5


def test_an_infinite_global_norm_is_seen():
    clipped, norm = ag.clip_by_global_norm([ag.constant([np.inf, 1.0])], 1.0)
    assert np.isinf(float(norm)) and np.isnan(clipped[0].numpy()).all()


def test_special_values():
    assert float(ag.math.xlogy(0.0, 0.0)) == float(ag.math.xdivy(0.0, 0.0)) == float(ag.math.xlog1py(0.0, -1.0)) == 0
    assert float(ag.math.multiply_no_nan(np.inf, 0.0)) == 0
    np.testing.assert_allclose(float(ag.math.lbeta([1.5, 2.5])), special.betaln(1.5, 2.5), 1e-6)
