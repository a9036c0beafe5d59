"""Datasets in traced functions: loops, iterators and reductions are parts of the program."""

import numpy as np
import pytest

import autograph as ag

Dataset = ag.data.Dataset

COUNTED = {
    "range": lambda: Dataset.range(7),
    "range backwards": lambda: Dataset.range(9, 2, -2),
    "empty": lambda: Dataset.range(0),
    "slices": lambda: Dataset.from_tensor_slices(np.array([3, 1, 4, 1, 5])),
    "one element": lambda: Dataset.from_tensors(np.int64(8)),
    "map": lambda: Dataset.range(5).map(lambda x: x * x + 1),
    "zip and enumerate": lambda: Dataset.range(5).enumerate(3).map(lambda i, x: i * x),
    "skip and take": lambda: Dataset.range(9).skip(2).take(4),
    "repeat": lambda: Dataset.range(3).repeat(2),
    "repeat of nothing": lambda: Dataset.range(0).repeat(2),
    "batch": lambda: Dataset.range(7).batch(3).map(ag.reduce_sum),
    "batch of slices": lambda: (
        Dataset.from_tensor_slices(np.arange(8)).batch(3, drop_remainder=True).map(ag.reduce_sum)
    ),
}
CALLED = {
    "filter": lambda: Dataset.range(9).filter(lambda x: x % 2 == 1),
    "take_while": lambda: Dataset.range(9).take_while(lambda x: x < 4),
    "concatenate": lambda: Dataset.range(3).concatenate(Dataset.range(5, 8)),
    "generator": lambda: Dataset.from_generator(lambda: iter([2, 7, 1]), output_signature=ag.TensorSpec([], ag.int64)),
    "no element passes": lambda: Dataset.range(9).filter(lambda x: x < 0),
    "without end": lambda: Dataset.range(3).repeat().take(8),
    "scan": lambda: Dataset.range(5).scan(np.int64(1), lambda s, x: (s + x, s * x)),
}


def digits(ds):
    s = ag.constant(0, ag.int64)
    for x in ds:
        s = s * 10 + x
    return s


def left_by_break(ds):
    s = ag.constant(0, ag.int64)
    for x in ds:
        if x > 3:
            break
        s += x
    return s


def with_continue(ds):
    s = ag.constant(0, ag.int64)
    for x in ds:
        if x % 2 == 0:
            continue
        s = s * 10 + x
    return s


def left_by_return(ds):
    for x in ds:
        if x > 2:
            return x * 100
    return ag.constant(-1, ag.int64)


def nested(ds):
    s = ag.constant(0, ag.int64)
    for x in ds:
        for y in ds:
            s += x * y
    return s


@pytest.mark.parametrize("program", [digits, left_by_break, with_continue, left_by_return, nested])
@pytest.mark.parametrize("name", [*COUNTED, *CALLED])
def test_loops_agree_with_python(program, name):
    dataset = {**COUNTED, **CALLED}[name]()
    assert int(ag.function(program)(dataset)) == int(program(dataset))


def ops_of(concrete):
    return {node.op.name for node in concrete.graph.walk()}


@pytest.mark.parametrize("name", COUNTED)
def test_counted_elements_are_made_by_the_program(name):
    assert "host_call" not in ops_of(ag.function(digits).get_concrete_function(COUNTED[name]()))


@pytest.mark.parametrize("name", [name for name in CALLED if name != "without end"])
def test_other_elements_come_from_python(name):
    concrete = ag.function(digits).get_concrete_function(CALLED[name]())
    assert {"host_call", "while"} <= ops_of(concrete)


def test_gradients_flow_through_counted_elements():
    xs, ys = np.arange(8, dtype=np.float32).reshape(4, 2), np.array([1.0, -1.0, 2.0, 0.5], np.float32)
    dataset = Dataset.from_tensor_slices((xs, ys))
    w = ag.Variable([0.5, -0.25])

    @ag.function
    def loss(ds):
        total = 0.0
        for x, y in ds:
            total += (ag.reduce_sum(x * w) - y) ** 2
        return total

    with ag.GradientTape() as tape:
        value = loss(dataset)
    residual = xs @ w.numpy() - ys
    np.testing.assert_allclose(value, (residual**2).sum(), rtol=1e-5)
    np.testing.assert_allclose(tape.gradient(value, w), 2 * residual @ xs, rtol=1e-5)


def test_datasets_made_from_symbolic_tensors():
    @ag.function
    def total(n, rows):
        s = ag.constant(0.0)
        for i, row in Dataset.zip(Dataset.range(n), Dataset.from_tensor_slices(rows)):
            s += ag.cast(i + 1, ag.float32) * row
        return s

    rows = ag.constant([1.0, 10.0, 100.0])
    assert float(total(ag.constant(3), rows)) == 321.0
    assert float(total(ag.constant(2), rows)) == 21.0


def test_shapes_that_differ_from_element_to_element():
    signature = ag.TensorSpec([None], ag.float32)
    dataset = Dataset.from_generator(lambda: iter([[1.0], [], [2.0, 3.0]]), output_signature=signature)

    @ag.function
    def joined(ds):
        all_ = ag.zeros([0])
        for x in ds:
            all_ = ag.concat([all_, x], 0)
        return all_

    assert joined(dataset).numpy().tolist() == [1.0, 2.0, 3.0]


def test_structures_in_a_stream():
    dataset = Dataset.range(6).map(lambda x: {"x": x, "y": (x * 2, x * 3)}).filter(lambda e: e["x"] > 2)

    @ag.function
    def total(ds):
        s = ag.constant(0, ag.int64)
        for e in ds:
            a, b = e["y"]
            s += e["x"] + a + b
        return s

    assert int(total(dataset)) == 6 * (3 + 4 + 5)


class TestIterators:
    def test_one_made_inside_starts_anew_in_every_run(self):
        @ag.function
        def first_two(ds):
            iterator = iter(ds)
            return 10 * next(iterator) + next(iterator)

        dataset = Dataset.range(3, 9)
        assert [int(first_two(dataset)) for _ in range(2)] == [34, 34]

    def test_one_made_outside_goes_on(self):
        @ag.function
        def two_more(iterator):
            return 10 * next(iterator) + next(iterator)

        iterator = iter(Dataset.range(6))
        assert [int(two_more(iterator)), int(next(iterator)), int(two_more(iterator))] == [1, 2, 34]

    def test_loops_resume_where_the_last_one_was_left(self):
        @ag.function
        def three_loops(ds):
            iterator = iter(ds)
            s = ag.constant(0, ag.int64)
            for x in iterator:
                s = s * 10 + x
                break
            for x in iterator:
                if x > 3:
                    break
                s = s * 10 + x
            for x in iterator:
                s = s * 10 + x
            return s

        # The 4 is taken by the loop that it ends.
        assert int(three_loops(Dataset.range(1, 8))) == 123567

    def test_next_in_a_loop(self):
        @ag.function
        def digits_of(ds, n):
            iterator = iter(ds)
            s = ag.constant(0, ag.int64)
            for _ in range(n):
                s = s * 10 + next(iterator)
            return s

        assert int(digits_of(Dataset.range(1, 9), ag.constant(4))) == 1234

    def test_the_end(self):
        @ag.function
        def too_many(ds, go):
            iterator = iter(ds)
            while go:
                next(iterator)

        with pytest.raises(ag.errors.OutOfRangeError, match="End of sequence"):
            too_many(Dataset.range(3), ag.constant(True))

    def test_optionals(self):
        @ag.function
        def total(ds):
            iterator = iter(ds)
            s = ag.constant(0, ag.int64)
            optional = iterator.get_next_as_optional()
            if optional.has_value():
                s += optional.get_value()
            return s, iterator.get_next_as_optional().has_value()

        total_, more = total(Dataset.range(5, 6))
        assert (int(total_), bool(more)) == (5, False)

    def test_python_can_not_run_over_one_while_tracing(self):
        @ag.function
        def as_list(ds):
            return list(ds)

        with pytest.raises(ag.errors.OperatorNotAllowedInGraphError, match="next"):
            as_list(Dataset.range(3))


def test_reduce_and_cardinality():
    @ag.function
    def summed(ds):
        return ds.reduce(np.int64(0), lambda s, x: s + x if x > 1 else s), ds.cardinality()

    total, count = summed(Dataset.range(5))
    assert (int(total), int(count)) == (9, 5)


def test_enumerate_zip_and_map_of_python():
    @ag.function
    def total(ds):
        s = ag.constant(0, ag.int64)
        for i, x in enumerate(ds):
            s += i * x
        for x, y in zip(ds, map(lambda v: v * v, ds)):
            s += x * y
        return s

    assert int(total(Dataset.range(4))) == 14 + 36


def test_a_variable_bound_by_the_loop_stays_at_the_last_element():
    @ag.function
    def last(ds):
        x = ag.constant(-1, ag.int64)
        for x in ds:
            pass
        return x

    assert int(last(Dataset.range(4))) == 3
    assert int(last(Dataset.range(9).filter(lambda v: v < 6))) == 5
    assert int(last(Dataset.range(0))) == -1


@pytest.mark.parametrize("drop_remainder", [False, True])
def test_a_batch_size_that_is_computed(drop_remainder):
    def f(n):
        total = ag.constant(0, ag.int64)
        for rows in ag.data.Dataset.range(7).skip(1).batch(n + 1, drop_remainder):
            total = total * 10 + ag.reduce_sum(rows) + ag.cast(ag.shape(rows)[0], ag.int64)
        return total

    for n in (1, 3, 9):
        assert int(ag.function(f)(ag.constant(n))) == int(f(ag.constant(n)))
    with pytest.raises(ValueError, match="batch_size must be at least 1"):
        ag.function(f)(ag.constant(-1))


def _drawn(ds):
    a = ag.TensorArray(ag.int32, 0, dynamic_size=True)
    for x in ds:
        a = a.write(a.size(), ag.cast(x, ag.int32))
    return a.stack()


MADE = {
    "shuffled slices": (lambda x: Dataset.from_tensor_slices(x).shuffle(5, seed=2), [1, 3, 5, 2, 4]),
    "shuffled range": (lambda x: Dataset.range(x[4]).shuffle(5, seed=2), [0, 2, 4, 1, 3]),
    "filter of constants": (lambda x: Dataset.range(6).filter(lambda v: v % 2 == 0), [0, 2, 4]),
    "unbatched": (lambda x: Dataset.from_tensors(x).unbatch().repeat(2), [1, 2, 3, 4, 5] * 2),
    "random": (lambda x: Dataset.random(seed=1).map(lambda v: v % 1000).take(2), [127, 759]),
    "zip": (
        lambda x: Dataset.zip(Dataset.from_tensor_slices(x), Dataset.range(5).shuffle(5, seed=2)).map(
            lambda a, b: a * 10 + ag.cast(b, ag.int32)
        ),
        [10, 22, 34, 41, 53],
    ),
    "enumerated": (
        lambda x: Dataset.from_tensor_slices(x).unique().enumerate(ag.cast(x[1], ag.int64)).map(lambda i, v: i),
        [2, 3, 4, 5, 6],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_datasets_made_in_a_function_start_again_in_each_call(name):
    """The elements are TensorFlow's, whose datasets in a function are made by each call."""
    make, expected = MADE[name]
    traced = ag.function(lambda x: _drawn(make(x)))
    for _ in range(2):
        assert traced(ag.constant([1, 2, 3, 4, 5])).numpy().tolist() == expected


def test_iterations_in_one_call_shuffle_anew():
    @ag.function
    def f():
        a = ag.TensorArray(ag.int64, 0, dynamic_size=True)
        ds = Dataset.range(6).shuffle(6, seed=2)
        for _ in ag.range(2):
            for x in ds:
                a = a.write(a.size(), x)
        return a.stack()

    ag.random.set_seed(3)
    for _ in range(2):
        assert f().numpy().tolist() == [0, 3, 5, 2, 1, 4, 5, 0, 1, 4, 2, 3]  # as in TensorFlow


def test_a_shuffle_without_a_seed_is_another_one_in_each_call():
    ag.random.set_seed(None)
    f = ag.function(lambda: _drawn(Dataset.range(40).shuffle(40)))
    assert f().numpy().tolist() != f().numpy().tolist()


def test_loops_draw_what_iterations_draw():
    """The random ops of mapped functions start again with each iteration over the dataset, as in TensorFlow."""
    ag.random.set_seed(3)
    ds = Dataset.range(6).map(lambda i: ag.random.uniform([], maxval=1000, dtype=ag.int32, seed=5))
    traced = ag.function(_drawn)
    expected = [int(x) for x in ds]
    assert expected == [int(x) for x in ds]
    for _ in range(2):
        assert traced(ds).numpy().tolist() == expected


def test_a_mapped_function_with_a_tensor_of_the_program():
    @ag.function
    def f(x):
        return _drawn(Dataset.range(3).map(lambda v: v * x).shuffle(3))

    with pytest.raises(ag.errors.InaccessibleTensorError, match="Make the tensor part of the elements"):
        f(ag.constant(2, ag.int64))


_NUMBERS, _LENGTHS = ag.constant([3.0, 0.0, 2.0, 5.0, 1.0]), ag.constant([2, 0, 3, 1, 2])
MADE_OF_TENSORS = {
    "scan from a tensor": lambda x, n: _slices(x).scan(ag.constant(0.0), lambda s, v: (s + v, s * v)),
    "scan from a number": lambda x, n: _slices(x).scan(0.0, lambda s, v: (s + v, s * v)),
    "scan from what is computed": lambda x, n: _slices(x).scan((x[0], 0), lambda s, v: ((s[0] + v, 1), s[0] * v)),
    "padding": lambda x, n: _vectors(n).padded_batch(2, padding_values=-1),
    "padding with a tensor": lambda x, n: _vectors(n).padded_batch(2, padding_values=ag.constant(-1)),
    "padding with what is computed": lambda x, n: _vectors(n).padded_batch(2, padding_values=n[2]),
    "buckets": lambda x, n: _vectors(n).bucket_by_sequence_length(
        lambda row: ag.size(row), [2], [2, 2], padding_values=ag.constant(-1)
    ),
    "weights": lambda x, n: Dataset.sample_from_datasets([_slices(x), _slices(-x)], weights=[0.3, 0.7], seed=3),
    "weights with a zero": lambda x, n: Dataset.sample_from_datasets([_slices(x), _slices(-x)], weights=[1.0, 0.0]),
    "weights that are computed": lambda x, n: Dataset.sample_from_datasets(
        [_slices(x), _slices(-x)], weights=x[2:4] / 7, seed=3
    ),
    "a counter": lambda x, n: Dataset.counter(2, ag.constant(3, ag.int64)).take(3),
    "a counter from what is computed": lambda x, n: Dataset.counter(ag.cast(n[0], ag.int64)).take(3),
    "resampling": lambda x, n: _slices(n).rejection_resample(lambda v: v % 2, [0.5, 0.5], seed=1).map(lambda c, v: v),
    "resampling from known shares": lambda x, n: (
        _slices(n).rejection_resample(lambda v: v % 2, [0.5, 0.5], [0.6, 0.4], seed=1).map(lambda c, v: v)
    ),
}


def _slices(x):
    return Dataset.from_tensor_slices(x)


def _vectors(lengths):
    return _slices(lengths).map(lambda length: ag.range(length))


@pytest.mark.parametrize("name", MADE_OF_TENSORS)
def test_made_in_a_function(name):
    def run(x, n):
        total, place = 0.0, 1.0
        for element in MADE_OF_TENSORS[name](x, n):
            total += ag.reduce_sum(ag.cast(element, ag.float32)) * place
            place += 1.0
        return total, place

    expected = [float(v) for v in run(_NUMBERS, _LENGTHS)]
    assert [float(v) for v in ag.function(run)(_NUMBERS, _LENGTHS)] == expected


def test_weights_that_no_dataset_has():
    @ag.function
    def f(x):
        return _drawn(Dataset.sample_from_datasets([_slices(x), _slices(x)], weights=-x))

    with pytest.raises(ValueError, match="must not be negative"):
        f(ag.constant([1.0, 2.0]))


def test_scalars_have_no_rows():
    for split in (lambda ds: ds.rebatch(3), lambda ds: ds.unbatch()):
        with pytest.raises(ValueError, match=r"scalars \(TensorSpec.*batch\(\) makes vectors"):
            split(Dataset.range(4))
