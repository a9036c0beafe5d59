"""`MirroredStrategy` with several replicas in one process."""

import importlib.util
import threading

import numpy as np
import pytest

import autograph as ag


@pytest.fixture
def cpus():
    (cpu,) = ag.config.list_physical_devices("CPU")
    ag.config.set_logical_device_configuration(cpu, [ag.config.LogicalDeviceConfiguration()] * 3)
    yield [f"CPU:{i}" for i in range(3)]
    ag.config.set_logical_device_configuration(cpu, [])


@pytest.fixture
def strategy(cpus):
    return ag.distribute.MirroredStrategy()


def values(per_replica):
    return [np.asarray(value).tolist() for value in per_replica.values]


def test_devices(cpus):
    assert ag.distribute.MirroredStrategy().num_replicas_in_sync == 3
    assert ag.distribute.MirroredStrategy(cpus[:2]).extended.worker_devices == ("/device:CPU:0", "/device:CPU:1")
    assert ag.distribute.MirroredStrategy(["CPU:1"]).num_replicas_in_sync == 1
    with pytest.raises(ValueError, match="needs different devices"):
        ag.distribute.MirroredStrategy(["CPU:1", "/cpu:1"])
    with pytest.raises(ValueError, match="at least one"):
        ag.distribute.MirroredStrategy([])
    with pytest.raises(ag.errors.InvalidArgumentError, match="no device /device:CPU:3"):
        ag.distribute.MirroredStrategy(["CPU:0", "CPU:3"])


def test_options_of_another_class_are_refused():
    with pytest.raises(TypeError, match="communication_options must be .*CommunicationOptions, got 3"):
        ag.distribute.MultiWorkerMirroredStrategy(communication_options=3)


def replica_numbers():
    replica = ag.distribute.get_replica_context()
    number = replica.replica_id_in_sync_group
    return {"number": number, "same": "text", "sum": replica.all_reduce("sum", ag.constant(float(number + 1)))}


@pytest.mark.parametrize("how", ["eager", "function", "inside a function"])
def test_run(strategy, how):
    step = replica_numbers if how == "eager" else ag.function(replica_numbers)
    if how == "inside a function":
        found = ag.function(lambda: strategy.run(step))()
    else:
        found = strategy.run(step)
    assert values(found["number"]) == [0, 1, 2]
    assert values(found["sum"]) == [6.0] * 3
    same = found["same"]
    assert same == "text" or same.values == ("text",) * 3


@pytest.mark.parametrize("how", ["eager", "function"])
@pytest.mark.parametrize(("op", "expected"), [("sum", 12.0), ("mean", 4.0)])
def test_the_gradient_of_all_reduce_is_that_of_all_losses(strategy, how, op, expected):
    def step(x):
        with ag.GradientTape() as tape:
            tape.watch(x)
            replica = ag.distribute.get_replica_context()
            total = replica.all_reduce(op, x * x)
            loss = total * float(replica.replica_id_in_sync_group + 1)
        return tape.gradient(loss, x)

    given = strategy.experimental_distribute_values_from_function(
        lambda context: ag.constant(float(context.replica_id_in_sync_group + 1))
    )
    step = step if how == "eager" else ag.function(step)
    # d/dx of (1 + 2 + 3) * (x0 * x0 + x1 * x1 + x2 * x2), or a third of it.
    assert values(strategy.run(step, args=(given,))) == pytest.approx([expected * (i + 1) for i in range(3)])


@pytest.mark.parametrize("how", ["eager", "function"])
def test_all_gather_and_its_gradient(strategy, how):
    def step(x):
        with ag.GradientTape() as tape:
            tape.watch(x)
            whole = ag.distribute.get_replica_context().all_gather(x, axis=0)
            loss = ag.reduce_sum(whole * ag.range(6.0))
        return whole, tape.gradient(loss, x)

    given = strategy.experimental_distribute_values_from_function(
        lambda context: ag.fill([context.replica_id_in_sync_group + 1], 1.0)
    )
    step = step if how == "eager" else ag.function(step)
    whole, gradient = strategy.run(step, args=(given,))
    assert values(whole) == [[1.0] * 6] * 3
    assert values(gradient) == [[0.0], [3.0, 6.0], [9.0, 12.0, 15.0]]


def test_a_tape_outside_sees_through_all_replicas(strategy):
    x = ag.constant(2.0)

    def step(x):
        number = float(ag.distribute.get_replica_context().replica_id_in_sync_group + 1)
        return ag.distribute.get_replica_context().all_reduce("sum", number * x * x)

    @ag.function
    def whole(x):
        with ag.GradientTape() as tape:
            tape.watch(x)
            loss = strategy.reduce("sum", strategy.run(step, args=(x,)), axis=None)
        return tape.gradient(loss, x)

    assert float(whole(x)) == 3 * 6 * 4.0
    with ag.GradientTape() as tape:
        tape.watch(x)
        loss = strategy.reduce("mean", strategy.run(step, args=(x,)))
    assert float(tape.gradient(loss, x)) == 6 * 4.0


@pytest.mark.parametrize("aggregation", ["SUM", "MEAN", "ONLY_FIRST_REPLICA"])
@pytest.mark.parametrize("how", ["eager", "function"])
def test_mirrored_variables(strategy, aggregation, how):
    with strategy.scope():
        v = ag.Variable(1.0, aggregation=ag.VariableAggregation[aggregation], name="v")
    assert isinstance(v, ag.Variable) and v.name == "v:0" and len(strategy.experimental_local_results(v)) == 3

    def step():
        number = ag.distribute.get_replica_context().replica_id_in_sync_group
        v.assign_add(float(number + 1))
        return v * 10.0

    added = {"SUM": 6.0, "MEAN": 2.0, "ONLY_FIRST_REPLICA": 1.0}[aggregation]
    for times in range(1, 4):
        found = strategy.run(ag.function(step) if how == "function" else step)
        assert values(found) == [10 * (1 + times * added)] * 3
    assert [float(copy) for copy in v.values] == [1 + 3 * added] * 3
    v.assign(5.0)
    assert [float(copy) for copy in v.values] == [5.0] * 3 and float(v) == 5.0


@pytest.mark.parametrize("how", ["eager", "function"])
def test_variables_that_are_read_together(strategy, how):
    with strategy.scope():
        total, mean = (
            ag.Variable(0, synchronization=ag.VariableSynchronization.ON_READ, aggregation=aggregation)
            for aggregation in (ag.VariableAggregation.SUM, ag.VariableAggregation.MEAN)
        )

    def step():
        number = ag.distribute.get_replica_context().replica_id_in_sync_group
        total.assign_add(number + 1)
        mean.assign(number * 2)
        return total + 0

    assert values(strategy.run(ag.function(step) if how == "function" else step)) == [1, 2, 3]
    assert int(total.read_value()) == 6 and int(mean.read_value()) == 2
    total.assign(10)
    assert [int(copy) for copy in total.values] == [4, 3, 3] and int(total.numpy()) == 10
    with pytest.raises(ValueError, match="call it in strategy.run"):
        total.assign_add(1)


def test_training_is_that_of_the_whole_batch(strategy):
    random = np.random.default_rng(0)
    x = random.normal(size=(64, 4)).astype(np.float32)
    y = (x @ np.array([1.0, -2.0, 3.0, 0.5], np.float32))[:, None]
    data = ag.data.Dataset.from_tensor_slices((x, y)).batch(13)

    def trained(strategy):
        with strategy.scope():
            w = ag.Variable(ag.zeros([4, 1]), aggregation=ag.VariableAggregation.SUM)

        def step(inputs):
            features, labels = inputs
            with ag.GradientTape() as tape:
                loss = ag.reduce_sum((features @ w - labels) ** 2) / 13.0
            w.assign_sub(0.05 * tape.gradient(loss, w))
            return loss

        @ag.function
        def epoch(batches):
            total = 0.0
            for batch in batches:
                total += strategy.reduce("sum", strategy.run(step, args=(batch,)), axis=None)
            return total

        batches = strategy.experimental_distribute_dataset(data)
        return [float(epoch(batches)) for _ in range(5)], w.numpy()

    (alone, w), (together, v) = trained(ag.distribute.MirroredStrategy(["CPU:0"])), trained(strategy)
    assert alone == pytest.approx(together, rel=1e-4) and alone[-1] < alone[0] / 50
    assert np.allclose(v, w, atol=1e-5)


def test_datasets(strategy):
    data = ag.data.Dataset.range(10).batch(6)
    elements = [values(element) for element in strategy.experimental_distribute_dataset(data)]
    assert elements == [[[0, 1], [2, 3], [4, 5]], [[6, 7], [8], [9]]]

    def made(context):
        size = context.get_per_replica_batch_size(6)
        assert (context.num_input_pipelines, context.num_replicas_in_sync) == (1, 3)
        return ag.data.Dataset.range(12).map(lambda i: {"i": i}).batch(size)

    elements = [values(element["i"]) for element in strategy.distribute_datasets_from_function(made)]
    assert elements == [[[0, 1], [2, 3], [4, 5]], [[6, 7], [8, 9], [10, 11]]]


def test_datasets_of_ragged_and_sparse_tensors(strategy):
    rows = ag.ragged.constant([[1], [2, 3], [4], [5, 6]])
    (batch,) = strategy.experimental_distribute_dataset(ag.data.Dataset.from_tensor_slices(rows).batch(4))
    assert [value.to_list() for value in batch.values] == [[[1], [2, 3]], [[4]], [[5, 6]]]
    sparse = ag.data.Dataset.from_tensor_slices(ag.sparse.from_dense([[1, 0], [0, 2], [3, 4]])).batch(3)
    (batch,) = strategy.experimental_distribute_dataset(sparse)
    assert [ag.sparse.to_dense(value).numpy().tolist() for value in batch.values] == [[[1, 0]], [[0, 2]], [[3, 4]]]


def test_batches_left_over_have_no_rows(strategy):
    def of(dataset):
        made = strategy.distribute_datasets_from_function(lambda context: dataset)
        found = [values(element) for element in made]
        assert len(made) == len(found)
        return found

    numbers = ag.data.Dataset.range(7)
    assert of(numbers.batch(2)) == [[[0, 1], [2, 3], [4, 5]], [[6], [], []]]
    assert of(numbers.batch(2, drop_remainder=True)) == [[[0, 1], [2, 3], [4, 5]]]
    assert of(numbers) == [[0, 1, 2], [3, 4, 5]]

    @ag.function
    def total(dataset):
        found = ag.constant(0, ag.int64)
        for element in dataset:
            found += strategy.reduce("sum", strategy.run(ag.reduce_sum, args=(element,)), axis=None)
        return found

    assert int(total(strategy.distribute_datasets_from_function(lambda context: numbers.batch(2)))) == 21


@pytest.mark.parametrize("how", ["eager", "function"])
@pytest.mark.parametrize(("aggregation", "expected"), [("SUM", [2, 3, 4]), ("MEAN", [4 / 3, 5 / 3, 2])])
def test_rows_that_replicas_add(strategy, how, aggregation, expected):
    with strategy.scope():
        variable = ag.Variable(ag.ones([3]), aggregation=ag.VariableAggregation[aggregation])
        first = ag.Variable(ag.ones([3]), aggregation=ag.VariableAggregation.ONLY_FIRST_REPLICA)

    def step():
        number = ag.distribute.get_replica_context().replica_id_in_sync_group
        rows = ag.IndexedSlices(ag.constant([number + 1.0]), ag.constant([number]))
        variable.scatter_add(rows)
        first.scatter_update(ag.IndexedSlices(ag.constant([number + 7.0]), ag.constant([number])))
        return ag.identity(variable)

    found = strategy.run(step if how == "eager" else ag.function(step))
    np.testing.assert_allclose(values(found), [expected] * 3, rtol=1e-6)
    assert first.numpy().tolist() == [7, 1, 1]
    with pytest.raises(ag.errors.UnimplementedError, match="aggregation is"):
        strategy.run(lambda: variable.scatter_max(ag.IndexedSlices(ag.ones([1]), [0])))


def test_scopes(strategy):
    with strategy.scope(), strategy.scope():
        variable = ag.Variable(1.0)
    assert not hasattr(variable.values[0], "values")
    assert variable.device.endswith("CPU:0")
    with strategy.scope(), pytest.raises(RuntimeError, match="Mixing different"):
        ag.distribute.OneDeviceStrategy().run(lambda: 1)


def test_variables_that_the_first_replica_makes_for_all(strategy):
    """Layers and optimisers say at once that they have their variables, before these are there."""

    class Counter:
        built = False

        def __call__(self):
            if not self.built:
                self.built = True
                self.count = ag.Variable(0.0, aggregation=ag.VariableAggregation.SUM)
                self.slots = [ag.Variable(float(i), name="slot") for i in range(2)]
            self.count.assign_add(1.0)
            self.slots[1].assign_add(1.0)
            return ag.identity(self.slots[1])

    counter = Counter()
    for expected in (2.0, 3.0):
        assert values(strategy.run(counter)) == [expected] * 3
    assert float(counter.count) == 6.0
    assert [len(slot.values) for slot in counter.slots] == [3, 3]


def test_values_for_each_replica_in_structures(strategy):
    numbers, names = strategy.experimental_distribute_values_from_function(
        lambda context: (ag.constant(context.replica_id_in_sync_group), "x")
    )
    assert values(numbers) == [0, 1, 2] and names.values == ("x",) * 3
    each = strategy.experimental_local_results({"number": numbers, "name": names, "same": 1})
    assert [(int(one["number"]), one["name"], one["same"]) for one in each] == [(i, "x", 1) for i in range(3)]


def test_merge_call_and_update(strategy):
    with strategy.scope():
        v = ag.Variable(1.0)

    def merged(strategy, delta):
        assert ag.distribute.in_cross_replica_context() and values(delta) == [1.0, 2.0, 3.0]
        strategy.extended.update(v, lambda copy, own: copy.assign_add(own), args=(delta,))
        return strategy.reduce("sum", delta)

    def step():
        number = ag.distribute.get_replica_context().replica_id_in_sync_group
        return ag.distribute.get_replica_context().merge_call(merged, args=(ag.constant(float(number + 1)),))

    assert values(strategy.run(step)) == [6.0] * 3
    assert [float(copy) for copy in v.values] == [2.0, 3.0, 4.0]


def test_merge_call_reduces_and_updates_by_extended(strategy):
    with strategy.scope():
        v, w = ag.Variable(1.0), ag.Variable([0.0, 0.0])

    def merged(strategy, one, rows):
        extended = strategy.extended
        total, both = extended.batch_reduce_to("sum", [(one, v), (rows, w)])
        extended.update(v, lambda copy, own: copy.assign_add(own), args=(total,))
        extended.update(w, lambda copy, own: copy.scatter_sub(own), args=(both,))
        return extended.reduce_to(ag.distribute.ReduceOp.MEAN, one, destinations=v)

    def step():
        context = ag.distribute.get_replica_context()
        number = context.replica_id_in_sync_group
        rows = ag.IndexedSlices(ag.constant([1.0]), ag.constant([number % 2]))
        return context.merge_call(merged, args=(ag.constant(float(number + 1)), rows))

    assert values(strategy.run(step)) == [2.0] * 3
    assert float(v) == 7.0 and w.numpy().tolist() == [-2.0, -1.0]
    assert all(strategy.extended.value_container(copy) is v for copy in v.values)


def test_saved_models_hold_what_replicas_have_called(strategy, tmp_path):
    class Model(ag.Module):
        def __init__(self):
            super().__init__()
            self.v = ag.Variable(2.0)

        @ag.function
        def __call__(self, x):
            return self.v * x

    with strategy.scope():
        model = Model()
        assert values(strategy.run(model, args=(ag.constant(3.0),))) == [6.0] * 3
        model.v.assign(5.0)
        ag.saved_model.save(model, tmp_path)
    assert float(ag.saved_model.load(tmp_path)(ag.constant(3.0))) == 15.0


def test_what_strategies_print(strategy):
    found = repr(strategy.run(ag.function(lambda: ag.constant(1.5))))
    lines = [f"  {i}: tf.Tensor(1.5, shape=(), dtype=float32)" for i in range(3)]
    assert found == "PerReplica:{\n" + ",\n".join(lines) + "\n}"


def test_reduce_and_gather(strategy):
    rows = strategy.experimental_distribute_values_from_function(
        lambda context: ag.range(float(context.replica_id_in_sync_group + 1))
    )
    assert float(strategy.reduce("sum", rows, axis=0)) == 4.0
    assert float(strategy.reduce("mean", rows, axis=0)) == pytest.approx(4 / 6)
    assert strategy.gather(rows, axis=0).numpy().tolist() == [0, 0, 1, 0, 1, 2]
    assert strategy.gather(ag.constant([5.0]), axis=0).numpy().tolist() == [5.0]
    numbers = strategy.experimental_distribute_values_from_function(lambda c: ag.constant([c.replica_id_in_sync_group]))
    # As in TensorFlow, means of whole numbers are floats.
    assert (
        strategy.reduce("mean", numbers).numpy().tolist() == [1.0] and float(strategy.reduce("mean", numbers, 0)) == 1.0
    )
    pairs = strategy.experimental_distribute_values_from_function(
        lambda c: ag.constant([c.replica_id_in_sync_group, 2])
    )
    assert float(strategy.reduce("mean", pairs, axis=0)) == 1.5 and strategy.reduce("mean", pairs).dtype is ag.float64
    assert float(strategy.reduce("sum", 2.0)) == 6.0 and float(strategy.reduce("mean", 2.0)) == 2.0


def test_random_numbers_differ_between_replicas(strategy):
    with strategy.scope():
        generator = ag.random.Generator.from_seed(3)
    first = values(strategy.run(lambda: generator.normal([2])))
    second = values(strategy.run(lambda: generator.normal([2])))
    assert len({tuple(each) for each in first + second}) == 6


def test_a_layer_that_makes_its_variables_in_the_replicas(strategy):
    class Layer(ag.Module):
        w = None

        def __call__(self, x):
            if self.w is None:
                self.w = ag.Variable(ag.ones([2]), aggregation=ag.VariableAggregation.MEAN)
            return x * self.w

    layer = Layer()
    with strategy.scope():
        assert values(strategy.run(ag.function(lambda: layer(2.0)))) == [[2.0, 2.0]] * 3
    assert len(layer.w.values) == 3 and len(layer.trainable_variables) == 1


def test_checkpoints_hold_one_value(strategy, tmp_path):
    with strategy.scope():
        v = ag.Variable([1.0, 2.0])
    path = ag.train.Checkpoint(v=v).save(str(tmp_path / "ck"))
    v.assign([0.0, 0.0])
    ag.train.Checkpoint(v=v).restore(path)
    assert [copy.numpy().tolist() for copy in v.values] == [[1.0, 2.0]] * 3
    plain = ag.Variable([0.0, 0.0])
    ag.train.Checkpoint(v=plain).restore(path)
    assert plain.numpy().tolist() == [1.0, 2.0]


def test_an_error_of_one_ends_all(strategy):
    def step():
        replica = ag.distribute.get_replica_context()
        if replica.replica_id_in_sync_group == 1:
            raise KeyError("mine")
        return replica.all_reduce("sum", 1.0)

    before = threading.active_count()
    with pytest.raises(KeyError, match="mine"):
        strategy.run(step)
    assert threading.active_count() == before
    assert ag.distribute.get_replica_context().replica_id_in_sync_group == 0


def test_replicas_that_do_not_meet(strategy):
    def step():
        replica = ag.distribute.get_replica_context()
        return replica.all_reduce("sum", 1.0) if replica.replica_id_in_sync_group else 0.0

    with pytest.raises(RuntimeError, match=r"0: the end of the function\n  replica 1: all_reduce SUM at"):
        strategy.run(step)

    def shapes():
        replica = ag.distribute.get_replica_context()
        return replica.all_reduce("sum", ag.zeros([replica.replica_id_in_sync_group + 1]))

    with pytest.raises(ag.errors.InvalidArgumentError, match=r"replica 0 float32\(1,\), replica 1 float32\(2,\)"):
        strategy.run(shapes)


def test_replicas_can_not_meet_in_a_staged_loop(strategy):
    @ag.function
    def step(n):
        total = 0.0
        for _ in ag.range(n):
            total += ag.distribute.get_replica_context().all_reduce("sum", 1.0)
        return total

    with pytest.raises(RuntimeError, match="can't synchronize inside a loop or conditional on tensors"):
        strategy.run(step, args=(ag.constant(3),))


def test_run_in_a_replica_is_refused(strategy):
    with pytest.raises(RuntimeError, match="call the function itself"):
        strategy.run(lambda: strategy.run(lambda: 1))


def test_lists_of_the_caller_keep_what_replicas_append(strategy):
    @ag.function
    def step(x):
        found = [x]
        kept = found

        def replica():
            found.append(x * float(ag.distribute.get_replica_context().replica_id_in_sync_group))
            return 0

        strategy.run(replica)
        return ag.stack(kept)

    assert step(ag.constant(2.0)).numpy().tolist() == [2.0, 0.0, 2.0, 4.0]


needs_keras = pytest.mark.skipif(
    importlib.util.find_spec("keras") is None, reason="needs Keras: pip install -e '.[keras]'"
)


def keras_model():
    keras = ag.keras
    keras.utils.set_random_seed(1)
    return keras.Sequential(
        [
            keras.Input((4,)),
            keras.layers.Dense(8, activation="relu"),
            keras.layers.BatchNormalization(synchronized=True),
            keras.layers.Dense(1),
        ]
    )


@needs_keras
@pytest.mark.usefixtures("tensorflow")
def test_fit_gives_the_weights_of_one_replica(cpus):
    random = np.random.default_rng(0)
    x = random.normal(size=(64, 4)).astype(np.float32)
    y = x.sum(1, keepdims=True)

    def trained(devices):
        with ag.distribute.MirroredStrategy(devices).scope():
            model = keras_model()
            model.compile("adam", "mse", metrics=["mae"])
        history = model.fit(x, y, batch_size=16, epochs=2, verbose=0, shuffle=False).history
        scores = model.evaluate(x, y, batch_size=16, verbose=0)
        return history, scores, model.predict(x, batch_size=16, verbose=0), model.get_weights()

    (history, scores, predicted, weights), alone = trained(cpus[:2]), trained(cpus[:1])
    for name, values in alone[0].items():
        assert history[name] == pytest.approx(values, rel=1e-5)
    assert scores == pytest.approx(alone[1], rel=1e-5)
    np.testing.assert_allclose(predicted, alone[2], rtol=1e-4, atol=1e-6)
    for ours, theirs in zip(weights, alone[3]):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


@needs_keras
@pytest.mark.usefixtures("tensorflow")
def test_the_tutorial_on_custom_training(strategy, tmp_path):
    """TensorFlow's "Custom training with tf.distribute.Strategy", with less data and a smaller model."""
    random = np.random.default_rng(0)
    images = random.normal(size=(24, 4)).astype(np.float32)
    labels = (images.sum(1) > 0).astype(np.int64)
    data = ag.data.Dataset.from_tensor_slices((images, labels)).batch(12)
    batches = strategy.experimental_distribute_dataset(data)
    with strategy.scope():
        loss_object = ag.keras.losses.BinaryCrossentropy(from_logits=True, reduction="none")

        def compute_loss(labels, predictions):
            per_example_loss = loss_object(labels[:, None], predictions)
            return ag.nn.compute_average_loss(per_example_loss, global_batch_size=12)

        test_loss = ag.keras.metrics.Mean(name="test_loss")
        train_accuracy = ag.keras.metrics.BinaryAccuracy(name="train_accuracy", threshold=0.0)
        model = keras_model()
        optimizer = ag.keras.optimizers.Adam(learning_rate=0.05)
        checkpoint = ag.train.Checkpoint(optimizer=optimizer, model=model)

    def train_step(inputs):
        images, labels = inputs
        with ag.GradientTape() as tape:
            predictions = model(images, training=True)
            loss = compute_loss(labels, predictions)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        train_accuracy.update_state(labels[:, None], predictions)
        return loss

    def test_step(inputs):
        images, labels = inputs
        predictions = model(images, training=False)
        test_loss.update_state(loss_object(labels[:, None], predictions))

    @ag.function
    def distributed_train_step(dataset_inputs):
        per_replica_losses = strategy.run(train_step, args=(dataset_inputs,))
        return strategy.reduce(ag.distribute.ReduceOp.SUM, per_replica_losses, axis=None)

    @ag.function
    def distributed_test_step(dataset_inputs):
        return strategy.run(test_step, args=(dataset_inputs,))

    losses = []
    for _ in range(6):
        losses.append(sum(float(distributed_train_step(x)) for x in batches) / 2)
    for x in batches:
        distributed_test_step(x)
    assert losses[-1] < 0.6 * losses[0] and float(test_loss.result()) > 0.0
    assert 0.5 < float(train_accuracy.result()) <= 1.0
    path = checkpoint.save(str(tmp_path / "ckpt"))
    expected = model(images, training=False).numpy()
    for variable in model.trainable_variables:
        variable.assign(ag.zeros_like(variable))
    checkpoint.restore(path)
    np.testing.assert_array_equal(model(images, training=False).numpy(), expected)
