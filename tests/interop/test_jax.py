"""`ag.interop.jax`, in JAX itself: its transformations, XLA's calls of our C functions, and `pure_callback`."""

import gc
import threading

import numpy as np
import pytest

import autograph as ag
from tests.interop.functions import cube_root

jax = pytest.importorskip("jax", reason="needs JAX: pip install -e '.[jax]'; python -m tests.interop")
import jax.numpy as jnp  # noqa: E402

wrap = ag.interop.jax.wrap
A = np.array([8.0, 27.0, 1.5])
SLOPE, CURVATURE = A ** (-2 / 3) / 3, -2 / 9 * A ** (-5 / 3)


@pytest.fixture(autouse=True)
def _x64():
    with jax.enable_x64(True):
        yield


root = wrap(cube_root)
matvec = wrap(lambda matrix, x: ag.linalg.matvec(matrix, x))


def total(a):
    return root(a).sum()


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


class TestTransformations:
    def test_values_eagerly_and_in_jit(self):
        close(root(A), A ** (1 / 3))
        close(jax.jit(root)(A), A ** (1 / 3))

    def test_gradients_of_every_order(self):
        close(jax.grad(total)(A), SLOPE)
        close(jax.jit(jax.hessian(total))(A), np.diag(CURVATURE))
        close(jax.jacfwd(jax.jacfwd(total))(A), np.diag(CURVATURE))
        third = jax.grad(jax.grad(jax.grad(lambda x: root(x[None])[0])))
        close(third(1.5), 10 / 27 * 1.5 ** (-8 / 3))

    def test_jvp_and_vjp(self):
        close(jax.jvp(root, (A,), (np.ones(3),))[1], SLOPE)
        close(jax.vjp(root, A)[1](jnp.ones(3))[0], SLOPE)
        value, push = jax.linearize(root, A)
        close(push(2.0 * jnp.ones(3)), 2.0 * SLOPE)

    def test_vmap(self):
        rows = np.stack([A, 2 * A], 1)
        close(jax.vmap(root, in_axes=1, out_axes=1)(rows), rows ** (1 / 3))
        close(jax.jit(jax.vmap(jax.grad(total)))(rows.T), rows.T ** (-2 / 3) / 3)
        close(jax.vmap(jax.vmap(root))(rows[None]), rows[None] ** (1 / 3))

    def test_vmap_over_some_of_the_arguments_and_tangents(self):
        matrix, x = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(4, 3)
        close(jax.vmap(matvec, (None, 0))(matrix, x), x @ matrix.T)
        close(jax.vmap(jax.jacfwd(matvec, 1), (None, 0))(matrix, x), np.broadcast_to(matrix, (4, 2, 3)))
        close(jax.jacfwd(matvec, 1)(matrix, x[0]), matrix)
        close(jax.jacrev(matvec, 0)(matrix, x[1])[0, 0], x[1])
        slopes = jax.vmap(jax.grad(lambda m, x: matvec(m, x).sum(), (0, 1)), (None, 0))(matrix, x)
        close(slopes[0], np.broadcast_to(x[:, None], (4, 2, 3)))
        close(slopes[1], np.broadcast_to(matrix.sum(0), (4, 3)))

    def test_inside_loops_and_branches(self):
        def steps(a):
            return jax.lax.scan(lambda c, x: (root(c) + x, root(c)), a, jnp.ones((3, 3)))[0].sum()

        def expected(a):
            for _ in range(3):
                a = a ** (1 / 3) + 1.0
            return a.sum()

        close(jax.jit(steps)(A), expected(A))
        close(jax.grad(steps)(A), jax.grad(expected)(A))
        chosen = jax.jit(lambda p, a: jax.lax.cond(p, root, lambda a: a, a))
        close(chosen(True, A), A ** (1 / 3))
        close(jax.lax.fori_loop(0, 2, lambda i, a: root(a), jnp.asarray(A)), A ** (1 / 9))

    def test_structures_and_whole_numbers(self):
        f = wrap(lambda d, n: {"y": d["x"] * ag.cast(n, d["x"].dtype), "m": n + 1, "none": None})
        found = jax.jit(f)({"x": A}, 3)
        assert (int(found["m"]), found["none"], found["m"].dtype) == (4, None, np.int64)
        close(found["y"], 3 * A)
        close(jax.grad(lambda d: f(d, 3)["y"].sum())({"x": A})["x"], [3.0, 3.0, 3.0])
        close(jax.grad(lambda x: wrap(lambda x: ag.cast(x, ag.int32))(x).sum().astype(float))(2.0), 0.0)

    def test_threads(self):
        f, found = jax.jit(jax.grad(total)), {}

        def work(number):
            with jax.enable_x64(True):  # which belongs to a thread
                for _ in range(10):
                    found.setdefault(number, []).append(np.asarray(f(A * number)))

        threads = [threading.Thread(target=work, args=(number,)) for number in (1, 2, 3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for number, values in found.items():
            close(np.stack(values), np.broadcast_to((A * number) ** (-2 / 3) / 3, (10, 3)))


class TestCalls:
    def test_xla_calls_the_c_function(self):
        text = jax.jit(jax.grad(total)).lower(A).as_text()
        assert "custom_call @autograph_" in text
        assert "callback" not in text

    def test_all_kinds_of_numbers(self):
        f = wrap(
            lambda x, flag, k: (x * 2 if flag else x, ag.logical_not(flag), ag.cast(k, ag.uint8), ag.reduce_sum(x))
        )
        for dtype in (np.float32, np.float64, np.int32, np.int64):
            y, flag, k, s = jax.jit(f)(np.arange(3, dtype=dtype), True, np.int16(7))
            assert (y.tolist(), y.dtype, bool(flag), int(k), k.dtype) == ([0, 2, 4], dtype, False, 7, np.uint8)
            assert s == 3
        assert jax.jit(wrap(lambda x: x + 1.0))(np.zeros((0, 2))).shape == (0, 2)
        big = np.arange(100_000.0).reshape(10, -1)
        close(jax.jit(wrap(lambda x: ag.transpose(x) + 1.0))(big), big.T + 1.0)

    def test_errors_come_back(self):
        def positive(x):
            ag.debugging.assert_positive(x, "must be positive")
            return x

        with pytest.raises(Exception, match=r"must be positive(.|\n)*in positive") as caught:
            jax.block_until_ready(jax.jit(wrap(positive))(np.array([-1.0])))
        assert "INVALID_ARGUMENT" in str(caught.value)

    def test_what_has_no_c_function_is_called_through_python(self):
        f = wrap(lambda x: ag.ensure_shape(ag.numpy_function(np.sin, [x], ag.float64), [3]) * 2.0)
        assert "callback" in jax.jit(f).lower(A).as_text()
        close(jax.jit(f)(A), 2.0 * np.sin(A))
        g = wrap(lambda z: z * z)
        close(jax.jit(g)(np.array([1.0 + 2.0j])), [(1.0 + 2.0j) ** 2])

    def test_programs_live_as_long_as_those_that_call_them(self):
        f = jax.jit(wrap(lambda x: x * 3.0))
        f(A)
        gc.collect()
        close(f(2 * A), 6 * A)


def test_refusals():
    with pytest.raises(TypeError, match="size that depends on values"):
        wrap(lambda x: ag.unique(x)[0])(A)
    with pytest.raises(TypeError, match="must be arrays and numbers"):
        root("text")
    with jax.enable_x64(False), pytest.raises(TypeError, match="jax_enable_x64"):
        wrap(lambda x: ag.cast(x, ag.float64))(np.float32(1.0))
