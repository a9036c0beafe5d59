"""Calls answered by machine code (`runtime/engine/fastcall/inline_cache.py`) are those of `Function.__call__`, and
other calls reach it."""

import collections
import gc
import sys
import threading
import traceback
import types
import weakref

import numpy as np
import pytest

import autograph as ag
from autograph.function import fast_calls
from runtime import dtypes
from runtime.engine.fastcall import inline_cache
from runtime.interpreter import IS_FREE_THREADED

pytestmark = pytest.mark.skipif(not inline_cache.prepare(), reason="no machine code on this platform")


def is_short(function):
    return isinstance(function.__call__, types.BuiltinFunctionType)


def settled(function, *args):
    """The function after calls that have it answered by machine code."""
    for _ in range(3):
        function(*args)
    # Without the interpreter lock, other threads may change a list or a dictionary while machine code reads it.
    assert is_short(function) or (IS_FREE_THREADED and any(isinstance(arg, (list, dict)) for arg in args))
    return function


def compiled(function=None, **options):
    return ag.function(function, jit_compile=True, **options)


def same(a, b):
    ag.nest.assert_same_structure(a, b)
    for x, y in zip(ag.nest.flatten(a), ag.nest.flatten(b)):
        assert type(x) is type(y)
        if x is not None:
            assert x.dtype is y.dtype
            assert x.shape == y.shape
            np.testing.assert_array_equal(x.numpy(), y.numpy())


Point = collections.namedtuple("Point", "x y")


class Place(Point):
    """Another type with the same fields."""


KINDS = {
    "a scalar": (lambda x: x + 1.0, (ag.constant(2.0),)),
    "an array": (lambda x: x * 2.0, (ag.constant([1.0, 2.0]),)),
    "a large array, on threads": (lambda x: ag.sqrt(x) + x, (ag.ones([1 << 20]),)),
    "many arguments": (lambda *xs: ag.add_n(list(xs)), tuple(map(ag.constant, range(50)))),
    "no arguments": (lambda: ag.constant(1.0) + ag.constant(2.0), ()),
    "several results": (lambda x, y: (x + y, x - y), (ag.constant([1, 2]), ag.constant(3))),
    "a list": (lambda x: [x + 1, x], (ag.constant(1),)),
    "results in a dictionary": (lambda x: {"b": x + 1, "a": (x, None)}, (ag.constant(1),)),
    "a result that is an argument": (lambda x, y: (y, x + 1), (ag.constant(1), ag.constant([2.0]))),
    "an int64": (lambda x: ag.reduce_sum(x), (ag.constant([1, 2], ag.int64),)),
    "an int64 among others": (lambda x: (x // 2, x), (ag.constant(-(1 << 40), ag.int64),)),
    "a captured array": (lambda x: x + [1.0, 2.0], (ag.constant([1.0, 2.0]),)),
    "a check that may fail": (lambda x, y: x // y, (ag.constant(7), ag.constant(2))),
    "a check before several results": (lambda x, y: (x // y, x % y), (ag.constant(7), ag.constant(2))),
    "Python values": (lambda x, n, flag, name, none: x * n if flag else x, (ag.constant(2.0), 3, True, "name", None)),
    "nested arguments": (
        lambda d, rest: d["b"][0] - d["a"] * rest[1],
        ({"b": (ag.constant(1.0), 2), "a": ag.constant([3.0])}, [ag.constant(4.0), ag.constant(5.0)]),
    ),
    "named tuples": (
        lambda p, q: Point(p.x + q.y, Point([p.y], {"a": q.x})),
        (Point(ag.constant(1.0), ag.constant([2.0])), Point(ag.constant(3.0), ag.constant([4.0]))),
    ),
    "an empty array": (lambda x: x + 1.0, (ag.zeros([0, 3]),)),
    "dtypes": (
        lambda *xs: tuple(x + x for x in xs),
        tuple(
            ag.zeros(shape, t)
            for t in dtypes.ALL
            if t.is_integer or t in (ag.float32, ag.float64)
            for shape in ([], [2])
        ),
    ),
    "booleans": (lambda x, y: (~x, x & y), (ag.constant(True), ag.constant([True, False]))),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_gives_what_the_long_way_gives(kind):
    python, args = KINDS[kind]
    short = settled(compiled(python), *args)
    same(short(*args), compiled(python)(*args))
    same(short(*args), python(*args))


def test_keywords():
    f = compiled(lambda a, b, *rest, c, d=2.0, **more: (a - b * c + d, *rest, *more.values()))
    one, two, three = map(ag.constant, (1.0, 2.0, 3.0))
    for call in (
        lambda: f(one, b=two, c=three),
        lambda: f(c=two, b=one, a=three),
        lambda: f(two, two, three, one, c=two),
        lambda: f(two, two, c=two, z=one, y=three),
        lambda: f(two, one, d=three, c=two),
        lambda: f(one, two, c=three, d=0.5),
    ):
        expected = call()
        for _ in range(3):
            same(call(), expected)
    assert is_short(f)
    g = settled(compiled(lambda a, b: a - b), one, one)
    for _ in range(3):
        assert g(b=one, a=one).numpy() == 0
    assert g(b=one, a=two).numpy() == 1
    assert g(a=one, b=two).numpy() == -1
    with pytest.raises(TypeError, match="unexpected keyword|missing a required"):
        g(one, c=one)
    with pytest.raises(TypeError, match="multiple values"):
        g(one, a=one)


def test_an_error_of_a_call_with_keywords():
    f = compiled(lambda a, b: a // b)
    for _ in range(3):
        f(b=ag.constant(2), a=ag.constant(7))
    with pytest.raises(ag.errors.InvalidArgumentError, match="division by zero"):
        f(b=ag.constant(0), a=ag.constant(7))


def test_others_go_the_long_way():
    f = settled(compiled(lambda x, y=2.0: x * y), ag.constant([1.0, 2.0]))
    assert f(ag.constant([1.0, 2.0, 3.0])).numpy().tolist() == [2, 4, 6]
    assert f(ag.constant([[1.0, 2.0]])).numpy().tolist() == [[2, 4]]
    assert f(ag.constant([1.0, 2.0], ag.float64)).dtype is ag.float64
    assert f(np.float32([1, 2])).numpy().tolist() == [2, 4]
    assert f(1.5).numpy() == 3
    assert f(ag.constant(1.5)).numpy() == 3
    assert f(x=ag.constant([1.0, 2.0])).numpy().tolist() == [2, 4]
    assert f(ag.constant([1.0, 2.0]), y=3.0).numpy().tolist() == [3, 6]
    assert f(ag.constant([1.0, 2.0]), 3.0).numpy().tolist() == [3, 6]
    backwards = ag.Variable([1.0, 2.0])
    assert f(backwards).numpy().tolist() == [2, 4]
    with pytest.raises(TypeError, match="missing a required argument"):
        f()
    with pytest.raises(TypeError, match="too many positional"):
        f(ag.constant([1.0, 2.0]), 1.0, 2.0)
    assert is_short(f)


def test_tuples_of_other_types_go_the_long_way():
    seen = []

    @compiled
    def f(p):
        seen.append(type(p))
        return p[0] + p[1]

    x, y = ag.constant(1.0), ag.constant(2.0)
    settled(f, Point(x, y))
    for other in ((x, y), Place(x, y), [x, y]):
        assert f(other).numpy() == 3.0
        assert seen[-1] is type(other)
    assert f(Point(y, y)).numpy() == 4.0
    assert len(seen) == 4


def test_arrays_that_are_laid_out_otherwise_go_the_long_way():
    f = settled(compiled(lambda x: x + 1.0), ag.ones([3, 2]))
    turned = ag.ones([3, 2])
    turned._array = np.arange(6, dtype=np.float32).reshape(2, 3).T
    assert f(turned).numpy().tolist() == [[1, 4], [2, 5], [3, 6]]


def test_several_kinds_of_calls_are_known():
    f = compiled(lambda x, n=1: x * n)
    kinds = [ag.ones([size]) for size in range(fast_calls.MOST_PLANS + 3)]
    for x in kinds:
        settled(f, x)
    for n, x in enumerate(kinds):
        same(f(x, n), x * n)
        same(f(x), x)


def test_an_input_signature_leaves_sizes_open():
    f = compiled(lambda x: x + 1.0, input_signature=[ag.TensorSpec([None, 2])])
    settled(f, ag.ones([3, 2]))
    for rows in (0, 1, 7):
        same(f(ag.ones([rows, 2])), ag.ones([rows, 2]) + 1.0)
    assert f.experimental_get_tracing_count() == 1
    for wrong in (ag.ones([2, 3]), ag.ones([2]), ag.ones([2, 2], ag.float64)):
        with pytest.raises((TypeError, ValueError)):
            f(wrong)


FACTOR = 3.0


class TestPythonValues:
    def test_of_globals(self):
        global FACTOR
        f = settled(compiled(lambda x: x * FACTOR), ag.constant(2.0))
        try:
            FACTOR = 5.0
            assert f(ag.constant(2.0)).numpy() == 10
            settled(f, ag.constant(2.0))
            assert f(ag.constant(2.0)).numpy() == 10
            FACTOR = float("3")
            assert f(ag.constant(2.0)).numpy() == 6
            del FACTOR
            with pytest.raises(NameError):
                f(ag.constant(2.0))
        finally:
            FACTOR = 3.0

    def test_of_closures(self):
        factor = 3.0
        f = settled(compiled(lambda x: x * factor), ag.constant(2.0))
        factor = 5.0
        assert f(ag.constant(2.0)).numpy() == 10

    def test_of_attributes(self):
        config = types.SimpleNamespace(factor=3.0)
        f = compiled(lambda x: x * config.factor)
        for _ in range(3):
            assert f(ag.constant(2.0)).numpy() == 6
        assert is_short(f)
        config.factor = 5.0
        assert f(ag.constant(2.0)).numpy() == 10
        settled(f, ag.constant(2.0))
        assert f(ag.constant(2.0)).numpy() == 10
        del config.factor
        with pytest.raises(AttributeError, match="factor"):
            f(ag.constant(2.0))


class TestContexts:
    def test_tapes(self):
        x = ag.constant(3.0)
        f = settled(compiled(lambda x: x * x), x)
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        assert tape.gradient(y, x).numpy() == 6
        assert f(x).numpy() == 9

    def test_traces(self):
        f = settled(compiled(lambda x: x * x), ag.constant(3.0))
        assert compiled(lambda x: f(x) + f(ag.constant(2.0)))(ag.constant(3.0)).numpy() == 13

    def test_eager_functions(self):
        seen = []

        @compiled
        def f(x):
            seen.append(x)
            return x * x

        settled(f, ag.constant(3.0))
        traced = len(seen)
        ag.config.run_functions_eagerly(True)
        try:
            assert f(ag.constant(3.0)).numpy() == 9
        finally:
            ag.config.run_functions_eagerly(False)
        assert len(seen) == traced + 1
        f(ag.constant(3.0))
        assert len(seen) == traced + 1

    def test_checked_numbers(self):
        f = settled(compiled(lambda x: 1.0 / x), ag.constant(0.0))
        ag.debugging.enable_check_numerics()
        try:
            with pytest.raises(ag.errors.InvalidArgumentError):
                f(ag.constant(0.0))
        finally:
            ag.debugging.disable_check_numerics()
        assert f(ag.constant(0.0)).numpy() == np.inf

    def test_of_other_threads_do_not_matter(self):
        x = ag.constant(3.0)
        f = settled(compiled(lambda x: x * x), x)
        opened, go_on = threading.Event(), threading.Event()

        def watch():
            with ag.GradientTape():
                opened.set()
                go_on.wait()

        thread = threading.Thread(target=watch)
        thread.start()
        opened.wait()
        assert f(x).numpy() == 9
        go_on.set()
        thread.join()


class TestErrors:
    def test_name_the_users_line_alone(self):
        f = settled(compiled(lambda x, y: x // y), ag.constant(7), ag.constant(2))
        with pytest.raises(ag.errors.InvalidArgumentError, match="division by zero") as caught:
            f(ag.constant(7), ag.constant(0))
        assert "compiled(lambda x, y: x // y)" in str(caught.value)
        frames = traceback.extract_tb(caught.value.__traceback__)
        if sys.version_info >= (3, 11):  # up to 3.10 a frame of ours stays
            assert {frame.filename for frame in frames} == {__file__}
        assert f(ag.constant(7), ag.constant(2)).numpy() == 3

    def test_with_numbers_in_them(self):
        f = settled(compiled(lambda x, i: (ag.gather(x, i), x)), ag.constant([1.0, 2.0]), ag.constant(1))
        with pytest.raises(ag.errors.InvalidArgumentError, match="5"):
            f(ag.constant([1.0, 2.0]), ag.constant(5))

    def test_out_of_memory(self):
        f = compiled(
            lambda x, n: ag.fill([n, 1 << 30], x), input_signature=[ag.TensorSpec([]), ag.TensorSpec([], ag.int32)]
        )
        settled(f, ag.constant(1.0), ag.constant(0))
        with pytest.raises(ag.errors.ResourceExhaustedError, match="fill"):
            f(ag.constant(1.0), ag.constant(1 << 30))
        assert f(ag.constant(1.0), ag.constant(0)).shape == [0, 1 << 30]


class TestReferences:
    def test_none_are_lost_or_kept(self):
        argument, other = ag.ones([100]), {"a": [ag.constant(1.0)]}
        f = settled(compiled(lambda x, d: (x, x + d["a"][0], x // 1.0)), argument, other)
        watched = [argument, argument._array, other, other["a"], other["a"][0], argument.dtype]
        f(ag.ones([7]), other)
        gc.collect()
        before = [sys.getrefcount(thing) for thing in watched]
        for _ in range(1000):
            f(argument, other)
            f(ag.ones([7]), other)
        gc.collect()
        assert [sys.getrefcount(thing) for thing in watched] == pytest.approx(before, abs=50)

    def test_of_results(self):
        f = settled(compiled(lambda x: (x + 1.0, [x * 2.0])), ag.ones([3]))
        result = f(ag.ones([3]))
        array = weakref.ref(result[0]._array)
        gc.disable()
        try:
            del result
            assert array() is None
        finally:
            gc.enable()

    def test_a_function_goes_when_nobody_has_it(self):
        f = settled(compiled(lambda x: x + 1.0), ag.constant(1.0))
        gone, trace = weakref.ref(f), weakref.ref(f._latest)
        call = f.__call__
        gc.disable()
        try:
            del f
            assert gone() is None
            assert call(ag.constant(1.0)).numpy() == 2
            assert call(ag.constant([1.0])).numpy().tolist() == [2]
            del call
        finally:
            gc.enable()
        gc.collect()
        assert trace() is None

    def test_a_method_goes_with_its_object(self):
        class Model:
            @compiled
            def double(self, x):
                return x * 2.0

        model = Model()
        settled(model.double, ag.constant(1.0))
        gone = weakref.ref(model)
        del model
        assert gone() is None
        assert Model().double(ag.constant(2.0)).numpy() == 4

    def test_the_garbage_collector_sees_results(self):
        f = settled(compiled(lambda x: x + 1.0), ag.constant(1.0))
        assert gc.is_tracked(f(ag.constant(1.0)))


def test_in_many_threads():
    x = ag.constant(2.0)
    f = compiled(lambda x, n: x**n)
    wrong = []

    def work(which):
        for n in range(300):
            y = f(ag.constant(2.0) if which % 2 else x, n % 4)
            if y.numpy() != 2.0 ** (n % 4):
                wrong.append(y)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert is_short(f)


def test_a_function_looks_the_same():
    def f(x: int) -> int:
        """Adds."""
        return x + 1

    before, after = compiled(f), settled(compiled(f), ag.constant(1))
    assert type(after).__name__ == type(before).__name__
    assert isinstance(after, type(before))
    assert (after.__name__, after.__doc__, after.__annotations__) == (f.__name__, f.__doc__, f.__annotations__)
    assert callable(after)
    assert after.get_concrete_function(ag.constant(1)) is not None
