"""Keras 3, unchanged: a slice of what `python -m tests.keras` runs, with the installed package alone."""

import importlib.util

import numpy as np
import pytest

import autograph as ag

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("keras") is None, reason="needs the keras extra: pip install -e '.[keras]'"
)


@pytest.fixture(scope="module")
def keras(tensorflow):
    return ag.keras


@pytest.fixture(autouse=True)
def fresh(keras):
    keras.utils.set_random_seed(3)
    yield
    keras.backend.clear_session()
    ag.random.set_seed(None)


RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(256, 8)).astype("float32")
CLASSES = (ROWS.sum(1) > 0).astype("int32")
IMAGES = RNG.normal(size=(64, 12, 12, 1)).astype("float32")
TOKENS = RNG.integers(0, 20, (64, 10))


def losses(model, *data, **options):
    return model.fit(*data, verbose=0, **options).history["loss"]


def test_it_is_one_keras(keras):
    import keras as itself
    import tensorflow as tf
    from tensorflow.keras.layers import Dense

    from autograph.keras import Model

    assert itself.backend.backend() == "tensorflow"
    assert Dense is keras.layers.Dense is itself.layers.Dense is tf.keras.layers.Dense
    assert Model is itself.Model
    assert tf.losses.MeanSquaredError is itself.losses.MeanSquaredError


def test_sequential(keras):
    model = keras.Sequential([keras.layers.Dense(16, activation="relu"), keras.layers.Dense(2)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"])
    found = losses(model, ROWS, CLASSES, epochs=8, validation_split=0.2)
    assert found[-1] < 0.8 * found[0]
    evaluated = model.evaluate(ROWS, CLASSES, verbose=0, return_dict=True)
    predicted = model.predict(ROWS, verbose=0)
    assert evaluated["accuracy"] == pytest.approx(np.mean(predicted.argmax(1) == CLASSES))


def test_training_is_the_arithmetic_that_it_says(keras):
    """Two steps of gradient descent with momentum on a linear model, beside NumPy's."""
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1, kernel_initializer="ones")])
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9), "mse")
    target = CLASSES[:, None].astype("float32")
    model.fit(ROWS, target, epochs=2, batch_size=256, shuffle=False, verbose=0)
    weights, bias, speed = np.ones((8, 1)), np.zeros(1), [0, 0]
    for _ in range(2):
        error = 2 * (ROWS @ weights + bias - target) / len(ROWS)
        speed = [0.9 * speed[0] - 0.05 * ROWS.T @ error, 0.9 * speed[1] - 0.05 * error.sum(0)]
        weights, bias = weights + speed[0], bias + speed[1]
    np.testing.assert_allclose(model.get_weights()[0], weights, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(model.get_weights()[1], bias, rtol=1e-4, atol=1e-6)


def test_a_dataset_and_metrics(keras):
    model = keras.Sequential([keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1, activation="sigmoid")])
    model.compile(keras.optimizers.Adam(1e-2), "binary_crossentropy", metrics=["AUC", "accuracy"])
    data = ag.data.Dataset.from_tensor_slices((ROWS, CLASSES)).shuffle(100).batch(32)
    history = model.fit(data, epochs=5, verbose=0, validation_data=data).history
    assert history["val_AUC"][-1] > 0.9
    assert history["loss"][-1] < history["loss"][0]


def test_each_epoch_has_the_same_trace(keras):
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    with pytest.MonkeyPatch.context() as patch:
        from autograph.function import polymorphic

        names = []
        original = polymorphic.trace
        patch.setattr(polymorphic, "trace", lambda f, name, *rest: names.append(name) or original(f, name, *rest))
        losses(model, ROWS, CLASSES, epochs=6)
    assert names.count("multi_step_on_iterator") == 1
    assert names.count("one_step_on_data") == 2  # once more after the variables have been made


def test_a_convolutional_network(keras):
    layers = keras.layers
    model = keras.Sequential([
        layers.Conv2D(4, 3, activation="relu"), layers.BatchNormalization(), layers.MaxPooling2D(), layers.Flatten(),
        layers.Dropout(0.3), layers.Dense(10),
    ])  # fmt: skip
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    found = losses(model, IMAGES, RNG.integers(0, 10, 64), epochs=10)
    assert found[-1] < found[0]


@pytest.mark.parametrize("kind", ["SimpleRNN", "LSTM", "GRU"])
@pytest.mark.parametrize("both", [False, True])
def test_recurrent_networks(keras, kind, both):
    layer = getattr(keras.layers, kind)(8)
    model = keras.Sequential([
        keras.layers.Embedding(20, 8, mask_zero=True), keras.layers.Bidirectional(layer) if both else layer,
        keras.layers.Dense(1),
    ])  # fmt: skip
    model.compile(keras.optimizers.Adam(0.01), "mse")
    found = losses(model, TOKENS, TOKENS[:, :1] / 20.0, epochs=6)
    assert found[-1] < found[0]


def test_a_sequence_to_a_sequence_of_another_length(keras):
    """TimeDistributed takes another way where the number of steps isn't known: RepeatVector has to say it."""
    given = keras.Input((5, 3))
    _, state = keras.layers.GRU(4, return_state=True)(given)
    steps = keras.layers.GRU(4, return_sequences=True)(keras.layers.RepeatVector(7)(state), initial_state=state)
    model = keras.Model(given, keras.layers.TimeDistributed(keras.layers.Dense(2))(steps))
    model.compile("adam", "mse")
    x, y = np.ones((12, 5, 3), np.float32), np.ones((12, 7, 2), np.float32)
    losses = model.fit(x, y, batch_size=4, epochs=3, verbose=0).history["loss"]
    assert losses[2] < losses[1] < losses[0]


def test_a_functional_model_with_attention(keras):
    inputs = keras.Input((10, 16))
    attended = keras.layers.MultiHeadAttention(2, 8)(inputs, inputs)
    summed = keras.layers.LayerNormalization()(inputs + attended)
    model = keras.Model(inputs, keras.layers.Dense(1)(keras.layers.GlobalAveragePooling1D()(summed)))
    model.compile("adamw", "mse")
    x = RNG.normal(size=(64, 10, 16)).astype("float32")
    found = losses(model, x, x.mean((1, 2)), epochs=6)
    assert found[-1] < found[0]


def test_a_loop_of_ones_own(keras):
    model = keras.Sequential([keras.layers.Dense(4, activation="tanh"), keras.layers.Dense(1)])
    optimizer = keras.optimizers.SGD(0.1)

    @ag.function
    def step(x, y):
        with ag.GradientTape() as tape:
            loss = ag.reduce_mean((model(x, training=True)[:, 0] - y) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    found = [float(step(ROWS, ag.cast(CLASSES, ag.float32))) for _ in range(20)]
    assert found[-1] < found[0]
    assert step.experimental_get_tracing_count() == 1


def test_the_step_of_keras_2s_optimizers(keras, tensorflow):
    w, v = tensorflow.Variable([1.0, 2.0]), tensorflow.Variable(3.0)
    optimizer = keras.optimizers.SGD(0.1)
    optimizer.minimize(lambda: tensorflow.reduce_sum(w * w) * v, [w, v])
    np.testing.assert_allclose(w, [1.0 - 0.6, 2.0 - 1.2], rtol=1e-6)
    np.testing.assert_allclose(v, 3.0 - 0.5, rtol=1e-6)
    with tensorflow.GradientTape() as tape:
        loss = 2.0 * v
    optimizer.minimize(loss, lambda: [v], tape=tape)
    np.testing.assert_allclose(v, 2.5 - 0.2, rtol=1e-6)
    with pytest.raises(ValueError, match="tape="):
        optimizer.minimize(loss, [v])


def test_the_base_class_of_optimizers_takes_a_name(keras):
    class Halving(keras.optimizers.Optimizer):
        def __init__(self):
            super().__init__("halving")

        def minimize(self, loss, var_list):
            for each in var_list:
                each.assign(each / 2)

    optimizer = Halving()
    assert optimizer.name == "halving" and float(optimizer.learning_rate) == 0.0
    assert float(keras.optimizers.Optimizer(0.5).learning_rate) == 0.5


def test_a_step_reads_the_next_batch(keras, tensorflow):
    w = tensorflow.Variable(0.0)
    batches = iter(tensorflow.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0]))
    optimizer = keras.optimizers.SGD(1.0)

    def loss():
        return -w * next(batches)

    @tensorflow.function
    def step():
        optimizer.minimize(loss, [w])

    found = []
    for _ in range(3):
        step()
        found.append(float(w))
    assert found == [1.0, 3.0, 6.0]


def test_a_model_with_a_training_step_of_its_own(keras):
    import tensorflow as tf

    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(4)
            self.tracker = keras.metrics.Mean(name="error")

        def call(self, x, training=False):
            return tf.reduce_sum(self.dense(x), 1)

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(x, training=True) - tf.cast(y, tf.float32)) ** 2)
            self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
            self.tracker.update_state(loss)
            return {"error": self.tracker.result()}

    model = Model()
    model.compile("adam")
    history = model.fit(ROWS, CLASSES, epochs=4, verbose=0).history
    assert list(history) == ["error"]
    assert history["error"][-1] < history["error"][0]


def test_saving(keras, tmp_path):
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(3)])
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(model.predict(ROWS, verbose=0), again.predict(ROWS, verbose=0), rtol=1e-5, atol=1e-6)
    other = keras.Sequential([keras.Input((8,)), keras.layers.Dense(3)])
    model.save_weights(tmp_path / "model.weights.h5")
    other.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_allclose(model.predict(ROWS, verbose=0), other.predict(ROWS, verbose=0), rtol=1e-5, atol=1e-6)


def test_what_a_checkpoint_notes_does_not_change_keras_files(keras, tmp_path, recwarn):
    h5py = pytest.importorskip("h5py")
    inputs = keras.Input((3,))
    model = keras.Model(inputs, keras.layers.Dense(2)(inputs))
    model.compile("sgd", "mse")
    model.save_weights(tmp_path / "before.weights.h5")
    ag.train.Checkpoint(model=model, optimizer=model.optimizer).save(tmp_path / "checkpoint")
    model.save_weights(tmp_path / "after.weights.h5")
    kept = []
    for name in ("before", "after"):
        with h5py.File(tmp_path / f"{name}.weights.h5") as file:
            kept.append([])
            file.visit(kept[-1].append)
    assert kept[0] == kept[1]
    model.save(tmp_path / "model.keras")
    keras.models.load_model(tmp_path / "model.keras")
    assert not [each for each in recwarn.list if "Skipping" in str(each.message)]


def test_weights_of_another_shape_are_told(keras, tmp_path):
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(3), keras.layers.Dense(4)])
    model.save_weights(tmp_path / "model.weights.h5")
    other = keras.Sequential([keras.Input((8,)), keras.layers.Dense(3), keras.layers.Dense(5)])
    with pytest.raises(ValueError, match="must match"):
        other.load_weights(tmp_path / "model.weights.h5")
    other.load_weights(tmp_path / "model.weights.h5", skip_mismatch=True)
    np.testing.assert_array_equal(model.layers[0].kernel.numpy(), other.layers[0].kernel.numpy())


def test_callbacks(keras, tmp_path):
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("adam", "mse", steps_per_execution=3)
    kept = tmp_path / "best.keras"
    history = model.fit(
        ROWS, CLASSES, epochs=5, verbose=0, validation_data=(ROWS, CLASSES), class_weight={0: 1.0, 1: 2.0},
        callbacks=[
            keras.callbacks.EarlyStopping(patience=1, min_delta=1e9),
            keras.callbacks.ReduceLROnPlateau(),
            keras.callbacks.ModelCheckpoint(kept, save_best_only=True),
            keras.callbacks.CSVLogger(tmp_path / "log.csv"),
            keras.callbacks.TerminateOnNaN(),
            keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.5),
        ],
    ).history  # fmt: skip
    assert len(history["loss"]) == 2
    assert kept.exists()
    assert (tmp_path / "log.csv").read_text().startswith("epoch,")
    assert float(model.optimizer.learning_rate.numpy()) == pytest.approx(0.00025)


@pytest.mark.parametrize("options", [{"run_eagerly": True}, {"jit_compile": True}, {"steps_per_execution": 4}])
def test_ways_to_run_agree(keras, options):
    found = []
    for chosen in ({}, options):
        keras.utils.set_random_seed(5)
        model = keras.Sequential([keras.layers.Dense(8, activation="relu"), keras.layers.Dense(1)])
        model.compile("adam", "mse", **chosen)
        found.append(losses(model, ROWS, CLASSES, epochs=3, shuffle=False))
    np.testing.assert_allclose(*found, rtol=1e-4)


@pytest.mark.parametrize(
    "name", ["SGD", "RMSprop", "Adagrad", "Adadelta", "Adam", "AdamW", "Adamax", "Nadam", "Ftrl", "Lion", "Lamb"]
)
def test_optimizers_of_embeddings_agree_with_eager_ones(keras, name):
    found = []
    for is_eager in (True, False):
        keras.utils.set_random_seed(5)
        model = keras.Sequential([keras.layers.Embedding(20, 4), keras.layers.Flatten(), keras.layers.Dense(1)])
        model.compile(getattr(keras.optimizers, name)(0.01), "mse", run_eagerly=is_eager)
        found.append(losses(model, TOKENS, CLASSES[:64], epochs=2, batch_size=32, shuffle=False))
    np.testing.assert_allclose(*found, rtol=1e-4)


def test_mixed_precision(keras):
    keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        model = keras.Sequential([keras.layers.Dense(8), keras.layers.Dense(1, dtype="float32")])
        model.compile("adam", "mse")
        found = losses(model, ROWS, CLASSES, epochs=6)
        assert found[-1] < found[0]
        assert model.layers[0].compute_dtype == "float16"
        assert model.layers[0].kernel.dtype == "float32"
    finally:
        keras.mixed_precision.set_global_policy("float32")


def test_a_generator_and_the_progress_bar(keras, capsys):
    def batches():
        for start in range(0, 80, 16):
            yield ROWS[start : start + 16], CLASSES[start : start + 16]

    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("adam", "mse")
    model.fit(batches(), epochs=1, verbose=2)
    assert "5/5" in capsys.readouterr().out


def test_sample_weights(keras):
    weights = (CLASSES == 1).astype("float32")
    model = keras.Sequential([keras.layers.Dense(1, use_bias=False)])
    model.compile("sgd", "mse")
    model.build((None, 8))
    before = model.predict(ROWS, verbose=0)[:, 0]
    loss = model.evaluate(ROWS, CLASSES, sample_weight=weights, verbose=0, batch_size=256)
    assert loss == pytest.approx(np.mean((before - CLASSES) ** 2 * weights), rel=1e-4)


@pytest.mark.parametrize("shape", [(None,), (None, 1), (None, 2)])
def test_class_weights_in_a_dataset(keras, shape):
    """Of class numbers, of columns of them, and of rows with a 1 at the class."""
    targets = np.eye(2, dtype="float32")[CLASSES] if shape[-1] == 2 else CLASSES.reshape([-1, *shape[1:]])
    loss = "categorical_crossentropy" if shape[-1] == 2 else "sparse_categorical_crossentropy"

    def loss_of(*data, **options):
        keras.utils.set_random_seed(3)
        model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(2, activation="softmax")])
        model.compile("sgd", loss)
        return losses(model, *data, **options)[0]

    data = ag.data.Dataset.from_tensor_slices((ROWS, targets)).batch(32)
    by_class = loss_of(data, class_weight={0: 1.0, 1: 3.0})
    by_row = loss_of(ROWS, targets, shuffle=False, sample_weight=np.where(CLASSES == 1, 3.0, 1.0))
    np.testing.assert_allclose(by_class, by_row, rtol=1e-5)
    assert by_class != loss_of(data)


@pytest.mark.parametrize("source", ["arrays", "generator"])
@pytest.mark.parametrize("is_given", [False, True])
def test_an_input_that_may_be_left_out(keras, source, is_given):
    class Shifted(keras.layers.Layer):
        def call(self, x, shift=None):
            return x if shift is None else x + shift

    x, shift = keras.Input((8,), name="x"), keras.Input((8,), name="shift", optional=True)
    model = keras.Model({"x": x, "shift": shift}, keras.layers.Dense(1)(Shifted()(x, shift)))
    model.compile("sgd", "mse")
    inputs = {"x": ROWS[:32], "shift": ROWS[:32] if is_given else None}
    labels = np.zeros((32, 1), np.float32)
    expected = model(inputs).numpy()
    np.testing.assert_allclose(model.predict(inputs, verbose=0), expected, rtol=1e-5, atol=1e-6)
    data = (inputs, labels) if source == "arrays" else (((inputs, labels) for _ in range(1)),)
    np.testing.assert_allclose(losses(model, *data)[0], np.mean(expected**2), rtol=1e-4)


def test_an_error_in_a_layer_says_where_it_was(keras):
    layer = keras.layers.Embedding(5, 3)
    with pytest.raises(ag.errors.InvalidArgumentError, match=r"(?s)calling Embedding.call\(\).*7 is not in \[0, 5\)"):
        layer(np.array([1, 7]))


def test_ops_under_tensors(keras):
    ops = keras.ops

    @ag.function
    def program(x):
        total = ops.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s + ops.sum(x)), (0, 0.0))[1]
        return ops.cond(total > 0, lambda: total, lambda: -total)

    assert float(program(ag.constant([-1.0, -2.0]))) == 9
    np.testing.assert_allclose(ops.convert_to_numpy(ops.softmax(ops.arange(3.0))).sum(), 1, rtol=1e-6)


class TestSaving:
    def model(self, keras):
        model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(4, "relu"), keras.layers.Dense(1)])
        model.compile(keras.optimizers.Adam(0.1), "mse")
        model.fit(ROWS, ROWS.sum(1, keepdims=True), epochs=1, verbose=0)
        return model

    def test_a_checkpoint_of_model_and_optimizer(self, keras, tmp_path):
        model = self.model(keras)
        checkpoint = ag.train.Checkpoint(model=model, optimizer=model.optimizer)
        path = checkpoint.save(tmp_path / "c")
        # TensorFlow's names.
        names = [name.partition("/.ATTRIBUTES")[0] for name, _ in ag.train.list_variables(path)]
        assert names == [
            "_CHECKPOINTABLE_OBJECT_GRAPH", "optimizer/_iterations", "optimizer/_learning_rate",
            *(f"optimizer/_trainable_variables/{n}" for n in range(4)),
            *(f"optimizer/_variables/{n}" for n in range(2, 10)), "save_counter",
        ]  # fmt: skip
        expected = model.predict(ROWS, verbose=0)
        after = losses(model, ROWS, ROWS.sum(1, keepdims=True), epochs=2, shuffle=False)
        checkpoint.restore(path).assert_consumed()
        # Native code may have taken over meanwhile, which adds up products in another order.
        np.testing.assert_allclose(model.predict(ROWS, verbose=0), expected, rtol=1e-5)
        again = losses(model, ROWS, ROWS.sum(1, keepdims=True), epochs=2, shuffle=False)
        assert again == pytest.approx(after, rel=1e-5)

    def test_weights_that_are_made_after_restoring(self, keras, tmp_path):
        class Net(keras.Model):
            def __init__(self):
                super().__init__()
                self.dense = keras.layers.Dense(2)

            def call(self, x):
                return self.dense(x)

        net, other = Net(), Net()
        expected = net(ROWS)
        status = ag.train.Checkpoint(net=other).restore(ag.train.Checkpoint(net=net).save(tmp_path / "c"))
        np.testing.assert_array_equal(other(ROWS), expected)
        status.assert_consumed()

    @pytest.mark.parametrize("first", ["call", "predict", "function", "fit"])
    def test_a_model_that_is_restored_before_it_is_built(self, keras, tmp_path, first):
        def make():
            model = keras.Sequential([keras.layers.Dense(8), keras.layers.Dense(8), keras.layers.Dense(8)])
            model.compile(keras.optimizers.Adam(0.01), "mse")
            return model

        model, other = make(), make()
        model.fit(ROWS, 2 * ROWS, epochs=2, verbose=0)
        path = ag.train.Checkpoint(model=model, optimizer=model.optimizer).save(tmp_path / "c")
        status = ag.train.Checkpoint(model=other, optimizer=other.optimizer).restore(path)
        if first == "fit":
            after = losses(model, ROWS, 2 * ROWS, epochs=2, shuffle=False)
            assert losses(other, ROWS, 2 * ROWS, epochs=2, shuffle=False) == pytest.approx(after, rel=1e-6)
            status.assert_consumed()
            return
        status.expect_partial()  # the optimizer has no moments yet
        call = {"call": other, "predict": lambda x: other.predict(x, verbose=0), "function": ag.function(other)}[first]
        np.testing.assert_allclose(call(ROWS), model(ROWS), rtol=1e-5, atol=1e-6)

    def test_a_model_of_several_parameters(self, keras, tmp_path):
        class Sum(keras.Model):
            def build(self, *shapes):
                pass

            @ag.function
            def call(self, *parts):
                return sum(parts)

        model = Sum()
        parts = [ag.constant(float(i)) for i in range(3)]
        assert float(model(*parts)) == 3
        ag.saved_model.save(model, tmp_path / "model")
        loaded = ag.saved_model.load(tmp_path / "model")
        assert float(loaded.call(*parts)) == 3
        assert not loaded.signatures

    def test_export(self, keras, tmp_path):
        model = self.model(keras)
        model.export(tmp_path / "model", verbose=False)
        loaded = ag.saved_model.load(tmp_path / "model")
        assert set(loaded.signatures) == {"serve", "serving_default"}
        np.testing.assert_allclose(
            loaded.serve(ag.constant(ROWS)), model.predict(ROWS, verbose=0), rtol=1e-5, atol=1e-6
        )


def test_a_model_built_in_a_staged_loop(keras):
    """As the first call of the actor of TensorFlow's tutorial on actor-critic methods, in the loop over an episode."""

    class Actor(keras.Model):
        def __init__(self):
            super().__init__()
            self.common = keras.layers.Dense(3, "relu", kernel_initializer="ones")
            self.action = keras.layers.Dense(2, kernel_initializer="ones")

        def call(self, x):
            return self.action(self.common(x))

    actor = Actor()

    @ag.function
    def episode(state):
        for _ in ag.range(3):
            state = actor(state)
        return state

    assert episode(ag.ones([1, 2])).numpy().tolist() == [[6.0 * 6 * 6] * 2]
    assert actor.built is True
    assert len(actor.trainable_variables) == 4


def test_a_layer_without_variables_that_counts_its_calls_in_a_staged_loop(keras):
    """It is called first in the loop. The count is state of the program there, and a number of Python outside."""

    class Counting(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def call(self, x):
            self.calls += 1
            return x * ag.cast(self.calls, ag.float32)

    layer = Counting()

    @ag.function
    def repeated(x):
        for _ in ag.range(3):
            x = layer(x)
        return x

    assert repeated(ag.ones([2])).numpy().tolist() == [6.0, 6.0]
    assert repeated(ag.ones([2])).numpy().tolist() == [6.0, 6.0]
    assert layer.calls == 0
    assert layer.built is True
    assert layer(ag.ones([2])).numpy().tolist() == [1.0, 1.0]
    assert layer.calls == 1


def test_a_layer_that_counts_its_calls_in_a_staged_branch(keras):
    class Counting(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.calls = 5

        def call(self, x):
            if ag.reduce_sum(x) > 0:
                self.calls += 1
            return x * ag.cast(self.calls, ag.float32)

    layer = Counting()
    call = ag.function(lambda x: layer(x))
    assert call(ag.ones([2])).numpy().tolist() == [6.0, 6.0]
    assert call(-ag.ones([2])).numpy().tolist() == [-5.0, -5.0]
    assert layer.calls == 5
