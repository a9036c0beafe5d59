"""None in elements: it goes through pipelines, functions and loops, and comes out as None, as in TensorFlow."""

import pickle

import numpy as np
import pytest

import autograph as ag

Dataset = ag.data.Dataset
COLUMN = np.arange(6, dtype=np.float32).reshape(6, 1)
NONE = Dataset.from_tensors(None).element_spec


def rows():
    return Dataset.from_tensor_slices({"x": COLUMN, "o": None})


@ag.function
def double(e):
    return e["x"] * 2.0 if e["o"] is None else e["x"]


CHANGES = {
    "batch": lambda d: d.batch(4),
    "padded_batch": lambda d: d.padded_batch(4),
    "ragged_batch": lambda d: d.ragged_batch(4),
    "unbatch": lambda d: d.batch(4).unbatch(),
    "shuffle": lambda d: d.shuffle(3).prefetch(1).repeat(2),
    "map": lambda d: d.map(lambda e: {"x": double(e), "o": e["o"]}),
    "parallel map": lambda d: d.map(
        lambda e: {"x": ag.py_function(lambda x: x, [e["x"]], ag.float32), "o": e["o"]}, num_parallel_calls=2
    ),
    "filter": lambda d: d.filter(lambda e: e["o"] is None and e["x"][0] > 2.0),
    "take_while": lambda d: d.take_while(lambda e: e["o"] is None and e["x"][0] < 3.0),
    "scan": lambda d: d.scan(0.0, lambda s, e: (s + 1.0, {"x": double(e), "o": e["o"]})),
    "flat_map": lambda d: d.flat_map(lambda e: Dataset.from_tensors(e).repeat(1 if e["o"] is None else 2)),
    "interleave": lambda d: d.interleave(lambda e: Dataset.from_tensors(e).repeat(2), cycle_length=2),
    "group_by_window": lambda d: d.group_by_window(
        lambda e: ag.cast(e["x"][0], ag.int64) % 2, lambda key, window: window.batch(2), 2
    ),
    "concatenate": lambda d: d.concatenate(d),
    "sample": lambda d: Dataset.sample_from_datasets([d, d], seed=1),
    "cache": lambda d: d.cache(),
}


@pytest.mark.parametrize("name", CHANGES)
def test_it_stays_none(name):
    made = CHANGES[name](rows())
    assert made.element_spec["o"] == NONE and repr(NONE) == "NoneTensorSpec()"
    found = list(made)
    assert found and all(each["o"] is None and each["x"].dtype == ag.float32 for each in found)
    assert all(each["o"] is None for each in made.as_numpy_iterator())

    @ag.function
    def total():
        found = 0.0
        for e in made:
            assert e["o"] is None
            found += ag.reduce_sum(e["x"])
        return found

    np.testing.assert_allclose(total(), sum(float(ag.reduce_sum(each["x"])) for each in found))


def test_it_is_known_in_functions():
    assert [int(n) for n in rows().map(lambda e: 1 if e["o"] is None else 2)] == [1] * 6
    assert float(rows().reduce(0.0, lambda s, e: s + e["x"][0] if e["o"] is None else s)) == 15
    assert [bool(b) for b in rows().scan(0.0, lambda s, e: (s, e["o"] is None))] == [True] * 6


def test_functions_may_give_it():
    made = Dataset.range(3).map(lambda i: (i, None)).batch(2)
    assert made.element_spec == (ag.TensorSpec([None], ag.int64), NONE)
    assert [(i.numpy().tolist(), o) for i, o in made] == [([0, 1], None), ([2], None)]
    assert list(Dataset.from_tensors(None).repeat(2)) == [None, None]


def test_iterators_in_functions():
    @ag.function
    def two(iterator):
        first, second = iterator.get_next(), iterator.get_next_as_optional().get_value()
        assert first["o"] is None and second["o"] is None
        return first["x"] + second["x"]

    assert two(iter(rows())).numpy().tolist() == [1.0]
    optional = ag.experimental.Optional.from_value((1, None))
    assert optional.element_spec[1] == NONE and optional.get_value()[1] is None


def test_files_and_pickles(tmp_path):
    rows().save(str(tmp_path / "saved"))
    kept = rows().cache(str(tmp_path / "kept"))
    for made in (Dataset.load(str(tmp_path / "saved")), kept, kept, pickle.loads(pickle.dumps(rows()))):
        assert [(float(each["x"][0]), each["o"]) for each in made] == [(float(i), None) for i in range(6)]


def test_errors():
    with pytest.raises(TypeError, match="One dataset can't hold elements of both"):
        rows().concatenate(Dataset.from_tensor_slices({"x": COLUMN, "o": COLUMN}))
    with pytest.raises(ValueError, match="at least one tensor"):
        Dataset.from_tensor_slices(None)
    with pytest.raises(TypeError, match="where its output_signature says None"):
        list(Dataset.from_generator(lambda: iter([(1, 2)]), output_signature=(ag.TensorSpec((), ag.int32), NONE)))
    given = Dataset.from_generator(lambda: iter([(1, None)]), output_signature=(ag.TensorSpec((), ag.int32), NONE))
    assert [(int(a), b) for a, b in given] == [(1, None)]
