"""NumPy's functions on tensors: the values that NumPy gives on arrays, eager and in a trace, and with gradients."""

import copy
import pickle

import numpy as np
import pytest

import autograph as ag
from runtime.ops.numpy import ufuncs
from runtime.ops.numpy.array_functions import FUNCTIONS

A = np.array([[1.5, -2.0, 0.5], [0.25, 3.0, -1.0]])
B = np.array([[0.5, 1.0, -2.5], [2.0, 0.75, 1.25]])
V = np.array([0.1, 0.4, 0.3])
S = np.array([[2.0, 0.5, 0.1], [0.5, 3.0, 0.2], [0.1, 0.2, 1.0]])
I = np.array([[3, 1, 2], [0, 5, 4]], np.int32)
N = np.array([[np.nan, 1.0, 2.0], [3.0, np.nan, 5.0]])

# name -> (function of arrays, operands)
CASES = {
    "sum": (lambda a: np.sum(a), A), "sum axis": (lambda a: np.sum(a, axis=0), A),
    "sum keepdims": (lambda a: np.sum(a, 1, keepdims=True), A), "sum ints": (lambda a: np.sum(a, axis=(0, 1)), I),
    "prod": (lambda a: np.prod(a, axis=1), A), "mean": (lambda a: np.mean(a, axis=0), A),
    "mean of ints": (lambda a: np.mean(a), I), "max": (lambda a: np.max(a, 1), A), "amin": (lambda a: np.amin(a), A),
    "any": (lambda a: np.any(a > 2, axis=0), A), "all": (lambda a: np.all(a), A),
    "var": (lambda a: np.var(a, axis=0), A),
    "var ddof": (lambda a: np.var(a, axis=1, ddof=1), A), "std": (lambda a: np.std(a), A),
    "nansum": (lambda a: np.nansum(a, axis=0), N), "nanmean": (lambda a: np.nanmean(a), N),
    "nanmax": (lambda a: np.nanmax(a, axis=1), N), "nanmin": (lambda a: np.nanmin(a), N),
    "nanprod": (lambda a: np.nanprod(a, axis=1), N), "average": (lambda a: np.average(a, axis=0), A),
    "average weights": (lambda a, v: np.average(a, axis=1, weights=v), A, V), "ptp": (lambda a: np.ptp(a, axis=0), A),
    "count_nonzero": (lambda a: np.count_nonzero(a, axis=0), I), "argmax": (lambda a: np.argmax(a), A),
    "argmin axis": (lambda a: np.argmin(a, axis=1), A), "cumsum": (lambda a: np.cumsum(a), A),
    "cumprod": (lambda a: np.cumprod(a, axis=1), A), "sort": (lambda a: np.sort(a, axis=0), A),
    "sort flat": (lambda a: np.sort(a, axis=None), A), "argsort": (lambda a: np.argsort(a), A),
    "searchsorted": (lambda v, a: np.searchsorted(v, a, side="right"), np.sort(V), A),
    "quantile": (lambda a: np.quantile(a, 0.3, axis=1), A), "percentile": (lambda a: np.percentile(a, 40), A),
    "median": (lambda a: np.median(a, axis=0), A), "take": (lambda a: np.take(a, [0, -1], axis=1), A),
    "take flat": (lambda a: np.take(a, np.array([5, 0])), A),
    "take_along_axis": (lambda a: np.take_along_axis(a, np.array([[2, 0], [1, 1]]), 1), A),
    "dot": (lambda a, b: np.dot(a, b.T if isinstance(b, np.ndarray) else np.transpose(b)), A, B),
    "dot vectors": (lambda a: np.dot(a, np.array([1.0, 2.0, 3.0])), V), "dot matvec": (lambda a, v: np.dot(a, v), A, V),
    "vdot": (lambda a, b: np.vdot(a, b), A, B), "inner": (lambda a, b: np.inner(a, b), A, B),
    "outer": (lambda a, b: np.outer(a, b), A, V), "tensordot": (lambda a, b: np.tensordot(a, b, [[1], [1]]), A, B),
    "einsum": (lambda a, b: np.einsum("ij,kj->ik", a, b), A, B), "einsum trace": (lambda s: np.einsum("ii", s), S),
    "einsum batch": (lambda a, v: np.einsum("...i,i->...", a, v), A, V), "kron": (lambda a, v: np.kron(a, v), A, V),
    "cross": (lambda a, b: np.cross(a, b), A, B), "trace": (lambda s: np.trace(s, offset=1), S),
    "diagonal": (lambda s: np.diagonal(s, offset=-1), S), "diag": (lambda v: np.diag(v), V),
    "diag offset": (lambda v: np.diag(v, 1), V), "diag below": (lambda v: np.diag(v, -2), V),
    "diag of matrix": (lambda s: np.diag(s), S), "tril": (lambda s: np.tril(s, -1), S),
    "triu": (lambda s: np.triu(s), S),
    "det": (lambda s: np.linalg.det(s), S), "slogdet": (lambda s: tuple(np.linalg.slogdet(s)), S),
    "inv": (lambda s: np.linalg.inv(s), S), "pinv": (lambda a: np.linalg.pinv(a), A),
    "cholesky": (lambda s: np.linalg.cholesky(s), S), "eigvalsh": (lambda s: np.linalg.eigvalsh(s), S),
    "matrix_rank": (lambda a: np.linalg.matrix_rank(a), A), "solve": (lambda s, v: np.linalg.solve(s, v), S, V),
    "solve matrix": (lambda s, b: np.linalg.solve(s, np.transpose(b)), S, B),
    "svd values": (lambda a: np.linalg.svd(a, compute_uv=False), A), "qr": (lambda s: np.linalg.qr(s)[1], S),
    "norm": (lambda a: np.linalg.norm(a), A), "norm 1": (lambda a: np.linalg.norm(a, 1), A),
    "norm axis": (lambda a: np.linalg.norm(a, axis=1), A), "norm 2": (lambda a: np.linalg.norm(a, 2), A),
    "matrix_power": (lambda s: np.linalg.matrix_power(s, 5), S),
    "matrix_power negative": (lambda s: np.linalg.matrix_power(s, -1), S),
    "moveaxis": (lambda a: np.moveaxis(a, 0, -1), A), "swapaxes": (lambda a: np.swapaxes(a, 0, 1), A),
    "transpose": (lambda a: np.transpose(a), A), "reshape": (lambda a: np.reshape(a, (3, 2)), A),
    "ravel": (lambda a: np.ravel(a), A), "expand_dims": (lambda a: np.expand_dims(a, (0, 2)), A),
    "squeeze": (lambda a: np.squeeze(np.expand_dims(a, 1)), A),
    "broadcast_to": (lambda v: np.broadcast_to(v, (2, 3)), V),
    "tile": (lambda v: np.tile(v, (2, 2)), V), "repeat": (lambda a: np.repeat(a, 2, axis=1), A),
    "repeat flat": (lambda a: np.repeat(a, 3), A), "roll": (lambda a: np.roll(a, 2), A),
    "roll axis": (lambda a: np.roll(a, -1, axis=1), A), "flip": (lambda a: np.flip(a), A),
    "flipud": (lambda a: np.flipud(a), A), "fliplr": (lambda a: np.fliplr(a), A), "rot90": (lambda a: np.rot90(a), A),
    "rot90 3": (lambda a: np.rot90(a, 3), A), "pad": (lambda a: np.pad(a, 1), A),
    "pad reflect": (lambda a: np.pad(a, ((1, 0), (2, 1)), mode="reflect"), A),
    "concatenate": (lambda a, b: np.concatenate([a, b], axis=1), A, B),
    "concatenate flat": (lambda a, b: np.concatenate((a, b), axis=None), A, B),
    "stack": (lambda a, b: np.stack([a, b], axis=-1), A, B), "vstack": (lambda a, v: np.vstack([a, v]), A, V),
    "hstack": (lambda a, b: np.hstack([a, b]), A, B), "dstack": (lambda a, b: np.dstack([a, b]), A, B),
    "column_stack": (lambda v: np.column_stack([v, v]), V), "append": (lambda a, v: np.append(a, v), A, V),
    "split": (lambda a: tuple(np.split(a, 3, axis=1)), A), "array_split": (lambda a: tuple(np.array_split(a, 2, 1)), A),
    "hsplit": (lambda a: tuple(np.hsplit(a, [1])), A), "vsplit": (lambda a: tuple(np.vsplit(a, 2)), A),
    "atleast_1d": (lambda a: np.atleast_1d(np.sum(a)), A), "atleast_2d": (lambda v: np.atleast_2d(v), V),
    "atleast_3d": (lambda v: np.atleast_3d(v), V), "meshgrid": (lambda v: tuple(np.meshgrid(v, v)), V),
    "zeros_like": (lambda a: np.zeros_like(a), A), "ones_like": (lambda a: np.ones_like(a, dtype=np.int32), A),
    "full_like": (lambda a: np.full_like(a, 2.5), A), "where": (lambda a, b: np.where(a > b, a, 0.0), A, B),
    "clip": (lambda a: np.clip(a, -1.0, 1.0), A), "clip one side": (lambda a: np.clip(a, None, 0.5), A),
    "round": (lambda a: np.round(a), A), "round decimals": (lambda a: np.round(a, 1), A),
    "fix": (lambda a: np.fix(a), A),
    "nan_to_num": (lambda a: np.nan_to_num(a), N), "isclose": (lambda a, b: np.isclose(a, a + 1e-9), A, B),
    "allclose": (lambda a: np.allclose(a, a + 1.0), A), "array_equal": (lambda a, b: np.array_equal(a, b), A, B),
    "select": (lambda a, b: np.select([a > 1, a < 0], [b, -b], 7.0), A, B), "diff": (lambda a: np.diff(a), A),
    "diff twice": (lambda a: np.diff(a, n=2, axis=1), A),
    "interp": (lambda a: np.interp(a, [-1.0, 0, 2], [3.0, 1, 2]), A),
    "polyval": (lambda v, a: np.polyval(v, a), V, A), "bincount": (lambda i: np.bincount(np.ravel(i)), I),
    "copy": (lambda a: np.copy(a), A), "shape": (lambda a: np.sum(a) * np.shape(a)[1], A),
    "size": (lambda a: np.sum(a) / np.size(a), A), "ndim": (lambda a: a * np.ndim(a), A),
    "ufunc reduce": (lambda a: np.add.reduce(a, axis=1), A), "accumulate": (lambda a: np.add.accumulate(a, axis=1), A),
    "ufunc outer": (lambda a, v: np.subtract.outer(a, v), A, V), "matmul": (lambda s, v: np.matmul(s, v), S, V),
    "array @ tensor": (lambda v: S @ v, V), "tensor @ array": (lambda a: a @ S, A),
    "array * tensor": (lambda a: B * a, A),
    "scalar - tensor": (lambda a: np.float64(2.0) - a, A), "divmod": (lambda a: np.divmod(a, 2.0), A),
}  # fmt: skip


def trapezoid(a):
    return getattr(np, "trapezoid", getattr(np, "trapz", None))(a, dx=0.5, axis=0)


CASES["trapezoid"] = (trapezoid, A)


def assert_same(found, expected, kind=ag.Tensor):
    if isinstance(expected, tuple):
        assert len(found) == len(expected)
        for f, e in zip(found, expected):
            assert_same(f, e, kind)
        return
    assert isinstance(found, kind), found
    np.testing.assert_allclose(np.asarray(found), expected, 1e-12, 1e-12)
    assert np.asarray(found).dtype.kind == np.asarray(expected).dtype.kind


def _is_float(found):
    first = found[0] if isinstance(found, (list, tuple)) else found
    return np.asarray(first).dtype.kind == "f"


@pytest.mark.parametrize("name", CASES)
def test_like_numpy(name):
    function, *arrays = CASES[name]
    expected = function(*arrays)
    expected = tuple(expected) if isinstance(expected, (list, tuple)) else expected
    operands = [ag.constant(a) for a in arrays]
    # As in TensorFlow, NumPy's functions give arrays; operators and methods of tensors give tensors.
    either = (np.ndarray, np.generic, bool, ag.Tensor)
    assert_same(function(*operands), expected, either)
    watched = [t for t in operands if t.dtype.is_floating]
    if watched:
        with ag.GradientTape() as tape:
            tape.watch(watched)
            found = function(*operands)
        # Comparisons have no gradient, so what follows one may be an array.
        assert_same(found, expected, ag.Tensor if _is_float(found) else either)
    staged = ag.function(function, autograph=False, jit_compile=False)
    assert_same(staged(*[ag.constant(a) for a in arrays]), expected)


@pytest.mark.parametrize("ufunc", list(ufuncs.UFUNCS), ids=lambda u: u.__name__)
def test_ufuncs(ufunc):
    name = ufunc.__name__
    bits = name in ("left_shift", "right_shift", "bitwise_and", "bitwise_or", "bitwise_xor", "invert", "bitwise_not",
                    "bitwise_invert")  # fmt: skip
    first, second = (I, I + 1) if bits else (np.abs(A) / 4, np.abs(B) / 3)
    if name == "arccosh":
        first = first + 1
    if name == "matmul":
        first, second = A, S
    arrays = (first, second)[: ufunc.nin]
    with np.errstate(all="ignore"):
        expected = ufunc(*arrays)
    operands = [ag.constant(a) for a in arrays]
    assert_same(ufunc(*operands), expected, (np.ndarray, np.generic, ag.Tensor))
    assert_same(ag.function(ufunc.__call__, autograph=False, jit_compile=False)(*operands), expected)
    if not bits:
        with ag.GradientTape() as tape:
            tape.watch(operands)
            found = ufunc(*operands)
        assert_same(found, expected)


def test_integers_widen_as_in_numpy():
    assert np.sin(ag.constant([1, 2])).dtype == ag.float64
    assert np.add(ag.constant([1, 2]), ag.constant([0.5, 1.0])).dtype == ag.float64
    assert np.maximum(ag.constant([1, 2]), 1.5).tolist() == [1.5, 2.0]


def test_gradients_flow_through_numpy_functions():
    x = ag.constant(A)

    def loss(t):
        return np.sum(np.where(t > 0, np.sin(t) * np.exp(-t), np.tanh(t))) + np.linalg.norm(t)

    with ag.GradientTape() as tape:
        tape.watch(x)
        y = loss(x)
    found = tape.gradient(y, x).numpy()
    for index in np.ndindex(2, 3):
        step = np.zeros_like(A)
        step[index] = 1e-6
        slope = (loss(A + step) - loss(A - step)) / 2e-6
        np.testing.assert_allclose(found[index], slope, 1e-6)


def test_existing_numpy_code_in_a_converted_loop():
    @ag.function
    def newton(a, n):
        x = np.ones_like(a)
        i = 0
        while i < n:
            x = 0.5 * (x + np.divide(a, x))
            i += 1
        return np.sqrt(a), x

    root, found = newton(ag.constant([2.0, 9.0]), ag.constant(20))
    np.testing.assert_allclose(found, root, 1e-6)


def test_a_function_without_an_op_uses_values_when_eager():
    found = np.unwrap(ag.constant([0.0, 7.0]))
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, np.unwrap(np.array([0.0, 7.0], np.float32)))


@pytest.mark.parametrize("function", [np.unwrap, np.frexp, lambda t: np.sum(t, where=[True, False]), np.nancumsum])
def test_a_function_without_an_op_is_refused_in_a_trace(function):
    with pytest.raises(TypeError, match="can't be staged on a symbolic tensor"):
        ag.function(lambda t: function(t))(ag.constant([1.0, 2.0]))


def test_writing_into_arrays():
    target = np.zeros(2)
    target += ag.constant([1.0, 2.0], ag.float64)
    assert target.tolist() == [1.0, 2.0]
    with pytest.raises(TypeError, match="immutable"):
        np.add(target, target, out=ag.constant([0.0, 0.0], ag.float64))

    def add_to(array, t):
        array += t
        return array

    t = ag.constant([1.0, 2.0], ag.float64)
    assert ag.function(lambda t: add_to(np.zeros(2), t))(t).numpy().tolist() == [1.0, 2.0]
    with pytest.raises(TypeError, match="no value yet"):
        ag.function(lambda t: add_to(target, t))(t)
    assert target.tolist() == [1.0, 2.0]


def test_variables_are_operands_too():
    v = ag.Variable([1.0, 4.0])
    np.testing.assert_allclose(np.sqrt(v), [1.0, 2.0])
    assert isinstance(np.sum(v), np.float32)
    with ag.GradientTape() as tape:
        y = np.sum(np.sqrt(v))
    np.testing.assert_allclose(tape.gradient(y, v), [0.5, 0.25])


def test_array_protocol():
    t = ag.constant([[1, 2], [3, 4]])
    assert np.asarray(t).dtype == np.int32
    assert np.array(t, np.float64).dtype == np.float64
    assert list(np.asarray(t)[1]) == [3, 4]


def test_dlpack_round_trip():
    t = ag.constant([[1.0, 2.0], [3.0, 4.0]])
    array = np.from_dlpack(t)
    np.testing.assert_array_equal(array, t.numpy())
    with pytest.raises(TypeError, match="no value"):
        ag.function(lambda x: x.__dlpack__(), autograph=False)(t)


@pytest.mark.parametrize("value", [1.5, [1, 2], [[True]], ["a", "bc"]])
def test_pickle_and_copy(value):
    t = ag.constant(value)
    for twin in (pickle.loads(pickle.dumps(t)), copy.copy(t), copy.deepcopy(t)):
        assert twin.dtype is t.dtype
        np.testing.assert_array_equal(twin.numpy(), t.numpy())


METHODS = {
    "sum": lambda a: a.sum(axis=0), "mean": lambda a: a.mean(), "T": lambda a: a.T, "std": lambda a: a.std(0),
    "reshape": lambda a: a.reshape(3, -1), "reshape tuple": lambda a: a.reshape((6,)), "dot": lambda a: a.dot(a.T),
    "max": lambda a: a.max(axis=1, keepdims=True), "astype": lambda a: a.astype(np.int32),
    "flatten": lambda a: a.flatten(), "transpose": lambda a: a.transpose(1, 0), "clip": lambda a: a.clip(0.0, 1.0),
    "argmax": lambda a: a.argmax(), "any": lambda a: (a > 0).any(axis=0), "round": lambda a: a.round(1),
    "cumsum": lambda a: a.cumsum(axis=1), "size": lambda a: a / a.size, "swapaxes": lambda a: a.swapaxes(0, 1),
    "repeat": lambda a: a.repeat(2, axis=0), "take": lambda a: a.take([1], axis=1),
}  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_methods_of_arrays(name):
    function = METHODS[name]
    for run in (function, ag.function(function, autograph=False, jit_compile=False)):
        assert_same(run(ag.constant(A)), function(A))
    variable = ag.Variable(A)
    assert_same(function(variable), function(A))
    np.testing.assert_array_equal(variable.numpy(), A)


def test_values_by_methods():
    t = ag.constant([[1, 2], [3, 4]])
    assert t.tolist() == [[1, 2], [3, 4]]
    assert t[0, 1].item() == 2
    assert t.nbytes == 16


def test_a_symbolic_tensor_has_no_array():
    with pytest.raises(NotImplementedError, match="Cannot convert a symbolic tensor"):
        ag.function(lambda t: np.asarray(t), autograph=False)(ag.constant(1.0))


def test_there_are_many():
    assert len(FUNCTIONS) > 100
    assert len(ufuncs.names()) > 60
