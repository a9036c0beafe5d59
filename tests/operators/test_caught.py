"""``raise`` under a condition on a tensor, with a ``try`` around it: as in Python, or refused."""

from __future__ import annotations

import contextlib
import sys

import pytest

import autograph as ag
from autograph.convert.api import converted
from autograph.errors import StagingError


def a_value_instead(x):
    try:
        if x > 0:
            raise ValueError("neg")
        y = x * 2
    except ValueError as e:
        y = x * 0
    return y


def in_a_loop_with_finally(x):
    out = 0
    for i in ag.range(ag.maximum(x, 0)):
        try:
            if i == 2:
                raise ValueError("two")
            out += 1
        except ValueError:
            out += 100
        finally:
            out += 1000
    return out


def finally_only(x):
    try:
        if x > 0:
            raise ValueError("neg")
        return x
    finally:
        ag.print("left", output_stream=sys.stdout)


def caught_by_no_clause(x):
    try:
        if x > 0:
            raise ValueError("neg")
        return x
    except KeyError:
        return x * 3
    finally:
        ag.print("left", output_stream=sys.stdout)


def tensors_of_the_error(x):
    try:
        if x > 0:
            raise ValueError("neg", x)
        return x
    except (KeyError, ValueError) as e:
        return e.args[1] * 3


def out_of_a_loop(x):
    s = 0
    try:
        for i in ag.range(10):
            if i > x:
                raise StopIteration
            s += i
    except StopIteration:
        s += 1000
    else:
        s += 500
    return s


def out_of_an_except_clause(x):
    try:
        try:
            if x > 0:
                raise ValueError("neg")
            y = 1
        except ValueError:
            if x > 2:
                raise KeyError("k")
            y = 2
    except KeyError:
        y = 3
    return y


def raised_again(x):
    try:
        if x > 0:
            raise ValueError("neg")
        y = 1
    except ValueError:
        raise
    return y


def two_errors(x):
    try:
        if x > 2:
            raise ValueError("a")
        elif x > 0:
            raise KeyError("b")
        y = 1
    except ValueError:
        y = 2
    except KeyError:
        y = 3
    return y


def beside_break_and_continue(x):
    for i in range(4):
        try:
            if x == i:
                raise ValueError
            if x == i + 1:
                continue
            x = x + 10
        except ValueError:
            break
    else:
        x = x * 100
    return x


def straight_in_a_loop(x):
    s = x * 0
    try:
        for i in ag.range(4):
            s += i
            if s < x:
                continue
            raise ValueError(i)
        else:
            s += 100
    except ValueError as e:
        s = s * 10 + e.args[0]
    return s


def straight_in_nested_loops(x):
    s = x * 0
    for i in ag.range(x + 1):
        try:
            for j in ag.range(i + 1):
                s = s + j
                while s < 100:
                    s = s + 7
                    if s > 50:
                        raise ValueError
                raise KeyError
        except ValueError:
            s = s + 1
        except KeyError:
            s = s + 20
    return s


def a_failed_assertion(x):
    y = 0
    try:
        assert x < 2, "too large"
        for i in ag.range(3):
            assert x + i < 3
            y += i
    except AssertionError:
        y = y - 100
    finally:
        x = x + 1
    return y + x


def an_assertion_that_no_clause_catches(x):
    try:
        assert x < 2, "too large"
    except ValueError:
        x = 0
    return x


def leaves_an_endless_loop(x):
    s = x * 0
    while True:
        try:
            if s > x:
                raise StopIteration
            s += 1
        except StopIteration:
            break
    return s


def an_error_that_python_raises(x):
    d = {}
    try:
        if x > 0:
            y = d["missing"]
        else:
            y = 1
    except KeyError:
        y = 2
    return y


def of_a_function_that_is_called(x):
    def g(v):
        if v > 0:
            raise ValueError("g")
        return v

    try:
        y = g(x)
    except ValueError:
        y = 100
    return y


def an_error_that_a_general_clause_swallows(x):
    d = {}
    try:
        if x > 0:
            y = d["missing"]
        else:
            y = 1
    except Exception:
        y = 2
    return y


def of_a_called_function_swallowed(x):
    def g(v):
        if v > 0:
            raise ValueError("g")
        return v

    try:
        y = g(x)
    except Exception:
        y = 100
    return y


def nested_conditions(x):
    try:
        if x > 2:
            raise ValueError("a", x)
        if x > 0:
            if x < 2:
                raise KeyError("b")
            x = x + 5
        y = 1
    except ValueError as e:
        y = e.args[1] * 2
    finally:
        x = x + 100
    return y + x


def out_of_a_with(x):
    for i in range(3):
        try:
            with contextlib.suppress(KeyError):
                if x > 2:
                    raise ValueError(x)
        except ValueError as e:
            x = x - 1
        else:
            return x
    return x * 1000


class Swallowing:
    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        return kind is ValueError


class Reporting(Swallowing):
    def __exit__(self, kind, error, traceback):
        return None


@contextlib.contextmanager
def catching():
    try:
        yield
    except ValueError:
        pass


@contextlib.contextmanager
def cleaning():
    try:
        yield
    finally:
        pass


def under_suppress(x):
    with contextlib.suppress(ValueError):
        if x > 0:
            raise ValueError("x")
        x = x * 2
    return x


def under_a_class_that_swallows(x):
    with Swallowing():
        if x > 0:
            raise ValueError("x")
        x = x * 2
    return x


def under_a_generator_that_swallows(x):
    try:
        with catching():
            if x > 0:
                raise ValueError("x")
            x = x * 2
    except ValueError:
        x = x * 3
    return x


def caught_inside_of_suppress(x):
    with contextlib.suppress(ValueError):
        try:
            if x > 0:
                raise ValueError("x")
            x = x * 2
        except ValueError:
            x = x * 3
    return x


def under_managers_that_let_pass(x):
    try:
        with Reporting(), cleaning(), contextlib.suppress(KeyError):
            if x > 0:
                raise ValueError("x")
            x = x * 2
    except ValueError:
        x = x * 3
    return x


def outcome(function, x, capsys):
    try:
        result = int(function(x))
    except (ValueError, KeyError, AssertionError) as error:
        kind = AssertionError if isinstance(error, AssertionError) else type(error)
        result = kind.__name__, str(error.args[0]).partition("\n")[0]
    return result, capsys.readouterr().out


@pytest.mark.parametrize(
    "program",
    [
        a_value_instead,
        in_a_loop_with_finally,
        finally_only,
        caught_by_no_clause,
        tensors_of_the_error,
        out_of_a_loop,
        straight_in_a_loop,
        straight_in_nested_loops,
        a_failed_assertion,
        an_assertion_that_no_clause_catches,
        out_of_an_except_clause,
        raised_again,
        two_errors,
        beside_break_and_continue,
        leaves_an_endless_loop,
        nested_conditions,
        out_of_a_with,
        caught_inside_of_suppress,
        under_suppress,
        under_managers_that_let_pass,
    ],
)
@pytest.mark.parametrize("x", [-1, 1, 3, 30])
def test_as_in_python(program, x, capsys):
    x = ag.constant(x)
    expected = outcome(program, x, capsys)
    assert outcome(converted(program), x, capsys) == expected
    assert outcome(ag.function(program, jit_compile=False), x, capsys) == expected


@pytest.mark.parametrize(
    "program",
    [
        an_error_that_python_raises,
        of_a_function_that_is_called,
        an_error_that_a_general_clause_swallows,
        of_a_called_function_swallowed,
    ],
)
def test_an_error_from_elsewhere_is_refused(program):
    with pytest.raises(StagingError, match="a `try` around the condition would catch it"):
        ag.function(program)(ag.constant(-1))


@pytest.mark.parametrize("program", [under_a_class_that_swallows, under_a_generator_that_swallows])
def test_what_a_context_manager_would_swallow_is_refused(program):
    with pytest.raises(StagingError, match="around the condition would swallow it"):
        ag.function(program)(ag.constant(-1))
