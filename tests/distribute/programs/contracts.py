"""TensorFlow's contracts of strategies, on any number of workers: asserts them."""

import numpy as np

import autograph as ag
from runtime.collectives import mpi

strategy = ag.distribute.MultiWorkerMirroredStrategy()
SIZE = strategy.num_replicas_in_sync
RANK = strategy.cluster_resolver.task_id
ON_READ = ag.VariableSynchronization.ON_READ
Aggregation = ag.VariableAggregation


def equal_everywhere(value):
    values = strategy.gather(ag.reshape(value, [1, -1]), axis=0).numpy()
    return (values == values[0]).all()


def variables():
    with strategy.scope():
        assert ag.distribute.get_strategy() is strategy and ag.distribute.in_cross_replica_context()
        first = ag.Variable(float(RANK + 1))  # all begin with the value of rank 0
        mean = ag.Variable(ag.ones([3]), aggregation=Aggregation.MEAN)
        total = ag.Variable([0, 0], aggregation=Aggregation.SUM)
        only = ag.Variable(0.0, aggregation=Aggregation.ONLY_FIRST_REPLICA)
        read = ag.Variable(0.0, synchronization=ON_READ, aggregation=Aggregation.SUM)
        average = ag.Variable(0.0, synchronization=ON_READ, aggregation=Aggregation.MEAN)
        private = ag.Variable(0.0, synchronization=ON_READ)
    assert float(first) == 1.0
    assert isinstance(first, ag.Variable) and first.trainable

    def replica():
        mean.assign_add(ag.ones([3]) * float(RANK))
        total.assign([1, RANK])
        only.assign(10.0 + RANK)
        read.assign_add(float(RANK))
        average.assign(float(RANK))
        private.assign_sub(1.0 + RANK)
        return ag.identity(read), ag.identity(private)

    for times, run in enumerate((replica, ag.function(replica)), 1):
        own, mine = strategy.run(run)
        assert float(own) == times * RANK and float(mine) == -times * (1 + RANK)
        assert np.allclose(mean.numpy(), 1 + times * (SIZE - 1) / 2)
        assert total.numpy().tolist() == [SIZE, SIZE * (SIZE - 1) // 2]
        assert float(only) == 10.0
        assert float(read) == times * SIZE * (SIZE - 1) / 2 == float(read.numpy())
        assert float(average) == (SIZE - 1) / 2
    try:
        private.read_value()
    except ValueError as error:
        assert "NONE" in str(error)
    else:
        raise AssertionError("a private value was read from outside")
    read.assign(8.0 * SIZE)
    assert float(strategy.run(lambda: read.read_value())) == 8.0 and float(read) == 8.0 * SIZE
    try:
        read.assign_add(1.0)
    except ValueError as error:
        assert "cross-replica" in str(error)
    else:
        raise AssertionError("a sum was added to from outside")


def rows_of_variables():
    with strategy.scope():
        total = ag.Variable(ag.ones([SIZE]), aggregation=Aggregation.SUM)
        mean = ag.Variable(ag.ones([SIZE]), aggregation=Aggregation.MEAN)
        only = ag.Variable(ag.ones([SIZE]), aggregation=Aggregation.ONLY_FIRST_REPLICA)

    def replica():
        rows = ag.IndexedSlices(ag.constant([1.0 + RANK]), ag.constant([RANK]))
        for variable in (total, mean, only):
            variable.scatter_sub(rows)

    for times, run in enumerate((replica, ag.function(replica)), 1):
        strategy.run(run)
        assert total.numpy().tolist() == [1.0 - times * (1 + rank) for rank in range(SIZE)]
        assert np.allclose(mean, [1.0 - times * (1 + rank) / SIZE for rank in range(SIZE)])
        assert only.numpy().tolist() == [1.0 - times] + [1.0] * (SIZE - 1)


def replica_context():
    def replica(x):
        context = ag.distribute.get_replica_context()
        assert context.replica_id_in_sync_group == RANK and context.num_replicas_in_sync == SIZE
        summed, mean = context.all_reduce("SUM", [x, x]), context.all_reduce(ag.distribute.ReduceOp.MEAN, {"a": x})
        rows = context.all_gather(ag.fill([RANK + 1, 2], RANK), axis=0)
        columns = context.all_gather(ag.fill([2, 1], RANK), axis=-1)
        slices = context.all_reduce("SUM", ag.IndexedSlices(ag.ones([1, 2]), [RANK], ag.constant([SIZE, 2])))
        return summed[1], mean["a"], rows, columns, ag.convert_to_tensor(slices)

    for run in (replica, ag.function(replica)):
        summed, mean, rows, columns, slices = strategy.run(run, args=(ag.constant([1.0, RANK]),))
        assert summed.numpy().tolist() == [SIZE, SIZE * (SIZE - 1) / 2]
        assert mean.numpy().tolist() == [1.0, (SIZE - 1) / 2]
        assert rows.numpy().tolist() == [[r, r] for r in range(SIZE) for _ in range(r + 1)]
        assert columns.numpy().tolist() == [list(range(SIZE))] * 2
        assert slices.numpy().tolist() == [[1.0, 1.0]] * SIZE
    assert strategy.run(lambda: ag.distribute.get_replica_context().merge_call(lambda s, x: x + 1, (2,))) == 3
    values = strategy.experimental_distribute_values_from_function(lambda c: ag.constant(c.replica_id_in_sync_group))
    assert int(strategy.reduce("SUM", values, axis=None)) == SIZE * (SIZE - 1) // 2
    assert strategy.experimental_local_results(values) == (values,)


def dtypes_and_bits():
    for dtype in (ag.float64, ag.float32, ag.float16, ag.bfloat16, ag.int32, ag.uint8, ag.complex64):
        x = ag.cast(ag.reshape(ag.range(60), [5, 12]) + RANK, dtype)
        summed, mean = strategy.reduce("SUM", x, axis=None), strategy.reduce("MEAN", x, axis=None)
        assert summed.dtype == dtype and summed.shape == (5, 12) and mean.dtype == (x / x).dtype
        start = np.arange(60).reshape(5, 12)
        assert np.allclose(np.asarray(ag.cast(summed, ag.complex64)), SIZE * start + SIZE * (SIZE - 1) // 2, rtol=1e-2)
    # Long and short vectors are summed up in the same order: that of the ranks.
    pieces = [np.random.default_rng(rank).normal(size=40_000).astype(np.float32) for rank in range(SIZE)]
    expected = pieces[0].copy()
    for piece in pieces[1:]:
        expected += piece
    assert (strategy.reduce("SUM", ag.constant(pieces[RANK]), axis=None).numpy() == expected).all()
    assert (strategy.reduce("SUM", ag.constant(pieces[RANK][:50]), axis=None).numpy() == expected[:50]).all()
    exact = np.sum(pieces, axis=0, dtype=np.float64)
    assert (np.abs(expected - exact) <= (SIZE - 1) * 2.0**-24 * np.abs(pieces).sum(axis=0)).all()
    many = strategy.run(
        lambda: ag.distribute.get_replica_context().all_reduce(
            "SUM", [ag.constant(pieces[RANK][i : i + 1000]) for i in range(0, 40_000, 1000)],
            ag.distribute.experimental.CommunicationOptions(bytes_per_pack=10_000),
        )
    )  # fmt: skip
    assert (np.concatenate(many) == expected).all()
    empty = strategy.reduce("SUM", ag.zeros([0, 3]), axis=None)
    assert empty.shape == (0, 3)


def variables_of_integers_take_means_rounded_towards_zero():
    for dtype in (ag.int8, ag.int16, ag.int64, ag.uint64):
        numbers = [[-7 - rank, 5 + rank, np.iinfo(dtype.as_numpy_dtype).min * (rank == 0)] for rank in range(SIZE)]
        numbers = np.array(numbers).astype(dtype.as_numpy_dtype)
        total = numbers.sum(axis=0, dtype=numbers.dtype)
        with strategy.scope():
            mean = ag.Variable(np.zeros_like(total), aggregation=Aggregation.MEAN)
        strategy.run(lambda mean=mean, numbers=numbers: mean.assign(numbers[RANK]))
        assert mean.numpy().tolist() == [abs(int(t)) // SIZE * (-1 if t < 0 else 1) for t in total], mean


def messages_beyond_what_mpi_counts():
    mpi._MOST, before = 100, mpi._MOST
    x = ag.constant(np.arange(30_000.0) + RANK)
    assert (strategy.reduce("SUM", x, axis=None).numpy() == SIZE * np.arange(30_000.0) + SIZE * (SIZE - 1) / 2).all()
    assert strategy.gather(ag.fill([RANK + 1, 50], RANK), axis=0).numpy()[:, 49].tolist() == [
        rank for rank in range(SIZE) for _ in range(rank + 1)
    ]
    with strategy.scope():
        assert ag.Variable(x).numpy().tolist() == list(np.arange(30_000.0))
    mpi._MOST = before


def reductions_along_axes():
    rows = ag.ones([RANK + 1, 2]) * float(RANK)
    count = SIZE * (SIZE + 1) / 2
    total = sum(r * (r + 1) for r in range(SIZE))
    assert strategy.reduce("SUM", rows, axis=0).numpy().tolist() == [total, total]
    assert np.allclose(strategy.reduce("MEAN", rows, axis=0), total / count)
    assert float(strategy.reduce("MEAN", ag.constant(float(RANK)), axis=0)) == (SIZE - 1) / 2


def datasets():
    Dataset = ag.data.Dataset
    numbers = strategy.experimental_distribute_dataset(Dataset.range(23).shuffle(23).batch(8))
    assert isinstance(numbers, ag.distribute.DistributedDataset)
    total = ag.constant(0, ag.int64)
    for _ in range(2):
        total = ag.constant(0, ag.int64)
        for batch in numbers:
            assert abs(int(batch.shape[0]) - 8 / SIZE) < 4
            total += strategy.reduce("SUM", batch, axis=0)
        assert int(total) == 23 * 22 // 2  # each number once

    @ag.function
    def staged(dataset):
        total = ag.constant(0, ag.int64)
        for number, batch in dataset:
            total += strategy.reduce("SUM", strategy.run(lambda n, b: n * b, args=(number, batch)), axis=0)
        return total

    pairs = Dataset.zip((Dataset.range(23), Dataset.range(23))).batch(8)
    assert int(staged(strategy.experimental_distribute_dataset(pairs))) == sum(i * i for i in range(23))

    def made(context):
        assert (context.num_input_pipelines, context.input_pipeline_id) == (SIZE, RANK)
        return Dataset.range(4 * SIZE).shard(SIZE, RANK).batch(context.get_per_replica_batch_size(4 * SIZE))

    (batch,) = strategy.distribute_datasets_from_function(made)
    assert batch.numpy().tolist() == list(range(RANK, 4 * SIZE, SIZE))
    options = ag.data.Options()
    options.experimental_distribute.auto_shard_policy = ag.data.experimental.AutoShardPolicy.OFF
    (whole,) = strategy.experimental_distribute_dataset(Dataset.range(5).batch(5).with_options(options))
    assert whole.shape == (5,)
    try:
        strategy.experimental_distribute_dataset(Dataset.range(5))
    except ValueError as error:
        assert "batch(global_batch_size)" in str(error)
    else:
        assert SIZE == 1


def one_seed_for_all():
    assert equal_everywhere(ag.random.normal([4]))
    assert equal_everywhere(ag.function(lambda: ag.random.shuffle(ag.range(50)))())
    for run in (lambda: ag.random.normal([4]), ag.function(lambda: ag.random.normal([4]))):
        assert equal_everywhere(strategy.run(run)) == (SIZE == 1)
    step = ag.function(lambda: (ag.random.normal([4]), strategy.run(lambda: ag.random.normal([4]))))
    for _ in range(2):
        ours, mine = step()
        assert equal_everywhere(ours) and equal_everywhere(mine) == (SIZE == 1)


def generators():
    """The cells of TensorFlow's guide on random numbers with strategies; the numbers are those that it prints."""
    with strategy.scope():
        inside = ag.random.Generator.from_seed(1)
    outside = ag.random.Generator.from_seed(1)
    expected = [[-0.87930447, -1.5822568], [0.020661574, 0.77539235]]
    for number in range(2):
        mine = float(strategy.run(lambda: inside.normal([])))
        if RANK < 2:
            assert abs(mine - expected[RANK][number]) < 1e-5, mine
    draw = ag.function(lambda: inside.uniform([3]))
    assert equal_everywhere(strategy.run(draw)) == (SIZE == 1)
    assert equal_everywhere(inside.state)
    # Outside of replicas, and of one that was made outside of the scope, all draw the same.
    assert equal_everywhere(inside.normal([3])) and equal_everywhere(strategy.run(lambda: outside.normal([3])))
    assert abs(float(ag.random.Generator.from_seed(1).normal([])) - 0.43842274) < 1e-5


def staged_and_differentiated():
    @ag.function
    def replica(x, trips):
        context = ag.distribute.get_replica_context()
        i = 0
        while i < trips:
            if ag.reduce_sum(x) < 1e6:
                x = context.all_reduce("SUM", x * x) / 4.0
            i += 1
        return x

    x = ag.constant([1.0 + RANK, 2.0], ag.float64)

    def value_and_gradients(x, trips):
        with ag.GradientTape() as outer:
            outer.watch(x)
            with ag.GradientTape() as inner:
                inner.watch(x)
                y = replica(x, trips)
            first = inner.gradient(y, x)
        return y, first, outer.gradient(first, x)

    y, first, second = strategy.run(value_and_gradients, args=(x, ag.constant(3)))
    # The same in one process, of all replicas' parts.
    parts = ag.Variable([[1.0 + r, 2.0] for r in range(SIZE)], dtype=ag.float64)
    with ag.GradientTape() as outer, ag.GradientTape() as inner:
        z = parts
        for _ in range(3):
            z = ag.broadcast_to(ag.reduce_sum(z * z, 0) / 4.0, [SIZE, 2])
    assert np.allclose(y, z[RANK])
    expected = inner.gradient(z, parts)
    assert np.allclose(first, expected[RANK])
    assert np.isfinite(second.numpy()).all() and (second.numpy() > 0).all()

    @ag.function
    def looping_in_a_branch(x, trips):
        if trips > 2:
            i = 0
            while i < trips:
                x = ag.distribute.get_replica_context().all_reduce("SUM", x * x) / 4.0
                i += 1
        return x

    def gradients_in_a_branch(x, trips):
        with ag.GradientTape() as outer:
            outer.watch(x)
            with ag.GradientTape() as inner:
                inner.watch(x)
                y = looping_in_a_branch(x, trips)
            first = inner.gradient(y, x)
        return y, first, outer.gradient(first, x)

    @ag.function
    def calling_itself(x, calls):
        x = ag.distribute.get_replica_context().all_reduce("SUM", x * x) / 4.0
        if calls <= 1:
            return x
        return calling_itself(x, calls - 1)

    def gradient_of_recursion(x):
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = calling_itself(x, ag.constant(3))
        return y, tape.gradient(y, x)

    for run in (gradient_of_recursion, ag.function(gradient_of_recursion)):
        assert all(np.allclose(*pair) for pair in zip(strategy.run(run, args=(x,)), (y, first)))
    for run in (gradients_in_a_branch, ag.function(gradients_in_a_branch)):
        found = strategy.run(run, args=(x, ag.constant(3)))
        assert all(np.allclose(*pair) for pair in zip(found, (y, first, second)))
        y_of_two, first_of_two, _ = strategy.run(run, args=(x, ag.constant(2)))
        assert np.allclose(y_of_two, x) and np.allclose(first_of_two, 1.0)

    def gathering(x):
        with ag.GradientTape() as tape:
            tape.watch(x)
            rows = ag.distribute.get_replica_context().all_gather(x, 0)
            loss = ag.reduce_sum(rows * ag.cast(ag.range(ag.shape(rows)[0]), rows.dtype))
        return tape.gradient(loss, x)

    start = RANK * (RANK + 1) // 2
    for run in (gathering, ag.function(gathering)):
        found = strategy.run(run, args=(ag.ones([RANK + 1]),))
        assert found.numpy().tolist() == [SIZE * float(start + i) for i in range(RANK + 1)]


def an_empty_replica_context_outside():
    assert ag.distribute.get_replica_context() is not None  # outside of scopes, that of the default strategy
    with strategy.scope():
        assert ag.distribute.get_replica_context() is None


for case in (
    variables, rows_of_variables, replica_context, dtypes_and_bits,
    variables_of_integers_take_means_rounded_towards_zero, messages_beyond_what_mpi_counts, reductions_along_axes,
    datasets, one_seed_for_all, generators, staged_and_differentiated, an_empty_replica_context_outside,
):  # fmt: skip
    case()
print(f"rank {RANK} of {SIZE}: all contracts hold")
