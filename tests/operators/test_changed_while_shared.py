"""One of two names is changed while the other, which may be the same list or object, is still used: refused.

And programs like these in which nothing can be told from Python: they agree with eager execution.
"""

from __future__ import annotations

import collections
import contextlib
import functools

import pytest

import autograph as ag
from autograph.errors import StagingError

Named = collections.namedtuple("Named", ["items"])
POINTS = [(0.9, 0.7, 0), (0.15, 0.05, 2)]


class Box:
    def __init__(self, v, items):
        self.v = v
        self.items = items


class Adding:
    """Changes the box when the `with` statement is left."""

    def __init__(self, box):
        self.box = box

    def __enter__(self):
        return self.box

    def __exit__(self, *error):
        self.box.v = self.box.v + 0.125


@contextlib.contextmanager
def adding(box):
    yield box
    box.v = box.v + 0.125


@contextlib.contextmanager
def lent(box):
    yield box


def plain(value):
    return [plain(each) for each in value] if isinstance(value, (list, tuple)) else float(value)


def given_up_before_the_next_condition(x, y, n):
    """When the last branch is staged, nobody needs the copy any more."""
    first = [-0.75]
    other = first
    if n == 0:
        other = [1.0]
    first += [x]
    found = sum(other)
    if y > 0.3:
        found = found * 2.0
    return found


def in_a_match(x, y, n):
    first = [-0.75]
    second = first
    third = second
    match n:
        case 0:
            third = [1.0]
    second += [x]
    third = third[-3:] + [sum([v * x for v in third])]
    first.extend([(x if y > 0.3 else x), x])
    return sum(first), sum(third)


def by_a_function_that_changes_a_variable(x, y, n):
    first = [0.25, -0.75]
    other = first

    def change(z):
        nonlocal first
        first = [z]

    if not n > 1 or x > 0.6:
        change(x)
    other.append(y)
    first = first[1:]
    other = [v for v in other if v > 0.1]
    return first, len(other)


def in_a_branch_that_is_the_rest_of_the_function(x, y, n):
    items = [y, -0.75]
    box = Box(y, items)
    if any([v > 0.1 for v in items]):
        items = sorted(items)
        if x > 0.3:
            return y
    box.items.append(x)
    return sum(items)


def when_a_with_statement_is_left(x, y, n):
    box = Box(y, [0.5])
    with Adding(box) as box:
        if n == 0:
            box = Box(x, [1.0])
    return box.v


def when_a_generator_goes_on(x, y, n):
    box = Box(y, [0.5])
    with adding(box) as box:
        if n == 0:
            box = Box(x, [1.0])
    return box.v


def while_a_loop_runs_over_the_list(x, y, n):
    items, found = [x, y, 0.5], 0.0
    for v in items:
        if y > 0.3:
            items = [1.0, x, y]
        items[2] = x
        found = found * 0.5 + v
    return found


def while_a_loop_runs_over_its_pairs(x, y, n):
    items, found = [x, y], 0.0
    for v, w in zip(items, [1.0, 2.0]):
        if y > 0.3:
            items = [1.0, 0.5]
        items[1] = x * 2.0
        found = found * 0.5 + v * w
    return found


def an_iterator(x, y, n):
    items = [x, y]
    rest = iter(items)
    if y > 0.3:
        items = [1.0, 0.5]
    items[0] = x * 2.0
    return next(rest), items


def a_view(x, y, n):
    table = {"a": x}
    values = table.values()
    if y > 0.3:
        table = {"a": y}
    table["a"] = x * 2.0
    return list(values)


def a_generator(x, y, n):
    def each():
        yield from items

    items = first = [x, y]
    rest = each()
    if y > 0.3:
        first = [1.0, 0.5]
    first[0] = x * 2.0
    return sum(rest)


def a_generator_expression(x, y, n):
    items = [x, y]
    rest = (v * 2.0 for v in items)
    if y > 0.3:
        items = [1.0, 0.5]
    items[0] = x * 2.0
    return sum(rest)


def a_method_of_the_list(x, y, n):
    items = [x, y]
    note = items.append
    if y > 0.3:
        items = [1.0, 0.5]
    note(x)
    return sum(items)


def a_partial(x, y, n):
    items = [x, y]
    total = functools.partial(sum, items)
    if y > 0.3:
        items = [1.0, 0.5]
    items[0] = x * 2.0
    return total()


def a_named_tuple(x, y, n):
    items = [x, y]
    named = Named(items)
    if y > 0.3:
        items = [1.0, 0.5]
    named.items[0] = x * 2.0
    return sum(items)


def a_copy_that_a_loop_changes_and_exchanges(x, y, n):
    first = [x, y]
    table = {"items": first}
    if n > 0:
        first = list(first)
    for v in ag.stack([x, y]):
        first[0] += v
        first = [*first, 0.5]
    return sum(first), sum(table["items"])


def an_object_that_a_loop_changes_and_exchanges(x, y, n):
    box = Box(x, [y])
    boxes = [box]
    if n > 0:
        box = Box(y, [x])
    k = ag.constant(0)
    while k < n + 2:
        k += 1
        box.v += x
        box = Box(box.v * 0.5, box.items)
    return box.v, boxes[0].v


def an_item_of_an_object_that_a_loop_changes_and_exchanges(x, y, n):
    box = Box(x, [y])
    items = box.items
    if n > 0:
        box.items = list(items)
    for v in ag.stack([x, y]):
        box.items[0] += v
        box.items = [box.items[0] * 2.0]
    return box.items, items


def a_list_that_a_loop_left_and_another_loop_changes(x, y, n):
    first = [x, y]
    both = [first]
    for v in ag.stack([x, y]):
        if v > 0.4:
            first = [first[0], y]
    for v in ag.stack([x, y]):
        first[0] += v
        first = [first[0], y]
    return first, both


def one_of_two_copies_that_a_loop_changes_and_exchanges(x, y, n):
    first = other = [x, y]
    if n > 0:
        first = list(first)
    if n > 1:
        other = [1.0]
    for v in ag.stack([x, y]):
        first[0] += v
        first = [*first, 0.5]
    return first, sum(other)


def a_staged_list_that_a_loop_extends_and_exchanges(x, y, n):
    first = [1.0]
    box, both = Box(0.5, []), [first, [y, x]]
    k = ag.constant(0)
    while k < n + 1:
        k += 1
        if n > 4:
            break
        (first if n > 1 else first).append(y)
        box.items.append(x)
        first = first
    return first, box.items, both


@pytest.mark.parametrize(
    "program",
    [
        given_up_before_the_next_condition, in_a_match, by_a_function_that_changes_a_variable,
        in_a_branch_that_is_the_rest_of_the_function, when_a_with_statement_is_left, when_a_generator_goes_on,
        while_a_loop_runs_over_the_list, while_a_loop_runs_over_its_pairs, an_iterator, a_view, a_generator,
        a_generator_expression, a_method_of_the_list, a_partial, a_named_tuple,
        a_copy_that_a_loop_changes_and_exchanges, an_object_that_a_loop_changes_and_exchanges,
        an_item_of_an_object_that_a_loop_changes_and_exchanges, a_list_that_a_loop_left_and_another_loop_changes,
        one_of_two_copies_that_a_loop_changes_and_exchanges, a_staged_list_that_a_loop_extends_and_exchanges,
    ],
)  # fmt: skip
def test_refused(program):
    x, y, n = map(ag.constant, POINTS[0])
    with pytest.raises(StagingError, match="also has another name"):
        ag.function(program)(x, y, n)


def a_generator_that_needs_nothing_more(x, y, n):
    box = Box(y, [0.5])
    with lent(box) as box:
        if n == 0:
            box = Box(x, [1.0])
        box.v = x * 2.0
    return box.v


def a_generator_with_a_handler_in_it(x, y, n):
    box = Box(y, [0.5])
    with lent(box) as box:
        try:
            if n == 0:
                box = Box(x, [1.0])
            box.v = x * 2.0
        finally:
            found = box.v
    return found


def a_list_that_only_a_context_manager_holds(x, y, n):
    with contextlib.nullcontext([x, y]) as items:
        for _ in ag.range(n):
            items.append(x)
    return items


def a_list_that_grows_before_it_is_chosen(x, y, n):
    first = [x]
    other = first
    first += [y]
    if n == 0:
        other = [1.0]
    found = sum(other) + sum(first)
    if y > 0.3:
        found = found * 2.0
    return found


def a_loop_over_another_list(x, y, n):
    items, found = [x, y, 0.5], 0.0
    for v in list(items):
        if y > 0.3:
            items = [1.0, x, v]
        items[2] = v
        found = found * 0.5 + v
    return [found, *items]


def of_yields(items):
    yield from items


@pytest.mark.parametrize(
    "made", [enumerate, reversed, lambda items: zip(items, items), lambda items: map(abs, items), of_yields]
)
def test_an_iterator_over_a_list_that_becomes_staged(made):
    def program(x, started):
        items = [x, x * 2.0]
        rest = made(items)
        if started:
            next(rest)
        if x > 0.3:
            items.append(x)
        return [1.0 for _ in rest]

    with pytest.raises(StagingError, match="changes a list that an iterator runs over"):
        ag.function(program)(ag.constant(0.5), False)
    if made is not reversed:
        with pytest.raises(StagingError, match="changes a list that an iterator runs over"):
            ag.function(program)(ag.constant(0.5), True)


def in_a_loop_over_pairs(x):
    items, count = [x, x * 2.0, x], 0.0
    for _ in enumerate(items):
        if x > 0.3:
            items.pop()
        count += 1.0
    return count


def item_by_item(x):
    items = [x, x * 2.0]
    rest = iter(items)
    if x > 0.3:
        items.pop()
    return next(rest)


@pytest.mark.parametrize("program", [in_a_loop_over_pairs, item_by_item])
def test_what_goes_on_in_a_list_that_becomes_staged(program):
    with pytest.raises(StagingError, match="changes a list that an iterator runs over"):
        ag.function(program)(ag.constant(0.9))


def all_that_is_left(x):
    items = [x, x * 2.0, x * 3.0]
    rest = iter(items)
    next(rest)
    if x > 0.3:
        items.append(x * 4.0)
    found = [v * 0.5 for v in rest]
    items.append(x)
    return found, list(rest)


def in_a_loop_that_goes_on(x):
    items, found = [x, x * 2.0, x * 3.0], 0.0
    rest = iter(items)
    next(rest)
    for v in rest:
        found = found * 0.5 + v
        if x > 0.3 and len(items) < 5:
            items.append(v)
    return [found, *items], list(rest)


def as_the_list_of_the_rest(x):
    items = [x, x * 2.0, x * 3.0]
    rest = iter(items)
    if x > 0.3:
        items.pop()
    return list(rest), sum(rest)


@pytest.mark.parametrize("value", [0.1, 0.9])
@pytest.mark.parametrize("program", [all_that_is_left, in_a_loop_that_goes_on, as_the_list_of_the_rest])
def test_an_iterator_follows_a_list_that_becomes_staged(program, value):
    x = ag.constant(value)
    expected = plain(program(x))
    assert plain(ag.function(program)(x)) == expected


@pytest.mark.parametrize(
    "use", [sum, list, lambda items: next(items), lambda items: [v for v in items], lambda items: max(items)]
)
def test_a_generator_over_a_staged_list_that_has_changed_since(use):
    @ag.function
    def program(x, n):
        items = [x]
        for _ in ag.range(n):
            items.append(x)
        rest = (v * 2.0 for v in items)
        items[0] = x * 3.0
        return use(rest)

    with pytest.raises(StagingError, match="has changed since"):
        program(ag.constant(0.5), ag.constant(2))


def a_copy_that_a_loop_changes_while_nobody_reads_the_other(x, y, n):
    first = [x, y]
    both = [first]
    if n > 0:
        first = list(first)
    else:
        first = both[0]
    for v in ag.stack([x, y]):
        first[0] += v
        first = [*first, 0.5]
    return first


def a_copy_that_a_loop_exchanges_unchanged(x, y, n):
    first = [x, y]
    both = [first]
    if n > 0:
        first = list(first)
    for v in ag.stack([x, y]):
        first = [first[0] + v, 0.5]
    return sum(first), sum(both[0])


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize(
    "program",
    [
        a_generator_that_needs_nothing_more, a_generator_with_a_handler_in_it,
        a_list_that_only_a_context_manager_holds, a_list_that_grows_before_it_is_chosen, a_loop_over_another_list,
        a_copy_that_a_loop_changes_while_nobody_reads_the_other, a_copy_that_a_loop_exchanges_unchanged,
    ],
)  # fmt: skip
def test_as_in_python(program, point):
    x, y, n = map(ag.constant, point)
    expected = plain(program(x, y, n))
    assert plain(ag.function(program)(x, y, n)) == pytest.approx(expected, abs=1e-6)


def test_a_handler_does_not_swallow_that_a_staged_list_has_no_iterator():
    @ag.function
    def program(x, n):
        items, found = [x], x
        for _ in ag.range(n):
            items.append(x)
        try:
            found = next(iter(items))
        except Exception:
            found = x * 2.0
        return found

    with pytest.raises(StagingError, match="length is known only at run time"):
        program(ag.constant(0.5), ag.constant(2))


def seen_by_a_generator_only(x, y, n):
    items = [0.5, 0.5]
    rest = (v * y for v in items)
    if n % 2 == 0:
        items = [0.25]
    else:
        items.pop(0)
    items.append(y)
    return list(rest)


def seen_by_an_iterator_only(x, y, n):
    items = []
    rest = iter(items)
    if n == 0:
        items = [y]
    else:
        items.append(x)
    items.append(y)
    return list(rest)


def missing_in_the_copy_of_an_iteration(x, y, n):
    """In the copy there is no item: the error would come from that alone."""
    box, k = Box(y, []), 0
    items = box.items
    while k < n:
        k += 1
        if k == 100:
            items = [v for v in box.items if v > 0.1]
        else:
            box.items.append(y)
        items[0] += y
    return len(items)


def taken_from_the_copy_of_an_iteration(x, y, n):
    items, k = [], 0
    other, box = items, Box(y, items)
    while k < n:
        k += 1
        if n == 2:
            box.items.append(x)
        else:
            items = other
        items.pop()
    return len(other)


def missing_in_the_copy_of_a_branch_that_fails(x, y, n):
    items, k = [], 0
    others = items
    while k < n:
        k += 1
        if k == 3:
            items = [v for v in others if v > 0.1]
        else:
            others.append(x)
            others.append(items[0])
    return len(others)


def seen_by_reversed_of_a_staged_list(x, y, n):
    items = [v for v in [x, y, 0.5] if v > 0.1]
    backward = reversed(items)
    if x > 0.6:
        items.insert(0, y)
    else:
        items = [x]
    items.clear()
    return len(list(backward))


def seen_by_enumerate_of_a_staged_list(x, y, n):
    items = [v for v in [x, y, 0.5] if v > 0.1]
    numbered = enumerate(items)
    if x > 0.6:
        items.insert(0, y)
    else:
        items = [x]
    items.clear()
    return len(list(numbered))


def seen_by_map_of_a_staged_list(x, y, n):
    items = [v for v in [x, y, 0.5] if v > 0.1]
    doubled = map(lambda v: 2 * v, items)
    if x > 0.6:
        items.insert(0, y)
    else:
        items = [x]
    items.clear()
    return len(list(doubled))


def held_by_two_copies_only(x, y, n):
    items, others, chosen = [x], [y], []
    if n % 2 == 0:
        chosen = items
    else:
        items.append(x)
    if n <= 0:
        items, others = others, items
    items.append(y)
    return len(chosen)


@pytest.mark.parametrize(
    "program",
    [
        held_by_two_copies_only, seen_by_a_generator_only, seen_by_an_iterator_only,
        missing_in_the_copy_of_an_iteration,
        taken_from_the_copy_of_an_iteration, missing_in_the_copy_of_a_branch_that_fails,
        seen_by_reversed_of_a_staged_list, seen_by_enumerate_of_a_staged_list, seen_by_map_of_a_staged_list,
    ],
)  # fmt: skip
def test_refused_before_it_goes_wrong(program):
    x, y, n = 0.9, 0.7, 2
    program(x, y, n)  # no error in Python
    with pytest.raises(StagingError, match="also has another name"):
        ag.function(program)(ag.constant(x), ag.constant(y), ag.constant(n))


@pytest.mark.parametrize("n", [0, 3])
def test_an_empty_list_raises_in_its_branch(n):
    def program(x, n):
        items = []
        if n > 2:
            items.pop()
        return x

    def outcome(function):
        try:
            return float(function(ag.constant(0.5), ag.constant(n)))
        except IndexError as error:
            return str(error).splitlines()[0]

    assert outcome(ag.function(program)) == outcome(program)
