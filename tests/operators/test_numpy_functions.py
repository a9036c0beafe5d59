"""NumPy's functions on lists that hold symbolic tensors, in converted code: as on the values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autograph as ag

X = np.array([1.0, 2.0, 3.0], np.float32)


def _grown(x: Any) -> list[Any]:
    values = []
    for each in x:
        values.append(each * 2)
    return values


PROGRAMS: dict[str, Callable[..., Any]] = {
    "array of a list that a loop grows": lambda x: np.array(_grown(x)),
    "sum of such a list": lambda x: np.sum(_grown(x)),
    "array": lambda x: np.array([x[0], 2 * x[1]]),
    "array with a number": lambda x: np.array([x[0], 5.0]),
    "array of rows": lambda x: np.array([[np.cos(x[0]), -np.sin(x[0])], [np.sin(x[0]), np.cos(x[0])]]),
    "array of a tensor": lambda x: np.asarray(x) + 1,
    "array with a dtype": lambda x: np.array([x[0], x[1]], dtype=np.float64),
    "mean": lambda x: np.mean([x[0], x[1], 3.0]),
    "max": lambda x: np.max((x[0], x[2])),
    "axis": lambda x: np.sum([[x[0], x[1]], [x[1], x[2]]], axis=0),
    "universal function": lambda x: np.sqrt([x[0], x[1]]),
    "two arguments": lambda x: np.maximum([x[0], x[2]], 1.5),
    "keyword": lambda x: np.sum(a=[x[0], x[1]]),
    "concatenate": lambda x: np.concatenate([[x[0]], [x[1], x[2]]]),
    "norm": lambda x: np.linalg.norm([x[0], x[1]]),
    "full": lambda x: np.full((2, 2), x[1]),
    "comprehension": lambda x: np.prod([each + 1 for each in x]),
    "list of Python's": lambda x: np.sum([1.0, 2.0]) * x,
    "scalar type": lambda x: np.float32(2) * x + np.float64(x[0]),
    "scalar of a number": lambda x: x * np.float64("2.5"),
}


@pytest.mark.parametrize("jit_compile", [None, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_functions_give_what_they_give_of_the_values(name: str, jit_compile: bool | None) -> None:
    program = PROGRAMS[name]
    got = ag.function(program, jit_compile=jit_compile)(ag.constant(X))
    np.testing.assert_allclose(np.asarray(got), program(X), rtol=1e-6)


@pytest.mark.parametrize("jit_compile", [None, True])
def test_gradients_go_through_them(jit_compile: bool | None) -> None:
    @ag.function(jit_compile=jit_compile)
    def slope(x: Any) -> Any:
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = np.sum([each * each for each in x]) + np.prod(np.array([x[0], x[1]]))
        return tape.gradient(y, x)

    np.testing.assert_allclose(slope(ag.constant(X)), [4.0, 5.0, 6.0])


def test_other_arguments_of_array_are_refused() -> None:
    @ag.function
    def nested(x: Any) -> Any:
        return np.array([x, x], ndmin=3)

    with pytest.raises(TypeError, match="doesn't take the argument 'ndmin'"):
        nested(ag.constant(1.0))
