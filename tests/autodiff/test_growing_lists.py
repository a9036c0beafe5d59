"""Gradients of lists that grow in loops while they are read: cotangents of one list that have different lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autograph as ag
from tests.autodiff.random_programs import hessian_of, slope_of


def sums_of_all_so_far(x: Any, n: Any) -> Any:
    items = [x[0], x[1]]
    for _ in ag.range(n):
        items.append(ag.sin(ag.reduce_sum(ag.stack(items) ** 2) * x[2]))
    return items[-1] + ag.reduce_sum(x * x)


def same_start(x: Any, n: Any) -> Any:
    """Both lists are one value at first, to whoever merges common subexpressions."""
    left = [x[0]]
    for _ in ag.range(3):
        left.append(x[0] * x[1])
    right = [x[0]]
    for _ in ag.range(n + 1):
        right.append(x[2] * x[2])
    return left[0] * left[-1] + right.pop() * right.pop() * x[1]


def copies(x: Any, n: Any) -> Any:
    items = [x[0], x[1]]
    for _ in ag.range(n):
        items.append(x[2] * items[-1])
    other, kept = list(items), items[:]
    for _ in ag.range(2 * n):
        other.append(ag.cos(other[-2]))
    for _ in ag.range(5 * n):
        items.append(ag.sin(items[-2]))
    return items[-1] * other[-1] + ag.reduce_sum(ag.stack(kept) ** 3)


def in_branches(x: Any, n: Any) -> Any:
    items = [x[0], x[1]]
    for i in ag.range(n):
        if i % 2 == 0:
            items.append(ag.reduce_sum(ag.stack(items)) * x[2])
        else:
            inner = list(items)
            for _ in ag.range(i):
                inner.append(items[-1] * inner[0])
            items.append(inner[-1])
    return ag.reduce_sum(ag.stack(items) ** 2)


def array_of_rows(x: Any, n: Any) -> Any:
    """The array is x itself at first, and has more rows than x in the end."""
    array = ag.TensorArray(x.dtype, size=0, dynamic_size=True, clear_after_read=False).unstack(x)
    for i in ag.range(2 * n):
        array = array.write(i + 1, ag.sin(array.read(i)) * x[2])
    return ag.reduce_sum(array.stack() ** 2) + ag.reduce_sum(x * x * x)


def recurrence_in_an_array(x: Any, n: Any) -> Any:
    """Reads rows between writes that make the array longer."""
    array = ag.TensorArray(x.dtype, size=0, dynamic_size=True, clear_after_read=False)
    array = array.write(0, x[0])
    for i in ag.range(n):
        array = array.write(i + 1, ag.sin(x[1] * array.read(i)) + x[2] * array.read(i // 2))
    return ag.reduce_sum(array.stack() ** 2) + array.read(0)


def slices_that_get_an_item(x: Any, n: Any) -> Any:
    items = [x[0] * x[1]]
    for _ in ag.range(n):
        items = items[-3:] + [x[1] * items[-1]]
    return sum(items) + items[0] * x[2]


def what_methods_rearrange(x: Any, n: Any) -> Any:
    """Buffers that come from sorting, reversing, joining and removing, and then grow."""
    items = sorted([x[0], x[1], x[2] * x[0]])
    for i in ag.range(n):
        items.append(ag.sin(items[0]) * x[1])
        if i % 2 == 0:
            items.reverse()
        else:
            items.insert(1, x[2])
            items.sort()
    others = items * 2
    others.append(items.pop(0) * x[0])
    others.extend([x[1], x[0] * x[2]])
    del others[0]
    others.append(x[2])
    others[1:2] = [x[0], x[1] * others[0]]
    for _ in ag.range(n):
        others.append(others[2] * x[0])
    return ag.reduce_sum(ag.stack(others) ** 2) + items[-1]


def read_in_a_loop_then_given_to_a_branch_that_grows_it(x: Any, n: Any) -> Any:
    """Nothing in the loop writes to the list; a branch after it does, in a branch."""
    items = [x[0], x[1], x[2]]
    for i in ag.range(n):
        if i == 1:
            items = [ag.sin(x[1]) * items[0]]
    total = sum(items)
    if total > -1.0:
        if n > 0:
            items.append(total * x[0])
        else:
            items[0] = total
    return ag.reduce_sum(ag.stack(items) ** 2) + total * sum(items)


def one_list_grows_by_another(x: Any, n: Any) -> Any:
    """The one that is read is exchanged in a branch of the loop, and grows after it."""
    taken, given = [x[0]], [x[1], x[2]]
    for i in ag.range(n):
        taken.extend(list(given))
        if i > 1:
            continue
        given.insert(0, taken[-1] * x[0])
    given.append(x[2] * taken[0])
    return ag.reduce_sum(ag.stack(given) ** 3) + sum(taken)


def slices_in_a_loop_that_is_left(x: Any, n: Any) -> Any:
    items, seen = [x[0], x[1] * x[1]], [x[2]]
    for i in ag.range(n):
        if ag.reduce_any(ag.stack(items) > 2.0):
            items = [v * 0.5 for v in items]
        elif i == 3:
            break
        else:
            seen.append(sum(items))
            items += [x[0] * seen[-1]]
        items.extend(list(seen))
        items = items[1:]
    return sum(items) * sum(seen)


def in_a_loop_in_a_loop(x: Any, n: Any) -> Any:
    found, rest = [x[0]], [x[1], x[0] * x[2]]
    for i in ag.range(n):
        found = rest[1:]
        rest = rest + [x[2] * 0.5]
        for j in ag.range(i):
            found += [sum(rest) * x[1]]
            if j == 2:
                continue
            found.reverse()
    return ag.reduce_sum(ag.stack(found) ** 2) + sum(rest)


def through_a_function_that_calls_itself(x: Any, n: Any) -> Any:
    def fill(items: Any, left: Any) -> Any:
        if left > 0:
            items = fill(items[-2:] + [items[-1] * x[0]], left - 1)
        return items

    items = fill([x[0], x[1]], n)
    items.append(sum(items) * x[2])
    return ag.reduce_sum(ag.stack(items) ** 2)


@pytest.mark.parametrize(
    "program, compiled",
    [
        (slices_that_get_an_item, False), (slices_that_get_an_item, True),
        (what_methods_rearrange, False), (what_methods_rearrange, True),
        (sums_of_all_so_far, False), (sums_of_all_so_far, True), (same_start, False), (copies, False),
        (in_branches, False), (in_branches, True), (recurrence_in_an_array, False), (recurrence_in_an_array, True),
        (array_of_rows, False), (array_of_rows, True),
        (read_in_a_loop_then_given_to_a_branch_that_grows_it, False),
        (read_in_a_loop_then_given_to_a_branch_that_grows_it, True),
        (one_list_grows_by_another, False), (one_list_grows_by_another, True),
        (slices_in_a_loop_that_is_left, False), (slices_in_a_loop_that_is_left, True),
        (in_a_loop_in_a_loop, False), (in_a_loop_in_a_loop, True), (through_a_function_that_calls_itself, False),
    ],
)  # fmt: skip
def test_lists_that_are_read_while_they_grow(program: Any, compiled: bool) -> None:
    x = ag.constant([0.6, -0.4, 0.8], ag.float64)
    stage = ag.function(program, jit_compile=compiled)
    inside = ag.function(slope_of(program), jit_compile=compiled)
    for n in (0, 1, 3, 5):
        count = ag.constant(n)
        value, slope = slope_of(program)(x, count)
        for found in (slope_of(stage)(x, count), inside(x, count)):
            np.testing.assert_allclose(found[0], value, rtol=1e-12)
            np.testing.assert_allclose(found[1], slope, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize(
    "program",
    [
        sums_of_all_so_far, same_start, copies, in_branches, recurrence_in_an_array, array_of_rows,
        slices_that_get_an_item, what_methods_rearrange, read_in_a_loop_then_given_to_a_branch_that_grows_it,
        one_list_grows_by_another, slices_in_a_loop_that_is_left, in_a_loop_in_a_loop,
    ],
)  # fmt: skip
def test_their_hessians(program: Any) -> None:
    x, count = ag.constant([0.6, -0.4, 0.8], ag.float64), ag.constant(3)
    expected = hessian_of(program)(x, count)
    for stage in (hessian_of(ag.function(program)), ag.function(hessian_of(program))):
        np.testing.assert_allclose(stage(x, count), expected, rtol=1e-11, atol=1e-13)


def _drained(x):
    queue = [v * v for v in x]
    total = ag.constant(0.0, ag.float64)
    while len(queue) > 0:
        total = total * 0.5 + queue.pop(0)
    return total


def _rotated(x):
    queue = [v * v for v in x]
    total = ag.constant(0.0, ag.float64)
    for _ in ag.range(ag.size(x)):
        total = total * 0.5 + queue[-1]
        queue.insert(0, queue.pop() * 1.5)
    return total


def _deleted(x):
    queue = [v * v for v in x]
    total = ag.constant(0.0, ag.float64)
    while len(queue) > 2:
        total = total * 0.5 + queue[1]
        del queue[1]
    return total


@pytest.mark.parametrize("program", [_drained, _rotated, _deleted])
def test_trips_save_the_sizes_of_a_list_that_elements_move_in(program):
    x = ag.constant([0.5, 1.5, -0.7, 2.0, 0.3])

    def slope(x):
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = program(x)
        return tape.gradient(y, x)

    def curvature(x):
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = ag.reduce_sum(slope(x) ** 2)
        return tape.gradient(y, x)

    x = ag.cast(x, ag.float64)
    for derivative in (slope, curvature):
        expected = derivative(x)
        for jit in (None, True):
            np.testing.assert_allclose(ag.function(derivative, jit_compile=jit)(x), expected, rtol=1e-14)
    graph = ag.function(slope).get_concrete_function(ag.TensorSpec([None], ag.float64)).graph
    pushed = [node.inputs[1] for node in graph.walk() if node.op.name == "stack_push"]
    assert pushed and all(value.shape == () for value in pushed)
