"""`check_gradients` finds what is wrong, to second order by every argument, and says where."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autograph as ag

X = np.array([[0.5, 0.7], [0.3, -0.9]])


@ag.custom_gradient
def wrong_in_one_place(x: Any, w: Any) -> Any:
    def grad(dy: Any) -> Any:
        g = dy * 2.0 * x * w
        return ag.tensor_scatter_nd_add(g, [[1, 0]], [g[1, 0] * 0.1]), ag.reduce_sum(dy * x * x)

    return x * x * w, grad


@ag.custom_gradient
def wrong_in_second_order(x: Any) -> Any:
    held = ag.stop_gradient(x)
    return x**3, lambda dy: dy * 3.0 * held * held


def report_of(*arguments: Any, **options: Any) -> str:
    with pytest.raises(AssertionError) as raised:
        ag.test.check_gradients(*arguments, **options)
    return str(raised.value)


def test_the_place_of_a_wrong_gradient_is_named() -> None:
    text = report_of(wrong_in_one_place, [X, np.array(2.0)], order=1)
    assert "the gradients of 'wrong_in_one_place' are wrong" in text
    assert "order 1, argument 0: WRONG, error 3.33e-02" in text
    assert "d result[1, 0] / d element [1, 0] is 1.32, by differences 1.2" in text
    assert "argument 1: ok" in text


def test_second_order_is_checked_by_every_argument() -> None:
    assert "d gradient by argument 0[1, 1] / d element [1, 1] is 0" in report_of(wrong_in_second_order, [X])
    text = report_of(lambda x, y: wrong_in_second_order(y) * x, [np.array(1.0), np.array(2.0)])
    assert "order 1, argument 1: ok" in text
    assert "order 2, argument 1: WRONG" in text
    assert "d gradient by argument 1 / d element [] is 0, by differences 12" in text


def test_kinks_are_told_from_mistakes() -> None:
    assert "there may be a kink or jump nearby" in report_of(ag.abs, [np.array([0.0, 1.0])])
    assert "a kink or jump" not in report_of(wrong_in_second_order, [X])


def test_not_a_number_is_wrong() -> None:
    assert "order 1, argument 0: WRONG, error nan" in report_of(ag.sqrt, [np.array([-1.0, 1.0])], order=1)


def test_integers_are_handed_on_and_structures_of_results_checked() -> None:
    def f(x: Any, i: Any, y: Any) -> Any:
        return {"a": x * ag.cast(i, x.dtype), "b": (ag.sin(y), i)}

    report = ag.test.check_gradients(f, [X, np.array(3), X])
    assert {*report.errors} == {(1, 0), (1, 2), (2, 0), (2, 2)}
    assert report.passed
    assert not report.worst


def test_what_cannot_be_checked() -> None:
    with pytest.raises(TypeError, match="`args` must be a list or tuple"):
        ag.test.check_gradients(ag.sin, X)
    with pytest.raises(ValueError, match="an argument of floating-point numbers"):
        ag.test.check_gradients(lambda i: i, [np.array(3)])
    with pytest.raises(ValueError, match="a floating-point result"):
        ag.test.check_gradients(lambda x: ag.cast(x, ag.int32), [X])
