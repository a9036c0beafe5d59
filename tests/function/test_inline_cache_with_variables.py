"""Functions that read and assign variables, answered by machine code (`runtime/engine/fastcall/inline_cache.py`)."""

import gc
import os
import threading
import weakref

import numpy as np
import pytest

import autograph as ag
from runtime import locks
from runtime.engine.fastcall import inline_cache
from tests.function.test_inline_cache import compiled, is_short, same, settled

pytestmark = pytest.mark.skipif(not inline_cache.prepare(), reason="no machine code on this platform")


def test_reads():
    v, w = ag.Variable(2.0), ag.Variable([1.0, 2.0])
    f = settled(compiled(lambda x: (w * x + v, v)), ag.constant(3.0))
    same(f(ag.constant(3.0)), (ag.constant([5.0, 8.0]), ag.constant(2.0)))
    v.assign(1.0)
    w.assign_add([1.0, 1.0])
    same(f(ag.constant(3.0)), (ag.constant([7.0, 10.0]), ag.constant(1.0)))
    read = v.read_value()
    v.assign(5.0)
    assert read.numpy() == 1


def test_assignments():
    count, rows, total = ag.Variable(0, dtype=ag.int64), ag.Variable(ag.zeros([3])), ag.Variable(0.0)

    @compiled
    def step(x):
        count.assign_add(1)
        rows.assign(rows + x)
        total.assign_sub(ag.reduce_sum(rows))
        return rows * 2.0

    @compiled
    def reset():
        count.assign(0)

    for n in range(1, 6):
        before = rows.read_value()
        assert step(ag.ones([3])).numpy().tolist() == [2.0 * n] * 3
        assert before.numpy().tolist() == [n - 1.0] * 3
        assert (int(count), count.dtype, type(count.numpy())) == (n, ag.int64, np.int64)
        assert float(total) == -3 * n * (n + 1) / 2
    assert is_short(step)
    for _ in range(4):
        count.assign(7)
        assert reset() is None
        assert int(count) == 0
    assert is_short(reset)


def test_exchanged():
    a, b = ag.Variable([1.0, 2.0]), ag.Variable([3.0, 4.0])

    @compiled
    def swap():
        before = a.read_value()
        a.assign(b)
        b.assign(before)

    for n in range(5):
        swap()
        assert (a.numpy()[0], b.numpy()[0]) == ((3, 1) if n % 2 == 0 else (1, 3))
        a.assign_add([0.0, 0.0])


def test_with_open_sizes():
    v = ag.Variable([1.0], shape=[None])
    f = compiled(lambda x: v * x)
    for size in (1, 2, 5, 0, 5):
        v.assign(ag.ones([size]))
        same(f(ag.constant(2.0)), 2.0 * ag.ones([size]))


def test_keep_their_values_where_a_step_fails():
    v, w = ag.Variable(6), ag.Variable(6)

    @compiled
    def step(n):
        v.assign(v // n)
        return v + 0

    @compiled
    def two_steps(n):
        w.assign(w + 1)
        w.assign(w // n)

    settled(step, ag.constant(1))
    for _ in range(3):
        two_steps(ag.constant(1))
    for n in range(1, 4):
        with pytest.raises(ag.errors.InvalidArgumentError, match="division by zero"):
            step(ag.constant(0))
        with pytest.raises(ag.errors.InvalidArgumentError, match="division by zero"):
            two_steps(ag.constant(0))
        assert (int(v), int(w)) == (6, 9 + n)  # the first assignment ran
    assert step(ag.constant(2)).numpy() == 3


def test_are_watched_by_tapes():
    v = ag.Variable(3.0)
    f = settled(compiled(lambda x: v * v * x), ag.constant(2.0))
    with ag.GradientTape() as tape:
        y = f(ag.constant(2.0))
    assert tape.gradient(y, v).numpy() == 12


def test_no_update_is_lost():
    v = ag.Variable(0)
    step = settled(compiled(lambda n: v.assign_add(n)), ag.constant(0))

    def work():
        for _ in range(2000):
            step(ag.constant(1))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert int(v) == 12_000


def test_of_a_model_go_with_it():
    class Model(ag.Module):
        def __init__(self):
            super().__init__()
            self.w = ag.Variable([1.0, 2.0])

        @compiled
        def __call__(self, x):
            return self.w * x

        @compiled
        def step(self, x):
            self.w.assign_add(x)

    model = Model()
    for _ in range(4):
        model(ag.constant(2.0))
        model.step(ag.constant([1.0, 1.0]))
    assert model(ag.constant(2.0)).numpy().tolist() == [10.0, 12.0]
    gone, variable = weakref.ref(model), weakref.ref(model.w)
    del model
    gc.collect()
    assert gone() is None
    assert variable() is None


def test_made_by_the_first_call():
    class Layer:
        w = None

        @compiled
        def __call__(self, x):
            if self.w is None:
                self.w = ag.Variable(ag.ones([2]))
            self.w.assign_add(x)
            return self.w * 1.0

    layer = Layer()
    for n in range(1, 6):
        assert layer(ag.constant([1.0, 1.0])).numpy().tolist() == [n + 1.0] * 2


def test_given_as_arguments():
    f = compiled(lambda v, x: v * x)
    a, b = ag.Variable(2.0), ag.Variable(3.0)
    for _ in range(4):
        assert f(a, ag.constant(2.0)).numpy() == 4
        assert f(b, ag.constant(2.0)).numpy() == 6


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes can't fork here")
def test_after_a_fork():
    v = ag.Variable(0)
    step = settled(compiled(lambda n: v.assign_add(n)), ag.constant(0))
    inside, go_on = threading.Event(), threading.Event()

    def hold():
        with locks.Held(locks.places([v._id])):
            inside.set()
            go_on.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait()
    child = os.fork()
    if not child:
        os._exit(int(step(ag.constant(7)).numpy()))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    go_on.set()
    thread.join()
    assert step(ag.constant(1)).numpy() == 1
