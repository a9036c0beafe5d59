"""Cells modelled on TensorFlow's guides on tensors, variables, slicing and random numbers: only the import differs.

They need no Keras and no files.
"""

import numpy as np
import pytest

import autograph as tf


def test_tensor_basics():
    rank_0 = tf.constant(4)
    rank_1 = tf.constant([2.0, 3.0, 4.0])
    rank_2 = tf.constant([[1, 2], [3, 4], [5, 6]], dtype=tf.float16)
    assert (rank_0.shape, rank_1.shape, rank_2.shape) == ((), (3,), (3, 2))
    assert np.array(rank_2).dtype == np.float16
    a, b = tf.constant([[1, 2], [3, 4]]), tf.constant([[1, 1], [1, 1]])
    assert tf.add(a, b).numpy().tolist() == [[2, 3], [4, 5]]
    assert tf.matmul(a, b).numpy().tolist() == (a @ b).numpy().tolist() == [[3, 3], [7, 7]]
    c = tf.constant([[4.0, 5.0], [10.0, 1.0]])
    assert float(tf.reduce_max(c)) == 10
    assert tf.math.argmax(c).numpy().tolist() == [1, 0]
    np.testing.assert_allclose(tf.nn.softmax(c).numpy().sum(1), 1, 1e-6)
    assert float(tf.reduce_max([1, 2, 3])) == float(tf.reduce_max(np.array([1, 2, 3]))) == 3


def test_tensor_shapes():
    t = tf.zeros([3, 2, 4, 5])
    assert (t.ndim, t.shape[0], t.shape[-1], tf.size(t).numpy()) == (4, 3, 5, 120)
    assert tf.rank(t).numpy() == 4
    assert tf.shape(t).numpy().tolist() == [3, 2, 4, 5]
    x = tf.constant([[1], [2], [3]])
    assert x.shape.as_list() == [3, 1]
    assert tf.reshape(x, [1, 3]).shape == (1, 3)
    cube = tf.reshape(tf.range(30), [3, 2, 5])
    assert tf.reshape(cube, [-1]).numpy().tolist() == list(range(30))
    assert tf.reshape(cube, [3, -1]).shape == (3, 10)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.reshape(cube, [7, -1])


def test_tensor_indexing():
    t = tf.constant([0, 1, 1, 2, 3, 5, 8, 13, 21, 34])
    assert t[0].numpy() == 0 and t[-1].numpy() == 34
    assert t[2:7:2].numpy().tolist() == [1, 3, 8]
    assert t[::-1].numpy().tolist() == t.numpy()[::-1].tolist()
    m = tf.constant([[1, 2], [3, 4], [5, 6]])
    assert m[:, 1].numpy().tolist() == [2, 4, 6]
    assert m[-1, :].numpy().tolist() == [5, 6]
    assert m[1:, :].shape == (2, 2)


def test_tensor_dtypes_and_broadcasting():
    a = tf.constant([2.2, 3.3, 4.4], dtype=tf.float64)
    assert tf.cast(tf.cast(a, tf.float16), tf.uint8).numpy().tolist() == [2, 3, 4]
    x, y = tf.constant([1, 2, 3]), tf.constant([2, 2, 2])
    assert tf.multiply(x, 2).numpy().tolist() == (x * y).numpy().tolist()
    assert tf.multiply(tf.reshape(x, [3, 1]), tf.range(1, 5)).shape == (3, 4)
    assert tf.broadcast_to(tf.constant([1, 2, 3]), [3, 3]).shape == (3, 3)
    assert tf.convert_to_tensor(np.float32(3)).dtype == tf.float32


def test_string_tensors():
    one = tf.constant("Gray wolf")
    three = tf.constant(["Gray wolf", "Quick brown fox", "Lazy dog"])
    assert tf.strings.split(one, sep=" ").numpy().tolist() == [b"Gray", b"wolf"]
    assert [p.shape[0] for p in tf.strings.split(three)] == [2, 3, 2]
    assert tf.strings.to_number(tf.strings.split("1 10 100", " ")).numpy().tolist() == [1, 10, 100]
    assert tf.strings.bytes_split(tf.constant("Duck")).numpy().tolist() == [b"D", b"u", b"c", b"k"]
    unicode = tf.constant("アヒル 🦆")
    assert tf.strings.unicode_decode(unicode, "UTF-8").numpy().tolist() == [ord(c) for c in "アヒル 🦆"]
    assert tf.strings.unicode_encode([[72, 105]], "UTF-8").numpy().tolist() == [b"Hi"]
    assert tf.strings.join(["a", "b"], separator="-").numpy() == b"a-b"
    assert tf.strings.reduce_join([["a", "b"], ["c", "d"]], axis=1).numpy().tolist() == [b"ab", b"cd"]
    assert tf.strings.upper(three)[0].numpy() == b"GRAY WOLF"
    assert tf.strings.length(unicode, unit="UTF8_CHAR").numpy() == 5
    assert tf.strings.substr(one, 0, 4).numpy() == b"Gray"
    assert tf.strings.regex_replace(one, "[aeiou]", "*").numpy() == b"Gr*y w*lf"
    assert tf.strings.as_string([3.14159, 2.0], precision=2).numpy().tolist() == [b"3.14", b"2.00"]
    assert 0 <= int(tf.strings.to_hash_bucket(one, 10)) < 10
    with pytest.raises(tf.errors.InvalidArgumentError, match="could not correctly convert"):
        tf.strings.to_number("x")


def test_variables():
    v = tf.Variable(tf.constant([[1.0, 2.0], [3.0, 4.0]]))
    assert (v.shape, v.dtype) == ((2, 2), tf.float32)
    assert tf.convert_to_tensor(v).numpy().tolist() == v.numpy().tolist()
    assert tf.math.argmax(v).numpy().tolist() == [1, 1]
    assert tf.reshape(v, [1, 4]).shape == (1, 4)
    a = tf.Variable([2.0, 3.0])
    a.assign([1, 2])
    with pytest.raises(ValueError):
        a.assign([1.0, 2.0, 3.0])
    b = tf.Variable(a)
    a.assign([5, 6])
    assert (a.numpy().tolist(), b.numpy().tolist()) == ([5, 6], [1, 2])
    assert a.assign_add([2, 3]).numpy().tolist() == [7, 9]
    assert a.assign_sub([7, 9]).numpy().tolist() == [0, 0]
    named = tf.Variable(1, name="step", trainable=False)
    assert named.name == "step:0" and not named.trainable
    with tf.device("CPU:0"):
        assert (tf.Variable([[1.0, 2.0, 3.0]]) * tf.constant([[1.0, 2.0, 3.0]])).shape == (1, 3)


def test_tensor_slicing():
    t1 = tf.constant([0, 1, 2, 3, 4, 5, 6, 7])
    assert tf.slice(t1, begin=[1], size=[3]).numpy().tolist() == t1[1:4].numpy().tolist() == [1, 2, 3]
    assert t1[-3:].numpy().tolist() == [5, 6, 7]
    t2 = tf.constant([[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11, 12, 13, 14], [15, 16, 17, 18, 19]])
    assert t2[:-1, 1:3].numpy().tolist() == [[1, 2], [6, 7], [11, 12]]
    t3 = tf.reshape(tf.range(32), [2, 2, 8])
    assert tf.slice(t3, begin=[1, 1, 0], size=[1, 1, 2]).numpy().tolist() == [[[24, 25]]]
    assert tf.gather(t1, indices=[0, 3, 6]).numpy().tolist() == [0, 3, 6]
    t4 = tf.constant([[0, 5], [1, 6], [2, 7], [3, 8], [4, 9]])
    assert tf.gather_nd(t4, indices=[[2], [3], [0]]).numpy().tolist() == [[2, 7], [3, 8], [0, 5]]
    t5 = np.reshape(np.arange(18), [2, 3, 3])
    assert tf.gather_nd(t5, indices=[[0, 0, 0], [1, 2, 1]]).numpy().tolist() == [0, 16]
    assert tf.gather_nd(t5, indices=[[[0, 0], [0, 2]], [[1, 0], [1, 2]]]).shape == (2, 2, 3)
    t6, indices = tf.constant([10]), tf.constant([[1], [3], [5], [7], [9]])
    t7 = tf.scatter_nd(indices=indices, updates=tf.constant([2, 4, 6, 8, 10]), shape=t6)
    assert t7.numpy().tolist() == [0, 2, 0, 4, 0, 6, 0, 8, 0, 10]
    t11 = tf.constant([[2, 7, 0], [9, 0, 1], [0, 3, 8]])
    t12 = tf.tensor_scatter_nd_add(t11, indices=[[0, 2], [1, 1], [2, 0]], updates=[6, 5, 4])
    assert t12.numpy().tolist() == [[2, 7, 6], [9, 5, 1], [4, 3, 8]]
    t13 = tf.tensor_scatter_nd_sub(t12, indices=[[0, 0], [0, 1]], updates=[1, 2])
    assert tf.tensor_scatter_nd_min(t13, [[1, 0]], [3]).numpy()[1].tolist() == [3, 5, 1]
    assert tf.tensor_scatter_nd_max(t13, [[1, 0]], [30]).numpy()[1].tolist() == [30, 5, 1]


def test_random_generators():
    g1 = tf.random.Generator.from_seed(1)
    assert g1.normal(shape=[2, 3]).shape == (2, 3)
    assert tf.random.get_global_generator().normal(shape=[2, 3]).shape == (2, 3)
    g = tf.random.Generator.from_seed(1, alg="philox")
    first = g.normal([]).numpy()
    g.reset_from_seed(1)
    assert g.normal([]).numpy() == first
    new_g, *_ = g.split(3)
    assert new_g.normal([]).numpy() != g.normal([]).numpy()
    g1 = tf.random.Generator.from_seed(1)
    made = []

    @tf.function
    def foo():
        if not made:
            made.append(tf.random.Generator.from_seed(1))
        return made[0].normal([])

    assert foo().numpy() == first

    @tf.function
    def bar():
        return g1.normal([]), g1.normal([])

    a, b = bar()
    c, d = bar()
    assert len({float(v) for v in (a, b, c, d)}) == 4


def test_random_seeds():
    tf.random.set_seed(1234)
    a, b = tf.random.uniform([1]).numpy(), tf.random.uniform([1]).numpy()
    tf.random.set_seed(1234)
    assert (tf.random.uniform([1]).numpy(), tf.random.uniform([1]).numpy()) == (a, b)
    assert a != b
    x = tf.random.stateless_uniform(shape=[2, 3], seed=[1, 2])
    np.testing.assert_array_equal(x.numpy(), tf.random.stateless_uniform(shape=[2, 3], seed=[1, 2]).numpy())
    assert tf.random.stateless_normal([2], seed=tf.random.split([1, 2])[0]).shape == (2,)


def test_ragged_and_sparse_tensors():
    with pytest.raises(ValueError):
        tf.constant([[0, 1], [2]])
    rows = tf.ragged.constant([[0, 1, 2, 3], [4, 5], [6, 7, 8], [9]])
    assert rows.shape.as_list() == [4, None]
    words = tf.strings.split(tf.constant(["Gray wolf", "Quick brown fox"]))
    assert words.to_list() == [[b"Gray", b"wolf"], [b"Quick", b"brown", b"fox"]]
    assert tf.io.decode_raw(tf.constant("Duck"), tf.uint8).numpy().tolist() == list(b"Duck")
    few = tf.sparse.SparseTensor(indices=[[0, 0], [1, 2]], values=[1, 2], dense_shape=[3, 4])
    assert tf.sparse.to_dense(few).numpy().sum() == 3


def test_a_module_learns_a_quadratic():
    class Quadratic(tf.Module):
        def __init__(self):
            super().__init__(name="quadratic")
            self.weights = [tf.Variable(float(i + 1), name=f"w{i}") for i in range(3)]

        @tf.function
        def __call__(self, x):
            a, b, c = self.weights
            return a * x**2 + b * x + c

    x = tf.cast(tf.linspace(-2, 2, 41), tf.float32)
    y = x**2 + 2 * x - 5
    model = Quadratic()
    first = float(tf.reduce_mean(tf.square(model(x) - y)))
    for _ in range(150):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x) - y))
        for v, g in zip(model.trainable_variables, tape.gradient(loss, model.trainable_variables)):
            v.assign_sub(0.1 * g)
    assert float(loss) < 1e-4 * first
    np.testing.assert_allclose([float(v) for v in model.variables], [1, 2, -5], atol=0.1)


def test_contrast_has_no_gradient():
    image = tf.Variable([[[0.5, 0.0, 0.0]]])
    with tf.GradientTape() as tape:
        adjusted = tf.image.adjust_contrast(image, 0.1)
    with pytest.raises(LookupError):
        tape.gradient(adjusted, image)


def test_devices_divide():
    cpu = tf.config.list_physical_devices("CPU")[0]
    limits = [tf.config.LogicalDeviceConfiguration()] * 2
    try:
        tf.config.set_logical_device_configuration(cpu, limits)
        assert [d.name for d in tf.config.list_logical_devices()] == ["/device:CPU:0", "/device:CPU:1"]
        assert tf.config.get_logical_device_configuration(cpu) == limits
    finally:
        tf.config.set_logical_device_configuration(cpu, [])
    assert len(tf.config.list_logical_devices()) == 1
