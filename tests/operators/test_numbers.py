"""Python numbers that staged code changes or chooses are what they are in eager code: values, dtypes and gradients.

`RANDOM_PROGRAMS=500 pytest tests/operators/test_numbers.py` tries that many random programs; without it a few, the same
each time.
"""

import contextlib
import io
import itertools
import linecache
import os
import random

import numpy as np
import pytest

import autograph as ag
import tests.operators.number_programs_in_calls  # noqa: F401  adds to the cases
from tests.operators.number_programs import CASES

_COUNT = int(os.environ.get("RANDOM_PROGRAMS", "12"))
_MODES = {"default": None, "compiled": True}


def tensors(arguments, dtype):
    """A call's arguments: the floats as tensors of a dtype, the ints of int32."""
    return [ag.constant(a, ag.int32 if isinstance(a, int) else dtype) for a in arguments]


def leaves(result):
    """The parts of a result as tensors, which is what a function gives."""
    if isinstance(result, dict):
        result = [result[key] for key in sorted(result)]
    if isinstance(result, (list, tuple)):
        return [leaf for part in result for leaf in leaves(part)]
    return [ag.convert_to_tensor(result)]


def evaluated(function, arguments):
    """The parts of the result, and what was printed."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        found = leaves(function(*arguments))
    return found, printed.getvalue()


def assert_same(found, wanted):
    assert [each.dtype for each in found] == [each.dtype for each in wanted]
    for one, other in zip(found, wanted):
        tolerance = 3e-7 if one.dtype is ag.float32 else 1e-13
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=tolerance, atol=0)


def gradients(function, arguments):
    """First and second derivatives of the sum of the floats that are computed from the arguments."""
    sources = [a for a in arguments if a.dtype.is_floating]
    with contextlib.redirect_stdout(io.StringIO()), ag.GradientTape() as outer:
        outer.watch(sources)
        with ag.GradientTape() as inner:
            inner.watch(sources)
            results = [each for each in leaves(function(*arguments)) if each.dtype.is_floating]
            if not results:
                return []
            total = ag.add_n([ag.cast(ag.reduce_sum(each), ag.float64) for each in results])
        first = inner.gradient(total, sources, unconnected_gradients="zero")
        again = ag.add_n([ag.cast(ag.reduce_sum(each), ag.float64) for each in first])
    return [*first, *outer.gradient(again, sources, unconnected_gradients="zero")]


def assert_like_eager(program, arguments, mode, with_gradients=True):
    staged = ag.function(program, jit_compile=_MODES[mode])
    wanted, text = evaluated(program, arguments)
    found, printed = evaluated(staged, arguments)
    assert_same(found, wanted)
    assert printed == text
    if with_gradients and any(each.dtype.is_floating for each in arguments):
        for one, other in zip(gradients(staged, arguments), gradients(program, arguments)):
            assert one.dtype is other.dtype
            np.testing.assert_allclose(one, other, rtol=1e-5 if one.dtype is ag.float32 else 1e-11, atol=1e-12)


def _cases():
    for program, arguments in CASES:
        floats = any(not isinstance(a, int) for a in arguments)
        for dtype in (ag.float64, ag.float32) if floats else (ag.int32,):
            name = "-".join("vector" if isinstance(a, np.ndarray) else str(a) for a in arguments)
            yield pytest.param(program, arguments, dtype, id=f"{program.__name__}-{name}-{dtype.name}")


@pytest.mark.parametrize("mode", _MODES)
@pytest.mark.parametrize(("program", "arguments", "dtype"), list(_cases()))
def test_like_eager(program, arguments, dtype, mode):
    # Where only floats that come from literals are returned, eager code has nothing to differentiate.
    has_gradient = program.__name__ not in ("types", "floatsum", "branchret")
    assert_like_eager(program, tensors(arguments, dtype), mode, has_gradient)


# --- random programs -----------------------------------------------------------------------------------------------


class Writer:
    """Writes a program over an int, a float, lists of such and a tensor, in loops and branches on tensors."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = []
        self.names = itertools.count()

    def integer(self):
        c = self.random.randint(1, 7)
        return self.random.choice(
            [
                f"k + {c}", f"k * {c}", f"k // {c}", f"k % {c}", f"abs(k - {c})", f"{c} - k", f"max(k, {c})", "k ** 2",
                f"k & {c}", f"(k << 1) ^ {c}", f"divmod(k, {c})[0]", "int(q)", "round(q)", f"len(L) + {c}", "L[k % 2]",
                f"min(L) - {c}", f"k or {c}", f"int(k > {c})",
            ]
        )  # fmt: skip

    def floating(self):
        c = self.random.choice([0.5, 1.5, 0.3, 2.0, -0.7])
        return self.random.choice(
            [
                f"q * {c}", f"q + {c}", "q + k", f"k / {abs(c)}", f"q % {abs(c)}", f"q // {abs(c)}", "float(k)",
                "math.sqrt(abs(q))", f"math.sin(q + {c})", f"max(q, {c})", f"{c} - q", "-q", "abs(q) ** 0.5",
                "M[-1] + q",
                f"sum(M) * {c}", "q / (1 + k * k)", f"q if q > {c} else {c}",
            ]
        )  # fmt: skip

    def test(self):
        c = self.random.randint(1, 5)
        return self.random.choice([f"x > {c}", f"k % 3 < {c % 3}", f"q < {c}", f"k > {c} and x < 4", f"not k == {c}"])

    def statement(self, depth, level):
        indent = "    " * depth
        kind = self.random.random()
        if kind < 0.35 or level == 3:
            self.lines.append(f"{indent}k = ({self.integer()}) % 19")
        elif kind < 0.6:
            self.lines.append(f"{indent}q = min(max({self.floating()}, -9.5), 9.5)")
        elif kind < 0.7:
            added = self.random.choice(["k * 0.25", "q * 0.25", "q", "L[0] * 0.1"])
            self.lines.append(f"{indent}x = {self.random.choice(['x * 0.5', 'x / (2 + k)'])} + {added}")
        elif kind < 0.76:
            self.lines.append(f"{indent}{self.random.choice(['L.append(k)', 'M.append(q)', 'L[0] = k', 'M[-1] = q'])}")
        elif kind < 0.88:
            self.lines.append(f"{indent}if {self.test()}:")
            self.block(depth + 1, level + 1)
            if self.random.random() < 0.6:
                self.lines.append(f"{indent}else:")
                self.block(depth + 1, level + 1)
        else:
            i = f"i{next(self.names)}"
            self.lines.append(f"{indent}for {i} in range({self.random.choice(['n', 'n', 'k % 4', '3'])}):")
            self.lines.append(f"{indent}    k = (k + {i}) % 23")
            self.block(depth + 1, level + 1)
            if self.random.random() < 0.3:
                self.lines.append(f"{indent}    if {self.test()}: break")

    def block(self, depth, level):
        for _ in range(self.random.randint(1, 3)):
            self.statement(depth, level)

    def text(self):
        self.lines = ["import math", "def program(x, n):", "    k, q = 1, 0.75", "    L, M = [2, 5], [0.5]"]
        self.lines += ["    for i in range(n):", "        k = k + i"]
        for _ in range(5):
            self.statement(2, 1)
        self.block(1, 0)
        self.lines.append("    return x, x * k, x * q, k, q, k + q, len(L), L[-1], x * M[-1]")
        return "\n".join(self.lines) + "\n"


def loaded(text, name):
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    namespace = {"__name__": "random_program"}
    exec(compile(text, name, "exec"), namespace)
    return namespace["program"]


@pytest.mark.parametrize("seed", range(_COUNT))
def test_random_programs(seed):
    text = Writer(seed).text()
    program = loaded(text, f"<random numbers {seed}>")
    for dtype in (ag.float64, ag.float32):
        for mode in _MODES:
            arguments = [ag.constant(2.7, dtype), ag.constant(3)]
            wanted, _ = evaluated(program, arguments)
            found, _ = evaluated(ag.function(program, jit_compile=_MODES[mode]), arguments)
            assert [each.dtype for each in found] == [each.dtype for each in wanted], text
            for one, other in zip(found, wanted):
                tolerance = 1e-5 if one.dtype is ag.float32 else 1e-11
                np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance, err_msg=text)


# --- one by one ----------------------------------------------------------------------------------------------------


def test_a_number_of_a_branch_is_a_float_if_one_of_them_is():
    @ag.function
    def f(x):
        k = 1 if x > 0.5 else 2.5
        return k, x * k

    for x in (0.9, 0.1):
        number, product = f(ag.constant(x, ag.float64))
        assert (number.dtype, product.dtype) == (ag.float32, ag.float64)
        assert float(number) == (1 if x > 0.5 else 2.5)


def test_numbers_of_64_bit_tensors_keep_their_bits_as_results():
    @ag.function
    def f(x, n):
        return float(x), float(x) * 2, int(n), int(n) + 1, len(ag.zeros([n]))

    found = f(ag.constant(0.1, ag.float64), ag.constant(2, ag.int64))
    assert [each.dtype for each in found] == [ag.float64, ag.float64, ag.int64, ag.int64, ag.int32]
    assert float(found[0]) == 0.1


def test_a_number_without_value_is_looked_up_among_the_keys():
    @ag.function
    def f(n):
        k = 0
        while k < n:
            k += 1
        return {1: 2}[k]

    assert int(f(ag.constant(1))) == 2
    with pytest.raises(KeyError) as caught:
        f(ag.constant(3))
    message = str(caught.value)
    assert "test_numbers.py" in message and "return {1: 2}[k]" in message


def test_a_number_without_value_is_no_element_of_a_set():
    @ag.function
    def f(n):
        k = 0
        while k < n:
            k += 1
        return len({k, 1})

    with pytest.raises(TypeError) as caught:
        f(ag.constant(3))
    message = str(caught.value)
    assert "test_numbers.py" in message and "cause: a dictionary or set finds a key by its value" in message


@pytest.mark.parametrize("mode", _MODES)
def test_an_int_that_its_dtype_cannot_hold_is_an_error(mode):
    def doubled(n):
        k = 1
        for _ in range(n):
            k *= 2
        return k

    f = ag.function(doubled, jit_compile=_MODES[mode])
    assert int(f(ag.constant(30))) == 2**30
    with pytest.raises(ag.errors.InvalidArgumentError, match="too large for int32"):
        f(ag.constant(31))

    @ag.function(jit_compile=_MODES[mode])
    def added(x, n):
        return x + doubled(n)

    assert int(added(ag.constant(1), ag.constant(30))) == 2**30 + 1
    with pytest.raises(ag.errors.InvalidArgumentError, match="too large for int32"):
        added(ag.constant(1), ag.constant(31))
    assert int(added(ag.constant(1, ag.int64), ag.constant(40))) == 2**40 + 1


def test_a_float_does_not_become_an_integer():
    @ag.function
    def f(x, n):
        q = 0.5
        for _ in range(n):
            q *= 2
        return x + q

    assert float(f(ag.constant(1.0), ag.constant(2))) == 3
    with pytest.raises(TypeError):
        f(ag.constant(1), ag.constant(2))


def test_an_inner_function_gets_the_number_of_each_call():
    inner = ag.function(lambda x, k: x * k)

    @ag.function
    def f(x, n):
        k = 0
        total = 0.0
        for _ in range(n):
            k += 1
            total = total + inner(x, k) + inner(x, k + 0.5)
        return total

    assert float(f(ag.constant(2.0, ag.float64), ag.constant(3))) == 2 * (1 + 1.5 + 2 + 2.5 + 3 + 3.5)


def test_counters_cost_no_checks():
    """A 64-bit counter whose limit is an int32 tensor is known to stay within it."""

    @ag.function(jit_compile=True)
    def f(v, n):
        i = 0
        total = 0
        while i < n:
            total = total + v[i] * i
            i += 1
        return total

    concrete = f.get_concrete_function(ag.TensorSpec([None], ag.int32), ag.TensorSpec([], ag.int32))
    operations = [node.op.name for node in concrete.graph.walk()]
    assert operations.count("while") == 1
    assert operations.count("narrow") == 1  # of i beside v[i]
