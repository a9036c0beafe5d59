"""An error that a staged ``raise`` raises is the one that Python would raise, with the user's line in a note."""

from __future__ import annotations

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


def told(error):
    """What an error holds, as Python values."""
    held = {name: value for name, value in vars(error).items() if name != "__notes__"}
    if isinstance(error, OSError):
        held["filename"] = error.filename
    return type(error), str(error), ag.nest.map_structure(float_of, [list(error.args), held])


def float_of(leaf):
    return float(leaf) if ag.is_tensor(leaf) else leaf


@pytest.mark.parametrize("jit", [None, False, True])
@pytest.mark.parametrize("program", [own_class, own_class_in_a_loop, attributes_of_an_instance, a_missing_file, a_key])
def test_like_python(program, jit):
    function = ag.function(program, jit_compile=jit)
    assert float(function(ag.constant(-9.0))) == float(program(ag.constant(-9.0)))
    with pytest.raises(Exception) as wanted:
        program(ag.constant(1.0))
    with pytest.raises(Exception) as found:
        function(ag.constant(1.0))
    assert told(found.value) == told(wanted.value)
    if sys.version_info >= (3, 11):
        (note,) = found.value.__notes__
        assert "test_raised.py" in note and f"in {program.__name__}" in note and "raise " in note


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
