"""Diagonals in bands, eigenvalues of any matrix, LU, tridiagonal systems, square roots: values and gradients."""

import numpy as np
import pytest

import autograph as ag
from tests.ops.test_complex import check_gradient

L = ag.linalg
RANDOM = np.random.default_rng(9)
A = RANDOM.normal(size=(2, 4, 4)) + 3 * np.eye(4)
B = RANDOM.normal(size=(2, 4, 3))
BAND = RANDOM.normal(size=(2, 3, 4)) + np.array([[0.0], [4.0], [0.0]])


def dense(band):
    above, middle, below = band[:, 0, :-1], band[:, 1], band[:, 2, 1:]
    return np.stack([np.diag(m) + np.diag(a, 1) + np.diag(b, -1) for a, m, b in zip(above, middle, below)])


@pytest.mark.parametrize("align", ["RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"])
@pytest.mark.parametrize("k", [1, -1, 2, (-1, 1), (0, 2), (-2, -1), (-2, 3), (1, 2)])
def test_bands(k, align):
    x = np.arange(1.0, 25.0).reshape(2, 3, 4)
    low, high = k if isinstance(k, tuple) else (k, k)
    inside = np.array([[low <= j - i <= high for j in range(4)] for i in range(3)])
    band = L.diag_part(x, k=k, align=align)
    rows = np.asarray(band) if low < high else np.asarray(band)[:, None]
    for row, offset in enumerate(range(high, low - 1, -1)):
        line = np.diagonal(x, offset, 1, 2)
        held = rows[:, row]
        left = align.split("_")[offset < 0] == "LEFT" or (offset == 0 and "LEFT" in align)
        start = 0 if left else held.shape[1] - line.shape[1]
        np.testing.assert_array_equal(held[:, start : start + line.shape[1]], line)
        assert (held != 0).sum() == line.size
    np.testing.assert_array_equal(L.diag(band, k=k, align=align, num_rows=3, num_cols=4), np.where(inside, x, 0))
    changed = L.set_diag(np.zeros_like(x), band, k=k, align=align)
    np.testing.assert_array_equal(changed, np.where(inside, x, 0))


def test_gradients_of_bands():
    check_gradient(lambda x: L.diag_part(x, k=(-1, 2)), A)
    check_gradient(lambda x, d: L.set_diag(x, d, k=(-1, 0)), A, RANDOM.normal(size=(2, 2, 4)))
    check_gradient(lambda d: L.diag(d, k=1), B)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: L.diag_part(A, k=4), "don't lie in a matrix of shape \\[4,4\\]"),
        (lambda: L.diag_part(A, k=(1, 0)), "must not be larger"),
        (lambda: L.set_diag(A, B, k=1), "must have shape \\[2,3\\] for k = 1, got \\[2,4,3\\]"),
        (lambda: L.diag([1.0, 2.0], num_rows=1), "needs 2 rows"),
        (lambda: L.diag_part(A, k=(0, 1), align="MIDDLE"), "align"),
        (lambda: L.lu(np.zeros((2, 2))), "not invertible"),
        (lambda: L.lu(np.zeros((2, 3))), "square"),
        (lambda: L.eig(np.zeros((2, 3))), "square"),
        (lambda: L.tridiagonal_solve(np.zeros((3, 2)), [1.0, 2.0]), "not invertible"),
    ],
)
def test_errors(call, message):
    with pytest.raises((ag.errors.InvalidArgumentError, ValueError), match=message):
        call()


def test_eigenvalues():
    values, vectors = L.eig(A)
    np.testing.assert_allclose(A @ vectors, vectors * np.asarray(values)[:, None], atol=1e-12)
    np.testing.assert_allclose(np.sort_complex(L.eigvals(A)), np.sort_complex(np.linalg.eigvals(A)))
    assert L.eigvals(ag.constant(A, ag.float32)).dtype is ag.complex64
    check_gradient(lambda x: L.eigvals(x), A[0], tolerance=1e-5)
    check_gradient(lambda x: ag.square(ag.abs(L.eig(x)[1])), A[0] + 0.3j * A[1], tolerance=1e-5)


def test_lu():
    packed, order = L.lu(A)
    assert order.dtype is ag.int32
    np.testing.assert_allclose(L.lu_reconstruct(packed, order), A)
    np.testing.assert_allclose(L.lu_solve(packed, order, B), np.linalg.solve(A, B))
    np.testing.assert_allclose(L.lu_matrix_inverse(packed, order), np.linalg.inv(A))
    check_gradient(lambda x: L.lu(x)[0], A[0])
    check_gradient(lambda x: L.lu(x)[0], A[0] + 0.3j * A[1])
    check_gradient(lambda x, b: L.lu_solve(*L.lu(x), b), A, B)


def test_tridiagonal():
    matrix = dense(BAND)
    forms = {"compact": BAND, "sequence": tuple(BAND[:, i] for i in range(3)), "matrix": matrix}
    for form, value in forms.items():
        np.testing.assert_allclose(L.tridiagonal_solve(value, B, form), np.linalg.solve(matrix, B))
        np.testing.assert_allclose(L.tridiagonal_matmul(value, B, form), matrix @ B)
    vector = L.tridiagonal_solve(BAND, B[:, :, 0])
    np.testing.assert_allclose(vector, np.linalg.solve(matrix, B[:, :, :1])[..., 0])
    turned = L.tridiagonal_solve(BAND, np.swapaxes(B, 1, 2), transpose_rhs=True)
    np.testing.assert_allclose(turned, np.linalg.solve(matrix, B))
    check_gradient(lambda d, b: L.tridiagonal_solve(d, b), BAND, B)
    check_gradient(lambda d, b: L.tridiagonal_matmul(d, b), BAND, B)
    check_gradient(lambda d, b: L.tridiagonal_solve(d, b), BAND + 0.2j, B + 1j)
    alpha, beta = BAND[0, 1], BAND[0, 0, :-1]
    expected = np.linalg.eigvalsh(np.diag(alpha) + np.diag(beta, 1) + np.diag(beta, -1))
    np.testing.assert_allclose(L.eigh_tridiagonal(alpha, beta), expected)


def test_logarithm():
    x = A[0] @ A[0].T + 0j
    np.testing.assert_allclose(L.expm(L.logm(x)), x)


def test_functions_of_full_factors():
    """Full QR and SVD: gradients of what doesn't depend on the basis of the complement."""
    tall = RANDOM.normal(size=(4, 2))
    check_gradient(lambda x: (lambda q: ag.matmul(q, q, transpose_b=True))(L.qr(x, full_matrices=True)[0][:, 2:]), tall)
    check_gradient(
        lambda x: (lambda u: ag.matmul(u, u, transpose_b=True))(L.svd(x, full_matrices=True)[1][:, 2:]), tall
    )
    check_gradient(lambda x: L.sqrtm(ag.matmul(x, x, transpose_b=True)), A[0])
