"""`ag.signal` against NumPy and SciPy, eager, traced with unknown dimensions, and its gradients."""

import numpy as np
import pytest
from scipy import fft, signal

import autograph as ag

RANDOM = np.random.default_rng(5)
X = RANDOM.normal(size=(2, 3, 8))
Z = X + 1j * RANDOM.normal(size=X.shape)
ODD = RANDOM.normal(size=(3, 7))


def frames(x, length, step, pad):
    rows, start = [], 0
    while start < len(x) if pad else start + length <= len(x):
        row = x[start : start + length]
        rows.append(np.concatenate([row, np.zeros(length - len(row))]))
        start += step
    return np.array(rows)


def added(x, step):
    result = np.zeros((len(x), (x.shape[1] - 1) * step + x.shape[2]))
    for i in range(x.shape[1]):
        result[:, i * step : i * step + x.shape[2]] += x[:, i]
    return result


S = ag.signal
CASES = {
    "fft": (S.fft, Z, np.fft.fft(Z)), "ifft": (S.ifft, Z, np.fft.ifft(Z)),
    "fft2d": (S.fft2d, Z, np.fft.fft2(Z)), "ifft2d": (S.ifft2d, Z, np.fft.ifft2(Z)),
    "fft3d": (S.fft3d, Z, np.fft.fftn(Z)), "ifft3d": (S.ifft3d, Z, np.fft.ifftn(Z)),
    "rfft": (S.rfft, X, np.fft.rfft(X)), "rfft odd": (S.rfft, ODD, np.fft.rfft(ODD)),
    "rfft cropped": (lambda x: S.rfft(x, [5]), X, np.fft.rfft(X, 5)),
    "rfft filled": (lambda x: S.rfft(x, [11]), X, np.fft.rfft(X, 11)),
    "rfft2d": (lambda x: S.rfft2d(x, [4, 6]), X, np.fft.rfft2(X, (4, 6))),
    "rfft3d": (S.rfft3d, X, np.fft.rfftn(X)),
    "irfft": (S.irfft, Z, np.fft.irfft(Z)), "irfft odd": (lambda z: S.irfft(z, [7]), Z, np.fft.irfft(Z, 7)),
    "irfft2d": (lambda z: S.irfft2d(z, [3, 9]), Z, np.fft.irfft2(Z, (3, 9))),
    "irfft3d": (S.irfft3d, Z, np.fft.irfftn(Z)),
    "fftshift": (S.fftshift, ODD, np.fft.fftshift(ODD)), "ifftshift": (S.ifftshift, ODD, np.fft.ifftshift(ODD)),
    "fftshift axes": (lambda x: S.fftshift(x, [1]), ODD, np.fft.fftshift(ODD, 1)),
    "dct": (S.dct, X, fft.dct(X)), "dct 1": (lambda x: S.dct(x, 1), X, fft.dct(X, 1)),
    "dct 3": (lambda x: S.dct(x, 3), X, fft.dct(X, 3)), "dct 4": (lambda x: S.dct(x, 4), X, fft.dct(X, 4)),
    "dct ortho": (lambda x: S.dct(x, norm="ortho"), X, fft.dct(X, norm="ortho")),
    "dct filled": (lambda x: S.dct(x, n=10), X, fft.dct(X, n=10)),
    "idct": (lambda x: S.idct(S.dct(x)), X, X * 16), "idct 1": (lambda x: S.idct(S.dct(x, 1), 1), X, X * 14),
    "idct ortho": (lambda x: S.idct(S.dct(x, norm="ortho"), norm="ortho"), X, X),
    "frame": (lambda x: S.frame(x, 3, 2), ODD, np.stack([frames(row, 3, 2, False) for row in ODD])),
    "frame padded": (
        lambda x: S.frame(x, 3, 2, pad_end=True), ODD, np.stack([frames(row, 3, 2, True) for row in ODD])),
    "frame axis": (lambda x: S.frame(x, 2, 1, axis=0), ODD, np.stack([ODD[:2], ODD[1:]])),
    "frame too long": (lambda x: S.frame(x, 9, 2), ODD, np.zeros((3, 0, 9))),
    "overlap_and_add": (lambda x: S.overlap_and_add(x, 5), X, added(X, 5)),
}  # fmt: skip


@pytest.mark.parametrize("unknown", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_values(name, unknown):
    function, x, expected = CASES[name]
    np.testing.assert_allclose(function(ag.constant(x)), expected, atol=1e-12)
    spec = ag.TensorSpec([None] * x.ndim if unknown else x.shape, x.dtype)
    np.testing.assert_allclose(ag.function(function, input_signature=[spec])(x), expected, atol=1e-12)


def test_single_precision_stays():
    assert S.rfft(ag.constant([1.0, 2.0])).dtype is ag.complex64
    assert S.irfft(ag.constant([1 + 0j, 2], ag.complex64)).dtype is ag.float32
    assert S.fft(ag.constant([1 + 0j, 2], ag.complex64)).dtype is ag.complex64
    assert S.dct([1.0, 2.0]).dtype is ag.float32


@pytest.mark.parametrize("name", ["fft2d", "irfft2d", "rfft filled", "rfft2d", "dct 1", "dct", "frame padded"])
def test_gradients_are_the_adjoint(name):
    """<F u, w> = <u, F* w> for the linear map F, in real inner products."""
    function, x, expected = CASES[name]
    u = ag.constant(RANDOM.normal(size=x.shape) + (1j * RANDOM.normal(size=x.shape) if x.dtype == complex else 0))
    w = RANDOM.normal(size=expected.shape) + (
        1j * RANDOM.normal(size=expected.shape) if expected.dtype == complex else 0
    )
    for staged in (False, True):
        with ag.GradientTape() as tape:
            tape.watch(u)
            y = ag.function(function)(u) if staged else function(u)
        gradient = tape.gradient(y, u, output_gradients=ag.constant(w))
        np.testing.assert_allclose(np.vdot(y, w).real, np.vdot(u, gradient).real)


def test_windows():
    for length in (1, 2, 7, 8):
        np.testing.assert_allclose(S.hann_window(length, periodic=False), signal.windows.hann(length), atol=1e-6)
        np.testing.assert_allclose(S.hamming_window(length, periodic=False), signal.windows.hamming(length), atol=1e-6)
        np.testing.assert_allclose(S.kaiser_window(length, 3.0), signal.windows.kaiser(length, 3.0), atol=1e-6)
    np.testing.assert_allclose(S.hann_window(8), signal.windows.hann(8, sym=False), atol=1e-6)
    # TensorFlow's periodic windows of odd length are the symmetric ones.
    np.testing.assert_allclose(S.hann_window(7), signal.windows.hann(7), atol=1e-6)
    both = S.vorbis_window(8).numpy() ** 2
    np.testing.assert_allclose(both[:4] + both[4:], 1, atol=1e-6)
    both = S.kaiser_bessel_derived_window(8, 4.0).numpy() ** 2
    np.testing.assert_allclose(both[:4] + both[4:], 1, atol=1e-6)
    assert S.hann_window(4, dtype=ag.float64).dtype is ag.float64
    with pytest.raises(ValueError, match="floating"):
        S.hann_window(4, dtype=ag.int32)


def test_short_time_transform_and_back():
    sound = RANDOM.normal(size=(2, 100))
    spectrum = S.stft(sound, frame_length=16, frame_step=4, fft_length=20)
    windowed = np.stack([frames(row, 16, 4, False) for row in sound]) * signal.windows.hann(16, sym=False)
    np.testing.assert_allclose(spectrum, np.fft.rfft(windowed, 20), atol=1e-12)
    back = S.inverse_stft(spectrum, 16, 4, 20, window_fn=S.inverse_stft_window_fn(4))
    np.testing.assert_allclose(back[:, 16:80], sound[:, 16:80], atol=1e-12)
    assert S.stft(sound, 12, 4).shape == (2, 23, 9)

    @ag.function
    def energy(x):
        return ag.reduce_sum(ag.abs(S.stft(x, 16, 8)) ** 2)

    x = ag.constant(sound)
    with ag.GradientTape() as tape:
        tape.watch(x)
        loss = energy(x)
    gradient = tape.gradient(loss, x).numpy()
    moved = sound.copy()
    moved[1, 30] += 1e-6
    np.testing.assert_allclose(gradient[1, 30], (float(energy(moved)) - float(loss)) / 1e-6, rtol=1e-4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: S.fft(ag.constant([1.0])), "complex64, complex128"),
        (lambda: S.fft2d(ag.constant([1j])), "rank of at least 2 but got: \\[1\\]"),
        (lambda: S.rfft([1.0], [2, 3]), "1 elements"),
        (lambda: S.dct([1.0], type=5), "Types I, II, III and IV"),
        (lambda: S.dct([1.0, 2.0], type=1, norm="ortho"), "Type-I"),
        (lambda: S.frame([1.0], 0, 1), "positive"),
        (lambda: S.frame([1.0], 1, 1, axis=2), "axis"),
        (lambda: S.overlap_and_add([1.0], 1), "rank >= 2"),
    ],
)
def test_errors(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
