"""Complex numbers and bfloat16: gradients in TensorFlow's convention, compiled functions, conversion, printing, errors.

A gradient by a complex z = x + iy is dL/dx + i dL/dy of a real L; finite differences give both parts.
"""

import numpy as np
import pytest

import autograph as ag
from runtime.ops.dispatch import apply
from runtime.ops.table import OPS
from runtime.tensor import EagerTensor

RANDOM = np.random.default_rng(3)


def numbers(*shape, low=-1.5, high=1.5):
    return RANDOM.uniform(low, high, shape) + 1j * RANDOM.uniform(-0.7, 0.7, shape)


def real_loss(outputs):
    """A real function of complex and real outputs, in which their real and imaginary parts count differently."""
    total = ag.constant(0.0, ag.float64)
    for k, y in enumerate(outputs):
        if not (y.dtype.is_complex or y.dtype.is_floating):
            continue
        y = ag.reshape(y, [-1])
        weights = ag.cos(ag.cast(ag.range(ag.size(y)) + k, ag.float64))
        total += ag.reduce_sum(ag.cast(ag.math.real(y), ag.float64) * weights)
        total += 0.5 * ag.reduce_sum(ag.cast(ag.math.imag(y), ag.float64) ** 2 * weights)
    return total


def differences(loss, arrays, which, step=1e-6):
    base = np.asarray(arrays[which])
    result = np.zeros(base.shape, np.complex128)
    for index in np.ndindex(*base.shape):
        for direction in (1, 1j) if base.dtype.kind == "c" else (1,):
            values = []
            for sign in (1, -1):
                moved = base.copy()
                moved[index] += sign * step * direction
                values.append(float(loss([*arrays[:which], moved, *arrays[which + 1 :]])))
            result[index] += direction * (values[0] - values[1]) / (2 * step)
    return result if base.dtype.kind == "c" else result.real


def check_gradient(function, *arrays, tolerance=1e-6, both=(False, True)):
    """`function` of complex128 (or float64) tensors, differentiated by each; also in a compiled function."""

    def loss(values):
        outputs = function(*[ag.constant(v) for v in values])
        return real_loss(outputs if isinstance(outputs, (tuple, list)) else [outputs])

    for staged in both:
        tensors = [ag.constant(a) for a in arrays]
        traced = ag.function(lambda *values: loss(list(values))) if staged else lambda *values: loss(list(values))
        with ag.GradientTape() as tape:
            tape.watch(tensors)
            value = traced(*tensors)
        for i, gradient in enumerate(tape.gradient(value, tensors)):
            expected = differences(loss, list(arrays), i)
            found = np.zeros_like(expected) if gradient is None else np.asarray(gradient)
            np.testing.assert_allclose(found, expected, tolerance, tolerance)


# Factorisations leave phases free; they have a test of their own, of losses that don't depend on them.
# `resize_rows` and `array_write` give rows without a value.
FACTORS = {"qr", "svd", "self_adjoint_eig", "cholesky", "resize_rows", "array_write"}
ROWS = [
    pytest.param(row, number, id=f"{name}-{number}")
    for name, row in OPS.items()
    if "c" in row.kinds and row.grad is not None and name not in FACTORS
    for number, sample in enumerate(row.samples or ())
    if all(np.prod(s) for s in sample.shapes) and not sample.attrs.get("dtype", ag.complex128).name.endswith("16")
    and not (name == "cast" and not sample.attrs["dtype"].is_complex and sample.attrs["dtype"].name != "float64")
    and not (name == "cast" and sample.attrs["dtype"].name == "complex64") and number < 4
]  # fmt: skip


@pytest.mark.parametrize("row, number", ROWS)
def test_gradient_of_every_row(row, number):
    sample = row.samples[number]
    fixed = dict(sample.fixed)
    free = [i for i in range(len(sample.shapes)) if i not in fixed]
    if sample.gradient is not None:
        free = [i for i in free if i in sample.gradient]
    if not free or row.infer is None:
        pytest.skip("nothing to differentiate by")
    arrays = [
        np.asarray(fixed[i]) if i in fixed else numbers(*shape, low=max(sample.low, -1.5), high=min(sample.high, 1.5))
        for i, shape in enumerate(sample.shapes)
    ]
    arrays = [a.astype(np.complex128) if a.dtype.kind == "f" else a for a in arrays]

    def function(*values):
        full = [ag.constant(a) for a in arrays]
        for i, value in zip(free, values):
            full[i] = value
        result = apply(row, full, sample.attrs)
        return result

    check_gradient(function, *[arrays[i] for i in free], tolerance=3e-5, both=(number == 0,))


A, B = numbers(3, 3) + 2 * np.eye(3), numbers(3, 2)


def hermitian(a):
    return (a + ag.linalg.adjoint(a)) / 2


def positive(a):
    return ag.matmul(a, a, adjoint_b=True) + 2 * ag.eye(3, dtype=ag.complex128)


def span(q):
    return ag.matmul(q, q, adjoint_b=True)


W = numbers(3, 3)
FUNCTIONS = {
    "abs": (ag.abs, B), "angle": (ag.math.angle, B), "sign": (ag.sign, B), "conj": (ag.math.conj, B),
    "real": (ag.math.real, B), "imag": (ag.math.imag, B),
    "complex": (ag.complex, B.real, B.imag),
    "squared_difference": (ag.math.squared_difference, B, 2 * B),
    "power": (lambda z, w: z**w, B + 2, B), "square": (lambda z: z**2, B),
    "divide_no_nan": (ag.math.divide_no_nan, B, B),
    "adjoint product": (lambda a, b: ag.matmul(a, b, adjoint_a=True), A, B),
    "adjoint solve": (lambda a, b: ag.linalg.solve(a, b, adjoint=True), A, B),
    "triangular": (lambda a, b: ag.linalg.triangular_solve(a, b, adjoint=True), A, B),
    "variance": (ag.math.reduce_variance, B), "norm": (lambda z: ag.norm(z), B), "norm 1": (lambda z: ag.norm(z, 1), B),
    "cholesky": (lambda a: ag.linalg.cholesky(positive(a)), A), "logdet": (lambda a: ag.linalg.logdet(positive(a)), A),
    "eigenvalues": (lambda a: ag.linalg.eigvalsh(hermitian(a)), A),
    "eigenvectors": (lambda a: ag.square(ag.abs(ag.linalg.eigh(hermitian(a))[1])), A),
    "eigh function": (lambda a: (lambda e, v: ag.matmul(v * ag.exp(e), v, adjoint_b=True))(
        *ag.linalg.eigh(hermitian(a))), A),
    "qr": (lambda a: ag.linalg.qr(a), A), "qr tall": (lambda a: ag.linalg.qr(a), B), "qr wide": (
        lambda a: ag.linalg.qr(ag.transpose(a)), B),
    "qr full": (lambda a: (lambda q, r: (span(q[:, 2:]), span(q[:, :2]), r))(*ag.linalg.qr(a, full_matrices=True)), B),
    "svd values": (lambda a: ag.linalg.svd(a, compute_uv=False), B),
    "svd": (lambda a: (lambda s, u, v: (s, ag.matmul(u * ag.constant([1.0 + 0j, 2]), v, adjoint_b=True)))(
        *ag.linalg.svd(a)), B),
    "svd of one side": (lambda a: (lambda s, u, v: ag.abs(u[:2, :]))(*ag.linalg.svd(a)), B),
    "svd full": (lambda a: (lambda s, u, v: span(u[:, 2:]))(*ag.linalg.svd(a, full_matrices=True)), B),
    "pinv": (ag.linalg.pinv, B), "sqrtm": (lambda a: ag.linalg.sqrtm(positive(a)), A), "expm": (ag.linalg.expm, A / 2),
    "lstsq": (lambda a, b: ag.linalg.lstsq(a, b), numbers(3, 2), B), "slogdet": (ag.linalg.slogdet, A),
    "einsum": (lambda a, b: ag.einsum("ij,jk->ki", a, b), A, B),
    "tensordot": (lambda a, b: ag.tensordot(a, b, 1), A, B),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradient_of_functions(name):
    function, *arrays = FUNCTIONS[name]
    check_gradient(function, *arrays, tolerance=2e-5)


def test_values_of_linear_algebra():
    a, b = ag.constant(A), ag.constant(B)
    np.testing.assert_allclose(ag.linalg.solve(a, b, adjoint=True), np.linalg.solve(A.conj().T, B))
    np.testing.assert_allclose(ag.linalg.inv(a, adjoint=True), np.linalg.inv(A.conj().T))
    np.testing.assert_allclose(ag.matmul(b, a, adjoint_a=True), B.conj().T @ A)
    s, u, v = ag.linalg.svd(b)
    assert s.dtype is ag.float64
    np.testing.assert_allclose(np.asarray(u) * np.asarray(s) @ np.asarray(v).conj().T, B)
    values, vectors = ag.linalg.eigh(a + ag.linalg.adjoint(a))
    assert values.dtype is ag.complex128
    np.testing.assert_allclose((a + ag.linalg.adjoint(a)) @ vectors, vectors * values, atol=1e-12)
    low = ag.linalg.cholesky(a @ ag.linalg.adjoint(a))
    np.testing.assert_allclose(ag.matmul(low, low, adjoint_b=True), A @ A.conj().T)
    np.testing.assert_allclose(ag.norm(b).numpy(), np.linalg.norm(B) + 0j)
    assert ag.norm(b).dtype is ag.complex128


def test_conversion_and_printing():
    z = ag.constant([1 + 2j, 3])
    assert repr(z) == "<tf.Tensor: shape=(2,), dtype=complex128, numpy=array([1.+2.j, 3.+0.j])>"
    assert ag.constant(2j).dtype is ag.complex128
    assert ag.constant([1, 2.5], ag.complex64).dtype is ag.complex64
    assert (z * 2).dtype is (z + 0.5).dtype is (1j * z).dtype is ag.complex128
    assert complex(z[0]) == 1 + 2j
    assert ag.abs(ag.constant([3 + 4j], ag.complex64)).dtype is ag.float32
    np.testing.assert_array_equal(ag.cast(z, ag.float32), [1, 3])
    np.testing.assert_array_equal(ag.cast(z, ag.bool), [True, True])
    assert ag.cast(3, ag.complex64).numpy() == 3 + 0j
    assert ag.math.real(2.0).numpy() == 2.0 and ag.math.imag(2.0).numpy() == 0.0 and ag.math.conj(3).numpy() == 3
    np.testing.assert_allclose(ag.math.angle([-1.0, 1.0]), [np.pi, 0])
    assert (z == z).numpy().all()
    b = ag.constant([1, 2], ag.bfloat16)
    assert repr(b) == "<tf.Tensor: shape=(2,), dtype=bfloat16, numpy=array([1, 2], dtype=bfloat16)>"
    np.testing.assert_array_equal((b + 1.5).numpy().astype(np.float32), [2.5, 3.5])
    assert (ag.cast(1.0, ag.bfloat16) / 3).numpy() == np.float32(0.333984375)


@pytest.mark.parametrize(
    "call",
    [
        lambda z: ag.constant(1.0) * 1j, lambda z: z < z, lambda z: ag.reduce_max(z), lambda z: ag.argmax(z),
        lambda z: ag.sort(z), lambda z: z // z, lambda z: ag.constant(True, ag.complex64), lambda z: ag.complex(1, 2),
        lambda z: ag.complex(ag.constant(1.0), ag.constant(1.0, ag.float64)), lambda z: ag.nn.relu(z),
        lambda z: ag.maximum(z, z), lambda z: ag.math.erf(z), lambda z: ag.math.is_nan(z),
        lambda z: ag.constant(z.numpy(), ag.float32), lambda z: ag.random.normal([2], dtype=ag.complex64),
        lambda z: ag.complex64.min, lambda z: ag.matmul(A, A, transpose_a=True, adjoint_a=True),
    ],
)  # fmt: skip
def test_refused_as_in_tensorflow(call):
    with pytest.raises((TypeError, ValueError)):
        call(ag.constant([1 + 2j, 3]))


def test_dtype_attributes():
    assert ag.complex64.is_complex and not ag.complex64.is_floating and ag.complex64.real_dtype is ag.float32
    assert ag.complex128.size == 16 and ag.complex64.as_numpy_dtype is np.complex64
    assert ag.bfloat16.is_floating and ag.bfloat16.size == 2 and ag.bfloat16.name == "bfloat16"
    assert float(ag.bfloat16.max) == 3.3895313892515355e38 and float(ag.bfloat16.min) == -float(ag.bfloat16.max)
    assert ag.as_dtype("complex64") is ag.complex64 and ag.as_dtype(np.dtype(np.complex128)) is ag.complex128
    assert ag.as_dtype(ag.bfloat16.as_numpy_dtype) is ag.bfloat16 is ag.as_dtype("bfloat16")
    assert ag.uint8.limits == (0, 255) and ag.float32.limits == (0, 1) and ag.bool.max is True


def test_loops_and_branches_in_compiled_functions():
    def iterate(z, count):
        trips = ag.constant(0)
        while ag.abs(z) < 4.0 and trips < count:
            if ag.math.imag(z) > 0:
                z = z * z + 0.3
            else:
                z = z * (1 + 0.5j)
            trips += 1
        return z

    check_gradient(lambda z: iterate(z, 6), np.array(0.3 + 0.4j))
    compiled = ag.function(iterate)
    for _ in range(2):
        found = compiled(ag.constant(0.3 + 0.4j), ag.constant(6))
        np.testing.assert_allclose(found, iterate(ag.constant(0.3 + 0.4j), 6))


def test_bfloat16_in_compiled_functions():
    @ag.function
    def descend(x, steps):
        for _ in ag.range(steps):
            with ag.GradientTape() as tape:
                tape.watch(x)
                loss = ag.reduce_sum(ag.square(x - 3.0)) + ag.reduce_mean(ag.nn.softplus(x))
            x -= 0.1 * tape.gradient(loss, x)
        return x

    start = ag.constant([0.0, 1.0], ag.bfloat16)
    with ag.GradientTape() as tape:
        tape.watch(start)
        end = descend(start, ag.constant(20))
    assert end.dtype is ag.bfloat16
    np.testing.assert_allclose(end.numpy().astype(np.float32), [2.77, 2.77], atol=0.05)
    assert tape.gradient(end, start).dtype is ag.bfloat16


def test_kernels_of_bfloat16_round_once():
    """What NumPy would round after each step is computed in float32: a sum of many small numbers doesn't stop."""
    x = EagerTensor(np.full(4096, 1, ag.bfloat16.np))
    assert float(ag.reduce_sum(x)) == 4096
