"""Gradients of every function of `ag.experimental.numpy`, eager and staged, against finite differences of NumPy's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import autograph as ag
from runtime.ops.numpy.namespace import _NAMES
from tests.ops.test_numpy_namespace import CALLS, A

tnp = ag.experimental.numpy
RANDOM = np.random.default_rng(7)
V = A[0]
# Calls beside those that the namespace's test makes: of functions that aren't in it, and with lists and numbers.
MORE: dict[str, tuple[Any, ...]] = {
    "amax": (A,), "amin": (A,), "append": (V, A[1]), "asanyarray": (A,), "ascontiguousarray": (A,),
    "array": ([V, A[1]],),
    "asarray": ([[V[0], 1.0], [2, V[1]]],), "broadcast_arrays": (V, A, 2.5), "compress": (V > 0, V), "conjugate": (A,),
    "diagflat": (A, 1), "divmod": (A, V + 0.5), "dsplit": (np.stack([A, A]), 2), "empty_like": (A,),
    "float_power": (abs(A) + 0.1, V), "hsplit": (A, 2), "logaddexp2": (A, V), "nanprod": (A,), "nextafter": (A, V),
    "vsplit": (A, 3), "full": ((2, 4), V), "arange": (V[0], V[0] + 2.0, 0.3), "linspace": (V[0], V[1], 5),
    "logspace": (V[0], V[1], 5), "geomspace": (abs(V[0]) + 1, abs(V[1]) + 2, 4), "interp": (V, np.arange(4.0), A[1]),
    "polyval": (V, A[1]), "average": (A, 0, abs(A)), "trapezoid": (V, np.cumsum(abs(A[1]))),
    "select": ([A > 0, A < 0], [A, 2 * A], 0.0), "einsum": ("ij,kj->ik", A, A), "tensordot": (A, A.T, 1),
}  # fmt: skip
# Functions of truth values, integers and shapes: what they take or give has no slope.
WITHOUT = set(
    "all allclose any argmax argmin argsort array_equal bincount bitwise_and bitwise_or bitwise_xor count_nonzero "
    "diag_indices empty equal eye gcd greater greater_equal identity iscomplex isclose isfinite isinf isnan isneginf "
    "isposinf isreal ix_ lcm less less_equal logical_and logical_not logical_or logical_xor nonzero not_equal ones "
    "searchsorted signbit tri zeros vdot empty_like".split()
)
# Where numbers rather than arrays are differentiated by.
SCALARS = {"arange", "linspace", "logspace", "geomspace", "asarray", "broadcast_arrays"}
NAMES = [name for name in _NAMES.split() if hasattr(np, name)]


def _call(name: str) -> tuple[Any, ...]:
    return MORE.get(name) or CALLS[name]


def _is_active(name: str, value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "f"
    return name in SCALARS and isinstance(value, (float, np.floating))


def _active(name: str, value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _active(name, item)
    elif _is_active(name, value):
        yield np.asarray(value)


def _replaced(name: str, value: Any, others: Iterator[Any]) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_replaced(name, item, others) for item in value)
    return next(others) if _is_active(name, value) else value


def _floats(result: Any) -> list[Any]:
    parts = result if isinstance(result, (list, tuple)) else [result]
    return [part for part in parts if np.asarray(part).dtype.kind == "f"]


def _weighted(T: Any, parts: list[Any]) -> Any:
    """A sum in which each element counts differently."""
    return sum(T.sum(part * np.cos(np.arange(float(np.size(part)))).reshape(np.shape(part))) for part in parts)


def _differences(f: Callable[..., Any], points: list[np.ndarray]) -> list[np.ndarray]:
    found = [np.zeros_like(p) for p in points]
    for number, point in enumerate(points):
        for place in np.ndindex(*point.shape):
            values = []
            for step in (1e-6, -1e-6):
                moved = [p.copy() for p in points]
                moved[number][place] += step
                values.append(f(*moved))
            found[number][place] = (values[0] - values[1]) / 2e-6
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", ["eager", "interpreted", "compiled"])
@pytest.mark.parametrize("name", [name for name in NAMES if name not in WITHOUT])
def test_gradient(name: str, mode: str) -> None:
    call = _call(name)
    points = list(_active(name, call))
    assert points, "it takes no floats here: write a call into MORE, or its name into WITHOUT"

    def total(T: Any, *operands: Any) -> Any:
        parts = _floats(getattr(T, name)(*_replaced(name, call, iter(operands))))
        assert parts
        return _weighted(T, parts)

    def gradients(*operands: Any) -> Any:
        with ag.GradientTape() as tape:
            tape.watch(operands)
            parts = getattr(tnp, name)(*_replaced(name, call, iter(operands)))
            parts = [p for p in (parts if isinstance(parts, (list, tuple)) else [parts]) if p.dtype.is_floating]
            y = sum(ag.reduce_sum(p * ag.reshape(ag.cos(ag.range(ag.size(p, ag.float64))), ag.shape(p))) for p in parts)
        return tape.gradient(y, operands, unconnected_gradients="zero")

    run = gradients if mode == "eager" else ag.function(gradients, jit_compile=mode == "compiled")
    found = run(*map(ag.constant, points))
    for one, other in zip(found, _differences(lambda *operands: total(np, *operands), points)):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", sorted(WITHOUT & set(NAMES)))
def test_functions_without_slopes(name: str) -> None:
    """They give no floats, or take none."""
    if name in CALLS and name != "vdot":
        call = CALLS[name]
        assert not list(_active(name, call)) or not _floats(getattr(np, name)(*call))


def test_slopes_at_ties_and_zero_to_second_order() -> None:
    x, y = np.array([0.0, 1.5, -2.0]), np.array([0.0, 1.5, 3.0])
    ag.test.check_gradients(tnp.logaddexp, [x, y], order=2)
    ag.test.check_gradients(tnp.logaddexp2, [x, y], order=2)
    ag.test.check_gradients(tnp.sinc, [np.array([0.0, 1e-9, 0.3, -0.32, 1.0, 7.25])], order=2)
    ag.test.check_gradients(lambda t: tnp.vander(t, 5), [np.array([0.0, 1.0, -2.0])], order=2)
    inf = float("inf")
    np.testing.assert_array_equal(tnp.logaddexp([inf, -inf, inf, -inf], [inf, -inf, 0.0, 0.0]), [inf, -inf, inf, 0.0])


def test_dtypes() -> None:
    x = ag.constant([1.0, 2.0], ag.float32)
    assert tnp.asarray(x).dtype is ag.float32
    assert tnp.asarray([x, [1.0, 2.0]]).dtype is ag.float64 and tnp.array([x, x]).dtype is ag.float32
    assert tnp.array(x, ndmin=3).shape == (1, 1, 2) and tnp.array([x[0], 3]).dtype.np == np.result_type("f4", "i8")
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = tnp.asarray(x, tnp.float64) * tnp.array([x, x], dtype=tnp.float64)[0] + tnp.sum(x, dtype=tnp.float64)
        assert y.dtype is ag.float64
    np.testing.assert_allclose(tape.gradient(y, x), 2 * np.array([1.0, 2.0]) + 2)


def test_what_would_lose_the_gradient_is_refused() -> None:
    x = ag.constant([3.0, 1.0, 2.0], ag.float64)
    with ag.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(TypeError, match=r"np.unique has no gradient .* pass the argument's value"):
            tnp.unique(x, return_index=True)
        values, places = tnp.unique(x.numpy(), return_index=True)
        assert list(places) == [1, 2, 0]
        y = tnp.sum(x * values)
    np.testing.assert_allclose(tape.gradient(y, x), [1.0, 2.0, 3.0])


@pytest.mark.parametrize("shapes", [(5, 3), (3, 5), (4, 4), (1, 6)])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolve_of_numpy(mode: str, shapes: tuple[int, int]) -> None:
    x, y = (RANDOM.normal(size=size) for size in shapes)

    def convolve(a: Any, b: Any) -> Any:
        return np.convolve(a, b, mode)

    # Without a tape and outside of a trace it is NumPy's own.
    np.testing.assert_allclose(ag.function(convolve)(ag.constant(x), ag.constant(y)), convolve(x, y))
    ag.test.check_gradients(convolve, [x, y], order=2)
    ag.test.check_gradients(ag.function(convolve), [x, y])
    whole = ag.constant([1, 2, 3]), ag.constant([2, 0, 1])
    np.testing.assert_array_equal(ag.function(convolve)(*whole), np.convolve([1, 2, 3], [2, 0, 1], mode))
