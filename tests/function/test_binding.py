"""How a call's arguments meet the parameters: as `inspect.Signature.bind` says, whichever way is taken."""

from __future__ import annotations

import inspect
import itertools
from typing import Any

import pytest

import autograph as ag
from autograph.function.signature import Arguments

FUNCTIONS = [
    lambda a, b: None,
    lambda a, b=2: None,
    lambda a=1, b=2, c=3: None,
    lambda a, /, b=2: None,
    lambda a, /, b=2, **more: None,
    lambda a, b=2, *rest: None,
    lambda a, *, b=2: None,
    lambda a, b=2, *, c, d=4: None,
    lambda *rest, **more: None,
    lambda: None,
]
CALLS = [
    (args, dict(zip(names, (7, 8, 9))))
    for args in ((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4))
    for count in range(4)
    for names in itertools.permutations("abcd", count)
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: str(inspect.signature(function)))
def test_binding_is_python_s(function: Any) -> None:
    arguments, signature = Arguments(function), inspect.signature(function)
    for args, kwargs in CALLS:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            with pytest.raises(TypeError) as raised:
                arguments.bind(args, kwargs)
            said = str(raised.value)
            assert said.startswith("<lambda>() ") and said.endswith(f"{error}; its parameters are {signature}")
            continue
        bound.apply_defaults()
        assert arguments.bind(args, kwargs) == (bound.args, bound.kwargs)


def test_keywords_and_defaults_share_the_trace_of_positions() -> None:
    traces = []

    @ag.function
    def f(x, y=ag.constant(2.0), name="n"):
        traces.append(name)
        return x + y

    one = ag.constant(1.0)
    results = [f(one), f(one, ag.constant(2.0)), f(x=one), f(y=ag.constant(2.0), x=one), f(one, name="n")]
    assert [float(result) for result in results] == [3.0] * 5
    assert traces == ["n"]
