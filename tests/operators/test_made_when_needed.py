"""Objects that staged code makes when it first needs them, what they are made of, and what functions read meanwhile.

if self.cache is None:          made once, for all iterations
    self.cache = Counter()
self.cache.n += 1               counts in each of them, or is refused
"""

from __future__ import annotations

import functools
import io
import itertools

import numpy as np
import pytest

import autograph as ag
from autograph.errors import StagingError
from tests.operators.test_state_everywhere import GIVEN, loaded

_HEAD = """
import collections
import contextlib
import dataclasses
import functools
import itertools
import operator
import types
import weakref

import autograph as ag

class Counter:
    def __init__(self, n=0):
        self.n = n
    def hit(self):
        self.n += 1
    def __eq__(self, other):
        return True
    __hash__ = None

class Box:
    cache = None
"""

# What is made, how it counts, and the count.
MADE = {
    "object": ("Counter()", "X.n += 1", "X.n"),
    "object with a tensor": ("Counter(0.0)", "X.n = X.n + v", "X.n"),
    "method": ("Counter()", "X.hit()", "X.n"),
    "exchanged": ("Counter()", "X = Counter(X.n + 1)", "X.n"),
    "namespace": ("types.SimpleNamespace(n=0)", "X.n += 1", "X.n"),
    "dictionary": ("{'n': 0}", "X['n'] += 1", "X['n']"),
    "list": ("[0]", "X[0] += 1", "X[0]"),
    "longer list": ("[]", "X.append(1)", "len(X)"),
    "counter": ("collections.Counter()", "X['n'] += 1", "X['n']"),
    "set": ("set()", "X.add(len(X))", "len(X)"),
    "deque": ("collections.deque()", "X.append(1)", "len(X)"),
    "number": ("0", "X += 1", "X"),
    "in an object": ("Counter(Counter())", "X.n.n += 1", "X.n.n"),
    "in a list": ("[Counter()]", "X[0].n += 1", "X[0].n"),
}
# Where it is kept: the setup, the place, whether it is missing there, and what stands in functions.
PLACES = {
    "variable": ("h = None", "h", "h is None", "nonlocal h"),
    "attribute": ("box = Box()\nbox.cache = None", "box.cache", "box.cache is None", "pass"),
    "no attribute yet": ("box = types.SimpleNamespace()", "box.cache", "not hasattr(box, 'cache')", "pass"),
    "attribute of a class": ("box = Box()", "box.cache", "box.cache is None", "pass"),
    "item": ("table = {}", "table['k']", "'k' not in table", "pass"),
    "item of a list": ("row = [None]", "row[0]", "row[0] is None", "pass"),
    "function": ("def keep():\n    pass\nkeep.c = None", "keep.c", "keep.c is None", "pass"),
}
BLOCKS = {
    "loop": "for v in t:\n    WRITE",
    "while": "v = t[0]\nwhile v > 0.0:\n    WRITE\n    v = v - 1.0",
    "branch": "for k in range(5):\n    v = t[k]\n    if v > 1.0:\n        WRITE",
    "nested": "for w in t:\n    for v in t:\n        if v > w:\n            WRITE",
    "helper": "def helper(v):\n    DECLARE\n    WRITE\nfor v in t:\n    helper(v)",
    "helper in a branch": (
        "def helper(v):\n    DECLARE\n    WRITE\nfor k in range(5):\n    v = t[k]\n    if v > 1.0:\n        helper(v)"
    ),
    "method": (
        "class Worker:\n    def work(self, v):\n        DECLARE\n        WRITE\nworker = Worker()\n"
        "for v in t:\n    if v > 1.0:\n        worker.work(v)"
    ),
}  # fmt: skip

# Functions that read state, with READ for it, and their use.
READERS = {
    "function": ("def f(*a):\n    return READ", "f()"),
    "lambda": ("f = lambda *a: READ", "f()"),
    "partial": ("def g(b, *a):\n    return READ\nf = functools.partial(g, 1)", "f()"),
    "map": ("def f(a):\n    return READ", "sum(map(f, [1, 2]))"),
    "filter": ("def f(a):\n    return READ > a", "len(list(filter(f, [1, 2, 3])))"),
    "sorted": ("def f(a):\n    return a * (READ - 2.5)", "sorted([1, 2, 3], key=f)[0]"),
    "sum": ("def f(a):\n    return READ + a", "sum(f(a) for a in [1, 2])"),
    "reduce": ("def f(a, b):\n    return a + b + READ", "functools.reduce(f, [1, 2, 3])"),
    "accumulate": ("def f(a, b):\n    return a + b + READ", "list(itertools.accumulate([1, 2, 3], f))[-1]"),
    "starmap": ("def f(a, b):\n    return READ", "sum(itertools.starmap(f, [(1, 2)]))"),
    "bound method": ("class R:\n    def get(self):\n        return READ\nm = R().get", "m()"),
    "property": ("class R:\n    @property\n    def p(self):\n        return READ\nr = R()", "r.p"),
    "methodcaller": (
        "class R:\n    def get(self):\n        return READ\nr, m = R(), operator.methodcaller('get')",
        "m(r)",
    ),
    "context manager": (
        "@contextlib.contextmanager\ndef cm():\n    yield READ\ndef f():\n    with cm() as c:\n        return c",
        "f()",
    ),
    "weak reference": ("def f():\n    return READ\nw = weakref.ref(f)", "w()()"),
    "wrapped": ("def g():\n    return READ\n@functools.wraps(g)\ndef f():\n    return g()", "f()"),
}  # fmt: skip
STATES = {
    "variable": ("s = 0", "s", "s = s + 1"),
    "attribute": ("box = Counter()", "box.n", "box.n += 1"),
    "item": ("row = [0]", "row[0]", "row[0] += 1"),
    "object": ("box = Counter()", "box.n", "box = Counter(box.n + 1)"),
}


def _indented(text):
    return "".join(f"    {line}\n" for line in text.splitlines())


def _filled(block, statement):
    lines = []
    for line in block.splitlines():
        before, is_there, _ = line.partition("WRITE")
        lines += [before + each for each in statement.splitlines()] if is_there else [line]
    return "\n".join(lines)


def lazy_programs():
    for (where, place), (what, made), (kind, block) in itertools.product(PLACES.items(), MADE.items(), BLOCKS.items()):
        setup, path, is_missing, declare = place
        make, count, read = (each.replace("X", path) for each in made)
        lines = _filled(block.replace("DECLARE", declare), f"if {is_missing}:\n    {path} = {make}\n{count}")
        body = f"{setup}\n{lines}\nreturn {read}"
        yield f"{where}, {what}, {kind}", f"{_HEAD}\ndef program(t):\n{_indented(body)}"


def reading_programs():
    for (how, (define, use)), (what, (setup, read, change)) in itertools.product(READERS.items(), STATES.items()):
        loop = f"for v in t:\n    if v > 1.0:\n        {change}\n    out = out + {use}"
        body = f"{setup}\n{define}\nout = 0.0\n{loop}\nreturn out + {use}".replace("READ", read)
        yield f"{how}, {what}", f"{_HEAD}\ndef program(t):\n{_indented(body)}"


def check(path, words, text):
    """Whether a program gives what it gives in Python, or is refused in its file; tells whether it runs."""
    right = float(loaded(path / "python.py", text).program(GIVEN))
    for options in ({}, {"jit_compile": True}):
        try:
            function = ag.function(loaded(path / "traced.py", text).program, **options)
            got = [float(function(ag.constant(GIVEN))) for _ in range(2)]
        except Exception as error:
            assert "traced.py" in str(error), (words, str(error))
            return False
        assert got == [right, right], (words, text)
    return True


@pytest.mark.parametrize("part", range(7))
def test_what_is_made_when_needed_counts_in_every_iteration_or_is_refused(part, tmp_path):
    for words, text in itertools.islice(lazy_programs(), part * 5, None, 47):
        check(tmp_path, words, text)


@pytest.mark.parametrize("how", READERS)
def test_a_function_reads_what_the_loop_has_made_of_its_variables(how, tmp_path):
    found = [check(tmp_path, words, text) for words, text in reading_programs() if words.startswith(f"{how},")]
    assert any(found) or how in ("filter", "sorted")  # which need the values of what they go by


def refused(function, *arguments):
    with pytest.raises(StagingError) as caught:
        ag.function(function)(*arguments)
    assert caught.value.location.filename == __file__
    assert "fix: " in str(caught.value)
    return str(caught.value)


class Plain:
    cache = None

    def get(self):
        return 1


class Other(Plain):
    def get(self):
        return 2


def given(n=1):
    return n


def given_two():
    return 2


@pytest.mark.parametrize(
    ("name", "exchange"),
    [
        ("__class__", lambda box: setattr(box, "__class__", Other)),
        ("__dict__", lambda box: setattr(box, "__dict__", {})),
        ("__code__", lambda box: setattr(given, "__code__", given_two.__code__)),
        ("__bases__", lambda box: setattr(Other, "__bases__", (Leaf,))),
        ("__len__", lambda box: setattr(Plain, "__len__", lambda self: 3)),
    ],
)
@pytest.mark.parametrize("limit", [1.0, 10.0])  # taken and not taken
def test_what_objects_are_made_of_stays_or_its_exchange_is_refused(name, exchange, limit):
    box, code = Plain(), given.__code__

    def run(t):
        for v in t:
            if v > limit:
                exchange(box)
        return box.get() + Other().get() + given()

    assert f"{name}' is exchanged in a branch or loop on tensors" in refused(run, ag.constant(GIVEN))
    assert type(box) is Plain
    assert given.__code__ is code
    assert Other.__bases__ == (Plain,)
    assert not hasattr(Plain, "__len__")


class Leaf(Plain):
    pass


def test_a_constant_that_a_branch_makes_when_needed_stays():
    class Table:
        values = None

        def at(self, v):
            if self.values is None:
                self.values = types_of_numbers()
            return v * self.values["two"]

    def types_of_numbers():
        return {"two": 2.0}

    @ag.function
    def run(t):
        table, total = Table(), 0.0
        for k in range(5):
            if t[k] > 1.0:
                total += table.at(t[k])
        for v in t:
            total += table.at(v)
        return total

    assert float(run(ag.constant(GIVEN))) == 42.0


def test_an_object_that_a_branch_makes_and_changes_is_refused():
    box = Plain()

    def count():
        if box.cache is None:
            box.cache = Plain()
            box.cache.n = 0
        box.cache.n += 1

    def run(x):
        if x > 0.0:
            count()
        return box.cache.n

    assert "make the object before the branch or loop" in refused(run, ag.constant(1.0))


def test_what_only_the_first_call_changes_is_refused():
    calls = [0]

    @functools.lru_cache(maxsize=None)
    def once(n):
        calls[0] += 1
        return n

    class Lazy:
        k = 0

        @functools.cached_property
        def p(self):
            self.k += 1
            return 3

    def cached(t):
        for _ in t:
            once(1)
        return calls[0]

    def of_property(t):
        lazy, total = Lazy(), 0.0
        for v in t:
            total += v * lazy.p
        return total + lazy.k

    assert "once(), whose results are cached, changes state" in refused(cached, ag.constant(GIVEN))
    assert "of which only the first makes the object" in refused(of_property, ag.constant(GIVEN))


def test_a_cached_function_that_changes_nothing_is_called():
    @functools.cache
    def table(n):
        return [float(k) for k in range(n)]

    @ag.function
    def run(t):
        total = 0.0
        for v in t:
            if v > 1.0:
                total += v * table(3)[2]
        return total

    assert float(run(ag.constant(GIVEN))) == 20.0


def test_arrays_are_not_written_to_by_the_methods_of_numpy_functions():
    totals = np.zeros(2)

    def run(t):
        for v in t:
            if v > 1.0:
                np.add.at(totals, 0, 1.0)
        return totals[0]

    assert "a NumPy array is written to" in refused(run, ag.constant(GIVEN))
    assert totals.tolist() == [0.0, 0.0]


def test_a_stream_that_a_helper_writes_to_is_refused():
    stream = io.StringIO()

    def write():
        stream.write("a")

    def run(t):
        for v in t:
            if v > 1.0:
                write()
        return t

    assert "'stream', of class StringIO, is changed" in refused(run, ag.constant(GIVEN))


def test_a_stream_that_the_program_prints_to_tells_nothing_before():
    stream = io.StringIO()

    def run(t):
        for v in t:
            if v > 1.0:
                print("a", file=stream, end="")
        return len(stream.getvalue())

    assert "getvalue() of a stream that a branch or loop on tensors prints to" in refused(run, ag.constant(GIVEN))

    @ag.function
    def printing(t):
        for v in t:
            print(v > 1.0, file=stream, end=" ")

    printing(ag.constant(GIVEN))
    assert stream.getvalue().split() == ["1", "0", "1", "1", "0"]


class Row(list):
    pass


def test_a_list_of_a_class_of_its_own_that_grows_is_refused():
    def run(t):
        row = Row([0])
        for _ in t:
            row.append(1)
        return len(row)

    assert "'row', a Row, is changed" in refused(run, ag.constant(GIVEN))


def test_objects_that_call_themselves_equal_are_told_apart_by_what_is_in_them():
    class Named:
        def __init__(self, name, n):
            self.name = name
            self.n = n

        def __eq__(self, other):
            return self.name == other.name

        __hash__ = None

    def program(t):
        one = Named("a", 0.0)
        for v in t:
            one = Named("a", one.n + v)
        two = one
        for k in range(5):
            if t[k] > 2.0:
                two = Named("a", 7.0 + t[k])
        return one.n, two.n

    for function in (ag.function(program), ag.function(program, jit_compile=True)):
        assert [float(each) for each in function(ag.constant(GIVEN))] == list(program(GIVEN)) == [11.0, 12.0]


def test_gradients_flow_through_defaults_that_a_loop_sets():
    def program(t):
        def total(s=0.0):
            return s

        for v in t:
            if v > 1.0:
                total.__defaults__ = (total() + v * v,)
        return total()

    t = ag.constant(GIVEN)
    with ag.GradientTape() as tape:
        tape.watch(t)
        y = ag.function(program)(t)
    assert float(y) == program(GIVEN) == 38.0
    assert tape.gradient(y, t).numpy().tolist() == [6.0, 0.0, 4.0, 10.0, 0.0]
