"""`ag.grad` and its kin against closed forms: eagerly, in traced functions, compiled; composed; over structures."""

import dataclasses

import numpy as np
import pytest

import autograph as ag

MODES = {
    "eager": lambda f: f,
    "traced": lambda f: ag.function(f, jit_compile=False),
    "compiled": lambda f: ag.function(f, jit_compile=True),
}
every_mode = pytest.mark.parametrize("mode", list(MODES.values()), ids=list(MODES))


def close(found, expected, tolerance=1e-9):
    np.testing.assert_allclose(np.asarray(found), expected, rtol=tolerance, atol=1e-12)


def wave(x):
    return ag.reduce_sum(ag.sin(x) * x)


def square_root(a):
    """By Heron's method: as many trips as the argument needs."""
    y = a + 1.0
    while ag.abs(y * y - a) > 1e-12 * a:
        y = 0.5 * (y + a / y)
    return y


def vector():
    return ag.constant([0.3, 1.2, -2.0], ag.float64)


@every_mode
def test_gradients(mode):
    x = vector()
    close(mode(ag.grad(wave))(x), np.cos(x) * x + np.sin(x))
    value, slope = mode(ag.value_and_grad(wave))(x)
    close(value, np.sum(np.sin(x) * x))
    close(slope, np.cos(x) * x + np.sin(x))


@every_mode
def test_gradients_through_loops_to_third_order(mode):
    a = ag.constant(4.0, ag.float64)
    close(mode(ag.grad(square_root))(a), 0.25)
    close(mode(ag.grad(ag.grad(square_root)))(a), -1 / 32, 1e-6)
    close(mode(ag.grad(lambda x: x**4))(a), 256.0)
    close(mode(ag.grad(ag.grad(ag.grad(lambda x: x**4))))(a), 96.0)


@every_mode
def test_argnums_aux_and_keywords(mode):
    def f(a, b, scale=1.0):
        return a * a * b * scale, {"sum": a + b}

    a, b = ag.constant(2.0), ag.constant(5.0)
    (da, db), aux = mode(ag.grad(f, argnums=(0, 1), has_aux=True))(a, b, scale=ag.constant(3.0))
    close([da, db, aux["sum"]], [60.0, 12.0, 7.0])
    close(mode(ag.grad(f, argnums=-1, has_aux=True))(a, b)[0], 4.0)
    (value, aux), slope = mode(ag.value_and_grad(f, has_aux=True))(a, b)
    close([value, aux["sum"], slope], [20.0, 7.0, 20.0])


@dataclasses.dataclass
class Line:
    slope: object
    offset: object


@every_mode
def test_structures(mode):
    def loss(parameters, line):
        return parameters["w"] * parameters["pair"][1] ** 2 + line.slope * 3.0

    parameters = {"w": ag.constant(2.0), "pair": (ag.constant(1.0), ag.constant(3.0))}
    found, line = mode(ag.grad(loss, argnums=(0, 1)))(parameters, Line(ag.constant(1.0), ag.constant(4.0)))
    assert sorted(found) == ["pair", "w"] and isinstance(found["pair"], tuple) and isinstance(line, Line)
    close([found["w"], *found["pair"], line.slope, line.offset], [9.0, 0.0, 12.0, 3.0, 0.0])


def test_variables_are_differentiated_by_too():
    v = ag.Variable([1.0, 2.0, 3.0])
    close(ag.grad(lambda x: ag.reduce_sum(x * x))(v), [2.0, 4.0, 6.0])
    close(ag.grad(lambda x: ag.reduce_sum(ag.gather(x, [1, 1])))(v), [0.0, 2.0, 0.0])


@every_mode
def test_vjp_and_jvp(mode):
    def f(x, y):
        return {"product": x * y, "sum": ag.reduce_sum(x + y)}

    x, y = vector(), ag.constant([1.0, 2.0, 3.0], ag.float64)

    def pulled(x, y):
        value, pull = ag.vjp(f, x, y)
        first = pull({"product": ag.ones_like(x), "sum": ag.constant(2.0, ag.float64)})
        second = pull({"product": ag.zeros_like(x), "sum": ag.constant(1.0, ag.float64)})
        return value, first, second

    value, first, second = mode(pulled)(x, y)
    close(value["product"], x * y)
    close(first[0], y + 2.0)
    close(first[1], x + 2.0)
    close(second, np.ones((2, 3)))

    tangents = (ag.constant([1.0, 0.0, 2.0], ag.float64), ag.constant([0.0, 1.0, 1.0], ag.float64))
    for found in (
        mode(lambda x, y: ag.jvp(f, (x, y), tangents))(x, y)[1],
        mode(lambda x, y: ag.linearize(f, x, y)[1](*tangents))(x, y),
    ):
        close(found["product"], tangents[0] * y + x * tangents[1])
        close(found["sum"], 5.0)


@every_mode
def test_jacobians(mode):
    def f(x, m):
        return ag.linalg.matvec(m, x * x), ag.reduce_sum(x)

    x, m = vector(), ag.constant(np.arange(6.0).reshape(2, 3))
    for transform in (ag.jacrev, ag.jacfwd):
        (by_x, by_m), (sum_by_x, sum_by_m) = mode(transform(f, argnums=(0, 1)))(x, m)
        close(by_x, 2 * m * x)
        close(by_m, np.einsum("ij,k->ijk", np.eye(2), x * x))
        close(sum_by_x, np.ones(3))
        close(sum_by_m, np.zeros((2, 3)))
    close(mode(ag.hessian(wave))(x), np.diag(2 * np.cos(x) - x * np.sin(x)))
    (product,) = mode(lambda x: ag.hvp(wave, (x,), (ag.ones_like(x),)))(x)
    close(product, 2 * np.cos(x) - x * np.sin(x))


def test_jacobians_keep_aux():
    x = vector()
    for transform in (ag.jacrev, ag.jacfwd):
        jacobian, aux = transform(lambda x: (x * x, {"first": x[0]}), has_aux=True)(x)
        close(jacobian, np.diag(2 * x))
        close(aux["first"], x[0])


@every_mode
def test_rows_with_their_own_numbers_of_trips(mode):
    a = ag.constant([1.0, 4.0, 9.0, 1e4], ag.float64)
    close(mode(ag.vmap(square_root))(a), np.sqrt(a))
    close(mode(ag.vmap(ag.grad(square_root)))(a), 0.5 / np.sqrt(a))
    close(mode(ag.grad(lambda a: ag.reduce_sum(ag.vmap(square_root)(a))))(a), 0.5 / np.sqrt(a))


@every_mode
def test_axes(mode):
    m, v = ag.constant(np.arange(6.0).reshape(2, 3)), ag.constant(np.arange(12.0).reshape(3, 4))
    close(mode(ag.vmap(ag.linalg.matvec, in_axes=(None, 1), out_axes=1))(m, v), m.numpy() @ v.numpy())
    close(mode(ag.vmap(ag.linalg.matvec, in_axes=(None, -1), out_axes=-1))(m, v), m.numpy() @ v.numpy())

    def f(pair, by):
        return {"product": pair[0] * by, "other": pair[1]}

    found = mode(ag.vmap(f, in_axes=((0, None), None)))((v, m), ag.constant(2.0, ag.float64))
    close(found["product"], 2 * v)
    assert found["other"].shape == (3, 2, 3)
    pairs = mode(ag.vmap(ag.vmap(lambda a, b: a * b, in_axes=(None, 0)), in_axes=(0, None)))(v[:, 0], v[0])
    close(pairs, np.outer(v[:, 0], v[0]))


def logarithm():
    @ag.custom_vjp
    def f(x, y):
        return ag.math.log(x) * y

    def forward(x, y):
        return f_of(x, y), (x, y)

    def f_of(x, y):
        return ag.math.log(x) * y

    f.defvjp(forward, lambda kept, ct: (ct * kept[1] / ag.maximum(kept[0], 0.5), None))
    return f


@every_mode
def test_rules_may_call_their_function(mode):
    @ag.custom_vjp
    def f(x):
        return ag.exp(x)

    def forward(x):
        y = f(x)
        return y, y

    f.defvjp(forward, lambda y, ct: (2.0 * ct * y,))  # twice the truth, to be told apart

    @ag.custom_jvp
    def g(x):
        return ag.exp(x)

    g.defjvp(lambda primals, tangents: (g(*primals), 2.0 * g(*primals) * tangents[0]))
    x = ag.constant(0.5, ag.float64)
    for function in (f, g):
        close(mode(function)(x), np.exp(0.5))
        close(mode(ag.grad(function))(x), 2 * np.exp(0.5))
        close(mode(ag.grad(ag.grad(function)))(x), 4 * np.exp(0.5))
        close(mode(ag.grad(ag.grad(ag.grad(function))))(x), 8 * np.exp(0.5))


@every_mode
def test_custom_vjp(mode):
    f = logarithm()
    found = mode(ag.grad(f, argnums=(0, 1)))(ag.constant(0.0), ag.constant(3.0))
    close(found, [6.0, 0.0])
    close(mode(ag.grad(lambda x: f(x * x, 2.0)))(ag.constant(2.0)), 2.0)
    assert f.__name__ == "f"


def test_custom_vjp_with_arguments_that_have_no_derivative():
    @ag.custom_vjp
    def unused(name, x):
        return x

    def scaled(name, x):
        return x * {"double": 2.0}[name]

    named = ag.custom_vjp(scaled, nondiff_argnums=(0,))
    named.defvjp(lambda name, x: (scaled(name, x), None), lambda name, kept, ct: (ct * len(name),))
    close(ag.grad(lambda x: named("double", x))(1.0), 6.0)
    with pytest.raises(AttributeError, match="No VJP defined for custom_vjp function unused using defvjp"):
        unused("double", 1.0)


@every_mode
def test_custom_jvp_gives_the_reverse_mode_too(mode):
    @ag.custom_jvp
    def f(x, y):
        return x * x * y

    @f.defjvp
    def rule(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        return f(x, y), 2.0 * x * y * dx + 10.0 * x * x * dy  # ten times the truth, to be told apart

    x, y = ag.constant(3.0), ag.constant(2.0)
    close(mode(ag.grad(f, argnums=(0, 1)))(x, y), [12.0, 90.0])
    close(mode(lambda x, y: ag.jvp(f, (x, y), (1.0, 1.0)))(x, y), [18.0, 102.0])
    close(mode(ag.grad(ag.grad(f)))(x, y), 4.0)


@pytest.mark.parametrize(
    ("run", "kind", "message"),
    [
        (lambda: ag.grad(lambda x: x * 2)(3), TypeError, "real- or complex-valued inputs.*int32; ag.cast"),
        (lambda: ag.grad(lambda x: x * 2)(ag.ones([2])), TypeError, r"scalar-output functions.*shape: \(2,\)"),
        (lambda: ag.grad(lambda x: ag.cast(x, ag.int32))(1.0), TypeError, "real-valued outputs.*int32"),
        (lambda: ag.grad(lambda x: x, argnums=1)(1.0), ValueError, "argnums=1, but the function was called with 1"),
        (lambda: ag.grad(lambda x: x, has_aux=True)(1.0), TypeError, "returns a pair"),
        (lambda: ag.jvp(lambda x: x, 1.0, 1.0), TypeError, "must be tuples or lists"),
        (lambda: ag.jvp(lambda x: x, (1.0,), (1.0, 2.0)), ValueError, "structure"),
        (lambda: ag.jvp(lambda x: x, (ag.ones([2]),), (ag.ones([3]),)), ValueError, "tangent of shape"),
        (lambda: ag.vmap(lambda x, y: x, in_axes=(0,))(ag.ones([2]), 1.0), ValueError, "1 entries for 2"),
        (lambda: ag.vmap(lambda x, y: x + y)(ag.ones([2]), ag.ones([3])), ValueError, r"inconsistent sizes.*\[2, 3\]"),
        (lambda: ag.vmap(lambda x: x, in_axes=None)(ag.ones([2])), ValueError, "needs an argument with rows"),
        (lambda: ag.vmap(lambda x: x, out_axes=None)(ag.ones([2])), ValueError, "out_axes must be axes"),
        (lambda: ag.vmap(lambda x: x)(1.0), ValueError, "rank"),
    ],
)  # fmt: skip
def test_mistakes_are_told(run, kind, message):
    with pytest.raises(kind, match=message):
        run()


def test_a_gradient_is_traced_once():
    traces = []

    def f(x):
        traces.append(1)
        return x * x

    compiled = ag.function(ag.grad(f))
    for value in (1.0, 2.0, 3.0):
        close(compiled(ag.constant(value)), 2 * value)
    assert len(traces) == 1
