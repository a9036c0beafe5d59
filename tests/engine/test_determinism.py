"""With `enable_op_determinism` the bits of a result don't depend on the call, the thread, the process or the cache."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autograph as ag
from runtime.codegen.backends import driver
from runtime.engine import background, settings, wait_for_background
from runtime.engine import on_stack_replacement as osr
from runtime.ops.random.stateful import STREAMS

X = np.linspace(-1.5, 1.2, 37).astype(np.float32)
M = np.sin(np.arange(24 * 37, dtype=np.float32)).reshape(24, 37)


@pytest.fixture
def deterministic(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("AUTOGRAPH_CACHE_DIR", str(tmp_path))
    ag.config.enable_op_determinism()
    ag.random.set_seed(11)
    yield
    settings.set_deterministic(False)
    STREAMS.needs_seed = False
    ag.random.set_seed(None)


def rosenbrock(x: Any) -> Any:
    return ag.reduce_sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def value_and_gradient(x: Any) -> Any:
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = rosenbrock(x)
    return y, tape.gradient(y, x)


def descent(x: Any) -> Any:
    """A line search in a loop that ends by a tolerance: how often it runs hangs on last bits."""
    f, g = value_and_gradient(x)
    last, direction = g, -g
    count = 0
    while count < 400 and ag.norm(g) > 1e-2:
        t = 1.0
        slope = ag.tensordot(g, direction, 1)
        while rosenbrock(x + t * direction) > f + 1e-4 * t * slope and t > 1e-7:
            t = t * 0.5
        x = x + t * direction
        f, g = value_and_gradient(x)
        beta = ag.maximum(ag.tensordot(g, g - last, 1) / ag.tensordot(last, last, 1), 0.0)
        direction = -g + beta * direction
        if ag.tensordot(direction, g, 1) >= 0.0:
            direction = -g
        last = g
        count += 1
    return x, f, count


def sums(x: Any, m: Any) -> Any:
    y = ag.exp(x) * ag.tanh(x)
    rows = ag.reduce_mean(ag.nn.softmax(m * y), 1)
    return ag.reduce_sum(y), rows, m @ x[:, None], ag.math.reduce_std(m, 0), ag.reduce_prod(x * 0.1 + 1.0), x**2.5


def partly_interpreted(x: Any) -> Any:
    """A loop that stays on the interpreter round loops that become native while it runs."""
    total = ag.reduce_sum(x) * 0.0
    for i in ag.range(6):
        y = ag.numpy_function(lambda a: a * np.float32(0.5), [x], ag.float32)
        y = ag.ensure_shape(y, [37])
        for _ in ag.range(40):
            y = ag.sin(y) + ag.reduce_sum(y * y) * 0.01
        total += ag.reduce_sum(y) * ag.cast(i, ag.float32)
    return total


def drawn(x: Any) -> Any:
    return ag.reduce_sum(ag.random.stateless_normal([100], [3, 4])) + ag.reduce_sum(x)


def gradient(x: Any) -> Any:
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in ag.range(9):
            y = ag.tanh(y) * ag.math.sigmoid(ag.reduce_sum(y))
        y = ag.reduce_sum(y)
    return tape.gradient(y, x)


def unrolled(x: Any) -> Any:
    for t in range(60):
        x = ag.sin(x) * (0.5 + 0.01 * t) + ag.reduce_mean(x)
    return x


PROGRAMS: dict[str, tuple[Callable[..., Any], list[np.ndarray]]] = {
    "descent": (descent, [X]),
    "sums": (sums, [X, M]),
    "partly interpreted": (partly_interpreted, [X]),
    "drawn": (drawn, [X]),
    "gradient": (gradient, [X]),
    "unrolled": (unrolled, [X]),
}


def bits(result: Any) -> str:
    return " ".join(t.numpy().tobytes().hex() for t in ag.nest.flatten(result))


def called(name: str) -> tuple[Callable[..., Any], list[Any]]:
    function, arrays = PROGRAMS[name]
    return ag.function(function), [ag.constant(a) for a in arrays]


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_call_gives_the_same_bits(deterministic: None, name: str) -> None:
    f, arguments = called(name)
    first = bits(f(*arguments))
    for _ in range(3):
        assert bits(f(*arguments)) == first
    assert wait_for_background(300)
    for _ in range(25):  # by now loops are hot, and machine code answers calls
        assert bits(f(*arguments)) == first
    again, arguments = called(name)
    assert bits(again(*arguments)) == first, "another function of the same program"


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_through_calls_do_so_too(deterministic: None, name: str) -> None:
    f, arguments = called(name)
    found = set()
    for _ in range(4):
        with ag.GradientTape() as tape:
            tape.watch(arguments[0])
            results = [r for r in ag.nest.flatten(f(*arguments)) if r.dtype.is_floating]
        found.add(bits([results, [g for g in [tape.gradient(results, arguments[0])] if g is not None]]))
    assert len(found) == 1


def test_the_programs_tell_the_tiers_apart() -> None:
    """Or equal bits on each call would show nothing."""
    for name in ("descent", "sums", "gradient", "unrolled"):
        function, arrays = PROGRAMS[name]
        results = [ag.function(function, jit_compile=mode)(*map(ag.constant, arrays)) for mode in (True, False)]
        assert bits(results[0]) != bits(results[1])


def test_threads_that_call_first_get_the_same_bits(deterministic: None) -> None:
    f, arguments = called("partly interpreted")
    found: list[str] = []
    gate = threading.Barrier(6)

    def call() -> None:
        gate.wait()
        found.extend(bits(f(*arguments)) for _ in range(3))

    threads = [threading.Thread(target=call) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 18
    assert len(set(found)) == 1


def test_nothing_is_compiled_aside(deterministic: None, monkeypatch: pytest.MonkeyPatch) -> None:
    submitted: list[Any] = []
    submit = background.Worker.submit

    def noting(self: Any, step: Any, **options: Any) -> bool:
        submitted.append((step, options))
        return submit(self, step, **options)

    monkeypatch.setattr(background.Worker, "submit", noting)
    for name in ("sums", "partly interpreted"):
        f, arguments = called(name)
        f(*arguments)
    # What prepares memory, threads and calls, and writes files, neither says what it gains nor replaces what has run.
    aside = [step for step, options in submitted if "gain" in options or "urgent" in options]
    assert [step for step in aside if step is not driver.provide_threads] == []


def test_loops_in_interpreted_ones_go_native_at_the_same_trip_in_each_run(
    deterministic: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    finish = osr.FixedTierUp.finish

    def noting(self: Any, operands: Any) -> Any:
        result = finish(self, operands)
        asked.append(result is not None)
        return result

    monkeypatch.setattr(osr.FixedTierUp, "finish", noting)
    f, arguments = called("partly interpreted")
    runs = []
    for _ in range(6):
        f(*arguments)
        runs.append(asked[:])
        asked.clear()
    # In each of six trips of the outer loop, the inner one is native after its first trip.
    assert runs == [[True, False] * 6] * 6


SCRIPT = """
import sys
import autograph as ag
from tests.engine import test_determinism as programs
ag.config.experimental.enable_op_determinism()
ag.config.threading.set_intra_op_parallelism_threads(int(sys.argv[1]))
for name in ("descent", "sums", "partly interpreted"):
    f, arguments = programs.called(name)
    print(programs.digest(f(*arguments)), programs.digest(f(*arguments)))
big = ag.constant(programs.np.sin(programs.np.arange(2_000_000, dtype="float32")))
f = ag.function(lambda x: ag.reduce_sum(ag.exp(x) * x))
print(programs.digest(f(big)), programs.digest(f(big)))
"""


def digest(result: Any) -> str:
    return hashlib.sha256(bits(result).encode()).hexdigest()[:16]


def test_processes_get_the_same_bits(tmp_path: Path) -> None:
    """From the compiler, from the cache, and on another number of threads."""
    outputs = []
    for threads in ("1", "1", "2"):
        environment = {**os.environ, "AUTOGRAPH_CACHE_DIR": str(tmp_path)}
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT, threads], env=environment, capture_output=True, text=True, timeout=600
        )
        assert run.returncode == 0, run.stderr
        outputs.append(run.stdout)
    assert all(line.split()[0] == line.split()[1] for line in outputs[0].splitlines())
    assert len(outputs[0].splitlines()) == 4
    assert outputs[0] == outputs[1] == outputs[2]
