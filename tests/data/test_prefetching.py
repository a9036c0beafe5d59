"""Elements made ahead of the loop: what threads do, and that they end."""

import gc
import itertools
import subprocess
import sys
import threading

import pytest

import autograph as ag
from autograph.data import prefetching

Dataset = ag.data.Dataset
NUMBER = ag.TensorSpec([], ag.int64)
TIMEOUT = 30  # seconds after which a test gives up


def threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("autograph.data")]


def ended():
    """Waits for the threads of iterators that are gone; whether all ended."""
    gc.collect()
    for thread in threads():
        thread.join(TIMEOUT)
    return not threads()


class Watched:
    """A generator that says how far it has come, and waits where it is told to."""

    def __init__(self, stop=None, fails_at=None):
        self.stop, self.fails_at = stop, fails_at
        self.made = 0
        self.changed = threading.Condition()
        self.closed = False

    def __call__(self):
        try:
            for number in itertools.count() if self.stop is None else range(self.stop):
                if number == self.fails_at:
                    raise KeyError("no such number")
                with self.changed:
                    self.made = number + 1
                    self.changed.notify_all()
                yield number
        finally:
            self.closed = True

    def wait_for(self, count):
        with self.changed:
            return self.changed.wait_for(lambda: self.made >= count, TIMEOUT)

    def dataset(self):
        return Dataset.from_generator(self, output_signature=NUMBER)


class TestPrefetch:
    def test_elements_are_made_while_the_loop_does_something_else(self):
        source = Watched()
        iterator = iter(source.dataset().prefetch(3))
        assert source.made == 0
        assert int(next(iterator)) == 0
        assert source.wait_for(4)

    def test_the_buffer_is_bounded(self):
        source = Watched()
        iterator = iter(source.dataset().prefetch(3))
        for taken in range(1, 20):
            next(iterator)
            # Three in the buffer, and one in the thread's hands.
            assert source.made <= taken + 4

    def test_elements_are_all_there_in_order(self):
        for size in (1, 2, 5, ag.data.AUTOTUNE):
            assert [int(x) for x in Watched(50).dataset().prefetch(size)] == list(range(50))
        assert ended()

    def test_an_error_comes_behind_the_elements_before_it(self):
        iterator = iter(Watched(fails_at=2).dataset().prefetch(5))
        assert [int(next(iterator)), int(next(iterator))] == [0, 1]
        with pytest.raises(KeyError, match="no such number"):
            next(iterator)
        with pytest.raises(StopIteration):
            next(iterator)
        assert ended()

    def test_a_failing_element_does_not_end_the_others(self):
        rows = Dataset.from_tensor_slices([1.0, 0.0, 2.0]).map(lambda x: ag.debugging.check_numerics(1 / x, "bad"))
        iterator = iter(rows.prefetch(2))
        assert float(next(iterator)) == 1
        with pytest.raises(ag.errors.InvalidArgumentError):
            next(iterator)
        assert float(next(iterator)) == 0.5

    def test_the_thread_ends_with_the_iterator(self):
        source = Watched()
        iterator = iter(source.dataset().prefetch(2))
        next(iterator)
        assert threads()
        del iterator
        assert ended() and source.closed

    def test_loops_that_are_left_leave_no_threads(self):
        for _ in range(5):
            for x in Watched().dataset().prefetch(2).map(lambda x: x + 1).prefetch(2):
                if x > 3:
                    break
        del x
        assert ended()

    def test_iterators_nobody_has_asked_start_none(self):
        iterator = iter(Watched().dataset().prefetch(2))
        assert not threads()
        del iterator

    def test_in_a_staged_loop(self):
        @ag.function
        def total(ds):
            s = ag.constant(0, ag.int64)
            for x in ds:
                if x > 40:
                    break
                s += x
            return s

        assert int(total(Watched().dataset().prefetch(4))) == sum(range(41))
        assert int(total(Dataset.range(9).map(lambda x: x * 2).prefetch(4))) == 72
        assert ended()

    def test_errors_in_a_staged_loop(self):
        @ag.function
        def total(ds):
            s = ag.constant(0, ag.int64)
            for x in ds:
                s += x
            return s

        with pytest.raises(KeyError, match="no such number"):
            total(Watched(fails_at=3).dataset().prefetch(2))

    def test_tapes_see_elements_through_it(self):
        x = ag.constant([1.0, 2.0])
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = ag.add_n([row * row for row in Dataset.from_tensor_slices(x).map(lambda v: 3.0 * v).prefetch(2)])
        assert tape.gradient(y, x).numpy().tolist() == [18.0, 36.0]

    def test_computed_elements_get_a_thread_once_they_are_slow(self, monkeypatch):
        dataset = Dataset.range(40).map(lambda x: x * 2).batch(2).prefetch(3)
        for limit, expected in ((float("inf"), 0), (-1.0, 1)):
            monkeypatch.setattr(prefetching, "_SLOW", limit)
            iterator = iter(dataset)
            found = [next(iterator).numpy().tolist() for _ in range(6)]
            assert len(threads()) == expected
            found += [batch.numpy().tolist() for batch in iterator]
            assert found == [[4 * k, 4 * k + 2] for k in range(20)]
            del iterator
            assert ended()

    def test_copied_elements_need_no_thread(self):
        for batch in Dataset.range(100).shuffle(10).batch(5).prefetch(2):
            assert not threads()

    def test_an_iterator_is_restored_where_it_was(self):
        iterator = iter(Dataset.range(20).shuffle(20).map(lambda x: x).prefetch(4))
        for _ in range(5):
            next(iterator)
        state = iterator.state()
        rest = [int(x) for x in iterator]
        iterator.set_state(state)
        assert [int(x) for x in iterator] == rest


class Barrier:
    """A function of elements that returns only when so many calls of it run at once."""

    def __init__(self, count):
        self.barrier = threading.Barrier(count)

    def __call__(self, x):
        def wait(value):
            self.barrier.wait(TIMEOUT)
            return value * 10

        return ag.ensure_shape(ag.numpy_function(wait, [x], ag.int64), [])


class TestMapInParallel:
    @pytest.mark.parametrize("deterministic", [None, True])
    def test_calls_run_at_once_and_elements_come_in_order(self, deterministic):
        dataset = Dataset.range(12).map(Barrier(3), num_parallel_calls=3, deterministic=deterministic)
        assert [int(x) for x in dataset] == list(range(0, 120, 10))
        assert len(dataset) == 12

    def test_out_of_order(self):
        dataset = Dataset.range(12).map(Barrier(2), num_parallel_calls=2, deterministic=False)
        assert sorted(int(x) for x in dataset) == list(range(0, 120, 10))

    def test_one_that_is_done_overtakes_another(self):
        go = threading.Event()

        def slow_at_first(value):
            if value == 0:
                go.wait(TIMEOUT)
            return value

        dataset = Dataset.range(4).map(
            lambda x: ag.numpy_function(slow_at_first, [x], ag.int64), num_parallel_calls=2, deterministic=False
        )
        iterator = iter(dataset)
        assert int(next(iterator)) == 1
        go.set()
        assert sorted(int(x) for x in iterator) == [0, 2, 3]

    def test_errors_come_in_their_places(self):
        def fails_at_two(value):
            if value == 2:
                raise ValueError("two")
            return value

        dataset = Dataset.range(4).map(lambda x: ag.numpy_function(fails_at_two, [x], ag.int64), num_parallel_calls=2)
        iterator = iter(dataset)
        assert [int(next(iterator)), int(next(iterator))] == [0, 1]
        with pytest.raises(ValueError, match="two"):
            next(iterator)
        assert int(next(iterator)) == 3

    def test_threads_end_with_the_iterator(self):
        iterator = iter(Dataset.range(100).map(Barrier(2), num_parallel_calls=2))
        next(iterator)
        del iterator
        assert ended()

    def test_in_a_staged_loop(self):
        @ag.function
        def digits(ds):
            s = ag.constant(0, ag.int64)
            for x in ds:
                s = s * 10 + x // 10
            return s

        assert int(digits(Dataset.range(1, 7).map(Barrier(2), num_parallel_calls=2))) == 123456


class TestInterleaveInParallel:
    def test_sources_are_read_at_once(self):
        barrier = threading.Barrier(3)

        def rows(number):
            for k in range(2):
                barrier.wait(TIMEOUT)
                yield number * 10 + k

        def make(number):
            return Dataset.from_generator(rows, output_signature=NUMBER, args=[number])

        dataset = Dataset.range(3).interleave(make, cycle_length=3, num_parallel_calls=3)
        assert [int(x) for x in dataset] == [0, 10, 20, 1, 11, 21]
        assert ended()

    def test_whichever_is_ready(self):
        go = threading.Event()

        def rows(number):
            if number == 0:
                go.wait(TIMEOUT)
            yield number

        def make(number):
            return Dataset.from_generator(rows, output_signature=NUMBER, args=[number])

        iterator = iter(
            Dataset.range(3).interleave(make, cycle_length=2, num_parallel_calls=ag.data.AUTOTUNE, deterministic=False)
        )
        assert int(next(iterator)) == 1
        go.set()
        assert {int(x) for x in iterator} == {0, 2}

    def test_left_early(self):
        dataset = Dataset.range(5).interleave(lambda x: Watched().dataset(), cycle_length=3, num_parallel_calls=2)
        for x, _ in zip(dataset, range(10)):
            assert int(x) < 10
        del x
        assert ended()

    def test_more_threads_than_sources(self):
        with pytest.raises(ag.errors.InvalidArgumentError, match="num_parallel_calls"):
            Dataset.range(3).interleave(lambda x: Dataset.range(x), cycle_length=2, num_parallel_calls=3)


def test_a_process_that_ends_while_a_thread_makes_elements(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import autograph as ag\n"
        "def forever():\n"
        "    while True:\n"
        "        yield 1\n"
        "ds = ag.data.Dataset.from_generator(forever, output_signature=ag.TensorSpec([], ag.int64))\n"
        "iterator = iter(ds.prefetch(2))\n"
        "print(int(next(iterator)))\n"
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
