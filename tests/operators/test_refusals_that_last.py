"""What can't be traced ends the trace, whatever handler of the program's stands around it: it would take another way.

And what libraries try out themselves stays their own affair.
"""

from __future__ import annotations

import contextlib
import operator

import pytest

import autograph as ag
from autograph.errors import StagingError
from runtime.errors import OperatorNotAllowedInGraphError

REFUSED = (StagingError, OperatorNotAllowedInGraphError)
POINTS = [0.25, 0.75]


class Property:
    """Reached through a dictionary, it isn't converted."""

    def __init__(self, v):
        self.v = v

    @property
    def sign(self):
        if self.v > 0.5:
            return 1.0
        return -1.0

    def __lt__(self, other):
        return bool(self.v < other.v)


def made(x):
    return {"p": Property(x)}


def staged(x):
    items = []
    for _ in ag.range(2):
        if x > 0.5:
            items.append(x)
    return items


def pinned_if(items, x):
    try:
        return 0.5
    finally:
        if items:
            return -0.75


def pinned_loop(items, x):
    try:
        return 0.5
    finally:
        for item in items:
            return item


def set_comprehension(items, x):
    return len({1 for v in [1, 2] if items})


def condition_of_a_set_comprehension(items, x):
    return len({1 for v in [1, 2] if x > 0.5})


def dictionary_comprehension(items, x):
    return len({k: 1 for k in [1, 2] if x > 0.5})


def comprehension_with_closures(items, x):
    return len(list((lambda: v) for v in [1, 2] if x > 0.5))


def comprehension_over_the_list(items, x):
    return len({float(v) for v in items})


def unpacking(items, x):
    first, second = items
    return first


def starred_argument(items, x):
    return max(*items, 0.0)


def tuple_of_the_list(items, x):
    return len(tuple(items))


def compared(items, x):
    return 1.0 if items > [0.5] else 2.0


def compared_from_the_left(items, x):
    return 1.0 if [0.5] < items else 2.0


def matched(items, x):
    match items:
        case [a]:
            return 1.0
        case []:
            return 2.0
        case _:
            return 3.0


def matched_on_the_way(items, x):
    found = 0.0
    if x > 0.1:
        match items:
            case [a, b]:
                found = 1.0
    return found


def property_of_an_object(items, x):
    return made(x)["p"].sign


def special_method(items, x):
    return max([Property(x), Property(x * 2.0)]).v


def index_of_a_tensor(items, x):
    return operator.index(ag.cast(x * 4.0, "int32"))


def key_of_a_dictionary(items, x):
    return {1: 2.0, 3: 4.0}[int(x * 4.0)]


def formatted(items, x):
    return float(f"{x:.2f}")


PROGRAMS = [
    pinned_if, pinned_loop, set_comprehension, condition_of_a_set_comprehension, dictionary_comprehension,
    comprehension_with_closures, comprehension_over_the_list, unpacking, starred_argument, tuple_of_the_list, compared,
    compared_from_the_left, matched, matched_on_the_way, property_of_an_object, special_method, index_of_a_tensor,
    key_of_a_dictionary, formatted,
]  # fmt: skip


def handled(body):
    def program(x):
        items = staged(x)
        try:
            return body(items, x)
        except Exception:
            return 7.0

    return program


def suppressed(body):
    def program(x):
        items = staged(x)
        with contextlib.suppress(Exception):
            return body(items, x)
        return 7.0

    return program


def left_by_finally(body):
    def program(x):
        items, found = staged(x), 7.0
        while True:
            try:
                found = body(items, x)
            finally:
                break
        return found

    return program


@pytest.mark.parametrize("around", [handled, suppressed, left_by_finally])
@pytest.mark.parametrize("body", PROGRAMS, ids=lambda body: body.__name__)
def test_no_handler_hides_it(body, around):
    program = around(body)
    for x in map(ag.constant, POINTS):
        expected = float(program(x))
        try:
            found = float(ag.function(program)(x))
        except (*REFUSED, TypeError):  # a dictionary's key is a TypeError
            continue
        assert found == pytest.approx(expected)


def test_a_library_may_try():
    """NumPy asks whether something can be iterated over; the answer is no."""

    def tries(x):
        try:
            return [each for each in x]
        except TypeError:
            return 3.0

    asked = ag.autograph.experimental.do_not_convert(tries)

    @ag.function(input_signature=[ag.TensorSpec([None])])
    def program(x):
        try:
            return asked(x) + x[0]
        except TypeError:
            return 7.0

    assert float(program(ag.constant([1.0, 2.0]))) == 4.0


@pytest.mark.parametrize("x", POINTS)
def test_staged_lists_compare_equal(x):
    def program(x):
        items, other = staged(x), [0.5]
        if x > 0.1:
            other.append(x)
        return [
            1.0 if each else 0.0
            for each in (
                items == [], items != [], items == [x, x], items == [x], items == staged(x), items == items,
                other == items, items == 3.0, items != 3.0, [x, x] == items, bool(items), not items,
            )
        ]  # fmt: skip

    x = ag.constant(x)
    assert [float(each) for each in ag.function(program)(x)] == [float(each) for each in program(x)]


def test_a_return_in_finally_swallows_an_error():
    def program(x):
        try:
            if x > 0.3:
                raise KeyError("no")
        finally:
            return x * 2.0

    for x in map(ag.constant, POINTS):
        with pytest.raises(StagingError, match="KeyError"):
            ag.function(program)(x)


def test_an_error_in_finally_does_not_hide_it():
    @ag.function
    def program(x, n):
        box, k = {"items": []}, 0
        try:
            while k < n:
                k += 1
                box = dict(box)
                box["items"].insert(0, x)
            return k
        finally:
            box["items"][-1] = 0.5  # an IndexError here: the loop was not traced to its end

    with pytest.raises(StagingError, match="also has another name"):
        program(ag.constant(0.9), ag.constant(2))
