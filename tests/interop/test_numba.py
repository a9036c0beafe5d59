"""`ag.interop.numba`: calls from numba's compiled code. `ag.vectorize`: NumPy's ufuncs."""

import numba
import numpy as np
import pytest

import autograph as ag

FLOAT, VECTOR = ag.TensorSpec([], ag.float64), ag.TensorSpec([None], ag.float64)


def halve(x):
    """How often it takes to get to 1."""
    n = 0
    while x > 1.0:
        x, n = x / 2.0, n + 1
    return n


def mixed(x, flag, k):
    return (ag.reduce_sum(x, 1) if flag else x[:, 0]), ag.cast(k, ag.float64) * 2.0, ag.reduce_max(x) > 1.0, x[k]


SPECS = (ag.TensorSpec([None, 3], ag.float64), ag.TensorSpec([], ag.bool), ag.TensorSpec([], ag.int32))


@pytest.fixture(scope="module")
def call():
    return ag.interop.numba.njit(ag.function(mixed).get_concrete_function(*SPECS))


X = np.arange(6.0).reshape(2, 3)


class TestCalls:
    def test_from_compiled_code(self):
        count = ag.interop.numba.njit(ag.function(halve, input_signature=[FLOAT]))

        @numba.njit
        def both(x):
            return count(x) + count(2.0 * x)

        assert both(5.0) == 7
        assert count(100.0) == 7
        assert count.address != count.free_address != 0

    def test_arrays_and_numbers_of_all_kinds(self, call):
        for flag in (True, False):
            sums, double, is_large, row = call(X, flag, 1)
            assert sums.tolist() == (X.sum(1) if flag else X[:, 0]).tolist()
            assert (double, is_large, row.tolist()) == (2.0, True, X[1].tolist())

    def test_results_own_their_memory(self, call):
        @numba.njit
        def total(x, times):
            found = 0.0
            for _ in range(times):
                sums, _, _, row = call(x, True, 0)
                row[0] = 100.0
                found += sums[1]
            return found

        assert total(X, 1000) == 12.0 * 1000
        assert X[0, 0] == 0.0

    def test_gradients(self):
        @ag.function(input_signature=[FLOAT, VECTOR])
        def grown(a, v):
            y = a
            while y < 100.0:
                y = y * a
            return y * ag.reduce_sum(v * v)

        value, by_a, by_v = ag.interop.numba.gradient(grown)(2.0, np.array([1.0, 2.0]))
        assert (value, by_a, by_v.tolist()) == (128 * 5.0, 7 * 64 * 5.0, [256.0, 512.0])

    def test_errors(self, call):
        with pytest.raises(RuntimeError, match=r"slice index 5 of dimension 0 out of bounds(.|\n)*in mixed"):
            call(X, True, 5)
        with pytest.raises(ValueError, match="arrays of other sizes than it is called with"):
            call(np.ones((2, 4)), True, 0)
        for wrong in (X.T, X.astype(np.float32), X[0]):
            with pytest.raises(numba.TypingError, match="mixed takes"):
                call(wrong, True, 0)
        with pytest.raises(ag.errors.UnimplementedError, match=r"numba's code can't take or give 'x'.*cast it"):
            ag.interop.numba.njit(ag.function(lambda x: x, input_signature=[ag.TensorSpec([], ag.bfloat16)]))


@pytest.fixture(scope="module")
def add():
    @ag.vectorize(dtypes=["l", "d"], identity=0)
    def add(a, b):
        return a + b

    return add


class TestUfuncs:
    def test_it_is_one(self):
        count = ag.vectorize(halve)
        assert type(count) is np.ufunc
        assert (count.__name__, count.types) == ("halve", ["f->i", "d->i"])
        assert "How often" in count.__doc__
        assert count(np.array([[1.0], [5.0], [100.0]])).tolist() == [[0], [3], [7]]
        assert count(np.float32(4.0)) == 2

    def test_dtypes(self, add):
        assert add.types == ["ll->l", "dd->d"]
        assert add(1, 2).dtype == np.int64
        assert add(1, 2.5) == 3.5
        assert add(np.arange(3, dtype=np.int8), np.arange(3)).tolist() == [0, 2, 4]
        assert add(1, 2, dtype=np.float64).dtype == np.float64
        with pytest.raises(TypeError, match="not supported"):
            add(1j, 2)

    def test_methods(self, add):
        r = np.arange(5)
        assert add.reduce(r) == 10
        assert add.reduce([]) == 0.0
        assert add.reduce(np.ones((2, 3)), axis=0).tolist() == [2.0, 2.0, 2.0]
        assert add.accumulate(r).tolist() == [0, 1, 3, 6, 10]
        assert add.reduceat(r, [0, 2]).tolist() == [1, 9]
        assert add.outer(r, r)[4, 3] == 7
        target = np.zeros(3)
        add.at(target, [0, 0, 2], 1.0)
        assert target.tolist() == [2.0, 0.0, 1.0]

    def test_where_out_and_strides(self, add):
        r = np.arange(6)
        assert add(r, r, where=r > 3, out=np.full(6, -1)).tolist() == [-1, -1, -1, -1, 8, 10]
        assert add(r[::-2], r[:3].reshape(3, 1)).tolist() == (r[::-2] + r[:3].reshape(3, 1)).tolist()
        out = np.zeros((6, 2), np.int64)[:, 1]
        assert add(r, 1, out=out) is out
        assert out.tolist() == [1, 2, 3, 4, 5, 6]
        unaligned = np.frombuffer(b"\0" + np.arange(3.0).tobytes(), np.uint8)[1:].view(np.float64)
        assert add(unaligned, 1.0).tolist() == [1.0, 2.0, 3.0]

    def test_bools_and_several_dtypes_at_once(self):
        @ag.vectorize(dtypes=["?d"])
        def gate(is_open, x):
            return x if is_open else -x

        assert gate([True, False], 2.0).tolist() == [2.0, -2.0]

    def test_errors(self):
        @ag.vectorize(dtypes="l")
        def positive(a):
            ag.debugging.assert_positive(a, "must be positive")
            return a

        assert positive([1, 2]).tolist() == [1, 2]
        with pytest.raises(RuntimeError, match=r"must be positive(.|\n)*in positive"):
            positive([1, -1])
        assert positive(3) == 3

    def test_refusals(self):
        with pytest.raises(TypeError, match="a fixed number of numbers"):
            ag.vectorize(lambda *x: x[0])
        with pytest.raises(TypeError, match="takes 2 numbers, but 'ddd' names 3 dtypes"):
            ag.vectorize(lambda a, b: a, dtypes=["ddd"])
        with pytest.raises(TypeError, match="a ufunc gives one number"):
            ag.vectorize(lambda a: ag.stack([a, a]))
        with pytest.raises(ValueError, match="0, 1 or None, not 2"):
            ag.vectorize(lambda a: a, identity=2)
