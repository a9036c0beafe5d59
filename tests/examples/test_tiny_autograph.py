"""examples/tiny_autograph.py: values are plain Python's, gradients those of central differences, in the printed Python
and in native code; what it prints is in tests/golden/tiny_autograph; what it can't stage is refused at its line."""

import linecache
import math
from pathlib import Path

import numba
import pytest

from examples import tiny_autograph
from tests.convert import golden

CASES = golden.read(golden.FOLDER / "tiny_autograph" / "programs.test")
FACTOR = 3.0


def newton(a):
    x = a
    while True:
        step = (x * x - a) / (2.0 * x)
        x = x - step
        if step * step < 1e-18:
            break
    return x


def jumps(x, n):
    total = 0
    for i in range(n):
        if i == 2:
            continue
        y = x
        while y > 1.0 and not y > 100.0:
            y = y / 2.0
            total = total + y * x
            if total > 50.0:
                return total * math.sin(x)
        if total > 40.0 or i > 20:
            break
        total += x if i < 5 else x * x
    return total / (1.0 + x)


def nested(x, n):
    for i in range(n):
        for j in range(i, n):
            if j != i and x < 2.0:
                x = x * scaled(1.01 + j)
            elif x > 8.0:
                break
            else:
                x = x + math.exp(-x)
        if x <= 0.5:
            return 0.25
    return abs(-x) - math.sqrt(x)


def scaled(x):
    if x > 3.0:
        return x / FACTOR
    return x * 1.5


def exchanged(a, b):
    for _ in range(5):
        a, b = b, a * b
    return a - b


def no_trip(x, n):
    y = 2.0 * x
    while n > 0:
        n, y = n - 1, y * x
    return y


RUNS = [
    (newton, (2.0,)), (jumps, (3.3, 7)), (jumps, (0.5, 30)), (jumps, (9.0, 7)), (jumps, (3.3, 0)), (nested, (0.7, 4)),
    (nested, (0.1, 1)), (nested, (6.5, 5)), (exchanged, (1.1, 0.9)), (no_trip, (1.5, 0)), (no_trip, (1.5, 3)),
]  # fmt: skip


def differences(function, arguments):
    """The derivatives by the floats among the arguments."""
    for position, value in enumerate(arguments):
        if isinstance(value, float):
            around = [[*arguments[:position], value + h, *arguments[position + 1 :]] for h in (1e-6, -1e-6)]
            yield position, (function(*around[0]) - function(*around[1])) / 2e-6


@pytest.mark.parametrize("compiler", [lambda function: function, numba.njit], ids=["python", "native"])
@pytest.mark.parametrize("function", dict.fromkeys(function for function, _ in RUNS))
def test_values_are_pythons_and_gradients_those_of_differences(function, compiler):
    value_alone = tiny_autograph.compiled(function, compiler=compiler)
    with_tape = tiny_autograph.compiled(function, has_tape=True, compiler=compiler)
    for arguments in (arguments for each, arguments in RUNS if each is function):
        expected = function(*arguments)
        value, gradient = with_tape(*arguments)
        assert value == value_alone(*arguments) == pytest.approx(expected, rel=1e-15)
        for position, difference in differences(function, arguments):
            assert gradient[position] == pytest.approx(difference, rel=1e-5, abs=1e-8), (arguments, position)


def defined(source, name):
    """The function that a text defines. Its lines are found as those of a file."""
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    namespace = {}
    exec(compile(source, name, "exec"), namespace)
    return namespace["f"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_golden_texts(case, request):
    function = defined(case.source, f"<{case.name}>")
    texts = tiny_autograph.to_code(function), tiny_autograph.as_text(function), tiny_autograph.as_text(function, True)
    golden.compare(case, "\n".join(texts), request)
    for text in texts:
        compile(text, case.name, "exec")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def f(x):\n    with x:\n        return x\n", "<refused>:2: a With"),
        ("def f(x):\n    y = 0 < x < 1\n    return y\n", "<refused>:2: a Compare"),
        ("def f(x):\n    x.y = 2.0\n    return x\n", "<refused>:2: a Attribute"),
        ("def f(x):\n    for i in x:\n        x = i\n    return x\n", "<refused>:2: a For"),
        ("def f(x):\n    for i in range(9, 1, -1):\n        x = i\n    return x\n", "<refused>:2: a For"),
        (
            "def f(x):\n    while x > 1:\n        x -= 1\n    else:\n        x = 0\n    return x\n",
            "<refused>:2: a While",
        ),
        ("def f(x):\n    if x > 1:\n        return x\n", "f must return a number on every path"),
    ],
)
def test_refuses_what_it_cannot_stage(source, message):
    with pytest.raises(SyntaxError) as caught:
        tiny_autograph.to_code(defined(source, "<refused>"))
    assert message in str(caught.value)


def test_a_variable_that_one_branch_sets_has_no_value_afterwards():
    function = defined("def f(x):\n    if x > 1:\n        y = x\n    return y\n", "<unset>")
    with pytest.raises(NameError, match="y"):
        tiny_autograph.as_text(function)


def test_a_truth_value_that_nothing_stages_is_refused():
    function = defined("def f(x):\n    return max(x, 2.0)\n", "<truth>")
    with pytest.raises(TypeError, match="known only at run time"):
        tiny_autograph.as_text(function)


def test_has_at_most_400_lines():
    assert len(Path(tiny_autograph.__file__).read_text(encoding="utf-8").splitlines()) <= 400
