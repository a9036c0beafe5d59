"""Optionals and options: elements that may not be there, and what a dataset says about how it is run."""

import numpy as np
import pytest

import autograph as ag

Dataset = ag.data.Dataset
Optional = ag.experimental.Optional
SCALAR = ag.TensorSpec([], ag.int64)


def test_with_and_without_an_element():
    full = Optional.from_value({"a": 1.5, "b": [1, 2]})
    assert full.element_spec == {"a": ag.TensorSpec([], ag.float32), "b": ag.TensorSpec([2], ag.int32)}
    assert bool(full.has_value()) and full.get_value()["b"].numpy().tolist() == [1, 2]
    empty = Optional.empty(full.element_spec)
    assert not bool(empty.has_value()) and empty.element_spec == full.element_spec
    with pytest.raises(ag.errors.InvalidArgumentError, match="does not have a value"):
        empty.get_value()
    assert ag.nest.flatten([full]) == [full] and not ag.is_tensor(full)
    assert ag.data.experimental.Optional is ag.data.Optional is Optional


@ag.function
def drained(iterator):
    total, last = ag.constant(0, ag.int64), iterator.get_next_as_optional()
    while last.has_value():
        total += last.get_value()
        last = ag.data.experimental.get_next_as_optional(iterator)
    return total, last


def test_as_a_result_and_in_a_while_loop():
    total, last = drained(iter(Dataset.range(5)))
    assert int(total) == 10 and not bool(last.has_value()) and last.element_spec == SCALAR


@ag.function
def latest(iterator, n):
    found = Optional.empty(SCALAR)
    for _ in ag.range(n):
        found = iterator.get_next_as_optional()
    return found


@pytest.mark.parametrize(("n", "expected"), [(0, None), (3, 2), (5, 4), (7, None)])
def test_in_a_for_loop(n, expected):
    found = latest(iter(Dataset.range(5)), ag.constant(n))
    assert bool(found.has_value()) == (expected is not None)
    if expected is not None:
        assert int(found.get_value()) == expected


@pytest.mark.parametrize("compiled", [False, True])
def test_as_an_argument_and_in_branches(compiled):
    @ag.function(jit_compile=compiled)
    def f(optional, flag):
        if flag:
            optional = Optional.from_value(ag.constant([10.0, 20.0]))
        if optional.has_value():
            return ag.reduce_sum(optional.get_value())
        return ag.constant(-1.0)

    full, empty = Optional.from_value([1.0, 2.0]), Optional.empty(ag.TensorSpec([2], ag.float32))
    for optional, flag, expected in ((full, False, 3.0), (empty, False, -1.0), (full, True, 30.0), (empty, True, 30.0)):
        assert float(f(optional, ag.constant(flag))) == expected


@pytest.mark.parametrize("unrolled", [1, 2])
def test_an_empty_one_that_learns_in_a_loop_what_it_is_empty_of(unrolled):
    # As Keras runs several steps in one call.
    def step(batch):
        return {"sum": ag.reduce_sum(batch), "count": ag.size(batch)}

    @ag.function
    def steps(iterator):
        empty = Optional.empty(None)

        def test(i, outputs, inputs):
            return ag.logical_and(i < 4, inputs.has_value())

        def one(i, outputs, inputs):
            def has_next():
                found = Optional.from_value(step(inputs.get_value()))
                empty._element_spec = found.element_spec
                return found

            def has_none():
                outputs._element_spec = empty._element_spec
                return outputs

            found = ag.cond(ag.logical_and(i < 4, inputs.has_value()), has_next, has_none)
            return i + 1, found, ag.cond(i + 1 < 4, lambda: iterator.get_next_as_optional(), lambda: inputs)

        def body(*state):
            for _ in range(unrolled):
                state = one(*state)
            return state

        found = ag.while_loop(test, body, [ag.constant(0), empty, iterator.get_next_as_optional()])[1]
        found._element_spec = empty.element_spec
        return found

    iterator = iter(Dataset.range(13).batch(2))
    for expected in ({"sum": 6 + 7, "count": 2}, {"sum": 12, "count": 1}, None):
        found = steps(iterator)
        assert found.element_spec == {"sum": SCALAR, "count": ag.TensorSpec([], ag.int32)}
        assert bool(found.has_value()) == (expected is not None)
        if expected is not None:
            assert {name: int(part) for name, part in found.get_value().items()} == expected


def test_specs():
    spec = ag.OptionalSpec(SCALAR)
    assert spec == ag.OptionalSpec(SCALAR) != ag.OptionalSpec(ag.TensorSpec([2], ag.int64))

    @ag.function(input_signature=[spec])
    def f(optional):
        return optional.get_value() + 1

    assert int(f(Optional.from_value(ag.constant(3, ag.int64)))) == 4
    with pytest.raises(ag.errors.InvalidArgumentError, match="does not have a value"):
        f(Optional.empty(SCALAR))


# --- options ---------------------------------------------------------------------------------------------------------


def test_options_are_kept_and_merged():
    first, second = ag.data.Options(), ag.data.Options()
    first.deterministic, first.autotune.enabled = True, False
    second.deterministic, second.threading.private_threadpool_size = False, 2
    dataset = Dataset.range(3).with_options(first).map(lambda x: x + 1).with_options(second).shuffle(2).batch(2)
    found = dataset.options()
    assert (found.deterministic, found.autotune.enabled, found.threading.private_threadpool_size) == (False, False, 2)
    assert Dataset.range(3).options() == ag.data.Options() != found
    both = Dataset.zip((Dataset.range(2).with_options(first), Dataset.range(2).with_options(second)))
    assert both.options().deterministic is False and both.options().autotune.enabled is False
    assert sorted(np.concatenate(list(dataset)).tolist()) == [1, 2, 3]
    second.experimental_deterministic = True
    assert second.deterministic is True and second.experimental_threading is second.threading
    policy = ag.data.experimental.AutoShardPolicy
    assert second.experimental_distribute.auto_shard_policy is policy.AUTO
    second.experimental_distribute.auto_shard_policy = policy.OFF
    assert second.merge(first).experimental_distribute.auto_shard_policy is policy.OFF


def test_options_in_functions():
    @ag.function
    def f(stop):
        total = ag.constant(0, ag.int64)
        for x in Dataset.range(stop).with_options(ag.data.Options()):
            total += x
        return total

    assert int(f(ag.constant(5, ag.int64))) == 10


def test_options_that_are_not_there():
    options = ag.data.Options()
    with pytest.raises(AttributeError, match="deterministc"):
        options.deterministc = True
    with pytest.raises(AttributeError, match="pool"):
        options.threading.pool = 3
    with pytest.raises(TypeError, match="threading"):
        options.threading = 3
    with pytest.raises(TypeError, match="Options"):
        Dataset.range(3).with_options({"deterministic": True})
    with pytest.raises(TypeError, match="merge"):
        options.merge(options.threading)


# --- datasets of datasets --------------------------------------------------------------------------------------------


def repeated(x):
    return Dataset.from_tensors(x).repeat(6)


def counted(x):
    return Dataset.range(x)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (Dataset.range(4).flat_map(counted), [0, 0, 1, 0, 1, 2]),
        (Dataset.from_tensor_slices([[1, 2], [3, 4]]).flat_map(Dataset.from_tensor_slices), [1, 2, 3, 4]),
        (Dataset.range(0).flat_map(counted), []),
        # What TensorFlow gives:
        (
            Dataset.range(1, 6).interleave(repeated, cycle_length=2, block_length=4),
            [1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 3, 3, 4, 4, 5, 5, 5, 5, 5, 5],
        ),
        (
            Dataset.range(0, 6).interleave(counted, cycle_length=3, block_length=2),
            [0, 0, 1, 0, 1, 0, 1, 2, 2, 3, 0, 1, 2, 3, 4],
        ),
        (Dataset.range(3).interleave(repeated, cycle_length=1).take(7), [0, 0, 0, 0, 0, 0, 1]),
    ],
)
def test_datasets_of_datasets(made, expected):
    assert [int(x) for x in made] == expected and [int(x) for x in made] == expected
    assert int(made.cardinality()) == ag.data.UNKNOWN_CARDINALITY
    assert made.element_spec.shape == ()

    @ag.function
    def collected(dataset):
        found = ag.TensorArray(dataset.element_spec.dtype, 0, dynamic_size=True, element_shape=[])
        for x in dataset:
            found = found.write(found.size(), x)
        return found.stack()

    assert collected(made).numpy().tolist() == expected


def test_pairs_are_the_arguments_of_functions_that_make_datasets():
    pairs = Dataset.zip((Dataset.range(3), Dataset.range(5, 8)))
    made = pairs.flat_map(lambda i, x: Dataset.zip((Dataset.from_tensors(i).repeat(2), Dataset.range(x, x + 2))))
    assert [(int(i), int(x)) for i, x in made] == [(0, 5), (0, 6), (1, 6), (1, 7), (2, 7), (2, 8)]
    assert [x.numpy().tolist() for _, x in made.batch(4)] == [[5, 6, 6, 7], [7, 8]]


def test_what_makes_no_dataset_is_refused():
    with pytest.raises(TypeError, match="must return a `Dataset`"):
        Dataset.range(3).flat_map(lambda x: x)
    for wrong in ({"cycle_length": 0}, {"block_length": 0}):
        with pytest.raises(ValueError, match="at least 1"):
            Dataset.range(3).interleave(counted, **wrong)
