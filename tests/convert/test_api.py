"""The way in: what is converted, what is kept, what the converted form looks like from outside."""

from __future__ import annotations

import functools
import gc
import inspect
import pickle
import weakref

import pytest

import autograph as ag
from autograph import operators
from autograph.convert.api import converted, do_not_convert, to_code, to_graph
from autograph.errors import ConversionError
from autograph.operators import calls
from autograph.operators.calls import converted_call


def sample(a, b=2, *rest, key=3, **options):
    """Adds up."""
    for x in rest:
        if x:
            a += x
    return a + b + key


def test_looks_like_the_original():
    made = converted(sample)
    assert made.__name__ == "sample"
    assert made.__qualname__ == sample.__qualname__
    assert made.__doc__ == "Adds up."
    assert made.__module__ == __name__
    assert inspect.signature(made) == inspect.signature(sample)
    assert made.__defaults__ is sample.__defaults__
    assert inspect.getsource(made) == inspect.getsource(sample)
    assert not hasattr(made, "__wrapped__")


def names_in_blocks(n):
    for i in range(n):

        class Kind:
            def method(self):
                if self:
                    return lambda: self

        if i:

            def inner():
                pass

    return Kind.__qualname__, Kind.method.__qualname__, Kind().method().__qualname__, inner.__qualname__


def test_what_is_defined_in_blocks_has_the_names_that_python_gives():
    assert converted(names_in_blocks)(2) == names_in_blocks(2)


class Scaled:
    def __call__(self, x):
        return x if x > 0 else -x


def test_to_graph_binds_what_was_bound():
    assert to_graph(functools.partial(sample, 1))(5) == sample(1, 5)
    assert to_graph(Scaled())(-3) == 3


def test_converting_twice_is_converting_once():
    made = converted(sample)
    assert converted(made) is made
    assert converted_call(made) is made
    assert converted(sample).__code__ is made.__code__


def test_closures_share_cells_and_code():
    def make(n):
        def add(x):
            nonlocal n
            if x:
                n += x
            return n

        return add

    first, second = make(1), make(10)
    one, two = converted(first), converted(second)
    assert one.__code__ is two.__code__
    assert (one(1), first(1), two(5), second(0)) == (2, 3, 15, 15)


def test_code_runs_the_same():
    text = to_code(sample)
    namespace = {"ag__": operators}
    exec(text, namespace)
    assert namespace["sample"](1, 2, 3, 0, key=9) == sample(1, 2, 3, 0, key=9)


def test_text_after_each_pass():
    texts = []
    to_code(sample, after_pass=lambda name, text: texts.append((name, text)))
    assert "for x in rest" in dict(texts)["break and continue"]
    assert "ag__.for_stmt" in dict(texts)["control flow"]


def test_methods():
    class Counter:
        def __init__(self):
            self.n = 0

        def add(self, x):
            if x:
                self.n += x
            return self.n

        @classmethod
        def make(cls, x):
            return cls().add(x) if x else None

        @staticmethod
        def twice(x):
            return 2 * x if x else 0

        def __call__(self, x):
            return self.add(x) if x else -1

    counter = Counter()
    assert converted(counter.add)(3) == 3
    assert converted(counter.add).__self__ is counter
    assert converted(Counter.make)(4) == 4
    assert converted(Counter.twice)(4) == 8
    assert converted(counter)(1) == 4
    assert isinstance(converted(Counter)(), Counter)


def test_library_code_is_called_as_it_is():
    import json
    import textwrap

    import numpy as np

    for callee in (
        len,
        repr,
        [].append,
        json.dumps,
        textwrap.dedent,
        np.sum,
        np.linalg.norm,
        int.__add__,
        dict,
        Exception,
    ):
        assert converted_call(callee) is callee or callee is len
    assert converted_call(len)([1]) == 1


def test_functions_without_source_are_called_as_they_are():
    namespace = {}
    exec("def f(x):\n    return x + 1", namespace)
    assert converted(namespace["f"]) is namespace["f"]
    with pytest.raises(ConversionError, match="fix: "):
        to_code(namespace["f"])
    with pytest.raises(ConversionError, match="not a Python function"):
        to_graph(len)


def test_an_op_is_left_as_it_is():
    assert converted(ag.nn.softmax) is ag.nn.softmax


def test_partials_keep_their_arguments():
    part = functools.partial(sample, 1, key=5)
    assert converted(part)(2, 3) == part(2, 3)
    assert isinstance(converted(part), functools.partial)


def test_do_not_convert():
    seen = []

    def who():
        seen.append(inspect.currentframe().f_code)
        return 1 if seen else 0

    kept = do_not_convert(who)
    assert kept.__name__ == "who"
    assert converted_call(kept) is kept
    kept()
    assert seen[0] is who.__code__

    @do_not_convert()
    def other():
        return 2

    assert other() == 2


def test_constructors():
    class Base:
        def __init__(self, x):
            self.x = x if x > 0 else 0

    class Derived(Base):
        def __init__(self, x, y=1):
            super().__init__(x)
            if y:
                self.y = y

    made = converted_call(Derived)(-5, y=7)
    assert (type(made), made.x, made.y) == (Derived, 0, 7)

    class Wrong:
        def __init__(self):
            return 1 if self else None

    with pytest.raises(TypeError, match="should return None"):
        converted_call(Wrong)()

    class Meta(type):
        def __call__(cls, *args):
            return "made by the metaclass"

    class Special(metaclass=Meta):
        def __init__(self):
            pass

    assert converted_call(Special)() == "made by the metaclass"


def test_unhashable_callable():
    class Odd:
        __hash__ = None

        def __call__(self, x):
            return x and "odd"

    assert converted_call(Odd())(1) == "odd"


def test_not_callable():
    with pytest.raises(TypeError, match="'int' object is not callable"):
        converted_call(3)(1)


def test_pickle_goes_by_name():
    assert pickle.loads(pickle.dumps(converted(sample).__defaults__)) == (2,)


def test_nothing_leaks():
    def make():
        def recursive(n):
            return 0 if n == 0 else 1 + recursive(n - 1)

        return recursive

    alive = []
    for _ in range(3):
        function = make()
        assert converted(function)(2) == 2
        alive.append(weakref.ref(function))
    del function
    gc.collect()
    assert [reference() for reference in alive] == [None] * 3

    before = len(calls._makers)
    namespace = {"__name__": "fresh"}
    for _ in range(20):
        exec(compile("def g(x):\n    return x", "<fresh>", "exec"), namespace)
        converted(namespace["g"])
    del namespace
    gc.collect()
    assert len(calls._makers) <= before + 2


def test_do_not_convert_holds_for_a_function_asked_for_by_name():
    def who():
        return inspect.currentframe().f_code

    kept = do_not_convert(who)
    assert converted(kept) is kept
    assert converted(kept)() is who.__code__
