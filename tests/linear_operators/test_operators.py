"""Linear operators: whatever they know a cheaper way for equals what their matrices give, eagerly and traced."""

import numpy as np
import pytest

import autograph as ag
from autograph.linear_operators.blocks import LinearOperatorBlockDiag, LinearOperatorBlockLowerTriangular
from autograph.linear_operators.circulant import (
    LinearOperatorCirculant,
    LinearOperatorCirculant2D,
    LinearOperatorCirculant3D,
)
from autograph.linear_operators.combinations import (
    LinearOperatorAdjoint,
    LinearOperatorComposition,
    LinearOperatorInversion,
    LinearOperatorKronecker,
    LinearOperatorLowRankUpdate,
)
from autograph.linear_operators.elementary import (
    LinearOperatorDiag,
    LinearOperatorIdentity,
    LinearOperatorScaledIdentity,
    LinearOperatorZeros,
)
from autograph.linear_operators.matrices import (
    LinearOperatorFullMatrix,
    LinearOperatorHouseholder,
    LinearOperatorLowerTriangular,
    LinearOperatorPermutation,
    LinearOperatorToeplitz,
    LinearOperatorTridiag,
)
from autograph.linear_operators.sums import add_operators

RNG = np.random.default_rng(5)
A = RNG.normal(size=(2, 3, 3)) + 4 * np.eye(3)
B = RNG.normal(size=(2, 2)) + 3 * np.eye(2)
D = RNG.uniform(1, 2, (2, 3))
V = RNG.normal(size=(2, 3, 1))
POSITIVE = A @ np.swapaxes(A, -1, -2)
Z = D + 1j * D[::-1]


def full(matrix, **hints):
    return LinearOperatorFullMatrix(matrix, **hints)


def blocks(*parts):
    """Matrices along a diagonal."""
    batch = np.broadcast_shapes(*[part.shape[:-2] for part in parts])
    size = sum(part.shape[-1] for part in parts)
    whole, at = np.zeros((*batch, size, size)), 0
    for part in parts:
        n = part.shape[-1]
        whole[..., at : at + n, at : at + n] = part
        at += n
    return whole


def block_triangle():
    whole = blocks(A, np.broadcast_to(B, (2, 2, 2))).copy()
    whole[:, 3:, :3] = A[:, :2]
    return whole


def toeplitz(col, row):
    return np.array([[col[i - j] if i >= j else row[j - i] for j in range(len(col))] for i in range(len(col))])


def circulant(kernel, depth):
    """The matrices that convolve what is in a circle with a kernel, of `depth` dimensions: `A[m, n] = h[m - n]`."""
    shape = kernel.shape[-depth:]
    places = np.stack(np.unravel_index(np.arange(np.prod(shape)), shape), -1)
    differences = (places[:, None] - places[None, :]) % shape
    return kernel[(..., *np.moveaxis(differences, -1, 0))]


def tridiagonal(upper, main, lower):
    return np.diag(main) + np.diag(upper, 1) + np.diag(lower, -1)


KERNEL = RNG.normal(size=(2, 2, 3, 2))
KERNEL[..., 0, 0, 0] += 8
SPECTRUM = RNG.uniform(1, 2, (2, 4))  # real: the matrices are Hermitian
LOW_RANK = A + V @ (D[:, :1, None] * np.swapaxes(A[..., :1], -1, -2))
# What makes an operator, and its matrices.
OPERATORS = {
    "full": (lambda: full(A), A),
    "positive": (lambda: full(POSITIVE, is_self_adjoint=True, is_positive_definite=True), POSITIVE),
    "triangular": (lambda: LinearOperatorLowerTriangular(A), np.tril(A)),
    "diag": (lambda: LinearOperatorDiag(D, is_positive_definite=True), D[..., None] * np.eye(3)),
    "complex diag": (lambda: LinearOperatorDiag(Z), Z[..., None] * np.eye(3)),
    "identity": (lambda: LinearOperatorIdentity(3, [2], ag.float64), np.broadcast_to(np.eye(3), (2, 3, 3))),
    "scaled": (
        lambda: LinearOperatorScaledIdentity(3, D[:, 0], is_positive_definite=True), D[:, :1, None] * np.eye(3)
    ),
    "householder": (
        lambda: LinearOperatorHouseholder(V[..., 0]),
        np.eye(3) - 2 * V @ np.swapaxes(V, -1, -2) / np.sum(V * V, axis=(-2, -1), keepdims=True),
    ),
    "permutation": (lambda: LinearOperatorPermutation([2, 0, 1], ag.float64), np.eye(3)[[2, 0, 1]]),
    "tridiagonal": (
        lambda: LinearOperatorTridiag([[1.0, 2.0], [4.0, 5.0, 6.0], [3.0, 1.0]], "sequence"),
        tridiagonal([1.0, 2.0], [4.0, 5.0, 6.0], [3.0, 1.0]),
    ),
    "compact tridiagonal": (
        lambda: LinearOperatorTridiag([[1.0, 2.0, 9.0], [4.0, 5.0, 6.0], [9.0, 3.0, 1.0]]),
        tridiagonal([1.0, 2.0], [4.0, 5.0, 6.0], [3.0, 1.0]),
    ),
    "toeplitz": (
        lambda: LinearOperatorToeplitz([4.0, 1.0, 2.0], [4.0, 3.0, 0.5]), toeplitz([4.0, 1.0, 2.0], [4.0, 3.0, 0.5])
    ),
    "circulant": (
        lambda: LinearOperatorCirculant(np.fft.fft(KERNEL[:, :, 0, 0]), ag.float64), circulant(KERNEL[:, :, 0, 0], 1)
    ),
    "Hermitian circulant": (
        lambda: LinearOperatorCirculant(SPECTRUM, ag.complex128, is_positive_definite=True),
        circulant(np.fft.ifft(SPECTRUM), 1),
    ),
    "circulant of blocks": (
        lambda: LinearOperatorCirculant2D(np.fft.fft2(KERNEL[..., 0]), ag.float64), circulant(KERNEL[..., 0], 2)
    ),
    "circulant of blocks of blocks": (
        lambda: LinearOperatorCirculant3D(np.fft.fftn(KERNEL, axes=(-3, -2, -1)).astype(np.complex64), ag.float32),
        circulant(KERNEL, 3),
    ),
    "adjoint": (lambda: LinearOperatorAdjoint(full(A)), np.swapaxes(A, -1, -2)),
    "inversion": (lambda: LinearOperatorInversion(full(A, is_non_singular=True)), np.linalg.inv(A)),
    "composition": (lambda: LinearOperatorComposition([full(A), LinearOperatorDiag(D)]), A * D[:, None, :]),
    "kronecker": (
        lambda: LinearOperatorKronecker([full(A), full(B)]), np.stack([np.kron(each, B) for each in A])
    ),
    "low rank": (lambda: LinearOperatorLowRankUpdate(full(A), V, D[:, :1], A[..., :1]), LOW_RANK),
    "positive low rank": (
        lambda: LinearOperatorLowRankUpdate(LinearOperatorDiag(D, is_positive_definite=True), V),
        D[..., None] * np.eye(3) + V @ np.swapaxes(V, -1, -2),
    ),
    "blocks": (lambda: LinearOperatorBlockDiag([full(A), full(B)]), blocks(A, B)),
    "triangle of blocks": (
        lambda: LinearOperatorBlockLowerTriangular([[full(A)], [full(A[:, :2]), full(B)]]), block_triangle()
    ),
}  # fmt: skip


def close(found, expected):
    np.testing.assert_allclose(found.numpy(), expected, rtol=2e-4, atol=2e-5)


@pytest.fixture(params=OPERATORS, name="case")
def _case(request):
    make, matrix = OPERATORS[request.param]
    operator = make()
    return operator, matrix.astype(operator.dtype.as_numpy_dtype)


def arguments(matrix, columns=2):
    size = matrix.shape[-1]
    x = np.random.default_rng(1).normal(size=(*matrix.shape[:-2], size, columns))
    return x.astype(matrix.dtype)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def test_shapes(case):
    operator, matrix = case
    assert operator.shape == matrix.shape
    assert operator.batch_shape == matrix.shape[:-2]
    assert operator.shape_tensor().numpy().tolist() == list(matrix.shape)
    assert (operator.range_dimension, operator.domain_dimension) == matrix.shape[-2:]
    assert operator.is_square


def test_products(case):
    operator, matrix = case
    x = arguments(matrix)
    close(operator.to_dense(), matrix)
    close(operator.matmul(x), matrix @ x)
    close(operator.matmul(x, adjoint=True), adjoint(matrix) @ x)
    close(operator.matmul(adjoint(x), adjoint_arg=True), matrix @ x)
    close(operator.matvec(x[..., 0]), (matrix @ x)[..., 0])
    close(operator @ x, matrix @ x)
    close(operator.H.to_dense(), adjoint(matrix))
    close(operator.add_to_tensor(matrix), 2 * matrix)


def test_solutions(case):
    operator, matrix = case
    x = arguments(matrix)
    close(operator.solve(x), np.linalg.solve(matrix, x))
    close(operator.solve(x, adjoint=True), np.linalg.solve(adjoint(matrix), x))
    close(operator.solve(adjoint(x), adjoint_arg=True), np.linalg.solve(matrix, x))
    close(operator.solvevec(x[..., 0]), np.linalg.solve(matrix, x)[..., 0])
    close(operator.inverse().to_dense(), np.linalg.inv(matrix))


def test_numbers(case):
    operator, matrix = case
    close(operator.determinant(), np.linalg.det(matrix))
    close(operator.log_abs_determinant(), np.linalg.slogdet(matrix)[1])
    close(operator.trace(), np.trace(matrix, axis1=-2, axis2=-1))
    close(operator.diag_part(), np.diagonal(matrix, axis1=-2, axis2=-1))
    close(operator.cond(), np.linalg.cond(matrix))


def test_products_of_operators(case):
    operator, matrix = case
    size = matrix.shape[-1]
    for other in (
        LinearOperatorDiag(np.arange(1.0, size + 1).astype(matrix.dtype)),
        LinearOperatorScaledIdentity(size, np.array(2.0, matrix.dtype)),
        LinearOperatorIdentity(size, dtype=operator.dtype),
        full(np.tri(size).astype(matrix.dtype)),
        LinearOperatorLowerTriangular(np.tri(size).astype(matrix.dtype)),
    ):
        dense = other.to_dense().numpy()
        close(operator.matmul(other).to_dense(), matrix @ dense)
        close(other.matmul(operator).to_dense(), dense @ matrix)


@pytest.mark.parametrize("name", OPERATORS)
def test_through_a_traced_function(name):
    make, matrix = OPERATORS[name]
    operator = make()
    x = arguments(matrix).astype(operator.dtype.as_numpy_dtype)

    @ag.function
    def f(operator, x):
        return operator, operator.solve(x)

    given, solved = f(operator, x)
    assert type(given) is type(operator)
    assert given.is_positive_definite == operator.is_positive_definite
    close(given.to_dense(), matrix)
    close(solved, np.linalg.solve(matrix, x))
    f(make(), x)
    assert f.experimental_get_tracing_count() == 1


def test_in_a_loop():
    @ag.function
    def f(operator, n):
        i = 0
        while i < n:
            operator = LinearOperatorDiag(operator.diag * 2.0)
            i += 1
        return operator

    close(f(LinearOperatorDiag([1.0, 2.0]), ag.constant(3)).diag, [8.0, 16.0])


@pytest.mark.parametrize("name", ["full", "triangular", "positive", "kronecker", "low rank"])
def test_gradients_equal_those_of_the_matrix(name):
    make = OPERATORS[name][0]
    operator = make()
    watched = [each for each in ag.nest.flatten(operator, expand_composites=True) if each.dtype.is_floating]

    def gradients(number):
        with ag.GradientTape() as tape:
            tape.watch(watched)
            result = number()
        return tape.gradient(result, watched)

    mine = gradients(operator.log_abs_determinant)
    theirs = gradients(lambda: ag.linalg.slogdet(operator.to_dense())[1])
    for one, other in zip(mine, theirs):
        if name == "positive":  # whose Cholesky factor reads the lower triangle alone
            one, other = one + ag.linalg.matrix_transpose(one), other + ag.linalg.matrix_transpose(other)
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)


def test_circulant_operators_stay_circulant():
    spectrum = np.array([6.0, 4.0, 2.0, 4.0])
    operator = LinearOperatorCirculant(spectrum, ag.float64, is_positive_definite=True)
    assert operator.is_self_adjoint and operator.is_non_singular and operator.is_square
    # The matrix that TensorFlow's documentation gives.
    close(operator.to_dense(), [[4, 1, 0, 1], [1, 4, 1, 0], [0, 1, 4, 1], [1, 0, 1, 4]])
    close(operator.convolution_kernel(), [4, 1, 0, 1])
    close(operator.eigvals(), spectrum)
    assert operator.H is operator
    turned = LinearOperatorCirculant(np.fft.fft([3.0, 1.0, 0.0, 0.5]), ag.float64, is_non_singular=True)
    assert turned.is_self_adjoint is None
    for found, expected in (
        (turned.H, turned.to_dense().numpy().T),
        (turned.inverse(), np.linalg.inv(turned.to_dense())),
        (operator @ turned, operator.to_dense().numpy() @ turned.to_dense().numpy()),
        (operator.solve(turned), np.linalg.solve(operator.to_dense(), turned.to_dense())),
    ):
        assert type(found) is LinearOperatorCirculant and found.dtype is ag.float64
        close(found.to_dense(), expected)
    assert operator.matmul(operator).is_positive_definite and (operator @ turned).is_positive_definite is None
    # Other numbers of the same blocks' shape, and others of blocks, don't fit together.
    square = LinearOperatorCirculant2D(spectrum.reshape(2, 2), ag.float64)
    assert isinstance(square @ operator, LinearOperatorComposition)
    close((square @ operator).to_dense(), square.to_dense().numpy() @ operator.to_dense().numpy())
    assert (square.block_depth, square.block_shape) == (2, (2, 2))
    assert square.block_shape_tensor().numpy().tolist() == [2, 2]


def test_circulant_batches():
    operator = LinearOperatorCirculant(SPECTRUM, ag.complex128)
    close(operator[1].to_dense(), circulant(np.fft.ifft(SPECTRUM[1]), 1))
    x = np.ones((3, 1, 4, 2), complex)
    close(operator.matmul(x), operator.to_dense().numpy() @ x)
    close(operator.solve(np.ones((4, 1), complex)), np.linalg.solve(operator.to_dense(), np.ones((2, 4, 1))))


def test_circulant_of_unknown_shapes():
    @ag.function(input_signature=[ag.TensorSpec([None, None, None]), ag.TensorSpec([None, None])])
    def f(spectrum, x):
        operator = LinearOperatorCirculant2D(spectrum, ag.float32, is_non_singular=True)
        return operator.matmul(x), operator.solve(x), operator.diag_part(), operator.shape_tensor(), operator.cond()

    spectrum = np.abs(np.fft.fft2(KERNEL[..., 0])).astype(np.float32)  # real and symmetric
    matrix = circulant(np.fft.ifft2(spectrum).real, 2)
    x = arguments(matrix[0]).astype(np.float32)
    product, solution, diagonal, shape, condition = f(spectrum, x)
    close(product, matrix @ x)
    close(solution, np.linalg.solve(matrix, np.broadcast_to(x, (2, *x.shape))))
    close(diagonal, np.diagonal(matrix, axis1=-2, axis2=-1))
    close(condition, np.linalg.cond(matrix))
    assert shape.numpy().tolist() == [2, 6, 6]


def test_gradients_of_circulant_operators():
    spectrum = ag.Variable(np.array([6.0, 4.0, 2.0, 4.0]))
    x = np.array([[1.0], [2.0], [0.5], [-1.0]])

    def gradient(result):
        with ag.GradientTape() as tape:
            loss = ag.reduce_sum(result(LinearOperatorCirculant(spectrum, ag.float64)) ** 2)
        return tape.gradient(loss, spectrum)

    # By the eigenvectors: the solution is ifft(fft(x) / s).
    powers = np.abs(np.fft.fft(x[:, 0])) ** 2 / 4
    close(gradient(lambda operator: operator.matmul(x)), 2 * powers * spectrum.numpy())
    close(gradient(lambda operator: operator.solve(x)), -2 * powers / spectrum.numpy() ** 3)
    logs = np.log(spectrum.numpy())
    close(gradient(lambda operator: operator.log_abs_determinant()), 2 * logs.sum() / spectrum.numpy())


def test_what_circulant_operators_refuse_and_check():
    with pytest.raises(ValueError, match="at least 2 dimensions"):
        LinearOperatorCirculant2D([1.0, 2.0])
    with pytest.raises(TypeError, match="floating or complex"):
        LinearOperatorCirculant([1, 2])
    with pytest.raises(ValueError, match="always corresponds to a self-adjoint"):
        LinearOperatorCirculant([1.0, 2.0], is_self_adjoint=False)
    with pytest.raises(ValueError, match="always square"):
        LinearOperatorCirculant([1.0, 2.0], is_square=False)
    LinearOperatorCirculant([6.0, 4.0, 2.0, 4.0]).assert_hermitian_spectrum()
    LinearOperatorCirculant([6.0, 4.0, 2.0]).assert_positive_definite()
    for check, spectrum in (
        ("assert_hermitian_spectrum", [6.0, 4.0, 2.0]),
        ("assert_non_singular", [1.0, 0.0]),
        ("assert_positive_definite", [1.0, -1.0]),
        ("assert_self_adjoint", [1.0, 1.0j]),
    ):
        with pytest.raises(ag.errors.InvalidArgumentError):
            getattr(LinearOperatorCirculant(spectrum), check)()


def test_cholesky():
    for name in ("diag", "positive", "scaled", "identity"):
        make, matrix = OPERATORS[name]
        close(make().cholesky().to_dense(), np.linalg.cholesky(matrix))
    with pytest.raises(ValueError, match="Not a positive definite self adjoint"):
        full(A).cholesky()


def test_lists_of_blocks():
    x = arguments(blocks(A, B))
    for name in ("blocks", "triangle of blocks"):
        make, matrix = OPERATORS[name]
        parts = [x[..., :3, :], x[..., 3:, :]]
        found = make().matmul(parts)
        close(ag.concat(found, -2), matrix @ x)
        close(ag.concat(make().solve(parts), -2), np.linalg.solve(matrix, x))
        close(ag.concat(make().matvec([part[..., 0] for part in parts]), -1), (matrix @ x)[..., 0])


def test_zeros():
    operator = LinearOperatorZeros(3, 2, [2], ag.float64, is_square=False)
    assert operator.shape == (2, 3, 2)
    assert not operator.matmul(np.ones((2, 4))).numpy().any()
    assert operator.matmul(np.ones((2, 4))).shape == (2, 3, 4)
    with pytest.raises(NotImplementedError, match="singular"):
        operator.solve(np.ones((3, 1)))


def test_sums():
    (found,) = add_operators(
        [LinearOperatorDiag([1.0, 2.0]), LinearOperatorIdentity(2), full([[1.0, 2.0], [3.0, 4.0]])]
    )
    close(found.to_dense(), [[3.0, 2.0], [3.0, 7.0]])
    kept = LinearOperatorHouseholder([1.0, 0.0])
    (diagonal, other) = add_operators([kept, LinearOperatorDiag([1.0, 2.0]), LinearOperatorIdentity(2)])
    assert isinstance(diagonal, LinearOperatorDiag) and other is kept
    close(diagonal.diag_part(), [2.0, 3.0])


def test_parts_of_a_batch():
    close(full(A)[1].to_dense(), A[1])
    close(LinearOperatorDiag(D)[..., :1].diag, D[:1])


def test_wrong_arguments():
    with pytest.raises(ValueError, match="always self adjoint"):
        LinearOperatorDiag([1.0], is_self_adjoint=False)
    with pytest.raises(ValueError, match="at least 2 dimensions"):
        full([1.0])
    with pytest.raises(ValueError, match="not compatible"):
        full(A).matmul(np.ones((2, 2)))
    with pytest.raises(TypeError, match="dtype"):
        full(A).matmul(ag.ones([3, 1], ag.float32))
    with pytest.raises(ValueError, match="each integer"):
        LinearOperatorPermutation([0, 0, 1])
    with pytest.raises(ValueError, match="always non-singular"):
        full(A, is_positive_definite=True, is_non_singular=False)
    with pytest.raises(NotImplementedError, match="non-square"):
        full(np.ones((2, 3))).determinant()
    with pytest.raises(ag.errors.InvalidArgumentError, match="zero values"):
        LinearOperatorDiag([0.0, 1.0]).assert_non_singular()
