"""The notes' snippets that need no `function`, printing what the notes print (with `import autograph as tf`)."""

import numpy as np
import pytest

import autograph as tf


@pytest.fixture(autouse=True)
def bare_numpy_scalars():
    # The notes were made with a NumPy that printed its scalars bare.
    before = np.get_printoptions()["legacy"]
    np.set_printoptions(legacy="1.25")
    yield
    np.set_printoptions(legacy=before)


def test_descending_a_loss(capsys):
    a, y = tf.constant(2.0), tf.constant(8.0)
    x = tf.Variable(10.0)

    def train_func():
        with tf.GradientTape() as tape:
            loss = tf.math.abs(a * x - y)
        dx = tape.gradient(loss, x)
        print("x = {}, dx = {:.2f}".format(x.numpy(), dx))
        x.assign(x - dx)

    for _ in range(4):
        train_func()
    assert capsys.readouterr().out == (
        "x = 10.0, dx = 2.00\nx = 8.0, dx = 2.00\nx = 6.0, dx = 2.00\nx = 4.0, dx = 0.00\n"
    )


def test_the_gradient_of_a_square():
    x = tf.Variable(4.0)
    with tf.GradientTape() as tape:
        y = x**2
    assert repr(tape.gradient(y, x).numpy()) == "8.0"


def test_watching_a_matrix(capsys):
    x = tf.ones((2, 2))
    with tf.GradientTape() as t:
        t.watch(x)
        y = tf.reduce_sum(x)
        z = tf.multiply(y, y)
    dz_dx = t.gradient(z, x)
    for i in [0, 1]:
        for j in [0, 1]:
            assert dz_dx[i][j].numpy() == 8.0
    print(dz_dx)
    with tf.GradientTape() as t:
        t.watch(x)
        y = tf.reduce_sum(x)
        z = tf.multiply(y, y)
    dz_dy = t.gradient(z, y)
    assert dz_dy.numpy() == 8.0
    print(dz_dy)
    assert capsys.readouterr().out == (
        "tf.Tensor(\n[[8. 8.]\n [8. 8.]], shape=(2, 2), dtype=float32)\ntf.Tensor(8.0, shape=(), dtype=float32)\n"
    )


def test_a_persistent_tape(capsys):
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as t:
        t.watch(x)
        y = x * x
        z = y * y
    dz_dx = t.gradient(z, x)
    print(dz_dx, "\n")
    dy_dx = t.gradient(y, x)
    print(dy_dx, "\n")
    del t
    assert capsys.readouterr().out == (
        "tf.Tensor(108.0, shape=(), dtype=float32) \n\ntf.Tensor(6.0, shape=(), dtype=float32) \n\n"
    )


def test_python_control_flow_on_a_tape(capsys):
    def f(x, y):
        output = 1.0
        for i in range(y):
            if i > 1 and i < 5:
                print("multiplies by x.", f"{output, x.numpy()}")
                output = tf.multiply(output, x)
        return output

    def grad(x, y):
        with tf.GradientTape() as t:
            t.watch(x)
            out = f(x, y)
        return t.gradient(out, x)

    x = tf.convert_to_tensor(2.0)
    print(grad(x, 6).numpy())
    print(grad(x, 5).numpy())
    print(grad(x, 4).numpy())
    lines = [
        "multiplies by x. (1.0, 2.0)",
        "multiplies by x. (<tf.Tensor: shape=(), dtype=float32, numpy=2.0>, 2.0)",
        "multiplies by x. (<tf.Tensor: shape=(), dtype=float32, numpy=4.0>, 2.0)",
    ]
    assert capsys.readouterr().out.splitlines() == [*lines, "12.0", *lines, "12.0", *lines[:2], "4.0"]


def test_formatting_a_product():
    x = [[2.0]]
    m = tf.matmul(x, x)
    assert "hello, {}".format(m) == "hello, [[4.]]"


def test_variables():
    s = tf.Variable(1.0)
    v = tf.Variable(tf.ones((2,)))
    x = tf.Variable(tf.ones((2, 1)))
    x.assign(tf.ones((2, 1)))
    assert repr(x.numpy()) == "array([[1.],\n       [1.]], dtype=float32)"
    assert (s.shape, v.shape) == ((), (2,))


def test_a_cube():
    def cube(x):
        return x**3

    assert cube(2) == 8
    assert repr(cube(tf.constant(2.0))) == "<tf.Tensor: shape=(), dtype=float32, numpy=8.0>"


def test_named_variables(capsys):
    W = tf.Variable(tf.ones(shape=(2, 2)), name="W")
    b = tf.Variable(tf.zeros(shape=(2)), name="b")
    print("W\n", W.numpy())
    print("\nb\n", b.numpy())
    print("\nout_a\n", W * [1, 0] + b)
    assert capsys.readouterr().out == (
        "W\n [[1. 1.]\n [1. 1.]]\n\nb\n [0. 0.]\n"
        "\nout_a\n tf.Tensor(\n[[1. 0.]\n [1. 0.]], shape=(2, 2), dtype=float32)\n"
    )


def test_the_gradient_of_random_numbers_is_exact(capsys):
    tf.random.set_seed(7)
    x = tf.random.normal((2, 2))
    with tf.GradientTape() as g:
        g.watch(x)
        y = x**2
    dy_dx = g.gradient(y, x)
    true_grad = 2 * x
    print("Gradient calculated by tf.GradientTape:\n", dy_dx)
    print("\nTrue Gradient:\n", true_grad)
    print("\nMaximum Difference:", np.abs(true_grad - dy_dx).max())
    drawn = " tf.Tensor(\n[[1.1966898  0.12552415]\n [0.29263484 0.9696375 ]], shape=(2, 2), dtype=float32)\n"
    assert capsys.readouterr().out == (
        f"Gradient calculated by tf.GradientTape:\n{drawn}\nTrue Gradient:\n{drawn}\nMaximum Difference: 0.0\n"
    )


def test_several_sources_and_constants():
    x = tf.Variable(tf.constant(1.0))
    with tf.GradientTape() as tape:
        y = tf.multiply(5, x)
    assert repr(tape.gradient(y, x).numpy()) == "5.0"

    x1, x2 = tf.Variable(tf.constant(1.0)), tf.Variable(tf.constant(1.0))
    with tf.GradientTape() as tape:
        y = tf.multiply(x1, x2)
    gradients = tape.gradient(y, [x1, x2])
    assert repr((gradients[0].numpy(), gradients[1].numpy())) == "(1.0, 1.0)"

    x, a = tf.Variable(tf.constant(1.0)), tf.constant(1.0)
    with tf.GradientTape() as tape:
        y = tf.multiply(a, x)
    assert tape.gradient(y, a) is None
    with tf.GradientTape() as tape:
        tape.watch(a)
        y = tf.multiply(a, x)
    assert repr(tape.gradient(y, a).numpy()) == "1.0"
