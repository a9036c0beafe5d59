"""Loops over complex numbers in native code, where they are pairs of real ones: the interpreter's results."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import autograph as ag
from runtime.graph.passes.rewrites.complex_parts import in_parts


def assert_same(program: Any, *arguments: Any, tolerance: float = 1e-6) -> Any:
    """Runs a program both ways; gives the function that was compiled."""
    compiled = ag.function(program, jit_compile=True)
    with np.errstate(all="ignore"):
        wanted = ag.nest.flatten(ag.function(program, jit_compile=False)(*arguments))
        got = ag.nest.flatten(compiled(*arguments))
    for a, b in zip(wanted, got):
        assert a.dtype is b.dtype
        assert a.shape == b.shape
        np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance)
    return compiled


def _escape(n: Any) -> Any:
    z, c, count = ag.complex(0.0, 0.0), ag.complex(-0.4, 0.6), 0
    for _ in ag.range(n):
        z = z * z + c
        if ag.abs(z) > 2.0:
            break
        count += 1
    return count, z


def _pixels(xs: Any, ys: Any) -> Any:
    counts, place = ag.TensorArray(ag.int32, 48), 0
    for y in ys:
        for x in xs:
            c = ag.complex(x, y)
            z, n = c * 0, 0
            while n < 50 and ag.abs(z) <= 2.0:
                z = z * z + c
                n += 1
            counts = counts.write(place, n)
            place += 1
    return counts.stack()


def _arrays(c: Any, n: Any) -> Any:
    z, count = ag.zeros_like(c), ag.zeros(c.shape, ag.int32)
    for _ in ag.range(n):
        near = ag.abs(z) < 2.0
        z = ag.where(near, z * z + c, z)
        count += ag.cast(near, ag.int32)
    return count, z


def _newton(z: Any, n: Any) -> Any:
    for _ in ag.range(n):
        z -= (z**3 - 1.0) / (3.0 * z * z)
    return z


def _turns(z: Any, n: Any) -> Any:
    step = ag.exp(ag.complex(ag.constant(0.0, ag.float64), ag.constant(0.01, ag.float64)))
    for _ in ag.range(n):
        z *= step
    return z, ag.math.real(z), ag.math.conj(z), ag.math.reciprocal(z)


def _fourier(x: Any) -> Any:
    found = ag.TensorArray(ag.complex64, x.shape[0])
    for k in ag.range(x.shape[0]):
        total = ag.complex(0.0, 0.0)
        for j in ag.range(x.shape[0]):
            angle = -2 * np.pi * ag.cast(k * j, ag.float32) / x.shape[0]
            total += ag.cast(x[j], ag.complex64) * ag.complex(ag.cos(angle), ag.sin(angle))
        found = found.write(k, total)
    return found.stack()


def _moved(x: Any, n: Any) -> Any:
    y = x
    for _ in ag.range(n):
        y = ag.concat([y[1:], y[:1]], 0) * ag.complex(0.6, 0.8)
        y = ag.tensor_scatter_nd_update(y, [[0]], [y[1] + 1.0])
    return ag.reduce_sum(y), ag.reshape(y, [2, -1]), y == x, y != x


def _products(a: Any, n: Any) -> Any:
    x = a
    for _ in ag.range(n):
        x = ag.matmul(x, a) / ag.cast(ag.norm(ag.math.real(x)) + 1.0, ag.complex128)
    return x


Z = np.array([1 + 2j, -0.5 + 0.3j, 0.1 - 2j])
GRID = np.linspace(-1.5, 0.5, 8).astype(np.float32)
PROGRAMS = {
    "escape": (_escape, 1000),
    "pixels": (_pixels, GRID, GRID[:6]),
    "arrays": (_arrays, Z[:, None] * Z / 4, 20),
    "newton": (_newton, Z, 20),
    "newton of one": (_newton, np.complex64(1 + 2j), 20),
    "turns": (_turns, Z, 200),
    "fourier": (_fourier, np.arange(7, dtype=np.float32)),
    "moved": (_moved, np.arange(6, dtype=np.complex64) * (1 - 2j), 15),
    "products": (_products, np.outer(Z, Z[::-1]), 15),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    program, *arguments = PROGRAMS[name]
    tensors = [ag.constant(a) for a in arguments]
    compiled = assert_same(program, *tensors, tolerance=1e-4)
    loops = [line for line in compiled.explain(*tensors).splitlines() if "staged" in line]
    assert loops
    assert not any("on the interpreter" in line for line in loops)


def _quotient(z: Any, w: Any, n: Any) -> Any:
    quotient, size = z, ag.abs(z)
    for _ in ag.range(n):
        quotient, size = z / w, ag.abs(z)
    return quotient, size


LARGE = [0j, 2 - 1j, 1e200 + 1e200j, -1e-200j, 1e-300 + 1e-300j, complex(math.inf, 1), complex(math.nan, 1)]


@pytest.mark.parametrize(("z", "w"), list(itertools.product(LARGE, LARGE[:5])))
def test_special_values(z: complex, w: complex) -> None:
    assert_same(_quotient, ag.constant(z), ag.constant(w), ag.constant(1), tolerance=1e-12)


def test_gradients() -> None:
    def slope(z: Any, n: Any) -> Any:
        with ag.GradientTape() as tape:
            tape.watch(z)
            w = z
            for _ in ag.range(n):
                w = w * w * 0.5 + z
            y = ag.abs(w) ** 2
        return tape.gradient(y, z)

    assert_same(slope, ag.constant(0.1 + 0.2j), ag.constant(10))


def test_a_tape_around_the_function() -> None:
    def settle(z: Any, n: Any) -> Any:
        w = z
        for _ in ag.range(n):
            w = w * w * 0.5 + z
        return ag.abs(w) ** 2

    found = []
    for jit in (False, True):
        function, z = ag.function(settle, jit_compile=jit), ag.constant(0.1 + 0.2j)
        with ag.GradientTape() as tape:
            tape.watch(z)
            y = function(z, ag.constant(10))
        found.append(tape.gradient(y, z).numpy())
    np.testing.assert_allclose(*found, rtol=1e-12)


def test_longer_computations_without_a_loop() -> None:
    def step(z: Any, c: Any) -> Any:
        w = z * z + c
        return ag.where(ag.abs(w) < 2.0, w / (w + 1.0), w) * ag.math.conj(c)

    z = ag.constant(Z[:, None] * Z)
    compiled = assert_same(step, z, ag.constant(Z), tolerance=1e-12)
    graph = compiled.get_concrete_function(z, ag.constant(Z)).graph
    assert in_parts(graph) is not None


def test_a_running_loop_goes_native() -> None:
    def spin(n: Any) -> Any:
        z, i = ag.complex(1.0, 0.0), 0
        while i < n:
            z = z * ag.complex(0.6, 0.8)
            z = z / ag.cast(ag.abs(z), ag.complex64)
            i += 1
        return z

    function = ag.function(spin)
    wanted = (0.6 + 0.8j) ** 200_000
    np.testing.assert_allclose(function(ag.constant(200_000)), wanted, atol=0.1)


def test_what_has_no_rule_stays_whole() -> None:
    def mixed(x: Any, n: Any) -> Any:
        spectrum = ag.signal.fft(x)
        for _ in ag.range(n):
            spectrum = spectrum * 0.5
        back = ag.signal.ifft(spectrum)
        for _ in ag.range(n):
            back = ag.signal.fft(back) / 2.0
        return back

    compiled = assert_same(mixed, ag.constant(Z), ag.constant(3))
    text = compiled.explain(ag.constant(Z), ag.constant(3))
    assert "fftn" in text


def test_short_computations_are_left_alone() -> None:
    specs = [ag.TensorSpec([3], ag.complex64), ag.TensorSpec([], ag.int32)]
    for program in (lambda z, n: z * z, lambda z, n: ag.abs(z) * ag.cast(n, ag.float32)):
        assert in_parts(ag.function(program).get_concrete_function(*specs).graph) is None
