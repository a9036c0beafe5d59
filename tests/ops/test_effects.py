"""Printing, assertions and calls of Python functions."""

import sys

import numpy as np
import pytest

import autograph as ag
from runtime.ops.control import assert_op


def printed(capsys, *values, **options):
    ag.print(*values, output_stream=sys.stdout, **options)
    return capsys.readouterr().out


# What TensorFlow 2.21 prints.
@pytest.mark.parametrize(
    "values, text",
    [
        ((ag.constant(1.0), ag.constant(3.14159274), ag.constant([1.0, 2.5, 3.0])), "1 3.14159274 [1 2.5 3]"),
        ((0.1, 1, True, "s", None), "0.1 1 True s None"),
        ((ag.constant("abc"), ag.constant(["a", "b"])), '"abc" ["a" "b"]'),
        ((ag.constant([[1, 2], [3, 4]]), ag.range(10)), "[[1 2]\n [3 4]] [0 1 2 ... 7 8 9]"),
        (([ag.constant(1), 2], {"a": ag.constant([1.0])}, (1, "x")), "[1, 2] {'a': [1]} (1, 'x')"),
        ((ag.constant(1e-10), ag.constant(123456789.0), ag.constant(1e10), ag.constant(1e6)),
         "1e-10 123456792 1e+10 1e+06"),
        ((ag.constant(1 / 3, ag.float64), ag.constant(float("nan")), ag.constant(-np.inf)),
         "0.33333333333333331 nan -inf"),
        ((ag.constant([True, False]), ag.constant(1, ag.uint8), ag.constant(0.1, ag.float16)), "[1 0] 1 0.0999755859"),
        ((ag.ones((2, 2, 2)),), "[[[1 1]\n  [1 1]]\n\n [[1 1]\n  [1 1]]]"),
        ((ag.Variable([1.0, 2.0]), []), "[1 2] []"),
        (("x {} y", ag.constant(1)), "x {} y 1"),
        ((ag.constant([-0.0, 1e-3, 12345.678, 1e15]),), "[-0 0.001 12345.6777 1e+15]"),
    ],
)  # fmt: skip
def test_print(capsys, values, text):
    assert printed(capsys, *values) == text + "\n"


def test_print_options(capsys):
    assert printed(capsys, ag.range(10), "b", sep="|", end="!", summarize=2) == "[0 1 ... 8 9]|b!"
    assert printed(capsys, ag.range(10), summarize=-1) == "[0 1 2 3 4 5 6 7 8 9]\n"
    ag.print("to stderr")
    assert capsys.readouterr().err == "to stderr\n"


def test_assertions():
    assert_op(True)
    with pytest.raises(ag.errors.InvalidArgumentError, match=r"^too big: \[1 2\]$"):
        assert_op(ag.constant(False), "too big", data=[[1, 2]])
    with pytest.raises(AssertionError, match="^why$"):
        assert_op(False, "why", "AssertionError")
    with pytest.raises(ZeroDivisionError):
        assert_op([True, False], error="ZeroDivisionError")
    with pytest.raises(ag.errors.InvalidArgumentError, match=r"Summarized data: \[1 2\]"):
        ag.Assert(False, [ag.constant([1, 2])])


@pytest.mark.parametrize(
    "name, good, bad",
    [
        ("equal", (1, 1), (1, 2)), ("none_equal", (1, 2), ([1, 2], [1, 3])), ("less", (1, 2), (2, 2)),
        ("less_equal", (2, 2), (3, 2)), ("greater", (3, 2), (2, 2)), ("greater_equal", (2, 2), (1, 2)),
    ],
)  # fmt: skip
def test_comparing_assertions(name, good, bad):
    check = getattr(ag.debugging, f"assert_{name}")
    check(*good)
    with pytest.raises(ag.errors.InvalidArgumentError, match="mine\nCondition x .* y did not hold"):
        check(*bad, message="mine")


def test_python_functions():
    seen = []

    def double(x):
        seen.append(type(x))
        return x * 2

    x = ag.constant([1.0, 2.0])
    assert ag.numpy_function(double, [x], ag.float32).numpy().tolist() == [2, 4]
    assert ag.py_function(double, [x], ag.float64).dtype is ag.float64
    assert seen[0] is np.ndarray and issubclass(seen[1], ag.Tensor)
    low, high = ag.numpy_function(lambda v: (v.min(), v.max()), [x], [ag.float32, ag.float32])
    assert (float(low), float(high)) == (1, 2)
    assert ag.py_function(lambda: seen.clear(), [], None) is None and seen == []
    with pytest.raises(ag.errors.InvalidArgumentError, match="returned 1 values, expected 2"):
        ag.numpy_function(double, [x], [ag.float32, ag.float32])


def test_errors_of_python_functions_come_through():
    def fail(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        ag.py_function(fail, [1.0], ag.float32)


@pytest.mark.parametrize("call", [ag.numpy_function, ag.py_function])
@pytest.mark.parametrize(
    "text", ["a\0", b"a\0", np.array("a"), np.array(["a", "é"]), np.array([b"a", b"b"])]
)  # fmt: skip
def test_text_that_python_functions_return(call, text):
    wanted = [each.encode() if isinstance(each, str) else each for each in np.ravel(np.array(text, object))]
    given = ag.function(lambda: call(lambda: text, [], ag.string))().numpy()
    assert np.ravel(np.array(given, object)).tolist() == wanted


def test_only_python_functions_warn_of_floating_point_errors(recwarn):
    @ag.function(jit_compile=False)
    def f(x):
        ag.numpy_function(lambda v: v / 0.0 if warned else v, [x], ag.float32)
        return x * x

    big = ag.constant([1e30])
    warned = False
    assert np.isinf(f(big).numpy()).all()
    assert not recwarn.list
    warned = True
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        f(big)
