"""An error that a staged ``raise`` raises is the one that Python would raise, with the user's line in a note."""

from __future__ import annotations

import signal
import sys

import pytest

import autograph as ag


class Refused(Exception):
    """Takes other arguments than it hands on."""

    def __init__(self, value, reason, *, code=0):
        super().__init__(f"refused: {reason}")
        self.value = value
        self.reason = reason
        self.code = code


def own_class(x):
    if x > 0.0:
        raise Refused([x * 2.0], "too large", code=3)
    return x


def own_class_in_a_loop(x):
    for i in ag.range(5):
        if x > 3.0:
            raise Refused([x], "grown", code=i)
        x += 1.0
    return x


def attributes_of_an_instance(x):
    if x > 0.0:
        error = ValueError("no")
        error.value, error.reason, error.code = [x], "later", 7
        raise error
    return x


def a_missing_file(x):
    if x > 0.0:
        raise OSError(2, "missing", "a.txt")
    return x


def a_key(x):
    if x > 0.0:
        raise KeyError("a", x)
    return x


def with_a_cause(x):
    if x > 0.0:
        raise ValueError("no") from Refused(x * 2.0, "too large", code=3)
    return x


def with_causes_of_causes(x):
    for i in ag.range(5):
        if x > 3.0:
            try:
                try:
                    raise OSError(2, "missing", "a.txt")
                except OSError as error:
                    raise KeyError(i) from error
            except KeyError as error:
                raise Refused(x, "grown") from error
        x += 1.0
    return x


def with_a_class_as_cause(x):
    if x > 0.0:
        raise KeyError(x) from ZeroDivisionError
    return x


def without_a_cause(x):
    if x > 0.0:
        raise ValueError("no") from None
    return x


def with_a_cause_that_was_caught(x):
    try:
        if x > 0.0:
            raise KeyError(x * 3.0)
    except KeyError as error:
        raise ValueError("no") from error
    return x


def caught_by_no_clause_with_a_cause(x):
    try:
        if x > 0.0:
            y = x * 3.0
            raise RuntimeError(y, f"{y:.1f} is too large") from KeyError(y + 1.0)
    except OSError:
        return x
    return x


def the_end(x):
    if x > 0.0:
        raise SystemExit(3)
    return x


def the_end_in_a_loop(x):
    for i in ag.range(5):
        x += 1.0
        if x > 2.0:
            raise SystemExit(i)
    return x


def the_end_by_a_call(x):
    if x > 0.0:
        sys.exit("done")
    return x


def an_interruption(x):
    if x > 0.0:
        raise KeyboardInterrupt
    return x


def the_end_of_a_generator(x):
    if x > 0.0:
        raise GeneratorExit("closed") from KeyError("k")
    return x


def the_end_that_no_clause_catches(x):
    try:
        if x > 0.0:
            raise SystemExit(3)
    except Exception:
        return x * 2.0
    return x


def told(error):
    """What an error and its causes hold, as Python values."""
    cause = None if error.__cause__ is None else told(error.__cause__)
    return *told_alone(error), error.__suppress_context__, cause


def told_alone(error):
    held = {name: value for name, value in vars(error).items() if name != "__notes__"}
    if isinstance(error, OSError):
        held["filename"] = error.filename
    return type(error), str(error), ag.nest.map_structure(float_of, [list(error.args), held])


def float_of(leaf):
    return float(leaf) if ag.is_tensor(leaf) else leaf


@pytest.mark.parametrize("jit", [None, False, True])
@pytest.mark.parametrize(
    "program",
    [
        own_class, own_class_in_a_loop, attributes_of_an_instance, a_missing_file, a_key, with_a_cause,
        with_causes_of_causes, with_a_class_as_cause, with_a_cause_that_was_caught, caught_by_no_clause_with_a_cause,
        the_end, the_end_in_a_loop, the_end_by_a_call, an_interruption, the_end_of_a_generator,
        the_end_that_no_clause_catches,
    ],
)  # fmt: skip
def test_like_python(program, jit):
    function = ag.function(program, jit_compile=jit)
    assert float(function(ag.constant(-9.0))) == float(program(ag.constant(-9.0)))
    with pytest.raises(BaseException) as wanted:
        program(ag.constant(1.0))
    with pytest.raises(BaseException) as found:
        function(ag.constant(1.0))
    assert told(found.value) == told(wanted.value)
    if sys.version_info >= (3, 11):
        (note,) = found.value.__notes__
        assert "test_raised.py" in note and f"in {program.__name__}" in note
        assert "raise " in note or "sys.exit(" in note


@pytest.mark.parametrize("jit", [None, False, True])
def test_no_cause(jit):
    function = ag.function(without_a_cause, jit_compile=jit)
    with pytest.raises(ValueError) as found:
        function(ag.constant(1.0))
    assert found.value.__suppress_context__ and found.value.__cause__ is None


def an_interruption_caught(x):
    for i in ag.range(5):
        x += 1.0
        try:
            if x > 4.0:
                raise KeyboardInterrupt
        except KeyboardInterrupt:
            x -= 100.0
    return x


def the_end_caught_by_any_clause(x):
    try:
        if x > 0.0:
            raise SystemExit(3)
    except:  # noqa: E722
        return x * 2.0
    return x


def a_code_of_the_end(x):
    try:
        if x > 0.0:
            raise SystemExit(3)
    except BaseException as error:
        return x * error.code
    return x


def a_cause_of_an_error_that_is_caught(x):
    try:
        if x > 0.0:
            y = x * 3.0
            raise Refused(y, "no", code=[y * 2.0]) from KeyError(y * 5.0)
    except Refused as error:
        return error.value + error.code[0] + error.__cause__.args[0]
    return x


@pytest.mark.parametrize(
    "program",
    [
        an_interruption_caught, the_end_caught_by_any_clause, a_code_of_the_end, a_cause_of_an_error_that_is_caught,
    ],
)  # fmt: skip
@pytest.mark.parametrize("value", [2.0, -2.0, -0.5])
def test_caught_like_python(program, value):
    assert float(ag.function(program)(ag.constant(value))) == float(program(ag.constant(value)))


def test_an_interruption_while_tracing_ends_the_trace():
    def interrupted(x):
        if x > 0.0:
            signal.raise_signal(signal.SIGINT)
        return x

    with pytest.raises(KeyboardInterrupt):
        ag.function(interrupted)(ag.constant(-1.0))


def test_caught_again():
    @ag.function
    def clipped(x):
        try:
            if x > 5.0:
                raise Refused(x, "too large", code=4)
        except Refused as error:
            return error.value * 10.0, error.code
        return x, 0

    assert [float(each) for each in clipped(ag.constant(6.0))] == [60.0, 4.0]
    assert [float(each) for each in clipped(ag.constant(1.0))] == [1.0, 0.0]
