"""Python's integers in staged code: what Python computes, or OverflowError where that takes more than 64 bits.

A product of operations, the blocks they stand in, ways to run, and numbers at the edge of 64 bits. Operations of which
only the low bits are read never fail.
"""

import math
import os
import re
import signal
import threading

import numpy as np
import pytest

import autograph as ag

LEAST, GREATEST = -(2**63), 2**63 - 1
PAIRS = [
    (GREATEST, 1), (GREATEST - 1, 1), (LEAST, -1), (LEAST, 1), (LEAST + 1, -1), (GREATEST, GREATEST), (LEAST, LEAST),
    (3037000499, 3037000499), (3037000500, 3037000500), (-3037000500, 3037000500), (2**32, 2**31), (2**32, -(2**31)),
    (10**17, 92), (10**17, 93), (5, 3), (-5, 3),
]  # fmt: skip
SMALL = [
    (2, 62), (2, 63), (-2, 63), (-2, 64), (3, 39), (3, 40), (-3, 40), (1, 100), (-1, 101), (0, 70), (7, 0), (-1, 63),
    (1, 62), (1, 63), (LEAST, 0), (LEAST, 63), (GREATEST, 1), (5, 3),
]  # fmt: skip
SQUARES = [
    (0, each) for root in (0, 1, 94906267, 3000000001, 3037000499) for each in (root**2 - 1, root**2)
] + [(0, GREATEST)]  # fmt: skip

OPERATIONS = {
    "sum": (lambda a, b: a + b, PAIRS),
    "sum with a constant": (lambda a, b: a + 1, PAIRS),
    "difference": (lambda a, b: a - b, PAIRS),
    "difference from a constant": (lambda a, b: -5 - b, PAIRS),
    "product": (lambda a, b: a * b, PAIRS),
    "product with a constant": (lambda a, b: a * -3, PAIRS),
    "negative": (lambda a, b: -a, PAIRS),
    "abs": (lambda a, b: abs(a), PAIRS),
    "square": (lambda a, b: b**2, PAIRS),
    "power": (lambda a, b: a**b, SMALL),
    "left shift": (lambda a, b: a << b, SMALL),
    "left shift by a constant": (lambda a, b: a << 61, SMALL),
    "right shift": (lambda a, b: a >> b, SMALL),
    "quotient": (lambda a, b: a // b, PAIRS),
    "quotient and remainder": (lambda a, b: divmod(a, b)[0], PAIRS),
    "one, shifted": (lambda a, b: 1 << b, SMALL),
    "int": (lambda a, b: int(a * 1.5) + b * 0, PAIRS),
    "floor": (lambda a, b: math.floor(a * 0.75) + b * 0, PAIRS),
    "list": (lambda a, b: sum([a, b]), PAIRS),
    "product of a list": (lambda a, b: math.prod([a, b]), PAIRS),
    "product from a start": (lambda a, b: math.prod((a,), start=b), PAIRS),
    "sorted": (lambda a, b: sorted([a, b, 7])[2], PAIRS),
    "root": (lambda a, b: math.isqrt(b), SQUARES),
    # Only the low bits are read.
    "masked": (lambda a, b: (a * b + 12345) & 0x7FFFFFFF, PAIRS),
    "modulo a power of two": (lambda a, b: (a * b - 99) % 2**32, PAIRS),
    "hash": (lambda a, b: ((a << 5) + a ^ b * 31) & 0xFFFFFFFF, PAIRS),
    "negative modulo": (lambda a, b: -a % 1024, PAIRS),
    "square modulo": (lambda a, b: (a + b) ** 2 % 2**16, PAIRS),
}


def straight(operation, x, a, b):
    return operation(a, b)


def loop(operation, x, a, b):
    r = a
    for _ in ag.range(3):
        r = operation(a, b)
    return r


def branch(operation, x, a, b):
    if x > 0.0:
        r = operation(a, b)
    else:
        r = b
    return r


def nested(operation, x, a, b):
    r = a
    for _ in ag.range(2):
        k = 0
        while x > 0.0 and k < 2:
            if k > 0:
                r = operation(a, b)
            k += 1
    return r


def helper(operation, x, a, b):
    def apply(p, q):
        if x < 0.0:
            return p
        return operation(p, q)

    return apply(a, b)


def recursive(operation, x, a, b):
    def descend(n, p, q):
        if n > 0:
            return descend(n - 1, p, q)
        return operation(p, q)

    return descend(ag.cast(x, ag.int32), a, b)


BLOCKS = [straight, loop, branch, nested, helper, recursive]


def expected_of(operation, a, b):
    try:
        found = operation(a, b)
    except (OverflowError, ValueError) as error:
        return type(error)
    return found if LEAST <= found <= GREATEST else OverflowError


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_as_in_python(name, block):
    operation, pairs = OPERATIONS[name]

    def run(x, a, b):
        return ag.cast(block(operation, x, int(a), int(b)), ag.int64)

    def slope(x, a, b):
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = x * ag.cast(block(operation, x, int(a), int(b)), ag.float64)
        return tape.gradient(y, x)

    ways = {
        "interpreted": ag.function(run, jit_compile=False),
        "compiled": ag.function(run, jit_compile=True),
        "gradient": ag.function(slope, jit_compile=True),
    }
    for a, b in pairs:
        expected = expected_of(operation, a, b)
        for way, function in ways.items():
            arguments = ag.constant(1.0, ag.float64), ag.constant(a, ag.int64), ag.constant(b, ag.int64)
            if isinstance(expected, type):
                with pytest.raises(expected) as caught:
                    function(*arguments)
                assert "test_python_integers.py:" in str(caught.value), "the message names the line"
            else:
                result = function(*arguments).numpy()
                assert result == (float(expected) if way == "gradient" else expected), (way, a, b)


def test_a_sum_that_grows():
    @ag.function
    def factorial(n):
        r = 1
        for k in ag.range(1, n + 1):
            r = r * int(k)
        return ag.cast(r, ag.int64)

    assert factorial(ag.constant(20)).numpy() == math.factorial(20)
    for _ in range(4):  # interpreted, then compiled
        with pytest.raises(OverflowError, match=r"use a float.*\n.*test_python_integers\.py:\d+, in factorial"):
            factorial(ag.constant(21))


def test_tensors_wrap_as_in_tensorflow():
    @ag.function
    def f(x):
        return x + 1, x * 2, -x

    found = f(ag.constant(GREATEST, ag.int64))
    assert [each.numpy() for each in found] == [LEAST, -2, -GREATEST]


STARTS = [0, 1, -1, 2, LEAST, GREATEST]
TERMS = [
    [GREATEST, -GREATEST, 7], [GREATEST, 1], [LEAST, -1], [LEAST, -1, 1], [GREATEST, 1, -1], [2**62, 2**62 - 1], [],
    [LEAST, LEAST, GREATEST, GREATEST, 2],
]  # fmt: skip
FACTORS = [
    [], [GREATEST, -1], [LEAST], [LEAST, -1], [2**62, 2, -1], [2**62, 2], [2**40, 2**40, 0], [2**32, 2**32, 2**32],
    [-(2**31), 2**32, 1, 1], [7, 7, 73, 127, 337, 92737, 649657], [-1] * 99,
    [322, 28644012536816074],  # 2**63 + 20, which is less than 2**63 in floats
]  # fmt: skip


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("whole, rows", [(sum, TERMS), (math.prod, FACTORS)])
def test_staged_lists(whole, rows, jit_compile):
    """Whatever the partial sums and products are."""

    @ag.function(
        jit_compile=jit_compile, input_signature=[ag.TensorSpec([None], ag.int64), ag.TensorSpec([], ag.int64)]
    )
    def f(rows, start):
        numbers = []
        for row in rows:
            numbers.append(int(row))
        return ag.cast(whole(numbers, start=int(start)), ag.int64)

    for each in rows:
        for start in STARTS:
            arguments = ag.constant(each, ag.int64, shape=[len(each)]), ag.constant(start, ag.int64)
            if LEAST <= whole(each, start=start) <= GREATEST:
                assert f(*arguments).numpy() == whole(each, start=start), (each, start)
            else:
                with pytest.raises(OverflowError, match=r"too large.*\n.*test_python_integers\.py:\d+, in f"):
                    f(*arguments)


@pytest.mark.parametrize("whole", [lambda a, b, c: sum([a, b, c]), lambda a, b, c: a + b + c])
def test_sums_that_come_back(whole):
    """A sum of a Python list is that of its items one by one."""

    @ag.function
    def f(a, b, c):
        return ag.cast(whole(int(a), int(b), int(c)), ag.int64)

    numbers = [ag.constant(each, ag.int64) for each in (LEAST, -1, 1)]
    with pytest.raises(OverflowError, match=r"too large.*\n.*test_python_integers\.py:\d+"):
        f(*numbers)
    assert f(numbers[0], numbers[2], numbers[1]).numpy() == LEAST


def counted(n):
    """A Python int of the program, which a tensor of its own has as int32."""
    k = 0
    while k < n:
        k += 1
    return k


@pytest.mark.parametrize(
    "whole",
    [
        lambda k: math.prod([k, k, 3]) // 7,
        lambda k: math.prod((k, 0.1)),
        lambda k: math.fsum([k * k * k, 1]),
        lambda k: math.fsum([k + 0.1, 0.2]),
        lambda k: math.dist([k * 100003, 0.0], [0.1, 0.0]),
        lambda k: sorted([k * k, 5, k])[2] - sorted((k, 5))[0],
        lambda k: sorted([k, 5, 2 * k], reverse=True)[1] * k // 7,
        lambda k: sorted([k + 2e-9, k + 1e-9, k])[1] - k,
        lambda k: math.prod([k > 5, True, 3]) * 10**10,
        lambda k: sum([k > 5, k > 7, True]) * 10**10,
    ],
)
def test_lists_of_numbers_keep_64_bits(whole):
    for jit_compile in (False, True):
        found = ag.function(lambda n: whole(counted(n)) + ag.zeros([], ag.float64), jit_compile=jit_compile)
        assert found(ag.constant(100000)).numpy() == pytest.approx(whole(100000), rel=1e-15)


@pytest.mark.parametrize("value, error", [(math.nan, ValueError), (math.inf, OverflowError), (1e19, OverflowError)])
@pytest.mark.parametrize("convert", [int, math.floor, math.ceil, math.trunc, round])
def test_floats_that_no_int_is(convert, value, error):
    @ag.function
    def f(x):
        return convert(float(x)) % 1000

    assert f(ag.constant(123.0, ag.float64)).numpy() == 123
    with pytest.raises(error):
        f(ag.constant(value, ag.float64))


def checks_in(function, *arguments):
    """The checks of integers in a kernel."""
    text = ag.function(function).get_concrete_function(*arguments).as_text("kernel")
    return re.findall(r"_exceeds\(|[<>] -?\d{16,}", text)


def test_no_checks_where_ranges_show_that_numbers_fit():
    def counters(n):
        total, even = 0, 0
        for i in range(int(n)):
            total += i
            if i % 2 == 0:
                even += 1
        return ag.cast(total + even, ag.int64)

    def trial_division(n):
        d = 2
        while d * d <= int(n) and int(n) % d != 0:
            d += 1
        return d

    def generator(n):
        x = 12345
        for _ in ag.range(n):
            x = (x * 1103515245 + 12345) & 0x7FFFFFFF
        return x

    n = ag.TensorSpec([], ag.int32)
    assert not checks_in(counters, n) and not checks_in(trial_division, n) and not checks_in(generator, n)

    def doubled(n):
        x = 1
        for _ in ag.range(n):
            x = x * 2
        return x % 7

    assert checks_in(doubled, n)


def test_low_bits_through_loops():
    @ag.function
    def f(n):
        x = 3
        for _ in ag.range(n):
            x = x * 5 + 1
        return x % 256

    x = 3
    for _ in range(200):
        x = x * 5 + 1
    assert f(ag.constant(200)).numpy() == x % 256


# --- loops that nobody reads ------------------------------------------------------------------------------------------


def loops_of(function, *specs):
    return [
        node for node in ag.function(function).get_concrete_function(*specs).graph.walk() if node.op.name == "while"
    ]


def test_loops_that_end_are_left_out():
    def counted(x, n):
        i = 0
        while i < n:
            i += 2
        for _ in ag.range(n):
            if x > 1.0:
                break
            i += 1
        m = ag.constant(8)
        while m != 0:
            m -= 2
        return x

    assert not loops_of(counted, ag.TensorSpec([], ag.float32), ag.TensorSpec([], ag.int32))


def test_loops_that_may_not_end_stay():
    def misses_zero(x):
        n = ag.constant(7)
        while n != 0:
            n -= 2
        return x

    def moves_away(x):
        n = ag.constant(1)
        while n > 0:
            n += 1
        return x

    def data_decides(x):
        y = x
        while y > 0.0:
            y = y * 0.5 + 1.0
        return x

    for function in (misses_zero, moves_away, data_decides):
        assert len(loops_of(function, ag.TensorSpec([], ag.float32))) == 1, function


def test_an_endless_loop_can_be_interrupted():
    @ag.function
    def f(x):
        n = ag.constant(7)
        while n != 0:
            n -= 2
        return x

    timer = threading.Timer(0.5, os.kill, [os.getpid(), signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        f(ag.constant(np.float32(1)))
    timer.join()
