"""Strategies with one replica: programs written for several run, and give what they give on one."""

import pytest

import autograph as ag

Dataset = ag.data.Dataset


@pytest.fixture(params=[ag.distribute.MirroredStrategy, ag.distribute.OneDeviceStrategy, ag.distribute.Strategy])
def strategy(request):
    return request.param()


def test_a_training_loop(strategy):
    with strategy.scope():
        assert ag.distribute.get_strategy() is strategy and ag.distribute.in_cross_replica_context()
        w = ag.Variable(1.0)
    assert not ag.distribute.has_strategy()
    rows = Dataset.from_tensor_slices(ag.reshape(ag.range(6.0), [3, 2])).batch(2)

    def replica(batch):
        context = ag.distribute.get_replica_context()
        if context.num_replicas_in_sync > 1:
            return -1.0
        w.assign_add(0.5)
        return ag.reduce_sum(batch) * w

    @ag.function
    def epoch(dataset):
        total = 0.0
        for batch in dataset:
            if ag.reduce_sum(batch) > 5.0:
                total += strategy.reduce("SUM", strategy.run(replica, args=(batch,)), axis=None)
        return total

    assert float(epoch(strategy.experimental_distribute_dataset(rows))) == (0 + 1 + 2 + 3) * 1.5 + (4 + 5) * 2.0
    assert strategy.experimental_local_results(w) == (w,)


def test_reductions(strategy):
    value = ag.constant([1.0, 2.0, 6.0])
    assert float(strategy.reduce(ag.distribute.ReduceOp.MEAN, value, axis=0)) == 3.0
    assert float(strategy.reduce("sum", value, axis=0)) == 9.0
    assert strategy.reduce("SUM", value, axis=None).numpy().tolist() == [1.0, 2.0, 6.0]
    with pytest.raises(ValueError, match="reduce_op"):
        strategy.reduce("MAX", value, axis=0)


def test_datasets_from_functions_and_iterators(strategy):
    made = strategy.distribute_datasets_from_function(
        lambda context: Dataset.range(8).batch(context.get_per_replica_batch_size(4))
    )

    @ag.function
    def first_sums(dataset):
        iterator = iter(dataset)
        return strategy.reduce("SUM", next(iterator), axis=0), strategy.reduce("SUM", next(iterator), axis=0)

    assert [int(each) for each in first_sums(made)] == [6, 22]


def test_devices_that_are_not_there_are_refused():
    with pytest.raises(ag.errors.InvalidArgumentError, match="no device /device:CPU:1"):
        ag.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])


def test_what_runs_is_converted_where_the_caller_is(strategy):
    def step(x):
        if x > 0:
            return x
        return -x

    def converted(x):
        return strategy.run(step, args=(x,))

    @ag.autograph.experimental.do_not_convert
    def unconverted(x):
        return strategy.run(step, args=(x,)), ag.map_fn(step, ag.stack([x]))

    @ag.autograph.experimental.do_not_convert
    def converts_again(x):
        return ag.function(converted)(x)

    assert float(ag.function(converted)(ag.constant(-2.0))) == 2.0
    assert float(ag.function(converts_again)(ag.constant(-2.0))) == 2.0
    assert float(unconverted(ag.constant(-2.0))[0]) == 2.0
    for caller in (ag.function(unconverted), ag.function(converted, autograph=False)):
        with pytest.raises(ag.errors.OperatorNotAllowedInGraphError, match="bool"):
            caller(ag.constant(-2.0))
