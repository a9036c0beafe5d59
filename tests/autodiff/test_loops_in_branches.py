"""Gradients of loops in branches in loops, which work on an array that the outer loop changes in place.

What a branch becomes for them (`autodiff/loops_in_branches.py`) gives what eager execution gives, at a cost that grows
as the value's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autograph as ag
from tests.autodiff.test_scaling import check
from tests.autodiff.work import value_and_gradients

Program = Callable[[Any], Any]


def put(array: Any, i: Any, value: Any) -> Any:
    return ag.tensor_scatter_nd_update(array, [[i]], [value])


def counted(x: Any) -> Any:
    made = ag.zeros_like(x)
    for i in ag.range(3, x.shape[0]):
        if x[i] > 0.4:
            for k in ag.range(3):
                made = put(made, i - k, x[i] * x[i - k] + made[i - 1 - k] * made[i])
    return ag.reduce_sum(made * made)


def left_early(x: Any) -> Any:
    made = ag.zeros_like(x)
    for i in ag.range(3, x.shape[0]):
        if x[i] < 0.3:
            continue
        for k in ag.range(3):
            if x[i - k] * made[i - k] > 0.5:
                break
            made = put(made, i - k, x[i] * x[i - k] + made[i - 1 - k] * made[i])
    return ag.reduce_sum(made * made)


def asked_first(x: Any) -> Any:
    """A test that would fail on the zeros that stand for what the branch computes."""
    made = x
    for i in ag.range(3, x.shape[0]):
        if x[i] > 0.4:
            window = x[i - 2 : i + 1] * 2.0
            j = ag.constant(0)
            while window[j] < 1.7 and j < 2:
                made = put(made, i - j, made[i - j - 1] * window[j])
                j += 1
            made = put(made, i, made[i] + window[j])
    return ag.reduce_sum(made * made)


def otherwise(x: Any) -> Any:
    made = x
    for i in ag.range(3, x.shape[0]):
        if x[i] > 0.6:
            made = put(made, i, made[i - 1] * x[i])
        elif x[i] > 0.3:
            for k in ag.range(1, 3):
                made = put(made, i - k, ag.sin(made[i]) * x[i - k])
        else:
            made = put(made, i - 1, made[i] * made[i - 2])
            j = i
            while j > i - 3:
                made = put(made, j, made[j] * made[j - 1] + x[j])
                j -= 1
            made = put(made, i, made[i] * made[i - 1])
    return ag.reduce_sum(made * made * x)


def both_branches(x: Any) -> Any:
    made = x
    for i in ag.range(3, x.shape[0]):
        factor = made[i - 1] * 0.5
        if x[i] > 0.5:
            scale = factor * x[i]
            for k in ag.range(2):
                made = put(made, i - k, made[i - k - 1] * scale + made[i])
        else:
            for k in ag.range(3):
                made = put(made, i - k, ag.cos(made[i - k]) * factor)
    return ag.reduce_sum(made * made)


def several(x: Any) -> Any:
    made = x
    for i in ag.range(3, x.shape[0]):
        if x[i] > 0.4:
            total = made[i]
            for k in ag.range(1, 4):
                total += made[i - k] * x[i]
            made = put(made, i, total * 0.2)
            for k in ag.range(2):
                if made[i] > 0.2:
                    for m in ag.range(2):
                        made = put(made, i - m, made[i - k] * x[i - m] + 0.1)
            made = put(made, i - 3, made[i] * total * 0.1)
    return ag.reduce_sum(made * made)


def only_read(x: Any) -> Any:
    """The loop in the branch reads; the outer loop writes."""
    for i in ag.range(3, x.shape[0]):
        value = x[i] * 0.5
        if x[i] > 0.3:
            for k in ag.range(1, 3):
                value += ag.sin(x[i - k]) * x[i]
        x = put(x, i, value)
    return ag.reduce_sum(x * x)


def array_of_its_own(x: Any) -> Any:
    made = x
    for i in ag.range(3, x.shape[0]):
        if x[i] > 0.4:
            row = ag.zeros([2], x.dtype)
            for k in ag.range(2):
                row = put(row, k, made[i - k] * x[i])
            made = put(made, i, row[0] + row[1] * made[i - 1])
    return ag.reduce_sum(made * made)


def written(x: Any) -> Any:
    found = ag.TensorArray(x.dtype, x.shape[0], clear_after_read=False).unstack(x)
    for i in ag.range(3, x.shape[0]):
        if x[i] > 0.4:
            for k in ag.range(2):
                found = found.write(i - k, ag.sin(found.read(i - k - 1)) * x[i])
    return ag.reduce_sum(found.stack() ** 2)


def grown(x: Any) -> Any:
    """A list that loops in branches change and make longer."""
    found = [x[0], x[1]]
    for i in ag.range(3, x.shape[0]):
        if x[i] > 0.4:
            for k in ag.range(2):
                found[k] = found[k + 1] * x[i - k] if k == 0 else found[0] + x[i]
                found.append(found[k] * x[i])
        else:
            found.append(x[i])
    return ag.reduce_sum(ag.stack(found) ** 2)


def kept_as_it_was(x: Any) -> Any:
    """What the array was before the loop is read after it."""
    made = x
    for i in ag.range(3, x.shape[0]):
        if x[i] > 0.4:
            before = made
            for k in ag.range(2):
                made = put(made, i - k, made[i - k - 1] * x[i])
            made = put(made, i, made[i] + before[i] * before[i - 1])
    return ag.reduce_sum(made * made)


def list_of_its_own(x: Any) -> Any:
    """Of second order, the adjoint of the loops in the branch are two that hand a stack on."""
    total = x[0]
    for i in ag.range(3, x.shape[0]):
        if x[i] > 0.4:
            found = [x[i]]
            for k in ag.range(2):
                found.append(ag.sin(x[i - k] * found[-1]))
            total += found[-1] * found[1]
    return total


def that_speaks(x: Any) -> Any:
    made = x
    for i in ag.range(3, x.shape[0]):
        if x[i] > 0.4:
            ag.debugging.assert_greater(x[i], 0.3)
            for k in ag.range(2):
                ag.debugging.assert_greater(x[i - k], 0.0)
                made = put(made, i - k, made[i - k - 1] * x[i])
            ag.debugging.assert_greater(x[i], 0.2)
    return ag.reduce_sum(made * made)


def in_a_nest(x: Any) -> Any:
    n, m = x.shape
    made = x
    for i in ag.range(1, n):
        for j in ag.range(2, m):
            if x[i, j] > 0.4:
                for k in ag.range(2):
                    value = made[i - 1, j - k] * x[i, j] + made[i, j - 1]
                    made = ag.tensor_scatter_nd_update(made, [[i, j - k]], [value])
    return ag.reduce_sum(made * made)


LINEAR = [
    counted,
    left_early,
    asked_first,
    otherwise,
    both_branches,
    several,
    only_read,
    array_of_its_own,
    written,
    that_speaks,
]
PROGRAMS = [*[(each, 1) for each in (*LINEAR, kept_as_it_was, list_of_its_own, grown)], (in_a_nest, 2)]


def wavy(rank: int) -> Any:
    shape = {1: (12,), 2: (4, 5)}[rank]
    return ag.constant(0.5 + 0.45 * np.sin(1.7 * np.arange(np.prod(shape)) ** 1.5).reshape(shape))


def gradients(program: Program, x: Any) -> list[Any]:
    """The value, its gradient, and the gradient of that's sum of squares."""
    with ag.GradientTape() as second:
        second.watch(x)
        with ag.GradientTape() as first:
            first.watch(x)
            y = program(x)
        dx = first.gradient(y, x)
        length = ag.reduce_sum(dx * dx)
    return [y, dx, second.gradient(length, x)]


@pytest.mark.parametrize(("program", "rank"), PROGRAMS)
@pytest.mark.parametrize("jit_compile", [False, True])
def test_gradients_are_the_eager_ones(program: Program, rank: int, jit_compile: bool) -> None:
    x = wavy(rank)
    wanted = gradients(program, x)
    assert np.any(wanted[1].numpy() != gradients(lambda x: ag.reduce_sum(x * x), x)[1].numpy())
    staged = ag.function(lambda x: gradients(program, x), jit_compile=jit_compile)
    for found, each in zip(staged(x), wanted, strict=True):
        np.testing.assert_allclose(found, each, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("program", [counted, left_early, several])
def test_tapes_around_a_function(program: Program) -> None:
    x = wavy(1)
    for found, each in zip(gradients(ag.function(program), x), gradients(program, x), strict=True):
        np.testing.assert_allclose(found, each, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("program", "rank"), [*[(each, 1) for each in LINEAR if each is not that_speaks], (in_a_nest, 2)]
)
def test_cost_grows_as_the_value(program: Program, rank: int) -> None:
    check(program, rank, most=12.0)


def test_second_order_grows_as_the_value() -> None:
    check(counted, 1, orders=2)


def test_a_fixed_number_of_trips_stays_known() -> None:
    """Or none, if the branch isn't taken: so kernels take such loops in one piece, forwards and backwards."""

    def smoothed(x: Any) -> Any:
        for i in ag.range(3, x.shape[0]):
            if x[i] < 0.2:
                continue
            for k in ag.range(3):
                x = put(x, i - k, x[i] * x[i - k] + x[i - k - 1])
        return ag.reduce_sum(x * x)

    value, gradient = value_and_gradients(smoothed, ag.constant(np.linspace(0.1, 0.9, 200)))
    assert gradient < 4.0 * value


def test_a_gather_of_what_the_loop_changes() -> None:
    """Its rule asks what kind of gradient it may give, of a read that a branch hands out, too."""

    def gathered(x: Any) -> Any:
        for i in ag.range(3, x.shape[0]):
            if x[i] > 0.4:
                x = put(x, i, ag.gather(x, i - 1) * ag.gather(x, i - 2) + 0.5)
        return ag.reduce_sum(x * x)

    x = wavy(1)
    staged = ag.function(lambda x: gradients(gathered, x))
    for found, each in zip(staged(x), gradients(gathered, x), strict=True):
        np.testing.assert_allclose(found, each, rtol=1e-9, atol=1e-12)
