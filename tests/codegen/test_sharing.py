"""Arrays that are written in place while something else may be the same memory: a branch or a loop handed it on, an
array's elements were taken as one tensor, two carries took turns. Compiled and interpreted runs agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autograph as ag
from runtime.codegen.lower.lower_graph import lower

X = np.array([1.0, 2.0, 3.0], np.float32)


def array_of(x: Any) -> Any:
    return ag.TensorArray(ag.float32, size=3, clear_after_read=False).unstack(x)


def stacked_before_a_write(x: Any, n: Any) -> Any:
    array = array_of(x * 2)
    for i in ag.range(n):
        array = array.write(i, ag.cast(i, ag.float32))
    before = array.stack()
    return before, array.write(0, 50.0).stack()


def stacked_list(x: Any, n: Any) -> Any:
    values = []
    for v in x:
        values.append(v * 2)
    before = ag.stack(values)
    values[0] = 100.0
    return before, ag.stack(values)


def popped_list(x: Any, n: Any) -> Any:
    values = []
    for v in x:
        values.append(v * 2)
    before = ag.stack(values)
    values.pop()
    values.append(-1.0)
    return before, ag.stack(values)


def branch_hands_it_on(x: Any, n: Any) -> Any:
    a = ag.cumsum(x * 2)
    if n > 0:
        y = a
    else:
        y = a + 1
    return y, array_of(a).write(0, 50.0).stack()


def nested_branches_hand_it_on(x: Any, n: Any) -> Any:
    a = ag.cumsum(x * 2)
    if n > 0:
        if n > 1:
            y = a
        else:
            y = a + 1
    else:
        y = a + 2
    return y, array_of(a).write(0, 50.0).stack()


def a_branch_makes_one_array_of_two(x: Any, n: Any) -> Any:
    a, c = x + 1, x
    if n > 1:
        a = ag.cumsum(a)
        c = a
    else:
        c, a = a, ag.tensor_scatter_nd_update(a, [[0]], c[:1])
    a = ag.tensor_scatter_nd_update(a, [[n % 3]], [50.0])
    return a, c


def a_branch_in_a_loop_does(x: Any, n: Any) -> Any:
    a, c, total = x + 1, x, x
    for i in ag.range(n):
        if i < 2:
            a = ag.cumsum(a)
            c = a
        else:
            c, a = a, ag.reverse(c, [0])
        a = ag.tensor_scatter_nd_update(a, [[i % 3]], [50.0])
        total = total + c
    return a, c, total


def loop_without_trips(x: Any, n: Any) -> Any:
    a = ag.cumsum(x * 2)
    y = a
    for _ in ag.range(n - 2):
        y = ag.cumsum(y)
    return y, array_of(a).write(0, 50.0).stack()


def carries_take_turns(x: Any, n: Any) -> Any:
    a, b, c = ag.cumsum(x * 2), ag.cumsum(x * 3), ag.cumsum(x * 4)
    y, z, w = a, b, c
    for _ in ag.range(n):
        y, z, w = z, w, y
    return y, z, w, array_of(c).write(0, 50.0).stack()


def last_trips_array(x: Any, n: Any) -> Any:
    array, before, total = array_of(x), x, 0.0
    for i in ag.range(n):
        array = array.write(0, ag.cast(i, ag.float32) + 10)
        total = total * 100 + before[0]
        before = array.stack()
    return total, before


def written_in_a_branch(x: Any, n: Any) -> Any:
    turned = ag.transpose(ag.reshape(x, [1, 3]))
    array = ag.TensorArray(ag.float32, size=3, clear_after_read=False).unstack(turned)
    before = array
    if n > 0:
        array = array.write(0, [7.0])
    return array.stack(), turned, before.stack()


def written_in_nested_loops(x: Any, n: Any) -> Any:
    array = array_of(x)
    for i in ag.range(n):
        if i > 0:
            for j in ag.range(i):
                array = array.write(j, array.read(j) + array.read(i))
        x = x + array.stack()
    return x, array.stack()


def grown_in_a_branch(x: Any, n: Any) -> Any:
    values = [x[0]]
    for i in ag.range(n):
        if i % 2 == 0:
            values.append(values[-1] + x[1])
        else:
            values[0] = values[0] * 2.0
    return ag.stack(values), len(values)


def assigned_before_a_write(x: Any, n: Any) -> Any:
    ag_variable.assign(x)
    array = array_of(ag.cumsum(x))
    if n > 0:
        ag_variable.assign(array.stack())
    return array.write(0, 50.0).stack(), ag_variable.read_value()


def scattered(x: Any, n: Any) -> Any:
    before = x
    for i in ag.range(n):
        x = ag.tensor_scatter_nd_add(x, [[i], [0]], [x[0], x[i] * 2.0])
        x = ag.tensor_scatter_nd_max(x, [[2]], x[:1])
    return x, before


def scattered_into_a_table(x: Any, n: Any) -> Any:
    table = ag.zeros([3, 3])
    for i in ag.range(n):
        for j in ag.range(3):
            table = ag.tensor_scatter_nd_update(table, [[i, j]], [x[i] + x[j] + table[0, j]])
        table = ag.tensor_scatter_nd_min(table, [[i]], [x])
    return table, ag.gather_nd(table, [[0, 1], [2, 2]]), ag.gather_nd(table, [[1]])


def scattered_by_a_gradient(x: Any, n: Any) -> Any:
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = x
        for i in ag.range(n):
            y = ag.tensor_scatter_nd_update(y, [[i]], [y[0] * y[i] + x[i]])
        total = ag.reduce_sum(y * y)
    return total, tape.gradient(total, x)


def repeated_indices(x: Any, n: Any) -> Any:
    places = ag.stack([[n], [0], [n]]) % 3
    return ag.tensor_scatter_nd_update(x, places, x * 10.0), ag.scatter_nd(places, x, [3])


def assigned_slices(x: Any, n: Any) -> Any:
    ag_variable.assign(x)
    for i in ag.range(n):
        ag_variable[i:].assign(ag_variable[: 3 - i] * 2.0)
    return (ag_variable.read_value(),)


ag_variable = ag.Variable(X)

PROGRAMS = [
    stacked_before_a_write, stacked_list, popped_list, branch_hands_it_on, nested_branches_hand_it_on,
    loop_without_trips, carries_take_turns, last_trips_array, written_in_a_branch, written_in_nested_loops,
    grown_in_a_branch, assigned_before_a_write, scattered, scattered_into_a_table, scattered_by_a_gradient,
    repeated_indices, assigned_slices, a_branch_makes_one_array_of_two, a_branch_in_a_loop_does,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_shares_memory_keeps_its_value(program: Any) -> None:
    compiled, interpreted = (ag.function(program, jit_compile=each) for each in (True, False))
    for n in (0, 1, 2, 3):
        got, expected = compiled(ag.constant(X), ag.constant(n)), interpreted(ag.constant(X), ag.constant(n))
        for one, other in zip(got, expected):
            np.testing.assert_array_equal(one, other)


def test_elements_that_a_fixed_array_has_are_written_without_a_copy() -> None:
    @ag.function(jit_compile=True)
    def reverse(x):
        array = array_of(x)
        for i in ag.range(3):
            array = array.write(2 - i, x[i])
        return array.stack()

    text = lower(reverse.get_concrete_function(ag.TensorSpec([3])).graph).text
    assert "while" in text
    assert "resized" not in text
