"""f-strings of tensors in print, raise and assert show the values that the tensors have when the program runs."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import autograph as ag
from autograph.convert.api import converted


def steps(n, x):
    for i in range(n):
        print(f"i={i} x={x:.2f}|{i:>3}|", f"plain {3!r:>4} {'{'}", i, sep=";")
        if x > 3.0:
            raise ValueError(f"too large: {x:.1f} at {i}")
        x = x * 2
    assert x < 1.0, f"x is {x:.3f}"
    return x


def steps_by_percent(n, x):
    for i in range(n):
        print("%d %5d|%-5d|%05d|%+d|%x|%i|100%% of %s" % (i, i, i, i, i, i, i, "it"), "%d" % x, "%4s|" % "a", "%d" % i)
        print("%.2f %8.3f|%e|%g" % (x, x, x, x), "%(a)d and %(b)s" % {"a": i, "b": "z"})
        if x > 3.0:
            raise ValueError("too large: %.1f at %d" % (x, i))
        x = x * 2
    assert x < 1.0, "x is %.3f" % x
    return x


@pytest.mark.parametrize("compiled", [None, True])
@pytest.mark.parametrize(("n", "x"), [(1, 0.125), (3, 0.25), (4, 1.0)])
@pytest.mark.parametrize("program", [steps, steps_by_percent])
def test_values_when_the_program_runs(program, n, x, compiled, capsys):
    outcomes = []
    for function in (program, ag.function(program, jit_compile=compiled)):
        is_plain = function is program
        try:
            result = float(function(n, x) if is_plain else function(ag.constant(n), ag.constant(x)))
        except (ValueError, AssertionError) as error:
            result = str(error).splitlines()[0]
        outcomes.append((result, capsys.readouterr().out))
    assert outcomes[0] == outcomes[1]


def test_percent_of_unfit_values_is_refused_as_in_python():
    def f(x):
        if x > 0:
            print("%d and %d" % (x,))  # noqa: F507
        return x

    with pytest.raises(TypeError, match="not enough arguments for format string"):
        ag.function(f)(ag.constant(1))


def test_elsewhere_a_text_shows_the_symbolic_tensor():
    seen = []

    @ag.function
    def f(x):
        seen.append(f"x is {x}")
        text = f"outside {x}"
        if x > 0:
            print(text)
        return x

    f(ag.constant(1))
    assert seen[0].startswith("x is Tensor(")


def test_python_texts_are_unchanged():
    class Odd:
        def __format__(self, spec):
            return f"odd {spec}"

        def __repr__(self):
            return "Odd()"

    def f(x):
        try:
            raise KeyError(f"{x:abc}{x!r}{x!s:>8}{1:04d}{[x]}\0{0}\0")
        except KeyError as error:
            return error.args, type(error.args[0])

    assert converted(f)(Odd()) == f(Odd())
    assert ag.function(lambda t: t + len(f(Odd())[0][0]))(ag.constant(0)).numpy() == len(f(Odd())[0][0])


def test_texts_that_format_makes(capsys):
    @ag.function
    def f(x):
        if x > 0:
            print("x is {:03d}, {name}".format(x, name=x + 1))
        assert x < 9, "{} is too much".format(x)
        return x

    f(ag.constant(2))
    assert capsys.readouterr().out == "x is 002, 3\n"
    with pytest.raises(AssertionError, match="12 is too much"):
        f(ag.constant(12))


def test_a_format_outside_of_messages_gives_a_string_of_the_program():
    @ag.function
    def f(x):
        text = f"{x:.2f}"
        return text, len(text)

    text, length = f(ag.constant(1.0))
    assert (text.numpy(), int(length)) == (b"1.00", 4)


def test_an_assertion_shows_the_tensors_of_its_message():
    @ag.function
    def f(x):
        assert x[0] > 5.0, x
        return x

    @ag.function
    def g(x):
        assert x[0] > 5.0, ("too small", x[0])
        return x

    for run, shown in [(f, r"\[1. 2.\]"), (g, r"too small.*1\.0")]:
        with pytest.raises(AssertionError, match=shown):
            run(ag.constant([1.0, 2.0]))
        run(ag.constant([6.0]))


def test_messages_name_a_tensor_by_its_variable_or_else_by_its_operation() -> None:
    @ag.function
    def named(x):
        largest = ag.reduce_max(x)
        return list(map(int, [largest]))

    @ag.function
    def unnamed(x):
        return list(map(int, [ag.reduce_max(x)]))

    @ag.function
    def argument(x):
        return list(map(float, (x for x in [x])))

    for function, shown in (
        (named, r"the float32 tensor 'largest' of shape \(\) is symbolic"),
        (unnamed, r"the float32 tensor of shape \(\) that 'reduce_max' computes is symbolic"),
        (argument, r"the float32 tensor 'x' of shape \(2,\) is symbolic"),
    ):
        with pytest.raises(ag.errors.OperatorNotAllowedInGraphError, match=shown):
            function(ag.constant([1.0, 2.0]))


@pytest.mark.parametrize(
    "show", [lambda x: "%d" % x, lambda x: "{:d}".format(x), lambda x: f"{x:.1f}", lambda x: "%f" % x]
)
def test_texts_outside_of_messages_show_the_values(show: Any) -> None:
    assert ag.function(show)(ag.constant(2)).numpy().decode() == show(2)


_TEMPLATE = "%d"


def test_texts_that_are_no_literals_say_why_and_what_to_do() -> None:
    with pytest.raises(ag.errors.OperatorNotAllowedInGraphError) as caught:
        ag.function(lambda x: _TEMPLATE % x)(ag.constant(2))
    text = str(caught.value)
    assert "test_texts.py:" in text and "only when the program runs" in text
    assert "as a literal text with `%`" in text


@pytest.mark.skipif(sys.version_info < (3, 11), reason="columns are known from 3.11 on")
@pytest.mark.parametrize(
    "show, kind", [(lambda n: {i: i for i in ag.range(n)}, "dictionary"), (lambda n: {i for i in ag.range(n)}, "set")]
)
def test_displays_over_tensors_of_unknown_length_say_why_and_what_to_do(show: Any, kind: str) -> None:
    with pytest.raises(ag.errors.OperatorNotAllowedInGraphError) as caught:
        ag.function(show)(ag.constant(2))
    assert f"cause: a {kind} comprehension isn't staged" in str(caught.value) and "fix: " in str(caught.value)


def _mode(x):
    mode = "a"
    if x > 0:
        mode = "b"
    return mode


@pytest.mark.parametrize("x", [-1.0, 1.0])
@pytest.mark.parametrize(
    "ask",
    [
        lambda mode: f"{mode}-{mode}" == "b-b",
        lambda mode: f"{mode}-{mode}" != "b-b",
        lambda mode: f"{mode}!" in ("a!", "c"),
        lambda mode: "k" + f"{mode}!" + "z" == "kb!z",
    ],
)
def test_texts_of_chosen_strings_are_compared_as_in_python(ask: Any, x: float) -> None:
    def f(x):
        return ask(_mode(x))

    assert bool(ag.function(f)(ag.constant(x))) == f(x)


@pytest.mark.parametrize("x", [-1.0, 1.0])
@pytest.mark.parametrize(
    "ask",
    [
        lambda x: {"a!": 1, "b!": 2}[f"{_mode(x)}!"],
        lambda x: f"{_mode(x)}!".startswith("a"),
        lambda x: len(f"{_mode(x)}!"),
        lambda x: f"{x}" == "1.0",
    ],
)
def test_other_questions_about_staged_texts_are_answered(ask: Any, x: float) -> None:
    assert ag.function(ask)(ag.constant(x)).numpy() == ask(x)
