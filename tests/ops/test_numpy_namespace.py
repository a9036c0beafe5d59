"""`ag.experimental.numpy`, NumPy's functions of complex numbers and its Fourier transforms on tensors."""

import numpy as np
import pytest

import autograph as ag

tnp = ag.experimental.numpy
RANDOM = np.random.default_rng(2)
A = RANDOM.normal(size=(3, 4))
Z = A + 1j * RANDOM.normal(size=A.shape)

# The functions of NumPy that programs use most, each on arrays of the kind that it is for.
CALLS = {
    **{name: (A,) for name in (
        "abs absolute all any argmax argmin argsort around atleast_1d atleast_2d atleast_3d average ceil copy cos "
        "cosh count_nonzero cumprod cumsum deg2rad diag diagonal diff exp exp2 expm1 fabs fix flip fliplr flipud "
        "floor imag isfinite isinf isnan max mean median min nan_to_num nanmax nanmean nanmin nansum ndim negative "
        "nonzero ones_like positive prod ptp rad2deg ravel real reciprocal rot90 round sign signbit sin sinc sinh size "
        "sort square squeeze std sum tan tanh trace transpose tril triu trunc unique var zeros_like shape conj angle"
    ).split()},
    **{name: (abs(A) % 0.9 + 0.05,) for name in "arccos arcsin arctan arctanh cbrt log log10 log1p log2 sqrt".split()},
    "arccosh": (abs(A) + 1,), "arcsinh": (A,),
    **{name: (A, A[0] + 0.5) for name in (
        "add arctan2 divide equal floor_divide greater greater_equal heaviside hypot isclose less less_equal "
        "logaddexp maximum minimum mod multiply not_equal remainder subtract true_divide inner allclose"
    ).split()},
    "power": (abs(A), A[0]), "logical_and": (A > 0, A[0] > 0), "logical_or": (A > 0, A[0] > 0),
    "logical_not": (A > 0,), "logical_xor": (A > 0, A[0] > 0), "bitwise_and": (np.arange(4), 2),
    "dot": (A, A.T), "matmul": (A, A.T), "outer": (A[0], A[1]), "vdot": (Z, Z[::-1]), "cross": (A[:, :3], A[:, 1:]),
    "kron": (A, A[:2]), "tensordot": (A, A.T, 1), "einsum": ("ij,kj->ik", A, A), "where": (A > 0, A, 0.0),
    "clip": (A, -0.5, 0.5), "concatenate": ([A, A],), "stack": ([A, A],), "vstack": ([A, A],), "hstack": ([A, A],),
    "dstack": ([A, A],), "column_stack": ([A[0], A[1]],), "split": (A, 2, 1), "reshape": (A, (4, 3)),
    "tile": (A, (2, 1)), "repeat": (A, 2), "roll": (A, 1), "moveaxis": (A, 0, 1), "swapaxes": (A, 0, 1),
    "expand_dims": (A, 0), "pad": (A, 1), "broadcast_to": (A[0], (3, 4)), "take": (A, [1, 2]),
    "take_along_axis": (A, np.argsort(A), 1), "searchsorted": (np.sort(A[0]), A[1]), "percentile": (A, 30),
    "quantile": (A, 0.3), "interp": (A[0], np.arange(3.0), np.ones(3)), "polyval": (A[0], 2.0), "array_equal": (A, A),
    "select": ([A > 0, A < 0], [A, -A]), "meshgrid": (A[0], A[1]), "bincount": (np.array([0, 2, 2]),),
    "trapezoid": (A,), "full_like": (A, 2.0),
    "array": ([1, 2.5],), "asarray": (A,), "arange": (3, 9, 2), "linspace": (0.0, 1.0, 5), "logspace": (0.0, 2.0, 3),
    "geomspace": (1.0, 8.0, 4), "zeros": ((2, 3),), "ones": ((2, 3),), "full": ((2,), 7), "eye": (3,),
    "identity": (3,), "tri": (3,), "vander": (A[0],), "gcd": (12, 18), "lcm": (4, 6), "ix_": ([0, 1], [1]),
}  # fmt: skip
CALLS = {name: arguments for name, arguments in CALLS.items() if hasattr(np, name)}


def tensors(value):
    if isinstance(value, np.ndarray):
        return ag.constant(value)
    return type(value)(map(tensors, value)) if isinstance(value, (list, tuple)) else value


def flat(result):
    return list(result) if isinstance(result, (list, tuple)) else [result]


def test_there_are_a_hundred():
    assert len(CALLS) > 150


@pytest.mark.parametrize("name", CALLS)
def test_namespace(name):
    arguments = CALLS[name]
    expected = flat(getattr(np, name)(*arguments))
    for given in (arguments, tensors(arguments)):
        found = flat(getattr(tnp, name)(*given))
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            if name not in ("shape", "ndim", "size"):
                assert isinstance(one, ag.Tensor)
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-6, atol=1e-12)


# Results whose shape depends on values, and functions that make arrays rather than take them.
NOT_STAGED = {
    "unique", "array", "asarray", "arange", "linspace", "logspace", "geomspace", "zeros", "ones", "full", "eye",
    "identity", "tri", "gcd", "lcm", "ix_", "vander", "nonzero", "sinc", "shape", "ndim", "size", "einsum", "positive",
    "copy",
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in CALLS if name not in NOT_STAGED])
def test_staged(name):
    """Both ways to call it on staged tensors: NumPy's own function, and this namespace's."""
    arguments = tensors(CALLS[name])
    expected = flat(getattr(np, name)(*CALLS[name]))
    for module in (np, tnp):
        function = getattr(module, name)
        found = flat(ag.function(lambda *values: function(*values))(*arguments))
        for one, other in zip(found, expected):
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-6, atol=1e-12)


def test_gradients_and_dtypes():
    x = tnp.asarray([1.0, 2.0])
    assert x.dtype is ag.float64
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = tnp.sum(tnp.sin(x) * x)
    np.testing.assert_allclose(tape.gradient(y, x), np.sin([1, 2]) + np.array([1, 2]) * np.cos([1, 2]))
    assert tnp.zeros(2, dtype=ag.float32).dtype is ag.float32 and tnp.ones(2, tnp.int32).dtype is ag.int32
    assert tnp.ndarray is ag.Tensor and tnp.pi == np.pi and tnp.newaxis is None
    tnp.experimental_enable_numpy_behavior()
    tnp.experimental_enable_numpy_behavior(dtype_conversion_mode="off")


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_fourier_functions_of_numpy(name):
    x = A if name == "rfft" else Z
    function = getattr(np.fft, name)
    for options in ({}, {"axis": 0}, {"n": 5}, {"n": 3, "axis": 0}):
        found = ag.function(lambda v: function(v, **options))(ag.constant(x))
        np.testing.assert_allclose(found, function(x, **options), atol=1e-12)


def test_complex_functions_of_numpy():
    z = ag.constant(Z)
    for function in (np.real, np.imag, np.angle, np.conj, np.abs, np.exp, np.fft.fft2, np.fft.ifft2, np.fft.fftshift):
        np.testing.assert_allclose(ag.function(lambda v: function(v))(z), function(Z), atol=1e-12)
    np.testing.assert_allclose(ag.function(lambda v: np.vdot(v, v))(z), np.vdot(Z, Z))
