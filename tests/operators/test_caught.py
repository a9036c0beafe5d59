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


def outcome(function, x, capsys):
    try:
        result = int(function(x))
    except (ValueError, KeyError) as error:
        result = type(error).__name__, str(error.args[0]).partition("\n")[0]
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
        out_of_an_except_clause,
        raised_again,
        two_errors,
        beside_break_and_continue,
        leaves_an_endless_loop,
        nested_conditions,
        out_of_a_with,
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


def an_index_that_is_not_there(x):
    found = []
    result = 0
    for i in ag.range(ag.maximum(x, 0)):
        found.append(1)
        found.pop()
        if i > 1:
            result = found[0]
    return result


def a_list_that_has_grown_by_then(x):
    found = []
    total = x * 0
    for i in ag.range(ag.maximum(x, 0)):
        if i != 20:
            if i > 0:
                total += found[0]
            found.append(i + 1)
    return total


def a_key_that_is_not_there(x):
    known = {"a": 1}
    return known["a"] if x > 1 else known["b"]


def a_division_by_zero(x):
    zero = 0
    y = 2
    if x > 1:
        y = 1 // zero
    return y


@pytest.mark.parametrize(
    "program",
    [an_index_that_is_not_there, a_list_that_has_grown_by_then, a_key_that_is_not_there, a_division_by_zero],
)
@pytest.mark.parametrize("x", [-1, 1, 3])
def test_errors_of_python_come_when_the_program_gets_there(program, x):
    x = ag.constant(x)
    try:
        expected = int(program(x))
    except (LookupError, ZeroDivisionError) as error:
        with pytest.raises(type(error), match="test_caught.py") as caught:
            ag.function(program)(x)
        assert str(error.args[0]) in str(caught.value)
    else:
        assert int(ag.function(program)(x)) == expected
