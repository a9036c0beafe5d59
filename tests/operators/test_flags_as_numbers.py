"""Python bools that staged code chooses are numbers, as in Python; boolean tensors are not."""

import numpy as np
import pytest

import autograph as ag


def _chosen(x):
    flag = False
    if x > 2.0:
        flag = True
    return flag


def _from_a_loop(x):
    flag = False
    for _ in ag.range(3):
        if x > 2.0:
            flag = True
    return flag


def _negated(x):
    flag = True
    if x > 2.0:
        flag = False
    return not flag


def _compared(x):
    n = 0
    if x > 2.0:
        n = 5
    return n > 3


def _joined(x):
    one, other = _chosen(x), _from_a_loop(x)
    return (one and other) or (other and one)


def _of_bits(x):
    return (_chosen(x) | False) & _from_a_loop(x)


def _of_a_conditional_expression(x):
    return True if x > 2.0 else False


FLAGS = [_chosen, _from_a_loop, _negated, _compared, _joined, _of_bits, _of_a_conditional_expression]
USES = {
    "added": lambda f: 5 + f,
    "added to": lambda f: f + 5,
    "subtracted": lambda f: 1 - f,
    "multiplied": lambda f: 3 * f,
    "with a float": lambda f: f * 2.5,
    "divided": lambda f: f / 4,
    "floor": lambda f: (f + 7) // (f + 1),
    "remainder": lambda f: 5 % (f + 2),
    "power": lambda f: (f + 1) ** 2 + 2**f + f**2,
    "two": lambda f: f + f,
    "negative": lambda f: -f,
    "positive": lambda f: +f,
    "absolute": lambda f: abs(f) + 1,
    "shifted": lambda f: 1 << f,
    "bits": lambda f: (f & 1) + (f | 2),
    "less": lambda f: 1 if f < 1 else 2,
    "equal": lambda f: 1 if f == 1 else 2,
    "unequal": lambda f: 1 if f != 0 else 2,
    "tensor": lambda f: ag.constant([1.0, 2.0]) * f,
    "integer tensor": lambda f: f - ag.constant([1, 2]),
    "item": lambda f: [10, 20][f],
    "int": lambda f: int(f) + 1,
    "float": lambda f: float(f) + 1.5,
    "isinstance": lambda f: (1 if isinstance(f, bool) else 0) + (1 if isinstance(f, int) else 0),
    "sum": lambda f: sum([f, f, True]),
    "max": lambda f: max(f, 0) + 1,
    "range": lambda f: sum(i + 1 for i in range(f + 2)),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("flag", FLAGS, ids=lambda each: each.__name__)
def test_uses(flag, use):
    def program(x):
        return USES[use](flag(x))

    for x in (1.0, 3.0):
        right = np.asarray(program(x))
        for jit in (None, True):
            found = np.asarray(ag.function(program, jit_compile=jit)(ag.constant(x)))
            np.testing.assert_array_equal(found, right)
            assert found.dtype.kind == right.dtype.kind


def counted(t):
    n = 0
    for v in t:
        hit = False
        if v > 2.0:
            hit = True
        n += hit
    return n


def changes(t):
    was, n = False, 0
    for v in t:
        now = False
        if v > 2.0:
            now = True
        n += was != now
        n += 10 * was
        was = now
    return n


def becomes_a_tensor(t):
    flag, n = False, 0
    for v in t:
        n = n + 1
        flag = v > 2.0
    return ag.cast(flag, ag.int32) + n


@pytest.mark.parametrize("program", [counted, changes, becomes_a_tensor], ids=lambda each: each.__name__)
def test_in_loops(program):
    t = ag.constant([3.0, 0.0, 5.0, 6.0])
    for jit in (None, True):
        assert int(ag.function(program, jit_compile=jit)(t)) == int(program(t))


def test_a_boolean_tensor_is_no_number():
    def adds(x):
        return 1 + (x > 2.0)

    def asks(x):
        return 1 if isinstance(x > 2.0, bool) else 0

    def adds_what_becomes_a_tensor(t):
        flag, n = False, 0
        for v in t:
            n += flag
            flag = v > 2.0
        return n

    for program in (adds, ag.function(adds)):
        with pytest.raises(ag.errors.DTypeError):
            program(ag.constant(1.0))
    for program in (asks, ag.function(asks)):
        assert int(program(ag.constant(3.0))) == 0
    for program in (adds_what_becomes_a_tensor, ag.function(adds_what_becomes_a_tensor)):
        with pytest.raises((ag.errors.DTypeError, TypeError)):
            program(ag.constant([1.0, 3.0, 1.0]))
