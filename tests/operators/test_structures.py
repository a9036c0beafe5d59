"""Lists, heaps, sorted lists and deques of numbers, tuples and objects, in loops, branches and helpers: as in Python.

Each step uses several methods of a structure, and gives a number that depends on all of their results. A program fills
a list from a tensor and takes the step in one of the places.
"""

from __future__ import annotations

import bisect
import dataclasses
import heapq
from collections import deque

import numpy as np
import pytest

import autograph as ag

X = np.array([3.0, 1.25, 4.0, 1.5, 5.5, 2.25, 0.75])


@dataclasses.dataclass(order=True)
class Item:
    value: object
    place: object


class Node:
    def __init__(self, value, place):
        self.value = value
        self.place = place

    def __eq__(self, other):
        return self.value == other.value

    def __lt__(self, other):
        return self.value < other.value

    def __le__(self, other):
        return self.value <= other.value

    __hash__ = None


def of_int(value, place):
    return place * 5 % 7


def of_float(value, place):
    return value


def of_tuple(value, place):
    return (value, place)


def number(element):
    if isinstance(element, tuple):
        return element[0] + 0.125 * element[1]
    if isinstance(element, (Item, Node)):
        return element.value + 0.125 * element.place
    return element * 1.0


def score(elements):
    total = 0.0
    for each in elements:
        total = total * 0.5 + number(each)
    return total


ELEMENTS = {"ints": of_int, "floats": of_float, "tuples": of_tuple, "dataclasses": Item, "objects": Node}


# --- steps ---------------------------------------------------------------------------------------------------------


def search(items, element):
    items.append(element)
    items.append(element)
    found = items.index(element) + 10.0 * items.count(element)
    if element in items:
        found += 100.0
    items.remove(element)
    found += 0.25 * items.index(element, 1)
    items.remove(element)
    return found + score(items)


def order(items, element):
    ends = number(min(items)) + 2.0 * number(max(items))
    ends += 3.0 * number(min(items, key=away)) + 4.0 * number(max(items, key=lambda e: (away(e), number(e))))
    smallest = number(min([each for each in items if number(each) > 100.0], default=element))
    rising = score(sorted(items)) + 2.0 * score(sorted(items, reverse=True)) + 3.0 * score(sorted(items, key=away))
    items.sort(key=lambda e: -number(e))
    first = number(items[0])
    items.sort()
    items.sort(key=away, reverse=True)
    return ends + smallest + rising + first + score(items)


def away(element):
    return abs(number(element) - 2.0)


def edit(items, element):
    middle = items[1:3]
    items[1:2] = [element, element]
    items.insert(1, element)
    taken = items.pop(2)
    items.reverse()
    del items[-2:-1]
    both = items + middle
    twice = middle * 2
    items[::2] = items[::-2]
    del items[::3]
    return number(taken) + score(both) + 2.0 * score(twice) + 3.0 * score(items)


def compare(items, element):
    other = items[:]
    found = 0.0
    if items == other:
        found += 1.0
    other.append(element)
    if items != other:
        found += 2.0
    if items < other:
        found += 4.0
    if not items >= other:
        found += 8.0
    if items[0] < items[1]:
        found += 16.0
    first, *rest = items
    return found + number(first) + score(rest)


def heap(items, element):
    queue = items[:]
    heapq.heapify(queue)
    found = score(queue)
    heapq.heappush(queue, element)
    found += 2.0 * score(queue) + number(heapq.heappop(queue))
    found += number(heapq.heapreplace(queue, element)) + number(heapq.heappushpop(queue, items[0]))
    weight = 1.0
    while queue:
        found += weight * number(heapq.heappop(queue))
        weight *= 0.5
    return found


def several(items, element):
    found = score(heapq.nsmallest(3, items)) + 2.0 * score(heapq.nlargest(2, items))
    found += 3.0 * score(heapq.nsmallest(2, items, key=away))
    merged = []
    for each in heapq.merge(sorted(items), sorted(items[:2]), [element]):
        merged.append(each)
    return found + score(merged)


def sorted_list(items, element):
    kept = []
    for each in items:
        bisect.insort(kept, each)
    found = bisect.bisect_left(kept, element) + 10.0 * bisect.bisect_right(kept, element)
    found += 100.0 * bisect.bisect(kept, element, 1, 3)
    bisect.insort_left(kept, element)
    by_distance = sorted(items, key=away)
    found += 1000.0 * bisect.bisect_left(by_distance, 0.9, key=away)
    return found + score(kept)


def ends(items, element):
    queue = deque()
    for each in items:
        queue.append(each)
        queue.appendleft(element)
        if len(queue) > 5:
            queue.popleft()
    found = score(queue) + 2.0 * number(queue.pop()) + number(queue.popleft())
    queue.extend(items)
    queue.extendleft(items)
    while len(queue) > 3:
        found += number(queue.popleft())
        found = found * 0.5 + number(queue.pop())
    return found + score(queue)


def places(items, element):
    queue = deque(items, maxlen=4)
    queue.append(element)
    queue[1] = element
    found = number(queue[0]) + 2.0 * number(queue[-1]) + queue.index(element) + 10.0 * queue.count(element)
    queue.rotate(1)
    found += 3.0 * score(queue)
    queue.remove(element)
    queue.insert(1, element)
    queue.reverse()
    del queue[0]
    if element in queue and isinstance(queue, deque):
        found += 5.0
    copied = queue.copy()
    copied.append(element)
    if queue != copied and len(copied) == len(queue) + 1:
        found += 7.0
    return found + score(queue) + number(max(queue)) + score(sorted(copied)) + score(reversed(queue))


STEPS = [search, order, edit, compare, heap, several, sorted_list, ends, places]


# --- places --------------------------------------------------------------------------------------------------------


def in_loop(step, make):
    def program(x):
        items = []
        for index, value in enumerate(x):
            items.append(make(value, index))
        total = 0.0
        round_ = 0
        while round_ < x[0] - 1.0:
            total = total * 0.5 + step(items, make(x[round_], round_))
            round_ += 1
        return total

    return program


def in_branch(step, make):
    def program(x):
        items = []
        for index, value in enumerate(x):
            items.append(make(value, index))
        if x[0] > x[1]:
            total = step(items, make(x[2], 2))
        else:
            total = score(items)
        return total + score(items)

    return program


def in_helper(step, make):
    def filled(x):
        items = []
        for index, value in enumerate(x):
            if value > 1.0:
                items.append(make(value, index))
        return items

    def program(x):
        items = filled(x)
        return step(items, items[1]) + score(items)

    return program


PLACES = [in_loop, in_branch, in_helper]
CASES = [(step, kind, place) for step in STEPS for kind in ELEMENTS for place in PLACES]
# Compiling takes longer: each step with each kind of elements, in one of the places.
COMPILED = [(step, kind, PLACES[n % 3]) for n, (step, kind) in enumerate((s, k) for s in STEPS for k in ELEMENTS)]


def _id(value):
    return value if isinstance(value, str) else value.__name__


@pytest.mark.parametrize(("step", "kind", "place"), CASES, ids=_id)
def test_as_python(step, kind, place):
    program = place(step, ELEMENTS[kind])
    made = ag.function(program)(ag.constant(X))
    np.testing.assert_allclose(np.asarray(made), program([float(each) for each in X]), rtol=1e-12)


@pytest.mark.parametrize(("step", "kind", "place"), COMPILED, ids=_id)
def test_compiled(step, kind, place):
    program = place(step, ELEMENTS[kind])
    made = ag.function(program, jit_compile=True)(ag.constant(X))
    np.testing.assert_allclose(np.asarray(made), program([float(each) for each in X]), rtol=1e-12)


@pytest.mark.parametrize("kind", ["floats", "tuples", "objects"])
@pytest.mark.parametrize("step", STEPS, ids=_id)
def test_gradient(step, kind):
    program = in_branch(step, ELEMENTS[kind])
    x = ag.constant(X)
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = ag.function(program)(x)
    gradient = tape.gradient(y, x)
    expected = []
    for place in range(len(X)):
        sides = []
        for step_size in (1e-6, -1e-6):
            moved = [float(each) for each in X]
            moved[place] += step_size
            sides.append(program(moved))
        expected.append((sides[0] - sides[1]) / 2e-6)
    np.testing.assert_allclose(np.asarray(gradient), expected, rtol=1e-5, atol=1e-6)
