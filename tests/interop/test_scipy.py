"""`ag.interop.scipy` with SciPy's own solvers."""

import numpy as np
import pytest
import scipy.integrate
import scipy.ndimage
import scipy.optimize
import scipy.sparse

import autograph as ag

make = ag.interop.scipy
START = np.array([1.3, 0.7, 0.8, 1.9, 1.2])


def rosenbrock(x, weight=100.0):
    return ag.reduce_sum(weight * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


class TestObjective:
    def test_derivatives_are_scipys(self):
        o = make.objective(rosenbrock)
        assert o.fun(START) == pytest.approx(scipy.optimize.rosen(START))
        np.testing.assert_allclose(o.jac(START), scipy.optimize.rosen_der(START))
        np.testing.assert_allclose(o.hess(START), scipy.optimize.rosen_hess(START))
        p = np.arange(5.0)
        np.testing.assert_allclose(o.hessp(START, p), scipy.optimize.rosen_hess_prod(START, p))
        value, gradient = o.fun_and_jac(START)
        assert (value, gradient.tolist()) == (o.fun(START), o.jac(START).tolist())

    @pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B", "Newton-CG", "trust-exact", "trust-krylov"])
    def test_minimize(self, method):
        o = make.objective(rosenbrock)
        more = {"Newton-CG": {"hessp": o.hessp}, "trust-exact": {"hess": o.hess}, "trust-krylov": {"hessp": o.hessp}}
        found = scipy.optimize.minimize(o.fun_and_jac, START, jac=True, method=method, **more.get(method, {}))
        np.testing.assert_allclose(found.x, 1.0, atol=1e-3)

    def test_arguments_come_behind_and_do_not_trace_again(self):
        o = make.objective(rosenbrock)
        for weight in (1, 2.5, 50):
            assert o.fun(START, weight) == pytest.approx(float(rosenbrock(ag.constant(START), weight)))
        assert o._traced["value"].experimental_get_tracing_count() == 1

    def test_a_trip_count_that_depends_on_the_data(self):
        def distance(x):
            total = ag.reduce_sum(x * x)
            while total > 10.0:
                total = total / 2.0
            return total

        o = make.objective(distance)
        np.testing.assert_allclose(o.jac([3.0, 4.0]), [6.0 / 4, 8.0 / 4])

    def test_scipys_array_is_neither_kept_nor_given_out(self):
        o = make.objective(lambda x: ag.reduce_sum(0.5 * x * x))
        x = START.copy()
        gradient = o.jac(x)
        gradient += 1.0
        x += 5.0
        np.testing.assert_allclose(o.jac(START), START)
        np.testing.assert_allclose(o.jac(x[::-1]), x[::-1])

    def test_a_vector_is_refused(self):
        with pytest.raises(ValueError, match=r"an objective gives one number, but twice gives shape \(2,\)"):

            def twice(x):
                return 2.0 * x

            make.objective(twice).fun([1.0, 2.0])


def chain(x):
    padded = ag.pad(x, [[1, 1]])
    return (3.0 - 2.0 * x) * x - padded[:-2] - 2.0 * padded[2:] + 1.0


class TestSystem:
    def test_root(self):
        s = make.system(lambda x: ag.stack([x[0] + 0.5 * (x[0] - x[1]) ** 3 - 1.0, 0.5 * (x[1] - x[0]) ** 3 + x[1]]))
        np.testing.assert_allclose(scipy.optimize.root(s.fun_and_jac, [0.0, 0.0], jac=True).x, [0.8411639, 0.1588361])

    @pytest.mark.parametrize("m", [2, 5])
    def test_jacobians_of_both_shapes(self, m):
        matrix = np.arange(3.0 * m).reshape(m, 3)
        s = make.system(lambda x: ag.linalg.matvec(ag.constant(matrix), x * x))
        np.testing.assert_allclose(s.jac([1.0, 2.0, 3.0]), matrix * [2.0, 4.0, 6.0])

    def test_sparse_jacobians_by_few_products(self):
        n = 40
        pattern = scipy.sparse.diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(n, n))
        s, dense = make.system(chain, sparsity=pattern), make.system(chain)
        x = np.linspace(-1.0, 1.0, n)
        assert isinstance(s.jac(x), scipy.sparse.csr_array)
        np.testing.assert_array_equal(s.jac(x).toarray(), dense.jac(x))
        assert s._pattern.seeds.shape == (3, n)
        found = scipy.optimize.least_squares(s.fun, -np.ones(n), jac=s.jac)
        assert np.abs(found.fun).max() < 1e-6

    def test_any_pattern_is_enough_that_covers_the_jacobian(self):
        generator = np.random.default_rng(0)
        for _ in range(10):
            matrix = generator.normal(size=(6, 9)) * (generator.random((6, 9)) < 0.3)
            s = make.system(lambda x: ag.linalg.matvec(ag.constant(matrix), x), sparsity=matrix != 0)
            np.testing.assert_allclose(s.jac(np.ones(9)).toarray(), matrix)

    def test_solve_ivp(self):
        o = make.ode(lambda t, y, mu: ag.stack([y[1], mu * (1.0 - y[0] ** 2) * y[1] - y[0]]))
        np.testing.assert_allclose(o.jac(0.0, [2.0, 1.0], 3.0), [[0.0, 1.0], [-13.0, -9.0]])
        found = scipy.integrate.solve_ivp(o.fun, (0, 20), [2.0, 0.0], "Radau", args=(30.0,), rtol=1e-6, jac=o.jac)
        expected = scipy.integrate.solve_ivp(o.fun, (0, 20), [2.0, 0.0], "LSODA", args=(30.0,), rtol=1e-8)
        np.testing.assert_allclose(found.y[:, -1], expected.y[:, -1], rtol=1e-4)

    def test_refusals(self):
        with pytest.raises(ValueError, match="a system gives a vector"):
            make.system(lambda x: ag.reduce_sum(x)).fun([1.0])
        s = make.system(chain, sparsity=np.eye(3))
        with pytest.raises(ValueError, match="sparsity of chain has 3 columns, but x has 4"):
            s.jac(np.ones(4))
        with pytest.raises(ValueError, match="sparsity of chain has 2 rows, but its value has 3"):
            make.system(chain, sparsity=np.ones((2, 3))).jac(np.ones(3))
        with pytest.raises(ValueError, match=r"a matrix with a row for each result, not of shape \(3,\)"):
            make.system(chain, sparsity=np.ones(3))


class TestWithoutPython:
    def test_quad(self):
        def terms(x, a):
            total, n = 0.0 * x, 1.0
            while n < 4.0:
                total, n = total + ag.exp(-a * n * x), n + 1.0
            return total

        value, _ = scipy.integrate.quad(make.integrand(terms), 0.0, np.inf, args=(2.0,))
        assert value == pytest.approx((1 + 1 / 2 + 1 / 3) / 2)
        value, _ = scipy.integrate.nquad(make.integrand(lambda x, y: x * y * y), [[0, 1], [0, 2]])
        assert value == pytest.approx(4 / 3)

    def test_generic_filter(self):
        image = np.random.default_rng(0).random((12, 9))
        window = make.window_function(lambda w: ag.reduce_max(w) - ag.reduce_min(w))
        for size in (3, 5):
            np.testing.assert_allclose(
                scipy.ndimage.generic_filter(image, window, size), scipy.ndimage.generic_filter(image, np.ptp, size)
            )

    def test_errors_arrive(self):
        def positive(w):
            ag.debugging.assert_positive(w, "must be positive")
            return ag.reduce_sum(w)

        with pytest.raises(RuntimeError, match=r"must be positive(.|\n)*in positive"):
            scipy.ndimage.generic_filter(np.zeros((3, 3)), make.window_function(positive), 3)
        with pytest.raises(SystemError) as caught:
            scipy.integrate.quad(make.integrand(positive), -1.0, 1.0)
        assert "must be positive" in str(caught.value.__cause__)

    def test_refusals(self):
        with pytest.raises(TypeError, match="an integrand gives one float64 number"):
            make.integrand(lambda x: ag.cast(x, ag.float32))
        with pytest.raises(TypeError, match="a function of windows gives one float64 number"):
            make.window_function(lambda w: w)
        with pytest.raises(ag.errors.UnimplementedError, match="can't be compiled as a C function"):
            make.integrand(lambda x: ag.ensure_shape(ag.numpy_function(np.sin, [x], ag.float64), []))
