"""Values that wait in an expression while another part of it changes what held them: as in Python, or refused.

No variable holds such a value, only the expression: `change(rows[0], swap(rows))`.
"""

from __future__ import annotations

import argparse
import ast
import asyncio.base_events
import contextlib
import dataclasses
import inspect
import typing
from collections.abc import Iterator
from types import CodeType, ModuleType

import pytest

import autograph as ag
from autograph.errors import StagingError
from autograph.operators import evaluation_stack
from runtime import bytecode

POINTS = [0.25, 0.75]


class Box:
    def __init__(self, a):
        self.a = a

    def change(self, v):
        self.a[0] = self.a[0] + 10.0 * v
        return self.a[0]


def grow(rows):
    for _ in ag.range(2):
        rows.append([0.5, 0.25])
    found = rows[0][0]
    for i in ag.range(2):
        found = found + rows[i][0]
    return found


def swap(rows, x):
    if x > 0.5:
        rows[0] = [9.0, 9.0]
    return 1.0


def change(a, v):
    a[0] = a[0] + 10.0 * v
    return a[0]


def first(rows):
    return rows[0]


def argument(x, rows):
    return change(rows[0], grow(rows))


def keyword_argument(x, rows):
    return change(a=rows[0], v=grow(rows))


def argument_of_an_argument(x, rows):
    return change(rows[0], change(rows[1], grow(rows)))


def result_of_a_call(x, rows):
    return change(first(rows), grow(rows))


def method_of_an_item(x, rows):
    return rows[0].__setitem__(0, grow(rows))


def method_of_a_new_object(x, rows):
    return Box(rows[0]).change(grow(rows))


def item_that_is_assigned_to(x, rows):
    rows[0][int(grow(rows) * 0.0)] = 7.0


def item_that_is_changed_in_place(x, rows):
    rows[0][0] += grow(rows)


def display(x, rows):
    found = [rows[0], grow(rows)]
    found[0][0] = 7.0


def dictionary(x, rows):
    found = {"a": rows[0], "b": grow(rows)}
    found["a"][0] = 7.0


def default_argument(x, rows):
    def inner(a=rows[0], b=grow(rows)):
        return change(a, b)

    return inner()


def in_a_branch(x, rows):
    found = 0.0
    if x > 0.2:
        found = change(rows[0], grow(rows))
    return found


def in_a_loop(x, rows):
    found = 0.0
    for _ in ag.range(2):
        found = found + change(rows[0], grow(rows))
    return found


def chained_comparison(x, rows):
    return 1.0 if change(rows[0], grow(rows)) < 20.0 < change(rows[0], grow(rows)) else 0.0


def formatted(x, rows):
    return len(f"{change(rows[0], grow(rows))}") > 0


def assigned_in_the_expression(x, rows):
    return change((row := rows[0]), grow(rows)) + row[1]


def comprehension(x, rows):
    found = [first(rows) if i == 0 else grow(rows) for i in range(2)]
    found[0][0] = 7.0


def lambda_function(x, rows):
    return (lambda a, v: change(a, v))(rows[0], grow(rows))


def starred(x, rows):
    return change(*[rows[0], grow(rows)])


def display_in_a_generator(x, rows):
    def pairs():
        yield [rows[0], grow(rows)]

    for pair in pairs():
        pair[0][0] = 7.0


def item_of_an_item_in_a_generator(x, rows):
    def changes():
        rows[0][int(grow(rows) * 0.0)] = 7.0
        yield rows[0][0]

    return list(changes())


def display_in_a_context_manager(x, rows):
    @contextlib.contextmanager
    def lent():
        yield [rows[0], grow(rows)]

    with lent() as pair:
        pair[0][0] = 7.0


GROWING = [
    argument, keyword_argument, argument_of_an_argument, result_of_a_call, method_of_an_item, method_of_a_new_object,
    item_that_is_assigned_to, item_that_is_changed_in_place, display, dictionary, default_argument, in_a_branch,
    in_a_loop, chained_comparison, formatted, assigned_in_the_expression, comprehension, lambda_function, starred,
    display_in_a_generator, item_of_an_item_in_a_generator, display_in_a_context_manager,
]  # fmt: skip


def plain(value):
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return None if value is None else float(value)


def agrees_or_is_refused(program, x):
    """Whether it agrees; fails for another value."""
    expected = plain(program(x))
    try:
        found = plain(ag.function(program)(x))
    except StagingError:
        return False
    assert found == pytest.approx(expected)
    return True


def all_of(found, rows):
    return found, [each[0] for each in rows], [each[1] for each in rows]


@pytest.mark.parametrize("x", POINTS)
@pytest.mark.parametrize("body", GROWING, ids=lambda body: body.__name__)
def test_a_list_that_grows_meanwhile(body, x):
    def program(x):
        rows = [[x, 1.0], [2.0, x]]
        found = body(x, rows)
        return found, rows[0][0], rows[1][0], rows[0][1], len(rows)

    agrees_or_is_refused(program, ag.constant(x))


def test_such_a_program_is_staged():
    def program(x):
        rows = [[x, 1.0], [2.0, x]]
        found = change(rows[0], grow(rows))
        return found, rows[0][0], len(rows)

    assert agrees_or_is_refused(program, ag.constant(0.25))


def an_item(x):
    rows = [[x, 1.0]]
    return change(rows[0], swap(rows, x)), rows[0][0]


def an_item_of_a_dictionary(x):
    def swapped():
        if x > 0.5:
            things["a"] = [9.0]
        return 1.0

    things = {"a": [x]}
    return change(things["a"], swapped()), things["a"][0]


def an_attribute(x):
    def swapped():
        if x > 0.5:
            box.a = [9.0]
        return 1.0

    box = Box([x])
    return change(box.a, swapped()), box.a[0]


def a_variable(x):
    def swapped():
        nonlocal row
        if x > 0.5:
            row = [9.0]
        return 1.0

    row = [x]
    return change(row, swapped()), row[0]


def a_method(x):
    def swapped():
        nonlocal box
        if x > 0.5:
            box = Box([9.0])
        return 1.0

    box = Box([x])
    return box.change(swapped()), box.a[0]


def an_item_in_a_tuple(x):
    rows = [[x, 1.0]]
    found = (rows[0], swap(rows, x))
    found[0][0] = 7.0
    return rows[0][0]


def an_item_swapped_in_a_loop(x):
    def swapped():
        for _ in ag.range(ag.cast(x * 2.0, "int32")):
            rows[0] = [9.0]
        return 1.0

    rows = [[x]]
    return change(rows[0], swapped()), rows[0][0]


def an_item_of_what_is_swapped(x):
    def swapped():
        if x > 0.5:
            rows[0] = [[9.0]]
        return 1.0

    rows = [[[x]]]
    return change(rows[0][0], swapped()), rows[0][0][0]


def through_globals(x):
    GLOBAL[:] = [[x]]
    return change(of_global(), swap(GLOBAL, x)), GLOBAL[0][0]


GLOBAL = []


def of_global():
    return GLOBAL[0]


SWAPPED = [
    an_item, an_item_of_a_dictionary, an_attribute, a_variable, a_method, an_item_in_a_tuple,
    an_item_swapped_in_a_loop, an_item_of_what_is_swapped, through_globals,
]  # fmt: skip


@pytest.mark.parametrize("x", POINTS)
@pytest.mark.parametrize("program", SWAPPED, ids=lambda program: program.__name__)
def test_an_item_that_is_exchanged_meanwhile(program, x):
    agrees_or_is_refused(program, ag.constant(x))


def result_that_holds_nothing(x):
    """`change` gives a number: what waits has nothing to do with the list."""
    rows = [[x, 1.0]]
    found = x * 2.0 + swap(rows, x)
    rows[0][0] = 5.0
    return found, rows[0][0]


def method_of_the_list_itself(x):
    rows = [x]

    def more():
        for _ in ag.range(2):
            rows.append(0.5)
        return 1.0

    rows.append(more())
    return sum(rows), len(rows)


@pytest.mark.parametrize("x", POINTS)
@pytest.mark.parametrize("program", [result_that_holds_nothing, method_of_the_list_itself])
def test_what_needs_no_care_is_staged(program, x):
    assert agrees_or_is_refused(program, ag.constant(x))


MODULES = [argparse, ast, asyncio.base_events, contextlib, dataclasses, inspect, typing, evaluation_stack]


def functions_in(code: CodeType) -> Iterator[CodeType]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from functions_in(each)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_the_depth_of_the_stack_is_the_compilers(module: ModuleType) -> None:
    """Before each instruction there is what it takes, and never more than the compiler has room for."""
    codes = list(functions_in(compile(inspect.getsource(module), "module", "exec")))
    assert codes
    for code in codes:
        instructions, depths = bytecode.layout(code)
        assert max(depths.values()) <= code.co_stacksize, code
        left = [bytecode.unchanged_depth(each, depths) for each in instructions]
        assert all(count is None or count >= 0 for count in left), code
