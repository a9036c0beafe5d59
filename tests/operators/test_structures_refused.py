"""Heaps, deques, lists and dictionaries of the program: errors as in Python, at the user's line; what is refused."""

from __future__ import annotations

import collections
import heapq

import numpy as np
import pytest

import autograph as ag
from autograph.errors import StagingError, StagingTypeError

X = np.array([3.0, 1.0, 4.0])


def filled(x):
    items = []
    for value in x:
        items.append(value)
    return items


def empty_heap(x):
    heap = filled(x)
    while len(heap) >= 0:
        heapq.heappop(heap)
    return heap


def empty_deque(x):
    queue = collections.deque(filled(x))
    while len(queue) >= 0:
        queue.popleft()
    return len(queue)


def deque_index(x):
    queue = collections.deque(filled(x))
    return queue[int(x[0])]


def full_deque(x):
    queue = collections.deque(filled(x), maxlen=3)
    queue.insert(0, x[0])
    return queue


def missing_item(x):
    pairs = [(value, 1) for value in x]
    pairs.remove((x[0], 2))
    return pairs


def too_many(x):
    items = filled(x)
    first, second = items
    return first + second


def other_size(x):
    items = filled(x)
    items[::2] = [1.0]
    return items


def missing_key(x):
    table = {0: 1.0, 1: 2.0}
    return table[int(x[0])]


def negative(x):
    return heapq.nsmallest(int(-x[0]), filled(x)), collections.deque(filled(x), maxlen=0)


RAISED = {
    empty_heap: (IndexError, "index out of range", "heapq.heappop(heap)"),
    empty_deque: (IndexError, "pop from an empty deque", "queue.popleft()"),
    deque_index: (IndexError, "deque index out of range", "return queue[int(x[0])]"),
    full_deque: (IndexError, "deque already at its maximum size", "queue.insert(0, x[0])"),
    missing_item: (ValueError, "x not in list", "pairs.remove((x[0], 2))"),
    too_many: (ValueError, "too many values to unpack (expected 2)", "first, second = items"),
    other_size: (ValueError, "attempt to assign sequence", "items[::2] = [1.0]"),
    missing_key: (KeyError, "", "return table[int(x[0])]"),
}


@pytest.mark.parametrize("jit_compile", [None, True])
@pytest.mark.parametrize("program", RAISED, ids=lambda program: program.__name__)
def test_errors_are_those_of_python_at_the_line(program, jit_compile):
    kind, message, line = RAISED[program]
    with pytest.raises(kind):
        program([float(each) for each in X])
    with pytest.raises(kind) as caught:
        ag.function(program, jit_compile=jit_compile)(ag.constant(X))
    assert message in str(caught.value) and line in str(caught.value)


def test_edges():
    smallest, queue = ag.function(negative)(ag.constant(X))
    assert smallest == [] and queue == collections.deque(maxlen=0) and queue.maxlen == 0


def test_a_deque_arrives_outside_as_pythons():
    @ag.function
    def latest(x):
        return {"latest": collections.deque(filled(x), maxlen=2)}

    found = latest(ag.constant(X))["latest"]
    assert type(found) is collections.deque and found.maxlen == 2 and [float(each) for each in found] == [1.0, 4.0]


def test_a_deque_that_stays_outside_is_pythons():
    class Box:
        queue = None

    box = Box()

    @ag.function
    def keep(x):
        if box.queue is None:
            box.queue = collections.deque([1, 2, 3], maxlen=2)
        return x + box.queue[0]

    assert float(keep(ag.constant(1.0))) == 3.0
    assert type(box.queue) is collections.deque and box.queue == collections.deque([2, 3], maxlen=2)


def test_a_deque_of_tensors_can_not_stay_outside():
    class Box:
        queue = None

    box = Box()

    @ag.function
    def keep(x):
        box.queue = collections.deque()
        for value in x:
            box.queue.append(value)
        return x

    with pytest.raises(StagingError, match="outside of the function"):
        keep(ag.constant(X))


def test_functions_traced_by_themselves_do_not_take_deques():
    @ag.function
    def first(queue):
        return queue[0]

    @ag.function
    def outer(x):
        queue = collections.deque([1.0])
        found = first(queue)
        queue[0] = 2.0
        return x + found + first(queue)

    with pytest.raises(StagingTypeError, match="'first' uses a deque that the traced function around it has made"):
        outer(ag.constant(1.0))


def test_objects_without_eq_are_not_looked_for():
    class Node:
        def __init__(self, value):
            self.value = value

    @ag.function
    def drop(x):
        nodes = []
        for value in x:
            nodes.append(Node(value))
        chosen = nodes[1]
        nodes.remove(chosen)
        return len(nodes)

    with pytest.raises(StagingTypeError, match="an object of class Node"):
        drop(ag.constant(X))


@pytest.mark.parametrize("kind", [dict, collections.Counter, lambda: collections.defaultdict(float)])
def test_a_dictionary_gets_no_key_of_the_program(kind):
    @ag.function
    def fill(x):
        table = kind()
        for value in x:
            table[int(value)] = table.get(int(value), 0) + 1
        return len(table)

    with pytest.raises(TypeError, match=r"give a dictionary all keys that may come before"):
        fill(ag.constant(X))


def test_keys_among_those_that_are_there():
    def count(x):
        counts = collections.Counter(dict.fromkeys(range(12), 0))
        sums = collections.defaultdict(float, {(i, j): 0.0 for i in range(2) for j in range(2)})
        for value in x:
            counts[int(value)] += 1
            sums[int(value) % 2, int(value) // 2 % 2] += value
        return counts[3], counts[4], counts[int(x[0]) + 100], sums[1, 1], sums[1, 0], counts.get(int(x[1]), 7)

    found = [float(each) for each in ag.function(count)(ag.constant(X))]
    assert found == [float(each) for each in count([float(each) for each in X])]


@pytest.mark.parametrize("jit_compile", [None, True])
def test_an_operand_that_raises_while_it_is_traced_first(jit_compile):
    def above(x):
        items = []
        taken = 0
        for value in x:
            while len(items) > taken and items[-1] <= value:
                items.pop()
            items.append(value)
            if value > 2.0:
                taken += 1
        return len(items) + 10 * taken

    made = ag.function(above, jit_compile=jit_compile)(ag.constant(X))
    assert int(made) == above([float(each) for each in X])
