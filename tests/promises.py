"""The promises of docs/staging.md and docs/migrating.md, each with programs that keep it.

A promise is an item of a list in these pages, named here by its first words. `test_promises.py` runs the programs in
every mode, and sees that no promise is without one.
"""

from __future__ import annotations

import bisect
import collections
import contextlib
import dataclasses
import enum
import heapq
import io

import numpy as np

import autograph as ag
from autograph.errors import StagingError, StagingTypeError

GIVEN = [3.0, 0.0, 2.0, 5.0, 1.0]
KEPT: list = []  # promise, program: what it gives in Python, it gives in every mode
REFUSED: list = []  # promise, program, error, words of the message: the error is raised at a line of the program
CHECKED: list = []  # promise, check: a test of its own

# Promises that tests of their own keep: files under tests.
ELSEWHERE = {
    "Instances are immutable": "extension_types/test_classes.py",
    "Tensors, ragged and sparse tensors and other": "extension_types/test_traced.py",
    "Masked.Spec describes": "extension_types/test_traced.py",
    "A class that derives from": "extension_types/test_batches.py",
    "Functions of tensors don't accept": "extension_types/test_classes.py",
    "Annotations may be": "extension_types/test_classes.py",
}


def kept(promise):
    return lambda program: KEPT.append((promise, program)) or program


def refused(promise, error, words):
    return lambda program: REFUSED.append((promise, program, error, words)) or program


def checked(promise):
    return lambda check: CHECKED.append((promise, check)) or check


class Box:
    count = 0

    def __init__(self, n=0.0):
        self.n = n

    def step(self, v):
        return Box(self.n + v)


box = Box()
total = 0.0


# --- staging.md: lists, dictionaries, objects -----------------------------------------------------------------------


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


@refused("An index out of range raises IndexError", IndexError, "promises.py")
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


@refused("Dictionaries at keys that are known only", KeyError, "promises.py")
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


# --- numbers --------------------------------------------------------------------------------------------------------


@checked("Default dtypes")
def default_dtypes(mode):
    def run(t):
        small, wide, real = 0, 0, 0.0
        for _ in t:
            small, wide, real = small + 1, wide + 2**40, real + 1.0
        return small, wide, real, int(ag.cast(t[0], ag.int64)) + small

    assert [each.dtype for each in mode(run)(ag.constant(GIVEN))] == [ag.int32, ag.int64, ag.float32, ag.int64]


@kept("Range")
def range_of_numbers(t):
    k, hashed = 7, 1
    for v in t:
        k = (k * 5 + int(v)) % 1013
        hashed = (hashed * 6364136223846793005 + 1442695040888963407) & (2**32 - 1)
    return k // -3, k % -5, k**2, round(k / 7, 2), hashed % 1000, pow(k, 10**6, 10**15 + 37)


@refused("Range", OverflowError, "promises.py")
def number_too_large(t):
    k = 1
    for _ in t:
        k *= 2**20
    return k


@refused("Range", ZeroDivisionError, "promises.py")
def division_by_zero(t):
    k = 0
    for _ in t:
        k += 1
    return k // (k - 5)


@kept("Mixed types")
def mixed_types(t):
    k = 1
    for v in t:
        k = 2 if v > 4.0 else 0.5
    return k * 3, 1 if t[0] > 1.0 else 0.25


@kept("Inspection")
def inspection(t):
    k, name = 0, ""
    for _ in t:
        k += 1
    match k:
        case int(n):
            name = str(n)
    return isinstance(k, int), type(k) is int, name, ag.is_tensor(k)


@refused("Inspection", StagingTypeError, "")
def identity_of_numbers(t):
    k, m = 0, 0
    for _ in t:
        k, m = k + 1, m + 1
    return k is m


@kept("Flags and None")
def flags_and_none(t):
    flag, found = False, None
    for v in t:
        if v > 4.0:
            flag, found = True, v
    matched = 0
    match (flag, found):
        case (True, None):
            matched = 1
        case (True, _):
            matched = 2
    return flag is True, isinstance(flag, bool), found is None, found != None, found in (None,), matched  # noqa: E711


@checked("Lists. A staged list of numbers")
def lists_of_numbers(mode):
    def run(t):
        found = []
        for _ in t:
            found.append((2**40, t[0]))
        return found[0][0], found[0][1]

    number, tensor = mode(run)(ag.constant(GIVEN))
    assert (int(number), number.dtype, tensor.dtype) == (2**40, ag.int64, ag.float32)


@kept("Calls. An")
def numbers_in_calls(t):
    double = ag.function(lambda k: k * 2 if isinstance(k, int) else k)
    k = 0
    for _ in t:
        k += 1
    return double(k)


# --- strings --------------------------------------------------------------------------------------------------------


@kept("Operations. All methods of strings")
def strings(t):
    marks = ""
    for v in t:
        marks += "ab"[int(v) % 2]
    head, _, tail = marks.partition("a")
    key, *values = f"{len(marks)}={marks}=x".split("=")
    counts = len(marks), marks.count("b"), marks.find("a"), int("4" + str(len(marks))), ord(marks[0])
    return (
        marks.upper(),
        marks[1:4],
        f"{marks:>8}|{t[0]:.1f}",
        marks * 2,
        "ba" in marks,
        *counts,
        head,
        tail,
        key,
        values[0],
    )


@kept("Known strings stay known")
def known_strings(t):
    mode = "idle"
    if t[0] > 1.0:
        mode = "run"
    return {"idle": 1, "run": 2}[mode], mode.startswith("r"), "-".join([mode, mode])


@checked("As tensors")
def strings_as_tensors(mode):
    def run(t):
        text = "x"
        if t[0] > 1.0:
            text = "xyz"
        return text, ag.strings.length(text)

    text, length = mode(run)(ag.constant(GIVEN))
    assert (text.dtype, text.numpy(), int(length)) == (ag.string, b"xyz", 3)


@kept("table[text], table.get(text)")
def texts_as_keys(t):
    counts = {"low": 0, "high": 0}
    for v in t:
        name = "high" if v > 1.5 else "low"
        counts[name] += 1
    return counts["low"], counts["high"], counts.get(name, 9)


@refused("Refused are what Python needs", StagingTypeError, "")
def set_of_a_text(t):
    text = ""
    for v in t:
        text += "ab"[int(v) % 2]
    return len(set(text))


@kept("text and condition")
def text_and_condition(t):
    text = ""
    for v in t:
        text += "x"
    return 1 if text and t[0] > 1.0 else 0


# --- comprehensions -------------------------------------------------------------------------------------------------


@kept("A generator expression over something staged")
def generators(t):
    found = [v for v in t]
    found.extend(v + found[-1] for v in t)
    return ag.stack(found), sum(v * v for v in t if v > 1.0)


@kept("A list comprehension with :=")
def walrus_in_comprehensions(t):
    kept = [y for v in t if (y := v * 2.0) > 3.0]
    return ag.stack(kept), y


@kept("Sets, dictionaries, iter and next")
def pythons_containers(t):
    table = {i: v for i, v in enumerate(t)}
    return table[3], len(table), next(iter(t))


@kept("next of a generator expression")
def next_of_generators(t):
    large = (v for v in t if v > 1.5)
    return next(large), next(large), next((v for v in t if v > 9.0), -1.0)


@checked("The index of enumerate")
def index_of_enumerate(mode):
    def run(t):
        last = ag.constant(0)
        for i, _ in enumerate(t):
            last = i
        for j, _ in enumerate(ag.data.Dataset.range(3)):
            count = j
        return last, count

    assert [each.dtype for each in mode(run)(ag.constant(GIVEN))] == [ag.int32, ag.int64]


@kept("sum, any, all, min and max")
def functions_of_all_items(t):
    found = [v for v in t if v > 0.5]
    tops = max(found, key=lambda v: -v), min(found, default=0.0), max([v for v in t if v > 9.0], default=7.0)
    flags = any(v > 4.0 for v in t), all(v > 4.0 for v in t)
    return *tops, *flags, ag.stack(sorted(found, reverse=True)), ag.stack(list(t)), len(found)


# --- functions that call themselves ---------------------------------------------------------------------------------


class Counter:
    def __init__(self):
        self.calls = 0

    def depth(self, n):
        self.calls += 1
        return 0 if n < 1.0 else 1 + self.depth(n - 1.0)


def is_even(n):
    return True if n < 0.5 else is_odd(n - 1.0)


def is_odd(n):
    return False if n < 0.5 else is_even(n - 1.0)


@kept("This includes functions that call each other")
def recursion(t):
    def nested(n):
        return n if n < 1.0 else nested(n - 1.0) * 2.0 + 1.0

    return is_even(t[0]), Counter().depth(t[3]), nested(t[2])


@kept("Arguments that differ between calls")
def state_of_recursion(t):
    counter = Counter()
    return counter.depth(t[3]) + counter.calls, counter.calls


@refused("Results may be structures", StagingError, "")
def no_base_case(t):
    def endless(n):
        return endless(n - 1.0) if n > 0.0 else endless(n + 1.0)

    return endless(t[0])


@kept("Calls that differ in Python values")
def unrolled_calls(t):
    def power(x, n):
        return 1.0 if n == 0 else x * power(x, n - 1)

    return power(t[0], 3)


@checked("Like a loop's body, the function is traced")
def recursion_prints(mode):
    def fall(n):
        print("traced")
        return n if n < 1.0 else fall(n - 1.0)

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert float(mode(fall)(ag.constant(2.5))) == 0.5
    assert printed.getvalue().count("traced") >= 1


@refused("More than 1000 nested calls", RecursionError, "promises.py")
def deep_recursion(t):
    def sink(n):
        return n if n < 1.0 else sink(n - 1.0) + 1.0

    return sink(t[0] * 1000.0)


@kept("Native code makes real calls")
def arrays_in_calls(t):
    def fill(x, n):
        return x if n < 0.5 else fill(ag.tensor_scatter_nd_update(x, [[int(n)]], [n]), n - 1.0)

    return fill(t, t[0]), t


@checked("Gradients of any order flow")
def gradients_of_recursion(mode):
    def cube(x, n):
        return ag.ones_like(x) if n < 0.5 else x * cube(x, n - 1.0)

    x, run = ag.constant(2.0), mode(cube)
    with ag.GradientTape() as outer:
        outer.watch(x)
        with ag.GradientTape() as inner:
            inner.watch(x)
            y = run(x, ag.constant(3.0))
        slope = inner.gradient(y, x)
    assert [float(slope), float(outer.gradient(slope, x))] == [12.0, 12.0]


# --- raise, print and what follows ----------------------------------------------------------------------------------


@kept("try in the same function")
def raised_and_caught(t):
    caught = 0
    for v in t:
        try:
            if v > 2.5:
                raise ValueError("large")
            caught += 10
        except ValueError:
            caught += 1
        else:
            caught += 100
        finally:
            caught += 1000
    return caught


@refused("Errors from elsewhere", StagingError, "a `try` around the condition would catch it")
def error_from_elsewhere(t):
    def check(v):
        if v > 2.5:
            raise ValueError("large")

    try:
        check(t[0])
    except ValueError:
        return 1.0
    return t[0]


@refused("IndexError, KeyError and ZeroDivisionError", IndexError, "promises.py")
def python_value_out_of_range(t):
    empty = []
    if t[0] > 1.0:
        return empty[0]
    return t[0]


@refused("assert: in a try", AssertionError, "too small")
def failed_assertion(t):
    for v in t:
        assert v > 0.5, "too small"
    return t[0]


@kept("assert: in a try")
def caught_assertion(t):
    caught = 0
    for v in t:
        try:
            assert v > 0.5
        except AssertionError:
            caught += 1
    return caught


@kept("with contextlib.suppress")
def suppressed(t):
    passed = 0
    for v in t:
        with contextlib.suppress(KeyError):
            if v > 2.5:
                raise KeyError("large")
            passed += 1
    return passed


def _printed(run, *arguments):
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        for _ in range(2):
            run(*arguments)
    return shown.getvalue()


@checked("Outside of staged blocks print")
def prints_while_tracing(mode):
    def run(t):
        print("once")
        return t[0]

    assert _printed(mode(run), ag.constant(GIVEN)) == "once\n"


@checked("Inside a staged branch or loop, print")
def prints_at_run_time(mode):
    def run(t):
        for v in t:
            if v > 2.5:
                print("large", v, f"{v:.2f}")

    assert _printed(mode(run), ag.constant(GIVEN)) == "large 3 3.00\nlarge 5 5.00\n" * 2


@checked("ag.print always prints at run time")
def ag_print(mode):
    def run(t):
        ag.print("sum", ag.reduce_sum(t), output_stream=shown)

    shown = io.StringIO()
    for _ in range(2):
        traced = mode(run)
        traced(ag.constant(GIVEN))
    assert shown.getvalue() == "sum 11\n" * 2


@refused("An f-string shows the values", ValueError, "the sum is 11.00")
def f_string_in_an_error(t):
    if t[0] > 1.0:
        raise ValueError(f"the sum is {ag.reduce_sum(t):.2f}")


@checked("np.random. and random.")
def random_numbers(mode):
    def run(t):
        drawn = 0.0
        for _ in t:
            drawn = drawn * 2.0 + np.random.random()
        return drawn

    traced = mode(run)
    for seed in (1, 2):
        np.random.seed(seed)
        got = float(traced(ag.constant(GIVEN)))
        np.random.seed(seed)
        np.testing.assert_allclose(got, run(GIVEN), rtol=1e-6)


@checked("time. (")
def the_time(mode):
    import time

    traced = mode(lambda t: time.perf_counter() + 0.0 * t[0])
    first = traced(ag.constant(GIVEN, ag.float64))
    assert float(traced(ag.constant(GIVEN, ag.float64))) > float(first)


# --- datasets -------------------------------------------------------------------------------------------------------


@kept("If an element follows from its index")
def datasets_from_indices(t):
    result = 0.0
    for i, v in ag.data.Dataset.from_tensor_slices(t).map(lambda v: v * 2.0).take(4).repeat(2).enumerate():
        if v > 9.0:
            continue
        result += v * ag.cast(i, ag.float32)
    return result


@kept("Ragged and sparse tensors have rows, too")
def ragged_rows(t):
    rows = ag.RaggedTensor.from_row_lengths(t, [2, 0, 3])
    result = 0.0
    for row in ag.data.Dataset.from_tensor_slices(rows):
        result = result * 10.0 + ag.reduce_sum(row)
    return result


@kept("Other elements (filter")
def datasets_from_python(t):
    result = 0.0
    for v in ag.data.Dataset.from_tensor_slices(GIVEN).filter(lambda v: v > 1.5):
        result = result * 2.0 + v
    return result + t[0]


@checked("iter(dataset) inside a function")
def iterators_of_datasets(mode):
    def run(t):
        iterator = iter(ag.data.Dataset.range(3))
        return next(iterator) + next(iterator)

    traced = mode(run)
    assert [int(traced(ag.constant(GIVEN))) for _ in range(2)] == [1, 1]


@kept("batch(n) accepts a computed number")
def computed_batches(t):
    result = 0.0
    for rows in ag.data.Dataset.range(6).batch(ag.cast(t[2] + 1.0, ag.int64)):
        result = result * 10.0 + ag.cast(ag.reduce_sum(rows), ag.float32)
    return result


@checked("A function is traced again for each dataset")
def traces_of_datasets(mode):
    traced = mode(lambda data: data.reduce(ag.constant(0, ag.int64), lambda one, other: one + other))
    assert [int(traced(ag.data.Dataset.range(n))) for n in (3, 4)] == [3, 6]
    assert traced.experimental_get_tracing_count() == 2


# --- syntax ---------------------------------------------------------------------------------------------------------


@kept("Annotations and type parameters")
def annotated(t: Undefined) -> AlsoUndefined:  # noqa: F821 - nobody evaluates them
    result: Undefined = 0.0  # noqa: F821
    for v in t:
        result += v
    return result


# --- migrating.md ---------------------------------------------------------------------------------------------------


@checked("Gradients of while loops")
def gradients_of_loops(mode):
    def run(x):
        while x < 100.0:
            x = x * x
        return x

    x = ag.constant(2.0)
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = mode(run)(x)
    assert float(tape.gradient(y, x)) == 8 * 2.0**7


rate = 0.5
things = [Box(0.5)]


@checked("Python values that a trace reads")
def values_are_watched(mode):
    global rate
    rate, things[0].n = 0.5, 0.5
    traced = mode(lambda t: t[0] * rate + things[0].n + getattr(things[0], "n"))  # noqa: B009
    found = [float(traced(ag.constant(GIVEN)))]
    rate = 2.0
    found.append(float(traced(ag.constant(GIVEN))))
    things[0].n = 1.0
    found.append(float(traced(ag.constant(GIVEN))))
    assert found == [2.5, 7.0, 8.0]


@kept("Lists that grow in a staged loop")
def lists_of_migrated_programs(t):
    return lists_that_grow(t), items_and_attributes(t)


@refused("An index out of range raises an error", ag.errors.InvalidArgumentError, "promises.py")
def gathered_out_of_range(t):
    return ag.gather(t, ag.cast(t[3], ag.int32) + 4)


@refused("A condition on a tensor that can't be staged", ag.errors.OperatorNotAllowedInGraphError, "fix: ")
def condition_for_python(t):
    class Sized:
        def __len__(self):
            return 1 if t[0] > 1.0 else 2

    return len(Sized()) + t[0]


@refused("Errors in functions show your line", ag.errors.InvalidArgumentError, "promises.py")
def failing_operation(t):
    return ag.reshape(t, [ag.cast(t[0], ag.int32)])


CHECKED.append(("print in a staged branch or loop", prints_at_run_time))


@kept("NumPy's functions on tensors are operations")
def numpy_functions(t):
    return np.mean(t) * t[0], np.sum([t[0], t[1]]), np.asarray(t)[2]


@refused("x == y raises", ag.errors.InvalidArgumentError, "")
def shapes_that_differ(t):
    return ag.boolean_mask(t, t > 1.0) == ag.boolean_mask(t, t > 2.5)


@refused("The mean of an empty integer tensor", ag.errors.InvalidArgumentError, "division by zero")
def mean_of_nothing(t):
    return ag.reduce_mean(ag.cast(ag.boolean_mask(t, t > 9.0), ag.int32))


@checked("An infinite or NaN filter")
def filters_that_are_not_finite(mode):
    image, filters = ag.zeros([1, 2, 2, 1]), ag.fill([2, 2, 1, 1], np.inf)
    run = mode(lambda x, w: ag.nn.conv2d(x, w, 1, "SAME"))
    assert np.isnan(run(image, filters).numpy()).all()


@checked("A method of a deleted object")
def deleted_objects(mode):
    class Model:
        @ag.function
        def call(self, x):
            return x

    try:
        Model().call(ag.constant(1.0))
    except ReferenceError:
        return
    raise AssertionError("the method ran")


@checked("Variables passed as arguments share a trace")
def variables_as_arguments(mode):
    traced = mode(lambda v: v * 2.0)
    assert [float(traced(ag.Variable(x))) for x in (1.0, 2.0)] == [2.0, 4.0]
    assert traced.experimental_get_tracing_count() == 1
    one, other = ag.Variable(1.0), ag.Variable(2.0)
    tells = mode(lambda v: v * (10.0 if v is one else 1.0))
    assert [float(tells(each)) for each in (one, other)] == [10.0, 2.0]


@checked("Axes, permutations and shapes may be computed")
def computed_axes(mode):
    run = mode(lambda t, axis: ag.reduce_sum(ag.reshape(t, [axis, -1]), axis - 1))
    assert run(ag.constant([1.0, 2.0, 3.0, 4.0]), ag.constant(2)).numpy().tolist() == [3.0, 7.0]
