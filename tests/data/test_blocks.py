"""Batches that are made of blocks of arrays: what comes out is what would come element by element, for less work."""

import contextlib
import itertools
import threading

import numpy as np
import pytest

import autograph as ag
from autograph.data import batching, plans, streams

Dataset = ag.data.Dataset
RNG = np.random.default_rng(0)
ROWS, NUMBERS = RNG.random((37, 3)).astype(np.float32), RNG.integers(0, 5, 37)
FACTOR = ag.Variable(2.0)
SUMMAND = ag.constant([1.0, 2.0, 3.0])


def pairs():
    return Dataset.from_tensor_slices((ROWS, NUMBERS))


SOURCES = {
    "slices": pairs,
    "zip": lambda: Dataset.zip((Dataset.from_tensor_slices(ROWS), Dataset.range(100, 133))),
    "range": lambda: Dataset.range(23).map(lambda i: (ag.cast(ag.stack([i, i * 2, i + 1]), ag.float32), i)),
    "dictionary": lambda: Dataset.from_tensor_slices({"a": ROWS, "b": NUMBERS}).map(lambda d: (d["a"], d["b"])),
    "two": lambda: pairs().concatenate(Dataset.from_tensor_slices((ROWS * 2, NUMBERS * 2))),
    "nothing": lambda: Dataset.from_tensor_slices((ROWS[:0], NUMBERS[:0])),
}

STEPS = {
    "shuffle": lambda d: d.shuffle(50, seed=4),
    "small shuffle": lambda d: d.shuffle(5, seed=3),
    "same shuffle": lambda d: d.shuffle(10, seed=3, reshuffle_each_iteration=False),
    "take": lambda d: d.take(17),
    "skip": lambda d: d.skip(4),
    "repeat": lambda d: d.repeat(2),
    "repeat without end": lambda d: d.repeat().take(50),
    "cache": lambda d: d.cache(),
    "options": lambda d: d.with_options(ag.data.Options()),
    "arithmetic": lambda d: d.map(lambda x, y: (x * 2.0 + ag.cast(y, ag.float32), y % 3)),
    "reduction": lambda d: d.map(lambda x, y: (x / ag.reduce_max(x), y)),
    "moves": lambda d: d.map(
        lambda x, y: (ag.reverse(x, [0]) * SUMMAND + ag.concat([x[1:], ag.reshape(x, [1, 3])[0, :1]], 0), y)
    ),
    "branches": lambda d: d.map(lambda x, y: (x if y > 2 else -x, y)),
    "loops": lambda d: d.map(lambda x, y: (ag.map_fn(lambda each: each * each, x), y)),
    "variables": lambda d: d.map(lambda x, y: (x * FACTOR, y)),
    "constants": lambda d: d.map(lambda x, y: (x, ag.constant(1, ag.int64))),
    "draws": lambda d: d.map(lambda x, y: (x + ag.random.uniform([3], seed=7), y)),
    "filter": lambda d: d.filter(lambda x, y: y % 2 == 0),
    "enumerate": lambda d: d.enumerate(3).map(lambda i, pair: (pair[0], pair[1] + i)),
}


def iterations(make, size, drop_remainder):
    """Two iterations, and the beginnings of two that take turns."""
    ag.random.set_seed(11)
    try:
        dataset = make().batch(size, drop_remainder=drop_remainder)
        found = [list(dataset), list(dataset)]
        one, other = iter(dataset), iter(dataset)
        found.append([batch for _ in range(3) for batch in (next(other, None), next(one, None)) if batch is not None])
        return [[tuple(map(np.asarray, batch)) for batch in batches] for batches in found]
    finally:
        ag.random.set_seed(None)


@contextlib.contextmanager
def element_by_element():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plans.Batched, "elements", lambda self: self._from_elements(self.source.elements()))
        shuffled = lambda self: self._shuffled(self.source.elements(), self._order())  # noqa: E731
        patch.setattr(streams.Shuffled, "elements", shuffled)
        yield


def check(source, steps, size, drop_remainder):
    def make():
        dataset = SOURCES[source]()
        for step in steps:
            dataset = STEPS[step](dataset)
        return dataset

    assert make()._plan.in_blocks
    found = iterations(make, size, drop_remainder)
    with element_by_element():
        expected = iterations(make, size, drop_remainder)
    for ours, theirs in zip(found, expected, strict=True):
        for batch, other in zip(ours, theirs, strict=True):
            for array, same in zip(batch, other, strict=True):
                assert array.dtype == same.dtype
                np.testing.assert_array_equal(array, same)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("source", SOURCES)
def test_one_step(source, step):
    check(source, [step], 7, drop_remainder=False)


@pytest.mark.parametrize("steps", list(itertools.permutations(["shuffle", "repeat", "arithmetic"], 3)))
@pytest.mark.parametrize("drop_remainder", [False, True])
def test_three_steps(steps, drop_remainder):
    check("slices", steps, 16, drop_remainder)


@pytest.mark.parametrize("seed", range(12))
def test_any_steps(seed):
    rng = np.random.default_rng(seed)
    steps = rng.choice(list(STEPS), rng.integers(2, 5))
    check(rng.choice(list(SOURCES)[:-1]), steps, int(rng.choice([1, 4, 100])), bool(rng.integers(2)))


# --- how much work it is ---------------------------------------------------------------------------------------------


def calls(patch, owner, name):
    """Counts the calls of a method from now on: a list that grows."""
    made, method = [], getattr(owner, name)

    def counted(self, *args):
        made.append(args)
        return method(self, *args)

    patch.setattr(owner, name, counted)
    return made


def test_batches_of_arrays_are_slices_of_them():
    dataset = Dataset.from_tensor_slices(ROWS)
    stored = dataset._plan.leaves[0]._array
    batches = list(dataset.batch(8))
    assert len(batches) == 5 and all(np.shares_memory(batch._array, stored) for batch in batches)
    assert all(not batch._array.flags.owndata for batch in batches)


def test_a_shuffled_batch_is_one_gather(monkeypatch):
    selected = calls(monkeypatch, plans.Slices, "select")
    assert len(list(pairs().shuffle(37, seed=1).batch(8).prefetch(2))) == 5
    assert [len(which) for (which,) in selected] == [8, 8, 8, 8, 5]


@pytest.mark.parametrize("step", ["arithmetic", "branches", "variables", "draws"])
def test_a_mapped_batch_is_one_call(step, monkeypatch):
    dataset = STEPS[step](pairs()).batch(8)
    single = calls(monkeypatch, type(dataset._plan.source.function), "__call__")
    many = calls(monkeypatch, batching.Batching, "__call__")
    assert len(list(dataset)) == 5
    assert [len(leaves[0]) for (leaves,) in many if len(leaves[0])] == [8, 8, 8, 8, 5]
    # Once for each batch; a loop asks the user's function a few times more, while it is traced.
    assert len(single) <= 10


def test_functions_with_effects_are_called_for_each_element():
    seen = []

    def note(x):
        seen.append(int(x))
        return x

    dataset = Dataset.range(6).map(lambda x: ag.numpy_function(note, [x], ag.int64)).batch(2)
    assert not dataset._plan.source.in_blocks
    iterator = iter(dataset)
    next(iterator)
    assert seen == [0, 1]
    counter = ag.Variable(0)
    counted = Dataset.range(6).map(lambda x: (counter.assign_add(1), x)[1]).batch(4)
    assert [batch.numpy().tolist() for batch in counted] == [[0, 1, 2, 3], [4, 5]] and int(counter) == 6


def test_values_that_functions_read_are_read_anew():
    settings = {"scale": 1}

    class Scale:
        factor = 1

    dataset = Dataset.range(4).map(lambda x: x * Scale.factor + settings["scale"]).batch(4)
    assert next(iter(dataset)).numpy().tolist() == [1, 2, 3, 4]
    Scale.factor = 3
    with element_by_element():
        expected = next(iter(dataset)).numpy().tolist()
    assert next(iter(dataset)).numpy().tolist() == expected
    variable = ag.Variable(10, dtype=ag.int64)
    moving = iter(Dataset.range(4).map(lambda x: x + variable).batch(2))
    assert next(moving).numpy().tolist() == [10, 11]
    variable.assign(20)
    assert next(moving).numpy().tolist() == [22, 23]


def test_errors_come_with_the_batch():
    dataset = Dataset.from_tensor_slices([1, 2, 0, 4]).map(lambda x: 8 // x)
    iterator = iter(dataset.batch(2))
    assert next(iterator).numpy().tolist() == [8, 4]
    with pytest.raises(ag.errors.InvalidArgumentError, match="zero"):
        next(iterator)
    # A predicate that may fail isn't asked of elements that nobody wants yet.
    cautious = Dataset.from_tensor_slices([1, 2, 0, 4]).filter(lambda x: 8 // x > 1)
    assert [int(x) for x in cautious.take(2)] == [1, 2] and next(iter(cautious.batch(2))).numpy().tolist() == [1, 2]


def test_a_cache_keeps_a_complete_run(monkeypatch):
    dataset = pairs().map(lambda x, y: (x * 2.0, y)).cache()
    many = calls(monkeypatch, batching.Batching, "__call__")
    next(iter(dataset.batch(8)))
    assert dataset._plan.arrays is None
    first = [np.asarray(x) for x, _ in dataset.batch(8)]
    count = len(many)
    again = [np.asarray(x) for x, _ in dataset.batch(37)]
    assert len(many) == count
    np.testing.assert_array_equal(np.concatenate(first), again[0])
    assert len(list(dataset)) == 37 and len(list(dataset.shuffle(5).batch(10))) == 4


def test_gradients_flow_through_batches():
    x, w = ag.Variable([[1.0], [2.0], [3.0]]), ag.Variable(2.0)
    with ag.GradientTape() as tape:
        tensor = x * 1.0
        rows = Dataset.from_tensor_slices(tensor)
        total = ag.add_n([ag.reduce_sum(ag.square(batch)) for batch in rows.map(lambda row: row * w).batch(2)])
        total += ag.add_n([ag.reduce_sum(row) for row in rows.shuffle(3)])
    dx, dw = tape.gradient(total, [x, w])
    np.testing.assert_array_equal(dx, [[9.0], [17.0], [25.0]])
    assert float(dw) == 2 * 2 * (1 + 4 + 9)


def test_threads_share_an_iterator():
    iterator = iter(Dataset.range(3000).shuffle(100).map(lambda x: x * 2).batch(10))
    found, lock = [], threading.Lock()

    def work():
        for batch in iterator:
            with lock:
                found.extend(batch.numpy().tolist())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(0, 6000, 2))


def test_threads_share_a_dataset():
    dataset = Dataset.range(200).shuffle(50, seed=1).batch(20)
    found = [None] * 4

    def work(index):
        found[index] = np.concatenate([batch.numpy() for batch in dataset])

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(sorted(each.tolist()) == list(range(200)) for each in found)
    assert len({tuple(each.tolist()) for each in found}) == 4


def test_the_order_in_batches_is_tensorflows():
    whole = Dataset.range(12).shuffle(12, seed=5).batch(5)
    assert np.concatenate(list(whole)).tolist() == [1, 0, 7, 11, 9, 10, 3, 5, 4, 8, 6, 2]
    small = Dataset.range(12).repeat(1).shuffle(3, seed=5).batch(5)
    assert np.concatenate(list(small)).tolist() == [1, 3, 4, 5, 2, 7, 8, 0, 6, 9, 11, 10]


def test_loops_in_functions_get_batches_of_blocks(monkeypatch):
    dataset = pairs().shuffle(37, seed=2).batch(8)
    selected = calls(monkeypatch, plans.Slices, "select")

    @ag.function
    def total(dataset):
        sum_x, sum_y = 0.0, ag.constant(0, ag.int64)
        for x, y in dataset:
            sum_x += ag.reduce_sum(x)
            sum_y += ag.reduce_sum(y)
        return sum_x, sum_y

    x, y = total(dataset)
    np.testing.assert_allclose(x, ROWS.sum(), rtol=1e-5)
    assert int(y) == NUMBERS.sum() and len(selected) == 5
