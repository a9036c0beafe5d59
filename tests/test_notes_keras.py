"""The study notes' snippets on Keras: models, shared trunks, training loops, dynamic RNNs, metrics."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import autograph as ag

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("keras") is None, reason="needs the keras extra: pip install -e '.[keras]'"
)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(64, 5)).astype("float32")
Y = (X[:, :2] @ np.array([[1.0], [-2.0]]) + 0.5).astype("float32")


@pytest.fixture(scope="module")
def tf(tensorflow: Any) -> Iterator[Any]:
    ag.keras.utils.set_random_seed(2)
    yield tensorflow
    ag.random.set_seed(None)


def test_layers_are_called_and_know_their_variables(tf: Any) -> None:
    layers = [tf.keras.layers.Dense(7, activation=tf.nn.sigmoid) for _ in range(4)]
    perceptron = tf.keras.Sequential(layers)
    assert perceptron(X).shape == (64, 7)
    assert [v.shape for v in layers[3].trainable_variables] == [(7, 7), (7,)]
    assert len(perceptron.trainable_variables) == 8


def test_a_trunk_that_two_heads_share(tf: Any, tmp_path: Any) -> None:
    trunk = tf.keras.Sequential([tf.keras.layers.Dense(8, activation="tanh")])
    head1 = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    head2 = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    path1 = tf.keras.Sequential([trunk, head1])
    path2 = tf.keras.Sequential([trunk, head2])
    loss_fn = tf.keras.losses.MeanSquaredError()
    main_dataset = tf.data.Dataset.from_tensor_slices((X, Y)).batch(16)
    small_dataset = tf.data.Dataset.from_tensor_slices((X[:32], -Y[:32])).batch(16)
    optimizer = tf.keras.optimizers.Adam(0.05)
    losses = []
    for _ in range(10):
        for x, y in main_dataset:
            with tf.GradientTape() as tape:
                prediction = path1(x)
                loss = loss_fn(y, prediction)
            gradients = tape.gradient(loss, path1.trainable_variables)
            optimizer.apply_gradients(zip(gradients, path1.trainable_variables))
            losses.append(float(loss))
    assert losses[-1] < 0.3 * losses[0]

    kept = [v.numpy() for v in trunk.trainable_variables]
    path2(X)
    before = [v.numpy() for v in head2.trainable_variables]
    optimizer = tf.keras.optimizers.Adam(0.05)
    for x, y in small_dataset:
        with tf.GradientTape() as tape:
            prediction = path2(x)
            loss = loss_fn(y, prediction)
        gradients = tape.gradient(loss, head2.trainable_variables)
        optimizer.apply_gradients(zip(gradients, head2.trainable_variables))
    assert all((a == v.numpy()).all() for a, v in zip(kept, trunk.trainable_variables))
    assert any((a != v.numpy()).any() for a, v in zip(before, head2.trainable_variables))

    tf.saved_model.save(trunk, str(tmp_path / "trunk"))
    loaded = tf.saved_model.load(str(tmp_path / "trunk"))
    (found,) = loaded.signatures["serving_default"](tf.constant(X[:16])).values()
    np.testing.assert_allclose(found, trunk(X[:16]), rtol=1e-5, atol=1e-6)


def test_a_function_trains_over_a_dataset(tf: Any) -> None:
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    optimizer = tf.keras.optimizers.SGD(0.1)
    loss_fn = tf.keras.losses.MeanSquaredError()
    dataset = tf.data.Dataset.from_tensor_slices((X, Y)).batch(16)
    model.build((None, 5))
    optimizer.build(model.trainable_variables)

    @tf.function
    def train(model: Any, dataset: Any, optimizer: Any) -> None:
        for x, y in dataset:
            with tf.GradientTape() as tape:
                prediction = model(x)
                loss = loss_fn(y, prediction)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    before = float(loss_fn(Y, model(X)))
    for _ in range(5):
        train(model, dataset, optimizer)
    assert float(loss_fn(Y, model(X))) < 0.1 * before
    assert int(optimizer.iterations) == 20


def test_compile_and_fit(tf: Any) -> None:
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(optimizer=tf.keras.optimizers.SGD(0.1), loss=tf.keras.losses.MeanSquaredError())
    dataset = tf.data.Dataset.from_tensor_slices((X, Y)).batch(16)
    history = model.fit(dataset, epochs=5, verbose=0).history["loss"]
    assert history[-1] < 0.1 * history[0]


class Cell:
    """A recurrent cell with a state of zeros to begin with, as the notes have it."""

    def __init__(self, tf: Any, size: int) -> None:
        self.cell = tf.keras.layers.SimpleRNNCell(size)
        self.size = size

    def zero_state(self, count: Any, dtype: Any) -> Any:
        return ag.zeros([count, self.size], dtype)

    def __call__(self, x: Any, state: Any) -> Any:
        output, states = self.cell(x, [state])
        return output, states[0]


def dynamic_rnn(tf: Any) -> Any:
    class DynamicRNN(tf.keras.Model):
        def __init__(self, rnn_cell: Any) -> None:
            super().__init__()
            self.cell = rnn_cell
            self.inner = rnn_cell.cell

        def call(self, input_data: Any) -> Any:
            # [batch, time, features] -> [time, batch, features]
            input_data = tf.transpose(input_data, [1, 0, 2])
            outputs = tf.TensorArray(tf.float32, tf.shape(input_data)[0])
            state = self.cell.zero_state(tf.shape(input_data)[1], dtype=tf.float32)
            for i in tf.range(tf.shape(input_data)[0]):
                output, state = self.cell(input_data[i], state)
                outputs = outputs.write(i, output)
            # [time, batch, features] -> [batch, time, features]
            return tf.transpose(outputs.stack(), [1, 0, 2]), state

    return DynamicRNN


def test_a_dynamic_rnn_as_a_model(tf: Any) -> None:
    model = dynamic_rnn(tf)(Cell(tf, 4))
    x = RNG.normal(size=(3, 6, 2)).astype("float32")
    outputs, state = model(x)
    assert outputs.shape == (3, 6, 4)
    np.testing.assert_array_equal(outputs[:, -1], state)
    staged = tf.function(lambda x: model(x))
    np.testing.assert_allclose(staged(x)[0], outputs, rtol=1e-5, atol=1e-6)


def test_a_dynamic_rnn_is_fitted(tf: Any) -> None:
    """Keras 3 on TensorFlow refuses this: the loop over a tensor in `call` isn't converted there."""

    class LastOutput(tf.keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = dynamic_rnn(tf)(Cell(tf, 6))
            self.head = tf.keras.layers.Dense(1)

        def call(self, x: Any) -> Any:
            return self.head(self.rnn(x)[1])

    model = LastOutput()
    x = RNG.normal(size=(64, 5, 2)).astype("float32")
    model.compile(tf.keras.optimizers.Adam(0.02), "mse")
    losses = model.fit(x, x[:, -1, :1], epochs=15, verbose=0).history["loss"]
    assert losses[-1] < 0.5 * losses[0]


def test_conditions_on_tensors_in_a_layer(tf: Any) -> None:
    class Doubling(tf.keras.layers.Layer):
        def call(self, x: Any) -> Any:
            while tf.reduce_sum(tf.abs(x)) < 100.0:
                x = x * 2.0
            return x

    model = tf.keras.Sequential([Doubling(), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    found = model.predict(np.ones((2, 3), "float32"), verbose=0)
    np.testing.assert_allclose(found, model(np.ones((2, 3), "float32")), rtol=1e-5)


def test_metrics_are_objects(tf: Any) -> None:
    m = tf.keras.metrics.Mean("loss")
    m(0)
    m(5)
    assert float(m.result()) == 2.5
    m([8, 9])
    assert float(m.result()) == 5.5
    avg_loss = tf.keras.metrics.Mean(name="loss", dtype=tf.float32)
    avg_loss.update_state(tf.constant(3.0))
    assert float(avg_loss.result()) == 3
    avg_loss.reset_state()
    assert float(avg_loss.result()) == 0
