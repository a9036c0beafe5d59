"""Promises: Lists, dictionaries, objects and queues that change."""

from __future__ import annotations

import bisect
import collections
import dataclasses
import enum
import heapq

import numpy as np

import autograph as ag
from autograph.errors import StagingError, StagingTypeError
from tests.promises.registry import Box, kept, refused

box = Box()
total = 0.0


@kept("Items and attributes")
def items_and_attributes(t):
    row, table, one = [0.0, 1.0], {"k": 0.0}, Box()
    for v in t:
        row[0] += v
        table["k"] = v
        one.n = one.n * 0.5 + v
    return row[0], table["k"], one.n


def put(value, kept={"n": 0.0}):  # noqa: B006 - it is what this is about
    global total
    total = value
    kept["n"] = kept["n"] + value
    Box.count += 1
    put.calls += 1
    vars(box)["n"] = value
    setattr(box, "m", value)
    return kept["n"]


@kept("Names and attributes elsewhere")
def names_elsewhere(t):
    put.calls = Box.count = 0
    put.__defaults__[0]["n"] = box.m = 0.0
    for v in t:
        if v > 0.5:
            last = put(v)
    return total, Box.count, put.calls, box.n, box.m, put.__defaults__[0]["n"], last


def count():
    if not hasattr(count, "n"):
        count.n = 0
    count.n += 1


@refused("Names and attributes elsewhere", StagingError, "gets its first value in a loop")
def attribute_made_by_a_helper(t):
    vars(count).pop("n", None)
    for _ in t:
        count()


@kept("Names and attributes elsewhere")
def attributes_made_in_a_loop(t):
    one, unmet = Box(), Box()
    for v in t:
        if not hasattr(one, "calls"):
            one.calls = 0
        one.calls += 1
        if not hasattr(one, "best") or one.best < v:
            one.best = v
        if v > 9.0:
            unmet.best = v
    return one.calls, one.best, hasattr(one, "best"), hasattr(unmet, "best"), getattr(unmet, "best", 7.0)


@kept("Calls of other traced functions")
def traced_function_that_appends(t):
    found = []
    note = ag.function(lambda v: found.append(v))
    for v in t:
        note(v)
    return len(found), sum(found)


@refused("Functions that the program calls", StagingError, "which the program calls when it runs")
def called_function_that_appends(t):
    found = []
    for v in t:
        ag.py_function(lambda v: found.append(1), [v], [])
    return len(found) + t[0]


@kept("Conditions of loops")
def condition_that_changes_state(t):
    rows, trips = [v for v in t], 0
    while rows.pop() < 4.0:
        trips += 1
    return trips, len(rows)


@kept("Lists that grow")
def lists_that_grow(t):
    found = []
    for v in t:
        found.append(v)
        found.insert(0, v * 2.0)
        if v > 2.0:
            found.pop()
        found += [v + 1.0]
        found.extend([v])
        del found[0]
    return ag.stack(found), len(found)


class Point(collections.namedtuple("Point", "x y")):
    pass


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: object


IDLE, BUSY = Box(1.0), Box(2.0)


@kept("Objects")
def objects(t):
    point, frozen, one, state = Point(0.0, 1.0), Frozen(0.0), Box(), IDLE
    for v in t:
        point = Point(point.x + v, point.y)
        frozen = Frozen(frozen.x + v)
        one = one.step(v)
        if v > 2.0:
            state = BUSY
        elif v < 0.5:
            state = IDLE
    return point.x, frozen.x, one.n, state is IDLE, state == BUSY, state in [IDLE], {IDLE: 1, BUSY: 2}[state], state.n


class Phase(enum.IntEnum):
    IDLE = 1
    BUSY = 2


@kept("Members of enums")
def members_of_enums(t):
    phase, counts, named = Phase.IDLE, {Phase.IDLE: 0, Phase.BUSY: 0}, 0
    for v in t:
        phase = Phase.BUSY if v > 1.5 else Phase.IDLE
        counts[phase] += 1
        match phase:
            case Phase.BUSY:
                named += 1
    answers = (
        phase is Phase.IDLE,
        phase == Phase.BUSY,
        phase < Phase.BUSY,
        phase in (Phase.BUSY,),
        isinstance(phase, Phase),
    )
    return *answers, phase.value, phase + 1, Phase(phase.value) is phase, counts[Phase.BUSY], named


@refused("Members of enums", StagingTypeError, "")
def member_in_a_set(t):
    phase = Phase.IDLE
    if t[0] > 1.0:
        phase = Phase.BUSY
    return len({phase}) + t[0]


@kept("Strings that a branch")
def chosen_strings(t):
    mode = "idle"
    for v in t:
        if v > 4.0:
            mode = "run"
    return mode, mode == "run", len(mode), mode.upper()


def euler(x):
    return x + 1.0


def doubled(x):
    return x * 2.0


@kept("Functions and classes of a module")
def chosen_functions(t):
    step, kind = euler, Box
    if t[0] > 1.0:
        step, kind = doubled, Phase
    return step(t[3]), step is doubled, kind is Box


@kept("items[i] with a tensor")
def items_at_tensors(t):
    items = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    chosen = 0.0
    for v in t:
        chosen += items[int(v)]
    return items[int(t[2])], chosen


@kept("Changes at a tensor index")
def changes_at_tensors(t):
    i = int(t[2])
    items = [1.0, 2.0, 3.0, 4.0]
    items[i] = 7.0
    items[i] += 1.0
    items.insert(i, 9.0)
    del items[i + 1]
    gone = items.pop(i - 1)
    table = [[1.0, 2.0], [3.0, 4.0]]
    table[i - 1][0] = t[0]
    return ag.stack(items), gone, table[1][0]


@kept("NumPy arrays that the function makes")
def numpy_arrays(t):
    best, table = np.zeros(6), np.full((2, 3), 1.0)
    row = table[1]
    for v in t:
        k = int(v)
        best[k] = max(best[k], v)
        row[1:] += v
    return best[3], best[5], table[1, 2], table[0, 2]


@refused("An index out of range raises IndexError", IndexError, "")
def index_out_of_range(t):
    found = []
    for v in t:
        found.append(v)
    return found[int(t[3])]


@kept("Dictionaries at keys that are known only")
def keys_at_run_time(t):
    counts, by_pair = collections.Counter({k: 0 for k in range(6)}), {(0, "a"): 1, (3, "a"): 2}
    for v in t:
        counts[int(v)] += 1
        counts[3] += by_pair.get((int(v), "a"), 0)
    return counts[3], counts[int(t[0])], counts.get(int(t[1]) + 9, 0), int(t[3]) in counts


@refused("Dictionaries at keys that are known only", KeyError, "")
def new_key(t):
    counts = {0: 0, 1: 0}
    for v in t:
        counts[int(v)] += 1
    return counts[0]


@refused("Not supported, with a", StagingError, "a set")
def set_changed(t):
    found = set()
    for _ in t:
        found.add(1)
    return len(found) + t[0]


@refused("Not supported, with a", StagingError, "exchanged")
def class_exchanged(t):
    one = Box()
    if t[0] > 1.0:
        one.__class__ = Frozen
    return t[0]


# --- lists, heaps and queues ----------------------------------------------------------------------------------------


@kept("Lists: lst[i]")
def what_lists_do(t):
    found = [(v, v * 2.0) for v in t if v > 0.5]
    numbers = [v for v in t]
    numbers.sort(reverse=True)
    numbers.remove(5.0)
    first, *rest = numbers
    by_second = sorted(found, key=lambda pair: -pair[1])
    answers = found == found[:], numbers < [9.0], numbers.index(2.0), numbers.count(1.0), first, len(rest)
    return (
        *answers,
        by_second[0][0],
        min(numbers),
        max(numbers),
        sum(numbers[::2]),
        3.0 in numbers,
        ag.stack(numbers * 2),
    )


@kept("heapq (all functions")
def heaps(t):
    queue, order = [], []
    for v in t:
        heapq.heappush(queue, (v, v + 1.0))
    while queue:
        order.append(heapq.heappop(queue)[1])
    return ag.stack(order), bisect.bisect_left(order, 3.0), bisect.bisect(order, 3.0, lo=1)


@kept("collections.deque made in the function")
def deques(t):
    queue = collections.deque(maxlen=3)
    for v in t:
        queue.append(v)
        queue.appendleft(v * 2.0)
    queue.rotate(1)
    return len(queue), queue[0], queue.pop(), sum(queue), 2.0 in queue
