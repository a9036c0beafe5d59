"""What gives something else at each call in Python does so in traced functions."""

from __future__ import annotations

import datetime
import io
import os
import random
import secrets
import time
import uuid

import numpy as np
import pytest

import autograph as ag
from autograph.errors import StagingError

RNG = np.random.default_rng(5)
OLD_RNG = np.random.RandomState(5)
PYTHON_RNG = random.Random(5)
X = [1.0, 2.0, 4.0]


def in_a_loop(x):
    total = x
    for _ in ag.range(3):
        total += np.random.normal()
    return total


def in_a_branch(x):
    if x[0] > 0.0:
        y = x + random.random()
    else:
        y = x
    return y


def while_true(x):
    n = 0
    while True:
        n += 1
        x = x + PYTHON_RNG.random()
        if x[0] > 3.0:
            break
    return n, x


def decides(x):
    y = x
    if random.random() < 0.5:
        y = -x
    for _ in range(PYTHON_RNG.randint(1, 3)):
        y = y * 2.0
    return y


# Seeded, the values are Python's own, at each call.
SEEDED = {
    "normal": lambda x: x * np.random.normal(),
    "normal array": lambda x: x * np.random.normal(size=3),
    "array before": lambda x: np.random.normal(size=3) - x,
    "parameters": lambda x: np.random.uniform(-2.0, 2.0, size=(2, 3)),
    "randint": lambda x: x + np.random.randint(0, 10),
    "randint array": lambda x: np.random.randint(0, 10, size=4),
    "rand": lambda x: np.random.rand(3) * 2.0 + 1,
    "permutation": lambda x: np.random.permutation(4),
    "numpy choice": lambda x: np.random.choice([3.0, 4.0, 5.0], size=2),
    "integers to floats": lambda x: np.random.randint(1, 10, size=3) / 2,
    "of an array": lambda x: np.sum(np.random.normal(size=3) ** 2),
    "generator": lambda x: x * RNG.normal(size=3),
    "generator's integers": lambda x: RNG.integers(0, 100),
    "generator's choice": lambda x: RNG.choice(5, size=2, replace=False),
    "random state": lambda x: x * OLD_RNG.normal(size=3),
    "random": lambda x: x * random.random(),
    "uniform": lambda x: x * random.uniform(1.0, 2.0),
    "randint of Python": lambda x: x + random.randint(1, 6),
    "randrange": lambda x: x + random.randrange(10),
    "gauss": lambda x: x * random.gauss(0.0, 1.0),
    "choice": lambda x: x * random.choice([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
    "sample": lambda x: random.sample([1.0, 2.0, 3.0, 4.0, 5.0], 3),
    "choices": lambda x: random.choices([1.0, 2.0, 3.0], weights=[1, 2, 1], k=4),
    "own generator": lambda x: x * PYTHON_RNG.random(),
    "made inside": lambda x: x * np.random.default_rng(3).normal(size=3),
    "made inside, of Python": lambda x: x * random.Random(3).random(),
    "getrandbits": lambda x: random.getrandbits(40),
    "loop": in_a_loop,
    "branch": in_a_branch,
    "until": while_true,
    "decides": decides,
}


def seed_all():
    np.random.seed(7)
    random.seed(7)
    RNG.bit_generator.state = np.random.default_rng(5).bit_generator.state
    OLD_RNG.seed(5)
    PYTHON_RNG.seed(5)


def values_of(result):
    return [np.asarray(each, np.float64).tolist() for each in ag.nest.flatten(result)]


@pytest.mark.parametrize("jit_compile", [None, True], ids=["", "jit"])
@pytest.mark.parametrize("name", SEEDED)
def test_draws_are_pythons_own(name, jit_compile):
    program = SEEDED[name]
    compiled = ag.function(program, jit_compile=jit_compile)
    seed_all()
    found = [values_of(compiled(ag.constant(X))) for _ in range(4)]
    seed_all()
    right = [values_of(program(ag.constant(X))) for _ in range(4)]
    for one, other in zip(found, right):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5)
    assert compiled.experimental_get_tracing_count() == 1


def test_a_seed_is_set_at_each_call():
    @ag.function
    def f(x):
        np.random.seed(3)
        random.seed(4)
        return x * np.random.normal() * random.random()

    np.random.seed(1)
    found = [float(f(ag.constant(1.0))) for _ in range(3)]
    assert len(set(found)) == 1
    assert np.random.normal() != found[0]


def test_sizes_and_parameters_may_be_tensors():
    @ag.function
    def f(n, scale):
        return np.random.normal(0.0, scale, size=(int(n), 2)), np.random.randint(0, n + 1)

    array, number = f(ag.constant(3), ag.constant(0.0))
    assert array.shape == (3, 2) and not array.numpy().any() and 0 <= int(number) <= 3
    assert f(ag.constant(5), ag.constant(0.0))[0].shape == (5, 2)


# What differs at each call.
DIFFERENT = {
    "time": lambda x: time.time(),
    "time_ns": lambda x: time.time_ns(),
    "perf_counter": lambda x: time.perf_counter(),
    "monotonic": lambda x: time.monotonic_ns(),
    "process_time": lambda x: time.process_time_ns(),
    "uuid4": lambda x: str(uuid.uuid4()),
    "uuid1": lambda x: uuid.uuid1().hex,
    "token": lambda x: secrets.token_hex(8),
    "randbits": lambda x: secrets.randbits(60),
    "urandom": lambda x: os.urandom(8),
    "system random": lambda x: random.SystemRandom().random(),
    "now": lambda x: datetime.datetime.now().timestamp(),
    "difference": lambda x: (datetime.datetime.now() - datetime.datetime(2020, 1, 1)).total_seconds(),
    "isoformat": lambda x: datetime.datetime.now(datetime.timezone.utc).isoformat(),
    "unseeded generator": lambda x: x * np.random.default_rng().normal(),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_calls_differ(name):
    compiled = ag.function(DIFFERENT[name])
    found = []
    for _ in range(3):
        found.append(str(compiled(ag.constant(1.0)).numpy()))
        time.sleep(0.001)
    assert len(set(found)) == 3
    assert compiled.experimental_get_tracing_count() == 1


def test_one_object_is_one_draw():
    @ag.function
    def f(x):
        now = datetime.datetime.now()
        same = uuid.uuid4()
        return now.microsecond, now.microsecond, same.hex, same.hex

    for _ in range(3):
        first, again, one, other = f(ag.constant(1.0))
        assert int(first) == int(again) and one.numpy() == other.numpy()


def test_the_time_passes_within_a_call():
    @ag.function
    def f(x):
        start = time.perf_counter()
        time.sleep(0.002)
        return time.perf_counter() - start

    for _ in range(3):
        assert float(f(ag.constant(1.0))) >= 0.002


def test_input_is_asked_for_at_each_call(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("one\ntwo\n"))

    @ag.function
    def f(x):
        return input()

    assert [f(ag.constant(1.0)).numpy() for _ in range(2)] == [b"one", b"two"]


@pytest.mark.parametrize("read", [
    lambda x: x * float(os.environ["FACTOR_OF_A_TEST"]),
    lambda x: x * float(os.environ.get("FACTOR_OF_A_TEST", "1")),
    lambda x: x * float(os.getenv("FACTOR_OF_A_TEST")),
    lambda x: x * (3.0 if os.getenv("FACTOR_OF_A_TEST") == "3" else 2.0),
    lambda x: x * (2.0 if "OTHER_OF_A_TEST" not in os.environ else 3.0),
    lambda x: x * float({**os.environ}["FACTOR_OF_A_TEST"]),
])  # fmt: skip
def test_the_environment_is_read_at_each_call(monkeypatch, read):
    monkeypatch.setenv("FACTOR_OF_A_TEST", "2")
    compiled = ag.function(read)
    x = ag.constant(5.0)
    assert [float(compiled(x)) for _ in range(3)] == [10.0] * 3
    assert compiled.experimental_get_tracing_count() == 1
    monkeypatch.setenv("FACTOR_OF_A_TEST", "3")
    monkeypatch.setenv("OTHER_OF_A_TEST", "")
    assert float(compiled(x)) == 15.0


@pytest.mark.parametrize("inside", [False, True], ids=["around", "inside"])
def test_a_gradient_is_of_the_numbers_that_were_drawn(inside):
    def noisy(x):
        y = x
        for _ in ag.range(4):
            y = y * (1.0 + np.random.rand()) + random.random()
        return y * np.random.normal(size=2)

    def with_gradient(x):
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = run(x)
        return y, tape.jacobian(y, x)

    run = noisy if inside else ag.function(noisy)
    both = ag.function(with_gradient) if inside else with_gradient
    np.random.seed(3)
    random.seed(3)
    for _ in range(3):
        before = np.random.get_state(), random.getstate()
        y, slope = both(ag.constant(2.0))
        after = np.random.get_state()[1].copy()
        np.random.set_state(before[0])
        random.setstate(before[1])
        one = noisy(ag.constant(2.0))
        np.testing.assert_array_equal(np.random.get_state()[1], after)
        np.random.set_state(before[0])
        random.setstate(before[1])
        other = noisy(ag.constant(3.0))
        np.testing.assert_allclose(y, one, rtol=1e-5)
        np.testing.assert_allclose(slope, other - one, rtol=1e-3, atol=1e-5)


def test_a_drawn_array_can_be_changed_in_place():
    @ag.function
    def f(x):
        noise = np.random.normal(size=3)
        noise[0] = 0.0
        noise[1] = x
        return x * noise

    first, second = f(ag.constant(2.0)).numpy(), f(ag.constant(2.0)).numpy()
    assert first[0] == second[0] == 0.0 and first[1] == second[1] == 4.0 and first[2] != second[2]


def test_datasets_draw_for_each_element():
    dataset = ag.data.Dataset.range(6).map(lambda i: np.random.rand())
    assert len({float(each) for each in dataset}) == 6


@pytest.mark.parametrize("shuffle", [
    lambda items: random.shuffle(items), lambda items: np.random.shuffle(items), lambda items: RNG.shuffle(items)
])  # fmt: skip
def test_a_shuffle_in_place_is_refused(shuffle):
    @ag.function
    def f(x):
        items = [1.0, 2.0, 3.0]
        shuffle(items)
        return x * items[0]

    with pytest.raises(StagingError, match="in place") as caught:
        f(ag.constant(1.0))
    assert "test_impure.py" in str(caught.value) and "fix: " in str(caught.value)


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_a_generator_with_a_known_seed_decides_what_is_traced(make):
    def program(x):
        drawn = make(7)
        for _ in range(int(drawn.uniform(2, 5))):
            x = x * drawn.normal()
        return x

    f = ag.function(program)
    for _ in range(2):
        np.testing.assert_allclose(f(ag.constant(1.0)), program(1.0), rtol=1e-5)


def test_a_generator_with_a_known_seed_does_not_draw_in_a_staged_loop():
    @ag.function
    def f(n):
        drawn, total = np.random.default_rng(7), 0.0
        for _ in range(n):
            total += drawn.normal()
        return total

    with pytest.raises(StagingError, match=r"(?s)normal\(\) of a generator.*fix: make the generator outside"):
        f(ag.constant(3))
