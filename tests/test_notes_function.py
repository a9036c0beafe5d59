"""The study notes' snippets on `function`: they print here what they print there.

Only the import line differs (`import autograph as tf`). Where a later TensorFlow words something differently than the
version that the notes were written with, the notes decide.
"""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import autograph as tf


def test_a_function_is_an_operation() -> None:
    @tf.function
    def add(a: Any, b: Any) -> Any:
        return a + b

    assert repr(add(tf.ones([2, 2]), tf.ones([2, 2]))) == (
        "<tf.Tensor: shape=(2, 2), dtype=float32, numpy=\narray([[2., 2.],\n       [2., 2.]], dtype=float32)>"
    )

    v = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        result = add(v, 1.0)
    assert repr(tape.gradient(result, v)) == "<tf.Tensor: shape=(), dtype=float32, numpy=1.0>"

    @tf.function
    def dense_layer(x: Any, w: Any, b: Any) -> Any:
        return add(tf.matmul(x, w), b)

    assert repr(dense_layer(tf.ones([3, 2]), tf.ones([2, 2]), tf.ones([2]))) == (
        "<tf.Tensor: shape=(3, 2), dtype=float32, numpy=\n"
        "array([[3., 3.],\n       [3., 3.],\n       [3., 3.]], dtype=float32)>"
    )


def test_tracing_and_polymorphism(capsys: pytest.CaptureFixture[str]) -> None:
    @tf.function
    def double(a: Any) -> Any:
        print("Tracing with", a)
        return a + a

    print(double(tf.constant(1)), end="\n\n")
    print(double(tf.constant(1.1)), end="\n\n")
    print(double(tf.constant("a")), end="\n\n")
    assert capsys.readouterr().out == (
        'Tracing with Tensor("a:0", shape=(), dtype=int32)\n'
        "tf.Tensor(2, shape=(), dtype=int32)\n\n"
        'Tracing with Tensor("a:0", shape=(), dtype=float32)\n'
        "tf.Tensor(2.2, shape=(), dtype=float32)\n\n"
        'Tracing with Tensor("a:0", shape=(), dtype=string)\n'
        "tf.Tensor(b'aa', shape=(), dtype=string)\n\n"
    )
    double(tf.constant(2))
    double(tf.constant(2.2))
    assert capsys.readouterr().out == ""

    double_strings = double.get_concrete_function(tf.TensorSpec(shape=None, dtype=tf.string))
    capsys.readouterr()
    print(double_strings(tf.constant("a")))
    print(double_strings(a=tf.constant("b")))
    assert capsys.readouterr().out == (
        "tf.Tensor(b'aa', shape=(), dtype=string)\ntf.Tensor(b'bb', shape=(), dtype=string)\n"
    )
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        double_strings(tf.constant(1))
    message = str(caught.value)
    assert message.startswith("cannot compute __inference_double_")
    assert "as input #0(zero-based) was expected to be a string tensor but is a int32 tensor [Op:__inference" in message


def test_input_signature(capsys: pytest.CaptureFixture[str]) -> None:
    @tf.function(input_signature=(tf.TensorSpec(shape=[None], dtype=tf.int32),))
    def next_collatz(x: Any) -> Any:
        print("Tracing with", x)
        return tf.where(x % 2 == 0, x // 2, 3 * x + 1)

    print(next_collatz(tf.constant([1, 2])))
    assert capsys.readouterr().out == (
        'Tracing with Tensor("x:0", shape=(None,), dtype=int32)\ntf.Tensor([4 1], shape=(2,), dtype=int32)\n'
    )
    with pytest.raises(ValueError) as caught:
        next_collatz(tf.constant([[1, 2], [3, 4]]))
    assert str(caught.value).startswith(
        "Python inputs incompatible with input_signature:\n  inputs: (\n    tf.Tensor(\n[[1 2]\n [3 4]], shape=(2, 2), "
        "dtype=int32))\n  input_signature: (\n    TensorSpec(shape=(None,), dtype=tf.int32, name=None))"
    )


def test_a_function_of_a_python_number() -> None:
    @tf.function
    def tf_cube(x: Any) -> Any:
        return x**3

    assert repr(tf_cube(2)) == "<tf.Tensor: shape=(), dtype=int32, numpy=8>"
    assert repr(tf_cube(tf.constant(2.0))) == "<tf.Tensor: shape=(), dtype=float32, numpy=8.0>"


def test_variables_in_a_function(capsys: pytest.CaptureFixture[str]) -> None:
    w = tf.Variable(tf.ones(shape=(2, 2)), name="W")
    b = tf.Variable(tf.zeros(shape=(2)), name="b")
    print("W\n", w.numpy())
    print("\nb\n", b.numpy())

    @tf.function
    def forward(x: Any) -> Any:
        return w * x + b

    out_a = forward([1, 0])
    print("\nout_a\n", out_a)
    assert capsys.readouterr().out == (
        "W\n [[1. 1.]\n [1. 1.]]\n\nb\n [0. 0.]\n\nout_a\n"
        " tf.Tensor(\n[[1. 0.]\n [1. 0.]], shape=(2, 2), dtype=float32)\n"
    )


def test_the_dense_layer_of_the_guide() -> None:
    def dense(x: Any, w: Any, b: Any) -> Any:
        return tf.nn.sigmoid(tf.matmul(x, w) + b)

    @tf.function
    def multilayer_perceptron(x: Any, w0: Any, b0: Any, w1: Any, b1: Any) -> Any:
        x = dense(x, w0, b0)
        return dense(x, w1, b1)

    x, w, b = tf.ones([3, 2]), tf.ones([2, 2]), tf.zeros([2])
    hidden = 1 / (1 + np.exp(-2.0))
    expected = np.full((3, 2), 1 / (1 + np.exp(-2 * hidden)), np.float32)
    np.testing.assert_allclose(multilayer_perceptron(x, w, b, w, b).numpy(), expected, rtol=1e-6)


@contextlib.contextmanager
def assert_raises(error_class: type[Exception]) -> Iterator[None]:
    try:
        yield
    except error_class:
        print("Caught the expected exception \n {}:".format(error_class.__name__))
        traceback.print_exc(limit=2)
    else:
        raise AssertionError(f"{error_class} was expected, but nothing was raised")


def test_errors_in_the_context_manager_of_the_notes(capsys: pytest.CaptureFixture[str]) -> None:
    @tf.function
    def double(a: Any) -> Any:
        return a + a

    double_strings = double.get_concrete_function(tf.TensorSpec(shape=None, dtype=tf.string))
    with assert_raises(tf.errors.InvalidArgumentError):
        double_strings(tf.constant(1))
    printed = capsys.readouterr()
    assert printed.out == "Caught the expected exception \n InvalidArgumentError:\n"
    # Two frames, the user's, and the message: nothing of the library's own stands between them.
    lines = printed.err.splitlines()
    assert [line.strip() for line in lines if "^" not in line][:5] == [
        "Traceback (most recent call last):",
        lines[1].strip(),
        "yield",
        lines[3].strip(),
        "double_strings(tf.constant(1))",
    ]
    assert lines[3].endswith("in test_errors_in_the_context_manager_of_the_notes")


def test_a_training_loop_over_a_dataset() -> None:
    class Linear(tf.Module):
        def __init__(self) -> None:
            self.w = tf.Variable([[0.0], [0.0]])

        def __call__(self, x: Any) -> Any:
            return x @ self.w

    class Descent:
        def apply_gradients(self, pairs: Any) -> None:
            for gradient, variable in pairs:
                variable.assign_sub(0.1 * gradient)

    def loss_fn(prediction: Any, y: Any) -> Any:
        return tf.reduce_mean((prediction - y) ** 2)

    @tf.function
    def train(model: Any, dataset: Any, optimizer: Any) -> None:
        for x, y in dataset:
            with tf.GradientTape() as tape:
                prediction = model(x)
                loss = loss_fn(prediction, y)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    points = np.random.default_rng(3).normal(size=(40, 2)).astype(np.float32)
    targets = points @ np.array([[2.0], [-1.0]], np.float32)
    model = Linear()
    train(model, tf.data.Dataset.from_tensor_slices((points, targets)).batch(8), Descent())

    w = np.zeros((2, 1), np.float32)
    for i in range(0, 40, 8):
        x, y = points[i : i + 8], targets[i : i + 8]
        w -= np.float32(0.1) * (2 / np.float32(8)) * x.T @ (x @ w - y)
    np.testing.assert_allclose(model.w.numpy(), w, rtol=1e-5)


def test_a_recurrent_network_over_time_steps() -> None:
    class Cell:
        def zero_state(self, batch: int, dtype: Any) -> Any:
            return tf.zeros([batch, 2], dtype)

        def __call__(self, x: Any, state: Any) -> Any:
            state = tf.tanh(x + 0.5 * state)
            return 2.0 * state, state

    class DynamicRNN(tf.Module):
        def __init__(self, rnn_cell: Cell) -> None:
            super().__init__()
            self.cell = rnn_cell

        @tf.function
        def call(self, input_data: Any) -> Any:
            input_data = tf.transpose(input_data, [1, 0, 2])
            outputs = tf.TensorArray(tf.float32, input_data.shape[0])
            state = self.cell.zero_state(input_data.shape[1], dtype=tf.float32)
            for i in tf.range(input_data.shape[0]):
                output, state = self.cell(input_data[i], state)
                outputs = outputs.write(i, output)
            return tf.transpose(outputs.stack(), [1, 0, 2]), state

    data = np.random.default_rng(4).normal(size=(3, 5, 2)).astype(np.float32)
    network = DynamicRNN(Cell())
    outputs, state = network.call(tf.constant(data))
    expected, at = [], np.zeros((3, 2), np.float32)
    for step in range(5):
        at = np.tanh(data[:, step] + np.float32(0.5) * at)
        expected.append(2 * at)
    np.testing.assert_allclose(outputs.numpy(), np.stack(expected, 1), rtol=1e-5)
    np.testing.assert_allclose(state.numpy(), at, rtol=1e-5)
